/* compile: from source text to output, room by room.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checker/checker.h"
#include "driver/check_manifest.h"
#include "driver/check_passes.h"
#include "driver/context.h"
#include "driver/emit.h"
#include "driver/generate.h"
#include "driver/manifest.h"
#include "driver/module.h"
#include "driver/narrow.h"
#include "driver/plan.h"
#include "driver/proof.h"
#include "driver/which_kernel.h"
#include "frontend/frontend.h"
#include "ir/signature.h"
#include "ir/target.h"
#include "passes/choose_schedule.h"
#include "passes/passes.h"
#include "passes/schedule.h"
#include "support/clock.h"

/* One compilation on its way. */
typedef struct job {
    const tcc_compile_options *o;
    const tcc_context *ctx;
    tcc_diag diag;
    tcc_arena *arena;
    tcc_module *mod;
    tcc_ir *ir;
    tcc_names wanted; /* variants, of the options' ranges */
    tcc_func *definitions; /* what the passes begin with, a list by `next`, for printed IR */
    tcc_signature *signatures;
    size_t n_signatures;
    tcc_pass_check *check; /* NULL: none */
    double check_ms;
    tcc_str times;
    tcc_str manifest, schedule, plan; /* being written: memory may run out meanwhile */
    double start_ms;
    tcc_proof proof; /* of what code is being made of */
} job;

static void add_time(const char *phase, double ms, void *user)
{
    job *j = user;
    if (j->o->time_passes)
        tcc_str_printf(&j->times, "%10.3f ms  %s\n", ms, phase);
}

/* How long a proof took, and what it covered. */
static void add_proof(job *j, double ms, const tcc_covered *c)
{
    add_time("verify-pipeline", ms, j);
    if (j->o->time_passes)
        tcc_str_printf(&j->times,
                       "               proofs: %zu, of %zu ops, %zu loops and the ends of %zu warps, in %zu steps\n",
                       c->proofs, c->ops, c->loops, c->warps, c->steps);
}

static void forward_print(const char *text, void *user)
{
    const job *j = user;
    if (j->o->print)
        j->o->print(text, j->o->print_user);
}

static tcc_status check_after(const tcc_ir *ir, const char *pass, void *user)
{
    job *j = user;
    if (j->ctx && atomic_load(&j->ctx->interrupted))
        return TCC_ERR_INTERRUPTED;
    if (!j->check)
        return TCC_OK;
    double start = tcc_now_ms();
    tcc_status status = tcc_pass_check_after(j->check, ir, pass);
    j->check_ms += tcc_now_ms() - start;
    return status;
}

/* Runs passes on the job's module, and checks them where that is asked for. What is not valid
 * cannot be run, so that is verified first. */
static tcc_status run_passes(job *j, const char *passes)
{
    const tcc_pass_options o = {.print_after = j->o->print_after,
                                .verify_each = j->o->verify_each || j->o->check_passes,
                                .print = forward_print,
                                .time = add_time,
                                .check = check_after,
                                .user = j};
    double start = tcc_now_ms();
    tcc_status status = TCC_OK;
    if (j->o->check_passes)
        status = tcc_pass_check_create(
            j->arena, j->ir, &(tcc_pass_check_options){.seed = j->o->check_seed, .sampled = j->o->check_seed != 0},
            &j->diag, &j->check);
    j->check_ms = tcc_now_ms() - start;
    if (!status)
        status = tcc_run_passes(j->ir, passes, &o, &j->diag);
    start = tcc_now_ms();
    if (j->check && !status)
        status = tcc_pass_check_finish(j->check, j->ir);
    if (j->check)
        add_time("check-passes", j->check_ms + tcc_now_ms() - start, j);
    return status;
}

static void print_times(job *j)
{
    if (!j->o->time_passes)
        return;
    add_time("total", tcc_now_ms() - j->start_ms, j);
    forward_print(tcc_str_text(&j->times), j);
}

/* ---- phases ------------------------------------------------------------------------------ */

/* Where one kernel is asked for, the others go. */
static tcc_status drop_other_kernels(job *j)
{
    if (!j->o->kernel)
        return TCC_OK;
    if (!tcc_func_find(j->ir, j->o->kernel)) {
        tcc_str names = {0};
        for (const tcc_func *f = j->ir->first; f; f = f->next)
            tcc_which_kernel_add(&names, f->name);
        return tcc_which_kernel(&j->diag, "program", j->o->kernel, &names);
    }
    for (tcc_func *f = j->ir->first, *next; f; f = next) {
        next = f->next;
        if (strcmp(f->name, j->o->kernel))
            tcc_func_remove(f);
    }
    return TCC_OK;
}

static tcc_status run_frontend(job *j, const char *source, size_t size)
{
    double start = tcc_now_ms();
    tcc_frontend_define *defines = TCC_NEW_ARRAY(j->arena, tcc_frontend_define, j->o->n_defines);
    for (size_t i = 0; i < j->o->n_defines; i++)
        defines[i] = (tcc_frontend_define){j->o->defines[i].name, j->o->defines[i].value};
    j->ir = tcc_frontend(j->arena, source, size, j->o->target, defines, j->o->n_defines, &j->diag);
    add_time("frontend", tcc_now_ms() - start, j);
    if (!j->ir)
        return j->diag.status ? j->diag.status : TCC_ERR_INTERNAL;
    tcc_status status = drop_other_kernels(j);
    if (status)
        return status;
    tcc_attr_set_str(j->ir, &j->ir->attrs, "target", j->o->target);
    tcc_attr_set_str(j->ir, &j->ir->attrs, "file", j->diag.file);
    if (j->o->tiles)
        tcc_attr_set_int(j->ir, &j->ir->attrs, "tiles", j->o->tiles);
    if (j->o->n_ranges)
        tcc_attr_set_strs(j->ir, &j->ir->attrs, "wanted", j->wanted.len, j->wanted.data);
    size_t n = 0;
    for (tcc_func *f = j->ir->first; f; f = f->next)
        n++;
    j->mod->kernels = TCC_NEW_ARRAY(j->arena, const char *, n);
    j->signatures = TCC_NEW_ARRAY(j->arena, tcc_signature, n);
    j->n_signatures = n;
    for (tcc_func *f = j->ir->first; f; f = f->next) {
        if (j->o->timeline)
            tcc_attr_set_int(j->ir, &f->attrs, "timeline", j->o->timeline_cta);
        tcc_signature_print(&j->signatures[j->mod->n_kernels], f, f);
        j->mod->kernels[j->mod->n_kernels++] = f->name;
    }
    return TCC_OK;
}

/* Proves what is about to be emitted. */
static tcc_status verify_pipeline(job *j)
{
    double start = tcc_now_ms();
    tcc_covered covered;
    tcc_status status = tcc_protocol_cover_all(j->ir, 0, &j->diag, &covered);
    add_proof(j, tcc_now_ms() - start, &covered);
    return status;
}

/* Code that is not proven is not given out. */
static tcc_status end_proof(job *j, tcc_status status)
{
    bool runs = j->proof.runs;
    tcc_status proven = tcc_proof_end(&j->proof, &j->diag);
    if (runs)
        add_proof(j, j->proof.ms, &j->proof.covered);
    return status ? status : proven;
}

/* Keeps each kernel as it is before the passes: their IR no longer shows what the kernel computes. */
static void set_definitions_aside(job *j)
{
    tcc_func *next, **end = &j->definitions;
    for (tcc_func *f = j->ir->first; f; f = next) {
        next = f->next;
        tcc_func *copy = tcc_func_clone(f, tcc_arena_printf(j->arena, "%s__definition", f->name));
        tcc_attr dims = tcc_attr_list(&f->attrs, "dims"), roles = tcc_attr_list(&f->attrs, "roles");
        copy->attrs = (tcc_attrs){0};
        tcc_attr_set_str(j->ir, &copy->attrs, "defines", f->name);
        tcc_attr_set(j->ir, &copy->attrs, "dims", dims, (tcc_loc){0, 0});
        tcc_attr_set(j->ir, &copy->attrs, "roles", roles, (tcc_loc){0, 0});
        tcc_func_remove(copy);
        copy->next = NULL;
        *end = copy;
        end = &copy->next;
    }
}

/* Appends them after all others. */
static void add_definitions(job *j)
{
    if (j->definitions)
        j->ir->last->next = j->definitions;
    while (j->ir->last && j->ir->last->next)
        j->ir->last = j->ir->last->next;
}

static void describe(job *j)
{
    tcc_manifest_print(&j->manifest, j->ir, j->diag.file, j->signatures, j->n_signatures);
    for (const tcc_func *f = j->ir->first; f; f = f->next) {
        const char *kernel = tcc_attr_str(&f->attrs, "kernel", "");
        if (!strcmp(kernel, f->name)) { /* the first variant is the one that a schedule is for */
            tcc_schedule_print(&j->schedule, f, kernel);
            tcc_tile_menu_print(&j->schedule, f);
            tcc_plan_print(&j->plan, j->ir, kernel);
        }
    }
    j->mod->manifest = tcc_str_take(&j->manifest);
    j->mod->schedule = tcc_str_take(&j->schedule);
    j->mod->plan = tcc_str_take(&j->plan);
}

/* Hands a text to the module; TCC_ERR_MEMORY when it could not be built. */
static tcc_status set_output(job *j, tcc_str *text)
{
    j->mod->size = text->len;
    j->mod->output = tcc_str_take(text);
    return j->mod->output ? TCC_OK : TCC_ERR_MEMORY;
}

/* With locations where they are in another file: that of the program. */
static void print_text(tcc_str *out, const tcc_ir *ir)
{
    tcc_ir_print(out, ir, tcc_attr_find(&ir->attrs, "file") ? TCC_PRINT_LOCS : 0);
}

static tcc_status print_ir(job *j)
{
    tcc_str text = {0};
    print_text(&text, j->ir);
    return set_output(j, &text);
}

/* manifest: that a code object carries; NULL: none */
static tcc_status generate(job *j, const char *target, const char *manifest, char **out, size_t *size)
{
    const tcc_generation g = {j->o, j->ir, target, manifest, &j->diag, add_time, j};
    return tcc_generate(&g, out, size);
}

/* Assembly carries the manifest in front. */
static tcc_status emit_code(job *j)
{
    char *code = NULL;
    size_t size = 0;
    tcc_status status = generate(j, j->o->target, j->mod->manifest, &code, &size);
    if (status || (j->o->emit != TCC_EMIT_PTX && j->o->emit != TCC_EMIT_ASM)) {
        j->mod->output = code;
        j->mod->size = size;
        return status;
    }
    tcc_str out = {0};
    tcc_manifest_comment(&out, j->mod->manifest);
    tcc_str_append(&out, code, size);
    free(code);
    return set_output(j, &out);
}

/* The passes that lead to a kind of output. */
static const char *pipeline_to(tcc_emit emit, const tcc_target *target)
{
    switch (emit) {
    case TCC_EMIT_IR: return "";
    case TCC_EMIT_TILE: return tcc_pipeline_to_tile;
    case TCC_EMIT_ASYNC: return tcc_pipeline_to_async;
    default: return tcc_pipeline(target);
    }
}

/* What tcc_interpret needs. */
static void keep_ir(job *j, const char *source, size_t size)
{
    j->mod->ir = j->ir;
    j->mod->file = tcc_arena_strdup(j->arena, j->diag.file);
    j->mod->source = tcc_arena_strndup(j->arena, source, size);
    j->mod->source_size = size;
}

/* Whether the options go with each other and with the target. */
static tcc_status check_options(job *j, const tcc_target *target)
{
    const char *after = j->o->print_after;
    bool known = !after || !strcmp(after, "all") || !strcmp(after, "changed");
    for (size_t i = 0; !known && tcc_pass_name(i); i++)
        known = !strcmp(after, tcc_pass_name(i));
    if (!known)
        tcc_error(&j->diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0}, "no pass is named '%s'", after);
    else if (j->o->timeline && tcc_target_vendor(target) != TCC_VENDOR_NVIDIA)
        tcc_error(&j->diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0}, "kernels for %s have no timelines", target->name);
    else if (j->o->timeline && (j->o->timeline_cta < 0 || j->o->timeline_cta > INT32_MAX))
        tcc_error(&j->diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0}, "no CTA has number %lld", (long long)j->o->timeline_cta);
    else
        return tcc_emit_check(j->o->emit, target, &j->diag);
    return TCC_ERR_ARGUMENT;
}

static bool makes_code(const job *j)
{
    return !tcc_emit_is_ir(j->o->emit) && j->o->emit != TCC_EMIT_MANIFEST;
}

static tcc_status run_job(job *j, const char *source, size_t size)
{
    const tcc_target *target = tcc_target_named(j->o->target, &j->diag);
    if (!target)
        return TCC_ERR_TARGET;
    bool is_proven = false;
    tcc_status status = check_options(j, target);
    if (!status && j->o->n_ranges)
        status = tcc_narrow(j->arena, source, size, j->o, &j->diag, &j->wanted);
    if (!status)
        status = run_frontend(j, source, size);
    if (!status && j->o->emit != TCC_EMIT_IR) {
        set_definitions_aside(j);
        const char *pipeline = pipeline_to(j->o->emit, target);
        if (!pipeline)
            return tcc_target_lacks(target, "passes/families.c", &j->diag, (tcc_loc){0, 0});
        status = run_passes(j, pipeline);
        is_proven = pipeline == tcc_pipeline(target) && j->o->verify_pipeline != TCC_OFF;
        if (!status && is_proven && !makes_code(j))
            status = verify_pipeline(j);
        add_definitions(j);
    }
    if (status)
        return status;
    describe(j);
    if (!j->mod->manifest || !j->mod->schedule || !j->mod->plan)
        return TCC_ERR_MEMORY;
    keep_ir(j, source, size);
    if (tcc_emit_is_ir(j->o->emit))
        return print_ir(j);
    status = tcc_check_manifest(j->mod->manifest, j->ir, j->signatures, j->n_signatures, &j->diag);
    if (status)
        return status;
    if (j->o->emit == TCC_EMIT_MANIFEST) {
        tcc_str text = {0};
        tcc_str_printf(&text, "%s\n", j->mod->manifest);
        return set_output(j, &text);
    }
    if (is_proven && !tcc_proof_begin(&j->proof, j->ir))
        status = verify_pipeline(j);
    return status ? status : emit_code(j);
}

/* ---- entry points ------------------------------------------------------------------------- */

/* A compiler bug leaves the program that shows it. */
static void write_reproducer(job *j, const char *source, size_t size)
{
    if (!j->o->reproducer)
        return;
    FILE *f = fopen(j->o->reproducer, "wb");
    if (!f)
        return;
    fprintf(f, "// tcc %s --target=%s", TCC_VERSION_STRING, j->o->target);
    if (j->o->check_passes)
        fprintf(f, " --check-passes=%llu", (unsigned long long)j->o->check_seed);
    fprintf(f, ": internal error on this program\n");
    for (size_t i = 0; i < j->o->n_defines; i++)
        fprintf(f, "// -D %s=%lld\n", j->o->defines[i].name, (long long)j->o->defines[i].value);
    fwrite(source, 1, size, f);
    bool written = !ferror(f);
    if (!fclose(f) && written)
        tcc_error(&j->diag, TCC_ERR_INTERNAL, (tcc_loc){0, 0},
                  "this is a bug in tcc: the program was written to %s", j->o->reproducer);
}

tcc_compile_options tcc_known_compile_options(const tcc_compile_options *given)
{
    tcc_compile_options o = {0};
    size_t n = given ? given->struct_size : 0;
    if (given)
        memcpy(&o, given, n && n < sizeof o ? n : sizeof o);
    return o;
}

/* Runs the job; memory that runs out anywhere in it ends here. */
static tcc_status guard(job *j, const char *source, size_t size)
{
    jmp_buf oom;
    volatile tcc_status status = TCC_ERR_MEMORY;
    tcc_arena_set_oom(j->arena, &oom);
    if (!setjmp(oom))
        status = run_job(j, source, size);
    return end_proof(j, status);
}

tcc_status tcc_compile_with(tcc_context *ctx, const char *source, size_t size,
                            const tcc_compile_options *options, tcc_module **out)
{
    *out = NULL;
    tcc_compile_options o = tcc_known_compile_options(options);
    if (o.emit == TCC_EMIT_DEFAULT)
        o.emit = tcc_target_emit(o.target);
    job *j = calloc(1, sizeof *j);
    tcc_module *mod = calloc(1, sizeof *mod);
    tcc_arena *arena = tcc_arena_create(NULL);
    if (!j || !mod || !arena) {
        free(j);
        free(mod);
        tcc_arena_destroy(arena);
        return TCC_ERR_MEMORY;
    }
    *j = (job){.o = &o, .ctx = ctx, .arena = arena, .mod = mod, .diag = tcc_context_diag(ctx, o.file, source, size),
               .start_ms = tcc_now_ms()};
    mod->arena = arena;
    mod->emit = o.emit;
    tcc_status status = guard(j, source, size);
    if (status == TCC_ERR_INTERNAL)
        write_reproducer(j, source, size);
    print_times(j);
    tcc_str_free(&j->times);
    tcc_pass_check_destroy(j->check);
    for (size_t i = 0; i < j->n_signatures; i++)
        tcc_str_free(&j->signatures[i].json);
    tcc_str_free(&j->manifest);
    tcc_str_free(&j->schedule);
    tcc_str_free(&j->plan);
    free(j);
    if (status)
        tcc_module_destroy(mod);
    else
        *out = mod;
    return status;
}

tcc_status tcc_compile(tcc_context *ctx, const char *source, const char *target, tcc_module **out)
{
    const tcc_compile_options o = {.struct_size = sizeof o, .target = target};
    return tcc_compile_with(ctx, source, strlen(source), &o, out);
}

static tcc_status opt(job *j, const char *ir, size_t size, const char *passes, char **out,
                      size_t *out_size)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(j->arena, &oom);
    tcc_status status = tcc_module_read_ir(j->arena, ir, size, &j->diag, &j->ir);
    if (status)
        return status;
    status = check_options(j, tcc_target_of(j->ir));
    if (!status)
        status = run_passes(j, passes);
    if (status)
        return status;
    if (!tcc_ir_verify(j->ir, TCC_LEVEL_ALL, &j->diag))
        return TCC_ERR_INTERNAL;
    if (makes_code(j)) /* which refuses other levels: only this one can be proven */
        status = generate(j, tcc_target_of(j->ir)->name, NULL, out, out_size);
    if (!status && (j->o->verify_pipeline == TCC_ON || (makes_code(j) && j->o->verify_pipeline != TCC_OFF)))
        status = verify_pipeline(j);
    if (status && *out) {
        free(*out);
        *out = NULL;
    }
    if (status || *out)
        return status;
    tcc_str text = {0};
    print_text(&text, j->ir);
    *out_size = text.len;
    *out = tcc_str_take(&text);
    return *out ? TCC_OK : TCC_ERR_MEMORY;
}

tcc_status tcc_opt(tcc_context *ctx, const char *ir, size_t size, const char *passes,
                   const tcc_compile_options *options, char **out)
{
    *out = NULL;
    tcc_compile_options o = tcc_known_compile_options(options);
    if (o.emit == TCC_EMIT_DEFAULT)
        o.emit = TCC_EMIT_TIR;
    job *j = calloc(1, sizeof *j);
    tcc_arena *arena = tcc_arena_create(NULL);
    if (!j || !arena) {
        free(j);
        tcc_arena_destroy(arena);
        return TCC_ERR_MEMORY;
    }
    *j = (job){.o = &o, .ctx = ctx, .arena = arena, .diag = tcc_context_diag(ctx, o.file, ir, size), .start_ms = tcc_now_ms()};
    size_t out_size = 0;
    tcc_status status = opt(j, ir, size, passes, out, &out_size);
    if (o.output_size)
        *o.output_size = out_size;
    print_times(j);
    tcc_str_free(&j->times);
    tcc_pass_check_destroy(j->check);
    tcc_arena_destroy(arena);
    free(j);
    return status;
}

void tcc_text_destroy(char *text)
{
    free(text);
}

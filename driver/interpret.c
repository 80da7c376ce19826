/* interpret: runs a kernel of a module on the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver/module.h"
#include "driver/which_kernel.h"
#include "interp/timeline.h"
#include "ir/plan.h"
#include "ir/signature.h"
#include "ir/target.h"

enum { MAX_THREADS = 64 };

typedef struct request {
    const tcc_module *mod;
    const char *kernel;
    double *const *args;
    const tcc_interpret_options *o;
    tcc_interp_options interp;
    tcc_arena *arena;
    tcc_diag diag;
    tcc_str timeline, summary;
} request;

/* ---- which function ----------------------------------------------------------------------- */

static tcc_status bad_argument(request *r, const char *what, const char *name)
{
    tcc_error(&r->diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0}, "%s '%s'", what, name);
    return TCC_ERR_ARGUMENT;
}

static tcc_status find_kernel(request *r)
{
    const tcc_module *mod = r->mod;
    if (!r->kernel && mod->n_kernels == 1)
        r->kernel = mod->kernels[0];
    tcc_str names = {0};
    for (size_t i = 0; i < mod->n_kernels; i++) {
        if (r->kernel && !strcmp(mod->kernels[i], r->kernel)) {
            tcc_str_free(&names);
            return TCC_OK;
        }
        tcc_which_kernel_add(&names, mod->kernels[i]);
    }
    return tcc_which_kernel(&r->diag, "module", r->kernel, &names);
}

/* The first message of a function that is tried. */
typedef struct reason {
    char text[256];
} reason;

static void keep_first(const tcc_diagnostic *d, void *user)
{
    reason *why = user;
    if (!*why->text)
        snprintf(why->text, sizeof why->text, "%s", d->message);
}

/* Whether a function is a variant of the kernel. */
static bool belongs(const request *r, const tcc_func *f)
{
    return !tcc_func_is_definition(f) && !strcmp(tcc_func_kernel(f), r->kernel) && !tcc_func_is_step(f);
}

/* Whether a function can run; where it cannot, the reason. */
static tcc_status try(request *r, const tcc_func *f, reason *why)
{
    tcc_diag diag = {.fn = keep_first, .user = why};
    return tcc_interp_check(f, &r->interp, r->arena, &diag);
}

/* For all steps. */
static int64_t cost_of(const request *r, const tcc_func *f)
{
    tcc_diag silent = {0};
    const tcc_func *s = tcc_func_signature(f, r->arena, &silent);
    const tcc_device_attrs device = {{[TCC_DEVICE_sms] = tcc_target_of(f->ir)->sms}};
    return tcc_variant_cost(f, s, r->interp.dims, &device, r->arena);
}

static void refuse_all(request *r)
{
    tcc_error(&r->diag, TCC_ERR_NO_VARIANT, (tcc_loc){0, 0},
              "kernel '%s': no variant is valid for these extents and alignments", r->kernel);
    for (const tcc_func *f = r->mod->ir->first; f; f = f->next) {
        reason why = {""};
        if (belongs(r, f) && try(r, f, &why))
            tcc_note(&r->diag, f->loc, "%s: %s", f->name, why.text);
    }
}

/* The cheapest function that is valid, of equals the first, as a launch chooses; NULL, reported,
 * when none is. */
static const tcc_func *choose(request *r, tcc_status *status)
{
    const tcc_func *best = NULL;
    int64_t best_cost = 0;
    for (const tcc_func *f = r->mod->ir->first; f; f = f->next) {
        reason why = {""};
        if (!belongs(r, f))
            continue;
        *status = try(r, f, &why);
        if (*status && *status != TCC_ERR_NO_VARIANT) {
            tcc_error(&r->diag, *status, f->loc, "%s", why.text);
            return NULL;
        }
        int64_t cost = *status ? 0 : cost_of(r, f);
        if (*status || (best && cost >= best_cost))
            continue;
        best = f;
        best_cost = cost;
    }
    *status = best ? TCC_OK : TCC_ERR_NO_VARIANT;
    if (!best)
        refuse_all(r);
    return best;
}

static const tcc_func *find_function(request *r, tcc_status *status)
{
    if (!r->o->variant)
        return choose(r, status);
    const tcc_func *f = tcc_func_find(r->mod->ir, r->o->variant);
    if (!f || !belongs(r, f)) {
        *status = bad_argument(r, "the kernel has no variant", r->o->variant);
        return NULL;
    }
    reason why = {""};
    *status = try(r, f, &why);
    if (!*status)
        return f;
    tcc_error(&r->diag, *status, f->loc, "variant '%s' is not valid: %s", f->name, why.text);
    return NULL;
}

/* ---- running ------------------------------------------------------------------------------ */

static unsigned count_cpus(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (unsigned)n;
}

static tcc_interp_options interp_options(const tcc_interpret_options *o, const int64_t *dims)
{
    static const tcc_interp_order orders[] = {[TCC_INTERPRET_RANDOM] = TCC_ORDER_RANDOM,
                                              [TCC_INTERPRET_EARLY] = TCC_ORDER_EARLY,
                                              [TCC_INTERPRET_LATE] = TCC_ORDER_LATE,
                                              [TCC_INTERPRET_TIMED] = TCC_ORDER_TIMED};
    return (tcc_interp_options){.dims = dims,
                                .alignments = o->alignments,
                                .machine = true,
                                .order = o->timeline ? TCC_ORDER_TIMED : orders[o->order],
                                .seed = o->seed,
                                .threads = o->threads ? o->threads : count_cpus(),
                                .progress = o->progress,
                                .progress_user = o->progress_user};
}

static void keep_timeline(const tcc_timeline *t, void *user)
{
    request *r = user;
    tcc_timeline_print(&r->timeline, t, NULL);
    tcc_timeline_summarize(&r->summary, t);
}

/* Hands the timeline over. */
static tcc_status give_timeline(request *r)
{
    if (!r->timeline.len && !r->timeline.failed) {
        tcc_error(&r->diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0}, "the grid has no CTA %lld",
                  (long long)r->o->timeline_cta);
        return TCC_ERR_ARGUMENT;
    }
    if (r->timeline.failed || r->summary.failed)
        return TCC_ERR_MEMORY;
    *r->o->timeline = tcc_str_take(&r->timeline);
    if (r->o->summary)
        *r->o->summary = tcc_str_take(&r->summary);
    return TCC_OK;
}

static tcc_status run_function(request *r, const tcc_func *f)
{
    if (!r->o->timeline)
        return tcc_interp_run(f, &r->interp, r->args, r->arena, &r->diag);
    if (!tcc_func_is_entry(f)) {
        tcc_error(&r->diag, TCC_ERR_UNSUPPORTED, f->loc,
                  "a timeline needs target-level IR, and '%s' is not", f->name);
        return TCC_ERR_UNSUPPORTED;
    }
    r->interp.timeline.cta = r->o->timeline_cta;
    r->interp.timeline.only = r->o->timeline_only;
    r->interp.timeline.fn = keep_timeline;
    r->interp.timeline.user = r;
    tcc_status status = tcc_interp_run(f, &r->interp, r->args, r->arena, &r->diag);
    return status ? status : give_timeline(r);
}

static tcc_status run(request *r)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(r->arena, &oom);
    tcc_status status = find_kernel(r);
    if (status)
        return status;
    const tcc_func *f = find_function(r, &status);
    if (!f)
        return status;
    if (r->o->ran)
        *r->o->ran = f->name;
    return run_function(r, f);
}

/* Options as this version knows them: what a caller built against an older one lacks is zero. */
static tcc_interpret_options known_options(const tcc_interpret_options *given)
{
    tcc_interpret_options o = {0};
    size_t n = given ? given->struct_size : 0;
    if (given)
        memcpy(&o, given, n && n < sizeof o ? n : sizeof o);
    return o;
}

tcc_status tcc_interpret(tcc_context *ctx, const tcc_module *mod, const char *kernel,
                         const int64_t *dims, double *const *args,
                         const tcc_interpret_options *options)
{
    if (!mod)
        return TCC_ERR_ARGUMENT;
    const tcc_interpret_options o = known_options(options);
    request r = {.mod = mod,
                 .kernel = kernel,
                 .args = args,
                 .o = &o,
                 .diag = tcc_context_diag(ctx, mod->file, mod->source, mod->source_size)};
    if ((unsigned)o.order > TCC_INTERPRET_TIMED) {
        tcc_error(&r.diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0}, "no order has number %d",
                  (int)o.order);
        return TCC_ERR_ARGUMENT;
    }
    if (o.timeline)
        *o.timeline = NULL;
    if (o.summary)
        *o.summary = NULL;
    r.interp = interp_options(&o, dims);
    r.interp.interrupted = ctx ? &ctx->interrupted : NULL;
    r.arena = tcc_arena_create(NULL);
    if (!r.arena)
        return TCC_ERR_MEMORY;
    tcc_status status = run(&r);
    tcc_arena_destroy(r.arena);
    tcc_str_free(&r.timeline);
    tcc_str_free(&r.summary);
    return status;
}

/* pipeline: the list of passes from tensor-level IR to the target level, and their manager.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/signature.h"
#include "passes/families.h"
#include "passes/order.h"
#include "passes/passes.h"
#include "support/clock.h"

/* Decide, place, rewrite: choose-* only set attributes, which a schedule or a test may set too. */
#define TO_SCHEDULE                                                                                \
    "canonicalize,cse,dce,choose-strides,partition,choose-axes," /* in how many steps, what indices are in them */ \
    "choose-variants,join-steps,pad-operands,merge-indices,choose-schedule" /* which entries, how each is computed */
#define SCHEDULE_TO_MMA "split-sums,stream,tile,dce,choose-mma"
#define MMA_TO_TILE "choose-layout,choose-pipeline,estimate-cost"
#define TO_TILE TO_SCHEDULE "," SCHEDULE_TO_MMA "," MMA_TO_TILE
#define TO_ASYNC TO_TILE ",distribute-grid,pipeline-copies,pipeline-registers,specialize-warps," \
                         "drain-rings,assign-layouts,chunk-epilogue,exchange-tiles,draw-tiles,allocate-shared"

const char tcc_pipeline_to_schedule[] = TO_SCHEDULE;
const char tcc_pipeline_to_tile[] = TO_TILE;
const char tcc_pipeline_of_skeletons[] = SCHEDULE_TO_MMA, tcc_pipeline_of_their_cost[] = MMA_TO_TILE;
const char tcc_pipeline_to_async[] = TO_ASYNC;
#define FROM_TARGET ",roll-elements,expand-math,canonicalize,cse,licm,dce,roll-elements,reduce-strength,choose-ctas"
const char tcc_pipeline_to_nvvm[] = TO_ASYNC ",lower-to-nvvm" FROM_TARGET ",record-waits";
const char tcc_pipeline_to_amdgcn[] = TO_ASYNC ",lower-to-amdgcn" FROM_TARGET ",interleave";

const char *tcc_pipeline_from_tile(const tcc_target *target)
{
    return tcc_pipeline(target) + sizeof TO_TILE;
}

const char *tcc_pipeline(const tcc_target *target)
{
    const tcc_family_passes *passes = tcc_family_passes_of(target);
    return passes ? passes->pipeline : NULL;
}

#define PASS(id) &tcc_pass_##id,
static const tcc_pass *const passes[] = {TCC_PASSES(PASS)};
#undef PASS

const tcc_pass *tcc_pass_at(size_t i)
{
    return i < sizeof passes / sizeof *passes ? passes[i] : NULL;
}

const tcc_pass *tcc_pass_find(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
        if (!strncmp(passes[i]->name, name, n) && !passes[i]->name[n])
            return passes[i];
    return NULL;
}

static void print_after(const tcc_ir *ir, const tcc_pass *pass, bool changed,
                        const tcc_pass_options *o)
{
    const char *when = o->print_after;
    if (!when || !o->print ||
        !(!strcmp(when, "all") || !strcmp(when, pass->name) ||
          (!strcmp(when, "changed") && changed)))
        return;
    tcc_str text = {0};
    tcc_str_printf(&text, "// after %s%s\n", pass->name, changed ? "" : ": no change");
    tcc_ir_print(&text, ir, 0);
    o->print(tcc_str_text(&text), o->user);
    tcc_str_free(&text);
}

/* Runs one pass on every function, also on those that it adds. The first user error of each kernel
 * is reported, once for all its variants, which follow each other; the phase ends after all were
 * seen. */
static tcc_status run_one(tcc_ir *ir, const tcc_pass *pass, const tcc_pass_options *o,
                          unsigned brought, tcc_diag *diag)
{
    double start = tcc_now_ms();
    tcc_pass_ctx ctx = {.ir = ir, .diag = diag, .scratch = ir->arena};
    tcc_status status = TCC_OK;
    bool any = false;
    const char *failed = NULL;
    for (tcc_func *f = ir->first; f; f = f->next) {
        bool changed = false;
        if (tcc_func_is_definition(f) || (failed && !strcmp(failed, tcc_func_kernel(f))))
            continue;
        tcc_status s = tcc_order_check(&ctx, pass, f, brought);
        if (!s)
            s = pass->run(&ctx, f, &changed);
        if (!s && changed)
            s = tcc_order_check_left(&ctx, pass, f);
        if (s)
            failed = tcc_func_kernel(f);
        if (!status)
            status = s;
        any |= changed;
    }
    if (o->time)
        o->time(pass->name, tcc_now_ms() - start, o->user);
    print_after(ir, pass, any, o);
    if (!status && o->verify_each && !tcc_ir_verify(ir, TCC_LEVEL_ALL, diag)) {
        tcc_error(diag, TCC_ERR_INTERNAL, (tcc_loc){0, 0}, "pass %s left invalid IR behind",
                  pass->name);
        return TCC_ERR_INTERNAL;
    }
    return status || !o->check ? status : o->check(ir, pass->name, o->user);
}

tcc_status tcc_run_passes_on(tcc_pass_ctx *ctx, tcc_func *first, const tcc_func *end, const char *list)
{
    tcc_status status = TCC_OK;
    for (const char *p = list; *p && !status;) {
        size_t n = strcspn(p, ",");
        const tcc_pass *pass = tcc_pass_find(p, n);
        for (tcc_func *f = first; f != end && !status; f = f->next) {
            bool changed = false;
            status = pass->run(ctx, f, &changed);
        }
        p += n + (p[n] == ',');
    }
    return status;
}

tcc_status tcc_run_passes(tcc_ir *ir, const char *list, const tcc_pass_options *options,
                          tcc_diag *diag)
{
    const tcc_pass_options none = {0};
    unsigned brought = 0; /* states, that passes so far have found or left */
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, ",");
        const tcc_pass *pass = tcc_pass_find(p, n);
        if (!pass) {
            tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0}, "no pass is named '%.*s'", (int)n,
                      p);
            return TCC_ERR_ARGUMENT;
        }
        tcc_status status = run_one(ir, pass, options ? options : &none, brought, diag);
        if (status)
            return status;
        brought = (brought | pass->requires | pass->leaves) & ~pass->undoes;
        p += n + (p[n] == ',');
    }
    return TCC_OK;
}

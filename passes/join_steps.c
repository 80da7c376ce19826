/* join-steps: give each variant of a kernel in several steps a variant of each.
 *
 * Before:  func @f(…) {before = [f__m], assumes = [[align, X, 16]], …}   func @f__m(…) {assumes = [[align, Z, 16]], …}
 *          func @f__generic(…) {before = [f__m], assumes = [], …}        func @f__m__generic(…) {assumes = [], …}
 * After:   func @f(…) {before = [f__m], assumes = [[align, X, 16]], …}
 *          func @f__generic(…) {before = [f__m__generic], assumes = [], …}
 *
 * choose-variants made those of every step by themselves, the first with the most assumptions, the last with the
 * fewest. The i-th of a kernel runs the i-th of each step, or its last. If a step has more of them than the kernel, the
 * kernel gets as many. Each assumes what it did, which says how it is computed; a launch is checked for what all steps
 * require.
 *
 * Requires choose-variants. Preserves the bodies.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/assume.h"
#include "ir/signature.h"
#include "passes/passes.h"

enum { MOST_VARIANTS = 16 }; /* that choose-variants makes of one function */

/* The variants of a kernel or of a step. */
typedef struct family {
    size_t n;
    tcc_func *variants[MOST_VARIANTS];
} family;

static const char *part_of(const tcc_func *f)
{
    return tcc_attr_str(&f->attrs, "part", NULL);
}

/* The variants of what f is the first of. */
static family family_of(const tcc_func *f)
{
    family found = {0};
    const char *part = part_of(f);
    for (tcc_func *v = f->ir->first; v && found.n < MOST_VARIANTS; v = v->next) {
        const char *of = part_of(v);
        bool same = !part == !of && !strcmp(tcc_func_first(v), tcc_func_first(f));
        if (same && tcc_func_is_variant(v) && (part || !tcc_func_is_step(v)) &&
            !strcmp(tcc_func_kernel(v), tcc_func_kernel(f)))
            found.variants[found.n++] = v;
    }
    return found;
}

/* The i-th step before f where it is one of partition's; NULL: it is none. */
static tcc_func *step_of(const tcc_func *f, size_t i)
{
    tcc_func *step = tcc_func_find(f->ir, tcc_attr_list(&f->attrs, "before").list.items[i].s);
    return step && part_of(step) ? step : NULL;
}

static size_t step_count(const tcc_func *f)
{
    return tcc_attr_list(&f->attrs, "before").list.n;
}

/* Gives the at-th variant its steps. */
static void join(tcc_func *f, const family *steps, size_t at)
{
    size_t n = step_count(f);
    const char **names = TCC_NEW_ARRAY(f->ir->arena, const char *, n);
    for (size_t i = 0; i < n; i++) {
        names[i] = tcc_attr_list(&f->attrs, "before").list.items[i].s;
        if (!steps[i].n)
            continue;
        const tcc_func *step = steps[i].variants[at < steps[i].n ? at : steps[i].n - 1];
        names[i] = step->name;
    }
    tcc_attr_set_strs(f->ir, &f->attrs, "before", n, names);
}

/* Joins the variants of what f is the first of, its steps' first; whether it has such steps. */
static bool join_family(tcc_pass_ctx *ctx, tcc_func *f)
{
    size_t n = step_count(f), most = 0;
    family *steps = TCC_NEW_ARRAY(ctx->scratch, family, n);
    for (size_t i = 0; i < n; i++) {
        tcc_func *step = step_of(f, i);
        if (!step)
            continue;
        join_family(ctx, step);
        steps[i] = family_of(step);
        most = steps[i].n > most ? steps[i].n : most;
    }
    if (!most)
        return false;
    family own = family_of(f);
    for (; own.n < most; own.n++)
        own.variants[own.n] =
            tcc_func_clone(own.variants[own.n - 1], tcc_arena_printf(ctx->scratch, "%s__%zu", f->name, own.n));
    for (size_t i = 0; i < own.n; i++)
        join(own.variants[i], steps, i);
    return true;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    bool is_kernel = !tcc_func_is_step(f) && tcc_func_is_variant(f) && !strcmp(f->name, tcc_func_first(f));
    *changed |= is_kernel && join_family(ctx, f);
    return TCC_OK;
}

const tcc_pass tcc_pass_join_steps = {"join-steps", "give each variant of a kernel in several steps a variant of each",
                                      .run = run, .requires = TCC_STATE(variants)};

/* shrink: makes a program that fails smaller, as long as it fails.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/random/program.h"

/* Makes the i-th change of a kind; false past the last. One that changes nothing, or what nobody
 * sees, is not kept. */
typedef bool (*reduction)(program *p, int i);

static bool drop_schedule(program *p, int i)
{
    p->has_schedule = false;
    p->by_warps &= i == 0;
    return i < 2;
}

static bool drop_setting(program *p, int i)
{
    p->set &= ~(1u << i);
    return i < N_SETTINGS;
}

static bool lower_setting(program *p, int i)
{
    static const int least[N_SETTINGS] = {
        [TILE_M] = 64, [TILE_N] = 8, [TILE_K] = 16, [STAGES] = 1, [WARPGROUPS] = 1, [GROUP] = 1, [SPLIT] = 1, [CLUSTER] = 1};
    static const int step[N_SETTINGS] = {
        [TILE_M] = 64, [TILE_N] = 8, [TILE_K] = 16, [STAGES] = 1, [WARPGROUPS] = 1, [GROUP] = 1, [SPLIT] = 1, [CLUSTER] = 1};
    int s = i / 3;
    if (s >= N_SETTINGS)
        return false;
    int v = p->values[s];
    if (step[s] && v > least[s])
        v = i % 3 == 0 ? least[s] : i % 3 == 1 ? v / 2 / step[s] * step[s] : v - step[s];
    else if (!step[s])
        v = 0;
    if (step[s] && v < least[s])
        v = least[s];
    p->values[s] = v;
    return true;
}

static bool drop_output(program *p, int i)
{
    if (i >= p->n_outputs || p->n_outputs == 1)
        return false;
    for (int j = i; j + 1 < p->n_outputs; j++)
        p->outputs[j] = p->outputs[j + 1];
    p->n_outputs--;
    return true;
}

static bool keep_names(program *p, int i)
{
    if (i == 0)
        p->renamed = false;
    else
        p->named &= ~(1u << (i - 1));
    return i <= 2;
}

static bool drop_computation(program *p, int i)
{
    int f = i / 2;
    if (f >= 2)
        return false;
    if (i % 2 == 0)
        p->computed[f].is = false;
    else
        p->computed[f].from = p->product % 2 ? BF16 : F16;
    return true;
}

/* What is summed without a product is read as it is, one term of it. */
static bool drop_terms(program *p, int i)
{
    if (i || p->sums != OF_TERMS)
        return false;
    p->sums = NO_SUMS;
    p->factors[0].mask &= ~1u;
    p->more[0].mask &= ~1u;
    return true;
}

/* An index that is not in some factor can go as well as a batch; the sum cannot. */
static bool drop_index(program *p, int i)
{
    if (i + 1 >= p->n_indices)
        return false;
    p->live &= ~(1u << (i + 1));
    for (int j = 0; j < p->n_indices; j++)
        if (p->indices[j].same_as == i + 1)
            p->indices[j].same_as = j;
    return true;
}

static bool drop_index_of_operand(program *p, int i)
{
    int which = i / MAX_INDICES, scale = which - p->n_operands;
    if (scale >= p->n_scales)
        return false;
    (scale < 0 ? &p->operands[which] : &p->scales[scale])->mask &= ~(1u << i % MAX_INDICES);
    return true;
}

/* The computed factor that an expression is of; -1: none. */
static int factor_of(const program *p, int e)
{
    int found = -1;
    for (int f = 0; f < 2; f++)
        if (p->computed[f].is && e >= p->computed[f].begin &&
            (found < 0 || p->computed[f].begin > p->computed[found].begin))
            found = f;
    return found;
}

/* An expression becomes the sum, in a computed factor what that is computed from; one of its
 * operands; or 1. */
static bool simplify_expression(program *p, int i)
{
    enum { WAYS = MAX_CHILDREN + 2 };
    int e = i / WAYS, way = i % WAYS;
    if (e >= p->n_exprs)
        return false;
    expr *x = &p->exprs[e];
    int factor = factor_of(p, e);
    const expr end = {factor < 0 ? E_SUM : E_FACTOR, factor < 0 ? 0 : factor, 1, {NO_EXPR, NO_EXPR, NO_EXPR, NO_EXPR}};
    if (way == 0 && x->kind != E_NUMBER)
        *x = end;
    else if (way > 0 && way <= MAX_CHILDREN && x->child[way - 1] != NO_EXPR)
        *x = p->exprs[x->child[way - 1]];
    else if (way > MAX_CHILDREN && x->kind != end.kind) {
        *x = end;
        x->kind = E_NUMBER;
    }
    return true;
}

/* What a temporary stands for takes its place. */
static bool inline_temporary(program *p, int i)
{
    if (i >= p->n_exprs)
        return false;
    expr *x = &p->exprs[i];
    if (x->kind == E_TEMP)
        *x = p->exprs[p->temps[x->which].root];
    return true;
}

static bool unname_constant(program *p, int i)
{
    if (i >= p->n_exprs)
        return false;
    if (p->exprs[i].kind == E_NUMBER)
        p->exprs[i].which = 0;
    return true;
}

static bool shrink_dimension(program *p, int i)
{
    enum { WAYS = 5 };
    if (i / WAYS >= p->n_indices)
        return false;
    index_info *x = &p->indices[i / WAYS];
    int64_t smaller[WAYS] = {1, 8, x->size / 2, x->size / 16 * 8, x->size - 1};
    if (x->kind == CONSTANT)
        x->kind = NUMBER;
    if (x->kind == NUMBER && smaller[i % WAYS] >= 1 && smaller[i % WAYS] < x->size)
        x->size = smaller[i % WAYS];
    return true;
}

static void sort(const program *p, tensor *t)
{
    for (int i = 0; i < p->n_indices; i++)
        t->order[i] = (int8_t)(i + 1 < p->n_indices ? i + 1 : 0); /* the summed one is last */
}

static tensor *tensor_at(program *p, int i)
{
    int scale = i - 4 - p->n_outputs - p->n_operands;
    if (scale >= 0)
        return scale < p->n_scales ? &p->scales[scale] : NULL;
    return i < 2                                  ? &p->factors[i]
           : i < 2 + p->n_outputs                 ? &p->outputs[i - 2].t
           : i < 2 + p->n_outputs + p->n_operands ? &p->operands[i - 2 - p->n_outputs]
                                                  : &p->more[i - 2 - p->n_outputs - p->n_operands];
}

static bool sort_indices(program *p, int i)
{
    tensor *t = tensor_at(p, i);
    if (t)
        sort(p, t);
    return t;
}

/* f32 for all but factors, which become f16 and are added in f32. */
static bool common_type(program *p, int i)
{
    tensor *t = tensor_at(p, i + 1);
    if (!t)
        return false;
    if (i == 0)
        p->product = p->second = 0;
    else
        t->type = F32;
    return true;
}

static bool common_form(program *p, int i)
{
    if (i == 0)
        p->swapped = false;
    else if (i == 1)
        p->sum_inlined = false;
    else
        p->second = p->product;
    return i < 3;
}

static const reduction reductions[] = {
    drop_schedule,    drop_output,  drop_index,    drop_computation, keep_names, simplify_expression,
    inline_temporary, drop_setting, lower_setting, drop_index_of_operand, shrink_dimension,
    unname_constant,  sort_indices, common_type,   common_form,           drop_terms,
};
enum { N_REDUCTIONS = sizeof reductions / sizeof *reductions };

/* Whether the two print the same: then nothing is to be tried. */
static bool is_same(const program *a, const program *b)
{
    tcc_str x = {0}, y = {0};
    program_print(&x, a);
    program_print(&y, b);
    bool same = x.len == y.len;
    for (size_t i = 0; same && i < x.len; i++)
        same = x.data[i] == y.data[i];
    tcc_str_free(&x);
    tcc_str_free(&y);
    return same;
}

unsigned program_shrink(program *p, bool (*fails)(const program *p, void *user), void *user)
{
    unsigned tries = 0;
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (int r = 0; r < N_REDUCTIONS; r++) {
            program next = *p;
            for (int i = 0; reductions[r](&next, i); i++) {
                bool new = !is_same(&next, p);
                tries += new;
                if (new &&fails(&next, user)) {
                    *p = next;
                    smaller = true;
                }
                next = *p;
            }
        }
    }
    return tries;
}

/* manifest_plan: what the steps of a variant leave to each other, checked for all extents when a manifest is read. The
 * tensors of the workspace are within it and apart from each other; one is read only if an earlier step has written or
 * set it; inputs stay as they are, and every output is written.
 *
 * Where a tensor begins, and its bytes, are sums of terms that are not negative. Sums are compared term by term: one is
 * at least another one if it has all terms of that, and perhaps more.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>
#include <string.h>

#include "runtime/manifest_reader.h"

enum { MAX_PLACES = 1024 };

/* Part of an expression. */
typedef struct plan_term {
    const tcc_expr_step *steps;
    size_t n;
} plan_term;
typedef TCC_VEC(plan_term) plan_terms;

/* Terms in their order, and a number. */
typedef struct plan_sum {
    plan_terms terms;
    int64_t number;
    bool known; /* false: a term may be negative, or the number leaves 64 bits */
} plan_sum;

/* A tensor in the workspace. */
typedef struct plan_place {
    const char *where; /* that is first spoken of */
    plan_sum begin, end;
    bool written; /* by an earlier step */
    bool now;     /* by the one that is looked at */
} plan_place;
typedef TCC_VEC(plan_place) plan_places;

typedef struct plan_reader {
    tcc_manifest_reader *r;
    plan_sum workspace_end;
    plan_places places;
    bool *written; /* of each argument */
} plan_reader;

/* ---- sums ---------------------------------------------------------------------------------- */

static bool is_operation(tcc_expr_code code)
{
    return code >= TCC_EXPR_add;
}

/* Where the operand begins that ends before `end`. */
static size_t operand_start(const tcc_expr *e, size_t end)
{
    for (size_t wanted = 1; wanted;) {
        end--;
        if (is_operation(e->steps[end].code))
            wanted++;
        else
            wanted--;
    }
    return end;
}

/* Whether a term is 0 or more, whatever the extents: a difference may be less, the greater of it and 0 is not. */
static bool is_never_negative(const tcc_expr_step *steps, size_t n)
{
    bool least[TCC_EXPR_MAX_DEPTH] = {false}; /* of what is on the stack */
    size_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (!is_operation(steps[i].code)) {
            least[depth++] = steps[i].number >= 0;
            continue;
        }
        bool x = least[depth - 2], y = least[depth - 1];
        least[--depth - 1] = steps[i].code == TCC_EXPR_max ? x || y : steps[i].code != TCC_EXPR_sub && x && y;
    }
    return least[0];
}

/* A number, or a term. */
static void add_term(tcc_arena *arena, plan_sum *sum, tcc_expr_step *steps, size_t n)
{
    bool constant = true;
    for (size_t i = 0; i < n; i++)
        constant &= steps[i].code != TCC_EXPR_dim && steps[i].code != TCC_EXPR_device;
    sum->known &= is_never_negative(steps, n);
    int64_t number;
    if (constant && tcc_expr_value(&(tcc_expr){steps, n, 0}, NULL, NULL, &number))
        sum->known &= !__builtin_add_overflow(sum->number, number, &sum->number);
    else
        TCC_PUSH(arena, &sum->terms, ((plan_term){steps, n}));
}

static void add_terms(tcc_arena *arena, plan_sum *sum, const tcc_expr *e)
{
    TCC_VEC(size_t) ends = {0}; /* of operands that are still to be looked at */
    if (e->n)
        TCC_PUSH(arena, &ends, e->n);
    while (ends.len) {
        size_t end = ends.data[--ends.len];
        if (e->steps[end - 1].code == TCC_EXPR_add) {
            TCC_PUSH(arena, &ends, operand_start(e, end - 1));
            TCC_PUSH(arena, &ends, end - 1);
            continue;
        }
        size_t start = operand_start(e, end);
        add_term(arena, sum, e->steps + start, end - start);
    }
}

static int compare_terms(const void *a, const void *b)
{
    const plan_term *x = a, *y = b;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    for (size_t i = 0; i < x->n; i++) {
        if (x->steps[i].code != y->steps[i].code)
            return x->steps[i].code < y->steps[i].code ? -1 : 1;
        if (x->steps[i].number != y->steps[i].number)
            return x->steps[i].number < y->steps[i].number ? -1 : 1;
    }
    return 0;
}

/* Of one expression, or of two that are added. */
static plan_sum sum_of(tcc_arena *arena, const tcc_expr *a, const tcc_expr *b)
{
    plan_sum sum = {.known = true};
    add_terms(arena, &sum, a);
    if (b)
        add_terms(arena, &sum, b);
    if (sum.terms.len)
        qsort(sum.terms.data, sum.terms.len, sizeof *sum.terms.data, compare_terms);
    return sum;
}

/* a <= b, whatever the extents. */
static bool is_at_most(const plan_sum *a, const plan_sum *b)
{
    size_t i = 0;
    for (size_t j = 0; i < a->terms.len && j < b->terms.len; j++)
        i += !compare_terms(&a->terms.data[i], &b->terms.data[j]);
    return a->known && b->known && i == a->terms.len && a->number <= b->number;
}

static bool is_equal(const plan_sum *a, const plan_sum *b)
{
    return is_at_most(a, b) && is_at_most(b, a);
}

/* ---- steps --------------------------------------------------------------------------------- */

/* The place with these bytes; NULL, reported: they may be others' or none. */
static plan_place *find_place(plan_reader *p, const char *where, const tcc_expr *offset, const tcc_expr *bytes)
{
    plan_place new = {.where = where, .begin = sum_of(p->r->arena, offset, NULL)};
    new.end = sum_of(p->r->arena, offset, bytes);
    for (size_t i = 0; i < p->places.len; i++) {
        plan_place *old = &p->places.data[i];
        if (is_equal(&old->begin, &new.begin) && is_equal(&old->end, &new.end))
            return old;
        if (is_at_most(&old->end, &new.begin) || is_at_most(&new.end, &old->begin))
            continue;
        TCC_BAD_MANIFEST(p->r, where, "may overlap in the workspace with %s", old->where);
        return NULL;
    }
    if (!is_at_most(&new.end, &p->workspace_end) || p->places.len == MAX_PLACES) {
        tcc_bad_manifest(p->r, where, p->places.len == MAX_PLACES ? "too many tensors in the workspace"
                                                                  : "may end behind 'workspace_bytes'");
        return NULL;
    }
    TCC_PUSH(p->r->arena, &p->places, new);
    return &p->places.data[p->places.len - 1];
}

static bool check_access(plan_reader *p, const char *where, const tcc_param *param, const tcc_expr *offset,
                         const tcc_expr *bytes)
{
    if (!bytes->n)
        return tcc_bad_manifest(p->r, tcc_place_in(p->r, where, "bytes"), "missing");
    plan_place *place = find_place(p, where, offset, bytes);
    if (!place)
        return false;
    place->now |= param->writes;
    return !param->reads || place->written ||
           tcc_bad_manifest(p->r, where, "reads what no earlier step has written to the workspace");
}

static bool check_argument(plan_reader *p, const char *where, const tcc_param *param, unsigned arg)
{
    const tcc_arg_info *info = &p->r->kernel->args[arg];
    if (param->writes && info->role == TCC_ARG_IN)
        return TCC_BAD_MANIFEST(p->r, where, "writes '%s', which is an input", info->name);
    if (param->reads && info->role == TCC_ARG_OUT && !p->written[arg])
        return TCC_BAD_MANIFEST(p->r, where, "reads '%s', which no earlier step has written", info->name);
    return true;
}

static bool check_param(plan_reader *p, const char *where, const tcc_param *param)
{
    const tcc_tma_recipe *map = param->map;
    switch (param->kind) {
    case TCC_PARAM_DIM:
    case TCC_PARAM_SCALAR: return true;
    default: break;
    }
    if (!param->says_access)
        return tcc_bad_manifest(p->r, tcc_place_in(p->r, where, "access"), "missing, and said of other parameters");
    if (param->kind == TCC_PARAM_POINTER)
        return check_argument(p, where, param, param->arg);
    if (param->kind == TCC_PARAM_WORKSPACE)
        return check_access(p, where, param, &param->offset, &param->bytes);
    return map->arg < 0 ? check_access(p, where, param, &map->offset, &map->bytes)
                        : check_argument(p, where, param, (unsigned)map->arg);
}

/* What a step writes is there for the next one. */
static void end_step(plan_reader *p, const tcc_step *s)
{
    for (size_t i = 0; i < p->places.len; i++)
        p->places.data[i].written |= p->places.data[i].now;
    if (s->kind == TCC_STEP_MEMSET && s->fill.arg >= 0)
        p->written[s->fill.arg] = true;
    for (size_t i = 0; i < s->entry.n_params; i++) {
        const tcc_param *param = &s->entry.params[i];
        int arg = param->kind == TCC_PARAM_TENSOR_MAP ? param->map->arg : (int)param->arg;
        if (param->writes && param->kind != TCC_PARAM_WORKSPACE && arg >= 0)
            p->written[arg] = true;
    }
}

static bool check_step(plan_reader *p, const char *where, const tcc_step *s)
{
    bool ok = true;
    if (s->kind == TCC_STEP_MEMSET && s->fill.arg < 0) {
        plan_place *place = find_place(p, tcc_place_in(p->r, where, "memset"), &s->fill.offset, &s->fill.bytes);
        ok = place;
        if (ok)
            place->now = true;
    }
    const char *params = tcc_place_in(p->r, where, "params");
    for (size_t i = 0; i < s->entry.n_params && ok; i++)
        ok = check_param(p, tcc_place_at(p->r, params, i), &s->entry.params[i]);
    end_step(p, s);
    return ok;
}

/* ---- plans --------------------------------------------------------------------------------- */

/* Manifests that were written before parameters said how they are accessed do so of none. */
static bool says_accesses(const tcc_variant *v)
{
    bool any = false;
    for (size_t s = 0; s < v->n_steps; s++)
        for (size_t i = 0; i < v->steps[s].entry.n_params; i++)
            any |= v->steps[s].entry.params[i].says_access;
    return any;
}

bool tcc_check_plan(tcc_manifest_reader *r, const char *where, const tcc_variant *v)
{
    const tcc_kernel_desc *k = r->kernel;
    if (!says_accesses(v))
        return true;
    plan_reader p = {.r = r, .workspace_end = sum_of(r->arena, &v->workspace_bytes, NULL)};
    p.written = TCC_NEW_ARRAY(r->arena, bool, k->n_args);
    const char *steps = tcc_place_in(r, where, "steps");
    for (size_t s = 0; s < v->n_steps; s++)
        if (!check_step(&p, tcc_place_at(r, steps, s), &v->steps[s]))
            return false;
    for (size_t i = 0; i < k->n_args; i++)
        if (!p.written[i] && k->args[i].role == TCC_ARG_OUT)
            return TCC_BAD_MANIFEST(r, steps, "none writes '%s'", k->args[i].name);
    return true;
}

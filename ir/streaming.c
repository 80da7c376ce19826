/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/streaming.h"

#include <math.h>

#include "ir/access.h"
#include "ir/reduction.h"
#include "ir/streaming_law.h"

typedef tcc_law law;
enum { BEFORE = TCC_LAW_BEFORE, AFTER = TCC_LAW_AFTER };

/* How a value changes when terms come: at once, or after reductions that it is computed of. */
static char first, later;

static bool is_reduction(const tcc_value *v)
{
    return v->def && v->def->code == TCC_OP_tensor_reduce;
}

/* ---- which reductions ------------------------------------------------------------------------ */

const char *tcc_law_index(const tcc_op *reduce)
{
    tcc_attr over = tcc_attr_list(&reduce->attrs, "over");
    bool plain = over.list.n == 1 && !tcc_attr_find(&reduce->attrs, "parts") &&
                 !tcc_reduction_is_place(tcc_reduction_of(reduce));
    return plain ? over.list.items[0].s : NULL;
}

bool tcc_law_has_index(const tcc_type *field, const char *index)
{
    bool has = false;
    for (unsigned d = 0; d < field->rank; d++)
        has |= field->dims[d].name == index;
    return has;
}

/* How an op's result changes when terms over an index come, where it `needs` what does; NULL: not at all. So does a
 * reduction over another index that each term has for itself, as an inner product is. */
static void *change_of(const tcc_op *op, const char *index, bool needs)
{
    bool is_reduction = op->code == TCC_OP_tensor_reduce;
    bool is_of_term = is_reduction && tcc_law_index(op) != index && tcc_law_has_index(op->results[0].type, index);
    return needs ? &later : is_reduction && !is_of_term ? &first : NULL;
}

void tcc_law_mark(law *l, const char *index, const tcc_op *from, const tcc_op *end)
{
    for (const tcc_op *op = from; op != end; op = op->next) {
        bool needs = false;
        for (unsigned i = 0; i < op->n_operands; i++)
            needs |= tcc_map_get(&l->moves, op->operands[i]) != NULL;
        void *change = op->n_results ? change_of(op, index, needs) : NULL;
        if (change)
            *tcc_map_at(&l->moves, &op->results[0]) = change;
    }
}

/* Marks what reductions change, of all before `sum`; whether each that the terms of `sum` need is over its index, and
 * needs none itself. */
static const char *find_moving(law *l, const tcc_op *sum)
{
    const char *index = tcc_law_index(sum), *wrong = NULL;
    bool any = false;
    tcc_law_mark(l, index, sum->block->first, sum);
    /* Users come before what they use. */
    tcc_map used = TCC_MAP(l->arena);
    for (const tcc_op *op = sum; op && !wrong; op = op->prev) {
        bool is_used = op == sum || (op->n_results && tcc_map_get(&used, &op->results[0]));
        for (unsigned i = 0; is_used && i < op->n_operands; i++)
            *tcc_map_at(&used, op->operands[i]) = (void *)op;
        const void *change = op != sum && op->n_results ? tcc_map_get(&l->moves, &op->results[0]) : NULL;
        if (!is_used || op->code != TCC_OP_tensor_reduce || !change)
            continue;
        any = true;
        if (tcc_law_index(op) != index)
            wrong = "the terms of a need a reduction over another index";
        else if (change != &first)
            wrong = "the terms of a need a reduction that needs another one itself";
    }
    return wrong ? wrong : any ? NULL : "the terms of a need no reduction";
}

/* ---- normal forms ----------------------------------------------------------------------------- */

/* What is not a sum, product, quotient or exponential: a function of what it is computed of. */
static const tcc_normal_form *form_of_function(law *l, const tcc_op *op, int when)
{
    static const char functions[TCC_OP_COUNT];
    const tcc_normal_form *args[3];
    bool plain = op->n_operands <= 3 && op->n_results == 1;
    for (unsigned i = 0; plain && i < op->n_operands; i++)
        args[i] = tcc_law_form(l, op->operands[i], when);
    bool is_known = plain && (op->attrs.len == 0 || op->code == TCC_OP_arith_cast) &&
                    tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    if (!is_known)
        return tcc_nf_atom(&l->all, &op->results[0], when, false, 0, NULL);
    return tcc_nf_atom(&l->all, &functions[op->code], (int)op->results[0].type->elem, false, op->n_operands, args);
}

typedef const tcc_normal_form *forms(law *l, const tcc_value *v, int when);

/* Where c is 1, x, else y, whose forms `of` finds; NULL where c changes. */
static const tcc_normal_form *form_of_select(law *l, const tcc_op *op, int when, forms *of)
{
    tcc_normal_forms *all = &l->all;
    if (tcc_map_get(&l->moves, op->operands[0]))
        return NULL;
    const tcc_normal_form *c = tcc_nf_atom(all, op->operands[0], 0, true, 0, NULL);
    const tcc_normal_form *x = of(l, op->operands[1], when), *y = of(l, op->operands[2], when);
    return tcc_nf_add(all, y, 1, tcc_nf_mul(all, c, tcc_nf_add(all, x, -1, y)));
}

static bool is_float(const tcc_value *v)
{
    return tcc_scalar_classify(v->type->elem) == TCC_CLASS_FLOAT;
}

static const tcc_normal_form *form_of_op(law *l, const tcc_op *op, int when)
{
    tcc_normal_forms *all = &l->all;
    if (!is_float(&op->results[0]))
        return form_of_function(l, op, when);
    const tcc_normal_form *a[3] = {0};
    for (unsigned i = 0; i < op->n_operands && i < 3; i++)
        a[i] = is_float(op->operands[i]) ? tcc_law_form(l, op->operands[i], when) : NULL;
    switch (op->code) {
    case TCC_OP_arith_add: return tcc_nf_add(all, a[0], 1, a[1]);
    case TCC_OP_arith_sub: return tcc_nf_add(all, a[0], -1, a[1]);
    case TCC_OP_arith_neg: return tcc_nf_add(all, tcc_nf_number(all, 0), -1, a[0]);
    case TCC_OP_arith_mul: return tcc_nf_mul(all, a[0], a[1]);
    case TCC_OP_arith_div: return tcc_nf_div(all, a[0], a[1]);
    case TCC_OP_arith_fma: return tcc_nf_add(all, a[2], 1, tcc_nf_mul(all, a[0], a[1]));
    case TCC_OP_arith_select: {
        const tcc_normal_form *form = form_of_select(l, op, when, tcc_law_form);
        return form ? form : form_of_function(l, op, when);
    }
    case TCC_OP_math_exp: return tcc_nf_exp(all, a[0]);
    case TCC_OP_math_exp2: return tcc_nf_exp(all, tcc_nf_mul(all, tcc_nf_number(all, log(2)), a[0]));
    case TCC_OP_arith_cast: /* one that rounds is another function */
        return a[0] && tcc_scalar_widens(op->operands[0]->type->elem, op->results[0].type->elem)
                   ? a[0]
                   : form_of_function(l, op, when);
    default: return form_of_function(l, op, when);
    }
}

const tcc_normal_form *tcc_law_form(law *l, const tcc_value *v, int when)
{
    void **known = tcc_map_at(&l->forms[when], v);
    const tcc_op *op = v->def;
    double number;
    if (*known)
        return *known;
    const tcc_normal_form *form;
    if (op && op->code == TCC_OP_tensor_before)
        form = tcc_nf_atom(&l->all, op->operands[0], BEFORE, false, 0, NULL);
    else if (tcc_map_get(&l->moves, v) && is_reduction(v))
        form = tcc_nf_atom(&l->all, v, when, false, 0, NULL);
    else if (tcc_value_is_float(v, &number))
        form = tcc_nf_number(&l->all, number);
    else if (op && tcc_map_get(&l->moves, v))
        form = form_of_op(l, op, when);
    else
        form = tcc_nf_atom(&l->all, v, 0, false, 0, NULL);
    *tcc_map_at(&l->forms[when], v) = (void *)form;
    return form;
}

/* Whether a conversion changes numbers by no more than a part of them: to 16 bits or more. */
static bool rounds_by_a_part(const tcc_op *cast)
{
    tcc_scalar elem = cast->results[0].type->elem;
    return is_float(cast->operands[0]) && is_float(&cast->results[0]) && tcc_scalar_bits(elem) >= 16;
}

const tcc_normal_form *tcc_law_form_of_terms(law *l, const tcc_value *v, int when)
{
    static const char rounding;
    tcc_normal_forms *all = &l->all;
    const tcc_op *op = v->def;
    const tcc_normal_form *form = NULL;
    if (!op || !tcc_map_get(&l->moves, v) || is_reduction(v) || !is_float(v))
        return tcc_law_form(l, v, when);
    switch (op->code) {
    case TCC_OP_arith_mul:
        return tcc_nf_mul(all, tcc_law_form_of_terms(l, op->operands[0], when),
                          tcc_law_form_of_terms(l, op->operands[1], when));
    case TCC_OP_arith_div:
        return tcc_nf_div(all, tcc_law_form_of_terms(l, op->operands[0], when), tcc_law_form(l, op->operands[1], when));
    case TCC_OP_arith_neg:
        return tcc_nf_add(all, tcc_nf_number(all, 0), -1, tcc_law_form_of_terms(l, op->operands[0], when));
    case TCC_OP_arith_select: form = form_of_select(l, op, when, tcc_law_form_of_terms); break;
    case TCC_OP_arith_cast:
        if (!rounds_by_a_part(op))
            break;
        form = tcc_law_form_of_terms(l, op->operands[0], when);
        if (!tcc_scalar_widens(op->operands[0]->type->elem, op->results[0].type->elem))
            form = tcc_nf_mul(all, form, tcc_nf_atom(all, &rounding, (int)v->type->elem, false, 0, NULL));
        break;
    default: break;
    }
    return form ? form : tcc_law_form(l, v, when);
}

/* ---- the law ---------------------------------------------------------------------------------- */

/* What A is computed of changes where what it is computed of does, too. */
static void mark_factor(law *l, const tcc_op *sum, const tcc_op *rescale)
{
    for (const tcc_op *op = sum; op != rescale; op = op->next) {
        bool moves = op->code == TCC_OP_tensor_before;
        for (unsigned i = 0; i < op->n_operands && op != sum; i++)
            moves |= tcc_map_get(&l->moves, op->operands[i]) != NULL;
        if (moves && op->n_results)
            *tcc_map_at(&l->moves, &op->results[0]) = &later;
    }
}

const char *tcc_streaming_wrong(const tcc_op *rescale, tcc_arena *arena)
{
    const tcc_op *sum = rescale->operands[0]->def;
    law l = {.arena = arena, .all = {.arena = arena}, .moves = TCC_MAP(arena)};
    l.forms[BEFORE] = l.forms[AFTER] = TCC_MAP(arena);
    if (!sum || sum->code != TCC_OP_tensor_reduce || tcc_reduction_of(sum) != TCC_REDUCTION_SUM || !tcc_law_index(sum))
        return "a is not a sum over one index";
    const char *wrong = find_moving(&l, sum);
    if (wrong)
        return wrong;
    if (sum->n_operands > 1 && tcc_map_get(&l.moves, sum->operands[1]))
        return "which terms a has depends on a reduction";
    mark_factor(&l, sum, rescale);
    const tcc_normal_form *before = tcc_law_form_of_terms(&l, sum->operands[0], BEFORE),
                          *after = tcc_law_form_of_terms(&l, sum->operands[0], AFTER);
    const tcc_normal_form *factor = tcc_law_form(&l, rescale->operands[1], AFTER);
    if (l.all.too_long)
        return "the terms of a are too long to be compared";
    return tcc_nf_equal(&l.all, tcc_nf_mul(&l.all, factor, before), after)
               ? NULL
               : "the terms of a are not those before the reductions changed, times by";
}

/* ---- rounding --------------------------------------------------------------------------------- */

/* Whether op is computed of a reduction over as many terms as the index has, but not for each of its values. */
static bool needs_reduction(const tcc_op *op, const char *index, tcc_arena *arena)
{
    const tcc_func *f = op->block->func;
    tcc_dim extent = tcc_index_extent(f, index);
    tcc_map used = TCC_MAP(arena);
    bool needs = false;
    for (const tcc_op *in = op; in && !needs; in = in->prev) {
        if (in != op && !(in->n_results && tcc_map_get(&used, &in->results[0])))
            continue;
        for (unsigned i = 0; i < in->n_operands; i++)
            *tcc_map_at(&used, in->operands[i]) = (void *)in;
        tcc_attr over = tcc_attr_list(&in->attrs, "over");
        for (size_t i = 0; in->code == TCC_OP_tensor_reduce && i < over.list.n; i++)
            needs |= tcc_dim_equal(tcc_index_extent(f, over.list.items[i].s), extent) &&
                     !tcc_law_has_index(in->results[0].type, index);
    }
    return needs;
}

/* Whether what is computed of op for each value of an index is summed over it. */
static bool is_summed(const tcc_op *op, const char *index, tcc_arena *arena)
{
    tcc_map of = TCC_MAP(arena);
    *tcc_map_at(&of, &op->results[0]) = (void *)op;
    for (const tcc_op *user = op->next; user; user = user->next) {
        bool uses = false;
        for (unsigned i = 0; i < user->n_operands; i++)
            uses |= tcc_map_get(&of, user->operands[i]) != NULL;
        if (!uses || !user->n_results)
            continue;
        if (user->code == TCC_OP_tensor_reduce && !tcc_law_has_index(user->results[0].type, index))
            return true;
        *tcc_map_at(&of, &user->results[0]) = (void *)user;
    }
    return false;
}

bool tcc_streaming_rounds(const tcc_op *op, tcc_arena *arena)
{
    const tcc_type *r = op->n_results ? op->results[0].type : NULL;
    bool rounds = op->code == TCC_OP_arith_cast && r->kind == TCC_KIND_field && rounds_by_a_part(op) &&
                  !tcc_scalar_widens(op->operands[0]->type->elem, r->elem) && tcc_scalar_bits(r->elem) == 16;
    bool any = false;
    for (unsigned d = 0; rounds && d < r->rank && !any; d++)
        any = is_summed(op, r->dims[d].name, arena) && needs_reduction(op, r->dims[d].name, arena);
    return any;
}

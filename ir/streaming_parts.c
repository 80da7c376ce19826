/* streaming_parts: the law of streaming for parts of the terms (ir/streaming.h).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/access.h"
#include "ir/index_dim.h"
#include "ir/index_value.h"
#include "ir/reduction.h"
#include "ir/streaming.h"
#include "ir/streaming_law.h"

enum { BEFORE = TCC_LAW_BEFORE, AFTER = TCC_LAW_AFTER };

/* What `merge` makes of what `parts` stores of each part of the terms over an index. */
typedef struct merging {
    tcc_law l; /* of both functions: values of `merge` have forms of those of `parts` AFTER all terms came */
    const tcc_func *merge, *parts;
    const char *part, *along; /* indices of parts, and of terms */
    tcc_map same;             /* values of `merge`: those of `parts` that are the same */
} merging;

/* The reduction that `parts` writes to the tensor that a function's op accesses; NULL: none. */
static const tcc_op *stored_by_parts(const merging *m, const tcc_op *access, const tcc_op **write)
{
    const tcc_value *tensor = tcc_accessed_tensor(access), *own = NULL;
    for (size_t i = 0; tensor && i < m->parts->body->n_args; i++)
        own = tcc_index_same(m->parts->body->args[i]->name, tensor->name) ? m->parts->body->args[i] : own;
    const tcc_op *op = own ? m->parts->body->first : NULL;
    while (op && !(op->code == TCC_OP_tensor_write && tcc_accessed_tensor(op) == own))
        op = op->next;
    const tcc_op *of = op ? op->operands[0]->def : NULL;
    of = of && of->code == TCC_OP_tensor_rescale ? of->operands[0]->def : of;
    *write = op;
    return of && of->code == TCC_OP_tensor_reduce ? of : NULL;
}

/* Puts what a condition is the conjunction of, and itself, into a map; the only comparison of what is the same for all
 * parts with the number of a part. NULL: there is none, or something else depends on the part. */
static const tcc_op *find_assignment(const merging *m, const tcc_value *condition, tcc_map *of)
{
    const tcc_op *found = NULL;
    bool is_right = true;
    if (condition->def)
        *tcc_map_at(of, condition->def) = condition->def;
    for (const tcc_op *op = condition->def; op && is_right; op = op->prev) {
        if (!tcc_map_get(of, op) || !tcc_law_has_index(op->results[0].type, m->part))
            continue;
        if (op->code == TCC_OP_arith_and) {
            for (int i = 0; i < 2; i++)
                if (op->operands[i]->def)
                    *tcc_map_at(of, op->operands[i]->def) = op->operands[i]->def;
            continue;
        }
        is_right = !found && op->code == TCC_OP_arith_cmp && tcc_attr_is(&op->attrs, "pred", "eq");
        found = op;
    }
    return is_right ? found : NULL;
}

/* x, or less: where a quotient by n, times a multiple of n, is as small as it can be. */
static const tcc_index_expr *at_most(tcc_ir *ir, const tcc_index_expr *x)
{
    const tcc_index_expr *least = x;
    for (size_t i = 0; x && i < x->n && least; i++) {
        const tcc_index_term *t = &x->terms[i];
        int64_t by;
        if (t->n != 1 || t->factors[0].kind != TCC_FACTOR_QUOTIENT || !tcc_index_is_number(t->factors[0].by, &by) ||
            t->number < 0 || t->number % by)
            continue;
        const tcc_index_expr *quotient = tcc_index_div(ir, t->factors[0].of, t->factors[0].by);
        least = tcc_index_sub(ir, least, tcc_index_mul(ir, tcc_index_number(ir, t->number), quotient));
        const tcc_index_expr *of = tcc_index_sub(ir, t->factors[0].of, tcc_index_number(ir, by - 1));
        least = tcc_index_add(ir, least, tcc_index_mul(ir, tcc_index_number(ir, t->number / by), of));
    }
    return least;
}

/* Whether each term is in one part: part is j / by, and by is so large that all these are numbers of parts. */
static bool has_each_term_once(const merging *m, const tcc_op *assignment)
{
    tcc_ir *ir = m->parts->ir;
    const tcc_index_expr *x = tcc_index_of_value(assignment->operands[0]);
    const tcc_index_expr *y = tcc_index_of_value(assignment->operands[1]);
    if (!x || !y)
        return false;
    bool swapped = tcc_index_plain(x) == m->part;
    const tcc_index_expr *part = swapped ? x : y, *of = swapped ? y : x;
    const tcc_index_factor *q = of->n == 1 && of->terms[0].n == 1 ? &of->terms[0].factors[0] : NULL;
    tcc_dim parts = tcc_index_extent(m->parts, m->part);
    const tcc_index_expr *terms = tcc_index_of_dim(ir, tcc_index_extent(m->parts, m->along));
    if (tcc_index_plain(part) != m->part || !q || of->terms[0].number != 1 || q->kind != TCC_FACTOR_QUOTIENT ||
        tcc_index_plain(q->of) != m->along || parts.name || !terms)
        return false;
    const tcc_index_expr *all = tcc_index_mul(ir, tcc_index_number(ir, parts.size), q->by);
    const tcc_index_expr *more = at_most(ir, tcc_index_sub(ir, all, terms));
    int64_t number;
    return more && tcc_index_is_number(more, &number) && number >= 0;
}

/* Whether parts are of the same terms, but for which: one condition of all reductions says so. */
static const char *check_parts(merging *m)
{
    tcc_map conditions = TCC_MAP(m->l.arena);
    const tcc_value *condition = NULL;
    for (const tcc_op *op = m->parts->body->first; op; op = op->next) {
        bool is = op->code == TCC_OP_tensor_reduce && tcc_law_index(op) == m->along;
        if (is && (op->n_operands < 2 || (condition && op->operands[1] != condition)))
            return "reductions over the terms of a part have different conditions";
        condition = is ? op->operands[1] : condition;
    }
    if (!condition || tcc_map_get(&m->l.moves, condition))
        return "which terms a part has is not known";
    const tcc_op *assignment = find_assignment(m, condition, &conditions);
    if (!assignment || !has_each_term_once(m, assignment))
        return "not each term is known to be in one part";
    for (const tcc_op *op = m->parts->body->first; op; op = op->next) {
        bool depends = op->n_results && op->results[0].type->kind == TCC_KIND_field &&
                       tcc_law_has_index(op->results[0].type, m->part);
        if (depends && !tcc_map_get(&m->l.moves, &op->results[0]) && !tcc_map_get(&conditions, op) &&
            op->code != TCC_OP_tensor_index)
            return "terms depend on the part";
    }
    return NULL;
}

/* ---- what is made of parts ----------------------------------------------------------------------- */

static const tcc_value *counterpart(const merging *m, const tcc_value *v)
{
    for (size_t i = 0; !v->def && i < m->parts->body->n_args; i++)
        if (tcc_index_same(m->parts->body->args[i]->name, v->name))
            return m->parts->body->args[i];
    return v->def ? tcc_map_get(&m->same, v) : NULL;
}

static bool is_same_op(const merging *m, const tcc_op *op, const tcc_op *of)
{
    bool same = op->code == of->code && op->n_operands == of->n_operands && op->n_results == 1 && of->n_results == 1 &&
                op->results[0].type == of->results[0].type && op->attrs.len == of->attrs.len;
    for (size_t i = 0; i < op->attrs.len && same; i++) {
        const tcc_named_attr *a = tcc_attr_find(&of->attrs, op->attrs.data[i].name);
        same = a && tcc_attr_equal(&a->value, &op->attrs.data[i].value);
    }
    for (unsigned i = 0; i < op->n_operands && same; i++)
        same = counterpart(m, op->operands[i]) == of->operands[i];
    return same;
}

/* What has nothing to do with parts is an unknown: the one that it is there, too. */
static void add_unknown(merging *m, const tcc_op *op)
{
    const tcc_op *of = m->parts->body->first;
    while (of && !is_same_op(m, op, of))
        of = of->next;
    if (!of)
        return;
    *tcc_map_at(&m->same, &op->results[0]) = (void *)&of->results[0];
    *tcc_map_at(&m->l.forms[AFTER], &op->results[0]) = (void *)tcc_law_form(&m->l, &of->results[0], AFTER);
}

/* What an extremum of the terms is of a part, or of all. */
static const tcc_normal_form *extremum_form(merging *m, const tcc_op *reduce, int when)
{
    return tcc_nf_atom(&m->l.all, &reduce->results[0], when, false, 0, NULL);
}

/* The reduction that v is, as a part has it (BEFORE), or all (AFTER); NULL: v is not such an extremum. */
static const tcc_op *extremum_of(merging *m, const tcc_value *v, int when)
{
    const tcc_normal_form *form = tcc_map_get(&m->l.forms[AFTER], v);
    for (const tcc_op *op = m->parts->body->first; op && form; op = op->next)
        if (op->code == TCC_OP_tensor_reduce && tcc_reduction_of(op) != TCC_REDUCTION_SUM &&
            tcc_law_index(op) == m->along && tcc_nf_equal(&m->l.all, form, extremum_form(m, op, when)))
            return op;
    return NULL;
}

/* The extremum that a condition says is what no terms give. */
static const tcc_op *none_of(merging *m, const tcc_value *condition, int when)
{
    const tcc_op *op = condition->def;
    bool is = op && op->code == TCC_OP_arith_cmp && tcc_attr_is(&op->attrs, "pred", "eq");
    const tcc_op *of = is ? extremum_of(m, op->operands[0], when) : NULL;
    double number;
    return of && tcc_value_is_float(op->operands[1], &number) &&
                   number == tcc_reduction_start(tcc_reduction_of(of), of->results[0].type->elem).f
               ? of
               : NULL;
}

static bool is_zero(const tcc_value *v)
{
    double number;
    return tcc_value_is_float(v, &number) && number == 0;
}

/* Where an op chooses 0 for a part that has no terms, or a number where none has: what it chooses else. A sum of none
 * is 0, whatever it is multiplied by. */
static const tcc_value *guarded(merging *m, const tcc_op *op)
{
    const tcc_op *of = op->code == TCC_OP_arith_select ? none_of(m, op->operands[0], BEFORE) : NULL;
    const tcc_op *other = of ? op->operands[1]->def : NULL;
    double number;
    bool is_right = other && other->code == TCC_OP_arith_select && none_of(m, other->operands[0], AFTER) == of &&
                    tcc_value_is_float(other->operands[1], &number) && is_zero(other->operands[2]);
    return of && (is_zero(op->operands[1]) || is_right) ? op->operands[2] : NULL;
}

/* The one sum whose parts v is computed of; NULL: there are none, or several. */
static const tcc_op *sum_in(const merging *m, const tcc_value *v)
{
    tcc_map used = TCC_MAP(m->l.arena);
    const tcc_op *sum = NULL, *write;
    *tcc_map_at(&used, v) = (void *)v;
    for (const tcc_op *op = v->def; op; op = op->prev) {
        if (!op->n_results || !tcc_map_get(&used, &op->results[0]) || op->code == TCC_OP_tensor_reduce)
            continue;
        for (unsigned i = 0; i < op->n_operands; i++)
            *tcc_map_at(&used, op->operands[i]) = (void *)op;
        const tcc_op *of = stored_by_parts(m, op, &write);
        if (!of || tcc_reduction_of(of) != TCC_REDUCTION_SUM)
            continue;
        if (sum && sum != of)
            return NULL;
        sum = of;
    }
    return sum;
}

static const char *check_merged(merging *m, const tcc_op *reduce)
{
    tcc_reduction kind = tcc_reduction_of(reduce);
    const tcc_value *term = reduce->operands[0];
    if (tcc_law_index(reduce) != m->part || reduce->n_operands > 1)
        return "a reduction of parts leaves some out";
    const tcc_op *of = kind == TCC_REDUCTION_SUM ? sum_in(m, term) : extremum_of(m, term, BEFORE);
    if (!of || tcc_reduction_of(of) != kind)
        return "what is reduced over parts is not what reductions gave of them";
    const tcc_normal_form *form = tcc_law_form(&m->l, term, AFTER);
    const tcc_normal_form *all = tcc_law_form_of_terms(&m->l, of->operands[0], AFTER);
    if (kind == TCC_REDUCTION_SUM && !tcc_nf_equal(&m->l.all, form, all))
        return "a part's sum is not multiplied by what makes its terms those of all parts' reductions";
    *tcc_map_at(&m->l.forms[AFTER], &reduce->results[0]) = (void *)extremum_form(m, of, AFTER);
    return m->l.all.too_long ? "the terms are too long to be compared" : NULL;
}

static const char *check_read(merging *m, const tcc_op *read)
{
    const tcc_op *write, *of = stored_by_parts(m, read, &write);
    bool is_same = of && tcc_access_rank(read) == tcc_access_rank(write);
    for (size_t d = 0; is_same && d < tcc_access_rank(read); d++)
        is_same = tcc_access_index(read, d) && tcc_index_same(tcc_access_index(read, d), tcc_access_index(write, d));
    if (!is_same || !tcc_law_has_index(read->results[0].type, m->part))
        return "a part's result is not read as it was stored";
    *tcc_map_at(&m->l.moves, &read->results[0]) = (void *)read;
    *tcc_map_at(&m->l.forms[AFTER], &read->results[0]) =
        (void *)(tcc_reduction_of(of) == TCC_REDUCTION_SUM ? tcc_law_form_of_terms(&m->l, of->operands[0], BEFORE)
                                                          : extremum_form(m, of, BEFORE));
    return NULL;
}

/* Finds the form of what an op of the merging function computes. */
static const char *check_op(merging *m, const tcc_op *op)
{
    const tcc_op *write;
    if (op->code == TCC_OP_tensor_read && (stored_by_parts(m, op, &write) || write))
        return check_read(m, op);
    bool moves = false;
    for (unsigned i = 0; i < op->n_operands; i++)
        moves |= tcc_map_get(&m->l.moves, op->operands[i]) != NULL;
    if (op->code == TCC_OP_tensor_write)
        return op->operands[0]->type->kind == TCC_KIND_field && tcc_law_has_index(op->operands[0]->type, m->part)
                   ? "what a part gives is a result"
                   : NULL;
    if (!op->n_results)
        return NULL;
    if (!moves) {
        add_unknown(m, op);
        return NULL;
    }
    *tcc_map_at(&m->l.moves, &op->results[0]) = (void *)op;
    if (op->code == TCC_OP_tensor_reduce)
        return check_merged(m, op);
    const tcc_value *else_ = guarded(m, op);
    if (else_)
        *tcc_map_at(&m->l.forms[AFTER], &op->results[0]) = (void *)tcc_law_form(&m->l, else_, AFTER);
    else if (tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE)
        tcc_law_form(&m->l, &op->results[0], AFTER);
    return NULL;
}

const char *tcc_streaming_merge_wrong(const tcc_func *merge, const tcc_func *parts, const char *part, tcc_arena *arena)
{
    merging m = {.merge = merge, .parts = parts, .part = part, .same = TCC_MAP(arena)};
    m.l = (tcc_law){.arena = arena, .all = {.arena = arena}, .moves = TCC_MAP(arena)};
    m.l.forms[BEFORE] = m.l.forms[AFTER] = TCC_MAP(arena);
    const tcc_op *write;
    for (const tcc_op *op = merge->body->first; op && !m.along; op = op->next) {
        const tcc_op *of = op->code == TCC_OP_tensor_read ? stored_by_parts(&m, op, &write) : NULL;
        m.along = of ? tcc_law_index(of) : NULL;
    }
    if (!m.along)
        return "reads nothing that reductions gave of a part";
    tcc_law_mark(&m.l, m.along, parts->body->first, NULL);
    const char *wrong = check_parts(&m);
    for (const tcc_op *op = merge->body->first; op && !wrong; op = op->next)
        wrong = check_op(&m, op);
    return wrong;
}

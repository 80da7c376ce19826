/* tile_terms: reductions of any other kind, one term after the other.
 *
 * Before:  %p = tensor.read %P {map = [s, m, n]} : field<f32[s, m, n]>
 *          %s = tensor.reduce %p {over = [s], kind = sum} : field<f32[m, n]>
 * After:   %r = scf.for %s = 0 … S, %c = 0.0 {
 *            arith.add %c, (tile.load P)
 *          }
 *
 * The terms of a sum are added in the order of its index, each time rounded. If their number is known, several are
 * loaded at once, all if they fit in registers. The grid's `spread` is how warps hold the tiles.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/assume.h"
#include "ir/machine.h"
#include "passes/arith.h"
#include "passes/tile.h"

enum { MOST_AT_ONCE = 64 }; /* elements of terms that a lane has at a time */

/* What is being built. */
typedef struct reduction {
    tcc_tiling t; /* of terms: builds what is being built */
    const tcc_op *op;
    tcc_reduction kind;
    const tcc_type *type;  /* of its tile */
    const tcc_type *terms; /* of tiles of terms */
    tcc_attr over;         /* the indices */
    tcc_map ops;           /* that compute a term */
} reduction;

/* What it has found of terms: what they give together or, of an extremum's place, the extremum and its place. */
typedef struct found {
    tcc_value *of[2];
    size_t n;
} found;

static const char *innermost(const reduction *s)
{
    return s->over.list.items[s->over.list.n - 1].s;
}

/* What no terms give, of an extremum's place the extremum. */
static tcc_value *build_start(reduction *s)
{
    return tcc_tiling_start(&s->t, s->terms, tcc_reduction_extremum(s->kind));
}

/* The condition under which there is a term; NULL: there always is. */
static tcc_value *build_condition(reduction *s)
{
    return s->op->n_operands > 1
               ? tcc_tiling_broadcast(&s->t, tcc_value_map_get(s->t.map, s->op->operands[1]), s->terms)
               : NULL;
}

/* The term at the place where indices are, in the element type in which terms are combined, or what changes nothing
 * where there is none. again: after another one, with what both share. */
static tcc_value *build_term(reduction *s, bool again)
{
    tcc_tiling *t = &s->t;
    tcc_value *term = TCC_VIEW(tensor_reduce, s->op)->a;
    for (tcc_op *op = s->op->block->first; op != s->op; op = op->next)
        if (tcc_map_get(&s->ops, op) && (!again || tcc_field_has_index(op->results[0].type, innermost(s))))
            tcc_tiling_op(t, op);
    t->b.loc = s->op->loc;
    tcc_value *v = tcc_value_map_get(t->map, term);
    v = tcc_arith_cast(&t->b, tcc_type_with_elem(t->b.func->ir, v->type, s->terms->elem), v);
    v = tcc_tiling_broadcast(t, v, s->terms);
    tcc_value *exists = tcc_reduction_is_place(s->kind) ? NULL : build_condition(s);
    return exists ? TCC_EMIT(&t->b, arith_select, s->terms, exists, v, build_start(s)) : v;
}

/* Where a term takes the place of the extremum so far: beyond it or, where there was none, a number. */
static found take_place(reduction *s, found acc, tcc_value *term, tcc_value *at, tcc_value *exists)
{
    tcc_builder *b = &s->t.b;
    bool most = s->kind == TCC_REDUCTION_ARGMAX;
    at = tcc_tiling_broadcast(&s->t, at, s->type);
    tcc_value *first = tcc_arith_cmp(b, "lt", acc.of[1], tcc_build_int(b, s->type, 0));
    tcc_value *reaches = tcc_arith_cmp(b, most ? "ge" : "le", term, acc.of[0]);
    tcc_value *beyond = tcc_arith_cmp(b, most ? "gt" : "lt", term, acc.of[0]);
    tcc_value *found_first = TCC_EMIT(b, arith_select, s->type, reaches, at, acc.of[1]);
    tcc_value *place = TCC_EMIT(b, arith_select, s->type, first, found_first, acc.of[1]);
    place = TCC_EMIT(b, arith_select, s->type, beyond, at, place);
    tcc_value *extremum = TCC_EMIT(b, arith_select, s->terms, beyond, term, acc.of[0]);
    if (exists) {
        place = TCC_EMIT(b, arith_select, s->type, exists, place, acc.of[1]);
        extremum = TCC_EMIT(b, arith_select, s->terms, exists, extremum, acc.of[0]);
    }
    return (found){{extremum, place}, 2};
}

/* A product that is added to a sum is rounded together with it, as matrix instructions do. */
static tcc_value *combine(reduction *s, tcc_value *acc, tcc_value *term)
{
    tcc_scalar elem = s->type->elem;
    bool product = term->def && term->def->code == TCC_OP_arith_mul && (elem == TCC_f32 || elem == TCC_f64);
    if (product && s->kind == TCC_REDUCTION_SUM)
        return TCC_EMIT(&s->t.b, arith_fma, s->type, term->def->operands[0], term->def->operands[1], acc);
    return &tcc_op_create(&s->t.b, tcc_reduction_op(s->kind), 2, (tcc_value *[]){acc, term}, 1, &s->type)->results[0];
}

/* acc and n terms more, whose loads do not wait for each other. first: their first index; NULL: 0. */
static found build_terms(reduction *s, found acc, tcc_value *first, int64_t n)
{
    tcc_value *terms[MOST_AT_ONCE], *at[MOST_AT_ONCE], *exist[MOST_AT_ONCE];
    bool is_place = tcc_reduction_is_place(s->kind);
    for (int64_t i = 0; i < n; i++) {
        at[i] = first ? tcc_arith_add(&s->t.b, first, i) : tcc_build_i32(&s->t.b, i);
        tcc_tiling_place(&s->t, innermost(s), at[i]);
        terms[i] = build_term(s, i);
        exist[i] = is_place ? build_condition(s) : NULL;
    }
    for (int64_t i = 0; i < n; i++)
        if (is_place)
            acc = take_place(s, acc, terms[i], at[i], exist[i]);
        else
            acc.of[0] = combine(s, acc.of[0], terms[i]);
    return acc;
}

/* The loops over the reduced indices from the o-th on, the innermost n at a time. */
static found build_loops(reduction *s, found acc, size_t o, int64_t n)
{
    tcc_builder outer = s->t.b, *b = &s->t.b;
    const char *index = s->over.list.items[o].s;
    bool inner = o + 1 == s->over.list.n;
    const tcc_type *types[] = {acc.of[0]->type, acc.n > 1 ? acc.of[1]->type : NULL};
    tcc_value *operands[] = {tcc_build_i32(b, 0), NULL, NULL, acc.of[0], acc.of[1]};
    operands[1] = tcc_build_extent(b, tcc_index_extent(b->func, index));
    operands[2] = tcc_build_i32(b, inner ? n : 1);
    tcc_op *loop = tcc_op_create(b, TCC_OP_scf_for, 3 + acc.n, operands, acc.n, types);
    *b = tcc_builder_at_end(loop->regions[0]);
    tcc_value *first = tcc_block_add_arg(loop->regions[0], operands[0]->type, index);
    for (size_t i = 0; i < acc.n; i++)
        acc.of[i] = tcc_block_add_arg(loop->regions[0], types[i], i ? "at" : "acc");
    b->loc = outer.loc;
    tcc_tiling_place(&s->t, index, first);
    found next = inner ? build_terms(s, acc, first, n) : build_loops(s, acc, o + 1, n);
    tcc_op_create(b, TCC_OP_scf_yield, next.n, next.of, 0, NULL);
    *b = outer;
    for (size_t i = 0; i < acc.n; i++)
        acc.of[i] = &loop->results[i];
    return acc;
}

/* How many terms to load at once: a part of a known number of them. */
static int64_t terms_at_once(const tcc_tiler *w, tcc_dim extent)
{
    const tcc_pointwise_tile *tile = &w->held.of;
    int64_t elements = tile->m * tile->n / (tile->warps[0] * tile->warps[1] * TCC_WARP_LANES); /* of a lane */
    int64_t n = extent.name ? 1 : MOST_AT_ONCE / (elements ? elements : 1);
    while (n > 1 && extent.size % n)
        n--;
    return n > 1 ? n : 1;
}

/* No tile of a term is along a reduced index, which may be an axis of results. */
static void leave_axes(tcc_tiling *t, tcc_attr over)
{
    static const char none[] = "(reduced)"; /* no field has it */
    for (int x = 0; x < 2; x++)
        for (size_t o = 0; o < over.list.n; o++)
            if (tcc_index_same(t->axes[x], over.list.items[o].s))
                t->axes[x] = none;
}

static tcc_value *build_reduction(tcc_tiler *w, tcc_op *op)
{
    reduction s = {.t = w->t, .op = op, .kind = tcc_reduction_of(op), .ops = TCC_MAP(w->ctx->scratch)};
    bool is_place = tcc_reduction_is_place(s.kind);
    s.type = tcc_tiling_type(&w->t, op->results[0].type, false);
    s.terms = is_place ? tcc_type_with_elem(w->f->ir, s.type, op->operands[0]->type->elem) : s.type;
    s.over = tcc_attr_list(&op->attrs, "over");
    s.t.map = tcc_value_map_create(w->ctx->scratch);
    s.t.b.loc = op->loc;
    *tcc_map_at(&s.ops, op) = op;
    tcc_tiler_need(w, &s.ops);
    leave_axes(&s.t, s.over);
    found acc = {{build_start(&s), is_place ? tcc_build_int(&s.t.b, s.type, TCC_NO_PLACE) : NULL}, 1 + is_place};
    tcc_dim extent = tcc_index_extent(w->f, innermost(&s));
    int64_t n = terms_at_once(w, extent);
    bool is_short = s.over.list.n == 1 && !extent.name && extent.size == n;
    acc = is_short ? build_terms(&s, acc, NULL, n) : build_loops(&s, acc, 0, n);
    return acc.of[acc.n - 1];
}

/* ---- the kind --------------------------------------------------------------------------------- */

static bool find_tile(tcc_tiler *w)
{
    if (!tcc_attr_find(&w->f->attrs, "group") || !tcc_pointwise_tile_of(w->f, &w->space, &w->held.of))
        return false;
    w->t.sizes[0] = w->held.of.m;
    w->t.sizes[1] = w->held.of.n;
    return true;
}

static void build(tcc_tiler *w)
{
    const tcc_pointwise_tile *tile = &w->held.of;
    const int64_t spread[] = {tile->vector, tile->warps[0], tile->warps[1], tile->vector};
    tcc_attr_set_ints(w->f->ir, &w->grid->attrs, "spread", 3 + tile->blocks, spread);
    for (tcc_op *op = w->f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_reduce)
            tcc_value_map_set(w->t.map, &op->results[0], build_reduction(w, op));
    tcc_tiler_finish(w);
}

const tcc_tile_kind tcc_tile_terms = {find_tile, NULL, build};

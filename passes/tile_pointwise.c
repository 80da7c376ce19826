/* tile-pointwise: compute a kernel without a product tile by tile.
 *
 * Before:  %p = tensor.read %P {map = [s, m, n]} : field<f32[s, m, n]>
 *          %s = tensor.reduce %p {over = [s], kind = sum} : field<f32[m, n]>
 * After:   %s = tile.grid {axes = [m, n], …, spread = [4, 8, 1]} : field<f32[m, n]> {
 *          ^(%m: i32, %n: i32):
 *            %r = scf.for %s = 0 … S, %c = 0.0 {
 *              arith.add %c, (tile.load P)
 *            }
 *            scf.yield %r
 *          }
 *
 * The terms of a sum are added in the order of its index, each time rounded. If their number is known, several are
 * loaded at once, all if they fit in registers. Without a sum the grid is empty, and everything is left to
 * fuse-epilogue. `spread` is how warps hold the tiles.
 *
 * Requires choose-schedule. Nothing that only sums need is left.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/assume.h"
#include "ir/machine.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "passes/arith.h"
#include "passes/passes.h"
#include "passes/pointwise.h"
#include "passes/tiling.h"

typedef struct space {
    const tcc_space *p;
    tcc_block *grid;     /* its arguments are the axes' first indices */
    tcc_attr over;       /* the indices that are being reduced */
    tcc_value **at;      /* the place of each of these indices */
    int64_t elements;    /* of a tile, in one lane */
    tcc_arena *scratch;
} space;

enum { MOST_AT_ONCE = 64 }; /* elements of terms that a lane has at a time */

static tcc_value *origin_of(void *user, const char *index)
{
    const space *sp = user;
    size_t i = 0;
    for (size_t o = 0; o < sp->over.list.n; o++)
        if (!strcmp(sp->over.list.items[o].s, index))
            return sp->at[o];
    while (strcmp(sp->p->axes[i], index))
        i++;
    return sp->grid->args[i];
}

/* What is being built. */
typedef struct reduction {
    const tcc_op *op;
    tcc_reduction kind;
    const tcc_type *type;  /* of its tile */
    const tcc_type *terms; /* of tiles of terms */
    tcc_map ops;           /* that compute a term */
} reduction;

/* What it has found of terms: what they give together or, of an extremum's place, the extremum and its place. */
typedef struct found {
    tcc_value *of[2];
    size_t n;
} found;

static const char *innermost(const space *sp)
{
    return sp->over.list.items[sp->over.list.n - 1].s;
}

/* What no terms give, of an extremum's place the extremum. */
static tcc_value *build_start(tcc_tiling *t, const reduction *s)
{
    return tcc_tiling_start(t, s->terms, tcc_reduction_extremum(s->kind));
}

/* The condition under which there is a term at sp->at; NULL: there is none. */
static tcc_value *build_condition(tcc_tiling *t, const reduction *s)
{
    return s->op->n_operands > 1 ? tcc_tiling_broadcast(t, tcc_value_map_get(t->map, s->op->operands[1]), s->terms) : NULL;
}

/* The term at sp->at, in the element type in which terms are combined, or what changes nothing where there is none.
 * again: after another one, with what both share. */
static tcc_value *build_term(const space *sp, tcc_tiling *t, const reduction *s, bool again)
{
    tcc_value *term = TCC_VIEW(tensor_reduce, s->op)->a;
    for (tcc_op *op = s->op->block->first; op != s->op; op = op->next)
        if (tcc_map_get(&s->ops, op) && (!again || tcc_field_has_index(op->results[0].type, innermost(sp))))
            tcc_tiling_op(t, op);
    t->b.loc = s->op->loc;
    tcc_value *v = tcc_value_map_get(t->map, term);
    v = tcc_arith_cast(&t->b, tcc_type_with_elem(t->b.func->ir, v->type, s->terms->elem), v);
    v = tcc_tiling_broadcast(t, v, s->terms);
    tcc_value *exists = tcc_reduction_is_place(s->kind) ? NULL : build_condition(t, s);
    return exists ? TCC_EMIT(&t->b, arith_select, s->terms, exists, v, build_start(t, s)) : v;
}

/* Where a term takes the place of the extremum so far: beyond it or, where there was none, a number. */
static found take_place(tcc_tiling *t, const reduction *s, found acc, tcc_value *term, tcc_value *at, tcc_value *exists)
{
    tcc_builder *b = &t->b;
    bool most = s->kind == TCC_REDUCTION_ARGMAX;
    at = tcc_tiling_broadcast(t, at, s->type);
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
static tcc_value *combine(tcc_tiling *t, const reduction *s, tcc_value *acc, tcc_value *term)
{
    tcc_scalar elem = s->type->elem;
    bool product = term->def && term->def->code == TCC_OP_arith_mul && (elem == TCC_f32 || elem == TCC_f64);
    if (product && s->kind == TCC_REDUCTION_SUM)
        return TCC_EMIT(&t->b, arith_fma, s->type, term->def->operands[0], term->def->operands[1], acc);
    return &tcc_op_create(&t->b, tcc_reduction_op(s->kind), 2, (tcc_value *[]){acc, term}, 1, &s->type)->results[0];
}

/* acc and n terms more, whose loads do not wait for each other. first: their first index; NULL: 0. */
static found build_terms(space *sp, tcc_tiling *t, const reduction *s, found acc, tcc_value *first, int64_t n)
{
    tcc_value *terms[MOST_AT_ONCE], *at[MOST_AT_ONCE], *exist[MOST_AT_ONCE];
    bool is_place = tcc_reduction_is_place(s->kind);
    for (int64_t i = 0; i < n; i++) {
        at[i] = sp->at[sp->over.list.n - 1] = first ? tcc_arith_add(&t->b, first, i) : tcc_build_i32(&t->b, i);
        terms[i] = build_term(sp, t, s, i);
        exist[i] = is_place ? build_condition(t, s) : NULL;
    }
    for (int64_t i = 0; i < n; i++)
        if (is_place)
            acc = take_place(t, s, acc, terms[i], at[i], exist[i]);
        else
            acc.of[0] = combine(t, s, acc.of[0], terms[i]);
    return acc;
}

/* The loops over the reduced indices from the o-th on, the innermost n at a time. */
static found build_loops(space *sp, tcc_tiling *t, const reduction *s, found acc, size_t o, int64_t n)
{
    const char *index = sp->over.list.items[o].s;
    bool inner = o + 1 == sp->over.list.n;
    const tcc_type *types[] = {acc.of[0]->type, acc.n > 1 ? acc.of[1]->type : NULL};
    tcc_value *operands[] = {tcc_build_i32(&t->b, 0), NULL, NULL, acc.of[0], acc.of[1]};
    operands[1] = tcc_build_extent(&t->b, tcc_index_extent(t->b.func, index));
    operands[2] = tcc_build_i32(&t->b, inner ? n : 1);
    tcc_op *loop = tcc_op_create(&t->b, TCC_OP_scf_for, 3 + acc.n, operands, acc.n, types);
    tcc_builder outer = t->b;
    t->b = tcc_builder_at_end(loop->regions[0]);
    tcc_value *first = tcc_block_add_arg(loop->regions[0], operands[0]->type, index);
    for (size_t i = 0; i < acc.n; i++)
        acc.of[i] = tcc_block_add_arg(loop->regions[0], types[i], i ? "at" : "acc");
    t->b.loc = outer.loc;
    sp->at[o] = first;
    found next = inner ? build_terms(sp, t, s, acc, first, n) : build_loops(sp, t, s, acc, o + 1, n);
    tcc_op_create(&t->b, TCC_OP_scf_yield, next.n, next.of, 0, NULL);
    t->b = outer;
    for (size_t i = 0; i < acc.n; i++)
        acc.of[i] = &loop->results[i];
    return acc;
}

/* How many terms to load at once: a part of a known number of them. */
static int64_t terms_at_once(const space *sp, tcc_dim extent)
{
    int64_t n = extent.name ? 1 : MOST_AT_ONCE / (sp->elements ? sp->elements : 1);
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
            if (!strcmp(t->axes[x], over.list.items[o].s))
                t->axes[x] = none;
}

static tcc_value *build_reduction(space *sp, tcc_tiling *t, const tcc_op *op)
{
    tcc_reduction kind = tcc_reduction_of(op);
    bool is_place = tcc_reduction_is_place(kind);
    const tcc_type *type = tcc_tiling_type(t, op->results[0].type, false);
    const tcc_type *terms = is_place ? tcc_type_with_elem(t->b.func->ir, type, op->operands[0]->type->elem) : type;
    reduction s = {op, kind, type, terms, TCC_MAP(sp->scratch)};
    for (unsigned i = 0; i < op->n_operands; i++)
        tcc_find_elementwise(op->operands[i], sp->scratch, &s.ops);
    sp->over = tcc_attr_list(&op->attrs, "over");
    sp->at = TCC_NEW_ARRAY(sp->scratch, tcc_value *, sp->over.list.n);
    leave_axes(t, sp->over);
    t->b.loc = op->loc;
    found acc = {{build_start(t, &s), is_place ? tcc_build_int(&t->b, type, TCC_NO_PLACE) : NULL}, 1 + is_place};
    tcc_dim extent = tcc_index_extent(t->b.func, innermost(sp));
    int64_t n = terms_at_once(sp, extent);
    bool is_short = sp->over.list.n == 1 && !extent.name && extent.size == n;
    acc = is_short ? build_terms(sp, t, &s, acc, NULL, n) : build_loops(sp, t, &s, acc, 0, n);
    return acc.of[acc.n - 1];
}

typedef TCC_VEC(tcc_op *) ops;

/* Sums of other tiles than the whole have extents of 1 in it. */
static void replace_sums(space *sp, tcc_tiling *t, const ops *sums, tcc_op *grid)
{
    tcc_value **results = TCC_NEW_ARRAY(sp->scratch, tcc_value *, sums->len);
    for (size_t i = 0; i < sums->len; i++) {
        tcc_tiling of_sum = *t;
        of_sum.map = tcc_value_map_create(sp->scratch);
        results[i] = build_reduction(sp, &of_sum, sums->data[i]);
        t->b = of_sum.b;
    }
    if (sums->len)
        tcc_op_create(&t->b, TCC_OP_scf_yield, sums->len, results, 0, NULL);
    for (size_t i = 0; i < sums->len; i++) {
        tcc_value *sum = &sums->data[i]->results[0];
        grid->results[i].name = sum->name;
        tcc_replace_uses(sum, &grid->results[i]);
        tcc_op_erase(sums->data[i]);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_space p;
    tcc_pointwise_tile tile;
    ops sums = {0};
    if (!tcc_func_is_variant(f) || !tcc_attr_find(&f->attrs, "group") || !tcc_space_of(f, &p) ||
        p.n_sums || p.row || !tcc_pointwise_tile_of(f, &p, &tile))
        return TCC_OK;
    const tcc_type **types = NULL;
    tcc_op *before = f->body->first;
    if (!tcc_tiling_check_function(ctx, f))
        return TCC_ERR_UNSUPPORTED;
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_reduce)
            TCC_PUSH(ctx->scratch, &sums, op);
    if (sums.len) {
        before = sums.data[0];
        types = TCC_NEW_ARRAY(ctx->scratch, const tcc_type *, sums.len);
        for (size_t i = 0; i < sums.len; i++)
            types[i] = sums.data[i]->results[0].type;
    }
    const int64_t sizes[] = {tile.m, tile.n};
    tcc_builder b = tcc_builder_before(before);
    b.loc = before->loc;
    tcc_op *grid = tcc_tiling_grid(&b, p.n_axes, p.axes, p.extents, sizes, sums.len, types);
    const int64_t spread[] = {tile.vector, tile.warps[0], tile.warps[1], tile.vector};
    tcc_attr_set_ints(ctx->ir, &grid->attrs, "spread", 3 + tile.blocks, spread);
    space sp = {.p = &p,
                .grid = grid->regions[0],
                .elements = tile.m * tile.n / (tile.warps[0] * tile.warps[1] * TCC_WARP_LANES),
                .scratch = ctx->scratch};
    tcc_tiling t = {.b = tcc_builder_at_end(grid->regions[0]),
                    .axes = {p.axes[0], p.axes[1]},
                    .sizes = {tile.m, tile.n},
                    .at = origin_of,
                    .user = &sp};
    tcc_tiling_hoist(grid);
    replace_sums(&sp, &t, &sums, grid);
    if (sums.len) /* an empty grid would be dead, too, and leaves nothing */
        tcc_erase_dead(f, ctx->scratch);
    tcc_attr_remove(&f->attrs, "axes"); /* the grid has them */
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_tile_pointwise = {
    "tile-pointwise", "compute a kernel without a product tile by tile", .run = run,
    .requires = TCC_UP_TO(schedule)};

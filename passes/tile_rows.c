/* tile_rows: reductions along rows, which a tile has whole.
 *
 * Before:  func @f(…) {row = n, tile = [m, 1, n, 4096], assumes = [[max, N, 4096], …], …} {
 *            %x = tensor.read %X {map = [m, n]} : field<f32[m, n]>
 *            %s = tensor.reduce %x {over = [n], kind = sum} : field<f32[m]>
 *            %y = arith.div %x, %s : field<f32[m, n]>
 *            tensor.write %y, %Y {map = [m, n]}
 * After:   tile.grid {axes = [m, ""], extents = [$M, 1], tile = [1, 1], spread = [4, 1, 4]} {
 *          ^(%m: i32, %one: i32):
 *            %x = tile.load %X, %m, %zero {dims = [0, 1]} : tile<f32[1, 4096]>
 *            %t = arith.select (tile.index < N), %x, 0.0
 *            %s = tile.reduce %t {dim = 1, kind = sum} : tile<f32[1, 1]>
 *            %y = arith.div %x, (tile.broadcast %s)
 *            tile.store %y, %Y, %m, %zero {dims = [0, 1]}
 *          }
 *
 * A tile whose columns hold every row that the variant is for is read once. Otherwise a loop over tiles of columns
 * combines terms, so that each lane has partial results, before these are reduced. Reductions that need others' results
 * have a loop after theirs, and so has what is stored along the row. But sums that are rescaled (stream.c) are kept in
 * step with those that they need, each partial sum with a partial result of its own: warps do not wait for each other
 * until the loop has ended. Tiles are then taken in pieces of as many elements as there are partial results.
 *
 *            %max, %sum = scf.for … (%old = -inf, %acc = 0.0) : tile<f32[1, 1024]>, tile<f32[1, 1024]> {
 *              %m = arith.max %old, %x, …
 *              … the factor, of %m and %old; the terms, of %x and %m …
 *              %kept = arith.mul %acc, %factor
 *              %new = arith.add %kept, %terms, …
 *            }
 *            %whole = tile.reduce %max {kind = max}
 *            … the factor, of %whole and %max …
 *            %t = tile.reduce (arith.mul %sum, %factor) {kind = sum}
 *
 * Terms beyond the end of a row become what changes no result. Where its length is a multiple of a vector, one
 * condition serves all elements of each.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/assume.h"
#include "ir/reduction.h"
#include "passes/arith.h"
#include "passes/in_step.h"
#include "passes/softmax.h"
#include "passes/tile.h"

/* One of the tiles beside each other that a loop takes at a time. */
typedef struct piece {
    const struct tcc_place *places;
    tcc_value_map *map;
    tcc_value *from, *inside;
    bool begins;
} piece;

typedef struct rows {
    tcc_tiler *w;
    const tcc_space *p;
    tcc_tiling *t;     /* w's */
    tcc_value *from;   /* where in the row the tile would begin if it began at the row; NULL: with it */
    tcc_value *inside; /* which elements of the tile are in the row; NULL: it was not asked yet */
    bool whole;        /* all are */
    int along;         /* of the tile's dimensions the one that rows run along */
    int64_t kept;      /* partial results of a row from tile to tile */
    piece *pieces;
    int64_t n_pieces;
    int64_t group;     /* elements, a multiple of which the tile begins at; 1: it begins at the row */
    bool begins;       /* elements before the row may be in the tile */
    tcc_value *before; /* elements of the first tile before the row; NULL: none ever */
    tcc_value *first;  /* where that begins */
    int64_t unit;      /* of so many neighbours that a lane has all or none are */
    tcc_map sweeps;    /* fields: in which sweep they are known, from 1 on */
    tcc_map partial;   /* fields of which lanes have their own: what is computed of partial results */
    tcc_map powers;    /* what softmax builds */
    tcc_map masked;    /* tiles that are -inf beyond the end of a row */
} rows;

/* Begins a tile `beyond` a place of the row, or before it by as much as the row begins in a group; NULL: with the row. */
static void begin_at(rows *r, tcc_value *from, int64_t beyond)
{
    tcc_value *column = from ? from : r->first;
    if (from && r->before)
        column = tcc_arith_bin(&r->t->b, TCC_OP_arith_add, r->first, from);
    r->from = from ? tcc_arith_add(&r->t->b, from, beyond) : NULL;
    r->inside = NULL;
    r->begins = r->before && beyond < r->group;
    tcc_tiling_place(r->t, r->p->row, r->before ? tcc_arith_add(&r->t->b, column, beyond) : from ? r->from : column);
}

static bool is_along_row(const rows *r, const tcc_op *op)
{
    if (op->code == TCC_OP_tensor_write)
        return tcc_map_position(op, r->p->row) >= 0;
    return tcc_field_has_index(op->results[0].type, r->p->row);
}

/* ---- reductions --------------------------------------------------------------------------- */

/* A tile of what is reduced, with this many elements of a row. */
static const tcc_type *tile_type(const rows *r, const tcc_op *reduce, int64_t n)
{
    int64_t sizes[] = {r->t->sizes[0], r->t->sizes[1]};
    sizes[r->along] = n;
    return tcc_type_sized(r->w->f->ir, TCC_KIND_tile, reduce->results[0].type->elem, 2, sizes);
}

static tcc_value *build_start(rows *r, const tcc_op *reduce, int64_t n)
{
    return tcc_tiling_start(r->t, tile_type(r, reduce, n), tcc_reduction_of(reduce));
}

/* Which numbers of a tile are less (lt) than one, or not (ge). */
static tcc_value *compare(rows *r, const char *pred, tcc_value *places, tcc_value *with)
{
    return tcc_arith_cmp(&r->t->b, pred, places, tcc_tiling_broadcast(r->t, with, places->type));
}

static tcc_value *build_inside(rows *r)
{
    tcc_builder *b = &r->t->b;
    tcc_ir *ir = r->w->f->ir;
    if (r->inside)
        return r->inside;
    const tcc_type *i32 = tcc_type_sized(ir, TCC_KIND_tile, TCC_i32, 2, r->t->sizes);
    tcc_value *number = TCC_EMIT(b, tile_index, i32, NULL);
    tcc_attr_set_int(ir, &number->def->attrs, "dim", r->along);
    if (r->unit > 1)
        tcc_attr_set_int(ir, &number->def->attrs, "unit", r->unit);
    tcc_value *end = tcc_build_extent(b, r->p->extents[r->along]), *begin = r->begins ? r->before : NULL;
    if (r->from) { /* a tile that may not be the first */
        end = tcc_arith_bin(b, TCC_OP_arith_sub, end, r->from);
        begin = begin ? tcc_arith_bin(b, TCC_OP_arith_sub, begin, r->from) : NULL;
    }
    end = r->before ? tcc_arith_bin(b, TCC_OP_arith_add, end, r->before) : end;
    r->inside = compare(r, "lt", number, end);
    if (begin)
        r->inside = tcc_arith_bin(b, TCC_OP_arith_and, r->inside, compare(r, "ge", number, begin));
    return r->inside;
}

static tcc_value *build_where(rows *r, const tcc_op *reduce, tcc_value *cond, tcc_value *v)
{
    return TCC_EMIT(&r->t->b, arith_select, v->type, cond, v, build_start(r, reduce, r->t->sizes[r->along]));
}

/* Whether the terms of a sum are 0 beyond the end of a row: powers of -inf minus a maximum. That is a number there, or the
 * sum would not be one either, unless a row has no elements. */
static bool vanishes(const rows *r, const tcc_op *reduce)
{
    const tcc_op *power = reduce->operands[0]->def;
    if (tcc_reduction_of(reduce) != TCC_REDUCTION_SUM || !power || !tcc_map_get(&r->powers, power) ||
        power->code != TCC_OP_math_exp || (r->w->held.one_sweep && !tcc_assumes_min(r->w->f, r->p->extents[r->along], 1)))
        return false;
    const tcc_op *difference = power->operands[0]->def;
    return tcc_map_get(&r->masked, tcc_value_map_get(r->t->map, difference->operands[0]));
}

/* The terms of a reduction in the tile. Nobody asks what a field is beyond the end of a row, so what is put there for
 * a reduction stays: another copy of the row would take registers. */
static tcc_value *build_terms(rows *r, const tcc_op *reduce)
{
    const tcc_type *type = tile_type(r, reduce, r->t->sizes[r->along]);
    tcc_value *term = TCC_VIEW(tensor_reduce, reduce)->a;
    r->t->b.loc = reduce->loc;
    tcc_value *v = tcc_value_map_get(r->t->map, term);
    bool is_whole = v->type == type;
    v = tcc_arith_cast(&r->t->b, tcc_type_with_elem(r->w->f->ir, v->type, type->elem), v);
    v = tcc_tiling_broadcast(r->t, v, type);
    bool masks = !r->whole && !vanishes(r, reduce);
    if (masks)
        v = build_where(r, reduce, build_inside(r), v);
    if (masks && is_whole)
        tcc_value_map_set(r->t->map, term, v);
    if (masks && tcc_reduction_of(reduce) == TCC_REDUCTION_MAX)
        *tcc_map_at(&r->masked, v) = v;
    if (reduce->n_operands > 1)
        v = build_where(r, reduce, tcc_tiling_broadcast(r->t, tcc_value_map_get(r->t->map, reduce->operands[1]), type),
                        v);
    return v;
}

static tcc_value *build_reduce(rows *r, const tcc_op *reduce, tcc_value *terms)
{
    tcc_value *v = TCC_EMIT(&r->t->b, tile_reduce, tile_type(r, reduce, 1), terms);
    tcc_attr_set_int(r->w->f->ir, &v->def->attrs, "dim", r->along);
    tcc_attr_set_str(r->w->f->ir, &v->def->attrs, "kind", tcc_reduction_words[tcc_reduction_of(reduce)]);
    return v;
}

/* What its terms, or its partial results, are reduced to. */
static void finish(rows *r, const tcc_op *reduce, tcc_value *terms)
{
    tcc_value *v = build_reduce(r, reduce, terms);
    v->name = reduce->results[0].name;
    tcc_value_map_set(r->t->map, &reduce->results[0], v);
}

/* Where all terms are there, tensor.before and tensor.rescale are what they have. */
static void keep(rows *r, const tcc_op *op)
{
    tcc_value_map_set(r->t->map, &op->results[0], tcc_value_map_get(r->t->map, op->operands[0]));
}

/* ---- where tiles begin ----------------------------------------------------------------------- */

/* Says of a load or store along the row that its elements come in groups, or are combined of words. */
static void set_groups(const rows *r, const tcc_op *op, tcc_op *access)
{
    enum { WORD = 4 };
    if (!r->before || !is_along_row(r, op))
        return;
    tcc_attr_set_int(r->w->f->ir, &access->attrs, "groups", r->group);
    if (!tcc_rows_is_grouped(r->w->f, r->p, op))
        tcc_attr_set_int(r->w->f->ir, &access->attrs, "words", WORD);
}

static void compute(rows *r, tcc_op *op)
{
    if (tcc_map_get(&r->powers, op))
        tcc_softmax_op(r->t, op);
    else
        tcc_tiling_op(r->t, op);
}

static void build_op(rows *r, tcc_op *op)
{
    if (op->code == TCC_OP_tensor_write) {
        set_groups(r, op, tcc_tiler_write(r->w, op));
        return;
    }
    compute(r, op);
    if (op->code == TCC_OP_tensor_read)
        set_groups(r, op, tcc_value_map_get(r->t->map, &op->results[0])->def);
}

/* A number of 0 or more, modulo a group. */
static tcc_value *build_rest(rows *r, tcc_value *v)
{
    return tcc_arith_bin(&r->t->b, TCC_OP_arith_and, v, tcc_build_i32(&r->t->b, (int32_t)r->group - 1));
}

/* The elements of tensors before the row, modulo a group: its number by its length, both modulo that. */
static tcc_value *build_before(rows *r)
{
    tcc_builder *b = &r->t->b;
    const tcc_op *op = r->w->f->body->first;
    while (!tcc_accessed_tensor(op) || !tcc_rows_is_grouped(r->w->f, r->p, op))
        op = op->next;
    const tcc_type *t = tcc_accessed_tensor(op)->type;
    tcc_value *number = tcc_build_i32(b, 0);
    for (unsigned d = 0; d < t->rank; d++) {
        number = tcc_arith_bin(b, TCC_OP_arith_mul, number, build_rest(r, tcc_build_extent(b, t->dims[d])));
        if (d + 1 < t->rank)
            number = tcc_arith_bin(b, TCC_OP_arith_add, number,
                                   build_rest(r, tcc_tiling_first(r->t, tcc_access_index(op, d))));
        number = build_rest(r, number);
    }
    return number;
}

/* ---- one sweep ------------------------------------------------------------------------------ */

static void build_whole_rows(rows *r)
{
    begin_at(r, NULL, 0);
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (tcc_is_reduction(op))
            finish(r, op, build_terms(r, op));
        else if (op->code == TCC_OP_tensor_before || op->code == TCC_OP_tensor_rescale)
            keep(r, op);
        else
            build_op(r, op);
}

/* ---- several sweeps --------------------------------------------------------------------------- */

static uintptr_t sweep_of(const rows *r, const tcc_value *v)
{
    return (uintptr_t)tcc_map_get(&r->sweeps, v);
}

/* A field is known in the sweep after that of every reduction that it is computed of, but sums that are rescaled after
 * the first. Returns the last sweep. */
static uintptr_t find_sweeps(rows *r)
{
    uintptr_t last = 1;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        uintptr_t sweep = 1;
        for (unsigned i = 0; i < op->n_operands; i++)
            sweep = sweep_of(r, op->operands[i]) > sweep ? sweep_of(r, op->operands[i]) : sweep;
        if (op->n_results)
            *tcc_map_at(&r->sweeps, &op->results[0]) = (void *)(sweep + (tcc_is_reduction(op) && !tcc_is_rescaled(op)));
        last = sweep > last ? sweep : last;
    }
    return last;
}

/* What a sweep is for: its reductions, or in the last one stores. */
static bool is_goal(const rows *r, const tcc_op *op, uintptr_t sweep, bool last)
{
    if (tcc_is_reduction(op) || op->code == TCC_OP_tensor_rescale)
        return sweep_of(r, &op->results[0]) == sweep + 1;
    return last && op->code == TCC_OP_tensor_write && is_along_row(r, op);
}

/* The goals of a sweep, and the fields along the row that they are computed of. */
static tcc_map find_needed(const rows *r, uintptr_t sweep, bool last)
{
    tcc_map needed = TCC_MAP(r->w->ctx->scratch);
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (is_goal(r, op, sweep, last))
            *tcc_map_at(&needed, op) = op;
    tcc_tiler_need(r->w, &needed);
    return needed;
}

/* What the factor of a sum is computed of, which only the sum's sweep needs. */
static bool is_of_factor(const tcc_op *op)
{
    bool is = op->code == TCC_OP_tensor_before;
    for (unsigned i = 0; i < op->n_operands && !is && op->code != TCC_OP_tensor_rescale; i++)
        is = op->operands[i]->def && is_of_factor(op->operands[i]->def);
    return is;
}

/* What does not vary along the row and is known before a sweep, but was not before the last. */
static void build_around(rows *r, uintptr_t sweep)
{
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        if (!tcc_has_field(op) || tcc_is_reduction(op) || is_along_row(r, op) ||
            sweep_of(r, &op->results[0]) != sweep || is_of_factor(op))
            continue;
        if (op->code == TCC_OP_tensor_rescale)
            keep(r, op);
        else
            compute(r, op);
    }
}

typedef TCC_VEC(tcc_op *) ops;
typedef TCC_VEC(tcc_value *) values;

/* The tiles of a part of a row. */
typedef struct part_tiles {
    tcc_value *first, *n; /* its first element; how many there are */
    int64_t together, by; /* that follow each other; elements from the first of these to that of the next ones */
} part_tiles;

/* Their number is counted, since an element beyond the end of the row by all parts may be too large for an i32. */
static part_tiles count_tiles(rows *r, const tcc_op *in_parts)
{
    tcc_builder *b = &r->t->b;
    const tcc_attr *parts = tcc_attr_list(&in_parts->attrs, "parts").list.items;
    int64_t depth = parts[2].i;
    part_tiles t = {.together = depth / r->t->sizes[r->along], .by = depth * parts[1].i};
    t.first = tcc_arith_mul(b, tcc_tiling_first(r->t, parts[0].s), depth);
    tcc_value *left = tcc_arith_bin(b, TCC_OP_arith_sub, tcc_build_extent(b, r->p->extents[r->along]), t.first);
    tcc_value *last = tcc_arith_add(b, left, -1);
    last = tcc_arith_bin(b, TCC_OP_arith_max, last, tcc_build_i32(b, 0));
    tcc_value *before = tcc_arith_div(b, last, t.by); /* that are whole */
    t.n = tcc_arith_mul(b, before, t.together);
    last = tcc_arith_bin(b, TCC_OP_arith_sub, last, tcc_arith_mul(b, before, t.by));
    last = tcc_arith_bin(b, TCC_OP_arith_min, last, tcc_build_i32(b, (int32_t)(depth - 1)));
    last = tcc_arith_add(b, tcc_arith_div(b, last, r->t->sizes[r->along]), 1);
    t.n = tcc_arith_bin(b, TCC_OP_arith_add, t.n, last);
    return t;
}

/* The first element of one of them. */
static tcc_value *begin_tile(rows *r, const part_tiles *t, tcc_value *number)
{
    tcc_builder *b = &r->t->b;
    tcc_value *next = tcc_arith_mul(b, tcc_arith_div(b, number, t->together), t->by);
    tcc_value *column = tcc_arith_bin(b, TCC_OP_arith_add, t->first, next);
    if (t->together == 1)
        return column;
    tcc_value *in = tcc_arith_mul(b, tcc_arith_rem(b, number, t->together), r->t->sizes[r->along]);
    return tcc_arith_bin(b, TCC_OP_arith_add, column, in);
}

static void take(rows *r, const piece *p)
{
    r->t->places = p->places;
    r->t->map = p->map;
    r->from = p->from;
    r->begins = p->begins;
    r->inside = p->inside;
}

/* A loop's pieces, the first of which begins at `column`. */
static void begin_pieces(rows *r, tcc_value *column)
{
    piece outer = {.places = r->t->places, .map = r->t->map};
    for (int64_t i = 0; i < r->n_pieces; i++) {
        take(r, &outer);
        begin_at(r, column, i * r->t->sizes[r->along]);
        tcc_value_map *map = tcc_value_map_within(r->w->ctx->scratch, outer.map);
        r->pieces[i] = (piece){r->t->places, map, r->from, NULL, r->begins};
    }
}

/* Up to where a row is swept over. */
static tcc_value *build_end(rows *r)
{
    tcc_value *end = tcc_build_extent(&r->t->b, r->p->extents[r->along]);
    return r->before ? tcc_arith_bin(&r->t->b, TCC_OP_arith_add, end, r->before) : end;
}

static tcc_op *begin_loop(rows *r, const ops *reductions)
{
    values operands = {0};
    const tcc_type **types = TCC_NEW_ARRAY(r->w->ctx->scratch, const tcc_type *, reductions->len);
    const tcc_op *in_parts = tcc_rows_parts(r->w->f);
    part_tiles tiles = {0};
    if (in_parts)
        tiles = count_tiles(r, in_parts);
    TCC_PUSH(r->w->ctx->scratch, &operands, tcc_build_i32(&r->t->b, 0));
    TCC_PUSH(r->w->ctx->scratch, &operands, in_parts ? tiles.n : build_end(r));
    int64_t step = in_parts ? 1 : r->t->sizes[r->along] * r->n_pieces;
    TCC_PUSH(r->w->ctx->scratch, &operands, tcc_build_i32(&r->t->b, step));
    for (size_t i = 0; i < reductions->len; i++) {
        TCC_PUSH(r->w->ctx->scratch, &operands, build_start(r, reductions->data[i], r->kept));
        types[i] = operands.data[operands.len - 1]->type;
    }
    tcc_op *loop = tcc_op_create(&r->t->b, TCC_OP_scf_for, operands.len, operands.data, reductions->len, types);
    r->t->b = tcc_builder_at_end(loop->regions[0]);
    r->t->b.loc = loop->loc;
    tcc_value *number = tcc_block_add_arg(loop->regions[0], operands.data[0]->type, r->p->row);
    begin_pieces(r, in_parts ? begin_tile(r, &tiles, number) : number);
    return loop;
}

/* Terms `at` of each row of the tile and those after it, as many as a partial result has. */
static tcc_value *slice_terms(rows *r, tcc_value *terms, const tcc_type *type, int64_t at)
{
    int64_t from[] = {0, 0};
    from[r->along] = at;
    if (terms->type == type)
        return terms;
    tcc_value *v = TCC_EMIT(&r->t->b, tile_slice, type, terms);
    tcc_attr_set_ints(r->w->f->ir, &v->def->attrs, "at", 2, from);
    return v;
}

/* The factor of partial sums; 1 where they are 0, for what nothing was added to may have been in step with nothing. */
static tcc_value *build_factor(rows *r, const tcc_op *rescale, tcc_value *sums)
{
    tcc_value *none = tcc_arith_cmp(&r->t->b, "eq", sums, tcc_build_float(&r->t->b, sums->type, 0));
    return tcc_in_step(r->t, rescale, none, sums->type);
}

/* Combines the terms of tiles with those before, which rescale multiplies, if it is not NULL. */
static tcc_value *accumulate(rows *r, tcc_value *acc, const tcc_op *reduce, const tcc_op *rescale)
{
    const tcc_type *type = acc->type;
    tcc_opcode code = tcc_reduction_op(tcc_reduction_of(reduce));
    tcc_value *factor = NULL;
    for (int64_t p = 0; p < r->n_pieces; p++) {
        take(r, &r->pieces[p]);
        tcc_value *terms = build_terms(r, reduce);
        factor = rescale && !p ? build_factor(r, rescale, acc) : NULL;
        for (int64_t i = 0; i < r->t->sizes[r->along]; i += r->kept) {
            tcc_value *with[] = {acc, slice_terms(r, terms, type, i)};
            acc = factor && !i ? tcc_multiply_add(r->t, acc, factor, with[1])
                               : &tcc_op_create(&r->t->b, code, 2, with, 1, &type)->results[0];
        }
        r->pieces[p].inside = r->inside;
    }
    return acc;
}

static void set_in_pieces(rows *r, const tcc_value *field)
{
    tcc_value *v = tcc_value_map_get(r->pieces[0].map, (tcc_value *)field);
    for (int64_t p = 1; p < r->n_pieces; p++)
        tcc_value_map_set(r->pieces[p].map, field, v);
}

/* The share of the largest number that an extremum of none counts as: 0 where it is multiplied. */
static double share_of(const tcc_op *reduce)
{
    double share = 1;
    for (const tcc_use *u = reduce->results[0].uses; u; u = u->next)
        share = u->op->code == TCC_OP_arith_mul || u->op->code == TCC_OP_arith_fma || u->op->code == TCC_OP_arith_div
                    ? 0
                    : share;
    return share;
}

static void follow(rows *r, const tcc_op *reduce, tcc_value *before, tcc_value *after)
{
    take(r, &r->pieces[0]);
    tcc_follow(r->t, reduce, share_of(reduce), before, after);
    set_in_pieces(r, &reduce->results[0]);
    for (const tcc_use *u = reduce->results[0].uses; u; u = u->next)
        if (u->op->code == TCC_OP_tensor_before)
            set_in_pieces(r, &u->op->results[0]);
}

static tcc_value *combine(rows *r, tcc_op *loop, tcc_op *op)
{
    const tcc_op *reduce = tcc_reduced_at(op);
    tcc_value *before = tcc_block_add_arg(loop->regions[0], tile_type(r, reduce, r->kept), "acc");
    tcc_value *after = accumulate(r, before, reduce, op == reduce ? NULL : op);
    if (tcc_is_followed(reduce))
        follow(r, reduce, before, after);
    return after;
}

/* Whether a sweep computes a field: it varies along the row, or changes with what is reduced. */
static bool is_computed_in(const rows *r, const tcc_op *op, uintptr_t sweep)
{
    return tcc_has_field(op) && op->code != TCC_OP_tensor_before && op->code != TCC_OP_tensor_reduce &&
           (is_along_row(r, op) || sweep_of(r, &op->results[0]) > sweep);
}

/* A field in each piece, or once, of partial results. */
static void build_in_pieces(rows *r, tcc_op *op)
{
    bool along = is_along_row(r, op);
    for (int64_t p = 0; p < (along ? r->n_pieces : 1); p++) {
        take(r, &r->pieces[p]);
        build_op(r, op);
    }
    if (!along)
        set_in_pieces(r, &op->results[0]);
}

/* The fields that partial results are computed of: lanes have their own. */
static void find_partial(rows *r, const tcc_map *needed, uintptr_t sweep)
{
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (tcc_map_get(needed, op) && is_computed_in(r, op, sweep) && !is_along_row(r, op))
            *tcc_map_at(&r->partial, &op->results[0]) = op;
}

static tcc_op *build_loop(rows *r, const ops *reductions, uintptr_t sweep, bool last)
{
    values combined = {0};
    tcc_tiling outer = *r->t;
    tcc_map needed = find_needed(r, sweep, last);
    find_partial(r, &needed, sweep);
    tcc_op *loop = begin_loop(r, reductions);
    r->t->partial = &r->partial;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (!tcc_map_get(&needed, op)) {
            continue;
        } else if (is_goal(r, op, sweep, last) && tcc_reduced_at(op)) {
            tcc_value *acc = combine(r, loop, op);
            TCC_PUSH(r->w->ctx->scratch, &combined, acc);
        } else if (op->code == TCC_OP_tensor_write || is_computed_in(r, op, sweep)) {
            build_in_pieces(r, op);
        }
    tcc_op_create(&r->t->b, TCC_OP_scf_yield, combined.len, combined.data, 0, NULL);
    *r->t = outer;
    return loop;
}

/* What partial sums are multiplied by when what they followed is whole. */
static void build_last_factor(rows *r, const ops *reductions, tcc_op *loop, const tcc_op *rescale, uintptr_t sweep)
{
    tcc_map of = TCC_MAP(r->w->ctx->scratch);
    tcc_op *by = TCC_VIEW(tensor_rescale, rescale)->by->def;
    tcc_value_map *outer = r->t->map;
    r->t->map = tcc_value_map_within(r->w->ctx->scratch, outer);
    for (size_t i = 0; i < reductions->len; i++) {
        tcc_op *followed = reductions->data[i];
        tcc_value *whole = tcc_value_map_get(outer, &followed->results[0]);
        if (tcc_is_followed(followed))
            tcc_follow(r->t, followed, share_of(followed), &loop->results[i], whole);
    }
    *tcc_map_at(&of, by) = by;
    tcc_tiler_need(r->w, &of);
    r->t->partial = &r->partial;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (tcc_map_get(&of, op) && is_computed_in(r, op, sweep))
            compute(r, op);
    r->t->partial = NULL;
}

/* Brings partial sums in step with the whole of what they follow. */
static tcc_value *merge(rows *r, const ops *reductions, tcc_op *loop, size_t i, uintptr_t sweep)
{
    const tcc_op *rescale = tcc_rescale_of(reductions->data[i]);
    tcc_value *sums = &loop->results[i];
    tcc_value_map *outer = r->t->map;
    if (rescale) {
        build_last_factor(r, reductions, loop, rescale, sweep);
        tcc_value *factor = build_factor(r, rescale, sums);
        sums = TCC_EMIT(&r->t->b, arith_mul, sums->type, sums, factor);
        r->t->map = outer;
    }
    return sums;
}

static void build_sweep(rows *r, uintptr_t sweep, bool last)
{
    ops reductions = {0};
    bool any = false;
    for (tcc_op *op = r->w->f->body->first; op; op = op->next) {
        any |= is_goal(r, op, sweep, last);
        if (is_goal(r, op, sweep, last) && tcc_reduced_at(op))
            TCC_PUSH(r->w->ctx->scratch, &reductions, tcc_reduced_at(op));
    }
    if (!any)
        return;
    tcc_op *loop = build_loop(r, &reductions, sweep, last);
    for (size_t i = 0; i < reductions.len; i++) { /* what others follow comes before them */
        r->t->b.loc = reductions.data[i]->loc;
        finish(r, reductions.data[i], merge(r, &reductions, loop, i, sweep));
    }
}

static void build_sweeps(rows *r)
{
    uintptr_t last = find_sweeps(r);
    for (uintptr_t sweep = 1; sweep <= last; sweep++) {
        build_around(r, sweep);
        build_sweep(r, sweep, sweep == last);
    }
    for (tcc_op *op = r->w->f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write && !is_along_row(r, op))
            tcc_tiler_write(r->w, op);
}

/* ---- the kind --------------------------------------------------------------------------------- */

static bool find_tile(tcc_tiler *w)
{
    if (!tcc_attr_find(&w->f->attrs, "group") || !tcc_rows_tile_of(w->f, &w->space, &w->held))
        return false;
    w->t.sizes[0] = w->held.of.m;
    w->t.sizes[1] = w->held.of.n;
    return true;
}

/* Whether the rows' length is known or assumed to be a multiple of n elements. */
static bool is_multiple(const rows *r, int64_t n)
{
    const tcc_value *by;
    return tcc_assumes_multiple(r->w->f, r->p->extents[r->along], n, &by);
}

static bool follows_any(const tcc_func *f)
{
    const tcc_op *op = f->body->first;
    while (op && op->code != TCC_OP_tensor_before)
        op = op->next;
    return op;
}

/* How many partial results there are of a row: a lane has as many as its vectors have elements, several at least, or,
 * of rows in parts, as many as a tile. Rows beside each other have one a warp. Where sums follow partial results, a tile
 * is taken in pieces that have as many elements. */
static void divide(rows *r, const tcc_pointwise_tile *tile)
{
    enum { LEAST = 4 };
    int64_t lanes = TCC_WARP_LANES / (tile->lanes ? tile->lanes : 1) * tile->warps[1];
    r->n_pieces = 1;
    r->kept = r->along ? tile->n : tile->warps[0];
    if (r->along && !r->w->held.one_sweep && !tcc_rows_parts(r->w->f)) {
        r->kept = lanes * tile->vector;
        while (r->kept < lanes * LEAST && tile->n % (2 * r->kept) == 0)
            r->kept *= 2;
    }
    if (!r->w->held.one_sweep && follows_any(r->w->f)) {
        r->n_pieces = tile->n / r->kept;
        r->t->sizes[r->along] = r->kept;
    }
    r->pieces = TCC_NEW_ARRAY(r->w->ctx->scratch, piece, r->n_pieces);
}

static void build(tcc_tiler *w)
{
    const tcc_pointwise_tile *tile = &w->held.of;
    const tcc_space *p = &w->space;
    rows r = {.w = w, .p = p, .t = &w->t, .along = p->along, .sweeps = TCC_MAP(w->ctx->scratch),
              .partial = TCC_MAP(w->ctx->scratch), .powers = tcc_softmax_find(w->f, w->ctx->scratch),
              .masked = TCC_MAP(w->ctx->scratch)};
    enum { SPREAD = 3, OF_LANES = 5 };
    tcc_attr_set_ints(w->f->ir, &w->grid->attrs, "spread", tile->lanes > 1 ? OF_LANES : SPREAD,
                      (int64_t[]){tile->vector, tile->warps[0], tile->warps[1], 1, tile->lanes});
    for (r.unit = p->along ? tile->vector : 1; r.unit > 1 && !is_multiple(&r, r.unit);)
        r.unit /= 2;
    r.whole = !p->extents[r.along].name && p->extents[r.along].size % w->t.sizes[r.along] == 0 &&
              !tcc_attr_find(&w->f->attrs, "groups");
    r.group = tcc_attr_int(&w->f->attrs, "groups", 1);
    r.first = tcc_build_i32(&w->t.b, 0);
    if (r.group > 1) {
        r.before = build_before(&r);
        r.first = tcc_arith_bin(&w->t.b, TCC_OP_arith_sub, r.first, r.before);
    }
    divide(&r, tile);
    if (w->held.one_sweep)
        build_whole_rows(&r);
    else
        build_sweeps(&r);
}

const tcc_tile_kind tcc_tile_rows = {find_tile, NULL, build};

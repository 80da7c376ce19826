/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/pointwise.h"

#include <string.h>

#include "ir/assume.h"
#include "ir/machine.h"
#include "passes/tiling.h"

enum { ACCESS_BITS = 128 };

static const char NO_INDEX[] = "(one)"; /* along which an output without dimensions has its element */

/* ---- the index space ---------------------------------------------------------------------- */

static bool is_of_terms(const tcc_op *reduce, tcc_arena *arena)
{
    tcc_map ops = TCC_MAP(arena);
    bool all = true;
    for (unsigned i = 0; i < reduce->n_operands; i++)
        all &= tcc_find_elementwise(reduce->operands[i], arena, &ops);
    return all;
}

/* The first output, where all have its indices and nothing keeps the function from being computed so. */
static const tcc_op *find_output(const tcc_func *f)
{
    const tcc_op *first = NULL;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        if (op->code == TCC_OP_tile_grid || (op->code == TCC_OP_tensor_reduce && !is_of_terms(op, f->ir->arena)))
            return NULL;
        if (op->code != TCC_OP_tensor_write)
            continue;
        first = first ? first : op;
        if (!tcc_writes_share_space(first, op))
            return NULL;
    }
    return first;
}

static bool is_tiled(const tcc_func *f, const char *index)
{
    return tcc_tile_size_of(f, index, 0) > 0;
}

static bool is_computed_with(const tcc_func *f, const char *index)
{
    bool is = false;
    for (const tcc_op *op = f->body->first; op && !is; op = op->next)
        is = tcc_access_computes_with(op, index);
    return is;
}

/* The innermost index but `other`. One that the schedule tiles comes before those that it does not, and one that
 * coordinates are computed with last: where it has one value in a tile, these are the same in all of it, or run along
 * the tile's rows. */
static const char *innermost(const tcc_func *f, tcc_attr map, const char *other)
{
    enum { COMPUTED, PLAIN, TILED };
    const char *found = NULL;
    int rank = COMPUTED;
    for (size_t i = 0; i < map.list.n; i++) {
        const char *x = map.list.items[i].s;
        int of_x = is_tiled(f, x) ? TILED : is_computed_with(f, x) ? COMPUTED : PLAIN;
        if (!strcmp(x, other) || of_x < rank)
            continue;
        found = x;
        rank = of_x;
    }
    return found;
}

/* Whether what is added to n is a multiple of every vector: of numbers that are, or of rows as long as the outputs'. */
static bool begins_at_vectors(const tcc_pointwise *p, const tcc_index_expr *at)
{
    enum { MOST = ACCESS_BITS / 8 };
    bool all = true;
    for (size_t i = 0; i < at->n && all; i++) {
        const tcc_index_term *term = &at->terms[i];
        bool is = term->number % MOST == 0;
        for (size_t n = 0; n < term->n; n++) {
            const tcc_index_factor *factor = &term->factors[n];
            is |= factor->kind == TCC_FACTOR_INDEX && !strcmp(factor->name, p->axes[1]);
            is |= factor->kind == TCC_FACTOR_DIM && p->extents[1].name && !strcmp(factor->name, p->extents[1].name);
        }
        all = is;
    }
    return all;
}

bool tcc_pointwise_runs_along(const tcc_pointwise *p, const tcc_op *op)
{
    const char *last = tcc_access_is_plain(op) ? tcc_access_last(op) : NULL;
    tcc_tiling t = {.b = {.func = op->block->func}, .axes = {p->axes[0], p->axes[1]}, .sizes = {2, 2}};
    size_t rank = tcc_access_rank(op);
    int64_t dims[2];
    if (tcc_access_is_plain(op))
        return last && !strcmp(last, p->axes[1]);
    return tcc_tiling_window(&t, op, dims) && dims[1] == (int64_t)rank - 1 &&
           begins_at_vectors(p, tcc_access_expr(op, rank - 1));
}

bool tcc_pointwise_find(const tcc_func *f, tcc_pointwise *out)
{
    tcc_contraction c;
    const tcc_op *write = tcc_contraction_find(f, &c) ? NULL : find_output(f);
    tcc_attr map = write ? tcc_access_indices(write) : (tcc_attr){0};
    if (!write || map.list.n + 1 > TCC_MAX_AXES)
        return false;
    const tcc_type *t = tcc_accessed_tensor(write)->type;
    size_t last = map.list.n ? map.list.n - 1 : 0;
    const char *n = map.list.n ? map.list.items[last].s : NO_INDEX, *m = innermost(f, map, n);
    *out = (tcc_pointwise){
        .n_axes = 2, .axes = {m ? m : "", n}, .extents = {{NULL, 1}, map.list.n ? t->dims[last] : (tcc_dim){NULL, 1}}};
    if (m)
        out->extents[0] = t->dims[tcc_map_position(write, m)];
    for (size_t i = 0; i < map.list.n; i++) {
        const char *x = map.list.items[i].s;
        if (!strcmp(x, out->axes[0]) || !strcmp(x, n))
            continue;
        out->axes[out->n_axes] = x;
        out->extents[out->n_axes++] = t->dims[i];
    }
    unsigned bits = 8;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        const tcc_value *tensor = tcc_accessed_tensor(op);
        bool large = tensor && tensor->type->rank >= map.list.n && tcc_pointwise_runs_along(out, op);
        if (large && tcc_scalar_bits(tensor->type->elem) > bits)
            bits = tcc_scalar_bits(tensor->type->elem);
    }
    out->vector = tcc_contraction_is_naive(f) || !map.list.n ? 1 : ACCESS_BITS / bits;
    return true;
}

/* ---- tiles -------------------------------------------------------------------------------- */

int64_t tcc_pointwise_bytes(const tcc_pointwise *p, const tcc_value *tensor)
{
    int64_t bits = p->vector * tcc_scalar_bits(tensor->type->elem);
    return (bits < ACCESS_BITS ? bits : ACCESS_BITS) / 8;
}

bool tcc_pointwise_is_aligned(const tcc_func *f, const tcc_pointwise *p, const tcc_value *tensor)
{
    int64_t bytes = tcc_pointwise_bytes(p, tensor);
    return tcc_assumes_align(f, tensor, bytes) && tcc_assumes_pitch(f, tensor, bytes);
}

int64_t tcc_pointwise_vector(const tcc_func *f, const tcc_pointwise *p)
{
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write && tcc_pointwise_runs_along(p, op) &&
            !tcc_pointwise_is_aligned(f, p, tcc_accessed_tensor(op)))
            return 1;
    return p->vector;
}

/* Rows first: as many warps as there are powers of two in what they share. */
static void stand(tcc_pointwise_tile *t)
{
    t->warps[0] = t->warps[1] = 1;
    while (t->warps[0] < TCC_POINTWISE_WARPS && t->m % (2 * t->warps[0]) == 0)
        t->warps[0] *= 2;
    while (t->warps[0] * t->warps[1] < TCC_POINTWISE_WARPS &&
           t->n % (TCC_WARP_LANES * t->vector * 2 * t->warps[1]) == 0)
        t->warps[1] *= 2;
}

bool tcc_pointwise_arrange(tcc_pointwise_tile *t, int64_t m, int64_t n, int64_t vector)
{
    *t = (tcc_pointwise_tile){m, n, vector, {1, 1}};
    for (; t->vector; t->vector /= 2) {
        if (n % (TCC_WARP_LANES * t->vector))
            continue;
        stand(t);
        if (m * n <= TCC_POINTWISE_MOST_ELEMENTS * TCC_WARP_LANES * t->warps[0] * t->warps[1])
            return true;
    }
    return false;
}

bool tcc_pointwise_tile_of(const tcc_func *f, const tcc_pointwise *p, tcc_pointwise_tile *t)
{
    return tcc_pointwise_arrange(t, tcc_tile_size_of(f, p->axes[0], 1), tcc_tile_size_of(f, p->axes[1], 1),
                                 tcc_pointwise_vector(f, p));
}

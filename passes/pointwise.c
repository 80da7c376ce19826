/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/pointwise.h"

#include <string.h>

#include "ir/assume.h"
#include "ir/machine.h"
#include "passes/tiling.h"

enum { ACCESS_BITS = 128 };

/* ---- along n --------------------------------------------------------------------------------- */

/* Whether what is added to n is a multiple of every vector: of numbers that are, or of rows as long as the outputs'. */
static bool begins_at_vectors(const tcc_space *p, const tcc_index_expr *at)
{
    enum { MOST = ACCESS_BITS / 8 };
    bool all = true;
    for (size_t i = 0; i < at->n && all; i++) {
        const tcc_index_term *term = &at->terms[i];
        bool is = term->number % MOST == 0;
        for (size_t n = 0; n < term->n; n++) {
            const tcc_index_factor *factor = &term->factors[n];
            is |= factor->kind == TCC_FACTOR_INDEX && tcc_index_same(factor->name, p->axes[1]);
            is |= factor->kind == TCC_FACTOR_DIM && p->extents[1].name && !strcmp(factor->name, p->extents[1].name);
        }
        all = is;
    }
    return all;
}

bool tcc_pointwise_runs_along(const tcc_space *p, const tcc_op *op)
{
    const char *last = tcc_access_is_plain(op) ? tcc_access_last(op) : NULL;
    tcc_tiling t = {.b = {.func = op->block->func}, .axes = {p->axes[0], p->axes[1]}, .sizes = {2, 2}};
    size_t rank = tcc_access_rank(op);
    int64_t dims[2];
    if (tcc_access_is_plain(op))
        return last && tcc_index_same(last, p->axes[1]);
    return tcc_tiling_window(&t, op, dims) && dims[1] == (int64_t)rank - 1 &&
           tcc_type_has_rows(tcc_accessed_tensor(op)->type) && begins_at_vectors(p, tcc_access_expr(op, rank - 1));
}

/* Whether an access varies along rows that are not contiguous. */
static bool has_row(const tcc_space *p, const tcc_op *access)
{
    return access->n_results ? tcc_field_has_index(access->results[0].type, p->row)
                             : tcc_map_position(access, p->row) >= 0;
}

/* The bits of the widest elements along n, of the largest tensors: those of parts of a row have fewer indices than its
 * sums; of rows beside each other, those that have them. */
static unsigned widest(const tcc_func *f, const tcc_space *p)
{
    unsigned most = (unsigned)p->n_axes - (!*p->axes[0] || !p->along), bits = 8, rank = 0;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (tcc_accessed_tensor(op) && tcc_pointwise_runs_along(p, op) && tcc_accessed_tensor(op)->type->rank > rank)
            rank = tcc_accessed_tensor(op)->type->rank;
    rank = !p->row || rank > most ? most : rank;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        const tcc_value *tensor = tcc_accessed_tensor(op);
        bool large = tensor && tcc_pointwise_runs_along(p, op) &&
                     (p->row && !p->along ? has_row(p, op) : tensor->type->rank >= rank);
        if (large && tcc_scalar_bits(tensor->type->elem) > bits)
            bits = tcc_scalar_bits(tensor->type->elem);
    }
    return bits;
}

int64_t tcc_pointwise_most(const tcc_func *f, const tcc_space *p)
{
    bool single = tcc_is_naive(f) || !strcmp(p->axes[1], tcc_no_index);
    return single ? 1 : ACCESS_BITS / widest(f, p);
}

/* ---- tiles -------------------------------------------------------------------------------- */

int64_t tcc_pointwise_bytes(const tcc_space *p, const tcc_value *tensor)
{
    int64_t bits = p->vector * tcc_scalar_bits(tensor->type->elem);
    return (bits < ACCESS_BITS ? bits : ACCESS_BITS) / 8;
}

bool tcc_pointwise_is_aligned(const tcc_func *f, const tcc_space *p, const tcc_value *tensor)
{
    int64_t bytes = tcc_pointwise_bytes(p, tensor);
    return tcc_assumes_align(f, tensor, bytes) && tcc_assumes_pitch(f, tensor, bytes);
}

int64_t tcc_pointwise_vector(const tcc_func *f, const tcc_space *p)
{
    if (tcc_attr_find(&f->attrs, "groups"))
        return p->vector;
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
    *t = (tcc_pointwise_tile){.m = m, .n = n, .vector = vector, .warps = {1, 1}};
    for (; t->vector; t->vector /= 2) {
        if (n % (TCC_WARP_LANES * t->vector))
            continue;
        stand(t);
        if (m * n <= TCC_POINTWISE_MOST_ELEMENTS * TCC_WARP_LANES * t->warps[0] * t->warps[1])
            return true;
    }
    return false;
}

bool tcc_pointwise_is_turned(const tcc_space *p, const tcc_op *op)
{
    const tcc_func *f = op->block->func;
    const char *last = op->code == TCC_OP_tensor_read && tcc_access_is_plain(op) ? tcc_access_last(op) : NULL;
    bool is = last && !p->row && tcc_index_same(last, p->axes[0]) &&
              tcc_field_has_index(op->results[0].type, p->axes[1]) &&
              !tcc_target_can(tcc_func_target(f), TCC_CAN_buffer) && !tcc_is_naive(f);
    for (const tcc_op *other = f->body->first; other && is; other = other->next)
        is = other->code != TCC_OP_tensor_reduce;
    return is;
}

enum { BLOCK_ROWS = 4, BLOCK_COLUMNS = 8 }; /* lanes that are below each other, and beside each other */

int64_t tcc_pointwise_block(const tcc_func *f, const tcc_space *p)
{
    enum { LEAST = 4, MOST = 8 };
    int64_t side = tcc_pointwise_vector(f, p), lanes[] = {BLOCK_ROWS, BLOCK_COLUMNS};
    bool turns = false;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        turns |= tcc_pointwise_is_turned(p, op) && tcc_pointwise_is_aligned(f, p, tcc_accessed_tensor(op));
    side = side > MOST ? MOST : side;
    for (int x = 0; x < 2; x++)
        turns &= p->extents[x].name || p->extents[x].size >= side * lanes[x];
    return turns && side >= LEAST ? side : 0;
}

bool tcc_pointwise_arrange_blocks(tcc_pointwise_tile *t, int64_t m, int64_t n, int64_t side)
{
    int64_t rows = BLOCK_ROWS * side, columns = BLOCK_COLUMNS * side;
    *t = (tcc_pointwise_tile){.m = m, .n = n, .vector = side, .warps = {1, 1}, .blocks = true};
    if (!side)
        return false;
    while (t->warps[0] < TCC_POINTWISE_WARPS && m % (2 * t->warps[0] * rows) == 0)
        t->warps[0] *= 2;
    while (t->warps[0] * t->warps[1] < TCC_POINTWISE_WARPS && n % (2 * t->warps[1] * columns) == 0)
        t->warps[1] *= 2;
    return m % rows == 0 && n % columns == 0 &&
           m * n <= TCC_POINTWISE_MOST_ELEMENTS * TCC_WARP_LANES * t->warps[0] * t->warps[1];
}

bool tcc_pointwise_tile_of(const tcc_func *f, const tcc_space *p, tcc_pointwise_tile *t)
{
    if (tcc_pointwise_arrange_blocks(t, tcc_tile_size_of(f, p->axes[0], 1), tcc_tile_size_of(f, p->axes[1], 1),
                                     tcc_pointwise_block(f, p)))
        return true;
    return tcc_pointwise_arrange(t, tcc_tile_size_of(f, p->axes[0], 1), tcc_tile_size_of(f, p->axes[1], 1),
                                 tcc_pointwise_vector(f, p));
}

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

/* The first output, where all have its indices, apart from a row's, and nothing keeps the function from being computed
 * so. */
static const tcc_op *find_output(const tcc_func *f, bool has_rows)
{
    const tcc_op *first = NULL;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        bool reduces = !has_rows && op->code == TCC_OP_tensor_reduce;
        if (op->code == TCC_OP_tile_grid ||
            (reduces && (tcc_attr_find(&op->attrs, "parts") || !is_of_terms(op, f->ir->arena))))
            return NULL;
        if (op->code != TCC_OP_tensor_write)
            continue;
        first = first ? first : op;
        if (!has_rows && !tcc_writes_share_space(first, op))
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

/* The indices of an output, and their extents; of a row kernel the one along which memory is contiguous comes last, and
 * another row's is none of them. */
typedef struct output {
    size_t n;
    const char **indices;
    tcc_dim *extents;
} output;

static void add_index(output *out, const char *index, tcc_dim extent)
{
    out->indices[out->n] = index;
    out->extents[out->n++] = extent;
}

static output indices_of(const tcc_func *f, const tcc_op *write, const char *row, const char *beside)
{
    size_t rank = tcc_access_rank(write);
    const char *last = beside ? beside : row;
    output out = {0, TCC_NEW_ARRAY(f->ir->arena, const char *, rank + 2), TCC_NEW_ARRAY(f->ir->arena, tcc_dim, rank + 2)};
    for (size_t d = 0; d < rank; d++)
        if (!row || (strcmp(tcc_access_index(write, d), row) && strcmp(tcc_access_index(write, d), last)))
            add_index(&out, tcc_access_index(write, d), tcc_accessed_tensor(write)->type->dims[d]);
    if (row)
        add_index(&out, last, tcc_index_extent(f, last));
    if (!out.n)
        add_index(&out, NO_INDEX, (tcc_dim){NULL, 1});
    return out;
}

/* The innermost index but the last; out->n: there is none. One that the schedule tiles comes before those that it does
 * not, and one that coordinates are computed with last: where it has one value in a tile, these are the same in all of
 * it, or run along the tile's rows. */
static size_t innermost(const tcc_func *f, const output *out)
{
    enum { COMPUTED, PLAIN, TILED };
    size_t found = out->n;
    int rank = COMPUTED;
    for (size_t i = 0; i + 1 < out->n; i++) {
        const char *x = out->indices[i];
        int of_x = is_tiled(f, x) ? TILED : is_computed_with(f, x) ? COMPUTED : PLAIN;
        if (of_x < rank)
            continue;
        found = i;
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

/* Whether an access varies along rows that are not contiguous. */
static bool has_row(const tcc_pointwise *p, const tcc_op *access)
{
    return access->n_results ? tcc_field_has_index(access->results[0].type, p->row)
                             : tcc_map_position(access, p->row) >= 0;
}

/* The bits of the widest elements along n, of the largest tensors: those of parts of a row have fewer indices than its
 * sums; of rows beside each other, those that have them. */
static unsigned widest(const tcc_func *f, const tcc_pointwise *p, unsigned most)
{
    unsigned bits = 8, rank = 0;
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

bool tcc_pointwise_find(const tcc_func *f, tcc_pointwise *out)
{
    tcc_space c;
    const char *row = tcc_attr_str(&f->attrs, "row", NULL), *beside = tcc_attr_str(&f->attrs, "beside", NULL);
    const tcc_op *write = tcc_contraction_find(f, &c) ? NULL : find_output(f, row);
    if (!write || tcc_access_rank(write) + 2 > TCC_MAX_AXES)
        return false;
    output of = indices_of(f, write, row, beside);
    size_t last = of.n - 1, m = beside ? of.n : innermost(f, &of);
    *out = (tcc_pointwise){
        .n_axes = 2, .axes = {"", of.indices[last]}, .extents = {{NULL, 1}, of.extents[last]}, .row = row, .along = !beside};
    if (beside) {
        out->axes[0] = row;
        out->extents[0] = tcc_index_extent(f, row);
    } else if (m < of.n) {
        out->axes[0] = of.indices[m];
        out->extents[0] = of.extents[m];
    }
    for (size_t i = 0; i < last; i++)
        if (i != m) {
            out->axes[out->n_axes] = of.indices[i];
            out->extents[out->n_axes++] = of.extents[i];
        }
    bool single = tcc_contraction_is_naive(f) || of.indices[last] == NO_INDEX;
    out->vector = single ? 1 : ACCESS_BITS / widest(f, out, (unsigned)of.n);
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

/* Whether a lane can store vectors of unaligned rows: not by buffers, half bytes, nor where others read. */
static bool stores_anywhere(const tcc_func *f, const tcc_value *tensor)
{
    bool can = !tcc_target_can(tcc_func_target(f), TCC_CAN_buffer) && tcc_scalar_bits(tensor->type->elem) >= 8;
    for (const tcc_op *op = f->body->first; op && can; op = op->next)
        can = op->code != TCC_OP_tensor_read || tcc_accessed_tensor(op) != tensor;
    return can;
}

int64_t tcc_pointwise_vector(const tcc_func *f, const tcc_pointwise *p)
{
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write && tcc_pointwise_runs_along(p, op) &&
            !tcc_pointwise_is_aligned(f, p, tcc_accessed_tensor(op)) && !stores_anywhere(f, tcc_accessed_tensor(op)))
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

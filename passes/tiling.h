/* tiling: ops on fields as ops on tiles.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_TILING_H
#define TCC_PASSES_TILING_H

#include "ir/index.h"
#include "ir/ir.h"
#include "ir/reduction.h"
#include "passes/pass.h"
#include "support/map.h"

/* Indices x and y run along a tile's rows and columns. A field becomes a tile whose extent is 1 along each
 * that it does not have. Where an operand of the products has no index of its own, x or y is a name that no field
 * has; the sum's tile runs along it all the same, and so does what is computed. */
typedef struct tcc_tiling {
    tcc_builder b; /* where the ops on tiles go */
    const char *axes[2];
    int64_t sizes[2];
    const struct tcc_place *places; /* where it is */
    tcc_value_map *map; /* what fields have become */
    const tcc_map *partial; /* fields that become whole tiles whatever indices they have; NULL: none do */
} tcc_tiling;

/* The first value that an index has in the tile, from here on; what it is. */
void tcc_tiling_place(tcc_tiling *t, const char *index, tcc_value *first);
tcc_value *tcc_tiling_first(const tcc_tiling *t, const char *index);

/* The tile that a field becomes. */
const tcc_type *tcc_tiling_type(const tcc_tiling *t, const tcc_type *field, bool is_read);
/* v repeated to `type`'s extents. */
tcc_value *tcc_tiling_broadcast(tcc_tiling *t, tcc_value *v, const tcc_type *type);
/* tile.load or tile.store of what a tensor.read or tensor.write accesses: operands are `head`, then each
 * dimension's first index. */
tcc_op *tcc_tiling_access(tcc_tiling *t, const tcc_op *op, tcc_opcode code, tcc_value *const *head,
                          size_t n_head, size_t n_results, const tcc_type *const *types);
/* The tile that a tensor.read reads: a window of the tensor, or elements from anywhere (tile_reads.c). */
tcc_op *tcc_tiling_read(tcc_tiling *t, tcc_op *read, const tcc_type *tile);
/* Whether that is a window; dims: the tensor's dimension along each of the tile's directions, or -1. Only axes, sizes
 * and the function matter. */
bool tcc_tiling_window(const tcc_tiling *t, const tcc_op *read, int64_t dims[2]);
/* The numbers that a tensor.index is, as a tile. */
tcc_value *tcc_tiling_index(tcc_tiling *t, const tcc_op *op);
/* An expression's value where indices have the first values that they have in the tile. */
tcc_value *tcc_tiling_number(tcc_tiling *t, const tcc_index_expr *x);
/* Requires of a launch that the values of an expression are i32, and those of what its quotients divide
 * (index_reach.c). */
void tcc_require_reach(tcc_func *f, const tcc_index_expr *x);
/* Rebuilds a tensor.read, a tensor.index or an elementwise op whose result is a field; of other ops it does nothing. */
void tcc_tiling_op(tcc_tiling *t, tcc_op *op);

/* The load whose tile an operand of an MMA is or, if it is computed elementwise in the MMA's block, the first
 * load there of its extents that it is computed of; NULL when there is none. */
tcc_op *tcc_tiled_load(const tcc_op *mma, unsigned operand, tcc_arena *scratch);

/* Whether an operand is computed elementwise of a load. */
bool tcc_mma_computes(const tcc_op *mma, unsigned operand, tcc_arena *scratch);
/* Whether it is, and comes to a warpgroup's MMA through stages: B and, beside such a B, A. */
bool tcc_mma_puts(const tcc_op *mma, unsigned operand, tcc_arena *scratch);

/* Reports what an op beside a sum, of an operand that is computed, or in a sum that no instruction takes, reads, writes
 * or converts and the target cannot. */
bool tcc_tiling_check_elements(tcc_pass_ctx *ctx, const tcc_op *op);

/* A tile of what changes no result of a sum, maximum or minimum. */
tcc_value *tcc_tiling_start(tcc_tiling *t, const tcc_type *tile, tcc_reduction kind);

#endif

/* chunks: what the files of chunk-epilogue share: an epilogue, and the chunks that it is computed in.
 *
 * chunk_epilogue.c the pass: what is computed, in which chunks; strips on their way through shared memory
 * chunks.c         the ops of a chunk; chunks one after the other, or in loops
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_CHUNKS_H
#define TCC_PASSES_CHUNKS_H

#include "ir/schedule_key.h"
#include "passes/lowering.h"
#include "support/map.h"

enum {
    TCC_CHUNK_COLUMNS = 32,
    TCC_CHUNK_BLOCKS = 16, /* of rows */
    TCC_CHUNK_STRIPS = TCC_KEY_strips_max
};

typedef struct tcc_chunk_item {
    tcc_op *op;
    bool rows, cols;   /* extent of the result along m and n is not 1 */
    int64_t span;      /* columns of chunks that it is computed for at a time */
    tcc_value *buffers[TCC_CHUNK_STRIPS]; /* of a store through shared memory, which strips take in turn */
    tcc_value **values; /* of chunks: of each block of a column, column by column; in loops of the first column */
} tcc_chunk_item;

typedef struct tcc_chunks {
    tcc_ir *ir;
    tcc_op *role, *loop; /* what runs it again and again; or NULL */
    tcc_block *whole;    /* the block that it ends */
    tcc_chunk_item *items;
    size_t n_items;
    tcc_map by_value; /* results to their items */
    int64_t m, n;     /* of the tile */
    int64_t rows, cols, n_blocks, n_columns;
    int64_t n_staged, n_in_words; /* stores through shared memory, those of them that are sent in words */
    int64_t strip, begin, end;  /* columns of chunks that are staged together; those of the current strip */
    int64_t n_strips;           /* that have buffers */
    bool by_block;     /* the smallest chunk there is, one after the other */
    int64_t of_thread; /* elements of a chunk */
    int64_t ahead;     /* columns of chunks by which loads of tiles run ahead */
    TCC_VEC(tcc_value *) carried; /* tiles from before */
    TCC_VEC(tcc_value *) turned;  /* what a loop carries of each tile */
    tcc_builder b;
    int64_t column, block; /* the current chunk; in a loop column is 0 */
    tcc_value *first[2];   /* row, and column in the strip, of the chunk where they are not constants; else NULL */
} tcc_chunks;

/* With loads a few columns ahead, those of tiles as many as e->ahead. */
void tcc_chunks_unroll(tcc_chunks *e);
/* Before that: the first loads of tiles, in front of the loop that computes what the epilogue, from op `first` on,
 * begins with. */
void tcc_chunks_load_before_loop(tcc_chunks *e, tcc_op *first);

/* Along m first: what is the same for all rows then lives for a column. Words are of so many rows of a block that their
 * addresses, which are the same in the next column, would fill the registers until then: along n first. */
void tcc_chunks_blocks(tcc_chunks *e);

/* Chunks in groups of this many, if registers are scarce. Otherwise ptxas would move the loads and
 * addresses of all of them together, and spill: it moves no access across the pin, and no address
 * across the op that hides the column. */
void tcc_chunks_groups(tcc_chunks *e, int64_t group);

/* The body of a loop over columns or rows, in which the current chunk is the first. */
void tcc_chunks_loop(tcc_chunks *e, int dim, bool nested);

/* The number of a value among those from before; as many as there are: it is not there. */
size_t tcc_chunks_carried(const tcc_chunks *e, const tcc_value *v);
/* The type of so many columns of chunks of a tile; NULL: it cannot be divided so. */
const tcc_type *tcc_chunks_type(const tcc_chunks *e, const tcc_type *tile, int64_t columns);
bool tcc_chunks_constant(const tcc_value *v);

#endif

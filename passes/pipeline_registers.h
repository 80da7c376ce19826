/* pipeline_registers: what the files of pipeline-registers share: MMAs that share a ring.
 *
 * pipeline_registers.c the pass: loops of any kind
 * find_groups.c        which MMAs share a ring
 * pipeline_sum.c       loops that do nothing but to add tiles along k
 * pipeline_streams.c   loops in which MMAs multiply what is computed of others' results
 * pipeline_groups.c    loops whose rounds are read ahead: copied to shared memory in groups, or put there by warps
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_PIPELINE_REGISTERS_H
#define TCC_PASSES_PIPELINE_REGISTERS_H

#include "passes/arith.h"
#include "passes/loops.h"
#include "support/map.h"

enum { TCC_STAGES = 2 }; /* of a loop ahead of itself: a third tile waits in registers */

/* An operand of MMAs: x is 0 for a, m x k, 1 for b, k x n. One that is computed of its load is in no stage. */
typedef struct tcc_operand {
    tcc_op *load;
    int x;
    tcc_value *buffer, *computed;
} tcc_operand;

/* An MMA, whose operands are these of its group's sources. */
typedef struct tcc_product {
    tcc_op *mma;
    size_t of[2];
} tcc_product;

/* MMAs of one block that share operands or are sums of one loop, and their ring. */
typedef struct tcc_group {
    tcc_ir *ir;
    tcc_arena *scratch;
    TCC_VEC(tcc_operand) sources;
    TCC_VEC(tcc_product) products; /* in order */
    tcc_value *ring;
    int64_t stages, depth; /* k of a tile */
    int64_t round;         /* k that is read at a time */
    bool copies;    /* stages are filled by async.copy, not by async.put; */
    bool in_groups; /* by copies that threads wait for in groups */
} tcc_group;

typedef TCC_VEC(tcc_group *) tcc_groups;

/* Those of a function, in order. */
tcc_groups tcc_groups_find(tcc_arena *scratch, const tcc_func *f);

static inline tcc_op *tcc_group_first(const tcc_group *g)
{
    return g->products.data[0].mma;
}

static inline tcc_loc tcc_group_loc(const tcc_group *g)
{
    return tcc_group_first(g)->loc;
}

/* The op in which they are. */
static inline tcc_op *tcc_group_loop(const tcc_group *g)
{
    return tcc_group_first(g)->block->parent;
}

/* Room for a tile of each source, so many times; and for what the MMAs add to. */
static inline tcc_value **tcc_group_tiles(const tcc_group *g, size_t times)
{
    return TCC_NEW_ARRAY(g->scratch, tcc_value *, times * g->sources.len);
}

static inline tcc_value **tcc_group_accumulators(const tcc_group *g)
{
    return TCC_NEW_ARRAY(g->scratch, tcc_value *, g->products.len);
}

static inline void tcc_meet(tcc_builder *b)
{
    TCC_EMIT_V(b, async_barrier, NULL);
}

/* Whether all that goes through stages is copied in one of these ways. */
bool tcc_group_is_copied(const tcc_group *g, const char *ways);
/* Stages for what its MMAs multiply, and their ring. */
void tcc_group_ring(tcc_group *g, tcc_builder *b);
/* A load, its coordinates mapped. */
tcc_op *tcc_group_load(const tcc_group *g, tcc_builder *b, const tcc_op *load, const tcc_value_map *map);
/* Puts tiles, one of each source, into the stage of iteration i. */
void tcc_group_put(const tcc_group *g, tcc_builder *b, tcc_value *i, tcc_value *const *tiles);
/* Copies the tiles of iteration i, whose coordinates are in the map, into its stage: one of several parts, the last of
 * which commits all. */
void tcc_group_copy(const tcc_group *g, tcc_builder *b, tcc_value *i, const tcc_value_map *map, size_t part,
                    size_t parts);
/* Waits until the copies of iteration i have landed, while those of the last `pending` may be in flight, and
 * synchronizes. */
void tcc_group_wait(const tcc_group *g, tcc_builder *b, tcc_value *i, int64_t pending);
/* The operands of a round of iteration i. */
void tcc_group_read(const tcc_group *g, tcc_builder *b, tcc_value *i, int64_t round, tcc_value **parts);
/* Adds the products of such parts to the sums. */
void tcc_group_multiply(const tcc_group *g, tcc_builder *b, tcc_value *const *parts, tcc_value **acc);

/* Erases the MMAs, and the loads that are no longer used. */
void tcc_group_erase(tcc_group *g);
/* The numbers of a loop's body that follow from its index; whether those of the next iteration's loads do, and they
 * may be done in this one; those of the iteration with this index. */
tcc_map tcc_group_find_numbers(tcc_arena *scratch, const tcc_op *loop);
bool tcc_group_can_load_ahead(const tcc_group *g, const tcc_map *of_index);
tcc_value_map *tcc_group_numbers_of(const tcc_group *g, tcc_builder *b, const tcc_map *of_index,
                                    tcc_value *index);
/* The tiles of the iteration with this index. */
void tcc_group_load_iteration(const tcc_group *g, tcc_builder *b, const tcc_map *of_index, tcc_value *index,
                              tcc_value **tiles);
/* The loop, carrying n values more, which are `values` at first and become its new arguments; it yields n values
 * more. */
tcc_op *tcc_group_carry(tcc_ir *ir, tcc_op *old, size_t n, tcc_value **values);
void tcc_group_yield(tcc_ir *ir, tcc_block *body, size_t n, tcc_value *const *values);

/* ---- pipeline_groups.c ------------------------------------------------------------------- */

/* Fills the stage of iteration i: by copies, one of several parts of them, or with its tiles, which are then those of
 * the next iteration. */
void tcc_group_fill(const tcc_group *g, tcc_builder *b, const tcc_map *of_index, tcc_value *i, tcc_value **tiles,
                    size_t part, size_t parts);
/* Iterations that stages are filled ahead. */
int64_t tcc_group_ahead(const tcc_group *g);
/* Before a loop whose stages are filled ahead: the ring, and the stages of its first iterations, with the tiles of the
 * next one if they go through registers. */
void tcc_group_begin(tcc_group *g, tcc_builder *b, const tcc_map *of_index, tcc_value **tiles);
/* Until iteration i's tile is there, for all warps. */
void tcc_group_wait_for(const tcc_group *g, tcc_builder *b, tcc_value *i);
/* Behind the loop: nothing is on its way any more. */
void tcc_group_end(const tcc_group *g, tcc_op *loop);

/* Has what fills the stages, and what is read of them, run ahead of the loop; false when it is none in which that
 * can. */
bool tcc_copy_ahead(tcc_arena *scratch, tcc_group *g);

/* ---- pipeline_streams.c ------------------------------------------------------------------ */

/* The same for a loop in which an MMA multiplies what is computed of another one's result; false when it is none. */
bool tcc_pipeline_stream(tcc_arena *scratch, tcc_op *loop);

/* ---- pipeline_sum.c ---------------------------------------------------------------------- */

/* The tiles along a dimension that a loop adds: all of them, or one in so many parts of them, in turn. */
typedef struct tcc_tiles {
    tcc_dim k;
    int64_t parts;
    tcc_value *part; /* NULL: all */
} tcc_tiles;

/* Whether a loop does nothing but to add tiles along a dimension. */
bool tcc_is_sum_over_tiles(const tcc_group *g, tcc_tiles *tiles);
void tcc_run_ahead(tcc_group *g, const tcc_tiles *tiles);

#endif

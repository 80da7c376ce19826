/* tile_streams: what the files that tile streams share; see tile_streams.c.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_TILE_STREAMS_H
#define TCC_PASSES_TILE_STREAMS_H

#include "passes/cascade.h"
#include "passes/in_step.h"
#include "passes/tile.h"

/* A kernel that streams on its way. */
typedef struct tcc_streams {
    tcc_tiler *w;
    tcc_cascade c;
    tcc_tiling t;     /* the one builder; its axes are of what is built */
    tcc_value *begin; /* of the first tile along j */
    tcc_value *first; /* of the one that is built */
    bool whole;       /* every tile along j is */
    bool later;       /* what a tile adds to sums is multiplied with the scores of the next one; else with its own */
    tcc_value *is_first; /* whether no tile was before this one; NULL: one was */
    /* Tiles from the first on to the second, j's first and end, have all terms in all rows; NULL: it is not known. */
    tcc_value *all_from, *all_to;
    tcc_value *is_partial;  /* whether this one may not; NULL: the same */
    tcc_map in, after;      /* ops that are computed in the loop, or before it, and those that results need */
    tcc_map conditions;     /* ops that say which terms there are */
    tcc_map along;          /* values that vary along j, or change with it */
    tcc_value *source;      /* -inf where there is no term; NULL: what is reduced is masked */
    tcc_value *by;          /* a number, which what all depends on is the source times; NULL: 1 */
    tcc_value *is_positive; /* whether it is; else the source is inf where there is no term */
    tcc_map masked;         /* values that are masked, and for which reduction */
    TCC_VEC(tcc_value *) factors; /* of sums, that are computed: each once */
    TCC_VEC(tcc_op *) lagging;    /* extrema with which sums are in step only as they were some tiles ago */
    tcc_map needs;                /* rescaled sums, and whether they are to be rescaled in this tile */
} tcc_streams;

static inline tcc_ir *ir_of(const tcc_streams *r)
{
    return r->w->f->ir;
}

static inline bool varies(const tcc_streams *r, const tcc_value *v)
{
    return tcc_map_get(&r->along, v) != NULL;
}

static inline const tcc_product *score_of(const tcc_streams *r, const tcc_op *reduce)
{
    return tcc_product_of(reduce, r->c.n_scores, r->c.scores);
}

static inline const tcc_product *sum_of(const tcc_streams *r, const tcc_op *reduce)
{
    return tcc_product_of(reduce, r->c.n_sums, r->c.sums);
}

/* The reduction of j that is combined where op stands. */
static inline tcc_op *combined_at(const tcc_streams *r, tcc_op *op)
{
    tcc_op *reduce = tcc_reduced_at(op);
    return reduce && !score_of(r, reduce) ? reduce : NULL;
}

/* Of the loop, or of what results need: computes a field's tile. */
void tcc_streams_build_op(tcc_streams *r, tcc_op *op);
/* A reduction along j that is not of products; the terms of sums are masked already. */
tcc_value *tcc_streams_reduce(tcc_streams *r, const tcc_op *reduce);
/* Whether a value is a score, or one times a number. */
bool tcc_streams_is_of_score(const tcc_streams *r, const tcc_value *v);

/* tile_streams_in_step.c: finds the extrema that sums may lag behind. */
void tcc_streams_find_lagging(tcc_streams *r);
/* Combines a tile's terms with those before it. */
tcc_value *tcc_streams_combine(tcc_streams *r, const tcc_op *reduce, const tcc_op *op, tcc_value *before,
                               bool is_first);
/* Once an extremum has been combined: what sums are in step with instead, if they lag behind it. */
void tcc_streams_keep_reference(tcc_streams *r, const tcc_op *reduce, tcc_value **references, bool is_first);
/* Keeps sums of products in step. */
void tcc_streams_rescale(tcc_streams *r, tcc_value **kept);
/* At the end, sums are in step with extrema as they are. */
void tcc_streams_catch_up(tcc_streams *r, tcc_value *const *references, tcc_value **kept);

#endif

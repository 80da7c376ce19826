/* field_plan: what is computed of one row of an output, in which order.
 *
 * For each tensor.write a plan is made: the ops that its value needs, in order. A sum's operand
 * has a plan of its own, which runs inside the sum.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_FIELD_PLAN_H
#define TCC_INTERP_FIELD_PLAN_H

#include "interp/field.h"
#include "ir/access.h"
#include "ir/reduction.h"
#include "support/map.h"

/* A field in the current row of the output: numbers `step` apart, 0 if it is one number. */
typedef struct tcc_row {
    tcc_cell *cells;
    tcc_cell *low, *high; /* the numbers' intervals, where they are wanted; cells: exact ones */
    size_t step;
} tcc_row;

typedef struct tcc_row_plan tcc_row_plan;
typedef struct tcc_coordinate tcc_coordinate;

/* Whether what was computed last still holds: it does as long as the indices that it varies with stay where they were. */
typedef struct tcc_memo {
    tcc_index **indices;
    int64_t *at; /* where they were */
    size_t n;
    bool is_known; /* it was computed at all */
} tcc_memo;

/* An operand of a product that is computed: along k, and along the row where it has that index, for
 * the values that its other indices have at present. */
typedef struct tcc_row_operand {
    tcc_row_plan *body;    /* a row along k */
    const tcc_row *result; /* of the body */
    tcc_index *k, *along;  /* NULL: it does not have the row's index */
    tcc_memo memo;         /* of its other indices */
    double *values, *errors, *largest; /* how far its interval reaches from a value, and from 0 */
} tcc_row_operand;

typedef struct tcc_row_step {
    const tcc_op *op;
    tcc_row *operands[3];
    tcc_row *result;
    tcc_access access;           /* of tensor.read */
    bool in_step;                /* its results may be rounded relative to others: tcc_streaming_rounds */
    tcc_coordinate *coordinates; /* of one whose coordinates are not all indices; NULL */
    const tcc_index *index;      /* of tensor.index */
    tcc_row_plan *body;          /* of tensor.reduce */
    tcc_reduction kind;
    tcc_index **over; /* what it reduces */
    size_t n_over;
    int64_t *outer;        /* and where these indices were before it */
    tcc_memo memo;         /* of the indices of its result, but for the row's */
    const tcc_index *part; /* the part that is computed; NULL: it has no parts */
    int64_t depth;         /* consecutive terms that belong to one part */
    bool is_product;       /* a fast path fits: */
    const tcc_access *factors;
    tcc_row_operand *computed[2]; /* the two, where they are not read; NULL */
    double *sums, *buffer;
    tcc_cell *best; /* of extrema whose places are looked for */
    double *lows, *highs, *magnitudes; /* of sums with intervals */
    double *errors;                    /* of products with a computed operand */
} tcc_row_step;

struct tcc_row_plan {
    const tcc_index *row; /* NULL: no index has more than one value at a time */
    tcc_map rows;         /* value -> row */
    tcc_row_step *steps;
    size_t n_steps;
};

typedef struct tcc_fields {
    tcc_run *run;
    tcc_index *indices;
    size_t n_indices;
    const double **originals; /* of each parameter: inputs as they were before any write */
    bool intervals;           /* are wanted */
    int depth;
    uint64_t steps; /* ops run, each for one row */
    tcc_status status;
} tcc_fields;

/* Every index has the extent of the dimensions along which it runs, that of a sum's parts their
 * number. */
tcc_status tcc_collect_indices(tcc_fields *fs);
/* A tensor that is read and written is read as it was at first. */
tcc_status tcc_keep_originals(tcc_fields *fs);
tcc_access tcc_plan_access(tcc_fields *fs, const tcc_op *op);
/* The row of a value, made where there is none yet. */
tcc_row *tcc_row_of(tcc_fields *fs, tcc_row_plan *p, const tcc_value *v);
/* Plans values; p->row is given. */
tcc_status tcc_plan_row(tcc_fields *fs, tcc_row_plan *p, size_t n, const tcc_value *const *goals);
/* The index of a name, NULL where there is none. */
tcc_index *tcc_index_find(const tcc_fields *fs, const char *name);
/* Plans and runs a read of n elements, each by its coordinates. */
void tcc_plan_coordinates(tcc_fields *fs, tcc_row_plan *p, tcc_row_step *s);
void tcc_read_elements(tcc_fields *fs, const tcc_row_plan *p, const tcc_row_step *s, size_t n);

/* Whether the i-th term of a reduction must, or may, be there. */
static inline bool tcc_term_must_be(const tcc_row *condition, size_t i)
{
    return !condition || condition->low[i * condition->step].i;
}

static inline bool tcc_term_may_be(const tcc_row *condition, size_t i)
{
    return !condition || condition->high[i * condition->step].i;
}

/* Looks at the terms at one value of the index: r[i] is where the best one so far is. */
void tcc_find_places(const tcc_row_step *s, const tcc_row *term, const tcc_row *condition, tcc_cell *r, size_t n, bool ints);
/* What the extremum reaches for sure, in s->lows; whether there surely is one, in s->magnitudes. */
void tcc_bound_extrema(const tcc_row_step *s, const tcc_row *term, const tcc_row *condition, size_t n, bool ints);
/* Widens the intervals of the places by the present value of the index, where it may be the first of an extremum;
 * s->highs is what the values before it reach for sure. */
void tcc_widen_places(const tcc_row_step *s, const tcc_row *term, const tcc_row *condition, size_t n, bool ints);

#endif

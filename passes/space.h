/* space: the index space of a tensor-level function, as choose-axes left it in its attributes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_SPACE_H
#define TCC_PASSES_SPACE_H

#include "passes/products.h"

enum { TCC_MAX_AXES = 32 };

/* An operand of products: elements of a tensor, or what elementwise ops compute of them and of others. */
typedef struct tcc_sum_operand {
    tcc_op *read;     /* tensor.read, with all indices that the operand has */
    tcc_value *value; /* that is multiplied: the read's, or what is computed of it */
    int axis;      /* that it has: 0 for an A, 1 for a B */
    const char *k; /* what the read calls the summed index */
} tcc_sum_operand;

typedef struct tcc_sum {
    tcc_op *op;               /* its result's element is that of the accumulators */
    const char *k;            /* what it calls the summed index */
    const tcc_sum_operand *a, *b; /* their elements may differ */
    tcc_scalar products;      /* what they are widened to, and multiplied in */
} tcc_sum;

/* Axis 0 is m, along the rows of tiles, and axis 1 is n, along their columns; every further index is an axis of its own
 * that takes one value in a CTA. An axis that is none has name "" and extent 1.
 *
 * With sums of products C[axes] = sum over k of A[…] * B[…], any number of them over the same axes and as many k: only
 * A has m, and only B has n. Without any, what is computed of elements of tensors and of other reductions. */
typedef struct tcc_space {
    size_t n_axes;
    const char *axes[TCC_MAX_AXES];
    tcc_dim extents[TCC_MAX_AXES];
    const char *row; /* of a row kernel the axis along which it reduces (passes/rows.h); NULL: it is none */
    int along; /* which axis that is: 1, or 0 where rows are beside each other, and memory contiguous across them */
    int64_t vector;  /* without a product neighbours along n that are 16 bytes of the widest elements along it, of
                        tensors with all indices; 1 where a thread computes one element */
    bool streams; /* products are of what others and reductions along an index give (passes/cascade.h), not among sums */
    size_t n_sums, n_operands;
    tcc_sum *sums;             /* of products, in the function's order */
    tcc_sum_operand *operands; /* of all sums; what several sums read alike is one */
    const char *k;             /* of the first sum; where it streams, along what */
    tcc_dim k_extent;
    tcc_sum_parts parts; /* of all sums */
    bool fixed;          /* m is that of the one operand that is computed, whatever the schedule says */
} tcc_space;

/* False where choose-axes has found none, or has not run. */
bool tcc_space_of(const tcc_func *f, tcc_space *out);
/* The same with products, each of which has A as its first factor. */
void tcc_space_fill(const tcc_func *f, size_t n_axes, const char *const *axes, size_t n_sums, const tcc_product *sums,
                    tcc_space *out);
/* A product with the given factor as its first one. */
tcc_product tcc_product_from(const tcc_product *p, int first);
/* The name of n where an output has no dimensions. */
extern const char tcc_no_index[];
/* The indices of a function's sums as an output stores them: the first that has all of them, else as the sums do. */
tcc_attr tcc_space_order(const tcc_func *f, const tcc_type *sum);

/* The extent of one of its axes. */
tcc_dim tcc_space_extent(const tcc_space *c, const char *axis);

/* Whether a tensor is read as an operand of a sum. */
bool tcc_space_multiplies(const tcc_space *c, const tcc_value *tensor);

/* The element that is multiplied. */
tcc_scalar tcc_sum_operand_elem(const tcc_sum_operand *o);

/* The sum of the narrowest elements, rather of integers: its instruction takes most of k, and of n, at a time, so that
 * what is a multiple for it is one for the others. The one of the widest. */
const tcc_sum *tcc_space_narrowest(const tcc_space *c);
const tcc_sum *tcc_space_widest(const tcc_space *c);

/* Whether it is more than the elements of a tensor. */
bool tcc_sum_operand_is_computed(const tcc_sum_operand *o);
/* Whether lanes load the elements of `read`, of which it is computed, one by one: each element has one of its own, but
 * that runs along another index, or is the same for several. */
bool tcc_sum_operand_loads_singly(const tcc_sum_operand *o, const tcc_op *read);
/* Whether no read before it is at the same places of a tensor of this shape, whose offsets it has. */
bool tcc_read_is_first_there(const tcc_op *read);

/* Whether its tensor's rows run along another index than the summed one. */
bool tcc_sum_operand_runs_across(const tcc_sum_operand *o);

/* Whether it is computed and comes through shared memory where instructions of a warpgroup multiply: B, and A beside
 * it. */
bool tcc_sum_operand_is_put(const tcc_space *c, const tcc_sum_operand *o);

/* Whether a field varies along an index that one of the sums is over. */
bool tcc_space_sums_along(const tcc_space *c, const tcc_type *field);

/* Whether a tensor.write has just the indices of a field; whether two have the same, each in its order. */
bool tcc_write_has_space(const tcc_op *write, const tcc_type *field);
bool tcc_writes_share_space(const tcc_op *x, const tcc_op *y);

/* The size of the tile along an index in a function's schedule, `otherwise` if it is not set. */
int64_t tcc_tile_size_of(const tcc_func *f, const char *index, int64_t otherwise);

/* True when the last dimension of the tensor that `read` reads runs along index x or y. */
bool tcc_read_is_contiguous_in(const tcc_op *read, const char *x, const char *y);

#endif

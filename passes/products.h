/* products: sums of products that matrix instructions can compute.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_PRODUCTS_H
#define TCC_PASSES_PRODUCTS_H

#include "ir/access.h"
#include "ir/ir.h"
#include "support/map.h"

/* A factor of the products. */
typedef struct tcc_factor {
    tcc_op *read;     /* tensor.read, with all indices that the factor has; NULL: none has them */
    tcc_value *value; /* that is multiplied: the read's, or what is computed of it */
} tcc_factor;

/* Where sums have parts, an index says which: of the tiles of k, `depth` deep, it has every count-th. */
typedef struct tcc_sum_parts {
    const char *index; /* NULL: they have none */
    int64_t count, depth;
} tcc_sum_parts;

typedef struct tcc_product {
    tcc_op *sum;
    tcc_factor of[2];    /* in the order of the product's operands */
    const char *k;       /* what the sum is over */
    tcc_sum_parts parts;
    tcc_scalar products; /* what factors are widened to, and multiplied in */
} tcc_product;

/* Whether a reduction is a sum over one index of products of two factors that both have it, one with an index that the
 * other lacks; whatever the target multiplies, and whether tensors cover the factors. */
bool tcc_product_find(tcc_op *reduce, tcc_product *out);
/* The same whatever has the factors' indices, also of some of the terms: a condition says of which. */
bool tcc_product_of_terms(tcc_op *reduce, tcc_product *out);
/* Whether matrix instructions can compute it: its element types are such that the target multiplies them together, and
 * a tensor covers each factor; and whether the kernel computes it so, because its schedule does not say otherwise. */
bool tcc_product_can_be(const tcc_op *reduce, tcc_product *out);
bool tcc_product_is(const tcc_op *reduce);
/* A factor that keeps one from being such a sum, because no tensor has all its indices; NULL: there is none, or it has
 * all that the products have, and each element would be multiplied once. */
tcc_value *tcc_product_uncovered(const tcc_op *reduce);
/* The index along which rows of a field should run, if it is stored, for such a sum to copy it as an operand: its last
 * one, or the summed one if both operands have that. NULL: the sum does not multiply what is computed of the field. */
const char *tcc_product_row_index(const tcc_op *reduce, const tcc_value *v);
/* Whether it would be one if the target had an instruction for its elements, *elems. */
bool tcc_product_is_term_by_term(const tcc_op *reduce, tcc_scalar elems[2]);
/* Whether one loop over tiles of the same axes can compute both. */
bool tcc_product_shares_loop(const tcc_product *x, const tcc_product *y);
/* The same of two reductions, with one kind of instructions. */
bool tcc_product_goes_with(const tcc_op *reduce, const tcc_op *other);

bool tcc_factor_is_computed(const tcc_factor *factor);
/* Of the indices that a product's tensors are read with. */
tcc_dim tcc_factor_extent(const tcc_factor *factor, const char *index);

/* Whether the schedule needs sums of products computed as others are: one term after the other, an element a thread. */
bool tcc_is_naive(const tcc_func *f);

/* Puts the ops that compute a value elementwise, and the reads that they compute it of, into a set. False when
 * there are others among them. */
bool tcc_find_elementwise(const tcc_value *v, tcc_arena *arena, tcc_map *ops);

/* Whether a field varies along index `name`. */
bool tcc_field_has_index(const tcc_type *field, const char *name);
/* `name`, with a number appended where a field of the function, or what it says of extents, has an index of this name. */
const char *tcc_free_index(const tcc_func *f, const char *name);
/* Whether two fields have the same indices, each in its order. */
bool tcc_fields_share_space(const tcc_type *x, const tcc_type *y);

#endif

/* contraction: the sums of products in a tensor-level function, and what their indices are.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_CONTRACTION_H
#define TCC_PASSES_CONTRACTION_H

#include "ir/access.h"
#include "ir/ir.h"
#include "support/map.h"

enum { TCC_MAX_AXES = 32 };

/* An operand of products: elements of a tensor, or what elementwise ops compute of them and of others. */
typedef struct tcc_sum_operand {
    tcc_op *read;     /* tensor.read, with all indices that the operand has */
    tcc_value *value; /* that is multiplied: the read's, or what is computed of it */
    int axis;      /* that it has: 0 for an A, 1 for a B */
    const char *k; /* what the read calls the summed index */
} tcc_sum_operand;

/* Where sums have parts, an index says which: of the tiles of k, `depth` deep, it has every count-th. */
typedef struct tcc_sum_parts {
    const char *index; /* NULL: they have none */
    int64_t count, depth;
} tcc_sum_parts;

typedef struct tcc_sum {
    tcc_op *op;               /* its result's element is that of the accumulators */
    const char *k;            /* what it calls the summed index */
    const tcc_sum_operand *a, *b; /* their elements may differ */
    tcc_scalar products;      /* what they are widened to, and multiplied in */
} tcc_sum;

/* C[axes] = sum over k of A[…] * B[…], any number of sums over the same axes and as many k. Index
 * names are interned, extents are the dimensions of the tensors. Axis 0 is m, which only A has, and
 * axis 1 is n, which only B has, in every sum: of each operand's own indices the innermost one in the output,
 * or the one that the schedule tiles, with n inside m, unless the target's matrix instructions take only A from
 * registers and n's operand is computed. Every further free index, and that of the sums' parts, is an axis of
 * its own that takes one value in a CTA. Where A or B has no index of its own in all sums the axis has name ""
 * and extent 1. */
typedef struct tcc_space {
    size_t n_sums, n_operands;
    tcc_sum *sums;         /* in the function's order */
    tcc_sum_operand *operands; /* of all sums; what several sums read alike is one */
    const char *k;         /* of the first sum */
    tcc_dim k_extent;
    tcc_sum_parts parts; /* of all sums */
    tcc_attr order;      /* the sums' indices as an output stores them */
    bool fixed;          /* m is that of the one operand that is computed, whatever the schedule says */
    size_t n_axes;
    const char *axes[TCC_MAX_AXES];
    tcc_dim extents[TCC_MAX_AXES];
} tcc_space;

/* Finds the sums of a function; false when there is none, or when they or the outputs are not of this form: then sums
 * are computed one term after the other (passes/pointwise.h). */
bool tcc_contraction_find(const tcc_func *f, tcc_space *out);
/* Whether a reduction is a sum of products that instructions multiply: over one index, which both operands have; of
 * element types that the target multiplies together; with operands that are computed elementwise of tensors, one of
 * which has all the operand's indices. The kernel computes it so unless its schedule says otherwise. */
bool tcc_contraction_is(const tcc_op *reduce);
/* An operand that keeps one from being such a sum, because no tensor has all its indices; NULL: there is none, or it has
 * all that the products have, and each element would be multiplied once. */
tcc_value *tcc_contraction_uncovered(const tcc_op *reduce);
/* The index along which rows of a field should run, if it is stored, for such a sum to copy it as an operand: its last
 * one, or the summed one if both operands have that. NULL: the sum does not multiply what is computed of the field. */
const char *tcc_contraction_row(const tcc_op *reduce, const tcc_value *v);
/* Whether it would be one if the target had an instruction for its elements, *elems. */
bool tcc_contraction_is_term_by_term(const tcc_op *reduce, tcc_scalar elems[2]);
/* Whether one loop computes two such sums. */
bool tcc_contraction_goes_with(const tcc_op *reduce, const tcc_op *other);

/* Whether the schedule needs sums of products computed as others are: one term after the other, an element a thread.
 * Then tcc_contraction_find finds none, and tcc_contraction_described what is computed all the same. */
bool tcc_contraction_is_naive(const tcc_func *f);
bool tcc_contraction_described(const tcc_func *f, tcc_space *out);

/* The extent of one of its axes. */
tcc_dim tcc_contraction_extent(const tcc_space *c, const char *axis);

/* Whether a tensor is read as an operand of a sum. */
bool tcc_contraction_multiplies(const tcc_space *c, const tcc_value *tensor);

/* The element that is multiplied. */
tcc_scalar tcc_sum_operand_elem(const tcc_sum_operand *o);

/* The sum of the narrowest elements, rather of integers: its instruction takes most of k, and of n, at a time, so that
 * what is a multiple for it is one for the others. The one of the widest. */
const tcc_sum *tcc_contraction_narrowest(const tcc_space *c);
const tcc_sum *tcc_contraction_widest(const tcc_space *c);

/* Whether it is more than the elements of a tensor. */
bool tcc_sum_operand_is_computed(const tcc_sum_operand *o);

/* Whether its tensor's rows run along another index than the summed one. */
bool tcc_sum_operand_runs_across(const tcc_sum_operand *o);

/* Whether it is computed and comes through shared memory where instructions of a warpgroup multiply: B, and A beside
 * it. */
bool tcc_sum_operand_is_put(const tcc_space *c, const tcc_sum_operand *o);

/* Puts the ops that compute a value elementwise, and the reads that they compute it of, into a set. False when
 * there are others among them. */
bool tcc_find_elementwise(const tcc_value *v, tcc_arena *arena, tcc_map *ops);

/* Whether a field varies along an index that one of the sums is over. */
bool tcc_contraction_sums_along(const tcc_space *c, const tcc_type *field);

/* Whether a tensor.write has just the indices of a field; whether two have the same, each in its order. */
bool tcc_write_has_space(const tcc_op *write, const tcc_type *field);
bool tcc_writes_share_space(const tcc_op *x, const tcc_op *y);

/* The size of the tile along an index in a function's schedule, `otherwise` if it is not set. */
int64_t tcc_tile_size_of(const tcc_func *f, const char *index, int64_t otherwise);

/* Whether a field varies along index `name`. */
bool tcc_field_has_index(const tcc_type *field, const char *name);
/* Whether two fields have the same indices, each in its order. */
bool tcc_fields_share_space(const tcc_type *x, const tcc_type *y);

/* True when the last dimension of the tensor that `read` reads runs along index x or y. */
bool tcc_read_is_contiguous_in(const tcc_op *read, const char *x, const char *y);

#endif

/* contraction: the sum of products in a tensor-level function, and what its indices are.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_CONTRACTION_H
#define TCC_PASSES_CONTRACTION_H

#include "ir/ir.h"

enum { TCC_MAX_AXES = 32 };

/* C[axes] = sum over k of A[…] * B[…]. Index names are interned, extents are the dimensions of
 * the tensors. Axis 0 is m, which only A has, and axis 1 is n, which only B has: of each operand's
 * own indices the one that lies innermost in the output, or that the schedule tiles, with n inside
 * m. Every further free index is an axis of its own that takes one value in a CTA. Where A or B
 * has no index of its own the axis has name "" and extent 1. */
typedef struct tcc_contraction {
    tcc_op *sum;         /* its result's element is that of the accumulators */
    tcc_op *a, *b;       /* tensor.read; their elements may differ */
    tcc_scalar products; /* what they are widened to, and multiplied in */
    const char *k;
    tcc_dim k_extent;
    size_t n_axes;
    const char *axes[TCC_MAX_AXES];
    tcc_dim extents[TCC_MAX_AXES];
} tcc_contraction;

/* Finds the only tensor.sum of a function; false when there is none, or when it is not of this
 * form. */
bool tcc_contraction_find(const tcc_func *f, tcc_contraction *out);

/* Position of index `name` in a read's or write's map, -1 when it is not there. */
int tcc_map_position(const tcc_op *access, const char *name);

/* Whether a field varies along index `name`. */
bool tcc_field_has_index(const tcc_type *field, const char *name);

/* True when the last dimension of the tensor that `read` reads runs along index x or y. */
bool tcc_read_is_contiguous_in(const tcc_op *read, const char *x, const char *y);

#endif

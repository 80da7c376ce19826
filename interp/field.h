/* field: what field.c and contraction.c share.
 *
 * An output is computed row by row: every index but the output's last has one value at a time, a
 * field is then a row of numbers along the last index, or one number if it does not have it. A
 * sum runs its operand's ops once for each value of the summed indices.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_FIELD_H
#define TCC_INTERP_FIELD_H

#include "interp/run.h"

typedef struct tcc_index {
    const char *name;
    int64_t extent, at; /* how many values, which one now */
} tcc_index;

/* The addresses of a field's elements: cell = base + the sum of at * stride over its indices. */
typedef struct tcc_access {
    const tcc_param *param;
    const double *data;
    size_t n;
    struct {
        tcc_index *index;
        int64_t stride;
    } * terms;
} tcc_access;

/* The access's stride along an index, 0 if it has it not. */
int64_t tcc_access_stride(const tcc_access *a, const tcc_index *index);
/* The place of the element at the indices' values, those in `free` taken as 0. */
int64_t tcc_access_base(const tcc_access *a, const tcc_index *const *free, size_t n_free);

/* A sum over k of a * b, where both are tensors' elements as they are. */
typedef struct tcc_product {
    const tcc_access *a, *b;
    const tcc_index *k;
} tcc_product;

/* r[x] += sum over k for each value x of index `row`; NULL: for one element. `buffer` has room
 * for k's extent. `magnitudes`: the sum of |a * b|. */
void tcc_product_row(const tcc_product *p, const tcc_index *row, double *r, double *buffer, bool magnitudes);

#endif

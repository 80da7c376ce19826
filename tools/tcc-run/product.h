/* product: the matrix product that a kernel's arguments describe, in cuBLASLt's terms.
 *
 * Read from the dimensions: C[…] = sum of A[…] * B[…], where A and B are the first two inputs and
 * C the first output. An index is the batch's when all three have it, and summed when only the
 * inputs have it. The index order determines the transposes, whatever the names of the indices:
 *
 *     A[M,K] B[K,N] C[M,N]   A[K,M] B[N,K] C[N,M]   A[M,B,K] B[B,K,N] C[B,M,N]   …
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_PRODUCT_H
#define TCC_TOOLS_PRODUCT_H

#include "tools/tcc-run/cublaslt.h"
#include "tools/tcc-run/tensor.h"

typedef struct product {
    cublaslt_problem problem;
    unsigned x, y, d; /* the arguments that X, Y and D are */
    int bias;         /* the vector over D's rows; -1 without relu_bias */
    bool whole;       /* the kernel has no arguments but these */
} product;

/* Finds the product among n arguments (scalars have no type). False, and why, when there is none
 * that cuBLASLt can compute. */
bool product_find(const tensor *args, size_t n, bool relu_bias, product *out, char *why,
                  size_t why_size);

#endif

/* cublaslt: NVIDIA's matrix products, through dlopen of libcublasLt.so: the contender of --against.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_CUBLASLT_H
#define TCC_TOOLS_CUBLASLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cublaslt cublaslt;
typedef struct cublaslt_plan cublaslt_plan;

/* A matrix in memory as cuBLASLt counts: column-major. */
typedef struct cublaslt_matrix {
    const char *type; /* "f16", "bf16", "f32", "f64" */
    bool transposed;  /* the product reads it so */
    uint64_t rows, cols;
    int64_t ld, batch_stride; /* in elements */
} cublaslt_matrix;

/* D = X * Y in f32 accumulation, or of f64 in f64, `batch` times; relu_bias: D = max(X * Y + bias[row of D], 0). */
typedef struct cublaslt_problem {
    cublaslt_matrix x, y, d;
    int batch;
    bool relu_bias;
} cublaslt_problem;

/* Opens the library; NULL and why on failure. */
cublaslt *cublaslt_open(char *why, size_t why_size);
void cublaslt_close(cublaslt *lt);

enum { CUBLASLT_MAX_ALGORITHMS = 8, CUBLASLT_WORKSPACE_BYTES = 64 << 20 };

/* Asks for the heuristics' picks, the default first. NULL and why on failure. */
cublaslt_plan *cublaslt_plan_create(cublaslt *lt, const cublaslt_problem *problem, char *why,
                                    size_t why_size);
void cublaslt_plan_destroy(cublaslt_plan *plan);
int cublaslt_plan_count(const cublaslt_plan *plan);

/* Enqueues the product by pick i on the default stream. Addresses are the GPU's; the bias has D's
 * type and is not read without relu_bias. False when the library reports an error. */
bool cublaslt_enqueue(const cublaslt_plan *plan, int i, uint64_t x, uint64_t y, uint64_t d,
                      uint64_t bias, uint64_t workspace);

#endif

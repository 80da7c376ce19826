/* fake_product: what the kernels that the fake drivers can run compute:
 *
 *     kernel fake_product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])
 *     {
 *         C[m, n] = sum(k) A[m, k] * B[k, n];
 *     }
 *
 * with + bias[n] and relu where there is a bias: f32[N]. Endings of the name choose a fault: _skip
 * writes nothing, _wrong adds to the sum, _flaky does so at every other launch, _off adds to that of
 * two elements, which no norm shows, _dirty adds to it unless operands were padded in a workspace
 * that was NaN, _stray writes past the end, _lost makes every later call of the driver fail, _hang
 * never returns, _crash ends the process.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RUNTIME_FAKE_PRODUCT_H
#define TCC_TESTS_RUNTIME_FAKE_PRODUCT_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

/* A launch; what no parameter has the name of stays NULL or 0. */
typedef struct fake_product {
    void *a, *b, *c, *bias, *workspace; /* as the host addresses them */
    int m, n, k;
    bool began_as_nan; /* where an operand was padded */
} fake_product;

/* Whether an entry is one of these kernels, or their generic variant. */
bool fake_product_is(const char *entry);
/* Where the parameter of this name goes: a pointer, or an extent. NULL for another. */
void **fake_product_pointer(fake_product *p, const char *name);
int *fake_product_extent(fake_product *p, const char *name);
/* Whether a float at this address is NaN. */
bool fake_product_is_nan(const void *address);
/* Computes it, or what its ending says; false when the GPU is lost. */
bool fake_product_run(const fake_product *p, const char *entry, int number);

/* Milliseconds between two events, as a stand-in tells them: many times those that pass, since benchmarks take the time
 * that a GPU needs for a result that can be trusted. */
static inline float fake_elapsed_ms(struct timespec from, struct timespec to)
{
    const double slower = 20;
    return (float)(slower * ((double)(to.tv_sec - from.tv_sec) * 1e3 + (double)(to.tv_nsec - from.tv_nsec) * 1e-6));
}

#endif

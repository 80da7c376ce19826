/* element: the element types of tensors on the host.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_ELEMENT_H
#define TCC_TOOLS_ELEMENT_H

#include <stddef.h>
#include <stdint.h>

/* A binary floating-point type with the rules of IEEE 754. */
typedef struct elem_type {
    const char *name;
    unsigned bytes, exponent_bits, mantissa_bits; /* stored bits */
    const char *npy_descr; /* how NumPy files name it */
} elem_type;

/* NULL for a type this tool does not have. */
const elem_type *elem_type_find(const char *name);

/* Element i as a double, exactly. */
double elem_get(const elem_type *type, const void *data, size_t i);
/* Stores x rounded to nearest even as element i. */
void elem_set(const elem_type *type, void *data, size_t i, double x);
/* x rounded to nearest even; an infinity where it overflows. */
double elem_round(const elem_type *type, double x);

/* Fills n elements with standard-normal numbers that depend on the seed and the position alone. */
void elem_fill_normal(const elem_type *type, void *data, size_t n, uint64_t seed);
/* Copies n elements to doubles. */
void elem_to_doubles(const elem_type *type, const void *data, size_t n, double *out);

#endif

/* element: the element types of tensors on the host.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_ELEMENT_H
#define TCC_TOOLS_ELEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A binary floating-point type with the rules of IEEE 754 or, without infinities, those of OCP's
 * E4M3; or an integer in two's complement, which has no exponent. Elements of less than a byte are
 * packed, the first one lowest. */
typedef struct elem_type {
    const char *name;
    unsigned bits, exponent_bits, mantissa_bits; /* stored bits */
    unsigned ignored_bits;                       /* of the mantissa's, the lowest */
    const char *npy_descr;                       /* how NumPy files name it, or what holds it */
    bool is_unsigned, is_finite;                 /* of integers; of floats: no infinities */
} elem_type;

/* Bytes of this value are NaN in every type of floats. */
enum { NAN_BYTE = 0xff };

/* NULL for a type this tool does not have. */
const elem_type *elem_type_find(const char *name);

bool elem_is_integer(const elem_type *type);
/* Bytes that n elements take. */
size_t elem_bytes(const elem_type *type, size_t n);
/* Element i as a double, exactly. */
double elem_get(const elem_type *type, const void *data, size_t i);
/* Stores x rounded to nearest even as element i, in all its bits. */
void elem_set(const elem_type *type, void *data, size_t i, double x);
/* Copies element j to element i. */
void elem_copy(const elem_type *type, void *to, size_t i, const void *from, size_t j);
/* x rounded to nearest even, or away from zero where bits are ignored; to infinity if it overflows, or to NaN if the
 * type has none. Integers: saturated, 0 for NaN. */
double elem_round(const elem_type *type, double x);

/* Whether the type has room for x: an integer holds it exactly, a float does not overflow. */
bool elem_holds(const elem_type *type, double x);

/* Fills n elements with random numbers that depend only on the seed and the position:
 * standard-normal floats; integers of their type's whole range, those of more than a byte from
 * -32768 to 32767. */
void elem_fill_random(const elem_type *type, void *data, size_t n, uint64_t seed);
/* Copies n elements to doubles. */
void elem_to_doubles(const elem_type *type, const void *data, size_t n, double *out);

#endif

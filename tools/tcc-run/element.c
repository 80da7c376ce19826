/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/element.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tools/tcc-run/parallel.h"

/* NumPy has no bf16: its files hold the bits, which a.view(ml_dtypes.bfloat16) reads. */
static const elem_type types[] = {
    {"f16", 2, 5, 10, "<f2"},
    {"bf16", 2, 8, 7, "<u2"},
    {"f32", 4, 8, 23, "<f4"},
};

enum { GRAIN = 1 << 16 }; /* elements that are worth a thread */

const elem_type *elem_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

/* The bits of a type's element for x, to nearest even. A carry out of the mantissa runs into the
 * exponent, which is what rounding up to the next power of two, or to infinity, means. */
static uint32_t encode(const elem_type *t, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = (uint32_t)(bits >> 63) << (t->exponent_bits + t->mantissa_bits);
    uint32_t infinity = ((1u << t->exponent_bits) - 1) << t->mantissa_bits;
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff)
        return sign | infinity | (mantissa ? 1u << (t->mantissa_bits - 1) : 0);
    int biased = exponent - 1023 + (1 << (t->exponent_bits - 1)) - 1;
    int shift = 52 - (int)t->mantissa_bits;
    if (biased >= (1 << t->exponent_bits) - 1)
        return sign | infinity;
    if (biased <= 0) { /* subnormal: the leading one is stored, further right */
        mantissa |= (uint64_t)(exponent != 0) << 52;
        shift += 1 - biased;
        biased = 0;
        if (shift > 54)
            return sign;
    }
    uint64_t half = UINT64_C(1) << (shift - 1), odd = mantissa >> shift & 1;
    return sign | (((uint32_t)biased << t->mantissa_bits) +
                   (uint32_t)((mantissa + half - 1 + odd) >> shift));
}

static double decode(const elem_type *t, uint32_t element)
{
    uint64_t sign = (uint64_t)(element >> (t->exponent_bits + t->mantissa_bits)) << 63;
    uint64_t mantissa = element & ((1u << t->mantissa_bits) - 1);
    int exponent = (int)(element >> t->mantissa_bits & ((1u << t->exponent_bits) - 1));
    int bias = (1 << (t->exponent_bits - 1)) - 1;
    if (!exponent) {
        double x = ldexp((double)mantissa, 1 - bias - (int)t->mantissa_bits);
        return sign ? -x : x;
    }
    bool finite = exponent < (1 << t->exponent_bits) - 1;
    uint64_t wide = finite ? (uint64_t)(exponent - bias + 1023) : 0x7ff;
    uint64_t bits = sign | wide << 52 | mantissa << (52 - t->mantissa_bits);
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

double elem_get(const elem_type *type, const void *data, size_t i)
{
    uint32_t element = 0; /* hosts are little-endian */
    memcpy(&element, (const char *)data + i * type->bytes, type->bytes);
    return decode(type, element);
}

void elem_set(const elem_type *type, void *data, size_t i, double x)
{
    uint32_t element = encode(type, x);
    memcpy((char *)data + i * type->bytes, &element, type->bytes);
}

double elem_round(const elem_type *type, double x)
{
    return decode(type, encode(type, x));
}

/* ---- random numbers --------------------------------------------------------------------- */

/* The finaliser of splitmix64: a bijection that mixes every bit into every other. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

typedef struct fill {
    const elem_type *type;
    void *data;
    uint64_t seed;
} fill;

/* Box-Muller on a counter: elements 2j and 2j + 1 come from the j-th random word. */
static void fill_piece(size_t begin, size_t end, void *user)
{
    const fill *f = user;
    for (size_t i = begin; i < end;) {
        uint64_t word = mix(f->seed + (i / 2 + 1) * UINT64_C(0x9e3779b97f4a7c15));
        double u = ((double)(word >> 32) + 0.5) * 0x1p-32, v = (double)(uint32_t)word * 0x1p-32;
        double radius = sqrt(-2 * log(u)), angle = 6.283185307179586 * v;
        if (i % 2 == 0)
            elem_set(f->type, f->data, i++, radius * cos(angle));
        if (i < end && i % 2)
            elem_set(f->type, f->data, i++, radius * sin(angle));
    }
}

void elem_fill_normal(const elem_type *type, void *data, size_t n, uint64_t seed)
{
    parallel_for(n, GRAIN, fill_piece, &(fill){type, data, mix(seed)});
}

typedef struct widening {
    const elem_type *type;
    const void *data;
    double *out;
} widening;

static void widen_piece(size_t begin, size_t end, void *user)
{
    const widening *w = user;
    for (size_t i = begin; i < end; i++)
        w->out[i] = elem_get(w->type, w->data, i);
}

void elem_to_doubles(const elem_type *type, const void *data, size_t n, double *out)
{
    parallel_for(n, GRAIN, widen_piece, &(widening){type, data, out});
}

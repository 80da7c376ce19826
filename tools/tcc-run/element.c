/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/element.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "tools/tcc-run/parallel.h"

/* NumPy has neither bf16 nor 8-bit floats: its files hold the bits, which
 * a.view(ml_dtypes.bfloat16) reads. Those of 4-bit integers hold a byte for each. */
static const elem_type types[] = {
    {"f16", 16, 5, 10, 0, "<f2", false, false}, {"bf16", 16, 8, 7, 0, "<u2", false, false},
    {"f32", 32, 8, 23, 0, "<f4", false, false}, {"tf32", 32, 8, 23, 13, "<f4", false, false},
    {"f64", 64, 11, 52, 0, "<f8", false, false}, {"e4m3", 8, 4, 3, 0, "|V1", false, true},
    {"e5m2", 8, 5, 2, 0, "|V1", false, false}, {"i32", 32, 0, 0, 0, "<i4", false, true},
    {"i8", 8, 0, 0, 0, "|i1", false, true}, {"u8", 8, 0, 0, 0, "|u1", true, true},
    {"i4", 4, 0, 0, 0, "|i1", false, true}, {"u4", 4, 0, 0, 0, "|u1", true, true},
};

enum { GRAIN = 1 << 16 }; /* elements that are worth a thread */

const elem_type *elem_type_find(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i].name, name))
            return &types[i];
    return NULL;
}

bool elem_is_integer(const elem_type *type)
{
    return !type->exponent_bits;
}

size_t elem_bytes(const elem_type *type, size_t n)
{
    return type->bits < 8 ? (n * type->bits + 7) / 8 : n * (type->bits / 8);
}

/* ---- integers --------------------------------------------------------------------------- */

static double least_of(const elem_type *t)
{
    return t->is_unsigned ? 0 : -ldexp(1, (int)t->bits - 1);
}

static double most_of(const elem_type *t)
{
    return ldexp(1, (int)t->bits - !t->is_unsigned) - 1;
}

static uint64_t encode_integer(const elem_type *t, double x)
{
    double whole = isnan(x) ? 0 : fmin(fmax(nearbyint(x), least_of(t)), most_of(t));
    return (uint64_t)(int64_t)whole & UINT64_MAX >> (64 - t->bits);
}

static double decode_integer(const elem_type *t, uint64_t element)
{
    double x = (double)element;
    return x > most_of(t) ? x - ldexp(1, (int)t->bits) : x;
}

/* ---- floats ----------------------------------------------------------------------------- */

static bool is_double(const elem_type *t)
{
    return t->bits == 64;
}

/* The bits of a type's element for x, to nearest even. A carry out of the mantissa runs into the
 * exponent, which is what rounding up to the next power of two, or to infinity, means. */
static uint64_t encode(const elem_type *t, double x)
{
    if (elem_is_integer(t))
        return encode_integer(t, x);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (is_double(t))
        return bits;
    uint64_t sign = (uint64_t)(bits >> 63) << (t->exponent_bits + t->mantissa_bits);
    uint64_t top = ((UINT64_C(1) << t->exponent_bits) - 1) << t->mantissa_bits;
    uint64_t overflow =
        t->is_finite ? top | ((1u << t->mantissa_bits) - 1) : top; /* its only NaN */
    int exponent = (int)(bits >> 52 & 0x7ff);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff)
        return sign | overflow | (mantissa ? 1u << (t->mantissa_bits - 1) : 0);
    int biased = exponent - 1023 + (1 << (t->exponent_bits - 1)) - 1;
    int shift = 52 - (int)t->mantissa_bits;
    if (biased >= 1 << t->exponent_bits)
        return sign | overflow;
    if (biased <= 0) { /* subnormal: the leading one is stored, further right */
        mantissa |= (uint64_t)(exponent != 0) << 52;
        shift += 1 - biased;
        biased = 0;
        if (shift > 54)
            return sign;
    }
    uint64_t half = UINT64_C(1) << (shift - 1), odd = mantissa >> shift & 1;
    uint64_t magnitude =
        ((uint64_t)biased << t->mantissa_bits) + (uint64_t)((mantissa + half - 1 + odd) >> shift);
    return sign | (magnitude < overflow ? magnitude : overflow);
}

static double decode(const elem_type *t, uint64_t element)
{
    if (elem_is_integer(t))
        return decode_integer(t, element);
    double x;
    if (is_double(t)) {
        memcpy(&x, &element, sizeof x);
        return x;
    }
    element = element >> t->ignored_bits << t->ignored_bits;
    uint64_t sign = (element >> (t->exponent_bits + t->mantissa_bits)) << 63;
    uint64_t mantissa = element & ((1u << t->mantissa_bits) - 1);
    int exponent = (int)(element >> t->mantissa_bits & ((1u << t->exponent_bits) - 1));
    int bias = (1 << (t->exponent_bits - 1)) - 1;
    if (!exponent) {
        x = ldexp((double)mantissa, 1 - bias - (int)t->mantissa_bits);
        return sign ? -x : x;
    }
    bool last = exponent == (1 << t->exponent_bits) - 1;
    bool special = last && (!t->is_finite || mantissa + 1 == UINT64_C(1) << t->mantissa_bits);
    uint64_t wide = special ? 0x7ff : (uint64_t)(exponent - bias + 1023);
    uint64_t bits = sign | wide << 52 | mantissa << (52 - t->mantissa_bits);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- elements --------------------------------------------------------------------------- */

double elem_get(const elem_type *type, const void *data, size_t i)
{
    uint64_t element = 0; /* hosts are little-endian */
    if (type->bits < 8) {
        size_t bit = i * type->bits;
        element = ((const uint8_t *)data)[bit / 8] >> bit % 8 & ((1u << type->bits) - 1);
    } else {
        size_t bytes = type->bits / 8;
        memcpy(&element, (const char *)data + i * bytes, bytes);
    }
    return decode(type, element);
}

static void set_bits(const elem_type *type, void *data, size_t i, uint64_t element)
{
    if (type->bits < 8) {
        size_t bit = i * type->bits;
        uint8_t *byte = (uint8_t *)data + bit / 8;
        uint64_t mask = ((1u << type->bits) - 1) << bit % 8;
        *byte = (uint8_t)((*byte & ~mask) | element << bit % 8);
    } else {
        size_t bytes = type->bits / 8;
        memcpy((char *)data + i * bytes, &element, bytes);
    }
}

void elem_set(const elem_type *type, void *data, size_t i, double x)
{
    set_bits(type, data, i, encode(type, x));
}

void elem_copy(const elem_type *type, void *to, size_t i, const void *from, size_t j)
{
    uint64_t element = 0;
    size_t bit = j * type->bits;
    memcpy(&element, (const char *)from + bit / 8, (type->bits + 7) / 8);
    element >>= bit % 8;
    set_bits(type, to, i, type->bits < 8 ? element & ((1u << type->bits) - 1) : element);
}

double elem_round(const elem_type *type, double x)
{
    return decode(type, encode(type, x) + (1u << type->ignored_bits >> 1));
}

bool elem_holds(const elem_type *type, double x)
{
    double rounded = elem_round(type, x);
    return elem_is_integer(type) ? rounded == x : isfinite(rounded) || !isfinite(x);
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
    size_t n;
    uint64_t seed;
} fill;

/* Two numbers of a random word: by Box-Muller, or of the range of an integer type. */
static void draw(const elem_type *t, uint64_t word, double out[2])
{
    double u = ((double)(word >> 32) + 0.5) * 0x1p-32, v = (double)(uint32_t)word * 0x1p-32;
    if (elem_is_integer(t)) {
        bool small = t->bits <= 8;
        double least = small ? least_of(t) : -32768, count = small ? ldexp(1, (int)t->bits) : 65536;
        out[0] = least + floor(u * count);
        out[1] = least + floor(v * count);
        return;
    }
    double radius = sqrt(-2 * log(u)), angle = 6.283185307179586 * v;
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

/* Elements 2j and 2j + 1, which may share a byte, come from the j-th random word. */
static void fill_pairs(size_t begin, size_t end, void *user)
{
    const fill *f = user;
    for (size_t j = begin; j < end; j++) {
        double pair[2];
        draw(f->type, mix(f->seed + (j + 1) * UINT64_C(0x9e3779b97f4a7c15)), pair);
        for (size_t h = 0; h < 2 && 2 * j + h < f->n; h++)
            elem_set(f->type, f->data, 2 * j + h, pair[h]);
    }
}

void elem_fill_random(const elem_type *type, void *data, size_t n, uint64_t seed)
{
    parallel_for((n + 1) / 2, GRAIN / 2, fill_pairs, &(fill){type, data, n, mix(seed)});
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

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/number.h"

#include <math.h>
#include <string.h>

/* IEEE 754 and, for e4m3 and e5m2, the OCP 8-bit floating point specification: e4m3 has no
 * infinity and a single NaN, all ones. */
typedef struct format {
    int exp_bits, mant_bits, bias;
    double max;
    bool has_inf;
    int shift; /* of the lowest bit in its storage: tf32 leaves 13 bits of an f32 unused */
} format;

static const format formats[TCC_SCALAR_COUNT] = {
    [TCC_f32] = {8, 23, 127, 0x1.fffffep127, true, 0},
    [TCC_f64] = {11, 52, 1023, 0x1.fffffffffffffp1023, true, 0},
    [TCC_f16] = {5, 10, 15, 65504, true, 0},
    [TCC_bf16] = {8, 7, 127, 0x1.fep127, true, 0},
    [TCC_tf32] = {8, 10, 127, 0x1.ffcp127, true, 13},
    [TCC_e4m3] = {4, 3, 7, 448, false, 0},
    [TCC_e5m2] = {5, 2, 15, 57344, true, 0},
};

static bool is_float(tcc_scalar elem)
{
    return tcc_scalar_classify(elem) == TCC_CLASS_FLOAT;
}

enum { WIDE_MANT_BITS = 52, WIDE_BIAS = 1023 }; /* of a double */

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static double with_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* log2 of |v|, without its fraction; -1023 for what is subnormal in double. */
static int exponent_of(double v)
{
    return (int)(bits_of(v) >> WIDE_MANT_BITS & 0x7ff) - WIDE_BIAS;
}

/* A type's exponents are those of a double, whose bias differs: a number's fields, put into a double's, give it times a
 * power of two, which is exact for subnormal numbers as well. No branch depends on the number: this is the inner
 * loop of products. */
static inline double exp2_of(int e)
{
    return with_bits((uint64_t)(e + WIDE_BIAS) << WIDE_MANT_BITS);
}

/* |v| in steps, which are powers of two, to nearest; from the middle on to the larger one. */
static double round_away(double v, double step)
{
    double steps = fabs(v) / step, whole = floor(steps);
    return copysign((steps - whole < 0.5 ? whole : whole + 1) * step, v);
}

/* Where the numbers of the type are 2^s apart, adding 1.5 * 2^(52 + s) leaves no bits below that. */
double tcc_round_narrow(double v, tcc_scalar elem)
{
    const format *f = &formats[elem];
    if (v == 0 || !isfinite(v))
        return isinf(v) && !f->has_inf ? (double)NAN : v;
    int e = exponent_of(v);
    if (e > f->bias + 1) /* beyond all of the type */
        return f->has_inf ? copysign((double)INFINITY, v) : (double)NAN;
    if (e < 1 - f->bias)
        e = 1 - f->bias; /* subnormal: the spacing no longer shrinks */
    double shift = 1.5 * with_bits((uint64_t)(e - f->mant_bits + WIDE_MANT_BITS + WIDE_BIAS)
                                   << WIDE_MANT_BITS);
    double r = elem == TCC_tf32 ? round_away(v, ldexp(1, e - f->mant_bits)) : (v + shift) - shift;
    if (fabs(r) > f->max)
        return f->has_inf ? copysign((double)INFINITY, v) : (double)NAN;
    return r == 0 ? copysign(0, v) : r;
}

int64_t tcc_truncate(double v)
{
    const double limit = 0x1p63;
    return isnan(v) ? 0 : v >= limit ? INT64_MAX : v < -limit ? INT64_MIN : (int64_t)v;
}

double tcc_poison(void)
{
    return with_bits(TCC_POISON_BITS);
}

/* The mantissa of a NaN: only the highest bit, or poison's. */
static uint64_t nan_mantissa(const format *f, double v)
{
    if (!f->has_inf)
        return (UINT64_C(1) << f->mant_bits) - 1;
    if (!tcc_is_poison(v))
        return UINT64_C(1) << (f->mant_bits - 1);
    return (TCC_POISON_BITS & ((UINT64_C(1) << 52) - 1)) >> (52 - f->mant_bits);
}

static inline uint64_t encode(tcc_cell v, tcc_scalar elem)
{
    if (!is_float(elem)) {
        unsigned bits = tcc_scalar_bits(elem);
        return (uint64_t)v.i & (bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1);
    }
    if (elem == TCC_f32 && !isnan(v.f)) {
        float narrow = (float)v.f;
        uint32_t bits;
        memcpy(&bits, &narrow, sizeof bits);
        return bits;
    }
    if (elem == TCC_f64 && !isnan(v.f))
        return bits_of(v.f);
    const format *f = &formats[elem];
    uint64_t sign = signbit(v.f) ? UINT64_C(1) << (f->exp_bits + f->mant_bits) : 0;
    uint64_t top = ((UINT64_C(1) << f->exp_bits) - 1) << f->mant_bits;
    if (isnan(v.f))
        return (top | nan_mantissa(f, v.f)) << f->shift;
    if (isinf(v.f))
        return (sign | top) << f->shift;
    uint64_t rebiased = bits_of(fabs(v.f) * exp2_of(f->bias - WIDE_BIAS)) >> (WIDE_MANT_BITS - f->mant_bits);
    return (sign | rebiased) << f->shift;
}

uint64_t tcc_encode(tcc_cell v, tcc_scalar elem)
{
    return encode(v, elem);
}

static inline tcc_cell decode(uint64_t bits, tcc_scalar elem)
{
    if (!is_float(elem))
        return (tcc_cell){.i = tcc_int_wrap(elem, (int64_t)bits)};
    if (elem == TCC_f32) {
        uint32_t narrow = (uint32_t)bits;
        float v;
        memcpy(&v, &narrow, sizeof v);
        if (!isnan(v))
            return (tcc_cell){.f = v};
    }
    if (elem == TCC_f64 && !isnan(with_bits(bits)))
        return (tcc_cell){.f = with_bits(bits)};
    const format *f = &formats[elem];
    bits >>= f->shift;
    uint64_t mant = bits & ((UINT64_C(1) << f->mant_bits) - 1);
    uint64_t exp = bits >> f->mant_bits & ((UINT64_C(1) << f->exp_bits) - 1);
    uint64_t sign = bits >> (f->mant_bits + f->exp_bits) & 1;
    bool last = exp == (UINT64_C(1) << f->exp_bits) - 1;
    if (last && (f->has_inf || mant == (UINT64_C(1) << f->mant_bits) - 1)) {
        double v = f->has_inf && !mant                                   ? (double)INFINITY
                   : f->has_inf && mant == nan_mantissa(f, tcc_poison()) ? tcc_poison()
                                                                         : (double)NAN;
        return (tcc_cell){.f = sign ? -v : v};
    }
    uint64_t wide = sign << 63 | exp << WIDE_MANT_BITS | mant << (WIDE_MANT_BITS - f->mant_bits);
    return (tcc_cell){.f = with_bits(wide) * exp2_of(WIDE_BIAS - f->bias)};
}

tcc_cell tcc_decode(uint64_t bits, tcc_scalar elem)
{
    return decode(bits, elem);
}

/* ---- memory ---------------------------------------------------------------------------- */

/* Numbers of a type that is known when this is compiled, the inner loop of products: C's own type of this size loads
 * and stores them, in little-endian order, as the GPU. */
#define WHOLE_BYTES(WITH)                                                                          \
    WITH(f16, uint16_t) WITH(bf16, uint16_t) WITH(f32, uint32_t) WITH(tf32, uint32_t)              \
    WITH(i32, uint32_t) WITH(i8, uint8_t) WITH(u8, uint8_t) WITH(e4m3, uint8_t) WITH(e5m2, uint8_t)
#define FUNCTIONS(id, word)                                                                        \
    static void decode_##id(const uint8_t *bytes, size_t n, tcc_cell *cells, size_t step)          \
    {                                                                                              \
        for (size_t e = 0; e < n; e++) {                                                           \
            word bits;                                                                             \
            memcpy(&bits, bytes + e * sizeof bits, sizeof bits);                                   \
            cells[e * step] = decode(bits, TCC_##id);                                              \
        }                                                                                          \
    }                                                                                              \
    static void encode_##id(const tcc_cell *cells, size_t step, size_t n, uint8_t *bytes)          \
    {                                                                                              \
        for (size_t e = 0; e < n; e++) {                                                           \
            word bits = (word)encode(cells[e * step], TCC_##id);                                   \
            memcpy(bytes + e * sizeof bits, &bits, sizeof bits);                                   \
        }                                                                                          \
    }
WHOLE_BYTES(FUNCTIONS)

static const struct {
    void (*decode)(const uint8_t *bytes, size_t n, tcc_cell *cells, size_t step);
    void (*encode)(const tcc_cell *cells, size_t step, size_t n, uint8_t *bytes);
} functions[TCC_SCALAR_COUNT] = {
#define ROW(id, word) [TCC_##id] = {decode_##id, encode_##id},
    WHOLE_BYTES(ROW)
};

void tcc_decode_bytes(const uint8_t *bytes, size_t n, tcc_scalar elem, tcc_cell *cells, size_t step)
{
    size_t bits = tcc_scalar_bits(elem), size = bits / 8;
    if (functions[elem].decode) {
        functions[elem].decode(bytes, n, cells, step);
        return;
    }
    for (size_t e = 0; e < n; e++) {
        uint64_t element = 0;
        if (size)
            memcpy(&element, bytes + e * size, size);
        else
            element = bytes[e * bits / 8] >> e % 2 * bits & ((1u << bits) - 1);
        cells[e * step] = decode(element, elem);
    }
}

void tcc_encode_bytes(const tcc_cell *cells, size_t step, size_t n, tcc_scalar elem, uint8_t *bytes)
{
    size_t bits = tcc_scalar_bits(elem), size = bits / 8;
    if (functions[elem].encode) {
        functions[elem].encode(cells, step, n, bytes);
        return;
    }
    for (size_t e = 0; e < n; e++) {
        uint64_t element = encode(cells[e * step], elem);
        if (size)
            memcpy(bytes + e * size, &element, size);
        else
            bytes[e * bits / 8] = (uint8_t)((e % 2 ? bytes[e * bits / 8] : 0) | element << e % 2 * bits);
    }
}

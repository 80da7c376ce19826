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

double tcc_round_float(double v, tcc_scalar elem)
{
    if (elem == TCC_f32)
        return (double)(float)v;
    if (v == 0 || !isfinite(v))
        return isinf(v) && !formats[elem].has_inf ? (double)NAN : v;
    const format *f = &formats[elem];
    int e;
    frexp(v, &e); /* |v| is in [0.5, 1) * 2^e, that is 1.x * 2^(e - 1) */
    if (e - 1 < 1 - f->bias)
        e = 2 - f->bias; /* subnormal: the spacing no longer shrinks */
    double spacing = ldexp(1, e - 1 - f->mant_bits);
    double r = nearbyint(v / spacing) * spacing;
    if (fabs(r) > f->max)
        return f->has_inf ? copysign((double)INFINITY, v) : (double)NAN;
    return r == 0 ? copysign(0, v) : r;
}

int64_t tcc_truncate(double v)
{
    const double limit = 0x1p63;
    return isnan(v) ? 0 : v >= limit ? INT64_MAX : v < -limit ? INT64_MIN : (int64_t)v;
}

/* Every type keeps the highest bits of its mantissa, in numbers and in memory. */
static const uint64_t poison_bits = UINT64_C(0x7ffdead000000000);

double tcc_poison(void)
{
    double v;
    memcpy(&v, &poison_bits, sizeof v);
    return v;
}

bool tcc_is_poison(double v)
{
    enum { KEPT_BY_BF16 = 7 };
    const uint64_t kept = UINT64_C(0x7ff) << 52 | ((UINT64_C(1) << KEPT_BY_BF16) - 1)
                                                      << (52 - KEPT_BY_BF16);
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return (bits & kept) == (poison_bits & kept);
}

/* The mantissa of a NaN: the highest bit alone, or poison's. */
static uint64_t nan_mantissa(const format *f, double v)
{
    if (!f->has_inf)
        return (UINT64_C(1) << f->mant_bits) - 1;
    if (!tcc_is_poison(v))
        return UINT64_C(1) << (f->mant_bits - 1);
    return (poison_bits & ((UINT64_C(1) << 52) - 1)) >> (52 - f->mant_bits);
}

uint64_t tcc_encode(tcc_cell v, tcc_scalar elem)
{
    if (!is_float(elem)) {
        unsigned bits = tcc_scalar_bits(elem);
        return (uint64_t)v.i & (bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1);
    }
    const format *f = &formats[elem];
    uint64_t sign = signbit(v.f) ? UINT64_C(1) << (f->exp_bits + f->mant_bits) : 0;
    uint64_t top = ((UINT64_C(1) << f->exp_bits) - 1) << f->mant_bits;
    if (isnan(v.f))
        return (top | nan_mantissa(f, v.f)) << f->shift;
    if (isinf(v.f))
        return (sign | top) << f->shift;
    if (v.f == 0)
        return sign << f->shift;
    int e;
    double m = fabs(frexp(v.f, &e));
    int biased = e - 1 + f->bias;
    if (biased < 1) /* subnormal */
        return (sign | (uint64_t)ldexp(m, e - 1 + f->bias + f->mant_bits)) << f->shift;
    uint64_t mant = (uint64_t)ldexp(m, f->mant_bits + 1) & ((UINT64_C(1) << f->mant_bits) - 1);
    return (sign | (uint64_t)biased << f->mant_bits | mant) << f->shift;
}

tcc_cell tcc_decode(uint64_t bits, tcc_scalar elem)
{
    if (!is_float(elem))
        return (tcc_cell){.i = tcc_int_wrap(elem, (int64_t)bits)};
    const format *f = &formats[elem];
    bits >>= f->shift;
    uint64_t mant = bits & ((UINT64_C(1) << f->mant_bits) - 1);
    uint64_t exp = bits >> f->mant_bits & ((UINT64_C(1) << f->exp_bits) - 1);
    uint64_t sign = bits >> (f->mant_bits + f->exp_bits) & 1;
    bool last = exp == (UINT64_C(1) << f->exp_bits) - 1;
    double v;
    if (last && f->has_inf) {
        v = !mant                                   ? (double)INFINITY
            : mant == nan_mantissa(f, tcc_poison()) ? tcc_poison()
                                                    : (double)NAN;
    } else if (last && mant == (UINT64_C(1) << f->mant_bits) - 1) {
        v = (double)NAN;
    } else if (exp == 0) {
        v = mant ? ldexp((double)mant, 1 - f->bias - f->mant_bits) : 0;
    } else { /* straight into a double's fields: this is the inner loop of products */
        uint64_t wide = (exp - (uint64_t)f->bias + 1023) << 52 | mant << (52 - f->mant_bits);
        memcpy(&v, &wide, sizeof v);
    }
    return (tcc_cell){.f = sign ? -v : v};
}

/* Conversions of 8-bit floats by integer arithmetic, for targets without instructions for them. OCP 8-bit Floating
 * Point Specification, "Encoding".
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>

#include "codegen/lower.h"

enum { F32_MANTISSA = 23, F32_BIAS = 127, F32_INF = 0x7f800000, F32_SIGN_TO_BYTE = 24 };
enum { SIGN = 0x80, MAGNITUDE = 0x7f }; /* of a byte */

typedef struct format {
    unsigned mantissa; /* its bits that are stored */
    unsigned bias;     /* of the exponent */
    bool has_infinity;
} format;

static format format_of(tcc_scalar elem)
{
    return elem == TCC_e4m3 ? (format){3, 7, false} : (format){2, 15, true};
}

static LLVMValueRef number(LLVMValueRef like, uint64_t n)
{
    return LLVMConstInt(LLVMTypeOf(like), n, false);
}

static LLVMValueRef part(const tcc_lower *l, LLVMValueRef x, uint64_t mask)
{
    return LLVMBuildAnd(l->builder, x, number(x, mask), "");
}

static LLVMValueRef shifted(const tcc_lower *l, LLVMValueRef x, unsigned by)
{
    return LLVMBuildShl(l->builder, x, number(x, by), "");
}

/* Both are the f16 with the same bits in front. Exponents of e4m3 are one bit shorter, with a bias that is 8 less, and
 * its greatest number is NaN. */
static void to_f32(tcc_lower *l, tcc_scalar from, LLVMValueRef byte, LLVMValueRef *out)
{
    enum { BYTE_TO_HALF = 8, EXPONENT_SHORTER = 1, SCALE = 256 };
    LLVMBuilderRef b = l->builder;
    LLVMTypeRef f32 = l->types[TCC_f32];
    LLVMValueRef wide = LLVMBuildZExt(b, byte, LLVMInt16TypeInContext(l->context), "");
    if (from == TCC_e5m2) {
        *out = LLVMBuildFPExt(b, LLVMBuildBitCast(b, shifted(l, wide, BYTE_TO_HALF), l->types[TCC_f16], ""), f32, "");
        return;
    }
    LLVMValueRef magnitude = part(l, wide, MAGNITUDE);
    LLVMValueRef half = LLVMBuildOr(b, shifted(l, part(l, wide, SIGN), BYTE_TO_HALF),
                                    shifted(l, magnitude, BYTE_TO_HALF - EXPONENT_SHORTER), "");
    LLVMValueRef x = LLVMBuildFPExt(b, LLVMBuildBitCast(b, half, l->types[TCC_f16], ""), f32, "");
    x = LLVMBuildFMul(b, x, LLVMConstReal(f32, SCALE), "");
    LLVMValueRef is_nan = LLVMBuildICmp(b, LLVMIntEQ, magnitude, number(magnitude, MAGNITUDE), "");
    *out = LLVMBuildSelect(b, is_nan, LLVMConstReal(f32, (double)NAN), x, "");
}

/* The bits of a magnitude, rounded to nearest even where the result has an exponent of its own. */
static LLVMValueRef round_normal(const tcc_lower *l, format to, LLVMValueRef magnitude)
{
    LLVMBuilderRef b = l->builder;
    unsigned drop = F32_MANTISSA - to.mantissa;
    LLVMValueRef odd = part(l, LLVMBuildLShr(b, magnitude, number(magnitude, drop), ""), 1);
    LLVMValueRef rounded = LLVMBuildAdd(b, magnitude, number(magnitude, (UINT64_C(1) << (drop - 1)) - 1), "");
    rounded = LLVMBuildLShr(b, LLVMBuildAdd(b, rounded, odd, ""), number(magnitude, drop), "");
    return LLVMBuildSub(b, rounded, number(magnitude, (uint64_t)(F32_BIAS - to.bias) << to.mantissa), "");
}

/* Where it has the least: a number is added whose last bit is worth as much as the result's. */
static LLVMValueRef round_subnormal(const tcc_lower *l, format to, LLVMValueRef magnitude)
{
    LLVMBuilderRef b = l->builder;
    uint64_t exponent = F32_BIAS - to.bias + F32_MANTISSA - to.mantissa + 1;
    LLVMValueRef bits = number(magnitude, exponent << F32_MANTISSA);
    LLVMTypeRef f32 = l->types[TCC_f32];
    LLVMValueRef x = LLVMBuildBitCast(b, magnitude, f32, ""), more = LLVMBuildBitCast(b, bits, f32, "");
    LLVMValueRef sum = LLVMBuildFAdd(b, x, more, "");
    return LLVMBuildSub(b, LLVMBuildBitCast(b, sum, LLVMTypeOf(magnitude), ""), bits, "");
}

static LLVMValueRef from_f32(tcc_lower *l, tcc_scalar elem, const LLVMValueRef *in)
{
    enum { E5M2_INF = 0x7c };
    LLVMBuilderRef b = l->builder;
    const format to = format_of(elem);
    LLVMValueRef bits = LLVMBuildBitCast(b, *in, LLVMInt32TypeInContext(l->context), "");
    LLVMValueRef magnitude = part(l, bits, INT32_MAX), nan = number(bits, MAGNITUDE);
    LLVMValueRef least_normal = number(bits, (uint64_t)(F32_BIAS - to.bias + 1) << F32_MANTISSA);
    LLVMValueRef is_small = LLVMBuildICmp(b, LLVMIntULT, magnitude, least_normal, "");
    LLVMValueRef r =
        LLVMBuildSelect(b, is_small, round_subnormal(l, to, magnitude), round_normal(l, to, magnitude), "");
    LLVMValueRef beyond = to.has_infinity ? number(bits, E5M2_INF) : nan; /* the first that is not finite */
    r = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntUGT, r, beyond, ""), beyond, r, "");
    if (to.has_infinity)
        r = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntUGT, magnitude, number(bits, F32_INF), ""), nan, r, "");
    LLVMValueRef sign = part(l, LLVMBuildLShr(b, bits, number(bits, F32_SIGN_TO_BYTE), ""), SIGN);
    return LLVMBuildTrunc(b, LLVMBuildOr(b, r, sign, ""), LLVMInt8TypeInContext(l->context), "");
}

const tcc_fp8 tcc_fp8_in_software = {1, to_f32, from_f32};

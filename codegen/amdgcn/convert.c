/* Conversions of 8-bit floats, which RDNA4 has, two at a time: RDNA4 ISA, V_CVT_PK_F32_FP8 and its
 * kin. What is too large becomes NaN or, e5m2, an infinity: the mode FP16_OVFL, which would make it
 * the largest number, is off.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/amdgcn/amdgcn.h"
#include "ir/target.h"

enum { PER_WORD = 4, PER_PAIR = 2 };

static bool is_fp8(tcc_scalar s)
{
    return s == TCC_e4m3 || s == TCC_e5m2;
}

bool tcc_amdgcn_is_fp8_cast(const tcc_op *op)
{
    return op->code == TCC_OP_arith_cast &&
           (is_fp8(op->operands[0]->type->elem) || is_fp8(op->results[0].type->elem));
}

/* n elements, filled up with zeros. */
static const LLVMValueRef *padded(const tcc_lower *l, const LLVMValueRef *elems, unsigned n,
                                  unsigned to)
{
    LLVMValueRef *out = TCC_NEW_ARRAY(l->arena, LLVMValueRef, to);
    for (unsigned i = 0; i < to; i++)
        out[i] = i < n ? elems[i] : LLVMConstNull(LLVMTypeOf(elems[0]));
    return out;
}

/* Words of four 8-bit floats as f32. */
static const LLVMValueRef *to_f32(const tcc_lower *l, const LLVMValueRef *words, unsigned n_words,
                                  tcc_scalar from)
{
    const char *name =
        from == TCC_e4m3 ? "llvm.amdgcn.cvt.pk.f32.fp8" : "llvm.amdgcn.cvt.pk.f32.bf8";
    LLVMValueRef *out = TCC_NEW_ARRAY(l->arena, LLVMValueRef, (size_t)n_words * PER_WORD);
    for (unsigned i = 0; i < n_words * PER_WORD; i += PER_PAIR) {
        LLVMValueRef args[] = {words[i / PER_WORD],
                               LLVMConstInt(l->types[TCC_i1], i % PER_WORD != 0, false)};
        LLVMValueRef pair = tcc_lower_intrinsic(l, name, NULL, 2, args);
        for (unsigned k = 0; k < PER_PAIR; k++)
            out[i + k] = LLVMBuildExtractElement(l->builder, pair, tcc_lower_i32(l, k), "");
    }
    return out;
}

/* f32 as words of four. */
static const LLVMValueRef *from_f32(const tcc_lower *l, const LLVMValueRef *floats,
                                    unsigned n_words, tcc_scalar to)
{
    const char *name = to == TCC_e4m3 ? "llvm.amdgcn.cvt.pk.fp8.f32" : "llvm.amdgcn.cvt.pk.bf8.f32";
    LLVMValueRef *out = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n_words);
    for (unsigned i = 0; i < n_words; i++) {
        out[i] = LLVMGetPoison(l->types[TCC_i32]);
        for (unsigned k = 0; k < PER_WORD; k += PER_PAIR) {
            LLVMValueRef args[] = {floats[i * PER_WORD + k], floats[i * PER_WORD + k + 1], out[i],
                                   LLVMConstInt(l->types[TCC_i1], k != 0, false)};
            out[i] = tcc_lower_intrinsic(l, name, NULL, 4, args);
        }
    }
    return out;
}

static const LLVMValueRef *cast_all(const tcc_lower *l, const LLVMValueRef *elems, unsigned n,
                                    tcc_scalar from, tcc_scalar to)
{
    LLVMValueRef *out = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    for (unsigned i = 0; i < n; i++)
        out[i] = tcc_lower_cast(l, elems[i], from, to);
    return out;
}

bool tcc_amdgcn_fp8_cast(tcc_lower *l, const tcc_op *op)
{
    tcc_scalar from = op->operands[0]->type->elem, to = op->results[0].type->elem;
    unsigned n = tcc_lower_count(op->results[0].type), n_words = (n + PER_WORD - 1) / PER_WORD;
    unsigned n_padded = n_words * PER_WORD;
    if (!tcc_target_can(l->target, TCC_CAN_fp8)) {
        tcc_error(l->diag, TCC_ERR_TARGET, op->loc, "'arith.cast': %s has no conversions of %s",
                  l->target->name, tcc_scalar_name(is_fp8(from) ? from : to));
        return false;
    }
    const LLVMValueRef *x = padded(l, tcc_lower_elems(l, op->operands[0]), n, n_padded);
    if (is_fp8(from)) {
        x = to_f32(l, tcc_lower_bitcast(l, x, n_padded, l->types[TCC_i32], n_words), n_words, from);
        from = TCC_f32;
    }
    if (is_fp8(to)) {
        x = from_f32(l, cast_all(l, x, n_padded, from, TCC_f32), n_words, to);
        x = tcc_lower_bitcast(l, x, n_words, l->types[to], n_padded);
    } else {
        x = cast_all(l, x, n, from, to);
    }
    tcc_lower_set(l, op->results, x);
    return true;
}

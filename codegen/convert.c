/* Conversions of 8-bit floats, which LLVM has no types for: by the instructions of a target, some at a time, packed in
 * an integer, or by integer arithmetic (fp8.c).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/lower.h"

static bool is_fp8(tcc_scalar s)
{
    return s == TCC_e4m3 || s == TCC_e5m2;
}

bool tcc_lower_is_fp8_cast(const tcc_op *op)
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

static const LLVMValueRef *cast_all(const tcc_lower *l, const LLVMValueRef *elems, unsigned n,
                                    tcc_scalar from, tcc_scalar to)
{
    LLVMValueRef *out = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    for (unsigned i = 0; i < n; i++)
        out[i] = tcc_lower_cast(l, elems[i], from, to);
    return out;
}

void tcc_lower_fp8_cast(tcc_lower *l, const tcc_op *op)
{
    const tcc_fp8 *fp8 = tcc_target_can(l->target, TCC_CAN_fp8) ? &l->backend->fp8 : &tcc_fp8_in_software;
    tcc_scalar from = op->operands[0]->type->elem, to = op->results[0].type->elem;
    unsigned n = tcc_lower_count(op->results[0].type), n_words = (n + fp8->at_once - 1) / fp8->at_once;
    unsigned n_padded = n_words * fp8->at_once;
    LLVMTypeRef word = LLVMIntTypeInContext(l->context, 8 * fp8->at_once);
    const LLVMValueRef *x = padded(l, tcc_lower_elems(l, op->operands[0]), n, n_padded);
    if (is_fp8(from)) {
        const LLVMValueRef *words = tcc_lower_bitcast(l, x, n_padded, word, n_words);
        LLVMValueRef *floats = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n_padded);
        for (unsigned i = 0; i < n_words; i++)
            fp8->to_f32(l, from, words[i], floats + i * fp8->at_once);
        x = floats;
        from = TCC_f32;
    }
    if (is_fp8(to)) {
        LLVMValueRef *words = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n_words);
        x = cast_all(l, x, n_padded, from, TCC_f32);
        for (unsigned i = 0; i < n_words; i++)
            words[i] = fp8->from_f32(l, to, x + i * fp8->at_once);
        x = tcc_lower_bitcast(l, words, n_words, l->types[to], n_padded);
    } else {
        x = cast_all(l, x, n, from, to);
    }
    tcc_lower_set(l, op->results, x);
}

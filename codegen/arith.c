/* Elementwise ops, one LLVM instruction for each element.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <assert.h>
#include <string.h>

#include "codegen/lower.h"
#include "ir/number.h"

enum { MAX_ARGS = 3 };

static bool is_float(tcc_scalar s)
{
    return tcc_scalar_classify(s) == TCC_CLASS_FLOAT;
}

static LLVMValueRef call(const tcc_lower *l, const char *intrinsic, unsigned n,
                         const LLVMValueRef *args)
{
    return tcc_lower_intrinsic(l, intrinsic, LLVMTypeOf(args[0]), n, args);
}

static LLVMValueRef float_arith(const tcc_lower *l, tcc_opcode code, const LLVMValueRef *a)
{
    LLVMBuilderRef b = l->builder;
    switch (code) {
    case TCC_OP_arith_add: return LLVMBuildFAdd(b, a[0], a[1], "");
    case TCC_OP_arith_sub: return LLVMBuildFSub(b, a[0], a[1], "");
    case TCC_OP_arith_mul: return LLVMBuildFMul(b, a[0], a[1], "");
    case TCC_OP_arith_fma: return call(l, "llvm.fma", 3, a);
    case TCC_OP_arith_min: return call(l, "llvm.minnum", 2, a);
    case TCC_OP_arith_max: return call(l, "llvm.maxnum", 2, a);
    case TCC_OP_arith_neg: return LLVMBuildFNeg(b, a[0], "");
    case TCC_OP_math_abs: return call(l, "llvm.fabs", 1, a);
    case TCC_OP_math_roundeven: return call(l, "llvm.roundeven", 1, a);
    default: return NULL;
    }
}

static LLVMValueRef at_least_1(const tcc_lower *l, LLVMValueRef by)
{
    return call(l, "llvm.smax", 2, (LLVMValueRef[]){by, LLVMConstInt(LLVMTypeOf(by), 1, 0)});
}

/* a is made -1 - a where it is negative, and so is then the quotient: between the two it rounds down. */
static LLVMValueRef floor_div(const tcc_lower *l, LLVMValueRef a, LLVMValueRef by)
{
    LLVMBuilderRef b = l->builder;
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef sign = LLVMBuildAShr(b, a, LLVMConstInt(type, LLVMGetIntTypeWidth(type) - 1, 0), "");
    return LLVMBuildXor(b, LLVMBuildUDiv(b, LLVMBuildXor(b, a, sign, ""), by, ""), sign, "");
}

static LLVMValueRef floor_rem(const tcc_lower *l, LLVMValueRef a, LLVMValueRef by)
{
    return LLVMBuildSub(l->builder, a, LLVMBuildMul(l->builder, by, floor_div(l, a, by), ""), "");
}

static LLVMValueRef int_arith(const tcc_lower *l, tcc_opcode code, const LLVMValueRef *a)
{
    LLVMBuilderRef b = l->builder;
    LLVMValueRef abs_args[] = {a[0], LLVMConstNull(l->types[TCC_i1])}; /* wraps at the minimum */
    switch (code) {
    case TCC_OP_arith_add: return LLVMBuildAdd(b, a[0], a[1], "");
    case TCC_OP_arith_sub: return LLVMBuildSub(b, a[0], a[1], "");
    case TCC_OP_arith_mul: return LLVMBuildMul(b, a[0], a[1], "");
    case TCC_OP_arith_div: return LLVMBuildSDiv(b, a[0], a[1], "");
    case TCC_OP_arith_rem: return LLVMBuildSRem(b, a[0], a[1], "");
    case TCC_OP_arith_floor_div: return floor_div(l, a[0], at_least_1(l, a[1]));
    case TCC_OP_arith_floor_rem: return floor_rem(l, a[0], at_least_1(l, a[1]));
    case TCC_OP_arith_min: return call(l, "llvm.smin", 2, a);
    case TCC_OP_arith_max: return call(l, "llvm.smax", 2, a);
    case TCC_OP_arith_and: return LLVMBuildAnd(b, a[0], a[1], "");
    case TCC_OP_arith_or: return LLVMBuildOr(b, a[0], a[1], "");
    case TCC_OP_arith_xor: return LLVMBuildXor(b, a[0], a[1], "");
    case TCC_OP_arith_shl: return LLVMBuildShl(b, a[0], a[1], "");
    case TCC_OP_arith_shr: return LLVMBuildLShr(b, a[0], a[1], "");
    case TCC_OP_arith_neg: return LLVMBuildNeg(b, a[0], "");
    case TCC_OP_math_abs: return call(l, "llvm.abs", 2, abs_args);
    default: return NULL;
    }
}

static LLVMValueRef cmp(const tcc_lower *l, const tcc_op *op, const LLVMValueRef *a)
{
    static const struct {
        const char *name;
        LLVMIntPredicate of_ints;
        LLVMRealPredicate of_floats;
    } preds[] = {
        {"eq", LLVMIntEQ, LLVMRealOEQ},  {"ne", LLVMIntNE, LLVMRealUNE},
        {"lt", LLVMIntSLT, LLVMRealOLT}, {"le", LLVMIntSLE, LLVMRealOLE},
        {"gt", LLVMIntSGT, LLVMRealOGT}, {"ge", LLVMIntSGE, LLVMRealOGE},
    };
    const char *name = tcc_attr_str(&op->attrs, "pred", "");
    for (size_t i = 0; i < sizeof preds / sizeof *preds; i++)
        if (!strcmp(preds[i].name, name))
            return is_float(op->operands[0]->type->elem)
                       ? LLVMBuildFCmp(l->builder, preds[i].of_floats, a[0], a[1], "")
                       : LLVMBuildICmp(l->builder, preds[i].of_ints, a[0], a[1], "");
    return NULL;
}

/* Saturates; NaN becomes 0. */
static LLVMValueRef to_int(const tcc_lower *l, LLVMValueRef x, LLVMTypeRef type, bool is_unsigned)
{
    LLVMTypeRef overloads[] = {type, LLVMTypeOf(x)};
    return tcc_lower_intrinsic_of(l, is_unsigned ? "llvm.fptoui.sat" : "llvm.fptosi.sat", 2,
                                  overloads, 1, &x);
}

/* What counts of an f32 as a tf32. */
static LLVMValueRef cut_to_tf32(const tcc_lower *l, LLVMValueRef x)
{
    enum { UNUSED_BITS = 13 };
    LLVMBuilderRef b = l->builder;
    LLVMValueRef used = LLVMConstInt(l->types[TCC_i32], UINT32_MAX << UNUSED_BITS, false);
    x = LLVMBuildAnd(b, LLVMBuildBitCast(b, x, l->types[TCC_i32], ""), used, "");
    return LLVMBuildBitCast(b, x, l->types[TCC_f32], "");
}

static LLVMValueRef to_tf32(const tcc_lower *l, LLVMValueRef x)
{
    return l->backend->round_to_tf32 ? cut_to_tf32(l, l->backend->round_to_tf32(l, x)) : NULL;
}

LLVMValueRef tcc_lower_cast(const tcc_lower *l, LLVMValueRef x, tcc_scalar from, tcc_scalar to)
{
    if (from == TCC_tf32 && to != TCC_tf32)
        return tcc_lower_cast(l, cut_to_tf32(l, x), TCC_f32, to);
    if (to == TCC_tf32 && from != TCC_tf32)
        return to_tf32(l, tcc_lower_cast(l, x, from, TCC_f32));
    LLVMBuilderRef b = l->builder;
    LLVMTypeRef type = l->types[to];
    unsigned from_bits = tcc_scalar_bits(from), to_bits = tcc_scalar_bits(to);
    if (from == to)
        return x;
    if (is_float(from) && is_float(to)) {
        if (from_bits == to_bits) /* f16 and bf16: f32 holds both */
            x = LLVMBuildFPExt(b, x, l->types[TCC_f32], "");
        return from_bits < to_bits ? LLVMBuildFPExt(b, x, type, "")
                                   : LLVMBuildFPTrunc(b, x, type, "");
    }
    if (is_float(from))
        return to_int(l, x, type, tcc_scalar_is_unsigned(to));
    if (is_float(to))
        return tcc_scalar_is_unsigned(from) ? LLVMBuildUIToFP(b, x, type, "")
                                            : LLVMBuildSIToFP(b, x, type, "");
    return LLVMBuildIntCast2(b, x, type, !tcc_scalar_is_unsigned(from), "");
}

/* For f64, rounded once if it is one instruction. */
static LLVMValueRef wide_math(const tcc_lower *l, tcc_opcode code, const LLVMValueRef *a)
{
    LLVMValueRef one = LLVMConstReal(l->types[TCC_f64], 1);
    switch (code) {
    case TCC_OP_arith_div: return LLVMBuildFDiv(l->builder, a[0], a[1], "");
    case TCC_OP_math_sqrt: return call(l, "llvm.sqrt", 1, a);
    case TCC_OP_math_rsqrt: return LLVMBuildFDiv(l->builder, one, call(l, "llvm.sqrt", 1, a), "");
    default: return NULL;
    }
}

/* The target's maths is for f32; narrower floats take the way through it. */
static LLVMValueRef math(tcc_lower *l, tcc_opcode code, tcc_scalar elem, unsigned n,
                         const LLVMValueRef *args)
{
    if (!is_float(elem))
        return NULL;
    if (elem == TCC_f64)
        return wide_math(l, code, args);
    LLVMValueRef wide[MAX_ARGS] = {NULL};
    for (unsigned i = 0; i < n; i++)
        wide[i] = tcc_lower_cast(l, args[i], elem, TCC_f32);
    LLVMValueRef r = l->backend->math(l, code, wide);
    return r ? tcc_lower_cast(l, r, TCC_f32, elem) : NULL;
}

/* Floats that LLVM has no type for. */
static bool is_bits(const tcc_lower *l, const tcc_type *type)
{
    return is_float(type->elem) && LLVMGetTypeKind(l->types[type->elem]) == LLVMIntegerTypeKind;
}

static LLVMValueRef constant(const tcc_lower *l, const tcc_op *op)
{
    const tcc_named_attr *value = tcc_attr_find(&op->attrs, "value");
    tcc_scalar elem = op->results[0].type->elem;
    LLVMTypeRef type = l->types[elem];
    if (value && is_bits(l, op->results[0].type)) {
        double f = value->value.kind == TCC_ATTR_INT ? (double)value->value.i : value->value.f;
        return LLVMConstInt(type, tcc_encode((tcc_cell){.f = tcc_round_float(f, elem)}, elem), false);
    }
    if (value && value->value.kind == TCC_ATTR_INT) {
        int64_t i = value->value.i;
        return is_float(elem)
                   ? LLVMConstReal(type, (double)i)
                   : LLVMConstInt(type, (unsigned long long)i, !tcc_scalar_is_unsigned(elem));
    }
    if (value && value->value.kind == TCC_ATTR_FLOAT && is_float(elem))
        return LLVMConstReal(type, value->value.f);
    return NULL;
}

static LLVMValueRef lower_elem(tcc_lower *l, const tcc_op *op, const LLVMValueRef *args)
{
    if (op->code == TCC_OP_arith_const)
        return constant(l, op);
    tcc_scalar elem = op->operands[0]->type->elem;
    LLVMValueRef r;
    switch (op->code) {
    case TCC_OP_arith_cmp: return cmp(l, op, args);
    case TCC_OP_arith_select: return LLVMBuildSelect(l->builder, args[0], args[1], args[2], "");
    case TCC_OP_arith_cast: return tcc_lower_cast(l, args[0], elem, op->results[0].type->elem);
    default:
        r = is_float(elem) ? float_arith(l, op->code, args) : int_arith(l, op->code, args);
        return r ? r : math(l, op->code, elem, op->n_operands, args);
    }
}

bool tcc_lower_elementwise(tcc_lower *l, const tcc_op *op)
{
    const LLVMValueRef *operands[MAX_ARGS];
    assert(op->n_operands <= MAX_ARGS);
    for (unsigned k = 0; k < op->n_operands; k++)
        if (is_bits(l, op->operands[k]->type) && op->code != TCC_OP_arith_select)
            return false;
    if (is_bits(l, op->results[0].type) && op->code != TCC_OP_arith_select && op->code != TCC_OP_arith_const)
        return false;
    for (unsigned k = 0; k < op->n_operands; k++)
        operands[k] = tcc_lower_elems(l, op->operands[k]);

    unsigned n = tcc_lower_count(op->results[0].type);
    LLVMValueRef *elems = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef args[MAX_ARGS] = {NULL};
        for (unsigned k = 0; k < op->n_operands; k++)
            args[k] = operands[k][i];
        elems[i] = lower_elem(l, op, args);
        if (!elems[i])
            return false;
    }
    tcc_lower_set(l, &op->results[0], elems);
    return true;
}

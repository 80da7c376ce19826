/* The version of PTX that a module is: the least that has its target and instructions, so that drivers of its time load
 * it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/nvptx/nvptx.h"
#include "ir/fragment.h"
#include "ir/signature.h"

static bool is_fp8(const tcc_value *v)
{
    return v->type->elem == TCC_e4m3 || v->type->elem == TCC_e5m2;
}

/* Whether it is an instruction that converts 8-bit floats. */
static bool converts_fp8(const tcc_target *target, const tcc_op *op)
{
    return op->code == TCC_OP_arith_cast && tcc_target_can(target, TCC_CAN_fp8) &&
           (is_fp8(op->operands[0]) || is_fp8(op->results));
}

/* What an op needs; 0: no more than the target. PTX ISA, "Release Notes". */
static int version_of(const tcc_target *target, const tcc_op *op)
{
    enum { CONVERSIONS_OF_FP8 = 81, ASYNCHRONOUS_STORES = 81 }; /* the former on sm_89; on sm_90 it was 7.8 */
    if (op->code == TCC_OP_nvvm_st_async_word)
        return ASYNCHRONOUS_STORES;
    if (op->code == TCC_OP_nvvm_mma)
        return tcc_mma_sync_of(op, NULL)->ptx;
    if (op->code == TCC_OP_nvvm_wgmma)
        return tcc_mma_of(op)->ptx;
    return converts_fp8(target, op) ? CONVERSIONS_OF_FP8 : 0;
}

/* What the parameters of a kernel want. PTX ISA, "Kernel Function Parameters". */
static int version_of_parameters(const tcc_func *f)
{
    enum { MAX_BYTES = 4352, MORE_BYTES = 81, MAP_BYTES = 128, POINTER_BYTES = 8 };
    int64_t bytes = 0;
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_type *t = f->body->args[i]->type;
        int64_t size = t->kind == TCC_KIND_tensormap ? MAP_BYTES
                       : t->kind == TCC_KIND_ptr     ? POINTER_BYTES
                                                     : (tcc_scalar_bits(t->elem) + 7) / 8;
        bytes = (bytes + size - 1) / size * size + size;
    }
    return bytes > MAX_BYTES ? MORE_BYTES : 0;
}

static int max_of(int a, int b)
{
    return a > b ? a : b;
}

int tcc_nvptx_version(const tcc_target *target, const tcc_ir *ir)
{
    int version = target->ptx;
    for (const tcc_func *f = ir->first; f; f = f->next) {
        if (tcc_func_is_definition(f))
            continue;
        version = max_of(version, version_of_parameters(f));
        for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
            version = max_of(version, version_of(target, op));
    }
    return version;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/cost.h"

enum { LANES = 32 };

typedef enum kind {
    ONE_INSTRUCTION, /* or one an element, where the op is elementwise */
    FREE,            /* a constant, or registers get other names */
    SPECIAL,
    DIVISION, /* special for floats, a sequence of instructions for integers */
    SMEM_LOAD,
    SMEM_STORE,
    GLOBAL_LOAD,
    GLOBAL_STORE,
    MBARRIER_WAIT,
    BARRIER
} kind;

static const kind kinds[TCC_OP_COUNT] = {
    [TCC_OP_arith_const] = FREE,
    [TCC_OP_arith_div] = DIVISION,
    [TCC_OP_arith_rem] = DIVISION,
    [TCC_OP_math_exp] = SPECIAL,
    [TCC_OP_math_log] = SPECIAL,
    [TCC_OP_math_exp2] = SPECIAL,
    [TCC_OP_math_rcp] = SPECIAL,
    [TCC_OP_math_log2] = SPECIAL,
    [TCC_OP_math_sqrt] = SPECIAL,
    [TCC_OP_math_rsqrt] = SPECIAL,
    [TCC_OP_math_tanh] = SPECIAL,
    [TCC_OP_scf_yield] = FREE,
    [TCC_OP_func_return] = FREE,
    [TCC_OP_vec_pack] = FREE,
    [TCC_OP_vec_slice] = FREE,
    [TCC_OP_vec_extract] = FREE,
    [TCC_OP_vec_splat] = FREE,
    [TCC_OP_vec_undef] = FREE,
    [TCC_OP_vec_bitcast] = FREE,
    [TCC_OP_nvvm_barrier] = BARRIER,
    [TCC_OP_nvvm_cluster_wait] = BARRIER,
    [TCC_OP_nvvm_mbarrier_wait] = MBARRIER_WAIT,
    [TCC_OP_nvvm_ldmatrix] = SMEM_LOAD,
    [TCC_OP_nvvm_stmatrix] = SMEM_STORE,
    [TCC_OP_nvvm_ld_shared] = SMEM_LOAD,
    [TCC_OP_nvvm_st_shared] = SMEM_STORE,
    [TCC_OP_nvvm_ld_global] = GLOBAL_LOAD,
    [TCC_OP_nvvm_st_global] = GLOBAL_STORE,
};

static uint64_t elements(const tcc_op *op)
{
    const tcc_type *t = op->n_results ? op->results[0].type : NULL;
    return t && t->kind == TCC_KIND_vec ? (uint64_t)tcc_type_count(t) : 1;
}

/* Of all lanes together. */
static uint64_t bytes(const tcc_type *t)
{
    return (uint64_t)tcc_type_count(t) * tcc_scalar_bits(t->elem) / 8 * LANES;
}

static tcc_cost arithmetic(const tcc_op *op, uint64_t issue)
{
    return (tcc_cost){.issue = elements(op) * issue, .latency = TCC_COST_arith_latency};
}

static tcc_cost load(const tcc_op *op, uint64_t latency)
{
    return (tcc_cost){.issue = 1, .smem_bytes = bytes(op->results[0].type), .latency = latency};
}

static tcc_cost store(const tcc_value *stored)
{
    return (tcc_cost){.issue = 1, .smem_bytes = bytes(stored->type)};
}

static bool is_float(const tcc_op *op)
{
    return tcc_scalar_classify(op->results[0].type->elem) == TCC_CLASS_FLOAT;
}

tcc_cost tcc_cost_of(const tcc_op *op)
{
    switch (kinds[op->code]) {
    case FREE: return (tcc_cost){0};
    case SPECIAL: return arithmetic(op, TCC_COST_special_issue);
    case DIVISION:
        return arithmetic(op, is_float(op) ? TCC_COST_special_issue : TCC_COST_divide_issue);
    case SMEM_LOAD: return load(op, TCC_COST_smem_latency);
    case SMEM_STORE: return store(op->operands[1]);
    case GLOBAL_LOAD: return load(op, TCC_COST_global_latency);
    case GLOBAL_STORE: return store(TCC_VIEW(nvvm_st_global, op)->a);
    case MBARRIER_WAIT: return (tcc_cost){.issue = 1, .hold = TCC_COST_smem_latency};
    case BARRIER: return (tcc_cost){.issue = 1, .hold = TCC_COST_barrier_latency};
    default: break;
    }
    bool each = tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    return each ? arithmetic(op, 1) : (tcc_cost){.issue = 1, .latency = TCC_COST_arith_latency};
}

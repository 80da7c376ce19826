/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/cost.h"

#include "ir/machine.h"

enum { LANES = 32 };

static uint64_t elements(const tcc_op *op)
{
    const tcc_type *t = op->n_results ? op->results[0].type : NULL;
    return t && t->kind == TCC_KIND_vec ? (uint64_t)tcc_type_count(t) : 1;
}

/* For all lanes together. */
static uint64_t bytes(const tcc_type *t)
{
    return (uint64_t)tcc_type_count(t) * tcc_scalar_bits(t->elem) / 8 * LANES;
}

static tcc_cost arithmetic(const tcc_op *op, uint64_t issue)
{
    return (tcc_cost){.issue = elements(op) * issue, .latency = TCC_COST_arith_latency};
}

/* For threads, not through the async proxy. */
static tcc_cost access(const tcc_op *op, bool reads, uint64_t latency)
{
    return (tcc_cost){
        .issue = 1, .smem_bytes = bytes(tcc_op_moves(op)), .latency = reads ? latency : 0};
}

static tcc_cost issue_of_mma(const tcc_op *op)
{
    enum { NARROW = 16 };
    bool narrow = tcc_attr_int(&op->attrs, "n", 0) <= NARROW;
    return (tcc_cost){.issue = 1, .hold = narrow ? TCC_COST_narrow_issue : 0};
}

static bool is_float(const tcc_op *op)
{
    return tcc_scalar_classify(op->results[0].type->elem) == TCC_CLASS_FLOAT;
}

tcc_cost tcc_cost_of(const tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    unsigned does = info->effects & TCC_ASYNC_PROXY ? 0 : info->effects;
    if (info->flags & TCC_FREE)
        return (tcc_cost){0};
    if (tcc_op_starts(op->code, TCC_BY_MMA_GROUP))
        return issue_of_mma(op);
    if (op->code == TCC_OP_nvvm_stamp)
        return (tcc_cost){.issue = TCC_COST_stamp_issue};
    if (info->flags & TCC_SPECIAL)
        return arithmetic(op, is_float(op) ? TCC_COST_special_issue : TCC_COST_divide_issue);
    if (does & (TCC_READS_SHARED | TCC_WRITES_SHARED))
        return access(op, does & TCC_READS_SHARED, TCC_COST_smem_latency);
    if (does & (TCC_READS_GLOBAL | TCC_WRITES_GLOBAL))
        return access(op, does & TCC_READS_GLOBAL, TCC_COST_global_latency);
    if (tcc_op_waits(op->code, TCC_BY_MBARRIER))
        return (tcc_cost){.issue = 1, .hold = TCC_COST_smem_latency};
    if (tcc_op_waits(op->code, TCC_BY_CLUSTER))
        return (tcc_cost){.issue = 1,
                          .hold = op->prev && tcc_attr_int(&op->prev->attrs, "relaxed", 0) ? TCC_COST_relaxed_latency
                                                                                           : TCC_COST_cluster_latency};
    if (tcc_op_waits(op->code, TCC_BY_WARPS))
        return (tcc_cost){.issue = 1, .hold = TCC_COST_barrier_latency};
    return info->flags & TCC_ELEMENTWISE
               ? arithmetic(op, 1)
               : (tcc_cost){.issue = 1, .latency = TCC_COST_arith_latency};
}

uint64_t tcc_cost_of_mma(const tcc_op *op)
{
    enum { K = 16 }; /* of 16-bit floats: other elements take as long for 32 bytes of k */
    enum { K_BYTES = 32 };
    uint64_t n = (uint64_t)tcc_attr_int(&op->attrs, "n", 0), rows = n + (op->code == TCC_OP_nvvm_wgmma ? TCC_WGMMA_ROWS : 0);
    uint64_t read = rows * K_BYTES / TCC_COST_smem_bytes, multiplied = n * TCC_WGMMA_ROWS * K / TCC_COST_tensor_fmas;
    return read > multiplied ? read : multiplied;
}

/* ops: the info table, derived from ops.def.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/ir.h"

/* Kinds as they are written in ops.def. */
enum {
#define TCC_KIND(id, doc) BIT_##id = 1 << TCC_KIND_##id,
#include "ir/types.def"
    SCALAR = BIT_scalar,
    TENSOR = BIT_tensor,
    FIELD = BIT_field,
    TILE = BIT_tile,
    SMEM = BIT_smem,
    RING = BIT_ring,
    VEC = BIT_vec,
    PTR = BIT_ptr,
    TENSORMAP = BIT_tensormap,
    BUFFER = BIT_buffer,
    ELT = SCALAR | FIELD | TILE | VEC
};

#define OPND(name, kinds) {#name, kinds},
#define RES(name, kinds) {#name, kinds},
#define ATTR(name, kind) {#name, TCC_ATTR_##kind, true},
#define OPT(name, kind) {#name, TCC_ATTR_##kind, false},
#define OPERANDS(list) {list {NULL, 0}}
#define RESULTS(list) {list {NULL, 0}}
#define ATTRS(list) {list {NULL, TCC_ATTR_ANY, false}}
#define NO_OPERANDS {{NULL, 0}}
#define NO_RESULTS {{NULL, 0}}
#define NO_ATTRS {{NULL, TCC_ATTR_ANY, false}}

#define TCC_OP(id, name, operands, results, n_regions, attrs, flags, effects, levels, doc)         \
    static const tcc_operand_info operands_##id[] = operands;                                      \
    static const tcc_operand_info results_##id[] = results;                                        \
    static const tcc_attr_info attrs_##id[] = attrs;
#include "ir/ops.def"

#define LEN(a) (sizeof(a) / sizeof *(a))
const tcc_op_info tcc_op_infos[] = {
#define TCC_OP(id, name, operands, results, n_regions, attrs, flags, effects, levels, doc)         \
    {name,                                                                                         \
     operands_##id,                                                                                \
     results_##id,                                                                                 \
     attrs_##id,                                                                                   \
     LEN(operands_##id) - 1,                                                                       \
     LEN(results_##id) - 1,                                                                        \
     n_regions,                                                                                    \
     (flags) | ((effects) & ~TCC_READS_TENSOR ? 0 : TCC_PURE),                                     \
     effects,                                                                                      \
     levels,                                                                                       \
     doc},
#include "ir/ops.def"
};

tcc_global_use tcc_op_global_use(tcc_opcode code)
{
    enum { WHERE = PTR | TENSORMAP | BUFFER };
    const tcc_op_info *info = &tcc_op_infos[code];
    tcc_global_use use = {.any = info->effects & (TCC_READS_GLOBAL | TCC_WRITES_GLOBAL),
                          .writes = info->effects & TCC_WRITES_GLOBAL,
                          .async = info->effects & TCC_ASYNC_PROXY};
    while (use.any && !(info->operands[use.operand].kinds & WHERE))
        use.operand++;
    return use;
}

int tcc_op_global_parameter(const tcc_op *op)
{
    const tcc_global_use use = tcc_op_global_use(op->code);
    const tcc_value *at = use.any ? op->operands[use.operand] : NULL;
    if (at && at->def && at->def->code == TCC_OP_amdgcn_make_buffer)
        at = at->def->operands[0];
    return at && at->block && !at->block->parent ? (int)at->index : -1;
}

const tcc_type *tcc_op_moves(const tcc_op *op)
{
    return op->n_results ? op->results[0].type : op->operands[tcc_op_infos[op->code].n_operands - 1]->type;
}

tcc_value *tcc_mma_accumulate(const tcc_op *op)
{
    tcc_value *last = op->operands[op->n_operands - 1];
    return tcc_type_is_scalar(last->type, TCC_i1) ? last : NULL;
}

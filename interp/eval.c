/* eval: the table of hooks, those of elementwise ops, and those that do nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/exec.h"
#include "ir/elementwise.h"

static tcc_hook *const hooks[TCC_OP_COUNT] = {
#define TCC_OP(id, ...) tcc_eval_##id,
#include "ir/ops.def"
};

tcc_hook *tcc_hook_of(tcc_opcode code)
{
    return hooks[code];
}

static bool divides_by_zero(const tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *type = in->op->operands[1]->type;
    if (tcc_scalar_classify(type->elem) == TCC_CLASS_FLOAT)
        return false;
    size_t n = t->x->program->values[in->operands[1]].count;
    const tcc_cell *b = tcc_cells(t, in->operands[1]);
    for (size_t e = 0; e < n; e++)
        for (unsigned l = 0; l < t->x->lanes; l++)
            if (t->mask >> l & 1 && b[e * t->x->lanes + l].i == 0)
                return true;
    return false;
}

/* All lanes compute: what those outside the mask get is never looked at. */
static tcc_outcome elementwise(tcc_thread *t, const tcc_inst *in)
{
    const tcc_op *op = in->op;
    if (op->results[0].type->kind == TCC_KIND_field)
        return TCC_NEXT; /* field.c, row by row */
    if ((op->code == TCC_OP_arith_div || op->code == TCC_OP_arith_rem) && divides_by_zero(t, in))
        return TCC_WRONG(t->x, op, "%s divides by zero", tcc_op_info_get(op->code)->name);
    tcc_elements e = {.op = op,
                      .r = tcc_cells(t, in->results[0]),
                      .n = t->x->program->values[in->results[0]].count * t->x->lanes};
    for (unsigned i = 0; i < op->n_operands; i++) {
        e.a[i] = tcc_cells(t, in->operands[i]);
        e.step[i] = 1;
    }
    tcc_elementwise(&e, t->x->run->machine);
    return TCC_NEXT;
}

#define HOOK(id)                                                                                   \
    tcc_outcome tcc_eval_##id(tcc_thread *t, const tcc_inst *in)                                   \
    {                                                                                              \
        return elementwise(t, in);                                                                 \
    }
TCC_ELEMENTWISE_OPS(HOOK)
#define MATH(name, ...) HOOK(math_##name)
#include "ir/math.def"

/* ---- nothing to see ---------------------------------------------------------------------- */

#define NOTHING(id)                                                                                \
    tcc_outcome tcc_eval_##id(tcc_thread *t, const tcc_inst *in)                                   \
    {                                                                                              \
        (void)t, (void)in;                                                                         \
        return TCC_NEXT;                                                                           \
    }
NOTHING(tensor_read) /* field.c runs these */
NOTHING(tensor_index)
NOTHING(tensor_reduce)
NOTHING(tensor_before)
NOTHING(tensor_rescale)
NOTHING(tensor_write)
NOTHING(async_pin)
NOTHING(async_hold)
NOTHING(nvvm_hold)
NOTHING(nvvm_griddepcontrol_launch)
NOTHING(nvvm_prefetch_tensormap)
NOTHING(nvvm_stamps) /* there is no clock to read */
NOTHING(nvvm_stamp)
NOTHING(amdgcn_sched_barrier) /* only the scheduler sees these */
NOTHING(amdgcn_sched_group)
NOTHING(amdgcn_setprio)

tcc_outcome tcc_eval_tensor_dim(tcc_thread *t, const tcc_inst *in)
{
    tcc_dim dim = {tcc_attr_str(&in->op->attrs, "name", ""), 0};
    int64_t extent = tcc_run_extent(t->x->run, dim);
    if (extent < 0)
        return TCC_WRONG(t->x, in->op, "%s is not one of the function's dims", dim.name);
    for (unsigned l = 0; l < t->x->lanes; l++)
        tcc_cells(t, in->results[0])[l].i = extent;
    return TCC_NEXT;
}

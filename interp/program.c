/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/program.h"

#include "ir/registers.h"
#include "support/map.h"

enum { MAX_DEPTH = 64 };

/* Effects of which no thread is told. */
enum {
    NOT_WAITED_FOR = TCC_READS_TENSOR | TCC_WRITES_TENSOR | TCC_READS_GLOBAL | TCC_WRITES_GLOBAL | TCC_READS_SHARED |
                     TCC_WRITES_SHARED | TCC_LANES | TCC_HINT
};

typedef struct decoder {
    tcc_run *run;
    tcc_program *p;
    tcc_map numbers; /* value -> its number + 1 */
    size_t cap_values;
    unsigned levels;
    tcc_registers *registers; /* at the target level */
} decoder;

/* Tensors, rings and the like are one cell, which holds a number; a buffer descriptor has three. */
static size_t cell_count(const tcc_type *t)
{
    switch (t->kind) {
    case TCC_KIND_field: return 0;
    case TCC_KIND_tile:
    case TCC_KIND_vec: return (size_t)tcc_type_count(t);
    case TCC_KIND_buffer: return TCC_BUFFER_CELLS;
    default: return 1;
    }
}

static uint32_t number_of(decoder *d, const tcc_value *v)
{
    tcc_program *p = d->p;
    void **place = tcc_map_at(&d->numbers, v);
    if (!*place) {
        p->values = tcc_arena_grow(d->run->scratch, p->values, sizeof *p->values, p->n_values,
                                   &d->cap_values);
        p->values[p->n_values].type = v->type;
        p->values[p->n_values].count = cell_count(v->type);
        p->values[p->n_values].offset = p->n_cells;
        p->values[p->n_values].registers = d->registers ? tcc_registers_of(d->registers, v) : 0;
        p->n_cells += p->values[p->n_values].count;
        *place = (void *)(uintptr_t)++p->n_values;
    }
    return (uint32_t)((uintptr_t)*place - 1);
}

static tcc_status decode_block(decoder *d, const tcc_block *block, tcc_code *code, size_t depth);

static tcc_status decode_op(decoder *d, const tcc_op *op, tcc_inst *in, size_t depth)
{
    tcc_arena *scratch = d->run->scratch;
    const tcc_op_info *info = tcc_op_info_get(op->code);
    if (!(info->levels & d->levels))
        return TCC_FAIL(d->run, TCC_ERR_UNSUPPORTED, op, "%s among ops of other levels",
                        info->name);
    in->op = op;
    in->operands = TCC_NEW_ARRAY(scratch, uint32_t, op->n_operands);
    in->results = TCC_NEW_ARRAY(scratch, uint32_t, op->n_results);
    in->regions = TCC_NEW_ARRAY(scratch, tcc_code, op->n_regions);
    for (unsigned i = 0; i < op->n_operands; i++)
        in->operands[i] = number_of(d, op->operands[i]);
    for (unsigned i = 0; i < op->n_results; i++)
        in->results[i] = number_of(d, &op->results[i]);
    if (d->registers)
        in->wanted_twice = tcc_registers_wanted_twice(d->registers, op);
    in->passes = tcc_registers_pass(op->code);
    in->is_own = !(info->effects & ~(unsigned)NOT_WAITED_FOR);
    tcc_status status = TCC_OK;
    for (unsigned i = 0; i < op->n_regions && !status; i++)
        status = decode_block(d, op->regions[i], &in->regions[i], depth + 1);
    return status;
}

static tcc_status decode_block(decoder *d, const tcc_block *block, tcc_code *code, size_t depth)
{
    tcc_arena *scratch = d->run->scratch;
    if (depth > MAX_DEPTH)
        return TCC_FAIL(d->run, TCC_ERR_UNSUPPORTED, block->parent,
                        "regions nested more than %d deep", MAX_DEPTH);
    if (depth > d->p->depth)
        d->p->depth = depth;
    code->n_args = block->n_args;
    code->args = TCC_NEW_ARRAY(scratch, uint32_t, block->n_args);
    for (size_t i = 0; i < block->n_args; i++)
        code->args[i] = number_of(d, block->args[i]);
    size_t n = 0;
    for (const tcc_op *op = block->first; op; op = op->next)
        n++;
    code->insts = TCC_NEW_ARRAY(scratch, tcc_inst, n);
    tcc_status status = TCC_OK;
    for (const tcc_op *op = block->first; op && !status; op = op->next)
        status = decode_op(d, op, &code->insts[code->n++], depth);
    return status;
}

tcc_status tcc_program_decode(tcc_run *run, unsigned levels, tcc_program *p)
{
    decoder d = {.run = run, .p = p, .numbers = TCC_MAP(run->scratch), .levels = levels};
    *p = (tcc_program){0};
    if (levels & TCC_LEVEL_TARGET) {
        d.registers = tcc_registers_find(run->f, run->scratch);
        p->n_registers = tcc_registers_count(d.registers);
    }
    return decode_block(&d, run->f->body, &p->body, 1);
}

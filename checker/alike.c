/* alike: what is followed of a function, as bytes.
 *
 * Variants of a kernel differ in how results are computed and stored, and often in nothing that the checker looks at.
 * Two functions of a module of which all of that is the same, byte for byte, are proven by one proof. Written is what
 * decode.c leaves: ops that matter with their attributes, the slots and the types of what they read and give, and what
 * was found out about the function. Strings and types are kept once in a module, so their addresses are enough.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/normal.h"

/* There may be none, and no array. */
static void write_array(writer *w, const void *array, size_t bytes)
{
    if (bytes)
        put(w, array, bytes);
}

static void write_address(writer *w, const void *at)
{
    put_int(w, (int64_t)(intptr_t)at);
}

static void write_attr(writer *w, const tcc_attr *a)
{
    put_int(w, a->kind);
    switch (a->kind) {
    case TCC_ATTR_STR: write_address(w, a->s); break;
    case TCC_ATTR_FLOAT: put(w, &a->f, sizeof a->f); break;
    case TCC_ATTR_LIST:
        put_int(w, (int64_t)a->list.n);
        for (size_t i = 0; i < a->list.n; i++)
            write_attr(w, &a->list.items[i]);
        break;
    default: put_int(w, a->i);
    }
}

static void write_op(writer *w, const tcc_op *op)
{
    put_int(w, op->code);
    put_int(w, (int64_t)op->attrs.len);
    for (size_t i = 0; i < op->attrs.len; i++) {
        write_address(w, op->attrs.data[i].name);
        write_attr(w, &op->attrs.data[i].value);
    }
    put_int(w, op->n_operands | (int64_t)op->n_results << 20 | (int64_t)op->n_regions << 40);
    for (unsigned i = 0; i < op->n_operands; i++)
        write_address(w, op->operands[i]->type);
    for (unsigned i = 0; i < op->n_results; i++)
        write_address(w, op->results[i].type);
}

static void write_code(writer *w, const tcc_pcode *code);

static void write_inst(writer *w, const tcc_pinst *in)
{
    write_op(w, in->op);
    write_array(w, in->operands, in->op->n_operands * sizeof *in->operands);
    write_array(w, in->results, in->op->n_results * sizeof *in->results);
    put_int(w, (int64_t)in->touches);
    put_int(w, (int64_t)in->registers);
    put_int(w, (int64_t)in->a_registers);
    put_int(w, in->wanted_twice);
    put_int(w, in->open | in->harmless << 1 | in->waits << 2 | in->counts << 3 | in->data << 4 | in->loops << 5 |
                     in->loops_later << 6 | (in->given != NULL) << 7);
    for (unsigned i = 0; i < in->op->n_results && in->counts; i++) /* what a loop that only counts does */
        write_op(w, in->op->regions[0]->last->operands[i]->def);
    put_int(w, in->n_dying);
    write_array(w, in->dying, in->n_dying * sizeof *in->dying);
    for (unsigned r = 0; r < in->op->n_regions; r++)
        write_code(w, &in->regions[r]);
}

static void write_code(writer *w, const tcc_pcode *code)
{
    put_int(w, (int64_t)code->n_args);
    write_array(w, code->args, code->n_args * sizeof *code->args);
    write_array(w, code->moduli, code->n_args * sizeof *code->moduli);
    if (code->registers)
        write_array(w, code->registers, code->n_args * sizeof *code->registers);
    put_int(w, code->first_slot | (int64_t)code->end_slot << 32);
    put_int(w, code->loops);
    put_int(w, (int64_t)code->later);
    put_int(w, (int64_t)code->n);
    for (size_t i = 0; i < code->n; i++)
        write_inst(w, &code->insts[i]);
}

static void write_function(writer *w, const tcc_protocol *p)
{
    const tcc_block *body = p->f->body;
    const int64_t numbers[] = {p->n_slots, p->n_fixed, p->threshold, p->least_threshold, p->data_threshold, p->period,
                               p->symbol_data, p->n_warps, p->n_groups, p->max_barriers, p->n_named, p->n_lanes,
                               p->amd, p->granule, p->stores, p->groups, p->writes, p->most_pending, p->smem_bytes,
                               p->ctas, p->cta_warps, p->cta_bytes, tcc_p_ends_together(p)};
    put(w, numbers, sizeof numbers);
    put_int(w, (int64_t)p->registers.len);
    write_array(w, p->registers.data, p->registers.len * sizeof *p->registers.data);
    for (size_t i = 0; i < body->n_args; i++) {
        write_address(w, body->args[i]->type);
        put_int(w, tcc_p_is_dim(p, i));
        put_int(w, p->box_bytes[i]);
    }
    put_int(w, (int64_t)p->fixed.len);
    for (size_t i = 0; i < p->fixed.len; i++)
        write_inst(w, &p->fixed.data[i]);
    write_code(w, &p->body);
}

const uint8_t *tcc_p_write(const tcc_protocol *p, size_t *n)
{
    writer w = {.p = p};
    *n = 0;
    if (p->status || p->follows) /* where an op accesses a tensor is not written */
        return NULL;
    write_function(&w, p);
    *n = w.len;
    return w.data;
}

/* alike: what is followed of a function, as bytes.
 *
 * Variants of a kernel differ in how results are computed and stored, and often in nothing that the checker looks at; and
 * so do kernels, whose elements are f16 and bf16. Functions of a module of which all of that is the same, byte for byte,
 * are proven by one proof. Written is what decode.c leaves: ops that matter with their attributes, the slots and the types
 * of what they read and give, and what was found out about the function. Left out is
 *   what type elements of so many bits are of, where they are no integers that are computed;
 *   the order of ops that give the same in every state: each is written where it is wanted first;
 *   of ops that only read registers of MMAs, what they are: the registers are written where that is asked next.
 * Strings are kept once in a module, so their addresses are enough.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/normal.h"

typedef struct form {
    writer w;
    uint32_t *numbers; /* of each op of p->fixed: 1 + which one was written; 0: it was not yet; */
    uint32_t n, *stack; /* how many were; room for as many */
    uint64_t touched;  /* registers that are to be written */
} form;

/* What comes next. */
typedef enum tag { OP, FIXED_OP, SLOTS, TOUCHED, LATER, END } tag;

/* There may be none, and no array. */
static void write_array(form *f, const void *array, size_t bytes)
{
    if (bytes)
        put(&f->w, array, bytes);
}

static void write_int(form *f, int64_t v)
{
    put_int(&f->w, v);
}

static void write_address(form *f, const void *at)
{
    write_int(f, (int64_t)(intptr_t)at);
}

static void write_attr(form *f, const tcc_attr *a)
{
    write_int(f, a->kind);
    switch (a->kind) {
    case TCC_ATTR_STR: write_address(f, a->s); break;
    case TCC_ATTR_FLOAT: put(&f->w, &a->f, sizeof a->f); break;
    case TCC_ATTR_LIST:
        write_int(f, (int64_t)a->list.n);
        for (size_t i = 0; i < a->list.n; i++)
            write_attr(f, &a->list.items[i]);
        break;
    default: write_int(f, a->i);
    }
}

/* Of floats in vectors and behind pointers how many bits they have, of all else the type. */
static void write_type(form *f, const tcc_type *t)
{
    bool elements = t->kind == TCC_KIND_vec || t->kind == TCC_KIND_ptr;
    if (!elements || tcc_scalar_classify(t->elem) != TCC_CLASS_FLOAT) {
        write_address(f, t);
        return;
    }
    write_int(f, t->kind | (int64_t)tcc_scalar_bits(t->elem) << 32);
    write_int(f, t->kind == TCC_KIND_vec ? tcc_type_count(t) : 1);
}

/* Whether an attribute says of what type an MMA's elements are: it takes as many bytes of each line (mma.c). */
static bool is_of_elements(const tcc_op *op, const char *name)
{
    return tcc_op_starts(op->code, TCC_BY_MMA_GROUP) && !strcmp(name, "type");
}

static void write_op(form *f, const tcc_op *op)
{
    write_int(f, op->code);
    write_int(f, (int64_t)op->attrs.len);
    for (size_t i = 0; i < op->attrs.len; i++) {
        write_address(f, op->attrs.data[i].name);
        if (!is_of_elements(op, op->attrs.data[i].name))
            write_attr(f, &op->attrs.data[i].value);
    }
    write_int(f, op->n_operands | (int64_t)op->n_results << 20 | (int64_t)op->n_regions << 40);
    for (unsigned i = 0; i < op->n_operands; i++)
        write_type(f, op->operands[i]->type);
    for (unsigned i = 0; i < op->n_results; i++)
        write_type(f, op->results[i].type);
}

/* ---- slots ----------------------------------------------------------------------------- */

static bool is_fixed(uint32_t slot)
{
    return slot >= TCC_P_FIXED && slot != TCC_P_NO_SLOT;
}

/* The op that gives what a slot always holds. */
static const tcc_pinst *fixed_at(const form *f, uint32_t slot)
{
    return &f->w.p->fixed.data[slot - TCC_P_FIXED];
}

/* A slot; of a fixed one the number of its op, which was written. */
static void write_number(form *f, uint32_t slot)
{
    uint32_t n = is_fixed(slot) ? TCC_P_FIXED + f->numbers[slot - TCC_P_FIXED] - 1 : slot;
    put(&f->w, &n, sizeof n);
}

/* Operands of a fixed op that are yet to be written: the first; TCC_P_NO_SLOT: there is none. */
static uint32_t unwritten_operand(const form *f, const tcc_pinst *in)
{
    for (unsigned i = 0; i < in->op->n_operands; i++)
        if (is_fixed(in->operands[i]) && !f->numbers[in->operands[i] - TCC_P_FIXED])
            return in->operands[i];
    return TCC_P_NO_SLOT;
}

/* Writes the op of a fixed slot, behind those of its operands, where that was not done. */
static void write_fixed(form *f, uint32_t slot)
{
    size_t depth = 0;
    if (!f->numbers[slot - TCC_P_FIXED])
        f->stack[depth++] = slot;
    while (depth) {
        uint32_t top = f->stack[depth - 1], before = unwritten_operand(f, fixed_at(f, top));
        if (before != TCC_P_NO_SLOT) {
            f->stack[depth++] = before;
            continue;
        }
        const tcc_pinst *in = fixed_at(f, top);
        write_int(f, FIXED_OP);
        write_op(f, in->op);
        for (unsigned i = 0; i < in->op->n_operands; i++)
            write_number(f, in->operands[i]);
        f->numbers[top - TCC_P_FIXED] = ++f->n;
        depth--;
    }
}

static void write_slots(form *f, const uint32_t *slots, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (is_fixed(slots[i]))
            write_fixed(f, slots[i]);
    write_int(f, SLOTS);
    write_int(f, n);
    for (unsigned i = 0; i < n; i++)
        write_number(f, slots[i]);
}

/* ---- ops ------------------------------------------------------------------------------- */

static void write_code(form *f, const tcc_pcode *code);

/* Whether an op does nothing but to read registers of MMAs. */
static bool only_touches(const tcc_pinst *in)
{
    bool only = in->touches && !in->op->n_regions && !in->tensor && !tcc_op_does(in->op->code, TCC_P_FOLLOWED) &&
                in->op->code != TCC_OP_scf_yield;
    for (unsigned i = 0; i < in->op->n_operands && only; i++)
        only = in->operands[i] == TCC_P_NO_SLOT;
    for (unsigned i = 0; i < in->op->n_results && only; i++)
        only = in->results[i] == TCC_P_NO_SLOT;
    return only;
}

/* Whether it matters that registers were read before an op and not behind it: to MMAs, their fences, and where blocks
 * begin and end. */
static bool asks_for_touched(const tcc_op *op)
{
    return op->n_regions || op->code == TCC_OP_scf_yield || tcc_op_starts(op->code, TCC_BY_MMA_GROUP) ||
           tcc_op_does(op->code, TCC_FENCE);
}

static void write_touched(form *f)
{
    write_int(f, TOUCHED);
    write_int(f, (int64_t)f->touched);
    f->touched = 0;
}

static void write_args(form *f, const tcc_pcode *code)
{
    write_int(f, (int64_t)code->n_args);
    write_array(f, code->args, code->n_args * sizeof *code->args);
    write_array(f, code->moduli, code->n_args * sizeof *code->moduli);
    write_array(f, code->registers, code->n_args * sizeof *code->registers);
}

static void write_inst(form *f, const tcc_pinst *in)
{
    if (asks_for_touched(in->op))
        write_touched(f);
    write_int(f, OP);
    write_op(f, in->op);
    write_slots(f, in->operands, in->op->n_operands);
    write_slots(f, in->results, in->op->n_results);
    write_int(f, (int64_t)in->touches);
    write_int(f, (int64_t)in->registers);
    write_int(f, (int64_t)in->a_registers);
    write_int(f, in->wanted_twice);
    write_int(f, in->open | in->harmless << 1 | in->waits << 2 | in->counts << 3 | in->data << 4 | in->loops << 5 |
                     in->loops_later << 6 | (in->given != NULL) << 7);
    for (unsigned i = 0; i < in->op->n_results && in->counts; i++) /* what a loop that only counts does */
        write_op(f, in->op->regions[0]->last->operands[i]->def);
    write_slots(f, in->dying, in->n_dying);
    for (unsigned r = 0; r < in->op->n_regions; r++) {
        write_args(f, &in->regions[r]);
        write_code(f, &in->regions[r]);
    }
}

static void write_code(form *f, const tcc_pcode *code)
{
    write_int(f, code->first_slot | (int64_t)code->end_slot << 32);
    write_int(f, code->loops);
    for (size_t i = 0; i < code->n; i++) {
        if (i == code->later)
            write_int(f, LATER);
        if (only_touches(&code->insts[i]))
            f->touched |= code->insts[i].touches;
        else
            write_inst(f, &code->insts[i]);
    }
    write_touched(f);
    write_int(f, code->later == code->n ? LATER : END);
}

static void write_function(form *f, const tcc_protocol *p)
{
    const tcc_block *body = p->f->body;
    const int64_t numbers[] = {p->n_slots, p->threshold, p->least_threshold, p->data_threshold, p->period,
                               p->symbol_data, p->n_warps, p->n_groups, p->max_barriers, p->n_named, p->n_lanes,
                               p->amd, p->granule, p->stores, p->groups, p->writes, p->most_pending, p->smem_bytes,
                               p->ctas, p->cta_warps, p->cta_bytes, tcc_p_ends_together(p)};
    put(&f->w, numbers, sizeof numbers);
    write_int(f, (int64_t)p->registers.len);
    write_array(f, p->registers.data, p->registers.len * sizeof *p->registers.data);
    for (size_t i = 0; i < body->n_args; i++) { /* others are not asked for: of which number one is does not matter */
        if (p->body.args[i] == TCC_P_NO_SLOT)
            continue;
        write_slots(f, &p->body.args[i], 1);
        write_type(f, body->args[i]->type);
        write_int(f, tcc_p_is_dim(p, i));
        write_int(f, p->box_bytes[i]);
    }
    write_code(f, &p->body);
}

const uint8_t *tcc_p_write(const tcc_protocol *p, size_t *n)
{
    form f = {.w = {.p = p}};
    *n = 0;
    if (p->status || p->follows) /* where an op accesses a tensor is not written */
        return NULL;
    f.numbers = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_fixed + 1);
    f.stack = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_fixed + 1);
    write_function(&f, p);
    *n = f.w.len;
    return f.w.data;
}

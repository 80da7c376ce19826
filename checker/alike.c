/* alike: what is followed of a function, as bytes.
 *
 * Variants of a kernel differ in how results are computed and stored, and often in nothing that the checker looks at;
 * and so do kernels, whose elements are f16 and bf16. Functions of a module of which all of that is the same, byte for
 * byte, are proven by one proof. Written is what decode.c leaves: ops that matter with their attributes, the slots and
 * the types of what they read and give, and what was found out about the function. Left out is
 *   what type elements of so many bits are of, where they are not integers that are computed;
 *   the order of ops that give the same in every state: each is written where it is wanted first;
 *   how operands of MMAs lie, in which boxes they are copied, and what computes where: the bytes are written
 *   (operands.c);
 *   coordinates of copies, which are asked for where accesses to tensors are followed alone;
 *   which number a slot has;
 *   of ops that only read registers of MMAs, what they are: the registers are written where that is asked next;
 *   how a number is computed from dimensions, as that of a CTA's tiles is, if nothing else asks for these: then it is
 *   not known how it depends on any other, and all that the proof knows of it is that it is the same wherever it is
 *   asked for.
 * Strings are kept once in a module, so their addresses are enough.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/alike.h"
#include "ir/resize.h"

/* What comes next. */
typedef enum tag { OP, FIXED_OP, NUMBER, SLOTS, TOUCHED, BYTES, LATER, END } tag;

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

/* Whether an attribute says how an operand lies whose bytes are written. */
static bool is_of_bytes(const tcc_pinst *in, const char *name)
{
    unsigned i = in ? tcc_p_order_of(in->op, name) : 0;
    return i && in->bytes[i - 1];
}

/* How many operands are asked for: of copies not where in a tensor. */
static unsigned count_asked(const tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    bool copies = tcc_op_starts(op->code, TCC_BY_MBARRIER | TCC_BY_BULK_GROUP) && info->flags & TCC_VARIADIC;
    return copies ? info->n_operands : op->n_operands;
}

/* in: whose op it is, if its operands in shared memory are to be left out. */
static void write_op(form *f, const tcc_op *op, const tcc_pinst *in)
{
    write_int(f, op->code);
    write_int(f, (int64_t)op->attrs.len);
    for (size_t i = 0; i < op->attrs.len; i++) {
        write_address(f, op->attrs.data[i].name);
        if (!is_of_elements(op, op->attrs.data[i].name) && !is_of_bytes(in, op->attrs.data[i].name))
            write_attr(f, &op->attrs.data[i].value);
    }
    write_int(f, count_asked(op) | (int64_t)op->n_results << 20 | (int64_t)op->n_regions << 40);
    for (unsigned i = 0; i < count_asked(op); i++)
        write_type(f, op->operands[i]->type);
    for (unsigned i = 0; i < op->n_results; i++)
        write_type(f, op->results[i].type);
}

/* ---- slots ----------------------------------------------------------------------------- */

/* A slot by its number; of a fixed one that of its op, which was written. */
static void write_number(form *f, uint32_t slot)
{
    uint32_t n = slot;
    if (is_fixed(slot)) {
        n = TCC_P_FIXED + f->numbers[slot - TCC_P_FIXED] - 1;
    } else if (slot != TCC_P_NO_SLOT) {
        uint32_t *known = &f->renumbered[slot];
        *known = *known ? *known : ++f->n_renumbered;
        n = *known - 1;
    }
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
        write_op(f, in->op, NULL);
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

/* ---- what is wanted to say which bytes alone ------------------------------------------------ */

static bool is_known_copy(const tcc_pinst *in)
{
    return !in->n_mmas && in->bytes[0];
}

/* Of copies nothing is written but with the first, where they complete and in which CTAs. */
static bool is_written_as_bytes(const tcc_pinst *in, unsigned operand)
{
    bool first = in->bytes[0] != &tcc_p_with_the_first;
    if (is_known_copy(in))
        return !first || (operand != 2 && !(operand == 3 && in->op->code == TCC_OP_nvvm_tma_load_multicast));
    return in->n_mmas && (operand == 1 || operand == 2) && in->bytes[operand - 1];
}

static uint32_t *wanted_at(const form *f, uint32_t slot)
{
    return slot < TCC_P_FIXED ? &f->wanted[slot] : NULL;
}

static void count_wanted(form *f, const tcc_pcode *code)
{
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        for (unsigned o = 0; o < count_asked(in->op); o++)
            if (wanted_at(f, in->operands[o]) && !is_written_as_bytes(in, o))
                ++*wanted_at(f, in->operands[o]);
        for (unsigned r = 0; r < in->op->n_regions; r++)
            count_wanted(f, &in->regions[r]);
    }
}

static bool is_left_out(const form *f, const tcc_pinst *in)
{
    if (is_known_copy(in))
        return in->bytes[0] == &tcc_p_with_the_first;
    return (in->given || is_of_launch(in)) && !in->touches && !in->tensor && !*wanted_at(f, in->results[0]);
}

/* What an op needs that is left out is not wanted by it; what it needs comes before it. */
static void leave_out(form *f, const tcc_pcode *code)
{
    for (size_t i = code->n; i-- > 0;) {
        const tcc_pinst *in = &code->insts[i];
        for (unsigned r = in->op->n_regions; r-- > 0;)
            leave_out(f, &in->regions[r]);
        for (unsigned o = 0; is_left_out(f, in) && o < in->op->n_operands; o++)
            if (wanted_at(f, in->operands[o]) && !is_written_as_bytes(in, o))
                --*wanted_at(f, in->operands[o]);
    }
}

/* Of what it is a quotient is of no other number. */
static void write_value(form *f, const tcc_pvalue *v)
{
    const tcc_psymbol *s = tcc_p_symbol_get(f->w.p, v->v);
    const int64_t numbers[] = {v->offset, v->delta, s->add, s->by, s->varies, s->least};
    put(&f->w, numbers, sizeof numbers);
}

/* Which copies to the same elements were written before; and in which loops around it goes elsewhere. */
static void write_sent(form *f, const tcc_pinst *in)
{
    if (!in->sent_to)
        return;
    for (size_t i = 0; i < f->sent.len; i++)
        write_int(f, tcc_p_is_sent_over(f->sent.data[i], in));
    for (const tcc_op *loop = in->op->block->parent; loop; loop = loop->block->parent)
        if (loop->code == TCC_OP_scf_for)
            write_int(f, tcc_p_sent_varies(in, loop));
    write_int(f, tcc_p_is_sent_over(in, in) | in->sent_by_thread << 1);
    TCC_PUSH(f->w.p->scratch, &f->sent, in);
}

static void write_bytes(form *f, const tcc_pinst *in)
{
    for (unsigned i = 0; (in->n_mmas || is_known_copy(in)) && i < 2; i++) {
        const tcc_known_bytes *bytes = in->bytes[i];
        write_int(f, BYTES);
        write_int(f, bytes ? (int64_t)bytes->len : -1);
        if (bytes)
            write_array(f, bytes->data, bytes->len * sizeof *bytes->data);
    }
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
    write_slots(f, code->args, (unsigned)code->n_args);
    write_array(f, code->moduli, code->n_args * sizeof *code->moduli);
    write_array(f, code->registers, code->n_args * sizeof *code->registers);
}

static void write_inst(form *f, const tcc_pinst *in)
{
    if (in->op->n_results == 1 && in->results[0] < TCC_P_FIXED && f->is_number[in->results[0]]) {
        write_int(f, NUMBER);
        write_value(f, &f->values[in->results[0]]);
        write_slots(f, in->results, 1);
        return;
    }
    if (asks_for_touched(in->op))
        write_touched(f);
    write_int(f, OP);
    if (is_known_copy(in))
        write_int(f, in->op->code);
    else
        write_op(f, in->op, in);
    write_int(f, tcc_op_does(in->op->code, TCC_BY_CLUSTER) && tcc_p_is_split(in->op));
    for (unsigned i = 0; i < count_asked(in->op); i++)
        if (!is_written_as_bytes(in, i))
            write_slots(f, &in->operands[i], 1);
    write_bytes(f, in);
    write_sent(f, in);
    write_slots(f, in->results, in->op->n_results);
    write_int(f, (int64_t)in->touches);
    write_int(f, (int64_t)in->registers);
    write_int(f, (int64_t)in->a_registers);
    write_int(f, in->wanted_twice);
    write_int(f, in->open | in->harmless << 1 | in->waits << 2 | in->counts << 3 | in->data << 4 | in->loops << 5 |
                     in->loops_later << 6 | (in->given != NULL) << 7);
    for (unsigned i = 0; i < in->op->n_results && in->counts; i++) /* what a loop that only counts does */
        write_op(f, in->op->regions[0]->last->operands[i]->def, NULL);
    write_slots(f, in->dying, in->n_dying);
    for (unsigned r = 0; r < in->op->n_regions; r++) {
        write_args(f, &in->regions[r]);
        write_code(f, &in->regions[r]);
    }
}

static void write_code(form *f, const tcc_pcode *code)
{
    write_int(f, code->loops);
    for (size_t i = 0; i < code->n; i++) {
        if (i == code->later)
            write_int(f, LATER);
        if (is_left_out(f, &code->insts[i]))
            continue;
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
    const int64_t numbers[] = {p->threshold, p->least_threshold, p->data_threshold, p->period,
                               p->symbol_data, p->n_warps, p->n_groups, p->max_barriers, p->n_named, p->n_lanes,
                               p->amd, p->granule, p->stores, p->groups, p->writes, p->most_pending, p->smem_bytes,
                               p->ctas, p->cta_warps, p->cta_bytes, p->ends_together, p->reaches,
                               tcc_registers_at_launch(p->f)};
    put(&f->w, numbers, sizeof numbers);
    for (size_t i = 0; i < body->n_args; i++) { /* others are not asked for: of which number one is does not matter */
        uint32_t slot = p->body.args[i];
        if (slot == TCC_P_NO_SLOT || (slot < TCC_P_FIXED && !f->wanted[slot]))
            continue;
        write_slots(f, &p->body.args[i], 1);
        write_type(f, body->args[i]->type);
        write_int(f, tcc_p_is_dim(p, i) ? tcc_p_least_of_dim(p, i) : -1);
        write_int(f, p->box_bytes[i]);
    }
    write_code(f, &p->body);
    write_slots(f, p->registers.data, (unsigned)p->registers.len);
}

const uint8_t *tcc_p_write(tcc_protocol *p, size_t *n)
{
    form f = {.w = {.p = p}};
    *n = 0;
    if (p->status || p->follows || p->asks_memory) /* where an op accesses a tensor is not written */
        return NULL;
    f.numbers = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_fixed + 1);
    f.stack = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_fixed + 1);
    f.renumbered = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_slots + 1);
    f.wanted = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_slots + 1);
    f.uses = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_slots + 1);
    f.values = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, p->n_slots + 1);
    f.is_number = TCC_NEW_ARRAY(p->scratch, bool, p->n_slots + 1);
    tcc_p_operands_find(p);
    count_wanted(&f, &p->body);
    leave_out(&f, &p->body);
    tcc_p_find_numbers(&f, p);
    write_function(&f, p);
    *n = f.w.len;
    return f.w.data;
}

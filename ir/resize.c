/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/resize.h"

#include "ir/registers.h"
#include "ir/target.h"

enum {
    REGISTER_UNIT = 8,   /* in which a warp's threads are given registers */
    REGISTER_BITS = 32,
    BESIDE_ACCUMULATORS = 8 /* two descriptors, a counter, the address of a barrier, and where shared memory is */
};

int64_t tcc_registers_at_launch(const tcc_func *f)
{
    const tcc_target *target = tcc_target_of(f->ir);
    int64_t ctas = tcc_attr_int(&f->attrs, "min_ctas", 1), share;
    share = target->registers / tcc_attr_int(&f->attrs, "block", 1) / (ctas < 1 ? 1 : ctas);
    if (share > target->thread_registers)
        share = target->thread_registers;
    return share / REGISTER_UNIT * REGISTER_UNIT;
}

/* ---- what is in registers of MMAs ---------------------------------------------------------- */

/* Registers that values share, from the first op that writes them to the last one that reads them; ops are numbered in
 * the order of a walk, from 1 on. */
typedef struct lifetime {
    int64_t n;
    size_t from, to;
} lifetime;

typedef struct finder {
    const tcc_func *f;
    tcc_registers *registers;
    lifetime *lives; /* by their number */
    int64_t *in_use; /* at each op, the first one's at 1 */
    size_t n_ops;
    size_t at; /* the op that was numbered last */
    tcc_resize_wrong *out;
} finder;

static void define(finder *s, const tcc_value *v, size_t at)
{
    unsigned number = v->type->kind == TCC_KIND_vec ? tcc_registers_of(s->registers, v) : 0;
    if (!number)
        return;
    lifetime *life = &s->lives[number];
    int64_t n = (tcc_type_count(v->type) * tcc_scalar_bits(v->type->elem) + REGISTER_BITS - 1) / REGISTER_BITS;
    life->n = n > life->n ? n : life->n;
    life->from = life->from ? life->from : at;
    life->to = life->to > at ? life->to : at;
}

static void read_operands(finder *s, const tcc_op *op, size_t at)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        unsigned number = op->operands[i]->type->kind == TCC_KIND_vec ? tcc_registers_of(s->registers, op->operands[i])
                                                                      : 0;
        if (number && s->lives[number].to < at)
            s->lives[number].to = at;
    }
}

/* Numbers the ops of a block and of its regions. What a loop reads from before it is read until it ends. */
static void find_lives(finder *s, const tcc_block *block)
{
    for (const tcc_op *op = block->first; op; op = op->next) {
        size_t at = ++s->at;
        read_operands(s, op, at);
        for (unsigned r = 0; r < op->n_regions; r++) {
            for (size_t i = 0; i < op->regions[r]->n_args; i++)
                define(s, op->regions[r]->args[i], at);
            find_lives(s, op->regions[r]);
        }
        for (unsigned i = 1; op->code == TCC_OP_scf_for && i <= tcc_registers_count(s->registers); i++)
            if (s->lives[i].from && s->lives[i].from <= at && s->lives[i].to >= at)
                s->lives[i].to = s->at;
        for (unsigned i = 0; i < op->n_results; i++)
            define(s, &op->results[i], s->at);
    }
}

static void add_up(finder *s)
{
    for (unsigned i = 1; i <= tcc_registers_count(s->registers); i++)
        for (size_t at = s->lives[i].from; at && at <= s->lives[i].to; at++)
            s->in_use[at] += s->lives[i].n;
}

/* ---- what is left -------------------------------------------------------------------------- */

static int64_t left_by(const tcc_op *resize)
{
    return tcc_attr_int(&resize->attrs, "count", 0);
}

/* Walks through a block, in which `resize` was the last one, NULL for none; returns the last one behind it. Behind
 * branches it is the one that leaves most. */
static const tcc_op *check_block(finder *s, const tcc_block *block, const tcc_op *resize)
{
    for (const tcc_op *op = block->first; op && !s->out->op; op = op->next) {
        size_t at = ++s->at;
        if (op->code == TCC_OP_nvvm_setmaxnreg)
            resize = op;
        int64_t need = s->in_use[at] ? s->in_use[at] + BESIDE_ACCUMULATORS : 0;
        if (resize && need > left_by(resize))
            *s->out = (tcc_resize_wrong){resize, op, need};
        const tcc_op *behind = NULL;
        for (unsigned r = 0; r < op->n_regions; r++) {
            const tcc_op *last = check_block(s, op->regions[r], resize);
            behind = !behind || (last && left_by(last) > left_by(behind)) ? last : behind;
        }
        resize = op->n_regions ? behind : resize;
    }
    return resize;
}

bool tcc_resize_find_wrong(const tcc_func *f, tcc_arena *scratch, tcc_resize_wrong *out)
{
    *out = (tcc_resize_wrong){0};
    finder s = {.f = f, .out = out};
    bool resizes = false;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        resizes |= op->code == TCC_OP_nvvm_setmaxnreg;
        s.n_ops++;
    }
    if (!resizes)
        return false;
    s.registers = tcc_registers_find(f, scratch);
    s.lives = TCC_NEW_ARRAY(scratch, lifetime, tcc_registers_count(s.registers) + 1);
    s.in_use = TCC_NEW_ARRAY(scratch, int64_t, s.n_ops + 1);
    find_lives(&s, f->body);
    add_up(&s);
    s.at = 0;
    check_block(&s, f->body, NULL);
    return out->op != NULL;
}

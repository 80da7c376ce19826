/* numbers: numbers of which nothing is known but that they are the same, in what is written of a function (alike.c).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/alike.h"

/* Whether an op gives what its operands decide, whatever is known of them. */
static bool only_computes(const tcc_pinst *in)
{
    return in->given && !in->touches && !in->tensor && in->op->n_results == 1 && in->op->n_operands <= 3 &&
           in->op->code != TCC_OP_arith_cmp && in->results[0] < TCC_P_FIXED;
}

/* Counts what an op needs; gives how many slots that were not wanted yet; SIZE_MAX: of one nothing is known. */
static size_t add_uses(form *f, const tcc_pinst *in)
{
    size_t n = 0;
    for (unsigned o = 0; o < in->op->n_operands; o++) {
        uint32_t slot = in->operands[o];
        if (slot == TCC_P_NO_SLOT || (is_fixed(slot) && fixed_at(f, slot)->op->code != TCC_OP_arith_const))
            return SIZE_MAX;
        n += slot < TCC_P_FIXED && !f->uses[slot]++;
    }
    return n;
}

static size_t count_ops(const tcc_pcode *code, tcc_opcode op)
{
    size_t n = 0;
    for (size_t i = 0; i < code->n; i++) {
        n += code->insts[i].op->code == op;
        for (unsigned r = 0; r < code->insts[i].op->n_regions; r++)
            n += count_ops(&code->insts[i].regions[r], op);
    }
    return n;
}

/* Whether nothing else needs the parameters, and what a launch decides, from which the op at `top` computes its number,
 * nor what is computed on the way. Then uses are counted. */
static bool is_private(form *f, size_t top)
{
    const tcc_protocol *p = f->w.p;
    const tcc_pcode *code = &p->body;
    size_t used = add_uses(f, &code->insts[top]), more;
    for (size_t i = top; i-- > 0 && used != SIZE_MAX && used;) {
        const tcc_pinst *in = &code->insts[i];
        uint32_t slot = in->op->n_results == 1 ? in->results[0] : TCC_P_NO_SLOT;
        if (slot >= TCC_P_FIXED || !f->uses[slot])
            continue;
        bool of_launch = is_of_launch(in) && count_ops(code, in->op->code) == 1;
        if (f->uses[slot] != f->wanted[slot] || !(of_launch || only_computes(in)))
            return false;
        more = of_launch ? 0 : add_uses(f, in);
        used = more == SIZE_MAX ? more : used - 1 + more;
    }
    for (size_t i = 0; i < code->n_args && used != SIZE_MAX; i++) {
        uint32_t slot = code->args[i];
        if (slot >= TCC_P_FIXED || !f->uses[slot])
            continue;
        if (f->uses[slot] != f->wanted[slot] || p->f->body->args[i]->type->kind != TCC_KIND_scalar)
            return false;
        used--;
    }
    return !used;
}

/* What is known of the number: as the first state has parameters (explore.c), and steps compute (step.c). */
static tcc_pvalue compute_number(form *f, tcc_protocol *p, size_t top)
{
    const tcc_pcode *code = &p->body;
    for (size_t i = 0; i < code->n_args; i++)
        if (code->args[i] < TCC_P_FIXED && f->uses[code->args[i]])
            f->values[code->args[i]] = tcc_p_first_value(p, i);
    for (size_t i = 0; i <= top; i++) {
        const tcc_pinst *in = &code->insts[i];
        tcc_pvalue args[3] = {0};
        if (i < top && (in->op->n_results != 1 || in->results[0] >= TCC_P_FIXED || !f->uses[in->results[0]]))
            continue;
        for (unsigned o = 0; o < in->op->n_operands; o++) {
            uint32_t slot = in->operands[o];
            if (slot < TCC_P_FIXED)
                args[o] = f->values[slot];
            else
                tcc_p_give(p, NULL, 0, fixed_at(f, slot), &args[o]);
        }
        if (is_of_launch(in))
            tcc_p_give(p, NULL, 0, in, &f->values[in->results[0]]);
        else
            f->values[in->results[0]] = tcc_p_compute(p, in->op, args);
    }
    return f->values[code->insts[top].results[0]];
}

/* Whether what is known of a number says all. Of what a number of iterations is a quotient is looked up where it is
 * data, on the way to the quotient, too: then it does not. */
static bool may_stand_alone(const tcc_protocol *p, tcc_pvalue v)
{
    return v.kind == TCC_P_SYMBOL && (!p->symbol_data || tcc_p_symbol_get(p, v.v)->of == v.v);
}

/* Finds such numbers, those first that are computed from others: nothing needs these any more. */
void tcc_p_find_numbers(form *f, tcc_protocol *p)
{
    const tcc_pcode *code = &p->body;
    for (size_t i = code->n; i-- > 0;) {
        const tcc_pinst *in = &code->insts[i];
        if (!only_computes(in) || !f->wanted[in->results[0]])
            continue;
        bool found = is_private(f, i) && may_stand_alone(p, compute_number(f, p, i));
        f->is_number[in->results[0]] = found;
        for (uint32_t slot = 0; slot < p->n_slots; slot++) {
            f->wanted[slot] = found && f->uses[slot] ? 0 : f->wanted[slot];
            f->uses[slot] = 0;
        }
    }
}

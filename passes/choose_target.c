/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/choose_target.h"

#include "ir/schedule_key.h"
#include "passes/choose_axes.h"
#include "passes/schedule.h"
#include "support/str.h"

static bool needs(tcc_scalar elem, tcc_capability capability)
{
    return capability == TCC_CAN_f64 ? elem == TCC_f64 : elem == TCC_i4 || elem == TCC_u4;
}

const tcc_op *tcc_find_element(const tcc_func *f, tcc_capability needed)
{
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        for (unsigned i = 0; i < op->n_operands; i++)
            if (needs(op->operands[i]->type->elem, needed))
                return op;
        for (unsigned i = 0; i < op->n_results; i++)
            if (needs(op->results[i].type->elem, needed))
                return op;
    }
    return NULL;
}

tcc_status tcc_check_f64(tcc_pass_ctx *ctx, const tcc_func *f)
{
    const tcc_target *target = tcc_target_of(f->ir);
    const tcc_op *op = tcc_target_can(target, TCC_CAN_f64) ? NULL : tcc_find_element(f, TCC_CAN_f64);
    if (!op)
        return TCC_OK;
    tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, op->loc, "not supported yet: f64 on %s", target->name);
    return TCC_ERR_UNSUPPORTED;
}

/* The operands. instr: the instruction, if the user set one. */
static tcc_multiplied product_of(const tcc_func *f, const tcc_sum *sum)
{
    return (tcc_multiplied){(tcc_instr)tcc_schedule_key_of(f, TCC_KEY_instr, TCC_INSTR_COUNT),
                            tcc_sum_operand_elem(sum->a), tcc_sum_operand_elem(sum->b),
                            sum->op->results[0].type->elem};
}

static tcc_instr instr_for(const tcc_target *target, tcc_instr instr, const tcc_multiplied *p)
{
    return target ? tcc_target_instr_for(target, instr, p->a, p->b, p->acc) : TCC_INSTR_COUNT;
}

/* where: what keeps the target's own instruction from it, or NULL */
static tcc_status refuse_instr(tcc_pass_ctx *ctx, const tcc_func *f, const tcc_multiplied *p,
                               const tcc_target *const as[2], const char *where)
{
    const tcc_schedule_key *key = &tcc_schedule_keys[TCC_KEY_instr];
    tcc_str choices = {0}, of = {0};
    for (tcc_instr i = 0; i < TCC_INSTR_COUNT; i++)
        if (instr_for(as[0], i, p) == i || instr_for(as[1], i, p) == i)
            tcc_str_printf(&choices, "%s%s", choices.len ? ", " : "", tcc_schedule_key_word(key, i));
    if (tcc_target_converts(tcc_func_target(f), p->a) && tcc_target_converts(tcc_func_target(f), p->b))
        tcc_str_printf(&choices, "%snaive", choices.len ? " or " : "");
    tcc_str_puts(&of, tcc_scalar_name(p->a));
    if (p->a != p->b)
        tcc_str_printf(&of, " and %s", tcc_scalar_name(p->b));
    tcc_error(ctx->diag, TCC_ERR_TARGET, tcc_attr_find(&f->attrs, key->name)->loc,
              choices.len ? "instr %s: %s multiplies %s, summed in %s, by %s%s%s"
                          : "instr %s: %s has no instruction for %s, summed in %s",
              tcc_schedule_key_word(key, p->instr), tcc_target_of(f->ir)->name, tcc_str_text(&of),
              tcc_scalar_name(p->acc), tcc_str_text(&choices), where ? " where " : "", where ? where : "");
    tcc_str_free(&choices);
    tcc_str_free(&of);
    return TCC_ERR_TARGET;
}

/* Whether a target has the instruction that is asked for, or any, for all sums. */
static bool multiplies_all(const tcc_target *target, const tcc_func *f, const tcc_space *c)
{
    bool all = target != NULL;
    for (size_t i = 0; i < c->n_sums && all; i++) {
        const tcc_multiplied p = product_of(f, &c->sums[i]);
        all &= instr_for(target, p.instr, &p) != TCC_INSTR_COUNT;
    }
    return all;
}

/* Why the target's instruction does not take the operands of a sum: one of a warpgroup may need both along the summed
 * index, and unconverted. */
typedef enum not_taken { TAKEN, NOT_COMPUTED, NOT_ACROSS } not_taken;
static const char *const where_not_taken[] = {
    [NOT_COMPUTED] = "an operand is computed",
    [NOT_ACROSS] = "rows of an operand do not run along the summed index",
};

static not_taken why_not_taken(const tcc_target *target, const tcc_sum *sum)
{
    const tcc_mma *mma = tcc_mma_find(target, tcc_sum_operand_elem(sum->a), tcc_sum_operand_elem(sum->b),
                                      sum->op->results[0].type->elem);
    const tcc_sum_operand *const operands[] = {sum->a, sum->b};
    not_taken why = TAKEN;
    for (int i = 0; i < 2 && mma && !mma->across; i++)
        if (tcc_sum_operand_is_computed(operands[i]))
            return NOT_COMPUTED;
        else if (!tcc_read_is_contiguous_in(operands[i]->read, operands[i]->k, operands[i]->k))
            why = NOT_ACROSS;
    return why;
}

static not_taken why_not_all_taken(const tcc_target *target, const tcc_space *c)
{
    not_taken why = TAKEN;
    for (size_t i = 0; i < c->n_sums && why != NOT_COMPUTED; i++) {
        not_taken of = why_not_taken(target, &c->sums[i]);
        why = of ? of : why;
    }
    return why;
}

/* Whether there are elements that only warps multiply. */
static bool is_for_warps(const tcc_func *f)
{
    return tcc_find_element(f, TCC_CAN_f64) || tcc_find_element(f, TCC_CAN_half_bytes);
}

bool tcc_wants_transposed(const tcc_func *f, const tcc_space *c)
{
    const tcc_target *target = tcc_target_of(f->ir);
    return !is_for_warps(f) && multiplies_all(target, f, c) && why_not_all_taken(target, c) == NOT_ACROSS;
}

tcc_status tcc_choose_target(tcc_pass_ctx *ctx, tcc_func *f, const tcc_space *c)
{
    const tcc_target *target = tcc_target_of(f->ir), *plain = target->plain ? tcc_target_find(target->plain) : NULL;
    const tcc_instr wanted = product_of(f, &c->sums[0]).instr;
    bool by_warps = plain && is_for_warps(f);
    bool given = wanted != TCC_INSTR_COUNT;
    const char *where = where_not_taken[why_not_all_taken(target, c)];
    const tcc_target *const as[2] = {by_warps || where ? NULL : target, plain};
    bool by_own = multiplies_all(as[0], f, c), by_plain = multiplies_all(as[1], f, c);
    for (size_t i = 0; i < c->n_sums && given && !by_own && !by_plain; i++) {
        const tcc_multiplied sum = product_of(f, &c->sums[i]);
        if (instr_for(as[0], wanted, &sum) == TCC_INSTR_COUNT && instr_for(as[1], wanted, &sum) == TCC_INSTR_COUNT)
            return refuse_instr(ctx, f, &sum, as, where);
    }
    if (by_warps || (!by_own && by_plain)) {
        tcc_attr_set_str(ctx->ir, &f->attrs, "target", plain->name);
        tcc_choose_axes(f); /* its instructions may take other operands from registers */
    }
    return TCC_OK;
}

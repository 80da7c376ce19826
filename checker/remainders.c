/* remainders: products of a tile's index and a number of iterations.
 *
 * Where all tiles have the same number of iterations, T, tile i begins with iteration i * T of a ring. Of that number
 * the remainder by m is asked, as of all iteration numbers, and of i it is known; so the remainder of T decides it. It
 * is chosen once, as what is not known of a kernel's parameters, before any loop of T iterations has ended. An
 * execution in which T turns out to have another one is none.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

/* The record of a remainder of a symbol's number; -1, reported: there are too many. */
static int record_of(tcc_protocol *p, tcc_pstate *s, const tcc_op *op, int64_t symbol)
{
    for (unsigned i = 0; i < s->n_records; i++)
        if (s->records[i].remainder && s->records[i].symbol == symbol)
            return (int)i;
    if (s->n_records == TCC_P_RECORDS)
        return tcc_p_unsupported(p, op, "more than %d numbers are only known at run time", TCC_P_RECORDS), -1;
    s->records[s->n_records] = (tcc_precord){.symbol = (uint32_t)symbol,
                                             .parent = -1,
                                             .most = p->symbol_data - 1,
                                             .scale = 1,
                                             .compared = INT64_MIN,
                                             .truth = true,
                                             .remainder = true,
                                             .op = op,
                                             .asked = (uint32_t)symbol};
    return (int)s->n_records++;
}

tcc_presult tcc_p_multiply(tcc_protocol *p, tcc_pstate *s, const tcc_op *op, const tcc_pvalue *args, tcc_pvalue *out,
                           bool *done)
{
    unsigned of = args[0].kind != TCC_P_SYMBOL;
    const tcc_pvalue *n = &args[of], *by = &args[!of];
    int64_t m = p->symbol_data;
    const tcc_op *def = op->n_operands == 2 ? op->operands[!of]->def : NULL;
    bool constant = def && def->code == TCC_OP_arith_const; /* so many times the number are a number like it */
    bool may = op->code == TCC_OP_arith_mul && !constant && m > 1 && n->kind == TCC_P_SYMBOL &&
               n->delta == INT64_MAX && by->kind == TCC_P_KNOWN && by->v >= 0 && !by->wraps && by->delta % m == 0;
    const tcc_psymbol *symbol = may ? tcc_p_symbol_get(p, n->v) : NULL;
    *done = may && !symbol->varies && tcc_p_least(symbol) + n->offset >= 0;
    if (!*done)
        return TCC_P_NEXT;
    int record = record_of(p, s, op, n->v);
    if (record < 0 || !tcc_p_symbol_is_data(p, symbol->of))
        return TCC_P_FAILED;
    const tcc_precord *r = &s->records[record];
    if (r->least < r->most) {
        p->choice.record = (unsigned)record;
        p->choice.at = r->least;
        return TCC_P_CHOICE;
    }
    bool none = tcc_p_is_exact(by) && !by->v;
    *out = tcc_p_known(none ? 0 : by->v % m * ((r->least + n->offset) % m) % m);
    out->delta = none ? 0 : m;
    return TCC_P_NEXT;
}

/* Whether what is known of a record's number has another remainder. */
static bool contradicts(const tcc_protocol *p, const tcc_precord *r, const tcc_precord *remainder)
{
    const tcc_psymbol *of = tcc_p_symbol_get(p, remainder->symbol);
    if (r->truth || r->known || r->symbol != of->of || r->most == INT64_MAX || r->least < 0)
        return false;
    int64_t n = tcc_p_quotient(r->least + of->add, of->by);
    return n == tcc_p_quotient(r->most + of->add, of->by) && n % p->symbol_data != remainder->least;
}

bool tcc_p_is_possible(const tcc_protocol *p, const tcc_pstate *s)
{
    bool possible = true;
    for (unsigned q = 0; q < s->n_records; q++)
        for (unsigned i = 0; s->records[q].remainder && i < s->n_records; i++)
            possible &= s->records[q].least < s->records[q].most || !contradicts(p, &s->records[i], &s->records[q]);
    return possible;
}

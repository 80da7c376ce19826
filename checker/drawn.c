/* drawn: numbers that one thread draws and others read in shared memory, and loops that go on while they say so.
 *
 * A CTA draws numbers (nvvm.atom.inc) until one says that there is nothing more to do. Which they are is unknown; what
 * must be known is that all warps use the same ones, in the same order, so that their loops make as many iterations.
 * So a number is followed by the iteration of the loop in which it was drawn: DRAWN, with what has been computed of it
 * as a symbol. Through shared memory it goes from the op that stores it (nvvm.st.shared.word, or nvvm.st.async.word to
 * the CTAs of a cluster, whose roles all go by what one thread of it draws) to those that load it
 * (nvvm.ld.shared.word): memory.c sees to it that they come after each other, and what is stored is kept with its
 * address until anything else is written there.
 *
 * A loop that tests what it carries makes n iterations, a number that is only known at run time and that all such loops
 * have in common, if
 *   one thread draws, in one place, once in each iteration of such a loop;
 *   behind its i-th iteration each of them tests the number that was drawn in that, and all of them test the same
 *   of it.
 * Then whether there is an iteration i + 1 has one answer for all. A loop may end by its bound, too, for all have the
 * same.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

/* ---- values ------------------------------------------------------------------------------ */

static tcc_pvalue drawn(int64_t symbol, int64_t iteration)
{
    return (tcc_pvalue){.kind = TCC_P_DRAWN, .v = symbol, .delta = iteration};
}

tcc_pvalue tcc_p_of_drawn(tcc_protocol *p, const tcc_op *op, const tcc_pvalue *args)
{
    tcc_pvalue symbols[3];
    int64_t iteration = -1;
    bool same = tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE && op->n_operands <= 3;
    for (unsigned i = 0; i < op->n_operands && same; i++) {
        symbols[i] = args[i];
        if (args[i].kind != TCC_P_DRAWN)
            continue;
        same = iteration < 0 || iteration == args[i].delta;
        iteration = args[i].delta;
        symbols[i] = (tcc_pvalue){.kind = TCC_P_SYMBOL, .v = args[i].v, .delta = INT64_MAX};
    }
    tcc_pvalue r = same ? tcc_p_of_symbols(p, op, symbols) : (tcc_pvalue){.kind = TCC_P_UNKNOWN};
    return r.kind == TCC_P_SYMBOL ? drawn(r.v, iteration) : (tcc_pvalue){.kind = TCC_P_UNKNOWN};
}

/* The loop around, in whose iterations this is done once each; NULL: there is none. */
static const tcc_pframe *loop_around(const tcc_pwarp *w)
{
    uint32_t d = w->depth;
    while (d-- > 0 && w->frames[d].of)
        if (w->frames[d].of->op->code == TCC_OP_scf_for)
            return w->frames[d].of->tests ? &w->frames[d] : NULL;
    return NULL;
}

tcc_presult tcc_p_nvvm_atom_inc(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    const tcc_pwarp *w = &s->warps[warp];
    const tcc_pframe *f = loop_around(w);
    bool one = f && !(w->mask & (w->mask - 1)), same = !p->draw || (p->draw == in->op && p->drawer == warp);
    if (!one || !same)
        return tcc_p_unsupported(p, in->op, "numbers are drawn %s",
                                 !same ? "in several places"
                                 : f   ? "by several threads"
                                       : "outside of a loop that tests them");
    p->draw = in->op;
    p->drawer = warp;
    if (in->results[0] != TCC_P_NO_SLOT)
        *tcc_p_slot(p, s, warp, in->results[0]) = drawn(tcc_p_symbol(p, "drawn", NULL, 0).v, f->iter);
    return TCC_P_NEXT;
}

/* ---- words of shared memory ---------------------------------------------------------------- */

static uint16_t atom_at(const tcc_protocol *p, int64_t address)
{
    return p->atom_of[(address - TCC_SMEM_BASE) / p->granule];
}

void tcc_p_words_overwritten(const tcc_protocol *p, tcc_pstate *s, const struct tcc_pfootprint *f)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < s->n_words; i++) {
        uint16_t atom = atom_at(p, s->words[i].address);
        bool overwritten = false;
        for (size_t k = 0; k < f->atoms.len; k++)
            overwritten |= f->atoms.data[k] == atom;
        if (!overwritten)
            s->words[kept++] = s->words[i];
    }
    s->n_words = kept;
}

/* An access to the word at an address that is the same for all lanes; false, reported, when it is wrong. */
static bool access_word(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, bool write, int64_t *at)
{
    enum { BYTES = 4 };
    const tcc_pvalue *address = tcc_p_slot(p, s, warp, in->operands[0]);
    return tcc_p_operand(p, s, warp, in, 0, at) && tcc_p_access_lanes(p, s, warp, in, address, BYTES, write, false);
}

/* Words are kept in the order of their addresses. */
static bool keep(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, tcc_pword word)
{
    if (s->n_words == TCC_P_WORDS)
        return tcc_p_unsupported(p, in->op, "numbers that are drawn are in more than %d places", TCC_P_WORDS), false;
    unsigned i = s->n_words++;
    for (; i && s->words[i - 1].address > word.address; i--)
        s->words[i] = s->words[i - 1];
    s->words[i] = word;
    return true;
}

bool tcc_p_keep_word(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned i, int64_t address)
{
    const tcc_pvalue *a = in->operands[i] == TCC_P_NO_SLOT ? NULL : tcc_p_slot(p, s, warp, in->operands[i]);
    return !a || a->kind != TCC_P_DRAWN || keep(p, s, in, (tcc_pword){address, *a});
}

tcc_presult tcc_p_nvvm_st_shared_word(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    int64_t at;
    bool kept = access_word(p, s, warp, in, true, &at) && tcc_p_keep_word(p, s, warp, in, 1, at);
    return kept ? TCC_P_NEXT : TCC_P_FAILED;
}

tcc_presult tcc_p_nvvm_ld_shared_word(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pvalue v = {.kind = TCC_P_UNKNOWN};
    int64_t at;
    if (!access_word(p, s, warp, in, false, &at))
        return TCC_P_FAILED;
    for (unsigned i = 0; i < s->n_words; i++)
        if (s->words[i].address == at)
            v = s->words[i].value;
    if (in->results[0] != TCC_P_NO_SLOT)
        *tcc_p_slot(p, s, warp, in->results[0]) = v;
    s->warps[warp].loaded_word = p->ctas > 1;
    return TCC_P_NEXT;
}

/* ---- loops ------------------------------------------------------------------------------- */

bool tcc_p_plan_testing(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, tcc_pframe *f)
{
    tcc_pvalue bounds[3];
    bool fixed = true;
    for (unsigned i = 0; i < 3; i++) {
        bounds[i] = *tcc_p_slot(p, s, warp, in->operands[i]);
        fixed &= (tcc_p_is_exact(&bounds[i]) && !bounds[i].loop) || (i == 1 && bounds[i].kind == TCC_P_SYMBOL);
        bounds[i].kind = TCC_P_KNOWN; /* how often it runs depends on more than the parameters that they depend on */
    }
    if (!fixed || f->lo != 0 || f->step != 1 || tcc_p_inner_loop(&s->warps[warp]) >= 0)
        return tcc_p_unsupported(p, in->op,
                                 "this loop tests what it carries, and is in another or does not count from 0"),
               false;
    int64_t symbol = tcc_p_symbol_from(p, 0, "iterations that are tested", bounds, 3).v;
    if (p->drawing && p->drawing != (uint32_t)symbol + 1)
        return tcc_p_unsupported(p, in->op, "loops that test what they carry have several bounds"), false;
    p->drawing = (uint32_t)symbol + 1;
    f->bound = symbol;
    f->hi = INT64_MAX;
    f->record = tcc_p_record_of(p, s, warp, in->op, symbol, false);
    if (f->record < 0)
        return false;
    tcc_precord *r = &s->records[f->record];
    int64_t least = tcc_attr_int(&in->op->attrs, "at_least_once", 0);
    r->least = r->least < least && r->most >= least ? least : r->least;
    return true;
}

bool tcc_p_tests_drawn(tcc_protocol *p, const tcc_pstate *s, unsigned warp)
{
    const tcc_pwarp *w = &s->warps[warp];
    const tcc_pframe *f = &w->frames[w->depth - 1];
    const tcc_pvalue *test = tcc_p_slot(p, s, warp, f->code->args[1]);
    bool is_last = test->kind == TCC_P_DRAWN && test->delta == f->iter - 1;
    bool right = f->iter ? is_last && (!p->tested || p->tested == test->v + 1) : tcc_p_is_exact(test) && test->v;
    if (!right)
        return tcc_p_unsupported(p, f->of->op, "whether this loop goes on may differ from warp to warp"), false;
    p->tested = f->iter ? (uint32_t)test->v + 1 : p->tested;
    return true;
}

int64_t tcc_p_drawn_base(const tcc_protocol *p, const tcc_pstate *s, const int64_t *bases)
{
    for (unsigned i = 0; i < s->n_records; i++)
        if (p->drawing && s->records[i].symbol == p->drawing - 1)
            return bases[i];
    return 0;
}

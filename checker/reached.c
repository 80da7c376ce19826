/* reached: what a proof has covered.
 *
 * That nothing wrong was found says something only of what was looked at. So each op that is followed must have been
 * done in some execution; each loop left, and, where its iteration count is not known, gone round again; each warp
 * must have come to its end, and all together to the end of the kernel. Else nothing is proven. Only a branch whose
 * condition is made of constants and of the indices of such loops may never have been taken: these loops were left, so
 * that all their iterations were followed.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

#include "support/map.h"

enum { DONE = 1, LEFT = 2, MAY_REPEAT = 4, REPEATED = 8 };

static size_t number(tcc_pcode *code, size_t next)
{
    for (size_t i = 0; i < code->n; i++) {
        code->insts[i].number = next++;
        for (unsigned r = 0; r < code->insts[i].op->n_regions; r++)
            next = number(&code->insts[i].regions[r], next);
    }
    return next;
}

void tcc_p_reached_create(tcc_protocol *p)
{
    p->reached = TCC_NEW_ARRAY(p->scratch, uint8_t, number(&p->body, 0) + 1);
}

/* ---- on the way ------------------------------------------------------------------------ */

void tcc_p_reached_ops(tcc_protocol *p, const tcc_pinst *first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p->reached[first[i].number] |= DONE;
}

void tcc_p_reached_loop(tcc_protocol *p, const tcc_pinst *in, const tcc_pframe *f)
{
    bool unknown = f->record >= 0 && !f->known;
    p->reached[in->number] |= unknown && f->cap > f->lo + f->step ? MAY_REPEAT : 0;
}

void tcc_p_reached_iteration(tcc_protocol *p, const tcc_pframe *f)
{
    p->reached[f->of->number] |= f->iter ? REPEATED : 0;
}

void tcc_p_reached_end_of_loop(tcc_protocol *p, const tcc_pframe *f)
{
    p->reached[f->of->number] |= LEFT;
}

/* ---- at the end ------------------------------------------------------------------------ */

/* What was not covered of an op; NULL: nothing. */
static const char *missing(const tcc_protocol *p, const tcc_pinst *in)
{
    uint8_t is = p->reached[in->number];
    bool loop = in->op->code == TCC_OP_scf_for && !in->counts;
    return !(is & DONE)                                      ? "reaches this"
           : loop && !(is & LEFT)                            ? "leaves this loop"
           : loop && (is & MAY_REPEAT) && !(is & REPEATED) ? "begins a second iteration of this loop"
                                                           : NULL;
}

/* Whether a value is made of constants, and of indices and carried values of loops that are. seen: on the way here;
 * *varies: from iteration to iteration. */
static bool is_constant(const tcc_value *v, tcc_map *seen, bool *varies)
{
    if (tcc_map_get(seen, v))
        return true;
    *tcc_map_at(seen, v) = (void *)v;
    const tcc_op *of = v->def ? v->def : v->block->parent;
    bool loop = of && of->code == TCC_OP_scf_for, computed = v->def && tcc_op_info_get(of->code)->flags & TCC_ELEMENTWISE;
    bool is = loop || computed || (v->def && of->code == TCC_OP_arith_const);
    for (unsigned i = 0; is && i < (loop ? 3 : of->n_operands); i++)
        is = is_constant(of->operands[i], seen, varies);
    *varies |= loop && !v->def;
    unsigned carried = v->def ? v->index : v->index - 1;
    bool is_carried = loop && (v->def || v->index);
    return is && (!is_carried || (is_constant(of->operands[3 + carried], seen, varies) &&
                                  is_constant(tcc_block_yield(of->regions[0])->operands[carried], seen, varies)));
}

/* Whether no execution can come to a region of an op that was done: only such branches are left out. */
static bool is_dead(const tcc_protocol *p, const tcc_pinst *in, unsigned region)
{
    tcc_map seen = TCC_MAP(p->scratch);
    bool entered = in->regions[region].n && p->reached[in->regions[region].insts[0].number] & DONE;
    bool varies = false;
    return in->op->code == TCC_OP_scf_if && !entered && is_constant(in->op->operands[0], &seen, &varies) && varies;
}

/* Whether all ops of a block were covered, and those inside; adds them up. */
static bool are_covered(tcc_protocol *p, const tcc_pcode *code)
{
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        const char *what = missing(p, in);
        if (what)
            return tcc_p_unsupported(p, in->op, "no execution that was followed %s", what), false;
        p->covered.ops++;
        p->covered.loops += in->op->code == TCC_OP_scf_for;
        for (unsigned r = 0; r < in->op->n_regions && !in->counts; r++) /* what only counts is done at once */
            if (!is_dead(p, in, r) && !are_covered(p, &in->regions[r]))
                return false;
    }
    return true;
}

bool tcc_p_is_covered(tcc_protocol *p)
{
    size_t ends = p->covered.ends;
    p->covered = (tcc_covered){.ends = ends, .steps = p->covered.steps};
    for (unsigned w = 0; w < p->n_followed; w++) {
        bool is = w == p->aside || w % p->spread < p->cta_warps;
        if (is && !(p->ended >> w & 1))
            return tcc_p_unsupported(p, NULL, "no execution that was followed comes to the end of %s %u",
                                     tcc_p_warp_word(p), w),
                   false;
        p->covered.warps += is;
    }
    if (!ends)
        return tcc_p_unsupported(p, NULL, "no execution was followed to its end"), false;
    return are_covered(p, &p->body);
}

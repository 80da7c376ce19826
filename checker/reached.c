/* reached: what a proof has covered.
 *
 * That nothing wrong was found says something only of what was looked at. So each op that is followed must have been
 * done in some execution; each loop left, and, where its iteration count is not known, gone round again; each warp
 * must have come to its end, and all together to the end of the kernel. Else nothing is proven.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

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
            if (!are_covered(p, &in->regions[r]))
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

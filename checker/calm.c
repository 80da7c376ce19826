/* calm: states in which no warp will reach an mbarrier again.
 *
 * When all warps have left the loops that fill and empty stages, all that remains of these loops is the order of
 * accesses. If every warp that may still access bytes comes after all accesses to them, it does not matter which
 * accesses those were, nor how many stages were filled: a state with fewer stands for those with more, since only a
 * read asks whether bytes were ever written. So what follows a loop is followed once, not for each iteration count.
 *
 * A CTA's bytes are accessed by its own warps alone, but for copies, which name mbarriers.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

enum { AT_HEAD = TCC_P_AT_HEAD };

/* ---- what warps may still do ----------------------------------------------------------- */

static uint8_t find_in_code(tcc_pcode *code)
{
    uint8_t later = 0;
    for (size_t i = code->n; i-- > 0;) {
        tcc_pinst *in = &code->insts[i];
        bool accesses = tcc_op_does(in->op->code, TCC_READS_SHARED | TCC_WRITES_SHARED);
        in->does = accesses ? TCC_P_ACCESSES : 0;
        in->does |= tcc_op_does(in->op->code, TCC_BY_MBARRIER) ? TCC_P_NAMES : 0;
        in->does_later = later;
        for (unsigned r = 0; r < in->op->n_regions; r++)
            in->does |= find_in_code(&in->regions[r]);
        later |= in->does;
    }
    return later;
}

void tcc_p_calm_find(tcc_protocol *p)
{
    find_in_code(&p->body);
    p->calms = !p->amd && p->max_barriers && !tcc_p_has_tiles(p);
}

uint8_t tcc_p_ahead(const tcc_pwarp *w)
{
    uint8_t ahead = 0;
    for (uint32_t d = 0; d < w->depth; d++) {
        const tcc_pframe *f = &w->frames[d];
        const tcc_pinst *first = f->code->insts, *in = first + f->pc;
        bool inside = d + 1 < w->depth, loop = f->of && f->of->op->code == TCC_OP_scf_for;
        if (loop || f->pc == AT_HEAD)
            ahead |= f->code->n ? first->does | first->does_later : 0;
        else if (f->pc < f->code->n)
            ahead |= in->does_later | (!inside || tcc_p_may_part(&w->frames[d + 1]) ? in->does : 0);
    }
    return ahead;
}

/* ---- bytes that are not being accessed ------------------------------------------------- */

void tcc_p_common_of_cta(const tcc_protocol *p, const tcc_pstate *s, unsigned cta, uint32_t *common)
{
    uint64_t warps = 0;
    for (unsigned w = 0; w < p->n_warps; w++) /* what is set aside does nothing else than name mbarriers */
        if (w != p->aside && tcc_p_cta(p, w) == cta &&
            (!s->warps[w].depth || tcc_p_ahead(&s->warps[w]) & TCC_P_ACCESSES))
            warps |= UINT64_C(1) << w;
    tcc_p_common_of(p, s, warps, 0, common);
}

bool tcc_p_is_quiet(const tcc_protocol *p, const tcc_patom *a, const uint32_t *common)
{
    bool quiet = a->mark == TCC_P_NEVER || (a->mark == TCC_P_ASYNC && common[a->writer] >= a->clock);
    for (uint32_t i = a->readers; i && quiet; i = p->readers.data[i].next) {
        const struct tcc_preader *r = &p->readers.data[i];
        quiet = common[r->actor] >= r->clock;
        if (r->actor < p->n_warps) /* copies may follow, too: it must be known of a fence behind the read */
            quiet &= common[p->n_actors + r->actor] >= r->clock;
    }
    return quiet;
}

/* Finds atoms that are quiet in the CTAs of their bytes; false when there are others, but for mbarriers. */
static bool find_free(tcc_protocol *p, const tcc_pstate *s)
{
    memset(p->is_free, true, s->n_atoms * sizeof *p->is_free);
    for (unsigned cta = 0; cta < p->ctas; cta++) {
        tcc_p_common_of_cta(p, s, cta, p->common);
        for (unsigned i = 0; i < s->n_atoms; i++) {
            if (!(p->atom_infos.data[i].ctas >> cta & 1))
                continue;
            bool quiet = tcc_p_is_quiet(p, &s->atoms[i], p->common);
            if (!quiet && s->atoms[i].mark != TCC_P_BARRIER)
                return false;
            p->is_free[i] = p->is_free[i] && quiet;
        }
    }
    return true;
}

/* ---- states ---------------------------------------------------------------------------- */

bool tcc_p_is_past(const tcc_protocol *p, const tcc_pstate *s, unsigned warp)
{
    return p->calms && !s->calm && !(tcc_p_ahead(&s->warps[warp]) & TCC_P_NAMES);
}

const bool *tcc_p_comes_to_rest(tcc_protocol *p, tcc_pstate *s)
{
    if (s->calm)
        return NULL;
    bool calm = p->calms && (p->aside == TCC_P_NO_WARP || s->has_begun);
    for (unsigned w = 0; w < p->n_warps && calm; w++)
        calm = !(tcc_p_ahead(&s->warps[w]) & TCC_P_NAMES);
    s->calm = calm && tcc_p_unfinished(p, s) < 0 && find_free(p, s);
    return s->calm ? p->is_free : NULL;
}

/* sums: numbers that wait for a number of iterations to be added to them.
 *
 * A role that passes over another's tile keeps the counter with which the tile begins, v, until the number of its
 * iterations, n, is known, and then goes on with v + n (a loop that only counts, ir/counting.h). Meanwhile the others
 * are in the tile's loop, and at have been made of the n. Where nothing needs v or n but that sum, states that differ
 * in v and at alone, by d more of one and d less of the other, have the same future: what is left of n is written
 * as n - at in either case, and both come to the same sum. So v is written as v + at, and at is not.
 *
 * Whether that holds is known of a state:
 *   who has yet to pass over this tile is in the iteration of the outer loop that is about it, and behind all other
 *   ops that want v there;
 *   no warp passes over it in another way, and for each that does there is one such loop;
 *   v is one of a ring's remainders, so that sums are known by theirs;
 * and that nothing else needs n is seen when it does (tcc_p_sums_fail): states that were taken for one go the
 * same way up to there, so one of them comes to it, and all is followed again with states told apart.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

enum { AT_HEAD = TCC_P_AT_HEAD };

/* In a region the last op that uses a value, or in which one does. */
typedef struct last_use {
    const tcc_pcode *code;
    size_t at;
    bool again; /* not only where it begins */
} last_use;

/* A number that a loop which only counts adds to. */
typedef struct sum {
    const tcc_pinst *in;
    const tcc_pcode *code; /* of the loop around it; */
    size_t at;             /* its place there */
    uint32_t slot;
    TCC_VEC(last_use) uses; /* other ones, there and inside */
} sum;

/* A slot of a warp that stands for so much more. */
typedef struct shift {
    unsigned warp;
    uint32_t slot;
    int64_t by;
} shift;

struct tcc_psums {
    TCC_VEC(sum) sums;
    bool unknown; /* there are others, or the number is wanted elsewhere; */
    bool used;    /* states were taken for one */
    TCC_VEC(shift) shifts; /* of the state that was looked at last */
    bool summed[TCC_P_RECORDS];
};

/* ---- where they are -------------------------------------------------------------------- */

static bool is_loop(const tcc_pinst *in)
{
    return in && in->op->code == TCC_OP_scf_for;
}

/* Whether an op, or one in it, uses the slot; *again when it does so not only where it begins. */
static bool uses(const tcc_pinst *in, uint32_t slot, bool *again)
{
    bool used = false;
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        used |= in->operands[i] == slot;
        *again |= in->operands[i] == slot && !(is_loop(in) && i > 2);
    }
    return used;
}

/* Notes the last uses in a region and those inside; gives whether there are any. */
static bool note_uses(const tcc_protocol *p, sum *u, const tcc_pcode *code)
{
    last_use last = {.code = code};
    bool any = false;
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        bool again = false, used = in != u->in && uses(in, u->slot, &again);
        for (unsigned r = 0; r < in->op->n_regions; r++)
            used |= note_uses(p, u, &in->regions[r]);
        if (used)
            last = (last_use){.code = code, .at = i, .again = again};
        any |= used;
    }
    if (any)
        TCC_PUSH(p->scratch, &u->uses, last);
    return any;
}

static void find(tcc_protocol *p, const tcc_pinst *of, const tcc_pcode *code)
{
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        p->sums->unknown |= in->counts && !(is_loop(of) && of->waits);
        for (unsigned k = 0; k < in->op->n_results && in->counts; k++) {
            sum u = {.in = in, .code = code, .at = i, .slot = in->operands[3 + k]};
            if (u.slot == TCC_P_NO_SLOT || in->results[k] == TCC_P_NO_SLOT)
                continue;
            note_uses(p, &u, code);
            TCC_PUSH(p->scratch, &p->sums->sums, u);
            if (u.slot < TCC_P_FIXED)
                TCC_PUSH(p->scratch, &p->waiting, u.slot);
        }
        for (unsigned r = 0; r < in->op->n_regions && !in->counts; r++)
            find(p, in, &in->regions[r]);
    }
}

void tcc_p_sums_create(tcc_protocol *p)
{
    p->sums = TCC_NEW(p->scratch, struct tcc_psums);
    p->sums->unknown = p->as_it_is || p->aside != TCC_P_NO_WARP;
    find(p, NULL, &p->body);
}

/* ---- of a state ------------------------------------------------------------------------ */

/* Whether a warp, whose frame at depth d is of the loop around, is behind all other uses. */
static bool is_spent(const tcc_pwarp *w, uint32_t d, const sum *u)
{
    for (uint32_t k = d; k < w->depth; k++) {
        const tcc_pframe *f = &w->frames[k];
        bool inside = k + 1 < w->depth, parts = k > d && f->of->op->code == TCC_OP_scf_if && tcc_p_may_part(f);
        const last_use *last = NULL;
        for (size_t i = 0; i < u->uses.len; i++) {
            const last_use *use = &u->uses.data[i];
            last = use->code == f->code ? use : last;
            if (parts && use->code == &f->of->regions[1])
                return false;
        }
        if (!last)
            return true;
        if ((k > d && is_loop(f->of)) || f->pc == AT_HEAD || f->pc < last->at ||
            (f->pc == last->at && (!inside || last->again)))
            return false;
        if (f->pc > last->at)
            return true;
    }
    return true;
}

/* Adds what stands for more when the record's number is counted from `base` on; false when that is not known. */
static bool add_shift(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, uint32_t d, const sum *u,
                      const tcc_precord *r, int64_t base)
{
    const tcc_pvalue *n = tcc_p_slot(p, s, warp, u->in->operands[1]), *v = tcc_p_slot(p, s, warp, u->slot);
    if (n->kind != TCC_P_SYMBOL)
        return true;
    const tcc_psymbol *of = tcc_p_symbol_get(p, n->v);
    if (of->of != r->symbol)
        return true;
    bool remainder = v->kind == TCC_P_KNOWN && v->delta > 1 && !v->loop && !v->wraps && v->v >= p->threshold &&
                     v->v < p->threshold + v->delta;
    if (!remainder || n->delta != INT64_MAX || r->scale % of->by || !is_spent(&s->warps[warp], d, u))
        return false;
    shift more = {.warp = warp, .slot = u->slot, .by = (base + of->add) / of->by % v->delta};
    for (size_t i = 0; i < p->sums->shifts.len; i++)
        if (p->sums->shifts.data[i].warp == warp)
            return false;
    TCC_PUSH(p->scratch, &p->sums->shifts, more);
    return true;
}

/* The same of a warp. */
static bool add_shifts(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_precord *r, int64_t base)
{
    const tcc_pwarp *w = &s->warps[warp];
    uint32_t d = 0;
    while (d < w->depth && w->frames[d].record != r->parent)
        d++;
    if (d == w->depth)
        return !w->depth || !tcc_p_may_enter(s, warp, r->parent);
    const tcc_pframe *f = &w->frames[d];
    bool behind = tcc_p_position(f) < r->parent_at, may = true;
    if (tcc_p_position(f) > r->parent_at)
        return true;
    for (size_t i = 0; i < p->sums->sums.len && may; i++) {
        const sum *u = &p->sums->sums.data[i];
        if (u->code == f->code && (behind || f->pc == AT_HEAD || f->pc <= u->at))
            may = !behind && f->pc != AT_HEAD && add_shift(p, s, warp, d, u, r, base);
    }
    return may;
}

/* The least progress of a warp in the loops of a record, in its units; INT64_MAX: no warp is in any. */
static int64_t base_of(const tcc_protocol *p, const tcc_pstate *s, unsigned r)
{
    int64_t at = INT64_MAX;
    for (unsigned i = 0; i < p->n_warps; i++) {
        const tcc_pwarp *warp = &s->warps[i];
        if (s->records[r].known || (warp->depth && tcc_p_may_enter(s, i, (int)r)))
            at = 0;
        for (uint32_t d = 0; d < warp->depth; d++) {
            const tcc_pframe *f = &warp->frames[d];
            if (f->record == (int)r && tcc_p_position(f) < at)
                at = tcc_p_position(f);
        }
    }
    return at;
}

/* Whether a record's number is what sums in its iteration of the outer loop are with, and no other record's. */
static bool may_be_summed(const tcc_protocol *p, const tcc_pstate *s, unsigned r)
{
    const tcc_precord *record = &s->records[r];
    bool may = p->sums->sums.len && !p->sums->unknown && !record->truth && !record->known && record->parent >= 0;
    for (unsigned i = 0; i < s->n_records && may; i++)
        may = s->records[i].symbol != record->symbol || s->records[i].truth || s->records[i].parent >= 0;
    return may;
}

/* From where on a record's number is counted; finds what waits for it. Once it is decided and no warp is in its loops
 * it is counted from its end. */
static int64_t find_of(const tcc_protocol *p, const tcc_pstate *s, unsigned r)
{
    const tcc_precord *record = &s->records[r];
    struct tcc_psums *u = p->sums;
    size_t first = u->shifts.len;
    int64_t at = record->truth ? 0 : base_of(p, s, r), base = at == INT64_MAX ? record->most : at;
    bool may = may_be_summed(p, s, r) && base >= 0 && base != INT64_MAX;
    for (unsigned w = 0; w < p->n_warps && may; w++)
        may = add_shifts(p, s, w, record, base);
    if (!may)
        u->shifts.len = first;
    u->summed[r] = u->shifts.len > first;
    u->used |= u->summed[r];
    return u->summed[r] || at != INT64_MAX ? base : 0;
}

void tcc_p_sums_find(const tcc_protocol *p, const tcc_pstate *s, int64_t *bases)
{
    p->sums->shifts.len = 0;
    for (unsigned r = 0; r < s->n_records; r++)
        bases[r] = find_of(p, s, r);
}

bool tcc_p_is_summed(const tcc_protocol *p, unsigned r)
{
    return p->sums->summed[r];
}

int64_t tcc_p_sum_of(const tcc_protocol *p, unsigned warp, uint32_t slot)
{
    for (size_t i = 0; i < p->sums->shifts.len; i++)
        if (p->sums->shifts.data[i].warp == warp && p->sums->shifts.data[i].slot == slot)
            return p->sums->shifts.data[i].by;
    return 0;
}

bool tcc_p_sums_fail(tcc_protocol *p)
{
    p->apart = p->sums->used && !p->sums->unknown;
    p->sums->unknown = true;
    if (p->apart)
        p->status = TCC_ERR_UNSUPPORTED;
    return p->apart;
}

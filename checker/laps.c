/* laps: states that differ by the phase of mbarriers that tiles use in turn.
 *
 * Roles that take tiles in turn, and warps to which the numbers of tiles come, have mbarriers of their own, which the
 * tile's number decides: as many tiles later as there are such mbarriers, a lap, it is the same one, and the phase is
 * the other. Let a lap be added to the indices of all loops over tiles, and let those mbarriers be in the other phase.
 * When each op does in the state after it what it does in the state before, then so does every execution, and one of
 * the two states is enough.
 *
 * As in rotate.c it is tried whether that is so, for all remainders of the index that are asked for: nothing may be
 * another number a lap later but the parity that is waited for, and this always or never for each mbarrier. Only
 * states are taken for one in which all warps have begun, and no index is small. What depends on the index follows from
 * it, being computed anew in each iteration, and is not written.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/rotate.h"

enum { MAX_LAPS = 64 };

struct tcc_plaps {
    rotation r;       /* counters are the indices; nothing is moved, but some mbarriers are flipped */
    unsigned *starts; /* where those of `moving` are that are a warp's, and behind the last one's */
    bool used;
};

/* Finds the indices of loops over tiles that no rotation changes; false when they do not go alike. */
static bool find_indices(tcc_protocol *p, rotation *r, const tcc_pcode *code)
{
    bool alike = true;
    for (size_t i = 0; i < code->n && alike; i++) {
        const tcc_pinst *in = &code->insts[i];
        const tcc_pcode *body = in->op->n_regions ? &in->regions[0] : NULL;
        if (in->op->code == TCC_OP_scf_for) {
            bool counts = body->args[0] != TCC_P_NO_SLOT && body->moduli[0] > 1;
            bool rotates = !p->symbol_data && !in->tests; /* as rotate.c has it */
            if (!counts || !in->loops)
                continue;
            alike = !rotates && (!r->period || r->period == body->moduli[0]);
            r->period = body->moduli[0];
            TCC_PUSH(p->scratch, &r->counters, body->args[0]);
            continue;
        }
        for (unsigned g = 0; g < in->op->n_regions && alike; g++)
            alike = find_indices(p, r, &in->regions[g]);
    }
    return alike;
}

void tcc_p_laps_find(tcc_protocol *p, tcc_pstate *first)
{
    struct tcc_plaps *laps = TCC_NEW(p->scratch, struct tcc_plaps);
    rotation *r = &laps->r;
    bool tiles = !p->amd && p->aside == TCC_P_NO_WARP && tcc_p_has_tiles(p);
    if (!tiles || !find_indices(p, r, &p->body) || !r->period || r->period % 2 || r->period > MAX_LAPS)
        return;
    walk w = {.p = p, .s = first, .r = r, .step = r->period / 2, .laps = true};
    tcc_p_walk(&w);
    if (w.failed)
        return;
    laps->starts = TCC_NEW_ARRAY(p->scratch, unsigned, p->n_followed + 1);
    for (size_t i = 0; i < r->moving.len; i++)
        laps->starts[r->moving.data[i] / p->n_slots + 1]++;
    for (unsigned i = 0; i < p->n_followed; i++)
        laps->starts[i + 1] += laps->starts[i];
    p->laps = laps;
}

bool tcc_p_is_index_of_tiles(const tcc_protocol *p, const tcc_pframe *f)
{
    return index_of(&p->laps->r, f) != TCC_P_NO_SLOT;
}

int64_t tcc_p_lap(const tcc_protocol *p, const tcc_pstate *s)
{
    struct tcc_plaps *laps = p->laps;
    int64_t first = -1;
    if (!laps || !tcc_p_are_late(p, s))
        return -1;
    for (unsigned w = 0; w < p->n_followed; w++)
        for (uint32_t d = 0; d < s->warps[w].depth; d++) {
            const tcc_pframe *f = &s->warps[w].frames[d];
            int64_t at = f->lo + f->iter * f->step;
            if (!tcc_p_is_index_of_tiles(p, f))
                continue;
            if (at < p->threshold || f->record < 0 || f->known || f->by_iterations || f->cap != INT64_MAX)
                return -1;
            first = first < 0 ? at : first;
        }
    laps->used |= first >= 0;
    return first < 0 ? -1 : first % laps->r.period < laps->r.period / 2 ? 0 : laps->r.period / 2;
}

bool tcc_p_is_flipped_barrier(const tcc_protocol *p, int64_t address)
{
    bool flips = false;
    for (size_t i = 0; p->laps && i < p->laps->r.moves.len; i++)
        flips |= p->laps->r.moves.data[i].from == address && p->laps->r.moves.data[i].flips > 0;
    return flips;
}

void tcc_p_lap_slots(const tcc_protocol *p, unsigned warp, tcc_pvalue *slots, int64_t lap)
{
    const rotation *r = &p->laps->r;
    for (unsigned i = p->laps->starts[warp]; i < p->laps->starts[warp + 1]; i++) {
        tcc_pvalue *v = &slots[r->moving.data[i] % p->n_slots];
        if (r->kinds[r->moving.data[i]] == FOLLOWS)
            *v = (tcc_pvalue){0};
        else if (v->delta == r->period)
            v->v = counter_at(p, r, v->v + lap).v;
    }
}

bool tcc_p_laps_fail(tcc_protocol *p)
{
    bool used = p->laps->used;
    p->laps = NULL;
    return tcc_p_tell_apart_if(p, used);
}

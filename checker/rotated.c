/* rotated: of all rotations of a state one, as rotate.c has found what a rotation does.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/rotate.h"

enum { AT_HEAD = TCC_P_AT_HEAD, UNSET = UINT32_MAX };

/* Whether a warp is behind the beginning of the first loop. */
static bool is_late(const tcc_pwarp *w)
{
    for (uint32_t d = 0; d < w->depth; d++) {
        const tcc_pframe *f = &w->frames[d];
        if ((f->of && f->of->op->code == TCC_OP_scf_for && f->of->loops) || (f->pc != AT_HEAD && f->pc >= f->code->later))
            return true;
    }
    return !w->depth;
}

/* Whether nothing is on its way of which a rotation would change the name: MMAs that some warps of a
 * warpgroup have issued and others have not. */
static bool is_settled(const tcc_protocol *p, const tcc_pstate *s)
{
    bool settled = p->aside == TCC_P_NO_WARP || s->has_begun;
    for (unsigned i = 0; i < p->n_warps && settled; i++) {
        const tcc_pwarp *first = &s->warps[i / TCC_WARPGROUP_WARPS * TCC_WARPGROUP_WARPS];
        settled = is_late(&s->warps[i]) && !s->warps[i].mmas && s->warps[i].committed == first->committed;
    }
    return settled;
}

/* How often to rotate, so that the first counter that there is becomes 0; -1: that is not known. */
static int64_t find_distance(const tcc_protocol *p, const tcc_pstate *s)
{
    const rotation *r = p->rotation;
    int64_t distance = -1;
    for (unsigned w = 0; w < p->n_warps; w++)
        for (size_t i = 0; i < r->counters.len; i++) {
            const tcc_pvalue *v = tcc_p_slot(p, s, w, r->counters.data[i]);
            if (v->kind == TCC_P_NONE || v->delta == TCC_P_DEAD)
                continue;
            tcc_pvalue as = counter_at(p, r, v->v < 0 ? 0 : v->v);
            if (memcmp(v, &as, sizeof as) != 0)
                return -1;
            if (distance < 0)
                distance = (r->period - v->v % r->period) % r->period;
        }
    return distance;
}

/* Where mbarriers are after a rotation; false when there are not all of them. */
static bool find_barriers(rotation *r, const tcc_pstate *s)
{
    if (r->n_barriers == s->n_barriers)
        return true;
    size_t found = 0;
    for (unsigned b = 0; b < s->n_barriers; b++) {
        r->barriers[b] = b;
        r->flips[b] = false;
        for (size_t i = 0; i < r->moves.len; i++) {
            if (r->moves.data[i].from != s->barriers[b].address)
                continue;
            unsigned to = 0;
            while (to < s->n_barriers && s->barriers[to].address != r->moves.data[i].to)
                to++;
            if (to == s->n_barriers)
                return false;
            r->barriers[b] = to;
            r->flips[b] = r->moves.data[i].flips > 0;
            found++;
        }
    }
    if (found < r->moves.len)
        return false;
    r->n_barriers = s->n_barriers;
    return true;
}

/* Atoms are found on the way, and are as many in each stage only when all have been accessed. */
static bool find_atoms(const tcc_protocol *p, rotation *r, const tcc_pstate *s)
{
    if (r->n_atoms == s->n_atoms)
        return r->symmetric;
    r->n_atoms = s->n_atoms;
    r->symmetric = true;
    uint32_t *from = r->to;
    for (unsigned i = 0; i < s->n_atoms; i++)
        r->atoms[i] = from[i] = UNSET;
    for (size_t g = 0; g < p->n_granules && r->symmetric; g++) {
        uint16_t a = p->atom_of[g], b = p->atom_of[r->granules[g]];
        r->symmetric = (r->atoms[a] == UNSET || r->atoms[a] == b) && (from[b] == UNSET || from[b] == a);
        r->atoms[a] = b;
        from[b] = a;
    }
    for (unsigned i = 0; i < s->n_atoms; i++)
        r->atoms[i] = r->atoms[i] == UNSET ? i : r->atoms[i];
    return r->symmetric;
}

/* Of what only the lanes that accessed it know, the names are not known after a rotation. */
static bool may_move(const tcc_protocol *p, const tcc_pstate *s, const tcc_patom *a)
{
    bool may = a->writer >= p->n_warps || !a->print || s->warps[a->writer].synced >= a->clock;
    for (uint32_t i = a->readers; i && may; i = p->readers.data[i].next) {
        const struct tcc_preader *r = &p->readers.data[i];
        may = r->actor >= p->n_warps || !r->print || s->warps[r->actor].synced >= r->clock;
    }
    return may;
}

static bool move_atoms(const tcc_protocol *p, rotation *r, const tcc_pstate *s, int64_t n)
{
    for (unsigned i = 0; i < s->n_atoms; i++) {
        const tcc_patom *a = &s->atoms[i];
        uint32_t to = i;
        for (int64_t k = 0; k < n && r->atoms[to] != to; k++)
            to = r->atoms[to];
        if (to != i && !may_move(p, s, a))
            return false;
        r->state.atoms[to] = *a;
        unsigned b = a->writer - tcc_p_barrier_actor(p, 0);
        if (a->mark != TCC_P_NEVER && b < s->n_barriers)
            r->state.atoms[to].writer = (uint16_t)tcc_p_barrier_actor(p, r->to[b]);
    }
    return true;
}

static void move_barriers_of(const tcc_protocol *p, rotation *r, const tcc_pstate *s, int64_t n)
{
    for (unsigned b = 0; b < s->n_barriers; b++) {
        bool odd = false;
        r->to[b] = b;
        for (int64_t k = 0; k < n; k++) {
            odd ^= r->flips[r->to[b]];
            r->to[b] = r->barriers[r->to[b]];
        }
        tcc_pbarrier *to = &r->state.barriers[r->to[b]];
        *to = s->barriers[b];
        to->address = s->barriers[r->to[b]].address;
        to->odd = odd;
        memcpy(tcc_p_wait(p, &r->state, r->to[b], 0), tcc_p_wait(p, s, b, 0),
               p->n_warps * sizeof *s->waits);
    }
}

static void move_clocks(const tcc_protocol *p, rotation *r, const tcc_pstate *s)
{
    unsigned first = tcc_p_barrier_actor(p, 0);
    for (unsigned e = 0; e < p->n_entities + s->n_parts; e++) {
        unsigned b = (e - p->n_warps) / 2, to = e;
        if (e >= p->n_warps && b < s->n_barriers)
            to = (e - p->n_warps) % 2 ? tcc_p_done(p, r->to[b]) : tcc_p_arrivals(p, r->to[b]);
        const uint32_t *from = s->clocks + (size_t)e * p->stride;
        uint32_t *clocks = r->state.clocks + (size_t)to * p->stride;
        memcpy(clocks, from, p->stride * sizeof *clocks);
        for (b = 0; b < s->n_barriers; b++)
            clocks[first + r->to[b]] = from[first + b];
    }
}

static void move_slots(const tcc_protocol *p, rotation *r, const tcc_pstate *s, int64_t n)
{
    for (size_t i = 0; i < (size_t)p->n_warps * p->n_slots; i++) {
        bool counts = r->kinds[i] == COUNTER && s->slots[i].delta == r->period;
        r->state.slots[i] = r->kinds[i] == FOLLOWS ? (tcc_pvalue){0}
                            : counts               ? counter_at(p, r, s->slots[i].v + n)
                                                   : s->slots[i];
    }
}

const tcc_pstate *tcc_p_rotated(tcc_protocol *p, const tcc_pstate *s)
{
    rotation *r = p->rotation;
    int64_t n = r && is_settled(p, s) ? find_distance(p, s) : -1;
    if (n < 0 || !find_barriers(r, s) || !find_atoms(p, r, s))
        return s;
    tcc_pstate *to = &r->state, own = *to;
    *to = *s;
    to->slots = own.slots;
    to->clocks = own.clocks;
    to->versions = own.versions;
    to->barriers = own.barriers;
    to->waits = own.waits;
    to->atoms = own.atoms;
    move_barriers_of(p, r, s, n);
    move_clocks(p, r, s);
    move_slots(p, r, s, n);
    r->used = true;
    return move_atoms(p, r, s, n) ? to : s;
}

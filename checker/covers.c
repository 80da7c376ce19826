/* covers: a state in which less is known stands for those in which more is.
 *
 * What is known of other warps' past only allows: an access, an arrival or a wait that is right with less of it is
 * right with more. So states that differ in nothing else are told apart by that at first, and where two of them are
 * met, one goes on with what both know; when that is proven, both are. It may also fail where each alone would not:
 * then all is proven again with states told apart.
 *
 * Where tiles end is known by that alone, once all stages were used: a stage is released before the next one is
 * waited for, or behind.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/covers.h"

/* ---- less known ------------------------------------------------------------------------ */

/* The latest clock that has such a rank. */
static uint32_t clock_of(const column *c, uint16_t known)
{
    uint16_t rank = known / 2;
    uint32_t clock = rank < c->known.len ? c->known.data[rank] - 1 : c->base + (rank - (uint32_t)c->known.len);
    return known % 2 || clock < c->recent ? clock : c->recent - 1;
}

/* Lowers what is known in s, of which `as` is the rotation that was looked for, to what is known in another state. */
static void forget(const tcc_protocol *p, tcc_pstate *s, const tcc_pstate *as, const uint16_t *known)
{
    const struct tcc_pcovers *c = p->covers;
    unsigned order[TCC_P_PARTS * TCC_P_WARPS], n = p->n_actors + 2 * p->n_warps;
    tcc_p_sort_parts(s, order);
    for (unsigned k = 0; k < c->n_entities + s->n_parts; k++) {
        bool part = k >= c->n_entities;
        unsigned e = part ? p->n_entities + order[k - c->n_entities] : c->entities[k];
        unsigned at = s == as || part ? k : c->rows_of_entities[tcc_p_rotated_entity(p, s, e)];
        size_t row = (size_t)at * p->stride;
        for (unsigned i = 0; i < n; i++) {
            unsigned to = s == as ? i : tcc_p_rotated_actor(p, s, i);
            if (known[row + to] < p->covers->ranks[row + to])
                tcc_p_seen(p, s, e)[i] = clock_of(column_of(p, to), known[row + to]);
        }
    }
    size_t row = (c->n_entities + s->n_parts) * (size_t)p->stride;
    unsigned n_groups = tcc_p_find_groups(p, s, p->covers->groups);
    for (unsigned k = 0; k < n_groups; k++, row += p->stride)
        for (unsigned i = 0; i < p->n_steps; i++)
            if (known[row + i] < p->covers->ranks[row + i])
                p->covers->groups[k]->clocks[i] = clock_of(&p->columns[p->n_actors + i], known[row + i]);
}

/* What a barrier knows before the first arrival of a phase: all that arrive must know the end of its last phase, and
 * with that all that it knew then. */
static void forget_idle(const tcc_protocol *p, tcc_pstate *s)
{
    for (unsigned b = 0; b < s->n_barriers + p->n_named; b++) {
        unsigned named = b - s->n_barriers, entity = tcc_p_arrivals(p, b), actor = tcc_p_barrier_actor(p, b);
        if (!(b < s->n_barriers ? tcc_p_is_followed_barrier(p, b) : tcc_p_is_followed_named(p, named)))
            continue;
        if (b < s->n_barriers ? !awaits_arrivals(&s->barriers[b]) : s->named[named].arrived)
            continue;
        if (b >= s->n_barriers) {
            entity = tcc_p_named(p, named);
            actor = tcc_p_named_actor(p, named);
        }
        uint32_t *seen = tcc_p_seen(p, s, entity), phase = seen[actor];
        memset(seen, 0, p->stride * sizeof *seen);
        seen[actor] = phase;
    }
}

static unsigned group_of(unsigned warp)
{
    return warp / TCC_WARPGROUP_WARPS;
}

/* What warpgroups with MMAs know of each other since they synchronized: it decreases from iteration to iteration, and
 * is rarely needed. What all know is left. */
static void forget_others(const tcc_protocol *p, tcc_pstate *s)
{
    unsigned passed = p->n_actors + p->n_warps;
    tcc_p_common(p, s, p->common);
    for (unsigned k = 0; k < p->n_warps + s->n_parts; k++) {
        unsigned warp = k < p->n_warps ? k : s->parts[k - p->n_warps].warp;
        unsigned own = group_of(warp), mmas = tcc_p_mma_actor(p, 0);
        if (!s->warps[warp].depth || !s->warps[warp].committed)
            continue;
        uint32_t *seen = tcc_p_seen(p, s, k < p->n_warps ? k : p->n_entities + k - p->n_warps);
        for (unsigned i = 0; i < p->n_warps; i++)
            if (group_of(i) != own && s->warps[i].committed && seen[passed + i] > p->common[passed + i])
                seen[passed + i] = p->common[passed + i];
        for (unsigned g = 0; g < p->n_groups; g++)
            if (g != own && seen[mmas + g] > p->common[mmas + g])
                seen[mmas + g] = p->common[mmas + g];
    }
    for (unsigned k = 0; k < (group_of(p->n_followed - 1) + 1) * TCC_P_GROUPS; k++)
        for (unsigned i = 0; i < p->n_warps; i++)
            if (group_of(i) != k / TCC_P_GROUPS && s->warps[i].committed &&
                s->groups[k].clocks[i] > p->common[passed + i])
                s->groups[k].clocks[i] = p->common[passed + i];
}

/* What is known in both. What warps know of each other from when they met is less and less from iteration to
 * iteration: of that at once nothing is left but what all know. */
static void meet(const tcc_protocol *p, const tcc_pstate *s, uint16_t *least)
{
    const uint16_t *ranks = p->covers->ranks;
    unsigned passed = p->n_actors + p->n_warps, first_named = p->covers->rows_of_entities[tcc_p_named(p, 0)];
    for (size_t row = 0, n = rows_of(p, s), at = 0; row < n; row++) {
        bool of_groups = row >= p->covers->n_entities + s->n_parts;
        bool at_once = row < p->n_followed || row >= first_named;
        for (unsigned i = 0; i < p->stride; i++, at++) {
            if (least[at] <= ranks[at])
                continue;
            unsigned of = of_groups ? passed + i : i;
            uint16_t all = at_once ? rank_known(column_of(p, of), p->common[of]) : UINT16_MAX;
            least[at] = ranks[at] < all ? ranks[at] : all;
        }
    }
}

/* Whether each of n ranks is at most another one; most blocks of them are the same. */
static bool are_at_most(const uint16_t *ranks, const uint16_t *most, size_t n)
{
    bool are = true;
    for (size_t at = 0; at < n && are; at += TCC_P_BLOCK) {
        if (are_same_ranks(ranks + at, most + at))
            continue;
        for (size_t i = at; i < at + TCC_P_BLOCK; i++)
            are &= ranks[i] <= most[i];
    }
    return are;
}

/* What was known where least was, lowered to what is known in this state, too; false when nothing was. */
static bool lower(tcc_protocol *p, tcc_pstate *s, const tcc_pstate *as, uint16_t *least, uint32_t number)
{
    struct tcc_pcovers *c = p->covers;
    size_t n = rows_of(p, s) * p->stride;
    if (!memcmp(least, c->ranks, n * sizeof *least))
        return false;
    p->loosened = true;
    if (are_at_most(least, c->ranks, n))
        return false;
    meet(p, s, least);
    forget(p, s, as, least);
    c->len = tcc_p_normal(p, tcc_p_rotated(p, s), NULL, &c->bytes, &c->cap);
    if (*tcc_ptable_at(p->states, c->bytes, c->len) != number || memcmp(least, c->ranks, n * sizeof *least) != 0)
        p->status = TCC_ERR_UNSUPPORTED;
    return true;
}

/* ---- states that were seen ------------------------------------------------------------- */

/* Neither a state nor any that comes before it stands for its rotations; false when one does. */
static bool tell_apart(tcc_protocol *p, uint32_t number)
{
    struct tcc_pcovers *c = p->covers;
    if (!number || c->states.data[number - 1].told)
        return true;
    c->states.data[number - 1].told = true;
    bool may = !c->states.data[number - 1].turns;
    for (size_t i = 0; i < c->edges.len && may; i++)
        may = c->edges.data[i].after != number || tell_apart(p, c->edges.data[i].before);
    return may;
}

bool tcc_p_tell_rotations_apart(tcc_protocol *p, const tcc_pstate *s)
{
    return tell_apart(p, s->last);
}

/* Comes to a state that was seen before, the first time or again; false when it does not stand for this one. */
static bool come_to(tcc_protocol *p, tcc_pstate *s, uint32_t number, int64_t turned)
{
    struct tcc_pcovers *c = p->covers;
    seen_state *to = &c->states.data[number - 1];
    if (s->last)
        TCC_PUSH(p->scratch, &c->edges, (edge){s->last, number});
    to->turns |= to->turned != turned;
    s->last = number;
    return !to->told || !to->turns;
}

static bool *written_atoms(const tcc_protocol *p, const tcc_pstate *s)
{
    bool *written = TCC_NEW_ARRAY(p->scratch, bool, s->n_atoms);
    for (unsigned i = 0; i < s->n_atoms; i++)
        written[i] = s->atoms[i].mark != TCC_P_NEVER;
    return written;
}

/* Whether all bytes were written that were in a state seen before: atoms of which some are now others' parents. */
static bool is_written(const tcc_protocol *p, const tcc_pstate *s, const seen_state *there)
{
    bool all = true;
    for (unsigned i = 0; i < s->n_atoms && all; i++) {
        unsigned of = i;
        while (of >= there->n_written)
            of = p->atom_infos.data[of].parent;
        all = s->atoms[i].mark != TCC_P_NEVER || !there->written[of];
    }
    return all;
}

/* Whether the state was not seen before, nor is covered by one that was. Some of its knowledge may be forgotten. */
bool tcc_p_is_new(tcc_protocol *p, tcc_pstate *s, const bool *is_free)
{
    struct tcc_pcovers *c = p->covers;
    s->told = tcc_p_told(p, s);
    if (p->loose) {
        forget_idle(p, s);
        if (!p->symbol_data) /* roles that take tiles in turn need it */
            forget_others(p, s);
    }
    const tcc_pstate *as = is_free ? s : tcc_p_rotated(p, s);
    c->len = tcc_p_normal(p, as, is_free, &c->bytes, &c->cap);
    uint64_t *seen = tcc_ptable_at(p->states, c->bytes, c->len);
    bool is_new = !*seen || (is_free && !is_written(p, s, &c->states.data[*seen - 1]));
    if (is_new) {
        seen_state new = {.turned = as->turned};
        size_t n = rows_of(p, s) * p->stride;
        if (p->loose) {
            new.least = TCC_NEW_ARRAY(p->scratch, uint16_t, n);
            memcpy(new.least, c->ranks, n * sizeof *new.least);
        }
        if (is_free) {
            new.written = written_atoms(p, s);
            new.n_written = s->n_atoms;
        }
        TCC_PUSH(p->scratch, &c->states, new);
        *seen = c->states.len;
    }
    uint32_t number = (uint32_t)*seen, last = s->last;
    bool told = c->states.data[number - 1].told;
    if (!come_to(p, s, number, as->turned) || (told && !tell_apart(p, last))) {
        tcc_p_tell_apart_if(p, true);
        return false;
    }
    return is_new || (p->loose && lower(p, s, as, c->states.data[number - 1].least, number));
}

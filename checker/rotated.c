/* rotated: of all rotations of a state one, as rotate.c has found what a rotation does.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/rotate.h"

enum { AT_HEAD = TCC_P_AT_HEAD, UNSET = UINT32_MAX };

/* Whether a warp is behind the beginning of the loop from which on states are rotated. */
static bool is_late(const tcc_pwarp *w)
{
    for (uint32_t d = 0; d < w->depth; d++) {
        const tcc_pframe *f = &w->frames[d], *inner = d + 1 < w->depth ? f + 1 : NULL;
        bool loop = inner && inner->of->op->code == TCC_OP_scf_for && inner->of->loops;
        if (f->pc != AT_HEAD && f->pc + loop >= f->code->later)
            return true;
    }
    return !w->depth;
}

bool tcc_p_are_late(const tcc_protocol *p, const tcc_pstate *s)
{
    bool late = true;
    for (unsigned i = 0; i < p->n_warps && late; i++)
        late = is_late(&s->warps[i]);
    return late;
}

/* Whether nothing is on its way of which a rotation would change the name: MMAs that some warps of a
 * warpgroup have issued and others have not. */
static bool may_rotate(const tcc_protocol *p, const tcc_pstate *s)
{
    bool settled = p->aside == TCC_P_NO_WARP || s->has_begun;
    for (unsigned i = 0; i < p->n_warps && settled; i++) {
        const tcc_pwarp *first = &s->warps[i / TCC_WARPGROUP_WARPS * TCC_WARPGROUP_WARPS];
        settled = is_late(&s->warps[i]) && !s->warps[i].mmas && s->warps[i].committed == first->committed;
    }
    return settled;
}

/* A counter's value without what else is known of it, that it is a loop's index. */
static tcc_pvalue plain(tcc_pvalue v)
{
    v.loop = 0;
    v.offset = 0;
    return v;
}

/* How often to rotate, so that the first counter that there is becomes 0; -1: that is not known. */
static int64_t find_distance(const tcc_protocol *p, const tcc_pstate *s)
{
    const rotation *r = p->rotation;
    int64_t first = -1, bases[TCC_P_RECORDS];
    tcc_p_sums_find(p, s, bases);
    for (unsigned w = 0; w < p->n_warps; w++) {
        for (uint32_t d = 0; d < s->warps[w].depth; d++) {
            const tcc_pframe *f = &s->warps[w].frames[d];
            int64_t at = f->lo + f->iter * f->step;
            if (index_of(r, f) == TCC_P_NO_SLOT)
                continue;
            if (at < p->threshold || f->record < 0 || f->known || f->by_iterations)
                return -1;
            first = first < 0 ? at : first;
        }
        for (size_t i = 0; i < r->counters.len; i++) {
            tcc_pvalue v = plain(*tcc_p_slot(p, s, w, r->counters.data[i]));
            if (v.kind == TCC_P_NONE || v.delta == TCC_P_DEAD)
                continue;
            tcc_pvalue as = counter_at(p, r, v.v < 0 ? 0 : v.v);
            if (memcmp(&v, &as, sizeof as) != 0)
                return -1;
            first = first < 0 ? v.v + tcc_p_sum_of(p, w, r->counters.data[i]) : first;
        }
    }
    return first < 0 ? -1 : (r->period - first % r->period) % r->period;
}

/* Where mbarriers are after a rotation; false when there are not all of them. */
static bool find_barriers(const tcc_protocol *p, rotation *r, const tcc_pstate *s)
{
    if (r->n_barriers == s->n_barriers)
        return true;
    size_t found = 0;
    for (unsigned b = 0; b < s->n_barriers; b++) {
        unsigned of = p->symmetry ? b - b % p->ctas : b; /* all CTAs' go alike */
        r->barriers[b] = r->barriers[of] + (b - of);
        r->flips[b] = r->flips[of];
        if (b != of)
            continue;
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

/* The first of the atoms that one stands for. */
static uint32_t class_of(const rotation *r, uint32_t atom)
{
    while (r->classes[atom] != atom)
        atom = r->classes[atom];
    return atom;
}

/* Sets the class that another becomes, or comes from; true when it was two, which are now one. */
static bool unite(rotation *r, uint32_t *classes, uint32_t at, uint32_t class)
{
    uint32_t old = classes[at] == UNSET ? class : class_of(r, classes[at]);
    uint32_t least = old < class ? old : class;
    r->classes[old] = r->classes[class] = classes[at] = least;
    return old != class;
}

/* Atoms are found on the way, and not as many in each stage: what only uses some stages, an epilogue, divides those.
 * So classes of atoms are taken together, of which each becomes one other. */
static void find_atoms(const tcc_protocol *p, rotation *r, const tcc_pstate *s)
{
    if (r->n_atoms == s->n_atoms)
        return;
    r->n_atoms = s->n_atoms;
    if (r->room < s->n_atoms) {
        r->room = 2 * s->n_atoms;
        r->atoms = TCC_NEW_ARRAY(p->scratch, uint32_t, r->room);
        r->becomes = TCC_NEW_ARRAY(p->scratch, uint32_t, r->room);
        r->from = TCC_NEW_ARRAY(p->scratch, uint32_t, r->room);
        r->classes = TCC_NEW_ARRAY(p->scratch, uint32_t, r->room);
    }
    for (unsigned i = 0; i < s->n_atoms; i++)
        r->classes[i] = i;
    for (bool changed = true; changed;) {
        changed = false;
        for (unsigned i = 0; i < s->n_atoms; i++)
            r->atoms[i] = r->from[i] = UNSET;
        uint32_t last = UNSET, last_to = UNSET;
        for (size_t g = 0; g < p->n_granules; g++) {
            uint32_t a = p->atom_of[g], b = p->atom_of[r->granules[g]];
            if (a == last && b == last_to)
                continue;
            last = a;
            last_to = b;
            changed |= unite(r, r->atoms, class_of(r, a), class_of(r, b));
            changed |= unite(r, r->from, class_of(r, b), class_of(r, a));
        }
    }
    for (unsigned i = 0; i < s->n_atoms; i++) {
        r->classes[i] = class_of(r, i);
        r->atoms[i] = r->atoms[i] == UNSET ? i : class_of(r, r->atoms[i]);
    }
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

/* Where each of those comes to that `once` moves, one to one, after n times; odd: whether an odd number of these flips
 * it. What behind it in its circle comes to is behind that. */
static void move_n_times(const uint32_t *once, const bool *flips, unsigned many, int64_t n, uint32_t *to, bool *odd)
{
    memset(to, 0xff, many * sizeof *to);
    for (unsigned i = 0; i < many; i++) {
        uint32_t from = i, at = i;
        bool flipped = once[i] == i && n % 2 && flips && flips[i];
        for (int64_t k = 0; once[i] != i && to[i] == UNSET && k < n; k++) {
            flipped ^= flips && flips[at];
            at = once[at];
        }
        for (; to[from] == UNSET; from = once[from], at = once[at]) {
            to[from] = at;
            if (!flips)
                continue;
            odd[from] = flipped;
            flipped ^= flips[from] ^ flips[at];
        }
    }
}

/* False when atoms of a class differ, or may not be moved. */
static bool move_atoms(const tcc_protocol *p, rotation *r, const tcc_pstate *s, int64_t n)
{
    move_n_times(r->atoms, NULL, s->n_atoms, n, r->becomes, NULL);
    for (unsigned i = 0; i < s->n_atoms; i++) {
        uint32_t class = r->classes[i], to = r->becomes[class];
        if (memcmp(&s->atoms[i], &s->atoms[class], sizeof *s->atoms) != 0)
            return false;
        if (class != i)
            continue;
        if (to != i && !may_move(p, s, &s->atoms[i]))
            return false;
        r->from[to] = i;
    }
    for (unsigned i = 0; i < s->n_atoms; i++) {
        tcc_patom *to = &r->state.atoms[i];
        *to = s->atoms[r->from[r->classes[i]]];
        unsigned b = to->writer - tcc_p_barrier_actor(p, 0);
        if (to->mark != TCC_P_NEVER && b < s->n_barriers)
            to->writer = (uint16_t)tcc_p_barrier_actor(p, r->to[b]);
    }
    return true;
}

static void move_barriers_of(const tcc_protocol *p, rotation *r, const tcc_pstate *s, int64_t n)
{
    bool odd[TCC_MAX_MBARRIERS];
    move_n_times(r->barriers, r->flips, s->n_barriers, n, r->to, odd);
    for (unsigned b = 0; b < s->n_barriers; b++) {
        tcc_pbarrier *to = &r->state.barriers[r->to[b]];
        *to = s->barriers[b];
        to->address = s->barriers[r->to[b]].address;
        to->odd = odd[b];
        memcpy(tcc_p_wait(p, &r->state, r->to[b], 0), tcc_p_wait(p, s, b, 0),
               p->n_warps * sizeof *s->waits);
    }
}

/* The first of mbarriers that stay neighbours, and how many there are. */
typedef struct piece {
    uint32_t from, n;
} piece;

static unsigned find_pieces(const rotation *r, unsigned n, piece *pieces)
{
    unsigned n_pieces = 0;
    for (uint32_t b = 0; b < n; b++)
        if (b && r->to[b] == r->to[b - 1] + 1)
            pieces[n_pieces - 1].n++;
        else
            pieces[n_pieces++] = (piece){b, 1};
    return n_pieces;
}

static void move_clocks(const tcc_protocol *p, rotation *r, const tcc_pstate *s)
{
    piece pieces[TCC_MAX_MBARRIERS];
    unsigned first = tcc_p_barrier_actor(p, 0), n = find_pieces(r, s->n_barriers, pieces);
    for (unsigned e = 0; e < p->n_entities + s->n_parts; e++) {
        unsigned b = (e - p->n_warps) / 2, to = e;
        if (!tcc_p_is_followed_entity(p, e))
            continue;
        if (e >= p->n_warps && b < s->n_barriers)
            to = (e - p->n_warps) % 2 ? tcc_p_done(p, r->to[b]) : tcc_p_arrivals(p, r->to[b]);
        const uint32_t *from = s->clocks + (size_t)e * p->stride;
        uint32_t *clocks = r->state.clocks + (size_t)to * p->stride;
        memcpy(clocks, from, p->stride * sizeof *clocks);
        for (unsigned i = 0; i < n; i++)
            memcpy(clocks + first + r->to[pieces[i].from], from + first + pieces[i].from, pieces[i].n * sizeof *clocks);
    }
}

/* What a slot is that is not fixed. */
static void move_slot(const tcc_protocol *p, const rotation *r, kind how, tcc_pvalue *v, int64_t n)
{
    if (how == FOLLOWS)
        *v = (tcc_pvalue){0};
    else if (v->delta == r->period)
        v->v = counter_at(p, r, v->v + n).v;
}

static void move_slots(const tcc_protocol *p, rotation *r, const tcc_pstate *s, int64_t n)
{
    for (unsigned w = 0; w < p->n_followed; w++)
        tcc_p_copy_slots(&s->warps[w], tcc_p_slot(p, &r->state, w, 0), tcc_p_slot(p, s, w, 0));
    for (size_t i = 0; i < r->moving.len; i++) {
        uint32_t at = r->moving.data[i];
        r->state.slots[at] = s->slots[at];
        move_slot(p, r, r->kinds[at], &r->state.slots[at], n);
    }
}

const tcc_pstate *tcc_p_rotated(tcc_protocol *p, const tcc_pstate *s)
{
    rotation *r = p->rotation;
    int64_t n = r && !s->settled && may_rotate(p, s) ? find_distance(p, s) : -1;
    if (n < 0 || !find_barriers(p, r, s))
        return s;
    find_atoms(p, r, s);
    tcc_pstate *to = &r->state;
    tcc_p_memory_reserve(p, to, s->n_atoms);
    tcc_p_copy_numbers(to, s);
    to->warps = s->warps;
    to->groups = s->groups;
    to->resizes = s->resizes;
    to->parts = s->parts;
    to->globals = s->globals;
    to->reaches = s->reaches;
    to->turned = n;
    move_barriers_of(p, r, s, n);
    move_clocks(p, r, s);
    move_slots(p, r, s, n);
    r->used = true;
    return move_atoms(p, r, s, n) ? to : s;
}

unsigned tcc_p_rotated_actor(const tcc_protocol *p, const tcc_pstate *s, unsigned actor)
{
    unsigned b = actor - tcc_p_barrier_actor(p, 0);
    return b < s->n_barriers ? tcc_p_barrier_actor(p, p->rotation->to[b]) : actor;
}

unsigned tcc_p_rotated_entity(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    unsigned b = (entity - p->n_warps) / 2;
    if (entity < p->n_warps || b >= s->n_barriers)
        return entity;
    b = p->rotation->to[b];
    return (entity - p->n_warps) % 2 ? tcc_p_done(p, b) : tcc_p_arrivals(p, b);
}

/* ---- the end of rotations -------------------------------------------------------------- */

/* Whether a warp may still name an mbarrier, or is in a loop whose index is a counter. */
static bool may_name(const rotation *r, const tcc_pwarp *w)
{
    bool counts = false;
    for (uint32_t d = 0; d < w->depth && !counts; d++)
        counts = index_of(r, &w->frames[d]) != TCC_P_NO_SLOT;
    return counts || tcc_p_ahead(w) & TCC_P_NAMES;
}

/* Whether all stages of a CTA were filled, and what was done there is past for who may access them yet. */
static bool are_stages_quiet(const tcc_protocol *p, const tcc_pstate *s, unsigned cta)
{
    bool quiet = true;
    tcc_p_common_of_cta(p, s, cta, p->common);
    for (size_t i = 0; i < p->atom_infos.len && quiet; i++) {
        const struct tcc_patom_info *info = &p->atom_infos.data[i];
        const tcc_patom *a = &s->atoms[i];
        quiet = !info->moving || !(info->ctas >> cta & 1) ||
                (a->mark != TCC_P_NEVER && tcc_p_is_quiet(p, a, p->common));
    }
    return quiet;
}

bool tcc_p_is_settled(tcc_protocol *p, const tcc_pstate *s, unsigned cta)
{
    rotation *r = p->rotation;
    bool settled = p->aside == TCC_P_NO_WARP || s->has_begun;
    for (unsigned w = 0; w < p->n_warps && settled; w++)
        settled = !may_name(r, &s->warps[w]);
    settled = settled && are_stages_quiet(p, s, cta);
    for (size_t i = 0; i < r->moving.len && settled; i++) {
        const tcc_pvalue *v = &s->slots[r->moving.data[i]];
        settled = v->kind == TCC_P_NONE || v->delta == TCC_P_DEAD;
    }
    return settled && tcc_p_unfinished(p, s) < 0;
}

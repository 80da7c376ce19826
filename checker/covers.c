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
#include "checker/normal.h"

enum { MANY_REMEMBERED = 8 }; /* clocks of an actor */

/* A normal form that was seen. */
typedef struct seen_state {
    uint16_t *least;  /* what is known at least in the states it stands for */
    int64_t turned;   /* by how much the first such state was rotated; */
    bool turns, told; /* others by more or less; it stands for no others */
    bool *written;    /* of a calm one: which of its atoms were written */
    unsigned n_written;
} seen_state;

/* What ranks of a block of clocks depend on, so that they are found at once. Clocks are compared as signed numbers, which
 * can be vectors. */
typedef struct bounds {
    int32_t base[TCC_P_BLOCK], recent[TCC_P_BLOCK]; /* recent: what is greater than this */
    size_t n;
    TCC_VEC(int32_t) below; /* rows of one for each clock: it has a rank more when it is greater */
} bounds;

/* A state, from 1 on, that comes after another. */
typedef struct edge {
    uint32_t before, after;
} edge;

struct tcc_pcovers {
    uint8_t *bytes; /* of the last state: its normal form; */
    size_t len, cap;
    unsigned *entities, n_entities; /* that are followed, */
    unsigned *rows_of_entities;     /* and which of them each one is */
    uint16_t *ranks; /* those of the clocks of these entities, then of parts, then of groups of MMAs that are waited for */
    tcc_pgroup **groups; /* of the state that was looked at last */
    uint32_t *rows[4]; /* two for entities with even numbers, two for the others */
    struct bounds *bounds; /* of each block of clocks; */
    uint16_t *blocks;      /* where those begin of whose clocks any has another rank than 0 */
    size_t n_blocks;
    TCC_VEC(seen_state) states;
    TCC_VEC(edge) edges;
};

/* The groups of MMAs that a warp may still wait for; gives how many. */
static unsigned find_groups(const tcc_protocol *p, const tcc_pstate *s, tcc_pgroup **groups)
{
    unsigned found = 0;
    for (unsigned g = 0; g < p->n_groups; g++) {
        uint32_t most, all, least = tcc_p_least_waited(p, s, g, &most, &all);
        for (uint32_t n = least + 1; n <= most && n <= least + TCC_P_GROUPS; n++) {
            tcc_pgroup *group = &s->groups[g * TCC_P_GROUPS + n % TCC_P_GROUPS];
            if (group->number == n)
                groups[found++] = group;
        }
    }
    return found;
}

/* Rows of ranks. */
static size_t rows_of(const tcc_protocol *p, const tcc_pstate *s)
{
    return p->covers->n_entities + s->n_parts + find_groups(p, s, p->covers->groups);
}

/* The row behind another one. In a calm state no warp learns anything from an mbarrier. */
static size_t row_behind(const writer *w, size_t row)
{
    const unsigned *rows = w->p->covers->rows_of_entities;
    return w->is_free && row + 1 == rows[w->p->n_warps] ? rows[tcc_p_named(w->p, 0)] : row + 1;
}

void tcc_p_covers_create(tcc_protocol *p)
{
    struct tcc_pcovers *c = p->covers = TCC_NEW(p->scratch, struct tcc_pcovers);
    c->entities = TCC_NEW_ARRAY(p->scratch, unsigned, p->n_entities + 1);
    c->rows_of_entities = TCC_NEW_ARRAY(p->scratch, unsigned, p->n_entities + 1);
    for (unsigned e = 0; e < p->n_entities; e++) {
        c->rows_of_entities[e] = c->n_entities;
        if (tcc_p_is_followed_entity(p, e))
            c->entities[c->n_entities++] = e;
    }
    c->rows_of_entities[p->n_entities] = c->n_entities;
    c->ranks = TCC_NEW_ARRAY(p->scratch, uint16_t,
                             (c->n_entities + tcc_p_max_parts(p) + p->n_groups * TCC_P_GROUPS) * (size_t)p->stride);
    c->groups = TCC_NEW_ARRAY(p->scratch, tcc_pgroup *, p->n_groups * TCC_P_GROUPS + 1);
    c->bounds = TCC_NEW_ARRAY(p->scratch, bounds, p->stride / TCC_P_BLOCK);
    c->blocks = TCC_NEW_ARRAY(p->scratch, uint16_t, p->stride / TCC_P_BLOCK);
    for (unsigned i = 0; i < 4; i++)
        c->rows[i] = TCC_NEW_ARRAY(p->scratch, uint32_t, p->stride);
}

/* ---- ranks ----------------------------------------------------------------------------- */

/* The rank of what an entity knows. Only a warp that knows the end of the last phase but one may wait for the last,
 * although nothing remembers the one before (sync.c). */
static uint16_t rank_known(const column *c, uint32_t clock)
{
    return (uint16_t)(2 * rank_of(c, clock) + (clock >= c->recent));
}

/* The column of the i-th clock of an entity. */
static const column *column_of(const tcc_protocol *p, unsigned i)
{
    unsigned fenced = p->n_actors, passed = fenced + p->n_warps;
    return &p->columns[i < fenced ? i : i < passed ? i + p->n_steps : i - p->n_warps];
}

static bool is_same_block(const uint32_t *a, const uint32_t *b)
{
    uint32_t differs = 0;
    for (unsigned i = 0; i < TCC_P_BLOCK; i++)
        differs |= a[i] ^ b[i];
    return !differs;
}

/* What is never reached is so by no signed clock either. */
static int32_t signed_clock(uint32_t clock)
{
    return clock < INT32_MAX ? (int32_t)clock : INT32_MAX;
}

/* Fills the bounds of a block: what is behind the last clock has rank 0. */
static void find_bounds_of(const tcc_protocol *p, unsigned at, unsigned n, bounds *b)
{
    b->n = 0;
    for (unsigned i = 0; i < n; i++) {
        size_t known = column_of(p, at + i)->known.len;
        b->n = known > b->n ? known : b->n;
    }
    while (b->below.len < b->n * TCC_P_BLOCK)
        TCC_PUSH(p->scratch, &b->below, 0);
    for (unsigned i = 0; i < TCC_P_BLOCK; i++) {
        const column *c = i < n ? column_of(p, at + i) : NULL;
        b->base[i] = c ? signed_clock(c->base) : INT32_MAX;
        b->recent[i] = c && c->recent != UINT32_MAX ? (int32_t)c->recent - 1 : INT32_MAX;
        for (size_t k = 0; k < b->n; k++)
            b->below.data[k * TCC_P_BLOCK + i] = c && k < c->known.len ? (int32_t)c->known.data[k] - 1 : INT32_MAX;
    }
}

/* Whether nothing is remembered of clocks, nor asked of any: in a calm state of those of mbarriers. */
static bool are_forgotten(const tcc_protocol *p, unsigned at, unsigned n)
{
    bool forgotten = true;
    for (unsigned i = 0; i < n && forgotten; i++) {
        const column *c = column_of(p, at + i);
        forgotten = !c->known.len && c->base == UINT32_MAX && c->recent == UINT32_MAX;
    }
    return forgotten;
}

static void find_bounds(const tcc_protocol *p)
{
    struct tcc_pcovers *c = p->covers;
    unsigned n = p->n_actors + p->n_warps + p->n_steps;
    c->n_blocks = 0;
    for (unsigned at = 0; at < n; at += TCC_P_BLOCK) {
        unsigned most = n - at < TCC_P_BLOCK ? n - at : TCC_P_BLOCK;
        if (are_forgotten(p, at, most))
            continue;
        c->blocks[c->n_blocks++] = (uint16_t)at;
        find_bounds_of(p, at, most, &c->bounds[at / TCC_P_BLOCK]);
    }
}

/* rank_known of a block of clocks. */
static void rank_block(const bounds *b, const uint32_t *restrict clocks, uint16_t *restrict ranks)
{
    int32_t least[TCC_P_BLOCK], rank[TCC_P_BLOCK];
    const int32_t *below = b->below.data;
    for (unsigned i = 0; i < TCC_P_BLOCK; i++) {
        least[i] = (int32_t)clocks[i] < b->base[i] ? (int32_t)clocks[i] : b->base[i];
        rank[i] = (int32_t)clocks[i] - least[i];
    }
    for (size_t k = 0; k < b->n; k++, below += TCC_P_BLOCK)
        for (unsigned i = 0; i < TCC_P_BLOCK; i++)
            rank[i] += below[i] < least[i];
    for (unsigned i = 0; i < TCC_P_BLOCK; i++)
        ranks[i] = (uint16_t)(2 * (uint32_t)rank[i] + ((int32_t)clocks[i] > b->recent[i]));
}

/* The same of clocks of which many are remembered: most are those of the entity that is like this one. */
static void rank_each(const tcc_protocol *p, unsigned at, const uint32_t *clocks, const uint32_t *like,
                      const uint16_t *ranks_like, uint16_t *ranks)
{
    unsigned n = p->n_actors + p->n_warps + p->n_steps;
    for (unsigned i = at; i < at + TCC_P_BLOCK; i++) {
        if (like && clocks[i] == like[i])
            ranks[i] = ranks_like[i];
        else
            ranks[i] = i < n ? rank_known(column_of(p, i), clocks[i]) : 0;
    }
}

/* Most entities know nearly the same as another one of their kind. */
static void find_ranks(const tcc_protocol *p, const uint32_t *row, const uint32_t *like, const uint16_t *ranks_like,
                       uint16_t *ranks)
{
    const struct tcc_pcovers *c = p->covers;
    if (c->n_blocks < p->stride / TCC_P_BLOCK)
        memset(ranks, 0, p->stride * sizeof *ranks);
    for (size_t i = 0; i < c->n_blocks; i++) {
        unsigned at = c->blocks[i];
        if (like && is_same_block(row + at, like + at))
            memcpy(ranks + at, ranks_like + at, TCC_P_BLOCK * sizeof *ranks);
        else if (c->bounds[at / TCC_P_BLOCK].n > MANY_REMEMBERED)
            rank_each(p, at, row, like, ranks_like, ranks);
        else
            rank_block(&c->bounds[at / TCC_P_BLOCK], row + at, ranks + at);
    }
}

/* The clocks of an entity; those of no warp, and of whose past a warp may learn, as if it knew what all know. */
static void find_row(const writer *w, unsigned e, uint32_t *row)
{
    const tcc_protocol *p = w->p;
    const uint32_t *common = w->common, *clocks = tcc_p_clocks(p, w->s, e);
    unsigned barrier = (e - p->n_warps) / 2, n = p->n_actors + p->n_warps;
    bool mbarrier = barrier < p->max_barriers, arrivals = mbarrier && e == tcc_p_arrivals(p, barrier);
    if (e < p->n_warps)
        n = w->s->told >> e & 1 ? p->stride : 0;
    else if (!arrivals || awaits_arrivals(&w->s->barriers[barrier]))
        n = p->stride;
    for (size_t k = 0; k < p->covers->n_blocks; k++) {
        unsigned at = p->covers->blocks[k];
        memcpy(row + at, clocks + at, TCC_P_BLOCK * sizeof *row);
        if (at + TCC_P_BLOCK <= n)
            tcc_p_keep_later(row + at, common + at);
        else
            for (unsigned i = at; i < n; i++)
                row[i] = row[i] > common[i] ? row[i] : common[i];
    }
}

/* Numbers of parts by warp and lanes, in whatever order they came to be. */
static void sort_parts(const tcc_pstate *s, unsigned *order)
{
    for (unsigned i = 0; i < s->n_parts; i++) {
        const tcc_ppart *part = &s->parts[i];
        unsigned at = i;
        for (; at; at--) {
            const tcc_ppart *before = &s->parts[order[at - 1]];
            if (before->warp != part->warp ? before->warp < part->warp
                                           : (before->lanes & -before->lanes) < (part->lanes & -part->lanes))
                break;
            order[at] = order[at - 1];
        }
        order[at] = i;
    }
}

static void find_ranks_of_groups(const writer *w, uint16_t *ranks)
{
    const tcc_protocol *p = w->p;
    unsigned n = find_groups(p, w->s, p->covers->groups);
    memset(ranks, 0, n * p->stride * sizeof *ranks);
    for (unsigned k = 0; k < n; k++, ranks += p->stride)
        for (unsigned i = 0; i < p->n_steps; i++)
            ranks[i] = rank_known(&p->columns[p->n_actors + i], p->covers->groups[k]->clocks[i]);
}

/* Who does nothing more waits for nothing. */
static void forget_recent(const writer *w, unsigned entity, uint16_t *ranks)
{
    bool goes_on = tcc_p_goes_on(w->p, w->s, entity);
    for (unsigned i = 0; i < w->p->n_actors && !goes_on; i++)
        ranks[i] &= UINT16_MAX - 1;
}

static void find_all_ranks(const writer *w)
{
    const tcc_protocol *p = w->p;
    const tcc_pstate *s = w->s;
    struct tcc_pcovers *c = p->covers;
    unsigned order[TCC_P_PARTS * TCC_P_WARPS];
    find_bounds(p);
    const uint32_t *last[2] = {NULL};
    const uint16_t *last_ranks[2] = {NULL};
    for (size_t k = 0; k < c->n_entities; k = row_behind(w, k)) {
        size_t i = k % 2; /* an mbarrier's arrivals are like those of the one before, and so is its last phase */
        uint32_t *row = c->rows[2 * i + (last[i] == c->rows[2 * i])];
        uint16_t *ranks = c->ranks + k * p->stride;
        find_row(w, c->entities[k], row);
        find_ranks(p, row, last[i], last_ranks[i], ranks);
        last[i] = row;
        last_ranks[i] = ranks;
    }
    sort_parts(s, order);
    for (unsigned i = 0; i < s->n_parts; i++) {
        unsigned warp = s->parts[order[i]].warp;
        find_ranks(p, s->clocks + (size_t)(p->n_entities + order[i]) * p->stride,
                   s->clocks + (size_t)warp * p->stride, c->ranks + (size_t)warp * p->stride,
                   c->ranks + (size_t)(c->n_entities + i) * p->stride);
    }
    for (unsigned e = 0; e < p->n_followed; e++)
        forget_recent(w, e, c->ranks + (size_t)e * p->stride);
    for (unsigned i = 0; i < s->n_parts; i++)
        forget_recent(w, p->n_entities + order[i], c->ranks + (size_t)(c->n_entities + i) * p->stride);
    find_ranks_of_groups(w, c->ranks + (c->n_entities + s->n_parts) * (size_t)p->stride);
}

/* ---- writing --------------------------------------------------------------------------- */

static void put_parts(writer *w)
{
    const tcc_pstate *s = w->s;
    unsigned order[TCC_P_PARTS * TCC_P_WARPS];
    sort_parts(s, order);
    put(w, &s->n_parts, sizeof s->n_parts);
    for (unsigned i = 0; i < s->n_parts; i++) {
        const tcc_ppart *part = &s->parts[order[i]];
        put(w, &part->warp, sizeof part->warp);
        put(w, &part->lanes, sizeof part->lanes);
        put_clock(w, &w->columns[part->warp], part->synced);
    }
}

static bool are_same_ranks(const uint16_t *a, const uint16_t *b)
{
    uint64_t x[2], y[2];
    static_assert(sizeof x == TCC_P_BLOCK * sizeof *a, "a block of ranks");
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    return !((x[0] ^ y[0]) | (x[1] ^ y[1]));
}

/* All ranks, of each entity those that are not the same as the last one's. */
static void put_ranks(writer *w)
{
    const tcc_protocol *p = w->p;
    static const uint16_t none[TCC_P_BLOCK];
    const uint16_t *last = NULL;
    for (size_t e = 0, n = rows_of(p, w->s); e < n; e = row_behind(w, e)) {
        const uint16_t *ranks = p->covers->ranks + e * p->stride;
        for (size_t i = 0; i < p->covers->n_blocks; i++) {
            uint16_t at = p->covers->blocks[i];
            if (are_same_ranks(ranks + at, last ? last + at : none))
                continue;
            const uint16_t place[] = {(uint16_t)e, at};
            put(w, place, sizeof place);
            put(w, ranks + at, TCC_P_BLOCK * sizeof *ranks);
        }
        last = ranks;
    }
}

/* Those that do not only allow: of a warp's own past, and what aside.c counts. */
static void put_exact_ranks(writer *w)
{
    const tcc_protocol *p = w->p;
    const uint16_t *ranks = p->covers->ranks;
    unsigned passed = p->n_actors + p->n_warps, counts = passed + p->n_warps;
    for (unsigned i = 0; i < p->n_followed; i++) {
        const uint16_t *own = ranks + (size_t)i * p->stride + i;
        put(w, own, sizeof *own);
        put(w, own + passed, sizeof *own);
    }
    for (unsigned e = 0; p->aside != TCC_P_NO_WARP && e < p->covers->n_entities + w->s->n_parts; e++)
        put(w, ranks + (size_t)e * p->stride + counts, (p->n_steps - p->n_warps) * sizeof *ranks);
}

void tcc_p_put_clocks(writer *w)
{
    find_all_ranks(w);
    put_parts(w);
    if (w->p->loose)
        put_exact_ranks(w);
    else
        put_ranks(w);
}

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
    sort_parts(s, order);
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
    unsigned n_groups = find_groups(p, s, p->covers->groups);
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
    for (unsigned k = 0; k < p->n_groups * TCC_P_GROUPS; k++)
        for (unsigned i = 0; i < p->n_warps; i++)
            if (group_of(i) != k / TCC_P_GROUPS && s->warps[i].committed && s->groups[k].clocks[i] > p->common[passed + i])
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
        tcc_p_rotation_fails(p);
        return false;
    }
    return is_new || (p->loose && lower(p, s, as, c->states.data[number - 1].least, number));
}

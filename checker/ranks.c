/* ranks: what entities know of others' past, as ranks among the clocks that something remembers.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/covers.h"

enum { MANY_REMEMBERED = 8 }; /* clocks of an actor */

/* The groups of MMAs that a warp may still wait for; gives how many. */
unsigned tcc_p_find_groups(const tcc_protocol *p, const tcc_pstate *s, tcc_pgroup **groups)
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
void tcc_p_sort_parts(const tcc_pstate *s, unsigned *order)
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
    unsigned n = tcc_p_find_groups(p, w->s, p->covers->groups);
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
    tcc_p_sort_parts(s, order);
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
    tcc_p_sort_parts(s, order);
    put(w, &s->n_parts, sizeof s->n_parts);
    for (unsigned i = 0; i < s->n_parts; i++) {
        const tcc_ppart *part = &s->parts[order[i]];
        put(w, &part->warp, sizeof part->warp);
        put(w, &part->lanes, sizeof part->lanes);
        put_clock(w, &w->columns[part->warp], part->synced);
    }
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

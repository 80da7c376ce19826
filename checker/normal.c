/* normal: a state as bytes that are equal for states with equal futures.
 *
 * Numbers that only grow are written as far as they matter:
 *   iterations  by how much a warp is ahead of the last one in loops of as many of them;
 *   clocks      by their order among the clocks that something remembers: later ones are greater
 *               than all of them, and nothing but order is ever asked;
 *   counters    (phases, groups) by their distance from the oldest that can still be asked for.
 * Which warp has made how much progress is left out: it only chooses one order of many that come
 * to the same.
 *
 * What all warps know can be learned by none, so a barrier is taken to know it, too, whether it does or did
 * not yet (common_knowledge.c); and an access of the copy engine or of an MMA that all come after is as if it were
 * long ago.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/normal.h"

void tcc_p_reserve(writer *w, size_t n)
{
    if (w->len + n <= w->cap)
        return;
    size_t cap = 2 * (w->cap + n);
    uint8_t *data = tcc_arena_alloc(w->p->scratch, cap);
    if (w->len)
        memcpy(data, w->data, w->len);
    w->data = data;
    w->cap = cap;
}

static int64_t pair_of(uint32_t a, uint32_t b)
{
    return (int64_t)(a | (uint64_t)b << 32);
}

static void put_pair(writer *w, uint32_t a, uint32_t b)
{
    put_int(w, pair_of(a, b));
}

/* ---- clocks that matter ---------------------------------------------------------------------- */

/* The column of CTA 0 that corresponds to one, where that alone is followed. */
static unsigned home_of(const tcc_protocol *p, unsigned at)
{
    unsigned fences = p->n_actors + p->n_steps;
    if (!p->symmetry || at < p->n_actors)
        return tcc_p_home_clock(p, at);
    return at < fences ? tcc_p_home_clock(p, at + p->n_warps) - p->n_warps
                       : tcc_p_home_clock(p, at - p->n_steps) + p->n_steps;
}

static void insert(const writer *w, column *c, uint32_t clock)
{
    size_t i = c->known.len;
    while (i && c->known.data[i - 1] > clock)
        i--;
    if (i && c->known.data[i - 1] == clock)
        return;
    TCC_PUSH(w->p->scratch, &c->known, clock);
    memmove(&c->known.data[i + 1], &c->known.data[i],
            (c->known.len - 1 - i) * sizeof *c->known.data);
    c->known.data[i] = clock;
}

static inline void remember(writer *w, unsigned actor, uint32_t clock)
{
    column *c = &w->columns[w->p->symmetry ? home_of(w->p, actor) : actor];
    if (clock <= c->base && !(c->known.len && c->known.data[c->known.len - 1] == clock))
        insert(w, c, clock);
}

uint32_t tcc_p_least_waited(const tcc_protocol *p, const tcc_pstate *s, unsigned group, uint32_t *most, uint32_t *all)
{
    uint32_t least = UINT32_MAX;
    *most = 0;
    *all = UINT32_MAX;
    for (unsigned i = 0; i < TCC_WARPGROUP_WARPS; i++) {
        unsigned w = group * TCC_WARPGROUP_WARPS + i;
        if (w >= p->n_warps)
            break;
        least = s->warps[w].waited < least ? s->warps[w].waited : least;
        *most = s->warps[w].committed > *most ? s->warps[w].committed : *most;
        *all = s->warps[w].committed < *all ? s->warps[w].committed : *all;
    }
    return least;
}

static void find_bases(writer *w)
{
    const tcc_protocol *p = w->p;
    const tcc_pstate *s = w->s;
    uint32_t most, all;
    for (unsigned i = 0; i < p->n_actors + p->n_steps + p->n_warps; i++) {
        w->columns[i].base = w->columns[i].recent = UINT32_MAX;
        w->columns[i].known.len = 0;
    }
    for (unsigned g = 0; g < p->n_groups; g++)
        w->columns[tcc_p_mma_actor(p, g * TCC_WARPGROUP_WARPS)].base =
            tcc_p_least_waited(p, s, g, &most, &all);
    for (unsigned i = 0; p->stores && i < p->n_warps; i++) {
        unsigned actor = tcc_p_bulk_actor(p, i);
        unsigned entity = tcc_p_entity(p, s, i, UINT64_C(1) << s->warps[i].bulk_lane);
        w->columns[actor].base = tcc_p_clocks(p, s, entity)[actor];
    }
    for (unsigned i = 0; p->writes && i < p->n_warps; i++) {
        unsigned actor = tcc_p_writes_actor(p, i);
        unsigned entity = tcc_p_entity(p, s, i, UINT64_C(1) << s->warps[i].bulk_lane);
        uint32_t seen = tcc_p_clocks(p, s, entity)[actor], n = s->warps[i].bulk_groups;
        bool more = n > p->most_pending && n - p->most_pending > seen;
        w->columns[actor].base = more ? n - p->most_pending : seen;
    }
    for (unsigned b = 0; b < s->n_barriers && !w->is_free; b++) {
        column *c = &w->columns[tcc_p_barrier_actor(p, b)];
        c->base = c->recent = s->barriers[b].phase > 0 ? s->barriers[b].phase - 1 : 0;
    }
    for (unsigned n = 0; n < p->n_named; n++)
        w->columns[tcc_p_named_actor(p, n)].base =
            s->named[n].phase > 0 ? s->named[n].phase - 1 : 0;
    for (unsigned i = p->n_warps; i < p->n_steps; i++)
        w->columns[p->n_actors + i].base = s->passed < s->begun ? s->passed : s->begun;
}

/* Whether all warps come after an access of another actor. Where less knowledge stands for more it is kept. */
static bool is_past(const writer *w, unsigned actor, uint32_t clock)
{
    return !w->p->loose && actor >= w->p->n_warps && !w->p->amd && w->common[actor] >= clock;
}

/* The clock of a warp's wait for the phase that a barrier is in; 0: there was none, or whoever arrives comes
 * after it. */
static uint32_t current_wait(const writer *w, unsigned b, unsigned warp)
{
    const tcc_pwait *wait = tcc_p_wait(w->p, w->s, b, warp);
    const tcc_pbarrier *bar = &w->s->barriers[b];
    if (!wait->clock || wait->phase != bar->phase)
        return 0;
    uint32_t passed = w->common[w->p->n_actors + w->p->n_warps + warp];
    return !w->p->loose && awaits_arrivals(bar) && passed >= wait->clock ? 0 : wait->clock;
}

static uint32_t resize_clock(const tcc_pstate *s, unsigned warp)
{
    return s->resizes[warp / TCC_WARPGROUP_WARPS].clocks[warp % TCC_WARPGROUP_WARPS];
}

/* The column of a warp's fences: of its accesses, behind which there may be one. */
static const column *fences_of(const writer *w, unsigned warp)
{
    return &w->columns[w->p->n_actors + w->p->n_steps + warp];
}

/* An access that others must come after. */
static void remember_access(writer *w, unsigned actor, uint32_t clock)
{
    if (is_past(w, actor, clock))
        return;
    remember(w, actor, clock);
    if (actor < w->p->n_warps)
        remember(w, w->p->n_actors + w->p->n_steps + actor, clock);
}

/* Whether nothing tells an atom from another but who reports it, and which lanes wrote it. */
static bool are_as_old(const tcc_patom *a, const tcc_patom *b)
{
    return a->clock == b->clock && a->readers == b->readers && a->writer == b->writer && a->mark == b->mark;
}

static void find_clocks(writer *w)
{
    const tcc_protocol *p = w->p;
    const tcc_pstate *s = w->s;
    find_bases(w);
    tcc_p_common(w->p, w->s, w->common);
    for (unsigned i = 0; i < s->n_atoms; i++) {
        const tcc_patom *a = &s->atoms[i];
        if ((i && are_as_old(a, a - 1)) || (w->is_free && w->is_free[i]))
            continue;
        if (a->mark != TCC_P_NEVER && a->mark != TCC_P_BARRIER)
            remember_access(w, a->writer, a->clock);
        for (uint32_t r = a->readers; r; r = p->readers.data[r].next)
            remember_access(w, p->readers.data[r].actor, p->readers.data[r].clock);
    }
    for (unsigned i = 0; i < s->n_globals; i++)
        remember(w, s->globals[i].actor, s->globals[i].clock);
    for (unsigned i = 0; p->reaches && i < p->ctas * p->n_warps; i++)
        remember(w, i % p->n_warps, s->reaches[i]);
    for (unsigned b = 0; b < s->n_barriers && !w->is_free; b++) {
        const tcc_pbarrier *bar = &s->barriers[b];
        if (!tcc_p_is_followed_barrier(p, b))
            continue;
        remember(w, bar->init_warp, bar->init_clock);
        remember(w, bar->init_warp, bar->fence_clock);
        remember(w, tcc_p_barrier_actor(p, b), bar->last_copy);
        remember(w, tcc_p_barrier_actor(p, b), bar->last_afar);
        const tcc_pwait *waits = tcc_p_wait(p, s, b, 0);
        for (unsigned i = 0; i < p->n_warps; i++) {
            uint32_t clock = waits[i].phase == bar->phase ? current_wait(w, b, i) : 0;
            if (clock)
                remember(w, p->n_actors + i, clock);
        }
    }
    for (unsigned i = 0; i < p->n_warps; i++)
        remember(w, p->n_actors + i, resize_clock(s, i));
    for (unsigned i = 0; i < p->n_followed; i++) {
        const uint32_t *clocks = tcc_p_clocks(p, s, i);
        remember(w, i, clocks[i]);
        remember(w, p->n_actors + i, clocks[p->n_actors + p->n_warps + i]);
    }
    for (unsigned i = 0; p->symmetry && i < p->n_actors + p->n_steps + p->n_warps; i++)
        w->columns[i] = w->columns[home_of(p, i)];
}

/* ---- iterations ----------------------------------------------------------------------------- */

static void put_record(writer *w, unsigned r)
{
    const tcc_precord *record = &w->s->records[r];
    int64_t m = w->p->symbol_data * record->scale, at = w->base_at[r], t = w->p->data_threshold;
    t = (t + 1) * record->scale;
    put_int(w, record->symbol | (int64_t)record->truth << 32 | (int64_t)record->known << 33);
    put_int(w, record->scale);
    put_int(w, record->parent);
    put_int(w, record->parent < 0 ? 0 : record->parent_at - w->base_at[record->parent]);
    put_int(w, record->least - at);
    put_int(w, record->most == INT64_MAX ? INT64_MAX : record->most - at);
    tcc_psymbol *of = &w->p->symbols.data[record->symbol];
    bool summed = tcc_p_is_summed(w->p, r), data = summed || of->data || w->p->as_it_is;
    of->forgotten |= m && !data;
    if (m && data)
        put_int(w, summed ? at % record->scale - m : at < t ? at : t + (at - t) % m);
    put_int(w, tcc_p_count_told_apart(w->p, record));
}

/* ---- warps ----------------------------------------------------------------------------- */

/* What is left of a loop's index: its remainder, as its slot will hold it in the next iteration,
 * whether there was an iteration yet, and how far it is from the limit that it has beside its
 * iterations. */
static void put_index(writer *w, const tcc_pframe *f)
{
    bool counts = f->code->moduli[0] > 1 && !w->p->symbol_data && !f->of->tests; /* as rotate.c has it */
    int64_t at = f->lo + f->iter * f->step, turned = counts ? w->s->turned : 0;
    turned += w->lap > 0 && tcc_p_is_index_of_tiles(w->p, f) ? w->lap : 0;
    put_int(w, f->by_iterations ? 0 : f->cap == INT64_MAX ? -1 : at < f->cap ? at : f->cap);
    put_int(w, f->iter > 0);
    if (!f->by_iterations && f->code->args[0] != TCC_P_NO_SLOT)
        put_int(w, tcc_p_forget(w->p, tcc_p_known(at + turned), f->code->moduli[0]).v);
}

static void put_frame(writer *w, const tcc_pframe *f)
{
    const int64_t place[] = {(int64_t)(intptr_t)f->code,
                             f->pc | (int64_t)f->region << 32 | (int64_t)f->by_iterations << 40 |
                                 (int64_t)f->may << 41 | (int64_t)(f->busy && w->p->aside != TCC_P_NO_WARP) << 42,
                             (int64_t)f->mask, (int64_t)f->outer};
    put(w, place, sizeof place);
    if (!f->of || f->of->op->code != TCC_OP_scf_for) {
        assert(f->record < 0 && !f->iter && !f->bound); /* and nothing else */
        return;
    }
    const int64_t loop[] = {f->record, f->cap,   f->lo,    f->step, f->hi,
                            f->from,   f->scale, f->bound, f->by,
                            f->record < 0 ? f->iter : tcc_p_position(f) - w->base_at[f->record]};
    put(w, loop, sizeof loop);
    if (f->record >= 0 && !f->known)
        put_index(w, f);
}

/* Where registers of A are among those that are not waited for, from 1 on; 0: nowhere. They get
 * another number when an MMA takes them again. */
static int32_t place_of_a(const tcc_pwarp *w, int32_t number)
{
    unsigned i = 0;
    while (i < w->n_a && w->a[i].number != number)
        i++;
    return i < w->n_a ? (int32_t)i + 1 : 0;
}

/* A warp's values, those that are not the same as the last warp's. Which there are its frames tell. The rows have
 * nothing but what the last two warps hold. */
static void put_slots(writer *w, unsigned warp)
{
    const tcc_protocol *p = w->p;
    const tcc_pwarp *of = &w->s->warps[warp];
    tcc_pvalue *row = p->rows[warp % 2], *last = p->rows[!(warp % 2)];
    if (warp > 1)
        tcc_p_copy_slots(of - 2, row, NULL);
    tcc_p_copy_slots(of, row, tcc_p_slot(p, w->s, warp, 0));
    if (w->lap >= 0)
        tcc_p_lap_slots(p, warp, row, w->lap);
    for (size_t r = 0; r < p->registers.len; r++) {
        tcc_pvalue *v = &row[p->registers.data[r]];
        if (v->kind == TCC_P_REGISTERS && v->delta & TCC_P_IS_A)
            v->offset = place_of_a(of, v->offset);
        if (v->kind == TCC_P_REGISTERS && v->v)
            v->v = v->v <= of->waited ? INT64_MAX : of->committed + 1 - v->v;
    }
    for (size_t i = 0; i < p->waiting.len; i++) {
        tcc_pvalue *v = &row[p->waiting.data[i]];
        int64_t more = tcc_p_sum_of(p, warp, p->waiting.data[i]);
        if (more)
            v->v = p->threshold + (v->v - p->threshold + more) % v->delta;
    }
    tcc_p_reserve(w, p->n_slots * (sizeof *row + sizeof(uint32_t)) + sizeof(uint32_t));
    uint8_t *out = w->data + w->len;
    tcc_pslots piece;
    for (uint32_t d = 0; p->draw && d < of->depth; d++)
        for (size_t k = 0; tcc_p_held_slots(&of->frames[d], k, &piece); k++)
            for (uint32_t i = piece.first; i < piece.end; i++)
                row[i].delta -= row[i].kind == TCC_P_DRAWN ? w->drawn_base : 0;
    for (uint32_t d = 0; d < of->depth; d++)
        for (size_t k = 0; tcc_p_held_slots(&of->frames[d], k, &piece); k++)
            for (uint32_t i = piece.first; i < piece.end; i++) {
                if (tcc_p_is_same(&row[i], &last[i]))
                    continue;
                memcpy(out, &i, sizeof i);
                memcpy(out + sizeof i, &row[i], sizeof *row);
                out += sizeof i + sizeof *row;
            }
    memcpy(out, &p->n_slots, sizeof p->n_slots);
    w->len = (size_t)(out - w->data) + sizeof p->n_slots;
}

/* Where a warp is, and what it has done. */
static void put_progress(writer *w, unsigned i)
{
    const tcc_protocol *p = w->p;
    const tcc_pwarp *warp = &w->s->warps[i];
    const column *mmas = &w->columns[tcc_p_mma_actor(p, i)];
    put_int(w, warp->depth);
    for (uint32_t d = 0; d < warp->depth; d++)
        put_frame(w, &warp->frames[d]);
    const int64_t words[] = {
        (int64_t)warp->mask,
        (int64_t)warp->accessed,
        (int64_t)warp->fencing,
        (int64_t)(warp->unsynced | warp->apart << 32),
        warp->registers | (int64_t)(warp->waits_at + 1) << 32 |
            (int64_t)(warp->arrived ? 1 + (p->n_named && w->s->named[p->n_named - 1].phase >= warp->arrived) : 0) << 48,
        warp->open_group | warp->open_bulk << 1 | warp->any_fence << 2 | warp->released << 3 | warp->loaded_word << 4 |
            (int64_t)warp->bulk_lane << 8,
        (int64_t)warp->mmas,
        (int64_t)warp->touched,
        warp->n_a};
    put(w, words, sizeof words);
    put_clock(w, fences_of(w, i), warp->fencing ? warp->fenced : 0);
    put_clock(w, &w->columns[i], warp->synced);
    put_clock(w, &w->columns[p->n_actors + i], warp->apart ? warp->in_step : 0);
    put_clock(w, mmas, warp->committed);
    put_clock(w, mmas, warp->waited);
    put_int(w, warp->waited < warp->last_group ? warp->committed - warp->last_group : 0);
    for (unsigned k = 0; k < warp->n_a; k++) {
        put(w, &warp->a[k].op, sizeof warp->a[k].op);
        put_clock(w, mmas, warp->a[k].group);
    }
    if (p->stores)
        put_clock(w, &w->columns[tcc_p_bulk_actor(p, i)], warp->bulk_groups);
    if (p->groups)
        put_clock(w, &w->columns[tcc_p_bulk_actor(p, i)], warp->met_groups);
    if (p->writes)
        put_clock(w, &w->columns[tcc_p_writes_actor(p, i)], warp->bulk_groups);
}

/* The warps of a warpgroup are most often in the same place: of those that are written alike the first one. */
static void put_warps(writer *w)
{
    enum { AS_BEFORE = -1 }; /* no depth */
    size_t first = 0, len = 0;
    for (unsigned i = 0; i < w->p->n_followed; i++) {
        size_t at = w->len;
        put_progress(w, i);
        if (len && w->len - at == len && !memcmp(w->data + at, w->data + first, len)) {
            w->len = at;
            put_int(w, AS_BEFORE);
        } else {
            first = at;
            len = w->len - at;
        }
        put_slots(w, i);
    }
}

/* ---- everything else ------------------------------------------------------------------- */

static void put_barriers(writer *w)
{
    const tcc_protocol *p = w->p;
    for (unsigned b = 0; b < w->s->n_barriers && !w->is_free; b++) {
        const tcc_pbarrier *bar = &w->s->barriers[b];
        if (!tcc_p_is_followed_barrier(p, b))
            continue;
        bool odd = bar->odd ^ (w->lap > 0 && tcc_p_is_flipped_barrier(p, bar->address));
        const int64_t words[] = {bar->address,
                                 (int64_t)bar->init_lane,
                                 pair_of(bar->expected, bar->pending),
                                 bar->bytes,
                                 bar->issued,
                                 bar->init_warp | (bar->phase % 2 != odd) << 8 | (int64_t)(bar->fence_clock > 0) << 16 |
                                     (int64_t)(bar->phase > 0) << 17 | (int64_t)(p->ctas > 1 && bar->last_copy) << 18};
        put(w, words, sizeof words);
        put_clock(w, &w->columns[bar->init_warp], bar->init_clock);
        put_clock(w, &w->columns[bar->init_warp], bar->fence_clock);
        put_clock(w, &w->columns[tcc_p_barrier_actor(p, b)], bar->last_copy);
        put_clock(w, &w->columns[tcc_p_barrier_actor(p, b)], bar->last_afar);
        const tcc_pwait *waits = tcc_p_wait(p, w->s, b, 0);
        uint16_t ranks[TCC_P_WARPS] = {0};
        for (unsigned i = 0; i < p->n_warps; i++) {
            uint32_t clock = waits[i].phase == bar->phase ? current_wait(w, b, i) : 0;
            if (clock) /* which is remembered: its rank is none of 0 */
                ranks[i] = rank_of(&w->columns[p->n_actors + i], clock);
        }
        put(w, ranks, p->n_warps * sizeof *ranks);
    }
    for (unsigned n = 0; n < p->n_named; n++) {
        put_int(w, w->s->named[n].threads);
        put_int(w, w->s->named[n].arrived);
    }
}

static void put_groups(writer *w)
{
    const tcc_protocol *p = w->p;
    uint32_t most, all;
    for (unsigned i = 0; i < p->n_warps; i++) {
        put_int(w, (int64_t)(intptr_t)w->s->resizes[i / TCC_WARPGROUP_WARPS].op);
        put_int(w, resize_clock(w->s, i) > 0);
        put_clock(w, &w->columns[p->n_actors + i], resize_clock(w->s, i));
    }
    for (unsigned g = 0; g < p->n_groups; g++) {
        uint32_t from = tcc_p_least_waited(p, w->s, g, &most, &all);
        for (uint32_t n = from + 1; n <= most; n++) {
            const tcc_pgroup *group = &w->s->groups[g * TCC_P_GROUPS + n % TCC_P_GROUPS];
            /* What it is of is compared when a warp commits it. */
            put_int(w, group->number != n ? -1 : n > all ? (int64_t)group->mmas : 0);
        }
    }
}

/* Which lanes accessed a place matters as long as not all of their warp know of it. */
static uint32_t print_of(const writer *w, unsigned actor, uint32_t clock, uint32_t print)
{
    bool own = actor < w->p->n_warps && !w->p->amd;
    return own && w->s->warps[actor].synced < clock ? print : 0;
}

/* Neighbours are most often alike. */
static bool are_alike(const writer *w, const tcc_patom *a, const tcc_patom *b)
{
    return are_as_old(a, b) && (a->print == b->print || a->mark == TCC_P_NEVER || !print_of(w, a->writer, a->clock, 1));
}

static void put_atom(writer *w, const tcc_patom *a)
{
    const uint16_t end = UINT16_MAX;
    bool past = a->mark == TCC_P_BARRIER || (a->mark != TCC_P_NEVER && is_past(w, a->writer, a->clock));
    const uint16_t head[2] = {a->mark, past ? end : a->writer};
    put(w, head, sizeof head);
    if (a->mark != TCC_P_NEVER && !past) {
        uint32_t print = print_of(w, a->writer, a->clock, a->print);
        put_clock(w, &w->columns[a->writer], a->clock);
        put(w, &print, sizeof print);
    }
    for (uint32_t i = a->readers; i; i = w->p->readers.data[i].next) {
        const struct tcc_preader *r = &w->p->readers.data[i];
        uint16_t actor = (uint16_t)r->actor;
        if (is_past(w, actor, r->clock))
            continue;
        uint32_t print = print_of(w, actor, r->clock, r->print);
        put(w, &actor, sizeof actor);
        put_clock(w, &w->columns[actor], r->clock);
        put(w, &print, sizeof print);
    }
    put(w, &end, sizeof end);
}

/* Of neighbours that are written alike the first one, and behind it how many they are. */
static void put_atoms(writer *w)
{
    size_t first = 0, len = 0;
    uint32_t n = 0;
    for (unsigned i = 0; i < w->s->n_atoms; i++) {
        const tcc_patom *a = &w->s->atoms[i];
        bool alike = i && are_alike(w, a, a - 1);
        size_t at = w->len;
        if (!alike) {
            put_atom(w, a);
            alike = w->len - at == len && !memcmp(w->data + at, w->data + first, len);
            if (alike)
                w->len = at;
        }
        if (!alike) {
            first = at;
            len = w->len - at;
            n = 0;
            put(w, &n, sizeof n);
        }
        n++;
        memcpy(w->data + first + len, &n, sizeof n);
    }
}

/* Of a calm state those that are not free, by number. There may be more atoms than in a state seen before: what was
 * split off then is free. */
static void put_dirty_atoms(writer *w)
{
    for (uint32_t i = 0; i < w->s->n_atoms; i++) {
        if (w->is_free[i])
            continue;
        put(w, &i, sizeof i);
        put_atom(w, &w->s->atoms[i]);
    }
}

static void put_words(writer *w)
{
    put_int(w, w->s->n_words);
    for (unsigned i = 0; i < w->s->n_words; i++) {
        const tcc_pword *word = &w->s->words[i];
        put_int(w, word->address);
        put_int(w, word->value.v);
        put_int(w, word->value.delta - w->drawn_base);
    }
}

static void put_globals(writer *w)
{
    put_int(w, w->s->n_globals);
    for (unsigned i = 0; i < w->s->n_globals; i++) {
        const tcc_pglobal *g = &w->s->globals[i];
        put(w, &g->by, sizeof g->by);
        put_pair(w, g->actor, g->warp);
        put_pair(w, g->rank, g->passed | (unsigned)g->pending << 1);
        put_int(w, (int64_t)g->lanes);
        put_clock(w, &w->columns[g->actor], g->clock);
        put(w, g->at, g->rank * sizeof *g->at);
    }
}

static void put_reaches(writer *w)
{
    for (unsigned i = 0; w->p->reaches && i < w->p->ctas * w->p->n_warps; i++)
        put_clock(w, &w->columns[i % w->p->n_warps], w->s->reaches[i]);
}

void tcc_p_normal_create(tcc_protocol *p)
{
    p->columns = TCC_NEW_ARRAY(p->scratch, column, p->n_actors + p->n_steps + p->n_warps);
    p->common = TCC_NEW_ARRAY(p->scratch, uint32_t, p->stride);
    for (unsigned i = 0; i < 2; i++)
        p->rows[i] = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, p->n_slots + TCC_P_BLOCK);
    tcc_p_covers_create(p);
}

size_t tcc_p_normal(const tcc_protocol *p, const tcc_pstate *s, const bool *is_free, uint8_t **buffer, size_t *cap)
{
    writer w = {.p = p, .s = s, .is_free = is_free, .data = *buffer, .cap = *cap};
    w.columns = p->columns;
    w.common = p->common;
    find_clocks(&w);
    tcc_p_sums_find(p, s, w.base_at);
    w.drawn_base = tcc_p_drawn_base(p, s, w.base_at);
    w.lap = is_free ? -1 : tcc_p_lap(p, s);
    put_int(&w, s->n_records | (int64_t)s->n_barriers << 16 | (int64_t)(is_free ? 0 : s->n_atoms) << 32);
    for (unsigned c = 0; c < p->ctas; c++)
        put_int(&w, s->free_registers[c]);
    put_pair(&w, s->passed - s->begun, s->has_begun | (is_free ? 2u : 0));
    put_int(&w, s->n_counts);
    for (unsigned c = 0; c < s->n_counts; c++) {
        put_int(&w, s->counts[c].symbol);
        put_int(&w, s->counts[c].least);
        put_int(&w, s->counts[c].most);
    }
    for (unsigned r = 0; r < s->n_records; r++)
        put_record(&w, r);
    put_warps(&w);
    for (unsigned i = p->n_followed > 1 ? p->n_followed - 2 : 0; i < p->n_followed; i++)
        tcc_p_copy_slots(&s->warps[i], p->rows[i % 2], NULL);
    put_barriers(&w);
    put_groups(&w);
    (is_free ? put_dirty_atoms : put_atoms)(&w);
    put_globals(&w);
    put_reaches(&w);
    put_words(&w);
    tcc_p_put_clocks(&w);
    *buffer = w.data;
    *cap = w.cap;
    return w.len;
}

/* lanes: what lanes of a warp know apart from the others, as interp/lanes.c has it.
 *
 * A part of a warp is an entity of its own. What it knows of its own warp is not in its clocks:
 * `synced` of the part and of the warp, of accesses; `in_step` of the warp, of its steps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

unsigned tcc_p_max_parts(const tcc_protocol *p)
{
    return p->amd ? 0 : TCC_P_PARTS * p->n_followed;
}

static unsigned entity_of(const tcc_protocol *p, unsigned part)
{
    return p->n_entities + part;
}

/* The part that has all of these lanes; -1 when there is none. */
static int part_of(const tcc_pstate *s, unsigned warp, tcc_lane_mask lanes)
{
    for (unsigned i = 0; i < s->n_parts; i++)
        if (s->parts[i].warp == warp && !(lanes & ~s->parts[i].lanes))
            return (int)i;
    return -1;
}

static bool has_parts(const tcc_pstate *s, unsigned warp)
{
    for (unsigned i = 0; i < s->n_parts; i++)
        if (s->parts[i].warp == warp)
            return true;
    return false;
}

unsigned tcc_p_entity(const tcc_protocol *p, const tcc_pstate *s, unsigned warp,
                      tcc_lane_mask lanes)
{
    int part = part_of(s, warp, lanes);
    return part < 0 ? warp : entity_of(p, (unsigned)part);
}

uint32_t tcc_p_synced(const tcc_pstate *s, unsigned warp, tcc_lane_mask lanes)
{
    int part = part_of(s, warp, lanes);
    return part < 0 ? s->warps[warp].synced : s->parts[part].synced;
}

bool tcc_p_knows(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, tcc_lane_mask lanes,
                 unsigned of, tcc_lane_mask of_lanes, uint32_t clock)
{
    if (of != warp)
        return tcc_p_clocks(p, s, tcc_p_entity(p, s, warp, lanes))[of] >= clock;
    return lanes == of_lanes || tcc_p_synced(s, warp, lanes) >= clock;
}

uint32_t tcc_p_own_fence(const tcc_protocol *p, const tcc_pstate *s, unsigned warp,
                         tcc_lane_mask lanes)
{
    const tcc_pwarp *w = &s->warps[warp];
    return w->fencing & ~lanes ? w->fenced : tcc_p_fenced(p, s, warp)[warp];
}

/* ---- parts ----------------------------------------------------------------------------- */

static size_t clock_bytes(const tcc_protocol *p)
{
    return p->stride * sizeof(uint32_t);
}

static bool add_part(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op,
                     tcc_lane_mask lanes, uint32_t synced, unsigned like)
{
    if (s->n_parts == tcc_p_max_parts(p))
        return tcc_p_unsupported(p, op, "lanes of a warp know too many different things"), false;
    memcpy(tcc_p_seen(p, s, entity_of(p, s->n_parts)), tcc_p_seen(p, s, like), clock_bytes(p));
    s->parts[s->n_parts++] = (tcc_ppart){.warp = warp, .lanes = lanes, .synced = synced};
    return true;
}

static void drop_part(tcc_protocol *p, tcc_pstate *s, unsigned part)
{
    s->n_parts--;
    s->parts[part] = s->parts[s->n_parts];
    memmove(tcc_p_seen(p, s, entity_of(p, part)), tcc_p_seen(p, s, entity_of(p, s->n_parts)),
            clock_bytes(p));
}

/* Makes parts of which each has all or none of the lanes. */
static bool divide(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op,
                   tcc_lane_mask lanes)
{
    tcc_lane_mask rest = lanes;
    for (unsigned i = 0, n = s->n_parts; i < n; i++) {
        tcc_ppart *part = &s->parts[i];
        tcc_lane_mask both = part->warp == warp ? part->lanes & lanes : 0;
        rest &= ~both;
        if (!both || both == part->lanes)
            continue;
        part->lanes &= ~both;
        if (!add_part(p, s, warp, op, both, part->synced, entity_of(p, i)))
            return false;
    }
    return !rest || add_part(p, s, warp, op, rest, s->warps[warp].synced, warp);
}

/* Parts that know no more than all lanes do are none. */
static void unite(tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    for (unsigned i = s->n_parts; i-- > 0;) {
        if (s->parts[i].warp != warp)
            continue;
        unsigned e = entity_of(p, i);
        tcc_p_seen(p, s, e)[warp] = tcc_p_seen(p, s, warp)[warp];
        tcc_p_fenced(p, s, e)[warp] = tcc_p_fenced(p, s, warp)[warp];
        tcc_p_passed(p, s, e)[warp] = tcc_p_passed(p, s, warp)[warp];
        if (s->parts[i].synced == s->warps[warp].synced &&
            !memcmp(tcc_p_seen(p, s, e), tcc_p_seen(p, s, warp), clock_bytes(p)))
            drop_part(p, s, i);
    }
}

bool tcc_p_lanes_change(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op,
                        tcc_lane_mask lanes, tcc_p_change *change, const void *data)
{
    if (lanes == tcc_p_all_lanes(p))
        change(p, s, warp, warp, &s->warps[warp].synced, data);
    else if (!divide(p, s, warp, op, lanes))
        return false;
    for (unsigned i = 0; i < s->n_parts; i++)
        if (s->parts[i].warp == warp && !(s->parts[i].lanes & ~lanes))
            change(p, s, warp, entity_of(p, i), &s->parts[i].synced, data);
    if (s->n_parts)
        unite(p, s, warp);
    return true;
}

/* ---- learning and telling -------------------------------------------------------------- */

static void join(tcc_protocol *p, tcc_pstate *s, unsigned warp, unsigned entity, uint32_t *synced,
                 const void *data)
{
    unsigned from = *(const unsigned *)data;
    tcc_p_join(p, s, entity, from);
    if (*synced < tcc_p_seen(p, s, from)[warp])
        *synced = tcc_p_seen(p, s, from)[warp];
}

bool tcc_p_learn(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op, unsigned from)
{
    tcc_pwarp *w = &s->warps[warp];
    if (w->apart && w->mask == tcc_p_all_lanes(p) && w->in_step < tcc_p_passed(p, s, from)[warp])
        w->in_step = tcc_p_passed(p, s, from)[warp];
    return tcc_p_lanes_change(p, s, warp, op, w->mask, join, &from);
}

typedef struct knowledge {
    unsigned actor;
    uint32_t clock;
} knowledge;

static void end_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, unsigned entity, uint32_t *synced,
                   const void *data)
{
    const knowledge *k = data;
    (void)warp, (void)synced;
    if (tcc_p_seen(p, s, entity)[k->actor] < k->clock)
        tcc_p_seen(p, s, entity)[k->actor] = k->clock;
}

bool tcc_p_learn_end(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op,
                     tcc_lane_mask lanes, unsigned actor, uint32_t clock)
{
    return tcc_p_lanes_change(p, s, warp, op, lanes, end_of, &(knowledge){actor, clock});
}

void tcc_p_tell(tcc_protocol *p, tcc_pstate *s, unsigned warp, tcc_lane_mask lanes, unsigned to)
{
    const tcc_pwarp *w = &s->warps[warp];
    uint32_t *own[] = {&tcc_p_seen(p, s, to)[warp], &tcc_p_fenced(p, s, to)[warp],
                       &tcc_p_passed(p, s, to)[warp]};
    uint32_t told[] = {*own[0], *own[1], *own[2]}, clock = 0;
    tcc_lane_mask rest = lanes;
    for (unsigned i = 0; i < s->n_parts; i++) {
        const tcc_ppart *part = &s->parts[i];
        if (part->warp != warp || !(part->lanes & lanes))
            continue;
        tcc_p_join(p, s, to, entity_of(p, i));
        clock = part->synced > clock ? part->synced : clock;
        rest &= ~part->lanes;
    }
    if (rest) {
        tcc_p_join(p, s, to, warp);
        clock = w->synced > clock ? w->synced : clock;
    }
    if (!(w->unsynced & ~lanes))
        clock = tcc_p_seen(p, s, warp)[warp];
    uint32_t fenced = tcc_p_own_fence(p, s, warp, lanes);
    uint32_t tells[] = {clock, fenced < clock ? fenced : clock,
                        w->apart & ~lanes ? w->in_step : tcc_p_passed(p, s, warp)[warp]};
    for (int i = 0; i < 3; i++)
        *own[i] = tells[i] > told[i] ? tells[i] : told[i];
}

void tcc_p_step_together(tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    tcc_pwarp *w = &s->warps[warp];
    if (!w->apart && !has_parts(s, warp))
        return;
    uint32_t *passed = tcc_p_passed(p, s, warp), own = passed[warp];
    for (unsigned i = 0; i < s->n_parts; i++)
        for (unsigned v = 0; s->parts[i].warp == warp && v < p->n_steps; v++) {
            uint32_t of_part = tcc_p_passed(p, s, entity_of(p, i))[v];
            passed[v] = of_part > passed[v] ? of_part : passed[v];
        }
    for (unsigned i = 0; i < s->n_parts; i++)
        if (s->parts[i].warp == warp)
            memcpy(tcc_p_passed(p, s, entity_of(p, i)), passed, p->n_steps * sizeof *passed);
    passed[warp] = own;
    w->apart = 0;
}

void tcc_p_sync_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    tcc_pwarp *w = &s->warps[warp];
    uint32_t clock = tcc_p_seen(p, s, warp)[warp];
    for (unsigned i = s->n_parts; i-- > 0;)
        if (s->parts[i].warp == warp) {
            tcc_p_join(p, s, warp, entity_of(p, i));
            drop_part(p, s, i);
        }
    tcc_p_seen(p, s, warp)[warp] = w->synced = clock;
    w->unsynced = w->fencing = 0;
    w->fenced = tcc_p_fenced(p, s, warp)[warp];
    w->met_groups = p->groups ? tcc_p_seen(p, s, warp)[tcc_p_bulk_actor(p, warp)] : 0;
    tcc_p_step_together(p, s, warp);
    tcc_p_tick(p, s, warp);
}

tcc_presult tcc_p_nvvm_warp_sync(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    tcc_p_sync_lanes(p, s, warp);
    return TCC_P_NEXT;
}

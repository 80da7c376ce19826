/* memory: shared memory, in atoms: sets of bytes that every access takes all or none of.
 *
 * There are few: a stage is written by some boxes and read in some slices. They are found on the
 * way; an access that takes a part of an atom splits it. An atom knows who wrote it last and who
 * has read it since, as memory.c's marks do, and the rules are the same.
 *
 * Who has read is a list that states share: a list never changes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

/* ---- readers --------------------------------------------------------------------------------- */

static uint32_t add_reader(tcc_protocol *p, uint32_t list, uint32_t actor, uint32_t clock,
                           const tcc_op *by, uint32_t print)
{
    uint32_t rest = 0;
    for (uint32_t r = list; r; r = p->readers.data[r].next)
        if (p->readers.data[r].actor == actor && p->readers.data[r].print == print &&
            p->readers.data[r].clock >= clock)
            return list;
    bool found = false;
    for (uint32_t r = list; r; r = p->readers.data[r].next)
        found |= p->readers.data[r].actor == actor && p->readers.data[r].print == print;
    if (!found) {
        rest = list;
    } else {
        for (uint32_t r = list; r; r = p->readers.data[r].next)
            if (p->readers.data[r].actor != actor || p->readers.data[r].print != print) {
                struct tcc_preader kept = p->readers.data[r];
                kept.next = rest;
                TCC_PUSH(p->scratch, &p->readers, kept);
                rest = (uint32_t)(p->readers.len - 1);
            }
    }
    TCC_PUSH(p->scratch, &p->readers, (struct tcc_preader){actor, clock, rest, print, by});
    return (uint32_t)(p->readers.len - 1);
}

/* ---- accesses -------------------------------------------------------------------------- */

const char *tcc_p_actor_name(const tcc_protocol *p, unsigned actor)
{
    unsigned mmas = tcc_p_mma_actor(p, 0);
    if (actor < p->n_warps)
        return tcc_arena_printf(p->scratch, "warp %u", actor);
    if (actor < mmas && p->amd)
        return tcc_arena_printf(p->scratch, "wave %u", actor - p->n_warps);
    if (actor < mmas && p->groups)
        return tcc_arena_printf(p->scratch, "a copy of warp %u", actor - p->n_warps);
    if (actor < mmas)
        return tcc_arena_printf(p->scratch, "a copy to global memory of warp %u",
                                actor % p->n_warps);
    unsigned first = (actor - mmas) * TCC_WARPGROUP_WARPS;
    if (actor < mmas + p->n_groups)
        return tcc_arena_printf(p->scratch, "an MMA of warps %u-%u", first,
                                first + TCC_WARPGROUP_WARPS - 1);
    return "a copy from global memory";
}

/* The first byte of an atom. */
static int64_t byte_of(const tcc_protocol *p, uint16_t atom)
{
    size_t g = 0;
    while (g < p->n_granules && p->atom_of[g] != atom)
        g++;
    return (int64_t)g * p->granule & (TCC_P_WINDOW - 1);
}

static bool wrong(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by,
                  uint16_t atom, const char *why)
{
    tcc_p_wrong(p, s, by->warp, in, "%s %s %s at byte %lld %s", tcc_op_info_get(in->op->code)->name,
                by->write ? "writes" : "reads", tcc_p_smem_word(p), (long long)byte_of(p, atom),
                why);
    return false;
}

/* A warp's ordinary access behind which it ran no proxy fence. */
static bool unfenced(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by,
                     uint16_t atom, const char *access, unsigned warp)
{
    return wrong(p, s, in, by, atom,
                 tcc_arena_printf(p->scratch,
                                  "after an ordinary %s, with no fence.proxy.async by warp %u "
                                  "between",
                                  access, warp));
}

/* Whether an access comes after another. A lane's own are done in order; on AMD a wave's. */
static bool comes_after(tcc_protocol *p, const tcc_pstate *s, const tcc_paccess *by, uint32_t print,
                        unsigned actor, uint32_t clock, uint32_t other)
{
    if (p->amd && !by->async && actor == by->actor)
        return true;
    if (p->groups && actor == tcc_p_bulk_actor(p, by->warp) && s->warps[by->warp].met_groups < clock)
        return false; /* of another lane, perhaps */
    if (actor != by->warp || p->amd)
        return tcc_p_clocks(p, s, tcc_p_entity(p, s, by->warp, by->lanes))[actor] >= clock;
    if (tcc_p_synced(s, by->warp, by->lanes) >= clock)
        return true;
    bool same = tcc_p_are_of_same_lanes(p, print, other), some = by->lanes != tcc_p_all_lanes(p);
    if (same && (some || p->footprints.data[other].n_lanes < p->n_lanes))
        tcc_p_all_lanes_differ(p, by->warp);
    return same;
}

/* Up to which clock of an actor accesses have a proxy fence behind them. */
static uint32_t fenced_of(const tcc_protocol *p, const tcc_pstate *s, const tcc_paccess *by,
                          unsigned actor)
{
    return actor >= p->n_warps ? 0 /* a word from afar */
           : actor == by->warp ? tcc_p_own_fence(p, s, by->warp, by->lanes)
                             : tcc_p_fenced(p, s, tcc_p_entity(p, s, by->warp, by->lanes))[actor];
}

static const char *other_name(const tcc_protocol *p, const tcc_paccess *by, unsigned actor)
{
    return actor == by->warp && !p->amd ? "another lane of it" : tcc_p_actor_name(p, actor);
}

/* "stage 1 of 'A'": what a copy from global memory brought or, as `op` does, brings; NULL when none
 * does. Stages have their mbarriers in order, and are filled so at first. */
static const char *stage_of(const tcc_protocol *p, const tcc_pstate *s, const tcc_op *op,
                            unsigned actor)
{
    unsigned first = tcc_p_barrier_actor(p, 0), stage = 0;
    if (!op || !tcc_op_starts(op->code, TCC_BY_MBARRIER) || actor < first ||
        actor >= first + s->n_barriers || op->operands[1]->def)
        return NULL;
    const tcc_pbarrier *own = &s->barriers[actor - first];
    for (unsigned b = 0; b < s->n_barriers; b++)
        stage += s->barriers[b].last_copy && s->barriers[b].address < own->address;
    tcc_attr params = tcc_attr_list(&p->f->attrs, "params");
    size_t i = 0;
    while (i < p->f->body->n_args && p->f->body->args[i] != op->operands[1])
        i++;
    if (i >= params.list.n || params.list.items[i].list.n < 2)
        return NULL;
    return tcc_arena_printf(p->scratch, "stage %u of '%s'", stage,
                            params.list.items[i].list.items[1].s);
}

/* Keeps what the report is to say of the access that was there before. */
static void keep_other(tcc_protocol *p, const tcc_pstate *s, const tcc_pinst *in,
                       const tcc_paccess *by, const tcc_patom *a, const tcc_op *other, bool wrote)
{
    const char *there = stage_of(p, s, a->by, a->writer);
    const char *brings = stage_of(p, s, in->op, by->actor);
    p->other.op = other;
    p->other.what =
        tcc_arena_printf(p->scratch, "%s %s it here%s%s%s%s", tcc_op_info_get(other->code)->name,
                         wrote ? "writes" : "reads", there ? ": it is " : "", there ? there : "",
                         brings ? ", to be overwritten with " : "", brings ? brings : "");
}

static bool in_order(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by,
                     uint32_t print, uint16_t atom)
{
    const tcc_patom *a = &s->atoms[atom];
    if (a->mark == TCC_P_BARRIER)
        return wrong(p, s, in, by, atom, "where an mbarrier is");
    if (a->mark != TCC_P_NEVER && !comes_after(p, s, by, print, a->writer, a->clock, a->print)) {
        keep_other(p, s, in, by, a, a->by, true);
        return wrong(p, s, in, by, atom,
                     tcc_arena_printf(p->scratch, "that %s may still be writing",
                                      other_name(p, by, a->writer)));
    }
    if (a->mark == TCC_P_ORDINARY && by->async && fenced_of(p, s, by, a->writer) < a->clock) {
        keep_other(p, s, in, by, a, a->by, true);
        return unfenced(p, s, in, by, atom, "write", a->writer);
    }
    for (uint32_t r = by->write ? a->readers : 0; r; r = p->readers.data[r].next) {
        const struct tcc_preader reader = p->readers.data[r];
        if (!comes_after(p, s, by, print, reader.actor, reader.clock, reader.print)) {
            keep_other(p, s, in, by, a, reader.by, false);
            return wrong(p, s, in, by, atom,
                         tcc_arena_printf(p->scratch, "that %s may still be reading",
                                          other_name(p, by, reader.actor)));
        }
        if (by->async && reader.actor < p->n_warps &&
            fenced_of(p, s, by, reader.actor) < reader.clock) {
            keep_other(p, s, in, by, a, reader.by, false);
            return unfenced(p, s, in, by, atom, "read", reader.actor);
        }
    }
    return true;
}

/* Whether anything was ever written there. An instruction may take more than it needs, so that a
 * part may be missing. */
bool tcc_p_is_written(const tcc_protocol *p, const tcc_pstate *s, uint64_t footprint)
{
    const struct tcc_pfootprint *f = &p->footprints.data[footprint];
    for (size_t i = 0; i < f->atoms.len; i++)
        if (s->atoms[f->atoms.data[i]].mark != TCC_P_NEVER)
            return true;
    return false;
}

static const uint16_t *unwritten_atom(const tcc_protocol *p, const tcc_pstate *s,
                                      uint64_t footprint)
{
    const struct tcc_pfootprint *f = &p->footprints.data[footprint];
    for (size_t i = 0; i < f->atoms.len; i++)
        if (s->atoms[f->atoms.data[i]].mark == TCC_P_NEVER)
            return &f->atoms.data[i];
    return NULL;
}

bool tcc_p_is_all_written(const tcc_protocol *p, const tcc_pstate *s, uint64_t footprint)
{
    return !unwritten_atom(p, s, footprint);
}

int64_t tcc_p_unwritten_byte(const tcc_protocol *p, const tcc_pstate *s, uint64_t footprint)
{
    const uint16_t *atom = unwritten_atom(p, s, footprint);
    return atom ? byte_of(p, *atom) : -1;
}

bool tcc_p_access(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by,
                  uint64_t footprint)
{
    const struct tcc_pfootprint *f = &p->footprints.data[footprint];
    const uint32_t *seen = tcc_p_clocks(p, s, tcc_p_entity(p, s, by->warp, by->lanes));
    uint32_t synced = tcc_p_synced(s, by->warp, by->lanes);
    if (by->write && s->n_words)
        tcc_p_words_overwritten(p, s, f);
    uint32_t before = 0, after = 0, print = by->actor == by->warp ? (uint32_t)footprint : 0;
    unsigned cta = tcc_p_cta(p, by->warp);
    if (in->stays && f->rotates && p->rotation && !(s->settled >> cta & 1) && !tcc_p_rotation_ends(p, s, cta))
        return false;
    if (!by->write && !by->unwritten && !tcc_p_is_written(p, s, footprint))
        return wrong(p, s, in, by, f->atoms.data[0], "before anything was written there");
    for (size_t i = 0; i < f->atoms.len; i++) {
        tcc_patom *a = &s->atoms[f->atoms.data[i]];
        bool written = a->mark == TCC_P_ASYNC ? seen[a->writer] >= a->clock
                                              : a->mark == TCC_P_ORDINARY && !by->async && a->writer == by->warp &&
                                                    synced >= a->clock;
        bool plain = written && !(by->write && a->readers);
        if (!plain && !in_order(p, s, in, by, print, f->atoms.data[i]))
            return false;
        if (by->write) {
            *a = (tcc_patom){.writer = (uint16_t)by->actor,
                             .clock = by->clock,
                             .print = print,
                             .mark = (uint8_t)by->mark,
                             .by = in->op};
        } else {
            if (!after || a->readers != before) {
                before = a->readers;
                after = add_reader(p, before, by->actor, by->clock, in->op, print);
            }
            a->readers = after;
        }
    }
    return true;
}

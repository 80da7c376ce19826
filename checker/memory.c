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
#include "ir/fragment.h"

enum { BITS = 64 /* of a word: granules that are taken */ };

/* Makes room for twice as many atoms as there are: each can be split once. */
static void reserve_parts(tcc_protocol *p)
{
    size_t n = 2 * p->atom_infos.len;
    if (n <= p->room)
        return;
    p->room = 2 * n;
    p->taken = TCC_NEW_ARRAY(p->scratch, uint32_t, p->room);
    p->part = TCC_NEW_ARRAY(p->scratch, uint16_t, p->room);
    p->touched = TCC_NEW_ARRAY(p->scratch, uint16_t, p->room);
    p->is_free = TCC_NEW_ARRAY(p->scratch, bool, p->room);
}

void tcc_p_memory_create(tcc_protocol *p)
{
    p->n_granules = (size_t)((tcc_p_followed_bytes(p) + p->granule - 1) / p->granule);
    p->atom_of = TCC_NEW_ARRAY(p->scratch, uint16_t, p->n_granules + 1);
    p->granules = TCC_NEW_ARRAY(p->scratch, uint64_t, p->n_granules / BITS + 1);
    TCC_PUSH(p->scratch, &p->atom_infos,
             (struct tcc_patom_info){.granules = (uint32_t)p->n_granules, .ctas = UINT8_MAX});
    TCC_PUSH(p->scratch, &p->footprints, (struct tcc_pfootprint){0});
    TCC_PUSH(p->scratch, &p->readers, (struct tcc_preader){0});
    reserve_parts(p);
}

void tcc_p_memory_reserve(const tcc_protocol *p, tcc_pstate *s, unsigned n_atoms)
{
    enum { FEW = 256 };
    if (n_atoms <= s->room)
        return;
    const tcc_patom *old = s->atoms;
    s->room = n_atoms < FEW ? FEW : 2 * n_atoms;
    s->atoms = TCC_NEW_ARRAY(p->scratch, tcc_patom, s->room);
    if (old)
        memcpy(s->atoms, old, s->n_atoms * sizeof *old);
}

/* ---- footprints -------------------------------------------------------------------------- */

uint64_t *tcc_p_footprint(tcc_protocol *p, const void *key, size_t bytes)
{
    return tcc_ptable_at(p->prints_table, key, bytes);
}

/* The part of an atom that a new footprint takes: the atom itself when it takes all. */
static uint16_t split(tcc_protocol *p, tcc_pstate *s, uint16_t atom, uint32_t taken)
{
    if (p->atom_infos.data[atom].granules == taken)
        return atom;
    uint16_t part = (uint16_t)p->atom_infos.len;
    TCC_PUSH(p->scratch, &p->atom_infos,
             (struct tcc_patom_info){.granules = taken, .parent = atom});
    struct tcc_patom_info *from = &p->atom_infos.data[atom], *to = &p->atom_infos.data[part];
    from->granules -= taken;
    for (size_t i = 0; i < from->footprints.len; i++) {
        uint32_t f = from->footprints.data[i];
        TCC_PUSH(p->scratch, &to->footprints, f);
        TCC_PUSH(p->scratch, &p->footprints.data[f].atoms, part);
    }
    tcc_p_memory_reserve(p, s, part + 1u);
    s->atoms[part] = s->atoms[atom];
    s->n_atoms = part + 1u;
    return part;
}

/* The granule of a byte. There are many ranges, and a shift is faster than a division by a power of two that is not a
 * constant. */
static uint32_t granule_at(const tcc_protocol *p, int64_t byte)
{
    return (uint32_t)byte >> __builtin_ctz((uint32_t)p->granule);
}

static uint32_t granule_end(const tcc_protocol *p, const tcc_prange *range)
{
    return granule_at(p, range->end + p->granule - 1);
}

/* ---- granules, a bit each ------------------------------------------------------------------ */

/* Words of bits in which there are some. */
typedef struct granule_words {
    uint32_t first, end;
} granule_words;

/* Notes the granules of ranges, which may overlap. */
static granule_words take_granules(const tcc_protocol *p, const tcc_prange *ranges, size_t n)
{
    granule_words w = {UINT32_MAX, 0};
    for (size_t r = 0; r < n; r++) {
        uint32_t g = granule_at(p, ranges[r].first), end = granule_end(p, &ranges[r]), last = (end - 1) / BITS;
        if (g >= end)
            continue;
        assert(end <= p->n_granules);
        w.first = g / BITS < w.first ? g / BITS : w.first;
        w.end = last + 1 > w.end ? last + 1 : w.end;
        while (g < end) {
            uint32_t next = (g / BITS + 1) * BITS, to = next < end ? next : end;
            p->granules[g / BITS] |= UINT64_MAX >> (BITS - (to - g)) << g % BITS;
            g = to;
        }
    }
    return w;
}

/* Whether all granules of a word are of one atom. */
static bool are_of_one_atom(const uint16_t *atoms)
{
    uint16_t differs = 0;
    for (unsigned i = 0; i < BITS; i++)
        differs |= atoms[i] ^ atoms[0];
    return !differs;
}

/* The next granules in a word of bits that are of one atom: removes them. Most often they are all. */
static uint32_t next_run(const tcc_protocol *p, uint64_t *bits, uint32_t word, uint32_t *first)
{
    *first = word * BITS;
    if (*bits == UINT64_MAX && are_of_one_atom(p->atom_of + *first)) {
        *bits = 0;
        return BITS;
    }
    uint32_t g = word * BITS + (uint32_t)__builtin_ctzll(*bits), end = g + 1;
    uint64_t rest = *bits & (*bits - 1);
    while (end % BITS && rest >> end % BITS & 1 && p->atom_of[end] == p->atom_of[g])
        rest &= ~(UINT64_C(1) << end++ % BITS);
    *bits = rest;
    *first = g;
    return end - g;
}

/* Counts the granules of each atom that are taken; gives how many atoms there are. */
static size_t count_taken(const tcc_protocol *p, granule_words w)
{
    size_t n_touched = 0;
    uint32_t g;
    for (uint32_t i = w.first; i < w.end; i++)
        for (uint64_t bits = p->granules[i]; bits;) {
            uint32_t run = next_run(p, &bits, i, &g);
            uint16_t a = p->atom_of[g];
            if (!p->taken[a])
                p->touched[n_touched++] = a;
            p->taken[a] += run;
        }
    return n_touched;
}

/* Gives n granules from g on to a part; of how many a rotation makes others. */
static uint32_t give(const tcc_protocol *p, const uint32_t *rotated, uint32_t g, uint32_t n, uint16_t part)
{
    uint32_t moving = 0;
    if (n == BITS && rotated) { /* of constant length these are vectors */
        for (uint32_t i = 0; i < BITS; i++)
            p->atom_of[g + i] = part;
        for (uint32_t i = 0; i < BITS; i++)
            moving += rotated[g + i] != g + i;
        return moving;
    }
    for (uint32_t i = g; i < g + n; i++) {
        p->atom_of[i] = part;
        moving += rotated && rotated[i] != i;
    }
    return moving;
}

/* Gives the granules that are taken to the parts of their atoms, and lets go of them; whether a rotation makes others
 * of them. */
static bool give_to_parts(const tcc_protocol *p, granule_words w)
{
    const uint32_t *rotated = tcc_p_rotated_granules(p);
    bool rotates = false;
    uint32_t g;
    for (uint32_t i = w.first; i < w.end; i++) {
        for (uint64_t bits = p->granules[i]; bits;) {
            uint32_t n = next_run(p, &bits, i, &g), moving;
            struct tcc_patom_info *from = &p->atom_infos.data[p->atom_of[g]], *to;
            uint16_t part = p->part[p->atom_of[g]];
            to = &p->atom_infos.data[part];
            to->ctas |= (uint8_t)(1u << tcc_p_cta_at(g * p->granule));
            moving = give(p, rotated, g, n, part);
            from->moving -= moving;
            to->moving += moving;
            rotates |= moving;
        }
        p->granules[i] = 0;
    }
    return rotates;
}

static bool make_footprint(tcc_protocol *p, tcc_pstate *s, uint64_t *place, const tcc_prange *ranges, size_t n)
{
    uint32_t number = (uint32_t)p->footprints.len;
    reserve_parts(p);
    uint16_t *part = p->part;
    granule_words w = take_granules(p, ranges, n);
    size_t n_touched = count_taken(p, w);
    if (p->atom_infos.len + n_touched > TCC_P_MAX_ATOMS)
        return tcc_p_unsupported(p, NULL, "shared memory is accessed in more than %d ways",
                                 TCC_P_MAX_ATOMS),
               false;
    TCC_PUSH(p->scratch, &p->footprints, (struct tcc_pfootprint){0});
    for (size_t i = 0; i < n_touched; i++) {
        uint16_t a = p->touched[i];
        part[a] = split(p, s, a, p->taken[a]);
        p->taken[a] = 0;
        part[part[a]] = part[a];
        TCC_PUSH(p->scratch, &p->footprints.data[number].atoms, part[a]);
        TCC_PUSH(p->scratch, &p->atom_infos.data[part[a]].footprints, number);
    }
    p->footprints.data[number].rotates = give_to_parts(p, w);
    *place = number;
    return true;
}

/* Takes the same of the other stages, so that there are as many atoms in each from the first on. */
static bool split_stages(tcc_protocol *p, tcc_pstate *s, const tcc_prange *ranges, size_t n)
{
    const uint32_t *rotated = tcc_p_rotated_granules(p);
    TCC_VEC(uint32_t) at = {0};
    for (size_t r = 0; r < n; r++)
        for (uint32_t g = granule_at(p, ranges[r].first), end = granule_end(p, &ranges[r]); g < end; g++)
            TCC_PUSH(p->scratch, &at, g);
    tcc_prange *to = TCC_NEW_ARRAY(p->scratch, tcc_prange, at.len + 1);
    uint32_t first = at.data[0];
    bool made = true, moved = true;
    for (size_t times = 0; made && moved && times < p->max_barriers; times++) {
        size_t n_to = 0;
        moved = false;
        for (size_t i = 0; i < at.len; i++) {
            moved |= rotated[at.data[i]] != at.data[i];
            at.data[i] = rotated[at.data[i]];
            int64_t byte = at.data[i] * p->granule;
            if (n_to && to[n_to - 1].end == byte)
                to[n_to - 1].end += p->granule;
            else
                to[n_to++] = (tcc_prange){byte, byte + p->granule};
        }
        uint64_t number;
        moved &= at.data[0] != first;
        made = !moved || make_footprint(p, s, &number, to, n_to);
    }
    return made;
}

bool tcc_p_footprint_set(tcc_protocol *p, tcc_pstate *s, uint64_t *place, const tcc_prange *ranges, size_t n)
{
    size_t before = p->atom_infos.len;
    return make_footprint(p, s, place, ranges, n) &&
           (p->atom_infos.len == before || !tcc_p_rotates_tiles(p) || !p->footprints.data[*place].rotates || split_stages(p, s, ranges, n));
}

void tcc_p_memory_update(const tcc_protocol *p, tcc_pstate *s)
{
    tcc_p_memory_reserve(p, s, (unsigned)p->atom_infos.len);
    for (; s->n_atoms < p->atom_infos.len; s->n_atoms++)
        s->atoms[s->n_atoms] = s->atoms[p->atom_infos.data[s->n_atoms].parent];
}

bool tcc_p_footprint_of_lanes(tcc_protocol *p, tcc_pstate *s, uint64_t *place,
                              const tcc_plane *lanes, size_t n)
{
    tcc_prange ranges[TCC_MAX_LANES];
    tcc_plane *kept = TCC_NEW_ARRAY(p->scratch, tcc_plane, n + 1);
    for (size_t i = 0; i < n; i++) {
        kept[i] = lanes[i];
        ranges[i] = lanes[i].range;
    }
    if (!tcc_p_footprint_set(p, s, place, ranges, n))
        return false;
    struct tcc_pfootprint *f = &p->footprints.data[*place];
    f->lanes = kept;
    f->n_lanes = n;
    return true;
}

/* Whether no lane takes of one footprint what another takes of the other. */
static bool are_of_same_lanes(tcc_protocol *p, uint32_t a, uint32_t b)
{
    const struct tcc_pfootprint *x = &p->footprints.data[a], *y = &p->footprints.data[b];
    const uint64_t key[] = {5, a, b};
    if (!x->lanes || !y->lanes)
        return false;
    uint64_t *known = tcc_ptable_at(p->memo, key, sizeof key);
    if (*known)
        return *known == 1;
    bool same = true;
    for (size_t i = 0; i < x->n_lanes && same; i++)
        for (size_t k = 0; k < y->n_lanes && same; k++)
            same = x->lanes[i].lane == y->lanes[k].lane ||
                   x->lanes[i].range.first >= y->lanes[k].range.end ||
                   y->lanes[k].range.first >= x->lanes[i].range.end;
    *known = same ? 1 : 2;
    return same;
}

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
    return tcc_p_synced(s, by->warp, by->lanes) >= clock || are_of_same_lanes(p, print, other);
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
                                              : a->mark == TCC_P_ORDINARY && !by->async && a->writer == by->warp && synced >= a->clock;
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

/* Which bytes the lanes of a mask access; false, reported, when that is not known, or not right. further: they have lines
 * of what the first says the address of, so many bytes behind each other; 0: each has its own. */
static bool find_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, const tcc_pvalue *address,
                       int64_t bytes, int64_t align, int64_t further, tcc_lane_mask mask, tcc_plane *lanes, size_t *n)
{
    int64_t offset = tcc_attr_int(&in->op->attrs, "offset", 0), at;
    bool far = tcc_op_does(in->op->code, TCC_CLUSTER);
    *n = 0;
    for (unsigned l = 0; l < p->n_lanes; l++) {
        if (!(mask >> l & 1))
            continue;
        if (!tcc_p_lane(p, address, further ? 0 : l, &at))
            return tcc_p_unsupported(p, in->op, "the address is only known at run time"), false;
        at += offset - TCC_SMEM_BASE + further * l;
        int64_t own = far && tcc_p_cta_at(at) < p->ctas ? at & (TCC_P_WINDOW - 1) : at - tcc_p_window(p, warp);
        if (bytes < 1 || (at & (align - 1)) || own < 0 || own > p->cta_bytes - bytes)
            return tcc_p_wrong(
                       p, s, warp, in,
                       "%s: %lld bytes at byte %lld are not aligned, or not in the %lld of %s",
                       tcc_op_info_get(in->op->code)->name, (long long)bytes, (long long)own,
                       (long long)p->cta_bytes, tcc_p_smem_word(p)),
                   false;
        lanes[(*n)++] = (tcc_plane){l, {at, at + bytes}};
    }
    return true;
}

static int64_t alignment_of(int64_t bytes)
{
    return bytes == 12 ? 16 : bytes; /* three words are aligned as four */
}

static bool access_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, const tcc_pvalue *address,
                         int64_t bytes, bool write, bool together, int64_t align, int64_t further)
{
    tcc_pwarp *w = &s->warps[warp];
    int64_t offset = tcc_attr_int(&in->op->attrs, "offset", 0);
    const int64_t key[] = {together ? 6 : 1, address->kind, address->v, bytes,
                           (int64_t)w->mask, offset, tcc_p_cta(p, warp), further};
    uint64_t *print = tcc_p_footprint(p, key, sizeof key);
    tcc_plane lanes[TCC_MAX_LANES];
    size_t n = 0;
    if (!*print && (!find_lanes(p, s, warp, in, address, bytes, align, further, w->mask, lanes, &n) ||
                    !tcc_p_footprint_of_lanes(p, s, print, lanes, n)))
        return false;
    if (together)
        p->footprints.data[*print].lanes = NULL;
    bool copies = tcc_op_starts(in->op->code, TCC_BY_COPY_GROUP);
    unsigned actor = p->amd || copies ? tcc_p_bulk_actor(p, warp) : warp;
    const tcc_paccess by = {.warp = warp,
                            .actor = actor,
                            .lanes = together ? tcc_p_all_lanes(p) : w->mask,
                            .clock = copies ? w->bulk_groups + 1
                                            : tcc_p_seen(p, s, warp)[actor] + p->amd, /* not waited for */
                            .write = write,
                            .mark = TCC_P_ORDINARY};
    w->accessed |= copies ? 0 : w->mask;
    w->unsynced |= copies ? 0 : by.lanes;
    return tcc_p_access(p, s, in, &by, *print);
}

bool tcc_p_access_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                        const tcc_pvalue *address, int64_t bytes, bool write, bool together)
{
    return access_lanes(p, s, warp, in, address, bytes, write, together, alignment_of(bytes), 0);
}

/* ---- hooks ----------------------------------------------------------------------------- */

/* What a load gives is nothing that is followed, but for an MMA that may add to it. */
static tcc_presult loaded(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    if (in->results[0] != TCC_P_NO_SLOT)
        *tcc_p_slot(p, s, warp, in->results[0]) = (tcc_pvalue){.kind = TCC_P_REGISTERS};
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_ld_shared(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    const tcc_pvalue *at = tcc_p_slot(p, s, warp, in->operands[0]);
    return tcc_p_access_lanes(p, s, warp, in, at, tcc_p_bytes_of(in->op->results[0].type), false,
                              false)
               ? loaded(p, s, warp, in)
               : TCC_P_FAILED;
}

tcc_presult tcc_p_nvvm_st_shared(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    const tcc_pvalue *at = tcc_p_slot(p, s, warp, in->operands[0]);
    return tcc_p_access_lanes(p, s, warp, in, at, tcc_p_bytes_of(in->op->operands[1]->type), true,
                              false)
               ? TCC_P_NEXT
               : TCC_P_FAILED;
}

tcc_presult tcc_p_nvvm_st_shared_cluster(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    if (p->starts_apart)
        return tcc_p_wrong(p, s, warp, in, "%s with no cluster barrier before it: another CTA may not have begun",
                           tcc_op_info_get(in->op->code)->name);
    return tcc_p_nvvm_st_shared(p, s, warp, in);
}

enum { ROW_BYTES = 16, ROWS = 8 }; /* of a matrix */

static bool is_of_matrices(tcc_opcode code)
{
    return code == TCC_OP_nvvm_ldmatrix || code == TCC_OP_nvvm_stmatrix;
}

int64_t tcc_p_lane_bytes(const tcc_op *op)
{
    return is_of_matrices(op->code)                     ? ROW_BYTES
           : tcc_op_starts(op->code, TCC_BY_COPY_GROUP) ? tcc_attr_int(&op->attrs, "bytes", 0)
                                                           : tcc_p_bytes_of(tcc_op_moves(op));
}

/* Eight lanes give the addresses of the rows of each matrix; all take part. */
static tcc_presult move_matrices(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                                 const tcc_type *words, bool write)
{
    tcc_pwarp *w = &s->warps[warp];
    int64_t lanes = ROWS * tcc_type_count(words);
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    w->mask = tcc_p_all_lanes(p) >> (p->n_lanes - lanes);
    const tcc_pvalue *at = tcc_p_slot(p, s, warp, in->operands[0]);
    bool done = tcc_p_access_lanes(p, s, warp, in, at, ROW_BYTES, write, true);
    w->mask = tcc_p_all_lanes(p);
    w->accessed = tcc_p_all_lanes(p);
    return done ? TCC_P_NEXT : TCC_P_FAILED;
}

bool tcc_p_lanes_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, tcc_plane *lanes, size_t *n)
{
    int64_t bytes = tcc_p_lane_bytes(in->op);
    tcc_lane_mask mask = s->warps[warp].mask;
    if (is_of_matrices(in->op->code))
        mask = tcc_p_all_lanes(p) >> (p->n_lanes - ROWS * tcc_type_count(tcc_op_moves(in->op)));
    return find_lanes(p, s, warp, in, tcc_p_slot(p, s, warp, in->operands[0]), bytes, alignment_of(bytes), 0, mask, lanes, n);
}

tcc_presult tcc_p_nvvm_stmatrix(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return move_matrices(p, s, warp, in, in->op->operands[1]->type, true);
}

tcc_presult tcc_p_nvvm_ldmatrix(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_presult r = move_matrices(p, s, warp, in, in->op->results[0].type, false);
    return r == TCC_P_NEXT ? loaded(p, s, warp, in) : r;
}

/* A warp's lanes access lines of a matrix together, aligned as what a lane has of its fragment (PTX ISA, "Matrix Storage
 * for WMMA"). */
static tcc_presult move_fragment(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, int64_t lane_bytes,
                                 bool write)
{
    tcc_scalar elem;
    unsigned lines, elems;
    tcc_mma_sync_lines(in->op, tcc_mma_sync_accessed(in->op, &elem), &lines, &elems); /* verified */
    tcc_pwarp *w = &s->warps[warp];
    int64_t bytes = tcc_scalar_bits(elem) / 8, stride = tcc_attr_int(&in->op->attrs, "stride", 0) * bytes;
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    w->mask = tcc_p_all_lanes(p) >> (p->n_lanes - lines);
    const tcc_pvalue *at = tcc_p_slot(p, s, warp, in->operands[0]);
    bool done = access_lanes(p, s, warp, in, at, elems * bytes, write, true, lane_bytes, stride);
    w->mask = tcc_p_all_lanes(p);
    w->accessed = tcc_p_all_lanes(p);
    return done ? TCC_P_NEXT : TCC_P_FAILED;
}

tcc_presult tcc_p_nvvm_wmma_load(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_presult r = move_fragment(p, s, warp, in, tcc_p_bytes_of(in->op->results[0].type), false);
    return r == TCC_P_NEXT ? loaded(p, s, warp, in) : r;
}

tcc_presult tcc_p_nvvm_wmma_store(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return move_fragment(p, s, warp, in, tcc_p_bytes_of(in->op->operands[1]->type), true);
}

/* footprints: sets of bytes that are accessed together, and the atoms that they consist of.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

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
            if (from == to) { /* it is taken whole */
                rotates |= to->moving > 0;
                continue;
            }
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
           (p->atom_infos.len == before || !tcc_p_rotates_tiles(p) || !p->footprints.data[*place].rotates ||
            split_stages(p, s, ranges, n));
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
bool tcc_p_are_of_same_lanes(tcc_protocol *p, uint32_t a, uint32_t b)
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

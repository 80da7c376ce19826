/* operands: the bytes that MMAs read in shared memory, and that copies write, however they are said.
 *
 * An operand that is transposed has other descriptors than one that is not, and its stages are copied in other boxes.
 * Where all that operands are found in was written, and MMAs, or copies for one mbarrier, have nothing between
 * them, nothing is asked of them but which bytes they access together. For every number that the one counter on which
 * addresses depend may be, that is found here, so that functions which differ in nothing else have one proof (alike.c).
 * A counter is not negative; each number below the threshold is looked at, and behind it those with one remainder
 * together (value.c). Whether a proof asked for more, or came to another number, it notes itself (p->layouts).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/descriptor.h"

enum { MAX_NUMBERS = 128, INVALID = -1, AS_BEFORE = -2, BITS = 64 /* of a word */ };

/* What gives a slot its value: an op; a loop that carries it, of which a remainder is asked; it is a tensor map, whose
 * number is `map`; or none of these. */
typedef struct definition {
    const tcc_pinst *in;
    int64_t modulus, map; /* -1: it is not a map */
    uint32_t slot;
    bool needed, varies; /* by the counter; */
    bool decides;        /* it does not, but what varies depends on it, or it is an address itself */
} definition;

typedef struct finder {
    tcc_protocol *p;
    TCC_VEC(definition) defs; /* in the order of the program */
    uint32_t *at;             /* of each slot, the fixed ones last: 1 + its number there; 0: there is none */
    tcc_pvalue *values;       /* of each definition; */
    uint32_t *once, *each;    /* numbers of those that are needed: computed once for a warp, and for each number */
    size_t n_once, n_each;
    tcc_pvalue *last;         /* values computed once, in the last warp, on which others depend; */
    bool is_first;            /* none was */
    int64_t (*of)[TCC_P_MAX_MMAS], (*other)[TCC_P_MAX_MMAS]; /* descriptors, for each number */
    tcc_ptable *known;        /* ranges of descriptors: 1 + their number in `ranges` */
    TCC_VEC(const tcc_known_bytes *) ranges;
    tcc_prange *chunks;       /* room for those of an operand */
    uint64_t *bits;           /* of a CTA's chunks; all 0 between */
    int64_t n_words;          /* of those */
    bool uneven;              /* not all bytes were whole chunks */
    tcc_pinst *copies[TCC_P_MAX_MMAS];
    uint32_t n_copies;
    uint32_t leaf;            /* the counter; TCC_P_NO_SLOT: none */
    int64_t modulus;          /* by which its remainder is taken */
} finder;

/* ---- what an operand depends on ---------------------------------------------------------- */

static uint32_t *number_at(const finder *d, uint32_t slot)
{
    return &d->at[slot < TCC_P_FIXED ? slot : d->p->n_slots + (slot - TCC_P_FIXED)];
}

static void define(finder *d, uint32_t slot, const tcc_pinst *in, int64_t modulus)
{
    if (slot == TCC_P_NO_SLOT)
        return;
    TCC_PUSH(d->p->scratch, &d->defs, (definition){.in = in, .modulus = modulus, .map = -1, .slot = slot});
    *number_at(d, slot) = (uint32_t)d->defs.len;
}

static void define_all(finder *d, const tcc_pcode *code)
{
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        bool number = in->op->n_results == 1 && !in->op->n_regions;
        for (unsigned r = 0; r < in->op->n_results; r++)
            define(d, in->results[r], number ? in : NULL, 0);
        for (unsigned r = 0; r < in->op->n_regions; r++) {
            for (size_t a = 0; a < in->regions[r].n_args; a++)
                define(d, in->regions[r].args[a], NULL, in->regions[r].moduli[a]);
            define_all(d, &in->regions[r]);
        }
    }
}

/* Whether an op's result is known where its operands are. */
static bool is_computed(const tcc_pinst *in)
{
    bool place = !in->op->n_operands && in->results[0] >= TCC_P_FIXED;
    return place || in->op->code == TCC_OP_nvvm_uniform || (in->given && in->op->code != TCC_OP_arith_cmp);
}

static void need_nothing(finder *d)
{
    for (size_t k = 0; k < d->defs.len; k++)
        d->defs.data[k].needed = d->defs.data[k].decides = false;
}

/* False when nothing is known of the slot. */
static bool need_slot(finder *d, uint32_t slot)
{
    uint32_t n = slot == TCC_P_NO_SLOT ? 0 : *number_at(d, slot);
    if (n)
        d->defs.data[n - 1].needed = true;
    return n;
}

/* The same of an address, or what else is asked for. */
static bool ask_for(finder *d, uint32_t slot)
{
    bool known = need_slot(d, slot);
    if (known)
        d->defs.data[*number_at(d, slot) - 1].decides = true;
    return known;
}

/* Finds what all that is needed depends on; false when that is more than one counter. */
static bool find_needed(finder *d)
{
    d->leaf = TCC_P_NO_SLOT;
    d->modulus = 0;
    for (size_t k = d->defs.len; k-- > 0;) {
        const definition *def = &d->defs.data[k];
        if (!def->needed || def->map >= 0)
            continue;
        if (!def->in && (def->modulus < 2 || def->modulus > MAX_NUMBERS / 2 || d->leaf != TCC_P_NO_SLOT))
            return false;
        if (!def->in) {
            d->leaf = def->slot;
            d->modulus = def->modulus;
            continue;
        }
        if (!is_computed(def->in))
            return false;
        for (unsigned o = 0; o < def->in->op->n_operands; o++)
            if (!need_slot(d, def->in->operands[o]))
                return false;
    }
    return d->p->threshold + d->modulus <= MAX_NUMBERS;
}

/* What is needed, in the order of the program. */
static void sort_needed(finder *d)
{
    d->n_once = d->n_each = 0;
    d->is_first = true;
    for (uint32_t k = 0; k < d->defs.len; k++) {
        definition *def = &d->defs.data[k];
        def->varies = !def->in && def->map < 0;
        for (unsigned o = 0; def->needed && def->in && o < def->in->op->n_operands; o++)
            def->varies |= d->defs.data[*number_at(d, def->in->operands[o]) - 1].varies;
        for (unsigned o = 0; def->needed && def->in && def->varies && o < def->in->op->n_operands; o++)
            d->defs.data[*number_at(d, def->in->operands[o]) - 1].decides = true;
        if (def->needed && def->varies)
            d->each[d->n_each++] = k;
        else if (def->needed)
            d->once[d->n_once++] = k;
    }
}

/* ---- what it is -------------------------------------------------------------------------- */

/* Computes definitions in a warp, the counter being x. */
static void compute_all(finder *d, unsigned warp, tcc_pvalue x, const uint32_t *numbers, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const definition *def = &d->defs.data[numbers[k]];
        const tcc_pinst *in = def->in;
        tcc_pvalue args[3] = {0}, *v = &d->values[numbers[k]];
        for (unsigned o = 0; in && o < in->op->n_operands && o < 3; o++)
            args[o] = d->values[*number_at(d, in->operands[o]) - 1];
        if (!in)
            *v = def->map < 0 ? x : tcc_p_known(def->map);
        else if (in->op->code == TCC_OP_nvvm_uniform)
            *v = tcc_p_is_exact(&args[0]) ? args[0] : (tcc_pvalue){.kind = TCC_P_UNKNOWN};
        else if (in->op->n_operands)
            *v = tcc_p_compute(d->p, in->op, args);
        else
            tcc_p_give(d->p, NULL, warp, in, v);
    }
}

/* Computes in a warp what depends on no counter; whether that decides the same as in the warp before. */
static bool is_as_before(finder *d, unsigned warp)
{
    bool same = !d->is_first;
    compute_all(d, warp, (tcc_pvalue){0}, d->once, d->n_once);
    for (size_t k = 0; k < d->n_once; k++) {
        const tcc_pvalue *v = &d->values[d->once[k]];
        if (!d->defs.data[d->once[k]].decides)
            continue;
        same = same && !memcmp(&d->last[k], v, sizeof *v);
        d->last[k] = *v;
    }
    d->is_first = false;
    return same;
}

static const tcc_pvalue *value_of(const finder *d, uint32_t slot)
{
    return &d->values[*number_at(d, slot) - 1];
}

/* The n-th number that the counter may be, one or all with a remainder. */
static tcc_pvalue number(const finder *d, int64_t n)
{
    tcc_pvalue v = tcc_p_known(n);
    v.delta = n < d->p->threshold ? 0 : d->modulus;
    return v;
}

static int64_t count_numbers(const finder *d)
{
    return d->leaf == TCC_P_NO_SLOT ? 1 : d->p->threshold + d->modulus;
}

/* ---- its bytes --------------------------------------------------------------------------- */

/* Writes the runs of chunks that are noted, and lets go of them. */
static const tcc_known_bytes *take_runs(finder *d)
{
    tcc_known_bytes *to = TCC_NEW(d->p->scratch, tcc_known_bytes);
    for (int64_t at = 0; at < d->n_words; at++)
        for (uint64_t bits = d->bits[at], run; bits; bits &= ~run) {
            int first = __builtin_ctzll(bits), n = ~(bits >> first) ? __builtin_ctzll(~(bits >> first)) : BITS;
            int64_t from = (at * BITS + first) * TCC_CHUNK_BYTES;
            run = UINT64_MAX >> (BITS - n) << first;
            if (to->len && to->data[to->len - 1] == from)
                to->data[to->len - 1] += n * TCC_CHUNK_BYTES;
            else {
                TCC_PUSH(d->p->scratch, to, from);
                TCC_PUSH(d->p->scratch, to, from + n * TCC_CHUNK_BYTES);
            }
        }
    memset(d->bits, 0, (size_t)d->n_words * sizeof *d->bits);
    return to;
}

static_assert(TCC_SMEM_BASE % TCC_P_COPY_ALIGN == 0, "an address is as aligned as its byte");

/* Notes the chunks that an MMA reads as operand i; false when it is wrong to. */
static bool note_read(finder *d, const tcc_pinst *in, unsigned i, int64_t descriptor)
{
    size_t n = tcc_p_mma_ranges(d->p, in, i, descriptor, d->chunks);
    for (size_t c = 0; c < n; c++) {
        uint64_t chunk = (uint64_t)d->chunks[c].first / TCC_CHUNK_BYTES;
        d->bits[chunk / BITS] |= UINT64_C(1) << chunk % BITS;
    }
    return n;
}

/* Notes the chunks that a copy to a byte writes; false when it is wrong to, as it is where copies overlap. */
static bool note_written(finder *d, const tcc_pinst *in, int64_t at)
{
    int64_t bytes = d->p->box_bytes[value_of(d, in->operands[1])->v];
    if (at < 0 || at % TCC_P_COPY_ALIGN || bytes < 1 || at > d->p->cta_bytes - bytes)
        return false;
    d->uneven |= bytes % TCC_CHUNK_BYTES;
    bool apart = true;
    for (int64_t chunk = at / TCC_CHUNK_BYTES; chunk < (at + bytes) / TCC_CHUNK_BYTES; chunk++) {
        uint64_t bit = UINT64_C(1) << chunk % BITS;
        apart &= !(d->bits[chunk / BITS] & bit);
        d->bits[chunk / BITS] |= bit;
    }
    return apart;
}

/* The bytes that n MMAs with these descriptors for operand i read together, or copies to these addresses write; NULL
 * when one is wrong. */
static const tcc_known_bytes *bytes_of(finder *d, const tcc_pinst *in, unsigned i, uint32_t n, const int64_t *of)
{
    struct {
        const tcc_pinst *in;
        int64_t operand, of[TCC_P_MAX_MMAS];
    } key = {.in = in, .operand = i};
    memcpy(key.of, of, n * sizeof *of);
    uint64_t *place = tcc_ptable_at(d->known, &key, sizeof key);
    if (*place)
        return d->ranges.data[*place - 1];
    bool right = true;
    for (uint32_t k = 0; k < n && right; k++)
        right = in->n_mmas ? note_read(d, in, i, of[k]) : note_written(d, d->copies[k], of[k]);
    const tcc_known_bytes *bytes = take_runs(d);
    TCC_PUSH(d->p->scratch, &d->ranges, right ? bytes : NULL);
    *place = d->ranges.len;
    return d->ranges.data[*place - 1];
}

/* Writes them; that none are known is written, too: then it is wrong to access them. */
static void write_bytes(finder *d, const tcc_known_bytes *bytes, tcc_known_bytes *to)
{
    TCC_PUSH(d->p->scratch, to, bytes ? (int64_t)bytes->len : INVALID);
    for (size_t b = 0; bytes && b < bytes->len; b++)
        TCC_PUSH(d->p->scratch, to, bytes->data[b]);
}

/* ---- MMAs -------------------------------------------------------------------------------- */

/* The descriptors of operand i in the warp that was looked at last, for all numbers; false when one is not known. */
static bool find_descriptors(finder *d, const tcc_pinst *in, unsigned i, unsigned warp, int64_t (*of)[TCC_P_MAX_MMAS])
{
    bool known = true;
    for (int64_t n = 0; n < count_numbers(d) && known; n++) {
        compute_all(d, warp, number(d, n), d->each, d->n_each);
        memset(of[n], 0, sizeof *of);
        for (uint32_t k = 0; k < in->n_mmas && known; k++) {
            const tcc_pvalue *v = value_of(d, in[k].operands[i]);
            known = tcc_p_is_exact(v);
            of[n][k] = v->v;
        }
    }
    return known;
}

/* Of each MMA at which number the descriptor was so first, since all warps of a warpgroup must have the same; then the
 * bytes. */
static void write_descriptors(finder *d, const tcc_pinst *in, unsigned i, tcc_known_bytes *to)
{
    for (int64_t n = 0; n < count_numbers(d); n++) {
        for (uint32_t k = 0; k < in->n_mmas; k++) {
            int64_t same = 0;
            while (d->of[same][k] != d->of[n][k])
                same++;
            TCC_PUSH(d->p->scratch, to, same);
        }
        write_bytes(d, bytes_of(d, in, i, in->n_mmas, d->of[n]), to);
    }
}

/* What operand i of MMAs is in a warpgroup, whose warps all have the same; false when they do not. */
static bool write_warpgroup(finder *d, const tcc_pinst *in, unsigned i, unsigned group, tcc_known_bytes *to)
{
    unsigned first = group * TCC_WARPGROUP_WARPS, end = first + TCC_WARPGROUP_WARPS;
    size_t bytes = (size_t)count_numbers(d) * sizeof *d->of;
    if (is_as_before(d, first)) {
        TCC_PUSH(d->p->scratch, to, AS_BEFORE);
    } else {
        if (!find_descriptors(d, in, i, first, d->of))
            return false;
        write_descriptors(d, in, i, to);
    }
    for (unsigned warp = first + 1; warp < end && warp < d->p->n_warps; warp++)
        if (!is_as_before(d, warp) &&
            (!find_descriptors(d, in, i, warp, d->other) || memcmp(d->other, d->of, bytes) != 0))
            return false;
    return !d->uneven;
}

/* Whether no other counter was noted for an op. */
static bool has_one_counter(const finder *d, const tcc_pinst *in)
{
    return d->leaf == TCC_P_NO_SLOT || in->counter == TCC_P_NO_SLOT || in->counter == d->leaf;
}

static void note(const finder *d, tcc_pinst *in, unsigned i, const tcc_known_bytes *bytes)
{
    in->bytes[i] = bytes;
    in->counter = d->leaf == TCC_P_NO_SLOT ? in->counter : d->leaf;
    in->modulus = d->leaf == TCC_P_NO_SLOT ? in->modulus : d->modulus;
}

/* Notes what operand i of MMAs is with the first of them. */
static void find_operand(finder *d, tcc_pinst *in, unsigned i)
{
    tcc_known_bytes *to = TCC_NEW(d->p->scratch, tcc_known_bytes);
    bool known = true;
    need_nothing(d);
    for (uint32_t k = 0; k < in->n_mmas && known; k++)
        known = ask_for(d, in[k].operands[i]);
    if (!known || !find_needed(d) || !has_one_counter(d, in))
        return;
    sort_needed(d);
    for (unsigned g = 0; g < d->p->n_groups && known; g++)
        known = write_warpgroup(d, in, i, g, to);
    for (uint32_t k = 0; k < in->n_mmas && known; k++)
        note(d, in + k, i - 1, k ? &tcc_p_with_the_first : to);
}

/* ---- copies ------------------------------------------------------------------------------ */

/* What copies write in a warp; false when that is not known. */
static bool write_warp(finder *d, unsigned warp, tcc_known_bytes *to)
{
    int64_t of[TCC_P_MAX_MMAS] = {0}, base = TCC_SMEM_BASE + tcc_p_window(d->p, warp);
    if (is_as_before(d, warp) && (!warp || tcc_p_cta(d->p, warp) == tcc_p_cta(d->p, warp - 1))) {
        TCC_PUSH(d->p->scratch, to, AS_BEFORE);
        return true;
    }
    for (int64_t n = 0; n < count_numbers(d); n++) {
        compute_all(d, warp, number(d, n), d->each, d->n_each);
        for (uint32_t k = 0; k < d->n_copies; k++) {
            const tcc_pvalue *at = value_of(d, d->copies[k]->operands[0]);
            if (!tcc_p_is_exact(at) || !tcc_p_is_exact(value_of(d, d->copies[k]->operands[1])))
                return false;
            of[k] = at->v - base;
        }
        write_bytes(d, bytes_of(d, d->copies[0], 0, d->n_copies, of), to);
    }
    return !d->uneven;
}

/* Notes what copies write with the first of them. */
static void find_copied(finder *d)
{
    tcc_known_bytes *to = TCC_NEW(d->p->scratch, tcc_known_bytes);
    bool known = true;
    need_nothing(d);
    for (uint32_t k = 0; k < d->n_copies && known; k++)
        known = ask_for(d, d->copies[k]->operands[0]) && ask_for(d, d->copies[k]->operands[1]);
    if (!known || !find_needed(d))
        return;
    sort_needed(d);
    for (unsigned w = 0; w < d->p->n_warps && known; w++)
        known = write_warp(d, w, to);
    for (uint32_t k = 0; k < d->n_copies && known; k++)
        note(d, d->copies[k], 0, k ? &tcc_p_with_the_first : to);
}

static bool is_copy(const tcc_pinst *in)
{
    return in->op->code == TCC_OP_nvvm_tma_load || in->op->code == TCC_OP_nvvm_tma_load_multicast;
}

/* Whether a copy completes on the mbarrier that another one does, in the same CTAs. */
static bool goes_with(const tcc_pinst *in, const tcc_pinst *other)
{
    bool multicast = in->op->code == TCC_OP_nvvm_tma_load_multicast;
    return in->op->code == other->op->code && in->operands[2] == other->operands[2] &&
           (!multicast || in->operands[3] == other->operands[3]);
}

/* Finds the copies from the i-th op on that have nothing between them but what computes addresses. */
static void find_copies(finder *d, tcc_pcode *code, size_t i)
{
    d->n_copies = 0;
    for (; i < code->n && d->n_copies < TCC_P_MAX_MMAS; i++) {
        tcc_pinst *in = &code->insts[i];
        if (is_copy(in) && (!d->n_copies || goes_with(d->copies[0], in)))
            d->copies[d->n_copies++] = in;
        else if (!in->given || in->touches || in->tensor || in->op->code == TCC_OP_arith_cmp)
            break;
    }
}

/* ---- all of it --------------------------------------------------------------------------- */

const tcc_known_bytes tcc_p_with_the_first;

static void find_in_code(finder *d, tcc_pcode *code)
{
    for (size_t i = 0; i < code->n; i++) {
        tcc_pinst *in = &code->insts[i];
        for (unsigned r = 0; r < in->op->n_regions; r++)
            find_in_code(d, &in->regions[r]);
        for (unsigned o = in->op->code == TCC_OP_nvvm_wgmma_a ? 2 : 1; in->n_mmas && o <= 2; o++)
            if (!in->bytes[o - 1])
                find_operand(d, in, o);
        if (is_copy(in) && !in->bytes[0]) {
            find_copies(d, code, i);
            find_copied(d);
        }
    }
}

bool tcc_p_is_looked_at(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    const tcc_pvalue *v = in->counter == TCC_P_NO_SLOT ? NULL : tcc_p_slot(p, s, warp, in->counter);
    return !v || (v->kind == TCC_P_KNOWN && v->v >= 0 && !v->wraps && v->delta % in->modulus == 0);
}

static bool accesses_by(const tcc_pcode *code)
{
    bool does = false;
    for (size_t i = 0; i < code->n && !does; i++) {
        does = code->insts[i].n_mmas || is_copy(&code->insts[i]);
        for (unsigned r = 0; r < code->insts[i].op->n_regions; r++)
            does |= accesses_by(&code->insts[i].regions[r]);
    }
    return does;
}

static void define_maps(finder *d)
{
    const tcc_block *body = d->p->f->body;
    for (size_t i = 0; i < body->n_args; i++) {
        if (body->args[i]->type->kind != TCC_KIND_tensormap || d->p->body.args[i] == TCC_P_NO_SLOT)
            continue;
        define(d, d->p->body.args[i], NULL, 0);
        d->defs.data[d->defs.len - 1].map = (int64_t)i;
    }
}

void tcc_p_operands_find(tcc_protocol *p)
{
    p->operands = true;
    tcc_p_mmas_find(&p->body);
    if (!accesses_by(&p->body))
        return;
    finder d = {.p = p, .known = tcc_ptable_create(p->scratch)};
    d.at = TCC_NEW_ARRAY(p->scratch, uint32_t, p->n_slots + p->n_fixed + 1);
    for (size_t i = 0; i < p->fixed.len; i++)
        define(&d, p->fixed.data[i].results[0], &p->fixed.data[i], 0);
    define_maps(&d);
    define_all(&d, &p->body);
    d.values = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, d.defs.len + 1);
    d.once = TCC_NEW_ARRAY(p->scratch, uint32_t, d.defs.len + 1);
    d.each = TCC_NEW_ARRAY(p->scratch, uint32_t, d.defs.len + 1);
    d.last = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, d.defs.len + 1);
    d.of = tcc_arena_alloc(p->scratch, MAX_NUMBERS * sizeof *d.of);
    d.other = tcc_arena_alloc(p->scratch, MAX_NUMBERS * sizeof *d.other);
    d.chunks = TCC_NEW_ARRAY(p->scratch, tcc_prange, TCC_P_MAX_CHUNKS);
    d.n_words = p->cta_bytes / TCC_CHUNK_BYTES / BITS + 1;
    d.bits = TCC_NEW_ARRAY(p->scratch, uint64_t, (size_t)d.n_words);
    find_in_code(&d, &p->body);
}

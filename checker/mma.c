/* mma: MMAs of warpgroups, as interp/wgmma.c has them: what they read in shared memory and in
 * registers, and the registers that they write, belong to their group until that is waited for.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/descriptor.h"

/* Every operand takes 32 bytes of k, two chunks: as many as 16 elements of 16 bits. Others are K-major. */
enum { K = 16, M = 64, ELEM_BYTES = 2, MAX_N = 256 };
enum { PER_CHUNK = TCC_CHUNK_BYTES / ELEM_BYTES, SWIZZLE_BYTES = 1024 /* the greatest pattern: 8 rows of 128 bytes */ };
static_assert(MAX_N * K / PER_CHUNK == TCC_P_MAX_CHUNKS, "room for the greatest operand");

/* Attributes of how operands lie, by the operand's number. */
static const char *const orders[] = {NULL, "trans_a", "trans_b"};

unsigned tcc_p_order_of(const tcc_op *op, const char *attribute)
{
    unsigned i = tcc_op_starts(op->code, TCC_BY_MMA_GROUP) ? 2 : 0;
    while (i && strcmp(orders[i], attribute) != 0)
        i--;
    return i;
}

void tcc_p_mma_read(tcc_pinst *in)
{
    in->n = tcc_attr_int(&in->op->attrs, "n", 8);
    for (size_t i = 1; i < sizeof orders / sizeof *orders; i++)
        in->mn_major[i] = tcc_attr_int(&in->op->attrs, orders[i], 0);
}

/* ---- operands in shared memory --------------------------------------------------------- */

/* Where chunks are whose operand begins at `start`, less than SWIZZLE_BYTES: behind them it lies as before, so that
 * stages have the same. */
static const int64_t *find_chunks(const tcc_protocol *p, const tcc_descriptor *d, int64_t start, int64_t n_rows,
                                  int64_t n_chunks)
{
    const int64_t key[] = {start, d->leading, d->stride, d->swizzle, d->mn_major, n_rows, n_chunks};
    uint64_t *known = tcc_ptable_at(p->chunks_table, key, sizeof key);
    if (*known)
        return (const int64_t *)(uintptr_t)*known;
    tcc_descriptor at = *d;
    at.start = start;
    int64_t *chunks = TCC_NEW_ARRAY(p->scratch, int64_t, (size_t)(n_rows * n_chunks)), *next = chunks;
    for (int64_t r = 0; r < n_rows; r++)
        for (int64_t c = 0; c < n_chunks; c++)
            *next++ = tcc_descriptor_chunk(&at, r, c) - TCC_SMEM_BASE;
    *known = (uint64_t)(uintptr_t)chunks;
    return chunks;
}

/* The bytes of an operand of `rows` along m or n, chunk by chunk; a descriptor has addresses in the CTA's own
 * shared memory, which begins at `window`. */
static size_t ranges_of(const tcc_protocol *p, const tcc_descriptor *d, int64_t rows, int64_t window,
                        tcc_prange *ranges)
{
    int64_t n_rows = d->mn_major ? K : rows, n_chunks = (d->mn_major ? rows : K) / PER_CHUNK, n = n_rows * n_chunks;
    int64_t start = d->start % SWIZZLE_BYTES, from = window + d->start - start;
    const int64_t *chunks = find_chunks(p, d, start, n_rows, n_chunks);
    for (int64_t i = 0; i < n; i++)
        ranges[i] = (tcc_prange){from + chunks[i], from + chunks[i] + TCC_CHUNK_BYTES};
    return (size_t)n;
}

/* Of those the first that is not in shared memory; n: none. */
static size_t outside(const tcc_protocol *p, int64_t window, const tcc_prange *ranges, size_t n)
{
    uint64_t last = p->cta_bytes < TCC_CHUNK_BYTES ? 0 : (uint64_t)p->cta_bytes - TCC_CHUNK_BYTES;
    size_t i = 0;
    while (i < n && (uint64_t)(ranges[i].first - window) <= last)
        i++;
    return i;
}

/* The footprint of such an operand; 0, reported, when it is wrong. */
static uint64_t operand_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                           int64_t bits, bool mn_major, int64_t rows)
{
    int64_t window = tcc_p_window(p, warp);
    const int64_t key[] = {4, bits, mn_major, rows, window};
    uint64_t *print = tcc_p_footprint(p, key, sizeof key);
    if (*print)
        return *print;
    tcc_descriptor d;
    const char *why = tcc_descriptor_decode(bits, mn_major, &d);
    if (why)
        return tcc_p_wrong(p, s, warp, in, "matrix descriptor %#llx %s", (unsigned long long)bits,
                           why),
               0;
    tcc_prange ranges[TCC_P_MAX_CHUNKS];
    size_t n = ranges_of(p, &d, rows, window, ranges), out = outside(p, window, ranges, n);
    if (out < n)
        return tcc_p_wrong(p, s, warp, in,
                           "%s: 16 bytes from byte %lld on are not in the "
                           "%lld of shared memory",
                           tcc_op_info_get(in->op->code)->name, (long long)(ranges[out].first - window),
                           (long long)p->cta_bytes),
               0;
    return tcc_p_footprint_set(p, s, print, ranges, n) ? *print : 0;
}

size_t tcc_p_mma_ranges(const tcc_protocol *p, const tcc_pinst *in, unsigned i, int64_t bits,
                        tcc_prange *ranges)
{
    tcc_descriptor d;
    int64_t rows = i == 1 ? M : in->n;
    bool mn_major = in->mn_major[i];
    if (rows < 8 || rows > MAX_N || tcc_descriptor_decode(bits, mn_major, &d))
        return 0;
    size_t n = ranges_of(p, &d, rows, 0, ranges);
    return outside(p, 0, ranges, n) == n ? n : 0;
}

/* How much of an operand was ever written. */
typedef enum found {
    FOUND_NOTHING,
    FOUND_ONE_ROW, /* the first, along m or n */
    FOUND_PART,
    FOUND_ALL,
} found;

/* Whether the 16 bytes of a row at which k begins, or the 8 rows that they are of, were written. */
static bool is_chunk_written(const tcc_protocol *p, const tcc_pstate *s, int64_t window, const tcc_descriptor *d,
                             int64_t row, int64_t chunk)
{
    int64_t byte = window + tcc_descriptor_chunk(d, row, chunk) - TCC_SMEM_BASE;
    for (int64_t at = byte; at < byte + TCC_CHUNK_BYTES; at += p->granule)
        if (s->atoms[p->atom_of[at / p->granule]].mark == TCC_P_NEVER)
            return false;
    return true;
}

/* Results in a row depend on all of k, and so does whether a row was written. */
static found find_rows(tcc_protocol *p, const tcc_pstate *s, int64_t window, uint64_t print, int64_t bits,
                       bool mn_major, int64_t rows)
{
    tcc_descriptor d;
    if (tcc_p_is_all_written(p, s, print) || tcc_descriptor_decode(bits, mn_major, &d))
        return FOUND_ALL;
    p->layouts = true;
    int64_t n_rows = mn_major ? rows / PER_CHUNK : rows, steps = mn_major ? K : K / PER_CHUNK;
    int64_t whole = 0;
    bool first = false;
    for (int64_t r = 0; r < n_rows; r++) {
        int64_t n = 0;
        for (int64_t k = 0; k < steps; k++)
            n += is_chunk_written(p, s, window, &d, mn_major ? k : r, mn_major ? r : k);
        if (n && n < steps)
            return FOUND_PART;
        whole += n == steps;
        first |= n && !r;
    }
    return !whole ? FOUND_NOTHING : whole == 1 && first && !mn_major ? FOUND_ONE_ROW : FOUND_PART;
}

/* Notes how much of an operand an MMA finds; false, reported, when it is a part. A tensor may
 * have but one row, which only the first warpgroup gets: then there is no result in the others. */
static bool note_found(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                       tcc_pfound *f, found what, uint64_t print)
{
    if (what == FOUND_PART)
        return tcc_p_wrong(p, s, warp, in,
                           "nvvm.wgmma reads shared memory that was not written completely, at byte %lld",
                           (long long)tcc_p_unwritten_byte(p, s, print)),
               false;
    f->last = in->op;
    f->any |= what != FOUND_NOTHING;
    f->all |= what == FOUND_ALL;
    if (what == FOUND_NOTHING && !f->nothing)
        f->nothing = in->op;
    return true;
}

/* ---- registers ------------------------------------------------------------------------- */

/* What anything but an MMA wrote into registers, or read there, must have been fenced since. */
static bool is_fenced(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                      unsigned operand, uint64_t registers, const char *what)
{
    const tcc_pvalue *v = tcc_p_slot(p, s, warp, in->operands[operand]);
    if (!s->warps[warp].any_fence || !(v->delta & (TCC_P_BY_MMA | TCC_P_FENCED)))
        tcc_p_wrong(p, s, warp, in, "no wgmma.fence since the %s were written", what);
    else if (s->warps[warp].touched & registers)
        tcc_p_wrong(p, s, warp, in, "no wgmma.fence since the %s were last accessed", what);
    else
        return true;
    return false;
}

/* What an MMA of another shape wrote was waited for, and fenced. */
static bool accumulators_ready(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                               int64_t n)
{
    const tcc_pvalue *acc = tcc_p_slot(p, s, warp, in->operands[0]);
    bool other_shape = acc->delta & TCC_P_BY_MMA && acc->offset != n;
    if (!tcc_p_take(p, s, warp, in, 0, in->registers) ||
        !is_fenced(p, s, warp, in, 0, in->registers, "accumulators"))
        return false;
    if (!other_shape || (!acc->v && acc->delta & TCC_P_FENCED))
        return true;
    tcc_p_wrong(p, s, warp, in, "%s since an MMA of another shape wrote the accumulators",
                acc->v ? "no wgmma.wait_group" : "no wgmma.fence");
    return false;
}

/* A in registers is read until its group ends, and several MMAs may read it. It is numbered
 * when the first takes it: the wait must name the same. */
static bool take_a(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_pvalue *v = tcc_p_slot(p, s, warp, in->operands[1]);
    bool is_a = v->delta & TCC_P_IS_A;
    if ((!is_a && !tcc_p_may_read(p, s, warp, in, 1)) ||
        !is_fenced(p, s, warp, in, 1, in->a_registers, "registers of A"))
        return false;
    unsigned i = 0;
    while (i < w->n_a && !(is_a && w->a[i].number == v->offset))
        i++;
    if (i == TCC_P_A)
        return tcc_p_unsupported(p, in->op, "more than %d operands in registers are not waited for",
                                 TCC_P_A),
               false;
    if (i == w->n_a)
        w->a[w->n_a++].number = v->offset = ++w->last_a;
    w->a[i].op = in->op;
    w->a[i].group = w->committed + 1;
    v->v = w->committed + 1;
    v->delta |= TCC_P_IS_A;
    return true;
}

/* Registers that nothing names after the MMAs are free for others while A is still read from
 * them: a wait that ends MMAs names them. */
static bool keeps_a(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                    uint32_t ended)
{
    tcc_pwarp *w = &s->warps[warp];
    unsigned left = 0;
    for (unsigned i = 0; i < w->n_a; i++) {
        bool kept = w->a[i].group > ended;
        if (kept)
            w->a[left++] = w->a[i];
        for (unsigned o = 0; o < in->op->n_operands && !kept; o++) {
            const tcc_pvalue *v =
                in->operands[o] == TCC_P_NO_SLOT ? NULL : tcc_p_slot(p, s, warp, in->operands[o]);
            kept = v && v->delta & TCC_P_IS_A && v->offset == w->a[i].number;
        }
        if (kept)
            continue;
        p->other.op = w->a[i].op;
        p->other.what = "the MMA";
        tcc_p_wrong(p, s, warp, in,
                    "nvvm.wgmma.wait_group ends an MMA and does not pass its registers of A "
                    "through: they may have been reused while it read them");
        return false;
    }
    memset(&w->a[left], 0, (w->n_a - left) * sizeof *w->a);
    w->n_a = left;
    return true;
}

/* ---- MMAs ------------------------------------------------------------------------------ */

/* An operand in shared memory; print 0: it is in registers, and whole. */
typedef struct operand {
    int64_t bits, rows;
    bool mn_major;
    uint64_t print;
    found found;
} operand;

static bool takes_a(const tcc_pinst *in)
{
    return in->op->code == TCC_OP_nvvm_wgmma_a;
}

/* Whether the operands of two MMAs are as large, and lie alike. */
static bool have_one_shape(const tcc_pinst *x, const tcc_pinst *y)
{
    return x->n == y->n && x->mn_major[1] == y->mn_major[1] && x->mn_major[2] == y->mn_major[2];
}

static bool find_operand(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                         unsigned i, operand *o)
{
    o->mn_major = in->mn_major[i];
    if (!tcc_p_operand(p, s, warp, in, i, &o->bits))
        return false;
    o->print = operand_of(p, s, warp, in, o->bits, o->mn_major, o->rows);
    if (o->print)
        o->found = find_rows(p, s, tcc_p_window(p, warp), o->print, o->bits, o->mn_major, o->rows);
    return o->print;
}

/* Whose operands in registers are ready, and in shared memory accessed: its group is the next one. */
static void add_to_group(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, const operand of[2],
                         int64_t add)
{
    tcc_pwarp *w = &s->warps[warp];
    const struct {
        const tcc_op *op;
        int64_t a, b, add;
        uint64_t before;
    } issued = {in->op, of[0].bits, of[1].bits, add, w->mmas};
    w->mmas = tcc_p_hash(&issued, sizeof issued);
    w->open_group = true;
    *tcc_p_slot(p, s, warp, in->results[0]) = (tcc_pvalue){.kind = TCC_P_REGISTERS,
                                                           .v = w->committed + 1,
                                                           .offset = (int32_t)of[1].rows,
                                                           .delta = TCC_P_BY_MMA};
    tcc_p_log(p, s, warp, in, -1, w->committed + 1);
}

static tcc_paccess access_of(const tcc_protocol *p, const tcc_pstate *s, unsigned warp)
{
    const tcc_pwarp *w = &s->warps[warp];
    return (tcc_paccess){.warp = warp,
                         .actor = tcc_p_mma_actor(p, warp),
                         .lanes = w->mask,
                         .clock = w->committed + 1,
                         .async = true};
}

static tcc_presult issue(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    int64_t n = in->n, add;
    operand of[2] = {{.rows = M, .found = FOUND_ALL}, {.rows = n}};
    if (!tcc_p_converged(p, s, warp, in) || !tcc_p_operand(p, s, warp, in, 3, &add))
        return TCC_P_FAILED;
    if (n < 8 || n > MAX_N)
        return tcc_p_wrong(p, s, warp, in, "no MMA with n = %lld", (long long)n);
    if ((takes_a(in) ? !take_a(p, s, warp, in) : !find_operand(p, s, warp, in, 1, &of[0])) ||
        !accumulators_ready(p, s, warp, in, n) ||
        !find_operand(p, s, warp, in, 2, &of[1]))
        return TCC_P_FAILED;
    tcc_paccess by = access_of(p, s, warp);
    by.unwritten = of[0].found || of[1].found;
    for (int i = 0; i < 2; i++)
        if (of[i].print && !tcc_p_access(p, s, in, &by, of[i].print))
            return TCC_P_FAILED;
    for (int i = 0; i < 2; i++)
        if (of[i].print && !note_found(p, s, warp, in, &p->found[i], of[i].found, of[i].print))
            return TCC_P_FAILED;
    add_to_group(p, s, warp, in, of, add);
    return TCC_P_NEXT;
}

/* ---- MMAs behind each other -------------------------------------------------------------- */

/* MMAs with nothing between them read at one clock, and come after the same. So their operands are accessed as one, and
 * memory is in as many parts as that takes, not one for each step of k. Where not all of them was written, or anything
 * is wrong, they are issued one by one. */

void tcc_p_mmas_find(tcc_pcode *code)
{
    for (size_t i = code->n; i-- > 0;) {
        tcc_pinst *in = &code->insts[i], *next = in + 1;
        for (unsigned r = 0; r < in->op->n_regions; r++)
            tcc_p_mmas_find(&in->regions[r]);
        if (in->op->code != TCC_OP_nvvm_wgmma && in->op->code != TCC_OP_nvvm_wgmma_a)
            continue;
        bool goes_on = i + 1 < code->n && next->n_mmas && next->n_mmas < TCC_P_MAX_MMAS &&
                       next->op->code == in->op->code && next->alone == in->alone && next->others == in->others &&
                       have_one_shape(in, next);
        in->n_mmas = goes_on ? next->n_mmas + 1 : 1;
    }
}

/* The footprint of operand i of them all; 0: there is none, or it is not known, or of bytes that were not all
 * written. */
static uint64_t operands_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned i)
{
    int64_t rows = i == 1 ? M : in->n, window = tcc_p_window(p, warp);
    bool mn_major = in->mn_major[i];
    int64_t key[4 + TCC_P_MAX_MMAS] = {9, mn_major, rows, window};
    size_t n_bits = 0;
    for (uint32_t k = 0; k < in->n_mmas; k++) {
        const tcc_pvalue *v = tcc_p_slot(p, s, warp, in[k].operands[i]);
        if (!tcc_p_is_exact(v))
            return 0;
        if (!k || v->v != key[3 + n_bits]) /* neighbours often share one */
            key[4 + n_bits++] = v->v;
    }
    uint64_t *print = tcc_p_footprint(p, key, (4 + n_bits) * sizeof *key);
    bool known = *print || rows < 8 || rows > MAX_N;
    tcc_prange *ranges = known ? NULL : tcc_p_room_for_ranges(p, n_bits * TCC_P_MAX_CHUNKS);
    size_t n = 0;
    for (size_t k = 0; ranges && k < n_bits; k++) {
        tcc_descriptor d;
        size_t first = n;
        if (tcc_descriptor_decode(key[4 + k], mn_major, &d))
            return 0;
        n += ranges_of(p, &d, rows, window, ranges + first);
        if (outside(p, window, ranges + first, n - first) < n - first)
            return 0;
    }
    if (ranges && !tcc_p_footprint_set(p, s, print, ranges, n))
        return 0;
    return *print && tcc_p_is_all_written(p, s, *print) ? *print : 0;
}

/* One whose operand depends on no counter, if there is one (rotate.c). */
static const tcc_pinst *who_stays(const tcc_pinst *in)
{
    uint32_t k = 0;
    while (k < in->n_mmas - 1 && !in[k].stays)
        k++;
    return in + k;
}

/* The operands of all of them, in shared memory; false: they are to be issued one by one. */
static bool access_all(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    const tcc_paccess by = access_of(p, s, warp);
    bool all = s->warps[warp].mask == tcc_p_all_lanes(p);
    uint64_t prints[2] = {0};
    for (unsigned i = takes_a(in) ? 2 : 1; i <= 2 && all; i++) {
        prints[i - 1] = operands_of(p, s, warp, in, i);
        all = prints[i - 1];
    }
    for (unsigned i = 0; i < 2 && all; i++)
        all = !prints[i] || tcc_p_access(p, s, who_stays(in), &by, prints[i]);
    return all;
}

static tcc_presult issue_all(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    p->layouts |= !tcc_p_is_looked_at(p, s, warp, in);
    if (in->n_mmas < 2 || !access_all(p, s, warp, in))
        return p->status ? TCC_P_FAILED : issue(p, s, warp, in);
    p->spanned = true;
    for (uint32_t k = 0; k < in->n_mmas; k++) {
        const tcc_pinst *one = in + k;
        operand of[2] = {{.rows = M, .found = FOUND_ALL}, {.rows = one->n, .found = FOUND_ALL}};
        int64_t add;
        s->warps[warp].touched |= one->touches;
        if (!tcc_p_converged(p, s, warp, one) || !tcc_p_operand(p, s, warp, one, 3, &add) ||
            (takes_a(one) && !take_a(p, s, warp, one)) || !accumulators_ready(p, s, warp, one, of[1].rows))
            return TCC_P_FAILED;
        for (unsigned i = takes_a(one) ? 1 : 0; i < 2; i++) {
            of[i].bits = tcc_p_slot(p, s, warp, one->operands[1 + i])->v;
            note_found(p, s, warp, one, &p->found[i], FOUND_ALL, 0);
        }
        add_to_group(p, s, warp, one, of, add);
    }
    s->warps[warp].frames[s->warps[warp].depth - 1].pc += in->n_mmas - 1;
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_wgmma(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return issue_all(p, s, warp, in);
}

tcc_presult tcc_p_nvvm_wgmma_a(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    return issue_all(p, s, warp, in);
}

/* ---- groups ---------------------------------------------------------------------------- */

tcc_presult tcc_p_nvvm_wgmma_fence(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                   const tcc_pinst *in)
{
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    s->warps[warp].any_fence = true;
    s->warps[warp].touched = 0;
    for (size_t i = 0; i < p->registers.len; i++) {
        tcc_pvalue *v = tcc_p_slot(p, s, warp, p->registers.data[i]);
        if (v->kind == TCC_P_REGISTERS)
            v->delta = (v->delta | TCC_P_FENCED) & ~(int64_t)TCC_P_TAKEN;
    }
    return TCC_P_NEXT;
}

static tcc_pgroup *group_of(const tcc_pstate *s, unsigned warp, uint32_t number)
{
    return &s->groups[warp / TCC_WARPGROUP_WARPS * TCC_P_GROUPS + number % TCC_P_GROUPS];
}

tcc_presult tcc_p_nvvm_wgmma_commit(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                    const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    w->committed++;
    tcc_pgroup *g = group_of(s, warp, w->committed);
    if (g->number < w->committed) {
        *g = (tcc_pgroup){.number = w->committed, .mmas = w->mmas};
    } else if (g->number == w->committed && g->mmas != w->mmas) {
        return tcc_p_wrong(p, s, warp, in, "warp %u issues different MMAs from the rest of its warpgroup", warp);
    }
    const uint32_t *passed = tcc_p_passed(p, s, warp);
    for (unsigned i = 0; g->number == w->committed && i < p->n_steps; i++)
        g->clocks[i] = passed[i] > g->clocks[i] ? passed[i] : g->clocks[i];
    tcc_p_log(p, s, warp, in, -1, w->committed);
    if (w->open_group)
        w->last_group = w->committed;
    w->open_group = false;
    w->mmas = 0;
    tcc_p_tick(p, s, warp);
    return TCC_P_NEXT;
}

tcc_presult tcc_p_nvvm_wgmma_wait(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                  const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    if (!tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    uint32_t pending = (uint32_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    uint32_t ended = w->committed > pending ? w->committed - pending : 0;
    unsigned first = warp / TCC_WARPGROUP_WARPS * TCC_WARPGROUP_WARPS;
    for (unsigned i = first; i < first + TCC_WARPGROUP_WARPS && i < p->n_warps; i++)
        if (s->warps[i].committed < ended)
            return tcc_p_wait_for(s, warp, TCC_P_ANYTHING);
    const tcc_pgroup *g = group_of(s, warp, ended);
    uint32_t *passed = tcc_p_passed(p, s, warp);
    for (unsigned i = 0; ended && g->number == ended && i < p->n_steps; i++)
        passed[i] = g->clocks[i] > passed[i] ? g->clocks[i] : passed[i];
    ended = tcc_mma_groups_ended(w->committed, w->last_group, pending);
    if (!keeps_a(p, s, warp, in, ended))
        return TCC_P_FAILED;
    if (w->waited < ended)
        w->waited = ended;
    if (s->n_parts)
        tcc_p_step_together(p, s, warp);
    if (!tcc_p_learn_end(p, s, warp, in->op, w->mask, tcc_p_mma_actor(p, warp), w->waited))
        return TCC_P_FAILED;
    for (unsigned i = 0; i < in->op->n_results; i++) {
        if (in->results[i] == TCC_P_NO_SLOT)
            continue;
        tcc_pvalue *r = tcc_p_slot(p, s, warp, in->results[i]);
        *r = in->operands[i] == TCC_P_NO_SLOT ? (tcc_pvalue){.kind = TCC_P_REGISTERS}
                                              : *tcc_p_slot(p, s, warp, in->operands[i]);
        if (r->v > w->waited && !pending && !in->open)
            return tcc_p_unsupported(
                p, in->op, "it passes through registers of an MMA that is not committed");
        if (r->v > w->waited)
            continue;
        r->v = 0;
        if (r->delta & TCC_P_IS_A) {
            r->delta &= TCC_P_FENCED;
            r->offset = 0;
        }
    }
    tcc_p_log(p, s, warp, in, -1, ended);
    return TCC_P_NEXT;
}

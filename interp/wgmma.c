/* wgmma: warpgroup MMAs. Each warp computes its 16 of the 64 rows when it issues one; what
 * makes it asynchronous is kept beside: the shared memory that it reads and the registers that it
 * writes belong to its group until the warp has waited for that.
 *
 * The warps of a warpgroup issue the same MMAs, and waiting for a group waits for its part
 * in all four: one of them may hand the stage back.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "interp/machine.h"
#include "ir/descriptor.h"
#include "ir/fragment.h"

enum { WARP_ROWS = 16, MAX_N = 256, K_BYTES = 32, MAX_K = K_BYTES }; /* of every instruction */

static bool decode(tcc_exec *x, const tcc_op *op, int64_t bits, bool mn_major, tcc_descriptor *d)
{
    const char *why = tcc_descriptor_decode(bits, mn_major, d);
    if (why)
        TCC_WRONG(x, op, "matrix descriptor %#llx %s", (unsigned long long)bits, why);
    return !why;
}

/* An operand, [row * k + …], integers as well; and of each row a bit for each k: is it of a tensor and not zero, or
 * zero for what is outside of one? */
typedef struct matrix {
    tcc_scalar elem;
    int64_t k, elem_bytes, per_chunk;
    tcc_cell *v; /* f, of integers as well */
    uint32_t *of_tensor, *outside;
} matrix;

static matrix matrix_of(tcc_scalar elem, tcc_cell *v, uint32_t *of_tensor, uint32_t *outside)
{
    int64_t bytes = tcc_scalar_bits(elem) / 8;
    return (matrix){elem, K_BYTES / bytes, bytes, TCC_CHUNK_BYTES / bytes, v, of_tensor, outside};
}

static void note_origin(matrix *o, int64_t mn, int64_t k, uint8_t origin)
{
    if (origin == TCC_OUTSIDE)
        o->outside[mn] |= UINT32_C(1) << k;
    else if (origin == TCC_OF_TENSOR && o->v[mn * o->k + k].f != 0)
        o->of_tensor[mn] |= UINT32_C(1) << k;
}

/* Makes the unwritten numbers of a chunk, `step` apart, poison. */
static void find_unwritten(tcc_thread *t, const tcc_inst *in, const matrix *o, int64_t address, tcc_cell *v,
                           int64_t step)
{
    tcc_cta *cta = t->warp->cta;
    for (int64_t e = 0; e < o->per_chunk; e++) {
        int64_t at = address + e * o->elem_bytes;
        if (tcc_smem_is_written(cta, at, o->elem_bytes))
            continue;
        v[e * step].f = tcc_poison();
        tcc_smem_read_unwritten(cta, in->op, t->warp, at);
    }
}

/* The numbers of a chunk, to `step` apart. */
static void read_numbers(const matrix *o, const uint8_t *bytes, tcc_cell *v, int64_t step)
{
    tcc_decode_bytes(bytes, (size_t)o->per_chunk, o->elem, v, (size_t)step);
    if (tcc_scalar_classify(o->elem) == TCC_CLASS_INT)
        for (int64_t e = 0; e < o->per_chunk; e++)
            v[e * step].f = (double)v[e * step].i;
}

/* Reads rows `first` … `first + n` along m or n and all of k of an operand. */
static bool read_operand(tcc_thread *t, const tcc_inst *in, const tcc_descriptor *d, int64_t first,
                         int64_t n, matrix *out)
{
    tcc_cta *cta = t->warp->cta;
    tcc_accessor by = tcc_warp_accessor(t, t->mask);
    by.actor = tcc_actor_mmas(cta, t->id);
    by.clock = t->committed + 1;
    by.async = true;
    tcc_smem_reads reads = tcc_smem_reads_begin(cta, in->op, &by);
    int64_t k = out->k, per_chunk = out->per_chunk, step = d->mn_major ? k : 1;
    int64_t rows = d->mn_major ? k : n, chunks = (d->mn_major ? n : k) / per_chunk;
    int64_t first_row = d->mn_major ? 0 : first, first_chunk = d->mn_major ? first / per_chunk : 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < chunks; c++) {
            int64_t address = tcc_descriptor_chunk(d, first_row + r, first_chunk + c);
            const uint8_t *bytes =
                tcc_smem_at(cta, in->op, address, TCC_CHUNK_BYTES, TCC_CHUNK_BYTES);
            if (!bytes || !tcc_smem_read_part(&reads, address, TCC_CHUNK_BYTES))
                return false;
            tcc_cell *v = out->v + (d->mn_major ? c * per_chunk * k + r : r * k + c * per_chunk);
            read_numbers(out, bytes, v, step);
            if (!reads.written)
                find_unwritten(t, in, out, address, v, step);
            if (!cta->cluster->any_outside)
                continue;
            uint8_t origin = tcc_smem_origin(cta, address);
            for (int64_t e = 0; e < per_chunk; e++)
                note_origin(out, d->mn_major ? c * per_chunk + e : r, d->mn_major ? r : c * per_chunk + e,
                            reads.alike ? origin : tcc_smem_origin(cta, address + e * out->elem_bytes));
        }
    return true;
}

static double dot(const tcc_cell *a, const tcc_cell *b, int64_t k)
{
    enum { LANES = 4 }; /* independent sums, so that additions need not wait for another */
    double sums[LANES] = {0};
    for (int64_t i = 0; i < k; i += LANES)
        for (int l = 0; l < LANES; l++)
            sums[l] += a[i + l].f * b[i + l].f;
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* acc and the terms, rounded once, or modulo 2^32. Integers cannot represent poison: unwritten ones become some number,
 * which should make no difference. */
static tcc_cell add_up(double terms, tcc_cell acc, bool is_int, bool add)
{
    enum { ANY = 0x5a5a5a5a };
    if (!is_int)
        return (tcc_cell){.f = tcc_round_float(terms + (add ? acc.f : 0), TCC_f32)};
    int64_t sum = isnan(terms) ? ANY : (int64_t)terms;
    return tcc_decode((uint64_t)(sum + (add ? acc.i : 0)), TCC_i32);
}

/* Of the rows of one warp. */
static void multiply(tcc_thread *t, const tcc_inst *in, const matrix *a, const matrix *b, int64_t n,
                     bool add)
{
    const tcc_cell *acc = tcc_cells(t, in->operands[0]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    const tcc_fragment *d = &tcc_fragments[TCC_FRAGMENT_wgmma_d];
    bool is_int = tcc_scalar_classify(a->elem) == TCC_CLASS_INT; /* zeros from outside are of no consequence there */
    tcc_places places = tcc_fragment_places(d);
    for (int64_t e = 0; e < n / 2; e++) {
        tcc_place of_element = tcc_fragment_place(d, (unsigned)e, 0, 0);
        for (int l = 0; l < TCC_WARP_LANES; l++) {
            unsigned row = places.of_lane[l].row + of_element.row, col = places.of_lane[l].col + of_element.col;
            size_t i = (size_t)(e * TCC_WARP_LANES + l);
            bool outside =
                !is_int && ((a->outside[row] & b->of_tensor[col]) || (b->outside[col] & a->of_tensor[row]));
            r[i] = outside ? (tcc_cell){.f = tcc_poison()}
                           : add_up(dot(a->v + row * a->k, b->v + col * b->k, a->k), acc[i], is_int, add);
            if (outside)
                tcc_multiplies_outside(t->warp->cta, in->op, t->warp);
        }
    }
}

/* ---- what goes around an MMA ----------------------------------------------------------- */

/* The four warps issue the same instruction. */
static bool same_in_all_warps(tcc_thread *t, const tcc_inst *in, bool a_in_registers)
{
    tcc_cta *c = t->warp->cta;
    tcc_warpgroup *g = &c->groups[t->id / TCC_WARPGROUP_WARPS];
    tcc_mma_record mine = {in->op, a_in_registers ? 0 : tcc_lane_int(t, in, 1, 0),
                               tcc_lane_int(t, in, 2, 0), tcc_lane_int(t, in, 3, 0)};
    if (t->warp->issued++ == g->mmas.len) {
        TCC_PUSH(t->x->run->scratch, &g->mmas, mine);
        return true;
    }
    const tcc_mma_record *other = &g->mmas.data[t->warp->issued - 1];
    if (other->op == mine.op && other->a == mine.a && other->b == mine.b &&
        other->scale_d == mine.scale_d)
        return true;
    TCC_WRONG(t->x, in->op, "issues a different MMA from the rest of its warpgroup");
    tcc_note(t->x->run->diag, other->op->loc, "the MMA of the first warp to issue one");
    return false;
}

/* Registers that anything but an MMA has written or read must have been fenced since. */
static bool fenced(tcc_thread *t, const tcc_inst *in, unsigned operand, unsigned registers,
                   const char *what)
{
    const tcc_reg *r = &t->regs[in->operands[operand]];
    uint64_t fence = t->warp->fenced_registers;
    if (!fence || !(r->by_mma || r->undefined || r->defined <= fence))
        TCC_WRONG(t->x, in->op, "no wgmma.fence since the %s were written", what);
    else if (t->touched[registers] > fence)
        TCC_WRONG(t->x, in->op, "no wgmma.fence since the %s were last accessed", what);
    else
        return true;
    return false;
}

/* MMAs of one shape are executed in order; those of another must be waited for and fenced. */
static bool is_of_shape(tcc_thread *t, const tcc_inst *in, int64_t n)
{
    const tcc_reg *r = &t->regs[in->operands[0]];
    if (!r->by_mma || r->shape == n)
        return true;
    if (!r->mma && r->defined <= t->warp->fenced_registers)
        return true;
    TCC_WRONG(t->x, in->op, "%s since an MMA of another shape wrote the accumulators",
              r->mma ? "no wgmma.wait_group" : "no wgmma.fence");
    tcc_note_mma(t, r);
    return false;
}

/* What only an MMA may take over from another that runs. */
static bool accumulators_ready(tcc_thread *t, const tcc_inst *in, int64_t n)
{
    unsigned registers = t->x->program->values[in->results[0]].registers;
    return tcc_registers_take(t, in, 0, registers) && fenced(t, in, 0, registers, "accumulators") &&
           is_of_shape(t, in, n);
}

/* Where only the time of an MMA matters, it is not computed. */
static bool is_computed(const tcc_thread *t)
{
    return !t->x->run->options->timeline.only;
}

/* Issues what both forms of an MMA have in common: A is in a, of this warp's rows. */
static tcc_outcome issue(tcc_thread *t, const tcc_inst *in, const matrix *a)
{
    const tcc_attrs *attrs = &in->op->attrs;
    int64_t n = tcc_attr_int(attrs, "n", 8);
    bool add = tcc_lane_int(t, in, 3, 0);
    tcc_descriptor db;
    tcc_cell v[MAX_N * MAX_K];
    uint32_t of_tensor[MAX_N] = {0}, outside[MAX_N] = {0};
    matrix b = matrix_of(tcc_mma_of(in->op)->b, v, of_tensor, outside);
    if (n > MAX_N)
        return TCC_WRONG(t->x, in->op, "no MMA with n = %lld", (long long)n);
    if (!decode(t->x, in->op, tcc_lane_int(t, in, 2, 0), tcc_attr_int(attrs, "trans_b", 0), &db) ||
        !accumulators_ready(t, in, n) || (is_computed(t) && !read_operand(t, in, &db, 0, n, &b)))
        return TCC_FAILED;
    if (is_computed(t))
        multiply(t, in, a, &b, n, add);
    t->warp->open_group = true;
    t->regs[in->results[0]] = (tcc_reg){.defined = t->steps,
                                        .mma = t->committed + 1,
                                        .issue = (uint32_t)t->warp->issued,
                                        .shape = (int32_t)n,
                                        .by_mma = true};
    return TCC_NEXT;
}

/* Whether the operands of an MMA from `first` on are ready; false, reported. */
static bool begin(tcc_thread *t, const tcc_inst *in, unsigned first)
{
    if (!tcc_converged(t, in))
        return false;
    for (unsigned o = 1; o < 4; o++) {
        bool shared = o < first && t->regs[in->operands[o]].is_a; /* another takes its A from it */
        if ((!shared && !tcc_readable(t, in, o)) ||
            (o >= first && !tcc_is_uniform(t, in, o, o == 3 ? "scale_d" : "descriptors")))
            return false;
    }
    return true;
}

tcc_outcome tcc_eval_nvvm_wgmma(tcc_thread *t, const tcc_inst *in)
{
    tcc_descriptor da;
    tcc_cell v[WARP_ROWS * MAX_K];
    uint32_t of_tensor[WARP_ROWS] = {0}, outside[WARP_ROWS] = {0};
    matrix a = matrix_of(tcc_mma_of(in->op)->a, v, of_tensor, outside);
    int64_t first_row = t->id % TCC_WARPGROUP_WARPS * WARP_ROWS;
    if (!begin(t, in, 1) ||
        !decode(t->x, in->op, tcc_lane_int(t, in, 1, 0), tcc_attr_int(&in->op->attrs, "trans_a", 0),
                &da) ||
        !same_in_all_warps(t, in, false) ||
        (is_computed(t) && !read_operand(t, in, &da, first_row, WARP_ROWS, &a)))
        return TCC_FAILED;
    return issue(t, in, &a);
}

/* ---- A in registers -------------------------------------------------------------------- */

static void unpack_a(const tcc_thread *t, const tcc_inst *in, matrix *a)
{
    const tcc_cell *words = tcc_cells(t, in->operands[1]);
    const tcc_fragment *f = &tcc_fragments[TCC_FRAGMENT_wgmma_a];
    tcc_places places = tcc_fragment_places(f);
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        for (unsigned e = 0; e < tcc_fragment_elements(f, l); e++) {
            uint64_t word = (uint64_t)words[e / 2 * TCC_WARP_LANES + l].i;
            tcc_place at = tcc_place_in(&places, e, l);
            a->v[at.row * a->k + at.col] = tcc_decode(word >> 16 * (e % 2) & 0xffff, a->elem);
        }
}

tcc_outcome tcc_eval_nvvm_wgmma_a(tcc_thread *t, const tcc_inst *in)
{
    tcc_cell v[WARP_ROWS * MAX_K];
    uint32_t none[WARP_ROWS] = {0};
    matrix a = matrix_of(tcc_mma_of(in->op)->a, v, none, none);
    unsigned registers = t->x->program->values[in->operands[1]].registers;
    if (!begin(t, in, 2) || !fenced(t, in, 1, registers, "registers of A") ||
        !same_in_all_warps(t, in, true))
        return TCC_FAILED;
    unpack_a(t, in, &a);
    tcc_outcome outcome = issue(t, in, &a);
    tcc_reg *r = &t->regs[in->operands[1]];
    r->mma = t->committed + 1;
    r->issue = (uint32_t)t->warp->issued;
    r->is_a = true;
    TCC_PUSH(t->x->run->scratch, &t->warp->a_in_flight,
             (tcc_a_in_flight){in->op, r->defined, r->mma});
    return outcome;
}

/* Registers that nothing names after the MMAs are free for others while A is still read from
 * them: the wait must name them. */
static bool keeps_a(tcc_thread *t, const tcc_inst *in, uint32_t ended)
{
    tcc_warp *w = t->warp;
    size_t left = 0;
    for (size_t i = 0; i < w->a_in_flight.len; i++) {
        tcc_a_in_flight a = w->a_in_flight.data[i];
        bool kept = a.group > ended;
        if (kept)
            w->a_in_flight.data[left++] = a;
        for (unsigned o = 0; o < in->op->n_operands && !kept; o++) {
            const tcc_reg *r = &t->regs[in->operands[o]];
            kept = r->is_a && r->defined == a.defined;
        }
        if (kept)
            continue;
        TCC_WRONG(t->x, in->op,
                  "nvvm.wgmma.wait_group ends an MMA and does not pass its registers of A "
                  "through: they may have been reused while it read them");
        tcc_note(t->x->run->diag, a.op->loc, "the MMA");
        return false;
    }
    w->a_in_flight.len = left;
    return true;
}

/* ---- groups ---------------------------------------------------------------------------- */

tcc_outcome tcc_eval_nvvm_wgmma_fence(tcc_thread *t, const tcc_inst *in)
{
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    t->warp->fenced_registers = t->steps;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_wgmma_commit(tcc_thread *t, const tcc_inst *in)
{
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    t->committed++;
    if (t->warp->open_group)
        t->warp->last_group = t->committed;
    t->warp->open_group = false;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_wgmma_wait(tcc_thread *t, const tcc_inst *in)
{
    tcc_warp *warp = t->warp;
    tcc_cta *c = warp->cta;
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    uint32_t pending = (uint32_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    uint32_t ended = t->committed > pending ? t->committed - pending : 0;
    unsigned first = t->id / TCC_WARPGROUP_WARPS * TCC_WARPGROUP_WARPS;
    for (unsigned w = first; w < first + TCC_WARPGROUP_WARPS && w < c->cluster->n_warps; w++)
        if (c->warps[w].thread->committed < ended)
            return TCC_WAIT(t, NULL, "for MMAs that warp %u has not issued", w);
    ended = tcc_mma_groups_ended(t->committed, warp->last_group, pending);
    if (warp->a_in_flight.len && !keeps_a(t, in, ended))
        return TCC_FAILED;
    if (t->waited < ended)
        t->waited = ended;
    tcc_lanes_learn_end(warp, t->mask, tcc_actor_mmas(c, t->id), t->waited);
    tcc_copy_values(t, in->results, in->operands, in->op->n_results, t->mask);
    for (unsigned i = 0; i < in->op->n_results; i++) {
        tcc_reg *r = &t->regs[in->results[i]];
        if (r->mma > t->waited)
            continue;
        r->mma = 0;
        if (r->is_a)
            *r = (tcc_reg){.defined = r->defined};
    }
    return TCC_NEXT;
}

void tcc_note_mma(const tcc_thread *t, const tcc_reg *r)
{
    if (!t->warp || !r->mma || !r->issue)
        return;
    const tcc_warpgroup *g = &t->warp->cta->groups[t->id / TCC_WARPGROUP_WARPS];
    const tcc_op *op = g->mmas.data[r->issue - 1].op;
    const char *why = r->mma <= t->waited ? "the wait for it does not pass them through"
                                              : "nothing has waited for it";
    tcc_note(t->x->run->diag, op->loc, "%s of %s, group %u: %s", tcc_op_info_get(op->code)->name,
             tcc_warp_name(t->warp), r->mma, why);
}

/* wgmma: warpgroup MMAs. Each warp computes its 16 of the 64 rows when it issues one; what
 * makes it asynchronous is kept beside: the shared memory that it reads and the registers that it
 * writes belong to its group until the warp has waited for that.
 *
 * The warps of a warpgroup issue the same MMAs, and waiting for a group waits for its part
 * in all four: one of them may hand the stage back.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"
#include "ir/descriptor.h"
#include "ir/fragment.h"

enum { WARP_ROWS = 16, K = 16, MAX_N = 256, ELEM_BYTES = 2 };
enum { PER_CHUNK = TCC_CHUNK_BYTES / ELEM_BYTES };

static bool decode(tcc_exec *x, const tcc_op *op, int64_t bits, bool mn_major, tcc_descriptor *d)
{
    const char *why = tcc_descriptor_decode(bits, mn_major, d);
    if (why)
        TCC_WRONG(x, op, "matrix descriptor %#llx %s", (unsigned long long)bits, why);
    return !why;
}

/* An operand, [row * K + k]; and of each row a bit for each k: is it of a tensor and not zero, or
 * zero for what is outside of one? */
typedef struct matrix {
    double *v;
    uint16_t *of_tensor, *outside;
} matrix;

static void note_origin(matrix *o, int64_t mn, int64_t k, uint8_t origin)
{
    if (origin == TCC_OUTSIDE)
        o->outside[mn] |= (uint16_t)(1 << k);
    else if (origin == TCC_OF_TENSOR && o->v[mn * K + k] != 0)
        o->of_tensor[mn] |= (uint16_t)(1 << k);
}

/* Makes what nobody has written of a chunk's numbers, `step` apart, poison. */
static void find_unwritten(tcc_thread *t, const tcc_inst *in, int64_t address, double *v,
                           int64_t step)
{
    tcc_cta *cta = t->warp->cta;
    for (int64_t e = 0; e < PER_CHUNK; e++) {
        int64_t at = address + e * ELEM_BYTES;
        if (tcc_smem_is_written(cta, at, ELEM_BYTES))
            continue;
        v[e * step] = tcc_poison();
        tcc_smem_read_unwritten(cta, in->op, t->warp, at);
    }
}

/* Reads rows `first` … `first + n` along m or n and all K of an operand. */
static bool read_operand(tcc_thread *t, const tcc_inst *in, const tcc_descriptor *d, int64_t first,
                         int64_t n, tcc_scalar elem, matrix *out)
{
    tcc_cta *cta = t->warp->cta;
    tcc_accessor by = tcc_warp_accessor(t, t->mask);
    by.actor = tcc_actor_mmas(cta, t->id);
    by.clock = t->committed + 1;
    by.async = true;
    int64_t rows = d->mn_major ? K : n, chunks = (d->mn_major ? n : K) / PER_CHUNK;
    int64_t first_row = d->mn_major ? 0 : first, first_chunk = d->mn_major ? first / PER_CHUNK : 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < chunks; c++) {
            int64_t address = tcc_descriptor_chunk(d, first_row + r, first_chunk + c);
            const uint8_t *bytes =
                tcc_smem_at(cta, in->op, address, TCC_CHUNK_BYTES, TCC_CHUNK_BYTES);
            if (!bytes || !tcc_smem_read(cta, in->op, &by, address, TCC_CHUNK_BYTES))
                return false;
            int64_t step = d->mn_major ? K : 1;
            double *v = out->v + (d->mn_major ? c * PER_CHUNK * K + r : r * K + c * PER_CHUNK);
            uint16_t bits[PER_CHUNK];
            memcpy(bits, bytes, sizeof bits);
            for (int64_t e = 0; e < PER_CHUNK; e++)
                v[e * step] = tcc_decode(bits[e], elem).f;
            if (!tcc_smem_is_written(cta, address, TCC_CHUNK_BYTES))
                find_unwritten(t, in, address, v, step);
            for (int64_t e = 0; e < PER_CHUNK && cta->cluster->any_outside; e++)
                note_origin(out, d->mn_major ? c * PER_CHUNK + e : r,
                            d->mn_major ? r : c * PER_CHUNK + e,
                            tcc_smem_origin(cta, address + e * ELEM_BYTES));
        }
    return true;
}

static double dot(const double *a, const double *b)
{
    enum { LANES = 4 }; /* independent sums, so that additions need not wait for another */
    double sums[LANES] = {0};
    for (int k = 0; k < K; k += LANES)
        for (int l = 0; l < LANES; l++)
            sums[l] += a[k + l] * b[k + l];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Of the rows of one warp. */
static void multiply(tcc_thread *t, const tcc_inst *in, const matrix *a, const matrix *b, int64_t n,
                     bool add)
{
    const tcc_cell *acc = tcc_cells(t, in->operands[0]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    const tcc_fragment *d = &tcc_fragments[TCC_FRAGMENT_wgmma_d];
    tcc_place of_lane[TCC_WARP_LANES]; /* a place is the sum of the lane's and the element's */
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        of_lane[l] = tcc_fragment_place(d, 0, l, 0);
    for (int64_t e = 0; e < n / 2; e++) {
        tcc_place of_element = tcc_fragment_place(d, (unsigned)e, 0, 0);
        for (int l = 0; l < TCC_WARP_LANES; l++) {
            unsigned row = of_lane[l].row + of_element.row, col = of_lane[l].col + of_element.col;
            size_t i = (size_t)(e * TCC_WARP_LANES + l);
            double sum = dot(a->v + row * K, b->v + col * K) + (add ? acc[i].f : 0);
            bool outside =
                (a->outside[row] & b->of_tensor[col]) || (b->outside[col] & a->of_tensor[row]);
            r[i].f = outside ? tcc_poison() : tcc_round_float(sum, TCC_f32);
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
    TCC_WRONG(t->x, in->op, "issues another MMA than its warpgroup");
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

/* MMAs of one shape are done in order; those of another are to be waited for and fenced. */
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

/* Issues what both forms of an MMA have in common: A is in a, of this warp's rows. */
static tcc_outcome issue(tcc_thread *t, const tcc_inst *in, tcc_scalar elem, const matrix *a)
{
    const tcc_attrs *attrs = &in->op->attrs;
    int64_t n = tcc_attr_int(attrs, "n", 8);
    bool add = tcc_lane_int(t, in, 3, 0);
    tcc_descriptor db;
    double v[MAX_N * K];
    uint16_t of_tensor[MAX_N] = {0}, outside[MAX_N] = {0};
    matrix b = {v, of_tensor, outside};
    if (n > MAX_N)
        return TCC_WRONG(t->x, in->op, "no MMA with n = %lld", (long long)n);
    if (!decode(t->x, in->op, tcc_lane_int(t, in, 2, 0), tcc_attr_int(attrs, "trans_b", 0), &db) ||
        !accumulators_ready(t, in, n) || !read_operand(t, in, &db, 0, n, elem, &b))
        return TCC_FAILED;
    multiply(t, in, a, &b, n, add);
    t->warp->open_group = true;
    t->regs[in->results[0]] = (tcc_reg){.defined = t->steps,
                                        .mma = t->committed + 1,
                                        .issue = (uint32_t)t->warp->issued,
                                        .shape = (int32_t)n,
                                        .by_mma = true};
    return TCC_NEXT;
}

/* The element type of an MMA whose operands from `first` on are ready; false, reported. */
static bool begin(tcc_thread *t, const tcc_inst *in, unsigned first, tcc_scalar *elem)
{
    const char *type = tcc_attr_str(&in->op->attrs, "type", "f16");
    if (!tcc_converged(t, in))
        return false;
    for (unsigned o = 1; o < 4; o++) {
        bool shared = o < first && t->regs[in->operands[o]].is_a; /* another takes its A from it */
        if ((!shared && !tcc_readable(t, in, o)) ||
            (o >= first && !tcc_is_uniform(t, in, o, o == 3 ? "scale_d" : "descriptors")))
            return false;
    }
    if (tcc_scalar_find(type, strlen(type), elem))
        return true;
    TCC_WRONG(t->x, in->op, "no MMA of %s", type);
    return false;
}

tcc_outcome tcc_eval_nvvm_wgmma(tcc_thread *t, const tcc_inst *in)
{
    tcc_scalar elem;
    tcc_descriptor da;
    double v[WARP_ROWS * K];
    uint16_t of_tensor[WARP_ROWS] = {0}, outside[WARP_ROWS] = {0};
    matrix a = {v, of_tensor, outside};
    int64_t first_row = t->id % TCC_WARPGROUP_WARPS * WARP_ROWS;
    if (!begin(t, in, 1, &elem) ||
        !decode(t->x, in->op, tcc_lane_int(t, in, 1, 0), tcc_attr_int(&in->op->attrs, "trans_a", 0),
                &da) ||
        !same_in_all_warps(t, in, false) ||
        !read_operand(t, in, &da, first_row, WARP_ROWS, elem, &a))
        return TCC_FAILED;
    return issue(t, in, elem, &a);
}

/* ---- A in registers -------------------------------------------------------------------- */

static void unpack_a(const tcc_thread *t, const tcc_inst *in, tcc_scalar elem, double *a)
{
    const tcc_cell *words = tcc_cells(t, in->operands[1]);
    const tcc_fragment *f = &tcc_fragments[TCC_FRAGMENT_wgmma_a];
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        for (unsigned e = 0; e < tcc_fragment_elements(f, l); e++) {
            uint64_t word = (uint64_t)words[e / 2 * TCC_WARP_LANES + l].i;
            tcc_place at = tcc_fragment_place(f, e, l, 0);
            a[at.row * K + at.col] = tcc_decode(word >> 16 * (e % 2) & 0xffff, elem).f;
        }
}

tcc_outcome tcc_eval_nvvm_wgmma_a(tcc_thread *t, const tcc_inst *in)
{
    tcc_scalar elem;
    double v[WARP_ROWS * K];
    uint16_t none[WARP_ROWS] = {0};
    const matrix a = {v, none, none};
    unsigned registers = t->x->program->values[in->operands[1]].registers;
    if (!begin(t, in, 2, &elem) || !fenced(t, in, 1, registers, "registers of A") ||
        !same_in_all_warps(t, in, true))
        return TCC_FAILED;
    unpack_a(t, in, elem, v);
    tcc_outcome outcome = issue(t, in, elem, &a);
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
                  "through: others may have taken their place while it read them");
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

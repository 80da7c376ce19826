/* loads: which bytes a warp's loads and stores access, lane by lane, or all lanes together.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/fragment.h"

/* ---- lanes ----------------------------------------------------------------------------- */

/* Which bytes the lanes of a mask access; false, reported, when that is not known, or not right. further: they have
 * lines of what the first says the address of, so many bytes behind each other; 0: each has its own. */
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

/* ---- ops ----------------------------------------------------------------------------- */

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
    const tcc_pvalue *at = tcc_p_slot(p, s, warp, in->operands[0]);
    for (unsigned l = 0; l < p->n_lanes; l++) {
        int64_t address;
        bool writes = s->warps[warp].mask >> l & 1 && tcc_p_lane(p, at, l, &address);
        int64_t cta = writes ? tcc_p_cta_at(address - TCC_SMEM_BASE) : -1;
        if (cta >= 0 && cta < p->ctas && cta != tcc_p_cta(p, warp)) /* else something is wrong with it */
            s->reaches[(size_t)cta * p->n_warps + warp] = tcc_p_clocks(p, s, warp)[warp];
    }
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
    const tcc_pvalue *at = tcc_p_slot(p, s, warp, in->operands[0]);
    return find_lanes(p, s, warp, in, at, bytes, alignment_of(bytes), 0, mask, lanes, n);
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

/* A warp's lanes access lines of a matrix together, aligned as what a lane has of its fragment (PTX ISA, "Matrix
 * Storage for WMMA"). */
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

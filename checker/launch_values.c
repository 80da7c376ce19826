/* launch_values: what ops give: numbers of threads and what is computed from them and from sizes. What comes from
 * memory or other lanes is unknown.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/launch.h"

/* In lanes that do not run, operands are anything. */
static bool divides_by_zero(const tcc_lwarp *w, const tcc_linst *in)
{
    for (unsigned l = 0; l < w->l->lanes; l++)
        if (w->mask >> l & 1 && tcc_launch_int(w, in->operands[1], l) == 0)
            return true;
    return false;
}

static bool elementwise(tcc_lwarp *w, const tcc_linst *in)
{
    tcc_elements e = {.op = in->op, .r = tcc_launch_cells(w, in->results[0]), .n = 1};
    tcc_lknown known = TCC_L_UNIFORM;
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        tcc_lknown of = w->known[in->operands[i]];
        known = !of || !known ? TCC_L_UNKNOWN : of > known ? of : known;
        e.a[i] = tcc_launch_cells(w, in->operands[i]);
        e.step[i] = of == TCC_L_VARYING;
    }
    w->known[in->results[0]] = (uint8_t)known;
    if (!known)
        return true;
    if (in->divides && divides_by_zero(w, in))
        return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, in->op, "%s divides by zero",
                                   tcc_op_info_get(in->op->code)->name);
    e.n = known == TCC_L_VARYING ? w->l->lanes : 1;
    if (!tcc_elementwise(&e, true))
        w->known[in->results[0]] = TCC_L_UNKNOWN;
    return true;
}

/* first + the lane's number */
static void give_lanes(tcc_lwarp *w, const tcc_linst *in, int64_t first)
{
    tcc_cell *cells = tcc_launch_cells(w, in->results[0]);
    for (unsigned l = 0; l < w->l->lanes; l++)
        cells[l].i = first + l;
    w->known[in->results[0]] = TCC_L_VARYING;
}

static void elect(tcc_lwarp *w, const tcc_linst *in)
{
    tcc_cell *cells = tcc_launch_cells(w, in->results[0]);
    for (unsigned l = 0; l < w->l->lanes; l++)
        cells[l].i = l == tcc_launch_first_lane(w);
    w->known[in->results[0]] = TCC_L_VARYING;
}

/* A buffer is its parameter's number, the byte in it, and how many bytes. */
static void make_buffer(tcc_lwarp *w, const tcc_linst *in)
{
    tcc_cell *cells = tcc_launch_cells(w, in->results[0]);
    bool known = true;
    for (unsigned i = 0; i < 3; i++) {
        known &= w->known[in->operands[i]] != TCC_L_UNKNOWN;
        cells[i].i = tcc_launch_int(w, in->operands[i], tcc_launch_first_lane(w));
    }
    w->known[in->results[0]] = known ? TCC_L_VARYING : TCC_L_UNKNOWN;
}

/* Of the first lane, or of all. */
static void pass_on(tcc_lwarp *w, const tcc_linst *in)
{
    bool known = w->known[in->operands[0]] != TCC_L_UNKNOWN;
    tcc_launch_give(w, in, tcc_launch_int(w, in->operands[0], tcc_launch_first_lane(w)));
    w->known[in->results[0]] = known ? TCC_L_UNIFORM : TCC_L_UNKNOWN;
}

bool tcc_launch_compute(tcc_lwarp *w, const tcc_linst *in)
{
    const tcc_launch *l = w->l;
    if (in->computes)
        return elementwise(w, in);
    switch (in->op->code) {
    case TCC_OP_nvvm_tid:
    case TCC_OP_amdgcn_tid: give_lanes(w, in, (int64_t)w->id * l->lanes); break;
    case TCC_OP_amdgcn_lane: give_lanes(w, in, 0); break;
    case TCC_OP_nvvm_ctaid:
    case TCC_OP_amdgcn_wgid: tcc_launch_give(w, in, w->cta); break;
    case TCC_OP_nvvm_nctaid: tcc_launch_give(w, in, l->n_ctas); break;
    case TCC_OP_nvvm_clusterid: tcc_launch_give(w, in, w->cta / l->cluster); break;
    case TCC_OP_nvvm_nclusterid: tcc_launch_give(w, in, l->n_ctas / l->cluster); break;
    case TCC_OP_nvvm_cluster_ctarank: tcc_launch_give(w, in, w->rank); break;
    case TCC_OP_nvvm_phase:
    case TCC_OP_nvvm_smem_base:
    case TCC_OP_amdgcn_lds_base: tcc_launch_give(w, in, 0); break;
    case TCC_OP_nvvm_uniform:
    case TCC_OP_nvvm_opaque:
    case TCC_OP_nvvm_after:
    case TCC_OP_amdgcn_readfirstlane: pass_on(w, in); break;
    case TCC_OP_nvvm_elect: elect(w, in); break;
    case TCC_OP_nvvm_mapa: tcc_launch_map_word(w, in); break;
    case TCC_OP_amdgcn_make_buffer: make_buffer(w, in); break;
    default:
        for (unsigned i = 0; i < in->op->n_results; i++)
            if (in->results[i] >= 0)
                w->known[in->results[i]] = TCC_L_UNKNOWN;
    }
    return true;
}

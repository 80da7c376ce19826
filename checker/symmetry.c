/* symmetry: CTAs of a cluster that do the same, of which one is followed.
 *
 * Let a group of permutations act on the CTAs of a cluster, such that exactly one of them takes CTA 0 to each CTA. If
 * every CTA runs the code of CTA 0 on its own shared memory, and the CTAs to which it copies and in which it arrives
 * are the images of CTA 0's, then executions in which corresponding warps take their steps in turn lead through
 * states that the permutations do not change. Such a state is determined by what is in CTA 0 and what its warps and
 * barriers know, so only CTA 0 is followed. docs/protocol-checker.md has the argument.
 *
 * Whether this holds is computed: in other CTAs each slot holds the same number, an address as many windows further,
 * or something else, and ops use something else only where it does not matter or is checked. What a warp does in
 * another CTA its image does (images.c).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/symmetry.h"

/* ---- the group ------------------------------------------------------------------------- */

static uint64_t act_on_mask(const tcc_protocol *p, const symmetry *y, unsigned g, uint64_t ctas)
{
    uint64_t to = 0;
    for (unsigned c = 0; c < p->ctas; c++)
        to |= (ctas >> c & 1) << act(p, y, g, c);
    return to;
}

/* ---- what slots hold in other CTAs ------------------------------------------------------ */

static const tcc_pvalue *fixed_value(const tcc_protocol *p, unsigned warp, uint32_t fixed)
{
    return &p->fixed_values[(size_t)warp * p->n_fixed + fixed];
}

static bool is_shifted(const tcc_protocol *p, const tcc_pvalue *v, const tcc_pvalue *in_other, int64_t by)
{
    bool shifted = true;
    int64_t a, b;
    for (unsigned l = 0; l < p->n_lanes && shifted; l++)
        shifted = tcc_p_lane(p, v, l, &a) && tcc_p_lane(p, in_other, l, &b) && b - a == by;
    return shifted;
}

static kind kind_of_fixed(const tcc_protocol *p, uint32_t fixed)
{
    bool same = true, shifted = true;
    for (unsigned w = 0; w < p->cta_warps; w++)
        for (unsigned c = 1; c < p->ctas; c++) {
            const tcc_pvalue *v = fixed_value(p, w, fixed), *other = fixed_value(p, w + c * p->spread, fixed);
            same = same && !memcmp(v, other, sizeof *v);
            shifted = shifted && is_shifted(p, v, other, (int64_t)c * TCC_P_WINDOW);
        }
    return same ? SAME : shifted ? SHIFTED : OTHER;
}

/* A slot may hold this, too; true when that is new. */
static bool add_kind(symmetry *y, uint32_t slot, kind k)
{
    if (slot >= TCC_P_FIXED || k == UNSET || y->kinds[slot] == k || y->kinds[slot] == OTHER)
        return false;
    y->kinds[slot] = y->kinds[slot] == UNSET ? k : OTHER;
    return true;
}

/* Whether a slot holds a number whose bits say nothing of a window. */
static bool masks_window(const tcc_protocol *p, uint32_t slot)
{
    const tcc_pvalue *v = slot < TCC_P_FIXED || slot == TCC_P_NO_SLOT ? NULL : fixed_value(p, 0, slot - TCC_P_FIXED);
    return v && tcc_p_is_exact(v) && v->v >= 0 && v->v < TCC_P_WINDOW;
}

/* What an op gives that nothing but its operands decides. */
static kind kind_given(const tcc_protocol *p, const symmetry *y, const tcc_pinst *in)
{
    const tcc_op *op = in->op;
    unsigned n[OTHER + 1] = {0};
    for (unsigned i = 0; i < op->n_operands; i++)
        n[kind_of(y, in->operands[i])]++;
    if (n[UNSET])
        return UNSET;
    switch (op->code) {
    case TCC_OP_nvvm_smem_base: return SHIFTED;
    case TCC_OP_nvvm_cluster_ctarank:
    case TCC_OP_nvvm_ctaid:
    case TCC_OP_nvvm_mapa: return OTHER;
    case TCC_OP_nvvm_uniform:
    case TCC_OP_nvvm_after:
    case TCC_OP_nvvm_opaque: return kind_of(y, in->operands[0]);
    case TCC_OP_arith_add:
        if (n[SHIFTED] == 1 && n[SAME] == 1)
            return SHIFTED;
        break;
    case TCC_OP_arith_sub:
        if (n[SAME] == 1 && kind_of(y, in->operands[0]) == SHIFTED)
            return SHIFTED;
        break;
    case TCC_OP_arith_and:
        if (n[SHIFTED] == 1 && (masks_window(p, in->operands[0]) || masks_window(p, in->operands[1])))
            return SAME;
        break;
    default: break;
    }
    return n[SHIFTED] || n[OTHER] ? OTHER : SAME;
}

static bool find_kinds(const tcc_protocol *p, symmetry *y, const tcc_pcode *code);

/* Results are what the ends of regions hand on; what a loop carries is that, too, and what it begins with. */
static bool find_kinds_inside(const tcc_protocol *p, symmetry *y, const tcc_pinst *in)
{
    bool loop = in->op->code == TCC_OP_scf_for, changed = false;
    for (unsigned r = 0; r < in->op->n_regions; r++) {
        const tcc_pcode *code = &in->regions[r];
        const tcc_pinst *last = code->n ? &code->insts[code->n - 1] : NULL;
        bool yields = last && last->op->code == TCC_OP_scf_yield;
        if (loop && code->n_args)
            changed |= add_kind(y, code->args[0], SAME);
        for (unsigned i = 0; i < in->op->n_results; i++) {
            kind k = yields ? kind_of(y, last->operands[i]) : UNSET;
            if (loop) {
                changed |= add_kind(y, code->args[1 + i], kind_of(y, in->operands[3 + i]));
                changed |= add_kind(y, code->args[1 + i], k);
                k = kind_of(y, code->args[1 + i]);
            }
            changed |= add_kind(y, in->results[i], k);
        }
        changed |= find_kinds(p, y, code);
    }
    return changed;
}

/* True when something was found. */
static bool find_kinds(const tcc_protocol *p, symmetry *y, const tcc_pcode *code)
{
    bool changed = false;
    for (size_t i = 0; i < code->n; i++) {
        const tcc_pinst *in = &code->insts[i];
        if (in->op->n_regions) {
            changed |= find_kinds_inside(p, y, in);
            continue;
        }
        bool followed = tcc_op_does(in->op->code, TCC_P_FOLLOWED & ~TCC_LANES);
        for (unsigned r = 0; r < in->op->n_results; r++) {
            changed |= add_kind(y, in->results[r], followed ? SAME : kind_given(p, y, in));
            if (in->results[r] < TCC_P_FIXED)
                y->by[in->results[r]] = in;
        }
    }
    return changed;
}

/* ---- what ops do with that --------------------------------------------------------------- */

typedef enum role { EQUAL, ADDRESS, ANY, BOX, CTAS, FAR } role;

enum { ROLES = 5, MAX_OPS = 6 };

/* Ops that are followed; operands after these have the last role. */
static const struct {
    tcc_opcode code;
    uint8_t roles[ROLES];
} known[] = {
    {TCC_OP_nvvm_mbarrier_init, {ADDRESS, EQUAL}},
    {TCC_OP_nvvm_mbarrier_arrive, {ADDRESS}},
    {TCC_OP_nvvm_mbarrier_arrive_expect_tx, {ADDRESS, EQUAL}},
    {TCC_OP_nvvm_mbarrier_wait, {ADDRESS, EQUAL}},
    {TCC_OP_nvvm_fence_mbarrier_init, {0}},
    {TCC_OP_nvvm_fence_proxy_async, {0}},
    {TCC_OP_nvvm_warp_sync, {0}},
    {TCC_OP_nvvm_barrier, {EQUAL, EQUAL}},
    {TCC_OP_nvvm_setmaxnreg, {0}},
    {TCC_OP_nvvm_cluster_arrive, {0}},
    {TCC_OP_nvvm_cluster_wait, {0}},
    {TCC_OP_nvvm_tma_load, {ADDRESS, EQUAL, ADDRESS, ANY, ANY}},
    {TCC_OP_nvvm_tma_store, {ADDRESS, EQUAL, ANY, ANY, ANY}},
    {TCC_OP_nvvm_bulk_commit, {0}},
    {TCC_OP_nvvm_bulk_wait, {0}},
    {TCC_OP_nvvm_wgmma, {EQUAL}},
    {TCC_OP_nvvm_wgmma_a, {EQUAL}},
    {TCC_OP_nvvm_wgmma_fence, {0}},
    {TCC_OP_nvvm_wgmma_commit, {0}},
    {TCC_OP_nvvm_wgmma_wait, {EQUAL}},
    {TCC_OP_nvvm_ldmatrix, {ADDRESS}},
    {TCC_OP_nvvm_stmatrix, {ADDRESS, ANY}},
    {TCC_OP_nvvm_ld_shared, {ADDRESS}},
    {TCC_OP_nvvm_st_shared, {ADDRESS, ANY}},
    {TCC_OP_nvvm_tma_load_multicast, {BOX, EQUAL, ADDRESS, CTAS, ANY}},
    {TCC_OP_nvvm_mbarrier_arrive_cluster, {FAR}},
    {TCC_OP_nvvm_mbarrier_arrive_expect_tx_cluster, {FAR, EQUAL}},
};

static const uint8_t *roles_of(tcc_opcode code)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return known[i].roles;
    return NULL;
}

/* Whether a fixed number, a CTA or a mask of several, is in each CTA what becomes of CTA 0's. */
static bool is_permuted(const tcc_protocol *p, const symmetry *y, uint32_t slot, bool mask)
{
    bool is = slot >= TCC_P_FIXED && slot != TCC_P_NO_SLOT;
    int64_t end = mask ? INT64_C(1) << p->ctas : p->ctas;
    for (unsigned w = 0; w < p->cta_warps && is; w++)
        for (unsigned g = 0; g < p->ctas && is; g++) {
            const tcc_pvalue *v = fixed_value(p, w, slot - TCC_P_FIXED);
            const tcc_pvalue *other = fixed_value(p, w + g * p->spread, slot - TCC_P_FIXED);
            is = tcc_p_is_exact(v) && tcc_p_is_exact(other) && v->v >= 0 && v->v < end &&
                 other->v == (int64_t)(mask ? act_on_mask(p, y, g, (uint64_t)v->v) : act(p, y, g, (unsigned)v->v));
        }
    return is;
}

/* Whether a slot can be computed for another CTA from those of CTA 0, by a chain of at most `most` ops. */
static bool can_compute(const symmetry *y, uint32_t slot, unsigned most)
{
    kind k = kind_of(y, slot);
    const tcc_pinst *in = slot < TCC_P_FIXED ? y->by[slot] : NULL;
    bool can = k == SAME || k == SHIFTED || (slot >= TCC_P_FIXED && slot != TCC_P_NO_SLOT);
    if (can || !in || !in->given || !most)
        return can;
    can = true;
    for (unsigned i = 0; i < in->op->n_operands && can; i++)
        can = can_compute(y, in->operands[i], most - 1);
    return can;
}

static bool fits(const tcc_protocol *p, const symmetry *y, const tcc_pinst *in, unsigned operand, role r)
{
    uint32_t slot = in->operands[operand];
    const tcc_pinst *by = slot < TCC_P_FIXED ? y->by[slot] : NULL;
    switch (r) {
    case EQUAL: return kind_of(y, slot) == SAME;
    case ADDRESS: return kind_of(y, slot) == SHIFTED;
    case BOX: return can_compute(y, slot, MAX_OPS);
    case CTAS: return is_permuted(p, y, slot, true);
    case FAR:
        return by && by->op->code == TCC_OP_nvvm_mapa && kind_of(y, by->operands[0]) == SHIFTED &&
               is_permuted(p, y, by->operands[1], false);
    case ANY: break;
    }
    return true;
}

static bool all_fit(const tcc_protocol *p, const symmetry *y, const tcc_pcode *code)
{
    bool fit = true;
    for (size_t i = 0; i < code->n && fit; i++) {
        const tcc_pinst *in = &code->insts[i];
        bool followed = tcc_op_does(in->op->code, TCC_P_FOLLOWED & ~TCC_LANES);
        unsigned decide = in->op->code == TCC_OP_scf_for ? 3 : in->op->code == TCC_OP_scf_if;
        const uint8_t *roles = roles_of(in->op->code);
        fit = !in->tensor && (!followed || roles || in->op->n_regions || in->op->code == TCC_OP_scf_yield);
        for (unsigned o = 0; o < decide && fit; o++)
            fit = kind_of(y, in->operands[o]) == SAME;
        for (unsigned o = 0; roles && o < in->op->n_operands && fit; o++)
            fit = fits(p, y, in, o, (role)roles[o < ROLES ? o : ROLES - 1]);
        for (unsigned r = 0; r < in->op->n_regions && fit; r++)
            fit = all_fit(p, y, &in->regions[r]);
    }
    return fit;
}

/* ---- whether there is one -------------------------------------------------------------- */

static bool is_power_of_two(unsigned n)
{
    return !(n & (n - 1));
}

void tcc_p_symmetry_find(tcc_protocol *p)
{
    if (p->ctas < 2 || p->follows || p->groups)
        return;
    symmetry *y = TCC_NEW(p->scratch, symmetry);
    y->kinds = TCC_NEW_ARRAY(p->scratch, uint8_t, p->n_slots + 1);
    y->fixed = TCC_NEW_ARRAY(p->scratch, uint8_t, p->n_fixed + 1);
    y->by = TCC_NEW_ARRAY(p->scratch, const tcc_pinst *, p->n_slots + 1);
    for (uint32_t i = 0; i < p->n_fixed; i++)
        y->fixed[i] = (uint8_t)kind_of_fixed(p, i);
    for (size_t i = 0; i < p->body.n_args; i++)
        add_kind(y, p->body.args[i], SAME);
    while (find_kinds(p, y, &p->body))
        ;
    bool fit = is_power_of_two(p->ctas) && all_fit(p, y, &p->body);
    if (!fit) {
        y->rotates = true;
        fit = all_fit(p, y, &p->body);
    }
    if (!fit)
        return;
    tcc_p_find_images(p, y);
    p->symmetry = y;
    p->n_followed = p->spread;
}

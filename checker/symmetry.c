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
 * another CTA its image, the corresponding warp of a third, does in CTA 0: for the duration of the op the image's
 * clocks are those of this warp, permuted.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

/* What a slot of CTA 0 holds in another CTA. */
typedef enum kind {
    UNSET,
    SAME,
    SHIFTED, /* an address: as many windows further */
    OTHER
} kind;

struct tcc_psymmetry {
    bool rotates; /* CTAs are permuted by addition, else by exclusive or */
    uint8_t *kinds; /* of each slot that is not fixed; */
    uint8_t *fixed; /* of each fixed one */
    const tcc_pinst **by; /* of each slot that is not fixed: the op that gives it; NULL: a block's argument */
    uint32_t *image[TCC_P_CTAS]; /* by what takes CTA 0 to which CTA: where each clock of an entity goes */
    uint32_t *home;              /* the clock of CTA 0 that corresponds to each */
    uint32_t *told;              /* what an image knows, before it is permuted */
};
typedef struct tcc_psymmetry symmetry;

/* ---- the group ------------------------------------------------------------------------- */

/* Where a CTA goes under the permutation that takes CTA 0 to CTA g. */
static unsigned act(const tcc_protocol *p, const symmetry *y, unsigned g, unsigned cta)
{
    return y->rotates ? (cta + g) % p->ctas : cta ^ g;
}

/* The CTA to which CTA 0 goes where `cta` goes to CTA 0. */
static unsigned image_of(const tcc_protocol *p, const symmetry *y, unsigned cta)
{
    return y->rotates ? (p->ctas - cta) % p->ctas : cta;
}

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

/* A value that is not needed is the same everywhere. */
static kind kind_of(const symmetry *y, uint32_t slot)
{
    return slot == TCC_P_NO_SLOT  ? SAME
           : slot < TCC_P_FIXED ? (kind)y->kinds[slot]
                                : (kind)y->fixed[slot - TCC_P_FIXED];
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

/* ---- clocks ---------------------------------------------------------------------------- */

/* Finds where the clocks of n actors of each CTA go, one CTA's behind the other's. */
static void permute(const tcc_protocol *p, symmetry *y, unsigned first, unsigned n)
{
    for (unsigned g = 0; g < p->ctas; g++)
        for (unsigned c = 0; c < p->ctas; c++)
            for (unsigned i = 0; i < n; i++)
                y->image[g][first + c * n + i] = first + act(p, y, g, c) * n + i;
}

/* mbarriers of all CTAs that correspond have neighbouring numbers. */
static void permute_barriers(const tcc_protocol *p, symmetry *y)
{
    unsigned first = tcc_p_barrier_actor(p, 0);
    for (unsigned g = 0; g < p->ctas; g++)
        for (unsigned b = 0; b < p->max_barriers; b++)
            y->image[g][first + b] = first + b - b % p->ctas + act(p, y, g, b % p->ctas);
}

static void find_images(const tcc_protocol *p, symmetry *y)
{
    unsigned n_of_warps = 1u + p->stores + p->writes;
    y->home = TCC_NEW_ARRAY(p->scratch, uint32_t, p->stride);
    y->told = TCC_NEW_ARRAY(p->scratch, uint32_t, p->stride);
    for (unsigned g = 0; g < p->ctas; g++) {
        y->image[g] = TCC_NEW_ARRAY(p->scratch, uint32_t, p->stride);
        for (unsigned i = 0; i < p->stride; i++)
            y->image[g][i] = i;
    }
    for (unsigned k = 0; k < n_of_warps; k++)
        permute(p, y, k * p->n_warps, p->spread);
    permute(p, y, tcc_p_mma_actor(p, 0), p->spread / TCC_WARPGROUP_WARPS);
    permute_barriers(p, y);
    permute(p, y, tcc_p_named_actor(p, 0), p->cta_named);
    permute(p, y, p->n_actors, p->spread);
    permute(p, y, p->n_actors + p->n_warps, p->spread);
    for (unsigned i = 0; i < p->stride; i++) {
        y->home[i] = i;
        for (unsigned g = 0; g < p->ctas; g++)
            y->home[i] = y->image[g][i] < y->home[i] ? y->image[g][i] : y->home[i];
    }
}

bool tcc_p_is_followed_entity(const tcc_protocol *p, unsigned entity)
{
    unsigned named = tcc_p_named(p, 0);
    return entity < p->n_warps ? entity < p->n_followed
           : entity < named  ? tcc_p_is_followed_barrier(p, (entity - p->n_warps) / 2)
                             : entity >= p->n_entities || tcc_p_is_followed_named(p, entity - named);
}

unsigned tcc_p_home_clock(const tcc_protocol *p, unsigned clock)
{
    return p->symmetry ? p->symmetry->home[clock] : clock;
}

void tcc_p_symmetry_common(const tcc_protocol *p, uint32_t *common)
{
    for (unsigned i = 0; p->symmetry && i < p->stride; i++) {
        uint32_t *least = &common[p->symmetry->home[i]];
        *least = common[i] < *least ? common[i] : *least;
    }
    for (unsigned i = 0; p->symmetry && i < p->stride; i++)
        common[i] = common[p->symmetry->home[i]];
}

/* ---- images ---------------------------------------------------------------------------- */

static bool know_the_same(const tcc_pstate *s, unsigned warp, tcc_lane_mask lanes)
{
    bool same = true;
    for (unsigned i = 0; i < s->n_parts && same; i++)
        same = s->parts[i].warp != warp || !(s->parts[i].lanes & lanes) || !(lanes & ~s->parts[i].lanes);
    return same;
}

/* Puts what lanes of a warp know into their image, for what they do in CTA `cta`. */
static unsigned put_image(tcc_protocol *p, tcc_pstate *s, unsigned warp, tcc_lane_mask lanes, unsigned cta)
{
    symmetry *y = p->symmetry;
    unsigned g = image_of(p, y, cta), image = warp + g * p->spread;
    uint32_t *row = tcc_p_seen(p, s, image);
    memset(row, 0, p->stride * sizeof *row);
    tcc_p_tell(p, s, warp, lanes, image);
    memcpy(y->told, row, p->stride * sizeof *row);
    for (unsigned i = 0; i < p->stride; i++)
        row[y->image[g][i]] = y->told[i];
    s->warps[image] = (tcc_pwarp){.mask = lanes, .waits_at = -1, .synced = row[image]};
    return image;
}

/* A slot's value in the CTA of an image. */
static tcc_pvalue compute(tcc_protocol *p, const tcc_pstate *s, unsigned warp, unsigned image, uint32_t slot)
{
    tcc_pvalue v = *tcc_p_slot(p, s, slot < TCC_P_FIXED ? warp : image, slot), args[3] = {0};
    kind k = kind_of(p->symmetry, slot);
    if (slot >= TCC_P_FIXED || k == SAME)
        return v;
    if (k == SHIFTED) {
        if (tcc_p_is_exact(&v))
            return tcc_p_known(v.v + tcc_p_window(p, image));
        return (tcc_pvalue){.kind = TCC_P_UNKNOWN};
    }
    const tcc_pinst *in = p->symmetry->by[slot];
    for (unsigned i = 0; i < in->op->n_operands; i++)
        args[i] = compute(p, s, warp, image, in->operands[i]);
    return tcc_p_compute(p, in->op, args);
}

static void set_slot(const tcc_protocol *p, tcc_pstate *s, unsigned image, uint32_t slot, tcc_pvalue v)
{
    if (slot < TCC_P_FIXED)
        *tcc_p_slot(p, s, image, slot) = v;
}

/* Nothing is left of it. */
static void forget_image(const tcc_protocol *p, tcc_pstate *s, unsigned image, const tcc_pinst *in)
{
    for (unsigned i = 0; i < in->op->n_operands; i++)
        set_slot(p, s, image, in->operands[i], (tcc_pvalue){0});
    set_slot(p, s, image, in->counter, (tcc_pvalue){0});
    memset(tcc_p_seen(p, s, image), 0, p->stride * sizeof(uint32_t));
    s->versions[image] = 0; /* as at first */
    s->warps[image] = (tcc_pwarp){0};
}

static tcc_presult split_lanes(tcc_protocol *p, const tcc_pinst *in)
{
    return tcc_p_unsupported(p, in->op, "%s by lanes that know different things", tcc_op_info_get(in->op->code)->name);
}

tcc_presult tcc_p_arrive_by_image(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                                  tcc_phook *arrive)
{
    int64_t address, cta;
    if (!tcc_p_operand(p, s, warp, in, 0, &address))
        return TCC_P_FAILED;
    cta = tcc_p_cta_at(address - TCC_SMEM_BASE);
    if (!cta)
        return arrive(p, s, warp, in);
    if (!know_the_same(s, warp, s->warps[warp].mask))
        return split_lanes(p, in);
    unsigned image = put_image(p, s, warp, s->warps[warp].mask, (unsigned)cta);
    set_slot(p, s, image, in->operands[0], tcc_p_known(address - cta * TCC_P_WINDOW));
    for (unsigned i = 1; i < in->op->n_operands; i++)
        set_slot(p, s, image, in->operands[i], *tcc_p_slot(p, s, warp, in->operands[i]));
    tcc_presult r = arrive(p, s, image, in);
    forget_image(p, s, image, in);
    tcc_p_tick(p, s, warp);
    return r;
}

tcc_presult tcc_p_load_by_image(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned lane,
                                unsigned cta,
                                void (*tell)(tcc_protocol *, tcc_pstate *, unsigned, tcc_lane_mask, unsigned))
{
    if (!cta)
        return tcc_p_load_to(p, s, warp, in, lane, 0, tell);
    unsigned image = put_image(p, s, warp, UINT64_C(1) << lane, cta);
    if (in->counter < TCC_P_FIXED)
        set_slot(p, s, image, in->counter, *tcc_p_slot(p, s, warp, in->counter));
    for (unsigned i = 0; i < 3; i++)
        set_slot(p, s, image, in->operands[i], compute(p, s, warp, image, in->operands[i]));
    tcc_presult r = tcc_p_load_to(p, s, image, in, lane, -tcc_p_window(p, image), tell);
    forget_image(p, s, image, in);
    return r;
}

void tcc_p_join_images(const tcc_protocol *p, tcc_pstate *s, unsigned to, unsigned warp)
{
    uint32_t *row = tcc_p_seen(p, s, to);
    const uint32_t *from = tcc_p_clocks(p, s, warp);
    for (unsigned g = 1; g < p->ctas; g++)
        for (unsigned i = 0; i < p->stride; i++) {
            uint32_t *at = &row[p->symmetry->image[g][i]];
            *at = from[i] > *at ? from[i] : *at;
        }
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
    find_images(p, y);
    p->symmetry = y;
    p->n_followed = p->spread;
}

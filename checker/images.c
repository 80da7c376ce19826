/* images: what a warp of CTA 0 does in another CTA, where that alone is followed (symmetry.c).
 *
 * What it does there its image, the corresponding warp of a third, does in CTA 0: for the duration of the op the
 * image's clocks are those of this warp, permuted.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/symmetry.h"

/* The CTA to which CTA 0 goes where `cta` goes to CTA 0. */
static unsigned image_of(const tcc_protocol *p, const symmetry *y, unsigned cta)
{
    return y->rotates ? (p->ctas - cta) % p->ctas : cta;
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

void tcc_p_find_images(const tcc_protocol *p, symmetry *y)
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

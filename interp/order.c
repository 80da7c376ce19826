/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"

tcc_order tcc_order_create(const tcc_cluster *k)
{
    tcc_arena *scratch = k->x->run->scratch;
    return (tcc_order){TCC_NEW_ARRAY(scratch, uint32_t, k->n_actors),
                       TCC_NEW_ARRAY(scratch, uint32_t, k->n_actors)};
}

void tcc_order_clear(const tcc_cluster *k, tcc_order *o)
{
    memset(o->seen, 0, k->n_actors * sizeof *o->seen);
    memset(o->fenced, 0, k->n_actors * sizeof *o->fenced);
}

/* For each CTA: warps, their copies' reads, their warpgroups' MMAs, the copies' writes, their
 * threads' copies, named barriers, mbarriers. */
static unsigned first_of(const tcc_cta *c)
{
    return c->rank * c->cluster->per_cta;
}

unsigned tcc_actor_warp(const tcc_cta *c, unsigned warp)
{
    return first_of(c) + warp;
}

unsigned tcc_actor_copies(const tcc_cta *c, unsigned warp)
{
    return first_of(c) + c->cluster->n_warps + warp;
}

unsigned tcc_actor_mmas(const tcc_cta *c, unsigned warp)
{
    return first_of(c) + 2 * c->cluster->n_warps + warp / TCC_WARPGROUP_WARPS;
}

unsigned tcc_actor_writes(const tcc_cta *c, unsigned warp)
{
    return first_of(c) + 3 * c->cluster->n_warps + warp;
}

unsigned tcc_actor_groups(const tcc_cta *c, unsigned warp)
{
    return first_of(c) + 4 * c->cluster->n_warps + warp;
}

unsigned tcc_actor_named(const tcc_cta *c, int64_t barrier)
{
    return first_of(c) + 5 * c->cluster->n_warps + (unsigned)barrier;
}

unsigned tcc_actor_mbarrier(const tcc_cta *c, size_t barrier)
{
    return tcc_actor_named(c, TCC_NAMED_BARRIERS) + (unsigned)barrier;
}

static void join(uint32_t *to, const uint32_t *from, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        to[i] = to[i] > from[i] ? to[i] : from[i];
}

/* Most of the mbarriers that a CTA can have it has not. */
void tcc_order_join(const tcc_cluster *k, tcc_order *to, const tcc_order *from)
{
    for (const tcc_cta *c = k->ctas; c < k->ctas + k->n_ctas; c++) {
        unsigned first = first_of(c), n = tcc_actor_mbarrier(c, c->n_mbarriers) - first;
        join(to->seen + first, from->seen + first, n);
        join(to->fenced + first, from->fenced + first, n);
    }
}

const char *tcc_actor_name(const tcc_cluster *k, unsigned actor)
{
    unsigned kind = actor % k->per_cta / k->n_warps;
    if (kind == 0)
        return tcc_warp_name(&k->ctas[actor / k->per_cta].warps[actor % k->per_cta]);
    return kind == 1 || kind == 3 ? "a copy to global memory"
           : kind == 2            ? "an MMA"
                                  : "a copy from global memory";
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"

tcc_order tcc_order_create(tcc_cta *c)
{
    tcc_arena *scratch = c->x->run->scratch;
    return (tcc_order){TCC_NEW_ARRAY(scratch, uint32_t, c->n_actors),
                       TCC_NEW_ARRAY(scratch, uint32_t, c->n_actors)};
}

void tcc_order_join(const tcc_cta *c, tcc_order *to, const tcc_order *from)
{
    for (unsigned a = 0; a < c->n_actors; a++) {
        if (from->seen[a] > to->seen[a])
            to->seen[a] = from->seen[a];
        if (from->fenced[a] > to->fenced[a])
            to->fenced[a] = from->fenced[a];
    }
}

void tcc_order_clear(const tcc_cta *c, tcc_order *o)
{
    memset(o->seen, 0, c->n_actors * sizeof *o->seen);
    memset(o->fenced, 0, c->n_actors * sizeof *o->fenced);
}

/* Warps, their copies, their warpgroups' products, mbarriers. */
unsigned tcc_actor_copies(const tcc_cta *c, unsigned warp)
{
    return c->n_warps + warp;
}

unsigned tcc_actor_products(const tcc_cta *c, unsigned warp)
{
    return 2 * c->n_warps + warp / TCC_WARPGROUP_WARPS;
}

unsigned tcc_actor_mbarrier(const tcc_cta *c, size_t barrier)
{
    return 3 * c->n_warps + (unsigned)barrier;
}

const char *tcc_actor_name(const tcc_cta *c, unsigned actor, tcc_arena *scratch)
{
    if (actor < c->n_warps)
        return tcc_arena_printf(scratch, "warp %u", actor);
    if (actor < 2 * c->n_warps)
        return "a copy to global memory";
    return actor < 3 * c->n_warps ? "a product" : "a copy from global memory";
}

/* counts: how often a loop inside a loop runs, where that does not depend on the outer one.
 *
 * A record is of one iteration of the outer loop. Its number could be another one in each, and at first it is taken
 * to be: states of different tiles then come to the same (covers.c). But it is the same, and where that is needed, the
 * number is data or tiles are drawn, it is kept. It matters where it is small: as long as a loop has not gone so many
 * rounds (SMALL), its states are told apart by how many, and what the number turns out to be then holds in all later
 * iterations of the outer loop. Of greater numbers only that they are greater is known: more is proven of them than is
 * needed.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

enum { SMALL_LEAST = 2, SMALL_MOST = 64 };

/* As many iterations as can be in flight: a stage has two phases to tell apart, of which a count that is data gives the
 * remainder, and two mbarriers in each CTA, but numbers that are drawn have mbarriers of their own. While errors are
 * reported more, since other mbarriers count as stages. */
static int64_t small(const tcc_protocol *p, const tcc_precord *r)
{
    int64_t phases = p->symbol_data ? p->symbol_data : p->keeps_counts ? tcc_p_rotation_period(p) : 0;
    int64_t n = p->spans && phases ? phases / 2 : p->max_barriers / p->ctas / 2;
    n = n < SMALL_LEAST ? SMALL_LEAST : n > SMALL_MOST ? SMALL_MOST : n;
    return n * r->scale;
}

static bool is_same(const tcc_protocol *p, const tcc_precord *r)
{
    return r->parent >= 0 && !r->truth && !r->known && !tcc_p_symbol_get(p, r->symbol)->varies;
}

/* Whether what a number turns out to be is kept. */
static bool is_kept(const tcc_protocol *p, const tcc_precord *r)
{
    return (!p->loose || p->keeps_counts) && is_same(p, r);
}

static tcc_pcount *find(tcc_pstate *s, uint32_t symbol)
{
    for (unsigned i = 0; i < s->n_counts; i++)
        if (s->counts[i].symbol == symbol)
            return &s->counts[i];
    return NULL;
}

void tcc_p_count_found(tcc_protocol *p, tcc_pstate *s, const tcc_precord *r)
{
    bool kept = is_kept(p, r);
    p->loosened |= !kept && is_same(p, r); /* at first nothing is kept: more is proven then, and states are fewer */
    if (!kept || s->n_counts == TCC_P_COUNTS || find(s, r->symbol))
        return;
    int64_t limit = small(p, r);
    s->counts[s->n_counts++] = r->most <= limit
                                   ? (tcc_pcount){r->symbol, r->least, r->most}
                                   : (tcc_pcount){r->symbol, limit + 1, INT64_MAX};
}

void tcc_p_count_known(const tcc_protocol *p, tcc_pstate *s, tcc_precord *r)
{
    const tcc_pcount *c = is_same(p, r) ? find(s, r->symbol) : NULL;
    if (!c)
        return;
    r->least = c->least > r->least ? c->least : r->least;
    r->most = c->most < r->most ? c->most : r->most;
}

int64_t tcc_p_count_told_apart(const tcc_protocol *p, const tcc_precord *r)
{
    int64_t limit = is_kept(p, r) ? small(p, r) + 1 : 0;
    return r->least < limit ? r->least : limit;
}

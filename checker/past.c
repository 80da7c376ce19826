/* past: what was known of numbers that are forgotten.
 *
 * A number of iterations has a record of its own for each iteration of the loop around, and is forgotten when that is
 * past. Within a loop and outside of it a number that does not change may so turn out to be another one, which is more
 * than is needed for a proof. In such an execution nothing is wrong for certain. From iteration to iteration of one
 * loop it may be another one, too, as if it did change.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

static bool is_one(const tcc_protocol *p, const tcc_precord *r)
{
    return !r->truth && !r->known && !tcc_p_symbol_get(p, r->symbol)->varies;
}

/* By 1 + what loop around it is asked for in each iteration; 0: there is none. */
static uint32_t around(const tcc_pstate *s, const tcc_precord *r)
{
    return r->parent < 0 ? 0 : s->records[r->parent].symbol + 1;
}

static tcc_ppast *find_past(tcc_pstate *s, const tcc_precord *r)
{
    for (unsigned i = 0; i < s->n_past; i++)
        if (s->past[i].symbol == r->symbol && s->past[i].around == around(s, r))
            return &s->past[i];
    if (s->n_past == TCC_P_COUNTS)
        return NULL;
    s->past[s->n_past] = (tcc_ppast){r->symbol, around(s, r), INT64_MIN, INT64_MAX};
    return &s->past[s->n_past++];
}

void tcc_p_note_past(const tcc_protocol *p, tcc_pstate *s, const tcc_precord *r)
{
    s->doubtful |= tcc_p_contradicts_past(p, s, r);
    tcc_ppast *c = is_one(p, r) ? find_past(s, r) : NULL;
    if (!c)
        return;
    c->least = r->least > c->least ? r->least : c->least;
    c->most = r->most < c->most ? r->most : c->most;
}

bool tcc_p_contradicts_past(const tcc_protocol *p, const tcc_pstate *s, const tcc_precord *r)
{
    bool does = false;
    for (unsigned i = 0; i < s->n_past && is_one(p, r); i++)
        does |= s->past[i].symbol == r->symbol && s->past[i].around != around(s, r) &&
                (r->least > s->past[i].most || r->most < s->past[i].least);
    return does;
}

/* draw: numbers, each of which is drawn by one CTA, or one CTA of a cluster: the first that asks.
 *
 * CTAs run one after the other here, or several at a time in unsynchronized threads, and what one draws must not depend
 * on that. So the seed alone decides in advance which CTA draws which number: each draws its numbers in order, as if
 * all ran concurrently, each at its own pace. One CTA gets half of them, so that some draw many and most draw few or
 * none.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/machine.h"
#include "support/random.h"

/* The CTA that draws a number. */
static int64_t drawer_of(const tcc_run *run, int64_t number, int64_t ctas)
{
    uint64_t state = run->options->seed + (uint64_t)number * UINT64_C(0xd1342543de82ef95);
    uint64_t favourite = run->options->seed % (uint64_t)ctas;
    return (int64_t)(tcc_random(&state, 2) ? tcc_random(&state, (uint64_t)ctas) : favourite);
}

/* The next number that a CTA, one of this many, draws after its last one, -1 at first, of those from 0 on that all CTAs
 * draw; the seed decides which CTA draws which. */
static int64_t draw_next(const tcc_run *run, int64_t cta, int64_t ctas, int64_t last)
{
    int64_t next = last + 1;
    while (drawer_of(run, next, ctas) != cta)
        next++;
    return next;
}

/* ---- tiles ------------------------------------------------------------------------------ */

/* How many numbers below `all` the CTA takes; sets *at to the i-th, if there are so many. */
static int64_t take(const tcc_thread *t, const tcc_inst *in, int64_t i, int64_t *at)
{
    int64_t cta = tcc_operand_int(t, in, 0), ctas = tcc_operand_int(t, in, 1), all = tcc_operand_int(t, in, 2), n = 0;
    for (int64_t drawn = -1, number = cta; number < all; n++) {
        if (n == i)
            *at = number;
        number = ctas + (drawn = draw_next(t->x->run, cta, ctas, drawn));
    }
    return n;
}

static bool is_there(tcc_thread *t, const tcc_inst *in)
{
    int64_t cta = tcc_operand_int(t, in, 0), ctas = tcc_operand_int(t, in, 1), all = tcc_operand_int(t, in, 2);
    if (cta >= 0 && cta < ctas && ctas <= all)
        return true;
    TCC_WRONG(t->x, in->op, "%s by CTA %lld of %lld, of %lld numbers", tcc_op_info_get(in->op->code)->name,
              (long long)cta, (long long)ctas, (long long)all);
    return false;
}

tcc_outcome tcc_eval_tile_takes(tcc_thread *t, const tcc_inst *in)
{
    if (!is_there(t, in))
        return TCC_FAILED;
    tcc_cells(t, in->results[0])[0].i = take(t, in, -1, NULL);
    return TCC_NEXT;
}

/* Nothing is known about a number that the CTA does not take. */
tcc_outcome tcc_eval_tile_take(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 3), number = INT32_MAX;
    if (!is_there(t, in))
        return TCC_FAILED;
    take(t, in, i, &number);
    tcc_cells(t, in->results[0])[0].i = number;
    return TCC_NEXT;
}

/* ---- the async level --------------------------------------------------------------------- */

static bool is_counter(tcc_thread *t, const tcc_inst *in, const tcc_param *p)
{
    if (!p->count)
        TCC_WRONG(t->x, in->op, "%s: '%s' has no element", tcc_op_info_get(in->op->code)->name, p->name);
    return p->count;
}

tcc_outcome tcc_eval_async_draw(tcc_thread *t, const tcc_inst *in)
{
    tcc_exec *x = t->x;
    const tcc_param *p = &x->run->params[tcc_operand_int(t, in, 0)];
    if (!is_counter(t, in, p))
        return TCC_FAILED;
    x->drawn = draw_next(x->run, x->cta, x->launched, x->drawn);
    tcc_cells(t, in->results[0])[0].i = tcc_int_wrap(TCC_i32, tcc_param_load(p, 0).i + x->drawn);
    return TCC_NEXT;
}

/* ---- the target level ------------------------------------------------------------------- */

tcc_outcome tcc_eval_nvvm_atom_inc(tcc_thread *t, const tcc_inst *in)
{
    const tcc_cluster *k = t->x->cluster;
    int64_t index = tcc_operand_int(t, in, 0), id = t->warp->cta->id / k->n_ctas;
    const tcc_param *p = &t->x->run->params[index];
    if (!is_counter(t, in, p))
        return TCC_FAILED;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        k->drawn[index] = draw_next(t->x->run, id, k->n_launched / k->n_ctas, k->drawn[index]);
        tcc_cells(t, in->results[0])[l].i = tcc_int_wrap(TCC_i32, tcc_param_load(p, 0).i + k->drawn[index]);
    }
    return TCC_NEXT;
}

/* The address is the same for all lanes. */
static bool is_uniform(tcc_thread *t, const tcc_inst *in)
{
    int64_t first = tcc_operand_int(t, in, 0);
    for (unsigned l = 0; tcc_next_lane(t, &l); l++)
        if (tcc_lane_int(t, in, 0, l) != first) {
            TCC_WRONG(t->x, in->op, "%s at several addresses", tcc_op_info_get(in->op->code)->name);
            return false;
        }
    return true;
}

tcc_outcome tcc_eval_nvvm_ld_shared_word(tcc_thread *t, const tcc_inst *in)
{
    t->warp->accessed |= t->mask;
    t->warp->word = in->op;
    return is_uniform(t, in) ? tcc_load_lanes(t, in, 0) : TCC_FAILED;
}

static bool is_one_lane(tcc_thread *t, const tcc_inst *in)
{
    if (!(t->mask & (t->mask - 1)))
        return true;
    TCC_WRONG(t->x, in->op, "%s by more than one lane", tcc_op_info_get(in->op->code)->name);
    return false;
}

tcc_outcome tcc_eval_nvvm_st_shared_word(tcc_thread *t, const tcc_inst *in)
{
    if (!is_one_lane(t, in))
        return TCC_FAILED;
    t->warp->accessed |= t->mask;
    return tcc_store_lanes(t, in, 0);
}

/* A word that is there once its mbarrier has completed; until then it may be anything. */
tcc_outcome tcc_eval_nvvm_st_async_word(tcc_thread *t, const tcc_inst *in)
{
    unsigned lane = 0;
    if (!is_one_lane(t, in) || !tcc_next_lane(t, &lane))
        return TCC_FAILED;
    int64_t address = tcc_lane_int(t, in, 0, lane), barrier = tcc_lane_int(t, in, 1, lane);
    tcc_cta *c = tcc_cluster_store(t, in->op, &address), *of = c ? tcc_cluster_find(t, in->op, &barrier) : NULL;
    if (of && of != c)
        TCC_WRONG(t->x, in->op, "nvvm.st.async.word to one CTA, with an mbarrier of another");
    return of == c && c ? tcc_store_later(t, c, in, lane, address, barrier) : TCC_FAILED;
}

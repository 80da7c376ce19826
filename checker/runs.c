/* runs: ops that do not synchronize, done in one step.
 *
 * Between two ops that synchronize a warp computes addresses, most often those that another warp, or another
 * execution, has computed before, and loads from there or stores. So neighbouring ops that depend on their operands
 * alone are taken together, and what they give is kept with what they were given: the slots that are read in a run and
 * not written there. So are the loads and stores among them (spans.c).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

enum { MAX_INPUTS = 6, FEWEST_LOG2 = 4, MOST_LOG2 = 12 /* places */ };

/* What it is that is kept: with the same the same is done. */
typedef struct run_key {
    const struct tcc_prun *run;
    uint64_t span, cta; /* the span and the CTA of a footprint */
    tcc_lane_mask mask; /* the lanes of a footprint */
    tcc_pvalue inputs[MAX_INPUTS];
} run_key;

typedef struct kept_run {
    run_key key;
    uint64_t *footprints; /* of each span */
    tcc_pvalue results[];
} kept_run;

struct tcc_prun {
    uint32_t inputs[MAX_INPUTS];
    unsigned n_inputs;
    size_t n, n_results;
    TCC_VEC(tcc_pspan) spans;
    kept_run **kept; /* by a hash of the inputs; NULL: nothing yet */
    unsigned places_log2;
    size_t n_kept; /* places that are taken: at most half of them */
};

/* ---- where they are -------------------------------------------------------------------- */

/* A comparison of a loop's index is with how far the loop has come (step.c). */
static bool computes(const tcc_pinst *in)
{
    return in->given && in->op->code != TCC_OP_arith_cmp && !in->touches && !in->tensor;
}

/* Whether the op goes on with a run: its result is in the next slot, and the same warps need it. A run begins with an
 * op that computes. */
static bool goes_on(const tcc_protocol *p, const struct tcc_prun *run, const tcc_pinst *first, const tcc_pinst *in)
{
    bool may = computes(in) ? in->results[0] == first->results[0] + run->n_results
                            : run->n && p->spans && tcc_p_is_spanned(in);
    return may && in->alone == first->alone && in->others == first->others;
}

/* Whether all warps have the same there, always. */
static bool is_constant(const tcc_protocol *p, uint32_t slot)
{
    bool same = slot >= TCC_P_FIXED;
    for (unsigned w = 1; w < p->n_warps && same; w++)
        same = !memcmp(&p->fixed_values[(size_t)w * p->n_fixed + (slot - TCC_P_FIXED)],
                       &p->fixed_values[slot - TCC_P_FIXED], sizeof *p->fixed_values);
    return same;
}

/* Notes the slots that an op reads, of those that the run has not written; false when there are too many. */
static bool add_inputs(const tcc_protocol *p, struct tcc_prun *run, const tcc_pinst *first, const tcc_pinst *in)
{
    struct tcc_prun with = *run;
    for (unsigned i = 0; i < (computes(in) ? in->op->n_operands : 1); i++) { /* what is stored is not a number */
        uint32_t slot = in->operands[i], from = first->results[0];
        bool known = (slot >= from && slot < from + run->n_results) || is_constant(p, slot);
        for (unsigned k = 0; k < with.n_inputs && !known; k++)
            known = with.inputs[k] == slot;
        if (!known && with.n_inputs == MAX_INPUTS)
            return false;
        if (!known)
            with.inputs[with.n_inputs++] = slot;
    }
    *run = with;
    return true;
}

/* Notes a load or a store: with those before it if they are of its kind. */
static void add_to_spans(tcc_protocol *p, struct tcc_prun *run, const tcc_pinst *in, size_t room)
{
    tcc_pspan *last = run->spans.len ? &run->spans.data[run->spans.len - 1] : NULL;
    if (!last || last->insts[0]->op->code != in->op->code) {
        TCC_PUSH(p->scratch, &run->spans, (tcc_pspan){TCC_NEW_ARRAY(p->scratch, const tcc_pinst *, room), 0});
        last = &run->spans.data[run->spans.len - 1];
    }
    last->insts[last->n++] = in;
}

static void find_spans(tcc_protocol *p, struct tcc_prun *run, const tcc_pinst *first)
{
    for (size_t i = 0; i < run->n; i++)
        if (!computes(first + i))
            add_to_spans(p, run, first + i, run->n - i);
}

static void find_runs(tcc_protocol *p, tcc_pcode *code)
{
    for (size_t i = 0; i < code->n;) {
        tcc_pinst *first = &code->insts[i];
        struct tcc_prun run = {.n = 0};
        for (unsigned r = 0; r < first->op->n_regions; r++)
            find_runs(p, &first->regions[r]);
        while (i + run.n < code->n && goes_on(p, &run, first, first + run.n) &&
               add_inputs(p, &run, first, first + run.n)) {
            run.n_results += computes(first + run.n);
            run.n++;
        }
        if (run.n > 1) {
            first->run = TCC_NEW(p->scratch, struct tcc_prun);
            *first->run = run;
            first->run->places_log2 = FEWEST_LOG2;
            first->run->kept = TCC_NEW_ARRAY(p->scratch, kept_run *, 1 << FEWEST_LOG2);
            find_spans(p, first->run, first);
        }
        i += run.n ? run.n : 1;
    }
}

void tcc_p_runs_find(tcc_protocol *p)
{
    find_runs(p, &p->body);
    if (p->spans)
        tcc_p_mmas_find(&p->body);
}

/* ---- what they give -------------------------------------------------------------------- */

/* Whether a run can be kept: its inputs are known. */
static bool find_key(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, const struct tcc_prun *run,
                     run_key *key)
{
    bool known = true;
    *key = (run_key){.run = run};
    if (run->spans.len) {
        key->cta = tcc_p_cta(p, warp);
        key->mask = s->warps[warp].mask;
    }
    for (unsigned i = 0; i < run->n_inputs && known; i++) {
        key->inputs[i] = *tcc_p_slot(p, s, warp, run->inputs[i]);
        known = key->inputs[i].kind == TCC_P_KNOWN ||
                (key->inputs[i].kind == TCC_P_LANES && !tcc_p_is_elected(&key->inputs[i]));
    }
    return known;
}

/* Where it is kept, or will be. */
static kept_run **find_kept(const struct tcc_prun *run, const run_key *key)
{
    size_t last = ((size_t)1 << run->places_log2) - 1;
    uint64_t hash = key->cta ^ key->mask;
    for (unsigned i = 0; i < run->n_inputs; i++)
        hash = hash * 7 + (uint64_t)key->inputs[i].v;
    size_t at = hash * UINT64_C(0x9e3779b97f4a7c15) >> (64 - run->places_log2);
    while (run->kept[at] && memcmp(&run->kept[at]->key, key, sizeof *key) != 0)
        at = (at + 1) & last;
    return &run->kept[at];
}

/* Every warp has inputs of its own, often others in every stage. Where there are too many, those kept are forgotten. */
static void make_room(tcc_protocol *p, struct tcc_prun *run)
{
    kept_run **old = run->kept;
    size_t n = (size_t)1 << run->places_log2;
    if (2 * (run->n_kept + 1) <= n)
        return;
    run->places_log2 += run->places_log2 < MOST_LOG2;
    run->kept = TCC_NEW_ARRAY(p->scratch, kept_run *, (size_t)1 << run->places_log2);
    run->n_kept = 0;
    for (size_t i = 0; i < n && run->places_log2 < MOST_LOG2; i++)
        if (old[i]) {
            *find_kept(run, &old[i]->key) = old[i];
            run->n_kept++;
        }
}

/* Does what computes, and finds where what does not accesses memory. */
static bool compute_all(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *first, run_key key,
                        kept_run *kept)
{
    const struct tcc_prun *run = first->run;
    for (size_t i = 0; i < run->n; i++)
        if (computes(first + i) && tcc_p_do(p, s, warp, first + i) != TCC_P_NEXT)
            return false;
    for (size_t i = 0; i < run->spans.len; i++) {
        key.span = i + 1;
        kept->footprints[i] = tcc_p_span_footprint(p, s, warp, &run->spans.data[i], &key, sizeof key);
        if (p->status)
            return false;
    }
    return true;
}

static bool access_all(tcc_protocol *p, tcc_pstate *s, unsigned warp, const struct tcc_prun *run, const kept_run *kept)
{
    bool done = true, some = s->warps[warp].mask != tcc_p_all_lanes(p);
    for (size_t i = 0; i < run->spans.len && some; i++)
        for (size_t k = 0; k < run->spans.data[i].n; k++)
            tcc_p_lanes_differ_by(p, s, warp, run->spans.data[i].insts[k]);
    for (size_t i = 0; i < run->spans.len && done; i++)
        done = tcc_p_span_access(p, s, warp, &run->spans.data[i], kept->footprints[i]);
    return done;
}

/* Does a run that is not kept yet, and keeps it; NULL when something is wrong. */
static const kept_run *keep(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *first, const run_key *key)
{
    struct tcc_prun *run = first->run;
    size_t bytes = run->n_results * sizeof(tcc_pvalue);
    kept_run *kept = tcc_arena_alloc(p->scratch, sizeof *kept + bytes);
    kept->footprints = TCC_NEW_ARRAY(p->scratch, uint64_t, run->spans.len + 1);
    if (!compute_all(p, s, warp, first, *key, kept))
        return NULL;
    kept->key = *key;
    memcpy(kept->results, tcc_p_slot(p, s, warp, first->results[0]), bytes);
    make_room(p, run);
    *find_kept(run, key) = kept;
    run->n_kept++;
    return kept;
}

tcc_presult tcc_p_run(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *first)
{
    tcc_pvalue *to = tcc_p_slot(p, s, warp, first->results[0]);
    struct tcc_prun *run = first->run;
    run_key key;
    if (!find_key(p, s, warp, run, &key))
        return tcc_p_do(p, s, warp, first);
    const kept_run *kept = *find_kept(run, &key);
    if (!kept && !(kept = keep(p, s, warp, first, &key)))
        return TCC_P_FAILED;
    memcpy(to, kept->results, run->n_results * sizeof *to);
    if (!access_all(p, s, warp, run, kept))
        return TCC_P_FAILED;
    s->warps[warp].frames[s->warps[warp].depth - 1].pc += run->n - 1;
    return TCC_P_NEXT;
}

/* runs: arithmetic that is done in one step.
 *
 * Between two ops that synchronize a warp computes addresses, most often those that another warp, or another
 * execution, has computed before. So neighbouring ops that depend on their operands alone are taken together, and what
 * they give is kept with what they were given: the slots that are read in a run and not written there.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

enum { MAX_INPUTS = 3, KEPT = 64 };

typedef struct kept_run {
    tcc_pvalue inputs[MAX_INPUTS], results[];
} kept_run;

struct tcc_prun {
    uint32_t inputs[MAX_INPUTS];
    unsigned n_inputs;
    size_t n;
    kept_run *kept[KEPT]; /* by a hash of the inputs; NULL: nothing yet */
};

/* ---- where they are -------------------------------------------------------------------- */

/* A comparison of a loop's index is with how far the loop has come (step.c). */
static bool may_be_in_run(const tcc_pinst *in)
{
    return in->given && in->op->code != TCC_OP_arith_cmp && !in->touches && !in->tensor;
}

/* Whether the op goes on with a run: its result is in the next slot, and the same warps need it. */
static bool goes_on(const tcc_pinst *first, const tcc_pinst *in, size_t n)
{
    return may_be_in_run(in) && in->results[0] == first->results[0] + n && in->alone == first->alone &&
           in->others == first->others;
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
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        uint32_t slot = in->operands[i], from = first->results[0];
        bool known = (slot >= from && slot < from + run->n) || is_constant(p, slot);
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

static void find_runs(tcc_protocol *p, tcc_pcode *code)
{
    for (size_t i = 0; i < code->n;) {
        tcc_pinst *first = &code->insts[i];
        struct tcc_prun run = {.n = 0};
        for (unsigned r = 0; r < first->op->n_regions; r++)
            find_runs(p, &first->regions[r]);
        while (i + run.n < code->n && goes_on(first, first + run.n, run.n) &&
               add_inputs(p, &run, first, first + run.n))
            run.n++;
        if (run.n > 1) {
            first->run = TCC_NEW(p->scratch, struct tcc_prun);
            *first->run = run;
        }
        i += run.n ? run.n : 1;
    }
}

void tcc_p_runs_find(tcc_protocol *p)
{
    find_runs(p, &p->body);
}

/* ---- what they give -------------------------------------------------------------------- */

/* Where what a run gives for what its inputs hold is kept; NULL: it depends on more. */
static kept_run **find_kept(tcc_protocol *p, const tcc_pstate *s, unsigned warp, struct tcc_prun *run, tcc_pvalue *inputs)
{
    uint64_t hash = 0;
    for (unsigned i = 0; i < run->n_inputs; i++) {
        inputs[i] = *tcc_p_slot(p, s, warp, run->inputs[i]);
        if (inputs[i].kind != TCC_P_KNOWN && inputs[i].kind != TCC_P_LANES)
            return NULL;
        hash = hash * 7 + (uint64_t)inputs[i].v;
    }
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return &run->kept[hash >> 32 & (KEPT - 1)];
}

tcc_presult tcc_p_run(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *first, tcc_phook *compute)
{
    tcc_pvalue inputs[MAX_INPUTS] = {0}, *to = tcc_p_slot(p, s, warp, first->results[0]);
    struct tcc_prun *run = first->run;
    kept_run **kept = find_kept(p, s, warp, run, inputs);
    size_t bytes = run->n * sizeof *to;
    if (!kept)
        return compute(p, s, warp, first);
    if (!*kept || memcmp((*kept)->inputs, inputs, run->n_inputs * sizeof *inputs) != 0) {
        for (size_t i = 0; i < run->n; i++)
            if (compute(p, s, warp, first + i) != TCC_P_NEXT)
                return TCC_P_FAILED;
        *kept = *kept ? *kept : tcc_arena_alloc(p->scratch, sizeof **kept + bytes);
        memcpy((*kept)->inputs, inputs, sizeof inputs);
        memcpy((*kept)->results, to, bytes);
    }
    memcpy(to, (*kept)->results, bytes);
    s->warps[warp].frames[s->warps[warp].depth - 1].pc += run->n - 1;
    return TCC_P_NEXT;
}

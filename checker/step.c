/* step: one warp's next op: registers, branches, and what else it is handed to.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/step.h"

enum { AT_HEAD = TCC_P_AT_HEAD };

/* ---- registers ------------------------------------------------------------------------- */

/* What is known of registers that are a's and b's. */
static tcc_pvalue joined(tcc_pvalue a, const tcc_pvalue *b)
{
    enum { OF_BOTH = TCC_P_BY_MMA | TCC_P_FENCED, OF_ANY = TCC_P_TAKEN | TCC_P_IS_A };
    a.offset = a.offset == b->offset ? a.offset : TCC_P_MIXED;
    a.v = b->v > a.v ? b->v : a.v;
    a.delta = (a.delta & b->delta & OF_BOTH) | ((a.delta | b->delta) & OF_ANY);
    return a;
}

/* A part of what an MMA may still access is so too. */
static tcc_pvalue inherited(const tcc_protocol *p, const tcc_pstate *s, unsigned warp,
                            const tcc_pinst *in)
{
    tcc_pvalue r = {0};
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        if (in->operands[i] == TCC_P_NO_SLOT)
            continue;
        const tcc_pvalue *v = tcc_p_slot(p, s, warp, in->operands[i]);
        r = r.kind ? joined(r, v) : *v;
    }
    r.kind = TCC_P_REGISTERS;
    return r;
}

bool tcc_p_take(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                unsigned operand, uint64_t registers)
{
    tcc_pvalue *v = in->operands[operand] == TCC_P_NO_SLOT
                        ? NULL
                        : tcc_p_slot(p, s, warp, in->operands[operand]);
    if (!v || v->kind != TCC_P_REGISTERS)
        return true;
    if (v->v && tcc_registers_is_wanted_twice(in->wanted_twice, operand)) {
        tcc_p_wrong(p, s, warp, in,
                    "%s takes registers that an MMA may still be writing and another op uses as well",
                    tcc_op_info_get(in->op->code)->name);
        return false;
    }
    if (v->delta & TCC_P_BY_MMA)
        return true;
    if (v->delta & TCC_P_TAKEN)
        s->warps[warp].touched |= registers;
    v->delta |= TCC_P_TAKEN;
    return true;
}

bool tcc_p_may_read(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned i)
{
    const tcc_pvalue *v =
        in->operands[i] == TCC_P_NO_SLOT ? NULL : tcc_p_slot(p, s, warp, in->operands[i]);
    if (!v || v->kind != TCC_P_REGISTERS || !v->v)
        return true;
    tcc_p_wrong(p, s, warp, in, "%s reads registers that an MMA may still %s",
                tcc_op_info_get(in->op->code)->name,
                v->delta & TCC_P_IS_A ? "take its A from" : "be writing");
    return false;
}

static bool may_read(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    bool may = true;
    for (unsigned i = 0; may && i < in->op->n_operands; i++)
        may = tcc_p_may_read(p, s, warp, in, i);
    return may;
}

/* Where what an op gives for its operands is kept, and the operands; NULL when it depends on more.
 * Warps compute the same, and so do executions that part. */
static tcc_pgiven *given_for(const tcc_protocol *p, const tcc_pstate *s, unsigned warp,
                             const tcc_pinst *in, tcc_pvalue *args)
{
    uint64_t hash = 0;
    if (!in->given)
        return NULL;
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        args[i] = *tcc_p_slot(p, s, warp, in->operands[i]);
        if ((args[i].kind != TCC_P_KNOWN && args[i].kind != TCC_P_LANES) || tcc_p_is_elected(&args[i]) ||
            (args[i].loop && in->op->code == TCC_OP_arith_cmp))
            return NULL;
        hash = hash * 7 + (uint64_t)args[i].v;
    }
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return &in->given[hash >> 32 & (TCC_P_GIVEN - 1)];
}

static tcc_presult evaluate(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_opcode code = in->op->code;
    bool parts = tcc_registers_pass(code);
    if (tcc_op_does(code, TCC_LANES) && !tcc_p_converged(p, s, warp, in))
        return TCC_P_FAILED;
    if (!parts && !may_read(p, s, warp, in))
        return TCC_P_FAILED;
    for (unsigned i = 0; i < in->op->n_results; i++) {
        if (in->results[i] == TCC_P_NO_SLOT)
            continue;
        tcc_pvalue v = {.kind = TCC_P_REGISTERS};
        if (in->op->results[i].type->kind != TCC_KIND_vec) {
            tcc_presult r = tcc_p_give(p, s, warp, in, &v);
            if (r != TCC_P_NEXT)
                return r;
            tcc_p_elect_passes_on(p, s, warp, in, &v);
        } else if (parts) {
            v = inherited(p, s, warp, in);
        }
        *tcc_p_slot(p, s, warp, in->results[i]) = v;
    }
    return TCC_P_NEXT;
}

static tcc_presult compute(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pvalue args[2] = {0};
    tcc_pgiven *g = given_for(p, s, warp, in, args);
    if (!g)
        return evaluate(p, s, warp, in);
    bool same = tcc_p_is_same(&g->args[0], &args[0]) && tcc_p_is_same(&g->args[1], &args[1]);
    if (!same || g->result.kind == TCC_P_NONE) {
        *g = (tcc_pgiven){.args = {args[0], args[1]}};
        if (in->op->n_operands && !in->tests_bound)
            g->result = tcc_p_compute(p, in->op, args);
        else if (tcc_p_give(p, s, warp, in, &g->result) != TCC_P_NEXT)
            return TCC_P_FAILED;
    }
    *tcc_p_slot(p, s, warp, in->results[0]) = g->result;
    return TCC_P_NEXT;
}

/* ---- branches -------------------------------------------------------------------------- */

static tcc_presult branch_mask(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                               tcc_lane_mask *yes, bool *may)
{
    const tcc_pvalue *c = tcc_p_slot(p, s, warp, in->operands[0]);
    tcc_pvalue uniform;
    *yes = 0;
    *may = false;
    if (c->kind == TCC_P_UNKNOWN && in->of_tiles && tcc_p_uniform(p, s, warp, in->op->operands[0], &uniform))
        c = &uniform;
    if (c->kind == TCC_P_SYMBOL) {
        int record = tcc_p_record_of(p, s, warp, in->op, c->v, true);
        int more = record < 0 ? 0 : tcc_p_is_more(p, s, record, 0);
        *yes = more > 0 ? tcc_p_all_lanes(p) : 0;
        return record < 0 ? TCC_P_FAILED : more < 0 ? TCC_P_CHOICE : TCC_P_NEXT;
    }
    if (tcc_p_is_exact(c)) {
        *yes = c->v ? tcc_p_all_lanes(p) : 0;
        return TCC_P_NEXT;
    }
    tcc_p_lanes_differ(p, warp, c);
    for (unsigned l = 0; l < p->n_lanes; l++) {
        int64_t v;
        bool known = tcc_p_lane(p, c, l, &v);
        if (!known && (p->amd ? !in->waits : in->harmless || in->computes)) {
            *may = true;
            *yes = tcc_p_all_lanes(p);
            return TCC_P_NEXT;
        }
        if (!known)
            return tcc_p_unsupported(p, in->op,
                                     "a condition that is only known at run time, and may "
                                     "differ from thread to thread, guards synchronization");
        *yes |= v ? UINT64_C(1) << l : 0;
    }
    return TCC_P_NEXT;
}

static bool enter_branch(tcc_protocol *p, tcc_pwarp *w, const tcc_pinst *in, unsigned region,
                         tcc_lane_mask mask, bool may, tcc_presult *r)
{
    if (!mask || !in->regions[region].n)
        return false;
    *r = tcc_p_enter(p, w, in, (tcc_pframe){.record = -1, .may = may}, region, mask);
    return true;
}

static tcc_presult branch(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_lane_mask yes;
    bool may;
    tcc_presult r = branch_mask(p, s, warp, in, &yes, &may);
    if (r != TCC_P_NEXT)
        return r;
    yes &= w->mask;
    tcc_lane_mask no = may ? w->mask : w->mask & ~yes;
    if (enter_branch(p, w, in, 0, yes, may, &r) || enter_branch(p, w, in, 1, no, may, &r))
        return r;
    return TCC_P_NEXT;
}

/* The lanes of the mask get b, the others keep a. `elected`: which these are depends on the lane that was elected. */
static tcc_pvalue merge(tcc_protocol *p, unsigned warp, const tcc_pvalue *a, const tcc_pvalue *b, tcc_lane_mask mask,
                        bool elected)
{
    int64_t lanes[TCC_MAX_LANES];
    if (b->kind == TCC_P_REGISTERS)
        return joined(*b, a);
    elected |= tcc_p_is_elected(a) || tcc_p_is_elected(b);
    tcc_p_lanes_differ(p, warp, a);
    tcc_p_lanes_differ(p, warp, b);
    for (unsigned l = 0; l < p->n_lanes; l++) {
        const tcc_pvalue *from = mask >> l & 1 ? b : a;
        if (from->kind == TCC_P_NONE)
            lanes[l] = 0;
        else if (!tcc_p_lane(p, from, l, &lanes[l]))
            return (tcc_pvalue){.kind = TCC_P_UNKNOWN};
    }
    tcc_pvalue r = tcc_p_lanes(p, lanes);
    if (elected && r.kind == TCC_P_LANES)
        r.offset = TCC_P_ELECTED;
    return r;
}

static tcc_presult leave_branch(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                const tcc_pinst *yield)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_pframe f = w->frames[w->depth - 1];
    bool elected = tcc_p_is_elected(tcc_p_slot(p, s, warp, f.of->operands[0]));
    for (unsigned i = 0; yield && i < f.of->op->n_results; i++) {
        tcc_pvalue v = read(p, s, warp, yield->operands[i]);
        tcc_pvalue old = read(p, s, warp, f.of->results[i]);
        if (f.may && f.region == 1 && old.kind == TCC_P_REGISTERS)
            v = joined(old, &v);
        else if (f.may && v.kind != TCC_P_REGISTERS)
            v = (tcc_pvalue){.kind = TCC_P_UNKNOWN};
        if (f.of->results[i] != TCC_P_NO_SLOT)
            write(p, s, warp, f.of->results[i], f.mask == f.outer ? v : merge(p, warp, &old, &v, f.mask, elected));
    }
    tcc_p_clear_slots(p, s, warp);
    w->mask = f.outer;
    w->depth--;
    w->frames[w->depth] = (tcc_pframe){0};
    tcc_presult r = TCC_P_JUMPED;
    tcc_lane_mask no = f.may ? f.outer : f.outer & ~f.mask;
    if (f.region == 1 || !enter_branch(p, w, f.of, 1, no, f.may, &r))
        w->frames[w->depth - 1].pc++;
    return r;
}

/* ---- one op ---------------------------------------------------------------------------- */

static tcc_presult end_region(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *yield)
{
    tcc_pwarp *w = &s->warps[warp];
    const tcc_pinst *of = w->frames[w->depth - 1].of;
    if (!of) {
        tcc_p_clear_slots(p, s, warp);
        w->depth = 0;
        w->frames[0] = (tcc_pframe){0};
        return TCC_P_JUMPED;
    }
    return of->op->code == TCC_OP_scf_for ? tcc_p_next_iteration(p, s, warp, yield)
                                          : leave_branch(p, s, warp, yield);
}

static tcc_phook *const hooks[TCC_OP_COUNT] = {
#define OP(id) [TCC_OP_##id] = tcc_p_##id,
    TCC_P_OPS(OP)
#undef OP
    [TCC_OP_scf_for] = tcc_p_enter_loop,
    [TCC_OP_scf_if] = branch,
    [TCC_OP_scf_yield] = end_region,
};

bool tcc_p_is_known(tcc_opcode code)
{
    return hooks[code] || !tcc_op_does(code, TCC_P_FOLLOWED & ~TCC_LANES);
}

tcc_presult tcc_p_do(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_phook *hook = hooks[in->op->code];
    if (tcc_op_does(in->op->code, TCC_WRITES_SHARED) && !may_read(p, s, warp, in))
        return TCC_P_FAILED;
    s->warps[warp].touched |= in->touches;
    return (hook ? hook : compute)(p, s, warp, in);
}

tcc_presult tcc_p_step(tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_pframe *f = &w->frames[w->depth - 1];
    p->steps++;
    if (f->pc == AT_HEAD)
        return tcc_p_at_head(p, s, warp);
    if (p->aside != TCC_P_NO_WARP)
        tcc_p_aside_skip(p, s, warp);
    if (f->pc == f->code->n)
        return end_region(p, s, warp, NULL);
    const tcc_pinst *in = &f->code->insts[f->pc];
    tcc_phook *aside = p->aside == TCC_P_NO_WARP ? NULL : tcc_p_aside_hook(p, s, warp, in);
    tcc_phook *hook = aside ? aside : hooks[in->op->code];
    if (tcc_op_does(in->op->code, TCC_WRITES_SHARED) && !may_read(p, s, warp, in))
        return TCC_P_FAILED;
    if (in->tensor && in->harmless && !tcc_p_global_ordinary(p, s, warp, in))
        return TCC_P_FAILED;
    w->touched |= in->touches;
    uint32_t at = f->pc;
    if (!in->op->n_regions && !in->given)
        tcc_p_lanes_differ_by(p, s, warp, in);
    tcc_presult r = in->run ? tcc_p_run(p, s, warp, in) : (hook ? hook : compute)(p, s, warp, in);
    bool begins = in->aside && warp == p->aside && (r == TCC_P_NEXT || r == TCC_P_JUMPED);
    if (begins && !tcc_p_aside_begin(p, s))
        return TCC_P_FAILED;
    if (r == TCC_P_NEXT)
        w->frames[w->depth - 1].pc++;
    if (!aside && (r == TCC_P_NEXT || r == TCC_P_JUMPED || r == TCC_P_HEAD))
        tcc_p_reached_ops(p, in, r == TCC_P_NEXT ? w->frames[w->depth - 1].pc - at : 1);
    return r;
}

/* loops: how often they run, and from iteration to iteration.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/step.h"

enum { AT_HEAD = TCC_P_AT_HEAD, LEAST_ITERATIONS = 16 };
enum { MAX_GROWTH = 256 }; /* of a counter in an iteration, so that it does not overflow */

/* A loop of known iterations around others is like one that turned out to make as many: what is
 * asked for inside is of its iterations. */
static bool keep_iterations(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                            const tcc_pvalue *bounds, tcc_pframe *f)
{
    int64_t iterations = tcc_p_known_iterations(f);
    int64_t known = tcc_p_symbol_from(p, 0, "known", bounds, 3).v;
    f->record = tcc_p_record_of(p, s, warp, in->op, known, false);
    if (f->record < 0)
        return false;
    f->known = true;
    s->records[f->record].known = true;
    s->records[f->record].least = s->records[f->record].most = iterations;
    return true;
}

/* Stands for the iterations of a loop of more than are counted one by one: any number, from one on. Of numbers that are
 * near each other the differences are kept, so that loops which end together still do. */
static tcc_pvalue any_iterations(tcc_protocol *p, int64_t n, int64_t *least)
{
    enum { NEAR = 64 };
    size_t i = 0;
    while (i < p->families.len && (n > p->families.data[i].n + NEAR || n < p->families.data[i].n - NEAR))
        i++;
    if (i == p->families.len)
        TCC_PUSH(p->scratch, &p->families, (tcc_pfamily){n, LEAST_ITERATIONS});
    tcc_pfamily *f = &p->families.data[i];
    tcc_pvalue first = tcc_p_known(f->n), r = tcc_p_symbol_from(p, 0, "any", &first, 1);
    p->symbols.data[r.v].real = f->n;
    r.offset = (int32_t)(n - f->n);
    f->least = f->least > LEAST_ITERATIONS - r.offset ? f->least : LEAST_ITERATIONS - r.offset;
    *least = f->least;
    return r;
}

int64_t tcc_p_known_iterations(const tcc_pframe *f)
{
    return f->hi > f->lo ? (f->hi - f->lo + f->step - 1) / f->step : 0;
}

/* The record of a loop's number, which is at least so much; false, reported, when there is none. */
static bool plan_record(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, tcc_pframe *f,
                        int64_t least)
{
    f->record = tcc_p_record_of(p, s, warp, in->op, f->bound, false);
    if (f->record < 0 || (in->data && !tcc_p_symbol_is_data(p, s->records[f->record].symbol)))
        return false;
    tcc_precord *r = &s->records[f->record];
    r->scale = r->scale / tcc_gcd(r->scale, f->scale) * f->scale;
    if (r->most >= least && r->least < least)
        r->least = least;
    tcc_p_count_known(p, s, r);
    return true;
}

/* A loop of many known iterations. */
static bool plan_known(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, tcc_pframe *f)
{
    int64_t least;
    tcc_pvalue n = any_iterations(p, tcc_p_known_iterations(f), &least);
    f->bound = n.v;
    f->from = -n.offset;
    p->generalized = true;
    return plan_record(p, s, warp, in, f, least);
}

/* Whether iterations that are known are counted one by one. */
static bool are_counted(const tcc_protocol *p, const tcc_pinst *in, const tcc_pframe *f)
{
    enum { MOST = 4096 };
    return !in->waits || tcc_p_known_iterations(f) <= (p->counts_all ? MOST : TCC_P_KNOWN_ITERATIONS);
}

/* Where a loop begins, if that is a number or a constant, whichever is less: which one it is, the loop in front has
 * found out. False when that must be chosen. */
static bool find_first(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, tcc_pvalue *first)
{
    enum { MOST = 64 };
    if (first->kind != TCC_P_SYMBOL || first->delta > MOST)
        return true;
    int record = tcc_p_record_of(p, s, warp, in->op, first->v, false);
    const tcc_psymbol *of = tcc_p_symbol_get(p, first->v);
    for (int64_t n = tcc_p_least(of) < 0 ? -1 : 0; record >= 0 && n <= first->delta; n++) {
        int more = n == first->delta ? 0 : tcc_p_is_more(p, s, record, tcc_p_symbol_least(of, n));
        if (more < 0 || (!more && n < 0))
            return more >= 0; /* all that are negative are one */
        if (!more) {
            *first = tcc_p_known(n + first->offset);
            return true;
        }
    }
    return true;
}

/* Finds the symbol of the bound, and when a loop goes on: when the distance to the bound is more than it has come, or
 * by the number of iterations, where the step is not known. */
static void plan_bound(tcc_protocol *p, const tcc_pinst *in, const tcc_pvalue *b, tcc_pframe *f)
{
    tcc_pvalue end = b[1];
    if (f->by_iterations)
        end = tcc_p_sum(p, &b[1], &b[0], true, 0, in->op->operands[1]->type->elem);
    bool counted = !f->by_iterations && f->lo >= end.offset && end.delta == INT64_MAX; /* it is at least 0 */
    if (counted && tcc_p_symbol_get(p, end.v)->count)
        end.v = tcc_p_symbol_get(p, end.v)->count - 1;
    if (end.kind != TCC_P_SYMBOL || !tcc_p_is_exact(&b[2])) {
        f->bound = end.kind == TCC_P_SYMBOL ? tcc_p_iterations(p, end, b[2]).v
                                            : tcc_p_symbol_from(p, 0, "iterations", b, 3).v;
        return;
    }
    const tcc_psymbol *of = tcc_p_symbol_get(p, end.v);
    f->bound = end.v;
    f->hi = INT64_MAX;
    f->by = of->by;
    f->scale = of->by * f->step;
    f->from = tcc_p_symbol_least(of, (f->by_iterations ? 0 : f->lo) - end.offset);
    if (end.delta != INT64_MAX)
        f->cap = end.delta + end.offset;
}

/* Decides what tells when the loop ends. */
static bool plan_iterations(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                            tcc_pvalue *b, tcc_pframe *f)
{
    bool known = true, fixed = true;
    for (unsigned i = 0; i < 3; i++) {
        known &= tcc_p_is_exact(&b[i]);
        fixed &= (tcc_p_is_exact(&b[i]) && !b[i].loop) || b[i].kind == TCC_P_SYMBOL;
    }
    if (tcc_p_is_exact(&b[2]) && b[2].v < 1)
        return tcc_p_wrong(p, s, warp, in, "scf.for steps by %lld", (long long)b[2].v), false;
    f->record = -1;
    f->cap = INT64_MAX;
    f->lo = b[0].v;
    f->hi = b[1].v;
    f->step = b[2].v;
    f->scale = f->by = 1;
    if (in->tests)
        return tcc_p_plan_testing(p, s, warp, in, f);
    if (known && are_counted(p, in, f))
        return !in->regions[0].loops || keep_iterations(p, s, warp, in, b, f);
    if (known)
        return plan_known(p, s, warp, in, f);
    bool by_index = tcc_p_is_exact(&b[0]) && tcc_p_is_exact(&b[2]) && b[1].kind == TCC_P_SYMBOL;
    if (!in->waits || !(by_index || fixed))
        return tcc_p_unsupported(p, in->op,
                                 "how often this loop runs is only known at run time, and "
                                 "%s",
                                 in->waits ? "may differ from warp to warp"
                                           : "it accesses shared memory with no barrier"),
               false;
    f->by_iterations = !by_index;
    plan_bound(p, in, b, f);
    bool once = tcc_attr_int(&in->op->attrs, "at_least_once", 0);
    return plan_record(p, s, warp, in, f, once ? f->from + 1 : INT64_MIN);
}

/* Gives the index its value for the iteration that begins. */
static void set_index(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_pframe *f = &w->frames[w->depth - 1];
    tcc_pvalue v = tcc_p_known(f->lo + f->iter * f->step);
    if (f->by_iterations) {
        tcc_pvalue lo = read(p, s, warp, in->operands[0]), step = read(p, s, warp, in->operands[2]);
        v = tcc_p_index_symbol(p, (uint32_t)f->bound, &lo, &step);
    } else if (f->record >= 0 && !f->known) {
        v = tcc_p_forget(p, v, f->code->moduli[0]);
        v.loop = (uint8_t)w->depth;
    }
    write(p, s, warp, f->code->args[0], v);
}

static tcc_presult leave_loop(tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    tcc_pwarp *w = &s->warps[warp];
    const tcc_pframe *f = &w->frames[w->depth - 1];
    const tcc_pinst *in = f->of;
    bool synchronizes = f->record >= 0;
    tcc_p_reached_end_of_loop(p, f);
    for (unsigned i = 0; i < in->op->n_results; i++)
        write(p, s, warp, in->results[i], read(p, s, warp, f->code->args[1 + i]));
    tcc_p_clear_slots(p, s, warp);
    w->mask = f->outer;
    w->depth--;
    w->frames[w->depth] = (tcc_pframe){0};
    w->frames[w->depth - 1].pc++;
    w->progress += synchronizes;
    return synchronizes ? TCC_P_HEAD : TCC_P_JUMPED;
}

/* Is there another iteration? */
tcc_presult tcc_p_at_head(tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_pframe *f = &w->frames[w->depth - 1];
    int64_t index = f->lo + f->iter * f->step;
    if (f->of->tests && !tcc_p_tests_drawn(p, s, warp))
        return TCC_P_FAILED;
    int more = f->record < 0     ? index < f->hi
               : index >= f->cap ? 0
                                 : tcc_p_is_more(p, s, f->record, tcc_p_position(f));
    if (more < 0)
        return TCC_P_CHOICE;
    if (!more && !f->iter && tcc_attr_int(&f->of->op->attrs, "at_least_once", 0))
        return tcc_p_wrong(p, s, warp, f->of, "scf.for is at_least_once and makes no iteration");
    if (!more)
        return leave_loop(p, s, warp);
    f->pc = 0;
    f->busy = false;
    set_index(p, s, warp, f->of);
    tcc_p_reached_iteration(p, f);
    w->progress += f->record >= 0;
    return f->record >= 0 ? TCC_P_HEAD : TCC_P_JUMPED;
}

tcc_presult tcc_p_enter(tcc_protocol *p, tcc_pwarp *w, const tcc_pinst *in, tcc_pframe f,
                         unsigned region, tcc_lane_mask mask)
{
    if (w->depth == TCC_P_DEPTH)
        return tcc_p_unsupported(p, in->op, "regions are nested more than %d deep", TCC_P_DEPTH);
    f.code = &in->regions[region];
    f.of = in;
    f.region = region;
    f.mask = mask;
    f.outer = w->mask;
    w->frames[w->depth - 1].busy = true;
    w->frames[w->depth++] = f;
    w->mask = mask;
    return TCC_P_JUMPED;
}

/* A loop that only counts adds its iteration count, as far as that is known: states differ by its remainder by
 * p->symbol_data. */
static tcc_presult count(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pvalue n = read(p, s, warp, in->operands[1]);
    const tcc_pcode *body = &in->regions[0];
    int64_t least;
    bool few = tcc_p_is_exact(&n) && (p->counts_all || n.v <= TCC_P_KNOWN_ITERATIONS);
    if (tcc_p_is_exact(&n) && !few)
        n = any_iterations(p, n.v, &least);
    if (!tcc_p_find_number(p, s, warp, &n))
        return TCC_P_CHOICE;
    if (tcc_p_is_exact(&n) && n.v < 0)
        n = tcc_p_known(0);
    for (unsigned i = 0; i < in->op->n_results; i++) {
        tcc_pvalue at = read(p, s, warp, in->operands[3 + i]);
        int64_t m = body->moduli[1 + i];
        bool told_apart = few || (m && p->symbol_data && p->symbol_data % m == 0);
        bool known = tcc_p_is_exact(&n) && at.kind == TCC_P_KNOWN && told_apart;
        if (known)
            at = tcc_p_forget(p, tcc_p_compute(p, in->op->regions[0]->last->operands[i]->def,
                                              (tcc_pvalue[]){at, n}), m);
        write(p, s, warp, in->results[i], known ? at : (tcc_pvalue){.kind = TCC_P_UNKNOWN});
    }
    return TCC_P_NEXT;
}

tcc_presult tcc_p_enter_loop(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    if (in->counts)
        return count(p, s, warp, in);
    tcc_pframe f = {.pc = AT_HEAD};
    tcc_pvalue bounds[3];
    for (unsigned i = 0; i < 3; i++)
        bounds[i] = read(p, s, warp, in->operands[i]);
    for (unsigned i = 0; i < 2; i++)
        if (in->of_tiles >> i & 1)
            tcc_p_uniform(p, s, warp, in->op->operands[i], &bounds[i]);
    if (!find_first(p, s, warp, in, &bounds[0]))
        return TCC_P_CHOICE;
    if (!plan_iterations(p, s, warp, in, bounds, &f))
        return TCC_P_FAILED;
    for (unsigned i = 0; i < in->op->n_results; i++) {
        if (in->regions[0].registers[1 + i] && warp != p->aside &&
            !tcc_p_take(p, s, warp, in, 3 + i, in->regions[0].registers[1 + i]))
            return TCC_P_FAILED;
        tcc_pvalue v = read(p, s, warp, in->operands[3 + i]);
        if (v.kind == TCC_P_REGISTERS)
            v.delta &= ~(int64_t)TCC_P_TAKEN;
        if (f.record >= 0 && !f.known)
            v = tcc_p_forget(p, v, in->regions[0].moduli[1 + i]);
        write(p, s, warp, in->regions[0].args[1 + i], v);
    }
    for (unsigned i = 0; i < in->n_dying; i++) {
        tcc_pvalue *v = tcc_p_slot(p, s, warp, in->dying[i]);
        if (v->kind == TCC_P_KNOWN && v->v >= 0 && !v->wraps)
            *v = (tcc_pvalue){.kind = TCC_P_KNOWN, .delta = TCC_P_DEAD};
    }
    tcc_p_reached_loop(p, in, &f);
    return tcc_p_enter(p, &s->warps[warp], in, f, 0, s->warps[warp].mask);
}

/* What is carried into the next iteration, being `old` in this one. */
static tcc_pvalue carry(const tcc_protocol *p, const tcc_pframe *f, unsigned i, tcc_pvalue old,
                        tcc_pvalue v)
{
    if (f->record < 0 || f->known)
        return v;
    bool grows = old.kind != TCC_P_KNOWN || v.v > old.v + MAX_GROWTH || v.v < old.v - MAX_GROWTH;
    v = tcc_p_forget(p, v, f->code->moduli[1 + i]);
    return grows ? tcc_p_wrapped(v, f->of->op->results[i].type->elem) : v;
}

/* From the end of an iteration to the head of the next. */
tcc_presult tcc_p_next_iteration(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                  const tcc_pinst *yield)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_pframe *f = &w->frames[w->depth - 1];
    tcc_pvalue *carried = p->carried;
    unsigned n = f->of->op->n_results;
    if (warp == p->aside && f->of->runs_out && !f->busy)
        return leave_loop(p, s, warp);
    for (unsigned i = 0; i < n; i++) {
        carried[i] =
            yield ? read(p, s, warp, yield->operands[i]) : read(p, s, warp, f->code->args[1 + i]);
        if (carried[i].loop == w->depth)
            carried[i].loop = 0;
        if (!carried[i].loop && carried[i].kind == TCC_P_KNOWN)
            carried[i].offset = 0;
        if (carried[i].kind == TCC_P_SYMBOL && tcc_p_symbol_get(p, carried[i].v)->varies)
            carried[i] = (tcc_pvalue){.kind = TCC_P_UNKNOWN};
        carried[i] = carry(p, f, i, read(p, s, warp, f->code->args[1 + i]), carried[i]);
    }
    tcc_p_clear_slots(p, s, warp);
    tcc_p_global_next_iteration(s, warp, f->of->op);
    for (unsigned i = 0; i < n; i++)
        write(p, s, warp, f->code->args[1 + i], carried[i]);
    f->iter++;
    f->pc = AT_HEAD;
    return TCC_P_JUMPED;
}

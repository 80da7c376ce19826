/* scalars: numbers that ops give, as far as they are known.
 *
 * A comparison with a number of iterations, or a condition, that is not known yet is a choice: the
 * explorer decides it both ways, and every warp that asks for the same number later gets the same
 * answer (tcc_precord).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/elementwise.h"

/* ---- numbers that are not known yet ---------------------------------------------------- */

int tcc_p_inner_loop(const tcc_pwarp *w)
{
    for (uint32_t d = w->depth; d-- > 0;)
        if (w->frames[d].record >= 0)
            return (int)d;
    return -1;
}

/* Numbers are chosen one by one. Where two depend on the same parameter, not all that is chosen may
 * go together. */
static void find_doubt(const tcc_protocol *p, tcc_pstate *s, uint32_t symbol)
{
    uint64_t roots = tcc_p_symbol_get(p, symbol)->roots;
    for (; roots; roots &= roots - 1) {
        uint32_t *asked = &s->asked[__builtin_ctzll(roots)];
        s->doubtful |= *asked && *asked != symbol + 1;
        *asked = symbol + 1;
    }
}

int tcc_p_record_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op, int64_t symbol, bool truth)
{
    const tcc_pwarp *w = &s->warps[warp];
    const tcc_psymbol *of = tcc_p_symbol_get(p, symbol);
    int in = truth && !of->varies ? -1 : tcc_p_inner_loop(w);
    tcc_precord r = {.symbol = truth ? (uint32_t)symbol : of->of,
                     .parent = -1,
                     .least = truth ? 0 : tcc_p_symbol_get(p, of->of)->least,
                     .most = truth ? 1 : INT64_MAX,
                     .compared = INT64_MIN,
                     .scale = 1,
                     .truth = truth,
                     .op = op,
                     .asked = (uint32_t)symbol};
    if (in >= 0) {
        r.parent = w->frames[in].record;
        r.parent_at = tcc_p_position(&w->frames[in]);
    }
    for (unsigned i = 0; i < s->n_records; i++) {
        const tcc_precord *o = &s->records[i];
        if (o->symbol == r.symbol && o->parent == r.parent && o->parent_at == r.parent_at &&
            o->truth == truth && !o->remainder)
            return (int)i;
    }
    if (s->n_records == TCC_P_RECORDS)
        return tcc_p_unsupported(p, op, "more than %d numbers are only known at run time",
                                 TCC_P_RECORDS),
               -1;
    find_doubt(p, s, r.symbol);
    s->records[s->n_records] = r;
    return (int)s->n_records++;
}

/* Whether a record's number is more than x: 0, 1, or -1 if that must be chosen. */
int tcc_p_is_more(tcc_protocol *p, const tcc_pstate *s, int record, int64_t x)
{
    const tcc_precord *r = &s->records[record];
    if (r->least > x || r->most <= x)
        return r->least > x;
    p->choice.record = (unsigned)record;
    p->choice.at = x;
    return -1;
}

/* ---- comparisons ----------------------------------------------------------------------- */

/* The record of the loop whose index x is, when y is what the index is compared with; -1 when it is
 * not. Other comparisons with a number of iterations are conditions of their own: how far a loop
 * has come is forgotten, except for how far it has to go. */
static int compared_record(const tcc_protocol *p, const tcc_pstate *s, const tcc_pwarp *w,
                           const tcc_pvalue *x, const tcc_pvalue *y)
{
    if (x->kind != TCC_P_KNOWN || !x->loop)
        return -1;
    const tcc_pframe *f = &w->frames[x->loop - 1];
    if (f->record < 0 || f->by_iterations || f->known)
        return -1;
    if (y->kind != TCC_P_SYMBOL)
        return tcc_p_is_exact(y) && !y->loop && y->v == f->hi ? f->record : -1;
    const tcc_psymbol *of = tcc_p_symbol_get(p, y->v);
    bool is_bound =
        of->of == s->records[f->record].symbol && of->by == f->by && y->delta == INT64_MAX;
    return is_bound ? f->record : -1;
}

/* The bound of the loop of f is more than `at` when the record's number is more than this. Of a loop of known
 * iterations that is how many it makes, of which the last goes on up to the bound. */
static int64_t least_for(const tcc_protocol *p, const tcc_pframe *f, const tcc_pvalue *bound, int64_t at)
{
    if (bound->kind == TCC_P_SYMBOL)
        return tcc_p_symbol_least(tcc_p_symbol_get(p, bound->v), at);
    int64_t ahead = at - f->lo, nth = ahead >= 0 ? ahead / f->step : -((f->step - 1 - ahead) / f->step);
    int64_t in_last = f->hi - f->lo - (tcc_p_known_iterations(f) - 1) * f->step;
    return f->from + nth + (ahead - nth * f->step >= in_last);
}

/* x pred y, y being more than x when the record's number is more than `here`, and more than x - 1 when it is more than
 * `before`; -1 if that must be chosen. */
static int decide(tcc_protocol *p, const tcc_pstate *s, const char *pred, int record, int64_t before, int64_t here)
{
    bool equality = !strcmp(pred, "eq") || !strcmp(pred, "ne");
    int not_more = equality ? tcc_p_is_more(p, s, record, before) : 1;
    int less = not_more < 1 ? not_more : tcc_p_is_more(p, s, record, here);
    if (not_more < 0 || less < 0)
        return -1;
    if (equality)
        return (not_more && !less) == !strcmp(pred, "eq");
    return less == (!strcmp(pred, "lt") || !strcmp(pred, "le"));
}

/* x <= y is x - 1 < y. */
static int64_t compared_at(const char *pred, int64_t x)
{
    return x - (!strcmp(pred, "le") || !strcmp(pred, "gt"));
}

/* The same, y being the bound of the loop whose index x is, plus a constant. */
static int compare(tcc_protocol *p, const tcc_pstate *s, const tcc_pwarp *w, const char *pred,
                   const tcc_pvalue *x, const tcc_pvalue *y, int record)
{
    const tcc_pframe *f = &w->frames[x->loop - 1];
    int64_t at = compared_at(pred, f->lo + f->iter * f->step + x->offset - y->offset);
    return decide(p, s, pred, record, least_for(p, f, y, at - 1), least_for(p, f, y, at));
}

static const char *mirrored(const char *pred)
{
    static const char *const pairs[][2] = {{"lt", "gt"}, {"gt", "lt"}, {"le", "ge"},
                                           {"ge", "le"}, {"eq", "eq"}, {"ne", "ne"}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (!strcmp(pairs[i][0], pred))
            return pairs[i][1];
    return pred;
}

/* A comparison of a constant with a number: one with which loops may end, which are then answered alike. *done when it
 * was one, and is taken for one. */
static tcc_presult compare_constant(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                                    const tcc_pvalue *args, tcc_pvalue *out, bool *done)
{
    unsigned constant = args[0].kind == TCC_P_SYMBOL;
    const tcc_pvalue *x = &args[constant], *y = &args[!constant];
    bool is_one = tcc_p_is_exact(x) && !x->loop && y->kind == TCC_P_SYMBOL && y->delta == INT64_MAX;
    p->compared |= is_one;
    *done = is_one && p->relates;
    if (!*done)
        return TCC_P_NEXT;
    const char *pred = tcc_attr_str(&in->op->attrs, "pred", "");
    pred = constant ? mirrored(pred) : pred;
    int record = tcc_p_record_of(p, s, warp, in->op, y->v, false);
    if (record < 0)
        return TCC_P_FAILED;
    const tcc_psymbol *of = tcc_p_symbol_get(p, y->v);
    int64_t at = compared_at(pred, x->v - y->offset), here = tcc_p_symbol_least(of, at);
    tcc_precord *r = &s->records[record];
    r->compared = here > r->compared ? here : r->compared;
    int answer = decide(p, s, pred, record, tcc_p_symbol_least(of, at - 1), here);
    *out = tcc_p_known(answer);
    return answer < 0 ? TCC_P_CHOICE : TCC_P_NEXT;
}

/* A comparison of a loop's index with its bound. *done when it was one. */
static tcc_presult compare_iterations(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                      const tcc_pinst *in, const tcc_pvalue *args, tcc_pvalue *out,
                                      bool *done)
{
    *done = args[0].loop || args[1].loop; /* one is an index */
    if (!*done)
        return compare_constant(p, s, warp, in, args, out, done);
    const tcc_pwarp *w = &s->warps[warp];
    const char *pred = tcc_attr_str(&in->op->attrs, "pred", "");
    unsigned index = compared_record(p, s, w, &args[0], &args[1]) < 0;
    int record = compared_record(p, s, w, &args[index], &args[!index]);
    *done = record >= 0;
    if (!*done)
        return TCC_P_NEXT;
    int r = compare(p, s, w, index ? mirrored(pred) : pred, &args[index], &args[!index], record);
    *out = tcc_p_known(r);
    return r < 0 ? TCC_P_CHOICE : TCC_P_NEXT;
}

/* ---- scalars --------------------------------------------------------------------------- */

bool tcc_p_operand(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                   unsigned i, int64_t *out)
{
    const tcc_pvalue *v = tcc_p_slot(p, s, warp, in->operands[i]);
    *out = v->v;
    if (tcc_p_is_exact(v))
        return true;
    const tcc_op_info *info = tcc_op_info_get(in->op->code);
    tcc_p_unsupported(p, in->op, "%s: '%s' is only known at run time", info->name,
                      info->operands[i].name);
    return false;
}

/* An iteration count, once it has a known upper bound; until then it stays a symbol. False if the number must be
 * chosen. */
bool tcc_p_find_number(tcc_protocol *p, const tcc_pstate *s, unsigned warp, tcc_pvalue *v)
{
    if (v->kind != TCC_P_SYMBOL)
        return true;
    int in = tcc_p_inner_loop(&s->warps[warp]);
    const tcc_psymbol *of = tcc_p_symbol_get(p, v->v);
    for (unsigned i = 0; i < s->n_records; i++) {
        const tcc_precord *r = &s->records[i];
        bool here = r->parent < 0 || (in >= 0 && r->parent == s->warps[warp].frames[in].record &&
                                      r->parent_at == tcc_p_position(&s->warps[warp].frames[in]));
        if (r->symbol != of->of || r->truth || r->known || !here)
            continue;
        if (!tcc_p_symbol_is_data(p, of->of))
            return false;
        if (r->most == INT64_MAX || r->scale % of->by)
            return true;
        int64_t n = tcc_p_quotient(r->least + of->add, of->by);
        if (n != tcc_p_quotient(r->most + of->add, of->by)) { /* below 0 they are not told apart */
            p->choice.record = i;
            p->choice.at = tcc_p_symbol_least(of, n < 0 ? -1 : n);
            return tcc_p_is_more(p, s, (int)i, p->choice.at) >= 0;
        }
        n = n < v->delta ? n : v->delta;
        *v = tcc_p_known(n + v->offset);
        return true;
    }
    return true;
}

/* The same as data, of which a remainder is asked. */
static bool resolve(tcc_protocol *p, const tcc_pstate *s, unsigned warp, tcc_pvalue *v)
{
    if (!p->symbol_data || v->kind != TCC_P_SYMBOL)
        return true;
    if (!tcc_p_find_number(p, s, warp, v) || (v->kind == TCC_P_KNOWN && tcc_p_sums_fail(p)))
        return false;
    *v = tcc_p_forget_from(*v, p->data_threshold, p->symbol_data);
    return true;
}

static tcc_pvalue tid_of(tcc_protocol *p, unsigned warp)
{
    int64_t lanes[TCC_MAX_LANES];
    for (unsigned l = 0; l < p->n_lanes; l++)
        lanes[l] = (warp == p->aside ? 0 : warp % p->spread) * p->n_lanes + l;
    return tcc_p_lanes(p, lanes);
}

static tcc_pvalue first_lane(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, tcc_pvalue v)
{
    tcc_lane_mask mask = s->warps[warp].mask;
    unsigned first = (unsigned)__builtin_ctzll(mask);
    int64_t n;
    if (v.kind != TCC_P_LANES || !tcc_p_lane(p, &v, first, &n))
        return v;
    if (tcc_p_is_elected(&v))
        tcc_p_lane_differs(p, warp, first);
    else if (mask != tcc_p_all_lanes(p))
        tcc_p_lanes_differ(p, warp, &v);
    return tcc_p_known(n);
}

tcc_presult tcc_p_give(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                       tcc_pvalue *out)
{
    const tcc_op *op = in->op;
    tcc_pvalue args[3] = {0};
    for (unsigned i = 0; i < op->n_operands && i < 3; i++)
        if (in->operands[i] != TCC_P_NO_SLOT)
            args[i] = *tcc_p_slot(p, s, warp, in->operands[i]);
    int64_t c;
    bool done;
    switch (op->code) {
    case TCC_OP_arith_const:
        *out = tcc_value_is_int(&op->results[0], &c) ? tcc_p_known(c)
                                                     : (tcc_pvalue){.kind = TCC_P_UNKNOWN};
        return TCC_P_NEXT;
    case TCC_OP_amdgcn_tid:
    case TCC_OP_nvvm_tid: *out = tid_of(p, warp); return TCC_P_NEXT;
    case TCC_OP_amdgcn_lane: *out = tid_of(p, 0); return TCC_P_NEXT;
    case TCC_OP_amdgcn_wgid:
    case TCC_OP_nvvm_ctaid:
    case TCC_OP_nvvm_nctaid:
    case TCC_OP_nvvm_clusterid:
    case TCC_OP_nvvm_nclusterid:
        *out = p->ctas > 1 && op->code == TCC_OP_nvvm_ctaid ? (tcc_pvalue){.kind = TCC_P_UNKNOWN} /* each has its own */
                                                            : tcc_p_symbol(p, tcc_op_info_get(op->code), NULL, 0);
        return TCC_P_NEXT;
    case TCC_OP_nvvm_cluster_ctarank: *out = tcc_p_known(tcc_p_cta(p, warp)); return TCC_P_NEXT;
    case TCC_OP_nvvm_mapa: *out = tcc_p_mapped(p, warp, &args[0], &args[1]); return TCC_P_NEXT;
    case TCC_OP_amdgcn_lds_base:
    case TCC_OP_nvvm_smem_base: *out = tcc_p_known(TCC_SMEM_BASE + tcc_p_window(p, warp)); return TCC_P_NEXT;
    case TCC_OP_amdgcn_readfirstlane:
    case TCC_OP_nvvm_uniform: *out = first_lane(p, s, warp, args[0]); return TCC_P_NEXT;
    case TCC_OP_nvvm_after:
    case TCC_OP_nvvm_opaque: *out = args[0]; return TCC_P_NEXT;
    case TCC_OP_nvvm_elect: return tcc_p_elect(p, s, warp, in, out);
    case TCC_OP_arith_cmp: {
        tcc_presult r = compare_iterations(p, s, warp, in, args, out, &done);
        if (r != TCC_P_NEXT || done)
            return r;
        if (in->tests_bound && p->rotation && tcc_p_rotation_fails(p))
            return TCC_P_FAILED;
        break;
    }
    default: break;
    }
    *out = (tcc_pvalue){.kind = TCC_P_UNKNOWN};
    if (op->n_operands < 1 || op->n_operands > 3 || op->n_results != 1)
        return TCC_P_NEXT;
    tcc_presult product = s ? tcc_p_multiply(p, s, op, args, out, &done) : TCC_P_NEXT;
    if (s && (product != TCC_P_NEXT || done))
        return product;
    for (unsigned i = 0; i < op->n_operands; i++)
        if (!resolve(p, s, warp, &args[i]))
            return TCC_P_CHOICE;
    *out = tcc_p_compute(p, op, args);
    return TCC_P_NEXT;
}

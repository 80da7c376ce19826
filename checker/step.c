/* step: one warp's next op, and control flow.
 *
 * A comparison with a number of iterations, or a condition, that is not known yet is a choice: the
 * explorer decides it both ways, and every warp that asks for the same number later gets the same
 * answer (tcc_precord).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/elementwise.h"

enum { AT_HEAD = TCC_P_AT_HEAD, ELECTED = 31, LEAST_ITERATIONS = 16 };
enum { MAX_GROWTH = 256 }; /* of a counter in an iteration, so that it does not overflow */

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
                     .most = truth ? 1 : INT64_MAX,
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
            o->truth == truth)
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
static int is_more(tcc_protocol *p, const tcc_pstate *s, int record, int64_t x)
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

/* x pred y, y being the bound of the loop whose index x is, plus a constant; -1 if that must be
 * chosen. */
static int compare(tcc_protocol *p, const tcc_pstate *s, const tcc_pwarp *w, const char *pred,
                   const tcc_pvalue *x, const tcc_pvalue *y, int record)
{
    const tcc_pframe *f = &w->frames[x->loop - 1];
    int64_t at = f->lo + f->iter * f->step + x->offset - y->offset;
    if (!strcmp(pred, "le") || !strcmp(pred, "gt"))
        at--; /* x <= y is x - 1 < y */
    static const tcc_psymbol itself = {.by = 1};
    const tcc_psymbol *of = y->kind == TCC_P_SYMBOL ? tcc_p_symbol_get(p, y->v) : &itself;
    bool equality = !strcmp(pred, "eq") || !strcmp(pred, "ne");
    int not_more = equality ? is_more(p, s, record, tcc_p_symbol_least(of, at - 1)) : 1;
    int less = not_more < 1 ? not_more : is_more(p, s, record, tcc_p_symbol_least(of, at));
    if (not_more < 0 || less < 0)
        return -1;
    if (equality)
        return (not_more && !less) == !strcmp(pred, "eq");
    return less == (!strcmp(pred, "lt") || !strcmp(pred, "le"));
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

/* A comparison of a loop's index with its bound. *done when it was one. */
static tcc_presult compare_iterations(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                      const tcc_pinst *in, const tcc_pvalue *args, tcc_pvalue *out,
                                      bool *done)
{
    *done = args[0].loop || args[1].loop; /* one is an index */
    if (!*done)
        return TCC_P_NEXT;
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
static bool find_number(tcc_protocol *p, const tcc_pstate *s, unsigned warp, tcc_pvalue *v)
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
        int64_t n = (r->least + of->add) / of->by;
        if (r->most == INT64_MAX || r->scale % of->by)
            return true;
        if (n != (r->most + of->add) / of->by) {
            p->choice.record = i;
            p->choice.at = tcc_p_symbol_least(of, n);
            return false;
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
    if (!find_number(p, s, warp, v) || (v->kind == TCC_P_KNOWN && tcc_p_sums_fail(p)))
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

static tcc_pvalue elected(tcc_protocol *p)
{
    int64_t lanes[TCC_MAX_LANES] = {0};
    lanes[ELECTED] = 1;
    return tcc_p_lanes(p, lanes);
}

static tcc_pvalue first_lane(const tcc_protocol *p, tcc_pvalue v, tcc_lane_mask mask)
{
    int64_t n;
    if (v.kind == TCC_P_LANES && tcc_p_lane(p, &v, (unsigned)__builtin_ctzll(mask), &n))
        return tcc_p_known(n);
    return v;
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
    case TCC_OP_nvvm_uniform: *out = first_lane(p, args[0], s->warps[warp].mask); return TCC_P_NEXT;
    case TCC_OP_nvvm_opaque: *out = args[0]; return TCC_P_NEXT;
    case TCC_OP_nvvm_elect: *out = elected(p); return TCC_P_NEXT;
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
    for (unsigned i = 0; i < op->n_operands; i++)
        if (!resolve(p, s, warp, &args[i]))
            return TCC_P_CHOICE;
    *out = tcc_p_compute(p, op, args);
    return TCC_P_NEXT;
}

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
    if (v->v && in->wanted_twice >> operand & 1) {
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
        if ((args[i].kind != TCC_P_KNOWN && args[i].kind != TCC_P_LANES) ||
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

/* ---- loops ----------------------------------------------------------------------------- */

bool tcc_p_held_slots(const tcc_pframe *f, size_t i, tcc_pslots *piece)
{
    const tcc_pcode *code = f->code;
    uint32_t end = f->pc == AT_HEAD ? code->end_args : f->pc < code->n ? code->insts[f->pc].end_slot : code->end_slot;
    if (i >= code->n_own || code->own[i].first >= end)
        return false;
    *piece = code->own[i];
    piece->end = piece->end < end ? piece->end : end;
    return true;
}

static void copy_held(const tcc_pframe *f, tcc_pvalue *to, const tcc_pvalue *from)
{
    tcc_pslots piece;
    for (size_t i = 0; tcc_p_held_slots(f, i, &piece); i++) {
        size_t bytes = (piece.end - piece.first) * sizeof *to;
        if (from)
            memcpy(to + piece.first, from + piece.first, bytes);
        else
            memset(to + piece.first, 0, bytes);
    }
}

void tcc_p_copy_slots(const tcc_pwarp *w, tcc_pvalue *to, const tcc_pvalue *from)
{
    for (uint32_t d = 0; d < w->depth; d++)
        copy_held(&w->frames[d], to, from);
}

/* Before the region is left that the warp is in: those inside were. */
static void clear(const tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    const tcc_pwarp *w = &s->warps[warp];
    copy_held(&w->frames[w->depth - 1], tcc_p_slot(p, s, warp, 0), NULL);
}

static tcc_pvalue read(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, uint32_t slot)
{
    return slot == TCC_P_NO_SLOT ? (tcc_pvalue){0} : *tcc_p_slot(p, s, warp, slot);
}

static void write(const tcc_protocol *p, tcc_pstate *s, unsigned warp, uint32_t slot, tcc_pvalue v)
{
    if (slot != TCC_P_NO_SLOT)
        *tcc_p_slot(p, s, warp, slot) = v;
}

/* A loop of known iterations around others is like one that turned out to make as many: what is
 * asked for inside is of its iterations. */
static bool keep_iterations(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                            const tcc_pvalue *bounds, tcc_pframe *f)
{
    int64_t iterations = f->hi > f->lo ? (f->hi - f->lo + f->step - 1) / f->step : 0;
    int64_t known = tcc_p_symbol(p, "known", bounds, 3).v;
    f->record = tcc_p_record_of(p, s, warp, in->op, known, false);
    if (f->record < 0)
        return false;
    f->known = true;
    s->records[f->record].known = true;
    s->records[f->record].least = s->records[f->record].most = iterations;
    return true;
}

/* Stands for the bound of a loop of more iterations than are counted one by one. */
static tcc_pvalue bound_of(tcc_protocol *p, const tcc_pvalue *bound)
{
    return tcc_p_symbol(p, "bound", bound, 1);
}

/* Decides what tells when the loop ends. */
static bool plan_iterations(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                            tcc_pframe *f)
{
    tcc_pvalue b[3];
    bool known = true, fixed = true;
    for (unsigned i = 0; i < 3; i++) {
        b[i] = read(p, s, warp, in->operands[i]);
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
    if (known && (!in->waits || f->hi - f->lo <= TCC_P_KNOWN_ITERATIONS * f->step))
        return !in->regions[0].loops || keep_iterations(p, s, warp, in, b, f);
    const tcc_psymbol *of =
        b[1].kind == TCC_P_SYMBOL ? tcc_p_symbol_get(p, b[1].v) : &(tcc_psymbol){.by = 1};
    bool by_index = tcc_p_is_exact(&b[0]) && tcc_p_is_exact(&b[2]) &&
                    (known || (b[1].kind == TCC_P_SYMBOL &&
                               (of->counts || (f->lo >= 0 && f->lo >= b[1].offset))));
    if (!in->waits || !(by_index || fixed))
        return tcc_p_unsupported(p, in->op,
                                 "how often this loop runs is only known at run time, and "
                                 "%s",
                                 in->waits ? "may differ from warp to warp"
                                           : "it accesses shared memory with no barrier"),
               false;
    f->by_iterations = !by_index;
    f->bound = known      ? bound_of(p, &b[1]).v
               : by_index ? b[1].v
                          : tcc_p_symbol(p, "iterations", b, 3).v;
    if (by_index && !known && b[1].delta != INT64_MAX)
        f->cap = b[1].delta + b[1].offset;
    if (by_index) {
        f->by = of->by;
        f->scale = of->by * f->step;
        f->from = tcc_p_symbol_least(of, f->lo - b[1].offset);
    }
    if (by_index && !known)
        f->hi = INT64_MAX;
    f->record = tcc_p_record_of(p, s, warp, in->op, f->bound, false);
    if (f->record < 0 || (in->data && !tcc_p_symbol_is_data(p, s->records[f->record].symbol)))
        return false;
    tcc_precord *r = &s->records[f->record];
    r->scale = r->scale / tcc_gcd(r->scale, f->scale) * f->scale;
    int64_t least = known ? f->lo + LEAST_ITERATIONS * f->step
                    : tcc_attr_int(&in->op->attrs, "at_least_once", 0) ? f->from + 1
                                                                       : 0;
    if (r->most >= least && r->least < least)
        r->least = least;
    tcc_p_count_known(p, s, r);
    return true;
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
    for (unsigned i = 0; i < in->op->n_results; i++)
        write(p, s, warp, in->results[i], read(p, s, warp, f->code->args[1 + i]));
    clear(p, s, warp);
    w->mask = f->outer;
    w->depth--;
    w->frames[w->depth] = (tcc_pframe){0};
    w->frames[w->depth - 1].pc++;
    w->progress += synchronizes;
    return synchronizes ? TCC_P_HEAD : TCC_P_JUMPED;
}

/* Is there another iteration? */
static tcc_presult at_head(tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_pframe *f = &w->frames[w->depth - 1];
    int64_t index = f->lo + f->iter * f->step;
    if (f->of->tests && !tcc_p_tests_drawn(p, s, warp))
        return TCC_P_FAILED;
    int more = f->record < 0     ? index < f->hi
               : index >= f->cap ? 0
                                 : is_more(p, s, f->record, tcc_p_position(f));
    if (more < 0)
        return TCC_P_CHOICE;
    if (!more && !f->iter && tcc_attr_int(&f->of->op->attrs, "at_least_once", 0))
        return tcc_p_wrong(p, s, warp, f->of, "scf.for is at_least_once and makes no iteration");
    if (!more)
        return leave_loop(p, s, warp);
    f->pc = 0;
    f->busy = false;
    set_index(p, s, warp, f->of);
    w->progress += f->record >= 0;
    return f->record >= 0 ? TCC_P_HEAD : TCC_P_JUMPED;
}

static tcc_presult enter(tcc_protocol *p, tcc_pwarp *w, const tcc_pinst *in, tcc_pframe f,
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
    bool few = tcc_p_is_exact(&n) && n.v <= TCC_P_KNOWN_ITERATIONS;
    if (tcc_p_is_exact(&n) && !few)
        n = bound_of(p, &n);
    if (!find_number(p, s, warp, &n))
        return TCC_P_CHOICE;
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

static tcc_presult enter_loop(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    if (in->counts)
        return count(p, s, warp, in);
    tcc_pframe f = {.pc = AT_HEAD};
    if (!plan_iterations(p, s, warp, in, &f))
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
    return enter(p, &s->warps[warp], in, f, 0, s->warps[warp].mask);
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
static tcc_presult next_iteration(tcc_protocol *p, tcc_pstate *s, unsigned warp,
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
    clear(p, s, warp);
    tcc_p_global_next_iteration(s, warp);
    for (unsigned i = 0; i < n; i++)
        write(p, s, warp, f->code->args[1 + i], carried[i]);
    f->iter++;
    f->pc = AT_HEAD;
    return TCC_P_JUMPED;
}

/* ---- branches -------------------------------------------------------------------------- */

static tcc_presult branch_mask(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                               tcc_lane_mask *yes, bool *may)
{
    const tcc_pvalue *c = tcc_p_slot(p, s, warp, in->operands[0]);
    *yes = 0;
    *may = false;
    if (c->kind == TCC_P_SYMBOL) {
        int record = tcc_p_record_of(p, s, warp, in->op, c->v, true);
        int more = record < 0 ? 0 : is_more(p, s, record, 0);
        *yes = more > 0 ? tcc_p_all_lanes(p) : 0;
        return record < 0 ? TCC_P_FAILED : more < 0 ? TCC_P_CHOICE : TCC_P_NEXT;
    }
    if (tcc_p_is_exact(c)) {
        *yes = c->v ? tcc_p_all_lanes(p) : 0;
        return TCC_P_NEXT;
    }
    for (unsigned l = 0; l < p->n_lanes; l++) {
        int64_t v;
        bool known = tcc_p_lane(p, c, l, &v);
        if (!known && (p->amd ? !in->waits : in->harmless)) {
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
    *r = enter(p, w, in, (tcc_pframe){.record = -1, .may = may}, region, mask);
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

/* The lanes of the mask get b, the others keep a. */
static tcc_pvalue merge(tcc_protocol *p, const tcc_pvalue *a, const tcc_pvalue *b,
                        tcc_lane_mask mask)
{
    int64_t lanes[TCC_MAX_LANES];
    if (b->kind == TCC_P_REGISTERS)
        return joined(*b, a);
    for (unsigned l = 0; l < p->n_lanes; l++) {
        const tcc_pvalue *from = mask >> l & 1 ? b : a;
        if (from->kind == TCC_P_NONE)
            lanes[l] = 0;
        else if (!tcc_p_lane(p, from, l, &lanes[l]))
            return (tcc_pvalue){.kind = TCC_P_UNKNOWN};
    }
    return tcc_p_lanes(p, lanes);
}

static tcc_presult leave_branch(tcc_protocol *p, tcc_pstate *s, unsigned warp,
                                const tcc_pinst *yield)
{
    tcc_pwarp *w = &s->warps[warp];
    tcc_pframe f = w->frames[w->depth - 1];
    for (unsigned i = 0; yield && i < f.of->op->n_results; i++) {
        tcc_pvalue v = read(p, s, warp, yield->operands[i]);
        tcc_pvalue old = read(p, s, warp, f.of->results[i]);
        if (f.may && v.kind != TCC_P_REGISTERS)
            v = (tcc_pvalue){.kind = TCC_P_UNKNOWN};
        if (f.of->results[i] != TCC_P_NO_SLOT)
            write(p, s, warp, f.of->results[i], f.mask == f.outer ? v : merge(p, &old, &v, f.mask));
    }
    clear(p, s, warp);
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
        clear(p, s, warp);
        w->depth = 0;
        w->frames[0] = (tcc_pframe){0};
        return TCC_P_JUMPED;
    }
    return of->op->code == TCC_OP_scf_for ? next_iteration(p, s, warp, yield)
                                          : leave_branch(p, s, warp, yield);
}

static tcc_phook *const hooks[TCC_OP_COUNT] = {
#define OP(id) [TCC_OP_##id] = tcc_p_##id,
    TCC_P_OPS(OP)
#undef OP
    [TCC_OP_scf_for] = enter_loop,
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
        return at_head(p, s, warp);
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
    tcc_presult r = in->run ? tcc_p_run(p, s, warp, in) : (hook ? hook : compute)(p, s, warp, in);
    bool begins = in->aside && warp == p->aside && (r == TCC_P_NEXT || r == TCC_P_JUMPED);
    if (begins && !tcc_p_aside_begin(p, s))
        return TCC_P_FAILED;
    if (r == TCC_P_NEXT)
        w->frames[w->depth - 1].pc++;
    return r;
}

/* needs: how much of each value is asked for, and which registers MMAs may access.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/decode.h"
#include "ir/counting.h"

/* ---- which operands an op asks for -------------------------------------------------------- */

/* Whether operand i of an op that is followed must be known: addresses, numbers of barriers and
 * threads, not what registers hold. */
static bool must_be_known(const tcc_op *op, unsigned i)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    for (unsigned o = 0; o <= i && o < info->n_operands; o++)
        if (info->operands[o].kinds >> TCC_KIND_ptr & 1) /* and what follows: a place in a tensor */
            return false;
    return i < info->n_operands && !(info->operands[i].kinds >> TCC_KIND_vec & 1) &&
           !(info->effects & TCC_LANES);
}

/* ---- what is asked of values ---------------------------------------------------------------- */

/* Asks for v's remainder by m as well. */
static void ask(decoder *d, uint32_t v, int64_t m, int64_t threshold)
{
    need *n = &d->needs.data[v];
    int64_t both = !n->modulus                         ? m
                   : m == EXACT || n->modulus == EXACT ? EXACT
                                                       : n->modulus / tcc_gcd(n->modulus, m) * m;
    if (both > MAX_MODULUS)
        both = EXACT;
    if (threshold > 2 * MAX_THRESHOLD)
        threshold = 0;
    d->changed |= both != n->modulus || threshold > n->threshold;
    n->modulus = both;
    if (threshold > n->threshold)
        n->threshold = threshold;
}

static int64_t times(int64_t modulus, int64_t factor)
{
    return modulus == EXACT || factor > MAX_MODULUS ? EXACT : modulus * factor;
}

/* What is asked of the first operand when a remainder by m is asked of the result, the second one
 * being the constant c. */
static int64_t asked_of_first(tcc_opcode code, int64_t m, int64_t c)
{
    bool power = m != EXACT && (m & (m - 1)) == 0;
    switch (code) {
    case TCC_OP_arith_add:
    case TCC_OP_arith_sub: return m;
    case TCC_OP_arith_mul: return m == EXACT || c < 1 ? EXACT : m / tcc_gcd(m, c);
    case TCC_OP_arith_and: return c >= 0 && (c & (c + 1)) == 0 ? c + 1 : EXACT;
    case TCC_OP_arith_rem: return c > 0 ? c : EXACT;
    case TCC_OP_arith_div: return c > 0 ? times(m, c) : EXACT;
    case TCC_OP_arith_shr: return c >= 0 && c < 16 ? times(m, INT64_C(1) << c) : EXACT;
    case TCC_OP_arith_xor: return power && c >= 0 ? m : EXACT;
    default: return EXACT;
    }
}

/* Below what the first operand is wanted exactly where the result is below `threshold`. */
static int64_t threshold_of_first(tcc_opcode code, int64_t threshold, int64_t c)
{
    int64_t less = code == TCC_OP_arith_add ? c : code == TCC_OP_arith_sub ? -c : 0;
    bool shifts = threshold && less < MAX_THRESHOLD && less > -MAX_THRESHOLD;
    threshold -= shifts ? 2 * less : 0;
    return threshold > 0 ? threshold : 0;
}

/* Behind a constant nothing is told apart, or from it on. */
static int64_t threshold_at(int64_t c, bool from_there)
{
    int64_t far = c < -MAX_THRESHOLD || c > MAX_THRESHOLD ? MAX_THRESHOLD : c < 0 ? -c : c;
    return 2 * (far + 1) - from_there;
}

/* Whether all from the constant on compare alike: x < c, x >= c. */
static bool is_below(const tcc_op *cmp, unsigned i)
{
    const char *pred = tcc_attr_str(&cmp->attrs, "pred", "");
    return !strcmp(pred, i ? "gt" : "lt") || !strcmp(pred, i ? "le" : "ge");
}

static void ask_of_operands(decoder *d, const source *s)
{
    const tcc_op *op = s->op;
    const need *r = &d->needs.data[s->results];
    int64_t m = r->modulus, threshold = r->threshold, c = 0;
    bool constant = op->n_operands == 2 && tcc_value_is_int(op->operands[1], &c);
    switch (op->code) {
    case TCC_OP_arith_cmp:
        for (unsigned i = 0; i < 2; i++) {
            bool known = tcc_value_is_int(op->operands[!i], &c);
            ask(d, s->operands[i], NEEDED, known ? threshold_at(c, is_below(op, i)) : 0);
        }
        return;
    case TCC_OP_arith_cast: ask(d, s->operands[0], m, threshold); return;
    case TCC_OP_arith_select:
        ask(d, s->operands[0], NEEDED, 0);
        ask(d, s->operands[1], m, threshold);
        ask(d, s->operands[2], m, threshold);
        return;
    case TCC_OP_arith_min:
    case TCC_OP_arith_max:
        ask(d, s->operands[0], m, constant ? threshold_at(c, false) : threshold);
        ask(d, s->operands[1], m, threshold);
        return;
    default: break;
    }
    if (constant) {
        ask(d, s->operands[0], asked_of_first(op->code, m, c), threshold_of_first(op->code, threshold, c));
        ask(d, s->operands[1], EXACT, 0);
        return;
    }
    bool linear = op->code == TCC_OP_arith_add || op->code == TCC_OP_arith_sub || op->code == TCC_OP_arith_mul;
    for (unsigned i = 0; i < op->n_operands; i++) /* that there is one: uniform.c */
        ask(d, s->operands[i], linear || m == NEEDED ? m : EXACT, threshold);
}

static void mark(decoder *d, source *s)
{
    d->changed |= !s->matters;
    s->matters = true;
}

/* Whether any result is asked for. */
static bool is_asked_for(const decoder *d, const source *s)
{
    for (unsigned i = 0; i < s->op->n_results; i++)
        if (d->needs.data[s->results + i].modulus)
            return true;
    return false;
}

static void ask_for_loop(decoder *d, const source *s)
{
    for (unsigned i = 0; i < 3; i++)
        ask(d, s->operands[i], i == 1 ? NEEDED : EXACT, 0);
    if (tcc_loop_tests(s->op))
        ask(d, s->args[0] + 1, EXACT, 0);
    for (unsigned i = 0; i < s->op->n_results && tcc_loop_only_counts(s->op); i++) {
        const need *r = &d->needs.data[s->results + i]; /* the sum of two numbers */
        if (r->modulus)
            ask(d, s->operands[1], r->modulus, r->threshold);
    }
    for (unsigned i = 0; i < s->op->n_results; i++) {
        const need *r = &d->needs.data[s->results + i];
        if (r->modulus)
            ask(d, s->args[0] + 1 + i, r->modulus, r->threshold);
        const need *arg = &d->needs.data[s->args[0] + 1 + i];
        if (arg->modulus)
            ask(d, s->operands[3 + i], arg->modulus, arg->threshold);
    }
}

/* What a yield gives is asked for as the loop's arguments, or the branch's results, are. */
static void ask_for_yield(decoder *d, const source *s, const source *parent)
{
    bool loop = parent->op->code == TCC_OP_scf_for;
    for (unsigned i = 0; i < s->op->n_operands && i < parent->op->n_results; i++) {
        const need *to = &d->needs.data[loop ? parent->args[0] + 1 + i : parent->results + i];
        if (to->modulus)
            ask(d, s->operands[i], to->modulus, to->threshold);
    }
}

static void ask_for_place(decoder *d, source *s)
{
    enum { TOLD_APART = 2 * 2 }; /* iterations, at first */
    mark(d, s);
    for (unsigned i = 0; i < s->place->n_terms; i++)
        ask(d, tcc_p_number_of(d, s->place->terms[i].value), s->place->terms[i].modulus,
            TOLD_APART);
}

/* One source, those behind it having been seen. */
void tcc_p_walk_back(decoder *d, source *s)
{
    source *parent = s->parent ? &d->sources.data[s->parent - 1] : NULL;
    if (s->tensor)
        ask_for_place(d, s);
    if (is_followed(s->op)) {
        mark(d, s);
        s->waits |= tcc_op_does(s->op->code, TCC_P_SYNC | TCC_LANES); /* lanes wait for each other */
        for (unsigned i = 0; i < s->op->n_operands; i++)
            if (must_be_known(s->op, i))
                ask(d, s->operands[i], EXACT, 0);
    } else if (s->op->code == TCC_OP_scf_yield && parent) {
        if (parent->matters) {
            mark(d, s);
            ask_for_yield(d, s, parent);
        }
    } else if (is_asked_for(d, s)) {
        mark(d, s);
        if (!s->op->n_regions)
            ask_of_operands(d, s);
    }
    if (s->matters && s->op->code == TCC_OP_scf_for)
        ask_for_loop(d, s);
    else if (s->matters && s->op->code == TCC_OP_scf_if)
        ask(d, s->operands[0], EXACT, 0);
    if (s->matters && parent && s->op->code != TCC_OP_scf_yield)
        mark(d, parent);
    if (parent && s->waits)
        parent->waits = true;
}

/* ---- registers of MMAs ----------------------------------------------------------------- */

static bool set_flag(decoder *d, bool *flag, bool value)
{
    d->changed |= value && !*flag;
    *flag |= value;
    return *flag;
}

/* Hands a property of registers between an op's operands and its results. */
static void trace_registers(decoder *d, const source *s)
{
    const tcc_op *op = s->op;
    need *n = d->needs.data;
    const source *parent = s->parent ? &d->sources.data[s->parent - 1] : NULL;
    if (tcc_op_starts(op->code, TCC_BY_MMA_GROUP)) {
        bool a = op->operands[1]->type->kind == TCC_KIND_vec;
        set_flag(d, &n[s->results].in_flight, true);
        set_flag(d, &n[s->operands[0]].taken, true);
        set_flag(d, &n[s->operands[1]].in_flight, a);
        set_flag(d, &n[s->operands[1]].taken, a);
    } else if (tcc_op_waits(op->code, TCC_BY_MMA_GROUP)) {
        bool left = s->open || tcc_attr_int(&op->attrs, "pending", 0) > 0;
        for (unsigned i = 0; i < op->n_results; i++) {
            set_flag(d, &n[s->results + i].in_flight, left && n[s->operands[i]].in_flight);
            set_flag(d, &n[s->operands[i]].taken, n[s->results + i].taken);
        }
    } else if (tcc_registers_pass(op->code) && op->n_results == 1 && !op->n_regions) {
        for (unsigned i = 0; i < op->n_operands; i++) {
            set_flag(d, &n[s->results].in_flight, n[s->operands[i]].in_flight);
            set_flag(d, &n[s->operands[i]].taken, n[s->results].taken);
        }
    } else if (op->code == TCC_OP_scf_for) {
        for (unsigned i = 0; i < op->n_results; i++) {
            need *arg = &n[s->args[0] + 1 + i], *init = &n[s->operands[3 + i]];
            set_flag(d, &arg->in_flight, init->in_flight);
            set_flag(d, &n[s->results + i].in_flight, arg->in_flight);
            set_flag(d, &arg->taken, n[s->results + i].taken);
            set_flag(d, &init->taken, arg->taken);
        }
    } else if (op->code == TCC_OP_scf_yield && parent) {
        bool loop = parent->op->code == TCC_OP_scf_for;
        for (unsigned i = 0; i < op->n_operands && i < parent->op->n_results; i++) {
            need *to = &n[loop ? parent->args[0] + 1 + i : parent->results + i];
            set_flag(d, &to->in_flight, n[s->operands[i]].in_flight);
            set_flag(d, &n[s->operands[i]].taken, to->taken);
        }
    }
}

/* An op that is looked at because of the registers that it reads or writes. */
static bool touches_registers(const decoder *d, const source *s)
{
    for (unsigned i = 0; i < s->op->n_operands; i++)
        if (d->needs.data[s->operands[i]].in_flight)
            return true;
    for (unsigned i = 0; i < s->op->n_results; i++)
        if (is_tracked(&d->needs.data[s->results + i]))
            return true;
    return false;
}

/* A bit for the registers of MMAs that a value is in; more than there are bits share the last.
 */
uint64_t tcc_p_registers_of(const decoder *d, const tcc_value *v)
{
    unsigned n =
        d->registers && v->type->kind == TCC_KIND_vec ? tcc_registers_of(d->registers, v) : 0;
    return n ? UINT64_C(1) << (n < 64 ? n - 1 : 63) : 0;
}

static bool is_mma_fence(tcc_opcode code)
{
    return tcc_op_does(code, TCC_FENCE) && tcc_op_does(code, TCC_MMA);
}

/* The first op of a block that reads registers of MMAs after a fence. */
static void find_touches(decoder *d)
{
    const source *before = NULL;
    uint64_t seen = 0;
    for (size_t i = 0; d->registers && i < d->sources.len; before = &d->sources.data[i++]) {
        source *s = &d->sources.data[i];
        bool goes_on = before && s->parent == before->parent && s->region == before->region;
        if (!goes_on || is_mma_fence(before->op->code))
            seen = 0;
        for (unsigned o = 0; !tcc_registers_pass(s->op->code) && o < s->op->n_operands; o++)
            s->touches |= tcc_p_registers_of(d, s->op->operands[o]);
        s->touches &= ~seen;
        s->matters |= s->touches != 0;
        seen |= s->touches;
    }
}

static bool closes_group(tcc_opcode code)
{
    return tcc_op_does(code, TCC_BY_MMA_GROUP) && tcc_op_does(code, TCC_COUNTS);
}

/* Waits with MMAs in front that no commit follows: of those they do not wait for. */
static void find_open(decoder *d)
{
    bool open = false;
    for (size_t i = 0; i < d->sources.len; i++) {
        tcc_opcode code = d->sources.data[i].op->code;
        open = tcc_op_starts(code, TCC_BY_MMA_GROUP) || (open && !closes_group(code));
        d->sources.data[i].open = open;
    }
}

/* Whether an op may hand on registers of MMAs: most do not. */
static bool hands_on(const tcc_op *op)
{
    bool passes = tcc_registers_pass(op->code) && op->n_results == 1 && !op->n_regions;
    bool carries = op->code == TCC_OP_scf_for ? op->n_results : op->code == TCC_OP_scf_yield && op->n_operands;
    return passes || carries || tcc_op_starts(op->code, TCC_BY_MMA_GROUP) || tcc_op_waits(op->code, TCC_BY_MMA_GROUP);
}

void tcc_p_find_registers(decoder *d)
{
    TCC_VEC(const source *) on = {0};
    bool any = false;
    find_open(d);
    for (size_t i = 0; i < d->sources.len; i++) {
        any |= tcc_op_starts(d->sources.data[i].op->code, TCC_BY_MMA_GROUP);
        if (hands_on(d->sources.data[i].op))
            TCC_PUSH(d->p->scratch, &on, &d->sources.data[i]);
    }
    d->changed = any;
    while (d->changed) {
        d->changed = false;
        for (size_t i = 0; i < on.len; i++)
            trace_registers(d, on.data[i]);
        for (size_t i = on.len; i-- > 0;)
            trace_registers(d, on.data[i]);
    }
    for (size_t i = 0; i < d->sources.len; i++)
        d->sources.data[i].matters = touches_registers(d, &d->sources.data[i]);
    if (!d->p->amd)
        d->registers = tcc_registers_find(d->p->f, d->p->scratch);
    find_touches(d);
}

/* decode: of a function's ops those that matter, with a slot for each value that they
 * need.
 *
 * What matters is synchronization and access to shared memory, or to tensors that copies both read
 * and write; scalars are needed where those, or the control flow around them, ask for them. Most
 * of a kernel, its arithmetic and its other accesses to global memory, is left out. Walking
 * backwards from what asks also tells how much of a number is asked: of the index of a ring's loop
 * only its remainder by twice the number of stages, which is what makes the states finite
 * (value.c).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/counting.h"
#include "ir/target.h"
#include "support/map.h"

enum { NOT_NEEDED = 0, NEEDED = 1, EXACT = INT32_MAX, MAX_MODULUS = 1 << 16, MAX_THRESHOLD = 64 };
enum { MAX_NESTING = 64, GRANULE = 8 };

/* How much of a value is needed: its remainder by `modulus`, and numbers below half of `threshold`,
 * rounded down, or up where nothing may be left unknown. */
typedef struct need {
    const tcc_value *value;
    int64_t modulus, threshold;
    bool in_flight; /* an MMA may still access it */
    bool taken;     /* an MMA adds to it, or takes its A from it */
    uint32_t slot;
} need;

typedef struct source {
    const tcc_op *op;
    uint32_t *operands;
    uint32_t results;        /* number of the first */
    uint32_t *args;          /* of each region, number of the first argument */
    uint32_t parent, region; /* source + 1, 0: the body; which of its regions */
    uint64_t touches;        /* registers of MMAs, a bit each */
    uint32_t tensor;         /* that is followed, */
    tcc_pplace *place;       /* and where in it */
    bool matters, waits, open;
} source;

typedef struct decoder {
    tcc_protocol *p;
    tcc_map numbers;
    TCC_VEC(need) needs;
    TCC_VEC(source) sources;
    tcc_pinst *insts;
    tcc_registers *registers;
    bool changed;
} decoder;

/* ---- which operands an op asks for -------------------------------------------------------- */

/* What draws a number changes which one the next is, whether it is wanted or not. */
static bool is_followed(const tcc_op *op)
{
    return tcc_op_does(op->code, TCC_P_FOLLOWED) || op->code == TCC_OP_nvvm_atom_inc;
}

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

/* ---- reading ----------------------------------------------------------------------------- */

static uint32_t number_of(decoder *d, const tcc_value *v)
{
    void **place = tcc_map_at(&d->numbers, v);
    if (!*place) {
        TCC_PUSH(d->p->scratch, &d->needs, (need){.value = v, .slot = TCC_P_NO_SLOT});
        *place = (void *)(uintptr_t)d->needs.len;
    }
    return (uint32_t)((uintptr_t)*place - 1);
}

static bool read_block(decoder *d, const tcc_block *block, uint32_t parent, uint32_t region,
                       unsigned depth);

static bool read_op(decoder *d, const tcc_op *op, uint32_t parent, uint32_t region, unsigned depth)
{
    tcc_arena *scratch = d->p->scratch;
    const tcc_op_info *info = tcc_op_info_get(op->code);
    if (!(info->levels & TCC_LEVEL_TARGET))
        return tcc_p_unsupported(d->p, op, "%s is not of the target level", info->name), false;
    if (!tcc_p_is_known(op->code))
        return tcc_p_unsupported(d->p, op, "nothing is known of %s", info->name), false;
    source s = {.op = op, .parent = parent, .region = region};
    s.operands = TCC_NEW_ARRAY(scratch, uint32_t, op->n_operands + 1);
    s.args = TCC_NEW_ARRAY(scratch, uint32_t, op->n_regions + 1);
    for (unsigned i = 0; i < op->n_operands; i++)
        s.operands[i] = number_of(d, op->operands[i]);
    s.results = (uint32_t)d->needs.len;
    for (unsigned i = 0; i < op->n_results; i++)
        number_of(d, &op->results[i]);
    TCC_PUSH(scratch, &d->sources, s);
    uint32_t self = (uint32_t)d->sources.len;
    for (unsigned r = 0; r < op->n_regions; r++) {
        d->sources.data[self - 1].args[r] = (uint32_t)d->needs.len;
        if (!read_block(d, op->regions[r], self, r, depth + 1))
            return false;
    }
    return true;
}

static bool read_block(decoder *d, const tcc_block *block, uint32_t parent, uint32_t region,
                       unsigned depth)
{
    if (depth > MAX_NESTING)
        return tcc_p_unsupported(d->p, block->parent, "regions are nested too deeply"), false;
    for (size_t i = 0; i < block->n_args; i++)
        number_of(d, block->args[i]);
    for (const tcc_op *op = block->first; op; op = op->next)
        if (op->code != TCC_OP_nvvm_griddepcontrol_wait && /* tcc_p_global_waits */
            !(tcc_op_does(op->code, TCC_HINT) && !op->n_results) && !read_op(d, op, parent, region, depth))
            return false;
    return true;
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
    bool linear = op->code == TCC_OP_arith_add || op->code == TCC_OP_arith_sub;
    for (unsigned i = 0; i < op->n_operands; i++)
        ask(d, s->operands[i], linear ? m : EXACT, threshold);
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
        ask(d, number_of(d, s->place->terms[i].value), s->place->terms[i].modulus,
            TOLD_APART);
}

/* One source, those behind it having been seen. */
static void walk_back(decoder *d, source *s)
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

static bool is_tracked(const need *n)
{
    return n->in_flight || n->taken;
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
static uint64_t registers_of(const decoder *d, const tcc_value *v)
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
            s->touches |= registers_of(d, s->op->operands[o]);
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

static void find_registers(decoder *d)
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

/* ---- writing ------------------------------------------------------------------------------- */

static uint32_t slot_of(decoder *d, uint32_t number)
{
    need *n = &d->needs.data[number];
    if (n->slot == TCC_P_NO_SLOT && (n->modulus || is_tracked(n))) {
        n->slot = d->p->n_slots++;
        if (is_tracked(n))
            TCC_PUSH(d->p->scratch, &d->p->registers, n->slot);
    }
    return n->slot;
}

static size_t write_block(decoder *d, size_t i, uint32_t parent, uint32_t region,
                          uint32_t first_arg, tcc_pcode *code);

/* Whether what an op gives depends on its operands alone. */
static bool is_function(const tcc_pinst *in)
{
    const tcc_op *op = in->op;
    bool computes = tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    if ((!computes && op->code != TCC_OP_arith_const) || op->n_results != 1 || op->n_operands > 2 ||
        in->results[0] == TCC_P_NO_SLOT || op->results[0].type->kind != TCC_KIND_scalar)
        return false;
    for (unsigned i = 0; i < op->n_operands; i++)
        if (in->operands[i] == TCC_P_NO_SLOT)
            return false;
    return true;
}

/* Whether an op that matters accesses no memory but tensors, nor do those in it. */
static bool is_harmless(const tcc_pinst *in)
{
    bool harmless = !is_followed(in->op) && !in->touches &&
                    !(in->op->n_regions && in->op->n_results);
    for (unsigned r = 0; harmless && r < in->op->n_regions; r++)
        for (size_t i = 0; harmless && i < in->regions[r].n; i++)
            harmless = in->regions[r].insts[i].harmless;
    return harmless;
}

/* After how many iterations of a loop what is asked of its index repeats itself. */
static void find_period(tcc_protocol *p, const tcc_pinst *loop)
{
    int64_t modulus = loop->regions[0].moduli[0], step;
    if (!tcc_value_is_int(loop->op->operands[2], &step) || step < 1 || modulus < 1)
        return;
    int64_t period = modulus / tcc_gcd(modulus, step);
    if (period > p->period)
        p->period = period;
}

/* Whether a loop's iterations are counted one by one: it asks for no number. */
static bool makes_few_iterations(const tcc_op *loop)
{
    int64_t lo, hi, step;
    return tcc_value_is_int(loop->operands[0], &lo) && tcc_value_is_int(loop->operands[1], &hi) &&
           tcc_value_is_int(loop->operands[2], &step) && step > 0 && step <= INT32_MAX &&
           hi - lo <= TCC_P_KNOWN_ITERATIONS * step;
}

/* The remainder of a loop's number of iterations that is asked as data; of one that is known, which other ops want as
 * well, what is asked of the sums. */
static int64_t data_modulus(const decoder *d, const source *s, const tcc_pinst *loop)
{
    int64_t m = d->needs.data[s->operands[1]].modulus;
    for (unsigned i = 0; i < s->op->n_results && loop->counts && m == EXACT; i++) {
        int64_t of_sum = d->needs.data[s->results + i].modulus;
        m = of_sum > NEEDED && of_sum != EXACT ? of_sum : m;
    }
    return m != EXACT && (s->waits || loop->counts) ? m : NEEDED;
}

/* Writes the i-th source; gives the one after its regions. */
static size_t write_op(decoder *d, size_t i, tcc_pinst *in)
{
    tcc_arena *scratch = d->p->scratch;
    const source *s = &d->sources.data[i];
    const tcc_op *op = s->op;
    *in = (tcc_pinst){.op = op, .counter = TCC_P_NO_SLOT};
    in->operands = TCC_NEW_ARRAY(scratch, uint32_t, op->n_operands + 1);
    in->results = TCC_NEW_ARRAY(scratch, uint32_t, op->n_results + 1);
    in->regions = TCC_NEW_ARRAY(scratch, tcc_pcode, op->n_regions + 1);
    for (unsigned o = 0; o < op->n_operands; o++)
        in->operands[o] = slot_of(d, s->operands[o]);
    for (unsigned r = 0; r < op->n_results; r++)
        in->results[r] = slot_of(d, s->results + r);
    size_t next = i + 1;
    for (unsigned r = 0; r < op->n_regions; r++) {
        in->regions[r].n_args = op->regions[r]->n_args;
        in->regions[r].registers = TCC_NEW_ARRAY(scratch, uint64_t, op->regions[r]->n_args + 1);
        for (size_t a = 0; a < op->regions[r]->n_args; a++)
            in->regions[r].registers[a] = registers_of(d, op->regions[r]->args[a]);
        next = write_block(d, next, (uint32_t)i + 1, r, s->args[r], &in->regions[r]);
        in->loops |= in->regions[r].n && in->regions[r].loops;
    }
    in->open = s->open;
    in->touches = s->touches;
    in->tensor = s->tensor;
    in->place = s->place;
    for (unsigned t = 0; in->tensor && t < in->place->n_terms; t++)
        in->place->terms[t].slot = slot_of(d, number_of(d, in->place->terms[t].value));
    in->harmless = is_harmless(in);
    if (is_function(in))
        in->given = TCC_NEW_ARRAY(scratch, tcc_pgiven, TCC_P_GIVEN);
    if (d->registers)
        in->wanted_twice = tcc_registers_wanted_twice(d->registers, op);
    if (tcc_op_starts(op->code, TCC_BY_MMA_GROUP)) {
        in->registers = registers_of(d, &op->results[0]);
        in->a_registers = registers_of(d, op->operands[1]);
        tcc_p_mma_read(in);
    }
    in->waits = s->waits;
    in->loops |= op->code == TCC_OP_scf_for && s->waits && !makes_few_iterations(op);
    if (op->code == TCC_OP_scf_for) {
        in->counts = tcc_loop_only_counts(op);
        in->tests = tcc_loop_tests(op);
        int64_t m = data_modulus(d, s, in);
        in->data = m > NEEDED;
        if (in->data && m > d->p->symbol_data)
            d->p->symbol_data = m;
        if (s->waits)
            find_period(d->p, in);
    }
    return next;
}

/* Whether an op gives the same in every state: no loop's argument, parameter or symbol is in it. */
static bool is_fixed(const decoder *d, const source *s)
{
    const tcc_op *op = s->op;
    bool place = op->code == TCC_OP_nvvm_tid || op->code == TCC_OP_amdgcn_tid || op->code == TCC_OP_amdgcn_lane ||
                 op->code == TCC_OP_nvvm_cluster_ctarank || op->code == TCC_OP_nvvm_smem_base ||
                 op->code == TCC_OP_amdgcn_lds_base;
    bool computes = op->code == TCC_OP_arith_const || tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    bool fixed = (place || computes) && op->n_results == 1 && op->results[0].type->kind == TCC_KIND_scalar &&
                 d->needs.data[s->results].modulus && !s->touches;
    for (unsigned i = 0; i < op->n_operands && fixed; i++) {
        uint32_t slot = d->needs.data[s->operands[i]].slot;
        fixed = slot >= TCC_P_FIXED && slot != TCC_P_NO_SLOT;
    }
    return fixed;
}

/* It is not followed. */
static size_t write_fixed(decoder *d, size_t i)
{
    tcc_pinst in;
    d->needs.data[d->sources.data[i].results].slot = TCC_P_FIXED + d->p->n_fixed++;
    size_t next = write_op(d, i, &in);
    TCC_PUSH(d->p->scratch, &d->p->fixed, in);
    return next;
}

static void write_args(decoder *d, uint32_t first, tcc_pcode *code)
{
    code->args = TCC_NEW_ARRAY(d->p->scratch, uint32_t, code->n_args + 1);
    code->moduli = TCC_NEW_ARRAY(d->p->scratch, int64_t, code->n_args + 1);
    for (size_t a = 0; a < code->n_args; a++) {
        const need *arg = &d->needs.data[first + a];
        bool exact = arg->modulus == EXACT;
        code->args[a] = slot_of(d, (uint32_t)(first + a));
        code->moduli[a] = exact ? 0 : arg->modulus;
        int64_t most = exact ? 0 : (arg->threshold + 1) / 2, least = exact ? 0 : arg->threshold / 2;
        if (most > d->p->data_threshold)
            d->p->data_threshold = most;
        if (most > d->p->threshold && code != &d->p->body)
            d->p->threshold = most;
        if (least > d->p->least_threshold && code != &d->p->body)
            d->p->least_threshold = least;
    }
}

/* Whether a source is in a region or in a region inside it. */
static bool is_inside(const source *s, uint32_t parent, uint32_t region)
{
    return s->parent > parent || (s->parent == parent && s->region == region);
}

/* Regions have their slots in order. */
static void find_own_slots(tcc_arena *scratch, tcc_pcode *code)
{
    TCC_VEC(tcc_pslots) own = {0};
    uint32_t at = code->first_slot;
    for (size_t i = 0; i < code->n; i++)
        for (unsigned r = 0; r < code->insts[i].op->n_regions; r++) {
            const tcc_pcode *inside = &code->insts[i].regions[r];
            TCC_PUSH(scratch, &own, (tcc_pslots){at, inside->first_slot});
            at = inside->end_slot;
        }
    TCC_PUSH(scratch, &own, (tcc_pslots){at, code->end_slot});
    code->own = own.data;
    code->n_own = own.len;
}

/* Writes a region, whose sources begin at i, without those that do not matter. */
static size_t write_block(decoder *d, size_t i, uint32_t parent, uint32_t region,
                          uint32_t first_arg, tcc_pcode *code)
{
    size_t end = i, n = 0;
    for (; end < d->sources.len && is_inside(&d->sources.data[end], parent, region); end++)
        n += d->sources.data[end].parent == parent && d->sources.data[end].matters;
    code->first_slot = d->p->n_slots;
    write_args(d, first_arg, code);
    code->end_args = d->p->n_slots;
    code->insts = TCC_NEW_ARRAY(d->p->scratch, tcc_pinst, n + 1);
    for (size_t at = i; at < end;) {
        size_t next = at + 1;
        if (d->sources.data[at].matters && is_fixed(d, &d->sources.data[at]))
            next = write_fixed(d, at);
        else if (d->sources.data[at].matters)
            next = write_op(d, at, &code->insts[code->n++]);
        if (code->n)
            code->insts[code->n - 1].end_slot = d->p->n_slots;
        while (next < end && d->sources.data[next].parent != parent)
            next++;
        at = next;
    }
    code->later = SIZE_MAX;
    for (size_t k = code->n; k-- > 0;) {
        code->insts[k].loops_later = code->loops;
        code->loops |= code->insts[k].loops;
        code->later = code->insts[k].loops ? k + 1 : code->later;
    }
    code->end_slot = d->p->n_slots;
    find_own_slots(d->p->scratch, code);
    return end;
}

static bool uses(const tcc_pcode *code, size_t from, uint32_t slot);

static bool uses_inside(const tcc_pinst *in, uint32_t slot)
{
    bool used = false;
    for (unsigned r = 0; r < in->op->n_regions; r++)
        used |= uses(&in->regions[r], 0, slot);
    return used;
}

static bool uses(const tcc_pcode *code, size_t from, uint32_t slot)
{
    for (size_t i = from; i < code->n; i++) {
        for (unsigned o = 0; o < code->insts[i].op->n_operands; o++)
            if (code->insts[i].operands[o] == slot)
                return true;
        if (uses_inside(&code->insts[i], slot))
            return true;
    }
    return false;
}

/* What loops take over from the block around them, and nothing else there wants: in what a tile begins with
 * states do not differ while it goes on. */
static void find_dying(tcc_protocol *p, tcc_pcode *code)
{
    for (size_t i = 0; i < code->n; i++) {
        tcc_pinst *in = &code->insts[i];
        for (unsigned r = 0; r < in->op->n_regions; r++)
            find_dying(p, &in->regions[r]);
        in->dying = TCC_NEW_ARRAY(p->scratch, uint32_t, in->op->n_results + 1);
        for (unsigned o = 3; in->op->code == TCC_OP_scf_for && o < in->op->n_operands; o++) {
            uint32_t slot = in->operands[o];
            bool scalar = in->op->operands[o]->type->kind == TCC_KIND_scalar;
            bool here = slot >= code->first_slot && slot < code->end_slot;
            if (scalar && here && !uses(code, i + 1, slot) && !uses_inside(in, slot))
                in->dying[in->n_dying++] = slot;
        }
    }
}

/* ---- the function's attributes --------------------------------------------------------- */

/* Bytes of a tensor map's box: [tensor_map, NAME, dims, strides, box, swizzle, elem]. */
static int64_t box_bytes_of(tcc_attr recipe)
{
    tcc_scalar elem;
    if (!tcc_attr_is_record(recipe, "tensor_map", "slllis"))
        return 0;
    const tcc_attr *items = recipe.list.items;
    if (!tcc_scalar_find(items[6].s, strlen(items[6].s), &elem))
        return 0;
    int64_t bytes = tcc_scalar_bits(elem) / 8;
    for (size_t d = 0; d < items[4].list.n; d++) {
        tcc_attr box = items[4].list.items[d];
        if (box.kind != TCC_ATTR_INT || box.i < 1 || __builtin_mul_overflow(bytes, box.i, &bytes))
            return 0;
    }
    return bytes;
}

/* CTAs of a cluster are followed together, as warps that go on behind those of the first. */
static bool follow_cluster(tcc_protocol *p, int64_t ctas)
{
    p->spread = (p->cta_warps + TCC_WARPGROUP_WARPS - 1) / TCC_WARPGROUP_WARPS * TCC_WARPGROUP_WARPS;
    if (!tcc_target_can(tcc_target_of(p->f->ir), TCC_CAN_cluster) || ctas < 1 || ctas > TCC_P_CTAS ||
        ctas * p->spread > TCC_P_WARPS)
        return tcc_p_unsupported(p, NULL, "'%s' has clusters of %lld CTAs", p->f->name, (long long)ctas), false;
    p->ctas = (unsigned)ctas;
    p->n_warps = p->ctas * p->spread;
    p->smem_bytes = (ctas - 1) * TCC_P_WINDOW + p->cta_bytes;
    return true;
}

static tcc_status read_attributes(tcc_protocol *p)
{
    const tcc_func *f = p->f;
    const tcc_target *target = tcc_target_of(f->ir);
    int64_t block = tcc_attr_int(&f->attrs, "block", 0), lanes = TCC_WARP_LANES;
    p->amd = target && tcc_target_vendor(target) == TCC_VENDOR_AMD;
    if (p->amd)
        lanes = tcc_attr_int(&f->attrs, "wave", TCC_WARP_LANES);
    p->smem_bytes = p->cta_bytes = tcc_attr_int(&f->attrs, "smem_bytes", 0);
    int64_t ctas = tcc_attr_int(&f->attrs, "cluster_ctas", 1);
    if (!target)
        tcc_p_unsupported(p, NULL, "its target is not known");
    else if (lanes != TCC_WARP_LANES && lanes != TCC_MAX_LANES)
        tcc_p_unsupported(p, NULL, "'%s' has waves of %lld lanes", f->name, (long long)lanes);
    else if (block < 1 || block > target->max_threads || block % lanes)
        tcc_p_unsupported(p, NULL, "the block of '%s' is not a whole number of %ss", f->name, tcc_p_warp_word(p));
    else if (p->smem_bytes < 0 || p->smem_bytes > target->smem_bytes)
        tcc_p_unsupported(p, NULL, "'%s' has %lld bytes of shared memory of at most %lld", f->name,
                          (long long)p->smem_bytes, (long long)target->smem_bytes);
    if (p->status)
        return p->status;
    p->n_lanes = (unsigned)lanes;
    p->n_warps = p->cta_warps = (unsigned)(block / lanes);
    p->ctas = 1;
    p->spread = UINT32_MAX;
    if (ctas != 1 && !follow_cluster(p, ctas))
        return p->status;
    p->granule = GRANULE;
    p->stores = p->amd;
    p->n_groups = (p->n_warps + TCC_WARPGROUP_WARPS - 1) / TCC_WARPGROUP_WARPS;
    tcc_attr params = tcc_attr_list(&f->attrs, "params");
    p->box_bytes = TCC_NEW_ARRAY(p->scratch, int64_t, f->body->n_args + 1);
    p->tensor_uses = TCC_NEW_ARRAY(p->scratch, uint8_t, f->body->n_args + 1);
    for (size_t i = 0; i < f->body->n_args && i < params.list.n; i++)
        p->box_bytes[i] = box_bytes_of(params.list.items[i]);
    return TCC_OK;
}

/* LDS, and what threads copy in groups, in units of the smallest access there: all are aligned to their size. */
static void find_granule(tcc_protocol *p, const tcc_op *op)
{
    if ((!p->amd && op->code != TCC_OP_nvvm_cp_async) ||
        !tcc_op_does(op->code, TCC_READS_SHARED | TCC_WRITES_SHARED))
        return;
    int64_t bytes = tcc_p_lane_bytes(op);
    while (bytes % p->granule)
        p->granule /= 2;
}

/* What threads access in a block with no synchronization between is done by the last of those whose
 * places differ by constants alone. */
static void join_accesses(decoder *d)
{
    enum { OPEN = 8 };
    source *open[OPEN] = {NULL};
    const source *before = NULL;
    size_t n = 0;
    for (size_t i = 0; i < d->sources.len; before = &d->sources.data[i++]) {
        source *s = &d->sources.data[i];
        bool goes_on = before && s->parent == before->parent && s->region == before->region;
        if (!goes_on || s->op->n_regions || tcc_op_does(s->op->code, TCC_P_SYNC))
            n = 0;
        if (!s->tensor || is_followed(s->op))
            continue;
        size_t k = 0;
        while (k < n && (open[k]->op->code != s->op->code ||
                         !tcc_p_place_join(s->place, open[k]->place)))
            k++;
        if (k < n)
            open[k]->tensor = 0;
        if (k < n || n < OPEN)
            open[k] = s;
        n += k == n && n < OPEN;
    }
}

/* Which tensors are followed. */
static void find_tensors(decoder *d)
{
    tcc_p_global_find(d->p);
    for (size_t i = 0; i < d->sources.len; i++)
        tcc_p_global_note(d->p, d->sources.data[i].op);
    for (size_t i = 0; i < d->sources.len; i++) {
        source *s = &d->sources.data[i];
        s->tensor = tcc_p_global_tensor(d->p, s->op);
        s->place = s->tensor ? tcc_p_place_find(d->p, s->op, s->tensor) : NULL;
        d->p->follows |= s->tensor != 0;
        d->p->writes |= s->tensor && tcc_op_starts(s->op->code, TCC_BY_BULK_GROUP);
    }
    join_accesses(d);
}

static void note_pending(tcc_protocol *p, const tcc_op *wait)
{
    int64_t pending = tcc_attr_int(&wait->attrs, "pending", 0);
    if (pending > p->most_pending)
        p->most_pending = (uint32_t)pending;
}

tcc_status tcc_p_decode(tcc_protocol *p)
{
    decoder d = {.p = p, .numbers = TCC_MAP(p->scratch)};
    if (read_attributes(p) || !tcc_p_global_waits(p) || !read_block(&d, p->f->body, 0, 0, 1))
        return p->status;
    find_registers(&d);
    find_tensors(&d);
    do {
        d.changed = false;
        for (size_t i = d.sources.len; i-- > 0;)
            walk_back(&d, &d.sources.data[i]);
    } while (d.changed);
    p->body.n_args = p->f->body->n_args;
    write_block(&d, 0, 0, 0, 0, &p->body);
    find_dying(p, &p->body);
    p->threshold = p->threshold < 1 ? 1 : p->threshold;
    p->least_threshold = p->least_threshold < 1 ? 1 : p->least_threshold;
    p->data_threshold = p->data_threshold < 1 ? 1 : p->data_threshold;
    unsigned n_carried = 0;
    bool sends = false, met = false;
    p->ends_together = tcc_p_ends_together(p->f);
    for (size_t i = 0; i < d.sources.len; i++) {
        tcc_opcode code = d.sources.data[i].op->code;
        met |= code == TCC_OP_nvvm_cluster_wait && !d.sources.data[i].op->block->parent;
        p->starts_apart |= (code == TCC_OP_nvvm_st_shared_cluster || code == TCC_OP_nvvm_st_async_word) && !met;
        if (code == TCC_OP_scf_for && d.sources.data[i].op->n_results > n_carried)
            n_carried = d.sources.data[i].op->n_results;
        p->max_barriers += tcc_op_does(code, TCC_BARRIER) && tcc_op_does(code, TCC_ALLOCATES);
        p->reaches |= tcc_op_does(code, TCC_CLUSTER) && !tcc_op_does(code, TCC_BY_CLUSTER | TCC_BY_MBARRIER);
        p->stores |= tcc_op_starts(code, TCC_BY_BULK_GROUP | TCC_BY_COPY_GROUP);
        p->groups |= tcc_op_starts(code, TCC_BY_COPY_GROUP);
        sends |= tcc_op_starts(code, TCC_BY_BULK_GROUP);
        if (tcc_op_waits(code, TCC_BY_BULK_GROUP))
            note_pending(p, d.sources.data[i].op);
        find_granule(p, d.sources.data[i].op);
    }
    p->n_named = p->cta_named = tcc_p_named_count(p);
    if (p->ctas > 1) { /* those of each, and the cluster's */
        p->max_barriers *= p->ctas;
        p->n_named = p->ctas * p->cta_named + 1;
    }
    p->carried = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, n_carried + 1);
    if (p->groups && (sends || p->max_barriers))
        tcc_p_unsupported(p, NULL, "threads' copies beside mbarriers or copies to global memory");
    if (p->max_barriers > TCC_MAX_MBARRIERS)
        tcc_p_unsupported(p, NULL, "more than %d mbarriers", TCC_MAX_MBARRIERS);
    return p->status;
}

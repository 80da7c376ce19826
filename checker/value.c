/* value: numbers of which not everything is known.
 *
 * A loop of unknown iterations makes its index, and what it carries, grow for ever. From the
 * iteration on from which nothing tells indices apart but their remainder by m (decode.c finds m),
 * an index is known as {v + n * m for n >= 0}: arithmetic on such sets is exact or says that the
 * result is unknown, and never looks at a member. So what is computed holds for all of them.
 *
 * Numbers wrap. An index is less than its loop's bound and does not; neither do a counter that
 * grows by little or an index in an iteration, and either plus or minus a small constant; nor what
 * was divided, multiplied by no more than that. Of other sets, such as multiples, and numbers in
 * narrow types, what is known is their remainder by a power of two.
 *
 * Lists of one number a lane are kept once each and computed once for each op and operands.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>

#include "checker/model.h"
#include "ir/elementwise.h"

enum { INDEX_BITS = 32, MAX_SHIFT = 1 << 16, MAX_ROOM = 15 };

/* ---- lanes and symbols ----------------------------------------------------------------------- */

tcc_pvalue tcc_p_lanes(tcc_protocol *p, const int64_t *lanes)
{
    bool uniform = true;
    for (unsigned l = 1; l < p->n_lanes; l++)
        uniform &= lanes[l] == lanes[0];
    if (uniform)
        return tcc_p_known(lanes[0]);
    uint64_t *number = tcc_ptable_at(p->lanes_table, lanes, p->n_lanes * sizeof *lanes);
    if (!*number) {
        TCC_PUSH(p->scratch, &p->lanes, (const tcc_cell *)tcc_ptable_key(number));
        *number = p->lanes.len;
    }
    return (tcc_pvalue){.kind = TCC_P_LANES, .v = (int64_t)*number - 1};
}

bool tcc_p_lane(const tcc_protocol *p, const tcc_pvalue *v, unsigned lane, int64_t *out)
{
    if (v->kind == TCC_P_LANES)
        *out = p->lanes.data[v->v][lane].i;
    else
        *out = v->v;
    return v->kind == TCC_P_LANES || tcc_p_is_exact(v);
}

typedef struct symbol_key {
    const void *op;
    uint64_t extra;
    int64_t words[3][4];
} symbol_key;

/* roots: 0 for what depends on nothing but itself. */
static tcc_pvalue find_symbol(tcc_protocol *p, const symbol_key *key, bool varies, uint64_t roots)
{
    uint64_t *number = tcc_ptable_at(p->symbol_table, key, sizeof *key);
    if (!*number) {
        tcc_psymbol s = {.of = (uint32_t)p->symbols.len, .by = 1, .least = INT32_MIN, .varies = varies};
        s.roots = roots ? roots : UINT64_C(1) << s.of % 64;
        TCC_PUSH(p->scratch, &p->symbols, s);
        *number = p->symbols.len;
    }
    return (tcc_pvalue){.kind = TCC_P_SYMBOL, .v = (int64_t)*number - 1, .delta = INT64_MAX};
}

static void key_value(int64_t words[4], const tcc_pvalue *v)
{
    words[0] = v->kind;
    words[1] = v->v;
    words[2] = v->offset;
    words[3] = v->delta;
}

const tcc_psymbol *tcc_p_symbol_get(const tcc_protocol *p, int64_t symbol)
{
    return &p->symbols.data[symbol];
}

tcc_psymbol *tcc_p_symbol_change(tcc_protocol *p, int64_t symbol)
{
    return &p->symbols.data[symbol];
}

bool tcc_p_symbol_is_data(tcc_protocol *p, int64_t symbol)
{
    tcc_psymbol *s = &p->symbols.data[symbol];
    p->apart |= s->forgotten && !s->data;
    if (s->forgotten && !s->data)
        p->status = TCC_ERR_UNSUPPORTED;
    s->data = true;
    return !p->apart;
}

static bool varies_with(const tcc_protocol *p, const tcc_pvalue *v)
{
    return v->kind == TCC_P_SYMBOL && tcc_p_symbol_get(p, v->v)->varies;
}

static uint64_t roots_of(const tcc_protocol *p, const tcc_pvalue *v)
{
    return v->kind == TCC_P_SYMBOL ? tcc_p_symbol_get(p, v->v)->roots : 0;
}

tcc_pvalue tcc_p_symbol(tcc_protocol *p, const void *op, const tcc_pvalue *args, unsigned n)
{
    symbol_key key;
    memset(&key, 0, sizeof key);
    key.op = op;
    bool varies = false;
    uint64_t roots = 0;
    for (unsigned i = 0; i < n; i++) {
        key_value(key.words[i], &args[i]);
        varies |= varies_with(p, &args[i]);
        roots |= roots_of(p, &args[i]);
    }
    return find_symbol(p, &key, varies, roots);
}

tcc_pvalue tcc_p_index_symbol(tcc_protocol *p, uint32_t iterations, const tcc_pvalue *lo,
                              const tcc_pvalue *step)
{
    symbol_key key;
    memset(&key, 0, sizeof key);
    key.extra = UINT64_C(1) << 32 | iterations;
    key_value(key.words[0], lo);
    key_value(key.words[1], step);
    uint64_t roots = tcc_p_symbol_get(p, iterations)->roots | roots_of(p, lo) | roots_of(p, step);
    return find_symbol(p, &key, true, roots);
}

tcc_pvalue tcc_p_symbol_from(tcc_protocol *p, int64_t least, const void *of, const tcc_pvalue *args, unsigned n)
{
    tcc_pvalue v = tcc_p_symbol(p, of, args, n);
    p->symbols.data[v.v].least = least;
    return v;
}

tcc_pvalue tcc_p_drawn_symbol(tcc_protocol *p, int64_t symbol, int64_t later)
{
    symbol_key key;
    memset(&key, 0, sizeof key);
    key.extra = UINT64_C(4) << 32 | (uint64_t)symbol;
    key.words[0][0] = later;
    return find_symbol(p, &key, true, tcc_p_symbol_get(p, symbol)->roots);
}

tcc_pvalue tcc_p_element_symbol(tcc_protocol *p, const tcc_value *tensor, int64_t nth,
                                const tcc_pvalue *offset_and_pred)
{
    symbol_key key;
    memset(&key, 0, sizeof key);
    key.op = tensor;
    key.extra = UINT64_C(5) << 32;
    bool varies = false;
    uint64_t roots = 0;
    for (unsigned i = 0; i < 2; i++) {
        key_value(key.words[i], &offset_and_pred[i]);
        varies |= varies_with(p, &offset_and_pred[i]);
        roots |= roots_of(p, &offset_and_pred[i]);
    }
    key.words[2][0] = nth;
    return find_symbol(p, &key, varies, roots);
}

/* A number, plus an offset, divided by a constant and rounded down, as a division does unless it is negative, and a
 * shift always: how many iterations there are by so much. NONE when it is not that. */
static tcc_pvalue quotient(tcc_protocol *p, const tcc_op *op, const tcc_pvalue *args, bool down)
{
    enum { MAX_DIVISOR = 1 << 20 };
    const tcc_pvalue *a = &args[0], *b = &args[1];
    bool shifts = op->code == TCC_OP_arith_shr;
    if ((!shifts && op->code != TCC_OP_arith_div) || a->kind != TCC_P_SYMBOL ||
        a->delta != INT64_MAX || !tcc_p_is_exact(b) || b->v < !shifts || b->v > MAX_DIVISOR ||
        (shifts && b->v > 20))
        return (tcc_pvalue){0};
    const tcc_psymbol *of = tcc_p_symbol_get(p, a->v);
    int64_t by = shifts ? INT64_C(1) << b->v : b->v;
    bool is_down = down || shifts || tcc_p_least(of) + a->offset >= 0;
    if (!is_down || of->by * by > MAX_DIVISOR)
        return (tcc_pvalue){0};
    tcc_psymbol r = *of;
    r.add += of->by * a->offset;
    r.by *= by;
    symbol_key key;
    memset(&key, 0, sizeof key);
    key.extra = UINT64_C(3) << 32 | r.of;
    key.words[0][0] = r.add;
    key.words[0][1] = r.by;
    tcc_pvalue v = find_symbol(p, &key, r.varies, r.roots);
    p->symbols.data[v.v] = r;
    return v;
}

tcc_pvalue tcc_p_of_symbols(tcc_protocol *p, const tcc_op *op, const tcc_pvalue *args)
{
    symbol_key key;
    memset(&key, 0, sizeof key);
    const char *pred = tcc_attr_str(&op->attrs, "pred", NULL);
    uint64_t types =
        (uint64_t)op->results[0].type->elem << 8 | (uint64_t)op->operands[0]->type->elem;
    key.op = pred;
    key.extra = UINT64_C(2) << 32 | types << 16 | (uint64_t)op->code;
    bool varies = false;
    uint64_t roots = 0;
    tcc_scalar elem = op->results[0].type->elem;
    bool sums = op->code == TCC_OP_arith_add || op->code == TCC_OP_arith_sub;
    tcc_pvalue q = sums ? tcc_p_sum(p, &args[0], &args[1], op->code == TCC_OP_arith_sub, 0, elem)
                        : quotient(p, op, args, false);
    if (q.kind != TCC_P_NONE)
        return q;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const tcc_pvalue *v = &args[i];
        if (v->kind != TCC_P_SYMBOL && !(tcc_p_is_exact(v) && !v->loop))
            return (tcc_pvalue){.kind = TCC_P_UNKNOWN};
        key_value(key.words[i], v);
        varies |= varies_with(p, v);
        roots |= roots_of(p, v);
    }
    q = find_symbol(p, &key, varies, roots);
    if (op->code != TCC_OP_arith_div)
        return q;
    tcc_pvalue down = quotient(p, op, args, true); /* a negative number counts none, however it is rounded */
    if (down.kind == TCC_P_SYMBOL)
        tcc_p_symbol_change(p, q.v)->count = (uint32_t)down.v + 1;
    else
        tcc_p_find_count(p, q.v, &args[0], &args[1], elem);
    return q;
}

/* ---- arithmetic ------------------------------------------------------------------------ */

static const tcc_pvalue unknown = {.kind = TCC_P_UNKNOWN};

static tcc_pvalue exact(const tcc_op *op, const tcc_pvalue *args)
{
    tcc_cell a[3], r;
    tcc_elements e = {.op = op, .r = &r, .n = 1};
    for (unsigned i = 0; i < op->n_operands; i++) {
        a[i].i = args[i].v;
        e.a[i] = &a[i];
    }
    return tcc_elementwise(&e, true) ? tcc_p_known(r.i) : unknown;
}

/* Whether all of v + n * delta compare with c as v does. */
static bool compares_alike(const char *pred, int64_t v, int64_t c)
{
    bool below = !strcmp(pred, "lt") || !strcmp(pred, "ge");
    return below ? v >= c : v > c;
}

static unsigned bits_of(const tcc_op *op)
{
    return tcc_scalar_bits(op->results[0].type->elem);
}

static bool widens(const tcc_op *op)
{
    return op->code == TCC_OP_arith_cast &&
           tcc_scalar_widens(op->operands[0]->type->elem, op->results[0].type->elem);
}

/* A constant that may be added to an index without a thought of overflow. */
static bool is_small(int64_t c)
{
    return c <= MAX_SHIFT && c >= -MAX_SHIFT;
}

tcc_pvalue tcc_p_wrapped(tcc_pvalue v, tcc_scalar elem)
{
    unsigned bits = tcc_scalar_bits(elem);
    if (v.kind != TCC_P_KNOWN || !v.delta)
        return v;
    v.delta &= -v.delta; /* the power of two in it */
    if (bits < 64 && v.delta >> bits)
        return tcc_p_known(tcc_int_wrap(elem, v.v));
    v.v &= v.delta - 1;
    v.wraps = true;
    v.room = 0;
    v.loop = 0;
    v.offset = 0;
    return v;
}

/* The bits of 0 … n. */
static unsigned bits_up_to(int64_t n)
{
    return n > 0 ? 64 - (unsigned)__builtin_clzll((uint64_t)n) : 0;
}

/* How much smaller a set is after a division by c; and how much it must be, to be multiplied. */
static uint8_t room_after(const tcc_pvalue *a, int64_t c)
{
    unsigned room = a->room + bits_up_to(c) - 1;
    return (uint8_t)(room < MAX_ROOM ? room : MAX_ROOM);
}

static unsigned room_to_multiply(int64_t c)
{
    return bits_up_to(c - 1);
}

/* The same of a set modulo 2^bits. */
static tcc_pvalue of_wrapped(const tcc_op *op, const tcc_pvalue *a, int64_t c, tcc_pvalue r)
{
    tcc_scalar elem = op->results[0].type->elem;
    r.delta = a->delta;
    switch (op->code) {
    case TCC_OP_arith_cast: return widens(op) ? unknown : tcc_p_wrapped(r, elem);
    case TCC_OP_arith_add:
    case TCC_OP_arith_sub: return tcc_p_wrapped(r, elem);
    case TCC_OP_arith_mul:
        r.delta = c > 0 && c <= MAX_SHIFT && a->delta <= INT64_MAX / c ? a->delta * c : 0;
        return r.delta ? tcc_p_wrapped(r, elem) : unknown;
    case TCC_OP_arith_xor: return c >= 0 && c < a->delta ? tcc_p_wrapped(r, elem) : unknown;
    case TCC_OP_arith_and: return c >= 0 && c < a->delta ? tcc_p_known(a->v & c) : unknown;
    case TCC_OP_arith_shr:
        r.delta = c >= 0 && c < 32 ? a->delta >> c : 0;
        return r.delta ? tcc_p_wrapped(r, elem) : unknown;
    default: return unknown;
    }
}

static tcc_pvalue of_set(const tcc_op *op, const tcc_pvalue *args);

/* Of numbers and sets of them. */
static tcc_pvalue of_known(const tcc_op *op, const tcc_pvalue *args)
{
    bool sets = false;
    for (unsigned i = 0; i < op->n_operands; i++)
        sets |= args[i].delta != 0;
    return sets ? of_set(op, args) : exact(op, args);
}

/* a is a set that grows, b one number or such a set, too. */
static tcc_pvalue of_set(const tcc_op *op, const tcc_pvalue *args)
{
    const tcc_pvalue *a = &args[0], *b = &args[1];
    tcc_scalar elem = op->results[0].type->elem, from = op->operands[0]->type->elem;
    tcc_pvalue r = exact(op, args);
    if (r.kind != TCC_P_KNOWN)
        return unknown;
    bool narrow = tcc_scalar_bits(from) < INDEX_BITS;
    if (narrow && ((a->delta && !a->wraps) || (op->n_operands == 2 && b->delta && !b->wraps)))
        return of_known(op, (tcc_pvalue[]){tcc_p_wrapped(*a, from), tcc_p_wrapped(*b, from)});
    if (op->n_operands == 2 && !a->delta && op->code == TCC_OP_arith_add)
        return of_set(op, (tcc_pvalue[]){*b, *a});
    if (op->n_operands == 2 && !a->delta && op->code == TCC_OP_arith_mul)
        return of_set(op, (tcc_pvalue[]){*b, *a});
    if (!a->delta || a->v < 0)
        return unknown;
    bool one = op->n_operands == 1 || !b->delta;
    int64_t c = op->n_operands == 2 ? b->v : 0, d = a->delta;
    if (a->wraps || (op->n_operands == 2 && b->wraps))
        return one ? of_wrapped(op, a, c, r) : unknown;
    r.delta = d;
    switch (op->code) {
    case TCC_OP_arith_cast: return widens(op) ? r : tcc_p_wrapped(r, elem);
    case TCC_OP_arith_add:
        r.delta = tcc_gcd(d, b->delta);
        r.room = one || b->room >= a->room ? a->room : b->room;
        r.room -= r.room > 0;
        return !one || is_small(c) ? r : tcc_p_wrapped(r, elem);
    case TCC_OP_arith_sub: return !one ? unknown : is_small(c) ? r : tcc_p_wrapped(r, elem);
    case TCC_OP_arith_mul:
        if (!one || c < 1 || c > INT64_MAX / d)
            return c == 0 && one ? tcc_p_known(0) : unknown;
        r.delta = d * c;
        if (a->room < room_to_multiply(c))
            return tcc_p_wrapped(r, elem);
        r.room = (uint8_t)(a->room - room_to_multiply(c));
        return r;
    case TCC_OP_arith_and:
        r.delta = 0;
        return one && c >= 0 && (c & (c + 1)) == 0 && d % (c + 1) == 0 ? r : unknown;
    case TCC_OP_arith_rem: r.delta = 0; return one && c > 0 && d % c == 0 ? r : unknown;
    case TCC_OP_arith_div:
        if (!one || c < 1 || d % c)
            return unknown;
        r.delta = d / c;
        r.room = room_after(a, c);
        return r;
    case TCC_OP_arith_shr:
        if (!one || c < 0 || c > 31 || d % (INT64_C(1) << c))
            return unknown;
        r.delta = d >> c;
        r.room = room_after(a, INT64_C(1) << c);
        return r;
    case TCC_OP_arith_xor:
        for (int64_t bit = 1; one && c >= 0 && bit <= d && d % bit == 0; bit *= 2)
            if (c < bit)
                return r;
        return unknown;
    case TCC_OP_arith_cmp:
        r.delta = 0;
        return one && compares_alike(tcc_attr_str(&op->attrs, "pred", ""), a->v, c) ? r : unknown;
    case TCC_OP_arith_min: return one && a->v >= c ? tcc_p_known(c) : unknown;
    case TCC_OP_arith_max: return one && a->v >= c ? r : unknown;
    default: return unknown;
    }
}

static tcc_pvalue of_lanes(tcc_protocol *p, const tcc_op *op, const tcc_pvalue *args)
{
    int64_t key[7] = {(int64_t)(intptr_t)op};
    for (unsigned i = 0; i < op->n_operands; i++) {
        key[1 + 2 * i] = args[i].kind;
        key[2 + 2 * i] = args[i].v;
    }
    uint64_t *memo = tcc_ptable_at(p->memo, key, (1 + 2 * (size_t)op->n_operands) * sizeof *key);
    typedef struct {
        tcc_pvalue v;
    } box;
    if (*memo)
        return ((const box *)(uintptr_t)*memo)->v;
    tcc_cell r[TCC_MAX_LANES], a[3];
    tcc_elements e = {.op = op, .r = r, .n = p->n_lanes};
    for (unsigned i = 0; i < op->n_operands; i++) {
        a[i].i = args[i].v;
        e.a[i] = args[i].kind == TCC_P_LANES ? p->lanes.data[args[i].v] : &a[i];
        e.step[i] = args[i].kind == TCC_P_LANES;
    }
    box *b = TCC_NEW(p->scratch, box);
    b->v = unknown;
    if (tcc_elementwise(&e, true)) {
        int64_t lanes[TCC_MAX_LANES];
        for (unsigned l = 0; l < p->n_lanes; l++)
            lanes[l] = r[l].i;
        b->v = tcc_p_lanes(p, lanes);
    }
    *memo = (uint64_t)(uintptr_t)b;
    return b->v;
}

/* A number plus or minus a constant stays what it is of: a symbol, or the index of a loop. */
static bool shift(const tcc_op *op, const tcc_pvalue *args, tcc_pvalue *r)
{
    bool minus = op->code == TCC_OP_arith_sub;
    unsigned other = args[1].kind == TCC_P_SYMBOL || args[1].loop;
    if ((!minus && op->code != TCC_OP_arith_add) || (minus && other))
        return false;
    const tcc_pvalue *of = &args[other], *by = &args[!other];
    if (!tcc_p_is_exact(by) || by->loop || !is_small(by->v) || bits_of(op) < 32)
        return false;
    int64_t offset = of->offset + (minus ? -by->v : by->v);
    if (!is_small(offset))
        return false;
    if (of->kind == TCC_P_SYMBOL)
        *r = *of;
    else if (of->kind == TCC_P_KNOWN && of->loop)
        r->loop = of->loop;
    else
        return false;
    r->offset = (int32_t)offset;
    return true;
}

tcc_pvalue tcc_p_compute(tcc_protocol *p, const tcc_op *op, const tcc_pvalue *args)
{
    bool symbols = false, lanes = false, sets = false, drawn = false;
    if (tcc_scalar_classify(op->results[0].type->elem) == TCC_CLASS_FLOAT ||
        op->results[0].type->kind != TCC_KIND_scalar)
        return unknown;
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (args[i].kind == TCC_P_UNKNOWN || args[i].kind == TCC_P_NONE ||
            args[i].kind == TCC_P_REGISTERS)
            return unknown;
        drawn |= args[i].kind == TCC_P_DRAWN;
        symbols |= args[i].kind == TCC_P_SYMBOL;
        lanes |= args[i].kind == TCC_P_LANES;
        sets |= args[i].kind == TCC_P_KNOWN && args[i].delta;
    }
    if (op->code == TCC_OP_arith_select && tcc_p_is_exact(&args[0]))
        return args[args[0].v ? 1 : 2];
    if (drawn)
        return tcc_p_of_drawn(p, op, args);
    if (lanes)
        return symbols || sets ? unknown : of_lanes(p, op, args);
    if (symbols) {
        tcc_pvalue r;
        unsigned other = args[0].kind != TCC_P_SYMBOL;
        if (widens(op))
            return args[0];
        if (shift(op, args, &r))
            return r;
        if (op->code == TCC_OP_arith_min && tcc_p_is_exact(&args[!other]) && !args[other].offset &&
            bits_of(op) >= 32) {
            r = args[other];
            r.delta = args[!other].v < r.delta ? args[!other].v : r.delta;
            return r;
        }
        return tcc_p_of_symbols(p, op, args);
    }
    tcc_pvalue r = of_known(op, args);
    if (r.kind != TCC_P_KNOWN || shift(op, args, &r) || !widens(op))
        return r;
    r.loop = args[0].loop;
    r.offset = args[0].offset;
    return r;
}

tcc_pvalue tcc_p_forget(const tcc_protocol *p, tcc_pvalue v, int64_t m)
{
    return tcc_p_forget_from(v, p->threshold, m);
}

tcc_pvalue tcc_p_forget_from(tcc_pvalue v, int64_t threshold, int64_t m)
{
    if (v.kind != TCC_P_KNOWN || m < 1 || v.v < threshold || (v.delta && v.delta % m))
        return v;
    v.v = threshold + (v.v - threshold) % m;
    v.delta = m;
    return v;
}

/* same: whether a mutant computes the numbers that it should, in another way.
 *
 * Addresses, phases and conditions are computed from the thread's number, the indices of loops, and
 * the extents. All threads and iterations are gone through, each with several extents: the
 * arithmetic of stages and phases repeats within far fewer iterations than these.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "support/map.h"
#include "support/random.h"
#include "tests/mutants/mutants.h"

enum {
    MAX_ITERATIONS = 40,
    MAX_LOOPS = 3,
    MAX_ARGS = 256,
    DRAWS = 48,
    SMEM_BASE = 1024,
    WARP_LANES = 32
};

/* ---- evaluation -------------------------------------------------------------------------- */

/* A thread in some iteration of the loops that it is in. Parameters and the CTA number are any. */
typedef struct place {
    int64_t tid;
    uint64_t any;                      /* which ones; 0: they are not known */
    const int64_t *multiples;          /* of parameters: multiples_of */
    const tcc_block *loops[MAX_LOOPS]; /* of the function as it was */
    int64_t index[MAX_LOOPS];
    bool known[MAX_LOOPS]; /* others are any */
    unsigned n_loops;
    unsigned *asked; /* a bit for each index that a result has depended on, and ASKED_TID; or NULL */
} place;

enum { ASKED_TID = 1 << MAX_LOOPS };

static void ask(const place *p, unsigned what)
{
    if (p->asked)
        *p->asked |= what;
}

/* An index of a loop of either function: loops are told apart by how deep they are. */
static unsigned depth_of(const tcc_block *b)
{
    unsigned n = 0;
    for (; b->parent; b = b->parent->block)
        n += b->parent->code == TCC_OP_scf_for;
    return n;
}

static bool compute(const tcc_op *op, int64_t a, int64_t b, int64_t *out)
{
    const char *pred;
    switch (op->code) {
    case TCC_OP_arith_add: *out = a + b; break;
    case TCC_OP_arith_sub: *out = a - b; break;
    case TCC_OP_arith_mul: *out = a * b; break;
    case TCC_OP_arith_and: *out = a & b; break;
    case TCC_OP_arith_or: *out = a | b; break;
    case TCC_OP_arith_xor: *out = a ^ b; break;
    case TCC_OP_arith_min: *out = a < b ? a : b; break;
    case TCC_OP_arith_max: *out = a > b ? a : b; break;
    case TCC_OP_arith_shl: *out = b < 0 || b > 31 ? 0 : a * (INT64_C(1) << b); break;
    case TCC_OP_arith_shr:
        *out = b < 0 || b > 31 ? 0 : (int64_t)((uint64_t)a & UINT32_MAX) >> b;
        break;
    case TCC_OP_arith_div:
    case TCC_OP_arith_rem:
        if (!b)
            return false;
        *out = op->code == TCC_OP_arith_div ? a / b : a % b;
        break;
    case TCC_OP_arith_cmp:
        pred = tcc_attr_str(&op->attrs, "pred", "");
        *out = !strcmp(pred, "eq")   ? a == b
               : !strcmp(pred, "ne") ? a != b
               : !strcmp(pred, "lt") ? a < b
               : !strcmp(pred, "le") ? a <= b
               : !strcmp(pred, "gt") ? a > b
                                     : a >= b;
        return true;
    default: return false;
    }
    if (op->results[0].type->elem == TCC_i32)
        *out = (int32_t)*out;
    return true;
}

/* One number for each parameter, from small to large. */
static int64_t any_number(const place *p, uint32_t which)
{
    uint64_t state = p->any << 32 | which;
    return (int64_t)tcc_random(&state, UINT64_C(1) << (p->any % 4 + 2) * 3);
}

/* A multiple of some power of two, or one more or less: rounding changes there. */
static int64_t any_extent(const place *p, uint32_t which)
{
    uint64_t state = p->any << 32 | which;
    int64_t n = (int64_t)(1 + tcc_random(&state, 31)) << tcc_random(&state, 9);
    n += (int64_t)tcc_random(&state, 3) - 1;
    return n > 0 ? n : 1;
}

/* An extent is a multiple of what the function asks of it: [pitch, [DIM], bytes, multiple]. */
static int64_t multiple_of(const tcc_func *f, const tcc_attr *recipe)
{
    int64_t multiple = 1;
    tcc_attr conditions = tcc_attr_list(&f->attrs, "requires");
    if (!tcc_attr_is_record(*recipe, "dim", "s"))
        return 0;
    for (size_t i = 0; i < conditions.list.n; i++) {
        const tcc_attr *c = conditions.list.items[i].list.items;
        if (tcc_attr_is_record(conditions.list.items[i], "pitch", "lii") && c[1].list.n == 1 &&
            tcc_attr_equal(&c[1].list.items[0], &recipe->list.items[1]) && c[3].i % c[2].i == 0)
            multiple = c[3].i / c[2].i > multiple ? c[3].i / c[2].i : multiple;
    }
    return multiple;
}

/* For each parameter what an extent is a multiple of, or 0 for what is none. */
static int64_t *multiples_of(tcc_arena *arena, const tcc_func *f)
{
    tcc_attr params = tcc_attr_list(&f->attrs, "params");
    int64_t *multiples = TCC_NEW_ARRAY(arena, int64_t, params.list.n);
    for (size_t i = 0; i < params.list.n; i++)
        multiples[i] = multiple_of(f, &params.list.items[i]);
    return multiples;
}

static int64_t any_param(const place *p, const tcc_value *v)
{
    int64_t n = any_extent(p, v->index), multiple = p->multiples[v->index];
    return multiple ? (n + multiple - 1) / multiple * multiple : any_number(p, v->index);
}

/* Where in 16 bytes a parameter begins: with any element. */
static int64_t any_phase(const place *p, const tcc_value *base)
{
    int64_t bytes = tcc_scalar_bits(base->type->elem) / 8;
    return any_number(p, base->index) * bytes % 16;
}

/* What v is at a place; false where it depends on more. */
static bool eval(const tcc_value *v, const place *p, int64_t *out)
{
    if (tcc_value_is_int(v, out))
        return true;
    if (!v->def) {
        unsigned depth = v->block->parent ? depth_of(v->block) : 0;
        if (depth && depth <= p->n_loops && p->known[depth - 1] && !v->index) {
            ask(p, 1u << (depth - 1));
            *out = p->index[depth - 1];
        } else if (p->any)
            *out = depth ? any_number(p, v->index + depth * MAX_ARGS) : any_param(p, v);
        else
            return false;
        return true;
    }
    const tcc_op *op = v->def;
    int64_t a, b;
    place first_lane = *p;
    switch (op->code) {
    case TCC_OP_nvvm_tid:
        ask(p, ASKED_TID);
        *out = p->tid;
        return true;
    case TCC_OP_nvvm_ctaid: *out = any_number(p, UINT32_MAX); return p->any != 0;
    case TCC_OP_nvvm_phase: *out = any_phase(p, op->operands[0]); return p->any != 0;
    case TCC_OP_nvvm_smem_base: *out = SMEM_BASE; return true;
    case TCC_OP_nvvm_uniform:
        first_lane.tid -= p->tid % WARP_LANES;
        return eval(op->operands[0], &first_lane, out);
    case TCC_OP_nvvm_opaque:
    case TCC_OP_nvvm_after:
    case TCC_OP_arith_cast: return eval(op->operands[0], p, out);
    default: break;
    }
    return op->n_operands == 2 && eval(op->operands[0], p, &a) && eval(op->operands[1], p, &b) &&
           compute(op, a, b, out);
}

/* ---- everywhere -------------------------------------------------------------------------- */

/* How often a loop runs at most, as far as it is known. */
static int64_t most_iterations(const tcc_op *loop)
{
    int64_t lo, hi, step;
    const tcc_value *end = loop->operands[1];
    if (!tcc_value_is_int(loop->operands[0], &lo) || !tcc_value_is_int(loop->operands[2], &step))
        return MAX_ITERATIONS;
    bool known = tcc_value_is_int(end, &hi);
    for (unsigned i = 0; !known && end->def && end->def->code == TCC_OP_arith_min && i < 2; i++)
        known = tcc_value_is_int(end->def->operands[i], &hi);
    int64_t iterations = known && step > 0 ? (hi - lo + step - 1) / step : MAX_ITERATIONS;
    return iterations < MAX_ITERATIONS ? iterations : MAX_ITERATIONS;
}

/* Whether a thread may come to an op: the branches around it, as far as they are known. */
static bool may_reach(const tcc_op *op, const place *p)
{
    for (const tcc_block *b = op->block; b->parent; b = b->parent->block) {
        int64_t holds;
        if (b->parent->code == TCC_OP_scf_if && eval(b->parent->operands[0], p, &holds) &&
            holds != (b == b->parent->regions[0]))
            return false;
    }
    return true;
}

bool is_known_at(const tcc_op *op, const tcc_value *v, int64_t tid, int64_t *out)
{
    const place p = {.tid = tid};
    return may_reach(op, &p) && eval(v, &p, out);
}

static bool same_at(const tcc_op *op, const tcc_value *a, const tcc_value *b, const place *p)
{
    int64_t x, y;
    if (!may_reach(op, p))
        return true;
    if (a->type->elem == TCC_i1)
        return eval(a, p, &x) && eval(b, p, &y) && x == y;
    place at = *p;
    if (eval(a, &at, &x) && eval(b, &at, &y))
        return x == y;
    for (at.any = 1; at.any <= DRAWS; at.any++)
        if (!eval(a, &at, &x) || !eval(b, &at, &y) || x != y)
            return false;
    return true;
}

/* Goes through the iterations of the loops from the outermost on; of a loop whose index made no difference in the first
 * one, that is enough. */
static bool same_in_loops(const tcc_op *op, const tcc_value *a, const tcc_value *b, place *p,
                          unsigned depth)
{
    int64_t lo, step;
    if (depth == p->n_loops)
        return same_at(op, a, b, p);
    const tcc_op *loop = p->loops[depth]->parent;
    p->known[depth] =
        tcc_value_is_int(loop->operands[0], &lo) && tcc_value_is_int(loop->operands[2], &step);
    if (!p->known[depth])
        return same_in_loops(op, a, b, p, depth + 1);
    int64_t iterations = most_iterations(loop);
    for (int64_t t = 0; t < iterations && (t == 0 || *p->asked >> depth & 1); t++) {
        p->index[depth] = lo + t * step;
        if (!same_in_loops(op, a, b, p, depth + 1))
            return false;
    }
    return true;
}

/* Whether an operand of op, a before and b in the mutant, is the same in all threads and
 * iterations. */
static bool same_everywhere(const tcc_func *f, const int64_t *multiples, const tcc_op *op, const tcc_value *a,
                            const tcc_value *b)
{
    unsigned asked = 0;
    place p = {.n_loops = depth_of(op->block), .multiples = multiples, .asked = &asked};
    if (p.n_loops > MAX_LOOPS)
        return false;
    for (const tcc_block *in = op->block; in->parent; in = in->parent->block)
        if (in->parent->code == TCC_OP_scf_for)
            p.loops[depth_of(in) - 1] = in;
    int64_t threads = tcc_attr_int(&f->attrs, "block", 0);
    for (p.tid = 0; p.tid < threads && (p.tid == 0 || asked & ASKED_TID); p.tid++)
        if (!same_in_loops(op, a, b, &p, 0))
            return false;
    return true;
}

/* ---- two functions ----------------------------------------------------------------------- */

/* Values of the function as it was, and what they have become. */
typedef struct comparison {
    const site *site;
    const int64_t *multiples; /* of both functions' parameters */
    tcc_map same;
} comparison;

/* Whether b is computed as a is. */
static bool same_value(comparison *c, const tcc_value *a, const tcc_value *b)
{
    const void *known = tcc_map_get(&c->same, a);
    if (known)
        return known == b;
    if (!a->def || !b->def || has_effect(a->def) || a->def->code != b->def->code ||
        a->def->n_operands != b->def->n_operands || !tcc_attrs_equal(&a->def->attrs, &b->def->attrs))
        return false;
    for (unsigned i = 0; i < a->def->n_operands; i++)
        if (!same_value(c, a->def->operands[i], b->def->operands[i]))
            return false;
    *tcc_map_at(&c->same, a) = (void *)(uintptr_t)b;
    return true;
}

static void pair_blocks(comparison *c, const tcc_block *a, const tcc_block *b)
{
    *tcc_map_at(&c->same, a) = (void *)(uintptr_t)b;
    for (size_t i = 0; i < a->n_args && i < b->n_args; i++)
        *tcc_map_at(&c->same, a->args[i]) = b->args[i];
}

static bool are_both_computed(const tcc_value *a, const tcc_value *b)
{
    return a->def && b->def && a->def->code == b->def->code && !has_effect(a->def) &&
           a->def->n_operands && a->def->n_operands == b->def->n_operands &&
           tcc_attrs_equal(&a->def->attrs, &b->def->attrs);
}

/* Whether an operand of a is the same number in the mutant. Conditions on extents are not tried
 * with some: what matters is where they change. */
static bool same_number(comparison *c, const tcc_op *op, const tcc_value *a, const tcc_value *b)
{
    if (same_value(c, a, b) ||
        (a->type->kind == TCC_KIND_scalar && same_everywhere(c->site->f, c->multiples, op, a, b)))
        return true;
    if (!are_both_computed(a, b))
        return false;
    for (unsigned i = 0; i < a->def->n_operands; i++)
        if (!same_number(c, op, a->def->operands[i], b->def->operands[i]))
            return false;
    return true;
}

static bool same_op(comparison *c, const tcc_op *a, const tcc_op *b)
{
    if (tcc_map_get(&c->same, a->block) != b->block || a->code != b->code ||
        a->n_operands != b->n_operands || !tcc_attrs_equal(&a->attrs, &b->attrs))
        return false;
    for (unsigned i = 0; i < a->n_operands; i++)
        if (!same_number(c, a, a->operands[i], b->operands[i]))
            return false;
    for (unsigned i = 0; i < a->n_results; i++)
        *tcc_map_at(&c->same, &a->results[i]) = (void *)&b->results[i];
    for (unsigned i = 0; i < a->n_regions; i++)
        pair_blocks(c, a->regions[i], b->regions[i]);
    return true;
}

/* The next op that is not only part of a computation. */
static tcc_op *next_op(tcc_op *op, const tcc_block *top)
{
    while (op && tcc_op_info_get(op->code)->flags & TCC_PURE)
        op = tcc_walk_next(op, top);
    return op;
}

bool gives_same_numbers(const site *s)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    comparison c = {s, multiples_of(arena, s->f), TCC_MAP(arena)};
    const tcc_block *was = s->f->body, *is = s->mutant->body;
    pair_blocks(&c, was, is);
    tcc_op *a = next_op(was->first, was), *b = next_op(is->first, is);
    bool same = tcc_attrs_equal(&s->f->attrs, &s->mutant->attrs);
    while (a && b && same) {
        same = same_op(&c, a, b);
        a = next_op(tcc_walk_next(a, was), was);
        b = next_op(tcc_walk_next(b, is), is);
    }
    tcc_arena_destroy(arena);
    return same && !a && !b;
}

/* roll-elements: compute long expressions in a loop over the elements that a thread has of them.
 *
 * Before:  %a = arith.add %x, %y : vec<f32[8]>      After:  %r = scf.for %c0, %c8, %c1, %x {
 *          … a thousand more                                ^(%turn: i32, %rest: vec<f32[8]>):
 *          %r = arith.mul %z, %b : vec<f32[8]>                %s = vec.extract %rest {offset = 0} : f32
 *                                                             … a thousand
 *                                                             %p = arith.mul %q, %c : f32
 *                                                             %t = vec.slice %rest {offset = 1} : vec<f32[7]>
 *                                                             %u = vec.pack %t, %p : vec<f32[8]>
 *                                                             scf.yield %u
 *                                                           }
 *
 * Code is generated for every element of a vec, and for every vec of a tile. Where expressions are long, the time that
 * this takes, and the code, which should stay in the instruction cache, must not grow with their number. Registers
 * cannot be indexed at run time: an iteration takes the first elements and moves the others down. Nothing goes to
 * memory. Besides the expression an iteration costs one move for each register of the vecs that come in or go out, of
 * which those that go out take the place of those that came in. Since independent instructions hide each other's
 * latency, an iteration computes as many elements as stay within MOST instructions; where all of them do, nothing is
 * changed. One expression is computed by several loops, one after the other, if few values go from each to the next,
 * because LLVM takes time that grows with the square of the longest block. Expressions that are long before expand-math
 * are put into loops then, so that functions are expanded once for each iteration; others when they are as short as they
 * get.
 *
 * Requires nothing. Preserves control flow.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/elementwise_groups.h"
#include "passes/passes.h"

enum {
    LEAST = 64,   /* instructions an element, above which an expression is long */
    MOST = 2048,  /* instructions of all elements, above which there is a loop; of an iteration */
    BLOCK = 512,  /* instructions an element, after which another loop may begin */
    MOST_LIVE = 4, /* values that may go from one to the next */
    WORD_BITS = 32,
    FIRST_CARRIED = 3
};

/* A family that becomes one or several loops. */
typedef struct rolled {
    tcc_alike f;
    tcc_arena *scratch;
    tcc_builder b;
    bool *stays;        /* by member: it does not become part of a loop */
    size_t *before;     /* instructions of an element before each member, and of all */
    int64_t n, at_once; /* elements of all groups; of an iteration */
} rolled;

/* ---- what becomes part of a loop ------------------------------------------------------- */

static bool is_narrow(const tcc_value *v)
{
    return tcc_scalar_bits(v->type->elem) < WORD_BITS && v->type->elem != TCC_i1;
}

/* Whether an op of group g becomes part of the loop that has members [begin, end). */
static bool is_inside(const rolled *r, size_t g, const tcc_op *op, size_t begin, size_t end)
{
    const tcc_member *m = tcc_alike_member(&r->f, g, op);
    return m && m->index >= begin && m->index < end && !r->stays[m->index];
}

/* Whether the result of member i is used in the loop that has members [begin, end), or elsewhere, of any group. */
static bool is_used(const rolled *r, size_t i, size_t begin, size_t end, bool inside)
{
    bool any = false;
    for (size_t g = 0; g < r->f.groups.len; g++)
        for (const tcc_use *u = tcc_alike_op(&r->f, g, i)->results[0].uses; u; u = u->next)
            any |= is_inside(r, g, u->op, begin, end) == inside;
    return any;
}

/* Narrow elements share registers, and are converted two at a time: not one by one in a loop. Conversions of what
 * comes in stay before it; those of what goes out move behind it. Returns what the loops come before. */
static tcc_op *leave_conversions(rolled *r, tcc_op *at)
{
    size_t n = r->f.n_ops;
    for (size_t i = 0; i < n; i++) {
        const tcc_op *op = tcc_alike_op(&r->f, 0, i);
        r->stays[i] = op->code == TCC_OP_arith_cast && is_narrow(op->operands[0]) &&
                      !is_inside(r, 0, op->operands[0]->def, 0, n);
    }
    for (size_t i = n; i--;) {
        const tcc_op *op = tcc_alike_op(&r->f, 0, i);
        if (r->stays[i] || op->code != TCC_OP_arith_cast || !is_narrow(op->results) || is_used(r, i, 0, n, true))
            continue;
        r->stays[i] = true;
        for (size_t g = r->f.groups.len; g--;) {
            tcc_builder b = tcc_builder_before(at);
            at = tcc_alike_op(&r->f, g, i);
            tcc_op_move(&b, at);
        }
    }
    return at;
}

/* Instructions of an element: of members [0, i), for each i. */
static size_t *count_instructions(const rolled *r)
{
    size_t *sums = TCC_NEW_ARRAY(r->scratch, size_t, r->f.n_ops + 1);
    for (size_t i = 0; i < r->f.n_ops; i++)
        sums[i + 1] = sums[i] + tcc_expanded_instructions(tcc_alike_op(&r->f, 0, i)->code);
    return sums;
}

/* A divisor of n: as many elements as an iteration may compute. */
static int64_t elements_at_once(size_t instructions, int64_t n)
{
    int64_t at_once = n;
    while (at_once > 1 && (n % at_once || (int64_t)instructions * at_once > MOST))
        at_once--;
    return at_once;
}

/* How many results of members before each one are used from there on, or outside the group. */
static size_t *count_live(const rolled *r)
{
    size_t n = r->f.n_ops;
    size_t *live = TCC_NEW_ARRAY(r->scratch, size_t, n + 1), *ends = TCC_NEW_ARRAY(r->scratch, size_t, n + 1);
    for (size_t i = 0; i < n; i++) {
        const tcc_op *op = tcc_alike_op(&r->f, 0, i);
        size_t last = is_used(r, i, 0, n, false) ? n : i;
        for (const tcc_use *u = op->results[0].uses; u && last < n; u = u->next) {
            size_t user = tcc_alike_member(&r->f, 0, u->op)->index;
            last = user > last ? user : last;
        }
        live[i + 1] = live[i] + 1 - ends[i];
        ends[last]++;
    }
    return live;
}

/* The end of the loop that begins with a member. */
static size_t find_end(const rolled *r, const size_t *live, size_t begin)
{
    const size_t *before = r->before, n = r->f.n_ops;
    size_t end = before[begin] + BLOCK, best = n;
    for (size_t i = begin + 1; i < n && (before[i] <= end || best == n); i++)
        if (before[i] >= end - BLOCK / 2 && live[i] <= MOST_LIVE && (best == n || live[i] <= live[best]))
            best = i;
    return end < before[n] ? best : n;
}

/* ---- one loop -------------------------------------------------------------------------- */

/* A vec of all elements of all groups that comes in, goes out, or both in the same registers. */
typedef struct carried {
    tcc_value **in; /* of each group; NULL: nothing comes in */
    bool goes_out;
    size_t out; /* the member whose result goes out */
    const tcc_type *type;
    tcc_value *arg;
} carried;

typedef struct loop {
    const rolled *r;
    size_t begin, end; /* members */
    tcc_builder b;
    tcc_value_map *parts; /* from values of group 0 to what an iteration has of them */
    TCC_VEC(carried) carried;
} loop;

static bool has(const loop *l, size_t i)
{
    return !l->r->stays[i];
}

static const tcc_type *vec_type(const loop *l, tcc_scalar elem, int64_t n)
{
    return tcc_type_sized(l->b.func->ir, TCC_KIND_vec, elem, 1, &n);
}

static const tcc_type *part_type(const loop *l, tcc_scalar elem)
{
    return l->r->at_once == 1 ? tcc_type_scalar(l->b.func->ir, elem) : vec_type(l, elem, l->r->at_once);
}

/* For what the loop computes, all of it: anything. */
static tcc_value *nothing_yet(loop *l, const tcc_type *type)
{
    bool is_float = tcc_scalar_classify(type->elem) == TCC_CLASS_FLOAT;
    return is_float ? tcc_build_float(&l->b, type, 0) : tcc_build_int(&l->b, type, 0);
}

static tcc_value *pack(loop *l, const tcc_type *type, size_t n, tcc_value *const *v)
{
    return n == 1 ? v[0] : tcc_op_create(&l->b, TCC_OP_vec_pack, n, v, 1, &type)->results;
}

static tcc_value *slice(loop *l, tcc_value *v, int64_t offset, int64_t n)
{
    if (tcc_type_count(v->type) == n)
        return v;
    tcc_value *part = TCC_EMIT(&l->b, vec_slice, vec_type(l, v->type->elem, n), v);
    tcc_attr_set_int(l->b.func->ir, &part->def->attrs, "offset", offset);
    return part;
}

static tcc_value *first_part(loop *l, tcc_value *v)
{
    if (l->r->at_once > 1)
        return slice(l, v, 0, l->r->at_once);
    tcc_value *part = TCC_EMIT(&l->b, vec_extract, part_type(l, v->type->elem), v);
    tcc_attr_set_int(l->b.func->ir, &part->def->attrs, "offset", 0);
    return part;
}

/* Each group may have its own op for what is the same number everywhere. */
static bool is_same(const tcc_value *a, const tcc_value *b)
{
    if (a == b)
        return true;
    const tcc_op *x = a->def, *y = b->def;
    if (!x || !y || x->code != y->code || a->type != b->type)
        return false;
    if (x->code == TCC_OP_vec_splat)
        return is_same(x->operands[0], y->operands[0]);
    return x->code == TCC_OP_arith_const && tcc_attrs_equal(&x->attrs, &y->attrs);
}

/* What all elements have alike needs no vec; NULL where they may differ. */
static tcc_value *part_of_all(loop *l, tcc_value *const *v)
{
    const tcc_type *type = part_type(l, v[0]->type->elem);
    const tcc_op *def = v[0]->def;
    for (size_t g = 1; g < l->r->f.groups.len; g++)
        if (!is_same(v[g], v[0]))
            return NULL;
    if (def && def->code == TCC_OP_vec_splat)
        return l->r->at_once == 1 ? def->operands[0] : TCC_EMIT(&l->b, vec_splat, type, def->operands[0]);
    if (!def || def->code != TCC_OP_arith_const)
        return NULL;
    tcc_op *op = tcc_op_create(&l->b, TCC_OP_arith_const, 0, NULL, 1, &type);
    op->attrs = def->attrs;
    return op->results;
}

/* Operand o of member i: what it is of each group. */
static void find_incoming(loop *l, tcc_map *known, size_t i, unsigned o)
{
    const tcc_alike *f = &l->r->f;
    tcc_value *first = tcc_alike_op(f, 0, i)->operands[o];
    if (tcc_map_get(known, first) || is_inside(l->r, 0, first->def, l->begin, l->end))
        return;
    tcc_value **of = TCC_NEW_ARRAY(l->r->scratch, tcc_value *, f->groups.len);
    for (size_t g = 0; g < f->groups.len; g++)
        of[g] = tcc_alike_op(f, g, i)->operands[o];
    *tcc_map_at(known, first) = first;
    tcc_value *part = part_of_all(l, of);
    if (part)
        tcc_value_map_set(l->parts, first, part);
    else
        TCC_PUSH(l->r->scratch, &l->carried, ((carried){.in = of, .type = vec_type(l, first->type->elem, l->r->n)}));
}

static void find_outgoing(loop *l, size_t i)
{
    const tcc_type *type = vec_type(l, tcc_alike_op(&l->r->f, 0, i)->results[0].type->elem, l->r->n);
    size_t c = 0;
    if (!is_used(l->r, i, l->begin, l->end, false))
        return;
    while (c < l->carried.len && (l->carried.data[c].goes_out || l->carried.data[c].type != type))
        c++;
    if (c == l->carried.len)
        TCC_PUSH(l->r->scratch, &l->carried, ((carried){.type = type}));
    l->carried.data[c].goes_out = true;
    l->carried.data[c].out = i;
}

static void find_carried(loop *l)
{
    tcc_map known = TCC_MAP(l->r->scratch);
    for (size_t i = l->begin; i < l->end; i++)
        for (unsigned o = 0; has(l, i) && o < tcc_alike_op(&l->r->f, 0, i)->n_operands; o++)
            find_incoming(l, &known, i, o);
    for (size_t i = l->begin; i < l->end; i++)
        if (has(l, i))
            find_outgoing(l, i);
}

static tcc_op *begin(loop *l)
{
    size_t n = l->carried.len;
    tcc_value **operands = TCC_NEW_ARRAY(l->r->scratch, tcc_value *, FIRST_CARRIED + n);
    const tcc_type **types = TCC_NEW_ARRAY(l->r->scratch, const tcc_type *, n);
    operands[0] = tcc_build_i32(&l->b, 0);
    operands[1] = tcc_build_i32(&l->b, l->r->n / l->r->at_once);
    operands[2] = tcc_build_i32(&l->b, 1);
    for (size_t c = 0; c < n; c++) {
        const carried *v = &l->carried.data[c];
        types[c] = v->type;
        operands[FIRST_CARRIED + c] = v->in ? pack(l, v->type, l->r->f.groups.len, v->in) : nothing_yet(l, v->type);
    }
    tcc_op *op = tcc_op_create(&l->b, TCC_OP_scf_for, FIRST_CARRIED + n, operands, n, types);
    tcc_attr_set_int(l->b.func->ir, &op->attrs, "at_least_once", 1);
    tcc_block_add_arg(op->regions[0], operands[0]->type, "turn");
    l->b = tcc_builder_at_end(op->regions[0]);
    for (size_t c = 0; c < n; c++) {
        carried *v = &l->carried.data[c];
        v->arg = tcc_block_add_arg(op->regions[0], types[c], "rest");
        if (v->in)
            tcc_value_map_set(l->parts, v->in[0], first_part(l, v->arg));
    }
    return op;
}

static void compute(loop *l, const tcc_op *op)
{
    tcc_value **operands = TCC_NEW_ARRAY(l->r->scratch, tcc_value *, op->n_operands);
    for (unsigned i = 0; i < op->n_operands; i++)
        operands[i] = tcc_value_map_get(l->parts, op->operands[i]);
    const tcc_type *type = part_type(l, op->results[0].type->elem);
    l->b.loc = op->loc;
    tcc_op *part = tcc_op_create(&l->b, op->code, op->n_operands, operands, 1, &type);
    part->attrs = op->attrs;
    tcc_value_map_set(l->parts, op->results, part->results);
}

static void end(loop *l)
{
    size_t n = l->carried.len;
    tcc_value **yields = TCC_NEW_ARRAY(l->r->scratch, tcc_value *, n);
    for (size_t c = 0; c < n; c++) {
        const carried *v = &l->carried.data[c];
        tcc_value *last = v->goes_out ? tcc_alike_op(&l->r->f, 0, v->out)->results : v->in[0];
        tcc_value *both[] = {slice(l, v->arg, l->r->at_once, l->r->n - l->r->at_once),
                             tcc_value_map_get(l->parts, last)};
        yields[c] = pack(l, v->type, 2, both);
    }
    tcc_op_create(&l->b, TCC_OP_scf_yield, n, yields, 0, NULL);
}

/* What went out goes to those that use it. */
static void take(loop *l, tcc_op *op)
{
    const tcc_alike *f = &l->r->f;
    int64_t n = tcc_group_length(f->groups.data[0]);
    l->b = tcc_builder_after(op);
    for (size_t c = 0; c < l->carried.len; c++)
        for (size_t g = 0; l->carried.data[c].goes_out && g < f->groups.len; g++) {
            tcc_value *out = slice(l, &op->results[c], (int64_t)g * n, n);
            tcc_replace_uses(tcc_alike_op(f, g, l->carried.data[c].out)->results, out);
        }
    for (size_t i = l->end; i-- > l->begin;)
        for (size_t g = 0; has(l, i) && g < f->groups.len; g++)
            tcc_op_erase(tcc_alike_op(f, g, i));
}

/* Computes members [begin, end) in a loop. */
static void roll(const rolled *r, size_t begin_at, size_t end_at)
{
    loop l = {.r = r, .begin = begin_at, .end = end_at, .b = r->b, .parts = tcc_value_map_create(r->scratch)};
    find_carried(&l);
    tcc_op *op = begin(&l);
    for (size_t i = begin_at; i < end_at; i++)
        if (has(&l, i))
            compute(&l, tcc_alike_op(&r->f, 0, i));
    end(&l);
    take(&l, op);
}

/* ---- the pass -------------------------------------------------------------------------- */

static bool should_roll(const tcc_groups *groups, const tcc_group *g)
{
    return g->members.len > LEAST && (int64_t)g->members.len * tcc_groups_count(groups, g) > MOST;
}

/* at: an op that uses a value of the group otherwise, or has one in its regions that does */
static bool close(tcc_groups *groups, tcc_group *g, tcc_op *at)
{
    bool should = should_roll(groups, g);
    g->closed = !should;
    if (!should)
        return false;
    rolled r = {.f = tcc_groups_close(groups, g), .scratch = groups->scratch};
    r.n = tcc_group_length(g) * (int64_t)r.f.groups.len;
    r.before = count_instructions(&r);
    r.at_once = elements_at_once(r.before[r.f.n_ops], r.n);
    if (r.at_once == r.n)
        return false;
    r.stays = TCC_NEW_ARRAY(r.scratch, bool, r.f.n_ops);
    r.b = tcc_builder_before(leave_conversions(&r, at));
    const size_t *live = count_live(&r);
    for (size_t begin_at = 0, end_at; begin_at < r.f.n_ops; begin_at = end_at) {
        end_at = find_end(&r, live, begin_at);
        roll(&r, begin_at, end_at);
    }
    return true;
}

static bool close_used(tcc_groups *groups, const tcc_op *user, tcc_op *at)
{
    bool changed = false;
    for (unsigned i = 0; i < user->n_operands; i++) {
        tcc_group *g = tcc_groups_open(groups, user->operands[i]);
        changed |= g && close(groups, g, at);
    }
    return changed;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_groups groups = {.scratch = ctx->scratch, .members = TCC_MAP(ctx->scratch)};
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        if (tcc_groups_add(&groups, op))
            continue;
        *changed |= close_used(&groups, op, op);
        for (unsigned i = 0; i < op->n_regions; i++)
            for (tcc_op *in = op->regions[i]->first; in; in = tcc_walk_next(in, op->regions[i]))
                *changed |= close_used(&groups, in, op);
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_roll_elements = {
    "roll-elements", "compute long expressions in a loop over a thread's elements", .run = run};

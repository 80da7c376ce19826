/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/mutants/mutants.h"

#include "support/map.h"

static bool is_pure(const tcc_op *op)
{
    return tcc_op_info_get(op->code)->flags & TCC_PURE;
}

static bool is_terminator(const tcc_op *op)
{
    return tcc_op_info_get(op->code)->flags & TCC_TERMINATOR;
}

bool has_effect(const tcc_op *op)
{
    return !is_pure(op) && !is_terminator(op);
}

tcc_op *previous_effect(const tcc_op *op)
{
    tcc_op *p = op->prev;
    while (p && !has_effect(p))
        p = p->prev;
    return p;
}

tcc_op *next_effect(const tcc_op *op)
{
    tcc_op *n = op->next;
    while (n && !has_effect(n))
        n = n->next;
    return n;
}

/* ---- what an op needs -------------------------------------------------------------------- */

typedef struct values {
    tcc_map map;
} values;

static bool has(const values *s, const tcc_value *v)
{
    return tcc_map_get(&s->map, v) != NULL;
}

static void add(values *s, tcc_value *v)
{
    *tcc_map_at(&s->map, v) = v;
}

/* The operands of an op and of all ops in it. */
static void add_operands(values *s, tcc_op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++)
        add(s, op->operands[i]);
    for (unsigned r = 0; r < op->n_regions; r++)
        for (tcc_op *in = op->regions[r]->first; in; in = tcc_walk_next(in, op->regions[r]))
            for (unsigned i = 0; i < in->n_operands; i++)
                add(s, in->operands[i]);
}

static bool gives(const tcc_op *op, const values *s)
{
    for (unsigned i = 0; i < op->n_results; i++)
        if (has(s, &op->results[i]))
            return true;
    return false;
}

/* ---- moving within a block --------------------------------------------------------------- */

bool move_before(tcc_op *op, tcc_op *place)
{
    values needed = {TCC_MAP(op->block->func->ir->arena)};
    add_operands(&needed, op);
    for (tcc_op *p = op->prev; p != place->prev; p = p->prev)
        if (gives(p, &needed)) {
            if (!is_pure(p))
                return false;
            add_operands(&needed, p);
        }
    tcc_builder b = tcc_builder_before(place);
    for (tcc_op *p = place, *next; p != op; p = next) {
        next = p->next;
        if (gives(p, &needed))
            tcc_op_move(&b, p);
    }
    tcc_op_move(&b, op);
    return true;
}

/* ---- copying a computation --------------------------------------------------------------- */

typedef struct copier {
    tcc_builder b;
    tcc_value_map *map;
    bool failed;
} copier;

bool is_inside(const tcc_block *in, const tcc_block *b)
{
    while (in && in != b)
        in = in->parent ? in->parent->block : NULL;
    return in != NULL;
}

/* Copies the pure ops in `within` from which v is computed. Chains are short: the index arithmetic
 * of a kernel. */
static tcc_value *copy_value(copier *c, tcc_value *v, const tcc_block *within)
{
    tcc_value *to = tcc_value_map_get(c->map, v);
    if (to != v || !v->def || !is_inside(v->def->block, within))
        return to;
    if (!is_pure(v->def)) {
        c->failed = true;
        return v;
    }
    for (unsigned i = 0; i < v->def->n_operands; i++)
        copy_value(c, v->def->operands[i], within);
    if (!c->failed)
        tcc_op_clone(&c->b, v->def, c->map);
    return tcc_value_map_get(c->map, v);
}

static bool depends_on(const tcc_value *v, const tcc_value *arg)
{
    if (v == arg)
        return true;
    if (!v->def || !is_pure(v->def))
        return false;
    for (unsigned i = 0; i < v->def->n_operands; i++)
        if (depends_on(v->def->operands[i], arg))
            return true;
    return false;
}

bool leads_to(const tcc_func *f, const tcc_value *v, tcc_opcode code, unsigned operand)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == code && operand < op->n_operands && depends_on(op->operands[operand], v))
            return true;
    return false;
}

/* Copies only what depends on the argument. */
static tcc_value *copy_dependent(copier *c, tcc_value *v, const tcc_value *arg)
{
    tcc_value *to = tcc_value_map_get(c->map, v);
    if (to != v || !depends_on(v, arg))
        return to;
    for (unsigned i = 0; i < v->def->n_operands; i++)
        copy_dependent(c, v->def->operands[i], arg);
    tcc_op_clone(&c->b, v->def, c->map);
    return tcc_value_map_get(c->map, v);
}

tcc_value *value_if(tcc_op *op, tcc_value *v, tcc_value *arg, tcc_value *otherwise)
{
    if (!depends_on(v, arg))
        return NULL;
    copier c = {.b = tcc_builder_before(op),
                .map = tcc_value_map_create(op->block->func->ir->arena)};
    tcc_value_map_set(c.map, arg, otherwise);
    return copy_dependent(&c, v, arg);
}

tcc_value *copy_value_before(tcc_op *op, tcc_value *v)
{
    copier c = {.b = tcc_builder_before(op),
                .map = tcc_value_map_create(op->block->func->ir->arena)};
    tcc_value *copy = copy_value(&c, v, op->block);
    return c.failed ? NULL : copy;
}

/* ---- loops ------------------------------------------------------------------------------- */

static bool is_int(const tcc_value *v)
{
    return v->type->kind == TCC_KIND_scalar && tcc_scalar_classify(v->type->elem) == TCC_CLASS_INT;
}

tcc_value *loop_argument(const tcc_op *op, unsigned n)
{
    for (const tcc_block *b = op->block; b; b = b->parent ? b->parent->block : NULL)
        for (size_t i = 0; i < b->n_args && b->parent; i++)
            if (is_int(b->args[i]) && n-- == 0)
                return b->args[i];
    return NULL;
}

tcc_value *first_value(const tcc_value *arg)
{
    tcc_op *loop = arg->block->parent;
    return arg->index == 0 ? loop->operands[0] : loop->operands[arg->index + 2];
}

tcc_value *constant_like(tcc_op *op, const tcc_value *v, int64_t i)
{
    tcc_builder b = tcc_builder_before(op);
    return tcc_build_int(&b, v->type, i);
}

/* An argument's value in the last iteration, or what the loop left. */
static tcc_value *last_value(tcc_builder *b, tcc_value *arg)
{
    tcc_op *loop = arg->block->parent;
    if (arg->index)
        return &loop->results[arg->index - 1];
    tcc_value *hi = loop->operands[1], *step = loop->operands[2];
    return TCC_EMIT(b, arith_sub, hi->type, hi, step);
}

bool move_out(tcc_op *op, bool after)
{
    const tcc_block *region = op->block;
    tcc_op *parent = region->parent;
    copier c = {.b = after ? tcc_builder_after(parent) : tcc_builder_before(parent),
                .map = tcc_value_map_create(region->func->ir->arena)};
    for (size_t i = 0; i < region->n_args; i++) {
        tcc_value *arg = region->args[i];
        tcc_value_map_set(c.map, arg, after ? last_value(&c.b, arg) : first_value(arg));
    }
    for (unsigned i = 0; i < op->n_operands; i++)
        copy_value(&c, op->operands[i], region);
    for (unsigned r = 0; r < op->n_regions; r++)
        for (tcc_op *in = op->regions[r]->first; in; in = tcc_walk_next(in, op->regions[r]))
            for (unsigned i = 0; i < in->n_operands; i++)
                if (!is_inside(in->operands[i]->def ? in->operands[i]->def->block
                                                    : in->operands[i]->block,
                               op->regions[r]))
                    copy_value(&c, in->operands[i], region);
    if (c.failed)
        return false;
    tcc_op_clone(&c.b, op, c.map);
    tcc_op_erase(op);
    return true;
}

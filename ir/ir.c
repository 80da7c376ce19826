/* ir: modules, functions, blocks; building, changing, cloning and walking ops.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/ir.h"

#include <assert.h>
#include <string.h>

#include "support/map.h"

/* ---- modules and functions ------------------------------------------------------------- */

tcc_ir *tcc_ir_create(tcc_arena *arena)
{
    tcc_ir *ir = TCC_NEW(arena, tcc_ir);
    ir->arena = ir->kept = arena;
    ir->names = tcc_intern_create(arena);
    return ir;
}

const char *tcc_ir_name(tcc_ir *ir, const char *name)
{
    return tcc_intern_get(ir->names, name, strlen(name));
}

static tcc_func *new_func(tcc_ir *ir, const char *name, tcc_loc loc)
{
    tcc_func *f = TCC_NEW(ir->arena, tcc_func);
    f->name = tcc_ir_name(ir, name);
    f->loc = loc;
    f->ir = ir;
    f->body = tcc_block_create(f, NULL);
    return f;
}

tcc_func *tcc_func_create(tcc_ir *ir, const char *name, tcc_loc loc)
{
    tcc_func *f = new_func(ir, name, loc);
    if (ir->last)
        ir->last->next = f;
    else
        ir->first = f;
    ir->last = f;
    return f;
}

tcc_func *tcc_func_find(const tcc_ir *ir, const char *name)
{
    for (tcc_func *f = ir->first; f; f = f->next)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

void tcc_func_remove(tcc_func *f)
{
    tcc_func *prev = NULL;
    for (tcc_func **p = &f->ir->first; *p; prev = *p, p = &(*p)->next)
        if (*p == f) {
            *p = f->next;
            if (f->ir->last == f)
                f->ir->last = prev;
            return;
        }
}

tcc_block *tcc_block_create(tcc_func *f, tcc_op *parent)
{
    tcc_block *b = TCC_NEW(f->ir->arena, tcc_block);
    b->func = f;
    b->parent = parent;
    return b;
}

tcc_value *tcc_block_add_arg(tcc_block *b, const tcc_type *type, const char *name)
{
    tcc_value *v = TCC_NEW(b->func->ir->arena, tcc_value);
    v->type = type;
    v->block = b;
    v->index = (uint32_t)b->n_args;
    v->name = name ? tcc_ir_name(b->func->ir, name) : NULL;
    b->args = tcc_arena_grow(b->func->ir->arena, b->args, sizeof *b->args, b->n_args, &b->cap_args);
    b->args[b->n_args++] = v;
    return v;
}

/* ---- building -------------------------------------------------------------------------- */

tcc_builder tcc_builder_at_end(tcc_block *block)
{
    return (tcc_builder){.func = block->func, .block = block};
}

tcc_builder tcc_builder_before(tcc_op *op)
{
    return (tcc_builder){.func = op->block->func, .block = op->block, .before = op, .loc = op->loc};
}

tcc_builder tcc_builder_after(tcc_op *op)
{
    return (tcc_builder){
        .func = op->block->func, .block = op->block, .before = op->next, .loc = op->loc};
}

static void link_op(tcc_builder *b, tcc_op *op)
{
    op->block = b->block;
    op->next = b->before;
    op->prev = b->before ? b->before->prev : b->block->last;
    *(op->prev ? &op->prev->next : &b->block->first) = op;
    *(op->next ? &op->next->prev : &b->block->last) = op;
}

static void unlink_op(tcc_op *op)
{
    *(op->prev ? &op->prev->next : &op->block->first) = op->next;
    *(op->next ? &op->next->prev : &op->block->last) = op->prev;
    op->block = NULL;
    op->prev = op->next = NULL;
}

static void add_use(tcc_op *op, size_t i, tcc_value *v)
{
    tcc_use *use = &op->uses[i];
    op->operands[i] = v;
    *use = (tcc_use){.op = op, .next = v->uses, .link = &v->uses};
    if (use->next)
        use->next->link = &use->next;
    v->uses = use;
    v->n_uses++;
}

static void remove_use(tcc_op *op, size_t i)
{
    tcc_use *use = &op->uses[i];
    *use->link = use->next;
    if (use->next)
        use->next->link = use->link;
    op->operands[i]->n_uses--;
}

tcc_op *tcc_op_create(tcc_builder *b, tcc_opcode code, size_t n_operands,
                      tcc_value *const *operands, size_t n_results, const tcc_type *const *types)
{
    tcc_arena *arena = b->func->ir->arena;
    tcc_op *op = TCC_NEW(arena, tcc_op);
    op->code = code;
    op->loc = b->loc;
    op->n_operands = (unsigned)n_operands;
    op->operands = TCC_NEW_ARRAY(arena, tcc_value *, n_operands);
    op->uses = TCC_NEW_ARRAY(arena, tcc_use, n_operands);
    for (size_t i = 0; i < n_operands; i++) {
        assert(operands[i]);
        add_use(op, i, operands[i]);
    }
    op->n_results = (unsigned)n_results;
    op->results = TCC_NEW_ARRAY(arena, tcc_value, n_results);
    for (size_t i = 0; i < n_results; i++)
        op->results[i] = (tcc_value){.type = types[i], .def = op, .index = (uint32_t)i};
    op->n_regions = tcc_op_info_get(code)->n_regions;
    op->regions = TCC_NEW_ARRAY(arena, tcc_block *, op->n_regions);
    for (unsigned i = 0; i < op->n_regions; i++)
        op->regions[i] = tcc_block_create(b->func, op);
    link_op(b, op);
    return op;
}

tcc_value *tcc_build_int(tcc_builder *b, const tcc_type *type, int64_t v)
{
    tcc_op *op = tcc_op_create(b, TCC_OP_arith_const, 0, NULL, 1, &type);
    tcc_attr_set_int(b->func->ir, &op->attrs, "value", v);
    return &op->results[0];
}

tcc_value *tcc_build_i32(tcc_builder *b, int64_t v)
{
    return tcc_build_int(b, tcc_type_scalar(b->func->ir, TCC_i32), v);
}

tcc_value *tcc_build_float(tcc_builder *b, const tcc_type *type, double v)
{
    tcc_op *op = tcc_op_create(b, TCC_OP_arith_const, 0, NULL, 1, &type);
    tcc_attr_set(b->func->ir, &op->attrs, "value", (tcc_attr){.kind = TCC_ATTR_FLOAT, .f = v},
                 (tcc_loc){0, 0});
    return &op->results[0];
}

static const tcc_attr *const_value(const tcc_value *v)
{
    if (!v->def || v->def->code != TCC_OP_arith_const)
        return NULL;
    const tcc_named_attr *a = tcc_attr_find(&v->def->attrs, "value");
    return a ? &a->value : NULL;
}

bool tcc_value_is_int(const tcc_value *v, int64_t *out)
{
    const tcc_attr *a = const_value(v);
    if (!a || a->kind != TCC_ATTR_INT)
        return false;
    *out = a->i;
    return true;
}

bool tcc_value_is_float(const tcc_value *v, double *out)
{
    const tcc_attr *a = const_value(v);
    if (!a || a->kind != TCC_ATTR_FLOAT)
        return false;
    *out = a->f;
    return true;
}

/* ---- changing -------------------------------------------------------------------------- */

void tcc_op_set_operand(tcc_op *op, size_t i, tcc_value *v)
{
    remove_use(op, i);
    add_use(op, i, v);
}

void tcc_op_truncate_operands(tcc_op *op, unsigned n)
{
    while (op->n_operands > n)
        remove_use(op, --op->n_operands);
}

void tcc_replace_uses(tcc_value *from, tcc_value *to)
{
    while (from != to && from->uses)
        tcc_op_set_operand(from->uses->op, (size_t)(from->uses - from->uses->op->uses), to);
}

bool tcc_value_is_used_by(const tcc_value *v, tcc_opcode code)
{
    const tcc_use *u = v->uses;
    while (u && u->op->code != code)
        u = u->next;
    return u;
}

void tcc_op_erase(tcc_op *op)
{
    for (unsigned r = 0; r < op->n_regions; r++)
        for (tcc_op *in = op->regions[r]->first; in; in = tcc_walk_next(in, op->regions[r]))
            tcc_op_truncate_operands(in, 0);
    tcc_op_truncate_operands(op, 0);
    unlink_op(op);
}

void tcc_op_move(tcc_builder *b, tcc_op *op)
{
    unlink_op(op);
    link_op(b, op);
}

/* ---- cloning --------------------------------------------------------------------------- */

struct tcc_value_map {
    tcc_map map;
    const tcc_value_map *outer; /* NULL: none */
};

tcc_value_map *tcc_value_map_create(tcc_arena *arena)
{
    tcc_value_map *m = TCC_NEW(arena, tcc_value_map);
    m->map = TCC_MAP(arena);
    return m;
}

tcc_value_map *tcc_value_map_within(tcc_arena *arena, const tcc_value_map *outer)
{
    tcc_value_map *m = tcc_value_map_create(arena);
    m->outer = outer;
    return m;
}

void tcc_value_map_set(tcc_value_map *m, const tcc_value *from, tcc_value *to)
{
    *tcc_map_at(&m->map, from) = to;
}

tcc_value *tcc_value_map_get(const tcc_value_map *m, tcc_value *from)
{
    tcc_value *to = NULL;
    for (; m && !to; m = m->outer)
        to = tcc_map_get(&m->map, from);
    return to ? to : from;
}

static void copy_attrs(tcc_ir *ir, tcc_attrs *to, const tcc_attrs *from)
{
    for (size_t i = 0; i < from->len; i++)
        TCC_PUSH(ir->arena, to, from->data[i]);
}

/* Regions nest as deeply as the IR does: the parser bounds that. */
static void clone_block(tcc_block *to, const tcc_block *from, tcc_value_map *map)
{
    for (size_t i = 0; i < from->n_args; i++)
        tcc_value_map_set(map, from->args[i],
                          tcc_block_add_arg(to, from->args[i]->type, from->args[i]->name));
    tcc_builder b = tcc_builder_at_end(to);
    for (tcc_op *op = from->first; op; op = op->next)
        tcc_op_clone(&b, op, map);
}

tcc_op *tcc_op_clone(tcc_builder *b, tcc_op *op, tcc_value_map *map)
{
    tcc_arena *arena = b->func->ir->arena;
    tcc_value **operands = TCC_NEW_ARRAY(arena, tcc_value *, op->n_operands);
    for (unsigned i = 0; i < op->n_operands; i++)
        operands[i] = tcc_value_map_get(map, op->operands[i]);
    const tcc_type **types = TCC_NEW_ARRAY(arena, const tcc_type *, op->n_results);
    for (unsigned i = 0; i < op->n_results; i++)
        types[i] = op->results[i].type;
    tcc_builder at = *b;
    at.loc = op->loc;
    tcc_op *copy = tcc_op_create(&at, op->code, op->n_operands, operands, op->n_results, types);
    copy_attrs(b->func->ir, &copy->attrs, &op->attrs);
    for (unsigned i = 0; i < op->n_results; i++) {
        copy->results[i].name = op->results[i].name;
        tcc_value_map_set(map, &op->results[i], &copy->results[i]);
    }
    for (unsigned i = 0; i < op->n_regions; i++)
        clone_block(copy->regions[i], op->regions[i], map);
    return copy;
}

tcc_func *tcc_func_clone(tcc_func *f, const char *name)
{
    tcc_func *copy = new_func(f->ir, name, f->loc);
    copy->next = f->next;
    f->next = copy;
    if (f->ir->last == f)
        f->ir->last = copy;
    copy_attrs(f->ir, &copy->attrs, &f->attrs);
    clone_block(copy->body, f->body, tcc_value_map_create(f->ir->arena));
    return copy;
}

/* ---- walking --------------------------------------------------------------------------- */

const tcc_op *tcc_role_of(const tcc_op *op)
{
    while (op && op->code != TCC_OP_async_role)
        op = op->block->parent;
    return op;
}

tcc_op *tcc_ancestor_in(tcc_op *op, const tcc_block *block)
{
    while (op && op->block != block)
        op = op->block->parent;
    return op;
}

bool tcc_op_reaches(const tcc_op *op, const tcc_op *other)
{
    while (op && op != other)
        op = op->next;
    return op;
}

tcc_op *tcc_walk_next(tcc_op *op, const tcc_block *top)
{
    for (unsigned r = 0; r < op->n_regions; r++)
        if (op->regions[r]->first)
            return op->regions[r]->first;
    while (!op->next) {
        tcc_block *block = op->block;
        if (block == top)
            return NULL;
        tcc_op *parent = block->parent;
        unsigned r = 0;
        while (parent->regions[r] != block)
            r++;
        for (r++; r < parent->n_regions; r++)
            if (parent->regions[r]->first)
                return parent->regions[r]->first;
        op = parent;
    }
    return op->next;
}

/* fields: kinds of mutation that change a number.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/grid.h"
#include "ir/signature.h"
#include "tests/mutants/mutants.h"

/* ---- operands ---------------------------------------------------------------------------- */

/* Whether the op is the kind's, and has the operand. */
static bool is_mine(const kind *k, const tcc_op *op)
{
    return (k->code == TCC_OP_COUNT || op->code == k->code) && k->operand < op->n_operands;
}

attempt add_to_operand(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f;
    if (!is_mine(k, op) || way >= k->n_ways)
        return NO_MORE;
    tcc_value *v = op->operands[k->operand], *by = constant_like(op, v, k->ways[way]);
    tcc_builder b = tcc_builder_before(op);
    tcc_op_set_operand(op, k->operand, TCC_EMIT(&b, arith_add, v->type, v, by));
    return MUTATED;
}

attempt add_to_result(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f;
    if (op->code != k->code || way >= k->n_ways)
        return NO_MORE;
    tcc_value *v = &op->results[0];
    tcc_builder b = tcc_builder_after(op);
    tcc_value *sum = TCC_EMIT(&b, arith_add, v->type, v, v);
    tcc_replace_uses(v, sum);
    tcc_op_set_operand(sum->def, 0, v);
    tcc_op_set_operand(sum->def, 1, constant_like(sum->def, v, k->ways[way]));
    return MUTATED;
}

/* Ways: 2 doubles, -2 halves. */
attempt scale_operand(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f;
    if (!is_mine(k, op) || way >= k->n_ways)
        return NO_MORE;
    bool halve = k->ways[way] < 0;
    tcc_value *v = op->operands[k->operand];
    tcc_value *by = constant_like(op, v, halve ? -k->ways[way] : k->ways[way]);
    tcc_builder b = tcc_builder_before(op);
    tcc_value *r =
        halve ? TCC_EMIT(&b, arith_div, v->type, v, by) : TCC_EMIT(&b, arith_mul, v->type, v, by);
    tcc_op_set_operand(op, k->operand, r);
    return MUTATED;
}

/* Ways: a constant; NEGATED: the complement of an i1 or of a parity. */
attempt replace_operand(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f;
    if (!is_mine(k, op) || way >= k->n_ways)
        return NO_MORE;
    tcc_value *v = op->operands[k->operand];
    int64_t was, to = k->ways[way];
    if (tcc_value_is_int(v, &was) && (was == to || to == NEGATED))
        return NOT_HERE; /* as it was, or another way's */
    tcc_value *by = constant_like(op, v, to == NEGATED ? 1 : to);
    tcc_builder b = tcc_builder_before(op);
    tcc_op_set_operand(op, k->operand,
                       to == NEGATED ? TCC_EMIT(&b, arith_xor, v->type, v, by) : by);
    return MUTATED;
}

/* ---- constants --------------------------------------------------------------------------- */

/* Each constant of the arithmetic that gives an op its operand, one larger and one smaller. */
attempt change_constant(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    int64_t was;
    unsigned operand = way / k->n_ways;
    if (has_effect(op) || operand >= op->n_operands || op->n_results != 1 ||
        !leads_to(f, &op->results[0], k->code, k->operand))
        return NO_MORE;
    const tcc_value *v = op->operands[operand];
    if (!tcc_value_is_int(v, &was) || v->type->kind != TCC_KIND_scalar || v->type->elem == TCC_i1)
        return NOT_HERE;
    tcc_op_set_operand(op, operand, constant_like(op, v, was + k->ways[way % k->n_ways]));
    return MUTATED;
}

/* ---- descriptors ------------------------------------------------------------------------- */

/* PTX ISA, "Matrix Descriptor Format": bits 0-13 the start, 16-29 the leading, 32-45 the stride
 * byte offset, all in units of 16 bytes, 62-63 the swizzle. */
static const struct {
    const char *name;
    int shift;
    int64_t mask;
} descriptor_fields[] = {
    {"start", 0, 0x3fff}, {"leading", 16, 0x3fff}, {"stride", 32, 0x3fff}, {"swizzle", 62, 3}};

/* Ways: what is added to the field, in A and then in B. */
attempt change_descriptor(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f;
    if (op->code != TCC_OP_nvvm_wgmma || way >= 2 * k->n_ways)
        return NO_MORE;
    unsigned operand = 1 + way / k->n_ways, i = 0;
    while (strcmp(descriptor_fields[i].name, k->attribute))
        i++;
    uint64_t mask = (uint64_t)descriptor_fields[i].mask << descriptor_fields[i].shift;
    uint64_t by = (uint64_t)k->ways[way % k->n_ways] << descriptor_fields[i].shift;
    tcc_value *v = op->operands[operand];
    tcc_value *add = constant_like(op, v, (int64_t)by);
    tcc_value *in = constant_like(op, v, (int64_t)mask),
              *out = constant_like(op, v, (int64_t)~mask);
    tcc_builder b = tcc_builder_before(op);
    tcc_value *sum = TCC_EMIT(&b, arith_add, v->type, v, add);
    tcc_value *field = TCC_EMIT(&b, arith_and, v->type, sum, in);
    tcc_value *rest = TCC_EMIT(&b, arith_and, v->type, v, out);
    tcc_op_set_operand(op, operand, TCC_EMIT(&b, arith_or, v->type, field, rest));
    return MUTATED;
}

/* ---- attributes -------------------------------------------------------------------------- */

/* Ways: what is added to the attribute; TOGGLED: present or absent, 0 or 1. */
attempt change_attribute(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    if ((k->code != TCC_OP_COUNT && op->code != k->code) || way >= k->n_ways)
        return NO_MORE;
    const tcc_named_attr *a = tcc_attr_find(&op->attrs, k->attribute);
    int64_t was = tcc_attr_int(&op->attrs, k->attribute, 0), by = k->ways[way];
    if (!a && by != TOGGLED)
        return NOT_HERE;
    if (by == TOGGLED && was)
        tcc_attr_remove(&op->attrs, k->attribute);
    else if (was + by < 0)
        return NOT_HERE;
    else
        tcc_attr_set_int(f->ir, &op->attrs, k->attribute, by == TOGGLED ? 1 : was + by);
    return MUTATED;
}

/* ---- the function's attributes ----------------------------------------------------------- */

static tcc_attr list_of(tcc_ir *ir, tcc_attr old)
{
    tcc_attr copy = old;
    tcc_attr *items = TCC_NEW_ARRAY(ir->arena, tcc_attr, old.list.n + 1);
    for (size_t i = 0; i < old.list.n; i++)
        items[i] = old.list.items[i].kind == TCC_ATTR_LIST ? list_of(ir, old.list.items[i])
                                                           : old.list.items[i];
    copy.list.items = items;
    return copy;
}

/* The attribute's list, to be written to. */
static tcc_attr *own_list(tcc_func *f, const char *name, size_t *n)
{
    const tcc_named_attr *a = tcc_attr_find(&f->attrs, name);
    if (!a || a->value.kind != TCC_ATTR_LIST)
        return NULL;
    tcc_attr_set(f->ir, &f->attrs, name, list_of(f->ir, a->value), a->loc);
    tcc_attr list = tcc_attr_list(&f->attrs, name);
    *n = list.list.n;
    return (tcc_attr *)list.list.items;
}

/* The numbers in a list, and in the lists in it; NULL: fewer. */
static tcc_attr *nth_number(tcc_attr *list, size_t *n)
{
    for (size_t i = 0; i < list->list.n; i++) {
        tcc_attr *item = (tcc_attr *)&list->list.items[i];
        tcc_attr *found = item->kind == TCC_ATTR_LIST ? nth_number(item, n) : NULL;
        if (found)
            return found;
        if (item->kind == TCC_ATTR_INT && (*n)-- == 0)
            return item;
    }
    return NULL;
}

/* Ways: as of scale_operand, of each number in the attribute; or what is added to it. */
attempt change_function(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    size_t n, nth = way / k->n_ways;
    if (op != f->body->first)
        return NO_MORE;
    int64_t by = k->ways[way % k->n_ways];
    const tcc_named_attr *a = tcc_attr_find(&f->attrs, k->attribute);
    if (!a)
        return NO_MORE;
    if (a->value.kind == TCC_ATTR_INT) {
        if (way >= k->n_ways)
            return NO_MORE;
        tcc_attr_set_int(f->ir, &f->attrs, k->attribute, a->value.i + by);
        return MUTATED;
    }
    if (!own_list(f, k->attribute, &n))
        return NO_MORE;
    tcc_attr list = tcc_attr_list(&f->attrs, k->attribute);
    tcc_attr *number = nth_number(&list, &nth);
    if (!number)
        return NO_MORE;
    if (by < 0 && number->i < -by)
        return NOT_HERE;
    number->i = by < 0 ? number->i / -by : number->i * by;
    return MUTATED;
}

/* Ways: as of scale_operand, of what a CTA takes of each axis, or of the CTAs where they are a number. */
attempt change_grid(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    size_t n, nth = way / k->n_ways;
    int64_t by = k->ways[way % k->n_ways];
    tcc_attr *axes = op == f->body->first ? own_list(f, k->attribute, &n) : NULL;
    if (!axes || nth >= n)
        return NO_MORE;
    const tcc_index_expr *axis = tcc_index_of_attr(f->ir, axes[nth]), *of;
    int64_t was = tcc_grid_taken(axis, &of);
    if (axes[nth].kind == TCC_ATTR_INT)
        was = axes[nth].i;
    if (by < 0 && was < -by)
        return NOT_HERE;
    int64_t now = by < 0 ? was / -by : was * by;
    if (axes[nth].kind == TCC_ATTR_INT) {
        axes[nth].i = now;
    } else {
        const tcc_index_expr *extent = tcc_index_sub(f->ir, of, tcc_index_number(f->ir, was - 1));
        axes[nth] = tcc_attr_of_index(tcc_index_ceildiv(f->ir, extent, now));
    }
    return MUTATED;
}

/* [NAME, elem, [EXTENTS], bytes]: a variant's own tensors are behind those that it is given. */
attempt change_workspace(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    size_t n, nth = way / k->n_ways;
    int64_t by = k->ways[way % k->n_ways];
    tcc_attr roles = tcc_attr_list(&f->attrs, "roles");
    if (op != f->body->first || tcc_func_is_step(f))
        return NO_MORE;
    tcc_attr *items = own_list(f, k->attribute, &n);
    for (size_t i = 0; items && i < n && i < roles.list.n; i++) {
        tcc_attr *number = strcmp(roles.list.items[i].s, "workspace") ? NULL : nth_number(&items[i], &nth);
        if (!number)
            continue;
        number->i = by < 0 ? number->i / -by : number->i * by;
        return MUTATED;
    }
    return NO_MORE;
}

/* A condition of `requires`, or a step, that is gone. */
attempt drop_condition(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    size_t n;
    if (op != f->body->first)
        return NO_MORE;
    tcc_attr *items = own_list(f, k->attribute, &n);
    if (!items || way >= n)
        return NO_MORE;
    memmove(items + way, items + way + 1, (n - way - 1) * sizeof *items);
    tcc_attr list = {.kind = TCC_ATTR_LIST, .list = {items, n - 1}};
    tcc_attr_set(f->ir, &f->attrs, k->attribute, list, (tcc_loc){0, 0});
    return MUTATED;
}

/* ---- tensor maps: [tensor_map, NAME, dims, strides, box, swizzle, elem] ------------------ */

enum { NAME = 1, DIMS, STRIDES, BOX, SWIZZLE, ELEM };

static void exchange(tcc_attr *a, tcc_attr *b)
{
    tcc_attr kept = *a;
    *a = *b;
    *b = kept;
}

/* An extent of the box halved or doubled; the first two extents, or strides, or dimensions
 * exchanged; each other swizzle; another element; rows further apart. */
static attempt change_map(tcc_ir *ir, tcc_attr *map, unsigned way)
{
    static const int64_t swizzles[] = {0, 32, 64, 128};
    tcc_attr *box = (tcc_attr *)map[BOX].list.items, *dims = (tcc_attr *)map[DIMS].list.items;
    size_t rank = map[BOX].list.n;
    if (way < 2 * rank) {
        int64_t *extent = &box[way / 2].i;
        if (way % 2 == 0 && *extent == 1)
            return NOT_HERE;
        *extent = way % 2 ? *extent * 2 : *extent / 2;
        return MUTATED;
    }
    way -= 2 * (unsigned)rank;
    if (way < rank) { /* neighbours, of all that go by dimension */
        if (way + 1 == rank || box[way].i == box[way + 1].i)
            return NOT_HERE;
        exchange(&box[way], &box[way + 1]);
        return MUTATED;
    }
    way -= (unsigned)rank;
    if (way < rank) {
        if (way + 1 == rank)
            return NOT_HERE;
        exchange(&dims[way], &dims[way + 1]);
        return MUTATED;
    }
    way -= (unsigned)rank;
    if (way < 4) {
        if (map[SWIZZLE].i == swizzles[way])
            return NOT_HERE;
        map[SWIZZLE].i = swizzles[way];
        return MUTATED;
    }
    if (way > 4) { /* a number in a stride doubled */
        size_t n = way - 5;
        tcc_attr *number = nth_number(&map[STRIDES], &n);
        if (number)
            number->i *= 2;
        return number ? MUTATED : NO_MORE;
    }
    map[ELEM].s = tcc_ir_name(ir, !strcmp(map[ELEM].s, "f16") ? "bf16" : "f16");
    return MUTATED;
}

enum { WAYS_OF_A_MAP = 32 };

attempt change_tensor_map(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    size_t n;
    if (op != f->body->first)
        return NO_MORE;
    tcc_attr *params = own_list(f, k->attribute, &n);
    if (!params || way / WAYS_OF_A_MAP >= n)
        return NO_MORE;
    tcc_attr *items = (tcc_attr *)params[way / WAYS_OF_A_MAP].list.items;
    if (strcmp(items[0].s, "tensor_map"))
        return NOT_HERE;
    return change_map(f->ir, items, way % WAYS_OF_A_MAP) == MUTATED ? MUTATED : NOT_HERE;
}

/* A parameter's recipe is that of the next one of its kind. */
attempt exchange_parameters(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    size_t n;
    if (op != f->body->first)
        return NO_MORE;
    tcc_attr *params = own_list(f, k->attribute, &n);
    if (!params || way + 1 >= n)
        return NO_MORE;
    if (strcmp(params[way].list.items[0].s, params[way + 1].list.items[0].s))
        return NOT_HERE;
    exchange(&params[way], &params[way + 1]);
    return MUTATED;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/plan.h"

#include <string.h>

#include "ir/signature.h"
#include "support/manifest.h"

typedef struct expr_reader {
    tcc_arena *arena;
    tcc_attr dims;
    tcc_expr *out;
} expr_reader;

static const char too_long[] = "is too long";

static const char *push(expr_reader *r, tcc_expr_code code, int64_t number)
{
    return tcc_expr_push(r->arena, r->out, code, number) ? NULL : too_long;
}

static const char *append(expr_reader *r, tcc_attr a, int nesting);

static const char *append_dim(expr_reader *r, const char *name)
{
    tcc_expr e;
    const char *wrong = NULL;
    if (!tcc_dims_compile(r->arena, r->dims, name, &e))
        return tcc_arena_printf(r->arena, "names no dimension '%s'", name);
    for (size_t i = 0; i < e.n && !wrong; i++)
        wrong = push(r, e.steps[i].code, e.steps[i].number);
    return wrong;
}

static const char *append_operation(expr_reader *r, tcc_attr a, int nesting)
{
    tcc_expr_code op;
    tcc_device_attr device;
    if (tcc_attr_is_record(a, "device", "s"))
        return tcc_device_attr_find(a.list.items[1].s, &device)
                   ? push(r, TCC_EXPR_device, device)
                   : tcc_arena_printf(r->arena, "names an unknown device attribute '%s'", a.list.items[1].s);
    if (!a.list.n || a.list.items[0].kind != TCC_ATTR_STR ||
        !tcc_expr_find_op(a.list.items[0].s, &op))
        return "needs [add, A, B], or sub, mul, div, ceildiv, min, max or [device, ATTRIBUTE]";
    if (a.list.n < 3 || (a.list.n > 3 && !tcc_expr_is_variadic(op)))
        return tcc_arena_printf(r->arena, "has %zu operands of '%s'", a.list.n - 1,
                                a.list.items[0].s);
    if (nesting == TCC_EXPR_MAX_DEPTH)
        return "is too deep";
    for (size_t i = 1; i < a.list.n; i++) {
        const char *wrong = append(r, a.list.items[i], nesting + 1);
        if (!wrong && i > 1)
            wrong = push(r, op, 0);
        if (wrong)
            return wrong;
    }
    return NULL;
}

static const char *append(expr_reader *r, tcc_attr a, int nesting)
{
    if (a.kind == TCC_ATTR_INT)
        return a.i < 0 ? "has a negative number" : push(r, TCC_EXPR_number, a.i);
    if (a.kind == TCC_ATTR_STR)
        return append_dim(r, a.s);
    return a.kind == TCC_ATTR_LIST ? append_operation(r, a, nesting) : "has a float";
}

const char *tcc_expr_read(tcc_arena *arena, tcc_attr a, tcc_attr dims, tcc_expr *out)
{
    *out = (tcc_expr){0};
    expr_reader r = {arena, dims, out};
    return append(&r, a, 0);
}

static int64_t cost_of(const tcc_func *f, const tcc_func *s, const int64_t *dims, const tcc_device_attrs *device,
                       tcc_arena *arena)
{
    tcc_expr e;
    int64_t cost;
    const tcc_named_attr *a = tcc_attr_find(&f->attrs, "cost");
    if (!a || tcc_expr_read(arena, a->value, tcc_attr_list(&s->attrs, "dims"), &e))
        return 0;
    return tcc_expr_value(&e, dims, device, &cost) ? cost : INT64_MAX;
}

int64_t tcc_variant_cost(const tcc_func *variant, const tcc_func *s, const int64_t *dims,
                         const tcc_device_attrs *device, tcc_arena *arena)
{
    int64_t cost = 0;
    for (size_t i = 0; i < tcc_func_step_count(variant); i++)
        if (__builtin_add_overflow(cost, cost_of(tcc_func_step_at(variant, i), s, dims, device, arena), &cost))
            return INT64_MAX;
    return cost;
}

tcc_attr tcc_expr_attr(tcc_ir *ir, tcc_expr_code op, size_t n, const tcc_attr *items, int64_t none)
{
    if (!n)
        return (tcc_attr){.kind = TCC_ATTR_INT, .i = none};
    if (n == 1)
        return items[0];
    tcc_attr *list = TCC_NEW_ARRAY(ir->arena, tcc_attr, n + 1);
    list[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(ir, tcc_expr_op_name(op))};
    memcpy(list + 1, items, n * sizeof *items);
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {list, n + 1}};
}

/* ---- bytes ------------------------------------------------------------------------------------ */

static tcc_attr operation(tcc_ir *ir, tcc_expr_code op, tcc_attr a, int64_t b)
{
    const tcc_attr operands[] = {a, {.kind = TCC_ATTR_INT, .i = b}};
    return tcc_expr_attr(ir, op, 2, operands, 0);
}

tcc_attr tcc_workspace_bytes(tcc_ir *ir, const tcc_type *tensor)
{
    int64_t bits = tcc_scalar_bits(tensor->elem), row = tcc_type_row_elems(tensor);
    tcc_attr *factors = TCC_NEW_ARRAY(ir->arena, tcc_attr, tensor->rank + 1);
    factors[0] = (tcc_attr){.kind = TCC_ATTR_INT, .i = bits % 8 ? bits : bits / 8};
    for (unsigned d = 0; d < tensor->rank; d++) {
        tcc_attr extent = tcc_attr_of_dim(tensor->dims[d]);
        bool rounds = row > 1 && d + 1 == tensor->rank;
        factors[d + 1] = rounds ? operation(ir, TCC_EXPR_roundup, extent, row) : extent;
    }
    tcc_attr bytes = tcc_expr_attr(ir, TCC_EXPR_mul, tensor->rank + 1, factors, 1);
    if (bits % 8)
        bytes = operation(ir, TCC_EXPR_ceildiv, bytes, 8);
    return operation(ir, TCC_EXPR_roundup, bytes, TCC_WORKSPACE_ALIGN);
}

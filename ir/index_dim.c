/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/index_dim.h"

#include <string.h>

#include "ir/ir.h"
#include "support/extent.h"

/* ---- writing ------------------------------------------------------------------------------ */

/* Whether an expression is a product of a few dimensions, and perhaps a positive number. */
static bool is_product(const tcc_index_expr *x)
{
    const tcc_index_term *t = x->terms;
    bool is = x->n == 1 && t->n && t->n <= TCC_MAX_FACTORS && t->number > 0 && t->number <= TCC_MAX_EXTENT;
    for (size_t i = 0; is && i < t->n; i++)
        is = t->factors[i].kind == TCC_FACTOR_DIM;
    return is;
}

static const char *write_product(tcc_arena *arena, const tcc_index_term *t)
{
    const char *name = t->factors[0].name;
    for (size_t i = 1; i < t->n; i++)
        name = tcc_arena_printf(arena, "%s.%s", name, t->factors[i].name);
    return t->number > 1 ? tcc_arena_printf(arena, "%s.%lld", name, (long long)t->number) : name;
}

/* Without the $ before dimensions, since there is nothing else. */
static const char *write_sum(tcc_arena *arena, const tcc_index_expr *x)
{
    tcc_str text = {0};
    tcc_index_print(&text, x);
    bool failed = text.failed;
    char *name = tcc_arena_printf(arena, "(%s)", tcc_str_text(&text));
    tcc_str_free(&text);
    if (failed)
        tcc_arena_out_of_memory(arena);
    size_t n = 0;
    for (const char *at = name; *at; at++) {
        name[n] = *at;
        n += *at != '$';
    }
    name[n] = 0;
    return name;
}

static bool is_sound(tcc_ir *ir, const char *name);

bool tcc_dim_of_index(tcc_ir *ir, const tcc_index_expr *x, tcc_dim *out)
{
    *out = (tcc_dim){0};
    if (tcc_index_is_number(x, &out->size))
        return out->size >= 0 && out->size <= TCC_MAX_EXTENT;
    out->name = tcc_ir_name(ir, is_product(x) ? write_product(ir->arena, x->terms) : write_sum(ir->arena, x));
    return !x->varies && strlen(out->name) <= TCC_MAX_DIM_NAME && is_sound(ir, out->name);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Names that have been met, and expressions that no step has taken yet. */
typedef struct builder {
    tcc_ir *ir;
    TCC_VEC(const char *) names;
    TCC_VEC(const tcc_index_expr *) stack;
} builder;

static int find(const void *user, const tcc_extent_factor *name)
{
    builder *b = (builder *)(uintptr_t)user;
    TCC_PUSH(b->ir->arena, &b->names, tcc_ir_name(b->ir, tcc_arena_strndup(b->ir->arena, name->name, name->n)));
    return (int)b->names.len - 1;
}

/* Divisors and extents are at least what `max` makes them. */
static bool build(void *to, tcc_expr_code code, int64_t number)
{
    builder *b = to;
    const tcc_index_expr *y = code >= TCC_EXPR_add ? b->stack.data[--b->stack.len] : NULL;
    const tcc_index_expr **x = b->stack.len ? &b->stack.data[b->stack.len - 1] : NULL;
    switch (code) {
    case TCC_EXPR_number: TCC_PUSH(b->ir->arena, &b->stack, tcc_index_number(b->ir, number)); break;
    case TCC_EXPR_dim: TCC_PUSH(b->ir->arena, &b->stack, tcc_index_dim(b->ir, b->names.data[number])); break;
    case TCC_EXPR_add: *x = tcc_index_add(b->ir, *x, y); break;
    case TCC_EXPR_sub: *x = tcc_index_sub(b->ir, *x, y); break;
    case TCC_EXPR_mul: *x = tcc_index_mul(b->ir, *x, y); break;
    case TCC_EXPR_div: *x = tcc_index_div(b->ir, *x, y); break;
    default: break;
    }
    return true;
}

const tcc_index_expr *tcc_index_of_dim(tcc_ir *ir, tcc_dim d)
{
    builder b = {.ir = ir};
    if (!d.name)
        return tcc_index_number(ir, d.size);
    return tcc_extent_read(d.name, true, find, &b, build, &b) ? b.stack.data[0] : NULL;
}

/* Whether a name can be read, and computed within the limits of launches. */
static bool is_sound(tcc_ir *ir, const char *name)
{
    tcc_expr e;
    builder b = {.ir = ir};
    return tcc_extent_compile(ir->arena, name, false, find, &b, &e);
}

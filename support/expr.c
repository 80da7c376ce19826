/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/expr.h"

#include <string.h>

static const char *const ops[] = {
#define OP(id, means) [TCC_EXPR_##id] = #id,
    TCC_EXPR_OPS(OP)
#undef OP
};

static const char *const devices[] = {
#define DEVICE(id, means) [TCC_DEVICE_##id] = #id,
    TCC_DEVICE_ATTRS(DEVICE)
#undef DEVICE
};

bool tcc_expr_find_op(const char *name, tcc_expr_code *out)
{
    for (int i = TCC_EXPR_add; i < TCC_EXPR_CODE_COUNT; i++)
        if (!strcmp(ops[i], name)) {
            *out = (tcc_expr_code)i;
            return true;
        }
    return false;
}

const char *tcc_expr_op_name(tcc_expr_code op)
{
    return ops[op];
}

bool tcc_device_attr_find(const char *name, tcc_device_attr *out)
{
    for (int i = 0; i < TCC_DEVICE_ATTR_COUNT; i++)
        if (!strcmp(devices[i], name)) {
            *out = (tcc_device_attr)i;
            return true;
        }
    return false;
}

const char *tcc_device_attr_name(tcc_device_attr a)
{
    return devices[a];
}

bool tcc_expr_is_variadic(tcc_expr_code op)
{
    return op == TCC_EXPR_add || op == TCC_EXPR_mul || op == TCC_EXPR_min || op == TCC_EXPR_max;
}

bool tcc_expr_push(tcc_arena *arena, tcc_expr *e, tcc_expr_code code, int64_t number)
{
    bool is_op = code >= TCC_EXPR_add;
    size_t depth = is_op ? e->depth - 1 : e->depth + 1;
    if (e->n == TCC_EXPR_MAX_STEPS || depth > TCC_EXPR_MAX_DEPTH || (is_op && e->depth < 2))
        return false;
    if (!(e->n & (e->n - 1))) { /* grow to the next power of two */
        tcc_expr_step *steps = TCC_NEW_ARRAY(arena, tcc_expr_step, e->n ? 2 * e->n : 1);
        if (e->n)
            memcpy(steps, e->steps, e->n * sizeof *steps);
        e->steps = steps;
    }
    e->steps[e->n++] = (tcc_expr_step){code, number};
    e->depth = depth;
    return true;
}

bool tcc_expr_apply(tcc_expr_code op, int64_t a, int64_t b, int64_t *out)
{
    bool divides = a >= 0 && b > 0;
    switch (op) {
    case TCC_EXPR_add: return !__builtin_add_overflow(a, b, out);
    case TCC_EXPR_sub: return !__builtin_sub_overflow(a, b, out);
    case TCC_EXPR_mul: return !__builtin_mul_overflow(a, b, out);
    case TCC_EXPR_div: *out = b > 0 ? a / b - (a % b < 0) : 0; return b > 0;
    case TCC_EXPR_ceildiv: *out = divides ? a / b + (a % b != 0) : 0; return divides;
    case TCC_EXPR_roundup:
        return divides && !__builtin_mul_overflow(a / b + (a % b != 0), b, out);
    case TCC_EXPR_min: *out = a < b ? a : b; return true;
    case TCC_EXPR_max: *out = a > b ? a : b; return true;
    default: return false;
    }
}

bool tcc_expr_value(const tcc_expr *e, const int64_t *dims, const tcc_device_attrs *device,
                    int64_t *out)
{
    int64_t stack[TCC_EXPR_MAX_DEPTH + 1] = {0};
    size_t top = 0; /* values are in stack[1..top] */
    for (size_t i = 0; i < e->n; i++) {
        const tcc_expr_step *s = &e->steps[i];
        switch (s->code) {
        case TCC_EXPR_number: stack[++top] = s->number; break;
        case TCC_EXPR_dim: stack[++top] = dims[s->number]; break;
        case TCC_EXPR_device: stack[++top] = device->value[s->number]; break;
        default:
            top--;
            if (!tcc_expr_apply(s->code, stack[top], stack[top + 1], &stack[top]))
                return false;
        }
    }
    *out = stack[top];
    return true;
}

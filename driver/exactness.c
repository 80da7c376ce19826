/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/exactness.h"

#include <math.h>
#include <stdlib.h>

#include "ir/signature.h"
#include "ir/reduction.h"
#include "passes/space.h"
#include "passes/passes.h"
#include "support/map.h"

/* What is known of a value: its numbers are multiples of `unit`, a power of two, or 0 for not known,
 * and none is larger than `most`. Rounding to a type leaves a multiple of the unit one. */
typedef struct known {
    tcc_exactness exactness;
    double unit, most;
} known;

/* Those that expand-math computes in another way; the others round as IEEE 754 says, the same at
 * every level. */
static bool is_function(tcc_opcode code)
{
    static const tcc_opcode functions[] = {
#define MATH(name, ...) TCC_OP_math_##name,
#define MATH_NATIVE(...)
#include "ir/math.def"
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (functions[i] == code)
            return true;
    return false;
}

/* Those whose result may be anything where the i-th operand is nearly what it should be. */
static bool is_edge(tcc_opcode code, unsigned i)
{
    switch (code) {
    case TCC_OP_arith_cmp:
    case TCC_OP_math_sqrt:
    case TCC_OP_math_rsqrt:
    case TCC_OP_math_log: return true;
    case TCC_OP_arith_div: return i == 1;
    default: return false;
    }
}

static int phase_of_step(const tcc_func *f)
{
    for (const tcc_op *op = f->body->first; op; op = tcc_walk_next((tcc_op *)op, f->body))
        if (is_function(op->code))
            return TCC_HAS_FUNCTIONS;
    return TCC_HAS_INSTRUCTIONS;
}

int tcc_phase_of(const tcc_func *f)
{
    const tcc_func *variant = tcc_func_main(f);
    int phase = TCC_HAS_INSTRUCTIONS;
    for (size_t i = 0; i < tcc_func_step_count(variant); i++) {
        int one = phase_of_step(tcc_func_step_at(variant, i));
        phase = one < phase ? one : phase;
    }
    return phase;
}

/* ---- numbers ---------------------------------------------------------------------------- */

/* Whether numbers up to `most` that are multiples of `unit` are numbers of the type. */
static bool has_all(tcc_scalar elem, double unit, double most)
{
    int digits = elem == TCC_f16 ? 11 : elem == TCC_bf16 ? 8 : elem == TCC_f64 ? 53 : 24;
    return unit > 0 && most <= ldexp(unit, digits);
}

static known drawn(const tcc_trial *t, const tcc_value *param)
{
    tcc_int_range range = tcc_trial_range(t->kernel, param->type);
    return (known){TCC_EXACT, 1, (double)(range.most > -range.least ? range.most : -range.least)};
}

static known number(tcc_attr value)
{
    double v = fabs(value.kind == TCC_ATTR_FLOAT ? value.f : (double)value.i);
    if (!isfinite(v))
        return (known){0};
    int exponent;
    double fraction = frexp(v, &exponent);
    for (; fraction != floor(fraction); exponent--)
        fraction *= 2;
    return (known){TCC_EXACT, v > 0 ? ldexp(1, exponent) : 1, v};
}

/* How many terms a sum has. */
static double count_terms(const tcc_trial *t, const tcc_op *sum)
{
    double n = 1;
    tcc_attr over = tcc_attr_list(&sum->attrs, "over");
    for (size_t i = 0; i < over.list.n; i++)
        n *= (double)tcc_trial_extent(t, tcc_index_extent(t->kernel, over.list.items[i].s));
    return n;
}

/* The numbers that an op makes of others; for a choice `a` has both, its condition does not count. */
static known numbers_of(const tcc_trial *t, const tcc_op *op, const known *a)
{
    double unit = a[0].unit, most = a[0].most;
    switch (op->code) {
    case TCC_OP_tensor_read: return drawn(t, op->operands[0]);
    case TCC_OP_arith_const: return number(tcc_attr_find(&op->attrs, "value")->value);
    case TCC_OP_arith_cast:
    case TCC_OP_arith_neg:
    case TCC_OP_math_abs:
    case TCC_OP_math_relu: break;
    case TCC_OP_tensor_reduce:
        if (tcc_reduction_is_place(tcc_reduction_of(op)))
            unit = most = 1;
        most *= tcc_reduction_of(op) == TCC_REDUCTION_MIN || tcc_reduction_of(op) == TCC_REDUCTION_MAX ? 1 : count_terms(t, op);
        break;
    case TCC_OP_arith_add:
    case TCC_OP_arith_sub:
        unit = fmin(unit, a[1].unit);
        most += a[1].most;
        break;
    case TCC_OP_arith_mul:
        unit *= a[1].unit;
        most *= a[1].most;
        break;
    case TCC_OP_arith_fma:
        unit = fmin(unit * a[1].unit, a[2].unit);
        most = most * a[1].most + a[2].most;
        break;
    case TCC_OP_arith_min:
    case TCC_OP_arith_max:
        unit = fmin(unit, a[1].unit);
        most = fmax(most, a[1].most);
        break;
    case TCC_OP_arith_select:
        unit = fmin(a[1].unit, a[2].unit);
        most = fmax(a[1].most, a[2].most);
        break;
    default: unit = 0;
    }
    return (known){TCC_EXACT, unit, most};
}

/* ---- exactness -------------------------------------------------------------------------- */

/* For a sum whose operand's numbers are `a`. For products of only drawn numbers tcc_trial_range ensures
 * it. */
static tcc_exactness exactness_of_sum(const tcc_trial *t, const tcc_op *op, const known *a,
                                      const known *sum)
{
    const tcc_type *type = op->results[0].type;
    if (a->exactness > TCC_EXACT)
        return TCC_SUMMED;
    if (tcc_scalar_classify(type->elem) != TCC_CLASS_FLOAT)
        return TCC_EXACT;
    double most = (double)tcc_trial_range(t->kernel, type).most;
    bool is_of_drawn = a->unit >= 1 && a->most <= most * most;
    return is_of_drawn || has_all(type->elem, sum->unit, sum->most) ? TCC_EXACT : TCC_SUMMED;
}

/* What an op makes of the exactness of its operands. */
static tcc_exactness exactness_of(const tcc_trial *t, const tcc_op *op, tcc_exactness worst,
                                  const known *a, const known *result)
{
    if (op->code == TCC_OP_tensor_reduce && tcc_reduction_of(op) == TCC_REDUCTION_SUM)
        return exactness_of_sum(t, op, a, result);
    return worst == TCC_EXACT && is_function(op->code) ? TCC_ROUNDED : worst;
}

static tcc_trial_arg *arg_of(tcc_trial *t, const tcc_value *param)
{
    for (size_t a = 0; a < t->n_args; a++)
        if (t->args[a].param == param)
            return &t->args[a];
    return NULL;
}

/* From operands to results; tensor-level functions have one block. */
void tcc_find_exactness(tcc_trial *t, tcc_arena *arena)
{
    enum { MOST_OPERANDS = 3 };
    tcc_map values = TCC_MAP(arena);
    bool has_function = false;
    for (tcc_op *op = t->kernel->body->first; op; op = op->next) {
        tcc_exactness worst = TCC_EXACT;
        known a[MOST_OPERANDS] = {0};
        for (unsigned i = 0; i < op->n_operands && i < MOST_OPERANDS; i++) {
            const known *of = tcc_map_get(&values, op->operands[i]);
            a[i] = of ? *of : drawn(t, op->operands[i]);
            tcc_exactness here = a[i].exactness;
            if (here == TCC_ROUNDED && is_edge(op->code, i))
                here = TCC_JUMPS;
            if (here > worst)
                worst = here;
        }
        known *result = TCC_NEW(arena, known);
        *result = numbers_of(t, op, a);
        result->exactness = exactness_of(t, op, worst, a, result);
        has_function |= is_function(op->code);
        for (unsigned i = 0; i < op->n_results; i++)
            *tcc_map_at(&values, &op->results[i]) = result;
        tcc_trial_arg *to =
            op->code == TCC_OP_tensor_write ? arg_of(t, TCC_VIEW(tensor_write, op)->tensor) : NULL;
        if (to)
            to->exactness = result->exactness;
        t->rounds |= result->exactness >= TCC_ROUNDED;
        t->sums |= result->exactness == TCC_SUMMED;
    }
    t->phase = t->rounds && has_function ? TCC_HAS_FUNCTIONS : TCC_HAS_INSTRUCTIONS;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/trial.h"

#include <math.h>
#include <setjmp.h>
#include <string.h>

#include "driver/exactness.h"
#include "ir/number.h"
#include "ir/signature.h"
#include "support/manifest.h"
#include "support/random.h"
#include "support/str.h"
#include "support/strides.h"

/* ---- data ------------------------------------------------------------------------------- */

int64_t tcc_trial_extent(const tcc_trial *t, tcc_dim d)
{
    return d.name ? tcc_dims_value(tcc_attr_list(&t->kernel->attrs, "dims"), t->dims, d.name) : d.size;
}

/* Sums of products shall be exact in the type that they are added in, of which bf16 has 2^8 whole
 * numbers and f16 2^11. Integers of a byte or less have their whole range, for they are added modulo
 * 2^32, which is exact. */
tcc_int_range tcc_trial_range(const tcc_func *kernel, const tcc_type *type)
{
    enum { MOST_SCALAR = 3 };
    int64_t most = 4;
    if (tcc_scalar_classify(type->elem) == TCC_CLASS_INT && tcc_scalar_bits(type->elem) <= 8)
        return tcc_scalar_range(type->elem);
    for (const tcc_op *op = kernel->body->first; op && type->rank; op = op->next)
        if (op->code == TCC_OP_tensor_reduce) {
            tcc_scalar sum = op->results[0].type->elem;
            most = sum == TCC_bf16 ? 1 : sum == TCC_f16 ? 2 : most;
        }
    most = type->rank ? most : MOST_SCALAR;
    return (tcc_int_range){-most, most};
}

/* What a tensor holds of a float; integers are whole already. */
static double rounded(double v, tcc_scalar elem)
{
    return tcc_scalar_classify(elem) == TCC_CLASS_FLOAT ? tcc_round_float(v, elem) : v;
}

/* Scalars are not zero, which would hide what they multiply. */
static double draw(uint64_t *random, const tcc_type *type, tcc_int_range range)
{
    if (type->rank)
        return (double)(range.least +
                        (int64_t)tcc_random(random, (uint64_t)(range.most - range.least) + 1));
    double v = 1 + (double)tcc_random(random, (uint64_t)range.most);
    return tcc_random(random, 2) ? v : -v;
}

/* Makes one element infinite: if it is multiplied by what it must not be, such as the zeros beyond the last
 * k, the result is NaN. */
static void put_infinity(const tcc_trial_arg *a, uint64_t *random)
{
    const tcc_type *type = a->param->type;
    bool is_float = tcc_scalar_classify(type->elem) == TCC_CLASS_FLOAT;
    if (is_float && type->rank > 1 && a->count > 0 && isinf(rounded(INFINITY, type->elem)))
        a->input[tcc_random(random, (uint64_t)a->count)] =
            tcc_random(random, 2) ? INFINITY : -INFINITY;
}

/* The op behind conversions of a value; NULL: there is none. */
static const tcc_op *op_behind(const tcc_value *v)
{
    const tcc_op *op = v->def;
    while (op && op->code == TCC_OP_arith_cast)
        op = op->operands[0]->def;
    return op;
}

/* Whether a sum of products, or each of their factors, has a condition: one loop may multiply what it leaves out by 0. */
static bool has_condition(const tcc_op *reduce, const tcc_op *product)
{
    const tcc_op *a = op_behind(product->operands[0]), *b = op_behind(product->operands[1]);
    bool of_factors = a && b && a->code == TCC_OP_arith_select && b->code == TCC_OP_arith_select &&
                      a->operands[0] == b->operands[0];
    return reduce->n_operands > 1 || of_factors;
}

/* Whether products of a tensor's elements are summed so. */
static bool is_left_out(const tcc_func *f, const tcc_value *tensor)
{
    bool is = false;
    for (const tcc_op *op = f->body->first; op && !is; op = op->next) {
        const tcc_op *product = op->code == TCC_OP_tensor_reduce ? op->operands[0]->def : NULL;
        if (!product || product->code != TCC_OP_arith_mul || !has_condition(op, product))
            continue;
        for (unsigned i = 0; i < 2; i++) {
            const tcc_op *of = op_behind(product->operands[i]);
            of = of && of->code == TCC_OP_arith_select ? op_behind(of->operands[1]) : of;
            is |= of && of->code == TCC_OP_tensor_read && of->operands[0] == tensor;
        }
    }
    return is;
}

/* How many elements there are from the first to the last. */
static int64_t count_elements(const tcc_trial *t, const tcc_type *type)
{
    int64_t extents[TCC_MANIFEST_RANK], strides[TCC_MANIFEST_RANK], n = 1;
    for (unsigned d = 0; d < type->rank; d++) {
        extents[d] = tcc_trial_extent(t, type->dims[d]);
        strides[d] = type->strides ? tcc_trial_extent(t, type->strides[d]) : 0;
        n *= extents[d];
    }
    return type->strides && !tcc_strides_span(type->rank, extents, strides, &n) ? INT64_MAX : n;
}

/* Poisons the elements of an output. What is between those of a strided one must stay as it is. */
static void poison(const tcc_trial *t, tcc_trial_arg *a, unsigned d, int64_t at)
{
    const tcc_type *type = a->param->type;
    int64_t stride = d < type->rank ? tcc_trial_extent(t, type->strides[d]) : 0;
    int64_t extent = d < type->rank ? tcc_trial_extent(t, type->dims[d]) : 0;
    if (d == type->rank)
        a->input[at] = tcc_poison();
    for (int64_t i = 0; i < extent; i++)
        poison(t, a, d + 1, at + i * stride);
}

static void fill(tcc_trial *t, tcc_arena *arena, uint64_t seed)
{
    bool has_infinities = seed % 2;
    tcc_attr roles = tcc_attr_list(&t->kernel->attrs, "roles");
    for (size_t i = 0; i < t->n_args; i++) {
        tcc_trial_arg *a = &t->args[i];
        const tcc_type *type = a->param->type;
        tcc_int_range range = tcc_trial_range(t->kernel, type);
        bool is_output = i < roles.list.n && !strcmp(roles.list.items[i].s, "out");
        a->count = count_elements(t, type);
        size_t n = (size_t)a->count + 1; /* no pointer is NULL */
        a->input = TCC_NEW_ARRAY(arena, double, n);
        a->want = TCC_NEW_ARRAY(arena, double, n);
        a->got = TCC_NEW_ARRAY(arena, double, n);
        for (int p = 0; p < TCC_TRIAL_PHASES; p++)
            a->of_phase[p] = p == t->phase ? a->want : TCC_NEW_ARRAY(arena, double, n);
        for (int64_t e = 0; e < a->count; e++)
            a->input[e] = is_output && !type->strides ? tcc_poison() : draw(&seed, type, range);
        if (is_output && type->strides)
            poison(t, a, 0, 0);
        if (has_infinities && !is_output && !is_left_out(t->kernel, a->param))
            put_infinity(a, &seed);
    }
}

/* ---- running ---------------------------------------------------------------------------- */

/* Runs f on the inputs; what it writes ends up in `got`. Memory that runs out ends here. */
static tcc_status run_guarded(tcc_trial *t, const tcc_func *f, const tcc_interp_options *o,
                              tcc_diag *diag)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(t->scratch, &oom);
    double **args = TCC_NEW_ARRAY(t->scratch, double *, t->n_args);
    for (size_t i = 0; i < t->n_args; i++) {
        args[i] = t->args[i].got;
        memcpy(args[i], t->args[i].input, (size_t)t->args[i].count * sizeof(double));
    }
    return tcc_interp_run(f, o, args, t->scratch, diag);
}

tcc_status tcc_trial_run_with(tcc_trial *t, const tcc_func *f, const tcc_interp_options *o,
                              tcc_diag *diag)
{
    tcc_status status = run_guarded(t, f, o, diag);
    tcc_arena_clear(t->scratch);
    return status;
}

static tcc_status run_machine(tcc_trial *t, const tcc_func *f, uint64_t order, tcc_diag *diag)
{
    const tcc_interp_options o = {
        .dims = t->dims, .signature = t->kernel, .machine = true, .seed = order};
    return tcc_trial_run_with(t, f, &o, diag);
}

/* How much rounding every step to f32 changes results: a measure of how well conditioned they are
 * where other functions round otherwise. */
static void measure_noise(tcc_trial_arg *a)
{
    for (int64_t i = 0; i < a->count; i++) {
        double exact = rounded(a->got[i], a->param->type->elem);
        double noise = fabs(exact - a->want[i]);
        if (isfinite(noise) && noise > a->noise)
            a->noise = noise;
    }
}

/* For all outputs, in the interpreter's layout. */
static void want_intervals(tcc_trial *t, tcc_arena *arena, tcc_interp_options *o)
{
    double **low = TCC_NEW_ARRAY(arena, double *, t->n_args);
    double **high = TCC_NEW_ARRAY(arena, double *, t->n_args);
    for (size_t i = 0; i < t->n_args; i++) {
        size_t n = (size_t)t->args[i].count + 1;
        t->args[i].low = low[i] = TCC_NEW_ARRAY(arena, double, n);
        t->args[i].high = high[i] = TCC_NEW_ARRAY(arena, double, n);
    }
    o->low = low;
    o->high = high;
}

tcc_status tcc_trial_prepare(tcc_trial *t, tcc_arena *arena, tcc_arena *scratch, const tcc_func *kernel,
                             const int64_t *dims, uint64_t seed, tcc_diag *diag)
{
    *t = (tcc_trial){.scratch = scratch, .kernel = kernel, .dims = dims, .n_args = kernel->body->n_args};
    t->args = TCC_NEW_ARRAY(arena, tcc_trial_arg, t->n_args);
    for (size_t i = 0; i < t->n_args; i++)
        t->args[i].param = kernel->body->args[i];
    tcc_find_exactness(t, arena);
    t->ran[t->phase] = true;
    fill(t, arena, seed);
    tcc_status status = run_machine(t, kernel, 0, diag);
    for (size_t i = 0; i < t->n_args && !status; i++)
        memcpy(t->args[i].want, t->args[i].got, (size_t)t->args[i].count * sizeof(double));
    if (status || !t->rounds)
        return status;
    tcc_interp_options unrounded = {.dims = dims, .signature = kernel};
    want_intervals(t, arena, &unrounded);
    status = tcc_trial_run_with(t, kernel, &unrounded, diag);
    for (size_t i = 0; i < t->n_args && !status; i++)
        if (t->args[i].exactness == TCC_ROUNDED)
            measure_noise(&t->args[i]);
    return status;
}

tcc_status tcc_trial_run(tcc_trial *t, const tcc_func *f, uint64_t order, tcc_diag *diag)
{
    tcc_diag silent = {.file = diag->file};
    tcc_status status = run_machine(t, f, order, &silent);
    if (!status || status == TCC_ERR_NO_VARIANT || status == TCC_ERR_MEMORY)
        return status;
    return run_machine(t, f, order, diag); /* again, with messages */
}

/* ---- comparing -------------------------------------------------------------------------- */

static bool is_same(double x, double y)
{
    return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

static double epsilon(tcc_scalar elem)
{
    switch (elem) {
    case TCC_tf32:
    case TCC_f16: return 0x1p-10;
    case TCC_bf16: return 0x1p-7;
    case TCC_e4m3: return 0x1p-3;
    case TCC_e5m2: return 0x1p-2;
    default: return 0x1p-17;
    }
}

/* Within what expanding functions may change; at the edge of the type's range also infinity, or
 * the NaN that stands for it. An integer may be rounded to the next. Infinity times what may be 0 may be NaN. */
static bool is_close(const tcc_trial_arg *a, double want, double got)
{
    enum { NOISE = 16 }; /* the expansions have some roundings each */
    tcc_scalar elem = a->param->type->elem;
    if (!isfinite(want) && !isfinite(got))
        return true;
    double unit = tcc_scalar_classify(elem) == TCC_CLASS_INT ? 1 : epsilon(elem) * (1 + fabs(want));
    if (isfinite(want) != isfinite(got) && (elem == TCC_e4m3 || isinf(want) != isinf(got))) {
        double finite = isfinite(want) ? want : got, other = isfinite(want) ? got : want;
        double beyond = finite * fmax(1.01, 1 + 2 * epsilon(elem));
        return (isnan(other) || (want > 0) == (got > 0)) && !isfinite(rounded(beyond, elem));
    }
    return fabs(want - got) <= unit + NOISE * a->noise;
}

/* What a number becomes as an element. */
static double stored(double v, tcc_scalar elem)
{
    bool is_int = tcc_scalar_classify(elem) == TCC_CLASS_INT;
    return is_int ? (double)tcc_int_saturate(elem, (int64_t)v) : tcc_round_float(v, elem);
}

/* Within what sums in any order and functions may make of it. What is too large for a type without
 * infinity is NaN; where NaN is possible, anything is. */
static bool is_within(const tcc_trial_arg *a, int64_t i, double got)
{
    tcc_scalar elem = a->param->type->elem;
    double low = stored(a->low[i], elem), high = stored(a->high[i], elem);
    if (isnan(low) && isnan(high) && (a->low[i] > 0) == (a->high[i] > 0))
        return isnan(got);
    bool anything = isnan(low) || isnan(high) || (isinf(low) && isinf(high) && low < high);
    return anything || (got >= low && got <= high);
}

/* Whether rounding leaves a result open: where 0 / 0 may be a tiny number / 0, an i8 is 0 or 127. */
static bool is_open(const tcc_trial_arg *a, int64_t i)
{
    double low = a->low[i], high = a->high[i];
    return isnan(low) || isnan(high) || isinf(low) || isinf(high) ||
           high - low > 0.25 * fmax(fabs(low), fabs(high));
}

/* `first`: nothing of this phase has run. */
static bool element_agrees(const tcc_trial_arg *a, int64_t i, int phase, bool first, double *want)
{
    double got = a->got[i];
    *want = first ? a->want[i] : a->of_phase[phase][i];
    if (is_same(*want, got))
        return !tcc_is_poison(got);
    if (a->exactness == TCC_SUMMED)
        return !tcc_is_poison(got) && is_within(a, i, got);
    if (!first || a->exactness < TCC_ROUNDED || tcc_is_poison(got))
        return false;
    return a->exactness == TCC_JUMPS || is_close(a, *want, got) || (is_open(a, i) && is_within(a, i, got));
}

bool tcc_trial_agrees(tcc_trial *t, const tcc_func *f, tcc_difference *out)
{
    int phase = tcc_phase_of(f);
    if (phase < t->phase) /* before the kernel's own there is none */
        phase = t->phase;
    bool first = !t->ran[phase];
    for (size_t n = 0; n < t->n_args; n++) {
        const tcc_trial_arg *a = &t->args[n];
        for (int64_t i = 0; i < a->count; i++) {
            double want;
            if (!element_agrees(a, i, phase, first, &want)) {
                *out = (tcc_difference){a, i, want, a->got[i]};
                return false;
            }
        }
    }
    for (size_t n = 0; n < t->n_args && first; n++)
        memcpy(t->args[n].of_phase[phase], t->args[n].got,
               (size_t)t->args[n].count * sizeof(double));
    t->ran[phase] = true;
    return true;
}

/* ---- text ------------------------------------------------------------------------------- */

void tcc_trial_print_dims(tcc_str *out, const tcc_trial *t)
{
    tcc_attr dims = tcc_attr_list(&t->kernel->attrs, "dims");
    for (size_t i = 0; i < dims.list.n; i++)
        tcc_str_printf(out, "%s%s=%lld", i ? ", " : "", dims.list.items[i].s,
                       (long long)t->dims[i]);
    if (!dims.list.n)
        tcc_str_puts(out, "its only shape");
}

void tcc_difference_print(tcc_str *out, const tcc_trial *t, const tcc_difference *d)
{
    const tcc_type *type = d->arg->param->type;
    tcc_str_puts(out, "element [");
    int64_t below = d->arg->count, rest = d->at;
    if (type->strides) /* where it is in memory */
        tcc_str_int(out, d->at);
    for (unsigned i = 0; i < type->rank && !type->strides; i++) {
        below /= tcc_trial_extent(t, type->dims[i]);
        tcc_str_printf(out, "%s%lld", i ? ", " : "", (long long)(rest / below));
        rest %= below;
    }
    tcc_str_printf(out, "] of '%s' is ", d->arg->param->name);
    if (tcc_is_poison(d->got))
        tcc_str_puts(out, "not written");
    else
        tcc_str_printf(out, "%.9g", d->got);
    if (d->arg->exactness == TCC_SUMMED)
        tcc_str_printf(out, ", not from %.9g to %.9g", d->arg->low[d->at], d->arg->high[d->at]);
    else
        tcc_str_printf(out, ", not %.9g", d->want);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/trial.h"

#include <math.h>
#include <setjmp.h>
#include <string.h>

#include "ir/number.h"
#include "passes/passes.h"
#include "support/map.h"
#include "support/random.h"
#include "support/str.h"

/* How an output depends on functions that round. */
enum {
    EXACT,
    PRODUCT, /* exact, too, but in a sum it may be rounded together with that */
    ROUNDED,
    JUMPS /* and a rounded number decides, or is near a pole */
};

/* ---- what rounds ------------------------------------------------------------------------ */

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

/* How far a form is: no pass but one that goes from one to the next rounds otherwise. */
enum {
    HAS_FUNCTIONS, /* until expand-math */
    HAS_PRODUCTS,  /* as operands of sums, until form-fma */
    HAS_INSTRUCTIONS
};

static int phase_of(const tcc_func *f)
{
    int phase = HAS_INSTRUCTIONS;
    for (const tcc_op *op = f->body->first; op; op = tcc_walk_next((tcc_op *)op, f->body)) {
        if (is_function(op->code))
            return HAS_FUNCTIONS;
        if (tcc_op_is_contractible(op))
            phase = HAS_PRODUCTS;
    }
    return phase;
}

static tcc_trial_arg *arg_of(tcc_trial *t, const tcc_value *param)
{
    for (size_t a = 0; a < t->n_args; a++)
        if (t->args[a].param == param)
            return &t->args[a];
    return NULL;
}

/* What an op makes of the exactness of its operands. */
static int exactness_of(const tcc_op *op, int worst)
{
    bool is_float =
        op->n_results && tcc_scalar_classify(op->results[0].type->elem) == TCC_CLASS_FLOAT;
    if (worst > PRODUCT)
        return worst;
    if (is_function(op->code))
        return ROUNDED;
    switch (op->code) {
    case TCC_OP_arith_mul: return is_float ? PRODUCT : EXACT;
    case TCC_OP_arith_add:
    case TCC_OP_arith_sub: return worst == PRODUCT ? ROUNDED : EXACT;
    case TCC_OP_tensor_sum: return EXACT; /* products in it are exact */
    default: return worst;
    }
}

/* Exactness goes from operands to results; tensor-level functions have one block. */
static void find_exactness(tcc_trial *t, tcc_arena *arena)
{
    static const int levels[] = {EXACT, PRODUCT, ROUNDED, JUMPS};
    tcc_map known = TCC_MAP(arena);
    bool has_function = false;
    for (tcc_op *op = t->kernel->body->first; op; op = op->next) {
        int worst = EXACT;
        for (unsigned i = 0; i < op->n_operands; i++) {
            const int *of = tcc_map_get(&known, op->operands[i]);
            int here = of ? *of : EXACT;
            if (here == ROUNDED && is_edge(op->code, i))
                here = JUMPS;
            if (here > worst)
                worst = here;
        }
        worst = exactness_of(op, worst);
        has_function |= is_function(op->code);
        for (unsigned i = 0; i < op->n_results; i++)
            *tcc_map_at(&known, &op->results[i]) = (void *)&levels[worst];
        tcc_trial_arg *to =
            op->code == TCC_OP_tensor_write ? arg_of(t, TCC_VIEW(tensor_write, op)->tensor) : NULL;
        if (to)
            to->exactness = worst;
        t->rounds |= worst >= ROUNDED;
    }
    t->phase = !t->rounds ? HAS_INSTRUCTIONS : has_function ? HAS_FUNCTIONS : HAS_PRODUCTS;
}

/* ---- data ------------------------------------------------------------------------------- */

int64_t tcc_trial_extent(const tcc_trial *t, tcc_dim d)
{
    tcc_attr dims = tcc_attr_list(&t->kernel->attrs, "dims");
    for (size_t i = 0; d.name && i < dims.list.n; i++)
        if (!strcmp(dims.list.items[i].s, d.name))
            return t->dims[i];
    return d.size;
}

/* The largest number that is drawn: sums of products shall be exact in the type that they are
 * added in, of which bf16 has 2^8 whole numbers and f16 2^11. */
static int64_t largest_of(const tcc_func *f)
{
    int64_t most = 4;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_sum) {
            tcc_scalar sum = op->results[0].type->elem;
            most = sum == TCC_bf16 ? 1 : sum == TCC_f16 ? 2 : most;
        }
    return most;
}

/* What a tensor holds of a float; integers are whole already. */
static double rounded(double v, tcc_scalar elem)
{
    return tcc_scalar_classify(elem) == TCC_CLASS_FLOAT ? tcc_round_float(v, elem) : v;
}

/* No scalar is zero: it would hide what it multiplies. Integers of a byte or less have their whole
 * range, for they are added modulo 2^32, which is exact. */
static double draw(uint64_t *random, const tcc_type *type, int64_t most)
{
    enum { MOST_SCALAR = 3 };
    bool is_small =
        tcc_scalar_classify(type->elem) == TCC_CLASS_INT && tcc_scalar_bits(type->elem) <= 8;
    tcc_int_range range = is_small ? tcc_scalar_range(type->elem) : (tcc_int_range){-most, most};
    if (type->rank)
        return (double)(range.least +
                        (int64_t)tcc_random(random, (uint64_t)(range.most - range.least) + 1));
    double v = 1 + (double)tcc_random(random, MOST_SCALAR);
    return tcc_random(random, 2) ? v : -v;
}

/* One element becomes infinite: what must not meet it, as the zeros beyond the last k, is NaN if it does. */
static void put_infinity(const tcc_trial_arg *a, uint64_t *random)
{
    const tcc_type *type = a->param->type;
    bool is_float = tcc_scalar_classify(type->elem) == TCC_CLASS_FLOAT;
    if (is_float && type->rank > 1 && a->count > 0 && isinf(rounded(INFINITY, type->elem)))
        a->input[tcc_random(random, (uint64_t)a->count)] =
            tcc_random(random, 2) ? INFINITY : -INFINITY;
}

static void fill(tcc_trial *t, tcc_arena *arena, uint64_t seed)
{
    bool has_infinities = seed % 2;
    tcc_attr roles = tcc_attr_list(&t->kernel->attrs, "roles");
    int64_t most = largest_of(t->kernel);
    for (size_t i = 0; i < t->n_args; i++) {
        tcc_trial_arg *a = &t->args[i];
        const tcc_type *type = a->param->type;
        bool is_output = i < roles.list.n && !strcmp(roles.list.items[i].s, "out");
        a->count = 1;
        for (unsigned d = 0; d < type->rank; d++)
            a->count *= tcc_trial_extent(t, type->dims[d]);
        size_t n = (size_t)a->count + 1; /* no pointer is NULL */
        a->input = TCC_NEW_ARRAY(arena, double, n);
        a->want = TCC_NEW_ARRAY(arena, double, n);
        a->got = TCC_NEW_ARRAY(arena, double, n);
        for (int p = 0; p < TCC_TRIAL_PHASES; p++)
            a->of_phase[p] = p == t->phase ? a->want : TCC_NEW_ARRAY(arena, double, n);
        for (int64_t e = 0; e < a->count; e++)
            a->input[e] = is_output ? tcc_poison() : draw(&seed, type, most);
        if (has_infinities && !is_output)
            put_infinity(a, &seed);
    }
}

/* ---- running ---------------------------------------------------------------------------- */

/* Runs f on the inputs; what it writes ends up in `got`. Memory that runs out ends here. */
static tcc_status run_guarded(tcc_trial *t, const tcc_func *f, const tcc_interp_options *o,
                              tcc_arena *scratch, tcc_diag *diag)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(scratch, &oom);
    double **args = TCC_NEW_ARRAY(scratch, double *, t->n_args);
    for (size_t i = 0; i < t->n_args; i++) {
        args[i] = t->args[i].got;
        memcpy(args[i], t->args[i].input, (size_t)t->args[i].count * sizeof(double));
    }
    return tcc_interp_run(f, o, args, scratch, diag);
}

tcc_status tcc_trial_run_with(tcc_trial *t, const tcc_func *f, const tcc_interp_options *o,
                              tcc_diag *diag)
{
    tcc_arena *scratch = tcc_arena_create(NULL);
    if (!scratch)
        return TCC_ERR_MEMORY;
    tcc_status status = run_guarded(t, f, o, scratch, diag);
    tcc_arena_destroy(scratch);
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

tcc_status tcc_trial_prepare(tcc_trial *t, tcc_arena *arena, const tcc_func *kernel,
                             const int64_t *dims, uint64_t seed, tcc_diag *diag)
{
    *t = (tcc_trial){.kernel = kernel, .dims = dims, .n_args = kernel->body->n_args};
    t->args = TCC_NEW_ARRAY(arena, tcc_trial_arg, t->n_args);
    for (size_t i = 0; i < t->n_args; i++)
        t->args[i].param = kernel->body->args[i];
    find_exactness(t, arena);
    t->has_run[t->phase] = true;
    fill(t, arena, seed);
    tcc_status status = run_machine(t, kernel, 0, diag);
    for (size_t i = 0; i < t->n_args && !status; i++)
        memcpy(t->args[i].want, t->args[i].got, (size_t)t->args[i].count * sizeof(double));
    if (status || !t->rounds)
        return status;
    const tcc_interp_options unrounded = {.dims = dims, .signature = kernel};
    status = tcc_trial_run_with(t, kernel, &unrounded, diag);
    for (size_t i = 0; i < t->n_args && !status; i++)
        if (t->args[i].exactness == ROUNDED)
            measure_noise(&t->args[i]);
    return status;
}

tcc_status tcc_trial_run(tcc_trial *t, const tcc_func *f, uint64_t order, tcc_diag *diag)
{
    tcc_diag silent = {.file = diag->file};
    tcc_status status = run_machine(t, f, order, &silent);
    if (!status || status == TCC_ERR_NO_VARIANT || status == TCC_ERR_MEMORY)
        return status;
    return run_machine(t, f, order, diag); /* again, to be heard */
}

/* ---- comparing -------------------------------------------------------------------------- */

static bool is_same(double x, double y)
{
    return (isnan(x) && isnan(y)) || (x == y && signbit(x) == signbit(y));
}

static double epsilon(tcc_scalar elem)
{
    switch (elem) {
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

/* `first`: nothing of this phase has run. */
static bool element_agrees(const tcc_trial_arg *a, int64_t i, int phase, bool first, double *want)
{
    double got = a->got[i];
    *want = first ? a->want[i] : a->of_phase[phase][i];
    if (is_same(*want, got))
        return !tcc_is_poison(got);
    if (!first || a->exactness < ROUNDED || tcc_is_poison(got))
        return false;
    return a->exactness == JUMPS || is_close(a, *want, got);
}

bool tcc_trial_agrees(tcc_trial *t, const tcc_func *f, tcc_difference *out)
{
    int phase = phase_of(f);
    if (phase < t->phase) /* before the kernel's own there is none */
        phase = t->phase;
    bool first = !t->has_run[phase];
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
    t->has_run[phase] = true;
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
    for (unsigned i = 0; i < type->rank; i++) {
        below /= tcc_trial_extent(t, type->dims[i]);
        tcc_str_printf(out, "%s%lld", i ? ", " : "", (long long)(rest / below));
        rest %= below;
    }
    tcc_str_printf(out, "] of '%s' is ", d->arg->param->name);
    if (tcc_is_poison(d->got))
        tcc_str_puts(out, "not written");
    else
        tcc_str_printf(out, "%.9g", d->got);
    tcc_str_printf(out, ", not %.9g", d->want);
}

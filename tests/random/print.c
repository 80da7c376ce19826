/* print: a program as text.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <ctype.h>
#include <string.h>

#include "ir/target.h"
#include "tests/random/program.h"

const call_info calls[] = {
    {"+", 2}, {"-", 2},   {"*", 2},    {"/", 2},   {"min", 2},  {"max", 2},
    {"-", 1}, {"abs", 1}, {"relu", 1}, {"f16", 1}, {"bf16", 1}, {"f32", 1},
#define MATH(name, ...) {#name, 1},
#include "ir/math.def"
};
const int n_calls = sizeof calls / sizeof *calls;
const char *const comparisons[] = {"<", "<=", ">", ">=", "==", "!="};
const int n_comparisons = sizeof comparisons / sizeof *comparisons;

static const char *const elements[N_ELEMENTS] = {"f16", "bf16", "f32", "i32", "i8", "u8"};
/* Of the first four the one that differs in bit 1 is of the same factors. */
static const struct {
    const char *factors[2], *sum;
    bool is_integer;
} products[N_PRODUCTS] = {
    {{"f16", "f16"}, "", false},       {{"bf16", "bf16"}, "", false},
    {{"f16", "f16"}, ":f16", false},   {{"bf16", "bf16"}, ":bf16", false},
    {{"i8", "i8"}, "", true},          {{"u8", "i8"}, "", true},
    {{"i8", "u8"}, ":i32", true},      {{"u8", "u8"}, "", true},
    {{"i4", "i4"}, "", true},          {{"u4", "i4"}, "", true},
    {{"i4", "u4"}, "", true},          {{"u4", "u4"}, "", true},
    {{"e4m3", "e4m3"}, "", false},     {{"e4m3", "e5m2"}, "", false},
    {{"e5m2", "e4m3"}, ":f32", false}, {{"e5m2", "e5m2"}, "", false},
    {{"f32", "f32"}, "", false},       {{"f64", "f64"}, "", false},
    {{"tf32", "tf32"}, "", false},
};
bool program_multiplies(const char *target, int product, int *bits)
{
    const tcc_target *t = tcc_target_find(target);
    tcc_scalar types[2];
    for (int i = 0; i < 2; i++)
        tcc_scalar_find(products[product].factors[i], strlen(products[product].factors[i]), &types[i]);
    *bits = (int)tcc_scalar_bits(types[0]);
    tcc_scalar sum = products[product].is_integer ? TCC_i32 : TCC_f32;
    if (*products[product].sum)
        tcc_scalar_find(products[product].sum + 1, strlen(products[product].sum + 1), &sum);
    for (; t; t = t->plain ? tcc_target_find(t->plain) : NULL)
        if (tcc_target_instr_for(t, TCC_INSTR_COUNT, types[0], types[1], sum) != TCC_INSTR_COUNT)
            return true;
    return false;
}

static const char *const accumulators[2] = {"acc", "acc2"};
static const char *const producers[] = {"none", "warp", "warpgroup"};
static const char *const swizzles[] = {"none", "32", "64", "128"};
static const char *const epilogues[] = {"tma", "interleaved", "words"};
static const char *const persistences[] = {"none", "static", "dynamic"};
static const char *const rasters[] = {"grouped", "row", "column", "hilbert"};
static const char *const sharings[] = {"cooperative", "pingpong"};

/* ---- what is used ------------------------------------------------------------------------ */

typedef struct uses {
    int sums[2]; /* how often */
    bool operands[MAX_OPERANDS], scales[MAX_SCALES], temps[MAX_TEMPS], inouts[MAX_OUTPUTS];
    bool constants[MAX_EXPRS];
} uses;

static void use(const program *p, int e, int output, uses *u)
{
    const expr *x = &p->exprs[e];
    if (x->kind == E_SUM && !u->sums[x->which]++) {
        for (int f = 0; f < 2; f++)
            if (p->computed[f].is)
                use(p, p->computed[f].root, output, u);
    } else if (x->kind == E_SCALE)
        u->scales[x->which] = true;
    else if (x->kind == E_OPERAND)
        u->operands[x->which] = true;
    else if (x->kind == E_INOUT)
        u->inouts[output] = true;
    else if (x->kind == E_NUMBER && x->which)
        u->constants[e] = true;
    if (x->kind == E_TEMP && !u->temps[x->which]) {
        u->temps[x->which] = true;
        use(p, p->temps[x->which].root, output, u);
    }
    for (int i = 0; i < MAX_CHILDREN && x->child[i] != NO_EXPR; i++)
        use(p, x->child[i], output, u);
}

unsigned program_indices_of(const program *p, int e)
{
    const expr *x = &p->exprs[e];
    unsigned mask = 0, all = (1u << p->n_indices) - 2; /* all but the summed one */
    if (x->kind == E_SUM || x->kind == E_INOUT)
        mask = all;
    else if (x->kind == E_OPERAND)
        mask = p->operands[x->which].mask;
    else if (x->kind == E_TEMP)
        mask = program_indices_of(p, p->temps[x->which].root);
    for (int i = 0; i < MAX_CHILDREN && x->child[i] != NO_EXPR; i++)
        mask |= program_indices_of(p, x->child[i]);
    return mask & p->live;
}

/* Whether all is computed in f64. */
static bool is_wide(const program *p)
{
    return p->product == PRODUCT_OF_WIDE_LANES;
}

static const char *element_name(const program *p, element e)
{
    return is_wide(p) && e == F32 ? "f64" : elements[e];
}

/* What makes a number what others are that it is computed with; "": it is already. */
static const char *conversion_of(const program *p, element e)
{
    return is_wide(p) ? "f64(" : e >= I32 ? "f32(" : "";
}

/* ---- tensors ----------------------------------------------------------------------------- */

static void print_indices(tcc_str *out, const program *p, const tensor *t, unsigned mask)
{
    const char *sep = "[";
    for (int i = 0; i < p->n_indices; i++)
        if (mask & p->live & 1u << t->order[i]) {
            tcc_str_printf(out, "%s%c", sep, p->indices[t->order[i]].name);
            sep = ", ";
        }
    tcc_str_puts(out, *sep == ',' ? "]" : "");
}

/* What a tensor's elements are; without indices it is a scalar, which bytes cannot be. */
static element element_of(const program *p, const tensor *t)
{
    return !(t->mask & p->live) && t->type > I32 ? I32 : t->type;
}

/* With dimensions, of the element named. */
static void print_type(tcc_str *out, const program *p, const tensor *t, const char *elem)
{
    const char *sep = "[";
    tcc_str_puts(out, elem);
    for (int i = 0; i < p->n_indices; i++) {
        if (!(t->mask & p->live & 1u << t->order[i]))
            continue;
        const index_info *x = &p->indices[p->indices[t->order[i]].same_as];
        if (x->kind == SYMBOLIC)
            tcc_str_printf(out, "%s%c", sep, toupper(x->name));
        else if (x->kind == CONSTANT)
            tcc_str_printf(out, "%sSIZE_%c", sep, toupper(x->name));
        else
            tcc_str_printf(out, "%s%lld", sep, (long long)x->size);
        sep = ", ";
    }
    tcc_str_puts(out, *sep == ',' ? "]" : "");
}

/* ---- expressions ------------------------------------------------------------------------- */

/* Where an expression stands. */
typedef struct place {
    int output, sum;     /* the output that it is for; the sum in which it is */
    const bool *inlined; /* which sums are */
} place;

/* Factor f of a sum, and its letter. */
static const tensor *factor_of(const program *p, int sum, int f, char *letter)
{
    bool own = sum && !(p->shared & 1u << f);
    *letter = (char)((own ? 'D' : 'A') + f);
    return own ? &p->more[f] : &p->factors[f];
}

static void print_expr(tcc_str *out, const program *p, int e, const place *at);

/* A factor as it stands in a sum or, of one that is an intermediate, in that. */
static void print_factor(tcc_str *out, const program *p, int sum, int f, bool named)
{
    char letter;
    const tensor *t = factor_of(p, sum, f, &letter);
    if (p->computed[f].is && !named) {
        print_expr(out, p, p->computed[f].root, &(place){.sum = sum});
        return;
    }
    tcc_str_printf(out, "%s%c", named ? "v" : "", letter);
    print_indices(out, p, t, t->mask);
}

static void print_sum(tcc_str *out, const program *p, int sum)
{
    int product = sum ? p->second : p->product;
    bool is_integer = products[product].is_integer;
    int n = p->sums == OF_PRODUCTS ? 2 : 1;
    tcc_str_puts(out, is_integer ? "f32(" : "");
    if (p->sums != NO_SUMS)
        tcc_str_printf(out, "sum%s(%c) ", products[product].sum, p->indices[0].name);
    for (int i = 0; i < n; i++) {
        int factor = n > 1 && p->swapped ? 1 - i : i;
        tcc_str_puts(out, i ? " * " : "");
        print_factor(out, p, sum, factor, p->named & 1u << factor);
    }
    tcc_str_puts(out, is_integer ? ")" : "");
}

static void print_number(tcc_str *out, const program *p, int e)
{
    tcc_str_puts(out, is_wide(p) ? "f64(" : "");
    if (p->exprs[e].which)
        tcc_str_printf(out, "c%d", e);
    else
        tcc_str_printf(out, "%.9g", p->exprs[e].number);
    tcc_str_puts(out, is_wide(p) ? ")" : "");
}

/* An element as an f32 or f64: a conversion stands around it where it is none. */
static void print_element(tcc_str *out, const program *p, const tensor *t, element type,
                          const char *name, int number)
{
    const char *conversion = conversion_of(p, type);
    tcc_str_printf(out, "%s%s", conversion, name);
    if (number >= 0)
        tcc_str_printf(out, "%d", number);
    print_indices(out, p, t, t->mask);
    tcc_str_puts(out, *conversion ? ")" : "");
}

/* Functions of f64 that there are none of are computed in f32, and conversions go back. */
static bool is_narrow(const program *p, const call_info *c)
{
    static const char *const of_f64[] = {"min", "max", "abs", "relu", "sqrt", "rsqrt"};
    bool narrow = is_wide(p) && isalpha(*c->name);
    for (size_t i = 0; i < sizeof of_f64 / sizeof *of_f64; i++)
        narrow &= strcmp(of_f64[i], c->name) != 0;
    return narrow;
}

static void print_expr(tcc_str *out, const program *p, int e, const place *at)
{
    const expr *x = &p->exprs[e];
    const tensor *t = NULL;
    char letter[2] = "";
    switch (x->kind) {
    case E_SUM:
        tcc_str_puts(out, at->inlined[x->which] ? "(" : accumulators[x->which]);
        if (at->inlined[x->which])
            print_sum(out, p, x->which);
        else
            print_indices(out, p, &p->outputs[0].t, p->outputs[0].t.mask);
        tcc_str_puts(out, at->inlined[x->which] ? ")" : "");
        break;
    case E_OPERAND:
        t = &p->operands[x->which];
        print_element(out, p, t, element_of(p, t), "x", x->which);
        break;
    case E_SCALE:
        t = &p->scales[x->which];
        print_element(out, p, t, element_of(p, t), "z", x->which);
        break;
    case E_FACTOR:
        t = factor_of(p, at->sum, x->which, letter);
        print_element(out, p, t, p->computed[x->which].from, letter, -1);
        break;
    case E_TEMP:
        tcc_str_printf(out, "t%d", x->which);
        print_indices(out, p, &p->temps[x->which].shape,
                      program_indices_of(p, p->temps[x->which].root));
        break;
    case E_INOUT:
        t = &p->outputs[at->output].t;
        print_element(out, p, t, element_of(p, t), "C", at->output);
        break;
    case E_NUMBER: print_number(out, p, e); break;
    case E_CALL:
    case E_WHERE: {
        bool where = x->kind == E_WHERE;
        const call_info *c = where ? NULL : &calls[x->which];
        bool infix = !where && !isalpha(*c->name);
        const char *between = infix ? c->name : ",";
        bool narrow = !where && is_narrow(p, c);
        tcc_str_puts(out, narrow ? "f64(" : "");
        tcc_str_puts(out, where ? "where" : isalpha(*c->name) ? c->name : "");
        tcc_str_puts(out, narrow ? "(f32(" : "(");
        if (infix && c->arity == 1)
            tcc_str_puts(out, c->name);
        for (int i = 0; i < MAX_CHILDREN && x->child[i] != NO_EXPR; i++) {
            if (i)
                tcc_str_printf(out, "%s%s ", infix || (where && i == 1) ? " " : "",
                               where && i == 1 ? comparisons[x->which] : between);
            print_expr(out, p, x->child[i], at);
        }
        tcc_str_puts(out, narrow ? ")))" : ")");
        break;
    }
    }
}

/* ---- the file ---------------------------------------------------------------------------- */

static void print_constants(tcc_str *out, const program *p, const uses *u)
{
    for (int i = 0; i < p->n_indices; i++)
        if (p->live & 1u << i && p->indices[i].kind == CONSTANT && p->indices[i].same_as == i)
            tcc_str_printf(out, "const SIZE_%c = %lld;\n", toupper(p->indices[i].name),
                           (long long)p->indices[i].size);
    for (int e = 0; e < p->n_exprs; e++)
        if (u->constants[e])
            tcc_str_printf(out, "const c%d = %.9g;\n", e, p->exprs[e].number);
}

/* Whether a sum is used, and has a factor that is not one of the first, too. */
static bool has_own_factor(const program *p, const uses *u, int sum, int f)
{
    bool is_shared = sum && p->shared & 1u << f && u->sums[0];
    return u->sums[sum] && !is_shared && (!f || p->sums == OF_PRODUCTS);
}

static void print_signature(tcc_str *out, const program *p, const uses *u)
{
    const char *between = "";
    tcc_str_puts(out, "kernel f(");
    for (int s = 0; s < 2; s++)
        for (int f = 0; f < 2; f++) {
            char letter;
            const tensor *t = factor_of(p, s, f, &letter);
            if (!has_own_factor(p, u, s, f))
                continue;
            tcc_str_printf(out, "%s%c: ", between, letter);
            print_type(out, p, t,
                       p->computed[f].is ? elements[p->computed[f].from] : products[s ? p->second : p->product].factors[f]);
            between = ", ";
        }
    for (int i = 0; i < p->n_operands; i++)
        if (u->operands[i]) {
            tcc_str_printf(out, ", x%d: ", i);
            print_type(out, p, &p->operands[i], element_name(p, element_of(p, &p->operands[i])));
        }
    for (int i = 0; i < p->n_scales; i++)
        if (u->scales[i]) {
            tcc_str_printf(out, ", z%d: ", i);
            print_type(out, p, &p->scales[i], element_name(p, element_of(p, &p->scales[i])));
        }
    for (int inout = 1; inout >= 0; inout--) {
        const char *sep = inout ? ", " : " -> (";
        for (int i = 0; i < p->n_outputs; i++) {
            if (u->inouts[i] != inout)
                continue;
            tcc_str_printf(out, "%s%sC%d: ", sep, inout ? "inout " : "", i);
            print_type(out, p, &p->outputs[i].t, element_name(p, p->outputs[i].t.type));
            sep = ", ";
        }
        tcc_str_puts(out, inout || *sep == ',' ? ")" : "");
    }
    tcc_str_puts(out, "\n");
}

/* The program in whose words intermediates are defined: others for factors than for what reads them. */
static const program *in_words_of_definitions(const program *p, bool of_factors, program *renamed)
{
    const char *names = of_factors ? "quvwyz" : "kabcde";
    *renamed = *p;
    for (int i = 0; i < p->n_indices; i++)
        renamed->indices[i].name = p->renamed ? names[i] : p->indices[i].name;
    return renamed;
}

static void print_named_factors(tcc_str *out, const program *p, const uses *u)
{
    program renamed;
    const program *of = in_words_of_definitions(p, true, &renamed);
    for (int s = 0; s < 2; s++)
        for (int f = 0; f < 2; f++) {
            if (!(p->named & 1u << f) || !has_own_factor(p, u, s, f))
                continue;
            tcc_str_puts(out, "    ");
            print_factor(out, of, s, f, true);
            tcc_str_puts(out, " = ");
            print_factor(out, of, s, f, false);
            tcc_str_puts(out, ";\n");
        }
}

static void print_body(tcc_str *out, const program *p, const uses *u)
{
    bool inlined[2];
    program renamed;
    const program *of = in_words_of_definitions(p, false, &renamed);
    tcc_str_puts(out, "{\n");
    print_named_factors(out, p, u);
    for (int s = 0; s < 2; s++) {
        inlined[s] = p->sum_inlined && u->sums[s] == 1;
        if (inlined[s] || !u->sums[s])
            continue;
        tcc_str_printf(out, "    %s", accumulators[s]);
        print_indices(out, of, &p->outputs[0].t, p->outputs[0].t.mask);
        tcc_str_puts(out, " = ");
        print_sum(out, of, s);
        tcc_str_puts(out, ";\n");
    }
    for (int i = 0; i < p->n_temps; i++)
        if (u->temps[i]) {
            tcc_str_printf(out, "    t%d", i);
            print_indices(out, of, &p->temps[i].shape, program_indices_of(p, p->temps[i].root));
            tcc_str_puts(out, " = ");
            print_expr(out, of, p->temps[i].root, &(place){.inlined = inlined});
            tcc_str_puts(out, ";\n");
        }
    for (int i = 0; i < p->n_outputs; i++) {
        tcc_str_printf(out, "    C%d", i);
        print_indices(out, p, &p->outputs[i].t, p->outputs[i].t.mask);
        bool is_converted = p->outputs[i].t.type >= I32 || is_wide(p);
        tcc_str_printf(out, " = %s%s", is_converted ? element_name(p, p->outputs[i].t.type) : "",
                       is_converted ? "(" : "");
        print_expr(out, p, p->outputs[i].root, &(place){.output = i, .inlined = inlined});
        tcc_str_puts(out, is_converted ? ");\n" : ";\n");
    }
    tcc_str_puts(out, "}\n");
}

static void print_tile(tcc_str *out, const program *p)
{
    const int tiled[] = {p->tiled[0], p->tiled[1], 0};
    const char *sep = "    tile ";
    for (int s = TILE_M; s <= TILE_K; s++)
        if (p->set & 1u << s && tiled[s] >= 0 && p->live & 1u << tiled[s]) {
            tcc_str_printf(out, "%s%c %d", sep, p->indices[tiled[s]].name, p->values[s]);
            sep = ", ";
        }
    tcc_str_puts(out, *sep == ',' ? ";\n" : "");
}

/* Kernels without a product have no use for it. */
static bool says_instr(const program *p)
{
    return p->by_warps && p->sums == OF_PRODUCTS;
}

static void print_schedule(tcc_str *out, const program *p)
{
    static const struct {
        const char *key;
        const char *const *words; /* NULL: a number */
    } settings[N_SETTINGS] = {
        [STAGES] = {"stages", NULL},
        [WARPGROUPS] = {"warpgroups", NULL},
        [PRODUCER] = {"producer", producers},
        [SWIZZLE] = {"swizzle", swizzles},
        [EPILOGUE] = {"epilogue", epilogues},
        [GROUP] = {"group", NULL},
        [PERSISTENT] = {"persistent", persistences},
        [CONSUMERS] = {"consumers", sharings},
        [SPLIT] = {"split", NULL},
        [RASTER] = {"raster", rasters},
    };
    static const char *const lanes[] = {"32", "64", "32", "64"};
    bool amd = target_is_amd(p->target);
    tcc_str_printf(out, "schedule f for %s\n{\n", p->target);
    if (says_instr(p))
        tcc_str_printf(out, "    instr %s;\n", p->product >= PRODUCT_OF_LANES ? "fma" : "mma");
    if (!p->has_schedule) {
        tcc_str_puts(out, "}\n");
        return;
    }
    print_tile(out, p);
    for (int s = STAGES; s < N_SETTINGS; s++) {
        if (!(p->set & 1u << s))
            continue;
        if (program_has_warps(p) && s == WARPGROUPS)
            tcc_str_printf(out, "    warps %d;\n", p->values[s]);
        else if (amd && s == WARPGROUPS)
            tcc_str_printf(out, "    waves %d;\n", p->values[s]);
        else if (amd && s == SWIZZLE)
            tcc_str_printf(out, "    wave %s;\n", lanes[p->values[s]]);
        else if (s == CLUSTER)
            tcc_str_printf(out, "    cluster %c %d;\n", p->indices[0].name, p->values[s]);
        else if (settings[s].words)
            tcc_str_printf(out, "    %s %s;\n", settings[s].key, settings[s].words[p->values[s]]);
        else
            tcc_str_printf(out, "    %s %d;\n", settings[s].key, p->values[s]);
    }
    tcc_str_puts(out, "}\n");
}

void program_print(tcc_str *out, const program *p)
{
    uses u = {0};
    for (int i = 0; i < p->n_outputs; i++)
        use(p, p->outputs[i].root, i, &u);
    print_constants(out, p, &u);
    print_signature(out, p, &u);
    print_body(out, p, &u);
    if ((p->has_schedule && p->set) || says_instr(p))
        print_schedule(out, p);
}

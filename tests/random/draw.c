/* draw: a random program. Most fit the target; the compiler refuses the others.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <ctype.h>
#include <string.h>

#include "support/random.h"
#include "tests/random/program.h"

enum { NONE = -1, PRODUCTS_OF_16_BITS = 4 };

typedef struct drawing {
    program *p;
    uint64_t random;
    int output;     /* that an expression is for, or none: -1 */
    int n_temps;    /* that an expression may use */
    int n_products; /* that the target has */
    int factor;     /* that an expression computes */
    bool function;  /* an expression has one that rounds: no more, or values go everywhere */
} drawing;

static int below(drawing *d, int n)
{
    return (int)tcc_random(&d->random, (uint64_t)n);
}

static bool chance(drawing *d, int percent)
{
    return below(d, 100) < percent;
}

/* ---- indices ----------------------------------------------------------------------------- */

/* Of a dimension that is a number. Batches are few; others mostly make rows that TMA can copy. */
static int64_t draw_size(drawing *d, int largest)
{
    int n = 1 + below(d, largest);
    if (largest < 8)
        return n;
    return chance(d, 85) ? (n + 7) / 8 * 8 : n;
}

static void draw_dimension(drawing *d, int i, int largest)
{
    index_info *x = &d->p->indices[i];
    int kind = below(d, 100);
    x->kind = kind < 65 ? SYMBOLIC : kind < 90 ? NUMBER : CONSTANT;
    x->size = draw_size(d, largest);
    x->same_as = i;
    if (i > 1 && chance(d, 4)) /* two indices over one dimension */
        x->same_as = d->p->indices[below(d, i)].same_as;
}

static void shuffle(drawing *d, tensor *t)
{
    int n = d->p->n_indices;
    for (int i = 0; i < n; i++)
        t->order[i] = (int8_t)i;
    for (int i = n - 1; i > 0; i--) {
        int j = below(d, i + 1);
        int8_t swapped = t->order[i];
        t->order[i] = t->order[j];
        t->order[j] = swapped;
    }
}

/* Mostly as TMA needs it: rows run along m, n or k, which are tiled. */
static void settle(drawing *d, tensor *t)
{
    int last = 0;
    do {
        shuffle(d, t);
        for (int i = 0; i < d->p->n_indices; i++)
            if (t->mask & 1u << t->order[i])
                last = t->order[i];
    } while (last > 2 && chance(d, 92));
}

/* m, n, and up to three more: of A, of B, of both. */
static void draw_indices(drawing *d)
{
    static const char names[MAX_INDICES + 1] = "kmnhgp";
    program *p = d->p;
    int more = below(d, 100);
    bool vector = chance(d, 6); /* a factor has no index of its own */
    p->n_indices = 3 + (more < 55 ? 0 : more < 80 ? 1 : more < 94 ? 2 : 3);
    p->live = (1u << p->n_indices) - 1;
    unsigned masks[2] = {1 | 1u << 1, 1 | 1u << 2};
    if (vector) /* then the other has both */
        masks[0] = 1, masks[1] = 1 | 1u << 1 | 1u << 2;
    for (int i = 3; i < p->n_indices; i++) {
        int where = below(d, 4);
        masks[0] |= where != 0 ? 1u << i : 0;
        masks[1] |= where != 1 ? 1u << i : 0;
    }
    static const int largest[MAX_INDICES] = {160, 150, 90, 3, 3, 3};
    for (int i = 0; i < p->n_indices; i++)
        p->indices[i].name = names[i];
    for (int i = 0; i < p->n_indices; i++)
        draw_dimension(d, i, largest[i]);
    p->swapped = chance(d, 20);
    p->sum_inlined = chance(d, 40);
    p->product = d->n_products > PRODUCTS_OF_ALL ? below(d, d->n_products) : !chance(d, 60);
    int bits;
    if (program_has_warps(p) && (p->product == 2 || p->product == 3) && !program_multiplies(p->target, p->product, &bits))
        p->product = PRODUCT_OF_LANES; /* sums of 16 bits that the target lacks */
    for (int f = 0; f < 2; f++) {
        p->factors[f] = (tensor){.mask = masks[f]};
        settle(d, &p->factors[f]);
    }
}

/* ---- expressions ------------------------------------------------------------------------- */

static int add_expr(drawing *d, expr x)
{
    d->p->exprs[d->p->n_exprs] = x;
    return d->p->n_exprs++;
}

static expr leaf(expr_kind kind, int which)
{
    return (expr){kind, which, 0, {NO_EXPR, NO_EXPR, NO_EXPR, NO_EXPR}};
}

static int draw_number(drawing *d)
{
    static const double numbers[] = {0.5, 2, 0.125, 1, 3, 0.1, 4, 0.75, 0, 1.5};
    expr x = leaf(E_NUMBER, chance(d, 15));
    x.number = numbers[below(d, (int)(sizeof numbers / sizeof *numbers))];
    return add_expr(d, x);
}

static int draw_leaf(drawing *d)
{
    const program *p = d->p;
    int kind = below(d, 100);
    if (kind < 40)
        return add_expr(d, leaf(E_SUM, 0));
    if (kind < 75 && p->n_operands)
        return add_expr(d, leaf(E_OPERAND, below(d, p->n_operands)));
    if (kind < 82 && d->n_temps)
        return add_expr(d, leaf(E_TEMP, below(d, d->n_temps)));
    if (kind < 88 && d->output >= 0)
        return add_expr(d, leaf(E_INOUT, 0));
    return draw_number(d);
}

static int call(drawing *d, const char *name, int a, int b)
{
    int arity = b == NO_EXPR ? 1 : 2;
    for (int i = 0; i < n_calls; i++)
        if (calls[i].arity == arity && !strcmp(calls[i].name, name)) {
            expr x = leaf(E_CALL, i);
            x.child[0] = a;
            x.child[1] = b;
            return add_expr(d, x);
        }
    return a;
}

static bool rounds(const char *function)
{
    return strchr("elt", *function) || !strcmp(function, "sigmoid") || !strcmp(function, "silu") ||
           !strncmp(function, "gelu", 4);
}

static int draw_expr(drawing *d, int depth);

static int draw_call(drawing *d, int depth)
{
    int which = below(d, n_calls);
    const call_info *c = &calls[which];
    bool function = isalpha(*c->name) && rounds(c->name);
    if (function && d->function)
        return draw_expr(d, depth - 1);
    expr x = leaf(E_CALL, which);
    for (int i = 0; i < c->arity; i++)
        x.child[i] = draw_expr(d, depth - 1);
    if (function) { /* near zero it has a shape */
        expr scale = leaf(E_NUMBER, 0);
        scale.number = 0.0625;
        int factor = add_expr(d, scale);
        x.child[0] = call(d, "*", factor, x.child[0]);
        d->function = true;
    }
    return add_expr(d, x);
}

static int draw_expr(drawing *d, int depth)
{
    if (depth <= 0 || d->p->n_exprs > MAX_EXPRS - 24 || chance(d, 15))
        return draw_leaf(d);
    if (chance(d, 88))
        return draw_call(d, depth);
    expr x = leaf(E_WHERE, below(d, n_comparisons));
    bool before = d->function;
    d->function = true; /* a comparison of rounded numbers decides nothing */
    for (int i = 0; i < MAX_CHILDREN; i++) {
        if (i == 2)
            d->function = before;
        x.child[i] = i < 2 ? draw_leaf(d) : draw_expr(d, depth - 1);
    }
    return add_expr(d, x);
}

/* ---- operands, results ------------------------------------------------------------------- */

static unsigned some_of(drawing *d, unsigned mask)
{
    unsigned some = mask;
    for (int i = 0; i < MAX_INDICES; i++)
        if (chance(d, 35))
            some &= ~(1u << i);
    return some;
}

static void draw_operands(drawing *d, unsigned free)
{
    program *p = d->p;
    p->n_operands = below(d, 100) < 20 ? 0 : 1 + below(d, 4);
    for (int i = 0; i < p->n_operands; i++) {
        tensor *t = &p->operands[i];
        t->mask = chance(d, 20) ? 0 : chance(d, 40) ? free : some_of(d, free);
        t->type = (element)below(d, N_ELEMENTS);
        shuffle(d, t);
    }
}

/* An expression that varies over every index: the sum is in it. */
static int draw_result(drawing *d)
{
    static const char *const joins[] = {"+", "-", "*", "max"};
    d->function = false;
    int depth = below(d, 4);
    int root = add_expr(d, leaf(E_SUM, 0));
    if (depth) {
        int other = draw_expr(d, depth);
        root = chance(d, 50) ? call(d, joins[below(d, 4)], root, other)
                             : call(d, joins[below(d, 4)], other, root);
    }
    static const char *const outer[] = {"relu", "gelu", "silu", "tanh", "sigmoid", "bf16"};
    if (chance(d, 25) && !d->function) {
        expr scale = leaf(E_NUMBER, 0);
        scale.number = 0.03125;
        int factor = add_expr(d, scale);
        root = call(d, outer[below(d, 6)], call(d, "*", factor, root), NO_EXPR);
    }
    return root;
}

static void draw_results(drawing *d, unsigned free)
{
    program *p = d->p;
    p->n_temps = chance(d, 35) ? 1 + below(d, MAX_TEMPS) : 0;
    for (int i = 0; i < p->n_temps; i++) {
        d->output = -1;
        d->n_temps = i;
        d->function = true; /* temporaries do not round: they may be compared */
        shuffle(d, &p->temps[i].shape);
        p->temps[i].root = draw_expr(d, 2);
    }
    p->n_outputs = chance(d, 70) ? 1 : 2 + below(d, MAX_OUTPUTS - 1);
    d->n_temps = p->n_temps;
    for (int i = 0; i < p->n_outputs; i++) {
        d->output = i;
        p->outputs[i].t = (tensor){.mask = free, .type = (element)below(d, N_ELEMENTS)};
        shuffle(d, &p->outputs[i].t);
        p->outputs[i].root = draw_result(d);
    }
}

/* Some programs get a second sum, which takes the place of the first in some expressions; drawn
 * after everything else, so that the others are what they would be without. */
static void draw_second_sum(drawing *d)
{
    program *p = d->p;
    p->n_sums = chance(d, 30) ? 2 : 1;
    if (p->n_sums == 1)
        return;
    p->shared = (unsigned)below(d, 3); /* one of them, or none */
    for (int f = 0; f < 2; f++) {
        p->more[f] = (tensor){.mask = p->factors[f].mask};
        settle(d, &p->more[f]);
    }
    for (int e = 0; e < p->n_exprs; e++)
        if (p->exprs[e].kind == E_SUM)
            p->exprs[e].which = chance(d, 50);
}

/* ---- computed factors -------------------------------------------------------------------- */

static void draw_scale(drawing *d, unsigned mask)
{
    program *p = d->p;
    tensor *t = &p->scales[p->n_scales++];
    t->mask = chance(d, 20) ? 0 : some_of(d, mask);
    t->type = (element)below(d, N_ELEMENTS);
    shuffle(d, t);
}

/* What stands beside an operand: a scale that has no other indices, or a number that is not 0. */
static int draw_beside(drawing *d)
{
    program *p = d->p;
    if (p->n_scales && chance(d, 65)) {
        int scale = below(d, p->n_scales);
        if (!(p->scales[scale].mask & ~p->factors[d->factor].mask))
            return add_expr(d, leaf(E_SCALE, scale));
    }
    static const double numbers[] = {0.5, 2, 0.125, 3, 0.1, 1.5};
    expr x = leaf(E_NUMBER, chance(d, 15));
    x.number = numbers[below(d, (int)(sizeof numbers / sizeof *numbers))];
    return add_expr(d, x);
}

/* One more step on the way from the tensor to the operand. */
static int draw_step(drawing *d, int e)
{
    static const char *const joins[] = {"*", "*", "*", "+", "-", "min", "max"};
    static const char *const functions[] = {"relu", "abs",  "-",       "f16",  "bf16", "exp",
                                            "silu", "gelu", "sigmoid", "tanh", "erf",  "gelu_tanh"};
    enum { N_JOINS = 7, N_EXACT = 5, N_FUNCTIONS = 12 };
    int kind = below(d, 100);
    if (kind < 50) {
        const char *join = joins[below(d, N_JOINS)];
        int other = draw_beside(d);
        return chance(d, 70) ? call(d, join, e, other) : call(d, join, other, e);
    }
    if (kind < 90) {
        int which = below(d, d->function ? N_EXACT : N_FUNCTIONS);
        if (which >= N_EXACT) { /* near zero it has a shape */
            expr scale = leaf(E_NUMBER, 0);
            scale.number = d->p->computed[d->factor].from >= I8 ? 0.015625 : 0.5;
            e = call(d, "*", e, add_expr(d, scale));
            d->function = true;
        }
        return call(d, functions[which], e, NO_EXPR);
    }
    expr x = leaf(E_WHERE, below(d, n_comparisons));
    x.child[0] = add_expr(d, leaf(E_FACTOR, d->factor));
    x.child[1] = draw_beside(d);
    x.child[2] = e;
    x.child[3] = draw_beside(d);
    return add_expr(d, x);
}

/* A factor that is computed is in registers, which are the rows of an instruction: its tile is of 64s. */
static void exchange_tiles(program *p)
{
    unsigned set = p->set & ~(1u << TILE_M | 1u << TILE_N);
    set |= p->set & 1u << TILE_M ? 1u << TILE_N : 0;
    set |= p->set & 1u << TILE_N ? 1u << TILE_M : 0;
    p->set = set;
    int m = p->values[TILE_M];
    p->values[TILE_M] = p->values[TILE_N];
    p->values[TILE_N] = m;
}

/* Makes factor f an expression of elements of a tensor, with up to so many new scales; says: in how many percent it says
 * its type, which otherwise is the other operand's. */
static void compute_factor(drawing *d, int f, int most_scales, int says)
{
    static const element from[] = {F16, BF16, I8, U8, F32};
    enum { N_FROM = 5, STEPS = 3 };
    program *p = d->p;
    p->computed[f].is = true;
    p->computed[f].from = from[below(d, N_FROM)];
    for (int n = below(d, most_scales + 1); n > 0; n--)
        draw_scale(d, p->factors[f].mask);
    d->function = false;
    d->factor = f;
    int root = p->computed[f].begin = add_expr(d, leaf(E_FACTOR, f));
    for (int n = 1 + below(d, STEPS); n > 0; n--)
        root = draw_step(d, root);
    if (chance(d, says))
        root = call(d, p->product % 2 ? "bf16" : "f16", root, NO_EXPR);
    p->computed[f].root = root;
}

static bool has_wgmma(const char *target)
{
    return !strcmp(target, "sm_90a");
}

static bool is_computed(const program *p)
{
    return p->computed[0].is || p->computed[1].is;
}

/* In some programs a factor of the sums is computed, where the target's products are of such
 * numbers; drawn last, for the reason that the second sum is. */
static void draw_computation(drawing *d)
{
    program *p = d->p;
    if (p->product >= PRODUCTS_OF_16_BITS || !chance(d, 30))
        return;
    int f = below(d, 2);
    compute_factor(d, f, MAX_SCALES, 30);
    int n = p->tiled[1];
    bool only_a = !target_is_amd(p->target) && !program_has_warps(p);
    if (only_a && n >= 0 && p->factors[f].mask & 1u << n)
        exchange_tiles(p);
}

/* In some of these the other factor is, too; drawn last. Warps multiply them, which have other schedules. */
static void draw_second_computation(drawing *d)
{
    program *p = d->p;
    if (!is_computed(p) || !chance(d, 40))
        return;
    compute_factor(d, p->computed[0].is, MAX_SCALES - p->n_scales, 100);
    p->has_schedule &= !has_wgmma(p->target) || p->by_warps;
}

/* ---- no products ------------------------------------------------------------------------- */

/* The last index of the first result, and the one in front of it, are tiled, in rows of 32s. */
static void draw_rows(drawing *d)
{
    program *p = d->p;
    const tensor *t = &p->outputs[0].t;
    p->tiled[0] = p->tiled[1] = NONE;
    for (int i = 0; i < p->n_indices; i++)
        if (t->mask & 1u << t->order[i]) {
            p->tiled[0] = p->tiled[1];
            p->tiled[1] = t->order[i];
        }
    p->values[TILE_M] = 1 + below(d, 16);
    p->values[TILE_N] = 32 * (1 + below(d, 8));
    p->set &= 1u << GROUP | (chance(d, 50) ? 1u << TILE_M : 0) | (chance(d, 50) ? 1u << TILE_N : 0);
}

/* Some programs have sums of one factor's elements instead, or take those as they are; drawn last, for the reason
 * that the second sum is. */
static void draw_terms(drawing *d)
{
    static const int products[] = {0, 1, 4, 5}; /* of f16, bf16, i8 and u8 */
    program *p = d->p;
    if (!chance(d, 15))
        return;
    p->sums = chance(d, 50) ? OF_TERMS : NO_SUMS;
    p->product = products[below(d, 4)];
    p->computed[0].is = p->computed[1].is = false;
    p->shared &= 1;
    unsigned mask = (1u << p->n_indices) - (p->sums == OF_TERMS ? 1 : 2);
    tensor *factors[] = {&p->factors[0], &p->more[0]};
    for (int s = 0; s < 2; s++) {
        factors[s]->mask = mask;
        settle(d, factors[s]);
    }
    draw_rows(d);
}

/* ---- schedules --------------------------------------------------------------------------- */

static int place(const tensor *t, int index)
{
    for (int i = 0; i < MAX_INDICES; i++)
        if (t->order[i] == index)
            return i;
    return -1;
}

/* An index that factor f has and the other has not, rather the one along which its rows run than
 * any; NONE: there is none. */
static int own_index(drawing *d, int f)
{
    const tensor *t = &d->p->factors[f], *other = &d->p->factors[1 - f];
    int found = NONE, last = NONE;
    for (int i = 0; i < d->p->n_indices; i++) {
        int x = t->order[i];
        if (!(t->mask & 1u << x))
            continue;
        last = x;
        if (!(other->mask & 1u << x) && (found == NONE || chance(d, 50)))
            found = x;
    }
    return last > 0 && !(other->mask & 1u << last) ? last : found;
}

/* Of two tiled indices the one further inside the first result is n (docs/language.md). */
static void choose_tiled(drawing *d)
{
    program *p = d->p;
    int m = own_index(d, 0), n = own_index(d, 1);
    bool exchange =
        n == NONE || (m != NONE && place(&p->outputs[0].t, m) > place(&p->outputs[0].t, n));
    p->tiled[0] = exchange ? n : m;
    p->tiled[1] = exchange ? m : n;
}

static void draw_schedule(drawing *d)
{
    static const int depths[] = {16, 32, 16, 64, 48, 32, 80, 128};
    program *p = d->p;
    p->has_schedule = chance(d, 92);
    choose_tiled(d);
    int m = 64 * (chance(d, 65) ? 1 : 1 + below(d, 4));
    int n = 8 * (1 + below(d, chance(d, 80) ? 8 : 32));
    p->values[TILE_M] = m;
    p->values[TILE_N] = n;
    p->values[TILE_K] = depths[below(d, 8)];
    p->values[STAGES] = 1 + below(d, 5);
    int blocks = m / 64, warpgroups = 1 + below(d, 3);
    p->values[WARPGROUPS] = blocks % warpgroups ? 1 : warpgroups;
    p->values[PRODUCER] = below(d, 3);
    p->values[SWIZZLE] = below(d, 4);
    p->values[EPILOGUE] = below(d, 3);
    p->values[GROUP] = 1 + below(d, 5);
    p->values[PERSISTENT] = below(d, 2);
    /* Tiles of sums that are not given are large. */
    p->set = 1u << TILE_N | (chance(d, 85) ? 1u << TILE_M : 0) | (chance(d, 85) ? 1u << TILE_K : 0);
    for (int s = STAGES; s < SPLIT; s++)
        if (chance(d, 70))
            p->set |= 1u << s;
    if (!(p->set & 1u << TILE_M))
        p->set &= ~(1u << WARPGROUPS);
    if (p->set & 1u << PRODUCER && !p->values[PRODUCER])
        p->set &= ~(1u << PERSISTENT); /* somebody else has to copy */
    p->values[CONSUMERS] = chance(d, 25);
    if (!(p->set & 1u << CONSUMERS) || !p->values[CONSUMERS])
        return;
    p->set |= 1u << PERSISTENT;
    p->set &= ~(1u << PRODUCER | 1u << WARPGROUPS); /* there is no choice */
    p->values[PERSISTENT] = 1;
}

/* Some sums are computed in parts, of which there may be more than tiles of k. */
static void draw_split(drawing *d)
{
    program *p = d->p;
    bool splits = chance(d, 25);
    p->values[SPLIT] = splits ? 2 + below(d, 4) : 1;
    p->set |= splits || chance(d, 10) ? 1u << SPLIT : 0;
}

/* Only groups have a width. */
static void draw_raster(drawing *d)
{
    program *p = d->p;
    p->values[RASTER] = below(d, 4);
    if (chance(d, 60))
        return;
    p->set |= 1u << RASTER;
    if (p->values[RASTER])
        p->set &= ~(1u << GROUP);
}

bool target_is_amd(const char *target)
{
    return !strncmp(target, "gfx", 3);
}

/* Two CTAs to four share some sums, of one tile each. */
static void draw_cluster(drawing *d)
{
    enum { EVERY = 5, LEAST = 2, MOST = 4 };
    program *p = d->p;
    bool may = has_wgmma(p->target) && !p->by_warps && p->sums == OF_PRODUCTS && p->seed % EVERY == 1;
    if (!may || (p->set & 1u << PERSISTENT && p->values[PERSISTENT]))
        return;
    p->values[CLUSTER] = LEAST + (int)(p->seed / EVERY % (MOST - LEAST + 1));
    p->set |= 1u << CLUSTER;
}

bool program_has_warps(const program *p)
{
    return !target_is_amd(p->target) && (!has_wgmma(p->target) || p->by_warps);
}

/* The power of two from `least` on that is at least n, or `most`. */
static int power_of_two(int n, int least, int most)
{
    while (least < n && least < most)
        least *= 2;
    return least;
}

/* Makes a schedule one for AMD: tiles are of blocks of 16 x 16, which a power of two of waves
 * share, and there are two stages. */
static void turn_schedule(program *p)
{
    enum { BLOCK = 16, WAVE_BLOCKS = 4, MOST_WAVES = 8 };
    p->values[TILE_M] = power_of_two(p->values[TILE_M] / 2, BLOCK, 128);
    p->values[TILE_N] = power_of_two(p->values[TILE_N], BLOCK, 128);
    p->values[TILE_K] = power_of_two(p->values[TILE_K], 2 * BLOCK, 64);
    p->values[STAGES] = 2;
    int blocks = p->values[TILE_M] / BLOCK * (p->values[TILE_N] / BLOCK);
    p->values[WARPGROUPS] = power_of_two(blocks / WAVE_BLOCKS, 1, MOST_WAVES);
    p->set &= ~(1u << PRODUCER | 1u << EPILOGUE | 1u << PERSISTENT | 1u << CONSUMERS);
}

/* The same for warps: blocks of 16 x 8 or, of outer products, 16 x 32, which a power of two of them share. */
static void turn_schedule_for_warps(program *p)
{
    enum { ROWS = 16, COLS = 8, COLS_OF_LANES = 32, WARP_BLOCKS = 4, MOST_WARPS = 8 };
    bool by_lanes = p->product >= PRODUCT_OF_LANES;
    int cols = by_lanes ? COLS_OF_LANES : COLS;
    p->values[TILE_M] = power_of_two(p->values[TILE_M] / 2, ROWS, 128);
    p->values[TILE_N] = power_of_two(p->values[TILE_N], by_lanes ? cols : 2 * cols, 128);
    p->values[TILE_K] = power_of_two(p->values[TILE_K], 16, 64);
    int blocks = p->values[TILE_M] / ROWS * (p->values[TILE_N] / cols);
    p->values[WARPGROUPS] = power_of_two(blocks / WARP_BLOCKS, 1, MOST_WARPS);
    p->set &= ~(1u << PRODUCER | 1u << SWIZZLE | 1u << EPILOGUE | 1u << PERSISTENT | 1u << CONSUMERS);
}

/* Some programs are of f64; drawn last, for the reason that the second sum is. Other products have other schedules. */
static void draw_wide(drawing *d)
{
    program *p = d->p;
    bool by_lanes = p->product == PRODUCT_OF_LANES;
    if (target_is_amd(p->target) || !chance(d, by_lanes ? 50 : 6))
        return;
    p->product = PRODUCT_OF_WIDE_LANES;
    p->computed[0].is = p->computed[1].is = false;
    if (!by_lanes && p->sums == OF_PRODUCTS)
        p->has_schedule = false;
}

/* Rows of a factor run along the summed index. */
static void run_along(program *p, tensor *t)
{
    int at = 0;
    while (t->order[at])
        at++;
    for (; at + 1 < p->n_indices; at++)
        t->order[at] = t->order[at + 1];
    t->order[at] = 0;
}

/* Some programs multiply other numbers than those of 16 bits, which NVIDIA's GPUs want in one order or in tiles of other
 * sizes; drawn last, for the reason that the second sum is. */
static void draw_other_factors(drawing *d)
{
    enum { FIRST = 4 /* whose factors are not of 16 bits */, CHUNK_BITS = 128, K_BITS = 256 };
    program *p = d->p;
    int found[N_PRODUCTS], n = 0, bits = 0;
    if (target_is_amd(p->target) || p->product >= PRODUCT_OF_LANES || is_computed(p) || !chance(d, 40))
        return;
    for (int i = FIRST; i < N_PRODUCTS; i++)
        if (i != PRODUCT_OF_LANES && i != PRODUCT_OF_WIDE_LANES && program_multiplies(p->target, i, &bits))
            found[n++] = i;
    if (!n)
        return;
    p->product = found[below(d, n)];
    program_multiplies(p->target, p->product, &bits);
    bool along = chance(d, 70);
    for (int f = 0; f < 2 && along; f++) {
        run_along(p, &p->factors[f]);
        run_along(p, &p->more[f]);
    }
    p->has_schedule &= program_has_warps(p) || (along && bits >= 8);
    p->values[TILE_N] = power_of_two(p->values[TILE_N], 2 * CHUNK_BITS / bits, 128);
    p->values[TILE_K] = power_of_two(p->values[TILE_K], K_BITS / bits, 128);
}

static int count_products(const program *p)
{
    return !strncmp(p->target, "gfx11", 5)   ? PRODUCTS_OF_GFX11
           : !strncmp(p->target, "gfx12", 5) ? PRODUCTS_OF_GFX12
           : program_has_warps(p)            ? PRODUCTS_OF_WARPS
                                             : PRODUCTS_OF_ALL;
}

/* Some second sums are added in the other type that their factors can be, f32 or their own, or are of other factors. */
static void draw_second_product(drawing *d)
{
    program *p = d->p;
    bool two = target_is_amd(p->target) && p->n_sums == 2 && p->sums == OF_PRODUCTS;
    p->second = p->product;
    if (two && p->product < PRODUCTS_OF_16_BITS && chance(d, 40))
        p->second = p->product ^ 2;
    else if (two && !p->shared && !is_computed(p) && chance(d, 60))
        p->second = below(d, d->n_products);
}

void program_draw(program *p, uint64_t seed, const char *target)
{
    enum { EVERY = 8 };
    drawing d = {.p = p, .random = seed * 2654435761u};
    memset(p, 0, sizeof *p);
    p->seed = seed;
    p->target = target;
    p->by_warps = has_wgmma(target) && seed % EVERY == 0; /* not drawn: all other programs stay what they are */
    d.n_products = count_products(p);
    draw_indices(&d);
    unsigned free = (1u << p->n_indices) - 2;
    draw_operands(&d, free);
    draw_results(&d, free);
    draw_schedule(&d);
    if (target_is_amd(target))
        turn_schedule(p);
    else if (program_has_warps(p))
        turn_schedule_for_warps(p);
    draw_second_sum(&d);
    draw_computation(&d);
    draw_terms(&d);
    draw_split(&d);
    draw_wide(&d);
    draw_other_factors(&d);
    draw_raster(&d);
    draw_second_computation(&d);
    p->renamed = chance(&d, 20);
    draw_cluster(&d);
    for (int f = 0; f < 2; f++)
        p->named |= chance(&d, is_computed(p) ? 35 : 10) ? 1u << f : 0;
    draw_second_product(&d);
    int bits;
    p->has_schedule &= p->sums != OF_PRODUCTS || program_multiplies(target, p->product, &bits); /* else no k is tiled */
}

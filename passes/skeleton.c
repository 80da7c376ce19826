/* Skeletons take the place of their function in the module while they exist, since passes look for variants and steps
 * there. All of them use the same memory, one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/skeleton.h"

#include <math.h>
#include <string.h>

#include "ir/plan.h"
#include "ir/signature.h"
#include "passes/families.h"
#include "passes/live.h"
#include "passes/passes.h"

/* What all of a choice share. */
typedef struct tcc_skeletons {
    tcc_arena *arena;                 /* of one at a time */
    tcc_attr names;                   /* of the kernel's dimensions */
    int64_t *dims;                    /* what each counts as */
    double extents[TCC_MAX_AXES], k;  /* of the axes, and what is summed over, accordingly */
    tcc_work product;                 /* one, of a sum's elements */
    int64_t copied_bits[2];           /* of an element of A and B on its way to shared memory, at least */
    bool panels;                      /* whether B's go there in panels along n */
} tcc_skeletons;

/* Where a function is in its module. */
static tcc_func **place_of(tcc_func *f)
{
    tcc_func **at = &f->ir->first;
    while (*at != f)
        at = &(*at)->next;
    return at;
}

/* Of an expression, infinite where it has none. */
static double value_of(const tcc_choice *ch, tcc_attr a)
{
    const tcc_device_attrs device = {.value[TCC_DEVICE_sms] = ch->target->sms};
    tcc_expr e;
    int64_t value;
    bool known = !tcc_expr_read(ch->skeletons->arena, a, ch->skeletons->names, &e) &&
                 tcc_expr_value(&e, ch->skeletons->dims, &device, &value);
    return known ? (double)value : INFINITY;
}

static double extent_of(const tcc_choice *ch, tcc_dim dim)
{
    enum { UNKNOWN = 1 << 14 }; /* not even by name */
    double extent = dim.name ? value_of(ch, (tcc_attr){.kind = TCC_ATTR_STR, .s = dim.name}) : (double)dim.size;
    return extent < INFINITY ? extent : UNKNOWN;
}

/* The cost of all steps from f up to `end`. */
static double cost_of(const tcc_choice *ch, const tcc_func *f, const tcc_func *end)
{
    double cost = 0;
    for (; f != end; f = f->next) {
        const tcc_named_attr *a = tcc_attr_find(&f->attrs, "cost");
        cost += a ? value_of(ch, a->value) : INFINITY;
    }
    return cost;
}

/* What warps and waves compute an operand of goes to their registers. */
static void set_copies(const tcc_choice *ch, tcc_skeletons *all)
{
    enum { WIDEST = 64 };
    bool staged = tcc_target_can(ch->target, TCC_CAN_wgmma);
    all->copied_bits[0] = all->copied_bits[1] = WIDEST;
    for (size_t i = 0; i < ch->c.n_operands; i++) {
        const tcc_sum_operand *o = &ch->c.operands[i];
        int64_t bits = tcc_scalar_bits(o->read->results[0].type->elem), *least = &all->copied_bits[o->axis];
        bits = staged || !tcc_sum_operand_is_computed(o) ? bits : 0;
        *least = bits < *least ? bits : *least;
    }
    all->panels = tcc_target_can(ch->target, TCC_CAN_tma) && tcc_choice_runs_across(ch, 1);
}

static void find_arena(tcc_choice *ch)
{
    if (ch->skeletons)
        return;
    ch->skeletons = TCC_NEW(ch->ctx->scratch, tcc_skeletons);
    ch->skeletons->arena = tcc_arena_create_in(ch->ctx->scratch);
}

/* Dimensions that are not known count as large: enough for many rounds, and so few that their product with a cost is an
 * i64. */
static void begin(tcc_choice *ch)
{
    enum { LARGE_K_BITS = 14, TILES_BITS = 34, MOST_BITS = 20 };
    tcc_arena *arena = ch->ctx->scratch;
    tcc_diag silent = {0};
    find_arena(ch);
    tcc_skeletons *all = ch->skeletons;
    if (all->dims)
        return;
    const tcc_func *signature = tcc_func_signature(ch->f, arena, &silent);
    all->names = tcc_attr_list(&(signature ? signature : ch->f)->attrs, "dims");
    all->dims = TCC_NEW_ARRAY(arena, int64_t, all->names.list.n);
    int open = 0;
    for (size_t i = 0; i < ch->c.n_axes; i++)
        open += ch->c.extents[i].name != NULL;
    int bits = open && TILES_BITS / open < MOST_BITS ? TILES_BITS / open : MOST_BITS;
    for (size_t i = 0; i < all->names.list.n; i++) {
        bool is_k = ch->c.k_extent.name && !strcmp(all->names.list.items[i].s, ch->c.k_extent.name);
        all->dims[i] = (int64_t)1 << (is_k ? LARGE_K_BITS : bits);
    }
    for (size_t i = 0; i < ch->c.n_axes; i++)
        all->extents[i] = extent_of(ch, ch->c.extents[i]);
    all->k = extent_of(ch, ch->c.k_extent);
    tcc_work_multiplies(&all->product, ch->target, tcc_sum_operand_elem(tcc_space_narrowest(&ch->c)->a), 1);
    set_copies(ch, all);
}

/* What an iteration does for one sum, and how many of them there are stages for at most: rows along n are copied in
 * panels that are at most as wide as they are long. */
static tcc_work least_work(const tcc_choice *ch, const tcc_schedule *s, int64_t *stages)
{
    const tcc_skeletons *all = ch->skeletons;
    tcc_work w = all->product;
    double products = (double)(s->m * s->n * s->k), panels = 1;
    w.mma_bytes *= products;
    w.fmas *= products;
    w.wide_fmas *= products;
    if (all->panels)
        panels = tcc_panel_times(tcc_swizzle_of(s->n * all->copied_bits[1] / 8, s->swizzle));
    double a = (double)(s->m * s->k * all->copied_bits[0]) / 8, b = (double)(s->n * s->k * all->copied_bits[1]) / 8;
    w.copied_bytes = a + panels * b;
    int64_t most = TCC_MOST_STAGES;
    if (most * (int64_t)(a + b) > ch->target->smem_bytes)
        most = ch->target->smem_bytes / (int64_t)(a + b);
    *stages = s->stages ? s->stages : most ? most : 1;
    return w;
}

/* No skeleton takes less than this: the products of one sum and the copies of what it multiplies, and to add parts of
 * it. */
static double least_cycles(const tcc_choice *ch, const tcc_schedule *s)
{
    const tcc_space *c = &ch->c;
    const tcc_sum *sum = tcc_space_narrowest(c);
    double parts = s->split > 1 ? (double)s->split : 1, ranks = s->cluster_k > 1 ? (double)s->cluster_k : 1;
    double tiles = parts * ranks, elements = 1;
    for (size_t i = 0; i < c->n_axes; i++) {
        elements *= ch->skeletons->extents[i];
        tiles *= ceil(ch->skeletons->extents[i] / (i > 1 ? 1 : (double)(i ? s->n : s->m)));
    }
    double iterations = ceil(ch->skeletons->k / ((double)s->k * parts * ranks));
    int64_t stages;
    tcc_work w = least_work(ch, s, &stages);
    bool in_turn = s->consumers == TCC_CONSUMERS_PINGPONG;
    double loop = iterations * tcc_iteration_cycles(ch->target, &w, stages, in_turn);
    double wait = ch->target->latency_cycles * (s->persistent ? 1 - tcc_hidden_part(in_turn) : 1);
    double sms = (double)ch->target->sms, cycles = tcc_rounds(tiles / sms) * (wait + loop);
    if (parts > 1) {
        double bytes = parts * elements * tcc_scalar_bits(sum->op->results[0].type->elem) / 8;
        tcc_work adding = {.moved_bytes = bytes / sms};
        cycles += (double)tcc_step_gap_cycles + ch->target->latency_cycles + tcc_moving_cycles(ch->target, &adding);
    }
    return cycles;
}

/* A copy of a function in its place, with a schedule of its own, and what stands there again after it. */
typedef struct skeleton {
    tcc_func *f, **at, *next, *last;
    tcc_arena *arena;
    tcc_diag silent;
    tcc_pass_ctx ctx;
} skeleton;

/* Without stages it has one. */
static void set_schedule(const tcc_choice *ch, tcc_func *f, tcc_schedule s)
{
    s.stages = s.stages ? s.stages : 1;
    tcc_schedule_set(f, &s, ch->c.axes[0], ch->c.axes[1], ch->c.k);
}

/* Up to the layouts of operands; false where a pass refuses the schedule. */
static bool put_up(const tcc_choice *ch, skeleton *k)
{
    tcc_func *f = ch->f;
    tcc_ir *ir = f->ir;
    *k = (skeleton){.f = f, .at = place_of(f), .next = f->next, .last = ir->last, .arena = ir->arena};
    k->ctx = (tcc_pass_ctx){.ir = ir, .diag = &k->silent, .scratch = ch->skeletons->arena};
    ir->arena = ch->skeletons->arena;
    *k->at = tcc_func_clone(f, f->name);
    set_schedule(ch, *k->at, ch->s);
    if (tcc_run_passes_on(&k->ctx, *k->at, k->next, tcc_pipeline_of_skeletons))
        return false;
    tcc_schedule s = tcc_schedule_of(*k->at);
    tcc_lay_out_operands(&k->ctx, *k->at, &s);
    return true;
}

static void take_down(const tcc_choice *ch, skeleton *k)
{
    tcc_ir *ir = k->f->ir;
    *k->at = k->f;
    k->f->next = k->next;
    ir->last = k->last;
    ir->arena = k->arena;
    tcc_arena_clear(ch->skeletons->arena);
}

/* Completes the schedule by what its skeleton takes of shared memory. */
static tcc_status fill(tcc_choice *ch, const skeleton *k)
{
    tcc_room r = tcc_room_of(*k->at, &ch->s, ch->skeletons->arena);
    return tcc_family_passes_of(ch->target)->fill(ch, *k->at, &r);
}

tcc_status tcc_skeleton_fill(tcc_choice *ch)
{
    skeleton k;
    find_arena(ch);
    tcc_status status = put_up(ch, &k) ? fill(ch, &k) : TCC_OK; /* the passes will say what is wrong */
    take_down(ch, &k);
    ch->s.stages = ch->s.stages ? ch->s.stages : 1;
    return status;
}

bool tcc_skeleton_can_fill(const tcc_choice *ch)
{
    tcc_diag silent = {0};
    tcc_pass_ctx ctx = *ch->ctx;
    ctx.diag = &silent;
    tcc_choice trial = *ch;
    trial.ctx = &ctx;
    return !tcc_skeleton_fill(&trial);
}

/* Of a schedule, which it completes, with the step that adds parts of sums. Infinite where a pass refuses it; false
 * where it does not fit. */
static bool skeleton_cycles(const tcc_choice *ch, tcc_schedule *s, double *cycles)
{
    skeleton k;
    tcc_choice trial = *ch;
    trial.s = *s;
    bool can = put_up(&trial, &k), fits = true;
    trial.ctx = &k.ctx;
    if (can)
        fits = !fill(&trial, &k);
    if (can && fits) {
        set_schedule(ch, *k.at, trial.s);
        can = !tcc_run_passes_on(&k.ctx, *k.at, k.next, tcc_pipeline_of_their_cost);
    }
    *cycles = can && fits ? cost_of(ch, *k.at, k.next) : INFINITY;
    *s = trial.s;
    take_down(ch, &k);
    return fits;
}

/* Registers in which assemblers keep the addresses of tensors, of all but the first few. */
static int64_t kept_addresses(const tcc_func *f)
{
    enum { FEW = 8, ADDRESS = 2 };
    int64_t n = -FEW;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        n += op->code == TCC_OP_tensor_read;
    return n > 0 ? n * ADDRESS : 0;
}

tcc_need tcc_skeleton_need(tcc_choice *ch)
{
    skeleton k;
    tcc_need need = {0};
    find_arena(ch);
    if (put_up(ch, &k) && !tcc_run_passes_on(&k.ctx, *k.at, k.next, tcc_pipeline_of_their_cost) &&
        !tcc_run_passes_on(&k.ctx, *k.at, k.next, tcc_pipeline_from_tile(ch->target)))
        for (const tcc_func *f = *k.at; f != k.next; f = f->next) {
            tcc_live live = tcc_live_registers(f, ch->skeletons->arena);
            int64_t lacks = tcc_live_lacks(&live) + kept_addresses(ch->f);
            if (!need.limit || lacks > need.lacks)
                need = (tcc_need){lacks, live.limit};
        }
    take_down(ch, &k);
    tcc_arena_release(ch->skeletons->arena); /* code is much larger than skeletons */
    return need;
}

/* Elements that a thread has to do with: of all sums, and of what it copies of an iteration's tiles. */
static double sum_elements(const tcc_schedule *s)
{
    return (double)(s->m * s->n) / (double)tcc_schedule_threads(s);
}

static double copied_elements(const tcc_schedule *s)
{
    int64_t lines = (1 + s->more_a) * s->m + (1 + s->more_b) * s->n;
    return (double)(lines * s->k) / (double)tcc_schedule_threads(s);
}

/* Whether a schedule lacks registers since another one does, which needs no more of any kind and has as many. */
static bool is_set_aside(const tcc_choice *ch, const tcc_schedule *s)
{
    for (size_t i = 0; i < ch->set_aside.len; i++) {
        const tcc_schedule *other = &ch->set_aside.data[i];
        bool has_as_many = tcc_schedule_share(s) <= tcc_schedule_share(other);
        if (has_as_many && s->stages >= other->stages && sum_elements(s) >= sum_elements(other) &&
            copied_elements(s) >= copied_elements(other))
            return true;
    }
    return false;
}

void tcc_search_try(tcc_search *q, const tcc_schedule *s, double times)
{
    double cycles = times * least_cycles(q->ch, s), below = q->cycles * (1 - q->margin);
    tcc_schedule t = *s;
    if (cycles >= below || cycles > q->limit || is_set_aside(q->ch, s))
        return;
    if (!q->bounds && skeleton_cycles(q->ch, &t, &cycles))
        q->refused |= cycles == INFINITY;
    cycles *= q->bounds ? 1 : times;
    if (cycles >= below)
        return;
    q->best = t;
    q->cycles = cycles;
}

/* Where passes refuse all, the best is the one that may take least: they will say why. */
static bool find_best(tcc_search *q, void (*list)(tcc_search *q), double margin)
{
    q->bounds = true;
    q->margin = 0;
    q->cycles = q->limit = INFINITY;
    list(q);
    if (q->cycles == INFINITY)
        return false;
    double bound = least_cycles(q->ch, &q->best), cycles;
    tcc_schedule first = q->best;
    skeleton_cycles(q->ch, &first, &cycles);
    q->limit = bound > 0 ? cycles * q->cycles / bound : INFINITY;
    q->bounds = false;
    q->margin = margin;
    q->cycles = INFINITY;
    list(q);
    return q->cycles < INFINITY || q->refused;
}

bool tcc_search_run(tcc_choice *ch, void (*list)(tcc_search *q), const void *user, double margin, tcc_schedule *out)
{
    bool (*may_lack)(const tcc_choice *ch) = tcc_family_passes_of(ch->target)->may_lack;
    tcc_search q = {.ch = ch, .user = user};
    begin(ch);
    while (find_best(&q, list, margin)) {
        tcc_choice trial = *ch;
        trial.s = q.best;
        tcc_need need = may_lack && may_lack(&trial) ? tcc_skeleton_need(&trial) : (tcc_need){0};
        bool fits = need.lacks <= TCC_LIVE_SPARE;
        if (fits || need.lacks < ch->need.lacks) {
            ch->need = need;
            *out = q.best;
        }
        if (fits)
            return true;
        TCC_PUSH(ch->ctx->scratch, &ch->set_aside, q.best);
    }
    return false;
}

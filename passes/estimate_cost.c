/* estimate-cost: estimate the cost of launching a variant, to compare it with the kernel's others.
 *
 * Before:  func @f(…) {…}
 * After:   func @f(…) {cost = [div, [mul, [add, [mul, 48, [ceildiv, TILES, [device, sms]]],
 *                                             [ceildiv, [mul, TILES, 16], [device, sms]]],
 *                                        [add, [mul, 1244, [ceildiv, K, 64]], 6482]], 64]}
 *
 * The cost is about how many cycles a launch takes (passes/work.h): rounds, in which each
 * multiprocessor computes a tile, times the cycles of a tile: those outside of loops, and each loop's
 * times its iterations. A persistent CTA stores a tile's results while it multiplies the next, as far as the two do not
 * use the same resources. Each further step of a variant also costs the gap before it. Rows that TMA copies take longer
 * if they are not aligned to L2 lines, or are divided into narrower panels. The last round is shorter if it is not full
 * (tcc_rounds); where sums are computed in parts, further rounds read operands again (TCC_ROUND_READS). A launch runs
 * the cheapest valid variant, of several equal ones the first. Copying operands element by element is for what the
 * other variants cannot handle: it costs more than any of them, whatever the estimate.
 *
 * A grid without a product moves bytes between memory and registers, and costs what that takes.
 *
 * Requires choose-pipeline and tile.grid. Preserves everything else.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "ir/assume.h"
#include "ir/grid.h"
#include "ir/plan.h"
#include "ir/signature.h"
#include "passes/passes.h"
#include "passes/schedule.h"
#include "passes/work.h"

enum { ACCESS_BYTES = 16, WORD_BYTES = 4 };
static const int64_t LAST_RESORT = 1000000000; /* cycles */

/* Rows that may begin anywhere in lines of L2: elements of the dimension, and how many of them a line has. */
typedef struct pitch {
    const char *dim;
    int64_t line;
    double bytes; /* that an iteration copies */
} pitch;

typedef struct estimate {
    tcc_ir *ir;
    const tcc_target *target;
    int64_t around; /* its loops: cycles of a tile; the rest is of iterations */
    TCC_VEC(tcc_attr) terms; /* of the sum of all loops' */
    TCC_VEC(tcc_attr) alone; /* the same where no other CTA hides that an iteration waits for memory */
    TCC_VEC(pitch) pitches;  /* of a loop */
    bool by_element; /* are operands copied */
    bool moves;      /* it only moves data: there is no product */
    bool in_turn;    /* do consumers take tiles */
    int64_t ranks;   /* CTAs that share a sum; 0, 1: none do */
} estimate;

static tcc_attr number(double cycles)
{
    return (tcc_attr){.kind = TCC_ATTR_INT, .i = (int64_t)ceil(cycles)};
}

static bool is_number(tcc_attr a, int64_t n)
{
    return a.kind == TCC_ATTR_INT && a.i == n;
}

/* a op b, shorter where one is neutral or both are known. */
static tcc_attr binary(estimate *e, tcc_expr_code op, tcc_attr a, tcc_attr b)
{
    bool scales = op == TCC_EXPR_mul || op == TCC_EXPR_div || op == TCC_EXPR_ceildiv;
    bool shifts = op == TCC_EXPR_add || op == TCC_EXPR_sub;
    if ((scales && is_number(b, 1)) || (shifts && is_number(b, 0)))
        return a;
    if (op == TCC_EXPR_mul && is_number(a, 1))
        return b;
    tcc_attr both = tcc_expr_attr(e->ir, op, 2, (tcc_attr[]){a, b}, 0);
    tcc_expr known;
    int64_t value;
    if (a.kind == TCC_ATTR_INT && b.kind == TCC_ATTR_INT &&
        !tcc_expr_read(e->ir->arena, both, (tcc_attr){0}, &known) && tcc_expr_value(&known, NULL, NULL, &value))
        return (tcc_attr){.kind = TCC_ATTR_INT, .i = value};
    return both;
}

/* The sum of all of a list, which is kept: flat, because readers bound how deep an expression is. */
static tcc_attr sum_of(estimate *e, size_t n, const tcc_attr *terms)
{
    tcc_attr *kept = TCC_NEW_ARRAY(e->ir->arena, tcc_attr, n);
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool are_known = n_kept && kept[n_kept - 1].kind == TCC_ATTR_INT && terms[i].kind == TCC_ATTR_INT;
        if (are_known)
            kept[n_kept - 1] = binary(e, TCC_EXPR_add, kept[n_kept - 1], terms[i]);
        else
            kept[n_kept++] = terms[i];
    }
    return tcc_expr_attr(e->ir, TCC_EXPR_add, n_kept, kept, 0);
}

/* ---- what ops do -------------------------------------------------------------------------- */

static double bytes_of(const tcc_type *tile, const tcc_type *tensor)
{
    return (double)tcc_type_count(tile) * tcc_scalar_bits(tensor->elem) / 8;
}

/* Elements that a lane accesses at a time. */
static int64_t elems_at_once(const tcc_op *op, const tcc_type *tensor)
{
    const char *copy = tcc_attr_str(&op->attrs, "copy", "");
    int64_t bits = tcc_scalar_bits(tensor->elem), wide = tcc_attr_int(&op->attrs, "wide", 0);
    wide = tcc_attr_int(&op->attrs, "words", wide);
    if (tcc_attr_find(&op->attrs, "groups") && !tcc_attr_find(&op->attrs, "words"))
        return tcc_attr_int(&op->attrs, "groups", 1);
    if (tcc_has_word("buffer unaligned cp_async vectors", copy))
        wide = ACCESS_BYTES;
    if (!strcmp(copy, "words"))
        wide = WORD_BYTES;
    return wide * 8 > bits ? wide * 8 / bits : tcc_attr_int(&op->attrs, "pairs", 0) ? 2 : 1;
}

static double accesses(const tcc_op *op, const tcc_type *tile, const tcc_type *tensor)
{
    return (double)tcc_type_count(tile) / (double)elems_at_once(op, tensor);
}

static bool is_by_tma(const tcc_op *op)
{
    return tcc_attr_is(&op->attrs, "copy", "tma");
}

/* Counts bytes that TMA copies, each CTA of a cluster its part, where rows of the tensor need not begin at lines of
 * L2. */
static void add_pitch(estimate *e, tcc_work *w, const tcc_type *tensor, double bytes)
{
    tcc_lines lines = tcc_lines_of(tensor);
    if (lines != TCC_LINES_OPEN) {
        w->off_line_bytes += lines == TCC_LINES_NOT_ALL ? bytes : 0;
        return;
    }
    int64_t line = 8 * TCC_LINE_BYTES / tcc_scalar_bits(tensor->elem);
    const char *dim = tcc_pitch_of(tensor).name;
    size_t i = 0;
    while (i < e->pitches.len && (strcmp(e->pitches.data[i].dim, dim) || e->pitches.data[i].line != line))
        i++;
    if (i == e->pitches.len)
        TCC_PUSH(e->ir->arena, &e->pitches, ((pitch){dim, line, 0}));
    e->pitches.data[i].bytes += bytes;
}

/* tile.load, or tile.gather: an access for each element. */
static void add_load(estimate *e, tcc_work *w, const tcc_op *op)
{
    const tcc_type *tile = op->results[0].type, *tensor = op->operands[0]->type;
    bool is_operand = tcc_attr_find(&op->attrs, "copy");
    double times = is_by_tma(op) ? tcc_panel_times(tcc_attr_int(&op->attrs, "swizzle", 0)) : 1;
    if (is_operand)
        w->copied_bytes += times * bytes_of(tile, tensor);
    if (is_by_tma(op)) {
        add_pitch(e, w, tensor, bytes_of(tile, tensor) / (double)tcc_attr_int(&op->attrs, "multicast", 1));
        return;
    }
    w->accesses += accesses(op, tile, tensor);
    w->moved_bytes += bytes_of(tile, tensor);
    bool waits = !tcc_has_word("cp_async_elements elements", tcc_attr_str(&op->attrs, "copy", ""));
    e->by_element |= is_operand && waits && elems_at_once(op, tensor) == 1;
}

static void add_store(tcc_work *w, const tcc_op *op)
{
    const tcc_tile_store_operands *of = TCC_VIEW(tile_store, op);
    w->stored_bytes += bytes_of(of->a->type, of->tensor->type);
    w->moved_bytes += bytes_of(of->a->type, of->tensor->type);
    if (!is_by_tma(op))
        w->accesses += accesses(op, of->a->type, of->tensor->type);
}

/* How often an operand's elements are read: once for each instruction beside each other, or for each
 * wave. */
static double times_read(const tcc_op *mma, const tcc_op *loop, int axis)
{
    tcc_attr waves = loop ? tcc_attr_list(&loop->attrs, "waves") : (tcc_attr){0};
    tcc_attr instr = tcc_attr_list(&mma->attrs, "instr");
    const tcc_type *d = mma->results[0].type;
    if (waves.list.n == 2)
        return (double)waves.list.items[axis].i;
    return instr.list.n == 3 ? (double)d->dims[axis].size / (double)instr.list.items[axis].i : 1;
}

static void add_mma(const tcc_target *target, tcc_work *w, const tcc_op *op, const tcc_op *loop)
{
    const tcc_tile_mma_operands *of = TCC_VIEW(tile_mma, op);
    const tcc_type *a = of->a->type, *b = of->b->type;
    double bytes = tcc_scalar_bits(a->elem) / 8.0;
    tcc_work_multiplies(w, target, a->elem, (double)tcc_type_count(op->results[0].type) * (double)a->dims[1].size);
    w->smem_bytes += bytes * ((double)tcc_type_count(a) * times_read(op, loop, 1) +
                              (double)tcc_type_count(b) * times_read(op, loop, 0));
}

/* ---- how often ---------------------------------------------------------------------------- */

/* An extent of a grid, as costs have it. */
static tcc_attr extent_of(const estimate *e, tcc_attr extent)
{
    tcc_dim dim = {0};
    tcc_grid_dim(e->ir, extent, &dim);
    return tcc_attr_of_dim(dim);
}

enum { DEEP = 24 };

/* A number of the IR as an expression; what is none counts as 1, and so does what is computed in more steps than DEEP. */
static tcc_attr expr_of(estimate *e, const tcc_value *v, int depth);

static tcc_attr expr_of_op(estimate *e, tcc_expr_code code, const tcc_op *op, int depth)
{
    return binary(e, code, expr_of(e, op->operands[0], depth + 1), expr_of(e, op->operands[1], depth + 1));
}

/* Where a tile begins, on average. */
static tcc_attr middle_of(estimate *e, const tcc_op *grid, const tcc_value *first)
{
    tcc_attr extents = tcc_attr_list(&grid->attrs, "extents");
    return binary(e, TCC_EXPR_div, extent_of(e, extents.list.items[first->index]), number(2));
}

/* The terms of a sum, and what is taken away. */
typedef struct signed_terms {
    TCC_VEC(tcc_attr) of[2];
} signed_terms;

static void add_terms(estimate *e, signed_terms *t, const tcc_value *v, bool minus, int depth)
{
    const tcc_op *op = v->def;
    int64_t by;
    bool is_sum = op && depth < DEEP && (op->code == TCC_OP_arith_add || op->code == TCC_OP_arith_sub);
    for (unsigned i = 0; is_sum && i < 2; i++)
        add_terms(e, t, op->operands[i], minus != (i && op->code == TCC_OP_arith_sub), depth + 1);
    for (unsigned i = 0; op && op->code == TCC_OP_arith_mul && i < 2; i++)
        if (tcc_value_is_int(op->operands[i], &by) && by < 0) {
            tcc_attr less = expr_of(e, op->operands[1 - i], depth + 1);
            TCC_PUSH(e->ir->arena, &t->of[!minus], binary(e, TCC_EXPR_mul, number((double)-by), less));
            return;
        }
    if (tcc_value_is_int(v, &by) && by < 0)
        TCC_PUSH(e->ir->arena, &t->of[!minus], number((double)-by));
    else if (!is_sum)
        TCC_PUSH(e->ir->arena, &t->of[minus], expr_of(e, v, depth + 1));
}

/* No expression has a negative number, so all that is taken away comes last. */
static tcc_attr expr_of_sum(estimate *e, const tcc_value *v, int depth)
{
    signed_terms t = {0};
    add_terms(e, &t, v, false, depth);
    tcc_attr sums[2];
    for (int i = 0; i < 2; i++)
        sums[i] = !t.of[i].len ? number(0) : t.of[i].len == 1 ? t.of[i].data[0] : sum_of(e, t.of[i].len, t.of[i].data);
    return binary(e, TCC_EXPR_sub, sums[0], sums[1]);
}

static tcc_attr expr_of(estimate *e, const tcc_value *v, int depth)
{
    const tcc_op *op = v->def, *grid = op ? NULL : v->block->parent;
    int64_t by;
    if (grid && grid->code == TCC_OP_tile_grid)
        return middle_of(e, grid, v);
    switch (op && depth < DEEP ? op->code : TCC_OP_COUNT) {
    case TCC_OP_arith_const: { /* no expression has a negative number */
        int64_t i = tcc_attr_int(&op->attrs, "value", 1);
        return (tcc_attr){.kind = TCC_ATTR_INT, .i = i > 0 ? i : 0};
    }
    case TCC_OP_tensor_dim:
        return (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_attr_str(&op->attrs, "name", "")};
    case TCC_OP_arith_add:
    case TCC_OP_arith_sub: return expr_of_sum(e, v, depth);
    case TCC_OP_arith_mul: return expr_of_op(e, TCC_EXPR_mul, op, depth);
    case TCC_OP_arith_floor_div:
    case TCC_OP_arith_div: return expr_of_op(e, TCC_EXPR_div, op, depth);
    case TCC_OP_arith_shr: /* a division, as tilers write it */
        return tcc_value_is_int(op->operands[1], &by)
                   ? binary(e, TCC_EXPR_div, expr_of(e, op->operands[0], depth + 1), number((double)(INT64_C(1) << by)))
                   : number(1);
    case TCC_OP_arith_max: return expr_of_op(e, TCC_EXPR_max, op, depth);
    case TCC_OP_arith_min: return expr_of_op(e, TCC_EXPR_min, op, depth);
    default: return (tcc_attr){.kind = TCC_ATTR_INT, .i = 1};
    }
}

/* (hi - lo) / step, rounded up. */
static tcc_attr iterations_of(estimate *e, const tcc_op *loop)
{
    const tcc_scf_for_operands *of = TCC_VIEW(scf_for, loop);
    tcc_attr n = binary(e, TCC_EXPR_sub, expr_of(e, of->hi, 0), expr_of(e, of->lo, 0));
    n = binary(e, TCC_EXPR_ceildiv, n, expr_of(e, of->step, 0));
    int64_t ranks = tcc_attr_int(&loop->attrs, "ranks", 1);
    return ranks > 1 ? binary(e, TCC_EXPR_ceildiv, n, number((double)ranks)) : n;
}

/* The data that the CTAs that share a loop pass to the first of them. */
static double handing_cycles(estimate *e, const tcc_op *loop)
{
    int64_t ranks = tcc_attr_int(&loop->attrs, "ranks", 1);
    double bytes = 0;
    if (ranks <= 1)
        return 0;
    e->ranks = ranks;
    for (unsigned i = 0; i < loop->n_results; i++)
        bytes += (double)(tcc_type_count(loop->results[i].type) * tcc_scalar_bits(loop->results[i].type->elem)) / 8;
    return tcc_handing_cycles(e->target, (double)(ranks - 1) * bytes);
}

/* 1 where rows do not begin at lines, else 0: the elements to the next line, one at most. */
static tcc_attr is_off_line(estimate *e, const pitch *p)
{
    tcc_attr dim = {.kind = TCC_ATTR_STR, .s = p->dim};
    tcc_attr lines = binary(e, TCC_EXPR_mul, binary(e, TCC_EXPR_ceildiv, dim, number((double)p->line)),
                            number((double)p->line));
    return binary(e, TCC_EXPR_min, binary(e, TCC_EXPR_sub, lines, dim), number(1));
}

/* For an iteration, whose work is w if rows are aligned to lines */
static tcc_attr iteration_cycles(estimate *e, const tcc_work *w, int64_t stages)
{
    double base = tcc_iteration_cycles(e->target, w, stages, e->in_turn);
    tcc_attr *terms = TCC_NEW_ARRAY(e->ir->arena, tcc_attr, e->pitches.len + 1);
    size_t n = 0;
    terms[n++] = number(base);
    for (size_t i = 0; i < e->pitches.len; i++) {
        tcc_work off = *w;
        off.off_line_bytes += e->pitches.data[i].bytes;
        double more = tcc_iteration_cycles(e->target, &off, stages, e->in_turn) - base;
        if (more >= 1)
            terms[n++] = binary(e, TCC_EXPR_mul, is_off_line(e, &e->pitches.data[i]), number(more));
    }
    e->pitches.len = 0;
    return sum_of(e, n, terms);
}

static void add_block(estimate *e, const tcc_block *block, const tcc_op *loop, tcc_attr times)
{
    tcc_work w = {0};
    double handing = 0;
    for (tcc_op *op = block->first; op; op = op->next)
        switch (op->code) {
        case TCC_OP_tile_load:
        case TCC_OP_tile_gather: add_load(e, &w, op); break;
        case TCC_OP_tile_store: add_store(&w, op); break;
        case TCC_OP_tile_mma: add_mma(e->target, &w, op, loop); break;
        case TCC_OP_scf_for:
            add_block(e, op->regions[0], op, binary(e, TCC_EXPR_mul, times, iterations_of(e, op)));
            handing += handing_cycles(e, op);
            break;
        default: break;
        }
    int64_t stages = loop ? tcc_attr_int(&loop->attrs, "stages", 1) : 0;
    double moving = e->moves ? tcc_moving_cycles(e->target, &w) : 0;
    if (e->moves && loop) {
        TCC_PUSH(e->ir->arena, &e->terms, binary(e, TCC_EXPR_mul, number(moving), times));
        double alone = fmax(moving, e->target->latency_cycles);
        TCC_PUSH(e->ir->arena, &e->alone, binary(e, TCC_EXPR_mul, number(alone), times));
    } else if (e->moves)
        e->around = number(moving).i;
    else if (loop)
        TCC_PUSH(e->ir->arena, &e->terms, binary(e, TCC_EXPR_mul, iteration_cycles(e, &w, stages), times));
    else
        e->around = number(tcc_work_cycles(e->target, &w) + handing).i;
}

static tcc_attr multiprocessors(estimate *e)
{
    tcc_attr *sms = TCC_NEW_ARRAY(e->ir->arena, tcc_attr, 2);
    sms[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(e->ir, "device")};
    sms[1] = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(e->ir, tcc_device_attr_name(TCC_DEVICE_sms))};
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {sms, 2}};
}

/* Memory is shared by all running CTAs, so elements count, not rounds of tiles; but one that sweeps over rows takes as
 * long as its own loads, however few others there are. */
static tcc_attr moving(estimate *e, const tcc_op *grid, tcc_attr cycles)
{
    tcc_attr extents = tcc_attr_list(&grid->attrs, "extents"), tile = tcc_attr_list(&grid->attrs, "tile");
    tcc_attr *factors = TCC_NEW_ARRAY(e->ir->arena, tcc_attr, extents.list.n + 1);
    tcc_attr elements = {.kind = TCC_ATTR_INT, .i = 1};
    size_t n = 0;
    for (size_t i = 0; i < extents.list.n && i < tile.list.n; i++) {
        factors[n++] = extent_of(e, extents.list.items[i]);
        elements.i *= tile.list.items[i].i;
    }
    factors[n++] = cycles;
    tcc_attr by = binary(e, TCC_EXPR_mul, multiprocessors(e), elements);
    tcc_attr all = binary(e, TCC_EXPR_ceildiv, tcc_expr_attr(e->ir, TCC_EXPR_mul, n, factors, 1), by);
    if (tcc_attr_find(&grid->block->func->attrs, "row") && e->alone.len)
        all = binary(e, TCC_EXPR_max, all, sum_of(e, e->alone.len, e->alone.data));
    bool single = tcc_attr_list(&grid->attrs, "spread").list.items[0].i == 1; /* for what the others cannot take */
    return binary(e, TCC_EXPR_add, all, number(e->target->latency_cycles + single));
}

/* Times TCC_ROUND (tcc_rounds). `whole` gets their number, each as long as a full one. */
static tcc_attr rounds_of(estimate *e, const tcc_op *grid, tcc_attr *whole)
{
    tcc_attr extents = tcc_attr_list(&grid->attrs, "extents"), tile = tcc_attr_list(&grid->attrs, "tile");
    tcc_attr cluster = tcc_attr_list(&grid->attrs, "cluster");
    tcc_attr *tiles = TCC_NEW_ARRAY(e->ir->arena, tcc_attr, extents.list.n + 2);
    size_t n = 0;
    for (size_t i = 0; i < extents.list.n && i < tile.list.n; i++) {
        int64_t ctas = i < cluster.list.n ? cluster.list.items[i].i : 1;
        tcc_attr clusters = binary(e, TCC_EXPR_ceildiv, extent_of(e, extents.list.items[i]),
                                   number((double)(tile.list.items[i].i * ctas)));
        tiles[n++] = binary(e, TCC_EXPR_mul, clusters, number((double)ctas));
    }
    if (e->ranks > 1)
        tiles[n++] = number((double)e->ranks);
    tcc_attr all = tcc_expr_attr(e->ir, TCC_EXPR_mul, n, tiles, 1);
    tiles[n] = number(TCC_ROUND - TCC_ROUND_FIXED);
    *whole = binary(e, TCC_EXPR_ceildiv, all, multiprocessors(e));
    tcc_attr fixed = binary(e, TCC_EXPR_mul, number(TCC_ROUND_FIXED), *whole);
    tcc_attr rest = tcc_expr_attr(e->ir, TCC_EXPR_mul, n + 1, tiles, 1);
    return binary(e, TCC_EXPR_add, fixed, binary(e, TCC_EXPR_ceildiv, rest, multiprocessors(e)));
}

/* `loops`: the cycles of a tile's loops, `all`: those and the others. */
static tcc_attr in_rounds(estimate *e, const tcc_op *grid, bool in_parts, tcc_attr loops, tcc_attr all)
{
    tcc_attr whole, cost = binary(e, TCC_EXPR_mul, rounds_of(e, grid, &whole), all);
    if (in_parts) {
        tcc_attr again = binary(e, TCC_EXPR_mul, binary(e, TCC_EXPR_sub, whole, number(1)), loops);
        cost = binary(e, TCC_EXPR_add, cost, binary(e, TCC_EXPR_mul, number(TCC_ROUND_READS), again));
    }
    return binary(e, TCC_EXPR_div, cost, number(TCC_ROUND));
}

static const tcc_op *find_grid(const tcc_func *f)
{
    const tcc_op *op = f->body->first;
    while (op && op->code != TCC_OP_tile_grid)
        op = op->next;
    return op;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_op *grid = find_grid(f);
    if (!grid || !tcc_func_is_variant(f) || tcc_attr_find(&f->attrs, "cost"))
        return TCC_OK;
    tcc_schedule s = tcc_schedule_of(f);
    bool in_turn = s.consumers == TCC_CONSUMERS_PINGPONG;
    estimate e = {.ir = ctx->ir, .target = tcc_func_target(f), .in_turn = in_turn,
                  .moves = tcc_attr_find(&grid->attrs, "spread")};
    add_block(&e, grid->regions[0], NULL, (tcc_attr){.kind = TCC_ATTR_INT, .i = 1});
    bool persistent = tcc_attr_int(&grid->attrs, "persistent", 0);
    int64_t hidden = persistent ? (int64_t)((double)e.around * tcc_hidden_part(in_turn)) : 0; /* but once */
    tcc_attr loops = sum_of(&e, e.terms.len, e.terms.data);
    tcc_attr around = number((double)(e.around - hidden + (e.by_element ? LAST_RESORT : 0)));
    tcc_attr cycles = binary(&e, TCC_EXPR_add, loops, around);
    tcc_attr cost = e.moves ? moving(&e, grid, cycles) : in_rounds(&e, grid, s.split > 1, loops, cycles);
    int64_t gap = tcc_func_is_step(f) ? tcc_step_gap_cycles : 0;
    cost = binary(&e, TCC_EXPR_add, cost, number((double)(hidden + gap)));
    tcc_attr_set(ctx->ir, &f->attrs, "cost", cost, (tcc_loc){0, 0});
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_estimate_cost = {
    "estimate-cost", "estimate the cost of launching a variant", .run = run,
    .requires = TCC_UP_TO(stages) | TCC_STATE(grid)};

/* choose-schedule: complete the schedule that the user gave, and check that it fits the target.
 *
 * Before:  func @f(…) {tile = [n, 128]}
 * After:   func @f(…) {tile = [m, 128, n, 128, k, 64], stages = 7, warpgroups = 2, …}
 *
 * What the user wrote is kept or refused, never changed. What is missing is chosen: of the tiles that fit the
 * registers (pressure.h), with as many stages as fit shared memory, up to 8, the one whose skeleton costs least
 * (skeleton.h). Where registers are short, the function gets `chunks`.
 *
 * Requires choose-variants. Preserves the body.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/assume.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/choose_axes.h"
#include "passes/families.h"
#include "passes/live.h"
#include "passes/passes.h"
#include "passes/pointwise.h"
#include "passes/skeleton.h"
#include "support/str.h"

enum { ACCESS_BYTES = 16, GROUP = 16 };

const tcc_named_attr *tcc_choice_given(const tcc_choice *ch, const char *key)
{
    return tcc_attr_find(&ch->f->attrs, key);
}

/* Where to report a problem with a key: at the user's entry, else at the kernel. */
tcc_loc tcc_choice_place(const tcc_choice *ch, const char *key)
{
    const tcc_named_attr *a = tcc_choice_given(ch, key);
    return a && a->loc.line ? a->loc : ch->f->loc;
}

const char tcc_columns_of_instruction[] = "the matrix instruction's columns";
const char tcc_depth_of_instruction[] = "the matrix instruction's depth";

tcc_status tcc_choice_read_tile(tcc_choice *ch, const tcc_tile_steps *steps)
{
    tcc_attr tile = tcc_attr_list(&ch->f->attrs, "tile");
    const struct {
        const char *name;
        int64_t *size, step, max;
        bool *given;
        const char *why;
    } dims[] = {
        {ch->c.axes[0], &ch->s.m, steps->m, steps->max, &ch->given_m,
         "the matrix instruction's rows"},
        {ch->c.axes[1], &ch->s.n, steps->n, steps->max, &ch->given_n,
         steps->why_n},
        {ch->c.k, &ch->s.k, steps->k, steps->max, &ch->given_k, steps->why_k},
    };
    for (size_t i = 0; i + 1 < tile.list.n; i += 2) {
        const char *name = tile.list.items[i].s;
        int64_t size = tile.list.items[i + 1].i;
        size_t d = 0;
        while (d < 3 && strcmp(dims[d].name, name))
            d++;
        if (d == 3) {
            tcc_error(ch->ctx->diag, TCC_ERR_UNSUPPORTED, tcc_choice_place(ch, "tile"),
                      "not supported yet: tiling index '%s'; every CTA takes one value of it",
                      name);
            return TCC_ERR_UNSUPPORTED;
        }
        if (size < dims[d].step || size % dims[d].step || size > dims[d].max) {
            tcc_status status = TCC_CHOICE_REFUSE(
                ch, "tile", "tile %s %lld: need a multiple of %lld (%s) up to %lld", name,
                (long long)size, (long long)dims[d].step, dims[d].why, (long long)dims[d].max);
            if (d == 0 && *ch->c.axes[1])
                tcc_note(ch->ctx->diag, ch->f->loc,
                         "'%s' runs along the rows because '%s' comes last in the output%s", name,
                         ch->c.axes[1], tcc_choice_may_swap(ch) ? "; 'operands swapped' exchanges them" : "");
            return status;
        }
        *dims[d].size = size;
        *dims[d].given = true;
    }
    return TCC_OK;
}

static int64_t round_up(int64_t x, int64_t multiple)
{
    return (x + multiple - 1) / multiple * multiple;
}

/* The smallest tile that covers a known extent, else `most`. */
int64_t tcc_choice_cover(tcc_dim extent, int64_t step, int64_t most)
{
    int64_t whole = extent.name ? most : round_up(extent.size > 0 ? extent.size : 1, step);
    return whole < most ? whole : most;
}

/* For each element of a computed operand. */
static int64_t registers_of_single_loads(const tcc_choice *ch, const tcc_sum_operand *o)
{
    enum { ADDRESS = 2, ELEMENT = 1 };
    tcc_map ops = TCC_MAP(ch->ctx->scratch);
    int64_t n = 0;
    tcc_find_elementwise(o->value, ch->ctx->scratch, &ops);
    for (const tcc_op *op = ch->f->body->first; op; op = op->next)
        if (tcc_map_get(&ops, op) && tcc_sum_operand_loads_singly(o, op))
            n += ELEMENT + (tcc_read_is_first_there(op) ? ADDRESS : 0);
    return n;
}

bool tcc_choice_find_sums(tcc_choice *ch)
{
    const tcc_family_passes *passes = tcc_family_passes_of(ch->target);
    if (!tcc_space_of(ch->f, &ch->c) || !ch->c.n_sums)
        return false;
    ch->s.more_sums = (int64_t)ch->c.n_sums - 1;
    ch->s.more_a = ch->s.more_b = -1;
    ch->s.own_a = ch->s.own_b = 0;
    for (size_t i = 0; i < ch->c.n_operands; i++)
        (*(ch->c.operands[i].axis ? &ch->s.more_b : &ch->s.more_a))++;
    for (size_t i = 0; i < ch->c.n_operands; i++)
        if (tcc_sum_operand_is_computed(&ch->c.operands[i]))
            ch->single_loads[ch->c.operands[i].axis] += registers_of_single_loads(ch, &ch->c.operands[i]);
    for (size_t i = 0; i < ch->c.n_operands && tcc_target_can(ch->target, TCC_CAN_wgmma); i++)
        if (tcc_sum_operand_is_put(&ch->c, &ch->c.operands[i]))
            (*(ch->c.operands[i].axis ? &ch->s.own_b : &ch->s.own_a))++;
    if (passes && passes->counts_pressure)
        ch->epilogue = tcc_epilogue_of(ch->f, &ch->c, ch->ctx->scratch);
    return true;
}

tcc_lines tcc_choice_lines(const tcc_choice *ch, int axis)
{
    tcc_lines most = TCC_LINES_ALL;
    for (size_t i = 0; i < ch->c.n_operands; i++) {
        const tcc_sum_operand *o = &ch->c.operands[i];
        tcc_lines lines = tcc_lines_of(TCC_VIEW(tensor_read, o->read)->tensor->type);
        if (o->axis == axis && lines > most)
            most = lines;
    }
    return most;
}

bool tcc_choice_may_leave_lines(const tcc_choice *ch)
{
    return tcc_choice_lines(ch, 0) != TCC_LINES_ALL || tcc_choice_lines(ch, 1) != TCC_LINES_ALL;
}

bool tcc_choice_computes(const tcc_choice *ch, int axis)
{
    bool any = false;
    for (size_t i = 0; i < ch->c.n_operands; i++)
        any |= ch->c.operands[i].axis == axis && tcc_sum_operand_is_computed(&ch->c.operands[i]);
    return any;
}

static bool computes_any(const tcc_choice *ch)
{
    return tcc_choice_computes(ch, 0) || tcc_choice_computes(ch, 1);
}

bool tcc_choice_is_tiled(const tcc_choice *ch)
{
    return tcc_tile_size_of(ch->f, ch->c.axes[0], 0) || tcc_tile_size_of(ch->f, ch->c.axes[1], 0);
}

bool tcc_choice_may_swap(const tcc_choice *ch)
{
    const tcc_schedule_key *key = &tcc_schedule_keys[TCC_KEY_operands];
    return tcc_schedule_key_is_for(key, ch->target) && !tcc_choice_given(ch, key->name) && !computes_any(ch);
}

/* Whether the number of rows is known to be small: columns come in units of eight, and the part of a box
 * beyond a tensor's edge is slow to copy. */
static bool has_few_rows(const tcc_choice *ch)
{
    enum { FEW_ROWS = 32 };
    tcc_dim rows = ch->c.extents[0], columns = ch->c.extents[1];
    return !rows.name && rows.size <= FEW_ROWS && (columns.name || columns.size > rows.size);
}

/* Decides which index the rows run along. */
static tcc_status choose_order(tcc_choice *ch)
{
    const tcc_schedule_key *key = &tcc_schedule_keys[TCC_KEY_operands];
    if (!tcc_schedule_key_is_for(key, ch->target))
        return TCC_OK;
    ch->s.operands = (tcc_order)tcc_schedule_key_of(ch->f, TCC_KEY_operands, TCC_OPERANDS_IN_ORDER);
    if (ch->c.fixed && ch->s.operands != TCC_OPERANDS_IN_ORDER)
        return TCC_CHOICE_REFUSE(ch, key->name,
                                 "operands swapped: where one operand is computed it provides the rows, since "
                                 "instructions take it from registers");
    if (!tcc_choice_may_swap(ch) || tcc_choice_is_tiled(ch) || !has_few_rows(ch))
        return TCC_OK;
    ch->s.operands = TCC_OPERANDS_SWAPPED;
    tcc_schedule_key_set(ch->f, TCC_KEY_operands, ch->s.operands);
    tcc_swap_axes(ch->f);
    tcc_choice_find_sums(ch);
    return TCC_OK;
}

tcc_status tcc_choose_raster(tcc_choice *ch, int64_t group)
{
    const tcc_schedule_key *raster = &tcc_schedule_keys[TCC_KEY_raster], *key = &tcc_schedule_keys[TCC_KEY_group];
    tcc_schedule *s = &ch->s;
    s->raster = (tcc_raster)tcc_schedule_key_of(ch->f, TCC_KEY_raster, TCC_RASTER_GROUPED);
    bool grouped = s->raster == TCC_RASTER_GROUPED;
    s->group = tcc_schedule_key_of(ch->f, TCC_KEY_group, grouped ? group : 1);
    if (!grouped && s->group > 1)
        return TCC_CHOICE_REFUSE(ch, key->name, "group %lld: need raster grouped; there are no groups with raster %s",
                                 (long long)s->group, tcc_schedule_key_word(raster, s->raster));
    return TCC_OK;
}

/* ---- the pass ------------------------------------------------------------------------------- */

static tcc_status refuse_foreign(tcc_choice *ch, const char *key)
{
    tcc_str keys = {0};
    for (int i = 0; i < TCC_KEY_COUNT; i++)
        if (tcc_schedule_key_is_for(&tcc_schedule_keys[i], ch->target))
            tcc_str_printf(&keys, " %s", tcc_schedule_keys[i].name);
    const tcc_target *target = tcc_target_of(ch->f->ir);
    bool as_plain = target != ch->target;
    tcc_status status = TCC_CHOICE_REFUSE(ch, key, "'%s' means nothing on %s%s keys are:%s", key, target->name,
                                          as_plain ? " for what warps compute as on other targets, where" : ", whose",
                                          tcc_str_text(&keys));
    tcc_str_free(&keys);
    return status;
}

/* As only attributes that are written by hand can have it. */
static tcc_status refuse_value(tcc_choice *ch, const tcc_schedule_key *key, const tcc_attr *value)
{
    tcc_str text = {0};
    tcc_str_printf(&text, "%s ", key->name);
    if (value->kind == TCC_ATTR_INT)
        tcc_str_printf(&text, "%lld", (long long)value->i);
    else
        tcc_str_puts(&text, value->kind == TCC_ATTR_STR ? value->s : "of another kind");
    tcc_str_puts(&text, ": need ");
    tcc_schedule_key_print_choices(&text, key);
    tcc_status status = TCC_CHOICE_REFUSE(ch, key->name, "%s", tcc_str_text(&text));
    tcc_str_free(&text);
    return status;
}

/* Whether every key that was given is one of the target's, with a value that it takes. */
static tcc_status check_keys(tcc_choice *ch)
{
    tcc_status status = TCC_OK;
    int64_t value;
    for (int i = 0; i < TCC_KEY_COUNT; i++) {
        const tcc_schedule_key *key = &tcc_schedule_keys[i];
        const tcc_named_attr *a = tcc_choice_given(ch, key->name);
        if (a && a->loc.line && !tcc_schedule_key_is_for(key, ch->target))
            status = refuse_foreign(ch, key->name);
        else if (a && !tcc_schedule_key_is_list(key) && !tcc_schedule_key_read(key, &a->value, &value))
            status = refuse_value(ch, key, &a->value);
    }
    return status;
}

/* Sums of one kernel share tiles, and one kind of instructions multiplies all. Those of f64 have blocks of another
 * shape. */
static bool can_share(const tcc_choice *ch, const tcc_sum *x, const tcc_sum *y)
{
    const tcc_sum *const sums[] = {x, y};
    tcc_instr instr[2];
    bool wide[2];
    for (int i = 0; i < 2; i++) {
        tcc_scalar a = tcc_sum_operand_elem(sums[i]->a), b = tcc_sum_operand_elem(sums[i]->b);
        tcc_scalar in = sums[i]->op->results[0].type->elem;
        wide[i] = in == TCC_f64;
        instr[i] = tcc_target_instr_for(ch->target, TCC_INSTR_COUNT, a, b, in);
    }
    return instr[0] == instr[1] && wide[0] == wide[1];
}

static tcc_status check_sums(const tcc_choice *ch)
{
    const tcc_sum *first = &ch->c.sums[0];
    for (size_t i = 1; i < ch->c.n_sums; i++) {
        const tcc_sum *sum = &ch->c.sums[i];
        if (can_share(ch, first, sum))
            continue;
        tcc_error(ch->ctx->diag, TCC_ERR_UNSUPPORTED, sum->op->loc,
                  "not supported yet: a sum of %s added in %s beside a sum of %s added in %s on %s",
                  tcc_scalar_name(tcc_sum_operand_elem(sum->a)), tcc_scalar_name(sum->op->results[0].type->elem),
                  tcc_scalar_name(tcc_sum_operand_elem(first->a)), tcc_scalar_name(first->op->results[0].type->elem),
                  tcc_target_of(ch->f->ir)->name);
        tcc_note(ch->ctx->diag, first->op->loc, "the first sum is here");
        return TCC_ERR_UNSUPPORTED;
    }
    return TCC_OK;
}

bool tcc_choice_runs_across(const tcc_choice *ch, int axis)
{
    bool any = false;
    for (size_t i = 0; i < ch->c.n_operands; i++) {
        const tcc_sum_operand *o = &ch->c.operands[i];
        any |= o->axis == axis && tcc_sum_operand_runs_across(o);
    }
    return any;
}

/* Bytes of the widest element that goes through shared memory. */
static int64_t widest(const tcc_space *c)
{
    int64_t bits = 0;
    for (size_t i = 0; i < c->n_operands; i++) {
        int64_t of = tcc_scalar_bits(c->operands[i].read->results[0].type->elem);
        bits = of > bits ? of : bits;
    }
    return (bits + 7) / 8;
}

/* The variant that is named as its kernel, or as the step of one that it is; NULL when there is none. */
static const tcc_func *first_variant(const tcc_func *f)
{
    const tcc_func *first = tcc_func_find(f->ir, tcc_func_first(f));
    return first && tcc_func_is_variant(first) ? first : NULL;
}

/* Whether a variant before f has the same assumptions: then f is a tile of the menu. */
static bool is_another_tile(const tcc_func *f)
{
    const tcc_attr assumes = tcc_attr_list(&f->attrs, "assumes");
    for (const tcc_func *g = first_variant(f); g && g != f; g = g->next) {
        const tcc_attr others = tcc_attr_list(&g->attrs, "assumes");
        bool same_order = !strcmp(tcc_attr_str(&g->attrs, "order", ""), tcc_attr_str(&f->attrs, "order", ""));
        if (tcc_func_is_variant(g) && !strcmp(tcc_func_kernel(g), tcc_func_kernel(f)) && same_order &&
            tcc_attr_equal(&assumes, &others))
            return true;
    }
    return false;
}

/* By what the sums are multiplied, all by one kind: what is asked for, else what the target has for them. */
static tcc_instr instr_of(const tcc_choice *ch)
{
    const tcc_sum *sum = &ch->c.sums[0];
    tcc_instr first = tcc_target_instr_for(ch->target, TCC_INSTR_COUNT, tcc_sum_operand_elem(sum->a),
                                           tcc_sum_operand_elem(sum->b), sum->op->results[0].type->elem);
    tcc_instr otherwise = first == TCC_INSTR_COUNT ? tcc_target_instr(ch->target) : first;
    return (tcc_instr)tcc_schedule_key_of(ch->f, TCC_KEY_instr, otherwise);
}

/* Has threads compute an element each; false if they cannot. */
static bool become_naive(const tcc_choice *ch)
{
    tcc_schedule_key_set(ch->f, TCC_KEY_instr, TCC_INSTR_NAIVE);
    if (!tcc_choose_axes(ch->f)) {
        tcc_attr_remove(&ch->f->attrs, tcc_schedule_keys[TCC_KEY_instr].name);
        return false;
    }
    if (tcc_target_of(ch->f->ir)->plain)
        tcc_attr_set_str(ch->f->ir, &ch->f->attrs, "target", tcc_target_of(ch->f->ir)->plain);
    return true;
}

static tcc_status choose_tile(tcc_choice *ch, const tcc_family_passes *passes)
{
    tcc_status status = tcc_choose_raster(ch, GROUP);
    return status ? status : passes->choose(ch);
}

/* If no tile of its operands and results fits the target, threads compute an element each: *naive. What was given is
 * refused instead. */
static tcc_status choose_what_fits(tcc_choice *ch, const tcc_family_passes *passes, bool *naive)
{
    tcc_choice trial = *ch;
    tcc_pass_ctx ctx = *ch->ctx;
    tcc_diag silent = {0};
    ctx.diag = &silent;
    trial.ctx = &ctx;
    if (!tcc_schedule_is_open(ch->f))
        return choose_tile(ch, passes);
    if (!choose_tile(&trial, passes)) {
        trial.ctx = ch->ctx;
        *ch = trial;
        return TCC_OK;
    }
    if (!become_naive(ch))
        return choose_tile(ch, passes);
    *naive = true;
    tcc_warn(ch->ctx->diag, ch->f->loc,
             "no tile of the operands and results of '%s' fits the registers and the shared memory of %s: each thread "
             "computes an element by itself, which is slow; several kernels are faster",
             ch->f->name, ch->target->name);
    return TCC_OK;
}

/* What is known of the registers under ch->s. */
static void set_pressure(const tcc_choice *ch)
{
    if (!ch->epilogue)
        return;
    tcc_pressure p = tcc_pressure_of(ch->epilogue, &ch->s, ch->target, tcc_assumes_all_aligned(ch->f, ACCESS_BYTES));
    tcc_pressure_set(ch->f, &p, tcc_choice_place(ch, "tile"));
}

void tcc_choose_pressure(tcc_pass_ctx *ctx, tcc_func *f)
{
    tcc_choice ch = {.ctx = ctx, .f = f, .target = tcc_func_target(f)};
    if (!tcc_choice_find_sums(&ch))
        return;
    ch.s = tcc_schedule_of(f);
    set_pressure(&ch);
}

static void finish(const tcc_choice *ch)
{
    set_pressure(ch);
    tcc_schedule_set(ch->f, &ch->s, ch->c.axes[0], ch->c.axes[1], ch->c.k);
}

bool tcc_choice_offer(tcc_choice *ch)
{
    const tcc_family_passes *passes = tcc_family_passes_of(ch->target);
    if (!tcc_choice_find_sums(ch) || choose_order(ch) || choose_tile(ch, passes) || !passes->has_room(ch))
        return false;
    finish(ch);
    tcc_attr_set_int(ch->f->ir, &ch->f->attrs, "offered", 1);
    return true;
}

tcc_status tcc_choose_schedule(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    if (tcc_attr_find(&f->attrs, "offered")) {
        tcc_attr_remove(&f->attrs, "offered");
        *changed = true;
        return TCC_OK;
    }
    tcc_choice ch = {.ctx = ctx, .f = f, .target = tcc_func_target(f)};
    bool multiplies = tcc_func_is_variant(f) && tcc_choice_find_sums(&ch);
    if (!tcc_func_is_variant(f) || !ch.c.n_axes)
        return TCC_OK;
    const tcc_family_passes *passes = tcc_family_passes_wanted(ch.target, ctx->diag, f->loc);
    if (!passes)
        return TCC_ERR_UNSUPPORTED;
    if (!multiplies) {
        tcc_status wrong = check_keys(&ch);
        *changed = true;
        return wrong ? wrong : ch.c.streams ? tcc_choose_stream(&ch) : tcc_choose_pointwise(&ch);
    }
    ch.s.target = ch.target;
    ch.s.instr = instr_of(&ch);
    tcc_status status = check_keys(&ch);
    status = status ? status : check_sums(&ch);
    if (status)
        return status;
    const tcc_func *first = first_variant(f);
    ch.elem_bytes = widest(&ch.c);
    bool aligned = tcc_assumes_all_aligned(f, ACCESS_BYTES);
    bool generic = !tcc_copying_of_operands(passes->copying, f, &ch.c);
    status = generic ? TCC_OK : choose_order(&ch);
    if (status)
        return status;
    bool naive = first && f != first && tcc_is_naive(first) && become_naive(&ch);
    if (naive) { /* as the first one */
    } else if (generic) {
        ch.s.group = GROUP;
        passes->choose_generic(&ch);
    } else if (!aligned && first && f != first && tcc_func_target(first) == ch.target && !is_another_tile(f)) {
        /* as the first one, if that fits */
        if (ctx->diag->n_errors)
            return TCC_OK;
        ch.s = tcc_schedule_of(first);
        if (ch.s.split == 1 && ch.s.epilogue == TCC_STORING_TMA) /* parts are aligned */
            ch.s.epilogue = TCC_STORING_WORDS;
        if (passes->may_lack && passes->may_lack(&ch) && tcc_schedule_is_open(f) && tcc_skeleton_need(&ch).lacks > TCC_LIVE_SPARE)
            status = choose_what_fits(&ch, passes, &naive);
    } else {
        status = choose_what_fits(&ch, passes, &naive);
    }
    if (status)
        return status;
    if (naive)
        return tcc_choose_schedule(ctx, f, changed);
    if (!generic && !tcc_func_is_step(f) && (f == first || tcc_attr_find(&f->attrs, "before")))
        tcc_tile_menu_offer(&ch);
    finish(&ch);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_schedule = {
    "choose-schedule", "complete the schedule and check that it fits the target", .run = tcc_choose_schedule,
    .requires = TCC_UP_TO(variants),
    .leaves = TCC_STATE(schedule)};

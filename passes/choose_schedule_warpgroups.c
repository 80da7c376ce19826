/* choose_schedule_warpgroups: sm_90a's part of choose-schedule.
 *
 * The tile with the least estimated time of those that fit the registers, stages to fill shared memory with, in how
 * many parts sums of few tiles are computed, and what roles and turns want of each other.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/assume.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/families.h"
#include "passes/skeleton.h"

enum {
    STAGES_MAX_OFF_LINES = 5,
    K_BYTES = 128, /* of a stage: as much as is swizzled together */
    BOX_MAX = 256, /* of one dimension: cuTensorMapEncodeTiled */
    TMA_BYTES = 16,
    NARROWEST_IN_TURN = 96 /* columns of tiles that one warpgroup multiplies as fast as two do */
};

static bool is_given(const tcc_choice *ch, int key)
{
    return tcc_choice_given(ch, tcc_schedule_keys[key].name);
}

/* The registers that the schedule needs, in the aligned variant or the other one. */
static tcc_pressure pressure(const tcc_choice *ch, bool aligned)
{
    return tcc_pressure_of(ch->epilogue, &ch->s, ch->target, aligned);
}

bool tcc_sm90_has_room(const tcc_choice *ch)
{
    tcc_pressure a = pressure(ch, true), b = pressure(ch, false);
    bool aligned = tcc_assumes_all_aligned(ch->f, TMA_BYTES);
    if (ch->s.consumers == TCC_CONSUMERS_PINGPONG) /* tiles so wide that ptxas must recompute some values */
        return a.least <= a.limit && a.scarce <= a.limit && (b.scarce <= b.limit || aligned);
    return a.least <= a.limit && a.separate <= a.limit && a.scarce <= a.limit &&
           b.separate <= b.limit && b.scarce <= b.limit;
}

/* For the schedule's consumers. */
static int64_t warpgroups_for(const tcc_schedule *s, int64_t m)
{
    return s->consumers == TCC_CONSUMERS_PINGPONG ? 2 : m == 64 ? 1 : m == 192 ? 3 : 2;
}

/* Rows of which the tile must be a multiple. */
static int64_t rows_of_all(const tcc_schedule *s)
{
    return 64 * s->warpgroups / tcc_schedule_turns(s);
}

/* Whether CTAs that share copies all begin at once, with rows that may not begin at lines of L2. */
static bool begin_off_lines(const tcc_choice *ch, const tcc_schedule *s)
{
    return s->cluster_m * s->cluster_n > 1 && s->cluster_k == 1 && !s->persistent &&
           tcc_choice_may_leave_lines(ch);
}

/* The instruction whose steps are those of all. */
static tcc_mma_shape instruction(const tcc_choice *ch)
{
    const tcc_sum *sum = tcc_space_narrowest(&ch->c);
    tcc_mma_shape shape = {64, 16, 8, 256}; /* where there is none, which choose-mma says */
    tcc_mma_shape_find(ch->target, TCC_INSTR_WGMMA, tcc_sum_operand_elem(sum->a), tcc_sum_operand_elem(sum->b),
                       sum->op->results[0].type->elem, &shape);
    return shape;
}

/* What their columns are a multiple of: rows of operands that run along them are copied 16 bytes at a time. What an
 * operand is computed of may be narrower than what is multiplied. */
static int64_t step_n(const tcc_choice *ch)
{
    enum { CHUNK_BITS = 128 };
    int64_t step = instruction(ch).n_step;
    for (size_t i = 0; i < ch->c.n_operands; i++) {
        const tcc_sum_operand *o = &ch->c.operands[i];
        int64_t bits = tcc_scalar_bits(o->read->results[0].type->elem);
        while (o->axis == 1 && tcc_sum_operand_runs_across(o) && step * bits % CHUNK_BITS)
            step *= 2;
    }
    return step;
}

/* Columns of the instructions that multiply a tile; 0: they are too many, or too few for it. */
static int64_t columns_of(const tcc_choice *ch, const tcc_schedule *s)
{
    int64_t n = tcc_schedule_instr_n(s, ch->target);
    return n % step_n(ch) ? 0 : n;
}

/* Small tiles are for sums that wait for memory: as deep as shared memory is filled by. */
static int64_t depth_for(const tcc_choice *ch, const tcc_schedule *s)
{
    int64_t k = K_BYTES * 8 / tcc_scalar_bits(tcc_sum_operand_elem(tcc_space_widest(&ch->c)->a));
    int64_t lines = (1 + s->more_a) * s->m + (1 + s->more_b) * s->n;
    bool leaves_half = 2 * TCC_MOST_STAGES * lines * k * ch->elem_bytes <= ch->target->smem_bytes;
    return tcc_choice_cover(ch->c.k_extent, instruction(ch).k, leaves_half ? 2 * k : k);
}

/* Whether all extents are known. */
static bool is_known(const tcc_choice *ch)
{
    bool known = !ch->c.k_extent.name && !ch->c.parts.index;
    for (size_t i = 0; i < ch->c.n_axes; i++)
        known &= !ch->c.extents[i].name;
    return known;
}

/* The largest number of parts of a sum to try: if all extents are known and the user set none, as many as have
 * a tile of k each, up to the limit of the key. */
static int64_t most_parts(const tcc_choice *ch, const tcc_schedule *s)
{
    int64_t tiles = ch->c.k_extent.size / (s->k ? s->k : 1), most = tcc_schedule_keys[TCC_KEY_split].max;
    return !is_known(ch) || is_given(ch, TCC_KEY_split) ? s->split : tiles < most ? tiles : most;
}

/* Tiles of a result with known extents. */
static int64_t tiles_of(const tcc_choice *ch, const tcc_schedule *s)
{
    int64_t tiles = 1;
    for (size_t i = 0; i < ch->c.n_axes; i++) {
        int64_t tile = i == 0 ? s->m : i == 1 ? s->n : 1;
        tiles *= (ch->c.extents[i].size + tile - 1) / tile;
    }
    return tiles > 0 ? tiles : 1;
}

/* A tile, with sums in as many parts as are given, in a power of two times as many, and in as many as fill the
 * multiprocessors once or twice. */
static void try_parts(tcc_search *q, const tcc_schedule *s)
{
    enum { POWERS = 16, FILLS = 2 };
    tcc_schedule t = *s;
    int64_t most = most_parts(q->ch, s), once = most > s->split ? t.target->sms / tiles_of(q->ch, s) : 0;
    tcc_search_try(q, s, 1);
    for (int i = 1; most > s->split && i < POWERS + FILLS; i++) {
        t.split = i < POWERS ? s->split << i : (i - POWERS + 1) * once;
        if (t.split > s->split && t.split <= most)
            tcc_search_try(q, &t, 1);
    }
}

/* How CTAs and their consumers go about their tiles. */
typedef struct structure {
    tcc_persistence persistent;
    tcc_sharing consumers;
    int64_t cluster; /* CTAs along m */
} structure;
static const structure structures[] = {{TCC_PERSISTENT_NONE, TCC_CONSUMERS_COOPERATIVE, 1},
                                       {TCC_PERSISTENT_STATIC, TCC_CONSUMERS_COOPERATIVE, 1},
                                       {TCC_PERSISTENT_STATIC, TCC_CONSUMERS_PINGPONG, 1},
                                       {TCC_PERSISTENT_NONE, TCC_CONSUMERS_COOPERATIVE, 2},
                                       {TCC_PERSISTENT_STATIC, TCC_CONSUMERS_COOPERATIVE, 2}};

/* Whether a structure is what the user gave, or may be chosen: for kernels whose extents are not known the menu has
 * them. A cluster pays where rows do not begin at lines of L2, for which every copy counts. */
static bool may_have(const tcc_choice *ch, const structure *with)
{
    const tcc_schedule *s = &ch->s;
    bool as_given = !with->persistent == !s->persistent && with->consumers == s->consumers && with->cluster == 1;
    bool in_turn = with->consumers == TCC_CONSUMERS_PINGPONG, clusters = with->cluster > 1;
    bool may_turn = !is_given(ch, TCC_KEY_consumers) && !is_given(ch, TCC_KEY_warpgroups) &&
                    s->producer == TCC_PRODUCER_WARPGROUP && !s->own_b;
    bool may_share =
        !is_given(ch, TCC_KEY_cluster) && !tcc_choice_computes(ch, 1) &&
        (tcc_choice_lines(ch, 0) == TCC_LINES_NOT_ALL || tcc_choice_lines(ch, 1) == TCC_LINES_NOT_ALL);
    bool open = is_known(ch) && s->cluster_k <= 1 && !is_given(ch, TCC_KEY_persistent);
    return as_given ||
           (open && s->producer != TCC_PRODUCER_NONE &&
            (in_turn ? may_turn : with->consumers == s->consumers) && (!clusters || may_share));
}

/* Few rows of a result, which are columns of a tile, are stored by the threads that hold them: so they may begin
 * anywhere, where the other variant has larger tiles. */
static tcc_storing storing_for(const tcc_choice *ch, const tcc_schedule *s)
{
    enum { FEW = 32 };
    bool few = s->operands == TCC_OPERANDS_SWAPPED && s->n <= FEW && !is_given(ch, TCC_KEY_epilogue);
    return few ? TCC_STORING_INTERLEAVED : s->epilogue;
}

/* Completes a schedule with this many rows and columns but for its stages; false if it does not fit the registers. */
static bool complete(tcc_choice *ch, tcc_schedule *t, bool given_warpgroups)
{
    t->epilogue = storing_for(ch, t);
    t->stages = tcc_schedule_key_of(ch->f, TCC_KEY_stages, 0);
    if (!given_warpgroups)
        t->warpgroups = warpgroups_for(t, t->m);
    if (!ch->given_k)
        t->k = depth_for(ch, t);
    ch->s = *t;
    return t->m % rows_of_all(t) == 0 && columns_of(ch, t) && tcc_sm90_has_room(ch);
}

/* The search's user: what was given, and whether warpgroups were. */
typedef struct start {
    tcc_schedule s;
    bool warpgroups;
} start;

/* The tiles of one structure, wide ones first: they load less. */
static void list_tiles(tcc_search *q, const structure *with)
{
    tcc_choice *ch = q->ch;
    const start *g = q->user;
    int64_t step = tcc_choice_columns(ch) * with->cluster;
    for (int64_t m = ch->given_m ? g->s.m : 64; m <= (ch->given_m ? g->s.m : 128); m += 64)
        for (int64_t n = ch->given_n ? g->s.n : 256; n >= (ch->given_n ? g->s.n : step); n -= step) {
            tcc_schedule t = g->s;
            t.m = m;
            t.n = n;
            t.persistent = with->persistent && g->s.persistent ? g->s.persistent : with->persistent;
            t.consumers = with->consumers;
            t.cluster_m = with->cluster;
            bool narrow = with->consumers == TCC_CONSUMERS_PINGPONG && n < NARROWEST_IN_TURN && !ch->given_n;
            if (n % step == 0 && !narrow && complete(ch, &t, g->warpgroups))
                try_parts(q, &t);
        }
}

static void list_structures(tcc_search *q)
{
    const start *g = q->user;
    for (size_t i = 0; i < sizeof structures / sizeof *structures; i++) {
        q->ch->s = g->s;
        if (may_have(q->ch, &structures[i]))
            list_tiles(q, &structures[i]);
    }
}

/* The tile with the least estimated time among those that fit; the smallest where none does. */
static void choose_fastest(tcc_choice *ch, bool given_warpgroups)
{
    const start g = {ch->s, given_warpgroups};
    tcc_schedule best;
    if (!tcc_search_run(ch, list_structures, &g, 0.01, &best)) {
        best = g.s;
        best.stages = 1;
        best.m = ch->given_m ? g.s.m : 64;
        int64_t least = tcc_choice_columns(ch) > step_n(ch) ? tcc_choice_columns(ch) : step_n(ch);
        best.n = ch->given_n ? g.s.n : least;
        if (!given_warpgroups)
            best.warpgroups = warpgroups_for(&g.s, best.m);
    }
    if (best.cluster_m > 1)
        tcc_schedule_sizes_set(ch->f, TCC_KEY_cluster, 1, &ch->c.axes[0], &best.cluster_m);
    ch->s = best;
}

static tcc_status choose_tile(tcc_choice *ch)
{
    tcc_schedule *s = &ch->s;
    bool given_warpgroups = tcc_choice_given(ch, "warpgroups");
    s->warpgroups = tcc_schedule_key_of(ch->f, TCC_KEY_warpgroups, 0);
    if (!ch->given_m && given_warpgroups) {
        s->m = rows_of_all(s);
        ch->given_m = true;
    }
    if (!ch->given_m || !ch->given_n)
        choose_fastest(ch, given_warpgroups);
    else if (!given_warpgroups)
        s->warpgroups = warpgroups_for(s, s->m);
    s->epilogue = storing_for(ch, s);
    if (!ch->given_k)
        s->k = depth_for(ch, s);
    if (s->m % rows_of_all(s))
        return TCC_CHOICE_REFUSE(
            ch, given_warpgroups ? "warpgroups" : "tile",
            "tile %s %lld: need a multiple of %lld, 64 rows for each of %lld warpgroups",
            *ch->c.axes[0] ? ch->c.axes[0] : "m", (long long)s->m, (long long)rows_of_all(s),
            (long long)s->warpgroups);
    tcc_pressure p = pressure(ch, true);
    if (p.least > p.limit)
        return TCC_CHOICE_REFUSE(
            ch, tcc_choice_given(ch, "tile") ? "tile" : "warpgroups",
            "a %lld x %lld tile needs %lld registers a thread (%lld of them accumulators) "
            "with %lld warpgroup%s; the limit is %lld",
            (long long)s->m, (long long)s->n, (long long)p.least,
            (long long)tcc_schedule_accumulators(s), (long long)s->warpgroups,
            s->warpgroups == 1 ? "" : "s", (long long)p.limit);
    if (!columns_of(ch, s))
        return TCC_CHOICE_REFUSE(
            ch, "tile",
            "tile %s %lld: need a multiple of %lld with %lld threads, whose share of "
            "registers is too small for one matrix instruction",
            *ch->c.axes[1] ? ch->c.axes[1] : "n", (long long)s->n, (long long)(2 * step_n(ch)),
            (long long)tcc_schedule_threads(s));
    return TCC_OK;
}

/* Where parts of a sum are added by a step that follows, its CTAs begin beside the last ones of this kernel, if these
 * leave them registers: with a producer of one warp they do. */
static void spare_registers(tcc_choice *ch)
{
    tcc_schedule *s = &ch->s;
    if (s->split == 1 || s->persistent || s->producer != TCC_PRODUCER_WARPGROUP || is_given(ch, TCC_KEY_producer))
        return;
    s->producer = TCC_PRODUCER_WARP;
    if (!tcc_sm90_has_room(ch))
        s->producer = TCC_PRODUCER_WARPGROUP;
}

/* Whether consumers can take tiles in turn. */
static tcc_status check_turns(tcc_choice *ch)
{
    const tcc_schedule *s = &ch->s;
    int64_t warpgroups = tcc_schedule_key_of(ch->f, TCC_KEY_warpgroups, 2);
    if (s->consumers != TCC_CONSUMERS_PINGPONG)
        return TCC_OK;
    if (!s->persistent)
        return TCC_CHOICE_REFUSE(ch, "consumers",
                                 "consumers pingpong: need 'persistent', since otherwise a CTA has only one tile");
    if (s->producer != TCC_PRODUCER_WARPGROUP)
        return TCC_CHOICE_REFUSE(ch, "producer", "producer %s: need warpgroup with consumers pingpong, to "
                                                 "which it gives its registers",
                                 tcc_producer_name(s->producer));
    if (s->own_b)
        return TCC_CHOICE_REFUSE(ch, "consumers",
                                 "not supported yet: consumers pingpong with computed operands that go through "
                                 "stages, which both consumers would fill");
    if (warpgroups != 2)
        return TCC_CHOICE_REFUSE(ch, "warpgroups",
                                 "warpgroups %lld: need 2 with consumers pingpong, one for every other tile",
                                 (long long)warpgroups);
    return TCC_OK;
}

/* ---- shared memory --------------------------------------------------------------------------- */

/* The default number of stages: as many as fit besides staged results. Copies that wait for L2 are not faster for being
 * started earlier: the first stages only arrive later. */
static int64_t stages_to_fill(const tcc_choice *ch, tcc_func *tiled, const tcc_schedule *s, tcc_room r)
{
    int64_t limit = begin_off_lines(ch, s) ? STAGES_MAX_OFF_LINES : TCC_MOST_STAGES, fit = tcc_room_stages(&r);
    r.others += s->persistent ? tcc_staged_by(tiled, s) : 0;
    int64_t beside = tcc_room_stages(&r), most = beside > 1 ? beside : fit;
    return most > limit ? limit : most ? most : 1;
}

/* Whether a schedule's results have room on their way. */
static bool can_stage(tcc_func *tiled, const tcc_schedule *s, const tcc_room *r)
{
    return tcc_staged_by(tiled, s) <= tcc_room_for_results(r, s);
}

/* Columns that are staged at a time: all; but if a persistent CTA then has too few stages and strips leave room
 * for more, or if the data exchanged between CTAs leave too little room, as many as a panel has. */
static int64_t staging_for(const tcc_choice *ch, tcc_func *tiled, const tcc_room *r)
{
    enum { ENOUGH_STAGES = 4, WIDEST = 64, NARROWEST = 32, STEP = 16 };
    tcc_schedule s = ch->s;
    s.staging = 0;
    s.stages = 1;
    int64_t whole = stages_to_fill(ch, tiled, &s, *r);
    bool asked = is_given(ch, TCC_KEY_strips);
    bool enough = !asked && (s.persistent ? whole >= ENOUGH_STAGES : s.cluster_k == 1 || can_stage(tiled, &s, r));
    if (s.epilogue == TCC_STORING_INTERLEAVED || enough)
        return 0;
    for (s.staging = WIDEST; s.staging > NARROWEST && s.n % s.staging;)
        s.staging -= STEP;
    bool pays = asked || (s.persistent ? stages_to_fill(ch, tiled, &s, *r) > whole : can_stage(tiled, &s, r));
    return s.n % s.staging == 0 && s.staging < s.n && pays ? s.staging : 0;
}

/* Strips that divide a tile, whole chunks of them: and TMA takes them in panels of 32 bytes or more. */
static tcc_status choose_staging(tcc_choice *ch, tcc_func *tiled, const tcc_room *r)
{
    tcc_schedule *s = &ch->s;
    const char *key = tcc_schedule_keys[TCC_KEY_staging].name;
    if (!tcc_choice_given(ch, key))
        s->staging = staging_for(ch, tiled, r);
    const char *strips = tcc_schedule_keys[TCC_KEY_strips].name;
    bool asked = tcc_choice_given(ch, strips);
    if (asked && s->epilogue == TCC_STORING_INTERLEAVED)
        return TCC_CHOICE_REFUSE(ch, strips, "strips %lld: need epilogue tma or words, which stage results",
                                 (long long)s->strips);
    if (asked && (!s->staging || s->staging == s->n))
        return TCC_CHOICE_REFUSE(ch, strips, "strips %lld: need staging of fewer than the %lld columns of a tile",
                                 (long long)s->strips, (long long)s->n);
    if (!s->staging)
        return TCC_OK;
    if (s->epilogue == TCC_STORING_INTERLEAVED)
        return TCC_CHOICE_REFUSE(ch, key, "staging %lld: need epilogue tma or words, which stage results",
                                 (long long)s->staging);
    if (s->staging % 16 || s->n % s->staging)
        return TCC_CHOICE_REFUSE(ch, key, "staging %lld: need a multiple of 16 that divides the %lld columns of a tile",
                                 (long long)s->staging, (long long)s->n);
    if (asked && s->strips > s->n / s->staging)
        return TCC_CHOICE_REFUSE(ch, strips, "strips %lld: need at most the %lld of %lld columns that a tile has",
                                 (long long)s->strips, (long long)(s->n / s->staging), (long long)s->staging);
    s->staging = s->staging == s->n ? 0 : s->staging;
    return TCC_OK;
}

tcc_status tcc_sm90_fill(tcc_choice *ch, tcc_func *tiled, const tcc_room *r)
{
    tcc_schedule *s = &ch->s;
    tcc_status status = choose_staging(ch, tiled, r);
    if (status)
        return status;
    int64_t one = r->stage + r->barriers, fit = tcc_room_stages(r);
    s->stages = s->stages ? s->stages : stages_to_fill(ch, tiled, s, *r);
    if (s->stages > fit)
        return TCC_CHOICE_REFUSE(
            ch, tcc_choice_given(ch, "stages") ? "stages" : "tile",
            "%lld stage%s of %lld bytes need %lld bytes of shared memory; the limit is "
            "%lld, which holds %lld",
            (long long)s->stages, s->stages == 1 ? "" : "s", (long long)one, (long long)(one * s->stages),
            (long long)(r->all - r->own - r->others), (long long)fit);
    if (is_given(ch, TCC_KEY_strips) && !can_stage(tiled, s, r))
        return TCC_CHOICE_REFUSE(ch, tcc_schedule_keys[TCC_KEY_strips].name,
                                 "%lld strips of %lld columns need %lld bytes of shared memory; the limit is %lld%s",
                                 (long long)s->strips, (long long)s->staging, (long long)tcc_staged_by(tiled, s),
                                 (long long)tcc_room_for_results(r, s), s->persistent ? " beside the stages" : "");
    return TCC_OK;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static bool is_written(const tcc_func *f, const char *tensor)
{
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write && !strcmp(tcc_accessed_tensor(op)->name, tensor))
            return true;
    return false;
}

static bool is_operand(const tcc_choice *ch, const char *tensor)
{
    for (size_t i = 0; i < ch->c.n_operands; i++)
        if (!strcmp(tcc_accessed_tensor(ch->c.operands[i].read)->name, tensor))
            return true;
    return false;
}

/* The copy engine moves operands and results. */
static tcc_status check_cache(tcc_choice *ch)
{
    const char *key = tcc_schedule_keys[TCC_KEY_cache].name;
    const tcc_named_attr *given = tcc_choice_given(ch, key);
    tcc_attr pairs = given ? given->value : (tcc_attr){0};
    for (size_t i = 0; i + 1 < pairs.list.n; i += 2) {
        const char *tensor = pairs.list.items[i].s, *word = pairs.list.items[i + 1].s;
        bool stored = is_written(ch->f, tensor);
        if (!stored && !is_operand(ch, tensor))
            return TCC_CHOICE_REFUSE(ch, key, "cache %s %s: need an operand of a sum or a result, which the copy "
                                              "engine moves",
                                     tensor, word);
        if (stored && ch->s.epilogue != TCC_STORING_TMA)
            return TCC_CHOICE_REFUSE(ch, key, "cache %s %s: need epilogue tma, by which the copy engine stores "
                                              "results", tensor,
                                     word);
    }
    return TCC_OK;
}

tcc_status tcc_sm90_choose(tcc_choice *ch)
{
    tcc_schedule *s = &ch->s;
    s->producer = (tcc_producer)tcc_schedule_key_of(ch->f, TCC_KEY_producer, TCC_PRODUCER_WARPGROUP);
    s->swizzle = tcc_schedule_key_of(ch->f, TCC_KEY_swizzle, 128);
    s->epilogue = (tcc_storing)tcc_schedule_key_of(ch->f, TCC_KEY_epilogue, TCC_STORING_TMA);
    s->staging = tcc_schedule_key_of(ch->f, TCC_KEY_staging, 0);
    s->strips = tcc_schedule_key_of(ch->f, TCC_KEY_strips, tcc_schedule_keys[TCC_KEY_strips].min);
    s->persistent = (tcc_persistence)tcc_schedule_key_of(ch->f, TCC_KEY_persistent, TCC_PERSISTENT_NONE);
    s->split = tcc_schedule_key_of(ch->f, TCC_KEY_split, 1);
    if (s->persistent && s->producer == TCC_PRODUCER_NONE)
        return TCC_CHOICE_REFUSE(
            ch, "persistent",
            "a persistent kernel needs a producer: consumers cannot copy the next tile's operands while they multiply");
    s->consumers = (tcc_sharing)tcc_schedule_key_of(ch->f, TCC_KEY_consumers, TCC_CONSUMERS_COOPERATIVE);
    s->cluster_k = tcc_schedule_cluster_of(ch->f, ch->c.k);
    tcc_status status = check_turns(ch);
    if (!status)
        status = tcc_choice_read_tile(ch, &(tcc_tile_steps){64, step_n(ch), instruction(ch).k, BOX_MAX,
                                                            step_n(ch) == instruction(ch).n_step
                                                                ? tcc_columns_of_instruction
                                                                : "16 bytes of an operand's rows",
                                                            tcc_depth_of_instruction});
    if (!status)
        status = choose_tile(ch);
    if (!status)
        spare_registers(ch);
    if (!status)
        status = tcc_choose_cluster(ch);
    if (!status)
        status = check_cache(ch);
    s->stages = tcc_schedule_key_of(ch->f, TCC_KEY_stages, 0);
    return status ? status : tcc_skeleton_fill(ch);
}

/* The generic variant hides the latency of element-wise copies behind other CTAs: its tile and its
 * one stage are small enough for many on an SM. */
void tcc_sm90_choose_generic(tcc_choice *ch)
{
    tcc_schedule *s = &ch->s;
    s->m = 64;
    int64_t step = step_n(ch);
    s->n = tcc_choice_cover(ch->c.extents[1], step, 64);
    s->k = tcc_choice_cover(ch->c.k_extent, instruction(ch).k, 64);
    s->stages = s->warpgroups = 1;
    s->producer = TCC_PRODUCER_NONE;
    s->swizzle = 128;
    s->persistent = TCC_PERSISTENT_NONE;
    s->operands = TCC_OPERANDS_IN_ORDER;
    s->split = 1;
    s->consumers = TCC_CONSUMERS_COOPERATIVE;
    for (tcc_pressure p; s->n > step && (p = pressure(ch, false), p.least > p.limit);)
        s->n = (s->n / 2 + step - 1) / step * step;
}

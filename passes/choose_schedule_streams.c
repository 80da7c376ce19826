/* choose_schedule_streams: the schedule of a kernel that streams (passes/cascade.h).
 *
 * Each consumer warpgroup has 64 rows, or each warp 32 or 16 where warps multiply registers: three warpgroups, if each
 * has registers for as deep a tile as there may be, since more rows read fewer elements; else two. A tile has all
 * columns of sums, and as many elements along the index that is streamed as leave registers for the scores beside the
 * sums, and shared memory for two stages.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/assume.h"
#include "ir/cut.h"
#include "ir/machine.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "passes/cascade.h"
#include "passes/choose_schedule.h"
#include "passes/domain.h"
#include "passes/skeleton.h"

enum { MOST = 128, STEP = 16, STAGES = 2, SWIZZLE = 128, GROUP = 1024, WARPGROUPS = 2, WARPS = 4, WARP_ROWS = 16 };

/* Parts of terms are of few rows: a warpgroup has them, in tiles of which several CTAs have room beside each other, so
 * that some load while others begin or end. What they give is stored as it is. */
enum { MOST_OF_PART = 64 };

/* Whether a field of scores is a score, one times a number, or what exponentials make of these. */
static bool is_plain(const tcc_op *op)
{
    switch (op->code) {
    case TCC_OP_arith_mul:
    case TCC_OP_arith_fma:
    case TCC_OP_arith_sub:
    case TCC_OP_arith_cast:
    case TCC_OP_math_exp: return true;
    default: return false;
    }
}

/* Fields of scores that are read from tensors; *others: how many are computed otherwise, or read beside scores and what
 * is multiplied. */
static int64_t count_reads(const tcc_func *f, const tcc_cascade *c, int64_t *others)
{
    int64_t reads = 0;
    *others = -(int64_t)(2 * c->n_scores + c->n_sums);
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        bool of_scores = tcc_has_field(op) && op->results[0].type->elem != TCC_i1 &&
                         tcc_field_has_index(op->results[0].type, c->along) &&
                         tcc_field_has_index(op->results[0].type, c->rows);
        reads += of_scores && op->code == TCC_OP_tensor_read;
        *others += op->code == TCC_OP_tensor_read || (of_scores && !tcc_is_reduction(op) && !is_plain(op));
    }
    return reads;
}

/* Warps or waves that multiply registers; 0: warpgroups multiply. */
static int64_t units(const tcc_schedule *s)
{
    return s->wave ? s->waves : s->warps;
}

/* Threads that multiply. */
static int64_t consumers(const tcc_schedule *s)
{
    enum { WARPGROUP_LANES = 128 };
    return units(s) ? units(s) * TCC_WARP_LANES : s->warpgroups * WARPGROUP_LANES;
}

/* Registers of a thread for the tiles of an iteration, where they go through registers to their stages. */
static int64_t registers_on_the_way(const tcc_func *f, const tcc_cascade *c, const tcc_schedule *s)
{
    enum { WORD_BITS = 32 };
    int64_t bits = 0;
    for (size_t i = 0; i < c->n_scores; i++)
        bits += tcc_index_extent(f, c->scores[i].k).size * tcc_scalar_bits(c->scores[i].of[1].value->type->elem);
    for (size_t i = 0; i < c->n_sums; i++)
        bits += s->n * tcc_scalar_bits(c->sums[i].of[1].value->type->elem);
    bool through = units(s) && !tcc_target_can(s->target, TCC_CAN_cp_async);
    return through ? s->k * bits / WORD_BITS / consumers(s) : 0;
}

/* Registers for the operand that the scores were in the tile before, as many as for scores where something has to be
 * looked at, or, of warps and waves, for what scores become, and for what is read for a round; a wave reads all columns
 * of it at once. */
static int64_t registers_of_operands(const tcc_cascade *c, const tcc_schedule *s)
{
    enum { SIDE = WARP_ROWS, FRAGMENTS = 8, BITS = 16, DOUBT = 28 /* LLVM moves reads to the front */ };
    int64_t scores = (int64_t)c->n_scores * s->m * s->k / consumers(s);
    if (!s->wave)
        return s->warps ? scores / 2 + FRAGMENTS : scores;
    int64_t words = tcc_wmma_operand_words(s->target, SIDE, BITS, s->wave), rows = s->m / (s->waves * SIDE);
    int64_t columns = (s->n > s->k ? s->n : s->k) / SIDE;
    return words * ((int64_t)c->n_scores * rows * s->k / SIDE + columns + rows) + DOUBT;
}

/* Registers of a consumer thread: sums, the scores, operands, what is read beside them, another copy where several
 * fields are masked, and one where several become operands, and what rows, conditions and addresses need. */
static int64_t registers_of(tcc_func *f, const tcc_cascade *c, const tcc_schedule *s)
{
    enum { FEW = 32, OTHERS = 40, MORE = 16 };
    const tcc_op *sum = c->sums[0].sum;
    const tcc_value *by;
    bool has_condition = sum->n_operands > 1;
    bool masks = has_condition || !tcc_assumes_multiple(f, tcc_index_extent(f, c->along), s->k, &by);
    tcc_domain d = has_condition ? tcc_domain_of(sum->operands[1], c->along) : (tcc_domain){0};
    int64_t others, reads = count_reads(f, c, &others), scores = (int64_t)c->n_scores;
    int64_t tiles = scores + reads + (scores > 1) + (c->n_sums > 1) + (masks && !tcc_stream_masks_once(f, c));
    bool is_more = others > 0 || c->n_sums > 1 || scores > 1 || d.least.len;
    if (!units(s) && !masks && !is_more && !reads)
        return s->m * (s->n + s->k + s->k / 2) / consumers(s) + FEW;
    return s->m * ((int64_t)c->n_sums * s->n + tiles * s->k) / consumers(s) + registers_of_operands(c, s) +
           registers_on_the_way(f, c, s) + OTHERS + (is_more ? MORE : 0);
}

static bool has_room(tcc_choice *ch, const tcc_cascade *c)
{
    int64_t producer;
    int64_t limit = ch->s.wave ? tcc_rdna_register_limit(&ch->s, ch->target)
                               : tcc_schedule_registers(&ch->s, ch->target, &producer);
    return registers_of(ch->f, c, &ch->s) <= limit && tcc_skeleton_can_fill(ch);
}

/* What a tile's rows are a multiple of, and how many there are at most. */
static int64_t step_of_rows(const tcc_schedule *s)
{
    return units(s) ? units(s) * WARP_ROWS : TCC_WGMMA_ROWS;
}

static int64_t most_rows(const tcc_schedule *s)
{
    return units(s) ? 2 * step_of_rows(s) : 3 * TCC_WGMMA_ROWS;
}

/* The user's sizes: of rows and of the index that is streamed; columns are whole. */
static tcc_status read_tile(tcc_choice *ch, const tcc_cascade *c)
{
    const struct {
        const char *index;
        int64_t *size, step, most;
        bool *given;
    } dims[] = {{c->rows, &ch->s.m, step_of_rows(&ch->s), most_rows(&ch->s), &ch->given_m},
                {c->columns, &ch->s.n, ch->s.n, ch->s.n, &ch->given_n},
                {c->along, &ch->s.k, STEP, 2 * MOST, &ch->given_k}};
    tcc_attr tile = tcc_attr_list(&ch->f->attrs, "tile");
    for (size_t i = 0; i + 1 < tile.list.n; i += 2) {
        size_t d = 0;
        int64_t size = tile.list.items[i + 1].i;
        while (d < 3 && !tcc_index_same(dims[d].index, tile.list.items[i].s))
            d++;
        if (d == 3)
            return TCC_CHOICE_REFUSE(ch, "tile", "tile %s: every CTA takes one value of it", tile.list.items[i].s);
        if (size < dims[d].step || size % dims[d].step || size > dims[d].most)
            return TCC_CHOICE_REFUSE(ch, "tile", "tile %s %lld: need a multiple of %lld up to %lld",
                                     tile.list.items[i].s, (long long)size, (long long)dims[d].step,
                                     (long long)dims[d].most);
        *dims[d].size = size;
        *dims[d].given = true;
    }
    return TCC_OK;
}

/* The most elements along the streamed index for which there is room; else as few as there can be. Parts begin at
 * multiples of tiles. */
static void choose_depth(tcc_choice *ch, const tcc_cascade *c)
{
    bool is_part = tcc_cut_is(ch->f, TCC_CUT_part);
    for (ch->s.k = is_part ? MOST_OF_PART : MOST; ch->s.k > STEP && !has_room(ch, c);)
        ch->s.k -= is_part ? ch->s.k / 2 : STEP;
}

/* Three warpgroups if there is room for a tile as deep as there may be. */
static void choose_warpgroups(tcc_choice *ch, const tcc_cascade *c)
{
    const int64_t m = ch->s.m;
    ch->s.warpgroups = WARPGROUPS + 1;
    ch->s.m = ch->s.warpgroups * TCC_WGMMA_ROWS;
    ch->s.k = MOST;
    if (!has_room(ch, c))
        ch->s.m = m;
}

/* Of warps: 32 rows of each, for which what is read of shared memory is multiplied twice, unless that leaves too few
 * elements along the streamed index; and how many these are. */
static void choose_rows(tcc_choice *ch, const tcc_cascade *c)
{
    enum { FEW = 32 };
    ch->s.m = tcc_cut_is(ch->f, TCC_CUT_part) ? step_of_rows(&ch->s) : most_rows(&ch->s);
    if (!ch->given_k)
        choose_depth(ch, c);
    if (ch->s.m == step_of_rows(&ch->s) || (ch->s.k >= FEW && has_room(ch, c)))
        return;
    ch->s.m = step_of_rows(&ch->s);
    if (!ch->given_k)
        choose_depth(ch, c);
}

/* By what the target multiplies. */
static tcc_schedule schedule_for(const tcc_target *target)
{
    tcc_schedule s = {.target = target,
                      .k = MOST,
                      .group = GROUP,
                      .cluster_m = 1,
                      .cluster_n = 1,
                      .cluster_k = 1,
                      .split = 1,
                      .streams = true};
    if (tcc_target_can(target, TCC_CAN_wgmma)) {
        s.instr = TCC_INSTR_WGMMA;
        s.m = WARPGROUPS * TCC_WGMMA_ROWS;
        s.producer = TCC_PRODUCER_WARPGROUP;
        s.swizzle = SWIZZLE;
        s.epilogue = TCC_STORING_TMA;
    } else if (tcc_target_can(target, TCC_CAN_wmma)) {
        s.instr = TCC_INSTR_WMMA;
        s.waves = WARPS;
        s.wave = TCC_WARP_LANES;
    } else {
        s.instr = TCC_INSTR_MMA;
        s.warps = WARPS;
    }
    return s;
}

tcc_status tcc_choose_stream(tcc_choice *ch)
{
    tcc_cascade c;
    tcc_schedule *s = &ch->s;
    bool is_part = tcc_cut_is(ch->f, TCC_CUT_part);
    if (!tcc_cascade_of(ch->f, &c))
        return TCC_OK;
    *s = schedule_for(ch->target);
    s->n = tcc_index_extent(ch->f, c.columns).size;
    s->stages = tcc_schedule_key_of(ch->f, TCC_KEY_stages, STAGES);
    if (s->warps)
        s->warps = tcc_schedule_key_of(ch->f, TCC_KEY_warps, WARPS);
    if (s->waves)
        s->waves = tcc_schedule_key_of(ch->f, TCC_KEY_waves, WARPS);
    if (is_part) {
        s->m = TCC_WGMMA_ROWS;
        s->epilogue = TCC_STORING_INTERLEAVED;
        s->producer = units(s) ? s->producer : TCC_PRODUCER_WARP;
    }
    tcc_status status = read_tile(ch, &c);
    if (status)
        return status;
    if (!units(s) && !ch->given_m && !ch->given_k && !is_part)
        choose_warpgroups(ch, &c);
    s->warpgroups = units(s) ? 0 : s->m / TCC_WGMMA_ROWS;
    if (units(s) && !ch->given_m)
        choose_rows(ch, &c);
    else if (!ch->given_k)
        choose_depth(ch, &c);
    status = tcc_skeleton_fill(ch);
    if (status)
        return status;
    tcc_schedule_set(ch->f, s, c.rows, c.columns, c.along);
    return TCC_OK;
}

/* choose_schedule_streams: the schedule of a kernel that streams (passes/cascade.h).
 *
 * Each consumer warpgroup has 64 rows; a tile has all columns of sums, and as many elements along the index that is
 * streamed as leave registers for the scores beside the sums, and shared memory for two stages.
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

enum { MOST = 128, STEP = 16, STAGES = 2, SWIZZLE = 128, GROUP = 1024, WARPGROUPS = 2 };

/* Parts of terms are of few rows: a warpgroup has them, in tiles of which several CTAs have room beside each other, so
 * that some load while others begin or end. What they give is stored as it is. */
enum { MOST_OF_PART = 64, STAGES_OF_PART = 3 };

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

/* Registers of a consumer thread: sums, the scores of this tile, which become an operand, and of the next, what is read
 * beside them, another copy where several fields are masked, and what rows, conditions and addresses need. */
static int64_t registers_of(tcc_func *f, const tcc_cascade *c, const tcc_schedule *s)
{
    enum { OTHERS = 40, MORE = 16, WARPGROUP_LANES = 128 };
    const tcc_op *sum = c->sums[0].sum;
    const tcc_value *by;
    bool has_condition = sum->n_operands > 1;
    bool masks = has_condition || !tcc_assumes_multiple(f, tcc_index_extent(f, c->along), s->k, &by);
    tcc_domain d = has_condition ? tcc_domain_of(sum->operands[1], c->along) : (tcc_domain){0};
    int64_t others, reads = count_reads(f, c, &others), rows = s->m / s->warpgroups, scores = (int64_t)c->n_scores;
    int64_t tiles = 2 * scores + reads + (scores > 1) + (masks && !tcc_stream_masks_once(f, c));
    bool is_more = others > 0 || c->n_sums > 1 || scores > 1 || d.least.len;
    return rows * ((int64_t)c->n_sums * s->n + tiles * s->k) / WARPGROUP_LANES + OTHERS + (is_more ? MORE : 0);
}

static bool has_room(tcc_choice *ch, const tcc_cascade *c)
{
    int64_t producer;
    return registers_of(ch->f, c, &ch->s) <= tcc_schedule_registers(&ch->s, ch->target, &producer) &&
           tcc_skeleton_can_fill(ch);
}

/* The user's sizes: of rows and of the index that is streamed; columns are whole. */
static tcc_status read_tile(tcc_choice *ch, const tcc_cascade *c)
{
    const struct {
        const char *index;
        int64_t *size, step, most;
        bool *given;
    } dims[] = {{c->rows, &ch->s.m, TCC_WGMMA_ROWS, 3 * TCC_WGMMA_ROWS, &ch->given_m},
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

tcc_status tcc_choose_stream(tcc_choice *ch)
{
    tcc_cascade c;
    tcc_schedule *s = &ch->s;
    bool is_part = tcc_cut_is(ch->f, TCC_CUT_part);
    if (!tcc_cascade_of(ch->f, &c))
        return TCC_OK;
    *s = (tcc_schedule){.target = ch->target,
                        .m = (is_part ? 1 : WARPGROUPS) * TCC_WGMMA_ROWS,
                        .n = tcc_index_extent(ch->f, c.columns).size,
                        .k = MOST,
                        .stages = tcc_schedule_key_of(ch->f, TCC_KEY_stages, is_part ? STAGES_OF_PART : STAGES),
                        .producer = TCC_PRODUCER_WARPGROUP,
                        .swizzle = SWIZZLE,
                        .epilogue = is_part ? TCC_STORING_INTERLEAVED : TCC_STORING_TMA,
                        .instr = TCC_INSTR_WGMMA,
                        .group = GROUP,
                        .cluster_m = 1,
                        .cluster_n = 1,
                        .cluster_k = 1,
                        .split = 1,
                        .streams = true};
    tcc_status status = read_tile(ch, &c);
    if (status)
        return status;
    s->warpgroups = s->m / TCC_WGMMA_ROWS;
    if (!ch->given_k)
        choose_depth(ch, &c);
    status = tcc_skeleton_fill(ch);
    if (status)
        return status;
    tcc_schedule_set(ch->f, s, c.rows, c.columns, c.along);
    return TCC_OK;
}

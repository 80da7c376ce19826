/* choose_schedule_warps: complete a schedule for warps that multiply registers (mma.sync, cp.async).
 *
 * Up to 8 warps compute a tile, each up to 64 x 64 of it, so that accumulators and what is read ahead fit the
 * registers. Stages are few, and rows of them short: two CTAs of a multiprocessor hide each other's barriers. Large
 * tiles take all registers: one CTA has rows twice as long instead, where stages of them fit, and half the barriers.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"
#include "ir/schedule_key.h"
#include "passes/live.h"
#include "passes/skeleton.h"

enum {
    TILE_MAX = 256,
    WARP_TILE_MAX = 64,  /* rows or columns of one warp */
    ROW_BYTES = 64,      /* of a stage, along k */
    STAGE_BYTES = 16384, /* that small tiles' stages grow to */
    LARGE_TILE = 128 * 128, /* elements; with more only one tile fits on a multiprocessor */
    LARGE_GROUP = 8,     /* rows of such tiles */
    STAGES = 4,
    FEW_STAGES = 3, /* that suffice */
    STAGES_OF_REGISTERS = 2, /* a further tile waits in registers */
    LEAST_DEPTH = 8, /* of lines that outer products are taken of, one k at a time */
    GENERIC_TILE = 64,
    GENERIC_DEPTH = 16,
    GENERIC_WARPS = 4
};

/* The instruction whose steps are those of all. NULL: there is none, which choose-mma says. */
static const tcc_mma_sync *find_instruction(const tcc_choice *ch)
{
    const tcc_sum *sum = tcc_space_narrowest(&ch->c);
    return tcc_mma_sync_find(ch->target, ch->s.instr, tcc_sum_operand_elem(sum->a), tcc_sum_operand_elem(sum->b),
                             sum->op->results[0].type->elem);
}

/* Whether copies land in shared memory by themselves. */
static bool copies_land(const tcc_choice *ch)
{
    return tcc_target_can(ch->target, TCC_CAN_cp_async);
}

/* The largest size of an accumulator. */
static unsigned sum_bits(const tcc_choice *ch)
{
    unsigned most = 0;
    for (size_t i = 0; i < ch->c.n_sums; i++) {
        unsigned bits = tcc_scalar_bits(ch->c.sums[i].op->results[0].type->elem);
        most = bits > most ? bits : most;
    }
    return most;
}

bool tcc_warps_has_room(const tcc_choice *ch)
{
    return find_instruction(ch) && ch->need.lacks <= TCC_LIVE_SPARE;
}

/* Code that multiplies what it loads, of few tensors, needs up to two and a half times as many registers as it holds at
 * the least. */
bool tcc_warps_may_lack(const tcc_choice *ch)
{
    enum { FEW = 4, TIMES = 3 };
    bool computes = tcc_choice_computes(ch, 0) || tcc_choice_computes(ch, 1);
    return computes || ch->c.n_operands > FEW ||
           TIMES * tcc_warps_registers(&ch->s, sum_bits(ch)) > tcc_schedule_share(&ch->s);
}

/* What n must be a multiple of, in blocks of this many columns: lines of a stage that run along it are whole chunks.
 * Those of narrow opaque fragments run along k. */
static int64_t step_n(const tcc_mma_sync *mma, int64_t n)
{
    enum { CHUNK_BITS = 128 };
    int64_t elems = CHUNK_BITS / tcc_scalar_bits(mma->a);
    return elems > n && !tcc_mma_sync_is_opaque(mma) ? elems : n;
}

static int64_t step_k(const tcc_mma_sync *mma)
{
    return mma->k > LEAST_DEPTH ? mma->k : LEAST_DEPTH;
}

/* What a tile's k is a multiple of: computed operands are held like results, in whole blocks. */
static int64_t depth_step(const tcc_choice *ch, const tcc_schedule *s)
{
    int64_t step = step_k(find_instruction(ch));
    tcc_arrangement u;
    if (!tcc_arrange(s, &u))
        return step;
    const int64_t along_k[] = {u.block.n, u.block.m};
    for (int axis = 0; axis < 2; axis++)
        if (tcc_choice_computes(ch, axis) && along_k[axis] > step)
            step = along_k[axis];
    return step;
}

/* As many elements as ROW_BYTES hold, or in large tiles twice as many, of those that ldmatrix reads in every layout;
 * more in small tiles, which are for sums that wait for memory; fewer where the sum is known to be shorter. Lanes
 * multiply one k at a time: the code of a loop of large tiles is as long as its stages are deep. Of a computed operand
 * lanes hold all of a stage. */
static int64_t depth_for(const tcc_choice *ch, int64_t m, int64_t n)
{
    const tcc_mma_sync *mma = find_instruction(ch);
    int64_t bits = tcc_scalar_bits(mma->a), k = ROW_BYTES * 8 / bits;
    if (ch->s.instr == TCC_INSTR_FMA && m * n >= LARGE_TILE)
        return LEAST_DEPTH;
    bool computes = tcc_choice_computes(ch, 0) || tcc_choice_computes(ch, 1);
    if (m * n > LARGE_TILE && bits == 16 && !computes && FEW_STAGES * (m + n) * 2 * ROW_BYTES <= ch->target->smem_bytes)
        k *= 2;
    while (2 * k <= TILE_MAX && k * bits / 8 < 4 * ROW_BYTES && (m + n) * 2 * k * bits / 8 <= STAGE_BYTES)
        k *= 2;
    while (!ch->c.k_extent.name && k / 2 >= ch->c.k_extent.size && k / 2 >= step_k(mma))
        k /= 2;
    return k > step_k(mma) ? k : step_k(mma);
}

/* So many that two CTAs fit, where that is not too few. */
static int64_t choose_stages(const tcc_choice *ch, int64_t fit)
{
    int64_t of_two = fit / 2, stages = of_two >= FEW_STAGES ? of_two : fit;
    int64_t most = copies_land(ch) ? STAGES : STAGES_OF_REGISTERS;
    return stages > most ? most : stages > 1 ? stages : 1;
}

tcc_status tcc_warps_fill(tcc_choice *ch, tcc_func *tiled, const tcc_room *r)
{
    (void)tiled;
    tcc_schedule *s = &ch->s;
    int64_t fit = tcc_room_stages(r);
    s->stages = s->stages ? s->stages : choose_stages(ch, fit);
    if (s->stages <= fit)
        return TCC_OK;
    const char *key = tcc_choice_given(ch, "stages") ? "stages" : tcc_choice_given(ch, "tile") ? "tile" : "warps";
    return TCC_CHOICE_REFUSE(ch, key,
                             "%lld stage%s of a %lld x %lld x %lld tile do not fit the %lld bytes of shared memory, "
                             "which hold %lld",
                             (long long)s->stages, s->stages == 1 ? "" : "s", (long long)s->m, (long long)s->n,
                             (long long)s->k, (long long)r->all, (long long)fit);
}

/* The search's user. */
typedef struct start {
    bool given_warps;
    int shallower; /* this many halvings of the usual depth, if it is not given */
} start;

static void try_size(tcc_search *q, int64_t m, int64_t n, int64_t n_warps)
{
    const tcc_choice *ch = q->ch;
    const start *from = q->user;
    tcc_schedule s = ch->s;
    tcc_arrangement u;
    s.m = m;
    s.n = n;
    s.warps = n_warps;
    int64_t usual = depth_for(ch, m, n) >> from->shallower, least = depth_step(ch, &s);
    if (!ch->given_k)
        s.k = usual > least ? usual : least;
    if (!tcc_arrange(&s, &u) || s.k % least || tcc_warps_registers(&s, sum_bits(ch)) > tcc_schedule_share(&s))
        return;
    bool wide = m / u.stand[0] > WARP_TILE_MAX || n / u.stand[1] > WARP_TILE_MAX;
    tcc_search_try(q, &s, wide ? 2 : 1);
}

/* For chosen tiles: more if no registers are needed for copies, or for combining bytes. */
static int64_t most_columns(const tcc_choice *ch)
{
    enum { BYTE_BITS = 8 };
    return copies_land(ch) && tcc_scalar_bits(find_instruction(ch)->a) > BYTE_BITS ? 256 : 128;
}

/* Tiles of whole blocks. */
static void try_blocks(tcc_search *q, int64_t m_step, int64_t n_step)
{
    enum { ROWS_MAX = 128, N_WARPS = 5 };
    static const int64_t of_instr[][N_WARPS] = {
        [TCC_INSTR_MMA] = {4, 8, 2, 1, 16},
        [TCC_INSTR_FMA] = {8, 4, 2, 1, 16}, /* with 8 no thread is short of registers */
    };
    const tcc_choice *ch = q->ch;
    const int64_t *warps = of_instr[ch->s.instr];
    bool given_warps = ((const start *)q->user)->given_warps;
    int64_t m_first = ch->given_m ? ch->s.m : tcc_choice_cover(ch->c.extents[0], m_step, ROWS_MAX);
    int64_t n_first = ch->given_n ? ch->s.n : tcc_choice_cover(ch->c.extents[1], n_step, most_columns(ch));
    for (int64_t m = m_first; m >= m_step; m = ch->given_m ? 0 : m / 2 / m_step * m_step)
        for (int64_t n = n_first; n >= n_step; n = ch->given_n ? 0 : n / 2 / n_step * n_step)
            for (size_t i = 0; i < (given_warps ? 1 : N_WARPS); i++)
                try_size(q, m, n, given_warps ? ch->s.warps : warps[i]);
}

static void list_tiles(tcc_search *q)
{
    const tcc_choice *ch = q->ch;
    tcc_mma_block block;
    for (size_t i = 0; tcc_mma_sync_block(ch->target, ch->s.instr, i, &block); i++)
        try_blocks(q, block.m, step_n(find_instruction(ch), block.n));
}

/* The tile with the least estimated time among those that fit; false when none does, and what lacks least registers, if
 * that is less than what there was. */
static bool choose_fastest(tcc_choice *ch, bool given_warps, int shallower, tcc_schedule *best)
{
    return tcc_search_run(ch, list_tiles, &(start){given_warps, shallower}, 0.001, best);
}

/* The same of the usual depth, or else less deep; with this many stages, or with one if the user did not set them.
 * Where all lack registers, the one that lacks least. */
static bool choose_tile(tcc_choice *ch, bool given_warps, bool given_stages)
{
    enum { MOST_HALVES = 5 };
    int64_t stages = ch->s.stages;
    tcc_schedule best = ch->s;
    bool found = false;
    for (; ch->s.stages && !found; ch->s.stages = given_stages || ch->s.stages == 1 ? 0 : 1)
        for (int i = 0; i <= (ch->given_k ? 0 : MOST_HALVES) && !found; i++)
            found = choose_fastest(ch, given_warps, i, &best);
    ch->s.stages = stages;
    found |= ch->need.limit;
    if (found)
        ch->s = best;
    return found;
}

/* Chooses a tile for a message if none fits: one that fits with one stage or, if there is none either, the smallest
 * one that agrees with the given settings. */
static void take_unfit(tcc_choice *ch, bool given_warps)
{
    tcc_schedule *s = &ch->s;
    tcc_mma_block block, least;
    int64_t stages = s->stages;
    s->stages = 1;
    bool found = choose_fastest(ch, given_warps, 0, s);
    s->stages = stages;
    if (found)
        return;
    tcc_mma_sync_block(ch->target, s->instr, 0, &least);
    for (size_t i = 0; tcc_mma_sync_block(ch->target, s->instr, i, &block); i++)
        if (s->m % block.m == 0 && s->n % block.n == 0) { /* what is not given is 0 */
            least = block;
            break;
        }
    tcc_arrangement u;
    s->m = s->m ? s->m : least.m;
    s->n = s->n ? s->n : step_n(find_instruction(ch), least.n);
    s->warps = s->warps ? s->warps : 1;
    for (int64_t shared = 1; shared < s->warps && !tcc_arrange(s, &u); shared *= 2)
        if (!ch->given_m && (ch->given_n || s->m <= s->n))
            s->m *= 2;
        else if (!ch->given_n)
            s->n *= 2;
    s->k = s->k ? s->k : depth_step(ch, s);
}

/* 16 x 16 or 32 x 8 or 8 x 32 */
static const char *names_of_blocks(const tcc_choice *ch)
{
    const char *names = "";
    tcc_mma_block block;
    for (size_t i = 0; tcc_mma_sync_block(ch->target, ch->s.instr, i, &block); i++)
        names = tcc_arena_printf(ch->ctx->scratch, "%s%s%lld x %lld", names, i ? " or " : "", (long long)block.m,
                                 (long long)block.n);
    return names;
}

static tcc_status refuse_size(tcc_choice *ch)
{
    const tcc_schedule *s = &ch->s;
    const char *key = tcc_choice_given(ch, "tile") ? "tile" : "warps";
    tcc_arrangement u;
    if (!tcc_arrange(s, &u))
        return TCC_CHOICE_REFUSE(ch, tcc_choice_given(ch, "warps") ? "warps" : key,
                                 "a %lld x %lld tile cannot be shared by %lld warp%s in blocks of %s", (long long)s->m,
                                 (long long)s->n, (long long)s->warps, s->warps == 1 ? "" : "s", names_of_blocks(ch));
    if (s->k % depth_step(ch, s))
        return TCC_CHOICE_REFUSE(ch, key,
                                 "tile %s %lld: need a multiple of %lld where an operand is computed, in blocks of %s",
                                 ch->c.k, (long long)s->k, (long long)depth_step(ch, s), names_of_blocks(ch));
    /* ptxas may need fewer, and can spill: the smallest tile is better than none. */
    bool given = tcc_choice_given(ch, "tile") || tcc_choice_given(ch, "warps");
    int64_t least = tcc_warps_registers(s, sum_bits(ch)), limit = tcc_schedule_share(s);
    bool is_counted = ch->need.limit, lacks = is_counted ? ch->need.lacks > TCC_LIVE_DOUBT : least > limit;
    if (lacks && given)
        return TCC_CHOICE_REFUSE(ch, key,
                                 "a %lld x %lld x %lld tile needs about %lld registers a thread with %lld warp%s; the "
                                 "limit is %lld",
                                 (long long)s->m, (long long)s->n, (long long)s->k,
                                 (long long)(is_counted ? ch->need.limit + ch->need.lacks : least),
                                 (long long)s->warps, s->warps == 1 ? "" : "s", (long long)limit);
    return TCC_OK;
}

tcc_status tcc_warps_choose(tcc_choice *ch)
{
    tcc_schedule *s = &ch->s;
    const tcc_mma_sync *mma = find_instruction(ch);
    if (!mma) { /* reported by choose-mma */
        tcc_warps_choose_generic(ch);
        return TCC_OK;
    }
    s->warps = tcc_schedule_key_of(ch->f, TCC_KEY_warps, 0);
    s->stages = tcc_schedule_key_of(ch->f, TCC_KEY_stages, 0);
    s->split = tcc_schedule_key_of(ch->f, TCC_KEY_split, 1);
    int64_t m_step = tcc_warps_step(s, 0), n_step = step_n(mma, tcc_warps_step(s, 1));
    tcc_status status = tcc_choice_read_tile(
        ch, &(tcc_tile_steps){m_step, n_step, step_k(mma), TILE_MAX, tcc_columns_of_instruction,
                              step_k(mma) == mma->k ? tcc_depth_of_instruction : "the least depth of a stage"});
    if (status)
        return status;
    bool given_stages = s->stages, given_warps = s->warps;
    s->stages = given_stages ? s->stages : 2;
    ch->need = (tcc_need){.lacks = INT64_MAX};
    if (!choose_tile(ch, given_warps, given_stages)) /* refuse_size says why */
        take_unfit(ch, given_warps);
    s->stages = given_stages || s->stages == 1 ? s->stages : 0;
    if (s->raster == TCC_RASTER_GROUPED && s->m * s->n > LARGE_TILE && !tcc_choice_given(ch, "group"))
        s->group = LARGE_GROUP;
    status = refuse_size(ch);
    return status ? status : tcc_skeleton_fill(ch);
}

static bool generic_fits(tcc_choice *ch)
{
    enum { CONDITIONS = 32 }; /* registers for those of its copies */
    return tcc_skeleton_can_fill(ch) && tcc_skeleton_need(ch).lacks <= -CONDITIONS;
}

/* Copies element by element hide their latency behind other CTAs: the tile and its one stage are small, and smaller
 * where there are many sums. */
void tcc_warps_choose_generic(tcc_choice *ch)
{
    const tcc_mma_sync *mma = find_instruction(ch);
    tcc_schedule *s = &ch->s;
    s->m = s->n = GENERIC_TILE;
    s->stages = 1;
    s->warps = GENERIC_WARPS;
    s->k = mma ? 2 * step_k(mma) : GENERIC_DEPTH;
    s->split = 1;
    if (!mma)
        return;
    s->k = s->k < depth_step(ch, s) ? depth_step(ch, s) : s->k;
    for (tcc_schedule smaller = *s; !generic_fits(ch); *s = smaller) {
        tcc_arrangement u;
        bool narrow = smaller.n / 2 % step_n(mma, tcc_warps_step(s, 1));
        *(smaller.m > smaller.n || narrow ? &smaller.m : &smaller.n) /= 2;
        while (smaller.warps > 1 && !tcc_arrange(&smaller, &u))
            smaller.warps /= 2;
        if (!tcc_arrange(&smaller, &u))
            break;
        if (smaller.k > tcc_schedule_threads(&smaller)) /* which copy a row at a time */
            smaller.k = depth_step(ch, &smaller);
        if (smaller.k % depth_step(ch, &smaller))
            break;
    }
}

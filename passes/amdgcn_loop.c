/* amdgcn_loop: the loop of a product.
 *
 * Four things are on their way at a time: tile t is multiplied, step after step; the operands of
 * the next step come from LDS to registers; tile t + 1 goes from registers to its stage; tile t + 2
 * comes from memory to registers. A trip of the loop takes as many tiles as there are stages, so
 * that every address in LDS is a lane's own and a constant.
 *
 *     first step  wait for LDS; the first column's products; tile t + 1 to LDS; the other columns
 *                 with the loads of tile t + 2 between their products
 *     each step   after a column's products the next step's operand of that column; in the last
 *                 column, after each product, the next step's operand of that row
 *     last step   wait for LDS, and for all waves: then tile t + 1 is there, and nobody reads tile
 *                 t's stage any more; the next step's operands are the first of tile t + 1
 *
 * LLVM's scheduler keeps this order (sched_barrier): left alone it moves reads of LDS up, needs
 * more than 256 registers and spills.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <assert.h>

#include "passes/amdgcn.h"

enum { MAX_BLOCKS = 16 }; /* along m or n */
enum { MAX_CARRIED = MAX_BLOCKS * MAX_BLOCKS + 2 * (MAX_BLOCKS + TCC_MAX_LOADS) };

/* What the loop carries. */
typedef struct carried {
    tcc_value *acc[MAX_BLOCKS * MAX_BLOCKS];
    tcc_value *parts[2][MAX_BLOCKS]; /* the next step's operands: of m, of n */
    tcc_value *loaded[2][TCC_MAX_LOADS];
} carried;

typedef struct loop {
    tcc_amdgcn_lowering *l;
    bool ahead; /* all that the comment above says; else a tile is copied and then multiplied */
    carried v;
    int64_t n_acc, rounds, steps; /* steps of one instruction in a round */
    tcc_value *k, *extent;        /* first k of the trip's first tile; how many there are */
    tcc_value *first_k, *last_k;  /* of the first tile, maybe negative; of the last, at least 0 */
    tcc_value *end_k;             /* where the trips end */
    /* Loads that are still to be issued among the products. */
    int64_t next_load[2];
    tcc_value *load_k, *soffset[2];
} loop;

static void pin(loop *p)
{
    tcc_amdgcn_pin(p->l);
}

static void wait_for(loop *p, const char *counter)
{
    tcc_op *op = TCC_EMIT_V(&p->l->low.b, amdgcn_waitcnt, NULL);
    tcc_attr_set_int(p->l->low.ir, &op->attrs, counter, 0);
}

static void wait_for_all_waves(loop *p)
{
    wait_for(p, "ds");
    TCC_EMIT_V(&p->l->low.b, amdgcn_s_barrier, NULL);
}

/* ---- copies -------------------------------------------------------------------------------- */

static tcc_value *k_at(loop *p, int64_t tiles)
{
    return tcc_low_add(&p->l->low, p->k, tiles * p->l->low.s.k);
}

static void begin_loads(loop *p, int64_t tiles)
{
    tcc_lowering *low = &p->l->low;
    p->next_load[0] = p->next_load[1] = 0;
    p->load_k = k_at(p, tiles);
    /* Past the last tile that one again, which nobody multiplies: soffset is not checked. */
    tcc_value *k = tcc_low_bin(low, TCC_OP_arith_min, p->load_k, p->last_k);
    for (int x = 0; x < 2; x++)
        p->soffset[x] = tcc_amdgcn_bytes_to(p->l, &p->l->operands[x], k);
}

/* Loads tile 0 or 1. */
static void load_ahead(loop *p, int64_t tiles)
{
    tcc_value *k = k_at(p, tiles);
    for (int x = 0; x < 2; x++)
        for (int64_t i = 0; i < p->l->operands[x].n_loads; i++)
            p->v.loaded[x][i] = tcc_amdgcn_load_ahead(p->l, &p->l->operands[x], i, k);
}

static void mend(loop *p, int64_t tiles)
{
    tcc_value *k = k_at(p, tiles);
    for (int x = 0; x < 2; x++)
        for (int64_t i = 0; i < p->l->operands[x].n_loads; i++)
            p->v.loaded[x][i] = tcc_amdgcn_mend(p->l, &p->l->operands[x], i, k, p->v.loaded[x][i]);
}

/* One more load of the tile on its way, the operands in turn; false when there is none left. */
static bool load_next(loop *p)
{
    tcc_amdgcn_lowering *l = p->l;
    int64_t left[2] = {l->operands[0].n_loads - p->next_load[0],
                       l->operands[1].n_loads - p->next_load[1]};
    if (!left[0] && !left[1])
        return false;
    int x = left[1] > left[0];
    int64_t i = p->next_load[x]++;
    tcc_operand *o = &l->operands[x];
    p->v.loaded[x][i] = tcc_amdgcn_load(l, o, o->descriptor, o->voffset[i], p->soffset[x]);
    return true;
}

static void put(loop *p, int64_t stage)
{
    for (int x = 0; x < 2; x++)
        tcc_amdgcn_put(p->l, &p->l->operands[x], p->v.loaded[x], stage);
}

/* ---- products ------------------------------------------------------------------------------ */

static tcc_value *ds_load(loop *p, tcc_value *address, int64_t offset, int64_t words)
{
    tcc_amdgcn_lowering *l = p->l;
    tcc_value *r =
        TCC_EMIT(&l->low.b, amdgcn_ds_load, tcc_low_vec(&l->low, TCC_i32, words), address);
    tcc_attr_set_int(l->low.ir, &r->def->attrs, "offset", offset);
    return r;
}

/* What a lane needs of block j for a round. */
static void read_part(loop *p, int x, int64_t j, int64_t stage, int64_t round)
{
    const tcc_operand *o = &p->l->operands[x];
    p->l->low.b.loc = o->loc;
    int64_t pieces = TCC_UNIT_BYTES / o->unit, unit = pieces * o->panel_bytes;
    int64_t units = p->l->round * o->bits / 8 / TCC_UNIT_BYTES / p->l->k_groups;
    int64_t at = o->offset + stage * o->stage_bytes + j * p->l->block_step[x] * o->unit +
                 round * units * p->l->k_groups * unit;
    tcc_value *parts[16];
    size_t n = 0;
    for (int64_t u = 0; u < units; u++)
        for (int64_t h = 0; h < pieces; h++)
            parts[n++] = ds_load(p, o->read[j % o->n_reads],
                                 at + u * p->l->k_groups * unit + h * o->panel_bytes, o->unit / 4);
    p->v.parts[x][j] =
        n == 1 ? parts[0] : tcc_low_pack(&p->l->low, TCC_i32, n, parts, units * TCC_UNIT_BYTES / 4);
}

static void read_all(loop *p, int64_t stage)
{
    for (int x = 0; x < 2; x++)
        for (int64_t j = 0; j < p->l->operands[x].blocks; j++)
            read_part(p, x, j, stage, 0);
}

static void multiply(loop *p, int64_t m, int64_t n, int64_t step)
{
    tcc_amdgcn_lowering *l = p->l;
    tcc_operand *of_m = &l->operands[0], *of_n = &l->operands[1];
    int64_t words = tcc_wmma_operand_words(l->target, l->wmma->k, of_m->bits, l->low.s.wave);
    tcc_value **acc = &p->v.acc[tcc_amdgcn_acc_at(l, m, n)];
    tcc_value *a = tcc_low_slice(&l->low, p->v.parts[1][n], step * words, words);
    tcc_value *b = tcc_low_slice(&l->low, p->v.parts[0][m], step * words, words);
    *acc = TCC_EMIT(&l->low.b, amdgcn_wmma, (*acc)->type, a, b, *acc);
    tcc_attrs *attrs = &(*acc)->def->attrs;
    tcc_attr_set_str(l->low.ir, attrs, "a", tcc_scalar_name(of_n->tensor->type->elem));
    tcc_attr_set_str(l->low.ir, attrs, "b", tcc_scalar_name(of_m->tensor->type->elem));
    tcc_attr_set_str(l->low.ir, attrs, "acc", tcc_scalar_name(l->wmma->acc));
    tcc_attr_set_int(l->low.ir, attrs, "k", l->wmma->k);
    if (l->halves && n % 2)
        tcc_attr_set_int(l->low.ir, attrs, "high", 1);
}

/* ---- a tile ---------------------------------------------------------------------------- */

/* Puts tile t + 1 and begins to load tile t + 2. */
static void copy_ahead(loop *p, int64_t number)
{
    pin(p);
    wait_for(p, "load");
    pin(p);
    put(p, (number + 1) % p->l->low.s.stages);
    begin_loads(p, number + 2);
    pin(p);
}

/* Tile `number` of the trip, whose first round's operands are there. */
static void multiply_tile(loop *p, int64_t number)
{
    tcc_amdgcn_lowering *l = p->l;
    int64_t blocks_m = l->operands[0].blocks, blocks_n = l->operands[1].blocks;
    int64_t stages = l->low.s.stages;
    for (int64_t r = 0; r < p->rounds; r++) {
        bool first = r == 0, last = r == p->rounds - 1;
        if (first && last)
            copy_ahead(p, number);
        pin(p);
        if (last)
            wait_for_all_waves(p);
        else
            wait_for(p, "ds");
        pin(p);
        int64_t next_stage = (last ? number + 1 : number) % stages, next = last ? 0 : r + 1;
        for (int64_t t = 0; t < p->steps; t++)
            for (int64_t n = 0; n < blocks_n; n++) {
                bool done = t == p->steps - 1, last_column = n == blocks_n - 1;
                for (int64_t m = 0; m < blocks_m; m++) {
                    multiply(p, m, n, t);
                    if ((!first || last || n || t) && load_next(p))
                        pin(p);
                    if (done && last_column) {
                        pin(p);
                        read_part(p, 0, m, next_stage, next);
                        pin(p);
                    }
                }
                pin(p);
                if (done)
                    read_part(p, 1, n, next_stage, next);
                pin(p);
                if (first && !last && !n && !t)
                    copy_ahead(p, number);
            }
    }
    while (load_next(p))
        continue;
}

/* ---- the loop ------------------------------------------------------------------------------ */

/* All carried values in one order; returns how many. */
static size_t list(loop *p, tcc_value ***slots)
{
    tcc_amdgcn_lowering *l = p->l;
    size_t n = 0;
    for (int64_t i = 0; i < p->n_acc; i++)
        slots[n++] = &p->v.acc[i];
    for (int x = 0; p->ahead && x < 2; x++) {
        const tcc_operand *o = &l->operands[x];
        for (int64_t j = 0; j < o->blocks; j++)
            slots[n++] = &p->v.parts[x][j];
        for (int64_t i = 0; i < o->n_loads; i++)
            slots[n++] = &p->v.loaded[x][i];
    }
    assert(n <= MAX_CARRIED);
    return n;
}

static void clear_accumulators(loop *p)
{
    tcc_amdgcn_lowering *l = p->l;
    int64_t words = tcc_wmma_result_words(l->wmma, l->low.s.wave);
    bool floats = l->wmma->acc == TCC_f32;
    const tcc_type *type = tcc_low_vec(&l->low, floats ? TCC_f32 : TCC_i32, words);
    for (int64_t i = 0; i < p->n_acc; i++)
        p->v.acc[i] =
            floats ? tcc_build_float(&l->low.b, type, 0) : tcc_build_int(&l->low.b, type, 0);
}

/* Trips are whole: where the extent is not a multiple of what a trip takes, k begins as much before
 * 0, in the first two tiles, which are loaded ahead of the loop. In it nothing has to be looked at.
 * A part of a chunk lies before 0, too (tcc_ragged). Without loads ahead k begins at 0. */
static void plan_k(loop *p)
{
    tcc_lowering *low = &p->l->low;
    const tcc_ragged *ragged = &p->l->ragged;
    int64_t tile = low->s.k, trip = low->s.stages * tile;
    p->first_k = tcc_low_c32(low, 0);
    if (!p->ahead) {
        p->end_k = tcc_low_bin_const(low, TCC_OP_arith_max, p->extent, 1); /* a trip where K is 0 */
        return;
    }
    p->end_k = ragged->main ? ragged->main : p->extent;
    tcc_value *all = tcc_low_add(low, p->end_k, ragged->chunk);
    tcc_value *trips = tcc_low_div(low, tcc_low_add(low, all, trip - 1), trip);
    trips = tcc_low_bin_const(low, TCC_OP_arith_max, trips, 1);
    p->first_k = tcc_low_bin(low, TCC_OP_arith_sub, p->end_k, tcc_low_mul(low, trips, trip));
    p->last_k = tcc_low_bin_const(low, TCC_OP_arith_max, tcc_low_add(low, p->end_k, -tile), 0);
}

/* A trip that copies its tile element by element and then multiplies it, all in one stage. */
static void copy_and_multiply(loop *p)
{
    tcc_amdgcn_lowering *l = p->l;
    for (int x = 0; x < 2; x++)
        for (int64_t i = 0; i < l->operands[x].n_loads; i++)
            p->v.loaded[x][i] = tcc_amdgcn_gather(l, &l->operands[x], i, p->k);
    wait_for_all_waves(p); /* none reads the tile before any more */
    put(p, 0);
    wait_for_all_waves(p);
    for (int64_t r = 0; r < p->rounds; r++) {
        for (int x = 0; x < 2; x++)
            for (int64_t j = 0; j < l->operands[x].blocks; j++)
                read_part(p, x, j, 0, r);
        for (int64_t t = 0; t < p->steps; t++)
            for (int64_t n = 0; n < l->operands[1].blocks; n++)
                for (int64_t m = 0; m < l->operands[0].blocks; m++)
                    multiply(p, m, n, t);
    }
}

/* Tile 0 to its stage, tile 1 to registers, tile 0's first operands to registers. */
static void start(loop *p)
{
    p->k = p->first_k;
    load_ahead(p, 0);
    mend(p, 0);
    put(p, 0);
    load_ahead(p, 1);
    wait_for_all_waves(p);
    mend(p, 1);
    read_all(p, 0);
}

static void build_loop(loop *p)
{
    tcc_lowering *low = &p->l->low;
    tcc_value **slots[MAX_CARRIED], *operands[3 + MAX_CARRIED], *yields[MAX_CARRIED];
    const tcc_type *types[MAX_CARRIED];
    size_t n = list(p, slots);
    operands[0] = p->first_k;
    operands[1] = p->end_k;
    operands[2] = tcc_low_c32(low, low->s.stages * low->s.k);
    for (size_t i = 0; i < n; i++) {
        operands[3 + i] = *slots[i];
        types[i] = (*slots[i])->type;
    }
    tcc_op *op = tcc_op_create(&low->b, TCC_OP_scf_for, 3 + n, operands, n, types);
    tcc_attr_set_int(low->ir, &op->attrs, "at_least_once", 1);
    p->k = tcc_block_add_arg(op->regions[0], low->i32, "k");
    for (size_t i = 0; i < n; i++)
        *slots[i] = tcc_block_add_arg(op->regions[0], types[i], NULL);
    tcc_builder outer = low->b;
    low->b = tcc_builder_at_end(op->regions[0]);
    low->b.loc = outer.loc;
    if (p->ahead)
        for (int64_t number = 0; number < low->s.stages; number++)
            multiply_tile(p, number);
    else
        copy_and_multiply(p);
    for (size_t i = 0; i < n; i++)
        yields[i] = *slots[i];
    tcc_op_create(&low->b, TCC_OP_scf_yield, n, yields, 0, NULL);
    low->b = outer;
    for (size_t i = 0; i < n; i++)
        *slots[i] = &op->results[i];
}

tcc_op *tcc_amdgcn_product(tcc_amdgcn_lowering *l, tcc_op *first)
{
    tcc_op *last = first;
    while (last->code != TCC_OP_scf_for)
        last = last->next;
    loop *p = TCC_NEW(l->low.ctx->scratch, loop);
    p->l = l;
    tcc_operand *o = l->operands;
    p->n_acc = tcc_amdgcn_acc_at(l, o[0].blocks, 0);
    p->ahead = o[0].kind != TCC_COPY_ELEMENTS;
    p->rounds = o[0].depth / l->round;
    p->steps = l->round / l->wmma->k;
    l->low.b.loc = last->loc;
    tcc_amdgcn_cut(l);
    for (int x = 0; x < 2; x++)
        tcc_amdgcn_plan_copies(l, &o[x]);
    l->low.b.loc = last->loc;
    tcc_dim k = o[0].tensor->type->dims[o[0].k_dim];
    tcc_amdgcn_require_trips(l, k);
    p->extent = tcc_low_extent(&l->low, k);
    plan_k(p);
    clear_accumulators(p);
    if (p->ahead)
        start(p);
    l->low.b.loc = last->loc;
    build_loop(p);
    l->acc = TCC_NEW_ARRAY(l->low.ctx->scratch, tcc_value *, (size_t)p->n_acc);
    for (int64_t i = 0; i < p->n_acc; i++)
        l->acc[i] = p->v.acc[i];
    return last;
}

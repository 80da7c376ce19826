/* pipeline-registers: put the operands of an MMA through registers into shared memory, and back.
 *
 * For matrix instructions that multiply registers, where nothing copies to shared memory but threads.
 * Before:  scf.for %i = 0 … ceil(K / 32) (%c = 0.0) {
 *            %a = tile.load %A, %m, %i * 32 …    %b = tile.load %B, %i * 32, %n …
 *            scf.yield (tile.mma %a, %b, %c)
 *          }
 * After:   %ring = async.ring %sa, %sb {stages = 2, completion = barrier}
 *          (tiles 0 and 1, loaded early; tile 0 put into its stage; what the first MMA reads of it)
 *          scf.for %t … (%c, %a, %b: tile 1 on its way; %x, %y: what is multiplied next) {
 *            for each of the two stages:
 *              %c = tile.mma %x, %y, %c                       a round of tile i
 *              acquire i + 1; async.put %a, %b; commit i + 1
 *              %a = tile.load …    %b = tile.load …           of tile i + 2
 *              %x = async.read i …   %y = async.read i …      for each further round: a step ahead
 *              %c = tile.mma %x, %y, %c
 *              release i; async.barrier; wait i + 1
 *              %x = async.read i + 1 …   %y = async.read i + 1 …
 *              … %c = tile.mma, the last round, before its reads
 *          }
 *
 * An iteration takes as many tiles as there are stages, so that every address is a constant away from
 * one that is known. Where K is not as long, the sum begins that much before the tensor, in tiles 0 and
 * 1, not behind its end: in the loop nothing has to be looked at. Past the last tile that one is loaded
 * again, which nobody multiplies.
 *
 * Tiles that can only be copied element by element are loaded, put and read one after the other, where
 * their MMA stands, in whatever loop.
 *
 * Requires choose-mma, choose-layout and choose-pipeline.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/arith.h"
#include "passes/passes.h"
#include "passes/schedule.h"

enum {
    UNIT_BITS = 128, /* that a thread copies at a time */
    STAGES = 2       /* of a loop ahead of itself: a third tile waits in registers */
};

/* An MMA and its operands: a, m x k, and b, k x n. */
typedef struct pipeline {
    tcc_ir *ir;
    tcc_op *mma, *loop, *loads[2];
    tcc_value *ring, *buffers[2];
    int64_t stages, depth; /* k of a tile */
    int64_t round;         /* k that is read at a time */
} pipeline;

/* What is on its way: the sum; tiles from memory; parts of a stage. */
typedef struct carried {
    tcc_value *acc, *tiles[2], *parts[2];
} carried;

static tcc_value *bin(tcc_builder *b, tcc_opcode op, tcc_value *x, tcc_value *y)
{
    return tcc_arith_bin(b, op, x, y);
}

static void meet(tcc_builder *b)
{
    TCC_EMIT_V(b, async_barrier, NULL);
}

/* ---- pieces ---------------------------------------------------------------------------- */

static int64_t bits_of(const pipeline *p, int x)
{
    return tcc_scalar_bits(p->loads[x]->results[0].type->elem);
}

/* The operand of load x along k, and which of its tensor's dimensions that is. */
static unsigned k_operand(const pipeline *p, int x, tcc_dim *dim)
{
    int64_t d = tcc_attr_list(&p->loads[x]->attrs, "dims").list.items[!x].i;
    if (dim && d >= 0)
        *dim = TCC_VIEW(tile_load, p->loads[x])->tensor->type->dims[d];
    return d < 0 ? 0 : 1 + (unsigned)d;
}

static tcc_value *build_buffer(const pipeline *p, tcc_builder *b, int x)
{
    const tcc_type *tile = p->loads[x]->results[0].type;
    b->loc = p->loads[x]->loc;
    const tcc_type *type =
        tcc_type_sized(p->ir, TCC_KIND_smem, tile->elem, 3,
                       (int64_t[]){p->stages, tile->dims[0].size, tile->dims[1].size});
    tcc_value *v = TCC_EMIT(b, async_alloc, type, NULL);
    static const char *const names[] = {"swizzle", "contiguous", "panel", "pad"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        tcc_attr_set_int(p->ir, &v->def->attrs, names[i],
                         tcc_attr_int(&p->loads[x]->attrs, names[i], 0));
    return v;
}

static void build_ring(pipeline *p, tcc_builder *b)
{
    for (int x = 0; x < 2; x++)
        p->buffers[x] = build_buffer(p, b, x);
    b->loc = p->mma->loc;
    const tcc_type *type = tcc_type_get(p->ir, TCC_KIND_ring, TCC_f32, 0, NULL);
    p->ring = &tcc_op_create(b, TCC_OP_async_ring, 2, p->buffers, 1, &type)->results[0];
    tcc_attr_set_int(p->ir, &p->ring->def->attrs, "stages", p->stages);
    tcc_attr_set_str(p->ir, &p->ring->def->attrs, "completion", "barrier");
}

/* Both tiles from k on, at each place as `how` says: an attribute of tile.load. */
static void load_tiles(const pipeline *p, tcc_builder *b, tcc_value *k, const char *how,
                       int64_t chunk, tcc_value **tiles)
{
    for (int x = 0; x < 2; x++) {
        const tcc_op *load = p->loads[x];
        tcc_value **operands = TCC_NEW_ARRAY(p->ir->arena, tcc_value *, load->n_operands);
        memcpy(operands, load->operands, load->n_operands * sizeof *operands);
        operands[k_operand(p, x, NULL)] = k;
        const tcc_type *type =
            tcc_type_with_layout(p->ir, load->results[0].type, TCC_LAYOUT_units);
        b->loc = load->loc;
        tcc_op *op = tcc_op_create(b, TCC_OP_tile_load, load->n_operands, operands, 1, &type);
        for (size_t a = 0; a < load->attrs.len; a++)
            TCC_PUSH(p->ir->arena, &op->attrs, load->attrs.data[a]);
        tcc_attr_set_int(p->ir, &op->attrs, how, !x);
        if (chunk)
            tcc_attr_set_int(p->ir, &op->attrs, "chunk", chunk);
        tiles[x] = &op->results[0];
    }
    b->loc = p->mma->loc;
}

static void put_tiles(const pipeline *p, tcc_builder *b, tcc_value *i, tcc_value *const *tiles)
{
    TCC_EMIT_V(b, async_acquire, p->ring, i);
    for (int x = 0; x < 2; x++)
        TCC_EMIT_V(b, async_put, p->ring, i, p->buffers[x], tiles[x]);
    TCC_EMIT_V(b, async_commit, p->ring, i);
}

/* What a round of iteration i multiplies. */
static void read_parts(const pipeline *p, tcc_builder *b, tcc_value *i, int64_t round,
                       tcc_value **parts)
{
    static const tcc_layout layouts[] = {TCC_LAYOUT_operand_a, TCC_LAYOUT_operand_b};
    for (int x = 1; x >= 0; x--) { /* a register of b is free when its column is multiplied */
        const tcc_type *tile = p->loads[x]->results[0].type;
        int64_t sizes[] = {tile->dims[0].size, tile->dims[1].size}, at[] = {0, 0};
        sizes[!x] = p->round;
        at[!x] = round * p->round;
        const tcc_type *type = tcc_type_sized(p->ir, TCC_KIND_tile, tile->elem, 2, sizes);
        type = tcc_type_with_layout(p->ir, type, layouts[x]);
        b->loc = p->loads[x]->loc;
        parts[x] = TCC_EMIT(b, async_read, type, p->ring, i, p->buffers[x]);
        tcc_attr_set_ints(p->ir, &parts[x]->def->attrs, "at", 2, at);
    }
    b->loc = p->mma->loc;
}

static tcc_value *multiply(const pipeline *p, tcc_builder *b, tcc_value *const *parts, tcc_value *acc)
{
    tcc_value *r = TCC_EMIT(b, tile_mma, acc->type, parts[0], parts[1], acc);
    tcc_attr_set(p->ir, &r->def->attrs, "instr", tcc_attr_list(&p->mma->attrs, "instr"),
                 (tcc_loc){0, 0});
    return r;
}

/* v in another layout; a constant is made anew. */
static tcc_value *convert(tcc_builder *b, tcc_value *v, tcc_layout layout)
{
    const tcc_type *type = tcc_type_with_layout(b->func->ir, v->type, layout);
    if (!v->def || v->def->code != TCC_OP_arith_const)
        return TCC_EMIT(b, tile_convert, type, v);
    tcc_op *op = tcc_op_create(b, TCC_OP_arith_const, 0, NULL, 1, &type);
    op->attrs = v->def->attrs;
    return &op->results[0];
}

/* ---- one after the other --------------------------------------------------------------- */

/* Nobody reads the tile before any more when this one is put. */
static bool copy_in_place(pipeline *p)
{
    for (int x = 0; x < 2; x++)
        for (const tcc_use *u = p->loads[x]->results[0].uses; u; u = u->next)
            if (u->op->code != TCC_OP_tile_mma)
                return false;
    p->stages = 1;
    tcc_builder front = tcc_builder_before(p->loop), b = tcc_builder_before(p->mma);
    tcc_attr_remove(&p->loop->attrs, "stages");
    build_ring(p, &front);
    b.loc = p->mma->loc;
    tcc_value *tiles[2], *parts[2], *i = tcc_iteration_number(&b, p->loop);
    for (int x = 0; x < 2; x++) {
        tiles[x] = &p->loads[x]->results[0];
        tiles[x]->type = tcc_type_with_layout(p->ir, tiles[x]->type, TCC_LAYOUT_units);
    }
    meet(&b);
    put_tiles(p, &b, i, tiles);
    meet(&b);
    TCC_EMIT_V(&b, async_wait, p->ring, i);
    tcc_value *acc = convert(&b, TCC_VIEW(tile_mma, p->mma)->c, TCC_LAYOUT_accumulator);
    for (int64_t r = 0; r < p->depth / p->round; r++) {
        read_parts(p, &b, i, r, parts);
        acc = multiply(p, &b, parts, acc);
    }
    TCC_EMIT_V(&b, async_release, p->ring, i);
    tcc_replace_uses(&p->mma->results[0], convert(&b, acc, TCC_LAYOUT_none));
    tcc_op_erase(p->mma);
    return true;
}

/* ---- a loop ahead of itself ------------------------------------------------------------ */

static bool is_binary_with(const tcc_value *v, tcc_opcode code, int64_t right)
{
    int64_t number;
    return v->def && v->def->code == code && tcc_value_is_int(v->def->operands[1], &number) &&
           number == right;
}

/* Whether v is max(ceil(d / by), 1) as it is written, or without the max. */
static bool is_trips(const tcc_value *v, tcc_dim d, int64_t by)
{
    int64_t number;
    if (is_binary_with(v, TCC_OP_arith_max, 1))
        v = v->def->operands[0];
    if (!d.name && tcc_value_is_int(v, &number))
        return number == (d.size + by - 1) / by;
    if (!is_binary_with(v, TCC_OP_arith_div, by))
        return false;
    v = v->def->operands[0];
    if (!is_binary_with(v, TCC_OP_arith_add, by - 1))
        return false;
    v = v->def->operands[0];
    if (!d.name)
        return tcc_value_is_int(v, &number) && number == d.size;
    return v->def && v->def->code == TCC_OP_tensor_dim &&
           !strcmp(tcc_attr_str(&v->def->attrs, "name", ""), d.name);
}

static bool is_inside(const tcc_value *v, const tcc_op *loop)
{
    return (v->block ? v->block : v->def->block) == loop->regions[0];
}

/* Whether the loop does nothing but to add all tiles along k. */
static bool is_sum_over_tiles(const pipeline *p, tcc_dim *k)
{
    const tcc_op *loop = p->loop;
    const tcc_block *body = loop->regions[0];
    tcc_dim dims[2] = {{NULL, 0}};
    if (p->stages != STAGES || !tcc_counts_iterations(loop) || loop->n_results != 1 ||
        body->last->operands[0] != &p->mma->results[0] ||
        TCC_VIEW(tile_mma, p->mma)->c != body->args[1] || body->args[1]->n_uses != 1 ||
        p->mma->results[0].n_uses != 1)
        return false;
    for (int x = 0; x < 2; x++) {
        unsigned along = k_operand(p, x, &dims[x]);
        const tcc_value *at = along ? p->loads[x]->operands[along] : NULL;
        if (!at || !is_binary_with(at, TCC_OP_arith_mul, p->depth) ||
            at->def->operands[0] != body->args[0] || p->loads[x]->results[0].n_uses != 1)
            return false;
        for (unsigned o = 1; o < p->loads[x]->n_operands; o++)
            if (o != along && is_inside(p->loads[x]->operands[o], loop))
                return false;
    }
    for (const tcc_op *op = body->first; op != body->last; op = op->next)
        if (op != p->mma && op != p->loads[0] && op != p->loads[1] &&
            (op->n_results != 1 || op->results[0].type->kind != TCC_KIND_scalar))
            return false;
    *k = dims[0];
    return dims[0].name == dims[1].name && dims[0].size == dims[1].size &&
           is_trips(TCC_VIEW(scf_for, loop)->hi, *k, p->depth);
}

/* Where the loop's tiles begin along k, and how often it runs. */
typedef struct span {
    tcc_value *first, *last, *iterations; /* last: of the last whole tile, 0 where there is none */
    int64_t chunk;
} span;

static span plan_span(const pipeline *p, tcc_builder *b, tcc_dim k)
{
    span s = {.chunk = 0};
    int64_t all = p->stages * p->depth;
    tcc_value *end = tcc_build_extent(b, k), *length = end;
    for (int x = 0; x < 2; x++)
        if (strcmp(tcc_attr_str(&p->loads[x]->attrs, "copy", ""), "buffer"))
            s.chunk = UNIT_BITS / bits_of(p, x);
    if (s.chunk) { /* the last one comes first */
        end = bin(b, TCC_OP_arith_sub, end, tcc_arith_rest(b, end, s.chunk));
        end = tcc_arith_bin_const(b, TCC_OP_arith_max, end, 0);
        length = tcc_arith_add(b, end, s.chunk);
    }
    s.iterations = tcc_arith_div(b, tcc_arith_add(b, length, all - 1), all);
    s.iterations = tcc_arith_bin_const(b, TCC_OP_arith_max, s.iterations, 1);
    s.first = bin(b, TCC_OP_arith_sub, end, tcc_arith_mul(b, s.iterations, all));
    s.last = tcc_arith_bin_const(b, TCC_OP_arith_max, tcc_arith_add(b, end, -p->depth), 0);
    return s;
}

/* Tile `number` of an iteration, i of all, whose first round is ready. */
static void do_tile(const pipeline *p, tcc_builder *b, tcc_value *k, const span *s, int64_t number,
                    tcc_value *i, carried *v)
{
    int64_t rounds = p->depth / p->round;
    tcc_value *next = tcc_arith_add(b, i, 1);
    for (int64_t r = 0; r < rounds; r++) {
        bool last = r == rounds - 1;
        if (r == 0 && !last)
            v->acc = multiply(p, b, v->parts, v->acc);
        if (r == 0) {
            put_tiles(p, b, next, v->tiles);
            tcc_value *to = tcc_arith_add(b, k, (number + 2) * p->depth);
            load_tiles(p, b, bin(b, TCC_OP_arith_min, to, s->last), "inside", 0, v->tiles);
        }
        if (last) {
            TCC_EMIT_V(b, async_release, p->ring, i);
            meet(b);
            TCC_EMIT_V(b, async_wait, p->ring, next);
        }
        if (r || last)
            v->acc = multiply(p, b, v->parts, v->acc);
        read_parts(p, b, last ? next : i, last ? 0 : r + 1, v->parts);
    }
}

static void run_ahead(pipeline *p, tcc_dim k)
{
    enum { N = 5 };
    tcc_builder b = tcc_builder_before(p->loop);
    build_ring(p, &b);
    span s = plan_span(p, &b, k);
    tcc_value *zero = tcc_build_i32(&b, 0), *one = tcc_build_i32(&b, 1);
    carried v = {.acc = convert(&b, p->loop->operands[3], TCC_LAYOUT_accumulator)};
    load_tiles(p, &b, s.first, "early", s.chunk, v.tiles);
    put_tiles(p, &b, zero, v.tiles);
    load_tiles(p, &b, tcc_arith_add(&b, s.first, p->depth), "early", s.chunk, v.tiles);
    meet(&b);
    TCC_EMIT_V(&b, async_wait, p->ring, zero);
    read_parts(p, &b, zero, 0, v.parts);

    tcc_value **slots[N] = {&v.acc, &v.tiles[0], &v.tiles[1], &v.parts[0], &v.parts[1]};
    tcc_value *operands[3 + N] = {zero, s.iterations, one};
    const tcc_type *types[N];
    for (int i = 0; i < N; i++) {
        operands[3 + i] = *slots[i];
        types[i] = (*slots[i])->type;
    }
    tcc_op *old = p->loop, *loop = tcc_op_create(&b, TCC_OP_scf_for, 3 + N, operands, N, types);
    for (size_t a = 0; a < old->attrs.len; a++)
        TCC_PUSH(p->ir->arena, &loop->attrs, old->attrs.data[a]);
    tcc_attr_remove(&loop->attrs, "stages");
    tcc_attr_set_int(p->ir, &loop->attrs, "at_least_once", 1);
    tcc_builder in = tcc_builder_at_end(loop->regions[0]);
    in.loc = p->mma->loc;
    tcc_value *t = tcc_block_add_arg(loop->regions[0], zero->type, "i");
    for (int i = 0; i < N; i++)
        *slots[i] = tcc_block_add_arg(loop->regions[0], types[i], i ? NULL : "acc");
    tcc_value *at = bin(&in, TCC_OP_arith_add, tcc_arith_mul(&in, t, p->stages * p->depth), s.first);
    tcc_value *first = tcc_arith_mul(&in, t, p->stages);
    for (int64_t number = 0; number < p->stages; number++)
        do_tile(p, &in, at, &s, number, tcc_arith_add(&in, first, number), &v);
    for (int i = 0; i < N; i++)
        operands[i] = *slots[i];
    tcc_op_create(&in, TCC_OP_scf_yield, N, operands, 0, NULL);
    tcc_replace_uses(&old->results[0], convert(&b, &loop->results[0], TCC_LAYOUT_none));
    tcc_op_erase(old);
}

/* ---- the pass -------------------------------------------------------------------------- */

static bool is_decided(const tcc_value *v)
{
    return v->def && v->def->code == TCC_OP_tile_load && tcc_attr_find(&v->def->attrs, "panel");
}

/* False when the MMA stays as it is. */
static bool find_pipeline(tcc_ir *ir, tcc_op *mma, pipeline *p)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, mma);
    const tcc_target *target = tcc_target_of(ir);
    tcc_attr instr = tcc_attr_list(&mma->attrs, "instr");
    tcc_op *loop = mma->block->parent;
    if (!is_decided(o->a) || !is_decided(o->b) || instr.list.n != 3 || !loop ||
        loop->code != TCC_OP_scf_for || !tcc_attr_find(&loop->attrs, "lanes"))
        return false;
    *p = (pipeline){.ir = ir,
                    .mma = mma,
                    .loop = loop,
                    .loads = {o->a->def, o->b->def},
                    .stages = tcc_attr_int(&loop->attrs, "stages", 1),
                    .depth = o->a->type->dims[1].size};
    tcc_rdna_product product = {.target = target, .bits = (unsigned)bits_of(p, 0)};
    product.wmma = tcc_wmma_find(target, o->b->type->elem, o->a->type->elem, o->c->type->elem,
                                 instr.list.items[2].i);
    p->round = product.wmma ? tcc_rdna_round(&product, tcc_attr_int(&loop->attrs, "lanes", 0)) : 0;
    return p->round && p->depth % p->round == 0;
}

static bool by_element(const pipeline *p)
{
    for (int x = 0; x < 2; x++)
        if (!tcc_has_word("buffer unaligned", tcc_attr_str(&p->loads[x]->attrs, "copy", "")))
            return true;
    return false;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    TCC_VEC(tcc_op *) mmas = {0};
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_tile_mma)
            TCC_PUSH(ctx->scratch, &mmas, op);
    for (size_t i = 0; i < mmas.len; i++) {
        pipeline p;
        tcc_dim k;
        if (!find_pipeline(ctx->ir, mmas.data[i], &p))
            continue;
        if (by_element(&p)) {
            *changed |= copy_in_place(&p);
        } else if (is_sum_over_tiles(&p, &k)) {
            run_ahead(&p, k);
            *changed = true;
        }
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_pipeline_registers = {
    "pipeline-registers", "put the operands of an MMA through registers into shared memory", run};

/* draw-tiles: let one thread of a persistent CTA draw tiles, and tell the other roles which.
 *
 * Before:  %n = tile.takes %cta, %ctas, %all
 *          async.role {name = consumer, …} {
 *            scf.for %t = 0 to %n { %tile = tile.take %cta, %ctas, %all, %t … }
 *          }
 *          async.role {name = producer, …} { async.one {
 *            scf.for %t = 0 to %n { %tile = tile.take %cta, %ctas, %all, %t … }
 *          } }
 * After:   %words = async.alloc : smem<i32[2, 1, 2]>
 *          %ring = async.ring %words {stages = 2, completion = arrivals, …}
 *          async.role {name = consumer, …} {
 *            scf.for %t = 0 to %all, %more = 1, %tile = %cta {while = 1} {
 *              …
 *              async.wait %ring, %t   %next = async.read_word %ring, %t, %words   async.release %ring, %t
 *              scf.yield (%next < %all), %next
 *            }
 *          }
 *          async.role {name = producer, …} { async.one {
 *            scf.for %t = 0 to %all, %more = 1, %tile = %cta {while = 1} {
 *              …
 *              %next = async.draw %counter + %ctas
 *              async.acquire %ring, %t   async.put_word %ring, %t, %words, %next   async.commit %ring, %t
 *              scf.yield (%next < %all), %next
 *            }
 *          } }
 *
 * %counter is a workspace tensor that begins as 0. A CTA's first tile is that of its own number; from then on numbers
 * are drawn, each when the copies of the tile before have been started. All roles get the same ones, and so end after
 * as many tiles; consumers that take turns hear of each other's, too. There are as many draws as tiles.
 *
 * Of a cluster, whose CTAs take neighbouring tiles together, the first one's thread draws, and puts the number where
 * all CTAs read it, its own and the producers among them:
 *            …
 *            %first = %rank == 0
 *            scf.if %first { %next = async.draw %counter + %ctas
 *                            async.acquire %ring, %t   async.put_word %ring, %t, %words, %next
 *                            async.commit %ring, %t }
 *            async.wait %ring, %t   %next = async.read_word %ring, %t, %words   async.release %ring, %t
 *
 * Requires specialize-warps and what computes tiles. Preserves what each tile does.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/shared.h"
#include "ir/signature.h"
#include "passes/arith.h"
#include "passes/loops.h"
#include "passes/passes.h"
#include "passes/schedule.h"

typedef struct drawing {
    tcc_ir *ir;
    tcc_op *takes; /* how many tiles the CTA takes */
    TCC_VEC(tcc_op *) loops; /* of so many iterations, one in each role, of which the first draws */
    tcc_value *ring, *words, *counter;
    int64_t cluster; /* CTAs that take the same tiles */
    tcc_value *rank; /* the CTA's place in its cluster; NULL: it is alone */
} drawing;

static tcc_op *find_takes(const tcc_func *f)
{
    tcc_op *op = f->body->first;
    while (op && op->code != TCC_OP_tile_takes)
        op = tcc_walk_next(op, f->body);
    return op;
}

static tcc_op *role_of(const tcc_op *loop)
{
    tcc_op *op = loop->block->parent;
    return op && op->code == TCC_OP_async_one ? op->block->parent : op;
}

static bool is_by_one(const tcc_op *loop)
{
    return loop->block->parent->code == TCC_OP_async_one;
}

/* Whether an op gives the number of the tile of a loop's iteration, one of those that %n counts. */
static bool is_of_loop(const tcc_op *take, const tcc_op *loop, const tcc_op *takes)
{
    bool same = take->operands[3] == loop->regions[0]->args[0];
    for (unsigned i = 0; i < 3; i++)
        same &= take->operands[i] == takes->operands[i];
    return same;
}

/* What stands in the way; NULL: nothing. */
static const char *find_loops(tcc_pass_ctx *ctx, const tcc_func *f, drawing *d)
{
    size_t drawing_loops = 0, n_takes = 0;
    for (const tcc_use *u = d->takes->results[0].uses; u; u = u->next) {
        tcc_op *loop = u->op;
        if (!tcc_is_loop(loop) || loop->operands[1] != &d->takes->results[0] || !tcc_counts_iterations(loop) ||
            loop->n_results || !tcc_attr_int(&loop->attrs, "at_least_once", 0))
            return "how many tiles a CTA takes, but by a loop over them";
        const tcc_op *role = role_of(loop);
        if (!role || role->code != TCC_OP_async_role || role->block != d->takes->block)
            return "tiles that are drawn where no role takes them one by one";
        TCC_PUSH(ctx->scratch, &d->loops, loop);
        if (is_by_one(loop)) {
            d->loops.data[d->loops.len - 1] = d->loops.data[0];
            d->loops.data[0] = loop;
            drawing_loops++;
        }
    }
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        bool known = op->code != TCC_OP_tile_take && (op->code != TCC_OP_tile_takes || op == d->takes);
        n_takes += op->code == TCC_OP_tile_takes;
        for (size_t i = 0; i < d->loops.len && !known; i++)
            known = op->code == TCC_OP_tile_take && is_of_loop(op, d->loops.data[i], d->takes);
        if (!known)
            return "tiles that are drawn otherwise than one by one in a loop";
    }
    bool one = drawing_loops == 1 && d->loops.len > 1 && n_takes == 1;
    return one ? NULL : "tiles that no thread, or more than one, draws";
}

/* In front of the roles, and of where the CTAs of a cluster meet before them, the ring behind all others. */
static void make_ring(drawing *d, tcc_func *f)
{
    tcc_op *first = d->takes->block->first;
    while (first->code != TCC_OP_async_role && first->code != TCC_OP_async_cluster_barrier)
        first = first->next;
    tcc_builder b = tcc_builder_before(first);
    b.loc = d->takes->loc;
    const int64_t sizes[] = {TCC_DRAWN_STAGES, 1, TCC_DRAWN_BYTES / 4};
    d->words = TCC_EMIT(&b, async_alloc, tcc_type_sized(d->ir, TCC_KIND_smem, TCC_i32, 3, sizes), NULL);
    tcc_attr_set_int(d->ir, &d->words->def->attrs, "swizzle", 0);
    tcc_attr_set_int(d->ir, &d->words->def->attrs, "contiguous", 1);
    tcc_attr_set_int(d->ir, &d->words->def->attrs, "panel", TCC_DRAWN_BYTES);
    const tcc_type *type = tcc_type_get(d->ir, TCC_KIND_ring, TCC_f32, 0, NULL);
    tcc_op *ring = tcc_op_create(&b, TCC_OP_async_ring, 1, &d->words, 1, &type);
    tcc_attr_set_int(d->ir, &ring->attrs, "stages", TCC_DRAWN_STAGES);
    tcc_attr_set_str(d->ir, &ring->attrs, "completion", "arrivals");
    tcc_attr_set_int(d->ir, &ring->attrs, "commits", 1);
    if (d->rank)
        tcc_attr_set_int(d->ir, &ring->attrs, "cluster", d->cluster);
    d->ring = &ring->results[0];
    const int64_t one = 1;
    d->counter = tcc_func_add_workspace(f, tcc_type_sized(d->ir, TCC_KIND_tensor, TCC_i32, 1, &one), "counter");
    tcc_func_zero_workspace(f, d->counter->name);
}

static tcc_value *draw_next(const drawing *d, tcc_builder *b)
{
    const tcc_tile_takes_operands *of = TCC_VIEW(tile_takes, d->takes);
    return tcc_arith_bin(b, TCC_OP_arith_add, TCC_EMIT(b, async_draw, of->ctas->type, d->counter), of->ctas);
}

static void put(const drawing *d, tcc_builder *b, tcc_value *t, tcc_value *next)
{
    TCC_EMIT_V(b, async_acquire, d->ring, t);
    TCC_EMIT_V(b, async_put_word, d->ring, t, d->words, next);
    TCC_EMIT_V(b, async_commit, d->ring, t);
}

static tcc_value *hear(const drawing *d, tcc_builder *b, tcc_value *t)
{
    TCC_EMIT_V(b, async_wait, d->ring, t);
    tcc_value *next = TCC_EMIT(b, async_read_word, t->type, d->ring, t, d->words);
    TCC_EMIT_V(b, async_release, d->ring, t);
    return next;
}

/* The number of the tile that comes next, at the end of an iteration. Not before: a CTA that draws while it still has a
 * tile to begin keeps it from those that have none. */
static tcc_value *next_tile(const drawing *d, tcc_op *loop)
{
    tcc_block *body = loop->regions[0];
    tcc_value *t = body->args[0];
    tcc_builder b = tcc_builder_before(body->last);
    b.loc = d->takes->loc;
    if (!is_by_one(loop))
        return hear(d, &b, t);
    tcc_value *first = d->rank ? tcc_arith_cmp(&b, "eq", d->rank, tcc_build_i32(&b, 0)) : NULL;
    tcc_op *test = first ? tcc_begin_if(&b, first) : NULL;
    tcc_value *next = draw_next(d, &b);
    put(d, &b, t, next);
    if (!test)
        return next;
    tcc_end_if(&b, test);
    return hear(d, &b, t);
}

static void draw(const drawing *d, tcc_op *loop)
{
    const tcc_tile_takes_operands *of = TCC_VIEW(tile_takes, d->takes);
    tcc_builder b = tcc_builder_before(loop);
    b.loc = loop->loc;
    tcc_value *yes = TCC_EMIT(&b, arith_const, tcc_type_scalar(d->ir, TCC_i1), NULL);
    tcc_attr_set_int(d->ir, &yes->def->attrs, "value", 1);
    tcc_op_set_operand(loop, 1, of->all);
    tcc_attr_set_int(d->ir, &loop->attrs, "while", 1);
    loop = tcc_carry(loop, yes);
    tcc_block *body = loop->regions[0];
    tcc_value *next = next_tile(d, loop);
    b = tcc_builder_before(body->last);
    b.loc = d->takes->loc;
    tcc_carry_next(loop, tcc_arith_cmp(&b, "lt", next, of->all));
    loop = tcc_carry(loop, of->cta);
    tcc_carry_next(loop, next);
    for (tcc_op *op = body->first, *after; op; op = after) {
        after = tcc_walk_next(op, body);
        if (op->code != TCC_OP_tile_take)
            continue;
        tcc_replace_uses(&op->results[0], body->args[2]);
        tcc_op_erase(op);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    drawing d = {.ir = ctx->ir, .takes = find_takes(f)};
    if (!d.takes)
        return TCC_OK;
    const char *why = find_loops(ctx, f, &d);
    if (why) {
        tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, d.takes->loc, "not supported yet: %s", why);
        return TCC_ERR_UNSUPPORTED;
    }
    const tcc_op *ctas = d.takes->block->parent;
    d.cluster = tcc_attr_int(&ctas->attrs, "cluster", 1);
    if (d.cluster > 1)
        d.rank = ctas->regions[0]->args[ctas->regions[0]->n_args - 1];
    make_ring(&d, f);
    for (size_t i = 0; i < d.loops.len; i++)
        draw(&d, d.loops.data[i]);
    tcc_attr_set_int(d.ir, &d.ring->def->attrs, "releases", tcc_readers_of(d.ring->def).arrivals * d.cluster);
    tcc_op_erase(d.takes);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_draw_tiles = {
    "draw-tiles", "let one thread draw a CTA's tiles, and tell the others", .run = run,
    .requires = TCC_UP_TO(roles),
    .undoes = TCC_STATE(places)};

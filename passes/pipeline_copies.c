/* pipeline-copies: pass the operands of MMAs through rings of shared-memory stages.
 *
 * Before:  scf.for %i … (%c = 0.0) {
 *            %a = tile.load %A …    %b = tile.load %B …
 *            scf.yield (tile.mma %a, %b, %c)
 *          }
 * After:   %sa = async.alloc …    %sb = async.alloc …    %ring = async.ring %sa, %sb {completion = bytes}
 *          scf.for %i … (%c = 0.0) {
 *            async.acquire %ring, %i
 *            async.copy %ring, %i, %sa, %A …    async.copy %ring, %i, %sb, %B …
 *            async.commit %ring, %i {bytes = …}
 *            async.wait %ring, %i
 *            %r = async.mma %ring, %i, %sa, %sb, %c
 *            %w = async.mma_wait %r {pending = 1}
 *            async.release %ring, (%i - 1)
 *            scf.yield %w
 *          }
 *          async.mma_wait … {pending = 0}
 *
 * Loads of one block that the same MMAs read share a ring: a tile that several MMAs read is copied once, and
 * operands of different MMAs become full, and are released, each by itself. What is loaded outside loops has
 * a ring of one stage. The first operand of an MMA may be a tile that was computed: it stays in registers, and what it
 * is computed of, if that is a load, is read from its stage. The second one, which no instruction takes from registers,
 * is put into stages of a ring of the consumers' own, and with it the first one if that is computed, too: so its
 * registers are free while the MMA runs on:
 *
 *          async.acquire %own, %i    async.put %own, %i, %sc, %computed    async.commit %own, %i
 *          async.wait %own, %i       (mma of %sc)                          async.release %own, (%i - 1)
 *
 * A load that several CTAs of a cluster share becomes a copy by each to all of them, and its ring one of
 * the cluster: so they synchronize after its initialisation, and before they end.
 *
 * MMAs whose results a loop only carries are pending into its next iteration, so the stage of the previous
 * iteration is released. With one stage this would wait for itself: then no MMA is left pending. Other MMAs
 * are waited for before the first use of their result, while those after them stay pending; what is computed meanwhile
 * is held before the wait.
 *
 * The copies and the MMAs are still one sequence here; specialize-warps separates them.
 *
 * Requires choose-mma, choose-layout and choose-pipeline.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/cluster.h"
#include "ir/target.h"
#include "passes/arith.h"
#include "passes/loops.h"
#include "passes/passes.h"
#include "passes/schedule.h"
#include "passes/tiling.h"

/* Tiles of one block that share a ring, and the MMAs that read them, or what is computed of them. */
typedef struct group {
    tcc_block *block;
    bool computed;            /* the tiles; else they are loads */
    TCC_VEC(tcc_value *) tiles;
    TCC_VEC(tcc_value *) buffers;
    TCC_VEC(tcc_op *) mmas; /* in order */
    tcc_value *ring, *i;    /* the number of the iteration */
    int64_t stages;
    const char *completion; /* of the ring */
    bool read;              /* it is also read to registers */
    bool read_alone;        /* it is only read to registers, and so released at once */
} group;

typedef struct pipeline {
    tcc_func *f;
    tcc_arena *scratch;
    TCC_VEC(tcc_op *) mmas; /* to pipeline, in order */
    TCC_VEC(group *) groups;
} pipeline;

/* Whether v is a load of which choose-layout has decided that it goes straight into shared memory. */
static bool is_decided(const tcc_value *v)
{
    return v->def && v->def->code == TCC_OP_tile_load && tcc_attr_find(&v->def->attrs, "copy") &&
           !tcc_attr_find(&v->def->attrs, "panel") && tcc_has_iteration_number(v->def->block);
}

/* The decided load that an operand of an MMA is, or is computed of; NULL when there is none. */
static tcc_value *source_of(const pipeline *p, const tcc_op *mma, unsigned operand)
{
    tcc_op *load = tcc_tiled_load(mma, operand, p->scratch);
    return load && is_decided(&load->results[0]) ? &load->results[0] : NULL;
}

/* Whether an operand is computed of a decided load, and comes to the MMA through stages. */
static bool is_put(const pipeline *p, const tcc_op *mma, unsigned operand)
{
    return tcc_mma_puts(mma, operand, p->scratch) && source_of(p, mma, 1) && source_of(p, mma, operand);
}

/* Whether an MMA's operands are decided loads, or computed: B of one. */
static bool can_pipeline(const pipeline *p, const tcc_op *op)
{
    bool reads_shared = tcc_target_can(tcc_func_target(op->block->func), TCC_CAN_wgmma);
    if (op->code != TCC_OP_tile_mma || !tcc_attr_find(&op->attrs, "instr") || !reads_shared)
        return false;
    const tcc_tile_mma_operands *mma = TCC_VIEW(tile_mma, op);
    const tcc_op *a = mma->a->def, *loop = op->block->parent;
    bool computed = !a || (a->code != TCC_OP_tile_load && a->code != TCC_OP_arith_const);
    return source_of(p, op, 1) && (is_decided(mma->a) || computed) &&
           (!tcc_is_loop(loop) || tcc_attr_find(&loop->attrs, "stages"));
}

/* ---- groups -------------------------------------------------------------------------------- */

static group *group_of(const pipeline *p, const tcc_value *tile)
{
    for (size_t g = 0; g < p->groups.len; g++)
        for (size_t t = 0; t < p->groups.data[g]->tiles.len; t++)
            if (p->groups.data[g]->tiles.data[t] == tile)
                return p->groups.data[g];
    return NULL;
}

static bool uses(const tcc_op *op, const group *g)
{
    for (size_t t = 0; t < g->tiles.len; t++)
        for (const tcc_use *u = g->tiles.data[t]->uses; u; u = u->next)
            if (tcc_ancestor_in(u->op, g->block) == op)
                return true;
    return false;
}

/* The first reader of a group's tiles: their stages are filled before it. */
static tcc_op *front_of(const group *g)
{
    tcc_op *op = g->block->first;
    while (!uses(op, g))
        op = op->next;
    return op;
}

/* Whether a group's tiles are available before op. */
static bool is_there(const group *g, const tcc_op *op)
{
    bool all = true;
    for (size_t t = 0; t < g->tiles.len; t++)
        all &= tcc_op_reaches(g->tiles.data[t]->def, op);
    return all;
}

/* Loads can be made as early as one likes. */
static bool can_merge(const group *a, const group *b)
{
    bool ready = !a->computed || (is_there(a, front_of(b)) && is_there(b, front_of(a)));
    return a->block == b->block && a->computed == b->computed && ready;
}

/* Adds the tiles of `from` to those of `to`. */
static void merge(pipeline *p, group *to, group *from)
{
    for (size_t t = 0; t < from->tiles.len; t++)
        TCC_PUSH(p->scratch, &to->tiles, from->tiles.data[t]);
    from->tiles.len = 0;
}

static group *add_tile(pipeline *p, tcc_value *v, bool computed)
{
    group *g = group_of(p, v);
    if (g)
        return g;
    g = TCC_NEW(p->scratch, group);
    g->block = v->def->block;
    g->computed = computed;
    TCC_PUSH(p->scratch, &g->tiles, v);
    TCC_PUSH(p->scratch, &p->groups, g);
    return g;
}

/* The operands of an MMA, and what they are computed from. */
static void add_operands(pipeline *p, const tcc_op *mma)
{
    tcc_value *sources[2];
    group *loaded[2], *put[2];
    for (unsigned o = 0; o < 2; o++)
        sources[o] = source_of(p, mma, o);
    for (unsigned o = 0; o < 2; o++) {
        loaded[o] = sources[o] ? add_tile(p, sources[o], false) : NULL;
        put[o] = is_put(p, mma, o) ? add_tile(p, mma->operands[o], true) : NULL;
    }
    if (loaded[0] && loaded[0] != loaded[1] && can_merge(loaded[0], loaded[1]))
        merge(p, loaded[0], loaded[1]);
    if (put[0] && put[0] != put[1] && can_merge(put[0], put[1]))
        merge(p, put[0], put[1]);
}

/* The groups that have an operand of an MMA: it as it is multiplied, and what it is computed of. */
static void groups_of_operand(const pipeline *p, const tcc_op *mma, unsigned operand, group *of[2])
{
    const tcc_value *source = source_of(p, mma, operand), *multiplied = mma->operands[operand];
    of[0] = source ? group_of(p, source) : NULL;
    of[1] = source && multiplied != source ? group_of(p, multiplied) : NULL; /* put for this MMA, or for another one */
}

/* Whether all that a group loads is read to registers, and no MMA reads it. */
static bool is_read_alone(const pipeline *p, const group *g)
{
    bool alone = !g->computed;
    for (size_t m = 0; m < g->mmas.len; m++)
        for (unsigned o = 0; o < 2; o++) {
            group *of[2];
            groups_of_operand(p, g->mmas.data[m], o, of);
            alone &= of[0] != g || of[1];
        }
    return alone;
}

static void group_tiles(pipeline *p)
{
    for (size_t m = 0; m < p->mmas.len; m++)
        add_operands(p, p->mmas.data[m]);
    size_t n = 0;
    for (size_t g = 0; g < p->groups.len; g++)
        if (p->groups.data[g]->tiles.len)
            p->groups.data[n++] = p->groups.data[g];
    p->groups.len = n;
    for (size_t m = 0; m < p->mmas.len; m++)
        for (unsigned o = 0; o < 2; o++) {
            group *of[2];
            groups_of_operand(p, p->mmas.data[m], o, of);
            for (int i = 0; i < 2; i++)
                if (of[i] && (!of[i]->mmas.len || of[i]->mmas.data[of[i]->mmas.len - 1] != p->mmas.data[m]))
                    TCC_PUSH(p->scratch, &of[i]->mmas, p->mmas.data[m]);
        }
    for (size_t g = 0; g < p->groups.len; g++)
        p->groups.data[g]->read_alone = is_read_alone(p, p->groups.data[g]);
}

/* ---- rings --------------------------------------------------------------------------------- */

/* As wide as what the MMA's instruction takes of an operand lets panels be. */
static int64_t swizzle_of(const tcc_op *mma, unsigned operand, int64_t contiguous)
{
    enum { WIDEST = 128 };
    const tcc_type *tile = mma->operands[operand]->type;
    int64_t instr = tcc_attr_list(&mma->attrs, "instr").list.items[operand].i;
    int64_t elems = contiguous == (operand ? 0 : 1) ? tile->dims[contiguous].size : instr;
    return tcc_swizzle_of(elems * tcc_scalar_bits(tile->elem) / 8, WIDEST);
}

/* Which operand of an MMA of the group a tile is. */
static unsigned operand_of(const group *g, const tcc_value *tile, const tcc_op **mma)
{
    for (size_t m = 0; m < g->mmas.len; m++)
        for (unsigned o = 0; o < 2; o++)
            if (g->mmas.data[m]->operands[o] == tile) {
                *mma = g->mmas.data[m];
                return o;
            }
    return 0; /* never */
}

/* The stages that a tile goes through: a load as choose-layout has decided, what is computed of one in its
 * direction. */
static tcc_value *build_alloc(const pipeline *p, tcc_builder *b, const group *g, const tcc_value *v)
{
    const tcc_type *tile = v->type;
    const tcc_op *load = v->def, *mma = NULL;
    int64_t sizes[] = {g->stages, tile->dims[0].size, tile->dims[1].size};
    unsigned operand = 0;
    if (g->computed) {
        operand = operand_of(g, v, &mma);
        load = source_of(p, mma, operand)->def;
    }
    b->loc = v->def->loc;
    tcc_value *r = TCC_EMIT(b, async_alloc,
                            tcc_type_sized(b->func->ir, TCC_KIND_smem, tile->elem, 3, sizes), NULL);
    int64_t contiguous = tcc_attr_int(&load->attrs, "contiguous", 1);
    int64_t swizzle = mma ? swizzle_of(mma, operand, contiguous) : tcc_attr_int(&load->attrs, "swizzle", 0);
    tcc_attr_set_int(b->func->ir, &r->def->attrs, "swizzle", swizzle);
    tcc_attr_set_int(b->func->ir, &r->def->attrs, "contiguous", contiguous);
    return r;
}

/* The CTAs of the load's cluster that copy it for each other. */
static tcc_peers peers_of(const tcc_op *load)
{
    const tcc_op *ctas = tcc_outermost((tcc_op *)load)->block->parent;
    tcc_peers peers = tcc_peers_of(load);
    bool of_cluster = ctas && ctas->code == TCC_OP_tile_ctas &&
                      tcc_attr_int(&ctas->attrs, "cluster", 1) % (peers.n * peers.apart) == 0;
    return of_cluster ? peers : (tcc_peers){1, 1};
}

/* The rows of the cluster that fills a ring's stages are the adjacent CTAs that copy the same; the columns are
 * those whose ranks are further apart. */
static void count_fillers(const group *g, tcc_op *ring)
{
    int64_t rows = 1, columns = 1;
    for (size_t t = 0; t < g->tiles.len && !g->computed; t++) {
        tcc_peers peers = peers_of(g->tiles.data[t]->def);
        if (peers.apart > 1) {
            rows = peers.apart;
            columns = peers.n;
        } else if (peers.n > rows) {
            rows = peers.n;
        }
    }
    if (rows * columns > 1)
        tcc_attr_set_int(ring->block->func->ir, &ring->attrs, "cluster", rows * columns);
    if (rows > 1 && columns > 1)
        tcc_attr_set_int(ring->block->func->ir, &ring->attrs, "rows", rows);
}

static bool is_meeting(const tcc_op *op)
{
    return op->code == TCC_OP_async_cluster_barrier;
}

/* No CTA accesses another before its rings are initialised, or after it has ended. CTAs that share a sum synchronize
 * before it and at the end anyway. */
static void build_meetings(const pipeline *p, tcc_op *first)
{
    bool shared = false;
    for (size_t g = 0; g < p->groups.len; g++)
        shared |= tcc_attr_find(&p->groups.data[g]->ring->def->attrs, "cluster") != NULL;
    tcc_op *there = first->block->first;
    while (there != first && !is_meeting(there))
        there = there->next;
    tcc_builder ends[] = {tcc_builder_before(first), tcc_builder_at_end(first->block)};
    if (there != first)
        tcc_op_move(&ends[0], there);
    for (int i = 0; shared && there == first && i < 2; i++) {
        ends[i].loc = p->groups.data[0]->ring->def->loc;
        TCC_EMIT_V(&ends[i], async_cluster_barrier, NULL);
    }
}

static void build_ring(pipeline *p, group *g, tcc_op *before)
{
    tcc_ir *ir = p->f->ir;
    tcc_builder b = tcc_builder_before(before);
    for (size_t t = 0; t < g->tiles.len; t++)
        TCC_PUSH(p->scratch, &g->buffers, build_alloc(p, &b, g, g->tiles.data[t]));
    b.loc = front_of(g)->loc;
    if (tcc_is_loop(g->block->parent))
        b.loc = g->block->parent->loc;
    const tcc_type *type = tcc_type_get(ir, TCC_KIND_ring, TCC_f32, 0, NULL);
    g->ring =
        &tcc_op_create(&b, TCC_OP_async_ring, g->buffers.len, g->buffers.data, 1, &type)->results[0];
    tcc_attr_set_int(ir, &g->ring->def->attrs, "stages", g->stages);
    tcc_attr_set_str(ir, &g->ring->def->attrs, "completion", g->completion);
    count_fillers(g, g->ring->def);
}

static tcc_value *buffer_of(const group *g, const tcc_value *tile)
{
    size_t t = 0;
    while (g->tiles.data[t] != tile)
        t++;
    return g->buffers.data[t];
}

static void build_copy(tcc_builder *b, const tcc_op *load, tcc_value *ring, tcc_value *i,
                       tcc_value *buffer)
{
    tcc_ir *ir = b->func->ir;
    unsigned n = load->n_operands + 3;
    tcc_value **operands = TCC_NEW_ARRAY(ir->arena, tcc_value *, n);
    operands[0] = ring;
    operands[1] = i;
    operands[2] = buffer;
    for (unsigned o = 0; o < load->n_operands; o++) /* the tensor and its coordinates */
        operands[3 + o] = load->operands[o];
    b->loc = load->loc;
    tcc_op *copy = tcc_op_create(b, TCC_OP_async_copy, n, operands, 0, NULL);
    tcc_attr_set(ir, &copy->attrs, "dims", tcc_attr_list(&load->attrs, "dims"), (tcc_loc){0, 0});
    tcc_attr_set_str(ir, &copy->attrs, "copy", tcc_attr_str(&load->attrs, "copy", "predicated"));
    tcc_peers_set(copy, peers_of(load));
    tcc_attr_carry(ir, &copy->attrs, &load->attrs, "cache");
}

static void build_commit(const group *g, tcc_builder *b, tcc_value *i)
{
    tcc_op *commit = TCC_EMIT_V(b, async_commit, g->ring, i);
    if (strcmp(g->completion, "bytes"))
        return;
    int64_t bytes = 0;
    for (size_t t = 0; t < g->tiles.len; t++) {
        const tcc_type *tile = g->tiles.data[t]->type;
        bytes += tcc_type_count(tile) * tcc_scalar_bits(tile->elem) / 8;
    }
    tcc_attr_set_int(b->func->ir, &commit->attrs, "bytes", bytes);
}

/* Users of a load other than MMAs read its stage. */
static void build_reads(const pipeline *p, group *g, tcc_builder *b)
{
    for (size_t t = 0; t < g->tiles.len; t++) {
        tcc_value *loaded = g->tiles.data[t], *read = NULL;
        for (tcc_use *u = loaded->uses, *next; u; u = next) {
            bool multiplies = false;
            next = u->next;
            for (size_t m = 0; m < p->mmas.len; m++)
                multiplies |= u->op == p->mmas.data[m];
            if (multiplies)
                continue;
            if (!read) {
                b->loc = loaded->def->loc;
                g->read = true;
                read = TCC_EMIT(b, async_read, loaded->type, g->ring, g->i, g->buffers.data[t]);
                tcc_attr_set_ints(b->func->ir, &read->def->attrs, "at", 2, (int64_t[]){0, 0});
            }
            for (unsigned o = 0; o < u->op->n_operands; o++)
                if (u->op->operands[o] == loaded) {
                    tcc_op_set_operand(u->op, o, read);
                    break;
                }
        }
    }
}

static void erase_loads(const group *g)
{
    for (size_t t = 0; t < g->tiles.len && !g->computed; t++)
        if (!g->tiles.data[t]->n_uses)
            tcc_op_erase(g->tiles.data[t]->def);
}

/* ---- MMAs ---------------------------------------------------------------------------------- */

/* The index of the MMA's result among the values carried by its loop, if it has no other use and the MMA
 * adds to the value carried there: then it may be pending into the next iteration. -1: it may not. */
static int carried_at(const tcc_op *mma)
{
    const tcc_block *body = mma->block;
    const tcc_value *r = &mma->results[0];
    const tcc_value *c = mma->operands[mma->code == TCC_OP_tile_mma ? 2 : 4];
    if (!tcc_is_loop(body->parent) || r->n_uses != 1 || r->uses->op != body->last || c->n_uses != 1)
        return -1;
    for (unsigned i = 0; i < body->last->n_operands; i++)
        if (body->last->operands[i] == r)
            return body->args[1 + i] == c ? (int)i : -1;
    return -1;
}

/* The async.mma before the tile.mma, whose uses it takes over. */
static tcc_op *build_mma(tcc_builder *b, const tcc_op *mma, const group *ga, const group *gb)
{
    const tcc_tile_mma_operands *o = TCC_VIEW(tile_mma, mma);
    tcc_value *a = ga ? buffer_of(ga, o->a) : o->a, *buffer = buffer_of(gb, o->b);
    tcc_value *operands[8] = {gb->ring, gb->i, a, buffer, o->c}, *adds = tcc_mma_accumulate(mma);
    unsigned n = 5;
    if (ga && ga != gb) {
        operands[n++] = ga->ring;
        operands[n++] = ga->i;
    }
    if (adds)
        operands[n++] = adds;
    b->loc = mma->loc;
    tcc_op *r = tcc_op_create(b, TCC_OP_async_mma, n, operands, 1, &mma->results[0].type);
    tcc_attr_set(b->func->ir, &r->attrs, "instr", tcc_attr_list(&mma->attrs, "instr"),
                 (tcc_loc){0, 0});
    return r;
}

static tcc_value *build_wait(tcc_builder *b, tcc_value *r, int64_t pending)
{
    tcc_value *w = TCC_EMIT(b, async_mma_wait, r->type, r);
    tcc_attr_set_int(b->func->ir, &w->def->attrs, "pending", pending);
    return w;
}

/* r may be read when the MMAs have ended: its users get the wait's result. */
static tcc_op *wait_for(tcc_builder *b, tcc_value *r, int64_t pending)
{
    tcc_value *w = build_wait(b, r, pending);
    tcc_replace_uses(r, w);
    tcc_op_set_operand(w->def, 0, r);
    return w->def;
}

/* Gives the stage of an iteration back. */
static void build_release(const group *g, tcc_builder *b, tcc_value *i)
{
    if (g->read)
        TCC_EMIT_V(b, async_publish, NULL);
    TCC_EMIT_V(b, async_release, g->ring, i);
}

/* The first op of mma's block that uses its result; the op after the mma if none does. */
static tcc_op *first_use(const tcc_op *mma)
{
    const tcc_value *r = &mma->results[0];
    for (tcc_op *op = r->n_uses ? mma->next : NULL; op; op = op->next)
        for (const tcc_use *u = r->uses; u; u = u->next)
            if (tcc_ancestor_in(u->op, mma->block) == op)
                return op;
    return mma->next;
}

/* MMAs of mma's block that are started between it and `end`. */
static int64_t count_between(const tcc_op *mma, const tcc_op *end)
{
    int64_t n = 0;
    for (const tcc_op *op = mma->next; op != end; op = op->next)
        n += op->code == TCC_OP_async_mma;
    return n;
}

/* What is computed at some cost while an MMA runs that is waited for before `end`: its last value. NULL: nothing. */
static tcc_value *computed_meanwhile(const tcc_op *mma, const tcc_op *end)
{
    tcc_value *last = NULL;
    for (tcc_op *op = mma->next; op != end; op = op->next) {
        bool counts = op->code == TCC_OP_tile_reduce || !strncmp(tcc_op_info_get(op->code)->name, "math.", 5);
        if (counts && op->results[0].type->kind == TCC_KIND_tile && op->results[0].type->elem == TCC_f32)
            last = &op->results[0];
    }
    return last;
}

/* Whether all MMAs in a loop run on into its next iteration. Registers of A would have to stay what they are
 * until then. */
static bool can_run_on(const pipeline *p, const tcc_block *block)
{
    for (size_t m = 0; m < p->mmas.len; m++)
        if (tcc_ancestor_in(p->mmas.data[m], block) &&
            (p->mmas.data[m]->block != block || carried_at(p->mmas.data[m]) < 0 ||
             p->mmas.data[m]->operands[2]->type->kind == TCC_KIND_tile))
            return false;
    for (size_t g = 0; g < p->groups.len; g++)
        if (p->groups.data[g]->block == block && p->groups.data[g]->stages < 2 && !p->groups.data[g]->read_alone)
            return false;
    return tcc_is_loop(block->parent);
}

/* Releases the stages of all groups whose last MMA is `last`: of this iteration, or of the one this many
 * before. */
static void release_groups(const pipeline *p, const tcc_op *last, tcc_builder *b, int64_t before)
{
    for (size_t g = 0; g < p->groups.len; g++) {
        const group *of = p->groups.data[g];
        if (of->block == last->block && of->mmas.data[of->mmas.len - 1] == last && !of->read_alone)
            build_release(of, b,
                          before ? tcc_arith_bin_const(b, TCC_OP_arith_sub, of->i, before) : of->i);
    }
}

/* Behind a loop: of its last iteration. The iteration number is a sum of those before the loop and its own. */
static void release_last(const pipeline *p, tcc_op *loop)
{
    tcc_op *behind = loop;
    while (behind->next->code == TCC_OP_async_mma_wait)
        behind = behind->next;
    tcc_builder b = tcc_builder_after(behind);
    b.loc = behind->loc;
    for (size_t g = 0; g < p->groups.len; g++) {
        const group *of = p->groups.data[g];
        if (of->block != loop->regions[0] || of->read_alone)
            continue;
        tcc_value *before = of->i->def->operands[0], *n = tcc_iteration_count(&b, loop);
        tcc_value *end = tcc_arith_bin(&b, TCC_OP_arith_add, before, n);
        build_release(of, &b, tcc_arith_add(&b, end, -1));
    }
}

/* Behind the loop that an MMA runs on in, where it was the last of a group that the loop does not load. */
static void release_behind(const pipeline *p)
{
    for (size_t g = 0; g < p->groups.len; g++) {
        const group *of = p->groups.data[g];
        tcc_op *last = of->mmas.data[of->mmas.len - 1];
        if (last->block == of->block)
            continue;
        last = tcc_ancestor_in(last, of->block);
        while (last->next->code == TCC_OP_async_mma_wait)
            last = last->next;
        tcc_builder b = tcc_builder_after(last);
        b.loc = last->loc;
        build_release(of, &b, of->i);
    }
}

/* Waits for the MMAs of one block, the first of which is p->mmas.data[first], and releases what they
 * have read. */
static void wait_in_block(pipeline *p, size_t first)
{
    tcc_block *block = p->mmas.data[first]->block;
    bool run_on = can_run_on(p, block);
    int64_t n = 0;
    tcc_op *last = NULL;
    for (size_t m = first; m < p->mmas.len; m++) {
        tcc_op *mma = p->mmas.data[m];
        if (mma->block != block)
            continue;
        int carried = carried_at(mma);
        n++;
        last = mma;
        if (!run_on) {
            tcc_op *at = first_use(mma);
            tcc_builder b = tcc_builder_before(at);
            b.loc = mma->loc;
            tcc_value *meanwhile = computed_meanwhile(mma, at);
            if (meanwhile)
                TCC_EMIT_V(&b, async_hold, meanwhile);
            wait_for(&b, &mma->results[0], count_between(mma, at));
            release_groups(p, mma, &b, 0);
        }
        if (carried >= 0) { /* the loop's results may be read when they have ended */
            tcc_value *r = &block->parent->results[carried];
            tcc_builder b = tcc_builder_after(block->parent);
            b.loc = block->parent->loc;
            wait_for(&b, r, 0);
        }
    }
    if (!run_on)
        return;
    tcc_op *loop = block->parent, *then = NULL;
    bool again = tcc_is_loop(loop->block->parent) && tcc_attr_int(&loop->attrs, "at_least_once", 0);
    tcc_builder b = tcc_builder_after(last);
    b.loc = last->loc;
    wait_for(&b, &last->results[0], n);
    if (again) /* what is around it must not wait for its next iteration */
        then = tcc_begin_if(&b, tcc_arith_cmp(&b, "gt", block->args[0], TCC_VIEW(scf_for, loop)->lo));
    for (size_t m = first; m < p->mmas.len; m++)
        if (p->mmas.data[m]->block == block)
            release_groups(p, p->mmas.data[m], &b, 1);
    if (again) {
        tcc_end_if(&b, then);
        release_last(p, loop);
    }
}

/* Fills the stage of an iteration: by the copy engine, or by threads that need not wait for their loads; or with what
 * has been computed. */
static void fill_stages(const pipeline *p, group *of)
{
    tcc_builder b = tcc_builder_before(front_of(of));
    b.loc = of->mmas.data[0]->loc;
    of->i = tcc_iteration_number(&b, of->block->parent);
    TCC_EMIT_V(&b, async_acquire, of->ring, of->i);
    for (size_t t = 0; t < of->tiles.len; t++)
        if (of->computed)
            TCC_EMIT_V(&b, async_put, of->ring, of->i, of->buffers.data[t], of->tiles.data[t]);
        else
            build_copy(&b, of->tiles.data[t]->def, of->ring, of->i, of->buffers.data[t]);
    b.loc = of->mmas.data[0]->loc;
    build_commit(of, &b, of->i);
    TCC_EMIT_V(&b, async_wait, of->ring, of->i);
    if (!of->computed)
        build_reads(p, of, &b);
    if (of->read_alone)
        build_release(of, &b, of->i);
}

static void go_through_stages(pipeline *p)
{
    for (size_t g = 0; g < p->groups.len; g++)
        fill_stages(p, p->groups.data[g]);
    for (size_t m = 0; m < p->mmas.len; m++) {
        tcc_op *old = p->mmas.data[m];
        tcc_builder b = tcc_builder_before(old);
        group *ga = group_of(p, old->operands[0]), *gb = group_of(p, old->operands[1]);
        tcc_op *mma = p->mmas.data[m] = build_mma(&b, old, ga, gb);
        for (size_t g = 0; g < p->groups.len; g++)
            for (size_t i = 0; i < p->groups.data[g]->mmas.len; i++)
                if (p->groups.data[g]->mmas.data[i] == old)
                    p->groups.data[g]->mmas.data[i] = mma;
        tcc_replace_uses(&old->results[0], &mma->results[0]);
        tcc_op_erase(old);
    }
    for (size_t g = 0; g < p->groups.len; g++)
        erase_loads(p->groups.data[g]);
    for (size_t m = 0; m < p->mmas.len; m++) {
        bool first = true;
        for (size_t other = 0; other < m; other++)
            first &= p->mmas.data[other]->block != p->mmas.data[m]->block;
        if (first)
            wait_in_block(p, m);
    }
    release_behind(p);
}

/* ---- the pass ------------------------------------------------------------------------------ */

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    pipeline p = {.f = f, .scratch = ctx->scratch};
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (can_pipeline(&p, op))
            TCC_PUSH(p.scratch, &p.mmas, op);
    group_tiles(&p);
    if (!p.mmas.len)
        return TCC_OK;
    tcc_op *first = tcc_outermost(front_of(p.groups.data[0]));
    for (size_t g = 0; g < p.groups.len; g++) {
        group *of = p.groups.data[g];
        const tcc_op *loop = of->block->parent;
        of->stages = tcc_is_loop(loop) ? tcc_attr_int(&loop->attrs, "stages", 1) : 1;
        if (of->computed && of->stages > TCC_OWN_STAGES)
            of->stages = TCC_OWN_STAGES;
        bool tma = tcc_attr_is(&of->tiles.data[0]->def->attrs, "copy", "tma");
        of->completion = tma ? "bytes" : "arrivals";
        tcc_op *front = tcc_outermost(front_of(of));
        first = tcc_op_reaches(front, first) ? front : first;
    }
    for (size_t g = 0; g < p.groups.len; g++)
        build_ring(&p, p.groups.data[g], first);
    build_meetings(&p, first);
    for (size_t m = 0; m < p.mmas.len; m++)
        if (tcc_is_loop(p.mmas.data[m]->block->parent))
            tcc_attr_remove(&p.mmas.data[m]->block->parent->attrs, "stages");
    go_through_stages(&p);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_pipeline_copies = {
    "pipeline-copies", "pass the operands of MMAs through rings of shared-memory stages", .run = run,
    .requires = TCC_UP_TO(stages),
    .leaves = TCC_STATE(rings)};

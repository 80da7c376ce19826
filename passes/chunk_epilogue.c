/* chunk-epilogue: compute epilogues in chunks that fit in registers.
 *
 * Before:  %b = tile.load %bias, %n … : tile<f32[1, 256]>
 *          %bb = tile.broadcast %b …
 *          %r = arith.add %acc, %bb : tile<f32[128, 256]>
 *          tile.store %r, %C, %m, %n {copy = tma, …}
 * After:   for each 16 columns from x on
 *          %b = tile.load %bias, %n + x … : tile<f32[1, 16]>
 *          %a = tile.slice %acc {at = [0, x]} : tile<f32[128, 16]>
 *          %bb = tile.broadcast %b …
 *          %r = arith.add %a, %bb : tile<f32[128, 16]>
 *          async.write %c, 0, x, %r
 *          and then
 *          async.publish   async.send %c, %C, %m, %n …   async.send_wait
 *
 * In the loop of a persistent CTA the wait, and a barrier, come before the epilogue of the next tile instead,
 * and the last wait is after the loop. Stores that are `staged` in strips of columns have two buffers of this
 * width, or the number given by `strips`: one strip is computed while those before it are being sent.
 *
 * A chunk is 16 columns (8 if the tile's are not a multiple of 16) of 64 rows of each warpgroup or, if waves
 * multiply from registers, a block of each of them, or as many neighbouring blocks as `beside` says. Chunks are
 * computed one after the other, so few values are live besides the accumulators. Loads run TCC_LOOKAHEAD columns of
 * chunks ahead of their use, also into the next strip. Those of tiles run as many ahead as the role's `ahead` says, the
 * first of them before the loop that multiplies, which hides how long they take. If the role has `chunks`, they are
 * loaded, computed and stored in groups of this many. If all this would make the program too long, a loop over the
 * columns computes the same chunk each time, with the accumulators rotated by one chunk, since registers cannot be
 * indexed at run time.
 *
 * Requires specialize-warps. Preserves what comes before the first op on tiles.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/machine.h"
#include "passes/chunks.h"
#include "passes/loops.h"
#include "passes/passes.h"
#include "passes/pressure.h"

enum { LEAST_STRIPS = TCC_KEY_strips_min /* and as many by default */ };

/* ---- strips ------------------------------------------------------------------------------ */

static void publish(tcc_chunks *e)
{
    tcc_op *op = TCC_EMIT_V(&e->b, async_publish, NULL);
    if (e->n_in_words == e->n_staged)
        tcc_attr_set_str(e->ir, &op->attrs, "copy", "words");
}

/* Before a strip is written, its buffer's sends must be over: of the tile before, in a loop, those of all buffers,
 * which the MMAs had time for; of this tile all but those of the last strips, which have the other buffers. */
static void wait_for_buffer(tcc_chunks *e)
{
    int64_t strip = e->begin / e->strip;
    if (strip ? strip < e->n_strips : !e->loop)
        return;
    tcc_op *wait = TCC_EMIT_V(&e->b, async_send_wait, NULL);
    if (strip)
        tcc_attr_set_int(e->ir, &wait->attrs, "pending", (e->n_strips - 1) * e->n_staged);
    if (e->n_in_words == e->n_staged)
        publish(e);
    else
        TCC_EMIT_V(&e->b, async_barrier, NULL);
}

/* A strip's results in shared memory go to their tensors when all of them are there. */
static void send(tcc_chunks *e)
{
    publish(e);
    for (size_t i = 0; i < e->n_items; i++) {
        const tcc_op *op = e->items[i].op;
        if (!e->items[i].buffers[0])
            continue;
        tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
        tcc_value **operands = TCC_NEW_ARRAY(e->ir->arena, tcc_value *, op->n_operands);
        memcpy(operands, op->operands, op->n_operands * sizeof *operands);
        operands[0] = e->items[i].buffers[e->begin / e->strip % e->n_strips];
        e->b.loc = op->loc;
        tcc_value **col = &operands[2 + dims.list.items[1].i];
        *col = tcc_arith_add(&e->b, *col, e->begin * e->cols);
        tcc_op *r = tcc_op_create(&e->b, TCC_OP_async_send, op->n_operands, operands, 0, NULL);
        tcc_attr_set(e->ir, &r->attrs, "dims", dims, (tcc_loc){0, 0});
        if (tcc_attr_is(&op->attrs, "copy", "words"))
            tcc_attr_set_str(e->ir, &r->attrs, "copy", "words");
        tcc_attr_carry(e->ir, &r->attrs, &op->attrs, "cache");
    }
}

/* Shared memory outlives what is sent from it. */
static void wait_for_all(tcc_chunks *e)
{
    tcc_builder behind = tcc_builder_at_end(e->role->regions[0]);
    behind.loc = e->b.loc;
    TCC_EMIT_V(e->loop ? &behind : &e->b, async_send_wait, NULL);
}

/* ---- what is to be done ---------------------------------------------------------------- */

/* The tile on its way through shared memory, in panels as TMA takes them; those along columns of the tile are as wide
 * as what a warpgroup has of these, at most. */
static tcc_value *build_buffer(tcc_chunks *e, const tcc_op *store)
{
    const tcc_type *tensor = TCC_VIEW(tile_store, store)->tensor->type;
    tcc_scalar elem = tensor->elem;
    tcc_attr dims = tcc_attr_list(&store->attrs, "dims");
    int contiguous = tcc_contiguous_of(tensor, (int)dims.list.items[0].i, (int)dims.list.items[1].i);
    int64_t cols = e->strip * e->cols, along = contiguous ? cols : TCC_WGMMA_ROWS;
    const tcc_type *type = tcc_type_sized(e->ir, TCC_KIND_smem, elem, 3, (int64_t[]){1, e->m, cols});
    tcc_builder b = tcc_builder_before(tcc_first_role(e->role));
    b.loc = store->loc;
    tcc_value *v = TCC_EMIT(&b, async_alloc, type, NULL);
    tcc_attr_set_int(e->ir, &v->def->attrs, "swizzle",
                     tcc_swizzle_of(along * tcc_scalar_bits(elem) / 8, 128));
    tcc_attr_set_int(e->ir, &v->def->attrs, "contiguous", contiguous);
    return v;
}

static bool is_staged(const tcc_op *op)
{
    return op->code == TCC_OP_tile_store && tcc_has_word("tma words", tcc_attr_str(&op->attrs, "copy", "none"));
}

/* The width of strips: all columns, unless all staged stores have another; and the number of their buffers. */
static void plan_strips(tcc_chunks *e)
{
    int64_t width = 0;
    for (size_t i = 0; i < e->n_items; i++) {
        const tcc_op *op = e->items[i].op;
        if (!is_staged(op))
            continue;
        int64_t of_op = tcc_attr_int(&op->attrs, "staged", e->n);
        e->n_in_words += tcc_attr_is(&op->attrs, "copy", "words");
        int64_t strips = tcc_attr_int(&op->attrs, "strips", LEAST_STRIPS);
        width = !e->n_staged++ || width == of_op ? of_op : e->n;
        e->n_strips = e->n_strips && e->n_strips < strips ? e->n_strips : strips;
    }
    e->n_strips = e->n_strips < LEAST_STRIPS  ? LEAST_STRIPS
                  : e->n_strips > TCC_CHUNK_STRIPS ? TCC_CHUNK_STRIPS
                                              : e->n_strips;
    bool divides = width > 0 && width % e->cols == 0 && e->n % width == 0;
    e->strip = divides ? width / e->cols : e->n_columns;
    for (size_t i = 0; i < e->n_items; i++)
        for (int64_t b = 0; b < e->n_strips && b * e->strip < e->n_columns && is_staged(e->items[i].op); b++)
            e->items[i].buffers[b] = build_buffer(e, e->items[i].op);
}

static bool fits(const tcc_chunks *e, const tcc_type *t, int64_t span)
{
    return t->rank == 2 && (t->dims[0].size == 1 || t->dims[0].size == e->m) &&
           (t->dims[1].size == 1 || t->dims[1].size == e->n) && tcc_chunks_type(e, t, span);
}

/* For how many columns of chunks at a time an op is computed: loads of rows that are longer than a chunk's, and their
 * conversions, for two. */
static int64_t span_of(const tcc_chunks *e, const tcc_op *op)
{
    enum { WIDER = 2 };
    const tcc_chunk_item *of = op->code == TCC_OP_tile_convert ? tcc_map_get(&e->by_value, op->operands[0]) : NULL;
    if (of)
        return of->span;
    bool wider = op->code == TCC_OP_tile_load && !fits(e, op->results[0].type, 1) && e->n_columns % WIDER == 0;
    return wider ? WIDER : 1;
}

/* Whether an op is computed chunk by chunk, or the same for all of them. */
static bool is_of_chunks(const tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    bool tile = tcc_low_tile_of(op), number = !tile && !op->n_regions && info->flags & TCC_PURE;
    return number || info->flags & TCC_ELEMENTWISE || op->code == TCC_OP_tile_load ||
           op->code == TCC_OP_tile_store || op->code == TCC_OP_tile_broadcast || op->code == TCC_OP_tile_convert ||
           op->code == TCC_OP_tile_index || op->code == TCC_OP_tile_gather;
}

/* The first op on tiles of those that nothing but chunks follows. */
static tcc_op *find_first(const tcc_block *block)
{
    tcc_op *first = NULL;
    for (tcc_op *op = block->first; op != tcc_block_yield(block); op = op->next)
        first = !is_of_chunks(op)                  ? NULL
                : !first && tcc_low_tile_of(op) ? op
                                                   : first;
    return first;
}

static const tcc_value *tensor_of(const tcc_op *op)
{
    return op->code == TCC_OP_tile_load     ? TCC_VIEW(tile_load, op)->tensor
           : op->code == TCC_OP_tile_gather ? TCC_VIEW(tile_gather, op)->tensor
           : op->code == TCC_OP_tile_store  ? TCC_VIEW(tile_store, op)->tensor
                                            : NULL;
}

/* Whether an access can be done chunk by chunk beside those before it: of a tensor that is written
 * there is at most a load of the same elements before the store. */
static bool is_independent(const tcc_chunks *e, const tcc_op *op)
{
    bool stores = op->code == TCC_OP_tile_store;
    for (size_t i = 0; tensor_of(op) && i < e->n_items; i++) {
        const tcc_op *before = e->items[i].op;
        bool stored = before->code == TCC_OP_tile_store;
        if (tensor_of(before) != tensor_of(op) || (!stores && !stored))
            continue;
        tcc_attr a = tcc_attr_list(&op->attrs, "dims"), b = tcc_attr_list(&before->attrs, "dims");
        bool same = stores && !stored && tcc_attr_equal(&a, &b);
        for (unsigned x = 2; same && x < op->n_operands; x++)
            same = op->operands[x] == before->operands[x - 1];
        if (!same)
            return false;
    }
    return true;
}

/* Every op from `first` on is on scalars, or on tiles of one size; false when it is not so simple. */
static bool collect(tcc_chunks *e, tcc_op *first, tcc_arena *scratch)
{
    const tcc_op *end = tcc_block_yield(e->whole);
    size_t n = 0;
    for (tcc_op *op = first; op != end; op = op->next)
        n++;
    e->items = TCC_NEW_ARRAY(scratch, tcc_chunk_item, n);
    for (tcc_op *op = first; op != end; op = op->next) {
        const tcc_type *t = tcc_low_tile_of(op);
        bool pure = tcc_op_info_get(op->code)->flags & TCC_PURE;
        if (!t && !op->n_regions && pure)
            continue;
        int64_t span = span_of(e, op);
        if (!t || !fits(e, t, span) || !is_independent(e, op))
            return false;
        tcc_chunk_item *it = &e->items[e->n_items++];
        *it = (tcc_chunk_item){.op = op, .rows = t->dims[0].size != 1, .cols = t->dims[1].size != 1, .span = span};
        if (op->code != TCC_OP_tile_store)
            *tcc_map_at(&e->by_value, &op->results[0]) = it;
        for (unsigned i = 0; i < op->n_operands; i++) {
            tcc_value *v = op->operands[i];
            if (v->type->kind != TCC_KIND_tile || tcc_map_get(&e->by_value, v) || tcc_chunks_constant(v))
                continue;
            size_t c = tcc_chunks_carried(e, v);
            if (!fits(e, v->type, 1))
                return false;
            if (c < e->carried.len)
                continue;
            TCC_PUSH(scratch, &e->carried, v);
            TCC_PUSH(scratch, &e->turned, v);
        }
    }
    return true;
}

/* How large chunks are, by the MMAs that compute tiles in this role: 64 rows of each warpgroup, or a block
 * of each wave. */
static bool size_chunks(tcc_chunks *e)
{
    tcc_block *region = e->role->regions[0];
    const tcc_op *mma = NULL;
    bool halves = false; /* neighbours along n have accumulators that share registers */
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region)) {
        if (op->code != TCC_OP_async_mma && op->code != TCC_OP_tile_mma)
            continue;
        mma = op;
        halves |= tcc_wmma_sums_in_halves(tcc_target_of(e->ir), op->results[0].type->elem);
    }
    tcc_attr instr = mma ? tcc_attr_list(&mma->attrs, "instr") : (tcc_attr){.list = {NULL, 0}};
    tcc_attr waves = tcc_attr_list(&e->role->attrs, "waves");
    if (instr.list.n != 3)
        return false;
    e->rows = instr.list.items[0].i;
    if (waves.list.n == 2) {
        e->rows *= waves.list.items[0].i;
        e->cols = instr.list.items[1].i * waves.list.items[1].i;
        e->cols *= halves && e->cols > 0 && e->n % (2 * e->cols) == 0 ? 2 : 1;
        int64_t beside = tcc_attr_int(&e->role->attrs, "beside", 0);
        e->cols = beside ? beside * waves.list.items[1].i : e->cols;
        e->by_block = true;
        e->of_thread = e->rows * e->cols / tcc_attr_int(&e->role->attrs, "warps", 1) /
                       tcc_attr_int(&e->role->attrs, "lanes", 32);
    } else {
        e->rows *= tcc_attr_int(&e->role->attrs, "warps", 0) / TCC_WARPGROUP_WARPS;
        e->cols = e->n % 16 ? 8 : 16;
        e->of_thread = TCC_WGMMA_ROWS * e->cols / (TCC_WARPGROUP_WARPS * TCC_WARP_LANES);
    }
    return e->rows > 0 && e->cols > 0 && e->m % e->rows == 0 && e->n % e->cols == 0;
}

/* The tile, and its chunks: of the stores together, for some may be of values that rows, or columns, have. */
static bool measure(tcc_chunks *e, const tcc_op *first)
{
    for (const tcc_op *op = first; op; op = op->next) {
        const tcc_type *t = op->code == TCC_OP_tile_store ? TCC_VIEW(tile_store, op)->a->type : NULL;
        if (t && t->rank != 2)
            return false;
        e->m = t && t->dims[0].size > e->m ? t->dims[0].size : e->m;
        e->n = t && t->dims[1].size > e->n ? t->dims[1].size : e->n;
    }
    if (!e->m || !size_chunks(e))
        return false;
    e->n_blocks = e->m / e->rows;
    e->n_columns = e->n / e->cols;
    return e->n_blocks <= TCC_CHUNK_BLOCKS && e->n_columns <= TCC_CHUNK_COLUMNS;
}

/* Whether no tensor has but the first row or column of all. */
static bool have_index(const tcc_chunks *e, int dim)
{
    bool all = true;
    for (size_t i = 0; i < e->n_items; i++) {
        const tcc_op *op = e->items[i].op;
        bool window = op->code == TCC_OP_tile_load || op->code == TCC_OP_tile_store;
        if (window && (dim ? e->items[i].cols : e->items[i].rows))
            all &= tcc_attr_list(&op->attrs, "dims").list.items[dim].i >= 0;
    }
    return all;
}

static bool can_loop(const tcc_chunks *e)
{
    return e->n_columns > 1 && e->carried.len && have_index(e, 1);
}

static bool can_nest(const tcc_chunks *e)
{
    return e->n_blocks > 1 && have_index(e, 0);
}

static bool has(const tcc_chunk_item *it, const char *attr)
{
    return tcc_attr_find(&it->op->attrs, attr);
}

/* Else each element is an access of its own. */
static bool has_wide_stores(const tcc_chunks *e)
{
    bool all = true;
    for (size_t i = 0; i < e->n_items; i++) {
        const tcc_chunk_item *it = &e->items[i];
        all &= it->op->code != TCC_OP_tile_store || has(it, "wide") || has(it, "words") || has(it, "pairs");
    }
    return all;
}

static void erase(tcc_chunks *e)
{
    while (e->n_items)
        tcc_op_erase(e->items[--e->n_items].op);
}

/* The loop over tiles that a block is in, one of whose tiles it computes: every one, or those whose turn it is.
 * NULL when it is not. */
static tcc_op *loop_over_tiles(const tcc_op *role, const tcc_block *block)
{
    tcc_op *loop = block->parent;
    if (loop->code == TCC_OP_scf_if && !loop->n_results)
        loop = loop->block->parent;
    return tcc_is_loop(loop) && loop->block->parent == role && !loop->n_results ? loop : NULL;
}

/* Loops compute the same chunk each time: one as wide as what is loaded. False where strips do not consist of these. */
static bool widen_chunks(tcc_chunks *e)
{
    int64_t span = 1;
    for (size_t i = 0; i < e->n_items; i++)
        span = e->items[i].span > span ? e->items[i].span : span;
    if (e->strip % span)
        return false;
    for (size_t i = 0; i < e->n_items; i++)
        e->items[i].span = 1;
    e->cols *= span;
    e->n_columns /= span;
    e->strip /= span;
    return true;
}

static bool chunk(tcc_pass_ctx *ctx, tcc_op *role, tcc_block *block)
{
    tcc_chunks *e = TCC_NEW(ctx->scratch, tcc_chunks);
    e->ir = ctx->ir;
    e->role = role;
    e->whole = block;
    e->loop = loop_over_tiles(role, block);
    e->by_value = TCC_MAP(ctx->scratch);
    tcc_op *first = e->loop || block->parent == role ? find_first(block) : NULL;
    if (!first || !measure(e, first) || !collect(e, first, ctx->scratch))
        return false;
    int64_t chunks = e->n_blocks * e->n_columns;
    plan_strips(e);
    if (chunks == 1 && !e->n_staged && !e->by_block)
        return false;
    e->b = tcc_block_yield(block) ? tcc_builder_before(block->last) : tcc_builder_at_end(block);
    e->b.loc = first->loc;
    int64_t group = tcc_attr_int(&role->attrs, "chunks", 0);
    int64_t ahead = tcc_attr_int(&role->attrs, "ahead", 0);
    e->ahead = ahead > TCC_LOOKAHEAD ? ahead : TCC_LOOKAHEAD;
    tcc_attr_remove(&role->attrs, "chunks");
    tcc_attr_remove(&role->attrs, "ahead");
    bool is_long = tcc_low_should_loop(first, chunks * e->of_thread);
    bool loops = can_loop(e) && (is_long || (e->by_block && e->n_blocks > 1 && !has_wide_stores(e))) && widen_chunks(e);
    for (size_t i = 0; i < e->n_items; i++)
        e->items[i].values = TCC_NEW_ARRAY(ctx->scratch, tcc_value *, (size_t)(e->n_blocks * (loops ? 1 : e->n_columns)));
    if (ahead && !loops && !e->by_block && !group)
        tcc_chunks_load_before_loop(e, first);
    for (; e->begin < e->n_columns; e->begin = e->end) {
        e->end = e->begin + e->strip;
        if (e->n_staged)
            wait_for_buffer(e);
        if (loops)
            tcc_chunks_loop(e, 1, is_long && e->by_block && can_nest(e));
        else if (e->by_block)
            tcc_chunks_blocks(e);
        else if (group)
            tcc_chunks_groups(e, group);
        else
            tcc_chunks_unroll(e);
        if (e->n_staged)
            send(e);
    }
    if (e->n_staged)
        wait_for_all(e);
    erase(e);
    return true;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    for (tcc_op *role = f->body->first; role; role = tcc_walk_next(role, f->body)) {
        if (role->code != TCC_OP_async_role || tcc_attr_find(&role->attrs, "spread")) /* small tiles */
            continue;
        tcc_block *block = NULL; /* that the first store ends */
        for (tcc_op *op = role->regions[0]->first; op && !block; op = tcc_walk_next(op, role->regions[0]))
            block = op->code == TCC_OP_tile_store ? op->block : NULL;
        if (block)
            *changed |= chunk(ctx, role, block);
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_chunk_epilogue = {
    "chunk-epilogue", "compute epilogues in chunks that fit in registers", .run = run,
    .requires = TCC_UP_TO(roles),
    .undoes = TCC_STATE(places)};

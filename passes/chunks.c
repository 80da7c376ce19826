/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/chunks.h"

#include <string.h>

#include "passes/loops.h"
#include "passes/pressure.h"

/* ---- values of a chunk -------------------------------------------------------------------- */

const tcc_type *tcc_chunks_type(const tcc_chunks *e, const tcc_type *tile, int64_t columns)
{
    return tcc_layout_part(e->ir, tile, tile->dims[0].size == 1 ? 1 : e->rows,
                           tile->dims[1].size == 1 ? 1 : columns * e->cols);
}

size_t tcc_chunks_carried(const tcc_chunks *e, const tcc_value *v)
{
    size_t i = 0;
    while (i < e->carried.len && e->carried.data[i] != v)
        i++;
    return i;
}

bool tcc_chunks_constant(const tcc_value *v)
{
    return v->def && v->def->code == TCC_OP_arith_const;
}

/* Of an item, where the current chunk is. */
static tcc_value **slot_of(const tcc_chunks *e, tcc_chunk_item *it)
{
    int64_t column = it->cols ? e->column - e->column % it->span : 0;
    return &it->values[column * e->n_blocks + (it->rows ? e->block : 0)];
}

static tcc_value *sliced(tcc_chunks *e, const tcc_type *type, tcc_value *v, int64_t row, int64_t col)
{
    tcc_value *r = TCC_EMIT(&e->b, tile_slice, type, v);
    tcc_attr_set_ints(e->ir, &r->def->attrs, "at", 2, (int64_t[]){row, col});
    return r;
}

/* The current chunk of a tile: computed here, a constant, or from before. */
static tcc_value *value_of(tcc_chunks *e, tcc_value *v)
{
    tcc_chunk_item *it = tcc_map_get(&e->by_value, v);
    if (it && it->span == 1)
        return *slot_of(e, it);
    if (it)
        return sliced(e, tcc_chunks_type(e, v->type, 1), *slot_of(e, it), 0, e->column % it->span * e->cols);
    if (v->type->kind != TCC_KIND_tile)
        return v;
    const tcc_type *type = tcc_chunks_type(e, v->type, 1);
    if (type == v->type)
        return v;
    if (tcc_chunks_constant(v)) {
        tcc_op *op = tcc_op_create(&e->b, TCC_OP_arith_const, 0, NULL, 1, &type);
        op->attrs = v->def->attrs;
        return &op->results[0];
    }
    return sliced(e, type, e->turned.data[tcc_chunks_carried(e, v)], v->type->dims[0].size == 1 ? 0 : e->block * e->rows,
                  v->type->dims[1].size == 1 ? 0 : e->column * e->cols);
}

/* A coordinate of the tile, advanced by this many rows or columns. */
static tcc_value *moved(tcc_chunks *e, tcc_value *at, unsigned dim)
{
    if (e->first[dim]) {
        at = tcc_arith_add(&e->b, at, dim ? e->begin * e->cols : 0);
        return tcc_arith_bin(&e->b, TCC_OP_arith_add, at, e->first[dim]);
    }
    return tcc_arith_add(&e->b, at, dim ? e->column * e->cols : e->block * e->rows);
}

/* tile.load or tile.store of the current chunk, with coordinates after operand `first`. */
static tcc_op *access(tcc_chunks *e, const tcc_op *op, unsigned first, const tcc_value *moving,
                      tcc_value *a, const tcc_type *result)
{
    tcc_value **operands = TCC_NEW_ARRAY(e->ir->arena, tcc_value *, op->n_operands);
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    memcpy(operands, op->operands, op->n_operands * sizeof *operands);
    for (unsigned x = 0; x < 2; x++) {
        int64_t d = dims.list.items[x].i;
        if (d >= 0 && moving->type->dims[x].size != 1)
            operands[first + d] = moved(e, operands[first + d], x);
    }
    if (a)
        operands[0] = a;
    tcc_op *r = tcc_op_create(&e->b, op->code, op->n_operands, operands, result != NULL, &result);
    for (size_t i = 0; i < op->attrs.len; i++)
        TCC_PUSH(e->ir->arena, &r->attrs, op->attrs.data[i]);
    return r;
}

/* Whether the chunk is the first along every direction in which the tensor has no index and the tile
 * more than one element: only the first is in the tensor there. */
static bool is_in_tensor(const tcc_chunks *e, const tcc_op *op, const tcc_type *tile)
{
    tcc_attr dims = tcc_attr_list(&op->attrs, "dims");
    const int64_t at[] = {e->block, e->column};
    for (int x = 0; x < 2; x++)
        if (dims.list.items[x].i < 0 && at[x] && tile->dims[x].size != 1)
            return false;
    return true;
}

static void store(tcc_chunks *e, const tcc_chunk_item *it)
{
    const tcc_tile_store_operands *o = TCC_VIEW(tile_store, it->op);
    if (!is_in_tensor(e, it->op, o->a->type))
        return;
    tcc_value *v = value_of(e, o->a);
    tcc_value *buffer = it->buffers[e->begin / e->strip % e->n_strips];
    if (!buffer) {
        access(e, it->op, 2, o->a, v, NULL);
        return;
    }
    tcc_value *at[] = {e->first[0], e->first[1]};
    if (!at[0])
        at[0] = tcc_build_i32(&e->b, e->block * e->rows);
    if (!at[1])
        at[1] = tcc_build_i32(&e->b, (e->column - e->begin) * e->cols);
    TCC_EMIT_V(&e->b, async_write, buffer, at[0], at[1], v);
}

/* Counted from the tile's first row or column on. */
static tcc_value *number(tcc_chunks *e, const tcc_op *op, const tcc_type *type)
{
    int dim = (int)tcc_attr_int(&op->attrs, "dim", 0);
    tcc_value *own = TCC_EMIT(&e->b, tile_index, type, NULL);
    own->def->attrs = op->attrs; /* chunks begin at multiples of a unit */
    if (op->results[0].type->dims[dim].size == 1 || (!e->first[dim] && (dim ? e->column : e->block) == 0))
        return own;
    tcc_value *first = moved(e, tcc_build_i32(&e->b, 0), (unsigned)dim);
    first = TCC_EMIT(&e->b, tile_broadcast, type, first);
    tcc_attr_set_ints(e->ir, &first->def->attrs, "dims", 0, NULL);
    return tcc_arith_bin(&e->b, TCC_OP_arith_add, own, first);
}

static void compute(tcc_chunks *e, tcc_chunk_item *it)
{
    const tcc_op *op = it->op;
    tcc_value **slot = slot_of(e, it);
    if (*slot)
        return; /* of another chunk: the same */
    const tcc_type *type = tcc_chunks_type(e, op->results[0].type, it->span);
    if (op->code == TCC_OP_tile_load && !is_in_tensor(e, op, op->results[0].type)) {
        bool floats = tcc_scalar_classify(type->elem) == TCC_CLASS_FLOAT;
        *slot = floats ? tcc_build_float(&e->b, type, 0) : tcc_build_int(&e->b, type, 0);
        return;
    }
    if (op->code == TCC_OP_tile_load) {
        *slot = &access(e, op, 1, &op->results[0], NULL, type)->results[0];
        return;
    }
    if (op->code == TCC_OP_tile_index) {
        *slot = number(e, op, type);
        return;
    }
    tcc_value **operands = TCC_NEW_ARRAY(e->ir->arena, tcc_value *, op->n_operands);
    for (unsigned i = 0; i < op->n_operands; i++) {
        tcc_chunk_item *of = it->span > 1 ? tcc_map_get(&e->by_value, op->operands[i]) : NULL;
        operands[i] = of ? *slot_of(e, of) : value_of(e, op->operands[i]);
    }
    bool same = op->code == TCC_OP_tile_broadcast || op->code == TCC_OP_tile_convert;
    if (same && operands[0]->type == type) {
        *slot = operands[0];
        return;
    }
    tcc_op *r = tcc_op_create(&e->b, op->code, op->n_operands, operands, 1, &type);
    for (size_t i = 0; i < op->attrs.len; i++)
        TCC_PUSH(e->ir->arena, &r->attrs, op->attrs.data[i]);
    *slot = &r->results[0];
}

/* ---- the walk -------------------------------------------------------------------------- */

/* Loads of tiles, of what all rows or columns share, and the rest. */
enum { TILES = 1, VECTORS = 2, LOADS = TILES | VECTORS, OTHERS = 4 };

static unsigned kind_of(const tcc_chunk_item *it)
{
    return it->op->code != TCC_OP_tile_load ? OTHERS : it->rows && it->cols ? TILES : VECTORS;
}

/* The part of a chunk given by `which`. */
static void walk_chunk(tcc_chunks *e, int64_t column, int64_t block, unsigned which)
{
    e->column = column;
    e->block = block;
    for (size_t i = 0; i < e->n_items; i++) {
        tcc_chunk_item *it = &e->items[i];
        if (!(which & kind_of(it)))
            continue;
        e->b.loc = it->op->loc;
        if (it->op->code == TCC_OP_tile_store)
            store(e, it);
        else
            compute(e, it);
    }
}

/* A chunk, which nothing of the next one passes where they are blocks: or loads of all of them move up, into too many
 * registers. */
static void walk_whole(tcc_chunks *e, int64_t column, int64_t block)
{
    walk_chunk(e, column, block, LOADS | OTHERS);
    if (e->by_block)
        TCC_EMIT_V(&e->b, async_pin, NULL);
}

/* Those of columns [begin, end), so far as there are these, and they have not been loaded. */
static void load(tcc_chunks *e, int64_t begin, int64_t end, unsigned which)
{
    for (int64_t c = begin; c < end && c < e->n_columns; c++)
        for (int64_t b = 0; b < e->n_blocks; b++)
            walk_chunk(e, c, b, which);
}

void tcc_chunks_unroll(tcc_chunks *e)
{
    for (int64_t c = e->begin; c < e->end; c++) {
        load(e, c, c + TCC_LOOKAHEAD + 1, VECTORS);
        load(e, c, c + e->ahead + 1, TILES);
        for (int64_t b = 0; b < e->n_blocks; b++)
            walk_chunk(e, c, b, OTHERS);
    }
}

/* Whether an op's operands are there before another one, of the epilogue's block. */
static bool is_ready(const tcc_chunks *e, const tcc_op *op, const tcc_op *before)
{
    bool ready = true;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const tcc_op *def = op->operands[i]->def;
        ready &= !def || def->block != e->whole || tcc_op_reaches(def, before);
    }
    return ready;
}

void tcc_chunks_load_before_loop(tcc_chunks *e, tcc_op *first)
{
    tcc_op *loop = first->prev;
    while (loop && !tcc_is_loop(loop))
        loop = loop->prev;
    for (size_t i = 0; i < e->n_items && loop; i++)
        if (kind_of(&e->items[i]) == TILES && !is_ready(e, e->items[i].op, loop))
            loop = NULL;
    if (!loop)
        return;
    tcc_builder behind = e->b;
    e->b = tcc_builder_before(loop);
    load(e, 0, e->ahead, TILES);
    e->b = behind;
}

/* Whether a store is in words. */
static bool stores_words(const tcc_chunks *e)
{
    bool any = false;
    for (size_t i = 0; i < e->n_items; i++)
        any |= e->items[i].op->code == TCC_OP_tile_store && tcc_attr_find(&e->items[i].op->attrs, "words");
    return any;
}

void tcc_chunks_blocks(tcc_chunks *e)
{
    int64_t n_columns = e->end - e->begin;
    bool along_n = stores_words(e);
    for (int64_t i = 0; i < n_columns * e->n_blocks; i++) {
        int64_t column = along_n ? i % n_columns : i / e->n_blocks;
        walk_whole(e, e->begin + column, along_n ? i / n_columns : i % e->n_blocks);
    }
}

void tcc_chunks_groups(tcc_chunks *e, int64_t group)
{
    int64_t first = e->begin * e->n_blocks, n = e->end * e->n_blocks;
    tcc_value *cols[TCC_CHUNK_COLUMNS];
    for (int64_t begin = first; begin < n; begin += group) {
        int64_t end = begin + group < n ? begin + group : n;
        for (int64_t i = begin; i < end; i++) {
            int64_t c = i / e->n_blocks;
            if (i == begin || i % e->n_blocks == 0)
                cols[c] = TCC_EMIT(&e->b, async_opaque, tcc_type_scalar(e->ir, TCC_i32),
                                   tcc_build_i32(&e->b, (c - e->begin) * e->cols));
            e->first[1] = cols[c];
            walk_chunk(e, c, i % e->n_blocks, LOADS);
        }
        for (int64_t i = begin; i < end; i++) {
            e->first[1] = cols[i / e->n_blocks];
            walk_chunk(e, i / e->n_blocks, i % e->n_blocks, OTHERS);
        }
        TCC_EMIT_V(&e->b, async_pin, NULL);
    }
    e->first[1] = NULL;
}

void tcc_chunks_loop(tcc_chunks *e, int dim, bool nested)
{
    size_t n = e->turned.len;
    tcc_value **operands = TCC_NEW_ARRAY(e->ir->arena, tcc_value *, 3 + n);
    const tcc_type **types = TCC_NEW_ARRAY(e->ir->arena, const tcc_type *, n);
    int64_t step[2] = {0, 0};
    step[dim] = dim ? e->cols : e->rows;
    operands[0] = tcc_build_i32(&e->b, 0);
    operands[1] = tcc_build_i32(&e->b, dim ? e->end - e->begin : e->n_blocks);
    operands[2] = tcc_build_i32(&e->b, 1);
    for (size_t i = 0; i < n; i++) {
        operands[3 + i] = e->turned.data[i];
        types[i] = e->turned.data[i]->type;
    }
    tcc_op *loop = tcc_op_create(&e->b, TCC_OP_scf_for, 3 + n, operands, n, types);
    tcc_attr_set_int(e->ir, &loop->attrs, "at_least_once", 1);
    tcc_builder outer = e->b;
    e->b = tcc_builder_at_end(loop->regions[0]);
    e->b.loc = outer.loc;
    tcc_value *i =
        tcc_block_add_arg(loop->regions[0], tcc_type_scalar(e->ir, TCC_i32), "chunk");
    for (size_t c = 0; c < n; c++)
        e->turned.data[c] = tcc_block_add_arg(loop->regions[0], types[c], "acc");
    e->first[dim] = tcc_arith_mul(&e->b, i, step[dim]);
    if (nested)
        tcc_chunks_loop(e, 0, false);
    else
        for (int64_t b = 0; b < (dim ? e->n_blocks : 1); b++)
            walk_whole(e, 0, b);
    for (size_t c = 0; c < n; c++) {
        bool turns = types[c]->dims[dim].size != 1;
        operands[c] = turns ? TCC_EMIT(&e->b, tile_rotate, types[c], e->turned.data[c]) : e->turned.data[c];
        if (turns)
            tcc_attr_set_ints(e->ir, &operands[c]->def->attrs, "by", 2, step);
    }
    tcc_op_create(&e->b, TCC_OP_scf_yield, n, operands, 0, NULL);
    e->b = outer;
    for (size_t c = 0; c < n; c++)
        e->turned.data[c] = &loop->results[c];
    for (size_t x = 0; x < e->n_items; x++) /* those were of its body */
        memset(e->items[x].values, 0, (size_t)e->n_blocks * sizeof *e->items[x].values);
    e->first[dim] = NULL;
}

/* assign-layouts: decide which register of which lane and warp holds each element of a tile.
 *
 * Before:  async.role {name = consumer, warps = 8}
 *            %acc = arith.const {value = 0.0} : tile<f32[128, 256]>
 *            %p = arith.cast %e : tile<bf16[128, 64]>
 *            %r = async.mma %ring, %i, %p, %v, %acc {…} : tile<f32[128, 256]>
 * After:     %acc = arith.const {value = 0.0} : tile<f32[128, 256], wgmma_d(cols 32, warps rows 2)>
 *            %p = arith.cast %e : tile<bf16[128, 64], wgmma_d(cols 8, warps rows 2)>
 *            %a = tile.convert %p : tile<bf16[128, 64], wgmma_a(cols 4, warps rows 2)>
 *            %r = async.mma %ring, %i, %a, %v, %acc {…} : tile<f32[128, 256], wgmma_d(…)>
 *
 * All tiles of a role have the layout of the results of matrix instructions, except their operands: these are
 * converted, or have the operand's layout from the start if they are constants or read from a stage for that purpose.
 * A loop carries a tile in the layout of its initial value. A tile that has a layout keeps it; one whose extents do
 * not fit gets none, and no lowering accepts it. Tiles computed for a stage, and those that they are computed from,
 * are held in matrices as in the stage. A role with `spread` holds rows as vector accesses need them. Tiles loaded
 * for a stage have no layout: threads hold them as they load them. If the results of mma.sync have 16 bits and aligned
 * rows, a warp has 32 neighbouring columns (`beside`), and what it stores is converted to rows of which a lane has 16
 * bytes. Where results of 8 or 16 bits may be unaligned, it is converted to rows of which lanes have a word each, or,
 * after wmma, computed in them (`line`).
 *
 * Requires specialize-warps.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/layout.h"
#include "passes/arith.h"
#include "passes/families.h"
#include "passes/loops.h"
#include "passes/passes.h"
#include "support/gcd.h"
#include "support/map.h"

const tcc_type *tcc_hold_in_blocks(tcc_ir *ir, const tcc_type *t, const tcc_op *role, tcc_hold_as as,
                                   tcc_fragment_id id, bool halves)
{
    tcc_attr warps = tcc_attr_list(&role->attrs, "waves");
    if (t->rank != 2 || warps.list.n != 2 || id == TCC_FRAGMENT_COUNT ||
        warps.list.items[0].i * warps.list.items[1].i != tcc_attr_int(&role->attrs, "warps", 0))
        return NULL;
    int k = as == TCC_AS_A ? 1 : as == TCC_AS_B ? 0 : -1;
    int64_t own[2], blocks[2], fragment[2] = {tcc_fragments[id].rows, tcc_fragments[id].cols};
    bool same[2];
    for (int d = 0; d < 2; d++) {
        int64_t size = t->dims[d].size;
        own[d] = warps.list.items[d].i;
        same[d] = d == k || (as == TCC_AS_RESULT && size % (fragment[d] * own[d]));
        blocks[d] = size / (fragment[d] * (same[d] ? 1 : own[d]));
        if ((size != 1 || k >= 0) && size != blocks[d] * fragment[d] * (same[d] ? 1 : own[d]))
            return NULL;
    }
    bool pairs = halves && blocks[1] % 2 == 0;
    int64_t beside = tcc_attr_int(&role->attrs, "beside", 0) / fragment[1];
    beside = k != 1 && beside > 1 && blocks[1] >= beside && blocks[1] % beside == 0 ? beside : 1;
    blocks[1] /= beside;
    return tcc_layout_repeated(
        ir, t, id, 7,
        (tcc_repeat[]){{(unsigned)(k == 1), TCC_IN_REGISTERS, k < 0 ? 1 : blocks[k]},
                       {same[0] ? TCC_REPEAT_SAME : 0, TCC_IN_WARPS, own[0]},
                       {1, TCC_IN_REGISTERS, beside},
                       {same[1] ? TCC_REPEAT_SAME : 1, TCC_IN_WARPS, own[1]},
                       {pairs ? 1 : TCC_REPEAT_SAME, TCC_IN_HALVES, halves ? 2 : 1},
                       {1, TCC_IN_REGISTERS, k == 1 ? 1 : blocks[1] / (pairs ? 2 : 1)},
                       {0, TCC_IN_REGISTERS, k == 0 ? 1 : blocks[0]}});
}

bool tcc_mma_is_held(tcc_ir *ir, const tcc_op *mma, const tcc_op *role, tcc_hold *hold)
{
    static const tcc_hold_as as[] = {TCC_AS_A, TCC_AS_B, TCC_AS_SUM};
    bool all = true;
    for (unsigned i = 0; i < 3; i++)
        all &= mma->operands[i]->type == hold(ir, mma->operands[i]->type, role, as[i]);
    return all;
}

/* Rows as vectors take them, whatever is done with the tile. Warps that are below each other, and beside each other. */
static const tcc_type *hold_in_rows(tcc_ir *ir, const tcc_type *t, const tcc_op *role, tcc_hold_as as)
{
    enum { BLOCK = 3, LANES = 4, VECTORS = 5, ROWS = 6 }; /* rows in a lane, and of lanes, if they are given */
    static const tcc_fragment_id rows[VECTORS][ROWS] = {
        {TCC_FRAGMENT_row1, TCC_FRAGMENT_row1_2, TCC_FRAGMENT_row1_4, TCC_FRAGMENT_row1_8,
         TCC_FRAGMENT_row1_16, TCC_FRAGMENT_row1_32},
        {TCC_FRAGMENT_row2, TCC_FRAGMENT_row2_2, TCC_FRAGMENT_row2_4, TCC_FRAGMENT_row2_8,
         TCC_FRAGMENT_row2_16, TCC_FRAGMENT_row2_32},
        {TCC_FRAGMENT_row4, TCC_FRAGMENT_row4_2, TCC_FRAGMENT_row4_4, TCC_FRAGMENT_row4_8,
         TCC_FRAGMENT_row4_16, TCC_FRAGMENT_row4_32},
        {TCC_FRAGMENT_row8, TCC_FRAGMENT_row8_2, TCC_FRAGMENT_row8_4, TCC_FRAGMENT_row8_8,
         TCC_FRAGMENT_row8_16, TCC_FRAGMENT_row8_32},
        {TCC_FRAGMENT_row16, TCC_FRAGMENT_row16_2, TCC_FRAGMENT_row16_4, TCC_FRAGMENT_row16_8,
         TCC_FRAGMENT_row16_16, TCC_FRAGMENT_row16_32}};
    tcc_attr spread = tcc_attr_list(&role->attrs, "spread");
    int64_t vector = spread.list.items[0].i, below = spread.list.items[1].i, beside = spread.list.items[2].i;
    int64_t lanes = spread.list.n > LANES ? spread.list.items[LANES].i : 1;
    bool blocks = spread.list.n > BLOCK && spread.list.items[BLOCK].i > 1;
    size_t i = 0, j = 0;
    while (i < VECTORS && 1 << i != vector)
        i++;
    while (j < ROWS && 1 << j != lanes)
        j++;
    if (t->rank != 2 || as != TCC_AS_RESULT || i == VECTORS || j == ROWS)
        return NULL;
    tcc_fragment_id id = !blocks ? rows[i][j] : vector == 4 ? TCC_FRAGMENT_block4 : TCC_FRAGMENT_block8;
    below *= tcc_fragments[id].rows;
    beside *= tcc_fragments[id].cols;
    int64_t m = t->dims[0].size, n = t->dims[1].size;
    if ((m != 1 && m % below) || (n != 1 && n % beside))
        return NULL;
    return tcc_layout_repeated(ir, t, id, 4,
                               (tcc_repeat[]){{1, TCC_IN_WARPS, spread.list.items[2].i},
                                              {1, TCC_IN_REGISTERS, n / beside},
                                              {0, TCC_IN_WARPS, spread.list.items[1].i},
                                              {0, TCC_IN_REGISTERS, m / below}});
}

const tcc_type *tcc_hold_in_lines(tcc_ir *ir, const tcc_type *t, const tcc_op *role, int64_t neighbours)
{
    tcc_fragment_id id = neighbours == 2 ? TCC_FRAGMENT_row2 : TCC_FRAGMENT_row4;
    int64_t m = t->dims[0].size, n = t->dims[1].size, cols = tcc_fragments[id].cols;
    int64_t warps = tcc_attr_int(&role->attrs, "warps", 1);
    if (t->rank != 2 || (m != 1 && m % warps) || (n != 1 && n % cols))
        return NULL;
    return tcc_layout_repeated(ir, t, id, 3,
                               (tcc_repeat[]){{1, TCC_IN_REGISTERS, n == 1 ? 1 : n / cols},
                                              {0, TCC_IN_WARPS, warps},
                                              {0, TCC_IN_REGISTERS, m == 1 ? 1 : m / warps}});
}

/* The part of a stage that a warp holds in one matrix, if the narrowest elements from which the stage is computed
 * have this many bits: lanes have words of them. */
static tcc_fragment_id matrix_of(const tcc_type *stage, unsigned bits, int contiguous)
{
    static const tcc_fragment_id of[2][2] = {{TCC_FRAGMENT_mma_b16k8, TCC_FRAGMENT_ldmatrix},
                                             {TCC_FRAGMENT_mma_b8k16, TCC_FRAGMENT_ldmatrix8}};
    enum { LINE_BYTES = 16 };
    return of[bits == 8 && stage->dims[contiguous].size % LINE_BYTES == 0][contiguous];
}

/* The layout of ldmatrix and stmatrix, with neighbours along the dimension that is contiguous in a stage, for a
 * tile t computed for it: warps are side by side along a dimension, as far as possible. */
static const tcc_type *hold_in_matrices(tcc_ir *ir, const tcc_type *t, const tcc_op *role, const tcc_type *stage,
                                        unsigned bits, int contiguous, int along)
{
    int64_t warps = tcc_attr_int(&role->attrs, "warps", 0), blocks[2], own[2];
    int across = !contiguous;
    tcc_fragment_id id = matrix_of(stage, bits, contiguous);
    const int64_t side[] = {tcc_fragments[id].rows, tcc_fragments[id].cols};
    for (int d = 0; d < 2; d++) {
        blocks[d] = stage->dims[d].size / side[d];
        if (stage->dims[d].size % side[d] || (t->dims[d].size != 1 && t->dims[d].size != stage->dims[d].size))
            return NULL;
    }
    own[along] = tcc_gcd(blocks[along], warps);
    own[!along] = tcc_gcd(blocks[!along], warps / own[along]);
    for (int d = 0; d < 2; d++)
        blocks[d] = t->dims[d].size == 1 ? 1 : blocks[d] / own[d];
    return tcc_layout_repeated(ir, t, id, 5,
                               (tcc_repeat[]){{(unsigned)contiguous, TCC_IN_REGISTERS, blocks[contiguous]},
                                              {(unsigned)contiguous, TCC_IN_WARPS, own[contiguous]},
                                              {(unsigned)across, TCC_IN_WARPS, own[across]},
                                              {TCC_REPEAT_SAME, TCC_IN_WARPS, warps / own[0] / own[1]},
                                              {(unsigned)across, TCC_IN_REGISTERS, blocks[across]}});
}

typedef struct assigning {
    tcc_ir *ir;
    const tcc_op *role;
    tcc_hold *hold;
    tcc_fragment_id sum; /* as which warps hold what they store */
    int64_t line;        /* neighbours of a lane in whole rows, as which they compute it; or 0 */
    const tcc_op *refused; /* the first that is; */
    const char *why;
    tcc_arena *scratch;
    bool changed;
} assigning;

static void refuse(assigning *a, const tcc_op *op, const char *why)
{
    if (a->refused)
        return;
    a->refused = op;
    a->why = why;
}

static bool is_tile(const tcc_value *v)
{
    return v->type->kind == TCC_KIND_tile;
}

/* As what op, no loop, reads operand i. */
static tcc_hold_as read_as(const tcc_op *op, unsigned i)
{
    static const tcc_hold_as of_tile_mma[] = {TCC_AS_A, TCC_AS_B, TCC_AS_SUM};
    enum { A = 2, C = 4 };
    if (op->code == TCC_OP_async_mma)
        return i == A ? TCC_AS_A : i == C ? TCC_AS_SUM : TCC_AS_RESULT;
    return op->code == TCC_OP_tile_mma && i < C - 1 ? of_tile_mma[i] : TCC_AS_RESULT;
}

static unsigned operand_of(const tcc_use *u)
{
    return (unsigned)(u - u->op->uses);
}

/* The first op other than a loop that uses v, or a value that loops carry from it; NULL: none. */
static const tcc_use *use_of(const tcc_value *v)
{
    while (v->uses) {
        const tcc_use *u = v->uses;
        for (const tcc_use *other = u; other; other = other->next)
            if (read_as(other->op, operand_of(other)) != TCC_AS_RESULT || tcc_is_loop(other->op))
                u = other;
        if (!tcc_is_loop(u->op))
            return u;
        v = u->op->regions[0]->args[operand_of(u) - 2];
    }
    return NULL;
}

static void assign(assigning *a, tcc_value *v, tcc_hold_as as)
{
    if (!is_tile(v) || v->type->layout)
        return;
    const tcc_type *type = a->hold(a->ir, v->type, a->role, as);
    if (!type && as != TCC_AS_RESULT && a->hold(a->ir, v->type, a->role, TCC_AS_RESULT))
        refuse(a, v->def, "an MMA of so few rows or columns that its warps cannot share them");
    a->changed |= type != NULL;
    v->type = type ? type : v->type;
}

/* Tiles that are put into a stage, or carried to an async.put. */
static bool is_for_stage(const tcc_use *u)
{
    const tcc_op *op = u ? u->op : NULL;
    return op && (op->code == TCC_OP_async_put ||
                  (op->code == TCC_OP_scf_yield &&
                   !op->block->parent->results[operand_of(u)].type->layout));
}

enum { WORD_BITS = 32, HALF_BITS = 16, BYTE_BITS = 8, MOST_BESIDE = 128 };

/* A read, a load or a constant. */
static void assign_first(assigning *a, tcc_value *v)
{
    const tcc_use *u = use_of(v);
    const tcc_op *op = u ? u->op : NULL;
    if (is_for_stage(u) || v->type->layout)
        return;
    bool carried = op && op->code == TCC_OP_scf_yield, loads = v->def->code == TCC_OP_tile_load;
    if (carried)
        v->type = op->block->parent->results[operand_of(u)].type;
    else
        assign(a, v, op && !loads ? read_as(op, operand_of(u)) : TCC_AS_RESULT);
}

/* Where a warpgroup's threads have few neighbours of what is loaded, lanes load rows, and exchange words. */
static void load_rows(assigning *a, tcc_op *load)
{
    const tcc_fragment *f = &tcc_fragments[TCC_FRAGMENT_rows8];
    tcc_value *v = &load->results[0];
    const tcc_type *own = v->type;
    int64_t warps = tcc_attr_int(&a->role->attrs, "warps", 0), rows = f->rows * warps;
    if (!own->layout || tcc_layout_fragment(own) != TCC_FRAGMENT_wgmma_d || !tcc_attr_find(&load->attrs, "wide") ||
        tcc_scalar_bits(own->elem) != HALF_BITS || own->dims[0].size % rows || own->dims[1].size % f->cols)
        return;
    v->type = tcc_layout_repeated(a->ir, own, TCC_FRAGMENT_rows8, 3,
                                  (tcc_repeat[]){{1, TCC_IN_REGISTERS, own->dims[1].size / f->cols},
                                                 {0, TCC_IN_WARPS, warps},
                                                 {0, TCC_IN_REGISTERS, own->dims[0].size / rows}});
    tcc_builder b = tcc_builder_after(load);
    b.loc = load->loc;
    tcc_value *held = TCC_EMIT(&b, tile_convert, own, v);
    tcc_replace_uses(v, held);
    tcc_op_set_operand(held->def, 0, v);
}

static void assign_results(assigning *a, tcc_op *op)
{
    for (unsigned i = 0; i < op->n_results; i++) {
        tcc_value *v = &op->results[i];
        if (!is_tile(v))
            continue;
        if (tcc_is_loop(op))
            v->type = op->regions[0]->args[i + 1]->type = op->operands[i + 3]->type;
        else if (op->code == TCC_OP_async_read || op->code == TCC_OP_arith_const)
            assign_first(a, v);
        else if (op->code == TCC_OP_tile_load) {
            assign_first(a, v);
            load_rows(a, op);
        }
        else
            assign(a, v, op->code == TCC_OP_tile_mma ? TCC_AS_SUM : TCC_AS_RESULT);
    }
}

/* ---- stores of rows ------------------------------------------------------------------------- */

static bool is_in_words(const tcc_op *op)
{
    return tcc_attr_find(&op->attrs, "words");
}

/* The bits of an element that op stores so that lanes of matrix instructions hold too few neighbours for the widest
 * access, or too short a part of a row for words; 0: it does not. */
static unsigned bits_in_rows(const tcc_op *op)
{
    if (op->code != TCC_OP_tile_store)
        return 0;
    unsigned bits = tcc_scalar_bits(TCC_VIEW(tile_store, op)->tensor->type->elem);
    bool wide = tcc_attr_find(&op->attrs, "wide") && bits == HALF_BITS;
    return wide || is_in_words(op) ? bits : 0;
}

static bool is_stored_in_rows(const assigning *a, const tcc_op *op)
{
    return bits_in_rows(op) && tcc_attr_find(&a->role->attrs, "beside");
}

/* Lanes exchange elements of 16 bits for it, warps those of 8 or of opaque fragments. */
static const tcc_type *in_rows(const assigning *a, const tcc_op *store, const tcc_type *t)
{
    unsigned bits = bits_in_rows(store);
    if (bits == BYTE_BITS || tcc_fragments[a->sum].opaque)
        return tcc_hold_in_lines(a->ir, t, a->role, WORD_BITS / bits);
    tcc_fragment_id words = a->sum == TCC_FRAGMENT_fma_d ? TCC_FRAGMENT_fma_rows2 : TCC_FRAGMENT_rows2;
    return tcc_hold_in_blocks(a->ir, t, a->role, TCC_AS_RESULT, is_in_words(store) ? words : TCC_FRAGMENT_rows8, false);
}

/* Whether a tile that is held in whole rows is, too, in chunks in which warps have so many neighbouring columns. */
static bool is_in_chunks(const assigning *a, const tcc_type *held, int64_t beside)
{
    tcc_attr waves = tcc_attr_list(&a->role->attrs, "waves");
    tcc_fragment_id id = tcc_layout_fragment(held);
    int64_t across = waves.list.items[1].i, cols = beside * across;
    bool lines = id == TCC_FRAGMENT_row2 || id == TCC_FRAGMENT_row4;
    return !lines || (tcc_fragments[a->sum].rows % across == 0 && cols % tcc_fragments[id].cols == 0 &&
                      held->dims[1].size % cols == 0);
}

/* Whether a tile of the role is computed elementwise, or is what such ops take. */
static bool is_of_computing(const assigning *a, const tcc_op *op)
{
    static const tcc_opcode others[] = {TCC_OP_tile_broadcast, TCC_OP_tile_load, TCC_OP_tile_gather, TCC_OP_tile_index,
                                        TCC_OP_async_read};
    bool any = op && tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    for (size_t i = 0; op && i < sizeof others / sizeof *others; i++)
        any |= op->code == others[i];
    return (any || (op && op->code == TCC_OP_arith_const)) && tcc_ancestor_in((tcc_op *)op, a->role->regions[0]);
}

/* Whether an operand of op is computed in the role, and not only loaded. */
static bool is_computed(const assigning *a, const tcc_op *op, unsigned i)
{
    const tcc_op *def = op->operands[i]->def;
    return is_of_computing(a, def) && def->code != TCC_OP_tile_load && def->code != TCC_OP_async_read;
}

/* Whether all that the role stores can be held so. Not in whole rows of opaque sums if it computes operands: with these
 * they share what is the same in a row. */
static bool can_store_rows(assigning *a, int64_t beside)
{
    tcc_block *region = a->role->regions[0];
    unsigned bits = 0;
    bool all = true, opaque = false, computed = false;
    for (tcc_op *op = region->first; op && all; op = tcc_walk_next(op, region)) {
        computed |= op->code == TCC_OP_tile_mma && (is_computed(a, op, 0) || is_computed(a, op, 1));
        if (op->code != TCC_OP_tile_store)
            continue;
        const tcc_type *t = TCC_VIEW(tile_store, op)->a->type;
        const tcc_type *sum = t->layout ? NULL : a->hold(a->ir, t, a->role, TCC_AS_SUM);
        a->sum = sum ? tcc_layout_fragment(sum) : TCC_FRAGMENT_COUNT;
        opaque |= sum && tcc_layout_is_opaque(sum);
        bool known = a->sum == TCC_FRAGMENT_mma_d || ((opaque || a->sum == TCC_FRAGMENT_fma_d) && is_in_words(op));
        const tcc_type *held = known && bits_in_rows(op) ? in_rows(a, op, t) : NULL;
        all = held && is_in_chunks(a, held, beside) && (!opaque || !bits || bits == bits_in_rows(op));
        bits = bits_in_rows(op);
    }
    a->line = opaque && bits ? WORD_BITS / bits : 0;
    return bits && all && !(opaque && computed);
}

/* Lets the role's warps have as many neighbouring columns as its stores want, which take elements as they are in
 * memory: two to a word that lanes exchange. */
static void store_rows(assigning *a, tcc_op *role)
{
    tcc_block *region = role->regions[0];
    int64_t beside = tcc_fragments[TCC_FRAGMENT_rows8].cols;
    while (beside <= MOST_BESIDE && !can_store_rows(a, beside))
        beside *= 2;
    for (tcc_op *op = region->first; op && beside > MOST_BESIDE; op = tcc_walk_next(op, region))
        if (op->code == TCC_OP_tile_store)
            tcc_attr_remove(&op->attrs, "words");
    if (beside > MOST_BESIDE)
        return;
    tcc_attr_set_int(a->ir, &role->attrs, "beside", beside);
    if (a->line)
        tcc_attr_set_int(a->ir, &role->attrs, "line", a->line);
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region)) {
        const tcc_tile_store_operands *o = op->code == TCC_OP_tile_store ? TCC_VIEW(tile_store, op) : NULL;
        if (!o || o->a->type->elem == o->tensor->type->elem)
            continue;
        tcc_builder b = tcc_builder_before(op);
        b.loc = op->loc;
        const tcc_type *t = tcc_type_with_elem(a->ir, o->a->type, o->tensor->type->elem);
        tcc_op_set_operand(op, 0, TCC_EMIT(&b, arith_cast, t, o->a));
    }
}

/* The type as which op needs a tile that it reads. */
static const tcc_type *wanted(assigning *a, const tcc_op *op, unsigned i)
{
    const tcc_type *t = op->operands[i]->type;
    const tcc_op *parent = op->block->parent;
    tcc_hold_as as = read_as(op, i);
    if (op->code == TCC_OP_scf_yield)
        return parent->results[i].type;
    if (as != TCC_AS_RESULT)
        return a->hold(a->ir, t, a->role, as);
    if (is_stored_in_rows(a, op))
        return in_rows(a, op, t);
    bool sum = !tcc_is_loop(op) && t == a->hold(a->ir, t, a->role, TCC_AS_SUM);
    return sum ? a->hold(a->ir, t, a->role, TCC_AS_RESULT) : t;
}

static void convert(assigning *a, tcc_op *op, unsigned i, const tcc_type *type)
{
    tcc_value *v = op->operands[i];
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    if (v->def && v->def->code == TCC_OP_arith_const) {
        tcc_op *other = tcc_op_create(&b, TCC_OP_arith_const, 0, NULL, 1, &type);
        other->attrs = v->def->attrs;
        tcc_op_set_operand(op, i, &other->results[0]);
    } else {
        tcc_op_set_operand(op, i, TCC_EMIT(&b, tile_convert, type, v));
    }
    a->changed = true;
}

/* The dimension of an MMA's operand that is not summed: if warps are side by side along it, each has fewer elements
 * of another tensor that are the same for all k, and stay in registers. */
static int own_dimension(const tcc_value *buffer)
{
    enum { B = 3 };
    bool is_b = false;
    for (const tcc_use *u = buffer->uses; u; u = u->next)
        is_b |= u->op->code == TCC_OP_async_mma && operand_of(u) == B;
    return is_b;
}

/* Gives what is computed for a stage, and all that it is computed of, the layout in which it is put there. */
static void assign_put(assigning *a, tcc_op *put)
{
    const tcc_async_put_operands *o = TCC_VIEW(async_put, put);
    int contiguous = tcc_attr_int(&o->buffer->def->attrs, "contiguous", 1) ? 1 : 0;
    const tcc_type *stage = o->a->type;
    int along = own_dimension(o->buffer);
    unsigned bits = tcc_scalar_bits(stage->elem);
    TCC_VEC(tcc_value *) all = {0};
    tcc_map known = TCC_MAP(a->scratch);
    if (!stage->layout && is_of_computing(a, o->a->def) && o->a->def->code != TCC_OP_tile_load)
        TCC_PUSH(a->scratch, &all, o->a);
    for (size_t n = 0; n < all.len; n++) {
        const tcc_op *op = all.data[n]->def;
        unsigned own = tcc_scalar_bits(op->results[0].type->elem);
        bits = op->code == TCC_OP_async_read && own < bits ? own : bits;
        for (unsigned i = 0; i < op->n_operands; i++) {
            tcc_value *v = op->operands[i];
            bool is_new = is_tile(v) && !tcc_map_get(&known, v) && is_of_computing(a, v->def);
            if (is_new)
                TCC_PUSH(a->scratch, &all, v);
            *tcc_map_at(&known, v) = v;
        }
    }
    for (size_t n = 0; n < all.len; n++) {
        tcc_value *v = all.data[n];
        const tcc_type *type =
            v->type->layout ? NULL : hold_in_matrices(a->ir, v->type, a->role, stage, bits, contiguous, along);
        a->changed |= type != NULL;
        v->type = type ? type : v->type;
    }
}

static void assign_role(assigning *a)
{
    tcc_block *region = a->role->regions[0];
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region))
        if (op->code == TCC_OP_async_put)
            assign_put(a, op);
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region)) {
        for (unsigned i = 0; i < op->n_operands; i++) {
            const tcc_type *t = op->operands[i]->type; /* of the role it had its layout by now */
            if (t->kind != TCC_KIND_tile)
                continue;
            const tcc_type *type = t->layout ? wanted(a, op, i) : NULL;
            if (!t->layout && !tcc_is_loop(op) && !is_for_stage(&op->uses[i]) &&
                a->hold(a->ir, t, a->role, TCC_AS_RESULT))
                refuse(a, op, "a tile from outside the role that uses it");
            else if (type && type != t)
                convert(a, op, i, type);
        }
        assign_results(a, op);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    const tcc_family_passes *passes = tcc_family_passes_of(tcc_func_target(f));
    tcc_hold *hold = passes ? passes->hold : NULL;
    assigning a = {.ir = ctx->ir, .scratch = ctx->scratch};
    for (tcc_op *op = f->body->first; op && hold; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_async_role) {
            a.role = op;
            a.hold = tcc_attr_find(&op->attrs, "spread") ? hold_in_rows : hold;
            store_rows(&a, op);
            assign_role(&a);
        }
    *changed = a.changed;
    if (a.refused) {
        tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, a.refused->loc, "not supported yet: %s", a.why);
        return TCC_ERR_UNSUPPORTED;
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_assign_layouts = {
    "assign-layouts",
    "decide which register of which lane and warp holds each element of a tile", .run = run,
    .requires = TCC_UP_TO(roles),
    .leaves = TCC_STATE(layouts)};

/* pipeline_sum: a loop that adds tiles along k, all or a part of them, two tiles ahead of itself
 * (pipeline_registers.c shows it).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/pipeline_registers.h"

enum { UNIT_BITS = 128 }; /* that a thread copies at a time */

static tcc_value *bin(tcc_builder *b, tcc_opcode op, tcc_value *x, tcc_value *y)
{
    return tcc_arith_bin(b, op, x, y);
}

/* ---- what is one ------------------------------------------------------------------------ */

/* The operand of a load along k, and which of its tensor's dimensions that is. */
static unsigned k_operand(const tcc_operand *s, tcc_dim *dim)
{
    int64_t d = tcc_attr_list(&s->load->attrs, "dims").list.items[!s->x].i;
    if (dim && d >= 0)
        *dim = TCC_VIEW(tile_load, s->load)->tensor->type->dims[d];
    return d < 0 ? 0 : 1 + (unsigned)d;
}

static bool is_binary_with(const tcc_value *v, tcc_opcode code, int64_t right)
{
    int64_t number;
    return v->def && v->def->code == code && tcc_value_is_int(v->def->operands[1], &number) &&
           number == right;
}

/* Whether v is max(ceil(d / by), 1) as it is written, or without the max. */
static bool is_iteration_count(const tcc_value *v, tcc_dim d, int64_t by)
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
    return v->def && v->def->code == TCC_OP_tensor_dim && tcc_attr_is(&v->def->attrs, "name", d.name);
}

/* Which of the loop's sums an MMA adds to, and does nothing else; -1: none. */
static int sum_of(const tcc_op *mma, const tcc_op *loop)
{
    const tcc_block *body = loop->regions[0];
    for (unsigned i = 0; i < loop->n_results; i++)
        if (body->last->operands[i] == &mma->results[0] && mma->results[0].n_uses == 1 &&
            TCC_VIEW(tile_mma, mma)->c == body->args[1 + i] && body->args[1 + i]->n_uses == 1)
            return (int)i;
    return -1;
}

static bool is_multiplied_alone(const tcc_value *tile)
{
    for (const tcc_use *u = tile->uses; u; u = u->next)
        if (u->op->code != TCC_OP_tile_mma)
            return false;
    return true;
}

/* Whether a tile's number is that of the iteration or, in a part of a sum, of every so-many-th tile from the part's
 * own on: then no iteration but the last has a tile that ends beyond the sum. */
static bool is_tile_number(const tcc_value *v, const tcc_op *loop, tcc_tiles *tiles)
{
    const tcc_value *i = loop->regions[0]->args[0];
    *tiles = (tcc_tiles){.parts = 1};
    if (v == i)
        return true;
    if (!v->def || v->def->code != TCC_OP_arith_add)
        return false;
    const tcc_value *every = v->def->operands[0];
    tiles->part = v->def->operands[1];
    return every->def && every->def->code == TCC_OP_arith_mul && every->def->operands[0] == i &&
           tcc_value_is_int(every->def->operands[1], &tiles->parts) && tcc_is_invariant(tiles->part, loop) &&
           tcc_is_not_negative(tiles->part) && tcc_is_below(tiles->part, (tcc_dim){NULL, tiles->parts});
}

bool tcc_is_sum_over_tiles(const tcc_group *g, tcc_tiles *tiles)
{
    const tcc_op *loop = tcc_group_loop(g);
    if (!tcc_is_loop(loop) || tcc_is_loop(loop->block->parent) || g->stages != TCC_STAGES ||
        !tcc_counts_iterations(loop) || loop->n_results != g->products.len)
        return false;
    const tcc_block *body = loop->regions[0];
    size_t others = g->sources.len + g->products.len; /* of the body's ops that must be visited */
    for (size_t m = 0; m < g->products.len; m++)
        if (sum_of(g->products.data[m].mma, loop) < 0)
            return false;
    for (size_t s = 0; s < g->sources.len; s++) {
        const tcc_operand *of = &g->sources.data[s];
        tcc_dim dim = {NULL, 0};
        unsigned along = k_operand(of, &dim);
        const tcc_value *at = along ? of->load->operands[along] : NULL;
        tcc_tiles own;
        if (!at || !is_binary_with(at, TCC_OP_arith_mul, g->depth) ||
            !is_tile_number(at->def->operands[0], loop, &own) || !is_multiplied_alone(&of->load->results[0]))
            return false;
        own.k = dim;
        for (unsigned o = 1; o < of->load->n_operands; o++)
            if (o != along && !tcc_is_invariant(of->load->operands[o], loop))
                return false;
        if (s && (dim.name != tiles->k.name || dim.size != tiles->k.size || own.parts != tiles->parts ||
                  own.part != tiles->part))
            return false;
        *tiles = own;
    }
    for (const tcc_op *op = body->first; op != body->last; op = op->next) {
        bool on_tiles = op->n_results != 1 || op->results[0].type->kind != TCC_KIND_scalar;
        if (on_tiles && !others--)
            return false;
    }
    return is_iteration_count(TCC_VIEW(scf_for, loop)->hi, tiles->k, g->depth * tiles->parts);
}

/* ---- ahead of itself -------------------------------------------------------------------- */

/* Where the loop's tiles are along k, and how often it runs. Only the two tiles in front of it may extend beyond the
 * sum: of all tiles the first two, before its beginning; of those of a part, the last two, behind its end. */
typedef struct span {
    tcc_value *ahead, *first, *iterations; /* of the tile in front of the loop; where the loop counts from */
    tcc_value *last;                       /* of the last whole tile, 0 where there is none */
    const char *how;                       /* the two extend beyond it: an attribute of tile.load, or NULL */
    int64_t chunk, step, before; /* from one tile to the next; how many tiles from `first` to the loop's */
} span;

static span plan_span(const tcc_group *g, tcc_builder *b, const tcc_tiles *tiles)
{
    span s = {.step = g->depth * tiles->parts};
    int64_t all = g->stages * s.step;
    bool early = !tiles->part;
    tcc_value *k = tcc_build_extent(b, tiles->k), *end = k, *length = k;
    for (size_t i = 0; i < g->sources.len; i++)
        if (!tcc_attr_is(&g->sources.data[i].load->attrs, "copy", "buffer"))
            s.chunk = UNIT_BITS / tcc_scalar_bits(g->sources.data[i].load->results[0].type->elem);
    if (s.chunk) {
        end = bin(b, TCC_OP_arith_sub, end, tcc_arith_rest(b, end, s.chunk));
        end = tcc_arith_bin_const(b, TCC_OP_arith_max, end, 0);
        length = early ? tcc_arith_add(b, end, s.chunk) : k; /* the last one comes first */
    }
    s.iterations = tcc_arith_div(b, tcc_arith_add(b, length, all - 1), all);
    s.iterations = tcc_arith_bin_const(b, TCC_OP_arith_max, s.iterations, 1);
    if (early) {
        s.how = "early";
        s.ahead = s.first = bin(b, TCC_OP_arith_sub, end, tcc_arith_mul(b, s.iterations, all));
        s.before = g->stages;
    } else {
        s.first = tcc_arith_mul(b, tiles->part, g->depth);
        tcc_value *others = tcc_arith_bin_const(b, TCC_OP_arith_max, tcc_arith_add(b, s.iterations, -1), 0);
        s.ahead = bin(b, TCC_OP_arith_add, tcc_arith_mul(b, others, all), s.first);
    }
    s.last = tcc_arith_bin_const(b, TCC_OP_arith_max, tcc_arith_add(b, end, -g->depth), 0);
    return s;
}

/* Values in flight: sums; tiles from memory; parts of a stage. */
typedef struct carried {
    tcc_value **acc, **tiles, **parts;
} carried;

/* The tiles from k on, at each place as `how` says: an attribute of tile.load; NULL: anywhere. */
static void load_tiles(const tcc_group *g, tcc_builder *b, tcc_value *k, const char *how, int64_t chunk,
                       tcc_value **tiles)
{
    for (size_t s = 0; s < g->sources.len; s++) {
        const tcc_operand *of = &g->sources.data[s];
        tcc_value_map *map = tcc_value_map_create(g->ir->arena);
        tcc_value_map_set(map, of->load->operands[k_operand(of, NULL)], k);
        tcc_op *op = tcc_group_load(g, b, of->load, map);
        if (how)
            tcc_attr_set_int(g->ir, &op->attrs, how, !of->x);
        if (how && chunk)
            tcc_attr_set_int(g->ir, &op->attrs, "chunk", chunk);
        tiles[s] = &op->results[0];
    }
}

/* Tile `number` of an iteration, i of all, whose first round is ready. */
static void do_tile(const tcc_group *g, tcc_builder *b, tcc_value *k, const span *s, int64_t number,
                    tcc_value *i, carried *v)
{
    int64_t rounds = g->depth / g->round;
    tcc_value *next = tcc_arith_add(b, i, 1);
    for (int64_t r = 0; r < rounds; r++) {
        bool last = r == rounds - 1;
        if (r == 0 && !last)
            tcc_group_multiply(g, b, v->parts, v->acc);
        if (r == 0) {
            tcc_group_put(g, b, next, v->tiles);
            tcc_value *to = tcc_arith_add(b, k, (number + s->before) * s->step);
            load_tiles(g, b, bin(b, TCC_OP_arith_min, to, s->last), "inside", 0, v->tiles);
        }
        if (last) {
            TCC_EMIT_V(b, async_release, g->ring, i);
            tcc_meet(b);
            TCC_EMIT_V(b, async_wait, g->ring, next);
        }
        if (r || last)
            tcc_group_multiply(g, b, v->parts, v->acc);
        tcc_group_read(g, b, last ? next : i, last ? 0 : r + 1, v->parts);
    }
}

/* The values that the loop carries, one after the other. */
static size_t list_carried(const tcc_group *g, carried *v, tcc_value ***slots)
{
    size_t n = 0;
    for (size_t m = 0; m < g->products.len; m++)
        slots[n++] = &v->acc[m];
    for (size_t s = 0; s < g->sources.len; s++)
        slots[n++] = &v->tiles[s];
    for (size_t s = 0; s < g->sources.len; s++)
        slots[n++] = &v->parts[s];
    return n;
}

void tcc_run_ahead(tcc_group *g, const tcc_tiles *tiles)
{
    tcc_op *old = tcc_group_loop(g);
    tcc_builder b = tcc_builder_before(old);
    tcc_group_ring(g, &b);
    span s = plan_span(g, &b, tiles);
    tcc_value *zero = tcc_build_i32(&b, 0), *one = tcc_build_i32(&b, 1);
    carried v = {tcc_group_accumulators(g), tcc_group_tiles(g, 1), tcc_group_tiles(g, 1)};
    for (size_t m = 0; m < g->products.len; m++)
        v.acc[m] = old->operands[3 + sum_of(g->products.data[m].mma, old)];
    load_tiles(g, &b, s.ahead, s.how, s.chunk, v.tiles);
    tcc_group_put(g, &b, zero, v.tiles);
    load_tiles(g, &b, tcc_arith_add(&b, s.ahead, s.step), s.how, s.chunk, v.tiles);
    tcc_meet(&b);
    TCC_EMIT_V(&b, async_wait, g->ring, zero);
    tcc_group_read(g, &b, zero, 0, v.parts);

    size_t most = g->products.len + 2 * g->sources.len;
    tcc_value ***slots = TCC_NEW_ARRAY(g->scratch, tcc_value **, most);
    tcc_value **operands = TCC_NEW_ARRAY(g->scratch, tcc_value *, 3 + most);
    const tcc_type **types = TCC_NEW_ARRAY(g->scratch, const tcc_type *, most);
    size_t n = list_carried(g, &v, slots);
    operands[0] = zero;
    operands[1] = s.iterations;
    operands[2] = one;
    for (size_t i = 0; i < n; i++) {
        operands[3 + i] = *slots[i];
        types[i] = (*slots[i])->type;
    }
    tcc_op *loop = tcc_op_create(&b, TCC_OP_scf_for, 3 + n, operands, n, types);
    for (size_t a = 0; a < old->attrs.len; a++)
        TCC_PUSH(g->ir->arena, &loop->attrs, old->attrs.data[a]);
    tcc_attr_set_int(g->ir, &loop->attrs, "at_least_once", 1);
    tcc_builder in = tcc_builder_at_end(loop->regions[0]);
    in.loc = tcc_group_loc(g);
    tcc_value *t = tcc_block_add_arg(loop->regions[0], zero->type, "i");
    for (size_t i = 0; i < n; i++)
        *slots[i] = tcc_block_add_arg(loop->regions[0], types[i], i < g->products.len ? "acc" : NULL);
    tcc_value *at = bin(&in, TCC_OP_arith_add, tcc_arith_mul(&in, t, g->stages * s.step), s.first);
    tcc_value *first = tcc_arith_mul(&in, t, g->stages);
    for (int64_t number = 0; number < g->stages; number++)
        do_tile(g, &in, at, &s, number, tcc_arith_add(&in, first, number), &v);
    for (size_t i = 0; i < n; i++)
        operands[i] = *slots[i];
    tcc_op_create(&in, TCC_OP_scf_yield, n, operands, 0, NULL);
    for (size_t m = 0; m < g->products.len; m++)
        tcc_replace_uses(&old->results[sum_of(g->products.data[m].mma, old)], &loop->results[m]);
    tcc_op_erase(old);
}

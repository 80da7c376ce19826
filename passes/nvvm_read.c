/* nvvm_read: tiles from stages to registers, and back, also to buffers of results whose columns are contiguous.
 *
 * The address of an element is the thread's base plus what its register adds; a stage consists of panels,
 * swizzled as by TMA (ir/shared.h). 16-bit numbers that a warp holds in ldmatrix's layout are loaded by it,
 * and stored by stmatrix.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

enum { LINES = 8 }; /* of a panel, after which swizzling begins again */

/* The operands of async.read, async.put or async.write: where its part of a stage begins, and its address. */
typedef struct reading {
    tcc_panels panels;
    int64_t swizzle, bits; /* of an element */
    int contiguous;         /* the tile's dimension that runs through a line of a panel */
    int64_t at[2];
    tcc_held registers;
    const tcc_spread *held;
    tcc_value *stage;
} reading;

/* A place in the tile: what is known at run time, none of it above `most`, and what a register adds. */
typedef struct place {
    tcc_value *own[2];
    int64_t most[2], add[2];
} place;

static int64_t bytes_of(const reading *r, int64_t elements)
{
    return elements * r->bits / 8;
}

/* Whether `along`, of a line's bytes, has no bits in common with what is known at run time: then it is exclusive-ored
 * like what is added. */
static bool is_apart(const reading *r, const place *p, int64_t along)
{
    return along == 0 || bytes_of(r, p->most[r->contiguous] + 1) <= (along & -along);
}

static tcc_value *address(tcc_nvvm_lowering *l, const reading *r, const place *p)
{
    tcc_lowering *low = &l->low;
    const tcc_panels *panels = &r->panels;
    int x = r->contiguous;
    int64_t byte_add = bytes_of(r, p->add[x]), along = byte_add % panels->width;
    int64_t in_eight = p->add[!x] % LINES, eights = p->add[!x] - in_eight; /* lines, of which 8 swizzle alike */
    bool apart = is_apart(r, p, along);
    tcc_value *line = tcc_low_add(low, p->own[!x], in_eight);
    tcc_value *own = r->bits < 8 ? tcc_low_div(low, p->own[x], 8 / r->bits) : tcc_low_mul(low, p->own[x], r->bits / 8);
    tcc_value *byte = tcc_low_add(low, own, apart ? 0 : along);
    tcc_value *lines = tcc_low_mul(low, line, panels->width);
    tcc_value *panel = tcc_low_mul(low, tcc_low_div(low, byte, panels->width), panels->panel_bytes);
    tcc_value *in_line = tcc_low_rem(low, byte, panels->width);
    if (r->swizzle)
        in_line = tcc_low_bin(low, TCC_OP_arith_xor, in_line,
                              tcc_low_bin(low, TCC_OP_arith_xor, lines,
                                          tcc_nvvm_swizzle(l, lines, r->swizzle)));
    if (apart && along)
        in_line = tcc_low_bin_const(low, TCC_OP_arith_xor, in_line, along);
    int64_t further = eights * panels->width + byte_add / panels->width * panels->panel_bytes;
    tcc_value *at = tcc_low_bin(low, TCC_OP_arith_add, tcc_low_bin(low, TCC_OP_arith_add, lines, panel),
                                in_line);
    return tcc_low_add(low, tcc_low_bin(low, TCC_OP_arith_add, r->stage, at), further);
}

/* The most that the digits of a number add along a dimension. */
static int64_t most_of(const tcc_digits *digits, int dim)
{
    int64_t most = 0;
    for (unsigned d = 0; d < digits->n; d++)
        most += (digits->of[d].n - 1) * digits->of[d].add[dim];
    return most;
}

/* The thread's own element. */
static place own_place(tcc_nvvm_lowering *l, const reading *r)
{
    place p = {0};
    for (int d = 0; d < 2; d++) {
        p.own[d] = tcc_low_own(&l->low, r->held, d);
        p.most[d] = most_of(&r->held->lanes, d) + most_of(&r->held->warps, d);
    }
    return p;
}

static void add_register(const reading *r, int64_t number, place *p)
{
    for (int d = 0; d < 2; d++)
        p->add[d] = r->at[d] + tcc_digits_place(&r->held->registers, number, d);
}

/* ---- matrices ------------------------------------------------------------------------------ */

enum { SIDE = 8, WORD_BYTES = 4 };

/* Matrices of 8 lines of 16 bytes, a word of each line in every lane: n of them at a time are put together from
 * registers that follow each other. */
typedef struct matrices {
    int64_t n, registers;    /* of the matrices at a time */
    int rows;                /* the tile's dimension of which each 4 lanes have a place */
    int64_t further[2][2];   /* what the bits of a matrix' number add to its place */
} matrices;

/* Elements of a lane's word. */
static int64_t per_word(const reading *r)
{
    return WORD_BYTES * 8 / r->bits;
}

/* Whether lanes have the words of a matrix whose lines run along dimension !rows. */
static bool are_lanes_of_matrix(const reading *r, int rows)
{
    for (int64_t lane = 0; lane < TCC_WARP_LANES; lane++)
        if (tcc_digits_place(&r->held->lanes, lane, rows) != lane / 4 ||
            tcc_digits_place(&r->held->lanes, lane, !rows) != lane % 4 * per_word(r))
            return false;
    return true;
}

/* The distance of matrices to read along a dimension, in whole matrices. */
static int64_t unit(const reading *r, const matrices *m, int dim)
{
    return dim == m->rows ? SIDE : 4 * per_word(r);
}

/* What register `number` of a group adds to the position of the group's first, along a
 * dimension. */
static int64_t place_in_group(const reading *r, const matrices *m, int64_t number, int dim)
{
    int64_t first = number / m->registers * m->registers;
    return tcc_digits_place(&r->held->registers, number, dim) - tcc_digits_place(&r->held->registers, first, dim);
}

/* Whether the registers are words of matrices, each group's lying to each other as `further` says. */
static bool are_registers_of(const reading *r, const matrices *m)
{
    for (int64_t i = 0; i < r->held->n_registers; i++) {
        int64_t matrix = i % m->registers / per_word(r), in_word = i % per_word(r);
        for (int d = 0; d < 2; d++) {
            int64_t begins = tcc_digits_place(&r->held->registers, i - i % m->registers, d) + r->at[d];
            int64_t further = (matrix & 1 ? m->further[0][d] : 0) + (matrix & 2 ? m->further[1][d] : 0);
            if ((begins + further) % unit(r, m, d) ||
                place_in_group(r, m, i, d) != further + (d != m->rows ? in_word : 0))
                return false;
        }
    }
    for (int d = 0; d < 2; d++)
        for (int64_t w = 0; w < r->held->n_warps; w++)
            if (tcc_digits_place(&r->held->warps, w, d) % unit(r, m, d))
                return false;
    return true;
}

/* Four matrices at a time, or two, or one; false if the tile does not consist of such matrices. Only
 * elements of 16 bits change rows with columns. */
static bool find_matrices(const reading *r, matrices *m)
{
    if (r->bits > WORD_BYTES * 8)
        return false;
    *m = (matrices){.rows = are_lanes_of_matrix(r, 0) ? 0 : 1};
    if (!are_lanes_of_matrix(r, m->rows) || (r->bits != 16 && m->rows == r->contiguous))
        return false;
    for (m->n = 4; m->n; m->n /= 2) {
        m->registers = m->n * per_word(r);
        for (int b = 0; b < 2; b++)
            for (int d = 0; d < 2; d++)
                m->further[b][d] = m->n >> (b + 1) ? tcc_digits_place(&r->held->registers, per_word(r) << b, d) : 0;
        if (r->held->n_registers % m->registers == 0 && are_registers_of(r, m))
            return true;
    }
    return false;
}

/* Lane q provides the address of line q % 8 of matrix q / 8: along the lines' own dimension where they run
 * through the stage's, else transposed. */
static place line_place(tcc_nvvm_lowering *l, const reading *r, const matrices *m)
{
    tcc_lowering *low = &l->low;
    tcc_value *lane = l->low.vendor->lane(low), *line = tcc_low_rem(low, lane, SIDE);
    place p = {0};
    for (int d = 0; d < 2; d++) {
        tcc_value *in = tcc_low_c32(low, 0);
        for (int b = 0; b < 2; b++)
            if (m->further[b][d]) {
                tcc_value *bit = tcc_low_rem(low, tcc_low_div(low, lane, SIDE << b), 2);
                in = tcc_low_bin(low, TCC_OP_arith_add, in, tcc_low_mul(low, bit, m->further[b][d]));
            }
        if (d != r->contiguous)
            in = tcc_low_bin(low, TCC_OP_arith_add, in, line);
        p.own[d] = tcc_low_bin(low, TCC_OP_arith_add, in,
                               tcc_low_digits(low, &r->held->warps, l->low.vendor->warp(low), d));
        p.most[d] = most_of(&r->held->warps, d) + m->further[0][d] + m->further[1][d] + unit(r, m, d) - 1;
    }
    return p;
}

/* Divides into as many parts as the tile has vecs. Returns their number. */
static size_t read_matrices(tcc_nvvm_lowering *l, const reading *r, const matrices *m, const place *p,
                            tcc_scalar elem, tcc_value **parts)
{
    tcc_lowering *low = &l->low;
    tcc_value *words = TCC_EMIT(&low->b, nvvm_ldmatrix, tcc_low_vec(low, TCC_i32, m->n), address(l, r, p));
    if (r->contiguous == m->rows)
        tcc_attr_set_int(low->ir, &words->def->attrs, "trans", 1);
    int64_t one = r->registers.in_one < m->registers ? r->registers.in_one : m->registers;
    int64_t n = m->registers / one, n_words = m->n / n;
    for (int64_t i = 0; i < n; i++)
        parts[i] = TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, elem, one),
                            tcc_low_slice(low, words, i * n_words, n_words));
    return (size_t)n;
}

/* ---- elements ------------------------------------------------------------------------------ */

/* Whether every `step` registers, from a multiple of it on, are neighbours in a line, the first of them aligned to an
 * access of all. */
static bool are_neighbours(const reading *r, const place *own, int64_t step)
{
    const tcc_spread *s = r->held;
    int x = r->contiguous;
    bool all = s->n_registers % step == 0 && own->most[x] % step == 0 && r->at[x] % step == 0 &&
               r->panels.width % bytes_of(r, step) == 0;
    for (const tcc_digits *d = &s->lanes; d; d = d == &s->lanes ? &s->warps : NULL)
        for (unsigned i = 0; i < d->n; i++)
            all &= d->of[i].add[x] % step == 0;
    for (int64_t i = 0; i < s->n_registers && all; i++)
        all = tcc_digits_place(&s->registers, i, x) ==
                  tcc_digits_place(&s->registers, i / step * step, x) + i % step &&
              (i % step || tcc_digits_place(&s->registers, i, x) % step == 0) &&
              tcc_digits_place(&s->registers, i, !x) == tcc_digits_place(&s->registers, i / step * step, !x);
    return all;
}

/* How many neighbours a thread accesses at a time, up to 16 bytes. */
static int64_t neighbours_at_once(const reading *r, const place *own)
{
    enum { WIDE_BYTES = 16 };
    int64_t step = WIDE_BYTES * 8 / r->bits;
    while (step > 1 && !(step <= r->registers.in_one && are_neighbours(r, own, step)))
        step /= 2;
    return step;
}

/* ---- fragments that only wmma knows ---------------------------------------------------------- */

static void read_opaque(tcc_nvvm_lowering *l, const tcc_op *op, const reading *r)
{
    tcc_lowering *low = &l->low;
    const tcc_type *tile = op->results[0].type;
    const tcc_fragment *f = &tcc_fragments[tcc_layout_fragment(tile)];
    size_t n = r->registers.n;
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, n);
    place p = {0};
    if (r->swizzle || r->panels.width != (r->contiguous ? f->cols : f->rows) * (r->bits / 8) || r->at[0] % f->rows ||
        r->at[1] % f->cols) {
        TCC_LOW_REFUSE(low, op, "async.read of wmma fragments from panels of another width");
        return;
    }
    for (int d = 0; d < 2; d++) {
        p.own[d] = tcc_low_digits(low, &r->held->warps, low->vendor->warp(low), d);
        p.most[d] = most_of(&r->held->warps, d);
    }
    for (size_t i = 0; i < n; i++) {
        add_register(r, (int64_t)i * r->registers.in_one, &p);
        parts[i] = tcc_nvvm_wmma_load(l, tile, address(l, r, &p), r->contiguous, r->panels.width / (r->bits / 8));
    }
    tcc_nvvm_wmma_set(l, &op->results[0], n, parts, r->contiguous);
}

/* Determines how the threads of the role hold a tile, and its address in the stage of op's iteration; false, refused,
 * if that is impossible. */
static bool plan(tcc_nvvm_lowering *l, const tcc_op *op, const tcc_type *tile, const tcc_value *buffer,
                 tcc_value *iteration, reading *r)
{
    const tcc_op *alloc = tcc_nvvm_buffer(l, op, buffer);
    if (!alloc || !tcc_low_held(&l->low, op, tile, &r->registers))
        return false;
    r->held = &r->registers.spread;
    r->panels = tcc_panels_of(alloc);
    r->swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0);
    r->bits = tcc_scalar_bits(buffer->type->elem);
    r->contiguous = tcc_nvvm_contiguous(alloc);
    r->stage = tcc_nvvm_stage(l, alloc, iteration);
    return true;
}

void tcc_nvvm_read(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    tcc_scalar elem = op->results[0].type->elem;
    const tcc_attr *at = tcc_attr_list(&op->attrs, "at").list.items;
    const tcc_async_read_operands *o = TCC_VIEW(async_read, op);
    reading r = {.at = {at[0].i, at[1].i}};
    if (!plan(l, op, op->results[0].type, o->buffer, tcc_value_map_get(low->map, o->i), &r))
        return;
    if (tcc_layout_is_opaque(op->results[0].type)) {
        read_opaque(l, op, &r);
        return;
    }
    matrices m;
    bool matrix = tcc_target_can(l->target, TCC_CAN_ldmatrix) && find_matrices(&r, &m);
    if (!matrix && r.bits < 8) {
        TCC_LOW_REFUSE(low, op, "async.read of 4-bit elements that are not words of matrices");
        return;
    }
    place p = matrix ? line_place(l, &r, &m) : own_place(l, &r);
    int64_t step = matrix ? m.registers : neighbours_at_once(&r, &p);
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)r.held->n_registers);
    size_t n = 0;
    for (int64_t i = 0; i < r.held->n_registers; i += step) {
        add_register(&r, i, &p);
        if (matrix)
            n += read_matrices(l, &r, &m, &p, elem, parts + n);
        else
            parts[n++] = TCC_EMIT(&low->b, nvvm_ld_shared, tcc_low_vec(low, elem, step), address(l, &r, &p));
    }
    tcc_low_set_registers(low, &op->results[0], &r.registers, parts);
}

/* ---- back ---------------------------------------------------------------------------------- */

/* Whether no two lanes, or warps, have the same. */
static bool are_different(const tcc_digits *digits)
{
    bool all = true;
    for (unsigned d = 0; d < digits->n; d++)
        all &= digits->of[d].add[0] || digits->of[d].add[1];
    return all;
}

static void store_matrices(tcc_nvvm_lowering *l, const reading *r, const matrices *m, const place *p, tcc_value *v)
{
    tcc_value *words = TCC_EMIT(&l->low.b, vec_bitcast, tcc_low_vec(&l->low, TCC_i32, m->n), v);
    tcc_op *op = TCC_EMIT_V(&l->low.b, nvvm_stmatrix, address(l, r, p), words);
    if (r->contiguous == m->rows)
        tcc_attr_set_int(l->low.ir, &op->attrs, "trans", 1);
}

/* Stores a tile's registers, rounded to this element type. */
static void store_registers(tcc_nvvm_lowering *l, const tcc_op *op, const tcc_value *a, tcc_scalar elem, reading *r)
{
    tcc_lowering *low = &l->low;
    if (tcc_layout_is_opaque(a->type) || r->bits < 8 || !are_different(&r->held->lanes)) {
        TCC_LOW_REFUSE(low, op, "%s of a tile with replicated elements or an opaque layout",
                       tcc_op_info_get(op->code)->name);
        return;
    }
    matrices m;
    bool matrix = r->bits == 16 && tcc_target_can(l->target, TCC_CAN_stmatrix) && find_matrices(r, &m) &&
                  m.registers <= r->registers.in_one;
    place p = matrix ? line_place(l, r, &m) : own_place(l, r);
    int64_t step = matrix ? m.registers : neighbours_at_once(r, &p), in_one = r->registers.in_one;
    tcc_op *guard =
        are_different(&r->held->warps) ? NULL : tcc_low_if(low, tcc_low_holds_first(low, r->held, r->held));
    tcc_value *part = NULL;
    for (int64_t i = 0; i < r->held->n_registers; i += step) {
        if (i % in_one == 0)
            part = tcc_low_cast(low, tcc_low_vec(low, elem, in_one), tcc_low_unpacked(low, a, (size_t)(i / in_one)));
        tcc_value *v = tcc_low_slice(low, part, i % in_one, step);
        add_register(r, i, &p);
        if (matrix)
            store_matrices(l, r, &m, &p, v);
        else
            TCC_EMIT_V(&low->b, nvvm_st_shared, address(l, r, &p), v);
    }
    if (guard)
        tcc_low_end(low, guard);
}

void tcc_nvvm_put_registers(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_async_put_operands *o = TCC_VIEW(async_put, op);
    reading r = {0};
    if (plan(l, op, o->a->type, o->buffer, tcc_value_map_get(l->low.map, o->i), &r))
        store_registers(l, op, o->a, o->a->type->elem, &r);
}

/* Adds a coordinate of which nothing but whole panels, or lines that swizzle alike, is known at run time. */
static bool begin_at(tcc_nvvm_lowering *l, reading *r, int dim, tcc_value *at)
{
    tcc_lowering *low = &l->low;
    if (tcc_value_is_int(at, &r->at[dim]))
        return r->at[dim] >= 0;
    bool along = dim == r->contiguous;
    int64_t unit = along ? r->panels.width * 8 / r->bits : LINES;
    int64_t bytes = along ? r->panels.panel_bytes : unit * r->panels.width;
    tcc_value *units = tcc_low_div(low, tcc_value_map_get(low->map, at), unit);
    r->stage = tcc_low_bin(low, TCC_OP_arith_add, r->stage, tcc_low_mul(low, units, bytes));
    return tcc_is_multiple(at, unit, NULL);
}

void tcc_nvvm_write_columns(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_async_write_operands *o = TCC_VIEW(async_write, op);
    reading r = {0};
    if (!plan(l, op, o->a->type, o->buffer, tcc_low_c32(low, 0), &r))
        return;
    if (!begin_at(l, &r, 0, o->row) || !begin_at(l, &r, 1, o->col))
        TCC_LOW_REFUSE(low, op, "async.write to a row or column that is not the first of a panel or of 8 lines");
    else
        store_registers(l, op, o->a, o->buffer->type->elem, &r);
}

/* nvvm_read: tiles from stages to registers.
 *
 * The place of an element is the thread's own and what its register adds; a stage lies in panels, swizzled as
 * TMA does it (ir/shared.h). 16-bit numbers that a warp holds as ldmatrix gives them are loaded so.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

enum { LINES = 8 }; /* of a panel, after which swizzling begins again */

/* What async.read says: where its part of a stage begins, and where it lies. */
typedef struct reading {
    tcc_panels panels;
    int64_t swizzle, bytes; /* of an element */
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

/* Lines of 8 swizzle alike, and what has no bits in common is exclusive-ored like what is added: then only
 * one number depends on the line. */
static bool is_regular(const reading *r, const place *p)
{
    int64_t along = p->add[r->contiguous] * r->bytes % r->panels.width;
    int64_t low = along & -along;
    return p->add[!r->contiguous] % LINES == 0 &&
           (along == 0 || (p->most[r->contiguous] + 1) * r->bytes <= low);
}

static tcc_value *address(tcc_nvvm_lowering *l, const reading *r, const place *p)
{
    tcc_lowering *low = &l->low;
    const tcc_panels *panels = &r->panels;
    int x = r->contiguous;
    bool regular = is_regular(r, p);
    int64_t line_add = p->add[!x], byte_add = p->add[x] * r->bytes;
    tcc_value *line = tcc_low_add(low, p->own[!x], regular ? 0 : line_add);
    tcc_value *byte = tcc_low_add(low, tcc_low_mul(low, p->own[x], r->bytes), regular ? 0 : byte_add);
    tcc_value *lines = tcc_low_mul(low, line, panels->width);
    tcc_value *panel = tcc_low_mul(low, tcc_low_div(low, byte, panels->width), panels->panel_bytes);
    tcc_value *in_line = tcc_low_rem(low, byte, panels->width);
    if (r->swizzle)
        in_line = tcc_low_bin(low, TCC_OP_arith_xor, in_line,
                              tcc_low_bin(low, TCC_OP_arith_xor, lines,
                                          tcc_nvvm_swizzle(l, lines, r->swizzle)));
    int64_t further = 0;
    if (regular) {
        further = line_add * panels->width + byte_add / panels->width * panels->panel_bytes;
        if (byte_add % panels->width)
            in_line = tcc_low_bin_const(low, TCC_OP_arith_xor, in_line, byte_add % panels->width);
    }
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

enum { MATRIX_REGISTERS = 8, SIDE = 8 }; /* registers of four matrices, two below each other first */

/* Whether eight registers from each multiple of eight on are four matrices of 8 x 8. */
static bool are_matrices(const reading *r)
{
    const tcc_spread *s = r->held;
    if (r->bytes != 2 || s->n_registers % MATRIX_REGISTERS)
        return false;
    for (int64_t lane = 0; lane < TCC_WARP_LANES; lane++)
        if (tcc_digits_place(&s->lanes, lane, 0) != lane / 4 ||
            tcc_digits_place(&s->lanes, lane, 1) != lane % 4 * 2)
            return false;
    for (int64_t i = 0; i < s->n_registers; i++) {
        int64_t first = i / MATRIX_REGISTERS * MATRIX_REGISTERS, in = i % MATRIX_REGISTERS;
        const int64_t places[] = {in / 2 % 2 * SIDE, in / 4 * SIDE + in % 2};
        for (int d = 0; d < 2; d++) {
            int64_t begins = tcc_digits_place(&s->registers, first, d);
            if (tcc_digits_place(&s->registers, i, d) != begins + places[d] ||
                (begins + r->at[d]) % SIDE)
                return false;
        }
    }
    for (int d = 0; d < 2; d++)
        for (int64_t w = 0; w < s->n_warps; w++)
            if (tcc_digits_place(&s->warps, w, d) % SIDE)
                return false;
    return true;
}

/* Lane q gives the address of a line of 16 bytes of matrix q / 8. */
static place line_place(tcc_nvvm_lowering *l, const reading *r)
{
    tcc_lowering *low = &l->low;
    tcc_value *lane = l->low.vendor->lane(low), *line = tcc_low_rem(low, lane, SIDE);
    tcc_value *below = tcc_low_mul(low, tcc_low_rem(low, tcc_low_div(low, lane, SIDE), 2), SIDE);
    tcc_value *beside = tcc_low_mul(low, tcc_low_div(low, lane, 2 * SIDE), SIDE);
    tcc_value *in[] = {below, beside};
    place p = {0};
    in[!r->contiguous] = tcc_low_bin(low, TCC_OP_arith_add, in[!r->contiguous], line);
    for (int d = 0; d < 2; d++) {
        p.own[d] = tcc_low_bin(low, TCC_OP_arith_add, in[d],
                               tcc_low_digits(low, &r->held->warps, l->low.vendor->warp(low), d));
        p.most[d] = most_of(&r->held->warps, d) + 2 * SIDE - 1;
    }
    return p;
}

static tcc_value *read_matrices(tcc_nvvm_lowering *l, const reading *r, const place *p, tcc_scalar elem)
{
    tcc_lowering *low = &l->low;
    tcc_value *words = TCC_EMIT(&low->b, nvvm_ldmatrix, tcc_low_vec(low, TCC_i32, MATRIX_REGISTERS / 2),
                                address(l, r, p));
    if (r->contiguous == 0)
        tcc_attr_set_int(low->ir, &words->def->attrs, "trans", 1);
    return TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, elem, MATRIX_REGISTERS), words);
}

/* ---- elements ------------------------------------------------------------------------------ */

/* Whether each register with an even number and the next are two neighbours in a line, the first of them
 * where accesses of two are aligned. */
static bool are_pairs(const reading *r, const place *own)
{
    const tcc_spread *s = r->held;
    int x = r->contiguous;
    bool pairs = s->n_registers % 2 == 0 && own->most[x] % 2 == 0 && r->at[x] % 2 == 0;
    for (const tcc_digits *d = &s->lanes; d; d = d == &s->lanes ? &s->warps : NULL)
        for (unsigned i = 0; i < d->n; i++)
            pairs &= d->of[i].add[x] % 2 == 0;
    for (int64_t i = 0; i < s->n_registers && pairs; i += 2)
        pairs = tcc_digits_place(&s->registers, i, x) % 2 == 0 &&
                tcc_digits_place(&s->registers, i + 1, x) ==
                    tcc_digits_place(&s->registers, i, x) + 1 &&
                tcc_digits_place(&s->registers, i + 1, !x) == tcc_digits_place(&s->registers, i, !x);
    return pairs;
}

void tcc_nvvm_read(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_async_read_operands *o = TCC_VIEW(async_read, op);
    const tcc_op *alloc = tcc_nvvm_buffer(l, op, o->buffer);
    const tcc_attr *at = tcc_attr_list(&op->attrs, "at").list.items;
    reading r = {.at = {at[0].i, at[1].i}};
    if (!alloc || !tcc_low_held(low, op, op->results[0].type, &r.registers))
        return;
    r.held = &r.registers.spread;
    tcc_scalar elem = o->buffer->type->elem;
    r.panels = tcc_panels_of(alloc);
    r.swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0);
    r.bytes = tcc_scalar_bits(elem) / 8;
    r.contiguous = tcc_attr_int(&alloc->attrs, "contiguous", 1) ? 1 : 0;
    r.stage = tcc_nvvm_stage(l, alloc, tcc_value_map_get(low->map, o->i));
    bool matrices = are_matrices(&r);
    place p = matrices ? line_place(l, &r) : own_place(l, &r);
    int64_t step = matrices ? MATRIX_REGISTERS : are_pairs(&r, &p) ? 2 : 1;
    tcc_value **parts = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)r.held->n_registers);
    size_t n = 0;
    for (int64_t i = 0; i < r.held->n_registers; i += step) {
        add_register(&r, i, &p);
        parts[n++] = matrices ? read_matrices(l, &r, &p, elem)
                              : TCC_EMIT(&low->b, nvvm_ld_shared, tcc_low_vec(low, elem, step),
                                         address(l, &r, &p));
    }
    tcc_low_set_registers(low, &op->results[0], &r.registers, parts);
}

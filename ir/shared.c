/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/shared.h"

#include "ir/machine.h"

enum {
    ROW_BYTES = 16, /* of a panel that is not swizzled */
    UNIT = 1024     /* in which TMA and matrix instructions see a 128-byte swizzle */
};

int64_t tcc_stage_bytes(int64_t bytes)
{
    return (bytes + UNIT - 1) / UNIT * UNIT;
}

int64_t tcc_panel_width(const tcc_attrs *attrs)
{
    int64_t swizzle = tcc_attr_int(attrs, "swizzle", 0);
    return tcc_attr_int(attrs, "panel", swizzle ? swizzle : ROW_BYTES);
}

tcc_panels tcc_panels_of(const tcc_op *op)
{
    const tcc_type *t = op->results[0].type;
    const tcc_dim *dims = t->kind == TCC_KIND_smem ? t->dims + 1 : t->dims; /* of a stage */
    const tcc_attrs *attrs = &op->attrs;
    unsigned contiguous = tcc_attr_int(attrs, "contiguous", 1) ? 1 : 0;
    tcc_panels p = {.rows = dims[!contiguous].size};
    p.width = tcc_panel_width(attrs);
    p.panel_bytes = p.rows * p.width + tcc_attr_int(attrs, "pad", 0);
    p.n = dims[contiguous].size * tcc_scalar_bits(t->elem) / 8 / p.width;
    p.stage_bytes = p.n * p.panel_bytes;
    if (!tcc_attr_find(attrs, "panel"))
        p.stage_bytes = tcc_stage_bytes(p.stage_bytes);
    return p;
}

/* Columns that fill whole units of this many bytes. */
static int64_t fill_units(int64_t cols, unsigned bits, int64_t bytes)
{
    int64_t unit = bytes * 8 / bits;
    return (cols + unit - 1) / unit * unit;
}

int64_t tcc_whole_columns(int64_t cols, unsigned bits)
{
    return fill_units(cols, bits, ROW_BYTES);
}

int64_t tcc_exchange_columns(int64_t cols, unsigned bits, bool opaque)
{
    enum { APART = 8, OPAQUE_BYTES = 32 /* of which rows of fragments that are opaque are multiples */ };
    return opaque ? fill_units(cols + OPAQUE_BYTES * 8 / bits, bits, OPAQUE_BYTES)
                  : tcc_whole_columns(cols + APART, bits);
}

int64_t tcc_exchange_bytes(int64_t rows, int64_t columns, unsigned bits)
{
    return tcc_stage_bytes(rows * columns * bits / 8);
}

int64_t tcc_ring_bytes(int64_t stages)
{
    return stages * 2 * TCC_MBARRIER_BYTES; /* full and empty */
}

bool tcc_is_of_turns(const tcc_op *ring)
{
    return tcc_attr_is(&ring->attrs, "completion", "turns");
}

bool tcc_is_of_groups(const tcc_op *ring)
{
    return tcc_attr_is(&ring->attrs, "completion", "group");
}

bool tcc_has_mbarriers(const tcc_op *ring)
{
    return !tcc_attr_is(&ring->attrs, "completion", "barrier") && !tcc_is_of_groups(ring);
}

static bool reads_word(const tcc_op *op)
{
    return op->code == TCC_OP_async_read_word;
}

bool tcc_is_of_words(const tcc_op *ring)
{
    bool words = false;
    for (const tcc_use *u = ring->results[0].uses; u; u = u->next)
        words |= u->op->code == TCC_OP_async_put_word || reads_word(u->op);
    return words;
}

tcc_readers tcc_readers_of(const tcc_op *ring)
{
    tcc_readers readers = {0};
    for (const tcc_op *role = ring->next; role; role = role->next) {
        const tcc_op *reads = NULL;
        for (const tcc_use *u = ring->results[0].uses; u && role->code == TCC_OP_async_role; u = u->next)
            if (reads_word(u->op) && tcc_ancestor_in(u->op, ring->block) == role)
                reads = u->op;
        if (!reads)
            continue;
        bool one = false;
        for (const tcc_op *op = reads; op != role; op = op->block->parent)
            one |= op->code == TCC_OP_async_one;
        readers.roles++;
        readers.arrivals += one ? 1 : tcc_attr_int(&role->attrs, "warps", 0);
    }
    return readers;
}

int64_t tcc_shared_bytes(const tcc_op *op)
{
    if (op->code == TCC_OP_async_alloc)
        return op->results[0].type->dims[0].size * tcc_panels_of(op).stage_bytes;
    if (op->code == TCC_OP_async_ring && tcc_has_mbarriers(op))
        return tcc_ring_bytes(tcc_attr_int(&op->attrs, "stages", 0));
    return 0;
}

int64_t tcc_shared_end(const tcc_func *f)
{
    int64_t end = 0;
    for (const tcc_op *op = f->body->first; op; op = tcc_walk_next((tcc_op *)op, f->body)) {
        int64_t last = tcc_shared_bytes(op) + tcc_attr_int(&op->attrs, "offset", 0);
        if (tcc_shared_bytes(op) && last > end)
            end = last;
    }
    return end;
}

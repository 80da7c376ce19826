/* nvvm_mma: matrix descriptors and wgmma.
 *
 * A consumer warpgroup computes m / warpgroups rows of the tile in blocks of 64 rows and instr-n
 * columns. A thread's accumulators are one vec: block after block (rows outer, columns inner),
 * and within a block, for each 8 columns j, row half h and neighbour e, element j * 4 + h * 2 + e:
 * row warp * 16 + lane / 4 + 8 h, column 8 j + lane % 4 * 2 + e
 * (PTX ISA, "Register Fragments for wgmma.mma_async.m64nNk16", matrix D).
 *
 * Descriptors: PTX ISA, "Matrix Descriptor Format" and "Strides". In a panel (nvvm.h), 8 rows of
 * the stage make a unit. The stride offset leads from unit to unit. The leading offset leads from
 * panel to panel where an instruction reads more than one: along m or n when that is the
 * contiguous dimension, along k without swizzle. Without swizzle and along m or n the two
 * trade places.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

enum {
    INSTR_M = 64,
    UNIT_ROWS = 8,
    ADDRESS_BITS = 0x3FFFF, /* of shared memory */
    ADDRESS_SHIFT = 4,      /* descriptors hold 16-byte units */
    LEADING_BIT = 16,
    STRIDE_BIT = 32,
    SWIZZLE_BIT = 62,
};

/* How one operand of a product lies in its buffer, k_dim being the summed tile dimension. */
typedef struct operand {
    const tcc_buffer *buf;
    bool k_contiguous;
} operand;

static operand operand_of(const tcc_nvvm_lowering *l, const tcc_value *alloc, int k_dim)
{
    const tcc_buffer *buf = tcc_nvvm_buffer(l, alloc);
    return (operand){buf, buf->contiguous == k_dim};
}

static int64_t swizzle_code(int64_t swizzle)
{
    return swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
}

/* Everything of a descriptor but the address. */
static int64_t descriptor_layout(operand o)
{
    int64_t unit = UNIT_ROWS * o.buf->width, panel = o.buf->panel_bytes;
    bool trade = !o.k_contiguous && !o.buf->swizzle;
    int64_t leading = trade ? unit : panel, stride = trade ? panel : unit;
    /* Swizzled and k-contiguous, an instruction's k stays inside one panel: not read. */
    if (o.k_contiguous && o.buf->swizzle)
        leading = 1 << ADDRESS_SHIFT;
    return (int64_t)((uint64_t)swizzle_code(o.buf->swizzle) << SWIZZLE_BIT) |
           stride >> ADDRESS_SHIFT << STRIDE_BIT | leading >> ADDRESS_SHIFT << LEADING_BIT;
}

/* Byte offset in the stage of row or column x (along m or n) and depth k, before swizzling. */
static int64_t offset_of(operand o, int64_t x, int64_t k)
{
    const tcc_buffer *buf = o.buf;
    int64_t row = o.k_contiguous ? x : k, byte = (o.k_contiguous ? k : x) * buf->elem_bytes;
    return byte / buf->width * buf->panel_bytes + row * buf->width + byte % buf->width;
}

/* The descriptor of the stage, `skip` bytes in. */
static tcc_value *descriptor(tcc_nvvm_lowering *l, operand o, tcc_value *stage, tcc_value *skip)
{
    tcc_value *a = skip ? tcc_low_bin(&l->low, TCC_OP_arith_add, stage, skip) : stage;
    a = tcc_low_bin(&l->low, TCC_OP_arith_and, a, tcc_low_c32(&l->low, ADDRESS_BITS));
    a = tcc_low_bin(&l->low, TCC_OP_arith_shr, a, tcc_low_c32(&l->low, ADDRESS_SHIFT));
    a = tcc_low_cast(&l->low, l->low.i64, a);
    return tcc_low_bin(&l->low, TCC_OP_arith_or, a,
                       tcc_build_int(&l->low.b, l->low.i64, descriptor_layout(o)));
}

static tcc_value *advance(tcc_nvvm_lowering *l, tcc_value *desc, int64_t bytes)
{
    return bytes ? tcc_low_bin(&l->low, TCC_OP_arith_add, desc,
                               tcc_build_int(&l->low.b, l->low.i64, bytes >> ADDRESS_SHIFT))
                 : desc;
}

const tcc_type *tcc_nvvm_accumulator_type(tcc_nvvm_lowering *l)
{
    return tcc_type_sized(l->low.ir, TCC_KIND_vec, TCC_f32, 1,
                          (int64_t[]){tcc_schedule_accumulators(&l->low.s)});
}

enum { MAX_BLOCKS = 8, MAX_STEPS = 16 };

void tcc_nvvm_mma(tcc_nvvm_lowering *l, const tcc_op *op)
{
    const tcc_async_mma_operands *mma = TCC_VIEW(async_mma, op);
    tcc_attr instr = tcc_attr_list(&op->attrs, "instr");
    int64_t n = instr.list.items[1].i, k = instr.list.items[2].i;
    int64_t rows = l->low.s.m / l->low.s.warpgroups, mi = rows / INSTR_M, ni = l->low.s.n / n;
    int64_t steps = l->low.s.k / k;
    operand a = operand_of(l, mma->a, 1), b = operand_of(l, mma->b, 0);
    tcc_value *i = tcc_value_map_get(l->low.map, mma->i);
    tcc_value *acc = tcc_value_map_get(l->low.map, mma->c);

    /* The warpgroup's first row. Rows are cut at whole units and panels, so skipping is adding. */
    tcc_value *wg = tcc_low_div(&l->low, l->warp, 4);
    tcc_value *skip =
        l->low.s.warpgroups > 1 ? tcc_low_mul(&l->low, wg, offset_of(a, rows, 0)) : NULL;
    tcc_value *desc_a = descriptor(l, a, tcc_nvvm_stage(l, a.buf, i), skip);
    tcc_value *desc_b = descriptor(l, b, tcc_nvvm_stage(l, b.buf, i), NULL);
    tcc_value *always = tcc_build_int(&l->low.b, l->low.i1, 1);

    /* Everything that wgmma reads comes first, so that the instructions stand together and
     * become one inline assembly. */
    const tcc_type *block_type =
        tcc_type_sized(l->low.ir, TCC_KIND_vec, TCC_f32, 1, (int64_t[]){n / 2});
    tcc_value *blocks[MAX_BLOCKS], *da[MAX_BLOCKS][MAX_STEPS], *db[MAX_BLOCKS][MAX_STEPS];
    for (int64_t x = 0; x < mi * ni; x++) {
        blocks[x] = TCC_EMIT(&l->low.b, vec_slice, block_type, acc);
        tcc_attr_set_int(l->low.ir, &blocks[x]->def->attrs, "offset", x * n / 2);
    }
    for (int64_t s = 0; s < steps; s++) {
        for (int64_t x = 0; x < mi; x++)
            da[x][s] = advance(l, desc_a, offset_of(a, x * INSTR_M, s * k));
        for (int64_t x = 0; x < ni; x++)
            db[x][s] = advance(l, desc_b, offset_of(b, x * n, s * k));
    }
    TCC_EMIT_V(&l->low.b, nvvm_wgmma_fence, NULL);
    for (int64_t s = 0; s < steps; s++)
        for (int64_t x = 0; x < mi * ni; x++) {
            tcc_value *r = TCC_EMIT(&l->low.b, nvvm_wgmma, block_type, blocks[x], da[x / ni][s],
                                    db[x % ni][s], always);
            tcc_attrs *attrs = &r->def->attrs;
            tcc_attr_set_int(l->low.ir, attrs, "n", n);
            tcc_attr_set_str(l->low.ir, attrs, "type", tcc_scalar_name(mma->a->type->elem));
            tcc_attr_set_int(l->low.ir, attrs, "trans_a", !a.k_contiguous);
            tcc_attr_set_int(l->low.ir, attrs, "trans_b", !b.k_contiguous);
            blocks[x] = r;
        }
    TCC_EMIT_V(&l->low.b, nvvm_wgmma_commit, NULL);
    const tcc_type *type = tcc_nvvm_accumulator_type(l);
    tcc_op *pack = tcc_op_create(&l->low.b, TCC_OP_vec_pack, (size_t)(mi * ni), blocks, 1, &type);
    tcc_value_map_set(l->low.map, &op->results[0], &pack->results[0]);
}

void tcc_nvvm_mma_wait(tcc_nvvm_lowering *l, const tcc_op *op)
{
    int64_t pending = tcc_attr_int(&op->attrs, "pending", 0);
    tcc_value *acc = tcc_value_map_get(l->low.map, TCC_VIEW(async_mma_wait, op)->c);
    bool read = pending == 0; /* then nothing may read the accumulators before this */
    tcc_op *wait = tcc_op_create(&l->low.b, TCC_OP_nvvm_wgmma_wait, read, &acc, read, &acc->type);
    tcc_attr_set_int(l->low.ir, &wait->attrs, "pending", pending);
    tcc_value_map_set(l->low.map, &op->results[0], read ? &wait->results[0] : acc);
}

/* nvvm_mma: matrix descriptors and wgmma.
 *
 * The warpgroups of a role take blocks of 64 rows of the tile in turn, and of each blocks of instr-n
 * columns. What a thread holds: nvvm.h, tcc_held.
 *
 * Descriptors: PTX ISA, "Matrix Descriptor Format" and "Strides". In a panel (ir/shared.h), 8 rows of
 * the stage make a unit. The stride offset leads from unit to unit. The leading offset leads from
 * panel to panel where an instruction reads more than one: along m or n when that is the
 * contiguous dimension, along k without swizzle. Without swizzle and along m or n the two
 * trade places.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/target.h"
#include "passes/nvvm.h"

enum {
    UNIT_ROWS = 8,
    ADDRESS_BITS = 0x3FFFF, /* of shared memory */
    ADDRESS_SHIFT = 4,      /* descriptors hold 16-byte units */
    LEADING_BIT = 16,
    STRIDE_BIT = 32,
    SWIZZLE_BIT = 62,
};

/* How one operand of an MMA lies in its buffer, k_dim being the summed tile dimension. */
typedef struct operand {
    const tcc_op *alloc;
    tcc_panels panels;
    int64_t swizzle, elem_bytes;
    bool k_contiguous;
} operand;

static bool find_operand(tcc_nvvm_lowering *l, const tcc_op *user, const tcc_value *buffer,
                         int k_dim, operand *o)
{
    const tcc_op *alloc = tcc_nvvm_buffer(l, user, buffer);
    if (alloc)
        *o = (operand){.alloc = alloc,
                       .panels = tcc_panels_of(alloc),
                       .swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0),
                       .elem_bytes = tcc_scalar_bits(buffer->type->elem) / 8,
                       .k_contiguous = tcc_attr_int(&alloc->attrs, "contiguous", 1) == k_dim};
    return alloc;
}

static int64_t swizzle_code(int64_t swizzle)
{
    return swizzle == 128 ? 1 : swizzle == 64 ? 2 : swizzle == 32 ? 3 : 0;
}

/* Everything of a descriptor but the address. */
static int64_t descriptor_layout(const operand *o)
{
    int64_t unit = UNIT_ROWS * o->panels.width, panel = o->panels.panel_bytes;
    bool trade = !o->k_contiguous && !o->swizzle;
    int64_t leading = trade ? unit : panel, stride = trade ? panel : unit;
    /* Swizzled and k-contiguous, an instruction's k stays inside one panel: not read. */
    if (o->k_contiguous && o->swizzle)
        leading = 1 << ADDRESS_SHIFT;
    return (int64_t)((uint64_t)swizzle_code(o->swizzle) << SWIZZLE_BIT) |
           stride >> ADDRESS_SHIFT << STRIDE_BIT | leading >> ADDRESS_SHIFT << LEADING_BIT;
}

/* Byte offset in the stage of row or column x (along m or n) and depth k, before swizzling. */
static int64_t offset_of(const operand *o, int64_t x, int64_t k)
{
    const tcc_panels *p = &o->panels;
    int64_t row = o->k_contiguous ? x : k, byte = (o->k_contiguous ? k : x) * o->elem_bytes;
    return byte / p->width * p->panel_bytes + row * p->width + byte % p->width;
}

/* Whether parts of so many rows or columns, and so deep, begin where a descriptor can: at whole units
 * of rows and, unless along k, at panels. */
static bool can_address(const operand *o, int64_t part, int64_t k)
{
    const tcc_panels *p = &o->panels;
    if (o->k_contiguous)
        return part % UNIT_ROWS == 0 && p->rows % UNIT_ROWS == 0 &&
               (!o->swizzle || p->width % (k * o->elem_bytes) == 0);
    return part * o->elem_bytes % p->width == 0 && k % UNIT_ROWS == 0 && p->rows % UNIT_ROWS == 0;
}

/* The descriptor of the stage, `skip` bytes in. */
static tcc_value *descriptor(tcc_nvvm_lowering *l, const operand *o, tcc_value *stage, tcc_value *skip)
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

/* Why wgmma does not compute this; NULL when it does. */
static const char *why_not_wgmma(tcc_nvvm_lowering *l, const tcc_op *op, const operand *a,
                                 const operand *b)
{
    const tcc_async_mma_operands *mma = TCC_VIEW(async_mma, op);
    const tcc_attr *instr = tcc_attr_list(&op->attrs, "instr").list.items;
    const tcc_mma *row = tcc_mma_find(tcc_target_of(l->low.ir), mma->a->type->elem, mma->c->type->elem);
    if (!row || mma->a->type->elem != mma->b->type->elem)
        return "of these element types";
    if (instr[0].i != row->m || instr[2].i != row->k || instr[1].i > row->n_max ||
        instr[1].i % row->n_step)
        return "by an instruction of this shape";
    if (!can_address(a, row->m, row->k) || !can_address(b, instr[1].i, row->k))
        return "of operands that lie so in shared memory";
    return NULL;
}

void tcc_nvvm_mma(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_async_mma_operands *mma = TCC_VIEW(async_mma, op);
    tcc_lowering *low = &l->low;
    operand a, b;
    tcc_held held;
    if (!find_operand(l, op, mma->a, 1, &a) || !find_operand(l, op, mma->b, 0, &b) ||
        !tcc_nvvm_held(l, op, mma->c->type, &held))
        return;
    const char *why = why_not_wgmma(l, op, &a, &b);
    if (why) {
        TCC_LOW_REFUSE(low, op, "async.mma %s", why);
        return;
    }
    const tcc_attr *instr = tcc_attr_list(&op->attrs, "instr").list.items;
    int64_t n = instr[1].i, k = instr[2].i, rows = tcc_nvvm_block_rows(l);
    int64_t mi = held.blocks, ni = mma->c->type->dims[1].size / n;
    int64_t steps = mma->a->type->dims[2].size / k, blocks = mi * ni;
    tcc_value *i = tcc_value_map_get(low->map, mma->i);
    tcc_value *acc = tcc_value_map_get(low->map, mma->c);

    /* The warpgroup's first row. Rows are cut at whole units and panels, so skipping is adding. */
    tcc_value *wg = tcc_nvvm_warpgroup(l);
    tcc_value *skip = l->role.warps > TCC_WARPGROUP_WARPS
                          ? tcc_low_mul(low, wg, offset_of(&a, TCC_WGMMA_ROWS, 0))
                          : NULL;
    tcc_value *desc_a = descriptor(l, &a, tcc_nvvm_stage(l, a.alloc, i), skip);
    tcc_value *desc_b = descriptor(l, &b, tcc_nvvm_stage(l, b.alloc, i), NULL);
    tcc_value *always = tcc_build_int(&low->b, low->i1, 1);

    /* Everything that wgmma reads comes first, so that the instructions stand together and
     * become one inline assembly. */
    const tcc_type *block_type = tcc_low_vec(low, acc->type->elem, n / 2);
    tcc_arena *scratch = low->ctx->scratch;
    tcc_value **part = TCC_NEW_ARRAY(scratch, tcc_value *, (size_t)blocks);
    tcc_value **da = TCC_NEW_ARRAY(scratch, tcc_value *, (size_t)(mi * steps));
    tcc_value **db = TCC_NEW_ARRAY(scratch, tcc_value *, (size_t)(ni * steps));
    for (int64_t x = 0; x < blocks; x++) {
        part[x] = TCC_EMIT(&low->b, vec_slice, block_type, acc);
        tcc_attr_set_int(low->ir, &part[x]->def->attrs, "offset", x * n / 2);
    }
    for (int64_t s = 0; s < steps; s++) {
        for (int64_t x = 0; x < mi; x++)
            da[s * mi + x] = advance(l, desc_a, offset_of(&a, x * rows, s * k));
        for (int64_t x = 0; x < ni; x++)
            db[s * ni + x] = advance(l, desc_b, offset_of(&b, x * n, s * k));
    }
    TCC_EMIT_V(&low->b, nvvm_wgmma_fence, NULL);
    for (int64_t s = 0; s < steps; s++)
        for (int64_t x = 0; x < blocks; x++) {
            part[x] = TCC_EMIT(&low->b, nvvm_wgmma, block_type, part[x], da[s * mi + x / ni],
                               db[s * ni + x % ni], always);
            tcc_attrs *attrs = &part[x]->def->attrs;
            tcc_attr_set_int(low->ir, attrs, "n", n);
            tcc_attr_set_str(low->ir, attrs, "type", tcc_scalar_name(mma->a->type->elem));
            tcc_attr_set_int(low->ir, attrs, "trans_a", !a.k_contiguous);
            tcc_attr_set_int(low->ir, attrs, "trans_b", !b.k_contiguous);
        }
    TCC_EMIT_V(&low->b, nvvm_wgmma_commit, NULL);
    tcc_value *r = tcc_low_pack(low, acc->type->elem, (size_t)blocks, part, held.n);
    tcc_value_map_set(low->map, &op->results[0], r);
}

void tcc_nvvm_mma_wait(tcc_nvvm_lowering *l, tcc_op *op)
{
    const int64_t most = 7; /* that wgmma.wait_group takes */
    int64_t pending = tcc_attr_int(&op->attrs, "pending", 0);
    if (pending > most) {
        TCC_LOW_REFUSE(&l->low, op, "async.mma_wait for more than %lld MMAs", (long long)most);
        return;
    }
    tcc_value *acc = tcc_value_map_get(l->low.map, TCC_VIEW(async_mma_wait, op)->c);
    bool read = pending == 0; /* then nothing may read the accumulators before this */
    tcc_op *wait = tcc_op_create(&l->low.b, TCC_OP_nvvm_wgmma_wait, read, &acc, read, &acc->type);
    tcc_attr_set_int(l->low.ir, &wait->attrs, "pending", pending);
    tcc_value_map_set(l->low.map, &op->results[0], read ? &wait->results[0] : acc);
}

/* nvvm_mma: matrix descriptors and wgmma.
 *
 * The warpgroups of a role take blocks of 64 rows of the tile in turn, and of each blocks of instr-n
 * columns.
 *
 * Descriptors: PTX ISA, "Matrix Descriptor Format" and "Strides". In a panel (ir/shared.h), 8 rows of
 * the stage make a unit. The stride offset leads from unit to unit. The leading offset leads from
 * panel to panel where an instruction reads more than one: along m or n when that is the
 * contiguous dimension, along k without swizzle. Without swizzle and along m or n the two
 * trade places.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

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

/* The layout of one operand of an MMA in its buffer; k_dim is the summed tile dimension. */
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

/* Whether parts of this many rows or columns, and this depth, begin where a descriptor can: at whole
 * units of rows and, unless along k, at panels. */
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
    const tcc_mma *row =
        tcc_mma_find(tcc_target_of(l->low.ir), mma->a->type->elem, mma->b->type->elem, mma->c->type->elem);
    if (!row || (!a->alloc && tcc_scalar_bits(row->a) != 16))
        return "of these element types";
    if (instr[0].i != row->m || instr[2].i != row->k || instr[1].i > row->n_max ||
        instr[1].i % row->n_step)
        return "by an instruction of this shape";
    bool across = (a->alloc && !a->k_contiguous) || !b->k_contiguous;
    if ((across && !row->across) || (a->alloc && !can_address(a, row->m, row->k)) ||
        !can_address(b, instr[1].i, row->k))
        return "of operands with this layout in shared memory";
    return NULL;
}

/* The operands and results of an MMA's instructions, for row blocks mi, column blocks ni, steps of
 * k. */
typedef struct multiplication {
    const tcc_op *op;
    operand a, b; /* a.alloc NULL: in registers */
    int64_t n, k, mi, ni, steps;
    tcc_value **acc;      /* of each block */
    tcc_value **da, **db; /* descriptors, or registers of A, of each step */
    tcc_value *adds, *always; /* whether the first step adds to acc; all others do */
} multiplication;

/* Where A is: the rows of the warpgroup's blocks. Rows are cut at whole units and panels, so skipping is
 * adding. */
static void describe_a(tcc_nvvm_lowering *l, multiplication *m, tcc_value *i)
{
    tcc_lowering *low = &l->low;
    tcc_value *wg = tcc_nvvm_warpgroup(l);
    tcc_value *skip = l->role.warps > TCC_WARPGROUP_WARPS
                          ? tcc_low_mul(low, wg, offset_of(&m->a, TCC_WGMMA_ROWS, 0))
                          : NULL;
    m->da[0] = descriptor(l, &m->a, tcc_nvvm_stage(l, m->a.alloc, i), skip);
}

/* The registers of A, packed in pairs. */
static void take_a(tcc_nvvm_lowering *l, multiplication *m)
{
    tcc_lowering *low = &l->low;
    tcc_value *a = tcc_low_parts(low, m->op->operands[2])->values[0];
    for (int64_t s = 0; s < m->steps; s++)
        for (int64_t x = 0; x < m->mi; x++) {
            tcc_value *part = tcc_low_slice(low, a, (x * m->steps + s) * 8, 8);
            m->da[s * m->mi + x] =
                TCC_EMIT(&low->b, vec_bitcast, tcc_low_vec(low, TCC_i32, 4), part);
        }
}

/* Starts them all, one after the other: then they become one inline assembly. */
static void start(tcc_nvvm_lowering *l, const multiplication *m)
{
    tcc_lowering *low = &l->low;
    const tcc_async_mma_operands *o = TCC_VIEW(async_mma, m->op);
    const char *type = tcc_scalar_name(o->a->type->elem), *type_b = tcc_scalar_name(o->b->type->elem);
    TCC_EMIT_V(&low->b, nvvm_wgmma_fence, NULL);
    for (int64_t s = 0; s < m->steps; s++)
        for (int64_t x = 0; x < m->mi * m->ni; x++) {
            tcc_value *operands[] = {m->acc[x], m->da[s * m->mi + x / m->ni],
                                     m->db[s * m->ni + x % m->ni], s ? m->always : m->adds};
            tcc_op *op = tcc_op_create(&low->b, m->a.alloc ? TCC_OP_nvvm_wgmma : TCC_OP_nvvm_wgmma_a,
                                       4, operands, 1, &m->acc[x]->type);
            tcc_attr_set_int(low->ir, &op->attrs, "n", m->n);
            tcc_attr_set_str(low->ir, &op->attrs, "type", type);
            if (strcmp(type, type_b))
                tcc_attr_set_str(low->ir, &op->attrs, "type_b", type_b);
            if (m->a.alloc)
                tcc_attr_set_int(low->ir, &op->attrs, "trans_a", !m->a.k_contiguous);
            tcc_attr_set_int(low->ir, &op->attrs, "trans_b", !m->b.k_contiguous);
            m->acc[x] = &op->results[0];
        }
    TCC_EMIT_V(&low->b, nvvm_wgmma_commit, NULL);
}

void tcc_nvvm_mma(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_async_mma_operands *mma = TCC_VIEW(async_mma, op);
    tcc_lowering *low = &l->low;
    multiplication m = {.op = op};
    bool in_registers = mma->a->type->kind == TCC_KIND_tile;
    tcc_held held, of_a;
    if ((in_registers ? !tcc_low_held(low, op, mma->a->type, &of_a)
                      : !find_operand(l, op, mma->a, 1, &m.a)) ||
        !find_operand(l, op, mma->b, 0, &m.b) || !tcc_low_held(low, op, mma->c->type, &held))
        return;
    if (mma->c->type != tcc_hold_by_warpgroups(low->ir, mma->c->type, l->role.op, TCC_AS_RESULT) ||
        (in_registers &&
         mma->a->type != tcc_hold_by_warpgroups(low->ir, mma->a->type, l->role.op, TCC_AS_A))) {
        TCC_LOW_REFUSE(low, op, "async.mma of tiles without wgmma's layout");
        return;
    }
    const char *why = why_not_wgmma(l, op, &m.a, &m.b);
    if (why) {
        TCC_LOW_REFUSE(low, op, "async.mma %s", why);
        return;
    }
    const tcc_attr *instr = tcc_attr_list(&op->attrs, "instr").list.items;
    m.n = instr[1].i;
    m.k = instr[2].i;
    int64_t rows = l->role.warps / TCC_WARPGROUP_WARPS * TCC_WGMMA_ROWS;
    m.mi = mma->c->type->dims[0].size / rows;
    m.ni = mma->c->type->dims[1].size / m.n;
    m.steps = mma->b->type->dims[1].size / m.k;
    int64_t blocks = m.mi * m.ni;
    tcc_arena *scratch = low->ctx->scratch;
    m.acc = TCC_NEW_ARRAY(scratch, tcc_value *, (size_t)blocks);
    m.da = TCC_NEW_ARRAY(scratch, tcc_value *, (size_t)(m.mi * m.steps));
    m.db = TCC_NEW_ARRAY(scratch, tcc_value *, (size_t)(m.ni * m.steps));
    tcc_value *i = tcc_value_map_get(low->map, mma->i);
    tcc_value *i_of_a = op->n_operands >= 7 ? tcc_value_map_get(low->map, op->operands[6]) : i;
    tcc_value *acc = tcc_low_parts(low, mma->c)->values[0];

    /* Everything that wgmma reads comes first. */
    if (!in_registers)
        describe_a(l, &m, i_of_a);
    tcc_value *desc_a = m.da[0];
    tcc_value *desc_b = descriptor(l, &m.b, tcc_nvvm_stage(l, m.b.alloc, i), NULL);
    tcc_value *adds = tcc_mma_accumulate(op);
    m.always = tcc_build_int(&low->b, low->i1, 1);
    m.adds = adds ? tcc_value_map_get(low->map, adds) : m.always;
    const tcc_type *block_type = tcc_low_vec(low, acc->type->elem, m.n / 2);
    for (int64_t x = 0; x < blocks; x++) {
        m.acc[x] = TCC_EMIT(&low->b, vec_slice, block_type, acc);
        tcc_attr_set_int(low->ir, &m.acc[x]->def->attrs, "offset", x * m.n / 2);
    }
    if (in_registers)
        take_a(l, &m);
    for (int64_t s = 0; s < m.steps; s++) {
        for (int64_t x = 0; x < m.mi && !in_registers; x++)
            m.da[s * m.mi + x] = advance(l, desc_a, offset_of(&m.a, x * rows, s * m.k));
        for (int64_t x = 0; x < m.ni; x++)
            m.db[s * m.ni + x] = advance(l, desc_b, offset_of(&m.b, x * m.n, s * m.k));
    }
    start(l, &m);
    tcc_value *r = tcc_low_pack(low, acc->type->elem, (size_t)blocks, m.acc, held.in_one);
    tcc_low_set(low, &op->results[0], 1, &r);
    TCC_PUSH(scratch, &l->started,
             ((tcc_started){.result = &op->results[0],
                            .block = low->b.block,
                            .n_words = in_registers ? (size_t)(m.mi * m.steps) : 0,
                            .words = m.da}));
}

/* Those that end pass their accumulators through, if c is of them or of those that an earlier wait has ended, and the
 * registers of A: nothing reads the former before, nor takes the place of the latter. */
void tcc_nvvm_mma_wait(tcc_nvvm_lowering *l, tcc_op *op)
{
    const int64_t most = 7; /* that a wait may leave pending: further ones are waited for as well */
    tcc_lowering *low = &l->low;
    const tcc_value *c = TCC_VIEW(async_mma_wait, op)->c;
    int64_t pending = tcc_attr_int(&op->attrs, "pending", 0);
    pending = pending < most ? pending : most;
    tcc_value *acc = tcc_low_parts(low, c)->values[0];
    TCC_VEC(tcc_value *) passed = {0};
    size_t n = l->started.len, left = n < (size_t)pending ? n : (size_t)pending;
    bool ends = pending == 0 || (c->def && c->def->code == TCC_OP_async_mma);
    for (size_t i = n - left; i < n; i++)
        ends &= l->started.data[i].result != c;
    if (ends)
        TCC_PUSH(low->ctx->scratch, &passed, acc);
    for (size_t i = 0; i < n - left; i++)
        for (size_t w = 0; w < l->started.data[i].n_words; w++)
            TCC_PUSH(low->ctx->scratch, &passed, l->started.data[i].words[w]);
    for (size_t i = 0; i < left; i++)
        l->started.data[i] = l->started.data[n - left + i];
    l->started.len = left;
    const tcc_type **types = TCC_NEW_ARRAY(low->ir->arena, const tcc_type *, passed.len);
    for (size_t i = 0; i < passed.len; i++)
        types[i] = passed.data[i]->type;
    tcc_op *wait =
        tcc_op_create(&low->b, TCC_OP_nvvm_wgmma_wait, passed.len, passed.data, passed.len, types);
    tcc_attr_set_int(low->ir, &wait->attrs, "pending", pending);
    tcc_low_set(low, &op->results[0], 1, ends ? (tcc_value *[]){&wait->results[0]} : &acc);
}

void tcc_nvvm_end_block(tcc_nvvm_lowering *l)
{
    size_t left = 0;
    for (size_t i = 0; i < l->started.len; i++) {
        tcc_started s = l->started.data[i];
        if (s.block != l->low.b.block)
            l->started.data[left++] = s;
        else if (s.n_words)
            TCC_LOW_REFUSE(&l->low, s.result->def,
                           "an MMA with A in registers that is pending at the end of its block");
    }
    l->started.len = left;
}

/* nvvm_elements: copies of elements into shared memory by threads.
 *
 * For any address and any strides, with zeros where the tensor ends. Each row of the stage is taken by as many
 * neighbouring threads as the power of two that covers it, and all threads together take `rows_at_once` rows, IN_FLIGHT
 * times before the first store. Elements of less than a byte are put together.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

enum { IN_FLIGHT = 8 };

typedef struct element_copy {
    tcc_panels panels;
    int64_t swizzle, row_units, unit_bytes, per; /* units: of an element, or of `per` in a byte */
    int64_t lanes, rows_at_once, rounds, in_flight;
    tcc_value *x, *row;      /* of the thread: its unit in a row, its first row */
    tcc_value *base, *stage; /* address of the tensor, of the stage */
    tcc_value *offset;       /* i64, of the thread's first element */
    tcc_value *stride, *next; /* i64, from row to row, from element to element */
    tcc_value *inside[2];     /* whether elements of the thread's unit are in the tensor */
    tcc_value *rows_inside;   /* i32, rows of the tensor from here on */
} element_copy;

tcc_value *tcc_nvvm_thread(tcc_nvvm_lowering *l)
{
    tcc_value *first = tcc_low_c32(&l->low, l->role.first_warp * TCC_WARP_LANES);
    return tcc_low_bin(&l->low, TCC_OP_arith_sub, l->tid, first);
}

static void plan_threads(tcc_nvvm_lowering *l, element_copy *c)
{
    int64_t rows = c->panels.rows;
    c->rows_at_once = tcc_nvvm_threads(l) / c->lanes;
    c->rounds = (rows + c->rows_at_once - 1) / c->rows_at_once;
    for (c->in_flight = IN_FLIGHT; c->rounds % c->in_flight;)
        c->in_flight--;
    tcc_value *t = tcc_nvvm_thread(l);
    c->x = tcc_low_rem(&l->low, t, c->lanes);
    c->row = tcc_low_div(&l->low, t, c->lanes);
}

static int64_t elements_of_unit(tcc_scalar elem)
{
    enum { BYTE_BITS = 8 };
    int64_t bits = tcc_scalar_bits(elem);
    return bits < BYTE_BITS ? BYTE_BITS / bits : 1;
}

static void find_inside(tcc_nvvm_lowering *l, element_copy *c, tcc_value *first, tcc_value *room)
{
    for (int64_t e = 0; e < c->per; e++)
        c->inside[e] = tcc_low_cmp(&l->low, "lt", tcc_low_add(&l->low, first, e), room);
}

static element_copy plan_element_copy(tcc_nvvm_lowering *l, const tcc_op *copy,
                                      const tcc_op *alloc, int64_t lanes, tcc_value *i)
{
    const tcc_value *tensor = TCC_VIEW(async_copy, copy)->tensor;
    const tcc_type *t = tensor->type;
    int contiguous = tcc_nvvm_contiguous(alloc);
    element_copy c = {.panels = tcc_panels_of(alloc),
                      .swizzle = tcc_attr_int(&alloc->attrs, "swizzle", 0),
                      .per = elements_of_unit(t->elem),
                      .lanes = lanes,
                      .base = tcc_low_pointer(&l->low, tensor)};
    c.row_units = alloc->results[0].type->dims[1 + contiguous].size / c.per;
    c.unit_bytes = c.per * tcc_scalar_bits(t->elem) / 8;
    c.stage = tcc_nvvm_stage(l, alloc, i);
    c.offset = c.stride = c.next = tcc_build_int(&l->low.b, l->low.i64, 0);
    plan_threads(l, &c);
    tcc_value *own = tcc_low_mul(&l->low, c.x, c.per);
    tcc_value *at[TCC_MAX_RANK];
    tcc_nvvm_coordinates(l, copy, t->rank, at);
    for (unsigned d = 0; d < t->rank; d++) {
        bool one;
        tcc_value *stride = tcc_low_stride(&l->low, t, (int)d, &one), *index = at[d];
        tcc_value *room =
            tcc_low_bin(&l->low, TCC_OP_arith_sub, tcc_low_extent(&l->low, t->dims[d]), at[d]);
        if (tcc_nvvm_tensor_dim(copy, contiguous) == (int)d) {
            index = tcc_low_bin(&l->low, TCC_OP_arith_add, index, own);
            find_inside(l, &c, own, room);
            c.next = stride;
        } else if (tcc_nvvm_tensor_dim(copy, !contiguous) == (int)d) {
            c.rows_inside = room;
            c.stride = stride;
        }
        c.offset = tcc_low_bin(&l->low, TCC_OP_arith_add, c.offset,
                               tcc_low_scaled(&l->low, index, stride));
    }
    /* No index along a direction: one element. */
    tcc_value *one = tcc_low_c32(&l->low, 1);
    if (!c.inside[0])
        find_inside(l, &c, own, one);
    c.rows_inside = c.rows_inside ? c.rows_inside : one;
    return c;
}

/* The address of the thread's unit of a row in the stage. */
static tcc_value *element_address(tcc_nvvm_lowering *l, const element_copy *c, tcc_value *row)
{
    tcc_lowering *low = &l->low;
    int64_t panel_units = c->panels.width / c->unit_bytes;
    tcc_value *byte = tcc_low_mul(low, tcc_low_div(low, c->x, panel_units), c->panels.panel_bytes);
    byte = tcc_low_bin(low, TCC_OP_arith_add, byte, tcc_low_mul(low, row, c->panels.width));
    byte = tcc_low_bin(low, TCC_OP_arith_add, byte,
                       tcc_low_mul(low, tcc_low_rem(low, c->x, panel_units), c->unit_bytes));
    return tcc_low_bin(low, TCC_OP_arith_add, c->stage, tcc_nvvm_swizzle(l, byte, c->swizzle));
}

/* The unit whose first element is at `offset`, of a row that is inside or not. */
static tcc_value *load_unit(tcc_nvvm_lowering *l, const element_copy *c, tcc_value *offset, tcc_value *row_inside,
                            tcc_scalar elem)
{
    tcc_lowering *low = &l->low;
    tcc_value *byte = NULL;
    int64_t bits = tcc_scalar_bits(elem);
    for (int64_t e = 0; e < c->per; e++) {
        tcc_value *inside = tcc_low_bin(low, TCC_OP_arith_and, c->inside[e], row_inside);
        if (c->per == 1)
            return TCC_EMIT(&low->b, nvvm_ld_global, tcc_low_vec(low, elem, 1), c->base, offset, inside);
        tcc_value *half = tcc_nvvm_load_half(low, elem, c->base, offset, inside);
        half = tcc_low_bin_const(low, TCC_OP_arith_and, tcc_low_cast(low, low->i32, half), (1 << bits) - 1);
        half = tcc_low_mul(low, half, 1 << e * bits);
        byte = byte ? tcc_low_bin(low, TCC_OP_arith_or, byte, half) : half;
        offset = tcc_low_bin(low, TCC_OP_arith_add, offset, c->next);
    }
    byte = tcc_low_cast(low, tcc_type_scalar(low->ir, TCC_u8), byte);
    return tcc_low_pack(low, TCC_u8, 1, &byte, 1);
}

/* The units of in_flight rounds from row `row` of the thread on. */
static void copy_rounds(tcc_nvvm_lowering *l, const element_copy *c, tcc_value *row, tcc_scalar elem)
{
    tcc_value *v[IN_FLIGHT], *rows[IN_FLIGHT];
    tcc_value *offset =
        tcc_low_bin(&l->low, TCC_OP_arith_add, c->offset, tcc_low_scaled(&l->low, row, c->stride));
    tcc_value *step = tcc_low_scaled(&l->low, tcc_low_c32(&l->low, c->rows_at_once), c->stride);
    for (int64_t u = 0; u < c->in_flight; u++) {
        rows[u] = tcc_low_add(&l->low, row, u * c->rows_at_once);
        v[u] = load_unit(l, c, offset, tcc_low_cmp(&l->low, "lt", rows[u], c->rows_inside), elem);
        offset = tcc_low_bin(&l->low, TCC_OP_arith_add, offset, step);
    }
    tcc_op *guard = NULL;
    if (c->lanes != c->row_units)
        guard = tcc_low_if(&l->low,
                           tcc_low_cmp(&l->low, "lt", c->x, tcc_low_c32(&l->low, c->row_units)));
    /* Whole swizzle patterns of 8 rows apart, addresses differ by a constant. */
    int64_t bytes = c->rows_at_once * c->panels.width, period = 1;
    while (period * bytes % (8 * 128))
        period *= 2;
    tcc_value *address[IN_FLIGHT];
    for (int64_t u = 0; u < c->in_flight; u++) {
        address[u] = u < period
                         ? element_address(l, c, rows[u])
                         : tcc_low_add(&l->low, address[u % period], u / period * period * bytes);
        tcc_op *last = NULL;
        if (c->rounds * c->rows_at_once != c->panels.rows)
            last = tcc_low_if(
                &l->low,
                tcc_low_cmp(&l->low, "lt", rows[u], tcc_low_c32(&l->low, c->panels.rows)));
        TCC_EMIT_V(&l->low.b, nvvm_st_shared, address[u], v[u]);
        if (last)
            tcc_low_end(&l->low, last);
    }
    if (guard)
        tcc_low_end(&l->low, guard);
}

void tcc_nvvm_copy_elements(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc, tcc_value *i)
{
    tcc_scalar elem = TCC_VIEW(async_copy, copy)->tensor->type->elem;
    int64_t lanes = 1;
    while (lanes * elements_of_unit(elem) < alloc->results[0].type->dims[1 + tcc_nvvm_contiguous(alloc)].size)
        lanes *= 2;
    if (lanes > tcc_nvvm_threads(l)) {
        TCC_LOW_REFUSE(&l->low, copy, "async.copy of rows longer than there are threads");
        return;
    }
    element_copy c = plan_element_copy(l, copy, alloc, lanes, i);
    tcc_value *bounds[] = {tcc_low_c32(&l->low, 0), NULL, NULL};
    bounds[1] = tcc_low_c32(&l->low, c.rounds * c.rows_at_once);
    bounds[2] = tcc_low_c32(&l->low, c.in_flight * c.rows_at_once);
    tcc_op *loop = tcc_op_create(&l->low.b, TCC_OP_scf_for, 3, bounds, 0, NULL);
    tcc_attr_set_int(l->low.ir, &loop->attrs, "at_least_once", 1);
    tcc_value *first = tcc_block_add_arg(loop->regions[0], l->low.i32, "row");
    tcc_builder outer = l->low.b;
    l->low.b = tcc_builder_at_end(loop->regions[0]);
    l->low.b.loc = outer.loc;
    copy_rounds(l, &c, tcc_low_bin(&l->low, TCC_OP_arith_add, first, c.row), elem);
    tcc_op_create(&l->low.b, TCC_OP_scf_yield, 0, NULL, 0, NULL);
    l->low.b = outer;
}

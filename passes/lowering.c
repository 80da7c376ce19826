/* lowering: see lowering.h.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/lowering.h"

#include <string.h>

#include "ir/assume.h"
#include "ir/signature.h"

/* ---- arithmetic ------------------------------------------------------------------------ */

tcc_value *tcc_low_scaled(tcc_lowering *l, tcc_value *index, tcc_value *stride)
{
    return tcc_low_bin(l, TCC_OP_arith_mul, tcc_low_cast(l, l->i64, index), stride);
}

const tcc_type *tcc_low_vec(tcc_lowering *l, tcc_scalar elem, int64_t n)
{
    return tcc_type_sized(l->ir, TCC_KIND_vec, elem, 1, &n);
}

tcc_value *tcc_low_pack(tcc_lowering *l, tcc_scalar elem, size_t n_parts, tcc_value *const *parts,
                        int64_t n)
{
    const tcc_type *type = tcc_low_vec(l, elem, n);
    return &tcc_op_create(&l->b, TCC_OP_vec_pack, n_parts, parts, 1, &type)->results[0];
}

tcc_value *tcc_low_slice(tcc_lowering *l, tcc_value *v, int64_t offset, int64_t n)
{
    if (tcc_type_count(v->type) == n)
        return v;
    tcc_value *r = TCC_EMIT(&l->b, vec_slice, tcc_low_vec(l, v->type->elem, n), v);
    tcc_attr_set_int(l->ir, &r->def->attrs, "offset", offset);
    return r;
}

tcc_value *tcc_low_extract(tcc_lowering *l, tcc_value *v, int64_t offset)
{
    tcc_value *r = TCC_EMIT(&l->b, vec_extract, tcc_type_scalar(l->ir, v->type->elem), v);
    tcc_attr_set_int(l->ir, &r->def->attrs, "offset", offset);
    return r;
}

tcc_value *tcc_low_elementwise(tcc_lowering *l, const tcc_op *op, tcc_value *const *operands,
                               int64_t n)
{
    const tcc_type *type = tcc_low_vec(l, op->results[0].type->elem, n);
    tcc_op *r = tcc_op_create(&l->b, op->code, op->n_operands, operands, 1, &type);
    for (size_t a = 0; a < op->attrs.len; a++)
        TCC_PUSH(l->ir->arena, &r->attrs, op->attrs.data[a]);
    return &r->results[0];
}

const tcc_type *tcc_low_tile_of(const tcc_op *op)
{
    switch (op->code) {
    case TCC_OP_tile_store: return TCC_VIEW(tile_store, op)->a->type;
    case TCC_OP_arith_const:
    case TCC_OP_scf_for:
    case TCC_OP_async_mma:
    case TCC_OP_async_mma_wait: return NULL;
    default: break;
    }
    bool is_tile = op->n_results == 1 && op->results[0].type->kind == TCC_KIND_tile;
    return is_tile ? op->results[0].type : NULL;
}

bool tcc_low_should_loop(const tcc_op *first, int64_t elements)
{
    /* Approximate instructions per element. LLVM's time grows with the square of a block's
     * length. */
    enum { FUNCTION = 16, GATHER = 8, ACCESS = 3, OTHER = 1, MOST = 8192 };
    int64_t work = 0;
    for (const tcc_op *op = first; op; op = op->next)
        if (op->code == TCC_OP_tile_load || op->code == TCC_OP_tile_store)
            work += ACCESS;
        else if (op->code == TCC_OP_tile_gather)
            work += GATHER;
        else if (tcc_low_tile_of(op))
            work += !strncmp(tcc_op_info_get(op->code)->name, "math.", 5) ? FUNCTION : OTHER;
    return work * elements > MOST;
}

/* ---- parameters and launch conditions --------------------------------------------------- */

tcc_attr tcc_low_str(tcc_lowering *l, const char *s)
{
    return (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(l->ir, s)};
}

tcc_attr tcc_low_int(int64_t i)
{
    return (tcc_attr){.kind = TCC_ATTR_INT, .i = i};
}

tcc_attr tcc_low_list(tcc_lowering *l, size_t n, const tcc_attr *items)
{
    tcc_attr *copy = TCC_NEW_ARRAY(l->ir->arena, tcc_attr, n);
    if (n)
        memcpy(copy, items, n * sizeof *items);
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {copy, n}};
}

/* The parameter that this recipe describes, made on first use. */
tcc_value *tcc_low_parameter(tcc_lowering *l, tcc_attr recipe, const tcc_type *type,
                             const char *name)
{
    for (size_t i = 0; i < l->params.len; i++)
        if (tcc_attr_equal(&l->params.data[i], &recipe))
            return l->body->args[i];
    TCC_PUSH(l->ir->arena, &l->params, recipe);
    return tcc_block_add_arg(l->body, type, name);
}

void tcc_low_require(tcc_lowering *l, size_t n, const tcc_attr *items)
{
    tcc_attr condition = tcc_low_list(l, n, items);
    for (size_t i = 0; i < l->requires.len; i++)
        if (tcc_attr_equal(&l->requires.data[i], &condition))
            return;
    TCC_PUSH(l->ir->arena, &l->requires, condition);
}

tcc_value *tcc_low_extent(tcc_lowering *l, tcc_dim d)
{
    if (!d.name)
        return tcc_low_c32(l, d.size);
    return tcc_low_parameter(l, TCC_LOW_LIST(l, tcc_low_str(l, "dim"), tcc_low_str(l, d.name)),
                             l->i32, d.name);
}

tcc_value *tcc_low_pointer(tcc_lowering *l, const tcc_value *tensor)
{
    return tcc_low_parameter(
        l, TCC_LOW_LIST(l, tcc_low_str(l, "pointer"), tcc_low_str(l, tensor->name)),
        tcc_type_get(l->ir, TCC_KIND_ptr, tensor->type->elem, 0, NULL), tensor->name);
}

/* From one row to the next. */
static tcc_attr row_attr(tcc_lowering *l, const tcc_type *t)
{
    tcc_dim last = t->dims[t->rank - 1];
    int64_t n = tcc_type_row_elems(t);
    if (!last.name)
        last.size = (last.size + n - 1) / n * n;
    return n == 1 || !last.name ? tcc_attr_of_dim(last)
                                : TCC_LOW_LIST(l, tcc_low_str(l, "roundup"), tcc_attr_of_dim(last),
                                               tcc_low_int(n));
}

tcc_value *tcc_low_row(tcc_lowering *l, const tcc_type *t)
{
    tcc_dim last = t->dims[t->rank - 1];
    int64_t n = tcc_type_row_elems(t);
    tcc_value *length = tcc_low_extent(l, last);
    if (n == 1)
        return length;
    if (!last.name)
        return tcc_low_c32(l, (last.size + n - 1) / n * n);
    length = tcc_low_add(l, length, n - 1);
    tcc_value *whole = tcc_low_bin(l, TCC_OP_arith_div, length, tcc_low_c32(l, n));
    return tcc_low_mul(l, whole, n);
}

/* Elements from one index of dimension d to the next: its stride, or the product of the later extents. */
tcc_attr tcc_low_stride_attr(tcc_lowering *l, const tcc_type *t, unsigned d)
{
    tcc_attr factors[TCC_MAX_RANK];
    size_t n = 0;
    if (t->strides)
        return TCC_LOW_LIST(l, tcc_attr_of_dim(t->strides[d]));
    for (unsigned e = d + 1; e < t->rank; e++)
        factors[n++] = e + 1 < t->rank ? tcc_attr_of_dim(t->dims[e]) : row_attr(l, t);
    return tcc_low_list(l, n, factors);
}

void tcc_low_require_min(tcc_lowering *l, tcc_dim d, int64_t least)
{
    if (d.name)
        tcc_low_require(
            l, 3, (tcc_attr[]){tcc_low_str(l, "min"), tcc_attr_of_dim(d), tcc_low_int(least)});
}

/* That so many elements are a multiple of this many bytes. If elements share a byte, each counts as a byte and the
 * required multiple is larger in proportion. */
static void require_pitch(tcc_lowering *l, const tcc_type *t, tcc_attr factors, int64_t bytes)
{
    unsigned bits = tcc_scalar_bits(t->elem), whole_bits = bits < 8 ? 8 : bits;
    tcc_low_require(l, 4,
                    (tcc_attr[]){tcc_low_str(l, "pitch"), factors, tcc_low_int(whole_bits / 8),
                                 tcc_low_int(bytes * whole_bits / bits)});
}

void tcc_low_require_address(tcc_lowering *l, const tcc_value *tensor, int64_t bytes)
{
    if (!tcc_func_is_workspace(l->f, tensor)) /* which is aligned */
        tcc_low_require(l, 3,
                        (tcc_attr[]){tcc_low_str(l, "align"), tcc_low_str(l, tensor->name), tcc_low_int(bytes)});
}

/* The address and the rows of a tensor are multiples of this many bytes. Rows are the last
 * dimension, so every other stride is a multiple of theirs, unless each is given. */
void tcc_low_require_alignment(tcc_lowering *l, const tcc_value *tensor, int64_t bytes)
{
    const tcc_type *t = tensor->type;
    unsigned bits = tcc_scalar_bits(t->elem), whole_bits = bits < 8 ? 8 : bits;
    if (bytes * 8 > whole_bits)
        tcc_low_require_address(l, tensor, bytes);
    bool known = t->row_bytes && t->row_bytes % bytes == 0;
    for (unsigned d = 0; t->strides && d + 1 < t->rank && bytes * 8 > bits; d++)
        if (t->strides[d].name)
            require_pitch(l, t, tcc_low_stride_attr(l, t, d), bytes);
    if (!t->strides && bytes * 8 > bits && t->rank > 1 && t->dims[t->rank - 1].name && !known)
        require_pitch(l, t, tcc_low_stride_attr(l, t, t->rank - 2), bytes);
}

void tcc_low_require_groups(tcc_lowering *l, const tcc_value *tensor, int64_t bytes)
{
    const tcc_type *t = tensor->type;
    tcc_low_require_alignment(l, tensor, bytes);
    if (bytes * 8 > tcc_scalar_bits(t->elem) && t->rank == 1 && t->dims[0].name && !t->row_bytes)
        require_pitch(l, t, TCC_LOW_LIST(l, tcc_attr_of_dim(t->dims[0])), bytes);
}

bool tcc_low_require_multiple(tcc_lowering *l, tcc_dim dim, int64_t n)
{
    enum { BYTE_BITS = 8 };
    const tcc_value *rows;
    if (!tcc_assumes_multiple(l->f, dim, n, &rows))
        return false;
    if (!dim.name)
        return true;
    int64_t bits = rows ? tcc_scalar_bits(rows->type->elem) : BYTE_BITS,
            scale = bits < BYTE_BITS ? BYTE_BITS / bits : 1;
    tcc_low_require(l, 4,
                    (tcc_attr[]){tcc_low_str(l, "pitch"), TCC_LOW_LIST(l, tcc_attr_of_dim(dim)),
                                 tcc_low_int(bits * scale / BYTE_BITS), tcc_low_int(n * bits / BYTE_BITS * scale)});
    return true;
}

bool tcc_low_is_multiple(tcc_lowering *l, const tcc_value *at, int64_t n)
{
    bool is = tcc_is_multiple(at, n, NULL);
    tcc_attr dims = tcc_attr_list(&l->f->attrs, "dims");
    for (size_t i = 0; i < dims.list.n && !is; i++) {
        tcc_dim d = {.name = dims.list.items[i].s};
        is = tcc_is_multiple(at, n, &d) && tcc_low_require_multiple(l, d, n);
    }
    return is;
}

bool tcc_low_ends_in_group(tcc_lowering *l, const tcc_type *t, int64_t n)
{
    return n > 1 && tcc_type_has_gaps(t) && !tcc_low_require_multiple(l, t->dims[t->rank - 1], n);
}

tcc_value *tcc_low_clear_padding(tcc_lowering *l, tcc_value *v, tcc_value *column, tcc_value *room)
{
    enum { BYTE_BITS = 8 };
    int64_t n = tcc_type_count(v->type);
    const tcc_type *vec = v->type;
    bool is_byte = tcc_scalar_bits(vec->elem) == BYTE_BITS; /* of which floats are only converted */
    const tcc_type *each = tcc_type_scalar(l->ir, is_byte ? TCC_u8 : vec->elem);
    bool is_float = tcc_scalar_classify(each->elem) == TCC_CLASS_FLOAT;
    tcc_value *zero = is_float ? tcc_build_float(&l->b, each, 0) : tcc_build_int(&l->b, each, 0);
    v = is_byte ? TCC_EMIT(&l->b, vec_bitcast, tcc_low_vec(l, TCC_u8, n), v) : v;
    tcc_value **elements = TCC_NEW_ARRAY(l->ctx->scratch, tcc_value *, n);
    for (int64_t e = 0; e < n; e++) {
        elements[e] = tcc_low_extract(l, v, e);
        if (!e) /* decides whether there is an access at all */
            continue;
        tcc_value *inside = tcc_low_cmp(l, "lt", tcc_low_add(l, column, e), room);
        elements[e] = TCC_EMIT(&l->b, arith_select, each, inside, elements[e], zero);
    }
    v = tcc_low_pack(l, each->elem, (size_t)n, elements, n);
    return is_byte ? TCC_EMIT(&l->b, vec_bitcast, vec, v) : v;
}

tcc_value *tcc_low_stride(tcc_lowering *l, const tcc_type *t, int d, bool *one)
{
    *one = d == (int)t->rank - 1 && tcc_type_has_rows(t);
    if (t->strides)
        return tcc_low_cast(l, l->i64, tcc_low_extent(l, t->strides[d]));
    tcc_value *stride = tcc_build_int(&l->b, l->i64, 1);
    for (unsigned e = (unsigned)d + 1; e < t->rank; e++)
        stride = tcc_low_bin(l, TCC_OP_arith_mul, stride,
                             tcc_low_cast(l, l->i64, e + 1 < t->rank ? tcc_low_extent(l, t->dims[e])
                                                                     : tcc_low_row(l, t)));
    return stride;
}

/* ---- scalar arguments --------------------------------------------------------------------- */

/* Scalar parameters: all arrive as f32, or in their own type when that is an integer or f64. */
void tcc_low_scalar_args(tcc_lowering *l)
{
    for (size_t i = 0; i < l->f->body->n_args; i++) {
        tcc_value *arg = l->f->body->args[i];
        if (arg->type->kind != TCC_KIND_scalar || !arg->n_uses)
            continue;
        bool is_float = tcc_scalar_classify(arg->type->elem) == TCC_CLASS_FLOAT && arg->type->elem != TCC_f64;
        tcc_value *v = tcc_low_parameter(
            l, TCC_LOW_LIST(l, tcc_low_str(l, "scalar"), tcc_low_str(l, arg->name)),
            is_float ? l->f32 : arg->type, arg->name);
        tcc_value_map_set(l->map, arg, tcc_low_cast(l, arg->type, v));
    }
}

void tcc_low_refuse(tcc_lowering *l, const tcc_op *op, const char *what)
{
    if (!l->failed)
        tcc_error(l->ctx->diag, TCC_ERR_UNSUPPORTED, op->loc, "not supported yet: %s", what);
    l->failed = true;
}

tcc_op *tcc_low_find_ctas(const tcc_func *f)
{
    tcc_op *op = f->body->first;
    while (op && op->code != TCC_OP_tile_ctas)
        op = op->next;
    return op;
}

void tcc_low_begin(tcc_lowering *l, tcc_pass_ctx *ctx, tcc_func *f, const tcc_low_vendor *vendor)
{
    tcc_ir *ir = ctx->ir;
    *l = (tcc_lowering){
        .vendor = vendor,
        .ctx = ctx,
        .ir = ir,
        .f = f,
        .body = tcc_block_create(f, NULL),
        .map = tcc_value_map_create(ctx->scratch),
        .tiles = TCC_MAP(ctx->scratch),
        .i1 = tcc_type_scalar(ir, TCC_i1),
        .i32 = tcc_type_scalar(ir, TCC_i32),
        .i64 = tcc_type_scalar(ir, TCC_i64),
        .f32 = tcc_type_scalar(ir, TCC_f32),
    };
    tcc_attr requires = tcc_attr_list(&f->attrs, "requires");
    for (size_t i = 0; i < requires.list.n; i++)
        TCC_PUSH(ir->arena, &l->requires, requires.list.items[i]);
    tcc_attr assumes = tcc_attr_list(&f->attrs, "assumes");
    for (size_t i = 0; i < assumes.list.n; i++) /* loops count on these, and tiles of whole rows */
        if (tcc_attr_is_record(assumes.list.items[i], "min", "si") ||
            tcc_attr_is_record(assumes.list.items[i], "max", "si"))
            tcc_low_require(l, 3, assumes.list.items[i].list.items);
        else if (tcc_attr_is_record(assumes.list.items[i], "multiple", "si"))
            tcc_low_require_multiple(l, (tcc_dim){.name = assumes.list.items[i].list.items[1].s},
                                     assumes.list.items[i].list.items[2].i);
    l->b = tcc_builder_at_end(l->body);
}

tcc_status tcc_low_finish(tcc_lowering *l, int64_t smem_bytes)
{
    tcc_ir *ir = l->ir;
    tcc_func *f = l->f;
    const tcc_op *ctas = tcc_low_find_ctas(f);
    tcc_attr_set_int(ir, &f->attrs, "smem_bytes", smem_bytes);
    tcc_func_record_args(f);
    f->body = l->body;
    tcc_attr_set(ir, &f->attrs, "params", tcc_low_list(l, l->params.len, l->params.data),
                 (tcc_loc){0, 0});
    tcc_attr_set(ir, &f->attrs, "requires", tcc_low_list(l, l->requires.len, l->requires.data),
                 (tcc_loc){0, 0});
    const tcc_target *target = tcc_target_of(ir);
    if (smem_bytes > target->smem_bytes)
        TCC_LOW_REFUSE(l, ctas, "a kernel with %lld bytes of shared memory; a CTA of %s has %lld",
                       (long long)smem_bytes, target->name, (long long)target->smem_bytes);
    const char *wrong = tcc_assume_wrong(f, l->ctx->scratch);
    if (wrong)
        TCC_LOW_REFUSE(l, ctas, "a variant whose 'assumes' %s", wrong);
    return l->failed ? TCC_ERR_UNSUPPORTED : TCC_OK;
}

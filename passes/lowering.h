/* lowering: what the lowerings to target ops share: the kernel that is being made, its parameters
 * and launch conditions, its scalar arithmetic.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_LOWERING_H
#define TCC_PASSES_LOWERING_H

#include "ir/layout.h"
#include "passes/arith.h"
#include "passes/pass.h"
#include "passes/schedule.h"

enum { TCC_MAX_RANK = 32, TCC_MAX_PARAMS = 64 };

typedef struct tcc_lowering {
    tcc_pass_ctx *ctx;
    tcc_ir *ir;
    tcc_func *f;
    tcc_builder b;      /* where the next op goes, in the new body */
    tcc_block *body;    /* the new body; its arguments are the kernel's parameters */
    tcc_value_map *map; /* old values to new */
    const tcc_type *i1, *i32, *i64, *f32;
    bool failed; /* something was refused */

    /* Parameters and launch conditions, as they go into the manifest. */
    TCC_VEC(tcc_attr) params;
    TCC_VEC(tcc_attr)
    requires;
} tcc_lowering;

/* Begins a new body for a function. */
void tcc_low_begin(tcc_lowering *l, tcc_pass_ctx *ctx, tcc_func *f);
/* Puts it in place of the old one, and how to launch it into the attributes: smem_bytes,
 * params, requires, args (docs/abi.md, docs/ir.md). Refused where it requires more than the function
 * assumes. */
tcc_status tcc_low_finish(tcc_lowering *l, int64_t smem_bytes);

/* TCC_LOW_REFUSE(l, op, format, …) reports that something about an op is "not supported yet: …" and
 * ends the lowering. */
#define TCC_LOW_REFUSE(l, op, ...)                                                                 \
    tcc_low_refuse((l), (op), tcc_arena_printf((l)->ctx->scratch, __VA_ARGS__))
void tcc_low_refuse(tcc_lowering *l, const tcc_op *op, const char *what);
/* The function's tile.ctas, or NULL. */
tcc_op *tcc_low_find_ctas(const tcc_func *f);
/* Maps its argument to the number of the CTA, which op `id` gives, and sets the attribute `grid`. */
void tcc_low_ctas(tcc_lowering *l, const tcc_op *ctas, tcc_opcode id);
/* Maps what tensor.dim gives to its parameter. */
void tcc_low_dim(tcc_lowering *l, const tcc_op *dim);
/* Maps the function's scalars to parameters. */
void tcc_low_scalar_args(tcc_lowering *l);

/* ---- arithmetic: passes/arith.h, at the place of b --------------------------------------- */

static inline tcc_value *tcc_low_c32(tcc_lowering *l, int64_t v)
{
    return tcc_build_int(&l->b, l->i32, v);
}
static inline tcc_value *tcc_low_bin(tcc_lowering *l, tcc_opcode op, tcc_value *x, tcc_value *y)
{
    return tcc_arith_bin(&l->b, op, x, y);
}
static inline tcc_value *tcc_low_bin_const(tcc_lowering *l, tcc_opcode op, tcc_value *x, int64_t y)
{
    return tcc_arith_bin_const(&l->b, op, x, y);
}
static inline tcc_value *tcc_low_add(tcc_lowering *l, tcc_value *x, int64_t y)
{
    return tcc_arith_add(&l->b, x, y);
}
static inline tcc_value *tcc_low_mul(tcc_lowering *l, tcc_value *x, int64_t y)
{
    return tcc_arith_mul(&l->b, x, y);
}
static inline tcc_value *tcc_low_div(tcc_lowering *l, tcc_value *x, int64_t y)
{
    return tcc_arith_div(&l->b, x, y);
}
static inline tcc_value *tcc_low_rem(tcc_lowering *l, tcc_value *x, int64_t y)
{
    return tcc_arith_rem(&l->b, x, y);
}
static inline tcc_value *tcc_low_cmp(tcc_lowering *l, const char *pred, tcc_value *x, tcc_value *y)
{
    return tcc_arith_cmp(&l->b, pred, x, y);
}
static inline tcc_value *tcc_low_cast(tcc_lowering *l, const tcc_type *type, tcc_value *x)
{
    return tcc_arith_cast(&l->b, type, x);
}
static inline tcc_op *tcc_low_if(tcc_lowering *l, tcc_value *cond)
{
    return tcc_begin_if(&l->b, cond);
}
static inline void tcc_low_end(tcc_lowering *l, tcc_op *op)
{
    tcc_end_if(&l->b, op);
}
/* index * stride, as i64 */
tcc_value *tcc_low_scaled(tcc_lowering *l, tcc_value *index, tcc_value *stride);
/* The type of n elements. */
const tcc_type *tcc_low_vec(tcc_lowering *l, tcc_scalar elem, int64_t n);
/* n elements, those of the parts one after another. */
tcc_value *tcc_low_pack(tcc_lowering *l, tcc_scalar elem, size_t n_parts, tcc_value *const *parts,
                        int64_t n);
/* n elements from `offset` on; v itself when that is all of them. */
tcc_value *tcc_low_slice(tcc_lowering *l, tcc_value *v, int64_t offset, int64_t n);
tcc_value *tcc_low_extract(tcc_lowering *l, tcc_value *v, int64_t offset);
/* An op on tiles, with its attributes, on n elements of them. */
tcc_value *tcc_low_elementwise(tcc_lowering *l, const tcc_op *op, tcc_value *const *operands,
                               int64_t n);
/* What combines two elements of a tile.reduce. */
tcc_opcode tcc_low_reduction(const tcc_op *reduce);
/* Tiles in registers (ir/layout.h), of which a thread's are one vec: `to` is `from` from row at[0] and column
 * at[1] on, behind the last ones the first; what has extent 1 is the same everywhere. NULL when a
 * thread does not have what it needs. */
tcc_value *tcc_low_regroup(tcc_lowering *l, const tcc_spread *from, tcc_value *v,
                           const tcc_spread *to, const int64_t at[2]);
/* What a thread has along dimension dim at `place` of the other one, combined by a binary op. */
tcc_value *tcc_low_reduce_own(tcc_lowering *l, tcc_opcode op, const tcc_spread *s, tcc_value *v,
                              int dim, int64_t place);
/* What the digits of a lane's or a warp's number add along a dimension. */
tcc_value *tcc_low_digits(tcc_lowering *l, const tcc_digits *digits, tcc_value *number, int dim);
/* Whether those that add nothing are 0: of all that hold the same, it is the first. */
tcc_value *tcc_low_is_first(tcc_lowering *l, const tcc_digits *digits, tcc_value *number);
/* The tile that an op behind the product stores or computes, piece by piece; NULL for other ops, and
 * for constants. */
const tcc_type *tcc_low_tile_of(const tcc_op *op);
/* Whether the ops on tiles from `first` on, done for so many elements by each lane, are too many
 * instructions to be written one after another: then they go into a loop. */
bool tcc_low_should_loop(const tcc_op *first, int64_t elements);

/* ---- parameters ------------------------------------------------------------------------ */

tcc_attr tcc_low_str(tcc_lowering *l, const char *s);
tcc_attr tcc_low_int(int64_t i);
tcc_attr tcc_low_list(tcc_lowering *l, size_t n, const tcc_attr *items);
#define TCC_LOW_LIST(l, ...)                                                                       \
    tcc_low_list(l, sizeof((tcc_attr[]){__VA_ARGS__}) / sizeof(tcc_attr), (tcc_attr[]){__VA_ARGS__})
tcc_attr tcc_low_dim_attr(tcc_lowering *l, tcc_dim d);
/* Elements from one index of dimension d to the next, as the extents whose product it is. */
tcc_attr tcc_low_stride_attr(tcc_lowering *l, const tcc_type *t, unsigned d);

/* The parameter that a recipe describes, made on first use. */
tcc_value *tcc_low_parameter(tcc_lowering *l, tcc_attr recipe, const tcc_type *type,
                             const char *name);
/* Extent of a dimension as i32; the address of a tensor. Made on first use, kept. */
tcc_value *tcc_low_extent(tcc_lowering *l, tcc_dim d);
tcc_value *tcc_low_pointer(tcc_lowering *l, const tcc_value *tensor);
/* Elements from one index of dimension d to the next, as i64; *one when that is always 1. */
tcc_value *tcc_low_stride(tcc_lowering *l, const tcc_type *tensor, int d, bool *one);

/* Adds a launch condition. */
void tcc_low_require(tcc_lowering *l, size_t n, const tcc_attr *items);
/* A dimension that is known at launch alone is at least so long. */
void tcc_low_require_min(tcc_lowering *l, tcc_dim d, int64_t least);
/* The address and the rows of a tensor are multiples of so many bytes: conditions where elements do
 * not say so. */
void tcc_low_require_alignment(tcc_lowering *l, const tcc_value *tensor, int64_t bytes);
/* And, where there is one row, its length: no group of so many bytes crosses the end of a row. */
void tcc_low_require_groups(tcc_lowering *l, const tcc_value *tensor, int64_t bytes);

#endif

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
#include "support/map.h"

enum { TCC_MAX_RANK = 32 };

typedef struct tcc_lowering tcc_lowering;

/* How the warps of a role hold a tile: its registers are cut into vecs. */
typedef struct tcc_held {
    tcc_spread spread;
    size_t n;             /* vecs */
    int64_t in_one;       /* elements of one */
    const tcc_type *each; /* its type; of i32 where elements are packed in words */
} tcc_held;

/* The lowered form of a tile; on its way to a stage of LDS also its units, and what must be done before it
 * is used (amdgcn.h). */
typedef struct tcc_parts {
    size_t n;
    tcc_value **values;
    const struct tcc_units *units;
    const struct tcc_mending *mending;
} tcc_parts;

/* An access of a tensor by the registers of a tile, each a row and a column of the tile further. What is said twice
 * is of rows and of columns. */
typedef struct tcc_access {
    const tcc_op *op; /* tile.load or tile.store */
    const tcc_value *tensor;
    tcc_value *const *at; /* the tile's coordinates */
    tcc_held held;
    bool has[2];          /* an index of the tensor */
    tcc_value *own[2];    /* the thread's first */
    int64_t add[2];       /* what the coordinates add, as constants, to what is shared by many accesses */
    tcc_value *stride[2], *room[2]; /* of the tensor; how many of it there are */
    tcc_value *base, *origin; /* what is accessed, and from where on, as the vendor has it */
    tcc_value *inside;        /* as far as the tile's coordinates determine it, and which threads store */
    bool contiguous, across;  /* along a row, along a column */
    int64_t step;             /* registers that are accessed at a time, neighbours in a row */
    int64_t apart;            /* registers from one of them to the next, of neighbours in a column; 1 */
    bool of_words;            /* accesses are put together of aligned words */
    bool ends_in_step;        /* a row may end among them, before padding */
    bool in_groups;           /* a row may begin or end among them */
    tcc_value *begin;         /* where a tile may begin before a row, the thread's own place in it, negative there */
} tcc_access;

/* An access of a tensor by coordinates of each element's own. Vendors set base, origin and stride, which count in
 * units of their own: element c is at base + origin + the sum of c[d] * stride[d] over those d that vary. */
typedef struct tcc_gather {
    const tcc_op *op; /* tile.gather */
    const tcc_value *tensor;
    bool varies[TCC_MAX_RANK];     /* the coordinate is a tile */
    tcc_value *first[TCC_MAX_RANK]; /* the others, where they are inside the tensor, else 0 */
    tcc_value *base, *origin, *stride[TCC_MAX_RANK];
} tcc_gather;

/* What differs between vendors. */
typedef struct tcc_low_vendor {
    const char *name, *warps; /* of the lowering's pass; of what lanes make */
    tcc_opcode cta, launched; /* return the number of the CTA, and of CTAs (TCC_OP_COUNT: unknown) */
    tcc_opcode cluster, clusters, rank; /* the same of clusters, and the CTA's number in its one */
    void (*block)(tcc_lowering *l, tcc_block *block); /* lowers its ops */
    /* Cuts the registers of a tile, whose layout is known, into vecs; false when no role holds it so. */
    bool (*cut)(tcc_lowering *l, const tcc_type *tile, tcc_held *held);
    tcc_value *(*warp)(tcc_lowering *l); /* the thread's, in the role */
    tcc_value *(*lane)(tcc_lowering *l);
    /* The value of v in the lane with this number; NULL if there is no op for it. Its value in the lane whose
     * number differs in the bits of the mask. */
    tcc_value *(*from_lane)(tcc_lowering *l, tcc_value *v, tcc_value *lane);
    tcc_value *(*from_xor)(tcc_lowering *l, tcc_value *v, int64_t mask);
    void (*mend)(tcc_lowering *l, tcc_parts *parts);
    /* The address of shared memory; accesses at an offset from an address in bytes; a barrier of the role's
     * warps, after which their stores are visible. */
    tcc_value *(*shared)(tcc_lowering *l);
    tcc_value *(*load_shared)(tcc_lowering *l, tcc_value *address, int64_t offset, const tcc_type *vec);
    void (*store_shared)(tcc_lowering *l, tcc_value *address, int64_t offset, tcc_value *v);
    void (*meet)(tcc_lowering *l, const tcc_op *op);
    /* Loads and stores all fragments of a tile with an opaque layout from and to rows that are `pitch` bytes apart:
     * the result of op, or its operand; refuses what is impossible. */
    void (*load_opaque)(tcc_lowering *l, const tcc_op *op, const tcc_held *held, tcc_value *base, int64_t pitch);
    void (*store_opaque)(tcc_lowering *l, const tcc_op *op, const tcc_held *held, tcc_value *base, int64_t pitch);
    /* Completes an access; false, refused, if it is impossible. */
    bool (*plan)(tcc_lowering *l, tcc_access *a);
    /* For `step` registers from this one on; those to store are in the vec v of the tile. */
    tcc_value *(*load)(tcc_lowering *l, const tcc_access *a, int64_t number);
    void (*store)(tcc_lowering *l, const tcc_access *a, int64_t number, tcc_value *v);
    /* The places of elements; the one at an offset if it is inside, else 0, as a scalar or a vec of one. */
    void (*locate)(tcc_lowering *l, tcc_gather *g);
    tcc_value *(*load_one)(tcc_lowering *l, const tcc_gather *g, tcc_value *offset, tcc_value *inside);
} tcc_low_vendor;

struct tcc_lowering {
    const tcc_low_vendor *vendor;
    tcc_pass_ctx *ctx;
    tcc_ir *ir;
    tcc_func *f;
    tcc_builder b;      /* where the next op goes, in the new body */
    tcc_block *body;    /* the new body; its arguments are the kernel's parameters */
    tcc_value_map *map; /* from old values to new */
    tcc_map tiles;      /* from old tiles to their tcc_parts */
    int64_t warps, lanes; /* of the role whose threads all run the code, and of a warp; 0: there is none */
    const tcc_type *i1, *i32, *i64, *f32;
    bool failed; /* something was refused */
    TCC_VEC(tcc_op *) accesses; /* tile.load and tile.store by threads, so far */

    /* Parameters and launch conditions, as they go into the manifest. */
    TCC_VEC(tcc_attr) params;
    TCC_VEC(tcc_attr)
    requires;
};

/* Begins a new body for a function. */
void tcc_low_begin(tcc_lowering *l, tcc_pass_ctx *ctx, tcc_func *f, const tcc_low_vendor *vendor);
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
/* Whether a place in a tile is below an extent at any launch of the variant, whatever lanes and warps add; then the
 * launch requires it. */
bool tcc_low_is_below(tcc_lowering *l, const tcc_spread *spread, int dim, int64_t place, tcc_dim extent);
/* n elements, those of the parts one after another. */
tcc_value *tcc_low_pack(tcc_lowering *l, tcc_scalar elem, size_t n_parts, tcc_value *const *parts,
                        int64_t n);
/* n elements from `offset` on; v itself when that is all of them. */
tcc_value *tcc_low_slice(tcc_lowering *l, tcc_value *v, int64_t offset, int64_t n);
tcc_value *tcc_low_extract(tcc_lowering *l, tcc_value *v, int64_t offset);
/* An op on tiles, with its attributes, on n elements of them. */
tcc_value *tcc_low_elementwise(tcc_lowering *l, const tcc_op *op, tcc_value *const *operands,
                               int64_t n);
/* The tile that an op after the product stores or computes, piece by piece; NULL for other ops, and
 * for constants. */
const tcc_type *tcc_low_tile_of(const tcc_op *op);
/* Whether the ops on tiles from `first` on, for this many elements per lane, are too many
 * instructions to be unrolled; then they are put into a loop. */
bool tcc_low_should_loop(const tcc_op *first, int64_t elements);

/* ---- values (lower_blocks.c) ------------------------------------------------------------- */

/* Lowers an op that is the same for all vendors, or refuses it: control flow, tiles in registers, arithmetic. */
void tcc_low_op(tcc_lowering *l, tcc_op *op);
/* The lowered form of a scalar. */
tcc_value *tcc_low_scalar(tcc_lowering *l, const tcc_value *v);
/* The lowered form of a tile, ready for use. */
const tcc_parts *tcc_low_parts(tcc_lowering *l, const tcc_value *v);
/* Says so: n values, which are copied. */
tcc_parts *tcc_low_set(tcc_lowering *l, const tcc_value *v, size_t n, tcc_value *const *values);

/* ---- tiles in registers (lower_tile.c), by their layouts only ---------------------------- */

/* False, refused, when the tile has no layout, or one for other warps. */
bool tcc_low_held(tcc_lowering *l, const tcc_op *user, const tcc_type *tile, tcc_held *held);
/* A tile with the elements of its registers in order; each v has one or several of them. */
void tcc_low_set_registers(tcc_lowering *l, const tcc_value *tile, const tcc_held *held,
                           tcc_value *const *v);
/* One of a tile's vecs, its elements not packed. */
tcc_value *tcc_low_unpacked(tcc_lowering *l, const tcc_value *tile, size_t part);
void tcc_low_tile_op(tcc_lowering *l, tcc_op *op); /* constants and elementwise ops */
void tcc_low_broadcast(tcc_lowering *l, tcc_op *op);
void tcc_low_reduce(tcc_lowering *l, tcc_op *op);
/* How a tile that is reduced is held, and its result; for each register of this what the warp has combined.
 * NULL, refused, when the result is in other threads. */
tcc_value **tcc_low_reduce_in_warp(tcc_lowering *l, const tcc_op *op, tcc_held *a, tcc_held *r);
/* The op that combines two elements of a reduction. */
/* Whether the thread is the first of those that hold the same: which lanes do, which warps. */
tcc_value *tcc_low_holds_first(tcc_lowering *l, const tcc_spread *lanes, const tcc_spread *warps);
void tcc_low_index(tcc_lowering *l, tcc_op *op);
/* tile.slice, tile.rotate, tile.convert. */
void tcc_low_regroup(tcc_lowering *l, tcc_op *op);
/* The row (dim 0) or column of the thread's first element. */
tcc_value *tcc_low_own(tcc_lowering *l, const tcc_spread *s, int dim);
/* What the digits of a lane's or a warp's number add along a dimension. */
tcc_value *tcc_low_digits(tcc_lowering *l, const tcc_digits *digits, tcc_value *number, int dim);
/* A coordinate is what is returned + a constant. */
tcc_value *tcc_low_split(tcc_value *v, int64_t *constant);
/* The part of a vec that is stored, from this register on. */
static inline tcc_value *tcc_low_stored(tcc_lowering *l, const tcc_access *a, int64_t number, tcc_value *v)
{
    return tcc_low_slice(l, v, number % a->held.in_one, a->step);
}
void tcc_low_load(tcc_lowering *l, tcc_op *op);
void tcc_low_store(tcc_lowering *l, tcc_op *op);
void tcc_low_gather(tcc_lowering *l, tcc_op *op);
/* From each multiple of how many columns on, a power of two, a tile.gather loads the same for so many; and a register
 * before this one that has the same, -1: there is none (gather_groups.c). */
int64_t tcc_low_gather_run(const tcc_op *gather);
int64_t tcc_low_gather_before(const tcc_spread *s, int64_t number, int64_t run);

/* Whether all threads of its role may do the access at a time of their own (lower_order.c): false, refused, where
 * others of them may have to come before. To be asked once, of all accesses in their order. */
bool tcc_low_is_ordered(tcc_lowering *l, tcc_op *op);

/* ---- tiles from warp to warp (lower_exchange.c) ------------------------------------------- */

void tcc_low_exchange(tcc_lowering *l, tcc_op *op);
void tcc_low_combine(tcc_lowering *l, tcc_op *op);

/* ---- parameters ------------------------------------------------------------------------ */

tcc_attr tcc_low_str(tcc_lowering *l, const char *s);
tcc_attr tcc_low_int(int64_t i);
tcc_attr tcc_low_list(tcc_lowering *l, size_t n, const tcc_attr *items);
#define TCC_LOW_LIST(l, ...)                                                                       \
    tcc_low_list(l, sizeof((tcc_attr[]){__VA_ARGS__}) / sizeof(tcc_attr), (tcc_attr[]){__VA_ARGS__})
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
/* Elements from one row to the next of a tensor that has rows, as an i32. */
tcc_value *tcc_low_row(tcc_lowering *l, const tcc_type *tensor);

/* Adds a launch condition. */
void tcc_low_require(tcc_lowering *l, size_t n, const tcc_attr *items);
/* A dimension that is only known at launch has at least this extent. */
void tcc_low_require_min(tcc_lowering *l, tcc_dim d, int64_t least);
/* The address of a tensor is a multiple of this many bytes. */
void tcc_low_require_address(tcc_lowering *l, const tcc_value *tensor, int64_t bytes);
/* The address and the rows of a tensor are multiples of this many bytes: conditions unless its
 * elements ensure it. */
void tcc_low_require_alignment(tcc_lowering *l, const tcc_value *tensor, int64_t bytes);
/* And, if there is only one row, its length: no group of this many bytes crosses the end of a
 * row, unless padding follows there. */
void tcc_low_require_groups(tcc_lowering *l, const tcc_value *tensor, int64_t bytes);
/* Whether a dimension is known to be a multiple of n, or assumed: then a condition. */
bool tcc_low_require_multiple(tcc_lowering *l, tcc_dim dim, int64_t n);
/* Whether a number is known to be a multiple of n, a power of two; that a dimension is one may become a condition. */
bool tcc_low_is_multiple(tcc_lowering *l, const tcc_value *at, int64_t n);
/* Whether padding may follow a row's end within a group of n elements; that it does not may become a condition. */
bool tcc_low_ends_in_group(tcc_lowering *l, const tcc_type *tensor, int64_t n);
/* Neighbours that are loaded from a column on, of which those from `room` on are padding: these become zeros. */
tcc_value *tcc_low_clear_padding(tcc_lowering *l, tcc_value *v, tcc_value *column, tcc_value *room);

#endif

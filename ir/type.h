/* type: the IR's types. Interned in a tcc_ir, so equal types are equal pointers.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_TYPE_H
#define TCC_IR_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/str.h"

typedef enum tcc_scalar {
#define TCC_SCALAR(id, bits, class) TCC_##id,
#include "ir/types.def"
    TCC_SCALAR_COUNT
} tcc_scalar;

typedef enum tcc_scalar_class { TCC_CLASS_FLOAT, TCC_CLASS_INT, TCC_CLASS_BOOL } tcc_scalar_class;

typedef enum tcc_kind {
#define TCC_KIND(id, doc) TCC_KIND_##id,
#include "ir/types.def"
    TCC_KIND_COUNT
} tcc_kind;

/* How the registers of a role's warps hold a tile: a fragment, or none that is known (layout.h). */
typedef enum tcc_layout {
    TCC_LAYOUT_none,
#define FRAGMENT(id, rows, cols, registers, lanes, warps) TCC_LAYOUT_##id,
#include "ir/fragments.def"
    TCC_LAYOUT_COUNT
} tcc_layout;

/* Where what is repeated is: in further registers; in further warps; in the other halves of the same registers. */
typedef enum tcc_repeated { TCC_IN_REGISTERS, TCC_IN_WARPS, TCC_IN_HALVES } tcc_repeated;

/* A fragment repeated n times along a dimension of a tile, or the same n times. */
enum { TCC_REPEAT_SAME = 2 };
typedef struct tcc_repeat {
    unsigned dim; /* or TCC_REPEAT_SAME */
    tcc_repeated in;
    int64_t n;
} tcc_repeat;

extern const char *const tcc_repeated_words[3], *const tcc_repeat_words[3]; /* as types are written */
/* Finds a layout by its name; false when there is none. */
bool tcc_layout_find(const char *name, size_t n, tcc_layout *out);
/* Scalars, as types.def has them; the interpreter asks for every number, so that what is here is inline. */
typedef struct tcc_scalar_info {
    const char *name;
    unsigned bits;
    tcc_scalar_class class;
} tcc_scalar_info;
extern const tcc_scalar_info tcc_scalars[TCC_SCALAR_COUNT];

static inline const char *tcc_scalar_name(tcc_scalar s)
{
    return tcc_scalars[s].name;
}

static inline unsigned tcc_scalar_bits(tcc_scalar s)
{
    return tcc_scalars[s].bits;
}

static inline tcc_scalar_class tcc_scalar_classify(tcc_scalar s)
{
    return tcc_scalars[s].class;
}

/* Whether its bits are a number from 0 on: such integers are widened with zeros. */
static inline bool tcc_scalar_is_unsigned(tcc_scalar s)
{
    return s == TCC_u8 || s == TCC_u4 || s == TCC_i1;
}

/* The numbers that an integer type, or i1, can hold. */
typedef struct tcc_int_range {
    int64_t least, most;
} tcc_int_range;
tcc_int_range tcc_scalar_range(tcc_scalar s);
/* v modulo the bits of an integer type, in its range; and the number in its range next to v. */
static inline int64_t tcc_int_wrap(tcc_scalar s, int64_t v)
{
    unsigned unused = 64 - tcc_scalar_bits(s);
    uint64_t top = (uint64_t)v << unused;
    return tcc_scalar_is_unsigned(s) ? (int64_t)(top >> unused) : (int64_t)top >> unused;
}
int64_t tcc_int_saturate(tcc_scalar s, int64_t v);
/* Whether a cast to `to`, of the same class, keeps every number of `from`. Of floats, only f32 and
 * f64 are assumed to represent others. */
bool tcc_scalar_widens(tcc_scalar from, tcc_scalar to);
/* Finds a scalar by its name; false when there is none. */
bool tcc_scalar_find(const char *name, size_t n, tcc_scalar *out);
const char *tcc_kind_name(tcc_kind k);
bool tcc_kind_has_elem(tcc_kind k); /* false for ring, tensormap, buffer */

/* One dimension: an interned name, or (name NULL) a number. */
typedef struct tcc_dim {
    const char *name;
    int64_t size;
} tcc_dim;
/* Also of two modules, whose names are interned apart. */
bool tcc_dim_equal(tcc_dim a, tcc_dim b);

typedef struct tcc_type {
    tcc_kind kind;
    tcc_scalar elem;   /* TCC_f32 and meaningless for ring, tensormap and buffer */
    tcc_layout layout; /* of a tile; else none */
    unsigned n_repeats; /* of the layout's fragment, from the inside out: layout.h */
    const tcc_repeat *repeats;
    unsigned row_bytes; /* of a tensor: its rows begin at multiples of this; 0: they are contiguous */
    const tcc_dim
        *strides; /* of a tensor: elements from one index to the next, by dimension; NULL: they follow from dims */
    unsigned rank;
    tcc_dim dims[];
} tcc_type;

typedef struct tcc_ir tcc_ir;

/* The interned type. Names in dims are interned by the call. */
const tcc_type *tcc_type_get(tcc_ir *ir, tcc_kind kind, tcc_scalar elem, unsigned rank,
                             const tcc_dim *dims);
const tcc_type *tcc_type_scalar(tcc_ir *ir, tcc_scalar elem);
/* tile, smem or vec with numeric extents: TCC_SIZES(4, 128, 64). */
const tcc_type *tcc_type_sized(tcc_ir *ir, tcc_kind kind, tcc_scalar elem, unsigned rank,
                               const int64_t *sizes);
/* The same kind, dims and layout with another element. */
const tcc_type *tcc_type_with_elem(tcc_ir *ir, const tcc_type *t, tcc_scalar elem);
/* The same tile in another layout. */
const tcc_type *tcc_type_with_repeats(tcc_ir *ir, const tcc_type *t, tcc_layout layout, unsigned n,
                                      const tcc_repeat *repeats);
/* The same tensor without strides, with rows that begin at multiples of this many bytes, which are whole elements; 0:
 * contiguous. */
const tcc_type *tcc_type_with_row_bytes(tcc_ir *ir, const tcc_type *t, unsigned row_bytes);
/* The same tensor with a stride for each dimension; NULL: none. Names are interned by the call. */
const tcc_type *tcc_type_with_strides(tcc_ir *ir, const tcc_type *t, const tcc_dim *strides);
/* A tensor of the same strides or rows as another, in the same dimensions: of a type made anew. */
const tcc_type *tcc_type_placed_as(tcc_ir *ir, const tcc_type *t, const tcc_type *as);
/* Whether the strides, or what rows are multiples of, are the same. */
bool tcc_type_same_places(const tcc_type *a, const tcc_type *b);
/* Whether neighbours along the last dimension are neighbours in memory. */
bool tcc_type_has_rows(const tcc_type *t);
/* Whether something else may follow a row: padding, or what the caller has there. */
bool tcc_type_has_gaps(const tcc_type *t);
/* The number of elements of which all strides but the last are multiples, of those that are numbers; 0: none is. */
int64_t tcc_type_known_pitch(const tcc_type *t);
/* The name of a stride that is only known at launch, but the last; NULL: there is none. */
const char *tcc_type_open_stride(const tcc_type *t);
/* The number of elements of which rows are a multiple; 1: they are contiguous. */
int64_t tcc_type_row_elems(const tcc_type *t);
bool tcc_type_same_layout(const tcc_type *a, const tcc_type *b);

/* Product of the extents; 1 for rank 0. Numeric dimensions only. */
int64_t tcc_type_count(const tcc_type *t);
bool tcc_type_is_scalar(const tcc_type *t, tcc_scalar elem);
bool tcc_type_has_elem(const tcc_type *t);
void tcc_type_print(tcc_str *out, const tcc_type *t);

#endif

/* amdgcn: what the files of lower-to-amdgcn share: the state of lowering one function.
 *
 * lower_to_amdgcn.c the pass: the table of ops, control flow, the role
 * amdgcn_copy.c     tiles from memory to registers, as they are copied to LDS
 * amdgcn_ragged.c   those that begin before the tensor, or end beyond it
 * amdgcn_stage.c    from registers to stages in LDS, and from there to operands
 * amdgcn_mma.c      how waves hold tiles, and multiply them
 * amdgcn_tile.c     tiles in registers: loads and stores
 *
 * Each op is lowered by its operands, attributes and types, and by the threads that run it; what
 * cannot be lowered is refused (TCC_LOW_REFUSE).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_AMDGCN_H
#define TCC_PASSES_AMDGCN_H

#include "ir/fragment.h"
#include "ir/shared.h"
#include "passes/families.h"
#include "passes/lowering.h"

enum {
    TCC_BLOCK = 16,             /* rows and columns of a matrix instruction */
    TCC_UNIT_BYTES = 16,        /* that a lane reads from LDS, or writes there, at a time */
    TCC_OUTSIDE = INT32_MIN,    /* an offset (unsigned) beyond every buffer */
    TCC_BUFFER_MAX = INT32_MAX, /* bytes of a buffer */
};

/* The waves that run the code. */
typedef struct tcc_waves {
    const tcc_op *role; /* NULL: outside roles */
    tcc_value *lane, *row, *group; /* row: lane % 16, group: lane / 16 */
} tcc_waves;

/* Tiles on their way to a stage: what a thread copies of an operand at a time. Its rows run along m or n; those
 * of the instruction's A, unless transposed, are in the order that its lanes require. */
typedef struct tcc_units {
    bool transposed; /* contiguous along m or n: rows of k are interleaved on the way to LDS */
    bool rows_first; /* neighbouring threads take neighbouring rows, not what follows along k */
    int k;           /* dimension of the tile that is summed */
    int64_t rows, depth;
    unsigned bits;
    tcc_rdna_unit of;
} tcc_units;

typedef struct tcc_amdgcn_lowering {
    tcc_lowering low;
    const tcc_target *target;
    tcc_value *lds, *tid, *wave; /* made once, in front */
    tcc_waves by;
    TCC_VEC(const tcc_units *) units; /* in total */
    /* The lane's number, made once in a block of code: lest registers keep it, and what follows from it,
     * through a loop of MMAs. */
    const tcc_block *lane_of;
    tcc_value *lane;
} tcc_amdgcn_lowering;

/* ---- lower_to_amdgcn.c ----------------------------------------------------------------------- */

/* Lowers the ops of a block. */
void tcc_amdgcn_block(tcc_amdgcn_lowering *l, tcc_block *block);
tcc_value *tcc_amdgcn_add(tcc_amdgcn_lowering *l, tcc_value *a, tcc_value *b);
tcc_value *tcc_amdgcn_mul(tcc_amdgcn_lowering *l, tcc_value *a, tcc_value *b);
tcc_value *tcc_amdgcn_and(tcc_amdgcn_lowering *l, tcc_value *a, tcc_value *b);
/* All waves wait for each other, and what they have stored in LDS is there. */
void tcc_amdgcn_meet(tcc_amdgcn_lowering *l);
/* offset where `inside` holds, else TCC_OUTSIDE. */
tcc_value *tcc_amdgcn_offset(tcc_amdgcn_lowering *l, tcc_value *inside, tcc_value *offset);
/* LLVM's scheduler moves nothing across this place. */
void tcc_amdgcn_pin(tcc_amdgcn_lowering *l);
/* Describes a tensor's memory from element `first` (i64) on, to its end or as far as a buffer
 * reaches; nothing of it unless `when`, an i1 or NULL. Of 4-bit elements it begins at the byte of
 * the first. */
tcc_value *tcc_amdgcn_descriptor(tcc_amdgcn_lowering *l, const tcc_value *tensor, tcc_value *first,
                                 tcc_value *when);
/* Bytes (of 4-bit elements: elements) from one index of dimension d to the next, as i32, with the
 * launch condition that a buffer reaches over n of them, or over the whole dimension. d -1: 0. */
enum { TCC_WHOLE = -1 };
tcc_value *tcc_amdgcn_stride(tcc_amdgcn_lowering *l, const tcc_value *tensor, int d, int64_t n);
/* Adds the launch condition that an index over k and the next tile's are i32. */
void tcc_amdgcn_require_iterations(tcc_amdgcn_lowering *l, tcc_dim k);

/* ---- amdgcn_copy.c --------------------------------------------------------------------- */

/* The units of a tile, and of the stages of a buffer. */
tcc_units tcc_amdgcn_units(const tcc_amdgcn_lowering *l, const tcc_type *tile, int k,
                           int64_t panel);
/* Unit j of a thread: its number along the rows and along k, to which these must still be added. */
typedef struct tcc_unit {
    tcc_value *row, *k;
    int64_t row_add, k_add;
} tcc_unit;
tcc_unit tcc_amdgcn_unit(tcc_amdgcn_lowering *l, const tcc_units *u, int64_t j);
/* Whether this thread has a unit j; NULL: all have. */
tcc_value *tcc_amdgcn_has_unit(tcc_amdgcn_lowering *l, const tcc_units *u, int64_t j);
/* The row in place `place` of a block of the instruction's A. */
tcc_value *tcc_amdgcn_row_at(tcc_amdgcn_lowering *l, int k, tcc_value *place);
/* tile.load of a tile in units. */
void tcc_amdgcn_copy(tcc_amdgcn_lowering *l, tcc_op *op);

/* A load of an operand: what the lanes load, before it is known where the tile begins along k. */
typedef struct tcc_source {
    const tcc_op *op;
    const tcc_value *tensor;
    tcc_units units;
    int own, along_k;      /* dimensions of the tensor, -1: none */
    bool aligned;          /* its rows are multiples of 16 bytes */
    bool early;             /* it begins before the tensor */
    tcc_value *k, *k_bytes; /* first k of the tile; from one k to the next, i32 */
    tcc_value *last;        /* k of the pieces that must not extend beyond the tensor's end, though others may */
} tcc_source;

/* Numbers of k in 16 bytes; how many the last such chunk of the tensor has; and how many it lacks. */
int64_t tcc_amdgcn_chunk(const tcc_source *s);
tcc_value *tcc_amdgcn_rest(tcc_amdgcn_lowering *l, const tcc_source *s);
tcc_value *tcc_amdgcn_missing(tcc_amdgcn_lowering *l, const tcc_source *s);
/* From k = 0 to this k, which may be negative, in bytes. */
tcc_value *tcc_amdgcn_bytes_to(tcc_amdgcn_lowering *l, const tcc_source *s, tcc_value *k);
/* A load of one of a unit's pieces: its offset in the tile (TCC_OUTSIDE: none), its k, and how many of its bytes are
 * beyond its row if it is one of the last; NULL: never any. */
typedef struct tcc_piece {
    tcc_value *offset, *k, *beyond;
} tcc_piece;
/* A 4-bit element, `at` elements from the descriptor's byte on, as an i32. */
tcc_value *tcc_amdgcn_load_half(tcc_amdgcn_lowering *l, tcc_value *descriptor, tcc_value *at, tcc_value *inside);
/* Emits it. */
tcc_value *tcc_amdgcn_load(tcc_amdgcn_lowering *l, const tcc_source *s, tcc_value *descriptor,
                           tcc_value *voffset, tcc_value *soffset);

/* ---- amdgcn_ragged.c ------------------------------------------------------------------- */

/* Loads a piece of a tile that may end beyond the tensor, or that begins early. */
tcc_value *tcc_amdgcn_load_checked(tcc_amdgcn_lowering *l, const tcc_source *s,
                                   tcc_value *descriptor, const tcc_piece *piece);
tcc_value *tcc_amdgcn_load_early(tcc_amdgcn_lowering *l, const tcc_source *s,
                                 tcc_value *descriptor, const tcc_piece *piece);
/* What must be done to the pieces before they are used; NULL: nothing. */
const struct tcc_mending *tcc_amdgcn_mending(tcc_amdgcn_lowering *l, const tcc_source *s, size_t n,
                                             const tcc_piece *pieces);
void tcc_amdgcn_mend(tcc_amdgcn_lowering *l, tcc_parts *parts);

/* ---- amdgcn_stage.c -------------------------------------------------------------------- */

void tcc_amdgcn_put(tcc_amdgcn_lowering *l, tcc_op *op);
void tcc_amdgcn_read(tcc_amdgcn_lowering *l, tcc_op *op);

/* ---- amdgcn_mma.c ---------------------------------------------------------------------- */

extern const tcc_low_vendor tcc_low_amdgcn;
void tcc_amdgcn_mma(tcc_amdgcn_lowering *l, tcc_op *op);

/* ---- amdgcn_tile.c --------------------------------------------------------------------- */

/* Members of tcc_low_vendor. */
bool tcc_amdgcn_plan(tcc_lowering *low, tcc_access *a);
tcc_value *tcc_amdgcn_load_registers(tcc_lowering *low, const tcc_access *a, int64_t number);
void tcc_amdgcn_store_registers(tcc_lowering *low, const tcc_access *a, int64_t number, tcc_value *v);
void tcc_amdgcn_locate(tcc_lowering *low, tcc_gather *g);
tcc_value *tcc_amdgcn_load_one(tcc_lowering *low, const tcc_gather *g, tcc_value *offset, tcc_value *inside);
/* Into registers as they are held, or in units. */
void tcc_amdgcn_tile_load(tcc_amdgcn_lowering *l, tcc_op *op);

#endif

/* amdgcn: what the files of lower-to-amdgcn share: the state of lowering one function.
 *
 * lower_to_amdgcn.c  the pass: waves, parameters, the blocks of the workgroup's code
 * amdgcn_copy.c      operands from memory to registers, and from registers to LDS
 * amdgcn_ragged.c    the tiles ahead of the loop, which may begin before the tensor
 * amdgcn_loop.c      the loop of the product
 * amdgcn_epilogue.c  element-wise ops and stores on the accumulators
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_AMDGCN_H
#define TCC_PASSES_AMDGCN_H

#include "ir/fragment.h"
#include "ir/shared.h"
#include "passes/lowering.h"

enum {
    TCC_BLOCK = 16,             /* rows and columns of a matrix instruction */
    TCC_UNIT_BYTES = 16,        /* that a lane reads from LDS, or writes there, at a time */
    TCC_OUTSIDE = INT32_MIN,    /* an offset (unsigned) that lies in no buffer */
    TCC_BUFFER_MAX = INT32_MAX, /* bytes of a buffer */
    TCC_MAX_LOADS = 64,
    TCC_PLACES = 8 /* of 16 bytes, in a block of transposed rows */
};

/* How an operand goes from memory to LDS. */
typedef enum tcc_copy_kind {
    TCC_COPY_ROWS,       /* contiguous along k: 16 bytes a load, as they are */
    TCC_COPY_TRANSPOSED, /* contiguous along m or n: rows of k are interleaved on the way */
    TCC_COPY_ELEMENTS    /* any strides: element by element */
} tcc_copy_kind;

/* One operand of the product; its rows run along m or n.
 *
 * In LDS a stage is cut along k into panels of `unit` bytes, 16 or 8: k bytes from x on of row r
 * lie at x / unit * panel_bytes + r * unit. Except for transposed ones, rows of the operand that
 * is the instruction's A come in the order in which its lanes want them.
 *
 * A block of 16 transposed rows is 8 places of 16 bytes, two rows each. Lanes that store at a time
 * have every `places`-th of several blocks, which would be in the same banks: place p of block b
 * lies at p ^ b % places instead. */
typedef struct tcc_operand {
    tcc_loc loc;
    const tcc_value *tensor, *buffer;
    tcc_value *const *at; /* the tile's coordinates; along k not the loop's */
    tcc_copy_kind kind;
    unsigned bits;
    int own_dim, k_dim; /* of the tensor; own_dim -1: none */
    int64_t rows, depth;
    int64_t unit, panel_bytes, stage_bytes, offset; /* offset of stage 0 in LDS */
    bool is_a;                                      /* of the matrix instruction */
    bool aligned;                                   /* its rows are multiples of 16 bytes */

    /* What a thread copies in a trip. */
    tcc_rdna_unit of;
    int64_t n_units, n_loads;
    tcc_value *descriptor, *k_bytes;             /* k_bytes: from one k to the next, i32 */
    tcc_value *descriptor_ahead;      /* for the tiles ahead of the loop, where those are others */
    tcc_value *beyond[TCC_MAX_LOADS]; /* of a unit: bytes of it behind the row; or NULL: never */
    tcc_value *voffset[TCC_MAX_LOADS], *k_first[TCC_MAX_LOADS]; /* of a load: its first k */
    tcc_value *write[TCC_MAX_LOADS][TCC_PLACES]; /* of a unit and its places: the address in LDS */
    tcc_value *last_inside;
    int64_t write_offset[TCC_MAX_LOADS];
    tcc_value *row_inside[TCC_MAX_LOADS]; /* ELEMENTS */

    int64_t blocks, places;      /* of 16 rows, that a wave multiplies; 1: none change place */
    int64_t n_reads;             /* after so many blocks places are the same again */
    tcc_value *read[TCC_PLACES]; /* of those blocks: the lane's address in LDS */
} tcc_operand;

/* How the sum is cut where K may be any number. A chunk is the numbers of k in 16 bytes. The loop
 * takes whole chunks from k = 0 on, `main` numbers; the `rest`, 1 to a chunk, lie at the end of the
 * chunk in front of them: k = -1 is K - 1. NULL where rows are aligned: then a chunk is whole, or
 * outside. */
typedef struct tcc_ragged {
    tcc_value *extent, *main, *rest;
    int64_t chunk;
    tcc_value *mask[4]; /* of the words of that chunk */
} tcc_ragged;

typedef struct tcc_amdgcn_lowering {
    tcc_lowering low;
    const tcc_target *target;
    const tcc_wmma *wmma;
    const tcc_fragment *result; /* of wmma */
    tcc_rdna_waves waves;
    bool aligned; /* the variant may require alignment of more than the product's operands */
    tcc_operand operands[2]; /* m's, n's */
    int64_t round;    /* tcc_rdna_round */
    tcc_ragged ragged;
    int64_t k_groups; /* groups of 16 lanes that hold different k of A and B */
    int64_t per_lane; /* results of a lane in a block: neighbours along n */
    bool halves;      /* two 16-bit accumulators share a register */
    tcc_value *lds, *tid, *wave, *lane, *row, *group; /* row: lane % 16, group: lane / 16 */
    tcc_value *wave_first[2];                  /* the wave's first row and column in the tile */
    int64_t block_step[2];                     /* from one of its blocks to the next */
    tcc_value **acc; /* a vec for each block, those of one m together; for two along n of halves */
} tcc_amdgcn_lowering;

/* ---- lower_to_amdgcn.c ----------------------------------------------------------------------- */

void tcc_amdgcn_op(tcc_amdgcn_lowering *l, tcc_op *op);
/* Says which lane of the wave this is: once ahead of the loop and, lest registers keep it through
 * the loop, once behind it. */
void tcc_amdgcn_place_lane(tcc_amdgcn_lowering *l, tcc_value *lane);
/* The place in `acc` of block (m, n) of a wave; (blocks_m, 0): how many there are. */
int64_t tcc_amdgcn_acc_at(const tcc_amdgcn_lowering *l, int64_t m, int64_t n);
tcc_value *tcc_amdgcn_add(tcc_amdgcn_lowering *l, tcc_value *a, tcc_value *b);
tcc_value *tcc_amdgcn_mul(tcc_amdgcn_lowering *l, tcc_value *a, tcc_value *b);
tcc_value *tcc_amdgcn_and(tcc_amdgcn_lowering *l, tcc_value *a, tcc_value *b);
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
void tcc_amdgcn_require_trips(tcc_amdgcn_lowering *l, tcc_dim k);

/* ---- amdgcn_copy.c --------------------------------------------------------------------- */

/* Describes an operand from a tile.load or async.copy of it: `place` 0 is m's, 1 n's. */
void tcc_amdgcn_plan_operand(tcc_amdgcn_lowering *l, int place, const tcc_op *load,
                             const tcc_value *buffer);
/* Makes what its copies and reads need, in front of the loop. */
void tcc_amdgcn_plan_copies(tcc_amdgcn_lowering *l, tcc_operand *o);
/* From k = 0 to this k, which may be negative. */
tcc_value *tcc_amdgcn_bytes_to(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *k);
/* Loads what a lane copies at a time. */
tcc_value *tcc_amdgcn_load(tcc_amdgcn_lowering *l, const tcc_operand *o, tcc_value *descriptor,
                           tcc_value *voffset, tcc_value *soffset);
/* Load i element by element; the tile's first k is `k`. */
tcc_value *tcc_amdgcn_gather(tcc_amdgcn_lowering *l, const tcc_operand *o, int64_t i, tcc_value *k);
/* Writes what the loads gave to the stage of this number. */
void tcc_amdgcn_put(tcc_amdgcn_lowering *l, tcc_operand *o, tcc_value *const *loaded,
                    int64_t stage);

/* ---- amdgcn_ragged.c ------------------------------------------------------------------- */

/* Cuts K, where an operand is not aligned. */
void tcc_amdgcn_cut(tcc_amdgcn_lowering *l);
/* Load i of a tile ahead of the loop, whose first k is `k`, maybe negative. */
tcc_value *tcc_amdgcn_load_ahead(tcc_amdgcn_lowering *l, const tcc_operand *o, int64_t i,
                                 tcc_value *k);
/* What it is to be, of what it gave: without numbers that are not there. */
tcc_value *tcc_amdgcn_mend(tcc_amdgcn_lowering *l, const tcc_operand *o, int64_t i, tcc_value *k,
                           tcc_value *loaded);

/* ---- amdgcn_loop.c --------------------------------------------------------------------- */

/* Lowers the product, from its first load, or its loop, on to its loop, which is returned. */
tcc_op *tcc_amdgcn_product(tcc_amdgcn_lowering *l, tcc_op *first);

/* ---- amdgcn_epilogue.c ----------------------------------------------------------------- */

/* Lowers the element-wise part, from `first` on to the end of its block. */
void tcc_amdgcn_epilogue(tcc_amdgcn_lowering *l, tcc_op *first);

#endif

/* nvvm: what the files of lower-to-nvvm share: the state of lowering one function.
 *
 * lower_to_nvvm.c the pass: grid, parameters, roles, loops
 * nvvm_ring.c     stages, barriers and copies into shared memory
 * nvvm_mma.c      descriptors and wgmma
 * nvvm_epilogue.c element-wise ops and stores on accumulator fragments
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_NVVM_H
#define TCC_PASSES_NVVM_H

#include "passes/lowering.h"

enum { TCC_MAX_BUFFERS = 8 };

/* Stages of one operand in shared memory. A stage is cut along its contiguous dimension into
 * panels of `width` bytes, each panel holding every row: address of row r, byte x of a row =
 * x / width * panel_bytes + r * width + x % width, then swizzled (tcc_swizzle). */
typedef struct tcc_buffer {
    const tcc_value *alloc;
    int64_t offset; /* of stage 0 */
    int64_t stage_bytes, panel_bytes, width, swizzle;
    int contiguous; /* tile dimension */
    int64_t rows, row_elems, elem_bytes;
} tcc_buffer;

/* Who runs the code that is being lowered. */
typedef enum tcc_role { TCC_ROLE_CTA, TCC_ROLE_PRODUCER, TCC_ROLE_CONSUMER } tcc_role;

typedef struct tcc_nvvm_lowering {
    tcc_lowering low; /* tiles of accumulators map to one vec */
    bool aligned;     /* the variant may require alignment of more than the product's operands */

    tcc_buffer buffers[TCC_MAX_BUFFERS];
    int n_buffers;
    int64_t stages, ring_bytes, staged_bytes; /* staged results lie where the stages were */
    int64_t full, empty;                      /* offsets of the barriers */
    int64_t smem_bytes;
    int64_t tx_bytes; /* of the copies since the last commit */
    bool by_tma;      /* the ring is filled by TMA, by one thread; else by many */

    /* Computed once, in front. */
    tcc_value *smem, *tid, *warp;
    tcc_block *init; /* what thread 0 does before all others begin */
    tcc_role role;
} tcc_nvvm_lowering;

/* Lowers one op that is the same for every thread: scalars, control flow, rings, products. */
void tcc_nvvm_op(tcc_nvvm_lowering *l, tcc_op *op);

/* ---- arithmetic ------------------------------------------------------------------------ */

/* Whether the thread is the first of its warpgroup. */
tcc_value *tcc_nvvm_leads_warpgroup(tcc_nvvm_lowering *l);
/* nvvm.barrier `id` of so many threads */
void tcc_nvvm_barrier(tcc_nvvm_lowering *l, int64_t id, int64_t threads);
/* The place in swizzled memory of a byte: bits 4.. are exclusive-ored with bits 7.. */
tcc_value *tcc_nvvm_swizzle(tcc_nvvm_lowering *l, tcc_value *byte, int64_t swizzle);

/* ---- parameters (lower_to_nvvm.c) ------------------------------------------------------- */

/* A tensor map of `tensor` with this box (innermost first) and swizzle in bytes. It needs an
 * address and row pitch that are multiples of 16 bytes: they join the variant's conditions. */
tcc_value *tcc_nvvm_tensormap(tcc_nvvm_lowering *l, const tcc_value *tensor, const int64_t *box,
                              int64_t swizzle);

/* ---- rings (nvvm_ring.c) ----------------------------------------------------------------- */

void tcc_nvvm_plan_memory(tcc_nvvm_lowering *l, tcc_op *grid);
void tcc_nvvm_init_ring(tcc_nvvm_lowering *l);
/* Adds prefetches of every tensor map to what tcc_nvvm_init_ring made; call it last. */
void tcc_nvvm_prefetch_maps(tcc_nvvm_lowering *l);
const tcc_buffer *tcc_nvvm_buffer(const tcc_nvvm_lowering *l, const tcc_value *alloc);
/* Address of iteration i's stage. */
tcc_value *tcc_nvvm_stage(tcc_nvvm_lowering *l, const tcc_buffer *buf, tcc_value *i);
/* async.acquire, copy and commit, from `first` to the commit, which is returned. */
tcc_op *tcc_nvvm_copies(tcc_nvvm_lowering *l, tcc_op *first);
void tcc_nvvm_wait(tcc_nvvm_lowering *l, const tcc_op *op);
void tcc_nvvm_release(tcc_nvvm_lowering *l, const tcc_op *op);

/* ---- products (nvvm_mma.c) ---------------------------------------------------------------- */

/* Registers of one consumer thread that hold a tile of accumulators. */
const tcc_type *tcc_nvvm_accumulator_type(tcc_nvvm_lowering *l);
void tcc_nvvm_mma(tcc_nvvm_lowering *l, const tcc_op *op);
void tcc_nvvm_mma_wait(tcc_nvvm_lowering *l, const tcc_op *op);

/* ---- epilogue (nvvm_epilogue.c) ------------------------------------------------------------ */

/* Lowers the element-wise part of a consumer, from `first` on to the end of its block. */
void tcc_nvvm_epilogue(tcc_nvvm_lowering *l, tcc_op *first);

#endif

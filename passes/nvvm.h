/* nvvm: what the files of lower-to-nvvm share: the state of lowering one function.
 *
 * lower_to_nvvm.c the pass: the table of ops, control flow, roles
 * nvvm_ring.c     stages, barriers and copies by the copy engine
 * nvvm_elements.c copies of threads, element by element
 * nvvm_chunks.c   copies of threads: waited for in groups, or through registers
 * nvvm_mma.c      descriptors and wgmma
 * nvvm_warps.c    how warps hold what they multiply, and mma.sync
 * nvvm_wmma.c     fragments that only wmma knows
 * nvvm_tile.c     how warps hold tiles; loads and stores
 * nvvm_read.c     from stages to registers, and back
 * nvvm_send.c     results on their way through shared memory
 * nvvm_words.c    rows that begin anywhere in a word, stored in aligned words
 * nvvm_draw.c     numbers that one thread draws for all
 *
 * Each op is lowered by its operands, attributes and types, and by the threads that run it; what
 * cannot be lowered is refused (TCC_LOW_REFUSE).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_NVVM_H
#define TCC_PASSES_NVVM_H

#include "ir/layout.h"
#include "ir/machine.h"
#include "ir/shared.h"
#include "passes/families.h"
#include "passes/lowering.h"

/* Who runs the code that is being lowered. */
typedef struct tcc_role {
    const tcc_op *op; /* async.role; NULL: the whole CTA, before there are roles */
    int64_t first_warp, warps;
    int64_t barrier; /* named barrier of all its warps; those of its warpgroups follow */
    bool one;        /* one thread of them */
} tcc_role;

/* An MMA that was started: what its result was and, in the block where it was, A's registers. */
typedef struct tcc_started {
    const tcc_value *result;
    const tcc_block *block; /* of the new body */
    size_t n_words;
    tcc_value **words;
} tcc_started;

/* Which thread copies which chunks of a tile, determined only by the tile, its tensor and its
 * stage. */
typedef struct tcc_units {
    tcc_scalar elem;
    int64_t panel_width, elem_bytes, elems, bytes; /* of a chunk: elems, bytes */
    int64_t rows, beside, at_once, n_beside; /* rows of the tile in the tensor; chunks beside each other and rows of
                                                all threads; how often they take chunks of a row */
    bool transposed; /* rows of the tensor are not lines of the stage */
    int contiguous;  /* the tile's dimension that runs through a line of the stage; of fragments that wmma has loaded
                        this is all that is known (nvvm_wmma.c) */
} tcc_units;

typedef struct tcc_nvvm_lowering {
    tcc_lowering low; /* a tile becomes one vec or, where warps multiply registers, one for each fragment */
    const tcc_target *target;
    tcc_value *smem, *tid, *warp; /* made once, in front */
    tcc_block *init;              /* what thread 0 does before all others begin */
    bool begun;                   /* all threads know that `init` has been done */
    int64_t threads;              /* of the CTA */
    bool follows, leads;          /* another step, which may overlap with it */
    const tcc_op *loads;          /* the op with which the last loads of a CTA begin; NULL: not known */
    tcc_role role;
    TCC_VEC(tcc_started) started; /* not known to have ended */
    TCC_VEC(const tcc_units *) units; /* the units in which tiles are on their way to stages */
} tcc_nvvm_lowering;

/* The threads of the role. */
static inline int64_t tcc_nvvm_threads(const tcc_nvvm_lowering *l)
{
    return l->role.warps * TCC_WARP_LANES;
}

/* Lowers the ops of a block. */
void tcc_nvvm_block(tcc_nvvm_lowering *l, tcc_block *block);

/* The number of the thread's warpgroup in its role. */
tcc_value *tcc_nvvm_warpgroup(tcc_nvvm_lowering *l);
/* Whether the thread is the first of its warpgroup. */
tcc_value *tcc_nvvm_leads_warpgroup(tcc_nvvm_lowering *l);
/* All warps of the role wait for each other; refused where they do not all run the op. */
void tcc_nvvm_meet(tcc_nvvm_lowering *l, const tcc_op *op);
/* nvvm.barrier `id` for this many threads */
void tcc_nvvm_barrier(tcc_nvvm_lowering *l, tcc_value *id, int64_t threads);
/* The place in swizzled memory of a byte: bits 4.. are exclusive-ored with bits 7.. */
tcc_value *tcc_nvvm_swizzle(tcc_nvvm_lowering *l, tcc_value *byte, int64_t swizzle);
/* A tensor map of `tensor` with this box (innermost first, as many as rank; the tensor's further
 * dimensions have one element) and swizzle in bytes. It needs an address and row pitch that are multiples
 * of 16 bytes: they join the conditions of launch. */
tcc_value *tcc_nvvm_tensormap(tcc_nvvm_lowering *l, const tcc_value *tensor, unsigned rank,
                              const int64_t *box, int64_t swizzle);

/* ---- rings (nvvm_ring.c) ----------------------------------------------------------------- */

/* The op that made a buffer, if it has a place and such elements and panels as its user takes; NULL, refused, when it
 * has not. */
const tcc_op *tcc_nvvm_buffer(tcc_nvvm_lowering *l, const tcc_op *user, const tcc_value *buffer);
/* Address of iteration i's stage. */
tcc_value *tcc_nvvm_stage(tcc_nvvm_lowering *l, const tcc_op *alloc, tcc_value *i);
void tcc_nvvm_ring(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_acquire(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_copy(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_commit(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_wait(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_release(tcc_nvvm_lowering *l, tcc_op *op);
/* async.copy by all threads of the role, of up to 16 bytes each at a time; tile.load of a tile without a layout, in the
 * same chunks, and async.put of it (nvvm_chunks.c). */
void tcc_nvvm_copy_in_groups(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc, tcc_value *i);
void tcc_nvvm_load_chunks(tcc_nvvm_lowering *l, tcc_op *load);
void tcc_nvvm_put(tcc_nvvm_lowering *l, tcc_op *op);
/* async.copy by all threads of the role, element by element (nvvm_elements.c). */
void tcc_nvvm_copy_elements(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc, tcc_value *i);
/* The coordinates of an async.copy, in the new function. */
void tcc_nvvm_coordinates(tcc_nvvm_lowering *l, const tcc_op *copy, unsigned rank, tcc_value **out);
/* The same for all that are alike. */
const tcc_units *tcc_nvvm_units(tcc_nvvm_lowering *l, const tcc_units *u);
/* The tile dimension that is contiguous in a buffer; the tensor dimension along which tile dimension d runs, -1 for
 * none; the number of the thread in its role. */
int tcc_nvvm_contiguous(const tcc_op *alloc);
int tcc_nvvm_tensor_dim(const tcc_op *copy, int d);
tcc_value *tcc_nvvm_thread(tcc_nvvm_lowering *l);
/* Makes what thread 0 has initialised visible to all, before the first role. */
void tcc_nvvm_end_init(tcc_nvvm_lowering *l);
/* Its initialised barriers are visible to the copy engine and other CTAs after the next
 * synchronization. */
void tcc_nvvm_publish_barriers(tcc_nvvm_lowering *l);
/* Adds prefetches of every tensor map to what thread 0 does; call it last. */
void tcc_nvvm_prefetch_maps(tcc_nvvm_lowering *l);

/* ---- numbers that are drawn (nvvm_draw.c) ------------------------------------------------ */

void tcc_nvvm_draw(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_put_word(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_commit_word(tcc_nvvm_lowering *l, tcc_op *op);
/* Arrives for those who have read a word. */
void tcc_nvvm_give_word_back(tcc_nvvm_lowering *l, const tcc_op *release, tcc_value *empty);
/* Whether those who run op may read stages of its ring: all threads of a role, or of words one; false: refused. */
bool tcc_nvvm_may_read(tcc_nvvm_lowering *l, const tcc_op *op);
/* The CTAs of a ring's cluster; 1 where there is none. */
int64_t tcc_nvvm_ctas_of(const tcc_op *ring);
/* The full barrier of an op's ring and iteration. */
tcc_value *tcc_nvvm_full_barrier(tcc_nvvm_lowering *l, const tcc_op *op);
void tcc_nvvm_read_word(tcc_nvvm_lowering *l, tcc_op *op);

/* ---- clusters (nvvm_cluster.c) ----------------------------------------------------------- */

void tcc_nvvm_cluster_barrier(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_contribute(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_collect(tcc_nvvm_lowering *l, tcc_op *op);

/* ---- MMAs (nvvm_mma.c) ------------------------------------------------------------------- */

void tcc_nvvm_mma(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_mma_wait(tcc_nvvm_lowering *l, tcc_op *op);
/* The current block ends: what reads registers of A has been waited for in it. */
void tcc_nvvm_end_block(tcc_nvvm_lowering *l);

/* ---- products of warps (nvvm_warps.c) -------------------------------------------------------- */

/* How a tile that warps multiply in registers is cut into vecs: one for each fragment. */
void tcc_nvvm_cut_in_fragments(tcc_nvvm_lowering *l, const tcc_type *tile, tcc_held *held);
void tcc_nvvm_mma_sync(tcc_nvvm_lowering *l, tcc_op *op);

/* ---- fragments that only wmma knows (nvvm_wmma.c) ------------------------------------------------ */

/* Loads a fragment of a tile held for A or B, from lines at an address, `stride` elements apart, which run along
 * dimension `contiguous` of the tile. */
tcc_value *tcc_nvvm_wmma_load(tcc_nvvm_lowering *l, const tcc_type *tile, tcc_value *address, int contiguous,
                              int64_t stride);
/* Says that a tile's n fragments were loaded so. */
void tcc_nvvm_wmma_set(tcc_nvvm_lowering *l, const tcc_value *tile, size_t n, tcc_value *const *parts, int contiguous);
/* Whether both operands of a product are known to have been loaded; and a product of fragments of theirs. */
bool tcc_nvvm_wmma_is_loaded(tcc_nvvm_lowering *l, const tcc_op *mma);
tcc_value *tcc_nvvm_wmma_multiply(tcc_nvvm_lowering *l, const tcc_op *mma, tcc_value *a, tcc_value *b, tcc_value *c);
/* Members of tcc_low_vendor. */
void tcc_nvvm_load_opaque(tcc_lowering *low, const tcc_op *op, const tcc_held *held, tcc_value *base, int64_t pitch);
void tcc_nvvm_store_opaque(tcc_lowering *low, const tcc_op *op, const tcc_held *held, tcc_value *base, int64_t pitch);

/* ---- tiles (nvvm_tile.c) ----------------------------------------------------------------- */

extern const tcc_low_vendor tcc_low_nvvm;
/* The element of half a byte at `at`, an i64; 0 where it is not inside. */
tcc_value *tcc_nvvm_load_half(tcc_lowering *low, tcc_scalar elem, tcc_value *base, tcc_value *at, tcc_value *inside);

/* ---- reading (nvvm_read.c) --------------------------------------------------------------- */

void tcc_nvvm_read(tcc_nvvm_lowering *l, tcc_op *op);
/* async.put of a tile with a layout. */
void tcc_nvvm_put_registers(tcc_nvvm_lowering *l, tcc_op *op);
/* async.write to a buffer whose columns are contiguous. */
void tcc_nvvm_write_columns(tcc_nvvm_lowering *l, tcc_op *op);

/* ---- stores in words (nvvm_words.c) -------------------------------------------------------- */

/* What is stored: elements from an address on, where `inside` holds. */
typedef struct tcc_words {
    tcc_value *base, *inside;
    tcc_scalar elem;
} tcc_words;

/* The elements of a word. */
int64_t tcc_nvvm_in_word(tcc_scalar elem);
/* How many elements precede the first aligned word, from the one at `offset`, an i64, and `disp` on. */
tcc_value *tcc_nvvm_skip(tcc_lowering *low, const tcc_words *w, tcc_value *offset, int64_t disp);
/* Stores a word, which is aligned there, or those of its elements that are in the row: it begins in column `col`, and
 * the row has `room`. */
void tcc_nvvm_store_word(tcc_lowering *low, const tcc_words *w, tcc_value *word, tcc_value *offset, int64_t disp,
                         tcc_value *col, tcc_value *room);
/* Stores the first elements of a row's first word: so many as `skipped` is more than `least`. */
void tcc_nvvm_store_skipped(tcc_lowering *low, const tcc_words *w, tcc_value *word, tcc_value *offset, int64_t disp,
                            tcc_value *skipped, tcc_value *least);

/* ---- sending (nvvm_send.c) --------------------------------------------------------------- */

void tcc_nvvm_write(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_publish(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_send(tcc_nvvm_lowering *l, tcc_op *op);
void tcc_nvvm_send_wait(tcc_nvvm_lowering *l, tcc_op *op);

#endif

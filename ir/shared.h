/* shared: how much shared memory the stages of a buffer and the barriers of a ring take, and where.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_SHARED_H
#define TCC_IR_SHARED_H

#include "ir/ir.h"

/* Bytes of a panel that holds every row; `width` of a row are contiguous. */
typedef struct tcc_panels {
    int64_t width, rows, panel_bytes, n;
    int64_t stage_bytes; /* from one stage to the next */
} tcc_panels;

/* The division of a buffer into panels, from only its type and attributes: of async.alloc, or of a tile.load that fills
 * one stage. */
tcc_panels tcc_panels_of(const tcc_op *op);

/* Bytes of a line of a panel, by the attributes of async.alloc or of the tile.load that goes there. */
int64_t tcc_panel_width(const tcc_attrs *attrs);

/* Shared memory of a stage for an operand or a staged result of this many bytes. */
int64_t tcc_stage_bytes(int64_t bytes);
/* Columns of a buffer whose rows are whole units of a panel; and of a buffer through which warps exchange a tile with
 * this many columns, where consecutive rows begin in different banks. opaque: of a fragment with an unknown layout. */
int64_t tcc_whole_columns(int64_t cols, unsigned bits);
int64_t tcc_exchange_columns(int64_t cols, unsigned bits, bool opaque);
/* Shared memory that such a buffer takes. */
int64_t tcc_exchange_bytes(int64_t rows, int64_t columns, unsigned bits);
/* Shared memory of the barriers of a ring with this many stages. */
int64_t tcc_ring_bytes(int64_t stages);
/* Whether the full and empty states of a ring's stages are tracked by mbarriers. */
bool tcc_has_mbarriers(const tcc_op *ring);
/* Whether a ring's stages are filled by groups of threads' copies. */
bool tcc_is_of_groups(const tcc_op *ring);
/* Whether roles take turns with a ring: it has no buffers. */
bool tcc_is_of_turns(const tcc_op *ring);
/* Whether a ring's stages are words, which threads read by themselves. */
bool tcc_is_of_words(const tcc_op *ring);
/* Roles that read such a ring's words, and how many arrivals give a stage back: one of each warp, or of the one thread
 * of a role that reads. */
typedef struct tcc_readers {
    int64_t roles, arrivals;
} tcc_readers;
tcc_readers tcc_readers_of(const tcc_op *ring);
/* What async.alloc or async.ring takes, in bytes, from its attribute `offset` on; 0 for other ops.
 * For async.ring that is a full and an empty barrier for each stage, if it has any. */
int64_t tcc_shared_bytes(const tcc_op *op);
/* Where the last of f's ends. */
int64_t tcc_shared_end(const tcc_func *f);

#endif

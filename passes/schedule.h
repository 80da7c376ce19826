/* schedule: how a kernel is computed. A function carries it as attributes, so that a user, a pass
 * or a test sets it in the same way; choose-schedule completes and checks it. ir/schedule_keys.def
 * has the keys; every key but `tile` is a field here.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_SCHEDULE_H
#define TCC_PASSES_SCHEDULE_H

#include "ir/fragment.h"
#include "ir/ir.h"
#include "ir/shared.h"
#include "ir/target.h"

/* Words of the keys `consumers`, `operands`, `producer`, `epilogue`, `raster` and `persistent`, in their order. */
typedef enum tcc_sharing {
    TCC_CONSUMERS_COOPERATIVE, /* each warpgroup has its rows of a tile */
    TCC_CONSUMERS_PINGPONG     /* a tile is one warpgroup's, the next another's */
} tcc_sharing;
typedef enum tcc_order {
    TCC_OPERANDS_IN_ORDER,
    TCC_OPERANDS_SWAPPED /* m is the innermost index of the result */
} tcc_order;
typedef enum tcc_producer {
    TCC_PRODUCER_NONE,     /* the consumers copy as well */
    TCC_PRODUCER_WARP,     /* one warp after the consumers */
    TCC_PRODUCER_WARPGROUP /* one warpgroup, which releases its registers to the consumers */
} tcc_producer;
typedef enum tcc_storing {
    TCC_STORING_INTERLEAVED, /* straight from registers, chunk by chunk */
    TCC_STORING_TMA,
    TCC_STORING_WORDS /* by threads, from shared memory: neighbours in neighbouring lanes */
} tcc_storing;

typedef enum tcc_raster {
    TCC_RASTER_GROUPED, /* rows of tiles in groups, down a group first */
    TCC_RASTER_ROW,
    TCC_RASTER_COLUMN,
    TCC_RASTER_HILBERT
} tcc_raster;
typedef enum tcc_persistence {
    TCC_PERSISTENT_NONE,
    TCC_PERSISTENT_STATIC,
    TCC_PERSISTENT_DYNAMIC /* tiles are drawn one by one */
} tcc_persistence;
/* Numbers of tiles that are passed from the thread that draws them, and the memory of each. */
enum { TCC_DRAWN_STAGES = 2, TCC_DRAWN_BYTES = 8 };

typedef struct tcc_schedule {
    const tcc_target *target;
    int64_t m, n, k; /* tile of one CTA, in elements */
    int64_t stages;
    int64_t warpgroups; /* that multiply */
    tcc_sharing consumers;
    tcc_order operands;
    tcc_producer producer;
    int64_t swizzle;     /* bytes at most; 0 for none */
    tcc_storing epilogue; /* of results */
    int64_t staging;     /* columns of results staged at a time; 0: all */
    int64_t strips;      /* of this many columns, that are staged at a time */
    int64_t group;       /* tiles of m taken together */
    tcc_raster raster;
    int64_t cluster_m, cluster_n; /* CTAs along m and n that share loads */
    int64_t cluster_k;            /* CTAs along k that share a sum */
    tcc_persistence persistent;
    int64_t split;       /* parts of a sum */
    int64_t warps;       /* warps that multiply registers; else 0 */
    tcc_instr instr;     /* the instruction by which they multiply */
    int64_t waves, wave; /* RDNA: waves of a workgroup, lanes of a wave; else 0 */
    /* Additional to those of one sum: MMAs of an iteration, tiles of A, of B. */
    int64_t more_sums, more_a, more_b;
    bool streams;         /* passes/cascade.h: few copies fill a stage */
    int64_t own_a, own_b; /* tiles that consumers compute and multiply from stages of their own */
} tcc_schedule;

/* Stages that tiles which consumers compute go through: one is filled while the other is multiplied. */
enum { TCC_OWN_STAGES = 2 };

/* The schedule of a function that choose-schedule has completed, keys that mean nothing on the target
 * left out. */
tcc_schedule tcc_schedule_of(const tcc_func *f);
/* Whether it is one that choose-schedule lets through, as far as shapes go: attributes can be
 * written by hand. */
bool tcc_schedule_is_valid(const tcc_schedule *s);
/* Writes it back, names of m, n and k as given. */
void tcc_schedule_set(tcc_func *f, const tcc_schedule *s, const char *m, const char *n,
                      const char *k);

/* How many CTAs the function's key `cluster` has along an index. */
int64_t tcc_schedule_cluster_of(const tcc_func *f, const char *index);

const char *tcc_producer_name(tcc_producer p);

int64_t tcc_schedule_threads(const tcc_schedule *s);
int64_t tcc_schedule_producer_threads(const tcc_schedule *s);
/* The swizzle, of at most this many bytes, whose panels divide a row of `bytes`; 0 for none. */
int64_t tcc_swizzle_of(int64_t bytes, int64_t widest);
/* Of a tile along dimensions row and col of a tensor, -1 for none: the tile's dimension whose elements are neighbours
 * in memory, or -1. */
int tcc_contiguous_of(const tcc_type *tensor, int row, int col);
/* Whether TMA can store such a tile of n columns. */
bool tcc_can_store_by_tma(const tcc_type *tensor, int row, int col, int64_t n);
/* The same by threads, in aligned words of rows that begin anywhere. */
bool tcc_can_store_in_words(const tcc_type *tensor, int row, int col, int64_t n);
/* How a schedule's tiles of n columns are stored there, if there is room: by TMA where that may be, since all is aligned.
 */
tcc_storing tcc_storing_of(const tcc_schedule *s, const tcc_type *tensor, int row, int col, int64_t n, bool aligned);
/* Rows of a tile that a warpgroup takes, and how many roles take whole tiles. */
int64_t tcc_schedule_rows(const tcc_schedule *s);
int64_t tcc_schedule_turns(const tcc_schedule *s);
/* Accumulators that one consumer thread holds, of all sums. */
int64_t tcc_schedule_accumulators(const tcc_schedule *s);
/* Registers with which each of this many threads is launched. */
int64_t tcc_launched_registers(const tcc_target *t, int64_t threads);
/* Registers that every thread may have if all have as many. */
int64_t tcc_schedule_share(const tcc_schedule *s);
/* Registers a consumer thread may have, and in *producer those that a producer thread keeps:
 * with a producer warpgroup setmaxnreg moves registers from it to the consumers (*producer > 0),
 * else every thread gets its share at launch (*producer 0). */
int64_t tcc_schedule_registers(const tcc_schedule *s, const tcc_target *t, int64_t *producer);
/* TMA copies that fill a stage with 16-bit operands, which are contiguous along k, or along m and
 * n. */
int64_t tcc_schedule_copies(const tcc_schedule *s, const tcc_target *t, bool a_along_k,
                            bool b_along_k);
/* With this many, ptxas can keep all coordinates in few registers. */
enum { TCC_FEW_COPIES = 20 };
/* The registers that ptxas reserves in a warpgroup's even share besides the accumulators of an
 * instruction. */
enum { TCC_INSTR_REGISTERS = 28 };
/* Width of one matrix instruction of those that multiply a tile of this many columns, 0 when no number of them side by side
 * makes it up; of the schedule's tile. */
int64_t tcc_schedule_instr_columns(const tcc_schedule *s, const tcc_target *t, int64_t columns);
int64_t tcc_schedule_instr_n(const tcc_schedule *s, const tcc_target *t);

/* ---- warps and waves, which multiply registers (schedule_warps.c) ------------------------------------------- */

/* How they stand over a tile, and how many blocks of their instruction each multiplies, along m and n. */
typedef struct tcc_arrangement {
    int64_t stand[2], blocks[2];
    tcc_mma_block block;
} tcc_arrangement;

/* The arrangement that reads least from shared memory, in the first shape of blocks in which there is one. False when
 * there is none. */
bool tcc_arrange(const tcc_schedule *s, tcc_arrangement *out);

/* ---- RDNA (schedule_rdna.c) -------------------------------------------------------------- */

/* An operand of products on RDNA. */
typedef struct tcc_rdna_operand {
    const tcc_wmma *wmma; /* that multiplies it */
    unsigned bits;        /* of an element */
    int axis;             /* 0: m, 1: n */
    bool computed;        /* elementwise, of what is loaded */
    bool transposed;      /* loaded as it is, and not contiguous along k */
} tcc_rdna_operand;

/* The parameters of a kernel's products on RDNA. */
typedef struct tcc_rdna_product {
    const tcc_target *target;
    size_t n_sums, n_operands;
    const tcc_wmma **sums; /* the instruction of each */
    tcc_rdna_operand *operands;
    unsigned bits;        /* of the widest element of an operand */
    unsigned loaded_bits; /* of the widest element that operands are computed from; 0: none is computed */
} tcc_rdna_product;

/* Depth of what a wave reads from LDS at a time, 16 bytes a lane: one or two instructions'. */
int64_t tcc_rdna_round(const tcc_target *t, const tcc_wmma *wmma, unsigned bits, int64_t wave);
/* The depth in which all sums are multiplied: that of the narrowest elements, which is a multiple of the others'. */
int64_t tcc_rdna_depth(const tcc_rdna_product *p, int64_t wave);
/* What a lane copies to LDS at a time: 16 bytes of a row unchanged or, transposed, `depth` times
 * `cols` neighbours. */
typedef struct tcc_rdna_unit {
    int64_t depth, cols;  /* k, and rows of the operand */
    int64_t loads, words; /* that bring it to registers, and registers of each */
    int64_t n, n_lane;    /* in a tile; that a lane copies, at most */
} tcc_rdna_unit;
tcc_rdna_unit tcc_rdna_unit_of(int64_t threads, int64_t rows, int64_t depth, unsigned bits,
                               bool transposed);
/* The waves that share the elements of a computed operand, `beside` of which have the same rows of it: those that have no
 * columns of k of their own compute the same. */
int64_t tcc_rdna_sharing_waves(const tcc_schedule *s, int64_t beside);
/* Registers that one lane needs, about, and that it may have: a workgroup's waves run together. */
int64_t tcc_rdna_registers(const tcc_schedule *s, const tcc_rdna_product *p);
int64_t tcc_rdna_register_limit(const tcc_schedule *s, const tcc_target *t);
/* Padding between panels of 16 bytes along k: 8 lanes that write 2 rows and 4 panels, or read 8
 * rows of one, then use all 32 banks. */
enum { TCC_RDNA_PAD_BYTES = 32 };

/* ---- warps that multiply registers (schedule_warps.c) -------------------------------------------- */

/* The number that a tile's rows (0) or columns must be a multiple of. */
int64_t tcc_warps_step(const tcc_schedule *s, int d);
/* As which fragment they hold sums; TCC_FRAGMENT_COUNT: as none. */
tcc_fragment_id tcc_warps_sum(const tcc_schedule *s);
bool tcc_warps_hold_opaque(const tcc_schedule *s);
/* Registers that a thread needs at least: for its sums, and what it multiplies at a time. */
int64_t tcc_warps_registers(const tcc_schedule *s, unsigned elem_bits);

/* The schedule in the language's syntax, as --print-schedule shows it. */
void tcc_schedule_print(tcc_str *out, const tcc_func *f, const char *kernel);

#endif

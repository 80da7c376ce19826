/* timeline: what the warps, the copy engine and the tensor cores of one CTA did, and when: in the timed order
 * (clock.h), or measured on a GPU (replay.h). record.c fills it in, timeline.c writes it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_TIMELINE_H
#define TCC_INTERP_TIMELINE_H

#include "interp/interp.h"

/* An mbarrier: a stage has one on which its copies complete, and may have another on which it is
 * given back. */
typedef struct tcc_timed_barrier {
    int64_t address;
    bool of_copies;
    int64_t empty;  /* address of the one that releases the stage; -1: unknown */
    uint32_t fills; /* phases in which copies completed on it */
} tcc_timed_barrier;

/* Which phase of a stage, by the barrier of its copies: -1 for none. */
typedef struct tcc_stage_use {
    int barrier;
    uint32_t fill;
} tcc_stage_use;

typedef enum tcc_wait_kind {
    TCC_WAIT_MBARRIER, /* which: number of the barrier; fill: completed waits for it before */
    TCC_WAIT_BARRIER,  /* which: a named barrier's number, -1 for the cluster's */
    TCC_WAIT_MMAS,
    TCC_WAIT_STORES,
    TCC_WAIT_COPIES, /* of the warp's threads */
    TCC_WAIT_REGISTERS,
    TCC_WAIT_OPERANDS, /* of an op that needs what a load has not brought yet */
    TCC_WAIT_KINDS
} tcc_wait_kind;

typedef struct tcc_timed_wait {
    tcc_wait_kind kind;
    unsigned warp;
    uint64_t begin, end;
    int which;
    uint32_t fill;
    tcc_loc loc;
} tcc_timed_wait;

typedef enum tcc_part { TCC_PROLOGUE, TCC_MAIN_LOOP, TCC_EPILOGUE } tcc_part;

/* A warp's time in one part of the kernel. */
typedef struct tcc_timed_part {
    tcc_part part;
    unsigned warp;
    uint64_t begin, end;
} tcc_timed_part;

typedef struct tcc_timed_copy {
    const char *tensor;
    bool load;
    bool own; /* by this CTA's engine, for its warp; else by that of another of its cluster */
    unsigned warp;
    int64_t address, bytes; /* in shared memory */
    uint64_t issue, begin, transferred, end; /* measured: only when it was issued, and when a warp knew of its end */
    tcc_stage_use use;
    tcc_loc loc;
} tcc_timed_copy;

/* An MMA, or, measured, all of a group: from when they have been issued until a warp knew of their end. */
typedef struct tcc_timed_mma {
    unsigned group; /* warpgroup */
    int64_t n;
    uint64_t cycles; /* of the tensor cores, at least */
    uint64_t issue, begin, end;
    tcc_stage_use use;
    tcc_loc loc;
} tcc_timed_mma;

/* A phase of an mbarrier that has completed. */
typedef struct tcc_timed_phase {
    int barrier;
    uint32_t phase;
    uint64_t begin, end;
} tcc_timed_phase;

struct tcc_timeline {
    const char *kernel; /* its name */
    int64_t cta;
    unsigned n_warps;
    bool measured;
    double ns;              /* measured: how long it took; else 0 */
    uint64_t cycles;        /* until the last warp has ended */
    uint64_t tensor_cycles; /* cycles in which the tensor cores work */
    TCC_VEC(tcc_timed_barrier) barriers;
    TCC_VEC(tcc_timed_wait) waits;
    TCC_VEC(tcc_timed_part) parts;
    TCC_VEC(tcc_timed_copy) copies;
    TCC_VEC(tcc_timed_mma) mmas;
    TCC_VEC(tcc_timed_phase) phases;
};

/* Chrome's trace events as JSON, one cycle a microsecond: for Perfetto and chrome://tracing. `beside`: events in this
 * form of another timeline of the CTA, measured where t is not and the other way round; NULL: none. */
void tcc_timeline_print(tcc_str *out, const tcc_timeline *t, const char *beside);
/* One line, without its end: cycles, how busy the tensor cores are, what the warps wait for. */
void tcc_timeline_summarize(tcc_str *out, const tcc_timeline *t);

#endif

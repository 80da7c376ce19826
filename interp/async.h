/* async: the async level: rings of stages, copies that land later, pending MMAs.
 *
 * The producer and the consumers are one thread each. An MMA is computed when it starts, and counts
 * as reading its stage and writing its result until async.mma_wait.
 *
 * CTAs of a cluster run concurrently, each with its own stages. A copy to all counts in each of them when it
 * lands there; it is an error if the stage is still in use, or if the CTA has not allocated its stages or has
 * ended.
 *
 * async.c has memory, rings and roles, async_copies.c copies and MMAs, async_results.c barriers of roles and CTAs,
 * and exchanges of tiles.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_ASYNC_H
#define TCC_INTERP_ASYNC_H

#include "interp/tile.h"
#include "ir/cluster.h"

typedef struct tcc_async_stage {
    int64_t owner;    /* iteration that acquired it last, -1: none */
    int64_t released; /* iteration that gave it back last, -1: none */
    size_t started, landed;
    int64_t bytes, landed_bytes; /* awaited, and there; bytes 0: they are not counted */
    bool committed, waited;
    int64_t given_back; /* of a word: by so many roles */
    uint64_t waited_at; /* of a ring of groups: the step of its role at which it last was waited for */
} tcc_async_stage;

typedef struct tcc_async_ring {
    bool made;     /* by the CTA that runs now */
    unsigned ctas; /* CTAs of the cluster that fills its stages; 1: its own CTA fills them */
    tcc_fillers fillers; /* which CTAs fill them */
    tcc_async_stage *stages;
    int64_t n_stages;
    bool meets;                     /* it is filled and emptied by barriers alone */
    bool groups;                    /* it is filled by groups of copies, which are waited for before a barrier */
    const struct tcc_role *reading; /* that has read stages to registers and has not published since */
    bool turns;                     /* they are owned, and nothing else */
    int64_t readers;                /* roles that read its words; 0: it has none */
} tcc_async_ring;

typedef struct tcc_async_buffer {
    tcc_cell *cells;
    size_t stage_cells;
    int64_t n_stages;
    int64_t offset, stage_bytes; /* in shared memory; offset -1: it has no place yet */
    tcc_scalar elem;
    uint64_t *put, *read;      /* of each stage: the step of its role at which it last was, from or to registers */
    unsigned unpublished;      /* the kinds of sends for which it has not been published */
    size_t sends;              /* on their way */
    uint64_t used;             /* the step of its role at which an MMA, or an exchange, last began to read it */
    const struct tcc_role *by; /* whose warps exchange tiles through it */
    tcc_cell *whole;           /* room for a tile of which CTAs copy a part each */
    unsigned *given, *taken;   /* of each stage: how often the cluster had met when it was contributed, and collected */
} tcc_async_buffer;

/* An MMA, by number: the stages that its operands are in; a ring that is NULL: in none. */
typedef struct tcc_async_mma {
    struct {
        const tcc_async_ring *ring;
        int64_t i;
        const tcc_async_buffer *buffer;
    } operands[2];
} tcc_async_mma;

/* An iteration whose copies are a group. */
typedef struct tcc_async_commit {
    const tcc_async_ring *ring;
    int64_t i;
} tcc_async_commit;

/* A buffer on its way to a tensor. */
typedef struct tcc_async_sending {
    tcc_window to;
    tcc_async_buffer *from;
    bool over;
} tcc_async_sending;

struct tcc_role {
    tcc_map words; /* of stages of words: 1 + the iteration that it has waited for, and not given back */
    TCC_VEC(tcc_async_mma) mmas;
    TCC_VEC(tcc_async_sending *) sends; /* in order */
    TCC_VEC(tcc_async_commit) commits;  /* to rings of groups, in order */
    uint64_t met;                       /* the step at which all warps of the role last met */
    unsigned meets;                     /* which completion of the cluster's barrier it waits for, from 1; 0: none */
};

struct tcc_async {  /* of a CTA */
    void **objects; /* ring or buffer of each value */
    TCC_VEC(tcc_async_buffer *) buffers;
    TCC_VEC(tcc_async_ring *) rings;
    tcc_map roles;  /* async.role -> its thread */
    size_t running; /* roles of those that run together which have begun */
    unsigned met;   /* how often the whole CTA has arrived at the cluster's barrier */
    size_t coming;  /* roles of the CTA that have arrived at that barrier since */
};

unsigned tcc_async_ctas(const tcc_exec *x);
/* The state of a CTA of the cluster, and of a thread's own. */
struct tcc_async *tcc_async_of_cta(tcc_exec *x, unsigned rank);
struct tcc_async *tcc_async_of(const tcc_thread *t);
struct tcc_role *tcc_async_role_of(tcc_thread *t);

/* The ring or buffer that an operand is. */
void *tcc_async_operand(tcc_thread *t, const tcc_inst *in, unsigned operand);
/* To how many CTAs' stages goes what a CTA puts into a ring's, and to the n-th of which: words of a cluster to all. */
unsigned tcc_async_n_filled(const tcc_async_ring *r);
unsigned tcc_async_filled(const tcc_thread *t, const tcc_async_ring *r, unsigned n);
/* What operand 0 or 2 of an op is in a CTA of the cluster; NULL, reported, where that is not running. */
void *tcc_async_object_in(tcc_thread *t, const tcc_inst *in, unsigned operand, unsigned rank);
/* The stage of an iteration of a ring, that of operand 0; NULL, reported, when it is not the iteration's. */
tcc_async_stage *tcc_async_stage_of(tcc_thread *t, const tcc_inst *in, const tcc_async_ring *r, int64_t i);
tcc_async_stage *tcc_async_owned_stage(tcc_thread *t, const tcc_inst *in, int64_t i);

/* Whether an iteration's stage has been waited for; of a word, by the role, which has not given it back. */
bool tcc_async_has_waited(tcc_thread *t, const tcc_async_ring *r, const tcc_async_stage *s, int64_t i);

void tcc_async_poison(tcc_async_buffer *b, int64_t stage);
bool tcc_async_overlap(const tcc_async_buffer *a, int64_t i, const tcc_async_buffer *b, int64_t j);
/* Writing to a stage invalidates buffers at the same addresses. */
void tcc_async_clobber(const struct tcc_async *async, const tcc_async_buffer *b, int64_t i);

/* All warps of the role have synchronized after the step at which a stage was last put, read or
 * waited for. */
bool tcc_async_have_met(tcc_thread *t, const tcc_inst *in, uint64_t step, const char *what);
/* How many threads of a CTA reach op: one, or one for each role that runs concurrently. */
size_t tcc_async_running_with(const tcc_op *op);

#endif

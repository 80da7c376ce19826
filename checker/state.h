/* state: where all warps are, what they know, and what was done to memory.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_STATE_H
#define TCC_CHECKER_STATE_H

#include "checker/program.h"

/* ---- state --------------------------------------------------------------------------------- */

typedef struct tcc_pframe {
    const tcc_pcode *code;
    const tcc_pinst *of; /* NULL: the function's body */
    uint32_t pc, region;
    tcc_lane_mask mask, outer;
    bool may;       /* of a branch: its lanes are not known, and it is taken by all */
    bool busy;      /* of a loop: a branch was taken in this iteration */
    int32_t record;     /* of what the iterations depend on; -1: they are known, or no loop */
    bool by_iterations; /* nothing is known of the index */
    bool known;         /* the iterations are known, but the record is a parent of others */
    int64_t cap;    /* of the index, INT64_MAX for none */
    int64_t lo, step, hi, iter;
    int64_t from, scale; /* there is another iteration when the record's number is more than */
                         /* from + iter * scale */
    int64_t bound, by;   /* the symbol of the bound; what it is divided by */
} tcc_pframe;

/* A number that is only known at run time: from `least` to `most`. */
typedef struct tcc_precord {
    uint32_t symbol;
    int32_t parent; /* it is of the iteration at `parent_at` of loops of that; -1: of the whole kernel */
    int64_t parent_at;
    int64_t least, most;
    int64_t scale;     /* a multiple of those of all loops that asked */
    int64_t compared;  /* the greatest number that it was compared with; INT64_MIN: none */
    bool remainder;    /* a truth: not a condition, but the remainder of the symbol's number (remainders.c) */
    bool truth, known; /* truth: a condition, 0 or 1; known: that of a loop of known iterations */
    const tcc_op *op;  /* the op that asked first */
    uint32_t asked;    /* the symbol that it asked for */
} tcc_precord;

/* What is known of a number that is the same in all iterations of the loops around (counts.c). */
typedef struct tcc_pcount {
    uint32_t symbol;
    int64_t least, most;
} tcc_pcount;

/* What was known of a number before it was forgotten (past.c). */
typedef struct tcc_ppast {
    uint32_t symbol, around;
    int64_t least, most;
} tcc_ppast;

/* Where a loop is, in the units of its record. */
static inline int64_t tcc_p_position(const tcc_pframe *f)
{
    return f->from + f->iter * f->scale;
}

/* Registers that MMAs read A from. */
typedef struct tcc_pa {
    const tcc_op *op; /* the last of these ops */
    uint32_t group;   /* the group of that op */
    int32_t number;
} tcc_pa;

typedef struct tcc_pwarp {
    tcc_pframe frames[TCC_P_DEPTH];
    uint32_t depth; /* 0: finished */
    tcc_lane_mask mask;
    uint32_t progress; /* heads of loops passed */
    uint32_t committed, waited, last_group; /* MMA groups: closed; known to have ended; the last with any MMA */
    tcc_lane_mask accessed; /* shared memory since their last proxy fence */
    tcc_lane_mask fencing;  /* that ran fences, for what they accessed, since they met; */
    uint32_t fenced;        /* up to which clock others had done so when they met */
    uint32_t synced;        /* its clock up to which its lanes come after each other's accesses */
    uint32_t in_step;       /* its clock up to which its lanes come after each other's waits, if some lanes are apart */
    tcc_lane_mask unsynced, apart; /* that have accessed memory, and waited, since then */
    uint32_t bulk_groups, bulk_lane;
    uint32_t met_groups; /* of its threads' copies, up to which its lanes know of each other's */
    int32_t registers;
    int32_t waits_at; /* named barrier, -1 none */
    uint32_t arrived; /* at the cluster's barrier, in phase arrived - 1, with no wait since; 0: it has not */
    bool open_group, open_bulk, any_fence, released;
    bool loaded_word; /* with no arrival at the cluster's scope since */
    bool past; /* calm.c: it names mbarriers no more, and goes on when no other can */
    uint64_t mmas; /* what was issued since the last commit, as a hash */
    uint64_t touched;  /* registers of MMAs that other ops read since the last wgmma.fence */
    unsigned n_a;
    int32_t last_a; /* number of the last that there was */
    tcc_pa a[TCC_P_A]; /* operands in registers that are not waited for; last, for few are copied */
} tcc_pwarp;

typedef struct tcc_pbarrier {
    int64_t address;
    uint32_t expected, pending, phase;
    int64_t bytes, issued; /* of this phase: expected, and of copies on their way */
    uint32_t init_warp, init_clock, fence_clock; /* 0: not fenced */
    tcc_lane_mask init_lane;
    uint32_t last_copy; /* phase + 1 of the last copy; 0 none */
    uint32_t last_afar; /* phase + 1 of the last arrival by another CTA, which this one's end must come after; 0 none */
    bool words_from_afar; /* another CTA has stored a word that completes on it */
    bool odd;           /* rotate.c: its phase's parity is the other one */
} tcc_pbarrier;

/* A warp's last wait for an mbarrier that passed. */
typedef struct tcc_pwait {
    uint32_t clock; /* 0: there was none */
    uint32_t phase; /* for which phase + 1, 0 for the one before */
} tcc_pwait;

typedef struct tcc_pnamed {
    int64_t threads, arrived;
    uint32_t phase;
} tcc_pnamed;

/* MMAs that a warpgroup has committed. */
typedef struct tcc_pgroup {
    uint32_t number;
    uint64_t mmas;
    uint32_t clocks[TCC_P_MAX_STEPS]; /* the steps that come before */
} tcc_pgroup;

/* The last setmaxnreg of a warpgroup. */
typedef struct tcc_presize {
    const tcc_op *op;
    uint32_t clocks[TCC_WARPGROUP_WARPS]; /* of each warp, when it ran it; 0: not yet */
} tcc_presize;

typedef enum tcc_pmark { TCC_P_NEVER, TCC_P_ORDINARY, TCC_P_ASYNC, TCC_P_BARRIER } tcc_pmark;

/* Lanes that know more than all of their warp do. */
typedef struct tcc_ppart {
    unsigned warp;
    tcc_lane_mask lanes;
    uint32_t synced;
} tcc_ppart;

typedef struct tcc_patom {
    uint32_t clock, readers, print;
    uint16_t writer;
    uint8_t mark;
    const tcc_op *by; /* the op that wrote it last */
} tcc_patom;

/* Numbers along a dimension: from + least, up to from + end. */
typedef struct tcc_prange_of {
    tcc_pvalue from;
    int64_t least, end;
} tcc_prange_of;

/* An access to a tensor. */
typedef struct tcc_pglobal {
    const tcc_op *by;
    uint32_t tensor, map; /* the parameters: of the tensor, 1 +; of a copy */
    uint32_t warp, actor, clock;
    tcc_lane_mask lanes;
    bool write, async, passed; /* passed: it was in another iteration of a loop */
    const struct tcc_pinst *sent; /* sent.c: by which it was; NULL: it is not of that kind; */
    bool pending;                 /* its thread has not waited until it was written: clock is its group */
    uint32_t rank;             /* 0: it may be anywhere */
    tcc_prange_of at[TCC_P_RANK];
} tcc_pglobal;

/* A number in shared memory. */
typedef struct tcc_pword {
    int64_t address;
    tcc_pvalue value;
} tcc_pword;

struct tcc_pstate {
    tcc_pwarp *warps;
    tcc_pbarrier *barriers;
    tcc_pwait *waits;   /* of each barrier and warp */
    tcc_pgroup *groups; /* TCC_P_GROUPS for each warpgroup */
    tcc_presize *resizes;
    tcc_pvalue *slots; /* of each warp */
    uint32_t *clocks;
    uint64_t *versions; /* of the clocks of each entity: equal ones are of equal clocks */
    tcc_patom *atoms;
    tcc_ppart *parts; /* their clocks come after those of all other entities */
    tcc_pglobal *globals;
    uint32_t *reaches; /* of each CTA, for each warp: its clock when it last wrote there; 0: it has not */
    unsigned room, globals_room; /* for atoms, and for accesses to tensors */
    tcc_pnamed named[TCC_P_NAMED];
    tcc_precord records[TCC_P_RECORDS];
    tcc_pcount counts[TCC_P_COUNTS];
    tcc_ppast past[TCC_P_COUNTS]; /* states are not told apart by it */
    uint32_t asked[64]; /* 1 + the number of each root that was asked for */
    bool doubtful;      /* of one root two were: this execution may be none */
    tcc_pword words[TCC_P_WORDS];
    unsigned n_words;
    unsigned n_records, n_counts, n_past, n_barriers, n_atoms, n_parts, n_globals;
    bool has_begun;         /* the warp that fills stages */
    uint32_t passed, begun; /* aside.c */
    uint8_t settled;        /* rotate.c: CTAs, a bit each, in which nothing depends on the stage that came next */
    bool calm;              /* calm.c: no warp reaches an mbarrier any more */
    bool known;             /* what follows it was followed */
    uint64_t blocked, asks; /* warps that wait, and that need a choice, a bit each */
    uint32_t waits_for[TCC_P_WARPS]; /* blocked until that entity tells more; ANYTHING: until another warp goes on */
    uint64_t told;          /* common_knowledge.c: warps that are told what others know before they go on, a bit each */
    int64_t turned;         /* by so much indices are greater: the state was rotated */
    uint32_t last;          /* covers.c: the last state on the way that was looked for */
    int chosen;             /* the record of the last choice; -1: it is no longer needed */
    int64_t free_registers[TCC_P_CTAS]; /* of each CTA */
    size_t log_len, n_readers; /* when it was saved: of the lists that all share */
};

/* All of a state but its arrays. */
static inline void tcc_p_copy_numbers(tcc_pstate *to, const tcc_pstate *from)
{
    size_t at = offsetof(tcc_pstate, named);
    memcpy((char *)to + at, (const char *)from + at, sizeof *to - at);
}

typedef struct tcc_pentry {
    const tcc_pinst *in;
    uint32_t warp, clock;
    int32_t barrier; /* of the named or shared-memory ones; -1 none */
    uint32_t phase;
    int64_t number;
    int64_t iteration; /* of the innermost loop of unknown iterations; -1: in none */
} tcc_pentry;

typedef enum tcc_presult {
    TCC_P_NEXT,
    TCC_P_JUMPED,
    TCC_P_HEAD, /* jumped to the head of a loop of unknown iterations */
    TCC_P_BLOCKED,
    TCC_P_CHOICE, /* p->choice must be decided first; then again */
    TCC_P_FAILED
} tcc_presult;

#endif

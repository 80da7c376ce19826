/* model: what the files of the protocol checker share.
 *
 * decode.c   the ops that matter: synchronization, accesses, and the scalars they need
 * named.c    how many named barriers there are
 * value.c    numbers that are known, known up to a period, or only known to be equal
 * memory.c   shared memory in parts that are accessed alike, and who has accessed them
 * global.c   tensors that copies both read and write
 * place.c    where in them an access is
 * lanes.c    what lanes of a warp know apart from the others
 * sync.c     barriers and fences
 * async.c    copies
 * cluster.c  CTAs that are followed together
 * symmetry.c CTAs that do the same, of which one is followed
 * drawn.c    numbers that are drawn, on their way through shared memory; loops that go on while they say so
 * mma.c      MMAs
 * step.c     one warp's next op; control flow
 * runs.c     ops that do not synchronize, done in one step
 * spans.c    loads and stores that are taken for one
 * aside.c    a thread that fills stages, followed as a warp of its own
 * operands.c what MMAs read and copies write, however it is said
 * alike.c    functions that one proof is for
 * module.c   the functions of a module, in threads
 * explore.c  all executions: which warp goes on, numbers of iterations, states seen before
 * rotate.c   what rotates the stages of a ring
 * renames.c  what that makes of mbarriers and bytes
 * rotated.c  states that differ by the stage which comes next
 * sums.c     numbers that wait for a number of iterations
 * common_knowledge.c  what all warps know
 * normal.c   when two states are the same
 * covers.c   and when one stands for another
 * calm.c     states in which no warp will reach an mbarrier again
 * trace.c    errors, and the steps that led there
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_MODEL_H
#define TCC_CHECKER_MODEL_H

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "checker/checker.h"
#include "ir/machine.h"
#include "ir/number.h"
#include "ir/registers.h"
#include "support/gcd.h"

typedef struct tcc_protocol tcc_protocol;
typedef struct tcc_pstate tcc_pstate;

enum {
    TCC_P_DEPTH = 12,   /* of regions that a warp is in */
    TCC_P_RECORDS = 16, /* unknown numbers that matter at a time */
    TCC_P_COUNTS = 8,   /* of which so many may be the same in all iterations of outer loops */
    TCC_P_GROUPS = 12,  /* MMAs of a warpgroup of which something is remembered */
    TCC_P_MAX_ATOMS = 16384,
    TCC_P_RANK = 5,     /* of tensor maps */
    TCC_P_KNOWN_ITERATIONS = 32, /* at most: they are counted one by one */
    TCC_P_TERMS = 16,   /* of the index of an element */
    TCC_P_GLOBALS = 64, /* accesses to tensors that are not waited for */
    TCC_P_PARTS = 4,    /* of a warp, whose lanes know different things */
    TCC_P_A = 64,       /* operands in registers that are not waited for */
    TCC_P_MAX_CHUNKS = 512, /* of 16 bytes, in an MMA's operand */
    TCC_P_MAX_MMAS = 16,    /* whose operands are taken for one; and copies */
    TCC_P_COPY_ALIGN = 128, /* of where a copy begins in shared memory */
    TCC_P_WORDS = 8,    /* of shared memory that hold numbers that were drawn */
    TCC_P_CTAS = 4, /* of a cluster */
    TCC_P_WARPS = 64, /* of all its CTAs, a bit each */
    TCC_P_MAX_STEPS = TCC_P_WARPS + 2,
    TCC_P_BLOCK = 8,           /* clocks, or slots, that are looked at together */
    TCC_P_AT_HEAD = INT32_MAX, /* pc: the loop's test comes next */
    TCC_P_NAMED = TCC_P_CTAS * TCC_NAMED_BARRIERS + 1, /* of each CTA, and the cluster's */
    TCC_P_WINDOW_LOG2 = 18, /* of addresses from a CTA's shared memory to the next one's: as many as descriptors have */
    TCC_P_WINDOW = 1 << TCC_P_WINDOW_LOG2,
    TCC_P_DEAD = 1,            /* delta: of a number that is no longer needed; it is 0 or more */
};

#define TCC_P_NO_SLOT UINT32_MAX
#define TCC_P_FIXED (UINT32_C(1) << 31) /* slots from here on hold numbers that never change */
#define TCC_P_NO_WARP UINT32_MAX
#define TCC_P_ANYTHING UINT32_MAX

/* ---- values (value.c) ------------------------------------------------------------- */

typedef enum tcc_pkind {
    TCC_P_NONE,    /* not yet computed */
    TCC_P_UNKNOWN, /* may differ from lane to lane */
    TCC_P_SYMBOL,  /* min(x, delta) + offset, x being unknown, the same for whoever has symbol v */
    TCC_P_KNOWN,   /* v + n * delta for some n >= 0, the same in all lanes */
    TCC_P_LANES,   /* a number for each lane: v numbers the list */
    TCC_P_REGISTERS, /* of MMAs: v is the last group that accesses them, 0 none */
    TCC_P_DRAWN, /* symbol v, of the number that was drawn in iteration delta of the loop that tests it (drawn.c) */
} tcc_pkind;

/* Of registers: delta. Taken: by an MMA or a loop since the last fence; A: MMAs take their A
 * from them, and offset is its number in the warp. Else offset is n of the MMA that wrote them
 * last, MIXED of several. */
enum { TCC_P_BY_MMA = 1, TCC_P_FENCED = 2, TCC_P_TAKEN = 4, TCC_P_IS_A = 8 };
enum { TCC_P_MIXED = -1 };

typedef struct tcc_pvalue {
    uint8_t kind;
    uint8_t loop;   /* KNOWN: 1 + the frame of the loop whose index it is, plus offset; 0: none */
    uint8_t wraps;  /* KNOWN, with a delta, which divides 2^bits: all of it modulo 2^bits */
    uint8_t room;   /* KNOWN, with a delta: of the bits of its type so many are 0 at the top */
    int32_t offset;
    int64_t v, delta;
} tcc_pvalue;

/* States and tables are compared byte by byte. */
static_assert(sizeof(tcc_pvalue) == 24, "a value has no padding");

static inline tcc_pvalue tcc_p_known(int64_t v)
{
    return (tcc_pvalue){.kind = TCC_P_KNOWN, .v = v};
}

/* Exactly known, and the same in all lanes. */
static inline bool tcc_p_is_exact(const tcc_pvalue *v)
{
    return v->kind == TCC_P_KNOWN && !v->delta;
}

static inline bool tcc_p_is_same(const tcc_pvalue *a, const tcc_pvalue *b)
{
    uint64_t x[3], y[3];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    return !((x[0] ^ y[0]) | (x[1] ^ y[1]) | (x[2] ^ y[2]));
}

/* A value given lane by lane. */
tcc_pvalue tcc_p_lanes(tcc_protocol *p, const int64_t *lanes);
/* The number of a lane; false when it is not exactly known. */
bool tcc_p_lane(const tcc_protocol *p, const tcc_pvalue *v, unsigned lane, int64_t *out);
/* The symbol that stands for op applied to these, some of them symbols. `varies`: the symbol is
 * another one from iteration to iteration. */
tcc_pvalue tcc_p_symbol(tcc_protocol *p, const void *op, const tcc_pvalue *args, unsigned n);
tcc_pvalue tcc_p_index_symbol(tcc_protocol *p, uint32_t iterations, const tcc_pvalue *lo,
                              const tcc_pvalue *step);

/* What stands behind a symbol: (of + add) / by, rounded down, where `of` is no such quotient. */
typedef struct tcc_psymbol {
    uint32_t of;
    int64_t add, by;
    uint64_t roots; /* parameters and the like that it depends on, a bit each */
    bool varies;    /* from iteration to iteration */
    bool counts;    /* is not negative */
    bool data;      /* a number of iterations that is wanted as data, too; */
    bool forgotten; /* states were written as if it were not */
} tcc_psymbol;
const tcc_psymbol *tcc_p_symbol_get(const tcc_protocol *p, int64_t symbol);
/* Its number is wanted as data; false when states were written without what is asked of that. */
bool tcc_p_symbol_is_data(tcc_protocol *p, int64_t symbol);
/* A symbol is more than x when the number that it is of is more than this. */
static inline int64_t tcc_p_symbol_least(const tcc_psymbol *s, int64_t x)
{
    return s->by * (x + 1) - s->add - 1;
}
/* What is not negative, such as a dimension. */
tcc_pvalue tcc_p_count_symbol(tcc_protocol *p, const void *of);
/* A number of which only the remainder by m is asked: from the threshold on, all that have it. */
tcc_pvalue tcc_p_forget(const tcc_protocol *p, tcc_pvalue v, int64_t m);
tcc_pvalue tcc_p_forget_from(tcc_pvalue v, int64_t threshold, int64_t m);
/* A set of numbers of a type that may have wrapped. */
tcc_pvalue tcc_p_wrapped(tcc_pvalue v, tcc_scalar elem);
/* An op on symbols: equal ops on equal symbols give equal numbers, wherever they stand. */
tcc_pvalue tcc_p_of_symbols(tcc_protocol *p, const tcc_op *op, const tcc_pvalue *args);
/* An elementwise op. Comparisons of a loop's index with its bound are step.c's. */
tcc_pvalue tcc_p_compute(tcc_protocol *p, const tcc_op *op, const tcc_pvalue *args);

/* ---- the program (decode.c) -------------------------------------------------------- */

/* What an op gave last. */
typedef struct tcc_pgiven {
    tcc_pvalue args[2], result; /* NONE: nothing yet */
} tcc_pgiven;

enum { TCC_P_GIVEN = 4 };
enum { TCC_P_NAMES = 1, TCC_P_ACCESSES = 2 }; /* what an op does: names mbarriers, accesses shared memory */

/* What an operand of MMAs is, for all that its counter may be (operands.c). */
typedef TCC_VEC(int64_t) tcc_known_bytes;

typedef struct tcc_pinst {
    const tcc_op *op;
    tcc_pgiven *given; /* TCC_P_GIVEN; NULL: its result depends on more than its operands */
    struct tcc_prun *run; /* that it begins; NULL: none */
    uint32_t n_mmas;      /* an MMA: as many behind each other begin with it, of one shape; 0: it is none */
    const tcc_known_bytes *bytes[2]; /* of them, A and B, or of copies: with the first; NULL: they are not known */
    uint32_t counter; /* on which those depend; TCC_P_NO_SLOT: none; */
    int64_t modulus;  /* its remainder by which is asked */
    uint32_t *operands, *results; /* slots */
    struct tcc_pcode *regions;
    uint64_t touches, registers; /* of MMAs, a bit each: read by it; of its result */
    uint64_t a_registers;        /* of its A */
    int64_t n;                   /* its columns; */
    bool mn_major[3];            /* which of its operands 1 and 2 are so */
    uint32_t wanted_twice;       /* operands that tcc_registers_wanted_twice gives */
    bool open;                   /* MMAs in front of it are not committed */
    bool aside;                  /* it is left to the warp that fills stages; */
    bool alone, others;          /* needed by that warp, by the others; */
    bool runs_out; /* a loop: after an iteration in which that warp does nothing none does */
    uint32_t by;                 /* what is left to it is done where this holds */
    uint32_t tensor;             /* that it accesses, and that is followed; 0: none */
    struct tcc_pplace *place;    /* where */
    bool harmless;               /* it accesses nothing else, nor does anything in it */
    bool waits;                  /* it, or something in it, synchronizes */
    bool tests;                  /* a loop that tests what it carries (ir/counting.h); */
    bool counts;                 /* one that only counts; */
    bool data;                   /* one whose number of iterations is wanted as data */
    bool loops;                  /* it is such a loop, of more than a few iterations, or has one in it */
    bool loops_later;            /* one follows in this block */
    uint32_t *dying;             /* slots that are not wanted once the loop has begun */
    unsigned n_dying;
    uint32_t end_slot;           /* what comes behind it in its block has its slots from here on */
    uint8_t does, does_later;    /* calm.c: what it does, or something in it; one that follows in this block */
    bool stays, stays_at_barrier; /* rotate.c: its accesses, its mbarrier, do not depend on a counter; */
    bool tests_bound;            /* a comparison of an index with its loop's bound: it does not depend on one either */
} tcc_pinst;

typedef struct tcc_pslots {
    uint32_t first, end;
} tcc_pslots;

typedef struct tcc_pcode {
    tcc_pinst *insts;
    size_t n;
    uint32_t *args;
    int64_t *moduli;     /* of each argument: 0, or what is asked of it is its remainder by this */
    uint64_t *registers; /* of each argument, a bit */
    size_t n_args;
    uint32_t first_slot, end_slot; /* of everything defined inside; */
    uint32_t end_args;             /* of its arguments; */
    struct tcc_pslots *own;        /* of all of them those that are in none of its regions */
    size_t n_own;
    bool loops;                    /* has such a loop in it */
    size_t later;                  /* the first op behind what has the first of them; SIZE_MAX: none */
} tcc_pcode;

/* Fills p->body and what else is known from reading alone; TCC_ERR_UNSUPPORTED, reported, when
 * there are ops of which nothing is known. */
tcc_status tcc_p_decode(tcc_protocol *p);
/* named.c: named barriers of a CTA: more than the greatest number of one. */
unsigned tcc_p_named_count(const tcc_protocol *p);

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
    bool truth, known; /* truth: a condition, 0 or 1; known: that of a loop of known iterations */
    const tcc_op *op;  /* that asked first, */
    uint32_t asked;    /* for this symbol */
} tcc_precord;

/* What is known of a number that is the same in all iterations of the loops around (counts.c). */
typedef struct tcc_pcount {
    uint32_t symbol;
    int64_t least, most;
} tcc_pcount;

/* Where a loop is, in the units of its record. */
static inline int64_t tcc_p_position(const tcc_pframe *f)
{
    return f->from + f->iter * f->scale;
}

/* Registers that MMAs read A from. */
typedef struct tcc_pa {
    const tcc_op *op; /* the last of them, */
    uint32_t group;   /* its group */
    int32_t number;
} tcc_pa;

typedef struct tcc_pwarp {
    tcc_pframe frames[TCC_P_DEPTH];
    uint32_t depth; /* 0: finished */
    tcc_lane_mask mask;
    uint32_t progress; /* heads of loops passed */
    uint32_t committed, waited;
    tcc_lane_mask accessed; /* shared memory since their last proxy fence */
    tcc_lane_mask fencing;  /* that ran fences, for what they accessed, since they met; */
    uint32_t fenced;        /* up to which clock others had done so when they met */
    uint32_t synced;        /* its clock up to which its lanes come after each other's accesses */
    uint32_t in_step;       /* and after each other's waits, when some are apart */
    tcc_lane_mask unsynced, apart; /* that have accessed memory, and waited, since then */
    uint32_t bulk_groups, bulk_lane;
    uint32_t met_groups; /* of its threads' copies, up to which its lanes know of each other's */
    int32_t registers;
    int32_t waits_at; /* named barrier, -1 none */
    bool open_group, open_bulk, any_fence, released;
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
    uint32_t last_afar; /* and of the last arrival by another CTA, which this one's end must come after */
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
    const tcc_op *by; /* that wrote it last */
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
    unsigned room; /* for atoms */
    tcc_pnamed named[TCC_P_NAMED];
    tcc_precord records[TCC_P_RECORDS];
    tcc_pcount counts[TCC_P_COUNTS];
    uint32_t asked[64]; /* 1 + the number of each root that was asked for */
    bool doubtful;      /* of one root two were: this execution may be none */
    tcc_pword words[TCC_P_WORDS];
    unsigned n_words;
    unsigned n_records, n_counts, n_barriers, n_atoms, n_parts, n_globals;
    bool has_begun;         /* the warp that fills stages */
    uint32_t passed, begun; /* aside.c */
    uint8_t settled;        /* rotate.c: CTAs, a bit each, in which what follows does not depend on the stage that came next */
    bool calm;              /* calm.c: no warp reaches an mbarrier any more */
    bool known;             /* what follows it was followed */
    uint64_t blocked, asks; /* warps that wait, and that need a choice, a bit each */
    uint32_t waits_for[TCC_P_WARPS]; /* blocked until that entity tells more; ANYTHING: until another warp goes on */
    uint64_t told;          /* common_knowledge.c: warps that are told what all others know before they go on, a bit each */
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

/* What MMAs have found in an operand. */
typedef struct tcc_pfound {
    bool any, all;         /* of them found something there; all of it */
    const tcc_op *nothing; /* one that found nothing; NULL: none */
    const tcc_op *last;    /* of those that read it in shared memory; NULL: none */
} tcc_pfound;

/* Protocol: all that does not change from state to state. */
struct tcc_protocol {
    const tcc_func *f;
    tcc_arena *scratch;
    tcc_diag *diag;
    tcc_status status;
    tcc_pcode body;
    uint32_t n_slots, n_fixed;
    TCC_VEC(tcc_pinst) fixed;    /* ops that give the same in every state, as constants and places in a warp do; */
    tcc_pvalue *fixed_values;    /* of each warp: what they give */
    TCC_VEC(uint32_t) registers; /* slots of what MMAs write; */
    TCC_VEC(uint32_t) waiting;   /* of what waits for a number of iterations */
    int64_t threshold;           /* indices that are less are told apart; */
    int64_t least_threshold;     /* at least those that are less than this */
    int64_t data_threshold;      /* iteration counts as data that are less are, too */
    int64_t period;              /* in iterations, of the loop whose index repeats itself last */
    int64_t symbol_data; /* of numbers of iterations their remainder by this is asked; 0: nothing */
    unsigned ctas, cta_warps, cta_named; /* that are followed together; warps and named barriers of each, */
    unsigned spread; /* and from one's to the next one's: whole warpgroups; there is one: more than there are */
    bool reaches;             /* one writes another's shared memory, and no mbarrier there tells, */
    bool ends_together;       /* the last is a barrier of the cluster */
    bool starts_apart;        /* or stores there with no cluster barrier in front */
    unsigned n_followed; /* warps; of a cluster of which one CTA is, its warps */
    unsigned n_warps, n_groups, max_barriers, n_named, n_actors, n_steps, n_entities, stride;
    unsigned aside; /* the last warp, when it is that of aside.c; else TCC_P_NO_WARP; */
    tcc_lane_mask aside_lanes; /* no others of its lanes do anything */
    unsigned n_lanes;
    bool amd;        /* waves instead of warps */
    int64_t granule; /* bytes of shared memory that are taken together */
    bool stores;     /* there are copies to global memory, those of threads or, on AMD, accesses to LDS; */
    bool groups;     /* those of threads to shared memory (cp.async) */
    bool follows;    /* accesses to tensors, */
    bool writes;     /* among them copies that write */
    uint32_t *tensors;     /* of each parameter: 1 + the first of the same tensor */
    uint8_t *tensor_uses;  /* by 1 + the number of a parameter */
    uint32_t most_pending; /* copies to global memory, in a wait */
    const tcc_op *draw;    /* that draws numbers; NULL: none did yet; */
    unsigned drawer;       /* the warp that runs it */
    uint32_t drawing, tested; /* 1 + the symbols of how often loops that test it run, and of what they test */
    int64_t smem_bytes, cta_bytes; /* of all, and of a CTA */
    int64_t *box_bytes; /* by parameter, 0 for others */
    /* values */
    tcc_pvalue *carried; /* as many as a loop carries */
    TCC_VEC(const tcc_cell *) lanes;
    TCC_VEC(tcc_psymbol) symbols;
    struct tcc_ptable *lanes_table, *symbol_table, *memo, *prints_table, *chunks_table, *states;
    /* memory */
    uint16_t *atom_of;               /* by granule */
    uint64_t *granules; /* while a footprint is made: that it takes, a bit each; all 0 otherwise */
    uint32_t *taken;    /* of each atom so many; */
    uint16_t *part, *touched;
    size_t n_granules; /* of shared memory that is followed */
    size_t room;       /* of these: for atoms */
    struct tcc_prange *span_ranges; /* while those of a span are found; */
    size_t span_room;               /* room for so many */
    uint64_t *span_bytes;           /* bits, all 0 otherwise */
    TCC_VEC(struct tcc_patom_info) atom_infos;
    TCC_VEC(struct tcc_pfootprint) footprints;
    TCC_VEC(struct tcc_preader) readers;
    tcc_pfound found[2]; /* of A and B */
    bool layouts; /* it mattered how an operand lies; another function of which this is the proof may differ there */
    /* exploration */
    struct {
        unsigned record;
        int64_t at; /* is the number more than this? */
    } choice;
    bool logs; /* steps, to report what is wrong */
    TCC_VEC(tcc_pentry) log;
    size_t steps, n_states;
    struct {
        const tcc_op *op;
        const char *what; /* NULL: nothing */
    } other;              /* the access that another one conflicts with */
    struct {
        const tcc_op *op;
        const char *what;        /* NULL: nothing */
    } doubt;                     /* what is wrong in an execution that may be none */
    uint64_t *version;           /* the last one of any clocks */
    struct tcc_pcolumn *columns; /* of clocks: normal.c */
    uint32_t *common;            /* of all warps; */
    struct tcc_pcovers *covers;  /* covers.c */
    tcc_pvalue *rows[2];         /* a warp's slots in their normal form */
    struct tcc_protation *rotation; /* NULL: none is known */
    struct tcc_psymmetry *symmetry; /* of a cluster's CTAs; NULL: all are followed, as they are if `all_ctas` */
    bool all_ctas;
    struct tcc_psums *sums;      /* sums.c */
    bool *is_free;               /* of each atom: calm.c */
    bool calms;                  /* states that are calm are looked for, */
    bool met;                    /* when warps have met */
    bool apart;                  /* states were taken for one that are not: */
    bool as_it_is;               /* then with all told apart */
    bool loose, loosened;        /* states stand for others, which are not equal; some did */
    bool spans, spanned;         /* accesses with nothing between them are taken for one; some were */
};

/* ---- a table from a few words to a number ---------------------------------------------------- */

typedef struct tcc_ptable tcc_ptable;
tcc_ptable *tcc_ptable_create(tcc_arena *arena);
/* The place of the number of a key, 0 when the key is new. */
uint64_t *tcc_ptable_at(tcc_ptable *t, const void *key, size_t bytes);
uint64_t tcc_p_hash(const void *bytes, size_t n);

/* ---- order: clocks, as in machine.h ---------------------------------------------------- */

/* Of each entity (a warp; a barrier's arrivals; its last phase; a named barrier): what it comes
 * after. A clock for each actor; one for each warp, up to which it has run a proxy fence; and one
 * for each warp: its steps, which order of control alone tells of, not of memory. With them are the
 * counts of aside.c. */
static inline const uint32_t *tcc_p_clocks(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    return s->clocks + (size_t)entity * p->stride;
}
static inline uint32_t *tcc_p_seen(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    s->versions[entity] = ++*p->version; /* it may be written */
    return s->clocks + (size_t)entity * p->stride;
}
static inline uint32_t *tcc_p_fenced(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    return tcc_p_seen(p, s, entity) + p->n_actors;
}
static inline uint32_t *tcc_p_passed(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    return tcc_p_seen(p, s, entity) + p->n_actors + p->n_warps;
}
/* Keeps of a block of clocks, and of those of another one, the later or the earlier ones. Signed numbers of a constant
 * length can be compared as vectors. */
static inline void tcc_p_keep_later(uint32_t *restrict clocks, const uint32_t *restrict others)
{
    for (unsigned i = 0; i < TCC_P_BLOCK; i++)
        clocks[i] = (int32_t)others[i] > (int32_t)clocks[i] ? others[i] : clocks[i];
}
static inline void tcc_p_keep_earlier(uint32_t *restrict clocks, const uint32_t *restrict others)
{
    for (unsigned i = 0; i < TCC_P_BLOCK; i++)
        clocks[i] = (int32_t)others[i] < (int32_t)clocks[i] ? others[i] : clocks[i];
}
void tcc_p_join(const tcc_protocol *p, tcc_pstate *s, unsigned to, unsigned from);
/* The warp cannot go on before an entity tells more; it does. */
tcc_presult tcc_p_wait_for(tcc_pstate *s, unsigned warp, unsigned entity);
void tcc_p_wake(tcc_pstate *s, unsigned entity);
/* What the warp does from here on is not yet known to whom it has told of its past. */
void tcc_p_tick(const tcc_protocol *p, tcc_pstate *s, unsigned warp);

/* Actors: warps, their copies to global memory, what these write there, which is done later than
 * what they read, warpgroups' MMAs, mbarriers, named barriers. On AMD a wave's accesses to LDS
 * are the second kind: their clock counts the times that it has waited for them; so are copies of a warp's
 * threads to shared memory, where there are such: it counts groups. */
static inline unsigned tcc_p_bulk_actor(const tcc_protocol *p, unsigned warp)
{
    return p->n_warps + warp;
}
static inline unsigned tcc_p_writes_actor(const tcc_protocol *p, unsigned warp)
{
    return 2 * p->n_warps + warp;
}
static inline unsigned tcc_p_mma_actor(const tcc_protocol *p, unsigned warp)
{
    return (1u + p->stores + p->writes) * p->n_warps + warp / TCC_WARPGROUP_WARPS;
}
static inline unsigned tcc_p_barrier_actor(const tcc_protocol *p, unsigned barrier)
{
    return tcc_p_mma_actor(p, 0) + p->n_groups + barrier;
}
static inline unsigned tcc_p_named_actor(const tcc_protocol *p, unsigned id)
{
    return tcc_p_barrier_actor(p, p->max_barriers) + id;
}
/* Entities. */
static inline unsigned tcc_p_arrivals(const tcc_protocol *p, unsigned barrier)
{
    return p->n_warps + 2 * barrier;
}
static inline unsigned tcc_p_done(const tcc_protocol *p, unsigned barrier)
{
    return p->n_warps + 2 * barrier + 1;
}
static inline unsigned tcc_p_named(const tcc_protocol *p, unsigned id)
{
    return p->n_warps + 2 * p->max_barriers + id;
}

/* ---- CTAs of a cluster (cluster.c) --------------------------------------------------------- */

static inline unsigned tcc_p_cta(const tcc_protocol *p, unsigned warp)
{
    return warp / p->spread;
}
/* Of a byte of all shared memory. */
static inline int64_t tcc_p_cta_at(int64_t byte)
{
    return byte >> TCC_P_WINDOW_LOG2;
}
/* Which byte of its CTA's is at an address. */
static inline long long tcc_p_byte(int64_t address)
{
    return (address - TCC_SMEM_BASE) & (TCC_P_WINDOW - 1);
}
/* The first byte of the warp's CTA. */
static inline int64_t tcc_p_window(const tcc_protocol *p, unsigned warp)
{
    return (int64_t)tcc_p_cta(p, warp) * TCC_P_WINDOW;
}
/* Whether a byte is of the warp's CTA; false, reported. */
bool tcc_p_is_own(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in, int64_t byte);
/* nvvm.mapa */
tcc_pvalue tcc_p_mapped(const tcc_protocol *p, unsigned warp, const tcc_pvalue *address, const tcc_pvalue *rank);
/* Whether no CTA ends before others have done what they do in its shared memory. */
bool tcc_p_ends_together(const tcc_func *f);

/* ---- CTAs that do the same (symmetry.c) ---------------------------------------------------- */

/* Finds out whether all CTAs do the same, given what is fixed; then p->symmetry is not NULL. */
void tcc_p_symmetry_find(tcc_protocol *p);
/* Whether an mbarrier, or a named barrier, is followed. Where CTAs do the same, the corresponding mbarriers of all have
 * neighbouring numbers. */
static inline bool tcc_p_is_followed_barrier(const tcc_protocol *p, unsigned barrier)
{
    return !p->symmetry || !(barrier % p->ctas);
}
static inline bool tcc_p_is_followed_named(const tcc_protocol *p, unsigned id)
{
    return !p->symmetry || id < p->cta_named || id == p->n_named - 1;
}
/* Bytes of shared memory. */
static inline int64_t tcc_p_followed_bytes(const tcc_protocol *p)
{
    return p->symmetry ? p->cta_bytes : p->smem_bytes;
}
bool tcc_p_is_followed_entity(const tcc_protocol *p, unsigned entity);
/* The clock of CTA 0 that corresponds to one of an entity's. */
unsigned tcc_p_home_clock(const tcc_protocol *p, unsigned clock);
/* Reduces what all warps of CTA 0 know to what those of all CTAs know. */
void tcc_p_symmetry_common(const tcc_protocol *p, uint32_t *common);
/* Adds what the corresponding warps of other CTAs know. */
void tcc_p_join_images(const tcc_protocol *p, tcc_pstate *s, unsigned to, unsigned warp);
/* A warp arrives at an mbarrier of another CTA; what it does there another CTA's does here. */
tcc_presult tcc_p_arrive_by_image(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                                  tcc_presult (*arrive)(tcc_protocol *, tcc_pstate *, unsigned, const tcc_pinst *));
/* A lane copies to another CTA. */
tcc_presult tcc_p_load_by_image(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned lane,
                                unsigned cta,
                                void (*tell)(tcc_protocol *, tcc_pstate *, unsigned, tcc_lane_mask, unsigned));

/* ---- lanes (lanes.c) ---------------------------------------------------------- */

unsigned tcc_p_max_parts(const tcc_protocol *p);
/* The entity that says what lanes of a warp know: theirs, or that of all lanes. */
unsigned tcc_p_entity(const tcc_protocol *p, const tcc_pstate *s, unsigned warp,
                      tcc_lane_mask lanes);
/* The warp's clock up to which lanes come after the others. */
uint32_t tcc_p_synced(const tcc_pstate *s, unsigned warp, tcc_lane_mask lanes);
/* Whether lanes of a warp come after what lanes of another, or this one, did at a clock. */
bool tcc_p_knows(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, tcc_lane_mask lanes,
                 unsigned of, tcc_lane_mask of_lanes, uint32_t clock);

/* Up to which clock of their warp's accesses lanes know of a proxy fence behind them. */
uint32_t tcc_p_own_fence(const tcc_protocol *p, const tcc_pstate *s, unsigned warp,
                         tcc_lane_mask lanes);

/* Changes what lanes know; false, reported, when there are too many parts. */
typedef void tcc_p_change(tcc_protocol *p, tcc_pstate *s, unsigned warp, unsigned entity,
                          uint32_t *synced, const void *data);
bool tcc_p_lanes_change(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op,
                        tcc_lane_mask lanes, tcc_p_change *change, const void *data);
/* The lanes that run op have waited for what an entity comes after; for an actor up to a clock. */
bool tcc_p_learn(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op, unsigned from);
bool tcc_p_learn_end(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op,
                     tcc_lane_mask lanes, unsigned actor, uint32_t clock);
void tcc_p_tell(tcc_protocol *p, tcc_pstate *s, unsigned warp, tcc_lane_mask lanes, unsigned to);
/* All lanes come after each other's steps; and after each other's accesses. */
void tcc_p_step_together(tcc_protocol *p, tcc_pstate *s, unsigned warp);
void tcc_p_sync_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp);

/* ---- a thread that fills stages (aside.c) -------------------------------------- */

/* Adds a warp for it; false when there is none. */
bool tcc_p_aside_find(tcc_protocol *p);
/* Finds which lanes do what is set aside, once it is known what fixed ops give. */
void tcc_p_aside_find_lanes(tcc_protocol *p);
/* Goes on to the next op that a warp needs. */
void tcc_p_aside_skip(const tcc_protocol *p, tcc_pstate *s, unsigned warp);
/* It begins what is left to it; false when that comes after what is later. */
bool tcc_p_aside_begin(tcc_protocol *p, tcc_pstate *s);
bool tcc_p_aside_is_in_order(tcc_protocol *p, const tcc_pstate *s);

/* ---- memory (memory.c) -------------------------------------------------------- */

/* A set of bytes. */
typedef struct tcc_prange {
    int64_t first, end;
} tcc_prange;

/* What a lane takes. */
typedef struct tcc_plane {
    unsigned lane;
    tcc_prange range;
} tcc_plane;

struct tcc_pfootprint {
    TCC_VEC(uint16_t) atoms;
    const tcc_plane *lanes; /* what each of them takes; NULL when they do so together */
    size_t n_lanes;
    bool rotates; /* a byte of it is another after a rotation */
};
struct tcc_patom_info {
    uint32_t granules, moving; /* how many; those of which a rotation makes others */
    uint16_t parent;
    uint8_t ctas; /* in which its bytes may be, a bit each */
    TCC_VEC(uint32_t) footprints;
};
struct tcc_preader {
    uint32_t actor, clock, next, print;
    const tcc_op *by;
};

void tcc_p_memory_create(tcc_protocol *p);
/* The number of the footprint that a key stands for, 0 when it is new: then give it its ranges. */
uint64_t *tcc_p_footprint(tcc_protocol *p, const void *key, size_t bytes);
bool tcc_p_footprint_set(tcc_protocol *p, tcc_pstate *s, uint64_t *place, const tcc_prange *ranges,
                         size_t n);
/* The same of a footprint that lanes take apart. */
bool tcc_p_footprint_of_lanes(tcc_protocol *p, tcc_pstate *s, uint64_t *place,
                              const tcc_plane *lanes, size_t n);
/* Makes room for so many atoms: most kernels have few. */
void tcc_p_memory_reserve(const tcc_protocol *p, tcc_pstate *s, unsigned n_atoms);
/* Atoms that were split after the state was saved. */
void tcc_p_memory_update(const tcc_protocol *p, tcc_pstate *s);

typedef struct tcc_paccess {
    unsigned warp, actor;
    tcc_lane_mask lanes;
    uint32_t clock;
    bool async, write;
    bool unwritten; /* a read that may find nothing there */
    tcc_pmark mark; /* of a write */
} tcc_paccess;

/* Whether anything, or everything, was ever written there; the first byte that was not, -1: none.
 */
bool tcc_p_is_all_written(const tcc_protocol *p, const tcc_pstate *s, uint64_t footprint);
int64_t tcc_p_unwritten_byte(const tcc_protocol *p, const tcc_pstate *s, uint64_t footprint);
bool tcc_p_is_written(const tcc_protocol *p, const tcc_pstate *s, uint64_t footprint);
/* Checks and records an access; false, reported, when it is not ordered. */
bool tcc_p_access(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by,
                  uint64_t footprint);
/* An access of a warp's lanes, each to `bytes` at its address, or of all together there. */
bool tcc_p_access_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                        const tcc_pvalue *address, int64_t bytes, bool write, bool together);
/* The innermost loop of unknown iterations that the warp is in; -1 for none. */
int tcc_p_inner_loop(const tcc_pwarp *w);
/* The record of a symbol for the warp's iteration; -1, reported, when there are too many. */
int tcc_p_record_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_op *op, int64_t symbol, bool truth);
/* Of a lane's registers. */
static inline int64_t tcc_p_bytes_of(const tcc_type *t)
{
    return tcc_type_count(t) * tcc_scalar_bits(t->elem) / 8;
}
/* That a lane's address is of: of matrices a row. */
int64_t tcc_p_lane_bytes(const tcc_op *op);
/* What each lane accesses by a load or a store, in the order of lanes; false, reported, when that is not known, or not
 * right. */
bool tcc_p_lanes_of(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, tcc_plane *lanes, size_t *n);
/* "warp 3", "an MMA of warps 4-7", … */
const char *tcc_p_actor_name(const tcc_protocol *p, unsigned actor);
/* All lanes of a warp. */
static inline tcc_lane_mask tcc_p_all_lanes(const tcc_protocol *p)
{
    return UINT64_MAX >> (64 - p->n_lanes);
}
/* "warp", "wave"; what they access */
static inline const char *tcc_p_warp_word(const tcc_protocol *p)
{
    return p->amd ? "wave" : "warp";
}
static inline const char *tcc_p_smem_word(const tcc_protocol *p)
{
    return p->amd ? "LDS" : "shared memory";
}

/* ---- numbers that are drawn (drawn.c) ----------------------------------------------- */

/* An elementwise op, one of its operands being DRAWN. */
tcc_pvalue tcc_p_of_drawn(tcc_protocol *p, const tcc_op *op, const tcc_pvalue *args);
/* Plans a loop that tests what it carries; false, reported, when it cannot be followed. */
bool tcc_p_plan_testing(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, tcc_pframe *f);
/* Whether the loop that the warp is at the head of tests what was drawn in its last iteration; false, reported, when it
 * does not. */
bool tcc_p_tests_drawn(tcc_protocol *p, const tcc_pstate *s, unsigned warp);
/* Operand i is stored at an address: keeps it, if it was drawn; false, reported, where too many such words are kept. */
bool tcc_p_keep_word(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned i, int64_t address);
/* The bytes of a footprint are overwritten. */
void tcc_p_words_overwritten(const tcc_protocol *p, tcc_pstate *s, const struct tcc_pfootprint *f);
/* The first iteration that counts in a state, of loops that test what was drawn. */
int64_t tcc_p_drawn_base(const tcc_protocol *p, const tcc_pstate *s, const int64_t *bases);

/* ---- global memory (global.c) -------------------------------------------------- */

/* What is done to a tensor: with all of this it is followed. */
enum { TCC_P_READ = 1, TCC_P_WRITTEN = 2, TCC_P_COPIED = 4 };

/* Finds which parameters are of which tensors. */
void tcc_p_global_find(tcc_protocol *p);
/* Notes what an op does to a tensor; then the tensor that it accesses, if that is followed. */
void tcc_p_global_note(tcc_protocol *p, const tcc_op *op);
/* Whether the function waits for the step before, where it may overlap with that, before it accesses a tensor. */
bool tcc_p_global_waits(tcc_protocol *p);
uint32_t tcc_p_global_tensor(const tcc_protocol *p, const tcc_op *op);
/* Checks and keeps what a copy, or an op of threads, does to the tensor that is followed; false,
 * reported, when it is not ordered. */
bool tcc_p_global_copy(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by);
bool tcc_p_global_ordinary(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in);
/* The warp begins another iteration of a loop. */
void tcc_p_global_next_iteration(tcc_pstate *s, unsigned warp);

/* ---- places (place.c) ---------------------------------------------------------- */

/* A number that is added along a dimension. */
typedef struct tcc_pterm {
    const tcc_value *value;
    uint32_t slot, dim;
    int64_t modulus; /* its remainder by this is asked for */
} tcc_pterm;

typedef struct tcc_pplace {
    uint32_t map, rank, n_terms; /* rank 0: nothing is known */
    int64_t from[TCC_P_RANK], length[TCC_P_RANK];
    tcc_pterm terms[TCC_P_TERMS];
} tcc_pplace;

typedef enum tcc_prelation { TCC_P_APART, TCC_P_TOGETHER, TCC_P_NOT_KNOWN } tcc_prelation;

tcc_pplace *tcc_p_place_find(tcc_protocol *p, const tcc_op *op, uint32_t tensor);
/* Adds another place, from which it differs by constants alone; false when it does not. */
bool tcc_p_place_join(tcc_pplace *place, const tcc_pplace *other);
/* What lanes access, range by range; false when it is not known. */
bool tcc_p_place_at(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, tcc_lane_mask lanes,
                    const tcc_pplace *place, tcc_prange_of *at);
/* Whether all of it lies behind the end of the tensor. */
bool tcc_p_place_is_outside(tcc_protocol *p, const tcc_pplace *place, const tcc_prange_of *at);
tcc_prelation tcc_p_place_compare(const tcc_protocol *p, const tcc_pstate *s, const tcc_pglobal *x,
                                  const tcc_pglobal *y);

/* ---- ops ------------------------------------------------------------------------------- */

typedef tcc_presult tcc_phook(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in);

/* Effects that are followed (ir/effects.def); those among them that concern other warps, or their
 * own later. */
enum {
    TCC_P_FOLLOWED = TCC_READS_SHARED | TCC_WRITES_SHARED | TCC_LANES | TCC_REGISTERS | TCC_BARRIER |
                     TCC_FENCE | TCC_COMPLETES,
    TCC_P_SYNC = TCC_REGISTERS | TCC_BARRIER | TCC_BY_MBARRIER | TCC_BY_BULK_GROUP |
                 TCC_BY_COPY_GROUP | TCC_BY_MMA_GROUP
};
/* Ops with such effects, whose meaning is a function here; what other lanes have is unknown, and
 * needs none. A test names those that have none. */
/* clang-format off */
#define TCC_P_OPS(OP)                                                                              \
    OP(nvvm_barrier) OP(nvvm_warp_sync) OP(nvvm_setmaxnreg) OP(nvvm_mbarrier_init)                 \
    OP(nvvm_mbarrier_arrive) OP(nvvm_mbarrier_arrive_expect_tx) OP(nvvm_mbarrier_wait)             \
    OP(nvvm_fence_mbarrier_init) OP(nvvm_fence_proxy_async) OP(nvvm_tma_load) OP(nvvm_tma_store)   \
    OP(nvvm_bulk_commit) OP(nvvm_bulk_wait) OP(nvvm_cp_async) OP(nvvm_cp_async_commit)             \
    OP(nvvm_cp_async_wait) OP(nvvm_wgmma) OP(nvvm_wgmma_a) OP(nvvm_wgmma_fence)   \
    OP(nvvm_wgmma_commit) OP(nvvm_wgmma_wait) OP(nvvm_ldmatrix) OP(nvvm_stmatrix)                  \
    OP(nvvm_wmma_load) OP(nvvm_wmma_store)                                                         \
    OP(nvvm_cluster_arrive) OP(nvvm_cluster_wait) OP(nvvm_mbarrier_arrive_cluster)                 \
    OP(nvvm_mbarrier_arrive_expect_tx_cluster) OP(nvvm_st_async_word)                              \
    OP(nvvm_tma_load_multicast) OP(nvvm_ld_shared) OP(nvvm_st_shared)                              \
    OP(nvvm_st_shared_cluster) OP(nvvm_ld_shared_word) OP(nvvm_st_shared_word) OP(nvvm_atom_inc)    \
    OP(amdgcn_ds_load)                                                                             \
    OP(amdgcn_ds_store) OP(amdgcn_waitcnt) OP(amdgcn_s_barrier)
/* clang-format on */
#define OP(id) tcc_phook tcc_p_##id;
TCC_P_OPS(OP)
#undef OP
/* Whether an op has such a function, or needs none. */
bool tcc_p_is_known(tcc_opcode code);

/* What the warp's slot holds; NONE when there is none. Warps that are not followed share a row: one at a time does
 * something. */
static inline tcc_pvalue *tcc_p_slot(const tcc_protocol *p, const tcc_pstate *s, unsigned warp,
                                     uint32_t slot)
{
    unsigned row = warp < p->n_followed ? warp : p->n_followed;
    return slot < TCC_P_FIXED ? &s->slots[(size_t)row * p->n_slots + slot]
                              : &p->fixed_values[(size_t)warp * p->n_fixed + (slot - TCC_P_FIXED)];
}
/* The last wait of a warp for barrier b. */
static inline tcc_pwait *tcc_p_wait(const tcc_protocol *p, const tcc_pstate *s, unsigned b,
                                    unsigned warp)
{
    return &s->waits[(size_t)b * p->n_warps + warp];
}
/* Reads operand i, which must be exactly known; false, reported, when it is not. */
bool tcc_p_operand(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                   unsigned i, int64_t *out);
/* The barrier at an address that warp may use; -1, reported, when there is none. */
int tcc_p_barrier_at(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                     int64_t address);
/* The same in any CTA of the cluster. */
int tcc_p_barrier_of_cluster(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, int64_t address);
/* So many arrivals of lanes at barrier b, each of which expects some bytes. */
tcc_presult tcc_p_arrive(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned b,
                         int64_t bytes, unsigned times, tcc_lane_mask lanes);
/* Lets each lane of the mask start its copy. */
tcc_presult tcc_p_by_lanes(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                           tcc_presult (*start)(tcc_protocol *, tcc_pstate *, unsigned, const tcc_pinst *, unsigned));
/* A lane's copy from global memory, so many bytes further: to another CTA. What else whoever waits for its mbarrier
 * then knows is for `tell` to say, which may be NULL. */
tcc_presult tcc_p_load_to(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned lane,
                          int64_t further,
                          void (*tell)(tcc_protocol *, tcc_pstate *, unsigned, tcc_lane_mask, unsigned));
/* Whether what the warp adds to b's phase can only fall in this one. */
bool tcc_p_phase_is_certain(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                            unsigned b);
/* Ends b's phase if nothing is missing. */
bool tcc_p_end_phase(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                     unsigned b);
/* Brings a warp to a named barrier, and lets all go on when it is the last. */
tcc_presult tcc_p_meet(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                       int64_t id, int64_t threads);
/* The same in two steps, the barrier being one of all CTAs'. */
bool tcc_p_come_to(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, int64_t id, int64_t threads);
tcc_presult tcc_p_leave_barrier(const tcc_protocol *p, tcc_pstate *s, unsigned warp);
bool tcc_p_converged(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in);

/* An MMA or a loop takes an operand into `registers`, a bit (interp/thread.c, tcc_registers_take). */
bool tcc_p_take(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                unsigned operand, uint64_t registers);
/* Whether an op may read operand i: no MMA in flight accesses it. */
bool tcc_p_may_read(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned i);

/* What a warp does instead of an op, when there is one that fills stages; NULL: the op. */
tcc_phook *tcc_p_aside_hook(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in);

tcc_presult tcc_p_step(tcc_protocol *p, tcc_pstate *s, unsigned warp);
/* The i-th piece of the slots in which there may be something, being in a region: of its arguments, and of the ops up to
 * the one that is next. In others there is nothing. False when there are no more. */
bool tcc_p_held_slots(const tcc_pframe *f, size_t i, tcc_pslots *piece);
/* What a warp's slots hold. from NULL: nothing. */
void tcc_p_copy_slots(const tcc_pwarp *w, tcc_pvalue *to, const tcc_pvalue *from);
/* Does an op that does not synchronize, as one of a run. */
tcc_presult tcc_p_do(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in);
/* runs.c: finds runs of ops that do not synchronize; does one, or if it is not to be kept its first op. */
void tcc_p_runs_find(tcc_protocol *p);
tcc_presult tcc_p_run(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *first);

/* ---- accesses that are taken for one (spans.c) ------------------------------------------ */

/* Loads, or stores, of a run. */
typedef struct tcc_pspan {
    const tcc_pinst **insts;
    size_t n;
} tcc_pspan;

/* Whether an op may be one of them. */
bool tcc_p_is_spanned(const tcc_pinst *in);
/* Room for the ranges of n accesses; it is one, used again. */
tcc_prange *tcc_p_room_for_ranges(tcc_protocol *p, size_t n);
/* mma.c: finds MMAs behind each other in a block: their operands are taken for one. */
void tcc_p_mmas_find(tcc_pcode *code);
/* The footprint of all, by the key of their addresses; 0: they are not to be taken for one, or, reported, something is
 * wrong with one. */
uint64_t tcc_p_span_footprint(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pspan *span, const void *key,
                              size_t bytes);
/* Does them all, as one where there is such a footprint; false, reported, when something is wrong. */
bool tcc_p_span_access(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pspan *span, uint64_t footprint);

/* ---- rotations (rotate.c) --------------------------------------------------------------- */

/* Finds what a rotation does, given the state that comes first. */
void tcc_p_rotation_find(tcc_protocol *p, tcc_pstate *first);
/* One of all rotations of a state, the same for each of them; the state itself where they are not known. */
const tcc_pstate *tcc_p_rotated(tcc_protocol *p, const tcc_pstate *s);
/* What an entity and an actor of s are in the state that it gave last. */
unsigned tcc_p_rotated_entity(const tcc_protocol *p, const tcc_pstate *s, unsigned entity);
unsigned tcc_p_rotated_actor(const tcc_protocol *p, const tcc_pstate *s, unsigned actor);
/* Whether an iteration is too early for a rotation: not all stages are in use. */
bool tcc_p_rotates_later(const tcc_protocol *p, int64_t iterations);
/* Whether tiles begin at any stage, and states are rotated from the first on. */
bool tcc_p_rotates_tiles(const tcc_protocol *p);
/* Whether there are loops in loops: tiles of any numbers of iterations. */
bool tcc_p_has_tiles(const tcc_protocol *p);
/* Where granules of shared memory are after a rotation; NULL when there is none. */
const uint32_t *tcc_p_rotated_granules(const tcc_protocol *p);
bool tcc_p_is_rotated_barrier(const tcc_protocol *p, int64_t address);
/* What must stay in its place under rotations does not. False when that is no harm, being known in time. */
bool tcc_p_rotation_fails(tcc_protocol *p);
/* Bytes of a CTA's stages are accessed whatever stage comes next; false when states were taken for one that now
 * differ. */
bool tcc_p_rotation_ends(tcc_protocol *p, tcc_pstate *s, unsigned cta);
/* rotated.c: whether nothing that follows in a CTA depends on the stage that came next. */
bool tcc_p_is_settled(tcc_protocol *p, const tcc_pstate *s, unsigned cta);
/* covers.c: no rotation stands for what came before the state. */
bool tcc_p_tell_rotations_apart(tcc_protocol *p, const tcc_pstate *s);
/* The bytes of operand i of an MMA, given its descriptor; 0: it is wrong, or they are not all in shared memory. */
size_t tcc_p_mma_ranges(const tcc_protocol *p, const tcc_pinst *in, unsigned i, int64_t bits,
                        tcc_prange *ranges);
/* What an op that is only there for its result gives. */
tcc_presult tcc_p_give(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                       tcc_pvalue *out);

/* ---- numbers that wait for a number of iterations (sums.c) -------------------------------- */

void tcc_p_sums_create(tcc_protocol *p);
/* From where on each record of a state is counted, and what stands for more by as much as has been counted. */
void tcc_p_sums_find(const tcc_protocol *p, const tcc_pstate *s, int64_t *bases);
bool tcc_p_is_summed(const tcc_protocol *p, unsigned record);
/* By how much more a slot of a warp stands for in the state looked at last, modulo its delta. */
int64_t tcc_p_sum_of(const tcc_protocol *p, unsigned warp, uint32_t slot);
/* A number of iterations is wanted otherwise; true when states were taken for one that may differ by it. */
bool tcc_p_sums_fail(tcc_protocol *p);

/* ---- executions ------------------------------------------------------------------------ */

/* A function that was read: p->status says whether it can be followed, `silent` is told why not. */
tcc_protocol *tcc_p_open(const tcc_func *f, tcc_arena *scratch, tcc_diag *silent);
/* Follows it, which is done once; what is wrong is told to diag. */
tcc_status tcc_p_prove(tcc_protocol *p, tcc_diag *diag, size_t *steps);
/* operands.c: finds what MMAs read, and copies write. */
void tcc_p_operands_find(tcc_protocol *p);
/* Of those that are not the first of theirs. */
extern const tcc_known_bytes tcc_p_with_the_first;
/* Whether the counter on which an op's bytes depend is one of the numbers for which they were found. */
bool tcc_p_is_looked_at(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in);
/* Which operand of an MMA lies as an attribute says: 1 or 2; 0: it says something else. */
unsigned tcc_p_order_of(const tcc_op *op, const char *attribute);
/* Notes with an MMA how its operands lie. */
void tcc_p_mma_read(tcc_pinst *in);
/* All that is followed of a function, the same bytes for those of its module that have the same proof; NULL: there is
 * no saying. In scratch. */
const uint8_t *tcc_p_write(tcc_protocol *p, size_t *n);
/* Whether a parameter is a dimension of tensors. */
bool tcc_p_is_dim(const tcc_protocol *p, size_t i);
/* What is known of a parameter at first. */
tcc_pvalue tcc_p_first_value(tcc_protocol *p, size_t i);
tcc_status tcc_p_explore(tcc_protocol *p);
void tcc_p_normal_create(tcc_protocol *p);
/* Writes s so that states whose futures are equal are equal; gives the bytes. is_free: of a calm one, else NULL. */
size_t tcc_p_normal(const tcc_protocol *p, const tcc_pstate *s, const bool *is_free, uint8_t **buffer, size_t *cap);
void tcc_p_covers_create(tcc_protocol *p);
/* covers.c: whether no state that was followed stands for this one; may forget some of its knowledge. is_free: the free
 * atoms of a calm state. */
bool tcc_p_is_new(tcc_protocol *p, tcc_pstate *s, const bool *is_free);
/* calm.c: finds what ops do. */
void tcc_p_calm_find(tcc_protocol *p);
/* What a warp may still do. */
uint8_t tcc_p_ahead(const tcc_pwarp *w);
/* Whether what was done to an atom is past for those who know what is common to them, if anything was. */
bool tcc_p_is_quiet(const tcc_protocol *p, const tcc_patom *a, const uint32_t *common);
/* What is common to the warps of a CTA that may yet access shared memory. */
void tcc_p_common_of_cta(const tcc_protocol *p, const tcc_pstate *s, unsigned cta, uint32_t *common);
/* Whether a warp lets others go on, which may still name mbarriers. */
bool tcc_p_is_past(const tcc_protocol *p, const tcc_pstate *s, unsigned warp);
/* Whether a state is calm and was not before: then which atoms it does not matter of what was done to them; else NULL. */
const bool *tcc_p_comes_to_rest(tcc_protocol *p, tcc_pstate *s);
/* What all know, as the clocks of an entity. */
void tcc_p_common(const tcc_protocol *p, const tcc_pstate *s, uint32_t *common);
/* The warps that are told of it before they do anything, a bit each: they are not among those who know it. */
uint64_t tcc_p_told(const tcc_protocol *p, const tcc_pstate *s);
/* What some warps do, a bit each; told: which are among these. */
void tcc_p_common_of(const tcc_protocol *p, const tcc_pstate *s, uint64_t warps, uint64_t told, uint32_t *common);
/* Whether a warp's lanes, those that are no part, or a part's do something more. */
bool tcc_p_goes_on(const tcc_protocol *p, const tcc_pstate *s, unsigned entity);
/* counts.c: of a record whose number was decided not to be more than `most`, what holds in all iterations of
 * the loops around; and what of that holds for another record. */
void tcc_p_count_found(tcc_protocol *p, tcc_pstate *s, const tcc_precord *r);
void tcc_p_count_known(const tcc_protocol *p, tcc_pstate *s, tcc_precord *r);
/* By what states are told apart while it is not decided: how far it is above what was asked. */
int64_t tcc_p_count_told_apart(const tcc_protocol *p, const tcc_precord *r);

/* An mbarrier of whose last copy no warp knows the end; -1: there is none. */
int tcc_p_unfinished(const tcc_protocol *p, const tcc_pstate *s);
/* Whether the other branch follows that of a frame: lanes part there. */
bool tcc_p_may_part(const tcc_pframe *f);
/* Whether warp w may yet come to ask for record r, being in no loop of it. */
bool tcc_p_may_enter(const tcc_pstate *s, unsigned w, int r);

/* ---- reports (trace.c) -------------------------------------------------------- */

void tcc_p_log(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in,
               int barrier, int64_t number);
/* Reports what is wrong at an op of a warp, and how it came so; gives TCC_P_FAILED. */
tcc_presult tcc_p_wrong(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));
tcc_presult tcc_p_unsupported(tcc_protocol *p, const tcc_op *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* No warp can go on. */
void tcc_p_deadlock(tcc_protocol *p, const tcc_pstate *s);

#endif

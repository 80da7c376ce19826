/* program: what is followed of a function: its values and its ops.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_PROGRAM_H
#define TCC_CHECKER_PROGRAM_H

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
    TCC_P_COUNTS = 8,   /* unknown numbers that may stay the same in all iterations of outer loops */
    TCC_P_GROUPS = 12,  /* MMAs of a warpgroup of which something is remembered */
    TCC_P_MAX_ATOMS = 16384,
    TCC_P_RANK = 5,     /* of tensor maps */
    TCC_P_KNOWN_ITERATIONS = 32, /* at most: they are counted one by one */
    TCC_P_SUMMANDS = 3, /* of a sum of symbols */
    TCC_P_TERMS = 16,   /* of the index of an element */
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

/* Of a list of numbers: offset, where they depend on which lane was elected (elect.c). */
enum { TCC_P_ELECTED = 1 };

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

static inline bool tcc_p_is_elected(const tcc_pvalue *v)
{
    return v->kind == TCC_P_LANES && v->offset == TCC_P_ELECTED;
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

/* A number that was drawn so many iterations later than the one in which it is used; an element of a tensor. */
tcc_pvalue tcc_p_drawn_symbol(tcc_protocol *p, int64_t symbol, int64_t later);
tcc_pvalue tcc_p_element_symbol(tcc_protocol *p, const tcc_value *tensor, int64_t nth,
                                const tcc_pvalue *offset_and_pred);

/* What stands behind a symbol: (of + add) / by, rounded down, where `of` is not such a quotient. */
typedef struct tcc_psymbol {
    uint32_t of;
    int64_t add, by;
    uint64_t roots; /* parameters and the like that it depends on, a bit each */
    int64_t real;   /* what the number is that any other stands for; 0: that is not known */
    int64_t least;  /* the least value of `of` */
    tcc_pvalue terms[TCC_P_SUMMANDS]; /* of the sum that it is (linear.c), */
    unsigned n_terms;                 /* so many; 0: it is none */
    tcc_scalar elem;                  /* of this type */
    uint32_t count; /* as the bound of a loop from 0 it is this symbol, less 1; 0: it is itself */
    bool varies;    /* from iteration to iteration */
    bool data;      /* a number of iterations that is wanted as data, too; */
    bool forgotten; /* states were written as if it were not */
} tcc_psymbol;
const tcc_psymbol *tcc_p_symbol_get(const tcc_protocol *p, int64_t symbol);
tcc_psymbol *tcc_p_symbol_change(tcc_protocol *p, int64_t symbol);
/* a + b, or a - b, plus a constant, of a type; NONE when that is not a sum of symbols. */
tcc_pvalue tcc_p_sum(tcc_protocol *p, const tcc_pvalue *a, const tcc_pvalue *b, bool minus, int64_t constant,
                     tcc_scalar elem);
/* How often a loop runs over a distance, by a number that is known at run time. */
tcc_pvalue tcc_p_iterations(tcc_protocol *p, tcc_pvalue distance, tcc_pvalue step);
/* Notes with the symbol of a quotient how often a loop runs that it counts, if it does. */
void tcc_p_find_count(tcc_protocol *p, int64_t symbol, const tcc_pvalue *of, const tcc_pvalue *by, tcc_scalar elem);
/* Its number is wanted as data; false when states were written without what is asked of that. */
bool tcc_p_symbol_is_data(tcc_protocol *p, int64_t symbol);
/* A symbol is more than x when the number that it is of is more than this. */
static inline int64_t tcc_p_symbol_least(const tcc_psymbol *s, int64_t x)
{
    return s->by * (x + 1) - s->add - 1;
}
/* Rounded down. */
static inline int64_t tcc_p_quotient(int64_t a, int64_t by)
{
    return a / by - (a % by < 0);
}
/* The least that the number of a symbol can be. */
static inline int64_t tcc_p_least(const tcc_psymbol *s)
{
    return tcc_p_quotient(s->least + s->add, s->by);
}
/* The symbol of a number that is at least so much, such as a dimension. */
tcc_pvalue tcc_p_symbol_from(tcc_protocol *p, int64_t least, const void *of, const tcc_pvalue *args, unsigned n);
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
    struct tcc_prun *run; /* the run of ops that it begins; NULL: none */
    uint32_t n_mmas;      /* an MMA: as many behind each other begin with it, of one shape; 0: it is none */
    const tcc_known_bytes *bytes[2]; /* of them, A and B, or of copies: with the first; NULL: they are not known */
    uint32_t counter; /* on which those depend; TCC_P_NO_SLOT: none; */
    int64_t modulus;  /* by which its remainder is asked for */
    uint32_t *operands, *results; /* slots */
    struct tcc_pcode *regions;
    uint64_t touches, registers; /* of MMAs, a bit each: read by it; of its result */
    uint64_t a_registers;        /* of its A */
    int64_t n;                   /* its columns */
    bool mn_major[3];            /* whether operand 1 and operand 2 are MN-major */
    uint32_t wanted_twice;       /* operands that tcc_registers_wanted_twice gives */
    bool open;                   /* MMAs in front of it are not committed */
    bool aside;                  /* it is left to the warp that fills stages; */
    bool alone, others;          /* needed by that warp, by the others; */
    bool runs_out; /* a loop: after an iteration in which that warp does nothing none does */
    uint32_t by;                 /* what is left to it is done where this holds */
    uint32_t tensor;             /* the followed tensor that it accesses; 0: none */
    uint32_t sent_to;            /* the tensor, only written, to which it copies (sent.c); 0: none */
    bool sent_by_thread;         /* where it copies to may differ from warp to warp */
    struct tcc_pplace *place;    /* where it accesses `tensor`, or copies to in `sent_to` */
    bool harmless;               /* it accesses nothing else, nor does anything in it */
    bool computes;               /* a branch: it does nothing else, in registers of MMAs, too */
    bool waits;                  /* it, or something in it, synchronizes */
    bool tests;                  /* a loop that tests what it carries (ir/counting.h); */
    bool counts;                 /* one that only counts; */
    bool data;                   /* one whose number of iterations is wanted as data */
    bool loops;                  /* it is such a loop, of more than a few iterations, or has one in it */
    bool loops_later;            /* one follows in this block */
    uint32_t *dying;             /* slots that are not wanted once the loop has begun */
    unsigned n_dying;
    uint32_t end_slot;           /* what comes behind it in its block has its slots from here on */
    uint32_t number;             /* of all ops that are followed (reached.c) */
    uint8_t does, does_later;    /* calm.c: what it does, or something in it; one that follows in this block */
    bool stays, stays_at_barrier; /* rotate.c: its accesses, its mbarrier, do not depend on a counter; */
    bool waits_anywhere;         /* laps.c: a wait for an mbarrier that is not known beforehand */
    uint8_t of_tiles;            /* a loop, or a branch: its operands that tcc_p_is_of_tiles, a bit each */
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

#endif

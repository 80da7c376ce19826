/* launch: what the files that walk through launches share.
 *
 * A launch plan is right for all sizes that its conditions allow. Here it is launched for a few of them, on nothing but
 * numbers: of each kernel only what decides which elements threads access is computed, for every CTA, warp and lane.
 * Nothing waits, and no element has a value; that warps wait for each other is proven apart (explore.c).
 *
 * launch.c          a plan: its steps one after the other, and what holds behind them
 * launch_alike.c    whether two plans are the same
 * launch_sizes.c    the sizes
 * launch_requires.c what conditions leave of them
 * launch_sums.c     those that are computed of others
 * launch_slice.c    the ops of a kernel that matter
 * launch_walk.c     a warp on its way through them
 * launch_values.c   what they compute
 * launch_words.c    words in shared memory by which warps tell each other which tile comes next
 * launch_tensors.c  the elements of tensors, and who wrote them
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_LAUNCH_H
#define TCC_CHECKER_LAUNCH_H

#include "ir/elementwise.h"
#include "ir/ir.h"
#include "support/map.h"

enum { TCC_L_LANES = 64, TCC_L_NO_SLOT = -1, TCC_L_SAMPLES = 4 };

/* ---- the ops that matter --------------------------------------------------------------- */

typedef struct tcc_linst tcc_linst;

/* A block. Slots are numbers of values; TCC_L_NO_SLOT: nothing depends on the value. */
typedef struct tcc_lcode {
    tcc_linst *insts;
    size_t n;
    int *args;       /* slots */
    int *nexts;      /* of a loop: where the carried values of the next iteration are meanwhile */
    int *yields;     /* slots of what its terminator passes on */
    size_t n_args, n_yields;
} tcc_lcode;

struct tcc_linst {
    const tcc_op *op;
    int *operands, *results; /* slots */
    tcc_lcode *regions;
    bool runs;        /* of a loop: whether its iterations matter, and not only that there are some */
    bool at_least_once, tests; /* of a loop: has the attributes at_least_once, while */
    bool accesses, writes; /* global memory */
    bool computes;    /* integers from integers */
    bool divides;
    bool over;        /* what it reads may begin or end outside */
    int param;        /* the parameter that says where; -1: none */
    int64_t disp;     /* is added to the offset, in its unit */
    int64_t bits;     /* accessed by a lane */
};

typedef struct tcc_lprogram {
    tcc_lcode body;
    size_t n_slots;
    TCC_VEC(tcc_linst) constants; /* computed once, and in no block */
    bool draws;                   /* whether tiles are drawn */
} tcc_lprogram;

/* Finds the ops that matter. reads: of each parameter whether loads from it do. */
tcc_lprogram *tcc_launch_slice(const tcc_func *f, const bool *reads, tcc_arena *scratch);

/* ---- sizes ----------------------------------------------------------------------------- */

/* A launch: an extent for each of `dims`. */
typedef struct tcc_lsizes {
    tcc_attr dims;
    tcc_attr conditions; /* of all steps */
    int64_t *extents;
    unsigned sample; /* from 0 up to TCC_L_SAMPLES; of the last, grids that may be smaller have two clusters */
    bool large;      /* extents that are fixed allow no small launch: some CTAs run, and elements are not recorded */
    unsigned length; /* of results that no grid counts: the lower the longer, of those that are tried */
    bool may_shrink; /* whether a shorter one is left */
} tcc_lsizes;

/* What a dimension can be: from `least` to `most`, and a multiple of `unit`. */
typedef struct tcc_lbounds {
    int64_t least, most, unit;
} tcc_lbounds;

/* What all steps of a plan require. */
tcc_attr tcc_launch_conditions(const tcc_func *variant, tcc_arena *scratch);
/* Whether all conditions hold. unknown: what is said of one that the sizes do not decide. */
bool tcc_launch_holds(const tcc_lsizes *s, bool unknown);
/* How many conditions do not. */
size_t tcc_launch_broken(const tcc_lsizes *s);
/* Leaves of the dimensions what the conditions allow; returns the number of one of which nothing is left, or -1. */
int tcc_launch_narrow(const tcc_lsizes *s, tcc_lbounds *all, tcc_arena *scratch);
/* False: whatever the extents, a condition does not hold. A warning says how they contradict each other, unless extents
 * that are fixed break one. */
bool tcc_launch_is_possible(const tcc_func *variant, const tcc_func *parameters, tcc_diag *diag, tcc_arena *scratch);
/* Chooses a sample of the sizes that all steps of a plan allow, from its `length` on. False: there is none, or none but
 * in other samples. */
bool tcc_launch_choose_sizes(const tcc_func *variant, const tcc_func *parameters, tcc_lsizes *s, tcc_arena *scratch);
/* Raises chosen sizes, but those that are fixed, until what is computed of them, too, is as it should be, as far as that
 * can be found. False: none was. */
bool tcc_launch_raise(tcc_lsizes *s, const tcc_func *variant, const tcc_func *parameters, const bool *fixed);
/* A dimension, [roundup, DIMENSION, n], or several multiplied: of names joined by dots, or of a list. -1: it is none of
 * these, or too large. */
int64_t tcc_launch_extent(const tcc_lsizes *s, tcc_attr a);
/* A dimension of a tensor; the number of elements from its first to its last, with padding of rows. -1 as above. */
int64_t tcc_launch_dim(const tcc_lsizes *s, tcc_dim dim);
int64_t tcc_launch_elements(const tcc_lsizes *s, const tcc_type *t);
/* The CTAs of a grid, more than 2^31 where there are more than any launch has; -1: it is malformed. */
int64_t tcc_launch_ctas(const tcc_lsizes *s, const tcc_func *f);
int64_t tcc_launch_multiply(const tcc_lsizes *s, tcc_attr factors, int64_t n);
/* "M = 1, N = 8" */
const char *tcc_launch_sizes_text(const tcc_lsizes *s, tcc_arena *scratch);

/* ---- tensors --------------------------------------------------------------------------- */

/* What an element is; from TCC_L_WRITTEN on the number of the cluster that wrote it, counted through all steps. */
enum {
    TCC_L_UNDEFINED,
    TCC_L_ZERO,  /* by the plan */
    TCC_L_GIVEN, /* by the caller */
    TCC_L_WRITTEN,
    TCC_L_GAP = INT32_MAX /* none: between those of a strided tensor */
};

typedef enum tcc_lrole { TCC_L_IN, TCC_L_OUT, TCC_L_INOUT, TCC_L_WORKSPACE } tcc_lrole;

typedef struct tcc_ltensor {
    const char *name;
    const tcc_type *type;
    tcc_lrole role;
    int64_t n;       /* elements, those between the end of a row and the next one included */
    int64_t row;     /* elements from one row to the next */
    int64_t columns; /* elements of a row that there are; the others may be read and written, and mean nothing */
    uint32_t *elems; /* what each is; NULL: nothing is recorded */
    bool tiled;      /* written by a step whose grid counts tiles */
    uint32_t anywhere; /* the first cluster of the last step that reads elements of which it is not known where they are */
} tcc_ltensor;

/* The box of a tensor map. */
enum { TCC_L_RANK = 5 };
typedef struct tcc_lmap {
    tcc_ltensor *tensor;
    int64_t extents[TCC_L_RANK], strides[TCC_L_RANK], box[TCC_L_RANK];
    unsigned rank;
} tcc_lmap;

/* Makes the tensors that a plan accesses, for its sizes, as they are before the first step. `parameters` as
 * tcc_func_parameters gives them. False, reported: one is too large. */
tcc_ltensor *tcc_launch_tensors(const tcc_func *variant, const tcc_func *parameters, const tcc_lsizes *s,
                                tcc_arena *scratch);
/* ---- a launch -------------------------------------------------------------------------- */

/* A parameter of a kernel: a number, a tensor's address or a tensor map. */
typedef struct tcc_lparam {
    tcc_ltensor *tensor; /* NULL: it is a number */
    tcc_lmap map;        /* rank 0: it is none */
    bool known;          /* of a number */
    int64_t number;
} tcc_lparam;

/* Words that were stored at an address, the first one first. */
typedef struct tcc_lwords {
    int64_t address;
    TCC_VEC(int64_t) words;
} tcc_lwords;

typedef TCC_VEC(tcc_lwords) tcc_lcta_words;

typedef struct tcc_launch {
    const tcc_func *f;
    const tcc_lprogram *program;
    const tcc_lsizes *sizes;
    tcc_lparam *params;
    int64_t n_ctas, drawn;
    uint32_t first_writer; /* the number of its first cluster */
    unsigned cluster, n_warps, lanes;
    bool counts_tiles; /* whether the grid does: by dimensions, or in a kernel that has none */
    tcc_arena *scratch;
    tcc_diag *diag;
    tcc_status status;
    tcc_lcta_words *words;      /* of each CTA of the cluster */
    TCC_VEC(int64_t) draws;     /* of the cluster */
    bool writes;                /* the cluster has written something */
    int64_t n_ops;              /* run by all warps so far */
    bool too_long;              /* more than are followed */
} tcc_launch;

/* How much is known of a value. */
typedef enum tcc_lknown { TCC_L_UNKNOWN, TCC_L_UNIFORM, TCC_L_VARYING } tcc_lknown;

/* A warp on its way. */
typedef struct tcc_lwarp {
    tcc_launch *l;
    int64_t cta;
    unsigned rank, id;
    uint32_t writer;     /* the number of its cluster */
    uint64_t mask;       /* lanes that run */
    bool rehearses;      /* only what is drawn matters */
    bool waits;          /* for a word that is not stored yet */
    size_t n_drawn;
    tcc_lcta_words read; /* how many words of each address: those in its list count */
    tcc_cell *cells;     /* TCC_L_LANES of each slot */
    uint8_t *known;      /* a tcc_lknown of each slot */
    uint8_t *at_first;   /* what is known before a warp runs */
} tcc_lwarp;

static inline tcc_cell *tcc_launch_cells(const tcc_lwarp *w, int slot)
{
    return w->cells + (size_t)slot * TCC_L_LANES;
}
/* An integer in a lane. */
static inline int64_t tcc_launch_int(const tcc_lwarp *w, int slot, unsigned lane)
{
    return tcc_launch_cells(w, slot)[w->known[slot] == TCC_L_UNIFORM ? 0 : lane].i;
}
/* The first lane that runs. */
static inline unsigned tcc_launch_first_lane(const tcc_lwarp *w)
{
    return (unsigned)__builtin_ctzll(w->mask);
}
/* Gives a result one number for all lanes. */
void tcc_launch_give(tcc_lwarp *w, const tcc_linst *in, int64_t number);

/* Reports what is wrong, at an op or the kernel, and returns false. */
bool tcc_launch_wrong(tcc_launch *l, tcc_status status, const tcc_op *op, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same of a warp: a note says where and for which sizes. */
bool tcc_launch_wrong_in(tcc_lwarp *w, tcc_status status, const tcc_op *op, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Runs all warps of a launch. */
bool tcc_launch_run(tcc_launch *l);
/* Computes what an op other than control flow gives; false: something is wrong. */
bool tcc_launch_compute(tcc_lwarp *w, const tcc_linst *in);
/* An access to global memory. */
bool tcc_launch_access(tcc_lwarp *w, const tcc_linst *in);
/* Reads an element of which nothing is known but that it is in the tensor. */
bool tcc_launch_read_anywhere(tcc_lwarp *w, const tcc_linst *in);
/* Draws, and words in shared memory. */
bool tcc_launch_draw(tcc_lwarp *w, const tcc_linst *in);
bool tcc_launch_store_word(tcc_lwarp *w, const tcc_linst *in);
bool tcc_launch_load_word(tcc_lwarp *w, const tcc_linst *in);
void tcc_launch_map_word(tcc_lwarp *w, const tcc_linst *in); /* nvvm.mapa */

/* ---- plans ----------------------------------------------------------------------------- */

typedef struct tcc_lstep {
    const tcc_func *f;
    const tcc_lprogram *program;
} tcc_lstep;

/* A plan with one set of sizes. */
typedef struct tcc_lplan {
    const tcc_func *variant, *parameters;
    tcc_lstep *steps;
    size_t n_steps, n_tensors;
    tcc_ltensor *tensors;
    uint32_t writers; /* the number of the next cluster */
    tcc_lsizes sizes;
    bool too_long;    /* a launch with these sizes took more than is followed */
    tcc_arena *scratch;
    tcc_diag *diag;
} tcc_lplan;

/* Reads the plan of a variant. False: there is nothing to check, with the status TCC_OK where it is none. */
bool tcc_launch_open(tcc_lplan *p, const tcc_func *variant, tcc_arena *scratch, tcc_diag *diag, tcc_status *status);
/* All that its check looks at, in bytes: what is the same in another plan of the module need not be checked again. */
const uint8_t *tcc_launch_write(const tcc_lplan *p, size_t *n);
/* Checks it. Returns as tcc_protocol_check does (checker.h). */
tcc_status tcc_launch_prove(tcc_lplan *p);
/* All of this. */
tcc_status tcc_launch_check(const tcc_func *variant, tcc_arena *scratch, tcc_diag *diag);

#endif

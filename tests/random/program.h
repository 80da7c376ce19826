/* program: a program of the tile language as data, so that it can be drawn at random, printed, and
 * made smaller piece by piece.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RANDOM_PROGRAM_H
#define TCC_TESTS_RANDOM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "support/str.h"

enum {
    MAX_INDICES = 6,
    MAX_OPERANDS = 6,
    MAX_OUTPUTS = 3,
    MAX_TEMPS = 3,
    MAX_SCALES = 2,
    MAX_EXPRS = 112,
    MAX_CHILDREN = 4,
    NO_EXPR = -1
};

/* Index 0 is the summed one; every other is an index of A, of B, or of both: a batch. */
typedef struct index_info {
    char name; /* of the index; of its dimension in capitals */
    enum { SYMBOLIC, NUMBER, CONSTANT } kind;
    int64_t size; /* of its dimension, unless it is symbolic */
    int same_as;  /* the index whose dimension it has, or itself */
} index_info;

typedef enum element { F16, BF16, F32, I32, I8, U8, N_ELEMENTS } element;

/* Which tensors are multiplied and what their products are added in: a row of print.c, the first
 * two for every target. */
enum { PRODUCTS_OF_ALL = 2, PRODUCTS_OF_WARPS = 8, PRODUCTS_OF_GFX11 = 12, PRODUCTS_OF_GFX12 = 16 };
/* Of lanes: f32, and f64, in which then all is computed and F32 stands for f64. */
enum { PRODUCT_OF_LANES = PRODUCTS_OF_GFX12, PRODUCT_OF_WIDE_LANES, PRODUCT_OF_TF32, N_PRODUCTS };
/* Whether the target, or the one that computes what it does not, has a matrix instruction for a product; of how many bits
 * its factors are. */
bool program_multiplies(const char *target, int product, int *bits);

/* A tensor has the indices in its mask, in their order in `order`, which has them all. */
typedef struct tensor {
    unsigned mask;
    int8_t order[MAX_INDICES];
    element type;
} tensor;

typedef enum expr_kind {
    E_SUM,     /* sum of products number `which` */
    E_OPERAND, /* number `which` */
    E_TEMP,
    E_INOUT,  /* what was in the output that the expression is for */
    E_NUMBER, /* which: whether it is a constant of the file */
    E_FACTOR, /* what the sum's computed factor is computed from */
    E_SCALE,  /* number `which`, in the same */
    E_CALL,   /* operator or function number `which` */
    E_WHERE   /* where(0 which 1, 2, 3) */
} expr_kind;

typedef struct expr {
    expr_kind kind;
    int which;
    double number;
    int child[MAX_CHILDREN]; /* NO_EXPR past the last */
} expr;

/* An operator, if its name is not a word, or a function. */
typedef struct call_info {
    const char *name;
    int arity;
} call_info;
extern const call_info calls[];
extern const int n_calls;
extern const char *const comparisons[];
extern const int n_comparisons;

typedef enum setting {
    TILE_M, /* of the index that the passes call m, wherever it is named so here */
    TILE_N,
    TILE_K,
    STAGES,
    WARPGROUPS, /* on AMD: waves; else, without wgmma, warps */
    PRODUCER,   /* this and the following: number of a word */
    SWIZZLE,    /* on AMD: lanes of a wave */
    EPILOGUE,
    GROUP,
    PERSISTENT,
    CONSUMERS,
    SPLIT,
    CLUSTER, /* CTAs along the index that is summed */
    RASTER,
    N_SETTINGS
} setting;

typedef struct program {
    uint64_t seed;
    const char *target;
    bool by_warps; /* although sm_90a has wgmma: `instr` says so */
    int n_indices;
    index_info indices[MAX_INDICES];
    unsigned live;     /* indices that have not been dropped */
    tensor factors[2]; /* their types are those of the product */
    int n_sums;        /* 1 or 2 */
    enum { OF_PRODUCTS, OF_TERMS, NO_SUMS } sums; /* of the first factor alone, or that itself */
    tensor more[2];  /* factors of the second sum, where it has its own */
    unsigned shared; /* bits of the factors that the second sum has in common with the first */
    int product, second; /* of the first sum; of the second: another one, or the same */
    bool swapped;     /* B * A */
    struct {
        bool is;         /* factor f, in every sum, is an expression of a tensor of type `from` */
        int root, begin; /* the root, and the first expression, of it */
        element from;
    } computed[2];
    int n_scales;
    tensor scales[MAX_SCALES]; /* that are in it, too: some of the factor's indices, or scalars */
    unsigned named;            /* bits of the factors that are intermediates, in every sum */
    bool sum_inlined;          /* an intermediate is written out where it is used, if that is one place */
    bool renamed;              /* intermediates are defined with other indices than they are read with */
    int n_operands;
    tensor operands[MAX_OPERANDS]; /* without indices: scalars */
    int n_temps;
    struct {
        tensor shape; /* its mask is what the expression varies over */
        int root;
    } temps[MAX_TEMPS];
    int n_outputs;
    struct {
        tensor t;
        int root;
    } outputs[MAX_OUTPUTS];
    int n_exprs;
    expr exprs[MAX_EXPRS];
    bool has_schedule;
    unsigned set; /* settings that the schedule has */
    int values[N_SETTINGS];
    int tiled[2]; /* the indices that TILE_M and TILE_N are of */
} program;

/* Draws a program for a target; the same for the same seed. */
void program_draw(program *p, uint64_t seed, const char *target);

/* Whether a target is one of AMD's; whether a program is for warps that multiply registers (mma.sync). */
bool target_is_amd(const char *target);
bool program_has_warps(const program *p);

/* Appends the text of a file with one kernel. What no output needs is left out. */
void program_print(tcc_str *out, const program *p);

/* Indices over which an expression varies. */
unsigned program_indices_of(const program *p, int e);

/* Makes p as small as it gets while fails(p, user) holds, as it does at first. Returns how many
 * smaller programs were tried. */
unsigned program_shrink(program *p, bool (*fails)(const program *p, void *user), void *user);

#endif

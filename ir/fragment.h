/* fragment: matrices that the lanes of a warp or a wave, or the warps of a warpgroup, hold
 * together.
 *
 * The place of an element is a linear map over GF(2) of three numbers: which of its lane's elements
 * it is, which lane, which warp. Each bit that is set in them adds its own rows or columns, and no
 * two bits add the same (K. Zhou et al., "Linear Layouts", 2025). ir/fragments.def has the maps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_FRAGMENT_H
#define TCC_IR_FRAGMENT_H

#include "ir/target.h"

enum { TCC_FRAGMENT_BITS = 6 };

typedef struct tcc_place {
    unsigned row, col;
} tcc_place;

/* What the bits of a number add, the lowest first. */
typedef struct tcc_fragment_bits {
    unsigned n;
    struct {
        uint16_t row, col;
    } adds[TCC_FRAGMENT_BITS];
} tcc_fragment_bits;

typedef struct tcc_fragment {
    const char *name;
    unsigned rows, cols;
    tcc_fragment_bits elements, lanes, warps;
    bool opaque; /* it is not known where elements are */
} tcc_fragment;

typedef enum tcc_fragment_id {
#define FRAGMENT(id, rows, cols, registers, lanes, warps) TCC_FRAGMENT_##id,
#include "ir/fragments.def"
    TCC_FRAGMENT_COUNT
} tcc_fragment_id;

extern const tcc_fragment tcc_fragments[TCC_FRAGMENT_COUNT];

/* How many elements of one matrix a lane holds; 0 for a lane that holds none. */
unsigned tcc_fragment_elements(const tcc_fragment *f, unsigned lane);

/* Where an element of a lane of a warp is. Elements that a lane has beyond those of one matrix are
 * in a second one to the right of it, and so on. */
tcc_place tcc_fragment_place(const tcc_fragment *f, unsigned element, unsigned lane, unsigned warp);

/* The same for all of the first warp: where the elements of lane 0 are, and where the first element of each lane is. */
typedef struct tcc_places {
    tcc_place of_element[1 << TCC_FRAGMENT_BITS], of_lane[1 << TCC_FRAGMENT_BITS];
} tcc_places;
tcc_places tcc_fragment_places(const tcc_fragment *f);
static inline tcc_place tcc_place_in(const tcc_places *p, unsigned element, unsigned lane)
{
    tcc_place e = p->of_element[element], l = p->of_lane[lane];
    return (tcc_place){e.row + l.row, e.col + l.col};
}

/* How many times the lanes hold each element. */
unsigned tcc_fragment_copies(const tcc_fragment *f);
/* Whether the elements of a lane are neighbours, in a row or in a column. */
bool tcc_fragment_has_neighbours(const tcc_fragment *f);

/* As what a tile is held for tile.mma: as results, of 32 bits or after conversion; as the operands a and b; as
 * what is summed. */
typedef enum tcc_hold_as { TCC_AS_RESULT, TCC_AS_A, TCC_AS_B, TCC_AS_SUM } tcc_hold_as;

enum { TCC_MMA_SYNC_M = 16, TCC_MMA_SYNC_N = 8 };

/* D[m,n] += A[m,k] * B[k,n] of a warp, and its fragments: mma_sync.def, fma.def. */
typedef struct tcc_mma_sync {
    tcc_instr instr;
    int ptx;               /* least version of PTX that has it, as tcc_target's */
    int64_t m, n, k, rows; /* rows: that one instruction multiplies, of m */
    tcc_scalar a, b, acc;  /* i8 and i4 for both signs */
    tcc_fragment_id of_a, of_b, of_d, of_r; /* of_r: of results after conversion */
} tcc_mma_sync;
/* Rows and columns of D. */
typedef struct tcc_mma_block {
    int64_t m, n;
} tcc_mma_block;
/* The i-th shape of a target's instructions of a kind, those that multiply what the first one does; false past the
 * last. */
bool tcc_mma_sync_block(const tcc_target *target, tcc_instr instr, size_t i, tcc_mma_block *out);
/* The one for these element types, or NULL; of those that are by `instr`, where that is not TCC_INSTR_COUNT. Of several
 * shapes the first. */
const tcc_mma_sync *tcc_mma_sync_find(const tcc_target *target, tcc_instr instr, tcc_scalar a, tcc_scalar b,
                                      tcc_scalar acc);
/* The same, of this shape. */
const tcc_mma_sync *tcc_mma_sync_of_block(const tcc_target *target, tcc_instr instr, tcc_mma_block block, tcc_scalar a,
                                          tcc_scalar b, tcc_scalar acc);
/* The one that an nvvm.mma or nvvm.wmma.mma says, or NULL; types: gets its elements of A, B and the accumulators, or is
 * NULL. */
const tcc_mma_sync *tcc_mma_sync_of(const tcc_op *op, tcc_scalar types[3]);
/* Whether it is wmma.mma: its fragments are opaque. */
bool tcc_mma_sync_is_opaque(const tcc_mma_sync *mma);
/* The fragment that an nvvm.wmma.load or nvvm.wmma.store accesses, and of what elements; TCC_FRAGMENT_COUNT when there
 * is none. */
tcc_fragment_id tcc_mma_sync_accessed(const tcc_op *op, tcc_scalar *elem);
/* How many lines of shared memory that are, and of how many elements. */
void tcc_mma_sync_lines(const tcc_op *op, tcc_fragment_id fragment, unsigned *lines, unsigned *elems);
/* The fragment of tiles with elements of this many bits for the instruction of this shape; TCC_FRAGMENT_COUNT if there
 * is none. */
tcc_fragment_id tcc_mma_sync_held(const tcc_target *target, tcc_instr instr, tcc_mma_block block, tcc_hold_as as,
                                  unsigned bits);
/* A matrix instruction that such a tile, with this fragment, is held for; NULL when there is none. */
const tcc_mma_sync *tcc_mma_sync_with(const tcc_target *target, tcc_hold_as as, unsigned bits, tcc_fragment_id id);

/* What a wave of 32 or 64 lanes holds for an instruction of ir/wmma.def: A, elements of this many
 * bits, as [m][k], or B as [n][k]; and D, as C. */
const tcc_fragment *tcc_wmma_operand(const tcc_target *target, unsigned bits, int64_t k,
                                     unsigned wave);
const tcc_fragment *tcc_wmma_result(const tcc_target *target, unsigned wave);
/* The fragment of tiles with elements of this many bits; TCC_FRAGMENT_COUNT if there is none. */
tcc_fragment_id tcc_wmma_held(const tcc_target *target, tcc_hold_as as, unsigned bits, unsigned wave);
/* Whether a target's tiles with this fragment are packed in registers as the matrix instruction needs them; and
 * as what. */
bool tcc_wmma_is_packed(const tcc_target *target, tcc_fragment_id id, tcc_hold_as *as);
/* 32-bit registers of one lane that hold A or B. */
int64_t tcc_wmma_operand_words(const tcc_target *target, int64_t k, unsigned bits, int64_t wave);
/* Groups of 16 lanes that hold different k of A and B. */
int64_t tcc_wmma_k_groups(const tcc_target *target, int64_t k, unsigned bits, int64_t wave);

#endif

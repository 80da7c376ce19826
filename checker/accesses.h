/* accesses: lanes, and what they access in shared and in global memory.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_ACCESSES_H
#define TCC_CHECKER_ACCESSES_H

#include "checker/protocol.h"

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

/* ---- memory (memory.c, footprints.c, loads.c) -------------------------------------------------------- */

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
/* Whether no lane takes of one footprint what another takes of the other. */
bool tcc_p_are_of_same_lanes(tcc_protocol *p, uint32_t a, uint32_t b);
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
/* Of a tensor's parameter. */
const char *tcc_p_tensor_name(const tcc_protocol *p, uint32_t tensor);
/* Whether an access comes after one that was kept; keeps one. */
bool tcc_p_global_comes_after(const tcc_protocol *p, const tcc_pstate *s, const tcc_pglobal *g, const tcc_paccess *by);
void tcc_p_global_keep(tcc_protocol *p, tcc_pstate *s, const tcc_pglobal *g);
/* Checks and keeps what a copy, or an op of threads, does to the tensor that is followed; false,
 * reported, when it is not ordered. */
bool tcc_p_global_copy(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by);
bool tcc_p_global_ordinary(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in);
/* The warp begins another iteration of a loop. */
void tcc_p_global_next_iteration(tcc_pstate *s, unsigned warp, const tcc_op *loop);

/* ---- places (place.c) ---------------------------------------------------------- */

/* A number that is added along a dimension. */
typedef struct tcc_pterm {
    const tcc_value *value;
    uint32_t slot, dim;
    int64_t modulus; /* by which its remainder is asked for */
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

/* ---- copies to tensors that are only written (sent.c) ----------------------------------- */

/* The tensor to which an op copies, if the kernel does not read it; else 0. */
uint32_t tcc_p_sent_to(const tcc_protocol *p, const tcc_op *op);
/* A thread starts such a copy; false, reported, when another one may be written later. */
bool tcc_p_send(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by);
/* A warp's thread has waited until those of its first groups were written. */
void tcc_p_sent_is_written(tcc_protocol *p, tcc_pstate *s, unsigned warp, uint32_t groups);
/* From here on, coordinates that depend on the loop are others. */
void tcc_p_sent_next_iteration(tcc_pstate *s, unsigned warp, const tcc_op *loop);
/* Whether a place may differ from warp to warp. */
bool tcc_p_sent_by_thread(const tcc_protocol *p, const tcc_pplace *place);
/* Whether two ops copy to the same elements; whether one copies elsewhere in each iteration of a loop. */
bool tcc_p_is_sent_over(const tcc_pinst *x, const tcc_pinst *y);
bool tcc_p_sent_varies(const tcc_pinst *in, const tcc_op *loop);

#endif

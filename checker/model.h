/* model: what the files of the protocol checker share.
 *
 * decode.c   the ops that matter: synchronization, accesses, and the scalars they need
 * needs.c    how much of each value is asked for
 * slots.c    where ops have it
 * named.c    how many named barriers there are
 * table.c    tables from a few words to a number
 * value.c    numbers that are known, known up to a period, or only known to be equal
 * footprints.c  shared memory in parts that are accessed alike
 * memory.c   who has accessed them, and whether that is in order
 * loads.c    which bytes loads and stores access
 * global.c   tensors that copies both read and write
 * sent.c     tensors that are only written, by copies
 * place.c    where in them an access is
 * lanes.c    what lanes of a warp know apart from the others
 * sync.c     barriers and fences
 * async.c    copies
 * cluster.c  CTAs that are followed together
 * symmetry.c CTAs that do the same, of which one is followed
 * images.c   what that one does in the others
 * drawn.c    numbers that are drawn, on their way through shared memory; loops that go on while they say so
 * mma.c      MMAs
 * scalars.c  what ops give; comparisons with numbers that are chosen
 * elect.c    which lane a warp elects
 * step.c     one warp's next op: registers, branches
 * loops.c    and loops
 * runs.c     ops that do not synchronize, done in one step
 * spans.c    loads and stores that are taken for one
 * aside.c    a thread that fills stages, followed as a warp of its own
 * operands.c what MMAs read and copies write, however it is said
 * alike.c    functions that one proof is for
 * numbers.c  numbers that may be computed otherwise there
 * module.c   the functions of a module, in threads
 * state.c    a state: the first one, copies, what must hold when warps end
 * explore.c  all executions: which warp goes on, numbers of iterations, states seen before
 * reached.c  what a proof has covered
 * rotate.c   what rotates the stages of a ring
 * renames.c  what that makes of mbarriers and bytes
 * rotated.c  states that differ by the stage which comes next
 * laps.c     or by the phase of mbarriers that tiles use in turn
 * linear.c   sums of symbols, and loops that go by one
 * remainders.c products of a tile's index and a number of iterations
 * uniform.c  numbers that depend on which tile it is
 * past.c     what was known of numbers that are forgotten
 * sums.c     numbers that wait for a number of iterations
 * common_knowledge.c  what all warps know
 * normal.c   when two states are the same
 * ranks.c    how much is known in them
 * covers.c   and when one stands for another
 * calm.c     states in which no warp will reach an mbarrier again
 * trace.c    errors, and the steps that led there
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_MODEL_H
#define TCC_CHECKER_MODEL_H

#include "checker/accesses.h"

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
bool tcc_p_come_to(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, int64_t id, int64_t threads,
                   bool waits);
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
/* The i-th piece of the slots in which there may be something, being in a region: of its arguments, and of the ops up
 * to the one that is next. In others there is nothing. False when there are no more. */
bool tcc_p_held_slots(const tcc_pframe *f, size_t i, tcc_pslots *piece);
/* What a warp's slots hold. from NULL: nothing. */
void tcc_p_copy_slots(const tcc_pwarp *w, tcc_pvalue *to, const tcc_pvalue *from);
/* Before the region is left that the warp is in: clears what was inside. */
void tcc_p_clear_slots(const tcc_protocol *p, tcc_pstate *s, unsigned warp);
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
/* After so many rotations all is as before; 0: there are none. */
int64_t tcc_p_rotation_period(const tcc_protocol *p);
/* Whether there are loops in loops: tiles of any numbers of iterations. */
bool tcc_p_has_tiles(const tcc_protocol *p);
/* Where granules of shared memory are after a rotation; NULL when there is none. */
const uint32_t *tcc_p_rotated_granules(const tcc_protocol *p);
bool tcc_p_is_rotated_barrier(const tcc_protocol *p, int64_t address);
/* What some states were taken for one by does not hold: if that was used, ends this attempt, so that the next one tells
 * all states apart. Returns whether it was. */
bool tcc_p_tell_apart_if(tcc_protocol *p, bool used);
/* What must stay in its place under rotations does not. False when that does no harm, being known in time. */
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
/* ---- laps (laps.c) ---------------------------------------------------------------------- */

/* Finds what a lap does, given the state that comes first. */
void tcc_p_laps_find(tcc_protocol *p, tcc_pstate *first);
/* How many tiles later than s the state is by which it is written: 0 or a lap; -1: states are told apart. */
int64_t tcc_p_lap(const tcc_protocol *p, const tcc_pstate *s);
bool tcc_p_is_index_of_tiles(const tcc_protocol *p, const tcc_pframe *f);
bool tcc_p_is_flipped_barrier(const tcc_protocol *p, int64_t address);
/* What a warp's slots are so many tiles later. */
void tcc_p_lap_slots(const tcc_protocol *p, unsigned warp, tcc_pvalue *slots, int64_t lap);
/* A wait for such an mbarrier does not depend on the tile. False when that does no harm, being known in time. */
bool tcc_p_laps_fail(tcc_protocol *p);

/* How often a loop of known bounds runs. */
int64_t tcc_p_known_iterations(const tcc_pframe *f);
/* Whether a record's number is more than x: 0, 1, or -1 if that must be chosen. */
int tcc_p_is_more(tcc_protocol *p, const tcc_pstate *s, int record, int64_t x);
/* A product of an index and a number of iterations, as far as it is asked for. *done when op is one. */
tcc_presult tcc_p_multiply(tcc_protocol *p, tcc_pstate *s, const tcc_op *op, const tcc_pvalue *args, tcc_pvalue *out,
                           bool *done);
/* Whether the numbers of a state go with the remainders that were chosen of them. */
bool tcc_p_is_possible(const tcc_protocol *p, const tcc_pstate *s);
/* The symbol of what a value is computed from, which depends on indices of loops, on what was drawn or on memory; false
 * when it may differ from warp to warp, or does not depend on any. */
bool tcc_p_uniform(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_value *v, tcc_pvalue *out);
/* Whether a value may depend on those; *loads is set where it does on memory. */
bool tcc_p_is_of_tiles(const tcc_value *v, bool *loads, unsigned depth);
/* A record is forgotten; whether what was known of its number before rules out what is known now (past.c). */
void tcc_p_note_past(const tcc_protocol *p, tcc_pstate *s, const tcc_precord *r);
bool tcc_p_contradicts_past(const tcc_protocol *p, const tcc_pstate *s, const tcc_precord *r);
/* An iteration count, once it has a known upper bound; until then it stays a symbol. False if the number must be
 * chosen. */
bool tcc_p_find_number(tcc_protocol *p, const tcc_pstate *s, unsigned warp, tcc_pvalue *v);
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

/* ---- states (state.c) ------------------------------------------------------------------ */

tcc_pstate *tcc_p_state_create(const tcc_protocol *p);
/* Makes room for so many accesses to tensors. */
void tcc_p_globals_reserve(const tcc_protocol *p, tcc_pstate *s, unsigned n);
/* Copies what is in use. */
void tcc_p_state_copy(const tcc_protocol *p, tcc_pstate *to, const tcc_pstate *from);
/* What fixed ops give in each warp. */
void tcc_p_compute_fixed(tcc_protocol *p);
tcc_pstate *tcc_p_first_state(tcc_protocol *p);
/* Whether a warp may end, and all of them; false, reported, when something is still on its way. */
bool tcc_p_check_end_of_warp(tcc_protocol *p, tcc_pstate *s, unsigned warp);
bool tcc_p_check_end(tcc_protocol *p, tcc_pstate *s);

/* ---- elected lanes (elect.c) ------------------------------------------------------------- */

void tcc_p_elections_create(tcc_protocol *p);
/* nvvm.elect. Without a state nothing is known. */
tcc_presult tcc_p_elect(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, tcc_pvalue *out);
/* Which lane it is in the execution with this record, which is of a choice that was made. */
const char *tcc_p_elected_text(const tcc_protocol *p, const tcc_precord *r);
/* An op has computed v: marks it if it depends on the choice. */
void tcc_p_elect_passes_on(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                           tcc_pvalue *v);
/* Lanes of a warp are told apart by a list of numbers, which is not marked; one from the others; each; and by the
 * operands of an op that not all do, or that arrives at barriers. */
void tcc_p_lanes_differ(const tcc_protocol *p, unsigned warp, const tcc_pvalue *v);
void tcc_p_lane_differs(const tcc_protocol *p, unsigned warp, unsigned lane);
void tcc_p_all_lanes_differ(const tcc_protocol *p, unsigned warp);
void tcc_p_lanes_differ_by(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in);
/* Whether no lanes were told apart, of warps that elect, that were taken to be alike. If some were, the next attempt
 * does not take them so. */
bool tcc_p_elections_hold(const tcc_protocol *p);
/* Whether all lanes are taken to be alike. */
bool tcc_p_lanes_are_alike(const tcc_protocol *p);

/* ---- what was covered (reached.c) ------------------------------------------------------ */

void tcc_p_reached_create(tcc_protocol *p);
/* A warp has done so many ops, of one block; it enters a loop, or begins an iteration of it, or leaves it. */
void tcc_p_reached_ops(tcc_protocol *p, const tcc_pinst *first, size_t n);
void tcc_p_reached_loop(tcc_protocol *p, const tcc_pinst *in, const tcc_pframe *f);
void tcc_p_reached_iteration(tcc_protocol *p, const tcc_pframe *f);
void tcc_p_reached_end_of_loop(tcc_protocol *p, const tcc_pframe *f);
/* Whether the executions that were followed cover the kernel, behind them all; false, reported, when something was not
 * covered. Adds it up in p->covered. */
bool tcc_p_is_covered(tcc_protocol *p);

/* ---- executions ------------------------------------------------------------------------ */

/* A function that was read: p->status says whether it can be followed, `silent` is told why not. */
tcc_protocol *tcc_p_open(const tcc_func *f, tcc_arena *scratch, tcc_diag *silent);
/* Follows it, which is done once; what is wrong is told to diag. */
tcc_status tcc_p_prove(tcc_protocol *p, tcc_diag *diag, tcc_covered *covered);
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
/* Its number, and what that is at least. */
tcc_pvalue tcc_p_dim(tcc_protocol *p, size_t i);
int64_t tcc_p_least_of_dim(const tcc_protocol *p, size_t i);
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
/* Whether a state is calm and was not before: then which atoms it does not matter of what was done to them;
 * else NULL. */
const bool *tcc_p_comes_to_rest(tcc_protocol *p, tcc_pstate *s);
/* What all know, as the clocks of an entity. */
void tcc_p_common(const tcc_protocol *p, const tcc_pstate *s, uint32_t *common);
/* The warps that are told of it before they do anything, a bit each: they are not among those who know it. */
uint64_t tcc_p_told(const tcc_protocol *p, const tcc_pstate *s);
/* What some warps do, a bit each; told: which are among these. */
void tcc_p_common_of(const tcc_protocol *p, const tcc_pstate *s, uint64_t warps, uint64_t told, uint32_t *common);
/* Whether a warp's lanes, those that are not part, or a part's do something more. */
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

/* interp: runs a function of the IR, of any level, on the CPU.
 *
 * At the tensor level this defines what a kernel computes. At the lower levels it is
 * a model of the machine that also proves: it reports races on shared memory, deadlocks, reads of
 * registers that an MMA still writes, missing proxy fences, wrong descriptors, transaction
 * bytes that do not match, accesses out of bounds and reads of unwritten memory, each at the
 * location of the op, with TCC_ERR_INTERNAL.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_INTERP_H
#define TCC_INTERP_INTERP_H

#include <stdatomic.h>

#include "ir/ir.h"

/* When asynchronous operations end. */
typedef enum tcc_interp_order {
    TCC_ORDER_RANDOM, /* as the seed has it: some seeds early, some late, most in between */
    TCC_ORDER_EARLY,  /* as soon as they are started */
    TCC_ORDER_LATE,   /* when no thread can go on otherwise */
    TCC_ORDER_TIMED   /* when a model of the machine's speed has them end; warps run by it, too.
                       * Target level; elsewhere as TCC_ORDER_RANDOM */
} tcc_interp_order;

typedef struct tcc_timeline tcc_timeline; /* timeline.h */

typedef struct tcc_interp_options {
    /* One extent for each name of the signature's attribute `dims`, in that order. */
    const int64_t *dims;
    /* The function whose parameters `args` are; NULL: tcc_func_signature's, of the one that runs.
     */
    const tcc_func *signature;
    /* When not NULL, of each argument the bytes that its address is a multiple of. Otherwise
     * addresses are as aligned as a function asks. */
    const int64_t *alignments;
    /* When not NULL, only these rows of each output are computed, the others stay as they are. A
     * row is a flat index over all dimensions of an output but the last; those that an output
     * does not have are passed over. Tensor level only. */
    const int64_t *rows;
    size_t n_rows;
    /* Round every result to its type, and outputs to theirs, as the machine does. Without it floats
     * are doubles, which only arith.cast rounds. The target level always rounds. */
    bool machine;
    /* When not NULL, of each output as many elements as args has, which get the interval that the
     * machine's result is in before it is rounded to the output's type: interval.h. Tensor level
     * only, without `machine`. */
    double *const *low, *const *high;
    /* These intervals are of a machine whose sums are exact where they are in f32 or f64. */
    bool exact_sums;
    /* Chooses among the orders in which warps run and, where `order` leaves it open,
     * asynchronous operations end. */
    uint64_t seed;
    tcc_interp_order order;
    /* In the timed order, what CTA `cta` did is shown to fn, when it is not NULL, once the CTA has
     * ended; of several steps, of the variant itself. The timeline lives during the call, which
     * another thread may make. */
    struct {
        int64_t cta;
        bool only; /* run no other cluster, and do not compute what MMAs do: results may be anything */
        void (*fn)(const tcc_timeline *t, void *user);
        void *user;
    } timeline;
    /* How many ops a CTA may run, at the upper levels all of them together, before it is taken to
     * run forever, and how many bytes a run may need at once; 0: these. */
    uint64_t max_steps, max_bytes;
    const atomic_bool *interrupted; /* when not NULL, the run ends with TCC_ERR_INTERRUPTED as soon as it is set */
    unsigned threads; /* that run CTAs of a target-level function; 0: only the caller's */
    /* When not NULL, told by the caller's thread how many clusters of a grid have ended, of how many. Target level. */
    void (*progress)(int64_t done, int64_t all, void *user);
    void *progress_user;
} tcc_interp_options;

#define TCC_INTERP_MAX_STEPS UINT64_C(1000000000)
#define TCC_INTERP_MAX_BYTES (UINT64_C(16) << 30)

/* Runs f, or where it takes steps or is one of them, all steps of its variant (signature.h). args has
 * a pointer for each parameter of the signature: a tensor is a row-major array of doubles that its
 * element type can hold, a scalar is one double. Outputs are written in place.
 *
 * Returns TCC_OK; TCC_ERR_TYPE when f has no signature; TCC_ERR_ARGUMENT for invalid extents or
 * rows; TCC_ERR_NO_VARIANT when f is not valid for these extents (its attribute `requires`);
 * TCC_ERR_UNSUPPORTED for what is not modelled here; TCC_ERR_LIMIT if it takes too many steps or
 * too much memory; TCC_ERR_INTERNAL if f does something illegal. diag has the reason. `scratch`
 * holds temporary data. */
tcc_status tcc_interp_run(const tcc_func *f, const tcc_interp_options *options, double *const *args,
                          tcc_arena *scratch, tcc_diag *diag);

/* Whether f's variant is valid for these extents and alignments: TCC_OK, or as above, with the reason. */
tcc_status tcc_interp_check(const tcc_func *f, const tcc_interp_options *options,
                            tcc_arena *scratch, tcc_diag *diag);

#endif

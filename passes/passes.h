/* passes: every pass, the pipeline that they make, and the manager that runs them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_PASSES_H
#define TCC_PASSES_PASSES_H

#include "ir/target.h"
#include "passes/pass.h"

/* PASS(id): tcc_pass_id, in its own file, in the order in which the pipeline first runs them.
 * docs/passes.md shows one kernel after each. */
#define TCC_PASSES(PASS)                                                                           \
    PASS(canonicalize)                                                                             \
    PASS(cse)                                                                                      \
    PASS(dce)                                                                                      \
    PASS(choose_strides)                                                                           \
    PASS(partition)                                                                                \
    PASS(choose_axes)                                                                              \
    PASS(choose_variants)                                                                          \
    PASS(join_steps)                                                                               \
    PASS(pad_operands)                                                                             \
    PASS(merge_indices)                                                                            \
    PASS(choose_schedule)                                                                          \
    PASS(split_sums)                                                                               \
    PASS(stream)                                                                                   \
    PASS(tile)                                                                                     \
    PASS(choose_mma)                                                                               \
    PASS(choose_layout)                                                                            \
    PASS(estimate_cost)                                                                            \
    PASS(choose_pipeline)                                                                          \
    PASS(distribute_grid)                                                                          \
    PASS(pipeline_copies)                                                                          \
    PASS(pipeline_registers)                                                                       \
    PASS(specialize_warps)                                                                         \
    PASS(drain_rings)                                                                              \
    PASS(assign_layouts)                                                                           \
    PASS(chunk_epilogue)                                                                           \
    PASS(exchange_tiles)                                                                           \
    PASS(draw_tiles)                                                                               \
    PASS(allocate_shared)                                                                          \
    PASS(lower_to_nvvm)                                                                            \
    PASS(lower_to_amdgcn)                                                                          \
    PASS(roll_elements)                                                                            \
    PASS(expand_math)                                                                              \
    PASS(licm)                                                                                     \
    PASS(reduce_strength)                                                                          \
    PASS(choose_ctas)                                                                              \
    PASS(record_waits)                                                                             \
    PASS(interleave)

#define PASS(id) extern const tcc_pass tcc_pass_##id;
TCC_PASSES(PASS)
#undef PASS

/* The i-th pass, NULL past the last. */
const tcc_pass *tcc_pass_at(size_t i);
const tcc_pass *tcc_pass_find(const char *name, size_t n);

/* Runs dce on a function; returns whether it changed. */
bool tcc_erase_dead(tcc_func *f, tcc_arena *scratch);
/* How many instructions expand-math makes of an op, about; 1 if it leaves it alone. */
size_t tcc_expanded_instructions(tcc_opcode code);


typedef struct tcc_pass_options {
    const char *print_after; /* "all", "changed", a pass name, or NULL */
    bool verify_each;
    void (*print)(const char *text, void *user);
    /* Called after every pass with the time it took. */
    void (*time)(const char *pass, double ms, void *user);
    /* Called with what a pass left, once it is verified; its status ends the run. */
    tcc_status (*check)(const tcc_ir *ir, const char *pass, void *user);
    void *user;
} tcc_pass_options;

/* Runs a comma-separated list of passes over every function of a module; the compiler's own list
 * is tcc_pipeline's. An unknown name is TCC_ERR_ARGUMENT. With verify_each, a pass that produces
 * invalid IR is TCC_ERR_INTERNAL and is named in a diagnostic. */
tcc_status tcc_run_passes(tcc_ir *ir, const char *passes, const tcc_pass_options *options,
                          tcc_diag *diag);

/* Runs passes, all of which exist, on a function and those behind it, also on those that they add, up to `end`. Nothing
 * is printed, verified or timed. */
tcc_status tcc_run_passes_on(tcc_pass_ctx *ctx, tcc_func *first, const tcc_func *end, const char *passes);

/* From tensor-level IR to the target level; NULL when the target's family has no passes yet. */
const char *tcc_pipeline(const tcc_target *target);
extern const char tcc_pipeline_to_nvvm[], tcc_pipeline_to_amdgcn[];
/* Its beginnings, which end with complete schedules and at these levels, and are the same for all targets. */
extern const char tcc_pipeline_to_schedule[], tcc_pipeline_to_tile[], tcc_pipeline_to_async[];
/* The part between the first two of these: passes/skeleton.h. */
extern const char tcc_pipeline_of_skeletons[], tcc_pipeline_of_their_cost[];
/* The rest of the target's list. */
const char *tcc_pipeline_from_tile(const tcc_target *target);

#endif

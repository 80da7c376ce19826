/* mutations: ways to leave one safeguard out of what the compiler puts out.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_INTERP_MUTATIONS_H
#define TCC_TESTS_INTERP_MUTATIONS_H

#include "checker/checker.h"
#include "tests/unit/interp/kernel.h"

static inline tcc_op *find(tcc_func *f, tcc_opcode code, int nth)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == code && nth-- == 0)
            return op;
    ck_abort_msg("no such op");
    return NULL;
}

static inline tcc_op *find_last(tcc_func *f, tcc_opcode code)
{
    tcc_op *last = NULL;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == code)
            last = op;
    ck_assert_ptr_nonnull(last);
    return last;
}

/* Gives an op another constant for an operand. */
static inline void set_constant(tcc_op *op, unsigned operand, int64_t v)
{
    tcc_builder b = tcc_builder_before(op);
    tcc_op_set_operand(op, operand, tcc_build_int(&b, op->operands[operand]->type, v));
}

static inline int64_t constant_of(const tcc_value *v)
{
    int64_t i = 0;
    ck_assert(tcc_value_is_int(v, &i));
    return i;
}

/* ---- verdicts ---------------------------------------------------------------------------- */

static inline unsigned count(tcc_func *f, tcc_opcode code)
{
    unsigned n = 0;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        n += op->code == code;
    return n;
}

static inline tcc_status prove(kernel *k, const tcc_func *f)
{
    tcc_arena *scratch = tcc_arena_create(NULL);
    *k->said = 0;
    tcc_status status = tcc_protocol_check(f, scratch, &k->diag);
    tcc_arena_destroy(scratch);
    return status;
}

/* How the runs of all seeds end. */
typedef enum verdict { RIGHT, WRONG_RESULT, REPORTED } verdict;

static inline verdict run_all(kernel *k, const tcc_func *f, uint64_t seeds)
{
    verdict v = RIGHT;
    for (uint64_t seed = 0; seed < seeds && v != REPORTED; seed++) {
        tcc_difference d;
        if (kernel_run(k, f, seed))
            v = REPORTED;
        else if (!tcc_trial_agrees(&k->trial, f, &d))
            v = WRONG_RESULT;
    }
    return v;
}

/* ---- the target level -------------------------------------------------------------------- */

#define NTH(id, nth) find(f, TCC_OP_##id, nth)
#define LAST(id) find_last(f, TCC_OP_##id)

/* clang-format off */
static inline void nothing(tcc_func *f) { (void)f; }
static inline void no_wait_for_full(tcc_func *f) { tcc_op_erase(NTH(nvvm_mbarrier_wait, 0)); }
static inline void no_wait_for_empty(tcc_func *f) { tcc_op_erase(LAST(nvvm_mbarrier_wait)); }
static inline void no_wait_in_loop(tcc_func *f) { tcc_op_erase(NTH(nvvm_wgmma_wait, 0)); }
static inline void no_release(tcc_func *f) { tcc_op_erase(NTH(nvvm_mbarrier_arrive, 0)); }
static inline void no_register_fence(tcc_func *f) { tcc_op_erase(NTH(nvvm_wgmma_fence, 0)); }
static inline void no_commit(tcc_func *f) { tcc_op_erase(NTH(nvvm_wgmma_commit, 0)); }
static inline void no_proxy_fence(tcc_func *f) { tcc_op_erase(NTH(nvvm_fence_proxy_async, 0)); }
static inline void no_init_fence(tcc_func *f) { tcc_op_erase(NTH(nvvm_fence_mbarrier_init, 0)); }
static inline void no_barrier_after_init(tcc_func *f) { tcc_op_erase(NTH(nvvm_barrier, 0)); }
static inline void no_barrier_before_staging(tcc_func *f) { tcc_op_erase(NTH(nvvm_barrier, 1)); }
static inline void no_barrier_before_sending(tcc_func *f) { tcc_op_erase(NTH(nvvm_barrier, 2)); }
static inline void no_bulk_wait(tcc_func *f) { tcc_op_erase(NTH(nvvm_bulk_wait, 0)); }
static inline void no_bulk_commit(tcc_func *f) { tcc_op_erase(NTH(nvvm_bulk_commit, 0)); }
static inline void no_staging(tcc_func *f) { tcc_op_erase(NTH(nvvm_stmatrix, 0)); }
static inline void no_copy(tcc_func *f) { tcc_op_erase(NTH(nvvm_tma_load, 0)); }
static inline void wait_too_little(tcc_func *f)
{
    tcc_attr_set_int(f->ir, &NTH(nvvm_wgmma_wait, 0)->attrs, "pending", 2);
}
static inline void read_before_wait(tcc_func *f)
{
    tcc_op *wait = LAST(nvvm_wgmma_wait);
    tcc_replace_uses(&wait->results[0], wait->operands[0]);
    tcc_op_set_operand(wait, 0, wait->operands[0]);
}
static inline void expect_too_few(tcc_func *f)
{
    tcc_op *op = NTH(nvvm_mbarrier_arrive_expect_tx, 0);
    set_constant(op, 1, constant_of(op->operands[1]) - 16);
}
static inline void expect_too_many(tcc_func *f)
{
    tcc_op *op = NTH(nvvm_mbarrier_arrive_expect_tx, 0);
    set_constant(op, 1, constant_of(op->operands[1]) + 16);
}
static inline void too_many_threads(tcc_func *f) { set_constant(NTH(nvvm_barrier, 1), 1, 320); }
static inline void too_many_arrivals(tcc_func *f) { set_constant(LAST(nvvm_mbarrier_init), 1, 1); }
static inline void too_few_arrivals(tcc_func *f) { set_constant(LAST(nvvm_mbarrier_init), 1, 3); }
static inline void reserved_bits(tcc_func *f)
{
    set_constant(NTH(nvvm_wgmma, 0), 1, INT64_C(1) << 46);
}
static inline void base_offset(tcc_func *f)
{
    set_constant(NTH(nvvm_wgmma, 0), 2, INT64_C(1) << 49);
}
static inline void other_stage(tcc_func *f)
{
    tcc_op *load = NTH(nvvm_tma_load, 0);
    set_constant(load, 0, 1024);
}
static inline void unaligned_stage(tcc_func *f) { set_constant(NTH(nvvm_tma_load, 0), 0, 1024 + 64); }
static inline void outside(tcc_func *f) { set_constant(NTH(nvvm_tma_load, 0), 0, 1024 * 1024); }
static inline void wrong_barrier(tcc_func *f) { set_constant(NTH(nvvm_tma_load, 0), 2, 1024); }
/* clang-format on */

static inline bool says_one_of(const char *said, const char *alternatives)
{
    char one[128];
    for (const char *a = alternatives; *a;) {
        size_t n = strcspn(a, "|");
        snprintf(one, sizeof one, "%.*s", (int)n, a);
        if (strstr(said, one))
            return true;
        a += n + (a[n] == '|');
    }
    return false;
}

/* The kernel f of a plain product, after the passes. */
static inline void open_matmul(kernel *k, const char *schedule, extents e, const char *passes)
{
    char source[512];
    snprintf(source, sizeof source,
             "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
             "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
             "schedule f for sm_90a { %s }\n",
             schedule);
    kernel_open(k, source, e);
    ck_assert_int_eq(tcc_run_passes(k->ir, passes, NULL, &k->diag), TCC_OK);
}

/* The functions that safeguards are left out of: a ring that TMA fills, and a generic variant. */
static inline tcc_func *open_ring(kernel *k)
{
    open_matmul(k, "tile m 128, n 32, k 16; stages 2; producer warp; epilogue tma;",
                (extents){128, 32, 96, 1}, tcc_pipeline(tcc_target_at(0)));
    return k->ir->first;
}

static inline tcc_func *open_generic(kernel *k)
{
    open_matmul(k, "", (extents){70, 9, 320, 1}, tcc_pipeline(tcc_target_at(0)));
    return tcc_func_find(k->ir, "f__generic");
}

#endif

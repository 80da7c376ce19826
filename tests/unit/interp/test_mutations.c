/* What the compiler's output would do with one of its safeguards left out: each is reported, and
 * for the right reason, whatever order of events the seed gives.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/interp/mutations.h"
#include "tests/unit/suite.h"

#ifdef TCC_SANITIZED /* slow */
enum { SEEDS = 2 };
#else
enum { SEEDS = 10 };
#endif

/* Which of two conflicting accesses is reported depends on which runs first. */
typedef struct mutation {
    const char *name;
    void (*mutate)(tcc_func *f);
    const char *says; /* one of these, between '|'; "" for a wrong result; NULL for nothing */
} mutation;

static const mutation of_kernel[] = {
    {"nothing", nothing, NULL},
    {"no_wait_for_full", no_wait_for_full,
     "nvvm.wgmma reads shared memory at byte|nvvm.tma.load writes shared memory at byte|"
     "comes from shared memory that was never written|passes the mbarrier at byte"},
    {"no_wait_for_empty", no_wait_for_empty, "nvvm.tma.load writes shared memory at byte"},
    {"no_wait_in_loop", no_wait_in_loop, "that an MMA may still be reading"},
    {"wait_too_little", wait_too_little, "that an MMA may still be reading"},
    {"read_before_wait", read_before_wait, "reads registers that an MMA may still be writing"},
    {"no_release", no_release, "deadlock"},
    {"no_register_fence", no_register_fence, "no wgmma.fence"},
    {"no_commit", no_commit, "that an MMA may still be reading"},
    {"no_proxy_fence", no_proxy_fence, "with no fence.proxy.async by warp"},
    {"no_init_fence", no_init_fence, "no fence.mbarrier_init"},
    {"no_barrier_after_init", no_barrier_after_init,
     "there is no mbarrier|may still be initialising"},
    {"no_barrier_before_staging", no_barrier_before_staging,
     "that an MMA may still be reading|may still be writing"},
    {"no_barrier_before_sending", no_barrier_before_sending,
     "may still be writing|that a copy to global memory may still be reading"},
    {"no_bulk_wait", no_bulk_wait, "while its copies may still be reading"},
    {"no_bulk_commit", no_bulk_commit, "while its copies may still be reading"},
    {"no_staging", no_staging, ""},
    {"no_copy", no_copy, "deadlock"},
    {"expect_too_few", expect_too_few, "it expected too few bytes|deadlock"},
    {"expect_too_many", expect_too_many, "16 bytes are missing"},
    {"too_many_threads", too_many_threads, "256 of 320 threads have arrived"},
    {"too_many_arrivals", too_many_arrivals,
     "more than 1 arrivals|that an MMA may still be reading|deadlock"},
    {"too_few_arrivals", too_few_arrivals, "deadlock"},
    {"reserved_bits", reserved_bits, "has reserved bits"},
    {"base_offset", base_offset, "has a base offset"},
    {"other_stage", other_stage, "nvvm.tma.load writes shared memory at byte"},
    {"unaligned_stage", unaligned_stage, "1088 is not a multiple of 128"},
    {"outside", outside, "are not in the"},
    {"wrong_barrier", wrong_barrier, "there is no mbarrier at byte 0"},
};

static const mutation of_generic_variant[] = {
    {"nothing", nothing, NULL},
    {"no_proxy_fence", no_proxy_fence, "with no fence.proxy.async by warp"},
    {"no_wait_for_full", no_wait_for_empty,
     "may still be writing|that an MMA may still be reading"},
    {"no_wait_in_loop", no_wait_in_loop, "that an MMA may still be reading"},
    {"no_release", no_release, "deadlock"},
};

/* Applies a mutation to f and runs it with many seeds. */
static void check_mutation(kernel *k, tcc_func *f, const mutation *m)
{
    m->mutate(f);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        tcc_difference d;
        tcc_status status = kernel_run(k, f, seed);
        bool wrong_result = m->says && !*m->says;
        ck_assert_msg(!status == (!m->says || wrong_result), "%s, seed %d: status %d\n%s", m->name,
                      (int)seed, status, k->said);
        if (!m->says)
            kernel_compare(k, f, seed);
        else if (wrong_result)
            ck_assert(!tcc_trial_agrees(&k->trial, f, &d));
        else
            ck_assert_msg(says_one_of(k->said, m->says), "%s, seed %d:\n%s", m->name, (int)seed,
                          k->said);
    }
}

START_TEST(a_safeguard_left_out_of_a_kernel)
{
    kernel k;
    check_mutation(&k, open_ring(&k), &of_kernel[_i]);
    kernel_close(&k);
}
END_TEST

START_TEST(a_safeguard_left_out_of_the_generic_variant)
{
    kernel k;
    check_mutation(&k, open_generic(&k), &of_generic_variant[_i]);
    kernel_close(&k);
}
END_TEST

/* ---- the async level ----------------------------------------------------------------------- */

/* clang-format off */
static void no_acquire(tcc_func *f) { tcc_op_erase(NTH(async_acquire, 0)); }
static void no_async_wait(tcc_func *f) { tcc_op_erase(NTH(async_wait, 0)); }
static void no_async_commit(tcc_func *f) { tcc_op_erase(NTH(async_commit, 0)); }
static void no_async_release(tcc_func *f) { tcc_op_erase(NTH(async_release, 0)); }
static void release_too_early(tcc_func *f)
{
    tcc_op *release = NTH(async_release, 0);
    tcc_op_set_operand(release, 1, NTH(async_wait, 0)->operands[1]);
}
static void no_last_wait(tcc_func *f)
{
    tcc_op *wait = LAST(async_mma_wait);
    tcc_replace_uses(&wait->results[0], wait->operands[0]);
    tcc_op_erase(wait);
}
static void no_async_copy(tcc_func *f) { tcc_op_erase(NTH(async_copy, 0)); }
static void commit_first(tcc_func *f)
{
    tcc_builder b = tcc_builder_before(NTH(async_copy, 0));
    tcc_op_move(&b, NTH(async_commit, 0));
}
/* clang-format on */

static const mutation of_ring[] = {
    {"nothing", nothing, NULL},
    {"no_acquire", no_acquire, "whose stage was not acquired"},
    {"no_wait", no_async_wait, "async.mma"},
    {"no_commit", no_async_commit, "waits until the stage of iteration 0 is full"},
    {"no_release", no_async_release, "waits until iteration 0 releases its stage"},
    {"release_too_early", release_too_early, "whose stage an MMA may still be reading"},
    {"no_last_wait", no_last_wait, "reads registers that an MMA may still be writing"},
    {"no_copy", no_async_copy, "waits until the stage of iteration 0 is full"},
    {"commit_first", commit_first, "after its commit"},
};

START_TEST(a_safeguard_left_out_of_a_ring)
{
    kernel k;
    char passes[512];
    const char *pipeline = tcc_pipeline(tcc_target_at(0));
    size_t n = (size_t)(strstr(pipeline, ",lower-to-nvvm") - pipeline);
    snprintf(passes, sizeof passes, "%.*s", (int)n, pipeline);
    open_matmul(&k, "tile m 64, n 16, k 16; stages 2; producer warp;", (extents){64, 16, 96, 1},
                passes);
    check_mutation(&k, k.ir->first, &of_ring[_i]);
    kernel_close(&k);
}
END_TEST

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

Suite *SUITE(void)
{
    Suite *s = suite_create("mutations");
    TCase *t = tcase_create("mutations");
    tcase_add_loop_test(t, a_safeguard_left_out_of_a_kernel, 0, LEN(of_kernel));
    tcase_add_loop_test(t, a_safeguard_left_out_of_the_generic_variant, 0, LEN(of_generic_variant));
    tcase_add_loop_test(t, a_safeguard_left_out_of_a_ring, 0, LEN(of_ring));
    suite_add_tcase(s, t);
    return s;
}

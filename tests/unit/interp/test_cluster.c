/* CTAs that share loads, or a sum: right as the passes make them, and with one safeguard left out wrong, in the
 * interpreter and to the checker.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "passes/arith.h"
#include "tests/unit/interp/mutations.h"
#include "tests/unit/suite.h"

enum { SEEDS = 4 };

/* An odd number of tiles, rows and columns that end inside of one, fewer iterations than stages or more. */
static const char *const schedules[] = {
    "tile m 64, n 32, k 32; stages 2; cluster m 2;",
    "tile m 64, n 32, k 32; stages 3; producer warp; cluster n 2;",
    "tile m 64, n 32, k 32; stages 2; producer warp; persistent; cluster m 2;",
    "tile m 128, n 48, k 16; stages 4; persistent; cluster m 2;",
    "tile m 64, n 32, k 32; stages 2; persistent; consumers pingpong; cluster m 2;",
};
/* Four CTAs: in two rows and two columns, each of which shares an operand, or all of a column. */
static const char *const squares[] = {
    "tile m 64, n 32, k 32; stages 2; cluster m 2, n 2;",
    "tile m 64, n 32, k 32; stages 3; producer warp; persistent; cluster m 2, n 2;",
};
static const char *const lines[] = {
    "tile m 64, n 32, k 32; stages 2; producer warp; cluster m 4;",
    "tile m 64, n 32, k 16; stages 2; persistent; cluster n 4;",
    "tile m 64, n 24, k 16; stages 2; producer warp; cluster m 3;",
    "tile m 64, n 16, k 16; stages 2; persistent; consumers pingpong; cluster m 2, n 2;",
};
/* Those that end together, and those that end when their stages have been released. */
static const char *const persistent[] = {
    "tile m 64, n 32, k 32; stages 2; producer warp; persistent; cluster m 2;",
    "tile m 64, n 32, k 32; stages 3; producer warp; persistent; cluster m 2, n 2;",
};
static const char *const draining[] = {
    "tile m 64, n 32, k 16; stages 4; producer warp; cluster m 2;",
    "tile m 128, n 48, k 16; stages 3; cluster n 2;",
    "tile m 64, n 32, k 16; stages 3; producer warp; cluster m 2, n 2;",
};
static const extents sizes[] = {{150, 72, 104, 0}, {40, 24, 16, 0}};
#define LEN(a) (sizeof(a) / sizeof *(a))

/* Sums of which CTAs have a part each: one iteration and many, of one warpgroup and two, with and without a
 * producer. */
static const char *const shared_sums[] = {
    "tile m 64, n 32, k 32; stages 2; cluster k 2;",
    "tile m 64, n 24, k 32; stages 3; producer warp; epilogue interleaved; cluster k 2;",
    "tile m 128, n 48, k 16; stages 2; cluster k 2;",
    "tile m 64, n 32, k 32; stages 2; producer none; cluster k 2;",
    "tile m 64, n 16, k 16; stages 2; producer warp; cluster k 4;",
    "tile m 64, n 32, k 32; stages 2; cluster m 2, k 2;",
    "tile m 64, n 16, k 16; stages 3; producer warp; cluster n 2, k 2;",
};

static void open(kernel *k, const char *schedule, extents e)
{
    char source[512];
    snprintf(source, sizeof source,
             "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
             "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
             "schedule f for sm_90a { %s }\n",
             schedule);
    kernel_open(k, source, e);
}

static tcc_func *run_passes(kernel *k, const char *passes)
{
    *k->said = 0;
    ck_assert_msg(!tcc_run_passes(k->ir, passes, NULL, &k->diag), "%s", k->said);
    return k->ir->first;
}

static void check(const char *schedule, extents e, bool whole)
{
    kernel k;
    open(&k, schedule, e);
    tcc_func *f = run_passes(&k, tcc_pipeline(tcc_target_of(k.ir)));
    if (whole)
        ck_assert_msg(!prove(&k, f), "%s", k.said);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        ck_assert_msg(!kernel_run(&k, f, seed), "%s", k.said);
        kernel_compare(&k, f, seed);
    }
    kernel_close(&k);
}

START_TEST(clusters_compute_what_the_kernel_does)
{
    for (size_t i = 0; i < LEN(sizes); i++)
        check(schedules[_i], sizes[i], !i);
}
END_TEST

START_TEST(squares_of_ctas_compute_what_the_kernel_does)
{
    for (size_t i = 0; i < LEN(sizes); i++)
        check(squares[_i], sizes[i], !i);
}
END_TEST

START_TEST(lines_of_ctas_compute_what_the_kernel_does)
{
    for (size_t i = 0; i < LEN(sizes); i++)
        check(lines[_i], sizes[i], !i);
}
END_TEST

START_TEST(clusters_that_share_a_sum_compute_what_the_kernel_does)
{
    for (size_t i = 0; i < LEN(sizes); i++)
        check(shared_sums[_i], sizes[i], !i);
}
END_TEST

/* ---- what is left out ------------------------------------------------------------------------ */

static void set_operand_plus(tcc_op *op, unsigned i, int64_t d)
{
    tcc_builder b = tcc_builder_before(op);
    tcc_value *v = op->operands[i];
    tcc_op_set_operand(op, i, TCC_EMIT(&b, arith_add, v->type, v, tcc_build_int(&b, v->type, d)));
}

static void erase_meeting(tcc_func *f, int nth)
{
    tcc_op *arrive = NTH(nvvm_cluster_arrive, nth);
    tcc_op_erase(arrive->next);
    tcc_op_erase(arrive);
}

/* clang-format off */
static void release_at_home(tcc_func *f) { tcc_op_erase(NTH(nvvm_mbarrier_arrive_cluster, 0)); }
static void release_at_home_twice(tcc_func *f)
{
    tcc_op_set_operand(NTH(nvvm_mapa, 0), 1, NTH(nvvm_cluster_ctarank, 0)->results);
}
static void no_meeting_at_all(tcc_func *f) { erase_meeting(f, 0); }
static void no_meeting_behind(tcc_func *f) { erase_meeting(f, 1); }
/* The last loop is that in which the producer waits for the release of the stages. */
static void no_drain(tcc_func *f) { tcc_op_erase(LAST(nvvm_mbarrier_wait)); }
static void drain_fewer(tcc_func *f) { set_constant(LAST(scf_for), 1, constant_of(LAST(scf_for)->operands[1]) - 1); }
static void drain_more(tcc_func *f) { set_constant(LAST(scf_for), 1, constant_of(LAST(scf_for)->operands[1]) + 1); }
static void meet_relaxed_too_early(tcc_func *f)
{
    tcc_builder b = tcc_builder_before(tcc_ancestor_in(NTH(nvvm_mbarrier_init, 0), f->body));
    tcc_op *arrive = NTH(nvvm_cluster_arrive, 0), *wait = arrive->next;
    tcc_op_move(&b, arrive);
    tcc_op_move(&b, wait);
}
static void too_few_releases(tcc_func *f)
{
    tcc_op *init = NTH(nvvm_mbarrier_init, 1);
    set_constant(init, 1, constant_of(init->operands[1]) / 2);
}
static void no_fence(tcc_func *f) { tcc_op_erase(NTH(nvvm_fence_mbarrier_init, 0)); }
static void to_itself(tcc_func *f) { set_constant(NTH(nvvm_tma_load_multicast, 0), 3, 1); }
static void to_more(tcc_func *f) { set_constant(NTH(nvvm_tma_load_multicast, 0), 3, 7); }
static void expect_less(tcc_func *f) { set_operand_plus(NTH(nvvm_mbarrier_arrive_expect_tx, 0), 1, -1024); }
static void expect_more(tcc_func *f) { set_operand_plus(NTH(nvvm_mbarrier_arrive_expect_tx, 0), 1, 1024); }
/* clang-format on */

/* Only for the CTA itself: bytes for it are missing then, and so they are for the other. */
static void not_to_both(tcc_func *f)
{
    tcc_op *copy = NTH(nvvm_tma_load_multicast, 0);
    tcc_builder b = tcc_builder_before(copy);
    tcc_value *operands[8];
    unsigned n = 0;
    for (unsigned i = 0; i < copy->n_operands; i++)
        if (i != 3)
            operands[n++] = copy->operands[i];
    tcc_op_create(&b, TCC_OP_nvvm_tma_load, n, operands, 0, NULL);
    tcc_op_erase(copy);
}

/* In front of the roles a CTA's own threads meet. */
static void own_meeting(tcc_func *f)
{
    tcc_builder b = tcc_builder_before(NTH(nvvm_cluster_arrive, 0));
    tcc_value *id = tcc_build_i32(&b, 0), *threads = tcc_build_i32(&b, tcc_attr_int(&f->attrs, "block", 0));
    TCC_EMIT_V(&b, nvvm_barrier, id, threads);
    erase_meeting(f, 0);
}

/* Both CTAs copy the first half. */
static void same_half(tcc_func *f)
{
    tcc_op *rank = NTH(nvvm_cluster_ctarank, 0);
    tcc_builder b = tcc_builder_after(rank);
    tcc_replace_uses(rank->results, tcc_build_i32(&b, 0));
}

/* Each takes the other's half to where its own belongs: along the rows of the box or of panels, of which
 * coordinates there are two. */
static void other_half(tcc_func *f)
{
    tcc_op *copy = NTH(nvvm_tma_load_multicast, 0);
    set_operand_plus(copy, 4, 8);
}

/* ---- what is left out of rows and columns ---- */

static void column_not_told(tcc_func *f) { tcc_op_erase(NTH(nvvm_mbarrier_arrive_cluster, 1)); }
/* The one that is neither of its row nor of its column. */
static void tells_across(tcc_func *f)
{
    tcc_op *map = NTH(nvvm_mapa, 0);
    tcc_builder b = tcc_builder_before(map);
    tcc_value *rank = NTH(nvvm_cluster_ctarank, 0)->results;
    tcc_op_set_operand(map, 1, TCC_EMIT(&b, arith_xor, rank->type, rank, tcc_build_i32(&b, 3)));
}
static void more_releases(tcc_func *f)
{
    tcc_op *init = NTH(nvvm_mbarrier_init, 1);
    set_constant(init, 1, constant_of(init->operands[1]) / 3 * 4);
}
static void to_one(tcc_func *f)
{
    tcc_op *copy = NTH(nvvm_tma_load_multicast, 0);
    tcc_builder b = tcc_builder_before(copy);
    tcc_op_set_operand(copy, 3, tcc_build_i32(&b, 1));
}
static void to_all(tcc_func *f)
{
    tcc_op *copy = NTH(nvvm_tma_load_multicast, 0);
    tcc_builder b = tcc_builder_before(copy);
    tcc_op_set_operand(copy, 3, tcc_build_i32(&b, 15));
}
static void to_the_other_row(tcc_func *f)
{
    tcc_op *copy = NTH(nvvm_tma_load_multicast, 0);
    tcc_builder b = tcc_builder_before(copy);
    tcc_value *ctas = copy->operands[3];
    tcc_op_set_operand(copy, 3, TCC_EMIT(&b, arith_xor, ctas->type, ctas, tcc_build_i32(&b, 15)));
}

/* ---- what is left out where a sum is shared ---- */

/* The meeting on the way is the second of all; the producer comes to it, too, where there is one. */
static void no_meeting_on_the_way(tcc_func *f)
{
    erase_meeting(f, 1);
    if (count(f, TCC_OP_nvvm_cluster_arrive) > 2)
        erase_meeting(f, 1);
}
static void meet_too_early(tcc_func *f)
{
    tcc_op *arrive = NTH(nvvm_cluster_arrive, 1), *wait = arrive->next, *last = LAST(nvvm_st_shared_cluster);
    tcc_builder b = tcc_builder_before(tcc_ancestor_in(last, arrive->block));
    tcc_op_move(&b, arrive);
    tcc_op_move(&b, wait);
}
static void hand_to_itself(tcc_func *f) { tcc_op_set_operand(LAST(nvvm_mapa), 1, NTH(nvvm_cluster_ctarank, 0)->results); }
static void hand_to_stages(tcc_func *f) { tcc_op_set_operand(LAST(nvvm_mapa), 0, NTH(nvvm_smem_base, 0)->results); }
static void hand_too_far(tcc_func *f) { set_operand_plus(LAST(nvvm_st_shared_cluster), 0, 16); }
static void hand_less(tcc_func *f) { tcc_op_erase(NTH(nvvm_st_shared_cluster, 0)); }

typedef struct mutation {
    const char *name;
    void (*mutate)(tcc_func *f);
    const char *says; /* the checker; NULL: results tell */
} mutation;

static const mutation of_target[] = {
    {"release_at_home", release_at_home, "deadlock|phase too early"},
    {"release_at_home_twice", release_at_home_twice, "may still be writing|may still be reading|phase too early|gets more"},
    {"no_meeting_at_all", no_meeting_at_all, "may still be initialising|no mbarrier yet"},
    {"own_meeting", own_meeting, "may still be initialising|no mbarrier yet"},
    {"too_few_releases", too_few_releases, "may still be|phase too early|gets more|waits for phase|still waits"},
    {"no_fence", no_fence, "no fence.mbarrier_init"},
    {"to_itself", to_itself, "deadlock|gets|never written|may still be|bytes"},
    {"to_more", to_more, "of a cluster of 2"},
    {"not_to_both", not_to_both, "deadlock|never written"},
    {"expect_less", expect_less, "it may end while copies are in flight|never written|may still be"},
    {"expect_more", expect_more, "1024 bytes are missing"},
    {"same_half", same_half, "may still be writing"},
    {"other_half", other_half, NULL},
};

static const mutation of_persistent[] = {
    {"no_meeting_behind", no_meeting_behind, "others of the cluster may still arrive there"},
};

static const mutation of_draining[] = {
    {"no_drain", no_drain, "others of the cluster may still arrive there"},
    {"drain_fewer", drain_fewer, "others of the cluster may still arrive there"},
    {"drain_more", drain_more, "deadlock"},
    {"meet_relaxed_too_early", meet_relaxed_too_early, "no mbarrier yet|may still be initialising|no fence.mbarrier_init"},
};

static const mutation of_squares[] = {
    {"release_at_home", release_at_home, "deadlock|phase too early"},
    {"column_not_told", column_not_told, "deadlock|phase too early"},
    {"tells_across", tells_across, "phase too early|gets more|may still be|deadlock"},
    {"too_few_releases", too_few_releases, "may still be|phase too early|gets more|waits for phase|still waits"},
    {"more_releases", more_releases, "deadlock"},
    {"to_itself", to_one, "deadlock|gets|never written|may still be|bytes"},
    {"to_all", to_all, "may still be|gets|bytes|phase"},
    {"to_the_other_row", to_the_other_row, "may still be|gets|bytes|phase|never written"},
    {"no_meeting_at_all", no_meeting_at_all, "may still be initialising|no mbarrier yet"},
    {"same_half", same_half, "may still be writing"},
    {"other_half", other_half, NULL},
};

static const mutation of_shared_sums[] = {
    {"own_meeting", own_meeting, "may not have begun|may still be initialising|no mbarrier yet"},
    {"no_meeting_on_the_way", no_meeting_on_the_way, "may still be writing|may still be reading|before anything|never written"},
    {"meet_too_early", meet_too_early, "may still be writing|before anything|never written"},
    {"hand_to_itself", hand_to_itself, "before anything|never written"},
    {"hand_to_stages", hand_to_stages, "may still be|before anything|never written"},
    {"hand_too_far", hand_too_far, "mbarrier|never written|before anything|may still be"},
    {"hand_less", hand_less, "before anything|never written"},
};

static void leave_out(const mutation *m, const char *const *of, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        kernel k;
        open(&k, of[i], sizes[0]);
        tcc_func *f = run_passes(&k, tcc_pipeline(tcc_target_of(k.ir)));
        m->mutate(f);
        verdict v = run_all(&k, f, SEEDS);
        ck_assert(m->says ? v == REPORTED : v != RIGHT);
        tcc_status status = prove(&k, f);
        ck_assert_msg(status == (m->says ? TCC_ERR_INTERNAL : TCC_OK), "%s, schedule %zu: status %d\n%s", m->name, i,
                      status, k.said);
        if (m->says)
            ck_assert_msg(says_one_of(k.said, m->says), "%s, schedule %zu:\n%s", m->name, i, k.said);
        kernel_close(&k);
    }
}

START_TEST(a_safeguard_left_out_of_a_cluster) { leave_out(&of_target[_i], schedules, LEN(schedules)); }
END_TEST

START_TEST(a_safeguard_left_out_of_a_persistent_cluster)
{
    leave_out(&of_persistent[_i], persistent, LEN(persistent));
}
END_TEST

START_TEST(a_safeguard_left_out_of_a_draining_cluster) { leave_out(&of_draining[_i], draining, LEN(draining)); }
END_TEST

START_TEST(a_safeguard_left_out_of_a_square) { leave_out(&of_squares[_i], squares, LEN(squares)); }
END_TEST

START_TEST(a_safeguard_left_out_of_a_shared_sum) { leave_out(&of_shared_sums[_i], shared_sums, LEN(shared_sums)); }
END_TEST

/* ---- the async level ------------------------------------------------------------------------- */

static void own_ring(tcc_func *f) { tcc_attr_remove(&NTH(async_ring, 0)->attrs, "cluster"); }
static void no_barrier_in_front(tcc_func *f) { tcc_op_erase(NTH(async_cluster_barrier, 0)); }
static void no_barrier_behind(tcc_func *f) { tcc_op_erase(NTH(async_cluster_barrier, 1)); }
static void fewer_bytes(tcc_func *f)
{
    tcc_op *commit = NTH(async_commit, 0);
    tcc_attr_set_int(f->ir, &commit->attrs, "bytes", tcc_attr_int(&commit->attrs, "bytes", 0) - 1024);
}

static void no_barrier_on_the_way(tcc_func *f)
{
    tcc_op_erase(NTH(async_cluster_barrier, 1));
    tcc_op_erase(NTH(async_cluster_barrier, 1));
}
static void producer_stays_away(tcc_func *f) { tcc_op_erase(NTH(async_cluster_barrier, 2)); }
static void contributes_too_late(tcc_func *f)
{
    tcc_builder b = tcc_builder_after(NTH(async_cluster_barrier, 1));
    tcc_op_move(&b, NTH(async_contribute, 0));
}
static void of_another_rank(tcc_func *f) { set_operand_plus(NTH(async_contribute, 0), 2, 1); }

static const mutation of_async_sums[] = {
    {"no_barrier_in_front", no_barrier_in_front, "may not have begun"},
    {"no_barrier_on_the_way", no_barrier_on_the_way, "may not have contributed yet"},
    {"producer_stays_away", producer_stays_away, "at the cluster's barrier"},
    {"contributes_too_late", contributes_too_late, "may not have contributed yet"},
    {"of_another_rank", of_another_rank, "of rank 1 of 2 by CTA 0|of rank 2 of 2"},
};

static void all_fill(tcc_func *f) { tcc_attr_remove(&NTH(async_ring, 0)->attrs, "rows"); }

static const mutation of_async_squares[] = {
    {"all_fill", all_fill, "which do not fill its ring"},
    {"no_barrier_in_front", no_barrier_in_front, "which has no ring there yet|not been released there"},
    {"no_barrier_behind", no_barrier_behind, "which has ended"},
};

static const mutation of_async[] = {
    {"own_ring", own_ring, "do not fill its ring"},
    {"no_barrier_in_front", no_barrier_in_front, "which has no ring there yet|not been released there"},
    {"no_barrier_behind", no_barrier_behind, "which has ended"},
    {"fewer_bytes", fewer_bytes, "of which async.commit says"},
};

static void leave_out_of_async(const mutation *m, const char *schedule)
{
    static const char passes[] =
        "canonicalize,cse,choose-axes,choose-variants,pad-operands,merge-indices,choose-schedule,split-sums,tile,"
        "dce,choose-mma,choose-layout,choose-pipeline,estimate-cost,distribute-grid,pipeline-copies,"
        "pipeline-registers,specialize-warps";
    kernel k;
    open(&k, schedule, sizes[0]);
    tcc_func *f = run_passes(&k, passes);
    ck_assert_int_eq(run_all(&k, f, SEEDS), RIGHT);
    m->mutate(f);
    ck_assert_int_eq(run_all(&k, f, 8 * SEEDS), REPORTED);
    ck_assert_msg(says_one_of(k.said, m->says), "%s:\n%s", m->name, k.said);
    kernel_close(&k);
}

START_TEST(a_safeguard_left_out_of_the_async_level) { leave_out_of_async(&of_async[_i], schedules[0]); }
END_TEST

START_TEST(a_safeguard_left_out_of_a_square_of_the_async_level) { leave_out_of_async(&of_async_squares[_i], squares[0]); }
END_TEST

START_TEST(a_safeguard_left_out_of_a_shared_sum_of_the_async_level)
{
    leave_out_of_async(&of_async_sums[_i], shared_sums[0]);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("cluster");
    TCase *t = tcase_create("cluster");
    tcase_set_timeout(t, 120);
    suite_add_sampled(t, clusters_compute_what_the_kernel_does, (int)LEN(schedules));
    suite_add_sampled(t, a_safeguard_left_out_of_a_cluster, (int)LEN(of_target));
    suite_add_sampled(t, a_safeguard_left_out_of_a_persistent_cluster, (int)LEN(of_persistent));
    suite_add_sampled(t, a_safeguard_left_out_of_a_draining_cluster, (int)LEN(of_draining));
    suite_add_sampled(t, a_safeguard_left_out_of_the_async_level, (int)LEN(of_async));
    suite_add_sampled(t, squares_of_ctas_compute_what_the_kernel_does, (int)LEN(squares));
    suite_add_sampled(t, lines_of_ctas_compute_what_the_kernel_does, (int)LEN(lines));
    suite_add_sampled(t, a_safeguard_left_out_of_a_square, (int)LEN(of_squares));
    suite_add_sampled(t, a_safeguard_left_out_of_a_square_of_the_async_level, (int)LEN(of_async_squares));
    suite_add_sampled(t, clusters_that_share_a_sum_compute_what_the_kernel_does, (int)LEN(shared_sums));
    suite_add_sampled(t, a_safeguard_left_out_of_a_shared_sum, (int)LEN(of_shared_sums));
    suite_add_sampled(t, a_safeguard_left_out_of_a_shared_sum_of_the_async_level, (int)LEN(of_async_sums));
    suite_add_tcase(s, t);
    return s;
}

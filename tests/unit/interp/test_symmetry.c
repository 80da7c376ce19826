/* Of a cluster's CTAs one is followed where all do the same, and that decides nothing: neither how many states there are
 * nor what is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "tests/unit/interp/mutations.h"
#include "tests/unit/suite.h"

static tcc_func *open(kernel *k, const char *schedule)
{
    char source[512];
    snprintf(source, sizeof source,
             "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
             "{\n    C[m, n] = sum(k) A[m, k] * B[n, k];\n}\n"
             "schedule f for sm_90a { %s }\n",
             schedule);
    *k = (kernel){.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    k->diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = k};
    k->ir = kernel_parse(k, source);
    ck_assert_int_eq(tcc_run_passes(k->ir, tcc_pipeline(tcc_target_of(k->ir)), NULL, &k->diag), TCC_OK);
    return k->ir->first;
}

/* What the first attempt at a proof comes to. */
typedef struct outcome {
    tcc_status status;
    bool symmetric;
    size_t states;
    tcc_covered covered;
} outcome;

static outcome follow(kernel *k, const tcc_func *f)
{
    tcc_diag silent = {0};
    outcome o;
    tcc_protocol *p = tcc_p_open(f, k->arena, &silent);
    o.status = tcc_p_prove(p, &k->diag, &o.covered);
    o.symmetric = p->symmetry != NULL;
    o.states = p->n_states;
    return o;
}

/* Makes a parity depend on the CTA's rank, but for what it is. */
static void tell_apart(tcc_func *f)
{
    tcc_op *wait = LAST(nvvm_mbarrier_wait);
    tcc_builder b = tcc_builder_before(wait);
    tcc_value *v = wait->operands[1], *rank = TCC_EMIT(&b, nvvm_cluster_ctarank, v->type);
    tcc_value *sum = TCC_EMIT(&b, arith_add, v->type, v, rank);
    tcc_value *none = TCC_EMIT(&b, arith_shr, v->type, sum, tcc_build_int(&b, v->type, 8));
    tcc_op_set_operand(wait, 1, TCC_EMIT(&b, arith_xor, v->type, v, none));
}

static const struct {
    const char *schedule;
    unsigned ctas; /* of which one is followed; 1: all are */
} clusters[] = {
    {"tile m 64, n 16, k 16; stages 2; producer warp; cluster m 2;", 2},
    {"tile m 64, n 24, k 16; stages 3; producer warp; cluster m 3;", 3},
    {"tile m 64, n 32, k 16; stages 2; producer warp; cluster n 4;", 4},
    {"tile m 64, n 16, k 16; stages 4; warpgroups 1; cluster m 2, n 2;", 4},
    {"tile m 64, n 32, k 16; stages 2; producer warp; persistent; cluster m 4;", 4},
    {"tile m 64, n 16, k 16; stages 2; consumers pingpong; persistent; cluster m 2, n 2;", 4},
    {"tile m 64, n 8, k 16; stages 2; producer warp; cluster k 2;", 1},
    {"tile m 64, n 8, k 16; stages 2; producer warp; persistent dynamic; cluster n 2;", 1},
};

START_TEST(one_cta_stands_for_all)
{
    kernel k;
    tcc_func *f = open(&k, clusters[_i].schedule);
    outcome one = follow(&k, f), all;
    ck_assert_msg(!one.status, "%s", k.said);
    ck_assert_int_eq(one.symmetric, clusters[_i].ctas > 1);
    if (one.symmetric) {
        tell_apart(f);
        all = follow(&k, f);
        ck_assert_msg(!all.status && !all.symmetric, "%s", k.said);
        ck_assert_uint_eq(one.states, all.states);
        ck_assert_uint_lt(one.covered.steps * (2 * clusters[_i].ctas - 1), all.covered.steps * 2);
    }
    tcc_arena_destroy(k.arena);
}
END_TEST

/* ---- mistakes -------------------------------------------------------------------------- */

/* Adds a number for each CTA before this one. */
static void add_rank(tcc_op *op, unsigned operand, int64_t n)
{
    tcc_builder b = tcc_builder_before(op);
    tcc_value *v = op->operands[operand], *rank = TCC_EMIT(&b, nvvm_cluster_ctarank, v->type);
    tcc_value *more = TCC_EMIT(&b, arith_mul, v->type, rank, tcc_build_int(&b, v->type, n));
    tcc_op_set_operand(op, operand, TCC_EMIT(&b, arith_add, v->type, v, more));
}

/* clang-format off */
static void all_arrive_at_first(tcc_func *f) { set_constant(NTH(nvvm_mapa, 0), 1, 0); }
static void arrive_at_own(tcc_func *f)
{
    tcc_op *mapa = NTH(nvvm_mapa, 0);
    tcc_builder b = tcc_builder_before(mapa);
    tcc_op_set_operand(mapa, 1, TCC_EMIT(&b, nvvm_cluster_ctarank, mapa->operands[1]->type));
}
static void copy_to_first_two(tcc_func *f) { set_constant(NTH(nvvm_tma_load_multicast, 0), 3, 3); }
static void expect_by_rank(tcc_func *f) { add_rank(NTH(nvvm_mbarrier_arrive_expect_tx, 0), 1, 16); }
static void wait_by_rank(tcc_func *f) { add_rank(NTH(nvvm_mbarrier_wait, 0), 0, 8); }
static void count_by_rank(tcc_func *f) { add_rank(NTH(nvvm_mbarrier_init, 0), 1, 1); }
static void do_not_arrive(tcc_func *f) { tcc_op_erase(NTH(nvvm_mbarrier_arrive_cluster, 0)); }
static void arrive_twice(tcc_func *f)
{
    tcc_op *arrive = NTH(nvvm_mbarrier_arrive_cluster, 0);
    tcc_builder b = tcc_builder_before(arrive);
    tcc_op_clone(&b, arrive, tcc_value_map_create(f->ir->arena));
}
/* All CTAs copy the first part. */
static void copy_one_part(tcc_func *f)
{
    tcc_op *load = NTH(nvvm_tma_load_multicast, 0), *add = load->operands[0]->def;
    ck_assert(add->code == TCC_OP_arith_add);
    tcc_op_set_operand(load, 0, add->operands[0]);
}
static void no_wait(tcc_func *f) { tcc_op_erase(LAST(nvvm_mbarrier_wait)); }
static void no_barrier(tcc_func *f)
{
    tcc_op_erase(NTH(nvvm_cluster_wait, 0));
    tcc_op_erase(NTH(nvvm_cluster_arrive, 0));
}
/* clang-format on */

static const struct {
    const char *name;
    void (*mutate)(tcc_func *f);
    bool symmetric; /* all CTAs do it */
} mistakes[] = {
    {"all_arrive_at_first", all_arrive_at_first, false},
    {"arrive_at_own", arrive_at_own, true},
    {"copy_to_first_two", copy_to_first_two, false},
    {"expect_by_rank", expect_by_rank, false},
    {"wait_by_rank", wait_by_rank, false},
    {"count_by_rank", count_by_rank, false},
    {"do_not_arrive", do_not_arrive, true},
    {"arrive_twice", arrive_twice, true},
    {"copy_one_part", copy_one_part, true},
    {"no_wait", no_wait, true},
    {"no_barrier", no_barrier, true},
};

/* What is wrong is found, whether it is so in all CTAs or not; and reported as if all had been followed. */
START_TEST(a_mistake_in_a_cluster)
{
    static const char *const schedules[] = {
        "tile m 64, n 16, k 16; stages 2; producer warp; cluster m 2, n 2;",
        "tile m 64, n 32, k 16; stages 3; producer warp; persistent; cluster n 4;",
    };
    for (int i = 0; i < 2; i++) {
        kernel k;
        tcc_func *f = open(&k, schedules[i]);
        mistakes[_i].mutate(f);
        outcome o = follow(&k, f);
        ck_assert_msg(o.status, "%s is not found in '%s'", mistakes[_i].name, schedules[i]);
        ck_assert_int_eq(o.symmetric, mistakes[_i].symmetric);
        ck_assert_str_ne(k.said, "");
        tcc_arena_destroy(k.arena);
    }
}
END_TEST

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

Suite *SUITE(void)
{
    Suite *s = suite_create("symmetry");
    TCase *t = tcase_create("symmetry");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, one_cta_stands_for_all, 0, LEN(clusters));
    tcase_add_loop_test(t, a_mistake_in_a_cluster, 0, LEN(mistakes));
    suite_add_tcase(s, t);
    return s;
}

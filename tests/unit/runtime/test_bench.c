/* Contenders that are timed in turn, against fake_cuda.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc_runtime.h>

#include <stdlib.h>
#include <time.h>

#include "tests/unit/runtime/fake.h"
#include "tests/unit/runtime/fake_cuda.h"
#include "tests/unit/runtime/gpu.h"
#include "tests/unit/suite.h"

static tcc_runtime *rt;
static tcc_device *dev;

static void setup(void)
{
    ck_assert_int_eq(tcc_runtime_create(&rt, on_diagnostic, NULL), TCC_OK);
    ck_assert_int_eq(tcc_device_open(rt, 0, &dev), TCC_OK);
}

static void teardown(void)
{
    tcc_device_close(dev);
    tcc_runtime_destroy(rt);
}

/* A run takes so long; it is counted for each input set. */
typedef struct runner {
    int microseconds, runs[3], fails_at;
} runner;

static tcc_status enqueue(void *user, int set)
{
    runner *r = user;
    struct timespec start, now;
    r->runs[set]++;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < r->microseconds);
    return r->fails_at && r->runs[0] >= r->fails_at ? TCC_ERR_NO_VARIANT : TCC_OK;
}

static const tcc_bench_effort short_one = {.round_ms = 2, .warm_ms = 4, .rounds = 5};

START_TEST(the_faster_one_takes_less)
{
    runner slow = {.microseconds = 400}, fast = {.microseconds = 50};
    tcc_contender both[] = {{.enqueue = enqueue, .user = &slow}, {.enqueue = enqueue, .user = &fast}};
    ck_assert_int_eq(tcc_bench(dev, &short_one, both, 2, 3), TCC_OK);
    ck_assert(tcc_contender_median(&both[0]) >= 400);
    ck_assert(tcc_contender_median(&both[1]) >= 50);
    ck_assert(both[1].us[0] < both[0].us[0]);
    for (int i = 0; i < 2; i++) {
        const runner *r = both[i].user;
        ck_assert_int_eq(both[i].rounds, 5);
        for (int j = 1; j < 5; j++)
            ck_assert(both[i].us[j - 1] <= both[i].us[j]);
        for (int set = 1; set < 3; set++) /* in rotation */
            ck_assert_int_le(abs(r->runs[set] - r->runs[0]), 1);
    }
}
END_TEST

START_TEST(what_cannot_be_timed)
{
    runner r = {.fails_at = 4};
    tcc_contender c[TCC_BENCH_CONTENDERS + 1] = {{.enqueue = enqueue, .user = &r}};
    ck_assert_int_eq(tcc_bench(dev, &short_one, c, 1, 1), TCC_ERR_NO_VARIANT);
    ck_assert_int_eq(tcc_bench(dev, NULL, c, 0, 1), TCC_OK);
    ck_assert_int_eq(tcc_bench(dev, NULL, c, TCC_BENCH_CONTENDERS + 1, 1), TCC_ERR_ARGUMENT);
    ck_assert_int_eq(tcc_bench(dev, NULL, c, 1, 0), TCC_ERR_ARGUMENT);
    const tcc_bench_effort wrong[] = {{1, 0, 0}, {1, 0, TCC_BENCH_ROUNDS + 1}, {0, 0, 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(tcc_bench(dev, &wrong[i], c, 1, 1), TCC_ERR_ARGUMENT);
    const tcc_bench_launch none = {0};
    ck_assert_int_eq(tcc_bench_enqueue((void *)&none, 0), TCC_ERR_ARGUMENT);
}
END_TEST

Suite *SUITE(void)
{
    load_fake(FAKE_CUDA, "fake_cuda");
    Suite *suite = suite_create("bench");
    TCase *tcase = tcase_create("bench");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_faster_one_takes_less);
    tcase_add_test(tcase, what_cannot_be_timed);
    suite_add_tcase(suite, tcase);
    return suite;
}

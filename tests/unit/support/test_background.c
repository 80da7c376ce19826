/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/background.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static tcc_background b;
static pthread_t worker;
static atomic_int begun, n_done, n_dropped;
static atomic_bool is_open; /* the gate that jobs wait at */

static void teardown(void)
{
    tcc_background_end(&b); /* which may be again */
    tcc_background_destroy(&b);
}

static void begin(void *user)
{
    ck_assert_ptr_eq(user, &begun);
    worker = pthread_self();
    begun++;
}

static void setup(void)
{
    begun = n_done = n_dropped = 0;
    is_open = true;
    tcc_background_init(&b, begin, &begun);
}

typedef struct numbered {
    tcc_job job;
    int number;
} numbered;

static void run(tcc_job *job, bool is_wanted)
{
    numbered *n = (numbered *)job;
    while (is_wanted && !is_open)
        usleep(1000);
    if (is_wanted) {
        ck_assert_int_eq(n->number, n_done);
        ck_assert(pthread_equal(pthread_self(), worker));
    }
    *(is_wanted ? &n_done : &n_dropped) += 1;
    free(n);
}

static void add(int number)
{
    numbered *n = calloc(1, sizeof *n);
    n->job.run = run;
    n->number = number;
    tcc_background_add(&b, &n->job);
}

START_TEST(jobs_are_done_in_order)
{
    enum { JOBS = 100 };
    tcc_background_wait(&b); /* for nothing */
    ck_assert_int_eq(begun, 0);
    for (int i = 0; i < JOBS; i++)
        add(i);
    tcc_background_wait(&b);
    ck_assert_int_eq(n_done, JOBS);
    add(JOBS);
    tcc_background_wait(&b);
    ck_assert_int_eq(n_done, JOBS + 1);
    ck_assert_int_eq(begun, 1);
    tcc_background_end(&b);
    ck_assert_int_eq(n_dropped, 0);
}
END_TEST

static void *open_later(void *arg)
{
    usleep(20000);
    is_open = true;
    return arg;
}

START_TEST(what_waits_at_the_end_is_dropped)
{
    pthread_t opener;
    is_open = false;
    for (int i = 0; i < 3; i++)
        add(i);
    while (!begun)
        usleep(1000);
    ck_assert_int_eq(pthread_create(&opener, NULL, open_later, NULL), 0);
    tcc_background_end(&b);
    ck_assert_int_eq(n_done + n_dropped, 3);
    ck_assert_int_ge(n_dropped, 2);
    add(3);
    ck_assert_int_eq(n_done + n_dropped, 4);
    tcc_background_wait(&b);
    pthread_join(opener, NULL);
}
END_TEST

START_TEST(without_jobs_there_is_no_thread)
{
    tcc_background_end(&b);
    ck_assert_int_eq(begun, 0);
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("background");
    TCase *tcase = tcase_create("background");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, jobs_are_done_in_order);
    tcase_add_test(tcase, what_waits_at_the_end_is_dropped);
    tcase_add_test(tcase, without_jobs_there_is_no_thread);
    suite_add_tcase(suite, tcase);
    return suite;
}

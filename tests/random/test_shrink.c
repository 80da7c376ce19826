/* Programs are drawn alike from alike seeds, and are made as small as what is asked of them lets
 * them be.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/random/program.h"
#include "tests/unit/suite.h"

static bool has(const program *p, const char *text)
{
    tcc_str all = {0};
    program_print(&all, p);
    bool found = strstr(tcc_str_text(&all), text);
    tcc_str_free(&all);
    return found;
}

static unsigned lines(const program *p)
{
    tcc_str all = {0};
    unsigned n = 0;
    program_print(&all, p);
    for (size_t i = 0; i < all.len; i++)
        n += all.data[i] == '\n';
    tcc_str_free(&all);
    return n;
}

typedef struct wanted {
    const char *one, *other; /* NULL: nothing else */
    unsigned asked;
} wanted;

static bool fails(const program *p, void *user)
{
    wanted *w = user;
    w->asked++;
    return has(p, w->one) && (!w->other || has(p, w->other));
}

/* The first program from a seed on that fails. */
static void find(program *p, uint64_t seed, wanted *w)
{
    do
        program_draw(p, seed++, "sm_90a");
    while (!fails(p, w));
    w->asked = 0;
}

START_TEST(a_seed_gives_one_program)
{
    program a, b;
    tcc_str x = {0}, y = {0};
    program_draw(&a, (uint64_t)_i, "sm_90a");
    program_draw(&b, (uint64_t)_i, "sm_90a");
    program_print(&x, &a);
    program_print(&y, &b);
    ck_assert_str_eq(tcc_str_text(&x), tcc_str_text(&y));
    program_draw(&b, (uint64_t)_i + 1, "sm_90a");
    tcc_str_free(&y);
    program_print(&y, &b);
    ck_assert_str_ne(tcc_str_text(&x), tcc_str_text(&y));
    tcc_str_free(&x);
    tcc_str_free(&y);
}
END_TEST

/* What fails, and what is left of it. */
static const struct {
    const char *one, *other, *left;
} shrinks[] = {
    {"kernel", NULL, "-> (C0: f32)"},
    {"bf16", NULL, NULL},
    {"gelu_tanh((0.0625 * acc", NULL, "gelu_tanh((0.0625 * acc"},
    {"where(acc", "> ", "where(acc "},
    {"stages 4", NULL, "    stages 4;\n}"},
    {"producer warp;", "epilogue interleaved",
     "{\n    producer warp;\n    epilogue interleaved;\n}"},
    {"inout", NULL, ", inout C0: f32)"},
    {"SIZE_K", NULL, "const SIZE_K = "},
    {"sum(k) exp(", NULL, "sum(k) exp("},
    {"z0: i8", NULL, "z0: i8"},
};
enum { N_SHRINKS = sizeof shrinks / sizeof *shrinks };

START_TEST(what_is_left_is_small)
{
    enum { SEEDS = 5, NO_SCHEDULE = 5, SCHEDULE = 5 };
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        program p;
        wanted w = {shrinks[_i].one, shrinks[_i].other, 0};
        find(&p, 1000 * seed, &w);
        unsigned before = lines(&p), tries = program_shrink(&p, fails, &w);
        ck_assert_uint_eq(tries, w.asked);
        ck_assert(fails(&p, &w));
        ck_assert_uint_le(lines(&p), before + 1); /* the sum may get a line of its own */
        ck_assert_uint_le(lines(&p), NO_SCHEDULE + SCHEDULE);
        ck_assert_int_eq(p.n_outputs, 1);
        if (shrinks[_i].left && !has(&p, shrinks[_i].left)) {
            tcc_str text = {0};
            program_print(&text, &p);
            ck_abort_msg("no '%s' in\n%s", shrinks[_i].left, tcc_str_text(&text));
        }
    }
}
END_TEST

static bool always(const program *p, void *user)
{
    (void)p, (void)user;
    return true;
}

static bool never(const program *p, void *user)
{
    (void)p, (void)user;
    return false;
}

/* Even when every program fails, there is a smallest. */
START_TEST(shrinking_ends)
{
    program p;
    program_draw(&p, (uint64_t)_i, "sm_90a");
    program_shrink(&p, always, NULL);
    ck_assert_uint_le(lines(&p), 6);
}
END_TEST

START_TEST(nothing_is_kept_that_does_not_fail)
{
    program p, same;
    program_draw(&p, (uint64_t)_i, "sm_90a");
    same = p;
    ck_assert_uint_gt(program_shrink(&p, never, NULL), 0);
    ck_assert(!memcmp(&p, &same, sizeof p));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("shrink");
    TCase *t = tcase_create("shrink");
    tcase_add_loop_test(t, a_seed_gives_one_program, 0, 20);
    tcase_add_loop_test(t, what_is_left_is_small, 0, N_SHRINKS);
    tcase_add_loop_test(t, shrinking_ends, 0, 20);
    tcase_add_loop_test(t, nothing_is_kept_that_does_not_fail, 0, 5);
    suite_add_tcase(s, t);
    return suite_exit_status(s);
}

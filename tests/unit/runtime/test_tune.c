/* Searches for schedules against fake_cuda, with times that a test makes up.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc_tune.h>

#include <math.h>
#include <stdatomic.h>

#include "driver/tune_results.h"
#include "tests/unit/runtime/fake.h"
#include "tests/unit/runtime/fake_cuda.h"
#include "tests/unit/runtime/folder.h"
#include "tests/unit/runtime/gpu.h"
#include "tests/unit/suite.h"

static const char source[] =
    "kernel other(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }\n"
    "kernel fake_product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }\n";
static const int64_t dims[] = {512, 256, 1024};

static const fake_cuda_control *fake;
static tcc_runtime *rt;
static tcc_device *dev;
static char path[128];

static void setup(void)
{
    make_folder();
    fake->reset(0);
    message[0] = 0;
    snprintf(path, sizeof path, "%s/results.jsonl", folder);
    ck_assert_int_eq(tcc_runtime_create(&rt, on_diagnostic, NULL), TCC_OK);
    ck_assert_int_eq(tcc_device_open(rt, 0, &dev), TCC_OK);
}

static void teardown(void)
{
    tcc_device_close(dev);
    tcc_runtime_destroy(rt);
    ck_assert_int_eq(fake->alive(), 0);
    remove_folder();
}

/* ---- measuring -------------------------------------------------------------------------- */

/* How often it was measured, and what then comes of it. */
typedef struct script {
    int n, fails_at, wrong_at, ends_at;
    bool always_wrong;
    size_t combinations; /* that are to be measured */
    tcc_tune_progress last;
} script;

static tcc_status measure(const tcc_kernel *k, double *time, void *user)
{
    script *s = user;
    ck_assert_str_eq(tcc_kernel_name(k), "fake_product");
    s->n++;
    *time = s->always_wrong || s->n == s->wrong_at ? INFINITY : s->n == s->ends_at ? NAN : 10 + s->n * 7 % 5;
    return s->n == s->fails_at || s->n == s->ends_at ? TCC_ERR_DRIVER : TCC_OK;
}

static void progress(const tcc_tune_progress *p, void *user)
{
    script *s = user;
    if (p->measured == 1 && !s->combinations)
        s->combinations = p->measured + p->waiting;
    s->last = *p;
}

/* Few schedules are possible on sm_80, and soon judged. */
static const tcc_compile_options on_sm80 = {.struct_size = sizeof on_sm80, .target = "sm_80", .file = "p.tile"};

/* The suite's clock goes on by a millisecond when it is looked at: a search ends after the same work on every machine. */
enum { SEARCH_SECONDS = 4, WITH_NEIGHBOURS = 8 };

static bool counts_looks;

double __wrap_tcc_now_ms(void);
double __real_tcc_now_ms(void);
double __wrap_tcc_now_ms(void)
{
    static atomic_int looks;
    return counts_looks ? atomic_fetch_add(&looks, 1) : __real_tcc_now_ms();
}

static tcc_tune_options options_of(script *s)
{
    return (tcc_tune_options){.struct_size = sizeof(tcc_tune_options),
                              .kernel = "fake_product",
                              .dims = dims,
                              .n_dims = 3,
                              .seconds = SEARCH_SECONDS,
                              .threads = 2,
                              .results = path,
                              .measure = measure,
                              .progress = progress,
                              .user = s};
}

static tcc_tuning *tune(const tcc_tune_options *o)
{
    tcc_tuning *t;
    ck_assert_int_eq(tcc_tune(dev, source, &on_sm80, o, &t), TCC_OK);
    return t;
}

static size_t count_lines(void)
{
    size_t n = 0;
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    for (int c; (c = fgetc(f)) != EOF;)
        n += c == '\n';
    fclose(f);
    return n;
}

START_TEST(the_fastest_is_first)
{
    script s = {.wrong_at = 2};
    tcc_tune_options o = options_of(&s);
    o.seconds = WITH_NEIGHBOURS;
    tcc_tuning *t = tune(&o);
    size_t n = tcc_tuning_count(t);
    tcc_tune_progress p = tcc_tuning_progress(t);
    ck_assert_uint_gt(n, 1);
    ck_assert_uint_eq(n + 1, (size_t)s.n);
    ck_assert_uint_eq(count_lines(), (size_t)s.n);
    ck_assert_uint_eq(p.measured, (size_t)s.n);
    ck_assert_uint_eq(p.wrong, 1);
    ck_assert_uint_eq(s.last.measured, p.measured);
    ck_assert(p.best == tcc_tuning_time(t, 0));
    ck_assert_uint_gt(p.refused, 0);
    ck_assert_uint_gt(p.dear, 0);
    for (size_t i = 0; i < n; i++) {
        ck_assert_ptr_nonnull(strstr(tcc_tuning_schedule(t, i), "schedule fake_product for sm_80\n{\n    tile "));
        ck_assert(!i || tcc_tuning_time(t, i - 1) <= tcc_tuning_time(t, i));
        for (size_t j = 0; j < i; j++)
            ck_assert_str_ne(tcc_tuning_schedule(t, i), tcc_tuning_schedule(t, j));
    }
    ck_assert_ptr_null(tcc_tuning_schedule(t, n));
    ck_assert(isinf(tcc_tuning_time(t, n)));
    tcc_tuning_destroy(t);
}
END_TEST

START_TEST(a_search_goes_on)
{
    script s = {0};
    tcc_tune_options o = options_of(&s);
    o.threads = 1;
    tcc_tuning_destroy(tune(&o));
    size_t before = count_lines();
    o.seconds = WITH_NEIGHBOURS;
    tcc_tuning *t = tune(&o);
    ck_assert_uint_gt(count_lines(), before);
    ck_assert_uint_eq(tcc_tuning_progress(t).known, before);
    ck_assert_uint_eq(tcc_tuning_count(t), count_lines());
    tcc_tuning_destroy(t);

    const int64_t others[] = {512, 256, 1028}; /* another power of two divides it */
    o.dims = others;
    o.seconds = 1e-3; /* what is known is known before it begins */
    t = tune(&o);
    ck_assert_uint_eq(tcc_tuning_progress(t).known, 0);
    tcc_tuning_destroy(t);
}
END_TEST

/* However short its time, as on a machine that is busy with something else, a search finds a schedule. */
START_TEST(a_search_out_of_time_has_a_schedule)
{
    script s = {.wrong_at = 1};
    tcc_tune_options o = options_of(&s);
    o.seconds = 1e-3;
    tcc_tuning *t = tune(&o);
    ck_assert_uint_eq(tcc_tuning_count(t), 1);
    ck_assert_uint_eq(tcc_tuning_progress(t).wrong, 1);
    tcc_tuning_destroy(t);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/part%u.jsonl", folder, i);
        o.shard = i;
        o.n_shards = 3;
        t = tune(&o);
        ck_assert_uint_eq(tcc_tuning_count(t), 1);
        tcc_tuning_destroy(t);
    }
}
END_TEST

START_TEST(a_search_out_of_time_ends_without_a_right_result)
{
    script s = {.always_wrong = true};
    tcc_tune_options o = options_of(&s);
    o.seconds = 1e-3;
    tcc_tuning *t = tune(&o);
    ck_assert_uint_eq(tcc_tuning_count(t), 0);
    ck_assert_int_gt(s.n, 0);
    ck_assert_int_lt(s.n, 20);
    tcc_tuning_destroy(t);
}
END_TEST

/* A search that fails while it measures, and keeps so many results. */
static void check_ends(const tcc_tune_options *o, size_t kept)
{
    tcc_tuning *t;
    ck_assert_int_eq(tcc_tune(dev, source, &on_sm80, o, &t), TCC_ERR_DRIVER);
    ck_assert_ptr_null(t);
    ck_assert_uint_eq(count_lines(), kept);
}

START_TEST(what_ends_a_search_is_not_tried_again)
{
    script s = {.fails_at = 3};
    tcc_tune_options o = options_of(&s);
    check_ends(&o, 3);
    s.fails_at = 0;
    tcc_tuning *t = tune(&o);
    ck_assert_uint_eq(tcc_tuning_progress(t).known, 3);
    ck_assert_uint_eq(tcc_tuning_count(t), count_lines() - 1);
    tcc_tuning_destroy(t);
}
END_TEST

START_TEST(a_program_ends_a_search_of_its_own_will)
{
    script s = {.ends_at = 3};
    tcc_tune_options o = options_of(&s);
    check_ends(&o, 2);
}
END_TEST

START_TEST(what_is_known_is_had_without_a_search)
{
    script s = {.wrong_at = 1};
    tcc_tune_options o = options_of(&s);
    tcc_tuning *t = tune(&o);
    size_t lines = count_lines();
    double best = tcc_tuning_time(t, 0);
    tcc_tuning_destroy(t);
    o.seconds = -1;
    o.measure = NULL;
    t = tune(&o);
    ck_assert_uint_eq(tcc_tuning_progress(t).known, lines);
    ck_assert_uint_eq(tcc_tuning_progress(t).measured, 0);
    ck_assert_uint_eq(tcc_tuning_count(t), lines - 1);
    ck_assert(tcc_tuning_time(t, 0) == best);
    ck_assert_uint_eq(count_lines(), lines);
    tcc_tuning_destroy(t);

    const int64_t others[] = {512, 256, 1028};
    o.dims = others;
    t = tune(&o);
    ck_assert_uint_eq(tcc_tuning_count(t), 0);
    tcc_tuning_destroy(t);
}
END_TEST

START_TEST(results_agree_but_for_the_order_of_sums)
{
    float a[1000], b[1000];
    for (int i = 0; i < 1000; i++)
        a[i] = b[i] = i % 2 ? 1 : -1; /* the root mean square is 1 */
    a[7] = b[7] = NAN;
    a[8] = b[8] = INFINITY;
    ck_assert(tcc_tune_agree("f32", a, b, 1000));
    b[999] = 1.19F;
    ck_assert(tcc_tune_agree("f32", a, b, 1000));
    b[999] = 1.21F;
    ck_assert(!tcc_tune_agree("f32", a, b, 1000));
    ck_assert(tcc_tune_agree("f32", a, b, 999));
    static const float others[] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++) {
        b[999] = others[i];
        ck_assert(!tcc_tune_agree("f32", a, b, 1000));
        ck_assert(!tcc_tune_agree("f32", b, a, 1000));
    }
    static const int8_t x[] = {1, 2, 127}, near[] = {2, 1, 126}, far[] = {1, 2, 125};
    ck_assert(tcc_tune_agree("i8", x, near, 3));
    ck_assert(!tcc_tune_agree("i8", x, far, 3));
    ck_assert(!tcc_tune_agree("i3", x, x, 3));
    ck_assert(tcc_tune_agree("f32", NULL, NULL, 0));

    enum { MANY = 300000 }; /* for several threads */
    uint8_t *p = calloc(MANY, 1), *q = calloc(MANY, 1);
    q[0] = 1;
    ck_assert(tcc_tune_agree("u8", p, q, MANY));
    q[MANY - 1] = 2;
    ck_assert(!tcc_tune_agree("u8", p, q, MANY));
    free(p);
    free(q);
}
END_TEST

static char *read_results(const char *name)
{
    static char all[1 << 20];
    FILE *f = fopen(name, "r");
    ck_assert_ptr_nonnull(f);
    all[fread(all, 1, sizeof all - 1, f)] = 0;
    fclose(f);
    return all;
}

/* How many combinations a search has to measure, of which it measures some. */
static size_t count_combinations(tcc_tune_options *o)
{
    enum { SOME = 6 };
    script s = {.fails_at = SOME};
    tcc_tuning *t;
    o->user = &s;
    ck_assert_int_eq(tcc_tune(dev, source, &on_sm80, o, &t), TCC_ERR_DRIVER);
    ck_assert_uint_eq(count_lines(), SOME);
    return s.combinations;
}

START_TEST(no_schedule_is_in_two_parts)
{
    enum { PARTS = 3 };
    char *texts[PARTS];
    size_t n = 0;
    tcc_tune_options o = options_of(NULL);
    o.seconds = 100 * SEARCH_SECONDS; /* enough to judge all */
    size_t all = count_combinations(&o);
    o.n_shards = PARTS;
    for (unsigned i = 0; i < PARTS; i++) {
        snprintf(path, sizeof path, "%s/part%u.jsonl", folder, i);
        o.shard = i;
        size_t some = count_combinations(&o);
        ck_assert_uint_gt(some, 0);
        n += some;
        texts[i] = strdup(read_results(path));
    }
    ck_assert_uint_eq(n, all);
    for (int i = 0; i < PARTS; i++)
        for (const char *at = texts[i]; (at = strstr(at, "\"schedule\"")); at++) {
            char *schedule = strndup(at, strcspn(at, "}"));
            for (int j = 0; j < PARTS; j++)
                ck_assert(!strstr(texts[j], schedule) == (i != j));
            free(schedule);
        }
    for (int i = 0; i < PARTS; i++)
        free(texts[i]);
}
END_TEST

/* Of the combinations each part has others, and together they know all of them. */
START_TEST(parts_are_put_together)
{
    script s = {0};
    tcc_tune_options o = options_of(&s);
    o.n_shards = 2;
    tcc_tuning_destroy(tune(&o));
    size_t first = count_lines();
    o.shard = 1;
    tcc_tuning *t = tune(&o);
    ck_assert_uint_gt(first, 0);
    ck_assert_uint_eq(tcc_tuning_progress(t).known, first);
    ck_assert_uint_eq(tcc_tuning_count(t), count_lines());
    tcc_tuning_destroy(t);
    o.shard = 2;
    ck_assert_int_eq(tcc_tune(dev, source, &on_sm80, &o, &t), TCC_ERR_ARGUMENT);
}
END_TEST

/* ---- merging -------------------------------------------------------------------------------- */

#define LINE(device, extents, schedule, time)                                                                          \
    "{\"device\":\"" device "\",\"driver\":13000,\"tcc\":\"b\",\"target\":\"sm_80\",\"program\":\"0f\",\"kernel\":\"k\","   \
    "\"extents\":\"" extents "\",\"schedule\":\"" schedule "\",\"time\":" time "}"

static char *merge_texts(const char *a, const char *b, tcc_status expected)
{
    const tcc_tune_part parts[] = {{"a.jsonl", a, strlen(a)}, {"b.jsonl", b, strlen(b)}};
    char *out;
    tcc_context *ctx = tcc_context_create();
    tcc_context_on_diagnostic(ctx, on_diagnostic, NULL);
    message[0] = 0;
    ck_assert_int_eq(tcc_tune_merge(ctx, parts, 2, &out), expected);
    ck_assert(!out == (expected != TCC_OK));
    tcc_context_destroy(ctx);
    return out;
}

static void check_merged(const char *a, const char *b, const char *expected)
{
    char *out = merge_texts(a, b, TCC_OK);
    ck_assert_str_eq(out, expected);
    tcc_text_destroy(out);
}

START_TEST(the_best_results_are_kept)
{
    const char *a = LINE("d", "1/1", "y", "1.5") "\n" LINE("d", "1/1", "x", "0.5") "\n" LINE("d", "2/2", "x", "3") "\n";
    const char *b = LINE("d", "1/1", "y", "1.25") "\n" LINE("d", "1/1", "x", "null") "\n" LINE("d", "0/16", "z", "7");
    const char *both = LINE("d", "0/16", "z", "7") "\n" LINE("d", "1/1", "y", "1.25") "\n" LINE(
        "d", "1/1", "x", "null") "\n" LINE("d", "2/2", "x", "3") "\n";
    check_merged(a, b, both);
    check_merged(b, a, both);
    check_merged(both, a, both);
    check_merged(both, both, both);
    ck_assert_str_eq(message, "");
    check_merged("", "\n", "");
}
END_TEST

START_TEST(what_is_not_a_result_is_left_out)
{
    const char *good = LINE("d", "1/1", "x", "1") "\n";
    check_merged(good, "{\"device\":\"d\"", good);
    ck_assert_str_eq(message, "left out: the line is not a result");
    check_merged("[]\n", good, good);
    check_merged("{\"device\":[],\"driver\":13000}\n", good, good);
}
END_TEST

START_TEST(results_of_something_else_are_refused)
{
    const char *one = LINE("d", "1/1", "x", "1") "\n";
    merge_texts(one, LINE("e", "1/1", "x", "1"), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "a result for another device: 'e', but 'd' in a.jsonl");
    static const struct {
        const char *from, *to, *message;
    } changes[] = {{":13000", ":12080", "a result for another driver: '12080', but '13000' in a.jsonl"},
                   {"\"b\"", "\"c\"", "a result for another tcc: 'c', but 'b' in a.jsonl"},
                   {"sm_80", "sm_90", "a result for another target: 'sm_90', but 'sm_80' in a.jsonl"},
                   {"0f", "1f", "a result for another program: '1f', but '0f' in a.jsonl"},
                   {"\"k\"", "\"l\"", "a result for another kernel: 'l', but 'k' in a.jsonl"}};
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        char *other = strdup(one);
        memcpy(strstr(other, changes[i].from), changes[i].to, strlen(changes[i].to));
        merge_texts(one, other, TCC_ERR_ARGUMENT);
        ck_assert_str_eq(message, changes[i].message);
        free(other);
    }
    char *out;
    ck_assert_int_eq(tcc_tune_merge(NULL, NULL, 0, &out), TCC_ERR_ARGUMENT);
}
END_TEST

/* What is merged is a file of results like any other. */
START_TEST(a_search_goes_on_from_merged_parts)
{
    script s = {0};
    tcc_tune_options o = options_of(&s);
    tcc_tuning_destroy(tune(&o));
    char *before = strdup(read_results(path)), *out = merge_texts(before, before, TCC_OK);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(out, f), 0);
    fclose(f);
    size_t lines = count_lines();
    tcc_tuning *t = tune(&o);
    ck_assert_uint_eq(tcc_tuning_progress(t).known, lines);
    tcc_tuning_destroy(t);
    tcc_text_destroy(out);
    free(before);
}
END_TEST

START_TEST(nothing_need_be_kept)
{
    script s = {0};
    tcc_tune_options o = options_of(&s);
    o.seconds = 1e-3;
    o.results = "";
    tcc_tuning_destroy(tune(&o));
    ck_assert_int_gt(s.n, 0);
    ck_assert_int_eq(each_file(NULL), 0);
    ck_assert_int_eq(setenv("TCC_CACHE_DIR", folder, 1), 0);
    o.results = NULL;
    tcc_tuning_destroy(tune(&o));
    snprintf(path, sizeof path, "%s/tuned.jsonl", folder);
    ck_assert_uint_gt(count_lines(), 0);
}
END_TEST

/* ---- what cannot be searched ---------------------------------------------------------------- */

static void check_refused(const char *program, const tcc_tune_options *o, tcc_status status, const char *why)
{
    tcc_tuning *t;
    message[0] = 0;
    ck_assert_int_eq(tcc_tune(dev, program, &on_sm80, o, &t), status);
    ck_assert_ptr_null(t);
    ck_assert_str_eq(message, why);
}

START_TEST(what_cannot_be_searched_is_refused)
{
    script s = {0};
    tcc_tune_options o = options_of(&s);
    o.n_dims = 2;
    check_refused(source, &o, TCC_ERR_ARGUMENT, "kernel 'fake_product' has 3 symbolic dimensions, and 2 extents are given");
    o = options_of(&s);
    o.kernel = NULL;
    check_refused(source, &o, TCC_ERR_ARGUMENT, "name the kernel; the program has 'other', 'fake_product'");
    o.kernel = "none";
    check_refused(source, &o, TCC_ERR_ARGUMENT, "the program has no kernel 'none'; it has 'other', 'fake_product'");
    o = options_of(&s);
    check_refused("kernel", &o, TCC_ERR_SYNTAX, "expected a name, found the end of the file");
    check_refused("kernel fake_product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }\n"
                  "schedule fake_product for sm_80 { group 4; }",
                  &o, TCC_ERR_ARGUMENT,
                  "kernel 'fake_product' already has a schedule; tuning searches only for kernels without one");
    o.measure = NULL;
    check_refused(source, &o, TCC_ERR_ARGUMENT, "");
    o = options_of(&s);
    o.results = "/dev/null/x";
    check_refused(source, &o, TCC_ERR_IO, "/dev/null/x: Not a directory");
    tcc_tuning_destroy(NULL);
    ck_assert_uint_eq(tcc_tuning_count(NULL), 0);
    ck_assert_int_eq(s.n, 0);
}
END_TEST

START_TEST(extents_have_classes)
{
    static const struct {
        int64_t extent;
        const char *name;
    } rows[] = {{0, "0/16"}, {1, "1/1"}, {6, "6/2"}, {7, "6/1"}, {4096, "4096/16"}, {4095, "3072/1"}, {5000, "4096/8"}, {6144, "6144/16"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tcc_str name = {0};
        tcc_tune_print_class(&name, rows[i].extent);
        ck_assert_str_eq(tcc_str_text(&name), rows[i].name);
        tcc_str_free(&name);
    }
}
END_TEST

Suite *SUITE(void)
{
    counts_looks = true;
    fake = load_fake(FAKE_CUDA, "fake_cuda");
    Suite *suite = suite_create("tune");
    TCase *tcase = tcase_create("tune");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_fastest_is_first);
    tcase_add_test(tcase, a_search_goes_on);
    tcase_add_test(tcase, a_search_out_of_time_has_a_schedule);
    tcase_add_test(tcase, a_search_out_of_time_ends_without_a_right_result);
    tcase_add_test(tcase, what_ends_a_search_is_not_tried_again);
    tcase_add_test(tcase, a_program_ends_a_search_of_its_own_will);
    tcase_add_test(tcase, what_is_known_is_had_without_a_search);
    tcase_add_test(tcase, results_agree_but_for_the_order_of_sums);
    tcase_add_test(tcase, parts_are_put_together);
    if (SUITE_EACH == 1) /* a third of the time; with sanitizers others search in parts */
        tcase_add_test(tcase, no_schedule_is_in_two_parts);
    tcase_add_test(tcase, the_best_results_are_kept);
    tcase_add_test(tcase, what_is_not_a_result_is_left_out);
    tcase_add_test(tcase, results_of_something_else_are_refused);
    tcase_add_test(tcase, a_search_goes_on_from_merged_parts);
    tcase_add_test(tcase, nothing_need_be_kept);
    tcase_add_test(tcase, what_cannot_be_searched_is_refused);
    tcase_add_test(tcase, extents_have_classes);
    suite_add_tcase(suite, tcase);
    return suite;
}

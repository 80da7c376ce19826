/* Programs of source texts against fake_cuda: what is compiled, what is kept, and what it computes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE /* memmem */
#include <tcc/tcc_jit.h>

#include <pthread.h>
#include <sys/wait.h>

#include "tests/unit/runtime/fake.h"
#include "tests/unit/runtime/fake_cuda.h"
#include "tests/unit/runtime/folder.h"
#include "tests/unit/runtime/gpu.h"
#include "tests/unit/suite.h"

static const char source[] = "kernel fake_product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
                             "{\n"
                             "    C[m, n] = sum(k) A[m, k] * B[k, n];\n"
                             "}\n";
static const char wrong[] = "kernel p(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
                            "{\n"
                            "    C[m, n] = sum(k) A[m, k] * B[n, k];\n"
                            "}\n";

static const fake_cuda_control *fake;
static tcc_runtime *rt;
static tcc_device *dev;
static tcc_jit *jit;

static tcc_jit *create(const char *cache_dir, uint64_t cache_bytes)
{
    tcc_jit *made;
    const tcc_jit_options o = {.struct_size = sizeof o, .cache_dir = cache_dir, .cache_bytes = cache_bytes};
    ck_assert_int_eq(tcc_jit_create(rt, &o, &made), TCC_OK);
    return made;
}

static void setup(void)
{
    make_folder();
    fake->reset(0);
    message[0] = 0;
    ck_assert_int_eq(tcc_runtime_create(&rt, on_diagnostic, NULL), TCC_OK);
    ck_assert_int_eq(tcc_device_open(rt, 0, &dev), TCC_OK);
    jit = create(folder, 0);
}

static void teardown(void)
{
    tcc_jit_destroy(jit);
    tcc_device_close(dev);
    tcc_runtime_destroy(rt);
    ck_assert_int_eq(fake->alive(), 0);
    remove_folder();
}

static void check_counts(tcc_jit *j, uint64_t compiled, uint64_t read, uint64_t damaged)
{
    tcc_jit_counts n = tcc_jit_count(j);
    ck_assert_uint_eq(n.compiled, compiled);
    ck_assert_uint_eq(n.read, read);
    ck_assert_uint_eq(n.damaged, damaged);
}

/* One tile is compiled faster than all of them. */
static const tcc_compile_options one_tile = {.struct_size = sizeof one_tile, .tiles = 1};

static const tcc_program *program_of(tcc_jit *j, const tcc_compile_options *o)
{
    const tcc_program *p;
    ck_assert_int_eq(tcc_jit_program(j, source, o, &p), TCC_OK);
    return p;
}

/* ---- launching -------------------------------------------------------------------------- */

enum { M = 3, N = 5, K = 2, F16_ONE = 0x3c00, F16_TWO = 0x4000 };

START_TEST(a_source_is_launched)
{
    uint16_t a[M * K], b[K * N], c[M * N];
    const size_t sizes[] = {sizeof a, sizeof b, sizeof c};
    tcc_arg args[3];
    for (int i = 0; i < M * K; i++)
        a[i] = F16_ONE;
    for (int i = 0; i < K * N; i++)
        b[i] = F16_ONE;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(tcc_device_alloc(dev, sizes[i], &args[i].device), TCC_OK);
    ck_assert_int_eq(tcc_device_write(dev, args[0].device, a, sizeof a), TCC_OK);
    ck_assert_int_eq(tcc_device_write(dev, args[1].device, b, sizeof b), TCC_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(tcc_jit_launch(jit, source, &one_tile, NULL, (int64_t[]){M, K, N}, 3, args,
                                        3, NULL),
                         TCC_OK);
    ck_assert_int_eq(tcc_device_read(dev, c, args[2].device, sizeof c), TCC_OK);
    for (int i = 0; i < M * N; i++)
        ck_assert_uint_eq(c[i], F16_TWO);
    for (int i = 0; i < 3; i++)
        tcc_device_free(dev, args[i].device);
    check_counts(jit, 1, 0, 0);
}
END_TEST

START_TEST(the_target_is_the_gpus)
{
    ck_assert_str_eq(tcc_jit_target(jit), "sm_90a");
    ck_assert_ptr_nonnull(
        strstr(tcc_program_manifest(program_of(jit, &one_tile)), "\"target\":\"sm_90a\""));
    tcc_compile_options o = one_tile;
    o.target = "sm_80";
    ck_assert_ptr_nonnull(
        strstr(tcc_program_manifest(program_of(jit, &o)), "\"target\":\"sm_80\""));
    check_counts(jit, 2, 0, 0);

    tcc_jit *none;
    fake->set_compute_capability(3, 7);
    ck_assert_int_eq(tcc_jit_create(rt, NULL, &none), TCC_ERR_TARGET);
    ck_assert_str_eq(message, "this GPU, sm_37, suits no target");
    fake->make_fail("cuDriverGetVersion", 1);
    ck_assert_int_eq(tcc_jit_create(rt, NULL, &none), TCC_ERR_DRIVER);
    ck_assert_ptr_null(none);
}
END_TEST

/* ---- what is kept ----------------------------------------------------------------------- */

START_TEST(what_is_asked_for_again_is_there)
{
    const tcc_program *first = program_of(jit, &one_tile);
    ck_assert_ptr_eq(program_of(jit, &one_tile), first);
    check_counts(jit, 1, 0, 0);
    tcc_jit *later = create(folder, 0);
    ck_assert_str_eq(tcc_program_manifest(program_of(later, &one_tile)),
                     tcc_program_manifest(first));
    check_counts(later, 0, 1, 0);
    tcc_jit_destroy(later);
}
END_TEST

/* The version is followed by the hexadecimal build id of this program, and the driver's version. */
static void check_build(const char *path)
{
    char begin[512] = "", id[128] = "", *version;
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(begin, 1, sizeof begin - 1, f);
    fclose(f);
    version = memmem(begin, n, TCC_VERSION_STRING " ", sizeof TCC_VERSION_STRING);
    ck_assert_ptr_nonnull(version);
    int driver = 0;
    ck_assert_int_eq(sscanf(version, "%*s %127[0-9a-f] driver %d", id, &driver), 2);
    ck_assert_uint_ge(strlen(id), 16);
    ck_assert_int_eq(driver, 13000);
}

START_TEST(another_builds_code_is_told_apart)
{
    program_of(jit, &one_tile);
    ck_assert_int_eq(each_file(check_build), 1);
}
END_TEST

START_TEST(all_that_decides_is_told_apart)
{
    const tcc_define n8 = {"N", 8}, n16 = {"N", 16}, k8 = {"K", 8}, both[] = {n8, k8};
    const tcc_range few = {"N", 8, 16}, more = {"N", 8, 17};
    const tcc_compile_options kinds[] = {
        {.tiles = 1},
        {.tiles = 1, .defines = &n8, .n_defines = 1},
        {.tiles = 1, .defines = &n16, .n_defines = 1},
        {.tiles = 1, .defines = &k8, .n_defines = 1},
        {.tiles = 1, .defines = both, .n_defines = 2},
        {.tiles = 1, .file = "a.tile"},
        {.tiles = 2},
        {.tiles = 1, .target = "sm_80"},
        {.tiles = 1, .line_tables = TCC_OFF},
        {.tiles = 1, .verify_pipeline = TCC_OFF},
        {.tiles = 1, .kernel = "fake_product"},
        {.tiles = 1, .ranges = &few, .n_ranges = 1},
        {.tiles = 1, .ranges = &more, .n_ranges = 1},
    };
    enum { KINDS = sizeof kinds / sizeof kinds[0] };
    const tcc_program *made[KINDS];
    for (int i = 0; i < KINDS; i++) {
        tcc_compile_options o = kinds[i];
        o.struct_size = sizeof o;
        made[i] = program_of(jit, &o);
        for (int j = 0; j < i; j++)
            ck_assert_ptr_ne(made[j], made[i]);
    }
    check_counts(jit, KINDS, 0, 0);
    ck_assert_int_eq(each_file(NULL), KINDS);
}
END_TEST

static void cut_short(const char *path)
{
    ck_assert_int_eq(truncate(path, 100), 0);
}

START_TEST(a_damaged_entry_is_compiled_anew)
{
    program_of(jit, &one_tile);
    each_file(cut_short);
    for (int i = 0; i < 2; i++) {
        tcc_jit *later = create(folder, 0);
        program_of(later, &one_tile);
        check_counts(later, !i, i, !i);
        tcc_jit_destroy(later);
    }
    ck_assert_str_eq(message, "");
}
END_TEST

START_TEST(a_folder_that_cannot_be_used_is_told_once)
{
    tcc_jit *other = create("/dev/null/tcc", 0);
    program_of(other, &one_tile);
    ck_assert_str_eq(message, "compiled code is not cached in '/dev/null/tcc': Not a directory");
    message[0] = 0;
    program_of(other, NULL);
    ck_assert_str_eq(message, "");
    tcc_jit_destroy(other);
    other = create("", 0);
    program_of(other, &one_tile);
    ck_assert_str_eq(message, "");
    tcc_jit_destroy(other);
}
END_TEST

START_TEST(the_limit_holds)
{
    enum { LESS_THAN_A_PROGRAM = 1000 };
    tcc_jit *small = create(folder, LESS_THAN_A_PROGRAM);
    program_of(small, &one_tile);
    ck_assert_int_eq(each_file(NULL), 0);
    tcc_jit_destroy(small);
}
END_TEST

/* ---- errors ----------------------------------------------------------------------------- */

START_TEST(a_bad_program_is_told_each_time)
{
    const tcc_kernel *k;
    for (int i = 0; i < 2; i++) {
        message[0] = 0;
        ck_assert_int_eq(tcc_jit_kernel(jit, wrong, NULL, NULL, &k), TCC_ERR_TYPE);
        ck_assert_ptr_null(k);
        ck_assert_ptr_nonnull(strstr(message, "declared"));
    }
    ck_assert_int_eq(tcc_jit_kernel(jit, source, &one_tile, "q", &k), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "the program has no kernel 'q'; it has 'fake_product'");
    ck_assert_int_eq(tcc_jit_kernel(jit, source, &one_tile, "fake_product", &k), TCC_OK);
    ck_assert_str_eq(tcc_kernel_name(k), "fake_product");
    tcc_compile_options o = one_tile;
    o.verify_each = true;
    ck_assert_int_eq(tcc_jit_kernel(jit, source, &o, NULL, &k), TCC_ERR_ARGUMENT);
    o = one_tile;
    o.target = "gfx1100";
    ck_assert_int_eq(tcc_jit_kernel(jit, source, &o, NULL, &k), TCC_ERR_TARGET);
    ck_assert_int_eq(tcc_jit_kernel(NULL, source, NULL, NULL, &k), TCC_ERR_ARGUMENT);
    ck_assert_int_eq(tcc_jit_kernel(jit, NULL, NULL, NULL, &k), TCC_ERR_ARGUMENT);
    check_counts(jit, 1, 0, 0);
    check_counts(NULL, 0, 0, 0);
    ck_assert_ptr_null(tcc_jit_target(NULL));
}
END_TEST

START_TEST(what_failed_to_load_is_tried_again)
{
    const tcc_program *p;
    fake->make_fail("cuCtxGetDevice", 201);
    ck_assert_int_eq(tcc_jit_program(jit, source, &one_tile, &p), TCC_ERR_DRIVER);
    fake->reset(0);
    program_of(jit, &one_tile);
}
END_TEST

/* With what is on disk little memory is asked for: each allocation may fail, and costs a compilation at most. */
START_TEST(short_memory_is_told)
{
    tcc_status status = TCC_ERR_MEMORY;
    program_of(jit, &one_tile);
    for (long n = 0; status; n++) {
        const tcc_program *p = NULL;
        tcc_jit *later;
        const tcc_jit_options o = {.struct_size = sizeof o, .cache_dir = folder};
        oom_fail_after(n);
        status = tcc_jit_create(rt, &o, &later);
        if (!status)
            status = tcc_jit_program(later, source, &one_tile, &p);
        bool armed = oom_is_armed();
        oom_fail_after(-1);
        ck_assert(!status == (p != NULL));
        ck_assert(!status || status == TCC_ERR_MEMORY);
        if (!status && !armed) /* it was to be had without */
            status = TCC_ERR_MEMORY;
        tcc_jit_destroy(later);
        ck_assert_int_lt(n, 1000);
    }
}
END_TEST

/* ---- at once ---------------------------------------------------------------------------- */

enum { THREADS = 4 };

static void *ask(void *arg)
{
    const tcc_program **p = arg;
    tcc_status status = tcc_jit_program(jit, source, &one_tile, p);
    return status ? arg : NULL;
}

START_TEST(threads_get_one_program)
{
    pthread_t threads[THREADS];
    const tcc_program *programs[THREADS];
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, &programs[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        ck_assert_ptr_null(failed);
        ck_assert_ptr_eq(programs[i], programs[0]);
    }
    check_counts(jit, 1, 0, 0);
}
END_TEST

START_TEST(processes_share_what_is_kept)
{
    enum { PROCESSES = 2 };
    pid_t children[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (!children[i]) {
            const tcc_program *p;
            _exit(tcc_jit_program(jit, source, &one_tile, &p) != TCC_OK);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int status = -1;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert(WIFEXITED(status) && !WEXITSTATUS(status));
    }
    ck_assert_int_eq(each_file(NULL), 1);
    program_of(jit, &one_tile);
    check_counts(jit, 0, 1, 0);
}
END_TEST

Suite *SUITE(void)
{
    fake = load_fake(FAKE_CUDA, "fake_cuda");
    Suite *suite = suite_create("jit");
    TCase *tcase = tcase_create("jit");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_source_is_launched);
    tcase_add_test(tcase, the_target_is_the_gpus);
    tcase_add_test(tcase, what_is_asked_for_again_is_there);
    tcase_add_test(tcase, another_builds_code_is_told_apart);
    tcase_add_test(tcase, all_that_decides_is_told_apart);
    tcase_add_test(tcase, a_damaged_entry_is_compiled_anew);
    tcase_add_test(tcase, a_folder_that_cannot_be_used_is_told_once);
    tcase_add_test(tcase, the_limit_holds);
    tcase_add_test(tcase, a_bad_program_is_told_each_time);
    tcase_add_test(tcase, what_failed_to_load_is_tried_again);
    tcase_add_test(tcase, short_memory_is_told);
    tcase_add_test(tcase, threads_get_one_program);
    tcase_add_test(tcase, processes_share_what_is_kept);
    suite_add_tcase(suite, tcase);
    return suite;
}

/* Bundles: what is read of them, which image a GPU gets, and loading it against fake_cuda.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/ahead.h"
#include "runtime/bundle.h"
#include "runtime/runtime.h"

#include <check.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runtime/fake.h"
#include "tests/unit/runtime/fake_cuda.h"
#include "tests/unit/runtime/gpu.h"
#include "tests/unit/runtime/sample.h"
#include "tests/unit/suite.h"

#define ENTRIES ".version 8.0\n.visible .entry matmul()\n.visible .entry matmul__generic()\n"
#define PTX "// tcc-manifest 2\n//! " SAMPLE_MANIFEST "\n" ENTRIES
#define CUBIN ELFMAG "cubin"

enum { MAX_BYTES = 1 << 15 };

static const fake_cuda_control *fake;
static _Alignas(8) char bytes[MAX_BYTES];
static size_t n_bytes;
static tcc_bundle bundle;

static tcc_bundle_head *head(void)
{
    return (tcc_bundle_head *)bytes;
}

static tcc_bundle_row *row(size_t i)
{
    return (tcc_bundle_row *)(bytes + sizeof(tcc_bundle_head)) + i;
}

static uint64_t append(const char *data, size_t n)
{
    uint64_t at = n_bytes;
    ck_assert_uint_lt(n_bytes + n, MAX_BYTES);
    memcpy(bytes + n_bytes, data, n);
    n_bytes += n;
    return at;
}

/* "sm_80" is PTX for that, "sm_80!" a cubin, which comes with its manifest. */
static void make(const char *const *images, size_t n)
{
    memset(bytes, 0, sizeof bytes);
    memcpy(head()->magic, tcc_bundle_magic, sizeof tcc_bundle_magic);
    head()->version = TCC_BUNDLE_VERSION;
    head()->n = (uint32_t)n;
    n_bytes = sizeof(tcc_bundle_head) + n * sizeof(tcc_bundle_row);
    for (size_t i = 0; i < n; i++) {
        size_t len = strcspn(images[i], "!");
        bool is_cubin = images[i][len];
        memcpy(row(i)->target, images[i], len);
        row(i)->image_size = is_cubin ? sizeof CUBIN - 1 : sizeof PTX - 1;
        row(i)->image = append(is_cubin ? CUBIN : PTX, row(i)->image_size);
        row(i)->manifest_size = is_cubin ? sizeof SAMPLE_MANIFEST : 0;
        row(i)->manifest = append(SAMPLE_MANIFEST, row(i)->manifest_size);
    }
}

#define MAKE(...)                                                                                  \
    do {                                                                                           \
        static const char *const images_[] = {__VA_ARGS__};                                        \
        make(images_, sizeof images_ / sizeof *images_);                                           \
    } while (0)

static tcc_status read_bundle(void)
{
    tcc_diag diag = {.file = "test", .fn = on_diagnostic};
    message[0] = 0;
    return tcc_bundle_read(&diag, bytes, n_bytes, &bundle);
}

/* ---- reading ---------------------------------------------------------------------------- */

START_TEST(images_are_read)
{
    MAKE("sm_90a!", "sm_80");
    ck_assert(tcc_is_bundle(bytes, n_bytes));
    ck_assert(!tcc_is_bundle(bytes, 4));
    ck_assert(!tcc_is_bundle(PTX, sizeof PTX));
    ck_assert_int_eq(read_bundle(), TCC_OK);
    ck_assert_uint_eq(bundle.n, 2);
    ck_assert_str_eq(bundle.images[0].target, "sm_90a");
    ck_assert_str_eq(bundle.images[0].manifest, SAMPLE_MANIFEST);
    ck_assert_str_eq(bundle.images[1].target, "sm_80");
    ck_assert_ptr_null(bundle.images[1].manifest);
    ck_assert_uint_eq(bundle.images[1].size, sizeof PTX - 1);
}
END_TEST

static void refused(const char *why)
{
    ck_assert_int_eq(read_bundle(), TCC_ERR_SYNTAX);
    ck_assert_str_eq(message, why);
    MAKE("sm_90a!", "sm_80");
}

START_TEST(what_lies_outside_is_refused)
{
    MAKE("sm_90a!", "sm_80");
    head()->version = 2;
    refused("this bundle has version 2; only version 1 is supported");
    head()->n = 0;
    refused("bad bundle: it has no image, or too many");
    head()->n = TCC_MAX_IMAGES + 1;
    refused("bad bundle: it has no image, or too many");
    n_bytes = sizeof(tcc_bundle_head) + 100;
    refused("bad bundle: its rows are cut off");
    n_bytes = 12;
    refused("bad bundle: its head is cut off");
    memset(row(1)->target, 'x', sizeof row(1)->target);
    refused("bad bundle: a target has no name");
    row(0)->target[0] = 0;
    refused("bad bundle: a target has no name");
    row(1)->image_size++;
    refused("bad bundle: an image lies outside the file");
    row(1)->image = UINT64_MAX;
    refused("bad bundle: an image lies outside the file");
    row(1)->image_size = 0;
    refused("bad bundle: an image lies outside the file");
    row(0)->manifest_size = UINT64_MAX;
    refused("bad bundle: a manifest lies outside the file");
    row(0)->manifest_size--;
    refused("bad bundle: a manifest does not end");
    ck_assert_int_eq(read_bundle(), TCC_OK);
}
END_TEST

/* ---- choosing --------------------------------------------------------------------------- */

/* The targets that are left, a cubin's with '!'. */
static const char *chosen(const tcc_driver *driver, const char *arch)
{
    static char names[256];
    size_t n = 0;
    ck_assert_int_eq(read_bundle(), TCC_OK);
    tcc_bundle_choose(&bundle, driver, arch);
    names[0] = 0;
    for (size_t i = 0; i < bundle.n; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s%s", i ? " " : "", bundle.images[i].target,
                              bundle.images[i].manifest ? "!" : "");
    return names;
}

START_TEST(the_latest_target_that_runs_comes_first)
{
    MAKE("sm_80", "sm_80!", "gfx1100", "sm_90", "sm_90a", "sm_90a!", "sm_100a");
    ck_assert_str_eq(chosen(&tcc_driver_cuda, "sm_90"), "sm_90a! sm_90a sm_90 sm_80");
    ck_assert_str_eq(chosen(&tcc_driver_cuda, "sm_86"), "sm_80! sm_80");
    ck_assert_str_eq(chosen(&tcc_driver_cuda, "sm_120"), "sm_90 sm_80");
    ck_assert_str_eq(chosen(&tcc_driver_cuda, "sm_75"), "");
    ck_assert_str_eq(chosen(&tcc_driver_hip, "gfx1100"), "gfx1100");
    ck_assert_str_eq(chosen(&tcc_driver_hip, "gfx1201"), "");
}
END_TEST

/* ---- loading ---------------------------------------------------------------------------- */

static tcc_runtime *rt;
static tcc_device *dev;

static void setup(void)
{
    fake->reset(6);
    message[0] = 0;
    ck_assert_int_eq(tcc_runtime_create(&rt, on_diagnostic, NULL), TCC_OK);
    ck_assert_int_eq(tcc_device_open(rt, 0, &dev), TCC_OK);
}

static void teardown(void)
{
    tcc_device_close(dev);
    tcc_runtime_destroy(rt);
    ck_assert_int_eq(fake->alive(), 0);
}

static tcc_status load(void)
{
    tcc_program *program;
    tcc_status status = tcc_program_load(rt, bytes, n_bytes, NULL, &program);
    ck_assert(!status == !!tcc_program_kernel(program, "matmul"));
    tcc_program_destroy(program);
    return status;
}

/* To the fake driver a cubin has no entries, as one of a later CUDA has none to a real one. */
START_TEST(an_image_that_the_driver_does_not_take_is_passed_over)
{
    MAKE("gfx1100", "sm_90a!", "sm_90a");
    ck_assert_int_eq(load(), TCC_OK);
    ck_assert_str_eq(message, "");
    MAKE("gfx1100", "sm_90a!");
    ck_assert_int_eq(load(), TCC_ERR_DRIVER);
    ck_assert_msg(strstr(message, "cuModuleGetFunction"), "%s", message);
}
END_TEST

START_TEST(a_gpu_without_an_image_is_told_what_there_is)
{
    MAKE("sm_90a!", "sm_90a", "gfx1100", "sm_100a");
    fake->set_compute_capability(7, 5);
    ck_assert_int_eq(load(), TCC_ERR_TARGET);
    ck_assert_str_eq(message, "compiled for sm_90a, gfx1100, sm_100a, but this GPU is sm_75");
    tcc_program *program;
    ck_assert_int_eq(tcc_program_load(rt, bytes, n_bytes, SAMPLE_MANIFEST, &program), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "a bundle contains its manifests, but another one is given");
}
END_TEST

START_TEST(memory_may_run_out_while_loading)
{
    MAKE("sm_90a!", "sm_90a");
    check_loading_without_memory(rt, bytes, n_bytes);
}
END_TEST

/* ---- whichever GPU is current ----------------------------------------------------------- */

static tcc_ahead ahead;

static tcc_status launch_ahead(void)
{
    const int64_t dims[] = {2, 300, 128, 520};
    const tcc_arg args[] = {{0x10000}, {0x20000}, {0x30000}, {.number = 0.1}, {0x50000}};
    return tcc_ahead_launch(&ahead, 0, dims, 4, args, 5, NULL);
}

static void begin_ahead(void)
{
    ahead = (tcc_ahead){.bundle = bytes, .size = n_bytes, .fn = on_diagnostic, .mutex = PTHREAD_MUTEX_INITIALIZER};
}

/* What a process keeps to its end. */
static void end_ahead(void)
{
    tcc_ahead_vendor *v = &ahead.vendors[TCC_VENDOR_NVIDIA];
    tcc_program_destroy(v->programs[0]);
    free(v->programs);
    tcc_runtime_destroy(v->rt);
}

/* Each thread has a current context of its own. */
static void *launch_in_thread(void *unused)
{
    tcc_device *own = NULL;
    ck_assert_int_eq(tcc_device_open(rt, 0, &own), TCC_OK);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(launch_ahead(), TCC_OK);
    tcc_device_close(own);
    return unused;
}

START_TEST(threads_launch_ahead_on_one_program)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    MAKE("gfx1100", "sm_90a!", "sm_90a");
    begin_ahead();
    int before = fake->alive();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, launch_in_thread, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(launch_ahead(), TCC_OK);
    ck_assert_int_eq(fake->alive(), before + 1); /* a module */
    end_ahead();
}
END_TEST

START_TEST(a_thread_without_a_gpu_is_told)
{
    MAKE("sm_90a");
    begin_ahead();
    tcc_device_close(dev);
    ck_assert_int_eq(launch_ahead(), TCC_ERR_NO_DRIVER);
    ck_assert_str_eq(message, "no GPU is current in this thread; cudaSetDevice or cuCtxSetCurrent selects one");
    ck_assert_int_eq(tcc_device_open(rt, 0, &dev), TCC_OK);
    ck_assert_int_eq(launch_ahead(), TCC_OK);
    end_ahead();
}
END_TEST

START_TEST(without_a_driver_the_loader_says_why)
{
    MAKE("gfx1100");
    begin_ahead();
    for (int i = 0; i < 2; i++) {
        message[0] = 0;
        ck_assert_int_eq(launch_ahead(), TCC_ERR_NO_DRIVER);
        ck_assert_msg(strstr(message, "libamdhip64.so"), "%s", message);
    }
}
END_TEST

Suite *SUITE(void)
{
    fake = load_fake(FAKE_CUDA, "fake_cuda");
    Suite *s = suite_create("bundle");
    TCase *reading = tcase_create("reading");
    tcase_add_test(reading, images_are_read);
    tcase_add_test(reading, what_lies_outside_is_refused);
    tcase_add_test(reading, the_latest_target_that_runs_comes_first);
    suite_add_tcase(s, reading);
    TCase *loading = tcase_create("loading");
    tcase_add_checked_fixture(loading, setup, teardown);
    tcase_add_test(loading, an_image_that_the_driver_does_not_take_is_passed_over);
    tcase_add_test(loading, a_gpu_without_an_image_is_told_what_there_is);
    tcase_add_test(loading, memory_may_run_out_while_loading);
    suite_add_tcase(s, loading);
    TCase *current = tcase_create("current");
    tcase_add_checked_fixture(current, setup, teardown);
    tcase_add_test(current, threads_launch_ahead_on_one_program);
    tcase_add_test(current, a_thread_without_a_gpu_is_told);
    tcase_add_test(current, without_a_driver_the_loader_says_why);
    suite_add_tcase(s, current);
    return s;
}

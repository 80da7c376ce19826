/* A tcc_jit against fake_cuda: kernels for single extents and machine code, at once and in the background. Built with the
 * thread sanitizer, too.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc_jit.h>

#include <pthread.h>

#include "tests/unit/runtime/fake.h"
#include "tests/unit/runtime/fake_cuda.h"
#include "tests/unit/runtime/folder.h"
#include "tests/unit/runtime/gpu.h"
#include "tests/unit/suite.h"

/* Of one tile, which is for large extents. */
static const char source[] = "kernel fake_product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
                             "{\n"
                             "    C[m, n] = sum(k) A[m, k] * B[k, n];\n"
                             "}\n";
static const tcc_compile_options one_tile = {.struct_size = sizeof one_tile, .tiles = 1};

enum { M, K, N, DIMS };
static const int64_t small[DIMS] = {15, 64, 16}, similar[DIMS] = {16, 64, 24}, large[DIMS] = {8192, 8192, 8192};

static const fake_cuda_control *fake;
static tcc_runtime *rt;
static tcc_device *dev;
static tcc_jit *jit;

static tcc_jit *create(tcc_jit_when specialize, tcc_jit_when assemble)
{
    tcc_jit *made;
    const tcc_jit_options o = {
        .struct_size = sizeof o, .cache_dir = folder, .specialize = specialize, .assemble = assemble};
    ck_assert_int_eq(tcc_jit_create(rt, &o, &made), TCC_OK);
    return made;
}

static void setup(void)
{
    make_folder();
    fake->reset(0);
    fake->take_cubins();
    message[0] = 0;
    ck_assert_int_eq(tcc_runtime_create(&rt, on_diagnostic, NULL), TCC_OK);
    ck_assert_int_eq(tcc_device_open(rt, 0, &dev), TCC_OK);
    jit = NULL;
}

static void teardown(void)
{
    tcc_jit_destroy(jit);
    tcc_device_close(dev);
    tcc_runtime_destroy(rt);
    ck_assert_int_eq(fake->alive(), 0);
    ck_assert_str_eq(message, "");
    remove_folder();
}

static const tcc_kernel *kernel_at(tcc_jit *j, const char *text_, const int64_t *dims, uint64_t address)
{
    const tcc_kernel *k;
    const tcc_arg args[] = {{address}, {address}, {address}};
    ck_assert_int_eq(tcc_jit_kernel_for(j, text_, &one_tile, NULL, dims, DIMS, args, 3, &k), TCC_OK);
    ck_assert_ptr_nonnull(k);
    return k;
}

static const tcc_kernel *kernel_for(tcc_jit *j, const int64_t *dims)
{
    return kernel_at(j, source, dims, 256);
}

static const tcc_kernel *own_kernel(tcc_jit *j)
{
    const tcc_kernel *k;
    ck_assert_int_eq(tcc_jit_kernel(j, source, &one_tile, NULL, &k), TCC_OK);
    return k;
}

static void check_counts(tcc_jit *j, uint64_t compiled, uint64_t read, uint64_t specialized, uint64_t assembled)
{
    tcc_jit_counts n = tcc_jit_count(j);
    ck_assert_uint_eq(n.compiled, compiled);
    ck_assert_uint_eq(n.read, read);
    ck_assert_uint_eq(n.damaged, 0);
    ck_assert_uint_eq(n.specialized, specialized);
    ck_assert_uint_eq(n.assembled, assembled);
}

/* ---- kernels for extents ------------------------------------------------------------------ */

START_TEST(extents_get_a_kernel_of_their_own)
{
    jit = create(TCC_JIT_AT_ONCE, TCC_JIT_NEVER);
    const tcc_kernel *own = kernel_for(jit, small), *general = own_kernel(jit);
    const tcc_arg args[] = {{256}, {256}, {256}};
    ck_assert_ptr_ne(own, general);
    ck_assert_int_lt(tcc_kernel_cost(own, small, DIMS, args, 3), tcc_kernel_cost(general, small, DIMS, args, 3));
    ck_assert_ptr_eq(kernel_for(jit, small), own);
    check_counts(jit, 2, 0, 1, 0);
    /* Whom the same schedule suits shares the program. */
    ck_assert_ptr_eq(kernel_for(jit, similar), own);
    check_counts(jit, 2, 0, 2, 0);
}
END_TEST

START_TEST(what_is_served_well_stays)
{
    jit = create(TCC_JIT_AT_ONCE, TCC_JIT_NEVER);
    ck_assert_ptr_eq(kernel_for(jit, large), own_kernel(jit));
    ck_assert_ptr_eq(kernel_for(jit, (int64_t[]){0, 64, 16}), own_kernel(jit));
    check_counts(jit, 1, 0, 0, 0);
}
END_TEST

/* Addresses that no allocator gives; a kernel that says how it is computed; calls without what decides. */
START_TEST(what_is_not_specialized)
{
    const char *scheduled = "kernel fake_product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
                            "{ C[m, n] = sum(k) A[m, k] * B[k, n]; }\n"
                            "schedule fake_product for sm_90a { group 4; }\n";
    const tcc_kernel *k;
    jit = create(TCC_JIT_AT_ONCE, TCC_JIT_NEVER);
    ck_assert_ptr_eq(kernel_at(jit, source, small, 258), own_kernel(jit));
    ck_assert_int_eq(tcc_jit_kernel_for(jit, source, &one_tile, NULL, small, 2, NULL, 0, &k), TCC_OK);
    ck_assert_ptr_eq(k, own_kernel(jit));
    k = kernel_at(jit, scheduled, small, 256);
    ck_assert_ptr_eq(kernel_at(jit, scheduled, large, 256), k);
    check_counts(jit, 2, 0, 0, 0);
    tcc_jit *never = create(TCC_JIT_NEVER, TCC_JIT_NEVER);
    ck_assert_ptr_eq(kernel_for(never, small), own_kernel(never));
    check_counts(never, 0, 1, 0, 0);
    tcc_jit_destroy(never);
}
END_TEST

START_TEST(kernels_for_extents_are_kept)
{
    tcc_jit *first = create(TCC_JIT_AT_ONCE, TCC_JIT_NEVER);
    kernel_for(first, small);
    tcc_jit_destroy(first);
    jit = create(TCC_JIT_AT_ONCE, TCC_JIT_NEVER);
    ck_assert_ptr_ne(kernel_for(jit, small), own_kernel(jit));
    check_counts(jit, 0, 2, 1, 0);
}
END_TEST

enum { F16_ONE = 0x3c00, F16_64 = 0x5400 };

START_TEST(a_launch_computes_the_same)
{
    uint16_t a[16 * 64], c[15 * 16];
    tcc_arg args[3];
    jit = create(TCC_JIT_BACKGROUND, TCC_JIT_NEVER);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] = F16_ONE;
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(tcc_device_alloc(dev, i < 2 ? sizeof a : sizeof c, &args[i].device), TCC_OK);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(tcc_device_write(dev, args[i].device, a, sizeof a), TCC_OK);
    for (int round = 0; round < 2; round++) {
        ck_assert_int_eq(tcc_device_fill(dev, args[2].device, 0, sizeof c), TCC_OK);
        ck_assert_int_eq(tcc_jit_launch(jit, source, &one_tile, NULL, small, DIMS, args, 3, NULL), TCC_OK);
        ck_assert_int_eq(tcc_device_read(dev, c, args[2].device, sizeof c), TCC_OK);
        for (size_t i = 0; i < sizeof c / sizeof *c; i++)
            ck_assert_uint_eq(c[i], F16_64);
        tcc_jit_wait(jit);
    }
    for (int i = 0; i < 3; i++)
        tcc_device_free(dev, args[i].device);
    check_counts(jit, 2, 0, 1, 0);
}
END_TEST

/* ---- in the background -------------------------------------------------------------------- */

START_TEST(the_background_loads_while_a_stream_is_captured)
{
    jit = create(TCC_JIT_BACKGROUND, TCC_JIT_NEVER);
    const tcc_kernel *general = own_kernel(jit);
    const tcc_arg args[] = {{256}, {256}, {256}};
    ck_assert_int_eq(tcc_kernel_prepare(general, small, DIMS, args, 3), TCC_OK);
    int before = fake->compiled();
    fake->set_capturing(true);
    ck_assert_ptr_eq(kernel_for(jit, small), general);
    tcc_jit_wait(jit);
    const tcc_kernel *own = kernel_for(jit, small);
    ck_assert_ptr_ne(own, general);
    ck_assert_int_gt(fake->compiled(), before);
    before = fake->compiled();
    ck_assert_int_eq(tcc_kernel_prepare(own, small, DIMS, args, 3), TCC_OK); /* it is already */
    ck_assert_int_eq(fake->compiled(), before);
}
END_TEST

START_TEST(what_fails_in_the_background_is_done_without)
{
    jit = create(TCC_JIT_BACKGROUND, TCC_JIT_NEVER);
    const tcc_kernel *general = own_kernel(jit);
    fake->make_fail("cuModuleLoadDataEx", 2);
    ck_assert_ptr_eq(kernel_for(jit, small), general);
    tcc_jit_wait(jit);
    ck_assert_ptr_eq(kernel_for(jit, small), general);
    tcc_jit_wait(NULL);
}
END_TEST

START_TEST(what_is_not_done_is_dropped)
{
    jit = create(TCC_JIT_BACKGROUND, TCC_JIT_BACKGROUND);
    for (int64_t m = 1; m <= 20; m++)
        kernel_for(jit, (int64_t[]){m, 64, 16});
    tcc_jit_end_background(jit);
    for (int64_t m = 20; m <= 40; m++)
        ck_assert_ptr_eq(kernel_for(jit, (int64_t[]){m, 80, 16}), own_kernel(jit));
    ck_assert_uint_lt(tcc_jit_count(jit).specialized, 20);
    tcc_jit_wait(jit);
    tcc_jit_end_background(NULL);
    tcc_jit_destroy(jit);
    jit = create(TCC_JIT_BACKGROUND, TCC_JIT_BACKGROUND);
    kernel_for(jit, small);
}
END_TEST

enum { THREADS = 4, ROUNDS = 40 };

static void *ask(void *arg)
{
    tcc_jit *j = arg;
    const tcc_arg args[] = {{256}, {256}, {256}};
    for (int64_t i = 0; i < ROUNDS; i++) {
        const tcc_kernel *k;
        const int64_t dims[] = {1 + i % 8, 64, 16 + i % 3};
        if (tcc_jit_kernel_for(j, source, &one_tile, NULL, dims, DIMS, args, 3, &k) || !k)
            return arg;
    }
    return NULL;
}

START_TEST(threads_get_the_same_kernels)
{
    static const tcc_jit_when when[] = {TCC_JIT_BACKGROUND, TCC_JIT_AT_ONCE};
    for (size_t w = 0; w < sizeof when / sizeof *when; w++) {
        pthread_t threads[THREADS];
        tcc_jit *j = create(when[w], TCC_JIT_NEVER);
        for (int i = 0; i < THREADS; i++)
            ck_assert_int_eq(pthread_create(&threads[i], NULL, ask, j), 0);
        for (int i = 0; i < THREADS; i++) {
            void *failed;
            pthread_join(threads[i], &failed);
            ck_assert_ptr_null(failed);
        }
        tcc_jit_wait(j);
        ck_assert_uint_eq(tcc_jit_count(j).specialized, 24);
        tcc_jit_destroy(j);
    }
}
END_TEST

/* ---- machine code ------------------------------------------------------------------------- */

static bool has_ptxas;

/* Machine code is there for later processes, whenever it was made. */
static void check_assembled(tcc_jit_when when)
{
    const tcc_arg args[] = {{256}, {256}, {256}};
    tcc_jit *first = create(TCC_JIT_NEVER, when);
    ck_assert_int_eq(tcc_kernel_prepare(own_kernel(first), small, DIMS, args, 3), TCC_OK);
    ck_assert_int_eq(fake->compiled() > 0, when == TCC_JIT_BACKGROUND);
    tcc_jit_wait(first);
    check_counts(first, 1, 0, 0, 1);
    tcc_jit_destroy(first);
    fake->reset(0);
    fake->take_cubins();
    jit = create(TCC_JIT_NEVER, when);
    ck_assert_int_eq(tcc_kernel_prepare(own_kernel(jit), small, DIMS, args, 3), TCC_OK);
    ck_assert_int_eq(fake->compiled(), 0);
    tcc_jit_wait(jit);
    check_counts(jit, 0, 1, 0, 0);
}

START_TEST(machine_code_is_kept)
{
    if (has_ptxas)
        check_assembled(TCC_JIT_AT_ONCE);
}
END_TEST

START_TEST(machine_code_is_made_in_the_background)
{
    if (has_ptxas)
        check_assembled(TCC_JIT_BACKGROUND);
}
END_TEST

/* A process that ended before leaves PTX, to which the next one adds what is missing. */
START_TEST(machine_code_is_made_up_for)
{
    tcc_jit *first = create(TCC_JIT_NEVER, TCC_JIT_NEVER);
    own_kernel(first);
    tcc_jit_destroy(first);
    if (has_ptxas)
        for (uint64_t missing = 1; missing < 2; missing--) {
            tcc_jit *later = create(TCC_JIT_NEVER, TCC_JIT_BACKGROUND);
            own_kernel(later);
            tcc_jit_wait(later);
            check_counts(later, 0, 1, 0, missing);
            tcc_jit_destroy(later);
        }
}
END_TEST

/* A kernel for extents is made in the background already, where nobody waits for ptxas. */
START_TEST(kernels_for_extents_have_machine_code)
{
    if (!has_ptxas)
        return;
    jit = create(TCC_JIT_BACKGROUND, TCC_JIT_BACKGROUND);
    kernel_for(jit, small);
    tcc_jit_wait(jit);
    check_counts(jit, 2, 0, 1, 2);
    ck_assert_int_eq(fake->compiled(), 0);
}
END_TEST

START_TEST(without_ptxas_there_is_ptx)
{
    const tcc_arg args[] = {{256}, {256}, {256}};
    ck_assert_int_eq(setenv("CUDA_HOME", folder, 1), 0);
    ck_assert_int_eq(setenv("PATH", folder, 1), 0);
    bool is_elsewhere = !access("/usr/local/cuda/bin/ptxas", X_OK);
    jit = create(TCC_JIT_NEVER, TCC_JIT_AT_ONCE);
    ck_assert_int_eq(tcc_kernel_prepare(own_kernel(jit), small, DIMS, args, 3), TCC_OK);
    check_counts(jit, 1, 0, 0, is_elsewhere);
    ck_assert_int_eq(fake->compiled(), !is_elsewhere);
}
END_TEST

static bool find_ptxas(void)
{
    const char *home = getenv("CUDA_HOME");
    char path[512];
    snprintf(path, sizeof path, "%s/bin/ptxas", home ? home : "/usr/local/cuda");
    return !access(path, X_OK) || !system("command -v ptxas > /dev/null");
}

Suite *SUITE(void)
{
    fake = load_fake(FAKE_CUDA, "fake_cuda");
    has_ptxas = find_ptxas();
    Suite *suite = suite_create("jit_extents");
    TCase *tcase = tcase_create("jit_extents");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, extents_get_a_kernel_of_their_own);
    tcase_add_test(tcase, what_is_served_well_stays);
    tcase_add_test(tcase, what_is_not_specialized);
    tcase_add_test(tcase, kernels_for_extents_are_kept);
    tcase_add_test(tcase, a_launch_computes_the_same);
    tcase_add_test(tcase, the_background_loads_while_a_stream_is_captured);
    tcase_add_test(tcase, what_fails_in_the_background_is_done_without);
    tcase_add_test(tcase, what_is_not_done_is_dropped);
    tcase_add_test(tcase, threads_get_the_same_kernels);
    tcase_add_test(tcase, machine_code_is_kept);
    tcase_add_test(tcase, machine_code_is_made_in_the_background);
    tcase_add_test(tcase, machine_code_is_made_up_for);
    tcase_add_test(tcase, kernels_for_extents_have_machine_code);
    tcase_add_test(tcase, without_ptxas_there_is_ptx);
    suite_add_tcase(suite, tcase);
    return suite;
}

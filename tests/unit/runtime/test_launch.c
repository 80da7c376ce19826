/* Loading, launching and the device layer against fake_cuda.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/runtime.h"

#include <check.h>
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

static const fake_cuda_control *fake;
static tcc_runtime *rt;
static tcc_device *dev;
static tcc_program *prog;

/* B M K N and A W bias alpha C, as the sample takes them. */
static int64_t dims[4];
static tcc_arg args[5];

static void setup(void)
{
    fake->reset(6);
    message[0] = 0;
    ck_assert_int_eq(tcc_runtime_create(&rt, on_diagnostic, NULL), TCC_OK);
    ck_assert_int_eq(tcc_device_open(rt, 0, &dev), TCC_OK);
    ck_assert_int_eq(tcc_program_load(rt, PTX, sizeof PTX - 1, NULL, &prog), TCC_OK);
    memcpy(dims, (int64_t[]){2, 300, 128, 520}, sizeof dims);
    for (int i = 0; i < 5; i++)
        args[i].device = 0x10000 * (uint64_t)(i + 1);
    args[3].number = 0.1;
}

static void teardown(void)
{
    tcc_program_destroy(prog);
    tcc_device_close(dev);
    tcc_runtime_destroy(rt);
    ck_assert_int_eq(fake->alive(), 0);
}

static tcc_status launch(void *stream)
{
    return tcc_kernel_launch(tcc_program_kernel(prog, NULL), dims, 4, args, 5, stream);
}

static const fake_launch *launched(void)
{
    int n;
    const fake_launch *l = fake->launches(&n);
    ck_assert_int_eq(n, 1);
    return l;
}

/* ---- launching -------------------------------------------------------------------------- */

START_TEST(a_launch_gets_grid_block_and_shared_memory)
{
    int stream;
    ck_assert_int_eq(launch(&stream), TCC_OK);
    const fake_launch *l = launched();
    ck_assert_str_eq(l->entry, "matmul");
    ck_assert_uint_eq(l->grid[0], 18);
    ck_assert_uint_eq(l->grid[1], 1);
    ck_assert_uint_eq(l->grid[2], 1);
    ck_assert_uint_eq(l->block[0], 384);
    ck_assert_uint_eq(l->smem_bytes, 197632);
    ck_assert_int_eq(l->max_smem_bytes, 197632);
    ck_assert_ptr_eq(l->stream, &stream);
}
END_TEST

START_TEST(parameters_are_packed_in_order)
{
    ck_assert_int_eq(launch(NULL), TCC_OK);
    const fake_launch *l = launched();
    ck_assert_uint_eq(l->params[0], args[0].device); /* a tensor map's */
    ck_assert_uint_eq(l->params[1], args[1].device);
    ck_assert_uint_eq(l->params[2], args[4].device);
    ck_assert_int_eq((int32_t)l->params[3], 300);
    ck_assert_int_eq((int32_t)l->params[4], 7);
    float alpha;
    memcpy(&alpha, &l->params[5], sizeof alpha);
    ck_assert(alpha == 0x1.998p-4f); /* 0.1 as f16 */
}
END_TEST

START_TEST(small_shared_memory_is_not_asked_for)
{
    dims[2] = 0;
    fake->reset(4);
    ck_assert_int_eq(launch(NULL), TCC_OK);
    ck_assert_str_eq(launched()->entry, "matmul__generic");
    ck_assert_int_eq(launched()->max_smem_bytes, -1);
    ck_assert_uint_eq(launched()->params[0], args[0].device);
    ck_assert_int_eq((int32_t)launched()->params[3], 0);
}
END_TEST

START_TEST(tensor_maps_are_encoded_once_for_equal_arguments)
{
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(launch(NULL), TCC_OK);
    ck_assert_int_eq(fake->maps_encoded(), 2);
    args[1].device += 0x1000;
    ck_assert_int_eq(launch(NULL), TCC_OK);
    ck_assert_int_eq(fake->maps_encoded(), 3);
}
END_TEST

START_TEST(an_empty_output_launches_nothing)
{
    int n;
    dims[1] = 0;
    ck_assert_int_eq(launch(NULL), TCC_OK);
    fake->launches(&n);
    ck_assert_int_eq(n, 0);
    ck_assert_ptr_null(tcc_kernel_variant(tcc_program_kernel(prog, NULL), dims, 4, args, 5));
}
END_TEST

START_TEST(the_variant_is_told_without_launching)
{
    const tcc_kernel *k = tcc_program_kernel(prog, "matmul");
    int n;
    ck_assert_str_eq(tcc_kernel_variant(k, dims, 4, args, 5), "matmul");
    args[0].device += 2;
    ck_assert_str_eq(tcc_kernel_variant(k, dims, 4, args, 5), "matmul__generic");
    ck_assert_ptr_null(tcc_kernel_variant(k, dims, 3, args, 5));
    ck_assert_str_eq(message, "");
    fake->launches(&n);
    ck_assert_int_eq(n, 0);
}
END_TEST

START_TEST(bad_arguments_launch_nothing)
{
    args[1].device = 0;
    ck_assert_int_eq(launch(NULL), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(text, "matmul.tile: error: kernel 'matmul': argument 'W' is at address 0\n");
}
END_TEST

static void *launch_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < 200; i++)
        if (launch(NULL))
            return &rt;
    return NULL;
}

START_TEST(threads_may_share_a_program)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, launch_many, NULL);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
}
END_TEST

/* ---- steps ------------------------------------------------------------------------------ */

#define STEP(entry, grid, params)                                                                  \
    "{\"launch\":\"" entry "\",\"grid\":" grid                                                     \
    ",\"block\":64,\"smem_bytes\":0,\"cluster\":1,\"params\":[" params "]}"

/* Split along k: parts into a workspace that was set to zero, and a second kernel to add them, which takes a
 * tensor map of it, too. */
#define SPLIT                                                                                                    \
    SAMPLE_MODULE(SAMPLE_KERNEL(                                                                                 \
        SAMPLE_ARGS,                                                                                             \
        "{\"name\":\"split\",\"requires\":[],\"cost\":1,"                                                        \
        "\"workspace_bytes\":[\"add\",256,[\"mul\",\"M\",128]],\"steps\":["                                      \
        "{\"memset\":{\"pointer\":\"C\"},\"bytes\":6,\"byte\":255},"                                             \
        "{\"memset\":{\"workspace\":256},\"bytes\":[\"mul\",\"M\",4],\"byte\":0}," STEP(                         \
            "matmul", "[\"min\",[\"mul\",\"B\",\"M\"],{\"device\":\"sms\"}]",                                    \
            "{\"pointer\":\"A\"},{\"workspace\":[\"add\",128,128]},{\"dim\":\"K\"}") "," STEP("matmul__generic", \
                                                                                              "\"B\"",           \
                                                                                              "{\"workspace\":0},{\"pointer\":\"C\"}," MAP_OF_PARTS) "]}"))
#define MAP_OF_PARTS                                                                                                    \
    "{\"tensor_map\":{\"workspace\":[\"sub\",256,128],\"dims\":[\"M\",4],\"strides\":[[[\"roundup\",\"M\",32]]]," \
    "\"box\":[8,1],\"swizzle\":0,\"type\":\"f32\"}}"

static tcc_status launch_split(void *stream)
{
    static uint16_t c[3];
    tcc_program *p;
    memset(c, 0, sizeof c);
    args[4].device = (uintptr_t)c;
    memcpy(dims, (int64_t[]){1, 3, 8, 1}, sizeof dims);
    ck_assert_int_eq(tcc_program_load(rt, ENTRIES, sizeof ENTRIES - 1, SPLIT, &p), TCC_OK);
    const tcc_kernel *k = tcc_program_kernel(p, NULL);
    tcc_status status = tcc_kernel_launch(k, dims, 4, args, 5, stream);
    if (!status) {
        ck_assert_str_eq(tcc_kernel_variant(k, dims, 4, args, 5), "split");
        for (int i = 0; i < 3; i++)
            ck_assert_uint_eq(c[i], 0xffff);
    }
    tcc_program_destroy(p);
    return status;
}

START_TEST(steps_run_one_after_another)
{
    int stream, n;
    fake->reset(3);
    ck_assert_int_eq(launch_split(&stream), TCC_OK);
    const fake_launch *l = fake->launches(&n);
    ck_assert_int_eq(n, 4);
    for (int i = 0; i < n; i++)
        ck_assert_ptr_eq(l[i].stream, &stream);
    ck_assert_str_eq(l[0].entry, "memset");
    ck_assert_uint_eq(l[0].params[0], args[4].device);
    ck_assert_uint_eq(l[0].params[1], 255);
    ck_assert_uint_eq(l[0].params[2], 6);
    uint64_t workspace = l[1].params[0] - 256;
    ck_assert_str_eq(l[1].entry, "memset");
    ck_assert_uint_eq(workspace % 256, 0);
    ck_assert_uint_eq(l[1].params[2], 12);
    ck_assert_str_eq(l[2].entry, "matmul");
    ck_assert_uint_eq(l[2].grid[0], 3);
    ck_assert_uint_eq(l[2].params[1], workspace + 256);
    ck_assert_int_eq((int32_t)l[2].params[2], 8);
    ck_assert_str_eq(l[3].entry, "matmul__generic");
    ck_assert_uint_eq(l[3].grid[0], 1);
    ck_assert_uint_eq(l[3].params[0], workspace);
    ck_assert_uint_eq(l[3].params[1], args[4].device);
    ck_assert_uint_eq(l[3].params[2], workspace + 128);
}
END_TEST

START_TEST(a_step_without_tiles_is_not_launched)
{
    int n;
    tcc_program *p;
    fake->reset(0);
    ck_assert_int_eq(tcc_program_load(rt, ENTRIES, sizeof ENTRIES - 1,
                                      SAMPLE_MODULE(SAMPLE_KERNEL(
                                          SAMPLE_ARGS, "{\"name\":\"v\",\"requires\":[],\"steps\":[" STEP(
                                                           "matmul", "[\"sub\",\"M\",300]", "") "," STEP(
                                                           "matmul__generic", "1", "") "]}")),
                                      &p),
                     TCC_OK);
    ck_assert_int_eq(tcc_kernel_launch(tcc_program_kernel(p, NULL), dims, 4, args, 5, NULL), TCC_OK);
    const fake_launch *l = fake->launches(&n);
    ck_assert_int_eq(n, 1);
    ck_assert_str_eq(l[0].entry, "matmul__generic");
    tcc_program_destroy(p);
}
END_TEST

/* Two launches that may overlap with what is in front of them, with or without something between. */
#define OVERLAPPING(entry)                                                                         \
    "{\"launch\":\"" entry "\",\"grid\":2,\"block\":64,\"smem_bytes\":0,\"cluster\":1,"                \
    "\"overlaps\":1,\"params\":[]}"
#define OVERLAPPING_STEPS(between)                                                                 \
    SAMPLE_MODULE(SAMPLE_KERNEL(SAMPLE_ARGS, "{\"name\":\"split\",\"requires\":[],\"steps\":["         \
                                             OVERLAPPING("matmul") "," between                     \
                                             OVERLAPPING("matmul__generic") "]}"))
#define FILL "{\"memset\":{\"pointer\":\"C\"},\"bytes\":0,\"byte\":0},"

START_TEST(a_step_overlaps_with_the_launch_in_front_of_it)
{
    static const struct {
        const char *manifest;
        int version;
        bool overlaps;
    } cases[] = {
        {OVERLAPPING_STEPS(""), 12030, true},
        {OVERLAPPING_STEPS(""), 12020, false}, /* it could not be captured */
        {OVERLAPPING_STEPS(FILL), 13000, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tcc_runtime *of_version;
        tcc_program *p;
        int n, stream;
        fake->reset(0);
        fake->set_version(cases[i].version);
        ck_assert_int_eq(tcc_runtime_create(&of_version, on_diagnostic, NULL), TCC_OK);
        ck_assert_int_eq(tcc_program_load(of_version, ENTRIES, sizeof ENTRIES - 1, cases[i].manifest, &p), TCC_OK);
        const tcc_kernel *k = tcc_program_kernel(p, NULL);
        ck_assert_int_eq(tcc_kernel_launch(k, dims, 4, args, 5, &stream), TCC_OK);
        const fake_launch *l = fake->launches(&n);
        ck_assert_int_eq(n, 2);
        ck_assert(!l[0].overlaps);
        ck_assert(l[1].overlaps == cases[i].overlaps);
        ck_assert_str_eq(l[1].entry, "matmul__generic");
        ck_assert_ptr_eq(l[1].stream, &stream);
        ck_assert_uint_eq(l[1].block[0], 64);
        ck_assert_mem_eq(l[1].grid, ((unsigned[]){2, 1, 1}), sizeof l[1].grid);
        fake->make_fail("cuLaunchKernelEx", 700);
        ck_assert_int_eq(tcc_kernel_launch(k, dims, 4, args, 5, NULL), cases[i].overlaps ? TCC_ERR_DRIVER : TCC_OK);
        tcc_program_destroy(p);
        tcc_runtime_destroy(of_version);
    }
}
END_TEST

/* The cheapest variant needs workspace; the other one is the generic. */
#define SPLIT_OR_NOT                                                                               \
    SAMPLE_MODULE(SAMPLE_KERNEL(                                                                   \
        SAMPLE_ARGS,                                                                               \
        "{\"name\":\"split\",\"requires\":[],\"cost\":1,\"workspace_bytes\":[\"mul\",\"M\",4],\"steps\":[" STEP(   \
            "matmul", "1", "{\"workspace\":0},{\"dim\":\"K\"}") "]},"                                \
        "{\"name\":\"whole\",\"requires\":[],\"cost\":2,\"steps\":[" STEP("matmul__generic", "1", "{\"dim\":\"M\"}") "]}"))

/* The caller's as well. */
START_TEST(a_workspace_is_filled_if_that_is_wanted)
{
    static _Alignas(256) uint8_t room[256];
    tcc_runtime *filling;
    tcc_program *p;
    int n;
    setenv("TCC_FILL_WORKSPACE", "1", 1);
    ck_assert_int_eq(tcc_runtime_create(&filling, on_diagnostic, NULL), TCC_OK);
    unsetenv("TCC_FILL_WORKSPACE");
    memcpy(dims, (int64_t[]){1, 3, 8, 1}, sizeof dims);
    for (int given = 0; given < 2; given++) {
        fake->reset(2);
        ck_assert_int_eq(tcc_program_load(filling, ENTRIES, sizeof ENTRIES - 1, SPLIT_OR_NOT, &p), TCC_OK);
        const tcc_kernel *k = tcc_program_kernel(p, NULL);
        const tcc_workspace own = {(uintptr_t)room, sizeof room};
        tcc_status status = given ? tcc_kernel_launch_in(k, dims, 4, args, 5, NULL, own)
                                  : tcc_kernel_launch(k, dims, 4, args, 5, NULL);
        ck_assert_int_eq(status, TCC_OK);
        const fake_launch *l = fake->launches(&n);
        ck_assert_int_eq(n, 2);
        ck_assert_str_eq(l[0].entry, "memset");
        ck_assert_uint_eq(l[0].params[1], 0xff);
        ck_assert_uint_eq(l[0].params[2], 12);
        ck_assert_str_eq(l[1].entry, "matmul");
        ck_assert_uint_eq(l[1].params[0], l[0].params[0]);
        tcc_program_destroy(p);
    }
    tcc_runtime_destroy(filling);
}
END_TEST

START_TEST(a_workspace_is_the_callers_or_none)
{
    static const struct {
        tcc_workspace given;
        const char *entry; /* NULL: refused */
    } cases[] = {{{0x1000, 12}, "matmul"},
                 {{0x1000, 4096}, "matmul"},
                 {{0x1000, 11}, "matmul__generic"},
                 {{0, 0}, "matmul__generic"},
                 {{0x1080, 12}, NULL},
                 {{0x1000, (size_t)-1}, NULL}};
    tcc_program *p;
    int n, alive;
    memcpy(dims, (int64_t[]){1, 3, 8, 1}, sizeof dims);
    ck_assert_int_eq(tcc_program_load(rt, ENTRIES, sizeof ENTRIES - 1, SPLIT_OR_NOT, &p), TCC_OK);
    const tcc_kernel *k = tcc_program_kernel(p, NULL);
    ck_assert_uint_eq(tcc_kernel_workspace_bytes(k, dims, 4, args, 5), 12);
    ck_assert_uint_eq(tcc_kernel_workspace_bytes(k, dims, 3, args, 5), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake->reset(1);
        alive = fake->alive();
        tcc_status status = tcc_kernel_launch_in(k, dims, 4, args, 5, NULL, cases[i].given);
        const fake_launch *l = fake->launches(&n);
        ck_assert_int_eq(status, cases[i].entry ? TCC_OK : TCC_ERR_ARGUMENT);
        ck_assert_int_eq(n, cases[i].entry != NULL);
        if (n)
            ck_assert_str_eq(l[0].entry, cases[i].entry);
        if (n && cases[i].given.bytes >= 12)
            ck_assert_uint_eq(l[0].params[0], cases[i].given.device);
        ck_assert_int_ge(alive, fake->alive() - 1); /* a module that was loaded, no memory */
    }
    tcc_program_destroy(p);
}
END_TEST

START_TEST(without_memory_a_variant_runs_that_needs_none)
{
    tcc_program *p;
    int n;
    memcpy(dims, (int64_t[]){1, 3, 8, 1}, sizeof dims);
    ck_assert_int_eq(tcc_program_load(rt, ENTRIES, sizeof ENTRIES - 1, SPLIT_OR_NOT, &p), TCC_OK);
    const tcc_kernel *k = tcc_program_kernel(p, NULL);
    fake->reset(1);
    fake->make_fail("cuMemAllocFromPoolAsync", 2);
    ck_assert_int_eq(tcc_kernel_launch(k, dims, 4, args, 5, NULL), TCC_OK);
    ck_assert_str_eq(fake->launches(&n)[0].entry, "matmul__generic");
    ck_assert_int_eq(n, 1);
    ck_assert_str_eq(message, "");
    fake->reset(1);
    ck_assert_int_eq(tcc_kernel_launch(k, dims, 4, args, 5, NULL), TCC_OK);
    ck_assert_str_eq(fake->launches(&n)[0].entry, "matmul");
    tcc_program_destroy(p);
}
END_TEST

START_TEST(a_grid_knows_the_gpu)
{
    int n;
    fake->reset(3);
    dims[1] = 3000;
    tcc_program *p;
    ck_assert_int_eq(tcc_program_load(rt, ENTRIES, sizeof ENTRIES - 1,
                                      SAMPLE_WITH_VARIANT(SAMPLE_LAUNCH(
                                          "matmul", "", "1", "[\"min\",\"M\",{\"device\":\"sms\"}]",
                                          "\"block\":64,\"smem_bytes\":0,\"params\":[]")),
                                      &p),
                     TCC_OK);
    fake->reset(0);
    ck_assert_int_eq(tcc_kernel_launch(tcc_program_kernel(p, NULL), dims, 4, args, 5, NULL),
                     TCC_OK);
    const fake_launch *l = fake->launches(&n);
    ck_assert_int_eq(n, 1);
    ck_assert_uint_eq(l->grid[0], FAKE_SMS);
    tcc_program_destroy(p);
}
END_TEST

#define OF_CLUSTERS(grid, cluster, more)                                                           \
    SAMPLE_MODULE(SAMPLE_KERNEL(SAMPLE_ARGS, "{\"name\":\"v\",\"requires\":[],\"steps\":["             \
                                             "{\"launch\":\"matmul\",\"grid\":" grid ",\"block\":64,"    \
                                             "\"smem_bytes\":0,\"cluster\":" cluster more                \
                                             ",\"params\":[]}]}"))

START_TEST(clusters_that_take_several_tiles_are_all_resident)
{
    static const struct {
        const char *manifest;
        unsigned grid;
    } cases[] = {
        {OF_CLUSTERS("112", "4", ",\"fewer\":1"), 104}, /* GPCs of 18 and 14 have no place for four more */
        {OF_CLUSTERS("112", "4", ",\"fewer\":0"), 112}, {OF_CLUSTERS("112", "4", ""), 112},
        {OF_CLUSTERS("48", "4", ",\"fewer\":1"), 48},   {OF_CLUSTERS("111", "3", ",\"fewer\":1"), 108},
        {OF_CLUSTERS("114", "2", ",\"fewer\":1"), FAKE_SMS},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tcc_program *p;
        int n;
        fake->reset(0);
        ck_assert_int_eq(tcc_program_load(rt, ENTRIES, sizeof ENTRIES - 1, cases[i].manifest, &p), TCC_OK);
        ck_assert_int_eq(tcc_kernel_launch(tcc_program_kernel(p, NULL), dims, 4, args, 5, NULL), TCC_OK);
        ck_assert_uint_eq(fake->launches(&n)[0].grid[0], cases[i].grid);
        ck_assert_int_eq(n, 1);
        tcc_program_destroy(p);
    }
    tcc_program *p;
    fake->make_fail("cuOccupancyMaxActiveClusters", 999);
    ck_assert_int_eq(tcc_program_load(rt, ENTRIES, sizeof ENTRIES - 1, cases[0].manifest, &p), TCC_ERR_DRIVER);
    ck_assert_ptr_nonnull(strstr(message, "cuOccupancyMaxActiveClusters"));
    fake->make_fail(NULL, 0);
}
END_TEST

START_TEST(a_step_that_fails_ends_the_launch)
{
    static const struct {
        const char *symbol;
        int launched;
    } calls[] = {{"cuMemAllocFromPoolAsync", 0}, {"cuMemsetD8Async", 0}, {"cuLaunchKernel", 2}};
    int n;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fake->reset(3);
        fake->make_fail(calls[i].symbol, 700);
        ck_assert_int_eq(launch_split(NULL), TCC_ERR_DRIVER);
        fake->launches(&n);
        ck_assert_int_eq(n, calls[i].launched);
    }
    fake->reset(3);
    fake->make_fail("cuMemAllocFromPoolAsync", 2);
    ck_assert_int_eq(launch_split(NULL), TCC_ERR_MEMORY);
} /* nothing is left: teardown */
END_TEST

/* ---- errors of the driver --------------------------------------------------------------- */

START_TEST(a_failed_call_is_told_with_the_drivers_words)
{
    fake->make_fail("cuLaunchKernel", 700);
    ck_assert_int_eq(launch(NULL), TCC_ERR_DRIVER);
    ck_assert_str_eq(text, "matmul.tile: error: cuLaunchKernel: an illegal memory access was "
                           "encountered (CUDA_ERROR_ILLEGAL_ADDRESS, 700): matmul\n");
    fake->make_fail("cuTensorMapEncodeTiled", 1);
    args[0].device += 0x100000;
    ck_assert_int_eq(launch(NULL), TCC_ERR_DRIVER);
    ck_assert_str_eq(message, "cuTensorMapEncodeTiled: fake error (CUDA_ERROR_FAKE, 1): A");
}
END_TEST

static tcc_status load(const char *image, const char *manifest)
{
    tcc_program *p;
    tcc_status status = tcc_program_load(rt, image, strlen(image), manifest, &p);
    ck_assert((status == TCC_OK) == (p != NULL));
    tcc_program_destroy(p);
    return status;
}

/* As tcc writes it: entries with bodies, and comments between them. */
#define BODY(name) "\t// .globl\t" name "\n.visible .entry " name "(\n)\n{\n\tret;\n\n}\n"
#define PARTS \
    "// tcc-manifest 2\n//! " SAMPLE_MANIFEST "\n.version 8.0\n" BODY("matmul") "\n" BODY("matmul__generic")

static void load_parts(const char *ptx)
{
    tcc_program_destroy(prog);
    prog = NULL;
    ck_assert_int_eq(tcc_program_load(rt, ptx, strlen(ptx), NULL, &prog), TCC_OK);
}

START_TEST(an_entry_is_loaded_when_it_is_first_launched)
{
    const int before = fake->alive() - 1; /* the program of the setup */
    load_parts(PARTS "\t.file\t1 \"f\"\n");
    ck_assert_int_eq(fake->alive(), before);
    ck_assert_int_eq(launch(NULL), TCC_OK);
    ck_assert_int_eq(launch(NULL), TCC_OK);
    ck_assert_int_eq(fake->alive(), before + 1);
    args[0].device += 2;
    const tcc_kernel *k = tcc_program_kernel(prog, NULL);
    ck_assert_int_eq(tcc_kernel_prepare(k, dims, 4, args, 5), TCC_OK);
    ck_assert_int_eq(tcc_kernel_prepare(k, dims, 4, args, 5), TCC_OK);
    ck_assert_int_eq(fake->alive(), before + 2);
}
END_TEST

/* What is only asked about need not be anywhere. */
START_TEST(addresses_that_are_zero_are_aligned)
{
    const tcc_kernel *k = tcc_program_kernel(prog, NULL);
    tcc_arg zeros[5] = {{0}};
    zeros[3].number = args[3].number;
    int64_t cost = tcc_kernel_cost(k, dims, 4, args, 5);
    ck_assert_int_ge(cost, 0);
    ck_assert_int_eq(tcc_kernel_cost(k, dims, 4, zeros, 5), cost);
    ck_assert_int_eq(tcc_kernel_cost(k, dims, 3, zeros, 5), -1);
    ck_assert_int_eq(tcc_kernel_cost(NULL, dims, 4, zeros, 5), -1);
    ck_assert_str_eq(tcc_kernel_variant(k, dims, 4, zeros, 5), tcc_kernel_variant(k, dims, 4, args, 5));
    ck_assert_int_eq(tcc_kernel_prepare(k, dims, 4, zeros, 5), TCC_OK);
    ck_assert_int_eq(tcc_kernel_launch(k, dims, 4, zeros, 5, NULL), TCC_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(message, "is at address 0"));
}
END_TEST

START_TEST(what_cannot_be_loaded_fails_at_its_launch)
{
    load_parts(PARTS);
    fake->make_fail("cuModuleLoadDataEx", 2);
    ck_assert_int_eq(launch(NULL), TCC_ERR_MEMORY);
    fake->make_fail("none", 0);
    ck_assert_int_eq(launch(NULL), TCC_OK);
    const tcc_kernel *k = tcc_program_kernel(prog, NULL);
    ck_assert_int_eq(tcc_kernel_prepare(NULL, dims, 4, args, 5), TCC_ERR_ARGUMENT);
    ck_assert_int_eq(tcc_kernel_prepare(k, dims, 3, args, 5), TCC_ERR_ARGUMENT);
}
END_TEST

/* Entries with something of their own between them, and a manifest that names an entry which is not there, are
 * for the driver to judge. */
START_TEST(what_cannot_be_taken_apart_is_loaded_at_once)
{
    const int before = fake->alive() - 1;
    load_parts("// tcc-manifest 2\n//! " SAMPLE_MANIFEST "\n.version 8.0\n" BODY("matmul")
               ".global .b32 x;\n" BODY("matmul__generic"));
    ck_assert_int_eq(fake->alive(), before + 1);
}
END_TEST

START_TEST(bad_images_are_refused)
{
    ck_assert_int_eq(load("", NULL), TCC_ERR_SYNTAX);
    ck_assert_int_eq(load(ENTRIES, NULL), TCC_ERR_SYNTAX);
    ck_assert_int_eq(load(ENTRIES, "{}"), TCC_ERR_SYNTAX);
    ck_assert_int_eq(load(ENTRIES, SAMPLE_MANIFEST), TCC_OK);
    ck_assert_int_eq(load(".visible .entry matmul()", SAMPLE_MANIFEST), TCC_ERR_DRIVER);
    ck_assert_str_eq(message,
                     "cuModuleGetFunction: fake error (CUDA_ERROR_FAKE, 500): matmul__generic");
    ck_assert_int_eq(load(PTX "no such instruction", NULL), TCC_ERR_DRIVER);
    ck_assert_str_eq(message, "cuModuleLoadDataEx: fake error (CUDA_ERROR_FAKE, 218): "
                              "ptxas fatal : no such instruction");
    fake->make_fail("cuFuncSetAttribute", 1);
    ck_assert_int_eq(load(PTX, NULL), TCC_ERR_DRIVER);
}
END_TEST

#define FOR_TARGET(target)                                                                         \
    "{\"tcc\":\"0.1.0\",\"manifest\":2,\"target\":\"" target                                       \
    "\",\"file\":\"f\",\"device\":{\"sms\":132},\"kernels\":[]}"

START_TEST(programs_for_other_gpus_are_refused)
{
    fake->set_compute_capability(8, 0);
    ck_assert_int_eq(load(PTX, NULL), TCC_ERR_TARGET);
    ck_assert_str_eq(text, "matmul.tile: error: compiled for sm_90a, but this GPU is sm_80\n");
    fake->set_compute_capability(10, 0);
    ck_assert_int_eq(load(ENTRIES, FOR_TARGET("sm_90a")), TCC_ERR_TARGET);
    ck_assert_int_eq(load(ENTRIES, FOR_TARGET("sm_90")), TCC_OK);
    ck_assert_int_eq(load(ENTRIES, FOR_TARGET("gfx1100")), TCC_ERR_TARGET);
    ck_assert_str_eq(message, "compiled for gfx1100, but this GPU is sm_100");
    fake->make_fail("cuCtxGetDevice", 201);
    ck_assert_int_eq(load(PTX, NULL), TCC_ERR_DRIVER);
}
END_TEST

START_TEST(the_current_gpu_is_told)
{
    tcc_device *other;
    ck_assert_int_eq(tcc_runtime_current_device(rt), 0);
    tcc_device_close(dev);
    ck_assert_int_eq(tcc_runtime_current_device(rt), -1);
    ck_assert_int_eq(tcc_device_open(rt, 0, &dev), TCC_OK);
    ck_assert_int_eq(tcc_device_open(rt, 0, &other), TCC_OK);
    tcc_device_close(other);
    ck_assert_int_eq(tcc_runtime_current_device(rt), 0);
    fake->make_fail("cuCtxGetDevice", 201);
    ck_assert_int_eq(tcc_runtime_current_device(rt), -1);
    ck_assert_int_eq(tcc_runtime_current_device(NULL), -1);
}
END_TEST

/* The target with the most that a GPU runs; where tcc has none, what the GPU is. */
START_TEST(a_gpu_names_its_target)
{
    static const struct {
        int major, minor;
        const char *target;
    } gpus[] = {{9, 0, "sm_90a"}, {8, 0, "sm_80"}, {8, 9, "sm_89"}, {10, 0, "sm_100"},
                {10, 3, "sm_100"}, {11, 0, "sm_100"}, {12, 1, "sm_120"}, {7, 5, "sm_75"}, {7, 0, "sm_70"}, {6, 1, "sm_61"},
                {5, 0, "sm_50"}, {3, 5, "sm_35"}};
    ck_assert_str_eq(tcc_device_arch(dev), "sm_90a");
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
        tcc_device *other;
        fake->set_compute_capability(gpus[i].major, gpus[i].minor);
        ck_assert_int_eq(tcc_device_open(rt, 0, &other), TCC_OK);
        ck_assert_str_eq(tcc_device_arch(other), gpus[i].target);
        tcc_device_close(other);
    }
}
END_TEST

START_TEST(a_manifest_alone_describes)
{
    tcc_program *p;
    ck_assert_int_eq(tcc_program_describe("{}", on_diagnostic, NULL, &p), TCC_ERR_SYNTAX);
    ck_assert_ptr_null(p);
    ck_assert_int_eq(tcc_program_describe(SAMPLE_MANIFEST, on_diagnostic, NULL, &p), TCC_OK);
    const tcc_kernel *described = tcc_program_kernel(p, "matmul");
    ck_assert_uint_eq(tcc_kernel_arg_count(described), 5);
    ck_assert_str_eq(tcc_kernel_variant(described, dims, 4, args, 5), "matmul");
    ck_assert_int_eq(tcc_kernel_launch(described, dims, 4, args, 5, NULL), TCC_ERR_NO_DRIVER);
    ck_assert_str_eq(message, "kernel 'matmul' was described, but not loaded");
    tcc_program_destroy(p);
}
END_TEST

START_TEST(ptx_needs_no_terminator)
{
    char image[sizeof PTX + 16];
    tcc_program *p;
    memset(image, 'x', sizeof image);
    memcpy(image, PTX, sizeof PTX - 1);
    ck_assert_int_eq(tcc_program_load(rt, image, sizeof PTX - 1, NULL, &p), TCC_OK);
    ck_assert_str_eq(tcc_program_manifest(p), SAMPLE_MANIFEST);
    tcc_program_destroy(p);
}
END_TEST

START_TEST(loading_survives_every_allocation_that_fails)
{
    check_loading_without_memory(rt, PTX, sizeof PTX - 1);
}
END_TEST

START_TEST(no_driver_is_told)
{
    static const char *const symbols[] = {"cuInit", "cuDeviceGetCount", "no device"};
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        tcc_runtime *none;
        message[0] = 0;
        fake->make_fail(symbols[i], 100);
        ck_assert_int_eq(tcc_runtime_create(&none, on_diagnostic, NULL), TCC_ERR_NO_DRIVER);
        ck_assert_ptr_null(none);
        ck_assert_str_ne(message, "");
    }
}
END_TEST

/* ---- queries ---------------------------------------------------------------------------- */

START_TEST(a_kernel_says_what_it_takes)
{
    const tcc_kernel *k = tcc_program_kernel(prog, "matmul");
    ck_assert_ptr_null(tcc_program_kernel(prog, "other"));
    ck_assert_str_eq(tcc_kernel_name(k), "matmul");
    ck_assert_uint_eq(tcc_kernel_dim_count(k), 4);
    ck_assert_str_eq(tcc_kernel_dim_name(k, 3), "N");
    ck_assert_ptr_null(tcc_kernel_dim_name(k, 4));
    ck_assert_uint_eq(tcc_kernel_arg_count(k), 5);
    ck_assert_str_eq(tcc_kernel_arg(k, 1)->name, "W");
    ck_assert_str_eq(tcc_kernel_arg(k, 2)->type, "f32");
    ck_assert_ptr_null(tcc_kernel_arg(k, 5));
}
END_TEST

/* ---- devices ---------------------------------------------------------------------------- */

START_TEST(device_memory_is_written_filled_and_read)
{
    check_memory(dev);
    ck_assert_str_eq(tcc_device_name(dev), "fake GPU 0");
    ck_assert_int_eq(tcc_device_driver_version(dev), 13000);
}
END_TEST

START_TEST(a_device_that_does_not_open_is_told)
{
    static const char *const symbols[] = {"cuDeviceGet", "cuDevicePrimaryCtxRetain",
                                          "cuCtxSetCurrent"};
    tcc_device *none;
    ck_assert_int_eq(tcc_device_open(rt, 1, &none), TCC_ERR_DRIVER);
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        fake->make_fail(symbols[i], 2);
        ck_assert_int_eq(tcc_device_open(rt, 0, &none), TCC_ERR_MEMORY);
        ck_assert_ptr_null(none);
    }
}
END_TEST

START_TEST(timing_returns_what_fails)
{
    static const char *const symbols[] = {"cuEventCreate", "cuEventRecord", "cuEventSynchronize",
                                          "cuEventElapsedTime"};
    check_timing(dev, symbols, sizeof symbols / sizeof symbols[0], fake->make_fail);
}
END_TEST

Suite *SUITE(void)
{
    fake = load_fake(FAKE_CUDA, "fake_cuda");
    Suite *suite = suite_create("launch");
    TCase *tcase = tcase_create("launch");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_launch_gets_grid_block_and_shared_memory);
    tcase_add_test(tcase, parameters_are_packed_in_order);
    tcase_add_test(tcase, small_shared_memory_is_not_asked_for);
    tcase_add_test(tcase, tensor_maps_are_encoded_once_for_equal_arguments);
    tcase_add_test(tcase, a_workspace_is_the_callers_or_none);
    tcase_add_test(tcase, a_workspace_is_filled_if_that_is_wanted);
    tcase_add_test(tcase, without_memory_a_variant_runs_that_needs_none);
    tcase_add_test(tcase, steps_run_one_after_another);
    tcase_add_test(tcase, a_step_without_tiles_is_not_launched);
    tcase_add_test(tcase, a_step_overlaps_with_the_launch_in_front_of_it);
    tcase_add_test(tcase, a_grid_knows_the_gpu);
    tcase_add_test(tcase, clusters_that_take_several_tiles_are_all_resident);
    tcase_add_test(tcase, a_step_that_fails_ends_the_launch);
    tcase_add_test(tcase, an_empty_output_launches_nothing);
    tcase_add_test(tcase, the_variant_is_told_without_launching);
    tcase_add_test(tcase, bad_arguments_launch_nothing);
    tcase_add_test(tcase, threads_may_share_a_program);
    tcase_add_test(tcase, a_failed_call_is_told_with_the_drivers_words);
    tcase_add_test(tcase, an_entry_is_loaded_when_it_is_first_launched);
    tcase_add_test(tcase, addresses_that_are_zero_are_aligned);
    tcase_add_test(tcase, what_cannot_be_loaded_fails_at_its_launch);
    tcase_add_test(tcase, what_cannot_be_taken_apart_is_loaded_at_once);
    tcase_add_test(tcase, bad_images_are_refused);
    tcase_add_test(tcase, programs_for_other_gpus_are_refused);
    tcase_add_test(tcase, the_current_gpu_is_told);
    tcase_add_test(tcase, a_gpu_names_its_target);
    tcase_add_test(tcase, a_manifest_alone_describes);
    tcase_add_test(tcase, ptx_needs_no_terminator);
    tcase_add_test(tcase, loading_survives_every_allocation_that_fails);
    tcase_add_test(tcase, no_driver_is_told);
    tcase_add_test(tcase, a_kernel_says_what_it_takes);
    tcase_add_test(tcase, device_memory_is_written_filled_and_read);
    tcase_add_test(tcase, a_device_that_does_not_open_is_told);
    tcase_add_test(tcase, timing_returns_what_fails);
    suite_add_tcase(suite, tcase);
    return suite;
}

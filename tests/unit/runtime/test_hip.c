/* Loading, launching and the device layer against fake_hip, of every version.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/runtime.h"

#include <tcc/tcc_jit.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/code_object.h"
#include "tests/unit/runtime/fake.h"
#include "tests/unit/runtime/fake_hip.h"
#include "tests/unit/runtime/gpu.h"
#include "tests/unit/suite.h"

enum { M = 300, K = 128, N = 200, IMAGE_BYTES = 1 << 16 };

static int hip_major;
static const fake_hip_control *fake;
static tcc_runtime *rt;
static tcc_device *dev;
static tcc_program *prog;
static unsigned char image[IMAGE_BYTES];
static size_t image_size;
static char manifest[8192];

/* M K N and A B alpha C, as the sample takes them. */
static int64_t dims[3];
static tcc_arg args[4];

static size_t read_file(const char *path, void *out, size_t size)
{
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(out, 1, size - 1, f);
    fclose(f);
    ((char *)out)[n] = 0;
    return n;
}

/* The sample's code object with a change of hsaco.py's. */
static void read_image(const char *change)
{
    char path[512];
    snprintf(path, sizeof path, IMAGE_DIR "/%s.hsaco", change);
    image_size = read_file(path, image, sizeof image);
}

static void load_version(int major)
{
    char path[512];
    snprintf(path, sizeof path, FAKE_HIP_DIR "%d/libamdhip64.so.%d", major, major);
    fake = load_fake(path, "fake_hip");
    hip_major = major;
}

static void load_hip5(void)
{
    load_version(5);
}

static void load_hip6(void)
{
    load_version(6);
}

static void load_hip7(void)
{
    load_version(7);
}

static void setup(void)
{
    fake->reset();
    message[0] = 0;
    read_image("note=1");
    read_file(TCC_TEST_DIR "/runtime/sample_amd.json", manifest, sizeof manifest);
    ck_assert_int_eq(tcc_runtime_create_for(TCC_VENDOR_AMD, &rt, on_diagnostic, NULL), TCC_OK);
    ck_assert_int_eq(tcc_device_open(rt, 0, &dev), TCC_OK);
    ck_assert_int_eq(tcc_program_load(rt, image, image_size, NULL, &prog), TCC_OK);
    memcpy(dims, (int64_t[]){M, K, N}, sizeof dims);
    const size_t bytes[] = {M * K * 2, K * N * 2, 0, M * N * 2};
    for (int i = 0; i < 4; i++)
        if (bytes[i])
            ck_assert_int_eq(tcc_device_alloc(dev, bytes[i], &args[i].device), TCC_OK);
    args[2].number = 0.1;
}

static void teardown(void)
{
    for (int i = 0; i < 4; i++)
        if (i != 2)
            tcc_device_free(dev, args[i].device);
    tcc_program_destroy(prog);
    tcc_device_close(dev);
    tcc_runtime_destroy(rt);
    ck_assert_int_eq(fake->alive(), 0);
}

static tcc_status launch(void *stream)
{
    return tcc_kernel_launch(tcc_program_kernel(prog, NULL), dims, 3, args, 4, stream);
}

static const fake_hip_launch *launched(void)
{
    int n;
    const fake_hip_launch *l = fake->launches(&n);
    ck_assert_int_eq(n, 1);
    return l;
}

static uint64_t param(const fake_hip_launch *l, const char *name)
{
    for (size_t i = 0; i < l->kernel.n_args; i++)
        if (!strcmp(l->kernel.args[i].name, name))
            return l->params[i];
    ck_abort_msg("no parameter %s", name);
}

/* ---- finding ---------------------------------------------------------------------------- */

START_TEST(a_source_is_compiled_for_the_gpu)
{
    static const char source[] = "kernel p(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])"
                                 "{ C[m, n] = sum(k) A[m, k] * B[k, n]; }";
    const tcc_jit_options nothing_kept = {.struct_size = sizeof nothing_kept, .cache_dir = ""};
    const tcc_compile_options one_tile = {.struct_size = sizeof one_tile, .tiles = 1};
    tcc_jit *jit;
    const tcc_kernel *k;
    ck_assert_int_eq(tcc_jit_create(rt, &nothing_kept, &jit), TCC_OK);
    ck_assert_str_eq(tcc_jit_target(jit), "gfx1100");
    ck_assert_int_eq(tcc_jit_kernel(jit, source, &one_tile, "p", &k), TCC_OK);
    ck_assert_str_eq(tcc_kernel_name(k), "p");
    tcc_jit_destroy(jit);
}
END_TEST

START_TEST(every_version_is_found_and_read)
{
    static const int versions[] = {[5] = 5070, [6] = 6020, [7] = 7000};
    char name[32];
    snprintf(name, sizeof name, "libamdhip64.so.%d", hip_major);
    ck_assert_str_eq(rt->hip.name, name);
    ck_assert_str_eq(rt->hip.get_properties_name,
                     hip_major == 5 ? "hipGetDeviceProperties" : "hipGetDevicePropertiesR0600");
    ck_assert_str_eq(tcc_device_name(dev), "fake Radeon 0");
    ck_assert_str_eq(tcc_device_arch(dev), "gfx1100");
    ck_assert_int_eq(tcc_device_driver_version(dev), versions[hip_major]);
    ck_assert_int_eq(tcc_runtime_device_count(rt), 1);
}
END_TEST

START_TEST(no_driver_is_told)
{
    static const char *const symbols[] = {"hipInit", "hipGetDeviceCount"};
    tcc_runtime *none;
    for (size_t i = 0; i < 2; i++) {
        message[0] = 0;
        fake->make_fail(symbols[i], 100);
        ck_assert_int_eq(tcc_runtime_create_for(TCC_VENDOR_AMD, &none, on_diagnostic, NULL),
                         TCC_ERR_NO_DRIVER);
        ck_assert_ptr_null(none);
        ck_assert_ptr_nonnull(strstr(message, "no ROCm-capable device is detected"));
    }
    fake->make_fail(NULL, 0);
    ck_assert_int_eq(tcc_runtime_create_for((tcc_vendor)2, &none, on_diagnostic, NULL),
                     TCC_ERR_ARGUMENT);
    ck_assert_ptr_null(none);
}
END_TEST

/* ---- devices ---------------------------------------------------------------------------- */

START_TEST(a_device_is_chosen_and_given_back)
{
    tcc_runtime *two;
    tcc_device *second, *none;
    tcc_program *p;
    fake->set_archs("gfx1100:sramecc-:xnack-,gfx1201:sramecc-:xnack-");
    ck_assert_int_eq(tcc_runtime_create_for(TCC_VENDOR_AMD, &two, on_diagnostic, NULL), TCC_OK);
    ck_assert_int_eq(tcc_runtime_device_count(two), 2);
    ck_assert_int_eq(tcc_device_open(two, 1, &second), TCC_OK);
    ck_assert_str_eq(tcc_device_name(second), "fake Radeon 1");
    ck_assert_str_eq(tcc_device_arch(second), "gfx1201");
    ck_assert_int_eq(tcc_runtime_current_device(two), 1);
    ck_assert_int_eq(tcc_program_load(two, image, image_size, NULL, &p), TCC_ERR_TARGET);
    ck_assert_str_eq(text, "matmul.tile: error: compiled for gfx1100, but this GPU is gfx1201\n");
    tcc_device_close(second);
    ck_assert_int_eq(tcc_runtime_current_device(two), 0);
    ck_assert_int_eq(tcc_device_open(two, 2, &none), TCC_ERR_DRIVER);
    ck_assert_ptr_null(none);
    ck_assert_str_eq(text, "<runtime>: error: hipDeviceGetName: invalid device ordinal "
                           "(hipErrorInvalidDevice, 101)\n");
    tcc_runtime_destroy(two);
}
END_TEST

START_TEST(a_device_that_does_not_open_is_told)
{
    const char *const symbols[] = {"hipDeviceGetName", "hipRuntimeGetVersion", "hipGetDevice",
                                   "hipSetDevice", rt->hip.get_properties_name};
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        tcc_device *none;
        fake->make_fail(symbols[i], 2);
        ck_assert_int_eq(tcc_device_open(rt, 0, &none), TCC_ERR_MEMORY);
        ck_assert_ptr_null(none);
        ck_assert_int_eq(strncmp(message, symbols[i], strlen(symbols[i])), 0);
    }
}
END_TEST

START_TEST(device_memory_is_written_filled_and_read)
{
    check_memory(dev);
}
END_TEST

START_TEST(accesses_outside_an_allocation_are_told)
{
    uint64_t p;
    char got[8];
    ck_assert_int_eq(tcc_device_alloc(dev, 8, &p), TCC_OK);
    ck_assert_int_eq(tcc_device_read(dev, got, p + 4, 5), TCC_ERR_DRIVER);
    ck_assert_str_eq(message, "hipMemcpyDtoH: invalid argument (hipErrorInvalidValue, 1)");
    ck_assert_int_eq(tcc_device_write(dev, p - 1, "abc", 3), TCC_ERR_DRIVER);
    ck_assert_int_eq(tcc_device_fill(dev, p, 0, 9), TCC_ERR_DRIVER);
    tcc_device_free(dev, p);
    ck_assert_int_eq(tcc_device_read(dev, got, p, 1), TCC_ERR_DRIVER);
    fake->make_fail("hipMalloc", 2);
    ck_assert_int_eq(tcc_device_alloc(dev, 8, &p), TCC_ERR_MEMORY);
    ck_assert_uint_eq(p, 0);
    ck_assert_str_eq(message, "hipMalloc: out of memory (hipErrorOutOfMemory, 2)");
}
END_TEST

/* ---- loading ---------------------------------------------------------------------------- */

static tcc_status load(const char *json)
{
    tcc_program *p;
    tcc_status status = tcc_program_load(rt, image, image_size, json, &p);
    ck_assert((status == TCC_OK) == (p != NULL));
    tcc_program_destroy(p);
    return status;
}

START_TEST(the_manifest_is_in_the_note_or_given)
{
    ck_assert_str_eq(tcc_program_manifest(prog), manifest);
    ck_assert_int_eq(load(manifest), TCC_OK);
    read_image("note=0");
    ck_assert_int_eq(load(manifest), TCC_OK);
    ck_assert_int_eq(load(NULL), TCC_ERR_SYNTAX);
    ck_assert_str_eq(text, "<runtime>: error: no manifest in this image: it has no note from tcc, and none was "
                           "given\n");
}
END_TEST

START_TEST(programs_for_other_gpus_are_refused)
{
    fake->set_archs("gfx1101");
    ck_assert_int_eq(load(NULL), TCC_ERR_TARGET);
    ck_assert_str_eq(message, "compiled for gfx1100, but this GPU is gfx1101");
    fake->set_archs("gfx110");
    ck_assert_int_eq(load(NULL), TCC_ERR_TARGET);
    fake->set_archs("gfx1100:sramecc-:xnack-");
    ck_assert_int_eq(load(NULL), TCC_OK);
    read_image("arch=gfx1200");
    ck_assert_int_eq(load(NULL), TCC_ERR_DRIVER);
    ck_assert_str_eq(text,
                     "matmul.tile: error: hipModuleLoadData: no kernel image is available for "
                     "execution on the device (hipErrorNoBinaryForGpu, 209)\n");
}
END_TEST

/* Has the sample's manifest with `from` replaced by `to` of the same length. */
static const char *with(const char *from, const char *to)
{
    char *at = strstr(manifest, from);
    ck_assert_ptr_nonnull(at);
    ck_assert_uint_eq(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    return manifest;
}

START_TEST(a_manifest_of_another_code_object_is_refused)
{
    ck_assert_int_eq(load(with("24576", "24592")), TCC_ERR_SYNTAX);
    ck_assert_str_eq(text,
                     "matmul.tile: error: the manifest is not this code object's: 'matmul' has "
                     "24576 bytes of shared memory, and 24592 in the manifest\n");
    with("24592", "24576");
    ck_assert_int_eq(load(with("{\"pointer\":\"C\"}", "{\"dim\":    \"N\"}")), TCC_ERR_SYNTAX);
    ck_assert_str_eq(message, "the manifest is not this code object's: 'matmul' has 48 bytes of "
                              "parameters, and 40 in the manifest");
    ck_assert_int_eq(load(with("{\"dim\":    \"N\"}", "{\"pointer\":\"C\"}")), TCC_OK);
    ck_assert_int_eq(load(with("\"launch\":\"matmul__generic", "\"launch\":\"matmul__another")),
                     TCC_ERR_DRIVER);
    ck_assert_str_eq(message,
                     "hipModuleGetFunction: named symbol not found (hipErrorNotFound, 500): "
                     "matmul__another");
    read_image("kernarg=40");
    ck_assert_int_eq(load(NULL), TCC_ERR_SYNTAX);
}
END_TEST

START_TEST(what_is_no_code_object_is_refused)
{
    read_image("type=1");
    ck_assert_int_eq(load(NULL), TCC_ERR_SYNTAX);
    ck_assert_str_eq(message, "bad code object: not a linked ELF file for AMD's GPUs");
    image_size = (size_t)snprintf((char *)image, sizeof image, ".version 8.0\n");
    ck_assert_int_eq(load(manifest), TCC_ERR_SYNTAX);
    ck_assert_str_eq(message, "bad code object: no ELF file");
    ck_assert_int_eq(load(NULL), TCC_ERR_SYNTAX);
    image_size = 0;
    ck_assert_int_eq(load(manifest), TCC_ERR_SYNTAX);
}
END_TEST

/* A copy of the sample's first n bytes, at an odd address and with nothing behind it. */
static unsigned char *copy_image(size_t n)
{
    unsigned char *copy = malloc(n + 1);
    ck_assert_ptr_nonnull(copy);
    memcpy(copy + 1, image, n);
    return copy;
}

START_TEST(code_objects_that_are_cut_off_are_refused)
{
    for (size_t n = 0; n < image_size; n++) {
        unsigned char *copy = copy_image(n);
        tcc_program *p;
        ck_assert_int_eq(tcc_program_load(rt, copy + 1, n, manifest, &p), TCC_ERR_SYNTAX);
        ck_assert_int_eq(tcc_program_load(rt, copy + 1, n, NULL, &p), TCC_ERR_SYNTAX);
        free(copy);
    }
}
END_TEST

/* Whatever they come to, it is not a crash, and what is loaded is unloaded. */
START_TEST(damaged_code_objects_do_no_harm)
{
    static const unsigned char damage[] = {0x01, 0x10, 0x80, 0xff};
    int n_refused = 0;
    for (size_t i = 0; i < image_size; i++)
        for (size_t j = 0; j < sizeof damage; j++) {
            unsigned char *copy = copy_image(image_size);
            tcc_program *p;
            copy[1 + i] ^= damage[j];
            n_refused += tcc_program_load(rt, copy + 1, image_size, NULL, &p) != TCC_OK;
            tcc_program_destroy(p);
            free(copy);
        }
    ck_assert_int_gt(n_refused, 1000);
}
END_TEST

START_TEST(the_image_may_go_once_it_is_loaded)
{
    memset(image, 0, sizeof image);
    ck_assert_int_eq(launch(NULL), TCC_OK);
    ck_assert_str_eq(launched()->kernel.name, "matmul");
}
END_TEST

START_TEST(loading_survives_every_allocation_that_fails)
{
    check_loading_without_memory(rt, image, image_size);
}
END_TEST

/* ---- launching -------------------------------------------------------------------------- */

START_TEST(a_launch_gets_grid_block_and_parameters)
{
    ck_assert_int_eq(launch(fake->stream()), TCC_OK);
    const fake_hip_launch *l = launched();
    ck_assert_str_eq(l->kernel.name, "matmul");
    ck_assert_uint_eq(l->grid[0], 6);
    ck_assert_uint_eq(l->grid[1], 1);
    ck_assert_uint_eq(l->grid[2], 1);
    ck_assert_uint_eq(l->block[0], 256);
    ck_assert_uint_eq(l->block[1], 1);
    ck_assert_uint_eq(l->block[2], 1);
    ck_assert_uint_eq(l->smem_bytes, 0); /* the code object's 24576 are static */
    ck_assert_ptr_eq(l->stream, fake->stream());
    ck_assert_uint_eq(l->kernel.n_args, 7);
    ck_assert_uint_eq(param(l, "M"), M);
    ck_assert_uint_eq(param(l, "N"), N);
    ck_assert_uint_eq(param(l, "K"), K);
    ck_assert_uint_eq(param(l, "A"), args[0].device);
    ck_assert_uint_eq(param(l, "B"), args[1].device);
    ck_assert_uint_eq(param(l, "C"), args[3].device);
    float alpha;
    uint64_t bits = param(l, "alpha");
    memcpy(&alpha, &bits, sizeof alpha);
    ck_assert(alpha == 0x1.998p-4f); /* 0.1 as f16 */
}
END_TEST

START_TEST(the_first_valid_variant_is_launched)
{
    uint64_t a = args[0].device, b = args[1].device;
    dims[1] = 0;
    args[0].device = args[1].device = 0;
    ck_assert_int_eq(launch(NULL), TCC_OK);
    args[0].device = a;
    args[1].device = b;
    ck_assert_str_eq(launched()->kernel.name, "matmul__generic");
    ck_assert_uint_eq(launched()->grid[0], 20);
    ck_assert_uint_eq(launched()->block[0], 128);
    ck_assert_int_eq(tcc_device_sync(dev), TCC_OK);
}
END_TEST

/* Memory for steps is taken and given back in the stream's order, which old versions cannot. */
START_TEST(a_workspace_lasts_for_one_launch)
{
    tcc_program *p;
    with("\"workspace_bytes\":0", "\"workspace_bytes\":8");
    ck_assert_int_eq(tcc_program_load(rt, image, image_size, manifest, &p), TCC_OK);
    tcc_status status =
        tcc_kernel_launch(tcc_program_kernel(p, NULL), dims, 3, args, 4, fake->stream());
    ck_assert_int_eq(status, TCC_OK);
    if (hip_major < 6) { /* and no variant without one is left */
        char expected[160];
        ck_assert_str_eq(launched()->kernel.name, "matmul__generic");
        snprintf(
            expected, sizeof expected,
            "a kernel needs memory for its steps, and %s lacks hipMallocAsync: HIP 5.2 or later "
            "is needed",
            rt->hip.name);
        tcc_program_destroy(p);
        with("\"workspace_bytes\":0", "\"workspace_bytes\":8");
        ck_assert_int_eq(tcc_program_load(rt, image, image_size, manifest, &p), TCC_OK);
        status = tcc_kernel_launch(tcc_program_kernel(p, NULL), dims, 3, args, 4, fake->stream());
        ck_assert_int_eq(status, TCC_ERR_DRIVER);
        ck_assert_str_eq(message, expected);
    } else {
        ck_assert_ptr_nonnull(
            strstr(fake->log(), "hipMallocAsync hipModuleLaunchKernel hipFreeAsync "));
    }
    tcc_program_destroy(p);
}
END_TEST

static void *adopt(void *arg)
{
    const tcc_current *other = arg;
    tcc_status status = rt->driver->adopt_current(rt, *other);
    return !status && tcc_runtime_current_device(rt) == other->device ? arg : NULL;
}

/* A thread of the runtime's own may load code while others capture, where HIP can tell them apart. */
START_TEST(a_thread_adopts_what_is_current)
{
    tcc_current now;
    pthread_t thread;
    void *adopted;
    ck_assert_int_eq(rt->driver->note_current(rt, &now), TCC_OK);
    ck_assert_int_eq(now.device, 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, adopt, &now), 0);
    pthread_join(thread, &adopted);
    ck_assert_ptr_nonnull(adopted);
    ck_assert(!strstr(fake->log(), "hipThreadExchangeStreamCaptureMode") == (hip_major < 6));
    now.device = 99;
    ck_assert_ptr_null(adopt(&now));
}
END_TEST

/* HIP counts a grid's threads in 32 bits. */
START_TEST(more_threads_than_hip_counts_are_no_valid_launch)
{
    const tcc_kernel *k = tcc_program_kernel(prog, NULL);
    const int64_t m = 1 << 30;
    ck_assert_str_eq(tcc_kernel_variant(k, (int64_t[]){m, 8, 128}, 3, args, 4), "matmul");
    ck_assert_ptr_null(tcc_kernel_variant(k, (int64_t[]){m, 8, 256}, 3, args, 4));
    ck_assert_str_eq(tcc_kernel_variant(k, (int64_t[]){m, 7, 64}, 3, args, 4), "matmul__generic");
    ck_assert_ptr_null(tcc_kernel_variant(k, (int64_t[]){m, 7, 128}, 3, args, 4));
}
END_TEST

static void negate(const fake_hip_launch *l, void *user)
{
    ck_assert_str_eq(l->kernel.args[1].name, "A");
    ck_assert_str_eq(l->kernel.args[4].name, "C");
    for (int i = 0; i < 16; i++)
        ((unsigned char *)l->buffers[4])[i] = (unsigned char)~((unsigned char *)l->buffers[1])[i];
    ++*(int *)user;
}

START_TEST(a_kernel_works_on_device_memory)
{
    int runs = 0;
    unsigned char got[16];
    fake->set_kernel(negate, &runs);
    ck_assert_int_eq(tcc_device_write(dev, args[0].device, "0123456789abcdef", 16), TCC_OK);
    ck_assert_int_eq(launch(NULL), TCC_OK);
    ck_assert_int_eq(runs, 1);
    ck_assert_int_eq(tcc_device_read(dev, got, args[3].device, 16), TCC_OK);
    for (int i = 0; i < 16; i++)
        ck_assert_uint_eq(got[i], (unsigned char)~"0123456789abcdef"[i]);
}
END_TEST

START_TEST(an_empty_output_launches_nothing)
{
    int n;
    dims[0] = 0;
    ck_assert_int_eq(launch(NULL), TCC_OK);
    fake->launches(&n);
    ck_assert_int_eq(n, 0);
}
END_TEST

START_TEST(a_failed_call_is_told_with_the_drivers_words)
{
    int no_stream;
    fake->make_fail("hipModuleLaunchKernel", 700);
    ck_assert_int_eq(launch(NULL), TCC_ERR_DRIVER);
    ck_assert_str_eq(text,
                     "matmul.tile: error: hipModuleLaunchKernel: an illegal memory access was "
                     "encountered (hipErrorIllegalAddress, 700): matmul\n");
    fake->make_fail(NULL, 0);
    ck_assert_int_eq(launch(&no_stream), TCC_ERR_DRIVER);
    ck_assert_str_eq(message, "hipModuleLaunchKernel: invalid argument (hipErrorInvalidValue, 1): "
                              "matmul");
    fake->make_fail("hipDeviceSynchronize", 12345);
    ck_assert_int_eq(tcc_device_sync(dev), TCC_ERR_DRIVER);
    ck_assert_str_eq(message, "hipDeviceSynchronize: unknown error (hipErrorUnknown, 12345)");
}
END_TEST

START_TEST(a_fault_on_the_gpu_is_told_by_the_next_wait)
{
    uint64_t a = args[0].device;
    args[0].device += 1 << 20;
    ck_assert_int_eq(launch(NULL), TCC_OK);
    args[0].device = a;
    ck_assert_int_eq(tcc_device_sync(dev), TCC_ERR_DRIVER);
    ck_assert_str_eq(message, "hipDeviceSynchronize: an illegal memory access was encountered "
                              "(hipErrorIllegalAddress, 700)");
    fake->reset(); /* a GPU that is lost frees nothing */
    rt->hip.hipInit(0);
}
END_TEST

/* ---- timing ----------------------------------------------------------------------------- */

static tcc_status enqueue(void *user)
{
    (void)user;
    return launch(NULL);
}

START_TEST(a_launch_is_timed_between_two_events)
{
    float ms = -1;
    const char *before = fake->log();
    size_t len = strlen(before);
    ck_assert_int_eq(tcc_device_time(dev, enqueue, NULL, &ms), TCC_OK);
    ck_assert(ms >= 0);
    ck_assert_str_eq(fake->log() + len,
                     "hipEventCreateWithFlags hipEventCreateWithFlags hipEventRecord "
                     "hipModuleLaunchKernel hipEventRecord hipEventSynchronize hipEventElapsedTime "
                     "hipEventDestroy hipEventDestroy ");
}
END_TEST

START_TEST(timing_returns_what_fails)
{
    static const char *const symbols[] = {"hipEventCreateWithFlags", "hipEventRecord",
                                          "hipEventSynchronize", "hipEventElapsedTime"};
    check_timing(dev, symbols, sizeof symbols / sizeof symbols[0], fake->make_fail);
    fake->make_fail(NULL, 0);
}
END_TEST

/* ---- the fake itself -------------------------------------------------------------------- */

START_TEST(the_fake_refuses_wrong_orders)
{
    const tcc_hip *hip = &rt->hip;
    hipModule_t module;
    hipFunction_t function;
    hipEvent_t first, second;
    float ms;
    void *address, *params[7] = {0};
    ck_assert_int_eq(hip->hipModuleLoadData(&module, image), hipSuccess);
    ck_assert_int_eq(hip->hipModuleGetFunction(&function, module, "matmul"), hipSuccess);
    ck_assert_int_eq(hip->hipModuleUnload(module), hipSuccess);
    ck_assert_int_eq(hip->hipModuleUnload(module), hipErrorNotFound);
    ck_assert_int_eq(hip->hipModuleGetFunction(&function, module, "matmul"), hipErrorInvalidHandle);
    ck_assert_int_eq(
        hip->hipModuleLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL),
        hipErrorInvalidHandle);
    ck_assert_int_eq(hip->hipModuleLaunchKernel(NULL, 1, 1, 1, 256, 1, 1, 0, NULL, params, NULL),
                     hipErrorInvalidHandle);

    ck_assert_int_eq(hip->hipEventCreateWithFlags(&first, 0), hipSuccess);
    ck_assert_int_eq(hip->hipEventCreateWithFlags(&second, 0), hipSuccess);
    ck_assert_int_eq(hip->hipEventSynchronize(first), hipErrorInvalidHandle);
    ck_assert_int_eq(hip->hipEventElapsedTime(&ms, first, second), hipErrorInvalidHandle);
    ck_assert_int_eq(hip->hipEventRecord(second, NULL), hipSuccess);
    ck_assert_int_eq(hip->hipEventRecord(first, NULL), hipSuccess);
    ck_assert_int_eq(hip->hipEventElapsedTime(&ms, second, first), hipErrorNotReady);
    ck_assert_int_eq(hip->hipEventSynchronize(first), hipSuccess);
    ck_assert_int_eq(hip->hipEventElapsedTime(&ms, first, second), hipErrorIllegalState);
    ck_assert_int_eq(hip->hipEventElapsedTime(&ms, second, first), hipSuccess);
    ck_assert_int_eq(hip->hipEventDestroy(first), hipSuccess);
    ck_assert_int_eq(hip->hipEventDestroy(first), hipErrorInvalidHandle);
    ck_assert_int_eq(hip->hipEventDestroy(second), hipSuccess);

    ck_assert_int_eq(hip->hipMalloc(&address, 16), hipSuccess);
    ck_assert_int_eq(hip->hipFree((char *)address + 1), hipErrorInvalidValue);
    ck_assert_int_eq(hip->hipFree(address), hipSuccess);
    ck_assert_int_eq(hip->hipFree(address), hipErrorInvalidValue);
    ck_assert_int_eq(hip->hipSetDevice(1), hipErrorInvalidDevice);
    fake->reset();
    ck_assert_int_eq(hip->hipMalloc(&address, 16), hipErrorNotInitialized);
    ck_assert_int_eq(hip->hipInit(0), hipSuccess);
}
END_TEST

START_TEST(the_fake_refuses_wrong_sizes)
{
    const tcc_hip *hip = &rt->hip;
    hipFunction_t f = tcc_program_kernel(prog, NULL)->functions[0][0].handle;
    void *params[7] = {0};
    const struct {
        unsigned grid, grid_y, block, block_y, smem;
        void **params;
        hipError_t error;
    } launches[] = {{0, 1, 256, 1, 0, params, hipErrorInvalidConfiguration},
                    {1, 0, 256, 1, 0, params, hipErrorInvalidConfiguration},
                    {1, 1, 0, 1, 0, params, hipErrorInvalidConfiguration},
                    {1, 1, 256, 0, 0, params, hipErrorInvalidConfiguration},
                    {1 << 24, 1, 256, 1, 0, params, hipErrorInvalidConfiguration},
                    {1, 1, 2048, 1, 0, params, hipErrorInvalidValue},
                    {1, 1, 512, 1, 0, params, hipErrorLaunchFailure},
                    {1, 1, 128, 1, 0, params, hipErrorLaunchFailure},
                    {1, 1, 128, 2, 0, params, hipErrorLaunchFailure},
                    {1, 1, 128, 4, 0, params, hipErrorLaunchFailure},
                    {1, 1, 256, 1, 65536 - 24576 + 1, params, hipErrorInvalidValue},
                    {1, 1, 256, 1, 0, NULL, hipErrorInvalidValue}};
    for (size_t i = 0; i < sizeof launches / sizeof launches[0]; i++)
        ck_assert_int_eq(hip->hipModuleLaunchKernel(f, launches[i].grid, launches[i].grid_y, 1,
                                                    launches[i].block, launches[i].block_y, 1,
                                                    launches[i].smem, NULL, launches[i].params,
                                                    NULL),
                         launches[i].error);
    ck_assert_int_eq(hip->hipModuleLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, params, params),
                     hipErrorInvalidValue);
}
END_TEST

/* ----------------------------------------------------------------------------------------- */

/* The tests with a version of HIP, which `fixture` loads. */
static void add_version(Suite *suite, const char *name, SFun fixture)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, fixture, NULL);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_source_is_compiled_for_the_gpu);
    tcase_add_test(tcase, every_version_is_found_and_read);
    tcase_add_test(tcase, no_driver_is_told);
    tcase_add_test(tcase, a_device_is_chosen_and_given_back);
    tcase_add_test(tcase, a_device_that_does_not_open_is_told);
    tcase_add_test(tcase, device_memory_is_written_filled_and_read);
    tcase_add_test(tcase, accesses_outside_an_allocation_are_told);
    tcase_add_test(tcase, the_manifest_is_in_the_note_or_given);
    tcase_add_test(tcase, programs_for_other_gpus_are_refused);
    tcase_add_test(tcase, a_manifest_of_another_code_object_is_refused);
    tcase_add_test(tcase, what_is_no_code_object_is_refused);
    tcase_add_test(tcase, code_objects_that_are_cut_off_are_refused);
    tcase_add_test(tcase, damaged_code_objects_do_no_harm);
    tcase_add_test(tcase, the_image_may_go_once_it_is_loaded);
    tcase_add_test(tcase, loading_survives_every_allocation_that_fails);
    tcase_add_test(tcase, a_launch_gets_grid_block_and_parameters);
    tcase_add_test(tcase, the_first_valid_variant_is_launched);
    tcase_add_test(tcase, a_workspace_lasts_for_one_launch);
    tcase_add_test(tcase, a_thread_adopts_what_is_current);
    tcase_add_test(tcase, more_threads_than_hip_counts_are_no_valid_launch);
    tcase_add_test(tcase, a_kernel_works_on_device_memory);
    tcase_add_test(tcase, an_empty_output_launches_nothing);
    tcase_add_test(tcase, a_failed_call_is_told_with_the_drivers_words);
    tcase_add_test(tcase, a_fault_on_the_gpu_is_told_by_the_next_wait);
    tcase_add_test(tcase, a_launch_is_timed_between_two_events);
    tcase_add_test(tcase, timing_returns_what_fails);
    tcase_add_test(tcase, the_fake_refuses_wrong_orders);
    tcase_add_test(tcase, the_fake_refuses_wrong_sizes);
    suite_add_tcase(suite, tcase);
}

Suite *SUITE(void)
{
    Suite *suite = suite_create("hip");
    add_version(suite, "hip5", load_hip5);
    add_version(suite, "hip6", load_hip6);
    add_version(suite, "hip7", load_hip7);
    return suite;
}

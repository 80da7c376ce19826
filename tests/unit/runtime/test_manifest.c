/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/manifest.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/runtime/sample.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;
static char message[512];

static void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    (void)user;
    snprintf(message, sizeof message, "%s", d->message);
}

static tcc_diag diag;

static void setup(void)
{
    diag = (tcc_diag){.file = "<runtime>", .fn = on_diagnostic};
    arena = tcc_arena_create(NULL);
    ck_assert_ptr_nonnull(arena);
    message[0] = 0;
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

START_TEST(a_good_manifest_is_read)
{
    const tcc_manifest *m;
    ck_assert_int_eq(tcc_manifest_read(arena, &diag, SAMPLE_MANIFEST, &m), TCC_OK);
    ck_assert_str_eq(message, "");
    ck_assert_str_eq(m->target, "sm_90a");
    ck_assert_str_eq(m->file, "matmul.tile");
    ck_assert_uint_eq(m->n_kernels, 1);
    const tcc_kernel_desc *k = &m->kernels[0];
    ck_assert_uint_eq(k->n_dims, 4);
    ck_assert_str_eq(k->dims[2], "K");
    ck_assert_uint_eq(k->n_args, 5);
    ck_assert_int_eq(k->args[4].role, TCC_ARG_OUT);
    ck_assert_int_eq(k->args[3].role, TCC_ARG_SCALAR);
    ck_assert_uint_eq(k->args[3].rank, 0);
    ck_assert_str_eq(k->args[0].dims[1], "M");
    ck_assert_int_eq(k->args[0].extents[1], -1);
    ck_assert_uint_eq(k->n_variants, 2);
    ck_assert_int_eq(m->device.value[TCC_DEVICE_sms], 132);
    const tcc_variant *v = &k->variants[0];
    ck_assert_str_eq(v->name, "matmul");
    ck_assert_uint_eq(v->n_requirements, 5);
    ck_assert_uint_eq(v->workspace_bytes.n, 0);
    ck_assert_uint_eq(v->n_steps, 1);
    ck_assert_int_eq(v->steps[0].kind, TCC_STEP_LAUNCH);
    const tcc_entry *e = &v->steps[0].entry;
    ck_assert_uint_eq(e->block, 384);
    ck_assert_uint_eq(e->smem_bytes, 197632);
    ck_assert_uint_eq(e->n_params, 6);
    const tcc_tma_recipe *map = e->params[0].map;
    ck_assert_uint_eq(map->rank, 3);
    ck_assert_int_eq(map->swizzle, CU_TENSOR_MAP_SWIZZLE_128B);
    ck_assert_int_eq(map->type->map_type, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
    ck_assert_uint_eq(map->strides[1].n, 2);
    ck_assert_int_eq(e->params[4].extent.dim, -1);
    ck_assert_int_eq(e->params[4].extent.number, 7);
}
END_TEST

START_TEST(numbers_stand_for_bound_dimensions)
{
    const tcc_manifest *m;
    ck_assert_int_eq(
        tcc_manifest_read(arena, &diag,
                          SAMPLE_MODULE("{\"name\":\"k\",\"dims\":[],\"args\":[{\"name\":\"C\","
                                        "\"role\":\"out\",\"type\":\"bf16\",\"dims\":[3,5]}],"
                                        "\"variants\":[" SAMPLE_LAUNCH(
                                            "k", "", "0", "[\"ceildiv\",3,128]",
                                            "\"block\":32,\"smem_bytes\":0,\"params\":[]") "]}"),
                          &m),
        TCC_OK);
    ck_assert_ptr_null(m->kernels[0].args[0].dims[1]);
    ck_assert_int_eq(m->kernels[0].args[0].extents[1], 5);
}
END_TEST

#define WITH_INDICES(indices)                                                                      \
    SAMPLE_MODULE("{\"name\":\"k\",\"dims\":[],\"args\":[{\"name\":\"C\",\"role\":\"out\","        \
                  "\"type\":\"bf16\",\"dims\":[3,5],\"indices\":" indices "}],\"variants\":[]}")

START_TEST(an_argument_that_is_indexed_in_one_way_has_indices)
{
    const tcc_manifest *m;
    ck_assert_int_eq(tcc_manifest_read(arena, &diag, WITH_INDICES("[[\"i\",\"j\"]]"), &m), TCC_OK);
    ck_assert_str_eq(m->kernels[0].args[0].indices[1], "j");
    ck_assert_int_eq(
        tcc_manifest_read(arena, &diag, WITH_INDICES("[[\"i\",\"j\"],[\"j\",\"i\"]]"), &m), TCC_OK);
    ck_assert_ptr_null(m->kernels[0].args[0].indices);
}
END_TEST

/* Each is a manifest with one fault, and a part of the message. */
static const struct {
    const char *json, *message;
} faults[] = {
    {"", "invalid JSON at byte 0"},
    {"{\"tcc\":\"0.1.0\",", "invalid JSON"},
    {SAMPLE_MANIFEST "x", "invalid JSON"},
    {"[]", "an object is expected"},
    {"{\"manifest\":2,\"target\":\"sm_90a\",\"file\":\"f\",\"kernels\":[]}", "$.tcc: missing"},
    {"{\"tcc\":\"0.1.0\",\"manifest\":2,\"target\":3,\"file\":\"f\",\"kernels\":[]}",
     "$.target: a string is expected"},
    {"{\"tcc\":\"0.1.0\",\"manifest\":2,\"target\":\"sm_90a\",\"file\":\"f\",\"device\":{\"sms\":1}}",
     "$.kernels: missing"},
    {"{\"tcc\":\"0.1.0\",\"manifest\":2,\"target\":\"sm_90a\",\"file\":\"f\","
     "\"device\":{\"sms\":1},\"kernels\":{}}",
     "$.kernels: an array is expected"},
    {SAMPLE_MODULE("7"), "$.kernels[0].name: missing"},
    {SAMPLE_MODULE(
         SAMPLE_KERNEL(SAMPLE_ARGS, SAMPLE_GENERIC) "," SAMPLE_KERNEL(SAMPLE_ARGS, SAMPLE_GENERIC)),
     "kernel 'matmul' twice"},
    {SAMPLE_MODULE("{\"name\":\"k\",\"dims\":[\"M\",\"M\"]}"), "dimension 'M' twice"},
    {SAMPLE_MODULE("{\"name\":\"k\",\"dims\":[4]}"), "dims[0]: a string is expected"},
    {SAMPLE_MODULE("{\"name\":\"k\",\"dims\":[]}"), "args: missing"},
    {SAMPLE_WITH_ARGS("[]"), "0 elements, must be 1 to 64"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"input\",\"type\":\"f16\",\"dims\":[]}]"),
     "unknown role 'input'"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f15\",\"dims\":[]}]"),
     "unknown type 'f15'"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[\"Q\"]}]"),
     "unknown dimension 'Q'"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[-1]}]"),
     "-1 is not an integer from 0"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[1.5]}]"),
     "1.5 is not an integer"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[1e300]}]"),
     "1e+300 is not an integer"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":"
                      "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}]"),
     "17 elements, must be 0 to 16"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[]},"
                      "{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[]}]"),
     "argument 'A' twice"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[\"M\"],"
                      "\"indices\":[\"m\"]}]"),
     "indices[0]: an array is expected"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[\"M\"],"
                      "\"indices\":[[\"m\"],[\"m\",\"k\"]]}]"),
     "2 indices of 1 dimensions"},
    {SAMPLE_WITH_ARGS("[{\"name\":\"a\",\"role\":\"scalar\",\"type\":\"e4m3\"}]"),
     "a scalar cannot be e4m3"},
    {SAMPLE_WITH_VARIANT("{\"entry\":\"e\"}"), "name: missing"},
#define WITH_STEPS(steps)                                                                          \
    SAMPLE_WITH_VARIANT("{\"name\":\"e\",\"requires\":[],\"steps\":[" steps "]}")
    {WITH_STEPS(""), "no steps"},
    {WITH_STEPS("{}"), "steps[0]: unknown kind of step"},
    {WITH_STEPS("{\"sleep\":3}"), "unknown kind of step"},
    {WITH_STEPS("{\"launch\":\"e\",\"grid\":1,\"block\":2048}"),
     "2048 is not an integer from 1 to 1024"},
    {WITH_STEPS("{\"launch\":\"e\",\"grid\":1,\"block\":128,\"smem_bytes\":99999999}"),
     "smem_bytes: 1e+08 is not an integer"},
    {WITH_STEPS("{\"launch\":\"e\",\"grid\":1,\"block\":128,\"smem_bytes\":0,\"cluster\":0}"),
     "cluster: 0 is not an integer"},
    {WITH_STEPS("{\"launch\":\"e\",\"grid\":1,\"block\":128,\"smem_bytes\":0,\"cluster\":1,\"fewer\":2}"),
     "fewer: 2 is not an integer"},
    {WITH_STEPS("{\"launch\":\"e\",\"grid\":1,\"block\":128,\"smem_bytes\":0,\"cluster\":1,\"overlaps\":2}"),
     "overlaps: 2 is not an integer"},
    {WITH_STEPS("{\"launch\":\"e\"}"), "grid: missing"},
    {WITH_STEPS("{\"memset\":3,\"bytes\":1,\"byte\":0}"), "memset.workspace: missing"},
    {WITH_STEPS("{\"memset\":{\"pointer\":\"Q\"},\"bytes\":1,\"byte\":0}"), "unknown argument 'Q'"},
    {WITH_STEPS("{\"memset\":{\"pointer\":\"alpha\"},\"bytes\":1,\"byte\":0}"),
     "'alpha' is a scalar"},
    {WITH_STEPS("{\"memset\":{\"pointer\":\"A\"},\"bytes\":1,\"byte\":0}"), "'A' is an input"},
    {WITH_STEPS("{\"memset\":{\"pointer\":\"C\"},\"byte\":0}"), "bytes: missing"},
    {WITH_STEPS("{\"memset\":{\"pointer\":\"C\"},\"bytes\":1,\"byte\":256}"),
     "256 is not an integer from 0 to 255"},
#define WITH_COST(cost) SAMPLE_WITH_VARIANT("{\"name\":\"e\",\"cost\":" cost "}")
    {WITH_COST("-1"), "-1 is not an integer from 0"},
    {WITH_COST("\"Q\""), "cost: unknown dimension 'Q'"},
    {WITH_COST("[]"), "cost: a number is expected"},
    {WITH_COST("[3,1,2]"), "cost[0]: a string is expected"},
    {WITH_COST("[\"pow\",1,2]"), "cost[0]: unknown operation 'pow'"},
    {WITH_COST("[\"add\",1]"), "1 operands of 'add'"},
    {WITH_COST("[\"sub\",3,2,1]"), "3 operands of 'sub'"},
    {WITH_COST("[\"add\",1,[\"mul\",\"M\",\"Q\"]]"), "cost[2][2]: unknown dimension 'Q'"},
    {WITH_COST("{}"), "cost.device: missing"},
    {WITH_COST("{\"device\":\"fans\"}"), "unknown attribute 'fans' of devices"},
#define NEST(x) "[\"add\"," x ",1]"
#define NEST4(x) NEST(NEST(NEST(NEST(x))))
#define NEST16(x) NEST4(NEST4(NEST4(NEST4(x))))
    {WITH_COST(NEST(NEST16(NEST16(NEST16("1"))))), "an expression that is too deep"},
    {SAMPLE_WITH_VARIANT("{\"name\":\"e\",\"workspace_bytes\":\"Q\"}"),
     "workspace_bytes: unknown dimension 'Q'"},
    {"{\"tcc\":\"0.1.0\",\"manifest\":2,\"target\":\"sm_90a\",\"file\":\"f\",\"kernels\":[]}",
     "$.device.sms: missing"},
    {"{\"tcc\":\"0.1.0\",\"target\":\"sm_90a\",\"file\":\"f\",\"kernels\":[]}",
     "it has version 1; only version 2 is supported"},
    {"{\"manifest\":3}", "it has version 3; only version 2 is supported"},
#define WITH_REQUIREMENT(r) SAMPLE_WITH_VARIANT("{\"name\":\"e\",\"requires\":[" r "]}")
    {SAMPLE_WITH_VARIANT("{\"name\":\"e\",\"steps\":[]}"), "requires: missing"},
    {WITH_REQUIREMENT("{\"dim\":\"M\"}"), "neither min nor max"},
    {WITH_REQUIREMENT("{\"dim\":\"Q\",\"min\":1}"), "unknown dimension 'Q'"},
    {WITH_REQUIREMENT("{\"arg\":\"A\"}"), "align: missing"},
    {WITH_REQUIREMENT("{\"arg\":\"A\",\"align\":0}"), "0 is not an integer from 1"},
    {WITH_REQUIREMENT("{\"arg\":\"Q\",\"align\":16}"), "unknown argument 'Q'"},
    {WITH_REQUIREMENT("{\"arg\":\"alpha\",\"align\":16}"), "'alpha' is a scalar"},
    {WITH_REQUIREMENT("{\"pitch\":\"K\",\"align\":16}"), "an array is expected"},
    {WITH_REQUIREMENT("{\"moon\":\"full\",\"align\":16}"), "unknown kind of requirement"},
    {WITH_REQUIREMENT("{}"), "align: missing"},
#define WITH_PARAM(p)                                                                              \
    WITH_STEPS("{\"launch\":\"e\",\"grid\":1,\"block\":128,\"smem_bytes\":0,\"cluster\":1,"        \
               "\"params\":[" p "]}")
    {WITH_PARAM("{\"register\":\"A\"}"), "unknown kind of parameter"},
    {WITH_PARAM("3"), "unknown kind of parameter"},
    {WITH_PARAM("{\"pointer\":\"alpha\"}"), "'alpha' is a scalar"},
    {WITH_PARAM("{\"scalar\":\"A\"}"), "'A' is not a scalar"},
    {WITH_PARAM("{\"dim\":\"Q\"}"), "unknown dimension 'Q'"},
    {WITH_PARAM("{\"dim\":\"M.Q\"}"), "unknown dimension 'M.Q'"},
    {WITH_PARAM("{\"dim\":\"M.\"}"), "unknown dimension 'M.'"},
    {WITH_PARAM("{\"dim\":\"(M + Q)\"}"), "unknown dimension '(M + Q)'"},
    {WITH_PARAM("{\"dim\":\"(M + 1\"}"), "unknown dimension '(M + 1'"},
    {WITH_PARAM("{\"dim\":\"M + 1\"}"), "unknown dimension 'M + 1'"},
    {WITH_PARAM("{\"dim\":\"\"}"), "unknown dimension ''"},
    {WITH_PARAM("{\"workspace\":\"Q\"}"), "unknown dimension 'Q'"},
#define WITH_MAP(dims, strides, box, swizzle)                                                      \
    WITH_PARAM("{\"tensor_map\":{\"arg\":\"A\",\"type\":\"f16\",\"dims\":" dims                    \
               ",\"strides\":" strides ",\"box\":" box ",\"swizzle\":" swizzle "}}")
    {WITH_MAP("[\"K\",\"M\"]", "[[[\"roundup\",\"K\"]]]", "[64,64]", "0"), "no [\"roundup\", extent, number]"},
    {WITH_MAP("[\"K\",\"M\"]", "[[[\"roundup\",\"K\",0]]]", "[64,64]", "0"), "0 is not an integer from 1"},
    {WITH_MAP("[\"K\",\"M\"]", "[[[\"mul\",\"K\",2]]]", "[64,64]", "0"), "no [\"roundup\", extent, number]"},
    {WITH_MAP("[]", "[]", "[]", "0"), "0 elements, must be 1 to 5"},
    {WITH_MAP("[1,1,1,1,1,1]", "[]", "[]", "0"), "6 elements, must be 1 to 5"},
    {WITH_MAP("[\"K\",\"M\"]", "[]", "[64,64]", "0"), "strides: 0 elements, must be 1 to 1"},
    {WITH_MAP("[\"K\",\"M\"]", "[[\"K\"]]", "[64]", "0"), "box: 1 elements, must be 2 to 2"},
    {WITH_MAP("[\"K\",\"M\"]", "[[\"K\"]]", "[64,257]", "0"), "257 is not an integer from 1 to 256"},
    {WITH_MAP("[\"K\",\"M\"]", "[[\"Q\"]]", "[64,64]", "0"), "unknown dimension 'Q'"},
    {WITH_MAP("[\"K\",\"M\"]", "[[\"K\"]]", "[64,64]", "48"), "48 is not one of 0, 32, 64, 128"},
    {WITH_MAP("[\"K\",\"M\"]", "[[\"K\"]]", "[128,64]", "128"),
     "a box row of 256 bytes does not fit a swizzle of 128"},
    {WITH_MAP("[\"K\",\"M\"]", "[[\"K\"]]", "[4,64]", "0"), "a box row of 8 bytes does not fit"},
    {WITH_PARAM("{\"tensor_map\":{\"arg\":\"A\",\"type\":\"i4\"}}"), "type: does not have whole bytes"},
#define FOR_AMD(variant) SAMPLE_MODULE_FOR("gfx1100", SAMPLE_KERNEL(SAMPLE_ARGS, variant))
    {FOR_AMD(SAMPLE_TMA), "2 tensor maps, at most 0"},
    {FOR_AMD("{\"name\":\"e\",\"requires\":[],\"steps\":[{\"launch\":\"e\",\"grid\":1,"
             "\"block\":128,\"smem_bytes\":0,\"cluster\":2,\"params\":[]}]}"),
     "a cluster of 2, at most 1"},
};

START_TEST(a_fault_is_told)
{
    const tcc_manifest *m;
    ck_assert_int_eq(tcc_manifest_read(arena, &diag, faults[_i].json, &m), TCC_ERR_SYNTAX);
    ck_assert_msg(strstr(message, faults[_i].message), "'%s' lacks '%s'", message,
                  faults[_i].message);
}
END_TEST

static tcc_status read_steps(size_t n)
{
    const tcc_manifest *m;
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    fputs("{\"tcc\":\"0.1.0\",\"manifest\":2,\"target\":\"sm_90a\",\"file\":\"f\",\"device\":{\"sms\":1},"
          "\"kernels\":[{\"name\":\"k\",\"dims\":[\"B\",\"M\",\"K\",\"N\"],\"args\":" SAMPLE_ARGS ",\"variants\":["
          "{\"name\":\"e\",\"requires\":[],\"steps\":[", f);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%s{\"memset\":{\"pointer\":\"C\"},\"bytes\":1,\"byte\":0}", i ? "," : "");
    fputs("]}]}]}", f);
    fclose(f);
    tcc_status status = tcc_manifest_read(arena, &diag, text, &m);
    free(text);
    return status;
}

START_TEST(writer_and_reader_have_the_same_limits)
{
    ck_assert_int_eq(read_steps(TCC_MANIFEST_STEPS), TCC_OK);
    ck_assert_int_eq(read_steps(TCC_MANIFEST_STEPS + 1), TCC_ERR_SYNTAX);
    ck_assert_msg(strstr(message, "133 elements, must be 0 to 132"), "%s", message);
}
END_TEST

START_TEST(every_truncation_is_an_error)
{
    const char whole[] = SAMPLE_MANIFEST;
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        char *cut = strndup(whole, n);
        const tcc_manifest *m;
        ck_assert_int_eq(tcc_manifest_read(arena, &diag, cut, &m), TCC_ERR_SYNTAX);
        free(cut);
    }
}
END_TEST

/* Every byte replaced by every one of these: an error or not, never a crash. */
START_TEST(no_change_of_a_byte_crashes)
{
    static const char bytes[] = "\"[]{},:0-9ex \\\x01\xff";
    char text[] = SAMPLE_MANIFEST;
    for (size_t i = 0; i < sizeof text - 1; i++)
        for (size_t j = 0; j < sizeof bytes - 1; j++) {
            char kept = text[i];
            const tcc_manifest *m;
            tcc_arena *scratch = tcc_arena_create(NULL);
            text[i] = bytes[j];
            tcc_status status = tcc_manifest_read(scratch, &diag, text, &m);
            ck_assert(status == TCC_OK || status == TCC_ERR_SYNTAX);
            text[i] = kept;
            tcc_arena_destroy(scratch);
        }
}
END_TEST

START_TEST(out_of_memory_is_an_error)
{
    bool failed = true;
    for (long n = 0; failed; n++) {
        tcc_arena *scratch = tcc_arena_create(NULL);
        const tcc_manifest *m;
        oom_fail_after(n);
        tcc_status status = tcc_manifest_read(scratch, &diag, SAMPLE_MANIFEST, &m);
        failed = !oom_is_armed();
        oom_fail_after(-1);
        ck_assert_int_eq(status, failed ? TCC_ERR_MEMORY : TCC_OK);
        ck_assert(failed || n);
        tcc_arena_destroy(scratch);
    }
}
END_TEST

/* ---- in PTX ----------------------------------------------------------------------------- */

static const char *in_ptx(const char *ptx)
{
    return tcc_manifest_in_ptx(arena, &diag, ptx, strlen(ptx));
}

START_TEST(ptx_carries_a_manifest_in_its_first_lines)
{
    ck_assert_str_eq(in_ptx("// tcc-manifest 2\n//! {\"a\":\n//! 1}\n//\n.version 8.0\n//! no\n"),
                     "{\"a\":1}");
    ck_assert_str_eq(in_ptx("// tcc-manifest 2\r\n//! {}\r\n.version 8.0\r\n"), "{}");
    ck_assert_str_eq(in_ptx("// tcc-manifest 2\n//! {}"), "{}");
    ck_assert_str_eq(in_ptx("// tcc-manifest 2"), "");
}
END_TEST

START_TEST(other_ptx_is_refused)
{
    ck_assert_ptr_null(in_ptx(".version 8.0\n"));
    ck_assert_str_eq(message, "no manifest at the head of this PTX: it was not written by tcc");
    ck_assert_ptr_null(in_ptx(""));
    ck_assert_ptr_null(in_ptx("// tcc-manifest 1\n//! {}\n"));
    ck_assert_str_eq(message, "this PTX has a manifest of version 1; only version 2 is supported");
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("manifest");
    TCase *tcase = tcase_create("manifest");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_good_manifest_is_read);
    tcase_add_test(tcase, numbers_stand_for_bound_dimensions);
    tcase_add_test(tcase, an_argument_that_is_indexed_in_one_way_has_indices);
    tcase_add_loop_test(tcase, a_fault_is_told, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_test(tcase, writer_and_reader_have_the_same_limits);
    tcase_add_test(tcase, every_truncation_is_an_error);
    tcase_add_test(tcase, no_change_of_a_byte_crashes);
    tcase_add_test(tcase, out_of_memory_is_an_error);
    tcase_add_test(tcase, ptx_carries_a_manifest_in_its_first_lines);
    tcase_add_test(tcase, other_ptx_is_refused);
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite;
}

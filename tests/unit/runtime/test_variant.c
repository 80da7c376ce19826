/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/variant.h"
#include "support/extent.h"

#include <check.h>
#include <pthread.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/runtime/sample.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;
static const tcc_kernel_desc *kernel;
static tcc_diag diag;
static char message[512];
static tcc_plan plan;

/* B M K N and A W bias alpha C, as the sample takes them. */
static int64_t dims[4];
static const tcc_device_attrs device = {{[TCC_DEVICE_sms] = 7}};
static tcc_arg args[5];

static void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    (void)user;
    snprintf(message, sizeof message, "%s", d->message);
}

static void load(const char *json)
{
    const tcc_manifest *m;
    ck_assert_int_eq(tcc_manifest_read(arena, &diag, json, &m), TCC_OK);
    kernel = &m->kernels[0];
}

static void setup(void)
{
    arena = tcc_arena_create(NULL);
    diag = (tcc_diag){.file = "<runtime>", .fn = on_diagnostic};
    message[0] = 0;
    load(SAMPLE_MANIFEST);
    memcpy(dims, (int64_t[]){2, 300, 128, 520}, sizeof dims);
    for (int i = 0; i < 5; i++)
        args[i].device = 0x10000 * (uint64_t)(i + 1);
    args[3].number = 0.5;
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

static tcc_status plan_launch(void)
{
    return tcc_plan_launch(kernel, &device, NULL, dims, 4, args, 5, INT64_MAX, true, &diag, &plan);
}

static const char *chosen(void)
{
    ck_assert_int_eq(plan_launch(), TCC_OK);
    return plan.variant ? plan.variant->name : "nothing";
}

#define NOTHING "\"block\":32,\"smem_bytes\":0,\"params\":[]"

/* ---- which variant ---------------------------------------------------------------------- */

START_TEST(the_first_valid_variant_runs)
{
    ck_assert_str_eq(chosen(), "matmul");
}
END_TEST

START_TEST(an_extent_below_its_minimum_excludes)
{
    dims[2] = 0;
    ck_assert_str_eq(chosen(), "matmul__generic");
}
END_TEST

START_TEST(an_odd_pitch_excludes)
{
    dims[2] = 127;
    ck_assert_str_eq(chosen(), "matmul__generic");
    dims[2] = 124; /* 248 bytes */
    ck_assert_str_eq(chosen(), "matmul__generic");
    dims[2] = 120;
    ck_assert_str_eq(chosen(), "matmul");
    dims[3] = 1;
    ck_assert_str_eq(chosen(), "matmul__generic");
}
END_TEST

START_TEST(a_misaligned_address_excludes)
{
    args[1].device += 2;
    ck_assert_str_eq(chosen(), "matmul__generic");
    args[1].device += 14;
    ck_assert_str_eq(chosen(), "matmul");
    args[4].device += 2; /* nothing is required of C */
    ck_assert_str_eq(chosen(), "matmul");
}
END_TEST

#define STRIDED                                                                                                   \
    SAMPLE_MODULE("{\"name\":\"k\",\"dims\":[\"M\",\"N\",\"a\",\"b\",\"c\",\"d\"],\"args\":["                       \
                  "{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[\"M\",\"N\"],\"strides\":[\"a\",\"b\"]},"  \
                  "{\"name\":\"C\",\"role\":\"out\",\"type\":\"f16\",\"dims\":[\"M\",\"N\"],\"strides\":[\"c\",\"d\"]}]," \
                  "\"variants\":[" SAMPLE_LAUNCH("k", "", "1", "1", "\"block\":32,\"smem_bytes\":0,\"params\":["           \
                                                 "{\"pointer\":\"A\"},{\"pointer\":\"C\"},{\"dim\":\"a\"}]") "]}")

static tcc_status plan_strided(int64_t m, int64_t n, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t own[] = {m, n, a, b, c, d};
    message[0] = 0;
    return tcc_plan_launch(kernel, &device, NULL, own, 6, args, 2, INT64_MAX, true, &diag, &plan);
}

START_TEST(strides_place_elements_of_results_apart)
{
    load(STRIDED);
    ck_assert_ptr_nonnull(kernel->args[0].stride_dims);
    ck_assert_str_eq(kernel->args[1].stride_dims[0], "c");
    ck_assert_int_eq(plan_strided(5, 7, 7, 1, 7, 1), TCC_OK);
    ck_assert_int_eq(plan_strided(5, 7, 0, 0, 1, 5), TCC_OK); /* an input may repeat elements */
    ck_assert_int_eq(plan_strided(5, 7, 1, 1, 14, 2), TCC_OK);
    ck_assert_int_eq(plan_strided(1, 7, 1, 1, 0, 1), TCC_OK); /* of one row any stride will do */
    ck_assert_int_eq(plan_strided(0, 7, 1, 1, 0, 0), TCC_OK);
    ck_assert_int_eq(plan_strided(5, 7, 7, 1, 6, 1), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'k': stride 0 of 'C' is 6, and must be for its elements not to overlap at least 7");
    ck_assert_int_eq(plan_strided(5, 7, 7, 1, 1, 4), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'k': stride 1 of 'C' is 4, and must be for its elements not to overlap at least 5");
    ck_assert_int_eq(plan_strided(5, 7, 7, 1, 7, 0), TCC_ERR_ARGUMENT);
}
END_TEST

START_TEST(strides_are_within_32_bits)
{
    load(STRIDED);
    ck_assert_int_eq(plan_strided(5, 7, -7, 1, 7, 1), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'k': stride 0 of 'A' is -7, and must be at least 0");
    ck_assert_int_eq(plan_strided(5, 7, TCC_MAX_EXTENT, 1, 7, 1), TCC_OK);
    ck_assert_int_eq(plan_strided(5, 7, TCC_MAX_EXTENT + INT64_C(1), 1, 7, 1), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'k': stride 0 of 'A' is 2147450881, and must be at most 2147450880");
}
END_TEST

#define COSTING(name, cost) SAMPLE_LAUNCH(name, "", cost, "1", NOTHING)
#define REQUIRING(name, requires, cost) SAMPLE_LAUNCH(name, requires, cost, "1", NOTHING)

static void load_variants(const char *variants)
{
    char *json = tcc_arena_printf(arena, SAMPLE_MODULE(SAMPLE_KERNEL(SAMPLE_ARGS, "%s")), variants);
    load(json);
}

START_TEST(the_cheapest_valid_variant_runs)
{
    load_variants(COSTING("a", "[\"mul\",\"M\",\"N\"]") "," COSTING(
        "b", "[\"mul\",\"M\",500]") "," COSTING("c", "[\"mul\",\"N\",\"M\"]"));
    ck_assert_str_eq(chosen(), "b"); /* N is 520 */
    dims[3] = 500;
    ck_assert_str_eq(chosen(), "a"); /* of equals the first */
    load_variants(REQUIRING("a", "{\"dim\":\"M\",\"max\":300}", "1") "," COSTING("b", "2"));
    ck_assert_str_eq(chosen(), "a");
    dims[1]++;
    ck_assert_str_eq(chosen(), "b");
}
END_TEST

/* What one thread of several asks of one cache, of more extents than it has room for; NULL: all was right. */
static void *rank_many(void *cache)
{
    for (int64_t i = 0; i < 20000; i++) {
        int64_t some[4] = {2, 1 + i % 300, 128, 1 + i % 7 * 100};
        tcc_ranking kept = tcc_ranking_cache_get(cache, some);
        tcc_ranking now = tcc_ranking_compute(kernel, &device, some);
        if (memcmp(&kept, &now, sizeof now))
            return cache;
    }
    return NULL;
}

START_TEST(kept_rankings_are_those_that_would_be_computed)
{
    load_variants(COSTING("a", "[\"mul\",\"M\",\"N\"]") "," COSTING(
        "b", "[\"mul\",\"M\",500]") "," COSTING("c", "[\"mul\",\"N\",\"N\"]"));
    tcc_ranking_cache *cache = tcc_ranking_cache_create(kernel, &device);
    pthread_t threads[4];
    void *wrong;
    for (size_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, rank_many, cache), 0);
    for (size_t i = 0; i < 4; i++) {
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
    tcc_ranking_cache_destroy(cache);
    tcc_ranking_cache_destroy(NULL);
}
END_TEST

START_TEST(a_cost_that_overflows_is_the_highest)
{
    load_variants(
        COSTING("a", "[\"mul\",\"M\",\"M\",\"M\",\"M\",\"M\",\"M\",\"M\",\"M\"]") "," COSTING(
            "b", "[\"mul\",9007199254740992,1000]"));
    ck_assert_str_eq(chosen(), "b");
    dims[1] = 2;
    ck_assert_str_eq(chosen(), "a");
}
END_TEST

/* One GPU's 7 SMs, at B M K N = 2 300 128 520. */
static const struct {
    const char *expr;
    int64_t value; /* -1: there is none */
} values[] = {
    {"\"B.M\"", 600},
    {"[\"ceildiv\",\"B.M.3\",7]", 258},
    {"3", 3},
    {"\"K\"", 128},
    {"{\"device\":\"sms\"}", 7},
    {"[\"add\",\"B\",\"M\",1]", 303},
    {"[\"sub\",\"M\",\"B\"]", 298},
    {"[\"mul\",\"B\",\"M\",2]", 1200},
    {"[\"div\",\"M\",128]", 2},
    {"[\"ceildiv\",\"M\",128]", 3},
    {"[\"ceildiv\",256,128]", 2},
    {"[\"min\",\"M\",{\"device\":\"sms\"},9]", 7},
    {"[\"max\",3,\"B\",1]", 3},
    {"[\"div\",1,[\"sub\",\"B\",2]]", -1},
    {"[\"ceildiv\",1,0]", -1},
    {"[\"add\",[\"div\",[\"sub\",\"B\",3],2],1]", 0},
    {"[\"mul\",9007199254740992,1024]", -1},
    {"[\"sub\",[\"sub\",0,[\"mul\",9007199254740992,1023]],[\"mul\",9007199254740992,2]]", -1},
    {"[\"add\",[\"mul\",9007199254740992,1023],9007199254740992]", -1},
};

START_TEST(expressions_have_values)
{
    int64_t value;
    load_variants(COSTING("a", "0"));
    load_variants(
        tcc_arena_printf(arena, SAMPLE_LAUNCH("a", "", "%s", "1", NOTHING), values[_i].expr));
    bool ok = tcc_expr_value(&kernel->variants[0].cost, dims, &device, &value);
    ck_assert_int_eq(ok, values[_i].value >= 0);
    if (ok)
        ck_assert_int_eq(value, values[_i].value);
}
END_TEST

/* ---- steps ------------------------------------------------------------------------------ */

#define WITH_STEPS(workspace, steps)                                                               \
    "{\"name\":\"a\",\"requires\":[],\"workspace_bytes\":" workspace ",\"steps\":[" steps "]}"
#define SET(where, bytes) "{\"memset\":" where ",\"bytes\":" bytes ",\"byte\":0}"
#define IN_C "{\"pointer\":\"C\"}"
#define AT(offset) "{\"workspace\":" offset "}"

/* C has 2 * 300 * 520 elements of 2 bytes. */
static const struct {
    const char *variant;
    bool is_valid;
} steps[] = {
    {WITH_STEPS("0", SET(IN_C, "[\"mul\",\"B\",\"M\",\"N\",2]")), true},
    {WITH_STEPS("0", SET(IN_C, "[\"add\",[\"mul\",\"B\",\"M\",\"N\",2],1]")), false},
    {WITH_STEPS("0", SET(IN_C, "[\"sub\",\"B\",3]")), false},
    {WITH_STEPS("\"M\"", SET(AT("0"), "300")), true},
    {WITH_STEPS("\"M\"", SET(AT("1"), "300")), false},
    {WITH_STEPS("\"M\"", SET(AT("300"), "0")), true},
    {WITH_STEPS("\"M\"", SET(AT("301"), "0")), false},
    {WITH_STEPS("0", SET(AT("0"), "1")), false},
    {WITH_STEPS("[\"sub\",\"B\",\"M\"]", SET(AT("0"), "0")), false},
#define LAUNCH(grid, params)                                                                       \
    "{\"launch\":\"a\",\"grid\":" grid                                                             \
    ",\"block\":32,\"smem_bytes\":0,\"cluster\":2,\"params\":[" params "]}"
    {WITH_STEPS("8", LAUNCH("2", "{\"workspace\":8}")), true},
    {WITH_STEPS("8", LAUNCH("2", "{\"workspace\":9}")), false},
#define MAP(at, stride)                                                                            \
    "{\"tensor_map\":{\"workspace\":" at ",\"dims\":[8,4],\"strides\":[[" stride "]],"              \
    "\"box\":[8,1],\"swizzle\":0,\"type\":\"f32\"}}"
    {WITH_STEPS("256", LAUNCH("2", MAP("128", "8"))), true},
    {WITH_STEPS("255", LAUNCH("2", MAP("128", "8"))), false},
    {WITH_STEPS("127", LAUNCH("2", MAP("128", "8"))), false},
    {WITH_STEPS("256", LAUNCH("2", MAP("0,\"bytes\":127", "8"))), false},
    {WITH_STEPS("3632", LAUNCH("2", MAP("0", "[\"roundup\",\"M\",4]"))), true},
    {WITH_STEPS("3631", LAUNCH("2", MAP("0", "[\"roundup\",\"M\",4]"))), false},
    {WITH_STEPS("3632", LAUNCH("2", MAP("0", "[\"roundup\",\"M\",4],2147483647"))), false},
#define MAP_OF_C(rows)                                                                             \
    "{\"tensor_map\":{\"arg\":\"C\",\"dims\":[\"N\"," rows "],\"strides\":[[\"N\"]],"              \
    "\"box\":[8,1],\"swizzle\":0,\"type\":\"f16\"}}"
    {WITH_STEPS("0", LAUNCH("2", MAP_OF_C("\"B.M\""))), true},
    {WITH_STEPS("0", LAUNCH("2", MAP_OF_C("\"B.M.2\""))), false},
    {WITH_STEPS("0", LAUNCH("2", "{\"dim\":\"M.N.2\"}")), true},
    {WITH_STEPS("0", LAUNCH("2", "{\"dim\":\"M.N.N.M\"}")), false},
    {WITH_STEPS("0", LAUNCH("3", "")), false}, /* no multiple of the cluster */
    {WITH_STEPS("0", LAUNCH("0", "")), true}, /* nothing to do */
    {WITH_STEPS("0", LAUNCH("[\"sub\",\"B\",\"M\"]", "")), false},
    {WITH_STEPS("0", LAUNCH("2147483648", "")), false},
    {WITH_STEPS("0", SET(IN_C, "1") "," LAUNCH("2", "") "," LAUNCH("3", "")), false},
};

START_TEST(steps_stay_within_what_there_is)
{
    load_variants(steps[_i].variant);
    ck_assert_int_eq(plan_launch(), steps[_i].is_valid ? TCC_OK : TCC_ERR_NO_VARIANT);
}
END_TEST

START_TEST(no_valid_variant_is_an_error)
{
    dims[0] = 65536; /* above the generic variant's maximum */
    dims[2] = 0;
    ck_assert_int_eq(plan_launch(), TCC_ERR_NO_VARIANT);
    ck_assert_str_eq(message,
                     "kernel 'matmul': no variant is valid for these extents and addresses");
}
END_TEST

START_TEST(an_empty_output_runs_nothing)
{
    for (int i = 0; i < 4; i++) {
        int64_t kept = dims[i];
        dims[i] = 0;
        ck_assert_str_eq(chosen(), i == 2 ? "matmul__generic" : "nothing");
        dims[i] = kept;
    }
}
END_TEST

/* ---- arguments -------------------------------------------------------------------------- */

START_TEST(bad_arguments_are_told)
{
    ck_assert_int_eq(tcc_plan_launch(kernel, &device, NULL, dims, 3, args, 5, INT64_MAX, true, &diag, &plan),
                     TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'matmul' takes 4 extents and 5 arguments, but 3 and 5 are given");
    dims[1] = -1;
    ck_assert_int_eq(plan_launch(), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'matmul': extent M is -1");
    dims[1] = INT64_MAX / 4;
    ck_assert_int_eq(plan_launch(), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'matmul': argument 'A' is larger than the address space");
    dims[1] = 1;
    args[2].device = 0;
    ck_assert_int_eq(plan_launch(), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'matmul': argument 'bias' is at address 0");
    args[2].device = 2;
    ck_assert_int_eq(plan_launch(), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'matmul': argument 'bias' is not aligned to its elements");
}
END_TEST

START_TEST(an_input_without_elements_needs_no_address)
{
    dims[2] = 0;
    args[0].device = args[1].device = 0;
    ck_assert_str_eq(chosen(), "matmul__generic");
}
END_TEST

START_TEST(a_dimension_that_is_computed_is_not_negative)
{
    load(SAMPLE_MODULE("{\"name\":\"k\",\"dims\":[\"M\",\"N\"],\"args\":["
                       "{\"name\":\"A\",\"role\":\"in\",\"type\":\"f32\",\"dims\":[\"(M - N)\"]},"
                       "{\"name\":\"C\",\"role\":\"out\",\"type\":\"f32\",\"dims\":[\"N.4\"]}],"
                       "\"variants\":[" SAMPLE_LAUNCH("k", "", "0", "1", NOTHING) "]}"));
    ck_assert_str_eq(kernel->args[0].dims[0], "M - N");
    ck_assert_str_eq(kernel->args[1].dims[0], "4 * N");
    ck_assert_int_eq(kernel->args[1].extents[0], -1);
    dims[0] = dims[1] = 5;
    ck_assert_int_eq(tcc_plan_launch(kernel, &device, NULL, dims, 2, args, 2, INT64_MAX, true, &diag, &plan), TCC_OK);
    dims[0] = 3;
    ck_assert_int_eq(tcc_plan_launch(kernel, &device, NULL, dims, 2, args, 2, INT64_MAX, true, &diag, &plan),
                     TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'k': dimension M - N of 'A' is -2 with M 3, N 5; it must be from 0 to "
                              "2147450880");
}
END_TEST

START_TEST(half_bytes_lie_at_any_address)
{
    load(SAMPLE_MODULE("{\"name\":\"k\",\"dims\":[\"M\"],\"args\":["
                       "{\"name\":\"A\",\"role\":\"in\",\"type\":\"i4\",\"dims\":[\"M\"]},"
                       "{\"name\":\"C\",\"role\":\"out\",\"type\":\"u4\",\"dims\":[\"M\"]}],"
                       "\"variants\":[" SAMPLE_LAUNCH("k", "", "0", "1", NOTHING) "]}"));
    args[0].device = args[1].device = 1;
    dims[0] = 1;
    ck_assert_int_eq(tcc_plan_launch(kernel, &device, NULL, dims, 1, args, 2, INT64_MAX, true, &diag, &plan), TCC_OK);
    args[0].device = 0;
    ck_assert_int_eq(tcc_plan_launch(kernel, &device, NULL, dims, 1, args, 2, INT64_MAX, true, &diag, &plan),
                     TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, "kernel 'k': argument 'A' is at address 0");
}
END_TEST

START_TEST(an_integer_scalar_must_be_one)
{
    load(SAMPLE_MODULE(
        "{\"name\":\"k\",\"dims\":[],\"args\":[{\"name\":\"n\",\"role\":\"scalar\","
        "\"type\":\"i32\"}],\"variants\":[" SAMPLE_LAUNCH("k", "", "0", "1", NOTHING) "]}"));
    static const struct {
        double number;
        tcc_status status;
    } cases[] = {{3, TCC_OK},
                 {-2147483648.0, TCC_OK},
                 {2147483648.0, TCC_ERR_ARGUMENT},
                 {0.5, TCC_ERR_ARGUMENT},
                 {NAN, TCC_ERR_ARGUMENT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tcc_arg arg = {.number = cases[i].number};
        ck_assert_int_eq(tcc_plan_launch(kernel, &device, NULL, NULL, 0, &arg, 1, INT64_MAX, true, &diag, &plan),
                         cases[i].status);
    }
}
END_TEST

/* ---- grid and tensor maps --------------------------------------------------------------- */

START_TEST(the_grid_covers_ragged_edges)
{
    chosen();
    ck_assert_uint_eq(plan.steps[0].grid, 3 * 3 * 2); /* ceil(300 / 128) * ceil(520 / 256) * 2 */
    dims[1] = 128;
    dims[3] = 256;
    dims[0] = 1;
    chosen();
    ck_assert_uint_eq(plan.steps[0].grid, 1);
}
END_TEST

START_TEST(a_grid_that_is_too_large_excludes)
{
    dims[0] = 65535; /* 65535 * 182 * 182 blocks of the generic variant exceed 2^31 */
    dims[1] = dims[3] = 64 * 182;
    dims[2] = 1;
    ck_assert_int_eq(plan_launch(), TCC_ERR_NO_VARIANT);
}
END_TEST

START_TEST(a_too_large_extent_excludes_where_it_is_a_parameter)
{
    dims[0] = 1;
    dims[1] = (int64_t)TCC_MAX_EXTENT + 1; /* the TMA variant takes M, the generic one does not */
    dims[2] = dims[3] = 8;
    ck_assert_str_eq(chosen(), "matmul__generic");
    dims[1]--;
    ck_assert_str_eq(chosen(), "matmul");
}
END_TEST

START_TEST(tensor_maps_follow_their_recipes)
{
    chosen();
    const tcc_tma_values a = {args[0].device, {128, 300, 2}, {128 * 2, 300 * 128 * 2}};
    const tcc_tma_values w = {args[1].device, {520, 128}, {520 * 2}};
    ck_assert_mem_eq(&plan.maps[0], &a, sizeof a);
    ck_assert_mem_eq(&plan.maps[1], &w, sizeof w);
}
END_TEST

START_TEST(a_stride_that_tma_cannot_have_excludes)
{
    dims[0] = 1;
    dims[1] = 1 << 20; /* A's batches are 2^40 bytes apart */
    dims[2] = 1 << 19;
    dims[3] = 8;
    ck_assert_str_eq(chosen(), "matmul__generic");
}
END_TEST

/* ---- scalars ---------------------------------------------------------------------------- */

START_TEST(scalars_are_rounded_to_their_type)
{
    static const struct {
        const char *type;
        double number;
        float value;
    } cases[] = {
        {"f32", 0.1, 0.1f},
        {"f16", 0.1, 0x1.998p-4f},
        {"f16", 1 + 0x1p-11, 1}, /* a tie goes to even */
        {"f16", 1 + 0x3p-11, 1 + 0x1p-9f},
        {"f16", 65519, 65504},
        {"f16", 65520, INFINITY},
        {"f16", -1e9, -INFINITY},
        {"f16", 0x1p-24, 0x1p-24f},
        {"f16", 0x1p-25, 0},
        {"f16", 0x1.8p-25, 0x1p-24f},
        {"f16", -0x1.8p-25, -0x1p-24f},
        {"f16", -1 - 0x1p-11, -1},
        {"f16", -1 - 0x3p-11, -1 - 0x1p-9f},
        {"bf16", 0.1, 0x1.9ap-4f},
        {"bf16", 1 + 0x1p-8, 1},
        {"bf16", 3e38, 0x1.c4p127f},
        {"bf16", 0x1.ffp127, INFINITY},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(tcc_scalar_value(cases[i].type, cases[i].number) == cases[i].value,
                      "%s(%a) is %a", cases[i].type, cases[i].number,
                      (double)tcc_scalar_value(cases[i].type, cases[i].number));
    ck_assert(isnan(tcc_scalar_value("f16", NAN)));
}
END_TEST

START_TEST(scalars_that_their_type_cannot_hold_do_not_fit)
{
    static const struct {
        const char *type;
        double fits, does_not;
    } cases[] = {{"i32", -0x1p31, 0x1p31},     {"i32", 2, 2.5},          {"i32", 0x1p31 - 1, -0x1p31 - 1},
                 {"i32", -0.0, NAN},           {"i32", 0, INFINITY},     {"f16", 65519, 65520},
                 {"f16", -INFINITY, -1e9},     {"bf16", 3e38, 0x1.ffp127}, {"f32", 0x1.fffffep127, 1e39},
                 {"f32", 0x1p-200, -1e300}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(tcc_scalar_fits(cases[i].type, cases[i].fits), "%s %g", cases[i].type, cases[i].fits);
        ck_assert_msg(!tcc_scalar_fits(cases[i].type, cases[i].does_not), "%s %g", cases[i].type, cases[i].does_not);
    }
    ck_assert(tcc_scalar_fits("f64", 1e300) && tcc_scalar_fits("f32", NAN));
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("variant");
    TCase *tcase = tcase_create("variant");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_first_valid_variant_runs);
    tcase_add_test(tcase, an_extent_below_its_minimum_excludes);
    tcase_add_test(tcase, an_odd_pitch_excludes);
    tcase_add_test(tcase, strides_place_elements_of_results_apart);
    tcase_add_test(tcase, strides_are_within_32_bits);
    tcase_add_test(tcase, a_misaligned_address_excludes);
    tcase_add_test(tcase, the_cheapest_valid_variant_runs);
    tcase_add_test(tcase, kept_rankings_are_those_that_would_be_computed);
    tcase_add_test(tcase, a_cost_that_overflows_is_the_highest);
    tcase_add_loop_test(tcase, expressions_have_values, 0, (int)(sizeof values / sizeof *values));
    tcase_add_loop_test(tcase, steps_stay_within_what_there_is, 0,
                        (int)(sizeof steps / sizeof *steps));
    tcase_add_test(tcase, no_valid_variant_is_an_error);
    tcase_add_test(tcase, an_empty_output_runs_nothing);
    tcase_add_test(tcase, bad_arguments_are_told);
    tcase_add_test(tcase, an_input_without_elements_needs_no_address);
    tcase_add_test(tcase, a_dimension_that_is_computed_is_not_negative);
    tcase_add_test(tcase, half_bytes_lie_at_any_address);
    tcase_add_test(tcase, an_integer_scalar_must_be_one);
    tcase_add_test(tcase, the_grid_covers_ragged_edges);
    tcase_add_test(tcase, a_grid_that_is_too_large_excludes);
    tcase_add_test(tcase, a_too_large_extent_excludes_where_it_is_a_parameter);
    tcase_add_test(tcase, tensor_maps_follow_their_recipes);
    tcase_add_test(tcase, a_stride_that_tma_cannot_have_excludes);
    tcase_add_test(tcase, scalars_are_rounded_to_their_type);
    tcase_add_test(tcase, scalars_that_their_type_cannot_hold_do_not_fit);
    suite_add_tcase(suite, tcase);
    return suite;
}

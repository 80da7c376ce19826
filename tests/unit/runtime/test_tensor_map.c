/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/tensor_map.h"

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static atomic_int n_encoded;
static CUresult encode_result;

/* Stands in for the driver: the map holds its address, so that the right one can be told. */
static CUresult encode(CUtensorMap *map, CUtensorMapDataType type, uint32_t rank, void *address,
                       const uint64_t *dims, const uint64_t *strides_bytes, const uint32_t *box,
                       const uint32_t *element_strides, int interleave, CUtensorMapSwizzle swizzle,
                       int l2_promotion, int oob_fill)
{
    (void)dims, (void)strides_bytes;
    n_encoded++;
    *map = (CUtensorMap){{(uintptr_t)address, (uint64_t)type, rank, box[0],
                          element_strides[rank - 1], (uint64_t)interleave, (uint64_t)swizzle,
                          (uint64_t)l2_promotion, (uint64_t)oob_fill}};
    return encode_result;
}

static const tcc_cuda cuda = {.cuTensorMapEncodeTiled = encode};
static const tcc_elem_type bf16 = {"bf16", 2, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16};
static const tcc_tma_recipe recipe = {.rank = 2,
                                      .type = &bf16,
                                      .box = {64, 128},
                                      .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
static tcc_tma_cache *cache;

static void setup(void)
{
    cache = tcc_tma_cache_create();
    ck_assert_ptr_nonnull(cache);
    n_encoded = 0;
    encode_result = CUDA_SUCCESS;
}

static void teardown(void)
{
    tcc_tma_cache_destroy(cache);
}

static uint64_t get(const tcc_tma_recipe *r, uint64_t address, uint64_t extent)
{
    CUtensorMap map;
    tcc_tma_values values = {.address = address, .dims = {extent, 128}, .strides_bytes = {256}};
    ck_assert_int_eq(tcc_tma_get(cache, &cuda, r, &values, &map), CUDA_SUCCESS);
    return map.opaque[0];
}

START_TEST(the_driver_gets_the_recipe)
{
    CUtensorMap map;
    tcc_tma_values values = {.address = 4096, .dims = {64, 64}, .strides_bytes = {128}};
    tcc_tma_get(cache, &cuda, &recipe, &values, &map);
    const uint64_t expected[] = {4096, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, 64, 1,
                                 CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                 CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE};
    ck_assert_mem_eq(map.opaque, expected, sizeof expected);
}
END_TEST

/* The eighth word is what L2 brings at a time. */
START_TEST(rows_off_the_lines_of_l2_bring_less)
{
    CUtensorMap map;
    tcc_tma_values odd_rows = {.address = 4096, .dims = {72, 64}, .strides_bytes = {144}};
    tcc_tma_values odd_base = {.address = 4112, .dims = {64, 64}, .strides_bytes = {128}};
    tcc_tma_get(cache, &cuda, &recipe, &odd_rows, &map);
    ck_assert_uint_eq(map.opaque[7], CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
    tcc_tma_get(cache, &cuda, &recipe, &odd_base, &map);
    ck_assert_uint_eq(map.opaque[7], CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
}
END_TEST

START_TEST(equal_arguments_are_encoded_once)
{
    for (int i = 0; i < 3; i++) {
        ck_assert_uint_eq(get(&recipe, 4096, 64), 4096);
        ck_assert_uint_eq(get(&recipe, 8192, 64), 8192);
    }
    ck_assert_int_eq(n_encoded, 2);
}
END_TEST

START_TEST(a_different_extent_or_recipe_is_encoded_again)
{
    tcc_tma_recipe other = recipe;
    get(&recipe, 4096, 64);
    get(&recipe, 4096, 72);
    get(&other, 4096, 64);
    ck_assert_int_eq(n_encoded, 3);
}
END_TEST

START_TEST(the_cache_is_bounded_and_stays_right)
{
    enum { N = 5000 };
    for (int round = 0; round < 2; round++)
        for (uint64_t i = 1; i <= N; i++)
            ck_assert_uint_eq(get(&recipe, i * 256, 64), i * 256);
    ck_assert_int_gt(n_encoded, N);
}
END_TEST

START_TEST(those_used_last_are_kept)
{
    for (uint64_t i = 1; i <= 200; i++)
        get(&recipe, i * 4096, 64);
    int before = n_encoded;
    for (uint64_t i = 1; i <= 200; i++)
        get(&recipe, i * 4096, 64);
    ck_assert_int_le(n_encoded - before, 20); /* sets may overflow, few do */
}
END_TEST

START_TEST(a_failure_is_not_kept)
{
    CUtensorMap map;
    tcc_tma_values values = {.address = 4096};
    encode_result = 1;
    ck_assert_int_eq(tcc_tma_get(cache, &cuda, &recipe, &values, &map), 1);
    encode_result = CUDA_SUCCESS;
    ck_assert_int_eq(tcc_tma_get(cache, &cuda, &recipe, &values, &map), CUDA_SUCCESS);
    ck_assert_int_eq(n_encoded, 2);
}
END_TEST

static void *get_many(void *unused)
{
    (void)unused;
    for (int round = 0; round < 20; round++)
        for (uint64_t i = 1; i <= 300; i++)
            if (get(&recipe, i * 512, 64) != i * 512)
                return &n_encoded;
    return NULL;
}

START_TEST(threads_may_share_a_cache)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, get_many, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_ptr_null(wrong);
    }
}
END_TEST

START_TEST(a_cache_without_memory_is_null)
{
    oom_fail_after(0);
    tcc_tma_cache *none = tcc_tma_cache_create();
    oom_fail_after(-1);
    ck_assert_ptr_null(none);
    tcc_tma_cache_destroy(NULL);
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("tensor map");
    TCase *tcase = tcase_create("tensor map");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_driver_gets_the_recipe);
    tcase_add_test(tcase, rows_off_the_lines_of_l2_bring_less);
    tcase_add_test(tcase, equal_arguments_are_encoded_once);
    tcase_add_test(tcase, a_different_extent_or_recipe_is_encoded_again);
    tcase_add_test(tcase, the_cache_is_bounded_and_stays_right);
    tcase_add_test(tcase, those_used_last_are_kept);
    tcase_add_test(tcase, a_failure_is_not_kept);
    tcase_add_test(tcase, threads_may_share_a_cache);
    tcase_add_test(tcase, a_cache_without_memory_is_null);
    suite_add_tcase(suite, tcase);
    return suite;
}

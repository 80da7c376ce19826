/* Tensors as bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/run.h"
#include "tests/unit/interp/program.h"

typedef struct memory {
    tcc_arena *arena;
    tcc_ir *ir;
    tcc_run run;
    tcc_param p;
} memory;

static memory memory_of(tcc_scalar elem, double *data, int64_t count)
{
    memory m = {.arena = tcc_arena_create(NULL)};
    m.ir = tcc_ir_create(m.arena);
    m.run.machine = true;
    m.p = (tcc_param){.name = "A",
                      .type = tcc_type_sized(m.ir, TCC_KIND_tensor, elem, 1, &count),
                      .data = data,
                      .count = count};
    return m;
}

static const struct {
    tcc_scalar elem;
    double data[5];
    int n_bytes;
    uint8_t bytes[20];
} layouts[] = {
    {TCC_i4, {1, -2, 7, -8, 3}, 3, {0xe1, 0x87, 0x03}},
    {TCC_u4, {1, 15, 0, 9, 12}, 3, {0xf1, 0x90, 0x0c}},
    {TCC_i8, {1, -2, 127, -128, 0}, 5, {0x01, 0xfe, 0x7f, 0x80, 0x00}},
    {TCC_u8, {1, 254, 127, 128, 0}, 5, {0x01, 0xfe, 0x7f, 0x80, 0x00}},
    {TCC_e4m3, {1, -448, 0.5, 0x1p-9, 0}, 5, {0x38, 0xfe, 0x30, 0x01, 0x00}},
    {TCC_e5m2, {1, -57344, 0.5, 0x1p-16, 0}, 5, {0x3c, 0xfb, 0x38, 0x01, 0x00}},
    {TCC_f16, {1, -2, 0.5, 65504, 0}, 10, {0, 0x3c, 0, 0xc0, 0, 0x38, 0xff, 0x7b, 0, 0}},
    {TCC_i32, {1, -2, 0x01020304, INT32_MIN, 0}, 20, {1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff, 4, 3,
                                                      2, 1, 0, 0, 0,    0x80, 0,    0,    0, 0}},
};
enum { N_LAYOUTS = sizeof layouts / sizeof *layouts };

START_TEST(elements_lie_little_endian_and_halves_low_first)
{
    double data[5];
    memcpy(data, layouts[_i].data, sizeof data);
    memory m = memory_of(layouts[_i].elem, data, 5);
    ck_assert_int_eq(tcc_param_bytes(&m.p), layouts[_i].n_bytes);
    uint8_t bytes[20] = {0};
    tcc_param_load_bytes(&m.p, 0, layouts[_i].n_bytes, bytes);
    ck_assert_mem_eq(bytes, layouts[_i].bytes, (size_t)layouts[_i].n_bytes);
    memset(data, 0, sizeof data);
    tcc_param_store_bytes(&m.run, &m.p, 0, layouts[_i].n_bytes, bytes);
    for (int i = 0; i < 5; i++)
        ck_assert_double_eq(data[i], layouts[_i].data[i]);
    tcc_arena_destroy(m.arena);
}
END_TEST

/* Every run of bytes, whether or not it begins and ends with an element. */
START_TEST(any_bytes_can_be_moved)
{
    double data[5], moved[5];
    memcpy(data, layouts[_i].data, sizeof data);
    memory m = memory_of(layouts[_i].elem, data, 5);
    for (int from = 0; from < layouts[_i].n_bytes; from++)
        for (int n = 0; from + n <= layouts[_i].n_bytes; n++) {
            uint8_t bytes[20], all[20];
            m.p.data = data;
            tcc_param_load_bytes(&m.p, from, n, bytes);
            ck_assert(!n || !memcmp(bytes, layouts[_i].bytes + from, (size_t)n));
            memset(moved, 0, sizeof moved);
            m.p.data = moved;
            tcc_param_store_bytes(&m.run, &m.p, from, n, bytes);
            tcc_param_load_bytes(&m.p, 0, layouts[_i].n_bytes, all);
            for (int b = 0; b < layouts[_i].n_bytes; b++)
                ck_assert_uint_eq(all[b], b >= from && b < from + n ? layouts[_i].bytes[b] : 0);
        }
    tcc_arena_destroy(m.arena);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, elements_lie_little_endian_and_halves_low_first, 0, N_LAYOUTS);
    tcase_add_loop_test(t, any_bytes_can_be_moved, 0, N_LAYOUTS);
}

Suite *SUITE(void)
{
    return suite_of("memory", add_tests);
}

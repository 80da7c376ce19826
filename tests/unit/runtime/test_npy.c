/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/npy.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static char path[] = "/tmp/test_npy_XXXXXX";
static char why[256];

static void setup(void)
{
    strcpy(path + sizeof path - 7, "XXXXXX");
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
}

static void teardown(void)
{
    unlink(path);
}

/* A file of these bytes. */
static void put(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

/* A version 1 file with this header and data. */
static void put_array(const char *header, const void *data, size_t n)
{
    char file[512] = "\x93NUMPY\x01\x00";
    size_t len = strlen(header);
    file[8] = (char)len;
    memcpy(file + 10, header, len);
    if (n)
        memcpy(file + 10 + len, data, n);
    put(file, 10 + len + n);
}

static const char *read_error(void)
{
    npy array;
    ck_assert(!npy_read(path, &array, why, sizeof why));
    ck_assert_ptr_null(array.data);
    ck_assert(!strncmp(why, path, strlen(path)));
    return why + strlen(path) + 2;
}

START_TEST(an_array_survives_a_round_trip)
{
    static const char *const types[] = {"f16", "bf16", "f32", "e4m3", "e5m2",
                                        "i32", "i8",   "u8",  "i4",   "u4"};
    static const int64_t shapes[][3] = {{2, 3, 5}, {30, 0, 0}, {5, 6, 0}};
    const elem_type *t = elem_type_find(types[_i]);
    for (unsigned rank = 1; rank <= 3; rank++) {
        const int64_t *shape = shapes[rank == 1 ? 1 : rank == 2 ? 2 : 0];
        char data[30 * 4], back[30 * 4] = {0};
        npy array;
        elem_fill_random(t, data, 30, 1);
        ck_assert(npy_write(path, t, rank, shape, data, why, sizeof why));
        ck_assert_msg(npy_read(path, &array, why, sizeof why), "%s", why);
        ck_assert_uint_eq(array.rank, rank);
        ck_assert_mem_eq(array.shape, shape, rank * sizeof *shape);
        ck_assert_uint_eq(array.n, 30);
        ck_assert(npy_convert(&array, t, back, why, sizeof why));
        ck_assert_mem_eq(data, back, elem_bytes(t, 30));
        free(array.data);
    }
}
END_TEST

START_TEST(what_is_written_is_what_numpy_writes)
{
    const float data[2] = {1, 2};
    char file[256] = "";
    ck_assert(npy_write(path, elem_type_find("f32"), 1, (int64_t[]){2}, data, why, sizeof why));
    FILE *f = fopen(path, "rb");
    size_t n = fread(file, 1, sizeof file, f);
    fclose(f);
    ck_assert_mem_eq(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    ck_assert_msg(strstr(file + 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }") ==
                  file + 10, "%s", file + 10);
    ck_assert_int_eq(file[127], '\n');
    ck_assert_uint_eq(n, 128 + sizeof data);
}
END_TEST

START_TEST(doubles_are_rounded_on_reading)
{
    const double data[] = {0.1, -INFINITY};
    uint16_t f16[2];
    npy array;
    put_array("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 2), }\n", data, sizeof data);
    ck_assert(npy_read(path, &array, why, sizeof why));
    ck_assert(npy_convert(&array, elem_type_find("f16"), f16, why, sizeof why));
    ck_assert_uint_eq(f16[0], 0x2e66);
    ck_assert_uint_eq(f16[1], 0xfc00);
    free(array.data);
}
END_TEST

START_TEST(bf16_is_read_from_its_bits_alone)
{
    static const char *const descrs[] = {"<u2", "|V2", "<V2"};
    for (size_t i = 0; i < 3; i++) {
        char header[100];
        const uint16_t one = 0x3f80;
        uint16_t got;
        float f32;
        npy array;
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (), }\n",
                 descrs[i]);
        put_array(header, &one, sizeof one);
        ck_assert(npy_read(path, &array, why, sizeof why));
        ck_assert_uint_eq(array.rank, 0);
        ck_assert_uint_eq(array.n, 1);
        ck_assert(npy_convert(&array, elem_type_find("bf16"), &got, why, sizeof why));
        ck_assert_uint_eq(got, one);
        ck_assert(!npy_convert(&array, elem_type_find("f32"), &f32, why, sizeof why));
        free(array.data);
    }
}
END_TEST

START_TEST(integers_of_any_size_are_converted)
{
    const int8_t data[] = {-8, 7, 0, 1, 5, 6};
    uint8_t i4[3] = {0}, u4[3] = {0}, u8[6];
    npy array;
    put_array("{'descr': '|i1', 'fortran_order': False, 'shape': (6,), }\n", data, sizeof data);
    ck_assert(npy_read(path, &array, why, sizeof why));
    ck_assert(npy_convert(&array, elem_type_find("i4"), i4, why, sizeof why));
    ck_assert_mem_eq(i4, ((uint8_t[]){0x78, 0x10, 0x65}), 3);
    *(int8_t *)array.data = 8;
    ck_assert(npy_convert(&array, elem_type_find("u4"), u4, why, sizeof why));
    ck_assert_mem_eq(u4, ((uint8_t[]){0x78, 0x10, 0x65}), 3);
    ck_assert(npy_convert(&array, elem_type_find("u8"), u8, why, sizeof why));
    ck_assert_mem_eq(u8, ((uint8_t[]){8, 7, 0, 1, 5, 6}), 6);
    free(array.data);
}
END_TEST

START_TEST(numbers_that_do_not_fit_are_refused)
{
    static const struct {
        const char *type;
        double number;
    } cases[] = {{"u4", 20},    {"u4", -1},    {"i4", 8},       {"i4", -9},     {"i8", 128},    {"u8", -1},
                 {"u8", 256},   {"i32", 2.5},  {"i32", 0x1p31}, {"i8", NAN},    {"i8", 0.5},    {"f16", 65520},
                 {"f16", -1e6}, {"bf16", 1e39}, {"e4m3", 465},  {"e5m2", 1e9},  {"f32", 1e300}, {"i32", INFINITY}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double data[] = {1, 2, 3, 4, 5, cases[i].number};
        char out[sizeof data], expected[64];
        npy array;
        put_array("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }\n", data, sizeof data);
        ck_assert(npy_read(path, &array, why, sizeof why));
        ck_assert_msg(!npy_convert(&array, elem_type_find(cases[i].type), out, why, sizeof why), "%s %g", cases[i].type,
                      cases[i].number);
        snprintf(expected, sizeof expected, "has %.15g at [1, 2], which %s cannot hold", cases[i].number, cases[i].type);
        ck_assert_str_eq(why, expected);
        free(array.data);
    }
}
END_TEST

START_TEST(eighths_are_read_from_their_bits_alone)
{
    const uint8_t one = 0x38;
    uint8_t e4m3, i8;
    npy array;
    put_array("{'descr': '|V1', 'fortran_order': False, 'shape': (), }\n", &one, sizeof one);
    ck_assert(npy_read(path, &array, why, sizeof why));
    ck_assert(npy_convert(&array, elem_type_find("e4m3"), &e4m3, why, sizeof why));
    ck_assert_uint_eq(e4m3, one);
    ck_assert(!npy_convert(&array, elem_type_find("i8"), &i8, why, sizeof why));
    ck_assert(!npy_convert(&array, elem_type_find("bf16"), &i8, why, sizeof why));
    free(array.data);
}
END_TEST

/* As Python reads them, and other programs write them. */
START_TEST(a_header_is_a_python_literal)
{
    static const char *const headers[] = {
        "{\"shape\":(2,1),\"fortran_order\":False,\"descr\":\"<f4\"}",
        " { 'descr' : '<f4' ,\n\t'fortran_order' : False , 'shape' : ( 1 , 2 , ) , } \n\n"};
    for (size_t i = 0; i < 2; i++) {
        npy array;
        put_array(headers[i], (float[]){1, 2}, 8);
        ck_assert_msg(npy_read(path, &array, why, sizeof why), "%s", why);
        ck_assert_uint_eq(array.rank, 2);
        ck_assert_uint_eq(array.n, 2);
        free(array.data);
    }
}
END_TEST

START_TEST(a_zero_byte_does_not_end_a_header)
{
    put("\x93NUMPY\x01\x00\x40\x00"
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\0     \n\0\0\0\0", 78);
    ck_assert_str_eq(read_error(), "its header has a 0 byte");
}
END_TEST

START_TEST(version_2_is_read)
{
    npy array;
    char file[100] = "\x93NUMPY\x02\x00\x3a\x00\x00\x00"
                     "{'shape': (1,), 'fortran_order': False, 'descr': '<f2'}  \n\x00\x3c";
    put(file, 12 + 58 + 2);
    ck_assert_msg(npy_read(path, &array, why, sizeof why), "%s", why);
    ck_assert_int_eq(array.shape[0], 1);
    ck_assert_uint_eq(((uint16_t *)array.data)[0], 0x3c00);
    free(array.data);
}
END_TEST

#define ODD "its header is not an array's"

static const struct {
    const char *header, *message;
} faults[] = {
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "its elements are not one of"},
    {"{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", "its elements are not one of"},
    {"{'descr': '<complex128', 'fortran_order': False, 'shape': (1,), }", "its elements are not one of"},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "it is in Fortran order"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,", "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}",
     "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296)}",
     "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
     "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "it is cut short"},
    {"{'descr': '<f4', 'fortran_order': False}", ODD},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1), }", "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }", "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (,), }", "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (+1,), }", "its shape cannot be read"},
    {"{'descr': '<f4', 'fortran_order': Falsehood, 'shape': (2,), }", ODD},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }", ODD},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'x': 1}", ODD},
    {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", ODD},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}", ODD},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", ODD},
    {"x {'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", ODD},
    {"{'x': \"'descr': '<f4', 'fortran_order': False, 'shape': (2,)\"}", ODD},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)", ODD},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "more follows its elements"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 2)}", "more follows its elements"},
    {"{}", ODD},
    {"", ODD},
};

START_TEST(a_bad_header_is_told)
{
    put_array(faults[_i].header, "12345678", 8);
    const char *got = read_error();
    ck_assert_msg(!strncmp(got, faults[_i].message, strlen(faults[_i].message)), "%s", got);
}
END_TEST

START_TEST(other_files_are_told)
{
    put("", 0);
    ck_assert_str_eq(read_error(), "this is not a .npy file");
    put("PK\x03\x04 something else", 20);
    ck_assert_str_eq(read_error(), "this is not a .npy file");
    put("\x93NUMPY\x04\x00\x10\x00", 10);
    ck_assert_str_eq(read_error(), "its version is neither 1 nor 2");
    put("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12);
    ck_assert_str_eq(read_error(), "its header is too large");
    put("\x93NUMPY\x01\x00\x10\x00", 10);
    ck_assert_str_eq(read_error(), "it is cut short");
    unlink(path);
    ck_assert_str_eq(read_error(), "No such file or directory");
    ck_assert(!npy_write("/nowhere/x.npy", elem_type_find("f32"), 0, NULL, &why, why, sizeof why));
    ck_assert_str_eq(why, "/nowhere/x.npy: No such file or directory");
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("npy");
    TCase *tcase = tcase_create("npy");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, an_array_survives_a_round_trip, 0, 10);
    tcase_add_test(tcase, what_is_written_is_what_numpy_writes);
    tcase_add_test(tcase, doubles_are_rounded_on_reading);
    tcase_add_test(tcase, bf16_is_read_from_its_bits_alone);
    tcase_add_test(tcase, integers_of_any_size_are_converted);
    tcase_add_test(tcase, numbers_that_do_not_fit_are_refused);
    tcase_add_test(tcase, eighths_are_read_from_their_bits_alone);
    tcase_add_test(tcase, a_header_is_a_python_literal);
    tcase_add_test(tcase, a_zero_byte_does_not_end_a_header);
    tcase_add_test(tcase, version_2_is_read);
    tcase_add_loop_test(tcase, a_bad_header_is_told, 0, (int)(sizeof faults / sizeof faults[0]));
    tcase_add_test(tcase, other_files_are_told);
    suite_add_tcase(suite, tcase);
    return suite;
}

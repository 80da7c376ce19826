/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/json.h"

#include <check.h>
#include <string.h>

#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;
static size_t bad;

static void setup(void)
{
    arena = tcc_arena_create(NULL);
    ck_assert_ptr_nonnull(arena);
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

static const tcc_json *parse(const char *text)
{
    return tcc_json_parse(arena, text, strlen(text), &bad);
}

START_TEST(a_tree_is_read)
{
    const tcc_json *v = parse(" {\"a\" : [1, -2.5e1,true,false , null],\n\t\"b\":{}, \"\":[ ] }\r\n");
    ck_assert_ptr_nonnull(v);
    ck_assert_int_eq(v->kind, TCC_JSON_OBJECT);
    ck_assert_uint_eq(v->n, 3);
    const tcc_json *a = tcc_json_member(v, "a");
    ck_assert_int_eq(a->kind, TCC_JSON_ARRAY);
    ck_assert_uint_eq(a->n, 5);
    ck_assert_int_eq(tcc_json_element(a, 0)->kind, TCC_JSON_NUMBER);
    ck_assert(tcc_json_element(a, 1)->number == -25);
    ck_assert_int_eq(tcc_json_element(a, 2)->kind, TCC_JSON_BOOL);
    ck_assert(tcc_json_element(a, 2)->number == 1);
    ck_assert(tcc_json_element(a, 3)->number == 0);
    ck_assert_int_eq(tcc_json_element(a, 4)->kind, TCC_JSON_NULL);
    ck_assert_ptr_null(tcc_json_element(a, 5));
    ck_assert_int_eq(tcc_json_member(v, "b")->kind, TCC_JSON_OBJECT);
    ck_assert_uint_eq(tcc_json_member(v, "")->n, 0);
    ck_assert_ptr_null(tcc_json_member(v, "c"));
    ck_assert_ptr_null(tcc_json_member(a, "a"));
    ck_assert_ptr_null(tcc_json_element(v, 0));
    ck_assert_ptr_null(tcc_json_member(NULL, "a"));
    ck_assert_ptr_null(tcc_json_element(NULL, 0));
}
END_TEST

START_TEST(of_two_members_of_one_name_the_first_counts)
{
    ck_assert(tcc_json_member(parse("{\"a\":1,\"a\":2}"), "a")->number == 1);
}
END_TEST

static const struct {
    const char *text, *string;
} strings[] = {
    {"\"\"", ""},
    {"\"a b\"", "a b"},
    {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
    {"\"\\u0041\\u00e9\\u20AC\"", "A\xc3\xa9\xe2\x82\xac"},
    {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
    {"\"\\uDBFF\\uDFFF\"", "\xf4\x8f\xbf\xbf"},
    {"\"\xc3\xa9 \xff\"", "\xc3\xa9 \xff"}, /* as they are */
    {"\"\x7f\"", "\x7f"},
};

START_TEST(strings_are_decoded)
{
    const tcc_json *v = parse(strings[_i].text);
    ck_assert_ptr_nonnull(v);
    ck_assert_int_eq(v->kind, TCC_JSON_STRING);
    ck_assert_str_eq(v->string, strings[_i].string);
}
END_TEST

/* Each is not JSON, from this byte on. */
static const struct {
    const char *text;
    size_t bad;
} faults[] = {
    {"", 0},
    {"  ", 2},
    {"nul", 0},
    {"nulll", 4},
    {"True", 0},
    {"1 2", 2},
    {"01", 1},
    {"+1", 0},
    {".5", 0},
    {"-", 1},
    {"1.", 2},
    {"1e", 2},
    {"1e+", 3},
    {"0x10", 1},
    {"NaN", 0},
    {"1e999", 0},
    {"[", 1},
    {"[1", 2},
    {"[1,", 3},
    {"[1,]", 3},
    {"[,1]", 1},
    {"[1 2]", 3},
    {"[1}", 2},
    {"{", 1},
    {"{1:2}", 1},
    {"{\"a\"}", 4},
    {"{\"a\":}", 5},
    {"{\"a\":1,}", 7},
    {"{a:1}", 1},
    {"\"", 1},
    {"\"a", 2},
    {"\"a\\", 3},
    {"\"a\\\"", 4},
    {"\"\\x\"", 2},
    {"\"\\u12\"", 5},
    {"\"\\u12g4\"", 5},
    {"\"\\u0000\"", 3},
    {"\"\\ud800\"", 3},
    {"\"\\ude00\"", 3},
    {"\"\\ud800\\u0041\"", 3},
    {"\"a\nb\"", 2},
    {"'a'", 0},
    {"[1] x", 4},
    {"// c\n1", 0},
    {"\xef\xbb\xbf" "1", 0},
};

START_TEST(anything_else_is_refused)
{
    ck_assert_ptr_null(parse(faults[_i].text));
    ck_assert_uint_eq(bad, faults[_i].bad);
}
END_TEST

START_TEST(a_text_ends_where_it_is_said_to)
{
    ck_assert_ptr_nonnull(tcc_json_parse(arena, "12]", 2, &bad));
    ck_assert_ptr_null(tcc_json_parse(arena, "\"a\"", 2, &bad));
    ck_assert_ptr_null(tcc_json_parse(arena, "true", 3, &bad));
    ck_assert_ptr_null(tcc_json_parse(arena, "\"\\u0041\"", 5, &bad));
    ck_assert_ptr_null(tcc_json_parse(arena, "1\0", 2, &bad));
}
END_TEST

START_TEST(depth_is_limited)
{
    enum { MOST = 64 };
    char text[2 * MOST + 3];
    for (int n = MOST; n <= MOST + 1; n++) {
        memset(text, '[', (size_t)n);
        memset(text + n, ']', (size_t)n);
        text[2 * n] = '\0';
        ck_assert_int_eq(parse(text) != NULL, n == MOST);
    }
}
END_TEST

START_TEST(memory_may_run_out)
{
    char text[20000];
    memset(text, 'x', sizeof text);
    text[0] = text[sizeof text - 1] = '"';
    jmp_buf oom;
    tcc_arena_set_oom(arena, &oom);
    if (!setjmp(oom)) {
        oom_fail_after(0);
        tcc_json_parse(arena, text, sizeof text, &bad);
        oom_fail_after(-1);
        ck_abort_msg("no allocation failed");
    }
    oom_fail_after(-1);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("json");
    TCase *t = tcase_create("json");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_tree_is_read);
    tcase_add_test(t, of_two_members_of_one_name_the_first_counts);
    tcase_add_loop_test(t, strings_are_decoded, 0, sizeof strings / sizeof *strings);
    tcase_add_loop_test(t, anything_else_is_refused, 0, sizeof faults / sizeof *faults);
    tcase_add_test(t, a_text_ends_where_it_is_said_to);
    tcase_add_test(t, depth_is_limited);
    tcase_add_test(t, memory_may_run_out);
    suite_add_tcase(s, t);
    return s;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/runtime/json.h"

#include <check.h>

#include "tests/unit/suite.h"

static const char text[] = " { \"a\" : [ 1, -2.5e1, \"x,]}\\\"\" , {\"b\":[[],{}]}, null ] ,\n"
                           "\"n\":3,\"s\":\"M\",\"deep\":{\"a\":{\"a\":4}},\"last\":true}";
static const char *const root = text + 1;

static double number(const char *value)
{
    double x = -1;
    ck_assert(json_number(value, &x));
    return x;
}

START_TEST(members_are_found_at_their_level)
{
    ck_assert(number(json_member(root, "n")) == 3);
    const char *deep = json_member(root, "deep");
    ck_assert(number(json_member(json_member(deep, "a"), "a")) == 4);
    ck_assert_ptr_null(json_member(root, "b"));
    ck_assert_ptr_null(json_member(root, "las"));
    ck_assert_int_eq(*json_member(root, "last"), 't');
    ck_assert_ptr_null(json_member(json_member(root, "n"), "n"));
    ck_assert_ptr_null(json_member(NULL, "n"));
    ck_assert_ptr_null(json_member("{}", "n"));
}
END_TEST

START_TEST(elements_are_counted_over_any_value)
{
    const char *a = json_member(root, "a");
    ck_assert(number(json_element(a, 0)) == 1);
    ck_assert(number(json_element(a, 1)) == -25);
    ck_assert(json_is_string(json_element(a, 2), "x,]}\\\""));
    ck_assert_int_eq(*json_element(json_member(json_element(a, 3), "b"), 1), '{');
    ck_assert_int_eq(*json_element(a, 4), 'n');
    ck_assert_ptr_null(json_element(a, 5));
    ck_assert_ptr_null(json_element(root, 0));
    ck_assert_ptr_null(json_element("[]", 0));
    ck_assert_ptr_null(json_element(NULL, 0));
}
END_TEST

START_TEST(values_have_kinds)
{
    double x;
    ck_assert(json_is_string(json_member(root, "s"), "M"));
    ck_assert(!json_is_string(json_member(root, "s"), "MN"));
    ck_assert(!json_is_string(json_member(root, "n"), "3"));
    ck_assert(!json_is_string(NULL, ""));
    ck_assert(!json_number(json_member(root, "s"), &x));
    ck_assert(!json_number(json_member(root, "last"), &x));
    ck_assert(!json_number(NULL, &x));
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("json");
    TCase *tcase = tcase_create("json");
    tcase_add_test(tcase, members_are_found_at_their_level);
    tcase_add_test(tcase, elements_are_counted_over_any_value);
    tcase_add_test(tcase, values_have_kinds);
    suite_add_tcase(suite, tcase);
    return suite;
}

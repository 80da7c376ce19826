/* Entries of PTX one by one.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/ptx.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

#define HEAD ".version 8.0\n.extern .shared .b8 s[];\n"
#define ENTRY(name) ".visible .entry " name "(\n\t.param .u32 p\n)\n{ // }\n{\nmov.b64 %rd, {%r1, %r2};\n}\n\tret;\n\n}\n"
#define TAIL "\t.file\t1 \"f.tile\"\n"
static const char two[] = HEAD ENTRY("f") "\t// .globl\tf__generic\n\n" ENTRY("f__generic") TAIL;

START_TEST(a_part_has_what_is_around_all)
{
    ck_assert(tcc_ptx_has_parts(two));
    char *f = tcc_ptx_part(two, "f"), *generic = tcc_ptx_part(two, "f__generic");
    ck_assert_str_eq(f, HEAD ENTRY("f") TAIL);
    ck_assert_str_eq(generic, HEAD ENTRY("f__generic") TAIL);
    ck_assert_ptr_null(tcc_ptx_part(two, "f__"));
    free(f);
    free(generic);
}
END_TEST

START_TEST(parts_join_to_the_whole)
{
    const char *const parts[] = {HEAD ENTRY("f") TAIL, HEAD ENTRY("f__generic") TAIL, HEAD ENTRY("g") TAIL};
    char *one = tcc_ptx_join(parts, 1), *three = tcc_ptx_join(parts, 3);
    ck_assert_str_eq(one, parts[0]);
    ck_assert_str_eq(three, HEAD ENTRY("f") "\n" ENTRY("f__generic") "\n" ENTRY("g") TAIL);
    ck_assert_ptr_null(tcc_ptx_join((const char *const[]){HEAD}, 1));
    free(one);
    free(three);
}
END_TEST

START_TEST(names_are_compared_whole)
{
    const char *f = strstr(two, ".visible"), *generic = strstr(f + 1, ".visible");
    for (const char *from = two; *from; from++) {
        ck_assert_ptr_eq(tcc_ptx_find(two, from, "f"), f);
        ck_assert_ptr_eq(tcc_ptx_find(two, from, "f__generic"), generic);
    }
    ck_assert_ptr_null(tcc_ptx_find(two, f, "f__"));
    ck_assert_ptr_null(tcc_ptx_find(two, generic, "__generic"));
    ck_assert_ptr_null(tcc_ptx_find("", "", "f"));
}
END_TEST

START_TEST(comments_are_passed_over)
{
    const char *text = HEAD ".visible .entry f()\n{\n// .visible .entry x(\n\tret; // }{\n}\n" ENTRY("g") TAIL;
    ck_assert(tcc_ptx_has_parts(text));
    char *g = tcc_ptx_part(text, "g");
    ck_assert_str_eq(g, HEAD ENTRY("g") TAIL);
    ck_assert_ptr_null(tcc_ptx_part(text, "x"));
    ck_assert(!tcc_ptx_has_parts(HEAD ENTRY("g") ".visible .entry f()\n{\n// }")); /* and the text ends */
    free(g);
}
END_TEST

static const char *const whole[] = {
    "",
    HEAD ENTRY("f") TAIL,                                  /* one alone */
    HEAD ENTRY("f") ".global .b32 x;\n" ENTRY("g"),        /* something between them */
    HEAD ENTRY("f") ENTRY("g") ".visible .entry h()\n{\n", /* one that does not end */
    ".visible .entry f()\n.visible .entry g()\n",          /* without bodies */
};

START_TEST(other_texts_stay_whole)
{
    ck_assert(!tcc_ptx_has_parts(whole[_i]));
}
END_TEST

START_TEST(what_a_later_entry_declares_is_before_all)
{
    static const char *const texts[] = {
        ".version 8.0\n.target sm_90a\n\n.visible .entry a()\n{\n\tret;\n}\n",
        ".version 8.0\n.target sm_90a\n.extern .shared .b8 s[];\n\n.visible .entry b()\n{\n\tret;\n}\n",
    };
    char *joined = tcc_ptx_join(texts, 2);
    const char *declared = strstr(joined, ".extern .shared .b8 s[];"), *a = strstr(joined, ".entry a()");
    ck_assert(declared && a && declared < a && strstr(joined, ".entry b()") > a);
    free(joined);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("ptx");
    TCase *t = tcase_create("ptx");
    tcase_add_test(t, what_a_later_entry_declares_is_before_all);
    tcase_add_test(t, a_part_has_what_is_around_all);
    tcase_add_test(t, parts_join_to_the_whole);
    tcase_add_test(t, names_are_compared_whole);
    tcase_add_test(t, comments_are_passed_over);
    tcase_add_loop_test(t, other_texts_stay_whole, 0, sizeof whole / sizeof *whole);
    suite_add_tcase(s, t);
    return s;
}

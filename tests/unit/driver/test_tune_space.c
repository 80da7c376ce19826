/* The schedules that a search tries.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/tune_space.h"

#include <check.h>
#include <string.h>

#include "ir/target.h"
#include "support/str.h"
#include "tests/unit/suite.h"

static const char *const targets[] = {"sm_90a", "sm_80", "gfx1100"};

/* One after the other from every neighbour of the last, so that all keys are said that can be. */
START_TEST(an_order_without_groups_has_no_width)
{
    static const char *const orders[] = {"raster row;", "raster column;", "raster hilbert;"};
    const tcc_target *target = tcc_target_find(targets[_i]);
    const tcc_tune_subject subject = {.kernel = "f", .target = target, .axes = {"m", "n", "k"}};
    bool seen[3] = {false, false, false}, grouped = false;
    tcc_point p, next;
    ck_assert(tcc_space_at(target, 0, &p));
    for (size_t i = 0; tcc_space_neighbour(target, &p, i, &next); i++, p = next) {
        tcc_str text = {0};
        tcc_space_print(&text, &subject, &next);
        bool wide = strstr(tcc_str_text(&text), "group ");
        ck_assert_msg(!wide || !strstr(tcc_str_text(&text), "raster "), "%s", tcc_str_text(&text));
        grouped |= wide;
        for (int o = 0; o < 3; o++)
            seen[o] |= strstr(tcc_str_text(&text), orders[o]) != NULL;
        tcc_str_free(&text);
    }
    ck_assert(grouped && seen[0] && seen[1] && seen[2]);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("tune_space");
    TCase *t = tcase_create("tune_space");
    tcase_add_loop_test(t, an_order_without_groups_has_no_width, 0, sizeof targets / sizeof *targets);
    suite_add_tcase(s, t);
    return s;
}

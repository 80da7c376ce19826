/* GPUs and architectures that are not targets.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/nearest_target.h"

#include <check.h>

#include "ir/target.h"
#include "tests/unit/suite.h"

START_TEST(names_of_gpus_have_a_nearest_target)
{
    static const struct {
        const char *name, *target, *how;
    } cases[] = {
        {"h100", "sm_90a", "which is its architecture"},
        {"NVIDIA H200", "sm_90a", "which is its architecture"},
        {"RTX 4090", "sm_89", "which is its architecture"},
        {"GeForce RTX-5090", "sm_120", "which is its architecture"},
        {"MI300X", "gfx1100", "whose code it does not run"},
        {"AMD Radeon RX 7900 XTX", "gfx1100", "which is its architecture"},
        {"sm_103", "sm_100", "whose code it runs"},
        {"sm_100a", "sm_100", "whose code it runs"},
        {"compute_121", "sm_120", "whose code it runs"},
        {"sm_35", "sm_50", "whose code it does not run"},
        {"gfx942", "gfx1100", "whose code it does not run"},
        {"gfx90a", "gfx1100", "whose code it does not run"},
        {"gfx1250", "gfx1201", "whose code it does not run"},
        {"gfx11-generic", "gfx1100", "whose code it does not run"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tcc_nearest_target near = tcc_nearest_target_find(cases[i].name);
        ck_assert_msg(near.target && near.how, "%s", cases[i].name);
        ck_assert_str_eq(near.target, cases[i].target);
        ck_assert_str_eq(near.how, cases[i].how);
        ck_assert_ptr_nonnull(tcc_target_find(near.target));
    }
}
END_TEST

START_TEST(targets_may_be_written_otherwise)
{
    static const char *const names[] = {"SM_90A", "sm90a", "compute_90a", "sm-90a", " sm_90a", "sm_90a"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tcc_nearest_target near = tcc_nearest_target_find(names[i]);
        ck_assert_ptr_nonnull(near.target);
        ck_assert_str_eq(near.target, "sm_90a");
        ck_assert_ptr_null(near.how);
    }
}
END_TEST

START_TEST(other_names_have_none)
{
    static const char *const names[] = {
        "", "_", "sm_1", "gfx11", "cpu", "h", "100", "sm", "h100 h200", "nvidia", "compute", "amd",
        "h100xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_msg(!tcc_nearest_target_find(names[i]).target, "%s", names[i]);
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("nearest_target");
    TCase *tcase = tcase_create("nearest_target");
    tcase_add_test(tcase, names_of_gpus_have_a_nearest_target);
    tcase_add_test(tcase, targets_may_be_written_otherwise);
    tcase_add_test(tcase, other_names_have_none);
    suite_add_tcase(suite, tcase);
    return suite;
}

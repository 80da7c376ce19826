/* What the verifier sees in IR that no text gives: wrong links and counts, foreign values, levels.
 * Rules that a text can break are in tests/ir/verify_*.tir.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <check.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;
static tcc_ir *ir;
static tcc_func *f;
static tcc_builder b;
static const tcc_type *i32;
static tcc_value *x, *sum;
static tcc_str messages;

/* func @f(%x: i32) { %sum = arith.add %x, %x : i32; return } */
static void setup(void)
{
    arena = tcc_arena_create(NULL);
    ir = tcc_ir_create(arena);
    f = tcc_func_create(ir, "f", (tcc_loc){0, 0});
    b = tcc_builder_at_end(f->body);
    i32 = tcc_type_scalar(ir, TCC_i32);
    x = tcc_block_add_arg(f->body, i32, "x");
    sum = TCC_EMIT(&b, arith_add, i32, x, x);
    sum->name = "sum";
    TCC_EMIT_V(&b, func_return, NULL);
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
    tcc_str_free(&messages);
}

static void keep(const tcc_diagnostic *d, void *user)
{
    (void)user;
    tcc_str_printf(&messages, "%u:%u: %s\n", d->line, d->column, d->message);
}

static bool verify(unsigned levels)
{
    tcc_diag diag = {.fn = keep};
    tcc_str_free(&messages);
    return tcc_ir_verify(ir, levels, &diag);
}

static void ck_refused(const char *text)
{
    ck_assert(!verify(TCC_LEVEL_ALL));
    ck_assert_str_eq(tcc_str_text(&messages), text);
}

START_TEST(the_plain_function_is_valid)
{
    ck_assert(verify(TCC_LEVEL_ALL));
    ck_assert(verify(TCC_LEVEL_TARGET));
    ck_assert_uint_eq(messages.len, 0);
}
END_TEST

START_TEST(ops_keep_to_their_levels)
{
    tcc_builder before = tcc_builder_before(sum->def);
    tcc_value *tid = TCC_EMIT(&before, nvvm_tid, i32, NULL);
    tid->name = "tid";
    ck_assert(verify(TCC_LEVEL_TARGET));
    ck_assert(!verify(TCC_LEVEL_TENSOR | TCC_LEVEL_TILE));
    ck_assert_str_eq(tcc_str_text(&messages),
                     "0:0: 'nvvm.tid': belongs to the target level, not to the tensor or tile "
                     "level, in: %tid = nvvm.tid : i32\n");
}
END_TEST

START_TEST(errors_are_where_the_op_is)
{
    sum->def->loc = (tcc_loc){3, 7};
    tcc_attr_set_int(ir, &sum->def->attrs, "k", 1);
    ck_refused("3:7: 'arith.add': unknown attribute 'k'\n");
}
END_TEST

START_TEST(use_counts_are_checked)
{
    sum->n_uses = 1;
    ck_refused("0:0: 'arith.add': has a result or argument whose count of uses is wrong, in: "
               "%sum = arith.add %x, %x : i32\n");
    sum->n_uses = 0;
    x->n_uses = 1;
    ck_refused("0:0: function '@f' has a parameter whose count of uses is wrong\n");
}
END_TEST

START_TEST(links_are_checked)
{
    tcc_op *ret = f->body->last;
    ret->prev = NULL;
    ck_assert(!verify(TCC_LEVEL_ALL));
    ck_assert_ptr_nonnull(strstr(messages.data, "'arith.add': is linked wrongly"));
    ret->prev = sum->def;
    sum->index = 1;
    ck_assert(!verify(TCC_LEVEL_ALL));
    sum->index = 0;
    x->index = 1;
    ck_refused("0:0: function '@f' has a block argument that is linked wrongly\n");
}
END_TEST

START_TEST(values_of_another_function_are_not_visible)
{
    tcc_func *g = tcc_func_create(ir, "g", (tcc_loc){0, 0});
    tcc_builder in = tcc_builder_at_end(g->body);
    tcc_value *y = tcc_block_add_arg(g->body, i32, "y");
    TCC_EMIT_V(&in, func_return, NULL);
    tcc_op_set_operand(sum->def, 1, y);
    ck_assert(!verify(TCC_LEVEL_ALL));
    ck_assert_ptr_nonnull(strstr(messages.data, "'arith.add': b is not defined before it here, in: "
                                                "%sum = arith.add %x, %unknown : i32"));
}
END_TEST

START_TEST(a_value_is_used_after_its_definition)
{
    tcc_builder before = tcc_builder_before(sum->def);
    TCC_EMIT(&before, arith_neg, i32, sum)->name = "early";
    ck_refused("0:0: 'arith.neg': a is not defined before it here, in: "
               "%early = arith.neg %sum : i32\n");
}
END_TEST

/* Text shows only as many errors as people read. */
START_TEST(a_hundred_errors_are_shown)
{
    tcc_builder before = tcc_builder_before(sum->def);
    for (int i = 0; i < 1000; i++)
        tcc_op_create(&before, TCC_OP_vec_undef, 0, NULL, 1, &i32);
    ck_assert(!verify(TCC_LEVEL_ALL));
    unsigned n = 0;
    for (const char *p = messages.data; (p = strchr(p, '\n')); p++)
        n++;
    ck_assert_uint_eq(n, TCC_MAX_ERRORS);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("verify");
    TCase *tc = tcase_create("verify");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_plain_function_is_valid);
    tcase_add_test(tc, ops_keep_to_their_levels);
    tcase_add_test(tc, errors_are_where_the_op_is);
    tcase_add_test(tc, use_counts_are_checked);
    tcase_add_test(tc, links_are_checked);
    tcase_add_test(tc, values_of_another_function_are_not_visible);
    tcase_add_test(tc, a_value_is_used_after_its_definition);
    tcase_add_test(tc, a_hundred_errors_are_shown);
    suite_add_tcase(s, tc);
    return s;
}

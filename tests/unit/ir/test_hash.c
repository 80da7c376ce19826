/* A function's hash changes with whatever its text shows, and with nothing else.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/hash.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/suite.h"

static const char text[] = "module {target = sm_90a}\n"
                           "func @f(%a: i32, %b: i32) {dims = [M, K], x = 1} loc(1:1) {\n"
                           "  %c = arith.add %a, %b : i32 loc(2:1)\n"
                           "  %s = arith.const {value = 0.0} : f32\n"
                           "  %r = scf.for %a, %b, %c, %s {stages = 2, warps = [4, 1]} : f32 {\n"
                           "  ^(%i: i32, %x: f32):\n"
                           "    %y = arith.add %x, %x : f32\n"
                           "    scf.yield %y\n"
                           "  }\n"
                           "  return\n"
                           "}\n";

static tcc_arena *arena;
static tcc_func *f;

static void setup(void)
{
    tcc_diag silent = {0};
    arena = tcc_arena_create(NULL);
    tcc_ir *ir = tcc_ir_parse(arena, text, strlen(text), &silent);
    ck_assert(ir != NULL);
    f = ir->first;
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

static tcc_op *nth_op(unsigned n)
{
    tcc_op *op = f->body->first;
    while (n--)
        op = tcc_walk_next(op, f->body);
    return op;
}

/* clang-format off */
static void function_attr(void) { tcc_attr_set_int(f->ir, &f->attrs, "x", 2); }
static void function_loc(void) { f->loc.column++; }
static void param_name(void) { f->body->args[0]->name = tcc_ir_name(f->ir, "other"); }
static void op_loc(void) { nth_op(0)->loc.line++; }
static void operand(void) { tcc_op_set_operand(nth_op(0), 0, f->body->args[1]); }
static void opcode(void) { nth_op(0)->code = TCC_OP_arith_sub; }
static void result_name(void) { nth_op(0)->results[0].name = NULL; }
static void result_type(void) { nth_op(1)->results[0].type = tcc_type_scalar(f->ir, TCC_f16); }
static void number(void) { ((tcc_attr *)&tcc_attr_find(&nth_op(1)->attrs, "value")->value)->f = -0.0; }
static void number_in_list(void) { tcc_attr_set_ints(f->ir, &nth_op(2)->attrs, "warps", 2, (int64_t[]){4, 2}); }
static void length_of_list(void) { tcc_attr_set_ints(f->ir, &nth_op(2)->attrs, "warps", 1, (int64_t[]){4}); }
static void attr_removed(void) { tcc_attr_remove(&nth_op(2)->attrs, "stages"); }
static void op_in_region(void) { nth_op(3)->code = TCC_OP_arith_mul; }
static void name_in_region(void) { nth_op(2)->regions[0]->args[1]->name = tcc_ir_name(f->ir, "z"); }
static void word_in_list(void)
{
    tcc_attr_set_strs(f->ir, &f->attrs, "dims", 2, (const char *const[]){"M", "N"});
}
/* clang-format on */

static void (*const changes[])(void) = {
    function_attr, function_loc, param_name,     op_loc,         operand,      opcode,       result_name, result_type,
    number,        word_in_list, number_in_list, length_of_list, attr_removed, op_in_region, name_in_region,
};

static char *printed(void)
{
    tcc_str s = {0};
    tcc_func_print(&s, f, TCC_PRINT_LOCS);
    return tcc_str_take(&s);
}

START_TEST(it_changes_with_the_text)
{
    uint64_t before = tcc_func_hash(f);
    char *was = printed();
    ck_assert(tcc_func_hash(f) == before);
    changes[_i]();
    char *is = printed();
    ck_assert(strcmp(was, is));
    ck_assert(tcc_func_hash(f) != before);
    free(was);
    free(is);
}
END_TEST

START_TEST(it_is_the_same_after_a_change_and_back)
{
    uint64_t before = tcc_func_hash(f);
    tcc_value *a = nth_op(0)->operands[0];
    operand();
    tcc_attr_set_int(f->ir, &f->attrs, "x", 2);
    tcc_op_set_operand(nth_op(0), 0, a);
    tcc_attr_set_int(f->ir, &f->attrs, "x", 1);
    ck_assert(tcc_func_hash(f) == before);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("hash");
    TCase *t = tcase_create("hash");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, it_changes_with_the_text, 0, (int)(sizeof changes / sizeof *changes));
    tcase_add_test(t, it_is_the_same_after_a_change_and_back);
    suite_add_tcase(s, t);
    return s;
}

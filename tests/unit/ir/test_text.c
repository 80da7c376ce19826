/* IR as text: what tests/ir cannot say in a file, such as sizes, depths and memory that runs out.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;
static tcc_str messages;

static void setup(void)
{
    arena = tcc_arena_create(NULL);
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

static tcc_ir *parse_n(const char *text, size_t n)
{
    tcc_str_free(&messages);
    tcc_diag diag = {.file = "text", .source = text, .size = n, .fn = keep};
    return tcc_ir_parse(arena, text, n, &diag);
}

static tcc_ir *parse(const char *text)
{
    return parse_n(text, strlen(text));
}

static void ck_messages(const char *text)
{
    ck_assert_str_eq(tcc_str_text(&messages), text);
}

/* ---- parsing --------------------------------------------------------------------------- */

START_TEST(nothing_is_an_empty_module)
{
    tcc_ir *ir = parse("");
    ck_assert_ptr_nonnull(ir);
    ck_assert_ptr_null(ir->first);
    ck_assert_ptr_nonnull(parse("  // nothing at all"));
    ck_assert_ptr_null(parse("module"));
    ck_messages("1:7: expected '{', found the end of the text\n");
}
END_TEST

START_TEST(bytes_that_are_no_text_are_reported)
{
    ck_assert_ptr_null(parse_n("func @f(\0) {", 12));
    ck_messages("1:9: unexpected byte 0x00\n");
    ck_assert_ptr_null(parse("\xef\xbb\xbf"
                             "func @f() { return }"));
    ck_messages("1:1: unexpected byte 0xef\n");
}
END_TEST

/* `n` pieces of `open`, then `middle`, then n of `close`. */
static char *nest(size_t n, const char *open, const char *middle, const char *close)
{
    tcc_str s = {0};
    for (size_t i = 0; i < n; i++)
        tcc_str_puts(&s, open);
    tcc_str_puts(&s, middle);
    for (size_t i = 0; i < n; i++)
        tcc_str_puts(&s, close);
    return tcc_str_take(&s);
}

static void ck_nesting(size_t deepest, const char *before, const char *open, const char *middle,
                       const char *close, const char *after, const char *error)
{
    for (size_t extra = 0; extra < 2; extra++) {
        char *inner = nest(deepest + extra, open, middle, close);
        char *text = tcc_arena_printf(arena, "%s%s%s", before, inner, after);
        tcc_ir *ir = parse(text);
        ck_assert(!ir == (extra > 0));
        if (extra)
            ck_assert_msg(strstr(tcc_str_text(&messages), error), "%s", messages.data);
        free(inner);
    }
}

START_TEST(nesting_is_limited)
{
    ck_nesting(255, "func @f(%p: i1) {\n", "scf.if %p {\n", "", "}\n", "return }",
               "regions nest deeper than 256");
    ck_nesting(256, "module {a = ", "[", "1", "]", "}", "lists nest deeper than 256");
    char *deep = nest(1000000, "scf.if %p {", "", "");
    ck_assert_ptr_null(parse(tcc_arena_printf(arena, "func @f(%%p: i1) {%s", deep)));
    free(deep);
}
END_TEST

START_TEST(attributes_are_limited)
{
    tcc_str s = {0};
    tcc_str_puts(&s, "module {a0 = 0");
    for (int i = 1; i < 65; i++)
        tcc_str_printf(&s, ", a%d = 0", i);
    tcc_str_puts(&s, "}");
    ck_assert_ptr_null(parse(tcc_str_text(&s)));
    ck_assert_ptr_nonnull(strstr(tcc_str_text(&messages), "more than 64 attributes"));
    tcc_str_free(&s);
}
END_TEST

/* In a text that says no other file, ops are where they stand; else where loc() says, or nowhere.
 */
START_TEST(locations)
{
    static const char body[] = "func @f() {\n"
                               "  %0 = arith.const {value = 0} : i32\n"
                               "  return loc(7:9)\n"
                               "}\n";
    tcc_ir *ir = parse(body);
    const tcc_op *op = ir->first->body->first;
    ck_assert_uint_eq(ir->first->loc.line, 1);
    ck_assert_uint_eq(op->loc.line, 2);
    ck_assert_uint_eq(op->loc.column, 8);
    ck_assert_uint_eq(op->attrs.data[0].loc.column, 21);
    ck_assert_uint_eq(op->next->loc.line, 7);
    ck_assert_uint_eq(op->next->loc.column, 9);
    ir = parse(tcc_arena_printf(arena, "module {file = \"a.tile\"}\n%s", body));
    op = ir->first->body->first;
    ck_assert_uint_eq(ir->first->loc.line, 0);
    ck_assert_uint_eq(op->loc.line, 0);
    ck_assert_uint_eq(op->attrs.data[0].loc.line, 0);
    ck_assert_uint_eq(op->next->loc.line, 7);
}
END_TEST

/* ---- printing -------------------------------------------------------------------------- */

START_TEST(locations_print_on_demand)
{
    static const char text[] = "module {file = \"a.tile\"}\n\n"
                               "func @f(%p: i1) {k = 1} loc(1:2) {\n"
                               "  %0 = arith.const {value = 0} : i32 loc(3:4)\n"
                               "  scf.if %p loc(5:6) {\n"
                               "    scf.yield loc(7:8)\n"
                               "  }\n"
                               "  return\n"
                               "}\n";
    tcc_str s = {0};
    tcc_ir_print(&s, parse(text), TCC_PRINT_LOCS);
    ck_assert_str_eq(tcc_str_text(&s), text);
    tcc_str_free(&s);
    tcc_ir_print(&s, parse(text), 0);
    ck_assert_ptr_null(strstr(tcc_str_text(&s), "loc("));
    tcc_str_free(&s);
}
END_TEST

START_TEST(names_are_made_unique)
{
    tcc_ir *ir = tcc_ir_create(arena);
    tcc_func *f = tcc_func_create(ir, "f", (tcc_loc){0, 0});
    const tcc_type *i32 = tcc_type_scalar(ir, TCC_i32);
    const char *const names[] = {"acc", "acc", "acc_1", NULL, "acc", "not a name", "inf", "0", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        tcc_block_add_arg(f->body, i32, names[i]);
    tcc_builder b = tcc_builder_at_end(f->body);
    TCC_EMIT_V(&b, func_return, NULL);
    tcc_str once = {0}, twice = {0};
    tcc_ir_print(&once, ir, 0);
    ck_assert_str_eq(tcc_str_text(&once),
                     "func @f(%acc: i32, %acc_1: i32, %acc_1_1: i32, %0: i32, %acc_2: i32, "
                     "%1: i32, %inf: i32, %2: i32, %3: i32) {\n  return\n}\n");
    tcc_ir_print(&twice, parse(tcc_str_text(&once)), 0);
    ck_assert_str_eq(tcc_str_text(&once), tcc_str_text(&twice));
    tcc_str_free(&once);
    tcc_str_free(&twice);
}
END_TEST

START_TEST(an_op_prints_as_in_its_function)
{
    tcc_ir *ir = parse("func @f(%x: i32, %p: i1) {\n"
                       "  %0 = arith.neg %x : i32\n"
                       "  %1 = scf.if %p : i32 { scf.yield %0 } { scf.yield %x }\n"
                       "  return\n"
                       "}\n");
    tcc_str s = {0};
    tcc_op_print(&s, ir->first->body->first->next, 0);
    ck_assert_str_eq(tcc_str_text(&s), "%1 = scf.if %p : i32");
    tcc_str_free(&s);
}
END_TEST

/* ---- memory ---------------------------------------------------------------------------- */

static const char whole[] =
    "module {target = sm_90a}\n"
    "func @f(%n: i32, %p: i1, %A: tensor<f32[M, N]>) {dims = [M, N]} {\n"
    "  %r, %s = scf.for %n, %n, %n, %n, %n {at_least_once = 1} : i32, i32 {\n"
    "  ^(%i: i32, %c: i32, %d: i32):\n"
    "    %t = tile.load %A, %c, %d {dims = [0, -1]} : tile<f32[16, 1]>\n"
    "    tile.store %t, %A, %i, %c {dims = [0, 1]}\n"
    "    scf.yield %c, %d\n"
    "  }\n"
    "  %bad = arith.add %r, %p : i32\n"
    "  return\n"
    "}\n";

/* Reads, verifies and prints with the n-th allocation failing; true when no text came out. */
static bool runs_out(long n)
{
    jmp_buf handler;
    tcc_arena *a = tcc_arena_create(&handler);
    if (setjmp(handler)) {
        tcc_arena_destroy(a);
        return true;
    }
    tcc_str out = {0};
    tcc_diag diag = {.file = "text", .source = whole, .size = sizeof whole - 1};
    oom_fail_after(n);
    tcc_ir *ir = tcc_ir_parse(a, whole, sizeof whole - 1, &diag);
    bool valid = !ir || tcc_ir_verify(ir, TCC_LEVEL_ALL, &diag);
    if (ir)
        tcc_ir_print(&out, ir, 0);
    oom_fail_after(-1);
    bool failed = out.failed;
    ck_assert(ir && !valid);
    tcc_str_free(&out);
    tcc_arena_destroy(a);
    return failed;
}

START_TEST(every_failing_allocation_is_survived)
{
    /* Messages are made of a few allocations that may fail without another sign. */
    unsigned n_failed = 0;
    for (long n = 0; n < 40; n++)
        n_failed += runs_out(n);
    ck_assert_uint_ge(n_failed, 4);
    ck_assert(!runs_out(40));
}
END_TEST

/* ---- size ------------------------------------------------------------------------------ */

enum { LARGE = 10 * 1000 * 1000 };

static void ck_large(void (*add)(tcc_str *, unsigned), const char *head, const char *tail)
{
    tcc_str text = {0}, out = {0};
    tcc_str_puts(&text, head);
    for (unsigned i = 0; text.len < LARGE; i++)
        add(&text, i);
    tcc_str_puts(&text, tail);
    tcc_diag diag = {.file = "large", .source = text.data, .size = text.len};
    tcc_ir *ir = tcc_ir_parse(arena, text.data, text.len, &diag);
    ck_assert_ptr_nonnull(ir);
    ck_assert(tcc_ir_verify(ir, TCC_LEVEL_ALL, &diag));
    tcc_ir_print(&out, ir, 0);
    ck_assert(!out.failed && out.len > LARGE / 10);
    tcc_str_free(&text);
    tcc_str_free(&out);
}

static void add_op(tcc_str *s, unsigned i)
{
    tcc_str_printf(s, "  %%v%u = arith.add %%x, %%x : i32\n", i);
}

static void add_clash(tcc_str *s, unsigned i)
{
    tcc_str_printf(s, "  %%v_%u = arith.add %%x, %%x : i32\n", i);
}

static void add_type(tcc_str *s, unsigned i)
{
    tcc_str_printf(s, "func @f%u(%%a: tensor<f32[M%u, %u]>) { return }\n", i, i, i);
}

static void add_item(tcc_str *s, unsigned i)
{
    tcc_str_printf(s, "%u, ", i);
}

START_TEST(ten_megabytes_take_linear_time)
{
    ck_large(add_op, "func @f(%x: i32) {\n", "  return\n}\n");
    ck_large(add_clash, "func @f(%v: i32, %x: i32) {\n", "  return\n}\n");
    ck_large(add_type, "", "");
    ck_large(add_item, "module {x.a = [", "0]}");
}
END_TEST

START_TEST(ten_megabytes_of_errors_are_counted)
{
    tcc_str text = {0};
    while (text.len < LARGE)
        tcc_str_puts(&text, "%%{[(\n");
    ck_assert_ptr_null(parse_n(text.data, text.len));
    tcc_str_free(&text);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("text");
    TCase *tc = tcase_create("text");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, nothing_is_an_empty_module);
    tcase_add_test(tc, bytes_that_are_no_text_are_reported);
    tcase_add_test(tc, nesting_is_limited);
    tcase_add_test(tc, attributes_are_limited);
    tcase_add_test(tc, locations);
    tcase_add_test(tc, locations_print_on_demand);
    tcase_add_test(tc, names_are_made_unique);
    tcase_add_test(tc, an_op_prints_as_in_its_function);
    tcase_add_test(tc, every_failing_allocation_is_survived);
    tcase_add_test(tc, ten_megabytes_take_linear_time);
    tcase_add_test(tc, ten_megabytes_of_errors_are_counted);
    suite_add_tcase(s, tc);
    return s;
}

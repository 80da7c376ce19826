/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/index.h"

#include <check.h>
#include <string.h>

#include "ir/grid.h"
#include "ir/index_dim.h"
#include "ir/index_text.h"
#include "ir/ir.h"
#include "support/extent.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;
static tcc_ir *ir;

static void setup(void)
{
    arena = tcc_arena_create(NULL);
    ir = tcc_ir_create(arena);
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

static const tcc_index_expr *parse(const char *text)
{
    tcc_diag diag = {0};
    tcc_lexer lex = tcc_lexer_create(text, strlen(text), &diag);
    tcc_token tok = tcc_lex(&lex);
    const tcc_index_expr *x = tcc_index_parse(ir, &lex, &tok);
    return x && tok.kind == TOK_END ? x : NULL;
}

static const char *text_of(const tcc_index_expr *x)
{
    tcc_str text = {0};
    tcc_index_print(&text, x);
    const char *copy = tcc_arena_strdup(arena, tcc_str_text(&text));
    tcc_str_free(&text);
    return copy;
}

/* ---- brute force: indices i, j, k and dimensions M, N ------------------------------------------------ */

enum { NAMES = 5, FIRST_DIM = 3 };
static const char *const names[NAMES] = {"i", "j", "k", "M", "N"};

typedef struct point {
    tcc_index_range at[NAMES];
} point;

static bool look_up(void *user, tcc_index_factor_kind kind, const char *name, tcc_index_range *out)
{
    const point *p = user;
    for (int i = 0; i < NAMES; i++)
        if (!strcmp(names[i], name) && (kind == TCC_FACTOR_DIM) == (i >= FIRST_DIM)) {
            *out = p->at[i];
            return true;
        }
    return false;
}

static uint32_t state;

static int64_t draw(int64_t least, int64_t most)
{
    state = state * 1664525 + 1013904223;
    return least + (int64_t)((state >> 8) % (uint32_t)(most - least + 1));
}

/* An expression, and a program for a stack that computes the same without any algebra. */
typedef struct step {
    char op;
    int64_t number;
} step;

typedef struct drawn {
    const tcc_index_expr *x;
    step steps[256];
    size_t n;
} drawn;

static void push(drawn *d, char op, int64_t number)
{
    ck_assert_uint_lt(d->n, 256);
    d->steps[d->n++] = (step){op, number};
}

static const tcc_index_expr *draw_divisor(drawn *d)
{
    int what = (int)draw(0, 3);
    int64_t number = draw(1, 9);
    if (what < 2) {
        push(d, '#', number);
        return tcc_index_number(ir, number);
    }
    int dim = (int)draw(FIRST_DIM, NAMES - 1);
    push(d, 'n', dim);
    const tcc_index_expr *x = tcc_index_dim(ir, names[dim]);
    if (what == 2)
        return x;
    push(d, '#', number);
    push(d, '*', 0);
    return tcc_index_mul(ir, x, tcc_index_number(ir, number));
}

static const tcc_index_expr *draw_expr(drawn *d, int depth)
{
    static const char ops[] = "+-*/%";
    if (!depth || !draw(0, 4)) {
        int name = (int)draw(0, NAMES);
        int64_t number = draw(-12, 12);
        push(d, name < NAMES ? 'n' : '#', name < NAMES ? name : number);
        return name == NAMES       ? tcc_index_number(ir, number)
               : name >= FIRST_DIM ? tcc_index_dim(ir, names[name])
                                   : tcc_index_name(ir, names[name]);
    }
    char op = ops[draw(0, 4)];
    const tcc_index_expr *x = draw_expr(d, depth - 1);
    const tcc_index_expr *y = op == '+' || op == '-' ? draw_expr(d, depth - 1) : draw_divisor(d);
    push(d, op, 0);
    return op == '+'   ? tcc_index_add(ir, x, y)
           : op == '-' ? tcc_index_sub(ir, x, y)
           : op == '*' ? tcc_index_mul(ir, x, y)
           : op == '/' ? tcc_index_div(ir, x, y)
                       : tcc_index_mod(ir, x, y);
}

static int64_t run(const drawn *d, const point *p)
{
    int64_t stack[256];
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const step *s = &d->steps[i];
        if (s->op == 'n' || s->op == '#') {
            stack[n++] = s->op == 'n' ? p->at[s->number].least : s->number;
            continue;
        }
        int64_t y = stack[--n], x = stack[--n], q = 0;
        if (s->op == '/' || s->op == '%')
            q = (x - ((x % y) + y) % y) / y;
        stack[n++] = s->op == '+' ? x + y : s->op == '-' ? x - y : s->op == '*' ? x * y : s->op == '/' ? q : x - q * y;
    }
    return stack[0];
}

static point draw_point(void)
{
    point p;
    for (int i = 0; i < NAMES; i++)
        p.at[i].least = p.at[i].most = draw(i < FIRST_DIM ? -3 : 1, 20);
    return p;
}

START_TEST(values_are_those_of_plain_evaluation)
{
    state = (uint32_t)_i;
    for (int n = 0; n < 500; n++) {
        drawn d = {0};
        d.x = draw_expr(&d, (int)draw(1, 5));
        for (int i = 0; d.x && i < 20; i++) {
            point p = draw_point();
            int64_t value;
            ck_assert(tcc_index_value(d.x, look_up, &p, &value));
            ck_assert_msg(value == run(&d, &p), "%s", text_of(d.x));
        }
    }
}
END_TEST

START_TEST(what_is_printed_parses_to_itself)
{
    state = (uint32_t)_i + 1000;
    for (int n = 0; n < 500; n++) {
        drawn d = {0};
        d.x = draw_expr(&d, (int)draw(1, 5));
        if (d.x)
            ck_assert_msg(parse(text_of(d.x)) == d.x, "%s", text_of(d.x));
    }
}
END_TEST

/* Numbers of CTAs: rounded up, and what a CTA takes is found again. */
START_TEST(quotients_are_rounded_up)
{
    state = (uint32_t)_i + 5000;
    for (int n = 0; n < 500; n++) {
        drawn d = {0};
        int64_t by = draw(1, 9);
        d.x = draw_expr(&d, (int)draw(1, 3));
        const tcc_index_expr *tiles = tcc_index_ceildiv(ir, d.x, by), *of;
        if (!tiles)
            continue;
        int64_t taken = tcc_grid_taken(tiles, &of);
        for (int i = 0; i < 20; i++) {
            point p = draw_point();
            int64_t x = run(&d, &p), value, extent;
            ck_assert(tcc_index_value(tiles, look_up, &p, &value));
            ck_assert_msg(value == x / by + (x % by > 0), "%s by %lld", text_of(d.x), (long long)by);
            ck_assert(tcc_index_value(of, look_up, &p, &extent));
            ck_assert(value == tcc_floor_div(extent, taken));
        }
    }
    const tcc_index_expr *of;
    tcc_dim extent;
    ck_assert_int_eq(tcc_grid_taken(parse("($M + 127) / 128"), &of), 128);
    ck_assert(tcc_grid_extent(ir, parse("($M + 127) / 128"), &extent));
    ck_assert_str_eq(extent.name, "M");
    ck_assert(tcc_grid_extent(ir, parse("($M * $N + 7) / 8"), &extent));
    ck_assert_str_eq(extent.name, "M.N");
    ck_assert_int_eq(tcc_grid_taken(parse("$M / 128"), &of), 1);
    ck_assert(tcc_grid_extent(ir, parse("$M / 128"), &extent));
    ck_assert_str_eq(extent.name, "(M / 128)");
}
END_TEST

START_TEST(grids_are_multiplied)
{
    static const struct {
        const char *axes[3];
        int64_t m, n, expected;
    } grids[] = {{{"($M + 63) / 64", "($N + 15) / 16", "2"}, 65, 16, 4},
                 {{"$M", "$N"}, 0, 5, 0},
                 {{"$M - $N", "$M - $N"}, 3, 5, 0}, /* none, and none */
                 {{"$M", "$N"}, 10, 10, 99},        /* the most */
                 {{"$M", "$N", "0"}, INT64_MAX, INT64_MAX, 0},
                 {{"$M * $N"}, INT64_MAX, INT64_MAX, 99},
                 {{"$P"}, 1, 1, -1},
                 {{0}, 1, 1, 1}};
    static const tcc_attr dims[] = {{.kind = TCC_ATTR_STR, .s = "M"}, {.kind = TCC_ATTR_STR, .s = "N"}};
    for (size_t i = 0; i < sizeof grids / sizeof *grids; i++) {
        tcc_attr axes[3];
        tcc_attr grid = {.kind = TCC_ATTR_LIST, .list = {axes, 0}};
        for (; grid.list.n < 3 && grids[i].axes[grid.list.n]; grid.list.n++)
            axes[grid.list.n] = tcc_attr_of_index(parse(grids[i].axes[grid.list.n]));
        ck_assert(tcc_grid_is_sound(ir, grid));
        ck_assert_int_eq(tcc_grid_ctas(grid, (tcc_attr){.kind = TCC_ATTR_LIST, .list = {dims, 2}},
                                       (int64_t[]){grids[i].m, grids[i].n}, 99),
                         grids[i].expected);
    }
}
END_TEST

static int find_name(const void *user, const tcc_extent_factor *name)
{
    (void)user;
    for (int i = FIRST_DIM; i < NAMES; i++)
        if (tcc_extent_is(name, names[i]))
            return i;
    return -1;
}

START_TEST(dimensions_are_what_computes_them)
{
    state = (uint32_t)_i + 3000;
    for (int n = 0; n < 500; n++) {
        drawn d = {0};
        tcc_dim dim;
        d.x = draw_expr(&d, (int)draw(1, 3));
        if (!d.x || d.x->varies || !tcc_dim_of_index(ir, d.x, &dim) || !dim.name)
            continue;
        ck_assert_msg(tcc_index_of_dim(ir, dim) == d.x, "%s is not %s", dim.name, text_of(d.x));
        for (int i = 0; i < 20; i++) {
            point p = draw_point();
            int64_t values[NAMES], value, expected = run(&d, &p);
            for (int k = 0; k < NAMES; k++)
                values[k] = p.at[k].least;
            ck_assert(tcc_extent_eval(dim.name, find_name, NULL, values, &value));
            ck_assert_msg(value == (expected < 0 ? 0 : expected), "%s", dim.name);
        }
    }
}
END_TEST

/* Every value over the box, one name after the other. */
static tcc_index_range over_box(const drawn *d, const point *box)
{
    point p = *box;
    tcc_index_range r = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < NAMES; i++)
        p.at[i].most = p.at[i].least;
    for (int i = 0; i < NAMES;) {
        int64_t v = run(d, &p);
        r.least = v < r.least ? v : r.least;
        r.most = v > r.most ? v : r.most;
        for (i = 0; i < NAMES && p.at[i].least == box->at[i].most; i++)
            p.at[i].least = p.at[i].most = box->at[i].least;
        if (i < NAMES)
            p.at[i].most = ++p.at[i].least;
    }
    return r;
}

START_TEST(bounds_hold_every_value_and_are_taken_where_they_are_exact)
{
    int exact = 0, all = 0;
    state = (uint32_t)_i + 2000;
    for (int n = 0; n < 300; n++) {
        drawn d = {0};
        point box = draw_point();
        for (int i = 0; i < NAMES; i++)
            box.at[i].most += i < FIRST_DIM ? draw(0, 12) : draw(0, 1);
        d.x = draw_expr(&d, (int)draw(1, 4));
        if (!d.x)
            continue;
        tcc_index_range is, should = over_box(&d, &box);
        tcc_bounds how = tcc_index_bounds(ir, d.x, look_up, &box, &is);
        ck_assert_int_ne(how, TCC_BOUNDS_NONE);
        ck_assert_msg(is.least <= should.least && is.most >= should.most, "%s", text_of(d.x));
        if (how == TCC_BOUNDS_EXACT)
            ck_assert_msg(is.least == should.least && is.most == should.most, "%s: %lld..%lld", text_of(d.x),
                          (long long)is.least, (long long)is.most);
        exact += how == TCC_BOUNDS_EXACT;
        all++;
    }
    ck_assert_int_gt(exact * 100, all * 99); /* boxes are small */
}
END_TEST

START_TEST(large_boxes_have_exact_bounds_where_the_header_says_so)
{
    static const struct {
        const char *text;
        tcc_index_range all, expected; /* of i and j, where they range over the same */
    } cases[] = {
        {"i / 128", {0, 99999}, {0, 781}},
        {"i % 128", {0, 99999}, {0, 127}},
        {"i % 128", {1000, 1020}, {1000 - 896, 1020 - 896}},
        {"3 - i % 128", {0, 99999}, {-124, 3}},
        {"(i + 5) % 128 + j / 3", {0, 99999}, {0, 127 + 33333}},
        {"i - j / 2", {0, 99999}, {-49999, 99999}},
        {"i * $M + j / $N", {0, 99999}, {0, 7 * INT64_C(99999) + 33333}},
        {"(2 * i - 7) / 5", {0, 99999}, {-2, 39998}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        point box = {{cases[c].all, cases[c].all, {0, 0}, {7, 7}, {3, 3}}};
        tcc_index_range is;
        const tcc_index_expr *x = parse(cases[c].text);
        ck_assert_ptr_nonnull(x);
        ck_assert_int_eq(tcc_index_bounds(ir, x, look_up, &box, &is), TCC_BOUNDS_EXACT);
        ck_assert_int_eq(is.least, cases[c].expected.least);
        ck_assert_int_eq(is.most, cases[c].expected.most);
    }
}
END_TEST

START_TEST(a_divisor_below_1_counts_as_1)
{
    point box = {{{3, 5}, {0, 0}, {0, 0}, {-2, 2}, {-7, -1}}};
    tcc_index_range is;
    int64_t value;
    ck_assert_int_eq(tcc_index_bounds(ir, parse("i / $M"), look_up, &box, &is), TCC_BOUNDS_EXACT);
    ck_assert(is.least == 1 && is.most == 5);
    ck_assert_int_eq(tcc_index_bounds(ir, parse("i / $N"), look_up, &box, &is), TCC_BOUNDS_EXACT);
    ck_assert(is.least == 3 && is.most == 5);
    ck_assert(tcc_index_value(parse("i / $N"), look_up, &box, &value));
    ck_assert_int_eq(value, 3);
}
END_TEST

START_TEST(what_has_no_range_has_no_bounds)
{
    point box = {{{0, 5}, {3, 2}, {0, 0}, {0, 7}, {1, 7}}};
    tcc_index_range is;
    ck_assert_int_eq(tcc_index_bounds(ir, parse("i / $N"), look_up, &box, &is), TCC_BOUNDS_EXACT);
    ck_assert_int_eq(tcc_index_bounds(ir, parse("i + j"), look_up, &box, &is), TCC_BOUNDS_NONE);
    ck_assert_int_eq(tcc_index_bounds(ir, parse("i + $unknown"), look_up, &box, &is), TCC_BOUNDS_NONE);
    ck_assert_int_eq(tcc_index_bounds(ir, parse("4611686018427387904 * i"), look_up, &box, &is), TCC_BOUNDS_NONE);
}
END_TEST

START_TEST(equal_expressions_are_equal_pointers)
{
    static const char *const pairs[][2] = {
        {"i + j", "j + i"},
        {"2 * (i + 3) - i", "6 + i"},
        {"(128 * i + j) / 128", "i + j / 128"},
        {"(128 * i + j) % 128", "j % 128"},
        {"i / 128 * 128 + i % 128", "i"},
        {"(i * $M + j) / $M", "i + j / $M"},
        {"i / 4 / 8", "i / 32"},
        {"(i / 4 + 3) / 2", "(i + 12) / 8"},
        {"(4 * i + 7) / 8", "(2 * i + 3) / 4"},
        {"(i + 130) / 128", "1 + (i + 2) / 128"},
        {"i / 1", "i"},
        {"$M / $M", "1"},
        {"i % 1", "0"},
        {"(6 * $M * i) / (3 * $M)", "2 * i"},
        {"i -1", "i - 1"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const tcc_index_expr *x = parse(pairs[i][0]), *y = parse(pairs[i][1]);
        ck_assert_ptr_nonnull(x);
        ck_assert_msg(x == y, "%s: %s", pairs[i][0], text_of(x));
    }
    ck_assert_ptr_ne(parse("i"), parse("$i"));
    ck_assert_ptr_ne(parse("i / 4"), parse("i / 5"));
}
END_TEST

START_TEST(strides_are_what_an_index_adds)
{
    const tcc_index_expr *x = parse("i * $M * 4 + 2 * j + i + k / 8 - 3");
    ck_assert_str_eq(text_of(tcc_index_stride(ir, x, "i")), "4 * $M + 1");
    ck_assert_str_eq(text_of(tcc_index_stride(ir, x, "j")), "2");
    ck_assert_str_eq(text_of(tcc_index_stride(ir, x, "q")), "0");
    ck_assert_ptr_null(tcc_index_stride(ir, x, "k"));
    ck_assert_str_eq(text_of(tcc_index_stride(ir, parse("($M / 2) * i"), "i")), "$M / 2");
}
END_TEST

START_TEST(replacing_is_substitution)
{
    const tcc_index_expr *x = parse("i / 4 + 2 * i * $M");
    ck_assert_str_eq(text_of(tcc_index_replace(ir, x, TCC_FACTOR_INDEX, "i", parse("4 * j + 1"))),
                     "8 * j * $M + j + 2 * $M");
    ck_assert_str_eq(text_of(tcc_index_replace(ir, x, TCC_FACTOR_DIM, "M", tcc_index_number(ir, 8))), "16 * i + i / 4");
    ck_assert(tcc_index_replace(ir, x, TCC_FACTOR_DIM, "i", parse("j")) == x);
    state = (uint32_t)_i + 3000;
    for (int n = 0; n < 300; n++) {
        drawn of = {0}, by = {0};
        of.x = draw_expr(&of, 3);
        by.x = draw_expr(&by, 2);
        const tcc_index_expr *r = of.x && by.x ? tcc_index_replace(ir, of.x, TCC_FACTOR_INDEX, "i", by.x) : NULL;
        point p = draw_point(), other = p;
        int64_t value;
        if (!r)
            continue;
        other.at[0].least = other.at[0].most = run(&by, &p);
        ck_assert(tcc_index_value(r, look_up, &p, &value));
        ck_assert_msg(value == run(&of, &other), "%s", text_of(r));
    }
}
END_TEST

START_TEST(what_is_too_large_or_has_no_meaning_is_refused)
{
    static const char *const wrong[] = {"i * j",
                                        "i / j",
                                        "i / 0",
                                        "i / -2",
                                        "i % -1",
                                        "i / -$M",
                                        "9223372036854775807 * 2",
                                        "i +",
                                        "(i",
                                        "$",
                                        "$ 4",
                                        "-9223372036854775808",
                                        "i * (j / 2)"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(!parse(wrong[i]), "%s", wrong[i]);
    const tcc_index_expr *x = tcc_index_number(ir, 0);
    for (int i = 0; i < TCC_INDEX_MAX_TERMS; i++)
        x = tcc_index_add(ir, x, tcc_index_name(ir, tcc_arena_printf(arena, "x%d", i)));
    ck_assert_ptr_nonnull(x);
    ck_assert_ptr_null(tcc_index_add(ir, x, parse("i")));
    ck_assert_ptr_null(tcc_index_add(ir, NULL, x));
    char deep[200];
    memset(deep, '(', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    ck_assert_ptr_null(parse(deep));
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("index");
    TCase *cases = tcase_create("index");
    tcase_add_checked_fixture(cases, setup, teardown);
    suite_add_sampled(cases, values_are_those_of_plain_evaluation, 8);
    suite_add_sampled(cases, quotients_are_rounded_up, 8);
    suite_add_sampled(cases, what_is_printed_parses_to_itself, 8);
    suite_add_sampled(cases, dimensions_are_what_computes_them, 8);
    suite_add_sampled(cases, bounds_hold_every_value_and_are_taken_where_they_are_exact, 8);
    tcase_add_test(cases, large_boxes_have_exact_bounds_where_the_header_says_so);
    tcase_add_test(cases, grids_are_multiplied);
    tcase_add_test(cases, a_divisor_below_1_counts_as_1);
    tcase_add_test(cases, what_has_no_range_has_no_bounds);
    tcase_add_test(cases, equal_expressions_are_equal_pointers);
    tcase_add_test(cases, strides_are_what_an_index_adds);
    tcase_add_test(cases, replacing_is_substitution);
    tcase_add_test(cases, what_is_too_large_or_has_no_meaning_is_refused);
    suite_add_tcase(suite, cases);
    return suite;
}

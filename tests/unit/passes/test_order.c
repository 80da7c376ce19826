/* Which passes must come before which: every pass that a list leaves out is named.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/frontend.h"
#include "passes/passes.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/str.h"
#include "tests/unit/suite.h"

static const char source[] = "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
                             "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n";
static const char *const targets[] = {"sm_90a", "gfx1100"};
static const char *const names[] = {
#define STATE(id, lacks, what) #id,
#include "passes/states.def"
};

enum { MAX_TEXT = 16384 };
static char said[MAX_TEXT];

static void listen(const tcc_diagnostic *d, void *user)
{
    (void)user;
    size_t n = strlen(said);
    snprintf(said + n, sizeof said - n, "%s\n", d->text);
}

static tcc_status run_list(const char *target, const char *list)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag = {.file = "f.tile", .fn = listen};
    *said = 0;
    tcc_ir *ir = tcc_frontend(arena, source, strlen(source), target, NULL, 0, &diag);
    ck_assert_ptr_nonnull(ir);
    tcc_status status = tcc_run_passes(ir, list, NULL, &diag);
    tcc_arena_destroy(arena);
    return status;
}

/* The target's pipeline up to the first pass that brings a state, and then the pass. */
static void list_without(tcc_str *list, const char *pipeline, unsigned state, const tcc_pass *last)
{
    for (const char *p = pipeline; *p;) {
        size_t n = strcspn(p, ",");
        const tcc_pass *pass = tcc_pass_find(p, n);
        if (pass->leaves >> state & 1)
            break;
        tcc_str_printf(list, "%s,", pass->name);
        p += n + (p[n] == ',');
    }
    tcc_str_printf(list, "%s", last->name);
}

static bool is_in(const char *pipeline, const char *name)
{
    char with_commas[512], wanted[64];
    snprintf(with_commas, sizeof with_commas, ",%s,", pipeline);
    snprintf(wanted, sizeof wanted, ",%s,", name);
    return strstr(with_commas, wanted) != NULL;
}

/* Of every pass and each state that it requires: a list that leaves out the pass which brings it. */
START_TEST(what_is_missing_is_named)
{
    const char *target = targets[_i], *pipeline = tcc_pipeline(tcc_target_find(target));
    const tcc_pass *pass;
    unsigned tried = 0;
    for (size_t i = 0; (pass = tcc_pass_at(i)); i++)
        for (unsigned state = 0; state < TCC_STATE_COUNT; state++) {
            tcc_str list = {0};
            char expected[256], finds[64];
            bool nobodys = state == TCC_STATE_grid ||
                           (state == TCC_STATE_layouts && _i);
            if (!(pass->requires >> state & 1) || !is_in(pipeline, pass->name) || nobodys)
                continue;
            const tcc_pass *brings = NULL;
            for (size_t b = 0; !brings; b++)
                brings = tcc_pass_at(b)->leaves >> state & 1 ? tcc_pass_at(b) : NULL;
            list_without(&list, pipeline, state, pass);
            snprintf(expected, sizeof expected, ": %s", brings->name);
            snprintf(finds, sizeof finds, "error: pass %s finds ", pass->name);
            ck_assert_msg(run_list(target, tcc_str_text(&list)) == TCC_ERR_ARGUMENT, "%s: %s",
                          tcc_str_text(&list), said);
            ck_assert_msg(!strncmp(said, "f.tile:3:", 9) && strstr(said, finds) &&
                              strstr(said, expected) && strstr(said, " must come before it\n"),
                          "%s: %s", tcc_str_text(&list), said);
            tcc_str_free(&list);
            tried++;
        }
    ck_assert_uint_gt(tried, 80);
}
END_TEST

/* Orders that leave out what only a further pass brings, or that undo what is needed. */
static const struct {
    const char *list, *said;
} impossible[] = {
    {"canonicalize,cse,choose-axes,choose-variants,choose-schedule,tile,dce,"
     "choose-mma,choose-layout,choose-pipeline,distribute-grid,estimate-cost",
     "pass estimate-cost finds tile.ctas where tile.grid was: distribute-grid must come after it"},
};

START_TEST(impossible_orders)
{
    ck_assert_int_eq(run_list("sm_90a", impossible[_i].list), TCC_ERR_ARGUMENT);
    ck_assert_msg(strstr(said, impossible[_i].said) != NULL, "%s", said);
}
END_TEST

START_TEST(the_pipeline_is_possible)
{
    ck_assert_int_eq(run_list(targets[_i], tcc_pipeline(tcc_target_find(targets[_i]))), TCC_OK);
    ck_assert_str_eq(said, "");
}
END_TEST

/* ---- docs/passes.md -------------------------------------------------------------------- */

static void print_states(tcc_str *out, unsigned states)
{
    unsigned state = 0;
    const char *separator = " ";
    while (states >> state & 1)
        state++;
    if (state > 1) {
        tcc_str_printf(out, " up to `%s`", names[state - 1]);
        separator = ", ";
        states &= ~((1u << state) - 1);
    }
    for (state = 0; state < TCC_STATE_COUNT; state++)
        if (states >> state & 1) {
            tcc_str_printf(out, "%s`%s`", separator, names[state]);
            separator = ", ";
        }
    tcc_str_printf(out, " |");
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    char *text = calloc(1, 1 << 20);
    ck_assert_uint_gt(fread(text, 1, (1 << 20) - 1, file), 0);
    fclose(file);
    return text;
}

/* Each pass has a row there; what is missing is shown. */
START_TEST(documented)
{
    char *doc = read_file(TCC_TEST_DIR "/../../docs/passes.md");
    tcc_str missing = {0};
    const tcc_pass *pass;
    for (size_t i = 0; (pass = tcc_pass_at(i)); i++) {
        tcc_str row = {0};
        tcc_str_printf(&row, "| `%s` |", pass->name);
        print_states(&row, pass->requires);
        print_states(&row, pass->leaves);
        print_states(&row, pass->undoes);
        if ((pass->requires || pass->leaves) && !strstr(doc, tcc_str_text(&row)))
            tcc_str_printf(&missing, "%s\n", tcc_str_text(&row));
        tcc_str_free(&row);
    }
    for (unsigned s = 0; s < TCC_STATE_COUNT; s++) {
        char name[64];
        snprintf(name, sizeof name, "- `%s`: ", names[s]);
        if (!strstr(doc, name))
            tcc_str_printf(&missing, "%s\n", name);
    }
    ck_assert_msg(!*tcc_str_text(&missing), "docs/passes.md lacks\n%s", tcc_str_text(&missing));
    tcc_str_free(&missing);
    free(doc);
}
END_TEST

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

Suite *SUITE(void)
{
    Suite *s = suite_create("order");
    TCase *t = tcase_create("order");
    tcase_add_loop_test(t, what_is_missing_is_named, 0, LEN(targets));
    tcase_add_loop_test(t, impossible_orders, 0, LEN(impossible));
    tcase_add_loop_test(t, the_pipeline_is_possible, 0, LEN(targets));
    tcase_add_test(t, documented);
    suite_add_tcase(s, t);
    return s;
}

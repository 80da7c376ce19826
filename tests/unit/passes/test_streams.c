/* Which programs partition recognises as one loop over tiles of an index, and along which.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/frontend.h"
#include "passes/cascade.h"
#include "passes/passes.h"
#include "passes/streams.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/str.h"
#include "tests/unit/suite.h"

/* Tensors and statements: what is compiled, between the parameters that all have. */
typedef struct program {
    const char *what, *more, *statements;
} program;

#define S "s[b, h, i, j] = scale * sum(d) Q[b, h, i, d] * K[b, h, j, d];\n"
#define P "p[b, h, i, j] = exp(s[b, h, i, j] - max(j) s[b, h, i, j]);\n"
#define O "O[b, h, i, e] = (sum(j) p[b, h, i, j] * V[b, h, j, e]) / sum(j) p[b, h, i, j];\n"

/* The index of the stream in a kernel; "": it is not recognised. */
static const char *stream_of(const char *source)
{
    static char name[16];
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag silent = {0};
    *name = '\0';
    tcc_ir *ir = tcc_frontend(arena, source, strlen(source), "sm_90a", NULL, 0, &silent);
    if (!ir)
        ck_abort_msg("no program: %s", source);
    ck_assert_int_eq(tcc_run_passes(ir, "canonicalize,cse,dce,choose-strides", NULL, &silent), TCC_OK);
    tcc_func *f = tcc_func_find(ir, "f");
    if (tcc_streams_recognize(f)) {
        snprintf(name, sizeof name, "%s", tcc_attr_str(&f->attrs, "stream", ""));
        tcc_cascade found;
        ck_assert(tcc_cascade_of(f, &found));
        ck_assert_str_eq(found.rows, "i");
        ck_assert(found.n_scores && found.n_sums);
        ck_assert(tcc_ir_verify(ir, TCC_LEVEL_ALL, &silent));
    }
    tcc_arena_destroy(arena);
    return name;
}

static void check(const program *p, bool is)
{
    tcc_str source = {0};
    tcc_str_printf(&source,
                   "kernel f(Q: bf16[B, H, S, 128], K: bf16[B, H, T, 128], V: bf16[B, H, T, 64], scale: f32%s) -> "
                   "(O: bf16[B, H, S, 64]%s)\n{\n%s}\n",
                   p->more, strstr(p->statements, "L[b") ? ", L: f32[B, H, S]" : "", p->statements);
    const char *j = stream_of(tcc_str_text(&source));
    if (strcmp(j, is ? "j" : ""))
        ck_abort_msg("%s: the loop is along '%s'", p->what, j);
    tcc_str_free(&source);
}

START_TEST(streams_have_inner_products_reductions_to_rows_and_main_products)
{
    static const program all[] = {
        {"plain", "", S P O},
        {"causal", "", "index j: j <= i + (T - S);\n" S P O},
        {"window", "", "index j: j <= i && j > i - 512;\n" S P O},
        {"log-sum-exp", "", S P O "L[b, h, i] = log(sum(j) p[b, h, i, j]) + max(j) s[b, h, i, j];\n"},
        {"alibi", ", slope: f32[H]", S "t[b, h, i, j] = s[b, h, i, j] + slope[h] * f32(j - i);\n"
         "p[b, h, i, j] = exp(t[b, h, i, j] - max(j) t[b, h, i, j]);\n" O},
        {"bias", ", bias: bf16[H, S, T]", S "t[b, h, i, j] = s[b, h, i, j] + bias[h, i, j];\n"
         "p[b, h, i, j] = exp(t[b, h, i, j] - max(j) t[b, h, i, j]);\n" O},
        {"softcap", "", S "t[b, h, i, j] = 30 * tanh(s[b, h, i, j] / 30);\n"
         "p[b, h, i, j] = exp(t[b, h, i, j] - max(j) t[b, h, i, j]);\n" O},
        {"mask", ", keep: i8[S, T]", S "t[b, h, i, j] = where(keep[i, j] > 0, s[b, h, i, j], -10000);\n"
         "p[b, h, i, j] = exp(t[b, h, i, j] - max(j) t[b, h, i, j]);\n" O},
        {"dropout", ", keep: bf16[S, T]", S P
         "O[b, h, i, e] = (sum(j) (keep[i, j] * p[b, h, i, j]) * V[b, h, j, e]) / sum(j) p[b, h, i, j];\n"},
        {"sinks", ", sink: f32[H]", S "m[b, h, i] = max(max(j) s[b, h, i, j], sink[h]);\n"
         "p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i]);\n"
         "O[b, h, i, e] = (sum(j) p[b, h, i, j] * V[b, h, j, e])\n"
         "  / (sum(j) p[b, h, i, j] + exp(sink[h] - m[b, h, i]));\n"},
        {"scaled differences", "", "s[b, h, i, j] = sum(d) Q[b, h, i, d] * K[b, h, j, d];\n"
         "p[b, h, i, j] = exp(scale * (s[b, h, i, j] - max(j) s[b, h, i, j]));\n" O},
        {"sum of what is rounded", "", S "p[b, h, i, j] = bf16(exp(s[b, h, i, j] - max(j) s[b, h, i, j]));\n" O},
        {"two maps", ", R: bf16[B, H, S, 32], U: bf16[B, H, T, 32]", S P
         "t[b, h, i, j] = sum(c) R[b, h, i, c] * U[b, h, j, c];\n"
         "q[b, h, i, j] = exp(t[b, h, i, j] - max(j) t[b, h, i, j]);\n"
         "O[b, h, i, e] = (sum(j) p[b, h, i, j] * V[b, h, j, e]) / sum(j) p[b, h, i, j]\n"
         "  - 0.5 * (sum(j) q[b, h, i, j] * V[b, h, j, e]) / sum(j) q[b, h, i, j];\n"},
        {"residual", ", X: bf16[B, H, S, 64]", S P
         "O[b, h, i, e] = X[b, h, i, e] + (sum(j) p[b, h, i, j] * V[b, h, j, e]) / sum(j) p[b, h, i, j];\n"},
    };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        check(&all[n], true);
}
END_TEST

START_TEST(near_misses_are_no_streams)
{
    static const program all[] = {
        {"softmax of softmax", "", S P "q[b, h, i, j] = exp(p[b, h, i, j] - max(j) p[b, h, i, j]);\n"
         "O[b, h, i, e] = (sum(j) q[b, h, i, j] * V[b, h, j, e]) / sum(j) q[b, h, i, j];\n"},
        {"rounded to 8 bits", "", S "p[b, h, i, j] = e4m3(exp(s[b, h, i, j] - max(j) s[b, h, i, j]));\n" O},
        {"sigmoid", "", S "p[b, h, i, j] = sigmoid(s[b, h, i, j] - max(j) s[b, h, i, j]);\n" O},
        {"no cascade", "", S "O[b, h, i, e] = sum(j) s[b, h, i, j] * V[b, h, j, e];\n"},
        {"no inner product", ", X: f32[B, H, S, T]",
         "p[b, h, i, j] = exp(X[b, h, i, j] - max(j) X[b, h, i, j]) * scale * Q[b, h, i, 0] * K[b, h, j, 0];\n" O},
        {"no main product", ", X: bf16[B, H, S, 64]", S P
         "O[b, h, i, e] = (sum(j) p[b, h, i, j]) * X[b, h, i, e] + V[b, h, 0, e];\n"},
        {"a second streamed index", ", Z: f32[B, H, S, U]", S
         "p[b, h, i, j] = exp(s[b, h, i, j] - max(u) Z[b, h, i, u]);\n" O},
        {"a column by itself", "", S P O "L[b, h, i] = O[b, h, i, 0];\n"},
        {"another reduction", "", S P O "L[b, h, i] = max(d) Q[b, h, i, d];\n"},
        {"columns of a computed index", "", "s[b, h, i, j] = scale * sum(d) Q[b, h, i, d] * K[b, h, j / 2, d];\n" P O},
        {"terms that a reduction chooses", "", S
         "O[b, h, i, e] = sum(j) where(s[b, h, i, j] == max(j) s[b, h, i, j], 1.0, 0.0) * V[b, h, j, e];\n"},
    };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        check(&all[n], false);
}
END_TEST

/* Whole kernels, with other tensors. */
static void check_kernel(const char *what, const char *source, const char *expected)
{
    const char *j = stream_of(source);
    if (strcmp(j, expected))
        ck_abort_msg("%s: the loop is along '%s'", what, j);
}

#define HEADS(kv) \
    "kernel f(Q: f16[B, H, S, 128], K: f16[B, " kv "T, 128], V: f16[B, " kv "T, 128]) -> (O: f16[B, H, S, 128])\n"
#define SOFTMAX "p[b, h, i, j] = exp(s[b, h, i, j] - max(j) s[b, h, i, j]);\n"

START_TEST(batch_indices_are_computed_with)
{
    check_kernel("grouped", HEADS("G, ") "{ s[b, h, i, j] = sum(d) Q[b, h, i, d] * K[b, h / (H / G), j, d];\n" SOFTMAX
                 "O[b, h, i, e] = (sum(j) p[b, h, i, j] * V[b, h / (H / G), j, e]) / sum(j) p[b, h, i, j]; }", "j");
    check_kernel("multi-query", HEADS("") "{ s[b, h, i, j] = sum(d) Q[b, h, i, d] * K[b, j, d];\n" SOFTMAX
                 "O[b, h, i, e] = (sum(j) p[b, h, i, j] * V[b, j, e]) / sum(j) p[b, h, i, j]; }", "j");
}
END_TEST

#define KERNEL(d, e) "kernel f(Q: bf16[S, " d "], K: bf16[T, " d "], V: bf16[T, " e "]) -> (O: f32[S, " e "])\n" \
    "{ s[i, j] = sum(d) Q[i, d] * K[j, d];\n p[i, j] = exp(s[i, j] - max(j) s[i, j]);\n" \
    "O[i, e] = sum(j) p[i, j] * V[j, e]; }"

START_TEST(columns_are_few_and_known)
{
    check_kernel("256", KERNEL("256", "256"), "j");
    check_kernel("by other instructions", KERNEL("256", "256") "schedule f for sm_90a { instr mma; }", "");
    check_kernel("one name for both", "kernel f(Q: bf16[S, 64], K: bf16[T, 64], V: bf16[T, 64]) -> (O: f32[S, 64])\n"
                 "{ s[i, j] = sum(d) Q[i, d] * K[j, d];\n p[i, j] = exp(s[i, j] - max(j) s[i, j]);\n"
                 "O[i, d] = sum(j) p[i, j] * V[j, d]; }", "j");
    check_kernel("16", KERNEL("16", "16"), "j");
    check_kernel("rows as long as columns", KERNEL("128", "128") , "j");
    check_kernel("d is not known", KERNEL("D", "128"), "");
    check_kernel("e is not known", KERNEL("128", "E"), "");
    check_kernel("no multiple of 16", KERNEL("120", "128"), "");
    check_kernel("many", KERNEL("128", "264"), "");
}
END_TEST

START_TEST(what_is_written_is_not_read)
{
    check_kernel("rows of the output", "kernel f(Q: bf16[S, 64], K: bf16[T, 64], V: bf16[T, 64], inout O: f32[S, 64])\n"
                 "{ s[i, j] = sum(d) Q[i, d] * K[j, d];\n p[i, j] = exp(s[i, j] - max(j) s[i, j]);\n"
                 "O[i, e] = O[i, e] + sum(j) p[i, j] * V[j, e]; }", "");
}
END_TEST

START_TEST(names_of_the_index_become_one)
{
    check_kernel("two names", "kernel f(Q: bf16[S, 64], K: bf16[T, 64], V: bf16[T, 64]) -> (O: f32[S, 64])\n"
                 "{ s[i, j] = sum(d) Q[i, d] * K[j, d];\n"
                 "O[i, e] = (sum(k) exp(s[i, k] - max(j) s[i, j]) * V[k, e])\n"
                 "  / sum(u) exp(s[i, u] - max(j) s[i, j]); }", "k");
    check_kernel("terms of another number", "kernel f(Q: bf16[S, 64], K: bf16[T, 64], V: bf16[U, 64], W: bf16[S, U])\n"
                 "-> (O: f32[S, 64])\n"
                 "{ s[i, j] = sum(d) Q[i, d] * K[j, d];\n"
                 "O[i, e] = (sum(k) W[i, k] * V[k, e]) / sum(u) exp(s[i, u] - max(j) s[i, j]); }", "");
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("streams");
    TCase *c = tcase_create("streams");
    tcase_add_test(c, streams_have_inner_products_reductions_to_rows_and_main_products);
    tcase_add_test(c, near_misses_are_no_streams);
    tcase_add_test(c, batch_indices_are_computed_with);
    tcase_add_test(c, columns_are_few_and_known);
    tcase_add_test(c, what_is_written_is_not_read);
    tcase_add_test(c, names_of_the_index_become_one);
    suite_add_tcase(s, c);
    return s;
}

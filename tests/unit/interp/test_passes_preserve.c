/* Every pass preserves what kernels compute, and what it makes is free of races: kernels of every
 * kind go through the check of passes, with shapes that their schedules find hard.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdarg.h>

#include "tests/unit/interp/kernel.h"
#include "tests/unit/suite.h"

static tcc_status check_after(const tcc_ir *ir, const char *pass, void *user)
{
    return tcc_pass_check_after(user, ir, pass);
}

/* Checks what a list of passes makes of the kernel f of one shape, and with `each` what every pass does.
 */
static tcc_status check_once(const char *list, extents e, uint64_t seed, const char *source,
                             bool each, char said[MAX_SAID])
{
    kernel k;
    kernel_open(&k, source, e);
    tcc_pass_check *c;
    const tcc_pass_check_options shape = {seed, k.dims, false};
    ck_assert_int_eq(tcc_pass_check_create(k.arena, k.ir, &shape, &k.diag, &c), TCC_OK);
    const tcc_pass_options o = {
        .verify_each = true, .check = each ? check_after : NULL, .user = c};
    tcc_status status = tcc_run_passes(k.ir, list, &o, &k.diag);
    if (!status)
        status = tcc_pass_check_finish(c, k.ir);
    memcpy(said, k.said, sizeof k.said);
    tcc_pass_check_destroy(c);
    kernel_close(&k);
    return status;
}

/* Each pass is watched in two of five kernels, and where the last one leaves something wrong, so that the
 * pass is named. That takes three times as long as watching the last one. */
static void check_passes(const char *list, extents e, uint64_t seed, const char *source)
{
    char said[MAX_SAID], traced[MAX_SAID];
    if (!check_once(list, e, seed, source, seed % 5 < 2, said))
        return;
    bool again = check_once(list, e, seed, source, true, traced);
    ck_abort_msg("%s\n%s", source, again ? traced : said);
}

/* Checks the whole pipeline; the arguments after the format complete the kernel's text and
 * schedule.
 */
static void check(extents e, uint64_t seed, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void check(extents e, uint64_t seed, const char *format, ...)
{
    char source[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(source, sizeof source, format, args);
    va_end(args);
    check_passes(tcc_pipeline(tcc_target_at(0)), e, seed, source);
}

#define LEN(a) (sizeof(a) / sizeof *(a))

#define MATMUL                                                                                     \
    "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"                                     \
    "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"

static const char *const producers[] = {"none", "warp", "warpgroup"};
static const char *const swizzles[] = {"none", "32", "64", "128"};
static const char *const epilogues[] = {"tma", "interleaved"};

/* ---- operands in shared memory ---------------------------------------------------------- */

/* Every index order of A, B and C, every swizzle. The tile is as wide as the widest. */
START_TEST(every_order_and_swizzle)
{
    int i = _i;
    const char *a = i & 1 ? "K, M" : "M, K", *ma = i & 1 ? "k, m" : "m, k";
    const char *b = i & 2 ? "N, K" : "K, N", *mb = i & 2 ? "n, k" : "k, n";
    const char *c = i & 4 ? "N, M" : "M, N", *mc = i & 4 ? "n, m" : "m, n";
    const char *elem = i & 8 ? "bf16" : "f16";
    check((extents){40, 72, 136, 1}, (uint64_t)i,
          "kernel f(A: %s[%s], B: %s[%s]) -> (C: f32[%s])\n"
          "{\n    C[%s] = sum(k) A[%s] * B[%s];\n}\n"
          "schedule f for sm_90a { tile m 64, n 64, k 64; stages 2; swizzle %s; producer %s; }\n",
          elem, a, elem, b, c, mc, ma, mb, swizzles[i >> 4], producers[i % 3]);
}
END_TEST

/* A panel as wide as a few elements, and instructions that begin within one. */
START_TEST(every_depth_of_a_stage)
{
    static const int depths[] = {16, 32, 48, 64, 80, 128, 256};
    int k = depths[_i % 7], transposed = _i / 7;
    check((extents){64, 16, 264, 1}, (uint64_t)_i,
          "kernel f(A: f16[M, K], B: f16[%s]) -> (C: f16[M, N])\n"
          "{\n    C[m, n] = sum(k) A[m, k] * B[%s];\n}\n"
          "schedule f for sm_90a { tile m 64, n 16, k %d; stages 1; }\n",
          transposed ? "N, K" : "K, N", transposed ? "n, k" : "k, n", k);
}
END_TEST

/* ---- the pipeline ------------------------------------------------------------------------ */

/* Fewer iterations than stages, as many, more; every role and number of consumers. */
START_TEST(every_pipeline)
{
    int stages = 1 + _i % 4, warpgroups = 1 + _i / 4 % 3, producer = _i / 12 % 3;
    int iterations = _i / 36 * 2 + 1;
    check((extents){64 * warpgroups, 16, 16 * iterations, 1}, (uint64_t)_i,
          MATMUL "schedule f for sm_90a { tile m %d, n 16, k 16; stages %d; warpgroups %d; "
                 "producer %s; epilogue %s; }\n",
          64 * warpgroups, stages, warpgroups, producers[producer], epilogues[_i % 2]);
}
END_TEST

/* The same kernel, whatever order the machine chooses. */
START_TEST(every_seed)
{
    kernel k;
    kernel_open(&k, MATMUL "schedule f for sm_90a { tile m 128, n 16, k 16; stages 3; }",
                (extents){128, 16, 112, 1});
    ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag),
                     TCC_OK);
    for (uint64_t seed = 0; seed < 40; seed++)
        for (const tcc_func *f = k.ir->first; f; f = f->next) {
            ck_assert_int_eq(kernel_run(&k, f, seed), TCC_OK);
            kernel_compare(&k, f, seed);
        }
    kernel_close(&k);
}
END_TEST

/* ---- results ----------------------------------------------------------------------------- */

START_TEST(every_width_of_a_tile)
{
    static const char *const outputs[] = {"f16", "bf16", "f32"};
    int n = 8 * (_i + 1);
    check((extents){64, n + 8, 16, 1}, (uint64_t)_i,
          "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: %s[M, N])\n"
          "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
          "schedule f for sm_90a { tile m 64, n %d, k 16; stages 1; epilogue %s; }\n",
          outputs[_i % 3], n, epilogues[_i / 3 % 2]);
}
END_TEST

START_TEST(several_blocks_of_rows_in_a_warpgroup)
{
    static const int widths[] = {8, 24, 32, 96};
    check((extents){200, 104, 32, 1}, (uint64_t)_i,
          MATMUL "schedule f for sm_90a { tile m 256, n %d, k 32; stages 2; warpgroups %d; "
                 "epilogue %s; producer warp; }\n",
          widths[_i % 4], _i & 4 ? 1 : 2, epilogues[_i / 8]);
}
END_TEST

/* Right of the arrow: what is computed from acc[m, n], and what for. */
static const struct {
    const char *params, *outputs, *body;
} tails[] = {
    {"bias: f32[N]", "C: f16[M, N]", "C[m, n] = acc[m, n] + bias[n];"},
    {"bias: f32[M]", "C: f16[M, N]", "C[m, n] = acc[m, n] + bias[m];"},
    {"bias: bf16[N]", "C: f32[M, N]", "C[m, n] = relu(acc[m, n] + bias[n]);"},
    {"R: f16[M, N]", "C: f32[M, N]", "C[m, n] = acc[m, n] - R[m, n];"},
    {"R: f32[N, M]", "C: f32[M, N]", "C[m, n] = acc[m, n] - R[n, m];"},
    {"inout C: f16[M, N], alpha: f32, beta: f32", "",
     "C[m, n] = alpha * acc[m, n] + beta * C[m, n];"},
    {"inout C: f32[M, N], u: f32[M], v: f32[N]", "",
     "C[m, n] = acc[m, n] + u[m] * v[n] + C[m, n];"},
    {"S: f16[M, N], limit: f32", "C: f32[M, N]",
     "C[m, n] = where(S[m, n] > limit, min(max(acc[m, n], -limit), limit), abs(S[m, n]));"},
    {"bias: f32[N]", "C: f32[M, N], D: f16[M, N]",
     "t[m, n] = acc[m, n] + bias[n]; C[m, n] = t[m, n] * 2; D[m, n] = max(t[m, n], 1);"},
    {"bias: f32[N]", "C: f32[M, N], D: f32[N, M]",
     "C[m, n] = acc[m, n] + bias[n]; D[n, m] = acc[m, n];"},
    {"one: f32", "C: f32[M, N]", "C[m, n] = f32(f16(acc[m, n] / 3)) + one;"},
    {"x: f32", "C: f16[M, N]", "C[m, n] = gelu(acc[m, n] * x / 16);"},
    {"x: f32", "C: f16[M, N]", "C[m, n] = gelu_tanh(acc[m, n] * x / 16);"},
    {"x: f32", "C: f16[M, N]", "C[m, n] = silu(acc[m, n] * x / 16);"},
    {"x: f32", "C: f16[M, N]", "C[m, n] = sigmoid(acc[m, n] * x / 16);"},
    {"x: f32", "C: f16[M, N]", "C[m, n] = tanh(acc[m, n] * x / 16);"},
    {"x: f32", "C: f32[M, N]", "C[m, n] = erf(acc[m, n] * x / 16);"},
    {"x: f32", "C: f32[M, N]", "C[m, n] = exp(acc[m, n] / 16) * x + log(abs(acc[m, n]) + 1);"},
    {"x: f32", "C: i8[M, N]", "C[m, n] = i8(acc[m, n] * x / 3);"},
    {"x: i32, w: u8[M, N]", "C: i32[M, N], D: u8[N, M]",
     "t[m, n] = i32(acc[m, n]) * x - w[m, n]; C[m, n] = t[m, n]; D[n, m] = relu(t[m, n]);"},
    {"w: i8[N]", "C: f16[M, N]", "C[m, n] = where(w[n] > -3, f32(w[n]), acc[m, n]);"},
    {"x: f32", "C: f32[M, N]", "C[m, n] = sqrt(abs(acc[m, n])) + rsqrt(abs(acc[m, n]) + 1) * x;"},
};

START_TEST(every_epilogue)
{
    int i = _i % (int)LEN(tails), way = _i / (int)LEN(tails);
    const char *outputs = tails[i].outputs;
    check((extents){72, 48, 32, 1}, (uint64_t)_i,
          "kernel f(A: f16[M, K], B: f16[K, N], %s)%s%s%s\n"
          "{\n    acc[m, n] = sum(k) A[m, k] * B[k, n];\n    %s\n}\n"
          "schedule f for sm_90a { tile m 64, n %d, k 16; stages 2; epilogue %s; }\n",
          tails[i].params, *outputs ? " -> (" : "", outputs, *outputs ? ")" : "", tails[i].body,
          way & 2 ? 24 : 32, epilogues[way & 1]);
}
END_TEST

/* ---- types ------------------------------------------------------------------------------- */

/* Products for which this target has no instruction go as far as tiles. */
static const struct {
    const char *a, *b, *sum, *output, *value;
} products[] = {
    {"i8", "i8", "", "i32", "acc[m, n]"},
    {"u8", "u8", "", "i32", "acc[m, n] - 7"},
    {"u8", "i8", ":i32", "f32", "f32(acc[m, n]) * 0.5"},
    {"i8", "u8", "", "i8", "i8(f32(acc[m, n]) / 512)"},
    {"i4", "i4", "", "i32", "relu(acc[m, n])"},
    {"u4", "u4", "", "u8", "acc[m, n]"},
    {"i4", "u4", "", "f16", "f16(acc[m, n])"},
    {"u4", "i4", "", "i32", "where(acc[m, n] < 0, -acc[m, n], 3)"},
    {"e4m3", "e4m3", "", "f32", "acc[m, n]"},
    {"e5m2", "e5m2", ":f32", "bf16", "acc[m, n]"},
    {"e4m3", "e5m2", "", "f16", "2 * acc[m, n]"},
    {"f16", "f16", ":f16", "f16", "acc[m, n] + 1"},
};

START_TEST(every_product_becomes_tiles)
{
    static const char passes[] = "canonicalize,cse,choose-axes,choose-variants,choose-schedule,"
                                 "tile,dce,canonicalize,expand-math";
    int i = _i % (int)LEN(products), transposed = _i / (int)LEN(products);
    char source[1024];
    snprintf(source, sizeof source,
             "kernel f(A: %s[M, K], B: %s[%s]) -> (C: %s[M, N])\n"
             "{\n    acc[m, n] = sum%s(k) A[m, k] * B[%s];\n    C[m, n] = %s;\n}\n"
             "schedule f for sm_90a { tile m 64, n 32, k 64; stages 1; }\n",
             products[i].a, products[i].b, transposed ? "N, K" : "K, N", products[i].output,
             products[i].sum, transposed ? "n, k" : "k, n", products[i].value);
    check_passes(passes, (extents){67, 19, 45, 1}, (uint64_t)_i, source);
}
END_TEST

/* ---- shapes ------------------------------------------------------------------------------ */

static const char *const batched[] = {
    "kernel f(A: f16[P, M, K], B: f16[P, K, N]) -> (C: f16[P, M, N])\n"
    "{\n    C[p, m, n] = sum(k) A[p, m, k] * B[p, k, n];\n}\n",
    "kernel f(A: f16[P, M, K], B: f16[K, N]) -> (C: f16[P, M, N])\n"
    "{\n    C[p, m, n] = sum(k) A[p, m, k] * B[k, n];\n}\n",
    "kernel f(A: f16[M, P, K], B: f16[P, N, K]) -> (C: f16[P, M, N])\n"
    "{\n    C[p, m, n] = sum(k) A[m, p, k] * B[p, n, k];\n}\n",
    "kernel f(A: f16[M, P, K], B: f16[N, P, K], R: f32[P, N]) -> (C: f32[M, P, N])\n"
    "{\n    C[m, p, n] = sum(k) A[m, p, k] * B[n, p, k] + R[p, n];\n}\n",
    "kernel f(A: f16[M, P, K], B: f16[N, P, K], R: f32[P]) -> (C: f32[N, P, M])\n"
    "{\n    C[n, p, m] = 2 * sum(k) A[m, p, k] * B[n, p, k] + R[p];\n}\n",
    "kernel f(A: f16[M, P, K], B: f16[K, N, P]) -> (C: f32[M, N, P])\n"
    "{\n    C[m, n, p] = sum(k) A[m, p, k] * B[k, n, p];\n}\n",
    "kernel f(Q: f16[P, M, 2, K], B: f16[P, K, 2, 16]) -> (C: f16[P, 2, M, 16])\n"
    "{\n    C[p, h, m, n] = sum(k) Q[p, m, h, k] * B[p, k, h, n];\n}\n",
};

START_TEST(batches)
{
    check((extents){40, 16, 24, 3}, (uint64_t)_i,
          "%sschedule f for sm_90a { tile m %d, n %d, k 16; stages 2; epilogue %s; }\n",
          batched[_i % 7], _i % 7 == 4 ? 16 : 64, _i % 7 == 4 ? 64 : 16, epilogues[_i / 7]);
}
END_TEST

/* Extents that no tensor map can have, or that are nothing at all: the last variant takes them. */
START_TEST(every_shape_is_right)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1},   {1, 8, 8},   {64, 0, 16}, {3, 0, 5},  {0, 16, 16},  {16, 16, 0},
        {65, 17, 9}, {63, 15, 7}, {64, 1, 64}, {1, 64, 1}, {130, 33, 8}, {2, 200, 3},
    };
    const int64_t *s = shapes[_i % 12];
    check((extents){s[0], s[1], s[2], 1}, (uint64_t)_i,
          "kernel f(A: f16[M, K], B: f16[%s], bias: f32[N]) -> (C: f16[M, N])\n"
          "{\n    C[m, n] = relu(sum(k) A[m, k] * B[%s] + bias[n]);\n}\n"
          "schedule f for sm_90a { tile m 64, n 16, k 16; stages 3; }\n",
          _i / 12 ? "N, K" : "K, N", _i / 12 ? "n, k" : "k, n");
}
END_TEST

/* Products of a matrix and a vector: a tile has rows or columns that the operand lacks, which a
 * copy leaves unwritten and a store must leave out. */
START_TEST(vectors)
{
    static const char *const sources[] = {
        "kernel f(A: f16[M, K], x: f16[K]) -> (y: f16[M])\n"
        "{\n    y[m] = sum(k) A[m, k] * x[k];\n}\n",
        "kernel f(x: f16[K], B: f16[K, N]) -> (y: f16[N])\n"
        "{\n    y[n] = sum(k) x[k] * B[k, n];\n}\n",
        "kernel f(x: bf16[K], B: bf16[N, K], s: f32[N]) -> (y: f32[N])\n"
        "{\n    y[n] = s[n] * sum(k) x[k] * B[n, k];\n}\n",
        "kernel f(x: f16[P, K], B: f16[P, K, N]) -> (y: f16[P, N], z: f32[P, N])\n"
        "{\n    a[p, n] = sum(k) x[p, k] * B[p, k, n]; y[p, n] = a[p, n]; z[p, n] = a[p, n];\n}\n",
    };
    static const char *const settings[] = {"stages 1", "warpgroups 2", "epilogue interleaved"};
    check((extents){80, 88, 72, 2}, (uint64_t)_i, "%sschedule f for sm_90a { %s; }\n",
          sources[_i % 4], settings[_i / 4]);
}
END_TEST

/* Without a schedule, and with numbers for dimensions. */
START_TEST(chosen_schedules)
{
    static const char *const sources[] = {
        MATMUL,
        "kernel f(A: f16[70, 40], B: f16[40, 24]) -> (C: f16[70, 24])\n"
        "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n",
        "kernel f(A: bf16[M, K], x: bf16[K]) -> (y: f32[M])\n"
        "{\n    y[m] = sum(k) A[m, k] * x[k];\n}\n",
        "kernel f(x: f16[M, K], A: bf16[M], B: f16[N, K]) -> (C: f16[N, M])\n"
        "{\n    C[n, m] = sum(k) x[m, k] * B[n, k] + A[m];\n}\n",
    };
    check((extents){72, 24, 40, 1}, (uint64_t)_i, "%s", sources[_i]);
}
END_TEST

/* A test for each number below n. Sanitizers make them several times as slow: with them one of five,
 * which no cycle of a table above has as a divisor, of those where only the last pass is watched. */
static void add(TCase *t, const TTest *test, int n)
{
#ifdef TCC_SANITIZED
    const int first = 3, step = 5;
#else
    const int first = 0, step = 1;
#endif
    for (int i = first; i < n; i += step)
        tcase_add_loop_test(t, test, i, i + 1);
}

Suite *SUITE(void)
{
    Suite *s = suite_create("passes_preserve");
    TCase *operands = tcase_create("operands");
    TCase *pipeline = tcase_create("pipeline");
    TCase *results = tcase_create("results");
    TCase *shapes = tcase_create("shapes");
    add(operands, every_order_and_swizzle, 64);
    add(operands, every_depth_of_a_stage, 14);
    add(operands, every_product_becomes_tiles, 2 * (int)LEN(products));
    add(pipeline, every_pipeline, 108);
    tcase_add_test(pipeline, every_seed);
    add(results, every_width_of_a_tile, 32);
    add(results, several_blocks_of_rows_in_a_warpgroup, 16);
    add(results, every_epilogue, 4 * (int)LEN(tails));
    add(shapes, batches, 14);
    add(shapes, every_shape_is_right, 24);
    add(shapes, vectors, 12);
    add(shapes, chosen_schedules, 4);
    suite_add_tcase(s, operands);
    suite_add_tcase(s, pipeline);
    suite_add_tcase(s, results);
    suite_add_tcase(s, shapes);
    return s;
}

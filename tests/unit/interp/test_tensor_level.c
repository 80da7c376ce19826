/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/interp/program.h"

#include <float.h>
#include <math.h>

enum { M = 5, N = 9, K = 13, B = 2 };

/* Small whole numbers, different everywhere. */
static double number(int64_t i)
{
    return (double)(i * 7 % 11 - 5);
}

static void fill(double *data, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        data[i] = number(i);
}

/* ---- products -------------------------------------------------------------------------- */

/* Every order in which the three indices of A, B and C can lie, and a batch index anywhere. */
static const char *const orders[] = {"mk", "km"}, *const b_orders[] = {"kn", "nk"},
                         *const c_orders[] = {"mn", "nm"};

static void put_tensor(char *out, const char *order)
{
    for (const char *c = order; *c; c++)
        out += sprintf(out, "%s%c", c == order ? "" : ", ", *c - 32);
}

static void put_map(char *out, const char *order)
{
    for (const char *c = order; *c; c++)
        out += sprintf(out, "%s%c", c == order ? "" : ", ", *c);
}

static int64_t extent_of(char index)
{
    return index == 'm' ? M : index == 'n' ? N : index == 'k' ? K : B;
}

static int64_t at(const char *order, const int *values)
{
    int64_t i = 0;
    for (const char *c = order; *c; c++)
        i = i * extent_of(*c) + values[(unsigned char)*c];
    return i;
}

/* Operand x of the sum, read with a map: as it is, or computed as what is twice as large. */
static void put_operand(char *out, size_t size, char x, const char *map, const char *type,
                        bool is_computed)
{
    int n = snprintf(out, size, "  %%%c0 = arith.cast %%%c : field<f32[%s]>\n", x, x, map);
    if (is_computed)
        snprintf(out + n, size - (size_t)n,
                 "  %%%c1 = arith.add %%%c0, %%%c0 : field<f32[%s]>\n"
                 "  %%%c2 = arith.cast %%%c1 : field<%s[%s]>\n"
                 "  %%%c3 = arith.cast %%%c2 : field<f32[%s]>\n",
                 x, x, x, map, x, x, type, map, x, x, map);
}

/* computed: bit 0: A is, bit 1: B is. Intervals have to hold the results, and little else. */
static void check_product(const char *oa, const char *ob, const char *oc, const char *ab_type,
                          unsigned computed)
{
    char text[4096], ta[32], tb[32], tc[32], ma[32], mb[32], mc[32], xa[512], xb[512];
    put_tensor(ta, oa), put_tensor(tb, ob), put_tensor(tc, oc);
    put_map(ma, oa), put_map(mb, ob), put_map(mc, oc);
    put_operand(xa, sizeof xa, 'a', ma, ab_type, computed & 1);
    put_operand(xb, sizeof xb, 'b', mb, ab_type, computed & 2);
    bool batched = strchr(oc, 'b');
    const char *lead = batched ? "b, " : "";
    snprintf(text, sizeof text,
             "func @f(%%A: tensor<%s[%s]>, %%B: tensor<%s[%s]>, %%C: tensor<f32[%s]>) "
             "{dims = [M, N, K, B]} {\n"
             "  %%a = tensor.read %%A {map = [%s]} : field<%s[%s]>\n"
             "  %%b = tensor.read %%B {map = [%s]} : field<%s[%s]>\n"
             "%s%s"
             "  %%p = arith.mul %%a%c, %%b%c : field<f32[%sm, n, k]>\n"
             "  %%s = tensor.reduce %%p {over = [k], kind = sum} : field<f32[%sm, n]>\n"
             "  tensor.write %%s, %%C {map = [%s]}\n"
             "  return\n}\n",
             ab_type, ta, ab_type, tb, tc, ma, ab_type, ma, mb, ab_type, mb, xa, xb,
             computed & 1 ? '3' : '0', computed & 2 ? '3' : '0', lead, lead, mc);
    program p;
    program_load(&p, text);
    double a[M * K * B], b[K * N * B], c[M * N * B], low[M * N * B], high[M * N * B];
    fill(a, M * K * B);
    fill(b, K * N * B);
    int64_t dims[] = {M, N, K, B};
    const tcc_interp_options o = {
        .dims = dims, .low = (double *[]){NULL, NULL, low}, .high = (double *[]){NULL, NULL, high}};
    tcc_status status = program_run(&p, &o, (double *[]){a, b, c});
    ck_assert_msg(!status, "%s", p.said);
    double scale = (computed & 1 ? 2 : 1) * (computed & 2 ? 2 : 1);
    int values[128] = {0};
    for (values['b'] = 0; values['b'] < (batched ? B : 1); values['b']++)
        for (values['m'] = 0; values['m'] < M; values['m']++)
            for (values['n'] = 0; values['n'] < N; values['n']++) {
                double want = 0;
                for (values['k'] = 0; values['k'] < K; values['k']++)
                    want += a[at(oa, values)] * b[at(ob, values)] * scale;
                int64_t i = at(oc, values);
                ck_assert_double_eq(c[i], want);
                ck_assert(low[i] <= want && high[i] >= want && high[i] - low[i] < 1);
            }
    program_free(&p);
}

START_TEST(products_of_every_order)
{
    check_product(orders[_i & 1], b_orders[_i >> 1 & 1], c_orders[_i >> 2 & 1], "f16",
                  (unsigned)_i >> 3);
}
END_TEST

START_TEST(products_with_a_batch_index_anywhere)
{
    static const char *const a[] = {"bmk", "mbk", "mkb"}, *const b[] = {"bkn", "kbn", "nkb", "kn"},
                             *const c[] = {"bmn", "mbn", "mnb", "nmb"};
    for (unsigned computed = 0; computed < 4; computed++)
        check_product(a[_i % 3], b[_i / 3 % 4], c[_i / 12], "bf16", computed);
}
END_TEST

/* ---- the rest of a kernel -------------------------------------------------------------- */

static const char epilogue[] =
    "func @f(%A: tensor<f16[M, K]>, %B: tensor<f16[K, N]>, %bias: tensor<f32[N]>, %s: f32,\n"
    "        %C: tensor<f16[M, N]>, %D: tensor<f32[N, M]>) {dims = [M, N, K]} {\n"
    "  %a = tensor.read %A {map = [m, k]} : field<f16[m, k]>\n"
    "  %b = tensor.read %B {map = [k, n]} : field<f16[k, n]>\n"
    "  %x = arith.cast %a : field<f32[m, k]>\n"
    "  %y = arith.cast %b : field<f32[k, n]>\n"
    "  %p = arith.mul %x, %y : field<f32[m, n, k]>\n"
    "  %acc = tensor.reduce %p {over = [k], kind = sum} : field<f32[m, n]>\n"
    "  %c = tensor.read %C {map = [m, n]} : field<f16[m, n]>\n"
    "  %cf = arith.cast %c : field<f32[m, n]>\n"
    "  %r = tensor.read %bias {map = [n]} : field<f32[n]>\n"
    "  %t = arith.mul %acc, %s : field<f32[m, n]>\n"
    "  %u = arith.add %t, %r : field<f32[m, n]>\n"
    "  %zero = arith.const {value = 0.0} : f32\n"
    "  %pos = arith.cmp %u, %zero {pred = gt} : field<i1[m, n]>\n"
    "  %w = arith.select %pos, %u, %cf : field<f32[m, n]>\n"
    "  tensor.write %w, %C {map = [m, n]}\n"
    "  %old = arith.add %cf, %w : field<f32[m, n]>\n"
    "  tensor.write %old, %D {map = [n, m]}\n"
    "  return\n}\n";

static void run_epilogue(const tcc_interp_options *o, double *c, double *d)
{
    program p;
    program_load(&p, epilogue);
    double a[M * K], b[K * N], bias[N], scale = 0.5;
    fill(a, M * K);
    fill(b, K * N);
    fill(bias, N);
    tcc_status status = program_run(&p, o, (double *[]){a, b, bias, &scale, c, d});
    ck_assert_msg(!status, "%s", p.said);
    program_free(&p);
}

START_TEST(inputs_are_read_before_outputs_are_written)
{
    double a[M * K], b[K * N], c[M * N], d[N * M];
    fill(a, M * K);
    fill(b, K * N);
    fill(c, M * N);
    run_epilogue(&(tcc_interp_options){.dims = (int64_t[]){M, N, K}}, c, d);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++) {
            double sum = 0, old = number(m * N + n);
            for (int k = 0; k < K; k++)
                sum += a[m * K + k] * b[k * N + n];
            double u = sum * 0.5 + number(n), want = u > 0 ? u : old;
            ck_assert_double_eq(c[m * N + n], want);
            ck_assert_double_eq(d[n * M + m], old + want);
        }
}
END_TEST

START_TEST(only_the_sampled_rows_are_written)
{
    double c[M * N], d[N * M], all_c[M * N], all_d[N * M];
    fill(c, M * N);
    fill(all_c, M * N);
    for (int i = 0; i < N * M; i++)
        d[i] = -99;
    int64_t dims[] = {M, N, K}, rows[] = {3, 0, 7}; /* row 7 is one of D only */
    run_epilogue(&(tcc_interp_options){.dims = dims}, all_c, all_d);
    run_epilogue(&(tcc_interp_options){.dims = dims, .rows = rows, .n_rows = 3}, c, d);
    for (int m = 0; m < M; m++)
        for (int n = 0; n < N; n++)
            ck_assert_double_eq(c[m * N + n],
                                m == 3 || m == 0 ? all_c[m * N + n] : number(m * N + n));
    for (int n = 0; n < N; n++)
        for (int m = 0; m < M; m++)
            ck_assert_double_eq(d[n * M + m], n == 3 || n == 0 || n == 7 ? all_d[n * M + m] : -99);
}
END_TEST

START_TEST(an_empty_sum_is_zero)
{
    double c[M * N], d[N * M];
    fill(c, M * N);
    run_epilogue(&(tcc_interp_options){.dims = (int64_t[]){M, N, 0}}, c, d);
    for (int i = 0; i < M * N; i++) {
        double u = number(i % N);
        ck_assert_double_eq(c[i], u > 0 ? u : number(i));
    }
}
END_TEST

START_TEST(empty_outputs_need_no_data)
{
    program p;
    program_load(&p, epilogue);
    double b[K * N], bias[N], scale = 1;
    tcc_interp_options o = {.dims = (int64_t[]){0, N, K}};
    ck_assert_int_eq(program_run(&p, &o, (double *[]){NULL, b, bias, &scale, NULL, NULL}), TCC_OK);
    program_free(&p);
}
END_TEST

START_TEST(extents_must_be_possible)
{
    program p;
    program_load(&p, epilogue);
    tcc_interp_options o = {.dims = (int64_t[]){-1, N, K}};
    double *none[6] = {NULL};
    ck_assert_int_eq(program_run(&p, &o, none), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(p.said, "1:1: M is -1, expected 0 to 2147450880");
    *p.said = 0;
    o.dims = (int64_t[]){M, N, K};
    ck_assert_int_eq(program_run(&p, &o, none), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(p.said, "1:1: no data for 'A'");
    program_free(&p);
}
END_TEST

/* ---- coordinates -------------------------------------------------------------------------- */

/* x as read at a place, 0 outside. */
static double x_at(const double *x, int64_t h, int64_t w)
{
    return h >= 0 && h < M && w >= 0 && w < N ? x[h * N + w] : 0;
}

/* A 2 x 3 window at every second row and column, in which an index sets out from the middle. */
START_TEST(reads_at_expressions)
{
    program p;
    program_load(&p, "func @f(%x: tensor<f32[H, W]>, %y: tensor<f32[O, P]>) {extents = [[r, 2], [s, 3]]} {\n"
                     "  %a = tensor.read %x {map = [2 * o + r - 1, s + 2 * p - 2]} : field<f32[o, p, r, s]>\n"
                     "  %b = tensor.reduce %a {over = [r, s], kind = sum} : field<f32[o, p]>\n"
                     "  %c = tensor.read %x {map = [o / 2, $W - p % 3]} : field<f32[o, p]>\n"
                     "  %d = arith.add %b, %c : field<f32[o, p]>\n"
                     "  tensor.write %d, %y {map = [o, p]}\n"
                     "  return\n}\n");
    enum { O = 4, P = 6 };
    double x[M * N], y[O * P];
    fill(x, M * N);
    tcc_interp_options o = {.dims = (int64_t[]){M, N, O, P}};
    ck_assert_int_eq(program_run(&p, &o, (double *[]){x, y}), TCC_OK);
    for (int i = 0; i < O * P; i++) {
        double want = x_at(x, i / P / 2, N - i % P % 3);
        for (int r = 0; r < 2; r++)
            for (int s = 0; s < 3; s++)
                want += x_at(x, 2 * (i / P) + r - 1, s + 2 * (i % P) - 2);
        ck_assert_double_eq(y[i], want);
    }
    program_free(&p);
}
END_TEST

/* Rows that another tensor names, also such as there are not, and a diagonal. */
START_TEST(reads_at_what_is_loaded)
{
    program p;
    program_load(&p, "func @f(%x: tensor<f32[H, W]>, %row: tensor<i32[R]>, %y: tensor<f32[W, R]>) {\n"
                     "  %a = tensor.read %row {map = [r]} : field<i32[r]>\n"
                     "  %b = tensor.read %x, %a {map = [1, w], loaded = [0]} : field<f32[r, w]>\n"
                     "  %c = tensor.read %x {map = [w, w]} : field<f32[w]>\n"
                     "  %d = arith.sub %b, %c : field<f32[r, w]>\n"
                     "  tensor.write %d, %y {map = [w, r]}\n"
                     "  return\n}\n");
    double x[N * N], row[] = {3, -1, N, -2, N - 1, 2147483647}, y[N * 6];
    fill(x, N * N);
    tcc_interp_options o = {.dims = (int64_t[]){N, N, 6}};
    ck_assert_int_eq(program_run(&p, &o, (double *[]){x, row, y}), TCC_OK);
    for (int w = 0; w < N; w++)
        for (int r = 0; r < 6; r++) {
            bool inside = row[r] + 1 >= 0 && row[r] + 1 < N;
            double want = inside ? x[((int)row[r] + 1) * N + w] : 0;
            ck_assert_double_eq(y[w * 6 + r], want - x[w * N + w]);
        }
    program_free(&p);
}
END_TEST

/* Terms up to the diagonal alone, as a product, as a maximum of what begins as less than any and its place, and counted. */
START_TEST(reduces_the_terms_that_there_are)
{
    program p;
    program_load(&p, "func @f(%x: tensor<f32[M, N]>, %v: tensor<f32[N]>, %y: tensor<f32[M]>, %z: tensor<f32[M]>,\n"
                     "        %n: tensor<i32[M]>, %p: tensor<i32[M]>) {\n"
                     "  %a = tensor.read %x {map = [m, n]} : field<f32[m, n]>\n"
                     "  %b = tensor.read %v {map = [n]} : field<f32[n]>\n"
                     "  %c = arith.mul %a, %b : field<f32[m, n]>\n"
                     "  %i = tensor.index {name = m} : field<i32[m]>\n"
                     "  %j = tensor.index {name = n} : field<i32[n]>\n"
                     "  %d = arith.cmp %j, %i {pred = lt} : field<i1[m, n]>\n"
                     "  %s = tensor.reduce %c, %d {over = [n], kind = sum} : field<f32[m]>\n"
                     "  %t = tensor.reduce %c, %d {over = [n], kind = max} : field<f32[m]>\n"
                     "  %w = tensor.reduce %c, %d {over = [n], kind = argmax} : field<i32[m]>\n"
                     "  %one = arith.const {value = 1} : field<i32>\n"
                     "  %u = tensor.reduce %one, %d {over = [n], kind = sum} : field<i32[m]>\n"
                     "  tensor.write %s, %y {map = [m]}\n"
                     "  tensor.write %t, %z {map = [m]}\n"
                     "  tensor.write %u, %n {map = [m]}\n"
                     "  tensor.write %w, %p {map = [m]}\n"
                     "  return\n}\n");
    double x[M * N], v[N], y[M], z[M], n[M], places[M];
    fill(x, M * N);
    fill(v, N);
    tcc_interp_options o = {.dims = (int64_t[]){M, N}};
    ck_assert_int_eq(program_run(&p, &o, (double *[]){x, v, y, z, n, places}), TCC_OK);
    for (int m = 0; m < M; m++) {
        double sum = 0, most = -(double)INFINITY;
        int place = -1;
        for (int i = 0; i < m; i++) {
            sum += x[m * N + i] * v[i];
            place = x[m * N + i] * v[i] > most ? i : place;
            most = fmax(most, x[m * N + i] * v[i]);
        }
        ck_assert_double_eq(y[m], sum);
        ck_assert_double_eq(z[m], most);
        ck_assert_double_eq(n[m], m);
        ck_assert_double_eq(places[m], place);
    }
    program_free(&p);
}
END_TEST

/* ---- elementwise ------------------------------------------------------------------------- */

START_TEST(casts_round_and_outputs_do_not)
{
    program p;
    program_load(&p, "func @f(%x: tensor<f32[4]>, %y: tensor<f16[4]>, %z: tensor<f16[4]>) {\n"
                     "  %a = tensor.read %x {map = [i]} : field<f32[i]>\n"
                     "  %b = arith.cast %a : field<f16[i]>\n"
                     "  tensor.write %b, %y {map = [i]}\n"
                     "  tensor.write %a, %z {map = [i]}\n"
                     "  return\n}\n");
    double x[] = {1 + 0x1p-11, 1 + 3 * 0x1p-11, 0x1p-26, 7}, y[4], z[4];
    tcc_interp_options o = {0};
    ck_assert_int_eq(program_run(&p, &o, (double *[]){x, y, z}), TCC_OK);
    double rounded[] = {1, 1 + 0x1p-9, 0, 7};
    for (int i = 0; i < 4; i++) {
        ck_assert_double_eq(y[i], rounded[i]);
        ck_assert_double_eq(z[i], x[i]);
    }
    o.machine = true;
    ck_assert_int_eq(program_run(&p, &o, (double *[]){x, y, z}), TCC_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(z[i], rounded[i]);
    program_free(&p);
}
END_TEST

static const struct {
    const char *op;
    double x, want;
} functions[] = {
    {"arith.neg", 2, -2},
    {"math.abs", -3, 3},
    {"math.exp", 1, 2.718281828459045},
    {"math.log", 2, 0.6931471805599453},
    {"math.exp2", 3, 8},
    {"math.log2", 8, 3},
    {"math.sqrt", 2, 1.4142135623730951},
    {"math.rsqrt", 4, 0.5},
    {"math.tanh", 0.5, 0.46211715726000973},
    {"math.erf", 0.5, 0.5204998778130465},
    {"math.relu", -1, 0},
    {"math.relu", 1.5, 1.5},
    {"math.roundeven", 2.5, 2},
    {"math.roundeven", -1.5, -2},
    {"math.roundeven", 0.75, 1},
    {"math.sigmoid", 0, 0.5},
    {"math.sigmoid", 2, 0.8807970779778825},
    {"math.silu", 2, 1.761594155955765},
    {"math.gelu", 1, 0.8413447460685429},
    {"math.gelu_tanh", 1, 0.8411919906082768},
};
enum { N_FUNCTIONS = sizeof functions / sizeof *functions };

START_TEST(functions_have_their_values)
{
    char text[512];
    snprintf(text, sizeof text,
             "func @f(%%x: tensor<f32[1]>, %%y: tensor<f32[1]>) {\n"
             "  %%a = tensor.read %%x {map = [i]} : field<f32[i]>\n"
             "  %%b = %s %%a : field<f32[i]>\n"
             "  tensor.write %%b, %%y {map = [i]}\n"
             "  return\n}\n",
             functions[_i].op);
    program p;
    program_load(&p, text);
    double x = functions[_i].x, y;
    ck_assert_int_eq(program_run(&p, &(tcc_interp_options){0}, (double *[]){&x, &y}), TCC_OK);
    ck_assert_double_eq_tol(y, functions[_i].want, 1e-15 * (1 + fabs(functions[_i].want)));
    program_free(&p);
}
END_TEST

START_TEST(comparisons_know_nan)
{
    static const char *const preds[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    const double nan = (double)NAN;
    const double a[] = {1, 2, 2, nan, 0, nan}, b[] = {2, 1, 2, 0, nan, nan};
    static const char *const want[] = {"001000", "110111", "100000", "101000", "010000", "011000"};
    char text[512];
    snprintf(text, sizeof text,
             "func @f(%%x: tensor<f32[6]>, %%y: tensor<f32[6]>, %%z: tensor<i1[6]>) {\n"
             "  %%a = tensor.read %%x {map = [i]} : field<f32[i]>\n"
             "  %%b = tensor.read %%y {map = [i]} : field<f32[i]>\n"
             "  %%c = arith.cmp %%a, %%b {pred = %s} : field<i1[i]>\n"
             "  %%d = arith.cast %%c : field<i32[i]>\n"
             "  tensor.write %%d, %%z {map = [i]}\n"
             "  return\n}\n",
             preds[_i]);
    program p;
    double z[6];
    *p.said = 0;
    char *integers = strstr(text, "tensor<i1[6]>");
    memcpy(integers, "tensor<i8[6]>", 13);
    program_load(&p, text);
    double *args[] = {(double *)a, (double *)b, z};
    ck_assert_int_eq(program_run(&p, &(tcc_interp_options){0}, args), TCC_OK);
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq(z[i], want[_i][i] - '0');
    program_free(&p);
}
END_TEST

START_TEST(integers_of_every_op)
{
    static const struct {
        const char *op;
        double a, b, want;
    } cases[] = {
        {"arith.add", 2147483647, 1, -2147483648.0},
        {"arith.sub", 3, 5, -2},
        {"arith.mul", 65536, 65537, 65536},
        {"arith.div", -7, 2, -3},
        {"arith.rem", -7, 2, -1},
        {"arith.floor_div", -7, 2, -4},
        {"arith.floor_div", 7, 2, 3},
        {"arith.floor_div", -2147483648.0, -1, -2147483648.0},
        {"arith.floor_div", 7, 0, 7},
        {"arith.floor_rem", -7, 2, 1},
        {"arith.floor_rem", 7, 4, 3},
        {"arith.floor_rem", 7, 0, 0},
        {"arith.floor_rem", 7, -2, 0},
        {"arith.min", -7, 2, -7},
        {"arith.max", -7, 2, 2},
        {"arith.and", 12, 10, 8},
        {"arith.or", 12, 10, 14},
        {"arith.xor", 12, 10, 6},
        {"arith.shl", 3, 4, 48},
        {"arith.shr", -1, 28, 15},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "func @f(%%a: i32, %%b: i32, %%z: tensor<i32[1]>) {\n"
                 "  %%c = %s %%a, %%b : i32\n"
                 "  tensor.write %%c, %%z {map = [i]}\n"
                 "  return\n}\n",
                 cases[i].op);
        program p;
        program_load(&p, text);
        double a = cases[i].a, b = cases[i].b, z;
        double *args[] = {&a, &b, &z};
        ck_assert_int_eq(program_run(&p, &(tcc_interp_options){0}, args), TCC_OK);
        ck_assert_double_eq(z, cases[i].want);
        program_free(&p);
    }
}
END_TEST

/* A cast of x, and what comes of it. */
static const struct {
    const char *from, *to;
    double x, want;
} casts[] = {
    {"u8", "i32", 200, 200},
    {"i8", "i32", -56, -56},
    {"u4", "i32", 15, 15},
    {"i4", "i32", -8, -8},
    {"u8", "f32", 255, 255},
    {"i32", "i8", 200, -56},
    {"i32", "u8", -1, 255},
    {"i32", "i4", 9, -7},
    {"i32", "u4", 31, 15},
    {"u8", "i8", 200, -56},
    {"i8", "u8", -1, 255},
    {"f32", "i32", -2.75, -2},
    {"f32", "i32", 1e10, INT32_MAX},
    {"f32", "i32", -1e10, INT32_MIN},
    {"f32", "i8", 1000, 127},
    {"f32", "u8", -1, 0},
    {"f32", "u8", 300, 255},
    {"f32", "i32", (double)NAN, 0},
    {"f32", "i32", (double)INFINITY, INT32_MAX},
    {"i32", "f32", 16777217, 16777216},
    {"f32", "e4m3", 464, 448},
    {"f32", "e4m3", 3.1, 3},
    {"f32", "e5m2", 61439, 57344},
    {"f32", "e5m2", 61440, (double)INFINITY},
    {"e5m2", "e4m3", 0x1p-16, 0},
    {"e4m3", "f16", 0x1p-9, 0x1p-9},
};
enum { N_CASTS = sizeof casts / sizeof *casts };

START_TEST(casts_between_all_classes)
{
    char text[512];
    snprintf(text, sizeof text,
             "func @f(%%x: tensor<%s[1]>, %%y: tensor<%s[1]>) {\n"
             "  %%a = tensor.read %%x {map = [i]} : field<%s[i]>\n"
             "  %%b = arith.cast %%a : field<%s[i]>\n"
             "  tensor.write %%b, %%y {map = [i]}\n"
             "  return\n}\n",
             casts[_i].from, casts[_i].to, casts[_i].from, casts[_i].to);
    program p;
    program_load(&p, text);
    double x = casts[_i].x, y;
    ck_assert_int_eq(program_run(&p, &(tcc_interp_options){0}, (double *[]){&x, &y}), TCC_OK);
    ck_assert_msg(y == casts[_i].want, "%s %g in %s is %g", casts[_i].from, x, casts[_i].to, y);
    program_free(&p);
}
END_TEST

/* -0 is smaller than 0, as IEEE 754-2019 has it, for every order of the operands. */
START_TEST(the_sign_of_zero)
{
    const double x[] = {0.0, -0.0, -0.0}, y[] = {-0.0, 0.0, -0.0};
    const int negative[3][3] = {{1, 1, 1}, {0, 0, 1}, {0, 0, 0}};
    program p;
    program_load(&p, "func @f(%x: tensor<f32[3]>, %y: tensor<f32[3]>, %r: tensor<f32[3]>, "
                     "%s: tensor<f32[3]>, %t: tensor<f32[3]>) {\n"
                     "  %a = tensor.read %x {map = [i]} : field<f32[i]>\n"
                     "  %b = tensor.read %y {map = [i]} : field<f32[i]>\n"
                     "  %c = arith.min %a, %b : field<f32[i]>\n"
                     "  tensor.write %c, %r {map = [i]}\n"
                     "  %d = arith.max %a, %b : field<f32[i]>\n"
                     "  tensor.write %d, %s {map = [i]}\n"
                     "  %e = math.relu %a : field<f32[i]>\n"
                     "  tensor.write %e, %t {map = [i]}\n"
                     "  return\n}\n");
    double r[3][3];
    double *args[] = {(double *)x, (double *)y, r[0], r[1], r[2]};
    ck_assert_int_eq(program_run(&p, &(tcc_interp_options){0}, args), TCC_OK);
    for (int op = 0; op < 3; op++)
        for (int i = 0; i < 3; i++)
            ck_assert_msg(r[op][i] == 0 && !signbit(r[op][i]) == !negative[op][i],
                          "result %d of op %d is %g", i, op, r[op][i]);
    program_free(&p);
}
END_TEST

/* Sums of anything, sums of sums, and over several indices at once. */
/* One rounding, of what lies next to a midpoint of two f32, too: in double that is lost. */
START_TEST(multiply_adds_are_rounded_once)
{
    static const float x[][3] = {
        {0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f}, {0x1.fffffep0f, 0x1.fffffep0f, 0x1p-60f},
        {0x1.000002p0f, 0x1p-24f, 1},                   {0x1p-24f, 1 + 0x1p-23f, 0x1.000002p0f},
        {0x1.8p0f, 0x1p-25f, 0x1.000002p0f},            {3, 0x1p-149f, -0x1p-149f},
        {FLT_MAX, 2, -FLT_MAX},                         {FLT_MAX, FLT_MAX, 1},
        {1, 0x1.000002p-24f, 1},                        {-1, 0x1.fffffep-25f, 0x1.000002p0f},
    };
    enum { N_CASES = sizeof x / sizeof *x, N_RANDOM = 20000, N_ALL = N_CASES + N_RANDOM };
    static double a[N_ALL], b[N_ALL], c[N_ALL], r[N_ALL];
    uint64_t seed = 7;
    for (int i = 0; i < N_ALL; i++) {
        float v[3];
        for (int k = 0; k < 3; k++) {
            seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            int e = (int)(seed >> 58) - 32, near = k == 2 ? 24 : 0;
            v[k] = ldexpf((float)(int32_t)(seed >> 26 & 0xffffff) - 0x1p23f, e / 2 - near / 2);
        }
        a[i] = i < N_CASES ? x[i][0] : v[0];
        b[i] = i < N_CASES ? x[i][1] : v[1];
        c[i] = i < N_CASES ? x[i][2] : v[2];
    }
    program p;
    program_load(&p, "func @f(%x: tensor<f32[N]>, %y: tensor<f32[N]>, %z: tensor<f32[N]>, "
                     "%r: tensor<f32[N]>) {dims = [N]} {\n"
                     "  %a = tensor.read %x {map = [i]} : field<f32[i]>\n"
                     "  %b = tensor.read %y {map = [i]} : field<f32[i]>\n"
                     "  %c = tensor.read %z {map = [i]} : field<f32[i]>\n"
                     "  %d = arith.fma %a, %b, %c : field<f32[i]>\n"
                     "  tensor.write %d, %r {map = [i]}\n"
                     "  return\n}\n");
    const tcc_interp_options o = {.dims = (int64_t[]){N_ALL}, .machine = true};
    ck_assert_int_eq(program_run(&p, &o, (double *[]){a, b, c, r}), TCC_OK);
    for (int i = 0; i < N_ALL; i++) {
        float want = fmaf((float)a[i], (float)b[i], (float)c[i]);
        ck_assert_msg(r[i] == (double)want, "%a * %a + %a is %a, not %a", a[i], b[i], c[i], r[i],
                      (double)want);
    }
    program_free(&p);
}
END_TEST

/* The instructions that functions are made of have no denormals. */
START_TEST(exp2_and_rcp_flush)
{
    static const double x[] = {-126, -126.5, 0x1p126, 0x1p127, 0x1p-127, -0x1p-149, -0x1p127};
    static const double want[][7] = {
        {0x1p-126, 0, (double)INFINITY, (double)INFINITY, 1, 1, 0},
        {-1.0 / 126, -1.0 / 126.5, 0x1p-126, 0, (double)INFINITY, -(double)INFINITY, -0.0}};
    program p;
    program_load(&p, "func @f(%x: tensor<f32[7]>, %y: tensor<f32[7]>, %z: tensor<f32[7]>) {\n"
                     "  %a = tensor.read %x {map = [i]} : field<f32[i]>\n"
                     "  %b = math.exp2 %a : field<f32[i]>\n"
                     "  tensor.write %b, %y {map = [i]}\n"
                     "  %c = math.rcp %a : field<f32[i]>\n"
                     "  tensor.write %c, %z {map = [i]}\n"
                     "  return\n}\n");
    double got[2][7];
    ck_assert_int_eq(
        program_run(&p, &(tcc_interp_options){0}, (double *[]){(double *)x, got[0], got[1]}),
        TCC_OK);
    for (int f = 0; f < 2; f++)
        for (int i = 0; i < 7; i++)
            ck_assert_msg(got[f][i] == want[f][i] && !signbit(got[f][i]) == !signbit(want[f][i]),
                          "function %d of %a is %a", f, x[i], got[f][i]);
    program_free(&p);
}
END_TEST

START_TEST(sums_of_any_expression)
{
    program p;
    program_load(&p, "func @f(%x: tensor<f32[3, 4]>, %y: tensor<f32[3]>, %z: tensor<f32[3]>) {\n"
                     "  %a = tensor.read %x {map = [i, j]} : field<f32[i, j]>\n"
                     "  %s = tensor.reduce %a {over = [j], kind = sum} : field<f32[i]>\n"
                     "  %b = tensor.read %x {map = [u, v]} : field<f32[u, v]>\n"
                     "  %e = math.abs %b : field<f32[u, v]>\n"
                     "  %t = tensor.reduce %e {over = [u, v], kind = sum} : field<f32>\n"
                     "  %q = arith.mul %s, %t : field<f32[i]>\n"
                     "  tensor.write %q, %y {map = [i]}\n"
                     "  %w = arith.mul %s, %a : field<f32[i, j]>\n"
                     "  %r = tensor.reduce %w {over = [j], kind = sum} : field<f32[i]>\n"
                     "  tensor.write %r, %z {map = [i]}\n"
                     "  return\n}\n");
    double x[] = {1, -2, 3, 4, 0, 1, 0, 1, 5, 5, -5, 1}, y[3], z[3];
    ck_assert_int_eq(program_run(&p, &(tcc_interp_options){0}, (double *[]){x, y, z}), TCC_OK);
    double sums[] = {6, 2, 6};
    for (int i = 0; i < 3; i++) {
        ck_assert_double_eq(y[i], sums[i] * 28);
        ck_assert_double_eq(z[i], sums[i] * sums[i]);
    }
    program_free(&p);
}
END_TEST

/* Parts of a sum, 2 terms in a row and more parts than terms for some: of products by the fast path, of one with a
 * computed operand, of no product; the parts' index first, last, and summed again. */
START_TEST(sums_in_parts)
{
    enum { TERMS = 7, ROWS = 3 };
    static const char *const terms[] = {
        "  %t = arith.mul %a0, %b0 : field<f32[m, k]>\n",
        ("  %c = arith.add %a, %a : field<f16[m, k]>\n  %c0 = arith.cast %c : field<f32[m, k]>\n"
         "  %t = arith.mul %c0, %b0 : field<f32[m, k]>\n"),
        "  %t = arith.sub %a0, %b0 : field<f32[m, k]>\n"};
    const int parts = _i / 3 ? 5 : 3, form = _i % 3;
    char text[2048];
    snprintf(text, sizeof text,
             "func @f(%%A: tensor<f16[3, K]>, %%B: tensor<f16[K]>, %%P: tensor<f32[%d, 3]>, %%Q: tensor<f32[3, %d]>, "
             "%%R: tensor<f32[3]>) {dims = [K]} {\n"
             "  %%a = tensor.read %%A {map = [m, k]} : field<f16[m, k]>\n"
             "  %%b = tensor.read %%B {map = [k]} : field<f16[k]>\n"
             "  %%a0 = arith.cast %%a : field<f32[m, k]>\n"
             "  %%b0 = arith.cast %%b : field<f32[k]>\n%s"
             "  %%s = tensor.reduce %%t {over = [k], kind = sum, parts = [s, %d, 2]} : field<f32[s, m]>\n"
             "  tensor.write %%s, %%P {map = [s, m]}\n"
             "  tensor.write %%s, %%Q {map = [m, s]}\n"
             "  %%r = tensor.reduce %%s {over = [s], kind = sum} : field<f32[m]>\n"
             "  tensor.write %%r, %%R {map = [m]}\n"
             "  return\n}\n",
             parts, parts, terms[form], parts);
    program prog;
    program_load(&prog, text);
    double a[ROWS * TERMS], b[TERMS], p[15], q[15], r[ROWS], low[2][15], high[2][15], rl[ROWS], rh[ROWS];
    fill(a, ROWS * TERMS);
    fill(b, TERMS);
    const tcc_interp_options o = {.dims = (int64_t[]){TERMS},
                                  .low = (double *[]){NULL, NULL, low[0], low[1], rl},
                                  .high = (double *[]){NULL, NULL, high[0], high[1], rh}};
    tcc_status status = program_run(&prog, &o, (double *[]){a, b, p, q, r});
    ck_assert_msg(!status, "%s", prog.said);
    for (int m = 0; m < ROWS; m++) {
        double want[5] = {0}, all = 0;
        for (int k = 0; k < TERMS; k++) {
            double x = a[m * TERMS + k], term = form == 2 ? x - b[k] : x * b[k] * (form == 1 ? 2 : 1);
            want[k / 2 % parts] += term;
            all += term;
        }
        for (int s = 0; s < parts; s++) {
            int at[] = {s * ROWS + m, m * parts + s};
            ck_assert_double_eq(p[at[0]], want[s]);
            ck_assert_double_eq(q[at[1]], want[s]);
            for (int i = 0; i < 2; i++)
                ck_assert(low[i][at[i]] <= want[s] && high[i][at[i]] >= want[s] &&
                          high[i][at[i]] - low[i][at[i]] < 1);
        }
        ck_assert_double_eq(r[m], all);
    }
    program_free(&prog);
}
END_TEST

START_TEST(parts_are_as_many_as_their_index_has_values)
{
    program p;
    program_load(&p, "func @f(%x: tensor<f32[4]>, %y: tensor<f32[3]>) {\n"
                     "  %a = tensor.read %x {map = [k]} : field<f32[k]>\n"
                     "  %s = tensor.reduce %a {over = [k], kind = sum, parts = [s, 2, 1]} : field<f32[s]>\n"
                     "  tensor.write %s, %y {map = [s]}\n"
                     "  return\n}\n");
    double x[4] = {0}, y[3];
    ck_assert_int_eq(program_run(&p, &(tcc_interp_options){0}, (double *[]){x, y}), TCC_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(p.said, "index s ranges over 2 and over 3 elements"));
    program_free(&p);
}
END_TEST

/* A sum over k of a * b, whose elements are given, added in another type. */
static const struct {
    const char *a, *b, *product, *sum;
    double x[4], y[4];
    double want, rounded; /* by the machine */
} sums[] = {
    {"u8", "i8", "i32", "i32", {255, 255, 1, 0}, {-128, -128, 127, 5}, -65153, -65153},
    {"u4", "i4", "i32", "i32", {15, 15, 1, 0}, {-8, -8, 7, 5}, -233, -233},
    {"i4", "i4", "i32", "i32", {-8, -8, -8, -8}, {-8, -8, -8, -8}, 256, 256},
    {"i32", "i32", "i32", "i32", {65536, 65536, 3, 0}, {32767, 32767, 5, 0}, -131057, -131057},
    {"i32", "i32", "i32", "i32", {65536, 1, 0, 0}, {65536, 7, 0, 0}, 7, 7},
    {"e4m3", "e5m2", "f32", "f32", {448, 0.5, 0, 1}, {57344, 2, 0, 1}, 25690114, 25690114},
    {"f16", "f16", "f32", "f16", {2048, 1, 1, 1}, {1, 1, 0, 0}, 2049, 2048},
    {"bf16", "bf16", "f32", "bf16", {256, 1, 1, 1}, {1, 1, 1, 1}, 259, 260},
    {"f16", "f16", "f16", "f16", {0x1.00cp0, 1}, {0x1.00cp0, -1}, 0x1.809p-8, 0x1.8p-8},
};
enum { N_SUMS = sizeof sums / sizeof *sums };

START_TEST(sums_in_every_type)
{
    char text[1024];
    const char *a = sums[_i].a, *b = sums[_i].b, *in = sums[_i].product, *r = sums[_i].sum;
    snprintf(text, sizeof text,
             "func @f(%%x: tensor<%s[1, 4]>, %%y: tensor<%s[4, 1]>, %%z: tensor<%s[1, 1]>) {\n"
             "  %%a = tensor.read %%x {map = [m, k]} : field<%s[m, k]>\n"
             "  %%b = tensor.read %%y {map = [k, n]} : field<%s[k, n]>\n"
             "  %%c = arith.cast %%a : field<%s[m, k]>\n"
             "  %%d = arith.cast %%b : field<%s[k, n]>\n"
             "  %%p = arith.mul %%c, %%d : field<%s[m, k, n]>\n"
             "  %%s = tensor.reduce %%p {over = [k], kind = sum} : field<%s[m, n]>\n"
             "  tensor.write %%s, %%z {map = [m, n]}\n"
             "  return\n}\n",
             a, b, r, a, b, in, in, in, r);
    program p;
    program_load(&p, text);
    double z, *args[] = {(double *)sums[_i].x, (double *)sums[_i].y, &z};
    ck_assert_int_eq(program_run(&p, &(tcc_interp_options){0}, args), TCC_OK);
    ck_assert_double_eq(z, sums[_i].want);
    ck_assert_int_eq(program_run(&p, &(tcc_interp_options){.machine = true}, args), TCC_OK);
    ck_assert_double_eq(z, sums[_i].rounded);
    program_free(&p);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, products_of_every_order, 0, 32);
    tcase_add_loop_test(t, products_with_a_batch_index_anywhere, 0, 48);
    tcase_add_test(t, inputs_are_read_before_outputs_are_written);
    tcase_add_test(t, only_the_sampled_rows_are_written);
    tcase_add_test(t, an_empty_sum_is_zero);
    tcase_add_test(t, empty_outputs_need_no_data);
    tcase_add_test(t, extents_must_be_possible);
    tcase_add_test(t, reads_at_expressions);
    tcase_add_test(t, reads_at_what_is_loaded);
    tcase_add_test(t, reduces_the_terms_that_there_are);
    tcase_add_test(t, casts_round_and_outputs_do_not);
    tcase_add_loop_test(t, functions_have_their_values, 0, N_FUNCTIONS);
    tcase_add_loop_test(t, casts_between_all_classes, 0, N_CASTS);
    tcase_add_loop_test(t, sums_in_every_type, 0, N_SUMS);
    tcase_add_loop_test(t, comparisons_know_nan, 0, 6);
    tcase_add_test(t, integers_of_every_op);
    tcase_add_test(t, the_sign_of_zero);
    tcase_add_test(t, multiply_adds_are_rounded_once);
    tcase_add_test(t, exp2_and_rcp_flush);
    tcase_add_test(t, sums_of_any_expression);
    tcase_add_loop_test(t, sums_in_parts, 0, 6);
    tcase_add_test(t, parts_are_as_many_as_their_index_has_values);
}

Suite *SUITE(void)
{
    return suite_of("tensor_level", add_tests);
}

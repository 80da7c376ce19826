/* Which cuBLASLt product a kernel's arguments describe: computed by both definitions and compared.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/product.h"

#include <check.h>
#include <string.h>

#include "tests/unit/suite.h"

enum { MAX_TENSORS = 4, MAX_ELEMS = 4096 };

static const char letters[] = "bmnk";
static const int64_t extents[] = {3, 4, 5, 6};

static char why[512];
static tcc_arg_info infos[MAX_TENSORS];
static tensor tensors[MAX_TENSORS];
static const char *names[MAX_TENSORS][NPY_MAX_RANK], *indices_of[MAX_TENSORS][NPY_MAX_RANK];
static double values[MAX_TENSORS][MAX_ELEMS];
static size_t n_tensors;

static int64_t extent_of(char letter)
{
    return extents[strchr(letters, letter) - letters];
}

/* An argument with these index letters. */
static void add(const char *indices, tcc_arg_role role)
{
    static const char *const dims[] = {"B", "M", "N", "K"};
    size_t t = n_tensors++;
    infos[t] = (tcc_arg_info){.name = "x", .type = "f16", .role = role, .dims = names[t],
                              .rank = (unsigned)strlen(indices)};
    tensors[t] = (tensor){.info = &infos[t], .type = elem_type_find("f16"), .n = 1};
    for (size_t i = 0; indices[i]; i++) {
        names[t][i] = dims[strchr(letters, indices[i]) - letters];
        tensors[t].extents[i] = extent_of(indices[i]);
        tensors[t].n *= (size_t)extent_of(indices[i]);
    }
    tensors[t].span = tensors[t].n;
    int64_t stride = 1;
    for (size_t i = strlen(indices); i-- > 0; stride *= tensors[t].extents[i])
        tensors[t].strides[i] = stride;
    for (size_t i = 0; i < tensors[t].n; i++)
        values[t][i] = (double)((i * 7 + t * 3) % 11) - 5;
}

static void take(const char *a, const char *b, const char *c)
{
    n_tensors = 0;
    add(a, TCC_ARG_IN);
    add(b, TCC_ARG_IN);
    add(c, TCC_ARG_OUT);
}

static size_t offset(const char *indices, const int64_t *at)
{
    size_t o = 0;
    for (size_t i = 0; indices[i]; i++)
        o = o * (size_t)extent_of(indices[i]) + (size_t)at[strchr(letters, indices[i]) - letters];
    return o;
}

/* The kernel's definition: the sum over k for every b, m and n that c has. */
static void compute_kernel(const char *a, const char *b, const char *c, double *out)
{
    int64_t at[4], batches = strchr(c, 'b') ? extents[0] : 1;
    memset(out, 0, MAX_ELEMS * sizeof *out);
    for (at[0] = 0; at[0] < batches; at[0]++)
        for (at[1] = 0; at[1] < extents[1]; at[1]++)
            for (at[2] = 0; at[2] < extents[2]; at[2]++)
                for (at[3] = 0; at[3] < extents[3]; at[3]++)
                    out[offset(c, at)] += values[0][offset(a, at)] * values[1][offset(b, at)];
}

/* Element (i, j) of what the product reads: column-major, transposed where it says so. */
static double *at(const cublaslt_matrix *m, double *data, int batch, uint64_t i, uint64_t j)
{
    uint64_t row = m->transposed ? j : i, col = m->transposed ? i : j;
    ck_assert_uint_lt(row, m->rows);
    ck_assert_uint_lt(col, m->cols);
    return &data[batch * m->batch_stride + (int64_t)col * m->ld + (int64_t)row];
}

/* cuBLASLt's definition. */
static void compute_product(const product *p, double *out)
{
    const cublaslt_problem *q = &p->problem;
    uint64_t sum = q->x.transposed ? q->x.rows : q->x.cols;
    ck_assert(!q->d.transposed);
    memset(out, 0, MAX_ELEMS * sizeof *out);
    for (int batch = 0; batch < q->batch; batch++)
        for (uint64_t i = 0; i < q->d.rows; i++)
            for (uint64_t j = 0; j < q->d.cols; j++)
                for (uint64_t l = 0; l < sum; l++) {
                    double x = *at(&q->x, values[p->x], batch, i, l);
                    *at(&q->d, out, batch, i, j) += x * *at(&q->y, values[p->y], batch, l, j);
                }
}

static const char *const orders[][3] = {
    {"mk", "kn", "mn"},    {"mk", "nk", "mn"},    {"km", "kn", "mn"},    {"km", "nk", "mn"},
    {"mk", "kn", "nm"},    {"mk", "nk", "nm"},    {"km", "kn", "nm"},    {"km", "nk", "nm"},
    {"kn", "mk", "mn"},    {"bmk", "bkn", "bmn"}, {"bmk", "bnk", "bmn"}, {"mbk", "bkn", "bmn"},
    {"mbk", "nbk", "mbn"}, {"kbm", "kbn", "bnm"}, {"bkm", "kbn", "nbm"},
};

START_TEST(every_index_order_is_that_product)
{
    double expected[MAX_ELEMS], got[MAX_ELEMS];
    product p;
    take(orders[_i][0], orders[_i][1], orders[_i][2]);
    ck_assert_msg(product_find(tensors, n_tensors, false, &p, why, sizeof why), "%s", why);
    ck_assert(p.whole);
    compute_kernel(orders[_i][0], orders[_i][1], orders[_i][2], expected);
    compute_product(&p, got);
    ck_assert_mem_eq(expected, got, tensors[2].n * sizeof *got);
}
END_TEST

START_TEST(leading_dimensions_are_legal)
{
    product p;
    take(orders[_i][0], orders[_i][1], orders[_i][2]);
    ck_assert(product_find(tensors, n_tensors, false, &p, why, sizeof why));
    ck_assert_int_ge(p.problem.x.ld, (int64_t)p.problem.x.rows);
    ck_assert_int_ge(p.problem.y.ld, (int64_t)p.problem.y.rows);
    ck_assert_int_ge(p.problem.d.ld, (int64_t)p.problem.d.rows);
}
END_TEST

static const char *const others[][3] = {
    {"mk", "kn", "bmn"}, /* b is in no input */
    {"mk", "bkn", "bmn"},
    {"mkb", "bkn", "bmn"}, /* the batch is innermost */
    {"bmk", "bkn", "mnb"},
    {"mn", "mn", "mn"}, /* no sum */
    {"k", "kn", "n"},
    {"mm", "kn", "mn"},
    {"mk", "bn", "mn"}, /* two different sums */
};

START_TEST(what_is_no_product_is_told)
{
    product p;
    take(others[_i][0], others[_i][1], others[_i][2]);
    ck_assert(!product_find(tensors, n_tensors, false, &p, why, sizeof why));
    ck_assert_msg(!strncmp(why, "no comparison with cuBLASLt: it does not compute", 47), "%s", why);
}
END_TEST

START_TEST(a_bias_is_a_vector_over_the_last_index)
{
    product p;
    take("mk", "kn", "mn");
    ck_assert(!product_find(tensors, n_tensors, true, &p, why, sizeof why));
    n_tensors = 2;
    add("m", TCC_ARG_IN);
    add("mn", TCC_ARG_OUT);
    ck_assert(!product_find(tensors, n_tensors, true, &p, why, sizeof why));
    n_tensors = 2;
    add("n", TCC_ARG_IN);
    add("mn", TCC_ARG_OUT);
    ck_assert(product_find(tensors, n_tensors, true, &p, why, sizeof why));
    ck_assert_int_eq(p.bias, 2);
    ck_assert_uint_eq(p.d, 3);
    ck_assert(p.whole && p.problem.relu_bias);
    ck_assert(product_find(tensors, n_tensors, false, &p, why, sizeof why));
    ck_assert(!p.whole);
}
END_TEST

START_TEST(an_inout_is_another_function)
{
    product p;
    take("mk", "kn", "mn");
    infos[2].role = TCC_ARG_INOUT;
    ck_assert(product_find(tensors, n_tensors, false, &p, why, sizeof why));
    ck_assert(!p.whole);
}
END_TEST

START_TEST(bound_dimensions_go_by_extent)
{
    product p;
    take("mk", "kn", "mn");
    for (int i = 0; i < 3; i++)
        names[i][0] = names[i][1] = NULL;
    ck_assert(product_find(tensors, n_tensors, false, &p, why, sizeof why));
    for (int i = 0; i < 3; i++)
        tensors[i].extents[0] = tensors[i].extents[1] = 8;
    ck_assert(!product_find(tensors, n_tensors, false, &p, why, sizeof why));
}
END_TEST

/* Equal extents, which do not tell one index from another. */
START_TEST(indices_tell_bound_dimensions_apart)
{
    const char *const *o = orders[_i];
    product p, expected;
    take(o[0], o[1], o[2]);
    ck_assert(product_find(tensors, n_tensors, false, &expected, why, sizeof why));
    for (int i = 0; i < 3; i++) {
        infos[i].indices = indices_of[i];
        for (size_t j = 0; o[i][j]; j++) {
            names[i][j] = NULL;
            indices_of[i][j] = (const char *[]){"b", "m", "n", "k"}[strchr(letters, o[i][j]) - letters];
            tensors[i].extents[j] = 8;
        }
    }
    ck_assert_msg(product_find(tensors, n_tensors, false, &p, why, sizeof why), "%s", why);
    ck_assert_uint_eq(p.x, expected.x);
    ck_assert_uint_eq(p.y, expected.y);
    ck_assert_int_eq(p.problem.x.transposed, expected.problem.x.transposed);
    ck_assert_int_eq(p.problem.y.transposed, expected.problem.y.transposed);
    ck_assert_int_eq(p.problem.x.batch_stride != 0, expected.problem.x.batch_stride != 0);
}
END_TEST

START_TEST(other_arguments_are_told)
{
    product p;
    take("mk", "kn", "mn");
    tensors[1].type = NULL; /* a scalar */
    ck_assert(!product_find(tensors, n_tensors, false, &p, why, sizeof why));
    take("mk", "kn", "mn");
    infos[2].role = TCC_ARG_IN;
    ck_assert(!product_find(tensors, n_tensors, false, &p, why, sizeof why));
    ck_assert_str_eq(why, "no comparison with cuBLASLt: there is no output");
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("product");
    TCase *tcase = tcase_create("product");
    tcase_add_loop_test(tcase, every_index_order_is_that_product, 0,
                        (int)(sizeof orders / sizeof orders[0]));
    tcase_add_loop_test(tcase, leading_dimensions_are_legal, 0,
                        (int)(sizeof orders / sizeof orders[0]));
    tcase_add_loop_test(tcase, what_is_no_product_is_told, 0,
                        (int)(sizeof others / sizeof others[0]));
    tcase_add_test(tcase, a_bias_is_a_vector_over_the_last_index);
    tcase_add_test(tcase, an_inout_is_another_function);
    tcase_add_test(tcase, bound_dimensions_go_by_extent);
    tcase_add_loop_test(tcase, indices_tell_bound_dimensions_apart, 0,
                        (int)(sizeof orders / sizeof orders[0]));
    tcase_add_test(tcase, other_arguments_are_told);
    suite_add_tcase(suite, tcase);
    return suite;
}

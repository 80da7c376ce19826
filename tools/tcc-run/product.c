/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/product.h"

#include <stdio.h>
#include <string.h>

/* Whether dimension i of a and dimension j of b are one index: by its name, where that is known; by the
 * dimension's name, or by extent where they are numbers. */
static bool same_index(const tensor *a, unsigned i, const tensor *b, unsigned j)
{
    if (a->info->indices && b->info->indices)
        return !strcmp(a->info->indices[i], b->info->indices[j]);
    const char *x = a->info->dims[i], *y = b->info->dims[j];
    return x && y ? !strcmp(x, y) : !x && !y && a->extents[i] == b->extents[j];
}

/* Where dimension i of `of` is in t; -1 when it is not there, -2 when it is there twice. */
static int find_index(const tensor *of, unsigned i, const tensor *t)
{
    int found = -1;
    for (unsigned j = 0; j < t->info->rank; j++)
        if (same_index(of, i, t, j))
            found = found == -1 ? (int)j : -2;
    return found;
}


/* One operand: `a` and `b` are the dimensions that are its rows and columns in the product, and
 * `batch` the remaining one or -1. It is transposed if its rows do not have stride 1. */
static bool describe(const tensor *t, int a, int b, int batch, cublaslt_matrix *out)
{
    bool transposed = a != (int)t->info->rank - 1;
    if ((transposed && b != (int)t->info->rank - 1) || t->strides[t->info->rank - 1] != 1)
        return false; /* the batch is innermost, or nothing is */
    int inner = transposed ? b : a, outer = transposed ? a : b;
    *out = (cublaslt_matrix){.type = t->type->name,
                             .transposed = transposed,
                             .rows = (uint64_t)t->extents[inner],
                             .cols = (uint64_t)t->extents[outer],
                             .ld = t->strides[outer],
                             .batch_stride = batch < 0 ? 0 : t->strides[batch]};
    return true;
}

/* The dimension of t that is neither a nor b; -1 when there is none. */
static int remaining(const tensor *t, int a, int b)
{
    for (int i = 0; i < (int)t->info->rank; i++)
        if (i != a && i != b)
            return i;
    return -1;
}

/* D's rows are its innermost index, its columns the other one that is not a batch. */
static bool find_problem(const tensor *a, const tensor *b, const tensor *d, product *out)
{
    unsigned rank = d->info->rank;
    if (a->info->rank != rank || b->info->rank != rank || rank < 2 || rank > 3)
        return false;
    int row = (int)rank - 1, column = -1, batch = -1;
    for (unsigned i = 0; i < rank; i++) {
        int in_a = find_index(d, i, a), in_b = find_index(d, i, b);
        if (in_a == -2 || in_b == -2 || find_index(d, i, d) != (int)i || (in_a < 0 && in_b < 0))
            return false;
        if (in_a >= 0 && in_b >= 0)
            batch = batch == -1 && (int)i != row ? (int)i : -2;
        else if ((int)i != row)
            column = (int)i;
    }
    if (batch == -2 || column < 0 || (batch < 0) != (rank == 2))
        return false;
    bool swapped = find_index(d, (unsigned)row, a) < 0; /* the rows are B's */
    const tensor *x = swapped ? b : a, *y = swapped ? a : b;
    int x_row = find_index(d, (unsigned)row, x), y_column = find_index(d, (unsigned)column, y);
    int x_batch = batch < 0 ? -1 : find_index(d, (unsigned)batch, x);
    int y_batch = batch < 0 ? -1 : find_index(d, (unsigned)batch, y);
    if (x_row < 0 || y_column < 0)
        return false;
    int x_sum = remaining(x, x_row, x_batch), y_sum = remaining(y, y_column, y_batch);
    if (!same_index(x, (unsigned)x_sum, y, (unsigned)y_sum))
        return false;
    out->x = swapped;
    out->y = !swapped;
    cublaslt_problem *p = &out->problem;
    p->batch = batch < 0 ? 1 : (int)d->extents[batch];
    return d->span == d->n && describe(x, x_row, x_sum, x_batch, &p->x) &&
           describe(y, y_sum, y_column, y_batch, &p->y) &&
           describe(d, row, column, batch, &p->d);
}

bool product_find(const tensor *args, size_t n, bool relu_bias, product *out, char *why,
                  size_t why_size)
{
    *out = (product){.bias = -1};
    const char *wrong = NULL;
    if (n < 3 || !args[0].type || !args[1].type || args[0].info->role != TCC_ARG_IN ||
        args[1].info->role != TCC_ARG_IN)
        wrong = "the first two arguments are not input tensors";
    while (!wrong && out->d < n && (!args[out->d].type || args[out->d].info->role == TCC_ARG_IN))
        out->d++;
    if (!wrong && out->d == n)
        wrong = "there is no output";
    if (!wrong && !find_problem(&args[0], &args[1], &args[out->d], out))
        wrong = "it does not compute a product of its first two arguments that cuBLASLt supports";
    if (!wrong && relu_bias) {
        const tensor *d = &args[out->d];
        for (size_t i = 2; i < n && out->bias < 0; i++)
            if (args[i].type && args[i].info->role == TCC_ARG_IN && args[i].info->rank == 1 &&
                same_index(&args[i], 0, d, d->info->rank - 1))
                out->bias = (int)i;
        if (out->bias < 0)
            wrong = "it has no bias over the output's last index";
    }
    out->problem.relu_bias = relu_bias;
    out->whole = !wrong && n == (relu_bias ? 4u : 3u) && args[out->d].info->role == TCC_ARG_OUT;
    if (wrong)
        snprintf(why, why_size, "no comparison with cuBLASLt: %s", wrong);
    return !wrong;
}

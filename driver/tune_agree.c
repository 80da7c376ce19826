/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc_tune.h>

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "driver/elements.h"
#include "support/threads.h"

#define MOST_APART 0.1

enum { PIECE = 1 << 16, SAMPLE = 1 << 16 };

typedef struct comparison {
    tcc_scalar elem;
    const void *a, *b;
    size_t n;
    double most, per_size; /* the largest difference allowed, in all and relative to the size of each */
    atomic_size_t next;
    atomic_bool differ;
} comparison;

static void *compare_pieces(void *arg)
{
    comparison *c = arg;
    for (size_t begin; (begin = atomic_fetch_add(&c->next, PIECE)) < c->n && !c->differ;) {
        size_t end = c->n - begin < PIECE ? c->n : begin + PIECE;
        for (size_t i = begin; i < end; i++) {
            double x = tcc_element_get(c->elem, c->a, (int64_t)i), y = tcc_element_get(c->elem, c->b, (int64_t)i);
            bool same = x == y || (isnan(x) && isnan(y)) ||
                        (isfinite(x) && isfinite(y) && fabs(x - y) <= c->most + c->per_size * fabs(x));
            if (!same)
                c->differ = true;
        }
    }
    return NULL;
}

/* For a sample. */
static double root_mean_square(tcc_scalar elem, const void *data, size_t n)
{
    size_t step = n / SAMPLE + 1, counted = 0;
    double sum = 0;
    for (size_t i = 0; i < n; i += step, counted++) {
        double x = tcc_element_get(elem, data, (int64_t)i);
        sum += isfinite(x) ? x * x : 0;
    }
    return counted ? sqrt(sum / (double)counted) : 0;
}

bool tcc_tune_agree(const char *type, const void *a, const void *b, size_t n)
{
    comparison c = {.a = a, .b = b, .n = n, .most = 1};
    if (!tcc_scalar_find(type, strlen(type), &c.elem))
        return false;
    if (!n || !memcmp(a, b, (n * tcc_scalar_bits(c.elem) + 7) / 8))
        return true;
    if (tcc_scalar_classify(c.elem) == TCC_CLASS_FLOAT) {
        c.most = MOST_APART * root_mean_square(c.elem, a, n);
        c.per_size = MOST_APART;
    }
    tcc_run_threads(tcc_threads_for(n / PIECE + 1), compare_pieces, &c);
    return !c.differ;
}

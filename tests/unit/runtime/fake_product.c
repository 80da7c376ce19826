/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/runtime/fake_product.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/tcc-run/element.h"

bool fake_product_is(const char *entry)
{
    return !strncmp(entry, "fake_product", 12);
}

void **fake_product_pointer(fake_product *p, const char *name)
{
    const struct {
        const char *name;
        void **out;
    } pointers[] = {{"A", &p->a}, {"B", &p->b}, {"C", &p->c}, {"bias", &p->bias}};
    for (size_t i = 0; i < sizeof pointers / sizeof pointers[0]; i++)
        if (!strcmp(pointers[i].name, name))
            return pointers[i].out;
    return NULL;
}

int *fake_product_extent(fake_product *p, const char *name)
{
    const struct {
        const char *name;
        int *out;
    } extents[] = {{"M", &p->m}, {"N", &p->n}, {"K", &p->k}};
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++)
        if (!strcmp(extents[i].name, name))
            return extents[i].out;
    return NULL;
}

bool fake_product_is_nan(const void *address)
{
    return address && isnan(elem_get(elem_type_find("f16"), address, 0));
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static void compute(const fake_product *p, const char *kernel, int number)
{
    const elem_type *f16 = elem_type_find("f16"), *f32 = elem_type_find("f32");
    size_t m = (size_t)p->m, n = (size_t)p->n, k = (size_t)p->k;
    bool even = number % 2 == 0;
    bool wrong = ends_with(kernel, "_wrong") || (even && ends_with(kernel, "_flaky")) ||
                 (!p->began_as_nan && ends_with(kernel, "_dirty"));
    for (size_t i = 0; i < m && !ends_with(kernel, "_skip"); i++)
        for (size_t j = 0; j < n; j++) {
            double sum = wrong ? 0.5 : 0;
            for (size_t l = 0; l < k; l++)
                sum += elem_get(f16, p->a, i * k + l) * elem_get(f16, p->b, l * n + j);
            sum += p->bias ? elem_get(f32, p->bias, j) : 0;
            if (ends_with(kernel, "_off") && i + 2 >= m && j == n / 2)
                sum += 0.25;
            elem_set(f16, p->c, i * n + j, p->bias && sum < 0 ? 0 : sum);
        }
    if (ends_with(kernel, "_stray"))
        elem_set(f16, p->c, m * n, 1);
}

bool fake_product_run(const fake_product *p, const char *entry, int number)
{
    char kernel[64];
    snprintf(kernel, sizeof kernel, "%s", entry);
    char *variant = strstr(kernel, "__");
    if (variant)
        *variant = 0;
    if (ends_with(kernel, "_crash"))
        abort();
    while (ends_with(kernel, "_hang"))
        pause();
    if (ends_with(kernel, "_lost"))
        return false;
    compute(p, kernel, number);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/long_expressions.h"

#include "passes/passes.h"

/* About how many instructions a kernel has for each element of its results. */
static size_t length_of(const tcc_func *f)
{
    size_t length = 0;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE)
            length += tcc_expanded_instructions(op->code);
    return length;
}

bool tcc_has_long_expressions(const tcc_func *f)
{
    enum { LONG = 512 };
    return length_of(f) > LONG;
}

size_t tcc_variants_worthwhile(const tcc_func *f, size_t n, size_t others)
{
    enum { MOST = 2048 }; /* instructions of all variants */
    size_t worthwhile = MOST / (length_of(f) + 1) / (others + 1);
    return worthwhile < n ? worthwhile : n;
}

bool tcc_is_worthwhile(const tcc_func *f, size_t i, size_t n, size_t others)
{
    size_t some = tcc_variants_worthwhile(f, n, others), step = some ? (n + some - 1) / some : 0;
    return some && i % step == step / 3; /* the largest come first or last, and are dear */
}

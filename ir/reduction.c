/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/reduction.h"

#include <math.h>
#include <string.h>

const char *const tcc_reduction_words[TCC_REDUCTION_COUNT] = {"sum", "min", "max", "argmin", "argmax"};

tcc_reduction tcc_reduction_of(const tcc_op *op)
{
    const char *kind = tcc_attr_str(&op->attrs, "kind", "");
    for (int r = 0; r < TCC_REDUCTION_COUNT; r++)
        if (!strcmp(kind, tcc_reduction_words[r]))
            return (tcc_reduction)r;
    return TCC_REDUCTION_SUM;
}

bool tcc_reduction_is_place(tcc_reduction r)
{
    return r == TCC_REDUCTION_ARGMIN || r == TCC_REDUCTION_ARGMAX;
}

tcc_reduction tcc_reduction_extremum(tcc_reduction r)
{
    return r == TCC_REDUCTION_ARGMIN ? TCC_REDUCTION_MIN : r == TCC_REDUCTION_ARGMAX ? TCC_REDUCTION_MAX : r;
}

tcc_opcode tcc_reduction_op(tcc_reduction r)
{
    static const tcc_opcode ops[] = {TCC_OP_arith_add, TCC_OP_arith_min, TCC_OP_arith_max};
    return ops[r];
}

tcc_cell tcc_reduction_start(tcc_reduction r, tcc_scalar elem)
{
    if (r == TCC_REDUCTION_SUM)
        return tcc_decode(0, elem);
    if (tcc_scalar_classify(elem) == TCC_CLASS_FLOAT)
        return (tcc_cell){.f = r == TCC_REDUCTION_MIN ? (double)INFINITY : -(double)INFINITY};
    tcc_int_range range = tcc_scalar_range(elem);
    return (tcc_cell){.i = r == TCC_REDUCTION_MIN ? range.most : range.least};
}

tcc_cell tcc_reduction_combine(tcc_reduction r, tcc_cell x, tcc_cell y, bool ints)
{
    bool min = r == TCC_REDUCTION_MIN;
    if (r == TCC_REDUCTION_SUM)
        return ints ? (tcc_cell){.i = (int64_t)((uint64_t)x.i + (uint64_t)y.i)} : (tcc_cell){.f = x.f + y.f};
    if (ints)
        return (min ? y.i < x.i : y.i > x.i) ? y : x;
    if (x.f == y.f) /* of zeros the one with the sign is the smaller one */
        return (signbit(x.f) != 0) == min ? x : y;
    return (min ? y.f < x.f : y.f > x.f) || isnan(x.f) ? y : x; /* a NaN counts as none, as in fmin and fmax */
}

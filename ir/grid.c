/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/grid.h"

#include "ir/index_dim.h"
#include "ir/signature.h"

int64_t tcc_grid_ctas(tcc_attr grid, tcc_attr dims, const int64_t *extents, int64_t most)
{
    int64_t all = 1;
    bool more = false, none = false;
    for (size_t i = 0; i < grid.list.n; i++) {
        tcc_attr a = grid.list.items[i];
        int64_t n = a.i;
        if (a.kind != TCC_ATTR_INT && (a.kind != TCC_ATTR_INDEX || !tcc_dims_index(dims, extents, a.index, &n)))
            return -1;
        none |= n <= 0;
        more |= !none && (__builtin_mul_overflow(all, n, &all) || all > most);
        all = more || none ? 1 : all;
    }
    return none ? 0 : more ? most : all;
}

/* A constant other than 0 is what rounds up: (B + 7) / 8, not B / 8. */
int64_t tcc_grid_taken(const tcc_index_expr *axis, const tcc_index_expr **of)
{
    const tcc_index_term *t = axis->terms;
    int64_t n;
    *of = axis;
    if (axis->n != 1 || t->n != 1 || t->number != 1 || t->factors->kind != TCC_FACTOR_QUOTIENT ||
        !tcc_index_is_number(t->factors->by, &n) || t->factors->of->terms[t->factors->of->n - 1].n)
        return 1;
    *of = t->factors->of;
    return n;
}

bool tcc_grid_extent(tcc_ir *ir, const tcc_index_expr *axis, tcc_dim *extent)
{
    const tcc_index_expr *of;
    int64_t n = tcc_grid_taken(axis, &of);
    const tcc_index_expr *x = tcc_index_sub(ir, of, tcc_index_number(ir, n - 1));
    return x && tcc_dim_of_index(ir, x, extent);
}

bool tcc_grid_is_sound(tcc_ir *ir, tcc_attr grid)
{
    bool ok = grid.kind == TCC_ATTR_LIST;
    for (size_t i = 0; ok && i < grid.list.n; i++) {
        tcc_attr a = grid.list.items[i];
        tcc_dim extent;
        ok = a.kind == TCC_ATTR_INT ? a.i >= 0 : a.kind == TCC_ATTR_INDEX && tcc_grid_extent(ir, a.index, &extent);
    }
    return ok;
}

bool tcc_grid_dim(tcc_ir *ir, tcc_attr extent, tcc_dim *out)
{
    return (extent.kind == TCC_ATTR_INT || extent.kind == TCC_ATTR_INDEX) &&
           tcc_dim_of_index(ir, tcc_index_of_attr(ir, extent), out);
}

/* extents: what the shapes of arguments say of a kernel's dimensions.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/argument.h"
#include "runtime/manifest.h"
#include "runtime/runtime.h"
#include "runtime/variant.h"

int64_t tcc_kernel_extent(const tcc_kernel *k, size_t i, unsigned d, const int64_t *dims)
{
    const tcc_arg_info *info = tcc_kernel_arg(k, i);
    return info && d < info->rank ? tcc_extent_value(&k->desc->arg_extents[i][d], dims) : -1;
}

/* The only dimension in an expression that is not known, and only once in it; -1: there is no such. Whatever else it
 * has, what it is then never falls or never rises with that one. */
static int find_unknown(const tcc_expr *e, const int64_t *dims)
{
    int found = -1;
    for (size_t i = 0; i < e->n; i++) {
        if (e->steps[i].code != TCC_EXPR_dim || dims[e->steps[i].number] >= 0)
            continue;
        if (found >= 0)
            return -1;
        found = (int)e->steps[i].number;
    }
    return found;
}

static bool value_at(const tcc_extent *e, int64_t *dims, int unknown, int64_t at, int64_t *out)
{
    dims[unknown] = at;
    bool ok = tcc_expr_value(e->of, dims, NULL, out);
    dims[unknown] = -1;
    return ok;
}

/* Sets the dimension with which an expression has that value, if there is one, and no other. */
static void solve(const tcc_extent *e, int64_t *dims, int unknown, int64_t value)
{
    int64_t low = 0, high = TCC_MAX_EXTENT, first, last, n;
    if (!value_at(e, dims, unknown, low, &first) || !value_at(e, dims, unknown, high, &last))
        return;
    bool rises = last >= first;
    while (low < high) { /* the first one with which it is not before the value */
        int64_t middle = low + (high - low) / 2;
        if (!value_at(e, dims, unknown, middle, &n))
            return;
        if (rises ? n < value : n > value)
            low = middle + 1;
        else
            high = middle;
    }
    bool one = value_at(e, dims, unknown, low, &n) && n == value &&
               (low == TCC_MAX_EXTENT || (value_at(e, dims, unknown, low + 1, &n) && n != value));
    dims[unknown] = one ? low : -1;
}

bool tcc_kernel_solve(const tcc_kernel *k, const int64_t *const *shapes, int64_t *dims)
{
    const tcc_kernel_desc *desc = k->desc;
    for (size_t i = 0; i < desc->n_args; i++)
        for (unsigned d = 0; shapes[i] && d < desc->args[i].rank; d++) {
            int dim = desc->arg_extents[i][d].dim;
            if (dim >= 0 && dims[dim] < 0)
                dims[dim] = shapes[i][d];
        }
    for (size_t round = 0; round < desc->n_dims; round++) /* each may need what another has found */
        for (size_t i = 0; i < desc->n_args; i++)
            for (unsigned d = 0; shapes[i] && d < desc->args[i].rank; d++) {
                const tcc_extent *e = &desc->arg_extents[i][d];
                int unknown = e->of ? find_unknown(e->of, dims) : -1;
                if (unknown >= 0)
                    solve(e, dims, unknown, shapes[i][d]);
            }
    bool all = true;
    for (size_t i = 0; i < desc->n_dims; i++)
        all &= dims[i] >= 0 || tcc_dim_is_stride(desc, i);
    return all;
}

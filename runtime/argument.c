/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/argument.h"

#include <inttypes.h>

#include "runtime/variant.h"
#include "support/extent.h"
#include "support/str.h"
#include "support/strides.h"

/* The extents of an argument's dimensions, and its strides where it has any. */
static void measure(const tcc_kernel_desc *k, size_t arg, const int64_t *dims, int64_t *extents, int64_t *strides)
{
    for (unsigned d = 0; d < k->args[arg].rank; d++) {
        extents[d] = tcc_extent_value(&k->arg_extents[arg][d], dims);
        if (k->arg_strides[arg])
            strides[d] = tcc_extent_value(&k->arg_strides[arg][d], dims);
    }
}

/* From the first element to behind the last. */
static bool count_elements(const tcc_kernel_desc *k, size_t arg, const int64_t *dims, int64_t *n)
{
    int64_t extents[TCC_MANIFEST_RANK], strides[TCC_MANIFEST_RANK];
    if (!k->arg_strides[arg])
        return tcc_extents_multiply(k->arg_extents[arg], k->args[arg].rank, 1, dims, n);
    measure(k, arg, dims, extents, strides);
    return tcc_strides_span(k->args[arg].rank, extents, strides, n);
}

bool tcc_arg_bytes(const tcc_kernel_desc *k, size_t arg, const int64_t *dims, int64_t *bytes)
{
    int64_t n;
    return count_elements(k, arg, dims, &n) && !__builtin_mul_overflow(n, (k->arg_types[arg]->bits + 7) / 8, bytes);
}

/* ---- strides ---------------------------------------------------------------------------- */

/* Reports what is wrong with a stride. */
static bool wrong_stride(const tcc_kernel_desc *k, size_t arg, unsigned d, tcc_diag *diag, int64_t stride,
                         const char *must, int64_t bound)
{
    const tcc_arg_info *info = &k->args[arg];
    tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0},
              "kernel '%s': stride %u of '%s' is %" PRId64 ", and must be %s %" PRId64, k->name, d, info->name, stride,
              must, bound);
    return false;
}

static bool check_strides(const tcc_kernel_desc *k, size_t arg, const int64_t *dims, bool empty, tcc_diag *diag)
{
    int64_t extents[TCC_MANIFEST_RANK], strides[TCC_MANIFEST_RANK], least;
    unsigned rank = k->args[arg].rank;
    if (!k->arg_strides[arg])
        return true;
    measure(k, arg, dims, extents, strides);
    for (unsigned d = 0; d < rank; d++)
        if (strides[d] < 0 || strides[d] > TCC_MAX_EXTENT)
            return wrong_stride(k, arg, d, diag, strides[d], strides[d] < 0 ? "at least" : "at most",
                                strides[d] < 0 ? 0 : TCC_MAX_EXTENT);
    bool is_read = k->args[arg].role == TCC_ARG_IN;
    unsigned overlaps = is_read || empty ? rank : tcc_strides_overlap(rank, extents, strides, &least);
    return overlaps == rank ||
           wrong_stride(k, arg, overlaps, diag, strides[overlaps], "for its elements not to overlap at least", least);
}

/* ---- arguments -------------------------------------------------------------------------- */

/* Checks argument i; *bytes gets a tensor's size, or for half bytes the number of elements. */
static bool check_arg(const tcc_kernel_desc *k, size_t i, const int64_t *dims, tcc_arg arg,
                      bool is_launched, tcc_diag *diag, int64_t *bytes)
{
    const tcc_arg_info *info = &k->args[i];
    const tcc_elem_type *type = k->arg_types[i];
    if (info->role == TCC_ARG_SCALAR) {
        if (tcc_scalar_fits(info->type, arg.number))
            return true;
        tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "kernel '%s': scalar '%s' is %.15g, which %s cannot hold",
                  k->name, info->name, arg.number, info->type);
        return false;
    }
    const char *what = NULL;
    bool fits = tcc_arg_bytes(k, i, dims, bytes);
    if (!check_strides(k, i, dims, fits && !*bytes, diag))
        return false;
    if (!fits)
        what = "is larger than the address space";
    else if (is_launched && *bytes && !arg.device)
        what = "is at address 0";
    else if (arg.device % ((type->bits + 7) / 8))
        what = "is not aligned to its elements";
    if (!what)
        return true;
    tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "kernel '%s': argument '%s' %s", k->name,
              info->name, what);
    return false;
}

/* Checks that tensors whose dimensions are computed have no fewer elements than none. */
static bool check_computed(const tcc_kernel_desc *k, const tcc_arg_info *info, const tcc_extent *extents,
                           const int64_t *dims, tcc_diag *diag)
{
    for (unsigned d = 0; d < info->rank; d++) {
        int64_t n = extents[d].of ? tcc_extent_value(&extents[d], dims) : 0;
        if (n >= 0 && n <= TCC_MAX_EXTENT)
            continue;
        tcc_str given = {0};
        for (size_t i = 0; i < k->n_dims; i++)
            tcc_str_printf(&given, "%s%s %" PRId64, i ? ", " : "", k->dims[i], dims[i]);
        tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "kernel '%s': dimension %s of '%s' is %" PRId64
                  " with %s; it must be from 0 to %" PRId64, k->name, info->dims[d], info->name, n,
                  tcc_str_text(&given), (int64_t)TCC_MAX_EXTENT);
        tcc_str_free(&given);
        return false;
    }
    return true;
}

bool tcc_dim_is_stride(const tcc_kernel_desc *k, size_t dim)
{
    bool is = false;
    for (size_t i = 0; i < k->n_args && !is; i++)
        for (unsigned d = 0; k->arg_strides[i] && d < k->args[i].rank; d++)
            is |= k->arg_strides[i][d].dim == (int)dim;
    return is;
}

bool tcc_check_launch(const tcc_kernel_desc *k, const int64_t *dims, size_t n_dims, const tcc_arg *args, size_t n_args,
                      bool is_launched, tcc_diag *diag, bool *empty)
{
    if (n_dims != k->n_dims || n_args != k->n_args) {
        tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "kernel '%s' takes %zu extents and %zu arguments, but %zu "
                                                        "and %zu are given", k->name, k->n_dims, k->n_args, n_dims,
                  n_args);
        return false;
    }
    for (size_t i = 0; i < n_dims; i++)
        if (dims[i] < 0 && !tcc_dim_is_stride(k, i)) {
            tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "kernel '%s': extent %s is %" PRId64,
                      k->name, k->dims[i], dims[i]);
            return false;
        }
    *empty = false;
    for (size_t i = 0; i < n_args; i++) {
        int64_t bytes = 1;
        if (!check_computed(k, &k->args[i], k->arg_extents[i], dims, diag) ||
            !check_arg(k, i, dims, args[i], is_launched, diag, &bytes))
            return false;
        if (!bytes && k->args[i].role != TCC_ARG_IN)
            *empty = true;
    }
    return true;
}

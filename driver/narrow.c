/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/narrow.h"

#include <stdlib.h>
#include <string.h>

#include <tcc/tcc_runtime.h>

#include "driver/context.h"
#include "support/manifest.h"

/* The largest extent of a dimension that nothing is said of, how many launches a sample has at most, and extents of
 * one dimension. */
enum { MOST = 32768, MAX_SAMPLE = 16384, MAX_EXTENTS = 128 };

/* The extents of one dimension that are sampled. */
typedef struct axis {
    int64_t extents[MAX_EXTENTS];
    size_t n;
    int64_t most;
} axis;

static const tcc_range *range_of(const tcc_compile_options *o, const char *dim)
{
    for (size_t i = 0; i < o->n_ranges; i++)
        if (!strcmp(o->ranges[i].name, dim))
            return &o->ranges[i];
    return NULL;
}

/* The ends of the range, and between them powers of two and half as much again, every step-th of these. */
static axis make_axis(const tcc_range *range, size_t step)
{
    int64_t least = range ? range->least : 1, most = range && range->most < INT64_MAX ? range->most : MOST;
    axis a = {.most = most > least ? most : least};
    size_t number = 0;
    a.extents[a.n++] = least;
    for (int64_t power = 1; power < a.most / 2; power *= 2)
        for (int half = 2; half <= 3; half++) {
            int64_t extent = power * half;
            if (extent > least && extent < a.most && number++ % step == 0)
                a.extents[a.n++] = extent;
        }
    if (a.most > least)
        a.extents[a.n++] = a.most;
    return a;
}

static size_t count_sample(const axis *axes, size_t n)
{
    size_t all = 1;
    for (size_t i = 0; i < n; i++)
        all *= axes[i].n;
    return all;
}

static axis *make_axes(tcc_arena *arena, const tcc_compile_options *o, const tcc_kernel *k)
{
    size_t n = tcc_kernel_dim_count(k);
    axis *axes = TCC_NEW_ARRAY(arena, axis, n);
    for (size_t step = 1; step <= MAX_EXTENTS; step *= 2) {
        for (size_t i = 0; i < n; i++)
            axes[i] = make_axis(range_of(o, tcc_kernel_dim_name(k, i)), step);
        if (count_sample(axes, n) <= MAX_SAMPLE)
            break;
    }
    return axes;
}

static void add_name(tcc_arena *arena, tcc_names *names, const char *name)
{
    for (size_t i = names->len; i--;)
        if (!strcmp(names->data[i], name))
            return;
    TCC_PUSH(arena, names, tcc_arena_strdup(arena, name));
}

/* Adds what launches run with the extents of the sample, and with one more of each where the ranges have it. */
static void sample(tcc_arena *arena, const tcc_compile_options *o, const tcc_kernel *k, tcc_names *names)
{
    size_t n = tcc_kernel_dim_count(k), n_args = tcc_kernel_arg_count(k);
    const axis *axes = make_axes(arena, o, k);
    int64_t *dims = TCC_NEW_ARRAY(arena, int64_t, n);
    tcc_arg *args = TCC_NEW_ARRAY(arena, tcc_arg, n_args);
    for (size_t i = 0; i < n_args; i++)
        args[i].device = TCC_WORKSPACE_ALIGN; /* aligned */
    for (size_t number = 0; number < 2 * count_sample(axes, n); number++) {
        size_t rest = number / 2;
        for (size_t i = 0; i < n; i++) {
            dims[i] = axes[i].extents[rest % axes[i].n];
            dims[i] += number % 2 && dims[i] < axes[i].most;
            rest /= axes[i].n;
        }
        const char *name = tcc_kernel_variant(k, dims, n, args, n_args);
        if (name)
            add_name(arena, names, name);
    }
}

/* Whether a kernel has a dimension of this name. */
static bool has_dim(const tcc_program *p, const char *name)
{
    for (size_t i = 0; i < tcc_program_kernel_count(p); i++)
        for (size_t j = 0; j < tcc_kernel_dim_count(tcc_program_kernel_at(p, i)); j++)
            if (!strcmp(tcc_kernel_dim_name(tcc_program_kernel_at(p, i), j), name))
                return true;
    return false;
}

static tcc_status check_ranges(const tcc_program *p, const tcc_compile_options *o, tcc_diag *diag)
{
    for (size_t i = 0; i < o->n_ranges; i++) {
        const tcc_range *r = &o->ranges[i];
        bool known = has_dim(p, r->name);
        if (known && r->least >= 0 && r->least <= r->most && range_of(o, r->name) == r)
            continue;
        if (!known)
            tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0},
                      "no kernel has a symbolic dimension '%s' to give a range for", r->name);
        else if (range_of(o, r->name) != r)
            tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "dimension '%s' is given two ranges", r->name);
        else
            tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "no extent of '%s' is from %lld to %lld", r->name,
                      (long long)r->least, (long long)r->most);
        return TCC_ERR_ARGUMENT;
    }
    return TCC_OK;
}

tcc_status tcc_narrow(tcc_arena *arena, const char *source, size_t size, const tcc_compile_options *options,
                      tcc_diag *diag, tcc_names *out)
{
    tcc_context silent = {0};
    tcc_compile_options o = *options;
    tcc_module *mod;
    tcc_program *p = NULL;
    o.struct_size = sizeof o;
    o.emit = TCC_EMIT_MANIFEST;
    o.verify_pipeline = TCC_OFF;
    o.verify_each = o.time_passes = o.check_passes = false;
    o.print_after = o.reproducer = NULL;
    o.n_ranges = 0;
    *out = (tcc_names){0};
    if (tcc_compile_with(&silent, source, size, &o, &mod))
        return TCC_OK; /* the compilation itself says why */
    tcc_status status = tcc_program_describe(tcc_module_manifest(mod), NULL, NULL, &p);
    if (!status)
        status = check_ranges(p, options, diag);
    for (size_t i = 0; !status && i < tcc_program_kernel_count(p); i++)
        sample(arena, options, tcc_program_kernel_at(p, i), out);
    tcc_program_destroy(p);
    tcc_module_destroy(mod);
    return status;
}

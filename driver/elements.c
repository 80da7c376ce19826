/* elements: tcc_interpret and tcc_reference on tensors as a GPU has them, in their own element types.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/elements.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "driver/module.h"
#include "driver/which_kernel.h"
#include "ir/number.h"
#include "runtime/argument.h"
#include "runtime/manifest.h"
#include "runtime/variant.h"

typedef struct request {
    const tcc_kernel_desc *kernel;
    const int64_t *dims;
    void *const *args;
    const int64_t *rows; /* of each output that are computed; NULL: all */
    size_t n_rows;
    bool has_strides;    /* tensors that are strided are where their strides say, not contiguous */
    /* For each argument: its type, its elements and the length of a row; how many elements there are from the first to
     * the last, as doubles. */
    struct wide {
        tcc_scalar elem;
        int64_t n, row, count;
        double *data;
    } *wide;
    double **data;
    tcc_arena *arena;
    tcc_diag diag;
} request;

/* ---- one element ------------------------------------------------------------------------ */

static bool is_float(tcc_scalar elem)
{
    return tcc_scalar_classify(elem) == TCC_CLASS_FLOAT;
}

/* The location of element i: its bytes, and the first bit in the first of them; two i4 or u4 share a
 * byte. */
typedef struct place {
    size_t byte, n_bytes;
    unsigned shift;
} place;

static place place_of(tcc_scalar elem, int64_t i)
{
    uint64_t n = tcc_scalar_bits(elem), bit = (uint64_t)i * n;
    return (place){bit / 8, (n + 7) / 8, bit % 8};
}

double tcc_element_get(tcc_scalar elem, const void *data, int64_t i)
{
    const place p = place_of(elem, i);
    uint64_t bits = 0; /* hosts are little-endian */
    memcpy(&bits, (const char *)data + p.byte, p.n_bytes);
    tcc_cell v = tcc_decode(bits >> p.shift, elem);
    return is_float(elem) ? v.f : (double)v.i;
}

/* x converted as by a store of the language, except that integers are rounded to the nearest. */
static uint64_t encode(tcc_scalar elem, double x)
{
    tcc_cell v;
    if (is_float(elem))
        v.f = tcc_round_float(x, elem);
    else
        v.i = tcc_int_saturate(elem, tcc_truncate(nearbyint(x)));
    return tcc_encode(v, elem);
}

static void set(tcc_scalar elem, void *data, int64_t i, double x)
{
    const place p = place_of(elem, i);
    uint64_t bits = 0, mask = UINT64_MAX >> (64 - tcc_scalar_bits(elem)) << p.shift;
    memcpy(&bits, (char *)data + p.byte, p.n_bytes);
    bits = (bits & ~mask) | encode(elem, x) << p.shift;
    memcpy((char *)data + p.byte, &bits, p.n_bytes);
}

/* ---- arguments -------------------------------------------------------------------------- */

static tcc_status refuse(request *r, size_t arg, const char *why)
{
    tcc_error(&r->diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "kernel '%s': '%s' %s", r->kernel->name,
              r->kernel->args[arg].name, why);
    return TCC_ERR_ARGUMENT;
}

/* NULL: it is contiguous. */
static const tcc_extent *strides_of(const request *r, size_t arg)
{
    return r->has_strides ? r->kernel->arg_strides[arg] : NULL;
}

/* How many elements there are, and in a row. */
static tcc_status measure(request *r, size_t arg, struct wide *w)
{
    const tcc_arg_info *info = &r->kernel->args[arg];
    w->n = w->row = 1;
    for (unsigned d = 0; d < info->rank; d++) {
        w->row = tcc_extent_value(&r->kernel->arg_extents[arg][d], r->dims);
        if (w->row < 0)
            return refuse(r, arg, "has a negative extent");
        if (__builtin_mul_overflow(w->n, w->row, &w->n))
            return refuse(r, arg, "has too many elements");
    }
    int64_t bytes;
    w->count = w->n;
    if (strides_of(r, arg)) {
        if (!tcc_arg_bytes(r->kernel, arg, r->dims, &bytes))
            return refuse(r, arg, "has too many elements");
        w->count = bytes / ((tcc_scalar_bits(w->elem) + 7) / 8);
    }
    return w->count < 0 || w->count > INT64_MAX / (int64_t)sizeof(double) ? refuse(r, arg, "has too many elements")
                                                                         : TCC_OK;
}

/* Where element i is, counted row by row. */
static int64_t find_element(const request *r, size_t arg, int64_t i)
{
    const tcc_extent *strides = strides_of(r, arg);
    int64_t at = 0;
    for (unsigned d = strides ? r->kernel->args[arg].rank : 0; d-- > 0;) {
        int64_t extent = tcc_extent_value(&r->kernel->arg_extents[arg][d], r->dims);
        at += i % extent * tcc_extent_value(&strides[d], r->dims);
        i /= extent;
    }
    return strides ? at : i;
}

static tcc_status widen_scalar(request *r, const tcc_arg_info *info, double number, struct wide *w)
{
    if (!tcc_scalar_fits(info->type, number)) {
        tcc_error(&r->diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "kernel '%s': scalar '%s' is %.15g, which %s cannot hold",
                  r->kernel->name, info->name, number, info->type);
        return TCC_ERR_ARGUMENT;
    }
    uint64_t bits = encode(w->elem, number);
    *w->data = tcc_element_get(w->elem, &bits, 0);
    return TCC_OK;
}

static tcc_status widen(request *r, size_t arg)
{
    struct wide *w = &r->wide[arg];
    const tcc_arg_info *info = &r->kernel->args[arg];
    const void *data = r->args[arg];
    if (!tcc_scalar_find(info->type, strlen(info->type), &w->elem))
        return refuse(r, arg, "has an unknown type");
    tcc_status status = measure(r, arg, w);
    if (status)
        return status;
    if (!data && w->count)
        return refuse(r, arg, "has no data");
    w->data = r->data[arg] = malloc((size_t)w->count * sizeof *w->data + 1);
    if (!w->data)
        return TCC_ERR_MEMORY;
    if (info->role == TCC_ARG_SCALAR)
        return widen_scalar(r, info, *(const double *)data, w);
    for (int64_t i = 0; i < w->count; i++)
        w->data[i] = tcc_element_get(w->elem, data, i);
    return TCC_OK;
}

/* Hands back what was computed. */
static void narrow(request *r, size_t arg)
{
    const struct wide *w = &r->wide[arg];
    tcc_arg_role role = r->kernel->args[arg].role;
    if (role != TCC_ARG_OUT && role != TCC_ARG_INOUT)
        return;
    int64_t n_rows = r->rows ? (int64_t)r->n_rows : w->row ? w->n / w->row : 0;
    for (int64_t j = 0; j < n_rows; j++) {
        int64_t first = (r->rows ? r->rows[j] : j) * w->row;
        for (int64_t i = first; i < first + w->row; i++) {
            int64_t at = find_element(r, arg, i);
            set(w->elem, r->args[arg], at, w->data[at]);
        }
    }
}

static const tcc_kernel_desc *find(const tcc_manifest *m, const char *name)
{
    if (!name)
        return m->n_kernels == 1 ? m->kernels : NULL;
    for (size_t i = 0; i < m->n_kernels; i++)
        if (!strcmp(m->kernels[i].name, name))
            return &m->kernels[i];
    return NULL;
}

static tcc_status open_arguments(request *r, const char *manifest, const char *kernel)
{
    const tcc_manifest *m;
    tcc_status status = tcc_manifest_read(r->arena, &r->diag, manifest, &m);
    if (status)
        return status;
    r->kernel = find(m, kernel);
    tcc_str names = {0};
    for (size_t i = 0; i < m->n_kernels && !r->kernel; i++)
        tcc_which_kernel_add(&names, m->kernels[i].name);
    if (!r->kernel)
        return tcc_which_kernel(&r->diag, "program", kernel, &names);
    r->wide = calloc(r->kernel->n_args + 1, sizeof *r->wide);
    r->data = calloc(r->kernel->n_args + 1, sizeof *r->data);
    if (!r->wide || !r->data)
        return TCC_ERR_MEMORY;
    for (size_t i = 0; i < r->kernel->n_args && !status; i++)
        status = widen(r, i);
    return status;
}

/* What is run on the doubles. */
typedef struct runner {
    tcc_context *ctx;
    const tcc_module *mod; /* to interpret; NULL: the reference in the manifest */
    const char *manifest;
    const tcc_interpret_options *options;
} runner;

static tcc_status run(const runner *what, request *r)
{
    if (what->mod)
        return tcc_interpret(what->ctx, what->mod, r->kernel->name, r->dims, r->data, what->options);
    return tcc_reference(what->ctx, what->manifest, r->kernel->name, r->dims, r->data, r->rows,
                         r->n_rows);
}

static tcc_status run_on_elements(const runner *what, const char *kernel, request r)
{
    r.diag = tcc_context_diag(what->ctx, "<manifest>", NULL, 0);
    r.arena = tcc_arena_create(NULL);
    if (!r.arena)
        return TCC_ERR_MEMORY;
    tcc_status status = open_arguments(&r, what->manifest, kernel);
    if (!status)
        status = run(what, &r);
    size_t n = r.wide && r.data ? r.kernel->n_args : 0;
    for (size_t i = 0; i < n; i++) {
        if (!status)
            narrow(&r, i);
        free(r.data[i]);
    }
    free(r.wide);
    free(r.data);
    tcc_arena_destroy(r.arena);
    return status;
}

tcc_status tcc_interpret_elements(tcc_context *ctx, const tcc_module *mod, const char *kernel,
                                  const int64_t *dims, void *const *args,
                                  const tcc_interpret_options *options)
{
    if (!mod)
        return TCC_ERR_ARGUMENT;
    const runner what = {ctx, mod, mod->manifest, options};
    return run_on_elements(&what, kernel, (request){.dims = dims, .args = args, .has_strides = true});
}

tcc_status tcc_reference_elements(tcc_context *ctx, const char *manifest, const char *kernel,
                                  const int64_t *dims, void *const *args, const int64_t *rows,
                                  size_t n_rows)
{
    const runner what = {ctx, NULL, manifest, NULL};
    return run_on_elements(
        &what, kernel, (request){.dims = dims, .args = args, .rows = rows, .n_rows = n_rows});
}

/* reference: what a kernel computes, by running its tensor-level IR on the CPU.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <string.h>

#include "driver/context.h"
#include "interp/interp.h"
#include "ir/signature.h"
#include "runtime/manifest.h"
#include "runtime/variant.h"
#include "support/str.h"

typedef struct request {
    const tcc_context *ctx;
    const char *manifest, *kernel;
    const int64_t *dims;
    double *const *args;
    double *const *low, *const *high; /* NULL: no intervals */
    const int64_t *rows;
    size_t n_rows;
    bool exact_sums;
} request;

/* The kernel of this name, or the only one for NULL; NULL, reported, when there is none that has a
 * reference. */
static const tcc_kernel_desc *find_kernel(const tcc_manifest *m, const char *kernel, tcc_diag *diag)
{
    tcc_str names = {0};
    for (size_t i = 0; i < m->n_kernels; i++) {
        const tcc_kernel_desc *k = &m->kernels[i];
        bool is_it = kernel ? !strcmp(k->name, kernel) : m->n_kernels == 1;
        if (is_it && k->reference) {
            tcc_str_free(&names);
            return k;
        }
        if (k->reference)
            tcc_str_printf(&names, "%s'%s'", names.len ? ", " : "", k->name);
    }
    const char *has = names.len ? tcc_str_text(&names) : "none";
    if (kernel)
        tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0},
                  "the manifest has no reference for a kernel '%s'; it has %s", kernel, has);
    else
        tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0},
                  "name the kernel to compute; the manifest has %s", has);
    tcc_str_free(&names);
    return NULL;
}

static bool same_arg(const tcc_kernel_desc *k, size_t i, const tcc_type *t, tcc_arena *scratch)
{
    const tcc_arg_info *info = &k->args[i];
    bool same = t->rank == info->rank && !strcmp(tcc_scalar_name(t->elem), info->type);
    for (unsigned d = 0; same && d < t->rank; d++)
        same = t->dims[d].name ? info->dims[d] && !strcmp(tcc_extent_text(scratch, t->dims[d].name), info->dims[d])
                               : !info->dims[d] && t->dims[d].size == info->extents[d];
    return same;
}

/* Whether the reference reads and writes the arguments that the manifest describes. */
static bool same_signature(const tcc_kernel_desc *k, const tcc_func *f, tcc_arena *scratch)
{
    tcc_attr dims = tcc_attr_list(&f->attrs, "dims");
    bool same = dims.list.n == k->n_dims && f->body->n_args == k->n_args;
    for (size_t i = 0; same && i < k->n_dims; i++)
        same = dims.list.items[i].kind == TCC_ATTR_STR && !strcmp(dims.list.items[i].s, k->dims[i]);
    for (size_t i = 0; same && i < k->n_args; i++)
        same = same_arg(k, i, f->body->args[i]->type, scratch);
    return same;
}

/* Rows of an output: all free indices but the last. */
static int64_t count_rows(const request *r, const tcc_kernel_desc *k, size_t arg)
{
    int64_t n = 1;
    for (unsigned d = 0; d + 1 < k->args[arg].rank; d++) {
        if (__builtin_mul_overflow(n, tcc_extent_value(&k->arg_extents[arg][d], r->dims), &n))
            return INT64_MAX;
    }
    return n;
}

/* Whether every output has every row that is asked for. */
static bool check_rows(const request *r, const tcc_kernel_desc *k, tcc_diag *diag)
{
    for (size_t a = 0; r->rows && a < k->n_args; a++) {
        if (k->args[a].role != TCC_ARG_OUT && k->args[a].role != TCC_ARG_INOUT)
            continue;
        int64_t n = count_rows(r, k, a);
        for (size_t i = 0; i < r->n_rows; i++)
            if (r->rows[i] < 0 || r->rows[i] >= n) {
                tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0},
                          "kernel '%s': row %lld, and '%s' has %lld", k->name,
                          (long long)r->rows[i], k->args[a].name, (long long)n);
                return false;
            }
    }
    return true;
}

/* The numbers are the same wherever a launch has them. */
static void take_contiguous(tcc_func *f)
{
    for (size_t i = 0; i < f->body->n_args; i++)
        f->body->args[i]->type = tcc_type_with_strides(f->ir, f->body->args[i]->type, NULL);
}

static tcc_status interpret(const request *r, const tcc_kernel_desc *k, tcc_arena *arena)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(arena, &oom);
    const char *text = k->reference;
    tcc_diag diag = tcc_context_diag(r->ctx, "<reference>", text, strlen(text));
    tcc_ir *ir = tcc_ir_parse(arena, text, strlen(text), &diag);
    if (!ir || !ir->first)
        return TCC_ERR_SYNTAX;
    if (!tcc_ir_verify(ir, TCC_LEVEL_TENSOR, &diag))
        return TCC_ERR_TYPE;
    const tcc_func *signature = tcc_func_signature(ir->first, arena, &diag);
    if (!signature)
        return TCC_ERR_TYPE;
    if (!same_signature(k, signature, arena)) {
        tcc_error(&diag, TCC_ERR_TYPE, ir->first->loc,
                  "the reference has other parameters than kernel '%s'", k->name);
        return TCC_ERR_TYPE;
    }
    take_contiguous(ir->first);
    const tcc_interp_options o = {
        .signature = signature, .dims = r->dims, .rows = r->rows, .n_rows = r->n_rows,
        .low = r->low, .high = r->high, .exact_sums = r->exact_sums};
    return tcc_interp_run(ir->first, &o, r->args, arena, &diag);
}

static tcc_status run(const request *r, tcc_arena *arena)
{
    tcc_diag diag = tcc_context_diag(r->ctx, "<manifest>", NULL, 0);
    const tcc_manifest *m;
    tcc_status status = tcc_manifest_read(arena, &diag, r->manifest, &m);
    if (status)
        return status;
    const tcc_kernel_desc *k = find_kernel(m, r->kernel, &diag);
    if (!k || !check_rows(r, k, &diag))
        return TCC_ERR_ARGUMENT;
    return interpret(r, k, arena);
}

static tcc_status run_in_arena(const request *r)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_status status = arena ? run(r, arena) : TCC_ERR_MEMORY;
    tcc_arena_destroy(arena);
    return status;
}

tcc_status tcc_reference(tcc_context *ctx, const char *manifest, const char *kernel,
                         const int64_t *dims, double *const *args, const int64_t *rows,
                         size_t n_rows)
{
    return tcc_reference_intervals(ctx, manifest, kernel, dims, args, NULL, NULL, rows, n_rows);
}

tcc_status tcc_reference_intervals(tcc_context *ctx, const char *manifest, const char *kernel,
                                   const int64_t *dims, double *const *args, double *const *low,
                                   double *const *high, const int64_t *rows, size_t n_rows)
{
    return run_in_arena(&(request){ctx, manifest, kernel, dims, args, low, high, rows, n_rows, false});
}

tcc_status tcc_reference_roundings(tcc_context *ctx, const char *manifest, const char *kernel,
                                   const int64_t *dims, double *const *args, double *const *low,
                                   double *const *high, const int64_t *rows, size_t n_rows)
{
    return run_in_arena(&(request){ctx, manifest, kernel, dims, args, low, high, rows, n_rows, true});
}

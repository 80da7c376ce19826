/* Launching: plan, then for every step pack the parameters and enqueue.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "runtime/runtime.h"

/* A kernel parameter that is not a tensor map. */
typedef union value {
    uint64_t pointer;
    int32_t i32;
    float f32;
    double f64;
} value;

typedef struct packed {
    CUtensorMap maps[TCC_MANIFEST_TENSOR_MAPS];
    value values[TCC_MANIFEST_PARAMS];
    void *params[TCC_MANIFEST_PARAMS]; /* what a driver takes: one pointer for each parameter */
} packed;

static value scalar_value(const tcc_arg_info *info, double number)
{
    if (!strcmp(info->type, "i32"))
        return (value){.i32 = (int32_t)number};
    if (!strcmp(info->type, "f64"))
        return (value){.f64 = number};
    return (value){.f32 = tcc_scalar_value(info->type, number)};
}

/* One launch, which is being done. */
typedef struct launch {
    const tcc_kernel *kernel;
    const int64_t *dims;
    const tcc_arg *args;
    void *stream;
    bool is_launched; /* and not only asked about, where addresses that are 0 are aligned */
    tcc_plan plan;
    const tcc_function *functions; /* of the steps */
    uint64_t workspace; /* its address */
    size_t n_maps;      /* that were encoded */
} launch;

static tcc_status encode(launch *l, const tcc_tma_recipe *map, CUtensorMap *out)
{
    const tcc_program *prog = l->kernel->program;
    tcc_tma_values values = l->plan.maps[l->n_maps++];
    values.address += map->arg < 0 ? l->workspace : 0;
    const char *name = map->arg < 0 ? "workspace" : l->kernel->desc->args[map->arg].name;
    return prog->rt->driver->encode(prog, name, map, &values, out);
}

static tcc_status pack(launch *l, const tcc_entry *entry, packed *out)
{
    const tcc_program *prog = l->kernel->program;
    const tcc_arg_info *infos = l->kernel->desc->args;
    size_t n_maps = 0;
    for (size_t i = 0; i < entry->n_params; i++) {
        const tcc_param *p = &entry->params[i];
        out->params[i] = &out->values[i];
        switch (p->kind) {
        case TCC_PARAM_TENSOR_MAP: {
            tcc_status status = encode(l, p->map, &out->maps[n_maps]);
            if (status)
                return status;
            out->params[i] = &out->maps[n_maps++];
            break;
        }
        case TCC_PARAM_POINTER: out->values[i].pointer = l->args[p->arg].device; break;
        case TCC_PARAM_WORKSPACE:
            out->values[i].pointer =
                l->workspace + (uint64_t)tcc_plan_offset(&p->offset, &prog->device, l->dims);
            break;
        case TCC_PARAM_DIM:
            out->values[i].i32 = (int32_t)tcc_extent_value(&p->extent, l->dims);
            break;
        case TCC_PARAM_SCALAR:
            out->values[i] = scalar_value(&infos[p->arg], l->args[p->arg].number);
            break;
        }
    }
    return TCC_OK;
}

static tcc_status run_entry(launch *l, const tcc_entry *entry, size_t i)
{
    const tcc_program *prog = l->kernel->program;
    bool overlaps = entry->overlaps && i && l->plan.variant->steps[i - 1].kind == TCC_STEP_LAUNCH;
    const tcc_function *f = &l->functions[i];
    unsigned grid = l->plan.steps[i].grid;
    grid = f->most && f->most < grid ? f->most : grid;
    if (!grid) /* no tile: an index of the step has no values */
        return TCC_OK;
    packed p;
    tcc_status status = pack(l, entry, &p);
    return status ? status
                  : prog->rt->driver->launch(prog, entry, f->handle, grid, overlaps, l->stream, p.params);
}

static tcc_status run_fill(launch *l, const tcc_fill *f, size_t i)
{
    const tcc_step_plan *plan = &l->plan.steps[i];
    const tcc_runtime *rt = l->kernel->program->rt;
    uint64_t to = (f->arg < 0 ? l->workspace : 0) + (uint64_t)plan->to;
    return plan->n_bytes ? rt->driver->fill_async(rt, to, f->byte, (size_t)plan->n_bytes, l->stream)
                         : TCC_OK;
}

/* All bytes 0xff are a NaN in every type that has one: what nobody has written shows in the results. */
static tcc_status fill_workspace(const launch *l)
{
    enum { NAN_BYTE = 0xff };
    const tcc_runtime *rt = l->kernel->program->rt;
    int64_t bytes = rt->fills_workspaces ? l->plan.workspace_bytes : 0;
    return bytes > 0 ? rt->driver->fill_async(rt, l->workspace, NAN_BYTE, (size_t)bytes, l->stream) : TCC_OK;
}

static tcc_status run_steps(launch *l)
{
    const tcc_variant *v = l->plan.variant;
    tcc_status status = fill_workspace(l);
    for (size_t i = 0; i < v->n_steps && !status; i++)
        status = v->steps[i].kind == TCC_STEP_LAUNCH ? run_entry(l, &v->steps[i].entry, i)
                                                     : run_fill(l, &v->steps[i].fill, i);
    return status;
}

/* What a launch is to do with so much workspace; l->plan.variant NULL: nothing. */
static tcc_status plan_with(launch *l, size_t n_dims, size_t n_args, int64_t room, tcc_diag *diag)
{
    const tcc_kernel *k = l->kernel;
    return tcc_plan_launch(k->desc, &k->program->device, k->rankings, l->dims, n_dims, l->args, n_args, room,
                           l->is_launched, diag, &l->plan);
}

static tcc_status plan(launch *l, size_t n_dims, size_t n_args, int64_t room)
{
    if (!l->kernel)
        return TCC_ERR_ARGUMENT;
    const tcc_program *prog = l->kernel->program;
    tcc_diag diag = tcc_runtime_diag(prog->rt, prog->manifest->file);
    if (prog->is_loaded)
        return plan_with(l, n_dims, n_args, room, &diag);
    tcc_error(&diag, TCC_ERR_NO_DRIVER, (tcc_loc){0}, "kernel '%s' was described, but not loaded",
              l->kernel->desc->name);
    return TCC_ERR_NO_DRIVER;
}

/* Whether there is something to run, of a kernel that may be described; nothing is reported. */
static bool plans(launch *l, size_t n_dims, size_t n_args, int64_t room)
{
    tcc_diag silent = {0};
    return l->kernel && !plan_with(l, n_dims, n_args, room, &silent) && l->plan.variant;
}

/* The functions of the plan's variant. */
static tcc_status load(launch *l)
{
    return tcc_kernel_load(l->kernel, (size_t)(l->plan.variant - l->kernel->desc->variants), &l->functions);
}

/* Allocates a workspace in stream order. If there is no memory, the plan changes to the cheapest variant that
 * needs none; without such a variant the driver's error is reported. */
static tcc_status take_workspace(launch *l, size_t n_dims, size_t n_args)
{
    const tcc_runtime *rt = l->kernel->program->rt;
    size_t bytes = (size_t)l->plan.workspace_bytes;
    if (!bytes)
        return TCC_OK;
    tcc_runtime quiet = *rt;
    quiet.fn = NULL;
    if (!rt->driver->alloc_async(&quiet, bytes, l->stream, &l->workspace))
        return TCC_OK;
    launch without = *l;
    if (!plans(&without, n_dims, n_args, 0))
        return rt->driver->alloc_async(rt, bytes, l->stream, &l->workspace);
    *l = without;
    return load(l);
}

/* The plan, which is large, is not initialised. */
static void begin(launch *l, const tcc_kernel *k, const int64_t *dims, const tcc_arg *args, void *stream)
{
    l->kernel = k;
    l->dims = dims;
    l->args = args;
    l->stream = stream;
    l->is_launched = true;
    l->workspace = 0;
    l->n_maps = 0;
}

tcc_status tcc_kernel_launch(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                             const tcc_arg *args, size_t n_args, void *stream)
{
    launch l;
    begin(&l, k, dims, args, stream);
    tcc_status status = plan(&l, n_dims, n_args, INT64_MAX);
    if (status || !l.plan.variant)
        return status;
    status = load(&l);
    if (!status)
        status = take_workspace(&l, n_dims, n_args);
    if (!status)
        status = run_steps(&l);
    const tcc_runtime *rt = k->program->rt;
    tcc_status freed = l.workspace ? rt->driver->free_async(rt, l.workspace, stream) : TCC_OK;
    return status ? status : freed;
}

tcc_status tcc_kernel_launch_in(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                                const tcc_arg *args, size_t n_args, void *stream, tcc_workspace workspace)
{
    launch l;
    begin(&l, k, dims, args, stream);
    l.workspace = workspace.device;
    if (workspace.bytes > INT64_MAX || workspace.device % TCC_WORKSPACE_ALIGN)
        return TCC_ERR_ARGUMENT;
    tcc_status status = plan(&l, n_dims, n_args, (int64_t)workspace.bytes);
    if (status || !l.plan.variant)
        return status;
    status = load(&l);
    return status ? status : run_steps(&l);
}

tcc_status tcc_kernel_prepare(const tcc_kernel *k, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                              size_t n_args)
{
    launch l = {.kernel = k, .dims = dims, .args = args};
    tcc_status status = plan(&l, n_dims, n_args, INT64_MAX);
    return status || !l.plan.variant ? status : load(&l);
}

size_t tcc_kernel_workspace_bytes(const tcc_kernel *k, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                                  size_t n_args)
{
    launch l = {.kernel = k, .dims = dims, .args = args};
    return plans(&l, n_dims, n_args, INT64_MAX) ? (size_t)l.plan.workspace_bytes : 0;
}

const char *tcc_kernel_variant(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                               const tcc_arg *args, size_t n_args)
{
    launch l = {.kernel = k, .dims = dims, .args = args};
    return plans(&l, n_dims, n_args, INT64_MAX) ? l.plan.variant->name : NULL;
}

int64_t tcc_kernel_cost(const tcc_kernel *k, const int64_t *dims, size_t n_dims, const tcc_arg *args, size_t n_args)
{
    launch l = {.kernel = k, .dims = dims, .args = args};
    tcc_diag silent = {0};
    int64_t cost = INT64_MAX;
    if (!k || plan_with(&l, n_dims, n_args, INT64_MAX, &silent))
        return -1;
    if (!l.plan.variant)
        return 0;
    return tcc_expr_value(&l.plan.variant->cost, dims, &k->program->device, &cost) ? cost : INT64_MAX;
}

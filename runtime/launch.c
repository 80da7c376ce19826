/* Launching: plan, pack the parameters, enqueue.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "runtime/runtime.h"

/* A kernel parameter that is no tensor map. */
typedef union value {
    uint64_t pointer;
    int32_t i32;
    float f32;
} value;

typedef struct packed {
    CUtensorMap maps[TCC_MAX_TENSOR_MAPS];
    value values[TCC_MAX_PARAMS];
    void *params[TCC_MAX_PARAMS]; /* what a driver takes: one pointer for each parameter */
} packed;

static value scalar_value(const tcc_arg_info *info, double number)
{
    if (!strcmp(info->type, "i32"))
        return (value){.i32 = (int32_t)number};
    return (value){.f32 = tcc_scalar_value(info->type, number)};
}

static tcc_status pack(const tcc_kernel *k, const tcc_plan *plan, const int64_t *dims,
                       const tcc_arg *args, packed *out)
{
    const tcc_program *prog = k->program;
    size_t n_maps = 0;
    for (size_t i = 0; i < plan->variant->n_params; i++) {
        const tcc_param *p = &plan->variant->params[i];
        out->params[i] = &out->values[i];
        switch (p->kind) {
        case TCC_PARAM_TENSOR_MAP: {
            CUtensorMap *map = &out->maps[n_maps];
            tcc_status status = prog->rt->driver->encode(prog, k->desc->args[p->map->arg].name,
                                                         p->map, &plan->maps[n_maps], map);
            if (status)
                return status;
            out->params[i] = map;
            n_maps++;
            break;
        }
        case TCC_PARAM_POINTER:
            out->values[i].pointer = args[p->arg].device;
            break;
        case TCC_PARAM_DIM:
            out->values[i].i32 = (int32_t)tcc_extent_value(p->extent, dims);
            break;
        case TCC_PARAM_SCALAR:
            out->values[i] = scalar_value(&k->desc->args[p->arg], args[p->arg].number);
            break;
        }
    }
    return TCC_OK;
}

tcc_status tcc_kernel_launch(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                             const tcc_arg *args, size_t n_args, void *stream)
{
    if (!k)
        return TCC_ERR_ARGUMENT;
    const tcc_program *prog = k->program;
    tcc_diag diag = tcc_runtime_diag(prog->rt, prog->manifest->file);
    tcc_plan plan;
    if (!prog->is_loaded) {
        tcc_error(&diag, TCC_ERR_NO_DRIVER, (tcc_loc){0}, "kernel '%s' was described and not loaded",
                  k->desc->name);
        return TCC_ERR_NO_DRIVER;
    }
    tcc_status status = tcc_plan_launch(k->desc, dims, n_dims, args, n_args, &diag, &plan);
    if (status || !plan.variant)
        return status;
    packed p;
    status = pack(k, &plan, dims, args, &p);
    if (status)
        return status;
    void *function = k->functions[plan.variant - k->desc->variants];
    return prog->rt->driver->launch(prog, plan.variant, function, plan.grid, stream, p.params);
}

const char *tcc_kernel_variant(const tcc_kernel *k, const int64_t *dims, size_t n_dims,
                               const tcc_arg *args, size_t n_args)
{
    tcc_diag silent = {0};
    tcc_plan plan;
    if (!k || tcc_plan_launch(k->desc, dims, n_dims, args, n_args, &silent, &plan) || !plan.variant)
        return NULL;
    return plan.variant->entry;
}

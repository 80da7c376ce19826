/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/interp.h"

#include <string.h>

#include "interp/run.h"

int64_t tcc_run_extent(const tcc_run *run, tcc_dim dim)
{
    if (!dim.name)
        return dim.size;
    tcc_attr dims = tcc_attr_list(&run->signature->attrs, "dims");
    for (size_t i = 0; i < dims.list.n; i++)
        if (!strcmp(dims.list.items[i].s, dim.name))
            return run->options->dims[i];
    return -1;
}

const tcc_param *tcc_run_param(const tcc_run *run, const char *name)
{
    for (size_t i = 0; i < run->n_params; i++)
        if (!strcmp(run->params[i].name, name))
            return &run->params[i];
    return NULL;
}

static bool holds_floats(const tcc_param *p)
{
    return tcc_scalar_classify(p->type->elem) == TCC_CLASS_FLOAT;
}

tcc_cell tcc_param_load(const tcc_param *p, int64_t at)
{
    double v = p->data[at];
    return holds_floats(p) ? (tcc_cell){.f = v} : (tcc_cell){.i = (int64_t)v};
}

void tcc_param_store(const tcc_run *run, const tcc_param *p, int64_t at, tcc_cell v)
{
    p->data[at] = !holds_floats(p)         ? (double)tcc_wrap_int(v.i, p->type->elem)
                  : run->options->machine ? tcc_round_float(v.f, p->type->elem)
                                          : v.f;
}

/* ---- parameters ------------------------------------------------------------------------ */

static tcc_status check_dims(const tcc_run *run)
{
    tcc_attr dims = tcc_attr_list(&run->signature->attrs, "dims");
    for (size_t i = 0; i < dims.list.n; i++)
        if (run->options->dims[i] < 0 || run->options->dims[i] > INT32_MAX)
            return TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL, "%s is %lld, wants 0 to %lld",
                            dims.list.items[i].s, (long long)run->options->dims[i],
                            (long long)INT32_MAX);
    return TCC_OK;
}

static tcc_status bind_param(tcc_run *run, tcc_param *p, const tcc_value *v, double *data)
{
    const tcc_type *t = v->type;
    *p = (tcc_param){.name = v->name ? v->name : "", .type = t, .data = data, .count = 1};
    p->extents = TCC_NEW_ARRAY(run->scratch, int64_t, t->rank);
    p->strides = TCC_NEW_ARRAY(run->scratch, int64_t, t->rank);
    bool empty = false;
    for (unsigned d = t->rank; d-- > 0;) {
        p->extents[d] = tcc_run_extent(run, t->dims[d]);
        p->strides[d] = p->count;
        if (p->extents[d] < 0)
            return TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL, "'%s' has an unknown dimension %s",
                            p->name, t->dims[d].name);
        empty |= p->extents[d] == 0;
        int64_t factor = p->extents[d] ? p->extents[d] : 1;
        if (__builtin_mul_overflow(p->count, factor, &p->count) || p->count > INT64_MAX / 16)
            return TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL, "'%s' is too large", p->name);
    }
    if (empty)
        p->count = 0;
    if (p->count && !data)
        return TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL, "no data for '%s'", p->name);
    return TCC_OK;
}

static tcc_status bind_params(tcc_run *run, double *const *args)
{
    const tcc_block *body = run->signature->body;
    run->n_params = body->n_args;
    run->params = TCC_NEW_ARRAY(run->scratch, tcc_param, body->n_args);
    tcc_status status = check_dims(run);
    for (size_t i = 0; i < body->n_args && !status; i++)
        status = bind_param(run, &run->params[i], body->args[i], args[i]);
    return status;
}

/* ---- entry ----------------------------------------------------------------------------- */

tcc_status tcc_interp_run(const tcc_func *f, const tcc_interp_options *options,
                          double *const *args, tcc_arena *scratch, tcc_diag *diag)
{
    tcc_run run = {.f = f,
                   .signature = options->signature ? options->signature : f,
                   .options = options,
                   .scratch = scratch,
                   .diag = diag};
    tcc_status status = bind_params(&run, args);
    return status ? status : tcc_run_fields(&run);
}

/* launch: a target-level function as a kernel: its conditions, parameters and CTAs.
 *
 * CTAs share nothing but global memory and run one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"
#include "ir/target.h"

enum { REGISTER_UNIT = 8 };

/* ---- parameters ------------------------------------------------------------------------ */

/* The cell that stands for the i-th kernel parameter: a tensor map or an address is the number of
 * its record. */
static tcc_status make_param(tcc_cta *c, size_t i, tcc_attr recipe, tcc_cell *out)
{
    tcc_run *run = c->x->run;
    const tcc_attr *a = recipe.list.items;
    bool pointer = tcc_attr_is_record(recipe, "pointer", "s");
    const tcc_param *p = NULL;
    if (pointer || tcc_attr_is_record(recipe, "scalar", "s"))
        p = tcc_run_param(run, a[1].s);
    if (p && pointer)
        out->i = p - run->params;
    else if (p)
        *out = tcc_param_load(p, 0);
    else if (tcc_attr_is_record(recipe, "dim", "d"))
        out->i = tcc_run_dim(run, a[1]);
    else if (tcc_attr_is_record(recipe, "tensor_map", "slllis"))
        return tcc_tensor_map_decode(run, recipe, &c->maps[out->i = (int64_t)i]);
    else
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "malformed entry in 'params'");
    return TCC_OK;
}

static tcc_status make_params(tcc_cta *c, tcc_cell *cells)
{
    tcc_run *run = c->x->run;
    const tcc_block *body = run->f->body;
    tcc_attr params = tcc_attr_list(&run->f->attrs, "params");
    if (params.list.n != body->n_args)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "%zu parameters and %zu entries in 'params'",
                        body->n_args, params.list.n);
    c->maps = TCC_NEW_ARRAY(run->scratch, tcc_tensor_map, body->n_args);
    tcc_status status = TCC_OK;
    for (size_t i = 0; i < body->n_args && !status; i++)
        status = make_param(c, i, params.list.items[i], &cells[i]);
    return status;
}

/* Tiles along each axis [extent, tile] of the attribute `grid`, multiplied. */
static tcc_status count_ctas(const tcc_run *run, int64_t *n)
{
    tcc_attr grid = tcc_attr_list(&run->f->attrs, "grid");
    *n = 1;
    for (size_t i = 0; i < grid.list.n; i++) {
        const tcc_attr *axis = grid.list.items[i].list.items;
        bool ok = grid.list.items[i].kind == TCC_ATTR_LIST && grid.list.items[i].list.n == 2 &&
                  axis[1].kind == TCC_ATTR_INT && axis[1].i > 0;
        int64_t extent = ok ? tcc_run_dim(run, axis[0]) : -1;
        if (extent < 0 || extent > INT32_MAX)
            return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "malformed entry in 'grid'");
        int64_t tiles = extent / axis[1].i + (extent % axis[1].i != 0);
        if (__builtin_mul_overflow(*n, tiles, n) || *n > INT32_MAX)
            return TCC_FAIL(run, TCC_ERR_LIMIT, NULL, "a grid of more than %d CTAs", INT32_MAX);
    }
    return TCC_OK;
}

/* ---- CTAs ------------------------------------------------------------------------------ */

static tcc_status create_cta(tcc_cta *c)
{
    tcc_run *run = c->x->run;
    tcc_arena *scratch = run->scratch;
    const tcc_target *target = tcc_target_of(run->f->ir);
    int64_t block = tcc_attr_int(&run->f->attrs, "block", 0);
    int64_t smem_bytes = tcc_attr_int(&run->f->attrs, "smem_bytes", 0);
    if (!target)
        return TCC_FAIL(run, TCC_ERR_UNSUPPORTED, NULL, "a kernel for no known target");
    if (block < 1 || block > target->max_threads || block % TCC_WARP_LANES)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "a block of %lld threads", (long long)block);
    if (smem_bytes < 0 || smem_bytes > target->smem_bytes)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "%lld bytes of shared memory of at most %lld",
                        (long long)smem_bytes, (long long)target->smem_bytes);
    c->n_warps = (unsigned)(block / TCC_WARP_LANES);
    c->n_actors = 3 * c->n_warps + TCC_MAX_MBARRIERS;
    tcc_status status = tcc_run_check_room(run, NULL, c->x->program->n_cells * TCC_WARP_LANES,
                                           c->n_warps * sizeof(tcc_cell));
    if (status)
        return status;
    c->warps = TCC_NEW_ARRAY(scratch, tcc_warp, c->n_warps);
    c->groups = TCC_NEW_ARRAY(scratch, tcc_warpgroup, c->n_warps);
    for (unsigned w = 0; w < c->n_warps; w++) {
        c->warps[w].order = tcc_order_create(c);
        tcc_thread_create(c->x, &c->x->program->body, NULL)->warp = &c->warps[w];
    }
    tcc_smem_create(c, smem_bytes);
    return TCC_OK;
}

/* Registers that a thread has at first: its share, as much as an instruction can name. */
static int64_t first_registers(const tcc_cta *c)
{
    const tcc_target *target = tcc_target_of(c->x->run->f->ir);
    int64_t share = target->registers / (c->n_warps * TCC_WARP_LANES);
    if (share > target->thread_registers)
        share = target->thread_registers;
    return share / REGISTER_UNIT * REGISTER_UNIT;
}

static void begin_cta(tcc_cta *c, int64_t id, const tcc_cell *params)
{
    tcc_exec *x = c->x;
    c->id = id;
    c->n_mbarriers = 0;
    c->free_registers = 0;
    x->steps = 0;
    c->elected = (unsigned)tcc_exec_random(x, TCC_WARP_LANES);
    tcc_smem_clear(c);
    for (int i = 0; i < TCC_NAMED_BARRIERS; i++)
        c->named[i].threads = c->named[i].arrived = 0;
    for (unsigned w = 0; w < c->n_warps; w++) {
        tcc_thread *t = x->threads.data[w];
        tcc_thread_restart(t);
        tcc_order_clear(c, &t->warp->order);
        t->warp->order.seen[w] = 1;
        *t->warp =
            (tcc_warp){.order = t->warp->order, .waits_at = -1, .registers = first_registers(c)};
        c->groups[w].products.len = 0;
        const tcc_code *body = &x->program->body;
        for (size_t i = 0; i < body->n_args; i++)
            for (unsigned l = 0; l < TCC_WARP_LANES; l++)
                tcc_cells(t, body->args[i])[l] = params[i];
    }
}

/* What must not be left undone at a CTA's end. */
static tcc_status check_end(tcc_cta *c)
{
    tcc_exec *x = c->x;
    for (unsigned w = 0; w < c->n_warps; w++) {
        const tcc_thread *t = x->threads.data[w];
        const tcc_warp *warp = t->warp;
        if (warp->open_group || t->waited < t->committed)
            return TCC_FAIL(x->run, TCC_ERR_INTERNAL, NULL, "warp %u ends before its products", w);
        if (warp->bulk.open || warp->order.seen[tcc_actor_copies(c, w)] < warp->bulk.groups.len)
            return TCC_FAIL(x->run, TCC_ERR_INTERNAL, NULL,
                            "warp %u ends while its copies may still be reading shared memory", w);
    }
    for (size_t i = 0; i < c->n_mbarriers; i++)
        if (c->mbarriers[i].in_flight || c->mbarriers[i].tx)
            return TCC_FAIL(x->run, TCC_ERR_INTERNAL, NULL,
                            "the CTA ends while copies may still be writing shared memory");
    return TCC_OK;
}

tcc_status tcc_run_kernel(tcc_run *run)
{
    tcc_exec x;
    tcc_program program;
    run->machine = true;
    tcc_status status = tcc_program_decode(run, TCC_LEVEL_TARGET, &program);
    if (status)
        return status;
    status = tcc_exec_init(&x, run, &program, TCC_WARP_LANES);
    if (status)
        return status;
    tcc_cta *c = TCC_NEW(run->scratch, tcc_cta);
    c->x = &x;
    x.cta = c;
    tcc_cell *params = TCC_NEW_ARRAY(run->scratch, tcc_cell, run->f->body->n_args);
    int64_t n;
    status = count_ctas(run, &n);
    if (status || n == 0)
        return status;
    status = make_params(c, params);
    if (!status)
        status = create_cta(c);
    for (int64_t id = 0; id < n && !status; id++) {
        begin_cta(c, id, params);
        status = tcc_exec_run(&x);
        if (!status)
            status = check_end(c);
    }
    return status;
}

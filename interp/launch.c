/* launch: a target-level function as a kernel: its parameters, its grid, and its CTAs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"
#include "ir/resize.h"

/* What is modelled of a vendor's machine, and in which words it is spoken of. */
typedef struct machine {
    const char *ops; /* how names of its instructions begin */
    const char *warp, *cta, *smem, *address;
    bool sets_lanes; /* a kernel says how many lanes a warp has */
    bool in_step;    /* the lanes of a warp never part */
} machine;
static const machine machine_NVIDIA = {"nvvm.", "warp", "CTA", "shared memory", "shared address", false, false};
static const machine machine_AMD = {"amdgcn.", "wave", "workgroup", "LDS", "LDS address", true, true};

static const machine *const machines[TCC_VENDOR_COUNT] = {
#define VENDOR(id) &machine_##id,
    TCC_VENDORS(VENDOR)
#undef VENDOR
};

static const machine *machine_of(const tcc_target *target)
{
    return machines[tcc_target_vendor(target)];
}

/* ---- parameters ------------------------------------------------------------------------ */

static bool is_class(const tcc_type *t, tcc_scalar_class class)
{
    return t->kind == TCC_KIND_scalar && tcc_scalar_classify(t->elem) == class;
}

/* Whether a parameter is of the kind, and of the elements, that its recipe makes. */
static bool fits(const tcc_type *t, const char *recipe, const tcc_param *p)
{
    if (!strcmp(recipe, "pointer"))
        return t->kind == TCC_KIND_ptr && t->elem == p->type->elem;
    if (!strcmp(recipe, "scalar"))
        return !p->type->rank && is_class(t, tcc_scalar_classify(p->type->elem)) &&
               (t->elem == TCC_f64) == (p->type->elem == TCC_f64); /* of the same size */
    if (!strcmp(recipe, "dim"))
        return is_class(t, TCC_CLASS_INT);
    return t->kind == TCC_KIND_tensormap;
}

/* The cell for the i-th kernel parameter: a tensor map or an address is the number of its
 * record. */
static tcc_status make_param(tcc_run *run, size_t i, tcc_attr recipe, tcc_launch *l)
{
    const tcc_value *v = run->f->body->args[i];
    tcc_cell *out = &l->params[i];
    const tcc_attr *a = recipe.list.items;
    bool pointer = tcc_attr_is_record(recipe, "pointer", "s");
    bool scalar = tcc_attr_is_record(recipe, "scalar", "s");
    bool map = tcc_attr_is_record(recipe, "tensor_map", "slllis");
    const tcc_param *p = pointer || scalar ? tcc_run_param(run, a[1].s) : NULL;
    bool known = pointer || scalar ? p != NULL : map || tcc_attr_is_record(recipe, "dim", "d");
    if (!known)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "malformed entry in 'params'");
    if (!fits(v->type, a[0].s, p))
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "parameter %zu is not the %s of '%s'", i, a[0].s,
                        a[1].kind == TCC_ATTR_STR ? a[1].s : "");
    if (map)
        return tcc_tensor_map_decode(run, recipe, &l->maps[out->i = (int64_t)i]);
    if (pointer)
        out->i = p - run->params;
    else if (scalar)
        *out = tcc_param_load(p, 0);
    else
        out->i = tcc_run_dim(run, a[1]);
    return TCC_OK;
}

static tcc_status make_params(tcc_run *run, tcc_launch *l)
{
    const tcc_block *body = run->f->body;
    tcc_attr params = tcc_attr_list(&run->f->attrs, "params");
    if (params.list.n != body->n_args)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "%zu parameters and %zu entries in 'params'",
                        body->n_args, params.list.n);
    l->params = TCC_NEW_ARRAY(run->scratch, tcc_cell, body->n_args);
    l->maps = TCC_NEW_ARRAY(run->scratch, tcc_tensor_map, body->n_args);
    tcc_status status = TCC_OK;
    for (size_t i = 0; i < body->n_args && !status; i++)
        status = make_param(run, i, params.list.items[i], l);
    return status;
}

static tcc_status count_ctas(const tcc_run *run, int64_t *n)
{
    *n = tcc_run_ctas(run, tcc_attr_list(&run->f->attrs, "grid"));
    if (*n < 0)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "'grid' names a dimension that the kernel does not have");
    if (*n > INT32_MAX)
        return TCC_FAIL(run, TCC_ERR_LIMIT, NULL, "a grid of more than %d CTAs", INT32_MAX);
    int64_t cluster = tcc_attr_int(&run->f->attrs, "cluster_ctas", 1);
    if (cluster > 0 && *n >= cluster && tcc_attr_int(&run->f->attrs, "fewer_ctas", 0))
        *n = cluster * tcc_run_launched(run, *n / cluster, cluster);
    return TCC_OK;
}

/* ---- clusters -------------------------------------------------------------------------- */

static void create_cta(tcc_cta *c, tcc_cluster *k, unsigned rank, const tcc_launch *l)
{
    tcc_arena *scratch = k->x->run->scratch;
    c->cluster = k;
    c->rank = rank;
    c->warps = TCC_NEW_ARRAY(scratch, tcc_warp, k->n_warps);
    c->groups = TCC_NEW_ARRAY(scratch, tcc_warpgroup, k->n_warps);
    for (unsigned w = 0; w < k->n_warps; w++) {
        tcc_thread *t = tcc_thread_create(k->x, &k->x->program->body, NULL);
        t->id = w;
        t->warp = &c->warps[w];
        c->warps[w] = (tcc_warp){
            .cta = c, .thread = t, .actor = tcc_actor_warp(c, w), .order = tcc_order_create(k)};
    }
    tcc_smem_create(c, l->smem_bytes, tcc_target_can(l->target, TCC_CAN_tma) ? 1 : 0);
}

/* The launch's shape, as its function's attributes give it. */
static tcc_status check_shape(tcc_run *run, tcc_launch *l)
{
    const tcc_attrs *attrs = &run->f->attrs;
    const tcc_target *target = tcc_target_of(run->f->ir);
    int64_t block = tcc_attr_int(attrs, "block", 0), size = tcc_attr_int(attrs, "cluster_ctas", 1);
    int64_t smem_bytes = tcc_attr_int(attrs, "smem_bytes", 0);
    if (!target)
        return TCC_FAIL(run, TCC_ERR_UNSUPPORTED, NULL, "a kernel for an unknown target");
    int64_t lanes = machine_of(target)->sets_lanes ? tcc_attr_int(attrs, "wave", 32) : TCC_WARP_LANES;
    if (lanes != TCC_WARP_LANES && lanes != TCC_MAX_LANES)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "waves of %lld lanes", (long long)lanes);
    if (block < 1 || block > target->max_threads || block % lanes)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "a block of %lld threads", (long long)block);
    if (!tcc_target_can(target, TCC_CAN_wgmma) && run->options->order == TCC_ORDER_TIMED)
        return TCC_FAIL(run, TCC_ERR_UNSUPPORTED, NULL,
                        "the timed order models sm_90a, and there is no model of %s", target->name);
    if (!tcc_target_can(target, TCC_CAN_cluster) && size != 1)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "%s has no clusters", target->name);
    if (size < 1 || size > TCC_MAX_CLUSTER)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "a cluster of %lld CTAs, of at most %d",
                        (long long)size, TCC_MAX_CLUSTER);
    if (smem_bytes < 0 || smem_bytes > target->smem_bytes)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "%lld bytes of shared memory of at most %lld",
                        (long long)smem_bytes, (long long)target->smem_bytes);
    if (l->n_ctas % size)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "a grid of %lld CTAs in clusters of %lld",
                        (long long)l->n_ctas, (long long)size);
    l->target = target;
    l->cluster = (unsigned)size;
    l->n_warps = (unsigned)(block / lanes);
    l->lanes = (unsigned)lanes;
    l->smem_bytes = smem_bytes;
    return TCC_OK;
}

static bool is_op_of(const machine *m, const char *name)
{
    return !strncmp(name, m->ops, strlen(m->ops));
}

/* No op of another vendor's. */
static tcc_status check_ops(const tcc_run *run, const tcc_target *target)
{
    const tcc_block *body = run->f->body;
    for (const tcc_op *op = body->first; op; op = tcc_walk_next((tcc_op *)op, body)) {
        const char *name = tcc_op_info_get(op->code)->name;
        for (int v = 0; v < TCC_VENDOR_COUNT; v++)
            if (machines[v] != machine_of(target) && is_op_of(machines[v], name))
                return TCC_FAIL(run, TCC_ERR_UNSUPPORTED, op, "%s is not an instruction of %s", name,
                                target->name);
    }
    return TCC_OK;
}

/* Registers that MMAs use are not given away. */
static tcc_status check_registers(const tcc_run *run)
{
    tcc_resize_wrong wrong;
    if (!tcc_resize_find_wrong(run->f, run->scratch, &wrong))
        return TCC_OK;
    tcc_status status = TCC_FAIL(run, TCC_ERR_INTERNAL, wrong.resize,
                                 "nvvm.setmaxnreg leaves fewer than the %lld registers that MMAs need",
                                 (long long)wrong.need);
    tcc_note(run->diag, wrong.op->loc, "here");
    return status;
}

tcc_status tcc_cluster_create(tcc_run *run, const tcc_launch *l, tcc_cluster **out)
{
    tcc_exec *x = TCC_NEW(run->scratch, tcc_exec);
    tcc_status status = tcc_exec_init(x, run, l->program, l->lanes);
    if (!status)
        status = tcc_run_check_room(run, NULL, l->program->n_cells * l->lanes,
                                    l->cluster * l->n_warps * sizeof(tcc_cell));
    if (status)
        return status;
    tcc_cluster *k = *out = TCC_NEW(run->scratch, tcc_cluster);
    k->x = x;
    x->cluster = k;
    k->maps = l->maps;
    k->params = l->params;
    k->drawn = TCC_NEW_ARRAY(run->scratch, int64_t, run->n_params);
    k->one_of_many = l->n_ctas > 1;
    const machine *m = machine_of(l->target);
    k->words.warp = m->warp;
    k->words.cta = m->cta;
    k->words.smem = m->smem;
    k->words.address = m->address;
    k->n_launched = l->n_ctas;
    k->n_ctas = l->cluster;
    k->n_warps = l->n_warps;
    k->per_cta = 5 * k->n_warps + TCC_MAX_MBARRIERS + TCC_NAMED_BARRIERS;
    k->n_actors = k->n_ctas * k->per_cta;
    k->ctas = TCC_NEW_ARRAY(run->scratch, tcc_cta, k->n_ctas);
    k->barrier.arrivals = tcc_order_create(k);
    k->barrier.done = tcc_order_create(k);
    k->end = tcc_order_create(k);
    for (unsigned r = 0; r < k->n_ctas; r++)
        create_cta(&k->ctas[r], k, r, l);
    return tcc_global_create(k);
}

static void begin_warp(tcc_warp *w, const tcc_cell *params)
{
    const tcc_cluster *k = w->cta->cluster;
    tcc_thread *t = w->thread;
    tcc_thread_restart(t);
    tcc_order_clear(k, &w->order);
    w->order.seen[w->actor] = 1;
    *w = (tcc_warp){.cta = w->cta,
                    .thread = t,
                    .actor = w->actor,
                    .order = w->order,
                    .in_step = machine_of(tcc_target_of(k->x->run->f->ir))->in_step,
                    .parts = w->parts,
                    .waits_at = -1,
                    .lds_waited = 1,
                    .registers = tcc_registers_at_launch(k->x->run->f)};
    t->early = tcc_attr_find(&k->x->run->f->attrs, "overlaps") ? tcc_all_lanes(k->x) : 0;
    const tcc_code *body = &k->x->program->body;
    for (size_t i = 0; i < body->n_args; i++)
        for (unsigned l = 0; l < k->x->lanes; l++)
            tcc_cells(t, body->args[i])[l] = params[i];
}

static void begin_cta(tcc_cta *c, int64_t id, const tcc_cell *params)
{
    c->id = id;
    for (size_t i = 0; i < c->n_mbarriers; i++)
        c->mbarriers[i].before = 0;
    c->n_mbarriers = 0;
    c->remote.len = 0;
    c->free_registers = 0;
    c->elected = (unsigned)tcc_exec_random(c->cluster->x, TCC_WARP_LANES);
    tcc_smem_clear(c);
    for (int i = 0; i < TCC_NAMED_BARRIERS; i++)
        c->named[i].threads = c->named[i].arrived = c->named[i].phase = 0;
    for (unsigned w = 0; w < c->cluster->n_warps; w++) {
        c->groups[w].mmas.len = c->groups[w].resizes.len = 0;
        begin_warp(&c->warps[w], params);
    }
}

/* Nothing is left of the cluster that ran before. */
static void begin_cluster(tcc_cluster *k, int64_t first_id, const tcc_cell *params)
{
    k->x->steps = 0;
    tcc_accesses_clear(k);
    tcc_global_clear(k);
    k->barrier.arrived = k->barrier.phase = 0;
    tcc_order_clear(k, &k->barrier.arrivals);
    tcc_order_clear(k, &k->barrier.done);
    for (unsigned r = 0; r < k->n_ctas; r++)
        begin_cta(&k->ctas[r], first_id + r, params);
    for (size_t i = 0; i < k->x->run->n_params; i++)
        k->drawn[i] = -1;
}

tcc_status tcc_cluster_run(tcc_cluster *k, const tcc_launch *l, int64_t first_id)
{
    tcc_exec_seed(k->x, (uint64_t)(first_id / k->n_ctas));
    begin_cluster(k, first_id, l->params);
    tcc_status status = tcc_exec_run(k->x);
    return status ? status : tcc_cluster_check_end(k);
}

tcc_status tcc_run_kernel(tcc_run *run)
{
    tcc_program program;
    tcc_launch l = {.program = &program};
    run->machine = true;
    tcc_status status = tcc_program_decode(run, TCC_LEVEL_TARGET, &program);
    if (!status)
        status = count_ctas(run, &l.n_ctas);
    if (status || l.n_ctas == 0)
        return status;
    status = make_params(run, &l);
    if (!status)
        status = check_shape(run, &l);
    if (!status)
        status = check_ops(run, l.target);
    if (!status)
        status = check_registers(run);
    return status ? status : tcc_grid_run(run, &l);
}

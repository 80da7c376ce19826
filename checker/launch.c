/* launch: a plan, for sizes that its conditions allow. Checked are the promises of attributes and what steps leave to
 * each other:
 *
 * - the grid is whole clusters, and if it counts tiles, no cluster is without anything to write;
 * - a loop that is at_least_once has an iteration;
 * - every element of a result is written, by one cluster of a step;
 * - an element of the workspace is read only if an earlier step has written it, or the plan has set it to 0;
 * - tiles are drawn from a counter that is 0;
 * - accesses to what steps write, and the boxes of tensor maps, are within their tensors, which are the same for all
 *   steps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/launch.h"

#include <string.h>

#include "checker/checker.h"
#include "ir/signature.h"
#include "ir/target.h"

/* ---- parameters of a kernel ---------------------------------------------------------------- */

static tcc_ltensor *find_tensor(const tcc_lplan *p, tcc_attr name)
{
    for (size_t i = 0; name.kind == TCC_ATTR_STR && i < p->n_tensors; i++)
        if (!strcmp(p->tensors[i].name, name.s))
            return &p->tensors[i];
    return NULL;
}

/* Whether a tensor map can be one, and its last element is in the tensor. */
static bool read_map(tcc_launch *l, const tcc_attr *of, tcc_lparam *out)
{
    tcc_lmap *m = &out->map;
    size_t rank = of[2].list.n;
    bool ok = rank >= 1 && rank <= TCC_L_RANK && of[3].list.n == rank - 1 && of[4].list.n == rank;
    int64_t last = 0;
    m->tensor = out->tensor;
    m->rank = ok ? (unsigned)rank : 0;
    for (size_t d = 0; ok && d < rank; d++) {
        m->extents[d] = tcc_launch_extent(l->sizes, of[2].list.items[d]);
        m->strides[d] = d ? tcc_launch_multiply(l->sizes, of[3].list.items[d - 1], 1) : 1;
        m->box[d] = of[4].list.items[d].kind == TCC_ATTR_INT ? of[4].list.items[d].i : 0;
        ok = m->extents[d] >= 1 && m->strides[d] >= 1 && m->box[d] >= 1 &&
             !__builtin_add_overflow(last, (m->extents[d] - 1) * m->strides[d], &last);
    }
    if (!ok)
        return tcc_launch_wrong(l, TCC_ERR_INTERNAL, NULL, "malformed tensor map of '%s' in 'params'", of[1].s);
    return last < out->tensor->n ||
           tcc_launch_wrong(l, TCC_ERR_INTERNAL, NULL, "the tensor map of '%s' has element %lld of %lld", of[1].s,
                            (long long)last, (long long)out->tensor->n);
}

static bool read_params(const tcc_lplan *p, tcc_launch *l)
{
    tcc_attr params = tcc_attr_list(&l->f->attrs, "params");
    size_t n = l->f->body->n_args;
    if (params.list.n != n)
        return tcc_launch_wrong(l, TCC_ERR_INTERNAL, NULL, "%zu parameters and %zu entries in 'params'", n,
                                params.list.n);
    l->params = TCC_NEW_ARRAY(l->scratch, tcc_lparam, n);
    for (size_t i = 0; i < n; i++) {
        tcc_attr record = params.list.items[i];
        tcc_lparam *out = &l->params[i];
        const tcc_attr *of = record.list.items;
        bool map = tcc_attr_is_record(record, "tensor_map", "slllis");
        if (tcc_attr_is_record(record, "dim", "d")) {
            out->number = tcc_launch_extent(l->sizes, of[1]);
            out->known = out->number >= 0;
        } else if (tcc_attr_is_record(record, "scalar", "s")) { /* any number will do */
            out->number = l->sizes->sample;
            out->known = l->f->body->args[i]->type->elem == TCC_i32;
        } else if (map || tcc_attr_is_record(record, "pointer", "s")) {
            out->tensor = find_tensor(p, of[1]);
            if (!out->tensor)
                return tcc_launch_wrong(l, TCC_ERR_INTERNAL, NULL, "'params' has '%s', which '%s' lacks", of[1].s,
                                        p->variant->name);
        }
        if (map && !read_map(l, of, out))
            return false;
    }
    return true;
}

/* A step sees the tensors that the variant has, from which places in the workspace are computed. */
static bool same_tensors(const tcc_lplan *p, const tcc_func *step)
{
    const tcc_func *own = tcc_func_parameters(step, p->scratch, p->diag);
    for (size_t i = 0; own && i < own->body->n_args; i++) {
        const tcc_value *arg = own->body->args[i];
        const tcc_value *value = tcc_func_parameter(p->parameters, arg->name);
        const tcc_type *a = arg->type, *b = value ? value->type : NULL;
        bool same = b && a->kind == b->kind && a->elem == b->elem && a->rank == b->rank && tcc_type_same_places(a, b);
        for (unsigned d = 0; same && d < a->rank; d++)
            same = tcc_dim_equal(a->dims[d], b->dims[d]);
        if (same)
            continue;
        tcc_error(p->diag, TCC_ERR_INTERNAL, step->loc, "'%s' is another tensor in '%s'", arg->name, p->variant->name);
        return false;
    }
    return own;
}

/* ---- one step ------------------------------------------------------------------------------ */

static bool count_ctas(tcc_launch *l)
{
    int64_t cluster = tcc_attr_int(&l->f->attrs, "cluster_ctas", 1);
    l->n_ctas = tcc_launch_ctas(l->sizes, l->f);
    if (l->n_ctas < 0)
        return tcc_launch_wrong(l, TCC_ERR_INTERNAL, NULL, "'grid' names a dimension that the kernel does not have");
    if (cluster < 1 || l->n_ctas % cluster)
        return tcc_launch_wrong(l, TCC_ERR_INTERNAL, NULL, "'grid' makes %lld CTAs, in clusters of %lld",
                                (long long)l->n_ctas, (long long)cluster);
    tcc_attr grid = tcc_attr_list(&l->f->attrs, "grid");
    for (size_t i = 0; i < grid.list.n; i++) {
        bool number = grid.list.items[i].kind == TCC_ATTR_INT;
        l->counts_tiles |= !number || (!l->sizes->dims.list.n && grid.list.items[i].i > 1);
    }
    int64_t most = l->sizes->sample + 1 == TCC_L_SAMPLES ? 2 * cluster : l->n_ctas;
    if (tcc_attr_int(&l->f->attrs, "fewer_ctas", 0) && l->n_ctas > most)
        l->n_ctas = most;
    l->cluster = (unsigned)cluster;
    return true;
}

static bool check_shape(tcc_launch *l)
{
    const tcc_target *target = tcc_target_of(l->f->ir);
    int64_t block = tcc_attr_int(&l->f->attrs, "block", 0), lanes = tcc_attr_int(&l->f->attrs, "wave", 32);
    bool ok = target && (lanes == 32 || lanes == TCC_L_LANES) && block > 0 && block % lanes == 0 &&
              block <= target->max_threads;
    l->lanes = (unsigned)lanes;
    l->n_warps = ok ? (unsigned)(block / lanes) : 0;
    return ok || tcc_launch_wrong(l, TCC_ERR_INTERNAL, NULL, "a block of %lld threads", (long long)block);
}

static bool launch(tcc_lplan *p, const tcc_lstep *step, tcc_status *status)
{
    tcc_launch *l = TCC_NEW(p->scratch, tcc_launch);
    *l = (tcc_launch){.f = step->f,
                      .program = step->program,
                      .sizes = &p->sizes,
                      .first_writer = p->writers,
                      .scratch = p->scratch,
                      .diag = p->diag};
    bool ok = read_params(p, l) && check_shape(l) && count_ctas(l) && tcc_launch_run(l);
    p->writers += (uint32_t)(ok ? l->n_ctas / l->cluster : 0);
    p->too_long |= l->too_long;
    *status = l->status;
    return ok;
}

/* ---- plans --------------------------------------------------------------------------------- */

/* Results have all their elements. A kernel may leave some of a tensor that it also reads as they are, unless its grid
 * counts tiles. */
static bool check_results(const tcc_lplan *p, tcc_status *status)
{
    for (size_t i = 0; i < p->n_tensors; i++) {
        const tcc_ltensor *t = &p->tensors[i];
        if (t->role != TCC_L_OUT && !(t->role == TCC_L_INOUT && t->tiled))
            continue;
        for (int64_t e = 0; e < t->n; e++) {
            if (t->elems[e] >= TCC_L_WRITTEN)
                continue;
            tcc_error(p->diag, *status = TCC_ERR_INTERNAL, p->variant->loc, "element %lld of '%s' is not written",
                      (long long)e, t->name);
            tcc_note(p->diag, p->variant->loc, "'%s' with %s", p->variant->name,
                     tcc_launch_sizes_text(&p->sizes, p->scratch));
            return false;
        }
    }
    return true;
}

/* Whether it is a kernel that says what the caller passes. */
static bool can_run(const tcc_func *f)
{
    return tcc_func_is_entry(f) && tcc_attr_find(&f->attrs, "args");
}

static bool lacks_step(const tcc_func *variant, tcc_diag *diag)
{
    const char *name = tcc_func_missing_step(variant);
    if (name)
        tcc_error(diag, TCC_ERR_TYPE, variant->loc, "'%s' has a step '%s', which is not a function of the module",
                  variant->name, name);
    return name;
}

/* Whether it can be launched, with all its steps. */
static bool is_plan(const tcc_func *f)
{
    bool all = !tcc_func_is_step(f) && !tcc_func_is_definition(f);
    for (size_t i = 0; all && i < tcc_func_step_count(f); i++)
        all = can_run(tcc_func_step_at(f, i));
    return all;
}

/* Of which parameters of a step it matters what is read: of those that only steps can have written. */
static bool *reads_of(const tcc_lplan *p, const tcc_func *f)
{
    tcc_attr params = tcc_attr_list(&f->attrs, "params"), roles = tcc_attr_list(&p->parameters->attrs, "roles");
    bool *reads = TCC_NEW_ARRAY(p->scratch, bool, f->body->n_args);
    for (size_t i = 0; i < f->body->n_args && i < params.list.n; i++) {
        tcc_attr record = params.list.items[i];
        bool named = record.kind == TCC_ATTR_LIST && record.list.n > 1 && record.list.items[1].kind == TCC_ATTR_STR;
        const tcc_value *tensor = named ? tcc_func_parameter(p->parameters, record.list.items[1].s) : NULL;
        const char *role = tensor ? roles.list.items[tensor->index].s : "";
        reads[i] = !strcmp(role, "out") || !strcmp(role, "workspace");
    }
    return reads;
}

bool tcc_launch_open(tcc_lplan *p, const tcc_func *variant, tcc_arena *scratch, tcc_diag *diag, tcc_status *status)
{
    *p = (tcc_lplan){.variant = variant, .scratch = scratch, .diag = diag};
    *status = can_run(variant) && lacks_step(variant, diag) ? TCC_ERR_TYPE : TCC_OK;
    if (*status || !is_plan(variant))
        return false;
    p->parameters = tcc_func_parameters(variant, scratch, diag);
    *status = p->parameters ? TCC_OK : TCC_ERR_INTERNAL;
    if (*status)
        return false;
    p->n_tensors = p->parameters->body->n_args;
    p->n_steps = tcc_func_step_count(variant);
    p->steps = TCC_NEW_ARRAY(scratch, tcc_lstep, p->n_steps);
    for (size_t i = 0; i < p->n_steps; i++) {
        const tcc_func *f = tcc_func_step_at(variant, i);
        p->steps[i] = (tcc_lstep){f, tcc_launch_slice(f, reads_of(p, f), scratch)};
    }
    return true;
}

/* Launches a plan with the sizes of a sample. */
static tcc_status launch_all(tcc_lplan *p)
{
    tcc_status status = TCC_OK;
    p->writers = TCC_L_WRITTEN;
    p->too_long = false;
    p->tensors = tcc_launch_tensors(p->variant, p->parameters, &p->sizes, p->scratch);
    bool ok = true;
    for (size_t s = 0; ok && s < p->n_steps; s++)
        ok = launch(p, &p->steps[s], &status);
    if (ok && !p->sizes.large)
        check_results(p, &status);
    return status;
}

/* Chooses shorter sizes for a sample; false: none are allowed. */
static bool shrink(tcc_lplan *p)
{
    bool found = false;
    while (!found && p->sizes.may_shrink) {
        p->sizes.length++;
        found = tcc_launch_choose_sizes(p->variant, p->parameters, &p->sizes, p->scratch);
    }
    return found;
}

static tcc_status refuse(const tcc_lplan *p, const char *why)
{
    tcc_error(p->diag, TCC_ERR_UNSUPPORTED, p->variant->loc, "%s", why);
    return TCC_ERR_UNSUPPORTED;
}

tcc_status tcc_launch_prove(tcc_lplan *p)
{
    tcc_status status = TCC_OK;
    unsigned followed = 0;
    for (size_t i = 0; i < p->n_steps; i++)
        if (!same_tensors(p, p->steps[i].f))
            return TCC_ERR_INTERNAL;
    for (unsigned i = 0; i < TCC_L_SAMPLES && !status; i++) {
        p->sizes = (tcc_lsizes){.sample = i};
        if (!tcc_launch_choose_sizes(p->variant, p->parameters, &p->sizes, p->scratch))
            continue;
        followed++;
        status = launch_all(p);
        while (p->too_long && shrink(p))
            status = launch_all(p);
        if (p->too_long && !status)
            return refuse(p, "launches of this plan are too long to be followed");
    }
    if (followed || status || !tcc_launch_is_possible(p->variant, p->parameters, p->diag, p->scratch))
        return status;
    return refuse(p, "no sizes are found that 'requires' allows");
}

tcc_status tcc_launch_check(const tcc_func *variant, tcc_arena *scratch, tcc_diag *diag)
{
    tcc_lplan p;
    tcc_status status;
    return tcc_launch_open(&p, variant, scratch, diag, &status) ? tcc_launch_prove(&p) : status;
}

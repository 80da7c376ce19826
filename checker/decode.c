/* decode: of a function's ops those that matter, with a slot for each value that they
 * need.
 *
 * What matters is synchronization and access to shared memory, or to tensors that copies both read
 * and write; scalars are needed where those, or the control flow around them, ask for them. Most
 * of a kernel, its arithmetic and its other accesses to global memory, is left out. Walking
 * backwards from what asks also tells how much of a number is asked: of the index of a ring's loop
 * only its remainder by twice the number of stages, which is what makes the states finite
 * (value.c).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/decode.h"
#include "ir/resize.h"
#include "ir/target.h"

/* ---- reading ----------------------------------------------------------------------------- */

uint32_t tcc_p_number_of(decoder *d, const tcc_value *v)
{
    void **place = tcc_map_at(&d->numbers, v);
    if (!*place) {
        TCC_PUSH(d->p->scratch, &d->needs, (need){.value = v, .slot = TCC_P_NO_SLOT});
        *place = (void *)(uintptr_t)d->needs.len;
    }
    return (uint32_t)((uintptr_t)*place - 1);
}

static bool read_block(decoder *d, const tcc_block *block, uint32_t parent, uint32_t region,
                       unsigned depth);

static bool read_op(decoder *d, const tcc_op *op, uint32_t parent, uint32_t region, unsigned depth)
{
    tcc_arena *scratch = d->p->scratch;
    const tcc_op_info *info = tcc_op_info_get(op->code);
    if (!(info->levels & TCC_LEVEL_TARGET))
        return tcc_p_unsupported(d->p, op, "%s is not of the target level", info->name), false;
    if (!tcc_p_is_known(op->code))
        return tcc_p_unsupported(d->p, op, "nothing is known of %s", info->name), false;
    source s = {.op = op, .parent = parent, .region = region};
    s.operands = TCC_NEW_ARRAY(scratch, uint32_t, op->n_operands + 1);
    s.args = TCC_NEW_ARRAY(scratch, uint32_t, op->n_regions + 1);
    for (unsigned i = 0; i < op->n_operands; i++)
        s.operands[i] = tcc_p_number_of(d, op->operands[i]);
    s.results = (uint32_t)d->needs.len;
    for (unsigned i = 0; i < op->n_results; i++)
        tcc_p_number_of(d, &op->results[i]);
    TCC_PUSH(scratch, &d->sources, s);
    uint32_t self = (uint32_t)d->sources.len;
    for (unsigned r = 0; r < op->n_regions; r++) {
        d->sources.data[self - 1].args[r] = (uint32_t)d->needs.len;
        if (!read_block(d, op->regions[r], self, r, depth + 1))
            return false;
    }
    return true;
}

static bool read_block(decoder *d, const tcc_block *block, uint32_t parent, uint32_t region,
                       unsigned depth)
{
    if (depth > MAX_NESTING)
        return tcc_p_unsupported(d->p, block->parent, "regions are nested too deeply"), false;
    for (size_t i = 0; i < block->n_args; i++)
        tcc_p_number_of(d, block->args[i]);
    for (const tcc_op *op = block->first; op; op = op->next)
        if (op->code != TCC_OP_nvvm_griddepcontrol_wait && /* tcc_p_global_waits */
            !(tcc_op_does(op->code, TCC_HINT) && !op->n_results) && !read_op(d, op, parent, region, depth))
            return false;
    return true;
}

/* ---- the function's attributes --------------------------------------------------------- */

/* Bytes of a tensor map's box: [tensor_map, NAME, dims, strides, box, swizzle, elem]. */
static int64_t box_bytes_of(tcc_attr recipe)
{
    tcc_scalar elem;
    if (!tcc_attr_is_record(recipe, "tensor_map", "slllis"))
        return 0;
    const tcc_attr *items = recipe.list.items;
    if (!tcc_scalar_find(items[6].s, strlen(items[6].s), &elem))
        return 0;
    int64_t bytes = tcc_scalar_bits(elem) / 8;
    for (size_t d = 0; d < items[4].list.n; d++) {
        tcc_attr box = items[4].list.items[d];
        if (box.kind != TCC_ATTR_INT || box.i < 1 || __builtin_mul_overflow(bytes, box.i, &bytes))
            return 0;
    }
    return bytes;
}

/* CTAs of a cluster are followed together, as warps that go on behind those of the first. */
static bool follow_cluster(tcc_protocol *p, int64_t ctas)
{
    p->spread = (p->cta_warps + TCC_WARPGROUP_WARPS - 1) / TCC_WARPGROUP_WARPS * TCC_WARPGROUP_WARPS;
    if (!tcc_target_can(tcc_target_of(p->f->ir), TCC_CAN_cluster) || ctas < 1 || ctas > TCC_P_CTAS ||
        ctas * p->spread > TCC_P_WARPS)
        return tcc_p_unsupported(p, NULL, "'%s' has clusters of %lld CTAs", p->f->name, (long long)ctas), false;
    p->ctas = (unsigned)ctas;
    p->n_warps = p->ctas * p->spread;
    p->smem_bytes = (ctas - 1) * TCC_P_WINDOW + p->cta_bytes;
    return true;
}

static tcc_status read_attributes(tcc_protocol *p)
{
    const tcc_func *f = p->f;
    const tcc_target *target = tcc_target_of(f->ir);
    int64_t block = tcc_attr_int(&f->attrs, "block", 0), lanes = TCC_WARP_LANES;
    p->amd = target && tcc_target_vendor(target) == TCC_VENDOR_AMD;
    if (p->amd)
        lanes = tcc_attr_int(&f->attrs, "wave", TCC_WARP_LANES);
    p->smem_bytes = p->cta_bytes = tcc_attr_int(&f->attrs, "smem_bytes", 0);
    int64_t ctas = tcc_attr_int(&f->attrs, "cluster_ctas", 1);
    if (!target)
        tcc_p_unsupported(p, NULL, "its target is not known");
    else if (lanes != TCC_WARP_LANES && lanes != TCC_MAX_LANES)
        tcc_p_unsupported(p, NULL, "'%s' has waves of %lld lanes", f->name, (long long)lanes);
    else if (block < 1 || block > target->max_threads || block % lanes)
        tcc_p_unsupported(p, NULL, "the block of '%s' is not a whole number of %ss", f->name, tcc_p_warp_word(p));
    else if (p->smem_bytes < 0 || p->smem_bytes > target->smem_bytes)
        tcc_p_unsupported(p, NULL, "'%s' has %lld bytes of shared memory of at most %lld", f->name,
                          (long long)p->smem_bytes, (long long)target->smem_bytes);
    if (p->status)
        return p->status;
    p->n_lanes = (unsigned)lanes;
    p->n_warps = p->cta_warps = (unsigned)(block / lanes);
    p->ctas = 1;
    p->spread = UINT32_MAX;
    if (ctas != 1 && !follow_cluster(p, ctas))
        return p->status;
    p->granule = p->finest = GRANULE;
    p->stores = p->amd;
    p->n_groups = (p->n_warps + TCC_WARPGROUP_WARPS - 1) / TCC_WARPGROUP_WARPS;
    tcc_attr params = tcc_attr_list(&f->attrs, "params");
    p->box_bytes = TCC_NEW_ARRAY(p->scratch, int64_t, f->body->n_args + 1);
    p->tensor_uses = TCC_NEW_ARRAY(p->scratch, uint8_t, f->body->n_args + 1);
    for (size_t i = 0; i < f->body->n_args && i < params.list.n; i++)
        p->box_bytes[i] = box_bytes_of(params.list.items[i]);
    return TCC_OK;
}

/* LDS, and what threads copy in groups, in units of the smallest access there: all are aligned to their size. Where
 * warps may write into one unit, so is the rest. */
static void find_granule(tcc_protocol *p, const tcc_op *op)
{
    if (!tcc_op_does(op->code, TCC_READS_SHARED | TCC_WRITES_SHARED))
        return;
    int64_t bytes = tcc_p_lane_bytes(op);
    while (bytes % p->finest)
        p->finest /= 2;
    while ((p->amd || op->code == TCC_OP_nvvm_cp_async) && bytes % p->granule)
        p->granule /= 2;
}

/* What threads access in a block with no synchronization between is done by the last of those whose
 * places differ by constants alone. */
static void join_accesses(decoder *d)
{
    enum { OPEN = 8 };
    source *open[OPEN] = {NULL};
    const source *before = NULL;
    size_t n = 0;
    for (size_t i = 0; i < d->sources.len; before = &d->sources.data[i++]) {
        source *s = &d->sources.data[i];
        bool goes_on = before && s->parent == before->parent && s->region == before->region;
        if (!goes_on || s->op->n_regions || tcc_op_does(s->op->code, TCC_P_SYNC))
            n = 0;
        if (!s->tensor || is_followed(s->op))
            continue;
        size_t k = 0;
        while (k < n && (open[k]->op->code != s->op->code ||
                         !tcc_p_place_join(s->place, open[k]->place)))
            k++;
        if (k < n)
            open[k]->tensor = 0;
        if (k < n || n < OPEN)
            open[k] = s;
        n += k == n && n < OPEN;
    }
}

/* Which tensors are followed. */
static void find_tensors(decoder *d)
{
    tcc_p_global_find(d->p);
    for (size_t i = 0; i < d->sources.len; i++)
        tcc_p_global_note(d->p, d->sources.data[i].op);
    for (size_t i = 0; i < d->sources.len; i++) {
        source *s = &d->sources.data[i];
        s->tensor = tcc_p_global_tensor(d->p, s->op);
        s->sent_to = tcc_p_sent_to(d->p, s->op);
        s->place = s->tensor || s->sent_to ? tcc_p_place_find(d->p, s->op, s->tensor | s->sent_to) : NULL;
        d->p->follows |= s->tensor != 0;
        d->p->writes |= s->tensor && tcc_op_starts(s->op->code, TCC_BY_BULK_GROUP);
    }
    join_accesses(d);
}

static void note_pending(tcc_protocol *p, const tcc_op *wait)
{
    int64_t pending = tcc_attr_int(&wait->attrs, "pending", 0);
    if (pending > p->most_pending)
        p->most_pending = (uint32_t)pending;
}

/* Registers that MMAs use are not given away. */
static bool leaves_registers(tcc_protocol *p)
{
    tcc_resize_wrong wrong;
    if (!tcc_resize_find_wrong(p->f, p->scratch, &wrong))
        return true;
    tcc_error(p->diag, p->status = TCC_ERR_INTERNAL, wrong.resize->loc,
              "nvvm.setmaxnreg leaves fewer than the %lld registers that MMAs need", (long long)wrong.need);
    tcc_note(p->diag, wrong.op->loc, "here");
    return false;
}

tcc_status tcc_p_decode(tcc_protocol *p)
{
    decoder d = {.p = p, .numbers = TCC_MAP(p->scratch)};
    if (read_attributes(p) || !tcc_p_global_waits(p) || !read_block(&d, p->f->body, 0, 0, 1))
        return p->status;
    if (!leaves_registers(p))
        return p->status;
    tcc_p_find_registers(&d);
    find_tensors(&d);
    do {
        d.changed = false;
        for (size_t i = d.sources.len; i-- > 0;)
            tcc_p_walk_back(&d, &d.sources.data[i]);
    } while (d.changed);
    p->body.n_args = p->f->body->n_args;
    tcc_p_write_block(&d, 0, 0, 0, 0, &p->body);
    tcc_p_find_dying(p, &p->body);
    p->threshold = p->threshold < 1 ? 1 : p->threshold;
    p->least_threshold = p->least_threshold < 1 ? 1 : p->least_threshold;
    p->data_threshold = p->data_threshold < 1 ? 1 : p->data_threshold;
    unsigned n_carried = 0;
    bool sends = false, met = false;
    p->ends_together = tcc_p_ends_together(p->f);
    for (size_t i = 0; i < d.sources.len; i++) {
        tcc_opcode code = d.sources.data[i].op->code;
        p->splits |= tcc_op_does(code, TCC_BY_CLUSTER) && tcc_p_is_split(d.sources.data[i].op);
        met |= code == TCC_OP_nvvm_cluster_wait && !d.sources.data[i].op->block->parent;
        p->starts_apart |= (code == TCC_OP_nvvm_st_shared_cluster || code == TCC_OP_nvvm_st_async_word) && !met;
        if (code == TCC_OP_scf_for && d.sources.data[i].op->n_results > n_carried)
            n_carried = d.sources.data[i].op->n_results;
        p->max_barriers += tcc_op_does(code, TCC_BARRIER) && tcc_op_does(code, TCC_ALLOCATES);
        p->reaches |= tcc_op_does(code, TCC_CLUSTER) && !tcc_op_does(code, TCC_BY_CLUSTER | TCC_BY_MBARRIER);
        p->stores |= tcc_op_starts(code, TCC_BY_BULK_GROUP | TCC_BY_COPY_GROUP);
        p->groups |= tcc_op_starts(code, TCC_BY_COPY_GROUP);
        sends |= tcc_op_starts(code, TCC_BY_BULK_GROUP);
        if (tcc_op_waits(code, TCC_BY_BULK_GROUP))
            note_pending(p, d.sources.data[i].op);
        find_granule(p, d.sources.data[i].op);
    }
    p->n_named = p->cta_named = tcc_p_named_count(p);
    if (p->ctas > 1) { /* those of each, and the cluster's */
        p->max_barriers *= p->ctas;
        p->n_named = p->ctas * p->cta_named + 1;
    }
    p->carried = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, n_carried + 1);
    if (p->groups && (sends || p->max_barriers))
        tcc_p_unsupported(p, NULL, "threads' copies beside mbarriers or copies to global memory");
    if (p->max_barriers > TCC_MAX_MBARRIERS)
        tcc_p_unsupported(p, NULL, "more than %d mbarriers", TCC_MAX_MBARRIERS);
    return p->status;
}

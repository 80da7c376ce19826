/* cp_async: copies to shared memory that threads start, 4 to 16 bytes each, and wait for in groups.
 *
 * PTX ISA, "Data Movement and Conversion Instructions: cp.async": a thread's wait_group is for its own copies;
 * those of other lanes and warps are visible after a barrier that follows their waits. They are ordinary accesses
 * (no proxy), and complete at any time between their start and that wait.
 *
 * Groups are counted by warp: its lanes commit and wait together.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"

enum { MAX_BYTES = 16 };

/* What the lanes of an op copy: the data of its event. */
typedef struct copies {
    tcc_cta *cta;
    size_t n, *left; /* of the op; events of its group on their way */
    struct {
        const tcc_param *from;
        int64_t at, size, bytes, to; /* element, bytes of the tensor, of all, address */
    } of[TCC_WARP_LANES];
} copies;

static tcc_outcome land(tcc_exec *x, tcc_event *e)
{
    const copies *c = e->data;
    (void)x;
    for (size_t i = 0; i < c->n; i++) {
        const tcc_param *p = c->of[i].from;
        uint8_t bytes[MAX_BYTES] = {0};
        tcc_param_load_bytes(p, c->of[i].at * tcc_scalar_bits(p->type->elem) / 8, c->of[i].size, bytes);
        memcpy(c->cta->smem + (c->of[i].to - TCC_SMEM_BASE), bytes, (size_t)c->of[i].bytes);
    }
    --*c->left;
    return TCC_NEXT;
}

/* Whether a lane may read so much of its tensor. */
static bool is_readable(tcc_thread *t, const tcc_inst *in, const tcc_param *p, int64_t at, int64_t size,
                        int64_t bytes)
{
    int64_t elem_bits = tcc_scalar_bits(p->type->elem), n = size * 8 / elem_bits;
    size_t index = (size_t)tcc_operand_int(t, in, 1);
    if (size < 0 || size > bytes || size * 8 % elem_bits)
        TCC_WRONG(t->x, in->op, "nvvm.cp.async of %lld of %lld bytes of '%s'", (long long)size, (long long)bytes,
                  p->name);
    else if (size && (at < 0 || at > p->count - n))
        TCC_WRONG(t->x, in->op, "nvvm.cp.async: elements %lld to %lld are not in '%s', which has %lld",
                  (long long)at, (long long)(at + n - 1), p->name, (long long)p->count);
    else if (size && (at * elem_bits % (bytes * 8) || t->x->run->base_align[index] % bytes))
        TCC_WRONG(t->x, in->op, "nvvm.cp.async: element %lld of '%s' is not aligned to %lld bytes",
                  (long long)at, p->name, (long long)bytes);
    else
        return true;
    return false;
}

static bool start_lane(tcc_thread *t, const tcc_inst *in, unsigned lane, copies *c)
{
    tcc_cta *cta = t->warp->cta;
    const tcc_param *p = &t->x->run->params[tcc_operand_int(t, in, 1)];
    int64_t bytes = tcc_attr_int(&in->op->attrs, "bytes", MAX_BYTES), size = tcc_lane_int(t, in, 3, lane);
    int64_t to = tcc_lane_int(t, in, 0, lane), elem_bits = tcc_scalar_bits(p->type->elem);
    int64_t at = tcc_lane_element(t, in, 2, lane, tcc_attr_int(&in->op->attrs, "disp", 0));
    tcc_accessor by = tcc_warp_accessor(t, UINT64_C(1) << lane);
    by.actor = tcc_actor_groups(cta, t->id);
    by.clock = (uint32_t)t->warp->copying.groups.len + 1;
    by.origin = TCC_OF_TENSOR;
    if (!is_readable(t, in, p, at, size, bytes) || !tcc_smem_at(cta, in->op, to, bytes, bytes) ||
        !tcc_smem_write(cta, in->op, &by, to, bytes))
        return false;
    bool tracked = tcc_global_is_tracked(cta->cluster, p);
    for (int64_t e = 0; tracked && e < size * 8 / elem_bits; e++)
        if (!tcc_global_access(cta->cluster, in->op, &by, p, at + e, false))
            return false;
    if (size < bytes)
        tcc_smem_set_outside(cta, in->op, &by, to + size, bytes - size);
    c->of[c->n].from = p;
    c->of[c->n].at = at;
    c->of[c->n].size = size;
    c->of[c->n].bytes = bytes;
    c->of[c->n++].to = to;
    return true;
}

tcc_outcome tcc_eval_nvvm_cp_async(tcc_thread *t, const tcc_inst *in)
{
    tcc_warp *w = t->warp;
    if (t->x->run->options->order == TCC_ORDER_TIMED)
        return TCC_WRONG(t->x, in->op, "the timed order has no model of nvvm.cp.async");
    copies *c = TCC_NEW(t->x->run->scratch, copies);
    if (!w->copying.open)
        w->copying.open = TCC_NEW(t->x->run->scratch, size_t);
    c->cta = w->cta;
    c->left = w->copying.open;
    w->copying.op = in->op;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++)
        if (!start_lane(t, in, l, c))
            return TCC_FAILED;
    ++*c->left;
    TCC_PUSH(t->x->run->scratch, &t->x->events, (tcc_event){.end = land, .op = in->op, .data = c, .by = t});
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_cp_async_commit(tcc_thread *t, const tcc_inst *in)
{
    tcc_warp *w = t->warp;
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    size_t *group = w->copying.open ? w->copying.open : TCC_NEW(t->x->run->scratch, size_t);
    TCC_PUSH(t->x->run->scratch, &w->copying.groups, group);
    w->copying.open = NULL;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_cp_async_wait(tcc_thread *t, const tcc_inst *in)
{
    tcc_warp *w = t->warp;
    size_t pending = (size_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    size_t n = w->copying.groups.len > pending ? w->copying.groups.len - pending : 0;
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    for (size_t i = n; i-- > 0;) {
        if (*w->copying.groups.data[i])
            return TCC_WAIT(t, NULL, "for its copies to shared memory");
        if (w->order.seen[tcc_actor_groups(w->cta, t->id)] >= i)
            break; /* those before were waited for */
    }
    if (n)
        tcc_lanes_learn_end(w, t->mask, tcc_actor_groups(w->cta, t->id), (uint32_t)n);
    return TCC_NEXT;
}

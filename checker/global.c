/* global: tensors that a kernel both reads and writes, and where the copy engine takes part. Those that it only writes
 * are sent.c's.
 *
 * Of each access is kept by whom and when, as of shared memory, and where: the coordinates of a
 * copy's box, of which some are symbols; of what threads access by themselves only the tensor. Two
 * accesses that are not ordered must be of different elements, which their coordinates tell: along
 * some dimension they are further apart than the boxes are long. That they are of the same elements
 * is an error. Where neither is known the kernel is refused as one that cannot be followed.
 *
 * What threads do among themselves is left out, as in the machine model.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

/* ---- order --------------------------------------------------------------------------------- */

bool tcc_p_global_comes_after(const tcc_protocol *p, const tcc_pstate *s, const tcc_pglobal *g, const tcc_paccess *by)
{
    if (g->pending)
        return false;
    if (g->actor != by->warp)
        return tcc_p_seen(p, s, tcc_p_entity(p, s, by->warp, by->lanes))[g->actor] >= g->clock;
    bool one = g->lanes == by->lanes && !(by->lanes & (by->lanes - 1));
    return one || tcc_p_synced(s, by->warp, by->lanes) >= g->clock;
}

/* Whether whatever comes later comes after it. */
static bool is_past(const tcc_protocol *p, const tcc_pstate *s, const tcc_pglobal *g)
{
    if ((g->write && !g->async) || g->pending) /* it is never for the copy engine; it is for none */
        return false;
    for (unsigned w = 0; w < p->n_warps; w++) {
        bool own = g->actor == w;
        uint32_t until = own ? s->warps[w].synced : tcc_p_seen(p, s, w)[g->actor];
        if ((s->warps[w].depth || w == p->aside) && until < g->clock)
            return false;
    }
    return true;
}

/* ---- the list ------------------------------------------------------------------------------ */

/* Whether one can stand for both: a copy for one from the same place, what threads access for what
 * else they access nearby. */
static bool can_unite(const tcc_pglobal *x, const tcc_pglobal *y)
{
    bool like = x->actor == y->actor && x->tensor == y->tensor && x->map == y->map &&
                x->lanes == y->lanes && x->write == y->write && x->async == y->async &&
                x->passed == y->passed && x->sent == y->sent && x->pending == y->pending && x->rank == y->rank &&
                (x->by == y->by || !x->async);
    for (unsigned d = 0; like && d < x->rank; d++)
        like = !memcmp(&x->at[d], &y->at[d], x->async ? sizeof *x->at : sizeof x->at->from);
    return like;
}

static void unite_with(tcc_pglobal *x, const tcc_pglobal *y)
{
    x->clock = x->clock > y->clock ? x->clock : y->clock;
    for (unsigned d = 0; d < x->rank; d++) {
        tcc_prange_of *r = &x->at[d];
        r->least = r->least < y->at[d].least ? r->least : y->at[d].least;
        r->end = r->end > y->at[d].end ? r->end : y->at[d].end;
    }
}

static void unite(tcc_pstate *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_globals; i++) {
        unsigned k = 0;
        while (k < n && !can_unite(&s->globals[k], &s->globals[i]))
            k++;
        if (k == n)
            s->globals[n++] = s->globals[i];
        else
            unite_with(&s->globals[k], &s->globals[i]);
    }
    s->n_globals = n;
}

static void drop_past(const tcc_protocol *p, tcc_pstate *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_globals; i++)
        if (!is_past(p, s, &s->globals[i]))
            s->globals[n++] = s->globals[i];
    s->n_globals = n;
}

void tcc_p_global_next_iteration(tcc_pstate *s, unsigned warp, const tcc_op *loop)
{
    tcc_p_sent_next_iteration(s, warp, loop);
    for (unsigned i = 0; i < s->n_globals; i++)
        s->globals[i].passed |= s->globals[i].warp == warp;
    unite(s);
}

void tcc_p_global_keep(tcc_protocol *p, tcc_pstate *s, const tcc_pglobal *g)
{
    drop_past(p, s);
    tcc_p_globals_reserve(p, s, s->n_globals + 1);
    s->globals[s->n_globals++] = *g;
    unite(s);
}

/* ---- accesses ------------------------------------------------------------------------------ */

const char *tcc_p_tensor_name(const tcc_protocol *p, uint32_t tensor)
{
    return tcc_attr_list(&p->f->attrs, "params").list.items[tensor - 1].list.items[1].s;
}

static bool conflicts(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by,
                      const tcc_pglobal *old, tcc_prelation where)
{
    const char *name = tcc_op_info_get(in->op->code)->name;
    const char *verb = by->write ? "writes" : "reads", *tensor = tcc_p_tensor_name(p, in->tensor);
    bool ordered = tcc_p_global_comes_after(p, s, old, by);
    const char *what =
        ordered ? "after an ordinary write: no fence here orders the proxies of global memory"
                : tcc_arena_printf(p->scratch, "that %s may still be %s",
                                   old->actor == by->warp ? "another lane of it"
                                                          : tcc_p_actor_name(p, old->actor),
                                   old->write ? "writing" : "reading");
    if (where == TCC_P_NOT_KNOWN)
        return tcc_p_unsupported(p, in->op,
                                 "%s %s elements of '%s' that may be among those %s", name, verb,
                                 tensor, what),
               true;
    p->other.op = old->by;
    p->other.what =
        tcc_arena_printf(p->scratch, "%s %s them here", tcc_op_info_get(old->by->code)->name,
                         old->write ? "writes" : "reads");
    tcc_p_wrong(p, s, by->warp, in, "%s %s elements of '%s' %s", name, verb, tensor, what);
    return true;
}

/* Checks and keeps an access to a tensor. */
static bool access_tensor(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in,
                          const tcc_paccess *by)
{
    tcc_pglobal g = {.by = in->op,
                     .tensor = in->tensor,
                     .map = in->place->map,
                     .warp = by->warp,
                     .actor = by->actor,
                     .clock = by->clock,
                     .lanes = by->lanes,
                     .write = by->write,
                     .async = by->async};
    if (tcc_p_place_at(p, s, by->warp, by->lanes, in->place, g.at))
        g.rank = in->place->rank;
    if (g.rank && tcc_p_place_is_outside(p, in->place, g.at))
        return true;
    for (unsigned i = 0; i < s->n_globals; i++) {
        const tcc_pglobal *old = &s->globals[i];
        if (old->tensor != g.tensor || (!old->write && !g.write) || (!old->async && !g.async))
            continue;
        bool fenced = old->async || !old->write; /* or there is nothing to fence */
        if (fenced && tcc_p_global_comes_after(p, s, old, by))
            continue;
        tcc_prelation where = tcc_p_place_compare(p, s, old, &g);
        if (where != TCC_P_APART && conflicts(p, s, in, by, old, where))
            return false;
    }
    tcc_p_global_keep(p, s, &g);
    return true;
}

bool tcc_p_global_copy(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by)
{
    return in->tensor ? access_tensor(p, s, in, by) : !in->sent_to || tcc_p_send(p, s, in, by);
}

bool tcc_p_global_ordinary(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in)
{
    tcc_pwarp *w = &s->warps[warp];
    const tcc_paccess by = {.warp = warp,
                            .actor = warp,
                            .lanes = w->mask,
                            .clock = tcc_p_seen(p, s, warp)[warp],
                            .write = tcc_op_does(in->op->code, TCC_WRITES_GLOBAL)};
    w->unsynced |= w->mask;
    return access_tensor(p, s, in, &by);
}

/* ---- the step before ----------------------------------------------------------------------- */

/* All threads reach an op at the top level of the body, and nothing after it earlier. */
bool tcc_p_global_waits(tcc_protocol *p)
{
    const tcc_block *body = p->f->body;
    bool waits = !tcc_attr_find(&p->f->attrs, "overlaps");
    for (tcc_op *op = body->first; op && !waits; op = tcc_walk_next(op, body)) {
        waits = op->code == TCC_OP_nvvm_griddepcontrol_wait && op->block == body;
        if (!tcc_op_global_use(op->code).any)
            continue;
        p->status = TCC_ERR_INTERNAL;
        tcc_error(p->diag, p->status, op->loc,
                  "%s with no nvvm.griddepcontrol.wait before that all threads reach: the previous step may still run",
                  tcc_op_info_get(op->code)->name);
        return false;
    }
    return true;
}

/* ---- which tensors are followed ------------------------------------------------------------ */

/* Whether a parameter is a tensor, or a map of one: the second item is its name. */
static bool is_tensor(const tcc_protocol *p, size_t i)
{
    tcc_attr params = tcc_attr_list(&p->f->attrs, "params");
    return i < params.list.n &&
           (p->box_bytes[i] || tcc_attr_is_record(params.list.items[i], "pointer", "s"));
}

/* 1 + the number of the first parameter for the tensor of an op; 0: none that is known. */
static uint32_t tensor_of(const tcc_protocol *p, const tcc_op *op)
{
    const tcc_global_use u = tcc_op_global_use(op->code);
    uint32_t i = 0, n = (uint32_t)p->f->body->n_args;
    while (u.any && i < n && p->f->body->args[i] != op->operands[u.operand])
        i++;
    return u.any && i < n ? p->tensors[i] : 0;
}

void tcc_p_global_find(tcc_protocol *p)
{
    const tcc_attr *params = tcc_attr_list(&p->f->attrs, "params").list.items;
    size_t n = p->f->body->n_args;
    p->tensors = TCC_NEW_ARRAY(p->scratch, uint32_t, n + 1);
    for (uint32_t i = 0, first = 0; i < n; i++, first = 0) {
        while (first < i && !(p->tensors[first] && is_tensor(p, i) &&
                              !strcmp(params[first].list.items[1].s, params[i].list.items[1].s)))
            first++;
        p->tensors[i] = is_tensor(p, i) ? first + 1 : 0;
    }
}

void tcc_p_global_note(tcc_protocol *p, const tcc_op *op)
{
    const tcc_global_use u = tcc_op_global_use(op->code);
    uint32_t tensor = u.any && !p->amd ? tensor_of(p, op) : 0;
    if (tensor)
        p->tensor_uses[tensor] |=
            (uint8_t)((u.writes ? TCC_P_WRITTEN : TCC_P_READ) | (u.async ? TCC_P_COPIED : 0));
}

uint32_t tcc_p_sent_to(const tcc_protocol *p, const tcc_op *op)
{
    const tcc_global_use u = tcc_op_global_use(op->code);
    uint32_t tensor = u.any && u.async && u.writes ? tensor_of(p, op) : 0;
    return p->tensor_uses[tensor] & TCC_P_READ ? 0 : tensor;
}

uint32_t tcc_p_global_tensor(const tcc_protocol *p, const tcc_op *op)
{
    uint32_t tensor = !p->amd ? tensor_of(p, op) : 0;
    return p->tensor_uses[tensor] == (TCC_P_READ | TCC_P_WRITTEN | TCC_P_COPIED) ? tensor : 0;
}

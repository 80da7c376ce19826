/* warp: what is neither a barrier, a bulk copy nor an MMA: registers, plain loads and stores.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"

const char *tcc_warp_name(const tcc_warp *w)
{
    const tcc_cluster *k = w->cta->cluster;
    tcc_arena *scratch = k->x->run->scratch;
    return k->one_of_many ? tcc_arena_printf(scratch, "%s %u of %s %lld", k->words.warp,
                                             w->thread->id, k->words.cta, (long long)w->cta->id)
                          : tcc_arena_printf(scratch, "%s %u", k->words.warp, w->thread->id);
}

const char *tcc_exec_who(const tcc_exec *x)
{
    if (!x->cluster || !x->current)
        return NULL;
    const char *warp = tcc_warp_name(x->current->warp);
    return x->lane < 0 ? warp : tcc_arena_printf(x->run->scratch, "lane %d of %s", x->lane, warp);
}

/* Those of one CTA only. */
const char *tcc_threads_name(const tcc_exec *x, size_t first, size_t n)
{
    if (!x->cluster)
        return NULL;
    const tcc_warp *w = x->threads.data[first]->warp, *last = x->threads.data[first + n - 1]->warp;
    if (n == 1)
        return tcc_warp_name(w);
    const char *word = x->cluster->words.warp;
    return w->cta == last->cta
               ? tcc_arena_printf(x->run->scratch, "%ss %u to %s", word, w->thread->id,
                                  tcc_warp_name(last) + strlen(word) + 1)
               : NULL;
}

bool tcc_next_lane(tcc_thread *t, unsigned *l)
{
    while (*l < t->x->lanes && !(t->mask >> *l & 1))
        ++*l;
    t->x->lane = *l < t->x->lanes ? (int)*l : -1;
    return *l < t->x->lanes;
}

bool tcc_converged(tcc_thread *t, const tcc_inst *in)
{
    if (t->mask == tcc_all_lanes(t->x))
        return true;
    TCC_WRONG(t->x, in->op, "%s in %d of a %s's %u lanes", tcc_op_info_get(in->op->code)->name,
              __builtin_popcountll(t->mask), t->x->cluster->words.warp, t->x->lanes);
    return false;
}

static size_t count_of(const tcc_thread *t, uint32_t value)
{
    return t->x->program->values[value].count;
}

/* The same number in every lane. */
tcc_outcome tcc_give(tcc_thread *t, const tcc_inst *in, int64_t v)
{
    for (unsigned l = 0; l < t->x->lanes; l++)
        tcc_cells(t, in->results[0])[l].i = v;
    return TCC_NEXT;
}

bool tcc_is_uniform(tcc_thread *t, const tcc_inst *in, unsigned operand, const char *what)
{
    const tcc_cell *cells = tcc_cells(t, in->operands[operand]);
    unsigned first = (unsigned)__builtin_ctzll(t->mask), lanes = t->x->lanes;
    for (size_t e = 0; e < count_of(t, in->operands[operand]); e++)
        for (unsigned l = first; l < lanes; l++)
            if (t->mask >> l & 1 && cells[e * lanes + l].i != cells[e * lanes + first].i) {
                TCC_WRONG(t->x, in->op, "the lanes give different %s", what);
                return false;
            }
    return true;
}

/* ---- vec ------------------------------------------------------------------------------- */

/* A part of what an MMA may still write is so too. */
static void inherit(tcc_thread *t, const tcc_inst *in)
{
    tcc_reg *r = &t->regs[in->results[0]];
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        const tcc_reg *from = &t->regs[in->operands[i]];
        *r = i == 0 ? *from : tcc_reg_merge(*r, *from);
    }
}

tcc_outcome tcc_eval_vec_pack(tcc_thread *t, const tcc_inst *in)
{
    tcc_cell *r = tcc_cells(t, in->results[0]);
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        size_t n = count_of(t, in->operands[i]) * t->x->lanes;
        memcpy(r, tcc_cells(t, in->operands[i]), n * sizeof *r);
        r += n;
    }
    inherit(t, in);
    return TCC_NEXT;
}

static tcc_outcome slice(tcc_thread *t, const tcc_inst *in)
{
    size_t offset = (size_t)tcc_attr_int(&in->op->attrs, "offset", 0) * t->x->lanes;
    memcpy(tcc_cells(t, in->results[0]), tcc_cells(t, in->operands[0]) + offset,
           count_of(t, in->results[0]) * t->x->lanes * sizeof(tcc_cell));
    return TCC_NEXT;
}

tcc_outcome tcc_eval_vec_slice(tcc_thread *t, const tcc_inst *in)
{
    inherit(t, in);
    return slice(t, in);
}

tcc_outcome tcc_eval_vec_extract(tcc_thread *t, const tcc_inst *in)
{
    return slice(t, in);
}

tcc_outcome tcc_eval_vec_splat(tcc_thread *t, const tcc_inst *in)
{
    tcc_cell *r = tcc_cells(t, in->results[0]);
    for (size_t e = 0; e < count_of(t, in->results[0]); e++)
        memcpy(r + e * t->x->lanes, tcc_cells(t, in->operands[0]), t->x->lanes * sizeof *r);
    return TCC_NEXT;
}

tcc_outcome tcc_eval_vec_undef(tcc_thread *t, const tcc_inst *in)
{
    t->regs[in->results[0]].undefined = true;
    return TCC_NEXT;
}

int64_t tcc_value_to_bytes(const tcc_thread *t, uint32_t value, unsigned lane, uint8_t *bytes)
{
    tcc_scalar elem = t->x->program->values[value].type->elem;
    size_t bits = tcc_scalar_bits(elem), n = count_of(t, value);
    tcc_encode_bytes(tcc_cells(t, value) + lane, t->x->lanes, n, elem, bytes);
    return (int64_t)(n * bits / 8);
}

void tcc_value_from_bytes(tcc_thread *t, uint32_t value, unsigned lane, const uint8_t *bytes)
{
    tcc_scalar elem = t->x->program->values[value].type->elem;
    tcc_decode_bytes(bytes, count_of(t, value), elem, tcc_cells(t, value) + lane, t->x->lanes);
}

int64_t tcc_value_bytes(tcc_thread *t, const tcc_inst *in, uint32_t value)
{
    const tcc_type *type = t->x->program->values[value].type;
    int64_t bits = tcc_type_count(type) * tcc_scalar_bits(type->elem);
    if (bits % 8 == 0 && bits / 8 <= TCC_MAX_VEC_BYTES)
        return bits / 8;
    TCC_WRONG(t->x, in->op, "%lld elements of %s are not whole bytes", (long long)tcc_type_count(type),
              tcc_scalar_name(type->elem));
    return -1;
}

tcc_outcome tcc_eval_vec_bitcast(tcc_thread *t, const tcc_inst *in)
{
    uint8_t bytes[TCC_MAX_VEC_BYTES];
    if (tcc_value_bytes(t, in, in->operands[0]) < 0 || tcc_value_bytes(t, in, in->results[0]) < 0)
        return TCC_FAILED;
    for (unsigned l = 0; l < t->x->lanes; l++) {
        tcc_value_to_bytes(t, in->operands[0], l, bytes);
        tcc_value_from_bytes(t, in->results[0], l, bytes);
    }
    return TCC_NEXT;
}

/* ---- positions of threads --------------------------------------------------------------- */

tcc_outcome tcc_eval_nvvm_tid(tcc_thread *t, const tcc_inst *in)
{
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        tcc_cells(t, in->results[0])[l].i = t->id * TCC_WARP_LANES + l;
    return TCC_NEXT;
}

/* The address of a parameter modulo 16: it is as aligned as is given, or else asked, and no more. */
static int64_t phase_of(const tcc_thread *t, size_t param)
{
    const tcc_run *run = t->x->run;
    const int64_t *given = param < run->n_args ? run->options->alignments : NULL;
    return (given ? given : run->base_align)[param] % TCC_PHASE_BYTES;
}

tcc_outcome tcc_eval_nvvm_ctaid(tcc_thread *t, const tcc_inst *in)
{
    return tcc_give(t, in, t->warp->cta->id);
}

tcc_outcome tcc_eval_nvvm_nctaid(tcc_thread *t, const tcc_inst *in)
{
    return tcc_give(t, in, t->warp->cta->cluster->n_launched);
}

tcc_outcome tcc_eval_nvvm_smem_base(tcc_thread *t, const tcc_inst *in)
{
    return tcc_give(t, in, TCC_SMEM_BASE);
}

tcc_outcome tcc_eval_nvvm_phase(tcc_thread *t, const tcc_inst *in)
{
    return tcc_give(t, in, phase_of(t, (size_t)tcc_operand_int(t, in, 0)));
}

tcc_outcome tcc_eval_nvvm_uniform(tcc_thread *t, const tcc_inst *in)
{
    return tcc_converged(t, in) ? tcc_give(t, in, tcc_lane_int(t, in, 0, 0)) : TCC_FAILED;
}

tcc_outcome tcc_eval_nvvm_opaque(tcc_thread *t, const tcc_inst *in)
{
    tcc_copy_values(t, in->results, in->operands, 1, t->mask);
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_after(tcc_thread *t, const tcc_inst *in)
{
    tcc_copy_values(t, in->results, in->operands, 1, t->mask);
    return TCC_NEXT;
}

/* Any lane, always the same of a warp: the first, the last, or any, as the warp, its CTA and the seed have it. */
static unsigned elected_lane(const tcc_thread *t)
{
    const tcc_cta *c = t->warp->cta;
    const unsigned lanes[] = {0, TCC_WARP_LANES - 1, c->elected};
    enum { WAYS = sizeof lanes / sizeof *lanes };
    return lanes[(t->x->run->options->seed % WAYS + (uint64_t)c->id + t->id) % WAYS];
}

tcc_outcome tcc_eval_nvvm_elect(tcc_thread *t, const tcc_inst *in)
{
    unsigned lane = elected_lane(t);
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        tcc_cells(t, in->results[0])[l].i = l == lane;
    return TCC_NEXT;
}

/* The four warps of a warpgroup run the same setmaxnreg, after they have met since the one before
 * (PTX ISA, "setmaxnreg"). NULL, reported, when they do not. */
static tcc_resize *resize_of(tcc_thread *t, const tcc_op *op)
{
    const tcc_warp *w = t->warp;
    tcc_warpgroup *g = &w->cta->groups[t->id / TCC_WARPGROUP_WARPS];
    unsigned first = t->id / TCC_WARPGROUP_WARPS * TCC_WARPGROUP_WARPS;
    if (w->resized == g->resizes.len)
        TCC_PUSH(t->x->run->scratch, &g->resizes, (tcc_resize){.op = op});
    tcc_resize *r = &g->resizes.data[w->resized];
    if (r->op != op) {
        TCC_WRONG(t->x, op, "nvvm.setmaxnreg that is not its warpgroup's");
        tcc_note(t->x->run->diag, r->op->loc, "that of the first warp to run one");
        return NULL;
    }
    for (unsigned i = 0; w->resized && i < TCC_WARPGROUP_WARPS; i++) {
        const tcc_resize *before = r - 1;
        unsigned other = first + i;
        if (other >= w->cta->cluster->n_warps ||
            (before->clocks[i] &&
             w->order.seen[tcc_actor_warp(w->cta, other)] >= before->clocks[i]))
            continue;
        TCC_WRONG(t->x, op, "nvvm.setmaxnreg that may come before %s has run the one before",
                  tcc_warp_name(&w->cta->warps[other]));
        tcc_note(t->x->run->diag, before->op->loc, "the one before");
        return NULL;
    }
    return r;
}

tcc_outcome tcc_eval_nvvm_setmaxnreg(tcc_thread *t, const tcc_inst *in)
{
    tcc_warp *w = t->warp;
    tcc_cta *c = w->cta;
    int64_t count = tcc_attr_int(&in->op->attrs, "count", 0);
    bool more = !strcmp(tcc_attr_str(&in->op->attrs, "action", ""), "inc");
    int64_t need = (count - w->registers) * TCC_WARP_LANES;
    tcc_resize *resize = tcc_converged(t, in) ? resize_of(t, in->op) : NULL;
    if (!resize)
        return TCC_FAILED;
    if (more ? need < 0 : need > 0)
        return TCC_WRONG(t->x, in->op, "setmaxnreg.%s to %lld from %lld registers",
                         more ? "inc" : "dec", (long long)count, (long long)w->registers);
    if (need > c->free_registers)
        return TCC_WAIT(t, NULL, "for %lld registers, %lld are free", (long long)need,
                        (long long)c->free_registers);
    c->free_registers -= need;
    w->registers = count;
    w->resized++;
    resize->clocks[t->id % TCC_WARPGROUP_WARPS] = w->order.seen[w->actor];
    return TCC_NEXT;
}

/* The step before has ended when this one begins; but lanes that have not waited for it do not know. */
tcc_outcome tcc_eval_nvvm_griddepcontrol_wait(tcc_thread *t, const tcc_inst *in)
{
    (void)in;
    t->early &= ~t->mask;
    return TCC_NEXT;
}

/* The warp's own accesses up to here come before what the async proxy does later: those of others
 * need fences of theirs. Lanes that made some and do not take part leave them out. */
tcc_outcome tcc_eval_nvvm_fence_proxy_async(tcc_thread *t, const tcc_inst *in)
{
    (void)in;
    tcc_warp *w = t->warp;
    tcc_order *o = &w->order;
    if (w->accessed & ~t->mask)
        return TCC_NEXT;
    w->fencing |= w->accessed;
    w->accessed = 0;
    o->fenced[w->actor] = o->seen[w->actor]++; /* what comes later is not fenced */
    return TCC_NEXT;
}

/* ---- shared memory --------------------------------------------------------------------- */

/* Three words are aligned as four. */
static int64_t access_align(int64_t n)
{
    return n == 12 ? 16 : n;
}

/* A lane's result comes from memory that was never written; only floats can represent this. */
static bool poison(tcc_thread *t, const tcc_inst *in, unsigned lane, int64_t address)
{
    const tcc_type *type = in->op->results[0].type;
    if (tcc_scalar_classify(type->elem) != TCC_CLASS_FLOAT) {
        TCC_WRONG(t->x, in->op, "%s reads %s at byte %lld that was never written",
                  tcc_op_info_get(in->op->code)->name, t->x->cluster->words.smem,
                  (long long)(address - TCC_SMEM_BASE));
        return false;
    }
    tcc_smem_read_unwritten(t->warp->cta, in->op, t->warp, address);
    for (size_t e = 0; e < count_of(t, in->results[0]); e++)
        tcc_cells(t, in->results[0])[e * t->x->lanes + lane].f = tcc_poison();
    return true;
}

/* Whether one of a lane's elements comes from what was never written. */
static bool is_poison(const tcc_thread *t, uint32_t value, unsigned lane)
{
    tcc_scalar elem = t->x->program->values[value].type->elem;
    if (tcc_scalar_classify(elem) != TCC_CLASS_FLOAT)
        return false;
    for (size_t e = 0; e < count_of(t, value); e++)
        if (tcc_is_poison(tcc_cells(t, value)[e * t->x->lanes + lane].f))
            return true;
    return false;
}

tcc_outcome tcc_load_lanes(tcc_thread *t, const tcc_inst *in, int64_t offset)
{
    int64_t n = tcc_value_bytes(t, in, in->results[0]);
    tcc_cta *c = t->warp->cta;
    t->warp->unsynced |= t->mask;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        tcc_accessor by = tcc_warp_accessor(t, UINT64_C(1) << l);
        int64_t address = tcc_lane_int(t, in, 0, l) + offset;
        const uint8_t *bytes = n < 0 ? NULL : tcc_smem_at(c, in->op, address, n, access_align(n));
        if (!bytes || !tcc_smem_read(c, in->op, &by, address, n))
            return TCC_FAILED;
        tcc_value_from_bytes(t, in->results[0], l, bytes);
        if (!tcc_smem_is_written(c, address, n) && !poison(t, in, l, address))
            return TCC_FAILED;
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_ld_shared(tcc_thread *t, const tcc_inst *in)
{
    t->warp->accessed |= t->mask;
    return tcc_load_lanes(t, in, 0);
}

bool tcc_smem_store(tcc_thread *t, tcc_cta *c, const tcc_op *op, tcc_lane_mask lanes, int64_t address,
                    const uint8_t *bytes, int64_t n, uint8_t origin)
{
    tcc_accessor by = tcc_warp_accessor(t, lanes);
    by.origin = origin;
    t->warp->unsynced |= lanes;
    uint8_t *to = tcc_smem_at(c, op, address, n, access_align(n));
    if (!to || !tcc_smem_write(c, op, &by, address, n))
        return false;
    memcpy(to, bytes, (size_t)n);
    return true;
}

/* far: in the CTA of the cluster that the address is of. */
static tcc_outcome store_lanes(tcc_thread *t, const tcc_inst *in, int64_t offset, bool far)
{
    uint8_t bytes[TCC_MAX_VEC_BYTES];
    const tcc_reg *from = &t->regs[in->operands[1]];
    if (tcc_value_bytes(t, in, in->operands[1]) < 0)
        return TCC_FAILED;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        int64_t n = tcc_value_to_bytes(t, in->operands[1], l, bytes);
        uint8_t origin = from->outside >> l & 1     ? TCC_OUTSIDE
                         : from->of_tensor >> l & 1 ? TCC_OF_TENSOR
                                                    : TCC_COMPUTED;
        int64_t address = tcc_lane_int(t, in, 0, l) + offset;
        tcc_cta *c = far ? tcc_cluster_store(t, in->op, &address) : t->warp->cta;
        if (!c || !tcc_smem_store(t, c, in->op, UINT64_C(1) << l, address, bytes, n, origin))
            return TCC_FAILED;
    }
    return TCC_NEXT;
}

tcc_outcome tcc_store_lanes(tcc_thread *t, const tcc_inst *in, int64_t offset)
{
    return store_lanes(t, in, offset, false);
}

tcc_outcome tcc_eval_nvvm_st_shared(tcc_thread *t, const tcc_inst *in)
{
    t->warp->accessed |= t->mask;
    return tcc_store_lanes(t, in, 0);
}

tcc_outcome tcc_eval_nvvm_st_shared_cluster(tcc_thread *t, const tcc_inst *in)
{
    t->warp->accessed |= t->mask;
    return store_lanes(t, in, 0, true);
}

/* ---- global memory --------------------------------------------------------------------- */

enum { BEHIND = 0x55 /* a tensor: bits that should make no difference */ };

/* What is the same for all lanes of a load or store. */
typedef struct global_access {
    const tcc_param *p;
    int64_t n, bits, align, disp, phase; /* elements of a lane, bits of each; bytes, elements, bytes */
    bool over; /* of an aligned vector not all elements need be in the tensor */
} global_access;

static global_access access_of(const tcc_thread *t, const tcc_inst *in, uint32_t value)
{
    const tcc_attrs *attrs = &in->op->attrs;
    size_t index = (size_t)tcc_operand_int(t, in, 0);
    global_access g = {.p = &t->x->run->params[index], .n = (int64_t)count_of(t, value), .phase = phase_of(t, index)};
    g.bits = tcc_scalar_bits(g.p->type->elem);
    g.align = tcc_attr_int(attrs, "align", g.bits < 8 ? 1 : g.bits / 8);
    g.disp = tcc_attr_int(attrs, "disp", 0);
    g.over = tcc_attr_int(attrs, "over", 0) && g.n * g.bits == g.align * 8;
    return g;
}

/* The elements that a lane accesses; false, reported, if it must not. Of an aligned vector some of whose elements are in
 * the tensor, others may be before it or beyond its end: no page ends within a vector. */
static bool global_place(tcc_thread *t, const tcc_inst *in, const global_access *g, unsigned lane, int64_t *out)
{
    tcc_exec *x = t->x;
    const tcc_param *p = g->p;
    int64_t bits = g->bits, at = tcc_lane_element(t, in, 1, lane, g->disp), n = g->n;
    bool bytes = at * bits % 8 == 0 && n * bits % 8 == 0;
    bool aligned = (g->phase + at * bits / 8) % g->align == 0;
    if (bits < 8 && at == p->count - 1) /* the half of its byte that is empty */
        n = 1;
    bool inside = g->over ? at > -n && at < p->count : at >= 0 && n <= p->count && at <= p->count - n;
    *out = at;
    if (inside && bytes && aligned)
        return true;
    const char *name = tcc_op_info_get(in->op->code)->name;
    if (!inside)
        TCC_WRONG(x, in->op, "%s: elements %lld to %lld are not in '%s', which has %lld", name,
                  (long long)at, (long long)(at + n - 1), p->name, (long long)p->count);
    else if (!bytes)
        TCC_WRONG(x, in->op, "%s: an element of '%s' is not a byte", name, p->name);
    else
        TCC_WRONG(x, in->op, "%s: element %lld of '%s' is not aligned to %lld bytes", name,
                  (long long)at, p->name, (long long)g->align);
    return false;
}

static bool touch_global(tcc_thread *t, const tcc_inst *in, const tcc_param *p, int64_t at,
                         int64_t n, bool write)
{
    tcc_cluster *k = t->x->cluster;
    if (!tcc_global_is_tracked(k, p))
        return true;
    tcc_accessor by = tcc_warp_accessor(t, tcc_acting_lanes(t));
    for (int64_t e = 0; e < n; e++)
        if (!tcc_global_access(k, in->op, &by, p, at + e, write))
            return false;
    return true;
}

tcc_outcome tcc_stores_poison(tcc_thread *t, const tcc_inst *in, const tcc_param *p, int64_t at)
{
    TCC_WRONG(t->x, in->op, "%s stores to element %lld of '%s' what comes from %s",
              tcc_op_info_get(in->op->code)->name, (long long)at, p->name,
              tcc_source_of_poison(t->warp->cta));
    tcc_note_unwritten(t->warp->cta);
    return TCC_FAILED;
}

tcc_outcome tcc_eval_nvvm_ld_global(tcc_thread *t, const tcc_inst *in)
{
    const global_access g = access_of(t, in, in->results[0]);
    const tcc_param *p = g.p;
    const tcc_cell outside = tcc_decode(0, p->type->elem), behind = tcc_decode(BEHIND, p->type->elem);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        bool inside = tcc_lane_int(t, in, 2, l);
        int64_t at = 0;
        if (inside && !global_place(t, in, &g, l, &at))
            return TCC_FAILED;
        int64_t from = at < 0 ? 0 : at, end = at + g.n < p->count ? at + g.n : p->count;
        if (inside && !touch_global(t, in, p, from, end - from, false))
            return TCC_FAILED;
        for (int64_t e = 0; e < g.n; e++)
            r[e * TCC_WARP_LANES + l] = !inside                              ? outside
                                        : at + e >= from && at + e < end ? tcc_param_load(p, at + e)
                                                                         : behind;
        tcc_reg *reg = &t->regs[in->results[0]];
        *(inside ? &reg->of_tensor : &reg->outside) |= UINT64_C(1) << l;
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_st_global(tcc_thread *t, const tcc_inst *in)
{
    const global_access g = access_of(t, in, in->operands[3]);
    const tcc_cell *a = tcc_cells(t, in->operands[3]);
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        if (!tcc_lane_int(t, in, 2, l))
            continue;
        int64_t at;
        if (!global_place(t, in, &g, l, &at) || !touch_global(t, in, g.p, at, g.n, true))
            return TCC_FAILED;
        if (is_poison(t, in->operands[3], l))
            return tcc_stores_poison(t, in, g.p, at);
        for (int64_t e = 0; e < g.n; e++)
            tcc_param_store(t->x->run, g.p, at + e, a[e * TCC_WARP_LANES + l]);
    }
    return TCC_NEXT;
}

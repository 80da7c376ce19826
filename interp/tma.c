/* tma: tensor maps, and copies between shared and global memory that end later.
 *
 * A box always moves as a whole: elements outside the tensor are read as zero, counted, and not
 * written. In shared memory it is dense, innermost dimension first, 16-byte chunks exclusive- ored
 * with the number of the 128-byte line that they are in (CUDA C++ Programming Guide, "Tensor Memory
 * Access: TMA Swizzle"; CUDA Driver API, cuTensorMapEncodeTiled).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"

enum { ALIGN = 16, SMEM_ALIGN = 128, MAX_BOX = 256 };
static const int64_t MAX_STRIDE_BYTES = INT64_C(1) << 40, MAX_ELEMS = INT64_C(1) << 60;

/* ---- tensor maps ----------------------------------------------------------------------- */

static tcc_status refuse(tcc_run *run, const tcc_tensor_map *m, const char *why, int64_t got)
{
    return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "the tensor map of '%s' %s: %lld", m->tensor->name,
                    why, (long long)got);
}

/* The limits of a single dimension. */
static tcc_status check_dimension(tcc_run *run, const tcc_tensor_map *m, int d)
{
    int64_t stride = m->strides[d];
    if (m->extents[d] < 1)
        return refuse(run, m, "has an empty dimension", m->extents[d]);
    if (m->box[d] < 1 || m->box[d] > MAX_BOX)
        return refuse(run, m, "needs a box of 1 to 256 in each dimension", m->box[d]);
    if (stride < 1 || stride >= MAX_STRIDE_BYTES || m->extents[d] > MAX_ELEMS / stride)
        return refuse(run, m, "needs strides of less than 2^40 bytes", stride);
    int64_t bytes = stride * m->elem_bytes;
    if (d && (bytes % ALIGN || bytes >= MAX_STRIDE_BYTES))
        return refuse(run, m, "needs strides of multiples of 16 bytes", bytes);
    return TCC_OK;
}

static tcc_status check_map(tcc_run *run, const tcc_tensor_map *m)
{
    tcc_status status = TCC_OK;
    for (int d = 0; d < m->rank && !status; d++)
        status = check_dimension(run, m, d);
    if (status)
        return status;
    int64_t row_bytes = m->box[0] * m->elem_bytes;
    if (row_bytes % ALIGN)
        return refuse(run, m, "needs rows of its box of multiples of 16 bytes", row_bytes);
    if (m->swizzle && m->swizzle != 32 && m->swizzle != 64 && m->swizzle != 128)
        return refuse(run, m, "needs a swizzle of 0, 32, 64 or 128 bytes", m->swizzle);
    if (m->swizzle && row_bytes != m->swizzle)
        return refuse(run, m, "needs rows of its box as wide as its swizzle", row_bytes);
    int64_t align = run->base_align[m->tensor - run->params];
    if (align < ALIGN)
        return refuse(run, m, "needs an address that is a multiple of 16 bytes", align);
    return TCC_OK;
}

/* Whether extents, strides and box are lists for a rank, of strides lists again and of a box
 * integers. */
static bool is_of_rank(const tcc_attr *items, size_t rank)
{
    bool ok =
        rank && rank <= TCC_MAP_RANK && items[3].list.n == rank - 1 && items[4].list.n == rank;
    for (size_t d = 0; ok && d < rank; d++)
        ok = items[4].list.items[d].kind == TCC_ATTR_INT &&
             (!d || items[3].list.items[d - 1].kind == TCC_ATTR_LIST);
    return ok;
}

tcc_status tcc_tensor_map_decode(tcc_run *run, tcc_attr recipe, tcc_tensor_map *m)
{
    const tcc_attr *items = recipe.list.items;
    *m = (tcc_tensor_map){0};
    m->tensor = tcc_run_param(run, items[1].s);
    bool ok = m->tensor && tcc_scalar_find(items[6].s, strlen(items[6].s), &m->elem);
    size_t rank = items[2].list.n;
    if (!ok || !is_of_rank(items, rank) || tcc_scalar_bits(m->elem) < 8)
        return TCC_FAIL(run, TCC_ERR_INTERNAL, NULL, "malformed tensor map in 'params'");
    m->rank = (int)rank;
    m->swizzle = items[5].i;
    m->elem_bytes = tcc_scalar_bits(m->elem) / 8;
    for (size_t d = 0; d < rank; d++) {
        m->extents[d] = tcc_run_dim(run, items[2].list.items[d]);
        m->box[d] = items[4].list.items[d].i;
        m->strides[d] = d ? tcc_run_product(run, items[3].list.items[d - 1], 1) : 1;
    }
    tcc_status status = check_map(run, m);
    m->box_bytes = m->elem_bytes;
    for (size_t d = 0; d < rank && !status; d++)
        m->box_bytes *= m->box[d];
    return status;
}

/* ---- one copy -------------------------------------------------------------------------- */

/* Where in the tensor an element of the box is; -1: outside. */
static int64_t place_of(const tcc_bulk_copy *c, const int64_t *in_box)
{
    const tcc_tensor_map *m = c->map;
    int64_t at = 0;
    for (int d = 0; d < m->rank; d++) {
        int64_t p = c->at[d] + in_box[d];
        if (p < 0 || p >= m->extents[d])
            return -1;
        at += p * m->strides[d];
    }
    return at;
}

static void step(const tcc_tensor_map *m, int64_t *in_box)
{
    for (int d = 0; d < m->rank && ++in_box[d] == m->box[d]; d++)
        in_box[d] = 0;
}

/* How many elements from one on, along the innermost dimension, are in the tensor as that one is, or outside as that
 * one. */
static int64_t run_of(const tcc_bulk_copy *c, const int64_t *in_box, int64_t place)
{
    int64_t left = c->map->box[0] - in_box[0], p = c->at[0] + in_box[0];
    int64_t n = place >= 0 ? c->map->extents[0] - p : p < 0 ? -p : left;
    return n < left ? n : left;
}

/* Where in shared memory the e-th is. */
static int64_t address_of(const tcc_bulk_copy *c, int64_t e)
{
    int64_t address = c->address + e * c->map->elem_bytes;
    return c->map->swizzle ? address ^ (address >> 3 & (c->map->swizzle - 16)) : address;
}

/* Sends the element at an address to its place in the tensor. */
static tcc_outcome send(tcc_exec *x, const tcc_op *op, const tcc_bulk_copy *c, int64_t at, int64_t address)
{
    const tcc_tensor_map *m = c->map;
    uint64_t bits = 0;
    memcpy(&bits, c->cta->smem + (address - TCC_SMEM_BASE), (size_t)m->elem_bytes); /* little-endian, as the GPU */
    tcc_cell v = tcc_decode(bits, m->elem);
    bool floats = tcc_scalar_classify(m->elem) == TCC_CLASS_FLOAT;
    bool written = tcc_smem_is_written(c->cta, address, m->elem_bytes);
    if (!written || (floats && tcc_is_poison(v.f))) {
        TCC_WRONG(x, op, "nvvm.tma.store sends what %s%s, at byte %lld of shared memory",
                  written ? "comes from " : "was never written", written ? tcc_source_of_poison(c->cta) : "",
                  (long long)(address - TCC_SMEM_BASE));
        if (written)
            tcc_note_unwritten(c->cta);
        return TCC_FAILED;
    }
    tcc_param_store(x->run, m->tensor, at, v);
    return TCC_NEXT;
}

/* Receives n elements of a row of the box, from the e-th on, which are at a place in the tensor; -1: outside, as zeros.
 * A swizzle moves chunks as a whole. */
static void receive(const tcc_bulk_copy *c, int64_t e, int64_t n, int64_t at)
{
    const tcc_tensor_map *m = c->map;
    for (int64_t i = 0, part; i < n; i += part) {
        int64_t address = address_of(c, e + i), room = (ALIGN - address % ALIGN) / m->elem_bytes;
        tcc_cell cells[ALIGN] = {0};
        part = room < n - i ? room : n - i;
        for (int64_t k = 0; k < part && at >= 0; k++)
            cells[k] = tcc_param_load(m->tensor, at + i + k);
        tcc_encode_bytes(cells, 1, (size_t)part, m->elem, c->cta->smem + (address - TCC_SMEM_BASE));
    }
}

/* Moves the box, row by row. */
static tcc_outcome move(tcc_exec *x, const tcc_op *op, const tcc_bulk_copy *c, bool to_shared)
{
    const tcc_tensor_map *m = c->map;
    int64_t i[TCC_MAP_RANK] = {0}, n = m->box_bytes / m->elem_bytes;
    for (int64_t e = 0, run; e < n; e += run, step(m, i)) {
        int64_t at = place_of(c, i);
        bool inside = at >= 0;
        run = run_of(c, i, at);
        if (inside && at + run > m->tensor->count) {
            int64_t missing = at < m->tensor->count ? m->tensor->count : at;
            return TCC_WRONG(x, op, "element %lld is not in '%s'", (long long)missing, m->tensor->name);
        }
        if (to_shared)
            receive(c, e, run, at);
        for (int64_t k = 0; k < run && inside && !to_shared; k++)
            if (send(x, op, c, at + k, address_of(c, e + k)) == TCC_FAILED)
                return TCC_FAILED;
        i[0] += run - 1;
    }
    return TCC_NEXT;
}

/* Says of the elements of a load that are outside of its tensor that they are. */
static void mark_outside(const tcc_op *op, const tcc_accessor *by, const tcc_bulk_copy *c)
{
    const tcc_tensor_map *m = c->map;
    int64_t i[TCC_MAP_RANK] = {0}, n = m->box_bytes / m->elem_bytes;
    bool inside = true;
    for (int d = 0; d < m->rank; d++)
        inside &= c->at[d] >= 0 && c->at[d] + m->box[d] <= m->extents[d];
    for (int64_t e = 0, end; e < n && !inside; step(m, i)) {
        int64_t at = place_of(c, i), run = run_of(c, i, at);
        for (end = e + run; e < end; e++)
            if (at < 0)
                tcc_smem_set_outside(c->cta, op, by, address_of(c, e), m->elem_bytes);
        i[0] += run - 1;
    }
}

/* Checks and records what a copy does to its tensor. */
static bool access_tensor(tcc_exec *x, const tcc_op *op, const tcc_accessor *by,
                          const tcc_bulk_copy *c, bool write)
{
    const tcc_tensor_map *m = c->map;
    int64_t i[TCC_MAP_RANK] = {0}, n = m->box_bytes / m->elem_bytes;
    bool ok = true;
    if (!tcc_global_is_tracked(x->cluster, m->tensor))
        return true;
    for (int64_t e = 0; e < n && ok; e++, step(m, i)) {
        int64_t at = place_of(c, i);
        ok = at < 0 || at >= m->tensor->count ||
             tcc_global_access(x->cluster, op, by, m->tensor, at, write);
    }
    return ok;
}

/* The copy that a lane starts, to or from the shared memory of CTA `cta`; its coordinates follow
 * operand `first`. NULL when it is wrong. */
static tcc_bulk_copy *start(tcc_thread *t, tcc_cta *cta, const tcc_inst *in, unsigned lane,
                            unsigned first)
{
    tcc_exec *x = t->x;
    const tcc_tensor_map *m = &cta->cluster->maps[tcc_operand_int(t, in, 1)];
    tcc_bulk_copy *c = TCC_NEW(x->run->scratch, tcc_bulk_copy);
    c->cta = cta;
    c->map = m;
    c->bytes = m->box_bytes;
    c->address = tcc_lane_int(t, in, 0, lane);
    if ((int)(in->op->n_operands - first) != m->rank) {
        TCC_WRONG(x, in->op, "%u coordinates for a map of rank %d", in->op->n_operands - first,
                  m->rank);
        return NULL;
    }
    for (int d = 0; d < m->rank; d++)
        c->at[d] = tcc_lane_int(t, in, first + (unsigned)d, lane);
    return tcc_smem_at(cta, in->op, c->address, m->box_bytes, SMEM_ALIGN) ? c : NULL;
}

static void push_event(tcc_thread *t, const tcc_inst *in, tcc_bulk_copy *c,
                       tcc_outcome (*end)(tcc_exec *x, tcc_event *e))
{
    TCC_PUSH(t->x->run->scratch, &t->x->events, (tcc_event){.end = end, .op = in->op, .data = c, .by = t});
}

/* ---- loads ----------------------------------------------------------------------------- */

static tcc_outcome end_load(tcc_exec *x, tcc_event *e)
{
    const tcc_bulk_copy *c = e->data;
    if (move(x, e->op, c, true) == TCC_FAILED)
        return TCC_FAILED;
    return tcc_mbarrier_complete(c->cta, e->op, c->barrier, c->map->box_bytes);
}

/* Who a copy's write to shared memory is by, which completes on its barrier. */
static tcc_accessor accessor_of(tcc_thread *t, const tcc_bulk_copy *c, unsigned lane)
{
    const tcc_mbarrier *b = c->barrier;
    tcc_accessor by = tcc_warp_accessor(t, UINT64_C(1) << lane);
    by.actor = tcc_actor_mbarrier(c->cta, (size_t)(b - c->cta->mbarriers));
    by.clock = b->before + b->phase + 1;
    by.async = c->map;
    by.origin = c->map ? TCC_OF_TENSOR : TCC_COMPUTED;
    return by;
}

/* It is on its way. */
static void send_off(tcc_thread *t, const tcc_inst *in, tcc_bulk_copy *c, const tcc_accessor *by,
                     tcc_outcome (*end)(tcc_exec *x, tcc_event *e))
{
    c->barrier->copy = (tcc_smem_access){
        .op = in->op, .warp = t->warp, .actor = (uint16_t)by->actor, .clock = by->clock};
    c->barrier->in_flight++;
    push_event(t, in, c, end);
}

/* Starts a load to a CTA, which completes on a barrier of that CTA. */
static tcc_outcome start_load(tcc_thread *t, tcc_cta *cta, const tcc_inst *in, unsigned lane,
                              unsigned first)
{
    tcc_bulk_copy *c = start(t, cta, in, lane, first);
    tcc_mbarrier *b = c ? tcc_mbarrier_of_copy(t, cta, in->op, tcc_lane_int(t, in, 2, lane)) : NULL;
    if (!b)
        return TCC_FAILED;
    c->barrier = b;
    tcc_accessor by = accessor_of(t, c, lane);
    if (!tcc_smem_write(cta, in->op, &by, c->address, c->bytes) ||
        !access_tensor(t->x, in->op, &by, c, false))
        return TCC_FAILED;
    mark_outside(in->op, &by, c);
    send_off(t, in, c, &by, end_load);
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_tma_load(tcc_thread *t, const tcc_inst *in)
{
    for (unsigned l = 0; tcc_next_lane(t, &l); l++)
        if (start_load(t, t->warp->cta, in, l, 3) == TCC_FAILED)
            return TCC_FAILED;
    return TCC_NEXT;
}

/* The same places, and the same barrier, in each CTA of the mask. */
tcc_outcome tcc_eval_nvvm_tma_load_multicast(tcc_thread *t, const tcc_inst *in)
{
    tcc_cluster *k = t->x->cluster;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        int64_t mask = tcc_lane_int(t, in, 3, l);
        if (mask < 1 || mask >> k->n_ctas)
            return TCC_WRONG(t->x, in->op,
                             "nvvm.tma.load.multicast: ctas is %#llx in a cluster of %u",
                             (unsigned long long)mask, k->n_ctas);
        for (unsigned r = 0; r < k->n_ctas; r++)
            if (mask >> r & 1 && (!tcc_reach(t, &k->ctas[r], in->op) ||
                                  start_load(t, &k->ctas[r], in, l, 4) == TCC_FAILED))
                return TCC_FAILED;
    }
    return TCC_NEXT;
}

/* ---- words ----------------------------------------------------------------------------- */

static tcc_outcome end_word(tcc_exec *x, tcc_event *e)
{
    const tcc_bulk_copy *c = e->data;
    (void)x;
    memcpy(c->cta->smem + (c->address - TCC_SMEM_BASE), &c->word, sizeof c->word);
    return tcc_mbarrier_complete(c->cta, e->op, c->barrier, c->bytes);
}

/* Not through the async proxy, but as late as a copy. */
tcc_outcome tcc_store_later(tcc_thread *t, tcc_cta *cta, const tcc_inst *in, unsigned lane, int64_t address,
                            int64_t barrier)
{
    tcc_bulk_copy *c = TCC_NEW(t->x->run->scratch, tcc_bulk_copy);
    *c = (tcc_bulk_copy){.cta = cta, .address = address, .word = (uint32_t)tcc_lane_int(t, in, 2, lane)};
    c->bytes = sizeof c->word;
    if (!tcc_smem_at(cta, in->op, address, c->bytes, c->bytes))
        return TCC_FAILED;
    c->barrier = tcc_mbarrier_of_copy(t, cta, in->op, barrier);
    if (!c->barrier)
        return TCC_FAILED;
    tcc_accessor by = accessor_of(t, c, lane);
    if (!tcc_smem_write(cta, in->op, &by, address, c->bytes))
        return TCC_FAILED;
    c->barrier->words_from_afar |= cta != t->warp->cta;
    send_off(t, in, c, &by, end_word);
    return TCC_NEXT;
}

/* ---- stores ---------------------------------------------------------------------------- */

static tcc_outcome end_store(tcc_exec *x, tcc_event *e)
{
    const tcc_bulk_copy *c = e->data;
    if (move(x, e->op, c, false) == TCC_FAILED)
        return TCC_FAILED;
    --*c->left;
    return TCC_NEXT;
}

/* The group of a lane's next copy; NULL, reported, where another lane's copies may be on their way. */
static tcc_bulk_group *open_group(tcc_thread *t, const tcc_inst *in, const tcc_accessor *by, unsigned lane)
{
    tcc_warp *w = t->warp;
    tcc_bulk_group *open = &w->bulk.open;
    bool others = open->left && open->lane != lane;
    for (size_t i = w->bulk.groups.len; i > by->after->seen[tcc_actor_copies(w->cta, t->id)] && !others; i--) {
        const tcc_bulk_group *g = &w->bulk.groups.data[i - 1];
        others = g->left && g->lane != lane;
    }
    if (others) {
        TCC_WRONG(t->x, in->op, "two lanes of a warp start copies to global memory");
        return NULL;
    }
    if (!open->left)
        *open = (tcc_bulk_group){.left = TCC_NEW(t->x->run->scratch, size_t), .lane = lane};
    return open;
}

static tcc_outcome start_store(tcc_thread *t, const tcc_inst *in, unsigned lane)
{
    tcc_exec *x = t->x;
    tcc_warp *w = t->warp;
    tcc_bulk_copy *c = start(t, w->cta, in, lane, 2);
    tcc_accessor by = tcc_warp_accessor(t, UINT64_C(1) << lane);
    tcc_bulk_group *group = c ? open_group(t, in, &by, lane) : NULL;
    if (!group)
        return TCC_FAILED;
    w->bulk.op = in->op;
    by.actor = tcc_actor_copies(w->cta, t->id);
    by.clock = (uint32_t)w->bulk.groups.len + 1;
    by.async = true;
    if (!tcc_smem_read(w->cta, in->op, &by, c->address, c->map->box_bytes))
        return TCC_FAILED;
    by.actor = tcc_actor_writes(w->cta, t->id);
    if (!access_tensor(x, in->op, &by, c, true))
        return TCC_FAILED;
    c->left = group->left;
    ++*c->left;
    push_event(t, in, c, end_store);
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_tma_store(tcc_thread *t, const tcc_inst *in)
{
    for (unsigned l = 0; tcc_next_lane(t, &l); l++)
        if (start_store(t, in, l) == TCC_FAILED)
            return TCC_FAILED;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_bulk_commit(tcc_thread *t, const tcc_inst *in)
{
    (void)in;
    tcc_warp *w = t->warp;
    tcc_bulk_group closed = {.lanes = t->mask};
    if (w->bulk.open.left && t->mask >> w->bulk.open.lane & 1) {
        closed.left = w->bulk.open.left;
        closed.lane = w->bulk.open.lane;
        w->bulk.open.left = NULL;
    }
    TCC_PUSH(t->x->run->scratch, &w->bulk.groups, closed);
    return TCC_NEXT;
}

/* Moves *known, the number of the warp's groups that a lane knows to be done, past those that it waits for: of its own
 * all but the last `pending`. False while copies of these are on their way. */
static bool wait_for_groups(const tcc_warp *w, unsigned lane, size_t pending, uint32_t *known)
{
    size_t end = w->bulk.groups.len, i;
    for (size_t left = pending; left && end; end--)
        left -= w->bulk.groups.data[end - 1].lanes >> lane & 1;
    for (i = *known; i < end; i++) {
        const tcc_bulk_group *g = &w->bulk.groups.data[i];
        if (g->left && g->lane != lane)
            break;
        if (g->left && *g->left)
            return false;
        if (g->left)
            *known = (uint32_t)i + 1;
    }
    return true;
}

tcc_outcome tcc_eval_nvvm_bulk_wait(tcc_thread *t, const tcc_inst *in)
{
    tcc_warp *w = t->warp;
    size_t pending = (size_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    bool only_read = tcc_attr_int(&in->op->attrs, "read", 0);
    unsigned copies = tcc_actor_copies(w->cta, t->id), writes = tcc_actor_writes(w->cta, t->id);
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        tcc_lane_mask lane = UINT64_C(1) << l;
        const tcc_order *order = tcc_warp_accessor(t, lane).after;
        uint32_t read = order->seen[copies], written = order->seen[writes], before = read + written;
        if (!wait_for_groups(w, l, pending, &read) || !wait_for_groups(w, l, pending, &written))
            return TCC_WAIT(t, NULL, "for its copies to global memory");
        if (read + written == before)
            continue;
        tcc_lanes_learn_end(w, lane, copies, read);
        if (!only_read)
            tcc_lanes_learn_end(w, lane, writes, written);
    }
    return TCC_NEXT;
}

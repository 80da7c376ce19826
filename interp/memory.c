/* memory: shared memory, with a mark for every byte or, where nothing smaller is copied and
 * multiplied, for two; and tensors in global memory that are written, where copies take part, with a
 * mark for every element.
 *
 * Who has read a place since its last write is a list that places share: an operand's bytes are
 * read by the same MMAs, so that few lists are made.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"

enum { NONE, ORDINARY, ASYNC, MBARRIER };

struct tcc_reader {
    uint32_t access, next; /* of the list, 0: the end */
    tcc_lane_mask lanes;
};

static size_t mark_count(const tcc_cta *c)
{
    return (size_t)((c->smem_bytes + c->mark_bytes - 1) / c->mark_bytes);
}

void tcc_smem_create(tcc_cta *c, int64_t size, int mark_log2)
{
    tcc_arena *scratch = c->cluster->x->run->scratch;
    c->smem_bytes = size;
    c->mark_log2 = mark_log2;
    c->mark_bytes = 1 << mark_log2;
    c->smem = TCC_NEW_ARRAY(scratch, uint8_t, (size_t)size);
    c->marks = TCC_NEW_ARRAY(scratch, tcc_mark, mark_count(c));
}

void tcc_smem_clear(tcc_cta *c)
{
    memset(c->marks, 0, mark_count(c) * sizeof *c->marks);
    c->unwritten.op = NULL;
}

static size_t mark_at(const tcc_cta *c, int64_t address)
{
    return (size_t)(address - TCC_SMEM_BASE) >> c->mark_log2;
}

/* Number 0 of both tables stands for none. */
void tcc_accesses_clear(tcc_cluster *k)
{
    k->readers.len = k->accesses.len = 0;
    k->any_outside = false;
    TCC_PUSH(k->x->run->scratch, &k->readers, (struct tcc_reader){0});
    TCC_PUSH(k->x->run->scratch, &k->accesses, (tcc_smem_access){.kind = NONE});
}

static bool is_multiple(int64_t n, int64_t of)
{
    bool power = !(of & (of - 1)); /* nearly always, and a division takes long */
    return power ? !(n & (of - 1)) : n % of == 0;
}

uint8_t *tcc_smem_at(tcc_cta *c, const tcc_op *op, int64_t address, int64_t n, int64_t align)
{
    tcc_exec *x = c->cluster->x;
    int64_t offset = address - TCC_SMEM_BASE, size = c->smem_bytes;
    if (offset >= 0 && n <= size && offset <= size - n && is_multiple(address, align))
        return c->smem + offset;
    const char *name = tcc_op_info_get(op->code)->name, *smem = c->cluster->words.smem;
    if (address >= TCC_CLUSTER_WINDOW)
        TCC_WRONG(x, op, "%s: the address is one of the cluster's, and must be one of its own CTA",
                  name);
    else if (!is_multiple(address, align))
        TCC_WRONG(x, op, "%s: %s %lld is not a multiple of %lld", name, c->cluster->words.address,
                  (long long)address, (long long)align);
    else
        TCC_WRONG(x, op, "%s: %lld bytes from byte %lld on are not in the %lld of %s", name,
                  (long long)n, (long long)offset, (long long)size, smem);
    return NULL;
}

/* ---- accesses -------------------------------------------------------------------------- */

/* The number of an access; the places of one op share it. */
static uint32_t record(tcc_cluster *k, const tcc_op *op, const tcc_accessor *by, uint8_t kind)
{
    const tcc_smem_access *last = &k->accesses.data[k->accesses.len - 1];
    uint64_t step = by->warp->thread->steps;
    k->any_outside |= by->origin == TCC_OUTSIDE;
    if (last->op != op || last->warp != by->warp || last->clock != by->clock ||
        last->actor != by->actor || last->kind != kind || last->origin != by->origin ||
        last->step != step)
        TCC_PUSH(k->x->run->scratch, &k->accesses,
                 (tcc_smem_access){.op = op,
                                   .warp = by->warp,
                                   .step = step,
                                   .clock = by->clock,
                                   .actor = (uint16_t)by->actor,
                                   .kind = kind,
                                   .origin = by->origin});
    return (uint32_t)k->accesses.len - 1;
}

static const tcc_smem_access *reader(const tcc_cluster *k, uint32_t r)
{
    return &k->accesses.data[k->readers.data[r].access];
}

static uint32_t add_reader(tcc_cluster *k, const tcc_accessor *by, uint32_t list, uint32_t access)
{
    const tcc_smem_access *a = &k->accesses.data[access];
    tcc_lane_mask lanes = by->lanes;
    for (uint32_t r = list; r; r = k->readers.data[r].next)
        if (reader(k, r)->actor == a->actor && reader(k, r)->clock >= a->clock &&
            !(lanes & ~k->readers.data[r].lanes))
            return list;
    if (list && reader(k, list)->actor == a->actor) { /* replace */
        if (!tcc_comes_after(by, a->actor, reader(k, list)->clock, 0))
            lanes |= k->readers.data[list].lanes;
        list = k->readers.data[list].next;
    }
    TCC_PUSH(k->x->run->scratch, &k->readers, (struct tcc_reader){access, list, lanes});
    return (uint32_t)(k->readers.len - 1);
}

/* A reader in the list that does not come before; NULL when all do. */
static const tcc_smem_access *unordered_reader(const tcc_cluster *k, uint32_t list,
                                               const tcc_accessor *by)
{
    for (uint32_t r = list; r; r = k->readers.data[r].next)
        if (!tcc_comes_after(by, reader(k, r)->actor, reader(k, r)->clock,
                             k->readers.data[r].lanes))
            return reader(k, r);
    return NULL;
}

/* The clock of an actor up to which its accesses are followed by a proxy fence. */
static uint32_t fenced(const tcc_accessor *by, unsigned actor)
{
    return actor == by->warp->actor ? tcc_own_fence(by->warp, by->lanes) : by->after->fenced[actor];
}

/* One that read without a proxy fence after it. */
static const tcc_smem_access *unfenced_reader(const tcc_cluster *k, uint32_t list,
                                              const tcc_accessor *by)
{
    for (uint32_t r = list; r; r = k->readers.data[r].next)
        if (reader(k, r)->kind == ORDINARY && fenced(by, reader(k, r)->actor) < reader(k, r)->clock)
            return reader(k, r);
    return NULL;
}

/* ---- reports --------------------------------------------------------------------------- */

void tcc_note_access(const tcc_cluster *k, const tcc_smem_access *other, const char *verb)
{
    tcc_note(k->x->run->diag, other->op->loc, "%s of %s %s it here",
             tcc_op_info_get(other->op->code)->name, tcc_warp_name(other->warp), verb);
}

static bool unordered(const tcc_cta *c, const tcc_op *op, const tcc_accessor *by, const char *verb,
                      size_t mark, const tcc_smem_access *other, bool other_writes)
{
    const tcc_cluster *k = c->cluster;
    const char *who =
        other->actor == by->warp->actor ? "another lane of it" : tcc_actor_name(k, other->actor);
    TCC_WRONG(k->x, op, "%s %s %s at byte %zu that %s may still be %s",
              tcc_op_info_get(op->code)->name, verb, k->words.smem, mark * (size_t)c->mark_bytes,
              who, other_writes ? "writing" : "reading");
    tcc_note_access(k, other, other_writes ? "writes" : "reads");
    return false;
}

static bool misplaced(const tcc_cta *c, const tcc_op *op, const char *verb, size_t mark,
                      const tcc_smem_access *other, const char *why)
{
    TCC_WRONG(c->cluster->x, op, "%s %s %s at byte %zu %s", tcc_op_info_get(op->code)->name, verb,
              c->cluster->words.smem, mark * (size_t)c->mark_bytes, why);
    tcc_note_access(c->cluster, other, other->kind == MBARRIER ? "initialises" : "writes");
    return false;
}

/* An ordinary access after which its warp ran no fence. */
static bool unfenced(const tcc_cta *c, const tcc_op *op, const char *verb, size_t mark,
                     const tcc_smem_access *other, bool other_writes)
{
    const tcc_cluster *k = c->cluster;
    TCC_WRONG(k->x, op,
              "%s %s %s at byte %zu after an ordinary %s, with no fence.proxy.async by %s between",
              tcc_op_info_get(op->code)->name, verb, k->words.smem, mark * (size_t)c->mark_bytes,
              other_writes ? "write" : "read", tcc_warp_name(other->warp));
    tcc_note_access(k, other, other_writes ? "writes" : "reads");
    return false;
}

/* ---- checks ---------------------------------------------------------------------------- */

static bool same_mark(tcc_mark a, tcc_mark b)
{
    return a.write == b.write && a.readers == b.readers && a.lanes == b.lanes;
}

/* Whether the last write comes before, through a fence where the proxies differ. Of the lanes of
 * one instruction that write the same place one is the last. */
static bool after_writer(const tcc_cta *c, const tcc_op *op, const tcc_accessor *by, size_t i,
                         const char *verb, uint32_t access)
{
    const tcc_smem_access *w = &c->cluster->accesses.data[c->marks[i].write];
    if (w->kind == MBARRIER)
        return misplaced(c, op, verb, i, w, "where an mbarrier is");
    bool same = w->warp == by->warp && w->step == c->cluster->accesses.data[access].step &&
                w->kind == ORDINARY && !by->async;
    if (w->kind != NONE && !same && !tcc_comes_after(by, w->actor, w->clock, c->marks[i].lanes))
        return unordered(c, op, by, verb, i, w, true);
    if (w->kind == ORDINARY && by->async && fenced(by, w->actor) < w->clock)
        return unfenced(c, op, verb, i, w, true);
    return true;
}

tcc_smem_reads tcc_smem_reads_begin(tcc_cta *c, const tcc_op *op, const tcc_accessor *by)
{
    return (tcc_smem_reads){
        .cta = c, .op = op, .by = by, .access = record(c->cluster, op, by, by->async ? ASYNC : ORDINARY)};
}

bool tcc_smem_read_part(tcc_smem_reads *r, int64_t address, int64_t n)
{
    tcc_cta *c = r->cta;
    size_t first = mark_at(c, address), end = mark_at(c, address + n + c->mark_bytes - 1);
    r->written = r->alike = true;
    for (size_t i = first; i < end; i++) {
        tcc_mark *m = &c->marks[i];
        if (!r->any || !same_mark(*m, r->before)) {
            if (!after_writer(c, r->op, r->by, i, "reads", r->access))
                return false;
            r->any = true;
            r->before = r->later = *m;
            r->later.readers = add_reader(c->cluster, r->by, m->readers, r->access);
            r->alike &= i == first;
        }
        r->written &= r->before.write != 0;
        *m = r->later;
    }
    return true;
}

bool tcc_smem_read(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address, int64_t n)
{
    tcc_smem_reads r = tcc_smem_reads_begin(c, op, by);
    return tcc_smem_read_part(&r, address, n);
}

bool tcc_smem_is_written(const tcc_cta *c, int64_t address, int64_t n)
{
    size_t end = mark_at(c, address + n + c->mark_bytes - 1);
    for (size_t i = mark_at(c, address); i < end; i++)
        if (!c->marks[i].write)
            return false;
    return true;
}

uint8_t tcc_smem_origin(const tcc_cta *c, int64_t address)
{
    return c->cluster->accesses.data[c->marks[mark_at(c, address)].write].origin;
}

void tcc_smem_set_outside(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address,
                          int64_t n)
{
    tcc_accessor outside = *by;
    outside.origin = TCC_OUTSIDE;
    uint32_t access = record(c->cluster, op, &outside, by->async ? ASYNC : ORDINARY);
    for (int64_t at = address; at + c->mark_bytes <= address + n; at += c->mark_bytes)
        c->marks[mark_at(c, at)].write = access;
}

void tcc_smem_read_unwritten(tcc_cta *c, const tcc_op *op, const tcc_warp *by, int64_t address)
{
    if (c->unwritten.op)
        return;
    c->unwritten.op = op;
    c->unwritten.by = by;
    c->unwritten.offset = address - TCC_SMEM_BASE;
    c->unwritten.outside = false;
}

void tcc_multiplies_outside(tcc_cta *c, const tcc_op *op, const tcc_warp *by)
{
    if (c->unwritten.op)
        return;
    c->unwritten.op = op;
    c->unwritten.by = by;
    c->unwritten.outside = true;
}

const char *tcc_source_of_poison(const tcc_cta *c)
{
    return c->unwritten.op && c->unwritten.outside
               ? "a product of a zero outside a tensor and an element inside one"
               : tcc_arena_printf(c->cluster->x->run->scratch, "%s that was never written",
                                  c->cluster->words.smem);
}

void tcc_note_unwritten(const tcc_cta *c)
{
    const tcc_op *op = c->unwritten.op;
    if (op && c->unwritten.outside)
        tcc_note(
            c->cluster->x->run->diag, op->loc,
            "%s of %s was the first to multiply them: the element inside may be infinite, and zero times infinity is "
            "NaN",
            tcc_op_info_get(op->code)->name, tcc_warp_name(c->unwritten.by));
    else if (op)
        tcc_note(c->cluster->x->run->diag, op->loc,
                 "%s of %s was the first to read such a byte, %lld",
                 tcc_op_info_get(op->code)->name, tcc_warp_name(c->unwritten.by),
                 (long long)c->unwritten.offset);
}

static bool write_marks(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address,
                        int64_t n, uint8_t kind)
{
    size_t first = mark_at(c, address), end = mark_at(c, address + n + c->mark_bytes - 1);
    tcc_mark before = {0}, later = {.write = record(c->cluster, op, by, kind)};
    for (size_t i = first; i < end; i++) {
        tcc_mark *m = &c->marks[i];
        if (i == first || !same_mark(*m, before)) {
            if (!after_writer(c, op, by, i, "writes", later.write))
                return false;
            const tcc_smem_access *r = unordered_reader(c->cluster, m->readers, by);
            if (r)
                return unordered(c, op, by, "writes", i, r, false);
            r = by->async ? unfenced_reader(c->cluster, m->readers, by) : NULL;
            if (r)
                return unfenced(c, op, "writes", i, r, false);
            before = *m;
            bool same = c->cluster->accesses.data[m->write].step == by->warp->thread->steps &&
                        c->cluster->accesses.data[m->write].warp == by->warp;
            later.lanes = (uint32_t)by->lanes | (same ? m->lanes : 0);
        }
        *m = later;
    }
    return true;
}

bool tcc_smem_write(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address,
                    int64_t n)
{
    return write_marks(c, op, by, address, n, by->async ? ASYNC : ORDINARY);
}

bool tcc_smem_take(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address)
{
    return write_marks(c, op, by, address, TCC_MBARRIER_BYTES, MBARRIER);
}

void tcc_smem_give_back(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address)
{
    uint32_t access = record(c->cluster, op, by, ORDINARY);
    size_t end = mark_at(c, address + TCC_MBARRIER_BYTES);
    for (size_t i = mark_at(c, address); i < end; i++)
        c->marks[i] = (tcc_mark){.write = access, .lanes = (uint32_t)by->lanes};
}

/* ---- global memory --------------------------------------------------------------------- */

/* The number of the tensor that an op accesses; -1: none that is known. */
static int64_t tensor_of(const tcc_cluster *k, const tcc_op *op, const tcc_global_use *use)
{
    const tcc_run *run = k->x->run;
    const tcc_block *body = run->f->body;
    for (size_t i = 0; use->any && i < body->n_args; i++)
        if (body->args[i] == op->operands[use->operand])
            return use->async ? k->maps[i].tensor - run->params : k->params[i].i;
    return -1;
}

tcc_status tcc_global_create(tcc_cluster *k)
{
    enum { WRITTEN = 1, IN_BULK = 2, TRACKED = WRITTEN | IN_BULK };
    const tcc_run *run = k->x->run;
    const tcc_block *body = run->f->body;
    uint8_t *uses = TCC_NEW_ARRAY(run->scratch, uint8_t, run->n_params + 1);
    k->globals = TCC_NEW_ARRAY(run->scratch, tcc_global, run->n_params + 1);
    for (const tcc_op *op = body->first; op; op = tcc_walk_next((tcc_op *)op, body)) {
        tcc_global_use use = tcc_op_global_use(op->code);
        int64_t i = tensor_of(k, op, &use);
        if (i >= 0)
            uses[i] |= (use.writes ? WRITTEN : 0) | (use.async ? IN_BULK : 0);
    }
    for (size_t i = 0; i < run->n_params; i++) {
        int64_t n = run->params[i].count;
        if (uses[i] != TRACKED)
            continue;
        tcc_status status = tcc_run_check_room(k->x->run, NULL, (uint64_t)n, sizeof(tcc_mark));
        if (status)
            return status;
        k->globals[i].marks = TCC_NEW_ARRAY(run->scratch, tcc_mark, (size_t)n + 1);
    }
    return TCC_OK;
}

void tcc_global_clear(tcc_cluster *k)
{
    for (size_t i = 0; i < k->x->run->n_params; i++) {
        tcc_global *g = &k->globals[i];
        if (g->end > g->first)
            memset(g->marks + g->first, 0, (size_t)(g->end - g->first) * sizeof *g->marks);
        g->first = g->end = 0;
    }
}

bool tcc_global_is_tracked(const tcc_cluster *k, const tcc_param *p)
{
    return k->globals[p - k->x->run->params].marks;
}

static bool unordered_global(tcc_cluster *k, const tcc_op *op, const char *verb, const tcc_param *p,
                             int64_t at, const tcc_smem_access *other, bool other_writes)
{
    TCC_WRONG(k->x, op, "%s %s element %lld of '%s' that %s may still be %s",
              tcc_op_info_get(op->code)->name, verb, (long long)at, p->name,
              tcc_actor_name(k, other->actor), other_writes ? "writing" : "reading");
    tcc_note_access(k, other, other_writes ? "writes" : "reads");
    return false;
}

/* Only where a copy takes part: what threads do among themselves may be idle, as where several read
 * what but one of them replaces. */
bool tcc_global_access(tcc_cluster *k, const tcc_op *op, const tcc_accessor *by, const tcc_param *p,
                       int64_t at, bool write)
{
    tcc_global *g = &k->globals[p - k->x->run->params];
    tcc_mark *m = &g->marks[at];
    const char *verb = write ? "writes" : "reads";
    uint32_t access = record(k, op, by, by->async ? ASYNC : ORDINARY);
    const tcc_smem_access *w = &k->accesses.data[m->write];
    bool either = w->kind == ASYNC || (w->kind == ORDINARY && by->async);
    if (either && !tcc_comes_after(by, w->actor, w->clock, m->lanes))
        return unordered_global(k, op, verb, p, at, w, true);
    if (w->kind == ORDINARY && by->async) {
        TCC_WRONG(
            k->x, op,
            "%s %s element %lld of '%s' after an ordinary write: no fence here orders the proxies of global memory",
            tcc_op_info_get(op->code)->name, verb, (long long)at, p->name);
        tcc_note_access(k, w, "writes");
        return false;
    }
    for (uint32_t r = write ? m->readers : 0; r; r = k->readers.data[r].next)
        if ((by->async || reader(k, r)->kind == ASYNC) &&
            !tcc_comes_after(by, reader(k, r)->actor, reader(k, r)->clock,
                             k->readers.data[r].lanes))
            return unordered_global(k, op, verb, p, at, reader(k, r), false);
    if (write)
        *m = (tcc_mark){.write = access, .lanes = (uint32_t)by->lanes};
    else
        m->readers = add_reader(k, by, m->readers, access);
    if (g->end == g->first)
        g->first = g->end = at;
    g->first = at < g->first ? at : g->first;
    g->end = at >= g->end ? at + 1 : g->end;
    return true;
}

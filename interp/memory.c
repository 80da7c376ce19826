/* memory: shared memory, with a mark for every two bytes: the smallest elements that are copied
 * and multiplied here.
 *
 * Who has read a place since its last write is a list that places share: an operand's bytes are
 * read by the same products, so that few lists are made.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"

enum { MARK_BYTES = 2 };
enum { NEVER, ORDINARY, ASYNC, MBARRIER };

struct tcc_reader {
    uint32_t actor, clock, next; /* of the list, 0: the end */
};

void tcc_smem_create(tcc_cta *c, int64_t size)
{
    tcc_arena *scratch = c->x->run->scratch;
    c->smem_bytes = size;
    c->smem = TCC_NEW_ARRAY(scratch, uint8_t, (size_t)size);
    c->marks = TCC_NEW_ARRAY(scratch, tcc_mark, (size_t)(size + MARK_BYTES - 1) / MARK_BYTES);
    tcc_smem_clear(c);
}

void tcc_smem_clear(tcc_cta *c)
{
    size_t n = (size_t)(c->smem_bytes + MARK_BYTES - 1) / MARK_BYTES;
    for (size_t i = 0; i < n; i++)
        c->marks[i] = (tcc_mark){.kind = NEVER};
    c->readers.len = 0;
    TCC_PUSH(c->x->run->scratch, &c->readers, (struct tcc_reader){0, 0, 0});
}

uint8_t *tcc_smem_at(tcc_exec *x, const tcc_op *op, int64_t address, int64_t n, int64_t align)
{
    int64_t offset = address - TCC_SMEM_BASE, size = x->cta->smem_bytes;
    const char *name = tcc_op_info_get(op->code)->name;
    if (address % align) {
        TCC_WRONG(x, op, "%s: shared address %lld is no multiple of %lld", name, (long long)address,
                  (long long)align);
        return NULL;
    }
    if (offset < 0 || n > size || offset > size - n) {
        TCC_WRONG(x, op, "%s: %lld bytes from byte %lld on are not in the %lld of shared memory",
                  name, (long long)n, (long long)offset, (long long)size);
        return NULL;
    }
    return x->cta->smem + offset;
}

/* ---- readers --------------------------------------------------------------------------- */

static uint32_t add_reader(tcc_cta *c, uint32_t list, uint32_t actor, uint32_t clock)
{
    for (uint32_t r = list; r; r = c->readers.data[r].next)
        if (c->readers.data[r].actor == actor && c->readers.data[r].clock >= clock)
            return list;
    if (c->readers.data[list].actor == actor) /* replace; the end of lists has clock 0 */
        list = c->readers.data[list].clock ? c->readers.data[list].next : list;
    TCC_PUSH(c->x->run->scratch, &c->readers, (struct tcc_reader){actor, clock, list});
    return (uint32_t)(c->readers.len - 1);
}

/* A reader in the list that does not come before; NULL when all do. */
static const struct tcc_reader *unordered_reader(const tcc_cta *c, uint32_t list,
                                                 const tcc_order *after)
{
    for (uint32_t r = list; r; r = c->readers.data[r].next)
        if (after->seen[c->readers.data[r].actor] < c->readers.data[r].clock)
            return &c->readers.data[r];
    return NULL;
}

/* ---- accesses -------------------------------------------------------------------------- */

static bool same_mark(const tcc_mark *a, const tcc_mark *b)
{
    return a->clock == b->clock && a->readers == b->readers && a->writer == b->writer &&
           a->kind == b->kind;
}

static bool wrong(tcc_exec *x, const tcc_op *op, const char *verb, size_t mark, const char *why)
{
    TCC_WRONG(x, op, "%s %s shared memory at byte %zu %s", tcc_op_info_get(op->code)->name, verb,
              mark * MARK_BYTES, why);
    return false;
}

static const char *unordered(const tcc_cta *c, unsigned actor, const char *doing)
{
    tcc_arena *scratch = c->x->run->scratch;
    return tcc_arena_printf(scratch, "that %s may still be %s", tcc_actor_name(c, actor, scratch),
                            doing);
}

/* Whether the last write comes before, through a fence where the proxies differ. */
static bool after_writer(tcc_exec *x, const tcc_op *op, const tcc_accessor *by, size_t i,
                         const char *verb)
{
    const tcc_mark *m = &x->cta->marks[i];
    if (m->kind == MBARRIER)
        return wrong(x, op, verb, i, "where an mbarrier is");
    if (m->kind != NEVER && by->after->seen[m->writer] < m->clock)
        return wrong(x, op, verb, i, unordered(x->cta, m->writer, "writing"));
    if (m->kind == ORDINARY && by->async && by->after->fenced[m->writer] < m->clock)
        return wrong(x, op, verb, i, "after an ordinary write, with no fence.proxy.async between");
    return true;
}

bool tcc_smem_read(tcc_exec *x, const tcc_op *op, const tcc_accessor *by, int64_t address,
                   int64_t n)
{
    tcc_cta *c = x->cta;
    size_t first = (size_t)(address - TCC_SMEM_BASE) / MARK_BYTES;
    size_t end = (size_t)(address - TCC_SMEM_BASE + n + MARK_BYTES - 1) / MARK_BYTES;
    tcc_mark before = {0}, later = {0};
    for (size_t i = first; i < end; i++) {
        tcc_mark *m = &c->marks[i];
        if (i == first || !same_mark(m, &before)) {
            if (!after_writer(x, op, by, i, "reads"))
                return false;
            before = later = *m;
            later.readers = add_reader(c, m->readers, by->actor, by->clock);
        }
        *m = later;
    }
    return true;
}

bool tcc_smem_is_written(const tcc_cta *c, int64_t address, int64_t n)
{
    for (int64_t i = address - TCC_SMEM_BASE; i < address - TCC_SMEM_BASE + n; i += MARK_BYTES)
        if (c->marks[i / MARK_BYTES].kind == NEVER)
            return false;
    return true;
}

static bool check_write(tcc_exec *x, const tcc_op *op, const tcc_accessor *by, size_t first,
                        size_t end, tcc_mark mark)
{
    tcc_cta *c = x->cta;
    tcc_mark before = {0};
    for (size_t i = first; i < end; i++) {
        tcc_mark *m = &c->marks[i];
        if (i == first || !same_mark(m, &before)) {
            if (!after_writer(x, op, by, i, "writes"))
                return false;
            const struct tcc_reader *r = unordered_reader(c, m->readers, by->after);
            if (r)
                return wrong(x, op, "writes", i, unordered(c, r->actor, "reading"));
            before = *m;
        }
        *m = mark;
    }
    return true;
}

bool tcc_smem_write(tcc_exec *x, const tcc_op *op, const tcc_accessor *by, int64_t address,
                    int64_t n)
{
    int64_t offset = address - TCC_SMEM_BASE;
    return check_write(x, op, by, (size_t)offset / MARK_BYTES,
                       (size_t)(offset + n + MARK_BYTES - 1) / MARK_BYTES,
                       (tcc_mark){.writer = (uint16_t)by->actor,
                                  .clock = by->clock,
                                  .kind = by->async ? ASYNC : ORDINARY});
}

bool tcc_smem_take(tcc_exec *x, const tcc_op *op, const tcc_accessor *by, int64_t address)
{
    size_t first = (size_t)(address - TCC_SMEM_BASE) / MARK_BYTES;
    return check_write(
        x, op, by, first, first + 8 / MARK_BYTES,
        (tcc_mark){.writer = (uint16_t)by->actor, .clock = by->clock, .kind = MBARRIER});
}

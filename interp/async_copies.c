/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/async.h"

/* ---- copies ---------------------------------------------------------------------------- */

typedef struct copy {
    tcc_window from;
    tcc_async_buffer *to;
    tcc_async_stage *stage;
    int64_t number;  /* of the stage */
    size_t first, n; /* cells of it */
    int64_t bytes;
} copy;

static tcc_cell *cells_of(const copy *c)
{
    return c->to->cells + (size_t)c->number * c->to->stage_cells;
}

static tcc_outcome land(tcc_exec *x, tcc_event *e)
{
    const copy *c = e->data;
    tcc_async_stage *s = c->stage;
    if (c->n == c->to->stage_cells) {
        tcc_window_load(&c->from, cells_of(c));
    } else {
        tcc_window_load(&c->from, c->to->whole);
        memcpy(cells_of(c) + c->first, c->to->whole + c->first, c->n * sizeof(tcc_cell));
    }
    s->landed++;
    s->landed_bytes += c->bytes;
    if (s->bytes && s->landed_bytes > s->bytes)
        return TCC_WRONG(x, e->op,
                         "%lld bytes have landed in the stage of iteration %lld, of which "
                         "async.commit says %lld",
                         (long long)s->landed_bytes, (long long)s->owner, (long long)s->bytes);
    return TCC_NEXT;
}

/* Whether the stage of an iteration belongs to it already, or to none. */
static bool is_free(const tcc_async_ring *r, int64_t i)
{
    const tcc_async_stage *s = &r->stages[i % r->n_stages];
    return s->owner == i || s->owner == s->released;
}

/* A tile, or the CTA's part of one that several copy, on its way to the stage of a CTA. */
static tcc_outcome start_copy(tcc_thread *t, const tcc_inst *in, unsigned rank, tcc_peers peers)
{
    tcc_arena *scratch = t->x->run->scratch;
    const tcc_type *type = in->op->operands[2]->type;
    int64_t i = tcc_operand_int(t, in, 1);
    const tcc_async_ring *r = tcc_async_object_in(t, in, 0, rank);
    tcc_async_buffer *b = r ? tcc_async_object_in(t, in, 2, rank) : NULL;
    if (!b)
        return TCC_FAILED;
    if (!is_free(r, i))
        return TCC_WRONG(t->x, in->op,
                         "async.copy of iteration %lld to a stage of CTA %u of the cluster that has not "
                         "been released there",
                         (long long)i, rank);
    copy *c = TCC_NEW(scratch, copy);
    *c = (copy){.from = tcc_window_of(t, in, 3, 4, type, 1),
                .to = b,
                .stage = &r->stages[i % r->n_stages],
                .number = i % b->n_stages,
                .n = b->stage_cells / (size_t)peers.n};
    c->first = (size_t)tcc_peer_number(peers, t->rank) * c->n;
    c->bytes = (int64_t)c->n * tcc_scalar_bits(type->elem) / 8;
    if (peers.n > 1 && !b->whole)
        b->whole = TCC_NEW_ARRAY(scratch, tcc_cell, b->stage_cells);
    for (size_t e = 0; e < c->n; e++)
        cells_of(c)[c->first + e] = tcc_undefined_cell(b->elem);
    const struct tcc_async *cta = tcc_async_of_cta(t->x, rank);
    tcc_async_clobber(cta, b, c->number);
    if (!tcc_window_is_valid(t, in, &c->from))
        return TCC_FAILED;
    c->stage->started++;
    TCC_PUSH(scratch, &t->x->events, (tcc_event){land, in->op, c, t, cta});
    return TCC_NEXT;
}

/* Whether an iteration's stage may still be filled; false is reported. */
static bool may_fill(tcc_thread *t, const tcc_inst *in, int64_t i)
{
    const tcc_async_stage *s = tcc_async_owned_stage(t, in, i);
    if (s && s->committed)
        TCC_WRONG(t->x, in->op, "%s of iteration %lld after its commit", tcc_op_info_get(in->op->code)->name,
                  (long long)i);
    return s && !s->committed;
}

tcc_outcome tcc_eval_async_copy(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    if (!may_fill(t, in, i))
        return TCC_FAILED;
    const tcc_async_ring *r = tcc_async_operand(t, in, 0);
    tcc_async_buffer *b = tcc_async_operand(t, in, 2);
    if ((r->meets || r->groups) && !tcc_async_have_met(t, in, b->read[i % b->n_stages], "read"))
        return TCC_FAILED;
    b->put[i % b->n_stages] = r->meets ? t->steps : 0;
    tcc_peers peers = tcc_peers_of(in->op);
    if (peers.n > 1 && !tcc_fillers_have(&r->fillers, peers))
        return TCC_WRONG(t->x, in->op, "async.copy to %lld CTAs at places %lld apart, which do not fill its ring",
                         (long long)peers.n, (long long)peers.apart);
    for (int64_t c = 0; c < peers.n; c++)
        if (start_copy(t, in, (unsigned)tcc_peer_place(peers, t->rank, c), peers) != TCC_NEXT)
            return TCC_FAILED;
    return TCC_NEXT;
}

/* A tile in registers is there at once. */
tcc_outcome tcc_eval_async_put(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    if (!may_fill(t, in, i))
        return TCC_FAILED;
    const tcc_async_buffer *b = tcc_async_operand(t, in, 2);
    int64_t number = i % b->n_stages;
    if (!tcc_async_have_met(t, in, b->read[number], "read"))
        return TCC_FAILED;
    b->put[number] = t->steps;
    tcc_async_clobber(tcc_async_of(t), b, number);
    memcpy(b->cells + (size_t)number * b->stage_cells, tcc_cells(t, in->operands[3]),
           b->stage_cells * sizeof *b->cells);
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_put_word(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    if (!may_fill(t, in, i))
        return TCC_FAILED;
    const tcc_async_ring *r = tcc_async_operand(t, in, 0);
    for (unsigned c = 0; c < tcc_async_n_filled(r); c++) {
        unsigned rank = tcc_async_filled(t, r, c);
        const tcc_async_buffer *b = tcc_async_object_in(t, in, 2, rank);
        if (!b)
            return TCC_FAILED;
        tcc_async_clobber(tcc_async_of_cta(t->x, rank), b, i % b->n_stages);
        b->cells[(size_t)(i % b->n_stages) * b->stage_cells].i = tcc_operand_int(t, in, 3);
    }
    return TCC_NEXT;
}

/* The stage of an iteration that may be read; NULL, reported, if it may not be full. */
static const tcc_async_stage *full_stage(tcc_thread *t, const tcc_inst *in, int64_t i)
{
    const tcc_async_stage *s = tcc_async_owned_stage(t, in, i);
    bool waited = s && tcc_async_has_waited(t, tcc_async_operand(t, in, 0), s, i);
    if (s && !waited)
        TCC_WRONG(t->x, in->op, "%s of the stage of iteration %lld without waiting until it is full",
                  tcc_op_info_get(in->op->code)->name, (long long)i);
    return waited ? s : NULL;
}

tcc_outcome tcc_eval_async_read_word(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    if (!full_stage(t, in, i))
        return TCC_FAILED;
    const tcc_async_buffer *b = tcc_async_operand(t, in, 2);
    tcc_cells(t, in->results[0])[0] = b->cells[(size_t)(i % b->n_stages) * b->stage_cells];
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_read(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    const tcc_async_stage *s = full_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    tcc_async_buffer *b = tcc_async_operand(t, in, 2);
    int64_t number = i % b->n_stages;
    if (!tcc_async_have_met(t, in, b->put[number], "put") || !tcc_async_have_met(t, in, s->waited_at, "waited for"))
        return TCC_FAILED;
    b->read[number] = b->used = t->steps;
    tcc_async_ring *r = tcc_async_operand(t, in, 0);
    r->reading = r->meets || r->groups ? NULL : tcc_async_role_of(t);
    const tcc_attr *at = tcc_attr_list(&in->op->attrs, "at").list.items;
    const tcc_dim *to = in->op->results[0].type->dims;
    int64_t width = in->op->operands[2]->type->dims[2].size;
    const tcc_cell *from = b->cells + (size_t)number * b->stage_cells + at[0].i * width + at[1].i;
    tcc_cell *cells = tcc_cells(t, in->results[0]);
    for (int64_t row = 0; row < to[0].size; row++, from += width, cells += to[1].size)
        memcpy(cells, from, (size_t)to[1].size * sizeof *cells);
    return TCC_NEXT;
}

/* ---- MMAs ------------------------------------------------------------------------------ */

/* Cells of operand x, a or b; NULL, reported, if they cannot be read yet. */
static const tcc_cell *multiplied(tcc_thread *t, const tcc_inst *in, unsigned x, tcc_async_mma *p)
{
    if (in->op->operands[2 + x]->type->kind == TCC_KIND_tile)
        return tcc_readable(t, in, 2 + x) ? tcc_cells(t, in->operands[2 + x]) : NULL;
    unsigned first = x == 0 && in->op->n_operands >= 7 ? 5 : 0; /* its ring */
    const tcc_async_ring *r = tcc_async_operand(t, in, first);
    int64_t i = tcc_operand_int(t, in, first + 1);
    const tcc_async_stage *s = tcc_async_stage_of(t, in, r, i);
    if (s && !s->waited)
        TCC_WRONG(t->x, in->op, "async.mma reads the stage of iteration %lld without waiting until it is full",
                  (long long)i);
    if (!s || !s->waited)
        return NULL;
    tcc_async_buffer *b = tcc_async_operand(t, in, 2 + x);
    b->used = t->steps;
    p->operands[x].ring = r;
    p->operands[x].i = i;
    p->operands[x].buffer = b;
    return b->cells + (size_t)(i % b->n_stages) * b->stage_cells;
}

tcc_outcome tcc_eval_async_mma(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *r = in->op->results[0].type, *b = in->op->operands[3]->type;
    const int64_t mnk[] = {r->dims[0].size, r->dims[1].size, b->dims[1].size};
    tcc_async_mma p = {0};
    const tcc_cell *x = multiplied(t, in, 0, &p), *y = x ? multiplied(t, in, 1, &p) : NULL;
    if (!y)
        return TCC_FAILED;
    tcc_tile_multiply(t->x->run, x, y, tcc_mma_sums(t, in, 4), tcc_cells(t, in->results[0]), mnk, r);
    TCC_PUSH(t->x->run->scratch, &tcc_async_role_of(t)->mmas, p);
    t->regs[in->results[0]].mma = ++t->committed;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_mma_wait(tcc_thread *t, const tcc_inst *in)
{
    uint32_t pending = (uint32_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    uint32_t ended = t->committed > pending ? t->committed - pending : 0;
    if (t->waited < ended)
        t->waited = ended;
    tcc_copy_values(t, in->results, in->operands, 1, t->mask);
    if (t->regs[in->results[0]].mma <= t->waited)
        t->regs[in->results[0]].mma = 0;
    return TCC_NEXT;
}

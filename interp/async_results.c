/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/async.h"

/* Ways of sending. */
enum { BY_ENGINE = 1, IN_WORDS = 2 };

/* A number as an element of this type. */
static tcc_cell stored(const tcc_run *run, tcc_cell v, tcc_scalar elem)
{
    if (tcc_scalar_classify(elem) != TCC_CLASS_FLOAT)
        v.i = tcc_int_wrap(elem, v.i);
    else if (run->machine)
        v.f = tcc_round_float(v.f, elem);
    return v;
}

tcc_outcome tcc_eval_async_barrier(tcc_thread *t, const tcc_inst *in)
{
    (void)in;
    tcc_async_role_of(t)->met = t->steps;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_cluster_barrier(tcc_thread *t, const tcc_inst *in)
{
    struct tcc_async *own = tcc_async_of(t);
    struct tcc_role *role = tcc_async_role_of(t);
    if (!role->meets) {
        role->meets = own->met + 1;
        if (++own->coming == tcc_async_running_with(in->op)) {
            own->coming = 0;
            own->met++;
        }
    }
    for (unsigned r = 0; r < tcc_async_ctas(t->x); r++)
        if (tcc_async_of_cta(t->x, r)->met < role->meets)
            return TCC_WAIT(t, NULL, "at the cluster's barrier for CTA %u", r);
    role->meets = 0;
    return TCC_NEXT;
}

/* The buffer in the CTA that adds up; NULL, reported, where that need not be running. */
static tcc_async_buffer *first_buffer(tcc_thread *t, const tcc_inst *in, unsigned place)
{
    const char *name = tcc_op_info_get(in->op->code)->name;
    if (!tcc_async_of(t)->met)
        TCC_WRONG(t->x, in->op, "%s reaches into the shared memory of CTA %u of the cluster, which may not have begun",
                  name, place);
    else if (!t->x->ctas[place]->depth)
        TCC_WRONG(t->x, in->op, "%s reaches into the shared memory of CTA %u of the cluster, which has ended", name,
                  place);
    else
        return tcc_async_of_cta(t->x, place)->objects[tcc_operand_int(t, in, 1)];
    return NULL;
}

/* What is the CTA's own rank the op says; the stage that belongs to it may still be read, until all have met. */
tcc_outcome tcc_eval_async_contribute(tcc_thread *t, const tcc_inst *in)
{
    int64_t rank = tcc_operand_int(t, in, 2), apart = tcc_attr_int(&in->op->attrs, "apart", 1);
    int64_t sharing = in->op->operands[1]->type->dims[0].size + 1, place = t->rank - rank * apart;
    if (rank < 0 || rank >= sharing || place < 0 || place >= tcc_async_ctas(t->x))
        return TCC_WRONG(t->x, in->op, "async.contribute of rank %lld of %lld by CTA %u of the cluster",
                         (long long)rank, (long long)sharing, t->rank);
    if (!rank)
        return TCC_NEXT;
    tcc_async_buffer *b = first_buffer(t, in, (unsigned)place);
    if (!b)
        return TCC_FAILED;
    if (b->taken[rank - 1] > tcc_async_of(t)->met)
        return TCC_WRONG(t->x, in->op, "async.contribute to what CTA %lld of the cluster may still be reading",
                         (long long)place);
    tcc_async_clobber(tcc_async_of_cta(t->x, (unsigned)place), b, rank - 1);
    memcpy(b->cells + (size_t)(rank - 1) * b->stage_cells, tcc_cells(t, in->operands[0]),
           b->stage_cells * sizeof *b->cells);
    b->given[rank - 1] = tcc_async_of(t)->met + 1;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_collect(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *type = in->op->results[0].type;
    bool floats = tcc_scalar_classify(type->elem) == TCC_CLASS_FLOAT;
    tcc_copy_values(t, in->results, in->operands, 1, t->mask);
    tcc_cell *sum = tcc_cells(t, in->results[0]);
    tcc_async_buffer *b = tcc_async_operand(t, in, 1);
    unsigned met = tcc_async_of(t)->met;
    for (int64_t s = 0; !tcc_operand_int(t, in, 2) && s < b->n_stages; s++) {
        if (!b->given[s] || b->given[s] > met)
            return TCC_WRONG(t->x, in->op, "async.collect of what CTA %lld of the cluster may not have contributed yet",
                             (long long)s + 1);
        const tcc_cell *part = b->cells + (size_t)s * b->stage_cells;
        for (size_t i = 0; i < b->stage_cells; i++)
            sum[i] = stored(t->x->run,
                            floats ? (tcc_cell){.f = sum[i].f + part[i].f} : (tcc_cell){.i = sum[i].i + part[i].i},
                            type->elem);
        b->taken[s] = met + 1;
    }
    return TCC_NEXT;
}

/* Whether a warp may still read memory at b's addresses. */
static tcc_outcome check_free(tcc_thread *t, const tcc_inst *in, const tcc_async_buffer *b)
{
    const struct tcc_async *async = tcc_async_of(t);
    struct tcc_role *role = tcc_async_role_of(t);
    for (size_t i = 0; i < async->buffers.len; i++) {
        const tcc_async_buffer *other = async->buffers.data[i];
        bool over = false;
        for (int64_t s = 0; s < other->n_stages; s++)
            over |= other != b && tcc_async_overlap(b, 0, other, s);
        if (over && other->used && other->used > role->met)
            return TCC_WRONG(t->x, in->op,
                             "%s writes where stages are without async.barrier behind "
                             "the last MMA that reads them",
                             tcc_op_info_get(in->op->code)->name);
        for (size_t p = t->waited; over && p < role->mmas.len; p++)
            if (role->mmas.data[p].operands[0].buffer == other || role->mmas.data[p].operands[1].buffer == other)
                return TCC_WRONG(t->x, in->op, "%s writes where an MMA may still be reading",
                                 tcc_op_info_get(in->op->code)->name);
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_write(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *to = in->op->operands[0]->type, *tile = in->op->operands[3]->type;
    tcc_async_buffer *b = tcc_async_operand(t, in, 0);
    int64_t row = tcc_operand_int(t, in, 1), col = tcc_operand_int(t, in, 2);
    int64_t rows = tile->dims[0].size, cols = tile->dims[1].size, width = to->dims[2].size;
    if (row < 0 || col < 0 || row + rows > to->dims[1].size || col + cols > width)
        return TCC_WRONG(t->x, in->op, "async.write at row %lld, column %lld, outside the buffer", (long long)row,
                         (long long)col);
    if (b->sends)
        return TCC_WRONG(t->x, in->op, "async.write to a buffer that is being sent");
    if (check_free(t, in, b) != TCC_NEXT)
        return TCC_FAILED;
    tcc_async_clobber(tcc_async_of(t), b, 0);
    const tcc_cell *from = tcc_cells(t, in->operands[3]);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            b->cells[(row + i) * width + col + j] = stored(t->x->run, *from++, to->elem);
    b->unpublished = BY_ENGINE | IN_WORDS;
    return TCC_NEXT;
}

/* The intermediate contents of the buffer are not modelled. The warps synchronize before they write, unless they have
 * since they last read the buffer, and before they read. */
static tcc_outcome pass_through(tcc_thread *t, const tcc_inst *in)
{
    tcc_async_buffer *b = tcc_async_operand(t, in, 1);
    struct tcc_role *role = tcc_async_role_of(t);
    if (tcc_attr_int(&in->op->attrs, "met", 0) && b->used > role->met)
        return TCC_WRONG(t->x, in->op, "%s through a buffer that warps may still be reading: no async.barrier since",
                         tcc_op_info_get(in->op->code)->name);
    if (!tcc_attr_int(&in->op->attrs, "met", 0))
        role->met = t->steps;
    if (b->by && b->by != t->role)
        return TCC_WRONG(t->x, in->op, "%s through a buffer of another role", tcc_op_info_get(in->op->code)->name);
    b->by = t->role;
    if (b->sends)
        return TCC_WRONG(t->x, in->op, "%s through a buffer that is being sent", tcc_op_info_get(in->op->code)->name);
    if (check_free(t, in, b) != TCC_NEXT)
        return TCC_FAILED;
    tcc_async_clobber(tcc_async_of(t), b, 0);
    tcc_async_poison(b, 0);
    role->met = t->steps;
    b->used = t->steps + 1;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_exchange(tcc_thread *t, const tcc_inst *in)
{
    tcc_outcome outcome = pass_through(t, in);
    return outcome == TCC_NEXT ? tcc_eval_tile_convert(t, in) : outcome;
}

tcc_outcome tcc_eval_async_combine(tcc_thread *t, const tcc_inst *in)
{
    tcc_outcome outcome = pass_through(t, in);
    return outcome == TCC_NEXT ? tcc_eval_tile_reduce(t, in) : outcome;
}

static bool is_in_words(const tcc_op *op)
{
    return !strcmp(tcc_attr_str(&op->attrs, "copy", ""), "words");
}

tcc_outcome tcc_eval_async_publish(tcc_thread *t, const tcc_inst *in)
{
    const struct tcc_async *async = tcc_async_of(t);
    bool words = is_in_words(in->op);
    for (size_t i = 0; i < async->buffers.len; i++)
        async->buffers.data[i]->unpublished &= words ? BY_ENGINE : 0;
    for (size_t i = 0; i < async->rings.len && !words; i++)
        if (async->rings.data[i]->reading == t->role)
            async->rings.data[i]->reading = NULL;
    return TCC_NEXT;
}

static tcc_outcome arrive(tcc_exec *x, tcc_event *e)
{
    tcc_async_sending *s = e->data;
    tcc_window_store(x->run, &s->to, s->from->cells);
    s->from->sends--;
    s->over = true;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_send(tcc_thread *t, const tcc_inst *in)
{
    tcc_async_buffer *b = tcc_async_operand(t, in, 0);
    if (b->unpublished & (is_in_words(in->op) ? IN_WORDS : BY_ENGINE))
        return TCC_WRONG(t->x, in->op, "async.send of bytes that were not published");
    tcc_async_sending *s = TCC_NEW(t->x->run->scratch, tcc_async_sending);
    *s = (tcc_async_sending){.to = tcc_window_of(t, in, 1, 2, in->op->operands[0]->type, 1), .from = b};
    if (!tcc_window_is_valid(t, in, &s->to))
        return TCC_FAILED;
    b->sends++;
    TCC_PUSH(t->x->run->scratch, &tcc_async_role_of(t)->sends, s);
    TCC_PUSH(t->x->run->scratch, &t->x->events, (tcc_event){arrive, in->op, s, t, tcc_async_of(t)});
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_send_wait(tcc_thread *t, const tcc_inst *in)
{
    struct tcc_role *role = tcc_async_role_of(t);
    size_t pending = (size_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    size_t n = role->sends.len > pending ? role->sends.len - pending : 0;
    for (size_t i = 0; i < n; i++)
        if (!role->sends.data[i]->over)
            return TCC_WAIT(t, NULL, "until what it has sent is read");
    role->sends.len -= n;
    if (n)
        memmove(role->sends.data, role->sends.data + n, role->sends.len * sizeof *role->sends.data);
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_opaque(tcc_thread *t, const tcc_inst *in)
{
    tcc_copy_values(t, in->results, in->operands, 1, t->mask);
    return TCC_NEXT;
}

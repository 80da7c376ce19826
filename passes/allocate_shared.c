/* allocate-shared: allocate buffers and barriers in shared memory.
 *
 * Before:  %a = async.alloc …                  After:  %a = async.alloc … {offset = 0}
 *          %b = async.alloc …                          %b = async.alloc … {offset = 65536}
 *          %r = async.ring %a, %b …                    %r = async.ring %a, %b … {offset = 196608}
 *          %c = async.alloc …                          %c = async.alloc … {offset = 0}
 *          async.role { (loop of %r)                   async.role { (loop of %r)  async.barrier
 *                       async.write %c … }                          async.write %c … }
 *
 * Buffers outside rings, for staged results, reuse the memory of stages that are no longer used: then
 * all warps of the role synchronize before the first write. Exchanges whose buffer has memory of its own do not begin
 * with a barrier where another one is on all ways to them: they get the attribute `met`.
 *
 * Requires specialize-warps and chunk-epilogue. Preserves all else.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/shared.h"
#include "passes/passes.h"

enum { ALIGN = 1024 };

static bool is_of_ring(const tcc_value *buffer)
{
    for (const tcc_use *u = buffer->uses; u; u = u->next)
        if (u->op->code == TCC_OP_async_ring)
            return true;
    return false;
}

/* The first op of a block of a role that uses a buffer, if all uses are in that block. */
static tcc_op *first_use(const tcc_value *buffer)
{
    tcc_op *first = NULL;
    for (const tcc_use *u = buffer->uses; u; u = u->next) {
        const tcc_op *parent = u->op->block->parent;
        tcc_block *block = first ? first->block : u->op->block;
        while (!first && parent && parent->code != TCC_OP_async_role) {
            block = parent->block;
            parent = block->parent;
        }
        tcc_op *op = tcc_ancestor_in(u->op, block);
        if (!op || !block->parent || block->parent->code != TCC_OP_async_role)
            return NULL;
        if (!first || tcc_op_reaches(op, first))
            first = op;
    }
    return first;
}

/* Whether a buffer is unused from `op` on, in a role that waits for all copies to it: ops of other
 * roles that fill it end before. */
static bool is_free_at(const tcc_value *buffer, const tcc_op *op)
{
    bool used = false;
    for (const tcc_use *u = buffer->uses; u; u = u->next) {
        if (!(tcc_op_info_get(u->op->code)->effects & TCC_READS_SHARED))
            continue;
        const tcc_op *in = tcc_ancestor_in(u->op, op->block);
        if (!in || in == op || !tcc_op_reaches(in, op)) /* in it: a loop that uses both */
            return false;
        used = true;
    }
    return used;
}

static bool is_alloc(const tcc_op *op)
{
    return op->code == TCC_OP_async_alloc;
}

/* Whether other CTAs write to a buffer: their writes are not ordered with the ops of this one. */
static bool is_from_afar(const tcc_value *buffer)
{
    for (const tcc_use *u = buffer->uses; u; u = u->next)
        if (tcc_op_does(u->op->code, TCC_WRITES_SHARED) && tcc_op_does(u->op->code, TCC_CLUSTER))
            return true;
    return false;
}

/* Whether those that rings fill are free where this one is first used. */
static bool can_take_stages(const tcc_func *f, const tcc_op *alloc)
{
    const tcc_op *first = is_from_afar(&alloc->results[0]) ? NULL : first_use(&alloc->results[0]);
    for (tcc_op *op = f->body->first; first && op; op = tcc_walk_next(op, f->body))
        if (is_alloc(op) && is_of_ring(&op->results[0]) && !is_free_at(&op->results[0], first))
            return false;
    return first;
}

static int64_t place(tcc_op *op, int64_t at)
{
    tcc_attr_set_int(op->block->func->ir, &op->attrs, "offset", at);
    return at + tcc_shared_bytes(op);
}

static bool is_exchange(const tcc_op *op)
{
    return op->code == TCC_OP_async_exchange || op->code == TCC_OP_async_combine;
}

/* All warps of the role synchronize before op, if they do not anyway: an exchange of tiles begins with that. */
static void meet(tcc_op *op)
{
    if (is_exchange(op) || (op->prev && op->prev->code == TCC_OP_async_barrier))
        return;
    tcc_builder b = tcc_builder_before(op);
    b.loc = op->loc;
    TCC_EMIT_V(&b, async_barrier, NULL);
}

/* ---- exchanges ------------------------------------------------------------------------------- */

/* What a buffer's users are to an op behind them, on the way backwards from it. */
typedef enum seen { NOTHING, MET, USED } seen;

static seen look_at(const tcc_value *buffer, const tcc_op *op)
{
    for (const tcc_use *u = buffer->uses; u; u = u->next)
        if (tcc_ancestor_in(u->op, op->block) == op)
            return USED;
    return op->code == TCC_OP_async_barrier || is_exchange(op) ? MET : NOTHING;
}

/* From `last` on backwards in its block, up to its beginning. */
static seen look_back(const tcc_value *buffer, const tcc_op *last)
{
    seen f = NOTHING;
    for (const tcc_op *op = last; op && f == NOTHING; op = op->prev)
        f = look_at(buffer, op);
    return f;
}

/* Whether the warps have synchronized since they last used the buffer when they come to an op, from in front of it and,
 * in loops, from the iteration before. */
static bool have_met(const tcc_value *buffer, const tcc_op *op)
{
    for (;;) {
        seen f = look_back(buffer, op->prev);
        const tcc_op *parent = op->block->parent;
        if (f != NOTHING || !parent || parent->code == TCC_OP_async_role)
            return f != USED && parent;
        bool loops = parent->code == TCC_OP_scf_for;
        if ((!loops && parent->code != TCC_OP_scf_if) || (loops && look_back(buffer, op->block->last) != MET))
            return false;
        op = parent;
    }
}

/* Whether nothing else has bytes of a buffer's. */
static bool is_alone(const tcc_func *f, const tcc_op *alloc)
{
    int64_t begin = tcc_attr_int(&alloc->attrs, "offset", 0), end = begin + tcc_shared_bytes(alloc);
    bool alone = true;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        int64_t at = tcc_attr_int(&op->attrs, "offset", 0);
        alone &= op == alloc || !is_alloc(op) || at >= end || at + tcc_shared_bytes(op) <= begin;
    }
    return alone;
}

/* Exchanges need not begin with a barrier if one is on all ways to them. */
static void leave_barriers(const tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        const tcc_value *buffer = is_exchange(op) ? op->operands[1] : NULL;
        if (buffer && buffer->def && is_alloc(buffer->def) && is_alone(f, buffer->def) && have_met(buffer, op))
            tcc_attr_set_int(f->ir, &op->attrs, "met", 1);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    (void)ctx;
    int64_t stages = 0, over = 0, end;
    bool found = false;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        if ((is_alloc(op) || op->code == TCC_OP_async_ring) && tcc_attr_find(&op->attrs, "offset"))
            return TCC_OK; /* they have been given theirs */
        if (is_alloc(op) && is_of_ring(&op->results[0]))
            stages = place(op, stages);
        found |= is_alloc(op);
    }
    if (!found)
        return TCC_OK;
    tcc_op *meeting = NULL; /* the first op that uses memory of stages */
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        if (!is_alloc(op) || is_of_ring(&op->results[0]) || !can_take_stages(f, op))
            continue;
        over = place(op, over);
        tcc_op *first = first_use(&op->results[0]);
        if (!meeting || tcc_op_reaches(first, meeting))
            meeting = first;
    }
    if (meeting)
        meet(meeting);
    end = stages > over ? stages : over;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (is_alloc(op) && !tcc_attr_find(&op->attrs, "offset"))
            end = place(op, (end + ALIGN - 1) / ALIGN * ALIGN);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_async_ring)
            end = place(op, (end + 7) / 8 * 8);
    leave_barriers(f);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_allocate_shared = {
    "allocate-shared", "allocate buffers and barriers in shared memory", .run = run,
    .requires = TCC_UP_TO(roles),
    .leaves = TCC_STATE(places)};

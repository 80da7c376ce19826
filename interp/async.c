/* async: the async level: rings of stages, copies that land later, products that run on.
 *
 * The producer and the consumers are one thread each. A product is computed when it starts, and
 * is taken to be reading its stage and writing its result until async.mma_wait says otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "interp/tile.h"

typedef struct stage {
    int64_t owner;    /* iteration that acquired it last, -1: none */
    int64_t released; /* iteration that gave it back last, -1: none */
    size_t started, landed;
    bool committed, waited;
} stage;

typedef struct ring {
    stage *stages;
    int64_t n_stages;
} ring;

typedef struct buffer {
    tcc_cell *cells;
    size_t stage_cells;
    int64_t n_stages;
} buffer;

/* A product, by number: what it reads. */
typedef struct product {
    const ring *ring;
    int64_t i;
} product;

struct tcc_role {
    TCC_VEC(product) products;
};

struct tcc_async {
    void **objects; /* ring or buffer of each value */
    tcc_thread *roles[2];
    bool running;
};

static struct tcc_async *state_of(tcc_exec *x)
{
    if (!x->async) {
        x->async = TCC_NEW(x->run->scratch, struct tcc_async);
        x->async->objects = TCC_NEW_ARRAY(x->run->scratch, void *, x->program->n_values);
    }
    return x->async;
}

/* ---- memory ---------------------------------------------------------------------------- */

/* Objects are made once and used by CTA after CTA; their cell is their value's number. */
static void *object_of(tcc_thread *t, const tcc_inst *in, size_t size)
{
    uint32_t value = in->results[0];
    void **object = &state_of(t->x)->objects[value];
    if (!*object)
        *object = tcc_arena_alloc(t->x->run->scratch, size);
    tcc_cells(t, value)[0].i = value;
    return *object;
}

static void *operand_object(tcc_thread *t, const tcc_inst *in, unsigned operand)
{
    return t->x->async->objects[tcc_operand_int(t, in, operand)];
}

static void poison(buffer *b, int64_t stage_index, bool floats)
{
    tcc_cell *cells = b->cells + (size_t)stage_index * b->stage_cells;
    for (size_t i = 0; i < b->stage_cells; i++)
        cells[i] = floats ? (tcc_cell){.f = (double)NAN} : (tcc_cell){.i = INT32_MIN};
}

static bool holds_floats(const tcc_type *t)
{
    return tcc_scalar_classify(t->elem) == TCC_CLASS_FLOAT;
}

tcc_outcome tcc_eval_async_alloc(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *type = in->op->results[0].type;
    buffer *b = object_of(t, in, sizeof *b);
    b->n_stages = type->dims[0].size;
    b->stage_cells = (size_t)(tcc_type_count(type) / b->n_stages);
    if (!b->cells &&
        !tcc_exec_has_room(t->x, in->op, (uint64_t)tcc_type_count(type), sizeof(tcc_cell)))
        return TCC_FAILED;
    if (!b->cells)
        b->cells = TCC_NEW_ARRAY(t->x->run->scratch, tcc_cell, (size_t)tcc_type_count(type));
    for (int64_t s = 0; s < b->n_stages; s++)
        poison(b, s, holds_floats(type));
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_ring(tcc_thread *t, const tcc_inst *in)
{
    ring *r = object_of(t, in, sizeof *r);
    r->n_stages = tcc_attr_int(&in->op->attrs, "stages", 1);
    if (!r->stages && !tcc_exec_has_room(t->x, in->op, (uint64_t)r->n_stages, sizeof(stage)))
        return TCC_FAILED;
    if (!r->stages)
        r->stages = TCC_NEW_ARRAY(t->x->run->scratch, stage, (size_t)r->n_stages);
    for (int64_t s = 0; s < r->n_stages; s++)
        r->stages[s] = (stage){.owner = -1, .released = -1};
    return TCC_NEXT;
}

/* ---- rings ----------------------------------------------------------------------------- */

/* The stage of an iteration; NULL, reported, when it is not the iteration's. */
static stage *owned_stage(tcc_thread *t, const tcc_inst *in, int64_t i)
{
    ring *r = operand_object(t, in, 0);
    const char *name = tcc_op_info_get(in->op->code)->name;
    stage *s = i < 0 ? NULL : &r->stages[i % r->n_stages];
    if (s && s->owner == i && s->released != i)
        return s;
    TCC_WRONG(t->x, in->op, "%s of iteration %lld, whose stage was %s", name, (long long)i,
              s && s->owner > i    ? "acquired by a later one"
              : s && s->owner == i ? "released"
                                   : "not acquired");
    return NULL;
}

static bool is_full(const stage *s)
{
    return s->committed && s->landed == s->started;
}

tcc_outcome tcc_eval_async_acquire(tcc_thread *t, const tcc_inst *in)
{
    ring *r = operand_object(t, in, 0);
    int64_t i = tcc_operand_int(t, in, 1);
    if (i < 0)
        return TCC_WRONG(t->x, in->op, "async.acquire of iteration %lld", (long long)i);
    stage *s = &r->stages[i % r->n_stages];
    if (s->owner >= i)
        return TCC_WRONG(t->x, in->op, "async.acquire of iteration %lld after %lld", (long long)i,
                         (long long)s->owner);
    if (i >= r->n_stages && s->released < i - r->n_stages)
        return TCC_WAIT(t, NULL, "until iteration %lld releases its stage",
                        (long long)(i - r->n_stages));
    *s = (stage){.owner = i, .released = s->released};
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_commit(tcc_thread *t, const tcc_inst *in)
{
    stage *s = owned_stage(t, in, tcc_operand_int(t, in, 1));
    if (!s)
        return TCC_FAILED;
    s->committed = true;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_wait(tcc_thread *t, const tcc_inst *in)
{
    ring *r = operand_object(t, in, 0);
    int64_t i = tcc_operand_int(t, in, 1);
    stage *s = i < 0 ? NULL : &r->stages[i % r->n_stages];
    if (!s || s->owner < i || (s->owner == i && !is_full(s)))
        return TCC_WAIT(t, NULL, "until the stage of iteration %lld is full", (long long)i);
    if (!owned_stage(t, in, i))
        return TCC_FAILED;
    s->waited = true;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_release(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    if (i < 0)
        return TCC_NEXT;
    stage *s = owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    const ring *r = operand_object(t, in, 0);
    for (size_t p = t->waited; t->role && p < t->role->products.len; p++)
        if (t->role->products.data[p].ring == r && t->role->products.data[p].i == i)
            return TCC_WRONG(t->x, in->op,
                             "async.release of iteration %lld, whose stage an MMA may still be "
                             "reading",
                             (long long)i);
    if (!s->waited)
        return TCC_WRONG(t->x, in->op, "async.release of iteration %lld, which nobody waited for",
                         (long long)i);
    s->released = i;
    return TCC_NEXT;
}

/* ---- copies ---------------------------------------------------------------------------- */

typedef struct copy {
    tcc_window from;
    tcc_cell *to;
    stage *stage;
} copy;

static tcc_outcome land(tcc_exec *x, tcc_event *e)
{
    (void)x;
    const copy *c = e->data;
    tcc_window_load(&c->from, c->to);
    c->stage->landed++;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_copy(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    stage *s = owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    if (s->committed)
        return TCC_WRONG(t->x, in->op, "async.copy of iteration %lld after its commit",
                         (long long)i);
    const tcc_type *type = in->op->operands[2]->type;
    buffer *b = operand_object(t, in, 2);
    poison(b, i % b->n_stages, holds_floats(type));
    copy *c = TCC_NEW(t->x->run->scratch, copy);
    *c = (copy){.from = tcc_window_of(t, in, 3, 4, type, 1),
                .to = b->cells + (size_t)(i % b->n_stages) * b->stage_cells,
                .stage = s};
    s->started++;
    TCC_PUSH(t->x->run->scratch, &t->x->events, (tcc_event){land, in->op, c, t});
    return TCC_NEXT;
}

/* A tile in registers is there at once. */
tcc_outcome tcc_eval_async_put(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    stage *s = owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    if (s->committed)
        return TCC_WRONG(t->x, in->op, "async.put of iteration %lld after its commit",
                         (long long)i);
    const buffer *b = operand_object(t, in, 2);
    memcpy(b->cells + (size_t)(i % b->n_stages) * b->stage_cells, tcc_cells(t, in->operands[3]),
           b->stage_cells * sizeof *b->cells);
    return TCC_NEXT;
}

/* ---- products -------------------------------------------------------------------------- */

tcc_outcome tcc_eval_async_mma(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    stage *s = owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    if (!s->waited)
        return TCC_WRONG(t->x, in->op,
                         "async.mma reads the stage of iteration %lld without "
                         "waiting until it is full",
                         (long long)i);
    const buffer *a = operand_object(t, in, 2), *b = operand_object(t, in, 3);
    const tcc_type *r = in->op->results[0].type;
    const int64_t mnk[] = {r->dims[0].size, r->dims[1].size,
                           in->op->operands[2]->type->dims[2].size};
    tcc_tile_multiply(t->x->run, a->cells + (size_t)(i % a->n_stages) * a->stage_cells,
                      b->cells + (size_t)(i % b->n_stages) * b->stage_cells,
                      tcc_cells(t, in->operands[4]), tcc_cells(t, in->results[0]), mnk, i != 0, r);
    if (!t->role)
        t->role = TCC_NEW(t->x->run->scratch, struct tcc_role);
    TCC_PUSH(t->x->run->scratch, &t->role->products, (product){operand_object(t, in, 0), i});
    t->regs[in->results[0]].product = ++t->committed;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_mma_wait(tcc_thread *t, const tcc_inst *in)
{
    uint32_t pending = (uint32_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    uint32_t ended = t->committed > pending ? t->committed - pending : 0;
    if (t->waited < ended)
        t->waited = ended;
    tcc_copy_values(t, in->results, in->operands, 1, t->mask);
    if (t->regs[in->results[0]].product <= t->waited)
        t->regs[in->results[0]].product = 0;
    return TCC_NEXT;
}

/* ---- roles ----------------------------------------------------------------------------- */

static void start_role(tcc_thread *t, const tcc_inst *in, unsigned r)
{
    struct tcc_async *a = state_of(t->x);
    if (!a->roles[r]) {
        a->roles[r] = tcc_thread_create(t->x, &in->regions[r], t);
        return;
    }
    tcc_thread *role = a->roles[r];
    role->code = &in->regions[r];
    tcc_thread_restart(role);
    memcpy(role->cells, t->cells, t->x->program->n_cells * sizeof *t->cells);
    if (role->role)
        role->role->products.len = 0;
}

/* Nothing may be on its way when the roles have ended. */
static tcc_outcome check_end(tcc_thread *t, const tcc_inst *in)
{
    const struct tcc_async *a = t->x->async;
    for (unsigned r = 0; r < 2; r++)
        if (a->roles[r] && a->roles[r]->waited < a->roles[r]->committed)
            return TCC_WRONG(t->x, in->op, "a role ends before its MMAs");
    if (t->x->events.len)
        return TCC_WRONG(t->x, t->x->events.data[0].op, "this copy is never waited for");
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_roles(tcc_thread *t, const tcc_inst *in)
{
    struct tcc_async *a = state_of(t->x);
    if (!a->running) {
        for (unsigned r = 0; r < 2; r++)
            start_role(t, in, r);
        a->running = true;
        return TCC_JUMPED; /* back to this op */
    }
    if (a->roles[0]->depth || a->roles[1]->depth)
        return TCC_WAIT(t, NULL, "for the roles to end");
    a->running = false;
    return check_end(t, in);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/async.h"

#include <string.h>

#include "ir/shared.h"

unsigned tcc_async_ctas(const tcc_exec *x)
{
    return x->n_ctas ? x->n_ctas : 1;
}

struct tcc_async *tcc_async_of_cta(tcc_exec *x, unsigned rank)
{
    if (!x->async)
        x->async = TCC_NEW_ARRAY(x->run->scratch, struct tcc_async, tcc_async_ctas(x));
    struct tcc_async *a = &x->async[rank];
    if (!a->objects) {
        a->objects = TCC_NEW_ARRAY(x->run->scratch, void *, x->program->n_values);
        a->roles = TCC_MAP(x->run->scratch);
    }
    return a;
}

struct tcc_async *tcc_async_of(const tcc_thread *t)
{
    return tcc_async_of_cta(t->x, t->rank);
}

/* What a thread has done as a role before it was restarted. */
static void forget(struct tcc_role *role)
{
    if (!role)
        return;
    role->mmas.len = role->commits.len = role->sends.len = 0;
    role->met = 0;
    role->meets = 0;
    role->words = (tcc_map){.arena = role->words.arena};
}

void tcc_async_begin(tcc_exec *x)
{
    for (unsigned r = 0; r < x->n_ctas; r++) {
        struct tcc_async *a = tcc_async_of_cta(x, r);
        forget(x->ctas[r]->role);
        a->met = 0;
        a->coming = 0;
        for (size_t i = 0; i < a->rings.len; i++)
            a->rings.data[i]->made = false;
    }
}

/* ---- memory ---------------------------------------------------------------------------- */

/* Objects are made once and used by CTA after CTA; their cell is their value's number. */
static void *object_of(tcc_thread *t, const tcc_inst *in, size_t size)
{
    uint32_t value = in->results[0];
    void **object = &tcc_async_of(t)->objects[value];
    if (!*object)
        *object = tcc_arena_alloc(t->x->run->scratch, size);
    tcc_cells(t, value)[0].i = value;
    return *object;
}

void *tcc_async_operand(tcc_thread *t, const tcc_inst *in, unsigned operand)
{
    return tcc_async_of(t)->objects[tcc_operand_int(t, in, operand)];
}

void tcc_async_poison(tcc_async_buffer *b, int64_t stage_index)
{
    tcc_cell *cells = b->cells + (size_t)stage_index * b->stage_cells;
    for (size_t i = 0; i < b->stage_cells; i++)
        cells[i] = tcc_undefined_cell(b->elem);
}

bool tcc_async_overlap(const tcc_async_buffer *a, int64_t i, const tcc_async_buffer *b, int64_t j)
{
    int64_t from = a->offset + i * a->stage_bytes, other = b->offset + j * b->stage_bytes;
    return a->offset >= 0 && b->offset >= 0 && from < other + b->stage_bytes && other < from + a->stage_bytes;
}

void tcc_async_clobber(const struct tcc_async *async, const tcc_async_buffer *b, int64_t i)
{
    for (size_t o = 0; o < async->buffers.len; o++) {
        tcc_async_buffer *other = async->buffers.data[o];
        for (int64_t s = 0; other != b && s < other->n_stages; s++)
            if (tcc_async_overlap(b, i, other, s))
                tcc_async_poison(other, s);
    }
}

tcc_outcome tcc_eval_async_alloc(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *type = in->op->results[0].type;
    tcc_async_buffer *b = object_of(t, in, sizeof *b);
    b->n_stages = type->dims[0].size;
    b->stage_cells = (size_t)(tcc_type_count(type) / b->n_stages);
    if (!b->cells && !tcc_exec_has_room(t->x, in->op, (uint64_t)tcc_type_count(type), sizeof(tcc_cell)))
        return TCC_FAILED;
    if (!b->cells) {
        b->cells = TCC_NEW_ARRAY(t->x->run->scratch, tcc_cell, (size_t)tcc_type_count(type));
        b->put = TCC_NEW_ARRAY(t->x->run->scratch, uint64_t, (size_t)b->n_stages * 2);
        b->read = b->put + b->n_stages;
        b->given = TCC_NEW_ARRAY(t->x->run->scratch, unsigned, (size_t)b->n_stages * 2);
        b->taken = b->given + b->n_stages;
        TCC_PUSH(t->x->run->scratch, &tcc_async_of(t)->buffers, b);
    }
    b->offset = tcc_attr_int(&in->op->attrs, "offset", -1);
    b->stage_bytes = tcc_panels_of(in->op).stage_bytes;
    b->elem = type->elem;
    b->unpublished = 0;
    b->sends = 0;
    b->used = 0;
    b->by = NULL;
    for (int64_t s = 0; s < b->n_stages; s++) {
        tcc_async_poison(b, s);
        b->put[s] = b->read[s] = 0;
        b->given[s] = b->taken[s] = 0;
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_ring(tcc_thread *t, const tcc_inst *in)
{
    tcc_async_ring *r = object_of(t, in, sizeof *r);
    r->n_stages = tcc_attr_int(&in->op->attrs, "stages", 1);
    r->turns = tcc_is_of_turns(in->op);
    r->readers = tcc_readers_of(in->op).roles;
    if (!r->stages && !tcc_exec_has_room(t->x, in->op, (uint64_t)r->n_stages, sizeof(tcc_async_stage)))
        return TCC_FAILED;
    if (!r->stages) {
        r->stages = TCC_NEW_ARRAY(t->x->run->scratch, tcc_async_stage, (size_t)r->n_stages);
        TCC_PUSH(t->x->run->scratch, &tcc_async_of(t)->rings, r);
    }
    r->groups = tcc_is_of_groups(in->op);
    r->meets = !tcc_has_mbarriers(in->op) && !r->groups;
    r->reading = NULL;
    r->made = true;
    r->ctas = (unsigned)tcc_attr_int(&in->op->attrs, "cluster", 1);
    r->fillers = tcc_fillers_of(in->op);
    if (tcc_async_ctas(t->x) % r->ctas)
        return TCC_WRONG(t->x, in->op, "async.ring of a cluster of %u in one of %u", r->ctas, tcc_async_ctas(t->x));
    for (int64_t s = 0; s < r->n_stages; s++)
        r->stages[s] = (tcc_async_stage){.owner = -1, .released = -1};
    return TCC_NEXT;
}

/* ---- rings ----------------------------------------------------------------------------- */

tcc_async_stage *tcc_async_stage_of(tcc_thread *t, const tcc_inst *in, const tcc_async_ring *r, int64_t i)
{
    const char *name = tcc_op_info_get(in->op->code)->name;
    tcc_async_stage *s = i < 0 ? NULL : &r->stages[i % r->n_stages];
    if (s && s->owner == i && s->released != i)
        return s;
    TCC_WRONG(t->x, in->op, "%s of iteration %lld, whose stage was %s", name, (long long)i,
              s && s->owner > i    ? "acquired by a later one"
              : s && s->owner == i ? "released"
                                   : "not acquired");
    return NULL;
}

tcc_async_stage *tcc_async_owned_stage(tcc_thread *t, const tcc_inst *in, int64_t i)
{
    return tcc_async_stage_of(t, in, tcc_async_operand(t, in, 0), i);
}

static bool is_full(const tcc_async_stage *s)
{
    return s->committed && (s->bytes ? s->landed_bytes == s->bytes : s->landed == s->started);
}

void *tcc_async_object_in(tcc_thread *t, const tcc_inst *in, unsigned operand, unsigned rank)
{
    const char *name = tcc_op_info_get(in->op->code)->name;
    const tcc_async_ring *r = tcc_async_of_cta(t->x, rank)->objects[tcc_operand_int(t, in, 0)];
    if (rank != t->rank && !t->x->ctas[rank]->depth)
        TCC_WRONG(t->x, in->op, "%s reaches into the shared memory of CTA %u of the cluster, which has ended", name,
                  rank);
    else if (!r || !r->made)
        TCC_WRONG(t->x, in->op,
                  "%s reaches into the shared memory of CTA %u of the cluster, which has no ring there yet", name,
                  rank);
    else
        return tcc_async_of_cta(t->x, rank)->objects[tcc_operand_int(t, in, operand)];
    return NULL;
}

/* The place in the cluster of the n-th that fills a ring's stages, beginning with the thread's own; in no order. */
static unsigned filler_at(const tcc_thread *t, const tcc_async_ring *r, unsigned n)
{
    tcc_peers rows = r->fillers.along[0], columns = r->fillers.along[1];
    if (n < rows.n)
        return (unsigned)tcc_peer_place(rows, t->rank, (tcc_peer_number(rows, t->rank) + n) % rows.n);
    n -= (unsigned)rows.n - 1;
    return (unsigned)tcc_peer_place(columns, t->rank, (tcc_peer_number(columns, t->rank) + n) % columns.n);
}

static bool is_word_of_cluster(const tcc_async_ring *r)
{
    return r->readers && r->ctas > 1;
}

unsigned tcc_async_n_filled(const tcc_async_ring *r)
{
    return is_word_of_cluster(r) ? r->ctas : 1;
}

unsigned tcc_async_filled(const tcc_thread *t, const tcc_async_ring *r, unsigned n)
{
    return is_word_of_cluster(r) ? n : t->rank;
}

/* The stage of an iteration there. */
static tcc_async_stage *filled_stage(tcc_thread *t, const tcc_inst *in, int64_t i, unsigned n)
{
    const tcc_async_ring *r = tcc_async_operand(t, in, 0);
    r = tcc_async_object_in(t, in, 0, tcc_async_filled(t, r, n));
    return r ? &r->stages[i % r->n_stages] : NULL;
}

static bool may_fill(tcc_thread *t, const tcc_inst *in, const tcc_async_ring *r)
{
    if (!is_word_of_cluster(r) || (!t->rank && r->ctas == tcc_async_ctas(t->x)))
        return true;
    TCC_WRONG(t->x, in->op, "%s by CTA %u of a cluster, for whose words the first is there",
              tcc_op_info_get(in->op->code)->name, t->rank);
    return false;
}

/* In a ring of a cluster an iteration is released when all CTAs to which this one copies have released it. */
static bool is_released(tcc_thread *t, const tcc_inst *in, const tcc_async_ring *r, int64_t i)
{
    unsigned n = is_word_of_cluster(r) ? r->ctas : (unsigned)tcc_fillers_count(&r->fillers);
    for (unsigned c = 0; c < n; c++) {
        unsigned rank = is_word_of_cluster(r) ? c : filler_at(t, r, c);
        const tcc_async_ring *of = tcc_async_of_cta(t->x, rank)->objects[tcc_operand_int(t, in, 0)];
        if (!of || !of->made || of->stages[i % r->n_stages].released < i)
            return false;
    }
    return true;
}

/* Nothing is in the stage, or on its way. */
static void clear(tcc_async_stage *s)
{
    *s = (tcc_async_stage){.owner = s->owner, .released = s->released};
}

tcc_outcome tcc_eval_async_acquire(tcc_thread *t, const tcc_inst *in)
{
    tcc_async_ring *r = tcc_async_operand(t, in, 0);
    int64_t i = tcc_operand_int(t, in, 1);
    if (i < 0)
        return TCC_WRONG(t->x, in->op, "async.acquire of iteration %lld", (long long)i);
    if (!may_fill(t, in, r))
        return TCC_FAILED;
    tcc_async_stage *s = &r->stages[i % r->n_stages];
    if (s->owner >= i)
        return TCC_WRONG(t->x, in->op, "async.acquire of iteration %lld after %lld", (long long)i, (long long)s->owner);
    int64_t before = r->turns ? i - 1 : i - r->n_stages;
    if (before >= 0 && !is_released(t, in, r, before))
        return TCC_WAIT(t, NULL, "until iteration %lld releases its %s", (long long)before,
                        r->turns ? "turn" : "stage");
    for (unsigned c = 0; c < tcc_async_n_filled(r); c++) {
        s = filled_stage(t, in, i, c);
        if (!s)
            return TCC_FAILED;
        if (r->ctas == 1 || r->readers)
            clear(s);
        s->owner = i;
        s->waited = r->turns;
    }
    return TCC_NEXT;
}

struct tcc_role *tcc_async_role_of(tcc_thread *t)
{
    if (!t->role)
        t->role = TCC_NEW(t->x->run->scratch, struct tcc_role);
    return t->role;
}

tcc_outcome tcc_eval_async_commit(tcc_thread *t, const tcc_inst *in)
{
    const tcc_async_ring *r = tcc_async_operand(t, in, 0);
    int64_t i = tcc_operand_int(t, in, 1);
    tcc_async_stage *s = tcc_async_owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    if (s->committed)
        return TCC_WRONG(t->x, in->op, "async.commit of iteration %lld for the second time", (long long)i);
    for (unsigned c = 0; c < tcc_async_n_filled(r); c++) {
        s = filled_stage(t, in, i, c);
        if (!s)
            return TCC_FAILED;
        s->committed = true;
        s->bytes = tcc_attr_int(&in->op->attrs, "bytes", 0);
    }
    if (r->groups)
        TCC_PUSH(t->x->run->scratch, &tcc_async_role_of(t)->commits, (tcc_async_commit){r, i});
    return TCC_NEXT;
}

static void **word_of(tcc_thread *t, const tcc_async_stage *s)
{
    struct tcc_role *role = tcc_async_role_of(t);
    role->words.arena = t->x->run->scratch;
    return tcc_map_at(&role->words, s);
}

bool tcc_async_has_waited(tcc_thread *t, const tcc_async_ring *r, const tcc_async_stage *s, int64_t i)
{
    return s->waited && (!r->readers || (intptr_t)*word_of(t, s) == i + 1);
}

/* Waits for all groups but the last `pending`, among which must be that of iteration i. */
static tcc_outcome wait_for_groups(tcc_thread *t, const tcc_inst *in, const tcc_async_ring *r, int64_t i)
{
    const struct tcc_role *role = tcc_async_role_of(t);
    size_t pending = (size_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    size_t n = role->commits.len > pending ? role->commits.len - pending : 0;
    bool found = false;
    for (size_t c = 0; c < n; c++) {
        const tcc_async_commit *of = &role->commits.data[c];
        const tcc_async_stage *s = &of->ring->stages[of->i % of->ring->n_stages];
        if (s->owner == of->i && !is_full(s))
            return TCC_WAIT(t, NULL, "until the copies of iteration %lld have landed", (long long)of->i);
        found |= of->ring == r && of->i == i;
    }
    if (!found)
        return TCC_WRONG(t->x, in->op, "async.wait for iteration %lld, whose copies may be among the last %zu groups",
                         (long long)i, pending);
    tcc_async_stage *s = tcc_async_owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    s->waited = true;
    s->waited_at = t->steps;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_wait(tcc_thread *t, const tcc_inst *in)
{
    tcc_async_ring *r = tcc_async_operand(t, in, 0);
    int64_t i = tcc_operand_int(t, in, 1);
    if (r->groups)
        return wait_for_groups(t, in, r, i);
    tcc_async_stage *s = i < 0 ? NULL : &r->stages[i % r->n_stages];
    if (!s || s->owner < i || (s->owner == i && !is_full(s)))
        return TCC_WAIT(t, NULL, "until the stage of iteration %lld is full", (long long)i);
    if (!tcc_async_owned_stage(t, in, i))
        return TCC_FAILED;
    s->waited = true;
    if (r->readers)
        *word_of(t, s) = (void *)(intptr_t)(i + 1);
    return TCC_NEXT;
}

static bool reads(const tcc_async_mma *p, const tcc_async_ring *r, int64_t i)
{
    for (int x = 0; x < 2; x++)
        if (p->operands[x].ring == r && p->operands[x].i == i)
            return true;
    return false;
}

tcc_outcome tcc_eval_async_release(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    if (i < 0)
        return TCC_NEXT;
    tcc_async_stage *s = tcc_async_owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    const tcc_async_ring *r = tcc_async_operand(t, in, 0);
    for (size_t p = t->waited; t->role && p < t->role->mmas.len; p++)
        if (reads(&t->role->mmas.data[p], r, i))
            return TCC_WRONG(t->x, in->op,
                             "async.release of iteration %lld, whose stage an MMA may still be "
                             "reading",
                             (long long)i);
    if (!tcc_async_has_waited(t, r, s, i))
        return TCC_WRONG(t->x, in->op, "async.release of iteration %lld, which was never waited for", (long long)i);
    if (r->readers) {
        *word_of(t, s) = NULL;
        if (++s->given_back < r->readers)
            return TCC_NEXT;
    }
    if (t->role && r->reading == t->role)
        return TCC_WRONG(t->x, in->op, "async.release of iteration %lld without async.publish since it was read",
                         (long long)i);
    if (is_word_of_cluster(r) && !tcc_async_object_in(t, in, 0, 0))
        return TCC_FAILED;
    for (unsigned c = 0; c < tcc_fillers_count(&r->fillers); c++)
        if (!tcc_async_object_in(t, in, 0, filler_at(t, r, c)))
            return TCC_FAILED;
    s->released = i;
    if (r->ctas > 1 && !r->readers) /* what others copy may land before the next acquire */
        clear(s);
    return TCC_NEXT;
}

bool tcc_async_have_met(tcc_thread *t, const tcc_inst *in, uint64_t step, const char *what)
{
    if (!step || tcc_async_role_of(t)->met > step)
        return true;
    TCC_WRONG(t->x, in->op, "%s without async.barrier since the stage was %s", tcc_op_info_get(in->op->code)->name,
              what);
    return false;
}

/* ---- roles ----------------------------------------------------------------------------- */

static bool is_role(const tcc_op *op)
{
    return op && op->code == TCC_OP_async_role;
}

size_t tcc_async_running_with(const tcc_op *op)
{
    const tcc_op *role = tcc_role_of(op->block->parent);
    size_t n = 1;
    for (const tcc_op *o = role ? role->prev : NULL; is_role(o); o = o->prev)
        n++;
    for (const tcc_op *o = role ? role->next : NULL; is_role(o); o = o->next)
        n++;
    return n;
}

static void start_role(tcc_thread *t, const tcc_inst *in)
{
    void **slot = tcc_map_at(&tcc_async_of(t)->roles, in->op);
    if (!*slot) {
        *slot = tcc_thread_create(t->x, &in->regions[0], t);
        return;
    }
    tcc_thread *role = *slot;
    tcc_thread_restart(role);
    memcpy(role->cells, t->cells, t->x->program->n_cells * sizeof *t->cells);
    forget(role->role);
}

/* Nothing may be on its way when the roles have ended. */
static tcc_outcome check_end(tcc_thread *t, const tcc_thread *role, const tcc_op *op)
{
    if (role->waited < role->committed)
        return TCC_WRONG(t->x, op, "a role ends before its MMAs");
    for (size_t i = 0; i < t->x->events.len; i++)
        if (t->x->events.data[i].cta == tcc_async_of(t))
            return TCC_WRONG(t->x, t->x->events.data[i].op, "this copy is never waited for");
    return TCC_NEXT;
}

/* Roles are begun one after the other; the last one's op waits for all of them. */
tcc_outcome tcc_eval_async_role(tcc_thread *t, const tcc_inst *in)
{
    struct tcc_async *a = tcc_async_of(t);
    const tcc_op *first = in->op;
    for (; is_role(first->prev); first = first->prev)
        continue;
    size_t number = 0;
    for (const tcc_op *op = first; op != in->op; op = op->next)
        number++;
    if (a->running == number) {
        start_role(t, in);
        a->running++;
        return is_role(in->op->next) ? TCC_NEXT : TCC_JUMPED; /* back to this op */
    }
    for (const tcc_op *op = first; is_role(op); op = op->next)
        if (((const tcc_thread *)tcc_map_get(&a->roles, op))->depth)
            return TCC_WAIT(t, NULL, "for the roles to end");
    a->running = 0;
    for (const tcc_op *op = first; is_role(op); op = op->next)
        if (check_end(t, tcc_map_get(&a->roles, op), op) != TCC_NEXT)
            return TCC_FAILED;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_one(tcc_thread *t, const tcc_inst *in)
{
    tcc_thread_enter(t, in, 0, t->mask);
    return TCC_JUMPED;
}

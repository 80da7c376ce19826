/* async: the async level: rings of stages, copies that land later, MMAs that run on.
 *
 * The producer and the consumers are one thread each. An MMA is computed when it starts, and
 * is taken to be reading its stage and writing its result until async.mma_wait says otherwise.
 *
 * CTAs of a cluster run together, each with stages of its own. What one copies to all counts in each, there and
 * when it lands; where a stage is still in use, or a CTA has no stages yet or any more, that is wrong.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/tile.h"
#include "ir/shared.h"

typedef struct stage {
    int64_t owner;    /* iteration that acquired it last, -1: none */
    int64_t released; /* iteration that gave it back last, -1: none */
    size_t started, landed;
    int64_t bytes, landed_bytes; /* awaited, and there; bytes 0: they are not counted */
    bool committed, waited;
    uint64_t waited_at; /* of a ring of groups: the step of its role at which it last was waited for */
} stage;

typedef struct ring {
    bool made;     /* by the CTA that runs now */
    unsigned ctas; /* that fill its stages; 1: its own does */
    stage *stages;
    int64_t n_stages;
    bool meets;  /* it is filled and emptied by barriers alone, */
    bool groups; /* or by them and groups of copies that are waited for */
    const struct tcc_role *reading; /* that has read stages to registers and has not published since */
    bool turns; /* they are owned, and nothing else */
} ring;

typedef struct buffer {
    tcc_cell *cells;
    size_t stage_cells;
    int64_t n_stages;
    int64_t offset, stage_bytes; /* in shared memory; offset -1: it has no place yet */
    tcc_scalar elem;
    uint64_t *put, *read; /* of each stage: the step of its role at which it last was, from or to registers */
    unsigned unpublished; /* how what was written may not be sent yet */
    size_t sends;     /* on their way */
    uint64_t used;    /* the step of its role at which an MMA last began to read it */
    const struct tcc_role *by; /* whose warps exchange tiles by way of it */
    tcc_cell *whole;   /* room for a tile of which CTAs copy a part each */
    unsigned *given, *taken; /* of each stage: how often the cluster had met when it was contributed, and collected */
} buffer;

/* Ways of sending. */
enum { BY_ENGINE = 1, IN_WORDS = 2 };

/* An MMA, by number: the stages that its operands are in; a ring that is NULL: in none. */
typedef struct mma {
    struct {
        const ring *ring;
        int64_t i;
        const buffer *buffer;
    } operands[2];
} mma;

static bool reads(const mma *p, const ring *r, int64_t i)
{
    for (int x = 0; x < 2; x++)
        if (p->operands[x].ring == r && p->operands[x].i == i)
            return true;
    return false;
}

/* An iteration whose copies are a group. */
typedef struct commit {
    const ring *ring;
    int64_t i;
} commit;

/* A buffer on its way to a tensor. */
typedef struct sending {
    tcc_window to;
    buffer *from;
    bool over;
} sending;

struct tcc_role {
    TCC_VEC(mma) mmas;
    TCC_VEC(sending *) sends;   /* in order */
    TCC_VEC(commit) commits; /* to rings of groups, in order */
    uint64_t met; /* the step at which all warps of the role last met */
    unsigned meets; /* the how many-th time it waits for at the cluster's barrier; 0: it does not */
};

struct tcc_async { /* of a CTA */
    void **objects; /* ring or buffer of each value */
    TCC_VEC(buffer *) buffers;
    TCC_VEC(ring *) rings;
    tcc_map roles;  /* async.role -> its thread */
    size_t running; /* roles of those that run together which have begun */
    unsigned met;   /* how often all of it has come to the cluster's barrier, */
    size_t coming;  /* to which so many of its roles have come since */
};

static unsigned ctas_of(const tcc_exec *x)
{
    return x->n_ctas ? x->n_ctas : 1;
}

/* Of a CTA of the cluster. */
static struct tcc_async *state_of_cta(tcc_exec *x, unsigned rank)
{
    if (!x->async)
        x->async = TCC_NEW_ARRAY(x->run->scratch, struct tcc_async, ctas_of(x));
    struct tcc_async *a = &x->async[rank];
    if (!a->objects) {
        a->objects = TCC_NEW_ARRAY(x->run->scratch, void *, x->program->n_values);
        a->roles = TCC_MAP(x->run->scratch);
    }
    return a;
}

static struct tcc_async *state_of(const tcc_thread *t)
{
    return state_of_cta(t->x, t->rank);
}

/* What a thread has done as a role before it was restarted. */
static void forget(struct tcc_role *role)
{
    if (!role)
        return;
    role->mmas.len = role->commits.len = role->sends.len = 0;
    role->met = 0;
    role->meets = 0;
}

void tcc_async_begin(tcc_exec *x)
{
    for (unsigned r = 0; r < x->n_ctas; r++) {
        struct tcc_async *a = state_of_cta(x, r);
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
    void **object = &state_of(t)->objects[value];
    if (!*object)
        *object = tcc_arena_alloc(t->x->run->scratch, size);
    tcc_cells(t, value)[0].i = value;
    return *object;
}

static void *operand_object(tcc_thread *t, const tcc_inst *in, unsigned operand)
{
    return state_of(t)->objects[tcc_operand_int(t, in, operand)];
}

static void poison(buffer *b, int64_t stage_index)
{
    tcc_cell *cells = b->cells + (size_t)stage_index * b->stage_cells;
    for (size_t i = 0; i < b->stage_cells; i++)
        cells[i] = tcc_undefined_cell(b->elem);
}

static bool overlap(const buffer *a, int64_t i, const buffer *b, int64_t j)
{
    int64_t from = a->offset + i * a->stage_bytes, other = b->offset + j * b->stage_bytes;
    return a->offset >= 0 && b->offset >= 0 && from < other + b->stage_bytes &&
           other < from + a->stage_bytes;
}

/* Writing to a stage destroys what lies in the same place. */
static void clobber(const struct tcc_async *async, const buffer *b, int64_t i)
{
    for (size_t o = 0; o < async->buffers.len; o++) {
        buffer *other = async->buffers.data[o];
        for (int64_t s = 0; other != b && s < other->n_stages; s++)
            if (overlap(b, i, other, s))
                poison(other, s);
    }
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
    if (!b->cells) {
        b->cells = TCC_NEW_ARRAY(t->x->run->scratch, tcc_cell, (size_t)tcc_type_count(type));
        b->put = TCC_NEW_ARRAY(t->x->run->scratch, uint64_t, (size_t)b->n_stages * 2);
        b->read = b->put + b->n_stages;
        b->given = TCC_NEW_ARRAY(t->x->run->scratch, unsigned, (size_t)b->n_stages * 2);
        b->taken = b->given + b->n_stages;
        TCC_PUSH(t->x->run->scratch, &state_of(t)->buffers, b);
    }
    b->offset = tcc_attr_int(&in->op->attrs, "offset", -1);
    b->stage_bytes = tcc_panels_of(in->op).stage_bytes;
    b->elem = type->elem;
    b->unpublished = 0;
    b->sends = 0;
    b->used = 0;
    b->by = NULL;
    for (int64_t s = 0; s < b->n_stages; s++) {
        poison(b, s);
        b->put[s] = b->read[s] = 0;
        b->given[s] = b->taken[s] = 0;
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_ring(tcc_thread *t, const tcc_inst *in)
{
    ring *r = object_of(t, in, sizeof *r);
    r->n_stages = tcc_attr_int(&in->op->attrs, "stages", 1);
    r->turns = tcc_is_of_turns(in->op);
    if (!r->stages && !tcc_exec_has_room(t->x, in->op, (uint64_t)r->n_stages, sizeof(stage)))
        return TCC_FAILED;
    if (!r->stages) {
        r->stages = TCC_NEW_ARRAY(t->x->run->scratch, stage, (size_t)r->n_stages);
        TCC_PUSH(t->x->run->scratch, &state_of(t)->rings, r);
    }
    r->groups = tcc_is_of_groups(in->op);
    r->meets = !tcc_has_mbarriers(in->op) && !r->groups;
    r->reading = NULL;
    r->made = true;
    r->ctas = (unsigned)tcc_attr_int(&in->op->attrs, "cluster", 1);
    if (r->ctas > 1 && r->ctas != ctas_of(t->x))
        return TCC_WRONG(t->x, in->op, "async.ring of a cluster of %u in one of %u", r->ctas, ctas_of(t->x));
    for (int64_t s = 0; s < r->n_stages; s++)
        r->stages[s] = (stage){.owner = -1, .released = -1};
    return TCC_NEXT;
}

/* ---- rings ----------------------------------------------------------------------------- */

/* The stage of an iteration of a ring; NULL, reported, when it is not the iteration's. */
static stage *stage_of(tcc_thread *t, const tcc_inst *in, const ring *r, int64_t i)
{
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

static stage *owned_stage(tcc_thread *t, const tcc_inst *in, int64_t i)
{
    return stage_of(t, in, operand_object(t, in, 0), i);
}

static bool is_full(const stage *s)
{
    return s->committed && (s->bytes ? s->landed_bytes == s->bytes : s->landed == s->started);
}

/* What operand 0 or 2 of an op is in a CTA of the cluster; NULL, reported, where that is not running. */
static void *object_in(tcc_thread *t, const tcc_inst *in, unsigned operand, unsigned rank)
{
    const char *name = tcc_op_info_get(in->op->code)->name;
    const ring *r = state_of_cta(t->x, rank)->objects[tcc_operand_int(t, in, 0)];
    if (rank != t->rank && !t->x->ctas[rank]->depth)
        TCC_WRONG(t->x, in->op, "%s reaches into the shared memory of CTA %u of the cluster, which has ended", name,
                  rank);
    else if (!r || !r->made)
        TCC_WRONG(t->x, in->op, "%s reaches into the shared memory of CTA %u of the cluster, which has no ring there yet",
                  name, rank);
    else
        return state_of_cta(t->x, rank)->objects[tcc_operand_int(t, in, operand)];
    return NULL;
}

/* Of a ring of a cluster an iteration is released when all CTAs have released it. */
static bool is_released(tcc_thread *t, const tcc_inst *in, const ring *r, int64_t i)
{
    for (unsigned c = 0; c < r->ctas; c++) {
        unsigned rank = r->ctas == 1 ? t->rank : c;
        const ring *of = state_of_cta(t->x, rank)->objects[tcc_operand_int(t, in, 0)];
        if (!of || !of->made || of->stages[i % r->n_stages].released < i)
            return false;
    }
    return true;
}

/* Nothing is in the stage, or on its way. */
static void clear(stage *s)
{
    *s = (stage){.owner = s->owner, .released = s->released};
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
    int64_t before = r->turns ? i - 1 : i - r->n_stages;
    if (before >= 0 && !is_released(t, in, r, before))
        return TCC_WAIT(t, NULL, "until iteration %lld releases its %s", (long long)before,
                        r->turns ? "turn" : "stage");
    if (r->ctas == 1)
        clear(s);
    s->owner = i;
    s->waited = r->turns;
    return TCC_NEXT;
}

static struct tcc_role *role_of(tcc_thread *t)
{
    if (!t->role)
        t->role = TCC_NEW(t->x->run->scratch, struct tcc_role);
    return t->role;
}

tcc_outcome tcc_eval_async_commit(tcc_thread *t, const tcc_inst *in)
{
    const ring *r = operand_object(t, in, 0);
    int64_t i = tcc_operand_int(t, in, 1);
    stage *s = owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    if (s->committed)
        return TCC_WRONG(t->x, in->op, "async.commit of iteration %lld for the second time",
                         (long long)i);
    s->committed = true;
    s->bytes = tcc_attr_int(&in->op->attrs, "bytes", 0);
    if (r->groups)
        TCC_PUSH(t->x->run->scratch, &role_of(t)->commits, (commit){r, i});
    return TCC_NEXT;
}

/* Waits for all groups but the last `pending`, among which must be that of iteration i. */
static tcc_outcome wait_for_groups(tcc_thread *t, const tcc_inst *in, const ring *r, int64_t i)
{
    const struct tcc_role *role = role_of(t);
    size_t pending = (size_t)tcc_attr_int(&in->op->attrs, "pending", 0);
    size_t n = role->commits.len > pending ? role->commits.len - pending : 0;
    bool found = false;
    for (size_t c = 0; c < n; c++) {
        const commit *of = &role->commits.data[c];
        const stage *s = &of->ring->stages[of->i % of->ring->n_stages];
        if (s->owner == of->i && !is_full(s))
            return TCC_WAIT(t, NULL, "until the copies of iteration %lld have landed", (long long)of->i);
        found |= of->ring == r && of->i == i;
    }
    if (!found)
        return TCC_WRONG(t->x, in->op, "async.wait for iteration %lld, whose copies may be among the last %zu groups",
                         (long long)i, pending);
    stage *s = owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    s->waited = true;
    s->waited_at = t->steps;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_wait(tcc_thread *t, const tcc_inst *in)
{
    ring *r = operand_object(t, in, 0);
    int64_t i = tcc_operand_int(t, in, 1);
    if (r->groups)
        return wait_for_groups(t, in, r, i);
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
    for (size_t p = t->waited; t->role && p < t->role->mmas.len; p++)
        if (reads(&t->role->mmas.data[p], r, i))
            return TCC_WRONG(t->x, in->op,
                             "async.release of iteration %lld, whose stage an MMA may still be "
                             "reading",
                             (long long)i);
    if (!s->waited)
        return TCC_WRONG(t->x, in->op, "async.release of iteration %lld, which nobody waited for",
                         (long long)i);
    if (t->role && r->reading == t->role)
        return TCC_WRONG(t->x, in->op,
                         "async.release of iteration %lld without async.publish since it was read",
                         (long long)i);
    for (unsigned c = 0; r->ctas > 1 && c < r->ctas; c++)
        if (!object_in(t, in, 0, c))
            return TCC_FAILED;
    s->released = i;
    if (r->ctas > 1) /* what others copy may land before the next acquire */
        clear(s);
    return TCC_NEXT;
}

/* All warps of the role met behind the step at which a stage last was put, read or waited for. */
static bool have_met_since(tcc_thread *t, const tcc_inst *in, uint64_t step, const char *what)
{
    if (!step || role_of(t)->met > step)
        return true;
    TCC_WRONG(t->x, in->op, "%s without async.barrier since the stage was %s",
              tcc_op_info_get(in->op->code)->name, what);
    return false;
}

/* ---- copies ---------------------------------------------------------------------------- */

typedef struct copy {
    tcc_window from;
    buffer *to;
    stage *stage;
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
    stage *s = c->stage;
    if (c->n == c->to->stage_cells) {
        tcc_window_load(&c->from, cells_of(c));
    } else {
        tcc_window_load(&c->from, c->to->whole);
        memcpy(cells_of(c) + c->first, c->to->whole + c->first, c->n * sizeof(tcc_cell));
    }
    s->landed++;
    s->landed_bytes += c->bytes;
    if (s->bytes && s->landed_bytes > s->bytes)
        return TCC_WRONG(x, e->op, "%lld bytes have landed in the stage of iteration %lld, of which "
                         "async.commit says %lld",
                         (long long)s->landed_bytes, (long long)s->owner, (long long)s->bytes);
    return TCC_NEXT;
}

/* Whether the stage of an iteration is that iteration's already, or nobody's. */
static bool is_free(const ring *r, int64_t i)
{
    const stage *s = &r->stages[i % r->n_stages];
    return s->owner == i || s->owner == s->released;
}

/* A tile, or the CTA's part of one that several copy, on its way to the stage of a CTA. */
static tcc_outcome start_copy(tcc_thread *t, const tcc_inst *in, unsigned rank, unsigned parts)
{
    tcc_arena *scratch = t->x->run->scratch;
    const tcc_type *type = in->op->operands[2]->type;
    int64_t i = tcc_operand_int(t, in, 1);
    const ring *r = object_in(t, in, 0, rank);
    buffer *b = r ? object_in(t, in, 2, rank) : NULL;
    if (!b)
        return TCC_FAILED;
    if (!is_free(r, i))
        return TCC_WRONG(t->x, in->op, "async.copy of iteration %lld to a stage of CTA %u of the cluster that has not "
                         "been released there", (long long)i, rank);
    copy *c = TCC_NEW(scratch, copy);
    *c = (copy){.from = tcc_window_of(t, in, 3, 4, type, 1),
                .to = b,
                .stage = &r->stages[i % r->n_stages],
                .number = i % b->n_stages,
                .n = b->stage_cells / parts};
    c->first = parts == 1 ? 0 : t->rank * c->n;
    c->bytes = (int64_t)c->n * tcc_scalar_bits(type->elem) / 8;
    if (parts > 1 && !b->whole)
        b->whole = TCC_NEW_ARRAY(scratch, tcc_cell, b->stage_cells);
    for (size_t e = 0; e < c->n; e++)
        cells_of(c)[c->first + e] = tcc_undefined_cell(b->elem);
    const struct tcc_async *cta = state_of_cta(t->x, rank);
    clobber(cta, b, c->number);
    if (!tcc_window_is_valid(t, in, &c->from))
        return TCC_FAILED;
    c->stage->started++;
    TCC_PUSH(scratch, &t->x->events, (tcc_event){land, in->op, c, t, cta});
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
    const ring *r = operand_object(t, in, 0);
    buffer *b = operand_object(t, in, 2);
    if ((r->meets || r->groups) && !have_met_since(t, in, b->read[i % b->n_stages], "read"))
        return TCC_FAILED;
    b->put[i % b->n_stages] = r->meets ? t->steps : 0;
    unsigned ctas = (unsigned)tcc_attr_int(&in->op->attrs, "multicast", 1);
    if (ctas > 1 && ctas != r->ctas)
        return TCC_WRONG(t->x, in->op, "async.copy to %u CTAs, into a ring of %u", ctas, r->ctas);
    for (unsigned c = 0; c < ctas; c++)
        if (start_copy(t, in, ctas == 1 ? t->rank : c, ctas) != TCC_NEXT)
            return TCC_FAILED;
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
    int64_t number = i % b->n_stages;
    if (!have_met_since(t, in, b->read[number], "read"))
        return TCC_FAILED;
    b->put[number] = t->steps;
    clobber(state_of(t), b, number);
    memcpy(b->cells + (size_t)number * b->stage_cells, tcc_cells(t, in->operands[3]),
           b->stage_cells * sizeof *b->cells);
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_read(tcc_thread *t, const tcc_inst *in)
{
    int64_t i = tcc_operand_int(t, in, 1);
    const stage *s = owned_stage(t, in, i);
    if (!s)
        return TCC_FAILED;
    if (!s->waited)
        return TCC_WRONG(t->x, in->op,
                         "async.read of the stage of iteration %lld without waiting until it is full",
                         (long long)i);
    buffer *b = operand_object(t, in, 2);
    int64_t number = i % b->n_stages;
    if (!have_met_since(t, in, b->put[number], "put") || !have_met_since(t, in, s->waited_at, "waited for"))
        return TCC_FAILED;
    b->read[number] = b->used = t->steps;
    ring *r = operand_object(t, in, 0);
    r->reading = r->meets || r->groups ? NULL : role_of(t);
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

/* Cells of operand x, a or b; NULL, reported, when they are not there to be read. */
static const tcc_cell *multiplied(tcc_thread *t, const tcc_inst *in, unsigned x, mma *p)
{
    if (in->op->operands[2 + x]->type->kind == TCC_KIND_tile)
        return tcc_readable(t, in, 2 + x) ? tcc_cells(t, in->operands[2 + x]) : NULL;
    unsigned first = x == 0 && in->op->n_operands >= 7 ? 5 : 0; /* its ring */
    const ring *r = operand_object(t, in, first);
    int64_t i = tcc_operand_int(t, in, first + 1);
    const stage *s = stage_of(t, in, r, i);
    if (s && !s->waited)
        TCC_WRONG(t->x, in->op,
                  "async.mma reads the stage of iteration %lld without waiting until it is full",
                  (long long)i);
    if (!s || !s->waited)
        return NULL;
    buffer *b = operand_object(t, in, 2 + x);
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
    mma p = {0};
    const tcc_cell *x = multiplied(t, in, 0, &p), *y = x ? multiplied(t, in, 1, &p) : NULL;
    if (!y)
        return TCC_FAILED;
    tcc_tile_multiply(t->x->run, x, y, tcc_mma_sums(t, in, 4), tcc_cells(t, in->results[0]), mnk, r);
    TCC_PUSH(t->x->run->scratch, &role_of(t)->mmas, p);
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

/* ---- results --------------------------------------------------------------------------- */

static bool is_role(const tcc_op *op)
{
    return op && op->code == TCC_OP_async_role;
}

/* How many threads of a CTA come to where op is: one, or one for each role that runs with that one. */
static size_t running_with(const tcc_op *op)
{
    const tcc_op *role = op->block->parent;
    while (role && role->code != TCC_OP_async_role)
        role = role->block->parent;
    size_t n = 1;
    for (const tcc_op *o = role ? role->prev : NULL; is_role(o); o = o->prev)
        n++;
    for (const tcc_op *o = role ? role->next : NULL; is_role(o); o = o->next)
        n++;
    return n;
}

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
    role_of(t)->met = t->steps;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_cluster_barrier(tcc_thread *t, const tcc_inst *in)
{
    struct tcc_async *own = state_of(t);
    struct tcc_role *role = role_of(t);
    if (!role->meets) {
        role->meets = own->met + 1;
        if (++own->coming == running_with(in->op)) {
            own->coming = 0;
            own->met++;
        }
    }
    for (unsigned r = 0; r < ctas_of(t->x); r++)
        if (state_of_cta(t->x, r)->met < role->meets)
            return TCC_WAIT(t, NULL, "at the cluster's barrier for CTA %u", r);
    role->meets = 0;
    return TCC_NEXT;
}

/* The buffer in the CTA of rank 0; NULL, reported, where that need not be running. */
static buffer *first_buffer(tcc_thread *t, const tcc_inst *in)
{
    const char *name = tcc_op_info_get(in->op->code)->name;
    if (!state_of(t)->met)
        TCC_WRONG(t->x, in->op, "%s reaches into the shared memory of CTA 0 of the cluster, which may not have begun", name);
    else if (!t->x->ctas[0]->depth)
        TCC_WRONG(t->x, in->op, "%s reaches into the shared memory of CTA 0 of the cluster, which has ended", name);
    else
        return state_of_cta(t->x, 0)->objects[tcc_operand_int(t, in, 1)];
    return NULL;
}

/* What is the CTA's own rank the op says; the stage that belongs to it may still be read, until all have met. */
tcc_outcome tcc_eval_async_contribute(tcc_thread *t, const tcc_inst *in)
{
    int64_t rank = tcc_operand_int(t, in, 2);
    if (rank < 0 || rank >= ctas_of(t->x))
        return TCC_WRONG(t->x, in->op, "async.contribute of rank %lld of %u", (long long)rank, ctas_of(t->x));
    if (!rank)
        return TCC_NEXT;
    buffer *b = first_buffer(t, in);
    if (!b)
        return TCC_FAILED;
    if (b->taken[rank - 1] > state_of(t)->met)
        return TCC_WRONG(t->x, in->op, "async.contribute to what CTA 0 of the cluster may still be reading");
    clobber(state_of_cta(t->x, 0), b, rank - 1);
    memcpy(b->cells + (size_t)(rank - 1) * b->stage_cells, tcc_cells(t, in->operands[0]),
           b->stage_cells * sizeof *b->cells);
    b->given[rank - 1] = state_of(t)->met + 1;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_collect(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *type = in->op->results[0].type;
    bool floats = tcc_scalar_classify(type->elem) == TCC_CLASS_FLOAT;
    tcc_copy_values(t, in->results, in->operands, 1, t->mask);
    tcc_cell *sum = tcc_cells(t, in->results[0]);
    buffer *b = operand_object(t, in, 1);
    unsigned met = state_of(t)->met;
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

/* Whether a warp may still read what lies where b does. */
static tcc_outcome check_free(tcc_thread *t, const tcc_inst *in, const buffer *b)
{
    const struct tcc_async *async = state_of(t);
    struct tcc_role *role = role_of(t);
    for (size_t i = 0; i < async->buffers.len; i++) {
        const buffer *other = async->buffers.data[i];
        bool over = false;
        for (int64_t s = 0; s < other->n_stages; s++)
            over |= other != b && overlap(b, 0, other, s);
        if (over && other->used && other->used > role->met)
            return TCC_WRONG(t->x, in->op, "%s writes where stages are without async.barrier behind "
                             "the last MMA that reads them",
                             tcc_op_info_get(in->op->code)->name);
        for (size_t p = t->waited; over && p < role->mmas.len; p++)
            if (role->mmas.data[p].operands[0].buffer == other ||
                role->mmas.data[p].operands[1].buffer == other)
                return TCC_WRONG(t->x, in->op, "%s writes where an MMA may still be reading",
                                 tcc_op_info_get(in->op->code)->name);
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_write(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *to = in->op->operands[0]->type, *tile = in->op->operands[3]->type;
    buffer *b = operand_object(t, in, 0);
    int64_t row = tcc_operand_int(t, in, 1), col = tcc_operand_int(t, in, 2);
    int64_t rows = tile->dims[0].size, cols = tile->dims[1].size, width = to->dims[2].size;
    if (row < 0 || col < 0 || row + rows > to->dims[1].size || col + cols > width)
        return TCC_WRONG(t->x, in->op, "async.write at row %lld, column %lld, outside the buffer",
                         (long long)row, (long long)col);
    if (b->sends)
        return TCC_WRONG(t->x, in->op, "async.write to a buffer that is being sent");
    if (check_free(t, in, b) != TCC_NEXT)
        return TCC_FAILED;
    clobber(state_of(t), b, 0);
    const tcc_cell *from = tcc_cells(t, in->operands[3]);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < cols; j++)
            b->cells[(row + i) * width + col + j] = stored(t->x->run, *from++, to->elem);
    b->unpublished = BY_ENGINE | IN_WORDS;
    return TCC_NEXT;
}

/* What warps leave in the buffer on the way is nobody's business. They meet first. */
static tcc_outcome pass_through(tcc_thread *t, const tcc_inst *in)
{
    buffer *b = operand_object(t, in, 1);
    role_of(t)->met = t->steps;
    if (b->by && b->by != t->role)
        return TCC_WRONG(t->x, in->op, "%s by way of a buffer of another role",
                         tcc_op_info_get(in->op->code)->name);
    b->by = t->role;
    if (b->sends)
        return TCC_WRONG(t->x, in->op, "%s by way of a buffer that is being sent",
                         tcc_op_info_get(in->op->code)->name);
    if (check_free(t, in, b) != TCC_NEXT)
        return TCC_FAILED;
    clobber(state_of(t), b, 0);
    poison(b, 0);
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
    const struct tcc_async *async = state_of(t);
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
    sending *s = e->data;
    tcc_window_store(x->run, &s->to, s->from->cells);
    s->from->sends--;
    s->over = true;
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_send(tcc_thread *t, const tcc_inst *in)
{
    buffer *b = operand_object(t, in, 0);
    if (b->unpublished & (is_in_words(in->op) ? IN_WORDS : BY_ENGINE))
        return TCC_WRONG(t->x, in->op, "async.send of bytes that were not published");
    sending *s = TCC_NEW(t->x->run->scratch, sending);
    *s = (sending){.to = tcc_window_of(t, in, 1, 2, in->op->operands[0]->type, 1), .from = b};
    if (!tcc_window_is_valid(t, in, &s->to))
        return TCC_FAILED;
    b->sends++;
    TCC_PUSH(t->x->run->scratch, &role_of(t)->sends, s);
    TCC_PUSH(t->x->run->scratch, &t->x->events, (tcc_event){arrive, in->op, s, t, state_of(t)});
    return TCC_NEXT;
}

tcc_outcome tcc_eval_async_send_wait(tcc_thread *t, const tcc_inst *in)
{
    struct tcc_role *role = role_of(t);
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

tcc_outcome tcc_eval_async_pin(tcc_thread *t, const tcc_inst *in)
{
    (void)t, (void)in;
    return TCC_NEXT;
}

/* ---- roles ----------------------------------------------------------------------------- */

static void start_role(tcc_thread *t, const tcc_inst *in)
{
    void **slot = tcc_map_at(&state_of(t)->roles, in->op);
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
        if (t->x->events.data[i].cta == state_of(t))
            return TCC_WRONG(t->x, t->x->events.data[i].op, "this copy is never waited for");
    return TCC_NEXT;
}

/* Roles are begun one after the other; the last one's op waits for all of them. */
tcc_outcome tcc_eval_async_role(tcc_thread *t, const tcc_inst *in)
{
    struct tcc_async *a = state_of(t);
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

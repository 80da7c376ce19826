/* interleave: spread a loop's accesses to memory among its matrix instructions.
 *
 * Before:  %c1 = amdgcn.wmma … 16 of them, of what the iteration before has read
 *          amdgcn.ds.store … all of them       amdgcn.buffer.load … all of them
 *          amdgcn.ds.load … all of them        (the next round)
 * After:   amdgcn.waitcnt {ds = 0}
 *          amdgcn.wmma …                       those that have the first operand in common: a column
 *          amdgcn.waitcnt {load = 0}   amdgcn.ds.store …
 *          amdgcn.wmma …  amdgcn.buffer.load …  amdgcn.wmma …  amdgcn.ds.load …      the other columns
 *
 * A loop that multiplies what the previous iteration has read is divided into rounds: a round ends where a
 * matrix instruction needs what was read in it, and at a barrier. In a round, stores wait for the first
 * column, so that their data have arrived from memory by then; one load from memory follows each matrix
 * instruction; LDS is read as soon as enough registers are free, after the last instruction that uses them
 * has been issued. Loads from memory may move to the next round, because nothing in the loop writes to
 * memory. Everything else keeps its order.
 *
 * LLVM's scheduler keeps this order (sched_barrier): otherwise it moves reads of LDS up, needs more than 256
 * registers and spills.
 *
 * Requires nothing. Preserves control flow.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/passes.h"
#include "support/map.h"

typedef TCC_VEC(tcc_op *) ops;

typedef enum class { PURE, MMA, STORE, LOAD, READ, FENCE, PIN, OTHER } class;

/* A round, in program order except as stated. */
typedef struct round {
    ops fence, mmas, stores, loads;
    ops reads; /* or what they are put together to */
} round;

typedef struct loop {
    tcc_ir *ir;
    tcc_arena *scratch;
    tcc_block *body;
    tcc_map last_use; /* what matrix instructions multiply -> the last one that does */
    tcc_map placed;   /* ops that are in `order` */
    ops order;
    TCC_VEC(round) rounds;
} loop;

/* ---- what there is ----------------------------------------------------------------------- */

static class class_of(const tcc_op *op)
{
    switch (op->code) {
    case TCC_OP_amdgcn_wmma: return MMA;
    case TCC_OP_amdgcn_ds_store: return STORE;
    case TCC_OP_amdgcn_ds_load: return READ;
    case TCC_OP_amdgcn_buffer_load: return LOAD;
    case TCC_OP_amdgcn_waitcnt:
    case TCC_OP_amdgcn_s_barrier: return FENCE;
    case TCC_OP_amdgcn_sched_barrier: return PIN;
    case TCC_OP_scf_if: /* of what not all threads store */
        for (int r = 0; r < 2; r++)
            for (const tcc_op *in = op->regions[r]->first; in; in = in->next)
                if (in->code != TCC_OP_scf_yield && class_of(in) != STORE && class_of(in) != PURE)
                    return OTHER;
        return op->n_results ? OTHER : STORE;
    default: return tcc_op_info_get(op->code)->flags & TCC_PURE && !op->n_regions ? PURE : OTHER;
    }
}

/* The vec to which a load of LDS contributes, or the load itself. */
static tcc_op *group_of(tcc_op *read)
{
    const tcc_use *use = read->results[0].uses;
    bool packed = read->results[0].n_uses == 1 && use->op->code == TCC_OP_vec_pack &&
                  use->op->block == read->block;
    return packed ? use->op : read;
}

/* The vec of which an operand of a matrix instruction is a part. */
static const tcc_value *source_of(const tcc_value *v)
{
    while (v->def && v->def->code == TCC_OP_vec_slice)
        v = v->def->operands[0];
    return v;
}

/* Whether v was read from LDS by ops of the round. */
static bool is_read_in(const round *r, const tcc_value *v)
{
    v = source_of(v);
    bool any = false;
    for (size_t i = 0; v->def && i < r->reads.len; i++)
        any |= r->reads.data[i] == v->def;
    return any;
}

static bool multiplies_what_is_read(const round *r, const tcc_op *mma)
{
    return is_read_in(r, mma->operands[0]) || is_read_in(r, mma->operands[1]);
}

static round *begin_round(loop *p)
{
    TCC_PUSH(p->scratch, &p->rounds, (round){.fence = {0}});
    return &p->rounds.data[p->rounds.len - 1];
}

/* Cuts the body; false when there is something in it that this pass knows nothing of, or nothing to do. */
static bool cut(loop *p)
{
    round *r = begin_round(p);
    bool any = false;
    for (tcc_op *op = p->body->first; op != p->body->last; op = op->next) {
        class c = class_of(op);
        bool fenced = r->mmas.len || r->stores.len || r->loads.len || r->reads.len;
        if (c == OTHER)
            return false;
        if ((c == FENCE && fenced) || (c == STORE && r->reads.len) ||
            (c == MMA && multiplies_what_is_read(r, op)))
            r = begin_round(p);
        if (c == MMA) {
            if (!any && source_of(op->operands[0])->def)
                return false; /* nothing was read ahead */
            any = true;
            for (int i = 0; i < 2; i++)
                *tcc_map_at(&p->last_use, source_of(op->operands[i])) = op;
        }
        ops *to = c == MMA                              ? &r->mmas
                  : c == STORE || (c == PIN && r->stores.len) ? &r->stores
                  : c == LOAD                           ? &r->loads
                  : c == READ                           ? &r->reads
                  : c == FENCE                          ? &r->fence
                                                        : NULL;
        tcc_op *placed = c == READ ? group_of(op) : op;
        if (to && (!to->len || to->data[to->len - 1] != placed))
            TCC_PUSH(p->scratch, to, placed);
    }
    return any;
}

/* ---- the new order ----------------------------------------------------------------------- */

static void place(loop *p, tcc_op *op);

/* The values of the body that ops in a region use. */
static void place_operands(loop *p, const tcc_op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i]->def && op->operands[i]->def->block == p->body)
            place(p, op->operands[i]->def);
    for (unsigned r = 0; r < op->n_regions; r++)
        for (const tcc_op *in = op->regions[r]->first; in; in = in->next)
            place_operands(p, in);
}

/* Behind what it is computed from. */
static void place(loop *p, tcc_op *op)
{
    void **slot = tcc_map_at(&p->placed, op);
    if (*slot)
        return;
    *slot = op;
    place_operands(p, op);
    TCC_PUSH(p->scratch, &p->order, op);
}

static tcc_op *create(loop *p, tcc_opcode code, const char *attr)
{
    tcc_builder b = tcc_builder_before(p->body->last);
    b.loc = p->body->last->loc;
    tcc_op *op = tcc_op_create(&b, code, 0, NULL, 0, NULL);
    tcc_attr_set_int(p->ir, &op->attrs, attr, 0);
    place(p, op);
    return op;
}

static void pin(loop *p)
{
    if (!p->order.len || p->order.data[p->order.len - 1]->code != TCC_OP_amdgcn_sched_barrier)
        create(p, TCC_OP_amdgcn_sched_barrier, "mask");
}

static void place_all(loop *p, const ops *all)
{
    for (size_t i = 0; i < all->len; i++)
        place(p, all->data[i]);
}

/* Stores, when what they store has come from memory, and where the loads to come begin. */
static void store(loop *p, const round *r, const ops *loads, size_t load)
{
    if (!r->stores.len)
        return;
    pin(p);
    create(p, TCC_OP_amdgcn_waitcnt, "load");
    pin(p);
    place_all(p, &r->stores);
    for (; load < loads->len; load++)
        place_operands(p, loads->data[load]);
    pin(p);
}

static int64_t words_of(const tcc_value *v)
{
    return tcc_type_count(v->type);
}

/* Registers that are dead after this matrix instruction. */
static int64_t words_freed(const loop *p, const tcc_op *mma)
{
    int64_t words = 0;
    for (int i = 0; i < 2; i++) {
        const tcc_value *source = source_of(mma->operands[i]);
        if (tcc_map_get(&p->last_use, source) == mma)
            words += words_of(source);
    }
    return words;
}

/* The next of some ops, of which *at were placed; false when there is none. */
static bool place_next(loop *p, const ops *all, size_t *at)
{
    if (*at == all->len)
        return false;
    place(p, all->data[(*at)++]);
    return true;
}

/* A round; *load of the loads of all rounds up to it were placed. */
static void do_round(loop *p, const round *r, const ops *loads, size_t *load)
{
    size_t read = 0;
    int64_t free = 0;
    bool stored = !r->stores.len, by_itself = !r->mmas.len;
    if (by_itself) {
        place_all(p, &r->fence);
        store(p, r, loads, *load);
        place_all(p, &r->reads);
        return;
    }
    pin(p);
    place_all(p, &r->fence);
    if (!r->fence.len)
        create(p, TCC_OP_amdgcn_waitcnt, "ds");
    pin(p);
    for (size_t i = 0; i < r->mmas.len; i++) {
        tcc_op *mma = r->mmas.data[i];
        const tcc_op *next = i + 1 < r->mmas.len ? r->mmas.data[i + 1] : NULL;
        place(p, mma);
        if (stored && place_next(p, loads, load))
            pin(p);
        free += words_freed(p, mma);
        bool column = !next || next->operands[0] != mma->operands[0];
        if (column)
            pin(p);
        if (column && !stored) {
            store(p, r, loads, *load);
            stored = true;
        }
        while (stored && read < r->reads.len && words_of(&r->reads.data[read]->results[0]) <= free) {
            free -= words_of(&r->reads.data[read]->results[0]);
            pin(p);
            place_next(p, &r->reads, &read);
            pin(p);
        }
    }
    while (place_next(p, &r->reads, &read))
        continue;
}

static void reorder(loop *p)
{
    ops loads = {0};
    size_t load = 0;
    for (size_t i = 0; i < p->rounds.len; i++) {
        const round *r = &p->rounds.data[i];
        while (r->stores.len && place_next(p, &loads, &load)) /* what they store may be among them */
            continue;
        for (size_t j = 0; j < r->loads.len; j++)
            TCC_PUSH(p->scratch, &loads, r->loads.data[j]);
        do_round(p, r, &loads, &load);
    }
    while (place_next(p, &loads, &load))
        continue;
    tcc_op *last = p->body->last;
    place_operands(p, last);
    tcc_builder b = tcc_builder_before(last);
    for (size_t i = 0; i < p->order.len; i++)
        tcc_op_move(&b, p->order.data[i]);
    for (tcc_op *op = p->body->first, *next; op != p->order.data[0]; op = next) {
        next = op->next; /* that are unused, and pins from before */
        tcc_op_erase(op);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    ops loops = {0};
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_scf_for)
            TCC_PUSH(ctx->scratch, &loops, op);
    for (size_t i = 0; i < loops.len; i++) {
        loop *p = TCC_NEW(ctx->scratch, loop);
        p->ir = ctx->ir;
        p->scratch = ctx->scratch;
        p->body = loops.data[i]->regions[0];
        p->last_use = TCC_MAP(ctx->scratch);
        p->placed = TCC_MAP(ctx->scratch);
        if (cut(p)) {
            reorder(p);
            *changed = true;
        }
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_interleave = {
    "interleave", "spread a loop's accesses to memory among its matrix instructions", .run = run};

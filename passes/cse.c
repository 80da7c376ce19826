/* cse: compute equal values once.
 *
 * Before:  %a = arith.add %x, %y      After:  %a = arith.add %x, %y
 *          %b = arith.add %y, %x              tile.store %a, …
 *          tile.store %b, …
 *
 * Pure ops with the same operands, attributes and types are equal; of two that commute, the order
 * does not matter. An op takes the value of an equal one before it in its block or around it.
 *
 * Requires nothing. Preserves control flow.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/memory.h"
#include "passes/passes.h"

typedef struct entry {
    struct entry *next;  /* in its bucket: inner blocks first */
    struct entry *older; /* in order of time, to leave a block */
    uint64_t hash;
    tcc_op *op;
} entry;

typedef struct cse {
    tcc_map written; /* tensors */
    tcc_arena *scratch;
    tcc_map replaced; /* value -> the equal one */
    entry **buckets;
    size_t n_buckets; /* a power of two */
    entry *newest;
    TCC_VEC(tcc_op *) dead;
} cse;

/* A number or a word, by which constants and comparisons differ; is_equal compares lists. */
static uint64_t hash_attr(const tcc_attr *a)
{
    uint64_t bits = 0;
    if (a->kind == TCC_ATTR_INT)
        bits = (uint64_t)a->i;
    else if (a->kind == TCC_ATTR_FLOAT)
        memcpy(&bits, &a->f, sizeof bits);
    else if (a->kind == TCC_ATTR_STR)
        bits = (uintptr_t)a->s;
    return tcc_hash_mix(1, bits);
}

static uint64_t hash(const tcc_op *op)
{
    uint64_t h = tcc_hash_mix(0, op->code);
    unsigned i = 0;
    if (tcc_op_info_get(op->code)->flags & TCC_COMMUTES) {
        h = tcc_hash_mix(h, (uintptr_t)op->operands[0] + (uintptr_t)op->operands[1]);
        i = 2;
    }
    for (; i < op->n_operands; i++)
        h = tcc_hash_mix(h, (uintptr_t)op->operands[i]);
    for (i = 0; i < op->n_results; i++)
        h = tcc_hash_mix(h, (uintptr_t)op->results[i].type);
    for (size_t a = 0; a < op->attrs.len; a++)
        h ^= hash_attr(&op->attrs.data[a].value);
    return h;
}

static bool operands_equal(const tcc_op *a, const tcc_op *b)
{
    if (a->n_operands != b->n_operands)
        return false;
    if ((tcc_op_info_get(a->code)->flags & TCC_COMMUTES) && a->operands[0] == b->operands[1] &&
        a->operands[1] == b->operands[0])
        return true;
    for (unsigned i = 0; i < a->n_operands; i++)
        if (a->operands[i] != b->operands[i])
            return false;
    return true;
}

static bool is_equal(const tcc_op *a, const tcc_op *b)
{
    if (a->code != b->code || a->n_results != b->n_results || !operands_equal(a, b))
        return false;
    for (unsigned i = 0; i < a->n_results; i++)
        if (a->results[i].type != b->results[i].type)
            return false;
    return tcc_attrs_equal(&a->attrs, &b->attrs);
}

static void visit_op(cse *c, tcc_op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        tcc_value *equal = tcc_map_get(&c->replaced, op->operands[i]);
        if (equal)
            tcc_op_set_operand(op, i, equal);
    }
    if (op->n_regions || !op->n_results || !tcc_op_is_movable(op, &c->written))
        return;
    uint64_t h = hash(op);
    entry **bucket = &c->buckets[h & (c->n_buckets - 1)];
    for (entry *e = *bucket; e; e = e->next)
        if (e->hash == h && is_equal(e->op, op)) {
            for (unsigned i = 0; i < op->n_results; i++)
                *tcc_map_at(&c->replaced, &op->results[i]) = &e->op->results[i];
            TCC_PUSH(c->scratch, &c->dead, op);
            return;
        }
    entry *e = TCC_NEW(c->scratch, entry);
    *e = (entry){.next = *bucket, .older = c->newest, .hash = h, .op = op};
    *bucket = c->newest = e;
}

/* Regions nest as deeply as the IR does: the parser bounds that. */
static void visit_block(cse *c, tcc_block *block)
{
    entry *outer = c->newest;
    for (tcc_op *op = block->first; op; op = op->next) {
        visit_op(c, op);
        for (unsigned r = 0; r < op->n_regions; r++)
            visit_block(c, op->regions[r]);
    }
    for (; c->newest != outer; c->newest = c->newest->older)
        c->buckets[c->newest->hash & (c->n_buckets - 1)] = c->newest->next;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    cse c = {.written = tcc_written_tensors(f, ctx->scratch),
             .scratch = ctx->scratch,
             .replaced = TCC_MAP(ctx->scratch),
             .n_buckets = 64};
    size_t n_ops = 0;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        n_ops++;
    while (c.n_buckets < n_ops)
        c.n_buckets *= 2;
    c.buckets = TCC_NEW_ARRAY(ctx->scratch, entry *, c.n_buckets);
    visit_block(&c, f->body);
    *changed = c.dead.len;
    while (c.dead.len)
        tcc_op_erase(c.dead.data[--c.dead.len]);
    return TCC_OK;
}

const tcc_pass tcc_pass_cse = {"cse", "compute equal values once", .run = run};

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/registers.h"

#include "support/map.h"

enum { NONE = 0, FIRST_CARRIED = 3 };

typedef struct use {
    const tcc_op *op;
    unsigned operand;
    uint32_t order; /* of the op, in the walk */
    uint32_t next;  /* of the value; 0: the last */
} use;

typedef struct node {
    const tcc_value *value;
    uint32_t same; /* another one in the same registers; itself for the representative */
    uint32_t uses;
    uint32_t number; /* of the registers, for the representative */
    bool of_mma;
} node;

struct tcc_registers {
    tcc_arena *arena;
    tcc_map numbers; /* value -> its node */
    TCC_VEC(node) nodes;
    TCC_VEC(use) uses;
    unsigned n;
};

bool tcc_registers_pass(tcc_opcode code)
{
    switch (code) {
    case TCC_OP_scf_for:
    case TCC_OP_scf_yield:
    case TCC_OP_vec_pack:
    case TCC_OP_vec_slice:
    case TCC_OP_nvvm_wgmma:
    case TCC_OP_nvvm_wgmma_a:
    case TCC_OP_nvvm_wgmma_wait:
    case TCC_OP_async_mma:
    case TCC_OP_async_mma_wait: return true;
    default: return false;
    }
}

static bool is_mma(tcc_opcode code)
{
    return code == TCC_OP_nvvm_wgmma || code == TCC_OP_nvvm_wgmma_a;
}

/* ---- the same registers ---------------------------------------------------------------- */

static uint32_t find(const tcc_registers *r, const tcc_value *v)
{
    return (uint32_t)(uintptr_t)tcc_map_get(&r->numbers, v);
}

static uint32_t add(tcc_registers *r, const tcc_value *v)
{
    void **place = tcc_map_at(&r->numbers, v);
    if (!*place) {
        uint32_t n = (uint32_t)r->nodes.len;
        TCC_PUSH(r->arena, &r->nodes, (node){.value = v, .same = n});
        *place = (void *)(uintptr_t)n;
    }
    return (uint32_t)(uintptr_t)*place;
}

static node *stands_for(const tcc_registers *r, uint32_t n)
{
    while (r->nodes.data[n].same != n)
        n = r->nodes.data[n].same = r->nodes.data[r->nodes.data[n].same].same;
    return &r->nodes.data[n];
}

static void join(tcc_registers *r, uint32_t a, uint32_t b)
{
    if (!a || !b)
        return;
    node *to = stands_for(r, a), *from = stands_for(r, b);
    to->of_mma |= from->of_mma;
    from->same = to->same;
}

static uint32_t add_of_mma(tcc_registers *r, const tcc_value *v)
{
    uint32_t n = add(r, v);
    stands_for(r, n)->of_mma = true;
    return n;
}

/* Gives results that are the operands' registers their nodes. */
static void pass_results(tcc_registers *r, const tcc_op *op)
{
    switch (op->code) {
    case TCC_OP_nvvm_wgmma_a:
    case TCC_OP_nvvm_wgmma:
        if (op->code == TCC_OP_nvvm_wgmma_a)
            add_of_mma(r, op->operands[1]);
        join(r, add_of_mma(r, &op->results[0]), find(r, op->operands[0]));
        return;
    case TCC_OP_nvvm_wgmma_wait:
        for (unsigned i = 0; i < op->n_results; i++)
            join(r, add(r, &op->results[i]), find(r, op->operands[i]));
        return;
    case TCC_OP_vec_slice:
    case TCC_OP_vec_pack:
        for (unsigned i = 0; i < op->n_operands; i++)
            if (find(r, op->operands[i]))
                join(r, add(r, &op->results[0]), find(r, op->operands[i]));
        return;
    case TCC_OP_scf_for:
        for (unsigned i = 0; i < op->n_results; i++)
            if (op->results[i].type->kind == TCC_KIND_vec) {
                uint32_t arg = add(r, op->regions[0]->args[1 + i]);
                join(r, arg, add(r, &op->results[i]));
                join(r, arg, find(r, op->operands[FIRST_CARRIED + i]));
            }
        return;
    case TCC_OP_scf_if:
        for (unsigned i = 0; i < op->n_results; i++)
            if (op->results[i].type->kind == TCC_KIND_vec)
                add(r, &op->results[i]);
        return;
    default: return;
    }
}

static void pass_yielded(tcc_registers *r, const tcc_op *yield)
{
    const tcc_op *of = yield->block->parent;
    for (unsigned i = 0; of && i < yield->n_operands && i < of->n_results; i++)
        join(r, find(r, &of->results[i]), find(r, yield->operands[i]));
}

static void add_uses(tcc_registers *r, const tcc_op *op, uint32_t order)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        uint32_t n = op->operands[i]->type->kind == TCC_KIND_vec ? find(r, op->operands[i]) : NONE;
        if (!n)
            continue;
        TCC_PUSH(r->arena, &r->uses, (use){op, i, order, r->nodes.data[n].uses});
        r->nodes.data[n].uses = (uint32_t)r->uses.len - 1;
    }
}

tcc_registers *tcc_registers_find(const tcc_func *f, tcc_arena *arena)
{
    tcc_registers *r = TCC_NEW(arena, tcc_registers);
    *r = (tcc_registers){.arena = arena, .numbers = TCC_MAP(arena)};
    TCC_PUSH(arena, &r->nodes, (node){0});
    TCC_PUSH(arena, &r->uses, (use){0});
    uint32_t order = 0;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        add_uses(r, op, ++order);
        pass_results(r, op);
        if (op->code == TCC_OP_scf_yield)
            pass_yielded(r, op);
    }
    for (uint32_t n = 1; n < r->nodes.len; n++)
        if (r->nodes.data[n].same == n && r->nodes.data[n].of_mma)
            r->nodes.data[n].number = ++r->n;
    return r;
}

unsigned tcc_registers_count(const tcc_registers *r)
{
    return r->n;
}

unsigned tcc_registers_of(const tcc_registers *r, const tcc_value *v)
{
    uint32_t n = find(r, v);
    return n ? stands_for(r, n)->number : 0;
}

/* ---- wanted twice ---------------------------------------------------------------------- */

/* Whether ops are in different branches of one scf.if. */
static bool exclude_each_other(const tcc_op *a, const tcc_op *b)
{
    for (const tcc_block *x = a->block; x->parent; x = x->parent->block)
        for (const tcc_block *y = b->block; y->parent; y = y->parent->block)
            if (x->parent == y->parent && x != y)
                return true;
    return false;
}

/* Whether an op in a loop takes what is from before it. */
static bool is_of_every_iteration(const tcc_op *op, const tcc_value *v)
{
    const tcc_block *from = v->def ? v->def->block : v->block;
    for (const tcc_block *b = op->block; b != from && b->parent; b = b->parent->block)
        if (b->parent->code == TCC_OP_scf_for)
            return true;
    return false;
}

static bool takes(const use *u)
{
    return (is_mma(u->op->code) && u->operand == 0) || u->op->code == TCC_OP_scf_for;
}

typedef struct part {
    int64_t first, n;
} part;

/* Whether anything but `op` takes a part of v, or needs it later. */
static bool is_wanted(const tcc_registers *r, const tcc_op *op, uint32_t order, const tcc_value *v,
                      part p, const tcc_op *except)
{
    uint32_t n = find(r, v);
    for (uint32_t i = n ? r->nodes.data[n].uses : NONE; i; i = r->uses.data[i].next) {
        const use *u = &r->uses.data[i];
        if (u->op == op || u->op == except || exclude_each_other(op, u->op))
            continue;
        if (u->op->code == TCC_OP_vec_slice) {
            int64_t first = tcc_attr_int(&u->op->attrs, "offset", 0);
            int64_t count = tcc_type_count(u->op->results[0].type);
            bool apart = first >= p.first + p.n || p.first >= first + count;
            if (!apart &&
                is_wanted(r, op, order, &u->op->results[0], (part){p.first - first, p.n}, NULL))
                return true;
        } else if (u->order > order || takes(u)) {
            return true;
        }
    }
    return false;
}

static bool is_wanted_twice(const tcc_registers *r, const tcc_op *op, unsigned operand)
{
    const tcc_value *v = op->operands[operand];
    const tcc_op *slice = NULL;
    part p = {0, tcc_type_count(v->type)};
    uint32_t order = 0, n = find(r, v);
    for (uint32_t i = n ? r->nodes.data[n].uses : NONE; i; i = r->uses.data[i].next) {
        const use *u = &r->uses.data[i];
        if (u->op == op && u->operand != operand)
            return true;
        order = u->op == op ? u->order : order;
    }
    if (!order)
        return false;
    for (;;) {
        if (is_wanted(r, op, order, v, p, slice) || is_of_every_iteration(op, v))
            return true;
        if (!v->def || v->def->code != TCC_OP_vec_slice)
            return false;
        slice = v->def;
        p.first += tcc_attr_int(&slice->attrs, "offset", 0);
        v = slice->operands[0];
    }
}

static uint32_t bit_of(unsigned operand)
{
    enum { LAST = 31 };
    return UINT32_C(1) << (operand < LAST ? operand : LAST);
}

bool tcc_registers_is_wanted_twice(uint32_t wanted, unsigned operand)
{
    return wanted & bit_of(operand);
}

uint32_t tcc_registers_wanted_twice(const tcc_registers *r, const tcc_op *op)
{
    unsigned first = is_mma(op->code) ? 0 : FIRST_CARRIED;
    unsigned end = is_mma(op->code) ? 1 : op->code == TCC_OP_scf_for ? op->n_operands : 0;
    uint32_t wanted = 0;
    for (unsigned i = first; i < end; i++)
        if (op->operands[i]->type->kind == TCC_KIND_vec && is_wanted_twice(r, op, i))
            wanted |= bit_of(i);
    return wanted;
}

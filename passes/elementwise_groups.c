/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/elementwise_groups.h"

#include <stdlib.h>

/* ---- while the function is walked ------------------------------------------------------ */

static tcc_member *member_of(const tcc_groups *all, const tcc_op *op)
{
    return op ? tcc_map_get(&all->members, op) : NULL;
}

static bool is_open(const tcc_group *g)
{
    return !g->into && !g->closed;
}

tcc_group *tcc_groups_open(const tcc_groups *all, const tcc_value *v)
{
    const tcc_member *m = member_of(all, v->def);
    return m && is_open(m->group) ? m->group : NULL;
}

int64_t tcc_group_length(const tcc_group *g)
{
    return tcc_type_count(g->members.data[0]->op->results[0].type);
}

/* Either may be NULL. The longer one takes over, so that no member moves often. */
static tcc_group *merge(tcc_groups *all, tcc_group *a, tcc_group *b)
{
    if (!a || !b || a == b)
        return a ? a : b;
    tcc_group *into = a->members.len < b->members.len ? b : a, *from = into == a ? b : a;
    for (size_t i = 0; i < from->members.len; i++) {
        from->members.data[i]->group = into;
        TCC_PUSH(all->scratch, &into->members, from->members.data[i]);
    }
    from->into = into;
    return into;
}

/* Forgets those that are no longer open rather than grow. */
static void add_open(tcc_groups *all, tcc_group *g)
{
    size_t n = 0;
    for (size_t i = 0; i < all->open.len && all->open.len == all->open.cap; i++)
        if (is_open(all->open.data[i]))
            all->open.data[n++] = all->open.data[i];
    if (all->open.len == all->open.cap)
        all->open.len = n;
    TCC_PUSH(all->scratch, &all->open, g);
}

bool tcc_groups_add(tcc_groups *all, tcc_op *op)
{
    if (!(tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE) || !op->n_operands ||
        op->results[0].type->kind != TCC_KIND_vec)
        return false;
    tcc_group *g = NULL;
    for (unsigned i = 0; i < op->n_operands; i++)
        g = merge(all, g, tcc_groups_open(all, op->operands[i]));
    if (!g) {
        g = TCC_NEW(all->scratch, tcc_group);
        add_open(all, g);
    }
    tcc_member *m = TCC_NEW(all->scratch, tcc_member);
    *m = (tcc_member){.op = op, .group = g, .number = all->n_seen++};
    TCC_PUSH(all->scratch, &g->members, m);
    *tcc_map_at(&all->members, op) = m;
    return true;
}

int64_t tcc_groups_count(const tcc_groups *all, const tcc_group *g)
{
    int64_t n = 0;
    for (size_t i = 0; i < all->open.len; i++)
        if (is_open(all->open.data[i]) && all->open.data[i]->members.len == g->members.len)
            n += tcc_group_length(all->open.data[i]);
    return n;
}

/* ---- groups that are alike ------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    size_t x = (*(tcc_member *const *)a)->number, y = (*(tcc_member *const *)b)->number;
    return (x > y) - (x < y);
}

static void put_in_order(tcc_group *g)
{
    qsort(g->members.data, g->members.len, sizeof *g->members.data, by_number);
    for (size_t i = 0; i < g->members.len; i++)
        g->members.data[i]->index = i;
}

const tcc_member *tcc_alike_member(const tcc_alike *f, size_t g, const tcc_op *op)
{
    const tcc_member *m = member_of(f->all, op);
    return m && m->group == f->groups.data[g] ? m : NULL;
}

/* Whether x is to a group what y is to another. counterparts: of values from outside the first one. */
static bool are_operands_alike(const tcc_groups *all, const tcc_group *of_x, const tcc_group *of_y, tcc_value *x,
                               tcc_value *y, tcc_map *counterparts)
{
    const tcc_member *m = member_of(all, x->def), *n = member_of(all, y->def);
    bool inside = m && m->group == of_x;
    if (x->type != y->type || inside != (n && n->group == of_y))
        return false;
    if (inside)
        return m->index == n->index;
    void **known = tcc_map_at(counterparts, x);
    bool same = !*known || *known == y;
    *known = y;
    return same;
}

static bool are_alike(const tcc_groups *all, const tcc_group *a, const tcc_group *b)
{
    tcc_map counterparts = TCC_MAP(all->scratch);
    bool same = true;
    for (size_t i = 0; same && i < a->members.len; i++) {
        const tcc_op *x = a->members.data[i]->op, *y = b->members.data[i]->op;
        same = x->code == y->code && x->results[0].type == y->results[0].type && tcc_attrs_equal(&x->attrs, &y->attrs);
        for (unsigned o = 0; same && o < x->n_operands; o++)
            same = are_operands_alike(all, a, b, x->operands[o], y->operands[o], &counterparts);
    }
    return same;
}

tcc_alike tcc_groups_close(tcc_groups *all, tcc_group *g)
{
    tcc_alike f = {.all = all, .n_ops = g->members.len};
    put_in_order(g);
    TCC_PUSH(all->scratch, &f.groups, g);
    for (size_t i = 0; i < all->open.len; i++) {
        tcc_group *other = all->open.data[i];
        if (other == g || !is_open(other) || other->members.len != g->members.len)
            continue;
        put_in_order(other);
        if (are_alike(all, g, other))
            TCC_PUSH(all->scratch, &f.groups, other);
    }
    for (size_t i = 0; i < f.groups.len; i++)
        f.groups.data[i]->closed = true;
    return f;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/fuzz/mutate_ir.h"

#include <string.h>

#include "ir/rules.h"
#include "support/random.h"

typedef struct mutator {
    tcc_ir *ir;
    uint64_t *random;
} mutator;

typedef TCC_VEC(tcc_value *) values;
typedef TCC_VEC(tcc_attr *) attr_places;

enum { MAX_OPERANDS = 8, TRIES = 20 };

/* ---- choosing -------------------------------------------------------------------------- */

static uint64_t below(mutator *m, uint64_t n)
{
    return tcc_random(m->random, n ? n : 1);
}

static tcc_op *any_op(mutator *m)
{
    tcc_op *chosen = NULL;
    uint64_t n = 0;
    for (tcc_func *f = m->ir->first; f; f = f->next)
        for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
            if (below(m, ++n) == 0)
                chosen = op;
    return chosen;
}

/* Another op of the code, for its attributes; NULL when there is none. */
static const tcc_op *example_of(mutator *m, tcc_opcode code)
{
    for (int i = 0; i < TRIES; i++) {
        const tcc_op *op = any_op(m);
        if (op && op->code == code)
            return op;
    }
    return NULL;
}

/* What an op at this place may use. */
static values visible_at(mutator *m, const tcc_op *at)
{
    values all = {0};
    for (const tcc_block *b = at->block; b; at = b->parent, b = at ? at->block : NULL) {
        for (size_t i = 0; i < b->n_args; i++)
            TCC_PUSH(m->ir->arena, &all, b->args[i]);
        for (tcc_op *op = b->first; op && op != at; op = op->next)
            for (unsigned r = 0; r < op->n_results; r++)
                TCC_PUSH(m->ir->arena, &all, &op->results[r]);
    }
    return all;
}

/* One of the values, of this type if it is given, else of one of these kinds; NULL: none is. */
static tcc_value *choose(mutator *m, const values *all, const tcc_type *type, unsigned kinds)
{
    tcc_value *chosen = NULL;
    uint64_t n = 0;
    for (size_t i = 0; i < all->len; i++) {
        const tcc_type *t = all->data[i]->type;
        if ((type ? t == type : kinds >> t->kind & 1) && below(m, ++n) == 0)
            chosen = all->data[i];
    }
    return chosen;
}

static int64_t any_int(mutator *m, int64_t was)
{
    static const int64_t edges[] = {0,         1,         -1,        2,         3,   4,   7,
                                    8,         15,        16,        31,        32,  64,  128,
                                    256,       1024,      4096,      65535,     63,  127, 12345,
                                    INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 240, 24,  40};
    switch (below(m, 6)) {
    case 0: return was < INT64_MAX ? was + 1 : was;
    case 1: return was > INT64_MIN ? was - 1 : was;
    case 2: return was < INT32_MAX && was > INT32_MIN ? was * 2 : was;
    case 3: return was / 2;
    case 4: return (int64_t)below(m, 20);
    default: return edges[below(m, sizeof edges / sizeof *edges)];
    }
}

static double any_float(mutator *m)
{
    static const double edges[] = {0.0,     -0.0, 1.0,   -1.0,  0.5,      65504.0, 65520.0, 0x1p-24,
                                   0x1p-25, 1e38, 1e308, 1e-45, 0x1p-149, 448.0,   3.0,     -7.25};
    uint64_t i = below(m, sizeof edges / sizeof *edges + 2);
    return i == 0 ? (double)__builtin_inff() : i == 1 ? (double)__builtin_nanf("") : edges[i - 2];
}

/* ---- types ----------------------------------------------------------------------------- */

static const tcc_type *any_type(mutator *m, unsigned kinds)
{
    const tcc_type *chosen = NULL;
    uint64_t n = 0;
    for (size_t i = 0; i < m->ir->cap_types; i++) {
        const tcc_type *t = m->ir->types[i];
        if (t && kinds >> t->kind & 1 && below(m, ++n) == 0)
            chosen = t;
    }
    return chosen;
}

static const tcc_type *vary_type(mutator *m, const tcc_type *t)
{
    enum { MAX_RANK = 8 };
    tcc_dim dims[MAX_RANK];
    if (!tcc_type_has_elem(t) || t->rank >= MAX_RANK)
        return t;
    if (!t->rank || below(m, 3) == 0)
        return tcc_type_with_elem(m->ir, t, (tcc_scalar)below(m, TCC_SCALAR_COUNT));
    memcpy(dims, t->dims, t->rank * sizeof *dims);
    unsigned d = (unsigned)below(m, t->rank), other = (unsigned)below(m, t->rank);
    if (below(m, 4) == 0)
        dims[d] = dims[other];
    else if (!dims[d].name)
        dims[d].size = (int64_t)((uint64_t)any_int(m, dims[d].size) & INT32_MAX);
    else if (t->kind != TCC_KIND_field)
        dims[d] = (tcc_dim){NULL, (int64_t)below(m, 20)};
    return tcc_type_get(m->ir, t->kind, t->elem, t->rank, dims);
}

static void replace_in_value(tcc_value *v, const tcc_type *from, const tcc_type *to)
{
    if (v->type == from)
        v->type = to;
}

/* Gives all values of a type another one. */
static void retype(mutator *m)
{
    const tcc_type *from = any_type(m, ~0u), *to = from ? vary_type(m, from) : NULL;
    for (tcc_func *f = m->ir->first; from && f; f = f->next) {
        for (size_t i = 0; i < f->body->n_args; i++)
            replace_in_value(f->body->args[i], from, to);
        for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
            for (unsigned r = 0; r < op->n_results; r++)
                replace_in_value(&op->results[r], from, to);
            for (unsigned r = 0; r < op->n_regions; r++)
                for (size_t i = 0; i < op->regions[r]->n_args; i++)
                    replace_in_value(op->regions[r]->args[i], from, to);
        }
    }
}

static void retype_one(mutator *m)
{
    tcc_op *op = any_op(m);
    if (op && op->n_results) {
        tcc_value *v = &op->results[below(m, op->n_results)];
        v->type = vary_type(m, v->type);
    }
}

/* ---- attributes ------------------------------------------------------------------------ */

static void collect_places(mutator *m, tcc_attrs *attrs, attr_places *out)
{
    for (size_t i = 0; i < attrs->len; i++)
        TCC_PUSH(m->ir->arena, out, &attrs->data[i].value);
}

/* A name that is somewhere in the module. */
static const char *any_name(mutator *m)
{
    const tcc_type *t = any_type(m, ~0u);
    for (unsigned d = 0; t && d < t->rank; d++)
        if (t->dims[d].name)
            return t->dims[d].name;
    const tcc_block *body = m->ir->first->body;
    const char *name = body->n_args ? body->args[below(m, body->n_args)]->name : NULL;
    return name ? name : tcc_ir_name(m->ir, "k");
}

static void change_attr(mutator *m, tcc_attr *a);

static void change_list(mutator *m, tcc_attr *a)
{
    size_t n = a->list.n;
    tcc_attr *items = TCC_NEW_ARRAY(m->ir->arena, tcc_attr, n + 1);
    if (n)
        memcpy(items, a->list.items, n * sizeof *items);
    a->list.items = items;
    size_t i = below(m, n), j = below(m, n);
    switch (below(m, 6)) {
    case 0: /* one more */
        items[n] = n ? items[i] : (tcc_attr){TCC_ATTR_INT, {.i = any_int(m, 0)}};
        a->list.n++;
        break;
    case 1: /* one less */ a->list.n -= n > 0; break;
    case 2:
        if (n) {
            tcc_attr kept = items[i];
            items[i] = items[j];
            items[j] = kept;
        }
        break;
    default:
        if (n)
            change_attr(m, &items[i]);
    }
}

static void change_attr(mutator *m, tcc_attr *a)
{
    if (below(m, 30) == 0) { /* another kind */
        *a = below(m, 2) ? (tcc_attr){TCC_ATTR_INT, {.i = any_int(m, 1)}}
                         : (tcc_attr){TCC_ATTR_STR, {.s = any_name(m)}};
        return;
    }
    switch (a->kind) {
    case TCC_ATTR_INT: a->i = any_int(m, a->i); break;
    case TCC_ATTR_FLOAT: a->f = any_float(m); break;
    case TCC_ATTR_STR: a->s = any_name(m); break;
    default: change_list(m, a);
    }
}

/* One of the words of a rule. */
static const char *any_word(mutator *m, const char *words)
{
    size_t n = 1;
    for (const char *w = words; *w; w++)
        n += *w == ' ';
    const char *w = words;
    for (uint64_t skip = below(m, n); skip; skip--)
        w = strchr(w, ' ') + 1;
    return tcc_ir_name(m->ir, tcc_arena_strndup(m->ir->arena, w, strcspn(w, " ")));
}

/* A value as the rule for the attribute needs it; numbers among words are integers. */
static tcc_attr attr_by_rule(mutator *m, const tcc_attr_rule *rule)
{
    if (!rule->words)
        return (tcc_attr){TCC_ATTR_INT, {.i = rule->min + (int64_t)below(m, 4) * rule->factor}};
    const char *word = any_word(m, rule->words);
    int64_t number = 0;
    for (const char *c = word; *c >= '0' && *c <= '9'; c++)
        number = number * 10 + (*c - '0');
    return *word >= '0' && *word <= '9' ? (tcc_attr){TCC_ATTR_INT, {.i = number}}
                                        : (tcc_attr){TCC_ATTR_STR, {.s = word}};
}

static void change_op_attr(mutator *m)
{
    tcc_op *op = any_op(m);
    for (int i = 0; op && !op->attrs.len && i < TRIES; i++)
        op = any_op(m);
    if (!op || !op->attrs.len)
        return;
    tcc_named_attr *a = &op->attrs.data[below(m, op->attrs.len)];
    const tcc_attr_rule *rule = tcc_attr_rule_find(op->code, a->name);
    if (rule && below(m, 2))
        a->value = attr_by_rule(m, rule);
    else
        change_attr(m, &a->value);
}

/* Attributes of the module and of functions. */
static void change_outer_attr(mutator *m)
{
    attr_places places = {0};
    collect_places(m, &m->ir->attrs, &places);
    for (tcc_func *f = m->ir->first; f; f = f->next)
        collect_places(m, &f->attrs, &places);
    if (places.len)
        change_attr(m, places.data[below(m, places.len)]);
}

static void give_attrs(mutator *m, tcc_op *op)
{
    const tcc_op *example = example_of(m, op->code);
    for (const tcc_attr_info *a = tcc_op_info_get(op->code)->attrs; a->name; a++) {
        const tcc_named_attr *seen = example ? tcc_attr_find(&example->attrs, a->name) : NULL;
        const tcc_attr_rule *rule = tcc_attr_rule_find(op->code, a->name);
        tcc_attr value = {TCC_ATTR_INT, {.i = (int64_t)below(m, 4)}};
        if (!a->required && !seen && below(m, 2))
            continue;
        if (seen)
            value = seen->value;
        else if (rule)
            value = attr_by_rule(m, rule);
        else if (a->kind == TCC_ATTR_STR)
            value = (tcc_attr){TCC_ATTR_STR, {.s = any_name(m)}};
        else if (a->kind == TCC_ATTR_ANY && below(m, 2))
            value = (tcc_attr){TCC_ATTR_FLOAT, {.f = any_float(m)}};
        else if (a->kind == TCC_ATTR_LIST)
            value = (tcc_attr){TCC_ATTR_LIST, {.list = {NULL, 0}}};
        if (value.kind == TCC_ATTR_LIST && !seen)
            for (uint64_t n = below(m, 4); n; n--)
                change_list(m, &value);
        tcc_attr_set(m->ir, &op->attrs, a->name, value, (tcc_loc){0, 0});
    }
}

/* ---- ops ------------------------------------------------------------------------------- */

static void change_operand(mutator *m)
{
    tcc_op *op = any_op(m);
    for (int i = 0; op && !op->n_operands && i < TRIES; i++)
        op = any_op(m);
    if (!op || !op->n_operands)
        return;
    values all = visible_at(m, op);
    size_t i = below(m, op->n_operands);
    const tcc_type *type = below(m, 8) ? op->operands[i]->type : NULL;
    tcc_value *v = choose(m, &all, type, ~0u);
    if (v)
        tcc_op_set_operand(op, i, v);
}

/* Deletes an op; other values of their types take the place of its results. */
static void delete_op(mutator *m)
{
    tcc_op *op = any_op(m);
    if (!op || tcc_op_info_get(op->code)->flags & TCC_TERMINATOR)
        return;
    values all = visible_at(m, op);
    for (unsigned r = 0; r < op->n_results; r++) {
        tcc_value *v = choose(m, &all, op->results[r].type, 0);
        if (op->results[r].n_uses && !v)
            return;
        if (v)
            tcc_replace_uses(&op->results[r], v);
    }
    tcc_op_erase(op);
}

static bool is_terminator(const tcc_op *op)
{
    return tcc_op_info_get(op->code)->flags & TCC_TERMINATOR;
}

static void clone_op(mutator *m)
{
    tcc_op *op = any_op(m);
    if (!op || is_terminator(op))
        return;
    tcc_builder b = tcc_builder_after(op);
    tcc_op_clone(&b, op, tcc_value_map_create(m->ir->arena));
}

/* Some places up or down. */
static void move_op(mutator *m)
{
    tcc_op *op = any_op(m);
    if (!op || is_terminator(op))
        return;
    tcc_op *to = op;
    bool up = below(m, 2);
    for (uint64_t n = 1 + below(m, 6); n && (up ? to->prev : to->next); n--)
        to = up ? to->prev : to->next;
    if (to == op || is_terminator(to))
        return;
    tcc_builder b = up ? tcc_builder_before(to) : tcc_builder_after(to);
    tcc_op_move(&b, op);
}

/* Another op with as many operands and results of the same kinds. */
static void change_code(mutator *m)
{
    tcc_op *op = any_op(m);
    tcc_opcode code = (tcc_opcode)below(m, TCC_OP_COUNT);
    if (!op)
        return;
    const tcc_op_info *was = tcc_op_info_get(op->code), *is = tcc_op_info_get(code);
    for (int i = 0; i < TRIES && (is->n_operands != was->n_operands ||
                                  is->n_results != was->n_results || is->n_regions || is == was);
         i++)
        is = tcc_op_info_get(code = (tcc_opcode)below(m, TCC_OP_COUNT));
    if (is->n_operands != was->n_operands || is->n_results != was->n_results || is->n_regions ||
        was->n_regions)
        return;
    op->code = code;
    op->attrs.len = 0;
    give_attrs(m, op);
}

static void insert_op(mutator *m)
{
    tcc_op *at = any_op(m);
    tcc_opcode code = (tcc_opcode)below(m, TCC_OP_COUNT);
    const tcc_op_info *info = tcc_op_info_get(code);
    if (!at || info->flags & TCC_TERMINATOR)
        return;
    values all = visible_at(m, at);
    tcc_value *operands[MAX_OPERANDS];
    unsigned n = 0;
    for (; n < info->n_operands; n++) {
        bool alike = n && info->operands[n].kinds >> operands[0]->type->kind & 1 && below(m, 4);
        const tcc_type *type = alike ? operands[0]->type : NULL;
        operands[n] = choose(m, &all, type, info->operands[n].kinds);
        if (!operands[n])
            return;
    }
    if (info->flags & TCC_VARIADIC)
        for (uint64_t more = below(m, 4); more && n < MAX_OPERANDS; more--) {
            tcc_value *v = choose(m, &all, NULL, 1u << TCC_KIND_scalar | 1u << TCC_KIND_vec);
            if (v)
                operands[n++] = v;
        }
    const tcc_type *types[2];
    for (unsigned r = 0; r < info->n_results; r++) {
        unsigned kinds = info->results[r].kinds;
        bool alike = n && kinds >> operands[n - 1]->type->kind & 1 && below(m, 3);
        types[r] = alike ? operands[n - 1]->type : any_type(m, kinds);
        if (!types[r])
            return;
        if (below(m, 4) == 0)
            types[r] = vary_type(m, types[r]);
    }
    tcc_builder b = tcc_builder_before(at);
    tcc_op *op = tcc_op_create(&b, code, n, operands, info->n_results, types);
    give_attrs(m, op);
    if (op->n_results && below(m, 2)) { /* somebody uses it */
        for (tcc_op *user = at; user; user = user->next)
            for (unsigned i = 0; i < user->n_operands; i++)
                if (user->operands[i]->type == op->results[0].type && below(m, 3) == 0) {
                    tcc_op_set_operand(user, i, &op->results[0]);
                    return;
                }
    }
}

/* Puts an op without results under a condition. */
static void guard_op(mutator *m)
{
    tcc_op *op = any_op(m);
    if (!op || is_terminator(op) || op->n_results)
        return;
    values all = visible_at(m, op);
    tcc_value *cond = choose(m, &all, tcc_type_scalar(m->ir, TCC_i1), 0);
    if (!cond)
        return;
    tcc_builder b = tcc_builder_before(op);
    tcc_op *guard = tcc_op_create(&b, TCC_OP_scf_if, 1, &cond, 0, NULL);
    tcc_builder inside = tcc_builder_at_end(guard->regions[below(m, 2)]);
    tcc_op_move(&inside, op);
}

/* ---- all of them ----------------------------------------------------------------------- */

void mutate_ir(tcc_ir *ir, uint64_t *random)
{
    static void (*const mutations[])(mutator *) = {
        change_op_attr, change_op_attr, change_op_attr, change_outer_attr, change_operand,
        change_operand, change_operand, delete_op,      clone_op,          move_op,
        change_code,    change_code,    insert_op,      insert_op,         insert_op,
        guard_op,       retype,         retype_one,
    };
    mutator m = {ir, random};
    if (ir->first)
        mutations[below(&m, sizeof mutations / sizeof *mutations)](&m);
}

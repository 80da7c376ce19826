/* verify: what holds for every op: its row of ops.def, SSA form, terminators, use counts. What
 * holds for single ops is in rules.c and the files named there.
 *
 *  1. An op has the operands, results, regions and attributes of its row, of the kinds and at the
 *     levels given there.
 *  2. A value is used after its definition, in its block or in the regions of later ops.
 *  3. A function ends in return. A region ends in scf.yield, or in nothing: it yields nothing.
 *  4. Tiles, stages and registers have positive numeric extents; fields have distinct names.
 *  5. Links and use counts agree with the text of the IR.
 *  6. No product's accumulators come from vec.undef (accumulators.c).
 *  7. What a function assumes can hold, and implies what it requires (assume.h).
 *  8. Its cost is an expression of its dimensions (plan.h).
 *  9. Extents of indices are pairs (access.h).
 * 10. Its axes are two or more, and have all indices of its outputs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/access.h"
#include "ir/assume.h"
#include "ir/grid.h"
#include "ir/ir.h"
#include "ir/layout.h"
#include "ir/plan.h"
#include "ir/rules.h"
#include "ir/signature.h"
#include "ir/streaming.h"
#include "support/map.h"

enum { MAX_ELEMENTS = 1 << 24 }; /* of a tile, of all stages of one, of a thread's vec */

typedef struct verifier {
    tcc_verifier base;
    const tcc_func *func;
    unsigned levels;
    tcc_map seen; /* value -> 2 * uses seen + (visible here), as a number */
} verifier;

/* ---- messages -------------------------------------------------------------------------- */

void tcc_verify_error(tcc_verifier *v, const tcc_op *op, const char *format, ...)
{
    v->ok = false;
    if (v->diag->n_errors > TCC_MAX_ERRORS) { /* counted, not shown */
        tcc_error(v->diag, TCC_ERR_TYPE, op->loc, "%s", "");
        return;
    }
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    char *message = tcc_arena_alloc(v->arena, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(message, (size_t)n + 1, format, args);
    va_end(args);
    tcc_str text = {0};
    if (!op->loc.line && op->block)
        tcc_op_print(&text, op, 0);
    tcc_error(v->diag, TCC_ERR_TYPE, op->loc, "'%s': %s%s%s", tcc_op_info_get(op->code)->name,
              message, text.len ? ", in: " : "", tcc_str_text(&text));
    tcc_str_free(&text);
}

const char *tcc_verify_text(tcc_verifier *v, const tcc_type *type)
{
    tcc_str s = {0};
    tcc_type_print(&s, type);
    const char *text = tcc_arena_strdup(v->arena, tcc_str_text(&s));
    tcc_str_free(&s);
    return text;
}

void tcc_verify_same(tcc_verifier *v, const tcc_op *op, const char *a_name, const tcc_type *a,
                     const char *b_name, const tcc_type *b)
{
    if (a != b)
        tcc_verify_error(v, op, "%s is %s and %s is %s, expected them equal", a_name,
                         tcc_verify_text(v, a), b_name, tcc_verify_text(v, b));
}

static void func_error(verifier *v, const char *what)
{
    v->base.ok = false;
    tcc_error(v->base.diag, TCC_ERR_TYPE, v->func->loc, "function '@%s' %s", v->func->name, what);
}

/* "tile or vec" for a set of bits. */
static const char *bit_names(verifier *v, unsigned bits, unsigned n_bits,
                             const char *(*name)(unsigned))
{
    const char *text = NULL;
    for (unsigned i = 0; i < n_bits; i++)
        if (bits >> i & 1)
            text = text ? tcc_arena_printf(v->base.arena, "%s or %s", text, name(i)) : name(i);
    return text;
}

static const char *kind_name(unsigned i)
{
    return tcc_kind_name((tcc_kind)i);
}

enum { N_LEVELS = 4 };

static const char *level_name(unsigned i)
{
    static const char *const names[N_LEVELS] = {"tensor", "tile", "async", "target"};
    return names[i];
}

const char *tcc_attr_kind_name(tcc_attr_kind kind)
{
    static const char *const names[] = {"an integer", "a float", "a string", "a list", "an index expression"};
    return names[kind];
}

/* ---- types ----------------------------------------------------------------------------- */

static const char *wrong_extents(const tcc_type *t)
{
    int64_t n = 1;
    for (unsigned i = 0; i < t->rank; i++) {
        if (t->dims[i].name || t->dims[i].size < 1)
            return "needs positive numeric extents";
        if (t->dims[i].size > MAX_ELEMENTS / n)
            return "has too many elements";
        n *= t->dims[i].size;
    }
    return NULL;
}

static const char *wrong_indices(const tcc_type *t)
{
    for (unsigned i = 0; i < t->rank; i++) {
        if (!t->dims[i].name)
            return "needs named indices";
        for (unsigned j = 0; j < i; j++)
            if (t->dims[i].name == t->dims[j].name)
                return "names an index twice";
    }
    return NULL;
}

static const char *wrong_tile(const tcc_type *t)
{
    const char *wrong = wrong_extents(t);
    return wrong ? wrong : tcc_layout_wrong(t);
}

/* What is wrong with a type itself, or NULL. */
static const char *wrong_type(const tcc_type *t)
{
    switch (t->kind) {
    case TCC_KIND_field: return wrong_indices(t);
    case TCC_KIND_tile: return wrong_tile(t);
    case TCC_KIND_vec: return t->rank == 1 ? wrong_extents(t) : "has one extent";
    case TCC_KIND_smem: return t->rank == 3 ? wrong_extents(t) : "has stages and two extents";
    default: return NULL;
    }
}

/* ---- an op against its row ------------------------------------------------------------- */

static bool check_counts(verifier *v, const tcc_op *op, const tcc_op_info *info)
{
    bool operands_fit = info->flags & TCC_VARIADIC ? op->n_operands >= info->n_operands
                                                   : op->n_operands == info->n_operands;
    if (!operands_fit) {
        tcc_verify_error(&v->base, op, "has %u operands, expected %s%u", op->n_operands,
                         info->flags & TCC_VARIADIC ? "at least " : "", info->n_operands);
        return false;
    }
    if (!(info->flags & TCC_RESULTS_ANY) && op->n_results != info->n_results) {
        tcc_verify_error(&v->base, op, "has %u results, expected %u", op->n_results, info->n_results);
        return false;
    }
    if (op->n_regions != info->n_regions) {
        tcc_verify_error(&v->base, op, "has %u regions, expected %u", op->n_regions, info->n_regions);
        return false;
    }
    return true;
}

static bool check_kind(verifier *v, const tcc_op *op, const tcc_operand_info *want,
                       const tcc_type *type)
{
    if (want->kinds >> type->kind & 1)
        return true;
    tcc_verify_error(&v->base, op, "%s is %s, expected a %s", want->name,
                     tcc_verify_text(&v->base, type),
                     bit_names(v, want->kinds, TCC_KIND_COUNT, kind_name));
    return false;
}

static bool check_kinds(verifier *v, const tcc_op *op, const tcc_op_info *info)
{
    bool ok = true;
    for (unsigned i = 0; i < info->n_operands; i++)
        ok &= check_kind(v, op, &info->operands[i], op->operands[i]->type);
    for (unsigned i = 0; i < info->n_results; i++)
        ok &= check_kind(v, op, &info->results[i], op->results[i].type);
    return ok;
}

static const tcc_attr_info *find_attr_info(const tcc_op_info *info, const char *name)
{
    for (const tcc_attr_info *a = info->attrs; a->name; a++)
        if (!strcmp(a->name, name))
            return a;
    return NULL;
}

static bool check_attrs(verifier *v, const tcc_op *op, const tcc_op_info *info)
{
    bool ok = true;
    for (size_t i = 0; i < op->attrs.len; i++) {
        const tcc_named_attr *a = &op->attrs.data[i];
        const tcc_attr_info *want = find_attr_info(info, a->name);
        if (want && (want->kind == TCC_ATTR_ANY || want->kind == a->value.kind))
            continue;
        ok = false;
        if (want)
            tcc_verify_error(&v->base, op, "attribute '%s' is %s, expected %s", a->name,
                             tcc_attr_kind_name(a->value.kind), tcc_attr_kind_name(want->kind));
        else
            tcc_verify_error(&v->base, op, "unknown attribute '%s'", a->name);
    }
    for (const tcc_attr_info *a = info->attrs; a->name; a++)
        if (a->required && !tcc_attr_find(&op->attrs, a->name)) {
            ok = false;
            tcc_verify_error(&v->base, op, "attribute '%s' is missing", a->name);
        }
    return ok;
}

/* For its results; a wrong operand type was reported at its definition. */
static bool check_types(verifier *v, const tcc_op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++)
        if (wrong_type(op->operands[i]->type))
            return false;
    for (unsigned i = 0; i < op->n_results; i++) {
        const char *wrong = wrong_type(op->results[i].type);
        if (wrong) {
            tcc_verify_error(&v->base, op, "type %s %s",
                             tcc_verify_text(&v->base, op->results[i].type), wrong);
            return false;
        }
    }
    return true;
}

static void check_op(verifier *v, const tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    if (!(info->levels & v->levels))
        tcc_verify_error(&v->base, op, "belongs to the %s level, not to the %s level",
                         bit_names(v, info->levels, N_LEVELS, level_name),
                         bit_names(v, v->levels, N_LEVELS, level_name));
    if (check_counts(v, op, info) && check_kinds(v, op, info) && check_attrs(v, op, info) &&
        check_types(v, op))
        tcc_verify_rules(&v->base, op);
}

/* ---- SSA form -------------------------------------------------------------------------- */

static void see(verifier *v, const tcc_value *value, uintptr_t add)
{
    void **seen = tcc_map_at(&v->seen, value);
    *seen = (void *)((uintptr_t)*seen + add);
}

static const char *operand_name(verifier *v, const tcc_op *op, unsigned i)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    return i < info->n_operands ? info->operands[i].name
                                : tcc_arena_printf(v->base.arena, "operand %u", i);
}

static void check_operands(verifier *v, const tcc_op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (!((uintptr_t)tcc_map_get(&v->seen, op->operands[i]) & 1))
            tcc_verify_error(&v->base, op, "%s is not defined before it here",
                             operand_name(v, op, i));
        see(v, op->operands[i], 2);
    }
}

static void define(verifier *v, const tcc_value *value)
{
    see(v, value, 1);
}

static void hide(verifier *v, const tcc_value *value)
{
    void **seen = tcc_map_at(&v->seen, value);
    *seen = (void *)((uintptr_t)*seen & ~(uintptr_t)1);
}

tcc_op *tcc_block_yield(const tcc_block *block)
{
    return block->last && block->last->code == TCC_OP_scf_yield ? block->last : NULL;
}

static bool is_terminator(const tcc_op *op)
{
    return tcc_op_info_get(op->code)->flags & TCC_TERMINATOR;
}

static void check_place(verifier *v, const tcc_op *op, const tcc_block *block)
{
    bool linked = op->block == block && (op->next ? op->next->prev : block->last) == op;
    for (unsigned i = 0; i < op->n_results; i++)
        linked &= op->results[i].def == op && !op->results[i].block && op->results[i].index == i;
    for (unsigned r = 0; r < op->n_regions; r++)
        linked &= op->regions[r]->parent == op && op->regions[r]->func == v->func;
    if (!linked)
        tcc_verify_error(&v->base, op, "is linked wrongly");
    if (!is_terminator(op))
        return;
    if (op->next)
        tcc_verify_error(&v->base, op, "is not the last of its block");
    if (op->code == (block->parent ? TCC_OP_func_return : TCC_OP_scf_yield))
        tcc_verify_error(&v->base, op, "ends a %s, not a %s", block->parent ? "function" : "region",
                         block->parent ? "region" : "function");
}

static void check_arg(verifier *v, const tcc_block *block, size_t i)
{
    const tcc_value *arg = block->args[i];
    const char *wrong = wrong_type(arg->type);
    if (wrong && block->parent)
        tcc_verify_error(&v->base, block->parent, "argument %zu has type %s, which %s", i,
                         tcc_verify_text(&v->base, arg->type), wrong);
    else if (wrong)
        func_error(v, tcc_arena_printf(v->base.arena, "has a parameter of type %s, which %s",
                                       tcc_verify_text(&v->base, arg->type), wrong));
    if (arg->block != block || arg->def || arg->index != i)
        func_error(v, "has a block argument that is linked wrongly");
    define(v, arg);
}

/* Regions nest as deeply as the IR does: the parser bounds that. */
static void check_block(verifier *v, const tcc_block *block)
{
    for (size_t i = 0; i < block->n_args; i++)
        check_arg(v, block, i);
    for (const tcc_op *op = block->first; op; op = op->next) {
        check_place(v, op, block);
        check_operands(v, op);
        for (unsigned r = 0; r < op->n_regions; r++)
            check_block(v, op->regions[r]);
        check_op(v, op);
        for (unsigned i = 0; i < op->n_results; i++)
            define(v, &op->results[i]);
    }
    for (size_t i = 0; i < block->n_args; i++)
        hide(v, block->args[i]);
    for (const tcc_op *op = block->first; op; op = op->next)
        for (unsigned i = 0; i < op->n_results; i++)
            hide(v, &op->results[i]);
}

static bool count_is_right(const verifier *v, const tcc_value *value)
{
    uint32_t n = 0;
    for (const tcc_use *use = value->uses; use && n <= value->n_uses; use = use->next)
        n += use->op->operands[use - use->op->uses] == value;
    return (uintptr_t)tcc_map_get(&v->seen, value) >> 1 == value->n_uses && n == value->n_uses;
}

static void check_use_counts(verifier *v)
{
    bool args_ok = true;
    for (size_t i = 0; i < v->func->body->n_args; i++)
        args_ok &= count_is_right(v, v->func->body->args[i]);
    if (!args_ok)
        func_error(v, "has a parameter whose count of uses is wrong");
    for (tcc_op *op = v->func->body->first; op; op = tcc_walk_next(op, v->func->body)) {
        bool ok = true;
        for (unsigned i = 0; i < op->n_results; i++)
            ok &= count_is_right(v, &op->results[i]);
        for (unsigned r = 0; r < op->n_regions; r++)
            for (size_t i = 0; i < op->regions[r]->n_args; i++)
                ok &= count_is_right(v, op->regions[r]->args[i]);
        if (!ok)
            tcc_verify_error(&v->base, op, "has a result or argument whose count of uses is wrong");
    }
}

/* ---- attributes of functions ------------------------------------------------------------- */

static void check_cost(verifier *v)
{
    tcc_expr e;
    tcc_diag silent = {0};
    const tcc_named_attr *cost = tcc_attr_find(&v->func->attrs, "cost");
    const tcc_func *s = cost ? tcc_func_signature(v->func, v->base.arena, &silent) : NULL;
    const char *wrong =
        s ? tcc_expr_read(v->base.arena, cost->value, tcc_attr_list(&s->attrs, "dims"), &e) : NULL;
    if (wrong)
        func_error(v, tcc_arena_printf(v->base.arena, "has an attribute 'cost' that %s", wrong));
}

static void check_grid(verifier *v)
{
    const tcc_named_attr *grid = tcc_attr_find(&v->func->attrs, "grid");
    if (grid && !tcc_grid_is_sound(v->func->ir, grid->value))
        func_error(v, "has an attribute 'grid' that is not a list of numbers of CTAs, such as ($M + 127) / 128");
}

static bool reduces_fields(const tcc_func *f)
{
    const tcc_op *op = f->body->first;
    while (op && op->code != TCC_OP_tensor_reduce)
        op = op->next;
    return op;
}

/* Whether two functions still are of reductions of fields, of the same parameters. */
static bool are_comparable(const tcc_func *x, const tcc_func *y)
{
    bool are = x->body->n_args == y->body->n_args && reduces_fields(x) && reduces_fields(y);
    for (size_t i = 0; are && i < x->body->n_args; i++)
        are = x->body->args[i]->type == y->body->args[i]->type;
    return are;
}

static void check_merges(verifier *v)
{
    tcc_attr merges = tcc_attr_list(&v->func->attrs, "merges");
    bool ok = merges.list.n == 2;
    for (size_t i = 0; i < merges.list.n; i++)
        ok &= merges.list.items[i].kind == TCC_ATTR_STR;
    if (!tcc_attr_find(&v->func->attrs, "merges"))
        return;
    const tcc_func *parts = ok ? tcc_func_find(v->func->ir, merges.list.items[0].s) : NULL;
    if (!parts) {
        func_error(v, "has an attribute 'merges' that is not a function of the module and an index");
        return;
    }
    const char *wrong = NULL;
    if (are_comparable(v->func, parts))
        wrong = tcc_streaming_merge_wrong(v->func, parts, merges.list.items[1].s, v->base.arena);
    if (wrong)
        func_error(v, tcc_arena_printf(v->base.arena, "merges %s: %s", parts->name, wrong));
}

static void check_extents(verifier *v)
{
    tcc_attr extents = tcc_attr_list(&v->func->attrs, "extents");
    bool ok = true;
    for (size_t i = 0; i < extents.list.n && ok; i++) {
        const char *index;
        tcc_dim extent;
        ok = tcc_extents_read(&extents.list.items[i], &index, &extent);
    }
    if (!ok)
        func_error(v, "has an attribute 'extents' that is not a list of pairs, each of an index and its extent");
}

static bool is_axis(tcc_attr axes, const char *index)
{
    size_t n = 0;
    for (size_t i = 0; i < axes.list.n; i++)
        n += !strcmp(axes.list.items[i].s, index);
    return n == 1;
}

static void check_axes(verifier *v)
{
    tcc_attr axes = tcc_attr_list(&v->func->attrs, "axes");
    bool ok = axes.list.n != 1;
    for (size_t i = 0; i < axes.list.n && ok; i++)
        ok = axes.list.items[i].kind == TCC_ATTR_STR;
    for (const tcc_op *op = v->func->body->first; op && ok && axes.list.n; op = op->next)
        for (size_t d = 0; op->code == TCC_OP_tensor_write && d < tcc_access_rank(op) && ok; d++)
            ok = tcc_access_index(op, d) && is_axis(axes, tcc_access_index(op, d));
    if (!ok)
        func_error(v, "has an attribute 'axes' that is not a list of two or more names, with each index of an output "
                      "once");
}

/* ---- entry points ---------------------------------------------------------------------- */

bool tcc_func_verify(const tcc_func *f, unsigned levels, tcc_diag *diag)
{
    verifier v = {.base = {.diag = diag, .arena = f->ir->arena, .ok = true},
                  .func = f,
                  .levels = levels,
                  .seen = TCC_MAP(f->ir->arena)};
    const char *wrong = tcc_assume_wrong(f, v.base.arena);
    if (wrong)
        func_error(&v, tcc_arena_printf(v.base.arena, "has an attribute 'assumes' that %s", wrong));
    check_cost(&v);
    check_grid(&v);
    check_extents(&v);
    check_merges(&v);
    check_axes(&v);
    v.base.ok &= tcc_verify_func_attrs(f, v.base.arena, diag);
    check_block(&v, f->body);
    check_use_counts(&v);
    if (!f->body->last || f->body->last->code != TCC_OP_func_return)
        func_error(&v, "does not end in 'return'");
    if (v.base.ok)
        tcc_verify_accumulators(&v.base, f);
    return v.base.ok;
}

bool tcc_ir_verify(const tcc_ir *ir, unsigned levels, tcc_diag *diag)
{
    bool ok = tcc_verify_module_attrs(ir, diag);
    for (const tcc_func *f = ir->first; f; f = f->next)
        ok &= tcc_func_verify(f, levels, diag);
    return ok;
}

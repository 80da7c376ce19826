/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/plan.h"

#include <string.h>

#include "ir/assume.h"
#include "ir/cut.h"
#include "ir/plan.h"
#include "ir/signature.h"
#include "ir/target.h"
#include "support/extent.h"

/* ---- what a step reads and stores --------------------------------------------------------------- */

/* The tensor that a parameter is, or through which it is reached; NULL: none. */
static const char *tensor_of(const tcc_func *f, size_t parameter)
{
    if (!tcc_func_is_entry(f))
        return f->body->args[parameter]->name;
    tcc_attr params = tcc_attr_list(&f->attrs, "params");
    tcc_attr record = parameter < params.list.n ? params.list.items[parameter] : (tcc_attr){0};
    bool named = record.kind == TCC_ATTR_LIST && record.list.n > 1 && record.list.items[1].kind == TCC_ATTR_STR;
    return named ? record.list.items[1].s : NULL;
}

/* The number of the parameter whose tensor an op accesses; -1: there is none. */
static int accessed_by(const tcc_op *op)
{
    if (!tcc_op_does(op->code, TCC_READS_TENSOR | TCC_WRITES_TENSOR))
        return tcc_op_global_parameter(op);
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i]->type->kind == TCC_KIND_tensor && op->operands[i]->block)
            return (int)op->operands[i]->index;
    return -1;
}

unsigned char *tcc_parameter_uses(const tcc_func *f)
{
    unsigned char *of = TCC_NEW_ARRAY(f->ir->arena, unsigned char, f->body->n_args + 1);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        int parameter = accessed_by(op);
        if (parameter < 0)
            continue;
        of[parameter] |= tcc_op_does(op->code, TCC_READS_TENSOR | TCC_READS_GLOBAL) ? TCC_READS : 0;
        of[parameter] |= tcc_op_does(op->code, TCC_WRITES_TENSOR | TCC_WRITES_GLOBAL) ? TCC_STORES : 0;
    }
    return of;
}

/* The same for each of a variant's arguments. */
static unsigned char *find_uses(const tcc_func *step, const tcc_func *arguments)
{
    unsigned char *uses = TCC_NEW_ARRAY(step->ir->arena, unsigned char, arguments->body->n_args + 1);
    const unsigned char *of = tcc_parameter_uses(step);
    for (size_t i = 0; i < step->body->n_args; i++) {
        const char *name = of[i] ? tensor_of(step, i) : NULL;
        const tcc_value *argument = name ? tcc_func_parameter(arguments, name) : NULL;
        if (argument)
            uses[argument->index] |= of[i];
    }
    return uses;
}

/* ---- text --------------------------------------------------------------------------------------- */

/* sum: f32[H, S, T], total: f32 */
static void print_tensor(tcc_str *out, tcc_arena *arena, const tcc_value *tensor)
{
    const tcc_type *t = tensor->type;
    tcc_str_printf(out, "%s: %s", tensor->name, tcc_scalar_name(t->elem));
    for (unsigned d = 0; d < t->rank; d++) {
        tcc_str_puts(out, d ? ", " : "[");
        if (t->dims[d].name)
            tcc_str_puts(out, tcc_extent_text(arena, t->dims[d].name));
        else
            tcc_str_printf(out, "%lld", (long long)t->dims[d].size);
    }
    tcc_str_puts(out, t->rank ? "]" : "");
}

/* The tensors among a variant's arguments that a step uses in a way. */
static void print_uses(tcc_str *out, const tcc_func *arguments, const unsigned char *uses, unsigned use,
                       const char *what)
{
    const char *sep = what;
    for (size_t i = 0; i < arguments->body->n_args; i++) {
        if (!(uses[i] & use))
            continue;
        tcc_str_puts(out, sep);
        print_tensor(out, arguments->ir->arena, arguments->body->args[i]);
        sep = ", ";
    }
    tcc_str_puts(out, sep == what ? "" : "\n");
}

/* An expression as text: 4 * M * roundup(N, 32). A sum is in parentheses where it is a factor. */
static void print_expr(tcc_str *out, tcc_arena *arena, tcc_attr a, bool is_factor)
{
    if (a.kind == TCC_ATTR_STR && !(is_factor && tcc_extent_is_sum(a.s)))
        tcc_str_puts(out, tcc_extent_text(arena, a.s));
    else if (a.kind == TCC_ATTR_STR)
        tcc_str_puts(out, a.s);
    else if (a.kind != TCC_ATTR_LIST)
        tcc_attr_print(out, &a);
    if (a.kind != TCC_ATTR_LIST)
        return;
    const char *op = a.list.items[0].s;
    bool is_product = !strcmp(op, tcc_expr_op_name(TCC_EXPR_mul));
    if (!is_product)
        tcc_str_printf(out, "%s(", op);
    for (size_t i = 1; i < a.list.n; i++) {
        tcc_str_puts(out, i == 1 ? "" : is_product ? " * " : ", ");
        print_expr(out, arena, a.list.items[i], is_product);
    }
    tcc_str_puts(out, is_product ? "" : ")");
}

/* The bytes that a workspace tensor takes: as a number where that is known. */
static void print_bytes(tcc_str *out, tcc_ir *ir, const tcc_value *tensor)
{
    const tcc_attr bytes = tcc_workspace_bytes(ir, tensor->type), none = {.kind = TCC_ATTR_LIST};
    const tcc_device_attrs device = {0};
    tcc_expr e;
    int64_t number;
    if (!tcc_expr_read(ir->arena, bytes, none, &e) && tcc_expr_value(&e, NULL, &device, &number))
        tcc_str_printf(out, "%lld", (long long)number);
    else
        print_expr(out, ir->arena, bytes, false);
}

static bool is_zeroed(const tcc_func *variant, const char *workspace)
{
    bool zeroed = false;
    for (size_t s = 0; s < tcc_func_step_count(variant); s++)
        zeroed |= tcc_func_is_zeroed(tcc_func_step_at(variant, s), workspace);
    return zeroed;
}

static void print_workspace(tcc_str *out, const tcc_func *variant, const tcc_func *workspace)
{
    for (size_t i = 0; i < workspace->body->n_args; i++) {
        const tcc_value *tensor = workspace->body->args[i];
        tcc_str_puts(out, "  workspace ");
        print_tensor(out, workspace->ir->arena, tensor);
        tcc_str_puts(out, ", ");
        print_bytes(out, variant->ir, tensor);
        tcc_str_printf(out, " bytes%s\n", is_zeroed(variant, tensor->name) ? ", 0 before the first step" : "");
    }
}

/* What distinguishes a variant from others: all but the names of its steps. */
static void print_steps(tcc_str *out, const tcc_func *variant, const tcc_func *arguments, bool names)
{
    for (size_t s = 0; s < tcc_func_step_count(variant); s++) {
        const tcc_func *step = tcc_func_step_at(variant, s);
        const unsigned char *uses = find_uses(step, arguments);
        const char *why = tcc_cut_why(step);
        tcc_str_printf(out, "  step %zu %s\n", s + 1, names ? step->name : "");
        print_uses(out, arguments, uses, TCC_READS, "    reads  ");
        print_uses(out, arguments, uses, TCC_STORES, "    stores ");
        if (why)
            tcc_str_printf(out, "    since  %s\n", why);
    }
}

/* ---- variants ------------------------------------------------------------------------------------ */

typedef struct plans {
    tcc_str *out;
    const char **seen; /* plans without names */
    size_t n;
} plans;

static bool is_new(plans *p, const char *plan)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->seen[i], plan))
            return false;
    p->seen[p->n++] = plan;
    return true;
}

static void print_variant(plans *p, const tcc_func *variant)
{
    tcc_diag silent = {0};
    tcc_arena *arena = variant->ir->arena;
    const tcc_func *arguments = tcc_func_parameters(variant, arena, &silent);
    const tcc_func *workspace = tcc_func_workspace(variant, arena, &silent);
    if (!arguments || !workspace) /* the signature has been refused */
        return;
    size_t start = p->out->len;
    print_steps(p->out, variant, arguments, false);
    print_workspace(p->out, variant, workspace);
    if (p->out->failed)
        return;
    const char *plan = tcc_arena_strdup(arena, p->out->data + start);
    p->out->len = start;
    p->out->data[start] = 0;
    if (!is_new(p, plan))
        return;
    tcc_str_printf(p->out, "plan of %s for %s\n", variant->name, tcc_target_of(variant->ir)->name);
    print_steps(p->out, variant, arguments, true);
    print_workspace(p->out, variant, workspace);
}

void tcc_plan_print(tcc_str *out, const tcc_ir *ir, const char *kernel)
{
    size_t n = 0;
    for (const tcc_func *f = ir->first; f; f = f->next)
        n++;
    plans p = {out, TCC_NEW_ARRAY(ir->arena, const char *, n), 0};
    for (const tcc_func *f = ir->first; f; f = f->next)
        if (tcc_func_is_variant(f) && !tcc_func_is_step(f) && !strcmp(tcc_func_kernel(f), kernel))
            print_variant(&p, f);
}

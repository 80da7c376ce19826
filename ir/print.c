/* print: IR as text. parse.c has the grammar; what is printed reads back as the same IR.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/index.h"
#include "ir/ir.h"
#include "ir/lex.h"
#include "support/map.h"
#include "support/number.h"

typedef struct printer {
    tcc_str *out;
    unsigned flags;
    tcc_map texts;     /* from a value with a name to what follows its % */
    tcc_map numbers;   /* from a value without a name to its number, counted from 1 */
    tcc_intern *names; /* of this function */
    tcc_map taken;     /* name -> suffix of the last value that wanted it, counted from 1 */
    tcc_arena *scratch;
    unsigned n_numbered;
} printer;

/* ---- names of values ------------------------------------------------------------------- */

/* The name itself, or with the first suffix that makes it new. */
static const char *unique_name(printer *p, const char *wanted)
{
    const char *name = tcc_intern_get(p->names, wanted, strlen(wanted));
    if (!*tcc_map_at(&p->taken, name)) {
        *tcc_map_at(&p->taken, name) = (void *)1;
        return name;
    }
    for (uintptr_t n = (uintptr_t)tcc_map_get(&p->taken, name);; n++) {
        const char *text = tcc_arena_printf(p->scratch, "%s_%zu", name, (size_t)n);
        const char *suffixed = tcc_intern_get(p->names, text, strlen(text));
        if (tcc_map_get(&p->taken, suffixed))
            continue;
        *tcc_map_at(&p->taken, suffixed) = (void *)1;
        *tcc_map_at(&p->taken, name) = (void *)(n + 1);
        return suffixed;
    }
}

static void name_value(printer *p, const tcc_value *v)
{
    if (v->name && tcc_is_ident(v->name, strlen(v->name)))
        *tcc_map_at(&p->texts, v) = (void *)(uintptr_t)unique_name(p, v->name);
    else
        *tcc_map_at(&p->numbers, v) = (void *)(uintptr_t)++p->n_numbered;
}

/* In the order of the text. Regions nest as deeply as the IR does: the parser bounds that. */
static void name_block(printer *p, const tcc_block *b)
{
    for (size_t i = 0; i < b->n_args; i++)
        name_value(p, b->args[i]);
    for (const tcc_op *op = b->first; op; op = op->next) {
        for (unsigned i = 0; i < op->n_results; i++)
            name_value(p, &op->results[i]);
        for (unsigned r = 0; r < op->n_regions; r++)
            name_block(p, op->regions[r]);
    }
}

/* ---- attributes ------------------------------------------------------------------------ */

static void print_string(tcc_str *out, const char *s)
{
    size_t n = strlen(s);
    if (tcc_is_ident(s, n) && !tcc_is_float_word(s, n) && !strchr(s, '.')) {
        tcc_str_puts(out, s);
        return;
    }
    tcc_str_puts(out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            tcc_str_printf(out, "\\%c", c);
        else if (c == '\n' || c == '\t')
            tcc_str_puts(out, c == '\n' ? "\\n" : "\\t");
        else if (c < ' ' || c == 127)
            tcc_str_printf(out, "\\x%02x", c);
        else
            tcc_str_append(out, s, 1);
    }
    tcc_str_puts(out, "\"");
}

void tcc_attr_print(tcc_str *out, const tcc_attr *a)
{
    switch (a->kind) {
    case TCC_ATTR_INT: tcc_str_int(out, a->i); break;
    case TCC_ATTR_FLOAT: tcc_str_double(out, a->f); break;
    case TCC_ATTR_STR: print_string(out, a->s); break;
    case TCC_ATTR_INDEX: tcc_index_print(out, a->index); break;
    default:
        tcc_str_puts(out, "[");
        for (size_t i = 0; i < a->list.n; i++) {
            tcc_str_puts(out, i ? ", " : "");
            tcc_attr_print(out, &a->list.items[i]);
        }
        tcc_str_puts(out, "]");
    }
}

static void print_attrs(tcc_str *out, const tcc_attrs *attrs)
{
    for (size_t i = 0; i < attrs->len; i++) {
        tcc_str_puts(out, i ? ", " : " {");
        tcc_str_puts(out, attrs->data[i].name);
        tcc_str_puts(out, " = ");
        tcc_attr_print(out, &attrs->data[i].value);
    }
    if (attrs->len)
        tcc_str_puts(out, "}");
}

/* ---- ops ------------------------------------------------------------------------------- */

static void print_value(printer *p, const tcc_value *v)
{
    uintptr_t number = (uintptr_t)tcc_map_get(&p->numbers, v);
    const char *text = number ? NULL : tcc_map_get(&p->texts, v);
    tcc_str_puts(p->out, "%");
    if (number)
        tcc_str_int(p->out, (int64_t)number - 1);
    else
        tcc_str_puts(p->out, text ? text : "unknown");
}

static void print_args(printer *p, const tcc_block *b)
{
    for (size_t i = 0; i < b->n_args; i++) {
        tcc_str_puts(p->out, i ? ", " : "");
        print_value(p, b->args[i]);
        tcc_str_puts(p->out, ": ");
        tcc_type_print(p->out, b->args[i]->type);
    }
}

static void print_loc(printer *p, tcc_loc loc)
{
    if (!(p->flags & TCC_PRINT_LOCS) || !loc.line)
        return;
    tcc_str_puts(p->out, " loc(");
    tcc_str_int(p->out, loc.line);
    tcc_str_puts(p->out, ":");
    tcc_str_int(p->out, loc.column);
    tcc_str_puts(p->out, ")");
}

/* An op without its regions. */
static void print_head(printer *p, const tcc_op *op)
{
    for (unsigned i = 0; i < op->n_results; i++) {
        tcc_str_puts(p->out, i ? ", " : "");
        print_value(p, &op->results[i]);
    }
    tcc_str_puts(p->out, op->n_results ? " = " : "");
    tcc_str_puts(p->out, tcc_op_info_get(op->code)->name);
    for (unsigned i = 0; i < op->n_operands; i++) {
        tcc_str_puts(p->out, i ? ", " : " ");
        print_value(p, op->operands[i]);
    }
    print_attrs(p->out, &op->attrs);
    for (unsigned i = 0; i < op->n_results; i++) {
        tcc_str_puts(p->out, i ? ", " : " : ");
        tcc_type_print(p->out, op->results[i].type);
    }
    print_loc(p, op->loc);
}

/* Empty regions at the end need no text. */
static unsigned n_printed_regions(const tcc_op *op)
{
    unsigned n = op->n_regions;
    while (n && !op->regions[n - 1]->first && !op->regions[n - 1]->n_args)
        n--;
    return n;
}

static void print_ops(printer *p, const tcc_block *b, size_t indent)
{
    for (const tcc_op *op = b->first; op; op = op->next) {
        tcc_str_indent(p->out, indent);
        print_head(p, op);
        for (unsigned r = 0, n = n_printed_regions(op); r < n; r++) {
            tcc_str_puts(p->out, " {\n");
            if (op->regions[r]->n_args) {
                tcc_str_indent(p->out, indent);
                tcc_str_puts(p->out, "^(");
                print_args(p, op->regions[r]);
                tcc_str_puts(p->out, "):\n");
            }
            print_ops(p, op->regions[r], indent + 2);
            tcc_str_indent(p->out, indent);
            tcc_str_puts(p->out, "}");
        }
        tcc_str_puts(p->out, "\n");
    }
}

/* ---- functions and modules ------------------------------------------------------------- */

static void print_func(printer *p, const tcc_func *f)
{
    tcc_str_printf(p->out, "func @%s(", f->name);
    print_args(p, f->body);
    tcc_str_puts(p->out, ")");
    print_attrs(p->out, &f->attrs);
    print_loc(p, f->loc);
    tcc_str_puts(p->out, " {\n");
    print_ops(p, f->body, 2);
    tcc_str_puts(p->out, "}\n");
}

/* Prints a function, or one op of it, with names that it assigns to the function's values. */
static void print_named(tcc_str *out, const tcc_func *f, const tcc_op *op, unsigned flags)
{
    jmp_buf oom;
    tcc_arena *scratch = tcc_arena_create(&oom);
    if (!scratch || setjmp(oom)) {
        out->failed = true;
        tcc_arena_destroy(scratch);
        return;
    }
    printer p = {.out = out,
                 .flags = flags,
                 .texts = TCC_MAP(scratch),
                 .numbers = TCC_MAP(scratch),
                 .names = tcc_intern_create(scratch),
                 .taken = TCC_MAP(scratch),
                 .scratch = scratch};
    name_block(&p, f->body);
    if (op)
        print_head(&p, op);
    else
        print_func(&p, f);
    tcc_arena_destroy(scratch);
}

void tcc_op_print(tcc_str *out, const tcc_op *op, unsigned flags)
{
    print_named(out, op->block->func, op, flags);
}

void tcc_func_print(tcc_str *out, const tcc_func *f, unsigned flags)
{
    print_named(out, f, NULL, flags);
}

void tcc_ir_print(tcc_str *out, const tcc_ir *ir, unsigned flags)
{
    if (ir->attrs.len) {
        tcc_str_puts(out, "module");
        print_attrs(out, &ir->attrs);
        tcc_str_puts(out, "\n");
    }
    for (const tcc_func *f = ir->first; f; f = f->next) {
        tcc_str_puts(out, f != ir->first || ir->attrs.len ? "\n" : "");
        tcc_func_print(out, f, flags);
    }
}

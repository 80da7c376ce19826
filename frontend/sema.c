/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/sema.h"

#include <string.h>

#include "support/extent.h"

static const int64_t MAX_ELEMS = INT64_C(1) << 46; /* of a tensor: half the address space in f16 */

/* ---- names ----------------------------------------------------------------------------- */

tcc_decl *tcc_sema_lookup(const tcc_sema *s, const char *name)
{
    tcc_decl *d = tcc_names_get(&s->scope, name);
    return d ? d : tcc_names_get(&s->consts, name);
}

tcc_decl *tcc_sema_declare(tcc_sema *s, tcc_names *scope, tcc_decl_kind kind, tcc_ast_name name)
{
    tcc_decl *d = TCC_NEW(s->arena, tcc_decl);
    d->kind = kind;
    d->loc = name.loc;
    tcc_names_put(s->arena, scope, name.text, d);
    return d;
}

static void report_duplicate(tcc_sema *s, tcc_ast_name name, tcc_loc first)
{
    tcc_error(s->diag, TCC_ERR_TYPE, name.loc, "'%s' is defined twice", name.text);
    tcc_note(s->diag, first, "'%s' is first defined here", name.text);
}

/* ---- constants and -D ------------------------------------------------------------------ */

static void declare_defines(tcc_sema *s, tcc_intern *names, const tcc_frontend_define *defines,
                            size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char *name = tcc_intern_get(names, defines[i].name, strlen(defines[i].name));
        if (tcc_names_get(&s->defines, name)) {
            tcc_error(s->diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0}, "-D %s is given twice", name);
            continue;
        }
        tcc_frontend_define *copy = TCC_NEW(s->arena, tcc_frontend_define);
        *copy = defines[i];
        tcc_names_put(s->arena, &s->defines, name, copy);
    }
}

static void declare_consts(tcc_sema *s)
{
    for (size_t i = 0; i < s->file->consts.len; i++) {
        tcc_ast_const *c = s->file->consts.data[i];
        const tcc_decl *first = tcc_names_get(&s->consts, c->name.text);
        if (first) {
            report_duplicate(s, c->name, first->loc);
            continue;
        }
        tcc_sema_declare(s, &s->consts, TCC_DECL_CONST, c->name)->constant = c;
        const tcc_frontend_define *define = tcc_names_get(&s->defines, c->name.text);
        if (define) {
            c->integer = define->value;
            c->number = (double)define->value;
            c->is_integer = true;
        }
    }
}

/* ---- signatures ------------------------------------------------------------------------ */

const char *tcc_sema_dim_text(tcc_sema *s, const tcc_ast_dim *dim)
{
    if (!dim->name.text)
        return tcc_arena_printf(s->arena, "%lld", (long long)dim->size);
    if (!dim->size)
        return tcc_extent_text(s->arena, dim->name.text);
    return tcc_arena_printf(s->arena, "%s = %lld", dim->name.text, (long long)dim->size);
}

void tcc_sema_note_param(tcc_sema *s, const tcc_ast_param *param)
{
    const char *type = tcc_scalar_name(param->elem);
    for (size_t i = 0; i < param->dims.len; i++)
        type = tcc_arena_printf(s->arena, "%s%s%s%s", type, i ? ", " : "[",
                                tcc_sema_dim_text(s, &param->dims.data[i]),
                                i + 1 == param->dims.len ? "]" : "");
    if (param->is_strided)
        type = tcc_arena_printf(s->arena, "%s strided", type);
    tcc_note(s->diag, param->name.loc, "'%s' is declared %s here", param->name.text, type);
}

static void declare_param(tcc_sema *s, tcc_ast_param *param)
{
    const tcc_decl *first = tcc_sema_lookup(s, param->name.text);
    if (first) {
        report_duplicate(s, param->name, first->loc);
        return;
    }
    tcc_sema_declare(s, &s->scope, TCC_DECL_PARAM, param->name)->param = param;
    if (param->role == TCC_ROLE_INOUT && !param->dims.len)
        tcc_error(s->diag, TCC_ERR_TYPE, param->name.loc, "scalar '%s' cannot be inout",
                  param->name.text);
    tcc_sema_param_type(s, param);
}

/* Names the strides of a parameter, A_stride_0 and so on, and binds those that -D gives. */
static void bind_strides(tcc_sema *s, tcc_ast_param *param)
{
    size_t n = param->is_strided ? param->dims.len : 0;
    if (param->is_strided && !n)
        tcc_error(s->diag, TCC_ERR_TYPE, param->strided, "'%s' has no dimensions, and cannot be strided",
                  param->name.text);
    param->strides = TCC_NEW_ARRAY(s->arena, tcc_ast_dim, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = tcc_arena_printf(s->arena, "%s_stride_%zu", param->name.text, i);
        tcc_ast_dim *stride = &param->strides[i];
        *stride = (tcc_ast_dim){.name = {tcc_ir_name(s->ir, name), param->strided}};
        const tcc_decl *first = tcc_sema_lookup(s, stride->name.text);
        if (!first) {
            *stride = *tcc_sema_declare_dim(s, stride->name);
            continue;
        }
        tcc_error(s->diag, TCC_ERR_TYPE, param->strided, "'%s' is a stride of '%s', and something else",
                  stride->name.text, param->name.text);
        tcc_note(s->diag, first->loc, "'%s' is first defined here", stride->name.text);
    }
}

static void check_size(tcc_sema *s, const tcc_ast_param *param)
{
    int64_t elems = 1;
    for (size_t i = 0; i < param->dims.len; i++)
        if (tcc_sema_is_extent(param->dims.data[i].size) &&
            __builtin_mul_overflow(elems, param->dims.data[i].size, &elems))
            elems = INT64_MAX;
    if (elems > MAX_ELEMS)
        tcc_error(s->diag, TCC_ERR_TYPE, param->name.loc,
                  "'%s' has more than %lld elements, the most that a tensor can have",
                  param->name.text, (long long)MAX_ELEMS);
}

static void check_kernel(tcc_sema *s, tcc_ast_kernel *kernel)
{
    unsigned n_errors = s->diag->n_errors;
    s->kernel = kernel;
    s->scope = (tcc_names){0};
    s->indices = (tcc_names){0};
    bool has_output = false;
    for (size_t i = 0; i < kernel->params.len; i++) {
        declare_param(s, kernel->params.data[i]);
        has_output |= kernel->params.data[i]->role == TCC_ROLE_OUT ||
                      kernel->params.data[i]->role == TCC_ROLE_INOUT;
    }
    for (size_t i = 0; i < kernel->params.len; i++) {
        tcc_ast_param *param = kernel->params.data[i];
        for (size_t j = 0; j < param->dims.len; j++)
            tcc_sema_dim(s, &param->dims.data[j]);
        check_size(s, param);
    }
    for (size_t i = 0; i < kernel->params.len; i++)
        bind_strides(s, kernel->params.data[i]);
    if (kernel->has_body && !has_output)
        tcc_error(s->diag, TCC_ERR_TYPE, kernel->name.loc, "kernel '%s' has no output",
                  kernel->name.text);
    kernel->valid = kernel->valid && s->diag->n_errors == n_errors;
    if (kernel->has_body)
        tcc_sema_body(s);
    kernel->valid = kernel->valid && s->diag->n_errors == n_errors;
}

/* ---- the file --------------------------------------------------------------------------- */

static void declare_kernels(tcc_sema *s)
{
    for (size_t i = 0; i < s->file->kernels.len; i++) {
        tcc_ast_kernel *kernel = s->file->kernels.data[i];
        const tcc_ast_kernel *first = tcc_names_get(&s->kernels, kernel->name.text);
        if (first)
            report_duplicate(s, kernel->name, first->name.loc);
        else
            tcc_names_put(s->arena, &s->kernels, kernel->name.text, kernel);
        if (strstr(kernel->name.text, "__"))
            tcc_error(s->diag, TCC_ERR_TYPE, kernel->name.loc,
                      "kernel name '%s' contains '__', which names the compiler's variants",
                      kernel->name.text);
    }
}

/* Every -D must have met a constant or a dimension. With syntax errors in the file, the place
 * may just not have been read. */
static void check_defines(tcc_sema *s, bool parsed)
{
    tcc_names dims = {0};
    for (size_t i = 0; i < s->file->kernels.len; i++) {
        const tcc_names *own = &s->file->kernels.data[i]->dims;
        for (size_t j = 0; j < own->len; j++)
            if (!tcc_names_get(&dims, own->entries[j].name))
                tcc_names_put(s->arena, &dims, own->entries[j].name, own->entries[j].what);
    }
    for (size_t i = 0; i < s->defines.len; i++) {
        const char *name = s->defines.entries[i].name;
        const tcc_frontend_define *define = s->defines.entries[i].what;
        bool is_const = tcc_names_get(&s->consts, name), is_dim = tcc_names_get(&dims, name);
        if (is_dim && !tcc_sema_is_extent(define->value))
            tcc_error(s->diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0},
                      "-D %s=%lld: a dimension must be from 1 to %lld", name,
                      (long long)define->value, (long long)TCC_MAX_EXTENT);
        if (is_dim || is_const || !parsed)
            continue;
        tcc_spelling spelling = {.wanted = name};
        tcc_spelling_try_all(&spelling, &dims);
        tcc_spelling_try_all(&spelling, &s->consts);
        tcc_error(s->diag, TCC_ERR_ARGUMENT, (tcc_loc){0, 0},
                  "-D %s: no dimension or constant has this name%s", name,
                  tcc_spelling_hint(s->arena, &spelling));
    }
}

void tcc_sema_file(tcc_arena *arena, tcc_ast_file *file, tcc_ir *ir, const char *target,
                   const tcc_frontend_define *defines, size_t n_defines, tcc_diag *diag)
{
    tcc_sema s = {.arena = arena, .diag = diag, .file = file, .target = target, .ir = ir};
    bool parsed = !diag->n_errors;
    declare_defines(&s, ir->names, defines, n_defines);
    declare_consts(&s);
    declare_kernels(&s);
    for (size_t i = 0; i < file->kernels.len && diag->n_errors < TCC_MAX_ERRORS; i++)
        check_kernel(&s, file->kernels.data[i]);
    check_defines(&s, parsed);
    tcc_sema_schedules(&s);
    if (!file->kernels.len && parsed)
        tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0, 0}, "no kernel in this file");
}

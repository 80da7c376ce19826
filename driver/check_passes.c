/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/check_passes.h"

#include <stdlib.h>
#include <string.h>

#include "driver/shapes.h"
#include "driver/trial.h"
#include "ir/hash.h"
#include "ir/signature.h"
#include "passes/passes.h"
#include "support/random.h"
#include "support/str.h"

enum {
    SHAPES_AFTER_PASS = 1, /* that a function which a pass changed is run on */
    ORDERS = 3,            /* of the machine, for what the last pass leaves */
    ONE_IN = 6,            /* changes is run in a sample */
    ONE_SHAPE_IN = 5       /* is enough there for what the last pass leaves */
};

/* Work (shapes.h) of one run: after a pass, and after the last. Other orders are tried as long as
 * all runs of a function are no more than some. A second of it is about 2e8. */
static const double most_after_pass = 1e7, most_at_last = 6e7, most_for_orders = 2e7;

typedef struct kernel {
    const tcc_func *f;         /* at the tensor level */
    const tcc_func *scheduled; /* its first variant, at the tensor level */
    tcc_shapes shapes;
    tcc_trial *trials; /* for each shape; without arguments: not prepared yet */
} kernel;

/* A function as a pass left it. */
typedef struct form {
    const char *name, *text;
    uint64_t hash; /* tcc_func_hash, when the text was printed */
    bool changed;  /* by the last pass */
} form;

/* The module as a pass left it. */
typedef struct stage {
    const char *pass;
    const char **texts; /* of its functions */
    size_t n;
} stage;

struct tcc_pass_check {
    tcc_arena *arena, *scratch; /* the latter for runs */
    tcc_diag *diag;
    tcc_pass_check_options options;
    uint64_t turn;  /* counts runs, so that no two have the same shape and order */
    uint64_t draws; /* state of the random numbers that choose changes to run */
    kernel *kernels;
    size_t n_kernels;
    const tcc_ir *scheduled; /* variants with their schedules, at the tensor level */
    TCC_VEC(form) forms;
    TCC_VEC(stage) stages;
    TCC_VEC(char *) texts; /* each change of a function once */
    char *head;            /* of the module */
};

/* ---- the kernels ------------------------------------------------------------------------- */

/* Copies a module, with its source locations, through its text. */
static tcc_ir *copy_module(tcc_arena *arena, const char *text)
{
    tcc_diag silent = {0};
    return tcc_ir_parse(arena, text, strlen(text), &silent);
}

/* What comes before the functions. */
static char *print_head(const tcc_ir *ir)
{
    tcc_str text = {0};
    tcc_ir head = *ir;
    head.first = NULL;
    tcc_ir_print(&text, &head, TCC_PRINT_LOCS);
    return tcc_str_take(&text);
}

static form *form_of(tcc_pass_check *c, const tcc_func *f)
{
    for (size_t i = 0; i < c->forms.len; i++)
        if (!strcmp(c->forms.data[i].name, f->name))
            return &c->forms.data[i];
    TCC_PUSH(c->arena, &c->forms, (form){.name = tcc_arena_strdup(c->arena, f->name)});
    return &c->forms.data[c->forms.len - 1];
}

/* A place for a text, which is freed with the check: what the arena has no memory for ends the compilation at once. */
static char **room_for_text(tcc_pass_check *c)
{
    TCC_PUSH(c->arena, &c->texts, NULL);
    return &c->texts.data[c->texts.len - 1];
}

static void drop_text(tcc_pass_check *c)
{
    free(c->texts.data[--c->texts.len]);
}

/* Saves the text of f; false if memory runs out. Most passes leave most functions as they are, which takes less to find
 * out than to print them. */
static bool keep_form(tcc_pass_check *c, const tcc_func *f)
{
    form *known = form_of(c, f);
    uint64_t hash = tcc_func_hash(f);
    if (known->text && known->hash == hash) {
        known->changed = false;
        return true;
    }
    known->hash = hash;
    char **text = room_for_text(c);
    tcc_str printed = {0};
    tcc_func_print(&printed, f, TCC_PRINT_LOCS);
    *text = tcc_str_take(&printed);
    bool printable = *text;
    known->changed = printable && (!known->text || strcmp(known->text, *text));
    if (known->changed)
        known->text = *text;
    else
        drop_text(c);
    return printable;
}

/* Remembers the module as a pass left it. */
static tcc_status keep_stage(tcc_pass_check *c, const tcc_ir *ir, const char *pass)
{
    stage s = {.pass = pass};
    for (const tcc_func *f = ir->first; f; f = f->next)
        s.n++;
    s.texts = TCC_NEW_ARRAY(c->arena, const char *, s.n);
    size_t i = 0;
    for (const tcc_func *f = ir->first; f; f = f->next) {
        if (!keep_form(c, f))
            return TCC_ERR_MEMORY;
        s.texts[i++] = form_of(c, f)->text;
    }
    TCC_PUSH(c->arena, &c->stages, s);
    return TCC_OK;
}

/* The module of a stage; NULL if memory runs out. */
static tcc_ir *stage_module(tcc_pass_check *c, const stage *s)
{
    char **text = room_for_text(c);
    tcc_str all = {0};
    tcc_str_puts(&all, c->head);
    for (size_t i = 0; i < s->n; i++)
        tcc_str_puts(&all, s->texts[i]);
    *text = tcc_str_take(&all);
    tcc_ir *ir = *text ? copy_module(c->arena, *text) : NULL;
    drop_text(c);
    return ir;
}

static tcc_shapes choose_shapes(tcc_pass_check *c, const tcc_func *f, const tcc_func *scheduled)
{
    if (!c->options.dims)
        return tcc_shapes_choose(c->arena, f, scheduled, c->options.seed);
    return (tcc_shapes){&c->options.dims, 1};
}

/* Finds shapes by completing the schedules in a copy. If that fails, the compilation fails as well
 * and reports why. */
static void add_kernels(tcc_pass_check *c)
{
    tcc_diag silent = {0};
    const tcc_ir *reference = stage_module(c, &c->stages.data[0]);
    tcc_ir *scheduled = stage_module(c, &c->stages.data[0]);
    if (!reference || !scheduled)
        return;
    for (const tcc_func *f = reference->first; f; f = f->next)
        c->n_kernels++;
    c->kernels = TCC_NEW_ARRAY(c->arena, kernel, c->n_kernels);
    tcc_run_passes(scheduled, tcc_pipeline_to_schedule, NULL, &silent);
    c->scheduled = scheduled;
    kernel *k = c->kernels;
    for (const tcc_func *f = reference->first; f; f = f->next) {
        if (!tcc_func_verify(f, TCC_LEVEL_TENSOR, &silent))
            continue;
        k->f = f;
        k->scheduled = tcc_func_find(scheduled, f->name);
        k->shapes = choose_shapes(c, k->f, k->scheduled);
        k->trials = TCC_NEW_ARRAY(c->arena, tcc_trial, k->shapes.n);
        k++;
    }
    c->n_kernels = (size_t)(k - c->kernels);
}

tcc_status tcc_pass_check_create(tcc_arena *arena, const tcc_ir *ir,
                                 const tcc_pass_check_options *options, tcc_diag *diag,
                                 tcc_pass_check **out)
{
    tcc_pass_check *c = *out = TCC_NEW(arena, tcc_pass_check);
    *c = (tcc_pass_check){
        .arena = arena, .scratch = tcc_arena_create(NULL), .diag = diag, .options = *options, .draws = options->seed};
    c->head = print_head(ir);
    tcc_status status = c->head && c->scratch ? keep_stage(c, ir, "frontend") : TCC_ERR_MEMORY;
    if (!status)
        add_kernels(c);
    return status;
}

void tcc_pass_check_destroy(tcc_pass_check *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->texts.len; i++)
        free(c->texts.data[i]);
    free(c->head);
    tcc_arena_destroy(c->scratch);
}

static kernel *kernel_of(tcc_pass_check *c, const tcc_func *f)
{
    const char *name = tcc_func_kernel(f);
    for (size_t i = 0; i < c->n_kernels; i++) {
        const tcc_func *k = c->kernels[i].f;
        if (!strcmp(tcc_attr_str(&k->attrs, "defines", k->name), name))
            return &c->kernels[i];
    }
    return NULL;
}

static double work_of(const tcc_pass_check *c, const kernel *k, size_t shape, const tcc_func *f)
{
    const tcc_func *variant = tcc_func_find(c->scheduled, f->name);
    return tcc_shape_work(variant ? variant : k->scheduled, k->shapes.dims[shape]);
}

static tcc_status prepare(tcc_pass_check *c, kernel *k, size_t shape)
{
    tcc_trial *t = &k->trials[shape];
    return t->args ? TCC_OK
                   : tcc_trial_prepare(t, c->arena, c->scratch, k->f, k->shapes.dims[shape],
                                       c->options.seed + shape, c->diag);
}

/* ---- reports ----------------------------------------------------------------------------- */

typedef struct failure {
    tcc_trial *trial;
    const tcc_func *f;
    uint64_t order;
    const char *pass;
} failure;

/* Runs what failed, or may have failed, once more; with a diag it reports. */
static tcc_status run_again(const failure *x, tcc_diag *diag)
{
    tcc_difference d;
    tcc_str where = {0}, what = {0};
    tcc_status status = tcc_trial_run(x->trial, x->f, x->order, diag);
    if (status == TCC_ERR_NO_VARIANT || (!status && tcc_trial_agrees(x->trial, x->f, &d)))
        return TCC_OK;
    const tcc_func *k = x->trial->kernel;
    tcc_trial_print_dims(&where, x->trial);
    if (!status) {
        tcc_difference_print(&what, x->trial, &d);
        tcc_error(diag, TCC_ERR_INTERNAL, k->loc, "pass %s changes what kernel '%s' computes: %s",
                  x->pass, k->name, tcc_str_text(&what));
        status = TCC_ERR_INTERNAL;
    }
    tcc_note(diag, k->loc, "this is @%s after pass %s with %s, order %llu of the machine",
             x->f->name, x->pass, tcc_str_text(&where), (unsigned long long)x->order);
    tcc_str_free(&where);
    tcc_str_free(&what);
    return status;
}

/* Reports a failure at the first pass after which it shows: only samples are run after a pass. */
static tcc_status report(tcc_pass_check *c, failure found)
{
    for (size_t i = 0; i < c->stages.len; i++) {
        tcc_diag silent = {0};
        const tcc_ir *ir = stage_module(c, &c->stages.data[i]);
        failure x = found;
        x.f = ir ? tcc_func_find(ir, found.f->name) : NULL;
        x.pass = c->stages.data[i].pass;
        if (x.f && run_again(&x, &silent))
            return run_again(&x, c->diag);
    }
    return run_again(&found, c->diag);
}

/* ---- running ------------------------------------------------------------------------------ */

/* Runs a function on one of its kernel's shapes, and says whether it is valid for that. */
static tcc_status run_shape(tcc_pass_check *c, kernel *k, size_t shape, const tcc_func *f,
                            const char *pass, bool *ran)
{
    *ran = false;
    tcc_status status = prepare(c, k, shape);
    if (status)
        return status;
    tcc_diag silent = {0};
    tcc_difference d;
    failure x = {&k->trials[shape], f, c->options.seed + c->turn++, pass};
    status = tcc_trial_run(x.trial, f, x.order, &silent);
    if (status == TCC_ERR_NO_VARIANT)
        return TCC_OK;
    *ran = true;
    if (status == TCC_ERR_MEMORY || (!status && tcc_trial_agrees(x.trial, f, &d)))
        return status;
    return report(c, x);
}

static tcc_status check_form(tcc_pass_check *c, const tcc_func *f, const char *pass)
{
    kernel *k = kernel_of(c, f);
    tcc_status status = TCC_OK;
    unsigned runs = 0;
    size_t n = k ? k->shapes.n : 0;
    for (size_t i = 0, first = c->turn; i < n && runs < SHAPES_AFTER_PASS && !status; i++) {
        bool ran = false;
        size_t shape = (first + i) % n;
        if (work_of(c, k, shape, f) <= most_after_pass)
            status = run_shape(c, k, shape, f, pass, &ran);
        runs += ran;
    }
    return status;
}

/* Whether the last pass changed a step of a variant, not counting steps of earlier variants. */
static bool has_changed(tcc_pass_check *c, const tcc_func *variant)
{
    bool changed = false;
    for (size_t i = 0; i < tcc_func_step_count(variant) && !changed; i++) {
        const tcc_func *step = tcc_func_step_at(variant, i);
        changed = step && tcc_func_main(step) == variant && form_of(c, step)->changed;
    }
    return changed;
}

static bool is_drawn(tcc_pass_check *c)
{
    return !c->options.sampled || tcc_random(&c->draws, ONE_IN) == 0;
}

/* A step is run with its variant. */
tcc_status tcc_pass_check_after(tcc_pass_check *c, const tcc_ir *ir, const char *pass)
{
    tcc_status status = keep_stage(c, ir, pass);
    for (const tcc_func *f = ir->first; f && !status; f = f->next)
        if (!tcc_func_is_step(f) && has_changed(c, f) && is_drawn(c))
            status = check_form(c, f, pass);
    return status;
}

/* ---- the end ------------------------------------------------------------------------------ */

static tcc_status finish_form(tcc_pass_check *c, kernel *k, const tcc_func *f)
{
    const char *pass = c->stages.data[c->stages.len - 1].pass;
    size_t orders = c->options.dims || c->options.sampled ? 1 : ORDERS;
    size_t n = k->shapes.n, first = c->options.sampled && n > 1 ? tcc_random(&c->draws, n) : 0;
    size_t runs = 0, enough = c->options.sampled ? (n + ONE_SHAPE_IN - 1) / ONE_SHAPE_IN : n * orders, too_large = 0;
    double work = 0;
    tcc_status status = TCC_OK;
    for (size_t order = 0; order < orders && !status; order++)
        for (size_t at = 0; at < n && runs < enough && !status; at++) {
            size_t i = (first + at) % n;
            double one = work_of(c, k, i, f);
            bool ran = false;
            too_large += one > most_at_last;
            if (one > most_at_last || (order && work + one > most_for_orders))
                continue;
            status = run_shape(c, k, i, f, pass, &ran);
            runs += ran;
            work += ran ? one : 0;
        }
    if (!status && !runs)
        tcc_warn(c->diag, k->f->loc, "@%s was not run: %s", f->name,
                 too_large ? "the known extents make it too large"
                           : "it is not valid for any of the shapes tried");
    return status;
}

tcc_status tcc_pass_check_finish(tcc_pass_check *c, const tcc_ir *ir)
{
    tcc_status status = TCC_OK;
    for (const tcc_func *f = ir->first; f && !status; f = f->next) {
        if (tcc_func_is_step(f))
            continue; /* it is run with its variant */
        kernel *k = kernel_of(c, f);
        if (k)
            status = finish_form(c, k, f);
        else if (!tcc_func_is_definition(f))
            tcc_warn(c->diag, f->loc, "@%s was not run: no function at the tensor level defines it",
                     f->name);
    }
    return status;
}

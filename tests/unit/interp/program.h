/* program: a function of textual IR, what it is run on, and what it said. For the tests of interp.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_INTERP_PROGRAM_H
#define TCC_TESTS_INTERP_PROGRAM_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interp/interp.h"
#include "tests/unit/suite.h"

typedef struct program {
    tcc_arena *arena;
    tcc_ir *ir;
    tcc_diag diag;
    char said[1024]; /* the first error: "line:column: message" */
} program;

static inline void program_listen(const tcc_diagnostic *d, void *user)
{
    program *p = user;
    if (!*p->said && d->severity == TCC_SEV_ERROR)
        snprintf(p->said, sizeof p->said, "%u:%u: %s", d->line, d->column, d->message);
}

/* Parses and verifies; the test fails when the text is wrong. */
static inline void program_load(program *p, const char *text)
{
    *p = (program){.arena = tcc_arena_create(NULL)};
    p->diag = (tcc_diag){
        .file = "test.tir", .source = text, .size = strlen(text), .fn = program_listen, .user = p};
    p->ir = tcc_ir_parse(p->arena, text, strlen(text), &p->diag);
    if (!p->ir || !tcc_ir_verify(p->ir, TCC_LEVEL_ALL, &p->diag))
        ck_abort_msg("%s", p->said);
}

static inline tcc_status program_run(program *p, const tcc_interp_options *options,
                                     double *const *args)
{
    return tcc_interp_run(p->ir->first, options, args, p->arena, &p->diag);
}

static inline void program_free(program *p)
{
    tcc_arena_destroy(p->arena);
}

static inline Suite *suite_of(const char *name, void (*add)(TCase *))
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create(name);
    add(t);
    suite_add_tcase(s, t);
    return s;
}

#endif

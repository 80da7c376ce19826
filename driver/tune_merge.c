/* tune_merge: files of results as one.
 *
 * A line stays as it was written, so that what is merged again is the same to the byte.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc_tune.h>

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "driver/context.h"
#include "driver/tune_results.h"
#include "support/json.h"

/* What all lines have in common. */
static const char *const subject[] = {"device", "driver", "tcc", "target", "program", "kernel"};
enum { SUBJECTS = sizeof subject / sizeof *subject };

typedef struct row {
    const char *extents;
    tcc_tune_result result;
    const char *line;
    size_t size;
} row;

typedef struct merge {
    tcc_context *ctx;
    tcc_arena *arena;
    const char *values[SUBJECTS], *file; /* of the first row, and where that is; NULL: there is none yet */
    TCC_VEC(row) rows;
    tcc_str out;
} merge;

/* ---- reading ------------------------------------------------------------------------------ */

/* A string, or a number as text; NULL: neither. */
static const char *text_of(tcc_arena *arena, const tcc_json *value)
{
    return !value                            ? NULL
           : value->kind == TCC_JSON_STRING ? value->string
           : value->kind == TCC_JSON_NUMBER ? tcc_arena_printf(arena, "%.17g", value->number)
                                            : NULL;
}

/* Reads the key of a line; false if it is not a result. */
static bool read_row(tcc_arena *arena, row *out, const char *values[SUBJECTS])
{
    size_t bad;
    const tcc_json *all = tcc_json_parse(arena, out->line, out->size, &bad);
    const tcc_json *extents = tcc_json_member(all, "extents");
    for (size_t i = 0; i < SUBJECTS; i++)
        if (!(values[i] = text_of(arena, tcc_json_member(all, subject[i]))))
            return false;
    if (!extents || extents->kind != TCC_JSON_STRING)
        return false;
    out->extents = extents->string;
    return tcc_tune_result_of(all, &out->result);
}

/* Whether it is of what the others are; says where it is not. */
static bool belongs(merge *m, const char *file, tcc_loc loc, const char *const values[SUBJECTS])
{
    if (!m->file) {
        m->file = file;
        memcpy(m->values, values, sizeof m->values);
    }
    for (size_t i = 0; i < SUBJECTS; i++)
        if (strcmp(m->values[i], values[i])) {
            tcc_diag diag = tcc_context_diag(m->ctx, file, NULL, 0);
            tcc_error(&diag, TCC_ERR_ARGUMENT, loc, "a result for another %s: '%s', but '%s' in %s", subject[i],
                      values[i],
                      m->values[i], m->file);
            return false;
        }
    return true;
}

static tcc_status read_part(merge *m, const tcc_tune_part *part)
{
    const char *line = part->text, *end = part->text + part->size;
    for (uint32_t n = 1; line < end; n++) {
        const char *stop = memchr(line, '\n', (size_t)(end - line));
        row r = {.line = line, .size = (size_t)((stop ? stop : end) - line)};
        tcc_loc loc = {n, 1};
        const char *values[SUBJECTS];
        line += r.size + 1;
        if (!r.size)
            continue;
        if (!read_row(m->arena, &r, values)) {
            tcc_diag diag = tcc_context_diag(m->ctx, part->file, NULL, 0);
            tcc_warn(&diag, loc, "left out: the line is not a result");
            continue;
        }
        if (!belongs(m, part->file, loc, values))
            return TCC_ERR_ARGUMENT;
        TCC_PUSH(m->arena, &m->rows, r);
    }
    return TCC_OK;
}

/* ---- choosing ----------------------------------------------------------------------------- */

static int by_class(const row *x, const row *y)
{
    return strcmp(x->extents, y->extents);
}

static int by_time(const row *x, const row *y)
{
    return (x->result.time > y->result.time) - (x->result.time < y->result.time);
}

/* Sorts a schedule's results by relevance: a wrong one first, else the fastest. */
static int for_choice(const void *a, const void *b)
{
    const row *x = a, *y = b;
    int order = by_class(x, y);
    if (!order)
        order = strcmp(x->result.schedule, y->result.schedule);
    if (!order)
        order = isinf(y->result.time) - isinf(x->result.time);
    return order ? order : by_time(x, y);
}

static int for_reader(const void *a, const void *b)
{
    const row *x = a, *y = b;
    int order = by_class(x, y);
    if (!order)
        order = by_time(x, y);
    return order ? order : strcmp(x->result.schedule, y->result.schedule);
}

static bool is_of_one_schedule(const row *x, const row *y)
{
    return !by_class(x, y) && !strcmp(x->result.schedule, y->result.schedule);
}

static void choose(merge *m)
{
    row *rows = m->rows.data;
    size_t n = 0;
    if (!m->rows.len)
        return;
    qsort(rows, m->rows.len, sizeof *rows, for_choice);
    for (size_t i = 0; i < m->rows.len; i++)
        if (!n || !is_of_one_schedule(&rows[n - 1], &rows[i]))
            rows[n++] = rows[i];
    m->rows.len = n;
    qsort(rows, n, sizeof *rows, for_reader);
}

static tcc_status run(merge *m, const tcc_tune_part *parts, size_t n)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(m->arena, &oom);
    for (size_t i = 0; i < n; i++) {
        tcc_status status = read_part(m, &parts[i]);
        if (status)
            return status;
    }
    choose(m);
    tcc_str_puts(&m->out, "");
    for (size_t i = 0; i < m->rows.len; i++) {
        tcc_str_append(&m->out, m->rows.data[i].line, m->rows.data[i].size);
        tcc_str_puts(&m->out, "\n");
    }
    return m->out.failed ? TCC_ERR_MEMORY : TCC_OK;
}

tcc_status tcc_tune_merge(tcc_context *ctx, const tcc_tune_part *parts, size_t n, char **out)
{
    *out = NULL;
    if (!ctx || (n && !parts))
        return TCC_ERR_ARGUMENT;
    merge m = {.ctx = ctx, .arena = tcc_arena_create(NULL)};
    if (!m.arena)
        return TCC_ERR_MEMORY;
    tcc_status status = run(&m, parts, n);
    if (!status)
        *out = tcc_str_take(&m.out);
    tcc_str_free(&m.out);
    tcc_arena_destroy(m.arena);
    return status;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/tune_results.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DIVIDES = 16 };

void tcc_tune_print_class(tcc_str *out, int64_t extent)
{
    int64_t least = extent, divides = extent & -extent;
    int low = 0; /* bits after the first two */
    for (; least > 3; low++)
        least >>= 1;
    tcc_str_printf(out, "%lld/%lld", (long long)(least << low),
                   (long long)(divides > MOST_DIVIDES || !divides ? MOST_DIVIDES : divides));
}

static tcc_tune_result *find(const tcc_tune_results *r, const char *schedule)
{
    for (size_t i = 0; i < r->all.len; i++)
        if (!strcmp(r->all.data[i].schedule, schedule))
            return &r->all.data[i];
    return NULL;
}

bool tcc_tune_result_of(const tcc_json *line, tcc_tune_result *out)
{
    const tcc_json *schedule = tcc_json_member(line, "schedule"), *time = tcc_json_member(line, "time");
    if (!schedule || schedule->kind != TCC_JSON_STRING || !time)
        return false;
    *out = (tcc_tune_result){schedule->string, time->kind == TCC_JSON_NUMBER ? time->number : INFINITY};
    return true;
}

static void take_line(tcc_tune_results *r, tcc_arena *arena, const char *line, size_t size)
{
    size_t n = strlen(r->key), bad;
    const tcc_json *all = size > n && !memcmp(line, r->key, n) ? tcc_json_parse(arena, line, size, &bad) : NULL;
    tcc_tune_result new;
    if (!tcc_tune_result_of(all, &new))
        return;
    tcc_tune_result *old = find(r, new.schedule);
    if (old)
        *old = new;
    else
        TCC_PUSH(arena, &r->all, new);
}

/* From its beginning. */
static bool read_lines(tcc_tune_results *r, tcc_arena *arena)
{
    char piece[65536];
    ssize_t n;
    while ((n = read(r->file, piece, sizeof piece)) > 0)
        tcc_str_append(&r->text, piece, (size_t)n);
    const char *line = tcc_str_text(&r->text), *all = line, *end;
    for (; (end = strchr(line, '\n')); line = end + 1)
        take_line(r, arena, line, (size_t)(end - line));
    r->broken = line < all + r->text.len;
    return !n && !r->text.failed;
}

bool tcc_tune_results_open(tcc_tune_results *r, tcc_arena *arena, const char *path, const char *key)
{
    *r = (tcc_tune_results){.key = key, .file = -1};
    if (!path)
        return true;
    r->file = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (r->file >= 0 && read_lines(r, arena))
        return true;
    int error = errno;
    tcc_tune_results_close(r);
    errno = error;
    return false;
}

void tcc_tune_results_close(tcc_tune_results *r)
{
    if (r->file >= 0)
        close(r->file);
    r->file = -1;
    tcc_str_free(&r->text);
}

const tcc_tune_result *tcc_tune_results_find(const tcc_tune_results *r, const char *schedule)
{
    return find(r, schedule);
}

bool tcc_tune_results_add(tcc_tune_results *r, const char *schedule, double time)
{
    tcc_str line = {0};
    if (r->file < 0)
        return true;
    tcc_str_printf(&line, "%s%s,\"schedule\":", r->broken ? "\n" : "", r->key);
    tcc_json_print_string(&line, schedule);
    if (isfinite(time))
        tcc_str_printf(&line, ",\"time\":%.6g}\n", time);
    else
        tcc_str_puts(&line, ",\"time\":null}\n");
    errno = ENOMEM;
    bool ok = !line.failed && write(r->file, tcc_str_text(&line), line.len) == (ssize_t)line.len;
    r->broken = false;
    tcc_str_free(&line);
    return ok;
}

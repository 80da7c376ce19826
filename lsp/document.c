/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "lsp/document.h"

#include "support/text.h"

/* The line with this number, from 1, or the end of the text. */
static const char *find_line(const lsp_document *d, uint32_t number, size_t *len)
{
    const char *p = d->text, *end = d->text + d->size;
    for (uint32_t i = 1; i < number && p < end; i++) {
        p = tcc_line_rest(p, end);
        p += tcc_line_end(p, (size_t)(end - p));
    }
    *len = (size_t)(tcc_line_rest(p, end) - p);
    return p;
}

/* The bytes of the character at p, of n that are there. */
static size_t character(const char *p, size_t n, size_t *units)
{
    enum { FIRST_OF_TWO = 0x10000 };
    size_t len = tcc_utf8_length(p, n);
    *units = len && tcc_utf8_decode(p, len) >= FIRST_OF_TWO ? 2 : 1;
    return len ? len : 1;
}

static double number_of(const tcc_json *object, const char *name)
{
    const tcc_json *v = tcc_json_member(object, name);
    return tcc_json_is(v, TCC_JSON_NUMBER) && v->number >= 0 && v->number < UINT32_MAX ? v->number : 0;
}

tcc_loc lsp_document_place(const lsp_document *d, const tcc_json *position)
{
    tcc_loc loc = {(uint32_t)number_of(position, "line") + 1, 1};
    size_t wanted = (size_t)number_of(position, "character"), len, at = 0;
    const char *line = find_line(d, loc.line, &len);
    for (size_t n = 0, units; n < wanted && at < len; n += units)
        at += character(line + at, len - at, &units);
    loc.column = (uint32_t)at + 1;
    return loc;
}

size_t lsp_document_offset(const lsp_document *d, tcc_loc loc)
{
    size_t len, at = loc.column ? loc.column - 1 : 0;
    const char *line = find_line(d, loc.line, &len);
    return (size_t)(line - d->text) + (at < len ? at : len);
}

static size_t units_before(const char *line, size_t len, size_t column)
{
    size_t n = 0;
    for (size_t at = 0, units; at < len && at + 1 < column; n += units)
        at += character(line + at, len - at, &units);
    return n;
}

void lsp_document_print_range(tcc_str *out, const lsp_document *d, tcc_loc from, size_t end_column)
{
    size_t len, line = from.line ? from.line - 1 : 0;
    const char *text = find_line(d, from.line, &len);
    tcc_str_printf(out, "{\"start\": {\"line\": %zu, \"character\": %zu}, ", line, units_before(text, len, from.column));
    tcc_str_printf(out, "\"end\": {\"line\": %zu, \"character\": %zu}}", line, units_before(text, len, end_column));
}

void lsp_document_print_whole(tcc_str *out, const lsp_document *d)
{
    size_t lines = 0;
    const char *end = d->text + d->size;
    for (const char *p = tcc_line_rest(d->text, end); p < end; p = tcc_line_rest(p, end)) {
        lines++;
        p += tcc_line_end(p, (size_t)(end - p));
    }
    tcc_str_printf(out, "{\"start\": {\"line\": 0, \"character\": 0}, \"end\": {\"line\": %zu, \"character\": 0}}", lines + 1);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "lsp/message.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A line of the header without its end; false where there is none, or no room for it. */
static bool read_line(const tcc_lsp_options *io, char *line, size_t room)
{
    size_t n = 0;
    for (char c; n + 1 < room && io->read(&c, 1, io->user) == 1;)
        if (c == '\n') {
            line[n && line[n - 1] == '\r' ? n - 1 : n] = 0;
            return true;
        } else {
            line[n++] = c;
        }
    line[n] = 0;
    return false;
}

static bool parse_length(const char *line, size_t *length)
{
    static const char name[] = "Content-Length:";
    char *end;
    if (strncasecmp(line, name, sizeof name - 1))
        return false;
    long long n = strtoll(line + sizeof name - 1, &end, 10);
    *length = n > 0 && n <= LSP_MAX_BYTES && !*end ? (size_t)n : 0;
    return true;
}

char *lsp_message_read(const tcc_lsp_options *io, tcc_arena *arena, size_t *size, tcc_status *status)
{
    char line[256];
    size_t length = 0;
    *status = TCC_OK;
    if (!read_line(io, line, sizeof line)) {
        *status = *line ? TCC_ERR_SYNTAX : TCC_OK;
        return NULL;
    }
    *status = TCC_ERR_SYNTAX;
    while (*line) {
        parse_length(line, &length);
        if (!read_line(io, line, sizeof line))
            return NULL;
    }
    if (!length)
        return NULL;
    char *text = tcc_arena_alloc(arena, length + 1);
    *size = length;
    if (io->read(text, length, io->user) != length)
        return NULL;
    *status = TCC_OK;
    return text;
}

tcc_status lsp_message_write(const tcc_lsp_options *io, const tcc_str *text)
{
    tcc_str all = {0};
    tcc_str_printf(&all, "Content-Length: %zu\r\n\r\n", text->len);
    tcc_str_append(&all, tcc_str_text(text), text->len);
    tcc_status status = text->failed || all.failed                     ? TCC_ERR_MEMORY
                        : io->write(all.data, all.len, io->user) ? TCC_OK
                                                                       : TCC_ERR_IO;
    tcc_str_free(&all);
    return status;
}

/* nvdisasm, whose listing becomes one to read: without directives, and with the text of source lines.
 *
 * nvdisasm:                                here (slashes around offsets left out there):
 *     .section .text.f,"ax",@progbits     f:
 *     //## File "a.tile", line 4          // a.tile:4: acc[m, n] = sum(k) A[m, k] * B[k, n];
 *     .L_x_1:                             .L_x_1:
 *         *0120*  @!P0 BRA `(.L_x_1) ;        0120  @!P0  BRA .L_x_1
 *
 * cuobjdump, which lists kernels without lines, runs nvdisasm as well.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "codegen/nvptx/toolkit.h"

typedef struct listing {
    const tcc_diag *diag;
    tcc_str *out;
    unsigned line;  /* of the source, that what comes next is of; 0: of none */
    unsigned shown; /* the last that was shown since the last label */
    size_t n_instructions;
} listing;

static bool begins_with(const char *text, size_t len, const char *prefix)
{
    size_t n = strlen(prefix);
    return len >= n && !memcmp(text, prefix, n);
}

/* Takes blanks off both ends. */
static void trim(const char **text, size_t *len)
{
    while (*len && strchr(" \t", **text)) {
        ++*text;
        --*len;
    }
    while (*len && strchr(" \t\r", (*text)[*len - 1]))
        --*len;
}

static void show_line(listing *l)
{
    if (l->line == l->shown)
        return;
    l->shown = l->line;
    if (!l->line)
        return;
    size_t len = 0;
    const char *text = tcc_diag_line(l->diag, (tcc_loc){l->line, 1}, &len);
    tcc_str_printf(l->out, "// %s:%u", l->diag->file, l->line);
    if (text) {
        trim(&text, &len);
        tcc_str_puts(l->out, ": ");
        tcc_str_append(l->out, text, len);
    }
    tcc_str_puts(l->out, "\n");
}

/* An instruction's text, with names of labels as they are. */
static void show_operands(tcc_str *out, const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        bool opens = begins_with(text + i, len - i, "`(");
        const char *close = opens ? memchr(text + i, ')', len - i) : NULL;
        if (close) {
            tcc_str_append(out, text + i + 2, (size_t)(close - text) - i - 2);
            i = (size_t)(close - text);
        } else {
            tcc_str_append(out, text + i, 1);
        }
    }
    tcc_str_puts(out, "\n");
}

/* What follows the opening of a comment with the offset. */
static void read_instruction(listing *l, const char *text, size_t len)
{
    size_t digits = strspn(text, "0123456789abcdef");
    if (!digits || !begins_with(text + digits, len - digits, "*/"))
        return;
    const char *offset = text, *predicate = NULL;
    size_t n_predicate = 0;
    text += digits + 2;
    len -= digits + 2;
    trim(&text, &len);
    if (len && text[len - 1] == ';')
        len--;
    trim(&text, &len);
    if (len && *text == '@') {
        predicate = text;
        while (n_predicate < len && text[n_predicate] != ' ')
            n_predicate++;
        text += n_predicate;
        len -= n_predicate;
        trim(&text, &len);
    }
    show_line(l);
    tcc_str_printf(l->out, "    %.*s  %-5.*s ", (int)digits, offset, (int)n_predicate, predicate ? predicate : "");
    show_operands(l->out, text, len);
    l->n_instructions++;
}

/* `//## File "a.tile", line 4`: the name may have all of that in it. */
static void read_place(listing *l, const char *text, size_t len)
{
    static const char before[] = ", line ";
    for (size_t i = len; i-- > 0;)
        if (begins_with(text + i, len - i, before)) {
            l->line = (unsigned)strtoul(text + i + sizeof before - 1, NULL, 10);
            return;
        }
}

static void read_line(listing *l, const char *text, size_t len)
{
    trim(&text, &len);
    if (begins_with(text, len, "/*")) {
        read_instruction(l, text + 2, len - 2);
    } else if (begins_with(text, len, "//##")) {
        read_place(l, text, len);
    } else if (len && text[len - 1] == ':' && !begins_with(text, len, ".text.")) {
        bool is_kernel = *text != '.';
        l->line = is_kernel ? 0 : l->line;
        l->shown = 0;
        tcc_str_printf(l->out, "%s%.*s\n", is_kernel && l->out->len ? "\n" : "", (int)len, text);
    }
}

/* What nvdisasm complains of, in its own words. */
static void report(const char *nvdisasm, const char *log, tcc_diag *diag)
{
    size_t len = strcspn(log, "\n");
    trim(&log, &len);
    if (len)
        tcc_error(diag, TCC_ERR_TOOL, (tcc_loc){0, 0}, "%.*s", (int)len, log);
    else
        tcc_error(diag, TCC_ERR_TOOL, (tcc_loc){0, 0}, "'%s' ended without a result", nvdisasm);
}

static tcc_status list(const char *nvdisasm, const void *cubin, size_t size, tcc_diag *diag, tcc_str *out)
{
    const tcc_tool_run run = {.program = nvdisasm,
                              .args = (const char *[]){"-c", "-g", "-sort", tcc_tool_input, NULL},
                              .suffix = ".cubin",
                              .input = cubin,
                              .size = size,
                              .prints = true};
    tcc_str text = {0}, log = {0};
    listing l = {.diag = diag, .out = out};
    tcc_status status = tcc_tool_execute(&run, diag, &text, &log);
    for (const char *p = tcc_str_text(&text); !status && *p; p += *p != 0) {
        size_t len = strcspn(p, "\n");
        read_line(&l, p, len);
        p += len;
    }
    if (!status && !l.n_instructions) {
        report(nvdisasm, tcc_str_text(&log), diag);
        status = TCC_ERR_TOOL;
    }
    tcc_str_free(&text);
    tcc_str_free(&log);
    return status ? status : out->failed ? TCC_ERR_MEMORY : TCC_OK;
}

tcc_status tcc_sass(const void *cubin, size_t size, const tcc_sass_options *options, tcc_diag *diag, char **out,
                    size_t *out_size)
{
    tcc_diag silent = {0};
    tcc_str ptxas = {0}, path = {0}, text = {0};
    *out = NULL;
    *out_size = 0;
    if (!tcc_tool_find(&ptxas, "ptxas", options->ptxas, NULL, &silent) && !ptxas.failed)
        tcc_str_free(&ptxas); /* it may be gone by now */
    bool found = tcc_tool_find(&path, "nvdisasm", options->nvdisasm, ptxas.data, diag);
    tcc_status status = path.failed || ptxas.failed ? TCC_ERR_MEMORY : TCC_ERR_TOOL;
    if (found && status != TCC_ERR_MEMORY)
        status = list(path.data, cubin, size, diag, &text);
    tcc_str_free(&ptxas);
    tcc_str_free(&path);
    if (status) {
        tcc_str_free(&text);
        return status;
    }
    *out_size = text.len;
    *out = tcc_str_take(&text);
    return TCC_OK;
}

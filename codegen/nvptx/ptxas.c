/* ptxas, and what it says as diagnostics of ours. A place in the PTX becomes one in the .tile source
 * through the PTX's .loc directives.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "codegen/nvptx/toolkit.h"

/* ---- places ---------------------------------------------------------------------------- */

/* The line after the one at p; NULL past the last. */
static const char *next_line(const char *p)
{
    p = strchr(p, '\n');
    return p && p[1] ? p + 1 : NULL;
}

static const char entry[] = ".visible .entry ";

static bool begins_with(const char *text, const char *prefix)
{
    return !strncmp(text, prefix, strlen(prefix));
}

/* Reads a number at *p, after blanks and `prefix`, and moves *p past it. */
static bool read_number(const char **p, const char *prefix, unsigned *out)
{
    const char *start = *p + strspn(*p, " \t");
    if (!begins_with(start, prefix))
        return false;
    char *end;
    start += strlen(prefix);
    *out = (unsigned)strtoul(start, &end, 10);
    *p = end;
    return end != start;
}

static bool read_loc(const char *p, tcc_loc *loc)
{
    unsigned file, line, column;
    if (!read_number(&p, ".loc", &file) || !read_number(&p, "", &line) ||
        !read_number(&p, "", &column) || !line)
        return false;
    *loc = (tcc_loc){line, column ? column : 1};
    return true;
}

/* Where the instruction at `at` comes from: the last .loc before it in its function, else the
 * first after it. */
static tcc_loc loc_at(const char *ptx, const char *at)
{
    tcc_loc loc = {0, 0};
    for (const char *p = ptx; p; p = next_line(p)) {
        if (begins_with(p, entry) && p <= at)
            loc = (tcc_loc){0, 0};
        else if (p >= at && loc.line)
            break;
        read_loc(p, &loc);
    }
    return loc;
}

static tcc_loc loc_at_line(const char *ptx, unsigned line)
{
    const char *p = ptx;
    while (p && line-- > 1)
        p = next_line(p);
    return p ? loc_at(ptx, p) : (tcc_loc){0, 0};
}

/* Where a kernel begins; the start of the text when it is unknown. */
static const char *entry_of(const char *ptx, const char *name, size_t n)
{
    const size_t before = sizeof entry - 1;
    for (const char *p = ptx; p && n; p = next_line(p))
        if (begins_with(p, entry) && !strncmp(p + before, name, n) && p[before + n] == '(')
            return p;
    return ptx;
}

/* A message that names no line is placed at the first instruction that it is about. */
static tcc_loc loc_of_message(const char *ptx, const char *message)
{
    static const char *const instructions[] = {"wgmma.mma_async", "setmaxnreg"};
    unsigned line;
    const char *at = strstr(message, " line "); /* "at line 9", "around line 9" */
    if (at && read_number(&at, "line", &line))
        return loc_at_line(ptx, line);
    const char *name = strstr(message, "function '");
    name = name ? name + 10 : message;
    const char *kernel = entry_of(ptx, name, name == message ? 0 : strcspn(name, "'"));
    for (size_t i = 0; i < sizeof instructions / sizeof *instructions; i++)
        if (strstr(message, instructions[i]) && (at = strstr(kernel, instructions[i])))
            return loc_at(ptx, at);
    return loc_at(ptx, kernel);
}

/* ---- what ptxas says ------------------------------------------------------------------- */

typedef struct report {
    tcc_diag *diag;
    const char *ptx;
    unsigned n_errors;
    const char *kernel; /* whose properties follow; not terminated */
    int kernel_len;
} report;

/* "0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads" */
static void read_properties(report *r, const char *line)
{
    unsigned frame, stores, loads;
    if (r->kernel && read_number(&line, "", &frame) &&
        read_number(&line, "bytes stack frame,", &stores) &&
        read_number(&line, "bytes spill stores,", &loads) && stores + loads > 0)
        tcc_warn(r->diag, loc_at(r->ptx, entry_of(r->ptx, r->kernel, (size_t)r->kernel_len)),
                 "kernel '%.*s' spills registers: %u bytes of stores, %u bytes of loads",
                 r->kernel_len, r->kernel, stores, loads);
}

/* "ptxas info    : MESSAGE" or "ptxas FILE, line 9; error   : MESSAGE", with "(C7514) " before some
 * messages. */
static void read_line(report *r, const char *line)
{
    static const char properties[] = "Function properties for ";
    static const char loss[] = "Potential Performance Loss: ";
    if (!begins_with(line, "ptxas ")) {
        read_properties(r, line);
        return;
    }
    unsigned at = 0, code = 0;
    const char *severity = line + strlen("ptxas "), *place = strstr(line, " line ");
    if (place && place[-1] == ',' && read_number(&place, "line", &at))
        severity = place + strspn(place, "; ");
    line = strchr(severity, ':');
    if (!line)
        return;
    line += strspn(line, ": ");
    tcc_loc loc = at ? loc_at_line(r->ptx, at) : loc_of_message(r->ptx, line);
    if (read_number(&line, "(C", &code))
        line += strspn(line, ") ");
    line += begins_with(line, loss) ? sizeof loss - 1 : 0;
    char prefix[24] = "ptxas";
    if (code)
        snprintf(prefix, sizeof prefix, "ptxas C%u", code);

    bool is_info = begins_with(severity, "info"), is_warning = begins_with(severity, "warning");
    bool is_last = begins_with(line, "Ptx assembly aborted due to errors");
    if (is_info && begins_with(line, properties)) {
        r->kernel = line + sizeof properties - 1;
        r->kernel_len = (int)strlen(r->kernel);
    } else if (is_warning || (is_info && code)) {
        tcc_warn(r->diag, loc, "%s: %s", prefix, line);
    } else if (!is_info && !(is_last && r->n_errors)) {
        r->n_errors++;
        tcc_error(r->diag, TCC_ERR_TOOL, loc, "%s: %s", prefix, line);
    }
}

static void read_log(report *r, char *log)
{
    for (char *line = log, *end; line; line = end) {
        end = strchr(line, '\n');
        if (end)
            *end++ = '\0';
        read_line(r, line);
    }
}

/* ---- running it ------------------------------------------------------------------------ */

static bool find_ptxas(tcc_str *path, const char *given, tcc_diag *diag)
{
    return tcc_tool_find(path, "ptxas", given, NULL, diag);
}

bool tcc_ptxas_is_there(void)
{
    tcc_diag silent = {0};
    tcc_str path = {0};
    bool found = find_ptxas(&path, NULL, &silent) && !path.failed;
    tcc_str_free(&path);
    return found;
}

static tcc_status assemble(const char *ptxas, const char *ptx, size_t size, const char *target, tcc_diag *diag,
                           tcc_str *cubin)
{
    char arch[64];
    snprintf(arch, sizeof arch, "-arch=%s", target);
    const tcc_tool_run run = {
        .program = ptxas,
        .args = (const char *[]){arch, "-v", "-lineinfo", tcc_tool_input, "-o", tcc_tool_output, NULL},
        .suffix = ".ptx",
        .input = ptx,
        .size = size};
    tcc_str log = {0};
    report r = {.diag = diag, .ptx = ptx};
    tcc_status status = tcc_tool_execute(&run, diag, cubin, &log);
    if (!status && log.len)
        read_log(&r, log.data);
    tcc_str_free(&log);
    if (status || r.n_errors)
        return status ? status : TCC_ERR_TOOL;
    if (!cubin->len)
        tcc_error(diag, TCC_ERR_TOOL, (tcc_loc){0, 0}, "'%s' ended without a result", ptxas);
    return cubin->len ? TCC_OK : TCC_ERR_TOOL;
}

tcc_status tcc_ptxas(const char *ptx, size_t size, const tcc_ptxas_options *options, tcc_diag *diag,
                     void **cubin, size_t *cubin_size)
{
    *cubin = NULL;
    *cubin_size = 0;
    tcc_str path = {0}, object = {0};
    bool found = find_ptxas(&path, options->ptxas, diag);
    tcc_status status = path.failed ? TCC_ERR_MEMORY : TCC_ERR_TOOL;
    if (found && !path.failed)
        status = assemble(path.data, ptx, size, options->target, diag, &object);
    tcc_str_free(&path);
    if (status) {
        tcc_str_free(&object);
        return status;
    }
    *cubin_size = object.len;
    *cubin = tcc_str_take(&object);
    return TCC_OK;
}

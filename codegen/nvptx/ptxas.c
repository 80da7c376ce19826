/* ptxas in a subprocess, on files in a temporary directory, and what it says as diagnostics of
 * ours. A place in the PTX becomes one in the .tile source through the PTX's .loc directives.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "support/str.h"

extern char **environ;

static const char default_folder[] = "/usr/local/cuda/bin";

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

/* Reads a number at *p, after blanks and `prefix`, and moves *p behind it. */
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

/* ---- finding it ------------------------------------------------------------------------ */

static bool is_program(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static bool try_folder(tcc_str *path, const char *folder, size_t n, const char *below)
{
    tcc_str_free(path);
    tcc_str_append(path, folder, n);
    tcc_str_printf(path, "%s/ptxas", below);
    return n && !path->failed && is_program(path->data);
}

/* Finds ptxas, or reports where it was looked for. */
static bool find_ptxas(tcc_str *path, const char *given, tcc_diag *diag)
{
    const tcc_loc nowhere = {0, 0};
    if (given) {
        tcc_str_puts(path, given);
        if (is_program(given))
            return true;
        tcc_error(diag, TCC_ERR_TOOL, nowhere, "'%s' is no program", given);
        return false;
    }
    const char *home = getenv("CUDA_HOME");
    if (home && try_folder(path, home, strlen(home), "/bin"))
        return true;
    for (const char *p = getenv("PATH"); p; p = strchr(p, ':'), p = p ? p + 1 : NULL)
        if (try_folder(path, p, strcspn(p, ":"), ""))
            return true;
    if (try_folder(path, default_folder, strlen(default_folder), ""))
        return true;
    tcc_error(diag, TCC_ERR_TOOL, nowhere,
              "ptxas was not found in CUDA_HOME/bin (CUDA_HOME is %s), PATH or %s; it comes with "
              "NVIDIA's CUDA toolkit",
              home ? home : "not set", default_folder);
    return false;
}

bool tcc_ptxas_is_there(void)
{
    tcc_diag silent = {0};
    tcc_str path = {0};
    bool found = find_ptxas(&path, NULL, &silent) && !path.failed;
    tcc_str_free(&path);
    return found;
}

/* ---- running it ------------------------------------------------------------------------ */

enum { FILE_PTX, FILE_CUBIN, FILE_LOG, N_FILES };

/* A temporary folder and the files in it. */
typedef struct workspace {
    tcc_str folder;
    tcc_str files[N_FILES];
} workspace;

static tcc_status workspace_create(workspace *w, tcc_diag *diag)
{
    static const char *const names[N_FILES] = {"kernel.ptx", "kernel.cubin", "log"};
    const char *tmp = getenv("TMPDIR");
    tcc_str_printf(&w->folder, "%s/tcc-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (w->folder.failed)
        return TCC_ERR_MEMORY;
    if (!mkdtemp(w->folder.data)) {
        tcc_error(diag, TCC_ERR_IO, (tcc_loc){0, 0}, "cannot make a folder like '%s': %s",
                  w->folder.data, strerror(errno));
        tcc_str_free(&w->folder);
        return TCC_ERR_IO;
    }
    bool failed = false;
    for (int i = 0; i < N_FILES; i++) {
        tcc_str_printf(&w->files[i], "%s/%s", w->folder.data, names[i]);
        failed |= w->files[i].failed;
    }
    return failed ? TCC_ERR_MEMORY : TCC_OK;
}

static void workspace_destroy(workspace *w)
{
    for (int i = 0; i < N_FILES; i++) {
        if (w->files[i].len)
            unlink(w->files[i].data);
        tcc_str_free(&w->files[i]);
    }
    if (w->folder.len)
        rmdir(w->folder.data);
    tcc_str_free(&w->folder);
}

static bool write_file(const char *path, const char *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    bool ok = fwrite(data, 1, size, f) == size;
    return !fclose(f) && ok;
}

/* Appends a file to `out`; false when it cannot be read. */
static bool read_file(const char *path, tcc_str *out)
{
    char buffer[16384];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        return false;
    do {
        n = fread(buffer, 1, sizeof buffer, f);
        tcc_str_append(out, buffer, n);
    } while (n == sizeof buffer);
    bool ok = !ferror(f);
    fclose(f);
    return ok;
}

/* Runs ptxas to its end; an errno when it cannot be started. */
static int spawn(const char *ptxas, const char *target, const workspace *w)
{
    char arch[64];
    snprintf(arch, sizeof arch, "-arch=%s", target);
    char *argv[] = {(char *)ptxas,      arch, "-v", "-lineinfo", w->files[FILE_PTX].data,
                    "-o", w->files[FILE_CUBIN].data, NULL};
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    pid_t pid;
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(&actions, 1, w->files[FILE_LOG].data,
                                                 O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (!error)
        error = posix_spawn(&pid, ptxas, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    /* Whether it succeeded shows in what it wrote: its status may go to a handler of the host
     * program's. */
    while (!error && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return error;
}

static tcc_status assemble(workspace *w, const char *ptxas, const char *ptx, size_t size,
                           const char *target, tcc_diag *diag, tcc_str *cubin)
{
    const tcc_loc nowhere = {0, 0};
    tcc_status status = workspace_create(w, diag);
    if (status)
        return status;
    if (!write_file(w->files[FILE_PTX].data, ptx, size)) {
        tcc_error(diag, TCC_ERR_IO, nowhere, "cannot write '%s': %s", w->files[FILE_PTX].data,
                  strerror(errno));
        return TCC_ERR_IO;
    }
    int error = spawn(ptxas, target, w);
    if (error) {
        tcc_error(diag, TCC_ERR_TOOL, nowhere, "cannot run '%s': %s", ptxas, strerror(error));
        return TCC_ERR_TOOL;
    }
    tcc_str log = {0};
    report r = {.diag = diag, .ptx = ptx};
    bool made = read_file(w->files[FILE_LOG].data, &log) &&
                read_file(w->files[FILE_CUBIN].data, cubin) && cubin->len;
    bool out_of_memory = log.failed || cubin->failed;
    if (!out_of_memory && log.len)
        read_log(&r, log.data);
    tcc_str_free(&log);
    if (out_of_memory || r.n_errors)
        return out_of_memory ? TCC_ERR_MEMORY : TCC_ERR_TOOL;
    if (!made)
        tcc_error(diag, TCC_ERR_TOOL, nowhere, "'%s' ended without a result", ptxas);
    return made ? TCC_OK : TCC_ERR_TOOL;
}

tcc_status tcc_ptxas(const char *ptx, size_t size, const tcc_ptxas_options *options, tcc_diag *diag,
                     void **cubin, size_t *cubin_size)
{
    *cubin = NULL;
    *cubin_size = 0;
    tcc_str path = {0}, object = {0};
    bool found = find_ptxas(&path, options->ptxas, diag);
    tcc_status status = path.failed ? TCC_ERR_MEMORY : TCC_ERR_TOOL;
    if (found && !path.failed) {
        workspace w = {0};
        status = assemble(&w, path.data, ptx, size, options->target, diag, &object);
        workspace_destroy(&w);
    }
    tcc_str_free(&path);
    if (status) {
        tcc_str_free(&object);
        return status;
    }
    *cubin_size = object.len;
    *cubin = tcc_str_take(&object);
    return TCC_OK;
}

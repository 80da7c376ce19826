/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/nvptx/toolkit.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char default_folder[] = "/usr/local/cuda/bin";

/* ---- finding programs ------------------------------------------------------------------ */

static bool is_program(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static bool try_folder(tcc_str *path, const char *folder, size_t n, const char *below, const char *name)
{
    tcc_str_free(path);
    tcc_str_append(path, folder, n);
    tcc_str_printf(path, "%s/%s", below, name);
    return n && !path->failed && is_program(path->data);
}

bool tcc_tool_find(tcc_str *path, const char *name, const char *given, const char *beside, tcc_diag *diag)
{
    const tcc_loc nowhere = {0, 0};
    if (given) {
        tcc_str_puts(path, given);
        if (is_program(given))
            return true;
        tcc_error(diag, TCC_ERR_TOOL, nowhere, "'%s' is not an executable", given);
        return false;
    }
    const char *slash = beside ? strrchr(beside, '/') : NULL, *home = getenv("CUDA_HOME");
    if (slash && try_folder(path, beside, (size_t)(slash - beside), "", name))
        return true;
    if (home && try_folder(path, home, strlen(home), "/bin", name))
        return true;
    for (const char *p = getenv("PATH"); p; p = strchr(p, ':'), p = p ? p + 1 : NULL)
        if (try_folder(path, p, strcspn(p, ":"), "", name))
            return true;
    if (try_folder(path, default_folder, strlen(default_folder), "", name))
        return true;
    tcc_str places = {0};
    if (beside)
        tcc_str_printf(&places, "beside %s, ", beside);
    tcc_error(diag, TCC_ERR_TOOL, nowhere,
              "%s was not found %sin CUDA_HOME/bin (CUDA_HOME is %s), PATH or %s; it comes with "
              "NVIDIA's CUDA toolkit",
              name, tcc_str_text(&places), home ? home : "not set", default_folder);
    tcc_str_free(&places);
    return false;
}

/* ---- running them ---------------------------------------------------------------------- */

const char tcc_tool_input[] = "the input", tcc_tool_output[] = "the output";

enum { FILE_INPUT, FILE_OUTPUT, FILE_LOG, N_FILES };

/* A temporary folder and the files in it. */
typedef struct workspace {
    tcc_str folder;
    tcc_str files[N_FILES];
} workspace;

static tcc_status workspace_create(workspace *w, const char *suffix, tcc_diag *diag)
{
    const char *const names[N_FILES] = {"kernel", "output", "log"};
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
        tcc_str_printf(&w->files[i], "%s/%s%s", w->folder.data, names[i], i == FILE_INPUT ? suffix : "");
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

/* Appends a file to `out`, if it can be read. */
static void read_file(const char *path, tcc_str *out)
{
    char buffer[16384];
    size_t n;
    FILE *f = fopen(path, "rb");
    if (!f)
        return;
    do {
        n = fread(buffer, 1, sizeof buffer, f);
        tcc_str_append(out, buffer, n);
    } while (n == sizeof buffer);
    if (ferror(f))
        tcc_str_free(out);
    fclose(f);
}

/* Lets a descriptor of the program be a new file. */
static int add_file(posix_spawn_file_actions_t *actions, int descriptor, const char *path)
{
    return posix_spawn_file_actions_addopen(actions, descriptor, path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
}

/* Runs the program to its end; an errno when it cannot be started. */
static int spawn(const tcc_tool_run *run, const workspace *w)
{
    char *argv[TCC_TOOL_MOST_ARGS + 2] = {(char *)run->program};
    for (int i = 0; run->args[i]; i++)
        argv[i + 1] = run->args[i] == tcc_tool_input    ? w->files[FILE_INPUT].data
                      : run->args[i] == tcc_tool_output ? w->files[FILE_OUTPUT].data
                                                        : (char *)run->args[i];
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error)
        return error;
    pid_t pid;
    error = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = add_file(&actions, 2, w->files[FILE_LOG].data);
    if (!error)
        error = run->prints ? add_file(&actions, 1, w->files[FILE_OUTPUT].data)
                            : posix_spawn_file_actions_adddup2(&actions, 2, 1);
    if (!error)
        error = posix_spawn(&pid, run->program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    /* Whether it succeeded shows in what it wrote: its status may go to a handler of the host
     * program's. */
    while (!error && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return error;
}

static tcc_status run_in(workspace *w, const tcc_tool_run *run, tcc_diag *diag, tcc_str *output, tcc_str *log)
{
    const tcc_loc nowhere = {0, 0};
    tcc_status status = workspace_create(w, run->suffix, diag);
    if (status)
        return status;
    if (!write_file(w->files[FILE_INPUT].data, run->input, run->size)) {
        tcc_error(diag, TCC_ERR_IO, nowhere, "cannot write '%s': %s", w->files[FILE_INPUT].data,
                  strerror(errno));
        return TCC_ERR_IO;
    }
    int error = spawn(run, w);
    if (error) {
        tcc_error(diag, TCC_ERR_TOOL, nowhere, "cannot run '%s': %s", run->program, strerror(error));
        return TCC_ERR_TOOL;
    }
    read_file(w->files[FILE_OUTPUT].data, output);
    read_file(w->files[FILE_LOG].data, log);
    return output->failed || log->failed ? TCC_ERR_MEMORY : TCC_OK;
}

tcc_status tcc_tool_execute(const tcc_tool_run *run, tcc_diag *diag, tcc_str *output, tcc_str *log)
{
    workspace w = {0};
    tcc_status status = run_in(&w, run, diag, output, log);
    workspace_destroy(&w);
    return status;
}

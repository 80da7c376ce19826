/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/random/verdict.h"

#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tcc/tcc.h>

/* Two failures are of one way when they differ in names, numbers and places alone. */
static void describe_way(verdict *v, const char *message)
{
    size_t n = 0;
    bool quoted = false;
    for (const char *p = message; *p && n + 1 < sizeof v->way; p++) {
        if (!strncmp(p, ": element [", 11))
            break;
        if (*p == '\'')
            quoted = !quoted;
        else if (!quoted && !isdigit((unsigned char)*p))
            v->way[n++] = *p;
    }
    v->way[n] = 0;
}

typedef struct heard {
    verdict *v;
    bool has_error, is_located;
} heard;

static void listen(const tcc_diagnostic *d, void *user)
{
    heard *h = user;
    size_t n = strlen(h->v->said);
    snprintf(h->v->said + n, sizeof h->v->said - n, "%s", d->text);
    h->v->left_out |= strstr(d->message, " was not run: ") != NULL;
    if (d->severity == TCC_SEV_ERROR && !h->has_error) {
        h->has_error = true;
        h->is_located = d->line;
        describe_way(h->v, d->message);
    }
}

static void compile(const char *text, const verdict_options *o, verdict *v)
{
    heard h = {.v = v};
    const tcc_compile_options options = {.struct_size = sizeof options,
                                         .target = o->target,
                                         .file = "random.tile",
                                         .emit = *o->target == 'g' ? TCC_EMIT_HSACO : TCC_EMIT_PTX,
                                         .tiles = 1 + (unsigned)(o->check_seed % 4 == 0), /* a second one now and then */
                                         .check_passes = true,
                                         .check_seed = o->check_seed};
    tcc_context *ctx = tcc_context_create();
    tcc_module *mod = NULL;
    tcc_context_on_diagnostic(ctx, listen, &h);
    tcc_status status = tcc_compile_with(ctx, text, strlen(text), &options, &mod);
    bool refused = status == TCC_ERR_TARGET || status == TCC_ERR_UNSUPPORTED;
    v->kind = !status ? PASSED : refused && h.is_located ? REFUSED : FAILED;
    if (status && !h.has_error)
        snprintf(v->way, sizeof v->way, "%s without a diagnostic", tcc_status_name(status));
    tcc_module_destroy(mod);
    tcc_context_destroy(ctx);
    if (!status && o->fail_on && strstr(text, o->fail_on)) {
        v->kind = FAILED;
        snprintf(v->way, sizeof v->way, "it has '%s'", o->fail_on);
    }
}

bool compilation_begin(compilation *c, const char *text, const verdict_options *o)
{
    int ends[2];
    if (pipe(ends))
        return false;
    fflush(stdout);
    c->pid = fork();
    c->from = ends[0];
    if (c->pid == 0) {
        enum { PATIENCE = 20 }; /* with a machine that has other things to do */
        verdict v = {0};
        const struct rlimit limit = {o->seconds, o->seconds};
        setrlimit(RLIMIT_CPU, &limit);
        alarm(PATIENCE * o->seconds);
        compile(text, o, &v);
        bool written = write(ends[1], &v, sizeof v) == (ssize_t)sizeof v;
        _exit(written ? 0 : 1);
    }
    close(ends[1]);
    if (c->pid < 0)
        close(ends[0]);
    return c->pid > 0;
}

bool compilation_is_done(const compilation *c)
{
    struct pollfd end = {.fd = c->from, .events = POLLIN};
    return poll(&end, 1, 0) > 0;
}

verdict compilation_end(compilation *c)
{
    verdict v = {0};
    size_t got = 0;
    for (ssize_t n; got < sizeof v && (n = read(c->from, (char *)&v + got, sizeof v - got)) > 0;)
        got += (size_t)n;
    close(c->from);
    int status = 0;
    waitpid(c->pid, &status, 0);
    if (got == sizeof v && WIFEXITED(status) && !WEXITSTATUS(status))
        return v;
    v = (verdict){.kind = FAILED};
    if (WIFSIGNALED(status))
        snprintf(v.way, sizeof v.way, "ended by a signal: %s", strsignal(WTERMSIG(status)));
    else
        snprintf(v.way, sizeof v.way, "ended with status %d", WEXITSTATUS(status));
    return v;
}

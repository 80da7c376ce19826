/* random_programs: compiles random programs with every pass checked, and leaves of each that fails
 * the smallest that fails in the same way.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/random/program.h"
#include "tests/random/verdict.h"
#include "tools/shared/progress.h"

enum { MAX_JOBS = 64, MAX_BEGUN = 2 * MAX_JOBS, MOST_REFUSED_PERCENT = 15 };

static const char usage[] =
    "usage: random_programs [options]\n"
    "\n"
    "Draws programs of the tile language, compiles each as tcc --check-passes does, and writes\n"
    "what is left of those that fail, once they are made small, to random-SEED.tile.\n"
    "\n"
    "  --seed=S       the first program's seed; default 1\n"
    "  --count=N      number of programs, with the seeds that follow; default 100\n"
    "  --jobs=N       compile so many at once; default 1\n"
    "  --target=NAME  compile for it; default sm_90a\n"
    "  --timeout=S    a program that computes for more seconds has failed; default 60\n"
    "  --shrink=S     try for so many seconds to make a failing program smaller; default 120\n"
    "  --out=DIR      where failing programs go; default .\n"
    "  --fail-on=TEXT take every program with this text in it for one that fails\n"
    "  --print        show the programs, compile none\n"
    "  --verbose      show why programs are refused, and warnings\n"
    "\n"
    "Exit status: 0, 1 when a program failed, 2 for bad usage.\n";

typedef struct settings {
    uint64_t seed, count, jobs;
    uint64_t shrink; /* seconds, for each program that fails */
    const char *out;
    bool print, verbose;
    verdict_options verdict;
} settings;

typedef struct tally {
    uint64_t passed, refused, failed, left_out;
} tally;

static char *text_of(const program *p)
{
    tcc_str text = {0};
    program_print(&text, p);
    char *taken = tcc_str_take(&text);
    if (!taken) {
        fputs("random_programs: out of memory\n", stderr);
        exit(1);
    }
    return taken;
}

static verdict_options options_for(const settings *s, uint64_t seed)
{
    verdict_options o = s->verdict;
    o.check_seed = seed;
    return o;
}

/* ---- failures ------------------------------------------------------------------------------ */

typedef struct hunt {
    const settings *s;
    const verdict *first;
    time_t until; /* nothing is tried from then on */
    unsigned tries;
} hunt;

static bool fails_so(const program *p, void *user)
{
    hunt *h = user;
    if (time(NULL) >= h->until)
        return false;
    h->tries++;
    char *text = text_of(p);
    compilation c;
    verdict_options o = options_for(h->s, p->seed);
    bool same = compilation_begin(&c, text, &o);
    if (same) {
        verdict v = compilation_end(&c);
        same = v.kind == FAILED && !strcmp(v.way, h->first->way);
    }
    free(text);
    return same;
}

static void leave(const settings *s, const program *p, const verdict *v)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/random-%llu.tile", s->out, (unsigned long long)p->seed);
    FILE *f = fopen(path, "wb");
    if (!f) {
        printf("%s: %s\n", path, strerror(errno));
        return;
    }
    char *text = text_of(p);
    fprintf(f, "// tcc --check-passes=%llu: %s\n%s", (unsigned long long)p->seed, v->way, text);
    free(text);
    if (fclose(f))
        printf("%s: %s\n", path, strerror(errno));
    else
        printf("to see it again: tcc %s --target=%s --check-passes=%llu -o /dev/null --emit=tir\n",
               path, s->verdict.target, (unsigned long long)p->seed);
}

static void report_failure(const settings *s, program *p, const verdict *v)
{
    printf("FAIL: program %llu: %s\n%s", (unsigned long long)p->seed, v->way, v->said);
    hunt h = {s, v, time(NULL) + (time_t)s->shrink, 0};
    program_shrink(p, fails_so, &h);
    char *text = text_of(p);
    printf("made small by trying %u programs:\n%s", h.tries, text);
    free(text);
    leave(s, p, v);
    fflush(stdout);
}

/* ---- running ------------------------------------------------------------------------------ */

static void judge(const settings *s, uint64_t seed, compilation *c, tally *t, progress *line)
{
    verdict v = compilation_end(c);
    if (v.kind == FAILED || (s->verbose && *v.said))
        progress_clear(line);
    program p;
    t->passed += v.kind == PASSED;
    t->refused += v.kind == REFUSED;
    t->failed += v.kind == FAILED;
    t->left_out += v.left_out;
    program_draw(&p, seed, s->verdict.target);
    if (v.kind == FAILED)
        report_failure(s, &p, &v);
    else if (s->verbose && *v.said)
        printf("program %llu:\n%s", (unsigned long long)seed, v.said);
}

/* Waits until fewer than `jobs` of those that have begun compute. */
static void wait_for_room(const compilation *running, uint64_t ended, uint64_t begun, uint64_t jobs)
{
    for (;;) {
        struct pollfd all[MAX_BEGUN];
        nfds_t n = 0;
        for (uint64_t i = ended; i < begun; i++)
            all[n++] = (struct pollfd){.fd = running[i % MAX_BEGUN].from, .events = POLLIN};
        int done = poll(all, n, 0);
        if (n - (nfds_t)(done > 0 ? done : 0) < jobs)
            return;
        for (nfds_t i = 0; i < n; i++)
            all[i].fd = all[i].revents ? -1 : all[i].fd;
        poll(all, n, -1);
    }
}

/* Judged in the order of their seeds; one that takes long holds up the verdicts of those behind it alone. */
static void run_all(const settings *s, tally *t)
{
    compilation running[MAX_BEGUN];
    uint64_t begun = 0, ended = 0;
    progress p = progress_begin("random_programs");
    while (ended < s->count) {
        compilation *oldest = &running[ended % MAX_BEGUN];
        bool full = begun == s->count || begun - ended == MAX_BEGUN;
        if (full || (ended < begun && compilation_is_done(oldest))) {
            judge(s, s->seed + ended, oldest, t, &p);
            ended++;
            progress_tell(&p, (double)ended / (double)s->count);
            continue;
        }
        program drawn;
        program_draw(&drawn, s->seed + begun, s->verdict.target);
        char *text = text_of(&drawn);
        verdict_options o = options_for(s, drawn.seed);
        wait_for_room(running, ended, begun, s->jobs);
        if (!compilation_begin(&running[begun % MAX_BEGUN], text, &o)) {
            fprintf(stderr, "random_programs: %s\n", strerror(errno));
            exit(1);
        }
        free(text);
        begun++;
    }
    progress_clear(&p);
}

static void print_all(const settings *s)
{
    for (uint64_t i = 0; i < s->count; i++) {
        program p;
        program_draw(&p, s->seed + i, s->verdict.target);
        char *text = text_of(&p);
        printf("// program %llu\n%s\n", (unsigned long long)p.seed, text);
        free(text);
    }
}

/* ---- the command line ---------------------------------------------------------------------- */

static uint64_t parse_number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (errno || *text < '0' || *text > '9' || *end || v < least || v > most) {
        fprintf(stderr, "random_programs: --%s=%s: expected a number from %llu to %llu\n", option, text,
                (unsigned long long)least, (unsigned long long)most);
        exit(2);
    }
    return v;
}

static settings parse_arguments(int argc, char **argv)
{
    settings s = {
        .seed = 1, .count = 100, .jobs = 1, .shrink = 120, .out = ".", .verdict = {"sm_90a", .seconds = 60}};
    static const struct option options[] = {
        {"seed", required_argument, NULL, 's'},
        {"count", required_argument, NULL, 'n'},
        {"jobs", required_argument, NULL, 'j'},
        {"timeout", required_argument, NULL, 't'},
        {"shrink", required_argument, NULL, 'r'},
        {"out", required_argument, NULL, 'o'},
        {"fail-on", required_argument, NULL, 'f'},
        {"print", no_argument, NULL, 'p'},
        {"verbose", no_argument, NULL, 'v'},
        {"help", no_argument, NULL, 'h'},
        {"target", required_argument, NULL, 'g'},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "h", options, NULL)) != -1;)
        switch (c) {
        case 's': s.seed = parse_number("seed", optarg, 0, UINT64_MAX / 2); break;
        case 'n': s.count = parse_number("count", optarg, 1, UINT64_MAX / 2); break;
        case 'j': s.jobs = parse_number("jobs", optarg, 1, MAX_JOBS); break;
        case 'r': s.shrink = parse_number("shrink", optarg, 0, 86400); break;
        case 't': s.verdict.seconds = (unsigned)parse_number("timeout", optarg, 1, 86400); break;
        case 'o': s.out = optarg; break;
        case 'f': s.verdict.fail_on = optarg; break;
        case 'g': s.verdict.target = optarg; break;
        case 'p': s.print = true; break;
        case 'v': s.verbose = true; break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs("Try 'random_programs --help'.\n", stderr); exit(2);
        }
    if (optind != argc) {
        fprintf(stderr, "random_programs: %s: no files are expected\n", argv[optind]);
        exit(2);
    }
    return s;
}

int main(int argc, char **argv)
{
    settings s = parse_arguments(argc, argv);
    tally t = {0};
    if (s.print) {
        print_all(&s);
        return 0;
    }
    run_all(&s, &t);
    bool idle = s.count >= 50 && t.refused * 100 > s.count * MOST_REFUSED_PERCENT;
    if (idle)
        printf("FAIL: more than %d%% were refused: they test nothing\n", MOST_REFUSED_PERCENT);
    printf("%llu programs: %llu passed, %llu failed, %llu refused; %llu with a variant not run\n",
           (unsigned long long)s.count, (unsigned long long)t.passed, (unsigned long long)t.failed,
           (unsigned long long)t.refused, (unsigned long long)t.left_out);
    return t.failed || idle;
}

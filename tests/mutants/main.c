/* mutants: breaks programs, and counts what finds it out.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/str.h"
#include "tests/mutants/verdicts.h"

enum { MAX_MUTANTS = 1 << 16, TEXT = 240, MAX_OPS = 4096 };

typedef struct verdict {
    bool done, by_checker, by_interpreter;
    unsigned subject, kind, op, way;
    int reason; /* why it is not wrong, -1: it is */
    char text[TEXT], said[TEXT];
} verdict;

typedef struct options {
    unsigned jobs;
    const char *subject, *kind; /* only these, NULL: all */
    int show;                   /* prints this mutant, -1: none */
    bool all;                   /* lists the killed ones, too */
} options;

/* ---- one mutant after the other ---------------------------------------------------------------
 */

typedef struct worker {
    const options *options;
    verdict *verdicts;
    unsigned me, next; /* which worker; number of the next mutant */
    bench *bench;
    tcc_arena *arena, *kept;
    tcc_func *f; /* to be changed */
    tcc_op *ops[MAX_OPS], *originals[MAX_OPS];
    unsigned n_ops;
} worker;

static void fresh_copy(worker *w)
{
    if (w->arena)
        tcc_arena_destroy(w->arena);
    w->arena = tcc_arena_create(NULL);
    w->f = bench_copy(w->bench, w->arena);
    unsigned n = 0;
    for (tcc_op *op = w->f->body->first; op && n < MAX_OPS; op = tcc_walk_next(op, w->f->body))
        w->ops[n++] = op;
    w->n_ops = n;
}

static int reason_of(const site *s)
{
    for (unsigned i = 0; i < n_reasons; i++)
        if (reasons[i].holds(s))
            return (int)i;
    return -1;
}

static void judge(worker *w, verdict *v, const site *s)
{
    tcc_str text = {0};
    tcc_op_print(&text, s->op, 0);
    snprintf(v->text, sizeof v->text, "%s", tcc_str_text(&text));
    tcc_str_free(&text);
    v->reason = reason_of(s);
    const char *checker = checker_says(w->bench, w->f);
    if (checker)
        snprintf(v->said, sizeof v->said, "%s", checker);
    v->by_checker = checker != NULL;
    const char *interpreter = interpreter_says(w->bench, w->f);
    if (interpreter)
        snprintf(v->said, sizeof v->said, "%s", interpreter);
    v->by_interpreter = interpreter != NULL;
    v->done = true;
}

static void show(const worker *w)
{
    tcc_str text = {0};
    tcc_ir_print(&text, w->f->ir, 0);
    fputs(tcc_str_text(&text), stdout);
    tcc_str_free(&text);
    exit(0);
}

/* Every way of a kind at an op. */
static void break_op(worker *w, const subject *s, const kind *k, unsigned op)
{
    for (unsigned way = 0;; way++) {
        attempt a = k->mutate(w->f, w->ops[op], k, way);
        if (a == NO_MORE)
            return;
        if (a == NOT_HERE)
            continue;
        unsigned number = w->next++;
        if (number >= MAX_MUTANTS) {
            fprintf(stderr, "mutants: more than %d\n", MAX_MUTANTS);
            exit(2);
        }
        if (w->options->show == (int)number)
            show(w);
        if (w->options->show < 0 && number % w->options->jobs == w->me) {
            const site at = {s, k, w->originals[op]->block->func, w->originals[op], way, w->f};
            verdict *v = &w->verdicts[number];
            v->subject = (unsigned)(s - subjects);
            v->kind = (unsigned)(k - kinds);
            v->op = op;
            v->way = way;
            judge(w, v, &at);
        }
        fresh_copy(w);
    }
}

static void break_subject(worker *w, const subject *s)
{
    w->bench = bench_open(s);
    fresh_copy(w);
    w->kept = w->arena;
    memcpy(w->originals, w->ops, sizeof w->ops);
    w->arena = NULL;
    fresh_copy(w);
    for (const kind *k = kinds; k < kinds + n_kinds; k++)
        if ((!w->options->kind || !strcmp(k->name, w->options->kind)) &&
            !(s->without_guards && k->of_guards))
            for (unsigned op = 0; op < w->n_ops; op++)
                break_op(w, s, k, op);
    tcc_arena_destroy(w->arena);
    tcc_arena_destroy(w->kept);
    w->arena = NULL;
    bench_close(w->bench);
}

static void work(const options *o, verdict *verdicts, unsigned me)
{
    worker w = {.options = o, .verdicts = verdicts, .me = me};
    for (const subject *s = subjects; s < subjects + n_subjects; s++)
        if (!o->subject || !strcmp(s->name, o->subject))
            break_subject(&w, s);
}

/* ---- the table
 * ------------------------------------------------------------------------------------ */

typedef struct row {
    unsigned mutants, by_checker, by_interpreter, equivalent, survived;
} row;

static void count(row *r, const verdict *v)
{
    bool killed = v->by_checker || v->by_interpreter;
    r->mutants++;
    r->by_checker += v->by_checker;
    r->by_interpreter += v->by_interpreter;
    r->equivalent += !killed && v->reason >= 0;
    r->survived += !killed && v->reason < 0;
}

static void print_row(const char *name, const row *r)
{
    printf("| %s | %u | %u | %u | %u | %u |\n", name, r->mutants, r->by_checker, r->by_interpreter,
           r->equivalent, r->survived);
}

static void print_table(const verdict *verdicts)
{
    row total = {0};
    puts("| kind | mutants | by the checker | by the interpreter | equivalent | survived |");
    puts("|---|---|---|---|---|---|");
    for (unsigned k = 0; k < n_kinds; k++) {
        row r = {0};
        for (const verdict *v = verdicts; v->done; v++)
            if (v->kind == k)
                count(&r, v);
        if (r.mutants)
            print_row(kinds[k].name, &r);
    }
    for (const verdict *v = verdicts; v->done; v++)
        count(&total, v);
    print_row("all", &total);
}

static void print_mutant(const char *what, const verdict *verdicts, const verdict *v)
{
    printf("%s: %d: %s, way %u, in '%s': op %u:%s\n", what, (int)(v - verdicts),
           kinds[v->kind].name, v->way, subjects[v->subject].name, v->op, v->text);
    if (*v->said)
        printf("    %s\n", v->said);
}

static int report(const options *o, const verdict *verdicts)
{
    unsigned failed = 0;
    print_table(verdicts);
    for (const verdict *v = verdicts; v->done; v++) {
        bool killed = v->by_checker || v->by_interpreter;
        if (!killed && v->reason < 0)
            print_mutant("survived", verdicts, v);
        else if (killed && v->reason >= 0)
            print_mutant(reasons[v->reason].name, verdicts, v);
        else if (o->all)
            print_mutant(killed ? "killed" : reasons[v->reason].name, verdicts, v);
        failed += killed == (v->reason >= 0);
    }
    return failed != 0;
}

/* ---- processes
 * -------------------------------------------------------------------------------------- */

static int run(const options *o)
{
    verdict *verdicts = mmap(NULL, MAX_MUTANTS * sizeof *verdicts, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (verdicts == MAP_FAILED) {
        perror("mutants");
        return 2;
    }
    for (unsigned me = 0; me < o->jobs; me++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid < 0) {
            perror("mutants");
            return 2;
        }
        if (pid == 0) {
            work(o, verdicts, me);
            exit(0);
        }
    }
    int status, died = 0;
    while (wait(&status) > 0)
        died |= status;
    if (died) {
        fprintf(stderr, "mutants: a process ended with status %d\n", died);
        return 2;
    }
    return report(o, verdicts);
}

int main(int argc, char **argv)
{
    options o = {.jobs = 2, .show = -1};
    static const struct option known[] = {
        {"jobs", required_argument, NULL, 'j'}, {"subject", required_argument, NULL, 's'},
        {"kind", required_argument, NULL, 'k'}, {"show", required_argument, NULL, 'm'},
        {"all", no_argument, NULL, 'a'},        {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (c) {
        case 'j': o.jobs = (unsigned)atoi(optarg); break;
        case 's': o.subject = optarg; break;
        case 'k': o.kind = optarg; break;
        case 'm': o.show = atoi(optarg); break;
        case 'a': o.all = true; break;
        default: return 2;
        }
    if (o.show >= 0) {
        work(&o, NULL, 0);
        return 2;
    }
    return run(&o);
}

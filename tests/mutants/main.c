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

enum { MAX_OF_SUBJECT = 1 << 12, TEXT = 240, MAX_OPS = 4096 };

typedef struct verdict {
    bool done, by_checker, by_interpreter;
    unsigned number, subject, kind, op, way;
    int reason; /* why it is not wrong, -1: it is */
    char text[TEXT], said[TEXT];
} verdict;

typedef struct options {
    unsigned jobs;
    const char *subject, *kind; /* only these, NULL: all */
    int show;                   /* prints this mutant, -1: none */
    bool all;                   /* lists every mutant */
    const char *document;       /* that has the tables, or NULL */
    bool update;                /* puts them there */
} options;

/* ---- one mutant after the other ---------------------------------------------------------- */

/* What workers share. */
typedef struct shared {
    _Atomic unsigned next; /* the first subject that no worker has taken */
    verdict verdicts[];    /* of each subject MAX_OF_SUBJECT, not all of them done; and one more, which is not */
} shared;

typedef struct worker {
    const options *options;
    shared *shared; /* NULL: a mutant is to be shown */
    unsigned next;  /* number of the next mutant */
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

/* What is equivalent survives every run: all orders take most of the time, and are for when a reason is new. */
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
    bool one_order = v->reason >= 0 && !w->options->update;
    const char *interpreter =
        interpreter_says(w->bench, w->f, one_order ? v->number % N_ORDERS : 0, one_order ? 1 : N_ORDERS);
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

/* Whether a subject is there for this op. */
static bool is_broken(const subject *s, const tcc_op *op)
{
    bool is = !s->only;
    for (const char *const *name = s->only; name && *name && !is; name++)
        is = !strcmp(tcc_op_info_get(op->code)->name, *name);
    return is;
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
        if (w->next % MAX_OF_SUBJECT == 0) {
            fprintf(stderr, "mutants: more than %d of '%s'\n", MAX_OF_SUBJECT, s->name);
            exit(2);
        }
        if (w->options->show == (int)number)
            show(w);
        if (w->shared) {
            const site at = {s, k, w->originals[op]->block->func, w->originals[op], way, w->f};
            verdict *v = &w->shared->verdicts[number];
            v->number = number;
            v->subject = (unsigned)(s - subjects);
            v->kind = (unsigned)(k - kinds);
            v->op = op;
            v->way = way;
            judge(w, v, &at);
        }
        fresh_copy(w);
    }
}

/* What does more than read must be missed when it is left out. */
static void check_drops(const worker *w)
{
    enum { READS = TCC_READS_GLOBAL | TCC_READS_SHARED | TCC_MMA | TCC_CONTROL };
    for (unsigned i = 0; i < w->n_ops; i++) {
        const tcc_op_info *info = tcc_op_info_get(w->ops[i]->code);
        if (info->effects & ~READS && !is_left_out(w->ops[i]->code)) {
            fprintf(stderr, "mutants: no kind leaves out %s\n", info->name);
            exit(2);
        }
    }
}

static void break_subject(worker *w, const subject *s)
{
    w->bench = bench_open(s);
    w->next = (unsigned)(s - subjects) * MAX_OF_SUBJECT;
    fresh_copy(w);
    check_drops(w);
    w->kept = w->arena;
    memcpy(w->originals, w->ops, sizeof w->ops);
    w->arena = NULL;
    fresh_copy(w);
    for (const kind *k = kinds; k < kinds + n_kinds; k++)
        if ((!w->options->kind || !strcmp(k->name, w->options->kind)) &&
            !(s->without_guards && k->of_guards))
            for (unsigned op = 0; op < w->n_ops; op++)
                if (is_broken(s, w->ops[op]))
                    break_op(w, s, k, op);
    tcc_arena_destroy(w->arena);
    tcc_arena_destroy(w->kept);
    w->arena = NULL;
    bench_close(w->bench);
}

static void work(const options *o, shared *r)
{
    worker w = {.options = o, .shared = r};
    for (unsigned i; (i = r->next++) < n_subjects;)
        if (!o->subject || !strcmp(subjects[i].name, o->subject))
            break_subject(&w, &subjects[i]);
}

/* Those that are done come first. */
static void gather(verdict *verdicts)
{
    verdict *to = verdicts;
    for (const verdict *v = verdicts; v < verdicts + n_subjects * MAX_OF_SUBJECT; v++)
        if (v->done)
            *to++ = *v;
    to->done = false;
}

/* ---- the tables -------------------------------------------------------------------------- */

typedef struct row {
    unsigned mutants, by_checker, by_interpreter, equivalent, survived, wrongly_listed;
} row;

static bool is_killed(const verdict *v)
{
    return v->by_checker || v->by_interpreter;
}

static void count(row *r, const verdict *v)
{
    bool listed = v->reason >= 0;
    r->mutants++;
    r->by_checker += v->by_checker;
    r->by_interpreter += v->by_interpreter;
    r->equivalent += !is_killed(v) && listed;
    r->survived += !is_killed(v) && !listed;
    r->wrongly_listed += is_killed(v) && listed;
}

/* Of a kind, of a reason and of a subject; -1: of any. */
static row count_all(const verdict *verdicts, int kind_index, int reason_index, int subject_index)
{
    row r = {0};
    for (const verdict *v = verdicts; v->done; v++)
        if ((kind_index < 0 || v->kind == (unsigned)kind_index) &&
            (reason_index < 0 || v->reason == reason_index) &&
            (subject_index < 0 || v->subject == (unsigned)subject_index))
            count(&r, v);
    return r;
}

static void print_row(tcc_str *out, const char *name, row r)
{
    if (r.mutants)
        tcc_str_printf(out, "| %s | %u | %u | %u | %u | %u |\n", name, r.mutants, r.by_checker,
                       r.by_interpreter, r.equivalent, r.survived);
}

static void print_head(tcc_str *out, const char *of)
{
    tcc_str_printf(
        out,
        "| %s | mutants | by the checker | by the interpreter | equivalent | survived |\n"
        "|---|---|---|---|---|---|\n",
        of);
}

static void print_tables(tcc_str *out, const verdict *verdicts)
{
    print_head(out, "kind");
    for (unsigned k = 0; k < n_kinds; k++)
        print_row(out, kinds[k].name, count_all(verdicts, (int)k, -1, -1));
    print_row(out, "all", count_all(verdicts, -1, -1, -1));
    tcc_str_puts(out, "\n");
    print_head(out, "program");
    for (unsigned s = 0; s < n_subjects; s++)
        print_row(out, subjects[s].name, count_all(verdicts, -1, -1, (int)s));
    tcc_str_puts(out, "\n| equivalent because | mutants |\n|---|---|\n");
    for (unsigned r = 0; r < n_reasons; r++) {
        unsigned n = count_all(verdicts, -1, (int)r, -1).equivalent;
        if (n)
            tcc_str_printf(out, "| %s | %u |\n", reasons[r].name, n);
    }
}

/* ---- the document that has them ---------------------------------------------------------- */

static const char begin_mark[] = "<!-- mutants -->\n\n", end_mark[] = "\n<!-- end of mutants -->";

static char *read_all(const char *path)
{
    tcc_str text = {0};
    char part[4096];
    FILE *file = fopen(path, "rb");
    for (size_t n; file && (n = fread(part, 1, sizeof part, file)) > 0;)
        tcc_str_append(&text, part, n);
    if (file)
        fclose(file);
    return tcc_str_take(&text);
}

/* Compares the tables with those between the marks, or puts them there. */
static bool check_document(const options *o, const char *tables)
{
    char *text = read_all(o->document);
    char *begin = text ? strstr(text, begin_mark) : NULL;
    char *end = begin ? strstr(begin, end_mark) : NULL;
    size_t n = strlen(tables);
    if (begin)
        begin += strlen(begin_mark);
    bool same = end && (size_t)(end - begin) == n && !memcmp(begin, tables, n);
    if (!end)
        printf("FAIL: %s has no place for the tables\n", o->document);
    else if (!same && !o->update)
        printf("FAIL: %s has other tables; --update=%s puts these there\n", o->document,
               o->document);
    FILE *file = end && !same && o->update ? fopen(o->document, "wb") : NULL;
    if (file) {
        fprintf(file, "%.*s%s%s", (int)(begin - text), text, tables, end);
        same = !fclose(file);
    }
    free(text);
    return same;
}

/* ---- the result -------------------------------------------------------------------------- */

static void print_mutant(const char *what, const verdict *v)
{
    printf("%s: %d: %s, way %u, in '%s': op %u: %s\n", what, (int)v->number,
           kinds[v->kind].name, v->way, subjects[v->subject].name, v->op, v->text);
    if (v->reason >= 0)
        printf("    %s\n", reasons[v->reason].name);
    if (*v->said)
        printf("    %s\n", v->said);
}

static void print_mutants(const options *o, const verdict *verdicts)
{
    for (const verdict *v = verdicts; v->done; v++) {
        bool listed = v->reason >= 0;
        if (!is_killed(v) && !listed)
            print_mutant("FAIL: survived", v);
        else if (is_killed(v) && listed)
            print_mutant("FAIL: listed as equivalent", v);
        else if (o->all)
            print_mutant(listed ? "equivalent" : "killed", v);
    }
}

/* A kind passes when it gives mutants and none is left; a reason when it is true of some mutants,
 * and of none that is wrong. */
static int report(const options *o, const verdict *verdicts)
{
    unsigned results[2] = {0}; /* failed, passed */
    bool whole = !o->subject && !o->kind;
    tcc_str tables = {0};
    print_tables(&tables, verdicts);
    fputs(tcc_str_text(&tables), stdout);
    print_mutants(o, verdicts);
    for (unsigned k = 0; k < n_kinds; k++) {
        row r = count_all(verdicts, (int)k, -1, -1);
        if (whole && !r.mutants)
            printf("FAIL: '%s' gives no mutants\n", kinds[k].name);
        results[!r.survived && (r.mutants || !whole)]++;
    }
    for (unsigned k = 0; k < n_reasons; k++) {
        row r = count_all(verdicts, -1, (int)k, -1);
        if (whole && !r.equivalent)
            printf("FAIL: '%s' is a reason for no mutant\n", reasons[k].name);
        results[!r.wrongly_listed && (r.equivalent || !whole)]++;
    }
    if (o->document && whole)
        results[check_document(o, tcc_str_text(&tables))]++;
    tcc_str_free(&tables);
    printf("mutants: %u passed, %u failed\n", results[1], results[0]);
    return results[0] != 0;
}

/* ---- processes --------------------------------------------------------------------------- */

static int run(const options *o)
{
    size_t bytes = sizeof(shared) + ((size_t)n_subjects * MAX_OF_SUBJECT + 1) * sizeof(verdict);
    shared *r = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (r == MAP_FAILED) {
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
            work(o, r);
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
    gather(r->verdicts);
    return report(o, r->verdicts);
}

static void usage(void)
{
    fputs("usage: mutants [--jobs=N] [--check=FILE.md | --update=FILE.md]\n"
          "               [--subject=NAME] [--kind=NAME] [--all] [--show=NUMBER]\n"
          "Breaks programs and counts what the protocol checker and the interpreter find out.\n"
          "--check compares the tables with those of a document, --update puts them there, after running\n"
          "equivalent mutants in every order, not just in one; --show prints a mutant by its number.\n",
          stderr);
}

int main(int argc, char **argv)
{
    options o = {.jobs = 2, .show = -1};
    static const struct option known[] = {
        {"jobs", required_argument, NULL, 'j'},  {"subject", required_argument, NULL, 's'},
        {"kind", required_argument, NULL, 'k'},  {"show", required_argument, NULL, 'm'},
        {"check", required_argument, NULL, 'c'}, {"update", required_argument, NULL, 'u'},
        {"all", no_argument, NULL, 'a'},         {0},
    };
    for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;)
        switch (c) {
        case 'j': o.jobs = (unsigned)atoi(optarg); break;
        case 's': o.subject = optarg; break;
        case 'k': o.kind = optarg; break;
        case 'm': o.show = atoi(optarg); break;
        case 'a': o.all = true; break;
        case 'c':
        case 'u':
            o.document = optarg;
            o.update = c == 'u';
            break;
        default: usage(); return 2;
        }
    if (optind < argc || !o.jobs || o.jobs > 64) {
        usage();
        return 2;
    }
    if (o.show >= 0) {
        worker w = {.options = &o};
        if (o.show / MAX_OF_SUBJECT < (int)n_subjects)
            break_subject(&w, &subjects[o.show / MAX_OF_SUBJECT]);
        fprintf(stderr, "mutants: there is no mutant %d\n", o.show);
        return 2;
    }
    return run(&o);
}

/* tcc: compile a tile program. Everything it does is libtcc's public API.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <tcc/tcc_bundle.h>

#include "tools/shared/command_line.h"
#include "tools/shared/native.h"
#include "tools/shared/option_table.h"
#include "tools/tcc/commands.h"

const char program_name[] = "tcc" TCC_PROGRAM_SUFFIX;

enum { MAX_DEFINES = 256, MAX_TARGETS = 32, MAX_RANGES = 64 };

/* Kinds that are made of several modules, beside those of one. */
enum { EMIT_BUNDLE = TCC_EMIT_COUNT, EMIT_C };

static const struct {
    const char *suffix;
    int emit;
} suffixes[] = {
    {".ptx", TCC_EMIT_PTX},
    {".cubin", TCC_EMIT_CUBIN},
    {".sass", TCC_EMIT_SASS},
    {".s", TCC_EMIT_ASM},
    {".o", TCC_EMIT_OBJ},
    {".hsaco", TCC_EMIT_HSACO},
    {".ll", TCC_EMIT_LLVM},
    {".ir", TCC_EMIT_IR},
    {".tir", TCC_EMIT_TIR},
    {".json", TCC_EMIT_MANIFEST},
    {".tccb", EMIT_BUNDLE},
    {".c", EMIT_C},
    /* -o does not give these: what it has begins at the last dot */
    {".tile.tir", TCC_EMIT_TILE},
    {".async.tir", TCC_EMIT_ASYNC},
};
enum { N_SUFFIXES = sizeof suffixes / sizeof *suffixes };

typedef struct arguments {
    tcc_compile_options options;
    tcc_define defines[MAX_DEFINES];
    tcc_range ranges[MAX_RANGES];
    const char *input, *output;
    const char *targets[MAX_TARGETS];
    size_t n_targets;
    char *native; /* the target that --target=native is; else NULL */
    int emit;     /* a tcc_emit or one of those above */
    bool emit_given, print_schedule, print_plan, no_cubins;
    diagnostic_printer diagnostics;
} arguments;

static void parse_emit(arguments *a, const char *name)
{
    static const char *const packed[] = {"bundle", "c"};
    for (int e = 0; e <= EMIT_C; e++)
        if (!strcmp(e < TCC_EMIT_COUNT ? tcc_emit_name((tcc_emit)e) : packed[e - EMIT_BUNDLE], name)) {
            a->emit = e;
            a->emit_given = true;
            return;
        }
    bad_usage("--emit=%s: no such kind", name);
}

/* Takes a list apart. */
static void parse_targets(arguments *a, char *text)
{
    a->n_targets = 0;
    for (char *name; (name = strsep(&text, ","));) {
        for (size_t i = 0; i < a->n_targets; i++)
            if (!strcmp(a->targets[i], name))
                bad_usage("--target: %s twice", name);
        if (a->n_targets == MAX_TARGETS)
            bad_usage("--target: more than %d", MAX_TARGETS);
        a->targets[a->n_targets++] = name;
    }
}

static void parse_define(arguments *a, char *text)
{
    char *eq = strchr(text, '='), *end = NULL;
    if (!eq || eq == text)
        bad_usage("-D %s: expected NAME=NUMBER", text);
    errno = 0;
    long long value = strtoll(eq + 1, &end, 10);
    if (errno || end == eq + 1 || *end)
        bad_usage("-D %s: expected a number after '='", text);
    if (a->options.n_defines == MAX_DEFINES)
        bad_usage("more than %d of -D", MAX_DEFINES);
    *eq = 0;
    a->defines[a->options.n_defines++] = (tcc_define){text, value};
}

static void parse_tiles(arguments *a, const char *text)
{
    enum { MOST = 1000 };
    char *end = NULL;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n < 1 || n > MOST)
        bad_usage("--tiles=%s: expected a number from 1 to %d", text, MOST);
    a->options.tiles = (unsigned)n;
}

/* A number without a sign; false when there is none. */
static bool parse_extent(char **text, int64_t *out)
{
    char *end = *text;
    errno = 0;
    if (**text >= '0' && **text <= '9')
        *out = strtoll(*text, &end, 10);
    bool ok = end != *text && !errno;
    *text = end;
    return ok;
}

/* NAME=N, NAME=N..N or NAME=N.., and more of them after commas. */
static void parse_ranges(arguments *a, char *text)
{
    char *state = NULL;
    for (char *part = strtok_r(text, ",", &state); part; part = strtok_r(NULL, ",", &state)) {
        tcc_range r = {.name = part};
        char *p = strchr(part, '=');
        bool ok = p && p != part;
        if (ok)
            *p++ = 0;
        ok = ok && parse_extent(&p, &r.least);
        r.most = r.least;
        if (ok && !strncmp(p, "..", 2)) {
            p += 2;
            r.most = INT64_MAX;
            ok = !*p || parse_extent(&p, &r.most);
        }
        if (!ok || *p)
            bad_usage("--for %s: expected NAME=NUMBER, NAME=NUMBER..NUMBER or NAME=NUMBER..", part);
        if (a->options.n_ranges == MAX_RANGES)
            bad_usage("--for: more than %d ranges", MAX_RANGES);
        a->ranges[a->options.n_ranges++] = r;
    }
}

static void list_passes(void)
{
    for (size_t i = 0; tcc_pass_name(i); i++)
        printf("%-20s %s\n", tcc_pass_name(i), tcc_pass_summary(i));
}

static void take_operand(arguments *a, const char *name)
{
    if (a->input)
        bad_usage("more than one input file");
    a->input = name;
}

static void take_option(arguments *a, int id, const char *value)
{
    switch (id) {
    case OPTION_OPERAND: take_operand(a, value); break;
    case OPTION_TCC_LINES: a->options.line_tables = TCC_ON; break;
    case OPTION_TCC_OUTPUT: a->output = value; break;
    case OPTION_TCC_DEFINE: parse_define(a, (char *)value); break;
    case OPTION_TCC_EMIT: parse_emit(a, value); break;
    case OPTION_TCC_TARGET: parse_targets(a, (char *)value); break;
    case OPTION_TCC_TILES: parse_tiles(a, value); break;
    case OPTION_TCC_FOR: parse_ranges(a, (char *)value); break;
    case OPTION_TCC_PRINT_SCHEDULE: a->print_schedule = true; break;
    case OPTION_TCC_PRINT_PLAN: a->print_plan = true; break;
    case OPTION_TCC_PRINT_AFTER: a->options.print_after = value; break;
    case OPTION_TCC_VERIFY_EACH: a->options.verify_each = true; break;
    case OPTION_TCC_CHECK_PASSES:
        a->options.check_passes = true;
        a->options.check_seed = parse_check_seed(value);
        break;
    case OPTION_TCC_NO_VERIFY_PIPELINE: a->options.verify_pipeline = TCC_OFF; break;
    case OPTION_TCC_NO_CUBINS: a->no_cubins = true; break;
    case OPTION_TCC_TIME_PASSES: a->options.time_passes = true; break;
    case OPTION_TCC_PTXAS: a->options.ptxas = value; break;
    case OPTION_TCC_NVDISASM: a->options.nvdisasm = value; break;
    case OPTION_TCC_LIST_PASSES: list_passes(); exit(finish_output(0));
    case OPTION_TCC_LIST_TARGETS: list_targets(value); exit(finish_output(0));
    case OPTION_TCC_COLOR: parse_color(&a->diagnostics, value); break;
    case OPTION_TCC_DIAGNOSTICS: parse_diagnostics(&a->diagnostics, value); break;
    case OPTION_TCC_HELP: print_help(TOOL_TCC); exit(finish_output(0));
    case OPTION_TCC_VERSION: printf("tcc %s\n", tcc_version()); exit(finish_output(0));
    default: point_to_help("");
    }
}

static void parse_arguments(arguments *a, int argc, char **argv)
{
    option_reader reader;
    const char *value;
    option_reader_begin(&reader, TOOL_TCC, false);
    for (int id; (id = option_next(&reader, argc, argv, &value)) != OPTION_END;)
        take_option(a, id, value);
    if (!a->input)
        bad_usage("no input file");
}

static bool is_known(const char *(*name)(size_t), const char *what)
{
    for (size_t i = 0; name(i); i++)
        if (!strcmp(name(i), what))
            return true;
    return false;
}

static void unknown_target(const char *given)
{
    char names[1024] = "";
    const char *how, *nearest = tcc_target_nearest(given, &how);
    if (how)
        bad_usage("--target=%s: not supported yet; the nearest is %s, %s", given, nearest, how);
    if (nearest)
        bad_usage("--target=%s: no such target; did you mean %s?", given, nearest);
    for (size_t i = 0, n = 0; tcc_target_name(i) && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "",
                              tcc_target_name(i));
    bad_usage("--target=%s: no such target; there are %s", given, names);
}

static void check_names(const arguments *a)
{
    const char *after = a->options.print_after;
    for (size_t i = 0; i < a->n_targets; i++)
        if (!is_known(tcc_target_name, a->targets[i]))
            unknown_target(a->targets[i]);
    if (after && strcmp(after, "all") && strcmp(after, "changed") &&
        !is_known(tcc_pass_name, after))
        bad_usage("--print-after=%s: no such pass; see --list-passes", after);
}

/* The kind from the suffix of -o; without -o the name from the input and the kind. */
static void choose_output(arguments *a)
{
    const char *dot = a->output ? strrchr(a->output, '.') : NULL;
    for (int i = 0; i < N_SUFFIXES; i++)
        if (dot && !a->emit_given && !strcmp(dot, suffixes[i].suffix)) {
            a->emit = suffixes[i].emit;
            return;
        }
    if (a->output && !a->emit_given && strcmp(a->output, "-"))
        bad_usage("-o %s: cannot tell the kind from this suffix; use --emit", a->output);
    if (a->emit == TCC_EMIT_DEFAULT)
        a->emit = a->n_targets > 1 ? EMIT_BUNDLE : (int)tcc_target_emit(a->targets[0]);
    if (a->output)
        return;
    if (!strcmp(a->input, "-")) {
        a->output = "-";
        return;
    }
    const char *suffix = ".ptx";
    for (int i = 0; i < N_SUFFIXES; i++)
        if (suffixes[i].emit == a->emit)
            suffix = suffixes[i].suffix;
    const char *slash = strrchr(a->input, '/'), *end = strrchr(a->input, '.');
    size_t n = end && (!slash || end > slash) ? (size_t)(end - a->input) : strlen(a->input);
    char *name = malloc(n + strlen(suffix) + 1);
    if (!name)
        out_of_memory();
    memcpy(name, a->input, n);
    strcpy(name + n, suffix);
    a->output = name;
}

static bool is_packed(const arguments *a)
{
    return a->emit >= EMIT_BUNDLE;
}

/* Whether both names lead to one file with contents, not to a terminal or to /dev/null. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return !stat(a, &of_a) && !stat(b, &of_b) && S_ISREG(of_a.st_mode) && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}

static void check_kind(const arguments *a)
{
    if (strcmp(a->input, "-") && is_same_file(a->input, a->output))
        bad_usage("-o %s: would replace the input file", a->output);
    if (a->n_targets > 1 && !is_packed(a))
        bad_usage("--target: a file of the kind %s is for one target; code for several goes into a bundle (-o "
                  "FILE.tccb) "
                  "or into C (-o FILE.c)", tcc_emit_name((tcc_emit)a->emit));
    if (a->emit == EMIT_C && !strcmp(a->output, "-"))
        bad_usage("-o -: C comes with a header, so it needs a file name: -o FILE.c");
}

/* The compilation must reach what it is asked to show. */
static void check_reached(const arguments *a)
{
    const char *shown = a->print_schedule         ? "--print-schedule"
                        : a->print_plan           ? "--print-plan"
                        : a->options.print_after  ? "--print-after"
                        : a->options.check_passes ? "--check-passes"
                                                  : NULL;
    if (shown && a->emit == TCC_EMIT_IR)
        bad_usage("%s: the kind ir stops before the passes", shown);
}

/* ---- doing it --------------------------------------------------------------------------- */

/* Compiles for every target; the caller destroys the modules, which are NULL from the first failure on. */
static tcc_status compile(arguments *a, tcc_context *ctx, tcc_module *modules[MAX_TARGETS])
{
    size_t size = 0;
    char *source = read_input(a->input, &size);
    tcc_status status = TCC_OK;
    for (size_t i = 0; i < a->n_targets && !status; i++) {
        a->options.target = a->targets[i];
        a->options.emit = is_packed(a) ? TCC_EMIT_DEFAULT : (tcc_emit)a->emit;
        status = tcc_compile_with(ctx, source, size, &a->options, &modules[i]);
        if (!status && a->print_schedule)
            fputs(tcc_module_schedule(modules[i]), stderr);
        if (!status && a->print_plan)
            fputs(tcc_module_plan(modules[i]), stderr);
    }
    free(source);
    return status;
}

/* The part of a path that is the file's name, without its suffix; the caller frees it. */
static char *stem_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = strdup(slash ? slash + 1 : path);
    if (!name)
        out_of_memory();
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = 0;
    return name;
}

/* matmul.h beside matmul.c; the caller frees it. */
static char *header_beside(const char *path)
{
    size_t n = strlen(path);
    bool has_suffix = n > 2 && !strcmp(path + n - 2, ".c");
    char *name = malloc(n + sizeof ".h");
    if (!name)
        out_of_memory();
    sprintf(name, "%.*s.h", (int)(has_suffix ? n - 2 : n), path);
    return name;
}

static bool write_text(const char *name, const tcc_text *text)
{
    return write_output(name, text->data, text->size);
}

/* What is written of modules of several targets. *written says whether it could be. */
static tcc_status write_packed(const arguments *a, tcc_context *ctx, tcc_module *const *modules, bool *written)
{
    const tcc_bundle_options options = {.struct_size = sizeof options, .ptxas = a->options.ptxas,
                                        .cubins = a->no_cubins ? TCC_OFF : TCC_DEFAULT};
    const tcc_module *const *mods = (const tcc_module *const *)modules;
    tcc_text text = {0}, header = {0};
    tcc_status status;
    if (a->emit == EMIT_BUNDLE) {
        status = tcc_bundle_make(ctx, mods, a->n_targets, &options, &text);
        *written = !status && write_text(a->output, &text);
    } else {
        char *stem = stem_of(a->output), *beside = header_beside(a->output);
        status = tcc_bundle_c(ctx, mods, a->n_targets, &options, stem, &text, &header);
        *written = !status && write_text(beside, &header) && write_text(a->output, &text);
        free(stem);
        free(beside);
    }
    tcc_text_destroy(text.data);
    tcc_text_destroy(header.data);
    return status;
}

static tcc_status write_module(const arguments *a, const tcc_module *mod, bool *written)
{
    size_t n;
    const void *out = tcc_module_output(mod, &n);
    *written = write_output(a->output, out, n);
    return TCC_OK;
}

int main(int argc, char **argv)
{
    static arguments a = {.targets = {"sm_90a"},
                          .n_targets = 1,
                          .options = {.struct_size = sizeof(tcc_compile_options),
                                      .print = print_text,
                                      .reproducer = "tcc-reproducer.tile"}};
    prepare_output();
    if (argc > 1 && !strcmp(argv[1], "fmt"))
        return fmt_main(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "lsp"))
        return lsp_main(argc - 1, argv + 1);
    use_large_pages();
    parse_arguments(&a, argc, argv);
    for (size_t i = 0; i < a.n_targets; i++)
        if (!strcmp(a.targets[i], "native"))
            a.targets[i] = a.native = native_target();
    check_names(&a);
    choose_output(&a);
    check_kind(&a);
    check_reached(&a);
    a.options.defines = a.defines;
    a.options.ranges = a.ranges;
    a.options.file = strcmp(a.input, "-") ? a.input : "<stdin>";
    tcc_context *ctx = tcc_context_create();
    if (!ctx)
        out_of_memory();
    tcc_context_on_diagnostic(ctx, print_diagnostic, &a.diagnostics);
    tcc_module *modules[MAX_TARGETS] = {0};
    bool written = false;
    tcc_status status = compile(&a, ctx, modules);
    if (!status)
        status = is_packed(&a) ? write_packed(&a, ctx, modules, &written) : write_module(&a, modules[0], &written);
    end_diagnostics(&a.diagnostics);
    if (status == TCC_ERR_MEMORY)
        out_of_memory();
    int exit_status = written ? 0 : status && status != TCC_ERR_ARGUMENT ? EXIT_FAILED : EXIT_USAGE;
    for (size_t i = 0; i < a.n_targets; i++)
        tcc_module_destroy(modules[i]);
    tcc_context_destroy(ctx);
    free(a.native);
    return finish_output(exit_status);
}

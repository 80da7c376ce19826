/* tcc: compile a tile program. Everything it does is libtcc's public API.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/command_line.h"
#include "tools/shared/native.h"

const char program_name[] = "tcc";

enum { MAX_DEFINES = 256 };

static const char usage[] =
    "usage: tcc [options] FILE.tile\n"
    "\n"
    "Compiles a tile program to a GPU kernel. '-' is standard input or output.\n"
    "\n"
    "  -o FILE               write here; the suffix gives the kind: .ptx .cubin .s .o .hsaco\n"
    "                        .ll .ir .tir .json (default: FILE with the suffix of the kind)\n"
    "  --emit=KIND           ptx or cubin, for AMD's targets hsaco or obj; asm, llvm or manifest; or\n"
    "                        the IR of a level: ir (tensor), tile, async, tir (target)\n"
    "  --target=NAME         default sm_90a; --list-targets shows all; native: of the GPU that is\n"
    "                        here\n"
    "  -D NAME=NUMBER        bind a dimension, or change a const\n"
    "  --tiles=N             where extents and tile are open, compile at most so many tiles, for a\n"
    "                        launch to choose from (default: all that there are for the target)\n"
    "  --print-schedule      show the schedule in force, in the language's syntax\n"
    "  -g                    line tables in code objects, too\n"
    "  --print-after=PASS    show the IR after a pass; 'all', or 'changed': where it changed\n"
    "  --verify-each         verify the IR after every pass\n"
    "  --check-passes[=SEED] run the kernels on small shapes before and after every pass, and\n"
    "                        compare; takes seconds\n"
    "  --no-verify-pipeline  emit without the proof that barriers, copies and MMAs go together\n"
    "  --time-passes         show where the time goes\n"
    "  --ptxas=PATH          assemble with this ptxas\n"
    "  --list-passes         list the passes\n"
    "  --list-targets        list the targets\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0, 1 for a bad program, 2 for bad usage and files that cannot be read or written,\n"
    "3 where there is no GPU and --target=native asks for one.\n";

static const struct {
    const char *suffix;
    tcc_emit emit;
} suffixes[] = {
    {".ptx", TCC_EMIT_PTX},
    {".cubin", TCC_EMIT_CUBIN},
    {".s", TCC_EMIT_ASM},
    {".o", TCC_EMIT_OBJ},
    {".hsaco", TCC_EMIT_HSACO},
    {".ll", TCC_EMIT_LLVM},
    {".ir", TCC_EMIT_IR},
    {".tir", TCC_EMIT_TIR},
    {".json", TCC_EMIT_MANIFEST},
    /* -o does not give these: what it has begins at the last dot */
    {".tile.tir", TCC_EMIT_TILE},
    {".async.tir", TCC_EMIT_ASYNC},
};
enum { N_SUFFIXES = sizeof suffixes / sizeof *suffixes };

typedef struct arguments {
    tcc_compile_options options;
    tcc_define defines[MAX_DEFINES];
    const char *input, *output;
    char *native; /* the target that --target=native is; else NULL */
    bool emit_given, print_schedule;
} arguments;

static void parse_emit(arguments *a, const char *name)
{
    for (int e = 0; e < TCC_EMIT_COUNT; e++)
        if (!strcmp(tcc_emit_name((tcc_emit)e), name)) {
            a->options.emit = (tcc_emit)e;
            a->emit_given = true;
            return;
        }
    bad_usage("--emit=%s: no such kind", name);
}

static void parse_define(arguments *a, char *text)
{
    char *eq = strchr(text, '='), *end = NULL;
    if (!eq || eq == text)
        bad_usage("-D %s: want NAME=NUMBER", text);
    errno = 0;
    long long value = strtoll(eq + 1, &end, 10);
    if (errno || end == eq + 1 || *end)
        bad_usage("-D %s: want a number after '='", text);
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
        bad_usage("--tiles=%s: want a number from 1 to %d", text, MOST);
    a->options.tiles = (unsigned)n;
}

static void list_and_exit(const char *(*name)(size_t), const char *(*summary)(size_t))
{
    for (size_t i = 0; name(i); i++)
        if (summary)
            printf("%-20s %s\n", name(i), summary(i));
        else
            puts(name(i));
    exit(finish_output(0));
}

static void parse_arguments(arguments *a, int argc, char **argv)
{
    enum {
        EMIT = 256,
        TARGET,
        TILES,
        PRINT_SCHEDULE,
        PRINT_AFTER,
        VERIFY_EACH,
        CHECK_PASSES,
        NO_VERIFY_PIPELINE,
        TIME_PASSES,
        PTXAS,
        LIST_PASSES,
        LIST_TARGETS,
        HELP,
        VERSION
    };
    static const struct option options[] = {
        {"emit", required_argument, NULL, EMIT},
        {"target", required_argument, NULL, TARGET},
        {"tiles", required_argument, NULL, TILES},
        {"print-schedule", no_argument, NULL, PRINT_SCHEDULE},
        {"print-after", required_argument, NULL, PRINT_AFTER},
        {"verify-each", no_argument, NULL, VERIFY_EACH},
        {"check-passes", optional_argument, NULL, CHECK_PASSES},
        {"no-verify-pipeline", no_argument, NULL, NO_VERIFY_PIPELINE},
        {"time-passes", no_argument, NULL, TIME_PASSES},
        {"ptxas", required_argument, NULL, PTXAS},
        {"list-passes", no_argument, NULL, LIST_PASSES},
        {"list-targets", no_argument, NULL, LIST_TARGETS},
        {"help", no_argument, NULL, HELP},
        {"version", no_argument, NULL, VERSION},
        {NULL, 0, NULL, 0},
    };
    for (int c; (c = getopt_long(argc, argv, "o:D:gh", options, NULL)) != -1;)
        switch (c) {
        case 'g': a->options.line_tables = TCC_ON; break;
        case 'o': a->output = optarg; break;
        case 'D': parse_define(a, optarg); break;
        case EMIT: parse_emit(a, optarg); break;
        case TARGET: a->options.target = optarg; break;
        case TILES: parse_tiles(a, optarg); break;
        case PRINT_SCHEDULE: a->print_schedule = true; break;
        case PRINT_AFTER: a->options.print_after = optarg; break;
        case VERIFY_EACH: a->options.verify_each = true; break;
        case CHECK_PASSES:
            a->options.check_passes = true;
            a->options.check_seed = parse_check_seed(optarg);
            break;
        case NO_VERIFY_PIPELINE: a->options.verify_pipeline = TCC_OFF; break;
        case TIME_PASSES: a->options.time_passes = true; break;
        case PTXAS: a->options.ptxas = optarg; break;
        case LIST_PASSES: list_and_exit(tcc_pass_name, tcc_pass_summary); break;
        case LIST_TARGETS: list_and_exit(tcc_target_name, NULL); break;
        case 'h':
        case HELP: fputs(usage, stdout); exit(finish_output(0));
        case VERSION: printf("tcc %s\n", tcc_version()); exit(finish_output(0));
        default: fputs("Try 'tcc --help'.\n", stderr); exit(EXIT_USAGE);
        }
    if (optind != argc - 1)
        bad_usage(optind < argc ? "more than one input file" : "no input file");
    a->input = argv[optind];
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
    for (size_t i = 0, n = 0; tcc_target_name(i) && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "",
                              tcc_target_name(i));
    bad_usage("--target=%s: no such target; there are %s", given, names);
}

static void check_names(const arguments *a)
{
    const char *after = a->options.print_after;
    if (!is_known(tcc_target_name, a->options.target))
        unknown_target(a->options.target);
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
            a->options.emit = suffixes[i].emit;
            return;
        }
    if (a->output && !a->emit_given && strcmp(a->output, "-"))
        bad_usage("-o %s: cannot tell the kind from this suffix; use --emit", a->output);
    if (a->options.emit == TCC_EMIT_DEFAULT)
        a->options.emit = tcc_target_emit(a->options.target);
    if (a->output)
        return;
    if (!strcmp(a->input, "-")) {
        a->output = "-";
        return;
    }
    const char *suffix = ".ptx";
    for (int i = 0; i < N_SUFFIXES; i++)
        if (suffixes[i].emit == a->options.emit)
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

/* What is asked to be shown must be reached. */
static void check_reached(const arguments *a)
{
    const char *shown = a->print_schedule         ? "--print-schedule"
                        : a->options.print_after  ? "--print-after"
                        : a->options.check_passes ? "--check-passes"
                                                  : NULL;
    if (shown && a->options.emit == TCC_EMIT_IR)
        bad_usage("%s: the kind ir stops before the passes", shown);
}

int main(int argc, char **argv)
{
    static arguments a = {.options = {.struct_size = sizeof(tcc_compile_options),
                                      .target = "sm_90a",
                                      .print = print_text,
                                      .reproducer = "tcc-reproducer.tile"}};
    prepare_output();
    parse_arguments(&a, argc, argv);
    if (!strcmp(a.options.target, "native"))
        a.options.target = a.native = native_target();
    check_names(&a);
    choose_output(&a);
    check_reached(&a);
    a.options.defines = a.defines;
    a.options.file = strcmp(a.input, "-") ? a.input : "<stdin>";
    size_t size = 0;
    char *source = read_input(a.input, &size);
    tcc_context *ctx = tcc_context_create();
    if (!ctx)
        out_of_memory();
    tcc_context_on_diagnostic(ctx, print_diagnostic, NULL);
    tcc_module *mod;
    int exit_status = EXIT_FAILED;
    tcc_status status = tcc_compile_with(ctx, source, size, &a.options, &mod);
    if (!status) {
        if (a.print_schedule)
            fputs(tcc_module_schedule(mod), stderr);
        size_t n;
        const void *out = tcc_module_output(mod, &n);
        exit_status = write_output(a.output, out, n) ? 0 : EXIT_USAGE;
    } else if (status == TCC_ERR_MEMORY) {
        out_of_memory();
    } else if (status == TCC_ERR_ARGUMENT) {
        exit_status = EXIT_USAGE;
    }
    tcc_module_destroy(mod);
    tcc_context_destroy(ctx);
    free(source);
    free(a.native);
    return finish_output(exit_status);
}

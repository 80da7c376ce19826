/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char options_usage[] =
    "usage: tcc-run FILE.tile|FILE.ptx|FILE.tir --size M=4096,N=4096,K=4096 [options]\n"
    "       tcc-run FILE.tile|FILE.hsaco|FILE.tir --on=hip --size M=4096,N=4096,K=4096 [options]\n"
    "       tcc-run FILE.tile|FILE.tir --on=interp --size M=256,N=256,K=256 [options]\n"
    "       tcc-run --script FILE [--on=hip|interp] [--table OUT.md]\n"
    "\n"
    "Compiles (.tile, .tir) or loads (.ptx, .cubin, .hsaco, .tccb) a kernel and launches it on random\n"
    "data: standard-normal floats, integers of their type's whole range. With --on=interp no GPU is\n"
    "needed: a model of the machine runs the instructions one by one and reports races, deadlocks\n"
    "and the like at the line of the program (docs/interp.md).\n"
    "\n"
    "  --size NAME=N,...      extents of symbolic dimensions; those of inputs may be left out\n"
    "  --kernel NAME          the kernel; needed when the file has several\n"
    "  --input NAME=FILE.npy  an input's or inout's data; may be repeated\n"
    "  --output NAME=FILE.npy where an output's data goes, bf16 as '<u2' and 8-bit floats as\n"
    "                         '|V1'; may be repeated\n"
    "  --set NAME=X,...       scalar parameters; 1 when not given\n"
    "  --check[=TOL]          compare with a reference in double precision: no element may be further\n"
    "                         off than rounding takes it, or, with TOL, none that is exact; and the\n"
    "                         relative error norm may be TOL (f16 1e-3, bf16 8e-3, e4m3 0.125, e5m2 0.25,\n"
    "                         f32 1e-5 + 2e-8 K; with a sum in f16 2e-4, in bf16 2e-3, times the\n"
    "                         root of K more)\n"
    "  --rows N               compare N sampled rows of the outputs (all that 2e9 terms allow)\n"
    "  --repeat N             launch N times and compare the results bit by bit (no inout)\n"
    "  --bench                time it: median over rounds, warm, inputs out of the L2 cache\n"
    "  --against=cublas       time cuBLASLt's plain product in turn with it\n"
    "  --against=cublas:relu_bias   the same with cuBLASLt's fused bias and relu\n"
    "  --tune                 search for the schedule that is fastest at these sizes, and print it\n"
    "  --tune-seconds N       that the search may take (60)\n"
    "  --tune-results FILE    where results are kept: a search goes on where another ended\n"
    "                         (tuned.jsonl in the folder of $TCC_CACHE_DIR, else ~/.cache/tcc)\n"
    "  --shard I/N            search the I-th of N parts (1 to N); cat puts their results together\n"
    "  --misalign NAME,...    put these tensors one element off their alignment\n"
    "  --variant ENTRY        fail unless this variant runs, or one of its tiles, ENTRY__64x128; the\n"
    "                         interpreter is told to run it\n"
    "  --seed N               of the random data (1)\n"
    "  --target NAME          of .tile files (what the GPU is; sm_90a with --on=interp)\n"
    "  --manifest FILE.json   of a cubin or code object that carries none\n"
    "  -D NAME=N              bind a dimension or constant of a .tile file\n"
    "  --on=gpu|hip|interp    run on the GPU through CUDA (default) or, on AMD's GPUs, HIP; or\n"
    "                         interpret on the CPU\n"
    "  --device N             which of the GPUs (0)\n"
    "  --order ORDER          of the interpreter's warps and asynchronous operations, which complete\n"
    "                         early, late, as random:SEED says or timed by a model (random:1)\n"
    "  --level LEVEL          interpret a .tile file as it is at this level: tensor, tile, async or\n"
    "                         target, which is what is emitted (target)\n"
    "  --threads N            that interpret CTAs (one for each CPU)\n"
    "  --timeline FILE        write what one CTA does and when, by a model of the machine's speed, as\n"
    "                         a Chrome trace: ui.perfetto.dev shows it (docs/timeline.md)\n"
    "  --timeline-cta N       which CTA (0)\n"
    "  --script FILE          run every line of FILE as a command line of tcc-run\n"
    "  --table FILE           write a script's results as a Markdown table\n"
    "  --timeout S            seconds a line of a script may take (120)\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 success, 1 bad program or failed check, 2 bad usage or standard output that\n"
    "cannot be written, 3 no GPU, or no driver or HIP library for it.\n";

/* ---- values ----------------------------------------------------------------------------- */

static bool parse_extent(const char *text, option_pair *out)
{
    char *end;
    errno = 0;
    out->extent = strtoll(text, &end, 10);
    return end != text && !*end && !errno;
}

static bool parse_size(const char *text, option_pair *out)
{
    return parse_extent(text, out) && out->extent >= 0;
}

static bool parse_number(const char *text, option_pair *out)
{
    char *end;
    out->number = strtod(text, &end);
    return end != text && !*end;
}

static bool parse_path(const char *text, option_pair *out)
{
    out->path = text;
    return *text;
}

typedef bool value_parser(const char *text, option_pair *out);

/* Adds one NAME=VALUE, or NAME alone where there is no parser. */
static bool add_pair(option_list *list, const char *text, value_parser *parse)
{
    size_t len = strcspn(text, "=");
    if (list->n == MAX_PAIRS || !len || len >= MAX_NAME || (text[len] == '=') != (parse != NULL))
        return false;
    option_pair *pair = &list->pairs[list->n++];
    memcpy(pair->name, text, len);
    pair->name[len] = 0;
    return !parse || parse(text + len + 1, pair);
}

/* Adds every part of a list separated by commas. */
static bool add_pairs(option_list *list, const char *text, value_parser *parse)
{
    char part[256];
    for (;;) {
        size_t len = strcspn(text, ",");
        if (len >= sizeof part)
            return false;
        memcpy(part, text, len);
        part[len] = 0;
        if (!add_pair(list, part, parse))
            return false;
        if (!text[len])
            return true;
        text += len + 1;
    }
}

const option_pair *option_find(const option_list *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (!strcmp(list->pairs[i].name, name))
            return &list->pairs[i];
    return NULL;
}

/* ---- options ---------------------------------------------------------------------------- */

/* An option and the field that it sets, at `offset` in options. */
typedef struct option_row {
    const char *name;
    enum { NEEDS_VALUE, MAY_HAVE_VALUE } value; /* as the next word too, or after '=' only */
    bool (*set)(options *o, const struct option_row *option, const char *value);
    size_t offset;
    value_parser *parse; /* of lists */
} option_row;

static void *field(options *o, const option_row *option)
{
    return (char *)o + option->offset;
}

/* Each takes the option's value, "" where it has none, and is false for a bad one. */
static bool set_pairs(options *o, const option_row *option, const char *value)
{
    return add_pairs(field(o, option), value, option->parse);
}

static bool set_pair(options *o, const option_row *option, const char *value)
{
    return add_pair(field(o, option), value, option->parse);
}

static bool set_text(options *o, const option_row *option, const char *value)
{
    *(const char **)field(o, option) = value;
    return *value;
}

static bool set_flag(options *o, const option_row *option, const char *value)
{
    *(bool *)field(o, option) = true;
    return !*value;
}

static bool set_number(options *o, const option_row *option, const char *value)
{
    option_pair pair;
    bool ok = parse_extent(value, &pair) && pair.extent >= 1;
    *(int64_t *)field(o, option) = ok ? pair.extent : 1;
    return ok;
}

static bool set_count(options *o, const option_row *option, const char *value)
{
    option_pair pair = {.extent = 0};
    bool ok = parse_size(value, &pair);
    *(int64_t *)field(o, option) = pair.extent;
    return ok;
}

static bool set_check(options *o, const option_row *option, const char *value)
{
    (void)option;
    option_pair tolerance = {.number = 0};
    bool ok = !*value || (parse_number(value, &tolerance) && tolerance.number > 0);
    o->check = true;
    o->tolerance = tolerance.number;
    return ok;
}

static bool set_against(options *o, const option_row *option, const char *value)
{
    (void)option;
    o->bench = true;
    o->against = !strcmp(value, "cublas:relu_bias") ? AGAINST_RELU_BIAS : AGAINST_PRODUCT;
    return o->against == AGAINST_RELU_BIAS || !strcmp(value, "cublas");
}

static bool set_shard(options *o, const option_row *option, const char *value)
{
    (void)option;
    char end;
    unsigned shard;
    if (sscanf(value, "%u/%u%c", &shard, &o->n_shards, &end) != 2 || !shard || shard > o->n_shards)
        return false;
    o->shard = shard - 1;
    return true;
}

static bool set_on(options *o, const option_row *option, const char *value)
{
    (void)option;
    static const struct {
        const char *name;
        run_on on;
    } machines[] = {{"gpu", ON_GPU}, {"hip", ON_HIP}, {"interp", ON_INTERP}};
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (!strcmp(machines[i].name, value)) {
            o->on = machines[i].on;
            return true;
        }
    return false;
}

static bool set_device(options *o, const option_row *option, const char *value)
{
    option_pair device = {.extent = 0};
    (void)option;
    bool ok = parse_size(value, &device) && device.extent <= INT_MAX;
    o->device = device.extent;
    o->device_given = true;
    return ok;
}

static bool set_order(options *o, const option_row *option, const char *value)
{
    static const char random_[] = "random:";
    option_pair seed = {.extent = 0};
    (void)option;
    o->order = (order){.given = true, .kind = TCC_INTERPRET_EARLY};
    if (!strcmp(value, "early"))
        return true;
    o->order.kind = TCC_INTERPRET_LATE;
    if (!strcmp(value, "late"))
        return true;
    o->order.kind = TCC_INTERPRET_TIMED;
    if (!strcmp(value, "timed"))
        return true;
    o->order.kind = TCC_INTERPRET_RANDOM;
    if (strncmp(value, random_, sizeof random_ - 1) ||
        !parse_size(value + sizeof random_ - 1, &seed))
        return false;
    o->order.seed = (uint64_t)seed.extent;
    return true;
}

static bool set_level(options *o, const option_row *option, const char *value)
{
    static const struct {
        const char *name;
        tcc_emit emit;
    } levels[] = {{"tensor", TCC_EMIT_IR},
                  {"tile", TCC_EMIT_TILE},
                  {"async", TCC_EMIT_ASYNC},
                  {"target", TCC_EMIT_TIR}};
    (void)option;
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++)
        if (!strcmp(levels[i].name, value)) {
            o->level = levels[i].emit;
            return true;
        }
    return false;
}

#define FIELD(name) offsetof(options, name)

static const option_row table[] = {
    {"--size", NEEDS_VALUE, set_pairs, FIELD(sizes), parse_size},
    {"--set", NEEDS_VALUE, set_pairs, FIELD(scalars), parse_number},
    {"--misalign", NEEDS_VALUE, set_pairs, FIELD(misaligned), NULL},
    {"--input", NEEDS_VALUE, set_pair, FIELD(inputs), parse_path},
    {"--output", NEEDS_VALUE, set_pair, FIELD(outputs), parse_path},
    {"-D", NEEDS_VALUE, set_pair, FIELD(defines), parse_extent},
    {"--kernel", NEEDS_VALUE, set_text, FIELD(kernel), NULL},
    {"--target", NEEDS_VALUE, set_text, FIELD(target), NULL},
    {"--manifest", NEEDS_VALUE, set_text, FIELD(manifest), NULL},
    {"--variant", NEEDS_VALUE, set_text, FIELD(variant), NULL},
    {"--script", NEEDS_VALUE, set_text, FIELD(script), NULL},
    {"--table", NEEDS_VALUE, set_text, FIELD(table), NULL},
    {"--timeline", NEEDS_VALUE, set_text, FIELD(timeline), NULL},
    {"--timeline-cta", NEEDS_VALUE, set_count, FIELD(timeline_cta), NULL},
    {"--rows", NEEDS_VALUE, set_number, FIELD(rows), NULL},
    {"--repeat", NEEDS_VALUE, set_number, FIELD(repeat), NULL},
    {"--seed", NEEDS_VALUE, set_number, FIELD(seed), NULL},
    {"--timeout", NEEDS_VALUE, set_number, FIELD(timeout_s), NULL},
    {"--threads", NEEDS_VALUE, set_number, FIELD(threads), NULL},
    {"--tune-seconds", NEEDS_VALUE, set_number, FIELD(tune_seconds), NULL},
    {"--tune-results", NEEDS_VALUE, set_text, FIELD(tune_results), NULL},
    {"--shard", NEEDS_VALUE, set_shard, 0, NULL},
    {"--on", NEEDS_VALUE, set_on, 0, NULL},
    {"--device", NEEDS_VALUE, set_device, 0, NULL},
    {"--order", NEEDS_VALUE, set_order, 0, NULL},
    {"--level", NEEDS_VALUE, set_level, 0, NULL},
    {"--check", MAY_HAVE_VALUE, set_check, 0, NULL},
    {"--against", NEEDS_VALUE, set_against, 0, NULL},
    {"--bench", MAY_HAVE_VALUE, set_flag, FIELD(bench), NULL},
    {"--tune", MAY_HAVE_VALUE, set_flag, FIELD(tune), NULL},
    {"--help", MAY_HAVE_VALUE, set_flag, FIELD(help), NULL},
    {"--version", MAY_HAVE_VALUE, set_flag, FIELD(version), NULL},
};

enum { N_OPTIONS = sizeof table / sizeof table[0] };

/* The option of a word such as --size or --size=…; NULL for none. */
static const option_row *find_option(const char *word)
{
    size_t len = strcspn(word, "=");
    for (int i = 0; i < N_OPTIONS; i++)
        if (strlen(table[i].name) == len && !memcmp(table[i].name, word, len))
            return &table[i];
    return NULL;
}

/* Takes the option at argv[*i], with the next word where that is its value. */
static bool take_option(int argc, char **argv, int *i, options *out, char *why, size_t why_size)
{
    const char *word = argv[*i], *equals = strchr(word, '=');
    const char *value = equals ? equals + 1 : NULL;
    const option_row *option = find_option(word);
    if (!option && !strncmp(word, "-D", 2)) { /* -DNAME=N */
        option = find_option("-D");
        value = word + 2;
    }
    if (!option) {
        snprintf(why, why_size, "unknown option '%s'", word);
        return false;
    }
    if (!value && option->value == NEEDS_VALUE && *i + 1 < argc)
        value = argv[++*i];
    if (!value && option->value == NEEDS_VALUE) {
        snprintf(why, why_size, "%s needs a value", word);
        return false;
    }
    if (!option->set(out, option, value ? value : "")) {
        snprintf(why, why_size, "bad value of %s: '%s'", option->name, value ? value : "");
        return false;
    }
    return true;
}

file_kind file_kind_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    if (!dot)
        return FILE_IMAGE;
    return !strcmp(dot, ".tile")                         ? FILE_TILE
           : !strcmp(dot, ".tir") || !strcmp(dot, ".ir") ? FILE_IR
                                                         : FILE_IMAGE;
}

/* A name that a list has twice, NULL when there is none; *option gets which list. */
static const char *given_twice(options *o, const char **option)
{
    for (int i = 0; i < N_OPTIONS; i++) {
        if (table[i].set != set_pairs && table[i].set != set_pair)
            continue;
        const option_list *list = field(o, &table[i]);
        *option = table[i].name;
        for (size_t j = 0; j < list->n; j++)
            if (option_find(list, list->pairs[j].name) != &list->pairs[j])
                return list->pairs[j].name;
    }
    return NULL;
}

/* What does not go together; NULL: nothing. A script may say what is for its lines. */
static const char *contradiction(const options *o)
{
    bool interp = o->on == ON_INTERP;
    if (!o->file == !o->script)
        return "either a file or --script FILE is needed";
    if (o->table && !o->script)
        return "--table belongs to --script";
    if (o->bench && interp)
        return o->against ? "--against needs a GPU: the interpreter's time means nothing"
                          : "--bench needs a GPU: the interpreter's time means nothing";
    if (o->tune && interp)
        return "--tune needs a GPU: the interpreter's time means nothing";
    if (o->tune && o->file && file_kind_of(o->file) != FILE_TILE)
        return "--tune is for .tile files: others have their schedule";
    if (o->tune && (o->bench || o->variant || o->script))
        return o->script ? "--tune is for one run: not for --script"
               : o->bench ? "--tune times by itself: without --bench and --against"
                          : "--tune runs all variants: without --variant";
    if (!o->tune && (o->tune_seconds || o->tune_results || o->n_shards))
        return o->tune_seconds   ? "--tune-seconds belongs to --tune"
               : o->tune_results ? "--tune-results belongs to --tune"
                                 : "--shard belongs to --tune";
    if (interp && o->file && file_kind_of(o->file) == FILE_IMAGE)
        return "--on=interp runs .tile and .tir files";
    if (interp && o->device_given)
        return "--device is for GPUs";
    if (o->on == ON_HIP && o->against)
        return "--against needs CUDA: it is cuBLASLt's product";
    if (o->manifest && o->file && file_kind_of(o->file) != FILE_IMAGE)
        return "--manifest is for files that are compiled already";
    if (o->file && file_kind_of(o->file) != FILE_TILE && (o->defines.n || o->target))
        return o->target ? "--target is for .tile files: others are for one target"
                         : "-D is for .tile files";
    if (o->rows && !o->check)
        return "--rows belongs to --check";
    if (o->level && o->file && file_kind_of(o->file) != FILE_TILE)
        return "--level is for .tile files: other IR is of one level";
    if (o->timeline && o->script)
        return "--timeline is for one run: not for --script";
    if (o->timeline && o->order.given && o->order.kind != TCC_INTERPRET_TIMED)
        return "--timeline has an order of its own: timed";
    if (o->timeline && o->level && o->level != TCC_EMIT_TIR)
        return "--timeline is of the target level";
    if (o->timeline_cta && !o->timeline)
        return "--timeline-cta belongs to --timeline";
    if (o->script || interp)
        return NULL;
    return o->order.given ? "--order belongs to --on=interp"
           : o->timeline  ? "--timeline belongs to --on=interp"
           : o->threads   ? "--threads belongs to --on=interp"
           : o->level     ? "--level belongs to --on=interp"
                          : NULL;
}

static void inherit(options *line, const options *script)
{
    line->device = script->device;
    if (!line->on)
        line->on = script->on;
    if (line->on != script->on)
        return;
    if (!line->order.given)
        line->order = script->order;
    if (!line->threads)
        line->threads = script->threads;
    if (!line->level && line->file && file_kind_of(line->file) == FILE_TILE)
        line->level = script->level;
}

bool options_parse(int argc, char **argv, const options *script, options *out, char *why,
                   size_t why_size)
{
    *out = (options){.repeat = 1,
                     .seed = 1,
                     .order = {.kind = TCC_INTERPRET_RANDOM, .seed = 1},
                     .timeout_s = 120};
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-') {
            if (!take_option(argc, argv, &i, out, why, why_size))
                return false;
        } else if (out->file) {
            snprintf(why, why_size, "two files: '%s' and '%s'", out->file, argv[i]);
            return false;
        } else {
            out->file = argv[i];
        }
    }
    if (out->help || out->version)
        return true;
    const char *wrong = NULL, *option, *twice = given_twice(out, &option);
    if (twice) {
        snprintf(why, why_size, "%s: '%s' is given twice", option, twice);
        return false;
    }
    if (script && out->device_given)
        wrong = "--device is for the command line of the script";
    if (script && out->tune)
        wrong = "--tune is for one run: not for --script";
    if (script)
        inherit(out, script);
    if (!wrong)
        wrong = contradiction(out);
    if (wrong)
        snprintf(why, why_size, "%s", wrong);
    return !wrong;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char options_usage[] =
    "usage: tcc-run FILE.tile|FILE.ptx --size M=4096,N=4096,K=4096 [options]\n"
    "       tcc-run --script FILE [--table OUT.md]\n"
    "\n"
    "Compiles (.tile) or loads (.ptx) a kernel and launches it on random standard-normal data.\n"
    "\n"
    "  --size NAME=N,...      extents of symbolic dimensions; those of inputs may be left out\n"
    "  --kernel NAME          the kernel; needed when the file has several\n"
    "  --input NAME=FILE.npy  an input's or inout's data; may be repeated\n"
    "  --output NAME=FILE.npy where an output's data goes; may be repeated\n"
    "  --set NAME=X,...       scalar parameters; 1 when not given\n"
    "  --check[=TOL]          compare with a reference in double precision; the relative error\n"
    "                         norm may be TOL (f16 1e-3, bf16 8e-3, f32 1e-5 + 2e-8 K)\n"
    "  --rows N               compare N sampled rows of the outputs (all that 2e9 terms allow)\n"
    "  --bench                time it: median over rounds, warm, inputs out of the L2 cache\n"
    "  --against=cublas       time cuBLASLt's plain product in turn with it\n"
    "  --against=cublas:relu_bias   the same with cuBLASLt's fused bias and relu\n"
    "  --misalign NAME,...    put these tensors one element off their alignment\n"
    "  --variant ENTRY        fail unless this variant runs\n"
    "  --seed N               of the random data (1)\n"
    "  --target NAME          of .tile files (sm_90a)\n"
    "  -D NAME=N              bind a dimension or constant of a .tile file\n"
    "  --script FILE          run every line of FILE as a command line of tcc-run\n"
    "  --table FILE           write a script's results as a Markdown table\n"
    "  --timeout S            seconds a line of a script may take (120)\n"
    "  --help, --version\n"
    "\n"
    "Exit status: 0 success, 1 bad program or failed check, 2 bad usage, 3 no GPU or driver.\n";

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
    for (size_t i = list->n; i--;) /* the last one counts */
        if (!strcmp(list->pairs[i].name, name))
            return &list->pairs[i];
    return NULL;
}

/* ---- options ---------------------------------------------------------------------------- */

static bool set_text(const char **out, const char *value)
{
    *out = value;
    return *value;
}

static bool set_integer(const char *value, int64_t min, int64_t max, int64_t *out)
{
    option_pair pair;
    bool ok = parse_extent(value, &pair) && pair.extent >= min && pair.extent <= max;
    *out = ok ? pair.extent : 0;
    return ok;
}

/* Each takes the option's value: "" where it has none. False for a bad value. */
static bool on_size(options *o, const char *v) { return add_pairs(&o->sizes, v, parse_size); }
static bool on_set(options *o, const char *v) { return add_pairs(&o->scalars, v, parse_number); }
static bool on_input(options *o, const char *v) { return add_pair(&o->inputs, v, parse_path); }
static bool on_output(options *o, const char *v) { return add_pair(&o->outputs, v, parse_path); }
static bool on_define(options *o, const char *v) { return add_pair(&o->defines, v, parse_extent); }
static bool on_misalign(options *o, const char *v) { return add_pairs(&o->misaligned, v, NULL); }
static bool on_kernel(options *o, const char *v) { return set_text(&o->kernel, v); }
static bool on_target(options *o, const char *v) { return set_text(&o->target, v); }
static bool on_variant(options *o, const char *v) { return set_text(&o->variant, v); }
static bool on_script(options *o, const char *v) { return set_text(&o->script, v); }
static bool on_table(options *o, const char *v) { return set_text(&o->table, v); }
static bool on_rows(options *o, const char *v) { return set_integer(v, 1, INT64_MAX, &o->rows); }

static bool on_seed(options *o, const char *v)
{
    int64_t seed;
    bool ok = set_integer(v, 0, INT64_MAX, &seed);
    o->seed = (uint64_t)seed;
    return ok;
}

static bool on_timeout(options *o, const char *v)
{
    int64_t seconds;
    bool ok = set_integer(v, 1, 86400, &seconds);
    o->timeout_s = (int)seconds;
    return ok;
}

static bool on_check(options *o, const char *v)
{
    option_pair tolerance = {.number = 0};
    bool ok = !*v || (parse_number(v, &tolerance) && tolerance.number > 0);
    o->check = true;
    o->tolerance = tolerance.number;
    return ok;
}

static bool on_against(options *o, const char *v)
{
    o->bench = true;
    o->against = !strcmp(v, "cublas:relu_bias") ? AGAINST_RELU_BIAS : AGAINST_PRODUCT;
    return o->against == AGAINST_RELU_BIAS || !strcmp(v, "cublas");
}

static bool on_bench(options *o, const char *v)
{
    o->bench = true;
    return !*v;
}

static bool on_help(options *o, const char *v)
{
    o->help = true;
    return !*v;
}

static bool on_version(options *o, const char *v)
{
    o->version = true;
    return !*v;
}

static const struct {
    const char *name;
    enum { NEEDS_VALUE, MAY_HAVE_VALUE } value; /* as the next word, or after '=' only */
    bool (*set)(options *, const char *);
} table[] = {
    {"--size", NEEDS_VALUE, on_size},         {"--set", NEEDS_VALUE, on_set},
    {"--input", NEEDS_VALUE, on_input},       {"--output", NEEDS_VALUE, on_output},
    {"--misalign", NEEDS_VALUE, on_misalign}, {"--kernel", NEEDS_VALUE, on_kernel},
    {"--target", NEEDS_VALUE, on_target},     {"--variant", NEEDS_VALUE, on_variant},
    {"--script", NEEDS_VALUE, on_script},     {"--table", NEEDS_VALUE, on_table},
    {"--rows", NEEDS_VALUE, on_rows},         {"--seed", NEEDS_VALUE, on_seed},
    {"--timeout", NEEDS_VALUE, on_timeout},   {"--against", NEEDS_VALUE, on_against},
    {"-D", NEEDS_VALUE, on_define},           {"--check", MAY_HAVE_VALUE, on_check},
    {"--bench", MAY_HAVE_VALUE, on_bench},    {"--help", MAY_HAVE_VALUE, on_help},
    {"--version", MAY_HAVE_VALUE, on_version},
};

enum { N_OPTIONS = sizeof table / sizeof table[0] };

/* The option of a word such as --size or --size=…; -1 for none. */
static int find_option(const char *word)
{
    size_t len = strcspn(word, "=");
    for (int i = 0; i < N_OPTIONS; i++)
        if (strlen(table[i].name) == len && !memcmp(table[i].name, word, len))
            return i;
    return -1;
}

/* Takes the option at argv[*i], with the next word where that is its value. */
static bool take_option(int argc, char **argv, int *i, options *out, char *why, size_t why_size)
{
    const char *word = argv[*i], *value = NULL;
    int option = -1;
    if (!strncmp(word, "-D", 2) && word[2] && word[2] != '=') { /* -DNAME=N */
        option = find_option("-D");
        value = word + 2;
    } else {
        option = find_option(word);
        const char *equals = strchr(word, '=');
        value = equals ? equals + 1 : NULL;
    }
    if (option < 0) {
        snprintf(why, why_size, "unknown option '%s'", word);
        return false;
    }
    if (!value && table[option].value == NEEDS_VALUE && *i + 1 < argc)
        value = argv[++*i];
    if (!value && table[option].value == NEEDS_VALUE) {
        snprintf(why, why_size, "%s needs a value", word);
        return false;
    }
    if (!table[option].set(out, value ? value : "")) {
        snprintf(why, why_size, "bad value of %s: '%s'", table[option].name, value ? value : "");
        return false;
    }
    return true;
}

bool options_parse(int argc, char **argv, options *out, char *why, size_t why_size)
{
    *out = (options){.target = "sm_90a", .seed = 1, .timeout_s = 120};
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
    const char *wrong = !out->file == !out->script ? "either a file or --script FILE is needed"
                        : out->table && !out->script ? "--table belongs to --script"
                        : NULL;
    if (wrong)
        snprintf(why, why_size, "%s", wrong);
    return !wrong;
}

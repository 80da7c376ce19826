/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/options.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/option_table.h"

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

/* Adds one NAME=VALUE, or only NAME if there is no parser. */
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

/* What an option does, and the field that it sets, at `offset` in options. */
typedef struct setting {
    bool (*set)(options *o, const struct setting *option, const char *value);
    size_t offset;
    value_parser *parse; /* of lists */
} setting;

static void *field(options *o, const setting *option)
{
    return (char *)o + option->offset;
}

/* Each takes the option's value, "" where it has none, and is false for a bad one. */
static bool set_pairs(options *o, const setting *option, const char *value)
{
    return add_pairs(field(o, option), value, option->parse);
}

static bool set_pair(options *o, const setting *option, const char *value)
{
    return add_pair(field(o, option), value, option->parse);
}

static bool set_text(options *o, const setting *option, const char *value)
{
    *(const char **)field(o, option) = value;
    return *value;
}

static bool set_flag(options *o, const setting *option, const char *value)
{
    *(bool *)field(o, option) = true;
    return !*value;
}

static bool set_number(options *o, const setting *option, const char *value)
{
    option_pair pair;
    bool ok = parse_extent(value, &pair) && pair.extent >= 1;
    *(int64_t *)field(o, option) = ok ? pair.extent : 1;
    return ok;
}

static bool set_count(options *o, const setting *option, const char *value)
{
    option_pair pair = {.extent = 0};
    bool ok = parse_size(value, &pair);
    *(int64_t *)field(o, option) = pair.extent;
    return ok;
}

static bool set_check(options *o, const setting *option, const char *value)
{
    (void)option;
    option_pair tolerance = {.number = 0};
    bool ok = !*value || (parse_number(value, &tolerance) && tolerance.number > 0);
    o->check = true;
    o->tolerance = tolerance.number;
    return ok;
}

static bool set_against(options *o, const setting *option, const char *value)
{
    (void)option;
    o->bench = true;
    o->against = !strcmp(value, "cublas:relu_bias") ? AGAINST_RELU_BIAS : AGAINST_PRODUCT;
    return o->against == AGAINST_RELU_BIAS || !strcmp(value, "cublas");
}

static bool set_shard(options *o, const setting *option, const char *value)
{
    (void)option;
    char end;
    unsigned shard;
    if (sscanf(value, "%u/%u%c", &shard, &o->n_shards, &end) != 2 || !shard || shard > o->n_shards)
        return false;
    o->shard = shard - 1;
    return true;
}

static bool set_on(options *o, const setting *option, const char *value)
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

static bool set_device(options *o, const setting *option, const char *value)
{
    option_pair device = {.extent = 0};
    (void)option;
    bool ok = parse_size(value, &device) && device.extent <= INT_MAX;
    o->device = device.extent;
    o->device_given = true;
    return ok;
}

static bool set_order(options *o, const setting *option, const char *value)
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

static bool set_level(options *o, const setting *option, const char *value)
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

static bool set_color(options *o, const setting *option, const char *value)
{
    (void)option;
    return color_named(value, &o->color);
}

static bool set_diagnostics(options *o, const setting *option, const char *value)
{
    (void)option;
    return diagnostics_named(value, &o->json);
}

#define FIELD(name) offsetof(options, name)

static const setting settings[LAST_OPTION] = {
    [OPTION_RUN_SIZE] = {set_pairs, FIELD(sizes), parse_size},
    [OPTION_RUN_SET] = {set_pairs, FIELD(scalars), parse_number},
    [OPTION_RUN_MISALIGN] = {set_pairs, FIELD(misaligned), NULL},
    [OPTION_RUN_INPUT] = {set_pair, FIELD(inputs), parse_path},
    [OPTION_RUN_OUTPUT] = {set_pair, FIELD(outputs), parse_path},
    [OPTION_RUN_DEFINE] = {set_pair, FIELD(defines), parse_extent},
    [OPTION_RUN_KERNEL] = {set_text, FIELD(kernel), NULL},
    [OPTION_RUN_TARGET] = {set_text, FIELD(target), NULL},
    [OPTION_RUN_MANIFEST] = {set_text, FIELD(manifest), NULL},
    [OPTION_RUN_VARIANT] = {set_text, FIELD(variant), NULL},
    [OPTION_RUN_SCRIPT] = {set_text, FIELD(script), NULL},
    [OPTION_RUN_TABLE] = {set_text, FIELD(table), NULL},
    [OPTION_RUN_TIMELINE] = {set_text, FIELD(timeline), NULL},
    [OPTION_RUN_TIMELINE_CTA] = {set_count, FIELD(timeline_cta), NULL},
    [OPTION_RUN_ROWS] = {set_number, FIELD(rows), NULL},
    [OPTION_RUN_REPEAT] = {set_number, FIELD(repeat), NULL},
    [OPTION_RUN_SEED] = {set_number, FIELD(seed), NULL},
    [OPTION_RUN_TIMEOUT] = {set_number, FIELD(timeout_s), NULL},
    [OPTION_RUN_THREADS] = {set_number, FIELD(threads), NULL},
    [OPTION_RUN_TUNE_SECONDS] = {set_number, FIELD(tune_seconds), NULL},
    [OPTION_RUN_TUNE_RESULTS] = {set_text, FIELD(tune_results), NULL},
    [OPTION_RUN_SHARD] = {set_shard, 0, NULL},
    [OPTION_RUN_ON] = {set_on, 0, NULL},
    [OPTION_RUN_DEVICE] = {set_device, 0, NULL},
    [OPTION_RUN_ORDER] = {set_order, 0, NULL},
    [OPTION_RUN_LEVEL] = {set_level, 0, NULL},
    [OPTION_RUN_CHECK] = {set_check, 0, NULL},
    [OPTION_RUN_AGAINST] = {set_against, 0, NULL},
    [OPTION_RUN_BENCH] = {set_flag, FIELD(bench), NULL},
    [OPTION_RUN_TUNE] = {set_flag, FIELD(tune), NULL},
    [OPTION_RUN_COLOR] = {set_color, 0, NULL},
    [OPTION_RUN_DIAGNOSTICS] = {set_diagnostics, 0, NULL},
    [OPTION_RUN_HELP] = {set_flag, FIELD(help), NULL},
    [OPTION_RUN_VERSION] = {set_flag, FIELD(version), NULL},
};

/* How messages name an option. */
static const char *name_of(const option_row *row, char *room, size_t size)
{
    if (row->name)
        snprintf(room, size, "--%s", row->name);
    else
        snprintf(room, size, "-%c", row->letter);
    return room;
}

/* Writes the error if option_next returns OPTION_NO_VALUE or OPTION_UNKNOWN. */
static bool tell_bad_option(const option_reader *r, int end, char *why, size_t why_size)
{
    char name[64];
    const option_row *row = optopt >= FIRST_OPTION ? option_row_of(optopt) : NULL;
    const char *equals = strchr(r->word, '=');
    if (end == OPTION_NO_VALUE && row)
        snprintf(why, why_size, "%s needs a value", name_of(row, name, sizeof name));
    else if (end == OPTION_NO_VALUE)
        snprintf(why, why_size, "-%c needs a value", optopt);
    else if (row)
        snprintf(why, why_size, "bad value of %s: '%s'", name_of(row, name, sizeof name), equals ? equals + 1 : "");
    else if (optopt)
        snprintf(why, why_size, "unknown option '-%c'", optopt);
    else
        snprintf(why, why_size, "unknown option '%s'", r->word);
    return false;
}

/* Takes an option or an operand. */
static bool take_option(options *out, int id, const char *value, char *why, size_t why_size)
{
    char name[64];
    if (id == OPTION_OPERAND) {
        if (out->file)
            snprintf(why, why_size, "two files: '%s' and '%s'", out->file, value);
        bool first = !out->file;
        out->file = value;
        return first;
    }
    const setting *option = &settings[id];
    if (option->set(out, option, value ? value : ""))
        return true;
    snprintf(why, why_size, "bad value of %s: '%s'", name_of(option_row_of(id), name, sizeof name), value ? value : "");
    return false;
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

/* A name that a list has twice, NULL when there is none; `option` gets which list. */
static const char *given_twice(options *o, char *option, size_t size)
{
    for (int id = FIRST_OPTION; id < LAST_OPTION; id++) {
        if (settings[id].set != set_pairs && settings[id].set != set_pair)
            continue;
        const option_list *list = field(o, &settings[id]);
        name_of(option_row_of(id), option, size);
        for (size_t j = 0; j < list->n; j++)
            if (option_find(list, list->pairs[j].name) != &list->pairs[j])
                return list->pairs[j].name;
    }
    return NULL;
}

/* The first conflict between options; NULL: none. A script may have options for its lines. */
static const char *contradiction(const options *o)
{
    bool interp = o->on == ON_INTERP;
    if (!o->file == !o->script)
        return "either a file or --script FILE is needed";
    if (o->table && !o->script)
        return "--table belongs to --script";
    if (o->bench && interp)
        return o->against ? "--against needs a GPU: timings on the interpreter are meaningless"
                          : "--bench needs a GPU: timings on the interpreter are meaningless";
    if (o->tune && interp)
        return "--tune needs a GPU: timings on the interpreter are meaningless";
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
    if (o->timeline && !interp && (o->bench || o->tune || o->repeat > 1))
        return "--timeline slows a kernel down: not with --bench, --tune or --repeat";
    if (o->timeline && !interp && (o->on == ON_HIP || (o->file && file_kind_of(o->file) != FILE_TILE)))
        return "--timeline is for .tile files on CUDA and on the interpreter";
    if (o->timeline_cta && !o->timeline)
        return "--timeline-cta belongs to --timeline";
    if (o->script || interp)
        return NULL;
    return o->order.given ? "--order belongs to --on=interp"
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
    option_reader reader;
    const char *value;
    option_reader_begin(&reader, TOOL_RUN, true);
    for (int id; (id = option_next(&reader, argc, argv, &value)) != OPTION_END;) {
        if (id == OPTION_UNKNOWN || id == OPTION_NO_VALUE)
            return tell_bad_option(&reader, id, why, why_size);
        if (!take_option(out, id, value, why, why_size))
            return false;
    }
    if (out->help || out->version)
        return true;
    char option[64];
    const char *wrong = NULL, *twice = given_twice(out, option, sizeof option);
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

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/shared/option_table.h"

#include <string.h>

const tool_row tool_rows[N_TOOLS] = {
#define TOOL(id, name, summary, operands, usage, text, status)                                                         \
    [TOOL_##id] = {name, summary, operands, usage, text, status},
#include "tools/shared/options.def"
};

enum { NO_ID, TOOL_BEGINS = -1 };

/* A tool's rows follow one that names it. */
static const struct {
    tool_id tool;
    option_row row;
} rows[] = {
#define TOOL(tool_, ...) {TOOL_##tool_, {.id = TOOL_BEGINS}},
#define GROUP(title) {0, {.id = NO_ID, .doc = (title)}},
#define OPTION(id, letter, name, value, offers, words, doc)                                                            \
    {0, {OPTION_##id, letter, name, value, OFFER_##offers, words, doc}},
#include "tools/shared/options.def"
};

enum { N_ROWS = sizeof rows / sizeof *rows };

const option_row *option_row_at(tool_id tool, size_t i)
{
    size_t at = 0;
    while (rows[at].row.id != TOOL_BEGINS || rows[at].tool != tool)
        at++;
    for (at++; at < N_ROWS && rows[at].row.id != TOOL_BEGINS; at++)
        if (!i--)
            return &rows[at].row;
    return NULL;
}

const option_row *option_row_of(int id)
{
    for (size_t i = 0; i < N_ROWS; i++)
        if (rows[i].row.id == id)
            return &rows[i].row;
    return NULL;
}

option_takes option_value_kind(const option_row *row)
{
    return !*row->value ? TAKES_NONE : *row->value == '[' ? TAKES_OPTIONAL : TAKES_VALUE;
}

const option_row *option_row_named(tool_id tool, const char *word)
{
    size_t n = strcspn(word, "=");
    const option_row *row;
    for (size_t i = 0; (row = option_row_at(tool, i)); i++) {
        bool is_letter = row->letter && word[0] == '-' && word[1] == row->letter && !word[2];
        if (is_letter)
            return row;
        if (row->name && n == strlen(row->name) + 2 && !strncmp(word, "--", 2) && !memcmp(word + 2, row->name, n - 2))
            return row;
    }
    return NULL;
}

/* ---- reading ---------------------------------------------------------------------------- */

void option_reader_begin(option_reader *r, tool_id tool, bool strict)
{
    static const int arguments[] = {
        [TAKES_NONE] = no_argument, [TAKES_OPTIONAL] = optional_argument, [TAKES_VALUE] = required_argument};
    struct option *next = r->longs;
    char *letter = r->letters;
    *letter++ = '-'; /* operands come where they stand */
    if (strict)
        *letter++ = ':';
    const option_row *row;
    for (size_t i = 0; (row = option_row_at(tool, i)); i++) {
        option_takes takes = row->id ? option_value_kind(row) : TAKES_NONE;
        if (row->letter) {
            *letter++ = row->letter;
            if (takes == TAKES_VALUE)
                *letter++ = ':';
        }
        if (row->name)
            *next++ = (struct option){row->name, arguments[takes], NULL, row->id};
    }
    *letter = 0;
    *next = (struct option){0};
    r->tool = tool;
    r->at_end = false;
    r->strict = strict;
    optind = 0; /* from the beginning */
}

/* The option for getopt's result, which is a letter if it was given in this way. */
static int id_of(const option_reader *r, int c)
{
    const option_row *row;
    for (size_t i = 0; c > OPTION_OPERAND && c < FIRST_OPTION && (row = option_row_at(r->tool, i)); i++)
        if (row->letter == c)
            return row->id;
    return c;
}

int option_next(option_reader *r, int argc, char **argv, const char **value)
{
    opterr = !r->strict;
    r->word = argv[optind ? optind : 1];
    int c = r->at_end ? -1 : getopt_long(argc, argv, r->letters, r->longs, NULL);
    r->at_end = c == -1; /* getopt would begin again with what is behind "--" */
    *value = c == -1 ? NULL : optarg;
    if (c == -1 && optind < argc) {
        *value = argv[optind++];
        return OPTION_OPERAND;
    }
    bool is_short_of_one = c >= FIRST_OPTION && !option_row_named(r->tool, r->word);
    if (is_short_of_one && r->strict) {
        optopt = 0;
        return OPTION_UNKNOWN;
    }
    return id_of(r, c);
}

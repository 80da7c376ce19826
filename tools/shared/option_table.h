/* option_table: options.def, and how a command line is read by it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_OPTION_TABLE_H
#define TCC_TOOLS_OPTION_TABLE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>

typedef enum tool_id {
#define TOOL(id, name, summary, operands, usage, text, status) TOOL_##id,
#include "tools/shared/options.def"
    N_TOOLS
} tool_id;

typedef struct tool_row {
    const char *name, *summary, *operands, *usage, *text, *status;
} tool_row;

extern const tool_row tool_rows[N_TOOLS];

/* The results of option_next. Those of getopt itself are below 256. */
enum option_id {
    OPTION_END = -1,
    OPTION_OPERAND = 1,      /* a word that is none */
    OPTION_NO_VALUE = ':',   /* of an option that needs one */
    OPTION_UNKNOWN = '?',    /* an option of another name, or with a value that it does not take */
    FIRST_OPTION = 256,
#define OPTION(id, letter, name, value, offers, words, doc) OPTION_##id,
#include "tools/shared/options.def"
    LAST_OPTION
};

typedef enum option_offers {
    OFFER_NOTHING,
    OFFER_FILES,
    OFFER_WORDS,
    OFFER_TARGETS,
    OFFER_LIST_OF_TARGETS,
    OFFER_PASSES,
    OFFER_LIST_OF_PASSES
} option_offers;

/* An option, or the title of a group of them, which has no id. */
typedef struct option_row {
    int id;
    char letter;
    const char *name, *value;
    option_offers offers;
    const char *words, *doc;
} option_row;

/* The i-th row of a tool; NULL past the last. */
const option_row *option_row_at(tool_id tool, size_t i);
/* The option of an id. */
const option_row *option_row_of(int id);

typedef enum option_takes { TAKES_NONE, TAKES_OPTIONAL, TAKES_VALUE } option_takes;

option_takes option_value_kind(const option_row *row);

/* One command line being read. Where it is strict, names are not shortened, and the caller says what is wrong. */
typedef struct option_reader {
    tool_id tool;
    struct option longs[LAST_OPTION - FIRST_OPTION];
    char letters[64];
    bool strict, at_end;
    const char *word; /* in which the last option was */
} option_reader;

/* There is one command line at a time: getopt keeps where it is. */
void option_reader_begin(option_reader *r, tool_id tool, bool strict);
/* The id of the next option, or one of the ends above; *value gets its value, or the operand; else NULL. */
int option_next(option_reader *r, int argc, char **argv, const char **value);

/* The option that a word names in full, with or without a value after '='; NULL: not an option of this
 * tool. */
const option_row *option_row_named(tool_id tool, const char *word);

/* What --help shows. */
void print_help(tool_id tool);

#endif

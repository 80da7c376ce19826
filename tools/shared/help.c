/* help: what --help prints, from the table of options.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <string.h>

#include "tools/shared/command_line.h"
#include "tools/shared/option_table.h"

enum { WIDTH = 95, INDENT = 24 };

/* Prints a text from a column on, in lines of at most WIDTH; further lines are indented. */
static void print_wrapped(const char *text, int column, int indent)
{
    const char *space = "";
    for (size_t n; *text; text += n) {
        n = strcspn(text, " \n");
        if (column + (int)(strlen(space) + n) > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
            space = "";
        }
        column += printf("%s%.*s", space, (int)n, text);
        space = " ";
        if (text[n] == '\n') {
            putchar('\n');
            column = 0;
            space = "";
        }
        n += text[n] != 0;
    }
    putchar('\n');
}

static void print_option(const option_row *row)
{
    char left[64];
    int n = row->letter && row->name ? snprintf(left, sizeof left, "  -%c, --%s%s", row->letter, row->name, row->value)
            : row->letter            ? snprintf(left, sizeof left, "  -%c%s", row->letter, row->value)
                                     : snprintf(left, sizeof left, "  --%s%s", row->name, row->value);
    printf("%s", left);
    if (n >= INDENT) {
        putchar('\n');
        n = 0;
    }
    printf("%*s", INDENT - n, "");
    print_wrapped(row->doc, INDENT, INDENT);
}

/* The first word of each line is the program's name, without a suffix. */
static void print_usage(const char *usage)
{
    for (const char *prefix = "usage: "; *usage; prefix = "       ") {
        size_t n = strcspn(usage, "\n");
        size_t name = strcspn(usage, " ");
        printf("%s%s%.*s\n", prefix, program_name, (int)(n - name), usage + name);
        usage += n + (usage[n] != 0);
    }
}

void print_help(tool_id tool)
{
    const tool_row *t = &tool_rows[tool];
    char status[512];
    print_usage(t->usage);
    putchar('\n');
    print_wrapped(t->text, 0, 0);
    const option_row *row;
    for (size_t i = 0; (row = option_row_at(tool, i)); i++)
        if (row->id) {
            print_option(row);
        } else {
            char title[256];
            snprintf(title, sizeof title, "%s:", row->doc);
            putchar('\n');
            print_wrapped(title, 0, 0);
        }
    putchar('\n');
    snprintf(status, sizeof status, "Exit status: %s", t->status);
    print_wrapped(status, 0, 0);
}

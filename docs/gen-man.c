/* gen-man TOOL [SUFFIX]: prints the manual page of a tool, from tools/shared/options.def.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <tcc/tcc.h>

#include "tools/shared/option_table.h"

/* Prints n bytes so that roff shows them as they are. */
static void print_bytes(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        switch (text[i]) {
        case '\\': fputs("\\e", stdout); break;
        case '-': fputs("\\-", stdout); break;
        case '\'': fputs("\\(aq", stdout); break;
        case '~': fputs("\\(ti", stdout); break;
        case '^': fputs("\\(ha", stdout); break;
        case '\n': fputs("\n.PP\n", stdout); break;
        default: putchar(text[i]);
        }
}

/* A line of text; one that begins with a dot is not a request. */
static void print_text(const char *text)
{
    if (*text == '.')
        fputs("\\&", stdout);
    print_bytes(text, strlen(text));
    putchar('\n');
}

/* The value as --help has it: what is to be replaced is slanted. */
static void print_value(const char *value)
{
    size_t before = strspn(value, " [="), n = strlen(value), after = n && value[n - 1] == ']' && *value == '[';
    printf("%.*s", (int)before, value);
    if (before < n) {
        fputs("\\fI", stdout);
        print_bytes(value + before, n - before - after);
        printf("\\fR%s", after ? "]" : "");
    }
}

static void print_option(const option_row *row)
{
    puts(".TP");
    if (row->letter)
        printf("\\fB\\-%c\\fR", row->letter);
    if (row->letter && row->name)
        fputs(", ", stdout);
    if (row->name) {
        fputs("\\fB\\-\\-", stdout);
        print_bytes(row->name, strlen(row->name));
        fputs("\\fR", stdout);
    }
    print_value(row->value);
    putchar('\n');
    print_text(row->doc);
}

/* A program's name with the suffix behind its first word, and '-' for the space of a subcommand. */
static void print_name(const char *name, const char *suffix, bool is_page)
{
    size_t first = strcspn(name, " ");
    print_bytes(name, first);
    print_bytes(suffix, strlen(suffix));
    if (name[first])
        fputs(is_page ? "\\-" : " ", stdout);
    print_bytes(name + first + (name[first] != 0), strlen(name + first + (name[first] != 0)));
}

static void print_usage(const char *usage, const char *name, const char *suffix)
{
    puts(".SH SYNOPSIS\n.nf");
    while (*usage) {
        size_t n = strcspn(usage, "\n"), skip = strlen(name);
        print_name(name, suffix, false);
        print_bytes(usage + skip, n - skip);
        putchar('\n');
        usage += n + (usage[n] != 0);
    }
    puts(".fi");
}

static void print_page(tool_id tool, const char *suffix)
{
    const tool_row *t = &tool_rows[tool];
    fputs(".TH \"", stdout);
    print_name(t->name, suffix, true);
    printf("\" 1 \"\" \"tcc %s\" \"User Commands\"\n.SH NAME\n", tcc_version());
    print_name(t->name, suffix, true);
    fputs(" \\- ", stdout);
    print_text(t->summary);
    print_usage(t->usage, t->name, suffix);
    puts(".SH DESCRIPTION");
    print_text(t->text);
    puts(".SH OPTIONS");
    const option_row *row;
    for (size_t i = 0; (row = option_row_at(tool, i)); i++)
        if (row->id) {
            print_option(row);
        } else {
            fputs(".SS \"", stdout);
            print_bytes(row->doc, strlen(row->doc));
            puts("\"");
        }
    puts(".SH \"EXIT STATUS\"");
    printf("%c", toupper((unsigned char)*t->status));
    print_bytes(t->status + 1, strlen(t->status + 1));
    puts("\n.SH \"SEE ALSO\"");
    for (int i = 0, n = 0; i < N_TOOLS; i++)
        if (i != (int)tool) {
            fputs(n++ ? ",\n.BR " : ".BR ", stdout);
            print_name(tool_rows[i].name, suffix, true);
            fputs(" (1)", stdout);
        }
    putchar('\n');
}

int main(int argc, char **argv)
{
    for (int i = 0; argc > 1 && i < N_TOOLS; i++)
        if (!strcmp(tool_rows[i].name, argv[1])) {
            print_page((tool_id)i, argc > 2 ? argv[2] : "");
            return ferror(stdout) || fflush(stdout);
        }
    fputs("usage: gen-man TOOL [SUFFIX]\n", stderr);
    return 2;
}

/* gen-completions bash|zsh|fish TOOL [SUFFIX]: prints a shell's completion of a tool and its subcommands, from
 * tools/shared/options.def. Names of targets and passes are those of the library.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <string.h>

#include <tcc/tcc.h>

#include "tools/shared/option_table.h"

/* ---- what all have ------------------------------------------------------------------------ */

static bool is_list(const option_row *row)
{
    return row->offers == OFFER_LIST_OF_TARGETS || row->offers == OFFER_LIST_OF_PASSES;
}

/* Whether words are offered as the value. */
static bool has_words(const option_row *row)
{
    return row->offers != OFFER_NOTHING && row->offers != OFFER_FILES;
}

/* The words that are offered, a space between them, with a backslash before characters of `escaped`. */
static void print_words(const option_row *row, const char *escaped)
{
    bool targets = row->offers == OFFER_TARGETS || row->offers == OFFER_LIST_OF_TARGETS;
    bool passes = row->offers == OFFER_PASSES || row->offers == OFFER_LIST_OF_PASSES;
    const char *(*name)(size_t) = targets ? tcc_target_name : passes ? tcc_pass_name : NULL;
    const char *space = "";
    for (size_t i = 0; name && name(i); i++, space = " ")
        printf("%s%s", space, name(i));
    if (*row->words)
        fputs(space, stdout);
    for (const char *c = row->words; *c; c++)
        printf("%s%c", strchr(escaped, *c) ? "\\" : "", *c);
}

/* What is said beside an option: its first clause. Marks of quoting are escaped. */
static void print_brief(const char *doc, const char *escaped)
{
    static const char *const ends[] = {"; ", " (", ": "};
    size_t n = strlen(doc);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *end = strstr(doc, ends[i]);
        if (end && (size_t)(end - doc) < n)
            n = (size_t)(end - doc);
    }
    for (size_t i = 0; i < n; i++)
        if (doc[i] == '\'')
            fputs("'\\''", stdout);
        else
            printf("%s%c", strchr(escaped, doc[i]) ? "\\" : "", doc[i]);
}

/* A tool's name as that of a function. */
static void print_function(const char *name)
{
    putchar('_');
    for (; *name; name++)
        putchar(*name == ' ' || *name == '-' ? '_' : *name);
}

/* The subcommand that a tool is of another; NULL: none. */
static const char *subcommand_of(tool_id tool, tool_id of)
{
    size_t n = strlen(tool_rows[of].name);
    const char *name = tool_rows[tool].name;
    return !strncmp(name, tool_rows[of].name, n) && name[n] == ' ' ? name + n + 1 : NULL;
}

static void print_subcommands(tool_id of)
{
    const char *space = "";
    for (int i = 0; i < N_TOOLS; i++)
        if (subcommand_of((tool_id)i, of)) {
            printf("%s%s", space, subcommand_of((tool_id)i, of));
            space = " ";
        }
}

/* Calls a function for the suffixes of a list. */
static void for_suffixes(const char *suffixes, void (*print)(int n, const char *suffix))
{
    for (size_t n; *suffixes; suffixes += n + (suffixes[n] != 0)) {
        n = strcspn(suffixes, " ");
        print((int)n, suffixes);
    }
}

/* ---- bash --------------------------------------------------------------------------------- */

static void print_bash_option(const option_row *row)
{
    if (!row->id || option_value_kind(row) != TAKES_VALUE) /* one that may be left out is not in the next word */
        return;
    fputs("    ", stdout);
    if (row->letter)
        printf("-%c%s", row->letter, row->name ? "|" : "");
    if (row->name)
        printf("--%s", row->name);
    printf(") kind=%s list=%s words='", has_words(row) ? "words" : row->offers == OFFER_FILES ? "files" : "none",
           is_list(row) ? "," : "");
    print_words(row, "");
    puts("' ;;");
}

static void print_bash_tool(tool_id tool)
{
    const option_row *row;
    print_function(tool_rows[tool].name);
    puts("()\n{");
    for (int i = 0; i < N_TOOLS; i++)
        if (subcommand_of((tool_id)i, tool)) {
            printf("    [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[1]} == %s ]] && { ", subcommand_of((tool_id)i, tool));
            print_function(tool_rows[i].name);
            puts("; return; }");
        }
    puts("    local cur=${COMP_WORDS[COMP_CWORD]} option=${COMP_WORDS[COMP_CWORD-1]} before= kind= list= words=\n"
         "    if [[ $cur == --*=* ]]; then\n"
         "        option=${cur%%=*} before=$option= cur=${cur#*=}\n"
         "    elif [[ $cur == = ]]; then\n"
         "        cur=\n"
         "    elif [[ $option == = ]]; then\n"
         "        option=${COMP_WORDS[COMP_CWORD-2]}\n"
         "    fi\n"
         "    case $option in");
    for (size_t i = 0; (row = option_row_at(tool, i)); i++)
        print_bash_option(row);
    puts("    esac\n"
         "    if [[ ! $kind && $cur == -* ]]; then");
    fputs("        kind=words words='", stdout);
    for (size_t i = 0; (row = option_row_at(tool, i)); i++) {
        if (row->letter)
            printf("-%c ", row->letter);
        if (row->name)
            printf("--%s ", row->name);
    }
    puts("'\n    elif [[ ! $kind ]]; then");
    printf("        kind=files words='%s'\n    fi\n    _tcc_reply\n", tool_rows[tool].operands);
    fputs("    [[ $COMP_CWORD -ne 1 ]] || COMPREPLY+=($(compgen -W '", stdout);
    print_subcommands(tool);
    puts("' -- \"$cur\"))\n}\n");
}

static void print_bash(tool_id tool, const char *suffix)
{
    puts("# What is offered: $words, or files of these suffixes; of a list only its last part is completed.\n"
         "_tcc_reply()\n"
         "{\n"
         "    local part=$cur suffix\n"
         "    COMPREPLY=()\n"
         "    if [[ $list && $cur == *,* ]]; then\n"
         "        before+=${cur%,*}, part=${cur##*,}\n"
         "    fi\n"
         "    if [[ $kind == words ]]; then\n"
         "        COMPREPLY=($(compgen -P \"$before\" -W \"$words\" -- \"$part\"))\n"
         "    elif [[ $kind == files ]]; then\n"
         "        local IFS=$'\\n'\n"
         "        compopt -o filenames 2>/dev/null\n"
         "        [[ $words ]] || COMPREPLY=($(compgen -P \"$before\" -f -- \"$part\"))\n"
         "        [[ ! $words ]] || COMPREPLY=($(compgen -P \"$before\" -d -- \"$part\"))\n"
         "        while read -r -d ' ' suffix; do\n"
         "            COMPREPLY+=($(compgen -P \"$before\" -f -X \"!*.$suffix\" -- \"$part\"))\n"
         "        done <<<\"$words \"\n"
         "    fi\n"
         "}\n");
    for (int i = 0; i < N_TOOLS; i++)
        if (i == (int)tool || subcommand_of((tool_id)i, tool))
            print_bash_tool((tool_id)i);
    fputs("complete -F ", stdout);
    print_function(tool_rows[tool].name);
    printf(" %s%s\n", tool_rows[tool].name, suffix);
}

/* ---- zsh ---------------------------------------------------------------------------------- */

static void print_zsh_suffix(int n, const char *suffix)
{
    printf(" -g \"*.%.*s\"", n, suffix);
}

/* What a value is called and what completes it. */
static void print_zsh_value(const option_row *row)
{
    static const char *const colons[] = {[TAKES_NONE] = "", [TAKES_OPTIONAL] = "::", [TAKES_VALUE] = ":"};
    option_takes takes = option_value_kind(row);
    if (takes == TAKES_NONE)
        return;
    fputs(colons[takes], stdout);
    for (const char *p = row->value + strspn(row->value, " [="); *p && *p != ']'; p++)
        printf("%s%c", *p == ':' || *p == '[' ? "\\" : "", *p);
    putchar(':');
    if (row->offers == OFFER_FILES) {
        fputs("_files", stdout);
        for_suffixes(row->words, print_zsh_suffix);
    } else if (has_words(row)) {
        fputs(is_list(row) ? "_values -s , value " : "(", stdout);
        print_words(row, ":");
        fputs(is_list(row) ? "" : ")", stdout);
    }
}

static void print_zsh_option(const option_row *row)
{
    static const char *const signs[] = {[TAKES_NONE] = "", [TAKES_OPTIONAL] = "=-", [TAKES_VALUE] = "="};
    if (!row->id)
        return;
    fputs(" \\\n        ", stdout);
    if (row->letter && row->name)
        printf("'(-%c --%s)'{-%c,--%s}'", row->letter, row->name, row->letter, row->name);
    else if (row->letter)
        printf("'*-%c%s", row->letter, *row->value ? "+" : "");
    else
        printf("'*--%s%s", row->name, signs[option_value_kind(row)]);
    putchar('[');
    print_brief(row->doc, "[]:");
    putchar(']');
    print_zsh_value(row);
    putchar('\'');
}

static void print_zsh_tool(tool_id tool)
{
    const option_row *row;
    print_function(tool_rows[tool].name);
    puts("() {");
    bool has_subcommands = false;
    for (int i = 0; i < N_TOOLS; i++)
        if (subcommand_of((tool_id)i, tool)) {
            has_subcommands = true;
            printf("    if (( CURRENT > 2 )) && [[ $words[2] == %s ]]; then\n        shift words; (( CURRENT-- ))\n        ",
                   subcommand_of((tool_id)i, tool));
            print_function(tool_rows[i].name);
            puts("\n        return\n    fi");
        }
    if (has_subcommands) {
        fputs("    (( CURRENT != 2 )) || compadd -- ", stdout);
        print_subcommands(tool);
        putchar('\n');
    }
    fputs("    _arguments", stdout);
    for (size_t i = 0; (row = option_row_at(tool, i)); i++)
        print_zsh_option(row);
    fputs(" \\\n        '*:file:_files", stdout);
    for_suffixes(tool_rows[tool].operands, print_zsh_suffix);
    puts("'\n}\n");
}

static void print_zsh(tool_id tool, const char *suffix)
{
    printf("#compdef %s%s\n\n", tool_rows[tool].name, suffix);
    for (int i = 0; i < N_TOOLS; i++)
        if (i == (int)tool || subcommand_of((tool_id)i, tool))
            print_zsh_tool((tool_id)i);
    print_function(tool_rows[tool].name);
    puts(" \"$@\"");
}

/* ---- fish --------------------------------------------------------------------------------- */

static void print_fish_suffix(int n, const char *suffix)
{
    printf("__fish_complete_suffix .%.*s; ", n, suffix);
}

static void print_fish_files(const char *suffixes)
{
    if (!*suffixes) {
        fputs(" -F", stdout);
        return;
    }
    fputs(" -f -a '(", stdout);
    for_suffixes(suffixes, print_fish_suffix);
    fputs(")'", stdout);
}

/* The beginning of a line: of which command, and where it holds. */
static void print_fish_command(tool_id tool, tool_id main_tool, const char *suffix)
{
    const char *sub = subcommand_of(tool, main_tool);
    printf("complete -c %s%s", tool_rows[main_tool].name, suffix);
    if (sub)
        printf(" -n '__fish_seen_subcommand_from %s'", sub);
    else
        for (int i = 0, n = 0; i < N_TOOLS; i++)
            if (subcommand_of((tool_id)i, main_tool) && !n++) {
                fputs(" -n 'not __fish_seen_subcommand_from ", stdout);
                print_subcommands(main_tool);
                putchar('\'');
            }
}

static void print_fish_option(const option_row *row)
{
    if (row->letter)
        printf(" -s %c", row->letter);
    if (row->name)
        printf(" -l %s", row->name);
    if (option_value_kind(row) == TAKES_VALUE)
        fputs(" -r", stdout);
    if (row->offers == OFFER_FILES) {
        print_fish_files(row->words);
    } else if (*row->value) {
        fputs(" -f", stdout);
        if (has_words(row)) {
            fputs(is_list(row) ? " -a '(__fish_append , " : " -a '", stdout);
            print_words(row, "");
            fputs(is_list(row) ? ")'" : "'", stdout);
        }
    }
    fputs(" -d '", stdout);
    print_brief(row->doc, "");
    puts("'");
}

static void print_fish(tool_id main_tool, const char *suffix)
{
    for (int i = 0; i < N_TOOLS; i++) {
        tool_id tool = (tool_id)i;
        if (tool != main_tool && !subcommand_of(tool, main_tool))
            continue;
        const option_row *row;
        if (tool != main_tool)
            printf("complete -c %s%s -n __fish_is_first_arg -f -a %s -d '%s'\n", tool_rows[main_tool].name, suffix,
                   subcommand_of(tool, main_tool), tool_rows[tool].summary);
        print_fish_command(tool, main_tool, suffix);
        print_fish_files(tool_rows[tool].operands);
        putchar('\n');
        for (size_t r = 0; (row = option_row_at(tool, r)); r++)
            if (row->id) {
                print_fish_command(tool, main_tool, suffix);
                print_fish_option(row);
            }
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(tool_id tool, const char *suffix);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t s = 0; argc > 2 && s < sizeof shells / sizeof *shells; s++)
        for (int i = 0; i < N_TOOLS; i++)
            if (!strcmp(shells[s].name, argv[1]) && !strcmp(tool_rows[i].name, argv[2])) {
                shells[s].print((tool_id)i, argc > 3 ? argv[3] : "");
                return ferror(stdout) || fflush(stdout);
            }
    fputs("usage: gen-completions bash|zsh|fish TOOL [SUFFIX]\n", stderr);
    return 2;
}

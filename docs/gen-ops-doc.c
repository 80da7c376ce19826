/* gen-ops-doc: writes docs/ops.md, from ops.def, types.def and the verifier's rules.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <string.h>

#include "ir/ir.h"
#include "ir/rules.h"

static const char head[] =
    "# Types and ops of the IR\n"
    "\n"
    "Written by `gen-ops-doc` from `ir/ops.def`, `ir/types.def` and the rules of the verifier: to\n"
    "change this file, change those and run `cmake --build build --target docs`. [ir.md](ir.md)\n"
    "tells how ops, values, regions and levels go together.\n"
    "\n"
    "## Types\n"
    "\n"
    "Elements: ";

static const char *const level_names[] = {"tensor", "tile", "async", "target"};

static void print_types(void)
{
    static const char *const docs[] = {
#define TCC_KIND(id, doc) doc,
#include "ir/types.def"
    };
    for (int i = 0; i < TCC_SCALAR_COUNT; i++)
        printf("%s`%s`", i ? ", " : "", tcc_scalar_name((tcc_scalar)i));
    puts(".\n\n| kind | |\n|---|---|");
    for (int i = 0; i < TCC_KIND_COUNT; i++)
        printf("| `%s` | %s |\n", tcc_kind_name((tcc_kind)i), docs[i]);
    puts(
        "\nBelow, `int` stands for any integer element, `float` for any float, `number` for either "
        "and\n`bits` for an integer or `i1`.");
}

/* "tile or vec"; for all that elementwise ops take: "any kind". */
static void print_kinds(unsigned kinds)
{
    enum {
        ELEMENTWISE =
            1 << TCC_KIND_scalar | 1 << TCC_KIND_field | 1 << TCC_KIND_tile | 1 << TCC_KIND_vec
    };
    if (kinds == ELEMENTWISE) {
        printf("any kind");
        return;
    }
    const char *separator = "";
    for (int k = 0; k < TCC_KIND_COUNT; k++)
        if (kinds >> k & 1) {
            printf("%s%s", separator, tcc_kind_name((tcc_kind)k));
            separator = " or ";
        }
}

/* Takes the next word of an element rule; "_" when there is none. */
static const char *next_word(const char **rule, size_t *n)
{
    const char *word = *rule && **rule && strncmp(*rule, "->", 2) != 0 ? *rule : "_";
    *n = strcspn(word, " ");
    if (word == *rule) {
        *rule += *n;
        *rule += strspn(*rule, " ");
    }
    return word;
}

/* One line for each operand or result. */
static void print_values(const tcc_operand_info *values, const char **rule)
{
    for (; values->name; values++) {
        size_t n;
        const char *word = next_word(rule, &n);
        printf("- `%s`: ", values->name);
        if (values->kinds == 1 << TCC_KIND_scalar && *word != '_') {
            printf("%.*s\n", (int)n, word);
            continue;
        }
        print_kinds(values->kinds);
        if (*word != '_')
            printf(" of %.*s", (int)n, word);
        putchar('\n');
    }
}

static void print_attr(tcc_opcode code, const tcc_attr_info *a)
{
    static const char *const kinds[] = {"an integer", "a float", "a string", "a list",
                                        "a constant"};
    const tcc_attr_rule *rule = tcc_attr_rule_find(code, a->name);
    printf("- `%s`%s: ", a->name, a->required ? "" : ", optional");
    if (rule && rule->words) {
        for (const char *w = rule->words; *w; w++)
            printf(*w == ' ' ? ", " : "%c", *w);
    } else if (rule) {
        if (rule->factor > 1)
            printf("a multiple of %lld, ", (long long)rule->factor);
        printf("%lld", (long long)rule->min);
        printf(rule->max == INT32_MAX ? " or more" : " to %lld", (long long)rule->max);
    } else {
        printf("%s", kinds[a->kind]);
    }
    putchar('\n');
}

static void print_synopsis(const tcc_op_info *info)
{
    printf("    ");
    for (const tcc_operand_info *r = info->results; r->name; r++)
        printf("%s%%%s", r == info->results ? "" : ", ", r->name);
    if (info->flags & TCC_RESULTS_ANY)
        printf("…");
    printf("%s%s", info->n_results || info->flags & TCC_RESULTS_ANY ? " = " : "", info->name);
    for (const tcc_operand_info *o = info->operands; o->name; o++)
        printf("%s%%%s", o == info->operands ? " " : ", ", o->name);
    if (info->flags & TCC_VARIADIC)
        printf(info->n_operands ? ", …" : " …");
    for (const tcc_attr_info *a = info->attrs; a->name; a++)
        printf("%s%s%s", a == info->attrs ? " {" : ", ", a->name, a->required ? "" : "?");
    printf(info->attrs->name ? "}" : "");
    if (info->n_results || info->flags & TCC_RESULTS_ANY)
        printf(" : types");
    for (unsigned i = 0; i < info->n_regions; i++)
        printf(" { … }");
    puts("\n");
}

static void print_effects(unsigned effects)
{
    static const char *const docs[] = {
#define EFFECT(id, doc) doc,
#include "ir/effects.def"
    };
    const char *separator = "- ";
    for (int i = 0; i < TCC_EFFECT_COUNT; i++)
        if (effects >> i & 1) {
            printf("%s%s", separator, docs[i]);
            separator = "; ";
        }
    if (effects)
        puts("");
}

static void print_op(tcc_opcode code)
{
    const tcc_op_info *info = tcc_op_info_get(code);
    const char *rule = tcc_element_rule(code), *separator = "";
    printf("\n### %s\n\n", info->name);
    print_synopsis(info);
    printf("%s.\n\n", info->doc);
    print_values(info->operands, &rule);
    if (info->flags & TCC_VARIADIC) {
        size_t n;
        const char *word = next_word(&rule, &n);
        if (*word == '*' && word[1] != '_')
            printf("- the further operands: %.*s\n", (int)n - 1, word + 1);
    }
    if (rule && !strncmp(rule, "->", 2))
        rule += 2 + strspn(rule + 2, " ");
    print_values(info->results, &rule);
    for (const tcc_attr_info *a = info->attrs; a->name; a++)
        print_attr(code, a);
    printf("- levels: ");
    for (int l = 0; l < 4; l++)
        if (info->levels >> l & 1) {
            printf("%s%s", separator, level_names[l]);
            separator = ", ";
        }
    puts(info->flags & TCC_PURE ? "; pure" : "");
    print_effects(info->effects);
}

int main(void)
{
    fputs(head, stdout);
    print_types();
    size_t family = 0;
    const char *last = "";
    for (int i = 0; i < TCC_OP_COUNT; i++) {
        const char *name = tcc_op_info_get((tcc_opcode)i)->name;
        family = strcspn(name, ".");
        if (strncmp(name, last, family + 1) != 0)
            printf("\n## %.*s%s\n", (int)family, name, name[family] ? ".*" : "");
        last = name;
        print_op((tcc_opcode)i);
    }
    return fflush(stdout) != 0;
}

/* tcc --list-targets: the targets, with what their instructions multiply.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <string.h>

#include <tcc/tcc.h>

#include "tools/shared/command_line.h"
#include "tools/tcc/commands.h"

/* Whether an earlier product than the i-th has the same of the given properties; NULL: any. */
static bool is_known(const char *target, size_t i, const char *instr, const char *sum, const char *a)
{
    tcc_target_product p;
    for (size_t j = 0; j < i && tcc_target_product_at(target, j, &p); j++)
        if (!strcmp(p.instr, instr) && (!sum || !strcmp(p.sum, sum)) && (!a || !strcmp(p.a, a)))
            return true;
    return false;
}

/* "f16 bf16 in f32": operands whose products an instruction sums in one type. */
static void list_operands(const char *target, const char *instr, const char *sum)
{
    tcc_target_product p;
    for (size_t i = 0; tcc_target_product_at(target, i, &p); i++)
        if (!strcmp(p.instr, instr) && !strcmp(p.sum, sum) && !is_known(target, i, instr, sum, p.a))
            printf("%s ", p.a);
    printf("in %s", sum);
}

static void list_sums(const char *target, const char *instr)
{
    tcc_target_product p;
    const char *separator = "";
    for (size_t i = 0; tcc_target_product_at(target, i, &p); i++) {
        if (strcmp(p.instr, instr) || is_known(target, i, instr, p.sum, NULL))
            continue;
        fputs(separator, stdout);
        list_operands(target, instr, p.sum);
        separator = ", ";
    }
}

static void list_target(const char *target)
{
    tcc_target_product p;
    const char *name = target;
    for (size_t i = 0; tcc_target_product_at(target, i, &p); i++) {
        if (is_known(target, i, p.instr, NULL, NULL))
            continue;
        printf("%-8s  %-5s  ", name, p.instr);
        list_sums(target, p.instr);
        puts("");
        name = "";
    }
    if (*name)
        puts(name);
}

void list_targets(const char *form)
{
    if (form && strcmp(form, "names"))
        bad_usage("--list-targets=%s: expected names, or nothing", form);
    for (size_t i = 0; tcc_target_name(i); i++) {
        if (form)
            puts(tcc_target_name(i));
        else
            list_target(tcc_target_name(i));
    }
}

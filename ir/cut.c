/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/cut.h"

#include <string.h>

static const struct {
    const char *name, *why;
} cuts[TCC_CUT_COUNT] = {
#define CUT(id, why) {#id, why},
#include "ir/cuts.def"
};

void tcc_cut_set(tcc_func *step, tcc_cut cut)
{
    tcc_attr_set_str(step->ir, &step->attrs, "cut", cuts[cut].name);
}

bool tcc_cut_is(const tcc_func *step, tcc_cut cut)
{
    return tcc_attr_is(&step->attrs, "cut", cuts[cut].name);
}

const char *tcc_cut_meaning(tcc_cut cut)
{
    return cuts[cut].why;
}

const char *tcc_cut_why(const tcc_func *step)
{
    const char *name = tcc_attr_str(&step->attrs, "cut", NULL);
    for (size_t i = 0; name && i < TCC_CUT_COUNT; i++)
        if (!strcmp(name, cuts[i].name))
            return cuts[i].why;
    return name;
}

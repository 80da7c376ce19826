/* equivalent: mutants that are not wrong, each with the reason.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "tests/mutants/mutants.h"

static bool is_kind(const site *s, const char *name)
{
    return !strcmp(s->kind->name, name);
}

static bool is_prefetch(const site *s)
{
    return is_kind(s, "drop prefetch.tensormap");
}

const reason reasons[] = {
    {"a prefetch has no effect that a program can see", is_prefetch},
};
const unsigned n_reasons = sizeof reasons / sizeof *reasons;

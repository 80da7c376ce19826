/* The targets that LLVM IR can be made for. To add one: a row here, and its folder.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "codegen/lower.h"
#include "codegen/nvptx/nvptx.h"

static const tcc_codegen_target targets[] = {
    {"sm_90a", "nvptx64-nvidia-cuda", "sm_90a", "+ptx80", tcc_nvptx_initialize,
     tcc_nvptx_begin_kernel, tcc_nvptx_lower_op, tcc_nvptx_math},
};

const tcc_codegen_target *tcc_codegen_target_find(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i];
    return NULL;
}

void tcc_codegen_targets_initialize(void)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        targets[i].initialize();
}

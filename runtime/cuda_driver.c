/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/cuda_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(CUtensorMap) == 128 && alignof(CUtensorMap) == 64, "CUtensorMap's ABI");
_Static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "cuLaunchKernelEx's ABI");

static const struct {
    const char *symbol;
    size_t offset; /* of the function pointer in tcc_cuda */
} entry_points[] = {
#define ROW(member, symbol, params) {symbol, offsetof(tcc_cuda, member)},
    TCC_CUDA_ENTRY_POINTS(ROW)
#undef ROW
};

bool tcc_cuda_open(tcc_cuda *cuda, char *why, size_t why_size)
{
    *cuda = (tcc_cuda){0};
    /* Never unloaded: the driver keeps threads and exit handlers of its own. */
    cuda->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!cuda->library) {
        snprintf(why, why_size, "%s", dlerror());
        return false;
    }
    for (size_t i = 0; i < sizeof entry_points / sizeof entry_points[0]; i++) {
        void *found = dlsym(cuda->library, entry_points[i].symbol);
        if (!found) {
            snprintf(why, why_size, "libcuda.so.1 lacks %s: the driver of CUDA 12.0 or later is "
                     "needed", entry_points[i].symbol);
            tcc_cuda_close(cuda);
            return false;
        }
        memcpy((char *)cuda + entry_points[i].offset, &found, sizeof found);
    }
    return true;
}

void tcc_cuda_close(tcc_cuda *cuda)
{
    if (cuda->library)
        dlclose(cuda->library);
    *cuda = (tcc_cuda){0};
}

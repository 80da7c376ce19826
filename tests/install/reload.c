/* Loads libtcc, compiles and unloads it, again and again: the heap does not grow by more than what a
 * compilation leaves in LLVM's tables.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <tcc/tcc.h>

enum { WARM = 8, CYCLES = 32 };

static int cycle(const char *path)
{
    static const char source[] = "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
                                 "{ C[m, n] = sum(k) A[m, k] * B[n, k]; }\n"
                                 "schedule f for sm_90a { tile m 64, n 8, k 64; stages 1; }\n";
    tcc_status (*compile)(tcc_context *, const char *, const char *, tcc_module **);
    void (*destroy)(tcc_module *);
    tcc_module *mod;
    void *tcc = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!tcc)
        return puts(dlerror());
    *(void **)&compile = dlsym(tcc, "tcc_compile");
    *(void **)&destroy = dlsym(tcc, "tcc_module_destroy");
    if (!compile || !destroy || compile(NULL, source, "sm_90a", &mod))
        return puts("no compilation");
    destroy(mod);
    return dlclose(tcc);
}

int main(int argc, char **argv)
{
    size_t before = 0;
    for (int i = 0; i < CYCLES; i++) {
        if (argc != 2 || cycle(argv[1]))
            return 1;
        if (i == WARM)
            before = mallinfo2().uordblks;
    }
    size_t grown = mallinfo2().uordblks - before;
    printf("%zu bytes a cycle\n", grown / (CYCLES - 1 - WARM));
    return grown / (CYCLES - 1 - WARM) > 4096;
}

/* A host with an LLVM of its own, whose handlers, set before a compilation, still hear its errors
 * after it. So it is with a libtcc that has LLVM inside.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <setjmp.h>
#include <stdio.h>
#include <tcc/tcc.h>

#include "provoke.h"

static jmp_buf back;

static void on_fatal_error(const char *reason)
{
    printf("the host heard: %s\n", reason);
    longjmp(back, 1);
}

int main(void)
{
    static const char source[] = "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
                                 "{ C[m, n] = sum(k) A[m, k] * B[n, k]; }\n";
    tcc_module *mod;
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    LLVMInstallFatalErrorHandler(on_fatal_error);
    if (tcc_compile(NULL, source, "sm_90a", &mod))
        return 1;
    tcc_module_destroy(mod);
    if (setjmp(back))
        return 0;
    provoke_llvm();
    return 1;
}

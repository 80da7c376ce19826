/* A host with an LLVM of its own, whose handlers, set before a compilation, still hear its errors
 * after it. So it is with a libtcc that has LLVM inside.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <llvm-c/Core.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tcc/tcc.h>

static jmp_buf back;

static void on_fatal_error(const char *reason)
{
    printf("the host heard: %s\n", reason);
    longjmp(back, 1);
}

/* An intrinsic of another target's cannot be selected, which is fatal. */
static void provoke(void)
{
    static const char ir[] = "declare i32 @llvm.amdgcn.workitem.id.x()\n"
                             "define void @f(ptr %p) {\n"
                             "  %x = call i32 @llvm.amdgcn.workitem.id.x()\n"
                             "  store i32 %x, ptr %p\n"
                             "  ret void\n"
                             "}\n";
    LLVMContextRef c = LLVMContextCreate();
    LLVMModuleRef m;
    LLVMTargetRef t;
    LLVMMemoryBufferRef out;
    char *text;
    LLVMMemoryBufferRef in = LLVMCreateMemoryBufferWithMemoryRangeCopy(ir, sizeof ir - 1, "f");
    if (LLVMParseIRInContext(c, in, &m, &text) ||
        LLVMGetTargetFromTriple("nvptx64-nvidia-cuda", &t, &text))
        return;
    LLVMTargetMachineRef machine =
        LLVMCreateTargetMachine(t, "nvptx64-nvidia-cuda", "sm_90a", "", LLVMCodeGenLevelDefault,
                                LLVMRelocDefault, LLVMCodeModelDefault);
    LLVMTargetMachineEmitToMemoryBuffer(machine, m, LLVMAssemblyFile, &text, &out);
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
    provoke();
    return 1;
}

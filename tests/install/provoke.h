/* provoke: a module that LLVM dies of.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_PROVOKE_H
#define TCC_TESTS_PROVOKE_H

#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/TargetMachine.h>

/* An intrinsic of another target's cannot be selected on NVPTX, which is fatal. */
static void provoke_llvm(void)
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

#endif

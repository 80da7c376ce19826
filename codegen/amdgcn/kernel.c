/* What makes a function a kernel of RDNA's: calling convention, attributes, LDS. LLVM's "User Guide
 * for AMDGPU Backend" has the attributes' meaning.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <string.h>

#include "codegen/amdgcn/amdgcn.h"

enum { AMDGPU_KERNEL = 91 /* llvm::CallingConv::AMDGPU_KERNEL */ };
enum { ADDRSPACE_LDS = 3, LDS_ALIGN_BYTES = 16 };

void tcc_amdgcn_initialize(void)
{
    /* Strength reduction of straight-line code and scheduling after register allocation take a
     * quarter of LLVM's time, the propagation of copies a thirtieth. The loop of a product has its
     * order already, and has the same instructions with and without them. Broken into elements, the
     * fragments that a loop carries take a fifth of the time to put together again, and cost the
     * loop an instruction. LLVM has no other way to say so. */
    static const char *const options[] = {"tcc", "-amdgpu-scalar-ir-passes=0", "-disable-post-ra", "-disable-copyprop",
                                          "-amdgpu-codegenprepare-break-large-phis=0"};
    LLVMParseCommandLineOptions(sizeof options / sizeof *options, options, "");
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUAsmPrinter();
    LLVMInitializeAMDGPUAsmParser(); /* an object with inline asm needs it */
}

void tcc_amdgcn_attach(tcc_lower *l, LLVMValueRef to, const char *kind, size_t n,
                       LLVMMetadataRef *nodes)
{
    unsigned id = LLVMGetMDKindIDInContext(l->context, kind, (unsigned)strlen(kind));
    LLVMMetadataRef tuple = LLVMMDNodeInContext2(l->context, nodes, n);
    if (LLVMIsAFunction(to))
        LLVMGlobalSetMetadata(to, id, tuple);
    else
        LLVMSetMetadata(to, id, LLVMMetadataAsValue(l->context, tuple));
}

/* The launch may have no other number of threads: thread numbers are then known to be less, and
 * one register holds nothing but them. */
static void set_block(tcc_lower *l, int64_t threads)
{
    LLVMMetadataRef sizes[3];
    for (int i = 0; i < 3; i++)
        sizes[i] = LLVMValueAsMetadata(tcc_lower_i32(l, i ? 1 : threads));
    tcc_amdgcn_attach(l, l->func, "reqd_work_group_size", 3, sizes);
    tcc_lower_add_string_attribute(
        l, TCC_LOWER_FUNC, "amdgpu-flat-work-group-size",
        tcc_arena_printf(l->arena, "%lld,%lld", (long long)threads, (long long)threads));
    tcc_lower_add_string_attribute(l, TCC_LOWER_FUNC, "uniform-work-group-size", "true");
}

/* A kernel takes its own arguments and x of its workgroup and thread, none of what LLVM could pass besides. LLVM's pass
 * amdgpu-attributor finds the same in a sixtieth of a compilation's time. */
static void take_nothing_hidden(tcc_lower *l)
{
    static const char *const names[] = {
        "cluster-id-x",    "cluster-id-y",   "cluster-id-z",       "completion-action", "default-queue",
        "dispatch-id",     "dispatch-ptr",   "flat-scratch-init",  "heap-ptr",          "hostcall-ptr",
        "implicitarg-ptr", "lds-kernel-id",  "multigrid-sync-arg", "queue-ptr",         "workgroup-id-y",
        "workgroup-id-z",  "workitem-id-y",  "workitem-id-z",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        tcc_lower_add_string_attribute(l, TCC_LOWER_FUNC, tcc_arena_printf(l->arena, "amdgpu-no-%s", names[i]), "");
}

/* The code object's metadata names the arguments. */
static void set_argument_names(tcc_lower *l, const tcc_func *func)
{
    size_t n = func->body->n_args;
    LLVMMetadataRef *names = TCC_NEW_ARRAY(l->arena, LLVMMetadataRef, n);
    for (size_t i = 0; i < n; i++) {
        const char *name = func->body->args[i]->name;
        names[i] = LLVMMDStringInContext2(l->context, name ? name : "", name ? strlen(name) : 0);
    }
    tcc_amdgcn_attach(l, l->func, "kernel_arg_name", n, names);
}

/* All that one workgroup has. It is the function's only one, and begins at address 0. */
static void create_lds(tcc_lower *l, const tcc_func *func, int64_t bytes)
{
    LLVMTypeRef type = LLVMArrayType2(l->types[TCC_i8], (uint64_t)bytes);
    l->lds = LLVMAddGlobalInAddressSpace(
        l->module, type, tcc_arena_printf(l->arena, "%s.lds", func->name), ADDRSPACE_LDS);
    LLVMSetLinkage(l->lds, LLVMInternalLinkage);
    LLVMSetInitializer(l->lds, LLVMGetPoison(type));
    LLVMSetAlignment(l->lds, LDS_ALIGN_BYTES);
}

/* Version 5 is what HIP 5 to 7 load; LLVM's default is newer. */
static void set_code_object_version(tcc_lower *l)
{
    static const char flag[] = "amdhsa_code_object_version";
    if (!LLVMGetModuleFlag(l->module, flag, sizeof flag - 1))
        LLVMAddModuleFlag(l->module, LLVMModuleFlagBehaviorError, flag, sizeof flag - 1,
                          LLVMValueAsMetadata(tcc_lower_i32(l, 500)));
}

void tcc_amdgcn_begin_kernel(tcc_lower *l, const tcc_func *func)
{
    int64_t waves = tcc_attr_int(&func->attrs, "waves_per_simd", 0);
    int64_t lds_bytes = tcc_attr_int(&func->attrs, "smem_bytes", 0);
    set_code_object_version(l);
    LLVMSetFunctionCallConv(l->func, AMDGPU_KERNEL);
    tcc_lower_add_enum_attribute(l, TCC_LOWER_FUNC, "nounwind", 0);
    tcc_lower_add_enum_attribute(l, TCC_LOWER_FUNC, "convergent", 0);
    take_nothing_hidden(l);
    if (tcc_attr_find(&func->attrs, "block"))
        set_block(l, tcc_attr_int(&func->attrs, "block", 1));
    if (waves)
        tcc_lower_add_string_attribute(
            l, TCC_LOWER_FUNC, "amdgpu-waves-per-eu",
            tcc_arena_printf(l->arena, "%lld,%lld", (long long)waves, (long long)waves));
    if (tcc_attr_int(&func->attrs, "wave", 32) == 64)
        tcc_lower_add_string_attribute(
            l, TCC_LOWER_FUNC, "target-features",
            tcc_arena_printf(l->arena, "%s,+wavefrontsize64", l->backend->features));
    for (size_t i = 0; i < func->body->n_args; i++) {
        tcc_lower_add_enum_attribute(l, (int)i + 1, "noundef", 0);
        if (func->body->args[i]->type->kind == TCC_KIND_ptr)
            tcc_lower_add_enum_attribute(l, (int)i + 1, "noalias", 0);
    }
    set_argument_names(l, func);
    if (lds_bytes)
        create_lds(l, func, lds_bytes);
}

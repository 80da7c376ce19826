/* What each vendor's GPUs want of LLVM: a row here, and a folder.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/amdgcn/amdgcn.h"
#include "codegen/lower.h"
#include "codegen/nvptx/nvptx.h"

static atomic_int nvptx_use[TCC_CODEGEN_OUTPUTS], amdgcn_use[TCC_CODEGEN_OUTPUTS];

/* What the lowering leaves to do: constants, common subexpressions, invariants out of loops. More
 * makes it worse on NVPTX: instcombine turns additions of addresses to `or`, which no load can
 * absorb. On a GEMM (tests/codegen/hopper_gemm.tir) these take 0.8 ms and give 296 machine
 * instructions, default<O2> 34 ms and 352. */
#define PASSES "function(early-cse,simplifycfg,loop-mssa(licm),simplifycfg)"

static const tcc_backend backend_NVIDIA = {
    .triple = "nvptx64-nvidia-cuda",
    .features = "+ptx%d",
    .version_for = tcc_nvptx_version,
    .passes = PASSES,
    .reserved = "_ WARP_SZ", /* PTX ISA, "Identifiers" and "Predefined Identifiers" */
    .lines = TCC_LINES_DIRECTIVES, /* with more, ptxas does not optimise (.target debug) */
    .use = nvptx_use,
    .initialize = tcc_nvptx_initialize,
    .begin_kernel = tcc_nvptx_begin_kernel,
    .is_own = tcc_nvptx_is_outer,
    .lower_op = tcc_nvptx_lower_op,
    .math = tcc_nvptx_math,
    .round_to_tf32 = tcc_nvptx_round_to_tf32,
    .fp8 = {TCC_NVPTX_FP8_AT_ONCE, tcc_nvptx_fp8_to_f32, tcc_nvptx_f32_to_fp8},
};

/* Our lowering leaves passes nothing to do that changes an instruction. On a GEMM (tests/codegen/rdna_gemm.tir) LLVM's
 * code generation takes 26 ms from vectors and 35 to 60 from elements, for the same instructions.
 * Without halves of registers as registers of their own (real-true16) kernels are as short, and
 * emulators compute them right. */
static const tcc_backend backend_AMD = {
    .triple = "amdgcn-amd-amdhsa",
    .features = "-real-true16",
    .lines = TCC_LINES_FULL,
    .vectors = true,
    .optional_codegen = true,
    .use = amdgcn_use,
    .initialize = tcc_amdgcn_initialize,
    .begin_kernel = tcc_amdgcn_begin_kernel,
    .lower_op = tcc_amdgcn_lower_op,
    .math = tcc_amdgcn_math,
    .fp8 = {TCC_AMDGCN_FP8_AT_ONCE, tcc_amdgcn_fp8_to_f32, tcc_amdgcn_f32_to_fp8},
    .warn_of_spills = tcc_amdgcn_warn_of_spills,
};

/* A vendor without one does not compile. */
static const tcc_backend *const backends[] = {
#define VENDOR(id) &backend_##id,
    TCC_VENDORS(VENDOR)
#undef VENDOR
};

const tcc_backend *tcc_backend_of(const tcc_target *target)
{
    return backends[tcc_target_vendor(target)];
}

void tcc_backends_initialize(void)
{
    for (size_t i = 0; i < sizeof backends / sizeof *backends; i++)
        backends[i]->initialize();
}

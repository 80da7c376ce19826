/* subjects: small kernels of every form that a pipeline takes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/mutants/mutants.h"

#define MATMUL(a, b, c, ma, mb, mc)                                                                \
    "kernel f(A: f16[" a "], B: f16[" b "]) -> (C: " c ")\n"                                       \
    "{\n    C[" mc "] = sum(k) A[" ma "] * B[" mb "];\n}\n"
#define PLAIN MATMUL("M, K", "K, N", "f16[M, N]", "m, k", "k, n", "m, n")
#define TRANSPOSED MATMUL("K, M", "N, K", "f32[M, N]", "k, m", "n, k", "m, n")
#define SCHEDULE(s) "schedule f for sm_90a { " s " }\n"

const subject subjects[] = {
    {.name = "warp",
     .source = PLAIN SCHEDULE("tile m 64, n 32, k 32; stages 2; producer warp; swizzle 64; "
                              "epilogue tma; group 2;"),
     .function = "f",
     .shapes = {{136, 40, 136, 0},
                {128, 32, 64, 0},
                {192, 96, 64, 0},
                {64, 32, 32, 0},
                {64, 36, 64, 0},
                {64, 32, 36, 0},
                {64, 32, 0, 0}}},
    {.name = "one stage",
     .source = PLAIN SCHEDULE("tile m 64, n 16, k 32; stages 1; producer none; swizzle 32; "
                              "epilogue interleaved; group 1;"),
     .function = "f",
     .shapes = {{72, 24, 136, 0},
                {80, 16, 32, 0},
                {130, 48, 96, 0},
                {64, 20, 32, 0},
                {64, 16, 36, 0},
                {64, 16, 0, 0}}},
    {.name = "no producer",
     .source = TRANSPOSED SCHEDULE("tile m 64, n 16, k 16; stages 3; producer none; swizzle none; "
                                   "epilogue tma; group 1;"),
     .function = "f",
     .shapes = {{72, 20, 136, 0},
                {64, 16, 16, 0},
                {64, 16, 32, 0},
                {128, 32, 48, 0},
                {68, 16, 16, 0},
                {64, 16, 20, 0},
                {64, 18, 16, 0},
                {64, 16, 0, 0}}},
    {.name = "warpgroup",
     .source =
         TRANSPOSED SCHEDULE("tile m 128, n 16, k 32; stages 3; warpgroups 2; "
                             "producer warpgroup; swizzle 64; epilogue interleaved; group 1;"),
     .function = "f",
     .shapes = {{136, 20, 264, 0},
                {144, 24, 32, 0},
                {128, 16, 64, 0},
                {132, 16, 32, 0},
                {128, 16, 36, 0},
                {128, 17, 32, 0},
                {128, 16, 0, 0}}},
    {.name = "three consumers",
     .source = PLAIN SCHEDULE("tile m 192, n 32, k 16; stages 4; warpgroups 3; producer warp; "
                              "swizzle 32; epilogue tma; group 1;"),
     .function = "f",
     .shapes = {{200, 40, 168, 0},
                {192, 32, 16, 0},
                {192, 32, 80, 0},
                {192, 36, 16, 0},
                {192, 32, 20, 0},
                {192, 32, 0, 0}}},
    {.name = "batch",
     .source = "kernel f(A: bf16[P, M, K], B: bf16[P, N, K], bias: f32[N], s: f32[M]) -> (C: f32[P, M, N])\n"
               "{\n    acc[p, m, n] = sum(k) A[p, m, k] * B[p, n, k];\n"
               "    C[p, m, n] = acc[p, m, n] * s[m] + bias[n];\n}\n" SCHEDULE(
                   "tile m 64, n 24, k 64; stages 2; producer warp; swizzle 128; epilogue tma; "
                   "group 1;"),
     .function = "f",
     .shapes = {{72, 28, 328, 2},
                {68, 32, 64, 1},
                {64, 40, 64, 1},
                {64, 26, 64, 1},
                {64, 24, 68, 1},
                {64, 24, 0, 1}}},
    {.name = "direct",
     .source = "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
               "{\n    C[m, n] = sum(k) A[m, k] * B[n, k];\n}\n" SCHEDULE(
                   "tile m 64, n 8, k 16; stages 2; producer warp; epilogue interleaved; group 1;"),
     .function = "f__direct",
     .shapes = {{70, 9, 88, 0},
                {64, 10, 16, 0},
                {64, 8, 16, 0},
                {72, 3, 32, 0},
                {64, 8, 20, 0},
                {64, 8, 0, 0}}},
    {.name = "generic",
     .source = "kernel f(A: f16[M, K], B: f16[K, 7]) -> (C: f16[M, 7])\n"
               "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n",
     .function = "f__generic",
     .without_guards = true,
     .shapes = {{70, 7, 130, 1}, {64, 7, 64, 1}, {1, 7, 0, 1}}},
    {.name = "padding",
     .source = MATMUL("M, K", "K, 16", "f32[M, 16]", "m, k", "k, n", "m, n") SCHEDULE(
         "tile m 64, n 16, k 16; stages 1; producer none; group 1;"),
     .function = "f__padded__A",
     .shapes = {{66, 16, 33, 0},
                {40, 16, 260, 0},
                {8, 16, 7, 0},
                {16, 16, 6, 0},
                {24, 16, 5, 0},
                {32, 16, 3, 0},
                {1, 16, 4, 0},
                {1, 16, 2, 0},
                {1, 16, 1, 0},
                {5, 16, 8, 0}}},
    {.name = "addition",
     .source = "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
               "{\n    C[m, n] = sum(k) A[m, k] * B[n, k];\n}\n" SCHEDULE(
                   "tile m 64, n 16, k 16; stages 1; producer none; epilogue interleaved; group 1; split 2;"),
     .function = "f__sum",
     .shapes = {{10, 136, 40, 0}, {8, 128, 16, 0}, {1, 8, 16, 0}, {9, 264, 24, 0}, {3, 6, 16, 0}}},
    {.name = "pointwise",
     .source = "kernel f(P: f16[K, M, N], bias: f32[N]) -> (C: f16[M, N])\n"
               "{\n    acc[m, n] = sum(k) P[k, m, n];\n    C[m, n] = acc[m, n] + bias[n];\n}\n" SCHEDULE(
                   "tile m 4, n 128;"),
     .function = "f",
     .shapes = {{6, 136, 3, 0}, {4, 128, 1, 0}, {1, 8, 2, 0}, {9, 264, 0, 0}}},
    {.name = "groups",
     .source = MATMUL("M, K", "N, K", "f32[M, N]", "m, k", "n, k", "m, n")
         "schedule f for sm_80 { tile m 32, n 16, k 16; stages 3; warps 2; }\n",
     .target = "sm_80",
     .function = "f",
     .only = (const char *const[]){"nvvm.cp.async", "nvvm.cp.async.commit_group", "nvvm.cp.async.wait_group",
                                   "nvvm.barrier", NULL},
     .shapes = {{34, 20, 136, 0}, {32, 16, 16, 0}, {32, 16, 32, 0}, {33, 18, 72, 0}, {32, 16, 20, 0}, {32, 16, 0, 0}}},
    {.name = "pingpong",
     .source = PLAIN SCHEDULE("tile m 64, n 16, k 16; stages 2; epilogue tma; group 1; persistent; "
                              "consumers pingpong;"),
     .function = "f",
     .only = (const char *const[]){"nvvm.mbarrier.init", "nvvm.mbarrier.wait",
                                   "nvvm.mbarrier.arrive", NULL},
     .shapes = {{192, 48, 40, 0}, {64, 16, 16, 0}, {136, 40, 64, 0}, {64, 16, 0, 0}}},
    {.name = "persistent",
     .file = "../interp/persistent.tir",
     .function = "persistent",
     .shapes = {{192, 32, 40, 0},
                {64, 16, 16, 0},
                {136, 40, 64, 0},
                {256, 64, 16, 0},
                {64, 20, 16, 0},
                {64, 16, 20, 0},
                {64, 16, 0, 0}}},
    {.name = "lanes",
     .file = "../interp/lanes.tir",
     .function = "lanes",
     .only = (const char *const[]){"nvvm.warp.sync", NULL},
     .shapes = {{192, 32, 40, 0},
                {64, 16, 16, 0},
                {136, 40, 64, 0},
                {256, 64, 16, 0},
                {64, 20, 16, 0},
                {64, 16, 0, 0}}},
    {.name = "registers",
     .file = "../interp/registers_a.tir",
     .function = "registers_a",
     .shapes = {{192, 32, 40, 0},
                {64, 16, 16, 0},
                {136, 40, 64, 0},
                {64, 20, 16, 0},
                {64, 16, 20, 0},
                {64, 16, 0, 0}}},
};
const unsigned n_subjects = sizeof subjects / sizeof *subjects;

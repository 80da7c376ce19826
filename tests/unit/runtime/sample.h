/* sample: the manifest of C[b,m,n] = alpha * sum(k) A[b,m,k] * B[k,n] + bias[n], as the runtime's
 * tests load it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RUNTIME_SAMPLE_H
#define TCC_TESTS_RUNTIME_SAMPLE_H

#define SAMPLE_ARGS                                                                                \
    "[{\"name\":\"A\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[\"B\",\"M\",\"K\"]},"             \
    "{\"name\":\"W\",\"role\":\"in\",\"type\":\"f16\",\"dims\":[\"K\",\"N\"]},"                    \
    "{\"name\":\"bias\",\"role\":\"in\",\"type\":\"f32\",\"dims\":[\"N\"]},"                       \
    "{\"name\":\"alpha\",\"role\":\"scalar\",\"type\":\"f16\"},"                                   \
    "{\"name\":\"C\",\"role\":\"out\",\"type\":\"f16\",\"dims\":[\"B\",\"M\",\"N\"]}]"

#define SAMPLE_TMA                                                                                 \
    "{\"name\":\"matmul\",\"cost\":[\"mul\",\"B\",\"M\",\"N\"],"                                   \
    "\"requires\":[{\"dim\":\"K\",\"min\":1},{\"arg\":\"A\",\"align\":16},"                        \
    "{\"arg\":\"W\",\"align\":16},{\"pitch\":[\"K\"],\"bytes_per_elem\":2,\"align\":16},"          \
    "{\"pitch\":[\"N\"],\"bytes_per_elem\":2,\"align\":16}],"                                      \
    "\"steps\":[{\"launch\":\"matmul\",\"grid\":[\"mul\",[\"ceildiv\",\"M\",128],"                 \
    "[\"ceildiv\",\"N\",256],\"B\"],"                                                              \
    "\"block\":384,\"smem_bytes\":197632,\"cluster\":1,"                                           \
    "\"params\":[{\"tensor_map\":{\"arg\":\"A\",\"type\":\"f16\",\"dims\":[\"K\",\"M\",\"B\"],"    \
    "\"strides\":[[\"K\"],[\"M\",\"K\"]],\"box\":[64,128,1],\"swizzle\":128}},"                    \
    "{\"tensor_map\":{\"arg\":\"W\",\"type\":\"f16\",\"dims\":[\"N\",\"K\"],"                      \
    "\"strides\":[[\"N\"]],\"box\":[32,64],\"swizzle\":64}},"                                      \
    "{\"pointer\":\"C\"},{\"dim\":\"M\"},{\"dim\":7},{\"scalar\":\"alpha\"}]}]}"

/* A variant with one launch: what it is called and requires, costs, and does. */
#define SAMPLE_LAUNCH(name, requires, cost, grid, rest)                                            \
    "{\"name\":\"" name                                                                            \
    "\",\"requires\":[" requires "],\"cost\":" cost ",\"steps\":[{\"launch\":\"" name              \
                                 "\",\"grid\":" grid ",\"cluster\":1," rest "}]}"

#define SAMPLE_GENERIC                                                                             \
    SAMPLE_LAUNCH("matmul__generic", "{\"dim\":\"B\",\"max\":65535}",                              \
                  "[\"mul\",2,\"B\",\"M\",\"N\"]",                                                 \
                  "[\"mul\",[\"ceildiv\",\"M\",64],[\"ceildiv\",\"N\",64],\"B\"]",                 \
                  "\"block\":128,\"smem_bytes\":1024,\"params\":[{\"pointer\":\"A\"},"             \
                  "{\"pointer\":\"W\"},{\"pointer\":\"C\"},{\"dim\":\"K\"}]")

#define SAMPLE_KERNEL(args, variants)                                                              \
    "{\"name\":\"matmul\",\"dims\":[\"B\",\"M\",\"K\",\"N\"],\"args\":" args ","                   \
    "\"flops\":[2,\"B\",\"M\",\"N\",\"K\"],\"reference\":\"\",\"variants\":[" variants "]}"

#define SAMPLE_MODULE_FOR(target, kernels)                                                         \
    "{\"tcc\":\"0.1.0\",\"manifest\":2,\"target\":\"" target "\",\"file\":\"matmul.tile\","        \
    "\"device\":{\"sms\":132},\"kernels\":[" kernels "]}"
#define SAMPLE_MODULE(kernels) SAMPLE_MODULE_FOR("sm_90a", kernels)

#define SAMPLE_MANIFEST SAMPLE_MODULE(SAMPLE_KERNEL(SAMPLE_ARGS, SAMPLE_TMA "," SAMPLE_GENERIC))

/* A module with one broken part. */
#define SAMPLE_WITH_ARGS(args) SAMPLE_MODULE(SAMPLE_KERNEL(args, SAMPLE_GENERIC))
#define SAMPLE_WITH_VARIANT(variant) SAMPLE_MODULE(SAMPLE_KERNEL(SAMPLE_ARGS, variant))

#endif

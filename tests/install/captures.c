/* Defines functions of a library that libtcc might call: whoever calls one is told of.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tcc/tcc.h>
#include <tcc/tcc_runtime.h>

#define CAPTURE(name)                                                                              \
    void *name(void);                                                                              \
    void *name(void)                                                                               \
    {                                                                                              \
        puts("captured: " #name);                                                                  \
        exit(1);                                                                                   \
    }
CAPTURE(cJSON_Parse)
CAPTURE(cJSON_ParseWithLengthOpts)
CAPTURE(cJSON_Delete)
CAPTURE(json_loads)
CAPTURE(json_tokener_parse)
CAPTURE(tcc_json_parse)
CAPTURE(tcc_arena_create)
CAPTURE(tcc_error)

int main(void)
{
    static const char source[] =
        "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
        "{ C[m, n] = sum(k) A[m, k] * B[n, k]; }\n";
    tcc_module *mod;
    tcc_program *prog;
    tcc_status status = tcc_compile(NULL, source, "sm_90a", &mod);
    if (!status)
        status = tcc_program_describe(tcc_module_manifest(mod), NULL, NULL, &prog);
    if (status)
        return 1;
    puts(tcc_kernel_name(tcc_program_kernel(prog, NULL)));
    tcc_program_destroy(prog);
    tcc_module_destroy(mod);
    return 0;
}

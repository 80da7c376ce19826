/* toolkit: programs of NVIDIA's CUDA toolkit, found and run in a subprocess, on files in a temporary
 * folder.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_NVPTX_TOOLKIT_H
#define TCC_CODEGEN_NVPTX_TOOLKIT_H

#include "support/diag.h"
#include "support/str.h"

/* Finds a program: as it is given or, where that is NULL, beside another one (NULL: none), in
 * CUDA_HOME/bin, PATH, or CUDA's default folder. False when it is nowhere, which is reported. */
bool tcc_tool_find(tcc_str *path, const char *name, const char *given, const char *beside, tcc_diag *diag);

/* Stand for the names of files among the arguments of a program. */
extern const char tcc_tool_input[], tcc_tool_output[];

typedef struct tcc_tool_run {
    const char *program;
    const char *const *args; /* at most TCC_TOOL_MOST_ARGS, and a NULL */
    const char *suffix;      /* of the input's name */
    const void *input;
    size_t size;
    bool prints; /* its output is what it prints instead of a file; its log then contains only errors */
} tcc_tool_run;
enum { TCC_TOOL_MOST_ARGS = 8 };

/* Runs a program to its end. Whether it did what it was to do shows in *output and *log, which stay empty
 * where it wrote nothing. Returns TCC_OK, TCC_ERR_TOOL when it cannot be started, TCC_ERR_IO when a file
 * cannot be written, both reported, or TCC_ERR_MEMORY. Thread-safe. */
tcc_status tcc_tool_execute(const tcc_tool_run *run, tcc_diag *diag, tcc_str *output, tcc_str *log);

#endif

/* session: one process's compiler context, GPUs and loaded programs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_SESSION_H
#define TCC_TOOLS_SESSION_H

#include <tcc/tcc_runtime.h>

#include "tools/tcc-run/cublaslt.h"
#include "tools/tcc-run/machine.h"

enum { MAX_MESSAGE = 512 };

typedef struct session {
    const machine *on; /* what the current case runs on */
    tcc_context *compiler;
    struct gpu {
        tcc_runtime *rt; /* NULL until a GPU is needed */
        tcc_device *dev;
    } gpus[2];                 /* by tcc_vendor */
    tcc_device *dev;           /* of the current case; NULL where it is none of them */
    struct loaded *programs;   /* newest first: a script runs a file many times */
    cublaslt *lt;              /* NULL until asked for */
    bool quiet;                /* diagnostics are kept, not shown */
    diagnostic_printer diagnostics;
    char message[MAX_MESSAGE]; /* of the first error since session_clear; "" for none */
} session;

/* Zero-initialise a session; this frees what it came to hold. */
void session_close(session *s);

/* Notes an error of the tool's own, shown like a diagnostic. */
void session_error(session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Where the library's diagnostics go; `user` is the session. */
void session_on_diagnostic(const tcc_diagnostic *d, void *user);

/* A module of a .tile text, for `target` unless the options set one, or of textual IR. */
tcc_status session_compile(session *s, const options *o, const char *target, tcc_emit emit,
                           const char *text, size_t size, tcc_module **out);
tcc_status session_parse(session *s, const options *o, const char *text, size_t size,
                         tcc_module **out);
/* The PTX or code object of textual target-level IR; tcc_text_destroy. */
tcc_status session_assemble(session *s, const options *o, tcc_emit emit, const char *text,
                            size_t size, char **out, size_t *out_size);

/* A whole file with a terminator, to be freed; NULL after reporting. */
char *session_read_file(session *s, const char *path, size_t *size);

/* The program of the options' file, compiled or loaded on first use. */
tcc_status session_program(session *s, const options *o, const program **out);

/* cuBLASLt, loaded on first use; NULL after reporting where there is none. */
cublaslt *session_cublaslt(session *s);

#endif

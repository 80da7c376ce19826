/* session: one process's compiler context, GPU and loaded programs.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_SESSION_H
#define TCC_TOOLS_SESSION_H

#include <tcc/tcc_runtime.h>

#include "tools/tcc-run/cublaslt.h"
#include "tools/tcc-run/options.h"

enum { MAX_MESSAGE = 512 };

typedef struct session {
    tcc_context *compiler;
    tcc_runtime *rt; /* NULL until a GPU is needed */
    tcc_device *dev;
    struct loaded *programs; /* newest first: a script runs a file many times */
    cublaslt *lt;            /* NULL until asked for */
    bool quiet;              /* diagnostics are kept, not shown */
    char message[MAX_MESSAGE]; /* of the first error since session_clear; "" for none */
} session;

/* Zero-initialise a session; this frees what it came to hold. */
void session_close(session *s);

/* Notes an error of the tool's own, shown like a diagnostic. */
void session_error(session *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Opens GPU 0. TCC_ERR_NO_DRIVER leaves the reason in the message without showing it. */
tcc_status session_open_device(session *s);

/* The program of the options' file, compiled or loaded on first use. */
tcc_status session_program(session *s, const options *o, const tcc_program **out);

/* cuBLASLt, loaded on first use; NULL after reporting where there is none. */
cublaslt *session_cublaslt(session *s);

#endif

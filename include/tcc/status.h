/* Status codes and diagnostics, shared by tcc.h (compile) and tcc_runtime.h (load, launch).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_STATUS_H
#define TCC_STATUS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(TCC_BUILDING)
#define TCC_API __attribute__((visibility("default")))
#else
#define TCC_API
#endif

/* What a call returns. The numbers never change; new ones are added at the end. */
typedef enum tcc_status {
    TCC_OK = 0,
    TCC_ERR_SYNTAX = 1,      /* the text cannot be parsed */
    TCC_ERR_TYPE = 2,        /* it parses, but is not valid: names, ranks, types, indices */
    TCC_ERR_TARGET = 3,      /* unknown target, or a schedule that does not fit it */
    TCC_ERR_UNSUPPORTED = 4, /* valid in the language, not supported yet */
    TCC_ERR_MEMORY = 5,
    TCC_ERR_INTERNAL = 6, /* a compiler bug; a reproducer was written if possible */
    TCC_ERR_ARGUMENT = 7, /* an argument of the call is out of range or inconsistent */
    TCC_ERR_IO = 8,
    TCC_ERR_TOOL = 9,        /* an external tool (ptxas) is missing or failed */
    TCC_ERR_NO_DRIVER = 10,  /* no GPU driver or no GPU on this machine */
    TCC_ERR_DRIVER = 11,     /* the GPU driver reported an error */
    TCC_ERR_NO_VARIANT = 12, /* no compiled variant is valid for these arguments */
    TCC_ERR_LIMIT = 13,      /* it would exceed a limit on steps or memory */
    TCC_ERR_INTERRUPTED = 14 /* tcc_context_interrupt was called */
} tcc_status;

/* A constant English name: "ok", "syntax error", … Thread-safe. */
TCC_API const char *tcc_status_name(tcc_status status);

typedef enum tcc_severity { TCC_SEV_NOTE, TCC_SEV_WARNING, TCC_SEV_ERROR } tcc_severity;

/* One diagnostic. Every pointer is borrowed and valid only during the callback. */
typedef struct tcc_diagnostic {
    tcc_severity severity;
    const char *file;        /* as given by the caller, or "<source>" */
    unsigned line, column;   /* 1-based; line 0: no location. Columns count bytes */
    const char *message;     /* lower case, no full stop */
    const char *source_line; /* without its newline; NULL without a location */
    const char *text;        /* everything, as a terminal shows it: header, line, caret */
    unsigned end_column;     /* after the word or character at the location; 0 without a location */
} tcc_diagnostic;

typedef void (*tcc_diagnostic_fn)(const tcc_diagnostic *diagnostic, void *user);

#ifdef __cplusplus
}
#endif
#endif

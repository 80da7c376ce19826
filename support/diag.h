/* diag: located diagnostics over one source text.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_DIAG_H
#define TCC_SUPPORT_DIAG_H

#include <stdint.h>

#include <tcc/status.h>

/* A place in the source: 1-based line and byte column; line 0 is nowhere. */
typedef struct tcc_loc {
    uint32_t line, column;
} tcc_loc;

/* Zero-initialise, then set file, source and size, and the callback. */
typedef struct tcc_diag {
    const char *file;
    const char *source; /* may be NULL: no source lines are shown */
    size_t size;
    tcc_diagnostic_fn fn;
    void *user;
    unsigned n_errors, n_warnings;
    tcc_status status; /* of the first error */
} tcc_diag;

enum { TCC_MAX_ERRORS = 100 }; /* after these many, errors are counted and not shown */

/* The source line of a place, *len bytes without its end; NULL where there is none. */
const char *tcc_diag_line(const tcc_diag *d, tcc_loc loc, size_t *len);

/* Reports an error; `status` is what the phase will return. Lower case, no full stop. */
void tcc_error(tcc_diag *d, tcc_status status, tcc_loc loc, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void tcc_warn(tcc_diag *d, tcc_loc loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A note on the error before it, at another place. */
void tcc_note(tcc_diag *d, tcc_loc loc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif

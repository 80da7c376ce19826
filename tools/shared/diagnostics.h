/* diagnostics: how the library's diagnostics are printed: as text, on a terminal in colours, or as JSON.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_DIAGNOSTICS_H
#define TCC_TOOLS_DIAGNOSTICS_H

#include <stdbool.h>
#include <stdio.h>

#include <tcc/tcc.h>

typedef enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } color_when;

/* Zero-initialise, then set what is wanted. */
typedef struct diagnostic_printer {
    color_when color;
    bool json;
    /* The object of the last error or warning, to which notes may still come. */
    FILE *object;
    char *text;
    size_t size;
    bool has_notes;
} diagnostic_printer;

/* The value of --color or --diagnostics; false for none. */
bool color_named(const char *name, color_when *out);
bool diagnostics_named(const char *name, bool *json);

/* The library's callback; `user` is the printer. Prints to standard error. */
void print_diagnostic(const tcc_diagnostic *d, void *user);
/* Prints what is held back: after the last diagnostic, and before anything else is printed. */
void end_diagnostics(diagnostic_printer *p);

#endif

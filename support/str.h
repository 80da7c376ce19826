/* str: a growing text buffer on the heap, for printers and emitters.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_STR_H
#define TCC_SUPPORT_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero-initialise; `data` is always terminated once something was appended. When memory runs out
 * `failed` is set and further appends do nothing. */
typedef struct tcc_str {
    char *data;
    size_t len, cap;
    bool failed;
} tcc_str;

void tcc_str_append(tcc_str *s, const char *text, size_t n);
void tcc_str_puts(tcc_str *s, const char *text);
void tcc_str_printf(tcc_str *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Appends an integer, as %lld, and n spaces: what printers append most. */
void tcc_str_int(tcc_str *s, int64_t v);
void tcc_str_indent(tcc_str *s, size_t n);
/* The text, "" when empty. */
const char *tcc_str_text(const tcc_str *s);
/* Hands the buffer to the caller (free) and empties s; NULL when memory ran out. */
char *tcc_str_take(tcc_str *s);
void tcc_str_free(tcc_str *s);

/* Whether `word` is one of the words, which a space separates. */
bool tcc_has_word(const char *words, const char *word);

#endif

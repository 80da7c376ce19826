/* text: source text as bytes: where characters and lines end, and how wide they are shown.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_TEXT_H
#define TCC_SUPPORT_TEXT_H

#include <stddef.h>
#include <stdint.h>

/* Length of the UTF-8 sequence at p, of n bytes there; 0 when there is none (RFC 3629,
 * section 4). */
size_t tcc_utf8_length(const char *p, size_t n);
/* The character of such a sequence. */
uint32_t tcc_utf8_decode(const char *p, size_t length);

/* Length of the line end at p, of n bytes there: a line feed, a carriage return, or both; 0 when
 * there is none. */
size_t tcc_line_end(const char *p, size_t n);
/* The first line end from p on, `end` when there is none. */
const char *tcc_line_rest(const char *p, const char *end);

/* Columns of a terminal that a character takes: 0 of a combining one, 2 of a wide one, and -1 of
 * what controls the terminal or the direction of text and had better not be printed. */
int tcc_char_width(uint32_t c);

#endif

/* json: a JSON text (RFC 8259) as a tree in an arena.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_JSON_H
#define TCC_SUPPORT_JSON_H

#include "support/arena.h"
#include "support/str.h"

typedef enum tcc_json_kind {
    TCC_JSON_NULL,
    TCC_JSON_BOOL,
    TCC_JSON_NUMBER,
    TCC_JSON_STRING,
    TCC_JSON_ARRAY,
    TCC_JSON_OBJECT
} tcc_json_kind;

typedef struct tcc_json {
    tcc_json_kind kind;
    const char *name; /* of an object's member; else NULL */
    double number;    /* BOOL: 0 or 1 */
    const char *string;
    size_t n; /* elements of an array or members of an object */
    const struct tcc_json *first, *next;
} tcc_json;

/* Parses a text of n bytes. NULL if it is not JSON, is nested deeper than 64 or has a string with a
 * NUL: *bad then receives the offset of the error. Bytes above 127 are accepted unchanged. Running
 * out of memory is handled by the arena. */
const tcc_json *tcc_json_parse(tcc_arena *arena, const char *text, size_t size, size_t *bad);

/* Whether there is a value, and of that kind. */
bool tcc_json_is(const tcc_json *v, tcc_json_kind kind);
/* The first member of this name, or the i-th element; NULL where there is none, and of NULL. */
const tcc_json *tcc_json_member(const tcc_json *object, const char *name);
const tcc_json *tcc_json_element(const tcc_json *array, size_t i);

/* Appends a string with its quotes. */
void tcc_json_print_string(tcc_str *out, const char *s);

#endif

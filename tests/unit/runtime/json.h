/* json: looks things up in a JSON text that is known to be valid, without building a tree: the
 * manifests that tcc_program_load has checked.
 *
 * A value is a pointer to its first character. Every function takes NULL for a value that is not
 * there.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_JSON_H
#define TCC_TESTS_JSON_H

#include <stdbool.h>
#include <stddef.h>

/* An object's member; NULL when there is none or `value` is not an object. */
const char *json_member(const char *value, const char *name);
/* An array's element; NULL past its end or when `value` is not an array. */
const char *json_element(const char *value, size_t i);
/* Whether the value is this string. Escapes are not interpreted: names have none. */
bool json_is_string(const char *value, const char *text);
/* A number's value; false when it is not a number. */
bool json_number(const char *value, double *out);

#endif

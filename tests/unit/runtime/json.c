/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/runtime/json.h"

#include <stdlib.h>
#include <string.h>

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* Past a string, p being at its first quote. */
static const char *skip_string(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p + 1 : p;
}

/* Past a value of any kind. */
static const char *skip_value(const char *p)
{
    size_t depth = 0;
    do {
        p = skip_space(p);
        if (*p == '"') {
            p = skip_string(p);
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            depth--;
            p++;
        } else if (*p == ',' || *p == ':') {
            p++;
        } else {
            p += strcspn(p, " \t\r\n,:]}");
        }
        p = skip_space(p);
    } while (depth && *p);
    return p;
}

const char *json_member(const char *value, const char *name)
{
    if (!value || *value != '{')
        return NULL;
    const char *p = skip_space(value + 1);
    while (*p == '"') {
        bool found = json_is_string(p, name);
        p = skip_space(skip_string(p));
        p = skip_space(p + (*p == ':'));
        if (found)
            return p;
        p = skip_value(p);
        p = skip_space(p + (*p == ','));
    }
    return NULL;
}

const char *json_element(const char *value, size_t i)
{
    if (!value || *value != '[')
        return NULL;
    const char *p = skip_space(value + 1);
    for (; *p && *p != ']' && i; i--) {
        p = skip_value(p);
        p = skip_space(p + (*p == ','));
    }
    return *p && *p != ']' ? p : NULL;
}

bool json_is_string(const char *value, const char *text)
{
    size_t n = strlen(text);
    return value && *value == '"' && !strncmp(value + 1, text, n) && value[n + 1] == '"';
}

bool json_number(const char *value, double *out)
{
    if (!value || !(*value == '-' || (*value >= '0' && *value <= '9')))
        return false;
    *out = strtod(value, NULL);
    return true;
}

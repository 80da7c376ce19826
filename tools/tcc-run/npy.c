/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/shared/whole_file.h"

enum { MAX_HEADER_BYTES = 64 * 1024 };

static const char magic[] = "\x93NUMPY";

static const struct {
    const char *descr;
    unsigned bytes;
    const char *type;       /* whose elements these are; "": of no type of NumPy's */
    const char *written_as; /* another name of the same */
} formats[] = {
    {"<f2", 2, "f16", "<f2"}, {"<f4", 4, "f32", "<f4"}, {"<f8", 8, "f64", "<f8"},
    {"<u2", 2, "", "<u2"},    {"<V2", 2, "", "|V2"},    {"<V1", 1, "", "|V1"},
    {"<i4", 4, "i32", "<i4"}, {"<i1", 1, "i8", "|i1"},  {"<u1", 1, "u8", "|u1"},
};

enum { N_FORMATS = sizeof formats / sizeof formats[0] };

static int find_format(const char *descr)
{
    for (int i = 0; i < N_FORMATS; i++)
        if (!strcmp(formats[i].descr, descr) || !strcmp(formats[i].written_as, descr))
            return i;
    return -1;
}

/* ---- reading ---------------------------------------------------------------------------- */

/* A header is a Python dict literal such as {'descr': '<f2', 'fortran_order': False, 'shape': (3, 4), },
 * which has these three keys and no other. Each function takes what it is named after from *p. */

static bool take(const char **p, char c)
{
    *p += strspn(*p, " \t\r\n\f");
    if (**p != c)
        return false;
    ++*p;
    return true;
}

/* A string, "" if there is no room for it. */
static bool take_string(const char **p, char *out, size_t room)
{
    char quote = take(p, '\'') ? '\'' : take(p, '"') ? '"' : 0;
    const char *end = quote ? strchr(*p, quote) : NULL;
    if (!end)
        return false;
    size_t len = (size_t)(end - *p);
    memcpy(out, *p, len < room ? len : 0);
    out[len < room ? len : 0] = 0;
    *p = end + 1;
    return true;
}

static bool take_extent(const char **p, npy *out)
{
    char *end;
    *p += strspn(*p, " \t\r\n\f");
    errno = 0;
    intmax_t extent = strtoimax(*p, &end, 10);
    if (**p < '0' || **p > '9' || errno || out->rank == NPY_MAX_RANK ||
        __builtin_mul_overflow(out->n, (size_t)extent, &out->n))
        return false;
    out->shape[out->rank++] = extent;
    *p = end;
    return true;
}

/* A tuple: one of one number ends in a comma, others may. */
static bool take_shape(const char **p, npy *out)
{
    bool comma = true;
    out->n = 1;
    if (!take(p, '('))
        return false;
    while (!take(p, ')')) {
        if (!comma || !take_extent(p, out))
            return false;
        comma = take(p, ',');
    }
    return (out->rank != 1 || comma) && out->n <= PTRDIFF_MAX / 8;
}

static const char *parse_descr(const char **p, npy *out)
{
    char name[8];
    int format = take_string(p, name, sizeof name) ? find_format(name) : -1;
    if (format < 0)
        return "its elements are not one of <f2, <f4, <f8, <i4, |i1, |u1, <u2, <V2, |V1";
    strcpy(out->descr, formats[format].descr);
    return NULL;
}

static const char *parse_order(const char **p, npy *out)
{
    static const char no[] = "False", yes[] = "True";
    (void)out;
    *p += strspn(*p, " \t\r\n\f");
    if (!strncmp(*p, yes, sizeof yes - 1))
        return "it is in Fortran order";
    if (strncmp(*p, no, sizeof no - 1))
        return "its header is not an array's";
    *p += sizeof no - 1;
    return NULL;
}

static const char *parse_shape(const char **p, npy *out)
{
    return take_shape(p, out) ? NULL : "its shape cannot be read";
}

static const struct {
    const char *name;
    const char *(*parse)(const char **p, npy *out);
} keys[] = {{"descr", parse_descr}, {"fortran_order", parse_order}, {"shape", parse_shape}};
enum { N_KEYS = sizeof keys / sizeof keys[0] };

/* Parses the header; returns what is wrong, or NULL. */
static const char *parse_header(const char *p, npy *out)
{
    static const char odd[] = "its header is not an array's";
    unsigned seen = 0;
    bool comma = true;
    if (!take(&p, '{'))
        return odd;
    while (!take(&p, '}')) {
        char name[16];
        int k = 0;
        if (!comma || !take_string(&p, name, sizeof name) || !take(&p, ':'))
            return odd;
        while (k < N_KEYS && strcmp(keys[k].name, name))
            k++;
        if (k == N_KEYS || seen & 1u << k)
            return odd;
        seen |= 1u << k;
        const char *wrong = keys[k].parse(&p, out);
        if (wrong)
            return wrong;
        comma = take(&p, ',');
    }
    return seen + 1 == 1u << N_KEYS && take(&p, 0) ? NULL : odd;
}

/* Reads magic, version and header; returns what is wrong, or NULL. */
static const char *read_header(FILE *f, npy *out)
{
    unsigned char head[12];
    if (fread(head, 1, 10, f) != 10 || memcmp(head, magic, 6))
        return "this is not a .npy file";
    size_t size = head[8] | (size_t)head[9] << 8;
    if (head[6] == 2) {
        if (fread(head + 10, 1, 2, f) != 2)
            return "it is cut short";
        size |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    } else if (head[6] != 1) {
        return "its version is neither 1 nor 2";
    }
    if (size > MAX_HEADER_BYTES)
        return "its header is too large";
    char *header = calloc(1, size + 1);
    if (!header)
        return "out of memory";
    const char *wrong = fread(header, 1, size, f) != size ? "it is cut short"
                        : strlen(header) != size          ? "its header has a 0 byte"
                                                          : parse_header(header, out);
    free(header);
    return wrong;
}

static const char *read_file(FILE *f, npy *out)
{
    const char *wrong = read_header(f, out);
    if (wrong)
        return wrong;
    size_t bytes = formats[find_format(out->descr)].bytes;
    out->data = malloc(out->n ? out->n * bytes : 1);
    if (!out->data)
        return "out of memory";
    if (fread(out->data, bytes, out->n, f) != out->n)
        return "it is cut short";
    return fgetc(f) == EOF ? NULL : "more follows its elements";
}

bool npy_read(const char *path, npy *out, char *why, size_t why_size)
{
    *out = (npy){0};
    FILE *f = fopen(path, "rb");
    const char *wrong = f ? read_file(f, out) : strerror(errno);
    if (f)
        fclose(f);
    if (wrong) {
        snprintf(why, why_size, "%s: %s", path, wrong);
        free(out->data);
        out->data = NULL;
    }
    return !wrong;
}

/* Whether bits without a type can be those of an argument's: a float that NumPy has not. */
static bool holds_bits(const elem_type *type, unsigned bytes)
{
    return type->bits == 8 * bytes && !elem_is_integer(type) && strcmp(type->name, "f16");
}

/* Says which element has no room in a type. */
static bool refuse_element(const npy *array, const elem_type *type, size_t i, double x, char *why, size_t why_size)
{
    size_t at[NPY_MAX_RANK];
    for (unsigned d = array->rank; d-- > 0; i /= (size_t)array->shape[d])
        at[d] = i % (size_t)array->shape[d];
    size_t len = (size_t)snprintf(why, why_size, "has %.15g", x);
    for (unsigned d = 0; d < array->rank && len < why_size; d++)
        len += (size_t)snprintf(why + len, why_size - len, "%s%zu", d ? ", " : " at [", at[d]);
    if (len < why_size)
        snprintf(why + len, why_size - len, "%s, which %s cannot hold", array->rank ? "]" : "", type->name);
    return false;
}

bool npy_convert(const npy *array, const elem_type *type, void *out, char *why, size_t why_size)
{
    int format = find_format(array->descr);
    bool untyped = !*formats[format].type;
    const elem_type *from = elem_type_find(formats[format].type);
    if (untyped && !holds_bits(type, formats[format].bytes)) { /* only an argument says what they are */
        snprintf(why, why_size, "has elements %s, not %s", array->descr, type->name);
        return false;
    }
    if (untyped || from == type) {
        memcpy(out, array->data, elem_bytes(type, array->n));
        return true;
    }
    for (size_t i = 0; i < array->n; i++) {
        double x = elem_get(from, array->data, i);
        if (!elem_holds(type, x))
            return refuse_element(array, type, i, x, why, why_size);
        elem_set(type, out, i, x);
    }
    return true;
}

/* ---- writing ---------------------------------------------------------------------------- */

/* Elements as NumPy has them: of those that share a byte each gets its own. */
static bool write_elements(FILE *f, const elem_type *type, const void *data, size_t n)
{
    if (type->bits >= 8)
        return fwrite(data, type->bits / 8, n, f) == n;
    bool ok = true;
    for (size_t i = 0; i < n && ok; i++)
        ok = fputc((int)elem_get(type, data, i) & 0xff, f) != EOF;
    return ok;
}

bool npy_write(const char *path, const elem_type *type, unsigned rank, const int64_t *shape,
               const void *data, char *why, size_t why_size)
{
    char header[512]; /* 22 characters for each extent */
    size_t n = 1;
    int len = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                       type->npy_descr);
    for (unsigned i = 0; i < rank; i++) {
        n *= (size_t)shape[i];
        len += snprintf(header + len, sizeof header - (size_t)len, "%" PRId64 "%s", shape[i],
                        rank == 1 ? "," : i + 1 < rank ? ", " : "");
    }
    len += snprintf(header + len, sizeof header - (size_t)len, "), }");
    /* Padded so that the data begins at a multiple of 64, the header ending in a newline. */
    while ((10 + len + 1) % 64)
        header[len++] = ' ';
    header[len++] = '\n';
    unsigned char head[10] = {0, 0, 0, 0, 0, 0, 1, 0, (unsigned char)len,
                              (unsigned char)(len >> 8)};
    memcpy(head, magic, 6);

    FILE *f = whole_file_open(path);
    bool ok = f && fwrite(head, 1, sizeof head, f) == sizeof head &&
              fwrite(header, 1, (size_t)len, f) == (size_t)len && write_elements(f, type, data, n);
    ok = f && whole_file_close(f, ok);
    if (!ok)
        snprintf(why, why_size, "%s: %s", path, strerror(errno));
    return ok;
}

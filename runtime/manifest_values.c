/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/manifest_reader.h"

#include <string.h>

bool tcc_bad_manifest(tcc_manifest_reader *r, const char *where, const char *what)
{
    tcc_error(r->diag, TCC_ERR_SYNTAX, (tcc_loc){0}, "bad manifest: %s: %s", where, what);
    return false;
}

/* ---- JSON values ------------------------------------------------------------------------ */

bool tcc_read_string(tcc_manifest_reader *r, const char *where, const tcc_json *v, const char **out)
{
    if (!tcc_json_is(v, TCC_JSON_STRING))
        return tcc_bad_manifest(r, where, v ? "a string is expected" : "missing");
    *out = tcc_arena_strdup(r->arena, v->string);
    return true;
}

bool tcc_read_int(tcc_manifest_reader *r, const char *where, const tcc_json *v, int64_t min, int64_t max, int64_t *out)
{
    if (!tcc_json_is(v, TCC_JSON_NUMBER))
        return tcc_bad_manifest(r, where, v ? "a number is expected" : "missing");
    double x = v->number;
    if (!(x >= (double)min && x <= (double)max) || x != (double)(int64_t)x)
        return TCC_BAD_MANIFEST(r, where, "%g is not an integer from %lld to %lld", x, (long long)min, (long long)max);
    *out = (int64_t)x;
    return true;
}

bool tcc_read_unsigned(tcc_manifest_reader *r, const char *where, const tcc_json *v, unsigned min, unsigned max,
                       unsigned *out)
{
    int64_t n;
    if (!tcc_read_int(r, where, v, min, max, &n))
        return false;
    *out = (unsigned)n;
    return true;
}

bool tcc_read_count(tcc_manifest_reader *r, const char *where, const tcc_json *v, size_t min, size_t max, size_t *out)
{
    if (!tcc_json_is(v, TCC_JSON_ARRAY))
        return tcc_bad_manifest(r, where, v ? "an array is expected" : "missing");
    *out = v->n;
    if (*out < min || *out > max)
        return TCC_BAD_MANIFEST(r, where, "%zu elements, must be %zu to %zu", *out, min, max);
    return true;
}

/* Places are told in errors alone, and made for every value: printf would take more than all the rest. */
static const char *join(tcc_manifest_reader *r, const char *where, const char *more)
{
    size_t n = strlen(where), size = strlen(more) + 1;
    char *place = tcc_arena_alloc(r->arena, n + size);
    memcpy(place, where, n);
    memcpy(place + n, more, size);
    return place;
}

const char *tcc_place_in(tcc_manifest_reader *r, const char *where, const char *name)
{
    return join(r, join(r, where, "."), name);
}

const char *tcc_place_at(tcc_manifest_reader *r, const char *where, size_t i)
{
    char index[24] = {0}, *first = index + sizeof index - 2; /* from its end */
    *first = ']';
    do
        *--first = (char)('0' + i % 10);
    while (i /= 10);
    *--first = '[';
    return join(r, where, first);
}

/* ---- names and extents ------------------------------------------------------------------ */

bool tcc_read_arg(tcc_manifest_reader *r, const char *where, const tcc_json *v, bool scalar, unsigned *out)
{
    const char *name;
    if (!tcc_read_string(r, where, v, &name))
        return false;
    for (unsigned i = 0; i < r->kernel->n_args; i++)
        if (!strcmp(r->kernel->args[i].name, name)) {
            *out = i;
            if ((r->kernel->args[i].role == TCC_ARG_SCALAR) != scalar)
                return TCC_BAD_MANIFEST(r, where, "'%s' is %s", name, scalar ? "not a scalar" : "a scalar");
            return true;
        }
    return TCC_BAD_MANIFEST(r, where, "unknown argument '%s'", name);
}

int tcc_manifest_find_dim(const void *user, const tcc_extent_factor *factor)
{
    const tcc_manifest_reader *r = user;
    for (size_t i = 0; i < r->kernel->n_dims; i++)
        if (tcc_extent_is(factor, r->kernel->dims[i]))
            return (int)i;
    return -1;
}

/* A number, the name of a dimension, or one that says how it is computed (support/extent.h). */
bool tcc_read_extent(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_extent *out)
{
    *out = (tcc_extent){.dim = -1};
    if (!tcc_json_is(v, TCC_JSON_STRING))
        return tcc_read_int(r, where, v, 0, tcc_max_number, &out->number);
    tcc_expr *of = TCC_NEW(r->arena, tcc_expr);
    if (!tcc_extent_compile(r->arena, v->string, false, tcc_manifest_find_dim, r, of))
        return TCC_BAD_MANIFEST(r, where, "unknown dimension '%s'", v->string);
    if (of->n == 1 && of->steps[0].code == TCC_EXPR_dim)
        out->dim = (int)of->steps[0].number;
    else
        out->of = of;
    return true;
}

bool tcc_read_extents(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_extent *out)
{
    size_t i = 0;
    const tcc_json *e;
    for (e = v->first; e; e = e->next) {
        if (!tcc_read_extent(r, tcc_place_at(r, where, i), e, &out[i]))
            return false;
        i++;
    }
    return true;
}

/* An extent, or ["roundup", EXTENT, N]. */
static bool read_factor(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_extent *out)
{
    if (!tcc_json_is(v, TCC_JSON_ARRAY))
        return tcc_read_extent(r, where, v, out);
    if (v->n != 3 || !tcc_json_is(v->first, TCC_JSON_STRING) || strcmp(v->first->string, "roundup"))
        return tcc_bad_manifest(r, where, "no [\"roundup\", extent, number]");
    return tcc_read_extent(r, tcc_place_at(r, where, 1), v->first->next, out) &&
           tcc_read_int(r, tcc_place_at(r, where, 2), v->first->next->next, 1, INT32_MAX, &out->multiple);
}

bool tcc_read_product(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_product *out)
{
    if (!tcc_read_count(r, where, v, 0, TCC_MANIFEST_DIMS, &out->n))
        return false;
    tcc_extent *factors = TCC_NEW_ARRAY(r->arena, tcc_extent, out->n);
    out->factors = factors;
    size_t i = 0;
    for (const tcc_json *e = v->first; e; e = e->next, i++)
        if (!read_factor(r, tcc_place_at(r, where, i), e, &factors[i]))
            return false;
    return true;
}

/* ---- expressions ------------------------------------------------------------------------ */

static bool push(tcc_manifest_reader *r, const char *where, tcc_expr *e, tcc_expr_code code, int64_t number)
{
    return tcc_expr_push(r->arena, e, code, number) || TCC_BAD_MANIFEST(r, where, "an expression that is too long");
}

static bool append_expr(tcc_manifest_reader *r, const char *where, const tcc_json *v, int nesting, tcc_expr *e);

/* [OP, A, B, …] */
static bool append_operation(tcc_manifest_reader *r, const char *where, const tcc_json *v, int nesting, tcc_expr *e)
{
    const char *name;
    tcc_expr_code op;
    if (nesting == TCC_EXPR_MAX_DEPTH)
        return tcc_bad_manifest(r, where, "an expression that is too deep");
    if (!tcc_read_string(r, tcc_place_at(r, where, 0), v->first, &name))
        return false;
    if (!tcc_expr_find_op(name, &op))
        return TCC_BAD_MANIFEST(r, tcc_place_at(r, where, 0), "unknown operation '%s'", name);
    if (v->n < 3 || (v->n > 3 && !tcc_expr_is_variadic(op)))
        return TCC_BAD_MANIFEST(r, where, "%zu operands of '%s'", v->n - 1, name);
    size_t i = 1;
    for (const tcc_json *x = v->first->next; x; x = x->next) {
        if (!append_expr(r, tcc_place_at(r, where, i), x, nesting + 1, e) || (i > 1 && !push(r, where, e, op, 0)))
            return false;
        i++;
    }
    return true;
}

static bool append_expr(tcc_manifest_reader *r, const char *where, const tcc_json *v, int nesting, tcc_expr *e)
{
    tcc_extent extent;
    const char *name;
    tcc_device_attr attr;
    if (tcc_json_is(v, TCC_JSON_ARRAY) && v->n)
        return append_operation(r, where, v, nesting, e);
    if (tcc_json_is(v, TCC_JSON_OBJECT)) {
        if (!tcc_read_string(r, tcc_place_in(r, where, "device"), tcc_json_member(v, "device"), &name))
            return false;
        return tcc_device_attr_find(name, &attr)
                   ? push(r, where, e, TCC_EXPR_device, attr)
                   : TCC_BAD_MANIFEST(r, where, "unknown attribute '%s' of devices", name);
    }
    if (!tcc_read_extent(r, where, v, &extent))
        return false;
    bool ok = true;
    for (size_t i = 0; extent.of && ok && i < extent.of->n; i++)
        ok = push(r, where, e, extent.of->steps[i].code, extent.of->steps[i].number);
    return extent.of         ? ok
           : extent.dim >= 0 ? push(r, where, e, TCC_EXPR_dim, extent.dim)
                             : push(r, where, e, TCC_EXPR_number, extent.number);
}

bool tcc_read_expr(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_expr *out)
{
    *out = (tcc_expr){0};
    return append_expr(r, where, v, 0, out);
}

bool tcc_read_optional_expr(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_expr *out)
{
    *out = (tcc_expr){0};
    return !v || tcc_read_expr(r, where, v, out);
}

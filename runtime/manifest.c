/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/manifest.h"

#include <string.h>

#include "runtime/manifest_reader.h"

static const struct {
    const char *name;
    tcc_arg_role role;
} roles[] = {{"in", TCC_ARG_IN}, {"out", TCC_ARG_OUT}, {"inout", TCC_ARG_INOUT}, {"scalar", TCC_ARG_SCALAR}};

/* ---- kernels ---------------------------------------------------------------------------- */

static bool read_dim_name(tcc_manifest_reader *r, const char *where, const tcc_json *v, const char **out)
{
    if (!tcc_read_string(r, where, v, out))
        return false;
    for (size_t i = 0; &r->kernel->dims[i] != out; i++)
        if (!strcmp(r->kernel->dims[i], *out))
            return TCC_BAD_MANIFEST(r, where, "dimension '%s' twice", *out);
    return true;
}

static bool read_role(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_arg_role *out)
{
    const char *name;
    if (!tcc_read_string(r, where, v, &name))
        return false;
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (!strcmp(roles[i].name, name)) {
            *out = roles[i].role;
            return true;
        }
    return TCC_BAD_MANIFEST(r, where, "unknown role '%s'", name);
}

/* The scalar types that can be passed. */
static bool is_scalar_type(const tcc_elem_type *type)
{
    return !strcmp(type->name, "f64") || !strcmp(type->name, "f32") || !strcmp(type->name, "f16") ||
           !strcmp(type->name, "bf16") || !strcmp(type->name, "i32");
}

/* One way in which an argument is indexed: a name for each dimension. */
typedef struct indexing {
    size_t rank;
    const char *const *names;
} indexing;

static bool read_indexing(tcc_manifest_reader *r, const char *where, const tcc_json *v, indexing *out)
{
    size_t i = 0;
    if (!tcc_read_count(r, where, v, 0, TCC_MANIFEST_RANK, &out->rank))
        return false;
    const char **names = TCC_NEW_ARRAY(r->arena, const char *, out->rank);
    for (const tcc_json *e = v->first; e; e = e->next) {
        if (!tcc_read_string(r, tcc_place_at(r, where, i), e, &names[i]))
            return false;
        i++;
    }
    out->names = names;
    return true;
}

/* All ways; *out is the only one, or NULL. */
static bool read_indices(tcc_manifest_reader *r, const char *where, const tcc_json *arg, size_t rank,
                         const char *const **out)
{
    const indexing *ways;
    size_t n;
    TCC_READ_ARRAY(r, where, "indices", arg, TCC_MANIFEST_INDICES, indexing, read_indexing, ways, n);
    for (size_t i = 0; i < n; i++)
        if (ways[i].rank != rank)
            return TCC_BAD_MANIFEST(r, tcc_place_in(r, where, "indices"), "%zu indices of %zu dimensions", ways[i].rank,
                                    rank);
    *out = n == 1 ? ways[0].names : NULL;
    return true;
}

/* The name by which callers know an argument's dimension. Below 0 one that is computed is refused, and not empty. */
static const char *name_of(tcc_manifest_reader *r, const char *name, tcc_extent *extent)
{
    if (!extent->of)
        return r->kernel->dims[extent->dim];
    tcc_expr *of = TCC_NEW(r->arena, tcc_expr);
    if (tcc_extent_compile(r->arena, name, true, tcc_manifest_find_dim, r, of))
        extent->of = of;
    return tcc_extent_text(r->arena, name);
}

/* A list of rank dimensions, as names and as numbers. */
static bool read_dims(tcc_manifest_reader *r, const char *where, const tcc_json *v, size_t rank, const tcc_extent **out,
                      const char *const **names_out, const int64_t **numbers_out)
{
    tcc_extent *extents = TCC_NEW_ARRAY(r->arena, tcc_extent, rank);
    const char **names = TCC_NEW_ARRAY(r->arena, const char *, rank);
    int64_t *numbers = TCC_NEW_ARRAY(r->arena, int64_t, rank);
    if (!tcc_read_extents(r, where, v, extents))
        return false;
    const tcc_json *dim = v->first;
    for (size_t i = 0; i < rank; i++, dim = dim->next) {
        bool symbolic = extents[i].dim >= 0 || extents[i].of;
        names[i] = symbolic ? name_of(r, dim->string, &extents[i]) : NULL;
        numbers[i] = symbolic ? -1 : extents[i].number;
    }
    *out = extents;
    *names_out = names;
    *numbers_out = numbers;
    return true;
}

static bool read_arg_info(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_arg_info *out,
                          const tcc_elem_type **type, const tcc_extent **extents, const tcc_extent **strides)
{
    if (!tcc_read_string(r, tcc_place_in(r, where, "name"), tcc_json_member(v, "name"), &out->name) ||
        !read_role(r, tcc_place_in(r, where, "role"), tcc_json_member(v, "role"), &out->role) ||
        !tcc_read_type(r, tcc_place_in(r, where, "type"), tcc_json_member(v, "type"), type))
        return false;
    out->type = (*type)->name;
    if (out->role == TCC_ARG_SCALAR)
        return is_scalar_type(*type) || TCC_BAD_MANIFEST(r, where, "a scalar cannot be %s", out->type);
    const tcc_json *dims = tcc_json_member(v, "dims");
    size_t rank;
    if (!tcc_read_count(r, tcc_place_in(r, where, "dims"), dims, 0, TCC_MANIFEST_RANK, &rank))
        return false;
    const tcc_json *by_stride = tcc_json_member(v, "strides");
    if (!read_dims(r, tcc_place_in(r, where, "dims"), dims, rank, extents, &out->dims, &out->extents))
        return false;
    if (by_stride && (!tcc_read_count(r, tcc_place_in(r, where, "strides"), by_stride, rank, rank, &rank) ||
                      !read_dims(r, tcc_place_in(r, where, "strides"), by_stride, rank, strides, &out->stride_dims,
                                 &out->strides)))
        return false;
    if (tcc_json_member(v, "indices") && /* only comparisons need it */
        !read_indices(r, where, v, rank, &out->indices))
        return false;
    out->rank = (unsigned)rank;
    return true;
}

static bool read_args(tcc_manifest_reader *r, const char *where, const tcc_json *v)
{
    tcc_kernel_desc *k = r->kernel;
    size_t n;
    if (!tcc_read_count(r, where, v, 1, TCC_MANIFEST_ARGS, &n))
        return false;
    tcc_arg_info *args = TCC_NEW_ARRAY(r->arena, tcc_arg_info, n);
    const tcc_elem_type **types = TCC_NEW_ARRAY(r->arena, const tcc_elem_type *, n);
    const tcc_extent **extents = TCC_NEW_ARRAY(r->arena, const tcc_extent *, n);
    const tcc_extent **strides = TCC_NEW_ARRAY(r->arena, const tcc_extent *, n);
    k->args = args;
    k->arg_types = types;
    k->arg_extents = extents;
    k->arg_strides = strides;
    const tcc_json *e;
    for (e = v->first; e; e = e->next) {
        size_t i = k->n_args;
        if (!read_arg_info(r, tcc_place_at(r, where, i), e, &args[i], &types[i], &extents[i], &strides[i]))
            return false;
        for (size_t j = 0; j < i; j++)
            if (!strcmp(args[j].name, args[i].name))
                return TCC_BAD_MANIFEST(r, tcc_place_at(r, where, i), "argument '%s' twice", args[i].name);
        k->n_args++;
    }
    return true;
}

static bool read_kernel(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_kernel_desc *out)
{
    r->kernel = out;
    const tcc_json *reference = tcc_json_member(v, "reference"); /* only the CPU reference needs it */
    if (!tcc_read_string(r, tcc_place_in(r, where, "name"), tcc_json_member(v, "name"), &out->name) ||
        (reference && !tcc_read_string(r, tcc_place_in(r, where, "reference"), reference, &out->reference)))
        return false;
    TCC_READ_ARRAY(r, where, "dims", v, TCC_MANIFEST_DIMS, const char *, read_dim_name, out->dims, out->n_dims);
    if (!read_args(r, tcc_place_in(r, where, "args"), tcc_json_member(v, "args")))
        return false;
    const tcc_json *flops = tcc_json_member(v, "flops"); /* only benchmarks need it */
    const tcc_json *sum = tcc_json_member(v, "sum");
    const tcc_elem_type *type;
    if ((flops && !tcc_read_product(r, tcc_place_in(r, where, "flops"), flops, &out->flops)) ||
        (sum && !tcc_read_type(r, tcc_place_in(r, where, "sum"), sum, &type)))
        return false;
    out->sum = sum ? type->name : NULL;
    TCC_READ_ARRAY(r, where, "variants", v, TCC_MANIFEST_VARIANTS, tcc_variant, tcc_read_variant, out->variants,
                   out->n_variants);
    return true;
}

/* What was written before manifests had a field for it is of version 1. */
static bool check_version(tcc_manifest_reader *r, const tcc_json *json)
{
    int64_t version = 1;
    if (tcc_json_member(json, "manifest") &&
        !tcc_read_int(r, "$.manifest", tcc_json_member(json, "manifest"), 1, tcc_max_number, &version))
        return false;
    return version == TCC_MANIFEST_VERSION ||
           TCC_BAD_MANIFEST(r, "$", "it has version %lld; only version %d is supported", (long long)version,
                            TCC_MANIFEST_VERSION);
}

static bool read_device(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_device_attrs *out)
{
    for (int i = 0; i < TCC_DEVICE_ATTR_COUNT; i++) {
        const char *name = tcc_device_attr_name((tcc_device_attr)i);
        if (!tcc_read_int(r, tcc_place_in(r, where, name), tcc_json_member(v, name), 1, INT32_MAX, &out->value[i]))
            return false;
    }
    return true;
}

static bool read_kernels(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_manifest *out)
{
    size_t n;
    if (!tcc_read_count(r, where, v, 0, TCC_MANIFEST_KERNELS, &n))
        return false;
    tcc_kernel_desc *kernels = TCC_NEW_ARRAY(r->arena, tcc_kernel_desc, n);
    out->kernels = kernels;
    for (const tcc_json *e = v->first; e; e = e->next) {
        size_t i = out->n_kernels;
        if (!read_kernel(r, tcc_place_at(r, where, i), e, &kernels[i]))
            return false;
        for (size_t j = 0; j < i; j++)
            if (!strcmp(kernels[i].name, kernels[j].name))
                return TCC_BAD_MANIFEST(r, tcc_place_at(r, where, i), "kernel '%s' twice", kernels[i].name);
        out->n_kernels++;
    }
    return true;
}

static bool read_manifest(tcc_manifest_reader *r, const tcc_json *json, tcc_manifest *out)
{
    const char *version;
    if (!tcc_json_is(json, TCC_JSON_OBJECT))
        return tcc_bad_manifest(r, "$", "an object is expected");
    if (!check_version(r, json))
        return false;
    if (!tcc_read_string(r, "$.tcc", tcc_json_member(json, "tcc"), &version) ||
        !tcc_read_string(r, "$.target", tcc_json_member(json, "target"), &out->target) ||
        !tcc_read_string(r, "$.file", tcc_json_member(json, "file"), &out->file) ||
        !read_device(r, "$.device", tcc_json_member(json, "device"), &out->device))
        return false;
    r->amd = !strncmp(out->target, "gfx", 3);
    return read_kernels(r, "$.kernels", tcc_json_member(json, "kernels"), out);
}

tcc_status tcc_manifest_read(tcc_arena *arena, tcc_diag *diag, const char *json, const tcc_manifest **out)
{
    jmp_buf oom;
    if (setjmp(oom)) {
        tcc_arena_set_oom(arena, NULL);
        return TCC_ERR_MEMORY;
    }
    tcc_arena_set_oom(arena, &oom);
    tcc_manifest_reader r = {.arena = arena, .diag = diag};
    tcc_manifest *manifest = TCC_NEW(arena, tcc_manifest);
    size_t bad;
    const char *text = json ? json : "";
    const tcc_json *root = tcc_json_parse(arena, text, strlen(text), &bad);
    bool ok = root ? read_manifest(&r, root, manifest) : TCC_BAD_MANIFEST(&r, "$", "invalid JSON at byte %zu", bad);
    tcc_arena_set_oom(arena, NULL);
    *out = manifest;
    return ok ? TCC_OK : TCC_ERR_SYNTAX;
}

/* ---- PTX -------------------------------------------------------------------------------- */

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
static const char head[] = "// tcc-manifest ", version[] = TEXT_OF(TCC_MANIFEST_VERSION), prefix[] = "//! ";

/* Takes the next line off the text, without its end. False at the end of the text. */
static bool next_line(const char **p, const char *end, const char **line, size_t *len)
{
    if (*p == end)
        return false;
    const char *eol = memchr(*p, '\n', (size_t)(end - *p));
    *line = *p;
    *len = (size_t)((eol ? eol : end) - *p);
    *p = eol ? eol + 1 : end;
    if (*len && (*line)[*len - 1] == '\r')
        --*len;
    return true;
}

static bool starts_with(const char *line, size_t len, const char *start, size_t n)
{
    return len >= n && !memcmp(line, start, n);
}

const char *tcc_manifest_in_ptx(tcc_arena *arena, tcc_diag *diag, const char *ptx, size_t size)
{
    const char *p = ptx, *end = ptx + size, *line;
    size_t len;
    if (!next_line(&p, end, &line, &len) || !starts_with(line, len, head, sizeof head - 1)) {
        tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0},
                  "no manifest at the head of this PTX: it was "
                  "not written by tcc");
        return NULL;
    }
    line += sizeof head - 1;
    len -= sizeof head - 1;
    if (len != sizeof version - 1 || memcmp(line, version, len)) {
        tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0},
                  "this PTX has a manifest of version %.*s; only version %s is supported",
                  (int)(len < 20 ? len : 20), line, version);
        return NULL;
    }
    char *json = tcc_arena_alloc(arena, size);
    size_t n = 0;
    while (next_line(&p, end, &line, &len) && starts_with(line, len, prefix, sizeof prefix - 1)) {
        memcpy(json + n, line + sizeof prefix - 1, len - (sizeof prefix - 1));
        n += len - (sizeof prefix - 1);
    }
    json[n] = 0;
    return json;
}

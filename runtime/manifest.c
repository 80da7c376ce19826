/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/manifest.h"

#include <string.h>

#include "support/json.h"

/* As TFLOAT32 the copy engine would round. */
static const tcc_elem_type elem_types[] = {
    {"f16", 16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16}, {"bf16", 16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16},
    {"f32", 32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32}, {"tf32", 32, CU_TENSOR_MAP_DATA_TYPE_UINT32},
    {"f64", 64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64}, {"i32", 32, CU_TENSOR_MAP_DATA_TYPE_INT32},
    {"e4m3", 8, CU_TENSOR_MAP_DATA_TYPE_UINT8},   {"e5m2", 8, CU_TENSOR_MAP_DATA_TYPE_UINT8},
    {"i8", 8, CU_TENSOR_MAP_DATA_TYPE_UINT8},     {"u8", 8, CU_TENSOR_MAP_DATA_TYPE_UINT8},
    {"i4", 4, CU_TENSOR_MAP_DATA_TYPE_UINT8},     {"u4", 4, CU_TENSOR_MAP_DATA_TYPE_UINT8},
};

static const struct {
    const char *name;
    tcc_arg_role role;
} roles[] = {
    {"in", TCC_ARG_IN}, {"out", TCC_ARG_OUT}, {"inout", TCC_ARG_INOUT}, {"scalar", TCC_ARG_SCALAR}};

static const struct {
    int bytes;
    CUtensorMapSwizzle swizzle;
} swizzles[] = {{0, CU_TENSOR_MAP_SWIZZLE_NONE},
                {32, CU_TENSOR_MAP_SWIZZLE_32B},
                {64, CU_TENSOR_MAP_SWIZZLE_64B},
                {128, CU_TENSOR_MAP_SWIZZLE_128B}};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef struct reader {
    tcc_arena *arena;
    tcc_diag *diag;
    tcc_kernel_desc *kernel; /* being read: names resolve against it */
    bool amd;                /* the target is one of AMD's */
} reader;

/* Every reading function returns false after reporting; `where` is the place for messages. */
#define FAIL(r, where, ...) fail(r, where, tcc_arena_printf((r)->arena, __VA_ARGS__))

static bool fail(reader *r, const char *where, const char *what)
{
    tcc_error(r->diag, TCC_ERR_SYNTAX, (tcc_loc){0}, "bad manifest: %s: %s", where, what);
    return false;
}

/* ---- JSON values ------------------------------------------------------------------------ */

static const tcc_json *member(const tcc_json *object, const char *name)
{
    return tcc_json_member(object, name);
}

static bool is(const tcc_json *v, tcc_json_kind kind)
{
    return v && v->kind == kind;
}

static bool read_string(reader *r, const char *where, const tcc_json *v, const char **out)
{
    if (!is(v, TCC_JSON_STRING))
        return fail(r, where, v ? "a string is expected" : "missing");
    *out = tcc_arena_strdup(r->arena, v->string);
    return true;
}

static bool read_int(reader *r, const char *where, const tcc_json *v, int64_t min, int64_t max,
                     int64_t *out)
{
    if (!is(v, TCC_JSON_NUMBER))
        return fail(r, where, v ? "a number is expected" : "missing");
    double x = v->number;
    if (!(x >= (double)min && x <= (double)max) || x != (double)(int64_t)x)
        return FAIL(r, where, "%g is no integer from %lld to %lld", x, (long long)min,
                    (long long)max);
    *out = (int64_t)x;
    return true;
}

/* JSON numbers are doubles, exact up to here. */
static const int64_t max_number = (int64_t)1 << 53;

static bool read_unsigned(reader *r, const char *where, const tcc_json *v, unsigned min, unsigned max,
                          unsigned *out)
{
    int64_t n;
    if (!read_int(r, where, v, min, max, &n))
        return false;
    *out = (unsigned)n;
    return true;
}

/* An array's length within bounds. */
static bool read_count(reader *r, const char *where, const tcc_json *v, size_t min, size_t max,
                       size_t *out)
{
    if (!is(v, TCC_JSON_ARRAY))
        return fail(r, where, v ? "an array is expected" : "missing");
    *out = v->n;
    if (*out < min || *out > max)
        return FAIL(r, where, "%zu elements, must be %zu to %zu", *out, min, max);
    return true;
}

static const char *in(reader *r, const char *where, const char *name)
{
    return tcc_arena_printf(r->arena, "%s.%s", where, name);
}

static const char *at(reader *r, const char *where, size_t i)
{
    return tcc_arena_printf(r->arena, "%s[%zu]", where, i);
}

/* ---- names and extents ------------------------------------------------------------------ */

static bool read_arg(reader *r, const char *where, const tcc_json *v, bool scalar, unsigned *out)
{
    const char *name;
    if (!read_string(r, where, v, &name))
        return false;
    for (unsigned i = 0; i < r->kernel->n_args; i++)
        if (!strcmp(r->kernel->args[i].name, name)) {
            *out = i;
            if ((r->kernel->args[i].role == TCC_ARG_SCALAR) != scalar)
                return FAIL(r, where, "'%s' is %s", name, scalar ? "no scalar" : "a scalar");
            return true;
        }
    return FAIL(r, where, "unknown argument '%s'", name);
}

static int find_dim(const reader *r, const tcc_extent_factor *factor)
{
    for (size_t i = 0; i < r->kernel->n_dims; i++)
        if (tcc_extent_is(factor, r->kernel->dims[i]))
            return (int)i;
    return -1;
}

/* A number, the name of a dimension, or names and numbers that are multiplied, joined by dots. */
static bool read_extent(reader *r, const char *where, const tcc_json *v, tcc_extent *out)
{
    *out = (tcc_extent){.dim = -1};
    if (!is(v, TCC_JSON_STRING))
        return read_int(r, where, v, 0, max_number, &out->number);
    tcc_extent_factor factor;
    for (const char *left = v->string; tcc_extent_take(&left, &factor);) {
        int dim = factor.n ? find_dim(r, &factor) : -1;
        bool fits = factor.n ? dim >= 0 && (out->dim < 0 || out->n_more < TCC_MAX_FACTORS - 1)
                             : !out->number && factor.number > 0 && factor.number <= TCC_MAX_EXTENT;
        if (!fits)
            return FAIL(r, where, "unknown dimension '%s'", v->string);
        if (!factor.n)
            out->number = factor.number;
        else if (out->dim < 0)
            out->dim = dim;
        else
            out->more[out->n_more++] = dim;
    }
    return out->dim >= 0 || FAIL(r, where, "unknown dimension '%s'", v->string);
}

/* That of a tensor which is passed. */
static bool is_one_dimension(const tcc_extent *e)
{
    return e->dim < 0 || (!e->n_more && !e->number);
}

static bool read_extents(reader *r, const char *where, const tcc_json *v, tcc_extent *out)
{
    size_t i = 0;
    const tcc_json *e;
    for (e = v->first; e; e = e->next) {
        if (!read_extent(r, at(r, where, i), e, &out[i]))
            return false;
        i++;
    }
    return true;
}

/* An extent, or ["roundup", EXTENT, N]. */
static bool read_factor(reader *r, const char *where, const tcc_json *v, tcc_extent *out)
{
    if (!is(v, TCC_JSON_ARRAY))
        return read_extent(r, where, v, out);
    if (v->n != 3 || !is(v->first, TCC_JSON_STRING) || strcmp(v->first->string, "roundup"))
        return fail(r, where, "no [\"roundup\", extent, number]");
    return read_extent(r, at(r, where, 1), v->first->next, out) &&
           read_int(r, at(r, where, 2), v->first->next->next, 1, INT32_MAX, &out->multiple);
}

static bool read_product(reader *r, const char *where, const tcc_json *v, tcc_product *out)
{
    if (!read_count(r, where, v, 0, TCC_MAX_DIMS, &out->n))
        return false;
    tcc_extent *factors = TCC_NEW_ARRAY(r->arena, tcc_extent, out->n);
    out->factors = factors;
    size_t i = 0;
    for (const tcc_json *e = v->first; e; e = e->next, i++)
        if (!read_factor(r, at(r, where, i), e, &factors[i]))
            return false;
    return true;
}

/* ---- expressions ------------------------------------------------------------------------ */

static bool push(reader *r, const char *where, tcc_expr *e, tcc_expr_code code, int64_t number)
{
    return tcc_expr_push(r->arena, e, code, number) ||
           FAIL(r, where, "an expression that is too long");
}

static bool append_expr(reader *r, const char *where, const tcc_json *v, int nesting, tcc_expr *e);

/* [OP, A, B, …] */
static bool append_operation(reader *r, const char *where, const tcc_json *v, int nesting,
                             tcc_expr *e)
{
    const char *name;
    tcc_expr_code op;
    if (nesting == TCC_EXPR_MAX_DEPTH)
        return fail(r, where, "an expression that is too deep");
    if (!read_string(r, at(r, where, 0), v->first, &name))
        return false;
    if (!tcc_expr_find_op(name, &op))
        return FAIL(r, at(r, where, 0), "unknown operation '%s'", name);
    if (v->n < 3 || (v->n > 3 && !tcc_expr_is_variadic(op)))
        return FAIL(r, where, "%zu operands of '%s'", v->n - 1, name);
    size_t i = 1;
    for (const tcc_json *x = v->first->next; x; x = x->next) {
        if (!append_expr(r, at(r, where, i), x, nesting + 1, e) ||
            (i > 1 && !push(r, where, e, op, 0)))
            return false;
        i++;
    }
    return true;
}

static bool append_expr(reader *r, const char *where, const tcc_json *v, int nesting, tcc_expr *e)
{
    tcc_extent extent;
    const char *name;
    tcc_device_attr attr;
    if (is(v, TCC_JSON_ARRAY) && v->n)
        return append_operation(r, where, v, nesting, e);
    if (is(v, TCC_JSON_OBJECT)) {
        if (!read_string(r, in(r, where, "device"), member(v, "device"), &name))
            return false;
        return tcc_device_attr_find(name, &attr)
                   ? push(r, where, e, TCC_EXPR_device, attr)
                   : FAIL(r, where, "unknown attribute '%s' of devices", name);
    }
    if (!read_extent(r, where, v, &extent))
        return false;
    if (extent.dim < 0)
        return push(r, where, e, TCC_EXPR_number, extent.number);
    bool ok = push(r, where, e, TCC_EXPR_dim, extent.dim);
    for (unsigned i = 0; i < extent.n_more && ok; i++)
        ok = push(r, where, e, TCC_EXPR_dim, extent.more[i]) && push(r, where, e, TCC_EXPR_mul, 0);
    if (extent.number && ok)
        ok = push(r, where, e, TCC_EXPR_number, extent.number) && push(r, where, e, TCC_EXPR_mul, 0);
    return ok;
}

static bool read_expr(reader *r, const char *where, const tcc_json *v, tcc_expr *out)
{
    *out = (tcc_expr){0};
    return append_expr(r, where, v, 0, out);
}

/* One that may be missing: 0. */
static bool read_optional_expr(reader *r, const char *where, const tcc_json *v, tcc_expr *out)
{
    *out = (tcc_expr){0};
    return !v || read_expr(r, where, v, out);
}

/* ---- variants --------------------------------------------------------------------------- */

static bool read_requirement(reader *r, const char *where, const tcc_json *v, tcc_requirement *out)
{
    if (member(v, "dim")) {
        out->kind = TCC_REQUIRE_EXTENT;
        out->min = 0;
        out->max = INT64_MAX;
        const tcc_json *min = member(v, "min"), *max = member(v, "max");
        if (!min && !max)
            return fail(r, where, "neither min nor max");
        return read_extent(r, in(r, where, "dim"), member(v, "dim"), &out->extent) &&
               (!min || read_int(r, in(r, where, "min"), min, 0, max_number, &out->min)) &&
               (!max || read_int(r, in(r, where, "max"), max, 0, max_number, &out->max));
    }
    if (member(v, "span")) {
        out->kind = TCC_REQUIRE_SPAN;
        return read_product(r, in(r, where, "span"), member(v, "span"), &out->pitch) &&
               read_int(r, in(r, where, "bytes_per_elem"), member(v, "bytes_per_elem"), 1,
                        max_number, &out->bytes_per_elem) &&
               read_int(r, in(r, where, "most"), member(v, "most"), 0, max_number, &out->max);
    }
    if (!read_int(r, in(r, where, "align"), member(v, "align"), 1, max_number, &out->align))
        return false;
    if (member(v, "arg")) {
        out->kind = TCC_REQUIRE_ADDRESS;
        return read_arg(r, in(r, where, "arg"), member(v, "arg"), false, &out->arg);
    }
    if (member(v, "pitch")) {
        out->kind = TCC_REQUIRE_PITCH;
        return read_product(r, in(r, where, "pitch"), member(v, "pitch"), &out->pitch) &&
               read_int(r, in(r, where, "bytes_per_elem"), member(v, "bytes_per_elem"), 1, 64,
                        &out->bytes_per_elem);
    }
    return fail(r, where, "no requirement of a known kind");
}

static const tcc_elem_type *find_type(const char *name)
{
    for (size_t i = 0; i < COUNT(elem_types); i++)
        if (!strcmp(elem_types[i].name, name))
            return &elem_types[i];
    return NULL;
}

static bool read_type(reader *r, const char *where, const tcc_json *v, const tcc_elem_type **out)
{
    const char *name;
    if (!read_string(r, where, v, &name))
        return false;
    *out = find_type(name);
    return *out || FAIL(r, where, "unknown type '%s'", name);
}

static bool read_swizzle(reader *r, const char *where, const tcc_json *v, const tcc_tma_recipe *map,
                         CUtensorMapSwizzle *out)
{
    int64_t bytes;
    if (!read_int(r, where, v, 0, 128, &bytes))
        return false;
    for (size_t i = 0; i < COUNT(swizzles); i++)
        if (swizzles[i].bytes == bytes) {
            *out = swizzles[i].swizzle;
            int64_t row_bytes = (int64_t)map->box[0] * (map->type->bits / 8);
            if (row_bytes % 16 || (bytes && row_bytes > bytes))
                return FAIL(r, where, "a box row of %lld bytes does not fit a swizzle of %lld",
                            (long long)row_bytes, (long long)bytes);
            return true;
        }
    return FAIL(r, where, "%lld is none of 0, 32, 64, 128", (long long)bytes);
}

/* Which tensor a map is of: {"arg": NAME} or {"workspace": OFFSET}. */
static bool read_mapped(reader *r, const char *where, const tcc_json *v, tcc_tma_recipe *out)
{
    unsigned arg = 0;
    const tcc_json *offset = member(v, "workspace");
    bool ok = offset ? read_expr(r, in(r, where, "workspace"), offset, &out->offset)
                     : read_arg(r, in(r, where, "arg"), member(v, "arg"), false, &arg);
    out->arg = offset ? -1 : (int)arg;
    return ok;
}

static bool read_map(reader *r, const char *where, const tcc_json *v, tcc_tma_recipe *out)
{
    const tcc_json *dims = member(v, "dims"), *strides = member(v, "strides"), *box = member(v, "box");
    size_t rank, n;
    if (!read_mapped(r, where, v, out) || !read_type(r, in(r, where, "type"), member(v, "type"), &out->type) ||
        (out->type->bits % 8 && !FAIL(r, in(r, where, "type"), "no whole bytes")) ||
        !read_count(r, in(r, where, "dims"), dims, 1, TCC_MAX_TMA_RANK, &rank) ||
        !read_extents(r, in(r, where, "dims"), dims, out->dims) ||
        !read_count(r, in(r, where, "strides"), strides, rank - 1, rank - 1, &n) ||
        !read_count(r, in(r, where, "box"), box, rank, rank, &n))
        return false;
    out->rank = (unsigned)rank;
    for (size_t i = 0; i < rank; i++) {
        if (i && !read_product(r, at(r, in(r, where, "strides"), i - 1),
                               tcc_json_element(strides, i - 1), &out->strides[i - 1]))
            return false;
        if (!read_unsigned(r, at(r, in(r, where, "box"), i), tcc_json_element(box, i), 1,
                           TCC_MAX_BOX, &out->box[i]))
            return false;
    }
    return read_swizzle(r, in(r, where, "swizzle"), member(v, "swizzle"), out, &out->swizzle);
}

static bool read_param(reader *r, const char *where, const tcc_json *v, tcc_param *out)
{
    if (member(v, "tensor_map")) {
        out->kind = TCC_PARAM_TENSOR_MAP;
        tcc_tma_recipe *map = TCC_NEW(r->arena, tcc_tma_recipe);
        out->map = map;
        return read_map(r, in(r, where, "tensor_map"), member(v, "tensor_map"), map);
    }
    if (member(v, "pointer")) {
        out->kind = TCC_PARAM_POINTER;
        return read_arg(r, in(r, where, "pointer"), member(v, "pointer"), false, &out->arg);
    }
    if (member(v, "workspace")) {
        out->kind = TCC_PARAM_WORKSPACE;
        return read_expr(r, in(r, where, "workspace"), member(v, "workspace"), &out->offset);
    }
    if (member(v, "dim")) {
        out->kind = TCC_PARAM_DIM;
        return read_extent(r, in(r, where, "dim"), member(v, "dim"), &out->extent);
    }
    if (member(v, "scalar")) {
        out->kind = TCC_PARAM_SCALAR;
        return read_arg(r, in(r, where, "scalar"), member(v, "scalar"), true, &out->arg);
    }
    return fail(r, where, "no parameter of a known kind");
}

/* Reads an array of `type` elements with `read_elem` into the fields `out` and `n_out`. */
#define READ_ARRAY(r, where, name, object, max, type, read_elem, out, n_out)                       \
    do {                                                                                           \
        const tcc_json *array_ = member(object, name);                                                \
        const char *where_ = in(r, where, name);                                                   \
        if (!read_count(r, where_, array_, 0, max, &(n_out)))                                      \
            return false;                                                                          \
        type *elems_ = TCC_NEW_ARRAY((r)->arena, type, n_out);                                     \
        (out) = elems_;                                                                            \
        size_t i_ = 0;                                                                             \
        const tcc_json *elem_;                                                                        \
        for (elem_ = array_->first; elem_; elem_ = elem_->next) {                                                        \
            if (!read_elem(r, at(r, where_, i_), elem_, &elems_[i_]))                              \
                return false;                                                                      \
            i_++;                                                                                  \
        }                                                                                          \
    } while (0)

/* 0 or 1, and 0 where there is none. */
static bool read_flag(reader *r, const char *where, const tcc_json *v, bool *out)
{
    unsigned flag = 0;
    bool ok = !v || read_unsigned(r, where, v, 0, 1, &flag);
    *out = flag;
    return ok;
}

static bool read_entry(reader *r, const char *where, const tcc_json *v, tcc_entry *out)
{
    if (!read_string(r, in(r, where, "launch"), member(v, "launch"), &out->name) ||
        !read_expr(r, in(r, where, "grid"), member(v, "grid"), &out->grid) ||
        !read_unsigned(r, in(r, where, "block"), member(v, "block"), 1, TCC_MAX_BLOCK,
                       &out->block) ||
        !read_unsigned(r, in(r, where, "smem_bytes"), member(v, "smem_bytes"), 0,
                       TCC_MAX_SMEM_BYTES, &out->smem_bytes) ||
        !read_unsigned(r, in(r, where, "cluster"), member(v, "cluster"), 1, TCC_MAX_CLUSTER,
                       &out->cluster) ||
        !read_flag(r, in(r, where, "overlaps"), member(v, "overlaps"), &out->overlaps))
        return false;
    READ_ARRAY(r, where, "params", v, TCC_MAX_PARAMS, tcc_param, read_param, out->params,
               out->n_params);
    if (r->amd && out->cluster > 1)
        return FAIL(r, where, "a cluster of %u, at most 1", out->cluster);
    out->max_grid = INT32_MAX;
    if (r->amd && out->block > 1) /* HIP counts all threads of a grid in 32 bits */
        out->max_grid = UINT32_MAX / out->block;
    return true;
}

/* {"memset": {"pointer": ARG} or {"workspace": OFFSET}, "bytes": …, "byte": …} */
static bool read_fill(reader *r, const char *where, const tcc_json *v, tcc_fill *out)
{
    const char *there = in(r, where, "memset");
    const tcc_json *to = member(v, "memset");
    unsigned byte, arg;
    out->arg = -1;
    if (member(to, "pointer")) {
        if (!read_arg(r, in(r, there, "pointer"), member(to, "pointer"), false, &arg))
            return false;
        if (r->kernel->args[arg].role == TCC_ARG_IN)
            return FAIL(r, there, "'%s' is an input", r->kernel->args[arg].name);
        out->arg = (int)arg;
    } else if (!read_expr(r, in(r, there, "workspace"), member(to, "workspace"), &out->offset)) {
        return false;
    }
    if (!read_expr(r, in(r, where, "bytes"), member(v, "bytes"), &out->bytes) ||
        !read_unsigned(r, in(r, where, "byte"), member(v, "byte"), 0, 255, &byte))
        return false;
    out->byte = (uint8_t)byte;
    return true;
}

static bool read_step(reader *r, const char *where, const tcc_json *v, tcc_step *out)
{
    if (member(v, "launch")) {
        out->kind = TCC_STEP_LAUNCH;
        return read_entry(r, where, v, &out->entry);
    }
    if (member(v, "memset")) {
        out->kind = TCC_STEP_MEMSET;
        return read_fill(r, where, v, &out->fill);
    }
    return fail(r, where, "no step of a known kind");
}

static bool read_variant(reader *r, const char *where, const tcc_json *v, tcc_variant *out)
{
    if (!read_string(r, in(r, where, "name"), member(v, "name"), &out->name) ||
        !read_optional_expr(r, in(r, where, "cost"), member(v, "cost"), &out->cost) ||
        !read_optional_expr(r, in(r, where, "workspace_bytes"), member(v, "workspace_bytes"),
                            &out->workspace_bytes))
        return false;
    READ_ARRAY(r, where, "requires", v, TCC_MAX_PARAMS, tcc_requirement, read_requirement,
               out->requirements, out->n_requirements);
    READ_ARRAY(r, where, "steps", v, TCC_MAX_STEPS, tcc_step, read_step, out->steps, out->n_steps);
    if (!out->n_steps)
        return fail(r, where, "no steps");
    size_t n_maps = 0, max_maps = r->amd ? 0 : TCC_MAX_TENSOR_MAPS;
    for (size_t i = 0; i < out->n_steps; i++)
        for (size_t j = 0; j < out->steps[i].entry.n_params; j++)
            n_maps += out->steps[i].entry.params[j].kind == TCC_PARAM_TENSOR_MAP;
    return n_maps <= max_maps || FAIL(r, where, "%zu tensor maps, at most %zu", n_maps, max_maps);
}

/* ---- kernels ---------------------------------------------------------------------------- */

static bool read_dim_name(reader *r, const char *where, const tcc_json *v, const char **out)
{
    if (!read_string(r, where, v, out))
        return false;
    for (size_t i = 0; &r->kernel->dims[i] != out; i++)
        if (!strcmp(r->kernel->dims[i], *out))
            return FAIL(r, where, "dimension '%s' twice", *out);
    return true;
}

static bool read_role(reader *r, const char *where, const tcc_json *v, tcc_arg_role *out)
{
    const char *name;
    if (!read_string(r, where, v, &name))
        return false;
    for (size_t i = 0; i < COUNT(roles); i++)
        if (!strcmp(roles[i].name, name)) {
            *out = roles[i].role;
            return true;
        }
    return FAIL(r, where, "unknown role '%s'", name);
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

static bool read_indexing(reader *r, const char *where, const tcc_json *v, indexing *out)
{
    size_t i = 0;
    if (!read_count(r, where, v, 0, TCC_MAX_RANK, &out->rank))
        return false;
    const char **names = TCC_NEW_ARRAY(r->arena, const char *, out->rank);
    for (const tcc_json *e = v->first; e; e = e->next) {
        if (!read_string(r, at(r, where, i), e, &names[i]))
            return false;
        i++;
    }
    out->names = names;
    return true;
}

/* All ways; *out is the only one, or NULL. */
static bool read_indices(reader *r, const char *where, const tcc_json *arg, size_t rank,
                         const char *const **out)
{
    const indexing *ways;
    size_t n;
    READ_ARRAY(r, where, "indices", arg, TCC_MAX_DIMS, indexing, read_indexing, ways, n);
    for (size_t i = 0; i < n; i++)
        if (ways[i].rank != rank)
            return FAIL(r, in(r, where, "indices"), "%zu indices of %zu dimensions", ways[i].rank,
                        rank);
    *out = n == 1 ? ways[0].names : NULL;
    return true;
}

static bool read_arg_info(reader *r, const char *where, const tcc_json *v, tcc_arg_info *out,
                          const tcc_elem_type **type, const tcc_extent **extents_out)
{
    if (!read_string(r, in(r, where, "name"), member(v, "name"), &out->name) ||
        !read_role(r, in(r, where, "role"), member(v, "role"), &out->role) ||
        !read_type(r, in(r, where, "type"), member(v, "type"), type))
        return false;
    out->type = (*type)->name;
    if (out->role == TCC_ARG_SCALAR)
        return is_scalar_type(*type) || FAIL(r, where, "a scalar cannot be %s", out->type);
    const tcc_json *dims = member(v, "dims");
    size_t rank;
    if (!read_count(r, in(r, where, "dims"), dims, 0, TCC_MAX_RANK, &rank))
        return false;
    tcc_extent *extents = TCC_NEW_ARRAY(r->arena, tcc_extent, rank);
    const char **names = TCC_NEW_ARRAY(r->arena, const char *, rank);
    int64_t *numbers = TCC_NEW_ARRAY(r->arena, int64_t, rank);
    if (!read_extents(r, in(r, where, "dims"), dims, extents))
        return false;
    for (size_t i = 0; i < rank; i++) {
        if (!is_one_dimension(&extents[i]))
            return fail(r, at(r, in(r, where, "dims"), i), "a product, wants one dimension");
        bool symbolic = extents[i].dim >= 0;
        names[i] = symbolic ? r->kernel->dims[extents[i].dim] : NULL;
        numbers[i] = symbolic ? -1 : extents[i].number;
    }
    if (member(v, "indices") && /* only comparisons need it */
        !read_indices(r, where, v, rank, &out->indices))
        return false;
    out->rank = (unsigned)rank;
    out->dims = names;
    out->extents = numbers;
    *extents_out = extents;
    return true;
}

static bool read_args(reader *r, const char *where, const tcc_json *v)
{
    tcc_kernel_desc *k = r->kernel;
    size_t n;
    if (!read_count(r, where, v, 1, TCC_MAX_ARGS, &n))
        return false;
    tcc_arg_info *args = TCC_NEW_ARRAY(r->arena, tcc_arg_info, n);
    const tcc_elem_type **types = TCC_NEW_ARRAY(r->arena, const tcc_elem_type *, n);
    const tcc_extent **extents = TCC_NEW_ARRAY(r->arena, const tcc_extent *, n);
    k->args = args;
    k->arg_types = types;
    k->arg_extents = extents;
    const tcc_json *e;
    for (e = v->first; e; e = e->next) {
        size_t i = k->n_args;
        if (!read_arg_info(r, at(r, where, i), e, &args[i], &types[i], &extents[i]))
            return false;
        for (size_t j = 0; j < i; j++)
            if (!strcmp(args[j].name, args[i].name))
                return FAIL(r, at(r, where, i), "argument '%s' twice", args[i].name);
        k->n_args++;
    }
    return true;
}

static bool read_kernel(reader *r, const char *where, const tcc_json *v, tcc_kernel_desc *out)
{
    r->kernel = out;
    const tcc_json *reference = member(v, "reference"); /* only the CPU reference needs it */
    if (!read_string(r, in(r, where, "name"), member(v, "name"), &out->name) ||
        (reference && !read_string(r, in(r, where, "reference"), reference, &out->reference)))
        return false;
    READ_ARRAY(r, where, "dims", v, TCC_MAX_DIMS, const char *, read_dim_name, out->dims,
               out->n_dims);
    if (!read_args(r, in(r, where, "args"), member(v, "args")))
        return false;
    const tcc_json *flops = member(v, "flops"); /* only benchmarks need it */
    const tcc_json *sum = member(v, "sum");
    const tcc_elem_type *type;
    if ((flops && !read_product(r, in(r, where, "flops"), flops, &out->flops)) ||
        (sum && !read_type(r, in(r, where, "sum"), sum, &type)))
        return false;
    out->sum = sum ? type->name : NULL;
    READ_ARRAY(r, where, "variants", v, TCC_MAX_VARIANTS, tcc_variant, read_variant, out->variants,
               out->n_variants);
    return true;
}

/* What was written before manifests had a field for it is of version 1. */
static bool check_version(reader *r, const tcc_json *json)
{
    int64_t version = 1;
    if (member(json, "manifest") &&
        !read_int(r, "$.manifest", member(json, "manifest"), 1, max_number, &version))
        return false;
    return version == TCC_MANIFEST_VERSION || FAIL(r, "$", "it is of version %lld, known is %d",
                                                   (long long)version, TCC_MANIFEST_VERSION);
}

static bool read_device(reader *r, const char *where, const tcc_json *v, tcc_device_attrs *out)
{
    for (int i = 0; i < TCC_DEVICE_ATTR_COUNT; i++) {
        const char *name = tcc_device_attr_name((tcc_device_attr)i);
        if (!read_int(r, in(r, where, name), member(v, name), 1, INT32_MAX, &out->value[i]))
            return false;
    }
    return true;
}

static bool read_manifest(reader *r, const tcc_json *json, tcc_manifest *out)
{
    const char *version;
    if (!is(json, TCC_JSON_OBJECT))
        return fail(r, "$", "an object is expected");
    if (!check_version(r, json))
        return false;
    if (!read_string(r, "$.tcc", member(json, "tcc"), &version) ||
        !read_string(r, "$.target", member(json, "target"), &out->target) ||
        !read_string(r, "$.file", member(json, "file"), &out->file) ||
        !read_device(r, "$.device", member(json, "device"), &out->device))
        return false;
    r->amd = !strncmp(out->target, "gfx", 3);
    READ_ARRAY(r, "$", "kernels", json, 4096, tcc_kernel_desc, read_kernel, out->kernels,
               out->n_kernels);
    for (size_t i = 0; i < out->n_kernels; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(out->kernels[i].name, out->kernels[j].name))
                return FAIL(r, at(r, "$.kernels", i), "kernel '%s' twice", out->kernels[i].name);
    return true;
}

tcc_status tcc_manifest_read(tcc_arena *arena, tcc_diag *diag, const char *json,
                             const tcc_manifest **out)
{
    jmp_buf oom;
    if (setjmp(oom)) {
        tcc_arena_set_oom(arena, NULL);
        return TCC_ERR_MEMORY;
    }
    tcc_arena_set_oom(arena, &oom);
    reader r = {.arena = arena, .diag = diag};
    tcc_manifest *manifest = TCC_NEW(arena, tcc_manifest);
    size_t bad;
    const char *text = json ? json : "";
    const tcc_json *root = tcc_json_parse(arena, text, strlen(text), &bad);
    bool ok = root ? read_manifest(&r, root, manifest)
                   : FAIL(&r, "$", "no valid JSON at byte %zu", bad);
    tcc_arena_set_oom(arena, NULL);
    *out = manifest;
    return ok ? TCC_OK : TCC_ERR_SYNTAX;
}

/* ---- PTX -------------------------------------------------------------------------------- */

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
static const char head[] = "// tcc-manifest ", version[] = TEXT_OF(TCC_MANIFEST_VERSION),
                  prefix[] = "//! ";

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
        tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0}, "no manifest at the head of this PTX: it was "
                  "not written by tcc");
        return NULL;
    }
    line += sizeof head - 1;
    len -= sizeof head - 1;
    if (len != sizeof version - 1 || memcmp(line, version, len)) {
        tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0}, "this PTX has a manifest of version %.*s, "
                  "known is %s", (int)(len < 20 ? len : 20), line, version);
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

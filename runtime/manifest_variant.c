/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "runtime/manifest_reader.h"

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
    int bytes;
    CUtensorMapSwizzle swizzle;
} swizzles[] = {{0, CU_TENSOR_MAP_SWIZZLE_NONE},
                {32, CU_TENSOR_MAP_SWIZZLE_32B},
                {64, CU_TENSOR_MAP_SWIZZLE_64B},
                {128, CU_TENSOR_MAP_SWIZZLE_128B}};

static bool read_requirement(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_requirement *out)
{
    if (tcc_json_member(v, "dim")) {
        out->kind = TCC_REQUIRE_EXTENT;
        out->min = 0;
        out->max = INT64_MAX;
        const tcc_json *min = tcc_json_member(v, "min"), *max = tcc_json_member(v, "max");
        if (!min && !max)
            return tcc_bad_manifest(r, where, "neither min nor max");
        return tcc_read_extent(r, tcc_place_in(r, where, "dim"), tcc_json_member(v, "dim"), &out->extent) &&
               (!min || tcc_read_int(r, tcc_place_in(r, where, "min"), min, 0, tcc_max_number, &out->min)) &&
               (!max || tcc_read_int(r, tcc_place_in(r, where, "max"), max, 0, tcc_max_number, &out->max));
    }
    if (tcc_json_member(v, "span")) {
        out->kind = TCC_REQUIRE_SPAN;
        return tcc_read_product(r, tcc_place_in(r, where, "span"), tcc_json_member(v, "span"), &out->pitch) &&
               tcc_read_int(r, tcc_place_in(r, where, "bytes_per_elem"), tcc_json_member(v, "bytes_per_elem"), 1,
                            tcc_max_number, &out->bytes_per_elem) &&
               tcc_read_int(r, tcc_place_in(r, where, "most"), tcc_json_member(v, "most"), 0, tcc_max_number,
                            &out->max);
    }
    if (!tcc_read_int(r, tcc_place_in(r, where, "align"), tcc_json_member(v, "align"), 1, tcc_max_number, &out->align))
        return false;
    if (tcc_json_member(v, "arg")) {
        out->kind = TCC_REQUIRE_ADDRESS;
        return tcc_read_arg(r, tcc_place_in(r, where, "arg"), tcc_json_member(v, "arg"), false, &out->arg);
    }
    if (tcc_json_member(v, "pitch")) {
        out->kind = TCC_REQUIRE_PITCH;
        return tcc_read_product(r, tcc_place_in(r, where, "pitch"), tcc_json_member(v, "pitch"), &out->pitch) &&
               tcc_read_int(r, tcc_place_in(r, where, "bytes_per_elem"), tcc_json_member(v, "bytes_per_elem"), 1, 64,
                            &out->bytes_per_elem);
    }
    return tcc_bad_manifest(r, where, "unknown kind of requirement");
}

static const tcc_elem_type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof elem_types / sizeof *elem_types; i++)
        if (!strcmp(elem_types[i].name, name))
            return &elem_types[i];
    return NULL;
}

bool tcc_read_type(tcc_manifest_reader *r, const char *where, const tcc_json *v, const tcc_elem_type **out)
{
    const char *name;
    if (!tcc_read_string(r, where, v, &name))
        return false;
    *out = find_type(name);
    return *out || TCC_BAD_MANIFEST(r, where, "unknown type '%s'", name);
}

static bool read_swizzle(tcc_manifest_reader *r, const char *where, const tcc_json *v, const tcc_tma_recipe *map,
                         CUtensorMapSwizzle *out)
{
    int64_t bytes;
    if (!tcc_read_int(r, where, v, 0, 128, &bytes))
        return false;
    for (size_t i = 0; i < sizeof swizzles / sizeof *swizzles; i++)
        if (swizzles[i].bytes == bytes) {
            *out = swizzles[i].swizzle;
            int64_t row_bytes = (int64_t)map->box[0] * (map->type->bits / 8);
            if (row_bytes % 16 || (bytes && row_bytes > bytes))
                return TCC_BAD_MANIFEST(r, where, "a box row of %lld bytes does not fit a swizzle of %lld",
                                        (long long)row_bytes, (long long)bytes);
            return true;
        }
    return TCC_BAD_MANIFEST(r, where, "%lld is not one of 0, 32, 64, 128", (long long)bytes);
}

/* The bytes of a tensor in the workspace, which need not be said: then it has all that there are. */
static bool read_bytes(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_expr *out)
{
    return tcc_read_optional_expr(r, tcc_place_in(r, where, "bytes"), tcc_json_member(v, "bytes"), out);
}

/* "none", "read", "write" or "both". */
static bool read_access(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_param *out)
{
    static const char *const names[] = {"none", "read", "write", "both"};
    const char *name;
    out->says_access = tcc_json_member(v, "access");
    if (!out->says_access)
        return true;
    where = tcc_place_in(r, where, "access");
    if (!tcc_read_string(r, where, tcc_json_member(v, "access"), &name))
        return false;
    unsigned i = 0;
    while (i < 4 && strcmp(name, names[i]))
        i++;
    out->reads = i & 1;
    out->writes = i & 2;
    return i < 4 || TCC_BAD_MANIFEST(r, where, "unknown access '%s'", name);
}

/* Which tensor a map is of: {"arg": NAME} or {"workspace": OFFSET, "bytes": BYTES}. */
static bool read_mapped(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_tma_recipe *out)
{
    unsigned arg = 0;
    const tcc_json *offset = tcc_json_member(v, "workspace");
    bool ok = offset ? tcc_read_expr(r, tcc_place_in(r, where, "workspace"), offset, &out->offset) &&
                           read_bytes(r, where, v, &out->bytes)
                     : tcc_read_arg(r, tcc_place_in(r, where, "arg"), tcc_json_member(v, "arg"), false, &arg);
    out->arg = offset ? -1 : (int)arg;
    return ok;
}

static bool read_map(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_tma_recipe *out)
{
    const tcc_json *dims = tcc_json_member(v, "dims"), *strides = tcc_json_member(v, "strides"),
                   *box = tcc_json_member(v, "box");
    size_t rank, n;
    if (!read_mapped(r, where, v, out) ||
        !tcc_read_type(r, tcc_place_in(r, where, "type"), tcc_json_member(v, "type"), &out->type) ||
        (out->type->bits % 8 && !TCC_BAD_MANIFEST(r, tcc_place_in(r, where, "type"), "does not have whole bytes")) ||
        !tcc_read_count(r, tcc_place_in(r, where, "dims"), dims, 1, TCC_MAX_TMA_RANK, &rank) ||
        !tcc_read_extents(r, tcc_place_in(r, where, "dims"), dims, out->dims) ||
        !tcc_read_count(r, tcc_place_in(r, where, "strides"), strides, rank - 1, rank - 1, &n) ||
        !tcc_read_count(r, tcc_place_in(r, where, "box"), box, rank, rank, &n))
        return false;
    out->rank = (unsigned)rank;
    for (size_t i = 0; i < rank; i++) {
        if (i && !tcc_read_product(r, tcc_place_at(r, tcc_place_in(r, where, "strides"), i - 1),
                                   tcc_json_element(strides, i - 1), &out->strides[i - 1]))
            return false;
        if (!tcc_read_unsigned(r, tcc_place_at(r, tcc_place_in(r, where, "box"), i), tcc_json_element(box, i), 1,
                               TCC_MAX_BOX, &out->box[i]))
            return false;
    }
    return read_swizzle(r, tcc_place_in(r, where, "swizzle"), tcc_json_member(v, "swizzle"), out, &out->swizzle);
}

static bool read_param(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_param *out)
{
    if (tcc_json_member(v, "tensor_map")) {
        out->kind = TCC_PARAM_TENSOR_MAP;
        tcc_tma_recipe *map = TCC_NEW(r->arena, tcc_tma_recipe);
        out->map = map;
        return read_map(r, tcc_place_in(r, where, "tensor_map"), tcc_json_member(v, "tensor_map"), map) &&
               read_access(r, where, v, out);
    }
    if (tcc_json_member(v, "pointer")) {
        out->kind = TCC_PARAM_POINTER;
        return tcc_read_arg(r, tcc_place_in(r, where, "pointer"), tcc_json_member(v, "pointer"), false, &out->arg) &&
               read_access(r, where, v, out);
    }
    if (tcc_json_member(v, "workspace")) {
        out->kind = TCC_PARAM_WORKSPACE;
        return tcc_read_expr(r, tcc_place_in(r, where, "workspace"), tcc_json_member(v, "workspace"), &out->offset) &&
               read_bytes(r, where, v, &out->bytes) && read_access(r, where, v, out);
    }
    if (tcc_json_member(v, "dim")) {
        out->kind = TCC_PARAM_DIM;
        return tcc_read_extent(r, tcc_place_in(r, where, "dim"), tcc_json_member(v, "dim"), &out->extent);
    }
    if (tcc_json_member(v, "scalar")) {
        out->kind = TCC_PARAM_SCALAR;
        return tcc_read_arg(r, tcc_place_in(r, where, "scalar"), tcc_json_member(v, "scalar"), true, &out->arg);
    }
    return tcc_bad_manifest(r, where, "unknown kind of parameter");
}

/* 0 or 1, and 0 where there is none. */
static bool read_flag(tcc_manifest_reader *r, const char *where, const tcc_json *v, bool *out)
{
    unsigned flag = 0;
    bool ok = !v || tcc_read_unsigned(r, where, v, 0, 1, &flag);
    *out = flag;
    return ok;
}

static bool read_entry(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_entry *out)
{
    if (!tcc_read_string(r, tcc_place_in(r, where, "launch"), tcc_json_member(v, "launch"), &out->name) ||
        !tcc_read_expr(r, tcc_place_in(r, where, "grid"), tcc_json_member(v, "grid"), &out->grid) ||
        !tcc_read_unsigned(r, tcc_place_in(r, where, "block"), tcc_json_member(v, "block"), 1, TCC_MAX_BLOCK,
                           &out->block) ||
        !tcc_read_unsigned(r, tcc_place_in(r, where, "smem_bytes"), tcc_json_member(v, "smem_bytes"), 0,
                           TCC_MAX_SMEM_BYTES, &out->smem_bytes) ||
        !tcc_read_unsigned(r, tcc_place_in(r, where, "cluster"), tcc_json_member(v, "cluster"), 1, TCC_MAX_CLUSTER,
                           &out->cluster) ||
        !read_flag(r, tcc_place_in(r, where, "fewer"), tcc_json_member(v, "fewer"), &out->fewer) ||
        !read_flag(r, tcc_place_in(r, where, "overlaps"), tcc_json_member(v, "overlaps"), &out->overlaps))
        return false;
    TCC_READ_ARRAY(r, where, "params", v, TCC_MANIFEST_PARAMS, tcc_param, read_param, out->params, out->n_params);
    if (r->amd && out->cluster > 1)
        return TCC_BAD_MANIFEST(r, where, "a cluster of %u, at most 1", out->cluster);
    out->max_grid = INT32_MAX;
    if (r->amd && out->block > 1) /* HIP counts all threads of a grid in 32 bits */
        out->max_grid = UINT32_MAX / out->block;
    return true;
}

/* {"memset": {"pointer": ARG} or {"workspace": OFFSET}, "bytes": …, "byte": …} */
static bool read_fill(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_fill *out)
{
    const char *there = tcc_place_in(r, where, "memset");
    const tcc_json *to = tcc_json_member(v, "memset");
    unsigned byte, arg;
    out->arg = -1;
    if (tcc_json_member(to, "pointer")) {
        if (!tcc_read_arg(r, tcc_place_in(r, there, "pointer"), tcc_json_member(to, "pointer"), false, &arg))
            return false;
        if (r->kernel->args[arg].role == TCC_ARG_IN)
            return TCC_BAD_MANIFEST(r, there, "'%s' is an input", r->kernel->args[arg].name);
        out->arg = (int)arg;
    } else if (!tcc_read_expr(r, tcc_place_in(r, there, "workspace"), tcc_json_member(to, "workspace"), &out->offset)) {
        return false;
    }
    if (!tcc_read_expr(r, tcc_place_in(r, where, "bytes"), tcc_json_member(v, "bytes"), &out->bytes) ||
        !tcc_read_unsigned(r, tcc_place_in(r, where, "byte"), tcc_json_member(v, "byte"), 0, 255, &byte))
        return false;
    out->byte = (uint8_t)byte;
    return true;
}

static bool read_step(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_step *out)
{
    if (tcc_json_member(v, "launch")) {
        out->kind = TCC_STEP_LAUNCH;
        return read_entry(r, where, v, &out->entry);
    }
    if (tcc_json_member(v, "memset")) {
        out->kind = TCC_STEP_MEMSET;
        return read_fill(r, where, v, &out->fill);
    }
    return tcc_bad_manifest(r, where, "unknown kind of step");
}

bool tcc_read_variant(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_variant *out)
{
    if (!tcc_read_string(r, tcc_place_in(r, where, "name"), tcc_json_member(v, "name"), &out->name) ||
        !tcc_read_optional_expr(r, tcc_place_in(r, where, "cost"), tcc_json_member(v, "cost"), &out->cost) ||
        !tcc_read_optional_expr(r, tcc_place_in(r, where, "workspace_bytes"), tcc_json_member(v, "workspace_bytes"),
                                &out->workspace_bytes))
        return false;
    TCC_READ_ARRAY(r, where, "requires", v, TCC_MANIFEST_REQUIREMENTS, tcc_requirement, read_requirement, out->requirements,
                   out->n_requirements);
    TCC_READ_ARRAY(r, where, "steps", v, TCC_MANIFEST_STEPS, tcc_step, read_step, out->steps, out->n_steps);
    if (!out->n_steps)
        return tcc_bad_manifest(r, where, "no steps");
    size_t n_maps = 0, max_maps = r->amd ? 0 : TCC_MANIFEST_TENSOR_MAPS;
    for (size_t i = 0; i < out->n_steps; i++)
        for (size_t j = 0; j < out->steps[i].entry.n_params; j++)
            n_maps += out->steps[i].entry.params[j].kind == TCC_PARAM_TENSOR_MAP;
    return (n_maps <= max_maps || TCC_BAD_MANIFEST(r, where, "%zu tensor maps, at most %zu", n_maps, max_maps)) &&
           tcc_check_plan(r, where, out);
}

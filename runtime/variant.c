/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/variant.h"

#include <math.h> /* with only libc's functions: a standalone program must not need libm */
#include <string.h>

#include "runtime/argument.h"

/* Limits of cuTensorMapEncodeTiled. */
#define MAX_MAP_EXTENT (UINT64_C(1) << 32)
#define MAX_MAP_STRIDE_BYTES ((INT64_C(1) << 40) - 1)

int64_t tcc_extent_value(const tcc_extent *e, const int64_t *dims)
{
    int64_t n = e->dim < 0 ? e->number : dims[e->dim];
    if (e->of && !tcc_expr_value(e->of, dims, NULL, &n))
        n = INT64_MAX;
    if (!e->multiple || n % e->multiple == 0)
        return n;
    return n <= INT64_MAX - e->multiple ? n - n % e->multiple + e->multiple : INT64_MAX;
}

bool tcc_extents_multiply(const tcc_extent *factors, size_t n, int64_t scale, const int64_t *dims, int64_t *out)
{
    *out = scale;
    for (size_t i = 0; i < n; i++)
        if (__builtin_mul_overflow(*out, tcc_extent_value(&factors[i], dims), out))
            return false;
    return true;
}

/* ---- validity --------------------------------------------------------------------------- */

static bool requirement_holds(const tcc_requirement *q, const int64_t *dims, const tcc_arg *args)
{
    int64_t n;
    switch (q->kind) {
    case TCC_REQUIRE_EXTENT:
        n = tcc_extent_value(&q->extent, dims);
        return q->min <= n && n <= q->max;
    case TCC_REQUIRE_ADDRESS:
        return args[q->arg].device % (uint64_t)q->align == 0;
    case TCC_REQUIRE_PITCH:
        return tcc_extents_multiply(q->pitch.factors, q->pitch.n, q->bytes_per_elem, dims, &n) &&
               n % q->align == 0;
    case TCC_REQUIRE_SPAN:
        return tcc_extents_multiply(q->pitch.factors, q->pitch.n, q->bytes_per_elem, dims, &n) && n <= q->max;
    }
    return false;
}

/* The extents and arguments of a launch, and what of it is planned. */
typedef struct planner {
    const tcc_kernel_desc *kernel;
    const tcc_device_attrs *device;
    const int64_t *dims;
    const tcc_arg *args;
    int64_t room; /* of workspace */
    tcc_plan *plan;
    size_t n_maps;
} planner;

/* A number of bytes; false where it is none. */
static bool byte_count(const planner *p, const tcc_expr *e, int64_t *out)
{
    return tcc_expr_value(e, p->dims, p->device, out) && *out >= 0;
}

/* The bytes of the tensor that a map is of, which in the workspace begins at the offset. */
static bool mapped_bytes(const planner *p, const tcc_tma_recipe *map, int64_t *offset, int64_t *bytes)
{
    if (map->arg >= 0) /* of whole bytes */
        return tcc_arg_bytes(p->kernel, (size_t)map->arg, p->dims, bytes);
    if (!byte_count(p, &map->offset, offset) || *offset > p->plan->workspace_bytes)
        return false;
    *bytes = p->plan->workspace_bytes - *offset;
    return !map->bytes.n || byte_count(p, &map->bytes, bytes);
}

/* False where the driver could not encode the map, or it is of more than its tensor has. In the workspace its address
 * is an offset yet. */
static bool map_values(const planner *p, const tcc_tma_recipe *map, tcc_tma_values *out)
{
    const int64_t *dims = p->dims;
    int64_t offset = 0, room, last = 0;
    if (!mapped_bytes(p, map, &offset, &room))
        return false;
    *out = (tcc_tma_values){.address = map->arg < 0 ? (uint64_t)offset : p->args[map->arg].device};
    for (unsigned i = 0; i < map->rank; i++) {
        out->dims[i] = (uint64_t)tcc_extent_value(&map->dims[i], dims);
        if (!out->dims[i] || out->dims[i] > MAX_MAP_EXTENT)
            return false;
    }
    for (unsigned i = 0; i + 1 < map->rank; i++) {
        int64_t bytes;
        const tcc_product *stride = &map->strides[i];
        if (!tcc_extents_multiply(stride->factors, stride->n, map->type->bits / 8, dims, &bytes) ||
            bytes > MAX_MAP_STRIDE_BYTES)
            return false;
        out->strides_bytes[i] = (uint64_t)bytes;
        if (__builtin_mul_overflow((int64_t)out->dims[i + 1] - 1, bytes, &bytes) ||
            __builtin_add_overflow(last, bytes, &last))
            return false;
    }
    return last <= room && (int64_t)out->dims[0] <= (room - last) / (map->type->bits / 8);
}

static bool plan_param(planner *p, const tcc_param *param)
{
    int64_t offset;
    switch (param->kind) {
    case TCC_PARAM_DIM: return tcc_extent_value(&param->extent, p->dims) <= TCC_MAX_EXTENT;
    case TCC_PARAM_TENSOR_MAP:
        return map_values(p, param->map, &p->plan->maps[p->n_maps++]);
    case TCC_PARAM_WORKSPACE:
        return byte_count(p, &param->offset, &offset) && offset <= p->plan->workspace_bytes;
    case TCC_PARAM_POINTER:
    case TCC_PARAM_SCALAR: return true;
    }
    return false;
}

static bool plan_entry(planner *p, const tcc_entry *e, tcc_step_plan *out)
{
    int64_t grid;
    if (!tcc_expr_value(&e->grid, p->dims, p->device, &grid) || grid < 0 || grid > e->max_grid ||
        grid % e->cluster)
        return false;
    out->grid = (unsigned)grid;
    for (size_t i = 0; i < e->n_params; i++)
        if (!plan_param(p, &e->params[i]))
            return false;
    return true;
}

/* Nothing is set outside an argument or the workspace. */
static bool plan_fill(const planner *p, const tcc_fill *f, tcc_step_plan *out)
{
    int64_t n = out->n_bytes, room = p->plan->workspace_bytes;
    if (!byte_count(p, &f->bytes, &n))
        return false;
    out->n_bytes = n;
    if (f->arg < 0)
        return byte_count(p, &f->offset, &out->to) && out->to <= room && n <= room - out->to;
    bool halves = p->kernel->arg_types[f->arg]->bits < 8;
    out->to = (int64_t)p->args[f->arg].device;
    return tcc_arg_bytes(p->kernel, (size_t)f->arg, p->dims, &room) && n <= (halves ? room / 2 + room % 2 : room);
}

/* Whether `v` can run; fills the plan as far as it goes. */
static bool try_variant(planner *p, const tcc_variant *v)
{
    p->plan->variant = v;
    p->n_maps = 0;
    for (size_t i = 0; i < v->n_requirements; i++)
        if (!requirement_holds(&v->requirements[i], p->dims, p->args))
            return false;
    if (!byte_count(p, &v->workspace_bytes, &p->plan->workspace_bytes) || p->plan->workspace_bytes > p->room)
        return false;
    for (size_t i = 0; i < v->n_steps; i++) {
        const tcc_step *s = &v->steps[i];
        tcc_step_plan *out = &p->plan->steps[i];
        *out = (tcc_step_plan){0};
        if (!(s->kind == TCC_STEP_LAUNCH ? plan_entry(p, &s->entry, out)
                                         : plan_fill(p, &s->fill, out)))
            return false;
    }
    return true;
}

/* Tries variants, the cheapest first, until one is valid. */
static bool choose_variant(planner *p, tcc_ranking_cache *rankings)
{
    const tcc_kernel_desc *k = p->kernel;
    tcc_ranking r = rankings ? tcc_ranking_cache_get(rankings, p->dims)
                             : tcc_ranking_compute(k, p->device, p->dims);
    for (size_t i = 0; i < k->n_variants; i++)
        if (try_variant(p, &k->variants[r.order[i]]))
            return true;
    return false;
}

int64_t tcc_plan_offset(const tcc_expr *offset, const tcc_device_attrs *device, const int64_t *dims)
{
    int64_t value = 0;
    return tcc_expr_value(offset, dims, device, &value) ? value : 0;
}

tcc_status tcc_plan_launch(const tcc_kernel_desc *k, const tcc_device_attrs *device,
                           tcc_ranking_cache *rankings, const int64_t *dims, size_t n_dims,
                           const tcc_arg *args, size_t n_args, int64_t room, bool is_launched, tcc_diag *diag,
                           tcc_plan *out)
{
    bool empty;
    if (!tcc_check_launch(k, dims, n_dims, args, n_args, is_launched, diag, &empty))
        return TCC_ERR_ARGUMENT;
    out->variant = NULL;
    planner p = {.kernel = k, .device = device, .dims = dims, .args = args, .room = room, .plan = out};
    if (empty || choose_variant(&p, rankings))
        return TCC_OK;
    tcc_error(diag, TCC_ERR_NO_VARIANT, (tcc_loc){0},
              "kernel '%s': no variant is valid for these extents and addresses", k->name);
    return TCC_ERR_NO_VARIANT;
}

/* ---- scalars ---------------------------------------------------------------------------- */

/* To the nearest whole number, of two the even one; |x| is below 2^53. */
static double round_to_even(double x)
{
    int64_t below = (int64_t)x - (x < (double)(int64_t)x);
    double over = x - (double)below;
    return (double)(below + (over > 0.5 || (over == 0.5 && below % 2)));
}

/* x to `bits` significant bits, nothing below 2^min_exponent. */
static double round_to(double x, int bits, int min_exponent, double max)
{
    if (x == 0 || !isfinite(x))
        return x;
    int exponent;
    frexp(x, &exponent); /* |x| < 2^exponent */
    int last = exponent - bits > min_exponent ? exponent - bits : min_exponent;
    double r = ldexp(round_to_even(ldexp(x, -last)), last);
    return copysign(fabs(r) > max ? INFINITY : r, x);
}

float tcc_scalar_value(const char *type, double number)
{
    if (!strcmp(type, "f16"))
        return (float)round_to(number, 11, -24, 65504);
    if (!strcmp(type, "bf16"))
        return (float)round_to(number, 8, -133, 0x1.fep127);
    return (float)number;
}

bool tcc_scalar_fits(const char *type, double number)
{
    if (!strcmp(type, "i32"))
        return number >= INT32_MIN && number <= INT32_MAX && number == (int32_t)number;
    return !strcmp(type, "f64") || !isfinite(number) || isfinite(tcc_scalar_value(type, number));
}

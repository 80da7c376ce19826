/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/interp.h"

#include <math.h>
#include <string.h>

#include "interp/exec.h"
#include "ir/grid.h"
#include "ir/signature.h"
#include "ir/target.h"
#include "support/extent.h"
#include "support/strides.h"

int64_t tcc_run_extent(const tcc_run *run, tcc_dim dim)
{
    if (!dim.name)
        return dim.size;
    return tcc_dims_value(tcc_attr_list(&run->signature->attrs, "dims"), run->options->dims, dim.name);
}

int64_t tcc_run_ctas(const tcc_run *run, tcc_attr grid)
{
    return tcc_grid_ctas(grid, tcc_attr_list(&run->signature->attrs, "dims"), run->options->dims, INT64_MAX);
}

/* Of a persistent kernel, where there are as many tiles: two for each of two roles that take them in turn, since what
 * a tile has left undone shows in the next one. */
enum { TILES_OF_A_CTA = 4 };

int64_t tcc_run_launched(const tcc_run *run, int64_t tiles, int64_t ctas)
{
    int64_t sms = tcc_target_of(run->f->ir)->sms / ctas;
    if (run->options->timeline.fn)
        return tiles < sms ? tiles : sms;
    int64_t most = tiles <= TILES_OF_A_CTA ? 1 : (tiles - 1) / (TILES_OF_A_CTA - 1);
    return 1 + (int64_t)(((uint64_t)most - 1 + run->options->seed) % (uint64_t)most);
}

int64_t tcc_run_dim(const tcc_run *run, tcc_attr a)
{
    const tcc_attr *of = a.kind == TCC_ATTR_LIST ? a.list.items : NULL;
    if (tcc_attr_is_record(a, "roundup", "di") && of[2].i > 0)
        return (tcc_run_dim(run, of[1]) + of[2].i - 1) / of[2].i * of[2].i;
    int64_t n;
    if (a.kind == TCC_ATTR_INDEX)
        return !tcc_dims_index(tcc_attr_list(&run->signature->attrs, "dims"), run->options->dims, a.index, &n) ? -1
               : n < 0                                                                                        ? 0
                                                                                                              : n;
    return a.kind == TCC_ATTR_STR   ? tcc_run_extent(run, (tcc_dim){a.s, 0})
           : a.kind == TCC_ATTR_INT ? a.i
                                    : -1;
}

const tcc_param *tcc_run_param(const tcc_run *run, const char *name)
{
    for (size_t i = 0; i < run->n_params; i++)
        if (!strcmp(run->params[i].name, name))
            return &run->params[i];
    return NULL;
}

static bool holds_floats(const tcc_param *p)
{
    return tcc_scalar_classify(p->type->elem) == TCC_CLASS_FLOAT;
}

/* All NaNs are read as a single one: others may have the bits of poison, or be signalling. */
tcc_cell tcc_param_load(const tcc_param *p, int64_t at)
{
    double v;
    __atomic_load(&p->data[at], &v, __ATOMIC_RELAXED); /* CTAs share it */
    if (!holds_floats(p))
        return (tcc_cell){.i = tcc_truncate(v)};
    return (tcc_cell){.f = isnan(v) ? (double)NAN : v};
}

void tcc_param_store(const tcc_run *run, const tcc_param *p, int64_t at, tcc_cell v)
{
    double stored = !holds_floats(p) ? (double)tcc_int_wrap(p->type->elem, v.i)
                    : run->machine   ? tcc_round_float(v.f, p->type->elem)
                                     : v.f;
    if (!run->rehearsal)
        __atomic_store(&p->data[at], &stored, __ATOMIC_RELAXED);
}

/* ---- memory ---------------------------------------------------------------------------- */

int64_t tcc_param_bytes(const tcc_param *p)
{
    unsigned bits = tcc_scalar_bits(p->type->elem);
    return bits < 8 ? p->count / 2 + p->count % 2 : p->count * (bits / 8);
}

/* The bits that begin at a byte: of one element, or of the two in it. */
static uint64_t load_bits(const tcc_param *p, int64_t byte, unsigned elem_bits)
{
    int64_t first = byte * 8 / elem_bits;
    uint64_t bits = tcc_encode(tcc_param_load(p, first), p->type->elem);
    if (elem_bits < 8 && first + 1 < p->count)
        bits |= tcc_encode(tcc_param_load(p, first + 1), p->type->elem) << elem_bits;
    return bits;
}

static void store_bits(const tcc_run *run, const tcc_param *p, int64_t byte, unsigned elem_bits,
                       uint64_t bits)
{
    int64_t first = byte * 8 / elem_bits;
    tcc_param_store(run, p, first, tcc_decode(bits, p->type->elem));
    if (elem_bits < 8 && first + 1 < p->count)
        tcc_param_store(run, p, first + 1, tcc_decode(bits >> elem_bits, p->type->elem));
}

/* Of n bytes from `at` on, those in the unit (an element or a byte) that contains `at`; *offset
 * receives their position in it. */
static int64_t part_of_unit(int64_t at, int64_t n, unsigned elem_bits, int64_t *offset)
{
    int64_t unit = elem_bits < 8 ? 1 : elem_bits / 8;
    *offset = at % unit;
    return n < unit - *offset ? n : unit - *offset;
}

void tcc_param_load_bytes(const tcc_param *p, int64_t at, int64_t n, uint8_t *to)
{
    unsigned bits = tcc_scalar_bits(p->type->elem);
    for (int64_t part, offset; n > 0; at += part, to += part, n -= part) {
        part = part_of_unit(at, n, bits, &offset);
        uint64_t unit = load_bits(p, at - offset, bits);
        memcpy(to, (const uint8_t *)&unit + offset, (size_t)part); /* little-endian, as the GPU */
    }
}

void tcc_param_store_bytes(const tcc_run *run, const tcc_param *p, int64_t at, int64_t n,
                           const uint8_t *from)
{
    unsigned bits = tcc_scalar_bits(p->type->elem);
    for (int64_t part, offset; n > 0; at += part, from += part, n -= part) {
        part = part_of_unit(at, n, bits, &offset);
        bool whole = part * 8 >= bits;
        uint64_t unit = whole ? 0 : load_bits(p, at - offset, bits);
        memcpy((uint8_t *)&unit + offset, from, (size_t)part);
        store_bits(run, p, at - offset, bits, unit);
    }
}

/* ---- limits ---------------------------------------------------------------------------- */

tcc_status tcc_run_check_room(const tcc_run *run, const tcc_op *op, uint64_t n, uint64_t elem_bytes)
{
    uint64_t bytes, used = tcc_arena_used(run->scratch);
    if (__builtin_mul_overflow(n, elem_bytes, &bytes))
        bytes = UINT64_MAX;
    if (bytes <= run->max_bytes && used <= run->max_bytes - bytes)
        return TCC_OK;
    return TCC_FAIL(run, TCC_ERR_LIMIT, op, "needs %llu bytes in addition to %llu; the limit is %llu",
                    (unsigned long long)bytes, (unsigned long long)used,
                    (unsigned long long)run->max_bytes);
}

tcc_status tcc_run_end(const tcc_run *run, uint64_t steps, const tcc_op *op)
{
    if (steps <= run->max_steps)
        return TCC_ERR_INTERRUPTED;
    return TCC_FAIL(run, TCC_ERR_LIMIT, op, "runs more than %llu ops; is there an endless loop?",
                    (unsigned long long)run->max_steps);
}

/* ---- parameters ------------------------------------------------------------------------ */

static tcc_status check_dims(const tcc_run *run)
{
    tcc_attr dims = tcc_attr_list(&run->signature->attrs, "dims");
    for (size_t i = 0; i < dims.list.n; i++) {
        if (dims.list.items[i].kind != TCC_ATTR_STR)
            return TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL, "'dims' needs names");
        if (run->options->dims[i] < 0 || run->options->dims[i] > TCC_MAX_EXTENT)
            return TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL, "%s is %lld, expected 0 to %lld",
                            dims.list.items[i].s, (long long)run->options->dims[i],
                            (long long)TCC_MAX_EXTENT);
    }
    return TCC_OK;
}

/* What dimension d has room for, with those after it. */
static bool add_dimension(tcc_param *p, unsigned d)
{
    const tcc_type *t = p->type;
    if (t->strides)
        return tcc_strides_span(t->rank - d, p->extents + d, p->strides + d, &p->count);
    int64_t extent = p->extents[d], multiple = d + 1 == t->rank ? tcc_type_row_elems(t) : 1;
    int64_t factor = extent ? (extent + multiple - 1) / multiple * multiple : 1;
    return !__builtin_mul_overflow(p->count, factor, &p->count);
}

/* What is written must not overlap itself. */
static tcc_status check_apart(const tcc_run *run, const tcc_param *p)
{
    tcc_attr roles = tcc_attr_list(&run->signature->attrs, "roles");
    size_t i = (size_t)(p - run->params);
    bool is_read = i < roles.list.n && roles.list.items[i].kind == TCC_ATTR_STR && !strcmp(roles.list.items[i].s, "in");
    int64_t least;
    if (!p->type->strides || !p->count || is_read)
        return TCC_OK;
    unsigned rank = p->type->rank, d = tcc_strides_overlap(rank, p->extents, p->strides, &least);
    return d == rank ? TCC_OK
                     : TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL,
                                "stride %u of '%s' is %lld, and must be for its elements not to overlap at least %lld",
                                d, p->name, (long long)p->strides[d], (long long)least);
}

/* By the type that the function itself has for it: several of the caller's dimensions may be one there. */
static tcc_status bind_param(tcc_run *run, tcc_param *p, const char *name, const tcc_type *t)
{
    *p = (tcc_param){.name = name ? name : "", .type = t, .count = 1};
    p->extents = TCC_NEW_ARRAY(run->scratch, int64_t, t->rank);
    p->strides = TCC_NEW_ARRAY(run->scratch, int64_t, t->rank);
    bool empty = false;
    for (unsigned d = t->rank; d-- > 0;) {
        p->extents[d] = tcc_run_extent(run, t->dims[d]);
        p->strides[d] = t->strides ? tcc_run_extent(run, t->strides[d]) : p->count;
        if (p->extents[d] < 0 || p->strides[d] < 0)
            return TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL, "'%s' has an unknown dimension %s",
                            p->name, p->extents[d] < 0 ? t->dims[d].name : t->strides[d].name);
        empty |= p->extents[d] == 0;
        if (!add_dimension(p, d) || p->count > TCC_MAX_ELEMENTS)
            return TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL, "'%s' is too large", p->name);
    }
    if (empty)
        p->count = 0;
    return TCC_OK;
}

/* The arguments, followed by the workspace tensors. */
/* [A_stride_1, …], which are 1 */
static tcc_status check_units(tcc_run *run)
{
    tcc_attr units = tcc_attr_list(&run->f->attrs, "units");
    for (size_t i = 0; i < units.list.n; i++)
        if (tcc_run_dim(run, units.list.items[i]) != 1)
            return TCC_FAIL(run, TCC_ERR_NO_VARIANT, NULL, "%s is %lld, expected 1", units.list.items[i].s,
                            (long long)tcc_run_dim(run, units.list.items[i]));
    return TCC_OK;
}

static tcc_status bind_params(tcc_run *run)
{
    const tcc_block *args = run->signature->body, *workspace = run->workspace->body, *own = run->f->body;
    bool is_entry = tcc_func_is_entry(run->f);
    run->n_args = args->n_args;
    run->n_params = args->n_args + workspace->n_args;
    run->params = TCC_NEW_ARRAY(run->scratch, tcc_param, run->n_params);
    tcc_status status = check_dims(run);
    status = status ? status : check_units(run);
    for (size_t i = 0; i < run->n_params && !status; i++) {
        const tcc_value *param = i < args->n_args ? args->args[i] : workspace->args[i - args->n_args];
        status = bind_param(run, &run->params[i], param->name, is_entry ? param->type : own->args[i]->type);
        if (!status && i < args->n_args)
            status = check_apart(run, &run->params[i]);
    }
    return status;
}

/* A workspace tensor holds what steps before have left, at first what no number is taken for, or 0. */
static tcc_status bind_workspace(tcc_run *run, tcc_param *p)
{
    const tcc_param *same = NULL;
    for (const tcc_run *before = run->before; before && !same; before = before->before)
        same = tcc_run_param(before, p->name);
    if (same && (same->count != p->count || same->type->elem != p->type->elem))
        return TCC_FAIL(run, TCC_ERR_TYPE, NULL, "'%s' differs from the tensor of this name in an earlier step",
                        p->name);
    tcc_status status = tcc_run_check_room(run, NULL, same ? 0 : (uint64_t)p->count, sizeof *p->data);
    if (status)
        return status;
    p->data = same ? same->data : TCC_NEW_ARRAY(run->scratch, double, (size_t)p->count);
    double nothing = tcc_func_is_zeroed(run->f, p->name) ? 0
                     : holds_floats(p)                   ? (double)NAN
                                                         : (double)tcc_int_wrap(p->type->elem, 0x5a5a5a5a);
    for (int64_t i = 0; !same && i < p->count; i++)
        p->data[i] = nothing;
    return TCC_OK;
}

static tcc_status bind_data(tcc_run *run, double *const *args)
{
    tcc_status status = TCC_OK;
    for (size_t i = 0; i < run->n_params && !status; i++) {
        tcc_param *p = &run->params[i];
        if (i >= run->n_args) {
            status = bind_workspace(run, p);
            continue;
        }
        p->data = args[i];
        if (p->count && !p->data)
            return TCC_FAIL(run, TCC_ERR_ARGUMENT, NULL, "no data for '%s'", p->name);
    }
    return status;
}

/* ---- conditions ------------------------------------------------------------------------ */

int64_t tcc_run_product(const tcc_run *run, tcc_attr factors, int64_t n)
{
    for (size_t i = 0; i < factors.list.n; i++)
        if (__builtin_mul_overflow(n, tcc_run_dim(run, factors.list.items[i]), &n))
            return -1;
    return n;
}

/* Assumptions about alignment matter only in target-level code, which declares its requirements.
 * Addresses are assumed to have exactly the alignment that the function requires. */
static tcc_status check_alignment(tcc_run *run, const char *name, int64_t bytes)
{
    const tcc_param *p = tcc_run_param(run, name);
    if (!p)
        return TCC_OK;
    size_t i = (size_t)(p - run->params);
    const int64_t *given = i < run->n_args ? run->options->alignments : NULL;
    if (given && bytes > 0 && given[i] % bytes)
        return TCC_FAIL(run, TCC_ERR_NO_VARIANT, NULL, "'%s' is aligned to %lld bytes, expected %lld",
                        name, (long long)given[i], (long long)bytes);
    if (run->base_align[i] < bytes)
        run->base_align[i] = bytes;
    return TCC_OK;
}

static tcc_status check_condition(tcc_run *run, tcc_attr condition)
{
    const tcc_attr *a = condition.list.items;
    bool least = tcc_attr_is_record(condition, "min", "si");
    if (least || tcc_attr_is_record(condition, "max", "si")) {
        int64_t extent = tcc_run_dim(run, a[1]);
        if (least ? extent < a[2].i : extent > a[2].i)
            return TCC_FAIL(run, TCC_ERR_NO_VARIANT, NULL, "%s is %lld, expected at %s %lld",
                            tcc_extent_text(run->scratch, a[1].s), (long long)extent, least ? "least" : "most", (long long)a[2].i);
    } else if (tcc_attr_is_record(condition, "align", "si")) {
        return check_alignment(run, a[1].s, a[2].i);
    } else if (tcc_attr_is_record(condition, "pitch", "lii") && a[3].i > 0) {
        int64_t bytes = tcc_run_product(run, a[1], a[2].i);
        if (bytes % a[3].i)
            return TCC_FAIL(run, TCC_ERR_NO_VARIANT, NULL,
                            "a pitch of %lld bytes, expected multiples of %lld", (long long)bytes,
                            (long long)a[3].i);
    } else if (tcc_attr_is_record(condition, "span", "lii")) {
        int64_t bytes = tcc_run_product(run, a[1], a[2].i);
        if (bytes > a[3].i)
            return TCC_FAIL(run, TCC_ERR_NO_VARIANT, NULL,
                            "a span of %lld, expected at most %lld", (long long)bytes,
                            (long long)a[3].i);
    } else {
        return TCC_FAIL(run, TCC_ERR_UNSUPPORTED, NULL, "unknown condition in 'requires'");
    }
    return TCC_OK;
}

/* What a row kernel makes of vectors that rows have as wholes: [pitch, X, 16]. */
static tcc_status check_pitch(tcc_run *run, tcc_attr condition)
{
    const tcc_attr *a = condition.list.items;
    const tcc_value *p = tcc_func_parameter(run->signature ? run->signature : run->f, a[1].s);
    tcc_dim last = p && p->type->kind == TCC_KIND_tensor && p->type->rank && !p->type->strides
                       ? p->type->dims[p->type->rank - 1]
                       : (tcc_dim){NULL, 0};
    if (!last.name || a[2].i < 1)
        return TCC_OK;
    int64_t extent = tcc_run_dim(run, (tcc_attr){.kind = TCC_ATTR_STR, .s = last.name});
    if (extent * tcc_scalar_bits(p->type->elem) % (8 * a[2].i))
        return TCC_FAIL(run, TCC_ERR_NO_VARIANT, NULL, "rows of '%s' have %lld elements, expected multiples of %lld bytes",
                        a[1].s, (long long)extent, (long long)a[2].i);
    return TCC_OK;
}

/* [multiple, K, 8] */
static tcc_status check_multiple(tcc_run *run, tcc_attr condition)
{
    const tcc_attr *a = condition.list.items;
    int64_t extent = tcc_run_dim(run, a[1]);
    if (a[2].i > 0 && extent % a[2].i)
        return TCC_FAIL(run, TCC_ERR_NO_VARIANT, NULL, "%s is %lld, expected a multiple of %lld",
                        tcc_extent_text(run->scratch, a[1].s), (long long)extent, (long long)a[2].i);
    return TCC_OK;
}

static tcc_status check_conditions(tcc_run *run)
{
    tcc_attr requires = tcc_attr_list(&run->f->attrs, "requires");
    run->base_align = TCC_NEW_ARRAY(run->scratch, int64_t, run->n_params);
    for (size_t i = 0; i < run->n_params; i++)
        run->base_align[i] = i < run->n_args ? (tcc_scalar_bits(run->params[i].type->elem) + 7) / 8
                                             : TCC_WORKSPACE_ALIGN;
    tcc_status status = TCC_OK;
    for (size_t i = 0; i < requires.list.n && !status; i++)
        status = check_condition(run, requires.list.items[i]);
    tcc_attr assumes = tcc_attr_list(&run->f->attrs, "assumes");
    if (tcc_func_is_entry(run->f))
        return status;
    for (size_t i = 0; i < assumes.list.n && !status; i++)
        if (tcc_attr_is_record(assumes.list.items[i], "min", "si") ||
            tcc_attr_is_record(assumes.list.items[i], "max", "si"))
            status = check_condition(run, assumes.list.items[i]);
        else if (tcc_attr_is_record(assumes.list.items[i], "multiple", "si"))
            status = check_multiple(run, assumes.list.items[i]);
        else if (tcc_attr_find(&run->f->attrs, "row") && tcc_attr_is_record(assumes.list.items[i], "pitch", "si"))
            status = check_pitch(run, assumes.list.items[i]);
    return status;
}

/* ---- entry ----------------------------------------------------------------------------- */

static bool has_op(const tcc_func *f, tcc_opcode code)
{
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == code)
            return true;
    return false;
}

/* Everything but the data. TCC_OK when f is valid for what is given. */
static tcc_status prepare(tcc_run *run, const tcc_func *f, const tcc_interp_options *options,
                          tcc_arena *scratch, tcc_diag *diag)
{
    *run = (tcc_run){.f = f,
                     .signature = options->signature,
                     .options = options,
                     .scratch = scratch,
                     .diag = diag,
                     .machine = options->machine,
                     .max_steps = options->max_steps ? options->max_steps : TCC_INTERP_MAX_STEPS,
                     .max_bytes = options->max_bytes ? options->max_bytes : TCC_INTERP_MAX_BYTES};
    if (!run->signature)
        run->signature = tcc_func_signature(f, scratch, diag);
    run->workspace = tcc_func_workspace(f, scratch, diag);
    if (!run->signature || !run->workspace)
        return TCC_ERR_TYPE;
    tcc_status status = bind_params(run);
    return status ? status : check_conditions(run);
}

tcc_status tcc_interp_check(const tcc_func *f, const tcc_interp_options *options,
                            tcc_arena *scratch, tcc_diag *diag)
{
    const tcc_func *variant = tcc_func_main(f);
    tcc_status status = TCC_OK;
    for (size_t i = 0; i < tcc_func_step_count(variant) && !status; i++) {
        tcc_run run;
        const tcc_func *step = tcc_func_step_at(variant, i);
        if (!step) {
            tcc_error(diag, TCC_ERR_TYPE, variant->loc, "@%s has a step that does not exist", variant->name);
            return TCC_ERR_TYPE;
        }
        status = prepare(&run, step, options, scratch, diag);
    }
    return status;
}

static tcc_status run_step(tcc_run *run)
{
    const tcc_func *f = run->f;
    if (tcc_func_is_entry(f))
        return tcc_run_kernel(run);
    tcc_status status = TCC_OK;
    if (has_op(f, TCC_OP_tile_grid) || has_op(f, TCC_OP_tile_ctas))
        status = tcc_run_tiles(run);
    return status ? status : tcc_run_fields(run);
}

tcc_status tcc_interp_run(const tcc_func *f, const tcc_interp_options *options, double *const *args,
                          tcc_arena *scratch, tcc_diag *diag)
{
    const tcc_func *variant = tcc_func_main(f);
    const tcc_run *before = NULL;
    tcc_interp_options unseen = *options;
    unseen.timeline.fn = NULL;
    tcc_status status = tcc_interp_check(f, options, scratch, diag);
    for (size_t i = 0; i < tcc_func_step_count(variant) && !status; i++) {
        tcc_run *run = TCC_NEW(scratch, tcc_run);
        const tcc_func *step = tcc_func_step_at(variant, i);
        status = prepare(run, step, step == variant ? options : &unseen, scratch, diag);
        run->before = before;
        before = run;
        if (!status)
            status = bind_data(run, args);
        if (!status)
            status = run_step(run);
    }
    return status;
}

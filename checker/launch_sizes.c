/* launch_sizes: sizes for which a plan is walked through. What could be wrong with a count of tiles or iterations shows
 * in launches that have as little as is allowed, at the end of a tile and right behind it: dimensions of which a grid
 * counts tiles are the least that is allowed, one tile, or a little more; in the latter case CTAs that may compute
 * several tiles do so as well. Those of results that no grid counts are longer than a tile can be: either a CTA goes
 * through all of them, or some are not written.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "checker/launch.h"
#include "ir/grid.h"
#include "ir/signature.h"
#include "support/extent.h"
#include "support/strides.h"

enum { LONG = 600, SHORT = 3, SUMMED = 150, FACTOR = 2, MAX_ELEMS = 1 << 22, MAX_CTAS = 128 };

/* What is known of a dimension. */
typedef struct dimension {
    int64_t tile; /* elements along it of a tile that grids count; 0: no grid counts it */
    bool factor;  /* multiplied with another that has tiles */
    bool result;  /* of a tensor that is written */
    bool mapped;  /* of a tensor map, where it is at least 1 */
} dimension;

/* ---- numbers ------------------------------------------------------------------------------- */

int64_t tcc_launch_extent(const tcc_lsizes *s, tcc_attr a)
{
    if (a.kind == TCC_ATTR_INT)
        return a.i;
    if (a.kind == TCC_ATTR_STR) {
        int64_t n = tcc_dims_value(s->dims, s->extents, a.s);
        return n < INT64_MAX ? n : -1;
    }
    const tcc_attr *of = a.list.items;
    if (!tcc_attr_is_record(a, "roundup", "di") || of[2].i <= 0)
        return -1;
    int64_t n = tcc_launch_extent(s, of[1]);
    return n < 0 ? -1 : (n + of[2].i - 1) / of[2].i * of[2].i;
}

int64_t tcc_launch_multiply(const tcc_lsizes *s, tcc_attr factors, int64_t n)
{
    for (size_t i = 0; i < factors.list.n; i++) {
        int64_t extent = tcc_launch_extent(s, factors.list.items[i]);
        if (extent < 0 || __builtin_mul_overflow(n, extent, &n))
            return -1;
    }
    return n;
}

int64_t tcc_launch_dim(const tcc_lsizes *s, tcc_dim dim)
{
    return tcc_launch_extent(s, tcc_attr_of_dim(dim));
}

int64_t tcc_launch_elements(const tcc_lsizes *s, const tcc_type *t)
{
    int64_t extents[TCC_MANIFEST_RANK], strides[TCC_MANIFEST_RANK], n = 1, multiple = tcc_type_row_elems(t);
    for (unsigned d = 0; d < t->rank; d++) {
        extents[d] = tcc_launch_dim(s, t->dims[d]);
        strides[d] = t->strides ? tcc_launch_dim(s, t->strides[d]) : 0;
        if (extents[d] < 0 || strides[d] < 0)
            return -1;
        int64_t room = d + 1 < t->rank ? extents[d] : (extents[d] + multiple - 1) / multiple * multiple;
        if (!t->strides && __builtin_mul_overflow(n, room, &n))
            return -1;
    }
    return !t->strides || tcc_strides_span(t->rank, extents, strides, &n) ? n : -1;
}

/* More than any launch has, of clusters of any number of CTAs. */
static const int64_t TOO_MANY_CTAS = INT64_C(3) << 30;

int64_t tcc_launch_ctas(const tcc_lsizes *s, const tcc_func *f)
{
    return tcc_grid_ctas(tcc_attr_list(&f->attrs, "grid"), s->dims, s->extents, TOO_MANY_CTAS);
}

const char *tcc_launch_sizes_text(const tcc_lsizes *s, tcc_arena *scratch)
{
    const char *text = "";
    for (size_t d = 0; d < s->dims.list.n; d++)
        text = tcc_arena_printf(scratch, "%s%s%s = %lld", text, d ? ", " : "", s->dims.list.items[d].s,
                                (long long)s->extents[d]);
    return s->dims.list.n ? text : "no dimensions";
}

/* ---- what there is of a dimension ---------------------------------------------------------- */

/* The last dimension among those that are multiplied; NULL: there is none. */
static dimension *last_of(const tcc_lsizes *s, dimension *all, tcc_attr a)
{
    dimension *last = NULL;
    if (tcc_attr_is_record(a, "roundup", "di"))
        return NULL;
    for (size_t i = 0; a.kind == TCC_ATTR_LIST && i < a.list.n; i++) {
        dimension *d = last_of(s, all, a.list.items[i]);
        last = d ? d : last;
    }
    tcc_extent_factor factor;
    for (const char *left = a.kind == TCC_ATTR_STR ? a.s : ""; tcc_extent_take_name(&left, &factor);) {
        int d = tcc_dims_find(s->dims, &factor);
        last = d >= 0 ? &all[d] : last;
    }
    return last;
}

/* If several are multiplied, the tiles are those of the last. */
static void learn_tiles(const tcc_lsizes *s, dimension *all, tcc_attr axis)
{
    const tcc_index_expr *of;
    int64_t tile = axis.kind == TCC_ATTR_INDEX ? tcc_grid_taken(axis.index, &of) : 0;
    dimension *last = NULL;
    for (size_t d = 0; tile && d < s->dims.list.n; d++)
        if (tcc_index_has(of, TCC_FACTOR_DIM, s->dims.list.items[d].s)) {
            last = &all[d];
            last->factor = true;
        }
    if (last && last->tile < tile)
        last->tile = tile;
}

static void learn_step(const tcc_lsizes *s, const tcc_attrs *attrs, dimension *all)
{
    tcc_attr grid = tcc_attr_list(attrs, "grid"), params = tcc_attr_list(attrs, "params");
    for (size_t x = 0; x < grid.list.n; x++)
        learn_tiles(s, all, grid.list.items[x]);
    for (size_t i = 0; i < params.list.n; i++) {
        bool map = tcc_attr_is_record(params.list.items[i], "tensor_map", "slllis");
        tcc_attr extents = map ? params.list.items[i].list.items[2] : (tcc_attr){.kind = TCC_ATTR_LIST};
        for (size_t d = 0; d < extents.list.n; d++) {
            dimension *of = last_of(s, all, extents.list.items[d]);
            if (of)
                of->mapped = true;
        }
    }
}

static void learn(const tcc_lsizes *s, const tcc_func *variant, const tcc_func *parameters, dimension *all)
{
    for (size_t i = 0; i < tcc_func_step_count(variant); i++)
        learn_step(s, &tcc_func_step_at(variant, i)->attrs, all);
    tcc_attr roles = tcc_attr_list(&parameters->attrs, "roles");
    for (size_t i = 0; i < parameters->body->n_args; i++) {
        const tcc_type *t = parameters->body->args[i]->type;
        for (unsigned d = 0; d < t->rank && strcmp(roles.list.items[i].s, "in"); d++) {
            tcc_attr name = {.kind = TCC_ATTR_STR, .s = t->dims[d].name ? t->dims[d].name : ""};
            dimension *of = last_of(s, all, name);
            if (of)
                of->result = true;
        }
    }
}

/* ---- samples ------------------------------------------------------------------------------- */

/* The extent of a dimension in a sample, before conditions are asked. */
static int64_t wanted(const dimension *d, unsigned sample, int64_t length)
{
    if (!sample) /* without tiles, results or boxes there is no launch */
        return d->tile || d->factor || d->result || d->mapped;
    bool behind = sample != 2;
    if (d->tile)
        return d->tile + behind;
    if (d->factor)
        return behind ? FACTOR : 1;
    return d->result ? length : behind ? SUMMED : SUMMED / 2;
}

/* Whether neither a grid nor a tensor is too large to be looked at as a whole. */
static bool fit(const tcc_lsizes *s, const tcc_func *variant, const tcc_func *parameters)
{
    for (size_t i = 0; i < tcc_func_step_count(variant); i++)
        if (tcc_launch_ctas(s, tcc_func_step_at(variant, i)) > MAX_CTAS)
            return false;
    for (size_t i = 0; i < parameters->body->n_args; i++) {
        int64_t n = tcc_launch_elements(s, parameters->body->args[i]->type);
        if (n < 0 || n > MAX_ELEMS)
            return false;
    }
    return true;
}

/* Whether a GPU has grids that large. */
static bool can_be_launched(const tcc_lsizes *s, const tcc_func *variant)
{
    bool can = true;
    for (size_t i = 0, n = tcc_func_step_count(variant); i < n && can; i++) {
        const tcc_func *step = tcc_func_step_at(variant, i);
        can = tcc_attr_int(&step->attrs, "fewer_ctas", 0) || tcc_launch_ctas(s, step) <= INT32_MAX;
    }
    return can || !s->dims.list.n;
}

static bool may_be_smaller(const tcc_func *variant)
{
    bool any = false;
    for (size_t i = 0; i < tcc_func_step_count(variant); i++)
        any |= tcc_attr_int(&tcc_func_step_at(variant, i)->attrs, "fewer_ctas", 0);
    return any;
}

/* What may be of each dimension before any condition. A result without elements is not computed. */
static tcc_lbounds *widest(const tcc_lsizes *s, const dimension *all, tcc_arena *scratch)
{
    tcc_lbounds *bounds = TCC_NEW_ARRAY(scratch, tcc_lbounds, s->dims.list.n);
    for (size_t i = 0; i < s->dims.list.n; i++)
        bounds[i] = (tcc_lbounds){.least = all[i].result, .most = INT32_MAX, .unit = 1};
    return bounds;
}

/* What is being chosen. */
typedef struct choice {
    tcc_lsizes *s;
    const tcc_func *variant, *parameters;
    tcc_lbounds *bounds;
    bool *strides; /* by dimension: whether it is a stride */
    tcc_arena *scratch;
} choice;

/* Gives a dimension an extent, or a stride a number, as near as may be to one. False: nothing is left. */
static bool choose_one(choice *c, size_t i, int64_t extent)
{
    if (tcc_launch_narrow(c->s, c->bounds, c->scratch) >= 0)
        return false;
    tcc_lbounds *b = &c->bounds[i];
    extent = (extent + b->unit - 1) / b->unit * b->unit;
    c->s->extents[i] = extent > b->most ? b->most : extent < b->least ? b->least : extent;
    b->least = b->most = c->s->extents[i];
    return true;
}

/* Which of the dimensions a stride is; -1: it is a number. */
static int place_of(const tcc_lsizes *s, tcc_dim stride)
{
    const char *name = stride.name ? stride.name : "";
    tcc_extent_factor factor;
    return tcc_extent_take(&name, &factor) ? tcc_dims_find(s->dims, &factor) : -1;
}

/* Gives a tensor's strides numbers, so that its elements are apart: those that must be 1 first, then from the last on,
 * and more than is needed where sizes are more than the least. */
static bool choose_strides(choice *c, const tcc_type *t)
{
    int64_t reach = 1;
    bool units = true, done[TCC_MANIFEST_RANK] = {0};
    for (unsigned n = 0; n < t->rank; n++) {
        unsigned next = t->rank;
        for (unsigned d = 0; d < t->rank; d++) {
            int at = place_of(c->s, t->strides[d]);
            if (!done[d] && (!units || (at >= 0 ? c->bounds[at].most == 1 : t->strides[d].size == 1)))
                next = d;
        }
        if (next == t->rank && units) {
            units = false;
            n--;
            continue;
        }
        int at = place_of(c->s, t->strides[next]);
        if (at >= 0 && !choose_one(c, (size_t)at, reach + (c->s->sample && reach > 1)))
            return false;
        done[next] = true;
        int64_t extent = tcc_launch_dim(c->s, t->dims[next]), stride = tcc_launch_dim(c->s, t->strides[next]);
        if (extent > 1 && ((at >= 0 && stride < reach) || __builtin_mul_overflow(extent - 1, stride, &extent) ||
                           __builtin_add_overflow(reach, extent, &reach)))
            return false;
    }
    return true;
}

/* The same for all tensors, once extents are chosen. */
static bool choose_all_strides(choice *c)
{
    const tcc_block *params = c->parameters->body;
    bool ok = true;
    for (size_t i = 0; i < c->s->dims.list.n; i++)
        if (!c->strides[i])
            c->bounds[i].least = c->bounds[i].most = c->s->extents[i];
    for (size_t i = 0; i < params->n_args && ok; i++)
        ok = !params->args[i]->type->strides || choose_strides(c, params->args[i]->type);
    return ok;
}

/* Gives a dimension after the other an extent, and the others what that leaves them; then strides. False: nothing is
 * left. */
static bool choose_extents(choice *c, const dimension *all, int64_t length)
{
    tcc_lsizes *s = c->s;
    size_t n = s->dims.list.n;
    bool ok = true;
    c->bounds = widest(s, all, c->scratch);
    for (size_t i = 0; i < n && ok; i++)
        ok = c->strides[i] || choose_one(c, i, wanted(&all[i], s->sample, length));
    tcc_lbounds *open = TCC_NEW_ARRAY(c->scratch, tcc_lbounds, n);
    if (ok && n)
        memcpy(open, c->bounds, n * sizeof *open);
    ok = ok && choose_all_strides(c);
    if (!ok || !tcc_launch_raise(s, c->variant, c->parameters, c->strides))
        return ok;
    c->bounds = open;
    return choose_all_strides(c);
}

static bool *find_strides(const tcc_lsizes *s, const tcc_func *parameters, tcc_arena *scratch)
{
    bool *strides = TCC_NEW_ARRAY(scratch, bool, s->dims.list.n + 1) + 1; /* before it: those that are numbers */
    for (size_t i = 0; i < parameters->body->n_args; i++) {
        const tcc_type *t = parameters->body->args[i]->type;
        for (unsigned d = 0; t->strides && d < t->rank; d++)
            strides[place_of(s, t->strides[d])] = true;
    }
    return strides;
}

bool tcc_launch_choose_sizes(const tcc_func *variant, const tcc_func *parameters, tcc_lsizes *s, tcc_arena *scratch)
{
    s->dims = tcc_attr_list(&parameters->attrs, "dims");
    size_t n = s->dims.list.n;
    bool last = s->sample + 1 == TCC_L_SAMPLES;
    if (last ? !may_be_smaller(variant) : s->sample && !n)
        return false;
    s->conditions = tcc_launch_conditions(variant, scratch);
    s->extents = TCC_NEW_ARRAY(scratch, int64_t, n);
    dimension *all = TCC_NEW_ARRAY(scratch, dimension, n);
    learn(s, variant, parameters, all);
    static const int64_t lengths[] = {LONG, SUMMED, SHORT};
    enum { N_LENGTHS = sizeof lengths / sizeof *lengths };
    choice c = {s, variant, parameters, .strides = find_strides(s, parameters, scratch), .scratch = scratch};
    bool allowed = false;
    s->large = true;
    for (unsigned i = s->length; i < N_LENGTHS && s->large; i++) {
        s->length = i;
        allowed = choose_extents(&c, all, lengths[i]) && tcc_launch_holds(s, false) && can_be_launched(s, variant);
        s->large = !fit(s, variant, parameters);
    }
    s->may_shrink = s->length + 1 < N_LENGTHS;
    return allowed && !(last && s->large);
}

bool tcc_launch_is_possible(const tcc_func *variant, const tcc_func *parameters, tcc_diag *diag, tcc_arena *scratch)
{
    tcc_lsizes s = {.conditions = tcc_launch_conditions(variant, scratch)};
    if (!tcc_launch_holds(&s, true)) /* whatever is not fixed */
        return false;
    s.dims = tcc_attr_list(&parameters->attrs, "dims");
    dimension *all = TCC_NEW_ARRAY(scratch, dimension, s.dims.list.n);
    learn(&s, variant, parameters, all);
    tcc_lbounds *bounds = widest(&s, all, scratch);
    int none = tcc_launch_narrow(&s, bounds, scratch);
    if (none < 0)
        return true;
    const char *multiple = bounds[none].unit == 1
                               ? ""
                               : tcc_arena_printf(scratch, ", and a multiple of %lld", (long long)bounds[none].unit);
    tcc_warn(diag, variant->loc,
             "'%s' is never launched: 'requires' leaves no %s, which must be %lld at least, %lld at most%s", variant->name,
             s.dims.list.items[none].s, (long long)bounds[none].least, (long long)bounds[none].most,
             multiple);
    return false;
}

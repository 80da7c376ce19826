/* launch_sums: dimensions whose names are in parentheses, which say how they are computed of others.
 *
 * Nothing is concluded from conditions on them. Where the sizes chosen of the others break one, or leave a tensor empty
 * or a grid too few tiles, these are raised, one after the other, as long as that helps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "checker/launch.h"
#include "ir/grid.h"
#include "ir/signature.h"

enum { MOST_MORE = 512 };

static bool is_sum(tcc_attr a)
{
    return a.kind == TCC_ATTR_STR && tcc_extent_is_sum(a.s);
}

/* Whether an expression is of dimensions that are multiplied, to which a constant is added. */
static bool multiplies(const tcc_index_expr *x, int64_t constant)
{
    bool is = x->n && x->n == 1u + (constant != 0) && (!constant || x->terms[1].number == constant);
    for (size_t f = 0; is && f < x->terms[0].n; f++)
        is = x->terms[0].factors[f].kind == TCC_FACTOR_DIM;
    return is;
}

/* Whether an extent is a sum that is less than that. */
static bool lacks(const tcc_lsizes *s, tcc_attr extent, int64_t least)
{
    return is_sum(extent) && tcc_launch_extent(s, extent) < least;
}

/* Whether an axis of a grid is computed of a sum that is less than a tile, or not more. */
static bool has_few_tiles(const tcc_lsizes *s, tcc_attr axis)
{
    const tcc_index_expr *of;
    int64_t n, tile = axis.kind == TCC_ATTR_INDEX ? tcc_grid_taken(axis.index, &of) : 0;
    if (!tile || multiplies(of, tile - 1) || !tcc_dims_index(s->dims, s->extents, of, &n))
        return false;
    return n - (tile - 1) < (!s->sample ? 1 : tile + (s->sample != 2));
}

static size_t count_in_step(const tcc_lsizes *s, const tcc_attrs *attrs)
{
    tcc_attr grid = tcc_attr_list(attrs, "grid"), params = tcc_attr_list(attrs, "params");
    size_t n = 0;
    for (size_t x = 0; x < grid.list.n; x++)
        n += has_few_tiles(s, grid.list.items[x]);
    for (size_t i = 0; i < params.list.n; i++) {
        const tcc_attr *map = params.list.items[i].list.items;
        for (size_t d = 0; tcc_attr_is_record(params.list.items[i], "tensor_map", "slllis") && d < map[2].list.n; d++)
            n += lacks(s, map[2].list.items[d], 1);
    }
    return n;
}

/* How much is not as it should be. */
static size_t count_lacking(const tcc_lsizes *s, const tcc_func *variant, const tcc_func *parameters)
{
    size_t n = tcc_launch_broken(s);
    for (size_t i = 0, steps = tcc_func_step_count(variant); i < steps; i++)
        n += count_in_step(s, &tcc_func_step_at(variant, i)->attrs);
    tcc_attr roles = tcc_attr_list(&parameters->attrs, "roles");
    for (size_t i = 0; i < parameters->body->n_args; i++) {
        const tcc_type *t = parameters->body->args[i]->type;
        for (unsigned d = 0; d < t->rank && strcmp(roles.list.items[i].s, "in"); d++)
            n += t->dims[d].name && lacks(s, (tcc_attr){.kind = TCC_ATTR_STR, .s = t->dims[d].name}, 1);
    }
    return n;
}

bool tcc_launch_raise(tcc_lsizes *s, const tcc_func *variant, const tcc_func *parameters, const bool *fixed)
{
    size_t lacking = count_lacking(s, variant, parameters);
    bool raised = false;
    for (size_t i = 0; i < s->dims.list.n && lacking; i++) {
        int64_t from = s->extents[i], best = from;
        if (fixed[i])
            continue;
        for (int64_t more = 1; more <= MOST_MORE && lacking; more++) {
            s->extents[i] = from + more;
            size_t left = count_lacking(s, variant, parameters);
            best = left < lacking ? s->extents[i] : best;
            lacking = left < lacking ? left : lacking;
        }
        s->extents[i] = best;
        raised |= best > from;
    }
    return raised;
}

/* tile_grid: tile.grid and tile.ctas, point by point.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/tile.h"

static bool is_ctas(const tcc_inst *grid)
{
    return grid->op->code == TCC_OP_tile_ctas;
}

static size_t count_axes(const tcc_inst *grid)
{
    return tcc_attr_list(&grid->op->attrs, "axes").list.n;
}

static int64_t size_of(const tcc_inst *grid, size_t i)
{
    return tcc_attr_list(&grid->op->attrs, "tile").list.items[i].i;
}

static int64_t extent_of(const tcc_run *run, const tcc_inst *grid, size_t i)
{
    return tcc_run_dim(run, tcc_attr_list(&grid->op->attrs, "extents").list.items[i]);
}

static int64_t tiles_along(const tcc_run *run, const tcc_inst *grid, size_t i)
{
    return (extent_of(run, grid, i) + size_of(grid, i) - 1) / size_of(grid, i);
}

/* For a cluster; 1: there is none. */
static unsigned ctas_of(const tcc_inst *grid)
{
    return is_ctas(grid) ? (unsigned)tcc_attr_int(&grid->op->attrs, "cluster", 1) : 1;
}

static bool is_persistent(const tcc_inst *grid)
{
    return is_ctas(grid) && grid->op->regions[0]->n_args == (ctas_of(grid) > 1 ? 3 : 2);
}

static int64_t count_points(const tcc_run *run, const tcc_inst *grid)
{
    int64_t n = is_ctas(grid) ? tcc_run_ctas(run, tcc_attr_list(&grid->op->attrs, "grid")) : 1;
    for (size_t i = 0; i < count_axes(grid); i++)
        if (__builtin_mul_overflow(n, tiles_along(run, grid, i), &n))
            n = INT64_MAX; /* more than can be run, unless another axis is empty */
    return n && is_persistent(grid) ? tcc_run_launched(run, n, ctas_of(grid)) : n;
}

/* Gives the region's arguments the first indices of a tile, or the number of a CTA, or of a cluster and the CTA's
 * in it. The order of tiles is free: an odd seed takes the last first. */
static void enter_point(tcc_thread *t, const tcc_inst *grid, int64_t point)
{
    const tcc_run *run = t->x->run;
    const uint32_t *args = grid->regions[0].args;
    if (run->options->seed % 2)
        point = count_points(run, grid) - 1 - point;
    if (is_ctas(grid)) {
        t->x->cta = point;
        t->x->launched = count_points(run, grid);
        t->x->drawn = -1;
        tcc_cells(t, args[0])[0].i = point;
        if (is_persistent(grid))
            tcc_cells(t, args[1])[0].i = count_points(run, grid);
        if (ctas_of(grid) > 1)
            tcc_cells(t, args[grid->op->regions[0]->n_args - 1])[0].i = t->rank;
        return;
    }
    for (size_t i = count_axes(grid); i-- > 0;) {
        int64_t n = tiles_along(run, grid, i);
        tcc_cells(t, args[i])[0].i = point % n * size_of(grid, i);
        point /= n;
    }
}

static bool knows_extents(tcc_thread *t, const tcc_inst *in)
{
    if (is_ctas(in) && count_points(t->x->run, in) < 0)
        return TCC_WRONG(t->x, in->op, "attribute 'grid' has a dimension that is not one of the function's dims"), false;
    for (size_t i = 0; i < count_axes(in); i++)
        if (extent_of(t->x->run, in, i) < 0)
            return TCC_WRONG(t->x, in->op, "extent %zu is not one of the function's dims", i), false;
    return true;
}

tcc_outcome tcc_eval_tile_grid(tcc_thread *t, const tcc_inst *in)
{
    if (!knows_extents(t, in))
        return TCC_FAILED;
    if (!count_points(t->x->run, in))
        return TCC_NEXT;
    tcc_thread_enter(t, in, 0, t->mask);
    enter_point(t, in, 0);
    return TCC_JUMPED;
}

/* A cluster's CTAs, each in a thread of its own, at the beginning of their region. */
static void start_cluster(tcc_thread *t, const tcc_inst *in)
{
    tcc_exec *x = t->x;
    if (!x->ctas) {
        x->n_ctas = ctas_of(in);
        x->async = NULL; /* it was of one */
        x->ctas = TCC_NEW_ARRAY(x->run->scratch, tcc_thread *, x->n_ctas);
        for (unsigned r = 0; r < x->n_ctas; r++) {
            x->ctas[r] = tcc_thread_create(x, &in->regions[0], t);
            x->ctas[r]->rank = r;
        }
    }
    for (unsigned r = 0; r < x->n_ctas; r++) {
        tcc_thread_restart(x->ctas[r]);
        memcpy(x->ctas[r]->cells, t->cells, x->program->n_cells * sizeof *t->cells);
        enter_point(x->ctas[r], in, x->point);
    }
    tcc_async_begin(x);
    x->point++;
}

/* For clusters: the op runs them one after the other, and is retried until all have ended. */
tcc_outcome tcc_eval_tile_ctas(tcc_thread *t, const tcc_inst *in)
{
    tcc_exec *x = t->x;
    if (ctas_of(in) == 1)
        return tcc_eval_tile_grid(t, in);
    for (unsigned r = 0; r < x->n_ctas; r++)
        if (x->ctas[r]->depth)
            return TCC_WAIT(t, NULL, "for the CTAs of a cluster to end");
    if (!knows_extents(t, in))
        return TCC_FAILED;
    if (x->point < count_points(x->run, in)) {
        start_cluster(t, in);
        return TCC_JUMPED;
    }
    x->point = x->n_ctas = 0; /* another op may be of other clusters */
    x->ctas = NULL;
    x->async = NULL;
    return TCC_NEXT;
}

tcc_outcome tcc_grid_next(tcc_thread *t)
{
    tcc_frame *f = &t->frames[t->depth - 1];
    const tcc_inst *grid = f->of;
    if (++f->point < count_points(t->x->run, grid)) {
        enter_point(t, grid, f->point);
        f->pc = 0;
    } else {
        tcc_thread_leave(t);
    }
    return TCC_JUMPED;
}

/* tile: the tile level, and running functions of the tile and async levels.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/tile.h"

#include <math.h>
#include <string.h>

/* ---- windows --------------------------------------------------------------------------- */

tcc_window tcc_window_of(tcc_thread *t, const tcc_inst *in, unsigned tensor, unsigned first,
                         const tcc_type *type, unsigned skip)
{
    tcc_arena *scratch = t->x->run->scratch;
    tcc_attr dims = tcc_attr_list(&in->op->attrs, "dims");
    tcc_window w = {.tensor = &t->x->run->params[tcc_operand_int(t, in, tensor)],
                    .extent = type->dims + skip,
                    .rank = type->rank - skip,
                    .begins = (int)tcc_attr_int(&in->op->attrs, "early", -1),
                    .chunk = tcc_attr_int(&in->op->attrs, "chunk", 0)};
    int64_t inside = tcc_attr_int(&in->op->attrs, "inside", -1);
    for (int x = 0; x < 2; x++)
        w.undefined[x] = x == w.begins || x == inside;
    w.dims = TCC_NEW_ARRAY(scratch, int64_t, w.rank);
    w.at = TCC_NEW_ARRAY(scratch, int64_t, w.tensor->type->rank);
    for (size_t d = 0; d < w.rank; d++)
        w.dims[d] = dims.list.items[d].i;
    for (unsigned d = 0; d < w.tensor->type->rank; d++)
        w.at[d] = tcc_operand_int(t, in, first + d);
    return w;
}

bool tcc_window_is_valid(tcc_thread *t, const tcc_inst *in, const tcc_window *w)
{
    for (unsigned d = 0; d < w->tensor->type->rank; d++)
        if (w->at[d] < 0 && (w->begins < 0 || w->dims[w->begins] != (int64_t)d)) {
            TCC_WRONG(t->x, in->op, "%s at coordinate %lld", tcc_op_info_get(in->op->code)->name,
                      (long long)w->at[d]);
            return false;
        }
    return true;
}

enum { OUTSIDE = -1, UNDEFINED = -2 };

/* The index that element `at` stands for along the dimension on which the tile begins early, where
 * there are `extent`: the last chunk, or its existing part, comes first. */
static int64_t begin_early(const tcc_window *w, int64_t at, int64_t extent)
{
    if (!w->chunk)
        return at;
    int64_t rest = ((extent - 1) % w->chunk + w->chunk) % w->chunk + 1;
    if (at < 0)
        return at >= -rest ? extent + at : at;
    return at >= extent - rest ? extent : at;
}

/* Where the tile is to end at last along dimension x, INT64_MAX: anywhere. */
static int64_t last_end(const tcc_window *w, int x)
{
    int64_t d = w->dims[x], extent = d < 0 ? 1 : w->tensor->extents[d];
    if (x == w->begins && w->chunk)
        extent -= ((extent - 1) % w->chunk + w->chunk) % w->chunk + 1;
    bool bound = x == w->begins || (w->undefined[x] && d >= 0 && w->at[d] > 0);
    return !bound ? INT64_MAX : extent > 0 ? extent : 0;
}

/* Reports a tile that is not where it promises to be. */
static bool keeps_promises(tcc_thread *t, const tcc_inst *in, const tcc_window *w)
{
    for (int x = 0; x < 2 && (size_t)x < w->rank; x++) {
        int64_t d = w->dims[x], end = (d < 0 ? 0 : w->at[d]) + w->extent[x].size;
        if (end <= last_end(w, x))
            continue;
        TCC_WRONG(t->x, in->op, "tile.load up to %lld, which is not inside the tensor", (long long)end);
        return false;
    }
    return true;
}

/* The tensor's element under the tile's element at `index`; OUTSIDE, or UNDEFINED. */
static int64_t place_of(const tcc_window *w, const int64_t *index)
{
    int64_t place = 0;
    bool undefined = false;
    for (size_t x = 0; x < w->rank; x++)
        if (w->dims[x] < 0 && index[x]) /* where the tensor has no dimension, it ends */
            return OUTSIDE;
    for (unsigned d = 0; d < w->tensor->type->rank; d++) {
        int64_t at = w->at[d], extent = w->tensor->extents[d];
        for (size_t x = 0; x < w->rank; x++)
            if (w->dims[x] == (int64_t)d) {
                at += index[x];
                if ((int)x == w->begins)
                    at = begin_early(w, at, extent);
                undefined |= x < 2 && w->undefined[x] && at >= extent;
            }
        if (!undefined && (at < 0 || at >= extent))
            return OUTSIDE;
        place += at * w->tensor->strides[d];
    }
    return undefined ? UNDEFINED : place;
}

/* Steps an index through extents, the last dimension fastest; false at the end. */
static bool next_index(int64_t *index, const tcc_dim *extent, size_t rank)
{
    for (size_t d = rank; d-- > 0;) {
        if (++index[d] < extent[d].size)
            return true;
        index[d] = 0;
    }
    return false;
}

tcc_cell tcc_undefined_cell(tcc_scalar elem)
{
    bool floats = tcc_scalar_classify(elem) == TCC_CLASS_FLOAT;
    return floats ? (tcc_cell){.f = (double)NAN} : (tcc_cell){.i = INT32_MIN};
}

void tcc_window_load(const tcc_window *w, tcc_cell *to)
{
    int64_t index[TCC_WINDOW_RANK] = {0};
    do {
        int64_t place = place_of(w, index);
        *to++ = place == UNDEFINED ? tcc_undefined_cell(w->tensor->type->elem)
                : place < 0        ? tcc_decode(0, w->tensor->type->elem)
                                   : tcc_param_load(w->tensor, place);
    } while (next_index(index, w->extent, w->rank));
}

tcc_outcome tcc_eval_tile_load(tcc_thread *t, const tcc_inst *in)
{
    tcc_window w = tcc_window_of(t, in, 0, 1, in->op->results[0].type, 0);
    if (!tcc_window_is_valid(t, in, &w) || !keeps_promises(t, in, &w))
        return TCC_FAILED;
    tcc_window_load(&w, tcc_cells(t, in->results[0]));
    return TCC_NEXT;
}

void tcc_window_store(const tcc_run *run, const tcc_window *w, const tcc_cell *from)
{
    int64_t index[TCC_WINDOW_RANK] = {0};
    do {
        int64_t place = place_of(w, index);
        if (place >= 0)
            tcc_param_store(run, w->tensor, place, *from);
        from++;
    } while (next_index(index, w->extent, w->rank));
}

tcc_outcome tcc_eval_tile_store(tcc_thread *t, const tcc_inst *in)
{
    tcc_window w = tcc_window_of(t, in, 1, 2, in->op->operands[0]->type, 0);
    if (!tcc_window_is_valid(t, in, &w))
        return TCC_FAILED;
    tcc_window_store(t->x->run, &w, tcc_cells(t, in->operands[0]));
    return TCC_NEXT;
}

/* ---- tiles ----------------------------------------------------------------------------- */

tcc_outcome tcc_eval_tile_broadcast(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *from = in->op->operands[0]->type, *to = in->op->results[0].type;
    tcc_attr dims = tcc_attr_list(&in->op->attrs, "dims");
    const tcc_cell *a = tcc_cells(t, in->operands[0]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    int64_t index[TCC_WINDOW_RANK] = {0};
    do {
        int64_t place = 0;
        for (unsigned d = 0; d < from->rank; d++)
            place = place * from->dims[d].size +
                    (from->dims[d].size == 1 ? 0 : index[dims.list.items[d].i]);
        *r++ = a[place];
    } while (next_index(index, to->dims, to->rank));
    return TCC_NEXT;
}

tcc_outcome tcc_eval_tile_index(tcc_thread *t, const tcc_inst *in)
{
    const tcc_dim *dims = in->op->results[0].type->dims;
    bool rows = tcc_attr_int(&in->op->attrs, "dim", 0) == 0;
    tcc_cell *r = tcc_cells(t, in->results[0]);
    for (int64_t i = 0; i < dims[0].size; i++)
        for (int64_t j = 0; j < dims[1].size; j++)
            (r++)->i = rows ? i : j;
    return TCC_NEXT;
}

/* r[i,j] = a[i + at[0], j + at[1]], modulo a's extents. */
static void take_part(tcc_thread *t, const tcc_inst *in, const char *attr)
{
    const tcc_dim *from = in->op->operands[0]->type->dims, *to = in->op->results[0].type->dims;
    const tcc_attr *at = tcc_attr_list(&in->op->attrs, attr).list.items;
    const tcc_cell *a = tcc_cells(t, in->operands[0]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    for (int64_t i = 0; i < to[0].size; i++)
        for (int64_t j = 0; j < to[1].size; j++)
            *r++ = a[(i + at[0].i) % from[0].size * from[1].size + (j + at[1].i) % from[1].size];
}

tcc_outcome tcc_eval_tile_slice(tcc_thread *t, const tcc_inst *in)
{
    take_part(t, in, "at");
    return TCC_NEXT;
}

tcc_outcome tcc_eval_tile_rotate(tcc_thread *t, const tcc_inst *in)
{
    take_part(t, in, "by");
    return TCC_NEXT;
}

/* r and a in one, as arith.add, min and max. */
static tcc_cell combine(const char *kind, tcc_cell r, tcc_cell a, bool ints)
{
    bool min = !strcmp(kind, "min");
    if (!strcmp(kind, "sum"))
        return ints ? (tcc_cell){.i = (int64_t)((uint64_t)r.i + (uint64_t)a.i)}
                    : (tcc_cell){.f = r.f + a.f};
    if (ints)
        return (min ? a.i < r.i : a.i > r.i) ? a : r;
    return (tcc_cell){.f = min ? fmin(r.f, a.f) : fmax(r.f, a.f)};
}

tcc_outcome tcc_eval_tile_reduce(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *type = in->op->operands[0]->type;
    const char *kind = tcc_attr_str(&in->op->attrs, "kind", "");
    bool rows = tcc_attr_int(&in->op->attrs, "dim", 0) == 0; /* are reduced to one */
    bool ints = tcc_scalar_classify(type->elem) != TCC_CLASS_FLOAT;
    int64_t n = type->dims[!rows].size, others = type->dims[rows].size;
    int64_t step = rows ? others : 1, next = rows ? 1 : n;
    const tcc_cell *a = tcc_cells(t, in->operands[0]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    if (!tcc_readable(t, in, 0))
        return TCC_FAILED;
    for (int64_t i = 0; i < others; i++, r++) {
        *r = a[i * next];
        for (int64_t j = 1; j < n; j++)
            *r = combine(kind, *r, a[i * next + j * step], ints);
        if (ints)
            r->i = tcc_int_wrap(type->elem, r->i);
        else if (t->x->run->machine)
            r->f = tcc_round_float(r->f, type->elem);
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_tile_convert(tcc_thread *t, const tcc_inst *in)
{
    tcc_copy_values(t, in->results, in->operands, 1, t->mask);
    return TCC_NEXT;
}

static void add_row(tcc_cell *r, tcc_cell a, const tcc_cell *b, int64_t n, bool ints)
{
    if (ints)
        for (int64_t j = 0; j < n; j++)
            r[j].i = (int64_t)((uint64_t)r[j].i + (uint64_t)a.i * (uint64_t)b[j].i);
    else
        for (int64_t j = 0; j < n; j++)
            r[j].f += a.f * b[j].f;
}

void tcc_tile_multiply(const tcc_run *run, const tcc_cell *a, const tcc_cell *b, const tcc_cell *c,
                       tcc_cell *r, const int64_t mnk[3], const tcc_type *type)
{
    int64_t m = mnk[0], n = mnk[1], k = mnk[2];
    bool ints = tcc_scalar_classify(type->elem) != TCC_CLASS_FLOAT;
    for (int64_t i = 0; i < m; i++, a += k, r += n) {
        for (int64_t j = 0; j < n; j++)
            r[j] = c ? c[i * n + j] : (tcc_cell){0};
        for (int64_t x = 0; x < k; x++)
            add_row(r, a[x], b + x * n, n, ints);
        for (int64_t j = 0; ints && j < n; j++)
            r[j].i = tcc_int_wrap(type->elem, r[j].i);
        for (int64_t j = 0; run->machine && !ints && j < n; j++)
            r[j].f = tcc_round_float(r[j].f, type->elem);
    }
}

const tcc_cell *tcc_mma_sums(tcc_thread *t, const tcc_inst *in, unsigned c)
{
    bool adds = !tcc_mma_accumulate(in->op) || tcc_operand_int(t, in, in->op->n_operands - 1);
    return adds ? tcc_cells(t, in->operands[c]) : NULL;
}

tcc_outcome tcc_eval_tile_mma(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *a = in->op->operands[0]->type, *r = in->op->results[0].type;
    const int64_t mnk[] = {r->dims[0].size, r->dims[1].size, a->dims[1].size};
    tcc_tile_multiply(t->x->run, tcc_cells(t, in->operands[0]), tcc_cells(t, in->operands[1]),
                      tcc_mma_sums(t, in, 2), tcc_cells(t, in->results[0]), mnk, r);
    return TCC_NEXT;
}

/* ---- grids ----------------------------------------------------------------------------- */

/* An axis of tile.grid or tile.ctas: its extent, and how many of it a CTA takes. */
typedef struct grid_axis {
    tcc_attr extent;
    int64_t size;
} grid_axis;

static size_t count_axes(const tcc_inst *grid)
{
    bool ctas = grid->op->code == TCC_OP_tile_ctas;
    return tcc_attr_list(&grid->op->attrs, ctas ? "grid" : "axes").list.n;
}

static grid_axis axis_at(const tcc_inst *grid, size_t i)
{
    const tcc_attrs *attrs = &grid->op->attrs;
    if (grid->op->code == TCC_OP_tile_ctas) {
        const tcc_attr *items = tcc_attr_list(attrs, "grid").list.items[i].list.items;
        return (grid_axis){items[0], items[1].i};
    }
    return (grid_axis){tcc_attr_list(attrs, "extents").list.items[i],
                  tcc_attr_list(attrs, "tile").list.items[i].i};
}

static int64_t extent_of(const tcc_run *run, const tcc_inst *grid, size_t i)
{
    return tcc_run_dim(run, axis_at(grid, i).extent);
}

static int64_t tiles_along(const tcc_run *run, const tcc_inst *grid, size_t i)
{
    int64_t size = axis_at(grid, i).size;
    return (extent_of(run, grid, i) + size - 1) / size;
}

/* For a cluster; 1: there is none. */
static unsigned ctas_of(const tcc_inst *grid)
{
    bool ctas = grid->op->code == TCC_OP_tile_ctas;
    return ctas ? (unsigned)tcc_attr_int(&grid->op->attrs, "cluster", 1) : 1;
}

static bool is_persistent(const tcc_inst *grid)
{
    return grid->op->code == TCC_OP_tile_ctas &&
           grid->op->regions[0]->n_args == (ctas_of(grid) > 1 ? 3 : 2);
}

static int64_t count_points(const tcc_run *run, const tcc_inst *grid)
{
    int64_t n = 1;
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
    if (grid->op->code == TCC_OP_tile_ctas) {
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
        tcc_cells(t, args[i])[0].i = point % n * axis_at(grid, i).size;
        point /= n;
    }
}

/* The axis that a field's dimension is. */
static size_t axis_of(const tcc_inst *grid, const char *name)
{
    tcc_attr axes = tcc_attr_list(&grid->op->attrs, "axes");
    size_t axis = 0;
    while (strcmp(axes.list.items[axis].s, name))
        axis++;
    return axis;
}

/* NULL, reported, when it is too large. */
static tcc_param *create_field(tcc_exec *x, const tcc_inst *grid, const tcc_value *v)
{
    tcc_run *run = x->run;
    tcc_param *p = TCC_NEW(run->scratch, tcc_param);
    *p = (tcc_param){.name = "", .type = v->type, .count = 1};
    p->extents = TCC_NEW_ARRAY(run->scratch, int64_t, v->type->rank);
    p->strides = TCC_NEW_ARRAY(run->scratch, int64_t, v->type->rank);
    for (unsigned d = v->type->rank; d-- > 0;) {
        p->extents[d] = extent_of(run, grid, axis_of(grid, v->type->dims[d].name));
        p->strides[d] = p->count;
        if (__builtin_mul_overflow(p->count, p->extents[d], &p->count))
            p->count = INT64_MAX;
    }
    if (!tcc_exec_has_room(x, grid->op, (uint64_t)p->count, sizeof(double)))
        return NULL;
    p->data = TCC_NEW_ARRAY(run->scratch, double, (size_t)p->count);
    return p;
}

/* Whether a tile's element is one of a field: where the field does not have the axis, only the
 * first is. The tile's dimensions are the first axes. */
static bool is_of_field(const tcc_inst *grid, const tcc_type *field, const int64_t *index,
                        size_t rank)
{
    tcc_attr axes = tcc_attr_list(&grid->op->attrs, "axes");
    for (size_t x = 0; x < rank; x++) {
        bool has = false;
        for (unsigned d = 0; d < field->rank; d++)
            has |= !strcmp(field->dims[d].name, axes.list.items[x].s);
        if (!has && index[x])
            return false;
    }
    return true;
}

/* Puts a tile of a field in its place. */
static void put_tile(const tcc_thread *t, const tcc_inst *grid, tcc_param *field, uint32_t tile)
{
    const tcc_type *type = t->x->program->values[tile].type;
    const tcc_cell *from = tcc_cells(t, tile);
    int64_t index[TCC_WINDOW_RANK] = {0};
    do {
        int64_t place = 0;
        bool inside = is_of_field(grid, field->type, index, type->rank);
        for (unsigned d = 0; d < field->type->rank; d++) {
            size_t axis = axis_of(grid, field->type->dims[d].name);
            int64_t at = tcc_cells(t, grid->regions[0].args[axis])[0].i;
            at += axis < type->rank ? index[axis] : 0;
            inside &= at < field->extents[d];
            place += at * field->strides[d];
        }
        if (inside)
            tcc_param_store(t->x->run, field, place, *from);
        from++;
    } while (next_index(index, type->dims, type->rank));
}

static bool knows_extents(tcc_thread *t, const tcc_inst *in)
{
    for (size_t i = 0; i < count_axes(in); i++)
        if (extent_of(t->x->run, in, i) < 0)
            return TCC_WRONG(t->x, in->op, "extent %zu is not one of the function's dims", i), false;
    return true;
}

tcc_outcome tcc_eval_tile_grid(tcc_thread *t, const tcc_inst *in)
{
    tcc_run *run = t->x->run;
    if (!knows_extents(t, in))
        return TCC_FAILED;
    for (unsigned i = 0; i < in->op->n_results; i++) {
        tcc_param *field = create_field(t->x, in, &in->op->results[i]);
        if (!field)
            return TCC_FAILED;
        *tcc_map_at(&run->fields, &in->op->results[i]) = field;
    }
    if (!count_points(run, in))
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

tcc_outcome tcc_grid_next(tcc_thread *t, const tcc_inst *yield)
{
    tcc_run *run = t->x->run;
    tcc_frame *f = &t->frames[t->depth - 1];
    const tcc_inst *grid = f->of;
    for (unsigned i = 0; i < grid->op->n_results; i++) {
        if (!tcc_readable(t, yield, i))
            return TCC_FAILED;
        put_tile(t, grid, tcc_map_get(&run->fields, &grid->op->results[i]), yield->operands[i]);
    }
    if (++f->point < count_points(run, grid)) {
        enter_point(t, grid, f->point);
        f->pc = 0;
    } else {
        tcc_thread_leave(t);
    }
    return TCC_JUMPED;
}

/* ---- functions ------------------------------------------------------------------------- */

tcc_status tcc_run_tiles(tcc_run *run)
{
    size_t threads = 1, ctas = 1; /* of a CTA, and of its roles; of a cluster */
    tcc_program program;
    tcc_exec x;
    tcc_status status =
        tcc_program_decode(run, TCC_LEVEL_TENSOR | TCC_LEVEL_TILE | TCC_LEVEL_ASYNC, &program);
    if (status)
        return status;
    for (size_t i = 0; i < program.n_values; i++) {
        const tcc_type *type = program.values[i].type;
        bool tile = type->kind == TCC_KIND_tile || type->kind == TCC_KIND_smem;
        if (tile && type->rank > TCC_WINDOW_RANK)
            return TCC_FAIL(run, TCC_ERR_UNSUPPORTED, NULL, "a tile of more than %d dimensions",
                            TCC_WINDOW_RANK);
    }
    for (tcc_op *op = run->f->body->first; op; op = tcc_walk_next(op, run->f->body)) {
        threads += op->code == TCC_OP_async_role;
        if (op->code == TCC_OP_tile_ctas)
            ctas = (size_t)tcc_attr_int(&op->attrs, "cluster", 1);
    }
    status = tcc_exec_init(&x, run, &program, 1);
    if (!status)
        status = tcc_run_check_room(run, NULL, program.n_cells, threads * ctas * sizeof(tcc_cell));
    if (status)
        return status;
    tcc_thread *t = tcc_thread_create(&x, &program.body, NULL);
    for (size_t i = 0; i < program.body.n_args; i++) {
        bool scalar = run->params[i].type->kind == TCC_KIND_scalar;
        tcc_cells(t, program.body.args[i])[0] =
            scalar ? tcc_param_load(&run->params[i], 0) : (tcc_cell){.i = (int64_t)i};
    }
    return tcc_exec_run(&x);
}

/* tile: the tile level, and running functions of the tile and async levels.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/tile.h"

#include <math.h>
#include <string.h>

#include "interp/machine.h"
#include "ir/reduction.h"

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
                    .chunk = tcc_attr_int(&in->op->attrs, "chunk", 0),
                    .group = tcc_attr_int(&in->op->attrs, "groups", 0),
                    .anywhere = tcc_attr_find(&in->op->attrs, "words")};
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

/* Reports a row that does not begin at a group. */
static bool begins_at_group(tcc_thread *t, const tcc_inst *in, const tcc_window *w)
{
    int64_t place = 0;
    for (unsigned d = 0; d < w->tensor->type->rank; d++)
        place += w->at[d] * w->tensor->strides[d];
    if (!w->group || w->anywhere || place % w->group == 0)
        return true;
    TCC_WRONG(t->x, in->op, "%s at element %lld of '%s', not a multiple of %lld", tcc_op_info_get(in->op->code)->name,
              (long long)place, w->tensor->name, (long long)w->group);
    return false;
}

bool tcc_window_is_valid(tcc_thread *t, const tcc_inst *in, const tcc_window *w)
{
    unsigned rank = w->tensor->type->rank;
    if (!begins_at_group(t, in, w))
        return false;
    for (unsigned d = 0; d < rank; d++)
        if (w->at[d] < 0 && (w->begins < 0 || w->dims[w->begins] != (int64_t)d) &&
            !(d + 1 == rank && w->at[d] > -w->group)) {
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

bool tcc_next_index(int64_t *index, const tcc_dim *extent, size_t rank)
{
    for (size_t d = rank; d-- > 0;) {
        if (++index[d] < extent[d].size)
            return true;
        index[d] = 0;
    }
    return false;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* How many elements from `index` on, along the tile's last dimension, are inside the tensor as that one is, or outside
 * as that one; its place, and how far apart theirs are. */
static int64_t run_of(const tcc_window *w, const int64_t *index, int64_t *place, int64_t *step)
{
    *place = place_of(w, index);
    *step = 0;
    if (!w->rank || w->begins >= 0 || w->undefined[0] || w->undefined[1])
        return 1;
    int64_t d = w->dims[w->rank - 1], left = w->extent[w->rank - 1].size - index[w->rank - 1];
    if (d < 0)
        return *place < 0 ? left : 1;
    int64_t at = w->at[d];
    for (size_t x = 0; x < w->rank; x++)
        at += w->dims[x] == d ? index[x] : 0;
    *step = w->tensor->strides[d];
    return *place >= 0 ? least(left, w->tensor->extents[d] - at) : at < 0 ? least(left, -at) : left;
}

tcc_cell tcc_undefined_cell(tcc_scalar elem)
{
    bool floats = tcc_scalar_classify(elem) == TCC_CLASS_FLOAT;
    return floats ? (tcc_cell){.f = (double)NAN} : (tcc_cell){.i = INT32_MIN};
}

void tcc_window_load(const tcc_window *w, tcc_cell *to)
{
    int64_t index[TCC_WINDOW_RANK] = {0}, place, step;
    const tcc_scalar elem = w->tensor->type->elem;
    do {
        int64_t n = run_of(w, index, &place, &step);
        for (int64_t i = 0; i < n; i++)
            *to++ = place == UNDEFINED || (place < 0 && w->group) ? tcc_undefined_cell(elem)
                    : place < 0        ? tcc_decode(0, elem)
                                       : tcc_param_load(w->tensor, place + i * step);
        index[w->rank ? w->rank - 1 : 0] += n - 1;
    } while (tcc_next_index(index, w->extent, w->rank));
}

tcc_outcome tcc_eval_tile_load(tcc_thread *t, const tcc_inst *in)
{
    tcc_window w = tcc_window_of(t, in, 0, 1, in->op->results[0].type, 0);
    if (!tcc_window_is_valid(t, in, &w) || !keeps_promises(t, in, &w))
        return TCC_FAILED;
    tcc_window_load(&w, tcc_cells(t, in->results[0]));
    return TCC_NEXT;
}

tcc_outcome tcc_eval_tile_gather(tcc_thread *t, const tcc_inst *in)
{
    const tcc_param *tensor = &t->x->run->params[tcc_operand_int(t, in, 0)];
    const tcc_type *type = in->op->results[0].type;
    tcc_cell *r = tcc_cells(t, in->results[0]);
    for (int64_t i = 0, n = tcc_type_count(type); i < n; i++) {
        int64_t place = 0;
        bool inside = true;
        for (unsigned d = 0; d < tensor->type->rank; d++) {
            bool same = in->op->operands[d + 1]->type->kind == TCC_KIND_scalar;
            int64_t at = tcc_cells(t, in->operands[d + 1])[same ? 0 : i].i;
            inside &= at >= 0 && at < tensor->extents[d];
            place += inside ? at * tensor->strides[d] : 0;
        }
        r[i] = inside ? tcc_param_load(tensor, place) : tcc_decode(0, type->elem);
    }
    return TCC_NEXT;
}

void tcc_window_store(const tcc_run *run, const tcc_window *w, const tcc_cell *from)
{
    int64_t index[TCC_WINDOW_RANK] = {0}, place, step;
    do {
        int64_t n = run_of(w, index, &place, &step);
        for (int64_t i = 0; i < n; i++, from++)
            if (place >= 0)
                tcc_param_store(run, w->tensor, place + i * step, *from);
        index[w->rank ? w->rank - 1 : 0] += n - 1;
    } while (tcc_next_index(index, w->extent, w->rank));
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
    } while (tcc_next_index(index, to->dims, to->rank));
    return TCC_NEXT;
}

tcc_outcome tcc_eval_tile_index(tcc_thread *t, const tcc_inst *in)
{
    const tcc_dim *dims = in->op->results[0].type->dims;
    bool rows = tcc_attr_int(&in->op->attrs, "dim", 0) == 0;
    int64_t unit = tcc_attr_int(&in->op->attrs, "unit", 1);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    for (int64_t i = 0; i < dims[0].size; i++)
        for (int64_t j = 0; j < dims[1].size; j++)
            (r++)->i = (rows ? i : j) / unit * unit;
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

tcc_outcome tcc_eval_tile_reduce(tcc_thread *t, const tcc_inst *in)
{
    const tcc_type *type = in->op->operands[0]->type;
    tcc_reduction kind = tcc_reduction_of(in->op);
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
            *r = tcc_reduction_combine(kind, *r, a[i * next + j * step], ints);
        if (ints)
            r->i = tcc_int_wrap(type->elem, r->i);
        else if (t->x->run->machine)
            r->f = tcc_round_float(r->f, type->elem);
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_tile_any(tcc_thread *t, const tcc_inst *in)
{
    int64_t n = tcc_type_count(in->op->operands[0]->type), any = 0;
    const tcc_cell *a = tcc_cells(t, in->operands[0]);
    if (!tcc_readable(t, in, 0))
        return TCC_FAILED;
    for (int64_t i = 0; i < n; i++)
        any |= a[i].i;
    return tcc_give(t, in, any);
}

tcc_outcome tcc_eval_tile_convert(tcc_thread *t, const tcc_inst *in)
{
    tcc_copy_values(t, in->results, in->operands, 1, t->mask);
    return TCC_NEXT;
}

/* Each sum in the order of k, and several steps of k before it goes back to memory. */
void tcc_add_products(tcc_cell *restrict r, const tcc_cell *restrict a, const tcc_cell *restrict b, int64_t n,
                      int64_t step, int64_t k, bool ints)
{
    enum { STEPS = 4 };
    int64_t x = 0;
    for (; !ints && x + STEPS <= k; x += STEPS, b += STEPS * step)
        for (int64_t j = 0; j < n; j++)
            r[j].f = (((r[j].f + a[x].f * b[j].f) + a[x + 1].f * b[step + j].f) + a[x + 2].f * b[2 * step + j].f) +
                     a[x + 3].f * b[3 * step + j].f;
    for (; x < k; x++, b += step)
        for (int64_t j = 0; j < n; j++)
            if (ints)
                r[j].i = (int64_t)((uint64_t)r[j].i + (uint64_t)a[x].i * (uint64_t)b[j].i);
            else
                r[j].f += a[x].f * b[j].f;
}

void tcc_tile_multiply(const tcc_run *run, const tcc_cell *a, const tcc_cell *b, const tcc_cell *c,
                       tcc_cell *r, const int64_t mnk[3], const tcc_type *type)
{
    int64_t m = mnk[0], n = mnk[1], k = mnk[2];
    bool ints = tcc_scalar_classify(type->elem) != TCC_CLASS_FLOAT;
    for (int64_t i = 0; i < m; i++, a += k, r += n) {
        for (int64_t j = 0; j < n; j++)
            r[j] = c ? c[i * n + j] : (tcc_cell){0};
        tcc_add_products(r, a, b, n, n, k, ints);
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

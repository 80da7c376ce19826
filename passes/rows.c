/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/rows.h"

#include <string.h>

#include "ir/assume.h"
#include "ir/machine.h"
#include "ir/reduction.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/long_expressions.h"

/* ---- recognition --------------------------------------------------------------------------- */

/* The indices of a row kernel: all but those of `others`, the indices of its reductions' results, are the row's. */
typedef struct indices {
    const tcc_func *f;
    const tcc_type *others;
    const char *row; /* the first name of the row's index; NULL: none was seen */
    tcc_dim extent;
    bool are_beside; /* rows: memory is contiguous along another index */
} indices;

/* Whether x can be the row's index, or is another one. */
static bool knows(indices *in, const char *x)
{
    if (tcc_field_has_index(in->others, x))
        return true;
    tcc_dim extent = tcc_index_extent(in->f, x);
    if (!in->row) {
        in->row = x;
        in->extent = extent;
    }
    return tcc_dim_equal(extent, in->extent);
}

/* Whether a field's indices are known, with the row's at most once. */
static bool is_in_rows(indices *in, const tcc_type *field)
{
    unsigned along = 0;
    for (unsigned d = 0; d < field->rank; d++) {
        if (!knows(in, field->dims[d].name))
            return false;
        along += !tcc_field_has_index(in->others, field->dims[d].name);
    }
    return along <= 1;
}

static bool is_reduced_in_rows(indices *in, const tcc_op *reduce)
{
    tcc_attr over = tcc_attr_list(&reduce->attrs, "over");
    return over.list.n == 1 && !tcc_field_has_index(in->others, over.list.items[0].s) && knows(in, over.list.items[0].s) &&
           tcc_fields_share_space(in->others, reduce->results[0].type) && !tcc_product_is(reduce) &&
           !tcc_product_uncovered(reduce);
}

/* Whether an output has all other indices, and the row's or not. */
static bool is_written_in_rows(indices *in, const tcc_op *write)
{
    size_t rank = tcc_access_rank(write);
    bool has = rank <= in->others->rank + 1;
    for (size_t d = 0; d < rank && has; d++)
        has = knows(in, tcc_access_index(write, d));
    for (unsigned d = 0; d < in->others->rank && has; d++)
        has = tcc_map_position(write, in->others->dims[d].name) >= 0;
    return has;
}

static bool is_of_row(const indices *in, const char *index)
{
    return index && !tcc_field_has_index(in->others, index);
}

/* What an access calls the row's index; NULL: it has none. */
static const char *row_of(const indices *in, const tcc_op *access)
{
    const char *row = NULL;
    if (access->code == TCC_OP_tensor_read)
        for (unsigned d = 0; d < access->results[0].type->rank; d++)
            row = is_of_row(in, access->results[0].type->dims[d].name) ? access->results[0].type->dims[d].name : row;
    else
        for (size_t d = 0; d < tcc_access_rank(access); d++)
            row = is_of_row(in, tcc_access_index(access, d)) ? tcc_access_index(access, d) : row;
    return row;
}

/* Whether an access runs along the row, if it has its index: from one element to the next in the last dimension. */
static bool is_contiguous(const indices *in, const tcc_op *access)
{
    const char *row = row_of(in, access);
    size_t rank = tcc_access_rank(access);
    bool contiguous = true;
    for (size_t d = 0; d < rank && row && contiguous; d++) {
        const tcc_index_expr *e = tcc_access_expr(access, d);
        int64_t step = 0;
        const tcc_index_expr *by = tcc_index_has(e, TCC_FACTOR_INDEX, row) ? tcc_index_stride(in->f->ir, e, row) : NULL;
        if (tcc_index_has(e, TCC_FACTOR_INDEX, row))
            contiguous = d + 1 == rank && tcc_type_has_rows(tcc_accessed_tensor(access)->type) && by &&
                         tcc_index_is_number(by, &step) && step == 1;
    }
    return contiguous;
}

static bool is_op_of_rows(indices *in, const tcc_op *op)
{
    if (op->n_results && op->results[0].type->kind == TCC_KIND_field && !is_in_rows(in, op->results[0].type))
        return false;
    switch (op->code) {
    case TCC_OP_tensor_reduce: return !tcc_reduction_is_place(tcc_reduction_of(op)) && is_reduced_in_rows(in, op);
    case TCC_OP_tensor_write: return is_written_in_rows(in, op) && (in->are_beside || is_contiguous(in, op));
    case TCC_OP_tensor_read: return in->are_beside || is_contiguous(in, op);
    case TCC_OP_tensor_index:
    case TCC_OP_tensor_dim:
    case TCC_OP_func_return:
    case TCC_OP_arith_const: return true;
    default: return tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    }
}

/* Whether what an access reads is not written, or only where it was read before, once, by the same thread. */
static bool is_safe_to_write(const indices *in, const tcc_op *access)
{
    bool safe = true;
    for (const tcc_op *op = in->f->body->first; op && safe && access->code == TCC_OP_tensor_read; op = op->next)
        if (op->code == TCC_OP_tensor_write && tcc_accessed_tensor(op) == tcc_accessed_tensor(access))
            safe = row_of(in, op) && row_of(in, access) && !in->extent.name &&
                   in->extent.size <= (in->are_beside ? TCC_ROWS_BESIDE_HELD : TCC_ROWS_MOST_COLUMNS) &&
                   tcc_access_same(op, access, row_of(in, op), row_of(in, access));
    return safe;
}

/* ---- names ---------------------------------------------------------------------------------- */

/* Whether an access keeps its meaning when all names of the row's index become one. */
static bool can_rename(const indices *in, const tcc_op *access)
{
    const char *row = tcc_accessed_tensor(access) ? row_of(in, access) : NULL;
    return !row || row == in->row || tcc_access_is_plain(access);
}

static void rename_access(const indices *in, tcc_op *op)
{
    size_t rank = tcc_access_rank(op);
    const char **as = TCC_NEW_ARRAY(in->f->ir->arena, const char *, rank);
    if (!tcc_accessed_tensor(op) || !tcc_access_is_plain(op))
        return;
    for (size_t d = 0; d < rank; d++)
        as[d] = is_of_row(in, tcc_access_index(op, d)) ? in->row : tcc_access_index(op, d);
    tcc_access_set_indices(op, rank, as);
}

static void rename_op(const indices *in, tcc_op *op)
{
    const tcc_type *field = op->n_results ? op->results[0].type : NULL;
    rename_access(in, op);
    if (op->code == TCC_OP_tensor_reduce)
        tcc_attr_set_strs(in->f->ir, &op->attrs, "over", 1, &in->row);
    if (op->code == TCC_OP_tensor_index && is_of_row(in, tcc_attr_str(&op->attrs, "name", NULL)))
        tcc_attr_set_str(in->f->ir, &op->attrs, "name", in->row);
    if (!field || field->kind != TCC_KIND_field)
        return;
    tcc_dim *dims = TCC_NEW_ARRAY(in->f->ir->arena, tcc_dim, field->rank);
    for (unsigned d = 0; d < field->rank; d++) {
        dims[d] = field->dims[d];
        dims[d].name = is_of_row(in, dims[d].name) ? in->row : dims[d].name;
    }
    op->results[0].type = tcc_type_get(in->f->ir, TCC_KIND_field, field->elem, field->rank, dims);
}

/* ---- rows beside each other ------------------------------------------------------------------ */

/* The index, not the row's, along which memory is contiguous in the first read that has all indices. */
static const char *find_beside(const indices *in)
{
    const char *found = NULL;
    unsigned rank = in->others->rank + 1 - (tcc_rows_parts(in->f) != NULL); /* no tensor has the index of parts */
    for (const tcc_op *op = in->f->body->first; op && !found; op = op->next) {
        bool reads = op->code == TCC_OP_tensor_read && row_of(in, op) && tcc_access_is_plain(op) &&
                     op->results[0].type->rank == rank;
        const char *last = reads ? tcc_access_last(op) : NULL;
        found = last && tcc_field_has_index(in->others, last) ? last : NULL;
    }
    return found;
}

/* Whether a field has the row's index. */
static bool varies(const indices *in, const tcc_op *op)
{
    const tcc_type *field = op->n_results && op->results[0].type->kind == TCC_KIND_field ? op->results[0].type : NULL;
    bool any = false;
    for (unsigned d = 0; field && d < field->rank; d++)
        any |= is_of_row(in, field->dims[d].name);
    return any;
}

/* Whether one sweep does: rows are held, or nothing along them is computed of a reduction or stored. More sweeps are
 * steps, for a CTA would read many rows from end to end. */
static bool is_one_sweep(const indices *in)
{
    tcc_map later = TCC_MAP(in->f->ir->arena);
    bool one = !in->extent.name && in->extent.size <= TCC_ROWS_BESIDE_HELD;
    for (tcc_op *op = one ? NULL : in->f->body->first; op; op = op->next) {
        bool is_later = tcc_is_reduction(op);
        for (unsigned i = 0; i < op->n_operands; i++)
            is_later |= tcc_map_get(&later, op->operands[i]) != NULL;
        bool stores = op->code == TCC_OP_tensor_write && row_of(in, op);
        if (stores || (is_later && !tcc_is_reduction(op) && varies(in, op)))
            return false;
        if (is_later && op->n_results)
            *tcc_map_at(&later, &op->results[0]) = op;
    }
    return true;
}

/* Whether a function is a kernel of rows of one kind. */
static bool is_of_rows(indices *in)
{
    for (const tcc_op *op = in->f->body->first; op; op = op->next)
        if (!is_op_of_rows(in, op))
            return false;
    if (!in->row || (!in->extent.name && in->extent.size < TCC_ROWS_FEWEST))
        return false;
    bool all = true;
    for (const tcc_op *op = in->f->body->first; op && all; op = op->next)
        all = can_rename(in, op) && is_safe_to_write(in, op);
    return all;
}

bool tcc_rows_recognize(tcc_func *f)
{
    const tcc_op *first = f->body->first;
    while (first && !tcc_is_reduction(first))
        first = first->next;
    if (!first || tcc_is_naive(f))
        return false;
    indices in = {.f = f, .others = first->results[0].type};
    const char *beside = NULL;
    if (!is_of_rows(&in)) {
        if (tcc_attr_find(&f->attrs, tcc_schedule_keys[TCC_KEY_tile].name)) /* of elements that are computed term by term */
            return false;
        in = (indices){.f = f, .others = first->results[0].type, .are_beside = true};
        beside = is_of_rows(&in) && is_one_sweep(&in) ? find_beside(&in) : NULL;
        if (!beside)
            return false;
    }
    for (tcc_op *op = f->body->first; op; op = op->next)
        rename_op(&in, op);
    tcc_attr_set_str(f->ir, &f->attrs, "row", in.row);
    if (beside)
        tcc_attr_set_str(f->ir, &f->attrs, "beside", beside);
    return true;
}

bool tcc_rows_can_reduce(const tcc_op *reduce, const tcc_map *of, bool are_beside)
{
    indices in = {.f = reduce->block->func, .others = reduce->results[0].type, .are_beside = are_beside};
    bool all = is_in_rows(&in, reduce->results[0].type) && is_reduced_in_rows(&in, reduce);
    for (const tcc_op *op = in.f->body->first; op != reduce && all; op = op->next)
        all = !tcc_map_get(of, op) || is_op_of_rows(&in, op);
    for (const tcc_op *op = in.f->body->first; op != reduce && all; op = op->next)
        all = !tcc_map_get(of, op) || can_rename(&in, op);
    return all;
}

/* ---- tiles ---------------------------------------------------------------------------------- */

const tcc_op *tcc_rows_parts(const tcc_func *f)
{
    const tcc_op *op = f->body->first;
    while (op && !(tcc_is_reduction(op) && tcc_attr_find(&op->attrs, "parts")))
        op = op->next;
    return op;
}

bool tcc_rows_can_part(const tcc_func *f, const tcc_space *p, int64_t rows, int64_t columns)
{
    const tcc_op *parted = tcc_rows_parts(f);
    int64_t depth = parted ? tcc_attr_list(&parted->attrs, "parts").list.items[2].i : 0;
    return depth % (p->along ? columns : rows) == 0;
}

/* How many short rows a warp's lanes have below each other, each with several elements. */
static int64_t lanes_below(int64_t rows, int64_t columns, int64_t vector)
{
    int64_t below = 1, least = vector > TCC_ROWS_LEAST ? vector : TCC_ROWS_LEAST;
    while (below < TCC_WARP_LANES && columns * below < least * TCC_WARP_LANES && rows % (2 * below) == 0)
        below *= 2;
    return below;
}

bool tcc_rows_arrange(tcc_pointwise_tile *t, const tcc_space *p, int64_t rows, int64_t columns, int64_t vector)
{
    enum { MOST_WARPS = 16 };
    if (!p->along)
        return tcc_pointwise_arrange(t, rows, columns, vector);
    *t = (tcc_pointwise_tile){rows, columns, vector, {1, 1}, false, lanes_below(rows, columns, vector)};
    int64_t lanes = TCC_WARP_LANES / t->lanes;
    while (t->vector > 1 && columns % (lanes * t->vector))
        t->vector /= 2;
    while (t->warps[1] < MOST_WARPS && columns / (TCC_WARP_LANES * t->warps[1]) > TCC_ROWS_ELEMENTS &&
           columns % (TCC_WARP_LANES * t->vector * 2 * t->warps[1]) == 0)
        t->warps[1] *= 2;
    while (t->warps[0] * t->warps[1] < TCC_POINTWISE_WARPS && rows % (2 * t->lanes * t->warps[0]) == 0)
        t->warps[0] *= 2;
    return columns % (lanes * t->vector * t->warps[1]) == 0 &&
           rows * columns <= TCC_POINTWISE_MOST_ELEMENTS * TCC_WARP_LANES * t->warps[0] * t->warps[1];
}

/* Whether a tile of this many columns has all of a row, wherever in its first group that begins. */
static bool hold_row(const tcc_func *f, const tcc_space *p, int64_t columns)
{
    int64_t before = tcc_attr_int(&f->attrs, "groups", 1) - 1;
    return columns > before && tcc_assumes_max(f, p->extents[p->along], columns - before);
}

bool tcc_rows_tile_of(const tcc_func *f, const tcc_space *p, tcc_rows_tile *t)
{
    int64_t rows = tcc_tile_size_of(f, p->axes[0], 1), columns = tcc_tile_size_of(f, p->axes[1], 1);
    t->one_sweep = hold_row(f, p, p->along ? columns : rows) && !tcc_rows_parts(f);
    return tcc_rows_can_part(f, p, rows, columns) &&
           tcc_rows_arrange(&t->of, p, rows, columns, tcc_pointwise_vector(f, p));
}

/* A lane has a vector of each of several terms of a few rows beside each other, and warps further terms. */
static void choose_beside(const tcc_func *f, const tcc_space *p, int64_t *terms, int64_t *rows)
{
    /* Vectors that are loaded before the first is used: in a step for many terms; of few, more would be empty. */
    enum { VECTORS = 4, STEP_VECTORS = 8, MOST = 32 }; /* elements of a lane */
    int64_t vector = tcc_pointwise_vector(f, p), each = tcc_func_is_step(f) ? STEP_VECTORS : VECTORS;
    tcc_dim extent = p->extents[1];
    while (vector > 1 && !extent.name && TCC_WARP_LANES * vector / 2 >= extent.size)
        vector /= 2;
    while (each * vector > MOST)
        each /= 2;
    bool is_open = !*rows;
    *rows = *rows ? *rows : TCC_WARP_LANES * vector;
    if (*terms)
        return;
    const int64_t elements = TCC_POINTWISE_WARPS * TCC_WARP_LANES * TCC_POINTWISE_MOST_ELEMENTS;
    int64_t most = TCC_POINTWISE_WARPS * each, held = elements / TCC_ROWS_BESIDE_HELD;
    for (*terms = 1; *terms < most && !tcc_assumes_max(f, p->extents[0], *terms);)
        *terms *= 2;
    if (*terms < TCC_ROWS_BESIDE_HELD && tcc_assumes_max(f, p->extents[0], TCC_ROWS_BESIDE_HELD) &&
        (is_open || *rows <= held)) {
        *terms = TCC_ROWS_BESIDE_HELD;
        *rows = *rows < held ? *rows : held;
    }
}

tcc_dim tcc_rows_few(const tcc_space *p)
{
    tcc_dim few = {NULL, TCC_ROWS_FEW};
    for (size_t i = 0; i < p->n_axes; i++) {
        tcc_dim extent = p->extents[i];
        if (i == (size_t)p->along || !*p->axes[i])
            continue;
        if (extent.name && few.name)
            return (tcc_dim){NULL, 0};
        few.name = extent.name ? extent.name : few.name;
        few.size /= extent.name ? 1 : extent.size ? extent.size : 1;
    }
    return few.size ? few : (tcc_dim){NULL, 0};
}

/* Whether a variant is for few rows, none of which is in parts. What it assumes something of is not a dimension of
 * merged indices, but their number is assumed for no other reason. */
static bool are_few(const tcc_func *f, const tcc_space *p)
{
    const tcc_attr assumes = tcc_attr_list(&f->attrs, "assumes");
    const char *length = p->extents[p->along].name;
    tcc_dim few = tcc_rows_few(p);
    bool assumed = false;
    for (size_t i = 0; i < assumes.list.n && few.name; i++)
        assumed |= tcc_attr_is_record(assumes.list.items[i], "max", "si") &&
                   (!length || strcmp(assumes.list.items[i].list.items[1].s, length));
    return !tcc_rows_parts(f) && few.size && (assumed || !few.name);
}

bool tcc_rows_has_vectors(const tcc_func *f, const tcc_space *p)
{
    bool all = tcc_pointwise_vector(f, p) > 1;
    if (tcc_attr_find(&f->attrs, "groups"))
        return true;
    for (const tcc_op *op = f->body->first; op && all; op = op->next)
        all = !tcc_accessed_tensor(op) || !tcc_pointwise_runs_along(p, op) ||
              tcc_pointwise_is_aligned(f, p, tcc_accessed_tensor(op));
    return all;
}

/* Whether lanes have registers for many elements: of one tensor, of 16 bits or less, and for few reductions. */
static bool are_light(const tcc_func *f, const tcc_space *p)
{
    enum { NARROW_BITS = 16, MOST_REDUCTIONS = 3 };
    int64_t reads = 0, reductions = 0;
    bool narrow = true;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        bool along = op->code == TCC_OP_tensor_read && tcc_field_has_index(op->results[0].type, p->row);
        reads += along;
        reductions += tcc_is_reduction(op);
        narrow &= !along || tcc_scalar_bits(op->results[0].type->elem) <= NARROW_BITS;
    }
    return narrow && reads <= 1 && reductions <= MOST_REDUCTIONS;
}

static int64_t swept_columns(const tcc_func *f, const tcc_space *p)
{
    enum { LEAST = 4 };
    bool few = are_few(f, p);
    if (tcc_has_long_expressions(f)) { /* code for as few elements of a lane as partial results are kept of */
        int64_t vector = tcc_pointwise_vector(f, p);
        return TCC_WARP_LANES * (vector > LEAST ? vector : LEAST);
    }
    if (tcc_rows_has_vectors(f, p) && !tcc_rows_parts(f) && (!few || are_light(f, p)))
        return few                                                  ? TCC_ROWS_FEW_VECTORS
               : tcc_attr_find(&f->attrs, "groups") || tcc_assumes_max(f, p->extents[1], TCC_ROWS_LONG)
                   ? TCC_ROWS_LONG_VECTORS
                                                                    : TCC_ROWS_SWEPT_VECTORS;
    return few ? TCC_ROWS_FEW_COLUMNS : TCC_ROWS_SWEPT_COLUMNS;
}

/* Rows of a tile that lanes of a warp can have below each other; rows: of the tile, 0 if that is open. */
static int64_t most_below(const tcc_func *f, const tcc_space *p, int64_t rows)
{
    int64_t most = 1;
    if (tcc_attr_find(&f->attrs, "groups")) /* which begin at one place in each row */
        return 1;
    while (most < TCC_WARP_LANES &&
           (rows ? rows % (2 * most) == 0 : p->extents[0].name || most < p->extents[0].size))
        most *= 2;
    return most;
}

/* The fewest columns that hold every row, a power of two or three times one of which all lanes have vectors; those that
 * are swept over if there are too many. */
static int64_t columns_of(const tcc_func *f, const tcc_space *p, int64_t rows)
{
    int64_t vector = tcc_pointwise_vector(f, p), columns = TCC_WARP_LANES / most_below(f, p, rows);
    while (columns < vector || columns < TCC_ROWS_LEAST)
        columns *= 2;
    while (!hold_row(f, p, columns) && columns < TCC_ROWS_MOST_COLUMNS)
        columns *= 2;
    if (!hold_row(f, p, columns))
        return swept_columns(f, p);
    for (int64_t eighths = tcc_attr_find(&f->attrs, "groups") ? 5 : 6; eighths < 7; eighths++) {
        int64_t fewer = columns / 8 * eighths;
        tcc_pointwise_tile t;
        if (hold_row(f, p, fewer) && tcc_rows_arrange(&t, p, 1, fewer, vector) && t.vector == vector)
            return fewer;
    }
    return columns;
}

/* A warp has several short rows; a long one has several warps. */
void tcc_rows_choose(const tcc_func *f, const tcc_space *p, int64_t *rows, int64_t *columns)
{
    if (!p->along) {
        choose_beside(f, p, rows, columns);
        return;
    }
    *columns = *columns ? *columns : columns_of(f, p, *rows);
    int64_t of_warp = TCC_WARP_LANES * TCC_ROWS_ELEMENTS;
    if (*rows)
        return;
    enum { AT_ONCE = 4 }; /* rows of a lane */
    int64_t most = AT_ONCE;
    if (hold_row(f, p, *columns))
        most *= lanes_below(most_below(f, p, 0), *columns, tcc_pointwise_vector(f, p));
    most = tcc_has_long_expressions(f) ? 1 : of_warp / *columns < most ? of_warp / *columns : most;
    most *= TCC_POINTWISE_WARPS;
    *rows = 1;
    if (*columns > of_warp || tcc_attr_find(&f->attrs, "groups")) /* which begin at one place in each row */
        return;
    while (*rows < most && (p->extents[0].name || *rows < p->extents[0].size))
        *rows *= 2;
}

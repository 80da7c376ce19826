/* choose-axes: decide what each index is: along the rows or the columns of tiles, or one value in a CTA; and which
 * reductions matrix instructions compute.
 *
 * Before:  func @f(…) {…} {
 *            %p = arith.mul %b, %a : field<f32[z, m, k, n]>
 *            %s = tensor.reduce %p {over = [k], kind = sum} : field<f32[z, m, n]>
 * After:   func @f(…) {axes = [m, n, z], …} {
 *            %p = arith.mul %b, %a : field<f32[z, m, k, n]>
 *            %s = tensor.reduce %p {over = [k], kind = sum, rows = 1} : field<f32[z, m, n]>
 *
 * Of products n is the innermost output index that in every sum only one factor has, B, and m the innermost that only
 * the other has, A; or one that the schedule tiles. n is inside m, unless they are exchanged, or the target's matrix
 * instructions take only A from registers and n's factor is computed. Of all else n is the innermost index of the
 * output, or of a row kernel the one along which memory is contiguous, and m another one.
 *
 * Whatever changes indices afterwards changes the attributes, too. Requires partition. Preserves the body.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/choose_axes.h"

#include "ir/schedule_key.h"
#include "ir/target.h"
#include "passes/cascade.h"
#include "passes/passes.h"

static bool is_tiled(const tcc_func *f, const char *index)
{
    return tcc_tile_size_of(f, index, 0) > 0;
}

/* ---- products --------------------------------------------------------------------------------- */

/* A sum, and what has been decided of it. */
typedef struct oriented {
    tcc_product p;
    int a;      /* which factor is A */
    bool fixed; /* it is that whatever the schedule says */
} oriented;

typedef struct products {
    const tcc_func *f;
    tcc_attr order; /* their indices as an output stores them */
    size_t n;
    oriented *sums;
} products;

static const tcc_factor *factor(const oriented *s, bool b)
{
    return &s->p.of[s->a != b];
}

static bool is_own(const oriented *s, const char *x, bool of_b)
{
    return tcc_map_position(factor(s, of_b)->read, x) >= 0 && tcc_map_position(factor(s, !of_b)->read, x) < 0;
}

/* The innermost output index that in every sum only B has, or only A; one that the schedule tiles
 * comes before all others. NULL when there is none. from: in sums from this one on either factor may be the
 * one that has it, unless it is fixed which is A. */
static const char *own_index(const products *p, bool of_b, size_t from)
{
    const char *found = NULL;
    for (size_t i = 0; i < p->order.list.n; i++) {
        const char *x = p->order.list.items[i].s;
        bool own = !(found && is_tiled(p->f, found) && !is_tiled(p->f, x));
        for (size_t s = 0; s < p->n; s++)
            own &= is_own(&p->sums[s], x, of_b) || (s >= from && !p->sums[s].fixed && is_own(&p->sums[s], x, !of_b));
        if (own)
            found = x;
    }
    return found;
}

/* Place of an index in the output, -1 for no index. */
static int place_in(tcc_attr order, const char *x)
{
    for (size_t i = 0; x && i < order.list.n; i++)
        if (tcc_index_same(order.list.items[i].s, x))
            return (int)i;
    return -1;
}

/* Makes the one factor of a sum that is computed A where matrix instructions take only that from registers. Whether
 * there is such a sum. */
static bool fix_computed(products *p)
{
    bool any = false;
    for (size_t s = 0; s < p->n && tcc_target_can(tcc_func_target(p->f), TCC_CAN_wgmma); s++) {
        oriented *sum = &p->sums[s];
        sum->fixed = tcc_factor_is_computed(&sum->p.of[0]) != tcc_factor_is_computed(&sum->p.of[1]);
        sum->a = sum->fixed && tcc_factor_is_computed(&sum->p.of[1]);
        any |= sum->fixed;
    }
    return any;
}

/* Finds m, or where A has none of its own in all sums n. */
static bool find_axis(const products *p, size_t from, const char **m, const char **n)
{
    *m = own_index(p, false, from);
    *n = *m ? NULL : own_index(p, true, from);
    return *m || *n;
}

/* Decides m and n, and with them which factor of each sum is A. If there are computed factors on both sides of the
 * result, one of them is B, which the instruction reads from shared memory unless it takes registers. */
static void orient(products *p, const char **m, const char **n)
{
    bool fixed = fix_computed(p);
    if (!find_axis(p, fixed ? 0 : 1, m, n) && fixed) {
        for (size_t s = 0; s < p->n; s++)
            p->sums[s].fixed = false;
        fixed = !find_axis(p, 1, m, n);
    }
    for (size_t s = fixed ? 0 : 1; s < p->n; s++)
        if ((*m && !is_own(&p->sums[s], *m, false)) || (*n && !is_own(&p->sums[s], *n, true)))
            p->sums[s].a ^= 1;
    if (*m)
        *n = own_index(p, true, p->n);
    bool swapped = tcc_schedule_key_of(p->f, TCC_KEY_operands, 0);
    if (fixed || (place_in(p->order, *m) <= place_in(p->order, *n)) != swapped)
        return;
    const char *x = *m; /* n is inside m, unless they are swapped, and B has it */
    *m = *n;
    *n = x;
    for (size_t s = 0; s < p->n; s++)
        p->sums[s].a ^= 1;
}

static bool are_outputs_in(const tcc_func *f, const tcc_type *sum)
{
    bool all = true;
    for (const tcc_op *op = f->body->first; op && all; op = op->next)
        all = op->code != TCC_OP_tensor_write || tcc_write_has_space(op, sum);
    return all;
}

/* False when there is none, or when the reductions or the outputs are not of one index space. */
static bool find_products(const tcc_func *f, products *out)
{
    TCC_VEC(oriented) sums = {0};
    for (tcc_op *op = f->body->first; op; op = op->next) {
        oriented found = {0};
        if (op->code != TCC_OP_tensor_reduce)
            continue;
        if (!tcc_product_can_be(op, &found.p) || (sums.len && !tcc_product_shares_loop(&sums.data[0].p, &found.p)))
            return false;
        TCC_PUSH(f->ir->arena, &sums, found);
    }
    if (!sums.len || !are_outputs_in(f, sums.data[0].p.sum->results[0].type))
        return false;
    *out = (products){f, tcc_space_order(f, sums.data[0].p.sum->results[0].type), sums.len, sums.data};
    return true;
}

/* ---- what else there is ------------------------------------------------------------------------- */

static bool is_of_terms(const tcc_op *reduce, tcc_arena *arena)
{
    tcc_map ops = TCC_MAP(arena);
    bool all = true;
    for (unsigned i = 0; i < reduce->n_operands; i++)
        all &= tcc_find_elementwise(reduce->operands[i], arena, &ops);
    return all;
}

/* The first output, where all have its indices, apart from a row's, and nothing keeps the function from being computed
 * so. */
static const tcc_op *find_output(const tcc_func *f, bool has_rows)
{
    const tcc_op *first = NULL;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        bool reduces = !has_rows && op->code == TCC_OP_tensor_reduce;
        if (op->code == TCC_OP_tile_grid ||
            (reduces && (tcc_attr_find(&op->attrs, "parts") || !is_of_terms(op, f->ir->arena))))
            return NULL;
        if (op->code != TCC_OP_tensor_write)
            continue;
        first = first ? first : op;
        if (!has_rows && !tcc_writes_share_space(first, op))
            return NULL;
    }
    return first;
}

static bool is_computed_with(const tcc_func *f, const char *index)
{
    bool is = false;
    for (const tcc_op *op = f->body->first; op && !is; op = op->next)
        is = tcc_access_computes_with(op, index);
    return is;
}

/* Whether a tensor's rows run along an index. */
static bool is_read_along(const tcc_func *f, const char *index)
{
    bool is = false;
    for (const tcc_op *op = f->body->first; op && !is; op = op->next)
        is = op->code == TCC_OP_tensor_read && tcc_access_is_plain(op) && tcc_access_last(op) &&
             tcc_access_rank(op) > 1 && tcc_index_same(tcc_access_last(op), index);
    return is;
}

/* The innermost index but the last; n: there is none. One that the schedule tiles comes before those that it does
 * not, then one along which rows of a tensor run, and one that coordinates are computed with last: where it has one value
 * in a tile, these are the same in all of it, or run along the tile's rows. */
static size_t innermost(const tcc_func *f, size_t n, const char *const *indices)
{
    enum { COMPUTED, PLAIN, CONTIGUOUS, TILED };
    size_t found = n;
    int rank = COMPUTED;
    for (size_t i = 0; i + 1 < n; i++) {
        const char *x = indices[i];
        int of_x = is_tiled(f, x)           ? TILED
                   : is_computed_with(f, x) ? COMPUTED
                   : is_read_along(f, x)    ? CONTIGUOUS
                                            : PLAIN;
        if (of_x < rank)
            continue;
        found = i;
        rank = of_x;
    }
    return found;
}

/* ---- attributes ---------------------------------------------------------------------------------- */

typedef struct axes {
    size_t n;
    const char *names[TCC_MAX_AXES];
} axes;

/* m, n, then all other indices. False: there are too many. */
static bool list_axes(const char *m, const char *n, size_t n_indices, const char *const *indices, axes *out)
{
    *out = (axes){2, {m ? m : "", n ? n : ""}};
    for (size_t i = 0; i < n_indices; i++) {
        if (tcc_index_same(indices[i], out->names[0]) || tcc_index_same(indices[i], out->names[1]))
            continue;
        if (out->n == TCC_MAX_AXES)
            return false;
        out->names[out->n++] = indices[i];
    }
    return true;
}

static bool find_axes_of_products(products *p, axes *out)
{
    const char *m, *n, **indices = TCC_NEW_ARRAY(p->f->ir->arena, const char *, p->order.list.n);
    for (size_t i = 0; i < p->order.list.n; i++)
        indices[i] = p->order.list.items[i].s;
    orient(p, &m, &n);
    return list_axes(m, n, p->order.list.n, indices, out);
}

/* Those of the first output; of a row kernel the one along which memory is contiguous comes last, and m is another one
 * along which it reduces. */
static bool find_axes_of_output(const tcc_func *f, axes *out)
{
    const char *row = tcc_attr_str(&f->attrs, "row", NULL), *beside = tcc_attr_str(&f->attrs, "beside", NULL);
    const char *last = beside ? beside : row;
    const tcc_op *write = find_output(f, row);
    size_t rank = write ? tcc_access_rank(write) : 0, n = 0;
    const char **indices = TCC_NEW_ARRAY(f->ir->arena, const char *, rank + 1);
    for (size_t d = 0; d < rank; d++)
        if (!row || (!tcc_index_same(tcc_access_index(write, d), row) &&
                     !tcc_index_same(tcc_access_index(write, d), last)))
            indices[n++] = tcc_access_index(write, d);
    if (row)
        indices[n++] = last;
    if (!n)
        indices[n++] = tcc_no_index;
    size_t inner = innermost(f, n, indices);
    const char *m = beside ? row : inner < n ? indices[inner] : NULL;
    return write && list_axes(m, indices[n - 1], n, indices, out);
}

/* The rows and columns of what is summed, and the other indices of the output that has all. */
static bool find_axes_of_stream(const tcc_func *f, axes *out)
{
    tcc_cascade c;
    const char *indices[TCC_MAX_AXES];
    size_t n = 0;
    if (!tcc_cascade_of(f, &c))
        return false;
    tcc_attr order = tcc_space_order(f, c.sums[0].sum->results[0].type);
    for (; n < order.list.n && n < TCC_MAX_AXES; n++)
        indices[n] = order.list.items[n].s;
    return list_axes(c.rows, c.columns, n, indices, out);
}

bool tcc_choose_axes(tcc_func *f)
{
    products p = {0};
    axes found;
    bool streams = tcc_attr_find(&f->attrs, "stream"), multiplies = !streams && !tcc_is_naive(f) && find_products(f, &p);
    if (!(streams      ? find_axes_of_stream(f, &found)
          : multiplies ? find_axes_of_products(&p, &found)
                       : find_axes_of_output(f, &found)))
        return false;
    tcc_attr_set_strs(f->ir, &f->attrs, "axes", found.n, found.names);
    for (tcc_op *op = f->body->first; op; op = op->next)
        tcc_attr_remove(&op->attrs, "rows");
    for (size_t i = 0; i < p.n; i++)
        tcc_attr_set_int(f->ir, &p.sums[i].p.sum->attrs, "rows", p.sums[i].a);
    return true;
}

void tcc_swap_axes(tcc_func *f)
{
    tcc_attr list = tcc_attr_list(&f->attrs, "axes");
    const char *names[TCC_MAX_AXES];
    for (size_t i = 0; i < list.list.n; i++)
        names[i] = list.list.items[i < 2 ? !i : i].s;
    tcc_attr_set_strs(f->ir, &f->attrs, "axes", list.list.n, names);
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_reduce)
            tcc_attr_set_int(f->ir, &op->attrs, "rows", !tcc_attr_int(&op->attrs, "rows", 0));
}

bool tcc_find_product_axes(const tcc_func *f, tcc_space *out)
{
    products p;
    axes found;
    if (!find_products(f, &p) || !find_axes_of_products(&p, &found))
        return false;
    tcc_product *sums = TCC_NEW_ARRAY(f->ir->arena, tcc_product, p.n);
    for (size_t i = 0; i < p.n; i++)
        sums[i] = tcc_product_from(&p.sums[i].p, p.sums[i].a);
    tcc_space_fill(f, found.n, found.names, p.n, sums, out);
    return true;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    (void)ctx;
    *changed |= !tcc_attr_find(&f->attrs, "axes") && tcc_choose_axes(f);
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_axes = {
    "choose-axes", "decide what each index is to tiles", .run = run, .leaves = TCC_STATE(axes)};

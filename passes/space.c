/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/space.h"

#include "ir/target.h"
#include "passes/pointwise.h"

const char tcc_no_index[] = "(one)";

bool tcc_write_has_space(const tcc_op *write, const tcc_type *field)
{
    bool same = tcc_access_rank(write) == field->rank;
    for (unsigned d = 0; d < field->rank && same; d++)
        same = tcc_map_position(write, field->dims[d].name) >= 0;
    return same;
}

bool tcc_writes_share_space(const tcc_op *x, const tcc_op *y)
{
    size_t n = tcc_access_rank(x);
    bool same = n == tcc_access_rank(y);
    for (size_t d = 0; d < n && same; d++)
        same = tcc_map_position(y, tcc_access_index(x, d)) >= 0;
    return same;
}

int64_t tcc_tile_size_of(const tcc_func *f, const char *index, int64_t otherwise)
{
    tcc_attr tile = tcc_attr_list(&f->attrs, "tile");
    for (size_t i = 0; i + 1 < tile.list.n; i += 2)
        if (tcc_index_same(tile.list.items[i].s, index))
            return tile.list.items[i + 1].i;
    return otherwise;
}

bool tcc_read_is_contiguous_in(const tcc_op *read, const char *x, const char *y)
{
    const char *last = tcc_access_last(read);
    return last && (tcc_index_same(last, x) || tcc_index_same(last, y));
}

tcc_attr tcc_space_order(const tcc_func *f, const tcc_type *sum)
{
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write && tcc_access_rank(op) == sum->rank)
            return tcc_access_indices(op);
    tcc_attr *items = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, sum->rank);
    for (unsigned i = 0; i < sum->rank; i++)
        items[i] = (tcc_attr){.kind = TCC_ATTR_STR, .s = sum->dims[i].name};
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, sum->rank}};
}

tcc_product tcc_product_from(const tcc_product *p, int first)
{
    tcc_product from = *p;
    from.of[0] = p->of[first];
    from.of[1] = p->of[!first];
    return from;
}

/* ---- from attributes -------------------------------------------------------------------------- */

static const tcc_sum_operand *add_operand(tcc_space *c, const tcc_factor *f, int axis, const char *k)
{
    for (size_t i = 0; i < c->n_operands; i++) {
        const tcc_sum_operand *o = &c->operands[i];
        bool computed = tcc_factor_is_computed(f) || tcc_sum_operand_is_computed(o);
        if (o->axis == axis && (computed ? o->value == f->value : tcc_access_same(o->read, f->read, o->k, k)))
            return o;
    }
    c->operands[c->n_operands] = (tcc_sum_operand){f->read, f->value, axis, k};
    return &c->operands[c->n_operands++];
}

/* Whether the one operand of a sum that is computed is A, and must be: where matrix instructions take only that from
 * registers. It is so in all such sums, or nothing makes it so. */
static bool is_fixed(const tcc_func *f, const tcc_space *c)
{
    bool any = false, all = tcc_target_can(tcc_func_target(f), TCC_CAN_wgmma);
    for (size_t i = 0; i < c->n_sums; i++) {
        bool a = tcc_sum_operand_is_computed(c->sums[i].a), b = tcc_sum_operand_is_computed(c->sums[i].b);
        any |= a != b;
        all &= a || !b;
    }
    return any && all;
}

static void fill_axes(const tcc_func *f, size_t n_axes, const char *const *axes, tcc_space *out)
{
    *out = (tcc_space){.n_axes = n_axes, .row = tcc_attr_str(&f->attrs, "row", NULL)};
    out->k = tcc_attr_str(&f->attrs, "stream", NULL);
    out->streams = out->k;
    out->k_extent = out->k ? tcc_index_extent(f, out->k) : (tcc_dim){0};
    out->along = !out->row || !tcc_index_same(axes[0], out->row);
    for (size_t i = 0; i < n_axes; i++) {
        tcc_dim extent = tcc_index_extent(f, axes[i]);
        out->axes[i] = axes[i];
        out->extents[i] = extent.name || extent.size >= 0 ? extent : (tcc_dim){NULL, 1};
    }
}

void tcc_space_fill(const tcc_func *f, size_t n_axes, const char *const *axes, size_t n_sums, const tcc_product *sums,
                    tcc_space *out)
{
    fill_axes(f, n_axes, axes, out);
    out->k = sums[0].k;
    out->k_extent = tcc_factor_extent(&sums[0].of[0], out->k);
    out->parts = sums[0].parts;
    out->sums = TCC_NEW_ARRAY(f->ir->arena, tcc_sum, n_sums);
    out->operands = TCC_NEW_ARRAY(f->ir->arena, tcc_sum_operand, 2 * n_sums);
    for (size_t i = 0; i < n_sums; i++) {
        const tcc_product *p = &sums[i];
        tcc_sum *sum = &out->sums[out->n_sums++];
        *sum = (tcc_sum){.op = p->sum, .k = p->k, .products = p->products};
        sum->a = add_operand(out, &p->of[0], 0, p->k);
        sum->b = add_operand(out, &p->of[1], 1, p->k);
    }
    out->fixed = is_fixed(f, out);
}

/* Whether a factor has an axis, if it is one, and not the other. */
static bool has_own(const tcc_factor *factor, const char *own, const char *other)
{
    return factor->read && (!*own || tcc_map_position(factor->read, own) >= 0) &&
           tcc_map_position(factor->read, other) < 0;
}

/* The products that a function's reductions are said to be; false: they are not, all of them. */
static bool read_products(const tcc_func *f, const char *const *axes, size_t *n, tcc_product *sums)
{
    for (tcc_op *op = f->body->first; op; op = op->next) {
        tcc_product p;
        int64_t rows = tcc_attr_int(&op->attrs, "rows", -1);
        if (op->code != TCC_OP_tensor_reduce)
            continue;
        if (rows < 0 || !tcc_product_find(op, &p))
            return false;
        p = tcc_product_from(&p, (int)rows);
        if (!has_own(&p.of[0], axes[0], axes[1]) || !has_own(&p.of[1], axes[1], axes[0]) ||
            (*n && !tcc_product_shares_loop(&sums[0], &p)))
            return false;
        sums[(*n)++] = p;
    }
    return *n;
}

bool tcc_space_of(const tcc_func *f, tcc_space *out)
{
    tcc_attr list = tcc_attr_list(&f->attrs, "axes");
    const char *axes[TCC_MAX_AXES];
    size_t n_products = 0, n = 0;
    if (list.list.n < 2 || list.list.n > TCC_MAX_AXES)
        return false;
    for (size_t i = 0; i < list.list.n; i++)
        axes[i] = list.list.items[i].s;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        n_products += op->code == TCC_OP_tensor_reduce && tcc_attr_find(&op->attrs, "rows");
    if (!n_products) {
        fill_axes(f, list.list.n, axes, out);
        out->vector = tcc_pointwise_most(f, out);
        return true;
    }
    tcc_product *sums = TCC_NEW_ARRAY(f->ir->arena, tcc_product, n_products);
    if (!read_products(f, axes, &n, sums))
        return false;
    tcc_space_fill(f, list.list.n, axes, n, sums, out);
    return true;
}

/* ---- what is asked of it ------------------------------------------------------------------------ */

tcc_dim tcc_space_extent(const tcc_space *c, const char *axis)
{
    size_t i = 0;
    while (!tcc_index_same(c->axes[i], axis))
        i++;
    return c->extents[i];
}

bool tcc_space_multiplies(const tcc_space *c, const tcc_value *tensor)
{
    for (size_t i = 0; i < c->n_operands; i++)
        if (TCC_VIEW(tensor_read, c->operands[i].read)->tensor == tensor)
            return true;
    return false;
}

tcc_scalar tcc_sum_operand_elem(const tcc_sum_operand *o)
{
    return o->value->type->elem;
}

static unsigned bits_of(const tcc_sum *sum)
{
    return tcc_scalar_bits(tcc_sum_operand_elem(sum->a));
}

const tcc_sum *tcc_space_narrowest(const tcc_space *c)
{
    const tcc_sum *found = c->sums;
    for (size_t i = 1; i < c->n_sums; i++) {
        bool ints = c->sums[i].products == TCC_i32 && found->products != TCC_i32;
        if (bits_of(&c->sums[i]) < bits_of(found) || (bits_of(&c->sums[i]) == bits_of(found) && ints))
            found = &c->sums[i];
    }
    return found;
}

const tcc_sum *tcc_space_widest(const tcc_space *c)
{
    const tcc_sum *found = c->sums;
    for (size_t i = 1; i < c->n_sums; i++)
        if (bits_of(&c->sums[i]) > bits_of(found))
            found = &c->sums[i];
    return found;
}

bool tcc_sum_operand_is_computed(const tcc_sum_operand *o)
{
    return o->value->def != o->read;
}

bool tcc_sum_operand_loads_singly(const tcc_sum_operand *o, const tcc_op *read)
{
    const char *last = tcc_access_last(o->read), *of = tcc_access_last(read);
    return read != o->read && read->code == TCC_OP_tensor_read && read->results[0].type->rank == o->value->type->rank &&
           !(last && of && tcc_index_same(last, of));
}

static bool has_offsets_of(const tcc_op *read, const tcc_op *other)
{
    const tcc_type *x = tcc_accessed_tensor(read)->type, *y = tcc_accessed_tensor(other)->type;
    bool same = x->rank == y->rank;
    for (unsigned d = 0; d < x->rank && same; d++)
        same = tcc_access_expr(read, d) == tcc_access_expr(other, d) && !tcc_access_loaded(read, d) &&
               !tcc_access_loaded(other, d) && x->dims[d].name == y->dims[d].name && x->dims[d].size == y->dims[d].size;
    return same;
}

bool tcc_read_is_first_there(const tcc_op *read)
{
    for (const tcc_op *op = read->block->first; op != read; op = op->next)
        if (op->code == TCC_OP_tensor_read && has_offsets_of(read, op))
            return false;
    return true;
}

bool tcc_sum_operand_runs_across(const tcc_sum_operand *o)
{
    const char *last = tcc_access_last(o->read);
    return last && !tcc_index_same(last, o->k);
}

bool tcc_sum_operand_is_put(const tcc_space *c, const tcc_sum_operand *o)
{
    bool put = false;
    for (size_t i = 0; i < c->n_sums; i++)
        put |= (c->sums[i].a == o || c->sums[i].b == o) && tcc_sum_operand_is_computed(c->sums[i].b);
    return put && tcc_sum_operand_is_computed(o);
}

bool tcc_space_sums_along(const tcc_space *c, const tcc_type *field)
{
    for (size_t i = 0; i < c->n_sums; i++)
        if (tcc_field_has_index(field, c->sums[i].k))
            return true;
    return false;
}

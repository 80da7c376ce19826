/* rows_groups: rows that may begin anywhere, in tiles that begin at a multiple of a vector.
 *
 * Rows of one length, in tensors whose addresses are aligned, begin at the same place among vectors. If a tile begins with
 * the vector in which its row does, every vector is aligned.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/access.h"
#include "passes/rows.h"

/* Whether an access is of a row as it is. */
static bool is_of_plain_row(const tcc_space *p, const tcc_op *op)
{
    const tcc_value *tensor = tcc_accessed_tensor(op);
    const char *last = tensor && tcc_access_is_plain(op) ? tcc_access_last(op) : NULL;
    return last && tcc_index_same(last, p->row) && !tensor->type->row_bytes && !tensor->type->strides &&
           tcc_scalar_bits(tensor->type->elem) >= 8;
}

/* The access that says where rows begin: the first that writes some, else the first read with most indices. */
static const tcc_op *find_first(const tcc_func *f, const tcc_space *p)
{
    const tcc_op *found = NULL;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        if (!is_of_plain_row(p, op))
            continue;
        if (op->code == TCC_OP_tensor_write)
            return op;
        if (!found || tcc_access_rank(op) > tcc_access_rank(found))
            found = op;
    }
    return found;
}

bool tcc_rows_is_grouped(const tcc_func *f, const tcc_space *p, const tcc_op *access)
{
    const tcc_op *first = find_first(f, p);
    bool same = first && is_of_plain_row(p, access) && tcc_access_rank(access) == tcc_access_rank(first);
    for (size_t d = 0; same && d < tcc_access_rank(first); d++)
        same = tcc_index_same(tcc_access_index(access, d), tcc_access_index(first, d)) &&
               tcc_dim_equal(tcc_accessed_tensor(access)->type->dims[d], tcc_accessed_tensor(first)->type->dims[d]);
    return same;
}

/* Whether an access reads one row for all, which lanes can combine of words wherever it begins. */
static bool is_shared(const tcc_space *p, const tcc_op *access)
{
    enum { WORD_BITS = 32 };
    const tcc_value *tensor = tcc_accessed_tensor(access);
    return access->code == TCC_OP_tensor_read && is_of_plain_row(p, access) && tensor->type->rank == 1 &&
           tcc_scalar_bits(tensor->type->elem) <= WORD_BITS;
}

bool tcc_rows_can_group(const tcc_func *f, const tcc_space *p)
{
    bool open = p->row && (p->extents[1].name || p->extents[1].size % p->vector);
    if (!open || tcc_tile_size_of(f, p->axes[0], 1) > 1 || p->along != 1 || p->vector == 1 ||
        tcc_rows_parts(f) || !find_first(f, p))
        return false;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        bool is_of_row = tcc_accessed_tensor(op) && (op->n_results ? tcc_field_has_index(op->results[0].type, p->row)
                                                                   : tcc_map_position(op, p->row) >= 0);
        if (is_of_row && !tcc_rows_is_grouped(f, p, op) && !is_shared(p, op))
            return false;
        /* Elements before and behind a row that is read may change, where others write them. */
        if (op->code == TCC_OP_tensor_read && tcc_value_is_used_by(tcc_accessed_tensor(op), TCC_OP_tensor_write))
            return false;
    }
    return true;
}

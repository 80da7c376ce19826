/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/cascade.h"

#include "ir/reduction.h"
#include "ir/target.h"
#include "passes/space.h"
#include "passes/tiling.h"

/* Columns of a tile: those of a wgmma's results, and of a box that TMA copies. */
enum { MOST = 256, MOST_OF_WAVES = 128, STEP = 16 };

/* An index that a field has and another lacks; of several the last one. NULL: there is none. */
static const char *own_index(const tcc_type *of, const tcc_type *lacks)
{
    const char *own = NULL;
    for (unsigned d = 0; d < of->rank; d++)
        own = tcc_field_has_index(lacks, of->dims[d].name) ? own : of->dims[d].name;
    return own;
}

static const tcc_type *type_of(const tcc_product *p, int factor)
{
    return p->of[factor].value->type;
}

static bool is_read(const tcc_factor *f)
{
    return f->value->def && f->value->def->code == TCC_OP_tensor_read;
}

/* Whether a tile of two of a tensor's dimensions is copied, along the indices x and y. */
static bool is_window(const tcc_func *f, const tcc_factor *of, const char *x, const char *y)
{
    const tcc_tiling t = {.b = {.func = (tcc_func *)f}, .axes = {x, y}, .sizes = {MOST, MOST}};
    int64_t dims[2];
    const tcc_op *read = of->value->def;
    const tcc_type *tensor = tcc_accessed_tensor(read)->type;
    return tcc_tiling_window(&t, read, dims) && dims[0] >= 0 && dims[1] >= 0 && tcc_type_has_rows(tensor) &&
           (dims[0] == (int64_t)tensor->rank - 1 || dims[1] == (int64_t)tensor->rank - 1);
}

/* Whether a tile can have all of an index. A wave reads all columns of a round at once, for which it has registers. */
static bool is_held(const tcc_func *f, const char *index)
{
    tcc_dim extent = tcc_index_extent(f, index);
    int64_t most = tcc_target_can(tcc_target_of(f->ir), TCC_CAN_wmma) ? MOST_OF_WAVES : MOST;
    return !extent.name && extent.size >= STEP && extent.size <= most && extent.size % STEP == 0;
}

/* Whether a product of elements is one of scores, with the rows first. */
static bool is_score(const tcc_func *f, const tcc_cascade *c, tcc_product *p)
{
    if (tcc_field_has_index(type_of(p, 0), c->along))
        *p = tcc_product_from(p, 1);
    const tcc_factor *a = &p->of[0], *b = &p->of[1];
    return is_read(a) && is_read(b) && !tcc_field_has_index(a->value->type, c->along) &&
           tcc_field_has_index(b->value->type, c->along) && tcc_field_has_index(a->value->type, c->rows) &&
           !tcc_field_has_index(b->value->type, c->rows) && is_window(f, a, c->rows, p->k) &&
           is_window(f, b, p->k, c->along) && is_held(f, p->k);
}

static bool is_sum(const tcc_func *f, tcc_cascade *c, tcc_product *p)
{
    if (is_read(&p->of[0]) && !is_read(&p->of[1]))
        *p = tcc_product_from(p, 1);
    if (is_read(&p->of[0]) || !is_read(&p->of[1]))
        return false;
    const tcc_type *computed = type_of(p, 0), *read = type_of(p, 1);
    const char *rows = own_index(computed, read), *columns = own_index(read, computed);
    bool is_first = !c->n_sums;
    c->rows = is_first ? rows : c->rows;
    c->columns = is_first ? columns : c->columns;
    return rows && columns && tcc_index_same(rows, c->rows) && tcc_index_same(columns, c->columns) &&
           is_window(f, &p->of[1], c->along, columns) && is_held(f, columns);
}

bool tcc_cascade_along(const tcc_func *f, const char *along, tcc_cascade *out)
{
    TCC_VEC(tcc_product) sums = {0}, scores = {0};
    tcc_arena *arena = f->ir->arena;
    *out = (tcc_cascade){.along = along};
    for (tcc_op *op = f->body->first; op; op = op->next) {
        tcc_product p;
        bool multiplies = tcc_is_reduction(op) && tcc_product_of_terms(op, &p);
        if (multiplies && tcc_index_same(p.k, along) && !is_read(&p.of[0]) && !is_read(&p.of[1]))
            continue; /* of what rows of terms have, one of them also parts: no instruction multiplies these */
        if (multiplies && tcc_index_same(p.k, along)) {
            if (!is_sum(f, out, &p))
                return false;
            TCC_PUSH(arena, &sums, p);
            out->n_sums = sums.len;
        } else if (multiplies) {
            TCC_PUSH(arena, &scores, p);
        }
    }
    bool all = sums.len && scores.len;
    for (size_t i = 0; i < scores.len && all; i++)
        all = is_score(f, out, &scores.data[i]);
    out->n_scores = scores.len;
    out->scores = scores.data;
    out->sums = sums.data;
    return all;
}

bool tcc_cascade_of(const tcc_func *f, tcc_cascade *out)
{
    const char *along = tcc_attr_str(&f->attrs, "stream", NULL);
    return along && tcc_cascade_along(f, along, out);
}

const tcc_product *tcc_product_of(const tcc_op *op, size_t n, const tcc_product *of)
{
    for (size_t i = 0; i < n; i++)
        if (of[i].sum == op)
            return &of[i];
    return NULL;
}

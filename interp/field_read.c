/* field_read: a row of a tensor.read whose coordinates are expressions, or loaded.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/field_plan.h"

/* The coordinate along a dimension: in the current row `first` + i * `step` + what is loaded. */
struct tcc_coordinate {
    const tcc_index_expr *at, *step; /* step NULL: it is not the same everywhere */
    const tcc_row *loaded;           /* NULL: nothing is */
    int64_t first, by;
    bool even; /* whether first and by say it for this row */
};

typedef struct place {
    const tcc_fields *fs;
    const tcc_index *row;
    int64_t in_row;
} place;

static bool look_up(void *user, tcc_index_factor_kind kind, const char *name, tcc_index_range *out)
{
    const place *p = user;
    const tcc_index *index = kind == TCC_FACTOR_INDEX ? tcc_index_find(p->fs, name) : NULL;
    int64_t at = kind == TCC_FACTOR_DIM ? tcc_run_extent(p->fs->run, (tcc_dim){.name = name})
                 : index && index == p->row ? p->in_row
                 : index                    ? index->at
                                            : -1;
    *out = (tcc_index_range){at, at};
    return kind == TCC_FACTOR_DIM ? at >= 0 : index != NULL;
}

void tcc_plan_coordinates(tcc_fields *fs, tcc_row_plan *p, tcc_row_step *s)
{
    tcc_ir *ir = s->op->block->func->ir;
    s->coordinates = TCC_NEW_ARRAY(fs->run->scratch, tcc_coordinate, s->access.n);
    for (size_t d = 0; d < s->access.n; d++) {
        tcc_coordinate *c = &s->coordinates[d];
        const tcc_value *loaded = tcc_access_loaded(s->op, d);
        c->at = tcc_access_expr(s->op, d);
        c->step = p->row ? tcc_index_stride(ir, c->at, p->row->name) : tcc_index_number(ir, 0);
        c->loaded = loaded ? tcc_row_of(fs, p, loaded) : NULL;
    }
}

static void begin_row(const tcc_fields *fs, const tcc_row_plan *p, tcc_coordinate *c)
{
    place at = {fs, p->row, 0};
    int64_t last;
    c->even = c->step && tcc_index_value(c->at, look_up, &at, &c->first) &&
              tcc_index_value(c->step, look_up, &at, &c->by) &&
              !__builtin_mul_overflow(c->by, p->row ? p->row->extent : 1, &last) &&
              !__builtin_add_overflow(last, c->first, &last);
}

/* The i-th value in a row; false where it does not fit 64 bits. */
static bool coordinate_at(const tcc_fields *fs, const tcc_row_plan *p, const tcc_coordinate *c, size_t i, int64_t *out)
{
    place at = {fs, p->row, (int64_t)i};
    int64_t loaded = c->loaded ? c->loaded->cells[i * c->loaded->step].i : 0;
    *out = c->even ? c->first + (int64_t)i * c->by : 0;
    return (c->even || tcc_index_value(c->at, look_up, &at, out)) && !__builtin_add_overflow(*out, loaded, out);
}

void tcc_read_elements(tcc_fields *fs, const tcc_row_plan *p, const tcc_row_step *s, size_t n)
{
    tcc_param from = *s->access.param;
    from.data = (double *)s->access.data;
    for (size_t d = 0; d < s->access.n; d++)
        begin_row(fs, p, &s->coordinates[d]);
    for (size_t i = 0; i < n; i++) {
        int64_t offset = 0, at;
        bool inside = true;
        for (size_t d = 0; d < s->access.n && inside; d++) {
            inside = coordinate_at(fs, p, &s->coordinates[d], i, &at) && at >= 0 && at < from.extents[d];
            offset += inside ? at * from.strides[d] : 0;
        }
        s->result->cells[i] = inside ? tcc_param_load(&from, offset) : (tcc_cell){.f = 0};
    }
}

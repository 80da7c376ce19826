/* launch_tensors: the elements of tensors, and who wrote them. An element is written by one CTA or cluster of a step,
 * and read from the workspace only if something is in it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "checker/launch.h"
#include "ir/signature.h"

static tcc_lrole role_of(const char *role)
{
    return !strcmp(role, "out")         ? TCC_L_OUT
           : !strcmp(role, "inout")     ? TCC_L_INOUT
           : !strcmp(role, "workspace") ? TCC_L_WORKSPACE
                                        : TCC_L_IN;
}

/* Sets the elements that a tensor has where its strides are. */
static void set_strided(const tcc_lsizes *s, tcc_ltensor *t, uint32_t to)
{
    const tcc_type *type = t->type;
    int64_t at[TCC_MANIFEST_RANK] = {0}, n[TCC_MANIFEST_RANK], stride[TCC_MANIFEST_RANK], place = 0;
    for (unsigned d = 0; d < type->rank; d++) {
        n[d] = tcc_launch_dim(s, type->dims[d]);
        stride[d] = tcc_launch_dim(s, type->strides[d]);
    }
    for (bool more = true; more;) {
        t->elems[place] = to;
        more = false;
        for (unsigned d = type->rank; d-- > 0 && !more;) {
            more = ++at[d] < n[d];
            at[d] = more ? at[d] : 0;
            place += more ? stride[d] : -(n[d] - 1) * stride[d];
        }
    }
}

static bool is_zeroed(const tcc_func *variant, const char *name)
{
    bool zeroed = false;
    for (size_t i = 0; i < tcc_func_step_count(variant); i++)
        zeroed |= tcc_func_is_zeroed(tcc_func_step_at(variant, i), name);
    return zeroed;
}

tcc_ltensor *tcc_launch_tensors(const tcc_func *variant, const tcc_func *parameters, const tcc_lsizes *s,
                                tcc_arena *scratch)
{
    size_t n = parameters->body->n_args;
    tcc_attr roles = tcc_attr_list(&parameters->attrs, "roles");
    tcc_ltensor *tensors = TCC_NEW_ARRAY(scratch, tcc_ltensor, n);
    for (size_t i = 0; i < n; i++) {
        const tcc_value *arg = parameters->body->args[i];
        const tcc_type *type = arg->type;
        tcc_ltensor *t = &tensors[i];
        *t = (tcc_ltensor){.name = arg->name, .type = type, .role = role_of(roles.list.items[i].s), .n = 1};
        t->columns = t->row = 1;
        t->n = tcc_launch_elements(s, type);
        if (type->rank && !type->strides) {
            int64_t multiple = tcc_type_row_elems(type);
            t->columns = tcc_launch_dim(s, type->dims[type->rank - 1]);
            t->row = (t->columns + multiple - 1) / multiple * multiple;
        }
        if (type->kind != TCC_KIND_tensor || t->role == TCC_L_IN || (s->large && t->n > 1))
            continue;
        t->elems = TCC_NEW_ARRAY(scratch, uint32_t, (size_t)t->n);
        uint32_t first = t->role == TCC_L_INOUT ? TCC_L_GIVEN : is_zeroed(variant, t->name) ? TCC_L_ZERO : 0;
        for (int64_t e = 0; e < t->n; e++)
            t->elems[e] = type->strides ? TCC_L_GAP : first;
        if (type->strides && t->n)
            set_strided(s, t, first);
    }
    return tensors;
}

/* ---- accesses ------------------------------------------------------------------------------ */

/* Elements of one row. */
static bool write_elems(tcc_lwarp *w, const tcc_op *op, tcc_ltensor *t, int64_t first, int64_t n)
{
    const uint32_t now = w->writer, begin = w->l->first_writer;
    uint32_t *elems = t->elems + first;
    bool twice = false;
    for (int64_t e = 0; e < n; e++)
        twice |= elems[e] >= begin && elems[e] != now;
    for (int64_t e = 0; twice && e < n; e++)
        if (elems[e] == TCC_L_GAP)
            return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, op,
                                       "writes element %lld of '%s', which is between its rows", (long long)(first + e),
                                       t->name);
        else if (elems[e] >= begin && elems[e] != now)
            return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, op,
                                       "writes element %lld of '%s', which CTA %lld writes, too",
                                       (long long)(first + e), t->name,
                                       (long long)(elems[e] - begin) * w->l->cluster);
    for (int64_t e = 0; e < n; e++)
        elems[e] = now;
    return true;
}

static bool read_elems(tcc_lwarp *w, const tcc_op *op, const tcc_ltensor *t, int64_t first, int64_t n)
{
    const uint32_t begin = w->l->first_writer;
    const uint32_t *elems = t->elems + first;
    bool early = false;
    for (int64_t e = 0; e < n; e++)
        early |= !elems[e] || (elems[e] >= begin && elems[e] != TCC_L_GAP);
    for (int64_t e = 0; early && e < n; e++)
        if (!w->l->sizes->large && (!elems[e] || (elems[e] >= begin && t->role == TCC_L_WORKSPACE)))
            return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, op, "reads element %lld of '%s', which %s",
                                       (long long)(first + e), t->name,
                                       elems[e] ? "the same step writes" : "no step before has written");
    return true;
}

/* n elements from one on, which are all in the tensor. */
static bool access_elems(tcc_lwarp *w, const tcc_linst *in, tcc_ltensor *t, int64_t first, int64_t n)
{
    const tcc_op *op = in->op;
    if (n < 1)
        return true;
    if (first < 0 || first + n > t->n)
        return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, op, "%s element %lld of '%s', which has %lld",
                                   in->writes ? "writes" : "reads", (long long)(first < 0 ? first : first + n - 1),
                                   t->name, (long long)t->n);
    if (in->writes && t->role == TCC_L_IN)
        return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, op, "writes '%s', which is only to be read", t->name);
    if (in->writes && t->anywhere == w->l->first_writer)
        return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, op, "writes '%s', any element of which the same step may read",
                                   t->name);
    t->tiled |= in->writes && w->l->counts_tiles;
    w->l->writes |= in->writes;
    bool ok = true;
    for (int64_t end = first + n, part; ok && t->elems && first < end; first += part) {
        int64_t column = t->row == t->columns ? 0 : first % t->row, there = t->columns - column;
        part = t->row == t->columns || t->row - column > end - first ? end - first : t->row - column;
        int64_t real = t->row == t->columns || there > part ? part : there;
        ok = in->writes ? write_elems(w, op, t, first, real) : read_elems(w, op, t, first, real);
    }
    return ok;
}

/* ---- by copies of boxes -------------------------------------------------------------------- */

static bool copy_box(tcc_lwarp *w, const tcc_linst *in, const tcc_lmap *m)
{
    unsigned lane = tcc_launch_first_lane(w);
    unsigned named = tcc_op_info_get(in->op->code)->n_operands;
    int64_t from[TCC_L_RANK], to[TCC_L_RANK], at[TCC_L_RANK];
    if (in->op->n_operands - named != m->rank)
        return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, in->op, "%u coordinates in a tensor of rank %u",
                                   in->op->n_operands - named, m->rank);
    for (unsigned d = 0; d < m->rank; d++) {
        int64_t c = tcc_launch_int(w, in->operands[named + d], lane), end = c + m->box[d];
        at[d] = from[d] = c < 0 ? 0 : c;
        to[d] = end < m->extents[d] ? end : m->extents[d];
        if (from[d] >= to[d])
            return true;
    }
    for (unsigned d = 0; d < m->rank;) {
        int64_t first = at[0];
        for (unsigned i = 1; i < m->rank; i++)
            first += at[i] * m->strides[i];
        if (!access_elems(w, in, m->tensor, first, to[0] - from[0]))
            return false;
        for (d = 1; d < m->rank && ++at[d] == to[d]; d++)
            at[d] = from[d];
    }
    return true;
}

/* ---- by threads ---------------------------------------------------------------------------- */

/* Elements that a lane accesses. */
typedef struct span {
    int64_t first, n;
} span;

/* A slot as an array: `step` cells from one lane to the next. */
typedef struct column {
    const tcc_cell *cells;
    size_t step;
} column;

static column column_of(const tcc_lwarp *w, int slot)
{
    return (column){tcc_launch_cells(w, slot), w->known[slot] == TCC_L_VARYING};
}

static inline int64_t in_lane(column c, unsigned lane)
{
    return c.cells[c.step * lane].i;
}

/* What is in a tensor of `all` elements, if anything is. */
static span inside(span s, int64_t all)
{
    int64_t first = s.first < 0 ? 0 : s.first, end = s.first + s.n < all ? s.first + s.n : all;
    return first < end ? (span){first, end - first} : s;
}

/* The spans of lanes, of elements of so many bits. Returns the lanes that access any. */
static uint64_t by_offset(const tcc_lwarp *w, const tcc_linst *in, int64_t bits, span *spans)
{
    bool copy = in->op->code == TCC_OP_nvvm_cp_async;
    column offset = column_of(w, in->operands[copy ? 2 : 1]), size = column_of(w, in->operands[copy ? 3 : 2]);
    int64_t n = in->bits / bits, all = w->l->params[in->param].tensor->n;
    uint64_t some = 0;
    for (unsigned l = 0; l < w->l->lanes; l++)
        some |= (uint64_t)(in_lane(size, l) != 0) << l;
    some &= w->mask;
    for (uint64_t lanes = some; lanes; lanes &= lanes - 1) {
        unsigned l = (unsigned)__builtin_ctzll(lanes);
        spans[l] = (span){in_lane(offset, l) + in->disp, copy ? in_lane(size, l) * 8 / bits : n};
        spans[l] = in->over ? inside(spans[l], all) : spans[l];
    }
    return some;
}

static uint64_t in_buffer(const tcc_lwarp *w, const tcc_linst *in, int64_t bits, span *spans)
{
    const tcc_cell *buffer = tcc_launch_cells(w, in->operands[0]);
    column offset = column_of(w, in->operands[1]), further = column_of(w, in->operands[2]);
    uint64_t some = 0;
    for (uint64_t lanes = w->mask; lanes; lanes &= lanes - 1) {
        unsigned l = (unsigned)__builtin_ctzll(lanes);
        int64_t at = (int64_t)(uint32_t)(in_lane(offset, l) + in->disp);
        some |= (uint64_t)(at + in->bits / 8 <= buffer[2].i) << l;
        spans[l] = (span){(buffer[1].i + at + in_lane(further, l)) * 8 / bits, in->bits / bits};
    }
    return some;
}

bool tcc_launch_access(tcc_lwarp *w, const tcc_linst *in)
{
    tcc_lparam *p = in->param < 0 ? NULL : &w->l->params[in->param];
    if (!p || !p->tensor)
        return tcc_launch_wrong_in(w, TCC_ERR_UNSUPPORTED, in->op, "an address that is not a parameter's");
    if (p->map.rank)
        return copy_box(w, in, &p->map);
    span spans[TCC_L_LANES], all = {0};
    bool ok = true, buffer = in->op->code == TCC_OP_amdgcn_buffer_load || in->op->code == TCC_OP_amdgcn_buffer_store;
    uint64_t lanes = (buffer ? in_buffer : by_offset)(w, in, tcc_scalar_bits(p->tensor->type->elem), spans);
    for (; ok && lanes; lanes &= lanes - 1) {
        span next = spans[__builtin_ctzll(lanes)];
        if (next.first == all.first + all.n) { /* neighbours' are one */
            all.n += next.n;
            continue;
        }
        ok = access_elems(w, in, p->tensor, all.first, all.n);
        all = next;
    }
    return ok && access_elems(w, in, p->tensor, all.first, all.n);
}

bool tcc_launch_read_anywhere(tcc_lwarp *w, const tcc_linst *in)
{
    tcc_lparam *p = in->param < 0 ? NULL : &w->l->params[in->param];
    tcc_ltensor *t = p ? p->tensor : NULL;
    if (!t || p->map.rank)
        return tcc_launch_wrong_in(w, TCC_ERR_UNSUPPORTED, in->op, "%s",
                                   "this depends on more than sizes and numbers of threads, and is not followed");
    if (t->anywhere == w->l->first_writer)
        return true;
    t->anywhere = w->l->first_writer;
    return access_elems(w, in, t, 0, t->n);
}

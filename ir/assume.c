/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/assume.h"

#include <string.h>

#include "ir/signature.h"

bool tcc_func_is_variant(const tcc_func *f)
{
    return tcc_attr_find(&f->attrs, "assumes") != NULL;
}

void tcc_assume(tcc_func *f, const char *word, const char *name, int64_t n)
{
    tcc_ir *ir = f->ir;
    if (!name) {
        tcc_attr all = tcc_attr_list(&f->attrs, "assumes");
        all.kind = TCC_ATTR_LIST;
        tcc_attr_set(ir, &f->attrs, "assumes", all, (tcc_loc){0, 0});
        return;
    }
    tcc_attr *record = TCC_NEW_ARRAY(ir->arena, tcc_attr, 3);
    record[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(ir, word)};
    record[1] = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(ir, name)};
    record[2] = (tcc_attr){.kind = TCC_ATTR_INT, .i = n};
    tcc_attr_append(ir, &f->attrs, "assumes", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {record, 3}});
}

/* The largest number in an assumption of this kind about a name, 0 if there is none. */
static int64_t assumed(const tcc_func *f, const char *word, const char *name)
{
    tcc_attr list = tcc_attr_list(&f->attrs, "assumes");
    int64_t most = 0;
    for (size_t i = 0; i < list.list.n; i++) {
        const tcc_attr *a = list.list.items[i].list.items;
        if (tcc_attr_is_record(list.list.items[i], word, "si") && !strcmp(a[1].s, name) &&
            a[2].i > most)
            most = a[2].i;
    }
    return most;
}

static bool is_multiple(int64_t n, int64_t of)
{
    return n && n % of == 0;
}

/* The bits of a row; 0 when they are not known. One number is a row of its own. */
static int64_t row_bits(const tcc_type *t)
{
    if (!t->rank)
        return tcc_scalar_bits(t->elem);
    tcc_dim d = t->dims[t->rank - 1];
    return d.name ? 0 : d.size * tcc_scalar_bits(t->elem);
}

bool tcc_assumes_align(const tcc_func *f, const tcc_value *tensor, int64_t bytes)
{
    return is_multiple(tcc_func_is_workspace(f, tensor) ? TCC_WORKSPACE_ALIGN : assumed(f, "align", tensor->name),
                       bytes);
}

/* The bits of which all pitches are known to be multiples; 0 where some are not known. */
static int64_t pitch_bits(const tcc_type *t)
{
    enum { OF_ANY = 1 << 20 }; /* all strides are 0 */
    int64_t pitch = tcc_type_known_pitch(t);
    if (t->strides && t->rank > 1)
        return tcc_type_open_stride(t) ? 0 : (pitch ? pitch : OF_ANY) * tcc_scalar_bits(t->elem);
    return t->row_bytes ? (int64_t)t->row_bytes * 8 : row_bits(t);
}

bool tcc_assumes_pitch(const tcc_func *f, const tcc_value *tensor, int64_t bytes)
{
    int64_t known = pitch_bits(tensor->type);
    if (!tcc_type_has_rows(tensor->type))
        return false;
    return known ? known % (bytes * 8) == 0 : is_multiple(assumed(f, "pitch", tensor->name), bytes);
}

bool tcc_has_rows_of(const tcc_value *tensor, tcc_dim dim)
{
    const tcc_type *t = tensor->type;
    return t->kind == TCC_KIND_tensor && t->rank && !tcc_type_has_gaps(t) && tcc_type_has_rows(t) &&
           tcc_dim_equal(t->dims[t->rank - 1], dim);
}

bool tcc_assumes_multiple(const tcc_func *f, tcc_dim dim, int64_t n, const tcc_value **rows)
{
    enum { BYTE_BITS = 8 };
    *rows = NULL;
    if (!dim.name)
        return dim.size % n == 0;
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_value *arg = f->body->args[i];
        int64_t bits = n * tcc_scalar_bits(arg->type->elem);
        if (tcc_has_rows_of(arg, dim) && bits % BYTE_BITS == 0 && tcc_assumes_pitch(f, arg, bits / BYTE_BITS))
            *rows = arg;
        if (*rows)
            return true;
    }
    return is_multiple(assumed(f, "multiple", dim.name), n);
}

bool tcc_assumes_length(const tcc_func *f, const tcc_value *tensor, int64_t bytes)
{
    return assumed(f, "length", tensor->name) >= bytes;
}

bool tcc_assumes_min(const tcc_func *f, tcc_dim dim, int64_t n)
{
    return (dim.name ? assumed(f, "min", dim.name) : dim.size) >= n;
}

/* The smallest number that a dimension is assumed not to exceed; INT64_MAX: none. */
static int64_t assumed_max(const tcc_func *f, const char *dim)
{
    tcc_attr list = tcc_attr_list(&f->attrs, "assumes");
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < list.list.n; i++) {
        const tcc_attr *a = list.list.items[i].list.items;
        if (tcc_attr_is_record(list.list.items[i], "max", "si") && !strcmp(a[1].s, dim) && a[2].i < least)
            least = a[2].i;
    }
    return least;
}

bool tcc_assumes_max(const tcc_func *f, tcc_dim dim, int64_t n)
{
    return (dim.name ? assumed_max(f, dim.name) : dim.size) <= n;
}

bool tcc_assumes_all_aligned(const tcc_func *f, int64_t bytes)
{
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_value *arg = f->body->args[i];
        if (arg->type->kind != TCC_KIND_tensor)
            continue;
        bool can_be = pitch_bits(arg->type) % (bytes * 8) == 0;
        if (!tcc_assumes_align(f, arg, bytes) || (can_be && !tcc_assumes_pitch(f, arg, bytes)))
            return false;
    }
    return true;
}

/* ---- verification ------------------------------------------------------------------------ */

static const tcc_type *type_of_argument(const tcc_func *s, const char *name)
{
    const tcc_value *argument = tcc_func_parameter(s, name);
    return argument ? argument->type : NULL;
}

static const char *wrong_record(const tcc_func *s, tcc_attr record, tcc_arena *arena)
{
    const tcc_attr *a = record.list.items;
    bool align = tcc_attr_is_record(record, "align", "si");
    bool pitch = tcc_attr_is_record(record, "pitch", "si");
    bool length = tcc_attr_is_record(record, "length", "si");
    bool of_dim = tcc_attr_is_record(record, "min", "si") || tcc_attr_is_record(record, "max", "si") ||
                  tcc_attr_is_record(record, "multiple", "si");
    if (!align && !pitch && !length && !of_dim)
        return "needs [align, TENSOR, BYTES], [pitch, …], [length, …], [min, DIM, N], [max, …] or [multiple, …]";
    if (a[2].i < 1)
        return tcc_arena_printf(arena, "says '%s' %s %lld, expected a positive number", a[0].s, a[1].s,
                                (long long)a[2].i);
    if (of_dim)
        return tcc_dims_have(tcc_attr_list(&s->attrs, "dims"), a[1].s) ? NULL
                                  : tcc_arena_printf(arena, "names no dimension '%s'", a[1].s);
    const tcc_type *t = type_of_argument(s, a[1].s);
    if (!t || t->kind != TCC_KIND_tensor)
        return tcc_arena_printf(arena, "names no tensor '%s'", a[1].s);
    int64_t known = pitch ? pitch_bits(t) : row_bits(t);
    if (!tcc_type_has_rows(t)) /* rows run along any dimension */
        known = 0;
    bool holds =
        align || !known || (pitch && known % (a[2].i * 8) == 0) || (length && known >= a[2].i * 8);
    return holds ? NULL
                 : tcc_arena_printf(arena, "says '%s' %lld of '%s', whose rows have %lld bits",
                                    a[0].s, (long long)a[2].i, a[1].s, (long long)known);
}

/* Whether rows of some tensor that run along `dim` have n elements by their assumed length. */
static bool length_implies(const tcc_func *f, const tcc_func *s, const char *dim, int64_t n)
{
    for (size_t i = 0; i < s->body->n_args; i++) {
        const tcc_value *arg = s->body->args[i];
        const tcc_type *t = arg->type;
        unsigned first = tcc_type_has_rows(t) && t->rank ? t->rank - 1 : 0; /* else rows may run along any */
        if (assumed(f, "length", arg->name) * 8 < n * (int64_t)tcc_scalar_bits(t->elem))
            continue;
        for (unsigned d = first; d < t->rank; d++)
            if (t->dims[d].name && !strcmp(t->dims[d].name, dim))
                return true;
    }
    return false;
}

/* Whether rows of a tensor are told apart by a dimension, or a stride: the pitch that an assumption is about. */
static bool is_pitch_of(const tcc_type *t, const char *name)
{
    bool is = !(t->strides && t->rank > 1) && t->dims[t->rank - 1].name && !strcmp(t->dims[t->rank - 1].name, name);
    for (unsigned d = 0; t->strides && d < t->rank; d++)
        is |= t->strides[d].name && !strcmp(t->strides[d].name, name);
    return is;
}

/* Whether the product of `factors` elements is one of assumed rows, and those are multiples: its
 * last factor runs along the row. */
static bool pitch_implies(const tcc_func *f, const tcc_func *s, tcc_attr factors,
                          int64_t elem_bytes, int64_t bytes)
{
    const tcc_attr *last = factors.list.n ? &factors.list.items[factors.list.n - 1] : NULL;
    if (last && last->kind == TCC_ATTR_STR && is_multiple(assumed(f, "multiple", last->s) * elem_bytes, bytes))
        return true;
    for (size_t i = 0; i < s->body->n_args; i++) {
        const tcc_value *arg = s->body->args[i];
        const tcc_type *t = arg->type;
        int64_t bits = tcc_scalar_bits(t->elem), scale = bits < 8 ? 8 / bits : 1;
        if (!t->rank || (bits < 8 ? 1 : bits / 8) != elem_bytes || !last)
            continue;
        if (last->kind == TCC_ATTR_STR && is_pitch_of(t, last->s) &&
            is_multiple(assumed(f, "pitch", arg->name) * scale, bytes))
            return true;
    }
    return false;
}

static bool is_implied(const tcc_func *f, const tcc_func *s, tcc_attr condition)
{
    const tcc_attr *a = condition.list.items;
    if (tcc_attr_is_record(condition, "align", "si"))
        return is_multiple(assumed(f, "align", a[1].s), a[2].i);
    if (tcc_attr_is_record(condition, "pitch", "lii"))
        return pitch_implies(f, s, a[1], a[2].i, a[3].i);
    if (tcc_attr_is_record(condition, "min", "si"))
        return assumed(f, "min", a[1].s) >= a[2].i || length_implies(f, s, a[1].s, a[2].i);
    if (tcc_attr_is_record(condition, "max", "si"))
        return assumed_max(f, a[1].s) <= a[2].i;
    return true; /* what the code can address, which no pass decides by */
}

const char *tcc_assume_wrong(const tcc_func *f, tcc_arena *arena)
{
    const tcc_named_attr *a = tcc_attr_find(&f->attrs, "assumes");
    tcc_diag silent = {0};
    const tcc_func *s = a ? tcc_func_parameters(f, arena, &silent) : NULL;
    if (!s)
        return NULL;
    if (a->value.kind != TCC_ATTR_LIST)
        return "needs a list";
    const char *wrong = NULL;
    for (size_t i = 0; i < a->value.list.n && !wrong; i++)
        wrong = wrong_record(s, a->value.list.items[i], arena);
    tcc_attr requires = tcc_attr_list(&f->attrs, "requires");
    for (size_t i = 0; i < requires.list.n && !wrong; i++) {
        const tcc_attr *condition = &requires.list.items[i];
        tcc_str text = {0};
        if (is_implied(f, s, *condition))
            continue;
        tcc_attr_print(&text, condition);
        wrong = tcc_arena_printf(arena, "does not imply what the function requires: %s",
                                 tcc_str_text(&text));
        tcc_str_free(&text);
    }
    return wrong;
}

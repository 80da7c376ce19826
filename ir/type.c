/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/type.h"

#include <string.h>

#include "ir/ir.h"
#include "support/map.h"

const tcc_scalar_info tcc_scalars[] = {
#define TCC_SCALAR(id, bits, class) {#id, bits, TCC_CLASS_##class},
#include "ir/types.def"
};

static const char *const layouts[] = {
    "none",
#define FRAGMENT(id, rows, cols, registers, lanes, warps) #id,
#include "ir/fragments.def"
};

const char *const tcc_repeated_words[] = {"", "warps", "halves"};
const char *const tcc_repeat_words[] = {"rows", "cols", "same"};

static const char *const kinds[] = {
#define TCC_KIND(id, doc) #id,
#include "ir/types.def"
};

tcc_int_range tcc_scalar_range(tcc_scalar s)
{
    unsigned bits = tcc_scalar_bits(s);
    int64_t most = INT64_MAX >> (tcc_scalar_is_unsigned(s) ? 63 - bits : 64 - bits);
    return (tcc_int_range){tcc_scalar_is_unsigned(s) ? 0 : -most - 1, most};
}

int64_t tcc_int_saturate(tcc_scalar s, int64_t v)
{
    tcc_int_range range = tcc_scalar_range(s);
    return v < range.least ? range.least : v > range.most ? range.most : v;
}

bool tcc_scalar_widens(tcc_scalar from, tcc_scalar to)
{
    if (from == to || tcc_scalar_classify(from) != tcc_scalar_classify(to))
        return from == to;
    if (tcc_scalar_classify(from) == TCC_CLASS_FLOAT)
        return to == TCC_f64 || (to == TCC_f32 && from != TCC_f64);
    return tcc_scalar_bits(from) < tcc_scalar_bits(to) &&
           (tcc_scalar_is_unsigned(from) || !tcc_scalar_is_unsigned(to));
}

bool tcc_scalar_find(const char *name, size_t n, tcc_scalar *out)
{
    for (int i = 0; i < TCC_SCALAR_COUNT; i++)
        if (strlen(tcc_scalars[i].name) == n && !memcmp(tcc_scalars[i].name, name, n)) {
            *out = (tcc_scalar)i;
            return true;
        }
    return false;
}

bool tcc_layout_find(const char *name, size_t n, tcc_layout *out)
{
    for (int i = 0; i < TCC_LAYOUT_COUNT; i++)
        if (strlen(layouts[i]) == n && !memcmp(layouts[i], name, n)) {
            *out = (tcc_layout)i;
            return true;
        }
    return false;
}

const char *tcc_kind_name(tcc_kind k)
{
    return kinds[k];
}

bool tcc_kind_has_elem(tcc_kind k)
{
    return k != TCC_KIND_ring && k != TCC_KIND_tensormap && k != TCC_KIND_buffer;
}

bool tcc_type_has_elem(const tcc_type *t)
{
    return tcc_kind_has_elem(t->kind);
}

bool tcc_type_same_layout(const tcc_type *a, const tcc_type *b)
{
    bool same = a->layout == b->layout && a->n_repeats == b->n_repeats;
    for (unsigned i = 0; same && i < a->n_repeats; i++)
        same = a->repeats[i].dim == b->repeats[i].dim && a->repeats[i].n == b->repeats[i].n &&
               a->repeats[i].in == b->repeats[i].in;
    return same;
}

bool tcc_type_same_places(const tcc_type *a, const tcc_type *b)
{
    bool same = a->row_bytes == b->row_bytes && !a->strides == !b->strides;
    for (unsigned d = 0; same && a->strides && d < a->rank; d++)
        same = tcc_dim_equal(a->strides[d], b->strides[d]);
    return same;
}

bool tcc_type_has_rows(const tcc_type *t)
{
    const tcc_dim *last = t->strides && t->rank ? &t->strides[t->rank - 1] : NULL;
    return !last || (!last->name && last->size == 1);
}

bool tcc_type_has_gaps(const tcc_type *t)
{
    return t->row_bytes || (t->strides && t->rank > 1);
}

int64_t tcc_type_known_pitch(const tcc_type *t)
{
    int64_t common = 0;
    for (unsigned d = 0; t->strides && d + 1 < t->rank; d++)
        for (int64_t n = t->strides[d].name ? 0 : t->strides[d].size, rest; n; n = rest) {
            rest = common % n;
            common = n;
        }
    return common;
}

const char *tcc_type_open_stride(const tcc_type *t)
{
    const char *open = NULL;
    for (unsigned d = 0; t->strides && d + 1 < t->rank && !open; d++)
        open = t->strides[d].name;
    return open;
}

static bool matches(const tcc_type *t, const tcc_type *key, const tcc_dim *dims)
{
    if (t->kind != key->kind || t->elem != key->elem || t->rank != key->rank ||
        !tcc_type_same_places(t, key) || !tcc_type_same_layout(t, key))
        return false;
    for (unsigned i = 0; i < key->rank; i++)
        if (t->dims[i].name != dims[i].name || t->dims[i].size != dims[i].size)
            return false;
    return true;
}

static size_t hash(const tcc_type *key, const tcc_dim *dims)
{
    uint64_t h = tcc_hash_mix(tcc_hash_mix((uint64_t)key->kind, (uint64_t)key->elem), (uint64_t)key->layout);
    for (unsigned i = 0; i < key->rank; i++)
        h = tcc_hash_mix(tcc_hash_mix(h, (uintptr_t)dims[i].name), (uint64_t)dims[i].size);
    for (unsigned i = 0; i < key->n_repeats; i++)
        h = tcc_hash_mix(h, (uint64_t)key->repeats[i].n);
    if (key->row_bytes)
        h = tcc_hash_mix(h, key->row_bytes);
    for (unsigned i = 0; key->strides && i < key->rank; i++)
        h = tcc_hash_mix(h, (uint64_t)key->strides[i].size);
    return (size_t)h;
}

/* The slot of a type in the open-addressing table, or the free one where it belongs. */
static const tcc_type **slot_of(tcc_ir *ir, const tcc_type *key, const tcc_dim *dims)
{
    size_t i = hash(key, dims) & (ir->cap_types - 1);
    while (ir->types[i] && !matches(ir->types[i], key, dims))
        i = (i + 1) & (ir->cap_types - 1);
    return &ir->types[i];
}

static void grow(tcc_ir *ir)
{
    const tcc_type **old = ir->types;
    size_t n = ir->cap_types;
    ir->cap_types = n ? n * 2 : 64;
    ir->types = TCC_NEW_ARRAY(ir->kept, const tcc_type *, ir->cap_types);
    for (size_t i = 0; i < n; i++)
        if (old[i])
            *slot_of(ir, old[i], old[i]->dims) = old[i];
}

bool tcc_dim_equal(tcc_dim a, tcc_dim b)
{
    return a.name && b.name ? !strcmp(a.name, b.name) : !a.name && !b.name && a.size == b.size;
}

/* The type like `key` with these dims, whose names are interned. */
static const tcc_type *find_or_add(tcc_ir *ir, const tcc_type *key, const tcc_dim *dims)
{
    if (ir->n_types * 2 >= ir->cap_types)
        grow(ir);
    const tcc_type **slot = slot_of(ir, key, dims);
    if (*slot)
        return *slot;
    tcc_type *t = tcc_arena_alloc(ir->kept, sizeof *t + key->rank * sizeof *dims);
    *t = *key;
    if (key->rank)
        memcpy(t->dims, dims, key->rank * sizeof *dims);
    *slot = t;
    ir->n_types++;
    return t;
}

const tcc_type *tcc_type_get(tcc_ir *ir, tcc_kind kind, tcc_scalar elem, unsigned rank,
                             const tcc_dim *dims)
{
    tcc_dim *interned = TCC_NEW_ARRAY(ir->arena, tcc_dim, rank);
    for (unsigned i = 0; i < rank; i++) {
        if (dims[i].name)
            interned[i].name = tcc_ir_name(ir, dims[i].name);
        else
            interned[i].size = dims[i].size;
    }
    return find_or_add(ir, &(tcc_type){.kind = kind, .elem = elem, .rank = rank}, interned);
}

const tcc_type *tcc_type_scalar(tcc_ir *ir, tcc_scalar elem)
{
    return tcc_type_get(ir, TCC_KIND_scalar, elem, 0, NULL);
}

const tcc_type *tcc_type_sized(tcc_ir *ir, tcc_kind kind, tcc_scalar elem, unsigned rank,
                               const int64_t *sizes)
{
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, rank);
    for (unsigned i = 0; i < rank; i++)
        dims[i].size = sizes[i];
    return tcc_type_get(ir, kind, elem, rank, dims);
}

const tcc_type *tcc_type_with_elem(tcc_ir *ir, const tcc_type *t, tcc_scalar elem)
{
    tcc_type key = *t;
    key.elem = elem;
    return find_or_add(ir, &key, t->dims);
}

const tcc_type *tcc_type_with_repeats(tcc_ir *ir, const tcc_type *t, tcc_layout layout, unsigned n,
                                      const tcc_repeat *repeats)
{
    tcc_repeat *own = TCC_NEW_ARRAY(ir->kept, tcc_repeat, n);
    if (n)
        memcpy(own, repeats, n * sizeof *own);
    tcc_type key = *t;
    key.layout = layout;
    key.n_repeats = n;
    key.repeats = own;
    return find_or_add(ir, &key, t->dims);
}

const tcc_type *tcc_type_with_row_bytes(tcc_ir *ir, const tcc_type *t, unsigned row_bytes)
{
    tcc_type key = *t;
    key.strides = NULL;
    key.row_bytes = row_bytes;
    return find_or_add(ir, &key, t->dims);
}

const tcc_type *tcc_type_with_strides(tcc_ir *ir, const tcc_type *t, const tcc_dim *strides)
{
    tcc_type key = *t;
    tcc_dim *own = strides ? TCC_NEW_ARRAY(ir->arena, tcc_dim, t->rank) : NULL;
    for (unsigned d = 0; own && d < t->rank; d++)
        own[d] = strides[d].name ? (tcc_dim){.name = tcc_ir_name(ir, strides[d].name)}
                                 : (tcc_dim){.size = strides[d].size};
    key.strides = own;
    return find_or_add(ir, &key, t->dims);
}

const tcc_type *tcc_type_placed_as(tcc_ir *ir, const tcc_type *t, const tcc_type *as)
{
    return tcc_type_with_strides(ir, tcc_type_with_row_bytes(ir, t, as->row_bytes), as->strides);
}

int64_t tcc_type_row_elems(const tcc_type *t)
{
    return t->row_bytes ? (int64_t)t->row_bytes * 8 / tcc_scalar_bits(t->elem) : 1;
}

int64_t tcc_type_count(const tcc_type *t)
{
    int64_t n = 1;
    for (unsigned i = 0; i < t->rank; i++)
        n *= t->dims[i].size;
    return n;
}

bool tcc_type_is_scalar(const tcc_type *t, tcc_scalar elem)
{
    return t->kind == TCC_KIND_scalar && t->elem == elem;
}

static void print_dim(tcc_str *out, tcc_dim d)
{
    if (d.name)
        tcc_str_puts(out, d.name);
    else
        tcc_str_int(out, d.size);
}

void tcc_type_print(tcc_str *out, const tcc_type *t)
{
    if (t->kind == TCC_KIND_scalar) {
        tcc_str_puts(out, tcc_scalar_name(t->elem));
        return;
    }
    tcc_str_puts(out, tcc_kind_name(t->kind));
    if (!tcc_type_has_elem(t))
        return;
    tcc_str_puts(out, "<");
    tcc_str_puts(out, tcc_scalar_name(t->elem));
    for (unsigned i = 0; i < t->rank; i++) {
        tcc_str_puts(out, i ? ", " : "[");
        print_dim(out, t->dims[i]);
    }
    tcc_str_puts(out, t->rank ? "]" : "");
    for (unsigned i = 0; t->strides && i < t->rank; i++) {
        tcc_str_puts(out, i ? ", " : ", strides [");
        print_dim(out, t->strides[i]);
    }
    tcc_str_puts(out, t->strides && t->rank ? "]" : "");
    if (t->row_bytes)
        tcc_str_printf(out, ", rows %u", t->row_bytes);
    if (t->layout)
        tcc_str_printf(out, ", %s", layouts[t->layout]);
    for (unsigned i = 0; i < t->n_repeats; i++) {
        const tcc_repeat *r = &t->repeats[i];
        tcc_str_printf(out, "%s%s%s%s %lld", i ? ", " : "(", tcc_repeated_words[r->in],
                       r->in ? " " : "", tcc_repeat_words[r->dim], (long long)r->n);
    }
    tcc_str_puts(out, t->n_repeats ? ")" : "");
    tcc_str_puts(out, ">");
}

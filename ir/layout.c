/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/layout.h"

#include <string.h>

#include "ir/ir.h"

static const tcc_fragment *fragment_of(const tcc_type *tile)
{
    return tile->layout ? &tcc_fragments[tcc_layout_fragment(tile)] : NULL;
}

bool tcc_layout_is_opaque(const tcc_type *tile)
{
    const tcc_fragment *f = fragment_of(tile);
    return f && f->opaque;
}

int64_t tcc_layout_apart(const tcc_type *tile)
{
    if (!tcc_layout_is_opaque(tile))
        return 1;
    const tcc_fragment *f = &tcc_fragments[tcc_layout_fragment(tile)];
    int64_t apart = tcc_fragment_elements(f, 0) / f->cols;
    return apart > 1 ? apart : 1;
}

/* ---- digits ---------------------------------------------------------------------------------- */

static void add_digit(tcc_digits *d, tcc_digit digit)
{
    tcc_digit *last = d->n ? &d->of[d->n - 1] : NULL;
    if (last && last->add[0] * last->n == digit.add[0] && last->add[1] * last->n == digit.add[1])
        last->n *= digit.n;
    else
        d->of[d->n++] = digit;
}

/* keep: also those that add nothing. */
static void add_bits(tcc_digits *d, const tcc_fragment_bits *bits, const tcc_type *tile, bool keep)
{
    for (unsigned i = 0; i < bits->n; i++) {
        tcc_digit digit = {.n = 2};
        digit.add[0] = tile->dims[0].size == 1 ? 0 : bits->adds[i].row;
        digit.add[1] = tile->dims[1].size == 1 ? 0 : bits->adds[i].col;
        if (keep || digit.add[0] || digit.add[1])
            add_digit(d, digit);
    }
}

static int64_t count(const tcc_digits *d)
{
    int64_t n = 1;
    for (unsigned i = 0; i < d->n; i++)
        n *= d->of[i].n;
    return n;
}

/* Before all others. */
static void add_first(tcc_digits *d, tcc_digit digit)
{
    memmove(d->of + 1, d->of, d->n++ * sizeof *d->of);
    d->of[0] = digit;
}

bool tcc_layout_spread(const tcc_type *tile, tcc_spread *s)
{
    const tcc_fragment *f = fragment_of(tile);
    if (!f || tile->rank != 2)
        return false;
    *s = (tcc_spread){.extent = {f->rows, f->cols}};
    add_bits(&s->registers, &f->elements, tile, false);
    add_bits(&s->lanes, &f->lanes, tile, true);
    add_bits(&s->warps, &f->warps, tile, true);
    s->n_fragment = count(&s->registers);
    for (unsigned i = 0; i < tile->n_repeats; i++) {
        const tcc_repeat *r = &tile->repeats[i];
        tcc_digit digit = {.n = r->n};
        if (r->dim != TCC_REPEAT_SAME) {
            digit.add[r->dim] = tile->dims[r->dim].size == 1 ? 0 : s->extent[r->dim];
            s->extent[r->dim] *= r->n;
        }
        s->n_fragment *= r->in == TCC_IN_HALVES ? r->n : 1;
        if (r->in == TCC_IN_HALVES)
            add_first(&s->registers, digit);
        else
            add_digit(r->in ? &s->warps : &s->registers, digit);
    }
    for (int d = 0; d < 2; d++)
        s->extent[d] = tile->dims[d].size == 1 ? 1 : s->extent[d];
    s->n_registers = count(&s->registers);
    s->n_lanes = count(&s->lanes);
    s->n_warps = count(&s->warps);
    return true;
}

int64_t tcc_digits_place(const tcc_digits *digits, int64_t number, int dim)
{
    int64_t place = 0;
    for (unsigned i = 0; i < digits->n; i++) {
        place += number % digits->of[i].n * digits->of[i].add[dim];
        number /= digits->of[i].n;
    }
    return place;
}

/* A digit adds along one dimension, and there more than all that add less do together: so the largest come
 * first. */
int64_t tcc_layout_register(const tcc_spread *s, int64_t row, int64_t col)
{
    const tcc_digits *d = &s->registers;
    int64_t rest[] = {row, col}, number = 0;
    if (row < 0 || col < 0)
        return -1;
    for (int dim = 0; dim < 2; dim++)
        for (int64_t below = INT64_MAX; rest[dim] && below;) {
            int64_t weight = 1, best = 0, of_best = 0, n = 1;
            for (unsigned i = 0; i < d->n; weight *= d->of[i++].n)
                if (d->of[i].add[dim] > best && d->of[i].add[dim] < below) {
                    best = d->of[i].add[dim];
                    of_best = weight;
                    n = d->of[i].n;
                }
            int64_t value = best ? rest[dim] / best : 0;
            value = value < n ? value : n - 1;
            rest[dim] -= value * best;
            number += value * of_best;
            below = best;
        }
    return rest[0] || rest[1] ? -1 : number;
}

int64_t tcc_layout_neighbours(const tcc_spread *s)
{
    const tcc_digits *all[] = {&s->registers, &s->lanes, &s->warps};
    const tcc_digit *first = s->registers.n && s->registers.of[0].add[1] == 1 ? s->registers.of : NULL;
    int64_t n = first ? first->n : 1;
    for (int i = 0; i < 3; i++)
        for (unsigned d = 0; d < all[i]->n; d++)
            while (&all[i]->of[d] != first && all[i]->of[d].add[1] % n)
                n--;
    return n;
}

/* Whether digits of two numbers add the same along a dimension. */
static bool same_digits(const tcc_digits *a, const tcc_digits *b, int dim)
{
    int64_t n = count(a) > count(b) ? count(a) : count(b);
    for (int64_t i = 0; i < n; i++)
        if (tcc_digits_place(a, i, dim) != tcc_digits_place(b, i, dim))
            return false;
    return true;
}

bool tcc_layout_same_threads(const tcc_spread *a, const tcc_spread *b, int dim)
{
    return same_digits(&a->lanes, &b->lanes, dim) && same_digits(&a->warps, &b->warps, dim);
}

/* ---- types ----------------------------------------------------------------------------------- */

const tcc_type *tcc_layout_repeated(tcc_ir *ir, const tcc_type *tile, tcc_fragment_id f, unsigned n,
                                    const tcc_repeat *repeats)
{
    tcc_repeat some[TCC_MAX_REPEATS];
    unsigned count = 0;
    for (unsigned i = 0; i < n; i++)
        if (repeats[i].n > 1)
            some[count++] = repeats[i];
    return tcc_type_with_repeats(ir, tile, tcc_layout_of_fragment(f), count, some);
}

const tcc_type *tcc_layout_part(tcc_ir *ir, const tcc_type *tile, int64_t rows, int64_t cols)
{
    const int64_t sizes[] = {rows, cols};
    const tcc_type *part = tcc_type_sized(ir, TCC_KIND_tile, tile->elem, 2, sizes);
    const tcc_fragment *f = fragment_of(tile);
    if (!f)
        return part;
    tcc_repeat repeats[TCC_MAX_REPEATS];
    unsigned n = 0;
    int64_t rest[2] = {rows / f->rows, cols / f->cols}; /* that registers repeat */
    for (unsigned i = 0; i < tile->n_repeats; i++)
        if (tile->repeats[i].in == TCC_IN_WARPS && tile->repeats[i].dim != TCC_REPEAT_SAME)
            rest[tile->repeats[i].dim] /= tile->repeats[i].n;
    for (unsigned i = 0; i < tile->n_repeats; i++) {
        tcc_repeat r = tile->repeats[i];
        bool more = r.in != TCC_IN_WARPS && r.dim != TCC_REPEAT_SAME;
        if (more && sizes[r.dim] == 1)
            continue;
        if (more) {
            r.n = rest[r.dim] < r.n ? rest[r.dim] : r.n;
            rest[r.dim] /= r.n ? r.n : 1;
        }
        if (r.n != 1)
            repeats[n++] = r;
    }
    part = tcc_type_with_repeats(ir, part, tile->layout, n, repeats);
    return tcc_layout_wrong(part) ? NULL : part;
}

const char *tcc_layout_wrong(const tcc_type *tile)
{
    const tcc_fragment *f = fragment_of(tile);
    if (!f)
        return tile->n_repeats ? "is not a fragment, and only fragments can be repeated" : NULL;
    if (tile->rank != 2)
        return "is of a matrix";
    int64_t extent[2] = {f->rows, f->cols};
    bool halved = false;
    for (unsigned i = 0; i < tile->n_repeats; i++) {
        const tcc_repeat *r = &tile->repeats[i];
        bool same = r->dim == TCC_REPEAT_SAME;
        if (r->n < 2 || r->n > INT16_MAX || (!same && extent[r->dim] > INT32_MAX / r->n))
            return "repeats its fragment less than twice, or too often";
        if (r->in == TCC_IN_HALVES && (r->n != 2 || halved || tcc_scalar_bits(tile->elem) != 16))
            return "has no two halves of registers, once";
        halved |= r->in == TCC_IN_HALVES;
        if (same && !r->in)
            return "repeats the same elements in further registers";
        if (same)
            continue;
        if (r->in != TCC_IN_WARPS && tile->dims[r->dim].size == 1)
            return "repeats its fragment where the tile has extent 1";
        extent[r->dim] *= r->n;
    }
    for (int d = 0; d < 2; d++)
        if (tile->dims[d].size != 1 && tile->dims[d].size != extent[d])
            return "does not cover the tile's extents";
    return NULL;
}

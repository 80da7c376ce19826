/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/shapes.h"

#include <math.h>
#include <string.h>

#include "ir/reduction.h"
#include "ir/signature.h"
#include "passes/space.h"
#include "passes/families.h"
#include "passes/pointwise.h"
#include "passes/schedule.h"
#include "support/extent.h"
#include "support/random.h"

/* An extent: a number of tiles, and some elements. */
typedef struct along {
    enum { TWICE_THE_STAGES = -1 } tiles; /* or that many: every barrier changes phase twice */
    enum { WHOLE = 1000, ODD } more;      /* elements, or a random number of them: `extra` */
} along;

/* WHOLE makes rows of a multiple of 16 bytes, as TMA needs them. */
static const struct pattern {
    along m, n, k;
    int batch; /* 0: a random number */
} patterns[] = {
    {{1, 0}, {1, 0}, {1, 0}, 1},                            /* one whole tile, one iteration */
    {{1, WHOLE}, {0, WHOLE}, {TWICE_THE_STAGES, WHOLE}, 1}, /* a ragged m, more of k than stages */
    {{0, WHOLE}, {1, WHOLE}, {1, WHOLE}, 1},                /* a ragged n */
    {{0, WHOLE}, {0, WHOLE}, {0, WHOLE}, 0},                /* less than a tile */
    {{0, 1}, {0, 1}, {0, 1}, 0},                            /* one of everything */
    {{0, ODD}, {0, WHOLE}, {0, WHOLE}, 1}, /* rows along one index that TMA cannot */
    {{0, WHOLE}, {0, ODD}, {0, WHOLE}, 1},
    {{0, WHOLE}, {0, WHOLE}, {0, ODD}, 1},
    {{1, ODD}, {0, ODD}, {1, ODD}, 0},
    {{0, 8}, {0, 8}, {0, 8}, 8}, /* rows along a batch that TMA can */
    {{0, 3}, {0, 9}, {0, 0}, 0}, /* empty sums */
    {{0, 0}, {0, 8}, {0, 8}, 1}, /* nothing to compute */
};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns, MOST_BATCHES = 4 };

typedef struct chooser {
    const tcc_func *f;
    tcc_schedule s;
    tcc_space c;
    uint64_t random;
    int64_t unit; /* elements that are 16 bytes in every tensor, or a multiple of that */
} chooser;

/* Eight elements of 16 bits, and more where some tensor has smaller ones. */
static int64_t unit_of(const tcc_func *f)
{
    unsigned bits = 16;
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_type *t = f->body->args[i]->type;
        if (t->rank && tcc_scalar_bits(t->elem) < bits)
            bits = tcc_scalar_bits(t->elem);
    }
    return 128 / bits;
}

/* A random part of a tile: whole units, or no even number. */
static int64_t extra(chooser *ch, int more, int64_t tile)
{
    if (more == WHOLE) {
        int64_t units = tile / ch->unit;
        return ch->unit *
               (1 + (int64_t)tcc_random(&ch->random, (uint64_t)(units > 1 ? units - 1 : 1)));
    }
    if (more == ODD)
        return 1 + 2 * (int64_t)tcc_random(&ch->random, (uint64_t)(tile > 1 ? tile / 2 : 1));
    return more;
}

static int64_t extent(chooser *ch, along a, int64_t tile)
{
    int64_t tiles = a.tiles == TWICE_THE_STAGES ? 2 * ch->s.stages : a.tiles;
    return tiles * tile + extra(ch, a.more, tile);
}

/* In a product of dimensions, tiles are along the last one; the others are batches, as if they were separate. */
static bool is_dim(tcc_dim d, const char *name)
{
    tcc_extent_factor factor;
    bool last = false;
    for (const char *left = d.name; left && tcc_extent_take_name(&left, &factor);)
        last = tcc_extent_is(&factor, name);
    return last;
}

/* Whether rows of some tensor run along the dimension. */
static bool is_innermost(const tcc_func *f, const char *name)
{
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_type *t = f->body->args[i]->type;
        if (t->rank && is_dim(t->dims[t->rank - 1], name))
            return true;
    }
    return false;
}

static int64_t choose_batch(chooser *ch, const struct pattern *p, const char *name, int64_t *room)
{
    int64_t n = p->batch     ? p->batch
                : *room >= 2 ? 1 + (int64_t)tcc_random(&ch->random, (uint64_t)*room)
                             : 1;
    if (p->batch > 1 && !is_innermost(ch->f, name))
        n = 1;
    *room /= n;
    return n;
}

/* An index that ranges over the dimension: m, n, k or another. */
static int64_t choose_extent(chooser *ch, const struct pattern *p, const char *name, int64_t *room)
{
    const tcc_space *c = &ch->c;
    if (c->n_axes && is_dim(c->extents[0], name))
        return extent(ch, p->m, ch->s.m);
    if (c->n_axes && is_dim(c->extents[1], name))
        return extent(ch, p->n, ch->s.n);
    if ((c->n_sums || c->streams) && is_dim(c->k_extent, name))
        return extent(ch, p->k, ch->s.k * ch->s.split); /* an iteration of each part */
    return choose_batch(ch, p, name, room);
}

static void set_dim(tcc_attr names, int64_t *dims, tcc_dim of, int64_t value)
{
    for (size_t i = 0; i < names.list.n; i++)
        if (of.name && !strcmp(names.list.items[i].s, of.name))
            dims[i] = value;
}

static int64_t value_of(tcc_attr names, const int64_t *dims, tcc_dim d)
{
    return d.name ? tcc_dims_value(names, dims, d.name) : d.size;
}

/* Strides of the i-th tensor: of its rows in the order of its dimensions, of others, or of no rows. */
static void choose_strides(size_t p, size_t i, const tcc_type *t, bool is_read, tcc_attr names, int64_t *dims)
{
    enum { ODD_PITCH = 2, TURNED, EVEN_TURNED, ODD_TURNED, SPREAD, KINDS, ALIGNED = 32 };
    size_t kind = p % KINDS;
    int64_t reach = 1;
    bool turned = kind == TURNED || kind == (i % 2 ? ODD_TURNED : EVEN_TURNED);
    turned = turned && is_read && t->rank > 1;
    for (unsigned n = 0; n < t->rank; n++) {
        unsigned d = t->rank - 1 - (turned && n < 2 ? 1 - n : n);
        int64_t aligned = (reach + ALIGNED - 1) / ALIGNED * ALIGNED;
        int64_t stride = n ? kind == ODD_PITCH ? reach + 1 : aligned : kind == SPREAD ? 2 : 1;
        set_dim(names, dims, t->strides[d], stride);
        int64_t extent = value_of(names, dims, t->dims[d]);
        reach += extent > 1 ? (extent - 1) * value_of(names, dims, t->strides[d]) : 0;
    }
}

static void choose_all_strides(size_t p, const tcc_func *kernel, tcc_attr names, int64_t *dims)
{
    tcc_attr roles = tcc_attr_list(&kernel->attrs, "roles");
    for (size_t i = 0; i < kernel->body->n_args; i++) {
        const tcc_type *t = kernel->body->args[i]->type;
        if (t->strides)
            choose_strides(p, i, t, i < roles.list.n && !strcmp(roles.list.items[i].s, "in"), names, dims);
    }
}

static bool is_new(const tcc_shapes *shapes, const int64_t *dims, size_t n)
{
    for (size_t i = 0; i < shapes->n; i++)
        if (!memcmp(shapes->dims[i], dims, n * sizeof *dims))
            return false;
    return true;
}

static void find_space(chooser *ch)
{
    if (!tcc_space_of(ch->f, &ch->c) || ch->c.n_sums)
        return;
    ch->s.m = tcc_tile_size_of(ch->f, ch->c.axes[0], 1);
    ch->s.n = tcc_tile_size_of(ch->f, ch->c.axes[1], 1);
}

tcc_shapes tcc_shapes_choose(tcc_arena *arena, const tcc_func *kernel, const tcc_func *scheduled, uint64_t seed)
{
    chooser ch = {.f = scheduled,
                  .s = tcc_schedule_of(scheduled),
                  .random = seed,
                  .unit = unit_of(scheduled)};
    find_space(&ch);
    tcc_attr names = tcc_attr_list(&scheduled->attrs, "dims");
    tcc_shapes shapes = {TCC_NEW_ARRAY(arena, const int64_t *, N_PATTERNS), 0};
    for (size_t p = 0; p < N_PATTERNS; p++) {
        int64_t *dims = TCC_NEW_ARRAY(arena, int64_t, names.list.n + 1), room = MOST_BATCHES;
        for (size_t i = 0; i < names.list.n; i++)
            dims[i] = choose_extent(&ch, &patterns[p], names.list.items[i].s, &room);
        choose_all_strides(p, kernel, names, dims);
        if (is_new(&shapes, dims, names.list.n))
            shapes.dims[shapes.n++] = dims;
    }
    return shapes;
}

/* ---- work -------------------------------------------------------------------------------- */

static double extent_of(const tcc_func *f, const int64_t *dims, tcc_dim d)
{
    tcc_attr names = tcc_attr_list(&f->attrs, "dims");
    return (double)value_of(names, dims, d);
}

static double tiles_of(double extent, int64_t tile)
{
    return ceil(extent / (double)(tile > 0 ? tile : 1));
}

/* Places of a tile for each element in it. */
static double tile_of_element(const tcc_func *scheduled, const tcc_space *p, const int64_t *dims)
{
    double places = 1;
    for (size_t i = 0; i < p->n_axes; i++) {
        double extent = extent_of(scheduled, dims, p->extents[i]);
        int64_t tile = tcc_tile_size_of(scheduled, p->axes[i], 1);
        places *= extent > 0 ? tiles_of(extent, tile) * (double)tile / extent : 1;
    }
    return places;
}

static double extent_of_index(const tcc_func *f, const int64_t *dims, const char *index)
{
    return extent_of(f, dims, tcc_index_extent(f, index));
}

/* What an op reads, writes or reduces. */
static double elements_of(const tcc_func *f, const tcc_op *op, const int64_t *dims)
{
    const tcc_value *tensor = tcc_accessed_tensor(op);
    double elements = tensor || tcc_is_reduction(op) ? 1 : 0;
    for (unsigned d = 0; tensor && d < tensor->type->rank; d++)
        elements *= extent_of(f, dims, tensor->type->dims[d]);
    if (!tcc_is_reduction(op))
        return elements;
    tcc_attr over = tcc_attr_list(&op->attrs, "over");
    for (size_t i = 0; i < over.list.n; i++)
        elements *= extent_of_index(f, dims, over.list.items[i].s);
    for (unsigned d = 0; d < op->results[0].type->rank; d++)
        elements *= extent_of_index(f, dims, op->results[0].type->dims[d].name);
    return elements;
}

/* For all elements, including those that are summed. Elements outside a tile only cost being skipped. */
static double work_of_pointwise(const tcc_func *scheduled, const tcc_space *p, const int64_t *dims)
{
    enum { EACH = 32, OUTSIDE = 4 };
    double most = 0;
    for (const tcc_op *op = scheduled->body->first; op; op = op->next) {
        double elements = elements_of(scheduled, op, dims);
        most = elements > most ? elements : most;
    }
    return most * (EACH + OUTSIDE * (tile_of_element(scheduled, p, dims) - 1));
}

/* For each CTA its products, iteration by iteration, its epilogue, and copies where threads make
 * them. */
static double work_of_step(const tcc_func *scheduled, const int64_t *dims)
{
    enum { EPILOGUE = 128, COPY = 32 }; /* multiply-adds that an element costs as much as */
    tcc_schedule s = tcc_schedule_of(scheduled);
    tcc_space c = {0};
    if (!tcc_space_of(scheduled, &c) || !c.n_sums)
        return work_of_pointwise(scheduled, &c, dims);
    double ctas = tiles_of(extent_of(scheduled, dims, c.extents[0]), s.m) *
                  tiles_of(extent_of(scheduled, dims, c.extents[1]), s.n);
    for (size_t i = 2; i < c.n_axes; i++)
        ctas *= extent_of(scheduled, dims, c.extents[i]);
    if (!c.parts.index)
        ctas *= (double)s.split;
    double depth = tiles_of(extent_of(scheduled, dims, c.k_extent), s.k * s.split) * (double)s.k;
    double work = (double)(s.m * s.n) * ((double)c.n_sums * depth + EPILOGUE);
    const tcc_family_passes *passes = tcc_family_passes_of(s.target);
    if (passes && !tcc_copying_of_operands(passes->copying, scheduled, &c))
        for (size_t i = 0; i < c.n_operands; i++)
            work += COPY * (double)(c.operands[i].axis ? s.n : s.m) * depth;
    return ctas * work;
}

double tcc_shape_work(const tcc_func *scheduled, const int64_t *dims)
{
    const tcc_func *variant = tcc_func_main(scheduled);
    double work = 0;
    for (size_t i = 0; i < tcc_func_step_count(variant); i++) {
        const tcc_func *step = tcc_func_step_at(variant, i);
        work += step ? work_of_step(step, dims) : 0;
    }
    return work;
}

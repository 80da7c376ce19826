/* choose_schedule_pointwise: the schedule of a kernel without a product: a tile, and `group`.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/machine.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/choose_schedule.h"
#include "passes/pointwise.h"
#include "passes/rows.h"

enum {
    MOST_ELEMENTS = 32, /* of a tile that a lane has, unless the schedule says */
    VECTORS = 4,        /* vector loads that are on their way before the first of them is used */
    SINGLES = 8,        /* loads of one element that are on their way before the first of them is used */
    NAIVE_ROWS = 8,     /* of a tile whose elements have a thread each */
    MOST_COLUMNS = 8192 /* no extent and a tile together are too large for an i32: support/extent.h */
};

/* The smallest power of two from 1 to `most` that covers an extent; `most` where it is not known. */
static int64_t cover(tcc_dim extent, int64_t most)
{
    int64_t n = 1;
    while (n < most && (extent.name || n < extent.size))
        n *= 2;
    return n;
}

/* Warps are stacked vertically or, if there are too few rows, side by side. A lane's further vectors
 * are in further rows, single elements in further columns, so that rows are read in long pieces. */
static void choose_tile(const tcc_space *p, int64_t vector, int64_t *m, int64_t *n)
{
    tcc_dim rows = p->extents[0], cols = p->extents[1];
    int64_t each = vector == 1 ? SINGLES : VECTORS;
    while (each * vector > MOST_ELEMENTS)
        each /= 2;
    int64_t wide = vector == 1 ? cover(cols, TCC_WARP_LANES * each / 2) / TCC_WARP_LANES : 1;
    wide = wide ? wide : 1;
    *m = *m ? *m : cover(rows, TCC_POINTWISE_WARPS * each / wide);
    int64_t all = TCC_POINTWISE_WARPS * TCC_WARP_LANES * each * vector, least = TCC_WARP_LANES * vector;
    int64_t most = all / *m > least ? all / *m / least * least : least;
    if (*n)
        return;
    *n = least;
    while (*n * 2 <= most && (cols.name || *n < cols.size))
        *n *= 2;
}

/* From the user's settings, 0: not set. Vectors become shorter until they suit known extents and the settings. */
static bool complete_tile(const tcc_func *f, const tcc_space *p, int64_t *m, int64_t *n)
{
    const int64_t given[] = {*m, *n};
    if (p->row) {
        tcc_pointwise_tile of;
        tcc_rows_choose(f, p, m, n);
        return tcc_rows_arrange(&of, p, *m, *n, tcc_pointwise_vector(f, p));
    }
    int64_t vector = tcc_pointwise_vector(f, p), side = tcc_pointwise_block(f, p);
    tcc_dim cols = p->extents[1];
    tcc_pointwise_tile t;
    enum { BLOCKS = 16 }; /* along each side of a tile of eight warps */
    int64_t square[] = {*m ? *m : BLOCKS * side, *n ? *n : BLOCKS * side};
    if (side && tcc_pointwise_arrange_blocks(&t, square[0], square[1], side)) {
        *m = square[0];
        *n = square[1];
        return true;
    }
    while (vector > 1 && !cols.name && TCC_WARP_LANES * vector / 2 >= cols.size)
        vector /= 2;
    for (;; vector /= 2) {
        *m = given[0];
        *n = given[1];
        choose_tile(p, vector, m, n);
        bool fits = tcc_pointwise_arrange(&t, *m, *n, tcc_pointwise_vector(f, p));
        if (fits || vector == 1)
            return fits;
    }
}

/* ---- sums of products that are computed term by term --------------------------------------------- */

/* Whether any target has an instruction for them: those of i32 are computed so everywhere. */
static bool is_multiplied(const tcc_scalar elems[2], tcc_scalar sum)
{
    const tcc_target *t;
    for (size_t i = 0; (t = tcc_target_at(i)); i++)
        if (tcc_target_instr_for(t, TCC_INSTR_COUNT, elems[0], elems[1], sum) != TCC_INSTR_COUNT)
            return true;
    return false;
}

/* The first variant of a kernel, or of a step. */
static bool is_first(const tcc_func *f)
{
    return !strcmp(f->name, tcc_func_first(f));
}

static void warn_of_terms(const tcc_choice *ch)
{
    tcc_scalar elems[2];
    for (const tcc_op *op = is_first(ch->f) ? ch->f->body->first : NULL; op; op = op->next) {
        if (op->code != TCC_OP_tensor_reduce || !tcc_product_is_term_by_term(op, elems))
            continue;
        tcc_scalar sum = op->results[0].type->elem;
        if (is_multiplied(elems, sum))
            tcc_warn(ch->ctx->diag, op->loc, "%s multiplies no %s and %s in %s: this sum is computed term by term",
                     ch->target->name, tcc_scalar_name(elems[0]), tcc_scalar_name(elems[1]), tcc_scalar_name(sum));
    }
}

/* Says why an index cannot be tiled. */
static tcc_status refuse_index(const tcc_choice *ch, const tcc_space *p, const char *index)
{
    bool is_axis = false, is_reduced = false;
    for (size_t x = 0; x < p->n_axes; x++)
        is_axis |= tcc_index_same(p->axes[x], index);
    for (const tcc_op *op = ch->f->body->first; op; op = op->next) {
        tcc_attr over = op->code == TCC_OP_tensor_reduce ? tcc_attr_list(&op->attrs, "over") : (tcc_attr){0};
        for (size_t i = 0; i < over.list.n; i++)
            is_reduced |= tcc_index_same(over.list.items[i].s, index);
    }
    tcc_error(ch->ctx->diag, TCC_ERR_UNSUPPORTED, tcc_choice_place(ch, "tile"),
              is_axis      ? "not supported yet: tiling index '%s'; every CTA takes one value of it at a time"
              : is_reduced ? "index '%s' cannot be tiled: what is reduced over it is computed term by term"
                           : "index '%s' cannot be tiled: the step that writes the last output, whose schedule this is, "
                             "does not have it",
              index);
    return TCC_ERR_UNSUPPORTED;
}

/* Only the indices m and n can be tiled. */
static tcc_status read_tile(tcc_choice *ch, const tcc_space *p, int64_t *m, int64_t *n)
{
    tcc_attr tile = tcc_attr_list(&ch->f->attrs, "tile");
    for (size_t i = 0; i + 1 < tile.list.n; i += 2) {
        const char *name = tile.list.items[i].s;
        int64_t size = tile.list.items[i + 1].i, *of = tcc_index_same(name, p->axes[0])   ? m
                                                       : tcc_index_same(name, p->axes[1]) ? n
                                                                                   : NULL;
        if (!of)
            return refuse_index(ch, p, name);
        *of = size;
        int most = p->row && p->along ? TCC_ROWS_MOST_COLUMNS : MOST_COLUMNS;
        if (of == n && (size % TCC_WARP_LANES || size > most))
            return TCC_CHOICE_REFUSE(ch, "tile", "tile %s %lld: need a multiple of %d (the lanes of a warp) up to %d",
                                     name, (long long)size, TCC_WARP_LANES, most);
    }
    return TCC_OK;
}

static bool has_sums(const tcc_func *f)
{
    const tcc_op *op = f->body->first;
    while (op && op->code != TCC_OP_tensor_reduce)
        op = op->next;
    return op;
}

/* Removes keys that concern products. */
static void drop_keys(tcc_choice *ch)
{
    bool naive = tcc_is_naive(ch->f) && has_sums(ch->f);
    for (int i = 0; i < TCC_KEY_COUNT; i++) {
        const tcc_named_attr *a = tcc_choice_given(ch, tcc_schedule_keys[i].name);
        if (!a || tcc_schedule_key_is_of_steps(&tcc_schedule_keys[i]) || i == TCC_KEY_tile || i == TCC_KEY_group ||
            i == TCC_KEY_raster || i == TCC_KEY_wave || (i == TCC_KEY_instr && naive))
            continue;
        if (a->loc.line && !strcmp(ch->f->name, tcc_attr_str(&ch->f->attrs, "kernel", "")))
            tcc_warn(ch->ctx->diag, a->loc, "'%s' has no effect: %s'%s' %s", a->name,
                     tcc_attr_find(&ch->f->attrs, "before") ? "the last step of " : "", ch->f->name,
                     naive ? "is computed with one element per thread" : "has no sum of products");
        tcc_attr_remove(&ch->f->attrs, a->name);
    }
}

tcc_status tcc_choose_pointwise(tcc_choice *ch)
{
    const tcc_space *p = &ch->c;
    int64_t m = 0, n = 0;
    warn_of_terms(ch);
    tcc_status status = read_tile(ch, p, &m, &n);
    status = status ? status : tcc_choose_raster(ch, 1);
    if (status)
        return status;
    bool naive = tcc_is_naive(ch->f);
    drop_keys(ch);
    if (naive && !m && !n) {
        m = NAIVE_ROWS;
        n = TCC_WARP_LANES;
    }
    bool waves = tcc_schedule_key_is_for(&tcc_schedule_keys[TCC_KEY_wave], ch->target);
    int64_t lanes = waves ? tcc_schedule_key_of(ch->f, TCC_KEY_wave, TCC_WARP_LANES) : TCC_WARP_LANES;
    if (lanes != TCC_WARP_LANES)
        return TCC_CHOICE_REFUSE(ch, "wave", "wave %lld: need %d in a kernel without a product", (long long)lanes,
                                 TCC_WARP_LANES);
    bool fits = complete_tile(ch->f, p, &m, &n);
    if (p->row && !tcc_rows_can_part(ch->f, p, m, n))
        return TCC_CHOICE_REFUSE(ch, "tile", "the parts of a sum do not consist of whole %lld x %lld tiles", (long long)m,
                                 (long long)n);
    if (!fits)
        return TCC_CHOICE_REFUSE(ch, "tile", "a %lld x %lld tile leaves more than %d elements to each lane",
                                 (long long)m, (long long)n, TCC_POINTWISE_MOST_ELEMENTS);
    int64_t threads = TCC_POINTWISE_WARPS * TCC_WARP_LANES;
    if (naive && (m * n > threads || threads % (m * n)))
        return TCC_CHOICE_REFUSE(ch, "tile", "instr naive: a %lld x %lld tile has no thread for each element; %lld "
                                             "threads "
                                 "share a tile, or a half, a quarter or an eighth of them", (long long)m, (long long)n,
                                 (long long)threads);
    const char *indices[2];
    int64_t sizes[] = {m, n};
    size_t len = 0;
    for (int x = 0; x < 2; x++)
        if (*p->axes[x]) {
            indices[len] = p->axes[x];
            sizes[len++] = sizes[x];
        }
    tcc_schedule_sizes_set(ch->f, TCC_KEY_tile, len, indices, sizes);
    if (waves)
        tcc_schedule_key_set(ch->f, TCC_KEY_wave, lanes);
    tcc_schedule_key_set(ch->f, TCC_KEY_group, ch->s.group);
    return TCC_OK;
}

/* tile_menu: tiles beside the one that choose-schedule chose, for kernels that are launched with
 * any extents.
 *
 * Before:  func @f(…) {assumes = A}
 * After:   func @f(…) {assumes = A}
 *          func @f__128x128(…) {assumes = A, tile = [m, 128, n, 128]} …
 *
 * One tile serves large extents, and few of them: with less tiles than multiprocessors the others
 * idle. Each tile of the target's menu becomes a variant of the same assumptions, which
 * choose-schedule then completes like a user's; a launch takes the one that costs least
 * (estimate-cost). What does not go with the keys that the user gave, or with the kernel's
 * registers, is left out, and so are tiles larger than an extent that is known, and those that are not named
 * where the module says which are wanted. Some compute sums in parts (split-sums).
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/choose_axes.h"
#include "passes/families.h"
#include "passes/long_expressions.h"

/* Of the measured schedules (docs/gpu-results.md) these are closest to the best of all, over extents of all magnitudes,
 * if a launch chooses among them. The widest store results while they multiply the next tile's operands; pingpong ones,
 * with two tiles at once, are for short sums. */
static const tcc_tile_size of_warpgroups[] = {
    {.m = 128, .n = 256, .persistent = true},
    {.m = 128, .n = 224, .persistent = true},
    {.m = 128, .n = 208, .persistent = true, .padded = true},
    {.m = 128, .n = 192, .persistent = true, .in_turn = true, .padded = true},
    {.m = 128, .n = 160},
    {.m = 128, .n = 128, .padded = true},
    {.m = 64, .n = 128, .padded = true},
    {.m = 64, .n = 64, .padded = true},
    {.m = 64, .n = 32},
    {.m = 64, .n = 16},
    /* Long sums with few tiles. */
    {.m = 128, .n = 128, .split = 8},
    {.m = 64, .n = 128, .split = 8},
    {.m = 64, .n = 128, .split = 22},
    {.m = 64, .n = 64, .split = 32},
    /* Few rows of a result. */
    {.m = 64, .n = 16, .swapped = true},
    {.m = 64, .n = 32, .swapped = true},
    {.m = 64, .n = 16, .split = 4, .swapped = true},
    /* Rows that do not begin at lines of L2, for which every copy counts. */
    {.m = 128, .n = 256, .persistent = true, .cluster = 2},
    {.m = 128, .n = 192, .persistent = true, .cluster = 2},
    {.m = 128, .n = 128, .cluster = 2},
    {.m = 64, .n = 128, .cluster = 2},
};
static const tcc_tile_size of_warps[] = {{.m = 128, .n = 128},
                                         {.m = 128, .n = 64},
                                         {.m = 64, .n = 64, .padded = true},
                                         {.m = 32, .n = 64},
                                         {.m = 16, .n = 64},
                                         {.m = 16, .n = 32}};
static const tcc_tile_size of_waves[] = {
    {.m = 128, .n = 64}, {.m = 64, .n = 64, .padded = true}, {.m = 32, .n = 64}};

const tcc_tile_menu tcc_tile_menu_of_warpgroups = {of_warpgroups,
                                                   sizeof of_warpgroups / sizeof *of_warpgroups};
const tcc_tile_menu tcc_tile_menu_of_warps = {of_warps, sizeof of_warps / sizeof *of_warps};
const tcc_tile_menu tcc_tile_menu_of_waves = {of_waves, sizeof of_waves / sizeof *of_waves};

/* Whether a tile of this size has rows that a known extent does not need. */
static bool is_too_large(tcc_dim extent, int64_t tile, int64_t least)
{
    return !extent.name && tile > least && tile / 2 >= extent.size;
}

/* Which of the axes of ch the rows of a tile run along. */
static int rows_of(const tcc_choice *ch, tcc_tile_size size)
{
    return size.swapped != (ch->s.operands == TCC_OPERANDS_SWAPPED);
}

/* Whether every part of a sum has several tiles of k, as far as is known, and there may be too few
 * tiles without parts. */
static bool may_pay(const tcc_choice *ch, tcc_tile_size size)
{
    const tcc_space *c = &ch->c;
    int64_t tiles = 1;
    int rows = rows_of(ch, size);
    for (size_t i = 0; i < c->n_axes; i++) {
        int64_t tile = i > 1 ? 1 : (int)i == rows ? size.m : size.n;
        tiles *= c->extents[i].name ? 1 : (c->extents[i].size + tile - 1) / tile;
    }
    return tiles < ch->target->sms &&
           (c->k_extent.name || c->k_extent.size >= 2 * size.split * ch->s.k);
}

/* The user's size of k stays. */
static void set_tile(const tcc_choice *ch, tcc_func *f, tcc_tile_size size)
{
    int rows = rows_of(ch, size);
    tcc_schedule_sizes_set(f, TCC_KEY_tile, ch->given_k ? 3 : 2,
                           (const char *[]){ch->c.axes[rows], ch->c.axes[!rows], ch->c.k},
                           (int64_t[]){size.m, size.n, ch->s.k});
    if (size.persistent && !tcc_choice_given(ch, tcc_schedule_keys[TCC_KEY_persistent].name))
        tcc_schedule_key_set(f, TCC_KEY_persistent, TCC_PERSISTENT_STATIC);
    if (rows)
        tcc_swap_axes(f);
    if (size.swapped)
        tcc_schedule_key_set(f, TCC_KEY_operands, TCC_OPERANDS_SWAPPED);
    if (size.split)
        tcc_schedule_key_set(f, TCC_KEY_split, size.split);
    if (size.cluster)
        tcc_schedule_sizes_set(f, TCC_KEY_cluster, 1, &ch->c.axes[rows], &size.cluster);
    if (size.in_turn)
        tcc_schedule_key_set(f, TCC_KEY_consumers, TCC_CONSUMERS_PINGPONG);
}

/* Whether choose-schedule will take it; nothing is reported. */
static bool is_possible(const tcc_choice *ch, tcc_func *f)
{
    tcc_diag silent = {0};
    tcc_pass_ctx ctx = *ch->ctx;
    ctx.diag = &silent;
    tcc_choice trial = *ch;
    trial.ctx = &ctx;
    trial.f = f;
    trial.s.m = trial.s.n = trial.s.k = 0;
    trial.given_m = trial.given_n = trial.given_k = false;
    return tcc_choice_offer(&trial);
}

/* Whether a tile of the menu is of any use. */
static bool is_wanted(const tcc_choice *ch, tcc_tile_size size, const tcc_tile_size *least)
{
    int rows = rows_of(ch, size);
    const tcc_dim *extents = ch->c.extents;
    bool split = size.split, open = extents[0].name || extents[1].name;
    bool persistent = size.persistent && !tcc_choice_given(ch, tcc_schedule_keys[TCC_KEY_persistent].name);
    bool chosen = !rows && !size.cluster && !persistent && size.m == ch->s.m && size.n == ch->s.n &&
                  (split ? size.split : ch->s.split) == ch->s.split;
    bool may_swap = ch->s.operands == TCC_OPERANDS_IN_ORDER && tcc_choice_may_swap(ch);
    bool may_split =
        !tcc_choice_given(ch, tcc_schedule_keys[TCC_KEY_split].name) && may_pay(ch, size);
    bool may_share =
        !tcc_choice_given(ch, tcc_schedule_keys[TCC_KEY_cluster].name) && tcc_choice_may_leave_lines(ch);
    return !chosen && (!size.cluster || may_share) && (!rows || may_swap) &&
           (split ? may_split && (open || ch->c.k_extent.name) : open) &&
           !is_too_large(extents[rows], size.m, least->m) &&
           !is_too_large(extents[!rows], size.n, least->n);
}

static tcc_tile_size least_of(const tcc_tile_menu *menu)
{
    tcc_tile_size least = menu->sizes[0];
    for (size_t i = 1; i < menu->n; i++) {
        least.m = menu->sizes[i].m < least.m ? menu->sizes[i].m : least.m;
        least.n = menu->sizes[i].n < least.n ? menu->sizes[i].n : least.n;
    }
    return least;
}

static const char *name_of(const tcc_choice *ch, tcc_tile_size size)
{
    const char *tile = tcc_arena_printf(ch->ctx->scratch, "%s__%lldx%lld", ch->f->name,
                                        (long long)size.m, (long long)size.n);
    if (size.swapped)
        tile = tcc_arena_printf(ch->ctx->scratch, "%s_swapped", tile);
    if (size.cluster)
        tile = tcc_arena_printf(ch->ctx->scratch, "%s_cluster%lld", tile, (long long)size.cluster);
    return size.split ? tcc_arena_printf(ch->ctx->scratch, "%s_split%lld", tile, (long long)size.split) : tile;
}

/* Whether launches are expected to run a variant: the module's attribute `wanted` names those that they do. */
static bool is_expected(const tcc_ir *ir, const char *name)
{
    const tcc_named_attr *wanted = tcc_attr_find(&ir->attrs, "wanted");
    tcc_attr names = tcc_attr_list(&ir->attrs, "wanted");
    for (size_t i = 0; i < names.list.n; i++)
        if (names.list.items[i].kind == TCC_ATTR_STR && !strcmp(names.list.items[i].s, name))
            return true;
    return !wanted;
}

/* Whether a kernel gets a tile of the menu: it is one of the first, if the module says how many there are to be; else
 * all are, but where expressions are long, which matter more than the tile then, only some from the whole menu. */
static bool is_offered(const tcc_choice *ch, const tcc_tile_menu *menu, size_t i)
{
    int64_t tiles = tcc_attr_int(&ch->f->ir->attrs, "tiles", 0);
    if (tiles)
        return (int64_t)i < tiles - 1;
    return tcc_is_worthwhile(ch->f, i, menu->n, 0);
}

void tcc_tile_menu_offer(const tcc_choice *ch)
{
    const tcc_tile_menu *menu = tcc_family_passes_of(ch->target)->menu;
    const tcc_tile_size least = least_of(menu);
    bool padded = tcc_attr_find(&ch->f->attrs, "before"), first = !strcmp(ch->f->name, tcc_func_first(ch->f));
    bool turned = tcc_attr_find(&ch->f->attrs, "order"); /* of which some tiles suffice */
    if (tcc_choice_is_tiled(ch) || ch->c.parts.index)
        return;
    for (size_t i = menu->n; i--;) {
        tcc_tile_size size = menu->sizes[i];
        size.n = size.swapped ? tcc_choice_cover(ch->c.extents[!rows_of(ch, size)], 8, size.n) : size.n;
        bool otherwise =
            size.in_turn && tcc_choice_given(ch, tcc_schedule_keys[TCC_KEY_consumers].name);
        if (!is_offered(ch, menu, i) || otherwise || (padded && !first && !size.padded) ||
            (turned && !size.padded && !size.swapped) ||
            !is_wanted(ch, size, &least))
            continue;
        const char *name = name_of(ch, size);
        if (!is_expected(ch->f->ir, name) || tcc_func_find(ch->f->ir, name)) /* another covers as few columns */
            continue;
        tcc_func *f = tcc_func_clone(ch->f, name);
        set_tile(ch, f, size);
        if (!is_possible(ch, f))
            tcc_func_remove(f);
    }
}

void tcc_tile_menu_print(tcc_str *out, const tcc_func *first)
{
    tcc_attr assumes = tcc_attr_list(&first->attrs, "assumes");
    const char *sep = "// a launch takes this tile or ";
    for (const tcc_func *f = first->next; f; f = f->next) {
        tcc_attr same = tcc_attr_list(&f->attrs, "assumes");
        bool has_tile = !tcc_func_is_step(f); /* which has a schedule of its own */
        if (strcmp(tcc_func_first(f), first->name) || !tcc_attr_equal(&assumes, &same) ||
            !has_tile)
            continue;
        tcc_schedule s = tcc_schedule_of(f);
        tcc_str_printf(out, "%s%lld x %lld", sep, (long long)s.m, (long long)s.n);
        if (s.split > 1)
            tcc_str_printf(out, " split %lld", (long long)s.split);
        if (s.operands == TCC_OPERANDS_SWAPPED)
            tcc_str_puts(out, " swapped");
        if (s.persistent)
            tcc_str_puts(out, s.consumers == TCC_CONSUMERS_PINGPONG ? " pingpong" : " persistent");
        if (s.cluster_m > 1)
            tcc_str_printf(out, " cluster %lld", (long long)s.cluster_m);
        sep = ", ";
    }
    if (*sep == ',')
        tcc_str_puts(out, ", by its extents\n");
}

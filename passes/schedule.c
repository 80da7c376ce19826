/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/schedule.h"

#include <math.h>

#include "ir/machine.h"
#include "ir/schedule_key.h"
#include "passes/families.h"

/* ---- keys -------------------------------------------------------------------------------- */

/* Each key's field, as a number. */
static int64_t get(const tcc_schedule *s, tcc_schedule_key_id id)
{
    switch (id) {
#define GET_TILE(name)
#define GET_NUMBER(name) case TCC_KEY_##name: return (int64_t)s->name;
#define GET_WORD GET_NUMBER
#define GET_BYTES GET_NUMBER
#define GET_WORDS GET_TILE
#define GET_NAMES GET_TILE
#define KEY(name, form, ...) GET_##form(name)
#include "ir/schedule_keys.def"
    default: return 0;
    }
}

static void put(tcc_schedule *s, tcc_schedule_key_id id, int64_t value)
{
    switch (id) {
#define PUT_TILE(name)
#define PUT_NUMBER(name) case TCC_KEY_##name: s->name = value; break;
#define PUT_WORD(name) case TCC_KEY_##name: s->name = (unsigned)value; break;
#define PUT_BYTES PUT_NUMBER
#define PUT_WORDS PUT_TILE
#define PUT_NAMES PUT_TILE
#define KEY(name, form, ...) PUT_##form(name)
#include "ir/schedule_keys.def"
    default: break;
    }
}

static bool has(const tcc_target *target, int id)
{
    const tcc_schedule_key *key = &tcc_schedule_keys[id];
    return !tcc_schedule_key_is_list(key) && tcc_schedule_key_is_for(key, target);
}

const char *tcc_producer_name(tcc_producer p)
{
    return tcc_schedule_key_word(&tcc_schedule_keys[TCC_KEY_producer], p);
}

tcc_schedule tcc_schedule_of(const tcc_func *f)
{
    tcc_attr tile = tcc_attr_list(&f->attrs, "tile");
    tcc_schedule s = {
        .target = tcc_func_target(f),
        .m = tile.list.n == 6 ? tile.list.items[1].i : 0,
        .n = tile.list.n == 6 ? tile.list.items[3].i : 0,
        .k = tile.list.n == 6 ? tile.list.items[5].i : 0,
        .warpgroups = 1, /* waves count as one */
        .cluster_m = 1,
        .cluster_n = 1,
        .cluster_k = 1,
        .streams = tcc_attr_find(&f->attrs, "stream"),
    };
    if (s.m && tcc_schedule_key_is_for(&tcc_schedule_keys[TCC_KEY_cluster], s.target)) {
        s.cluster_m = tcc_schedule_cluster_of(f, tile.list.items[0].s);
        s.cluster_n = tcc_schedule_cluster_of(f, tile.list.items[2].s);
        s.cluster_k = tcc_schedule_cluster_of(f, tile.list.items[4].s);
    }
    tcc_attr more = tcc_attr_list(&f->attrs, "more");
    if (more.list.n == 3) {
        s.more_sums = more.list.items[0].i;
        s.more_a = more.list.items[1].i;
        s.more_b = more.list.items[2].i;
    }
    tcc_attr own = tcc_attr_list(&f->attrs, "own");
    if (own.list.n == 2) {
        s.own_a = own.list.items[0].i;
        s.own_b = own.list.items[1].i;
    }
    for (int id = 0; id < TCC_KEY_COUNT; id++) {
        const tcc_schedule_key *key = &tcc_schedule_keys[id];
        const tcc_named_attr *a = tcc_attr_find(&f->attrs, key->name);
        int64_t value =
            id == TCC_KEY_instr ? (int64_t)tcc_target_instr(s.target) : key->min; /* where nothing is said */
        if (!has(s.target, id))
            continue;
        if (a && !tcc_schedule_key_read(key, &a->value, &value)) {
            s.m = 0; /* written by hand, and no schedule */
            value = key->min;
        }
        put(&s, id, value);
    }
    return s;
}

int64_t tcc_schedule_cluster_of(const tcc_func *f, const char *index)
{
    tcc_attr cluster = tcc_attr_list(&f->attrs, tcc_schedule_keys[TCC_KEY_cluster].name);
    for (size_t i = 0; i + 1 < cluster.list.n; i += 2)
        if (cluster.list.items[i].kind == TCC_ATTR_STR && tcc_index_same(cluster.list.items[i].s, index))
            return cluster.list.items[i + 1].kind == TCC_ATTR_INT ? cluster.list.items[i + 1].i : 1;
    return 1;
}

static bool is_multiple(int64_t x, int64_t step)
{
    return x >= step && x <= 256 && x % step == 0;
}

/* 0 is none, as 1 is. */
static bool is_valid_cluster(const tcc_schedule *s)
{
    int64_t most = tcc_schedule_keys[TCC_KEY_cluster].max;
    const int64_t along[] = {s->cluster_m, s->cluster_n, s->cluster_k};
    int64_t ctas = 1;
    for (int i = 0; i < 3; i++) {
        if (along[i] < 0 || along[i] > most)
            return false;
        ctas *= along[i] ? along[i] : 1;
    }
    return ctas <= most;
}

static bool is_valid_for_warpgroups(const tcc_schedule *s)
{
    bool swizzle = !s->swizzle || s->swizzle == 32 || s->swizzle == 64 || s->swizzle == 128;
    bool can_turn = s->warpgroups == 2 && s->persistent && s->producer == TCC_PRODUCER_WARPGROUP;
    return s->warpgroups >= 1 && s->warpgroups <= (s->streams ? 4 : 3) && is_multiple(s->m, 64 * s->warpgroups / tcc_schedule_turns(s)) &&
           is_valid_cluster(s) && (can_turn || s->consumers == TCC_CONSUMERS_COOPERATIVE) && is_multiple(s->n, 8) &&
           is_multiple(s->k, 8) && s->stages >= 1 && s->stages <= 1024 && s->group >= 1 && swizzle;
}

static int64_t threads_of_warpgroups(const tcc_schedule *s)
{
    return s->warpgroups * 128 + tcc_schedule_producer_threads(s);
}

const tcc_schedule_rules tcc_schedule_of_warpgroups = {is_valid_for_warpgroups, threads_of_warpgroups};

bool tcc_schedule_is_valid(const tcc_schedule *s)
{
    const tcc_family_passes *passes = tcc_family_passes_of(s->target);
    return passes && passes->schedule->is_valid(s);
}

/* Where there is none, nothing says so. */
static void set_cluster(tcc_func *f, const tcc_schedule *s, const char *const *indices)
{
    const int64_t all[] = {s->cluster_m, s->cluster_n, s->cluster_k};
    enum { AXES = sizeof all / sizeof *all };
    const char *of[AXES];
    int64_t ctas[AXES];
    size_t n = 0;
    for (size_t i = 0; i < AXES; i++)
        if (all[i] > 1) {
            of[n] = indices[i];
            ctas[n++] = all[i];
        }
    if (n)
        tcc_schedule_sizes_set(f, TCC_KEY_cluster, n, of, ctas);
    else
        tcc_attr_remove(&f->attrs, tcc_schedule_keys[TCC_KEY_cluster].name);
}

void tcc_schedule_set(tcc_func *f, const tcc_schedule *s, const char *m, const char *n,
                      const char *k)
{
    const char *indices[] = {m, n, k};
    tcc_schedule_sizes_set(f, TCC_KEY_tile, 3, indices, (int64_t[]){s->m, s->n, s->k});
    for (int id = 0; id < TCC_KEY_COUNT; id++)
        if (has(tcc_func_target(f), id) && (id != TCC_KEY_instr || s->instr != tcc_target_instr(tcc_target_of(f->ir))))
            tcc_schedule_key_set(f, id, get(s, id));
    if (!s->staging)
        tcc_attr_remove(&f->attrs, tcc_schedule_keys[TCC_KEY_staging].name);
    if (!s->staging || s->strips == tcc_schedule_keys[TCC_KEY_strips].min)
        tcc_attr_remove(&f->attrs, tcc_schedule_keys[TCC_KEY_strips].name);
    if (s->raster == TCC_RASTER_GROUPED)
        tcc_attr_remove(&f->attrs, tcc_schedule_keys[TCC_KEY_raster].name);
    if (tcc_schedule_key_is_for(&tcc_schedule_keys[TCC_KEY_cluster], s->target))
        set_cluster(f, s, indices);
    if (s->more_sums)
        tcc_attr_set_ints(f->ir, &f->attrs, "more", 3,
                          (int64_t[]){s->more_sums, s->more_a, s->more_b});
    if (s->own_b)
        tcc_attr_set_ints(f->ir, &f->attrs, "own", 2, (int64_t[]){s->own_a, s->own_b});
}

int64_t tcc_schedule_producer_threads(const tcc_schedule *s)
{
    static const int64_t threads[] = {0, 32, 128};
    return threads[s->producer];
}

int64_t tcc_schedule_threads(const tcc_schedule *s)
{
    return tcc_family_passes_of(s->target)->schedule->threads(s);
}

int64_t tcc_swizzle_of(int64_t bytes, int64_t widest)
{
    while (widest && bytes % widest)
        widest = widest > 32 ? widest / 2 : 0;
    return widest;
}

int tcc_contiguous_of(const tcc_type *tensor, int row, int col)
{
    int last = (int)tensor->rank - 1;
    return row < 0 || col < 0 || !tcc_type_has_rows(tensor) ? -1 : col == last ? 1 : row == last ? 0 : -1;
}

bool tcc_can_store_by_tma(const tcc_type *tensor, int row, int col, int64_t n)
{
    int contiguous = tcc_contiguous_of(tensor, row, col);
    if (contiguous < 0 || tensor->rank > 5)
        return false;
    const tcc_dim *last = &tensor->dims[tensor->rank - 1];
    int64_t elem_bytes = tcc_scalar_bits(tensor->elem) / 8, along = contiguous ? n : TCC_WGMMA_ROWS;
    return along * elem_bytes % 16 == 0 &&
           (tensor->rank == 1 || tcc_type_has_gaps(tensor) || last->name || last->size * elem_bytes % 16 == 0);
}

bool tcc_can_store_in_words(const tcc_type *tensor, int row, int col, int64_t n)
{
    int64_t bits = tcc_scalar_bits(tensor->elem);
    return tensor->rank && row >= 0 && col == (int)tensor->rank - 1 && tcc_type_has_rows(tensor) &&
           (bits == 8 || bits == 16 || bits == 32) && n * bits / 8 % 16 == 0;
}

tcc_storing tcc_storing_of(const tcc_schedule *s, const tcc_type *tensor, int row, int col, int64_t n, bool aligned)
{
    if (s->epilogue == TCC_STORING_TMA && aligned && tcc_can_store_by_tma(tensor, row, col, n))
        return TCC_STORING_TMA;
    bool words = s->epilogue != TCC_STORING_INTERLEAVED && tcc_can_store_in_words(tensor, row, col, n);
    return words ? TCC_STORING_WORDS : TCC_STORING_INTERLEAVED;
}

int64_t tcc_schedule_turns(const tcc_schedule *s)
{
    return s->consumers == TCC_CONSUMERS_PINGPONG ? s->warpgroups : 1;
}

int64_t tcc_schedule_rows(const tcc_schedule *s)
{
    return s->m * tcc_schedule_turns(s) / s->warpgroups;
}

int64_t tcc_schedule_accumulators(const tcc_schedule *s)
{
    return (1 + s->more_sums) * (tcc_schedule_rows(s) / 64) * (s->n / 2);
}

static int64_t round_down(int64_t x, int64_t multiple)
{
    return x / multiple * multiple;
}

enum { REGISTERS = 8 }; /* that are given out together, and set by setmaxnreg */

/* Registers of one thread when all have the same. Warps are dealt to the four quarters of an SM,
 * each with a quarter of the registers: an odd warp costs as much as a warpgroup. */
static int64_t even_share(const tcc_target *t, int64_t threads)
{
    int64_t warpgroups = (threads + 127) / 128;
    return t->registers / (warpgroups * 128);
}

int64_t tcc_launched_registers(const tcc_target *t, int64_t threads)
{
    return round_down(even_share(t, threads), REGISTERS);
}

/* Panels of an operand's stage with rows of this many bytes, of which an instruction takes
 * `unit`. */
static int64_t panels(const tcc_schedule *s, int64_t bytes, int64_t unit)
{
    int64_t width = tcc_swizzle_of(unit, s->swizzle);
    return bytes / (width ? width : 16);
}

int64_t tcc_schedule_copies(const tcc_schedule *s, const tcc_target *t, bool a_along_k,
                            bool b_along_k)
{
    int64_t along_k = panels(s, 2 * s->k, 2 * s->k);
    int64_t a = a_along_k ? along_k : panels(s, 2 * s->m, 2 * 64);
    int64_t b = b_along_k ? along_k : panels(s, 2 * s->n, 2 * tcc_schedule_instr_n(s, t));
    return (1 + s->more_a) * a + (1 + s->more_b) * b;
}

/* For any layout of the operands in memory. */
static int64_t most_copies(const tcc_schedule *s, const tcc_target *t)
{
    int64_t most = 0;
    for (int layout = 0; layout < 4; layout++) {
        int64_t n = tcc_schedule_copies(s, t, layout & 1, layout & 2);
        most = n > most ? n : most;
    }
    return most;
}

int64_t tcc_schedule_share(const tcc_schedule *s)
{
    int64_t share = tcc_launched_registers(s->target, tcc_schedule_threads(s)), most = s->target->thread_registers;
    return share < most ? share : most;
}

int64_t tcc_schedule_registers(const tcc_schedule *s, const tcc_target *t, int64_t *producer)
{
    int64_t share = tcc_launched_registers(t, tcc_schedule_threads(s));
    *producer = 0;
    if (share >= t->thread_registers)
        return t->thread_registers;
    if (s->producer != TCC_PRODUCER_WARPGROUP || s->warpgroups < 2)
        return share;
    /* One elected thread of the producer works, with few live values, but ptxas has the coordinates
     * of all copies of a stage ready. */
    *producer = s->streams ? 24 : (s->warpgroups == 2 ? 40 : 32) + (most_copies(s, t) > TCC_FEW_COPIES ? REGISTERS : 0);
    int64_t launched = share * tcc_schedule_threads(s); /* what all have together from then on */
    int64_t left = (launched - 128 * *producer) / (128 * s->warpgroups);
    int64_t most = round_down(t->thread_registers, REGISTERS) - REGISTERS; /* 240 */
    left = round_down(left, REGISTERS);
    return left < most ? left : most;
}

int64_t tcc_schedule_instr_columns(const tcc_schedule *s, const tcc_target *t, int64_t columns)
{
    /* ptxas gives every warpgroup the registers of an even share before setmaxnreg, and refuses
     * an instruction whose accumulators do not fit into them (C7602): of 128, n = 200 does. */
    int64_t room = even_share(t, tcc_schedule_threads(s)) - TCC_INSTR_REGISTERS, n = columns;
    while (n / 2 > room && n % 16 == 0)
        n /= 2;
    return n / 2 > room ? 0 : n;
}

int64_t tcc_schedule_instr_n(const tcc_schedule *s, const tcc_target *t)
{
    return tcc_schedule_instr_columns(s, t, s->n);
}

/* name value, name value, …; an index that has no name is none of the language's. */
static void print_pairs(tcc_str *out, tcc_attr pairs)
{
    const char *sep = "";
    for (size_t i = 0; i + 1 < pairs.list.n; i += 2) {
        const tcc_attr *name = &pairs.list.items[i], *value = name + 1;
        if (!*name->s)
            continue;
        tcc_str_printf(out, "%s%s ", sep, name->s);
        if (value->kind == TCC_ATTR_STR)
            tcc_str_puts(out, value->s);
        else
            tcc_str_printf(out, "%lld", (long long)value->i);
        sep = ", ";
    }
}

static void print_names(tcc_str *out, tcc_attr names)
{
    for (size_t i = 0; i < names.list.n; i++)
        tcc_str_printf(out, "%s%s", i ? ", " : "", names.list.items[i].s);
}

void tcc_schedule_print(tcc_str *out, const tcc_func *f, const char *kernel)
{
    tcc_schedule s = tcc_schedule_of(f);
    tcc_str_printf(out, "schedule %s for %s\n{\n", kernel, tcc_target_of(f->ir)->name);
    for (int id = 0; id < TCC_KEY_COUNT; id++) {
        const tcc_schedule_key *key = &tcc_schedule_keys[id];
        if (!tcc_schedule_key_is_for(key, s.target) || !tcc_attr_find(&f->attrs, key->name))
            continue;
        tcc_str_printf(out, "    %-10s ", key->name);
        if (tcc_schedule_key_is_of_steps(key))
            print_names(out, tcc_attr_list(&f->attrs, key->name));
        else if (tcc_schedule_key_is_list(key))
            print_pairs(out, tcc_attr_list(&f->attrs, key->name));
        else
            tcc_schedule_key_print(out, key, get(&s, id));
        tcc_str_puts(out, ";\n");
    }
    tcc_str_puts(out, "}\n");
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/tune_space.h"

#include "ir/schedule_key.h"

typedef struct values {
    size_t n;
    const int64_t *of;
} values;

#define VALUES(...)                                                                                \
    {sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t), (const int64_t[]) { __VA_ARGS__ }}
#define EIGHTS(x) x + 8, x + 16, x + 24, x + 32, x + 40, x + 48, x + 56, x + 64

enum { ROWS, COLUMNS, SUM };

enum {
    OPERANDS,
    TILE_ROWS,
    TILE_COLUMNS,
    TILE_SUM,
    PERSISTENT,
    CONSUMERS,
    SPLIT,
    CLUSTER_ROWS,
    CLUSTER_COLUMNS,
    CLUSTER_SUM,
    STAGES,
    WARPGROUPS,
    PRODUCER,
    EPILOGUE,
    WARPS,
    WAVES,
    WAVE,
    GROUP,
    RASTER,
    KNOBS
};
_Static_assert((int)KNOBS == (int)TCC_KNOBS, "a point has room for each");

/* Words are numbers, by their place in schedule_keys.def. What decides most is combined; `-1`, which leaves it to the
 * compiler, comes first. Left out is `swizzle`, which the rows of a tile decide. */
static const struct {
    tcc_schedule_key_id key;
    int axis;        /* of keys with a number for each index */
    values combined; /* none: -1 */
    values tried;
} knobs[TCC_KNOBS] = {
    [OPERANDS] = {TCC_KEY_operands, 0, VALUES(-1, 1), VALUES(0, 1)},
    [TILE_ROWS] = {TCC_KEY_tile, ROWS, VALUES(16, 32, 64, 128, 192, 256), VALUES(16, 32, 64, 128, 192, 256)},
    [TILE_COLUMNS] = {TCC_KEY_tile, COLUMNS, VALUES(16, 32, 64, 96, 128, 160, 192, 224, 256),
     VALUES(EIGHTS(0), EIGHTS(64), EIGHTS(128), EIGHTS(192))},
    [TILE_SUM] = {TCC_KEY_tile, SUM, {0}, VALUES(16, 32, 64, 128, 256)},
    [PERSISTENT] = {TCC_KEY_persistent, 0, VALUES(-1, 1), VALUES(0, 1, 2)},
    [CONSUMERS] = {TCC_KEY_consumers, 0, VALUES(-1, 1), VALUES(0, 1)},
    [SPLIT] = {TCC_KEY_split, 0, VALUES(-1, 2, 4, 8, 16), VALUES(1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64)},
    [CLUSTER_ROWS] = {TCC_KEY_cluster, ROWS, VALUES(-1, 2), VALUES(1, 2, 4)},
    [CLUSTER_COLUMNS] = {TCC_KEY_cluster, COLUMNS, VALUES(-1, 2), VALUES(1, 2, 4)},
    [CLUSTER_SUM] = {TCC_KEY_cluster, SUM, VALUES(-1, 2), VALUES(1, 2, 4)},
    [STAGES] = {TCC_KEY_stages, 0, {0}, VALUES(1, 2, 3, 4, 5, 6, 7, 8, 10, 12)},
    [WARPGROUPS] = {TCC_KEY_warpgroups, 0, {0}, VALUES(1, 2, 3)},
    [PRODUCER] = {TCC_KEY_producer, 0, {0}, VALUES(0, 1, 2)},
    [EPILOGUE] = {TCC_KEY_epilogue, 0, {0}, VALUES(0, 1)},
    [WARPS] = {TCC_KEY_warps, 0, {0}, VALUES(1, 2, 4, 8, 16)},
    [WAVES] = {TCC_KEY_waves, 0, {0}, VALUES(1, 2, 4, 8, 16)},
    [WAVE] = {TCC_KEY_wave, 0, {0}, VALUES(32, 64)},
    [GROUP] = {TCC_KEY_group, 0, {0}, VALUES(1, 2, 4, 8, 16, 32, 64)},
    [RASTER] = {TCC_KEY_raster, 0, {0}, VALUES(1, 2, 3)},
};

static bool is_for(const tcc_target *target, size_t knob)
{
    return tcc_schedule_key_is_for(&tcc_schedule_keys[knobs[knob].key], target);
}

static size_t count_combined(const tcc_target *target, size_t knob)
{
    return is_for(target, knob) && knobs[knob].combined.n ? knobs[knob].combined.n : 1;
}

size_t tcc_space_count(const tcc_target *target)
{
    size_t n = 1;
    for (size_t k = 0; k < TCC_KNOBS; k++)
        n *= count_combined(target, k);
    return n;
}

/* What the compiler would refuse of combinations, for the most part. */
static bool goes_together(const tcc_point *p)
{
    bool in_turn = p->said[CONSUMERS] == 1, persistent = p->said[PERSISTENT] == 1;
    int clusters = 0;
    for (int k = CLUSTER_ROWS; k <= CLUSTER_SUM; k++)
        clusters += p->said[k] != TCC_KNOB_UNSAID;
    return (!in_turn || persistent) && clusters <= 2 && (!persistent || p->said[CLUSTER_SUM] == TCC_KNOB_UNSAID);
}

bool tcc_space_at(const tcc_target *target, size_t i, tcc_point *out)
{
    enum { STEP = 7919 }; /* a prime that divides no count */
    i = i * STEP % tcc_space_count(target);
    for (size_t k = 0; k < TCC_KNOBS; k++) {
        size_t n = count_combined(target, k);
        out->said[k] = n > 1 ? knobs[k].combined.of[i % n] : TCC_KNOB_UNSAID;
        i /= n;
    }
    return goes_together(out);
}

bool tcc_space_neighbour(const tcc_target *target, const tcc_point *p, size_t i, tcc_point *out)
{
    for (size_t k = 0; k < TCC_KNOBS; k++) {
        size_t n = is_for(target, k) ? knobs[k].tried.n : 0;
        if (i < n) {
            *out = *p;
            if (k == GROUP || k == RASTER) /* groups have a width, and the other orders none */
                out->said[k == GROUP ? RASTER : GROUP] = TCC_KNOB_UNSAID;
            out->said[k] = knobs[k].tried.of[i];
            return true;
        }
        i -= n;
    }
    return false;
}

/* `operands swapped` makes rows of columns. */
static const char *axis_of(const tcc_tune_subject *subject, const tcc_point *p, int axis)
{
    bool swapped = p->said[OPERANDS] == 1;
    return subject->axes[axis == SUM || !swapped ? axis : !axis];
}

/* All that is said of a key, of which knob k is the first. */
static void print_key(tcc_str *out, const tcc_tune_subject *subject, const tcc_point *p, size_t k)
{
    const tcc_schedule_key *key = &tcc_schedule_keys[knobs[k].key];
    tcc_str_printf(out, "    %s ", key->name);
    if (!tcc_schedule_key_is_list(key)) {
        tcc_schedule_key_print(out, key, p->said[k]);
        tcc_str_puts(out, ";\n");
        return;
    }
    const char *sep = "";
    for (; k < TCC_KNOBS && key == &tcc_schedule_keys[knobs[k].key]; k++)
        if (p->said[k] != TCC_KNOB_UNSAID) {
            tcc_str_printf(out, "%s%s %lld", sep, axis_of(subject, p, knobs[k].axis), (long long)p->said[k]);
            sep = ", ";
        }
    tcc_str_puts(out, ";\n");
}

void tcc_space_print(tcc_str *out, const tcc_tune_subject *subject, const tcc_point *p)
{
    int last = -1; /* key that was printed */
    tcc_str_printf(out, "schedule %s for %s\n{\n", subject->kernel, subject->target->name);
    for (size_t k = 0; k < TCC_KNOBS; k++) {
        if (p->said[k] == TCC_KNOB_UNSAID || (int)knobs[k].key == last)
            continue;
        print_key(out, subject, p, k);
        last = (int)knobs[k].key;
    }
    tcc_str_puts(out, "}\n");
}

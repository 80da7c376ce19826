/* schedule_key: the keys of a schedule, of which schedule_keys.def is the table. A function has them as
 * attributes, whose values are read and written here as numbers: a word as its place among the key's,
 * `none` of sizes as 0.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_SCHEDULE_KEY_H
#define TCC_IR_SCHEDULE_KEY_H

#include "ir/target.h"
#include "support/str.h"

typedef enum tcc_schedule_key_id {
#define KEY(name, ...) TCC_KEY_##name,
#include "ir/schedule_keys.def"
    TCC_KEY_COUNT
} tcc_schedule_key_id;

/* The numbers that a key takes, as constants. */
enum {
#define KEY(name, form, min, max, ...) TCC_KEY_##name##_min = (min), TCC_KEY_##name##_max = (max),
#include "ir/schedule_keys.def"
};

typedef enum tcc_key_form {
    TCC_KEY_FORM_TILE,
    TCC_KEY_FORM_NUMBER,
    TCC_KEY_FORM_WORD,
    TCC_KEY_FORM_BYTES,
    TCC_KEY_FORM_WORDS,
    TCC_KEY_FORM_NAMES
} tcc_key_form;

typedef struct tcc_schedule_key {
    const char *name;
    tcc_key_form form;
    int64_t min, max;
    const char *words; /* each ends with a NUL, the last with two; or NULL */
    unsigned needs;    /* capabilities, a bit each */
    bool of_every_variant;
} tcc_schedule_key;

extern const tcc_schedule_key tcc_schedule_keys[TCC_KEY_COUNT];

/* Whether its value is a list, of names or of pairs of an index or a tensor and what it has, and no number. */
bool tcc_schedule_key_is_list(const tcc_schedule_key *key);
/* Whether it says which steps there are: partition reads it, and nobody who chooses how a step is computed. */
bool tcc_schedule_key_is_of_steps(const tcc_schedule_key *key);
/* Whether a function's schedule says nothing of how to compute it. */
bool tcc_schedule_is_open(const tcc_func *f);
/* Whether the key means something on a target. */
bool tcc_schedule_key_is_for(const tcc_schedule_key *key, const tcc_target *target);
/* Whether its i-th word means something on a target: all do but instructions that it, or what it is made as, lacks. */
bool tcc_schedule_key_has(const tcc_schedule_key *key, int64_t i, const tcc_target *target);
/* The i-th word; NULL past the last. */
const char *tcc_schedule_key_word(const tcc_schedule_key *key, int64_t i);
/* The number that an attribute stands for; false if it is not a value of the key. Not for TILE. */
bool tcc_schedule_key_read(const tcc_schedule_key *key, const tcc_attr *value, int64_t *out);
/* The same of a function's attribute; `otherwise` where that is absent or none of the key's. */
int64_t tcc_schedule_key_of(const tcc_func *f, tcc_schedule_key_id id, int64_t otherwise);
void tcc_schedule_key_set(tcc_func *f, tcc_schedule_key_id id, int64_t value);
/* Sets a key that has so much for each of n indices. A user's entry keeps its place. */
void tcc_schedule_sizes_set(tcc_func *f, tcc_schedule_key_id id, size_t n, const char *const *indices,
                            const int64_t *sizes);
/* The number as the language has it. */
void tcc_schedule_key_print(tcc_str *out, const tcc_schedule_key *key, int64_t value);
/* What the key takes: "1 to 3", "none, warp or warpgroup". */
void tcc_schedule_key_print_choices(tcc_str *out, const tcc_schedule_key *key);

#endif

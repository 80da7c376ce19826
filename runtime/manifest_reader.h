/* manifest_reader: what the files that read a manifest share.
 *
 * Every reading function returns false after reporting; `where` is the place for messages.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_MANIFEST_READER_H
#define TCC_RUNTIME_MANIFEST_READER_H

#include "runtime/manifest.h"
#include "support/json.h"

typedef struct tcc_manifest_reader {
    tcc_arena *arena;
    tcc_diag *diag;
    tcc_kernel_desc *kernel; /* being read: names resolve against it */
    bool amd;                /* the target is one of AMD's */
} tcc_manifest_reader;

#define TCC_BAD_MANIFEST(r, where, ...) tcc_bad_manifest(r, where, tcc_arena_printf((r)->arena, __VA_ARGS__))
bool tcc_bad_manifest(tcc_manifest_reader *r, const char *where, const char *what);

/* The place of a member of an object, or of an array's element. */
const char *tcc_place_in(tcc_manifest_reader *r, const char *where, const char *name);
const char *tcc_place_at(tcc_manifest_reader *r, const char *where, size_t i);

/* JSON numbers are doubles, exact up to here. */
static const int64_t tcc_max_number = (int64_t)1 << 53;

bool tcc_read_string(tcc_manifest_reader *r, const char *where, const tcc_json *v, const char **out);
bool tcc_read_int(tcc_manifest_reader *r, const char *where, const tcc_json *v, int64_t min, int64_t max, int64_t *out);
bool tcc_read_unsigned(tcc_manifest_reader *r, const char *where, const tcc_json *v, unsigned min, unsigned max,
                       unsigned *out);
/* An array's length within bounds. */
bool tcc_read_count(tcc_manifest_reader *r, const char *where, const tcc_json *v, size_t min, size_t max, size_t *out);

/* Reads an array of `type` elements with `read_elem` into the fields `out` and `n_out`. */
#define TCC_READ_ARRAY(r, where, name, object, max, type, read_elem, out, n_out)                                       \
    do {                                                                                                               \
        const tcc_json *array_ = tcc_json_member(object, name);                                                        \
        const char *where_ = tcc_place_in(r, where, name);                                                             \
        if (!tcc_read_count(r, where_, array_, 0, max, &(n_out)))                                                      \
            return false;                                                                                              \
        type *elems_ = TCC_NEW_ARRAY((r)->arena, type, n_out);                                                         \
        (out) = elems_;                                                                                                \
        size_t i_ = 0;                                                                                                 \
        const tcc_json *elem_;                                                                                         \
        for (elem_ = array_->first; elem_; elem_ = elem_->next) {                                                      \
            if (!read_elem(r, tcc_place_at(r, where_, i_), elem_, &elems_[i_]))                                        \
                return false;                                                                                          \
            i_++;                                                                                                      \
        }                                                                                                              \
    } while (0)

/* By what the kernel that is being read has. */
bool tcc_read_arg(tcc_manifest_reader *r, const char *where, const tcc_json *v, bool scalar, unsigned *out);
/* The number of the kernel's dimension that a name is; user: the reader. */
tcc_extent_find tcc_manifest_find_dim;
bool tcc_read_extent(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_extent *out);
bool tcc_read_extents(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_extent *out);
bool tcc_read_product(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_product *out);
bool tcc_read_expr(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_expr *out);
/* One that may be missing: 0. */
bool tcc_read_optional_expr(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_expr *out);

bool tcc_read_type(tcc_manifest_reader *r, const char *where, const tcc_json *v, const tcc_elem_type **out);
/* Whether what its steps read and write goes together, whatever the extents. */
bool tcc_check_plan(tcc_manifest_reader *r, const char *where, const tcc_variant *v);
bool tcc_read_variant(tcc_manifest_reader *r, const char *where, const tcc_json *v, tcc_variant *out);

#endif

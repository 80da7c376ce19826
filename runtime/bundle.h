/* bundle: images of one program for several targets in one file, from which a GPU's is taken.
 *
 * A head, then a row for each image, then what rows point to, all little-endian (docs/abi.md). A
 * manifest is terminated, and only images that carry none have one.
 *
 * Every offset is checked before it is followed. A bundle needs no alignment.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_BUNDLE_H
#define TCC_RUNTIME_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/driver.h"
#include "support/diag.h"

enum { TCC_BUNDLE_VERSION = 1, TCC_BUNDLE_ALIGN = 64, TCC_MAX_IMAGES = 64, TCC_MAX_TARGET = 32 };

typedef struct tcc_bundle_head {
    char magic[8]; /* tcc_bundle_magic */
    uint32_t version, n;
} tcc_bundle_head;

typedef struct tcc_bundle_row {
    char target[TCC_MAX_TARGET]; /* terminated */
    uint64_t image, image_size;  /* the image begins at a multiple of TCC_BUNDLE_ALIGN */
    uint64_t manifest, manifest_size; /* 0 bytes: in the image */
} tcc_bundle_row;

extern const char tcc_bundle_magic[8];

typedef struct tcc_image {
    const char *target;
    const void *data;
    size_t size;
    const char *manifest; /* NULL: in the image */
} tcc_image;

/* The images of a bundle, which stays the caller's. */
typedef struct tcc_bundle {
    tcc_image images[TCC_MAX_IMAGES];
    size_t n;
} tcc_bundle;

bool tcc_is_bundle(const void *data, size_t size);

/* Reads a bundle. Returns TCC_OK, or TCC_ERR_SYNTAX with an error reported. */
tcc_status tcc_bundle_read(tcc_diag *diag, const void *data, size_t size, tcc_bundle *out);

/* Leaves those that a GPU of this architecture runs, the best first: of the later target, and of
 * one target the machine code. */
void tcc_bundle_choose(tcc_bundle *bundle, const tcc_driver *driver, const char *arch);

/* Whether a GPU that runs both targets is served better by the first: the later architecture, and
 * of one the target that no other runs, sm_90a over sm_90. */
bool tcc_is_better_target(const char *target, const char *other);

#endif

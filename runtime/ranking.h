/* ranking: a kernel's variants by what they cost for some extents, the cheapest first; of equals the one
 * that comes first in the manifest. A cost that leaves 64 bits is the highest.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_RANKING_H
#define TCC_RUNTIME_RANKING_H

#include "runtime/manifest.h"

typedef struct tcc_ranking {
    uint8_t order[TCC_MANIFEST_VARIANTS]; /* numbers of the kernel's n_variants, which a byte holds */
} tcc_ranking;

tcc_ranking tcc_ranking_compute(const tcc_kernel_desc *k, const tcc_device_attrs *device, const int64_t *dims);

/* Rankings for extents of late, so that a launch with such does not compute costs. */
typedef struct tcc_ranking_cache tcc_ranking_cache;
/* For one kernel on one device, both borrowed; NULL if memory runs out. */
tcc_ranking_cache *tcc_ranking_cache_create(const tcc_kernel_desc *k, const tcc_device_attrs *device);
void tcc_ranking_cache_destroy(tcc_ranking_cache *cache);
/* Thread-safe. */
tcc_ranking tcc_ranking_cache_get(tcc_ranking_cache *cache, const int64_t *dims);

#endif

/* tensor_map: encodes TMA descriptors and keeps those used last.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_TENSOR_MAP_H
#define TCC_RUNTIME_TENSOR_MAP_H

#include "runtime/variant.h"

typedef struct tcc_tma_cache tcc_tma_cache;

/* NULL when memory is short. */
tcc_tma_cache *tcc_tma_cache_create(void);
void tcc_tma_cache_destroy(tcc_tma_cache *cache);

/* The encoded map of a recipe with these values, from the cache where it is there. Returns the
 * driver's code. Thread-safe. */
CUresult tcc_tma_get(tcc_tma_cache *cache, const tcc_cuda *cuda, const tcc_tma_recipe *recipe,
                     const tcc_tma_values *values, CUtensorMap *out);

#endif

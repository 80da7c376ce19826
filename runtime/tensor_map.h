/* tensor_map: encodes TMA descriptors and keeps those used last.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_TENSOR_MAP_H
#define TCC_RUNTIME_TENSOR_MAP_H

#include "runtime/variant.h"

typedef struct tcc_map_cache tcc_map_cache;

/* NULL when memory is short. */
tcc_map_cache *tcc_map_cache_create(void);
void tcc_map_cache_destroy(tcc_map_cache *cache);

/* The encoded map of a recipe with these values, from the cache where it is there. Returns the
 * driver's code. Thread-safe. */
CUresult tcc_map_get(tcc_map_cache *cache, const tcc_cuda *cuda, const tcc_map_recipe *recipe,
                     const tcc_map_values *values, CUtensorMap *out);

#endif

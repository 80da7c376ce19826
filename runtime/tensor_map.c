/* Encoding costs about a microsecond and a launch has two or three maps, so a bounded cache pays:
 * sets of a few ways, the least recently used way replaced.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/tensor_map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SETS = 256, WAYS = 4 };

typedef struct entry {
    CUtensorMap map;
    tcc_tma_values values;
    const tcc_tma_recipe *recipe; /* NULL: unused */
    uint64_t last_use;
} entry;

struct tcc_tma_cache {
    pthread_mutex_t mutex;
    uint64_t clock;
    entry *entries; /* SETS * WAYS */
};

tcc_tma_cache *tcc_tma_cache_create(void)
{
    tcc_tma_cache *cache = calloc(1, sizeof *cache);
    entry *entries = aligned_alloc(alignof(entry), SETS * WAYS * sizeof *entries);
    if (!cache || !entries || pthread_mutex_init(&cache->mutex, NULL)) {
        free(cache);
        free(entries);
        return NULL;
    }
    memset(entries, 0, SETS * WAYS * sizeof *entries);
    cache->entries = entries;
    return cache;
}

void tcc_tma_cache_destroy(tcc_tma_cache *cache)
{
    if (!cache)
        return;
    pthread_mutex_destroy(&cache->mutex);
    free(cache->entries);
    free(cache);
}

/* FNV-1a over 64-bit words, folded: addresses differ in their middle bits. */
static size_t set_of(const tcc_tma_recipe *recipe, const tcc_tma_values *values)
{
    uint64_t words[sizeof *values / sizeof(uint64_t)];
    memcpy(words, values, sizeof words);
    uint64_t h = UINT64_C(0xcbf29ce484222325) ^ (uintptr_t)recipe;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        h = (h ^ words[i]) * UINT64_C(0x100000001b3);
    return (h ^ h >> 32) % SETS;
}

static entry *find(entry *set, const tcc_tma_recipe *recipe, const tcc_tma_values *values)
{
    for (int i = 0; i < WAYS; i++)
        if (set[i].recipe == recipe && !memcmp(&set[i].values, values, sizeof *values))
            return &set[i];
    return NULL;
}

static entry *least_recent(entry *set)
{
    entry *oldest = set;
    for (int i = 1; i < WAYS; i++)
        if (set[i].last_use < oldest->last_use)
            oldest = &set[i];
    return oldest;
}

/* What L2 brings for a box of rows that do not begin where a line does is in part for nothing: less of it. */
static int promotion(const tcc_tma_recipe *recipe, const tcc_tma_values *values)
{
    enum { LINE_BYTES = 128 };
    bool are_lines = values->address % LINE_BYTES == 0;
    for (unsigned i = 0; i + 1 < recipe->rank; i++)
        are_lines &= values->strides_bytes[i] % LINE_BYTES == 0;
    return are_lines ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
}

static CUresult encode(const tcc_cuda *cuda, const tcc_tma_recipe *recipe,
                       const tcc_tma_values *values, CUtensorMap *out)
{
    static const uint32_t ones[TCC_MAX_TMA_RANK] = {1, 1, 1, 1, 1};
    return cuda->cuTensorMapEncodeTiled(
        out, recipe->type->map_type, recipe->rank, (void *)(uintptr_t)values->address, values->dims,
        values->strides_bytes, recipe->box, ones, CU_TENSOR_MAP_INTERLEAVE_NONE, recipe->swizzle,
        promotion(recipe, values), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

CUresult tcc_tma_get(tcc_tma_cache *cache, const tcc_cuda *cuda, const tcc_tma_recipe *recipe,
                     const tcc_tma_values *values, CUtensorMap *out)
{
    entry *set = &cache->entries[set_of(recipe, values) * WAYS];
    pthread_mutex_lock(&cache->mutex);
    entry *hit = find(set, recipe, values);
    if (hit) {
        *out = hit->map;
        hit->last_use = ++cache->clock;
    }
    pthread_mutex_unlock(&cache->mutex);
    if (hit)
        return CUDA_SUCCESS;
    CUresult error = encode(cuda, recipe, values, out);
    if (error)
        return error;
    pthread_mutex_lock(&cache->mutex);
    entry *e = find(set, recipe, values); /* another thread may have been here */
    if (!e)
        e = least_recent(set);
    *e = (entry){.map = *out, .values = *values, .recipe = recipe, .last_use = ++cache->clock};
    pthread_mutex_unlock(&cache->mutex);
    return CUDA_SUCCESS;
}

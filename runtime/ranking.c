/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/ranking.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 64 };

struct tcc_ranking_cache {
    const tcc_kernel_desc *kernel;
    const tcc_device_attrs *device;
    pthread_mutex_t mutex;
    bool used[SLOTS];
    tcc_ranking rankings[SLOTS];
    int64_t dims[]; /* of each slot the kernel's */
};

tcc_ranking tcc_ranking_compute(const tcc_kernel_desc *k, const tcc_device_attrs *device, const int64_t *dims)
{
    int64_t costs[TCC_MANIFEST_VARIANTS];
    tcc_ranking r = {0};
    for (size_t v = 0; v < k->n_variants; v++) {
        size_t place = v;
        if (!tcc_expr_value(&k->variants[v].cost, dims, device, &costs[v]))
            costs[v] = INT64_MAX;
        for (; place && costs[r.order[place - 1]] > costs[v]; place--)
            r.order[place] = r.order[place - 1];
        r.order[place] = (uint8_t)v;
    }
    return r;
}

tcc_ranking_cache *tcc_ranking_cache_create(const tcc_kernel_desc *k, const tcc_device_attrs *device)
{
    tcc_ranking_cache *cache = calloc(1, sizeof *cache + SLOTS * k->n_dims * sizeof *cache->dims);
    if (cache) {
        cache->kernel = k;
        cache->device = device;
        pthread_mutex_init(&cache->mutex, NULL);
    }
    return cache;
}

void tcc_ranking_cache_destroy(tcc_ranking_cache *cache)
{
    if (cache)
        pthread_mutex_destroy(&cache->mutex);
    free(cache);
}

/* FNV-1a over words, folded. */
static size_t slot_of(const int64_t *dims, size_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint64_t)dims[i]) * UINT64_C(0x100000001b3);
    return (h ^ h >> 32) % SLOTS;
}

tcc_ranking tcc_ranking_cache_get(tcc_ranking_cache *cache, const int64_t *dims)
{
    size_t n = cache->kernel->n_dims, slot = slot_of(dims, n), bytes = n * sizeof *dims;
    int64_t *kept = cache->dims + slot * n;
    pthread_mutex_lock(&cache->mutex);
    if (!cache->used[slot] || memcmp(kept, dims, bytes)) {
        cache->rankings[slot] = tcc_ranking_compute(cache->kernel, cache->device, dims);
        memcpy(kept, dims, bytes);
        cache->used[slot] = true;
    }
    tcc_ranking r = cache->rankings[slot];
    pthread_mutex_unlock(&cache->mutex);
    return r;
}

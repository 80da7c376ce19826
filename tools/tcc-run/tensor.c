/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Each side of a tensor; a multiple of any alignment that matters. */
enum { GUARD_BYTES = 1024 };

static int64_t value_of(const tcc_kernel *k, const int64_t *dims, const char *name, int64_t number)
{
    for (size_t j = 0; name && j < tcc_kernel_dim_count(k); j++)
        if (!strcmp(name, tcc_kernel_dim_name(k, j)))
            return dims[j];
    return number;
}

static bool is_strided(const tensor *t)
{
    return t->info->stride_dims != NULL;
}

/* How far apart elements are, where that is not given, and how many there is room for. */
static bool find_span(session *s, tensor *t)
{
    int64_t last = 0, stride = 1, further;
    bool fits = true;
    for (unsigned i = t->info->rank; i-- > 0;) {
        if (!is_strided(t))
            t->strides[i] = stride;
        stride *= t->extents[i];
        fits = fits && !__builtin_mul_overflow(t->extents[i] - 1, t->strides[i], &further) &&
               !__builtin_add_overflow(last, further, &last) && last < PTRDIFF_MAX / 8;
    }
    t->span = t->n ? (size_t)last + 1 : 0;
    if (!fits && t->n)
        session_error(s, "'%s' is longer than any memory: over %td elements", t->info->name, PTRDIFF_MAX / 8);
    return fits || !t->n;
}

size_t tensor_place(const tensor *t, size_t i)
{
    size_t place = 0;
    if (!is_strided(t))
        return i;
    for (unsigned d = t->info->rank; d-- > 0; i /= (size_t)t->extents[d])
        place += i % (size_t)t->extents[d] * (size_t)t->strides[d];
    return place;
}

bool tensor_init(session *s, tensor *t, const tcc_kernel *k, size_t arg, const int64_t *dims)
{
    const tcc_arg_info *info = tcc_kernel_arg(k, arg);
    *t = (tensor){.info = info, .type = elem_type_find(info->type), .n = 1};
    if (!t->type || info->rank > NPY_MAX_RANK) {
        session_error(s, "'%s': %s of rank %u is not supported here", info->name, info->type,
                      info->rank);
        return false;
    }
    for (unsigned i = 0; i < info->rank; i++) {
        t->extents[i] = tcc_kernel_extent(k, arg, i, dims);
        if (info->stride_dims)
            t->strides[i] = value_of(k, dims, info->stride_dims[i], info->strides[i]);
        if (t->extents[i] < 0) {
            session_error(s, "dimension %s of '%s' is %" PRId64, info->dims[i], info->name, t->extents[i]);
            return false;
        }
        if (__builtin_mul_overflow(t->n, (size_t)t->extents[i], &t->n) || t->n > PTRDIFF_MAX / 8) {
            session_error(s, "'%s' has more elements than any memory: over %td", info->name,
                          PTRDIFF_MAX / 8);
            return false;
        }
    }
    t->bytes = elem_bytes(t->type, t->n);
    return find_span(s, t);
}

void tensor_free(session *s, tensor *t)
{
    free(t->host);
    if (t->base)
        s->on->free(s, t->base);
    *t = (tensor){0};
}

static bool fill_from_file(session *s, tensor *t, const npy *file)
{
    if (file->rank != t->info->rank) {
        session_error(s, "the file for '%s' has %u dimensions, not %u", t->info->name, file->rank, t->info->rank);
        return false;
    }
    for (unsigned i = 0; i < file->rank; i++)
        if (file->shape[i] != t->extents[i]) {
            const char *name = t->info->dims[i], *comma = name ? "," : "", *space = name ? " " : "";
            session_error(s, "the file for '%s' has a different shape: dimension %u%s%s%s%s is %" PRId64
                          ", not %" PRId64, t->info->name, i, comma, space, name ? name : "", comma, file->shape[i],
                          t->extents[i]);
            return false;
        }
    char why[512];
    bool converted = npy_convert(file, t->type, t->host, why, sizeof why);
    if (!converted)
        session_error(s, "the file for '%s' %s", t->info->name, why);
    return converted;
}

bool tensor_fill(session *s, tensor *t, const npy *file, uint64_t seed)
{
    t->host = calloc(1, t->bytes ? t->bytes : 1); /* an odd half of a byte is 0 */
    if (!t->host) {
        session_error(s, "'%s': out of memory", t->info->name);
        return false;
    }
    if (file)
        return fill_from_file(s, t, file);
    if (t->info->role == TCC_ARG_OUT)
        memset(t->host, NAN_BYTE, t->bytes);
    else
        elem_fill_random(t->type, t->host, t->n, seed);
    return true;
}

/* The allocation: guard, tensor, guard, and one element of room for misalignment. */
static size_t allocation_bytes(const tensor *t)
{
    return elem_bytes(t->type, t->span) + 2 * GUARD_BYTES + elem_bytes(t->type, 1);
}

static size_t count_changed(const unsigned char *p, size_t n)
{
    size_t changed = 0;
    for (size_t i = 0; i < n; i++)
        changed += p[i] != NAN_BYTE;
    return changed;
}

/* Copies elements; `there` has them where they are on the machine. */
static void gather(const tensor *t, void *host, const void *there)
{
    for (size_t i = 0; i < t->n; i++)
        elem_copy(t->type, host, i, there, tensor_place(t, i));
}

tcc_status tensor_write(session *s, const tensor *t, const void *host)
{
    size_t bytes = elem_bytes(t->type, t->span);
    if (!is_strided(t))
        return s->on->write(s, t->address, host, bytes);
    void *there = malloc(bytes ? bytes : 1);
    if (!there)
        return TCC_ERR_MEMORY;
    memset(there, NAN_BYTE, bytes);
    for (size_t i = 0; i < t->n; i++)
        elem_copy(t->type, there, tensor_place(t, i), host, i);
    tcc_status status = s->on->write(s, t->address, there, bytes);
    free(there);
    return status;
}

/* Reads elements; *stray gets how many of the bytes between them are not 0xff. */
static tcc_status fetch(session *s, const tensor *t, void *host, size_t *stray)
{
    size_t bytes = elem_bytes(t->type, t->span);
    *stray = 0;
    if (!is_strided(t))
        return s->on->read(s, host, t->address, bytes);
    unsigned char *there = malloc(bytes ? bytes : 1);
    tcc_status status = there ? s->on->read(s, there, t->address, bytes) : TCC_ERR_MEMORY;
    if (!status) {
        gather(t, host, there);
        for (size_t i = 0; i < t->n; i++)
            elem_copy(t->type, there, tensor_place(t, i), (uint64_t[]){UINT64_MAX}, 0);
        *stray = count_changed(there, bytes);
    }
    free(there);
    return status;
}

tcc_status tensor_upload(session *s, tensor *t, bool misaligned)
{
    tcc_status status = s->on->alloc(s, allocation_bytes(t), &t->base);
    if (status)
        return status;
    t->address = t->base + GUARD_BYTES + (misaligned ? elem_bytes(t->type, 1) : 0);
    status = s->on->fill(s, t->base, NAN_BYTE, allocation_bytes(t));
    if (!status)
        status = tensor_write(s, t, t->host);
    size_t between;
    /* Where several elements are in one place, all are what was written there last. */
    return status || !is_strided(t) ? status : fetch(s, t, t->host, &between);
}

tcc_status tensor_read(session *s, tensor *t, size_t *stray)
{
    unsigned char before[GUARD_BYTES + 8], after[GUARD_BYTES + 8];
    size_t n_before = (size_t)(t->address - t->base);
    size_t bytes = elem_bytes(t->type, t->span), n_after = allocation_bytes(t) - n_before - bytes, between = 0;
    tcc_status status = s->on->read(s, before, t->base, n_before);
    if (!status)
        status = fetch(s, t, t->host, &between);
    if (!status)
        status = s->on->read(s, after, t->address + bytes, n_after);
    *stray = status ? 0 : between + count_changed(before, n_before) + count_changed(after, n_after);
    return status;
}

tcc_status tensor_poison(session *s, const tensor *t)
{
    return s->on->fill(s, t->address, NAN_BYTE, elem_bytes(t->type, t->span));
}

tcc_status tensor_compare(session *s, const tensor *t, bool *equal)
{
    void *now = malloc(t->bytes ? t->bytes : 1);
    size_t between;
    tcc_status status = now ? fetch(s, t, now, &between) : TCC_ERR_MEMORY;
    *equal = !status && !memcmp(now, t->host, t->bytes);
    free(now);
    return status;
}

size_t tensor_rows(const tensor *t)
{
    size_t rows = 1;
    for (unsigned i = 0; i + 1 < t->info->rank; i++)
        rows *= (size_t)t->extents[i];
    return rows;
}

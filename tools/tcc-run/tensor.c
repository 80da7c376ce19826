/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/tensor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Each side of a tensor; a multiple of any alignment that matters. */
enum { GUARD_BYTES = 1024 };

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
    return true;
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
    return t->bytes + 2 * GUARD_BYTES + elem_bytes(t->type, 1);
}

tcc_status tensor_upload(session *s, tensor *t, bool misaligned)
{
    tcc_status status = s->on->alloc(s, allocation_bytes(t), &t->base);
    if (status)
        return status;
    t->address = t->base + GUARD_BYTES + (misaligned ? elem_bytes(t->type, 1) : 0);
    status = s->on->fill(s, t->base, NAN_BYTE, allocation_bytes(t));
    return status ? status : s->on->write(s, t->address, t->host, t->bytes);
}

static size_t count_changed(const unsigned char *p, size_t n)
{
    size_t changed = 0;
    for (size_t i = 0; i < n; i++)
        changed += p[i] != NAN_BYTE;
    return changed;
}

tcc_status tensor_read(session *s, tensor *t, size_t *stray)
{
    unsigned char before[GUARD_BYTES + 8], after[GUARD_BYTES + 8];
    size_t n_before = (size_t)(t->address - t->base);
    size_t n_after = allocation_bytes(t) - n_before - t->bytes;
    tcc_status status = s->on->read(s, before, t->base, n_before);
    if (!status)
        status = s->on->read(s, t->host, t->address, t->bytes);
    if (!status)
        status = s->on->read(s, after, t->address + t->bytes, n_after);
    *stray = status ? 0 : count_changed(before, n_before) + count_changed(after, n_after);
    return status;
}

tcc_status tensor_poison(session *s, const tensor *t)
{
    return s->on->fill(s, t->address, NAN_BYTE, t->bytes);
}

tcc_status tensor_compare(session *s, const tensor *t, bool *equal)
{
    void *now = malloc(t->bytes ? t->bytes : 1);
    tcc_status status =
        now ? s->on->read(s, now, t->address, t->bytes) : TCC_ERR_MEMORY;
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

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/bundle.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/code_object.h"

const char tcc_bundle_magic[8] = "tccbndl";

_Static_assert(sizeof(tcc_bundle_head) == 16 && sizeof(tcc_bundle_row) == 64, "a bundle's ABI");

bool tcc_is_bundle(const void *data, size_t size)
{
    return size >= sizeof tcc_bundle_magic && !memcmp(data, tcc_bundle_magic, sizeof tcc_bundle_magic);
}

/* ---- reading ---------------------------------------------------------------------------- */

static bool is_inside(uint64_t offset, uint64_t n, size_t size)
{
    return offset <= size && n <= size - offset;
}

/* What is wrong with row i; NULL: nothing. The image's target is a name in the bundle. */
static const char *read_row(const char *data, size_t size, size_t i, tcc_image *out)
{
    tcc_bundle_row row;
    const char *at = data + sizeof(tcc_bundle_head) + i * sizeof row;
    memcpy(&row, at, sizeof row);
    if (!row.target[0] || !memchr(row.target, 0, sizeof row.target))
        return "a target has no name";
    if (!row.image_size || !is_inside(row.image, row.image_size, size))
        return "an image lies outside the file";
    if (!is_inside(row.manifest, row.manifest_size, size))
        return "a manifest lies outside the file";
    if (row.manifest_size && data[row.manifest + row.manifest_size - 1])
        return "a manifest does not end";
    *out = (tcc_image){.target = at + offsetof(tcc_bundle_row, target),
                       .data = data + row.image,
                       .size = (size_t)row.image_size,
                       .manifest = row.manifest_size ? data + row.manifest : NULL};
    return NULL;
}

static tcc_status bad(tcc_diag *diag, const char *what)
{
    tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0}, "bad bundle: %s", what);
    return TCC_ERR_SYNTAX;
}

tcc_status tcc_bundle_read(tcc_diag *diag, const void *data, size_t size, tcc_bundle *out)
{
    tcc_bundle_head head;
    if (size < sizeof head)
        return bad(diag, "its head is cut off");
    memcpy(&head, data, sizeof head);
    if (head.version != TCC_BUNDLE_VERSION) {
        tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0}, "this bundle has version %u; only version %d is supported",
                  head.version, TCC_BUNDLE_VERSION);
        return TCC_ERR_SYNTAX;
    }
    if (!head.n || head.n > TCC_MAX_IMAGES)
        return bad(diag, "it has no image, or too many");
    if (!is_inside(sizeof head, head.n * sizeof(tcc_bundle_row), size))
        return bad(diag, "its rows are cut off");
    out->n = head.n;
    for (size_t i = 0; i < head.n; i++) {
        const char *wrong = read_row(data, size, i, &out->images[i]);
        if (wrong)
            return bad(diag, wrong);
    }
    return TCC_OK;
}

/* ---- choosing --------------------------------------------------------------------------- */

bool tcc_is_better_target(const char *target, const char *other)
{
    static const char digits[] = "0123456789";
    long a = strtol(target + strcspn(target, digits), NULL, 10);
    long b = strtol(other + strcspn(other, digits), NULL, 10);
    return a != b ? a > b : strlen(target) > strlen(other);
}

static bool is_better(const tcc_image *image, const tcc_image *other)
{
    if (strcmp(image->target, other->target))
        return tcc_is_better_target(image->target, other->target);
    return tcc_is_elf(image->data, image->size) && !tcc_is_elf(other->data, other->size);
}

void tcc_bundle_choose(tcc_bundle *bundle, const tcc_driver *driver, const char *arch)
{
    size_t n = 0;
    for (size_t i = 0; i < bundle->n; i++) {
        tcc_image image = bundle->images[i];
        if (!driver->runs(arch, image.target, tcc_is_elf(image.data, image.size)))
            continue;
        size_t place = n++;
        for (; place && is_better(&image, &bundle->images[place - 1]); place--)
            bundle->images[place] = bundle->images[place - 1];
        bundle->images[place] = image;
    }
    bundle->n = n;
}

/* Reads any bytes as a bundle, and all that its images are said to be.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>
#include <string.h>

#include "runtime/bundle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte is looked at. */
static unsigned sum(const char *bytes, size_t size)
{
    unsigned sum = 0;
    for (size_t i = 0; i < size; i++)
        sum += (unsigned char)bytes[i];
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static volatile unsigned seen;
    tcc_diag diag = {.file = "<bundle>"};
    tcc_bundle bundle;
    if (tcc_bundle_read(&diag, data, size, &bundle))
        return 0;
    for (size_t i = 0; i < bundle.n; i++) {
        const tcc_image *image = &bundle.images[i];
        seen += sum(image->data, image->size) + sum(image->target, strlen(image->target));
        seen += image->manifest ? sum(image->manifest, strlen(image->manifest)) : 0;
    }
    return 0;
}

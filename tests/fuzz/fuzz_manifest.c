/* Reads any bytes as a manifest, and as the head of a PTX file.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tcc_diag diag = {.file = "<manifest>"};
    jmp_buf oom;
    tcc_arena *arena = tcc_arena_create(NULL);
    char *text = malloc(size + 1);
    const tcc_manifest *m;
    if (!arena || !text)
        abort();
    memcpy(text, data, size);
    text[size] = '\0';
    tcc_manifest_read(arena, &diag, text, &m);
    if (!setjmp(oom)) {
        tcc_arena_set_oom(arena, &oom);
        tcc_manifest_in_ptx(arena, &diag, (const char *)data, size);
    }
    free(text);
    tcc_arena_destroy(arena);
    return 0;
}

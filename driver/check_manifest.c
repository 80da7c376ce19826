/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/check_manifest.h"

#include "ir/signature.h"
#include "runtime/manifest.h"

static void keep_message(const tcc_diagnostic *d, void *user)
{
    tcc_str_puts(user, d->message);
}

tcc_status tcc_check_manifest(const char *json, const tcc_ir *ir, const tcc_signature *signatures, size_t n,
                              tcc_diag *diag)
{
    const tcc_manifest *m;
    tcc_str why = {0};
    tcc_diag reading = {.file = diag->file, .fn = keep_message, .user = &why};
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_status status = arena ? tcc_manifest_read(arena, &reading, json, &m) : TCC_ERR_MEMORY;
    if (status == TCC_ERR_SYNTAX) {
        const char *kernel = m->n_kernels < n ? signatures[m->n_kernels].kernel : "";
        const tcc_func *f = tcc_func_definition(ir, kernel);
        status = TCC_ERR_UNSUPPORTED;
        tcc_error(diag, status, f ? f->loc : (tcc_loc){0, 0}, "kernel '%s' could not be launched: %s", kernel,
                  tcc_str_text(&why));
    }
    tcc_str_free(&why);
    tcc_arena_destroy(arena);
    return status;
}

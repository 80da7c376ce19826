/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/frontend.h"

#include "frontend/emit.h"
#include "frontend/parse.h"
#include "frontend/sema.h"

enum { MAX_SOURCE_BYTES = 16 * 1024 * 1024 };

bool tcc_frontend_check_text(const char *source, size_t size, tcc_diag *diag)
{
    if (size <= MAX_SOURCE_BYTES)
        return tcc_tile_check_bytes(source, size, diag);
    tcc_error(diag, TCC_ERR_UNSUPPORTED, (tcc_loc){0, 0}, "a source of %zu bytes; at most %d are supported", size,
              MAX_SOURCE_BYTES);
    return false;
}

tcc_ir *tcc_frontend(tcc_arena *arena, const char *source, size_t size, const char *target,
                     const tcc_frontend_define *defines, size_t n_defines, tcc_diag *diag)
{
    unsigned n_errors = diag->n_errors;
    if (!tcc_frontend_check_text(source, size, diag))
        return NULL;
    tcc_ir *ir = tcc_ir_create(arena);
    tcc_ast_file *file = tcc_parse(arena, source, size, ir->names, diag);
    tcc_sema_file(arena, file, ir, target, defines, n_defines, diag);
    if (diag->n_errors > n_errors)
        return NULL;
    tcc_attr_set_str(ir, &ir->attrs, "target", target);
    if (diag->file)
        tcc_attr_set_str(ir, &ir->attrs, "file", diag->file);
    for (size_t i = 0; i < file->kernels.len; i++)
        tcc_frontend_emit(ir, file->kernels.data[i]);
    return ir;
}

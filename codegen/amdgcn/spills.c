/* Warnings of kernels whose registers LLVM keeps in memory, from what it writes about them: the
 * metadata of an object, or the same as text in assembly.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>
#include <string.h>

#include "codegen/amdgcn/amdgcn.h"
#include "codegen/amdgcn/object.h"

static void warn(const tcc_ir *ir, const tcc_kernel_usage *u, tcc_diag *diag)
{
    if (!u->spilled_vgprs && !u->scratch_bytes)
        return;
    tcc_loc loc = {0, 0};
    for (const tcc_func *f = ir->first; f; f = f->next)
        if (strlen(f->name) == u->name_size && !memcmp(f->name, u->name, u->name_size))
            loc = f->loc;
    tcc_warn(diag, loc,
             "kernel '%.*s' spills registers: %llu of a lane, to %llu bytes of scratch memory",
             (int)u->name_size, u->name, (unsigned long long)u->spilled_vgprs,
             (unsigned long long)u->scratch_bytes);
}

static void warn_of_object(const tcc_ir *ir, const char *data, size_t size, tcc_arena *arena,
                           tcc_diag *diag)
{
    tcc_diag silent = {0}; /* linking the object reports what is wrong with it */
    tcc_object o;
    tcc_kernel_usage *usages;
    size_t n;
    if (!tcc_object_read(&o, arena, data, size, &silent) ||
        !tcc_object_usages(&o, arena, &usages, &n))
        return;
    for (size_t i = 0; i < n; i++)
        warn(ir, &usages[i], diag);
}

/* What follows "    key: " in a line; NULL when it is another line. */
static const char *field(const char *line, const char *key)
{
    size_t n = strlen(key);
    if (strncmp(line, "    ", 4) != 0 || strncmp(line + 4, key, n) != 0 || line[4 + n] != ':')
        return NULL;
    line += 4 + n + 1;
    return line + strspn(line, " ");
}

/* A kernel's own fields are indented by four; those of its arguments by more. They are sorted: the
 * spills come last. */
static void warn_of_text(const tcc_ir *ir, const char *text, tcc_diag *diag)
{
    tcc_kernel_usage u = {0};
    for (const char *line = strstr(text, ".amdgpu_metadata"), *v; line && *line;
         line += strcspn(line, "\n"), line += *line == '\n') {
        if ((v = field(line, ".name"))) {
            u = (tcc_kernel_usage){.name = v, .name_size = strcspn(v, "\n")};
        } else if ((v = field(line, ".private_segment_fixed_size"))) {
            u.scratch_bytes = strtoull(v, NULL, 10);
        } else if ((v = field(line, ".vgpr_spill_count")) && u.name) {
            u.spilled_vgprs = strtoull(v, NULL, 10);
            warn(ir, &u, diag);
        }
    }
}

void tcc_amdgcn_warn_of_spills(const tcc_ir *ir, tcc_codegen_output output, const char *data,
                               size_t size, tcc_arena *arena, tcc_diag *diag)
{
    if (output == TCC_CODEGEN_OBJ)
        warn_of_object(ir, data, size, arena, diag);
    else
        warn_of_text(ir, data, diag);
}

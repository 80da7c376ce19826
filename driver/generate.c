/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/generate.h"

#include <stdlib.h>

#include "codegen/codegen.h"
#include "ir/target.h"
#include "passes/pressure.h"
#include "support/clock.h"

static tcc_codegen_options codegen_options(const tcc_generation *g)
{
    static const tcc_codegen_output outputs[TCC_EMIT_COUNT] = {
        [TCC_EMIT_LLVM] = TCC_CODEGEN_LLVM, [TCC_EMIT_PTX] = TCC_CODEGEN_ASM,
        [TCC_EMIT_CUBIN] = TCC_CODEGEN_ASM, [TCC_EMIT_ASM] = TCC_CODEGEN_ASM,
        [TCC_EMIT_OBJ] = TCC_CODEGEN_OBJ,   [TCC_EMIT_HSACO] = TCC_CODEGEN_OBJ,
        [TCC_EMIT_SASS] = TCC_CODEGEN_ASM};
    bool has_lines = g->o->line_tables == TCC_DEFAULT ? g->o->emit != TCC_EMIT_HSACO
                                                      : g->o->line_tables == TCC_ON;
    return (tcc_codegen_options){.target = g->target,
                                 .file = has_lines ? g->diag->file : NULL,
                                 .output = outputs[g->o->emit],
                                 .phase = g->phase,
                                 .phase_user = g->user};
}

static void end_phase(const tcc_generation *g, const char *name, double start)
{
    g->phase(name, tcc_now_ms() - start, g->user);
}

/* Puts what a tool makes of *out in its place. */
static tcc_status assemble(const tcc_generation *g, char **out, size_t *size)
{
    double start = tcc_now_ms();
    char *ptx = *out;
    void *cubin = NULL;
    tcc_status status =
        tcc_ptxas(ptx, *size, &(tcc_ptxas_options){g->target, g->o->ptxas}, g->diag, &cubin, size);
    free(ptx);
    *out = cubin;
    end_phase(g, "ptxas", start);
    return status;
}

static tcc_status disassemble(const tcc_generation *g, char **out, size_t *size)
{
    double start = tcc_now_ms();
    char *cubin = *out;
    tcc_status status =
        tcc_sass(cubin, *size, &(tcc_sass_options){g->o->nvdisasm, g->o->ptxas}, g->diag, out, size);
    free(cubin);
    end_phase(g, "nvdisasm", start);
    return status;
}

static tcc_status make_code_object(const tcc_generation *g, char **out, size_t *size)
{
    tcc_codegen_options o = codegen_options(g);
    tcc_bytes *objects;
    size_t n;
    void *code = NULL;
    tcc_status status = tcc_codegen_objects(g->ir, &o, g->diag, &objects, &n);
    if (status)
        return status;
    double start = tcc_now_ms();
    status = tcc_amdgcn_link(objects, n, g->manifest, g->diag, &code, size);
    end_phase(g, "link", start);
    tcc_codegen_objects_destroy(objects, n);
    *out = code;
    return status;
}

tcc_status tcc_generate(const tcc_generation *g, char **out, size_t *size)
{
    if (g->o->emit == TCC_EMIT_HSACO)
        return make_code_object(g, out, size);
    tcc_codegen_options o = codegen_options(g);
    bool is_ptx = o.output == TCC_CODEGEN_ASM &&
                  tcc_target_vendor(tcc_target_find(g->target)) == TCC_VENDOR_NVIDIA;
    tcc_status status = (is_ptx ? tcc_codegen_ptx : tcc_codegen)(g->ir, &o, g->diag, out, size);
    if (!status && g->o->emit == TCC_EMIT_PTX) /* else ptxas says what spills */
        tcc_pressure_warn(g->ir, g->diag);
    bool is_listed = g->o->emit == TCC_EMIT_SASS;
    if (!status && (g->o->emit == TCC_EMIT_CUBIN || is_listed))
        status = assemble(g, out, size);
    return is_listed && !status ? disassemble(g, out, size) : status;
}

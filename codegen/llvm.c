/* From a target-level module to text: LLVM set up, its passes run.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <llvm-c/Analysis.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "codegen/codegen.h"
#include "codegen/contain.h"
#include "codegen/lower.h"
#include "ir/signature.h"
#include "ir/target.h"
#include "support/clock.h"

typedef struct session {
    const tcc_ir *ir;
    const tcc_codegen_options *options;
    char **out;
    size_t *size;
    tcc_lower lower;
    LLVMTargetMachineRef machine;
    LLVMMemoryBufferRef buffer;
    double phase_start; /* ms */
    jmp_buf out_of_memory;
} session;

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    session *s = user;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    tcc_error(s->lower.diag, TCC_ERR_INTERNAL, (tcc_loc){0, 0}, "LLVM: %s", text ? text : "");
    LLVMDisposeMessage(text);
}

/* ---- phases ---------------------------------------------------------------------------- */

static void end_phase(session *s, const tcc_codegen_options *o, const char *name)
{
    double now = tcc_now_ms();
    if (o->phase && name)
        o->phase(name, now - s->phase_start, o->phase_user);
    s->phase_start = now;
}

/* Reports an error text of LLVM's, which `dispose` takes; NULL: there was no memory for it. */
static tcc_status fail(session *s, char *text, void (*dispose)(char *))
{
    if (!text)
        return TCC_ERR_MEMORY;
    tcc_error(s->lower.diag, TCC_ERR_INTERNAL, (tcc_loc){0, 0}, "LLVM: %s", text);
    dispose(text);
    return TCC_ERR_INTERNAL;
}

/* The one that is kept from an earlier call, or a new one. */
static tcc_status find_machine(session *s, const tcc_codegen_options *o)
{
    tcc_lower *l = &s->lower;
    LLVMTargetRef target;
    char *text;
    if (o->machine && *o->machine) { /* which is there again when all went well */
        s->machine = *o->machine;
        *o->machine = NULL;
        return TCC_OK;
    }
    if (LLVMGetTargetFromTriple(l->backend->triple, &target, &text))
        return fail(s, text, LLVMDisposeMessage);
    int version = o->version;
    if (!version && l->backend->version_for)
        version = l->backend->version_for(l->target, s->ir);
    const char *features = tcc_arena_printf(l->arena, l->backend->features, version); /* here memory may run out */
    LLVMTargetMachineOptionsRef machine = LLVMCreateTargetMachineOptions();
    LLVMTargetMachineOptionsSetCPU(machine, l->target->name);
    LLVMTargetMachineOptionsSetFeatures(machine, features);
    /* At O0 ptxas would serialise the warpgroup products. */
    LLVMTargetMachineOptionsSetCodeGenOptLevel(machine, LLVMCodeGenLevelDefault);
    s->machine = LLVMCreateTargetMachineWithOptions(target, l->backend->triple, machine);
    LLVMDisposeTargetMachineOptions(machine);
    return TCC_OK;
}

static void create_module(session *s, const tcc_codegen_options *o)
{
    tcc_lower *l = &s->lower;
    l->context = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(l->context, on_diagnostic, s);
    LLVMContextSetDiscardValueNames(l->context, o->output != TCC_CODEGEN_LLVM);
    l->builder = LLVMCreateBuilderInContext(l->context);
    l->module = LLVMModuleCreateWithNameInContext(o->file ? o->file : "tcc", l->context);
    LLVMSetTarget(l->module, l->backend->triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(s->machine);
    LLVMSetModuleDataLayout(l->module, layout);
    LLVMDisposeTargetData(layout);
}

/* The lowering gives LLVM no invalid module; where assertions are on, LLVM says so. */
static tcc_status verify(session *s)
{
#ifdef NDEBUG
    (void)s;
#else
    char *text;
    if (LLVMVerifyModule(s->lower.module, LLVMReturnStatusAction, &text))
        return fail(s, text, LLVMDisposeMessage);
    LLVMDisposeMessage(text);
#endif
    return TCC_OK;
}

static tcc_status build_module(session *s, const tcc_ir *ir, const tcc_codegen_options *o)
{
    tcc_lower *l = &s->lower;
    tcc_lower_begin(l, o->file);
    for (const tcc_func *f = ir->first; f; f = f->next)
        if (!tcc_func_is_definition(f) && (!o->only || f == o->only) && !tcc_lower_func(l, f))
            return l->diag->status;
    tcc_lower_end(l);
    return verify(s);
}

/* NVPTX: skips the optional passes of LLVM's code generation. Its strength reductions (SLSR, LSR)
 * take time that grows with the square of the accesses and give every address a register of its
 * own; ptxas does better from the plain sums. On the generic matmul kernel: 1104 machine
 * instructions instead of 1664, 113 registers instead of 182, half the time. Instruction selection
 * and register coalescing, without which ptxas would serialise wgmma, are as before. */
static void skip_optional_codegen(session *s)
{
    static const char *const names[] = {"noinline", "optnone"};
    for (LLVMValueRef f = LLVMGetFirstFunction(s->lower.module); f; f = LLVMGetNextFunction(f))
        for (int i = 0; i < 2 && !LLVMIsDeclaration(f); i++) {
            unsigned kind = LLVMGetEnumAttributeKindForName(names[i], strlen(names[i]));
            LLVMAddAttributeAtIndex(f, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                    LLVMCreateEnumAttribute(s->lower.context, kind, 0));
        }
}

static tcc_status run_passes(session *s, const char *passes)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(s->lower.module, passes, s->machine, options);
    LLVMDisposePassBuilderOptions(options);
    return error ? fail(s, LLVMGetErrorMessage(error), LLVMDisposeErrorMessage) : TCC_OK;
}

static tcc_status optimize(session *s)
{
    const tcc_backend *backend = s->lower.backend;
    tcc_status status = backend->passes ? run_passes(s, backend->passes) : TCC_OK;
    if (!status && !backend->optional_codegen)
        skip_optional_codegen(s);
    return status;
}

static tcc_status emit(session *s, tcc_codegen_output output)
{
    LLVMCodeGenFileType kind = output == TCC_CODEGEN_OBJ ? LLVMObjectFile : LLVMAssemblyFile;
    char *text;
    unsigned errors = s->lower.diag->n_errors;
    if (LLVMTargetMachineEmitToMemoryBuffer(s->machine, s->lower.module, kind, &text, &s->buffer))
        return fail(s, text, LLVMDisposeMessage);
    return s->lower.diag->n_errors > errors ? s->lower.diag->status : TCC_OK;
}

static tcc_status copy_out(const char *text, size_t n, char **out, size_t *size)
{
    *out = malloc(n + 1);
    if (!*out)
        return TCC_ERR_MEMORY;
    memcpy(*out, text, n);
    (*out)[n] = '\0';
    *size = n;
    return TCC_OK;
}

static tcc_status run(session *s)
{
    const tcc_codegen_options *o = s->options;
    end_phase(s, o, NULL);
    tcc_status status = find_machine(s, o);
    if (!status) {
        create_module(s, o);
        status = build_module(s, s->ir, o);
    }
    end_phase(s, o, "llvm-build");
    if (status)
        return status;
    if (o->output == TCC_CODEGEN_LLVM) {
        char *text = LLVMPrintModuleToString(s->lower.module);
        status = text ? copy_out(text, strlen(text), s->out, s->size) : TCC_ERR_MEMORY;
        LLVMDisposeMessage(text);
        return status;
    }
    status = optimize(s);
    end_phase(s, o, "llvm-passes");
    if (!status)
        status = emit(s, o->output);
    end_phase(s, o, "llvm-codegen");
    if (!status)
        status = copy_out(LLVMGetBufferStart(s->buffer), LLVMGetBufferSize(s->buffer), s->out,
                          s->size);
    if (!status && s->lower.backend->warn_of_spills)
        s->lower.backend->warn_of_spills(s->ir, o->output, *s->out, *s->size, s->lower.arena,
                                        s->lower.diag);
    return status;
}

/* ---- sessions -------------------------------------------------------------------------- */

static void destroy(session *s)
{
    if (s->buffer)
        LLVMDisposeMemoryBuffer(s->buffer);
    if (s->lower.lines)
        LLVMDisposeDIBuilder(s->lower.lines);
    if (s->lower.builder)
        LLVMDisposeBuilder(s->lower.builder);
    if (s->lower.module)
        LLVMDisposeModule(s->lower.module);
    if (s->lower.context)
        LLVMContextDispose(s->lower.context);
    if (s->options->machine)
        *s->options->machine = s->machine;
    else
        tcc_codegen_machine_destroy(s->machine);
}

void tcc_codegen_machine_destroy(void *machine)
{
    if (machine)
        LLVMDisposeTargetMachine(machine);
}

static tcc_status drop_output(const session *s)
{
    free(*s->out);
    *s->out = NULL;
    return TCC_ERR_MEMORY;
}

/* What tcc_contain runs. Where it does not return, LLVM is in the middle of things, and what it
 * then holds is not destroyed. */
static tcc_status run_session(void *user)
{
    session *s = user;
    tcc_status status = setjmp(s->out_of_memory) ? drop_output(s) : run(s);
    destroy(s);
    return status;
}

/* What LLVM initialises once per process, it initialises in its first session for a target and a
 * kind of output; if memory runs out there, some of it may stay half initialised, and locked. So
 * memory must be available before such a session begins, and if that was not enough there is no
 * second one. */
enum { FIRST_SESSION_BYTES = 48 << 20 };

static bool has_room(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p != MAP_FAILED && !munmap(p, n);
}

static tcc_status run_contained(session *s)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    atomic_int *use = &s->lower.backend->use[s->options->output];
    int before = *use, unused = TCC_UNUSED;
    if (before == TCC_UNUSABLE || (before == TCC_UNUSED && !has_room(FIRST_SESSION_BYTES)))
        return TCC_ERR_MEMORY;
    pthread_once(&once, tcc_backends_initialize);
    tcc_contained contained = {.status = TCC_OK};
    tcc_status status = tcc_contain(&contained, run_session, s);
    if (contained.status == TCC_ERR_INTERNAL)
        tcc_error(s->lower.diag, TCC_ERR_INTERNAL, (tcc_loc){0, 0}, "LLVM: %s", contained.reason);
    if (contained.status == TCC_ERR_MEMORY && before == TCC_UNUSED)
        *use = TCC_UNUSABLE;
    else if (!status)
        atomic_compare_exchange_strong(use, &unused, TCC_USED);
    return status;
}

tcc_status tcc_codegen(const tcc_ir *ir, const tcc_codegen_options *options, tcc_diag *diag,
                       char **out, size_t *size)
{
    *out = NULL;
    *size = 0;
    const tcc_target *target = tcc_target_named(options->target, diag);
    if (!target)
        return TCC_ERR_TARGET;
    session *s = calloc(1, sizeof *s);
    tcc_arena *arena = s ? tcc_arena_create(&s->out_of_memory) : NULL;
    tcc_status status = TCC_ERR_MEMORY;
    if (arena) {
        *s = (session){.ir = ir, .options = options, .out = out, .size = size};
        s->lower = (tcc_lower){.target = target, .backend = tcc_backend_of(target), .diag = diag, .arena = arena};
        status = run_contained(s);
    }
    tcc_arena_destroy(arena);
    free(s);
    return status;
}

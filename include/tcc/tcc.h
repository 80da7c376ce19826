/* libtcc: compile tile programs to GPU code.
 *
 * From simple to expert:
 *     tcc_context *ctx = tcc_context_create();
 *     tcc_module *mod;
 *     if (tcc_compile(ctx, source, "sm_90a", &mod) == TCC_OK)
 *         puts(tcc_module_output(mod, NULL));                  -- PTX, with its manifest
 *
 * `create` gives ownership and `destroy` takes it; every other pointer is borrowed. What asks a
 * handle for something takes NULL, too, which has nothing: it gives NULL, 0 or "". There is no
 * global mutable state: distinct contexts may be used from distinct threads at once, one context
 * from one thread at a time. The library never prints and never exits.
 *
 * Memory that runs out is TCC_ERR_MEMORY, also where that happens in LLVM, which then keeps what it
 * held. The first compilation of a process for a vendor's targets and a kind of output begins if
 * there is room for 48 MB; if memory runs out in it all the same, no later one of these begins,
 * and LLVM aborts the process if that happens while it registers its backends.
 * This is about allocations that fail: a process that the kernel kills for its memory is not asked.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TCC_H
#define TCC_TCC_H

#include <stdbool.h>
#include <stdint.h>

#include <tcc/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TCC_VERSION_MAJOR 0
#define TCC_VERSION_MINOR 1
#define TCC_VERSION_PATCH 0
#define TCC_VERSION_STRING "0.1.0"

/* The version of the library in use, "0.1.0". Thread-safe. */
TCC_API const char *tcc_version(void);

/* ---- contexts -------------------------------------------------------------------------- */

typedef struct tcc_context tcc_context;

/* Creates a compilation context; NULL when memory is short. */
TCC_API tcc_context *tcc_context_create(void);

/* Destroys a context. Modules it made stay valid until they are destroyed themselves. */
TCC_API void tcc_context_destroy(tcc_context *ctx);

/* Sends every diagnostic of later calls to `fn`. NULL, the default, drops them. */
TCC_API void tcc_context_on_diagnostic(tcc_context *ctx, tcc_diagnostic_fn fn, void *user);

/* ---- compiling ------------------------------------------------------------------------- */

typedef struct tcc_module tcc_module;

/* Compiles every kernel of a source text for one target, to what can be loaded and carries its
 * manifest: tcc_target_emit.
 *
 * source  NUL-terminated UTF-8, borrowed          target  "sm_90a", "gfx1100", …: tcc_target_name
 * On success *out belongs to the caller: tcc_module_destroy.
 * Returns TCC_OK, TCC_ERR_SYNTAX, TCC_ERR_TYPE, TCC_ERR_TARGET, TCC_ERR_UNSUPPORTED,
 * TCC_ERR_MEMORY or TCC_ERR_INTERNAL, with *out NULL; diagnostics go to the context's callback.
 * Thread-safe for distinct contexts. */
TCC_API tcc_status tcc_compile(tcc_context *ctx, const char *source, const char *target,
                               tcc_module **out);

/* What a compilation stops at. The names are those of `tcc --emit=`: tcc_emit_name. */
typedef enum tcc_emit {
    TCC_EMIT_DEFAULT = 0, /* what can be loaded on the target: tcc_target_emit; tcc_opt: IR */
    TCC_EMIT_IR,          /* tensor-level IR, as the frontend made it */
    TCC_EMIT_TIR,         /* target-level IR, as the passes left it */
    TCC_EMIT_LLVM,        /* LLVM IR text */
    TCC_EMIT_CUBIN,       /* device object from ptxas (PATH, CUDA_HOME); binary */
    TCC_EMIT_MANIFEST,    /* JSON: docs/abi.md */
    TCC_EMIT_TILE,        /* tile-level IR, before copies and products become asynchronous */
    TCC_EMIT_ASYNC,       /* async-level IR, before it becomes instructions */
    TCC_EMIT_ASM,         /* the target's assembly: PTX, or AMD's */
    TCC_EMIT_OBJ,         /* AMD: a relocatable object; binary */
    TCC_EMIT_HSACO,       /* AMD: a code object that can be loaded, with its manifest; binary. Its
                           * entries are made by threads, which end before the call does */
    TCC_EMIT_PTX,         /* NVIDIA: assembly that drivers load, with its manifest */
    TCC_EMIT_SASS,        /* NVIDIA: text, the instructions that the GPU runs, as ptxas makes them, below the
                           * lines of the source that they are of; nvdisasm lists them */
    TCC_EMIT_COUNT
} tcc_emit;

/* "default", "ir", "tir", "llvm", "cubin", "manifest", "tile", "async", "asm", "obj", "hsaco",
 * "ptx", "sass"; NULL when out of range. Thread-safe. */
TCC_API const char *tcc_emit_name(tcc_emit emit);

/* What is loaded on a target: TCC_EMIT_PTX or TCC_EMIT_HSACO; TCC_EMIT_PTX, too, where the name is
 * NULL or no target's. PTX, cubins and SASS are made for NVIDIA's targets alone, objects and code
 * objects for AMD's: another kind than a target has is TCC_ERR_ARGUMENT. Thread-safe. */
TCC_API tcc_emit tcc_target_emit(const char *target);

/* A binding of a symbolic dimension or a `const` to a number. */
typedef struct tcc_define {
    const char *name;
    int64_t value;
} tcc_define;

/* Extents of a dimension, `most` among them; INT64_MAX: any number from `least` on. */
typedef struct tcc_range {
    const char *name;
    int64_t least, most;
} tcc_range;

typedef enum tcc_switch { TCC_DEFAULT = 0, TCC_ON, TCC_OFF } tcc_switch;

typedef struct tcc_compile_options {
    size_t struct_size; /* sizeof(tcc_compile_options): lets the struct grow */
    const char *target; /* "sm_90a", "gfx1100", …: tcc_target_name */
    const char *file;   /* for diagnostics and line tables; NULL: "<source>" */
    tcc_emit emit;
    const tcc_define *defines;
    size_t n_defines;
    const char *print_after; /* "all", "changed", a pass name, or NULL; else TCC_ERR_ARGUMENT */
    bool verify_each;        /* verify the IR after every pass */
    bool time_passes;
    const char *ptxas;      /* path of ptxas; NULL: CUDA_HOME/bin, PATH, /usr/local/cuda/bin */
    const char *reproducer; /* where a compiler bug leaves its input; NULL: nowhere */
    /* Text asked for by print_after and time_passes, piece by piece; NULL drops it. */
    void (*print)(const char *text, void *user);
    void *print_user;
    /* Run every kernel on small shapes before the passes and after each, and compare: a difference
     * is TCC_ERR_INTERNAL. It costs seconds. check_seed decides shapes, data and orders. */
    bool check_passes;
    uint64_t check_seed;
    /* Prove that the barriers, copies and MMAs of the emitted code fit together, for all sizes
     * (docs/protocol-checker.md); by default tcc_compile_with does and tcc_opt does not. What
     * fails is TCC_ERR_INTERNAL, what cannot be followed TCC_ERR_UNSUPPORTED. */
    tcc_switch verify_pipeline;
    /* tcc_opt: gets the bytes of its output, when not NULL. Binary kinds need it. */
    size_t *output_size;
    /* Line tables, by which tools show the source line of an instruction; by default all have them
     * but code objects: there they take a tenth of the time of a compilation. */
    tcc_switch line_tables;
    /* Of a kernel whose extents are known only at launch, and whose schedule does not say which tile, so
     * many tiles at most are compiled, of which a launch runs the one that suits its extents; 0: as many
     * as the compiler has for the target. One is compiled faster and suits large extents. */
    unsigned tiles;
    /* Of a source with several kernels only this one is compiled; NULL: all are. tcc_opt takes no notice. */
    const char *kernel;
    /* Extents that launches will have. Of the tiles for extents known only at launch those are left out that no launch
     * with such extents would choose; any other launch is right, too, and may be slower. A dimension that is bound, or
     * that no kernel has, is TCC_ERR_ARGUMENT. */
    const tcc_range *ranges;
    size_t n_ranges;
    const char *nvdisasm; /* path of nvdisasm; NULL: beside ptxas, CUDA_HOME/bin, PATH, /usr/local/cuda/bin */
} tcc_compile_options;

/* tcc_compile with every option. `source` is `size` bytes and needs no terminator. */
TCC_API tcc_status tcc_compile_with(tcc_context *ctx, const char *source, size_t size,
                                    const tcc_compile_options *options, tcc_module **out);

/* A program in the canonical layout of the language: the same tokens and comments in the same order, so that it means
 * the same. What is in that layout stays as it is. `file` is for diagnostics; NULL: "<source>".
 * On success *out is NUL-terminated and belongs to the caller: tcc_text_destroy. Returns TCC_OK, TCC_ERR_SYNTAX or
 * whatever else the program cannot be parsed for, with *out NULL; diagnostics go to the context's callback. */
TCC_API tcc_status tcc_format(tcc_context *ctx, const char *source, size_t size, const char *file, char **out);

/* Parses textual IR of any level, runs the named passes on it and prints the result.
 *
 * passes   "canonicalize,dce", or "" to parse, verify and print
 * options  its emit says as what: LLVM IR, PTX, cubin, assembly, object or code object, of
 *          target-level IR and its target; or, for every other kind and where options is NULL, as
 *          IR. PTX and assembly are without a manifest
 * On success *out is the NUL-terminated output and belongs to the caller: tcc_text_destroy. */
TCC_API tcc_status tcc_opt(tcc_context *ctx, const char *ir, size_t size, const char *passes,
                           const tcc_compile_options *options, char **out);
TCC_API void tcc_text_destroy(char *text);

/* Makes a module of textual IR of any level, as TCC_EMIT_IR, _TILE, _ASYNC or _TIR and
 * print_after give it or as it is written by hand: docs/ir.md. Its output is the text, and it
 * can be interpreted. Its manifest has a variant for each function of the target level: with the
 * PTX or code object that tcc_opt makes of the same text, tcc_program_load loads these.
 *
 * file  for diagnostics; NULL: "<source>"
 * On success *out belongs to the caller: tcc_module_destroy.
 * Returns TCC_OK, TCC_ERR_SYNTAX, TCC_ERR_TYPE, TCC_ERR_TARGET or TCC_ERR_MEMORY, with *out NULL;
 * diagnostics go to the context's callback. */
TCC_API tcc_status tcc_module_parse(tcc_context *ctx, const char *ir, size_t size, const char *file,
                                    tcc_module **out);

/* Name and one-line description of the i-th pass in pipeline order; NULL past the last. */
TCC_API const char *tcc_pass_name(size_t i);
TCC_API const char *tcc_pass_summary(size_t i);

/* Name of the i-th supported target, NULL past the last. Thread-safe. */
TCC_API const char *tcc_target_name(size_t i);

/* Operands that an instruction of a target multiplies, and in what their products are summed: names of element types.
 * `instr` is a word of the key of that name in schedules (docs/language.md). All are static. */
typedef struct tcc_target_product {
    const char *instr, *a, *b, *sum;
} tcc_target_product;

/* The i-th that a target has instructions for, in the order in which they are preferred; false past the last, and where
 * the name is no target's. What all targets compute without an instruction for it, `instr naive`, is not among them.
 * Thread-safe. */
TCC_API bool tcc_target_product_at(const char *target, size_t i, tcc_target_product *out);

/* ---- modules --------------------------------------------------------------------------- */

TCC_API void tcc_module_destroy(tcc_module *mod);

/* What was compiled, in the form asked for. Text is NUL-terminated; *size, when given, gets the
 * bytes without the terminator. Borrowed from the module. */
TCC_API const void *tcc_module_output(const tcc_module *mod, size_t *size);

/* The module's manifest as JSON (docs/abi.md); kernels that are not of the target level have no
 * variants in it. Borrowed from the module. */
TCC_API const char *tcc_module_manifest(const tcc_module *mod);

/* The schedule in force for every kernel, in the language's own syntax. Borrowed. */
TCC_API const char *tcc_module_schedule(const tcc_module *mod);

/* Number of kernels, and the name of the i-th in source order (NULL when out of range). */
TCC_API size_t tcc_module_kernel_count(const tcc_module *mod);
TCC_API const char *tcc_module_kernel_name(const tcc_module *mod, size_t i);

/* Computes a kernel on the CPU as its tensor-level IR defines it, in double precision: the
 * reference that GPU results are compared with. It costs one multiply-add a term, on one core.
 *
 * manifest  what tcc_module_manifest or the head of a PTX file gives
 * kernel    NULL: the only one
 * dims      one extent for each entry of the manifest's "dims", in that order
 * args      one pointer for each entry of "args": tensors are arrays of double, row-major, with
 *           inputs and inout read and outputs and inout written; scalars are one double.
 *           Inputs are taken as already rounded to their type; outputs are not rounded
 * rows      when not NULL, only these n_rows flat indices over all free indices but the last of
 *           each output are computed (a sample); the rest of the output is left as it was.
 *           TCC_ERR_ARGUMENT where an output has fewer
 * Returns TCC_OK, TCC_ERR_ARGUMENT, TCC_ERR_UNSUPPORTED or TCC_ERR_MEMORY. */
TCC_API tcc_status tcc_reference(tcc_context *ctx, const char *manifest, const char *kernel,
                                 const int64_t *dims, double *const *args, const int64_t *rows,
                                 size_t n_rows);

/* tcc_reference on tensors in their own element types, as a GPU has them: row-major and contiguous, of i4 and u4 two in
 * a byte, the first below. A scalar is one double, rounded to its type here. Outputs are rounded to nearest even, to
 * integers of the type's range; what is not computed is left as it was. */
TCC_API tcc_status tcc_reference_elements(tcc_context *ctx, const char *manifest,
                                          const char *kernel, const int64_t *dims,
                                          void *const *args, const int64_t *rows, size_t n_rows);

/* tcc_reference, and where a kernel that computes right may end up, however it rounds, contracts and
 * orders its sums: low[i] and high[i] have, for each output i, as many elements as args[i], and get
 * the interval that a result is in before it is rounded to the output's type. It ends at two NaNs
 * where the result is NaN, and at -inf and inf where it may be anything, NaN included. Those of other
 * arguments are not looked at. */
TCC_API tcc_status tcc_reference_intervals(tcc_context *ctx, const char *manifest,
                                           const char *kernel, const int64_t *dims,
                                           double *const *args, double *const *low,
                                           double *const *high, const int64_t *rows, size_t n_rows);

/* ---- running without a GPU ------------------------------------------------------------- */

/* In which order warps run and asynchronous operations complete, where the program leaves it open.
 * A program that is right gives the same in every one: docs/interp.md. */
typedef enum tcc_interpret_order {
    TCC_INTERPRET_RANDOM = 0, /* an order drawn from the seed */
    TCC_INTERPRET_EARLY,      /* operations complete as early as they can */
    TCC_INTERPRET_LATE,       /* operations complete as late as they can */
    TCC_INTERPRET_TIMED       /* as a model of the machine's speed has it: docs/timeline.md */
} tcc_interpret_order;

typedef struct tcc_interpret_options {
    size_t struct_size;  /* sizeof(tcc_interpret_options): lets the struct grow */
    const char *variant; /* to run; NULL: the cheapest that is valid, as a launch does */
    tcc_interpret_order order;
    uint64_t seed;
    unsigned threads; /* that run CTAs; 0: one for each CPU. Results do not depend on it */
    /* One for each argument: bytes of which its address is a multiple, 0 for scalars. NULL: as
     * many as a variant wants. */
    const int64_t *alignments;
    /* When not NULL, gets the name of the entry that runs, borrowed from the module. */
    const char **ran;
    /* When not NULL, of a kernel at the target level: the order is timed, and *timeline gets what
     * CTA timeline_cta did and when, as Chrome's trace events in JSON; *summary, when that is not
     * NULL, a line about it. Both belong to the caller, tcc_text_destroy, and are NULL when the
     * call fails. */
    char **timeline, **summary;
    int64_t timeline_cta;
    /* When not NULL, told now and then by the calling thread how many CTAs, or clusters of them, of a kernel at the target
     * level have ended, of how many; of a kernel in several steps, of each step. */
    void (*progress)(int64_t done, int64_t all, void *user);
    void *progress_user;
} tcc_interpret_options;

/* Runs a kernel on the CPU, from the IR that the module holds: of the target level, what is
 * emitted, on a model of the machine that reports races, deadlocks and everything else that
 * docs/interp.md lists; of other levels, what that level means.
 *
 * kernel   NULL: the only one
 * dims     one extent for each entry of the manifest's "dims", in that order
 * args     one pointer for each entry of "args": tensors are arrays of double, row-major, with
 *          inputs and inout read and outputs and inout written; scalars are one double. Inputs are
 *          taken as already rounded to their type; all results are rounded to theirs
 * options  NULL: all zero
 * Returns TCC_OK; TCC_ERR_ARGUMENT; TCC_ERR_NO_VARIANT when no variant is valid for these extents
 * and alignments; TCC_ERR_UNSUPPORTED; TCC_ERR_MEMORY; TCC_ERR_INTERNAL when the kernel does what
 * it must not. Diagnostics are located in the source text, and go to the context's callback from
 * the calling thread. */
TCC_API tcc_status tcc_interpret(tcc_context *ctx, const tcc_module *mod, const char *kernel,
                                 const int64_t *dims, double *const *args,
                                 const tcc_interpret_options *options);

/* tcc_interpret on tensors in their own element types: tcc_reference_elements. */
TCC_API tcc_status tcc_interpret_elements(tcc_context *ctx, const tcc_module *mod,
                                          const char *kernel, const int64_t *dims,
                                          void *const *args, const tcc_interpret_options *options);

#ifdef __cplusplus
}
#endif
#endif

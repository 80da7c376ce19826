/* libtcc: compile tile programs to GPU code.
 *
 * From simple to expert:
 *     tcc_context *ctx = tcc_context_create();
 *     tcc_module *mod;
 *     if (tcc_compile(ctx, source, "sm_90a", &mod) == TCC_OK)
 *         puts(tcc_module_output(mod, NULL));                  -- PTX, with its manifest
 *
 * `create` gives ownership and `destroy` takes it; every other pointer is borrowed. Functions that
 * query a handle accept NULL, for which they return NULL, 0 or "". There is no global mutable state:
 * distinct contexts may be used from different threads at the same time, one context from one thread
 * at a time. The library never prints and never exits.
 *
 * Running out of memory is reported as TCC_ERR_MEMORY, also within LLVM, which then leaks the memory
 * that it holds. The first compilation of a process for a vendor's targets and a kind of output only
 * starts if 48 MB are available; if memory runs out in it nevertheless, later compilations of this
 * kind fail, and LLVM aborts the process if it happens while LLVM registers its backends. All this
 * concerns allocations that fail, not processes that the operating system kills.
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

/* Creates a compilation context; NULL if memory runs out. */
TCC_API tcc_context *tcc_context_create(void);

/* Destroys a context. Its modules stay valid until they are destroyed. */
TCC_API void tcc_context_destroy(tcc_context *ctx);

/* Sends every diagnostic of later calls to `fn`. NULL, the default, discards them. */
TCC_API void tcc_context_on_diagnostic(tcc_context *ctx, tcc_diagnostic_fn fn, void *user);
/* From any thread: makes the call that compiles or interprets on the context, and every later one, return
 * TCC_ERR_INTERRUPTED without a diagnostic. The interpreter ends within milliseconds, a compilation after its present
 * pass. */
TCC_API void tcc_context_interrupt(tcc_context *ctx);

/* ---- compiling ------------------------------------------------------------------------- */

typedef struct tcc_module tcc_module;

/* Compiles every kernel of a source text for one target, to an image that can be loaded and carries
 * its manifest: tcc_target_emit.
 *
 * source  NUL-terminated UTF-8, borrowed          target  "sm_90a", "gfx1100", …: tcc_target_name
 * On success *out belongs to the caller: tcc_module_destroy.
 * Returns TCC_OK, TCC_ERR_SYNTAX, TCC_ERR_TYPE, TCC_ERR_TARGET, TCC_ERR_UNSUPPORTED,
 * TCC_ERR_MEMORY or TCC_ERR_INTERNAL, with *out NULL; diagnostics go to the context's callback.
 * Thread-safe for distinct contexts. */
TCC_API tcc_status tcc_compile(tcc_context *ctx, const char *source, const char *target,
                               tcc_module **out);

/* What a compilation produces. The names are those of `tcc --emit=`: tcc_emit_name. */
typedef enum tcc_emit {
    TCC_EMIT_DEFAULT = 0, /* an image that can be loaded: tcc_target_emit; tcc_opt: IR */
    TCC_EMIT_IR,          /* tensor-level IR, the frontend's output */
    TCC_EMIT_TIR,         /* target-level IR, the passes' output */
    TCC_EMIT_LLVM,        /* LLVM IR text */
    TCC_EMIT_CUBIN,       /* device object from ptxas (PATH, CUDA_HOME); binary */
    TCC_EMIT_MANIFEST,    /* JSON: docs/abi.md */
    TCC_EMIT_TILE,        /* tile-level IR, before copies and MMAs become asynchronous */
    TCC_EMIT_ASYNC,       /* async-level IR, before it becomes instructions */
    TCC_EMIT_ASM,         /* the target's assembly: PTX, or AMD's */
    TCC_EMIT_OBJ,         /* AMD: a relocatable object; binary */
    TCC_EMIT_HSACO,       /* AMD: a code object that can be loaded, with its manifest; binary. Threads
                           * compile its entries, and end before the call returns */
    TCC_EMIT_PTX,         /* NVIDIA: assembly that drivers load, with its manifest */
    TCC_EMIT_SASS,        /* NVIDIA: text, the machine instructions that ptxas makes, each below its line of
                           * the source; needs nvdisasm */
    TCC_EMIT_COUNT
} tcc_emit;

/* "default", "ir", "tir", "llvm", "cubin", "manifest", "tile", "async", "asm", "obj", "hsaco",
 * "ptx", "sass"; NULL when out of range. Thread-safe. */
TCC_API const char *tcc_emit_name(tcc_emit emit);

/* The kind of image that a target loads: TCC_EMIT_PTX or TCC_EMIT_HSACO; TCC_EMIT_PTX also if the
 * name is NULL or unknown. PTX, cubins and SASS exist only for NVIDIA's targets, objects and code
 * objects only for AMD's; other combinations are TCC_ERR_ARGUMENT. Thread-safe. */
TCC_API tcc_emit tcc_target_emit(const char *target);

/* A binding of a symbolic dimension or a `const` to a number. */
typedef struct tcc_define {
    const char *name;
    int64_t value;
} tcc_define;

/* Extents of a dimension, from `least` to `most` inclusive; INT64_MAX: without an upper limit. */
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
    const char *reproducer; /* file for the input of a compiler bug; NULL: none is written */
    /* Receives the text of print_after and time_passes, piece by piece; NULL discards it. */
    void (*print)(const char *text, void *user);
    void *print_user;
    /* Run every kernel on small shapes before the passes and after each, and compare the results; a
     * difference is TCC_ERR_INTERNAL. Takes seconds. check_seed selects shapes, data and orders; unless it
     * is 0, a sixth of what passes change is run, and what the last one leaves on a fifth of the shapes. */
    bool check_passes;
    uint64_t check_seed;
    /* Prove that the barriers, copies and MMAs of the emitted code fit together, for all sizes
     * (docs/protocol-checker.md); on by default, but in tcc_opt only where it makes code. A violation is
     * TCC_ERR_INTERNAL, code that the checker cannot analyse TCC_ERR_UNSUPPORTED. */
    tcc_switch verify_pipeline;
    /* tcc_opt: receives the size of its output in bytes, unless NULL. Required for binary kinds. */
    size_t *output_size;
    /* Line tables, from which tools find the source line of an instruction. By default all kinds
     * have them except code objects, where they take a tenth of the compilation time. */
    tcc_switch line_tables;
    /* How many tiles to compile at most for a kernel whose extents are only known at launch and whose
     * schedule sets no tile; a launch runs the best for its extents. 0: all that the compiler has for the
     * target. 1 compiles faster and suits large extents. */
    unsigned tiles;
    /* The only kernel of the source to compile; NULL: all. Ignored by tcc_opt. */
    const char *kernel;
    /* Extents that launches will have. Tiles that no launch with such extents would choose are not compiled. Other
     * launches remain correct, but may be slower. A dimension that is bound, or that no kernel has, is
     * TCC_ERR_ARGUMENT. */
    const tcc_range *ranges;
    size_t n_ranges;
    const char *nvdisasm; /* path of nvdisasm; NULL: beside ptxas, CUDA_HOME/bin, PATH, /usr/local/cuda/bin */
    /* NVIDIA: kernels also write into their workspace when the warps of CTA timeline_cta wait: tcc_timeline_read. */
    bool timeline;
    int64_t timeline_cta;
} tcc_compile_options;

/* tcc_compile with every option. `source` is `size` bytes and needs no terminator. */
TCC_API tcc_status tcc_compile_with(tcc_context *ctx, const char *source, size_t size,
                                    const tcc_compile_options *options, tcc_module **out);

/* Formats a program in the canonical layout of the language, keeping all tokens and comments in order; formatting
 * twice changes nothing. `file` is for diagnostics; NULL: "<source>".
 * On success *out is NUL-terminated and belongs to the caller: tcc_text_destroy. Returns TCC_OK, TCC_ERR_SYNTAX or
 * another error of the parser, with *out NULL; diagnostics go to the context's callback. */
TCC_API tcc_status tcc_format(tcc_context *ctx, const char *source, size_t size, const char *file, char **out);

/* Parses textual IR of any level, runs the named passes on it and prints the result.
 *
 * passes   "canonicalize,dce", or "" to parse, verify and print
 * options  emit selects LLVM IR, PTX, cubin, assembly, object or code object, which need
 *          target-level IR with a target; for every other kind, or if options is NULL, the output is
 *          IR. PTX and assembly have no manifest
 * On success *out is the NUL-terminated output and belongs to the caller: tcc_text_destroy. */
TCC_API tcc_status tcc_opt(tcc_context *ctx, const char *ir, size_t size, const char *passes,
                           const tcc_compile_options *options, char **out);
TCC_API void tcc_text_destroy(char *text);

/* Makes a module from textual IR of any level, written by hand or by TCC_EMIT_IR, _TILE, _ASYNC,
 * _TIR or print_after: docs/ir.md. The module can be interpreted; its output is the text. Its
 * manifest has a variant for each function of the target level; tcc_program_load takes it together
 * with the PTX or code object that tcc_opt makes from the same text.
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
/* The target nearest to a GPU or an architecture that is not a target, such as "h100" or "gfx942"; NULL for other names.
 * *how, unless NULL, receives in what way it is near, "which is its architecture", or NULL if the name is another way to
 * write the target's. All strings are static. */
TCC_API const char *tcc_target_nearest(const char *name, const char **how);

/* The element types of the operands that an instruction of a target multiplies, and of their sum. `instr` is a value of
 * the schedule key of that name (docs/language.md). All strings are static. */
typedef struct tcc_target_product {
    const char *instr, *a, *b, *sum;
} tcc_target_product;

/* The i-th product for which a target has instructions, in order of preference; false past the last, and for an unknown
 * target. Does not include `instr naive`, which every target supports. Thread-safe. */
TCC_API bool tcc_target_product_at(const char *target, size_t i, tcc_target_product *out);

/* ---- modules --------------------------------------------------------------------------- */

TCC_API void tcc_module_destroy(tcc_module *mod);

/* The output of the compilation, of the requested kind. Text is NUL-terminated; *size, unless NULL,
 * receives the bytes without the terminator. Borrowed from the module. */
TCC_API const void *tcc_module_output(const tcc_module *mod, size_t *size);

/* The module's manifest as JSON (docs/abi.md); it has no variants for kernels above the target
 * level. Borrowed from the module. */
TCC_API const char *tcc_module_manifest(const tcc_module *mod);

/* The schedule in force for every kernel, in the language's own syntax. Borrowed. */
TCC_API const char *tcc_module_schedule(const tcc_module *mod);

/* What a launch of every kernel runs, as text: its steps, in order, the tensors that each reads and stores, why it is a
 * step of its own, and the bytes of the workspace as expressions of dimensions (docs/tools.md). For a kernel whose
 * variants take different steps, each such plan. "" above the tile level. Borrowed from the module. */
TCC_API const char *tcc_module_plan(const tcc_module *mod);

/* Number of kernels, and the name of the i-th in source order (NULL when out of range). */
TCC_API size_t tcc_module_kernel_count(const tcc_module *mod);
TCC_API const char *tcc_module_kernel_name(const tcc_module *mod, size_t i);

/* Computes a kernel on the CPU as its tensor-level IR defines it, in double precision, as a
 * reference for GPU results. It costs one multiply-add per term, on one core.
 *
 * manifest  from tcc_module_manifest or the head of a PTX file
 * kernel    NULL: the only one
 * dims      one extent for each entry of the manifest's "dims", in that order; strides are ignored
 * args      one pointer for each entry of "args": tensors are arrays of double, row-major and contiguous, with
 *           inputs and inout read and outputs and inout written; scalars are one double.
 *           Inputs must be rounded to their type already; outputs are not rounded
 * rows      unless NULL, n_rows flat indices over all free indices but the last of each output: only
 *           these rows are computed (a sample), the rest of the output is unchanged. inout tensors must be as
 *           before the launch in all rows
 *           TCC_ERR_ARGUMENT if an output has no such row
 * Returns TCC_OK, TCC_ERR_ARGUMENT, TCC_ERR_UNSUPPORTED or TCC_ERR_MEMORY. */
TCC_API tcc_status tcc_reference(tcc_context *ctx, const char *manifest, const char *kernel,
                                 const int64_t *dims, double *const *args, const int64_t *rows,
                                 size_t n_rows);

/* tcc_reference on tensors in their own element types, as on a GPU: row-major and contiguous, i4 and u4 with two
 * elements in a byte, the first in the low half. A scalar is one double: an f16, bf16 or f32 is
 * rounded; TCC_ERR_ARGUMENT if it is too large for that, or not an i32. Outputs are rounded to nearest even, integers
 * also saturated to the range of their type; other rows are unchanged. */
TCC_API tcc_status tcc_reference_elements(tcc_context *ctx, const char *manifest,
                                          const char *kernel, const int64_t *dims,
                                          void *const *args, const int64_t *rows, size_t n_rows);

/* tcc_reference, and bounds for the results of a correct kernel, however it rounds, contracts and
 * orders its sums: for each output i, low[i] and high[i] have as many elements as args[i], and receive
 * the interval that contains a result before it is rounded to the output's type. Both ends are NaN if
 * the result is NaN, and -inf and inf if it may be anything, including NaN. low and high of other
 * arguments are ignored. */
TCC_API tcc_status tcc_reference_intervals(tcc_context *ctx, const char *manifest,
                                           const char *kernel, const int64_t *dims,
                                           double *const *args, double *const *low,
                                           double *const *high, const int64_t *rows, size_t n_rows);

/* The same without what sums in f32 or f64 add to it: how far a correct kernel may be off because
 * numbers on its way come from functions or are rounded to narrower types, where they may be rounded
 * up or down. */
TCC_API tcc_status tcc_reference_roundings(tcc_context *ctx, const char *manifest,
                                           const char *kernel, const int64_t *dims,
                                           double *const *args, double *const *low,
                                           double *const *high, const int64_t *rows, size_t n_rows);

/* ---- running without a GPU ------------------------------------------------------------- */

/* The order in which warps run and asynchronous operations complete, where the program does not
 * determine it. A correct program gives the same results in every order: docs/interp.md. */
typedef enum tcc_interpret_order {
    TCC_INTERPRET_RANDOM = 0, /* an order drawn from the seed */
    TCC_INTERPRET_EARLY,      /* operations complete as early as they can */
    TCC_INTERPRET_LATE,       /* operations complete as late as they can */
    TCC_INTERPRET_TIMED       /* by a model of the machine's speed: docs/timeline.md */
} tcc_interpret_order;

typedef struct tcc_interpret_options {
    size_t struct_size;  /* sizeof(tcc_interpret_options): lets the struct grow */
    const char *variant; /* to run; NULL: the cheapest valid one, as in a launch */
    tcc_interpret_order order;
    uint64_t seed;
    unsigned threads; /* that run CTAs; 0: one per CPU. Does not affect results */
    /* One for each argument: the alignment of its address in bytes, 0 for scalars. NULL: whatever a
     * variant requires. */
    const int64_t *alignments;
    /* Unless NULL, receives the name of the entry that runs, borrowed from the module. */
    const char **ran;
    /* Unless NULL, for a kernel at the target level: the order is TCC_INTERPRET_TIMED, and *timeline
     * receives what CTA timeline_cta did and when, as Chrome trace events in JSON, and *summary,
     * unless NULL, a line about it. Both belong to the caller, tcc_text_destroy, and are NULL if the
     * call fails. */
    char **timeline, **summary;
    int64_t timeline_cta;
    /* Unless NULL, called from time to time by the calling thread with the number of CTAs, or clusters of them, of a
     * kernel at the target level that have ended, and their total; for a kernel in several steps, for each step. */
    void (*progress)(int64_t done, int64_t all, void *user);
    void *progress_user;
    /* For a timeline: run no CTAs but those of timeline_cta's cluster, and compute no MMAs. Much faster; outputs may
     * hold anything afterwards. */
    bool timeline_only;
} tcc_interpret_options;

/* Runs a kernel on the CPU, from the IR in the module. Target-level IR, from which code is emitted,
 * runs on a model of the machine that reports races, deadlocks and everything else that
 * docs/interp.md lists; IR of other levels is evaluated.
 *
 * kernel   NULL: the only one
 * dims     one extent or stride for each entry of the manifest's "dims", in that order
 * args     one pointer for each entry of "args": tensors are arrays of double, row-major, or where their strides
 *          say, with inputs and inout read and outputs and inout written; scalars are one double. Inputs must
 *          be rounded to their type already; results are rounded to theirs
 * options  NULL: all zero
 * Returns TCC_OK; TCC_ERR_ARGUMENT; TCC_ERR_NO_VARIANT if no variant is valid for these extents and
 * alignments; TCC_ERR_UNSUPPORTED; TCC_ERR_MEMORY; TCC_ERR_INTERNAL if the kernel does something
 * illegal. Diagnostics are located in the source text, and go to the context's callback from the
 * calling thread. */
TCC_API tcc_status tcc_interpret(tcc_context *ctx, const tcc_module *mod, const char *kernel,
                                 const int64_t *dims, double *const *args,
                                 const tcc_interpret_options *options);

/* tcc_interpret on tensors in their own element types, as in tcc_reference_elements, where their strides say. */
TCC_API tcc_status tcc_interpret_elements(tcc_context *ctx, const tcc_module *mod,
                                          const char *kernel, const int64_t *dims,
                                          void *const *args, const tcc_interpret_options *options);

/* The timeline of a launch on a GPU, of a program compiled with tcc_compile_options.timeline. The launch must be given
 * its workspace (tcc_kernel_launch_in), from which the caller then copies what this function reads.
 *
 * mod        the module whose image was launched. Stages, roles and source lines come from it
 * variant    that was launched: tcc_kernel_variant
 * workspace  `bytes` bytes: the whole workspace of the launch, after it
 * beside     a timeline of the same CTA by tcc_interpret, to be shown with it; NULL: none
 * timeline   receives Chrome trace events in JSON, summary, unless NULL, a line about them: docs/timeline.md. Both
 *            belong to the caller, tcc_text_destroy, and are NULL if the call fails
 * Returns TCC_OK; TCC_ERR_ARGUMENT if the program was not compiled for a timeline, if the launch had no such CTA, or if
 * a warp waited more often than there is room to record, 2^17 stamps, two or so for a wait; TCC_ERR_MEMORY. Thread-safe
 * for distinct contexts. */
TCC_API tcc_status tcc_timeline_read(tcc_context *ctx, const tcc_module *mod, const char *variant,
                                     const void *workspace, size_t bytes, const char *beside, char **timeline,
                                     char **summary);

#ifdef __cplusplus
}
#endif
#endif

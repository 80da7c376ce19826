/* codegen: target-level IR -> LLVM IR -> assembly or objects, and these -> what can be loaded.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_CODEGEN_H
#define TCC_CODEGEN_CODEGEN_H

#include "ir/ir.h"

typedef enum tcc_codegen_output {
    TCC_CODEGEN_LLVM, /* LLVM IR as it was built, before LLVM's passes */
    TCC_CODEGEN_ASM,  /* PTX, or AMD's assembly */
    TCC_CODEGEN_OBJ,  /* AMD: a relocatable ELF object */
    TCC_CODEGEN_OUTPUTS
} tcc_codegen_output;

typedef struct tcc_codegen_options {
    const char *target; /* "sm_90a", "gfx1100", … */
    const char *file;   /* the .tile path that line tables name; NULL: no line tables */
    tcc_codegen_output output;
    const tcc_func *only; /* translate only this function; NULL: all */
    int version;          /* of PTX, which all functions of the module have; 0: found out by looking at them */
    void **machine; /* kept for the next call with this target and version: tcc_codegen_machine_destroy; NULL: is not */
    /* Told how long each phase took; may be NULL. */
    void (*phase)(const char *name, double milliseconds, void *user);
    void *phase_user;
} tcc_codegen_options;

/* Translates every function of a verified target-level module, each to one kernel entry.
 *
 * On success *out is a text, or an object, of *size bytes and a NUL that belongs to the caller:
 * free. Returns TCC_OK, TCC_ERR_TARGET, TCC_ERR_MEMORY or TCC_ERR_INTERNAL, with a diagnostic.
 * Thread-safe. An error that LLVM calls fatal, and memory that runs out in LLVM, is contained, and
 * leaks what LLVM then held. */
tcc_status tcc_codegen(const tcc_ir *ir, const tcc_codegen_options *options, tcc_diag *diag,
                       char **out, size_t *size);
void tcc_codegen_machine_destroy(void *machine); /* or NULL */

typedef struct tcc_bytes {
    const void *data;
    size_t size;
} tcc_bytes;

/* Makes an object for each function of a verified target-level module, with as many threads as
 * there are CPUs. The output and phases of the options do not count: there is one phase, "llvm".
 *
 * On success *objects are *n objects that belong to the caller: tcc_codegen_objects_destroy.
 * Returns and diagnostics as tcc_codegen. Thread-safe. */
tcc_status tcc_codegen_objects(const tcc_ir *ir, const tcc_codegen_options *options, tcc_diag *diag,
                               tcc_bytes **objects, size_t *n);
void tcc_codegen_objects_destroy(tcc_bytes *objects, size_t n);

/* PTX of a verified target-level module, made function by function as objects are; the
 * text does not depend on the number of threads.
 *
 * On success *out is a text of *size bytes and a NUL that belongs to the caller: free. Returns and diagnostics
 * as tcc_codegen. Thread-safe. */
tcc_status tcc_codegen_ptx(const tcc_ir *ir, const tcc_codegen_options *options, tcc_diag *diag, char **out,
                           size_t *size);

typedef struct tcc_ptxas_options {
    const char *target; /* "sm_90a" */
    const char *ptxas;  /* its path; NULL: CUDA_HOME/bin, PATH, /usr/local/cuda/bin */
} tcc_ptxas_options;

/* Whether ptxas is where it is looked for. */
bool tcc_ptxas_is_there(void);

/* Assembles PTX with NVIDIA's ptxas, in a subprocess. Its warnings of lost performance (serialised
 * wgmma, spilled registers, an ignored setmaxnreg) becomes warnings, and its errors errors, at the
 * .tile line that the PTX's line tables give.
 *
 * On success *cubin is *cubin_size bytes that belong to the caller: free.
 * Returns TCC_OK, TCC_ERR_TOOL when ptxas is missing or fails, TCC_ERR_IO when a temporary file
 * cannot be written, TCC_ERR_MEMORY. Thread-safe. */
tcc_status tcc_ptxas(const char *ptx, size_t size, const tcc_ptxas_options *options, tcc_diag *diag,
                     void **cubin, size_t *cubin_size);

typedef struct tcc_sass_options {
    const char *nvdisasm; /* its path; NULL: beside ptxas, CUDA_HOME/bin, PATH, /usr/local/cuda/bin */
    const char *ptxas;    /* as tcc_ptxas has it */
} tcc_sass_options;

/* Lists the machine instructions of a cubin with NVIDIA's nvdisasm, in a subprocess: kernels by name, the lines
 * of the .tile source, which `diag` has, above what was made of them.
 *
 * On success *out is a text of *size bytes and a NUL that belongs to the caller: free.
 * Returns TCC_OK, TCC_ERR_TOOL when nvdisasm is missing or fails, TCC_ERR_IO when a temporary file
 * cannot be written, TCC_ERR_MEMORY. Thread-safe. */
tcc_status tcc_sass(const void *cubin, size_t size, const tcc_sass_options *options, tcc_diag *diag, char **out,
                    size_t *out_size);

/* ELF section and note type that carry the manifest of a code object: owner "tcc", not loaded. */
#define TCC_NOTE_SECTION ".note.tcc"
enum { TCC_NOTE_MANIFEST = 1 };

/* Makes a code object that HIP loads of n > 0 objects that tcc_codegen gave for one AMD GPU. No
 * subprocess: from memory to memory.
 *
 * manifest  JSON that goes into the note; NULL: no note
 * On success *out is *size bytes that belong to the caller: free.
 * Returns TCC_OK, TCC_ERR_INTERNAL with a diagnostic when an object is not as LLVM makes it, or
 * TCC_ERR_MEMORY. Whatever the bytes are, nothing outside them is read. Thread-safe. */
tcc_status tcc_amdgcn_link(const tcc_bytes *objects, size_t n, const char *manifest, tcc_diag *diag,
                           void **out, size_t *size);

#endif

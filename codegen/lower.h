/* lower: target-level IR -> LLVM IR. What all targets share is in lower.c, values.c and arith.c; a
 * target adds its own ops, its maths and what makes a function a kernel (codegen/nvptx/).
 *
 * A vec is kept as its elements, n LLVM values for vec<f32[n]>, for which loops carry n phis; or,
 * on targets whose registers form tuples (`vectors`), as one LLVM vector with one phi. The lowering
 * of an op requests the form that it needs: tcc_lower_elems, tcc_lower_vector.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_LOWER_H
#define TCC_CODEGEN_LOWER_H

#include <llvm-c/Core.h>
#include <llvm-c/DebugInfo.h>
#include <stdatomic.h>

#include "codegen/codegen.h"
#include "ir/target.h"
#include "support/map.h"

typedef struct tcc_lower tcc_lower;

/* How far LLVM has been used for a target's vendor and a kind of output: llvm.c. */
enum { TCC_UNUSED, TCC_USED, TCC_UNUSABLE };

/* Conversions of 8-bit floats, several at once, packed in an integer: by instructions of targets that have them (fp8),
 * or by others (fp8.c). */
typedef struct tcc_fp8 {
    unsigned at_once;
    void (*to_f32)(tcc_lower *l, tcc_scalar from, LLVMValueRef packed, LLVMValueRef *out);
    LLVMValueRef (*from_f32)(tcc_lower *l, tcc_scalar to, const LLVMValueRef *in);
} tcc_fp8;
extern const tcc_fp8 tcc_fp8_in_software;

/* One for each vendor: backends.c. LLVM's names of CPUs are ours of targets. */
typedef struct tcc_backend {
    const char *triple;
    const char *features; /* for LLVM; %d: the result of version_for */
    /* The version of the assembly's language that a module needs; NULL: there is but one. */
    int (*version_for)(const tcc_target *target, const tcc_ir *ir);
    const char *passes;   /* LLVM's, on the IR as it was built; NULL: none */
    const char *reserved; /* words that cannot name a kernel, or NULL */
    bool vectors;       /* a vec is one LLVM value */
    /* How much of a line table, an llvm::DICompileUnit::DebugEmissionKind. */
    enum { TCC_LINES_FULL = 2, TCC_LINES_DIRECTIVES = 3 } lines;
    /* Whether LLVM's code generation runs the passes that it may leave out: llvm.c. */
    bool optional_codegen;
    atomic_int *use;          /* TCC_UNUSED and so on, by kind of output */
    void (*initialize)(void); /* registers LLVM's backend; called once for a process */
    /* Gives an empty function what makes it a kernel, with the threads of a CTA that the function's
     * attributes name. */
    void (*begin_kernel)(tcc_lower *l, const tcc_func *func);
    /* Whether it is lower_op that lowers op, though every target has it; may be NULL: none. */
    bool (*is_own)(const tcc_op *op);
    /* Lowers op, or a run of ops from op on. Returns the last that it lowered, NULL when it does
     * not know op. */
    const tcc_op *(*lower_op)(tcc_lower *l, const tcc_op *op);
    /* arith.div, math.exp2, log2, sqrt or rsqrt of f32 values; NULL for another op. */
    LLVMValueRef (*math)(tcc_lower *l, tcc_opcode code, const LLVMValueRef *args);
    tcc_fp8 fp8;
    /* An f32 as a tf32, whose other bits may be anything; NULL: the target has none. */
    LLVMValueRef (*round_to_tf32)(const tcc_lower *l, LLVMValueRef x);
    /* Warns of kernels that spill registers, as far as assembly or an object tells; may be NULL. */
    void (*warn_of_spills)(const tcc_ir *ir, tcc_codegen_output output, const char *data,
                           size_t size, tcc_arena *arena, tcc_diag *diag);
} tcc_backend;

const tcc_backend *tcc_backend_of(const tcc_target *target);
/* Calls every `initialize`. */
void tcc_backends_initialize(void);

struct tcc_lower {
    const tcc_target *target;
    const tcc_backend *backend; /* of its vendor */
    tcc_arena *arena;
    tcc_diag *diag;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    LLVMTypeRef types[TCC_SCALAR_COUNT]; /* NULL: has no register form */
    LLVMTypeRef void_type;
    LLVMDIBuilderRef lines; /* NULL: no line tables */
    LLVMMetadataRef line_file;

    /* of the function at hand: */
    LLVMValueRef func;
    LLVMMetadataRef line_scope;
    tcc_loc loc;      /* the builder's */
    LLVMValueRef lds; /* the CTA's memory, where that is a global of the function's; else NULL */
    tcc_map values;   /* IR value -> what it is kept as: lower.c */
    /* The address of the last copy from global memory, and the block that it is in. */
    struct {
        LLVMBasicBlockRef block;
        const tcc_value *base, *offset;
        LLVMValueRef pointer;
    } last_address;
};

/* Fills in everything after `builder`, which the caller has set. `file` as in
 * tcc_codegen_options. */
void tcc_lower_begin(tcc_lower *l, const char *file);
/* Lowers a function; false when an error was reported. */
bool tcc_lower_func(tcc_lower *l, const tcc_func *func);
void tcc_lower_end(tcc_lower *l);

/* ---- for those who lower ops ----------------------------------------------------------- */

/* Numbers that a value of this type consists of: 1 for scalars and pointers. */
unsigned tcc_lower_count(const tcc_type *type);
/* Whether a value of this type is one LLVM vector. */
bool tcc_lower_is_vector(const tcc_lower *l, const tcc_type *type);
/* The elements of a value, and of a value with one. */
const LLVMValueRef *tcc_lower_elems(const tcc_lower *l, const tcc_value *v);
LLVMValueRef tcc_lower_scalar(const tcc_lower *l, const tcc_value *v);
/* A value as one LLVM value: a vector, where it has more elements than one. */
LLVMValueRef tcc_lower_vector(const tcc_lower *l, const tcc_value *v);
/* The same bits as a vector, or a number, of another type. */
LLVMValueRef tcc_lower_vector_as(const tcc_lower *l, const tcc_value *v, LLVMTypeRef type);
/* Vectors one after the other as one; NULL unless they are of one type, kept as vectors, and a power of two of them. */
LLVMValueRef tcc_lower_concat(const tcc_lower *l, tcc_value *const *values, unsigned n);
/* The address at an offset in l->lds. */
LLVMValueRef tcc_lower_lds(const tcc_lower *l, const tcc_value *offset);
/* Sets the elements of a value: `elems` lives in l->arena. */
void tcc_lower_set(tcc_lower *l, const tcc_value *v, const LLVMValueRef *elems);
void tcc_lower_set_scalar(tcc_lower *l, const tcc_value *v, LLVMValueRef x);
/* Sets a value to one LLVM value with its elements' bits, which is made to have their type. */
void tcc_lower_set_vector(tcc_lower *l, const tcc_value *v, LLVMValueRef vector);

LLVMValueRef tcc_lower_i32(const tcc_lower *l, int64_t v);
/* Calls an LLVM intrinsic; `overload` is NULL where it has no type parameter. */
LLVMValueRef tcc_lower_intrinsic(const tcc_lower *l, const char *name, LLVMTypeRef overload,
                                 unsigned n, const LLVMValueRef *args);
/* The same with several type parameters. */
LLVMValueRef tcc_lower_intrinsic_of(const tcc_lower *l, const char *name, unsigned n_types,
                                    LLVMTypeRef *types, unsigned n, const LLVMValueRef *args);
/* The same bits as elements of another type. n_from * bits of from = n_to * bits of to. */
const LLVMValueRef *tcc_lower_bitcast(const tcc_lower *l, const LLVMValueRef *from, unsigned n_from,
                                      LLVMTypeRef to, unsigned n_to);

/* Attributes of the function at hand or, `at` from 1 on, of its parameters. */
enum { TCC_LOWER_FUNC = -1 };
void tcc_lower_add_string_attribute(tcc_lower *l, int at, const char *name, const char *value);
void tcc_lower_add_enum_attribute(tcc_lower *l, int at, const char *name, uint64_t value);

/* An elementwise op (arith.c); false when it has no translation. */
bool tcc_lower_elementwise(tcc_lower *l, const tcc_op *op);
/* An element in another type, NULL where the target has no such conversion. Not for 8-bit floats, whose bits are kept
 * as i8. */
LLVMValueRef tcc_lower_cast(const tcc_lower *l, LLVMValueRef x, tcc_scalar from, tcc_scalar to);
/* A cast to or from them (convert.c); false when the target has none, which is reported. */
bool tcc_lower_is_fp8_cast(const tcc_op *op);
void tcc_lower_fp8_cast(tcc_lower *l, const tcc_op *op);

#endif

/* target: what the passes must know of a GPU. Limits come from the CUDA C++ Programming Guide's
 * "Compute Capabilities" table, the PTX ISA, AMD's RDNA3 and RDNA4 ISA guides and the GPUs' data
 * sheets.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_TARGET_H
#define TCC_IR_TARGET_H

#include "ir/ir.h"

#define TCC_VENDORS(VENDOR) VENDOR(NVIDIA) VENDOR(AMD)

typedef enum tcc_vendor {
#define VENDOR(id) TCC_VENDOR_##id,
    TCC_VENDORS(VENDOR)
#undef VENDOR
    TCC_VENDOR_COUNT
} tcc_vendor;

typedef enum tcc_capability {
#define CAPABILITY(id, doc) TCC_CAN_##id,
#include "ir/capabilities.def"
    TCC_CAPABILITY_COUNT
} tcc_capability;
/* Its bit in a set of them: TCC_CAN(wgmma). Tables say CAN. */
#define TCC_CAN(id) (1u << TCC_CAN_##id)

/* Keys of the tables in ir/ and of passes/families.c. Other code asks for a vendor or a capability. */
typedef enum tcc_family {
#define FAMILY(id, vendor, passes, capabilities) TCC_FAMILY_##id,
#include "ir/families.def"
    TCC_FAMILY_COUNT
} tcc_family;

typedef struct tcc_target {
    const char *name;
    tcc_family family;
    const char *plain;        /* the target that computes what this one has no matrix instruction for; NULL: none */
    int ptx;                  /* least version of PTX that has it, 80 for 8.0; 0: it is not NVIDIA's */
    unsigned can;             /* capabilities beside those of its family */
    int64_t smem_bytes;       /* dynamic shared memory that one CTA may have */
    int64_t registers;        /* of one SM, or of one CTA if that may have fewer, 32 bits each */
    int64_t thread_registers; /* of one thread at most */
    int64_t max_threads;      /* of one CTA */
    /* What choices are estimated with, for the largest GPU of the target: SMs, and of one SM and
     * cycle dense 16-bit products, bytes from shared memory, from L2, of results to memory, and of all that
     * goes between it and memory;
     * cycles that a copy into shared memory takes to arrive, 0 where other CTAs hide them. */
    int64_t sms;
    double flops_per_cycle, smem_bytes_per_cycle, l2_bytes_per_cycle, stored_bytes_per_cycle;
    double memory_bytes_per_cycle;
    double fmas_per_cycle, wide_fmas_per_cycle; /* products of f32 and of f64 that are added; 0: none are */
    double latency_cycles;
} tcc_target;

/* The target of this name, or NULL. */
const tcc_target *tcc_target_find(const char *name);
/* The same; reports an unknown name and lists the targets. NULL is not a name. */
const tcc_target *tcc_target_named(const char *name, tcc_diag *diag);
/* The i-th target, NULL past the last. */
const tcc_target *tcc_target_at(size_t i);
tcc_vendor tcc_target_vendor(const tcc_target *target);
bool tcc_target_can(const tcc_target *target, tcc_capability capability);
/* Which of a set of capabilities it does not have. */
unsigned tcc_target_cannot(const tcc_target *target, unsigned capabilities);
/* Reports that a table, which `where` names, has no row for this target yet, or for its family:
 * docs/add-a-target.md. Returns TCC_ERR_UNSUPPORTED. */
tcc_status tcc_target_lacks(const tcc_target *target, const char *where, tcc_diag *diag,
                            tcc_loc loc);
/* The target that a module's attribute names; its existence was checked when it was set. */
const tcc_target *tcc_target_of(const tcc_ir *ir);
/* As which target a function's passes make it: that one or, where its attribute `target` says so, its plain one. */
const tcc_target *tcc_func_target(const tcc_func *f);

/* By what a product is computed: matrix instructions of a warpgroup, which read shared memory; of a warp or a wave;
 * scalar instructions, of lanes that take outer products; or by each thread for itself. Words of the key `instr`, in
 * their order. */
typedef enum tcc_instr {
    TCC_INSTR_WGMMA,
    TCC_INSTR_MMA,
    TCC_INSTR_WMMA,
    TCC_INSTR_FMA,
    TCC_INSTR_NAIVE,
    TCC_INSTR_COUNT
} tcc_instr;

/* What instructions compute: products of a and b, summed in acc. */
typedef struct tcc_multiplied {
    tcc_instr instr;
    tcc_scalar a, b, acc; /* i8 and i4 for both signs */
} tcc_multiplied;
/* The i-th that a target has instructions of its own for; false past the last. */
bool tcc_target_multiplies(const tcc_target *target, size_t i, tcc_multiplied *out);
/* By what a target multiplies such elements, or such as for both signs; TCC_INSTR_COUNT when it does not. instr: by
 * what it shall, TCC_INSTR_COUNT: by what it has first. */
tcc_instr tcc_target_instr_for(const tcc_target *target, tcc_instr instr, tcc_scalar a, tcc_scalar b, tcc_scalar acc);
/* By what a target multiplies where nothing else is said. */
tcc_instr tcc_target_instr(const tcc_target *target);

/* A warpgroup matrix instruction D[m,n] += A[m,k] * B[k,n]: mma.def. */
typedef struct tcc_mma {
    const char *name;
    int ptx; /* least version of PTX that has it, as tcc_target's */
    int64_t m, k, n_step, n_max; /* n is any multiple of n_step up to n_max */
    bool across; /* rows of operands in shared memory may also run along m or n instead of k */
    tcc_scalar a, b, acc;
    int64_t lanes;        /* threads that hold D together */
    int64_t acc_per_row8; /* elements of D that one lane holds for each 8 columns */
} tcc_mma;

/* The instruction for these element types, or NULL. */
const tcc_mma *tcc_mma_find(const tcc_target *target, tcc_scalar a, tcc_scalar b, tcc_scalar acc);
/* The one that an nvvm.wgmma or nvvm.wgmma.a says, or NULL. */
const tcc_mma *tcc_mma_of(const tcc_op *op);

enum { TCC_WMMA_SIDE = 16 };

/* An instruction of RDNA's, D[16,16] += A[16,k] * B[k,16]: wmma.def. */
typedef struct tcc_wmma {
    const char *name; /* "f32_16x16x16_f16" */
    int64_t k;
    tcc_scalar a, b, acc; /* i8 and i4 for both signs */
    unsigned acc_bits;    /* of a register that one accumulator takes */
} tcc_wmma;

/* The instruction for these element types, of those the one with the largest k; or of this k, when
 * it is not 0. NULL when there is none. */
const tcc_wmma *tcc_wmma_find(const tcc_target *target, tcc_scalar a, tcc_scalar b, tcc_scalar acc,
                              int64_t k);
/* Whether an accumulator has half of a register, low or high, for itself. */
bool tcc_wmma_is_in_halves(const tcc_wmma *w);
/* Whether sums of this type, of products of such numbers, are. */
bool tcc_wmma_sums_in_halves(const tcc_target *target, tcc_scalar acc);
/* 32-bit registers of one lane that hold D, for waves of this many lanes; tcc_wmma_operand_words
 * (ir/fragment.h): A or B. */
int64_t tcc_wmma_result_words(const tcc_wmma *w, int64_t wave);

/* The shape of the matrix instruction for these element types: D[m,n] += A[m,k] * B[k,n]. */
typedef struct tcc_mma_shape {
    int64_t m, k, n_step, n_max; /* n is any multiple of n_step up to n_max */
} tcc_mma_shape;
/* False when the target has none. */
bool tcc_mma_shape_find(const tcc_target *target, tcc_instr instr, tcc_scalar a, tcc_scalar b, tcc_scalar acc,
                        tcc_mma_shape *out);

/* Whether tensors that are not operands of a sum can have this element: it is converted to f32 or
 * i32 and back, one number per register; f64 is not converted. */
bool tcc_target_converts(const tcc_target *target, tcc_scalar elem);

#endif

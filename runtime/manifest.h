/* manifest: the description of a compiled module (docs/abi.md), read from JSON into structs.
 *
 * Names are resolved while reading: dimensions and arguments are indices from here on. Everything
 * that a launch relies on is checked here, so that a corrupt manifest only causes an error.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_MANIFEST_H
#define TCC_RUNTIME_MANIFEST_H

#include <stdint.h>

#include <tcc/tcc_runtime.h>

#include "runtime/cuda_driver.h"
#include "support/arena.h"
#include "support/diag.h"
#include "support/expr.h"
#include "support/extent.h"
#include "support/manifest.h"

enum {
    TCC_MAX_TMA_RANK = 5,
    TCC_MAX_BLOCK = 1024,
    TCC_MAX_SMEM_BYTES = 1 << 20,
    TCC_MAX_CLUSTER = 16,
    TCC_MAX_BOX = 256, /* extent of a tensor map's box */
};

/* An element type as launches see it. */
typedef struct tcc_elem_type {
    const char *name;
    unsigned bits;                /* 4: element 2i is the low half of byte i */
    CUtensorMapDataType map_type; /* of those with whole bytes */
} tcc_elem_type;

/* The extent of one dimension: a symbolic one's index, what computes it of such, or a number. */
typedef struct tcc_extent {
    int dim;            /* -1: computed, or the number */
    const tcc_expr *of; /* NULL: it is not computed */
    int64_t number;
    int64_t multiple; /* to which it is rounded up, as a factor of a product; 0: it is not */
} tcc_extent;

typedef struct tcc_product {
    const tcc_extent *factors;
    size_t n; /* none: 1 */
} tcc_product;

/* A condition on a launch. */
typedef struct tcc_requirement {
    enum { TCC_REQUIRE_EXTENT, TCC_REQUIRE_ADDRESS, TCC_REQUIRE_PITCH, TCC_REQUIRE_SPAN } kind;
    tcc_extent extent; /* EXTENT: min <= extent <= max */
    int64_t min, max;  /* SPAN: pitch * bytes_per_elem <= max */
    unsigned arg;      /* ADDRESS: the argument's address is a multiple of align */
    tcc_product pitch; /* PITCH: pitch * bytes_per_elem is a multiple of align */
    int64_t bytes_per_elem;
    int64_t align;
} tcc_requirement;

/* How a tensor map is made from a launch's arguments. */
typedef struct tcc_tma_recipe {
    int arg;                /* -1: a tensor in the workspace */
    tcc_expr offset, bytes; /* of that one: where it begins, and its size */
    unsigned rank;
    const tcc_elem_type *type;
    tcc_extent dims[TCC_MAX_TMA_RANK];         /* innermost first */
    tcc_product strides[TCC_MAX_TMA_RANK - 1]; /* in elements, of dims 1 and up */
    uint32_t box[TCC_MAX_TMA_RANK];
    CUtensorMapSwizzle swizzle;
} tcc_tma_recipe;

typedef struct tcc_param {
    enum {
        TCC_PARAM_TENSOR_MAP,
        TCC_PARAM_POINTER,
        TCC_PARAM_WORKSPACE,
        TCC_PARAM_DIM,
        TCC_PARAM_SCALAR
    } kind;
    unsigned arg;              /* POINTER, SCALAR */
    tcc_expr offset, bytes;    /* WORKSPACE: bytes from its beginning, and of the tensor there */
    tcc_extent extent;         /* DIM */
    const tcc_tma_recipe *map; /* TENSOR_MAP */
    bool says_access;          /* whether the next two are known */
    bool reads, writes;        /* the tensor that it points to */
} tcc_param;

/* The launch of one entry. */
typedef struct tcc_entry {
    const char *name;
    tcc_expr grid;
    unsigned block, smem_bytes, cluster;
    bool fewer;    /* a launch of fewer blocks than the grid's, in whole clusters, computes the same */
    bool overlaps; /* may begin before the previous launch has ended: it waits itself */
    int64_t max_grid; /* blocks that a launch may have on the target */
    const tcc_param *params;
    size_t n_params;
} tcc_entry;

/* Bytes that are set before the next step. */
typedef struct tcc_fill {
    int arg;         /* -1: in the workspace */
    tcc_expr offset; /* in the workspace, bytes */
    tcc_expr bytes;
    uint8_t byte;
} tcc_fill;

typedef struct tcc_step {
    enum { TCC_STEP_LAUNCH, TCC_STEP_MEMSET } kind;
    tcc_entry entry; /* LAUNCH */
    tcc_fill fill;   /* MEMSET */
} tcc_step;

/* A way to compute a kernel: what must hold, what it costs, what is done. */
typedef struct tcc_variant {
    const char *name;
    const tcc_requirement *requirements;
    size_t n_requirements;
    tcc_expr cost, workspace_bytes;
    const tcc_step *steps;
    size_t n_steps;
} tcc_variant;

typedef struct tcc_kernel_desc {
    const char *name;
    const char *reference; /* tensor-level IR; NULL when the manifest has none */
    tcc_product flops;     /* of one launch; without factors when the manifest has none */
    const char *sum;       /* element type that it is added in; NULL when the manifest has none */
    const char *const *dims;
    size_t n_dims;
    const tcc_arg_info *args; /* as the public API shows them */
    const tcc_elem_type *const *arg_types;
    const tcc_extent *const *arg_extents; /* rank of them for each argument */
    const tcc_extent *const *arg_strides; /* the same, in elements; NULL: row-major and contiguous */
    size_t n_args;
    const tcc_variant *variants;
    size_t n_variants;
} tcc_kernel_desc;

typedef struct tcc_manifest {
    const char *target;
    const char *file; /* the .tile source, for messages */
    tcc_device_attrs device; /* the GPU that is meant where there is none */
    const tcc_kernel_desc *kernels;
    size_t n_kernels;
} tcc_manifest;

/* Reads a terminated manifest into `arena`. Returns TCC_OK, TCC_ERR_SYNTAX with one error reported,
 * where *out has the kernels before it, or TCC_ERR_MEMORY. Takes over the arena's out-of-memory handler and leaves it with none. */
tcc_status tcc_manifest_read(tcc_arena *arena, tcc_diag *diag, const char *json,
                             const tcc_manifest **out);

/* The manifest's JSON from the leading comments of a PTX text, joined and terminated; NULL with an
 * error reported where there is none. Out of memory goes to the arena's handler. */
const char *tcc_manifest_in_ptx(tcc_arena *arena, tcc_diag *diag, const char *ptx, size_t size);

#endif

/* variant: which of a kernel's variants a launch runs, and with what: pure arithmetic on the
 * manifest, the extents and the addresses.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_VARIANT_H
#define TCC_RUNTIME_VARIANT_H

#include "runtime/manifest.h"
#include "runtime/ranking.h"

/* A tensor map's contents: cuTensorMapEncodeTiled's arguments that depend on the launch. Unused
 * ranks are zero, so that equal maps are equal bytes. */
typedef struct tcc_tma_values {
    uint64_t address;
    uint64_t dims[TCC_MAX_TMA_RANK];
    uint64_t strides_bytes[TCC_MAX_TMA_RANK - 1];
} tcc_tma_values;

/* What a step needs to know of the launch. */
typedef struct tcc_step_plan {
    unsigned grid;       /* of a launch */
    int64_t to, n_bytes; /* of a memset: an address, or an offset in the workspace */
} tcc_step_plan;

/* What to launch. */
typedef struct tcc_plan {
    const tcc_variant *variant; /* NULL: nothing, because an output is empty */
    int64_t workspace_bytes;
    tcc_step_plan steps[TCC_MANIFEST_STEPS];
    tcc_tma_values maps[TCC_MANIFEST_TENSOR_MAPS]; /* in the order of the steps' parameters */
} tcc_plan;

/* Checks a launch's arguments against the kernel and picks the cheapest variant that is valid for
 * them, the first of several equal ones. rankings: for the same kernel and device; NULL: not cached.
 * room: available bytes of workspace; variants that need more are not valid. is_launched: tensors must
 * have an address; otherwise the address 0 counts as aligned. Returns TCC_OK, TCC_ERR_ARGUMENT or
 * TCC_ERR_NO_VARIANT, the last two reported. */
tcc_status tcc_plan_launch(const tcc_kernel_desc *k, const tcc_device_attrs *device,
                           tcc_ranking_cache *rankings, const int64_t *dims, size_t n_dims,
                           const tcc_arg *args, size_t n_args, int64_t room, bool is_launched, tcc_diag *diag,
                           tcc_plan *out);

/* The value of an offset that was planned with. */
int64_t tcc_plan_offset(const tcc_expr *offset, const tcc_device_attrs *device,
                        const int64_t *dims);

/* The value of an extent, the highest number where it leaves 64 bits. */
int64_t tcc_extent_value(const tcc_extent *e, const int64_t *dims);

/* The product of n extents times `scale`; false when it leaves 64 bits. */
bool tcc_extents_multiply(const tcc_extent *factors, size_t n, int64_t scale, const int64_t *dims, int64_t *out);

/* The scalar converted to its type, rounded to nearest even: kernels take f16 and bf16 scalars
 * widened to f32. Overflow becomes infinity. */
float tcc_scalar_value(const char *type, double number);

/* Whether a scalar of this type can have this value: an i32 is exact, a float may be rounded but does not overflow. */
bool tcc_scalar_fits(const char *type, double number);

#endif

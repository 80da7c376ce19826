/* argument: what a launch is given, checked against what the kernel takes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_ARGUMENT_H
#define TCC_RUNTIME_ARGUMENT_H

#include "runtime/manifest.h"

/* The bytes from a tensor's first element to its last, where its strides are; of half bytes the number of elements.
 * False: 64 bits do not hold it. */
bool tcc_arg_bytes(const tcc_kernel_desc *k, size_t arg, const int64_t *dims, int64_t *bytes);

/* Whether a dimension is a stride of some argument. */
bool tcc_dim_is_stride(const tcc_kernel_desc *k, size_t dim);

/* Checks all extents and arguments; *empty is set if an output has no elements. False: one error is reported.
 * is_launched: tensors must have an address. */
bool tcc_check_launch(const tcc_kernel_desc *k, const int64_t *dims, size_t n_dims, const tcc_arg *args, size_t n_args,
                      bool is_launched, tcc_diag *diag, bool *empty);

#endif

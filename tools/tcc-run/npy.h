/* npy: NumPy's .npy files, versions 1 and 2, in C order and little-endian.
 *
 * Arrays of floats and integers are read into any type that has room for their numbers: floats are rounded to nearest
 * even, integers must be exact. NumPy has no bf16: such arrays are written as '<u2', their bits, and read from '<u2' and
 * from '<V2', which is what ml_dtypes writes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_NPY_H
#define TCC_TOOLS_NPY_H

#include <stdbool.h>

#include "tools/tcc-run/element.h"

enum { NPY_MAX_RANK = 16 };

typedef struct npy {
    char descr[8]; /* "<f2", "<f4", "<f8", "<u2" or "<V2" */
    unsigned rank;
    int64_t shape[NPY_MAX_RANK];
    size_t n; /* elements */
    void *data;
} npy;

/* Reads a file; on failure says why in `why`. The caller frees out->data. */
bool npy_read(const char *path, npy *out, char *why, size_t why_size);
/* Converts what was read into n elements of `type`. If the file's type or one of its numbers does not fit, says why in
 * `why`, such as "has 20 at [0, 3], which u4 cannot hold". */
bool npy_convert(const npy *array, const elem_type *type, void *out, char *why, size_t why_size);
/* Writes an array: the file is there whole or not at all. On failure says why in `why`. */
bool npy_write(const char *path, const elem_type *type, unsigned rank, const int64_t *shape,
               const void *data, char *why, size_t why_size);

#endif

/* tensor: a kernel's arguments on the host and on the machine that runs it.
 *
 * Every allocation has a guard of 0xff bytes before and after it, and outputs begin as 0xff bytes:
 * NaN in every floating-point type, and -1 or the largest number of an integer type. A read outside
 * a tensor poisons the result, a write outside one is found, and so is an element that was never
 * written.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_TENSOR_H
#define TCC_TOOLS_TENSOR_H

#include "tools/tcc-run/element.h"
#include "tools/tcc-run/npy.h"
#include "tools/tcc-run/session.h"

typedef struct tensor {
    const tcc_arg_info *info;
    const elem_type *type;
    int64_t extents[NPY_MAX_RANK];
    int64_t strides[NPY_MAX_RANK]; /* on the machine, in elements */
    size_t n, bytes;   /* elements, and their bytes on the host, where they are contiguous */
    size_t span;       /* elements on the machine, from the first to the last */
    void *host;        /* initial contents of in and inout, and the result after tensor_read */
    uint64_t base;     /* of the allocation, guards included */
    uint64_t address;  /* of element 0 */
} tensor;

/* Resolves type and extents. False after reporting. */
bool tensor_init(session *s, tensor *t, const tcc_kernel *k, size_t arg, const int64_t *dims);
void tensor_free(session *s, tensor *t);

/* Gives the tensor its host data: a file's, or random from the seed. */
bool tensor_fill(session *s, tensor *t, const npy *file, uint64_t seed);

/* Allocates on the machine and writes guards and contents; outputs are poisoned. `misaligned`: one
 * element past the alignment of allocations. */
tcc_status tensor_upload(session *s, tensor *t, bool misaligned);

/* Writes elements to the machine, as `host` has them. What is between those of a strided tensor becomes 0xff, as guards
 * are. */
tcc_status tensor_write(session *s, const tensor *t, const void *host);
/* Where element i is on the machine, in elements. */
size_t tensor_place(const tensor *t, size_t i);

/* Reads the tensor back into `host`. *stray gets the number of bytes of guards, and between elements, that were
 * changed. */
tcc_status tensor_read(session *s, tensor *t, size_t *stray);

/* Poisons an output again. */
tcc_status tensor_poison(session *s, const tensor *t);
/* Whether the tensor on the machine is what `host` holds, bit by bit. */
tcc_status tensor_compare(session *s, const tensor *t, bool *equal);

/* Flat indices over all dimensions but the last: what a sample of --check counts in. */
size_t tensor_rows(const tensor *t);

#endif

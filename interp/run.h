/* run: one call of tcc_interp_run: the function, its parameters, and how errors are reported.
 *
 * interp.c       parameters and conditions; which level a function is of
 * exec.h         tile level and below
 * field.c        tensor level: fields, a row of an output at a time
 * contraction.c  its fast path for sums of products
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_RUN_H
#define TCC_INTERP_RUN_H

#include "interp/interp.h"
#include "ir/number.h"
#include "support/map.h"

#define TCC_MAX_ELEMENTS (INT64_MAX / 16) /* of a tensor: their bits can be counted */

/* A parameter of the signature: a tensor, or a scalar, which has rank 0. */
typedef struct tcc_param {
    const char *name;
    const tcc_type *type;
    double *data;
    int64_t *extents, *strides; /* in elements; row-major */
    int64_t count;
} tcc_param;

typedef struct tcc_run {
    const tcc_func *f, *signature, *workspace;
    const struct tcc_run *before; /* of the step before; NULL: this is the first */
    const tcc_interp_options *options;
    tcc_arena *scratch;
    tcc_diag *diag;
    uint64_t max_steps, max_bytes;
    bool machine; /* every result is rounded to its type */
    bool rehearsal; /* nothing is stored in tensors: clock.c counts what a CTA moves before it is timed */
    tcc_param *params;       /* the arguments, then the workspace tensors */
    size_t n_params, n_args;
    int64_t *base_align; /* of each parameter: bytes to which its address is aligned at least */
} tcc_run;

/* Reports an error at an op (NULL: at the function) and returns its status. */
#define TCC_FAIL(run, status, op, ...)                                                             \
    (tcc_error((run)->diag, (status), (op) ? ((const tcc_op *)(op))->loc : (run)->f->loc,          \
               __VA_ARGS__),                                                                       \
     (status))

/* TCC_ERR_LIMIT, reported, when n elements of some bytes more do not fit into the memory that the
 * run may need. */
tcc_status tcc_run_check_room(const tcc_run *run, const tcc_op *op, uint64_t n,
                              uint64_t elem_bytes);
/* Whether a run must end in its step of this number, and how: at an op, with a report, if it has taken too many steps;
 * without one if it is interrupted. */
static inline bool tcc_run_must_end(const tcc_run *run, uint64_t steps)
{
    const atomic_bool *interrupted = run->options->interrupted;
    return steps > run->max_steps || (interrupted && atomic_load_explicit(interrupted, memory_order_relaxed));
}
tcc_status tcc_run_end(const tcc_run *run, uint64_t steps, const tcc_op *op);
/* The extent of a dimension: a number, or a name in the signature's `dims`; -1 for neither. */
int64_t tcc_run_extent(const tcc_run *run, tcc_dim dim);
/* The same of an attribute: a number, a name, an expression, or [roundup, one of the former two, a number]. */
int64_t tcc_run_dim(const tcc_run *run, tcc_attr a);
/* How many CTAs a grid (ir/grid.h) has, INT64_MAX where they are more; -1: it names a dimension that is not there. */
int64_t tcc_run_ctas(const tcc_run *run, tcc_attr grid);
/* The number of clusters, of this many CTAs each, of a persistent kernel that has tiles for at most this
 * many, 1 or more: any number is legal, so the seed chooses one that leaves several tiles for a cluster; for a timeline
 * as many as a GPU would run. */
int64_t tcc_run_launched(const tcc_run *run, int64_t tiles, int64_t ctas);
/* n times the dimensions in a list; negative when that is too large or one of them is none. */
int64_t tcc_run_product(const tcc_run *run, tcc_attr factors, int64_t n);
/* The parameter of this name; NULL when there is none. */
const tcc_param *tcc_run_param(const tcc_run *run, const char *name);
/* The number as a tensor or scalar parameter holds it, and back. */
tcc_cell tcc_param_load(const tcc_param *p, int64_t at);
void tcc_param_store(const tcc_run *run, const tcc_param *p, int64_t at, tcc_cell v);
/* A tensor in memory: elements are little-endian; those of 4 bits share a byte, the even one in its
 * low half. Its size in bytes; n of them from byte `at` on, and back. */
int64_t tcc_param_bytes(const tcc_param *p);
void tcc_param_load_bytes(const tcc_param *p, int64_t at, int64_t n, uint8_t *to);
void tcc_param_store_bytes(const tcc_run *run, const tcc_param *p, int64_t at, int64_t n,
                           const uint8_t *from);

/* Runs the tensor.write ops of a function. */
tcc_status tcc_run_fields(tcc_run *run);

#endif

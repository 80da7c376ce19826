/* streams: kernels that reduce over one index in one loop over tiles of it, although some reductions need others, and
 * sums of products among them: sum(j) p[i, j] * V[j, e], where p is computed of sum(d) Q[i, d] * K[j, d] and of its
 * maximum over j.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_STREAMS_H
#define TCC_PASSES_STREAMS_H

#include "ir/access.h"
#include "ir/target.h"

/* A sum of products, of numbers of 16 bits in f32. An inner one, of each term, is over d: Q[i, d] * K[j, d]. A main
 * one is over j: p[i, j] * V[j, e]. */
typedef struct tcc_stream_product {
    tcc_op *sum;
    tcc_value *a, *b; /* the factor with i, and the one without; of narrow numbers, before they are widened */
    tcc_op *read_a;   /* tensor.read; NULL: a, of a main product, is computed */
    tcc_op *read_b;
    const char *x;    /* d or e, along which a tensor's rows run; of one read; its extent is a number */
    int64_t extent;
} tcc_stream_product;

typedef struct tcc_stream {
    const char *j;       /* the index over which the loop goes */
    tcc_dim extent;      /* its own */
    const char *i;       /* of the others the one along which there are rows: neither K nor V has it */
    const tcc_type *rows; /* has i and all others, of which a CTA has one value each */
    tcc_value *inside;   /* the condition of all reductions over j; NULL: they have none */
    TCC_VEC(tcc_stream_product) inner, main;
} tcc_stream;

/* Whether a function is such a kernel, along the index of its attribute `stream`. */
bool tcc_stream_find(const tcc_func *f, tcc_stream *out);
/* partition: finds the index, makes its names one, and says it in the attribute `stream`; false: it is no such
 * kernel. */
bool tcc_streams_recognize(tcc_func *f);
/* Whether passes make one loop of such a kernel for a target. */
bool tcc_streams_can_be_tiled(const tcc_target *target);

#endif

/* proof: of kernels while code is made of them. Neither has the other wait for its longest kernel.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_DRIVER_PROOF_H
#define TCC_DRIVER_PROOF_H

#include <pthread.h>

#include "checker/checker.h"

typedef struct tcc_proof {
    const tcc_ir *ir;
    pthread_t thread;
    bool runs;
    tcc_status status;
    double ms; /* duration */
    tcc_covered covered;
} tcc_proof;

/* Begins a proof in a thread of its own; false where there is no processor for that. The IR stays as it is until the
 * end. */
bool tcc_proof_begin(tcc_proof *p, const tcc_ir *ir);
/* Returns when it ended, with its result; TCC_OK as well where none began. What is wrong is reported. */
tcc_status tcc_proof_end(tcc_proof *p, tcc_diag *diag);

#endif

/* ahead: what a C file that tcc wrote calls, with the runtime in it: the kernels of a bundle on
 * whichever GPU is current, of either vendor. A program is loaded for each GPU when it is first
 * launched there, and stays until the process ends.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_AHEAD_H
#define TCC_RUNTIME_AHEAD_H

#include <pthread.h>
#include <stdatomic.h>

#include <tcc/tcc_runtime.h>

enum { TCC_AHEAD_VENDORS = TCC_VENDOR_AMD + 1 };

/* What is known of a vendor's GPUs. */
typedef struct tcc_ahead_vendor {
    enum { TCC_AHEAD_UNKNOWN, TCC_AHEAD_ABSENT, TCC_AHEAD_OPEN } state;
    tcc_runtime *rt;                    /* OPEN */
    _Atomic(tcc_program *) *programs;   /* of each GPU; NULL there: not yet */
} tcc_ahead_vendor;

/* Zero except for the bundle, the callback and the mutex. */
typedef struct tcc_ahead {
    const void *bundle;
    size_t size;
    tcc_diagnostic_fn fn;
    pthread_mutex_t mutex; /* of what is found and loaded */
    atomic_bool is_open;   /* vendors are known, at least one of them open */
    tcc_ahead_vendor vendors[TCC_AHEAD_VENDORS];
} tcc_ahead;

/* A launch of kernel k of the bundle, tcc_program_kernel_at's number, or what tcc_kernel_prepare does
 * of it. Returns as these and tcc_program_load, and TCC_ERR_NO_DRIVER where no GPU is current.
 * Thread-safe. */
tcc_status tcc_ahead_launch(tcc_ahead *a, size_t k, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                            size_t n_args, void *stream);
tcc_status tcc_ahead_prepare(tcc_ahead *a, size_t k, const int64_t *dims, size_t n_dims, const tcc_arg *args,
                             size_t n_args);

#endif

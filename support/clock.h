/* clock: how long things take.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_SUPPORT_CLOCK_H
#define TCC_SUPPORT_CLOCK_H

/* Milliseconds since some moment, the same for the whole process. Thread-safe. */
double tcc_now_ms(void);

#endif

/* stamps: where nvvm.stamp writes, for record-waits, which places the stamps, and for those who read them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_STAMPS_H
#define TCC_IR_STAMPS_H

enum {
    TCC_STAMPS_OF_WARP = 1 << 17, /* room for these */
    TCC_STAMP_WORDS = 2,
    TCC_STAMP_BYTES = 4 * TCC_STAMP_WORDS,
    TCC_STAMP_IDS = 1 << 12, /* ids are less */
};

#endif

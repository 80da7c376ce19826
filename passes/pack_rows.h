/* pack_rows: rows of heads that share what they multiply, as rows of one tile.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_PACK_ROWS_H
#define TCC_PASSES_PACK_ROWS_H

#include "ir/ir.h"

/* partition: packs rows of a function that one loop computes (streams.h); false: it is left as it is. */
bool tcc_pack_rows(tcc_func *f);

#endif

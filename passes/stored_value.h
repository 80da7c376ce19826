/* stored_value: what partition stores in place of a field.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_STORED_VALUE_H
#define TCC_PASSES_STORED_VALUE_H

#include "ir/ir.h"

/* The last of the fields with v's indices, computed elementwise, through which every use of v goes, and whose elements are
 * as narrow as any of these fields': all that uses v can read it instead. v itself where there is no other. Reductions that it
 * is computed of, beside v, are not needed by anything else; with `alone` there are none. `stays` says which fields may not
 * be stored; it gets `user`. */
tcc_value *tcc_stored_value(tcc_arena *scratch, tcc_value *v, bool alone,
                            bool (*stays)(const void *user, const tcc_value *), const void *user);

#endif

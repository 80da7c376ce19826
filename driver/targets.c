/* What a caller may know of the targets.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc.h>

#include "ir/nearest_target.h"
#include "ir/schedule_key.h"
#include "ir/target.h"

const char *tcc_target_name(size_t i)
{
    const tcc_target *t = tcc_target_at(i);
    return t ? t->name : NULL;
}

const char *tcc_target_nearest(const char *name, const char **how)
{
    tcc_nearest_target near = name ? tcc_nearest_target_find(name) : (tcc_nearest_target){NULL, NULL};
    if (how)
        *how = near.how;
    return near.target;
}

/* The number of element types that a row of the tables covers, and which they are: both signs of
 * integers. */
static size_t count_types(tcc_scalar row)
{
    return row == TCC_i8 || row == TCC_i4 ? 2 : 1;
}

static const char *type_of(tcc_scalar row, size_t i)
{
    tcc_scalar of_other_sign = row == TCC_i8 ? TCC_u8 : TCC_u4;
    return tcc_scalar_name(i ? of_other_sign : row);
}

bool tcc_target_product_at(const char *target, size_t i, tcc_target_product *out)
{
    const tcc_target *own = target ? tcc_target_find(target) : NULL;
    tcc_multiplied m;
    for (const tcc_target *t = own; t; t = t->plain ? tcc_target_find(t->plain) : NULL)
        for (size_t row = 0; tcc_target_multiplies(t, row, &m); row++) {
            size_t of_a = count_types(m.a), of_b = count_types(m.b);
            if (i < of_a * of_b) {
                *out = (tcc_target_product){tcc_schedule_key_word(&tcc_schedule_keys[TCC_KEY_instr], m.instr),
                                            type_of(m.a, i / of_b), type_of(m.b, i % of_b),
                                            tcc_scalar_name(m.acc)};
                return true;
            }
            i -= of_a * of_b;
        }
    return false;
}

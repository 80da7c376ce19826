/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/which_kernel.h"

void tcc_which_kernel_add(tcc_str *names, const char *name)
{
    tcc_str_printf(names, "%s'%s'", names->len ? ", " : "", name);
}

tcc_status tcc_which_kernel(tcc_diag *diag, const char *whole, const char *kernel, tcc_str *names)
{
    const char *has = names->len ? tcc_str_text(names) : "none";
    if (kernel)
        tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "the %s has no kernel '%s'; it has %s", whole, kernel, has);
    else
        tcc_error(diag, TCC_ERR_ARGUMENT, (tcc_loc){0}, "name the kernel; the %s has %s", whole, has);
    tcc_str_free(names);
    return TCC_ERR_ARGUMENT;
}

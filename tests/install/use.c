/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <tcc/tcc.h>
#include <tcc/tcc_bundle.h>
#include <tcc/tcc_jit.h>
#include <tcc/tcc_runtime.h>

int main(void)
{
    printf("%s %s\n", tcc_version(), tcc_status_name(TCC_OK));
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/shared/native.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tcc/tcc_runtime.h>

#include "tools/shared/command_line.h"

/* Why no GPU of each vendor is available. */
typedef struct reasons {
    char text[512];
    size_t len;
} reasons;

static void keep(const tcc_diagnostic *d, void *user)
{
    reasons *why = user;
    if (why->len < sizeof why->text)
        why->len += (size_t)snprintf(why->text + why->len, sizeof why->text - why->len, "%s%s",
                                     why->len ? "; " : "", d->message);
}

static char *target_of(tcc_vendor vendor, reasons *why)
{
    tcc_runtime *rt;
    tcc_device *dev;
    char *target = NULL;
    if (tcc_runtime_create_for(vendor, &rt, keep, why))
        return NULL;
    if (!tcc_device_open(rt, 0, &dev)) {
        target = strdup(tcc_device_arch(dev));
        if (!target)
            out_of_memory();
        tcc_device_close(dev);
    }
    tcc_runtime_destroy(rt);
    return target;
}

char *native_target(void)
{
    reasons why = {"", 0};
    char *target = target_of(TCC_VENDOR_NVIDIA, &why);
    if (!target)
        target = target_of(TCC_VENDOR_AMD, &why);
    if (target)
        return target;
    fprintf(stderr, "%s: --target=native: no GPU: %s\n", program_name, why.text);
    exit(EXIT_NO_DRIVER);
}

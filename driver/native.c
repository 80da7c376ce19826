/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/native.h"

#include <stdlib.h>
#include <string.h>

#include <tcc/tcc.h>

#include "runtime/runtime.h"

/* The later architecture is better, and of one the target that no other runs: sm_90a over sm_90. */
static bool is_better(const char *target, const char *other)
{
    static const char digits[] = "0123456789";
    long a = strtol(target + strcspn(target, digits), NULL, 10);
    long b = strtol(other + strcspn(other, digits), NULL, 10);
    return a != b ? a > b : strlen(target) > strlen(other);
}

const char *tcc_native_target(const tcc_driver *driver, const char *arch)
{
    const char *best = NULL, *target;
    for (size_t i = 0; (target = tcc_target_name(i)); i++)
        if (driver->runs(arch, target) && (!best || is_better(target, best)))
            best = target;
    return best;
}

const char *tcc_device_arch(const tcc_device *dev)
{
    if (!dev)
        return NULL;
    const char *target = tcc_native_target(dev->rt->driver, dev->arch);
    return target ? target : dev->arch;
}

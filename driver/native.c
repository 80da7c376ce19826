/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/native.h"

#include <tcc/tcc.h>

#include "runtime/bundle.h"
#include "runtime/runtime.h"

const char *tcc_native_target(const tcc_driver *driver, const char *arch)
{
    const char *best = NULL, *target;
    for (size_t i = 0; (target = tcc_target_name(i)); i++)
        if (driver->runs(arch, target, false) && (!best || tcc_is_better_target(target, best)))
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

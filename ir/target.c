/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/target.h"

#include <assert.h>
#include <string.h>

static const tcc_target targets[] = {
    {.name = "sm_90a",
     .smem_bytes = 227 * 1024,
     .registers = 65536,
     .thread_registers = 255,
     .max_threads = 1024,
     .sms = 132,
     .flops_per_cycle = 4096,
     .smem_bytes_per_cycle = 128,
     .l2_bytes_per_cycle = 56},
};

static const struct {
    const char *target;
    tcc_mma mma;
} mmas[] = {
#define MMA(id, target, m, k, n_step, n_max, in, acc, lanes, per8)                                 \
    {#target, {#id, m, k, n_step, n_max, TCC_##in, TCC_##acc, lanes, per8}},
#include "ir/mma.def"
};

/* The lanes hold D exactly once, for every N. */
#define MMA(id, target, m, k, n_step, n_max, in, acc, lanes, per8)                                 \
    static_assert((m) * 8 == (lanes) * (per8), #id ": lanes do not hold D exactly once");          \
    static_assert((n_max) % (n_step) == 0, #id ": N");
#include "ir/mma.def"

const tcc_target *tcc_target_at(size_t i)
{
    return i < sizeof targets / sizeof *targets ? &targets[i] : NULL;
}

const tcc_target *tcc_target_find(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i];
    return NULL;
}

const tcc_target *tcc_target_of(const tcc_ir *ir)
{
    return tcc_target_find(tcc_attr_str(&ir->attrs, "target", targets[0].name));
}

const tcc_mma *tcc_mma_find(const tcc_target *target, tcc_scalar in, tcc_scalar acc)
{
    for (size_t i = 0; i < sizeof mmas / sizeof *mmas; i++)
        if (!strcmp(mmas[i].target, target->name) && mmas[i].mma.in == in && mmas[i].mma.acc == acc)
            return &mmas[i].mma;
    return NULL;
}

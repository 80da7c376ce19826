/* choose-ctas: decide how many CTAs a multiprocessor is to have room for.
 *
 * Before:  func @f(…) {row = n, block = 512, min_ctas = 1, …}
 * After:   func @f(…) {row = n, block = 512, min_ctas = 2, …}
 *
 * CTAs that hold rows load them, reduce them and store them, one after the other: memory is busy while others are at
 * another point. An assembler takes more registers than it needs unless it is told how many CTAs are to have room.
 *
 * Requires the target level, of NVIDIA. Preserves the body.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "passes/live.h"
#include "passes/passes.h"
#include "passes/schedule.h"

enum {
    THREADS = 1024, /* of a multiprocessor, with which memory is busy */
    FEW = 16        /* registers: of more, assemblers were seen to need twice those that are live, and then spilled */
};

/* Whether rows are held in vectors. Loads of single elements need registers for their addresses, too, and are slower than
 * memory however many CTAs there are. */
static bool has_vectors(const tcc_func *f)
{
    const tcc_attr assumes = tcc_attr_list(&f->attrs, "assumes");
    bool has = false;
    for (size_t i = 0; i < assumes.list.n && !has; i++)
        has = assumes.list.items[i].kind == TCC_ATTR_LIST && assumes.list.items[i].list.n &&
              !strcmp(assumes.list.items[i].list.items[0].s, "align");
    return has;
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    int64_t block = tcc_attr_int(&f->attrs, "block", 0), ctas = block ? THREADS / block : 0;
    if (!tcc_attr_find(&f->attrs, "row") || !tcc_attr_find(&f->attrs, "min_ctas") || ctas < 2 || !has_vectors(f))
        return TCC_OK;
    int64_t need = tcc_live_registers(f, ctx->scratch).registers * 2 - FEW;
    while (ctas > 1 && tcc_launched_registers(tcc_target_of(f->ir), block * ctas) < need)
        ctas--;
    tcc_attr_set_int(ctx->ir, &f->attrs, "min_ctas", ctas);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_ctas = {
    "choose-ctas", "decide how many CTAs a multiprocessor is to have room for", .run = run};

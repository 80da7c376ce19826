/* record-waits: have the warps of one CTA write down when they wait, for a timeline.
 *
 * Before:  nvvm.mbarrier.wait %full, %parity
 * After:   nvvm.stamp %full {id = 7}
 *          nvvm.mbarrier.wait %full, %parity
 *          nvvm.stamp %full {id = 8, after = 1}
 *
 * This is done in kernels with the attribute `timeline`, the number of the CTA, or for their main step. Stamps are also
 * made when a warp begins and ends, starts a copy or MMAs, and at the first op of a block that writes results. The
 * operand is the address or the number of the barrier that the op names. The stamps are in the last workspace tensor,
 * whose words are 0 until then.
 *
 * Requires the target level. Preserves everything else.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/machine.h"
#include "ir/signature.h"
#include "ir/stamps.h"
#include "passes/arith.h"
#include "passes/passes.h"

enum { NOWHERE = 0, BEFORE = 1, AFTER = 2 };

/* An op that is stamped, and where: places ORed. */
typedef struct stamped {
    tcc_op *op;
    unsigned places;
} stamped;

static bool writes_results(const tcc_op *op)
{
    return tcc_op_does(op->code, TCC_WRITES_GLOBAL) ||
           (tcc_op_does(op->code, TCC_WRITES_SHARED) && tcc_op_does(op->code, TCC_MMA));
}

static bool is_first_write(const tcc_op *op)
{
    if (!writes_results(op))
        return false;
    for (op = op->prev; op && !writes_results(op); op = op->prev)
        ;
    return !op;
}

static bool closes_mmas(const tcc_op *op)
{
    return tcc_op_does(op->code, TCC_COUNTS) && tcc_op_does(op->code, TCC_BY_MMA_GROUP);
}

/* Whether the stamp that its MMAs have been started, just before it, says when it begins. */
static bool follows_mmas(const tcc_op *op)
{
    for (op = op->prev; op && tcc_op_info_get(op->code)->flags & TCC_PURE; op = op->prev)
        ;
    return op && closes_mmas(op);
}

static unsigned places_of(const tcc_op *op)
{
    tcc_global_use global = tcc_op_global_use(op->code);
    if (tcc_op_does(op->code, TCC_WAITS | TCC_REGISTERS))
        return follows_mmas(op) ? AFTER : BEFORE | AFTER;
    if (closes_mmas(op))
        return AFTER;
    return (global.any && global.async) || is_first_write(op) ? BEFORE : NOWHERE;
}

/* The barrier that an op names; NULL: none. */
static tcc_value *barrier_of(const tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    for (unsigned i = 0; i < info->n_operands; i++)
        if (!strcmp(info->operands[i].name, "bar") || !strcmp(info->operands[i].name, "id"))
            return op->operands[i];
    return NULL;
}

/* Where an op's waiting begins: a cluster's barrier is two ops that nothing may come between. */
static tcc_op *front_of(tcc_op *op)
{
    bool arrives = op->prev && op->code == TCC_OP_nvvm_cluster_wait && op->prev->code == TCC_OP_nvvm_cluster_arrive;
    return arrives ? op->prev : op;
}

static tcc_op *stamp(tcc_builder b, const tcc_op *about, int64_t id)
{
    b.loc = about->loc;
    tcc_value *barrier = barrier_of(about);
    tcc_op *op = TCC_EMIT_V(&b, nvvm_stamp, barrier ? barrier : tcc_build_i32(&b, 0));
    tcc_attr_set_int(b.func->ir, &op->attrs, "id", id);
    return op;
}

/* When the warp begins or ends, by both clocks. */
static int64_t stamp_both(tcc_func *f, tcc_op *about, int64_t id)
{
    tcc_op *time = stamp(tcc_builder_before(about), about, id);
    tcc_attr_set_int(f->ir, &time->attrs, "time", 1);
    stamp(tcc_builder_before(about), about, id + 1);
    return id + 2;
}

/* Makes room for the stamps, and says which CTA makes them. */
static void begin(tcc_func *f, int64_t cta, tcc_op *first)
{
    const int64_t warps = tcc_attr_int(&f->attrs, "block", 0) / TCC_WARP_LANES;
    const int64_t words = warps * TCC_STAMPS_OF_WARP * TCC_STAMP_WORDS;
    const tcc_type *type = tcc_type_sized(f->ir, TCC_KIND_tensor, TCC_i32, 1, &words);
    tcc_value *base = tcc_func_add_workspace_pointer(f, type, "stamps");
    tcc_func_zero_workspace(f, base->name);
    tcc_builder b = tcc_builder_before(first);
    tcc_op *op = TCC_EMIT_V(&b, nvvm_stamps, base);
    tcc_attr_set_int(f->ir, &op->attrs, "cta", cta);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    enum { MOST_OF_OP = 2 };
    int64_t cta = tcc_attr_int(&f->attrs, "timeline", -1), id = 1;
    if (cta < 0 || !tcc_func_is_entry(f) || tcc_func_main(f) != f)
        return TCC_OK;
    TCC_VEC(stamped) all = {0};
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (places_of(op))
            TCC_PUSH(ctx->scratch, &all, ((stamped){op, places_of(op)}));
    if (all.len * MOST_OF_OP + 2 * MOST_OF_OP >= TCC_STAMP_IDS) {
        tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, f->loc,
                  "a timeline of a kernel that waits at %zu places; it may be at %d", all.len,
                  TCC_STAMP_IDS / MOST_OF_OP - MOST_OF_OP);
        return TCC_ERR_UNSUPPORTED;
    }
    tcc_op *first = f->body->first;
    begin(f, cta, first);
    id = stamp_both(f, first, id);
    for (size_t i = 0; i < all.len; i++) {
        tcc_op *op = all.data[i].op;
        if (all.data[i].places & BEFORE)
            stamp(tcc_builder_before(front_of(op)), op, id++);
        if (all.data[i].places & AFTER)
            tcc_attr_set_int(f->ir, &stamp(tcc_builder_after(op), op, id++)->attrs, "after", 1);
    }
    stamp_both(f, f->body->last, id);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_record_waits = {"record-waits", "have one CTA write down when its warps wait", .run = run};

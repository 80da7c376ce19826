/* choose-variants: decide which entries a kernel gets.
 *
 * Before:  func @f(…) {…}        After:  func @f(…) {variant = tma, …}
 *                                        func @f__direct(…) {variant = direct, …}
 *                                        func @f__generic(…) {variant = generic}
 *
 * The first variant copies with the tensor memory accelerator (TMA), or on RDNA 16 bytes at a time
 * through buffer descriptors, and wants 16-byte aligned bases and row pitches. The second wants
 * less and reads and writes element by element what is no operand of the product. TMA still wants
 * the operands aligned: the variant is left out where that means that everything is. On RDNA it
 * copies operands of any pitch, 16 bytes at a time. The last variant takes anything. The runtime
 * launches the first that is valid for a launch's arguments. Variants that can never be valid are
 * left out.
 *
 * Requires a contraction. Preserves the body.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/schedule_key.h"
#include "passes/contraction.h"
#include "passes/families.h"
#include "passes/passes.h"

enum { ACCESS_BITS = 16 * 8 };

/* The bits of a tensor along dimension d, 0 when they are not known. */
static int64_t bits_along(const tcc_type *t, int d)
{
    return t->dims[d].name ? 0 : t->dims[d].size * tcc_scalar_bits(t->elem);
}

static int64_t row_bits(const tcc_type *t)
{
    return bits_along(t, (int)t->rank - 1);
}

static const char *why_not_contiguous(const tcc_op *read, const char *x, const char *k)
{
    return tcc_read_is_contiguous_in(read, x, k)
               ? NULL
               : "its last index is neither the summed one nor its own";
}

static const char *why_not_aligned(const tcc_op *read, const char *x, const char *k)
{
    const tcc_type *t = TCC_VIEW(tensor_read, read)->tensor->type;
    const char *why = why_not_contiguous(read, x, k);
    if (!why && t->rank > 1 && row_bits(t) % ACCESS_BITS)
        return "its rows are not a multiple of 16 bytes";
    return why;
}

/* TMA boxes are contiguous along the innermost dimension: cuTensorMapEncodeTiled. */
static const char *why_not_tma(const tcc_op *read, const char *x, const char *k)
{
    unsigned rank = TCC_VIEW(tensor_read, read)->tensor->type->rank;
    if (rank + (tcc_map_position(read, x) < 0) > 5) /* one for the rows that it does not have */
        return "it has more than 5 dimensions";
    return why_not_aligned(read, x, k);
}

/* Operands that are not contiguous along k are transposed in registers, by instructions that move
 * bytes. */
static const char *why_not_through_registers(const tcc_op *read, const char *x, const char *k)
{
    const tcc_value *tensor = TCC_VIEW(tensor_read, read)->tensor;
    if (tcc_scalar_bits(tensor->type->elem) < 8 && !tcc_read_is_contiguous_in(read, k, k))
        return "its rows run along its own index, and halves of bytes are not transposed on the way";
    if (tcc_map_position(read, x) < 0)
        return "it has no index of its own";
    return NULL;
}

static const char *why_not_buffer(const tcc_op *read, const char *x, const char *k)
{
    const char *why = why_not_through_registers(read, x, k);
    return why ? why : why_not_aligned(read, x, k);
}

/* Rows begin at any byte, but not within one, and hold what a lane loads at a time. */
static const char *why_not_unaligned(const tcc_op *read, const char *x, const char *k)
{
    const tcc_type *t = TCC_VIEW(tensor_read, read)->tensor->type;
    const char *why = why_not_through_registers(read, x, k);
    why = why ? why : why_not_contiguous(read, x, k);
    if (why)
        return why;
    int64_t bits = row_bits(t), along_k = bits_along(t, tcc_map_position(read, k));
    if ((bits && bits < ACCESS_BITS) || (along_k && along_k < ACCESS_BITS))
        return "it has less than 16 bytes along a row or along the sum";
    return bits % 8 ? "its rows are not whole bytes" : NULL;
}

const tcc_copying tcc_copying_by_tma = {.first = "tma",
                                        .means = "TMA",
                                        .why_not = why_not_tma,
                                        .direct = "tma",
                                        .counts_trips = true};
const tcc_copying tcc_copying_by_buffer = {.first = "buffer",
                                           .means = "16-byte accesses",
                                           .why_not = why_not_buffer,
                                           .direct = "unaligned",
                                           .why_not_direct = why_not_unaligned};

/* requires = [[min, K, 1]]: docs/abi.md */
static void require_at_least_one(tcc_ir *ir, tcc_func *f, const char *dim)
{
    tcc_attr *condition = TCC_NEW_ARRAY(ir->arena, tcc_attr, 3);
    condition[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(ir, "min")};
    condition[1] = (tcc_attr){.kind = TCC_ATTR_STR, .s = dim};
    condition[2] = (tcc_attr){.kind = TCC_ATTR_INT, .i = 1};
    tcc_attr *list = TCC_NEW(ir->arena, tcc_attr);
    *list = (tcc_attr){.kind = TCC_ATTR_LIST, .list = {condition, 3}};
    tcc_attr_set(ir, &f->attrs, "requires", (tcc_attr){.kind = TCC_ATTR_LIST, .list = {list, 1}},
                 (tcc_loc){0, 0});
}

/* The last dimension's name where rows of the tensor may be unaligned, else NULL. */
static const char *pitch_of(const tcc_value *tensor)
{
    const tcc_type *t = tensor->type;
    return t->rank ? t->dims[t->rank - 1].name : NULL;
}

/* True when rows may be unaligned where the first variant wants them aligned and the direct one
 * does not: of the product's operands; of something else although the operands' are aligned. */
static bool may_be_unaligned(const tcc_func *f, const tcc_contraction *c,
                             bool direct_wants_operands)
{
    const char *a = pitch_of(TCC_VIEW(tensor_read, c->a)->tensor);
    const char *b = pitch_of(TCC_VIEW(tensor_read, c->b)->tensor);
    if (!direct_wants_operands && (a || b))
        return true;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        const tcc_value *tensor = op->code == TCC_OP_tensor_read ? TCC_VIEW(tensor_read, op)->tensor
                                  : op->code == TCC_OP_tensor_write
                                      ? TCC_VIEW(tensor_write, op)->tensor
                                      : NULL;
        const char *pitch = tensor ? pitch_of(tensor) : NULL;
        if (pitch && pitch != a && pitch != b)
            return true;
    }
    return false;
}

static tcc_func *add_variant(tcc_pass_ctx *ctx, tcc_func *f, const char *variant)
{
    tcc_func *clone = tcc_func_clone(f, tcc_arena_printf(ctx->scratch, "%s__%s", f->name, variant));
    tcc_attr_set_str(ctx->ir, &clone->attrs, "variant", variant);
    return clone;
}

/* Why not both operands can be copied so, and which cannot; NULL when they can. */
static const char *why_not_both(const tcc_contraction *c, tcc_why_not *why_not, const tcc_op **culprit)
{
    *culprit = c->a;
    if (!c->k_extent.name && !c->k_extent.size)
        return "the sum is empty";
    const char *why = why_not(c->a, c->axes[0], c->k);
    if (why)
        return why;
    *culprit = c->b;
    return why_not(c->b, c->axes[1], c->k);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_contraction c;
    if (tcc_attr_find(&f->attrs, "variant") || !tcc_contraction_find(f, &c))
        return TCC_OK;
    const tcc_target *target = tcc_target_of(ctx->ir);
    const tcc_family_passes *passes = tcc_family_passes_wanted(target, ctx->diag, f->loc);
    if (!passes)
        return TCC_ERR_UNSUPPORTED;
    const tcc_copying *how = passes->copying;
    *changed = true;
    tcc_attr_set_str(ctx->ir, &f->attrs, "kernel", f->name);
    const tcc_op *culprit;
    tcc_why_not *of_direct = how->why_not_direct;
    const char *why_not_first = why_not_both(&c, how->why_not, &culprit);
    const char *why = of_direct ? why_not_both(&c, of_direct, &culprit) : why_not_first;
    bool direct = !why && (why_not_first || may_be_unaligned(f, &c, !of_direct));
    tcc_func *generic = f;
    if (!why || !why_not_first) {
        generic = add_variant(ctx, f, "generic");
        if (c.k_extent.name && how->counts_trips)
            require_at_least_one(ctx->ir, f, c.k_extent.name);
        if (direct && !why_not_first)
            add_variant(ctx, f, "direct");
    }
    tcc_attr_set_str(ctx->ir, &f->attrs, "variant",
                     !why_not_first ? how->first
                     : direct       ? "direct"
                                    : "generic");
    for (int i = 0; i < TCC_KEY_COUNT; i++) {
        const tcc_schedule_key *key = &tcc_schedule_keys[i];
        const tcc_named_attr *a = tcc_attr_find(&generic->attrs, key->name);
        if (key->of_every_variant)
            continue;
        if (a && generic == f)
            tcc_warn(ctx->diag, a->loc, "'%s' has no effect: '%s' is copied without %s because %s",
                     a->name, TCC_VIEW(tensor_read, culprit)->tensor->name, how->means,
                     why);
        tcc_attr_remove(&generic->attrs, key->name);
    }
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_variants = {
    "choose-variants", "decide which entries a kernel gets: tma or buffer, direct, generic", run};

/* Products of matrices: of warpgroups and of warps, and what loads and stores a warp's fragments.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "codegen/nvptx/nvptx.h"
#include "codegen/nvptx/ptx_builder.h"
#include "ir/fragment.h"

/* As PTX names it: integers by their sign. */
static tcc_ptx_arg ptx_type(tcc_lower *l, tcc_scalar elem)
{
    const char *name = tcc_scalar_name(elem);
    return (tcc_ptx_arg){.text = *name == 'i' ? tcc_arena_printf(l->arena, "s%s", name + 1) : name};
}

static const char *trans(const tcc_op *op)
{
    return tcc_attr_int(&op->attrs, "trans", 0) ? ".trans" : "";
}

/* The element type that an attribute says. */
static tcc_ptx_arg type_in(tcc_lower *l, const tcc_op *op, const char *attr)
{
    tcc_scalar elem = TCC_f16;
    tcc_attr_scalar(&op->attrs, attr, &elem); /* verified */
    return ptx_type(l, elem);
}

static tcc_ptx_arg words_of(tcc_lower *l, const tcc_value *v)
{
    return (tcc_ptx_arg){.list = tcc_lower_elems(l, v), .n = tcc_lower_count(v->type)};
}

/* Two of them in one register. */
static tcc_ptx_arg in_pairs(tcc_lower *l, tcc_ptx_arg words, tcc_scalar as)
{
    unsigned n = words.n / 2;
    return (tcc_ptx_arg){.list = tcc_lower_bitcast(l, words.list, words.n, l->types[as], n), .n = n};
}

/* What D has, in registers. */
static tcc_ptx_arg registers_of(tcc_lower *l, const tcc_value *v)
{
    tcc_ptx_arg words = words_of(l, v);
    return v->type->elem == TCC_f16 ? in_pairs(l, words, TCC_i32) : words;
}

/* For a fragment of wmma, or a product of fragments. */
static tcc_ptx_arg shape_of(const tcc_op *op)
{
    return (tcc_ptx_arg){.text = tcc_attr_str(&op->attrs, "shape", "m16n16k16")};
}

/* ---- warpgroup products ---------------------------------------------------------------- */

static bool is_product_op(const tcc_op *op)
{
    return op->code == TCC_OP_nvvm_wgmma_fence || op->code == TCC_OP_nvvm_wgmma ||
           op->code == TCC_OP_nvvm_wgmma_a || op->code == TCC_OP_nvvm_wgmma_commit ||
           op->code == TCC_OP_nvvm_wgmma_wait;
}

/* A value whose elements are an asm's results from number `first` on. */
typedef struct made_value {
    const tcc_value *value;
    unsigned first;
} made_value;

/* One asm for a run of product ops. LLVM's time goes into asms that tie all accumulators: one
 * for a run instead of one for each product saves a third of its code generation. */
typedef struct product_run {
    tcc_ptx ptx;
    TCC_VEC(made_value) made;
} product_run;

/* Finds a value that an op of the run made. */
static bool run_made(const product_run *run, const tcc_value *v, unsigned *first)
{
    for (size_t i = 0; i < run->made.len; i++)
        if (run->made.data[i].value == v) {
            *first = run->made.data[i].first;
            return true;
        }
    return false;
}

/* Whether op may be added: accumulators that the run made it may only take over, since their
 * registers are overwritten, and no other registers that it made are operands of a product. */
static bool can_join(const product_run *run, const tcc_op *op)
{
    unsigned first;
    if (op->code == TCC_OP_nvvm_wgmma || op->code == TCC_OP_nvvm_wgmma_a) {
        const tcc_value *acc = op->operands[0], *a = op->operands[1];
        return (acc->n_uses == 1 || !run_made(run, acc, &first)) && !run_made(run, a, &first);
    }
    for (unsigned i = 0; i < op->n_operands; i++) /* of wgmma.wait_group */
        if (run_made(run, op->operands[i], &first))
            return false;
    return true;
}

/* The accumulators of a product: the run's own, or others. */
static tcc_ptx_arg accumulators(tcc_lower *l, const product_run *run, const tcc_value *acc)
{
    unsigned first, n = tcc_lower_count(acc->type);
    return run_made(run, acc, &first) ? tcc_ptx_chain(first, n)
                                      : (tcc_ptx_arg){.list = tcc_lower_elems(l, acc), .n = n};
}

/* For an instruction whose operands are K-major. */
static unsigned add_k_major(tcc_lower *l, product_run *run, const tcc_op *op, const tcc_mma *mma)
{
    const tcc_nvvm_wgmma_operands *o = TCC_VIEW(nvvm_wgmma, op);
    return tcc_ptx_add(&run->ptx, tcc_ptx_info_get(mma->acc == TCC_f32 ? TCC_PTX_wgmma_f32 : TCC_PTX_wgmma_s32),
                       &(const tcc_ptx_wgmma_f32_args){.acc = accumulators(l, run, o->acc),
                                                       .n = {.in = tcc_nvptx_attr(l, op, "n")},
                                                       .k = {.in = tcc_lower_i32(l, mma->k)},
                                                       .type = ptx_type(l, mma->a),
                                                       .type_b = ptx_type(l, mma->b),
                                                       .a = {.in = tcc_lower_scalar(l, o->a)},
                                                       .b = {.in = tcc_lower_scalar(l, o->b)},
                                                       .scale_d = {.in = tcc_lower_scalar(l, o->scale_d)}});
}

static void add_wgmma(tcc_lower *l, product_run *run, const tcc_op *op)
{
    const tcc_nvvm_wgmma_operands *o = TCC_VIEW(nvvm_wgmma, op);
    const tcc_mma *mma = tcc_mma_of(op);
    unsigned first = !mma->across ? add_k_major(l, run, op, mma) : TCC_PTX_ADD(
        &run->ptx, wgmma, .acc = accumulators(l, run, o->acc), .n = {.in = tcc_nvptx_attr(l, op, "n")},
        .type = {.text = tcc_attr_str(&op->attrs, "type", "")},
        .a = {.in = tcc_lower_scalar(l, o->a)}, .b = {.in = tcc_lower_scalar(l, o->b)},
        .scale_d = {.in = tcc_lower_scalar(l, o->scale_d)},
        .trans_a = {.in = tcc_nvptx_attr(l, op, "trans_a")},
        .trans_b = {.in = tcc_nvptx_attr(l, op, "trans_b")});
    TCC_PUSH(l->arena, &run->made, (made_value){&op->results[0], first});
}

static void add_wgmma_a(tcc_lower *l, product_run *run, const tcc_op *op)
{
    const tcc_nvvm_wgmma_a_operands *o = TCC_VIEW(nvvm_wgmma_a, op);
    unsigned first = TCC_PTX_ADD(
        &run->ptx, wgmma_a, .acc = accumulators(l, run, o->acc), .n = {.in = tcc_nvptx_attr(l, op, "n")},
        .type = {.text = tcc_attr_str(&op->attrs, "type", "")},
        .a = {.list = tcc_lower_elems(l, o->a), .n = tcc_lower_count(o->a->type)},
        .b = {.in = tcc_lower_scalar(l, o->b)}, .scale_d = {.in = tcc_lower_scalar(l, o->scale_d)},
        .trans_b = {.in = tcc_nvptx_attr(l, op, "trans_b")});
    TCC_PUSH(l->arena, &run->made, (made_value){&op->results[0], first});
}

/* The operands of a wait that are of one element, one after the other. */
static tcc_ptx_arg operands_of(tcc_lower *l, const tcc_op *op, tcc_scalar elem)
{
    unsigned n = 0;
    for (unsigned i = 0; i < op->n_operands; i++)
        n += tcc_lower_count(op->operands[i]->type);
    LLVMValueRef *list = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    n = 0;
    for (unsigned i = 0; i < op->n_operands; i++) {
        unsigned count = tcc_lower_count(op->operands[i]->type);
        if (op->operands[i]->type->elem != elem)
            continue;
        memcpy(list + n, tcc_lower_elems(l, op->operands[i]), count * sizeof *list);
        n += count;
    }
    return (tcc_ptx_arg){.list = list, .n = n};
}

/* All that waits passes through one asm, or LLVM would hoist reads above the wait. */
static void add_wait(tcc_lower *l, product_run *run, const tcc_op *op)
{
    const tcc_scalar elems[] = {TCC_f32, TCC_i32};
    tcc_ptx_arg acc = operands_of(l, op, elems[0]), a = operands_of(l, op, elems[1]);
    unsigned first = TCC_PTX_ADD(&run->ptx, wgmma_wait, .acc = acc, .a = a,
                                 .pending = {.in = tcc_nvptx_attr(l, op, "pending")});
    for (int e = 0; e < 2; e++)
        for (unsigned i = 0; i < op->n_results; i++)
            if (op->results[i].type->elem == elems[e]) {
                TCC_PUSH(l->arena, &run->made, (made_value){&op->results[i], first});
                first += tcc_lower_count(op->results[i].type);
            }
}

/* Lowers the run that begins with op; returns its last op. */
static const tcc_op *lower_products(tcc_lower *l, const tcc_op *op)
{
    product_run run = {0};
    tcc_ptx_begin(&run.ptx, l->context, l->builder, l->arena);
    for (;; op = op->next) {
        switch (op->code) {
        case TCC_OP_nvvm_wgmma_fence: TCC_PTX_ADD(&run.ptx, wgmma_fence); break;
        case TCC_OP_nvvm_wgmma_commit: TCC_PTX_ADD(&run.ptx, wgmma_commit); break;
        case TCC_OP_nvvm_wgmma: add_wgmma(l, &run, op); break;
        case TCC_OP_nvvm_wgmma_a: add_wgmma_a(l, &run, op); break;
        default: add_wait(l, &run, op); break;
        }
        if (!op->next || !is_product_op(op->next) || !can_join(&run, op->next))
            break;
    }
    const LLVMValueRef *outs = tcc_ptx_end(&run.ptx);
    for (size_t i = 0; i < run.made.len; i++)
        tcc_lower_set(l, run.made.data[i].value, outs + run.made.data[i].first);
    return op;
}

/* ---- products of a warp ---------------------------------------------------------------------- */

/* The i-th of n parts. */
static tcc_ptx_arg share_of(tcc_ptx_arg words, unsigned i, unsigned n)
{
    return (tcc_ptx_arg){.list = words.list + words.n / n * i, .n = words.n / n};
}

/* What is multiplied, in registers: a number of 64 bits has one, not two words. */
static tcc_ptx_arg multiplied_of(tcc_lower *l, const tcc_value *v, tcc_scalar elem)
{
    tcc_ptx_arg words = words_of(l, v);
    return elem == TCC_f64 ? in_pairs(l, words, TCC_f64) : words;
}

/* The elements of D; a register holds two that are f16. */
static const LLVMValueRef *elements_of(tcc_lower *l, const tcc_op *op, const LLVMValueRef *registers, unsigned n)
{
    bool packed = op->results[0].type->elem == TCC_f16;
    return packed ? tcc_lower_bitcast(l, registers, n, l->types[TCC_f16], 2 * n) : registers;
}

static void lower_mma(tcc_lower *l, const tcc_op *op)
{
    static const tcc_ptx_id rows_of[] = {[TCC_f32] = TCC_PTX_mma_f32,
                                         [TCC_f16] = TCC_PTX_mma_f16,
                                         [TCC_f64] = TCC_PTX_mma_f64,
                                         [TCC_i32] = TCC_PTX_mma_s32};
    const tcc_nvvm_mma_operands *o = TCC_VIEW(nvvm_mma, op);
    tcc_scalar types[3];
    const tcc_mma_sync *mma = tcc_mma_sync_of(op, types);
    const char *rows = tcc_arena_printf(l->arena, "%lld", (long long)mma->rows);
    const char *k = tcc_arena_printf(l->arena, "%lld", (long long)mma->k);
    unsigned n = (unsigned)(mma->m / mma->rows);
    tcc_ptx_arg c = registers_of(l, o->c);
    tcc_ptx p;
    tcc_ptx_begin(&p, l->context, l->builder, l->arena);
    for (unsigned i = 0; i < n; i++)
        tcc_ptx_add(&p, tcc_ptx_info_get(rows_of[types[2]]),
                    &(const tcc_ptx_mma_f32_args){.acc = share_of(c, i, n),
                                                  .m = {.text = rows},
                                                  .k = {.text = k},
                                                  .ta = ptx_type(l, types[0]),
                                                  .tb = ptx_type(l, types[1]),
                                                  .a = share_of(multiplied_of(l, o->a, types[0]), i, n),
                                                  .b = multiplied_of(l, o->b, types[1])});
    tcc_lower_set(l, &op->results[0], elements_of(l, op, tcc_ptx_end(&p), c.n));
}

static void lower_wmma(tcc_lower *l, const tcc_op *op)
{
    const tcc_nvvm_wmma_mma_operands *o = TCC_VIEW(nvvm_wmma_mma, op);
    tcc_scalar acc = o->c->type->elem;
    const char *d = acc == TCC_i32 ? "s32" : tcc_scalar_name(acc), *types = tcc_arena_printf(l->arena, "%s.%s", d, d);
    if (acc == TCC_i32)
        types = tcc_arena_printf(l->arena, "s32.%s.%s.s32", type_in(l, op, "a").text, type_in(l, op, "b").text);
    tcc_ptx p;
    tcc_ptx_begin(&p, l->context, l->builder, l->arena);
    tcc_ptx_arg c = registers_of(l, o->c);
    tcc_ptx_add(&p, tcc_ptx_info_get(acc == TCC_f32 ? TCC_PTX_wmma_f : TCC_PTX_wmma_r),
                &(const tcc_ptx_wmma_f_args){.acc = c,
                                             .shape = shape_of(op),
                                             .la = {.text = tcc_attr_str(&op->attrs, "layout_a", "")},
                                             .lb = {.text = tcc_attr_str(&op->attrs, "layout_b", "")},
                                             .types = {.text = types},
                                             .a = words_of(l, o->a),
                                             .b = words_of(l, o->b)});
    tcc_lower_set(l, &op->results[0], elements_of(l, op, tcc_ptx_end(&p), c.n));
}

/* ---- fragments of a warp --------------------------------------------------------------------- */

/* Registers that a row makes. */
static tcc_ptx_arg made_words(tcc_lower *l, unsigned n)
{
    LLVMValueRef *words = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    for (unsigned i = 0; i < n; i++)
        words[i] = LLVMGetPoison(l->types[TCC_i32]);
    return (tcc_ptx_arg){.list = words, .n = n};
}

bool tcc_nvptx_add_fragment(tcc_ptx *p, tcc_lower *l, const tcc_op *op, LLVMValueRef addr)
{
    switch (op->code) {
    case TCC_OP_nvvm_stmatrix: {
        const tcc_value *a = TCC_VIEW(nvvm_stmatrix, op)->a;
        TCC_PTX_ADD(p, stmatrix, .trans = {.text = trans(op)}, .addr = {.in = addr},
                    .a = words_of(l, a));
        return true;
    }
    case TCC_OP_nvvm_wmma_store: {
        const tcc_value *a = TCC_VIEW(nvvm_wmma_store, op)->a;
        bool floats = a->type->elem == TCC_f32;
        tcc_ptx_add(p, tcc_ptx_info_get(floats ? TCC_PTX_wmma_store_f : TCC_PTX_wmma_store_r),
                    &(const tcc_ptx_wmma_store_f_args){
                        .shape = shape_of(op),
                        .type = {.text = a->type->elem == TCC_i32 ? "s32" : tcc_scalar_name(a->type->elem)},
                        .addr = {.in = addr},
                        .a = registers_of(l, a),
                        .stride = {.in = tcc_nvptx_attr(l, op, "stride")}});
        return true;
    }
    case TCC_OP_nvvm_wmma_load: {
        tcc_ptx_arg r = made_words(l, tcc_lower_count(op->results[0].type));
        TCC_PTX_ADD(p, wmma_load, .r = r, .of = {.text = tcc_attr_str(&op->attrs, "of", "")},
                    .shape = shape_of(op),
                    .layout = {.text = tcc_attr_str(&op->attrs, "layout", "")}, .type = type_in(l, op, "elem"),
                    .addr = {.in = addr}, .stride = {.in = tcc_nvptx_attr(l, op, "stride")});
        return true;
    }
    case TCC_OP_nvvm_ldmatrix: {
        tcc_ptx_arg r = made_words(l, tcc_lower_count(op->results[0].type));
        TCC_PTX_ADD(p, ldmatrix, .r = r, .trans = {.text = trans(op)},
                    .addr = {.in = addr});
        return true;
    }
    default: return false;
    }
}

const tcc_op *tcc_nvptx_lower_products(tcc_lower *l, const tcc_op *op)
{
    switch (op->code) {
    case TCC_OP_nvvm_mma: lower_mma(l, op); return op;
    case TCC_OP_nvvm_wmma_mma: lower_wmma(l, op); return op;
    default: return is_product_op(op) ? lower_products(l, op) : NULL;
    }
}

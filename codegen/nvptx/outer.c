/* Outer products of lanes: in which order their FMAs are issued, and which registers their sums get.
 *
 * An instruction reads three registers, of two banks: what it has in common with the one in front of it stays at hand
 * (.reuse), and three others of one bank take a cycle more, as do any three of 64 bits. So a run of FMAs goes through
 * the factors of A one by one, and through those of B there and back: each multiplies a factor of the one in front.
 * Scheduled by ptxas 13.0, a loop of 512 DFMA repeats fewer factors otherwise, 321 instead of 369.
 *
 * Sums that a loop leaves in registers which a vector store takes lie as their columns of B do, each in the bank of its
 * factor: 77 of 1024 FFMA read three registers of it. Copied behind the loop they get others, and none does.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "codegen/nvptx/nvptx.h"
#include "codegen/nvptx/ptx_builder.h"

/* One FMA of a run: a * b + c. */
typedef struct product {
    LLVMValueRef a, b, c;
    LLVMValueRef *out;
} product;

typedef TCC_VEC(product) products;

bool tcc_nvptx_is_outer(const tcc_op *op)
{
    const tcc_type *type = op->code == TCC_OP_arith_fma ? op->results[0].type : NULL;
    return type && type->kind == TCC_KIND_vec && (type->elem == TCC_f32 || type->elem == TCC_f64);
}

/* Whether op takes nothing that the run from `first` up to it makes. */
static bool is_independent(const tcc_op *first, const tcc_op *op)
{
    for (const tcc_op *of = first; of != op; of = of->next)
        for (unsigned i = 0; i < op->n_operands; i++)
            if (op->operands[i]->def == of)
                return false;
    return true;
}

static void add_products(tcc_lower *l, products *all, const tcc_op *op)
{
    unsigned n = tcc_lower_count(op->results[0].type);
    const LLVMValueRef *of[3];
    LLVMValueRef *outs = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    for (unsigned k = 0; k < 3; k++)
        of[k] = tcc_lower_elems(l, op->operands[k]);
    for (unsigned i = 0; i < n; i++)
        TCC_PUSH(l->arena, all, ((product){of[0][i], of[1][i], of[2][i], &outs[i]}));
    tcc_lower_set(l, &op->results[0], outs);
}

static void multiply(tcc_lower *l, product *p)
{
    const LLVMValueRef args[] = {p->a, p->b, p->c};
    *p->out = tcc_lower_intrinsic(l, "llvm.fma", LLVMTypeOf(p->a), 3, args);
}

/* All that multiply this factor of A, in the order of their factors of B, or from the last one on. */
static void multiply_row(tcc_lower *l, products *all, LLVMValueRef a, bool back)
{
    for (size_t i = 0; i < all->len; i++) {
        product *p = &all->data[back ? all->len - 1 - i : i];
        if (p->a == a && !*p->out)
            multiply(l, p);
    }
}

const tcc_op *tcc_nvptx_lower_outer(tcc_lower *l, const tcc_op *op)
{
    products all = {0};
    const tcc_op *first = op;
    add_products(l, &all, op);
    while (op->next && tcc_nvptx_is_outer(op->next) && op->next->results[0].type->elem == first->results[0].type->elem &&
           is_independent(first, op->next))
        add_products(l, &all, op = op->next);
    bool back = false;
    for (size_t i = 0; i < all.len; i++)
        if (!*all.data[i].out) {
            multiply_row(l, &all, all.data[i].a, back);
            back = !back;
        }
    return op;
}

/* Whether v is a sum that a loop in front of this block has come to. */
static bool is_sum_of_loop(const tcc_lower *l, LLVMValueRef v)
{
    size_t length;
    LLVMValueRef callee = LLVMIsACallInst(v) ? LLVMGetCalledValue(v) : NULL;
    return callee && LLVMIsAFunction(callee) && LLVMGetInstructionParent(v) != LLVMGetInsertBlock(l->builder) &&
           !strncmp(LLVMGetValueName2(callee, &length), "llvm.fma.", sizeof "llvm.fma." - 1);
}

const LLVMValueRef *tcc_nvptx_copy_sums(tcc_lower *l, const LLVMValueRef *elems, unsigned n)
{
    LLVMValueRef *copies = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    for (unsigned i = 0; i < n; i++) {
        copies[i] = elems[i];
        if (LLVMTypeOf(elems[i]) != l->types[TCC_f32] || !is_sum_of_loop(l, elems[i]))
            continue;
        tcc_ptx p;
        tcc_ptx_begin(&p, l->context, l->builder, l->arena);
        TCC_PTX_ADD(&p, copy_f32, .a = {.in = elems[i]});
        copies[i] = tcc_ptx_end(&p)[0];
    }
    return copies;
}

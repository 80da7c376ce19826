/* Outer products of lanes: the order in which their FMAs are issued, and the registers of their
 * sums.
 *
 * An instruction reads three registers, of two banks: an operand that it shares with the previous instruction is
 * reused (.reuse), and three others of one bank take one more cycle, as do any three of 64 bits. So a run of FMAs
 * goes through the elements of A one by one, and through those of B back and forth: each shares an operand with the
 * previous one. Without this ptxas 13.0 schedules a loop of 512 DFMA with fewer reused operands, 321 instead of 369.
 *
 * Sums in registers that a vector store takes after a loop are arranged like their columns of B, each in the bank of
 * its operand: 77 of 1024 FFMA read three registers of one bank. Copied after the loop they get other registers, and
 * none does.
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

/* All products of this element of A, in the order of their elements of B, or in reverse. */
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
    while (op->next && tcc_nvptx_is_outer(op->next) &&
           op->next->results[0].type->elem == first->results[0].type->elem && is_independent(first, op->next))
        add_products(l, &all, op = op->next);
    bool back = false;
    for (size_t i = 0; i < all.len; i++)
        if (!*all.data[i].out) {
            multiply_row(l, &all, all.data[i].a, back);
            back = !back;
        }
    return op;
}

/* Whether v is a sum that results from a loop before this block. */
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

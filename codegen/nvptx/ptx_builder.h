/* ptx_builder: PTX instructions as LLVM inline assembly, derived from ptx.def.
 *
 *     tcc_ptx p;
 *     tcc_ptx_begin(&p, context, builder, arena);
 *     unsigned out = TCC_PTX_ADD(&p, wgmma, .acc = {.list = acc, .n = 128}, .n = {n}, …);
 *     TCC_PTX_ADD(&p, wgmma, .acc = tcc_ptx_chain(out, 128), …);
 *     const LLVMValueRef *outs = tcc_ptx_end(&p);                -- outs[out] is the first result
 *
 * makes one inline asm of both instructions, its constraints and clobbers derived. A register
 * that flows from row to row is one tied operand.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_NVPTX_PTX_BUILDER_H
#define TCC_CODEGEN_NVPTX_PTX_BUILDER_H

#include <llvm-c/Core.h>
#include <stdbool.h>

#include "support/arena.h"

typedef enum tcc_ptx_id {
#define PTX(id, ...) TCC_PTX_##id,
#include "codegen/nvptx/ptx.def"
    TCC_PTX_COUNT
} tcc_ptx_id;

/* An operand: .bar = {value}. */
typedef struct tcc_ptx_arg {
    LLVMValueRef value; /* goes in; not for OUT */
    /* for lists, instead: */
    const LLVMValueRef *list;
    unsigned n;
    /* for INOUT and INOUT_LIST, instead: n results of an earlier row from out number `first` on */
    bool chained;
    unsigned first;
    /* for TEXT, instead: */
    const char *text;
} tcc_ptx_arg;

/* tcc_ptx_bar_sync_args: the operands of a row by name. */
#define IN(name, letter) tcc_ptx_arg name;
#define OUT(name, letter)
#define INOUT(name, letter) tcc_ptx_arg name;
#define IN_LIST(name, letter) tcc_ptx_arg name;
#define INOUT_LIST(name, letter) tcc_ptx_arg name;
#define TEXT(name) tcc_ptx_arg name;
#define NO_OPERANDS
#define PTX(id, text, operands, effects)                                                           \
    typedef struct tcc_ptx_##id##_args {                                                           \
        tcc_ptx_arg guard; /* the i1 under which the instruction runs; always, when not given */   \
        operands                                                                                   \
    } tcc_ptx_##id##_args;
#include "codegen/nvptx/ptx.def"
#undef IN
#undef OUT
#undef INOUT
#undef IN_LIST
#undef INOUT_LIST
#undef TEXT
#undef NO_OPERANDS

typedef struct tcc_ptx_row tcc_ptx_row;

typedef struct tcc_ptx_operand {
    LLVMValueRef value; /* NULL for a result that takes nothing in */
    char letter;
} tcc_ptx_operand;

/* One inline asm in the making. */
typedef struct tcc_ptx {
    LLVMContextRef context;
    LLVMBuilderRef builder;
    tcc_arena *arena;
    unsigned effects;
    TCC_VEC(tcc_ptx_row) rows;
    TCC_VEC(tcc_ptx_operand) outs;
    TCC_VEC(tcc_ptx_operand) ins;
} tcc_ptx;

void tcc_ptx_begin(tcc_ptx *p, LLVMContextRef context, LLVMBuilderRef builder, tcc_arena *arena);
/* Appends a row; `args` is its tcc_ptx_…_args. Returns the number of its first result. */
unsigned tcc_ptx_add(tcc_ptx *p, tcc_ptx_id id, const void *args);
/* Builds the call. The results by number; valid as long as the arena. */
const LLVMValueRef *tcc_ptx_end(tcc_ptx *p);

#define TCC_PTX_ADD(p, id, ...)                                                                    \
    tcc_ptx_add((p), TCC_PTX_##id, &(const tcc_ptx_##id##_args){__VA_ARGS__})

static inline tcc_ptx_arg tcc_ptx_chain(unsigned first, unsigned n)
{
    return (tcc_ptx_arg){.chained = true, .first = first, .n = n};
}

#endif

/* ptx_builder: PTX instructions as LLVM inline assembly, derived from ptx.def.
 *
 *     tcc_ptx p;
 *     tcc_ptx_begin(&p, context, builder, arena);
 *     unsigned out = TCC_PTX_ADD(&p, wgmma, .acc = {.list = acc, .n = 128}, .n = {.in = n}, …);
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

/* An operand: .bar = {.in = value}. */
typedef struct tcc_ptx_arg {
    LLVMValueRef in; /* the value, but not for OUT */
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

/* ---- rows ------------------------------------------------------------------------------ */

enum tcc_ptx_effects {
    TCC_PTX_VOLATILE = 1,  /* neither removed nor merged */
    TCC_PTX_MEMORY = 2,    /* nor is any access to memory moved across it */
    TCC_PTX_CONVERGENT = 4 /* nor is it made to depend on further conditions */
};

typedef enum tcc_ptx_direction {
    TCC_PTX_TEXT,
    TCC_PTX_IN,
    TCC_PTX_OUT,
    TCC_PTX_INOUT
} tcc_ptx_direction;

enum { TCC_PTX_MAX_OPERANDS = 9 };

typedef struct tcc_ptx_operand_info {
    const char *name; /* NULL ends a row */
    const char *letter;
    tcc_ptx_direction dir;
    bool list;
} tcc_ptx_operand_info;

typedef struct tcc_ptx_info {
    const char *text;
    tcc_ptx_operand_info operands[TCC_PTX_MAX_OPERANDS + 1];
    unsigned effects;
} tcc_ptx_info;

/* A row of ptx.def. */
const tcc_ptx_info *tcc_ptx_info_get(tcc_ptx_id id);

/* ---- building -------------------------------------------------------------------------- */

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
/* Appends an instruction. `args` begins with its guard, and has one for each operand but OUT: a
 * tcc_ptx_…_args. Returns the number of its first result. */
unsigned tcc_ptx_add(tcc_ptx *p, const tcc_ptx_info *info, const void *args);
/* Builds the call. The results by number; valid as long as the arena. */
const LLVMValueRef *tcc_ptx_end(tcc_ptx *p);

#define TCC_PTX_ADD(p, id, ...)                                                                    \
    tcc_ptx_add((p), tcc_ptx_info_get(TCC_PTX_##id), &(const tcc_ptx_##id##_args){__VA_ARGS__})

static inline tcc_ptx_arg tcc_ptx_chain(unsigned first, unsigned n)
{
    return (tcc_ptx_arg){.chained = true, .first = first, .n = n};
}

#endif

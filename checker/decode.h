/* decode: what decode.c, needs.c and slots.c share: a function while it is read.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_DECODE_H
#define TCC_CHECKER_DECODE_H

#include "checker/model.h"
#include "support/map.h"

enum { NOT_NEEDED = 0, NEEDED = 1, EXACT = INT32_MAX, MAX_MODULUS = 1 << 16, MAX_THRESHOLD = 64 };
enum { MAX_NESTING = 64, GRANULE = 8 };

/* How much of a value is needed: its remainder by `modulus`, and numbers below half of `threshold`,
 * rounded down, or up where nothing may be left unknown. */
typedef struct need {
    const tcc_value *value;
    int64_t modulus, threshold;
    bool in_flight; /* an MMA may still access it */
    bool taken;     /* an MMA adds to it, or takes its A from it */
    uint32_t slot;
} need;

typedef struct source {
    const tcc_op *op;
    uint32_t *operands;
    uint32_t results;        /* number of the first */
    uint32_t *args;          /* of each region, number of the first argument */
    uint32_t parent, region; /* source + 1, 0: the body; which of its regions */
    uint64_t touches;        /* registers of MMAs, a bit each */
    uint32_t tensor;         /* the followed tensor that it accesses */
    tcc_pplace *place;       /* where it accesses `tensor`, or copies to in `sent_to` */
    uint32_t sent_to;        /* the tensor, only written, to which it copies */
    bool matters, waits, open;
} source;

typedef struct decoder {
    tcc_protocol *p;
    tcc_map numbers;
    TCC_VEC(need) needs;
    TCC_VEC(source) sources;
    tcc_pinst *insts;
    tcc_registers *registers;
    bool changed;
} decoder;

/* What draws a number changes which one the next is, whether it is wanted or not. */
static inline bool is_followed(const tcc_op *op)
{
    return tcc_op_does(op->code, TCC_P_FOLLOWED) || op->code == TCC_OP_nvvm_atom_inc;
}
static inline bool is_tracked(const need *n)
{
    return n->in_flight || n->taken;
}

/* decode.c: the number of a value, by which `needs` has it. */
uint32_t tcc_p_number_of(decoder *d, const tcc_value *v);
/* needs.c: one source asks for what it needs, those behind it having been seen. */
void tcc_p_walk_back(decoder *d, source *s);
/* Finds registers that MMAs may access, and what else accesses them. */
void tcc_p_find_registers(decoder *d);
/* A bit for the registers of MMAs that a value is in; more than there are bits share the last. */
uint64_t tcc_p_registers_of(const decoder *d, const tcc_value *v);
/* slots.c: writes a block's ops from the i-th source on; gives the one behind them. */
size_t tcc_p_write_block(decoder *d, size_t i, uint32_t parent, uint32_t region, uint32_t args, tcc_pcode *code);
/* Finds slots that are not wanted once a loop has begun. */
void tcc_p_find_dying(tcc_protocol *p, tcc_pcode *code);

#endif

/* program: a function as the executor reads it. Values have numbers, ops know those of their
 * operands and results, and regions are arrays.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_PROGRAM_H
#define TCC_INTERP_PROGRAM_H

#include "interp/run.h"

typedef struct tcc_inst {
    const tcc_op *op;
    uint32_t *operands, *results; /* numbers of values */
    struct tcc_code *regions;
    uint32_t wanted_twice; /* target level: operands from tcc_registers_wanted_twice */
    bool is_own;           /* no other thread waits for what it does */
    bool passes;           /* tcc_registers_pass: operands may be what an MMA still accesses */
} tcc_inst;

typedef struct tcc_code {
    tcc_inst *insts;
    size_t n;
    uint32_t *args; /* numbers of the block's arguments */
    size_t n_args;
} tcc_code;

typedef struct tcc_program {
    tcc_code body;
    /* For each value: its type, the number of its cells and the first of them; fields have none. At
     * the target level the registers of MMAs that contain it, 0: none. */
    struct {
        const tcc_type *type;
        size_t count, offset;
        unsigned registers;
    } * values;
    size_t n_values, n_cells;
    unsigned n_registers;
    size_t depth; /* of nested regions */
} tcc_program;

/* Cells of a buffer descriptor: the number of the tensor, the offset of its first byte there,
 * bytes. */
enum { TCC_BUFFER_TENSOR, TCC_BUFFER_OFFSET, TCC_BUFFER_BYTES, TCC_BUFFER_CELLS };

/* Decodes a function; TCC_ERR_UNSUPPORTED when its regions are nested too deeply, or an op is of
 * none of these levels. */
tcc_status tcc_program_decode(tcc_run *run, unsigned levels, tcc_program *p);

#endif

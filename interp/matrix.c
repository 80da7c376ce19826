/* matrix: 8 x 8 matrices of 16-bit numbers between shared memory and the lanes of a warp, and words
 * from lane to lane.
 *
 * PTX ISA, "ldmatrix", "stmatrix": lane l provides the address of row l % 8 of matrix l / 8. "shfl.sync": the segment
 * is the whole warp; a lane whose source is outside keeps its own.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"
#include "ir/fragment.h"

enum { ROWS = 8, ROW_BYTES = 16 };

typedef struct matrix {
    uint16_t at[ROWS][ROWS]; /* [row][column] as in shared memory */
} matrix;

/* The element of a matrix that is half h of lane l. */
static uint16_t *element(matrix *m, const tcc_places *places, unsigned lane, unsigned h, bool trans)
{
    tcc_place p = tcc_place_in(places, h, lane);
    return trans ? &m->at[p.col][p.row] : &m->at[p.row][p.col];
}

tcc_outcome tcc_eval_nvvm_stmatrix(tcc_thread *t, const tcc_inst *in)
{
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    bool trans = tcc_attr_int(&in->op->attrs, "trans", 0);
    const tcc_places places = tcc_fragment_places(&tcc_fragments[TCC_FRAGMENT_ldmatrix]);
    const tcc_cell *words = tcc_cells(t, in->operands[1]);
    size_t n = t->x->program->values[in->operands[1]].count;
    for (unsigned i = 0; i < n; i++) {
        matrix m;
        for (unsigned l = 0; l < TCC_WARP_LANES; l++)
            for (unsigned h = 0; h < 2; h++)
                *element(&m, &places, l, h, trans) =
                    (uint16_t)((uint64_t)words[i * TCC_WARP_LANES + l].i >> 16 * h);
        for (unsigned r = 0; r < ROWS; r++) {
            uint8_t row[ROW_BYTES];
            memcpy(row, m.at[r], ROW_BYTES); /* little-endian, as the GPU */
            t->x->lane = (int)(i * ROWS + r);
            if (!tcc_smem_store(t, t->warp->cta, in->op, t->mask, tcc_lane_int(t, in, 0, i * ROWS + r), row,
                                ROW_BYTES, TCC_COMPUTED))
                return TCC_FAILED;
        }
    }
    t->warp->accessed |= t->mask;
    return TCC_NEXT;
}

/* Reads a row at the address that a lane provides. */
static bool load_row(tcc_thread *t, const tcc_inst *in, unsigned lane, uint16_t *row)
{
    tcc_cta *c = t->warp->cta;
    tcc_accessor by = tcc_warp_accessor(t, t->mask);
    t->warp->unsynced |= t->mask;
    int64_t address = tcc_lane_int(t, in, 0, lane);
    t->x->lane = (int)lane;
    const uint8_t *bytes = tcc_smem_at(c, in->op, address, ROW_BYTES, ROW_BYTES);
    if (!bytes || !tcc_smem_read(c, in->op, &by, address, ROW_BYTES))
        return false;
    if (!tcc_smem_is_written(c, address, ROW_BYTES)) {
        TCC_WRONG(t->x, in->op,
                  "nvvm.ldmatrix reads shared memory at byte %lld that was never written",
                  (long long)(address - TCC_SMEM_BASE));
        return false;
    }
    memcpy(row, bytes, ROW_BYTES);
    return true;
}

tcc_outcome tcc_eval_nvvm_ldmatrix(tcc_thread *t, const tcc_inst *in)
{
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    bool trans = tcc_attr_int(&in->op->attrs, "trans", 0);
    const tcc_places places = tcc_fragment_places(&tcc_fragments[TCC_FRAGMENT_ldmatrix]);
    tcc_cell *words = tcc_cells(t, in->results[0]);
    size_t n = t->x->program->values[in->results[0]].count;
    t->warp->accessed |= t->mask;
    for (unsigned i = 0; i < n; i++) {
        matrix m;
        for (unsigned r = 0; r < ROWS; r++)
            if (!load_row(t, in, i * ROWS + r, m.at[r]))
                return TCC_FAILED;
        for (unsigned l = 0; l < TCC_WARP_LANES; l++) {
            uint32_t low = *element(&m, &places, l, 0, trans), high = *element(&m, &places, l, 1, trans);
            words[i * TCC_WARP_LANES + l].i = (int32_t)(high << 16 | low);
        }
    }
    return TCC_NEXT;
}

/* ---- shuffles and shifts ---------------------------------------------------------------- */

tcc_outcome tcc_eval_nvvm_shf(tcc_thread *t, const tcc_inst *in)
{
    for (unsigned l = 0; l < TCC_WARP_LANES; l++) {
        uint64_t both = (uint64_t)(uint32_t)tcc_lane_int(t, in, 1, l) << 32 | (uint32_t)tcc_lane_int(t, in, 0, l);
        tcc_cells(t, in->results[0])[l] = tcc_decode((uint32_t)(both >> (tcc_lane_int(t, in, 2, l) & 31)), TCC_i32);
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_any(tcc_thread *t, const tcc_inst *in)
{
    int64_t any = 0;
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        any |= tcc_lane_int(t, in, 0, l);
    return tcc_converged(t, in) ? tcc_give(t, in, any) : TCC_FAILED;
}

tcc_outcome tcc_eval_nvvm_shfl(tcc_thread *t, const tcc_inst *in)
{
    if (!tcc_converged(t, in))
        return TCC_FAILED;
    const char *kind = tcc_attr_str(&in->op->attrs, "kind", "idx");
    const tcc_cell *a = tcc_cells(t, in->operands[0]);
    tcc_cell *r = tcc_cells(t, in->results[0]);
    for (int64_t l = 0; l < TCC_WARP_LANES; l++) {
        int64_t b = tcc_lane_int(t, in, 1, (unsigned)l) & (TCC_WARP_LANES - 1);
        int64_t from = *kind == 'u' ? l - b : *kind == 'd' ? l + b : *kind == 'b' ? l ^ b : b;
        r[l] = a[from >= 0 && from < TCC_WARP_LANES ? from : l];
    }
    return TCC_NEXT;
}

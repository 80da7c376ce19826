/* wmma_sync: fragments of wmma.load, wmma.mma and wmma.store, of which only these know where their elements are.
 *
 * PTX ISA, "Matrix Fragments for WMMA": which lane has what is unspecified, and another for A and B, for each type and
 * each layout. Here the elements of a fragment are numbered, of lane after lane, and an element is where the table has
 * the one whose number differs by some bits, others for each kind of fragment. So nothing comes out right that takes
 * one kind for another, or believes what the table says.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"
#include "interp/mma_sync.h"

enum { MOST_LINES = 32, WORD_BITS = 32, MOST_BYTES = MOST_LINES * 4 };

/* A and B have a layout, D has none. */
static unsigned kind_of(tcc_fragment_id id, tcc_scalar elem, bool columns)
{
    return ((unsigned)id * 2 + columns) * TCC_SCALAR_COUNT + (unsigned)elem;
}

tcc_held tcc_held_openly(tcc_fragment_id id)
{
    const tcc_fragment *f = &tcc_fragments[id];
    return (tcc_held){tcc_fragment_places(f), f->elements.n, 0};
}

tcc_held tcc_held_opaquely(tcc_fragment_id id, tcc_scalar elem, bool columns)
{
    tcc_held h = tcc_held_openly(id);
    unsigned all = TCC_WARP_LANES << h.n_log2;
    h.bits = kind_of(id, elem, columns) * 37 % (all - 1) + 1;
    return h;
}

/* The number of bytes that lines must be multiples of: the size of a lane's part of the fragment ("Matrix Storage
 * for WMMA"). */
static int64_t alignment_of(tcc_fragment_id id, tcc_scalar elem)
{
    return (int64_t)tcc_fragment_elements(&tcc_fragments[id], 0) * tcc_scalar_bits(elem) / 8;
}

/* Where line `number` begins. */
static int64_t line_at(tcc_thread *t, const tcc_inst *in, tcc_scalar elem, unsigned number)
{
    int64_t stride = tcc_attr_int(&in->op->attrs, "stride", 0) * tcc_scalar_bits(elem) / 8;
    return tcc_lane_int(t, in, 0, 0) + stride * number;
}

static bool begins(tcc_thread *t, const tcc_inst *in)
{
    t->warp->accessed |= t->mask;
    return tcc_converged(t, in) && tcc_is_uniform(t, in, 0, "addresses");
}

static const uint8_t *load_line(tcc_thread *t, const tcc_inst *in, int64_t address, int64_t n, int64_t align)
{
    tcc_cta *c = t->warp->cta;
    tcc_accessor by = tcc_warp_accessor(t, t->mask);
    t->warp->unsynced |= t->mask;
    const uint8_t *bytes = tcc_smem_at(c, in->op, address, n, align);
    if (!bytes || !tcc_smem_read(c, in->op, &by, address, n))
        return NULL;
    if (tcc_smem_is_written(c, address, n))
        return bytes;
    TCC_WRONG(t->x, in->op, "nvvm.wmma.load reads shared memory at byte %lld that was never written",
              (long long)(address - TCC_SMEM_BASE));
    return NULL;
}

tcc_outcome tcc_eval_nvvm_wmma_load(tcc_thread *t, const tcc_inst *in)
{
    tcc_scalar elem;
    uint8_t lines[MOST_LINES][MOST_BYTES];
    unsigned n_lines, n_elems;
    if (!begins(t, in))
        return TCC_FAILED;
    tcc_fragment_id id = tcc_mma_sync_accessed(in->op, &elem);
    tcc_mma_sync_lines(in->op, id, &n_lines, &n_elems);
    unsigned bits = tcc_scalar_bits(elem), per_word = WORD_BITS / bits, bytes = bits / 8;
    for (unsigned i = 0; i < n_lines; i++) {
        const uint8_t *line = load_line(t, in, line_at(t, in, elem, i), n_elems * bytes, alignment_of(id, elem));
        if (!line)
            return TCC_FAILED;
        memcpy(lines[i], line, (size_t)n_elems * bytes);
    }
    bool columns = !strcmp(tcc_attr_str(&in->op->attrs, "layout", ""), "col");
    tcc_held held = tcc_held_opaquely(id, elem, columns);
    tcc_cell *words = tcc_cells(t, in->results[0]);
    for (unsigned l = 0; l < TCC_WARP_LANES; l++)
        for (unsigned e = 0; e < tcc_fragment_elements(&tcc_fragments[id], l); e++) {
            tcc_place at = tcc_held_place(&held, e, l);
            unsigned line = columns ? at.col : at.row, place = columns ? at.row : at.col;
            uint32_t element = 0, word = e % per_word ? (uint32_t)words[e / per_word * TCC_WARP_LANES + l].i : 0;
            memcpy(&element, lines[line] + (size_t)place * bytes, bytes); /* little-endian, as the GPU */
            words[e / per_word * TCC_WARP_LANES + l].i = (int32_t)(word | element << e % per_word * bits);
        }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_nvvm_wmma_store(tcc_thread *t, const tcc_inst *in)
{
    tcc_scalar elem;
    uint8_t lines[MOST_LINES][MOST_BYTES];
    unsigned n_lines, n_elems;
    if (!begins(t, in))
        return TCC_FAILED;
    tcc_fragment_id id = tcc_mma_sync_accessed(in->op, &elem);
    tcc_mma_sync_lines(in->op, id, &n_lines, &n_elems);
    unsigned bytes = tcc_scalar_bits(elem) / 8, n = tcc_fragment_elements(&tcc_fragments[id], 0);
    tcc_held held = tcc_held_opaquely(id, elem, false);
    for (unsigned l = 0; l < TCC_WARP_LANES; l++) {
        uint8_t own[MOST_BYTES];
        tcc_value_to_bytes(t, in->operands[1], l, own);
        for (unsigned e = 0; e < n; e++) {
            tcc_place at = tcc_held_place(&held, e, l);
            memcpy(lines[at.row] + (size_t)at.col * bytes, own + (size_t)e * bytes, bytes);
        }
    }
    for (unsigned i = 0; i < n_lines; i++) { /* a line in parts as they are aligned */
        int64_t align = alignment_of(id, elem), at = line_at(t, in, elem, i);
        for (int64_t b = 0; b < n_elems * (int64_t)bytes; b += align)
            if (!tcc_smem_store(t, t->warp->cta, in->op, t->mask, at + b, lines[i] + b, align, TCC_COMPUTED))
                return TCC_FAILED;
    }
    return TCC_NEXT;
}

/* nvvm_draw: numbers that one thread draws, on their way to all others.
 *
 * In a cluster the first CTA's thread draws for all: it stores to the words of each, which complete on its full
 * barrier, and all give their words back to its empty one.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

/* False, refused, where more than one thread runs op. */
static bool is_by_one(tcc_nvvm_lowering *l, const tcc_op *op)
{
    if (!l->role.one)
        TCC_LOW_REFUSE(&l->low, op, "%s by more than one thread", tcc_op_info_get(op->code)->name);
    return l->role.one;
}

void tcc_nvvm_draw(tcc_nvvm_lowering *l, tcc_op *op)
{
    if (is_by_one(l, op))
        tcc_value_map_set(l->low.map, &op->results[0],
                          TCC_EMIT(&l->low.b, nvvm_atom_inc, l->low.i32,
                                   tcc_low_pointer(&l->low, TCC_VIEW(async_draw, op)->counter)));
}

/* Where the word of an iteration is; NULL, refused, where its buffer has no place. */
static tcc_value *word_at(tcc_nvvm_lowering *l, const tcc_op *op)
{
    const tcc_op *alloc = tcc_nvvm_buffer(l, op, op->operands[2]);
    return alloc ? tcc_nvvm_stage(l, alloc, tcc_value_map_get(l->low.map, op->operands[1])) : NULL;
}

/* Where what is at an address here is in the n-th CTA of the cluster. */
static tcc_value *place_in(tcc_nvvm_lowering *l, tcc_value *address, int64_t n)
{
    return TCC_EMIT(&l->low.b, nvvm_mapa, l->low.i32, address, tcc_low_c32(&l->low, n));
}

void tcc_nvvm_put_word(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_value *at = is_by_one(l, op) ? word_at(l, op) : NULL;
    tcc_value *word = tcc_value_map_get(l->low.map, op->operands[3]);
    int64_t ctas = tcc_nvvm_ctas_of(op->operands[0]->def);
    if (!at)
        return;
    if (ctas == 1) {
        TCC_EMIT_V(&l->low.b, nvvm_st_shared_word, at, word);
        return;
    }
    tcc_value *full = tcc_nvvm_full_barrier(l, op);
    for (int64_t c = 0; c < ctas; c++) {
        tcc_value *full_there = place_in(l, full, c), *there = place_in(l, at, c);
        TCC_EMIT_V(&l->low.b, nvvm_st_async_word, there, full_there, word);
    }
}

void tcc_nvvm_commit_word(tcc_nvvm_lowering *l, tcc_op *op)
{
    enum { WORD_BYTES = 4 };
    int64_t ctas = tcc_nvvm_ctas_of(op->operands[0]->def);
    tcc_value *full = tcc_nvvm_full_barrier(l, op);
    if (ctas == 1)
        TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive, full);
    for (int64_t c = 0; c < ctas && ctas > 1; c++) {
        tcc_value *there = place_in(l, full, c);
        TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive_expect_tx_cluster, there, tcc_low_c32(&l->low, WORD_BYTES));
    }
}

/* The word that a release gives back, as it was read before it in its block; NULL: it was not. */
static tcc_value *word_read_before(tcc_nvvm_lowering *l, const tcc_op *release)
{
    const tcc_op *read = release->prev;
    while (read && !(read->code == TCC_OP_async_read_word && read->operands[0] == release->operands[0]))
        read = read->prev;
    return read ? tcc_value_map_get(l->low.map, &read->results[0]) : NULL;
}

/* Another CTA's thread stores the next word once it has been seen there that all have read this one. An arrival that
 * releases to its own CTA may overtake the load, and does; one that releases to the cluster waits for stores, too. */
void tcc_nvvm_give_word_back(tcc_nvvm_lowering *l, const tcc_op *release, tcc_value *empty)
{
    if (tcc_nvvm_ctas_of(release->operands[0]->def) == 1) {
        TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive, empty);
        return;
    }
    tcc_value *there = place_in(l, empty, 0), *word = word_read_before(l, release);
    if (word)
        there = TCC_EMIT(&l->low.b, nvvm_after, l->low.i32, there, word);
    tcc_op *arrive = TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive_cluster, there);
    if (!word)
        tcc_attr_set_str(l->low.ir, &arrive->attrs, "scope", "cluster");
}

/* ptxas is told that it is the same for all lanes of a warp, and so is what is computed of it. */
void tcc_nvvm_read_word(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_value *at = tcc_nvvm_may_read(l, op) ? word_at(l, op) : NULL;
    if (!at)
        return;
    tcc_value *word = TCC_EMIT(&l->low.b, nvvm_ld_shared_word, l->low.i32, at);
    tcc_value_map_set(l->low.map, &op->results[0],
                      l->role.one ? word : TCC_EMIT(&l->low.b, nvvm_uniform, l->low.i32, word));
}

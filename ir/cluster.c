/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/cluster.h"

#include <string.h>

tcc_peers tcc_peers_of(const tcc_op *copy)
{
    return (tcc_peers){tcc_attr_int(&copy->attrs, "multicast", 1), tcc_attr_int(&copy->attrs, "apart", 1)};
}

void tcc_peers_set(tcc_op *copy, tcc_peers peers)
{
    tcc_ir *ir = copy->block->func->ir;
    if (peers.n > 1)
        tcc_attr_set_int(ir, &copy->attrs, "multicast", peers.n);
    if (peers.n > 1 && peers.apart > 1)
        tcc_attr_set_int(ir, &copy->attrs, "apart", peers.apart);
}

tcc_fillers tcc_fillers_of(const tcc_op *ring)
{
    int64_t ctas = tcc_attr_int(&ring->attrs, "cluster", 1), rows = tcc_attr_int(&ring->attrs, "rows", ctas);
    if (rows < 1 || rows > ctas) /* written by hand, and rejected */
        rows = ctas;
    return (tcc_fillers){{{rows, 1}, {ctas / rows, rows}}};
}

int64_t tcc_fillers_count(const tcc_fillers *f)
{
    return f->along[0].n + f->along[1].n - 1;
}

bool tcc_fillers_have(const tcc_fillers *f, tcc_peers peers)
{
    bool have = false;
    for (int d = 0; d < 2; d++)
        have |= f->along[d].n == peers.n && f->along[d].apart == peers.apart;
    return have;
}

static bool only_initialises(const tcc_op *op)
{
    enum { HARMLESS = TCC_LANES | TCC_HINT | TCC_CONTROL };
    bool only = op->code == TCC_OP_nvvm_mbarrier_init || op->code == TCC_OP_nvvm_fence_mbarrier_init ||
                op->code == TCC_OP_nvvm_warp_sync || !tcc_op_does(op->code, ~(unsigned)HARMLESS);
    for (unsigned r = 0; r < op->n_regions; r++)
        for (const tcc_op *in = op->regions[r]->first; in && only; in = in->next)
            only = only_initialises(in);
    return only;
}

bool tcc_only_initialises_before(const tcc_op *op)
{
    bool only = !op->block->parent;
    for (const tcc_op *before = op->prev; before && only; before = before->prev)
        only = only_initialises(before);
    return only;
}

bool tcc_has_scope_of_cluster(const tcc_op *op)
{
    return !strcmp(tcc_attr_str(&op->attrs, "scope", "cta"), "cluster");
}

const tcc_op *tcc_word_before(const tcc_op *arrive)
{
    const tcc_op *after = arrive->operands[0]->def;
    const tcc_op *word = after && after->code == TCC_OP_nvvm_after ? after->operands[1]->def : NULL;
    if (word && word->code == TCC_OP_nvvm_uniform)
        word = word->operands[0]->def;
    return word && word->code == TCC_OP_nvvm_ld_shared_word ? word : NULL;
}

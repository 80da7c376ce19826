/* cluster: which CTAs of a cluster copy for each other, by their places in it.
 *
 * Of a cluster of rows and columns the CTA at place p is in row p % rows and in column p / rows. Those of a column
 * load the same tile of one operand, those of a row of the other.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_CLUSTER_H
#define TCC_IR_CLUSTER_H

#include "ir/ir.h"

/* CTAs that copy the same data for each other: their number, and the distance between their ranks. */
typedef struct tcc_peers {
    int64_t n, apart;
} tcc_peers;

/* For a tile.load or an async.copy; only one without a cluster. */
tcc_peers tcc_peers_of(const tcc_op *copy);
/* Says so. */
void tcc_peers_set(tcc_op *copy, tcc_peers peers);

/* Those that fill a stage of a ring, and are notified of its release: in each of two directions; only one CTA if
 * there are no others. */
typedef struct tcc_fillers {
    tcc_peers along[2];
} tcc_fillers;
tcc_fillers tcc_fillers_of(const tcc_op *ring);
/* How many CTAs that is, the stage's own among them. */
int64_t tcc_fillers_count(const tcc_fillers *f);
/* Whether some of them copy the same for each other. */
bool tcc_fillers_have(const tcc_fillers *f, tcc_peers peers);

/* Whether op is in no region, and nothing in front of it does more than initialise mbarriers and release them to the
 * cluster: what a relaxed arrival at the cluster's barrier tells of. */
bool tcc_only_initialises_before(const tcc_op *op);

/* Whether a wait for an mbarrier acquires, or an arrival there releases, at the scope of the cluster. */
bool tcc_has_scope_of_cluster(const tcc_op *op);

/* The load of the word without which an arrival does not happen, its barrier's address being an nvvm.after; NULL: none. */
const tcc_op *tcc_word_before(const tcc_op *arrive);

/* The place of a CTA among its peers, and that of the n-th of them in the cluster. */
static inline int64_t tcc_peer_number(tcc_peers p, int64_t place)
{
    return place / p.apart % p.n;
}
static inline int64_t tcc_peer_place(tcc_peers p, int64_t place, int64_t n)
{
    return place + (n - tcc_peer_number(p, place)) * p.apart;
}

#endif

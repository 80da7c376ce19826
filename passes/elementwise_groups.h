/* elementwise_groups: elementwise ops on vecs that belong together, and groups of them that are alike.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PASSES_ELEMENTWISE_GROUPS_H
#define TCC_PASSES_ELEMENTWISE_GROUPS_H

#include "ir/ir.h"
#include "support/map.h"

typedef struct tcc_group tcc_group;

/* An op of a group. */
typedef struct tcc_member {
    tcc_op *op;
    tcc_group *group;
    size_t number; /* in the order of the program */
    size_t index;  /* among the members of its group, in that order, once that is closed */
} tcc_member;

/* Elementwise ops on vecs of one length, each connected with the others through operands and results. No value leads
 * from one of them to another through an op that is not among them. */
struct tcc_group {
    tcc_group *into; /* which took these members over, or NULL */
    bool closed;     /* nothing more is added */
    TCC_VEC(tcc_member *) members;
};

/* Groups that compute the same from different values, as those of the vecs of a tile do. All their operands come
 * before, and all other uses behind, an op that they are closed at. */
typedef struct tcc_alike {
    const struct tcc_groups *all;
    TCC_VEC(tcc_group *) groups;
    size_t n_ops; /* of each group */
} tcc_alike;

/* Those of a function, in a walk of it. */
typedef struct tcc_groups {
    tcc_arena *scratch;
    tcc_map members;            /* op -> its member */
    TCC_VEC(tcc_group *) open; /* these, and some that are no longer */
    size_t n_seen;              /* ops so far */
} tcc_groups;

/* Adds an op to the open groups if it is elementwise on a vec. */
bool tcc_groups_add(tcc_groups *all, tcc_op *op);
/* The open group that a value is of, or NULL. */
tcc_group *tcc_groups_open(const tcc_groups *all, const tcc_value *v);
/* Elements of a group's vecs. */
int64_t tcc_group_length(const tcc_group *g);
/* Elements for which a group computes something, together with all that are open and have as many ops. */
int64_t tcc_groups_count(const tcc_groups *all, const tcc_group *g);
/* Closes a group together with those that are like it. */
tcc_alike tcc_groups_close(tcc_groups *all, tcc_group *g);

/* Op i of group g. */
static inline tcc_op *tcc_alike_op(const tcc_alike *f, size_t g, size_t i)
{
    return f->groups.data[g]->members.data[i]->op;
}
/* The member of a family's group g that computes a value, or that is an op; NULL if there is none. */
const tcc_member *tcc_alike_member(const tcc_alike *f, size_t g, const tcc_op *op);

#endif

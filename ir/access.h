/* access: which element of a tensor a tensor.read reads and a tensor.write writes. Only this file knows how the map is
 * kept.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_ACCESS_H
#define TCC_IR_ACCESS_H

#include "ir/index.h"
#include "ir/ir.h"

/* The tensor that a tensor.read or tensor.write accesses; NULL for other ops. */
const tcc_value *tcc_accessed_tensor(const tcc_op *op);
/* How many dimensions an access has; 0 for other ops. */
size_t tcc_access_rank(const tcc_op *access);

/* What the coordinate along dimension d is, without what is loaded. */
const tcc_index_expr *tcc_access_expr(const tcc_op *access, size_t d);
/* The i32 that is added to it; NULL: none is. */
tcc_value *tcc_access_loaded(const tcc_op *access, size_t d);
/* The index that the coordinate is; NULL where it is anything else. */
const char *tcc_access_index(const tcc_op *access, size_t d);
/* The index that the last dimension runs along, as tcc_access_index has it; NULL, too, where there is no dimension. */
const char *tcc_access_last(const tcc_op *access);

/* Whether the coordinates are indices that all differ: each index then runs along one dimension. */
bool tcc_access_is_plain(const tcc_op *access);
/* The first dimension whose coordinate is this index, -1 where there is none. */
int tcc_map_position(const tcc_op *access, const char *index);
/* Whether an index occurs in an expression that is more than it. */
bool tcc_access_computes_with(const tcc_op *access, const char *index);
/* Whether two ops access elements of one tensor alike, where `y_index` of the second, if not NULL, is `x_index` of the
 * first. */
bool tcc_access_same(const tcc_op *x, const tcc_op *y, const char *x_index, const char *y_index);

/* Leaves out a dimension, of which nothing is loaded. */
void tcc_access_remove(tcc_op *access, size_t d);
/* The coordinates of a tensor.write, a list of names. */
tcc_attr tcc_access_indices(const tcc_op *write);
/* Gives an index another name. */
void tcc_access_rename(tcc_op *access, const char *index, const char *as);
/* Puts an expression in the place of an index. */
void tcc_access_replace(tcc_op *access, const char *index, const tcc_index_expr *by);
/* Makes the coordinates the indices of a field, in order. */
void tcc_access_set_field(tcc_op *access, const tcc_type *field);
void tcc_access_set_indices(tcc_op *access, size_t n, const char *const *indices);

/* An item of the attribute `extents`: an index and its extent; false where it is none. */
bool tcc_extents_read(const tcc_attr *pair, const char **index, tcc_dim *extent);
/* The dimension along which an index of a function runs: one whose coordinate it is, else what the function's attribute
 * `extents` says. A size of -1 where neither is there. */
tcc_dim tcc_index_extent(const tcc_func *f, const char *index);

#endif

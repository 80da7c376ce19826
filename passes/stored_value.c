/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/stored_value.h"

#include "passes/slice.h"
#include "passes/space.h"

enum { LEAST_BITS = 8 }; /* of what is stored */

/* Elementwise ops between v and what needs it, each with its number in program order. */
typedef struct path {
    tcc_map at;
    TCC_VEC(tcc_op *) ops;
} path;

static uintptr_t place_of(const path *p, const tcc_op *op)
{
    return (uintptr_t)tcc_map_get(&p->at, op);
}

static path find_path(tcc_arena *scratch, tcc_value *v)
{
    path p = {.at = TCC_MAP(scratch)};
    for (tcc_op *op = v->def; op; op = op->next) {
        bool on_it = op == v->def;
        for (unsigned i = 0; i < op->n_operands && !on_it; i++)
            on_it = op->operands[i]->def && place_of(&p, op->operands[i]->def) &&
                    (tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE) &&
                    tcc_fields_share_space(op->results[0].type, v->type);
        if (!on_it)
            continue;
        TCC_PUSH(scratch, &p.ops, op);
        *tcc_map_at(&p.at, op) = (void *)(uintptr_t)p.ops.len;
    }
    return p;
}

/* Whether all that needs what comes before the i-th op of a path needs it through that. */
static bool is_passed(const path *p, size_t i)
{
    bool passed = true;
    for (size_t j = 0; j < i; j++)
        for (const tcc_use *u = p->ops.data[j]->results[0].uses; u; u = u->next)
            passed &= place_of(p, u->op) && place_of(p, u->op) <= i + 1;
    return passed;
}

/* Whether a reduction that w is computed of, and v is not, is needed by something else; with `alone`, whether there is
 * one. */
static bool shares_reductions(tcc_arena *scratch, tcc_value *v, tcc_value *w, bool alone)
{
    tcc_map of_v = tcc_slice_of(scratch, 1, &v), of_w = tcc_slice_of(scratch, 1, &w);
    bool shares = false;
    for (const tcc_op *op = w->def->block->first; op != w->def; op = op->next) {
        bool own = op->code == TCC_OP_tensor_reduce && tcc_map_get(&of_w, op) && !tcc_map_get(&of_v, op);
        shares |= own && alone;
        for (const tcc_use *u = own ? op->results[0].uses : NULL; u; u = u->next)
            shares |= !tcc_map_get(&of_w, u->op);
    }
    return shares;
}

tcc_value *tcc_stored_value(tcc_arena *scratch, tcc_value *v, bool alone, bool (*stays)(const void *, const tcc_value *),
                            const void *user)
{
    const path p = find_path(scratch, v);
    tcc_value *stored = v;
    for (size_t i = 1; i < p.ops.len; i++) {
        tcc_value *w = &p.ops.data[i]->results[0];
        unsigned bits = tcc_scalar_bits(w->type->elem);
        if (bits >= LEAST_BITS && bits <= tcc_scalar_bits(stored->type->elem) && is_passed(&p, i) && !stays(user, w) &&
            !shares_reductions(scratch, v, w, alone))
            stored = w;
    }
    return stored;
}

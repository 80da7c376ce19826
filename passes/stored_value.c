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

/* The number of the last op of a path that uses an op of it; 0: something else does. */
static uintptr_t last_use(const path *p, const tcc_op *op)
{
    uintptr_t last = 1;
    for (const tcc_use *u = op->results[0].uses; u; u = u->next) {
        uintptr_t place = place_of(p, u->op);
        if (!place)
            return 0;
        last = place > last ? place : last;
    }
    return last;
}

typedef struct reductions {
    tcc_map of_v, of_w; /* what these are computed of */
    bool alone;
    TCC_VEC(const tcc_op *) all;
} reductions;

/* Whether a reduction that w is computed of, and v is not, is needed by something else; with `alone`, whether there is
 * one. */
static bool are_shared(const reductions *r)
{
    bool shared = false;
    for (size_t i = 0; i < r->all.len; i++) {
        const tcc_op *op = r->all.data[i];
        bool own = tcc_map_get(&r->of_w, op) && !tcc_map_get(&r->of_v, op);
        shared |= own && r->alone;
        for (const tcc_use *u = own ? op->results[0].uses : NULL; u; u = u->next)
            shared |= !tcc_map_get(&r->of_w, u->op);
    }
    return shared;
}

tcc_value *tcc_stored_value(tcc_arena *scratch, tcc_value *v, bool alone, bool (*stays)(const void *, const tcc_value *),
                            const void *user)
{
    const path p = find_path(scratch, v);
    reductions r = {.of_v = tcc_slice_of(scratch, 1, &v), .of_w = TCC_MAP(scratch), .alone = alone};
    for (const tcc_op *op = v->def->block->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_reduce)
            TCC_PUSH(scratch, &r.all, op);
    tcc_value *stored = v;
    uintptr_t used = 0; /* by this op of the path the last of those before */
    for (size_t i = 1; i < p.ops.len; i++) {
        tcc_value *w = &p.ops.data[i]->results[0];
        unsigned bits = tcc_scalar_bits(w->type->elem);
        uintptr_t last = last_use(&p, p.ops.data[i - 1]);
        if (!last)
            break;
        used = last > used ? last : used;
        /* All that needs what comes before w needs it through w, which is computed of all that, then. */
        if (bits < LEAST_BITS || bits > tcc_scalar_bits(stored->type->elem) || used > i + 1 || stays(user, w))
            continue;
        tcc_slice_extend(&r.of_w, 1, &w);
        if (!are_shared(&r))
            stored = w;
    }
    return stored;
}

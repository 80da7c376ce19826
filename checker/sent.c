/* sent: copies to tensors that a kernel only writes.
 *
 * Of two copies to the same elements the first may be written last, unless its thread has waited until it was written,
 * not only read, and the second comes after that. Where a copy goes is computed from the tile, in ways that are not
 * followed: two are compared where their coordinates are the same values, which have not changed since, but for
 * constants. Other values, those of other iterations, other CTAs, or other warps if they depend on the thread, are taken
 * to be those of other tiles: that every tile is stored once is for the interpreter, and for tests, to see.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "support/map.h"

/* A value without the constants that are added to it, which are added up; NULL for a constant. */
static const tcc_value *base_of(const tcc_value *v, int64_t *constants)
{
    int64_t c;
    *constants = 0;
    while (!tcc_value_is_int(v, &c)) {
        bool minus = v->def && v->def->code == TCC_OP_arith_sub;
        if (!minus && !(v->def && v->def->code == TCC_OP_arith_add))
            return v;
        unsigned by = tcc_value_is_int(v->def->operands[1], &c) || minus;
        if (!tcc_value_is_int(v->def->operands[by], &c))
            return v;
        *constants += minus ? -c : c;
        v = v->def->operands[!by];
    }
    *constants += c;
    return NULL;
}

/* Whether the coordinates differ by constants alone, and the boxes have elements in common. */
static bool overlap(const tcc_pplace *x, const tcc_pplace *y)
{
    bool same = x->rank && x->rank == y->rank;
    for (unsigned d = 0; same && d < x->rank; d++) {
        int64_t from, other_from; /* a box has one term along each dimension */
        same = base_of(x->terms[d].value, &from) == base_of(y->terms[d].value, &other_from) &&
               from < other_from + y->length[d] && other_from < from + x->length[d];
    }
    return same;
}

typedef struct search {
    tcc_arena *arena;
    tcc_map seen;
    TCC_VEC(const tcc_value *) todo;
} search;

static void look_at(search *q, const tcc_value *v)
{
    void **seen = tcc_map_at(&q->seen, v);
    if (!*seen)
        TCC_PUSH(q->arena, &q->todo, v);
    *seen = q;
}

/* What a value is computed from: of what a loop carries, what it begins with. */
static void look_behind(search *q, const tcc_value *v)
{
    const tcc_op *op = v->def ? v->def : v->block->parent;
    bool carried = !v->def && op && op->code == TCC_OP_scf_for && v->index;
    for (unsigned i = 0; op && i < op->n_operands; i++)
        if (!carried || i == v->index + 2)
            look_at(q, op->operands[i]);
}

bool tcc_p_sent_by_thread(const tcc_protocol *p, const tcc_pplace *place)
{
    search q = {.arena = p->scratch, .seen = TCC_MAP(p->scratch)};
    for (unsigned i = 0; i < place->n_terms; i++)
        look_at(&q, place->terms[i].value);
    bool is = false;
    for (size_t i = 0; i < q.todo.len && !is; i++) {
        is = q.todo.data[i]->def && q.todo.data[i]->def->code == TCC_OP_nvvm_tid;
        look_behind(&q, q.todo.data[i]);
    }
    return is;
}

/* Whether what was copied by one warp lies where another copies, as far as that is known. */
static bool is_comparable(const tcc_protocol *p, const tcc_pglobal *old, const tcc_paccess *by)
{
    return old->warp == by->warp ||
           (tcc_p_cta(p, old->warp) == tcc_p_cta(p, by->warp) && !old->sent->sent_by_thread);
}

bool tcc_p_is_sent_over(const tcc_pinst *x, const tcc_pinst *y)
{
    return x->sent_to == y->sent_to && overlap(x->place, y->place);
}

/* Whether a value is computed anew in each iteration. */
static bool is_inside(const tcc_value *v, const tcc_op *loop)
{
    const tcc_block *block = v->def ? v->def->block : v->block;
    while (block && block->parent != loop)
        block = block->parent ? block->parent->block : NULL;
    return block;
}

bool tcc_p_sent_varies(const tcc_pinst *in, const tcc_op *loop)
{
    bool varies = false;
    for (unsigned d = 0; d < in->place->rank && !varies; d++) {
        int64_t constants;
        const tcc_value *base = base_of(in->place->terms[d].value, &constants);
        varies = base && is_inside(base, loop);
    }
    return varies;
}

void tcc_p_sent_next_iteration(tcc_pstate *s, unsigned warp, const tcc_op *loop)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->n_globals; i++) {
        const tcc_pglobal *g = &s->globals[i];
        if (!g->sent || g->warp != warp || !tcc_p_sent_varies(g->sent, loop))
            s->globals[n++] = *g;
    }
    s->n_globals = n;
}

void tcc_p_sent_is_written(tcc_protocol *p, tcc_pstate *s, unsigned warp, uint32_t groups)
{
    tcc_pwarp *w = &s->warps[warp];
    for (unsigned i = 0; i < s->n_globals; i++) {
        tcc_pglobal *g = &s->globals[i];
        if (!g->pending || g->warp != warp || g->clock > groups)
            continue;
        g->pending = false;
        g->actor = warp; /* from here on it is as if the thread had written it now */
        g->clock = tcc_p_seen(p, s, warp)[warp];
        w->unsynced |= g->lanes;
    }
}

bool tcc_p_send(tcc_protocol *p, tcc_pstate *s, const tcc_pinst *in, const tcc_paccess *by)
{
    const char *name = tcc_op_info_get(in->op->code)->name;
    for (unsigned i = 0; i < s->n_globals; i++) {
        const tcc_pglobal *old = &s->globals[i];
        if (!old->sent || !is_comparable(p, old, by) || !tcc_p_is_sent_over(old->sent, in) ||
            tcc_p_global_comes_after(p, s, old, by))
            continue;
        p->other.op = old->by;
        p->other.what = tcc_arena_printf(p->scratch, "%s writes them here", tcc_op_info_get(old->by->code)->name);
        tcc_p_wrong(p, s, by->warp, in,
                    "%s writes elements of '%s' that a copy to global memory of warp %u may still be writing", name,
                    tcc_p_tensor_name(p, in->sent_to), old->warp);
        return false;
    }
    tcc_p_global_keep(p, s,
                      &(tcc_pglobal){.by = in->op,
                                     .tensor = in->sent_to,
                                     .warp = by->warp,
                                     .actor = tcc_p_bulk_actor(p, by->warp),
                                     .clock = by->clock,
                                     .lanes = by->lanes,
                                     .write = true,
                                     .async = true,
                                     .sent = in,
                                     .pending = true});
    return true;
}

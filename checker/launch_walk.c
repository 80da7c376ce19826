/* launch_walk: warps on their way through the ops that matter. Lanes that part run one after the other.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "checker/launch.h"

enum { MAX_ITERATIONS = 1 << 16, MESSAGE_BYTES = 512 };
enum { FEW_OPS = 1 << 22, MAX_OPS = 1 << 25 }; /* of a launch, while shorter sizes are left, and with the shortest */
enum { ENDS = 2 }; /* of a large grid, as many clusters run from the beginning and up to the end */

/* ---- errors -------------------------------------------------------------------------------- */

static bool report(tcc_launch *l, tcc_status status, const tcc_op *op, const char *format, va_list args)
{
    char text[MESSAGE_BYTES];
    vsnprintf(text, sizeof text, format, args);
    tcc_error(l->diag, status, op ? op->loc : l->f->loc, "%s", text);
    l->status = status;
    return false;
}

bool tcc_launch_wrong(tcc_launch *l, tcc_status status, const tcc_op *op, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report(l, status, op, format, args);
    va_end(args);
    tcc_note(l->diag, l->f->loc, "'%s' with %s", l->f->name, tcc_launch_sizes_text(l->sizes, l->scratch));
    return false;
}

bool tcc_launch_wrong_in(tcc_lwarp *w, tcc_status status, const tcc_op *op, const char *format, ...)
{
    tcc_launch *l = w->l;
    va_list args;
    va_start(args, format);
    report(l, status, op, format, args);
    va_end(args);
    tcc_note(l->diag, l->f->loc, "in CTA %lld of %lld, warp %u, of '%s' with %s", (long long)w->cta,
             (long long)l->n_ctas, w->id, l->f->name, tcc_launch_sizes_text(l->sizes, l->scratch));
    return false;
}

/* ---- values -------------------------------------------------------------------------------- */

void tcc_launch_give(tcc_lwarp *w, const tcc_linst *in, int64_t number)
{
    tcc_launch_cells(w, in->results[0])->i = number;
    w->known[in->results[0]] = TCC_L_UNIFORM;
}

static void spread(tcc_lwarp *w, int slot)
{
    tcc_cell *cells = tcc_launch_cells(w, slot);
    for (unsigned l = 1; w->known[slot] == TCC_L_UNIFORM && l < w->l->lanes; l++)
        cells[l] = cells[0];
    w->known[slot] = TCC_L_VARYING;
}

/* Gives a value to the lanes of a mask; the others, if any run, keep what they have. */
static void assign(tcc_lwarp *w, int to, int from, uint64_t lanes, uint64_t all)
{
    if (to < 0)
        return;
    if (from < 0 || w->known[from] == TCC_L_UNKNOWN || (lanes != all && w->known[to] == TCC_L_UNKNOWN)) {
        w->known[to] = from >= 0 && lanes == all ? w->known[from] : TCC_L_UNKNOWN;
        return;
    }
    tcc_cell *cells = tcc_launch_cells(w, to);
    if (lanes == all) {
        memcpy(cells, tcc_launch_cells(w, from), TCC_L_LANES * sizeof *cells);
        w->known[to] = w->known[from];
        return;
    }
    spread(w, to);
    for (unsigned l = 0; l < w->l->lanes; l++)
        if (lanes >> l & 1)
            cells[l].i = tcc_launch_int(w, from, l);
}

/* The lanes of the mask in which a condition holds. */
static uint64_t lanes_where(const tcc_lwarp *w, int slot)
{
    uint64_t lanes = 0;
    for (unsigned l = 0; l < w->l->lanes; l++)
        lanes |= (uint64_t)(tcc_launch_int(w, slot, l) & 1) << l;
    return lanes & w->mask;
}

static bool is_known(tcc_lwarp *w, const tcc_linst *in, int slot)
{
    return (slot >= 0 && w->known[slot] != TCC_L_UNKNOWN) ||
           tcc_launch_wrong_in(w, TCC_ERR_UNSUPPORTED, in->op,
                               "this depends on more than sizes and numbers of threads, and is not followed");
}

/* ---- control flow -------------------------------------------------------------------------- */

static bool run_code(tcc_lwarp *w, const tcc_lcode *code);

static bool run_region(tcc_lwarp *w, const tcc_linst *in, unsigned region, uint64_t lanes)
{
    const tcc_lcode *code = &in->regions[region];
    uint64_t all = w->mask;
    w->mask = lanes;
    bool ok = !lanes || run_code(w, code);
    w->mask = all;
    for (unsigned i = 0; ok && lanes && i < code->n_yields && i < in->op->n_results; i++)
        assign(w, in->results[i], code->yields[i], lanes, region && lanes != all ? all : lanes);
    return ok;
}

static bool run_if(tcc_lwarp *w, const tcc_linst *in)
{
    if (!is_known(w, in, in->operands[0]))
        return false;
    uint64_t lanes = lanes_where(w, in->operands[0]);
    return run_region(w, in, 0, lanes) && run_region(w, in, 1, w->mask & ~lanes);
}

/* The lanes that go on, being among those that run. */
static uint64_t more_in(const tcc_lwarp *w, const tcc_linst *in, int64_t iteration)
{
    uint64_t more = 0;
    for (unsigned l = 0; l < w->l->lanes; l++) {
        int64_t lo = tcc_launch_int(w, in->operands[0], l), step = tcc_launch_int(w, in->operands[2], l);
        more |= (uint64_t)(lo + iteration * step < tcc_launch_int(w, in->operands[1], l)) << l;
    }
    more &= w->mask;
    if (in->tests)
        more &= lanes_where(w, in->regions[0].args[1]);
    return more;
}

static void set_index(tcc_lwarp *w, const tcc_linst *in, int64_t iteration)
{
    int index = in->regions[0].args[0], lo = in->operands[0], step = in->operands[2];
    if (index < 0)
        return;
    bool uniform = w->known[lo] == TCC_L_UNIFORM && w->known[step] == TCC_L_UNIFORM;
    for (unsigned l = 0; l < (uniform ? 1 : w->l->lanes); l++)
        tcc_launch_cells(w, index)[l].i = tcc_launch_int(w, lo, l) + iteration * tcc_launch_int(w, step, l);
    w->known[index] = uniform ? TCC_L_UNIFORM : TCC_L_VARYING;
}

/* What an iteration passes on. */
static void carry(tcc_lwarp *w, const tcc_linst *in, uint64_t all)
{
    const tcc_lcode *body = &in->regions[0];
    for (size_t i = 0; i < body->n_yields; i++)
        assign(w, body->nexts[1 + i], body->yields[i], w->mask, w->mask);
    for (size_t i = 0; i < body->n_yields; i++)
        assign(w, body->args[1 + i], body->nexts[1 + i], w->mask, all);
}

static bool bounds_are_known(tcc_lwarp *w, const tcc_linst *in)
{
    for (unsigned i = 0; i < 3; i++)
        if (!is_known(w, in, in->operands[i]))
            return false;
    for (unsigned l = 0; l < w->l->lanes; l++)
        if (w->mask >> l & 1 && tcc_launch_int(w, in->operands[2], l) < 1)
            return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, in->op, "scf.for steps by %lld",
                                       (long long)tcc_launch_int(w, in->operands[2], l));
    return true;
}

static bool run_for(tcc_lwarp *w, const tcc_linst *in)
{
    const tcc_lcode *body = &in->regions[0];
    uint64_t all = w->mask;
    if (!bounds_are_known(w, in))
        return false;
    for (size_t i = 1; i < body->n_args; i++)
        assign(w, body->args[i], in->operands[2 + i], all, all);
    bool ok = true;
    for (int64_t i = 0; ok && (!in->tests || (ok = is_known(w, in, body->args[1]))); i++) {
        uint64_t more = more_in(w, in, i);
        if (!i && more != all && in->at_least_once)
            ok = tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, in->op, "scf.for is at_least_once and makes no iteration");
        if (!ok || !more || !in->runs)
            break;
        if (i == MAX_ITERATIONS)
            ok = tcc_launch_wrong_in(w, TCC_ERR_UNSUPPORTED, in->op, "more than %d iterations are not followed",
                                     MAX_ITERATIONS);
        w->mask = more;
        set_index(w, in, i);
        ok = ok && run_code(w, body);
        if (ok)
            carry(w, in, all);
    }
    w->mask = all;
    for (unsigned i = 0; ok && i < in->op->n_results; i++)
        assign(w, in->results[i], body->args[1 + i], all, all);
    return ok;
}

/* Whether a launch has not taken more ops than a proof may. */
static bool has_time(tcc_lwarp *w, const tcc_linst *in)
{
    tcc_launch *l = w->l;
    if (l->n_ops++ < (l->sizes->may_shrink ? FEW_OPS : MAX_OPS))
        return true;
    l->too_long = true;
    return l->sizes->may_shrink ? false
                                : tcc_launch_wrong_in(w, TCC_ERR_UNSUPPORTED, in->op,
                                                      "more than %d operations of a launch are not followed", MAX_OPS);
}

static bool run_inst(tcc_lwarp *w, const tcc_linst *in)
{
    if (!has_time(w, in))
        return false;
    switch (in->op->code) {
    case TCC_OP_scf_for: return run_for(w, in);
    case TCC_OP_scf_if: return run_if(w, in);
    case TCC_OP_scf_yield:
    case TCC_OP_func_return: return true;
    case TCC_OP_nvvm_atom_inc: return tcc_launch_draw(w, in);
    case TCC_OP_nvvm_ld_shared_word: return tcc_launch_load_word(w, in);
    case TCC_OP_nvvm_st_shared_word:
    case TCC_OP_nvvm_st_async_word: return tcc_launch_store_word(w, in);
    default: break;
    }
    if (!in->accesses)
        return tcc_launch_compute(w, in);
    bool known = true;
    for (unsigned i = 0; i < in->op->n_operands; i++) {
        bool here = in->operands[i] < 0 || w->known[in->operands[i]] != TCC_L_UNKNOWN;
        if (in->writes && !here)
            return is_known(w, in, in->operands[i]);
        known &= here;
    }
    return w->rehearses || (known ? tcc_launch_access : tcc_launch_read_anywhere)(w, in);
}

static bool run_code(tcc_lwarp *w, const tcc_lcode *code)
{
    for (size_t i = 0; i < code->n; i++)
        if (!run_inst(w, &code->insts[i]))
            return false;
    return true;
}

/* ---- launches ------------------------------------------------------------------------------ */

/* What all warps begin with: parameters and constants. */
static bool begin(tcc_lwarp *w)
{
    const tcc_launch *l = w->l;
    const tcc_lcode *body = &l->program->body;
    w->mask = 1;
    for (size_t i = 0; i < body->n_args; i++) {
        const tcc_lparam *p = &l->params[i];
        if (body->args[i] < 0 || !(p->tensor || p->known))
            continue;
        tcc_launch_cells(w, body->args[i])->i = p->tensor ? (int64_t)i : p->number;
        w->known[body->args[i]] = TCC_L_UNIFORM;
    }
    bool ok = true;
    for (size_t i = 0; ok && i < l->program->constants.len; i++)
        ok = tcc_launch_compute(w, &l->program->constants.data[i]);
    memcpy(w->at_first, w->known, l->program->n_slots);
    return ok;
}

static bool run_warp(tcc_lwarp *w)
{
    const tcc_launch *l = w->l;
    memcpy(w->known, w->at_first, l->program->n_slots);
    w->mask = l->lanes == TCC_L_LANES ? UINT64_MAX : (UINT64_C(1) << l->lanes) - 1;
    w->n_drawn = w->read.len = 0;
    w->waits = false;
    return run_code(w, &l->program->body) || (w->rehearses && w->waits);
}

static bool run_cluster(tcc_lwarp *w, int64_t first, bool rehearses)
{
    tcc_launch *l = w->l;
    w->rehearses = rehearses;
    for (w->rank = 0; w->rank < l->cluster; w->rank++)
        for (w->id = 0; w->id < l->n_warps; w->id++) {
            w->cta = first + w->rank;
            if (!run_warp(w))
                return false;
        }
    return true;
}

bool tcc_launch_run(tcc_launch *l)
{
    tcc_lwarp w = {.l = l, .writer = l->first_writer};
    w.cells = TCC_NEW_ARRAY(l->scratch, tcc_cell, l->program->n_slots * TCC_L_LANES);
    w.known = TCC_NEW_ARRAY(l->scratch, uint8_t, l->program->n_slots);
    w.at_first = TCC_NEW_ARRAY(l->scratch, uint8_t, l->program->n_slots);
    l->words = TCC_NEW_ARRAY(l->scratch, tcc_lcta_words, l->cluster);
    if (!begin(&w))
        return false;
    int64_t idle = -1;
    bool writes = false;
    for (int64_t first = 0; first < l->n_ctas; first += l->cluster) {
        if (l->sizes->large && first == ENDS * l->cluster && l->n_ctas - first > first)
            first = l->n_ctas - ENDS * l->cluster;
        l->writes = false;
        l->draws.len = 0;
        for (unsigned r = 0; r < l->cluster; r++)
            l->words[r].len = 0;
        if ((l->program->draws && !run_cluster(&w, first, true)) || !run_cluster(&w, first, false))
            return false;
        w.writer++;
        writes |= l->writes;
        if (!l->writes)
            idle = first;
    }
    return !writes || idle < 0 || !l->counts_tiles ||
           tcc_launch_wrong(l, TCC_ERR_INTERNAL, NULL, "'grid' makes %lld CTAs, and CTA %lld has nothing to write",
                            (long long)l->n_ctas, (long long)idle);
}

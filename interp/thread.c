/* thread: stepping through regions, structured control flow under a mask, registers.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/exec.h"
#include "ir/counting.h"
#include "ir/registers.h"

tcc_lane_mask tcc_all_lanes(const tcc_exec *x)
{
    return UINT64_MAX >> (64 - x->lanes);
}

tcc_thread *tcc_thread_create(tcc_exec *x, const tcc_code *code, const tcc_thread *from)
{
    const tcc_program *p = x->program;
    tcc_arena *scratch = x->run->scratch;
    size_t n_cells = p->n_cells * x->lanes;
    tcc_thread *t = TCC_NEW(scratch, tcc_thread);
    t->x = x;
    t->id = (unsigned)x->threads.len;
    t->cells = TCC_NEW_ARRAY(scratch, tcc_cell, n_cells);
    t->regs = TCC_NEW_ARRAY(scratch, tcc_reg, p->n_values);
    t->frames = TCC_NEW_ARRAY(scratch, tcc_frame, p->depth + 1);
    t->touched = TCC_NEW_ARRAY(scratch, uint64_t, p->n_registers + 1);
    t->code = code;
    tcc_thread_restart(t);
    t->rank = from ? from->rank : 0;
    if (from && n_cells)
        memcpy(t->cells, from->cells, n_cells * sizeof *t->cells);
    TCC_PUSH(scratch, &x->threads, t);
    return t;
}

void tcc_thread_restart(tcc_thread *t)
{
    t->mask = tcc_all_lanes(t->x);
    t->frames[0] = (tcc_frame){.code = t->code, .mask = t->mask, .outer = t->mask};
    t->depth = 1;
    t->steps = 0;
    t->committed = t->waited = 0;
    t->blocked_at = 0;
    memset(t->regs, 0, t->x->program->n_values * sizeof *t->regs);
    memset(t->touched, 0, (t->x->program->n_registers + 1) * sizeof *t->touched);
}

/* ---- registers ------------------------------------------------------------------------- */

int64_t tcc_lane_element(const tcc_thread *t, const tcc_inst *in, unsigned operand, unsigned lane, int64_t disp)
{
    int64_t at;
    bool wraps = __builtin_add_overflow(tcc_lane_int(t, in, operand, lane), disp, &at);
    return wraps || at < 0 || at > TCC_MAX_ELEMENTS ? -1 : at;
}

/* What is known of a value that some lanes take from another. */
tcc_reg tcc_reg_merge(tcc_reg a, tcc_reg b)
{
    return (tcc_reg){.defined = a.defined > b.defined ? a.defined : b.defined,
                     .mma = a.mma > b.mma ? a.mma : b.mma,
                     .issue = a.issue > b.issue ? a.issue : b.issue,
                     .taken = a.taken > b.taken ? a.taken : b.taken,
                     .shape = a.shape == b.shape ? a.shape : -1,
                     .by_mma = a.by_mma && b.by_mma,
                     .is_a = a.is_a || b.is_a,
                     .undefined = a.undefined || b.undefined,
                     .of_tensor = a.of_tensor & b.of_tensor,
                     .outside = a.outside & b.outside};
}

static void copy_lanes(tcc_cell *to, const tcc_cell *from, size_t n, unsigned lanes,
                       tcc_lane_mask mask)
{
    for (size_t e = 0; e < n; e++)
        for (unsigned l = 0; l < lanes; l++)
            if (mask >> l & 1)
                to[e * lanes + l] = from[e * lanes + l];
}

void tcc_copy_values(tcc_thread *t, const uint32_t *to, const uint32_t *from, size_t n,
                     tcc_lane_mask mask)
{
    const tcc_exec *x = t->x;
    bool all = mask == tcc_all_lanes(x);
    tcc_cell *copy = x->copies;
    for (size_t i = 0; n > 1 && i < n; i++) { /* one may be both read and written */
        size_t cells = x->program->values[from[i]].count * x->lanes;
        memcpy(copy, tcc_cells(t, from[i]), cells * sizeof *copy);
        copy += cells;
    }
    tcc_reg *regs = x->reg_copies;
    for (size_t i = 0; i < n; i++)
        regs[i] = t->regs[from[i]];
    copy = x->copies;
    for (size_t i = 0; i < n; i++) {
        size_t count = x->program->values[from[i]].count, cells = count * x->lanes;
        const tcc_cell *source = n > 1 ? copy : tcc_cells(t, from[i]);
        if (all && cells)
            memmove(tcc_cells(t, to[i]), source, cells * sizeof *copy);
        else
            copy_lanes(tcc_cells(t, to[i]), source, count, x->lanes, mask);
        t->regs[to[i]] = all ? regs[i] : tcc_reg_merge(t->regs[to[i]], regs[i]);
        copy += cells;
    }
}

bool tcc_readable(tcc_thread *t, const tcc_inst *in, unsigned operand)
{
    const tcc_reg *r = &t->regs[in->operands[operand]];
    if (!r->mma && !r->undefined)
        return true;
    const char *name = tcc_op_info_get(in->op->code)->name;
    if (r->mma && r->is_a)
        TCC_WRONG(t->x, in->op, "%s reads registers that an MMA may still take its A from", name);
    else if (r->mma)
        TCC_WRONG(t->x, in->op, "%s reads registers that an MMA may still be writing", name);
    else
        TCC_WRONG(t->x, in->op, "%s reads registers that were never written", name);
    tcc_note_mma(t, r);
    return false;
}

bool tcc_registers_take(tcc_thread *t, const tcc_inst *in, unsigned operand, unsigned registers)
{
    tcc_reg *from = &t->regs[in->operands[operand]];
    if (from->mma && tcc_registers_is_wanted_twice(in->wanted_twice, operand)) {
        TCC_WRONG(t->x, in->op,
                  "%s takes registers that an MMA may still be writing and another op uses as well",
                  tcc_op_info_get(in->op->code)->name);
        tcc_note_mma(t, from);
        return false;
    }
    if (from->by_mma || from->undefined)
        return true;
    if (from->taken > t->touched[registers])
        t->touched[registers] = from->taken;
    from->taken = t->steps;
    return true;
}

/* ---- stepping -------------------------------------------------------------------------- */

void tcc_thread_enter(tcc_thread *t, const tcc_inst *of, unsigned region, tcc_lane_mask mask)
{
    t->frames[t->depth++] = (tcc_frame){
        .code = &of->regions[region], .of = of, .region = region, .mask = mask, .outer = t->mask};
    t->mask = mask;
}

void tcc_thread_leave(tcc_thread *t)
{
    t->mask = t->frames[--t->depth].outer;
    if (t->depth)
        t->frames[t->depth - 1].pc++;
}

static tcc_outcome end_run(tcc_thread *t)
{
    const tcc_inst *of = t->frames[t->depth - 1].of;
    t->x->status = tcc_run_end(t->x->run, t->x->steps, of ? of->op : NULL);
    return TCC_FAILED;
}

tcc_outcome tcc_thread_step(tcc_thread *t)
{
    tcc_frame *f = &t->frames[t->depth - 1];
    if (tcc_run_must_end(t->x->run, ++t->x->steps))
        return end_run(t);
    if (f->pc == f->code->n) {
        t->x->changes++;
        return tcc_eval_scf_yield(t, NULL);
    }
    const tcc_inst *in = &f->code->insts[f->pc];
    t->steps++;
    t->x->current = t;
    t->x->lane = -1;
    for (unsigned i = 0; !in->passes && i < in->op->n_operands; i++) {
        if (!tcc_readable(t, in, i))
            return TCC_FAILED;
        t->touched[t->x->program->values[in->operands[i]].registers] = t->steps;
    }
    for (unsigned i = 0; i < in->op->n_results; i++)
        t->regs[in->results[i]] = (tcc_reg){.defined = t->steps};
    if (t->early & t->mask && tcc_op_global_use(in->op->code).any)
        return TCC_WRONG(t->x, in->op, "%s with no nvvm.griddepcontrol.wait before: the previous step may still run",
                         tcc_op_info_get(in->op->code)->name);
    tcc_outcome outcome = tcc_hook_of(in->op->code)(t, in);
    if (outcome == TCC_NEXT)
        f->pc++;
    t->x->changes += outcome != TCC_BLOCKED && !in->is_own;
    t->blocked_at = outcome == TCC_BLOCKED ? t->x->changes : 0;
    return outcome;
}

/* ---- control flow ---------------------------------------------------------------------- */

/* The lanes in which there is an iteration: the loop's index is below its end, and what it tests holds. */
static tcc_lane_mask lanes_to_run(const tcc_thread *t, const tcc_inst *in, tcc_lane_mask mask)
{
    const tcc_cell *i = tcc_cells(t, in->regions[0].args[0]);
    const tcc_cell *holds = tcc_loop_tests(in->op) ? tcc_cells(t, in->regions[0].args[1]) : NULL;
    tcc_lane_mask r = 0;
    for (unsigned l = 0; l < t->x->lanes; l++)
        if (mask >> l & 1 && i[l].i < tcc_lane_int(t, in, 1, l) && (!holds || holds[l].i))
            r |= UINT64_C(1) << l;
    return r;
}

/* A loop takes a value into the registers that it carries. */
static bool take(tcc_thread *t, const tcc_inst *in, unsigned operand, uint32_t arg)
{
    unsigned registers = t->x->program->values[arg].registers;
    return !registers || tcc_registers_take(t, in, operand, registers);
}

tcc_outcome tcc_eval_scf_for(tcc_thread *t, const tcc_inst *in)
{
    for (unsigned l = 0; l < t->x->lanes; l++)
        if (t->mask >> l & 1 && tcc_lane_int(t, in, 2, l) < 1)
            return TCC_WRONG(t->x, in->op, "scf.for steps by %lld",
                             (long long)tcc_lane_int(t, in, 2, l));
    size_t carried = in->op->n_results;
    for (unsigned i = 0; i < carried; i++)
        if (!take(t, in, 3 + i, in->regions[0].args[1 + i]))
            return TCC_FAILED;
    tcc_copy_values(t, in->regions[0].args, in->operands, 1, t->mask);
    tcc_copy_values(t, in->regions[0].args + 1, in->operands + 3, carried, t->mask);
    for (unsigned i = 0; i < carried; i++)
        t->regs[in->regions[0].args[1 + i]].taken = 0;
    tcc_lane_mask run = lanes_to_run(t, in, t->mask);
    if (run != t->mask && tcc_attr_int(&in->op->attrs, "at_least_once", 0))
        return TCC_WRONG(t->x, in->op, "scf.for is at_least_once and makes no iteration");
    if (!run) {
        tcc_copy_values(t, in->results, in->operands + 3, carried, t->mask);
        return TCC_NEXT;
    }
    tcc_thread_enter(t, in, 0, run);
    return TCC_JUMPED;
}

/* Lanes that have made their iterations keep what they carried last. */
static tcc_outcome next_iteration(tcc_thread *t, const tcc_inst *in, const tcc_inst *yield)
{
    tcc_frame *f = &t->frames[t->depth - 1];
    size_t carried = in->op->n_results;
    const uint32_t *args = in->regions[0].args;
    if (yield)
        tcc_copy_values(t, args + 1, yield->operands, carried, f->mask);
    tcc_cell *i = tcc_cells(t, args[0]);
    for (unsigned l = 0; l < t->x->lanes; l++)
        if (f->mask >> l & 1)
            i[l].i += tcc_lane_int(t, in, 2, l);
    f->mask = lanes_to_run(t, in, f->mask);
    if (f->mask) {
        t->mask = f->mask;
        f->pc = 0;
        return TCC_JUMPED;
    }
    tcc_copy_values(t, in->results, args + 1, carried, f->outer);
    tcc_thread_leave(t);
    return TCC_JUMPED;
}

/* Enters the region of scf.if with these lanes, if it has anything to do. */
static bool enter_branch(tcc_thread *t, const tcc_inst *in, unsigned region, tcc_lane_mask mask)
{
    if (!mask || !in->regions[region].n)
        return false;
    tcc_thread_enter(t, in, region, mask);
    return true;
}

tcc_outcome tcc_eval_scf_if(tcc_thread *t, const tcc_inst *in)
{
    tcc_lane_mask yes = 0;
    for (unsigned l = 0; l < t->x->lanes; l++)
        if (tcc_lane_int(t, in, 0, l))
            yes |= UINT64_C(1) << l;
    yes &= t->mask;
    if (enter_branch(t, in, 0, yes) || enter_branch(t, in, 1, t->mask & ~yes))
        return TCC_JUMPED;
    return TCC_NEXT;
}

static tcc_outcome next_branch(tcc_thread *t, const tcc_inst *in, const tcc_inst *yield)
{
    tcc_frame f = t->frames[t->depth - 1];
    if (yield)
        tcc_copy_values(t, in->results, yield->operands, in->op->n_results, f.mask);
    tcc_thread_leave(t);
    if (f.region == 0 && f.outer & ~f.mask && in->regions[1].n) {
        t->frames[t->depth - 1].pc--;
        enter_branch(t, in, 1, f.outer & ~f.mask);
    }
    return TCC_JUMPED;
}

/* Also the end of a region that has no yield, which is then NULL. */
tcc_outcome tcc_eval_scf_yield(tcc_thread *t, const tcc_inst *in)
{
    const tcc_inst *of = t->frames[t->depth - 1].of;
    if (!of) {
        t->depth = 0;
        return TCC_JUMPED;
    }
    switch (of->op->code) {
    case TCC_OP_scf_for: return next_iteration(t, of, in);
    case TCC_OP_scf_if: return next_branch(t, of, in);
    case TCC_OP_tile_grid:
    case TCC_OP_tile_ctas: return tcc_grid_next(t);
    case TCC_OP_async_one: tcc_thread_leave(t); return TCC_JUMPED;
    default: return TCC_WRONG(t->x, of->op, "execution cannot continue after this region");
    }
}

tcc_outcome tcc_eval_func_return(tcc_thread *t, const tcc_inst *in)
{
    (void)in;
    t->depth = 0;
    return TCC_JUMPED;
}

/* state: states as they are at first, copied, and at the end of warps.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/signature.h"
#include "ir/resize.h"

enum { AT_HEAD = TCC_P_AT_HEAD };

/* ---- states ------------------------------------------------------------------------------- */

tcc_pstate *tcc_p_state_create(const tcc_protocol *p)
{
    tcc_pstate *s = TCC_NEW(p->scratch, tcc_pstate);
    s->warps = TCC_NEW_ARRAY(p->scratch, tcc_pwarp, p->n_warps);
    s->barriers = TCC_NEW_ARRAY(p->scratch, tcc_pbarrier, p->max_barriers + 1);
    s->waits = TCC_NEW_ARRAY(p->scratch, tcc_pwait, (p->max_barriers + 1) * p->n_warps);
    s->groups = TCC_NEW_ARRAY(p->scratch, tcc_pgroup, p->n_groups * TCC_P_GROUPS);
    s->resizes = TCC_NEW_ARRAY(p->scratch, tcc_presize, p->n_groups);
    s->slots = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, ((size_t)p->n_followed + 1) * p->n_slots + 1);
    size_t n_entities = p->n_entities + tcc_p_max_parts(p);
    s->clocks = TCC_NEW_ARRAY(p->scratch, uint32_t, n_entities * p->stride);
    s->versions = TCC_NEW_ARRAY(p->scratch, uint64_t, n_entities);
    s->parts = TCC_NEW_ARRAY(p->scratch, tcc_ppart, tcc_p_max_parts(p) + 1);
    tcc_p_memory_reserve(p, s, 1);
    s->reaches = TCC_NEW_ARRAY(p->scratch, uint32_t, p->reaches ? p->ctas * p->n_warps : 1);
    return s;
}

void tcc_p_globals_reserve(const tcc_protocol *p, tcc_pstate *s, unsigned n)
{
    enum { FEW = 16 };
    if (n <= s->globals_room)
        return;
    const tcc_pglobal *old = s->globals;
    s->globals_room = n < FEW ? FEW : 2 * n;
    s->globals = TCC_NEW_ARRAY(p->scratch, tcc_pglobal, s->globals_room);
    if (s->n_globals)
        memcpy(s->globals, old, s->n_globals * sizeof *old);
}

bool tcc_p_held_slots(const tcc_pframe *f, size_t i, tcc_pslots *piece)
{
    const tcc_pcode *code = f->code;
    uint32_t end = f->pc == AT_HEAD ? code->end_args : f->pc < code->n ? code->insts[f->pc].end_slot : code->end_slot;
    if (i >= code->n_own || code->own[i].first >= end)
        return false;
    *piece = code->own[i];
    piece->end = piece->end < end ? piece->end : end;
    return true;
}

static void copy_held(const tcc_pframe *f, tcc_pvalue *to, const tcc_pvalue *from)
{
    tcc_pslots piece;
    for (size_t i = 0; tcc_p_held_slots(f, i, &piece); i++) {
        size_t bytes = (piece.end - piece.first) * sizeof *to;
        if (from)
            memcpy(to + piece.first, from + piece.first, bytes);
        else
            memset(to + piece.first, 0, bytes);
    }
}

void tcc_p_copy_slots(const tcc_pwarp *w, tcc_pvalue *to, const tcc_pvalue *from)
{
    for (uint32_t d = 0; d < w->depth; d++)
        copy_held(&w->frames[d], to, from);
}

/* Before the region is left that the warp is in: those inside were. */
void tcc_p_clear_slots(const tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    const tcc_pwarp *w = &s->warps[warp];
    copy_held(&w->frames[w->depth - 1], tcc_p_slot(p, s, warp, 0), NULL);
}

/* There are many clocks, few of which differ from state to state. */
static void copy_clocks(const tcc_protocol *p, tcc_pstate *to, const tcc_pstate *from)
{
    for (unsigned e = 0; e < p->n_entities + from->n_parts; e++) {
        size_t at = (size_t)e * p->stride;
        if (to->versions[e] == from->versions[e])
            continue;
        memcpy(to->clocks + at, from->clocks + at, p->stride * sizeof *to->clocks);
        to->versions[e] = from->versions[e];
    }
}

/* Of a warp what is in use: it is in few regions, and few operands are in registers. */
static void copy_warps(const tcc_protocol *p, tcc_pstate *to, const tcc_pstate *from)
{
    size_t at = offsetof(tcc_pwarp, depth);
    for (unsigned i = 0; i < p->n_followed; i++) {
        const tcc_pwarp *w = &from->warps[i];
        tcc_pvalue *slots = tcc_p_slot(p, to, i, 0);
        tcc_p_copy_slots(&to->warps[i], slots, NULL);
        tcc_p_copy_slots(w, slots, tcc_p_slot(p, from, i, 0));
        memcpy(to->warps[i].frames, w->frames, w->depth * sizeof *w->frames);
        memcpy((char *)&to->warps[i] + at, (const char *)w + at, offsetof(tcc_pwarp, a) - at + w->n_a * sizeof *w->a);
    }
}

void tcc_p_state_copy(const tcc_protocol *p, tcc_pstate *to, const tcc_pstate *from)
{
    tcc_p_memory_reserve(p, to, from->n_atoms);
    tcc_p_globals_reserve(p, to, from->n_globals);
    tcc_p_copy_numbers(to, from);
    copy_warps(p, to, from);
    memcpy(to->barriers, from->barriers, from->n_barriers * sizeof *to->barriers);
    memcpy(to->waits, from->waits, (size_t)from->n_barriers * p->n_warps * sizeof *to->waits);
    size_t n_groups = (p->n_followed + TCC_WARPGROUP_WARPS - 1) / TCC_WARPGROUP_WARPS;
    size_t bytes = offsetof(tcc_pgroup, clocks) + p->n_steps * sizeof *to->groups->clocks;
    for (size_t g = 0; g < n_groups * TCC_P_GROUPS; g++)
        memcpy(&to->groups[g], &from->groups[g], bytes);
    memcpy(to->resizes, from->resizes, p->n_groups * sizeof *to->resizes);
    copy_clocks(p, to, from);
    memcpy(to->parts, from->parts, from->n_parts * sizeof *to->parts);
    memcpy(to->atoms, from->atoms, from->n_atoms * sizeof *to->atoms);
    if (p->reaches)
        memcpy(to->reaches, from->reaches, p->ctas * p->n_warps * sizeof *to->reaches);
    if (from->n_globals)
        memcpy(to->globals, from->globals, from->n_globals * sizeof *to->globals);
}

/* [dim, NAME] */
bool tcc_p_is_dim(const tcc_protocol *p, size_t i)
{
    tcc_attr params = tcc_attr_list(&p->f->attrs, "params");
    return i < params.list.n && tcc_attr_is_record(params.list.items[i], "dim", "s");
}

/* Whether a fixed op has operands, equal to those of the warp before, which say what it gives. */
static bool is_as_before(const tcc_protocol *p, unsigned warp, const tcc_pinst *in)
{
    bool same = warp && in->op->n_operands && in->op->code != TCC_OP_nvvm_mapa;
    for (unsigned i = 0; i < in->op->n_operands && same; i++)
        same = !memcmp(tcc_p_slot(p, NULL, warp, in->operands[i]), tcc_p_slot(p, NULL, warp - 1, in->operands[i]),
                       sizeof(tcc_pvalue));
    return same;
}

void tcc_p_compute_fixed(tcc_protocol *p)
{
    p->fixed_values = TCC_NEW_ARRAY(p->scratch, tcc_pvalue, (size_t)p->n_warps * p->n_fixed + 1);
    for (unsigned w = 0; w < p->n_warps; w++)
        for (size_t i = 0; i < p->fixed.len; i++) {
            const tcc_pinst *in = &p->fixed.data[i];
            tcc_pvalue *v = tcc_p_slot(p, NULL, w, in->results[0]);
            if (is_as_before(p, w, in))
                *v = *tcc_p_slot(p, NULL, w - 1, in->results[0]);
            else
                tcc_p_give(p, NULL, w, in, v);
        }
}

/* What the function requires of a launch is true of it. */
int64_t tcc_p_least_of_dim(const tcc_protocol *p, size_t i)
{
    const char *name = tcc_attr_list(&p->f->attrs, "params").list.items[i].list.items[1].s;
    tcc_attr requires = tcc_attr_list(&p->f->attrs, "requires");
    int64_t least = 0;
    for (size_t k = 0; k < requires.list.n; k++) {
        const tcc_attr *of = requires.list.items[k].list.items;
        if (tcc_attr_is_record(requires.list.items[k], "min", "si") && !strcmp(of[1].s, name) && of[2].i > least)
            least = of[2].i;
    }
    return least;
}

tcc_pvalue tcc_p_dim(tcc_protocol *p, size_t i)
{
    return tcc_p_symbol_from(p, tcc_p_least_of_dim(p, i), p->f->body->args[i], NULL, 0);
}

tcc_pvalue tcc_p_first_value(tcc_protocol *p, size_t i)
{
    const tcc_value *arg = p->f->body->args[i];
    return arg->type->kind == TCC_KIND_tensormap ? tcc_p_known((int64_t)i)
           : tcc_p_is_dim(p, i)                  ? tcc_p_dim(p, i)
                                                 : tcc_p_symbol(p, arg, NULL, 0);
}

tcc_pstate *tcc_p_first_state(tcc_protocol *p)
{
    tcc_pstate *s = tcc_p_state_create(p);
    const tcc_block *body = p->f->body;
    s->n_atoms = 1;
    s->chosen = -1;
    for (unsigned w = 0; w < p->n_warps; w++) {
        s->warps[w] = (tcc_pwarp){.depth = 1,
                                  .mask = tcc_p_all_lanes(p),
                                  .waits_at = -1,
                                  .registers = (int32_t)tcc_registers_at_launch(p->f)};
        s->warps[w].frames[0] = (tcc_pframe){.code = &p->body,
                                             .mask = tcc_p_all_lanes(p),
                                             .outer = tcc_p_all_lanes(p),
                                             .record = -1};
        if (w < p->n_followed)
            tcc_p_tick(p, s, w);
        if (w == p->aside || w % p->spread >= p->cta_warps || w >= p->n_followed)
            s->warps[w].depth = 0; /* it begins later; there is none; it does what another does */
        for (size_t i = 0; i < body->n_args; i++)
            if (p->body.args[i] != TCC_P_NO_SLOT)
                *tcc_p_slot(p, s, w, p->body.args[i]) = tcc_p_first_value(p, i);
    }
    return s;
}

/* ---- the end of warps ----------------------------------------------------------------------- */

/* The op at which an error at the end is shown. */
static tcc_pinst at_return(const tcc_protocol *p)
{
    return (tcc_pinst){.op = p->f->body->last};
}

bool tcc_p_check_end_of_warp(tcc_protocol *p, tcc_pstate *s, unsigned warp)
{
    const tcc_pwarp *w = &s->warps[warp];
    tcc_pinst end = at_return(p);
    if (warp == p->aside)
        return tcc_p_aside_is_in_order(p, s);
    if (w->open_group || w->waited < w->last_group)
        tcc_p_wrong(p, s, warp, &end, "warp %u ends before its MMAs", warp);
    else if (w->open_bulk ||
             (p->stores &&
              tcc_p_seen(p, s,
                         tcc_p_entity(p, s, warp,
                                      UINT64_C(1) << w->bulk_lane))[tcc_p_bulk_actor(p, warp)] <
                  w->bulk_groups))
        tcc_p_wrong(p, s, warp, &end, "warp %u ends while its copies may still be %s shared memory", warp,
                    p->groups ? "writing" : "reading");
    else
        return true;
    return false;
}

/* Whether all warps of a warpgroup have run its last setmaxnreg, and they are four. */
static bool check_resizes(tcc_protocol *p, tcc_pstate *s, unsigned group)
{
    const tcc_presize *r = &s->resizes[group];
    tcc_pinst at = {.op = r->op};
    for (unsigned i = 0; r->op && i < TCC_WARPGROUP_WARPS; i++) {
        unsigned warp = group * TCC_WARPGROUP_WARPS + i;
        if (warp >= p->n_warps)
            tcc_p_wrong(p, s, warp - 1, &at, "warp %u is in an incomplete warpgroup",
                        warp - 1);
        else if (!r->clocks[i])
            tcc_p_wrong(p, s, warp, &at,
                        "warp %u ends without this, which others of its warpgroup ran", warp);
        else
            continue;
        return false;
    }
    return true;
}

int tcc_p_unfinished(const tcc_protocol *p, const tcc_pstate *s)
{
    for (unsigned b = 0; b < s->n_barriers; b++) {
        const tcc_pbarrier *bar = &s->barriers[b];
        uint32_t known = 0, last = bar->last_copy > bar->last_afar ? bar->last_copy : bar->last_afar;
        if (!tcc_p_is_followed_barrier(p, b))
            continue;
        for (unsigned i = 0; i < p->n_followed + s->n_parts && known < last; i++) {
            size_t entity = i < p->n_followed ? i : p->n_entities + i - p->n_followed;
            unsigned warp = i < p->n_followed ? i : s->parts[i - p->n_followed].warp;
            uint32_t k = s->clocks[entity * p->stride + tcc_p_barrier_actor(p, b)];
            if (tcc_p_cta(p, warp) == tcc_p_cta_at(bar->address - TCC_SMEM_BASE))
                known = k > known ? k : known;
        }
        if (last > known)
            return (int)b;
    }
    return -1;
}

/* Whether a warp of each CTA comes after all that others have written to its shared memory. */
static bool knows_of_reaches(const tcc_protocol *p, const tcc_pstate *s)
{
    bool all = true;
    for (unsigned i = 0; i < p->ctas * p->n_warps; i++) {
        bool known = !s->reaches[i];
        for (unsigned w = 0; w < p->n_warps; w++)
            known |= tcc_p_cta(p, w) == i / p->n_warps && tcc_p_clocks(p, s, w)[i % p->n_warps] >= s->reaches[i];
        all &= known;
    }
    return all;
}

bool tcc_p_check_end(tcc_protocol *p, tcc_pstate *s)
{
    tcc_pinst end = at_return(p);
    for (unsigned g = 0; g < p->n_groups; g++)
        if (!check_resizes(p, s, g))
            return false;
    int b = tcc_p_unfinished(p, s);
    if (b >= 0)
        tcc_p_wrong(p, s, 0, &end,
                    "the CTA ends while %s: no warp has waited for the last phase of the mbarrier at byte %lld",
                    s->barriers[b].last_afar > s->barriers[b].last_copy ? "others of the cluster may still arrive there"
                                                                        : "copies may still be writing shared memory",
                    tcc_p_byte(s->barriers[b].address));
    else if (p->reaches && !p->ends_together && !knows_of_reaches(p, s))
        tcc_p_wrong(p, s, 0, &end, "a CTA may end before others of the cluster have written to its shared memory");
    else
        return true;
    return false;
}

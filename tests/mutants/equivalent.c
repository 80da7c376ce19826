/* equivalent: mutants that are not wrong, each with the reason.
 *
 * A reason says by kind, op and surroundings which mutants it is for. All of those must survive,
 * and there must be some.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/grid.h"
#include "ir/machine.h"
#include "ir/signature.h"
#include "tests/mutants/mutants.h"

static bool is_kind(const site *s, const char *name)
{
    return !strcmp(s->kind->name, name);
}

static int64_t setting(const site *s, const char *name)
{
    return tcc_attr_int(&s->f->attrs, name, 0);
}

static bool is_string(const site *s, const char *name, const char *value)
{
    return !strcmp(tcc_attr_str(&s->f->attrs, name, ""), value);
}

/* Whether the result, C, may be stored by TMA. */
static bool assumes_aligned_result(const site *s)
{
    tcc_attr list = tcc_attr_list(&s->f->attrs, "assumes");
    for (size_t i = 0; i < list.list.n; i++)
        if (tcc_attr_is_record(list.list.items[i], "align", "si") &&
            !strcmp(list.list.items[i].list.items[1].s, "C"))
            return true;
    return false;
}

/* ---- barriers ---------------------------------------------------------------------------- */

/* Where in shared memory an address is, in the first stage: the constants that are added up. */
static int64_t offset_of(const tcc_value *address)
{
    int64_t offset;
    if (tcc_value_is_int(address, &offset))
        return offset;
    const tcc_op *add = address->def;
    return add && add->code == TCC_OP_arith_add
               ? offset_of(add->operands[0]) + offset_of(add->operands[1])
               : 0;
}

/* The stages' full barriers lie before their empty ones. */
static bool is_empty_barrier(const site *s, const tcc_value *address)
{
    int64_t first = setting(s, "smem_bytes") - 16 * setting(s, "stages");
    return offset_of(address) >= first + 8 * setting(s, "stages");
}

static bool is_wait_for_empty(const site *s, const tcc_op *op)
{
    return op->code == TCC_OP_nvvm_mbarrier_wait && is_empty_barrier(s, op->operands[0]);
}

/* The barrier after which results are staged where operands were, when only one warpgroup could
 * have read them. */
static bool is_barrier_before_staging(const site *s, const tcc_op *op)
{
    int64_t id;
    for (const tcc_block *b = op->block; b->parent; b = b->parent->block)
        if (b->parent->code == TCC_OP_scf_for)
            return false; /* what was staged may still be on its way */
    return setting(s, "warpgroups") == 1 && op->code == TCC_OP_nvvm_barrier &&
           tcc_value_is_int(op->operands[0], &id) && id == 1;
}

/* The loop in which those who have no producer fill the first stages. */
static bool is_prologue(const tcc_op *loop)
{
    return loop && loop->code == TCC_OP_scf_for && !loop->n_results && loop->operands[1]->def &&
           loop->operands[1]->def->code == TCC_OP_arith_min;
}

static bool is_in_prologue(const tcc_op *op)
{
    for (const tcc_block *b = op->block; b->parent; b = b->parent->block)
        if (is_prologue(b->parent))
            return true;
    return false;
}

static bool depends_on_code(const tcc_value *v, tcc_opcode code)
{
    if (!v->def || has_effect(v->def))
        return false;
    if (v->def->code == code)
        return true;
    for (unsigned i = 0; i < v->def->n_operands; i++)
        if (depends_on_code(v->def->operands[i], code))
            return true;
    return false;
}

/* ---- ops that may change places ---------------------------------------------------------- */

static bool is_either(const tcc_op *a, const tcc_op *b, tcc_opcode code)
{
    return a->code == code || b->code == code;
}

static bool are_both(const tcc_op *a, const tcc_op *b, tcc_opcode code)
{
    return a->code == code && b->code == code;
}

static bool are(const tcc_op *a, const tcc_op *b, tcc_opcode x, tcc_opcode y)
{
    return (a->code == x && b->code == y) || (a->code == y && b->code == x);
}

static bool is_product(const tcc_op *op)
{
    return tcc_op_starts(op->code, TCC_BY_MMA_GROUP);
}

static bool contains(const tcc_op *op, tcc_opcode code)
{
    for (unsigned r = 0; r < op->n_regions; r++)
        for (tcc_op *in = op->regions[r]->first; in; in = tcc_walk_next(in, op->regions[r]))
            if (in->code == code)
                return true;
    return false;
}

/* Those who fill the stages give them back to themselves. */
static bool filler_releases(const site *s)
{
    return is_string(s, "producer", "none") && setting(s, "warpgroups") == 1;
}

static bool is_release(const tcc_op *op)
{
    return op->code == TCC_OP_scf_if && contains(op, TCC_OP_nvvm_mbarrier_arrive);
}

/* Of one of them: waits, products and what goes with them. */
static bool is_of_products(const tcc_op *op)
{
    bool fence = tcc_op_does(op->code, TCC_FENCE) && tcc_op_does(op->code, TCC_MMA);
    return fence || tcc_op_does(op->code, TCC_BY_MMA_GROUP) ||
           tcc_op_waits(op->code, TCC_BY_MBARRIER);
}

static bool contains_product(const tcc_op *op)
{
    return contains(op, TCC_OP_nvvm_wgmma) || contains(op, TCC_OP_nvvm_wgmma_a);
}

static bool is_one_warpgroup(const site *s)
{
    return tcc_attr_int(&s->f->attrs, "block", 0) == TCC_WARPGROUP_WARPS * TCC_WARP_LANES;
}

/* By each thread, or by some. */
static bool starts_copies(const tcc_op *op)
{
    return op->code == TCC_OP_nvvm_cp_async || (op->code == TCC_OP_scf_if && contains(op, TCC_OP_nvvm_cp_async));
}

/* Whether op, which comes earlier, takes a copy from its group to one that is waited for before. */
static bool takes_to_earlier_group(const site *s, const tcc_op *op, const tcc_op *other)
{
    return op == s->op && !is_kind(s, "move to the end") && op->code == TCC_OP_nvvm_cp_async &&
           other->code == TCC_OP_nvvm_cp_async_commit;
}

/* A copy, or what says that bytes come or that a stage is empty. */
static bool is_of_phases(const tcc_op *op)
{
    return op->code == TCC_OP_nvvm_tma_load || op->code == TCC_OP_nvvm_tma_load_multicast ||
           op->code == TCC_OP_nvvm_mbarrier_arrive_expect_tx || op->code == TCC_OP_nvvm_st_async_word ||
           op->code == TCC_OP_nvvm_mbarrier_arrive_expect_tx_cluster;
}

/* The one that brings the lanes of each warp together for the cluster's barrier. */
static bool is_before_cluster(const tcc_op *op)
{
    return op->code == TCC_OP_nvvm_warp_sync && op->next && op->next->code == TCC_OP_nvvm_cluster_arrive;
}

/* Whether it is what fills a stage: the wait for it, copies to it. Consumers wait for these before they arrive at the
 * cluster's barrier, where whoever did no more has nothing to tell. */
static bool is_of_filling(const site *s, const tcc_op *op)
{
    return !has_effect(op) || op->n_regions || op->code == TCC_OP_nvvm_elect || op->code == TCC_OP_nvvm_tma_load ||
           op->code == TCC_OP_nvvm_mbarrier_arrive_expect_tx || is_wait_for_empty(s, op);
}

static bool only_fills(const site *s, const tcc_op *op)
{
    bool only = is_of_filling(s, op);
    for (unsigned r = 0; r < op->n_regions; r++)
        for (tcc_op *in = op->regions[r]->first; in; in = tcc_walk_next(in, op->regions[r]))
            only &= is_of_filling(s, in);
    return only;
}

/* Whether it is all that a role has done since all met, by its arrival at the cluster's barrier. */
static bool has_only_filled(const site *s, const tcc_op *arrival)
{
    const tcc_op *role = arrival->block->parent, *met = role ? previous_effect(role) : NULL;
    bool only = met && met->code == TCC_OP_nvvm_cluster_wait;
    for (const tcc_op *op = previous_effect(arrival); op && only; op = previous_effect(op))
        only = only_fills(s, op) || is_before_cluster(op);
    return only;
}

/* Whether the CTAs meet behind an op, in its role. */
static bool meet_behind(const tcc_op *op)
{
    for (; op->block->parent; op = op->block->parent)
        for (const tcc_op *o = op->next; o; o = o->next)
            if (o->code == TCC_OP_nvvm_cluster_wait)
                return true;
    return false;
}

/* Whether one op reaches into another CTA with no meeting behind it, before that at the end. */
static bool reaches_until_the_end(const tcc_func *f)
{
    bool reaches = false;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        reaches |= tcc_op_does(op->code, TCC_CLUSTER) && !tcc_op_does(op->code, TCC_BY_CLUSTER) && !meet_behind(op);
    return reaches;
}

static bool touches_shared(tcc_opcode code)
{
    return tcc_op_does(code, TCC_READS_SHARED | TCC_WRITES_SHARED) && !tcc_op_does(code, TCC_ASYNC_PROXY);
}

/* Whether lanes read or write shared memory themselves in it. */
static bool has_lanes_access(const tcc_op *op)
{
    bool has = touches_shared(op->code);
    for (unsigned r = 0; r < op->n_regions; r++)
        for (tcc_op *in = op->regions[r]->first; in; in = tcc_walk_next(in, op->regions[r]))
            has |= touches_shared(in->code);
    return has;
}

/* Whether one lane waits for its warp in this block or in what is in it: then the others learn of it from the lane. */
static bool waits_for_its_warp(const tcc_block *b)
{
    bool waits = false;
    for (tcc_op *op = b->first; op; op = tcc_walk_next(op, b))
        waits |= op->code == TCC_OP_scf_if &&
                 (contains(op, TCC_OP_nvvm_mbarrier_wait) || contains(op, TCC_OP_nvvm_bulk_wait));
    return waits;
}

/* Whether one writes a buffer of results while the other sends the next one. */
static bool are_of_two_buffers(const tcc_op *write, const tcc_op *branch)
{
    if (write->code != TCC_OP_nvvm_stmatrix)
        return false;
    bool sends = false, same = false;
    for (tcc_op *in = branch->n_regions ? branch->regions[0]->first : NULL; in; in = in->next)
        if (in->code == TCC_OP_nvvm_tma_store) {
            sends = true;
            same |= offset_of(in->operands[0]) == offset_of(write->operands[0]);
        }
    return sends && !same;
}

/* The stage of a ring that an address lies in: what an iteration's number, and so much more, leaves when divided. */
typedef struct stage_number {
    const tcc_value *iteration;
    int64_t ahead, stages;
} stage_number;

static bool find_stage(const tcc_value *address, stage_number *s)
{
    const tcc_op *op = address->def;
    int64_t by;
    if (!op)
        return false;
    if (op->code == TCC_OP_arith_add || op->code == TCC_OP_arith_mul)
        return find_stage(op->operands[0], s) || find_stage(op->operands[1], s);
    bool rem = op->code == TCC_OP_arith_rem, mask = op->code == TCC_OP_arith_and;
    if ((!rem && !mask) || !tcc_value_is_int(op->operands[1], &by))
        return false;
    const tcc_value *number = op->operands[0];
    const tcc_op *add = number->def;
    *s = (stage_number){number, offset_of(number), rem ? by : by + 1};
    if (add && add->code == TCC_OP_arith_add)
        s->iteration = add->operands[0];
    return !s->iteration->def; /* an argument of the loop */
}

/* Whether one fills a stage while the other reads another one. */
static bool are_of_two_stages(const tcc_op *fill, const tcc_op *read)
{
    stage_number filled, used;
    return (fill->code == TCC_OP_nvvm_cp_async || fill->code == TCC_OP_nvvm_st_shared) &&
           (read->code == TCC_OP_nvvm_ld_shared || read->code == TCC_OP_nvvm_ldmatrix) &&
           find_stage(fill->operands[0], &filled) && find_stage(read->operands[0], &used) &&
           filled.iteration == used.iteration && filled.stages == used.stages &&
           (filled.ahead - used.ahead) % used.stages != 0;
}

/* Whether an op accesses a tensor, or one in its regions. */
static bool accesses_tensor(const tcc_op *op)
{
    bool any = tcc_op_global_use(op->code).any;
    for (unsigned r = 0; r < op->n_regions; r++)
        for (tcc_op *in = op->regions[r]->first; in; in = tcc_walk_next(in, op->regions[r]))
            any |= tcc_op_global_use(in->code).any;
    return any;
}

/* Whether op waits for a word that is written, or read, next. */
static bool is_wait_for_word(const tcc_op *op)
{
    const tcc_op *next = op->code == TCC_OP_nvvm_mbarrier_wait ? op->next : NULL;
    while (next && tcc_op_info_get(next->code)->flags & TCC_PURE)
        next = next->next;
    return next && (next->code == TCC_OP_nvvm_ld_shared_word || next->code == TCC_OP_nvvm_st_shared_word);
}

/* Whether a wait for a word may be done in front of another op, or behind it: not of one that brings it, or what it
 * takes. */
static bool is_free_of_word(const tcc_op *op)
{
    return !contains_product(op) && !contains(op, TCC_OP_nvvm_st_async_word) &&
           !tcc_op_does(op->code, TCC_READS_SHARED | TCC_WRITES_SHARED);
}

/* Why two ops may change places, NULL: they may not. */
static const char *why_free(const site *s, const tcc_op *a, const tcc_op *b)
{
    if (is_either(a, b, TCC_OP_nvvm_griddepcontrol_launch))
        return "next";
    if (is_either(a, b, TCC_OP_nvvm_griddepcontrol_wait))
        return accesses_tensor(a) || accesses_tensor(b) ? NULL : "before";
    if (is_either(a, b, TCC_OP_nvvm_prefetch_tensormap))
        return "prefetch";
    const tcc_op *waits_for_word = is_wait_for_word(a) ? a : is_wait_for_word(b) ? b : NULL;
    if (waits_for_word && is_free_of_word(waits_for_word == a ? b : a))
        return "word";
    if (takes_to_earlier_group(s, a, b))
        return "earlier";
    if (are_both(a, b, TCC_OP_nvvm_mbarrier_init) || are_both(a, b, TCC_OP_nvvm_st_global) ||
        are_both(a, b, TCC_OP_nvvm_ld_global) || are_both(a, b, TCC_OP_nvvm_st_shared) ||
        are_both(a, b, TCC_OP_nvvm_st_shared_cluster) || are_both(a, b, TCC_OP_nvvm_mbarrier_arrive_cluster) ||
        are_both(a, b, TCC_OP_nvvm_stmatrix) || are_both(a, b, TCC_OP_nvvm_wmma_load) ||
        are_both(a, b, TCC_OP_nvvm_tma_store) ||
        are_both(a, b, TCC_OP_nvvm_ld_shared) || are(a, b, TCC_OP_nvvm_ld_shared, TCC_OP_nvvm_st_global) ||
        are(a, b, TCC_OP_nvvm_barrier, TCC_OP_nvvm_mma) || /* which multiplies registers */
        (starts_copies(a) && starts_copies(b)) || are_of_two_buffers(a, b) || are_of_two_buffers(b, a) ||
        are_of_two_stages(a, b) || are_of_two_stages(b, a))
        return "places";
    if ((is_of_phases(a) && is_of_phases(b)) ||
        are(a, b, TCC_OP_nvvm_mbarrier_arrive, TCC_OP_nvvm_mbarrier_arrive_cluster))
        return "phase";
    if (is_before_cluster(a) || is_before_cluster(b))
        return "together";
    if (is_either(a, b, TCC_OP_nvvm_cluster_arrive) && (only_fills(s, a) || only_fills(s, b)))
        return "filled";
    if (is_either(a, b, TCC_OP_nvvm_warp_sync) && a->block->parent && a->block->parent->code == TCC_OP_scf_for &&
        !waits_for_its_warp(a->block) && !has_lanes_access(a->code == TCC_OP_nvvm_warp_sync ? b : a))
        return "lanes";
    if (is_either(a, b, TCC_OP_nvvm_setmaxnreg) && !is_either(a, b, TCC_OP_scf_if))
        return "registers";
    if (is_barrier_before_staging(s, a) || is_barrier_before_staging(s, b))
        return "ended";
    if (is_either(a, b, TCC_OP_nvvm_ld_global))
        return contains(a, TCC_OP_nvvm_st_global) || contains(b, TCC_OP_nvvm_st_global) ? NULL
                                                                                        : "input";
    if (are(a, b, TCC_OP_nvvm_barrier, TCC_OP_nvvm_wgmma_wait) && is_one_warpgroup(s))
        return "ended";
    if (is_either(a, b, TCC_OP_nvvm_wgmma_fence) && !is_either(a, b, TCC_OP_nvvm_ldmatrix) &&
        !is_product(a) && !is_product(b) && !contains_product(a) && !contains_product(b))
        return "fence";
    if (are_both(a, b, TCC_OP_scf_for) && contains(a, TCC_OP_nvvm_st_shared) &&
        contains(b, TCC_OP_nvvm_st_shared))
        return "places";
    if (is_wait_for_empty(s, a) || is_wait_for_empty(s, b))
        return is_in_prologue(a) ? "first"
               : filler_releases(s) && (is_either(a, b, TCC_OP_nvvm_tma_load) ||
                                        is_either(a, b, TCC_OP_nvvm_mbarrier_arrive_expect_tx) ||
                                        is_either(a, b, TCC_OP_scf_for))
                   ? "filler"
                   : NULL;
    if (filler_releases(s) &&
        ((is_release(a) && is_of_products(b)) || (is_release(b) && is_of_products(a))))
        return "filler";
    return NULL;
}

/* Whether all the ops that this one is moved over are free for this reason, or another that is
 * given, too. */
static bool moves_freely(const site *s, const char *why)
{
    const tcc_op *op = s->op;
    bool first = is_kind(s, "move to the beginning"), last = is_kind(s, "move to the end");
    bool any = false;
    if (!first && !last && !is_kind(s, "exchange neighbours"))
        return false;
    const tcc_op *o = last ? next_effect(op) : previous_effect(op);
    for (; o; o = last ? next_effect(o) : previous_effect(o)) {
        const char *free = why_free(s, op, o);
        if (!free)
            return false;
        any |= !strcmp(free, why);
        if (!first && !last)
            break;
    }
    return any;
}

/* ---- the reasons ------------------------------------------------------------------------- */

static bool prefetches(const site *s)
{
    return is_kind(s, "drop prefetch.tensormap") || moves_freely(s, "prefetch");
}

static bool next_step_waits(const site *s)
{
    return s->op->code == TCC_OP_nvvm_griddepcontrol_launch || moves_freely(s, "next");
}

static bool accesses_no_tensor(const site *s)
{
    return moves_freely(s, "before");
}

static bool other_places(const site *s)
{
    return moves_freely(s, "places");
}

static bool one_phase(const site *s)
{
    return moves_freely(s, "phase");
}

/* Out of a role it is where the whole warp comes. */
static bool lanes_are_together(const site *s)
{
    const tcc_op *role = s->op->block->parent;
    bool gone = is_kind(s, "drop warp.sync") || (is_kind(s, "move out warp.sync") && !role->block->parent);
    return moves_freely(s, "together") || (gone && is_before_cluster(s->op));
}

static bool consumers_have_waited(const site *s)
{
    return moves_freely(s, "filled") || (is_kind(s, "relaxed arrival") && has_only_filled(s, s->op));
}

/* Then nobody needs the meeting at the end, when a CTA's shared memory goes. */
static bool have_met_since(const site *s)
{
    const tcc_op *wait = is_kind(s, "drop cluster.wait") ? s->op : next_effect(s->op);
    bool is_one = is_kind(s, "drop cluster.wait") || is_kind(s, "drop cluster.arrive and wait") ||
                  is_kind(s, "relaxed arrival");
    return is_one && !s->op->block->parent && wait && !next_effect(wait) && !reaches_until_the_end(s->f);
}

static bool no_lane_accesses(const site *s)
{
    return moves_freely(s, "lanes");
}

static bool registers_first_written_by_mmas(const site *s)
{
    return moves_freely(s, "fence") || (is_kind(s, "move out wgmma.fence") && s->way == 0 &&
                                        !contains(s->op->block->parent, TCC_OP_nvvm_wgmma_a));
}

static bool fewer_registers(const site *s)
{
    if (s->op->code != TCC_OP_nvvm_setmaxnreg)
        return moves_freely(s, "registers");
    bool more = !strcmp(tcc_attr_str(&s->op->attrs, "action", ""), "inc");
    return moves_freely(s, "registers") || (is_kind(s, "drop setmaxnreg") && more) ||
           (is_kind(s, "registers") && s->way == 1);
}

static bool waits_again(const site *s)
{
    return is_kind(s, "repeat mbarrier.wait") || is_kind(s, "repeat barrier") ||
           is_kind(s, "repeat warp.sync") || is_kind(s, "repeat wgmma.commit_group") ||
           is_kind(s, "repeat bulk.commit_group");
}

static bool waits_for_more(const site *s)
{
    bool groups = is_kind(s, "pending MMAs") || is_kind(s, "pending groups");
    const tcc_op *before = previous_effect(s->op);
    bool read = before && before->code == TCC_OP_nvvm_ld_shared && s->op->code == TCC_OP_nvvm_cp_async_wait;
    return (groups && s->way == 1) || is_kind(s, "copies read or written") ||
           (read && is_kind(s, "exchange neighbours"));
}

static bool waits_earlier(const site *s)
{
    return moves_freely(s, "earlier");
}

static bool waits_for_word_earlier(const site *s)
{
    return moves_freely(s, "word");
}

/* From op on, the first wait for a group behind which so many were closed, itself counted. */
static const tcc_op *first_wait_for(const tcc_op *op, const tcc_block *top, int64_t *groups)
{
    for (; op; op = tcc_walk_next((tcc_op *)op, top)) {
        *groups += op->code == TCC_OP_nvvm_bulk_commit;
        if (op->code == TCC_OP_nvvm_bulk_wait && *groups > tcc_attr_int(&op->attrs, "pending", 0))
            return op;
    }
    return NULL;
}

static bool covers_next_group(const tcc_op *wait, int64_t groups)
{
    return wait && groups - 1 > tcc_attr_int(&wait->attrs, "pending", 0);
}

/* Whether the first wait for the group that is closed here is one for the next group, too: in this iteration, or both
 * in the next one and behind the loop. */
static bool is_waited_for_with_next(const tcc_op *commit)
{
    const tcc_block *top = commit->block;
    while (top->parent && top->parent->code != TCC_OP_scf_for)
        top = top->parent->block;
    int64_t groups = 0;
    const tcc_op *loop = top->parent, *wait = first_wait_for(commit, top, &groups);
    if (wait || !loop)
        return covers_next_group(wait, groups);
    int64_t groups_behind = groups;
    const tcc_op *behind = first_wait_for(loop->next, loop->block, &groups_behind);
    wait = first_wait_for(top->first, top, &groups);
    return covers_next_group(wait, groups) && covers_next_group(behind, groups_behind);
}

static bool is_of_next_group(const site *s)
{
    const tcc_op *before = previous_effect(s->op);
    bool earlier = is_kind(s, "exchange neighbours") || is_kind(s, "move to the beginning") ||
                   (is_kind(s, "move out bulk.commit_group") && s->way == 0);
    return earlier && s->op->code == TCC_OP_nvvm_bulk_commit && before && before->code == TCC_OP_nvvm_tma_store &&
           is_waited_for_with_next(s->op);
}

/* Behind it are neither copies nor reads of shared memory. */
static bool has_no_use_of_groups(const site *s)
{
    bool uses = false;
    for (const tcc_op *op = s->op->next; op; op = op->next)
        uses |= op->n_regions || tcc_op_does(op->code, TCC_READS_SHARED | TCC_WRITES_SHARED);
    return is_kind(s, "move to the end") && s->op->code == TCC_OP_nvvm_cp_async_wait && !uses;
}

static bool draws_at_another_time(const site *s)
{
    const tcc_op *before = previous_effect(s->op);
    return is_kind(s, "exchange neighbours") && before &&
           (s->op->code == TCC_OP_nvvm_atom_inc || before->code == TCC_OP_nvvm_atom_inc);
}

static bool releases_later(const site *s)
{
    if (is_kind(s, "exchange neighbours") && previous_effect(s->op) &&
        are(s->op, previous_effect(s->op), TCC_OP_nvvm_mbarrier_arrive, TCC_OP_nvvm_bulk_wait))
        return true;
    return is_kind(s, "constant of a released stage") && s->op->code == TCC_OP_arith_sub &&
           s->way == 2 && setting(s, "stages") > 2 && !is_string(s, "producer", "none");
}

static bool waits_in_the_same_tile(const site *s)
{
    return is_kind(s, "move to the end") && contains(s->op, TCC_OP_nvvm_bulk_wait) &&
           !contains(s->op, TCC_OP_nvvm_tma_store) && s->op->block->parent &&
           s->op->block->parent->code == TCC_OP_scf_for;
}

static bool computes_tiles_twice(const site *s)
{
    tcc_attr grid = tcc_attr_list(&s->f->attrs, "grid");
    return is_kind(s, "grid") && s->way == 0 && grid.list.items[0].kind == TCC_ATTR_INT;
}

/* The swizzle of a descriptor, in its own terms: 0 is none; -1: not known. */
static int swizzle_of(const tcc_value *descriptor)
{
    int64_t bits;
    const tcc_op *op = descriptor->def;
    while (op && op->code == TCC_OP_arith_add)
        op = op->operands[0]->def;
    if (!op || op->code != TCC_OP_arith_or || !tcc_value_is_int(op->operands[1], &bits))
        return -1;
    return (int)((uint64_t)bits >> 62);
}

static bool unused_offset(const site *s)
{
    static const int64_t bytes[] = {16, 128, 64, 32};
    const tcc_op *op = s->op;
    if (op->code != TCC_OP_nvvm_wgmma)
        return false;
    bool b = s->way >= s->kind->n_ways;
    bool mn_major = tcc_attr_int(&op->attrs, b ? "trans_b" : "trans_a", 0);
    int swizzle = swizzle_of(op->operands[b ? 2 : 1]);
    int64_t width = b ? tcc_attr_int(&op->attrs, "n", 0) : 64;
    if (is_kind(s, "leading offset of a descriptor"))
        return swizzle > 0 && (!mn_major || width * 2 <= bytes[swizzle]);
    return is_kind(s, "stride offset of a descriptor") && width <= 8 && (!mn_major || swizzle == 0);
}

static bool same_count(const site *s)
{
    const tcc_op *next = next_effect(s->op);
    int64_t a, b;
    return is_kind(s, "two initialisations") && tcc_value_is_int(s->op->operands[1], &a) &&
           tcc_value_is_int(next->operands[1], &b) && a == b;
}

static bool has_op(const tcc_func *f, tcc_opcode code)
{
    const tcc_op *op = f->body->first;
    while (op && op->code != code)
        op = tcc_walk_next((tcc_op *)op, f->body);
    return op != NULL;
}

/* Whether it is the barrier of a stage that copies fill. */
static bool is_full_barrier(const site *s, const tcc_value *address)
{
    int64_t stages = setting(s, "stages");
    bool is = false;
    for (tcc_op *op = s->f->body->first; op && !is; op = tcc_walk_next(op, s->f->body)) {
        int64_t from = op->code == TCC_OP_nvvm_tma_load ? offset_of(address) - offset_of(op->operands[2]) : -1;
        is = from >= 0 && from < 8 * (stages ? stages : 1);
    }
    return is;
}

static bool no_copy_completes_on_it(const site *s)
{
    tcc_op *op = s->op;
    if (has_op(s->f, TCC_OP_nvvm_mbarrier_arrive_cluster))
        return false; /* other CTAs arrive at it */
    if (!has_op(s->f, TCC_OP_nvvm_tma_load))
        return op->code == TCC_OP_nvvm_fence_mbarrier_init ||
               (is_kind(s, "move to the end") && op->code == TCC_OP_nvvm_mbarrier_init);
    if (is_kind(s, "exchange neighbours") && op->code == TCC_OP_nvvm_fence_mbarrier_init)
        return !is_full_barrier(s, previous_effect(op)->operands[0]);
    return is_kind(s, "move to the end") && op->code == TCC_OP_nvvm_mbarrier_init &&
           !is_full_barrier(s, op->operands[0]);
}

static bool tells_more(const site *s)
{
    return is_kind(s, "relaxed arrival") && tcc_attr_int(&s->op->attrs, "relaxed", 0);
}

static bool more_threads_fence(const site *s)
{
    return is_kind(s, "move out fence.mbarrier_init") && s->way == 1;
}

static bool nothing_of_its_own(const site *s)
{
    if (is_kind(s, "condition") && s->way == 1)
        return contains(s->op, TCC_OP_nvvm_bulk_wait) && !contains(s->op, TCC_OP_nvvm_tma_store) &&
               !contains(s->op, TCC_OP_nvvm_mbarrier_arrive);
    if (s->way == 1)
        return is_kind(s, "move out bulk.wait_group") ||
               (is_kind(s, "move out bulk.commit_group") && !next_effect(s->op));
    return is_kind(s, "move out bulk.wait_group") &&
           !contains(s->op->block->parent, TCC_OP_nvvm_tma_store);
}

static bool filler_has_emptied(const site *s)
{
    if (!filler_releases(s) || is_in_prologue(s->op))
        return false;
    if (is_kind(s, "constant of a released stage"))
        return s->op->code == TCC_OP_arith_sub && s->way == 3;
    if (!is_wait_for_empty(s, s->op))
        return moves_freely(s, "filler");
    return (is_kind(s, "move out mbarrier.wait") && assumes_aligned_result(s)) ||
           moves_freely(s, "filler");
}

/* A role that takes turns waits for its first in front of all loops. */
static bool takes_first_turn(const site *s)
{
    const tcc_op *next = next_effect(s->op);
    return s->op->code == TCC_OP_nvvm_mbarrier_wait && is_string(s, "consumers", "pingpong") && next &&
           next->code == TCC_OP_scf_for;
}

/* Of tiles that are not its own a role waits for the other's turn to end. Behind the branch it waits for that of
 * its own, too, which it had waited for in it. */
static bool turn_was_taken(const site *s)
{
    const tcc_op *branch = s->op->block->parent;
    return is_kind(s, "move out mbarrier.wait") && s->way == 1 && is_string(s, "consumers", "pingpong") &&
           branch->code == TCC_OP_scf_if && s->op->block == branch->regions[1] && contains_product(branch);
}

static bool first_time_round(const site *s)
{
    int64_t phase;
    if (moves_freely(s, "first"))
        return true;
    if (takes_first_turn(s) && tcc_value_is_int(s->op->operands[1], &phase) && phase == 1)
        return is_kind(s, "drop mbarrier.wait") || (is_kind(s, "barrier waited at") && s->way == 1);
    if (!is_wait_for_empty(s, s->op) || !is_in_prologue(s->op))
        return false;
    return is_kind(s, "drop mbarrier.wait") || is_kind(s, "move out mbarrier.wait") ||
           is_kind(s, "of another iteration") || (is_kind(s, "parity") && s->way == 1) ||
           (is_kind(s, "barrier waited at") && s->way != 2);
}

static bool filler_has_initialised(const site *s)
{
    const tcc_op *before = previous_effect(s->op);
    return is_kind(s, "exchange neighbours") && is_prologue(s->op) && before &&
           before->code == TCC_OP_nvvm_barrier;
}

static bool inputs_are_not_written(const site *s)
{
    return moves_freely(s, "input");
}

static bool mmas_have_ended(const site *s)
{
    return moves_freely(s, "ended") ||
           (is_barrier_before_staging(s, s->op) && is_kind(s, "drop barrier"));
}

/* Which warps come to a barrier under a number. */
static uint64_t comers(const tcc_func *f, const tcc_op *barrier, int64_t number)
{
    uint64_t warps = 0;
    int64_t id;
    for (int64_t tid = 0; tid < tcc_attr_int(&f->attrs, "block", 0); tid += TCC_WARP_LANES)
        if (is_known_at(barrier, barrier->operands[0], tid, &id) && id == number)
            warps |= UINT64_C(1) << tid / TCC_WARP_LANES;
    return warps;
}

static bool is_behind(const tcc_op *op, const tcc_op *first)
{
    const tcc_block *body = op->block->func->body;
    tcc_op *o = (tcc_op *)first;
    while (o && o != op)
        o = tcc_walk_next(o, body);
    return o != NULL;
}

/* Whether both are run again and again. */
static bool are_in_a_loop(const tcc_op *a, const tcc_op *b)
{
    for (const tcc_block *in = a->block; in->parent; in = in->parent->block)
        if (in->parent->code == TCC_OP_scf_for && is_inside(b->block, in))
            return true;
    return false;
}

/* Whether warps that come to two barriers under one number meet as they should: they are the same, or of the later
 * barrier some of those who have met before. */
static bool may_share(const tcc_op *a, uint64_t warps_a, const tcc_op *b, uint64_t warps_b)
{
    if (!warps_a || !warps_b || warps_a == warps_b)
        return true;
    uint64_t later = is_behind(b, a) ? warps_b : warps_a;
    return later == (warps_a & warps_b) && !are_in_a_loop(a, b);
}

static bool other_barrier_is_free(const site *s)
{
    if (!is_kind(s, "number of a barrier"))
        return false;
    for (int64_t id = 0; id < TCC_NAMED_BARRIERS; id++) {
        uint64_t warps = comers(s->f, s->op, id);
        int64_t number = id + s->kind->ways[s->way];
        if (warps && (number < 0 || number >= TCC_NAMED_BARRIERS))
            return false;
        for (tcc_op *op = s->f->body->first; warps && op; op = tcc_walk_next(op, s->f->body))
            if (op->code == TCC_OP_nvvm_barrier && op != s->op &&
                !may_share(s->op, warps, op, comers(s->f, op, number)))
                return false;
    }
    return true;
}

static bool waited_in_the_loop(const site *s)
{
    const tcc_op *before = previous_effect(s->op);
    return (is_kind(s, "drop wgmma.wait_group") || is_kind(s, "pending MMAs")) && before &&
           before->code == TCC_OP_scf_for && setting(s, "stages") == 1;
}

/* A loop begins with what it ended with: once more, in front of the first iteration; or what it has in front of all
 * that lanes do in shared memory. */
static bool meets_at_the_beginning(const site *s)
{
    if (is_kind(s, "move to the end") && s->op->code == TCC_OP_nvvm_warp_sync) {
        bool any = waits_for_its_warp(s->op->block);
        for (const tcc_op *op = previous_effect(s->op); op; op = previous_effect(op))
            any |= has_lanes_access(op);
        return !any && s->op->block->parent->code == TCC_OP_scf_for;
    }
    return is_kind(s, "move to the beginning") && s->op->code == TCC_OP_nvvm_barrier &&
           !next_effect(s->op) && s->op->block->parent &&
           s->op->block->parent->code == TCC_OP_scf_for;
}

/* Those that wait for it are those that release it, in iterations before. */
static bool waits_for_its_own_release(const site *s)
{
    const tcc_op *next = next_effect(s->op);
    return is_kind(s, "move to the beginning") && s->op->code == TCC_OP_nvvm_mbarrier_wait && next &&
           next->code == TCC_OP_nvvm_stmatrix && tcc_attr_find(&s->f->attrs, "own");
}

static bool asks_whose_it_is(const site *s)
{
    const tcc_op *role = s->op->block->parent;
    if (is_kind(s, "move out branch") && s->way == 1 && !next_effect(s->op) &&
        role->code == TCC_OP_scf_if && contains(s->op, TCC_OP_nvvm_bulk_wait) &&
        !contains(s->op, TCC_OP_nvvm_tma_store))
        return true;
    return is_kind(s, "move out branch") && s->way == 1 && role->code == TCC_OP_scf_if &&
           s->op->block == role->regions[1] &&
           depends_on_code(s->op->operands[0], TCC_OP_nvvm_uniform);
}

/* i < end, in a loop whose index i is. */
static bool is_below_end(const tcc_op *cmp)
{
    const tcc_block *loop = cmp->code == TCC_OP_arith_cmp ? cmp->operands[0]->block : NULL;
    return loop && loop->parent && loop->parent->code == TCC_OP_scf_for && !cmp->operands[0]->index &&
           !strcmp(tcc_attr_str(&cmp->attrs, "pred", ""), "lt") && cmp->operands[1] == loop->parent->operands[1];
}

/* Whether a loop loads nothing beyond its end. */
static bool guards_its_end(const tcc_op *loop)
{
    for (const tcc_op *op = loop->regions[0]->first; op; op = op->next)
        if (is_below_end(op) && op->operands[0]->block->parent == loop)
            return true;
    return false;
}

static bool adds_zeros(const site *s)
{
    if (is_kind(s, "constant of a released stage")) /* all loops along k have the same end */
        return leads_to(s->f, &s->op->results[0], TCC_OP_scf_for, 1) &&
               (s->op->code == TCC_OP_arith_add || s->way == 3);
    if (!is_kind(s, "end of a loop") || s->way != 0)
        return false;
    return guards_its_end(s->op) ||
           (contains_product(s->op) && (setting(s, "stages") == 1 || contains(s->op, TCC_OP_nvvm_wgmma_a)));
}

static int64_t count_iterations(int64_t lo, int64_t hi, int64_t step)
{
    return hi > lo ? (hi - lo + step - 1) / step : 0;
}

/* How many iterations a loop makes, and in the mutant, where its bounds are known. */
static bool count_both(const site *s, int64_t *before, int64_t *after)
{
    int64_t lo, hi, step;
    if (s->op->code != TCC_OP_scf_for || !tcc_value_is_int(s->op->operands[0], &lo) ||
        !tcc_value_is_int(s->op->operands[1], &hi) || !tcc_value_is_int(s->op->operands[2], &step))
        return false;
    *before = count_iterations(lo, hi, step);
    if (is_kind(s, "beginning of a loop"))
        lo += s->kind->ways[s->way];
    else if (is_kind(s, "end of a loop"))
        hi += s->kind->ways[s->way];
    else if (is_kind(s, "step of a loop"))
        step *= s->kind->ways[s->way];
    else
        return false;
    *after = count_iterations(lo, hi, step);
    return true;
}

/* Where it begins is of no account to a loop without use of its index. */
static bool as_many_iterations(const site *s)
{
    int64_t before, after;
    return count_both(s, &before, &after) && before == after &&
           (!is_kind(s, "beginning of a loop") || !s->op->regions[0]->args[0]->n_uses);
}

/* Whether a loop carries nothing and only copies from inputs to shared memory, the same in all iterations. */
static bool copies_the_same(const tcc_op *loop)
{
    bool same = !loop->n_results && !loop->regions[0]->args[0]->n_uses;
    for (tcc_op *op = loop->regions[0]->first; op; op = tcc_walk_next(op, loop->regions[0]))
        same &= !has_effect(op) || op->code == TCC_OP_nvvm_ld_global || op->code == TCC_OP_nvvm_st_shared;
    return same;
}

static bool repeats_iterations(const site *s)
{
    int64_t before, after;
    return count_both(s, &before, &after) && before && after > before && copies_the_same(s->op);
}

static int64_t count_ctas(const tcc_func *f, const extents *e)
{
    static const tcc_attr names[] = {{.kind = TCC_ATTR_STR, .s = "M"}, {.kind = TCC_ATTR_STR, .s = "N"},
                                     {.kind = TCC_ATTR_STR, .s = "K"}, {.kind = TCC_ATTR_STR, .s = "P"}};
    const int64_t of[] = {e->m, e->n, e->k, e->p};
    return tcc_grid_ctas(tcc_attr_list(&f->attrs, "grid"), (tcc_attr){.kind = TCC_ATTR_LIST, .list = {names, 4}}, of,
                         INT64_MAX);
}

/* Three axes, or tiles row by row, or in groups as high as the tensor: then numbers of CTAs past the
 * end are those of tiles past the end. */
static bool outside_of_the_tensors(const site *s)
{
    if (!is_kind(s, "grid") ||
        (s->subject->source && tcc_attr_list(&s->f->attrs, "grid").list.n < 3 &&
         setting(s, "group") > 1 && setting(s, "group") < 4))
        return false;
    for (const extents *e = s->subject->shapes; e->m; e++)
        if (count_ctas(s->mutant, e) < count_ctas(s->f, e))
            return false;
    return true;
}

/* Comparisons with a constant: which one, and whether another or this one is meant. */
static bool compares(const site *s, const char *pred, int64_t *with)
{
    return s->op->code == TCC_OP_arith_cmp &&
           !strcmp(tcc_attr_str(&s->op->attrs, "pred", ""), pred) &&
           tcc_value_is_int(s->op->operands[1], with);
}

static bool any_one_thread(const site *s)
{
    int64_t with;
    return is_kind(s, "bound of a comparison") && s->way == 0 && compares(s, "eq", &with) &&
           depends_on_code(s->op->operands[0], TCC_OP_nvvm_tid) &&
           !leads_to(s->f, &s->op->results[0], TCC_OP_nvvm_st_global, 2);
}

/* Words that a lane loads of a row of shared memory, at most the last: what it makes of one behind that it does not
 * store. */
static bool stores_nothing_behind(const site *s)
{
    return is_kind(s, "constant of a word's place") && s->op->code == TCC_OP_arith_min && s->way == 2;
}

/* How many elements lie in front of a row's first whole word: then one lane stores them one by one. */
static bool is_stored_with_its_word(const site *s)
{
    enum { NE = 1, GE = 5 };
    int64_t with;
    if (!compares(s, "gt", &with) || with || !depends_on_code(s->op->operands[0], TCC_OP_nvvm_phase) ||
        !leads_to(s->f, &s->op->results[0], TCC_OP_nvvm_st_global, 2))
        return false;
    return (is_kind(s, "comparison") && (s->way == NE || s->way == GE)) ||
           (is_kind(s, "bound of a comparison") && s->way == 1);
}

/* [pitch, [DIMS], elem, align] */
static bool requires_pitch(const site *s, const char *dim, int64_t elem, int64_t align)
{
    tcc_attr list = tcc_attr_list(&s->f->attrs, "requires");
    for (size_t i = 0; i < list.list.n; i++) {
        const tcc_attr *c = list.list.items[i].list.items;
        if (!strcmp(c[0].s, "pitch") && c[1].list.n == 1 &&
            c[1].list.items[0].kind == TCC_ATTR_STR && !strcmp(c[1].list.items[0].s, dim) &&
            c[3].i % align == 0 && c[2].i == elem)
            return true;
    }
    return false;
}

/* Whether an element is stored or loaded when the number of columns from it on is large enough. */
static bool compares_columns(const site *s, int64_t *with)
{
    return compares(s, "gt", with) &&
           (leads_to(s->f, &s->op->results[0], TCC_OP_nvvm_st_global, 2) ||
            leads_to(s->f, &s->op->results[0], TCC_OP_nvvm_ld_global, 2));
}

static bool columns_in_pairs(const site *s)
{
    int64_t with;
    return is_kind(s, "bound of a comparison") && s->way == 0 && compares_columns(s, &with) &&
           with % 2 == 0 && (requires_pitch(s, "N", 2, 4) || requires_pitch(s, "N", 4, 8));
}

static bool first_columns_inside(const site *s)
{
    int64_t with;
    return compares_columns(s, &with) && with == 0 && requires_pitch(s, "N", 2, 16) &&
           ((is_kind(s, "comparison") && (s->way == 1 || s->way == 5)) ||
            (is_kind(s, "bound of a comparison") && s->way == 1));
}

static bool is_factor(tcc_attr list, tcc_attr factor)
{
    for (size_t i = 0; i < list.list.n; i++)
        if (tcc_attr_equal(&list.list.items[i], &factor))
            return true;
    return false;
}

/* Whether a multiple of all that b is a multiple of is what a asks for: so many elements of so many bytes. */
static bool pitch_implies(const tcc_attr *b, const tcc_attr *a)
{
    if (strcmp(a[0].s, "pitch") || strcmp(b[0].s, "pitch") || a[3].i % a[2].i || b[3].i % b[2].i ||
        b[3].i / b[2].i % (a[3].i / a[2].i))
        return false;
    for (size_t i = 0; i < b[1].list.n; i++)
        if (!is_factor(a[1], b[1].list.items[i]))
            return false;
    return true;
}

static bool another_condition_implies_it(const site *s)
{
    if (!is_kind(s, "condition of validity"))
        return false;
    tcc_attr list = tcc_attr_list(&s->f->attrs, "requires");
    for (size_t i = 0; i < list.list.n; i++)
        if (i != s->way &&
            pitch_implies(list.list.items[i].list.items, list.list.items[s->way].list.items))
            return true;
    return false;
}

static bool another_step_asks_for_it(const site *s)
{
    const tcc_func *variant = tcc_func_main(s->f);
    if (!is_kind(s, "condition of validity"))
        return false;
    const tcc_attr *it = &tcc_attr_list(&s->f->attrs, "requires").list.items[s->way];
    for (size_t i = 0; i < tcc_func_step_count(variant); i++) {
        const tcc_func *step = tcc_func_step_at(variant, i);
        if (step != s->f && is_factor(tcc_attr_list(&step->attrs, "requires"), *it))
            return true;
    }
    return false;
}

/* Nothing is shared, and no warp waits for another. */
static bool further_warps_store_the_same(const site *s)
{
    return is_kind(s, "threads of a block") && s->kind->ways[s->way] > 0 && !setting(s, "smem_bytes");
}

static bool is_always_below_end(const site *s)
{
    enum { NE = 1, LE = 3 };
    return is_below_end(s->op) && ((is_kind(s, "comparison") && (s->way == NE || s->way == LE)) ||
                                   (is_kind(s, "bound of a comparison") && s->way == 0));
}

const reason reasons[] = {
    {"a prefetch has no visible effect", prefetches},
    {"the next step waits for the end of this one, whenever it begins", next_step_waits},
    {"ops that run before the previous step has ended access no tensor", accesses_no_tensor},
    {"the two ops access different places", other_places},
    {"bytes and arrivals of one phase come in any order", one_phase},
    {"consumers have waited for all that their producer started", consumers_have_waited},
    {"lanes go on together after a branch", lanes_are_together},
    {"the CTAs have met since one reached into another", have_met_since},
    {"in between no lane accesses shared memory", no_lane_accesses},
    {"only MMAs write the accumulators, from the first on",
     registers_first_written_by_mmas},
    {"how many registers a warp has is a matter of speed while there are enough", fewer_registers},
    {"waiting again, or for an empty group, changes nothing", waits_again},
    {"it waits for more than necessary", waits_for_more},
    {"a copy in an earlier group is waited for earlier", waits_earlier},
    {"a word is waited for earlier in its iteration", waits_for_word_earlier},
    {"a copy in the next group is waited for no later", is_of_next_group},
    {"nothing after it copies to shared memory or reads from it", has_no_use_of_groups},
    {"a stage is released later than it could be", releases_later},
    {"a number is drawn at another time in its iteration", draws_at_another_time},
    {"copies are waited for in the tile that starts them", waits_in_the_same_tile},
    {"CTAs that take the same tile store the same numbers", computes_tiles_twice},
    {"the layout has no use for this offset", unused_offset},
    {"both barriers have the same count", same_count},
    {"no copy completes on this barrier", no_copy_completes_on_it},
    {"more threads fence than necessary", more_threads_fence},
    {"an arrival tells others more than they need", tells_more},
    {"threads that stored nothing wait for nothing", nothing_of_its_own},
    {"the thread that fills a stage has itself waited for the MMA that read it",
     filler_has_emptied},
    {"every stage is empty the first time round", first_time_round},
    {"the turn that is waited for was taken", turn_was_taken},
    {"the thread that fills the first stages has initialised their barriers",
     filler_has_initialised},
    {"nothing writes the inputs", inputs_are_not_written},
    {"any thread of the role may do it", any_one_thread},
    {"columns come in pairs", columns_in_pairs},
    {"nothing past the last word of a row is stored", stores_nothing_behind},
    {"an element that does not precede a word is stored with it", is_stored_with_its_word},
    {"the first columns of a tile are inside the tensor", first_columns_inside},
    {"another condition implies it", another_condition_implies_it},
    {"another step of the variant asks for it", another_step_asks_for_it},
    {"further warps store the numbers that others do", further_warps_store_the_same},
    {"the index of a loop is below its end", is_always_below_end},
    {"the warpgroup's MMAs have ended in all of its warps", mmas_have_ended},
    {"no other threads use the barrier of this number", other_barrier_is_free},
    {"the MMAs were waited for in the loop", waited_in_the_loop},
    {"the end of an iteration is the beginning of the next", meets_at_the_beginning},
    {"the stage was released in an earlier iteration", waits_for_its_own_release},
    {"the branch itself tests which threads run it", asks_whose_it_is},
    {"one more iteration adds zeros", adds_zeros},
    {"the loop makes as many iterations", as_many_iterations},
    {"one more iteration stores the same again", repeats_iterations},
    {"CTAs beyond the last tile compute elements outside the tensors", outside_of_the_tensors},
    {"every thread computes the same numbers in another way", gives_same_numbers},
};
const unsigned n_reasons = sizeof reasons / sizeof *reasons;

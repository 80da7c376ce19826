/* kinds: in which ways programs are broken.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "tests/mutants/mutants.h"

/* ---- left out, done twice ---------------------------------------------------------------- */

/* What stands for a result of an op that is not there. */
static tcc_value *stand_in(tcc_op *op, unsigned result)
{
    switch (op->code) {
    case TCC_OP_nvvm_elect: return constant_like(op, &op->results[0], 1);
    case TCC_OP_nvvm_atom_inc: return constant_like(op, &op->results[0], 0);
    default: return op->operands[result];
    }
}

static attempt drop(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f;
    if (op->code != k->code || way)
        return NO_MORE;
    for (unsigned i = 0; i < op->n_results; i++)
        tcc_replace_uses(&op->results[i], stand_in(op, i));
    tcc_op_erase(op);
    return MUTATED;
}

/* With what comes behind it. */
static attempt drop_pair(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    if (op->code != k->code || way || !op->next)
        return NO_MORE;
    tcc_op_erase(op->next);
    return drop(f, op, k, way);
}

/* The second of two MMAs adds to the first. */
static attempt repeat(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    if (op->code != k->code || way)
        return NO_MORE;
    tcc_builder b = tcc_builder_after(op);
    tcc_op *second = tcc_op_clone(&b, op, tcc_value_map_create(f->ir->arena));
    for (unsigned i = 0; i < op->n_results; i++) {
        tcc_replace_uses(&op->results[i], &second->results[i]);
        if (op->operands[i]->type == op->results[i].type)
            tcc_op_set_operand(second, i, &op->results[i]);
    }
    return MUTATED;
}

/* ---- in another place -------------------------------------------------------------------- */

/* Exchanges two neighbours: the one comes earlier, the other later. */
static attempt swap(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f, (void)k;
    tcc_op *before = previous_effect(op);
    if (way || !has_effect(op) || !before)
        return NO_MORE;
    return move_before(op, before) ? MUTATED : NOT_HERE;
}

/* To the beginning of its block, from further than its neighbour's place. */
static attempt move_first(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f, (void)k;
    tcc_op *first = op->block->first;
    if (!has_effect(first))
        first = next_effect(first);
    if (way || !has_effect(op) || op == first || previous_effect(op) == first)
        return NO_MORE;
    return move_before(op, first) ? MUTATED : NOT_HERE;
}

/* To the end of its block. */
static attempt move_last(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f, (void)k;
    const tcc_op *next = next_effect(op);
    if (way || !has_effect(op) || op->n_results || !next || !next_effect(next))
        return NO_MORE;
    tcc_op *last = op->block->last;
    tcc_builder b = has_effect(last) || tcc_op_info_get(last->code)->flags & TCC_PURE
                        ? tcc_builder_at_end(op->block)
                        : tcc_builder_before(last);
    tcc_op_move(&b, op);
    return MUTATED;
}

/* Out of the loop or branch that it is in, to before (way 0) or after it. */
static attempt move_outside(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f;
    if (op->code != k->code || op->n_results || !op->block->parent || way > 1)
        return NO_MORE;
    return move_out(op, way == 1) ? MUTATED : NOT_HERE;
}

/* ---- what belongs to another iteration --------------------------------------------------- */

/* An operand as it would be if an argument of a loop were one more, one less or as at first. */
static attempt of_another_iteration(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    enum { MORE, LESS, FIRST, TO };
    (void)f, (void)k;
    if (!has_effect(op) || op->code == TCC_OP_scf_for || !op->n_operands ||
        tcc_op_info_get(op->code)->effects == TCC_READS_GLOBAL)
        return NO_MORE;
    unsigned to = way % TO, operand = way / TO % op->n_operands;
    tcc_value *arg = loop_argument(op, way / TO / op->n_operands), *otherwise;
    if (!arg)
        return NO_MORE;
    if (to == FIRST) {
        otherwise = first_value(arg);
    } else {
        tcc_value *one = constant_like(op, arg, to == MORE ? 1 : -1);
        tcc_builder b = tcc_builder_before(op);
        otherwise = TCC_EMIT(&b, arith_add, arg->type, arg, one);
    }
    tcc_value *v = value_if(op, op->operands[operand], arg, otherwise);
    if (!v)
        return NOT_HERE;
    tcc_op_set_operand(op, operand, v);
    return MUTATED;
}

/* A value that a loop hands on is what it was (way 0), or was before the loop (1); a number is one
 * more or less (2, 3). */
static attempt carried(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    enum { SAME, FIRST, MORE, LESS, TO };
    (void)f, (void)k;
    const tcc_op *loop = op->block->parent;
    unsigned i = way / TO, to = way % TO;
    if (op->code != TCC_OP_scf_yield || !loop || loop->code != TCC_OP_scf_for ||
        i >= op->n_operands)
        return NO_MORE;
    tcc_value *arg = op->block->args[i + 1], *v = op->operands[i];
    if (to == SAME || to == FIRST) {
        tcc_op_set_operand(op, i, to == SAME ? arg : first_value(arg));
        return MUTATED;
    }
    if (arg->type->kind != TCC_KIND_scalar)
        return NOT_HERE;
    tcc_value *by = constant_like(op, arg, to == MORE ? 1 : -1);
    tcc_builder b = tcc_builder_before(op);
    tcc_op_set_operand(op, i, TCC_EMIT(&b, arith_add, v->type, v, by));
    return MUTATED;
}

/* ---- exchanged --------------------------------------------------------------------------- */

/* Operands of two neighbours of one code: the stage, barrier or map of the other. */
static attempt exchange_operands(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f;
    tcc_op *other = next_effect(op);
    if (op->code != k->code || !other || way >= op->n_operands)
        return NO_MORE;
    while (other && other->code != op->code)
        other = next_effect(other);
    if (!other || way >= other->n_operands)
        return NO_MORE;
    tcc_value *a = op->operands[way], *b = other->operands[way];
    tcc_value *b_here = a == b || a->type != b->type ? NULL : copy_value_before(op, b);
    if (!b_here)
        return NOT_HERE;
    tcc_op_set_operand(op, way, b_here);
    tcc_op_set_operand(other, way, a);
    return MUTATED;
}

/* Two coordinates of a copy. */
static attempt exchange_coordinates(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    (void)f;
    unsigned a = k->operand + way, b = a + 1;
    if (op->code != k->code || b >= op->n_operands)
        return NO_MORE;
    tcc_value *kept = op->operands[a];
    tcc_op_set_operand(op, a, op->operands[b]);
    tcc_op_set_operand(op, b, kept);
    return MUTATED;
}

/* Another tensor map, of each that the function has. */
static attempt other_map(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    if (op->code != k->code || way >= f->body->n_args)
        return NO_MORE;
    tcc_value *map = f->body->args[way];
    if (map->type->kind != TCC_KIND_tensormap || map == op->operands[1])
        return NOT_HERE;
    tcc_op_set_operand(op, 1, map);
    return MUTATED;
}

/* ---- comparisons and fragments ----------------------------------------------------------- */

static attempt compare_otherwise(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    static const char *const preds[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    (void)k;
    if (op->code != TCC_OP_arith_cmp || way >= sizeof preds / sizeof *preds)
        return NO_MORE;
    if (!strcmp(tcc_attr_str(&op->attrs, "pred", ""), preds[way]))
        return NOT_HERE;
    tcc_attr_set_str(f->ir, &op->attrs, "pred", preds[way]);
    return MUTATED;
}

static attempt other_action(tcc_func *f, tcc_op *op, const kind *k, unsigned way)
{
    if (op->code != k->code || way)
        return NO_MORE;
    bool more = !strcmp(tcc_attr_str(&op->attrs, k->attribute, ""), "inc");
    tcc_attr_set_str(f->ir, &op->attrs, k->attribute, more ? "dec" : "inc");
    return MUTATED;
}

/* ---- the table --------------------------------------------------------------------------- */

#define WAYS(...) .ways = (const int64_t[]){__VA_ARGS__}, COUNT(__VA_ARGS__)
#define COUNT(...) .n_ways = sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
#define OF(id) .code = TCC_OP_##id
#define ANY .code = TCC_OP_COUNT

const kind kinds[] = {
    {"drop mbarrier.init", drop, OF(nvvm_mbarrier_init)},
    {"drop mbarrier.wait", drop, OF(nvvm_mbarrier_wait)},
    {"drop mbarrier.arrive", drop, OF(nvvm_mbarrier_arrive)},
    {"drop mbarrier.arrive.cluster", drop, OF(nvvm_mbarrier_arrive_cluster)},
    {"drop cluster.arrive", drop, OF(nvvm_cluster_arrive)},
    {"drop cluster.wait", drop, OF(nvvm_cluster_wait)},
    {"drop cluster.arrive and wait", drop_pair, OF(nvvm_cluster_arrive)},
    {"drop griddepcontrol.wait", drop, OF(nvvm_griddepcontrol_wait)},
    {"drop griddepcontrol.launch_dependents", drop, OF(nvvm_griddepcontrol_launch)},
    {"drop mbarrier.arrive.expect_tx", drop, OF(nvvm_mbarrier_arrive_expect_tx)},
    {"drop mbarrier.arrive.expect_tx.cluster", drop, OF(nvvm_mbarrier_arrive_expect_tx_cluster)},
    {"drop fence.mbarrier_init", drop, OF(nvvm_fence_mbarrier_init)},
    {"drop fence.proxy.async", drop, OF(nvvm_fence_proxy_async)},
    {"drop barrier", drop, OF(nvvm_barrier)},
    {"drop warp.sync", drop, OF(nvvm_warp_sync)},
    {"drop setmaxnreg", drop, OF(nvvm_setmaxnreg)},
    {"drop prefetch.tensormap", drop, OF(nvvm_prefetch_tensormap)},
    {"drop elect", drop, OF(nvvm_elect)},
    {"drop uniform", drop, OF(nvvm_uniform)},
    {"drop after", drop, OF(nvvm_after)},
    {"drop tma.load", drop, OF(nvvm_tma_load)},
    {"drop tma.load.multicast", drop, OF(nvvm_tma_load_multicast)},
    {"drop tma.store", drop, OF(nvvm_tma_store)},
    {"drop bulk.commit_group", drop, OF(nvvm_bulk_commit)},
    {"drop bulk.wait_group", drop, OF(nvvm_bulk_wait)},
    {"drop wgmma", drop, OF(nvvm_wgmma)},
    {"drop wgmma.a", drop, OF(nvvm_wgmma_a)},
    {"drop wgmma.fence", drop, OF(nvvm_wgmma_fence)},
    {"drop wgmma.commit_group", drop, OF(nvvm_wgmma_commit)},
    {"drop wgmma.wait_group", drop, OF(nvvm_wgmma_wait)},
    {"drop stmatrix", drop, OF(nvvm_stmatrix)},
    {"drop cp.async", drop, OF(nvvm_cp_async)},
    {"drop cp.async.commit_group", drop, OF(nvvm_cp_async_commit)},
    {"drop cp.async.wait_group", drop, OF(nvvm_cp_async_wait)},
    {"drop st.shared", drop, OF(nvvm_st_shared)},
    {"drop st.shared.cluster", drop, OF(nvvm_st_shared_cluster)},
    {"drop st.shared.word", drop, OF(nvvm_st_shared_word)},
    {"drop st.async.word", drop, OF(nvvm_st_async_word)},
    {"drop atom.inc", drop, OF(nvvm_atom_inc)},
    {"drop wmma.store", drop, OF(nvvm_wmma_store)},
    {"drop st.global", drop, OF(nvvm_st_global)},

    {"repeat mbarrier.init", repeat, OF(nvvm_mbarrier_init)},
    {"repeat mbarrier.wait", repeat, OF(nvvm_mbarrier_wait)},
    {"repeat mbarrier.arrive", repeat, OF(nvvm_mbarrier_arrive)},
    {"repeat mbarrier.arrive.cluster", repeat, OF(nvvm_mbarrier_arrive_cluster)},
    {"repeat mbarrier.arrive.expect_tx", repeat, OF(nvvm_mbarrier_arrive_expect_tx)},
    {"repeat mbarrier.arrive.expect_tx.cluster", repeat, OF(nvvm_mbarrier_arrive_expect_tx_cluster)},
    {"repeat st.async.word", repeat, OF(nvvm_st_async_word)},
    {"repeat barrier", repeat, OF(nvvm_barrier)},
    {"repeat warp.sync", repeat, OF(nvvm_warp_sync)},
    {"repeat atom.inc", repeat, OF(nvvm_atom_inc)},
    {"repeat tma.load", repeat, OF(nvvm_tma_load)},
    {"repeat tma.load.multicast", repeat, OF(nvvm_tma_load_multicast)},
    {"repeat tma.store", repeat, OF(nvvm_tma_store)},
    {"repeat bulk.commit_group", repeat, OF(nvvm_bulk_commit)},
    {"repeat wgmma", repeat, OF(nvvm_wgmma)},
    {"repeat wgmma.a", repeat, OF(nvvm_wgmma_a)},
    {"repeat wgmma.commit_group", repeat, OF(nvvm_wgmma_commit)},

    {"exchange neighbours", swap, ANY},
    {"move to the beginning", move_first, ANY},
    {"move to the end", move_last, ANY},
    {"move out mbarrier.init", move_outside, OF(nvvm_mbarrier_init)},
    {"move out mbarrier.wait", move_outside, OF(nvvm_mbarrier_wait)},
    {"move out mbarrier.arrive", move_outside, OF(nvvm_mbarrier_arrive)},
    {"move out mbarrier.arrive.cluster", move_outside, OF(nvvm_mbarrier_arrive_cluster)},
    {"move out mbarrier.arrive.expect_tx", move_outside, OF(nvvm_mbarrier_arrive_expect_tx)},
    {"move out fence.mbarrier_init", move_outside, OF(nvvm_fence_mbarrier_init)},
    {"move out fence.proxy.async", move_outside, OF(nvvm_fence_proxy_async)},
    {"move out barrier", move_outside, OF(nvvm_barrier)},
    {"move out warp.sync", move_outside, OF(nvvm_warp_sync)},
    {"move out griddepcontrol.launch_dependents", move_outside, OF(nvvm_griddepcontrol_launch)},
    {"move out setmaxnreg", move_outside, OF(nvvm_setmaxnreg)},
    {"move out tma.load", move_outside, OF(nvvm_tma_load)},
    {"move out tma.load.multicast", move_outside, OF(nvvm_tma_load_multicast)},
    {"move out tma.store", move_outside, OF(nvvm_tma_store)},
    {"move out bulk.commit_group", move_outside, OF(nvvm_bulk_commit)},
    {"move out bulk.wait_group", move_outside, OF(nvvm_bulk_wait)},
    {"move out cp.async.commit_group", move_outside, OF(nvvm_cp_async_commit)},
    {"move out cp.async.wait_group", move_outside, OF(nvvm_cp_async_wait)},
    {"move out wgmma.fence", move_outside, OF(nvvm_wgmma_fence)},
    {"move out wgmma.commit_group", move_outside, OF(nvvm_wgmma_commit)},
    {"move out wgmma.wait_group", move_outside, OF(nvvm_wgmma_wait)},
    {"move out branch", move_outside, OF(scf_if)},

    {"of another iteration", of_another_iteration, ANY},
    {"carried value", carried, ANY},
    {"parity", replace_operand, OF(nvvm_mbarrier_wait), .operand = 1, WAYS(0, 1, NEGATED)},
    {"condition", replace_operand, OF(scf_if), WAYS(0, 1, NEGATED)},
    {"predicate of ld.global", replace_operand, OF(nvvm_ld_global), .operand = 2,
     WAYS(0, 1, NEGATED), .of_guards = true},
    {"predicate of st.global", replace_operand, OF(nvvm_st_global), .operand = 2,
     WAYS(0, 1, NEGATED), .of_guards = true},
    {"scale_d", replace_operand, OF(nvvm_wgmma), .operand = 3, WAYS(0, 1, NEGATED)},
    {"comparison", compare_otherwise, ANY, .of_guards = true},

    {"arrivals", add_to_operand, OF(nvvm_mbarrier_init), .operand = 1, WAYS(1, -1)},
    {"arrivals doubled", scale_operand, OF(nvvm_mbarrier_init), .operand = 1, WAYS(2, -2)},
    {"bytes expected", add_to_operand, OF(nvvm_mbarrier_arrive_expect_tx), .operand = 1,
     WAYS(16, -16)},
    {"bytes expected doubled", scale_operand, OF(nvvm_mbarrier_arrive_expect_tx), .operand = 1,
     WAYS(2, -2)},
    {"bytes expected none", replace_operand, OF(nvvm_mbarrier_arrive_expect_tx), .operand = 1,
     WAYS(0)},
    {"bytes of a word expected", add_to_operand, OF(nvvm_mbarrier_arrive_expect_tx_cluster), .operand = 1, WAYS(4, -4)},
    {"barrier initialised", add_to_operand, OF(nvvm_mbarrier_init), WAYS(8, -8, 4)},
    {"barrier waited at", add_to_operand, OF(nvvm_mbarrier_wait), WAYS(8, -8, 16, -16)},
    {"barrier arrived at", add_to_operand, OF(nvvm_mbarrier_arrive), WAYS(8, -8, 16, -16)},
    {"barrier arrived at elsewhere", add_to_operand, OF(nvvm_mbarrier_arrive_cluster),
     WAYS(8, -8, 16, -16)},
    {"rank of a CTA", add_to_operand, OF(nvvm_mapa), .operand = 1, WAYS(1, -1)},
    {"barrier expecting", add_to_operand, OF(nvvm_mbarrier_arrive_expect_tx), WAYS(8, -8, 16, -16)},
    {"barrier expecting a word", add_to_operand, OF(nvvm_mbarrier_arrive_expect_tx_cluster), WAYS(8, -8, 16, -16)},
    {"barrier of st.async.word", add_to_operand, OF(nvvm_st_async_word), .operand = 1, WAYS(8, -8, 16, -16)},
    {"barrier of tma.load", add_to_operand, OF(nvvm_tma_load), .operand = 2, WAYS(8, -8, 16, -16)},
    {"number of a barrier", add_to_operand, OF(nvvm_barrier), WAYS(1, -1, 2, -2, 3)},
    {"threads of a barrier", add_to_operand, OF(nvvm_barrier), .operand = 1, WAYS(32, -32, 16)},
    {"threads of a barrier doubled", scale_operand, OF(nvvm_barrier), .operand = 1, WAYS(2, -2)},
    {"target of tma.load", add_to_operand, OF(nvvm_tma_load), WAYS(16, 128, -128, 1024)},
    {"first coordinate of tma.load", add_to_operand, OF(nvvm_tma_load), .operand = 3,
     WAYS(1, -1, 8)},
    {"second coordinate of tma.load", add_to_operand, OF(nvvm_tma_load), .operand = 4,
     WAYS(1, -1, 8)},
    {"third coordinate of tma.load", add_to_operand, OF(nvvm_tma_load), .operand = 5, WAYS(1, -1)},
    {"coordinates of tma.load exchanged", exchange_coordinates, OF(nvvm_tma_load), .operand = 3},
    {"map of tma.load", other_map, OF(nvvm_tma_load)},
    {"target of tma.load.multicast", add_to_operand, OF(nvvm_tma_load_multicast),
     WAYS(16, 128, -128, 1024)},
    {"barrier of tma.load.multicast", add_to_operand, OF(nvvm_tma_load_multicast), .operand = 2,
     WAYS(8, -8, 16, -16)},
    {"CTAs of tma.load.multicast", add_to_operand, OF(nvvm_tma_load_multicast), .operand = 3,
     WAYS(1, -1, -2)},
    {"first coordinate of tma.load.multicast", add_to_operand, OF(nvvm_tma_load_multicast),
     .operand = 4, WAYS(1, -1, 8)},
    {"second coordinate of tma.load.multicast", add_to_operand, OF(nvvm_tma_load_multicast),
     .operand = 5, WAYS(1, -1, 8)},
    {"coordinates of tma.load.multicast exchanged", exchange_coordinates,
     OF(nvvm_tma_load_multicast), .operand = 4},
    {"map of tma.load.multicast", other_map, OF(nvvm_tma_load_multicast)},
    {"source of tma.store", add_to_operand, OF(nvvm_tma_store), WAYS(16, 128, -128, 1024)},
    {"first coordinate of tma.store", add_to_operand, OF(nvvm_tma_store), .operand = 2,
     WAYS(1, -1, 8)},
    {"second coordinate of tma.store", add_to_operand, OF(nvvm_tma_store), .operand = 3,
     WAYS(1, -1, 8)},
    {"third coordinate of tma.store", add_to_operand, OF(nvvm_tma_store), .operand = 4,
     WAYS(1, -1)},
    {"coordinates of tma.store exchanged", exchange_coordinates, OF(nvvm_tma_store), .operand = 2},
    {"map of tma.store", other_map, OF(nvvm_tma_store)},
    {"address of stmatrix", add_to_operand, OF(nvvm_stmatrix), WAYS(16, -16, 64, 1024, 8)},
    {"address of ld.shared", add_to_operand, OF(nvvm_ld_shared), WAYS(4, -4, 16, 1024)},
    {"shift of two words", add_to_operand, OF(nvvm_shf), .operand = 2, WAYS(8, 16)},
    {"phase of an address", add_to_result, OF(nvvm_phase), WAYS(2, -2)},
    {"address of wmma.load", add_to_operand, OF(nvvm_wmma_load), WAYS(32, -32, 1024)},
    {"address of wmma.store", add_to_operand, OF(nvvm_wmma_store), WAYS(32, -32, 16)},
    {"address of st.shared", add_to_operand, OF(nvvm_st_shared), WAYS(2, -2, 16, 1024)},
    {"address of st.shared.word", add_to_operand, OF(nvvm_st_shared_word), WAYS(4, -4, 8, -8)},
    {"address of ld.shared.word", add_to_operand, OF(nvvm_ld_shared_word), WAYS(4, -4, 8, -8)},
    {"address of st.async.word", add_to_operand, OF(nvvm_st_async_word), WAYS(4, -4, 8, -8)},
    {"number of st.async.word", add_to_operand, OF(nvvm_st_async_word), .operand = 2, WAYS(1, -1)},
    {"number of st.shared.word", add_to_operand, OF(nvvm_st_shared_word), .operand = 1, WAYS(1, -1)},
    {"address of st.shared.cluster", add_to_operand, OF(nvvm_st_shared_cluster), WAYS(4, -16, 16, 2048)},
    {"offset of ld.global", add_to_operand, OF(nvvm_ld_global), .operand = 1, WAYS(1, -1),
     .of_guards = true},
    {"offset of st.global", add_to_operand, OF(nvvm_st_global), .operand = 1, WAYS(1, -1)},
    {"beginning of a loop", add_to_operand, OF(scf_for), WAYS(1, -1)},
    {"end of a loop", add_to_operand, OF(scf_for), .operand = 1, WAYS(1, -1)},
    {"step of a loop", scale_operand, OF(scf_for), .operand = 2, WAYS(2)},

    {"start of a descriptor", change_descriptor, OF(nvvm_wgmma), .attribute = "start",
     WAYS(1, -1, 2, 64)},
    {"leading offset of a descriptor", change_descriptor, OF(nvvm_wgmma), .attribute = "leading",
     WAYS(1, -1, 64)},
    {"stride offset of a descriptor", change_descriptor, OF(nvvm_wgmma), .attribute = "stride",
     WAYS(1, -1, 64)},
    {"swizzle of a descriptor", change_descriptor, OF(nvvm_wgmma), .attribute = "swizzle",
     WAYS(1, 2, 3)},
    {"trans_a", change_attribute, OF(nvvm_wgmma), .attribute = "trans_a", WAYS(TOGGLED)},
    {"trans_b", change_attribute, OF(nvvm_wgmma), .attribute = "trans_b", WAYS(TOGGLED)},
    {"trans of stmatrix", change_attribute, OF(nvvm_stmatrix), .attribute = "trans", WAYS(TOGGLED)},
    {"pending MMAs", change_attribute, OF(nvvm_wgmma_wait), .attribute = "pending",
     WAYS(1, -1)},
    {"pending copies", change_attribute, OF(nvvm_bulk_wait), .attribute = "pending", WAYS(1)},
    {"pending groups", change_attribute, OF(nvvm_cp_async_wait), .attribute = "pending", WAYS(1, -1)},
    {"copies read or written", change_attribute, OF(nvvm_bulk_wait), .attribute = "read",
     WAYS(TOGGLED)},
    {"stride of wmma.load", change_attribute, OF(nvvm_wmma_load), .attribute = "stride", WAYS(8, 16)},
    {"stride of wmma.store", change_attribute, OF(nvvm_wmma_store), .attribute = "stride", WAYS(4, 8)},
    {"relaxed arrival", change_attribute, OF(nvvm_cluster_arrive), .attribute = "relaxed",
     WAYS(TOGGLED)},
    {"registers", change_attribute, OF(nvvm_setmaxnreg), .attribute = "count", WAYS(8, -8, 64)},
    {"registers taken or given", other_action, OF(nvvm_setmaxnreg), .attribute = "action"},
    {"alignment of ld.global", change_attribute, OF(nvvm_ld_global), .attribute = "align",
     WAYS(4, 8)},
    {"alignment of st.global", change_attribute, OF(nvvm_st_global), .attribute = "align",
     WAYS(4, 8)},
    {"displacement of ld.global", change_attribute, OF(nvvm_ld_global), .attribute = "disp",
     WAYS(1, -1), .of_guards = true},
    {"displacement of st.global", change_attribute, OF(nvvm_st_global), .attribute = "disp",
     WAYS(1, -1)},
    {"part of a fragment", change_attribute, OF(vec_slice), .attribute = "offset", WAYS(2, -2)},
    {"element of a fragment", change_attribute, OF(vec_extract), .attribute = "offset",
     WAYS(1, -1)},

    {"two initialisations", exchange_operands, OF(nvvm_mbarrier_init)},
    {"two tma.loads", exchange_operands, OF(nvvm_tma_load)},
    {"two stmatrix", exchange_operands, OF(nvvm_stmatrix)},
    {"two st.global", exchange_operands, OF(nvvm_st_global)},
    {"two MMAs", exchange_operands, OF(nvvm_wgmma)},

    {"tensor map", change_tensor_map, ANY, .attribute = "params"},
    {"parameters exchanged", exchange_parameters, ANY, .attribute = "params"},
    {"condition of validity", drop_condition, ANY, .attribute = "requires"},
    {"step before", drop_condition, ANY, .attribute = "before"},
    {"step after", drop_condition, ANY, .attribute = "after"},
    {"workspace", change_workspace, ANY, .attribute = "args", WAYS(2, -2)},
    {"grid", change_grid, ANY, .attribute = "grid", WAYS(2, -2)},
    {"threads of a block", change_function, ANY, .attribute = "block", WAYS(32, -32, 128, -128)},
    {"CTAs of a cluster", change_function, ANY, .attribute = "cluster_ctas", WAYS(-1, 2)},
    {"bytes of shared memory", change_function, ANY, .attribute = "smem_bytes", WAYS(-8, -1024)},
    {"constant of a barrier's address", change_constant, OF(nvvm_mbarrier_wait), .operand = 0,
     WAYS(1, -1)},
    {"constant of a parity", change_constant, OF(nvvm_mbarrier_wait), .operand = 1, WAYS(1, -1)},
    {"constant of a released stage", change_constant, OF(nvvm_mbarrier_arrive), .operand = 0,
     WAYS(1, -1)},
    {"constant of a filled stage", change_constant, OF(nvvm_tma_load), .operand = 0, WAYS(1, -1)},
    {"constant of a stage released elsewhere", change_constant, OF(nvvm_mapa), .operand = 1,
     WAYS(1, -1)},
    {"constant of a part of a stage", change_constant, OF(nvvm_tma_load_multicast), .operand = 0,
     WAYS(1, -1)},
    {"constant of a staged result", change_constant, OF(nvvm_stmatrix), .operand = 0, WAYS(1, -1)},
    {"constant of a place in a stage", change_constant, OF(nvvm_st_shared), .operand = 0,
     WAYS(1, -1), .of_guards = true},
    {"constant of a word's place", change_constant, OF(nvvm_ld_shared), .operand = 0, WAYS(1, -1)},
    {"constant of a shift", change_constant, OF(nvvm_shf), .operand = 2, WAYS(1, -1)},
    {"constant of a place in a result", change_constant, OF(nvvm_st_global), .operand = 1, WAYS(1, -1),
     .of_guards = true},
    {"bound of a comparison", add_to_operand, OF(arith_cmp), .operand = 1, WAYS(1, -1),
     .of_guards = true},
};
const unsigned n_kinds = sizeof kinds / sizeof *kinds;

bool is_left_out(tcc_opcode code)
{
    for (const kind *k = kinds; k < kinds + n_kinds; k++)
        if (k->mutate == drop && k->code == code)
            return true;
    return false;
}

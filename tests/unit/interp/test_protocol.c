/* What the compiler puts out goes together for all sizes, and with one of its safeguards left out
 * it does not: each is reported, and for the right reason.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/signature.h"
#include "passes/arith.h"
#include "tests/unit/interp/mutations.h"
#include "tests/unit/suite.h"

static tcc_status check(kernel *k, const tcc_func *f)
{
    tcc_arena *scratch = tcc_arena_create(NULL);
    *k->said = 0;
    tcc_status status = tcc_protocol_check(f, scratch, &k->diag);
    tcc_arena_destroy(scratch);
    return status;
}

/* Whether the interpreter finds the same wrong, for the kernel's extents and some seed. */
static bool runs_wrong(kernel *k, const tcc_func *f)
{
    enum { SEEDS = 4 };
    tcc_difference d;
    bool wrong = false;
    for (uint64_t seed = 0; seed < SEEDS && !wrong; seed++)
        wrong = kernel_run(k, f, seed) || !tcc_trial_agrees(&k->trial, f, &d);
    return wrong;
}

/* ---- mutations ----------------------------------------------------------------------------- */

/* Releases the stage of the product that was just started, not of the one before. */
static void release_too_early(tcc_func *f)
{
    tcc_op *op = NTH(nvvm_mbarrier_arrive, 0)->block->parent->block->first;
    while (op->code != TCC_OP_arith_sub)
        op = op->next;
    set_constant(op, 1, 0);
}

/* Adds d to operand `i` of an op. */
static void add_to_operand(tcc_op *op, unsigned i, int64_t d)
{
    tcc_builder b = tcc_builder_before(op);
    tcc_value *v = op->operands[i];
    tcc_value *c = tcc_build_int(&b, v->type, d);
    tcc_op_set_operand(op, i, TCC_EMIT(&b, arith_add, v->type, v, c));
}

static void flip_parity(tcc_op *wait)
{
    tcc_builder b = tcc_builder_before(wait);
    tcc_value *v = wait->operands[1], *one = tcc_build_int(&b, v->type, 1);
    tcc_op_set_operand(wait, 1, TCC_EMIT(&b, arith_xor, v->type, v, one));
}

/* clang-format off */
static void wrong_phase_of_full(tcc_func *f) { flip_parity(NTH(nvvm_mbarrier_wait, 0)); }
static void wrong_phase_of_empty(tcc_func *f) { flip_parity(LAST(nvvm_mbarrier_wait)); }
static void phase_never_flips(tcc_func *f) { set_constant(NTH(nvvm_mbarrier_wait, 0), 1, 0); }
static void arrive_elsewhere(tcc_func *f) { add_to_operand(NTH(nvvm_mbarrier_arrive, 0), 0, -8); }
static void read_elsewhere(tcc_func *f) { add_to_operand(NTH(nvvm_wgmma, 0), 2, 512 >> 4); }
static void copy_elsewhere(tcc_func *f) { add_to_operand(NTH(nvvm_tma_load, 0), 0, 4096); }
static void expect_half(tcc_func *f)
{
    tcc_op *op = NTH(nvvm_mbarrier_arrive_expect_tx, 0);
    set_constant(op, 1, constant_of(op->operands[1]) / 2);
}
static void expect_double(tcc_func *f)
{
    tcc_op *op = NTH(nvvm_mbarrier_arrive_expect_tx, 0);
    set_constant(op, 1, constant_of(op->operands[1]) * 2);
}
/* clang-format on */

typedef struct mutation {
    const char *name;
    void (*mutate)(tcc_func *f);
    const char *says; /* one of these, between '|'; NULL: nothing is wrong */
} mutation;

#define STILL_READING "that an MMA of warps 0-3 may still be reading|that an MMA of warps 4-7"

static const mutation of_kernel[] = {
    {"nothing", nothing, NULL},
    {"no_wait_for_full", no_wait_for_full,
     "nvvm.wgmma reads shared memory at byte 0 before anything"},
    {"no_wait_for_empty", no_wait_for_empty, STILL_READING "|may still be writing"},
    {"no_wait_in_loop", no_wait_in_loop, STILL_READING},
    {"wait_too_little", wait_too_little, STILL_READING},
    {"release_too_early", release_too_early, STILL_READING},
    {"read_before_wait", read_before_wait, "reads registers that an MMA may still be writing"},
    {"no_release", no_release, "deadlock"},
    {"no_register_fence", no_register_fence, "no wgmma.fence"},
    {"no_commit", no_commit, STILL_READING "|may still be writing"},
    {"no_proxy_fence", no_proxy_fence, "with no fence.proxy.async by warp"},
    {"no_init_fence", no_init_fence, "no fence.mbarrier_init"},
    {"no_barrier_after_init", no_barrier_after_init, "may still be initialising|no mbarrier yet"},
    {"no_barrier_before_staging", no_barrier_before_staging, STILL_READING "|may still be writing"},
    {"no_barrier_before_sending", no_barrier_before_sending,
     "may still be writing|that a copy to global memory of warp 0 may still be reading"},
    {"no_bulk_wait", no_bulk_wait, "while its copies may still be reading"},
    {"no_bulk_commit", no_bulk_commit, "while its copies may still be reading"},
    {"no_copy", no_copy, "4096 bytes are missing"},
    {"expect_too_few", expect_too_few, "expects 5104 bytes and gets 5120"},
    {"expect_too_many", expect_too_many, " 16 bytes are missing"},
    {"expect_half", expect_half, "expects 2560 bytes and gets 5120"},
    {"expect_double", expect_double, " 5120 bytes are missing"},
    {"too_many_threads", too_many_threads, "256 of 320 threads have arrived"},
    {"too_many_arrivals", too_many_arrivals, "may be a phase too early or too late"},
    {"too_few_arrivals", too_few_arrivals, "deadlock"},
    {"reserved_bits", reserved_bits, "has reserved bits"},
    {"base_offset", base_offset, "has a base offset"},
    {"other_stage", other_stage, "nvvm.tma.load writes shared memory at byte"},
    {"unaligned_stage", unaligned_stage, "1088 is not a multiple of 128"},
    {"outside", outside, "are not in the"},
    {"wrong_barrier", wrong_barrier, "no mbarrier yet at byte 0"},
    {"wrong_phase_of_full", wrong_phase_of_full, "before anything was written there"},
    {"wrong_phase_of_empty", wrong_phase_of_empty, "deadlock"},
    {"phase_never_flips", phase_never_flips, "waits for phase"},
    {"arrive_elsewhere", arrive_elsewhere, "which may have ended together with the next"},
    {"read_elsewhere", read_elsewhere, "that was not written completely"},
    {"copy_elsewhere", copy_elsewhere, "from byte 8192 on are not in the"},
};

static const mutation of_generic_variant[] = {
    {"nothing", nothing, NULL},
    {"no_proxy_fence", no_proxy_fence, "with no fence.proxy.async by warp"},
    {"no_wait_for_full", no_wait_for_empty, "that was not written completely|another lane of it"},
    {"no_wait_in_loop", no_wait_in_loop, "that an MMA of warps 0-3 may still be reading"},
    {"no_release", no_release, "deadlock"},
    {"no_register_fence", no_register_fence, "no wgmma.fence"},
};

static void check_mutation(kernel *k, tcc_func *f, const mutation *m)
{
    m->mutate(f);
    tcc_status status = check(k, f);
    ck_assert_msg(status == (m->says ? TCC_ERR_INTERNAL : TCC_OK), "%s: status %d\n%s", m->name,
                  status, k->said);
    if (m->says)
        ck_assert_msg(says_one_of(k->said, m->says), "%s:\n%s", m->name, k->said);
    ck_assert_msg(runs_wrong(k, f) == !!m->says, "%s: the interpreter says otherwise\n%s", m->name,
                  k->said);
}

START_TEST(a_safeguard_left_out_of_a_kernel)
{
    kernel k;
    check_mutation(&k, open_ring(&k), &of_kernel[_i]);
    kernel_close(&k);
}
END_TEST

START_TEST(a_safeguard_left_out_of_the_generic_variant)
{
    kernel k;
    check_mutation(&k, open_generic(&k), &of_generic_variant[_i]);
    kernel_close(&k);
}
END_TEST

/* ---- rings whose stages are rotated ---------------------------------------------------- */

/* The outer of two loops over tiles: the consumers' is the first of all. */
static tcc_op *tile_loop(tcc_func *f) { return NTH(scf_for, 0); }

/* What the consumers hand on to the next tile, plus d; or, unless d, 0. */
static void hand_on(tcc_func *f, int64_t d)
{
    tcc_op *yield = tile_loop(f)->regions[0]->last;
    unsigned counter = yield->n_operands - 1;
    if (d)
        add_to_operand(yield, counter, d);
    else
        set_constant(yield, counter, 0);
}

static void skip_a_slot(tcc_func *f) { hand_on(f, 1); }
static void begin_anew(tcc_func *f) { hand_on(f, 0); }
static void release_twice(tcc_func *f)
{
    tcc_op *release = LAST(nvvm_mbarrier_arrive);
    tcc_builder b = tcc_builder_before(release);
    tcc_op_clone(&b, release, tcc_value_map_create(f->ir->arena));
}
static void no_last_release(tcc_func *f) { tcc_op_erase(LAST(nvvm_mbarrier_arrive)); }
static void wrong_phase_of_filling(tcc_func *f) { flip_parity(LAST(nvvm_mbarrier_wait)); }
static void wait_elsewhere(tcc_func *f) { add_to_operand(LAST(nvvm_mbarrier_wait), 0, 8); }
static void one_arrival(tcc_func *f) { set_constant(NTH(nvvm_mbarrier_init, 1), 1, 1); }
static void one_arrival_more(tcc_func *f) { set_constant(NTH(nvvm_mbarrier_init, 1), 1, 2); }

/* What only one stage does: the last release is of the first stage whatever comes next. */
static void release_the_first(tcc_func *f)
{
    tcc_op *release = LAST(nvvm_mbarrier_arrive);
    tcc_builder b = tcc_builder_before(release);
    tcc_op *init = NTH(nvvm_mbarrier_init, 1);
    tcc_value *base = NTH(nvvm_smem_base, 0)->results;
    int64_t offset = constant_of(init->operands[0]->def->operands[1]);
    tcc_value *c = tcc_build_int(&b, base->type, offset);
    tcc_op_set_operand(release, 0, TCC_EMIT(&b, arith_add, base->type, base, c));
}

/* Behind the loop consumers wait for the first stage, whatever came last. */
static void wait_for_the_first(tcc_func *f)
{
    tcc_op *wait = NTH(nvvm_mbarrier_wait, 0), *init = NTH(nvvm_mbarrier_init, 0);
    tcc_builder b = tcc_builder_after(NTH(scf_for, 0));
    tcc_op *last = tcc_op_clone(&b, wait, tcc_value_map_create(f->ir->arena));
    b = tcc_builder_before(last);
    tcc_value *base = NTH(nvvm_smem_base, 0)->results;
    int64_t offset = constant_of(init->operands[0]->def->operands[1]);
    tcc_value *c = tcc_build_int(&b, base->type, offset);
    tcc_op_set_operand(last, 0, TCC_EMIT(&b, arith_add, base->type, base, c));
    tcc_op_set_operand(last, 1, tcc_build_int(&b, last->operands[1]->type, 0));
}

/* Results are staged where the first stage is; they are behind all of A's and B's. */
static void stage_in_the_ring(tcc_func *f)
{
    enum { STAGE_BYTES = 3072 };
    int64_t n = 0;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        n += op->code == TCC_OP_nvvm_mbarrier_init;
    add_to_operand(NTH(nvvm_st_shared, 0), 0, -STAGE_BYTES * n / 2);
}

static const mutation of_persistent_rings[] = {
    {"nothing", nothing, NULL},
    {"no_wait_for_full", no_wait_for_full, "may still be writing|before anything|phase too early"},
    {"no_wait_for_empty", no_wait_for_empty, STILL_READING "|may still be writing|phase too early"},
    {"wrong_phase_of_filling", wrong_phase_of_filling, "deadlock"},
    {"skip_a_slot", skip_a_slot, "deadlock|waits for phase|before anything"},
    {"begin_anew", begin_anew, "waits for phase|phase too early|may still be writing|deadlock"},
    {"release_twice", release_twice, "phase too early"},
    {"no_last_release", no_last_release, "deadlock"},
    {"one_arrival_more", one_arrival_more, "deadlock"},
    {"wait_elsewhere", wait_elsewhere, "no mbarrier yet|phase too early|deadlock|may still be"},
    {"release_the_first", release_the_first, "phase too early|deadlock|may still be"},
    {"stage_in_the_ring", stage_in_the_ring, STILL_READING "|may still be writing|unwritten"},
};

/* One tile, whose results are staged in the ring's bytes. */
static const mutation of_rings[] = {
    {"nothing", nothing, NULL},
    {"no_wait_for_full", no_wait_for_full, "may still be writing|before anything|phase too early"},
    {"no_wait_for_empty", no_wait_for_empty, STILL_READING "|may still be writing|phase too early"},
    {"wrong_phase_of_filling", wrong_phase_of_filling, "deadlock"},
    {"release_twice", release_twice, "phase too early"},
    {"one_arrival", one_arrival, "phase too early|may still be|gets more than"},
    {"wait_elsewhere", wait_elsewhere, "no mbarrier yet|phase too early|deadlock|may still be"},
    {"release_the_first", release_the_first, "phase too early|deadlock|may still be"},
    {"wait_for_the_first", wait_for_the_first, "waits for phase|deadlock"},
    {"no_barrier_before_staging", no_barrier_before_staging, STILL_READING "|may still be writing"},
};

/* Breaks a product of so many stages and this schedule, the extent along k being known or not: of states that differ
 * by the stage that comes next one is followed, and what is wrong in one of them is found. What is wrong may be what
 * cannot be followed. */
static void break_rings(const mutation *m, const char *schedule, const char *extent, bool may_be_lost)
{
    static const int stages[] = {2, 3, 4, 8};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
        kernel k = {.arena = tcc_arena_create(NULL), .target = "sm_90a"};
        char source[512];
        snprintf(source, sizeof source,
                 "kernel f(A: f16[M, %s], B: f16[%s, N]) -> (C: f16[M, N])\n"
                 "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
                 "schedule f for sm_90a { stages %d; %s }\n",
                 extent, extent, stages[i], schedule);
        k.diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = &k};
        k.ir = kernel_parse(&k, source);
        ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag), TCC_OK);
        m->mutate(k.ir->first);
        tcc_status status = check(&k, k.ir->first);
        bool lost = may_be_lost && m->says && status == TCC_ERR_UNSUPPORTED;
        ck_assert_msg(lost || status == (m->says ? TCC_ERR_INTERNAL : TCC_OK), "%s, %d stages: status %d\n%s",
                      m->name, stages[i], status, k.said);
        if (m->says && !lost)
            ck_assert_msg(says_one_of(k.said, m->says), "%s, %d stages:\n%s", m->name, stages[i], k.said);
        tcc_arena_destroy(k.arena);
    }
}

START_TEST(a_mistake_in_a_ring_that_goes_on_across_tiles)
{
    break_rings(&of_persistent_rings[_i], "tile m 64, n 8, k 16; producer warp; persistent;", "K", false);
}
END_TEST

START_TEST(a_mistake_in_a_ring)
{
    break_rings(&of_rings[_i], "tile m 128, n 8, k 16; warpgroups 2; producer warp; epilogue tma;", "K", false);
}
END_TEST

/* ---- turns ----------------------------------------------------------------------------------- */

/* Waits, in order: each role's for its first turn, for a stage, for its next turn; the producer's. The odd role
 * has no first one. */
enum { EVEN_STAGE = 1, EVEN_TURN, ODD_STAGE, ODD_TURN };

/* clang-format off */
static void even_does_not_wait(tcc_func *f) { tcc_op_erase(NTH(nvvm_mbarrier_wait, EVEN_TURN)); }
static void odd_does_not_wait(tcc_func *f) { tcc_op_erase(NTH(nvvm_mbarrier_wait, ODD_TURN)); }
static void wrong_turn(tcc_func *f) { flip_parity(NTH(nvvm_mbarrier_wait, EVEN_TURN)); }
static void own_turn(tcc_func *f) { add_to_operand(NTH(nvvm_mbarrier_wait, ODD_TURN), 0, 8); }
/* clang-format on */

/* The first arrival of a role passes the turn on: in the last iteration, by all threads. */
static void turn_is_kept(tcc_func *f) { tcc_op_erase(NTH(nvvm_mbarrier_arrive, 0)); }
static void turn_is_passed_on_twice(tcc_func *f)
{
    tcc_op *arrive = NTH(nvvm_mbarrier_arrive, 0);
    tcc_builder b = tcc_builder_before(arrive);
    tcc_op_clone(&b, arrive, tcc_value_map_create(f->ir->arena));
}
static void turn_is_passed_on_at_once(tcc_func *f)
{
    tcc_op *arrive = NTH(nvvm_mbarrier_arrive, 0);
    tcc_builder b = tcc_builder_before(arrive->block->parent);
    tcc_op_set_operand(arrive->block->parent, 0,
                       tcc_build_int(&b, tcc_type_scalar(f->ir, TCC_i1), 1));
}

/* The odd role goes on where its own last tile ended: it does not pass over the other's. */
static void does_not_pass_over(tcc_func *f)
{
    tcc_op *test = NTH(nvvm_mbarrier_wait, ODD_TURN)->block->parent;
    tcc_op *yield = test->block->last, *counts = yield->operands[yield->n_operands - 1]->def;
    tcc_builder b = tcc_builder_after(counts);
    ck_assert(counts->code == TCC_OP_scf_for);
    tcc_value *next = TCC_EMIT(&b, arith_select, counts->results[0].type, test->operands[0],
                               &counts->results[0], counts->operands[3]);
    tcc_op_set_operand(yield, yield->n_operands - 1, next);
}

/* Both roles stage their results in one buffer. */
static void one_buffer(tcc_func *f)
{
    enum { RESULT_BYTES = 1024 };
    int roles = 0;
    for (tcc_op *op = f->body->first, *next; op; op = next) {
        next = tcc_walk_next(op, f->body);
        roles += op->code == TCC_OP_nvvm_setmaxnreg;
        if (roles == 2 && (op->code == TCC_OP_nvvm_st_shared || op->code == TCC_OP_nvvm_tma_store))
            add_to_operand(op, 0, -RESULT_BYTES);
    }
}

static const mutation of_turns[] = {
    {"nothing", nothing, NULL},
    {"even_does_not_wait", even_does_not_wait, "may have ended together|may end while|phase too early|may still be"},
    {"odd_does_not_wait", odd_does_not_wait, "may have ended together|may end while|phase too early|may still be"},
    {"wrong_turn", wrong_turn, "deadlock|may have ended together|may end while|phase too early"},
    {"own_turn", own_turn, "deadlock|may have ended together|may end while|phase too early"},
    {"turn_is_kept", turn_is_kept, "deadlock"},
    {"turn_is_passed_on_twice", turn_is_passed_on_twice, "phase too early"},
    {"turn_is_passed_on_at_once", turn_is_passed_on_at_once, "phase too early|may have ended together|may end while"},
    {"does_not_pass_over", does_not_pass_over, "deadlock|waits for phase|before anything|phase too early|may still be"},
    {"one_buffer", one_buffer, "that a copy to global memory of warp|may still be"},
    {"skip_a_slot", skip_a_slot, "deadlock|waits for phase|before anything|phase too early"},
    {"begin_anew", begin_anew, "waits for phase|phase too early|may still be writing|deadlock"},
    {"no_last_release", no_last_release, "deadlock"},
    {"wrong_phase_of_filling", wrong_phase_of_filling, "deadlock"},
};

START_TEST(a_mistake_in_taking_turns)
{
    break_rings(&of_turns[_i], "tile m 64, n 8, k 16; consumers pingpong; persistent;", "80", false);
}
END_TEST

/* Who has not waited for the other's tile does not know how many iterations it has. */
START_TEST(a_mistake_in_taking_turns_in_a_cluster)
{
    break_rings(&of_turns[_i], "tile m 64, n 8, k 16; consumers pingpong; persistent; cluster n 2;", "80", false);
}
END_TEST

START_TEST(a_mistake_in_taking_turns_of_any_length)
{
    break_rings(&of_turns[_i], "tile m 64, n 8, k 16; consumers pingpong; persistent;", "K", true);
}
END_TEST

/* More iterations than are counted one by one at first, their number being known: 261. Of a multiple of twice the stages
 * some would be none: a tile ends where it begins. */
START_TEST(a_mistake_in_taking_turns_of_a_known_length)
{
    break_rings(&of_turns[_i], "tile m 64, n 8, k 16; consumers pingpong; persistent;", "4176", true);
}
END_TEST

/* What the odd role hands on to its next tile, for the number of iterations of one. */
static tcc_op *passing_over(tcc_func *f)
{
    tcc_op *yield = NTH(nvvm_mbarrier_wait, ODD_TURN)->block->parent->block->last;
    return yield->operands[yield->n_operands - 1]->def;
}

/* The odd role passes its turn on again where something holds. */
static void pass_on_again(tcc_builder *b, tcc_func *f, tcc_value *where)
{
    tcc_op *init = LAST(nvvm_mbarrier_init), *branch = tcc_begin_if(b, where);
    tcc_value *base = NTH(nvvm_smem_base, 0)->results;
    tcc_value *at = tcc_build_int(b, base->type, constant_of(init->operands[0]->def->operands[1]));
    at = TCC_EMIT(b, arith_add, base->type, base, at);
    tcc_op_create(b, TCC_OP_nvvm_mbarrier_arrive, 1, &at, 0, NULL);
    tcc_end_if(b, branch);
}

/* Behind that, where the eights among the iterations are odd, but not yet behind the first tiles, whose beginnings are
 * told apart. */
static tcc_value *are_eights_odd(tcc_builder *b, tcc_func *f)
{
    tcc_op *counts = passing_over(f);
    *b = tcc_builder_after(counts);
    const tcc_type *type = counts->results[0].type;
    tcc_value *n = TCC_EMIT(b, arith_shr, type, counts->operands[1], tcc_build_int(b, type, 3));
    n = TCC_EMIT(b, arith_and, type, n, tcc_build_int(b, type, 1));
    tcc_value *later = tcc_arith_cmp(b, "gt", counts->block->args[0], tcc_build_int(b, type, 3));
    n = tcc_arith_cmp(b, "eq", n, tcc_build_int(b, type, 1));
    return TCC_EMIT(b, arith_and, n->type, n, later);
}

/* A fence too many does no harm. */
static void number_is_wanted_for_nothing(tcc_func *f)
{
    tcc_builder b;
    tcc_value *odd = are_eights_odd(&b, f);
    tcc_op *branch = tcc_begin_if(&b, odd);
    tcc_op_create(&b, TCC_OP_nvvm_fence_proxy_async, 0, NULL, 0, NULL);
    tcc_end_if(&b, branch);
}

static void turn_is_passed_on_twice_in_long_tiles(tcc_func *f)
{
    tcc_builder b;
    tcc_value *odd = are_eights_odd(&b, f);
    pass_on_again(&b, f, odd);
}

/* clang-format off */
static void passes_over_one_too_many(tcc_func *f) { add_to_operand(passing_over(f), 3, 1); }
/* clang-format on */

static const mutation of_sums[] = {
    {"number_is_wanted_for_nothing", number_is_wanted_for_nothing, NULL},
    {"passes_over_one_too_many", passes_over_one_too_many, "waits for phase|phase too early|deadlock|may still be"},
    {"turn_is_passed_on_twice_in_long_tiles", turn_is_passed_on_twice_in_long_tiles, "phase too early|more than 128 arrivals"},
};

/* Whether a tile is not among the first, which are told apart; and is the third of four. */
static tcc_value *is_late(tcc_builder *b, tcc_value *tile)
{
    return tcc_arith_cmp(b, "gt", tile, tcc_build_int(b, tile->type, 7));
}

static tcc_value *is_third(tcc_builder *b, tcc_value *tile)
{
    tcc_value *late = is_late(b, tile);
    tcc_value *rest = TCC_EMIT(b, arith_and, tile->type, tile, tcc_build_int(b, tile->type, 3));
    tcc_value *third = tcc_arith_cmp(b, "eq", rest, tcc_build_int(b, tile->type, 2));
    return TCC_EMIT(b, arith_and, late->type, late, third);
}

static void turn_is_passed_on_twice_in_each_other_lap(tcc_func *f)
{
    tcc_op *counts = passing_over(f);
    tcc_builder b = tcc_builder_after(counts);
    pass_on_again(&b, f, is_third(&b, counts->block->args[0]));
}

static void wrong_turn_in_each_other_lap(tcc_func *f)
{
    tcc_op *wait = NTH(nvvm_mbarrier_wait, ODD_TURN);
    tcc_builder b = tcc_builder_before(wait);
    tcc_value *parity = wait->operands[1], *tile = passing_over(f)->block->args[0];
    tcc_value *other = TCC_EMIT(&b, arith_xor, parity->type, parity, tcc_build_int(&b, parity->type, 1));
    tcc_op_set_operand(wait, 1, TCC_EMIT(&b, arith_select, parity->type, is_third(&b, tile), other, parity));
}

/* Having waited for its turn, the odd role waits again, later on always for the same phase. */
static void wait_again(tcc_func *f, int64_t phase)
{
    tcc_op *wait = NTH(nvvm_mbarrier_wait, ODD_TURN);
    tcc_builder b = tcc_builder_after(wait);
    tcc_op *again = tcc_op_clone(&b, wait, tcc_value_map_create(f->ir->arena));
    b = tcc_builder_before(again);
    tcc_value *parity = wait->operands[1], *same = tcc_build_int(&b, parity->type, phase);
    tcc_value *late = is_late(&b, passing_over(f)->block->args[0]);
    tcc_op_set_operand(again, 1, TCC_EMIT(&b, arith_select, parity->type, late, same, parity));
}

static void wait_again_for_even_phases(tcc_func *f) { wait_again(f, 0); }
static void wait_again_for_odd_phases(tcc_func *f) { wait_again(f, 1); }
static void turn_never_flips(tcc_func *f) { set_constant(NTH(nvvm_mbarrier_wait, EVEN_TURN), 1, 1); }

/* Behind its tiles the even role waits once more for its turn, in the phase before the first one. */
static void wait_for_a_turn_behind_all(tcc_func *f)
{
    tcc_builder b = tcc_builder_after(tile_loop(f));
    tcc_op_clone(&b, NTH(nvvm_mbarrier_wait, 0), tcc_value_map_create(f->ir->arena));
}

static const mutation of_laps[] = {
    {"nothing", nothing, NULL},
    {"turn_is_passed_on_twice_in_each_other_lap", turn_is_passed_on_twice_in_each_other_lap,
     "phase too early|more than 128 arrivals"},
    {"wrong_turn_in_each_other_lap", wrong_turn_in_each_other_lap, "deadlock|may end while|waits for phase"},
    {"wait_again_for_even_phases", wait_again_for_even_phases, "deadlock|may end while|waits for phase"},
    {"wait_again_for_odd_phases", wait_again_for_odd_phases, "deadlock|may end while|waits for phase"},
    {"turn_never_flips", turn_never_flips, "deadlock|may end while|waits for phase|phase too early"},
    {"wait_for_a_turn_behind_all", wait_for_a_turn_behind_all, "deadlock|may end while|waits for phase"},
};

/* What goes wrong in some laps alone is found, though states that differ by a lap are taken for one. */
START_TEST(a_mistake_in_some_laps)
{
    break_rings(&of_laps[_i], "tile m 64, n 8, k 16; consumers pingpong; persistent;", "K", false);
}
END_TEST

/* Tiles of any length are taken for one by what is still to come of them, and no more. */
START_TEST(a_mistake_in_passing_over_a_tile)
{
    break_rings(&of_sums[_i], "tile m 64, n 8, k 16; consumers pingpong; persistent;", "K", false);
}
END_TEST

/* ---- what is right --------------------------------------------------------------------- */

static const struct {
    const char *producer;
    int stages, warpgroups;
    const char *epilogue;
} schedules[] = {
    {"none", 1, 1, "interleaved"}, {"none", 2, 1, "tma"},      {"none", 3, 2, "tma"},
    {"none", 5, 3, "interleaved"}, {"warp", 1, 1, "tma"},      {"warp", 2, 3, "interleaved"},
    {"warp", 3, 1, "interleaved"}, {"warp", 4, 2, "tma"},      {"warpgroup", 1, 2, "tma"},
    {"warpgroup", 2, 1, "tma"},    {"warpgroup", 3, 3, "tma"}, {"warpgroup", 6, 1, "interleaved"},
};

/* Both variants of a product, their sum's extent known or not. */
START_TEST(every_schedule)
{
    static const char *const sums[] = {"K", "16", "80", "4096"};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        kernel k = {.arena = tcc_arena_create(NULL), .target = "sm_90a"};
        char source[512];
        snprintf(source, sizeof source,
                 "kernel f(A: f16[M, %s], B: f16[%s, N]) -> (C: f16[M, N])\n"
                 "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
                 "schedule f for sm_90a { tile m %d, n 32, k 16; stages %d; warpgroups %d; "
                 "producer %s; epilogue %s; }\n",
                 sums[i], sums[i], 64 * schedules[_i].warpgroups, schedules[_i].stages,
                 schedules[_i].warpgroups, schedules[_i].producer, schedules[_i].epilogue);
        k.diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = &k};
        k.ir = kernel_parse(&k, source);
        ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag),
                         TCC_OK);
        unsigned n = 0;
        for (const tcc_func *f = k.ir->first; f; f = f->next, n++)
            ck_assert_msg(!check(&k, f), "%s\n%s", source, k.said);
        ck_assert_uint_ge(n, 2);
        tcc_arena_destroy(k.arena);
    }
}
END_TEST

/* ---- a module -------------------------------------------------------------------------- */

/* Of a module's functions the first that is wrong is told of, whichever thread is done first: of these that takes
 * longest. */
START_TEST(threads_tell_of_the_first_that_is_wrong)
{
    static const char source[] =
        "kernel a(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }\n"
        "schedule a for sm_90a { tile m 64, n 8, k 16; stages 4; consumers pingpong; persistent; }\n"
        "kernel b(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }\n"
        "schedule b for sm_90a { tile m 64, n 8, k 16; }\n";
    kernel k = {.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    char alone[MAX_SAID];
    k.diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = &k};
    k.ir = kernel_parse(&k, source);
    ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag), TCC_OK);
    for (size_t n = 1; n <= 4; n++)
        ck_assert_int_eq(tcc_protocol_check_all(k.ir, n, &k.diag), TCC_OK);
    no_last_release(k.ir->first);
    no_wait_for_full(tcc_func_find(k.ir, "b"));
    ck_assert_int_eq(check(&k, k.ir->first), TCC_ERR_INTERNAL);
    memcpy(alone, k.said, sizeof alone);
    for (size_t n = 0; n <= 4; n++) {
        *k.said = 0;
        ck_assert_int_eq(tcc_protocol_check_all(k.ir, n, &k.diag), TCC_ERR_INTERNAL);
        ck_assert_str_eq(k.said, alone);
    }
    tcc_arena_destroy(k.arena);
}
END_TEST

/* Whether one proof is for both. */
static bool are_alike(kernel *k, const char *a, const char *b)
{
    tcc_arena *scratch = tcc_arena_create(NULL);
    tcc_diag silent = {0};
    const char *names[] = {a, b};
    const uint8_t *bytes[2];
    size_t n[2];
    for (int i = 0; i < 2; i++) {
        bytes[i] = tcc_p_write(tcc_p_open(tcc_func_find(k->ir, names[i]), scratch, &silent), &n[i]);
        ck_assert_ptr_nonnull(bytes[i]);
    }
    bool alike = n[0] == n[1] && !memcmp(bytes[0], bytes[1], n[0]);
    tcc_arena_destroy(scratch);
    return alike;
}

/* A proof is for all variants that differ in nothing it looks at, and for no other. */
START_TEST(one_proof_for_what_is_alike)
{
    static const char source[] =
        "kernel a(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }\n"
        "schedule a for sm_90a { tile m 64, n 16, k 16; stages 4; producer warp; epilogue tma; }\n"
        "kernel b(A: bf16[M, K], bias: f32[N], B: bf16[N, K]) -> (C: bf16[M, N])\n"
        "{ acc[m, n] = sum(k) A[m, k] * B[n, k]; C[m, n] = relu(acc[m, n] + bias[n]); }\n"
        "schedule b for sm_90a { tile m 64, n 16, k 16; stages 4; producer warp; epilogue tma; }\n"
        "kernel c(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }\n"
        "schedule c for sm_90a { tile m 64, n 16, k 16; stages 4; producer warp; epilogue tma; }\n";
    kernel k = {.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    char alone[MAX_SAID];
    k.diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = &k};
    k.ir = kernel_parse(&k, source);
    ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag), TCC_OK);
    ck_assert(are_alike(&k, "a__generic", "a__generic"));
    ck_assert(!are_alike(&k, "a", "a__generic"));
    ck_assert(are_alike(&k, "a__padded", "a__direct"));
    ck_assert(are_alike(&k, "a", "b")); /* other elements, arguments and results */
    ck_assert(are_alike(&k, "a", "c")); /* a transposed operand: the same bytes by other descriptors */
    no_last_release(tcc_func_find(k.ir, "b"));
    ck_assert(!are_alike(&k, "a", "b"));
    no_last_release(tcc_func_find(k.ir, "a__padded"));
    ck_assert(!are_alike(&k, "a__padded", "a__direct"));
    ck_assert_int_eq(tcc_protocol_check_all(k.ir, 1, &k.diag), TCC_ERR_INTERNAL);
    no_last_release(tcc_func_find(k.ir, "a__direct")); /* now both are wrong, alike */
    ck_assert(are_alike(&k, "a__padded", "a__direct"));
    ck_assert_int_eq(check(&k, tcc_func_find(k.ir, "a__direct")), TCC_ERR_INTERNAL);
    memcpy(alone, k.said, sizeof alone);
    for (size_t n = 1; n <= 4; n++) {
        *k.said = 0;
        ck_assert_int_eq(tcc_protocol_check_all(k.ir, n, &k.diag), TCC_ERR_INTERNAL);
        ck_assert_str_eq(k.said, alone);
    }
    tcc_arena_destroy(k.arena);
}
END_TEST

/* Lets the loop over k run as often as M says: M is what the first sum that is computed is of, K that of the last. */
static void count_rows(tcc_func *f)
{
    tcc_op *first = NULL, *last = NULL;
    for (tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_arith_add && !op->operands[0]->def) {
            first = first ? first : op;
            last = op;
        }
    ck_assert_ptr_ne(first, last);
    tcc_op_set_operand(last, 0, first->operands[0]);
}

/* How many tiles there are is for the proof one number, unless it asks for what that is computed from. */
START_TEST(one_proof_for_any_number_of_tiles)
{
    static const char source[] =
        "kernel a(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }\n"
        "schedule a for sm_90a { tile m 64, n 16, k 16; stages 4; producer warp; persistent; epilogue tma; }\n"
        "kernel b(A: f16[H, M, K], B: f16[H, N, K]) -> (C: f16[H, M, N])\n"
        "{ C[h, m, n] = sum(k) A[h, m, k] * B[h, n, k]; }\n"
        "schedule b for sm_90a { tile m 64, n 16, k 16; stages 4; producer warp; persistent; epilogue tma; }\n";
    kernel k = {.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    k.diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = &k};
    k.ir = kernel_parse(&k, source);
    ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag), TCC_OK);
    ck_assert(are_alike(&k, "a", "b"));
    count_rows(tcc_func_find(k.ir, "b"));
    ck_assert(!are_alike(&k, "a", "b"));
    count_rows(tcc_func_find(k.ir, "a"));
    ck_assert(!are_alike(&k, "a", "b"));
    tcc_arena_destroy(k.arena);
}
END_TEST

/* ---- what is written of a function ------------------------------------------------------- */

/* A product whose operands are transposed, or not, is copied in other boxes and read by other descriptors. */
static const char transposed[] =
    "kernel nt(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }\n"
    "schedule nt for sm_90a { tile m 64, n 128, k 64; stages 3; producer warp; epilogue tma; }\n"
    "kernel nn(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }\n"
    "schedule nn for sm_90a { tile m 64, n 128, k 64; stages 3; producer warp; epilogue tma; }\n"
    "kernel tn(A: f16[K, M], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[k, m] * B[k, n]; }\n"
    "schedule tn for sm_90a { tile m 64, n 128, k 64; stages 3; producer warp; epilogue tma; }\n";

static void open_transposed(kernel *k)
{
    *k = (kernel){.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    k->diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = k};
    k->ir = kernel_parse(k, transposed);
    ck_assert_int_eq(tcc_run_passes(k->ir, tcc_pipeline(tcc_target_of(k->ir)), NULL, &k->diag), TCC_OK);
}

/* A copy less of B, which is of two boxes; another descriptor; another step of k; another box. */
static void leave_out_copy(tcc_func *f) { tcc_op_erase(NTH(nvvm_tma_load, 2)); }
static void read_a_row_further(tcc_func *f) { add_to_operand(NTH(nvvm_wgmma, 0), 2, 8); }
static void read_one_step_twice(tcc_func *f)
{
    tcc_op *last = NTH(nvvm_wgmma, 3);
    tcc_op_set_operand(last, 2, NTH(nvvm_wgmma, 2)->operands[2]);
}
static void copy_twice(tcc_func *f)
{
    tcc_op *load = NTH(nvvm_tma_load, 2);
    tcc_op_set_operand(load, 0, NTH(nvvm_tma_load, 1)->operands[0]);
}
static void complete_elsewhere(tcc_func *f) { add_to_operand(NTH(nvvm_tma_load, 2), 2, 8); }
static void do_not_transpose(tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_nvvm_wgmma)
            tcc_attr_set_int(f->ir, &op->attrs, "trans_b", 0);
}
static void differ_between_warps(tcc_func *f)
{
    tcc_op *mma = NTH(nvvm_wgmma, 0);
    tcc_builder b = tcc_builder_before(mma);
    tcc_value *warp = NTH(nvvm_uniform, 0)->results, *v = mma->operands[2];
    tcc_value *odd = TCC_EMIT(&b, arith_and, warp->type, warp, tcc_build_int(&b, warp->type, 1));
    tcc_op_set_operand(mma, 2, TCC_EMIT(&b, arith_add, v->type, v, tcc_arith_cast(&b, v->type, odd)));
}

static const struct {
    const char *name;
    void (*mutate)(tcc_func *f);
    bool is_right; /* as far as the protocol goes */
} of_bytes[] = {
    {"leave_out_copy", leave_out_copy, false},
    {"read_a_row_further", read_a_row_further, true},
    {"read_one_step_twice", read_one_step_twice, true},
    {"copy_twice", copy_twice, false},
    {"complete_elsewhere", complete_elsewhere, false},
    {"do_not_transpose", do_not_transpose, false},
    {"differ_between_warps", differ_between_warps, false},
};

/* Products that read and write the same bytes by other descriptors and boxes have one proof; once the bytes of one of
 * them are others, it is not for that. */
START_TEST(one_proof_for_the_same_bytes)
{
    kernel k;
    open_transposed(&k);
    ck_assert(are_alike(&k, "nt", "nn"));
    ck_assert(are_alike(&k, "nt", "tn"));
    ck_assert_int_eq(tcc_protocol_check_all(k.ir, 1, &k.diag), TCC_OK);
    of_bytes[_i].mutate(tcc_func_find(k.ir, "nn"));
    ck_assert_msg(!are_alike(&k, "nt", "nn"), "%s", of_bytes[_i].name);
    ck_assert_int_eq(check(&k, tcc_func_find(k.ir, "nn")) == TCC_OK, of_bytes[_i].is_right);
    ck_assert_int_eq(tcc_protocol_check_all(k.ir, 1, &k.diag) == TCC_OK, of_bytes[_i].is_right);
    tcc_arena_destroy(k.arena);
}
END_TEST

static void release_nothing(tcc_func *f) { tcc_op_erase(LAST(nvvm_mbarrier_arrive_cluster)); }

static const struct {
    const char *name;
    void (*mutate)(tcc_func *f);
} of_one_of_two[] = {{"do_not_transpose", do_not_transpose}, {"release_nothing", release_nothing}};

/* A proof that took a second attempt is for all functions alike, too, and for none that has a mistake of its own. */
START_TEST(one_proof_by_a_second_attempt)
{
    kernel k = {.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    size_t n;
    tcc_covered covered;
    k.diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = &k};
    k.ir = kernel_parse(
        &k, "kernel nt(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }\n"
            "schedule nt for sm_90a { tile m 64, n 128, k 64; stages 5; producer warp; cluster m 2; }\n"
            "kernel nn(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }\n"
            "schedule nn for sm_90a { tile m 64, n 128, k 64; stages 5; producer warp; cluster m 2; }\n");
    ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag), TCC_OK);
    tcc_arena *scratch = tcc_arena_create(NULL);
    tcc_protocol *p = tcc_p_open(tcc_func_find(k.ir, "nt"), scratch, &k.diag);
    ck_assert_ptr_nonnull(tcc_p_write(p, &n));
    ck_assert_int_eq(tcc_p_prove(p, &k.diag, &covered), TCC_OK);
    ck_assert_uint_lt(p->steps, covered.steps);
    ck_assert(!p->layouts);
    tcc_arena_destroy(scratch);
    ck_assert(are_alike(&k, "nt", "nn"));
    ck_assert_int_eq(tcc_protocol_check_all(k.ir, 1, &k.diag), TCC_OK);
    of_one_of_two[_i].mutate(tcc_func_find(k.ir, "nn"));
    ck_assert_msg(tcc_protocol_check_all(k.ir, 1, &k.diag) != TCC_OK, "%s", of_one_of_two[_i].name);
    tcc_arena_destroy(k.arena);
}
END_TEST

/* What is written of a function, kept; gives how many bytes. */
static uint8_t *write_down(const tcc_func *f, size_t *n)
{
    tcc_arena *scratch = tcc_arena_create(NULL);
    tcc_diag silent = {0};
    const uint8_t *bytes = tcc_p_write(tcc_p_open(f, scratch, &silent), n);
    uint8_t *kept = bytes ? malloc(*n) : NULL;
    if (kept)
        memcpy(kept, bytes, *n);
    tcc_arena_destroy(scratch);
    return kept;
}

/* Whether a function that was changed is as it was before for whom shares a proof, though the proof fails. */
static bool is_mistaken(kernel *k, const tcc_func *f, const uint8_t *before, size_t n)
{
    size_t now;
    uint8_t *after = write_down(f, &now);
    bool same = after && now == n && !memcmp(after, before, n);
    free(after);
    return same && check(k, f) != TCC_OK;
}

/* Whatever of an op is changed, its attributes and constants, is either written or does not matter: the n-th of so many
 * parts of all ops of a function. */
START_TEST(what_is_not_written_does_not_matter)
{
    enum { PARTS = 8 };
    static const char *const names[] = {"nn", "nn__padded", "nn__generic"};
    kernel k;
    open_transposed(&k);
    tcc_func *f = tcc_func_find(k.ir, names[_i / PARTS]);
    size_t n, number = 0, written = 0;
    uint8_t *before = write_down(f, &n);
    ck_assert_ptr_nonnull(before);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        if ((int)(number++ % PARTS) != _i % PARTS)
            continue;
        for (size_t a = 0; a < op->attrs.len; a++) {
            tcc_attr *v = &op->attrs.data[a].value;
            if (v->kind != TCC_ATTR_INT)
                continue;
            v->i ^= 1;
            ck_assert_msg(!is_mistaken(&k, f, before, n), "%s: %s of %s\n%s", f->name, op->attrs.data[a].name,
                          tcc_op_info_get(op->code)->name, k.said);
            v->i ^= 1;
            written++;
        }
        for (unsigned i = 0; i < op->n_operands; i++) {
            tcc_value *old = op->operands[i];
            int64_t c;
            if (!tcc_value_is_int(old, &c))
                continue;
            set_constant(op, i, old->type->elem == TCC_i1 ? !c : c + 16);
            ck_assert_msg(!is_mistaken(&k, f, before, n), "%s: operand %u of %s\n%s", f->name, i,
                          tcc_op_info_get(op->code)->name, k.said);
            tcc_op *constant = op->operands[i]->def;
            tcc_op_set_operand(op, i, old);
            tcc_op_erase(constant);
            written++;
        }
    }
    ck_assert_uint_gt(written, 0);
    free(before);
    tcc_arena_destroy(k.arena);
}
END_TEST

/* Halves of a cluster's barrier that stand apart are not those of one proof with halves that stand together, though
 * nothing else asks for what is between them. */
START_TEST(what_is_between_the_halves_of_a_barrier_is_written)
{
    kernel k = {.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    k.diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = &k};
    k.ir = kernel_parse(&k, "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
                            "{\n    C[m, n] = sum(k) A[m, k] * B[n, k];\n}\n"
                            "schedule f for sm_90a { tile m 64, n 8, k 16; stages 2; producer warp; cluster n 2; }\n");
    ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag), TCC_OK);
    tcc_func *f = k.ir->first;
    size_t n;
    uint8_t *before = write_down(f, &n);
    ck_assert_ptr_nonnull(before);
    tcc_builder b = tcc_builder_after(NTH(nvvm_cluster_arrive, 0));
    tcc_build_int(&b, tcc_type_scalar(f->ir, TCC_i32), 0);
    ck_assert_int_eq(check(&k, f), TCC_OK);
    size_t n_after;
    uint8_t *after = write_down(f, &n_after);
    ck_assert_ptr_nonnull(after);
    ck_assert(n != n_after || memcmp(before, after, n) != 0);
    free(before);
    free(after);
    tcc_arena_destroy(k.arena);
}
END_TEST

/* ---- what it costs --------------------------------------------------------------------- */

static const struct {
    const char *producer;
    int stages;
    size_t steps; /* at most, in both variants together */
} costs[] = {
    {"warp", 1, 900},  {"warp", 2, 1000},   {"warp", 3, 1100},  {"warp", 4, 1200},
    {"warp", 8, 1600},  {"warp", 16, 2500}, {"warp", 64, 8300}, {"none", 1, 800},
    {"none", 2, 1100},  {"none", 3, 1200},  {"none", 4, 1400},  {"none", 8, 2000},
    {"none", 16, 3500}, {"none", 64, 12300},
    {"warp; persistent", 1, 1300}, {"warp; persistent", 2, 1900}, {"warp; persistent", 3, 2400},
    {"warp; persistent", 4, 2800}, {"warp; persistent", 8, 4700}, {"warp; persistent", 16, 8500},
    {"warp; persistent", 64, 31200},
    {"warp; cluster n 2", 4, 3400}, {"warp; cluster n 2", 8, 7300},
    {"warp; cluster n 4", 4, 3500}, {"warp; cluster n 4", 8, 7500},
    {"warpgroup; consumers pingpong; persistent", 1, 5500},
    {"warpgroup; consumers pingpong; persistent", 2, 7300},
    {"warpgroup; consumers pingpong; persistent", 3, 10300},
    {"warpgroup; consumers pingpong; persistent", 4, 14100},
    {"warpgroup; consumers pingpong; persistent", 8, 32700},
    {"warpgroup; consumers pingpong; persistent; cluster n 2", 2, 8300},
    {"warpgroup; consumers pingpong; persistent; cluster n 2", 4, 18900},
    {"warpgroup; consumers pingpong; persistent; cluster n 4", 2, 8400},
    {"warpgroup; consumers pingpong; persistent; cluster n 4", 4, 19300},
};

/* Steps grow as the stages do, whoever fills them. */
START_TEST(steps_of_many_stages)
{
    kernel k = {.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    char source[512];
    size_t all = 0;
    snprintf(source, sizeof source,
             "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
             "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
             "schedule f for sm_90a { tile m 64, n 8, k 16; stages %d; producer %s; }\n",
             costs[_i].stages, costs[_i].producer);
    k.diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = &k};
    k.ir = kernel_parse(&k, source);
    ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag),
                     TCC_OK);
    for (const tcc_func *f = k.ir->first; f; f = f->next) {
        tcc_covered covered;
        if (strstr(f->name, "__padded")) /* the same pipeline once more */
            continue;
        tcc_arena *scratch = tcc_arena_create(NULL);
        ck_assert_int_eq(tcc_protocol_measure(f, scratch, &k.diag, &covered), TCC_OK);
        tcc_arena_destroy(scratch);
        all += covered.steps;
    }
    ck_assert_uint_gt(all, 0);
    ck_assert_msg(all <= costs[_i].steps, "%d stages, producer %s: %zu steps", costs[_i].stages,
                  costs[_i].producer, all);
    tcc_arena_destroy(k.arena);
}
END_TEST

static const struct {
    const char *file;
    size_t proofs, steps; /* at most: of functions that no other's proof is for */
} files[] = {
    {"bench/cluster.tile", 8, 89000},
    {"bench/suite.tile", 31, 149000},
    {"examples/batched.tile", 31, 150000},
    {"examples/transposed.tile", 31, 151000},
    {"examples/dequant.tile", 25, 104000},
    {"tests/gpu/cluster.tile", 17, 107000},
    {"tests/gpu/cluster_shapes.tile", 22, 208000},
    {"tests/gpu/cluster_sum.tile", 39, 363000},
    {"tests/gpu/dynamic.tile", 21, 750000},
    {"tests/gpu/pingpong.tile", 19, 371000},
    {"tests/gpu/staging.tile", 18, 226000},
};

/* The kernels of a file, by name under the root; tiles of 128 columns where it leaves that open. */
static void open_file(kernel *k, const char *name)
{
    static const tcc_frontend_define narrow = {"TN", 128};
    char path[512], *text;
    snprintf(path, sizeof path, TCC_TEST_DIR "/../../%s", name);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f && !fseek(f, 0, SEEK_END), "%s", path);
    size_t n = (size_t)ftell(f);
    rewind(f);
    *k = (kernel){.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    text = tcc_arena_alloc(k->arena, n + 1);
    ck_assert_uint_eq(fread(text, 1, n, f), n);
    fclose(f);
    k->diag = (tcc_diag){.file = name, .source = text, .size = n, .fn = kernel_listen, .user = k};
    k->ir = tcc_frontend(k->arena, text, n, k->target, &narrow, strstr(text, "const TN") != NULL, &k->diag);
    ck_assert_msg(k->ir && !tcc_run_passes(k->ir, tcc_pipeline(tcc_target_of(k->ir)), NULL, &k->diag), "%s", k->said);
}

/* How many functions of a file have proofs of their own, and the steps of these. None asks how operands lie, so each is
 * for all functions alike. */
START_TEST(proofs_of_a_file)
{
    enum { MANY = 256 };
    kernel k;
    uint8_t *seen[MANY];
    size_t sizes[MANY], n_seen = 0, steps = 0;
    open_file(&k, files[_i].file);
    for (const tcc_func *f = k.ir->first; f; f = f->next) {
        size_t n, i = 0;
        tcc_covered own;
        tcc_arena *scratch = tcc_arena_create(NULL);
        tcc_protocol *p = tcc_func_is_definition(f) ? NULL : tcc_p_open(f, scratch, &k.diag);
        const uint8_t *bytes = p ? tcc_p_write(p, &n) : NULL;
        while (bytes && i < n_seen && (sizes[i] != n || memcmp(seen[i], bytes, n) != 0))
            i++;
        if (bytes && i == n_seen) {
            ck_assert_uint_lt(n_seen, MANY);
            seen[n_seen] = malloc(n);
            memcpy(seen[n_seen], bytes, n);
            sizes[n_seen++] = n;
            ck_assert_int_eq(tcc_p_prove(p, &k.diag, &own), TCC_OK);
            ck_assert_msg(!p->layouts, "%s: the proof of %s", files[_i].file, f->name);
            steps += own.steps;
        }
        tcc_arena_destroy(scratch);
    }
    ck_assert_uint_gt(n_seen, 0);
    ck_assert_msg(n_seen <= files[_i].proofs && steps <= files[_i].steps, "%s: %zu proofs, %zu steps", files[_i].file,
                  n_seen, steps);
    while (n_seen)
        free(seen[--n_seen]);
    tcc_arena_destroy(k.arena);
}
END_TEST

/* ---- MMAs with nothing between them ------------------------------------------------------ */

/* A product of one MMA for each of `steps` steps of k in a stage; rows of copies are of `swizzle` bytes. */
static tcc_func *open_steps_of_k(kernel *k, int steps, int swizzle)
{
    char source[512];
    snprintf(source, sizeof source,
             "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
             "{\n    C[m, n] = sum(k) A[m, k] * B[n, k];\n}\n"
             "schedule f for sm_90a { tile m 64, n 8, k %d; stages 2; producer warp; swizzle %d; }\n",
             16 * steps, swizzle);
    *k = (kernel){.arena = tcc_arena_create(NULL), .target = "sm_90a"};
    k->diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = k};
    k->ir = kernel_parse(k, source);
    ck_assert_int_eq(tcc_run_passes(k->ir, tcc_pipeline(tcc_target_of(k->ir)), NULL, &k->diag), TCC_OK);
    return k->ir->first;
}

/* How many sets of bytes the proof tells apart. */
static size_t count_footprints(kernel *k, const tcc_func *f)
{
    tcc_covered covered;
    tcc_protocol *p = tcc_p_open(f, k->arena, &k->diag);
    ck_assert_msg(!tcc_p_prove(p, &k->diag, &covered), "%s", k->said);
    return p->footprints.len;
}

/* Commits each MMA by itself, so that there is an op between them. */
static void commit_each(tcc_func *f)
{
    for (tcc_op *mma = NTH(nvvm_wgmma, 0); mma; mma = mma->next)
        if (mma->code == TCC_OP_nvvm_wgmma && mma->next->code != TCC_OP_nvvm_wgmma_commit) {
            tcc_builder b = tcc_builder_before(mma->next);
            tcc_op_clone(&b, LAST(nvvm_wgmma_commit), tcc_value_map_create(f->ir->arena));
        }
}

/* The steps of k in a stage read neighbouring bytes: they are one access to each operand, as a single MMA is, and
 * several where there is an op between them. */
START_TEST(operands_of_neighbouring_mmas_are_one_access)
{
    enum { STAGES = 2, OPERANDS = 2, STEPS = 4 };
    kernel k;
    size_t of_one = count_footprints(&k, open_steps_of_k(&k, 1, 32));
    kernel_close(&k);
    tcc_func *f = open_steps_of_k(&k, STEPS, 128);
    size_t together = count_footprints(&k, f);
    commit_each(f);
    size_t apart = count_footprints(&k, f);
    kernel_close(&k);
    ck_assert_uint_eq(together, of_one);
    ck_assert_uint_eq(apart, of_one + (STEPS - 1) * STAGES * OPERANDS);
}
END_TEST

/* Each step of k has a copy of each operand, of which one is left out. */
START_TEST(a_hole_between_operands_of_neighbouring_mmas_is_found)
{
    enum { STEPS = 4, ROW_BYTES = 32 };
    kernel k;
    tcc_func *f = open_steps_of_k(&k, STEPS, ROW_BYTES);
    ck_assert_msg(check(&k, f) == TCC_OK, "%s", k.said);
    tcc_op *expect = NTH(nvvm_mbarrier_arrive_expect_tx, 0);
    int rows = _i < STEPS ? 64 : 8;
    set_constant(expect, 1, constant_of(expect->operands[1]) - rows * ROW_BYTES);
    tcc_op_erase(NTH(nvvm_tma_load, (unsigned)_i));
    ck_assert_int_eq(check(&k, f), TCC_ERR_INTERNAL);
    const char *says = _i < STEPS ? "nothing is ever written to operand A" : "nothing is ever written to operand B";
    ck_assert_msg(strstr(k.said, says), "%s", k.said);
    kernel_close(&k);
}
END_TEST

/* ---- what is known of ops -------------------------------------------------------------- */

/* Of every op of the target level whose effects are followed. */
START_TEST(no_op_is_missing)
{
    for (int i = 0; i < TCC_OP_COUNT; i++) {
        const tcc_op_info *info = tcc_op_info_get((tcc_opcode)i);
        bool left_out = i == TCC_OP_nvvm_mbarrier_inval || i == TCC_OP_nvvm_griddepcontrol_wait; /* looked at before */
        if (info->levels & TCC_LEVEL_TARGET)
            ck_assert_msg(tcc_p_is_known((tcc_opcode)i) == !left_out,
                          "the checker does not know what %s does: TCC_P_OPS", info->name);
    }
}
END_TEST

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

Suite *SUITE(void)
{
    Suite *s = suite_create("protocol");
    TCase *t = tcase_create("protocol");
    suite_add_sampled(t, a_safeguard_left_out_of_a_kernel, LEN(of_kernel));
    suite_add_sampled(t, a_safeguard_left_out_of_the_generic_variant, LEN(of_generic_variant));
    suite_add_sampled(t, a_mistake_in_a_ring_that_goes_on_across_tiles, LEN(of_persistent_rings));
    suite_add_sampled(t, a_mistake_in_taking_turns, LEN(of_turns));
    suite_add_sampled(t, a_mistake_in_taking_turns_in_a_cluster, LEN(of_turns));
    suite_add_sampled(t, a_mistake_in_taking_turns_of_any_length, LEN(of_turns));
    suite_add_sampled(t, a_mistake_in_taking_turns_of_a_known_length, LEN(of_turns));
    suite_add_sampled(t, a_mistake_in_passing_over_a_tile, LEN(of_sums));
    suite_add_sampled(t, a_mistake_in_some_laps, LEN(of_laps));
    suite_add_sampled(t, a_mistake_in_a_ring, LEN(of_rings));
    suite_add_sampled(t, every_schedule, LEN(schedules));
    tcase_add_loop_test(t, steps_of_many_stages, 0, LEN(costs));
    tcase_add_test(t, threads_tell_of_the_first_that_is_wrong);
    tcase_add_test(t, one_proof_for_what_is_alike);
    tcase_add_test(t, one_proof_for_any_number_of_tiles);
    tcase_add_loop_test(t, one_proof_for_the_same_bytes, 0, LEN(of_bytes));
    tcase_add_loop_test(t, one_proof_by_a_second_attempt, 0, LEN(of_one_of_two));
    tcase_add_loop_test(t, what_is_not_written_does_not_matter, 0, 24);
    tcase_add_test(t, what_is_between_the_halves_of_a_barrier_is_written);
    tcase_add_test(t, operands_of_neighbouring_mmas_are_one_access);
    tcase_add_loop_test(t, a_hole_between_operands_of_neighbouring_mmas_is_found, 0, 8);
    tcase_add_test(t, no_op_is_missing);
    suite_add_tcase(s, t);
    TCase *of_files = tcase_create("files");
    tcase_set_timeout(of_files, 120);
    tcase_add_loop_test(of_files, proofs_of_a_file, 0, LEN(files));
    suite_add_tcase(s, of_files);
    return s;
}

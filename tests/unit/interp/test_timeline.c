/* The timed order: what it records, and that it computes what the others do.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/cost.h"
#include "interp/timeline.h"
#include "tests/unit/interp/kernel.h"
#include "tests/unit/interp/program.h"

typedef struct wanted {
    const char *schedule;
    extents e;
    int64_t cta;
    void (*look)(const tcc_timeline *t, void *user);
    void *user;
    unsigned looks;
} wanted;

static void look(const tcc_timeline *t, void *user)
{
    wanted *w = user;
    w->looks++;
    ck_assert_int_eq(t->cta, w->cta);
    if (w->look)
        w->look(t, w->user);
}

/* Runs the first variant of a product with a schedule. */
static void time_product(wanted *w)
{
    kernel k;
    char source[512];
    snprintf(source, sizeof source,
             "kernel f(A: f16[M, K], B: f16[N, K], r: f32[N]) -> (C: f16[M, N])\n"
             "{\n    C[m, n] = relu((sum(k) A[m, k] * B[n, k]) + r[n]);\n}\n"
             "schedule f for sm_90a { %s }\n",
             w->schedule);
    kernel_open(&k, source, w->e);
    ck_assert_int_eq(tcc_run_passes(k.ir, tcc_pipeline(tcc_target_of(k.ir)), NULL, &k.diag),
                     TCC_OK);
    tcc_interp_options o = {.dims = k.dims,
                            .signature = k.signature,
                            .order = TCC_ORDER_TIMED,
                            .timeline = {.cta = w->cta, .fn = look, .user = w}};
    double *args[8];
    for (size_t a = 0; a < k.trial.n_args; a++) {
        args[a] = k.trial.args[a].got;
        memcpy(args[a], k.trial.args[a].input, (size_t)k.trial.args[a].count * sizeof(double));
    }
    tcc_arena *scratch = tcc_arena_create(NULL);
    ck_assert_msg(!tcc_interp_run(k.ir->first, &o, args, scratch, &k.diag), "%s", k.said);
    tcc_arena_destroy(scratch);
    kernel_compare(&k, k.ir->first, 0);
    kernel_close(&k);
}

static const char two_groups[] = "tile m 128, n 64, k 32; stages 3; warpgroups 2;";
static const extents several_ctas = {200, 72, 160, 1};

static void check_units(const tcc_timeline *t, void *user)
{
    (void)user;
    ck_assert(t->n_warps == 12);
    /* 2 warpgroups, 5 iterations of 2 products of 16 each */
    ck_assert_uint_eq(t->mmas.len, 2 * 5 * 2);
    ck_assert_uint_eq(t->tensor_cycles, t->mmas.len * 64 / 2);
    for (size_t i = 0; i < t->mmas.len; i++) {
        const tcc_timed_mma *p = &t->mmas.data[i];
        ck_assert_uint_eq(p->end - p->begin, 64 / 2);
        ck_assert(p->issue <= p->begin && p->end <= t->cycles);
        ck_assert(i == 0 || t->mmas.data[i - 1].end <= p->begin);
    }
    size_t loads = 0;
    uint64_t free[2] = {0}; /* the ways in and out */
    for (size_t i = 0; i < t->copies.len; i++) {
        const tcc_timed_copy *c = &t->copies.data[i];
        ck_assert_uint_ge((c->transferred - c->begin + 1) * TCC_COST_copy_bytes, (uint64_t)c->bytes);
        ck_assert(c->issue <= c->begin && c->transferred < c->end && c->end <= t->cycles);
        ck_assert(free[c->load] <= c->begin);
        free[c->load] = c->transferred;
        loads += c->load;
    }
    ck_assert_uint_eq(loads, 5 * 2);
}

START_TEST(units_work_on_one_thing_at_a_time)
{
    wanted w = {two_groups, several_ctas, 0, check_units, NULL, 0};
    time_product(&w);
    ck_assert_uint_eq(w.looks, 1);
}
END_TEST

/* What reads or writes a filling of a stage: from the first to the last. */
typedef struct span {
    uint64_t begin, end;
} span;

static void extend(span *s, uint64_t begin, uint64_t end)
{
    s->begin = s->end && s->begin < begin ? s->begin : begin;
    s->end = s->end > end ? s->end : end;
}

static void check_stages(const tcc_timeline *t, void *user)
{
    (void)user;
    enum { FILLS = 8, BARRIERS = 16 };
    span fills[BARRIERS][FILLS] = {0}, uses[BARRIERS][FILLS] = {0};
    for (size_t i = 0; i < t->copies.len; i++) {
        const tcc_timed_copy *c = &t->copies.data[i];
        if (c->load)
            extend(&fills[c->use.barrier][c->use.fill], c->issue, c->end);
    }
    for (size_t i = 0; i < t->mmas.len; i++) {
        const tcc_timed_mma *p = &t->mmas.data[i];
        extend(&uses[p->use.barrier][p->use.fill], p->issue, p->end);
    }
    unsigned stages = 0, n = 0;
    for (size_t b = 0; b < t->barriers.len; b++) {
        stages += t->barriers.data[b].of_copies;
        ck_assert(!t->barriers.data[b].of_copies || t->barriers.data[b].empty >= 0);
        for (uint32_t f = 0; f < t->barriers.data[b].fills; f++, n++) {
            ck_assert(fills[b][f].begin < fills[b][f].end && uses[b][f].begin < uses[b][f].end);
            ck_assert(fills[b][f].end <= uses[b][f].begin);
            ck_assert(f == 0 || uses[b][f - 1].end <= fills[b][f].begin);
        }
    }
    ck_assert(stages == 3 && n == 5);
}

START_TEST(a_stage_is_filled_and_used_in_turn)
{
    wanted w = {two_groups, several_ctas, 0, check_stages, NULL, 0};
    time_product(&w);
    ck_assert_uint_eq(w.looks, 1);
}
END_TEST

static void check_waits(const tcc_timeline *t, void *user)
{
    (void)user;
    bool seen[3] = {false};
    for (unsigned w = 0; w < t->n_warps; w++) {
        uint64_t end = 0;
        for (size_t i = 0; i < t->waits.len; i++) {
            const tcc_timed_wait *wait = &t->waits.data[i];
            if (wait->warp != w)
                continue;
            unsigned around = 0;
            for (size_t p = 0; p < t->parts.len; p++)
                around += t->parts.data[p].warp == w && t->parts.data[p].begin <= wait->begin &&
                          wait->end <= t->parts.data[p].end;
            ck_assert(end <= wait->begin && wait->begin < wait->end && around == 1);
            end = wait->end;
        }
        end = 0;
        for (size_t p = 0; p < t->parts.len; p++)
            if (t->parts.data[p].warp == w) {
                ck_assert(t->parts.data[p].begin == end && t->parts.data[p].end <= t->cycles);
                end = t->parts.data[p].end;
                seen[t->parts.data[p].part] = true;
            }
    }
    ck_assert(seen[TCC_PROLOGUE] && seen[TCC_MAIN_LOOP] && seen[TCC_EPILOGUE]);
}

START_TEST(waits_of_a_warp_follow_each_other_within_its_parts)
{
    wanted w = {two_groups, several_ctas, 3, check_waits, NULL, 0};
    time_product(&w);
    ck_assert_uint_eq(w.looks, 1);
}
END_TEST

static void keep_cycles(const tcc_timeline *t, void *user)
{
    *(uint64_t *)user = t->cycles;
    ck_assert_uint_eq(t->tensor_cycles, 1024 / 16 * 64 / 2);
}

/* What more stages hide, until everything is hidden. */
START_TEST(a_deeper_pipeline_takes_less_time)
{
    uint64_t before = UINT64_MAX;
    for (int stages = 1; stages <= 4; stages++) {
        char schedule[64];
        uint64_t cycles = 0;
        snprintf(schedule, sizeof schedule, "tile m 64, n 64, k 64; stages %d;", stages);
        wanted w = {schedule, {64, 64, 1024, 1}, 0, keep_cycles, &cycles, 0};
        time_product(&w);
        ck_assert(cycles > 0 && cycles < before);
        before = cycles;
    }
}
END_TEST

static void print(const tcc_timeline *t, void *user)
{
    tcc_timeline_print(user, t, NULL);
    tcc_timeline_summarize(user, t);
}

START_TEST(a_timeline_is_the_same_every_time)
{
    tcc_str text[2] = {0};
    for (int i = 0; i < 2; i++) {
        wanted w = {two_groups, several_ctas, 1, print, &text[i], 0};
        time_product(&w);
    }
    ck_assert_ptr_nonnull(strstr(text[0].data, "\"cta\": 1"));
    ck_assert_str_eq(text[0].data, text[1].data);
    tcc_str_free(&text[0]);
    tcc_str_free(&text[1]);
}
END_TEST

START_TEST(nothing_is_shown_of_a_cta_that_is_not_there)
{
    wanted w = {two_groups, several_ctas, 4, NULL, NULL, 0};
    time_product(&w);
    ck_assert_uint_eq(w.looks, 0);
}
END_TEST

static void check_multicast(const tcc_timeline *t, void *user)
{
    (void)user;
    ck_assert_uint_eq(t->copies.len, 2);
    const tcc_timed_copy *mine = &t->copies.data[!t->copies.data[0].own];
    const tcc_timed_copy *other = &t->copies.data[t->copies.data[0].own];
    ck_assert(mine->own && !other->own && mine->bytes == 1024 && other->bytes == 1024);
    ck_assert(mine->use.barrier == other->use.barrier && mine->address != other->address);
    ck_assert_uint_ge(mine->transferred - mine->begin, 1024 / TCC_COST_copy_bytes);
    ck_assert(t->barriers.len == 1 && t->barriers.data[0].fills == 1);
    ck_assert(t->phases.len == 1);
    ck_assert_uint_eq(t->phases.data[0].end, mine->end > other->end ? mine->end : other->end);
}

/* Each of two CTAs has its engine send half of a stage to both. */
START_TEST(a_multicast_is_transferred_once_and_lands_in_every_cta)
{
    program p;
    program_load(&p, "module {target = sm_90a}\n"
                     "func @sig(%A: tensor<f16[16, 64]>) {\n"
                     "  return\n"
                     "}\n"
                     "func @f(%a: tensormap) {block = 32, cluster_ctas = 2, smem_bytes = 2056, "
                     "grid = [2], requires = [[align, A, 16]], params = [[tensor_map, A, "
                     "[64, 16], [[64]], [64, 8], 128, f16]]} {\n"
                     "  %smem = nvvm.smem_base : i32\n"
                     "  %zero = arith.const {value = 0} : i32\n"
                     "  %one = arith.const {value = 1} : i32\n"
                     "  %both = arith.const {value = 3} : i32\n"
                     "  %rows = arith.const {value = 8} : i32\n"
                     "  %half = arith.const {value = 1024} : i32\n"
                     "  %bytes = arith.const {value = 2048} : i32\n"
                     "  %bar = arith.add %smem, %bytes : i32\n"
                     "  %rank = nvvm.cluster.ctarank : i32\n"
                     "  %row = arith.mul %rank, %rows : i32\n"
                     "  %offset = arith.mul %rank, %half : i32\n"
                     "  %to = arith.add %smem, %offset : i32\n"
                     "  %t = nvvm.tid : i32\n"
                     "  %first = arith.cmp %t, %zero {pred = eq} : i1\n"
                     "  scf.if %first {\n"
                     "    nvvm.mbarrier.init %bar, %one\n"
                     "    nvvm.fence.mbarrier_init\n"
                     "  }\n"
                     "  nvvm.cluster.arrive\n"
                     "  nvvm.cluster.wait\n"
                     "  scf.if %first {\n"
                     "    nvvm.mbarrier.arrive.expect_tx %bar, %bytes\n"
                     "    nvvm.tma.load.multicast %to, %a, %bar, %both, %zero, %row\n"
                     "  }\n"
                     "  nvvm.mbarrier.wait %bar, %zero\n"
                     "  nvvm.cluster.arrive\n"
                     "  nvvm.cluster.wait\n"
                     "  return\n"
                     "}\n");
    double a[16 * 64] = {0};
    for (int64_t cta = 0; cta < 2; cta++) {
        wanted w = {.cta = cta, .look = check_multicast};
        tcc_interp_options o = {
            .signature = p.ir->first, .order = TCC_ORDER_TIMED, .timeline = {.cta = cta, .fn = look, .user = &w}};
        ck_assert_msg(!tcc_interp_run(p.ir->last, &o, (double *[]){a}, p.arena, &p.diag), "%s",
                      p.said);
        ck_assert_uint_eq(w.looks, 1);
    }
    program_free(&p);
}
END_TEST

/* Mistakes are found as in every order, here that nobody ever arrives. */
START_TEST(a_deadlock_is_reported)
{
    program p;
    program_load(&p, "module {target = sm_90a}\n"
                     "func @sig(%X: tensor<f32[8]>) {\n"
                     "  return\n"
                     "}\n"
                     "func @f(%x: ptr<f32>) {block = 32, smem_bytes = 8, grid = [1], "
                     "params = [[pointer, X]]} {\n"
                     "  %bar = nvvm.smem_base : i32\n"
                     "  %zero = arith.const {value = 0} : i32\n"
                     "  %one = arith.const {value = 1} : i32\n"
                     "  %lane = nvvm.elect : i1\n"
                     "  scf.if %lane {\n"
                     "    nvvm.mbarrier.init %bar, %one\n"
                     "  }\n"
                     "  nvvm.warp.sync\n"
                     "  nvvm.mbarrier.wait %bar, %zero\n"
                     "  return\n"
                     "}\n");
    double x[8] = {0};
    wanted w = {.cta = 0};
    tcc_interp_options o = {
        .signature = p.ir->first, .order = TCC_ORDER_TIMED, .timeline = {.fn = look, .user = &w}};
    ck_assert_int_eq(tcc_interp_run(p.ir->last, &o, (double *[]){x}, p.arena, &p.diag),
                     TCC_ERR_INTERNAL);
    ck_assert_str_eq(p.said, "14:3: deadlock: every thread waits");
    ck_assert_uint_eq(w.looks, 0);
    program_free(&p);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, units_work_on_one_thing_at_a_time);
    tcase_add_test(t, a_stage_is_filled_and_used_in_turn);
    tcase_add_test(t, waits_of_a_warp_follow_each_other_within_its_parts);
    tcase_add_test(t, a_deeper_pipeline_takes_less_time);
    tcase_add_test(t, a_timeline_is_the_same_every_time);
    tcase_add_test(t, nothing_is_shown_of_a_cta_that_is_not_there);
    tcase_add_test(t, a_multicast_is_transferred_once_and_lands_in_every_cta);
    tcase_add_test(t, a_deadlock_is_reported);
}

Suite *SUITE(void)
{
    return suite_of("interp_timeline", add);
}

/* Timelines from the stamps of a GPU, which are made up here.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/replay.h"
#include "ir/stamps.h"
#include "tests/unit/interp/program.h"

/* A producer, warp 0, that fills two stages of one iteration each in turn, and a warpgroup that multiplies. */
static const char text[] =
    "module {target = sm_90a}\n"
    "func @f(%A: tensormap, %acc: vec<f32[8]>, %stamps: ptr<i32>) {timeline = 3, block = 160, dims = [], roles = [], args = [], "
    "params = [[tensor_map, A, [64, 16], [[64]], [64, 8], 128, f16], [pointer, acc], [pointer, stamps]]} {\n"
    "  nvvm.stamps %stamps {cta = 3}\n"
    "  %bar = arith.const {value = 2048} : i32\n"
    "  %zero = arith.const {value = 0} : i32\n"
    "  %desc = arith.const {value = 0} : i64\n"
    "  %yes = arith.const {value = 1} : i1\n"
    "  nvvm.stamp %zero {id = 1, time = 1}\n"
    "  nvvm.stamp %zero {id = 2}\n"
    "  %smem = nvvm.smem_base : i32\n"
    "  nvvm.stamp %bar {id = 3}\n"
    "  nvvm.mbarrier.wait %bar, %zero loc(4:1)\n"
    "  nvvm.stamp %bar {id = 4, after = 1}\n"
    "  nvvm.stamp %bar {id = 5}\n"
    "  nvvm.tma.load %smem, %A, %bar, %zero, %zero loc(5:1)\n"
    "  nvvm.wgmma.fence\n"
    "  %r = nvvm.wgmma %acc, %desc, %desc, %yes {n = 16, type = f16, trans_a = 0, trans_b = 0} : vec<f32[8]>\n"
    "  nvvm.wgmma.commit_group\n"
    "  nvvm.stamp %zero {id = 6, after = 1}\n"
    "  %w = nvvm.wgmma.wait_group %r {pending = 0} : vec<f32[8]>\n"
    "  nvvm.stamp %zero {id = 7, after = 1}\n"
    "  nvvm.stamp %zero {id = 8, time = 1}\n"
    "  nvvm.stamp %zero {id = 9}\n"
    "  return\n"
    "}\n";

enum { WARPS = 5, FULL = 512, EMPTY = 768 };

typedef struct run {
    program p;
    uint32_t *words;
    size_t bytes, n[WARPS];
} run;

static run *begin(void)
{
    run *r = calloc(1, sizeof *r);
    program_load(&r->p, text);
    r->bytes = (size_t)WARPS * TCC_STAMPS_OF_WARP * TCC_STAMP_BYTES;
    r->words = calloc(1, r->bytes);
    return r;
}

static void add(run *r, unsigned warp, uint32_t id, uint32_t barrier, uint32_t clock)
{
    uint32_t *at = &r->words[(warp * TCC_STAMPS_OF_WARP + r->n[warp]++) * TCC_STAMP_WORDS];
    at[0] = barrier * TCC_STAMP_IDS + id;
    at[1] = clock;
}

/* The first clock is about to overflow. */
static uint32_t cycle(uint32_t n)
{
    return UINT32_MAX - 99 + n;
}

static void begin_warp(run *r, unsigned warp, uint32_t at)
{
    add(r, warp, 1, 0, 5000 + at);
    add(r, warp, 2, 0, cycle(at));
}

static void end_warp(run *r, unsigned warp, uint32_t at)
{
    add(r, warp, 8, 0, 5000 + at);
    add(r, warp, 9, 0, cycle(at));
}

/* What the GPU would leave of two iterations of one stage. */
static run *fill(void)
{
    run *r = begin();
    begin_warp(r, 0, 10);
    for (uint32_t i = 0; i < 2; i++) {
        add(r, 0, 3, EMPTY, cycle(20 + 500 * i));
        add(r, 0, 4, EMPTY, cycle(50 + 500 * i));
        add(r, 0, 5, FULL, cycle(60 + 500 * i));
    }
    end_warp(r, 0, 700);
    for (unsigned w = 1; w < WARPS; w++) {
        begin_warp(r, w, 0);
        for (uint32_t i = 0; i < 2; i++) {
            add(r, w, 3, FULL, cycle(30 + 600 * i));
            add(r, w, 4, FULL, cycle(300 + 500 * i + w));
            add(r, w, 6, 0, cycle(310 + 500 * i + w));
            add(r, w, 7, 0, cycle(350 + 500 * i + w));
        }
        end_warp(r, w, 900 + w);
    }
    return r;
}

static const tcc_timeline *replay(run *r)
{
    return tcc_replay(r->p.ir->first, r->words, r->bytes, r->p.arena, &r->p.diag);
}

static void end(run *r)
{
    tcc_arena_destroy(r->p.arena);
    free(r->words);
    free(r);
}

START_TEST(waits_and_ends_are_where_the_stamps_are)
{
    run *r = fill();
    const tcc_timeline *t = replay(r);
    ck_assert_msg(t != NULL, "%s", r->p.said);
    ck_assert(t->measured && t->cta == 3 && t->n_warps == WARPS);
    ck_assert_uint_eq(t->cycles, 904);
    ck_assert(t->ns > 903 && t->ns < 905);
    size_t of_producer = 0;
    for (size_t i = 0; i < t->waits.len; i++) {
        const tcc_timed_wait *w = &t->waits.data[i];
        if (w->warp)
            continue;
        ck_assert(w->kind == TCC_WAIT_MBARRIER && w->begin == 20 + 500 * of_producer && w->end == 50 + 500 * of_producer);
        ck_assert(t->barriers.data[w->which].address == EMPTY && w->loc.line == 4);
        of_producer++;
    }
    ck_assert_uint_eq(of_producer, 2);
    end(r);
}
END_TEST

START_TEST(fills_of_a_stage_end_when_the_first_warp_has_seen_them)
{
    run *r = fill();
    const tcc_timeline *t = replay(r);
    ck_assert_msg(t != NULL, "%s", r->p.said);
    ck_assert_uint_eq(t->copies.len, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const tcc_timed_copy *c = &t->copies.data[i];
        ck_assert(c->load && c->use.fill == i && c->issue == 60 + 500 * i && c->end == 301 + 500 * i);
        ck_assert(c->bytes == 64 * 8 * 2 && !strcmp(c->tensor, "A") && c->loc.line == 5);
        const tcc_timed_barrier *b = &t->barriers.data[c->use.barrier];
        ck_assert(b->of_copies && b->address == FULL && b->empty == EMPTY && b->fills == 2);
    }
    end(r);
}
END_TEST

START_TEST(mmas_of_a_group_end_with_the_wait_for_them)
{
    run *r = fill();
    const tcc_timeline *t = replay(r);
    ck_assert_msg(t != NULL, "%s", r->p.said);
    size_t n = 0;
    for (size_t i = 0; i < t->mmas.len; i++) { /* of warp 4, which leads its warpgroup */
        const tcc_timed_mma *m = &t->mmas.data[i];
        if (m->group != 1)
            continue;
        ck_assert(m->n == 16 && m->begin == 314 + 500 * n && m->end == 354 + 500 * n && m->use.fill == n);
        n++;
    }
    ck_assert_uint_eq(n, 2);
    end(r);
}
END_TEST

START_TEST(both_timelines_are_processes_of_one_trace)
{
    run *r = fill();
    tcc_timeline model = {.kernel = "f", .cta = 3, .cycles = 7};
    tcc_str beside = {0}, both = {0};
    tcc_timeline_print(&beside, &model, NULL);
    tcc_timeline_print(&both, replay(r), beside.data);
    ck_assert_ptr_nonnull(strstr(both.data, "\"f, CTA 3, measured\""));
    ck_assert_ptr_nonnull(strstr(both.data, "\"pid\": 1"));
    ck_assert_ptr_nonnull(strstr(both.data, "\"f, CTA 3\""));
    ck_assert_ptr_null(strstr(strstr(both.data, "traceEvents") + 1, "traceEvents"));
    tcc_str_free(&beside);
    tcc_str_free(&both);
    end(r);
}
END_TEST

static void refuse(run *r, const char *why)
{
    ck_assert_ptr_null(replay(r));
    ck_assert_msg(strstr(r->p.said, why) != NULL, "%s", r->p.said);
    end(r);
}

START_TEST(what_is_not_a_whole_recording_is_refused)
{
    refuse(begin(), "the launch had no CTA of the number that is recorded");
    run *r = fill();
    r->n[2]--;
    add(r, 2, 77, 0, 0); /* an id that no stamp has */
    refuse(r, "waits more often than there is room to record");
    r = fill();
    r->bytes -= 8;
    refuse(r, "its workspace is not all there");
    r = fill();
    while (r->n[1] < TCC_STAMPS_OF_WARP)
        add(r, 1, 3, FULL, 0);
    refuse(r, "waits more often than there is room to record");
}
END_TEST

START_TEST(an_entry_without_stamps_is_refused)
{
    run *r = begin();
    tcc_arena_destroy(r->p.arena);
    program_load(&r->p, "module {target = sm_90a}\nfunc @f(%A: tensormap) {block = 32, args = []} {\n  return\n}\n");
    refuse(r, "it was not compiled for a timeline");
    r = begin(); /* nor has one without threads */
    tcc_attr_remove(&r->p.ir->first->attrs, "block");
    refuse(r, "it was not compiled for a timeline");
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, waits_and_ends_are_where_the_stamps_are);
    tcase_add_test(t, fills_of_a_stage_end_when_the_first_warp_has_seen_them);
    tcase_add_test(t, mmas_of_a_group_end_with_the_wait_for_them);
    tcase_add_test(t, both_timelines_are_processes_of_one_trace);
    tcase_add_test(t, what_is_not_a_whole_recording_is_refused);
    tcase_add_test(t, an_entry_without_stamps_is_refused);
}

Suite *SUITE(void)
{
    return suite_of("interp_replay", add_tests);
}

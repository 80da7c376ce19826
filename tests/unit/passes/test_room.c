/* That the shared memory which choose-schedule reads off tiles is what allocate-shared gives to their buffers.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/frontend.h"
#include "ir/shared.h"
#include "passes/passes.h"
#include "passes/room.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/str.h"
#include "tests/unit/suite.h"

/* What the first variant of a kernel has at its end, and what its tiles were counted to take; false if the schedule is
 * refused. */
static bool compare(const char *target, const char *kernel, const char *schedule, int64_t *end, int64_t *counted)
{
    const char *to_places = strstr(tcc_pipeline_to_async, "choose-pipeline");
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag silent = {0};
    tcc_str text = {0};
    tcc_str_printf(&text, "%s\nschedule f for %s { %s }\n", kernel, target, schedule);
    tcc_ir *ir = tcc_frontend(arena, tcc_str_text(&text), text.len, target, NULL, 0, &silent);
    ck_assert_ptr_nonnull(ir);
    char *to_layout = tcc_arena_printf(arena, "%.*s", (int)(to_places - 1 - tcc_pipeline_to_async), tcc_pipeline_to_async);
    bool can = !tcc_run_passes(ir, to_layout, NULL, &silent);
    if (can) {
        tcc_func *f = tcc_func_find(ir, "f");
        tcc_schedule s = tcc_schedule_of(f);
        tcc_room r = tcc_room_of(f, &s, arena);
        int64_t results = 0;
        for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
            if (op->code == TCC_OP_tile_store && strcmp(tcc_attr_str(&op->attrs, "copy", ""), "interleaved"))
                results += tcc_staged_bytes(op, &s);
        int64_t stages = s.stages * r.stage + r.own, over = results > stages ? results - stages : 0;
        *counted = tcc_room_taken(&r, s.stages) + (s.persistent ? results : over);
        ck_assert(!tcc_run_passes(ir, to_places, NULL, &silent));
        *end = tcc_shared_end(tcc_func_find(ir, "f"));
    }
    tcc_str_free(&text);
    tcc_arena_destroy(arena);
    return can;
}

#define MN "(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }"

static const struct {
    const char *target, *kernel, *schedule;
    bool exact; /* else it may take less */
} cases[] = {
    {"sm_90a", "kernel f" MN, "tile m 128, n 256, k 64; stages 4;", true},
    {"sm_90a", "kernel f" MN, "tile m 64, n 8, k 16; stages 3;", true},
    {"sm_90a", "kernel f" MN, "tile m 128, n 192; persistent static;", true},
    {"sm_90a", "kernel f" MN, "tile m 128, n 128; persistent static; consumers pingpong;", true},
    {"sm_90a", "kernel f" MN, "tile m 128, n 128; stages 4; persistent dynamic;", true},
    {"sm_90a", "kernel f" MN, "tile m 128, n 128; stages 2; cluster k 2;", true},
    {"sm_90a", "kernel f(A: f16[M, K], B: f16[N, K], D: f16[N, K]) -> (C: f16[M, N])\n"
               "{ C[m, n] = (sum(k) A[m, k] * B[n, k]) * (sum(k) A[m, k] * D[n, k]); }",
     "tile m 128, n 96; stages 3;", true},
    {"sm_90a", "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * exp(B[n, k]); }",
     "tile m 128, n 128; stages 3; operands in_order;", true},
    {"sm_90a", "kernel f(A: i8[M, K], B: f16[N, K]) -> (C: f32[M, N]) { C[m, n] = sum(k) f16(A[m, k]) * B[n, k]; }",
     "tile m 128, n 128; stages 3;", true},
    {"sm_80", "kernel f" MN, "tile m 128, n 128; stages 4;", true},
    {"sm_80", "kernel f(A: f32[M, K], B: f32[N, K]) -> (C: f32[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }",
     "tile m 64, n 64; instr fma; stages 2;", true},
    {"sm_75", "kernel f" MN, "tile m 64, n 64; stages 2;", true},
    {"sm_70", "kernel f" MN, "tile m 64, n 64; stages 2;", true},
    {"sm_75", "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * exp(B[n, k]); }",
     "tile m 64, n 64; stages 2;", false},
    {"gfx1100", "kernel f" MN, "tile m 128, n 64;", true},
    {"gfx1201", "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }",
     "tile m 64, n 64;", true},
    {"gfx1100", "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * exp(B[n, k]); }",
     "tile m 64, n 64;", true},
};

START_TEST(tiles_take_what_is_allocated)
{
    int64_t end, counted;
    ck_assert(compare(cases[_i].target, cases[_i].kernel, cases[_i].schedule, &end, &counted));
    if (cases[_i].exact ? counted != end : counted < end || counted > 2 * end)
        ck_abort_msg("%s, %s, %s: %lld bytes, but counted as %lld", cases[_i].target, cases[_i].kernel,
                     cases[_i].schedule, (long long)end, (long long)counted);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("room");
    TCase *c = tcase_create("room");
    tcase_add_loop_test(c, tiles_take_what_is_allocated, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(s, c);
    return s;
}

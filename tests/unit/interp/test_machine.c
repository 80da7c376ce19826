/* The target level, op by op: what a warp's lanes compute, and which mistakes are reported.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/interp/program.h"

enum { N = 256, SEEDS = 10 };

/* Every kernel here has X and Y, of N elements, one value of each thread's number and lane, and
 * whatever its body adds. */
static const char signature[] = "func @sig(%X: tensor<f32[256]>, %Y: tensor<f32[256]>) {\n"
                                "  return\n}\n";
static const char head[] = "  %t = nvvm.tid : i32\n"
                           "  %smem = nvvm.smem_base : i32\n"
                           "  %c0 = arith.const {value = 0} : i32\n"
                           "  %c1 = arith.const {value = 1} : i32\n"
                           "  %c4 = arith.const {value = 4} : i32\n"
                           "  %c5 = arith.const {value = 5} : i32\n"
                           "  %c8 = arith.const {value = 8} : i32\n"
                           "  %c31 = arith.const {value = 31} : i32\n"
                           "  %c64 = arith.const {value = 64} : i32\n"
                           "  %yes = arith.const {value = 1} : i1\n"
                           "  %lane = arith.and %t, %c31 : i32\n"
                           "  %warp = arith.shr %t, %c5 : i32\n"
                           "  %first = arith.cmp %t, %c0 {pred = eq} : i1\n"
                           "  %of_first = arith.cmp %warp, %c0 {pred = eq} : i1\n"
                           "  %o = arith.cast %t : i64\n"
                           "  %t4 = arith.mul %t, %c4 : i32\n"
                           "  %mine = arith.add %smem, %t4 : i32\n";

typedef struct result {
    tcc_status status;
    double y[N];
    char said[1024];
} result;

static result run_block(int block, int ctas, const char *body, uint64_t seed)
{
    char text[8192];
    snprintf(text, sizeof text,
             "%sfunc @f(%%x: ptr<f32>, %%y: ptr<f32>) {block = %d, smem_bytes = 4096, "
             "grid = [%d], params = [[pointer, X], [pointer, Y]], "
             "requires = [[align, X, 8]]} {\n%s%s  return\n}\n",
             signature, block, ctas, head, body);
    program p;
    program_load(&p, text);
    result r;
    double x[N];
    for (int i = 0; i < N; i++) {
        x[i] = i + 0.5;
        r.y[i] = -1;
    }
    tcc_interp_options o = {.signature = p.ir->first, .seed = seed};
    r.status = tcc_interp_run(tcc_func_find(p.ir, "f"), &o, (double *[]){x, r.y}, p.arena, &p.diag);
    memcpy(r.said, p.said, sizeof r.said);
    program_free(&p);
    return r;
}

static result run(const char *body)
{
    return run_block(64, 1, body, 0);
}

/* ---- what is computed -------------------------------------------------------------------- */

#define LOAD "  %v = nvvm.ld.global %x, %o, %yes : vec<f32[1]>\n"
#define STORE "  nvvm.st.global %y, %o, %yes, %r\n"

START_TEST(lanes_compute_side_by_side)
{
    result r = run(LOAD "  %e = vec.extract %v {offset = 0} : f32\n"
                        "  %f = arith.cast %lane : f32\n"
                        "  %s = arith.mul %e, %f : f32\n"
                        "  %r = vec.splat %s : vec<f32[1]>\n" STORE);
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(r.y[i], i < 64 ? (i + 0.5) * (i % 32) : -1);
}
END_TEST

START_TEST(every_cta_has_its_number)
{
    result r = run_block(64, 4,
                         "  %b = nvvm.ctaid : i32\n"
                         "  %at = arith.mul %b, %c64 : i32\n"
                         "  %to = arith.add %at, %t : i32\n"
                         "  %to64 = arith.cast %to : i64\n"
                         "  %v = nvvm.ld.global %x, %to64, %yes : vec<f32[1]>\n"
                         "  nvvm.st.global %y, %to64, %yes, %v\n",
                         1);
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(r.y[i], i + 0.5);
}
END_TEST

START_TEST(predicates_and_displacements)
{
    result r = run("  %far = arith.const {value = 1000} : i64\n"
                   "  %low = arith.cmp %lane, %c8 {pred = lt} : i1\n"
                   "  %at = arith.select %low, %o, %far : i64\n"
                   "  %v = nvvm.ld.global %x, %at, %low {disp = 3} : vec<f32[1]>\n"
                   "  nvvm.st.global %y, %at, %low, %v {disp = 100}\n"
                   "  nvvm.st.global %y, %o, %yes, %v\n");
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 64; i++) {
        ck_assert_double_eq(r.y[i], i % 32 < 8 ? i + 3.5 : 0);
        ck_assert_double_eq(r.y[100 + i], i % 32 < 8 ? i + 3.5 : -1);
    }
}
END_TEST

START_TEST(branches_run_under_a_mask)
{
    result r = run(LOAD "  %low = arith.cmp %lane, %c8 {pred = lt} : i1\n"
                        "  %r = scf.if %low : vec<f32[1]> {\n"
                        "    %a = arith.neg %v : vec<f32[1]>\n"
                        "    scf.yield %a\n"
                        "  } {\n"
                        "    %b = arith.add %v, %v : vec<f32[1]>\n"
                        "    scf.yield %b\n"
                        "  }\n" STORE);
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq(r.y[i], i % 32 < 8 ? -(i + 0.5) : 2 * i + 1);
}
END_TEST

/* Each lane makes as many iterations as its number says, none in lane 0. */
START_TEST(loops_end_lane_by_lane)
{
    result r = run(LOAD "  %r = scf.for %c0, %lane, %c1, %v : vec<f32[1]> {\n"
                        "  ^(%i: i32, %acc: vec<f32[1]>):\n"
                        "    %f = arith.cast %i : f32\n"
                        "    %s = vec.splat %f : vec<f32[1]>\n"
                        "    %n = arith.add %acc, %s : vec<f32[1]>\n"
                        "    scf.yield %n\n"
                        "  }\n" STORE);
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq(r.y[i], i + 0.5 + (i % 32) * (i % 32 - 1) / 2);
}
END_TEST

START_TEST(carried_values_are_exchanged_at_once)
{
    result r = run(LOAD "  %w = arith.neg %v : vec<f32[1]>\n"
                        "  %r, %q = scf.for %c0, %c5, %c1, %v, %w : vec<f32[1]>, vec<f32[1]> {\n"
                        "  ^(%i: i32, %a: vec<f32[1]>, %b: vec<f32[1]>):\n"
                        "    scf.yield %b, %a\n"
                        "  }\n" STORE);
    ck_assert_msg(!r.status, "%s", r.said);
    ck_assert_double_eq(r.y[7], -7.5);
}
END_TEST

START_TEST(vecs_are_put_together_and_taken_apart)
{
    result r = run("  %even = arith.add %t, %t : i32\n"
                   "  %e64 = arith.cast %even : i64\n"
                   "  %v = nvvm.ld.global %x, %e64, %yes {align = 8} : vec<f32[2]>\n"
                   "  %a = vec.extract %v {offset = 1} : f32\n"
                   "  %b = vec.slice %v {offset = 0} : vec<f32[1]>\n"
                   "  %p = vec.pack %a, %b, %v : vec<f32[4]>\n"
                   "  %h = arith.cast %p : vec<f16[4]>\n"
                   "  %w = vec.bitcast %h : vec<i32[2]>\n"
                   "  %i = vec.extract %w {offset = 0} : i32\n"
                   "  %s = vec.splat %i : vec<i32[1]>\n"
                   "  %g = vec.bitcast %s : vec<f16[2]>\n"
                   "  %r = arith.cast %g : vec<f32[2]>\n"
                   "  nvvm.st.global %y, %e64, %yes, %r\n");
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 128; i++) /* neighbours have changed places */
        ck_assert_double_eq(r.y[i], (i ^ 1) + 0.5);
}
END_TEST

START_TEST(one_lane_is_elected_and_lane_0_speaks_for_all)
{
    result r = run("  %u = nvvm.uniform %t : i32\n"
                   "  %f = arith.cast %u : f32\n"
                   "  %r = vec.splat %f : vec<f32[1]>\n"
                   "  %e = nvvm.elect : i1\n"
                   "  scf.if %e {\n"
                   "    nvvm.st.global %y, %o, %yes, %r\n"
                   "  }\n");
    ck_assert_msg(!r.status, "%s", r.said);
    int stored[2] = {0};
    for (int i = 0; i < 64; i++)
        if (r.y[i] != -1) {
            ck_assert_double_eq(r.y[i], i / 32 * 32);
            stored[i / 32]++;
        }
    ck_assert(stored[0] == 1 && stored[1] == 1);
}
END_TEST

#define EXCHANGE(between)                                                                          \
    LOAD "  nvvm.st.shared %mine, %v\n" between "  %c252 = arith.const {value = 252} : i32\n"      \
         "  %other = arith.sub %c252, %t4 : i32\n"                                                 \
         "  %from = arith.add %smem, %other : i32\n"                                               \
         "  %r = nvvm.ld.shared %from : vec<f32[1]>\n" STORE

/* Threads get each other's numbers, those of the last first. */
static void expect_exchange(const char *text, uint64_t seed)
{
    result r = run_block(64, 1, text, seed);
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq(r.y[i], 63.5 - i);
}

START_TEST(a_barrier_orders_shared_memory)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        expect_exchange(EXCHANGE("  nvvm.barrier %c0, %c64\n"), seed);
}
END_TEST

/* Its barrier orders what a CTA of its own does as well, unless the arrivals are relaxed. */
START_TEST(the_barrier_of_a_cluster_orders_shared_memory)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        expect_exchange(EXCHANGE("  nvvm.cluster.arrive\n  nvvm.cluster.wait\n"), seed);
        result r = run_block(64, 1, EXCHANGE("  nvvm.cluster.arrive {relaxed = 1}\n  nvvm.cluster.wait\n"), seed);
        ck_assert_int_eq(r.status, TCC_ERR_INTERNAL);
        ck_assert_msg(strstr(r.said, "may still be writing"), "%s", r.said);
    }
}
END_TEST

/* One warp hands over to the other, through the two phases of an mbarrier. */
static const char handover[] = "  scf.if %first {\n"
                               "    nvvm.mbarrier.init %bar, %c1\n"
                               "  }\n"
                               "  nvvm.barrier %c0, %c64\n"
                               "  scf.if %of_first {\n"
                               "    %v = nvvm.ld.global %x, %o, %yes : vec<f32[1]>\n"
                               "    nvvm.st.shared %mine, %v\n"
                               "    nvvm.warp.sync\n"
                               "    scf.if %first {\n"
                               "      nvvm.mbarrier.arrive %bar\n"
                               "    }\n"
                               "  } {\n"
                               "    nvvm.mbarrier.wait %bar, %c0\n"
                               "    %c128 = arith.const {value = 128} : i32\n"
                               "    %from = arith.sub %mine, %c128 : i32\n"
                               "    %w = nvvm.ld.shared %from : vec<f32[1]>\n"
                               "    nvvm.st.global %y, %o, %yes, %w\n"
                               "  }\n";

static const char *with_barrier(const char *body)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "  %%c2048 = arith.const {value = 2048} : i32\n"
             "  %%bar = arith.add %%smem, %%c2048 : i32\n%s",
             body);
    return text;
}

START_TEST(an_mbarrier_orders_shared_memory)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        result r = run_block(64, 1, with_barrier(handover), seed);
        ck_assert_msg(!r.status, "%s", r.said);
        for (int i = 32; i < 64; i++)
            ck_assert_double_eq(r.y[i], i - 32 + 0.5);
    }
}
END_TEST

/* Lane l gives matrix m the numbers 1000 m + 2 l and the next, and the address of a row. */
START_TEST(stmatrix_stores_four_matrices)
{
    result r = run("  %c2 = arith.const {value = 2} : i32\n"
                   "  %k = arith.const {value = 1000} : i32\n"
                   "  %a0 = arith.mul %lane, %c2 : i32\n"
                   "  %a1 = arith.add %a0, %k : i32\n"
                   "  %a2 = arith.add %a1, %k : i32\n"
                   "  %a3 = arith.add %a2, %k : i32\n"
                   "  %b0 = arith.add %a0, %c1 : i32\n"
                   "  %b1 = arith.add %a1, %c1 : i32\n"
                   "  %b2 = arith.add %a2, %c1 : i32\n"
                   "  %b3 = arith.add %a3, %c1 : i32\n"
                   "  %p = vec.pack %a0, %b0, %a1, %b1, %a2, %b2, %a3, %b3 : vec<i32[8]>\n"
                   "  %h = arith.cast %p : vec<f16[8]>\n"
                   "  %w = vec.bitcast %h : vec<i32[4]>\n"
                   "  %c16 = arith.const {value = 16} : i32\n"
                   "  %row = arith.mul %t, %c16 : i32\n"
                   "  %at = arith.add %smem, %row : i32\n"
                   "  nvvm.stmatrix %at, %w\n"
                   "  nvvm.barrier %c0, %c64\n"
                   "  %half = arith.mul %t, %c4 : i32\n"
                   "  %from = arith.add %smem, %half : i32\n"
                   "  %g = nvvm.ld.shared %from : vec<f16[2]>\n"
                   "  %r = arith.cast %g : vec<f32[2]>\n"
                   "  %even = arith.add %t, %t : i32\n"
                   "  %e64 = arith.cast %even : i64\n"
                   "  nvvm.st.global %y, %e64, %yes, %r\n");
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 128; i++) /* 64 numbers a matrix, row by row */
        ck_assert_double_eq(r.y[i], i / 64 * 1000 + i % 64);
}
END_TEST

/* One matrix, of whose 64 numbers lane l has 2 l and the next; warp 0 alone. */
#define MATRIX(store, load)                                                                        \
    "  %b0 = arith.add %lane, %lane : i32\n"                                                       \
    "  %b1 = arith.add %b0, %c1 : i32\n"                                                           \
    "  %p = vec.pack %b0, %b1 : vec<i32[2]>\n"                                                     \
    "  %h = arith.cast %p : vec<f16[2]>\n"                                                         \
    "  %w = vec.bitcast %h : vec<i32[1]>\n"                                                        \
    "  %c16 = arith.const {value = 16} : i32\n"                                                    \
    "  %c7 = arith.const {value = 7} : i32\n"                                                      \
    "  %in_matrix = arith.and %lane, %c7 : i32\n"                                                  \
    "  %row = arith.mul %in_matrix, %c16 : i32\n"                                                  \
    "  %at = arith.add %smem, %row : i32\n"                                                        \
    "  scf.if %of_first {\n"                                                                       \
    "    nvvm.stmatrix %at, %w" store "\n"                                                         \
    "    nvvm.warp.sync\n"                                                                         \
    "    %x1 = nvvm.ldmatrix %at" load " : vec<i32[1]>\n"                                          \
    "    %g = vec.bitcast %x1 : vec<f16[2]>\n"                                                     \
    "    %r = arith.cast %g : vec<f32[2]>\n"                                                       \
    "    %e64 = arith.cast %b0 : i64\n"                                                            \
    "    nvvm.st.global %y, %e64, %yes, %r\n"                                                      \
    "  }\n"

START_TEST(ldmatrix_loads_what_stmatrix_stores)
{
    static const struct {
        const char *body;
        bool transposed;
    } cases[] = {{MATRIX("", ""), false},
                 {MATRIX(" {trans = 1}", ""), true},
                 {MATRIX("", " {trans = 1}"), true},
                 {MATRIX(" {trans = 1}", " {trans = 1}"), false}};
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        result r = run(cases[c].body);
        ck_assert_msg(!r.status, "%s", r.said);
        for (int i = 0; i < 64; i++)
            ck_assert_double_eq(r.y[i], cases[c].transposed ? i % 8 * 8 + i / 8 : i);
    }
}
END_TEST

/* Kind k of warp 0 goes to elements 32 k and on. */
START_TEST(shuffles_take_from_other_lanes)
{
    static const char body[] = "  %by = arith.const {value = 37} : i32\n" /* 5, modulo 32 */
                               "  %i = nvvm.shfl %lane, %by {kind = idx} : i32\n"
                               "  %b = nvvm.shfl %lane, %by {kind = bfly} : i32\n"
                               "  %u = nvvm.shfl %lane, %by {kind = up} : i32\n"
                               "  %d = nvvm.shfl %lane, %by {kind = down} : i32\n"
                               "  %p = vec.pack %i, %b, %u, %d : vec<i32[4]>\n"
                               "  %r = arith.cast %p : vec<f32[4]>\n"
                               "  %f64 = arith.cast %t4 : i64\n"
                               "  nvvm.st.global %y, %f64, %yes, %r\n";
    result r = run(body);
    ck_assert_msg(!r.status, "%s", r.said);
    for (int t = 0; t < 64; t++) {
        int l = t % 32;
        double want[] = {5, l ^ 5, l < 5 ? l : l - 5, l > 26 ? l : l + 5};
        for (int k = 0; k < 4; k++)
            ck_assert_double_eq(r.y[4 * t + k], want[k]);
    }
}
END_TEST

START_TEST(shuffles_add_up_a_warp)
{
#define ADD(from, to, by)                                                                          \
    "  %by" #by " = arith.const {value = " #by "} : i32\n  %o" to " = nvvm.shfl %" from            \
    ", %by" #by " {kind = bfly} : f32\n  %" to " = arith.add %" from ", %o" to " : f32\n"
    result r = run(LOAD "  %s0 = vec.extract %v {offset = 0} : f32\n" ADD("s0", "s1", 16)
                       ADD("s1", "s2", 8) ADD("s2", "s3", 4) ADD("s3", "s4", 2)
                           ADD("s4", "s5", 1) "  %r = vec.splat %s5 : vec<f32[1]>\n" STORE);
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq(r.y[i], i < 32 ? 512 : 1536);
}
END_TEST

/* More often than there can be barriers at a time, and then as memory. */
START_TEST(an_mbarrier_ends_and_begins_again)
{
    result r = run("  scf.if %first {\n"
                   "    %c100 = arith.const {value = 100} : i32\n"
                   "    scf.for %c0, %c100, %c1 {\n"
                   "    ^(%i: i32):\n"
                   "      nvvm.mbarrier.init %smem, %c1\n"
                   "      nvvm.mbarrier.arrive %smem\n"
                   "      nvvm.mbarrier.wait %smem, %c0\n"
                   "      nvvm.mbarrier.inval %smem\n"
                   "      scf.yield\n"
                   "    }\n"
                   "    %v = nvvm.ld.global %x, %o, %yes : vec<f32[1]>\n"
                   "    nvvm.st.shared %smem, %v\n"
                   "    %w = nvvm.ld.shared %smem : vec<f32[1]>\n"
                   "    nvvm.st.global %y, %o, %yes, %w\n"
                   "  }\n");
    ck_assert_msg(!r.status, "%s", r.said);
    ck_assert_double_eq(r.y[0], 0.5);
}
END_TEST

/* ---- what is reported -------------------------------------------------------------------- */

static const struct {
    const char *body, *says; /* or what is after a '|', if another warp is first */
} mistakes[] = {
    {"  %z = arith.div %t, %c0 : i32\n", "arith.div divides by zero"},
    {"  %z = arith.sub %t, %t : i32\n  scf.for %c0, %c4, %z {\n  ^(%i: i32):\n    scf.yield\n  }\n",
     "scf.for steps by 0"},
    {"  scf.for %c4, %c4, %c1 {at_least_once = 1} {\n  ^(%i: i32):\n    scf.yield\n  }\n",
     "scf.for is at_least_once and makes no iteration"},
    {"  %v = nvvm.ld.global %x, %o, %yes {disp = 200} : vec<f32[1]>\n",
     "elements 256 to 256 are not in 'X', which has 256"},
    {"  %v = nvvm.ld.global %x, %o, %yes {disp = -1} : vec<f32[1]>\n",
     "elements -1 to -1 are not in 'X'"},
    {"  %v = nvvm.ld.global %x, %o, %yes {disp = 9223372036854775807} : vec<f32[1]>\n",
     "elements -1 to -1 are not in 'X'"},
    {"  %v = nvvm.ld.global %x, %o, %yes {disp = -4611685949703716856} : vec<f32[1]>\n",
     "elements -1 to -1 are not in 'X'"},
    {"  %v = nvvm.ld.global %x, %o, %yes {align = 8} : vec<f32[2]>\n",
     "element 1 of 'X' is not aligned to 8 bytes"},
    {"  %z = arith.const {value = 0} : i64\n"
     "  %v = nvvm.ld.global %y, %z, %yes {align = 8} : vec<f32[2]>\n",
     "element 0 of 'Y' is not aligned to 8 bytes"},
    {LOAD "  %far = arith.const {value = 8192} : i32\n  nvvm.st.shared %far, %v\n",
     "4 bytes from byte 7168 on are not in the 4096 of shared memory"},
    {LOAD "  %odd = arith.add %mine, %c1 : i32\n  nvvm.st.shared %odd, %v\n",
     "shared address 1025 is not a multiple of 4"},
    {"  %v = nvvm.ld.shared %mine : vec<i32[1]>\n",
     "nvvm.ld.shared reads shared memory at byte 0 that was never written"},
    {"  %v = nvvm.ld.shared %mine : vec<f32[1]>\n  %r = arith.add %v, %v : vec<f32[1]>\n" STORE,
     "nvvm.st.global stores to element 0 of 'Y' what comes from shared memory that was never "
     "written"},
    {"  %v = nvvm.ld.shared %mine : vec<f32[1]>\n  %z = arith.const {value = 0.0} : vec<f32[1]>\n"
     "  %r = arith.max %v, %z : vec<f32[1]>\n" STORE,
     "nvvm.st.global stores to element 0 of 'Y' what comes from shared memory that was never "
     "written"},
    {"  %v = nvvm.ld.shared %mine : vec<f32[1]>\n  %n = arith.const {value = nan} : vec<f32[1]>\n"
     "  %r = arith.add %n, %v : vec<f32[1]>\n" STORE,
     "nvvm.st.global stores to element 0 of 'Y' what comes from shared memory that was never "
     "written"},
    {"  %v = vec.undef : vec<f32[1]>\n  %r = arith.add %v, %v : vec<f32[1]>\n",
     "arith.add reads registers that were never written"},
    {LOAD "  nvvm.st.shared %smem, %v\n", "nvvm.st.shared writes shared memory at byte 0"},
    {"  scf.if %first {\n    nvvm.barrier %c0, %c64\n  }\n",
     "nvvm.barrier in 1 of a warp's 32 lanes"},
    {"  scf.if %first {\n    %e = nvvm.elect : i1\n  }\n", "nvvm.elect in 1 of a warp's 32 lanes"},
    {"  %c96 = arith.const {value = 96} : i32\n  nvvm.barrier %c0, %c96\n", "deadlock"},
    {"  %c128 = arith.const {value = 128} : i32\n"
     "  %n = arith.select %of_first, %c64, %c128 : i32\n  nvvm.barrier %c1, %n\n",
     "barrier 1 is of "},
    {"  %n = arith.sub %c64, %c0 : i32\n  nvvm.barrier %n, %c64\n", "barrier 64 of 64 threads"},
    {"  nvvm.mbarrier.init %smem, %c1\n", "several lanes initialise one mbarrier"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c0\n  }\n", "an mbarrier of 0 arrivals"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c1\n"
     "    nvvm.mbarrier.init %smem, %c1\n  }\n",
     "the mbarrier at byte 0 is initialised twice"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %mine, %c1\n    %b = arith.add %mine, %c4 : i32\n"
     "    nvvm.mbarrier.arrive %b\n  }\n",
     "there is no mbarrier at byte 4"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c1\n"
     "    nvvm.mbarrier.wait %smem, %c4\n  }\n",
     "waits for parity 4"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c1\n"
     "    nvvm.mbarrier.wait %smem, %c0\n  }\n",
     "deadlock"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c1\n"
     "    nvvm.mbarrier.arrive.expect_tx %smem, %c64\n"
     "    nvvm.mbarrier.arrive %smem\n  }\n",
     "gets more than 1 arrivals in a phase"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c1\n  }\n  nvvm.barrier %c0, %c64\n"
     "  nvvm.mbarrier.arrive %smem\n",
     "at the mbarrier at byte 0 in several phases, of 1 arrivals each"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c1\n"
     "    nvvm.mbarrier.arrive.expect_tx %smem, %c64\n  }\n",
     "the CTA ends while the mbarrier at byte 0 expects 64 bytes that no copy transfers"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c4\n    nvvm.mbarrier.arrive %smem\n"
     "    nvvm.mbarrier.inval %smem\n  }\n",
     "the mbarrier at byte 0 is invalidated in the middle of phase 0: 3 arrivals and 0 bytes are "
     "missing"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c1\n    nvvm.mbarrier.arrive %smem\n"
     "    nvvm.mbarrier.inval %smem\n  }\n",
     "warp 0: the mbarrier at byte 0 is invalidated and warp 0 has not waited for phase 0"},
    {"  scf.if %first {\n    nvvm.mbarrier.init %smem, %c1\n  }\n  nvvm.barrier %c0, %c64\n"
     "  nvvm.mbarrier.wait %smem, %c1\n  nvvm.warp.sync\n"
     "  scf.if %first {\n    nvvm.mbarrier.inval %smem\n  }\n",
     "is invalidated while warp 1 may still be using it|there is no mbarrier at byte 0"},
    {"  scf.if %first {\n    %a = nvvm.shfl %t, %c1 {kind = idx} : i32\n  }\n",
     "nvvm.shfl in 1 of a warp's 32 lanes"},
    {"  %w = nvvm.ldmatrix %smem : vec<i32[1]>\n",
     "nvvm.ldmatrix reads shared memory at byte 0 that was never written"},
    {"  nvvm.cluster.wait\n", "nvvm.cluster.wait with no nvvm.cluster.arrive before"},
    {"  nvvm.cluster.arrive\n  nvvm.cluster.arrive\n",
     "nvvm.cluster.arrive for the second time, with no nvvm.cluster.wait between"},
    {LOAD
     "  scf.if %first {\n    nvvm.mbarrier.init %smem, %c1\n    nvvm.st.shared %smem, %v\n  }\n",
     "where an mbarrier is"},
    {"  nvvm.setmaxnreg {count = 256, action = dec}\n", "setmaxnreg.dec to 256 from 248 registers"},
    {"  scf.if %of_first {\n    nvvm.setmaxnreg {count = 40, action = dec}\n  }\n",
     "warp 1 ends without this, which others of its warpgroup ran"},
    {"  scf.if %of_first {\n    nvvm.setmaxnreg {count = 40, action = dec}\n  } {\n"
     "    nvvm.setmaxnreg {count = 48, action = dec}\n  }\n",
     "nvvm.setmaxnreg that is not its warpgroup's"},
    {"  nvvm.setmaxnreg {count = 40, action = inc}\n", "setmaxnreg.inc to 40 from 248 registers"},
    {"  nvvm.setmaxnreg {count = 256, action = inc}\n", "deadlock"},
    {"  %d = arith.const {value = 64} : i64\n  %w64 = arith.cast %warp : i64\n"
     "  %a = arith.add %d, %w64 : i64\n  %u = arith.const {value = 0.0} : vec<f32[4]>\n  nvvm.wgmma.fence\n"
     "  %p = nvvm.wgmma %u, %a, %d, %first {n = 8, type = f16, trans_a = 0, trans_b = 0} : "
     "vec<f32[4]>\n",
     "give different scale_d"},
    {"  %no = arith.const {value = 0} : i1\n  %d = arith.const {value = 64} : i64\n"
     "  %w64 = arith.cast %warp : i64\n  %a = arith.add %d, %w64 : i64\n"
     "  %u = arith.const {value = 0.0} : vec<f32[4]>\n  nvvm.wgmma.fence\n"
     "  %p = nvvm.wgmma %u, %a, %d, %no {n = 8, type = f16, trans_a = 0, trans_b = 0} : "
     "vec<f32[4]>\n",
     "issues a different MMA from the rest of its warpgroup"},
    {"  %no = arith.const {value = 0} : i1\n  %d = arith.const {value = 64} : i64\n"
     "  %u = arith.const {value = 0.0} : vec<f32[4]>\n  nvvm.wgmma.fence\n"
     "  %p = nvvm.wgmma %u, %d, %d, %no {n = 8, type = f16, trans_a = 0, trans_b = 0} : "
     "vec<f32[4]>\n  nvvm.wgmma.commit_group\n",
     "ends before its MMAs"},
};

START_TEST(mistakes_are_reported)
{
    result r = run(mistakes[_i].body);
    ck_assert_msg(r.status == TCC_ERR_INTERNAL, "status %d for:\n%s", r.status, mistakes[_i].body);
    const char * or = strchr(mistakes[_i].says, '|');
    char says[128];
    snprintf(says, sizeof says, "%.*s", (int)strcspn(mistakes[_i].says, "|"), mistakes[_i].says);
    ck_assert_msg(strstr(r.said, says) || (or &&strstr(r.said, or +1)), "%s\nfor:\n%s", r.said,
                  mistakes[_i].body);
}
END_TEST

START_TEST(the_order_of_warps_does_not_hide_a_race)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        result r = run_block(64, 1, EXCHANGE(""), seed);
        ck_assert_int_eq(r.status, TCC_ERR_INTERNAL);
    }
}
END_TEST

#define PAIRS                                                                                      \
    "  %two = arith.const {value = 2} : i32\n"                                                     \
    "  %early = arith.cmp %warp, %two {pred = lt} : i1\n"                                          \
    "  %pair = arith.div %warp, %two : i32\n"                                                      \
    "  %c128 = arith.const {value = 128} : i32\n"

/* Four warps come to a barrier of two: which of them meet is chance, whatever they do there. */
START_TEST(the_order_of_warps_does_not_hide_who_meets)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        result r = run_block(128, 1, PAIRS "  nvvm.barrier %c1, %c64\n", seed);
        ck_assert_int_eq(r.status, TCC_ERR_INTERNAL);
        ck_assert_msg(strstr(r.said, "may reach barrier 1 together with other warps than here"),
                      "%s", r.said);
    }
}
END_TEST

START_TEST(a_named_barrier_may_be_handed_on)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        result each = run_block(128, 1, PAIRS "  nvvm.barrier %pair, %c64\n", seed);
        ck_assert_msg(!each.status, "%s", each.said);
        result r = run_block(128, 1,
                             PAIRS "  scf.if %early {\n    nvvm.barrier %c1, %c64\n  }\n"
                                   "  nvvm.barrier %c0, %c128\n"
                                   "  scf.if %early {\n"
                                   "  } {\n    nvvm.barrier %c1, %c64\n  }\n",
                             seed);
        ck_assert_msg(!r.status, "%s", r.said);
    }
}
END_TEST

/* ---- launches ----------------------------------------------------------------------------- */

static void check_launch(const char *attrs, tcc_status status, const char *says)
{
    char text[1024];
    snprintf(text, sizeof text,
             "func @sig(%%X: tensor<f16[M, K]>) {dims = [M, K]} {\n  return\n}\n"
             "func @f(%%x: %s) {%s} {\n  return\n}\n",
             strstr(attrs, "tensor_map") ? "tensormap" : "ptr<f16>", attrs);
    program p;
    program_load(&p, text);
    double x[6 * 10];
    tcc_interp_options o = {.signature = p.ir->first, .dims = (int64_t[]){6, 10}};
    tcc_status got =
        tcc_interp_run(tcc_func_find(p.ir, "f"), &o, (double *[]){x}, p.arena, &p.diag);
    ck_assert_msg(got == status && strstr(p.said, says), "%s gives %d: %s", attrs, got, p.said);
    program_free(&p);
}

#define LAUNCH "block = 32, smem_bytes = 0, grid = [($M + 3) / 4], "

START_TEST(launches_are_checked)
{
    static const struct {
        const char *attrs;
        tcc_status status;
        const char *says;
    } cases[] = {
        {LAUNCH "params = [[pointer, X]]", TCC_OK, ""},
        {LAUNCH "params = [[pointer, X]], requires = [[min, K, 11]]", TCC_ERR_NO_VARIANT,
         "K is 10, expected at least 11"},
        {LAUNCH "params = [[pointer, X]], requires = [[max, K, 9]]", TCC_ERR_NO_VARIANT,
         "K is 10, expected at most 9"},
        {LAUNCH "params = [[pointer, X]], requires = [[max, \"K.2\", 9]]", TCC_ERR_NO_VARIANT,
         "2 * K is 20, expected at most 9"},
        {LAUNCH "params = [[pointer, X]], requires = [[max, \"(K + M - 1)\", 9]]", TCC_ERR_NO_VARIANT,
         "K + M - 1 is"},
        {LAUNCH "params = [[pointer, X]], requires = [[pitch, [K], 2, 16]]", TCC_ERR_NO_VARIANT,
         "a pitch of 20 bytes, expected multiples of 16"},
        {LAUNCH "params = [[pointer, X]], requires = [[pitch, [K], 2, 4]]", TCC_OK, ""},
        {LAUNCH "params = [[pointer, Z]]", TCC_ERR_INTERNAL, "malformed entry in 'params'"},
        {LAUNCH "params = [[dim, K]]", TCC_ERR_INTERNAL, "parameter 0 is not the dim of 'K'"},
        {LAUNCH "params = [[scalar, X]]", TCC_ERR_INTERNAL, "parameter 0 is not the scalar of 'X'"},
        {LAUNCH "params = []", TCC_ERR_INTERNAL, "1 parameters and 0 entries in 'params'"},
        {"block = 48, smem_bytes = 0, grid = [($M + 3) / 4], params = [[pointer, X]]", TCC_ERR_INTERNAL,
         "a block of 48 threads"},
        {"block = 32, smem_bytes = 0, grid = [($Q + 3) / 4], params = [[pointer, X]]", TCC_ERR_INTERNAL,
         "'grid' names a dimension that the kernel does not have"},
        {"block = 32, smem_bytes = 0, grid = [$M * 2147483647], params = [[pointer, X]]", TCC_ERR_LIMIT,
         "a grid of more than 2147483647 CTAs"},
        {"block = 32, smem_bytes = 300000, grid = [($M + 3) / 4], params = [[pointer, X]]",
         TCC_ERR_INTERNAL, "300000 bytes of shared memory of at most 232448"},
        {LAUNCH "params = [[tensor_map, X, [K, M], [[K]], [8, 1], 0, f16]]", TCC_ERR_INTERNAL,
         "needs strides of multiples of 16 bytes: 20"},
        {LAUNCH "params = [[tensor_map, X, [K, M], [[8]], [8, 300], 0, f16]]", TCC_ERR_INTERNAL,
         "needs a box of 1 to 256 in each dimension: 300"},
        {LAUNCH "params = [[tensor_map, X, [K, M], [[8]], [8, 4], 32, f16]]", TCC_ERR_INTERNAL,
         "needs rows of its box as wide as its swizzle: 16"},
        {LAUNCH "params = [[tensor_map, X, [K, M], [[8]], [K, M], 0, f16]]", TCC_ERR_INTERNAL,
         "malformed tensor map in 'params'"},
        {LAUNCH "params = [[tensor_map, X, [K, M], [[8]], [256, 4], 512, f16]]", TCC_ERR_INTERNAL,
         "needs a swizzle of 0, 32, 64 or 128 bytes: 512"},
        {LAUNCH "params = [[tensor_map, X, [K, M], [[2147483647, 2147483647, 8]], [8, 4], 0, f16]]",
         TCC_ERR_INTERNAL, "needs strides of less than 2^40 bytes: -1"},
        {LAUNCH "params = [[tensor_map, X, [K, M], [[8]], [4, 4], 0, f16]]", TCC_ERR_INTERNAL,
         "needs rows of its box of multiples of 16 bytes: 8"},
        {LAUNCH "params = [[tensor_map, X, [K, M], [[8]], [8, 4], 0, f16]]", TCC_ERR_INTERNAL,
         "needs an address that is a multiple of 16 bytes: 2"},
        {LAUNCH "params = [[tensor_map, X, [K, M], [[8]], [8, 4], 0, f16]], "
                "requires = [[align, X, 16]]",
         TCC_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_launch(cases[i].attrs, cases[i].status, cases[i].says);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_test(t, lanes_compute_side_by_side);
    tcase_add_test(t, every_cta_has_its_number);
    tcase_add_test(t, predicates_and_displacements);
    tcase_add_test(t, branches_run_under_a_mask);
    tcase_add_test(t, loops_end_lane_by_lane);
    tcase_add_test(t, carried_values_are_exchanged_at_once);
    tcase_add_test(t, vecs_are_put_together_and_taken_apart);
    tcase_add_test(t, one_lane_is_elected_and_lane_0_speaks_for_all);
    tcase_add_test(t, a_barrier_orders_shared_memory);
    tcase_add_test(t, the_barrier_of_a_cluster_orders_shared_memory);
    tcase_add_test(t, an_mbarrier_orders_shared_memory);
    tcase_add_test(t, stmatrix_stores_four_matrices);
    tcase_add_test(t, ldmatrix_loads_what_stmatrix_stores);
    tcase_add_test(t, shuffles_take_from_other_lanes);
    tcase_add_test(t, shuffles_add_up_a_warp);
    tcase_add_test(t, an_mbarrier_ends_and_begins_again);
    tcase_add_loop_test(t, mistakes_are_reported, 0, sizeof mistakes / sizeof *mistakes);
    tcase_add_test(t, the_order_of_warps_does_not_hide_a_race);
    tcase_add_test(t, the_order_of_warps_does_not_hide_who_meets);
    tcase_add_test(t, a_named_barrier_may_be_handed_on);
    tcase_add_test(t, launches_are_checked);
}

Suite *SUITE(void)
{
    return suite_of("machine", add_tests);
}

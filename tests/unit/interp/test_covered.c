/* A proof has looked at all of a kernel: it says what it covered, and finds a mistake at the end of each block, which is
 * a canary. One that could not get there would find nothing wrong either.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"
#include "ir/signature.h"
#include "ir/target.h"
#include "passes/arith.h"
#include "tests/unit/interp/mutations.h"
#include "tests/unit/suite.h"

#define KERNEL(rest) "kernel f" rest "\n"
#define NT KERNEL("(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }")
#define NN KERNEL("(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }")
#define F32 KERNEL("(A: f32[M, K], B: f32[K, N]) -> (C: f32[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }")
#define ADDED                                                                                                          \
    KERNEL("(A: f16[M, K], B: f16[N, K], beta: f32, inout C: f32[M, N])\n"                                             \
           "{ C[m, n] = sum(k) A[m, k] * B[n, k] + beta * C[m, n]; }")
#define COMPUTED                                                                                                       \
    KERNEL("(A: f16[M, K], B: f16[N, K], s: f32[K]) -> (C: f32[M, N])\n"                                               \
           "{ C[m, n] = sum(k) relu(A[m, k]) * f16(B[n, k] * s[k]); }")
#define GATED                                                                                                          \
    KERNEL("(X: f16[M, K], W: f16[N, K], V: f16[N, K]) -> (C: f16[M, N])\n"                                            \
           "{ C[m, n] = silu(sum(k) X[m, k] * W[n, k]) * (sum(k) X[m, k] * V[n, k]); }")
#define POINTWISE KERNEL("(A: f16[M, N], b: f32[N]) -> (C: f16[M, N]) { C[m, n] = gelu(A[m, n] + b[n]); }")
#define VECTOR KERNEL("(A: f16[M, K], x: f16[K]) -> (y: f16[M]) { y[m] = sum(k) A[m, k] * x[k]; }")

/* Every way in which kernels are built: who copies, who computes which tiles, who shares what, how results are stored. */
static const struct {
    const char *target, *kernel, *schedule;
} structures[] = {
    {"sm_90a", NT, "tile m 64, n 8, k 16; stages 2; producer warp;"},
    {"sm_90a", NN, "tile m 128, n 32, k 16; stages 3; warpgroups 2; producer warpgroup;"},
    {"sm_90a", NN, "tile m 64, n 16, k 16; stages 3; producer none;"},
    {"sm_90a", NT, "tile m 64, n 16, k 16; stages 1; producer none; epilogue interleaved;"},
    {"sm_90a", NT, "tile m 64, n 8, k 16; stages 2; producer warp; epilogue words;"},
    {"sm_90a", NT, "tile m 64, n 48, k 16; stages 2; producer warp; epilogue tma; staging 16; persistent;"},
    {"sm_90a", NT, "tile m 64, n 64, k 16; stages 2; epilogue tma; staging 16; strips 4;"},
    {"sm_90a", NT, "tile m 64, n 8, k 16; stages 2; producer warp; persistent;"},
    {"sm_90a", NT, "tile m 64, n 8, k 16; stages 2; producer warp; persistent dynamic;"},
    {"sm_90a", NT, "tile m 64, n 8, k 16; stages 2; consumers pingpong; persistent;"},
    {"sm_90a", NT, "tile m 64, n 8, k 16; stages 2; consumers pingpong; persistent dynamic;"},
    {"sm_90a", NT, "tile m 64, n 8, k 16; stages 2; producer warp; cluster n 2;"},
    {"sm_90a", NT, "tile m 64, n 16, k 16; stages 2; producer warp; cluster m 2, n 2;"},
    {"sm_90a", NT, "tile m 64, n 16, k 16; stages 2; producer warp; cluster m 2; persistent;"},
    {"sm_90a", NT, "tile m 64, n 8, k 16; stages 2; consumers pingpong; persistent; cluster n 2;"},
    {"sm_90a", NT, "tile m 64, n 16, k 16; stages 2; producer warp; cluster n 2; persistent dynamic;"},
    {"sm_90a", NT, "tile m 64, n 32, k 32; stages 2; producer warp; cluster k 2;"},
    {"sm_90a", NT, "tile m 64, n 16, k 16; stages 2; producer warp; split 3;"},
    {"sm_90a", ADDED, "tile m 64, n 16, k 16; stages 2; producer warp;"},
    {"sm_90a", COMPUTED, "tile m 128, n 16, k 32; stages 2; warpgroups 2; producer warp;"},
    {"sm_90a", GATED, "tile m 64, n 16, k 16; stages 2; producer warp;"},
    {"sm_90a", POINTWISE, "tile m 4, n 128;"},
    {"sm_90a", VECTOR, "tile m 64, k 16;"},
    {"sm_80", NT, "tile m 32, n 16, k 16; stages 3; warps 2;"},
    {"sm_80", F32, "tile m 32, n 32, k 8; stages 3; warps 2; instr fma;"},
    {"sm_75", NT, "tile m 32, n 16, k 16; stages 2; warps 2;"},
    {"sm_70", NT, "tile m 32, n 16, k 16; stages 2; warps 2;"},
    {"gfx1100", NT, "tile m 64, n 32, k 32; waves 4;"},
    {"gfx1201", NN, "tile m 32, n 32, k 32; waves 2;"},
};

enum { STRUCTURES = sizeof structures / sizeof *structures, MANY = 32, MAX_SOURCE = 1024 };

/* Compiles a structure; gives those of its functions that have proofs of their own. */
static size_t open_structure(kernel *k, int i, tcc_func **funcs)
{
    const char *target = structures[i].target;
    char source[MAX_SOURCE];
    const uint8_t *seen[MANY];
    size_t sizes[MANY], n = 0;
    snprintf(source, sizeof source, "%sschedule f for %s { %s }\n", structures[i].kernel, target,
             structures[i].schedule);
    *k = (kernel){.arena = tcc_arena_create(NULL), .scratch = tcc_arena_create(NULL), .target = target};
    k->diag = (tcc_diag){.file = "test.tile", .fn = kernel_listen, .user = k};
    k->ir = kernel_parse(k, tcc_arena_strdup(k->arena, source));
    ck_assert_msg(!tcc_run_passes(k->ir, tcc_pipeline(tcc_target_of(k->ir)), NULL, &k->diag), "%s%s", source, k->said);
    for (tcc_func *f = k->ir->first; f; f = f->next) {
        size_t at = 0, size = 0;
        const uint8_t *bytes = tcc_p_write(tcc_p_open(f, k->arena, &k->diag), &size);
        while (bytes && at < n && !(seen[at] && sizes[at] == size && !memcmp(seen[at], bytes, size)))
            at++;
        if (bytes && at < n)
            continue;
        ck_assert_uint_lt(n, MANY);
        seen[n] = bytes;
        sizes[n] = size;
        funcs[n++] = f;
    }
    return n;
}

static tcc_status measure(kernel *k, const tcc_func *f, tcc_covered *covered)
{
    tcc_arena *scratch = tcc_arena_create(NULL);
    *k->said = 0;
    tcc_status status = tcc_protocol_measure(f, scratch, &k->diag, covered);
    tcc_arena_destroy(scratch);
    return status;
}

/* ---- mistakes -------------------------------------------------------------------------- */

/* A store past the end of shared memory, by whoever comes to the end of a block. */
static void put_canary(const tcc_func *f, tcc_block *block)
{
    enum { BYTES = 1 << 17 };
    bool amd = tcc_target_vendor(tcc_target_of(f->ir)) == TCC_VENDOR_AMD;
    bool ends = block->last && (block->last->code == TCC_OP_scf_yield || block->last->code == TCC_OP_func_return);
    tcc_builder b = ends ? tcc_builder_before(block->last) : tcc_builder_at_end(block);
    const tcc_type *i32 = tcc_type_scalar(f->ir, TCC_i32);
    tcc_value *base = amd ? TCC_EMIT(&b, amdgcn_lds_base, i32) : TCC_EMIT(&b, nvvm_smem_base, i32);
    tcc_value *at = TCC_EMIT(&b, arith_add, i32, base, tcc_build_int(&b, i32, BYTES));
    tcc_value *word = tcc_build_int(&b, tcc_type_sized(f->ir, TCC_KIND_vec, TCC_i32, 1, (const int64_t[]){1}), 0);
    tcc_op_create(&b, amd ? TCC_OP_amdgcn_ds_store : TCC_OP_nvvm_st_shared, 2, (tcc_value *[]){at, word}, 0, NULL);
}

/* A copy of a function to break. */
static tcc_func *copy_of(tcc_func *f)
{
    return tcc_func_clone(f, tcc_arena_printf(f->ir->arena, "%s__broken", f->name));
}

/* The nth block of a function, the body being the first; NULL: there are not so many. */
static tcc_block *block_at(tcc_func *f, size_t n)
{
    if (!n--)
        return f->body;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body)) {
        if (n < op->n_regions)
            return op->regions[n];
        n -= op->n_regions;
    }
    return NULL;
}

START_TEST(a_canary_at_the_end_of_each_block_is_found)
{
    kernel k;
    tcc_func *funcs[MANY];
    size_t n_funcs = open_structure(&k, _i, funcs);
    for (size_t i = 0; i < n_funcs; i++) {
        tcc_covered covered;
        size_t n = 0;
        ck_assert_msg(!measure(&k, funcs[i], &covered), "%s: %s", funcs[i]->name, k.said);
        ck_assert(covered.warps && covered.ends && covered.steps);
        for (; block_at(funcs[i], n); n++) {
            tcc_func *broken = copy_of(funcs[i]);
            put_canary(broken, block_at(broken, n));
            tcc_status status = prove(&k, broken);
            ck_assert_msg(status && (n || status == TCC_ERR_INTERNAL), "%s, %s: block %zu: %s", structures[_i].schedule,
                          funcs[i]->name, n, k.said);
            tcc_func_remove(broken);
        }
    }
    kernel_close(&k);
}
END_TEST

/* The nth loop that promises an iteration. */
static tcc_op *promise_at(tcc_func *f, size_t n)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_scf_for && tcc_attr_int(&op->attrs, "at_least_once", 0) && !n--)
            return op;
    return NULL;
}

/* One loop promises nothing: then its warp asks whether there is a first iteration, and others' loops may answer while
 * it waits. */
START_TEST(a_canary_behind_questions_that_others_answer_is_found)
{
    kernel k;
    tcc_func *funcs[MANY];
    size_t n_funcs = open_structure(&k, _i, funcs);
    for (size_t i = 0; i < n_funcs; i++)
        for (size_t n = 0; promise_at(funcs[i], n); n++) {
            tcc_func *asks = copy_of(funcs[i]);
            tcc_attr_remove(&promise_at(asks, n)->attrs, "at_least_once");
            put_canary(asks, asks->body);
            ck_assert_msg(prove(&k, asks), "%s, %s: loop %zu", structures[_i].schedule, funcs[i]->name, n);
            tcc_func_remove(asks);
        }
    kernel_close(&k);
}
END_TEST

/* ---- what is never reached --------------------------------------------------------------- */

/* Puts a branch at the end of a function that is never taken, and its canary with it. */
static void never(tcc_func *f)
{
    tcc_builder b = tcc_builder_before(f->body->last);
    tcc_op *branch = tcc_begin_if(&b, tcc_build_int(&b, tcc_type_scalar(f->ir, TCC_i1), 0));
    tcc_end_if(&b, branch);
    put_canary(f, branch->regions[0]);
}

/* The same for a loop without iterations. */
static void no_iterations(tcc_func *f)
{
    tcc_builder b = tcc_builder_before(f->body->last);
    tcc_value *zero = tcc_build_i32(&b, 0), *one = tcc_build_i32(&b, 1);
    tcc_op *loop = tcc_op_create(&b, TCC_OP_scf_for, 3, (tcc_value *[]){zero, zero, one}, 0, NULL);
    tcc_block_add_arg(loop->regions[0], zero->type, "i");
    put_canary(f, loop->regions[0]);
}

static const struct {
    const char *name;
    void (*put)(tcc_func *f);
} unreached[] = {{"branch", never}, {"loop", no_iterations}};

START_TEST(an_op_that_is_never_reached_is_an_error)
{
    kernel k;
    tcc_func *funcs[MANY];
    open_structure(&k, 0, funcs);
    unreached[_i].put(funcs[0]);
    ck_assert_int_eq(prove(&k, funcs[0]), TCC_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(k.said, "no execution that was followed reaches this"), "%s: %s", unreached[_i].name, k.said);
    kernel_close(&k);
}
END_TEST

/* ---- what is reported -------------------------------------------------------------------- */

/* A ring of two stages: its loops, the warps of four consumers and a producer, and each op that is followed. */
START_TEST(what_a_proof_covers)
{
    kernel k;
    tcc_func *funcs[MANY];
    tcc_covered covered, more;
    open_structure(&k, 0, funcs);
    ck_assert_int_eq(measure(&k, funcs[0], &covered), TCC_OK);
    ck_assert_uint_eq(covered.loops, 2);
    ck_assert_uint_eq(covered.warps, 5);
    ck_assert_uint_ge(covered.ends, 1);
    tcc_builder b = tcc_builder_before(funcs[0]->body->last);
    tcc_op_create(&b, TCC_OP_nvvm_fence_proxy_async, 0, NULL, 0, NULL);
    ck_assert_int_eq(measure(&k, funcs[0], &more), TCC_OK);
    ck_assert_uint_eq(more.ops, covered.ops + 1);
    kernel_close(&k);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("covered");
    TCase *t = tcase_create("covered");
    tcase_set_timeout(t, 120);
    suite_add_sampled(t, a_canary_at_the_end_of_each_block_is_found, STRUCTURES);
    suite_add_sampled(t, a_canary_behind_questions_that_others_answer_is_found, STRUCTURES);
    tcase_add_loop_test(t, an_op_that_is_never_reached_is_an_error, 0, sizeof unreached / sizeof *unreached);
    tcase_add_test(t, what_a_proof_covers);
    suite_add_tcase(s, t);
    return s;
}

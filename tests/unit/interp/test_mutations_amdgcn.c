/* What the compiler's output for RDNA would do with one of its safeguards left out, or a place
 * mistaken: the interpreter reports each, or the result is wrong; and of LDS the protocol checker
 * does, too, whatever the sizes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/interp/mutations.h"
#include "tests/unit/suite.h"

#ifdef TCC_SANITIZED /* slow */
enum { SEEDS = 1 };
#else
enum { SEEDS = 6 };
#endif

static const struct {
    const char *target, *schedule;
} subjects[] = {
    {"gfx1100", "tile m 64, n 32, k 32; waves 4; wave 32;"},
    {"gfx1100", "tile m 32, n 64, k 16; waves 2; wave 64;"},
    {"gfx1201", "tile m 64, n 32, k 32; waves 4; wave 32;"},
    {"gfx1201", "tile m 32, n 32, k 32; waves 2; wave 64;"},
};

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static tcc_func *open_product(kernel *k, int subject, const char *acc)
{
    char source[512];
    snprintf(source, sizeof source,
             "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
             "{\n    C[m, n] = sum%s(k) A[m, k] * B[n, k];\n}\n"
             "schedule f for %s { %s }\n",
             acc, subjects[subject].target, subjects[subject].schedule);
    kernel_open_for(k, subjects[subject].target, source, (extents){80, 72, 128, 1});
    ck_assert_msg(!tcc_run_passes(k->ir, tcc_pipeline(tcc_target_of(k->ir)), NULL, &k->diag), "%s",
                  k->said);
    return k->ir->first;
}

START_TEST(unchanged_kernels_are_right)
{
    static const char *const accs[] = {"", ":f16"};
    kernel k;
    tcc_func *f = open_product(&k, _i / 2, accs[_i % 2]);
    ck_assert_int_eq(run_all(&k, f, SEEDS), RIGHT);
    ck_assert_msg(!prove(&k, f), "%s", k.said);
    ck_assert_uint_gt(count(f, TCC_OP_amdgcn_s_barrier), 1);
    kernel_close(&k);
}
END_TEST

/* Each of the barriers, one after the other. */
START_TEST(every_barrier_is_needed)
{
    kernel k;
    unsigned n = 1;
    for (unsigned i = 0; i < n; i++) {
        tcc_func *f = open_product(&k, _i, "");
        n = count(f, TCC_OP_amdgcn_s_barrier);
        tcc_op_erase(find(f, TCC_OP_amdgcn_s_barrier, (int)i));
        ck_assert_msg(run_all(&k, f, SEEDS) == REPORTED, "barrier %u of %u", i, n);
        ck_assert_msg(says_one_of(k.said, "reads LDS at byte|writes LDS at byte"), "%s", k.said);
        ck_assert_int_eq(prove(&k, f), TCC_ERR_INTERNAL);
        ck_assert_msg(says_one_of(k.said, "reads LDS at byte|writes LDS at byte"), "%s", k.said);
        kernel_close(&k);
    }
}
END_TEST

/* Each wait that stands before a barrier. */
START_TEST(every_wait_before_a_barrier_is_needed)
{
    kernel k;
    unsigned n = 1, needed = 0;
    for (unsigned i = 0; i < n; i++) {
        tcc_func *f = open_product(&k, _i, "");
        n = count(f, TCC_OP_amdgcn_waitcnt);
        tcc_op *wait = find(f, TCC_OP_amdgcn_waitcnt, (int)i);
        if (wait->next && wait->next->code == TCC_OP_amdgcn_s_barrier) {
            needed++;
            tcc_op_erase(wait);
            ck_assert_msg(run_all(&k, f, SEEDS) == REPORTED, "wait %u of %u", i, n);
            ck_assert_int_eq(prove(&k, f), TCC_ERR_INTERNAL);
        }
        kernel_close(&k);
    }
    ck_assert_uint_gt(needed, 1);
}
END_TEST

/* ---- places mistaken ------------------------------------------------------------------- */

static void add_to_offset(tcc_func *f, tcc_op *op, int64_t bytes)
{
    int64_t offset = tcc_attr_int(&op->attrs, "offset", 0);
    tcc_attr_set_int(f->ir, &op->attrs, "offset",
                     offset >= bytes ? offset - bytes : offset + bytes);
}

static void load_elsewhere(tcc_func *f)
{
    add_to_offset(f, find_last(f, TCC_OP_amdgcn_ds_load), 16);
}

static void store_elsewhere(tcc_func *f)
{
    add_to_offset(f, find_last(f, TCC_OP_amdgcn_ds_store), 16);
}

static void take_another_column(tcc_func *f)
{
    add_to_offset(f, find(f, TCC_OP_amdgcn_buffer_load, 0), 32);
}

static void exchange_operands(tcc_func *f)
{
    tcc_op *op = find(f, TCC_OP_amdgcn_wmma, 0);
    tcc_value *a = op->operands[0];
    tcc_op_set_operand(op, 0, op->operands[1]);
    tcc_op_set_operand(op, 1, a);
}

static void larger_buffer(tcc_func *f)
{
    tcc_op *op = find(f, TCC_OP_amdgcn_make_buffer, 0);
    tcc_builder b = tcc_builder_before(op);
    tcc_value *more = tcc_build_int(&b, op->operands[2]->type, 64);
    tcc_op_set_operand(op, 2, TCC_EMIT(&b, arith_add, more->type, .a = op->operands[2], .b = more));
}

static void no_product(tcc_func *f)
{
    tcc_op *op = find(f, TCC_OP_amdgcn_wmma, 1);
    tcc_replace_uses(&op->results[0], op->operands[2]);
    tcc_op_erase(op);
}

static void other_half(tcc_func *f)
{
    tcc_op *op = find(f, TCC_OP_amdgcn_wmma, 0);
    tcc_attr_set_int(f->ir, &op->attrs, "high", !tcc_attr_int(&op->attrs, "high", 0));
}

static void other_operand_types(tcc_func *f)
{
    tcc_attr_set_str(f->ir, &find(f, TCC_OP_amdgcn_wmma, 0)->attrs, "a", "bf16");
    tcc_attr_set_str(f->ir, &find(f, TCC_OP_amdgcn_wmma, 0)->attrs, "b", "bf16");
}

static const struct {
    const char *name;
    void (*mutate)(tcc_func *f);
    const char *acc, *says; /* says: "" for a wrong result or any report */
    bool gfx11_only;
} mistakes[] = {
    {"load_elsewhere", load_elsewhere, "", "", false},
    {"store_elsewhere", store_elsewhere, "", "", false},
    {"take_another_column", take_another_column, "", "", false},
    {"exchange_operands", exchange_operands, "", "", false},
    {"larger_buffer", larger_buffer, "", "amdgcn.make_buffer", false},
    {"no_product", no_product, "", "", false},
    {"other_operand_types", other_operand_types, "", "", false},
    {"other_half", other_half, ":f16", "", true},
};

enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

START_TEST(mistakes_are_noticed)
{
    kernel k;
    int subject = _i / MISTAKES, m = _i % MISTAKES;
    if (mistakes[m].gfx11_only && strcmp(subjects[subject].target, "gfx1100"))
        return;
    tcc_func *f = open_product(&k, subject, mistakes[m].acc);
    mistakes[m].mutate(f);
    verdict v = run_all(&k, f, SEEDS);
    ck_assert_msg(v != RIGHT, "%s: nothing is wrong", mistakes[m].name);
    if (*mistakes[m].says)
        ck_assert_msg(v == REPORTED && strstr(k.said, mistakes[m].says), "%s: %s", mistakes[m].name,
                      k.said);
    kernel_close(&k);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("mutations_amdgcn");
    TCase *t = tcase_create("mutations_amdgcn");
    tcase_add_loop_test(t, unchanged_kernels_are_right, 0, 2 * SUBJECTS);
    tcase_add_loop_test(t, every_barrier_is_needed, 0, SUBJECTS);
    tcase_add_loop_test(t, every_wait_before_a_barrier_is_needed, 0, SUBJECTS);
    suite_add_sampled(t, mistakes_are_noticed, SUBJECTS * MISTAKES);
    suite_add_tcase(s, t);
    return s;
}

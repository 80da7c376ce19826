/* What the compiler's output for warps that multiply registers would do with one of its safeguards left out, or a
 * place mistaken: the interpreter reports each, or the result is wrong; and of shared memory the protocol
 * checker does, too, whatever the sizes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/interp/mutations.h"
#include "tests/unit/suite.h"

#ifdef TCC_SANITIZED /* slow */
enum { SEEDS = 1 };
#else
enum { SEEDS = 4 };
#endif

static const struct {
    const char *a, *b, *schedule;
    const char *target; /* before sm_80 threads put what they have loaded into stages; before sm_75 fragments are wmma's */
} subjects[] = {
    {"A: f16[M, K]", "B: f16[N, K]", "tile m 64, n 32, k 32; warps 4; stages 3;", "sm_80"},
    {"A: f16[M, K]", "B: f16[K, N]", "tile m 32, n 64, k 64; warps 2; stages 2;", "sm_80"},
    {"A: f16[K, M]", "B: f16[N, K]", "tile m 32, n 32, k 16; warps 1; stages 4;", "sm_80"},
    {"A: i8[M, K]", "B: u8[N, K]", "tile m 32, n 32, k 64; warps 2; stages 3;", "sm_80"},
    {"A: f16[M, K]", "B: f16[N, K]", "tile m 64, n 32, k 32; warps 4; stages 2;", "sm_75"},
    {"A: f16[K, M]", "B: f16[K, N]", "tile m 32, n 64, k 32; warps 2; stages 3;", "sm_75"},
    {"A: i8[M, K]", "B: u8[N, K]", "tile m 32, n 32, k 64; warps 2; stages 2;", "sm_75"},
    {"A: f16[M, K]", "B: f16[N, K]", "tile m 64, n 32, k 32; warps 4; stages 2;", "sm_70"},
    {"A: f16[K, M]", "B: f16[K, N]", "tile m 32, n 32, k 32; warps 1; stages 2;", "sm_70"},
    {"A: i8[M, K]", "B: i8[K, N]", "tile m 32, n 32, k 64; warps 2; stages 3;", "sm_72"},
};

enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static const char *indices(const char *parameter)
{
    return strchr(parameter, 'K') < strchr(parameter, ',') ? (*parameter == 'A' ? "A[k, m]" : "B[k, n]")
                                                            : (*parameter == 'A' ? "A[m, k]" : "B[n, k]");
}

static tcc_func *open_product(kernel *k, int subject)
{
    char source[512];
    const char *target = subjects[subject].target;
    bool integers = strstr(subjects[subject].a, "i8");
    snprintf(source, sizeof source,
             "kernel f(%s, %s) -> (C: %s[M, N])\n{\n    C[m, n] = sum(k) %s * %s;\n}\n"
             "schedule f for %s { %s }\n",
             subjects[subject].a, subjects[subject].b, integers ? "i32" : "f16", indices(subjects[subject].a),
             indices(subjects[subject].b), target, subjects[subject].schedule);
    kernel_open_for(k, target, source, (extents){80, 80, 208, 1});
    ck_assert_msg(!tcc_run_passes(k->ir, tcc_pipeline(tcc_target_of(k->ir)), NULL, &k->diag), "%s",
                  k->said);
    return k->ir->first;
}

START_TEST(unchanged_kernels_are_right)
{
    kernel k;
    tcc_func *f = open_product(&k, _i);
    ck_assert_msg(run_all(&k, f, SEEDS) == RIGHT, "%s", k.said);
    ck_assert_msg(!prove(&k, f), "%s", k.said);
    kernel_close(&k);
}
END_TEST

/* ---- safeguards -------------------------------------------------------------------------- */

static void drop(tcc_op *op)
{
    tcc_op_erase(op);
}

static void wait_for_one_less(tcc_op *op)
{
    int64_t pending = tcc_attr_int(&op->attrs, "pending", 0);
    tcc_attr_set_int(op->block->func->ir, &op->attrs, "pending", pending + 1);
}

static const struct {
    const char *name;
    tcc_opcode code;
    void (*mutate)(tcc_op *op);
} safeguards[] = {
    {"no wait", TCC_OP_nvvm_cp_async_wait, drop},
    {"a wait for one group less", TCC_OP_nvvm_cp_async_wait, wait_for_one_less},
    {"no commit", TCC_OP_nvvm_cp_async_commit, drop},
    {"no barrier", TCC_OP_nvvm_barrier, drop},
};

enum { SAFEGUARDS = sizeof safeguards / sizeof *safeguards };

/* The op before or behind one, in its block, that accesses shared memory or is a barrier of warps; NULL: there is none. */
static const tcc_op *next_to(const tcc_op *op, bool before)
{
    do
        op = before ? op->prev : op->next;
    while (op && op->code != TCC_OP_nvvm_barrier && !tcc_op_does(op->code, TCC_READS_SHARED | TCC_WRITES_SHARED));
    return op;
}

/* A warp reads again what it alone has stored of its fragments: so its next ones may lie there. */
static bool is_between_own(const tcc_op *op)
{
    const tcc_op *before = next_to(op, true), *behind = next_to(op, false);
    return op->code == TCC_OP_nvvm_barrier && before && before->code == TCC_OP_nvvm_ld_shared && behind &&
           behind->code == TCC_OP_nvvm_wmma_store;
}

/* Whether an op may be left out. Of a group that is not closed the copies come to the next one: of those in
 * front of the loop that is as good, where the wait leaves none of the later ones out. */
static bool is_idle(const tcc_op *op)
{
    const tcc_op *next = op->next;
    while (next && next->code != TCC_OP_nvvm_cp_async_commit && next->code != TCC_OP_nvvm_cp_async_wait)
        next = next->next;
    return is_between_own(op) || (op->code == TCC_OP_nvvm_cp_async_commit && op->block == op->block->func->body && next &&
           next->code == TCC_OP_nvvm_cp_async_commit);
}

START_TEST(every_safeguard_is_needed)
{
    static const char said[] = "reads shared memory at byte|writes shared memory at byte|ends while its copies";
    static const char refused[] = "accesses shared memory with no barrier"; /* in a loop: that was its only one */
    kernel k;
    int subject = _i / SAFEGUARDS, s = _i % SAFEGUARDS;
    if (strcmp(subjects[subject].target, "sm_80") && safeguards[s].code != TCC_OP_nvvm_barrier)
        return;
    unsigned n = 1, needed = 0;
    for (unsigned i = 0; i < n; i++) {
        tcc_func *f = open_product(&k, subject);
        n = count(f, safeguards[s].code);
        tcc_op *op = find(f, safeguards[s].code, (int)i);
        bool idle = is_idle(op);
        safeguards[s].mutate(op);
        if (!idle) {
            needed++;
            ck_assert_msg(run_all(&k, f, SEEDS) == REPORTED, "%s, %u of %u", safeguards[s].name, i, n);
            ck_assert_msg(says_one_of(k.said, said), "%s", k.said);
            ck_assert_msg(prove(&k, f), "%s, %u of %u", safeguards[s].name, i, n);
            ck_assert_msg(says_one_of(k.said, said) || says_one_of(k.said, refused), "%s", k.said);
        }
        kernel_close(&k);
    }
    ck_assert_uint_gt(needed, 0);
}
END_TEST

/* ---- places mistaken ------------------------------------------------------------------- */

static void add_to(tcc_op *op, unsigned operand, tcc_opcode code, int64_t v)
{
    tcc_builder b = tcc_builder_before(op);
    tcc_value *more = tcc_build_int(&b, op->operands[operand]->type, v), *old = op->operands[operand];
    const tcc_type *types[] = {old->type};
    tcc_op *sum = tcc_op_create(&b, code, 2, (tcc_value *[]){old, more}, 1, types);
    tcc_op_set_operand(op, operand, &sum->results[0]);
}

/* The last op that fills a stage. */
static tcc_op *find_copy(tcc_func *f)
{
    return find_last(f, count(f, TCC_OP_nvvm_cp_async) ? TCC_OP_nvvm_cp_async : TCC_OP_nvvm_st_shared);
}

static void swizzle_otherwise(tcc_func *f)
{
    add_to(find_copy(f), 0, TCC_OP_arith_xor, 16);
}

/* What reads stages, and what multiplies. */
static tcc_opcode reads(tcc_func *f)
{
    return count(f, TCC_OP_nvvm_ldmatrix) ? TCC_OP_nvvm_ldmatrix : TCC_OP_nvvm_wmma_load;
}

static tcc_opcode multiplies(tcc_func *f)
{
    return count(f, TCC_OP_nvvm_mma) ? TCC_OP_nvvm_mma : TCC_OP_nvvm_wmma_mma;
}

static void read_elsewhere(tcc_func *f)
{
    add_to(find_last(f, reads(f)), 0, TCC_OP_arith_xor, reads(f) == TCC_OP_nvvm_ldmatrix ? 16 : 32);
}

/* A copy to where the iteration has just read, and others may still. */
static void reuse_a_stage_early(tcc_func *f)
{
    tcc_op *copy = find_copy(f), *read = copy->block->last;
    while (read->code != reads(f))
        read = read->prev;
    tcc_builder b = tcc_builder_after(read);
    tcc_op_move(&b, copy);
    tcc_op_set_operand(copy, 0, read->operands[0]);
}

static void no_zeros(tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_nvvm_cp_async)
            set_constant(op, 3, 16);
        else if (op->code == TCC_OP_nvvm_ld_global)
            set_constant(op, 2, 1);
}

static void exchange_fragments(tcc_func *f)
{
    tcc_op *x = find(f, multiplies(f), 0), *y = find(f, multiplies(f), 1);
    unsigned o = x->operands[0] == y->operands[0]; /* they share a, or b */
    tcc_value *of_x = x->operands[o];
    tcc_op_set_operand(x, o, y->operands[o]);
    tcc_op_set_operand(y, o, of_x);
}

/* The words of A in another order: its two halves. */
static void turn_a_fragment(tcc_func *f)
{
    tcc_op *op = find(f, multiplies(f), 0);
    tcc_value *a = op->operands[0], *halves[2];
    tcc_builder b = tcc_builder_before(op);
    int64_t half_words = tcc_type_count(a->type) / 2;
    const tcc_type *half = tcc_type_sized(f->ir, TCC_KIND_vec, TCC_i32, 1, (int64_t[]){half_words});
    for (int i = 0; i < 2; i++) {
        halves[i] = TCC_EMIT(&b, vec_slice, half, a);
        tcc_attr_set_int(f->ir, &halves[i]->def->attrs, "offset", half_words * !i);
    }
    tcc_op *turned = tcc_op_create(&b, TCC_OP_vec_pack, 2, halves, 1, &a->type);
    tcc_op_set_operand(op, 0, &turned->results[0]);
}

static void transpose(tcc_func *f)
{
    tcc_op *op = find(f, reads(f), 0);
    bool rows = !strcmp(tcc_attr_str(&op->attrs, "layout", ""), "row");
    if (op->code == TCC_OP_nvvm_wmma_load)
        tcc_attr_set_str(f->ir, &op->attrs, "layout", rows ? "col" : "row");
    else
        tcc_attr_set_int(f->ir, &op->attrs, "trans", !tcc_attr_int(&op->attrs, "trans", 0));
}

static void no_product(tcc_func *f)
{
    tcc_op *op = find(f, multiplies(f), 1);
    tcc_replace_uses(&op->results[0], op->operands[2]);
    tcc_op_erase(op);
}

static const struct {
    const char *name;
    void (*mutate)(tcc_func *f);
    bool reported;
} mistakes[] = {
    {"swizzle_otherwise", swizzle_otherwise, false},
    {"read_elsewhere", read_elsewhere, false},
    {"reuse_a_stage_early", reuse_a_stage_early, true},
    {"no_zeros", no_zeros, true},
    {"exchange_fragments", exchange_fragments, false},
    {"turn_a_fragment", turn_a_fragment, false},
    {"transpose", transpose, false},
    {"no_product", no_product, false},
};

enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

START_TEST(mistakes_are_noticed)
{
    kernel k;
    int subject = _i / MISTAKES, m = _i % MISTAKES;
    tcc_func *f = open_product(&k, subject);
    mistakes[m].mutate(f);
    verdict v = run_all(&k, f, SEEDS);
    ck_assert_msg(v != RIGHT && (v == REPORTED || !mistakes[m].reported), "%s: %s", mistakes[m].name,
                  v == RIGHT ? "nothing is wrong" : "nothing is reported");
    kernel_close(&k);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("mutations_warps");
    TCase *t = tcase_create("mutations_warps");
    tcase_add_loop_test(t, unchanged_kernels_are_right, 0, SUBJECTS);
    suite_add_sampled(t, every_safeguard_is_needed, SUBJECTS * SAFEGUARDS);
    suite_add_sampled(t, mistakes_are_noticed, SUBJECTS * MISTAKES);
    suite_add_tcase(s, t);
    return s;
}

/* target_rules: what belongs together in ops of the target level: registers, and what the vendors'
 * instructions want of them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/fragment.h"
#include "ir/rules.h"

typedef tcc_verifier verifier;

#define ERROR tcc_verify_error
#define TEXT(type) tcc_verify_text(v, type)

static const char *target_name(const tcc_op *op)
{
    const tcc_target *target = tcc_func_target(op->block->func);
    return target ? target->name : "an unknown target";
}

/* ---- vec ------------------------------------------------------------------------------- */

static int64_t type_bits(const tcc_type *t)
{
    return tcc_type_count(t) * tcc_scalar_bits(t->elem);
}

static void check_pack(verifier *v, const tcc_op *op)
{
    const tcc_type *r = op->results[0].type;
    int64_t n = 0;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const tcc_type *t = op->operands[i]->type;
        if ((t->kind != TCC_KIND_scalar && t->kind != TCC_KIND_vec) || t->elem != r->elem) {
            ERROR(v, op, "operand %u is %s, expected a scalar or vec of r's element, %s", i, TEXT(t),
                  TEXT(r));
            return;
        }
        n += tcc_type_count(t);
    }
    if (n != tcc_type_count(r))
        ERROR(v, op, "has %lld elements, and r is %s", (long long)n, TEXT(r));
}

/* vec.slice and vec.extract. */
static void check_slice(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    int64_t offset = tcc_attr_int(&op->attrs, "offset", 0);
    if (a->elem != r->elem)
        ERROR(v, op, "a is %s and r is %s: their elements differ", TEXT(a), TEXT(r));
    if (offset > tcc_type_count(a) - tcc_type_count(r))
        ERROR(v, op, "r, %s, from offset %lld on is not within a, %s", TEXT(r), (long long)offset,
              TEXT(a));
}

static void check_splat(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    if (a->elem != r->elem)
        ERROR(v, op, "a is %s and r is %s: their elements differ", TEXT(a), TEXT(r));
}

static void check_bitcast(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *r = op->results[0].type;
    if (type_bits(a) != type_bits(r))
        ERROR(v, op, "a is %s and r is %s: their sizes differ", TEXT(a), TEXT(r));
}

/* ---- nvvm ------------------------------------------------------------------------------ */

static void check_coordinates(verifier *v, const tcc_op *op)
{
    unsigned n = op->n_operands - tcc_op_info_get(op->code)->n_operands;
    if (n < 1 || n > 5)
        ERROR(v, op, "has %u coordinates, expected 1 to 5", n);
}

static void check_barrier(verifier *v, const tcc_op *op)
{
    int64_t id, threads;
    if (tcc_value_is_int(op->operands[0], &id) && (id < 0 || id > 15))
        ERROR(v, op, "id is %lld, expected 0 to 15", (long long)id);
    if (tcc_value_is_int(op->operands[1], &threads) && (threads < 32 || threads % 32))
        ERROR(v, op, "threads is %lld, expected whole warps of 32", (long long)threads);
}

static void check_wgmma(verifier *v, const tcc_op *op)
{
    const tcc_type *acc = op->operands[0]->type;
    int64_t n = tcc_attr_int(&op->attrs, "n", 0);
    const char *a = tcc_attr_str(&op->attrs, "type", ""), *b = tcc_attr_str(&op->attrs, "type_b", a);
    const tcc_mma *mma = tcc_mma_of(op);
    if (!mma) {
        ERROR(v, op, "%s has no instruction for %s = %s * %s", target_name(op), tcc_scalar_name(acc->elem), a, b);
        return;
    }
    if (n % mma->n_step)
        ERROR(v, op, "n is %lld, expected a multiple of %lld for %s", (long long)n, (long long)mma->n_step, a);
    if (!mma->across && (tcc_attr_int(&op->attrs, "trans_a", 0) || tcc_attr_int(&op->attrs, "trans_b", 0)))
        ERROR(v, op, "an operand of %s is MN-major, expected K-major", a);
    tcc_verify_same(v, op, "acc", acc, "r", op->results[0].type);
    if (tcc_type_count(acc) != n / 2)
        ERROR(v, op, "acc is %s, expected %lld elements, half of n", TEXT(acc), (long long)(n / 2));
}

static void check_wgmma_a(verifier *v, const tcc_op *op)
{
    check_wgmma(v, op);
    if (tcc_type_count(op->operands[1]->type) != 4)
        ERROR(v, op, "a is %s, expected vec<i32[4]>", TEXT(op->operands[1]->type));
}

static void check_wgmma_wait(verifier *v, const tcc_op *op)
{
    if (op->n_operands != op->n_results) {
        ERROR(v, op, "has %u operands and %u results, expected one for each", op->n_operands,
              op->n_results);
        return;
    }
    for (unsigned i = 0; i < op->n_operands; i++) {
        const tcc_type *t = op->operands[i]->type;
        if (t->kind != TCC_KIND_vec || op->results[i].type != t)
            ERROR(v, op, "operand %u is %s and result %u is %s, expected the same vec", i, TEXT(t), i,
                  TEXT(op->results[i].type));
        else if (t->elem != TCC_f32 && t->elem != TCC_i32)
            ERROR(v, op, "operand %u is %s, expected accumulators, of f32 or i32, or registers of A, of i32",
                  i, TEXT(t));
    }
}

/* The product of nvvm.mma or nvvm.wmma.mma; NULL, reported, where the target has none. */
static const tcc_mma_sync *product_of(verifier *v, const tcc_op *op, tcc_scalar types[3])
{
    const tcc_mma_sync *mma = tcc_mma_sync_of(op, types);
    if (mma && tcc_mma_sync_is_opaque(mma) == (op->code == TCC_OP_nvvm_wmma_mma))
        return mma;
    ERROR(v, op, "%s has no instruction for %s = %s * %s", target_name(op),
          tcc_attr_str(&op->attrs, "acc", ""), tcc_attr_str(&op->attrs, "a", ""), tcc_attr_str(&op->attrs, "b", ""));
    return NULL;
}

static int64_t words_of(tcc_fragment_id fragment, tcc_scalar elem)
{
    return tcc_fragment_elements(&tcc_fragments[fragment], 0) * tcc_scalar_bits(elem) / 32;
}

static void check_mma(verifier *v, const tcc_op *op)
{
    static const char *const names[] = {"a", "b", "c"};
    tcc_scalar types[3];
    const tcc_mma_sync *mma = product_of(v, op, types);
    if (!mma)
        return;
    const tcc_type *c = op->operands[2]->type;
    tcc_verify_same(v, op, "c", c, "r", op->results[0].type);
    if (c->elem != types[2])
        ERROR(v, op, "c is %s, expected elements of %s", TEXT(c), tcc_scalar_name(types[2]));
    const tcc_fragment_id fragments[] = {mma->of_a, mma->of_b, mma->of_d};
    for (int i = 0; i < 3; i++) {
        const tcc_type *t = op->operands[i]->type;
        int64_t n = words_of(fragments[i], types[i]);
        if (tcc_type_count(t) * tcc_scalar_bits(t->elem) != n * 32)
            ERROR(v, op, "%s is %s, expected %lld words", names[i], TEXT(t), (long long)n);
    }
}

/* Words of a fragment of A or B, or what D holds. */
static void check_wmma_access(verifier *v, const tcc_op *op)
{
    bool loads = op->code == TCC_OP_nvvm_wmma_load;
    const tcc_type *t = loads ? op->results[0].type : op->operands[1]->type;
    tcc_scalar elem;
    if (loads && !tcc_attr_scalar(&op->attrs, "elem", &elem))
        return;
    tcc_fragment_id fragment = tcc_mma_sync_accessed(op, &elem);
    if (fragment == TCC_FRAGMENT_COUNT || !tcc_fragments[fragment].opaque) {
        ERROR(v, op, "%s has no fragments of %s", target_name(op), tcc_scalar_name(elem));
        return;
    }
    int64_t n = words_of(fragment, elem);
    if (tcc_type_count(t) * tcc_scalar_bits(t->elem) != n * 32)
        ERROR(v, op, "%s is %s, expected %lld words", loads ? "r" : "a", TEXT(t), (long long)n);
}

/* ldmatrix and stmatrix. */
static void check_matrices(verifier *v, const tcc_op *op)
{
    const tcc_type *t = op->n_results ? op->results[0].type : op->operands[1]->type;
    int64_t n = tcc_type_count(t);
    if (n != 1 && n != 2 && n != 4)
        ERROR(v, op, "%s is %s, expected 1, 2 or 4 words, one for each matrix",
              op->n_results ? "r" : "a", TEXT(t));
}

static void check_shfl(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type;
    tcc_verify_same(v, op, "a", a, "r", op->results[0].type);
    if (tcc_scalar_bits(a->elem) != 32)
        ERROR(v, op, "a is %s, expected 32 bits", TEXT(a));
}

/* One access of at most 16 bytes. */
static void check_shared(verifier *v, const tcc_op *op)
{
    const tcc_type *t = op->n_results ? op->results[0].type : op->operands[1]->type;
    int64_t bits = type_bits(t);
    if (bits < 8 || bits > 128 || (bits & (bits - 1)))
        ERROR(v, op, "%s is %s, expected 1, 2, 4, 8 or 16 bytes", op->n_results ? "r" : "a", TEXT(t));
}

static void check_global(verifier *v, const tcc_op *op)
{
    const tcc_type *base = op->operands[0]->type;
    const tcc_type *t = op->n_results ? op->results[0].type : op->operands[3]->type;
    if (base->elem != t->elem)
        ERROR(v, op, "base is %s and %s is %s: their elements differ", TEXT(base),
              op->n_results ? "r" : "a", TEXT(t));
}

/* ---- amdgcn ---------------------------------------------------------------------------- */

/* One access of at most 16 bytes, in whole registers or in part of one. */
static void check_registers(verifier *v, const tcc_op *op)
{
    unsigned last = op->n_operands - 1;
    const tcc_type *t = op->n_results ? op->results[0].type : op->operands[last]->type;
    int64_t bits = type_bits(t);
    if (bits != 8 && bits != 16 && (bits < 32 || bits > 128 || bits % 32))
        ERROR(v, op, "%s is %s, expected 1, 2, 4, 8, 12 or 16 bytes", op->n_results ? "r" : "a",
              TEXT(t));
}

/* Registers for an operand of this many words. */
static void check_words(verifier *v, const tcc_op *op, const char *name, const tcc_type *t,
                        int64_t words, int64_t wave)
{
    if (tcc_type_count(t) != words)
        ERROR(v, op, "%s is %s, expected %lld elements in a wave of %lld lanes", name, TEXT(t),
              (long long)words, (long long)wave);
}

static void check_wmma(verifier *v, const tcc_op *op)
{
    const tcc_amdgcn_wmma_operands *o = TCC_VIEW(amdgcn_wmma, op);
    const tcc_func *f = op->block->func;
    const tcc_target *target = tcc_target_of(f->ir);
    const char *names[3] = {tcc_attr_str(&op->attrs, "a", ""), tcc_attr_str(&op->attrs, "b", ""),
                            tcc_attr_str(&op->attrs, "acc", "")};
    tcc_scalar types[3];
    for (int i = 0; i < 3; i++)
        if (!tcc_scalar_find(names[i], strlen(names[i]), &types[i]))
            return;
    int64_t k = tcc_attr_int(&op->attrs, "k", 16), wave = tcc_attr_int(&f->attrs, "wave", 32);
    if (wave != 32 && wave != 64) {
        ERROR(v, op, "a wave of %lld lanes, expected 32 or 64", (long long)wave);
        return;
    }
    const tcc_wmma *wmma = tcc_wmma_find(target, types[0], types[1], types[2], k);
    if (!wmma) {
        ERROR(v, op, "%s has no instruction for %s = %s * %s with k = %lld", target->name, names[2],
              names[0], names[1], (long long)k);
        return;
    }
    tcc_verify_same(v, op, "c", o->c->type, "r", op->results[0].type);
    tcc_scalar held = types[2] == TCC_f32 ? TCC_f32 : TCC_i32;
    if (o->c->type->elem != held)
        ERROR(v, op, "c is %s, expected %s registers for %s", TEXT(o->c->type), tcc_scalar_name(held),
              names[2]);
    for (int i = 0; i < 2; i++)
        check_words(v, op, i ? "b" : "a", op->operands[i]->type,
                    tcc_wmma_operand_words(target, k, tcc_scalar_bits(types[i]), wave), wave);
    check_words(v, op, "c", o->c->type, tcc_wmma_result_words(wmma, wave), wave);
    if (tcc_attr_int(&op->attrs, "high", 0) && !tcc_wmma_is_in_halves(wmma))
        ERROR(v, op, "high is set, and a register holds only one accumulator");
}

/* ---- the table ------------------------------------------------------------------------- */

tcc_op_rule *const tcc_target_rules[TCC_OP_COUNT] = {
    [TCC_OP_vec_pack] = check_pack,
    [TCC_OP_vec_slice] = check_slice,
    [TCC_OP_vec_extract] = check_slice,
    [TCC_OP_vec_splat] = check_splat,
    [TCC_OP_vec_bitcast] = check_bitcast,
    [TCC_OP_nvvm_barrier] = check_barrier,
    [TCC_OP_nvvm_tma_load] = check_coordinates,
    [TCC_OP_nvvm_tma_load_multicast] = check_coordinates,
    [TCC_OP_nvvm_tma_store] = check_coordinates,
    [TCC_OP_nvvm_wgmma] = check_wgmma,
    [TCC_OP_nvvm_wgmma_wait] = check_wgmma_wait,
    [TCC_OP_nvvm_wgmma_a] = check_wgmma_a,
    [TCC_OP_nvvm_mma] = check_mma,
    [TCC_OP_nvvm_wmma_mma] = check_mma,
    [TCC_OP_nvvm_wmma_load] = check_wmma_access,
    [TCC_OP_nvvm_wmma_store] = check_wmma_access,
    [TCC_OP_nvvm_ldmatrix] = check_matrices,
    [TCC_OP_nvvm_stmatrix] = check_matrices,
    [TCC_OP_nvvm_shfl] = check_shfl,
    [TCC_OP_nvvm_ld_shared] = check_shared,
    [TCC_OP_nvvm_st_shared] = check_shared,
    [TCC_OP_nvvm_st_shared_cluster] = check_shared,
    [TCC_OP_nvvm_ld_global] = check_global,
    [TCC_OP_nvvm_st_global] = check_global,
    [TCC_OP_amdgcn_buffer_load] = check_registers,
    [TCC_OP_amdgcn_buffer_store] = check_registers,
    [TCC_OP_amdgcn_ds_load] = check_registers,
    [TCC_OP_amdgcn_ds_store] = check_registers,
    [TCC_OP_amdgcn_wmma] = check_wmma,
    [TCC_OP_amdgcn_lane_xor] = check_shfl,
};

/* rules: the values of attributes and the element types of every op, as tables; the rules of single ops
 * are in tensor_rules.c, tile_rules.c, async_rules.c and target_rules.c. docs/add-an-op.md.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/machine.h"
#include "ir/rules.h"
#include "ir/stamps.h"
#include "support/str.h"

typedef tcc_verifier verifier;

#define ERROR tcc_verify_error
#define TEXT(type) tcc_verify_text(v, type)

/* ---- values of attributes -------------------------------------------------------------- */

static const tcc_attr_rule attr_rules[] = {
    {TCC_OP_arith_cmp, "pred", "eq ne lt le gt ge", 0, 0, 0},
    {TCC_OP_scf_for, "at_least_once", NULL, 0, 1, 1},
    {TCC_OP_scf_for, "while", NULL, 1, 1, 1},
    {TCC_OP_scf_for, "stages", NULL, 1, INT32_MAX, 1},
    {TCC_OP_scf_for, "chunks", NULL, 1, INT32_MAX, 1},
    {TCC_OP_scf_for, "ahead", NULL, 1, INT32_MAX, 1},
    {TCC_OP_scf_for, "lanes", "32 64", 0, 0, 0},
    {TCC_OP_scf_for, "turns", NULL, 2, 2, 1},
    {TCC_OP_tensor_reduce, "rounded", NULL, 1, 1, 1},
    {TCC_OP_tensor_reduce, "rows", NULL, 0, 1, 1},
    {TCC_OP_tile_grid, "group", NULL, 1, INT32_MAX, 1},
    {TCC_OP_tile_grid, "raster", "row column hilbert", 0, 0, 0},
    {TCC_OP_tile_grid, "persistent", NULL, 1, 2, 1},
    {TCC_OP_scf_for, "ranks", NULL, 2, TCC_MAX_CLUSTER, 1},
    {TCC_OP_tile_ctas, "cluster", NULL, 2, TCC_MAX_CLUSTER, 1},
    {TCC_OP_tile_index, "unit", "2 4 8 16", 0, 0, 0},
    {TCC_OP_tile_load, "copy", "tma cp_async cp_async_elements buffer unaligned vectors elements predicated", 0, 0, 0},
    {TCC_OP_tile_load, "contiguous", NULL, 0, 1, 1},
    {TCC_OP_tile_load, "panel", "8 16 32 64", 0, 0, 0},
    {TCC_OP_tile_load, "pad", NULL, 0, 128, 16},
    {TCC_OP_tile_load, "swizzle", "0 32 64 128", 0, 0, 0},
    {TCC_OP_tile_load, "pairs", NULL, 0, 1, 1},
    {TCC_OP_tile_load, "wide", "2 4 8 16", 0, 0, 0},
    {TCC_OP_tile_load, "words", "4", 0, 0, 0},
    {TCC_OP_tile_load, "groups", "2 4 8 16", 0, 0, 0},
    {TCC_OP_nvvm_stamps, "cta", NULL, 0, INT32_MAX, 1},
    {TCC_OP_nvvm_stamp, "id", NULL, 1, TCC_STAMP_IDS - 1, 1},
    {TCC_OP_nvvm_stamp, "after", NULL, 1, 1, 1},
    {TCC_OP_nvvm_stamp, "time", NULL, 1, 1, 1},
    {TCC_OP_tile_load, "early", NULL, 0, 1, 1},
    {TCC_OP_tile_load, "chunk", "4 8 16 32", 0, 0, 0},
    {TCC_OP_tile_load, "inside", NULL, 0, 1, 1},
    {TCC_OP_tile_load, "multicast", NULL, 2, TCC_MAX_CLUSTER, 1},
    {TCC_OP_tile_load, "apart", NULL, 2, TCC_MAX_CLUSTER, 1},
    {TCC_OP_tile_load, "cache", "evict_first evict_last", 0, 0, 0},
    {TCC_OP_tile_store, "cache", "evict_first evict_last", 0, 0, 0},
    {TCC_OP_tile_store, "copy", "tma words interleaved", 0, 0, 0},
    {TCC_OP_tile_store, "pairs", NULL, 0, 1, 1},
    {TCC_OP_tile_store, "staged", NULL, 16, 256, 8},
    {TCC_OP_async_send_wait, "pending", NULL, 0, INT32_MAX, 1},
    {TCC_OP_tile_index, "dim", NULL, 0, 1, 1},
    {TCC_OP_tensor_reduce, "kind", "sum min max argmin argmax", 0, 0, 0},
    {TCC_OP_tile_reduce, "dim", NULL, 0, 1, 1},
    {TCC_OP_tile_reduce, "kind", "sum min max", 0, 0, 0},
    {TCC_OP_async_combine, "dim", NULL, 0, 1, 1},
    {TCC_OP_async_combine, "met", NULL, 1, 1, 1},
    {TCC_OP_async_exchange, "met", NULL, 1, 1, 1},
    {TCC_OP_async_combine, "kind", "sum min max", 0, 0, 0},
    {TCC_OP_tile_store, "wide", "2 4 8 16", 0, 0, 0},
    {TCC_OP_tile_store, "words", "4", 0, 0, 0},
    {TCC_OP_tile_store, "groups", "2 4 8 16", 0, 0, 0},
    {TCC_OP_async_alloc, "swizzle", "0 32 64 128", 0, 0, 0},
    {TCC_OP_async_alloc, "contiguous", NULL, 0, 1, 1},
    {TCC_OP_async_alloc, "panel", "8 16 32 64", 0, 0, 0},
    {TCC_OP_async_alloc, "pad", NULL, 0, 128, 16},
    {TCC_OP_async_alloc, "offset", NULL, 0, INT32_MAX, 8},
    {TCC_OP_async_ring, "offset", NULL, 0, INT32_MAX, 8},
    {TCC_OP_async_ring, "stages", NULL, 1, INT32_MAX, 1},
    {TCC_OP_scf_for, "instr", "mma fma", 0, 0, 0},
    {TCC_OP_async_role, "instr", "mma fma", 0, 0, 0},
    {TCC_OP_async_ring, "completion", "bytes arrivals barrier group turns", 0, 0, 0},
    {TCC_OP_async_ring, "commits", NULL, 1, INT32_MAX, 1},
    {TCC_OP_async_ring, "releases", NULL, 1, INT32_MAX, 1},
    {TCC_OP_async_ring, "cluster", NULL, 2, TCC_MAX_CLUSTER, 1},
    {TCC_OP_async_ring, "rows", NULL, 2, TCC_MAX_CLUSTER, 1},
    {TCC_OP_async_role, "warps", NULL, 1, 64, 1},
    {TCC_OP_async_role, "registers", NULL, 24, 256, 8},
    {TCC_OP_async_role, "chunks", NULL, 1, INT32_MAX, 1},
    {TCC_OP_async_role, "ahead", NULL, 1, INT32_MAX, 1},
    {TCC_OP_async_role, "lanes", "32 64", 0, 0, 0},
    {TCC_OP_async_commit, "bytes", NULL, 1, INT32_MAX, 1},
    {TCC_OP_async_copy, "copy", "tma cp_async cp_async_elements predicated", 0, 0, 0},
    {TCC_OP_async_copy, "multicast", NULL, 2, TCC_MAX_CLUSTER, 1},
    {TCC_OP_async_copy, "apart", NULL, 2, TCC_MAX_CLUSTER, 1},
    {TCC_OP_async_copy, "cache", "evict_first evict_last", 0, 0, 0},
    {TCC_OP_async_send, "cache", "evict_first evict_last", 0, 0, 0},
    {TCC_OP_nvvm_tma_load, "cache", "evict_first evict_last", 0, 0, 0},
    {TCC_OP_nvvm_tma_load_multicast, "cache", "evict_first evict_last", 0, 0, 0},
    {TCC_OP_nvvm_tma_store, "cache", "evict_first evict_last", 0, 0, 0},
    {TCC_OP_async_contribute, "apart", NULL, 2, TCC_MAX_CLUSTER, 1},
    {TCC_OP_async_publish, "copy", "tma words", 0, 0, 0},
    {TCC_OP_async_send, "copy", "tma words", 0, 0, 0},
    {TCC_OP_async_wait, "pending", NULL, 0, INT32_MAX, 1},
    {TCC_OP_async_mma_wait, "pending", NULL, 0, INT32_MAX, 1},
    {TCC_OP_vec_slice, "offset", NULL, 0, INT32_MAX, 1},
    {TCC_OP_vec_extract, "offset", NULL, 0, INT32_MAX, 1},
    {TCC_OP_nvvm_setmaxnreg, "count", NULL, 24, 256, 8},
    {TCC_OP_nvvm_setmaxnreg, "action", "inc dec", 0, 0, 0},
    {TCC_OP_nvvm_cp_async, "bytes", "4 8 16", 0, 0, 0},
    {TCC_OP_nvvm_cp_async_wait, "pending", NULL, 0, INT32_MAX, 1},
    {TCC_OP_nvvm_mma, "a", "f16 bf16 tf32 f64 i8 u8 i4 u4 e4m3 e5m2", 0, 0, 0},
    {TCC_OP_nvvm_mma, "b", "f16 bf16 tf32 f64 i8 u8 i4 u4 e4m3 e5m2", 0, 0, 0},
    {TCC_OP_nvvm_mma, "acc", "f32 f16 f64 i32", 0, 0, 0},
    {TCC_OP_nvvm_wmma_load, "shape", "m16n16k16 m32n8k16 m8n32k16", 0, 0, 0},
    {TCC_OP_nvvm_wmma_mma, "shape", "m16n16k16 m32n8k16 m8n32k16", 0, 0, 0},
    {TCC_OP_nvvm_wmma_store, "shape", "m16n16k16 m32n8k16 m8n32k16", 0, 0, 0},
    {TCC_OP_nvvm_wmma_load, "of", "a b", 0, 0, 0},
    {TCC_OP_nvvm_wmma_load, "elem", "f16 i8 u8", 0, 0, 0},
    {TCC_OP_nvvm_wmma_load, "layout", "row col", 0, 0, 0},
    {TCC_OP_nvvm_wmma_load, "stride", NULL, 8, 65536, 8},
    {TCC_OP_nvvm_wmma_mma, "a", "f16 i8 u8", 0, 0, 0},
    {TCC_OP_nvvm_wmma_mma, "b", "f16 i8 u8", 0, 0, 0},
    {TCC_OP_nvvm_wmma_mma, "acc", "f32 f16 i32", 0, 0, 0},
    {TCC_OP_nvvm_wmma_mma, "layout_a", "row col", 0, 0, 0},
    {TCC_OP_nvvm_wmma_mma, "layout_b", "row col", 0, 0, 0},
    {TCC_OP_nvvm_wmma_store, "stride", NULL, 4, 65536, 4},
    {TCC_OP_nvvm_bulk_wait, "pending", NULL, 0, INT32_MAX, 1},
    {TCC_OP_nvvm_bulk_wait, "read", NULL, 0, 1, 1},
    {TCC_OP_nvvm_wgmma, "n", NULL, 8, 256, 8},
    {TCC_OP_nvvm_wgmma, "type", "f16 bf16 tf32 e4m3 e5m2 i8 u8", 0, 0, 0},
    {TCC_OP_nvvm_wgmma, "type_b", "f16 bf16 tf32 e4m3 e5m2 i8 u8", 0, 0, 0},
    {TCC_OP_nvvm_wgmma, "trans_a", NULL, 0, 1, 1},
    {TCC_OP_nvvm_wgmma, "trans_b", NULL, 0, 1, 1},
    {TCC_OP_nvvm_wgmma_a, "n", NULL, 8, 256, 8},
    {TCC_OP_nvvm_wgmma_a, "type", "f16 bf16", 0, 0, 0},
    {TCC_OP_nvvm_wgmma_a, "trans_b", NULL, 0, 1, 1},
    {TCC_OP_nvvm_ldmatrix, "trans", NULL, 0, 1, 1},
    {TCC_OP_nvvm_stmatrix, "trans", NULL, 0, 1, 1},
    {TCC_OP_nvvm_shfl, "kind", "idx bfly up down", 0, 0, 0},
    {TCC_OP_nvvm_cluster_arrive, "relaxed", NULL, 0, 1, 1},
    {TCC_OP_nvvm_mbarrier_wait, "scope", "cta cluster", 0, 0, 0},
    {TCC_OP_nvvm_mbarrier_arrive_cluster, "scope", "cta cluster", 0, 0, 0},
    {TCC_OP_nvvm_wgmma_wait, "pending", NULL, 0, 7, 1},
    {TCC_OP_nvvm_ld_global, "align", "1 2 4 8 16", 0, 0, 0},
    {TCC_OP_nvvm_ld_global, "over", NULL, 0, 1, 1},
    {TCC_OP_nvvm_st_global, "align", "1 2 4 8 16", 0, 0, 0},
    {TCC_OP_amdgcn_buffer_load, "offset", NULL, 0, 4095, 1},
    {TCC_OP_amdgcn_buffer_load, "align", "1 2 4 8 16", 0, 0, 0},
    {TCC_OP_amdgcn_buffer_store, "offset", NULL, 0, 4095, 1},
    {TCC_OP_amdgcn_ds_load, "offset", NULL, 0, 65535, 1},
    {TCC_OP_amdgcn_ds_store, "offset", NULL, 0, 65535, 1},
    {TCC_OP_amdgcn_waitcnt, "load", NULL, 0, 63, 1},
    {TCC_OP_amdgcn_waitcnt, "store", NULL, 0, 63, 1},
    {TCC_OP_amdgcn_waitcnt, "ds", NULL, 0, 63, 1},
    {TCC_OP_amdgcn_wmma, "a", "f16 bf16 i8 u8 i4 u4 e4m3 e5m2", 0, 0, 0},
    {TCC_OP_amdgcn_wmma, "b", "f16 bf16 i8 u8 i4 u4 e4m3 e5m2", 0, 0, 0},
    {TCC_OP_amdgcn_wmma, "acc", "f32 f16 bf16 i32", 0, 0, 0},
    {TCC_OP_amdgcn_wmma, "k", "16 32", 0, 0, 0},
    {TCC_OP_amdgcn_wmma, "high", NULL, 0, 1, 1},
    {TCC_OP_amdgcn_perm, "sel", NULL, 0, 0x7FFFFFFF, 1},
    {TCC_OP_amdgcn_lane_xor, "mask", "1 2 4 8 16 32", 0, 0, 0},
    {TCC_OP_amdgcn_sched_barrier, "mask", NULL, 0, 0x7FF, 1},
    {TCC_OP_amdgcn_sched_group, "mask", NULL, 1, 0x7FF, 1},
    {TCC_OP_amdgcn_sched_group, "size", NULL, 1, 1024, 1},
    {TCC_OP_amdgcn_setprio, "priority", NULL, 0, 3, 1},
};

const tcc_attr_rule *tcc_attr_rule_find(tcc_opcode code, const char *attr)
{
    for (size_t i = 0; i < sizeof attr_rules / sizeof *attr_rules; i++)
        if (attr_rules[i].code == code && !strcmp(attr_rules[i].attr, attr))
            return &attr_rules[i];
    return NULL;
}

static bool check_attr_value(verifier *v, const tcc_op *op, const tcc_named_attr *a,
                             const tcc_attr_rule *rule)
{
    const char *text = a->value.kind == TCC_ATTR_STR
                           ? a->value.s
                           : tcc_arena_printf(v->arena, "%lld", (long long)a->value.i);
    if (rule->words) {
        if (tcc_has_word(rule->words, text))
            return true;
        ERROR(v, op, "attribute '%s' is %s, expected one of: %s", a->name, text, rule->words);
    } else if (a->value.i < rule->min || a->value.i > rule->max) {
        ERROR(v, op, "attribute '%s' is %s, expected %lld to %lld", a->name, text,
              (long long)rule->min, (long long)rule->max);
    } else if (a->value.i % rule->factor) {
        ERROR(v, op, "attribute '%s' is %s, expected a multiple of %lld", a->name, text,
              (long long)rule->factor);
    } else {
        return true;
    }
    return false;
}

static bool check_attr_values(verifier *v, const tcc_op *op)
{
    bool ok = true;
    for (size_t i = 0; i < op->attrs.len; i++) {
        const tcc_attr_rule *rule = tcc_attr_rule_find(op->code, op->attrs.data[i].name);
        ok &= !rule || check_attr_value(v, op, &op->attrs.data[i], rule);
    }
    return ok;
}

/* ---- element types --------------------------------------------------------------------- */

static const char *const elements[TCC_OP_COUNT] = {
    [TCC_OP_arith_add] = "number number -> number",
    [TCC_OP_arith_sub] = "number number -> number",
    [TCC_OP_arith_mul] = "number number -> number",
    [TCC_OP_arith_div] = "number number -> number",
    [TCC_OP_arith_rem] = "int int -> int",
    [TCC_OP_arith_floor_div] = "i32 i32 -> i32",
    [TCC_OP_arith_floor_rem] = "i32 i32 -> i32",
    [TCC_OP_arith_min] = "number number -> number",
    [TCC_OP_arith_max] = "number number -> number",
    [TCC_OP_arith_and] = "bits bits -> bits",
    [TCC_OP_arith_or] = "bits bits -> bits",
    [TCC_OP_arith_xor] = "bits bits -> bits",
    [TCC_OP_arith_shl] = "int int -> int",
    [TCC_OP_arith_shr] = "int int -> int",
    [TCC_OP_arith_fma] = "f32_or_f64 f32_or_f64 f32_or_f64 -> f32_or_f64",
    [TCC_OP_arith_cmp] = "_ _ -> i1",
    [TCC_OP_arith_select] = "i1 _ _ -> _",
    [TCC_OP_arith_neg] = "number -> number",
    [TCC_OP_math_abs] = "number -> number",
    [TCC_OP_math_exp2] = "float32 -> float32",
    [TCC_OP_math_log2] = "float32 -> float32",
    [TCC_OP_math_rcp] = "f32 -> f32",
    [TCC_OP_math_relu] = "number -> number",
    [TCC_OP_math_roundeven] = "float -> float",
#define MATH(name, ...) [TCC_OP_math_##name] = "float32 -> float32",
#define MATH_NATIVE(name, ...) [TCC_OP_math_##name] = "float -> float",
#include "ir/math.def"
    [TCC_OP_tensor_dim] = "-> i32",
    [TCC_OP_tensor_index] = "-> i32",
    [TCC_OP_tensor_reduce] = "number -> number",
    [TCC_OP_tensor_before] = "number -> number",
    [TCC_OP_tensor_rescale] = "float float -> float",
    [TCC_OP_scf_for] = "int int int",
    [TCC_OP_scf_if] = "i1",
    [TCC_OP_tile_load] = "_ *i32 -> _",
    [TCC_OP_tile_store] = "_ _ *i32",
    [TCC_OP_tile_mma] = "number number number -> number",
    [TCC_OP_tile_take] = "i32 i32 i32 i32 -> i32",
    [TCC_OP_tile_takes] = "i32 i32 i32 -> i32",
    [TCC_OP_async_acquire] = "_ i32",
    [TCC_OP_async_copy] = "_ i32 _ _ *i32",
    [TCC_OP_async_put] = "_ i32 _ _",
    [TCC_OP_async_read] = "_ i32 _ -> _",
    [TCC_OP_async_put_word] = "_ i32 i32 i32",
    [TCC_OP_async_read_word] = "_ i32 i32 -> i32",
    [TCC_OP_async_draw] = "i32 -> i32",
    [TCC_OP_async_commit] = "_ i32",
    [TCC_OP_async_wait] = "_ i32",
    [TCC_OP_tile_index] = "-> i32",
    [TCC_OP_tile_reduce] = "number -> number",
    [TCC_OP_tile_any] = "i1 -> i1",
    [TCC_OP_async_combine] = "number _ -> number",
    [TCC_OP_async_contribute] = "number _ i32",
    [TCC_OP_async_collect] = "number _ i32 -> number",
    [TCC_OP_async_mma] = "_ i32 number number number -> number",
    [TCC_OP_async_release] = "_ i32",
    [TCC_OP_nvvm_tid] = "-> i32",
    [TCC_OP_nvvm_ctaid] = "-> i32",
    [TCC_OP_nvvm_nctaid] = "-> i32",
    [TCC_OP_nvvm_stamps] = "i32",
    [TCC_OP_nvvm_stamp] = "i32",
    [TCC_OP_nvvm_clusterid] = "-> i32",
    [TCC_OP_nvvm_nclusterid] = "-> i32",
    [TCC_OP_nvvm_uniform] = "i32 -> i32",
    [TCC_OP_nvvm_opaque] = "i32 -> i32",
    [TCC_OP_nvvm_after] = "i32 i32 -> i32",
    [TCC_OP_nvvm_shfl] = "number i32 -> number",
    [TCC_OP_nvvm_shf] = "i32 i32 i32 -> i32",
    [TCC_OP_nvvm_cluster_ctarank] = "-> i32",
    [TCC_OP_nvvm_mapa] = "i32 i32 -> i32",
    [TCC_OP_nvvm_phase] = "_ -> i32",
    [TCC_OP_nvvm_smem_base] = "-> i32",
    [TCC_OP_nvvm_elect] = "-> i1",
    [TCC_OP_nvvm_any] = "i1 -> i1",
    [TCC_OP_nvvm_barrier] = "i32 i32",
    [TCC_OP_nvvm_mbarrier_init] = "i32 i32",
    [TCC_OP_nvvm_mbarrier_inval] = "i32",
    [TCC_OP_nvvm_mbarrier_arrive] = "i32",
    [TCC_OP_nvvm_mbarrier_arrive_cluster] = "i32",
    [TCC_OP_nvvm_mbarrier_arrive_expect_tx] = "i32 i32",
    [TCC_OP_nvvm_mbarrier_arrive_expect_tx_cluster] = "i32 i32",
    [TCC_OP_nvvm_mbarrier_wait] = "i32 i32",
    [TCC_OP_nvvm_tma_load] = "i32 _ i32 *i32",
    [TCC_OP_nvvm_tma_load_multicast] = "i32 _ i32 i32 *i32",
    [TCC_OP_nvvm_tma_store] = "i32 _ *i32",
    [TCC_OP_nvvm_cp_async] = "i32 _ i64 i32",
    [TCC_OP_nvvm_mma] = "i32 i32 number -> number",
    [TCC_OP_nvvm_wmma_load] = "i32 -> i32",
    [TCC_OP_nvvm_wmma_mma] = "i32 i32 number -> number",
    [TCC_OP_nvvm_wmma_store] = "i32 number",
    [TCC_OP_nvvm_wgmma] = "number i64 i64 i1 -> number",
    [TCC_OP_nvvm_wgmma_a] = "f32 i32 i64 i1 -> f32",
    [TCC_OP_nvvm_ldmatrix] = "i32 -> i32",
    [TCC_OP_nvvm_stmatrix] = "i32 i32",
    [TCC_OP_nvvm_ld_shared] = "i32 -> _",
    [TCC_OP_nvvm_st_shared] = "i32 _",
    [TCC_OP_nvvm_ld_shared_word] = "i32 -> i32",
    [TCC_OP_nvvm_st_shared_word] = "i32 i32",
    [TCC_OP_nvvm_st_async_word] = "i32 i32 i32",
    [TCC_OP_nvvm_st_shared_cluster] = "i32 _",
    [TCC_OP_nvvm_atom_inc] = "i32 -> i32",
    [TCC_OP_nvvm_ld_global] = "_ i64 i1 -> _",
    [TCC_OP_nvvm_st_global] = "_ i64 i1 _",
    [TCC_OP_amdgcn_tid] = "-> i32",
    [TCC_OP_amdgcn_lane] = "-> i32",
    [TCC_OP_amdgcn_wgid] = "-> i32",
    [TCC_OP_amdgcn_readfirstlane] = "i32 -> i32",
    [TCC_OP_amdgcn_lds_base] = "-> i32",
    [TCC_OP_amdgcn_make_buffer] = "_ i64 i32 -> _",
    [TCC_OP_amdgcn_buffer_load] = "_ i32 i32 -> _",
    [TCC_OP_amdgcn_buffer_store] = "_ i32 i32 _",
    [TCC_OP_amdgcn_ds_load] = "i32 -> _",
    [TCC_OP_amdgcn_ds_store] = "i32 _",
    [TCC_OP_amdgcn_wmma] = "i32 i32 number -> number",
    [TCC_OP_amdgcn_perm] = "i32 i32 -> i32",
    [TCC_OP_amdgcn_lane_xor] = "number -> number",
};

const char *tcc_element_rule(tcc_opcode code)
{
    return elements[code];
}

static bool is_element(const char *word, size_t n, tcc_scalar s)
{
    static const struct {
        const char *name;
        unsigned classes, least_bits, most_bits;
    } classes[] = {
        {"_", ~0u, 0, 64},
        {"int", 1 << TCC_CLASS_INT, 0, 64},
        {"float", 1 << TCC_CLASS_FLOAT, 0, 64},
        {"float32", 1 << TCC_CLASS_FLOAT, 0, 32}, /* of 32 bits or less */
        {"f32_or_f64", 1 << TCC_CLASS_FLOAT, 32, 64},
        {"number", 1 << TCC_CLASS_INT | 1 << TCC_CLASS_FLOAT, 0, 64},
        {"bits", 1 << TCC_CLASS_INT | 1 << TCC_CLASS_BOOL, 0, 64},
    };
    unsigned bits = tcc_scalar_bits(s);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (strlen(classes[i].name) == n && !memcmp(classes[i].name, word, n))
            return classes[i].classes >> tcc_scalar_classify(s) & 1 && bits >= classes[i].least_bits &&
                   bits <= classes[i].most_bits;
    tcc_scalar want;
    return tcc_scalar_find(word, n, &want) && want == s;
}

static bool check_elements(verifier *v, const tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    bool ok = true, results = false;
    unsigned i = 0;
    for (const char *w = elements[op->code]; w && *w; w += strspn(w, " ")) {
        size_t n = strcspn(w, " ");
        const char *word = w;
        w += n;
        if (!strncmp(word, "->", n)) {
            results = true;
            i = 0;
            continue;
        }
        bool further = *word == '*';
        do {
            if (further && i >= op->n_operands)
                break;
            const tcc_type *t = results ? op->results[i].type : op->operands[i]->type;
            if (is_element(word + further, n - further, t->elem) &&
                !(further && t->kind != TCC_KIND_scalar))
                continue;
            ok = false;
            if (further)
                ERROR(v, op, "operand %u is %s, expected %.*s", i, TEXT(t), (int)n - 1, word + 1);
            else
                ERROR(v, op, "%s is %s, expected an element that is %.*s",
                      results ? info->results[i].name : info->operands[i].name, TEXT(t), (int)n,
                      word);
        } while (i++, further);
    }
    return ok;
}

/* ---- lists ----------------------------------------------------------------------------- */

const tcc_attr *tcc_verify_ints(verifier *v, const tcc_op *op, const char *name, size_t n, int64_t min,
                                int64_t max)
{
    tcc_attr a = tcc_attr_list(&op->attrs, name);
    bool ok = a.list.n == n;
    for (size_t i = 0; ok && i < n; i++)
        ok = a.list.items[i].kind == TCC_ATTR_INT && a.list.items[i].i >= min &&
             a.list.items[i].i <= max;
    if (ok)
        return a.list.items;
    ERROR(v, op, "attribute '%s' needs %zu integers from %lld to %lld", name, n, (long long)min,
          (long long)max);
    return NULL;
}

const tcc_attr *tcc_verify_strings(verifier *v, const tcc_op *op, const char *name, size_t n)
{
    tcc_attr a = tcc_attr_list(&op->attrs, name);
    bool ok = a.list.n == n;
    for (size_t i = 0; ok && i < n; i++)
        ok = a.list.items[i].kind == TCC_ATTR_STR;
    if (ok)
        return a.list.items;
    ERROR(v, op, "attribute '%s' needs %zu names", name, n);
    return NULL;
}

bool tcc_list_has(const tcc_attr *items, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(items[i].s, name))
            return true;
    return false;
}

/* ---- all of it ------------------------------------------------------------------------- */

void tcc_verify_rules(verifier *v, const tcc_op *op)
{
    bool ok = check_attr_values(v, op);
    if (!check_elements(v, op) || !ok)
        return;
    if (tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE)
        tcc_verify_elementwise(v, op);
    tcc_op_rule *const *const tables[] = {tcc_tensor_rules, tcc_tile_rules, tcc_async_rules, tcc_target_rules};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tables[i][op->code])
            tables[i][op->code](v, op);
}

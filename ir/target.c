/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ir/nearest_target.h"

/* A multiprocessor is a WGP: four SIMDs, each with this many registers of 32 lanes, and 128 KiB of
 * LDS, half of which one workgroup may have. Per WGP and cycle RDNA3 computes 1024 dense 16-bit
 * products and sums, RDNA4 2048 ("AMD RDNA 3" and "RDNA 4" ISA guides, WMMA; the GPUs' data
 * sheets). */
#define RDNA(gfx, gfx_family, simd_registers, wgps, flops)                                                \
    {.name = (gfx),                                                                                \
     .family = (gfx_family),                                                                       \
     .smem_bytes = 64 * 1024,                                                                      \
     .registers = 4 * 32 * (simd_registers),                                                       \
     .thread_registers = 256,                                                                      \
     .max_threads = 1024,                                                                          \
     .sms = (wgps),                                                                                \
     .flops_per_cycle = (flops),                                                                   \
     .smem_bytes_per_cycle = 256,                                                                  \
     .l2_bytes_per_cycle = 128,                                                                    \
     .stored_bytes_per_cycle = 8,                                                                  \
     .memory_bytes_per_cycle = 8}

/* A multiprocessor multiplies 16-bit numbers at this rate with f32 sums (NVIDIA's architecture white papers), f32 by
 * lanes and f64, by lanes or where it can by warps, at these (CUDA C++ Programming Guide, "Arithmetic Instructions");
 * its shared memory transfers 128 bytes per cycle. */
#define WARPS(sm, sm_family, cta_registers, least_ptx, capabilities, smem, multiprocessors, flops, fmas, \
              wide_fmas, l2_bytes, memory_bytes)                                                   \
    {.name = (sm),                                                                                  \
     .family = (sm_family),                                                                         \
     .ptx = (least_ptx),                                                                            \
     .can = (capabilities),                                                                         \
     .smem_bytes = (smem) * 1024,                                                                   \
     .registers = (cta_registers),                                                                  \
     .thread_registers = 255,                                                                       \
     .max_threads = 1024,                                                                           \
     .sms = (multiprocessors),                                                                      \
     .flops_per_cycle = (flops),                                                                    \
     .fmas_per_cycle = (fmas),                                                                      \
     .wide_fmas_per_cycle = (wide_fmas),                                                            \
     .smem_bytes_per_cycle = 128,                                                                   \
     .l2_bytes_per_cycle = (l2_bytes),                                                              \
     .stored_bytes_per_cycle = 8,                                                                   \
     .memory_bytes_per_cycle = (memory_bytes),                                                      \
     .latency_cycles = 800}
#define SM80(sm, ...) WARPS(sm, TCC_FAMILY_SM80, 65536, __VA_ARGS__)
#define SM75(sm, ...) WARPS(sm, TCC_FAMILY_SM75, 65536, __VA_ARGS__)
#define SM72(sm, ...) WARPS(sm, TCC_FAMILY_SM72, 65536, __VA_ARGS__)
#define SM70(sm, ...) WARPS(sm, TCC_FAMILY_SM70, 65536, __VA_ARGS__)
/* Maxwell and Pascal multiply by lanes alone. PTX 6.0 has the shuffles and barriers of a warp that later GPUs need. */
#define SM50(sm, cta_registers, multiprocessors, fmas, ...) \
    WARPS(sm, TCC_FAMILY_SM50, cta_registers, 60, 0, 48, multiprocessors, 2 * (fmas), fmas, __VA_ARGS__)

#define CAN TCC_CAN
static const tcc_target targets[] = {
    {.name = "sm_90a",
     .family = TCC_FAMILY_SM90,
     .plain = "sm_90",
     .ptx = 80,
     .smem_bytes = 227 * 1024,
     .registers = 65536,
     .thread_registers = 255,
     .max_threads = 1024,
     .sms = 132,
     .flops_per_cycle = 4096,
     .fmas_per_cycle = 128,
     .wide_fmas_per_cycle = 128,
     .smem_bytes_per_cycle = 128,
     .l2_bytes_per_cycle = 90,
     .stored_bytes_per_cycle = 19,
     .memory_bytes_per_cycle = 18,
     .latency_cycles = 1300},
    SM80("sm_80", 80, CAN(mma_f64), 163, 108, 2048, 64, 64, 48, 13),
    SM80("sm_86", 80, 0, 99, 84, 1024, 128, 2, 32, 6.5),
    SM80("sm_87", 80, 0, 163, 16, 2048, 128, 2, 32, 10),
    SM80("sm_89", 80, CAN(fp8), 99, 142, 1024, 128, 2, 40, 3),
    SM80("sm_90", 80, CAN(fp8) | CAN(mma_f64) | CAN(overlap), 227, 132, 2560, 128, 128, 56, 18),
    /* the B200; has sm_90's */
    SM80("sm_100", 86, CAN(fp8) | CAN(mma_f64) | CAN(overlap), 227, 148, 2560, 128, 64, 56, 27),
    SM80("sm_120", 87, CAN(fp8) | CAN(overlap), 99, 170, 1024, 128, 2, 40, 4.4),
    SM75("sm_75", 65, 0, 64, 40, 1024, 64, 2, 20, 5), /* the T4 */
    SM72("sm_72", 63, 0, 96, 8, 1024, 64, 32, 32, 12), /* Xavier */
    SM70("sm_70", 63, 0, 96, 80, 1024, 64, 32, 20, 7.3), /* the V100 */
    SM50("sm_62", 32768, 2, 128, 4, 32, 23), /* the TX2 */
    SM50("sm_61", 65536, 30, 128, 4, 32, 11.6), /* the Titan Xp */
    SM50("sm_60", 65536, 56, 64, 32, 20, 8.8), /* the P100 */
    SM50("sm_53", 32768, 2, 128, 4, 24, 12.8), /* the TX1 */
    SM50("sm_52", 65536, 24, 128, 4, 24, 13), /* the Titan X */
    SM50("sm_50", 65536, 5, 128, 4, 24, 16), /* the GTX 750 Ti */
    RDNA("gfx1100", TCC_FAMILY_GFX11, 1536, 48, 1024),
    RDNA("gfx1101", TCC_FAMILY_GFX11, 1536, 30, 1024),
    RDNA("gfx1102", TCC_FAMILY_GFX11, 1024, 16, 1024),
    RDNA("gfx1103", TCC_FAMILY_GFX11, 1024, 6, 1024),
    RDNA("gfx1150", TCC_FAMILY_GFX11, 1024, 8, 1024),
    RDNA("gfx1151", TCC_FAMILY_GFX11, 1536, 20, 1024),
    RDNA("gfx1200", TCC_FAMILY_GFX12, 1536, 16, 2048),
    RDNA("gfx1201", TCC_FAMILY_GFX12, 1536, 32, 2048),
};

static const struct {
    tcc_vendor vendor;
    unsigned can; /* a bit for each capability */
} families[] = {
#define FAMILY(id, vendor, passes, capabilities) {TCC_VENDOR_##vendor, capabilities},
#include "ir/families.def"
};
static_assert(TCC_CAPABILITY_COUNT <= 32, "capabilities are bits of an unsigned");

static const struct {
    const char *target;
    tcc_mma mma;
} mmas[] = {
#define MMA(id, target, ptx, m, k, n_step, n_max, across, a, b, acc, lanes, per8)                   \
    {#target, {#id, ptx, m, k, n_step, n_max, across, TCC_##a, TCC_##b, TCC_##acc, lanes, per8}},
#include "ir/mma.def"
};

/* The lanes hold D exactly once, for every N. */
#define MMA(id, target, ptx, m, k, n_step, n_max, across, a, b, acc, lanes, per8)                   \
    static_assert((m) * 8 == (lanes) * (per8), #id ": lanes do not hold D exactly once");          \
    static_assert((n_max) % (n_step) == 0, #id ": N");
#include "ir/mma.def"

static const struct {
    tcc_family family;
    unsigned needs; /* capabilities */
    tcc_mma_sync mma;
} mma_syncs[] = {
#define ROW(family, needs, ptx, instr, m, n, k, rows, a, b, acc, of_a, of_b, of_d, of_r)            \
    {TCC_FAMILY_##family, needs,                                                                    \
     {TCC_INSTR_##instr, ptx, m, n, k, rows, TCC_##a, TCC_##b, TCC_##acc, TCC_FRAGMENT_##of_a,      \
      TCC_FRAGMENT_##of_b, TCC_FRAGMENT_##of_d, TCC_FRAGMENT_##of_r}},
#define MMA_SYNC(family, needs, ptx, rows, k, a, b, acc, of_a, of_b, of_d)                          \
    ROW(family, needs, ptx, MMA, TCC_MMA_SYNC_M, TCC_MMA_SYNC_N, k, rows, a, b, acc, of_a, of_b, of_d, of_d)
#define WMMA_SYNC(family, m, n, a, b, acc, of_a, of_b, of_d, of_r)                                  \
    ROW(family, 0, 63, MMA, m, n, 16, m, a, b, acc, of_a, of_b, of_d, of_r)
#define FMA(family, elem, acc) ROW(family, 0, 0, FMA, 16, 32, 1, 1, elem, elem, acc, fma_a, fma_b, fma_d, fma_d)
#include "ir/mma_sync.def"
#include "ir/fma.def"
};

static const struct {
    tcc_family family;
    tcc_wmma wmma;
} wmmas[] = {
#define WMMA(family, k, a, b, acc, acc_bits, name)                                                 \
    {TCC_FAMILY_##family, {#name, k, TCC_##a, TCC_##b, TCC_##acc, acc_bits}},
#include "ir/wmma.def"
};

const tcc_target *tcc_target_at(size_t i)
{
    return i < sizeof targets / sizeof *targets ? &targets[i] : NULL;
}

const tcc_target *tcc_target_find(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i];
    return NULL;
}

const tcc_target *tcc_target_named(const char *name, tcc_diag *diag)
{
    const tcc_target *target = name ? tcc_target_find(name) : NULL;
    tcc_str names = {0};
    if (target || (name && tcc_nearest_target_tell(name, diag, (tcc_loc){0, 0}).target))
        return target;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        tcc_str_printf(&names, "%s%s", i ? ", " : "", targets[i].name);
    tcc_error(diag, TCC_ERR_TARGET, (tcc_loc){0, 0}, "no target is named '%s'; there are %s",
              name ? name : "", tcc_str_text(&names));
    tcc_str_free(&names);
    return NULL;
}

tcc_vendor tcc_target_vendor(const tcc_target *target)
{
    return families[target->family].vendor;
}

bool tcc_target_can(const tcc_target *target, tcc_capability capability)
{
    return !tcc_target_cannot(target, 1u << capability);
}

unsigned tcc_target_cannot(const tcc_target *target, unsigned capabilities)
{
    return capabilities & ~(families[target->family].can | target->can);
}

tcc_status tcc_target_lacks(const tcc_target *target, const char *where, tcc_diag *diag,
                            tcc_loc loc)
{
    tcc_error(diag, TCC_ERR_UNSUPPORTED, loc, "not supported yet: kernels for %s, which has no row in %s",
              target->name, where);
    return TCC_ERR_UNSUPPORTED;
}

const tcc_target *tcc_target_of(const tcc_ir *ir)
{
    return tcc_target_find(tcc_attr_str(&ir->attrs, "target", targets[0].name));
}

const tcc_target *tcc_func_target(const tcc_func *f)
{
    const tcc_target *target = tcc_target_of(f->ir);
    bool plain = target && target->plain && tcc_attr_is(&f->attrs, "target", target->plain);
    return plain ? tcc_target_find(target->plain) : target;
}

const tcc_mma *tcc_mma_find(const tcc_target *target, tcc_scalar a, tcc_scalar b, tcc_scalar acc)
{
    for (size_t i = 0; target && i < sizeof mmas / sizeof *mmas; i++) {
        const tcc_mma *mma = &mmas[i].mma;
        if (!strcmp(mmas[i].target, target->name) && mma->a == a && mma->b == b && mma->acc == acc)
            return mma;
    }
    return NULL;
}

const tcc_mma *tcc_mma_of(const tcc_op *op)
{
    tcc_scalar a, b;
    if (!tcc_attr_scalar(&op->attrs, "type", &a))
        return NULL;
    b = a;
    if (tcc_attr_str(&op->attrs, "type_b", NULL) && !tcc_attr_scalar(&op->attrs, "type_b", &b))
        return NULL;
    return tcc_mma_find(tcc_target_of(op->block->func->ir), a, b, op->operands[0]->type->elem);
}

/* wmma.def and mma_sync.def have one row for both signs. */
static tcc_scalar signed_of(tcc_scalar s)
{
    return s == TCC_u8 ? TCC_i8 : s == TCC_u4 ? TCC_i4 : s;
}

bool tcc_mma_sync_is_opaque(const tcc_mma_sync *mma)
{
    return tcc_fragments[mma->of_d].opaque;
}

static bool has_shape(const tcc_mma_sync *mma, tcc_mma_block block)
{
    return mma->m == block.m && mma->n == block.n;
}

bool tcc_mma_sync_block(const tcc_target *target, tcc_instr instr, size_t i, tcc_mma_block *out)
{
    const tcc_mma_sync *first = NULL;
    for (size_t j = 0; target && j < sizeof mma_syncs / sizeof *mma_syncs; j++) {
        const tcc_mma_sync *mma = &mma_syncs[j].mma;
        if (mma_syncs[j].family != target->family || mma->instr != instr)
            continue;
        first = first ? first : mma;
        *out = (tcc_mma_block){mma->m, mma->n};
        if (mma->a == first->a && mma->b == first->b && mma->acc == first->acc && !i--)
            return true;
    }
    return false;
}

/* block: NULL for any. */
static const tcc_mma_sync *find(const tcc_target *target, tcc_instr instr, const tcc_mma_block *block, tcc_scalar a,
                                tcc_scalar b, tcc_scalar acc)
{
    for (size_t i = 0; target && i < sizeof mma_syncs / sizeof *mma_syncs; i++) {
        const tcc_mma_sync *mma = &mma_syncs[i].mma;
        if (mma_syncs[i].family == target->family && !tcc_target_cannot(target, mma_syncs[i].needs) &&
            (instr == TCC_INSTR_COUNT || mma->instr == instr) &&
            mma->a == signed_of(a) && mma->b == signed_of(b) && mma->acc == acc &&
            (a == b || !tcc_mma_sync_is_opaque(mma)) && (!block || has_shape(mma, *block)))
            return mma;
    }
    return NULL;
}

const tcc_mma_sync *tcc_mma_sync_find(const tcc_target *target, tcc_instr instr, tcc_scalar a, tcc_scalar b,
                                      tcc_scalar acc)
{
    return find(target, instr, NULL, a, b, acc);
}

const tcc_mma_sync *tcc_mma_sync_of_block(const tcc_target *target, tcc_instr instr, tcc_mma_block block, tcc_scalar a,
                                          tcc_scalar b, tcc_scalar acc)
{
    return find(target, instr, &block, a, b, acc);
}

/* What an op says, m32n8k16, or the first of those of a warp. */
static tcc_mma_block block_of(const tcc_op *op)
{
    const char *shape = tcc_attr_str(&op->attrs, "shape", "");
    tcc_mma_block block = {0, 0};
    if (sscanf(shape, "m%" SCNd64 "n%" SCNd64 "k", &block.m, &block.n) != 2)
        tcc_mma_sync_block(tcc_func_target(op->block->func), TCC_INSTR_MMA, 0, &block);
    return block;
}

const tcc_mma_sync *tcc_mma_sync_of(const tcc_op *op, tcc_scalar types[3])
{
    static const char *const attrs[] = {"a", "b", "acc"};
    tcc_scalar of_op[3];
    for (int i = 0; i < 3; i++)
        if (!tcc_attr_scalar(&op->attrs, attrs[i], &of_op[i]))
            return NULL;
    if (types)
        memcpy(types, of_op, sizeof of_op);
    return tcc_mma_sync_of_block(tcc_func_target(op->block->func), TCC_INSTR_MMA, block_of(op), of_op[0], of_op[1],
                                 of_op[2]);
}

static tcc_fragment_id fragment_of(const tcc_mma_sync *mma, tcc_hold_as as)
{
    const tcc_fragment_id fragments[] = {mma->of_r, mma->of_a, mma->of_b, mma->of_d};
    return fragments[as];
}

/* Whether it can hold tiles with elements of this many bits. */
static bool is_for_bits(const tcc_mma_sync *mma, tcc_hold_as as, unsigned bits)
{
    bool operand = as == TCC_AS_A || as == TCC_AS_B;
    return !operand || tcc_scalar_bits(mma->a) == bits;
}

tcc_fragment_id tcc_mma_sync_held(const tcc_target *target, tcc_instr instr, tcc_mma_block block, tcc_hold_as as,
                                  unsigned bits)
{
    for (size_t i = 0; target && i < sizeof mma_syncs / sizeof *mma_syncs; i++) {
        const tcc_mma_sync *mma = &mma_syncs[i].mma;
        if (mma_syncs[i].family == target->family && mma->instr == instr && has_shape(mma, block) &&
            is_for_bits(mma, as, bits))
            return fragment_of(mma, as);
    }
    return TCC_FRAGMENT_COUNT;
}

const tcc_mma_sync *tcc_mma_sync_with(const tcc_target *target, tcc_hold_as as, unsigned bits, tcc_fragment_id id)
{
    for (size_t i = 0; target && i < sizeof mma_syncs / sizeof *mma_syncs; i++) {
        const tcc_mma_sync *mma = &mma_syncs[i].mma;
        if (mma_syncs[i].family == target->family && mma->instr == TCC_INSTR_MMA && fragment_of(mma, as) == id &&
            is_for_bits(mma, as, bits))
            return mma;
    }
    return NULL;
}

tcc_fragment_id tcc_mma_sync_accessed(const tcc_op *op, tcc_scalar *elem)
{
    bool loads = op->code == TCC_OP_nvvm_wmma_load;
    *elem = op->operands[!loads]->type->elem;
    if (loads && !tcc_attr_scalar(&op->attrs, "elem", elem))
        return TCC_FRAGMENT_COUNT;
    bool is_a = tcc_attr_is(&op->attrs, "of", "a");
    tcc_hold_as as = !loads ? TCC_AS_SUM : is_a ? TCC_AS_A : TCC_AS_B;
    return tcc_mma_sync_held(tcc_func_target(op->block->func), TCC_INSTR_MMA, block_of(op), as, tcc_scalar_bits(*elem));
}

void tcc_mma_sync_lines(const tcc_op *op, tcc_fragment_id fragment, unsigned *lines, unsigned *elems)
{
    const tcc_fragment *f = &tcc_fragments[fragment];
    bool columns = tcc_attr_is(&op->attrs, "layout", "col");
    *lines = columns ? f->cols : f->rows;
    *elems = columns ? f->rows : f->cols;
}

const tcc_wmma *tcc_wmma_find(const tcc_target *target, tcc_scalar a, tcc_scalar b, tcc_scalar acc,
                              int64_t k)
{
    const tcc_wmma *best = NULL;
    for (size_t i = 0; i < sizeof wmmas / sizeof *wmmas; i++) {
        const tcc_wmma *w = &wmmas[i].wmma;
        if (wmmas[i].family == target->family && w->a == signed_of(a) && w->b == signed_of(b) &&
            w->acc == acc && (k ? w->k == k : !best || w->k > best->k))
            best = w;
    }
    return best;
}

bool tcc_wmma_is_in_halves(const tcc_wmma *w)
{
    return tcc_scalar_bits(w->acc) < w->acc_bits;
}

bool tcc_wmma_sums_in_halves(const tcc_target *target, tcc_scalar acc)
{
    const tcc_wmma *w = tcc_wmma_find(target, acc, acc, acc, 0);
    return w && tcc_wmma_is_in_halves(w);
}

int64_t tcc_wmma_result_words(const tcc_wmma *w, int64_t wave)
{
    return TCC_WMMA_SIDE * TCC_WMMA_SIDE / wave * w->acc_bits / 32;
}

bool tcc_mma_shape_find(const tcc_target *target, tcc_instr instr, tcc_scalar a, tcc_scalar b, tcc_scalar acc,
                        tcc_mma_shape *out)
{
    const tcc_mma *mma = instr == TCC_INSTR_WGMMA ? tcc_mma_find(target, a, b, acc) : NULL;
    const tcc_wmma *wmma = instr == TCC_INSTR_WMMA ? tcc_wmma_find(target, a, b, acc, 0) : NULL;
    const tcc_mma_sync *sync = tcc_mma_sync_find(target, instr, a, b, acc);
    if (mma)
        *out = (tcc_mma_shape){mma->m, mma->k, mma->n_step, mma->n_max};
    else if (wmma)
        *out = (tcc_mma_shape){TCC_WMMA_SIDE, wmma->k, TCC_WMMA_SIDE, TCC_WMMA_SIDE};
    else if (sync)
        *out = (tcc_mma_shape){sync->m, sync->k, sync->n, sync->n};
    return mma || wmma || sync;
}

bool tcc_target_multiplies(const tcc_target *target, size_t i, tcc_multiplied *out)
{
    for (size_t j = 0; j < sizeof mmas / sizeof *mmas; j++) {
        const tcc_mma *m = &mmas[j].mma;
        *out = (tcc_multiplied){TCC_INSTR_WGMMA, m->a, m->b, m->acc};
        bool listed = m->a == signed_of(m->a) && m->b == signed_of(m->b);
        if (listed && !strcmp(mmas[j].target, target->name) && !i--)
            return true;
    }
    for (size_t j = 0; j < sizeof mma_syncs / sizeof *mma_syncs; j++) {
        const tcc_mma_sync *m = &mma_syncs[j].mma;
        *out = (tcc_multiplied){m->instr, m->a, m->b, m->acc};
        if (tcc_mma_sync_find(target, m->instr, m->a, m->b, m->acc) == m && !i--)
            return true;
    }
    for (size_t j = 0; j < sizeof wmmas / sizeof *wmmas; j++) {
        const tcc_wmma *m = &wmmas[j].wmma;
        *out = (tcc_multiplied){TCC_INSTR_WMMA, m->a, m->b, m->acc};
        if (wmmas[j].family == target->family && !i--)
            return true;
    }
    return false;
}

tcc_instr tcc_target_instr_for(const tcc_target *target, tcc_instr instr, tcc_scalar a, tcc_scalar b, tcc_scalar acc)
{
    tcc_multiplied m;
    for (size_t i = 0; tcc_target_multiplies(target, i, &m); i++)
        if ((instr == TCC_INSTR_COUNT || m.instr == instr) && m.a == signed_of(a) && m.b == signed_of(b) &&
            m.acc == acc)
            return m.instr;
    return TCC_INSTR_COUNT;
}

tcc_instr tcc_target_instr(const tcc_target *target)
{
    tcc_multiplied first;
    return tcc_target_multiplies(target, 0, &first) ? first.instr : TCC_INSTR_NAIVE;
}

bool tcc_target_converts(const tcc_target *target, tcc_scalar elem)
{
    enum {
        BYTES_AND_MORE = 1u << TCC_f32 | 1u << TCC_f16 | 1u << TCC_bf16 | 1u << TCC_i32 |
                         1u << TCC_i8 | 1u << TCC_u8 | 1u << TCC_e4m3 | 1u << TCC_e5m2,
        HALF_BYTES = 1u << TCC_i4 | 1u << TCC_u4
    };
    unsigned elems = BYTES_AND_MORE |
                     (tcc_target_can(target, TCC_CAN_half_bytes) ? HALF_BYTES : 0) |
                     (tcc_target_can(target, TCC_CAN_tf32) ? 1u << TCC_tf32 : 0) |
                     (tcc_target_can(target, TCC_CAN_f64) ? 1u << TCC_f64 : 0);
    return elems >> elem & 1;
}

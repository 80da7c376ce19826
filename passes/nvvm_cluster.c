/* nvvm_cluster: barriers of a cluster, and the data that its CTAs pass to the first of them.
 *
 * All CTAs hold a tile in the same layout, so a thread's contribution is only read by the thread with the same
 * number: registers are stored unchanged, in units of 16 bytes, each next to that of the neighbouring thread.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/cluster.h"
#include "passes/nvvm.h"

enum { UNIT_BYTES = 16 };

/* In a role the warps of all roles come, and the launch has no others. */
void tcc_nvvm_cluster_barrier(tcc_nvvm_lowering *l, tcc_op *op)
{
    if (l->role.op && (l->role.one || op->block->parent != l->role.op)) {
        TCC_LOW_REFUSE(&l->low, op, "async.cluster_barrier that not all threads of a role reach exactly once");
        return;
    }
    tcc_nvvm_publish_barriers(l);
    TCC_EMIT_V(&l->low.b, nvvm_warp_sync, NULL); /* one thread of a warp may come from elsewhere */
    tcc_op *arrive = TCC_EMIT_V(&l->low.b, nvvm_cluster_arrive, NULL);
    if (tcc_only_initialises_before(arrive)) /* whose fence has released all there is */
        tcc_attr_set_int(l->low.ir, &arrive->attrs, "relaxed", 1);
    TCC_EMIT_V(&l->low.b, nvvm_cluster_wait, NULL);
}

/* The layout of a tile in a stage: the registers of each of its vecs in units. */
typedef struct placed {
    tcc_held held;
    int64_t in_unit; /* registers */
    int64_t unit_bytes;
    int64_t threads;
    const tcc_op *alloc;
} placed;

static bool place(tcc_nvvm_lowering *l, const tcc_op *op, placed *p)
{
    const tcc_type *tile = op->operands[0]->type;
    int64_t bytes = tcc_scalar_bits(tile->elem) / 8;
    *p = (placed){.alloc = tcc_nvvm_buffer(l, op, op->operands[1]), .threads = tcc_nvvm_threads(l)};
    if (!p->alloc || !tcc_low_held(&l->low, op, tile, &p->held))
        return false;
    for (p->in_unit = bytes ? UNIT_BYTES / bytes : 0; p->in_unit > 1 && p->held.in_one % p->in_unit;)
        p->in_unit /= 2;
    p->unit_bytes = p->in_unit * bytes;
    if (p->unit_bytes && p->held.spread.n_registers * p->threads * bytes == tcc_panels_of(p->alloc).stage_bytes)
        return true;
    TCC_LOW_REFUSE(&l->low, op, "%s of such a tile", tcc_op_info_get(op->code)->name);
    return false;
}

/* The distance of each thread's n-th unit from its first. */
static int64_t unit_offset(const placed *p, int64_t n)
{
    return n * p->threads * p->unit_bytes;
}

/* The thread's first unit of a stage that begins at an address. */
static tcc_value *own_place(tcc_nvvm_lowering *l, const placed *p, tcc_value *stage)
{
    return tcc_low_bin(&l->low, TCC_OP_arith_add, stage, tcc_low_mul(&l->low, tcc_nvvm_thread(l), p->unit_bytes));
}

/* The place in the cluster of the CTA that adds up. */
static tcc_value *first_place(tcc_nvvm_lowering *l, const tcc_op *op, tcc_value *rank)
{
    const tcc_op *ctas = op->block->parent;
    while (ctas->code != TCC_OP_tile_ctas)
        ctas = ctas->block->parent;
    int64_t apart = tcc_attr_int(&op->attrs, "apart", 1);
    const tcc_block *body = ctas->regions[0];
    tcc_value *place = tcc_value_map_get(l->low.map, body->args[body->n_args - 1]);
    return apart == 1 ? tcc_low_c32(&l->low, 0)
                      : tcc_low_bin(&l->low, TCC_OP_arith_sub, place, tcc_low_mul(&l->low, rank, apart));
}

void tcc_nvvm_contribute(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    placed p;
    if (!place(l, op, &p))
        return;
    tcc_value *rank = tcc_low_scalar(low, op->operands[2]), *zero = tcc_low_c32(low, 0);
    tcc_op *others = tcc_low_if(low, tcc_low_cmp(low, "ne", rank, zero));
    tcc_value *there = first_place(l, op, rank);
    tcc_value *first = TCC_EMIT(&low->b, nvvm_mapa, low->i32, tcc_nvvm_stage(l, p.alloc, zero), there);
    if (p.alloc->results[0].type->dims[0].size > 1) {
        tcc_value *stage = tcc_low_mul(low, tcc_low_add(low, rank, -1), tcc_panels_of(p.alloc).stage_bytes);
        first = tcc_low_bin(low, TCC_OP_arith_add, first, stage);
    }
    first = own_place(l, &p, first);
    for (size_t i = 0, n = 0; i < p.held.n; i++) {
        tcc_value *v = tcc_low_unpacked(low, op->operands[0], i);
        for (int64_t r = 0; r < p.held.in_one; r += p.in_unit, n++) {
            tcc_value *at = tcc_low_add(low, first, unit_offset(&p, (int64_t)n));
            TCC_EMIT_V(&low->b, nvvm_st_shared_cluster, at, tcc_low_slice(low, v, r, p.in_unit));
        }
    }
    tcc_low_end(low, others);
}

/* Registers of a tile's i-th vec, to which those of all stages are added. */
static tcc_value *collect_vec(tcc_nvvm_lowering *l, const placed *p, const tcc_value *a, size_t i, tcc_value *first)
{
    tcc_lowering *low = &l->low;
    tcc_value *v = tcc_low_unpacked(low, a, i);
    int64_t n_units = p->held.in_one / p->in_unit, stages = p->alloc->results[0].type->dims[0].size;
    tcc_value **units = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, (size_t)n_units);
    const tcc_type *unit = tcc_low_vec(low, a->type->elem, p->in_unit);
    for (int64_t u = 0; u < n_units; u++) {
        units[u] = tcc_low_slice(low, v, u * p->in_unit, p->in_unit);
        for (int64_t s = 0; s < stages; s++) {
            int64_t at = s * tcc_panels_of(p->alloc).stage_bytes + unit_offset(p, (int64_t)i * n_units + u);
            tcc_value *part = TCC_EMIT(&low->b, nvvm_ld_shared, unit, tcc_low_add(low, first, at));
            units[u] = TCC_EMIT(&low->b, arith_add, unit, units[u], part);
        }
    }
    return tcc_low_pack(low, a->type->elem, (size_t)n_units, units, p->held.in_one);
}

void tcc_nvvm_collect(tcc_nvvm_lowering *l, tcc_op *op)
{
    tcc_lowering *low = &l->low;
    const tcc_value *a = op->operands[0];
    placed p;
    if (!place(l, op, &p))
        return;
    size_t n = p.held.n;
    const tcc_type **types = TCC_NEW_ARRAY(low->ctx->scratch, const tcc_type *, n);
    tcc_value **own = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, n);
    tcc_value **sums = TCC_NEW_ARRAY(low->ctx->scratch, tcc_value *, n);
    for (size_t i = 0; i < n; i++) {
        own[i] = tcc_low_unpacked(low, a, i);
        types[i] = own[i]->type;
    }
    tcc_value *zero = tcc_low_c32(low, 0),
              *is_first = tcc_low_cmp(low, "eq", tcc_low_scalar(low, op->operands[2]), zero);
    tcc_value *first = own_place(l, &p, tcc_nvvm_stage(l, p.alloc, zero));
    tcc_op *test = tcc_op_create(&low->b, TCC_OP_scf_if, 1, &is_first, n, types);
    tcc_builder outer = low->b;
    low->b = tcc_builder_at_end(test->regions[0]);
    low->b.loc = op->loc;
    for (size_t i = 0; i < n; i++)
        sums[i] = collect_vec(l, &p, a, i, first);
    tcc_op_create(&low->b, TCC_OP_scf_yield, n, sums, 0, NULL);
    low->b = tcc_builder_at_end(test->regions[1]);
    low->b.loc = op->loc;
    tcc_op_create(&low->b, TCC_OP_scf_yield, n, own, 0, NULL);
    low->b = outer;
    for (size_t i = 0; i < n; i++)
        sums[i] = &test->results[i];
    tcc_low_set_registers(low, &op->results[0], &p.held, sums);
}

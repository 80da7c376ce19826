/* async_rules: what ops of the async level want of their operands, results, attributes and regions
 * together.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/cluster.h"
#include "ir/rules.h"
#include "ir/shared.h"

typedef tcc_verifier verifier;

#define ERROR tcc_verify_error
#define TEXT(type) tcc_verify_text(v, type)

/* ---- async ----------------------------------------------------------------------------- */

static void check_alloc(verifier *v, const tcc_op *op)
{
    const tcc_type *r = op->results[0].type;
    int64_t swizzle = tcc_attr_int(&op->attrs, "swizzle", 0);
    /* As wide as the swizzle, unless it says: then it is rows of panels that are swizzled. */
    int64_t panel = tcc_attr_int(&op->attrs, "panel", swizzle ? swizzle : 16);
    int64_t contiguous = tcc_attr_int(&op->attrs, "contiguous", 0) ? 1 : 0;
    int64_t bits = r->dims[1 + contiguous].size * tcc_scalar_bits(r->elem);
    if (bits % (panel * 8))
        ERROR(v, op, "r is %s, expected whole panels of %lld bytes along its contiguous dimension",
              TEXT(r), (long long)panel);
}

static void check_ring(verifier *v, const tcc_op *op)
{
    int64_t stages = tcc_attr_int(&op->attrs, "stages", 0);
    for (unsigned i = 0; i < op->n_operands; i++) {
        const tcc_type *t = op->operands[i]->type;
        if (t->kind != TCC_KIND_smem || t->dims[0].size != stages)
            ERROR(v, op, "operand %u is %s, expected smem of %lld stages", i, TEXT(t),
                  (long long)stages);
    }
    if (op->n_operands && tcc_is_of_turns(op))
        ERROR(v, op, "has buffers, but is for taking turns");
    bool bytes = tcc_attr_is(&op->attrs, "completion", "bytes");
    if (tcc_attr_find(&op->attrs, "cluster") && !bytes && !tcc_is_of_words(op))
        ERROR(v, op, "is of a cluster, but does not count bytes and has no words");
    int64_t ctas = tcc_attr_int(&op->attrs, "cluster", 1), rows = tcc_attr_int(&op->attrs, "rows", ctas);
    if (rows < 1 || ctas % rows)
        ERROR(v, op, "has rows of a cluster of %lld: %lld, expected a number that divides it", (long long)ctas,
              (long long)rows);
}

/* async.role, async.one. */
static void check_region(verifier *v, const tcc_op *op)
{
    tcc_verify_no_args(v, op);
    tcc_verify_yields(v, op, 0);
    for (const tcc_block *b = op->block; b->parent; b = b->parent->block)
        if (b->parent->code == op->code)
            ERROR(v, op, "is inside another");
}

/* waves = [rows, columns] of this many warps, block = [rows, columns] of an instruction. */
static void check_role(verifier *v, const tcc_op *op)
{
    check_region(v, op);
    int64_t warps = tcc_attr_int(&op->attrs, "warps", 0);
    tcc_verify_spread(v, op, warps);
    if (tcc_attr_find(&op->attrs, "waves")) {
        const tcc_attr *waves = tcc_verify_ints(v, op, "waves", 2, 1, warps);
        if (waves && waves[0].i * waves[1].i != warps)
            ERROR(v, op, "waves is [%lld, %lld], expected %lld together", (long long)waves[0].i,
                  (long long)waves[1].i, (long long)warps);
    }
    if (tcc_attr_find(&op->attrs, "block"))
        tcc_verify_ints(v, op, "block", 2, 1, INT16_MAX);
}

static const tcc_op *def_of(const tcc_value *v, tcc_opcode code)
{
    return v->def && v->def->code == code ? v->def : NULL;
}

/* With turns, a role can only wait for its own turn. */
static void check_wait(verifier *v, const tcc_op *op)
{
    const tcc_op *ring = def_of(op->operands[0], TCC_OP_async_ring);
    if (ring && tcc_is_of_turns(ring))
        ERROR(v, op, "uses a ring for taking turns, which are only acquired and released");
}

static void check_commit(verifier *v, const tcc_op *op)
{
    const tcc_op *ring = def_of(TCC_VIEW(async_commit, op)->ring, TCC_OP_async_ring);
    check_wait(v, op);
    bool bytes = ring && tcc_attr_is(&ring->attrs, "completion", "bytes");
    if (ring && bytes != (tcc_attr_find(&op->attrs, "bytes") != NULL))
        ERROR(v, op, bytes ? "its ring counts bytes: needs 'bytes'" : "its ring counts no bytes");
}

/* A buffer is one of its ring's. */
static void check_buffer(verifier *v, const tcc_op *op, const tcc_value *ring, const char *name,
                         const tcc_value *buffer)
{
    const tcc_op *def = def_of(ring, TCC_OP_async_ring);
    for (unsigned i = 0; def && i < def->n_operands; i++)
        if (def->operands[i] == buffer)
            return;
    if (!def)
        return;
    ERROR(v, op, "%s, %s, is not a buffer of its ring", name, TEXT(buffer->type));
}

static void check_copy(verifier *v, const tcc_op *op)
{
    const tcc_async_copy_operands *o = TCC_VIEW(async_copy, op);
    tcc_verify_access(v, op, o->tensor->type, o->buffer->type, 1);
    tcc_verify_copied(v, op, o->tensor->type, "buffer", o->buffer->type);
    check_buffer(v, op, o->ring, "buffer", o->buffer);
    tcc_peers peers = tcc_peers_of(op);
    const tcc_op *ring = def_of(o->ring, TCC_OP_async_ring);
    tcc_fillers fillers = ring ? tcc_fillers_of(ring) : (tcc_fillers){0};
    if (peers.n > 1 && !tcc_attr_is(&op->attrs, "copy", "tma"))
        ERROR(v, op, "copies to several CTAs, but not by the copy engine");
    else if (peers.n > 1 && ring && !tcc_fillers_have(&fillers, peers))
        ERROR(v, op, "is to %lld CTAs at places %lld apart, which do not fill its ring", (long long)peers.n,
              (long long)peers.apart);
}

static void check_put(verifier *v, const tcc_op *op)
{
    const tcc_async_put_operands *o = TCC_VIEW(async_put, op);
    const tcc_type *buffer = o->buffer->type, *a = o->a->type;
    if (a->rank != 2 || buffer->rank != 3 || buffer->elem != a->elem ||
        buffer->dims[1].size != a->dims[0].size || buffer->dims[2].size != a->dims[1].size)
        ERROR(v, op, "a is %s, which is not a stage of buffer, %s", TEXT(a), TEXT(buffer));
    check_buffer(v, op, o->ring, "buffer", o->buffer);
}

static void check_async_read(verifier *v, const tcc_op *op)
{
    const tcc_async_read_operands *o = TCC_VIEW(async_read, op);
    const tcc_type *buffer = o->buffer->type, *r = op->results[0].type;
    const tcc_attr *at = tcc_verify_ints(v, op, "at", 2, 0, INT32_MAX);
    check_buffer(v, op, o->ring, "buffer", o->buffer);
    bool ok = at && r->rank == 2 && buffer->rank == 3 && r->elem == buffer->elem;
    for (unsigned d = 0; ok && d < 2; d++)
        ok = at[d].i + r->dims[d].size <= buffer->dims[1 + d].size;
    if (at && !ok)
        ERROR(v, op, "r, %s, is not part of a stage of buffer, %s", TEXT(r), TEXT(buffer));
}

/* A buffer outside rings, with one stage. */
static bool check_single(verifier *v, const tcc_op *op, const tcc_type *buffer)
{
    bool ok = buffer->rank == 3 && buffer->dims[0].size == 1;
    if (!ok)
        ERROR(v, op, "buffer is %s, expected one stage of a matrix", TEXT(buffer));
    return ok;
}

static void check_async_write(verifier *v, const tcc_op *op)
{
    const tcc_type *buffer = op->operands[0]->type, *a = op->operands[3]->type;
    if (!check_single(v, op, buffer) || !tcc_verify_matrix(v, op, a))
        return;
    if (tcc_scalar_classify(a->elem) != tcc_scalar_classify(buffer->elem))
        ERROR(v, op, "a is %s and buffer is %s, expected both float or both int", TEXT(a),
              TEXT(buffer));
    for (unsigned d = 0; d < 2; d++)
        if (a->dims[d].size > buffer->dims[1 + d].size)
            ERROR(v, op, "a, %s, is larger than buffer, %s", TEXT(a), TEXT(buffer));
}

/* A buffer of a's element, with an element of its own for each of a's; for one that is reduced away: for
 * each warp. */
static void check_exchanged(verifier *v, const tcc_op *op, int reduced)
{
    const tcc_type *a = op->operands[0]->type, *buffer = op->operands[1]->type;
    if (!check_single(v, op, buffer) || !tcc_verify_matrix(v, op, a))
        return;
    if (a->elem != buffer->elem)
        ERROR(v, op, "a is %s and buffer is %s, expected the same element", TEXT(a), TEXT(buffer));
    for (int d = 0; d < 2; d++)
        if (d != reduced && a->dims[d].size > buffer->dims[1 + d].size)
            ERROR(v, op, "a, %s, is larger than buffer, %s", TEXT(a), TEXT(buffer));
}

static void check_exchange(verifier *v, const tcc_op *op)
{
    tcc_verify_convert(v, op);
    check_exchanged(v, op, -1);
}

static void check_combine(verifier *v, const tcc_op *op)
{
    tcc_verify_reduce(v, op);
    check_exchanged(v, op, (int)tcc_attr_int(&op->attrs, "dim", 0));
}

/* A stage for each CTA that shares the sum but the first, of a's elements. */
static void check_contributed(verifier *v, const tcc_op *op)
{
    const tcc_type *a = op->operands[0]->type, *buffer = op->operands[1]->type;
    if (!tcc_verify_matrix(v, op, a))
        return;
    bool same = a->elem == buffer->elem;
    for (unsigned d = 0; d < 2; d++)
        same &= a->dims[d].size == buffer->dims[1 + d].size;
    if (!same)
        ERROR(v, op, "a is %s and buffer is %s, expected stages of the same", TEXT(a), TEXT(buffer));
    if (op->n_results)
        tcc_verify_same(v, op, "a", a, "r", op->results[0].type);
    const tcc_op *ctas = op->block->parent;
    while (ctas && ctas->code != TCC_OP_tile_ctas)
        ctas = ctas->block->parent;
    int64_t n = ctas ? tcc_attr_int(&ctas->attrs, "cluster", 1) : 1;
    int64_t apart = tcc_attr_int(&op->attrs, "apart", 1), sharing = buffer->dims[0].size + 1;
    if (op->n_results ? n % sharing : sharing * apart != n)
        ERROR(v, op, "buffer has %lld stages, expected one for each further CTA of a cluster of %lld",
              (long long)buffer->dims[0].size, (long long)n);
}

static void check_send(verifier *v, const tcc_op *op)
{
    const tcc_type *buffer = op->operands[0]->type, *tensor = op->operands[1]->type;
    if (check_single(v, op, buffer))
        tcc_verify_access(v, op, tensor, buffer, 1);
    tcc_verify_copied(v, op, tensor, "buffer", buffer);
}

static void check_opaque(verifier *v, const tcc_op *op)
{
    tcc_verify_same(v, op, "a", op->operands[0]->type, "r", op->results[0].type);
    if (op->results[0].type->elem != TCC_i32)
        ERROR(v, op, "a is %s, expected an i32", TEXT(op->operands[0]->type));
}

static void check_async_mma(verifier *v, const tcc_op *op)
{
    const tcc_async_mma_operands *o = TCC_VIEW(async_mma, op);
    tcc_verify_product(v, op, o->a->type, o->b->type, o->c->type);
    check_buffer(v, op, o->ring, "b", o->b);
    unsigned n = op->n_operands - (tcc_mma_accumulate(op) != NULL);
    bool other = n == 7 && op->operands[5]->type->kind == TCC_KIND_ring &&
                 tcc_type_is_scalar(op->operands[6]->type, TCC_i32);
    if (o->a->type->kind == TCC_KIND_tile ? n != 5 : n != 5 && !other)
        ERROR(v, op, "a is %s, expected after c: %s", TEXT(o->a->type),
              o->a->type->kind == TCC_KIND_tile ? "nothing, or an i1"
                                                : "nothing, its ring and an i32, an i1, or all of them");
    else if (o->a->type->kind == TCC_KIND_smem)
        check_buffer(v, op, other ? op->operands[5] : o->ring, "a", o->a);
}

static void check_mma_wait(verifier *v, const tcc_op *op)
{
    tcc_verify_same(v, op, "c", op->operands[0]->type, "r", op->results[0].type);
}

/* ---- the table ------------------------------------------------------------------------- */

tcc_op_rule *const tcc_async_rules[TCC_OP_COUNT] = {
    [TCC_OP_async_read] = check_async_read,
    [TCC_OP_async_write] = check_async_write,
    [TCC_OP_async_exchange] = check_exchange,
    [TCC_OP_async_combine] = check_combine,
    [TCC_OP_async_contribute] = check_contributed,
    [TCC_OP_async_collect] = check_contributed,
    [TCC_OP_async_send] = check_send,
    [TCC_OP_async_opaque] = check_opaque,
    [TCC_OP_async_alloc] = check_alloc,
    [TCC_OP_async_ring] = check_ring,
    [TCC_OP_async_role] = check_role,
    [TCC_OP_async_one] = check_region,
    [TCC_OP_async_commit] = check_commit,
    [TCC_OP_async_wait] = check_wait,
    [TCC_OP_async_copy] = check_copy,
    [TCC_OP_async_put] = check_put,
    [TCC_OP_async_mma] = check_async_mma,
    [TCC_OP_async_mma_wait] = check_mma_wait,
};

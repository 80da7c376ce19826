/* buffer: buffer descriptors, and loads and stores through them.
 *
 * RDNA3 ISA, 9 "Vector Memory Buffer Instructions": an access whose offset (that of the lane and of
 * the instruction) is out of range reads as 0 and writes nothing. GPUs and their settings differ in
 * two things, and what depends on them is an error here: whether the scalar offset takes part in
 * the check, and whether an access that ends outside fails as a whole or word by word.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "interp/machine.h"

enum { WORD_BYTES = 4, MAX_ACCESS_BYTES = 16 };

/* Stores whole elements; false, reported, when they are parts of some or were never written. */
static bool store_bytes(tcc_thread *t, const tcc_inst *in, const tcc_param *p, int64_t at,
                        int64_t n, const uint8_t *bytes)
{
    int64_t size = tcc_scalar_bits(p->type->elem) / 8;
    bool floats = tcc_scalar_classify(p->type->elem) == TCC_CLASS_FLOAT;
    if (size && (at % size || n % size)) {
        TCC_WRONG(t->x, in->op, "%s stores %lld bytes from byte %lld of '%s' on: parts of elements",
                  tcc_op_info_get(in->op->code)->name, (long long)n, (long long)at, p->name);
        return false;
    }
    for (int64_t i = 0; floats && i < n; i += size) {
        uint64_t bits = 0;
        memcpy(&bits, bytes + i, (size_t)size); /* little-endian, as the GPU */
        if (tcc_is_poison(tcc_decode(bits, p->type->elem).f)) {
            tcc_stores_poison(t, in, p, (at + i) / size);
            return false;
        }
    }
    tcc_param_store_bytes(t->x->run, p, at, n, bytes);
    return true;
}

/* ---- descriptors ----------------------------------------------------------------------- */

tcc_outcome tcc_eval_amdgcn_make_buffer(tcc_thread *t, const tcc_inst *in)
{
    static const char *const names[] = {"tensors", "offsets", "sizes"};
    for (unsigned o = 0; o < 3; o++)
        if (!tcc_is_uniform(t, in, o, names[o]))
            return TCC_FAILED;
    const tcc_param *p = &t->x->run->params[tcc_operand_int(t, in, 0)];
    int64_t offset = tcc_operand_int(t, in, 1), bytes = (uint32_t)tcc_operand_int(t, in, 2);
    if (bytes && (offset < 0 || bytes > tcc_param_bytes(p) || offset > tcc_param_bytes(p) - bytes))
        return TCC_WRONG(t->x, in->op,
                         "%s: %lld bytes from byte %lld on are not in '%s', which has %lld",
                         tcc_op_info_get(in->op->code)->name, (long long)bytes, (long long)offset,
                         p->name, (long long)tcc_param_bytes(p));
    tcc_cell *r = tcc_cells(t, in->results[0]);
    for (unsigned l = 0; l < t->x->lanes; l++) {
        r[TCC_BUFFER_TENSOR * t->x->lanes + l].i = p - t->x->run->params;
        r[TCC_BUFFER_OFFSET * t->x->lanes + l].i = offset;
        r[TCC_BUFFER_BYTES * t->x->lanes + l].i = bytes;
    }
    return TCC_NEXT;
}

/* What all lanes of an access have in common. */
typedef struct access {
    const tcc_param *p;
    size_t index;                        /* of p */
    int64_t base, bytes, scalar, offset; /* of the buffer; added by the op */
    int64_t n, align;                    /* bytes of a lane; what its address is a multiple of */
} access;

static bool begin_access(tcc_thread *t, const tcc_inst *in, uint32_t value, access *a)
{
    if (!tcc_is_uniform(t, in, 0, "buffers") || !tcc_is_uniform(t, in, 2, "scalar offsets"))
        return false;
    const tcc_cell *buffer = tcc_cells(t, in->operands[0]) + __builtin_ctzll(t->mask);
    a->index = (size_t)buffer[TCC_BUFFER_TENSOR * t->x->lanes].i;
    a->p = &t->x->run->params[a->index];
    a->base = buffer[TCC_BUFFER_OFFSET * t->x->lanes].i;
    a->bytes = buffer[TCC_BUFFER_BYTES * t->x->lanes].i;
    a->scalar = (uint32_t)tcc_operand_int(t, in, 2);
    a->offset = tcc_attr_int(&in->op->attrs, "offset", 0);
    a->n = tcc_value_bytes(t, in, value);
    a->align = tcc_attr_int(&in->op->attrs, "align", a->n < WORD_BYTES ? a->n : WORD_BYTES);
    return a->n >= 0;
}

static bool wrong(tcc_thread *t, const tcc_inst *in, const access *a, int64_t at, const char *why)
{
    TCC_WRONG(t->x, in->op, "%s at bytes %lld to %lld of a buffer of %lld in '%s': %s",
              tcc_op_info_get(in->op->code)->name, (long long)at, (long long)(at + a->n - 1),
              (long long)a->bytes, a->p->name, why);
    return false;
}

/* The first byte of the tensor that a lane accesses, -1 for nothing; false, reported, when it is
 * not sure what happens. */
static bool place(tcc_thread *t, const tcc_inst *in, const access *a, unsigned lane, int64_t *out)
{
    int64_t checked = (int64_t)(uint32_t)tcc_lane_int(t, in, 1, lane) + a->offset;
    int64_t at = checked + a->scalar;
    *out = -1;
    if (checked + a->n - 1 > UINT32_MAX)
        return wrong(t, in, a, checked, "the offset has more than 32 bits");
    if (checked >= a->bytes)
        return true;
    if (checked + a->n > a->bytes)
        return wrong(t, in, a, checked, "it ends outside");
    if (at + a->n > a->bytes)
        return wrong(t, in, a, at, "the scalar offset, which is not checked, leads outside");
    if ((a->base + at) % a->align || t->x->run->base_align[a->index] % a->align)
        return wrong(t, in, a, at, "the address is not aligned");
    *out = a->base + at;
    return true;
}

tcc_outcome tcc_eval_amdgcn_buffer_load(tcc_thread *t, const tcc_inst *in)
{
    access a;
    if (!begin_access(t, in, in->results[0], &a))
        return TCC_FAILED;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        uint8_t bytes[MAX_ACCESS_BYTES] = {0};
        int64_t at;
        if (!place(t, in, &a, l, &at))
            return TCC_FAILED;
        if (at >= 0)
            tcc_param_load_bytes(a.p, at, a.n, bytes);
        tcc_value_from_bytes(t, in->results[0], l, bytes);
    }
    return TCC_NEXT;
}

tcc_outcome tcc_eval_amdgcn_buffer_store(tcc_thread *t, const tcc_inst *in)
{
    access a;
    if (!begin_access(t, in, in->operands[3], &a))
        return TCC_FAILED;
    for (unsigned l = 0; tcc_next_lane(t, &l); l++) {
        uint8_t bytes[MAX_ACCESS_BYTES];
        int64_t at;
        if (!place(t, in, &a, l, &at))
            return TCC_FAILED;
        tcc_value_to_bytes(t, in->operands[3], l, bytes);
        if (at >= 0 && !store_bytes(t, in, a.p, at, a.n, bytes))
            return TCC_FAILED;
    }
    return TCC_NEXT;
}

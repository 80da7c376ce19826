/* values: the LLVM values that a value of the IR is, in both forms, and their bits as other types.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <assert.h>
#include <string.h>

#include "codegen/lower.h"

unsigned tcc_lower_count(const tcc_type *type)
{
    return type->kind == TCC_KIND_vec ? (unsigned)tcc_type_count(type) : 1;
}

/* A value is set in one form. The other is made where it is first asked for, and serves again in
 * the same block, all of which comes after it. */
typedef struct held {
    const LLVMValueRef *elems;
    LLVMValueRef vector;
    LLVMBasicBlockRef elems_in, vector_in; /* NULL: of the form that was set */
    LLVMValueRef cast, address;            /* what tcc_lower_vector_as and tcc_lower_lds made of it last */
    LLVMBasicBlockRef cast_in, address_in;
} held;

static held *held_of(const tcc_lower *l, const tcc_value *v)
{
    held *h = tcc_map_get(&l->values, v);
    assert(h);
    return h;
}

static LLVMBasicBlockRef here(const tcc_lower *l)
{
    return LLVMGetInsertBlock(l->builder);
}

bool tcc_lower_is_vector(const tcc_lower *l, const tcc_type *type)
{
    return l->backend->vectors && tcc_lower_count(type) > 1;
}

const LLVMValueRef *tcc_lower_elems(const tcc_lower *l, const tcc_value *v)
{
    held *h = held_of(l, v);
    if (h->elems && (!h->elems_in || h->elems_in == here(l)))
        return h->elems;
    unsigned n = tcc_lower_count(v->type);
    LLVMValueRef *elems = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    for (unsigned i = 0; i < n; i++)
        elems[i] = LLVMBuildExtractElement(l->builder, h->vector, tcc_lower_i32(l, i), "");
    h->elems = elems;
    h->elems_in = here(l);
    return elems;
}

LLVMValueRef tcc_lower_scalar(const tcc_lower *l, const tcc_value *v)
{
    return tcc_lower_elems(l, v)[0];
}

LLVMValueRef tcc_lower_vector(const tcc_lower *l, const tcc_value *v)
{
    held *h = held_of(l, v);
    unsigned n = tcc_lower_count(v->type);
    if (n == 1)
        return h->elems[0];
    if (h->vector && (!h->vector_in || h->vector_in == here(l)))
        return h->vector;
    h->vector = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(h->elems[0]), n));
    for (unsigned i = 0; i < n; i++)
        h->vector =
            LLVMBuildInsertElement(l->builder, h->vector, h->elems[i], tcc_lower_i32(l, i), "");
    h->vector_in = here(l);
    return h->vector;
}

LLVMValueRef tcc_lower_vector_as(const tcc_lower *l, const tcc_value *v, LLVMTypeRef type)
{
    held *h = held_of(l, v);
    if (h->cast && h->cast_in == here(l) && LLVMTypeOf(h->cast) == type)
        return h->cast;
    h->cast = LLVMBuildBitCast(l->builder, tcc_lower_vector(l, v), type, "");
    h->cast_in = here(l);
    return h->cast;
}

/* n vectors, a power of two, in one. */
static LLVMValueRef concat(const tcc_lower *l, const LLVMValueRef *vectors, unsigned n, unsigned width)
{
    if (n == 1)
        return vectors[0];
    LLVMValueRef a = concat(l, vectors, n / 2, width);
    LLVMValueRef b = concat(l, vectors + n / 2, n / 2, width);
    LLVMValueRef *order = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n * width);
    for (unsigned i = 0; i < n * width; i++)
        order[i] = tcc_lower_i32(l, i);
    return LLVMBuildShuffleVector(l->builder, a, b, LLVMConstVector(order, n * width), "");
}

LLVMValueRef tcc_lower_concat(const tcc_lower *l, tcc_value *const *values, unsigned n)
{
    LLVMValueRef *vectors = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    if (n & (n - 1))
        return NULL;
    for (unsigned i = 0; i < n; i++) {
        const held *h = held_of(l, values[i]);
        if (!h->vector || h->vector_in || values[i]->type != values[0]->type)
            return NULL;
        vectors[i] = h->vector;
    }
    return concat(l, vectors, n, tcc_lower_count(values[0]->type));
}

LLVMValueRef tcc_lower_lds(const tcc_lower *l, const tcc_value *offset)
{
    held *h = held_of(l, offset);
    LLVMValueRef by = tcc_lower_scalar(l, offset);
    if (h->address && h->address_in == here(l))
        return h->address;
    h->address = LLVMBuildInBoundsGEP2(l->builder, l->types[TCC_i8], l->lds, &by, 1, "");
    h->address_in = here(l);
    return h->address;
}

static void set(tcc_lower *l, const tcc_value *v, held h)
{
    held *copy = TCC_NEW(l->arena, held);
    *copy = h;
    *tcc_map_at(&l->values, v) = copy;
}

void tcc_lower_set(tcc_lower *l, const tcc_value *v, const LLVMValueRef *elems)
{
    size_t n;
    set(l, v, (held){.elems = elems});
    if (!v->name || v->type->kind == TCC_KIND_vec || LLVMIsConstant(elems[0]))
        return;
    LLVMGetValueName2(elems[0], &n);
    if (!n) /* an extracted element has the name that it was made with */
        LLVMSetValueName2(elems[0], v->name, strlen(v->name));
}

void tcc_lower_set_scalar(tcc_lower *l, const tcc_value *v, LLVMValueRef x)
{
    LLVMValueRef *elem = TCC_NEW(l->arena, LLVMValueRef);
    *elem = x;
    tcc_lower_set(l, v, elem);
}

void tcc_lower_set_vector(tcc_lower *l, const tcc_value *v, LLVMValueRef vector)
{
    unsigned n = tcc_lower_count(v->type);
    LLVMTypeRef elem = l->types[v->type->elem], type = n > 1 ? LLVMVectorType(elem, n) : elem;
    if (LLVMTypeOf(vector) != type)
        vector = LLVMBuildBitCast(l->builder, vector, type, "");
    if (n == 1)
        tcc_lower_set_scalar(l, v, vector);
    else
        set(l, v, (held){.vector = vector});
}

LLVMValueRef tcc_lower_i32(const tcc_lower *l, int64_t v)
{
    return LLVMConstInt(l->types[TCC_i32], (unsigned long long)v, true);
}

LLVMValueRef tcc_lower_intrinsic_of(const tcc_lower *l, const char *name, unsigned n_types,
                                    LLVMTypeRef *types, unsigned n, const LLVMValueRef *args)
{
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    assert(id);
    LLVMTypeRef type = LLVMIntrinsicGetType(l->context, id, types, n_types);
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(l->module, id, types, n_types);
    return LLVMBuildCall2(l->builder, type, callee, (LLVMValueRef *)args, n, "");
}

LLVMValueRef tcc_lower_intrinsic(const tcc_lower *l, const char *name, LLVMTypeRef overload,
                                 unsigned n, const LLVMValueRef *args)
{
    return tcc_lower_intrinsic_of(l, name, overload != NULL, &overload, n, args);
}

/* tcc_lower_bitcast of half bytes to integers that hold some of them, or back: vectors of them LLVM keeps in memory. */
static const LLVMValueRef *shift(const tcc_lower *l, const LLVMValueRef *from, unsigned n_from, LLVMTypeRef to,
                                 unsigned n_to)
{
    LLVMBuilderRef b = l->builder;
    LLVMTypeRef wide = n_from > n_to ? to : LLVMTypeOf(from[0]);
    unsigned n = n_from > n_to ? n_from : n_to, per = n / (n_from > n_to ? n_to : n_from),
             bits = tcc_scalar_bits(TCC_i4);
    LLVMValueRef *out = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n_to);
    for (unsigned i = 0; i < n; i++) {
        LLVMValueRef by = LLVMConstInt(wide, (unsigned long long)(i % per * bits), false);
        if (n_from < n_to) {
            out[i] = LLVMBuildTrunc(b, LLVMBuildLShr(b, from[i / per], by, ""), to, "");
        } else {
            LLVMValueRef v = LLVMBuildShl(b, LLVMBuildZExt(b, from[i], wide, ""), by, "");
            out[i / per] = i % per ? LLVMBuildOr(b, out[i / per], v, "") : v;
        }
    }
    return out;
}

/* The vector that these are the elements of, in order; NULL if they are not. */
static LLVMValueRef whole_vector(const LLVMValueRef *elems, unsigned n)
{
    LLVMValueRef v = NULL;
    for (unsigned i = 0; i < n; i++) {
        const LLVMValueRef at = LLVMIsAExtractElementInst(elems[i]) ? LLVMGetOperand(elems[i], 1) : NULL;
        if (!at || !LLVMIsAConstantInt(at) || LLVMConstIntGetZExtValue(at) != i ||
            (v && LLVMGetOperand(elems[i], 0) != v))
            return NULL;
        v = LLVMGetOperand(elems[i], 0);
    }
    return LLVMGetVectorSize(LLVMTypeOf(v)) == n ? v : NULL;
}

/* Elements of one type as one number of another. Most are of a register that has been taken apart, such as ldmatrix's:
 * that is given back, so that LLVM need not find it out. */
static LLVMValueRef join(const tcc_lower *l, const LLVMValueRef *elems, unsigned n, LLVMTypeRef to)
{
    LLVMValueRef v = n > 1 ? whole_vector(elems, n) : elems[0];
    if (v && n > 1 && LLVMIsABitCastInst(v) && LLVMTypeOf(LLVMGetOperand(v, 0)) == to)
        return LLVMGetOperand(v, 0);
    if (!v) {
        v = LLVMGetPoison(LLVMVectorType(LLVMTypeOf(elems[0]), n));
        for (unsigned i = 0; i < n; i++)
            v = LLVMBuildInsertElement(l->builder, v, elems[i], tcc_lower_i32(l, i), "");
    }
    return LLVMBuildBitCast(l->builder, v, to, "");
}

const LLVMValueRef *tcc_lower_bitcast(const tcc_lower *l, const LLVMValueRef *from, unsigned n_from,
                                      LLVMTypeRef to, unsigned n_to)
{
    LLVMTypeRef type = LLVMTypeOf(from[0]);
    if (type == to)
        return from;
    if (type == l->types[TCC_i4] || to == l->types[TCC_i4])
        return shift(l, from, n_from, to, n_to);
    LLVMBuilderRef b = l->builder;
    LLVMValueRef *out = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n_to);
    if (n_from >= n_to) { /* each of `to` holds `per` of `from` */
        unsigned per = n_from / n_to;
        for (unsigned i = 0; i < n_to; i++)
            out[i] = join(l, from + i * per, per, to);
        return out;
    }
    unsigned per = n_to / n_from;
    for (unsigned i = 0; i < n_from; i++) {
        LLVMValueRef v = LLVMBuildBitCast(b, from[i], LLVMVectorType(to, per), "");
        for (unsigned k = 0; k < per; k++)
            out[i * per + k] = LLVMBuildExtractElement(b, v, tcc_lower_i32(l, k), "");
    }
    return out;
}

/* Loads, stores and copies of threads: with LLVM's own instructions or, where a guard or a displacement is part of
 * the instruction, through the PTX builder.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "codegen/nvptx/nvptx.h"
#include "codegen/nvptx/ptx_builder.h"

enum { ADDRSPACE_CLUSTER = 7, MAX_ACCESS_BYTES = 16 };

/* How a vec goes to or from memory: `n` accesses of `words` words each. */
typedef struct access {
    LLVMTypeRef word; /* i32, less where the alignment is less, i64 where LLVM accesses elements of 64 bits */
    unsigned word_bytes, words, n;
} access;

/* ptxas keeps an f64 that was loaded whole where it is; of two words it makes one by moves. */
static access plan_access(const tcc_lower *l, const tcc_type *type, int64_t align, bool guarded)
{
    unsigned elem = tcc_scalar_bits(type->elem) / 8, total = tcc_lower_count(type) * tcc_scalar_bits(type->elem) / 8;
    unsigned widest = !guarded && elem == 8 ? 8 : 4;
    unsigned bytes = MAX_ACCESS_BYTES;
    while (bytes > align || total % bytes)
        bytes /= 2;
    access a = {.word_bytes = bytes < widest ? bytes : widest};
    a.word = LLVMIntTypeInContext(l->context, a.word_bytes * 8);
    a.words = bytes / a.word_bytes;
    a.n = total / bytes;
    return a;
}

static LLVMTypeRef access_type(const access *a)
{
    return a->words > 1 ? LLVMVectorType(a->word, a->words) : a->word;
}

static LLVMValueRef offset_bytes(const tcc_lower *l, LLVMValueRef pointer, int64_t bytes)
{
    LLVMValueRef offset = tcc_lower_i32(l, bytes);
    return bytes ? LLVMBuildInBoundsGEP2(l->builder, l->types[TCC_i8], pointer, &offset, 1, "")
                 : pointer;
}

/* Loads one access with LLVM's own instruction, to `words`. */
static void load_words(const tcc_lower *l, const access *a, LLVMValueRef pointer,
                       LLVMValueRef *words)
{
    LLVMValueRef v = LLVMBuildLoad2(l->builder, access_type(a), pointer, "");
    LLVMSetAlignment(v, a->words * a->word_bytes);
    for (unsigned i = 0; i < a->words; i++)
        words[i] =
            a->words == 1 ? v : LLVMBuildExtractElement(l->builder, v, tcc_lower_i32(l, i), "");
}

static void store_words(const tcc_lower *l, const access *a, LLVMValueRef pointer,
                        const LLVMValueRef *words)
{
    LLVMValueRef v = words[0];
    if (a->words > 1) {
        v = LLVMGetPoison(access_type(a));
        for (unsigned i = 0; i < a->words; i++)
            v = LLVMBuildInsertElement(l->builder, v, words[i], tcc_lower_i32(l, i), "");
    }
    LLVMSetAlignment(LLVMBuildStore(l->builder, v, pointer), a->words * a->word_bytes);
}

/* Which of the four rows an access takes: b8, b16, b32, vec. */
static tcc_ptx_id row_of(const access *a, const tcc_ptx_id rows[4])
{
    return rows[a->words > 1 ? 3 : a->word_bytes / 2];
}

/* Loads one access where `guard` holds, and zeros where it does not. The displacement is part of
 * the instruction, so that one address serves many accesses. */
static void load_words_if(const tcc_lower *l, const access *a, LLVMValueRef guard,
                          LLVMValueRef pointer, int64_t disp_bytes, LLVMValueRef *words)
{
    static const tcc_ptx_id rows[] = {TCC_PTX_ld_global_b8, TCC_PTX_ld_global_b16,
                                      TCC_PTX_ld_global_b32, TCC_PTX_ld_global_vec};
    for (unsigned i = 0; i < a->words; i++)
        words[i] = LLVMConstNull(a->word);
    tcc_ptx p;
    tcc_ptx_begin(&p, l->context, l->builder, l->arena);
    tcc_ptx_add(&p, tcc_ptx_info_get(row_of(a, rows)),
                &(const tcc_ptx_ld_global_vec_args){.guard = {.in = guard},
                                                    .r = {.list = words, .n = a->words},
                                                    .addr = {.in = pointer},
                                                    .disp = {.in = tcc_lower_i32(l, disp_bytes)}});
    memcpy(words, tcc_ptx_end(&p), a->words * sizeof *words);
}

static void store_words_if(const tcc_lower *l, const access *a, LLVMValueRef guard,
                           LLVMValueRef pointer, int64_t disp_bytes, const LLVMValueRef *words)
{
    static const tcc_ptx_id rows[] = {TCC_PTX_st_global_b8, TCC_PTX_st_global_b16,
                                      TCC_PTX_st_global_b32, TCC_PTX_st_global_vec};
    tcc_ptx p;
    tcc_ptx_begin(&p, l->context, l->builder, l->arena);
    tcc_ptx_add(&p, tcc_ptx_info_get(row_of(a, rows)),
                &(const tcc_ptx_st_global_vec_args){.guard = {.in = guard},
                                                    .addr = {.in = pointer},
                                                    .disp = {.in = tcc_lower_i32(l, disp_bytes)},
                                                    .a = {.list = words, .n = a->words}});
    tcc_ptx_end(&p);
}

static bool is_true(LLVMValueRef v)
{
    return LLVMIsAConstantInt(v) && LLVMConstIntGetZExtValue(v);
}

/* Loads a vec; guard is NULL or constant true where the load is not conditional. */
static void load(tcc_lower *l, const tcc_value *result, LLVMValueRef pointer, LLVMValueRef guard,
                 int64_t align, int64_t disp_bytes)
{
    bool guarded = guard && !is_true(guard);
    access a = plan_access(l, result->type, align, guarded);
    LLVMValueRef *words = TCC_NEW_ARRAY(l->arena, LLVMValueRef, a.n * a.words);
    for (unsigned i = 0; i < a.n; i++) {
        int64_t disp = disp_bytes + i * a.words * a.word_bytes;
        if (!guarded)
            load_words(l, &a, offset_bytes(l, pointer, disp), words + i * a.words);
        else
            load_words_if(l, &a, guard, pointer, disp, words + i * a.words);
    }
    tcc_lower_set(l, result,
                  tcc_lower_bitcast(l, words, a.n * a.words, l->types[result->type->elem],
                                    tcc_lower_count(result->type)));
}

static void store(tcc_lower *l, const tcc_value *v, LLVMValueRef pointer, LLVMValueRef guard,
                  int64_t align, int64_t disp_bytes)
{
    bool guarded = guard && !is_true(guard);
    access a = plan_access(l, v->type, align, guarded);
    unsigned n = tcc_lower_count(v->type);
    const LLVMValueRef *elems = tcc_lower_elems(l, v);
    if (a.words > 1)
        elems = tcc_nvptx_copy_sums(l, elems, n);
    const LLVMValueRef *words = tcc_lower_bitcast(l, elems, n, a.word, a.n * a.words);
    for (unsigned i = 0; i < a.n; i++) {
        int64_t disp = disp_bytes + i * a.words * a.word_bytes;
        if (!guarded)
            store_words(l, &a, offset_bytes(l, pointer, disp), words + i * a.words);
        else
            store_words_if(l, &a, guard, pointer, disp, words + i * a.words);
    }
}

/* Shared memory is aligned to the size of what is accessed. */
static LLVMValueRef shared_pointer(const tcc_lower *l, const tcc_value *addr)
{
    return LLVMBuildIntToPtr(l->builder, tcc_lower_scalar(l, addr),
                             LLVMPointerTypeInContext(l->context, TCC_NVPTX_SHARED), "");
}

/* For any CTA of the cluster: an address in its address space, which has 32 bits. */
static LLVMValueRef cluster_pointer(const tcc_lower *l, const tcc_value *addr)
{
    return LLVMBuildIntToPtr(l->builder, tcc_lower_scalar(l, addr),
                             LLVMPointerTypeInContext(l->context, ADDRSPACE_CLUSTER), "");
}

/* offset, where it is the last address's offset and a step from there; else NULL. */
static const tcc_value *step_from_last(const tcc_lower *l, const tcc_value *base, const tcc_value *offset)
{
    const tcc_op *sum = offset->def;
    if (!sum || sum->code != TCC_OP_arith_add || offset->type->elem != TCC_i64 || l->last_address.base != base ||
        l->last_address.block != LLVMGetInsertBlock(l->builder))
        return NULL;
    for (int i = 0; i < 2; i++)
        if (sum->operands[i] == l->last_address.offset)
            return sum->operands[1 - i];
    return NULL;
}

static LLVMValueRef global_pointer(const tcc_lower *l, const tcc_value *base, const tcc_value *offset)
{
    LLVMValueRef index = tcc_lower_scalar(l, offset);
    LLVMTypeRef unit = l->types[base->type->elem];
    if (tcc_scalar_bits(base->type->elem) < 8) { /* two to a byte: even, and not negative */
        index = LLVMBuildLShr(l->builder, index, LLVMConstInt(LLVMTypeOf(index), 1, false), "");
        unit = l->types[TCC_i8];
    }
    return LLVMBuildInBoundsGEP2(l->builder, unit, tcc_lower_scalar(l, base), &index, 1, "");
}

/* From row to row an address grows by a number of bytes that is the same in all iterations: added to the address of the
 * row before it takes one addition, where that of an index takes two and a shift. Only in copies: elsewhere it costs
 * registers. */
static LLVMValueRef next_pointer(tcc_lower *l, const tcc_value *base, const tcc_value *offset)
{
    unsigned bits = tcc_scalar_bits(base->type->elem);
    const tcc_value *step = bits < 8 ? NULL : step_from_last(l, base, offset);
    LLVMValueRef pointer;
    if (step) {
        LLVMValueRef bytes = tcc_lower_scalar(l, step);
        bytes = LLVMBuildMul(l->builder, bytes, LLVMConstInt(LLVMTypeOf(bytes), bits / 8, false), "");
        pointer = LLVMBuildInBoundsGEP2(l->builder, l->types[TCC_i8], l->last_address.pointer, &bytes, 1, "");
    } else {
        pointer = global_pointer(l, base, offset);
    }
    l->last_address.block = LLVMGetInsertBlock(l->builder);
    l->last_address.base = base;
    l->last_address.offset = offset;
    l->last_address.pointer = pointer;
    return pointer;
}

static int64_t alignment(const tcc_op *op, const tcc_type *type)
{
    return tcc_attr_int(&op->attrs, "align", (tcc_scalar_bits(type->elem) + 7) / 8);
}

static int64_t displacement(const tcc_op *op, const tcc_type *type)
{
    return tcc_attr_int(&op->attrs, "disp", 0) * tcc_scalar_bits(type->elem) / 8;
}

static void lower_cp_async(tcc_lower *l, const tcc_op *op)
{
    const tcc_nvvm_cp_async_operands *o = TCC_VIEW(nvvm_cp_async, op);
    LLVMValueRef addr = next_pointer(l, o->base, o->offset), dst = tcc_lower_scalar(l, o->dst);
    LLVMValueRef disp = tcc_lower_i32(l, displacement(op, o->base->type)), size = tcc_lower_scalar(l, o->size);
    tcc_ptx p;
    tcc_ptx_begin(&p, l->context, l->builder, l->arena);
    if (tcc_attr_int(&op->attrs, "bytes", 0) == MAX_ACCESS_BYTES)
        TCC_PTX_ADD(&p, cp_async_16, .dst = {.in = dst}, .addr = {.in = addr}, .disp = {.in = disp},
                    .size = {.in = size});
    else
        TCC_PTX_ADD(&p, cp_async, .dst = {.in = dst}, .addr = {.in = addr}, .disp = {.in = disp},
                    .bytes = {.in = tcc_nvptx_attr(l, op, "bytes")}, .size = {.in = size});
    tcc_ptx_end(&p);
}

bool tcc_nvptx_lower_access(tcc_lower *l, const tcc_op *op)
{
    switch (op->code) {
    case TCC_OP_nvvm_cp_async: lower_cp_async(l, op); return true;
    case TCC_OP_nvvm_ld_shared:
        load(l, op->results, shared_pointer(l, TCC_VIEW(nvvm_ld_shared, op)->addr), NULL,
             MAX_ACCESS_BYTES, 0);
        return true;
    case TCC_OP_nvvm_st_shared: {
        const tcc_nvvm_st_shared_operands *o = TCC_VIEW(nvvm_st_shared, op);
        store(l, o->a, shared_pointer(l, o->addr), NULL, MAX_ACCESS_BYTES, 0);
        return true;
    }
    case TCC_OP_nvvm_st_shared_cluster: {
        const tcc_nvvm_st_shared_cluster_operands *o = TCC_VIEW(nvvm_st_shared_cluster, op);
        store(l, o->a, cluster_pointer(l, o->addr), NULL, MAX_ACCESS_BYTES, 0);
        return true;
    }
    case TCC_OP_nvvm_ld_global: {
        const tcc_nvvm_ld_global_operands *o = TCC_VIEW(nvvm_ld_global, op);
        load(l, op->results, global_pointer(l, o->base, o->offset), tcc_lower_scalar(l, o->pred),
             alignment(op, op->results[0].type), displacement(op, op->results[0].type));
        return true;
    }
    case TCC_OP_nvvm_st_global: {
        const tcc_nvvm_st_global_operands *o = TCC_VIEW(nvvm_st_global, op);
        store(l, o->a, global_pointer(l, o->base, o->offset), tcc_lower_scalar(l, o->pred),
              alignment(op, o->a->type), displacement(op, o->a->type));
        return true;
    }
    default: return false;
    }
}

/* Target-level ops of NVIDIA's GPUs, each one instruction: those that ordinary LLVM IR expresses
 * through it, the others through the PTX builder.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <assert.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <string.h>

#include "codegen/llvm_major.h"
#include "codegen/nvptx/nvptx.h"
#include "codegen/nvptx/ptx_builder.h"
#include "ir/fragment.h"
#include "ir/machine.h"
#include "ir/stamps.h"

enum { ADDRSPACE_SHARED = 3, ADDRSPACE_CLUSTER = 7, PTX_KERNEL = 71 /* llvm::CallingConv::PTX_Kernel */ };
enum { SMEM_ALIGN_BYTES = 1024, TENSORMAP_BYTES = 128, TENSORMAP_ALIGN_BYTES = 64 };
enum { MAX_ACCESS_BYTES = 16, MAX_OPERANDS = 9 };

void tcc_nvptx_initialize(void)
{
    /* Pointers to shared memory of 32 bits. LLVM has no other way to say so. */
    static const char *const options[] = {"tcc", "-nvptx-short-ptr"};
    LLVMParseCommandLineOptions(2, options, "");
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
}

static LLVMValueRef attr_i32(const tcc_lower *l, const tcc_op *op, const char *name)
{
    return tcc_lower_i32(l, tcc_attr_int(&op->attrs, name, 0));
}

/* ---- kernels --------------------------------------------------------------------------- */

static void add_number_attribute(tcc_lower *l, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    tcc_lower_add_string_attribute(l, TCC_LOWER_FUNC, name, text);
}

/* A tensor map is read where the launch put it: without grid_constant it would be copied. */
static void add_tensormap_attributes(tcc_lower *l, int param)
{
    LLVMTypeRef bytes = LLVMArrayType2(l->types[TCC_i8], TENSORMAP_BYTES);
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", 5);
    LLVMAddAttributeAtIndex(l->func, (LLVMAttributeIndex)param,
                            LLVMCreateTypeAttribute(l->context, byval, bytes));
    tcc_lower_add_enum_attribute(l, param, "align", TENSORMAP_ALIGN_BYTES);
    if (TCC_LLVM_HAS_GRID_CONSTANT_ATTRIBUTE)
        tcc_lower_add_string_attribute(l, param, "nvvm.grid_constant", "");
}

/* The numbers of the kernel's tensor maps, from 1 on. */
static void annotate_grid_constants(tcc_lower *l, LLVMMetadataRef *params, size_t n)
{
    LLVMMetadataRef list = LLVMMDNodeInContext2(l->context, params, n);
    LLVMMetadataRef annotation[] = {LLVMValueAsMetadata(l->func), LLVMMDStringInContext2(l->context, "grid_constant", 13),
                                    list};
    LLVMAddNamedMetadataOperand(l->module, "nvvm.annotations",
                                LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, annotation, 3)));
}

static void add_tensormaps(tcc_lower *l, const tcc_func *func)
{
    LLVMMetadataRef *params = TCC_NEW_ARRAY(l->arena, LLVMMetadataRef, func->body->n_args);
    size_t n = 0;
    for (size_t i = 0; i < func->body->n_args; i++)
        if (func->body->args[i]->type->kind == TCC_KIND_tensormap) {
            add_tensormap_attributes(l, (int)i + 1);
            params[n++] = LLVMValueAsMetadata(tcc_lower_i32(l, (int64_t)i + 1));
        }
    if (n && !TCC_LLVM_HAS_GRID_CONSTANT_ATTRIBUTE)
        annotate_grid_constants(l, params, n);
}

void tcc_nvptx_begin_kernel(tcc_lower *l, const tcc_func *func)
{
    LLVMSetFunctionCallConv(l->func, PTX_KERNEL);
    tcc_lower_add_enum_attribute(l, TCC_LOWER_FUNC, "nounwind", 0);
    tcc_lower_add_enum_attribute(l, TCC_LOWER_FUNC, "convergent", 0);
    /* ptxas ignores setmaxnreg where the number of threads is not fixed. */
    if (tcc_attr_find(&func->attrs, "block"))
        add_number_attribute(l, "nvvm.reqntid", tcc_attr_int(&func->attrs, "block", 1));
    if (tcc_attr_find(&func->attrs, "min_ctas"))
        add_number_attribute(l, "nvvm.minctasm", tcc_attr_int(&func->attrs, "min_ctas", 1));
    if (tcc_attr_find(&func->attrs, "cluster_ctas"))
        tcc_lower_add_string_attribute(
            l, TCC_LOWER_FUNC, "nvvm.cluster_dim",
            tcc_arena_printf(l->arena, "%lld,1,1",
                             (long long)tcc_attr_int(&func->attrs, "cluster_ctas", 1)));
    add_tensormaps(l, func);
}

/* The dynamic shared memory: all of a CTA's. No kernel has a name with a $. */
static LLVMValueRef smem_base(tcc_lower *l)
{
    static const char name[] = "tcc_smem$";
    LLVMValueRef smem = LLVMGetNamedGlobal(l->module, name);
    if (!smem) {
        smem = LLVMAddGlobalInAddressSpace(l->module, LLVMArrayType2(l->types[TCC_i8], 0), name,
                                           ADDRSPACE_SHARED);
        LLVMSetAlignment(smem, SMEM_ALIGN_BYTES);
    }
    return LLVMConstPtrToInt(smem, l->types[TCC_i32]);
}

static LLVMValueRef phase(tcc_lower *l, const tcc_op *op)
{
    LLVMValueRef address = tcc_lower_scalar(l, TCC_VIEW(nvvm_phase, op)->base);
    return LLVMBuildAnd(l->builder, LLVMBuildPtrToInt(l->builder, address, l->types[TCC_i32], ""),
                        tcc_lower_i32(l, TCC_PHASE_BYTES - 1), "");
}

/* ---- loads and stores ------------------------------------------------------------------ */

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
                             LLVMPointerTypeInContext(l->context, ADDRSPACE_SHARED), "");
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

/* False when op is none of these. */
static bool lower_access(tcc_lower *l, const tcc_op *op)
{
    switch (op->code) {
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

/* ---- warpgroup products ---------------------------------------------------------------- */

static bool is_product_op(const tcc_op *op)
{
    return op->code == TCC_OP_nvvm_wgmma_fence || op->code == TCC_OP_nvvm_wgmma ||
           op->code == TCC_OP_nvvm_wgmma_a || op->code == TCC_OP_nvvm_wgmma_commit ||
           op->code == TCC_OP_nvvm_wgmma_wait;
}

/* A value whose elements are an asm's results from number `first` on. */
typedef struct made_value {
    const tcc_value *value;
    unsigned first;
} made_value;

/* One asm for a run of product ops. LLVM's time goes into asms that tie all accumulators: one
 * for a run instead of one for each product saves a third of its code generation. */
typedef struct product_run {
    tcc_ptx ptx;
    TCC_VEC(made_value) made;
} product_run;

/* Finds a value that an op of the run made. */
static bool run_made(const product_run *run, const tcc_value *v, unsigned *first)
{
    for (size_t i = 0; i < run->made.len; i++)
        if (run->made.data[i].value == v) {
            *first = run->made.data[i].first;
            return true;
        }
    return false;
}

/* Whether op may be added: accumulators that the run made it may only take over, since their
 * registers are overwritten, and no other registers that it made are operands of a product. */
static bool can_join(const product_run *run, const tcc_op *op)
{
    unsigned first;
    if (op->code == TCC_OP_nvvm_wgmma || op->code == TCC_OP_nvvm_wgmma_a) {
        const tcc_value *acc = op->operands[0], *a = op->operands[1];
        return (acc->n_uses == 1 || !run_made(run, acc, &first)) && !run_made(run, a, &first);
    }
    for (unsigned i = 0; i < op->n_operands; i++) /* of wgmma.wait_group */
        if (run_made(run, op->operands[i], &first))
            return false;
    return true;
}

/* The accumulators of a product: the run's own, or others. */
static tcc_ptx_arg accumulators(tcc_lower *l, const product_run *run, const tcc_value *acc)
{
    unsigned first, n = tcc_lower_count(acc->type);
    return run_made(run, acc, &first) ? tcc_ptx_chain(first, n)
                                      : (tcc_ptx_arg){.list = tcc_lower_elems(l, acc), .n = n};
}

/* As PTX names it: integers by their sign. */
static tcc_ptx_arg ptx_type(tcc_lower *l, tcc_scalar elem)
{
    const char *name = tcc_scalar_name(elem);
    return (tcc_ptx_arg){.text = *name == 'i' ? tcc_arena_printf(l->arena, "s%s", name + 1) : name};
}

/* For an instruction whose operands are K-major. */
static unsigned add_k_major(tcc_lower *l, product_run *run, const tcc_op *op, const tcc_mma *mma)
{
    const tcc_nvvm_wgmma_operands *o = TCC_VIEW(nvvm_wgmma, op);
    return tcc_ptx_add(&run->ptx, tcc_ptx_info_get(mma->acc == TCC_f32 ? TCC_PTX_wgmma_f32 : TCC_PTX_wgmma_s32),
                       &(const tcc_ptx_wgmma_f32_args){.acc = accumulators(l, run, o->acc),
                                                       .n = {.in = attr_i32(l, op, "n")},
                                                       .k = {.in = tcc_lower_i32(l, mma->k)},
                                                       .type = ptx_type(l, mma->a),
                                                       .type_b = ptx_type(l, mma->b),
                                                       .a = {.in = tcc_lower_scalar(l, o->a)},
                                                       .b = {.in = tcc_lower_scalar(l, o->b)},
                                                       .scale_d = {.in = tcc_lower_scalar(l, o->scale_d)}});
}

static void add_wgmma(tcc_lower *l, product_run *run, const tcc_op *op)
{
    const tcc_nvvm_wgmma_operands *o = TCC_VIEW(nvvm_wgmma, op);
    const tcc_mma *mma = tcc_mma_of(op);
    unsigned first = !mma->across ? add_k_major(l, run, op, mma) : TCC_PTX_ADD(
        &run->ptx, wgmma, .acc = accumulators(l, run, o->acc), .n = {.in = attr_i32(l, op, "n")},
        .type = {.text = tcc_attr_str(&op->attrs, "type", "")},
        .a = {.in = tcc_lower_scalar(l, o->a)}, .b = {.in = tcc_lower_scalar(l, o->b)},
        .scale_d = {.in = tcc_lower_scalar(l, o->scale_d)},
        .trans_a = {.in = attr_i32(l, op, "trans_a")},
        .trans_b = {.in = attr_i32(l, op, "trans_b")});
    TCC_PUSH(l->arena, &run->made, (made_value){&op->results[0], first});
}

static void add_wgmma_a(tcc_lower *l, product_run *run, const tcc_op *op)
{
    const tcc_nvvm_wgmma_a_operands *o = TCC_VIEW(nvvm_wgmma_a, op);
    unsigned first = TCC_PTX_ADD(
        &run->ptx, wgmma_a, .acc = accumulators(l, run, o->acc), .n = {.in = attr_i32(l, op, "n")},
        .type = {.text = tcc_attr_str(&op->attrs, "type", "")},
        .a = {.list = tcc_lower_elems(l, o->a), .n = tcc_lower_count(o->a->type)},
        .b = {.in = tcc_lower_scalar(l, o->b)}, .scale_d = {.in = tcc_lower_scalar(l, o->scale_d)},
        .trans_b = {.in = attr_i32(l, op, "trans_b")});
    TCC_PUSH(l->arena, &run->made, (made_value){&op->results[0], first});
}

/* The operands of a wait that are of one element, one after the other. */
static tcc_ptx_arg operands_of(tcc_lower *l, const tcc_op *op, tcc_scalar elem)
{
    unsigned n = 0;
    for (unsigned i = 0; i < op->n_operands; i++)
        n += tcc_lower_count(op->operands[i]->type);
    LLVMValueRef *list = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    n = 0;
    for (unsigned i = 0; i < op->n_operands; i++) {
        unsigned count = tcc_lower_count(op->operands[i]->type);
        if (op->operands[i]->type->elem != elem)
            continue;
        memcpy(list + n, tcc_lower_elems(l, op->operands[i]), count * sizeof *list);
        n += count;
    }
    return (tcc_ptx_arg){.list = list, .n = n};
}

/* All that waits passes through one asm, or LLVM would hoist reads above the wait. */
static void add_wait(tcc_lower *l, product_run *run, const tcc_op *op)
{
    const tcc_scalar elems[] = {TCC_f32, TCC_i32};
    tcc_ptx_arg acc = operands_of(l, op, elems[0]), a = operands_of(l, op, elems[1]);
    unsigned first = TCC_PTX_ADD(&run->ptx, wgmma_wait, .acc = acc, .a = a,
                                 .pending = {.in = attr_i32(l, op, "pending")});
    for (int e = 0; e < 2; e++)
        for (unsigned i = 0; i < op->n_results; i++)
            if (op->results[i].type->elem == elems[e]) {
                TCC_PUSH(l->arena, &run->made, (made_value){&op->results[i], first});
                first += tcc_lower_count(op->results[i].type);
            }
}

/* Lowers the run that begins with op; returns its last op. */
static const tcc_op *lower_products(tcc_lower *l, const tcc_op *op)
{
    product_run run = {0};
    tcc_ptx_begin(&run.ptx, l->context, l->builder, l->arena);
    for (;; op = op->next) {
        switch (op->code) {
        case TCC_OP_nvvm_wgmma_fence: TCC_PTX_ADD(&run.ptx, wgmma_fence); break;
        case TCC_OP_nvvm_wgmma_commit: TCC_PTX_ADD(&run.ptx, wgmma_commit); break;
        case TCC_OP_nvvm_wgmma: add_wgmma(l, &run, op); break;
        case TCC_OP_nvvm_wgmma_a: add_wgmma_a(l, &run, op); break;
        default: add_wait(l, &run, op); break;
        }
        if (!op->next || !is_product_op(op->next) || !can_join(&run, op->next))
            break;
    }
    const LLVMValueRef *outs = tcc_ptx_end(&run.ptx);
    for (size_t i = 0; i < run.made.len; i++)
        tcc_lower_set(l, run.made.data[i].value, outs + run.made.data[i].first);
    return op;
}

/* ---- single instructions --------------------------------------------------------------- */

static LLVMValueRef special_register(const tcc_lower *l, const char *intrinsic)
{
    return tcc_lower_intrinsic(l, intrinsic, NULL, 0, NULL);
}

/* The lanes that a shuffle must stay within: the whole warp. */
static void add_shfl(tcc_ptx *p, const tcc_lower *l, const char *kind, LLVMValueRef a,
                     LLVMValueRef b)
{
    LLVMValueRef clamp = tcc_lower_i32(l, strcmp(kind, "up") ? 31 : 0);
    LLVMValueRef bits = LLVMBuildBitCast(l->builder, a, l->types[TCC_i32], "");
    TCC_PTX_ADD(p, shfl, .kind = {.text = kind}, .a = {.in = bits}, .b = {.in = b},
                .clamp = {.in = clamp});
}

static const char *trans(const tcc_op *op)
{
    return tcc_attr_int(&op->attrs, "trans", 0) ? ".trans" : "";
}

/* The element type that an attribute says. */
static tcc_ptx_arg type_in(tcc_lower *l, const tcc_op *op, const char *attr)
{
    tcc_scalar elem = TCC_f16;
    tcc_attr_scalar(&op->attrs, attr, &elem); /* verified */
    return ptx_type(l, elem);
}

static tcc_ptx_arg words_of(tcc_lower *l, const tcc_value *v)
{
    return (tcc_ptx_arg){.list = tcc_lower_elems(l, v), .n = tcc_lower_count(v->type)};
}

/* What D has, in registers: halves are two in one. */
static tcc_ptx_arg registers_of(tcc_lower *l, const tcc_value *v)
{
    tcc_ptx_arg words = words_of(l, v);
    if (v->type->elem != TCC_f16)
        return words;
    return (tcc_ptx_arg){.list = tcc_lower_bitcast(l, words.list, words.n, l->types[TCC_i32], words.n / 2), .n = words.n / 2};
}

/* For a fragment of wmma, or a product of fragments. */
static tcc_ptx_arg shape_of(const tcc_op *op)
{
    return (tcc_ptx_arg){.text = tcc_attr_str(&op->attrs, "shape", "m16n16k16")};
}

/* How long L2 is to keep what is copied: the four texts of a row of ptx.def. PTX ISA, createpolicy. */
typedef struct caching {
    tcc_ptx_arg policy, hint, by, end;
} caching;

static caching caching_of(tcc_lower *l, const tcc_op *op)
{
    const char *evict = tcc_attr_str(&op->attrs, "cache", NULL);
    if (!evict)
        return (caching){.policy = {.text = NULL}};
    const char *policy = tcc_arena_printf(
        l->arena, "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::%s.b64 policy, 1.0;\n", evict);
    return (caching){{.text = policy}, {.text = ".L2::cache_hint"}, {.text = ", policy"}, {.text = "\n}"}};
}

/* Adds the row of an op whose operands are x[0], x[1], …; false when it is none of these. */
static bool add_instruction(tcc_ptx *p, tcc_lower *l, const tcc_op *op, const LLVMValueRef *x)
{
    switch (op->code) {
    case TCC_OP_nvvm_uniform: add_shfl(p, l, "idx", x[0], tcc_lower_i32(l, 0)); return true;
    case TCC_OP_nvvm_opaque: TCC_PTX_ADD(p, opaque, .a = {.in = x[0]}); return true;
    case TCC_OP_nvvm_shfl:
        add_shfl(p, l, tcc_attr_str(&op->attrs, "kind", ""), x[0], x[1]);
        return true;
    case TCC_OP_nvvm_shf:
        TCC_PTX_ADD(p, shf, .low = {.in = x[0]}, .high = {.in = x[1]}, .n = {.in = x[2]});
        return true;
    case TCC_OP_nvvm_mapa:
        TCC_PTX_ADD(p, mapa, .addr = {.in = x[0]}, .rank = {.in = x[1]});
        return true;
    case TCC_OP_nvvm_cluster_arrive:
        TCC_PTX_ADD(p, cluster_arrive,
                    .relaxed = {.text = tcc_attr_int(&op->attrs, "relaxed", 0) ? ".relaxed" : ""});
        return true;
    case TCC_OP_nvvm_cluster_wait: TCC_PTX_ADD(p, cluster_wait); return true;
    case TCC_OP_nvvm_griddepcontrol_wait: TCC_PTX_ADD(p, griddepcontrol_wait); return true;
    case TCC_OP_nvvm_griddepcontrol_launch: TCC_PTX_ADD(p, griddepcontrol_launch); return true;
    case TCC_OP_nvvm_elect: TCC_PTX_ADD(p, elect); return true;
    case TCC_OP_nvvm_barrier:
        TCC_PTX_ADD(p, bar_sync, .id = {.in = x[0]}, .threads = {.in = x[1]});
        return true;
    case TCC_OP_nvvm_setmaxnreg:
        TCC_PTX_ADD(p, setmaxnreg, .action = {.text = tcc_attr_str(&op->attrs, "action", "")},
                    .count = {.in = attr_i32(l, op, "count")});
        return true;
    case TCC_OP_nvvm_mbarrier_init:
        TCC_PTX_ADD(p, mbarrier_init, .bar = {.in = x[0]}, .count = {.in = x[1]});
        return true;
    case TCC_OP_nvvm_mbarrier_inval:
        TCC_PTX_ADD(p, mbarrier_inval, .bar = {.in = x[0]});
        return true;
    case TCC_OP_nvvm_mbarrier_arrive_cluster:
        TCC_PTX_ADD(p, mbarrier_arrive_cluster, .bar = {.in = x[0]});
        return true;
    case TCC_OP_nvvm_mbarrier_arrive:
        TCC_PTX_ADD(p, mbarrier_arrive, .bar = {.in = x[0]});
        return true;
    case TCC_OP_nvvm_mbarrier_arrive_expect_tx:
        TCC_PTX_ADD(p, mbarrier_arrive_expect_tx, .bar = {.in = x[0]}, .bytes = {.in = x[1]});
        return true;
    case TCC_OP_nvvm_mbarrier_arrive_expect_tx_cluster:
        TCC_PTX_ADD(p, mbarrier_arrive_expect_tx_cluster, .bar = {.in = x[0]}, .bytes = {.in = x[1]});
        return true;
    case TCC_OP_nvvm_mbarrier_wait:
        TCC_PTX_ADD(p, mbarrier_wait, .bar = {.in = x[0]}, .parity = {.in = x[1]});
        return true;
    case TCC_OP_nvvm_warp_sync: TCC_PTX_ADD(p, warp_sync); return true;
    case TCC_OP_nvvm_ld_shared_word: TCC_PTX_ADD(p, ld_shared_word, .addr = {.in = x[0]}); return true;
    case TCC_OP_nvvm_st_shared_word:
        TCC_PTX_ADD(p, st_shared_word, .addr = {.in = x[0]}, .a = {.in = x[1]});
        return true;
    case TCC_OP_nvvm_st_async_word:
        TCC_PTX_ADD(p, st_async_word, .addr = {.in = x[0]}, .bar = {.in = x[1]}, .a = {.in = x[2]});
        return true;
    case TCC_OP_nvvm_atom_inc: TCC_PTX_ADD(p, atom_inc, .addr = {.in = x[0]}); return true;
    case TCC_OP_nvvm_fence_mbarrier_init: TCC_PTX_ADD(p, fence_mbarrier_init); return true;
    case TCC_OP_nvvm_fence_proxy_async: TCC_PTX_ADD(p, fence_proxy_async); return true;
    case TCC_OP_nvvm_prefetch_tensormap:
        TCC_PTX_ADD(p, prefetch_tensormap, .map = {.in = x[0]});
        return true;
    case TCC_OP_nvvm_stamps:
        TCC_PTX_ADD(p, stamps, .base = {.in = x[0]}, .cta = {.in = attr_i32(l, op, "cta")},
                    .bytes = {.in = tcc_lower_i32(l, TCC_STAMPS_OF_WARP * TCC_STAMP_BYTES)});
        return true;
    case TCC_OP_nvvm_stamp:
        TCC_PTX_ADD(p, stamp, .clock = {.text = tcc_attr_int(&op->attrs, "time", 0) ? "%globaltimer_lo" : "%clock"},
                    .a = {.in = x[0]}, .ids = {.in = tcc_lower_i32(l, TCC_STAMP_IDS)}, .id = {.in = attr_i32(l, op, "id")},
                    .bytes = {.in = tcc_lower_i32(l, TCC_STAMP_BYTES)},
                    .last = {.in = tcc_lower_i32(l, (TCC_STAMPS_OF_WARP - 1) * TCC_STAMP_BYTES)});
        return true;
    case TCC_OP_nvvm_tma_load: {
        caching c = caching_of(l, op);
        TCC_PTX_ADD(p, tma_load, .policy = c.policy, .hint = c.hint, .by = c.by, .end = c.end,
                    .dst = {.in = x[0]}, .map = {.in = x[1]}, .bar = {.in = x[2]},
                    .at = {.list = x + 3, .n = op->n_operands - 3});
        return true;
    }
    case TCC_OP_nvvm_tma_load_multicast: {
        LLVMValueRef ctas =
            LLVMBuildTrunc(l->builder, x[3], LLVMInt16TypeInContext(l->context), "");
        caching c = caching_of(l, op);
        TCC_PTX_ADD(p, tma_load_multicast, .policy = c.policy, .hint = c.hint, .by = c.by, .end = c.end,
                    .dst = {.in = x[0]}, .map = {.in = x[1]},
                    .bar = {.in = x[2]}, .ctas = {.in = ctas},
                    .at = {.list = x + 4, .n = op->n_operands - 4});
        return true;
    }
    case TCC_OP_nvvm_tma_store: {
        caching c = caching_of(l, op);
        TCC_PTX_ADD(p, tma_store, .policy = c.policy, .hint = c.hint, .by = c.by, .end = c.end,
                    .src = {.in = x[0]}, .map = {.in = x[1]},
                    .at = {.list = x + 2, .n = op->n_operands - 2});
        return true;
    }
    case TCC_OP_nvvm_cp_async_commit: TCC_PTX_ADD(p, cp_async_commit); return true;
    case TCC_OP_nvvm_cp_async_wait:
        TCC_PTX_ADD(p, cp_async_wait, .pending = {.in = attr_i32(l, op, "pending")});
        return true;
    case TCC_OP_nvvm_bulk_commit: TCC_PTX_ADD(p, bulk_commit); return true;
    case TCC_OP_nvvm_bulk_wait:
        if (tcc_attr_int(&op->attrs, "read", 0))
            TCC_PTX_ADD(p, bulk_wait_read, .pending = {.in = attr_i32(l, op, "pending")});
        else
            TCC_PTX_ADD(p, bulk_wait, .pending = {.in = attr_i32(l, op, "pending")});
        return true;
    case TCC_OP_nvvm_stmatrix: {
        const tcc_value *a = TCC_VIEW(nvvm_stmatrix, op)->a;
        TCC_PTX_ADD(p, stmatrix, .trans = {.text = trans(op)}, .addr = {.in = x[0]},
                    .a = {.list = tcc_lower_elems(l, a), .n = tcc_lower_count(a->type)});
        return true;
    }
    case TCC_OP_nvvm_wmma_store: {
        const tcc_value *a = TCC_VIEW(nvvm_wmma_store, op)->a;
        bool floats = a->type->elem == TCC_f32;
        tcc_ptx_add(p, tcc_ptx_info_get(floats ? TCC_PTX_wmma_store_f : TCC_PTX_wmma_store_r),
                    &(const tcc_ptx_wmma_store_f_args){
                        .shape = shape_of(op),
                        .type = {.text = a->type->elem == TCC_i32 ? "s32" : tcc_scalar_name(a->type->elem)},
                        .addr = {.in = x[0]},
                        .a = registers_of(l, a),
                        .stride = {.in = attr_i32(l, op, "stride")}});
        return true;
    }
    case TCC_OP_nvvm_wmma_load: {
        LLVMValueRef words[8];
        unsigned n = tcc_lower_count(op->results[0].type);
        for (unsigned i = 0; i < n; i++)
            words[i] = LLVMGetPoison(l->types[TCC_i32]);
        TCC_PTX_ADD(p, wmma_load, .r = {.list = words, .n = n}, .of = {.text = tcc_attr_str(&op->attrs, "of", "")},
                    .shape = shape_of(op),
                    .layout = {.text = tcc_attr_str(&op->attrs, "layout", "")}, .type = type_in(l, op, "elem"),
                    .addr = {.in = x[0]}, .stride = {.in = attr_i32(l, op, "stride")});
        return true;
    }
    case TCC_OP_nvvm_ldmatrix: {
        LLVMValueRef words[4];
        unsigned n = tcc_lower_count(op->results[0].type);
        for (unsigned i = 0; i < n; i++)
            words[i] = LLVMGetPoison(l->types[TCC_i32]);
        TCC_PTX_ADD(p, ldmatrix, .r = {.list = words, .n = n}, .trans = {.text = trans(op)},
                    .addr = {.in = x[0]});
        return true;
    }
    default: return false;
    }
}

/* ---- copies and products of a warp ----------------------------------------------------------- */

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
                    .bytes = {.in = attr_i32(l, op, "bytes")}, .size = {.in = size});
    tcc_ptx_end(&p);
}

/* The i-th of n parts. */
static tcc_ptx_arg share_of(tcc_ptx_arg words, unsigned i, unsigned n)
{
    return (tcc_ptx_arg){.list = words.list + words.n / n * i, .n = words.n / n};
}

/* What is multiplied, in registers: a number of 64 bits has one, not two words. */
static tcc_ptx_arg multiplied_of(tcc_lower *l, const tcc_value *v, tcc_scalar elem)
{
    tcc_ptx_arg words = words_of(l, v);
    if (elem != TCC_f64)
        return words;
    return (tcc_ptx_arg){.list = tcc_lower_bitcast(l, words.list, words.n, l->types[TCC_f64], words.n / 2), .n = words.n / 2};
}

/* The elements of D; a register holds two that are f16. */
static const LLVMValueRef *elements_of(tcc_lower *l, const tcc_op *op, const LLVMValueRef *registers, unsigned n)
{
    bool packed = op->results[0].type->elem == TCC_f16;
    return packed ? tcc_lower_bitcast(l, registers, n, l->types[TCC_f16], 2 * n) : registers;
}

static void lower_mma(tcc_lower *l, const tcc_op *op)
{
    static const tcc_ptx_id rows_of[] = {[TCC_f32] = TCC_PTX_mma_f32,
                                         [TCC_f16] = TCC_PTX_mma_f16,
                                         [TCC_f64] = TCC_PTX_mma_f64,
                                         [TCC_i32] = TCC_PTX_mma_s32};
    const tcc_nvvm_mma_operands *o = TCC_VIEW(nvvm_mma, op);
    tcc_scalar types[3];
    const tcc_mma_sync *mma = tcc_mma_sync_of(op, types);
    const char *rows = tcc_arena_printf(l->arena, "%lld", (long long)mma->rows);
    const char *k = tcc_arena_printf(l->arena, "%lld", (long long)mma->k);
    unsigned n = (unsigned)(mma->m / mma->rows);
    tcc_ptx_arg c = registers_of(l, o->c);
    tcc_ptx p;
    tcc_ptx_begin(&p, l->context, l->builder, l->arena);
    for (unsigned i = 0; i < n; i++)
        tcc_ptx_add(&p, tcc_ptx_info_get(rows_of[types[2]]),
                    &(const tcc_ptx_mma_f32_args){.acc = share_of(c, i, n),
                                                  .m = {.text = rows},
                                                  .k = {.text = k},
                                                  .ta = ptx_type(l, types[0]),
                                                  .tb = ptx_type(l, types[1]),
                                                  .a = share_of(multiplied_of(l, o->a, types[0]), i, n),
                                                  .b = multiplied_of(l, o->b, types[1])});
    tcc_lower_set(l, &op->results[0], elements_of(l, op, tcc_ptx_end(&p), c.n));
}

static void lower_wmma(tcc_lower *l, const tcc_op *op)
{
    const tcc_nvvm_wmma_mma_operands *o = TCC_VIEW(nvvm_wmma_mma, op);
    tcc_scalar acc = o->c->type->elem;
    const char *d = acc == TCC_i32 ? "s32" : tcc_scalar_name(acc), *types = tcc_arena_printf(l->arena, "%s.%s", d, d);
    if (acc == TCC_i32)
        types = tcc_arena_printf(l->arena, "s32.%s.%s.s32", type_in(l, op, "a").text, type_in(l, op, "b").text);
    tcc_ptx p;
    tcc_ptx_begin(&p, l->context, l->builder, l->arena);
    tcc_ptx_arg c = registers_of(l, o->c);
    tcc_ptx_add(&p, tcc_ptx_info_get(acc == TCC_f32 ? TCC_PTX_wmma_f : TCC_PTX_wmma_r),
                &(const tcc_ptx_wmma_f_args){.acc = c,
                                             .shape = shape_of(op),
                                             .la = {.text = tcc_attr_str(&op->attrs, "layout_a", "")},
                                             .lb = {.text = tcc_attr_str(&op->attrs, "layout_b", "")},
                                             .types = {.text = types},
                                             .a = words_of(l, o->a),
                                             .b = words_of(l, o->b)});
    tcc_lower_set(l, &op->results[0], elements_of(l, op, tcc_ptx_end(&p), c.n));
}

/* Where the coordinates of a copy to shared memory begin; of other ops none do. */
static unsigned first_coordinate(tcc_opcode code)
{
    return code == TCC_OP_nvvm_tma_load             ? 3
           : code == TCC_OP_nvvm_tma_load_multicast ? 4
                                                    : MAX_OPERANDS;
}

/* A coordinate. A sum with a constant is computed where it is wanted: LLVM would hoist those of a
 * loop's copies, and ptxas keep each in a register, through the epilogue, too. */
static LLVMValueRef coordinate(tcc_lower *l, const tcc_value *v)
{
    const tcc_op *sum = v->def;
    bool adds = sum && sum->code == TCC_OP_arith_add && sum->operands[1]->def &&
                sum->operands[1]->def->code == TCC_OP_arith_const;
    LLVMValueRef a = adds ? tcc_lower_scalar(l, sum->operands[0]) : NULL;
    if (!a || LLVMIsAConstant(a))
        return tcc_lower_scalar(l, v);
    tcc_ptx p;
    tcc_ptx_begin(&p, l->context, l->builder, l->arena);
    TCC_PTX_ADD(&p, add_in_place, .a = {.in = a},
                .b = {.in = tcc_lower_scalar(l, sum->operands[1])});
    return tcc_ptx_end(&p)[0];
}

static bool lower_instruction(tcc_lower *l, const tcc_op *op)
{
    LLVMValueRef x[MAX_OPERANDS] = {NULL};
    if (op->n_operands > MAX_OPERANDS)
        return false;
    for (unsigned i = 0; i < op->n_operands; i++)
        x[i] = i < first_coordinate(op->code) ? tcc_lower_scalar(l, op->operands[i])
                                              : coordinate(l, op->operands[i]);
    tcc_ptx p;
    tcc_ptx_begin(&p, l->context, l->builder, l->arena);
    if (!add_instruction(&p, l, op, x))
        return false;
    const LLVMValueRef *outs = tcc_ptx_end(&p);
    if (op->n_results && op->results[0].type->elem == TCC_f32)
        tcc_lower_set_scalar(l, &op->results[0],
                             LLVMBuildBitCast(l->builder, outs[0], l->types[TCC_f32], ""));
    else if (op->n_results)
        tcc_lower_set(l, &op->results[0], outs);
    return true;
}

/* PTX ISA, "Special Registers". */
static const char *const special_registers[TCC_OP_COUNT] = {
    [TCC_OP_nvvm_tid] = "llvm.nvvm.read.ptx.sreg.tid.x",
    [TCC_OP_nvvm_ctaid] = "llvm.nvvm.read.ptx.sreg.ctaid.x",
    [TCC_OP_nvvm_nctaid] = "llvm.nvvm.read.ptx.sreg.nctaid.x",
    [TCC_OP_nvvm_clusterid] = "llvm.nvvm.read.ptx.sreg.clusterid.x",
    [TCC_OP_nvvm_nclusterid] = "llvm.nvvm.read.ptx.sreg.nclusterid.x",
    [TCC_OP_nvvm_cluster_ctarank] = "llvm.nvvm.read.ptx.sreg.cluster.ctarank",
};

const tcc_op *tcc_nvptx_lower_op(tcc_lower *l, const tcc_op *op)
{
    if (special_registers[op->code]) {
        tcc_lower_set_scalar(l, op->results, special_register(l, special_registers[op->code]));
        return op;
    }
    switch (op->code) {
    case TCC_OP_arith_fma: return tcc_nvptx_lower_outer(l, op);
    case TCC_OP_nvvm_cp_async: lower_cp_async(l, op); return op;
    case TCC_OP_nvvm_mma: lower_mma(l, op); return op;
    case TCC_OP_nvvm_wmma_mma: lower_wmma(l, op); return op;
    case TCC_OP_nvvm_phase: tcc_lower_set_scalar(l, op->results, phase(l, op)); return op;
    case TCC_OP_nvvm_smem_base: tcc_lower_set_scalar(l, op->results, smem_base(l)); return op;
    default:
        if (is_product_op(op))
            return lower_products(l, op);
        return lower_access(l, op) || lower_instruction(l, op) ? op : NULL;
    }
}

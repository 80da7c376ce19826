/* Target-level ops of RDNA, each one instruction that LLVM has an intrinsic for, or an ordinary
 * access to LDS.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <string.h>

#include "codegen/amdgcn/amdgcn.h"
#include "codegen/llvm_major.h"
#include "ir/target.h"

enum { ADDRSPACE_BUFFER = 8 };

static int64_t attr(const tcc_op *op, const char *name)
{
    return tcc_attr_int(&op->attrs, name, 0);
}

static LLVMValueRef attr_i32(const tcc_lower *l, const tcc_op *op, const char *name)
{
    return tcc_lower_i32(l, attr(op, name));
}

static LLVMValueRef const_i1(const tcc_lower *l, bool v)
{
    return LLVMConstInt(l->types[TCC_i1], v, false);
}

/* a + constant, which does not wrap around: the instruction adds it. */
static LLVMValueRef plus(const tcc_lower *l, LLVMValueRef a, int64_t constant)
{
    return constant ? LLVMBuildNUWAdd(l->builder, a, tcc_lower_i32(l, constant), "") : a;
}

/* What one access moves: whole registers, or a part of one. */
static LLVMTypeRef access_type(const tcc_lower *l, const tcc_type *type)
{
    unsigned bits = tcc_lower_count(type) * tcc_scalar_bits(type->elem);
    if (bits <= 32)
        return LLVMIntTypeInContext(l->context, bits);
    return LLVMVectorType(l->types[TCC_i32], bits / 32);
}

static LLVMValueRef as_access(const tcc_lower *l, const tcc_value *v)
{
    return tcc_lower_vector_as(l, v, access_type(l, v->type));
}

/* ---- memory: buffers ------------------------------------------------------------------- */

/* Word 3 of a buffer's descriptor: "RDNA3" and "RDNA4" ISA guides, Vector Memory Buffer
 * Instructions, Buffer Resource and Range Checking. The selection of components and the format only
 * serve format conversions, but format 0 would make the descriptor invalid. OOB_SELECT 3 with
 * stride 0 is the check of raw buffers: what is not within offset + size <= num_records, in bytes
 * and for each word, reads as 0 and is not written. The offset is the sum of the instruction's and
 * the VGPR's. The SGPR is added to the address after the check (llvm.amdgcn.raw.ptr.buffer.load's
 * description in LLVM). */
enum {
    SELECT_XYZW = 4 | 5 << 3 | 6 << 6 | 7 << 9,
    FORMAT_32_FLOAT = 22 << 12, /* of RDNA3's unified formats; RDNA4 has the same */
    OOB_SELECT_RAW = 3 << 28,
    WORD_3 = SELECT_XYZW | FORMAT_32_FLOAT | OOB_SELECT_RAW
};

static LLVMValueRef make_buffer(const tcc_lower *l, const tcc_op *op)
{
    const tcc_amdgcn_make_buffer_operands *o = TCC_VIEW(amdgcn_make_buffer, op);
    LLVMValueRef base = tcc_lower_scalar(l, o->base), offset = tcc_lower_scalar(l, o->offset);
    base = LLVMBuildGEP2(l->builder, l->types[TCC_i8], base, &offset, 1, "");
    LLVMTypeRef types[] = {LLVMPointerTypeInContext(l->context, ADDRSPACE_BUFFER),
                           LLVMTypeOf(base)};
    LLVMValueRef args[] = {
        base, LLVMConstInt(LLVMInt16TypeInContext(l->context), 0, false),
        LLVMBuildIntCast2(l->builder, tcc_lower_scalar(l, o->bytes),
                          LLVMIntTypeInContext(l->context, TCC_LLVM_BUFFER_SIZE_BITS), false, ""),
        tcc_lower_i32(l, WORD_3)};
    return tcc_lower_intrinsic_of(l, "llvm.amdgcn.make.buffer.rsrc", TCC_LLVM_BUFFER_RSRC_TYPES,
                                  types + 2 - TCC_LLVM_BUFFER_RSRC_TYPES, 4, args);
}

static void buffer_load(tcc_lower *l, const tcc_op *op)
{
    const tcc_amdgcn_buffer_load_operands *o = TCC_VIEW(amdgcn_buffer_load, op);
    LLVMValueRef args[] = {tcc_lower_scalar(l, o->buffer),
                           plus(l, tcc_lower_scalar(l, o->voffset), attr(op, "offset")),
                           tcc_lower_scalar(l, o->soffset), tcc_lower_i32(l, 0)};
    tcc_lower_set_vector(l, op->results,
                         tcc_lower_intrinsic(l, "llvm.amdgcn.raw.ptr.buffer.load",
                                             access_type(l, op->results[0].type), 4, args));
}

static void buffer_store(const tcc_lower *l, const tcc_op *op)
{
    const tcc_amdgcn_buffer_store_operands *o = TCC_VIEW(amdgcn_buffer_store, op);
    LLVMValueRef args[] = {as_access(l, o->a), tcc_lower_scalar(l, o->buffer),
                           plus(l, tcc_lower_scalar(l, o->voffset), attr(op, "offset")),
                           tcc_lower_scalar(l, o->soffset), tcc_lower_i32(l, 0)};
    tcc_lower_intrinsic(l, "llvm.amdgcn.raw.ptr.buffer.store", LLVMTypeOf(args[0]), 5, args);
}

/* ---- memory: LDS ----------------------------------------------------------------------- */

/* An address is an offset in the function's LDS: amdgcn.lds_base is 0. NULL, reported, when the
 * function has none. */
static LLVMValueRef lds_pointer(tcc_lower *l, const tcc_op *op, const tcc_value *addr)
{
    if (!l->lds) {
        tcc_error(l->diag, TCC_ERR_TYPE, op->loc,
                  "'%s': the function has no LDS: its attribute 'smem_bytes' is missing",
                  tcc_op_info_get(op->code)->name);
        return NULL;
    }
    LLVMValueRef base = tcc_lower_lds(l, addr), constant = attr_i32(l, op, "offset");
    return attr(op, "offset") ? LLVMBuildInBoundsGEP2(l->builder, l->types[TCC_i8], base, &constant, 1, "") : base;
}

/* The largest power of two that divides the size. */
static unsigned alignment(const tcc_type *type)
{
    unsigned bytes = tcc_lower_count(type) * tcc_scalar_bits(type->elem) / 8;
    return bytes & (0 - bytes);
}

static bool ds_load(tcc_lower *l, const tcc_op *op)
{
    const tcc_value *r = op->results;
    LLVMValueRef pointer = lds_pointer(l, op, TCC_VIEW(amdgcn_ds_load, op)->addr);
    if (!pointer)
        return false;
    LLVMValueRef v = LLVMBuildLoad2(l->builder, access_type(l, r->type), pointer, "");
    LLVMSetAlignment(v, alignment(r->type));
    tcc_lower_set_vector(l, r, v);
    return true;
}

static bool ds_store(tcc_lower *l, const tcc_op *op)
{
    const tcc_amdgcn_ds_store_operands *o = TCC_VIEW(amdgcn_ds_store, op);
    LLVMValueRef pointer = lds_pointer(l, op, o->addr);
    if (!pointer)
        return false;
    LLVMSetAlignment(LLVMBuildStore(l->builder, as_access(l, o->a), pointer),
                     alignment(o->a->type));
    return true;
}

/* ---- waiting --------------------------------------------------------------------------- */

/* "RDNA3" ISA guide, S_WAITCNT: it has a field for each counter, the largest number of which does
 * not wait. Stores count in one of their own. */
static void wait_packed(tcc_lower *l, const tcc_op *op)
{
    enum { NO_EXP = 7, LGKM_SHIFT = 4, VM_SHIFT = 10, NO_WAIT = 63 };
    int64_t load = tcc_attr_int(&op->attrs, "load", NO_WAIT);
    int64_t ds = tcc_attr_int(&op->attrs, "ds", NO_WAIT);
    if (load != NO_WAIT || ds != NO_WAIT) {
        LLVMValueRef fields = tcc_lower_i32(l, NO_EXP | ds << LGKM_SHIFT | load << VM_SHIFT);
        tcc_lower_intrinsic(l, "llvm.amdgcn.s.waitcnt", NULL, 1, &fields);
    }
    if (!tcc_attr_find(&op->attrs, "store"))
        return;
    char text[40]; /* there is no intrinsic */
    int n = snprintf(text, sizeof text, "s_waitcnt_vscnt null, %lld", (long long)attr(op, "store"));
    LLVMTypeRef type = LLVMFunctionType(l->void_type, NULL, 0, false);
    LLVMValueRef code =
        LLVMGetInlineAsm(type, text, (size_t)n, "", 0, true, false, LLVMInlineAsmDialectATT, false);
    LLVMBuildCall2(l->builder, type, code, NULL, 0, "");
}

/* "RDNA4" ISA guide, S_WAIT_LOADCNT and its kin: an instruction for each counter. */
static void wait_split(tcc_lower *l, const tcc_op *op)
{
    static const char *const counters[][2] = {{"load", "llvm.amdgcn.s.wait.loadcnt"},
                                              {"store", "llvm.amdgcn.s.wait.storecnt"},
                                              {"ds", "llvm.amdgcn.s.wait.dscnt"}};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        LLVMValueRef n = LLVMConstInt(LLVMInt16TypeInContext(l->context),
                                      (unsigned long long)attr(op, counters[i][0]), false);
        if (tcc_attr_find(&op->attrs, counters[i][0]))
            tcc_lower_intrinsic(l, counters[i][1], NULL, 1, &n);
    }
}

static void wait(tcc_lower *l, const tcc_op *op)
{
    bool split = tcc_target_can(l->target, TCC_CAN_split_counters);
    (split ? wait_split : wait_packed)(l, op);
}

/* Orders only this wave's accesses to LDS: loads from memory stay in flight. */
static void fence_lds(tcc_lower *l, LLVMAtomicOrdering ordering)
{
    LLVMMetadataRef only[] = {LLVMMDStringInContext2(l->context, "amdgpu-synchronize-as", 21),
                              LLVMMDStringInContext2(l->context, "local", 5)};
    LLVMValueRef fence = LLVMBuildFenceSyncScope(
        l->builder, ordering, LLVMGetSyncScopeID(l->context, "workgroup", 9), "");
    tcc_amdgcn_attach(l, fence, "mmra", 2, only);
}

/* LLVM knows of no memory that the barrier orders. */
static void barrier(tcc_lower *l)
{
    fence_lds(l, LLVMAtomicOrderingRelease);
    tcc_lower_intrinsic(l, "llvm.amdgcn.s.barrier", NULL, 0, NULL);
    fence_lds(l, LLVMAtomicOrderingAcquire);
}

/* ---- products -------------------------------------------------------------------------- */

/* What the intrinsic needs for words that hold elements: floats of 16 bits have a type of their
 * own, bf16 is passed as i16. */
static LLVMValueRef wmma_operand(const tcc_lower *l, const tcc_value *v, tcc_scalar elem)
{
    LLVMTypeRef type = elem == TCC_f16    ? l->types[TCC_f16]
                       : elem == TCC_bf16 ? LLVMInt16TypeInContext(l->context)
                                          : NULL;
    if (!type)
        return tcc_lower_vector(l, v);
    return tcc_lower_vector_as(l, v, LLVMVectorType(type, 2 * tcc_lower_count(v->type)));
}

static tcc_scalar attr_scalar(const tcc_op *op, const char *name)
{
    tcc_scalar s = TCC_f32;
    tcc_attr_scalar(&op->attrs, name, &s); /* the verifier has seen that it is one */
    return s;
}

static bool is_signed_int(tcc_scalar s)
{
    return s == TCC_i8 || s == TCC_i4;
}

/* The intrinsic's name from the instruction's. Where accumulators are in one half of the registers
 * there are two intrinsics, of which only the tied one keeps the other half. */
static const char *wmma_intrinsic(const tcc_lower *l, const tcc_wmma *wmma)
{
    char *name = tcc_arena_printf(l->arena, "llvm.amdgcn.wmma.%s%s", wmma->name,
                                  tcc_wmma_is_in_halves(wmma) ? ".tied" : "");
    for (char *c = name; *c; c++)
        if (*c == '_')
            *c = '.';
    return name;
}

static void lower_wmma(tcc_lower *l, const tcc_op *op)
{
    const tcc_amdgcn_wmma_operands *o = TCC_VIEW(amdgcn_wmma, op);
    tcc_scalar a_elem = attr_scalar(op, "a"), b_elem = attr_scalar(op, "b");
    tcc_scalar acc = attr_scalar(op, "acc");
    const tcc_wmma *wmma =
        tcc_wmma_find(l->target, a_elem, b_elem, acc, attr(op, "k"));
    LLVMValueRef a = wmma_operand(l, o->a, a_elem), b = wmma_operand(l, o->b, b_elem);
    LLVMValueRef c = wmma_operand(l, o->c, acc);
    LLVMTypeRef types[] = {LLVMTypeOf(c), LLVMTypeOf(a), LLVMTypeOf(b)};
    LLVMValueRef args[6];
    unsigned n = 0, n_types = 2;
    if (acc == TCC_i32) {
        args[n++] = const_i1(l, is_signed_int(a_elem));
        args[n++] = a;
        args[n++] = const_i1(l, is_signed_int(b_elem));
        args[n++] = b;
        args[n++] = c;
        args[n++] = const_i1(l, false); /* sums wrap around */
    } else {
        args[n++] = a;
        args[n++] = b;
        args[n++] = c;
        if (acc != TCC_f32)
            args[n++] = const_i1(l, attr(op, "high"));
    }
    tcc_lower_set_vector(
        l, op->results,
        tcc_lower_intrinsic_of(l, wmma_intrinsic(l, wmma), n_types, types, n, args));
}

/* ---- single instructions --------------------------------------------------------------- */

/* Declares that the result of a call is not poison. Otherwise LLVM checks this for each pair of
 * address sums, all the way back to their origins. */
static LLVMValueRef defined(const tcc_lower *l, LLVMValueRef call)
{
    unsigned kind = LLVMGetEnumAttributeKindForName("noundef", strlen("noundef"));
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeReturnIndex,
                             LLVMCreateEnumAttribute(l->context, kind, 0));
    return call;
}

/* How many lanes are below this one, of the first 32 and of the others, of which a wave of 32 has
 * none. LLVM would make a remainder of the thread's number of the intrinsics, and keep that in a
 * register. */
static LLVMValueRef lane(const tcc_lower *l)
{
    static const char text[] = "v_mbcnt_lo_u32_b32 $0, -1, 0\n\tv_mbcnt_hi_u32_b32 $0, -1, $0";
    LLVMTypeRef type = LLVMFunctionType(l->types[TCC_i32], NULL, 0, false);
    LLVMValueRef code = LLVMGetInlineAsm(type, text, sizeof text - 1, "=v", 2, false, false,
                                         LLVMInlineAsmDialectATT, false);
    return defined(l, LLVMBuildCall2(l->builder, type, code, NULL, 0, ""));
}

/* a of lane xor mask: within 16 lanes by DPP's row_xmask, from the other 16 of 32, from the other 32.
 * "RDNA3" ISA guide, 3.3.4 "DPP" and V_PERMLANEX16_B32, whose selectors name lane 0 to 15 of each. */
static LLVMValueRef lane_xor(const tcc_lower *l, const tcc_op *op)
{
    enum { ROW_XMASK = 0x160, ALL = 15, ROW = 16, LOW_LANES = 0x76543210, HIGH_LANES = ~0x01234567 };
    const tcc_type *type = op->operands[0]->type;
    int64_t mask = attr(op, "mask");
    LLVMTypeRef i32 = l->types[TCC_i32];
    LLVMValueRef a = tcc_lower_scalar(l, op->operands[0]), r, no = const_i1(l, false);
    a = LLVMBuildBitCast(l->builder, a, i32, "");
    if (mask < ROW) {
        LLVMValueRef args[] = {a, a, tcc_lower_i32(l, ROW_XMASK + mask), tcc_lower_i32(l, ALL),
                               tcc_lower_i32(l, ALL), const_i1(l, true)};
        r = tcc_lower_intrinsic(l, "llvm.amdgcn.update.dpp", i32, 6, args);
    } else if (mask == ROW) {
        LLVMValueRef args[] = {a,  a, tcc_lower_i32(l, LOW_LANES), tcc_lower_i32(l, HIGH_LANES),
                               no, no};
        r = tcc_lower_intrinsic(l, "llvm.amdgcn.permlanex16", i32, 6, args);
    } else {
        r = tcc_lower_intrinsic(l, "llvm.amdgcn.permlane64", i32, 1, &a);
    }
    return LLVMBuildBitCast(l->builder, r, l->types[type->elem], "");
}

/* The result of an op with one, a scalar; NULL when it is none of these. */
static LLVMValueRef scalar_result(tcc_lower *l, const tcc_op *op)
{
    LLVMTypeRef i32 = l->types[TCC_i32];
    LLVMValueRef x[3] = {NULL};
    for (unsigned i = 0; i < op->n_operands && i < 3; i++)
        if (op->operands[i]->type->kind == TCC_KIND_scalar)
            x[i] = tcc_lower_scalar(l, op->operands[i]);
    switch (op->code) {
    case TCC_OP_amdgcn_tid:
        return defined(l, tcc_lower_intrinsic(l, "llvm.amdgcn.workitem.id.x", NULL, 0, NULL));
    case TCC_OP_amdgcn_lane: return lane(l);
    case TCC_OP_amdgcn_wgid:
        return defined(l, tcc_lower_intrinsic(l, "llvm.amdgcn.workgroup.id.x", NULL, 0, NULL));
    case TCC_OP_amdgcn_readfirstlane:
        return defined(l, tcc_lower_intrinsic(l, "llvm.amdgcn.readfirstlane", i32, 1, x));
    case TCC_OP_amdgcn_lds_base: return tcc_lower_i32(l, 0);
    case TCC_OP_amdgcn_make_buffer: return make_buffer(l, op);
    case TCC_OP_amdgcn_perm:
        x[2] = attr_i32(l, op, "sel");
        return tcc_lower_intrinsic(l, "llvm.amdgcn.perm", NULL, 3, x);
    case TCC_OP_amdgcn_lane_xor: return lane_xor(l, op);
    default: return NULL;
    }
}

/* Calls what only LLVM's scheduler needs to see. Other passes would ask, for each load and each of these, whether it
 * writes what is loaded. */
static void keep_order(const tcc_lower *l, const char *intrinsic, unsigned n, const LLVMValueRef *args)
{
    enum { INACCESSIBLE = 3 << 2 }; /* llvm::MemoryEffects: memory that no other instruction can name */
    LLVMValueRef call = tcc_lower_intrinsic(l, intrinsic, NULL, n, args);
    unsigned kind = LLVMGetEnumAttributeKindForName("memory", strlen("memory"));
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(l->context, kind, INACCESSIBLE));
}

/* What says something to LLVM's scheduler or to the wave's; false when op is none of these. */
static bool schedules(tcc_lower *l, const tcc_op *op)
{
    LLVMValueRef x[3] = {attr_i32(l, op, "mask"), attr_i32(l, op, "size"), tcc_lower_i32(l, 0)};
    LLVMValueRef priority = LLVMConstInt(LLVMInt16TypeInContext(l->context),
                                         (unsigned long long)attr(op, "priority"), false);
    switch (op->code) {
    case TCC_OP_amdgcn_sched_barrier:
        keep_order(l, "llvm.amdgcn.sched.barrier", 1, x);
        return true;
    case TCC_OP_amdgcn_sched_group:
        keep_order(l, "llvm.amdgcn.sched.group.barrier", 3, x);
        return true;
    case TCC_OP_amdgcn_setprio:
        tcc_lower_intrinsic(l, "llvm.amdgcn.s.setprio", NULL, 1, &priority);
        return true;
    default: return false;
    }
}

const tcc_op *tcc_amdgcn_lower_op(tcc_lower *l, const tcc_op *op)
{
    LLVMValueRef r = scalar_result(l, op);
    if (r) {
        tcc_lower_set_scalar(l, op->results, r);
        return op;
    }
    switch (op->code) {
    case TCC_OP_amdgcn_buffer_load: buffer_load(l, op); return op;
    case TCC_OP_amdgcn_buffer_store: buffer_store(l, op); return op;
    case TCC_OP_amdgcn_ds_load: return ds_load(l, op) ? op : NULL;
    case TCC_OP_amdgcn_ds_store: return ds_store(l, op) ? op : NULL;
    case TCC_OP_amdgcn_waitcnt: wait(l, op); return op;
    case TCC_OP_amdgcn_s_barrier: barrier(l); return op;
    case TCC_OP_amdgcn_wmma: lower_wmma(l, op); return op;
    default: return schedules(l, op) ? op : NULL;
    }
}

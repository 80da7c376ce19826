/* Kernels and target-level ops of NVIDIA's GPUs, each one instruction: those that ordinary LLVM IR expresses
 * through it, the others through the PTX builder. Accesses to memory are in access.c, products in products.c.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <string.h>

#include "codegen/llvm_major.h"
#include "codegen/nvptx/nvptx.h"
#include "codegen/nvptx/ptx_builder.h"
#include "ir/cluster.h"
#include "ir/machine.h"
#include "ir/stamps.h"

enum { PTX_KERNEL = 71 /* llvm::CallingConv::PTX_Kernel */ };
enum { SMEM_ALIGN_BYTES = 1024, TENSORMAP_BYTES = 128, TENSORMAP_ALIGN_BYTES = 64 };
enum { MAX_OPERANDS = 9 };

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

/* ---- kernels --------------------------------------------------------------------------- */

/* Adds an entry to the annotations by which older versions of LLVM are told of a kernel. */
static void annotate(tcc_lower *l, const char *name, LLVMMetadataRef value)
{
    LLVMMetadataRef annotation[] = {LLVMValueAsMetadata(l->func),
                                    LLVMMDStringInContext2(l->context, name, strlen(name)), value};
    LLVMAddNamedMetadataOperand(l->module, "nvvm.annotations",
                                LLVMMetadataAsValue(l->context, LLVMMDNodeInContext2(l->context, annotation, 3)));
}

/* What is so at every launch of a kernel. ptxas ignores setmaxnreg where the number of threads is not fixed. */
static void add_launch_bounds(tcc_lower *l, const tcc_func *func)
{
    static const struct {
        const char *attr, *attribute, *format, *annotation;
    } bounds[] = {{"block", "nvvm.reqntid", "%lld", "reqntidx"},
                  {"min_ctas", "nvvm.minctasm", "%lld", "minctasm"},
                  {"cluster_ctas", "nvvm.cluster_dim", "%lld,1,1", "cluster_dim_x"}};
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (!tcc_attr_find(&func->attrs, bounds[i].attr))
            continue;
        long long value = tcc_attr_int(&func->attrs, bounds[i].attr, 1);
        if (TCC_LLVM_HAS_LAUNCH_BOUND_ATTRIBUTES)
            tcc_lower_add_string_attribute(l, TCC_LOWER_FUNC, bounds[i].attribute,
                                           tcc_arena_printf(l->arena, bounds[i].format, value));
        else
            annotate(l, bounds[i].annotation, LLVMValueAsMetadata(tcc_lower_i32(l, value)));
    }
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
        annotate(l, "grid_constant", LLVMMDNodeInContext2(l->context, params, n)); /* from 1 on */
}

void tcc_nvptx_begin_kernel(tcc_lower *l, const tcc_func *func)
{
    LLVMSetFunctionCallConv(l->func, PTX_KERNEL);
    tcc_lower_add_enum_attribute(l, TCC_LOWER_FUNC, "nounwind", 0);
    tcc_lower_add_enum_attribute(l, TCC_LOWER_FUNC, "convergent", 0);
    add_launch_bounds(l, func);
    add_tensormaps(l, func);
}

/* The dynamic shared memory: all of a CTA's. No kernel has a name with a $. */
static LLVMValueRef smem_base(tcc_lower *l)
{
    static const char name[] = "tcc_smem$";
    LLVMValueRef smem = LLVMGetNamedGlobal(l->module, name);
    if (!smem) {
        smem = LLVMAddGlobalInAddressSpace(l->module, LLVMArrayType2(l->types[TCC_i8], 0), name,
                                           TCC_NVPTX_SHARED);
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

/* ---- single instructions --------------------------------------------------------------- */

/* The lanes that a shuffle must stay within: the whole warp. */
static void add_shfl(tcc_ptx *p, const tcc_lower *l, const char *kind, LLVMValueRef a,
                     LLVMValueRef b)
{
    LLVMValueRef clamp = tcc_lower_i32(l, strcmp(kind, "up") ? 31 : 0);
    LLVMValueRef bits = LLVMBuildBitCast(l->builder, a, l->types[TCC_i32], "");
    TCC_PTX_ADD(p, shfl, .kind = {.text = kind}, .a = {.in = bits}, .b = {.in = b},
                .clamp = {.in = clamp});
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

/* Ops whose operands, followed by an attribute where there is one, are those of a row of ptx.def. */
static const struct {
    bool listed;
    tcc_ptx_id row;
    const char *attr;
} plain_rows[TCC_OP_COUNT] = {
    [TCC_OP_nvvm_opaque] = {true, TCC_PTX_opaque, NULL},
    [TCC_OP_nvvm_any] = {true, TCC_PTX_any, NULL},
    [TCC_OP_nvvm_hold] = {true, TCC_PTX_hold, NULL},
    [TCC_OP_nvvm_after] = {true, TCC_PTX_after, NULL},
    [TCC_OP_nvvm_shf] = {true, TCC_PTX_shf, NULL},
    [TCC_OP_nvvm_mapa] = {true, TCC_PTX_mapa, NULL},
    [TCC_OP_nvvm_cluster_wait] = {true, TCC_PTX_cluster_wait, NULL},
    [TCC_OP_nvvm_griddepcontrol_wait] = {true, TCC_PTX_griddepcontrol_wait, NULL},
    [TCC_OP_nvvm_griddepcontrol_launch] = {true, TCC_PTX_griddepcontrol_launch, NULL},
    [TCC_OP_nvvm_elect] = {true, TCC_PTX_elect, NULL},
    [TCC_OP_nvvm_barrier] = {true, TCC_PTX_bar_sync, NULL},
    [TCC_OP_nvvm_mbarrier_init] = {true, TCC_PTX_mbarrier_init, NULL},
    [TCC_OP_nvvm_mbarrier_inval] = {true, TCC_PTX_mbarrier_inval, NULL},
    [TCC_OP_nvvm_mbarrier_arrive] = {true, TCC_PTX_mbarrier_arrive, NULL},
    [TCC_OP_nvvm_mbarrier_arrive_expect_tx] = {true, TCC_PTX_mbarrier_arrive_expect_tx, NULL},
    [TCC_OP_nvvm_mbarrier_arrive_expect_tx_cluster] = {true, TCC_PTX_mbarrier_arrive_expect_tx_cluster, NULL},
    [TCC_OP_nvvm_warp_sync] = {true, TCC_PTX_warp_sync, NULL},
    [TCC_OP_nvvm_ld_shared_word] = {true, TCC_PTX_ld_shared_word, NULL},
    [TCC_OP_nvvm_st_shared_word] = {true, TCC_PTX_st_shared_word, NULL},
    [TCC_OP_nvvm_st_async_word] = {true, TCC_PTX_st_async_word, NULL},
    [TCC_OP_nvvm_atom_inc] = {true, TCC_PTX_atom_inc, NULL},
    [TCC_OP_nvvm_fence_mbarrier_init] = {true, TCC_PTX_fence_mbarrier_init, NULL},
    [TCC_OP_nvvm_fence_proxy_async] = {true, TCC_PTX_fence_proxy_async, NULL},
    [TCC_OP_nvvm_prefetch_tensormap] = {true, TCC_PTX_prefetch_tensormap, NULL},
    [TCC_OP_nvvm_cp_async_commit] = {true, TCC_PTX_cp_async_commit, NULL},
    [TCC_OP_nvvm_cp_async_wait] = {true, TCC_PTX_cp_async_wait, "pending"},
    [TCC_OP_nvvm_bulk_commit] = {true, TCC_PTX_bulk_commit, NULL},
};

static void add_plain(tcc_ptx *p, const tcc_lower *l, const tcc_op *op, const LLVMValueRef *x)
{
    tcc_ptx_arg args[1 + MAX_OPERANDS + 1] = {{.in = NULL}}; /* the guard, operands, the attribute */
    for (unsigned i = 0; i < op->n_operands; i++)
        args[1 + i].in = x[i];
    if (plain_rows[op->code].attr)
        args[1 + op->n_operands].in = tcc_nvptx_attr(l, op, plain_rows[op->code].attr);
    tcc_ptx_add(p, tcc_ptx_info_get(plain_rows[op->code].row), args);
}

/* Adds the row of an op whose operands are x[0], x[1], …; false when it is none of these. */
static bool add_instruction(tcc_ptx *p, tcc_lower *l, const tcc_op *op, const LLVMValueRef *x)
{
    if (plain_rows[op->code].listed) {
        add_plain(p, l, op, x);
        return true;
    }
    switch (op->code) {
    case TCC_OP_nvvm_uniform: add_shfl(p, l, "idx", x[0], tcc_lower_i32(l, 0)); return true;
    case TCC_OP_nvvm_shfl:
        add_shfl(p, l, tcc_attr_str(&op->attrs, "kind", ""), x[0], x[1]);
        return true;
    case TCC_OP_nvvm_cluster_arrive:
        TCC_PTX_ADD(p, cluster_arrive,
                    .relaxed = {.text = tcc_attr_int(&op->attrs, "relaxed", 0) ? ".relaxed" : ""});
        return true;
    case TCC_OP_nvvm_mbarrier_arrive_cluster: {
        const char *release = tcc_has_scope_of_cluster(op) ? ".release.cluster" : "";
        TCC_PTX_ADD(p, mbarrier_arrive_cluster, .release = {.text = release}, .bar = {.in = x[0]});
        return true;
    }
    case TCC_OP_nvvm_mbarrier_wait: {
        const char *acquire = tcc_has_scope_of_cluster(op) ? ".acquire.cluster" : "";
        TCC_PTX_ADD(p, mbarrier_wait, .acquire = {.text = acquire}, .bar = {.in = x[0]}, .parity = {.in = x[1]});
        return true;
    }
    case TCC_OP_nvvm_setmaxnreg:
        TCC_PTX_ADD(p, setmaxnreg, .action = {.text = tcc_attr_str(&op->attrs, "action", "")},
                    .count = {.in = tcc_nvptx_attr(l, op, "count")});
        return true;
    case TCC_OP_nvvm_stamps:
        TCC_PTX_ADD(p, stamps, .base = {.in = x[0]}, .cta = {.in = tcc_nvptx_attr(l, op, "cta")},
                    .bytes = {.in = tcc_lower_i32(l, TCC_STAMPS_OF_WARP * TCC_STAMP_BYTES)});
        return true;
    case TCC_OP_nvvm_stamp:
        TCC_PTX_ADD(p, stamp, .clock = {.text = tcc_attr_int(&op->attrs, "time", 0) ? "%globaltimer_lo" : "%clock"},
                    .a = {.in = x[0]}, .ids = {.in = tcc_lower_i32(l, TCC_STAMP_IDS)},
                    .id = {.in = tcc_nvptx_attr(l, op, "id")},
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
    case TCC_OP_nvvm_bulk_wait:
        if (tcc_attr_int(&op->attrs, "read", 0))
            TCC_PTX_ADD(p, bulk_wait_read, .pending = {.in = tcc_nvptx_attr(l, op, "pending")});
        else
            TCC_PTX_ADD(p, bulk_wait, .pending = {.in = tcc_nvptx_attr(l, op, "pending")});
        return true;
    default: return tcc_nvptx_add_fragment(p, l, op, x[0]);
    }
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
        tcc_lower_set_scalar(l, op->results, tcc_lower_intrinsic(l, special_registers[op->code], NULL, 0, NULL));
        return op;
    }
    switch (op->code) {
    case TCC_OP_arith_fma: return tcc_nvptx_lower_outer(l, op);
    case TCC_OP_nvvm_phase: tcc_lower_set_scalar(l, op->results, phase(l, op)); return op;
    case TCC_OP_nvvm_smem_base: tcc_lower_set_scalar(l, op->results, smem_base(l)); return op;
    default: break;
    }
    const tcc_op *last = tcc_nvptx_lower_products(l, op);
    return last ? last : tcc_nvptx_lower_access(l, op) || lower_instruction(l, op) ? op : NULL;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/lower.h"

#include <assert.h>
#include <string.h>

#include "ir/counting.h"

/* ---- line tables ----------------------------------------------------------------------- */

static void begin_lines(tcc_lower *l, const char *file)
{
    LLVMMetadataRef version = LLVMValueAsMetadata(tcc_lower_i32(l, LLVMDebugMetadataVersion()));
    LLVMAddModuleFlag(l->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18, version);
    l->lines = LLVMCreateDIBuilder(l->module);
    l->line_file = LLVMDIBuilderCreateFile(l->lines, file, strlen(file), "", 0);
    LLVMDWARFEmissionKind kind =
        (LLVMDWARFEmissionKind)l->backend->lines; /* NOLINT: one is not in LLVM-C */
    LLVMDIBuilderCreateCompileUnit(l->lines, LLVMDWARFSourceLanguageC11, l->line_file, "tcc", 3,
                                   true, "", 0, 0, "", 0, kind, 0, false, false, "", 0, "", 0);
}

static void begin_func_lines(tcc_lower *l, const tcc_func *func)
{
    LLVMMetadataRef type =
        LLVMDIBuilderCreateSubroutineType(l->lines, l->line_file, NULL, 0, LLVMDIFlagZero);
    l->line_scope = LLVMDIBuilderCreateFunction(
        l->lines, l->line_file, func->name, strlen(func->name), func->name, strlen(func->name),
        l->line_file, func->loc.line, type, false, true, func->loc.line, LLVMDIFlagZero, true);
    LLVMSetSubprogram(l->func, l->line_scope);
}

/* Ops without a place of their own have the one before them. */
static void set_loc(tcc_lower *l, tcc_loc loc)
{
    if (!l->lines || !loc.line || (loc.line == l->loc.line && loc.column == l->loc.column))
        return;
    l->loc = loc;
    LLVMSetCurrentDebugLocation2(
        l->builder,
        LLVMDIBuilderCreateDebugLocation(l->context, loc.line, loc.column, l->line_scope, NULL));
}

/* ---- control flow ---------------------------------------------------------------------- */

static bool lower_block(tcc_lower *l, const tcc_block *block);

static LLVMBasicBlockRef new_block(const tcc_lower *l, const char *name)
{
    return LLVMAppendBasicBlockInContext(l->context, l->func, name);
}

/* The LLVM values that a value of this type goes through phis as. */
static const LLVMValueRef *parts(const tcc_lower *l, const tcc_value *v, unsigned *n)
{
    *n = tcc_lower_is_vector(l, v->type) ? 1 : tcc_lower_count(v->type);
    if (!tcc_lower_is_vector(l, v->type))
        return tcc_lower_elems(l, v);
    LLVMValueRef *vector = TCC_NEW(l->arena, LLVMValueRef);
    *vector = tcc_lower_vector(l, v);
    return vector;
}

/* Sets a value to the parts that came out of phis. */
static void set_parts(tcc_lower *l, const tcc_value *v, LLVMValueRef *phis)
{
    if (tcc_lower_is_vector(l, v->type))
        tcc_lower_set_vector(l, v, phis[0]);
    else
        tcc_lower_set(l, v, phis);
}

/* What comes into phis from the block that is being built: it must be asked for there. */
typedef struct incoming {
    const LLVMValueRef *parts;
    unsigned n;
    LLVMBasicBlockRef from;
} incoming;

static incoming comes_from_here(const tcc_lower *l, const tcc_value *v)
{
    incoming in = {.from = LLVMGetInsertBlock(l->builder)};
    in.parts = parts(l, v, &in.n);
    return in;
}

static void add_incoming(LLVMValueRef *phis, const incoming *in)
{
    for (unsigned i = 0; i < in->n; i++)
        LLVMAddIncoming(phis[i], (LLVMValueRef *)&in->parts[i], (LLVMBasicBlockRef *)&in->from, 1);
}

/* A phi for each part of the initial value. */
static LLVMValueRef *build_phis(const tcc_lower *l, const incoming *first)
{
    LLVMValueRef *phis = TCC_NEW_ARRAY(l->arena, LLVMValueRef, first->n);
    for (unsigned i = 0; i < first->n; i++)
        phis[i] = LLVMBuildPhi(l->builder, LLVMTypeOf(first->parts[i]), "");
    add_incoming(phis, first);
    return phis;
}

/* What comes in of each of n values. */
static incoming *all_come_from_here(const tcc_lower *l, tcc_value *const *values, unsigned n)
{
    incoming *in = TCC_NEW_ARRAY(l->arena, incoming, n);
    for (unsigned i = 0; i < n; i++)
        in[i] = comes_from_here(l, values[i]);
    return in;
}

/* The result of a loop that only counts. */
static void lower_counting(tcc_lower *l, const tcc_op *op)
{
    LLVMValueRef n = tcc_lower_scalar(l, op->operands[1]);
    for (unsigned i = 0; i < op->n_results; i++) {
        LLVMValueRef first = tcc_lower_scalar(l, op->operands[3 + i]);
        tcc_lower_set_scalar(l, &op->results[i], LLVMBuildAdd(l->builder, first, n, ""));
    }
}

/* Whether there is an iteration: more is an i1 that has to hold as well, or NULL. */
static LLVMValueRef build_test(tcc_lower *l, LLVMValueRef index, LLVMValueRef hi, const tcc_value *more)
{
    LLVMValueRef below = LLVMBuildICmp(l->builder, LLVMIntSLT, index, hi, "");
    return more ? LLVMBuildAnd(l->builder, below, tcc_lower_scalar(l, more), "") : below;
}

/* The test comes after the body: no copies of the carried values are needed for a test before
 * it, and ptxas keeps wgmma asynchronous only in such loops. */
static bool lower_for(tcc_lower *l, const tcc_op *op)
{
    enum { FIRST_CARRIED = 3 };
    const tcc_block *region = op->regions[0];
    LLVMBuilderRef b = l->builder;
    bool at_least_once = tcc_attr_int(&op->attrs, "at_least_once", 0);
    if (tcc_loop_only_counts(op)) {
        lower_counting(l, op);
        return true;
    }
    LLVMValueRef lo = tcc_lower_scalar(l, op->operands[0]);
    LLVMValueRef hi = tcc_lower_scalar(l, op->operands[1]);
    LLVMValueRef step = tcc_lower_scalar(l, op->operands[2]);
    bool tests = tcc_loop_tests(op);
    const incoming *first = all_come_from_here(l, op->operands + FIRST_CARRIED, op->n_results);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(l->builder), body = new_block(l, "loop"), exit = new_block(l, "done");

    if (at_least_once)
        LLVMBuildBr(b, body);
    else
        LLVMBuildCondBr(b, build_test(l, lo, hi, tests ? op->operands[FIRST_CARRIED] : NULL), body, exit);

    LLVMPositionBuilderAtEnd(b, body);
    LLVMValueRef index = LLVMBuildPhi(b, LLVMTypeOf(lo), "");
    LLVMAddIncoming(index, &lo, &before, 1);
    tcc_lower_set_scalar(l, region->args[0], index);
    LLVMValueRef **phis = TCC_NEW_ARRAY(l->arena, LLVMValueRef *, op->n_results);
    for (unsigned i = 0; i < op->n_results; i++)
        phis[i] = build_phis(l, &first[i]);
    for (unsigned i = 0; i < op->n_results; i++)
        set_parts(l, region->args[1 + i], phis[i]);
    if (!lower_block(l, region))
        return false;

    tcc_value *const *yields = op->n_results ? region->last->operands : NULL;
    const incoming *last = all_come_from_here(l, yields, op->n_results);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->builder);
    LLVMValueRef next = LLVMBuildAdd(b, index, step, "");
    LLVMBuildCondBr(b, build_test(l, next, hi, tests ? yields[0] : NULL), body, exit);
    LLVMAddIncoming(index, &next, &latch, 1);
    for (unsigned i = 0; i < op->n_results; i++)
        add_incoming(phis[i], &last[i]);

    LLVMPositionBuilderAtEnd(b, exit);
    for (unsigned i = 0; i < op->n_results; i++) {
        LLVMValueRef *out = (LLVMValueRef *)last[i].parts;
        if (!at_least_once) {
            out = build_phis(l, &first[i]);
            add_incoming(out, &last[i]);
        }
        phis[i] = out;
    }
    for (unsigned i = 0; i < op->n_results; i++) /* after all phis */
        set_parts(l, &op->results[i], phis[i]);
    return true;
}

/* A region that yields nothing may end without scf.yield. */
static bool is_empty(const tcc_block *region)
{
    return !region->first || region->first->code == TCC_OP_scf_yield;
}

/* The results of a lowered region of an scf.if. */
static const incoming *yielded(const tcc_lower *l, const tcc_op *op, unsigned r)
{
    return op->n_results ? all_come_from_here(l, op->regions[r]->last->operands, op->n_results)
                         : NULL;
}

static bool lower_if(tcc_lower *l, const tcc_op *op)
{
    LLVMBuilderRef b = l->builder;
    LLVMValueRef cond = tcc_lower_scalar(l, op->operands[0]);
    LLVMBasicBlockRef join = new_block(l, "join");
    LLVMBasicBlockRef starts[2] = {join, join};
    static const char *const names[2] = {"then", "else"};
    const incoming *in[2];

    for (unsigned r = 0; r < 2; r++)
        if (!is_empty(op->regions[r]))
            starts[r] = new_block(l, names[r]);
    if (starts[0] == join && starts[1] == join) /* both empty: the phis need two ways in */
        starts[0] = new_block(l, names[0]);
    for (unsigned r = 0; r < 2; r++)
        if (starts[r] == join) /* it yields nothing, or what was there before */
            in[r] = yielded(l, op, r);
    LLVMBuildCondBr(b, cond, starts[0], starts[1]);
    for (unsigned r = 0; r < 2; r++) {
        if (starts[r] == join)
            continue;
        LLVMPositionBuilderAtEnd(b, starts[r]);
        if (!lower_block(l, op->regions[r]))
            return false;
        in[r] = yielded(l, op, r);
        LLVMBuildBr(b, join);
    }

    LLVMPositionBuilderAtEnd(b, join);
    LLVMValueRef **phis = TCC_NEW_ARRAY(l->arena, LLVMValueRef *, op->n_results);
    for (unsigned i = 0; i < op->n_results; i++) {
        phis[i] = build_phis(l, &in[0][i]);
        add_incoming(phis[i], &in[1][i]);
    }
    for (unsigned i = 0; i < op->n_results; i++) /* after all phis */
        set_parts(l, &op->results[i], phis[i]);
    return true;
}

/* ---- registers of one thread ----------------------------------------------------------- */

static void lower_pack(tcc_lower *l, const tcc_op *op)
{
    LLVMValueRef vector = tcc_lower_concat(l, op->operands, op->n_operands);
    if (vector) {
        tcc_lower_set_vector(l, &op->results[0], vector);
        return;
    }
    LLVMValueRef *out = TCC_NEW_ARRAY(l->arena, LLVMValueRef, tcc_lower_count(op->results[0].type));
    for (unsigned i = 0, at = 0; i < op->n_operands; i++) {
        unsigned n = tcc_lower_count(op->operands[i]->type);
        memcpy(out + at, tcc_lower_elems(l, op->operands[i]), n * sizeof *out);
        at += n;
    }
    tcc_lower_set(l, &op->results[0], out);
}

static void lower_fill(tcc_lower *l, const tcc_op *op, LLVMValueRef x)
{
    unsigned n = tcc_lower_count(op->results[0].type);
    LLVMValueRef *out = TCC_NEW_ARRAY(l->arena, LLVMValueRef, n);
    for (unsigned i = 0; i < n; i++)
        out[i] = x;
    tcc_lower_set(l, &op->results[0], out);
}

static void lower_bitcast(tcc_lower *l, const tcc_op *op)
{
    const tcc_type *from = op->operands[0]->type, *to = op->results[0].type;
    tcc_lower_set(l, &op->results[0],
                  tcc_lower_bitcast(l, tcc_lower_elems(l, op->operands[0]), tcc_lower_count(from),
                                    l->types[to->elem], tcc_lower_count(to)));
}

/* ---- ops ------------------------------------------------------------------------------- */

static bool has_register_form(const tcc_lower *l, const tcc_type *t)
{
    switch (t->kind) {
    case TCC_KIND_scalar:
    case TCC_KIND_vec: return l->types[t->elem] != NULL;
    case TCC_KIND_ptr:
    case TCC_KIND_buffer:
    case TCC_KIND_tensormap: return true;
    default: return false;
    }
}

/* Lowers an op that every target has; false when it is none or an error was reported. */
static bool lower_shared(tcc_lower *l, const tcc_op *op)
{
    const tcc_value *r = op->results;
    switch (op->code) {
    case TCC_OP_scf_for: return lower_for(l, op);
    case TCC_OP_scf_if: return lower_if(l, op);
    case TCC_OP_scf_yield: return true; /* read by the op around it */
    case TCC_OP_func_return: return LLVMBuildRetVoid(l->builder) != NULL;
    case TCC_OP_vec_pack: lower_pack(l, op); return true;
    case TCC_OP_vec_slice:
    case TCC_OP_vec_extract:
        tcc_lower_set(l, r,
                      tcc_lower_elems(l, op->operands[0]) + tcc_attr_int(&op->attrs, "offset", 0));
        return true;
    case TCC_OP_vec_splat: lower_fill(l, op, tcc_lower_scalar(l, op->operands[0])); return true;
    case TCC_OP_vec_undef: lower_fill(l, op, LLVMGetPoison(l->types[r->type->elem])); return true;
    case TCC_OP_vec_bitcast: lower_bitcast(l, op); return true;
    default:
        if (tcc_lower_is_fp8_cast(op)) {
            tcc_lower_fp8_cast(l, op);
            return true;
        }
        return (op->code == TCC_OP_arith_const ||
                tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE) &&
               tcc_lower_elementwise(l, op);
    }
}

/* Lowers op, or a run of ops from it on. Returns the last one, NULL after an error. */
static const tcc_op *lower_op(tcc_lower *l, const tcc_op *op)
{
    unsigned errors = l->diag->n_errors;
    const tcc_op *last = NULL;
    bool ok = true;
    for (unsigned i = 0; i < op->n_results; i++)
        ok = ok && has_register_form(l, op->results[i].type);
    if (ok && l->backend->is_own && l->backend->is_own(op))
        last = l->backend->lower_op(l, op);
    else if (ok)
        last = lower_shared(l, op) ? op : l->backend->lower_op(l, op);
    if (!last && l->diag->n_errors == errors)
        tcc_error(l->diag, TCC_ERR_INTERNAL, op->loc, "'%s' has no translation to LLVM IR",
                  tcc_op_info_get(op->code)->name);
    return last;
}

static bool lower_block(tcc_lower *l, const tcc_block *block)
{
    for (const tcc_op *op = block->first; op; op = op->next) {
        set_loc(l, op->loc);
        op = lower_op(l, op);
        if (!op)
            return false;
    }
    return true;
}

/* ---- functions and modules ------------------------------------------------------------- */

void tcc_lower_add_string_attribute(tcc_lower *l, int at, const char *name, const char *value)
{
    LLVMAddAttributeAtIndex(l->func, (LLVMAttributeIndex)at,
                            LLVMCreateStringAttribute(l->context, name, (unsigned)strlen(name),
                                                      value, (unsigned)strlen(value)));
}

void tcc_lower_add_enum_attribute(tcc_lower *l, int at, const char *name, uint64_t value)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(l->func, (LLVMAttributeIndex)at,
                            LLVMCreateEnumAttribute(l->context, kind, value));
}

static LLVMTypeRef param_type(const tcc_lower *l, const tcc_type *t)
{
    enum { GENERIC = 0, GLOBAL = 1 }; /* address spaces, the same for NVPTX and AMDGPU */
    switch (t->kind) {
    case TCC_KIND_scalar: return l->types[t->elem];
    case TCC_KIND_ptr: return LLVMPointerTypeInContext(l->context, GLOBAL);
    case TCC_KIND_tensormap: return LLVMPointerTypeInContext(l->context, GENERIC);
    default: return NULL;
    }
}

bool tcc_lower_func(tcc_lower *l, const tcc_func *func)
{
    const char *reserved = l->backend->reserved;
    if (reserved && tcc_has_word(reserved, func->name)) {
        tcc_error(l->diag, TCC_ERR_TARGET, func->loc,
                  "a kernel for %s cannot have the name '%s', which its assembler reserves",
                  l->target->name, func->name);
        return false;
    }
    size_t n = func->body->n_args;
    LLVMTypeRef *types = TCC_NEW_ARRAY(l->arena, LLVMTypeRef, n);
    for (size_t i = 0; i < n; i++) {
        types[i] = param_type(l, func->body->args[i]->type);
        if (!types[i]) {
            tcc_error(l->diag, TCC_ERR_INTERNAL, func->loc,
                      "parameter %zu of '%s' cannot be passed to a kernel: code is generated "
                      "from IR of the target level",
                      i + 1, func->name);
            return false;
        }
    }
    l->func = LLVMAddFunction(l->module, func->name,
                              LLVMFunctionType(l->void_type, types, (unsigned)n, false));
    l->lds = NULL;
    l->values = TCC_MAP(l->arena);
    l->loc = (tcc_loc){0, 0};
    for (size_t i = 0; i < n; i++)
        tcc_lower_set_scalar(l, func->body->args[i], LLVMGetParam(l->func, (unsigned)i));
    l->backend->begin_kernel(l, func);
    LLVMPositionBuilderAtEnd(l->builder, new_block(l, "entry"));
    LLVMSetCurrentDebugLocation2(l->builder, NULL);
    if (l->lines)
        begin_func_lines(l, func);
    set_loc(l, func->loc);
    return lower_block(l, func->body);
}

void tcc_lower_begin(tcc_lower *l, const char *file)
{
    LLVMContextRef c = l->context;
    l->void_type = LLVMVoidTypeInContext(c);
    l->types[TCC_f32] = l->types[TCC_tf32] = LLVMFloatTypeInContext(c);
    l->types[TCC_f64] = LLVMDoubleTypeInContext(c);
    l->types[TCC_f16] = LLVMHalfTypeInContext(c);
    l->types[TCC_bf16] = LLVMBFloatTypeInContext(c);
    l->types[TCC_i64] = LLVMInt64TypeInContext(c);
    l->types[TCC_i32] = LLVMInt32TypeInContext(c);
    l->types[TCC_i8] = l->types[TCC_u8] = LLVMInt8TypeInContext(c);
    l->types[TCC_i4] = l->types[TCC_u4] = LLVMIntTypeInContext(c, tcc_scalar_bits(TCC_i4));
    l->types[TCC_e4m3] = l->types[TCC_e5m2] = l->types[TCC_i8]; /* their bits */
    l->types[TCC_i1] = LLVMInt1TypeInContext(c);
    if (file)
        begin_lines(l, file);
}

void tcc_lower_end(tcc_lower *l)
{
    if (l->lines)
        LLVMDIBuilderFinalize(l->lines);
}

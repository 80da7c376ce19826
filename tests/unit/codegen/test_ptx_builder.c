/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/nvptx/ptx_builder.h"

#include <check.h>
#include <llvm-c/Analysis.h>
#include <string.h>

#include "tests/unit/suite.h"

static tcc_arena *arena;
static LLVMContextRef context;
static LLVMModuleRef module;
static LLVMBuilderRef builder;
static LLVMValueRef func;
static tcc_ptx ptx;

enum { I1, I16, I32, I64, F32, F64, F16, PTR, N_PARAMS };

/* A function with a parameter of every type. */
static void setup(void)
{
    arena = tcc_arena_create(NULL);
    context = LLVMContextCreate();
    module = LLVMModuleCreateWithNameInContext("test", context);
    builder = LLVMCreateBuilderInContext(context);
    LLVMTypeRef types[N_PARAMS] = {
        LLVMInt1TypeInContext(context),  LLVMInt16TypeInContext(context),
        LLVMInt32TypeInContext(context), LLVMInt64TypeInContext(context),
        LLVMFloatTypeInContext(context), LLVMDoubleTypeInContext(context),
        LLVMHalfTypeInContext(context),  LLVMPointerTypeInContext(context, 1),
    };
    LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context), types, N_PARAMS, false);
    func = LLVMAddFunction(module, "f", type);
    LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, func, ""));
    tcc_ptx_begin(&ptx, context, builder, arena);
}

static void teardown(void)
{
    LLVMDisposeBuilder(builder);
    LLVMDisposeModule(module);
    LLVMContextDispose(context);
    tcc_arena_destroy(arena);
}

static LLVMValueRef param(int i)
{
    return LLVMGetParam(func, (unsigned)i);
}

static LLVMValueRef number(int i, int v)
{
    return LLVMConstInt(LLVMTypeOf(param(i)), (unsigned long long)v, true);
}

/* Ends the asm and checks that it is this one, and that LLVM accepts it. */
static const LLVMValueRef *end_as(const char *text, const char *constraints)
{
    const LLVMValueRef *outs = tcc_ptx_end(&ptx);
    LLVMValueRef call = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(func));
    LLVMValueRef callee = LLVMGetCalledValue(call);
    size_t n;
    const char *got = LLVMGetInlineAsmAsmString(callee, &n);
    ck_assert_str_eq(tcc_arena_strndup(arena, got, n), text);
    got = LLVMGetInlineAsmConstraintString(callee, &n);
    ck_assert_str_eq(tcc_arena_strndup(arena, got, n), constraints);
    LLVMBuildRetVoid(builder);
    char *message = NULL;
    ck_assert_msg(!LLVMVerifyModule(module, LLVMReturnStatusAction, &message), "%s", message);
    LLVMDisposeMessage(message);
    return outs;
}

static bool has_call_attribute(const char *name)
{
    LLVMValueRef call = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(func));
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return LLVMGetCallSiteEnumAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                                        kind) != NULL;
}

static bool has_side_effects(void)
{
    LLVMValueRef call = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(func));
    return LLVMGetInlineAsmHasSideEffects(LLVMGetCalledValue(call));
}

/* ---- letters --------------------------------------------------------------------------- */

static const struct {
    const char *letter;
    int param;
} letters[] = {{"b", I1},  {"h", I16}, {"h", F16}, {"r", I32},
               {"l", I64}, {"l", PTR}, {"f", F32}, {"d", F64}};

START_TEST(every_letter_goes_in)
{
    const char *letter = letters[_i].letter;
    tcc_ptx_info row = {"use ${a};", {{"a", letter, TCC_PTX_IN, false}}, TCC_PTX_VOLATILE};
    tcc_ptx_arg args[] = {{.in = NULL}, {.in = param(letters[_i].param)}};
    tcc_ptx_add(&ptx, &row, args);
    end_as("use ${0};", letter);
}
END_TEST

START_TEST(every_letter_comes_out)
{
    const char *letter = letters[_i].letter;
    tcc_ptx_info row = {"make ${r};", {{"r", letter, TCC_PTX_OUT, false}}, TCC_PTX_VOLATILE};
    tcc_ptx_arg args[] = {{.in = NULL}};
    unsigned first = tcc_ptx_add(&ptx, &row, args);
    const LLVMValueRef *outs = end_as("make ${0};", tcc_arena_printf(arena, "=%s", letter));
    /* What has no type of its own is an integer of the letter's size. */
    bool own = letters[_i].param != F16 && letters[_i].param != PTR;
    if (own)
        ck_assert_ptr_eq(LLVMTypeOf(outs[first]), LLVMTypeOf(param(letters[_i].param)));
}
END_TEST

START_TEST(every_letter_is_tied)
{
    const char *letter = letters[_i].letter;
    tcc_ptx_info row = {"change ${x};", {{"x", letter, TCC_PTX_INOUT, false}}, TCC_PTX_VOLATILE};
    tcc_ptx_arg args[] = {{.in = NULL}, {.in = param(letters[_i].param)}};
    unsigned first = tcc_ptx_add(&ptx, &row, args);
    const LLVMValueRef *outs = end_as("change ${0};", tcc_arena_printf(arena, "=%s,0", letter));
    ck_assert_ptr_eq(LLVMTypeOf(outs[first]), LLVMTypeOf(param(letters[_i].param)));
}
END_TEST

/* ---- immediates ------------------------------------------------------------------------ */

START_TEST(an_immediate_has_letter_n)
{
    TCC_PTX_ADD(&ptx, wgmma_wait, .pending = {.in = number(I32, 1)});
    end_as("wgmma.wait_group.sync.aligned ${0};", "n,~{memory}");
}
END_TEST

START_TEST(a_constant_may_be_an_immediate)
{
    TCC_PTX_ADD(&ptx, bar_sync, .id = {.in = param(I32)}, .threads = {.in = number(I32, 128)});
    end_as("bar.sync ${0}, ${1};", "r,n,~{memory}");
}
END_TEST

START_TEST(a_constant_predicate_is_0_or_1)
{
    tcc_ptx_info row = {"use ${p}, ${q};",
                        {{"p", "bi", TCC_PTX_IN, false}, {"q", "bi", TCC_PTX_IN, false}},
                        TCC_PTX_VOLATILE};
    tcc_ptx_arg args[] = {{.in = NULL}, {.in = number(I1, 1)}, {.in = param(I1)}};
    tcc_ptx_add(&ptx, &row, args);
    end_as("use ${0}, ${1};", "n,b");
    LLVMValueRef call = LLVMGetFirstInstruction(LLVMGetEntryBasicBlock(func));
    LLVMValueRef p = LLVMGetOperand(call, 0);
    ck_assert_int_eq(LLVMConstIntGetSExtValue(p), 1);
}
END_TEST

START_TEST(a_register_operand_is_never_an_immediate)
{
    TCC_PTX_ADD(&ptx, mbarrier_arrive, .bar = {.in = number(I32, 64)});
    end_as("mbarrier.arrive.shared::cta.b64 _, [${0}];", "r,~{memory}");
}
END_TEST

/* ---- guards ---------------------------------------------------------------------------- */

static void add_store(LLVMValueRef guard)
{
    LLVMValueRef a = param(I32);
    TCC_PTX_ADD(&ptx, st_global_b32, .guard = {.in = guard}, .addr = {.in = param(PTR)},
                .disp = {.in = number(I32, 8)}, .a = {.list = &a, .n = 1});
}

START_TEST(a_guard_is_a_predicate_before_the_instruction)
{
    add_store(param(I1));
    end_as("@${0} st.global.b32 [${1}+${2}], ${3};", "b,l,n,r,~{memory}");
}
END_TEST

START_TEST(a_guard_that_always_holds_is_left_out)
{
    add_store(number(I1, 1));
    end_as("st.global.b32 [${0}+${1}], ${2};", "l,n,r,~{memory}");
}
END_TEST

START_TEST(a_guarded_result_is_what_went_in_or_what_came_out)
{
    LLVMValueRef r = param(F16);
    unsigned first =
        TCC_PTX_ADD(&ptx, ld_global_b16, .guard = {.in = param(I1)}, .r = {.list = &r, .n = 1},
                    .addr = {.in = param(PTR)}, .disp = {.in = number(I32, 0)});
    const LLVMValueRef *outs =
        end_as("@${1} ld.global.b16 ${0}, [${2}+${3}];", "=h,b,l,n,0,~{memory}");
    ck_assert_ptr_eq(LLVMTypeOf(outs[first]), LLVMTypeOf(param(F16)));
}
END_TEST

/* ---- lists ----------------------------------------------------------------------------- */

START_TEST(a_list_is_separated_by_commas_and_counted)
{
    LLVMValueRef at[] = {param(I32), number(I32, 64), number(I32, 0)};
    TCC_PTX_ADD(&ptx, tma_store, .src = {.in = param(I32)}, .map = {.in = param(PTR)},
                .at = {.list = at, .n = 3});
    end_as("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group "
           "[${1}, {${0},${2},${3}}], [${0}];",
           "r,l,n,n,~{memory}");
}
END_TEST

START_TEST(a_list_of_results_is_tied_one_by_one)
{
    LLVMValueRef r[] = {param(I32), number(I32, 7)};
    unsigned first = TCC_PTX_ADD(&ptx, ld_global_vec, .r = {.list = r, .n = 2},
                                 .addr = {.in = param(PTR)}, .disp = {.in = number(I32, 4)});
    const LLVMValueRef *outs =
        end_as("ld.global.v2.b32 {${0},${1}}, [${2}+${3}];", "=r,=r,l,n,0,1,~{memory}");
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(LLVMGetInstructionOpcode(outs[first + i]), LLVMExtractValue);
        ck_assert_uint_eq(*LLVMGetIndices(outs[first + i]), i);
    }
}
END_TEST

START_TEST(an_empty_list_binds_nothing)
{
    TCC_PTX_ADD(&ptx, wgmma_wait, .acc = {.n = 0}, .pending = {.in = number(I32, 0)});
    end_as("wgmma.wait_group.sync.aligned ${0};", "n,~{memory}");
}
END_TEST

/* ---- sequences ------------------------------------------------------------------------- */

static unsigned add_product(tcc_ptx_arg acc, LLVMValueRef scale_d)
{
    return TCC_PTX_ADD(&ptx, wgmma, .acc = acc, .n = {.in = number(I32, 8)},
                       .type = {.text = "bf16"}, .a = {.in = param(I64)}, .b = {.in = param(I64)},
                       .scale_d = {.in = scale_d}, .trans_a = {.in = number(I32, 0)},
                       .trans_b = {.in = number(I32, 1)});
}

START_TEST(a_sequence_ties_what_flows_through_it_once)
{
    LLVMValueRef acc[] = {param(F32), param(F32), param(F32), param(F32)};
    TCC_PTX_ADD(&ptx, wgmma_fence);
    unsigned first = add_product((tcc_ptx_arg){.list = acc, .n = 4}, param(I1));
    unsigned second = add_product(tcc_ptx_chain(first, 4), number(I1, 1));
    TCC_PTX_ADD(&ptx, wgmma_commit);
    ck_assert_uint_eq(second, first);
    end_as("wgmma.fence.sync.aligned;\n"
           "wgmma.mma_async.sync.aligned.m64n${4}k16.f32.bf16.bf16 {${0},${1},${2},${3}}, "
           "${5}, ${5}, ${6}, 1, 1, ${7}, ${8};\n"
           "wgmma.mma_async.sync.aligned.m64n${4}k16.f32.bf16.bf16 {${0},${1},${2},${3}}, "
           "${5}, ${5}, ${8}, 1, 1, ${7}, ${8};\n"
           "wgmma.commit_group.sync.aligned;",
           "=f,=f,=f,=f,n,l,b,n,n,0,1,2,3,~{memory}");
}
END_TEST

START_TEST(results_are_numbered_through_a_sequence)
{
    LLVMValueRef acc[] = {param(F32), param(F32), param(F32), param(F32)};
    unsigned first = add_product((tcc_ptx_arg){.list = acc, .n = 4}, param(I1));
    unsigned second = add_product((tcc_ptx_arg){.list = acc, .n = 4}, param(I1));
    ck_assert_uint_eq(first, 0);
    ck_assert_uint_eq(second, 4);
    const LLVMValueRef *outs = tcc_ptx_end(&ptx);
    ck_assert_uint_eq(*LLVMGetIndices(outs[second + 3]), 7);
}
END_TEST

/* ---- effects --------------------------------------------------------------------------- */

START_TEST(effects_become_clobbers_and_attributes)
{
    TCC_PTX_ADD(&ptx, bar_sync, .id = {.in = number(I32, 1)}, .threads = {.in = number(I32, 128)});
    end_as("bar.sync ${0}, ${1};", "n,n,~{memory}");
    ck_assert(has_side_effects());
    ck_assert(has_call_attribute("convergent"));
    ck_assert(!has_call_attribute("memory"));
}
END_TEST

START_TEST(what_has_no_effect_may_be_removed)
{
    TCC_PTX_ADD(&ptx, shfl, .kind = {.text = "idx"}, .a = {.in = param(I32)},
                .b = {.in = number(I32, 0)}, .clamp = {.in = number(I32, 31)});
    end_as("shfl.sync.idx.b32 ${0}, ${1}, ${2}, ${3}, -1;", "=r,r,n,n");
    ck_assert(!has_side_effects());
    ck_assert(has_call_attribute("convergent"));
    ck_assert(has_call_attribute("memory"));
    ck_assert(has_call_attribute("willreturn"));
}
END_TEST

START_TEST(volatile_alone_clobbers_no_memory)
{
    TCC_PTX_ADD(&ptx, setmaxnreg, .action = {.text = "inc"}, .count = {.in = number(I32, 232)});
    end_as("setmaxnreg.inc.sync.aligned.u32 ${0};", "n");
    ck_assert(has_side_effects());
}
END_TEST

/* ---- the table ------------------------------------------------------------------------- */

/* Whether a text names an operand, as ${name} or ${#name}. */
static bool mentions(const char *text, const char *name)
{
    return strstr(text, tcc_arena_printf(arena, "${%s}", name)) ||
           strstr(text, tcc_arena_printf(arena, "${#%s}", name));
}

START_TEST(every_row_is_consistent)
{
    static const char *const known[] = {"h", "r", "l", "f", "d", "b", "n", "ri", "bi"};
    const tcc_ptx_info *row = tcc_ptx_info_get((tcc_ptx_id)_i);
    const char *last = row->text + strlen(row->text) - 1;
    ck_assert(*last == ';' || *last == '}');
    unsigned places = 0, operands = 0, passed = 0;
    for (const char *p = row->text; (p = strstr(p, "${")); p += 2)
        places++;
    for (const tcc_ptx_operand_info *o = row->operands; o->name; o++) {
        bool found = o->dir == TCC_PTX_TEXT;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            found |= !strcmp(known[i], o->letter);
        ck_assert_msg(found, "%s: letter '%s'", row->text, o->letter);
        /* Only registers that pass through need no place in the text. */
        ck_assert_msg(mentions(row->text, o->name) || o->dir == TCC_PTX_INOUT, "%s: %s", row->text,
                      o->name);
        passed += !mentions(row->text, o->name);
        operands++;
    }
    ck_assert_uint_ge(places, operands - passed);
}
END_TEST

Suite *SUITE(void)
{
    const int n_letters = sizeof letters / sizeof *letters;
    Suite *s = suite_create("ptx_builder");
    TCase *tc = tcase_create("ptx_builder");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, every_letter_goes_in, 0, n_letters);
    tcase_add_loop_test(tc, every_letter_comes_out, 0, n_letters);
    tcase_add_loop_test(tc, every_letter_is_tied, 0, n_letters);
    tcase_add_test(tc, an_immediate_has_letter_n);
    tcase_add_test(tc, a_constant_may_be_an_immediate);
    tcase_add_test(tc, a_constant_predicate_is_0_or_1);
    tcase_add_test(tc, a_register_operand_is_never_an_immediate);
    tcase_add_test(tc, a_guard_is_a_predicate_before_the_instruction);
    tcase_add_test(tc, a_guard_that_always_holds_is_left_out);
    tcase_add_test(tc, a_guarded_result_is_what_went_in_or_what_came_out);
    tcase_add_test(tc, a_list_is_separated_by_commas_and_counted);
    tcase_add_test(tc, a_list_of_results_is_tied_one_by_one);
    tcase_add_test(tc, an_empty_list_binds_nothing);
    tcase_add_test(tc, a_sequence_ties_what_flows_through_it_once);
    tcase_add_test(tc, results_are_numbered_through_a_sequence);
    tcase_add_test(tc, effects_become_clobbers_and_attributes);
    tcase_add_test(tc, what_has_no_effect_may_be_removed);
    tcase_add_test(tc, volatile_alone_clobbers_no_memory);
    tcase_add_loop_test(tc, every_row_is_consistent, 0, TCC_PTX_COUNT);
    suite_add_tcase(s, tc);
    return s;
}

/* The IR in memory: types, attributes, building, changing, cloning, walking.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <check.h>
#include <string.h>

#include "ir/ir.h"
#include "ir/fragment.h"
#include "tests/unit/suite.h"

static tcc_arena *arena;
static tcc_ir *ir;
static tcc_func *f;
static const tcc_type *i32;

static void setup(void)
{
    arena = tcc_arena_create(NULL);
    ir = tcc_ir_create(arena);
    f = tcc_func_create(ir, "f", (tcc_loc){0, 0});
    i32 = tcc_type_scalar(ir, TCC_i32);
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

/* ---- types ----------------------------------------------------------------------------- */

START_TEST(equal_types_are_one_pointer)
{
    char m[] = "M";
    const tcc_dim dims[] = {{m, 0}, {NULL, 64}}, other[] = {{NULL, 64}, {m, 0}};
    const tcc_type *t = tcc_type_get(ir, TCC_KIND_tensor, TCC_f16, 2, dims);
    m[0] = 'N';
    const tcc_type *n = tcc_type_get(ir, TCC_KIND_tensor, TCC_f16, 2, dims);
    m[0] = 'M';
    ck_assert_ptr_eq(t, tcc_type_get(ir, TCC_KIND_tensor, TCC_f16, 2, dims));
    ck_assert_ptr_ne(t, n);
    ck_assert_ptr_ne(t, tcc_type_get(ir, TCC_KIND_tensor, TCC_f16, 2, other));
    ck_assert_ptr_ne(t, tcc_type_get(ir, TCC_KIND_tensor, TCC_bf16, 2, dims));
    ck_assert_ptr_ne(t, tcc_type_get(ir, TCC_KIND_ptr, TCC_f16, 2, dims));
    ck_assert_ptr_ne(t, tcc_type_get(ir, TCC_KIND_tensor, TCC_f16, 1, dims));
    ck_assert_ptr_eq(tcc_type_with_elem(ir, t, TCC_bf16),
                     tcc_type_get(ir, TCC_KIND_tensor, TCC_bf16, 2, dims));
}
END_TEST

START_TEST(types_stay_while_the_table_grows)
{
    enum { N = 5000 };
    static const tcc_type *seen[N];
    for (int64_t i = 0; i < N; i++)
        seen[i] = tcc_type_sized(ir, TCC_KIND_vec, TCC_f32, 1, &i);
    for (int64_t i = 0; i < N; i++)
        ck_assert_ptr_eq(seen[i], tcc_type_sized(ir, TCC_KIND_vec, TCC_f32, 1, &i));
}
END_TEST

START_TEST(types_print)
{
    const struct {
        const tcc_type *type;
        const char *text;
    } cases[] = {
        {tcc_type_scalar(ir, TCC_e4m3), "e4m3"},
        {tcc_type_sized(ir, TCC_KIND_smem, TCC_bf16, 3, (int64_t[]){4, 128, 64}),
         "smem<bf16[4, 128, 64]>"},
        {tcc_type_get(ir, TCC_KIND_tensor, TCC_f16, 2, (tcc_dim[]){{"M", 0}, {NULL, 8}}),
         "tensor<f16[M, 8]>"},
        {tcc_type_get(ir, TCC_KIND_field, TCC_f32, 0, NULL), "field<f32>"},
        {tcc_type_get(ir, TCC_KIND_ring, TCC_f32, 0, NULL), "ring"},
        {tcc_type_get(ir, TCC_KIND_tensormap, TCC_f32, 0, NULL), "tensormap"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tcc_str s = {0};
        tcc_type_print(&s, cases[i].type);
        ck_assert_str_eq(tcc_str_text(&s), cases[i].text);
        tcc_str_free(&s);
    }
    ck_assert_int_eq(tcc_type_count(cases[1].type), 4 * 128 * 64);
    ck_assert_int_eq(tcc_type_count(cases[0].type), 1);
}
END_TEST

START_TEST(scalars_are_found_by_name)
{
    tcc_scalar s;
    for (int i = 0; i < TCC_SCALAR_COUNT; i++) {
        const char *name = tcc_scalar_name((tcc_scalar)i);
        ck_assert(tcc_scalar_find(name, strlen(name), &s) && (int)s == i);
    }
    ck_assert(!tcc_scalar_find("f3", 2, &s));
    ck_assert(!tcc_scalar_find("f322", 4, &s));
    ck_assert_uint_eq(tcc_scalar_bits(TCC_u4), 4);
    ck_assert_int_eq(tcc_scalar_classify(TCC_tf32), TCC_CLASS_FLOAT);
}
END_TEST

START_TEST(integers_have_ranges)
{
    static const struct {
        tcc_scalar s;
        int64_t least, most;
    } cases[] = {
        {TCC_i64, INT64_MIN, INT64_MAX},
        {TCC_i32, INT32_MIN, INT32_MAX},
        {TCC_i8, -128, 127},
        {TCC_u8, 0, 255},
        {TCC_i4, -8, 7},
        {TCC_u4, 0, 15},
        {TCC_i1, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tcc_int_range range = tcc_scalar_range(cases[i].s);
        ck_assert_int_eq(range.least, cases[i].least);
        ck_assert_int_eq(range.most, cases[i].most);
        ck_assert_int_eq(tcc_int_saturate(cases[i].s, INT64_MIN), range.least);
        ck_assert_int_eq(tcc_int_saturate(cases[i].s, INT64_MAX), range.most);
        ck_assert_int_eq(tcc_int_saturate(cases[i].s, 1), 1);
    }
    ck_assert_int_eq(tcc_int_wrap(TCC_i32, INT64_C(0x180000000)), INT32_MIN);
    ck_assert_int_eq(tcc_int_wrap(TCC_i8, 255), -1);
    ck_assert_int_eq(tcc_int_wrap(TCC_u8, -1), 255);
    ck_assert_int_eq(tcc_int_wrap(TCC_i4, 9), -7);
    ck_assert_int_eq(tcc_int_wrap(TCC_u4, -1), 15);
    ck_assert_int_eq(tcc_int_wrap(TCC_i64, INT64_MIN), INT64_MIN);
}
END_TEST

START_TEST(casts_widen_where_every_number_stays)
{
    ck_assert(tcc_scalar_widens(TCC_f16, TCC_f32));
    ck_assert(tcc_scalar_widens(TCC_e4m3, TCC_f32));
    ck_assert(tcc_scalar_widens(TCC_f16, TCC_f16));
    ck_assert(tcc_scalar_widens(TCC_f32, TCC_f64));
    ck_assert(!tcc_scalar_widens(TCC_f64, TCC_f32));
    ck_assert(!tcc_scalar_widens(TCC_f32, TCC_f16));
    ck_assert(!tcc_scalar_widens(TCC_f16, TCC_bf16));
    ck_assert(tcc_scalar_widens(TCC_u8, TCC_i32));
    ck_assert(tcc_scalar_widens(TCC_i4, TCC_i8));
    ck_assert(tcc_scalar_widens(TCC_u4, TCC_u8));
    ck_assert(!tcc_scalar_widens(TCC_u8, TCC_i8));
    ck_assert(!tcc_scalar_widens(TCC_i4, TCC_u8));
    ck_assert(!tcc_scalar_widens(TCC_i32, TCC_i8));
    ck_assert(!tcc_scalar_widens(TCC_i8, TCC_f32));
}
END_TEST

/* ---- ops and attributes ---------------------------------------------------------------- */

START_TEST(rows_agree_with_themselves)
{
    for (int i = 0; i < TCC_OP_COUNT; i++) {
        const tcc_op_info *info = tcc_op_info_get((tcc_opcode)i);
        for (int other = 0; other < i; other++)
            ck_assert_str_ne(info->name, tcc_op_info_get((tcc_opcode)other)->name);
        ck_assert_uint_ne(info->levels, 0);
        ck_assert_msg(*info->doc, "%s has no documentation", info->name);
        if (info->flags & TCC_COMMUTES)
            ck_assert_uint_ge(info->n_operands, 2);
        if (info->flags & TCC_ELEMENTWISE)
            ck_assert_uint_eq(info->n_results, 1);
        if (info->flags & TCC_PURE)
            ck_assert_msg(info->n_regions == 0, "%s is pure and has regions", info->name);
    }
}
END_TEST

/* Whether an op takes or gives something of one of these kinds. */
static bool has_kind(const tcc_operand_info *list, unsigned kinds)
{
    for (; list->name; list++)
        if (list->kinds & kinds)
            return true;
    return false;
}

/* The column `effects` of ops.def agrees with itself and with what the ops take and give. */
START_TEST(effects_go_together)
{
    enum {
        TENSORS = TCC_READS_TENSOR | TCC_WRITES_TENSOR,
        GLOBAL = TCC_READS_GLOBAL | TCC_WRITES_GLOBAL,
        SHARED = TCC_READS_SHARED | TCC_WRITES_SHARED,
        STARTED = TCC_BY_RING | TCC_BY_MBARRIER | TCC_BY_BULK_GROUP | TCC_BY_COPY_GROUP | TCC_BY_MMA_GROUP |
                  TCC_BY_COUNTER,
        BY = STARTED | TCC_BY_WARPS | TCC_BY_CLUSTER,
    };
    unsigned started = 0, completed = 0;
    for (int i = 0; i < TCC_OP_COUNT; i++) {
        const tcc_op_info *info = tcc_op_info_get((tcc_opcode)i);
        unsigned e = info->effects, by = e & BY;
        *(e & TCC_COMPLETES ? &completed : &started) |= by;
        ck_assert_msg(!(by & (by - 1)), "%s is completed by two things", info->name);
        ck_assert_msg(!by || e & (TENSORS | GLOBAL | SHARED | TCC_COMPLETES), "%s starts nothing",
                      info->name);
        ck_assert_msg(!(e & TCC_COMPLETES) || by, "%s completes nothing", info->name);
        ck_assert_msg(!(e & TCC_ASYNC_PROXY) || (e & SHARED && by) || e & TCC_FENCE, "%s: async proxy", info->name);
        ck_assert_msg(!(e & TCC_CONTROL) == !(info->n_regions || info->flags & TCC_TERMINATOR),
                      "%s: control", info->name);
        ck_assert_msg(!(e & TENSORS) == !has_kind(info->operands, 1 << TCC_KIND_tensor),
                      "%s: tensors", info->name);
        bool global = has_kind(info->operands, 1 << TCC_KIND_ptr | 1 << TCC_KIND_tensormap |
                                                   1 << TCC_KIND_buffer);
        bool describes = e & TCC_HINT || has_kind(info->results, 1 << TCC_KIND_buffer) ||
                         i == TCC_OP_nvvm_phase; /* of the address alone */
        ck_assert_msg(!(e & GLOBAL) == !(global && !describes), "%s: global memory", info->name);
        tcc_global_use use = tcc_op_global_use((tcc_opcode)i);
        ck_assert_msg(!use.any || use.operand < info->n_operands, "%s: where in memory", info->name);
        bool moves = e & (GLOBAL | SHARED) && info->levels == TCC_LEVEL_TARGET &&
                     !(e & (TCC_ASYNC_PROXY | TCC_CONTROL | TCC_BY_COPY_GROUP));
        const tcc_operand_info *last = info->n_results ? info->results
                                                       : info->operands + info->n_operands - 1;
        ck_assert_msg(!moves || last->kinds == 1 << TCC_KIND_vec || last->kinds == 1 << TCC_KIND_scalar,
                      "%s: what it moves", info->name);
        bool useless = !e && !info->n_results && !(info->flags & TCC_RESULTS_ANY);
        ck_assert_msg(!useless, "%s does nothing", info->name);
    }
    ck_assert_uint_eq(started, STARTED);
    ck_assert_uint_eq(completed, BY);
}
END_TEST

START_TEST(attributes_are_set_replaced_and_removed)
{
    tcc_attrs a = {0};
    tcc_attr_set_int(ir, &a, "stages", 4);
    tcc_attr_set_str(ir, &a, "copy", "tma");
    tcc_attr_set_ints(ir, &a, "instr", 3, (int64_t[]){64, 256, 16});
    tcc_attr_set_int(ir, &a, "stages", 5);
    ck_assert_uint_eq(a.len, 3);
    ck_assert_int_eq(tcc_attr_int(&a, "stages", 0), 5);
    ck_assert_int_eq(tcc_attr_int(&a, "copy", -1), -1);
    ck_assert_str_eq(tcc_attr_str(&a, "copy", ""), "tma");
    ck_assert_str_eq(tcc_attr_str(&a, "swizzle", "none"), "none");
    ck_assert_int_eq(tcc_attr_list(&a, "instr").list.items[1].i, 256);
    ck_assert_uint_eq(tcc_attr_list(&a, "map").list.n, 0);
    tcc_attr_remove(&a, "stages");
    tcc_attr_remove(&a, "stages");
    ck_assert_uint_eq(a.len, 2);
    ck_assert_ptr_null(tcc_attr_find(&a, "stages"));
    ck_assert_str_eq(a.data[0].name, "copy");
}
END_TEST

START_TEST(attributes_compare_by_value)
{
    tcc_attrs a = {0}, b = {0};
    tcc_attr_set_strs(ir, &a, "map", 2, (const char *[]){"m", "k"});
    tcc_attr_set_strs(ir, &b, "map", 2, (const char *[]){"m", "k"});
    ck_assert(tcc_attr_equal(&a.data[0].value, &b.data[0].value));
    tcc_attr_set_strs(ir, &b, "map", 2, (const char *[]){"m", "n"});
    ck_assert(!tcc_attr_equal(&a.data[0].value, &b.data[0].value));
    tcc_attr zero = {.kind = TCC_ATTR_FLOAT, .f = 0.0}, minus = {.kind = TCC_ATTR_FLOAT, .f = -0.0};
    ck_assert(tcc_attr_equal(&zero, &zero));
    ck_assert(!tcc_attr_equal(&zero, &minus));
}
END_TEST

/* ---- building and changing ------------------------------------------------------------- */

START_TEST(builders_put_ops_where_they_stand)
{
    tcc_builder b = tcc_builder_at_end(f->body);
    tcc_value *x = tcc_block_add_arg(f->body, i32, "x");
    tcc_value *last = TCC_EMIT(&b, arith_neg, i32, x);
    tcc_builder before = tcc_builder_before(last->def);
    tcc_value *first = TCC_EMIT(&before, arith_add, i32, .a = x, .b = x);
    tcc_builder after = tcc_builder_after(first->def);
    tcc_value *middle = tcc_build_i32(&after, 7);
    TCC_EMIT_V(&b, func_return, NULL);
    ck_assert_ptr_eq(f->body->first, first->def);
    ck_assert_ptr_eq(first->def->next, middle->def);
    ck_assert_ptr_eq(middle->def->next, last->def);
    ck_assert_ptr_eq(f->body->last->prev, last->def);
    ck_assert_int_eq(f->body->last->code, TCC_OP_func_return);
    ck_assert_uint_eq(x->n_uses, 3);
    ck_assert_ptr_eq(TCC_VIEW(arith_add, first->def)->b, x);
    int64_t seven;
    double d;
    ck_assert(tcc_value_is_int(middle, &seven) && seven == 7);
    ck_assert(!tcc_value_is_float(middle, &d));
    ck_assert(!tcc_value_is_int(x, &seven));
}
END_TEST

START_TEST(uses_are_replaced_and_counted)
{
    tcc_builder b = tcc_builder_at_end(f->body);
    tcc_value *p = tcc_block_add_arg(f->body, tcc_type_scalar(ir, TCC_i1), "p");
    tcc_value *x = tcc_block_add_arg(f->body, i32, "x"), *y = tcc_block_add_arg(f->body, i32, "y");
    tcc_op *branch = tcc_op_create(&b, TCC_OP_scf_if, 1, &p, 0, NULL);
    tcc_builder in = tcc_builder_at_end(branch->regions[1]);
    tcc_value *sum = TCC_EMIT(&in, arith_add, i32, x, x);
    tcc_replace_uses(x, y);
    ck_assert_uint_eq(x->n_uses, 0);
    ck_assert_uint_eq(y->n_uses, 2);
    ck_assert_ptr_eq(sum->def->operands[1], y);
    ck_assert_ptr_null(x->uses);
    ck_assert_ptr_eq(y->uses->op, sum->def);
    tcc_replace_uses(y, y);
    ck_assert_uint_eq(y->n_uses, 2);
    tcc_op_set_operand(sum->def, 0, x);
    ck_assert_ptr_eq(x->uses, &sum->def->uses[0]);
    ck_assert_uint_eq(x->n_uses, 1);
    ck_assert_uint_eq(y->n_uses, 1);
    tcc_op_erase(branch);
    ck_assert_uint_eq(x->n_uses + y->n_uses + p->n_uses, 0);
    ck_assert_ptr_null(f->body->first);
    ck_assert_ptr_null(f->body->last);
}
END_TEST

START_TEST(ops_move_between_blocks)
{
    tcc_builder b = tcc_builder_at_end(f->body);
    tcc_value *p = tcc_block_add_arg(f->body, tcc_type_scalar(ir, TCC_i1), "p");
    tcc_value *c = tcc_build_i32(&b, 1);
    tcc_op *branch = tcc_op_create(&b, TCC_OP_scf_if, 1, &p, 0, NULL);
    tcc_builder in = tcc_builder_at_end(branch->regions[0]);
    tcc_op_move(&in, c->def);
    ck_assert_ptr_eq(f->body->first, branch);
    ck_assert_ptr_eq(branch->regions[0]->last, c->def);
    ck_assert_ptr_eq(c->def->block, branch->regions[0]);
}
END_TEST

START_TEST(the_walk_is_in_the_order_of_the_text)
{
    static const char text[] = "func @w(%p: i1) {\n"
                               "  scf.if %p {\n"
                               "    %0 = arith.const {value = 0} : i32\n"
                               "    scf.if %p { } { %1 = arith.const {value = 1} : i32 }\n"
                               "  } {\n"
                               "    %2 = arith.const {value = 2} : i32\n"
                               "  }\n"
                               "  %3 = arith.const {value = 3} : i32\n"
                               "  return\n"
                               "}\n";
    tcc_diag diag = {0};
    tcc_ir *parsed = tcc_ir_parse(arena, text, sizeof text - 1, &diag);
    ck_assert_ptr_nonnull(parsed);
    const tcc_block *body = parsed->first->body;
    int64_t expected = 0, value;
    unsigned n = 0;
    for (tcc_op *op = body->first; op; op = tcc_walk_next(op, body), n++)
        if (op->code == TCC_OP_arith_const) {
            ck_assert(tcc_value_is_int(&op->results[0], &value));
            ck_assert_int_eq(value, expected++);
        }
    ck_assert_uint_eq(n, 7);
    /* A walk of a region stays in it. */
    const tcc_block *region = body->first->regions[0];
    n = 0;
    for (tcc_op *op = region->first; op; op = tcc_walk_next(op, region))
        n++;
    ck_assert_uint_eq(n, 3);
}
END_TEST

START_TEST(a_clone_is_equal_and_independent)
{
    static const char text[] = "func @f(%x: i32, %n: i32) {block = 1} {\n"
                               "  %r = scf.for %x, %n, %n, %x {at_least_once = 1} : i32 {\n"
                               "  ^(%i: i32, %c: i32):\n"
                               "    %s = arith.add %c, %i : i32\n"
                               "    scf.yield %s\n"
                               "  }\n"
                               "  return\n"
                               "}\n";
    tcc_diag diag = {0};
    tcc_ir *parsed = tcc_ir_parse(arena, text, sizeof text - 1, &diag);
    ck_assert_ptr_nonnull(parsed);
    tcc_func *copy = tcc_func_clone(parsed->first, "f2");
    ck_assert_ptr_eq(parsed->first->next, copy);
    ck_assert_ptr_eq(parsed->last, copy);
    ck_assert_ptr_eq(tcc_func_find(parsed, "f2"), copy);
    ck_assert(tcc_ir_verify(parsed, TCC_LEVEL_ALL, &diag));
    tcc_attr_set_int(parsed, &copy->attrs, "block", 2);
    tcc_attr_set_int(parsed, &copy->body->first->attrs, "at_least_once", 0);
    ck_assert_int_eq(tcc_attr_int(&parsed->first->attrs, "block", 0), 1);
    ck_assert_int_eq(tcc_attr_int(&parsed->first->body->first->attrs, "at_least_once", 0), 1);
    tcc_func_remove(parsed->first);
    ck_assert_ptr_eq(parsed->first, copy);
    ck_assert(tcc_ir_verify(parsed, TCC_LEVEL_ALL, &diag));
    tcc_func_remove(copy);
    ck_assert_ptr_null(parsed->first);
    ck_assert_ptr_null(parsed->last);
}
END_TEST

/* ---- targets --------------------------------------------------------------------------- */

START_TEST(targets_and_instructions_are_found)
{
    const tcc_target *t = tcc_target_find("sm_90a");
    ck_assert_ptr_nonnull(t);
    ck_assert_ptr_eq(tcc_target_at(0), t);
    ck_assert_ptr_null(tcc_target_find("sm_1"));
    const tcc_mma *mma = tcc_mma_find(t, TCC_bf16, TCC_bf16, TCC_f32);
    ck_assert_ptr_nonnull(mma);
    /* All lanes together hold all of D: m * 8 elements for each 8 columns. */
    ck_assert_int_eq(mma->m * 8, mma->lanes * mma->acc_per_row8);
    ck_assert_ptr_null(tcc_mma_find(t, TCC_i1, TCC_i1, TCC_f32));
    ck_assert_ptr_null(tcc_mma_find(t, TCC_f16, TCC_bf16, TCC_f32));
    /* Operands take 32 bytes of k, whatever they are of. */
    mma = tcc_mma_find(t, TCC_u8, TCC_i8, TCC_i32);
    ck_assert(mma && mma->k == 32 && !mma->across && mma->ptx == 84);
    ck_assert_ptr_null(tcc_wmma_find(t, TCC_f16, TCC_f16, TCC_f32, 0));
}
END_TEST

/* RDNA3 holds A and B once in each 16 lanes, RDNA4 once in the wave. */
START_TEST(targets_say_what_estimates_divide_by)
{
    const tcc_target *t;
    for (size_t i = 0; (t = tcc_target_at(i)); i++)
        ck_assert_msg(t->sms > 0 && t->flops_per_cycle > 0 && t->smem_bytes_per_cycle > 0 &&
                          t->l2_bytes_per_cycle > 0 && t->stored_bytes_per_cycle > 0 &&
                          t->memory_bytes_per_cycle > 0,
                      "%s", t->name);
}
END_TEST

START_TEST(registers_of_a_wave_hold_its_matrices)
{
    const tcc_target *gfx11 = tcc_target_find("gfx1100"), *gfx12 = tcc_target_find("gfx1200");
    ck_assert_int_eq(tcc_wmma_find(gfx11, TCC_u4, TCC_i4, TCC_i32, 0)->k, 16);
    ck_assert_int_eq(tcc_wmma_find(gfx12, TCC_u4, TCC_i4, TCC_i32, 0)->k, 32);
    ck_assert_int_eq(tcc_wmma_find(gfx12, TCC_u4, TCC_i4, TCC_i32, 16)->k, 16);
    ck_assert_ptr_null(tcc_wmma_find(gfx11, TCC_e4m3, TCC_e5m2, TCC_f32, 0));
    ck_assert_str_eq(tcc_wmma_find(gfx12, TCC_e4m3, TCC_e5m2, TCC_f32, 0)->name,
                     "f32_16x16x16_fp8_bf8");
    for (int64_t wave = 32; wave <= 64; wave += 32) {
        ck_assert_int_eq(tcc_wmma_operand_words(gfx11, 16, 16, wave), 8);
        ck_assert_int_eq(tcc_wmma_operand_words(gfx12, 16, 16, wave), 128 / wave);
        ck_assert_int_eq(tcc_wmma_operand_words(gfx11, 16, 4, wave), 2);
        const tcc_wmma *f16 = tcc_wmma_find(gfx11, TCC_f16, TCC_f16, TCC_f16, 0);
        ck_assert_int_eq(tcc_wmma_result_words(f16, wave), 256 / wave);
        f16 = tcc_wmma_find(gfx12, TCC_f16, TCC_f16, TCC_f16, 0);
        ck_assert_int_eq(tcc_wmma_result_words(f16, wave), 128 / wave);
        const tcc_wmma *i8 = tcc_wmma_find(gfx12, TCC_i8, TCC_i8, TCC_i32, 0);
        ck_assert_int_eq(tcc_wmma_result_words(i8, wave), 256 / wave);
        ck_assert_int_eq(tcc_wmma_k_groups(gfx11, 16, 16, wave), 1);
        ck_assert_int_eq(tcc_wmma_k_groups(gfx12, 16, 16, wave), wave / 16);
    }
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("core");
    TCase *tc = tcase_create("core");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, equal_types_are_one_pointer);
    tcase_add_test(tc, types_stay_while_the_table_grows);
    tcase_add_test(tc, types_print);
    tcase_add_test(tc, scalars_are_found_by_name);
    tcase_add_test(tc, integers_have_ranges);
    tcase_add_test(tc, casts_widen_where_every_number_stays);
    tcase_add_test(tc, rows_agree_with_themselves);
    tcase_add_test(tc, effects_go_together);
    tcase_add_test(tc, attributes_are_set_replaced_and_removed);
    tcase_add_test(tc, attributes_compare_by_value);
    tcase_add_test(tc, builders_put_ops_where_they_stand);
    tcase_add_test(tc, uses_are_replaced_and_counted);
    tcase_add_test(tc, ops_move_between_blocks);
    tcase_add_test(tc, the_walk_is_in_the_order_of_the_text);
    tcase_add_test(tc, a_clone_is_equal_and_independent);
    tcase_add_test(tc, targets_and_instructions_are_found);
    tcase_add_test(tc, targets_say_what_estimates_divide_by);
    tcase_add_test(tc, registers_of_a_wave_hold_its_matrices);
    suite_add_tcase(s, tc);
    return s;
}

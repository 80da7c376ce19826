/* A run that would take forever, or more memory than there is, ends in an error at the op.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/interp/program.h"

enum { FEW = 1000 };
static const uint64_t LITTLE = 1 << 20;

static const struct {
    const char *text;
    bool steps; /* how few are the limit, not how little memory */
    const char *said;
} cases[] = {
    {"func @sig(%X: tensor<f32[8]>) {\n"
     "  return\n"
     "}\n"
     "func @f(%x: ptr<f32>) {block = 64, grid = [2], params = [[pointer, X]]} {\n"
     "  %zero = arith.const {value = 0} : i32\n"
     "  %one = arith.const {value = 1} : i32\n"
     "  %many = arith.const {value = 2147483647} : i32\n"
     "  scf.for %zero, %many, %one {\n"
     "  ^(%i: i32):\n"
     "    %t = nvvm.tid : i32\n"
     "  }\n"
     "  return\n"
     "}\n",
     true, "8:3: runs more than 1000 ops; is there an endless loop?"},
    {"func @f(%X: tensor<f32[8]>) {\n"
     "  tile.grid {axes = [i], extents = [1000], tile = [1]} {\n"
     "  ^(%i: i32):\n"
     "    %x = tile.load %X, %i {dims = [0]} : tile<f32[1]>\n"
     "  }\n"
     "  return\n"
     "}\n",
     true, "2:3: runs more than 1000 ops; is there an endless loop?"},
    {"func @f(%X: tensor<f32[8]>) {\n"
     "  tile.grid {axes = [i], extents = [2000000000], tile = [1]} {\n"
     "  ^(%i: i32):\n"
     "  }\n"
     "  return\n"
     "}\n",
     true, "2:3: runs more than 1000 ops; is there an endless loop?"},
    {"func @f(%X: tensor<f32[8]>, %Y: tensor<f32[0, 2000]>, %Z: tensor<f32[8]>) {\n"
     "  %x = tensor.read %X {map = [i]} : field<f32[i]>\n"
     "  %y = tensor.read %Y {map = [j, k]} : field<f32[j, k]>\n"
     "  %0 = arith.add %x, %y : field<f32[i, j, k]>\n"
     "  %1 = tensor.reduce %0 {over = [j], kind = sum} : field<f32[i, k]>\n"
     "  %2 = tensor.reduce %1 {over = [k], kind = sum} : field<f32[i]>\n"
     "  tensor.write %2, %Z {map = [i]}\n"
     "  return\n"
     "}\n",
     true, "5:8: runs more than 1000 ops; is there an endless loop?"},
    {"func @f(%X: tensor<f32[8]>) {\n"
     "  tile.grid {axes = [i], extents = [8], tile = [1]} {\n"
     "  ^(%i: i32):\n"
     "    %x = arith.const {value = 0.0} : tile<f32[1024, 1024]>\n"
     "  }\n"
     "  return\n"
     "}\n",
     false, "1:1: needs 8388624 bytes in addition to "},
    {"func @f(%X: tensor<f32[8]>) {\n"
     "  tile.grid {axes = [i], extents = [8], tile = [1]} {\n"
     "  ^(%i: i32):\n"
     "    %r = async.ring {stages = 2147483647, completion = bytes} : ring\n"
     "  }\n"
     "  return\n"
     "}\n",
     false, "4:10: needs "},
    {"func @f(%X: tensor<f32[8]>) {\n"
     "  tile.grid {axes = [i], extents = [8], tile = [1]} {\n"
     "  ^(%i: i32):\n"
     "    %a = async.alloc {swizzle = 0, contiguous = 1} : smem<f32[4, 1024, 1024]>\n"
     "  }\n"
     "  return\n"
     "}\n",
     false, "4:10: needs 33554432 bytes in addition to "},
    {"func @sig(%X: tensor<f32[8]>) {\n"
     "  return\n"
     "}\n"
     "func @f(%x: ptr<f32>) {block = 1024, grid = [2], params = [[pointer, X]]} {\n"
     "  %v = vec.undef : vec<f32[4000]>\n"
     "  return\n"
     "}\n",
     false, "4:1: needs "},
};

START_TEST(a_run_ends_at_its_limit)
{
    program p;
    program_load(&p, cases[_i].text);
    const tcc_func *f = p.ir->last;
    double numbers[3][8] = {{0}};
    tcc_interp_options o = {.signature = f != p.ir->first ? p.ir->first : NULL,
                            .max_steps = cases[_i].steps ? FEW : 0,
                            .max_bytes = cases[_i].steps ? 0 : LITTLE};
    tcc_attr_set_str(p.ir, &p.ir->attrs, "target", "sm_90a");
    tcc_arena *scratch = tcc_arena_create(NULL);
    double *args[] = {numbers[0], numbers[1], numbers[2]};
    ck_assert_int_eq(tcc_interp_run(f, &o, args, scratch, &p.diag), TCC_ERR_LIMIT);
    ck_assert_msg(!strncmp(p.said, cases[_i].said, strlen(cases[_i].said)), "case %d: %s", _i,
                  p.said);
    ck_assert(cases[_i].steps || strstr(p.said, "; the limit is 1048576"));
    ck_assert(tcc_arena_used(scratch) < 3 * LITTLE);
    tcc_arena_destroy(scratch);
    program_free(&p);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, a_run_ends_at_its_limit, 0, sizeof cases / sizeof *cases);
}

Suite *SUITE(void)
{
    return suite_of("interp_limits", add);
}

/* RDNA's matrix instructions: where the lanes hold their matrices, and what each instruction of
 * ir/wmma.def computes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"
#include "ir/ir.h"
#include "ir/number.h"
#include "support/random.h"
#include "support/str.h"
#include "tests/unit/interp/program.h"

enum { SIDE = 16, MAX_K = 32, MAX_WAVE = 64, MAX_WORDS = 8 };

/* ---- the instructions --------------------------------------------------------------------- */

typedef struct instruction {
    tcc_family family;
    int64_t k;
    tcc_scalar a, b, acc;
    const char *name;
} instruction;

static const instruction instructions[] = {
#define WMMA(family, k, a, b, acc, acc_bits, name)                                                 \
    {TCC_FAMILY_##family, k, TCC_##a, TCC_##b, TCC_##acc, #name},
#include "ir/wmma.def"
};

enum { INSTRUCTIONS = sizeof instructions / sizeof *instructions };

static const tcc_target *target_of_family(tcc_family family)
{
    return tcc_target_find(family == TCC_FAMILY_GFX11 ? "gfx1100" : "gfx1200");
}

static const tcc_target *target_of(const instruction *in)
{
    return target_of_family(in->family);
}

/* ---- places, as the guides' figures have them ------------------------------------------------ */

/* Where a wave holds number k of row (of A) or column (of B) r: the first of the lanes that do, the
 * register, and the lowest bit. From the figures' point of view: which lanes have which k. */
typedef struct spot {
    unsigned lane, word, bit;
} spot;

static spot operand_spot(const instruction *in, unsigned bits, unsigned wave, unsigned r,
                         unsigned k)
{
    unsigned per_word = 32 / bits;
    if (in->family == TCC_FAMILY_GFX11)
        return (spot){r, k / per_word, k % per_word * bits};
    if (bits == 16 && wave == 32) /* lanes 0-15, 16-31, 0-15, 16-31 have four each */
        return (spot){r + k / 4 % 2 * 16, k / 8 * 2 + k % 4 / 2, k % 2 * 16};
    if (bits == 16) /* lanes 0-15, 16-31, 32-47, 48-63 have four each */
        return (spot){r + k / 4 * 16, k % 4 / 2, k % 2 * 16};
    static const unsigned first_lane[] = {0, 32, 16, 48}; /* of each quarter of k */
    bool halves = wave == 32 || (bits == 4 && in->k == 16);
    unsigned share = (unsigned)in->k / (halves ? 2 : 4), i = k % share;
    unsigned lane = halves ? k / share * 16 : first_lane[k / share];
    return (spot){r + lane, i / per_word, i % per_word * bits};
}

/* Lane and number of D's element in row m, column n. */
static spot result_spot(const instruction *in, unsigned wave, unsigned m, unsigned n)
{
    if (in->family == TCC_FAMILY_GFX11) /* rows take turns */
        return (spot){n + m % (wave / 16) * 16, m / (wave / 16), 0};
    if (wave == 32) /* rows 0-7, 8-15 */
        return (spot){n + m / 8 * 16, m % 8, 0};
    static const unsigned first_lane[] = {0, 32, 16, 48}; /* of rows 0-3, 4-7, 8-11, 12-15 */
    return (spot){n + first_lane[m / 4], m % 4, 0};
}

/* ---- layouts --------------------------------------------------------------------------------- */

START_TEST(lanes_hold_every_number_as_often_as_they_should)
{
    const instruction *in = &instructions[_i / 4];
    unsigned wave = _i / 2 % 2 ? 64 : 32;
    unsigned bits = tcc_scalar_bits(_i % 2 ? in->b : in->a), times[SIDE][MAX_K] = {{0}};
    int64_t words = tcc_wmma_operand_words(target_of(in), in->k, bits, wave);
    for (unsigned l = 0; l < wave; l++) {
        const tcc_fragment *f = tcc_wmma_operand(target_of(in), bits, in->k, wave);
        unsigned n = tcc_fragment_elements(f, l);
        ck_assert_uint_le(n * bits, (unsigned)words * 32);
        for (unsigned e = 0; e < n; e++) {
            tcc_place p = tcc_fragment_place(f, e, l, 0);
            ck_assert_uint_lt(p.row, SIDE);
            ck_assert_uint_lt(p.col, in->k);
            times[p.row][p.col]++;
            spot s = operand_spot(in, bits, wave, p.row, p.col);
            bool first = in->family == TCC_FAMILY_GFX12 || l < 16;
            ck_assert_uint_eq(s.lane, first ? l : l % 16);
            ck_assert_uint_eq(s.word * 32 + s.bit, e * bits);
        }
    }
    for (unsigned r = 0; r < SIDE; r++)
        for (unsigned k = 0; k < in->k; k++)
            ck_assert_uint_eq(times[r][k], in->family == TCC_FAMILY_GFX11 ? wave / 16 : 1);
}
END_TEST

START_TEST(lanes_hold_every_result_once)
{
    const instruction *in = &instructions[_i / 2];
    unsigned wave = _i % 2 ? 64 : 32, times[SIDE][SIDE] = {{0}};
    for (unsigned l = 0; l < wave; l++)
        for (unsigned e = 0; e < 256 / wave; e++) {
            tcc_place p = tcc_fragment_place(tcc_wmma_result(target_of(in), wave), e, l, 0);
            ck_assert_uint_lt(p.row, SIDE);
            times[p.row][p.col]++;
            spot s = result_spot(in, wave, p.row, p.col);
            ck_assert_uint_eq(s.lane, l);
            ck_assert_uint_eq(s.word, e);
        }
    for (unsigned i = 0; i < SIDE * SIDE; i++)
        ck_assert_uint_eq(times[i / SIDE][i % SIDE], 1);
}
END_TEST

static tcc_place operand_at(tcc_family family, unsigned bits, int64_t k, unsigned wave, unsigned lane,
                            unsigned e)
{
    return tcc_fragment_place(tcc_wmma_operand(target_of_family(family), bits, k, wave), e, lane, 0);
}

static tcc_place result_at(tcc_family family, unsigned wave, unsigned lane, unsigned e)
{
    return tcc_fragment_place(tcc_wmma_result(target_of_family(family), wave), e, lane, 0);
}

/* Single places, read off the figures of RDNA3 ISA, 7.9 and RDNA4 ISA, 7.12. */
START_TEST(single_places)
{
    const tcc_fragment *four_bits = tcc_wmma_operand(tcc_target_find("gfx1200"), 4, 16, 64);
    ck_assert_uint_eq(result_at(TCC_FAMILY_GFX11, 32, 16, 0).row, 1);
    ck_assert_uint_eq(result_at(TCC_FAMILY_GFX11, 32, 0, 7).row, 14);
    ck_assert_uint_eq(result_at(TCC_FAMILY_GFX11, 64, 48, 1).row, 7);
    ck_assert_uint_eq(result_at(TCC_FAMILY_GFX12, 32, 31, 2).row, 10);
    ck_assert_uint_eq(result_at(TCC_FAMILY_GFX12, 64, 32, 2).row, 6);
    ck_assert_uint_eq(result_at(TCC_FAMILY_GFX12, 64, 16, 0).row, 8);
    ck_assert_uint_eq(operand_at(TCC_FAMILY_GFX12, 16, 16, 32, 17, 5).col, 13);
    ck_assert_uint_eq(operand_at(TCC_FAMILY_GFX12, 16, 16, 32, 17, 5).row, 1);
    ck_assert_uint_eq(operand_at(TCC_FAMILY_GFX12, 8, 16, 64, 32, 0).col, 4);
    ck_assert_uint_eq(operand_at(TCC_FAMILY_GFX12, 8, 16, 64, 16, 0).col, 8);
    ck_assert_uint_eq(operand_at(TCC_FAMILY_GFX12, 4, 32, 32, 16, 9).col, 25);
    ck_assert_uint_eq(tcc_fragment_elements(four_bits, 31), 8);
    ck_assert_uint_eq(tcc_fragment_elements(four_bits, 32), 0);
}
END_TEST

/* ---- products -------------------------------------------------------------------------- */

/* Matrices as numbers, and what the registers of all lanes hold, as doubles of i32. */
typedef struct product {
    const instruction *in;
    tcc_scalar a_type, b_type; /* with their signs */
    unsigned wave;
    bool high, reals; /* accumulators in the high halves; numbers that sums round */
    uint64_t random;
    tcc_cell a[SIDE][MAX_K], b[SIDE][MAX_K], c[SIDE][SIDE];
    double words[4][MAX_WAVE * MAX_WORDS]; /* of A, B, C, D: [register][lane] */
    size_t n[3];                           /* registers of A, B, C */
    char said[1024];
    tcc_status status;
} product;

static bool is_float(tcc_scalar s)
{
    return tcc_scalar_classify(s) == TCC_CLASS_FLOAT;
}

static tcc_cell any(product *p, tcc_scalar s)
{
    if (!is_float(s))
        return tcc_decode(tcc_random(&p->random, UINT64_C(1) << tcc_scalar_bits(s)), s);
    double small = (double)tcc_random(&p->random, 9) - 4;
    double real = ((double)tcc_random(&p->random, 2001) - 1000) / 700;
    return (tcc_cell){.f = tcc_round_float(p->reals ? real : small, s)};
}

static void put(product *p, int matrix, unsigned lane, unsigned word, unsigned bit, uint64_t bits)
{
    double *w = &p->words[matrix][word * p->wave + lane];
    *w = (double)(int32_t)((uint32_t)(int32_t)*w | (uint32_t)(bits << bit));
}

static void put_operand(product *p, int matrix, tcc_scalar type, tcc_cell m[SIDE][MAX_K])
{
    unsigned copies = p->in->family == TCC_FAMILY_GFX11 ? p->wave / 16 : 1;
    for (unsigned r = 0; r < SIDE; r++)
        for (unsigned k = 0; k < p->in->k; k++) {
            spot s = operand_spot(p->in, tcc_scalar_bits(type), p->wave, r, k);
            m[r][k] = any(p, type);
            for (unsigned i = 0; i < copies; i++)
                put(p, matrix, s.lane + 16 * i, s.word, s.bit, tcc_encode(m[r][k], type));
        }
}

/* Register and bit of a result: 16-bit ones are packed on RDNA4. */
static spot accumulator(const product *p, unsigned m, unsigned n)
{
    spot s = result_spot(p->in, p->wave, m, n);
    if (tcc_scalar_bits(p->in->acc) == 32)
        return s;
    if (p->in->family == TCC_FAMILY_GFX11)
        return (spot){s.lane, s.word, p->high ? 16 : 0};
    return (spot){s.lane, s.word / 2, s.word % 2 * 16};
}

enum { OTHER_HALF = 0x1234 };

static void put_accumulators(product *p)
{
    bool halves = tcc_scalar_bits(p->in->acc) == 16 && p->in->family == TCC_FAMILY_GFX11;
    for (unsigned m = 0; m < SIDE; m++)
        for (unsigned n = 0; n < SIDE; n++) {
            spot s = accumulator(p, m, n);
            p->c[m][n] = any(p, p->in->acc);
            put(p, 2, s.lane, s.word, s.bit, tcc_encode(p->c[m][n], p->in->acc));
            if (halves)
                put(p, 2, s.lane, s.word, 16 - s.bit, OTHER_HALF);
        }
}

/* Registers of all lanes lie one after the other. */
static void print_load(tcc_str *out, const char *name, size_t n, unsigned wave)
{
    for (size_t i = 0; i < n; i++)
        tcc_str_printf(out,
                       "  %%%s_%zu = amdgcn.buffer.load %%buf_%s, %%at, %%c0 {offset = %zu} : "
                       "vec<i32[1]>\n",
                       name, i, name, i * wave * 4);
    tcc_str_printf(out, "  %%%s_words = vec.pack ", name);
    for (size_t i = 0; i < n; i++)
        tcc_str_printf(out, "%s%%%s_%zu", i ? ", " : "", name, i);
    tcc_str_printf(out, " : vec<i32[%zu]>\n", n);
}

static void print_store(tcc_str *out, const char *name, size_t n, unsigned wave)
{
    for (size_t i = 0; i < n; i++)
        tcc_str_printf(out,
                       "  %%%s_%zu = vec.slice %%%s_words {offset = %zu} : vec<i32[1]>\n"
                       "  amdgcn.buffer.store %%buf_%s, %%at, %%c0, %%%s_%zu {offset = %zu}\n",
                       name, i, name, i, name, name, i, i * wave * 4);
}

static void print_kernel(tcc_str *out, const product *p)
{
    static const char names[] = "ABCD";
    const instruction *in = p->in;
    const size_t n[] = {p->n[0], p->n[1], p->n[2], p->n[2]};
    bool floats = in->acc == TCC_f32;
    tcc_str_printf(out, "module {target = %s}\nfunc @sig(", target_of(in)->name);
    for (int i = 0; i < 4; i++)
        tcc_str_printf(out, "%s%%%c: tensor<i32[%zu]>", i ? ", " : "", names[i], n[i] * p->wave);
    tcc_str_printf(out,
                   ") {\n  return\n}\n"
                   "func @f(%%A: ptr<i32>, %%B: ptr<i32>, %%C: ptr<i32>, %%D: ptr<i32>)\n"
                   "    {wave = %u, block = %u, grid = [1], requires = [],\n"
                   "     params = [[pointer, A], [pointer, B], [pointer, C], [pointer, D]]} {\n"
                   "  %%t = amdgcn.tid : i32\n"
                   "  %%c0 = arith.const {value = 0} : i32\n"
                   "  %%c4 = arith.const {value = 4} : i32\n"
                   "  %%begin = arith.const {value = 0} : i64\n"
                   "  %%at = arith.mul %%t, %%c4 : i32\n",
                   p->wave, p->wave);
    for (int i = 0; i < 4; i++) {
        char name[] = {names[i], 0};
        tcc_str_printf(out,
                       "  %%size_%c = arith.const {value = %zu} : i32\n"
                       "  %%buf_%c = amdgcn.make_buffer %%%c, %%begin, %%size_%c : buffer\n",
                       *name, n[i] * p->wave * 4, *name, *name, *name);
        if (i < 3)
            print_load(out, name, n[i], p->wave);
    }
    if (floats)
        tcc_str_printf(out, "  %%c = vec.bitcast %%C_words : vec<f32[%zu]>\n", n[2]);
    tcc_str_printf(out,
                   "  %%d = amdgcn.wmma %%A_words, %%B_words, %s {a = %s, b = %s, acc = %s, k = "
                   "%lld%s} : vec<%s[%zu]>\n"
                   "  %%D_words = vec.%s %%d%s : vec<i32[%zu]>\n",
                   floats ? "%c" : "%C_words", tcc_scalar_name(p->a_type),
                   tcc_scalar_name(p->b_type), tcc_scalar_name(in->acc), (long long)in->k,
                   p->high ? ", high = 1" : "", floats ? "f32" : "i32", n[2],
                   floats ? "bitcast" : "slice", floats ? "" : " {offset = 0}", n[2]);
    print_store(out, "D", n[2], p->wave);
    tcc_str_puts(out, "  return\n}\n");
}

static void prepare(product *p, const instruction *in, unsigned wave, uint64_t seed)
{
    const tcc_target *t = target_of(in);
    *p = (product){.in = in, .a_type = in->a, .b_type = in->b, .wave = wave, .random = seed};
    p->n[0] = (size_t)tcc_wmma_operand_words(t, in->k, tcc_scalar_bits(in->a), wave);
    p->n[1] = (size_t)tcc_wmma_operand_words(t, in->k, tcc_scalar_bits(in->b), wave);
    p->n[2] = (size_t)tcc_wmma_result_words(tcc_wmma_find(t, in->a, in->b, in->acc, in->k), wave);
}

static void fill(product *p)
{
    put_operand(p, 0, p->a_type, p->a);
    put_operand(p, 1, p->b_type, p->b);
    put_accumulators(p);
}

static void run(product *p)
{
    tcc_str text = {0};
    program g;
    print_kernel(&text, p);
    program_load(&g, tcc_str_text(&text));
    const tcc_interp_options o = {.signature = g.ir->first};
    double *args[] = {p->words[0], p->words[1], p->words[2], p->words[3]};
    p->status = tcc_interp_run(tcc_func_find(g.ir, "f"), &o, args, g.arena, &g.diag);
    memcpy(p->said, g.said, sizeof p->said);
    program_free(&g);
    tcc_str_free(&text);
}

/* Plainly: the sum over k, then C, in the type of the accumulators. */
static tcc_cell expected(const product *p, unsigned m, unsigned n)
{
    tcc_cell sum = is_float(p->in->acc) ? (tcc_cell){.f = 0} : p->c[m][n];
    for (unsigned k = 0; k < p->in->k; k++)
        if (is_float(p->in->acc))
            sum.f += p->a[m][k].f * p->b[n][k].f;
        else
            sum.i += p->a[m][k].i * p->b[n][k].i;
    if (!is_float(p->in->acc))
        return (tcc_cell){.i = (int32_t)(uint32_t)(uint64_t)sum.i};
    return (tcc_cell){.f = tcc_round_float(sum.f + p->c[m][n].f, p->in->acc)};
}

static uint32_t result_word(const product *p, unsigned lane, unsigned word)
{
    return (uint32_t)(int32_t)p->words[3][word * p->wave + lane];
}

static void compare(const product *p)
{
    unsigned bits = tcc_scalar_bits(p->in->acc);
    ck_assert_msg(!p->status, "%s", p->said);
    for (unsigned m = 0; m < SIDE; m++)
        for (unsigned n = 0; n < SIDE; n++) {
            spot s = accumulator(p, m, n);
            uint32_t word = result_word(p, s.lane, s.word);
            tcc_cell got = tcc_decode(word >> s.bit & (UINT32_MAX >> (32 - bits)), p->in->acc);
            tcc_cell want = expected(p, m, n);
            ck_assert_msg(is_float(p->in->acc) ? got.f == want.f : got.i == want.i,
                          "%s of wave%u, %s * %s, row %u, column %u: %g, not %g", p->in->name,
                          p->wave, tcc_scalar_name(p->a_type), tcc_scalar_name(p->b_type), m, n,
                          is_float(p->in->acc) ? got.f : (double)got.i,
                          is_float(p->in->acc) ? want.f : (double)want.i);
            if (bits == 16 && p->in->family == TCC_FAMILY_GFX11)
                ck_assert_uint_eq(word >> (16 - s.bit) & 0xffff, OTHER_HALF);
        }
}

static tcc_scalar with_sign(tcc_scalar s, bool is_unsigned)
{
    if (!is_unsigned)
        return s;
    return s == TCC_i8 ? TCC_u8 : s == TCC_i4 ? TCC_u4 : s;
}

/* Of every instruction: both sizes of a wave, all signs, both halves, whole and other numbers. */
START_TEST(products_are_those_of_matrices)
{
    const instruction *in = &instructions[_i];
    bool ints = !is_float(in->a), halves = tcc_scalar_bits(in->acc) == 16;
    static product p;
    for (unsigned i = 0; i < 16; i++) {
        bool second = i >> 1 & 1, third = i >> 2 & 1;
        prepare(&p, in, i & 1 ? 64 : 32, 1 + i);
        if (ints) {
            p.a_type = with_sign(in->a, second);
            p.b_type = with_sign(in->b, third);
        }
        p.reals = second;
        p.high = halves && in->family == TCC_FAMILY_GFX11 && third;
        fill(&p);
        run(&p);
        compare(&p);
    }
}
END_TEST

START_TEST(integers_wrap)
{
    static product p;
    for (unsigned i = 0; i < INSTRUCTIONS; i++) {
        if (instructions[i].acc != TCC_i32)
            continue;
        prepare(&p, &instructions[i], 32, i);
        fill(&p);
        for (unsigned j = 0; j < SIDE * SIDE; j++)
            p.c[j / SIDE][j % SIDE].i = j % 2 ? INT32_MAX : INT32_MIN;
        memset(p.words[2], 0, sizeof p.words[2]);
        for (unsigned j = 0; j < SIDE * SIDE; j++) {
            spot s = accumulator(&p, j / SIDE, j % SIDE);
            put(&p, 2, s.lane, s.word, 0, (uint32_t)p.c[j / SIDE][j % SIDE].i);
        }
        run(&p);
        compare(&p);
    }
}
END_TEST

/* A number that one lane of those that share it has otherwise: reported, whichever lane it is. */
START_TEST(replicated_numbers_must_agree)
{
    static product p;
    for (unsigned wave = 32; wave <= 64; wave += 32)
        for (unsigned lane = 16; lane < wave; lane += 5)
            for (int matrix = 0; matrix < 2; matrix++) {
                char want[64];
                prepare(&p, &instructions[4], wave, lane); /* i32_16x16x16_iu8 */
                fill(&p);
                double *w = &p.words[matrix][3 * wave + lane];
                *w = (double)((int32_t)*w ^ 1 << 30);
                run(&p);
                ck_assert_int_eq(p.status, TCC_ERR_INTERNAL);
                snprintf(want, sizeof want, "register 3 of %c is", "AB"[matrix]);
                ck_assert_msg(strstr(p.said, want), "%s", p.said);
                snprintf(want, sizeof want, "in lane %u; RDNA3 requires", lane);
                ck_assert_msg(strstr(p.said, want), "%s", p.said);
            }
}
END_TEST

static void add(TCase *t)
{
    tcase_add_loop_test(t, lanes_hold_every_number_as_often_as_they_should, 0, 4 * INSTRUCTIONS);
    tcase_add_loop_test(t, lanes_hold_every_result_once, 0, 2 * INSTRUCTIONS);
    tcase_add_test(t, single_places);
    tcase_add_loop_test(t, products_are_those_of_matrices, 0, INSTRUCTIONS);
    tcase_add_test(t, integers_wrap);
    tcase_add_test(t, replicated_numbers_must_agree);
}

Suite *SUITE(void)
{
    return suite_of("wmma", add);
}

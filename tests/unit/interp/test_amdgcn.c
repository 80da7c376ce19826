/* RDNA's ops at the target level, one by one: what a wave's lanes compute, what LDS and buffers do,
 * and which mistakes are reported.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/interp/program.h"

enum { N = 256, SEEDS = 8 };

/* Every kernel here has X and Y, of N elements of a type, Z of as many i32, and values of each
 * thread's number and lane. The numbers in X are 1, 2, 3, … as far as the type has them. */
static const char head[] = "  %t = amdgcn.tid : i32\n"
                           "  %lds = amdgcn.lds_base : i32\n"
                           "  %c0 = arith.const {value = 0} : i32\n"
                           "  %c1 = arith.const {value = 1} : i32\n"
                           "  %c2 = arith.const {value = 2} : i32\n"
                           "  %c4 = arith.const {value = 4} : i32\n"
                           "  %c16 = arith.const {value = 16} : i32\n"
                           "  %c64 = arith.const {value = 64} : i32\n"
                           "  %far = arith.const {value = -2147483648} : i32\n"
                           "  %begin = arith.const {value = 0} : i64\n"
                           "  %lane = arith.rem %t, %lanes : i32\n"
                           "  %wave = arith.div %t, %lanes : i32\n"
                           "  %of_first = arith.cmp %wave, %c0 {pred = eq} : i1\n"
                           "  %of_second = arith.cmp %wave, %c1 {pred = eq} : i1\n"
                           "  %t4 = arith.mul %t, %c4 : i32\n"
                           "  %mine = arith.add %lds, %t4 : i32\n"
                           "  %last = arith.sub %threads, %c1 : i32\n"
                           "  %opposite = arith.sub %last, %t : i32\n"
                           "  %opposite4 = arith.mul %opposite, %c4 : i32\n"
                           "  %other = arith.add %lds, %opposite4 : i32\n"
                           "  %z = amdgcn.make_buffer %pz, %begin, %z_bytes : buffer\n";

typedef struct setup {
    const char *elem; /* of X and Y */
    unsigned wave, block, groups;
    unsigned bytes; /* of X; 0: N elements of 4 bytes */
    uint64_t seed;
} setup;

typedef struct result {
    tcc_status status;
    double y[N], z[N];
    char said[1024];
} result;

static result run_with(setup s, const char *body)
{
    char text[8192];
    s.block = s.block ? s.block : 2 * s.wave;
    snprintf(text, sizeof text,
             "module {target = gfx1100}\n"
             "func @sig(%%X: tensor<%s[256]>, %%Y: tensor<%s[256]>, %%Z: tensor<i32[256]>) {\n"
             "  return\n}\n"
             "func @f(%%px: ptr<%s>, %%py: ptr<%s>, %%pz: ptr<i32>)\n"
             "    {wave = %u, block = %u, smem_bytes = 2048, grid = [%u],\n"
             "     params = [[pointer, X], [pointer, Y], [pointer, Z]],\n"
             "     requires = [[align, X, 4], [align, Y, 4]]} {\n"
             "  %%lanes = arith.const {value = %u} : i32\n"
             "  %%threads = arith.const {value = %u} : i32\n"
             "  %%z_bytes = arith.const {value = 1024} : i32\n"
             "  %%x_bytes = arith.const {value = %u} : i32\n"
             "%s  %%x = amdgcn.make_buffer %%px, %%begin, %%x_bytes : buffer\n"
             "  %%y = amdgcn.make_buffer %%py, %%begin, %%x_bytes : buffer\n"
             "%s  return\n}\n",
             s.elem, s.elem, s.elem, s.elem, s.wave, s.block, s.groups ? s.groups : 1, s.wave,
             s.block, s.bytes ? s.bytes : 4 * N, head, body);
    program p;
    program_load(&p, text);
    static result r;
    r = (result){0};
    double x[N];
    for (int i = 0; i < N; i++) {
        x[i] = !strcmp(s.elem, "u4") ? i % 16 : !strcmp(s.elem, "u8") ? (i + 1) % 256 : i + 1;
        r.y[i] = r.z[i] = -1;
    }
    tcc_interp_options o = {.signature = p.ir->first, .seed = s.seed};
    r.status =
        tcc_interp_run(tcc_func_find(p.ir, "f"), &o, (double *[]){x, r.y, r.z}, p.arena, &p.diag);
    memcpy(r.said, p.said, sizeof r.said);
    program_free(&p);
    return r;
}

static result run(unsigned wave, const char *body)
{
    return run_with((setup){.elem = "i32", .wave = wave}, body);
}

#define SHOW(value)                                                                                \
    "  %shown = vec.splat " value " : vec<i32[1]>\n"                                               \
    "  amdgcn.buffer.store %z, %t4, %c0, %shown\n"

/* ---- registers ------------------------------------------------------------------------- */

START_TEST(threads_and_workgroups_have_numbers)
{
    const setup s = {.elem = "i32", .wave = (unsigned)_i, .block = 64, .groups = 4, .seed = 3};
    result r = run_with(s, "  %g = amdgcn.wgid : i32\n"
                           "  %g64 = arith.mul %g, %c64 : i32\n"
                           "  %i = arith.add %g64, %t : i32\n"
                           "  %at = arith.mul %i, %c4 : i32\n"
                           "  %v = vec.splat %i : vec<i32[1]>\n"
                           "  amdgcn.buffer.store %z, %at, %c0, %v\n");
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(r.z[i], i);
}
END_TEST

START_TEST(the_first_active_lane_is_read)
{
    result r = run(_i, "  %late = arith.cmp %lane, %c4 {pred = ge} : i1\n"
                       "  %v = scf.if %late : i32 {\n"
                       "    %u = amdgcn.readfirstlane %t : i32\n"
                       "    scf.yield %u\n"
                       "  } {\n"
                       "    %w = amdgcn.readfirstlane %t : i32\n"
                       "    scf.yield %w\n"
                       "  }\n" SHOW("%v"));
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 2 * _i; i++)
        ck_assert_double_eq(r.z[i], i / _i * _i + (i % _i >= 4 ? 4 : 0));
}
END_TEST

START_TEST(loops_run_under_a_mask)
{
    result r = run(_i, "  %iterations = arith.add %lane, %c1 : i32\n"
                       "  %v = scf.for %c0, %iterations, %c1, %c0 : i32 {\n"
                       "  ^(%i: i32, %sum: i32):\n"
                       "    %next = arith.add %sum, %i : i32\n"
                       "    scf.yield %next\n"
                       "  }\n" SHOW("%v"));
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 2 * _i; i++)
        ck_assert_double_eq(r.z[i], i % _i * (i % _i + 1) / 2);
}
END_TEST

START_TEST(bytes_are_permuted)
{
    /* bytes of b: 0 1 2 3; of a: 4 5 6 7 */
    result r = run(32, "  %a = arith.const {value = -2023406815} : i32\n" /* 0x87654321 */
                       "  %b = arith.const {value = 439041101} : i32\n"   /* 0x1A2B3C4D */
                       "  %v = amdgcn.perm %a, %b {sel = 50529031} : i32\n" SHOW("%v"));
    ck_assert_msg(!r.status, "%s", r.said);
    ck_assert_double_eq(r.z[0], 0x1A1A1A87); /* sel 0x03030307 */
    r = run(32, "  %v = amdgcn.perm %t, %t {sel = 12} : i32\n" SHOW("%v"));
    ck_assert_ptr_nonnull(strstr(r.said, "amdgcn.perm: byte 0 of the selector is 12"));
}
END_TEST

START_TEST(lanes_exchange)
{
    for (int mask = 1; mask <= 32; mask *= 2) {
        char text[512];
        snprintf(text, sizeof text, "  %%v = amdgcn.lane_xor %%t {mask = %d} : i32\n%s", mask,
                 SHOW("%v"));
        result r = run(_i, text);
        if (mask == _i)
            ck_assert_ptr_nonnull(strstr(r.said, "lane xor 32 in a wave of 32 lanes"));
        for (int i = 0; i < 2 * _i && mask < _i; i++)
            ck_assert_double_eq(r.z[i], i ^ mask);
    }
    result r = run(_i, "  %few = arith.cmp %lane, %c4 {pred = lt} : i1\n"
                       "  scf.if %few {\n    %v = amdgcn.lane_xor %t {mask = 1} : i32\n  }\n");
    ck_assert_ptr_nonnull(strstr(r.said, "amdgcn.lane_xor in 4 of a w"));
}
END_TEST

/* ---- buffers --------------------------------------------------------------------------------- */

START_TEST(what_is_outside_reads_as_zero_and_is_not_written)
{
    const setup s = {.elem = "i32", .wave = (unsigned)_i, .bytes = 100};
    result r = run_with(s, "  %v = amdgcn.buffer.load %x, %t4, %c0 : vec<i32[1]>\n"
                           "  amdgcn.buffer.store %z, %t4, %c0, %v\n"
                           "  amdgcn.buffer.store %y, %t4, %c0, %v\n");
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < N; i++) {
        ck_assert_double_eq(r.y[i], i < 25 ? i + 1 : -1);
        ck_assert_double_eq(r.z[i], i < 25 ? i + 1 : i < 2 * _i ? 0 : -1);
    }
}
END_TEST

START_TEST(offsets_add_up)
{
    result r = run(_i, "  %v = amdgcn.buffer.load %x, %t4, %c16 {offset = 8} : vec<i32[1]>\n"
                       "  amdgcn.buffer.store %z, %t4, %c16, %v {offset = 4}\n");
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 2 * _i; i++)
        ck_assert_double_eq(r.z[i + 5], i + 7);
}
END_TEST

START_TEST(accesses_have_one_to_sixteen_bytes)
{
    static const struct {
        const char *elem;
        int n, step; /* elements of an access, bytes between lanes */
    } of[] = {{"u8", 1, 1},  {"u8", 2, 2},  {"u8", 4, 4},   {"u8", 8, 8},
              {"u8", 12, 4}, {"u8", 16, 4}, {"i32", 4, 16}, {"f16", 8, 16}};
    for (size_t c = 0; c < sizeof of / sizeof *of; c++) {
        char body[512];
        setup s = {.elem = of[c].elem, .wave = 32, .block = 32, .bytes = 256};
        snprintf(body, sizeof body,
                 "  %%step = arith.const {value = %d} : i32\n"
                 "  %%at = arith.mul %%t, %%step : i32\n"
                 "  %%low = arith.cmp %%t, %%c4 {pred = lt} : i1\n"
                 "  %%place = arith.select %%low, %%at, %%far : i32\n"
                 "  %%v = amdgcn.buffer.load %%x, %%place, %%c0 : vec<%s[%d]>\n"
                 "  amdgcn.buffer.store %%y, %%place, %%c0, %%v\n",
                 of[c].step, of[c].elem, of[c].n);
        result r = run_with(s, body);
        ck_assert_msg(!r.status, "%zu: %s", c, r.said);
        int size = !strcmp(of[c].elem, "u8") ? 1 : !strcmp(of[c].elem, "f16") ? 2 : 4;
        int end = 3 * of[c].step / size + of[c].n;
        for (int i = 0; i < N; i++)
            ck_assert_double_eq(r.y[i], i < end ? i + 1 : -1);
    }
}
END_TEST

/* Registers hold bytes, whatever the tensor has. */
START_TEST(words_are_parts_of_any_tensor)
{
    setup s = {.elem = "f16", .wave = 32, .block = 32, .bytes = 128};
    result r = run_with(s, "  %v = amdgcn.buffer.load %x, %t4, %c0 : vec<i32[1]>\n"
                           "  amdgcn.buffer.store %z, %t4, %c0, %v\n"
                           "  amdgcn.buffer.store %y, %t4, %c0, %v\n"
                           "  %b = amdgcn.buffer.load %x, %t, %c0 : vec<u8[1]>\n");
    ck_assert_msg(!r.status, "%s", r.said);
    ck_assert_double_eq(r.z[0], 0x40003C00); /* 2, 1 */
    for (int i = 0; i < 64; i++)
        ck_assert_double_eq(r.y[i], i + 1);
}
END_TEST

START_TEST(small_elements_lie_two_a_byte)
{
    setup s = {.elem = "u4", .wave = 32, .block = 32, .bytes = 128};
    result r = run_with(s, "  %v = amdgcn.buffer.load %x, %t4, %c0 : vec<i32[1]>\n"
                           "  amdgcn.buffer.store %z, %t4, %c0, %v\n"
                           "  amdgcn.buffer.store %y, %t4, %c0, %v\n");
    ck_assert_msg(!r.status, "%s", r.said);
    ck_assert_double_eq(r.z[0], 0x76543210);
    ck_assert_double_eq(r.z[1], (int32_t)0xFEDCBA98);
    for (int i = 0; i < N; i++)
        ck_assert_double_eq(r.y[i], i % 16);
}
END_TEST

static void expect(unsigned wave, const char *elem, unsigned bytes, const char *body,
                   const char *said)
{
    result r = run_with((setup){.elem = elem, .wave = wave, .block = wave, .bytes = bytes}, body);
    if (!said)
        ck_assert_msg(!r.status, "%s\n%s", body, r.said);
    else
        ck_assert_msg(r.status == TCC_ERR_INTERNAL && strstr(r.said, said), "%s\n%s", body, r.said);
}

START_TEST(buffers_are_checked)
{
    static const struct {
        const char *elem;
        unsigned bytes;
        const char *body, *said;
    } cases[] = {
        {"i32", 1028, "",
         "amdgcn.make_buffer: 1028 bytes from byte 0 on are not in 'X', which has"},
        {"u4", 128, "", NULL},
        {"u4", 129, "", "129 bytes from byte 0 on are not in 'X', which has 128"},
        {"i32", 64,
         "  %o = arith.const {value = 964} : i64\n  %b = amdgcn.make_buffer %px, %o, %c64 : "
         "buffer\n",
         "64 bytes from byte 964 on are not in 'X'"},
        {"i32", 64,
         "  %o = arith.const {value = -4} : i64\n  %b = amdgcn.make_buffer %px, %o, %c64 : "
         "buffer\n",
         "from byte -4 on"},
        {"i32", 64,
         "  %o = arith.const {value = 2000} : i64\n  %b = amdgcn.make_buffer %px, %o, %c0 : "
         "buffer\n  %v = amdgcn.buffer.load %b, %t4, %c0 : vec<i32[1]>\n",
         NULL},
        {"i32", 64, "  %b = amdgcn.make_buffer %px, %begin, %t4 : buffer\n",
         "the lanes give different sizes"},
        {"i32", 64, "  %v = amdgcn.buffer.load %x, %c0, %t : vec<i32[1]>\n",
         "the lanes give different scalar offsets"},
        {"i32", 64,
         "  %s = scf.if %of_first : i32 {\n    scf.yield %c4\n  } {\n    scf.yield %t\n  }\n"
         "  %v = amdgcn.buffer.load %x, %c0, %s : vec<i32[1]>\n",
         NULL},
        {"i32", 64, "  %v = amdgcn.buffer.load %x, %c0, %c64 : vec<i32[1]>\n",
         "at bytes 64 to 67 of a buffer of 64 in 'X': the scalar offset, which is not checked"},
        {"i32", 64, "  %v = amdgcn.buffer.load %x, %far, %c64 : vec<i32[1]>\n", NULL},
        {"i32", 64, "  %v = amdgcn.buffer.load %x, %c0, %c0 {offset = 56} : vec<i32[4]>\n",
         "at bytes 56 to 71 of a buffer of 64 in 'X': it ends outside"},
        {"i32", 64,
         "  %m = arith.const {value = -8} : i32\n"
         "  %v = amdgcn.buffer.load %x, %m, %c0 {offset = 8} : vec<i32[1]>\n",
         "the offset has more than 32 bits"},
        {"i32", 64, "  %v = amdgcn.buffer.load %x, %c2, %c0 : vec<i32[1]>\n",
         "at bytes 2 to 5 of a buffer of 64 in 'X': the address is not aligned"},
        {"i32", 64, "  %v = amdgcn.buffer.load %x, %c2, %c0 {align = 2} : vec<i32[4]>\n", NULL},
        {"i32", 64, "  %v = amdgcn.buffer.load %x, %c1, %c0 {align = 2} : vec<i32[4]>\n",
         "at bytes 1 to 16 of a buffer of 64 in 'X': the address is not aligned"},
        {"i32", 64, "  %v = amdgcn.buffer.load %x, %c1, %c0 : vec<u8[1]>\n", NULL},
        {"i32", 64,
         "  %v = amdgcn.buffer.load %x, %c0, %c0 : vec<u8[1]>\n"
         "  amdgcn.buffer.store %x, %c0, %c0, %v\n",
         "amdgcn.buffer.store stores 1 bytes from byte 0 of 'X' on: parts of elements"},
        {"i32", 64, "  %u = vec.undef : vec<i32[1]>\n  amdgcn.buffer.store %x, %t4, %c0, %u\n",
         "amdgcn.buffer.store reads registers that were never written"},
        {"f32", 64,
         "  %v = amdgcn.ds.load %mine : vec<f32[1]>\n  amdgcn.buffer.store %x, %t4, %c0, %v\n",
         "stores to element 0 of 'X' what comes from LDS that was never written"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect(_i, cases[i].elem, cases[i].bytes, cases[i].body, cases[i].said);
}
END_TEST

/* ---- LDS ------------------------------------------------------------------------------------- */

#define STORE "  amdgcn.ds.store %mine, %v\n"
#define LOAD "  %w = amdgcn.ds.load %other : vec<i32[1]>\n"
#define WAIT "  amdgcn.waitcnt {ds = 0}\n"
#define BARRIER "  amdgcn.s_barrier\n"
#define VALUE "  %v = vec.splat %t : vec<i32[1]>\n"

START_TEST(waves_exchange_through_lds)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        setup s = {.elem = "i32", .wave = (unsigned)_i, .seed = seed};
        result r = run_with(s, VALUE STORE WAIT BARRIER LOAD
                            "  amdgcn.buffer.store %z, %t4, %c0, %w\n" WAIT BARRIER STORE);
        ck_assert_msg(!r.status, "%s", r.said);
        for (int i = 0; i < 2 * _i; i++)
            ck_assert_double_eq(r.z[i], 2 * _i - 1 - i);
    }
}
END_TEST

START_TEST(lds_has_bytes)
{
    result r = run(_i, "  %b = arith.cast %t : u8\n"
                       "  %v = vec.splat %b : vec<u8[1]>\n"
                       "  %two = arith.mul %lane, %c2 : i32\n"
                       "  %in = arith.add %two, %wave : i32\n" /* neighbours are of two waves */
                       "  %to = arith.add %lds, %in : i32\n"
                       "  amdgcn.ds.store %to, %v {offset = 8}\n" WAIT BARRIER
                       "  %low = arith.cmp %t, %c16 {pred = lt} : i1\n"
                       "  scf.if %low {\n"
                       "    %w = amdgcn.ds.load %mine {offset = 8} : vec<u8[4]>\n"
                       "    %third = vec.extract %w {offset = 3} : u8\n"
                       "    %i = arith.cast %third : i32\n" SHOW("%i") "  }\n");
    ck_assert_msg(!r.status, "%s", r.said);
    for (int i = 0; i < 16; i++) /* byte 4 i + 3 is of the second wave's lane 2 i + 1 */
        ck_assert_double_eq(r.z[i], _i + 2 * i + 1);
}
END_TEST

/* Two waves, in all orders. */
START_TEST(orders_in_lds)
{
#define FIRST(ops) "  scf.if %of_first {\n  " ops "  }\n"
#define SECOND(ops) "  scf.if %of_second {\n  " ops "  }\n"
#define PUT(at) "  amdgcn.ds.store %" at ", %v\n"
#define TEXT(x) #x
#define UNIQUE(n) "%got" TEXT(n)
#define GET(at) "  " UNIQUE(__COUNTER__) " = amdgcn.ds.load %" at " : vec<i32[1]>\n"
    static const char filled[] = "  %p = arith.add %lds, %c0 : i32\n"
                                 "  %q = arith.add %lds, %c64 : i32\n" VALUE;
    static const struct {
        const char *body, *said;
    } cases[] = {
        /* a wave sees its own stores, and overwrites what it has read */
        {FIRST(PUT("p") GET("p") PUT("p")), NULL},
        /* others' need both */
        {FIRST(PUT("p") WAIT) BARRIER SECOND(GET("p")), NULL},
        {FIRST(PUT("p")) BARRIER SECOND(GET("p")), "may still be writing"},
        {FIRST(PUT("p") WAIT) SECOND(GET("p")), "LDS at byte 0"},
        {FIRST(PUT("p")) BARRIER FIRST(WAIT) SECOND(GET("p")), "may still be writing"},
        {FIRST(PUT("p")) BARRIER FIRST(WAIT) BARRIER SECOND(GET("p")), NULL},
        /* what the wave has waited for that reads does not matter */
        {FIRST(PUT("p")) SECOND(WAIT) BARRIER SECOND(GET("p")), "may still be writing"},
        {FIRST(PUT("p") "  amdgcn.waitcnt {load = 0, store = 0}\n") BARRIER SECOND(GET("p")),
         "may still be writing"},
        /* in order: all but the last */
        {FIRST(PUT("p") PUT("q") "  amdgcn.waitcnt {ds = 1}\n") BARRIER SECOND(GET("p")), NULL},
        {FIRST(PUT("p") PUT("q") "  amdgcn.waitcnt {ds = 1}\n") BARRIER SECOND(GET("q")),
         "LDS at byte 64 that wave 0 may still be writing"},
        {FIRST(PUT("p") WAIT PUT("q") "  amdgcn.waitcnt {ds = 7}\n") BARRIER SECOND(GET("p")),
         NULL},
        /* reads, too */
        {FIRST(PUT("p") GET("p") WAIT) BARRIER SECOND(PUT("p")), NULL},
        {FIRST(PUT("p") WAIT GET("p")) BARRIER SECOND(PUT("p")),
         "writes LDS at byte 0 that wave 0 may still be reading"},
        {FIRST(PUT("p") WAIT) BARRIER FIRST(GET("p")) SECOND(GET("p")), NULL},
        /* two that write */
        {FIRST(PUT("p")) SECOND(PUT("p")), "may still be writing"},
        {FIRST(PUT("p")) SECOND(PUT("q")), NULL},
        {FIRST(GET("p")), "reads LDS at byte 0 that was never written"},
        {FIRST(BARRIER), "deadlock"},
        {"  %some = arith.cmp %lane, %c4 {pred = lt} : i1\n  scf.if %some {\n" BARRIER "  }\n",
         "amdgcn.s_barrier in 4 of a wave's"},
        {"  %o = arith.const {value = 2045} : i32\n  %e = arith.add %lds, %o : i32\n" PUT("e"),
         "LDS address"},
        {"  %w = vec.pack %v, %v, %v : vec<i32[3]>\n  amdgcn.ds.store %lds, %w {offset = 4}\n",
         "is not a multiple of 16"},
        {"  amdgcn.ds.store %lds, %v {offset = 2048}\n",
         "4 bytes from byte 2048 on are not in the 2048 of LDS"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            char body[2048];
            snprintf(body, sizeof body, "%s%s", filled, cases[i].body);
            result r = run_with((setup){.elem = "i32", .wave = (unsigned)_i, .seed = seed}, body);
            if (!cases[i].said)
                ck_assert_msg(!r.status, "%s\n%s", body, r.said);
            else
                ck_assert_msg(r.status == TCC_ERR_INTERNAL && strstr(r.said, cases[i].said),
                              "%s\n%s", body, r.said);
        }
}
END_TEST

/* ---- what a wave must do as a whole ---------------------------------------------------- */

START_TEST(products_want_all_lanes)
{
    char body[1024], said[64];
    snprintf(body, sizeof body,
             "  %%a = vec.splat %%c0 : vec<i32[8]>\n"
             "  %%zero = arith.const {value = 0.0} : f32\n"
             "  %%c = vec.splat %%zero : vec<f32[%d]>\n"
             "  %%some = arith.cmp %%lane, %%c16 {pred = lt} : i1\n"
             "  scf.if %%some {\n"
             "    %%d = amdgcn.wmma %%a, %%a, %%c {a = f16, b = f16, acc = f32, k = 16} : "
             "vec<f32[%d]>\n"
             "  }\n",
             256 / _i, 256 / _i);
    snprintf(said, sizeof said, "amdgcn.wmma in 16 of a wave's %d lanes", _i);
    expect((unsigned)_i, "i32", 64, body, said);
}
END_TEST

/* What a function says of its launch. */
START_TEST(launches_are_checked)
{
    static const struct {
        const char *attrs, *said;
    } cases[] = {
        {"wave = 32, block = 64, smem_bytes = 65536", NULL},
        {"block = 64", NULL},
        {"wave = 16, block = 64", "waves of 16 lanes"},
        {"wave = 64, block = 96", "a block of 96 threads"},
        {"wave = 32, block = 2048", "a block of 2048 threads"},
        {"wave = 32, block = 64, cluster_ctas = 2", "gfx1100 has no clusters"},
        {"wave = 32, block = 64, smem_bytes = 65540", "65540 bytes of shared memory of at most"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        program p;
        snprintf(text, sizeof text,
                 "module {target = gfx1100}\nfunc @sig(%%X: tensor<f32[4]>) {\n  return\n}\n"
                 "func @f() {%s, grid = [2], params = [], requires = []} {\n"
                 "  %%t = amdgcn.tid : i32\n  amdgcn.s_barrier\n  return\n}\n",
                 cases[i].attrs);
        program_load(&p, text);
        const tcc_interp_options o = {.signature = p.ir->first};
        double x[4];
        tcc_interp_run(tcc_func_find(p.ir, "f"), &o, (double *[]){x}, p.arena, &p.diag);
        if (cases[i].said)
            ck_assert_msg(strstr(p.said, cases[i].said), "%s: %s", cases[i].attrs, p.said);
        else
            ck_assert_msg(!*p.said, "%s: %s", cases[i].attrs, p.said);
        program_free(&p);
    }
}
END_TEST

START_TEST(hints_do_nothing)
{
    expect((unsigned)_i, "i32", 64,
           "  amdgcn.sched_barrier {mask = 0}\n  amdgcn.sched_group {mask = 8, size = 2}\n"
           "  amdgcn.setprio {priority = 3}\n",
           NULL);
}
END_TEST

static void add(TCase *t)
{
    tcase_add_test(t, bytes_are_permuted);
    tcase_add_loop_test(t, lanes_exchange, 32, 33);
    tcase_add_loop_test(t, lanes_exchange, 64, 65);
    tcase_add_test(t, accesses_have_one_to_sixteen_bytes);
    tcase_add_test(t, words_are_parts_of_any_tensor);
    tcase_add_test(t, small_elements_lie_two_a_byte);
    tcase_add_test(t, launches_are_checked);
    for (int wave = 32; wave <= 64; wave += 32) {
#define BOTH(test) tcase_add_loop_test(t, test, wave, wave + 1)
        BOTH(threads_and_workgroups_have_numbers);
        BOTH(the_first_active_lane_is_read);
        BOTH(loops_run_under_a_mask);
        BOTH(what_is_outside_reads_as_zero_and_is_not_written);
        BOTH(offsets_add_up);
        BOTH(buffers_are_checked);
        BOTH(waves_exchange_through_lds);
        BOTH(lds_has_bytes);
        BOTH(orders_in_lds);
        BOTH(products_want_all_lanes);
        BOTH(hints_do_nothing);
    }
}

Suite *SUITE(void)
{
    return suite_of("amdgcn", add);
}

/* Compiling through the public API.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc.h>
#include <tcc/tcc_runtime.h>

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/check_manifest.h"
#include "driver/module.h"
#include "tests/unit/suite.h"

static const char product[] =
    "kernel product(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
    "{\n"
    "    C[m, n] = sum(k) A[m, k] * B[n, k];\n"
    "}\n";
static const char unused[] =
    "kernel f(A: f16[M, K], B: f16[N, K], D: f32[N]) -> (C: f16[M, N])\n"
    "{\n"
    "    C[m, n] = sum(k) A[m, k] * B[n, k];\n"
    "}\n";
static const char too_large[] =
    "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }\n"
    "schedule f for sm_90a { stages 900; }\n";
static const char unsupported[] =
    "kernel f(A: f16[M, K]) -> (C: f16[M]) { C[m] = sum:f16(k) A[m, k]; }\n";

/* ---- a context that remembers its first diagnostic ---------------------------------------- */

typedef struct heard {
    unsigned n;
    tcc_severity severity;
    unsigned line, column;
    bool has_source_line;
    char file[64], message[256], source_line[256], text[1024];
} heard;

static tcc_context *ctx;
static heard first;

static void keep(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from ? from : "");
}

static void listen(const tcc_diagnostic *d, void *user)
{
    heard *h = user;
    if (h->n++)
        return;
    h->severity = d->severity;
    h->line = d->line;
    h->column = d->column;
    h->has_source_line = d->source_line;
    keep(h->file, sizeof h->file, d->file);
    keep(h->message, sizeof h->message, d->message);
    keep(h->source_line, sizeof h->source_line, d->source_line);
    keep(h->text, sizeof h->text, d->text);
}

static void setup(void)
{
    first = (heard){0};
    ctx = tcc_context_create();
    ck_assert_ptr_nonnull(ctx);
    tcc_context_on_diagnostic(ctx, listen, &first);
}

static void teardown(void)
{
    tcc_context_destroy(ctx);
}

static tcc_status compile(const char *source, tcc_compile_options o)
{
    tcc_module *mod = (tcc_module *)&o; /* to be overwritten */
    o.struct_size = sizeof o;
    if (!o.target)
        o.target = "sm_90a";
    tcc_status status = tcc_compile_with(ctx, source, strlen(source), &o, &mod);
    ck_assert(status ? !mod : mod != NULL);
    tcc_module_destroy(mod);
    return status;
}

/* ---- what comes out ------------------------------------------------------------------------ */

START_TEST(a_string_becomes_ptx)
{
    tcc_module *mod;
    ck_assert_int_eq(tcc_compile(ctx, product, "sm_90a", &mod), TCC_OK);
    size_t size;
    const char *ptx = tcc_module_output(mod, &size);
    ck_assert_uint_eq(size, strlen(ptx));
    ck_assert_ptr_eq(tcc_module_output(mod, NULL), ptx);
    ck_assert_ptr_nonnull(strstr(ptx, ".visible .entry product("));
    ck_assert_uint_eq(first.n, 0);
    tcc_module_destroy(mod);
}
END_TEST

START_TEST(a_module_tells_of_its_kernels)
{
    static const char two[] =
        "kernel b(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }"
        "kernel a(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }";
    const tcc_compile_options o = {
        .struct_size = sizeof o, .target = "sm_90a", .emit = TCC_EMIT_MANIFEST};
    tcc_module *mod;
    ck_assert_int_eq(tcc_compile_with(ctx, two, sizeof two - 1, &o, &mod), TCC_OK);
    ck_assert_uint_eq(tcc_module_kernel_count(mod), 2);
    ck_assert_str_eq(tcc_module_kernel_name(mod, 0), "b");
    ck_assert_str_eq(tcc_module_kernel_name(mod, 1), "a");
    ck_assert_ptr_null(tcc_module_kernel_name(mod, 2));
    const char *manifest = tcc_module_manifest(mod);
    ck_assert_int_eq(strncmp(tcc_module_output(mod, NULL), manifest, strlen(manifest)), 0);
    ck_assert_ptr_nonnull(strstr(tcc_module_schedule(mod), "schedule b for sm_90a"));
    ck_assert_ptr_nonnull(strstr(tcc_module_schedule(mod), "schedule a for sm_90a"));
    tcc_module_destroy(mod);
}
END_TEST

START_TEST(one_of_several_kernels_is_compiled)
{
    static const char two[] =
        "kernel b(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }"
        "kernel a(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }";
    tcc_compile_options o = {
        .struct_size = sizeof o, .target = "sm_90a", .emit = TCC_EMIT_MANIFEST, .kernel = "a"};
    tcc_module *mod;
    ck_assert_int_eq(tcc_compile_with(ctx, two, sizeof two - 1, &o, &mod), TCC_OK);
    ck_assert_uint_eq(tcc_module_kernel_count(mod), 1);
    ck_assert_str_eq(tcc_module_kernel_name(mod, 0), "a");
    ck_assert_ptr_null(strstr(tcc_module_manifest(mod), "\"b\""));
    tcc_module_destroy(mod);
    o.kernel = "c";
    ck_assert_int_eq(tcc_compile_with(ctx, two, sizeof two - 1, &o, &mod), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(first.message, "the program has no kernel 'c'; it has 'b', 'a'");
}
END_TEST

START_TEST(what_the_runtime_would_refuse_is_told_at_the_kernel)
{
    tcc_module *mod;
    const tcc_signature kernel = {.kernel = "product"};
    ck_assert_int_eq(tcc_compile(ctx, product, "sm_90a", &mod), TCC_OK);
    tcc_diag diag = {.file = "f", .fn = listen, .user = &first};
    ck_assert_int_eq(tcc_check_manifest(tcc_module_manifest(mod), mod->ir, &kernel, 1, &diag), TCC_OK);
    ck_assert_uint_eq(first.n, 0);
    ck_assert_int_eq(tcc_check_manifest("{\"tcc\":\"\",\"manifest\":2,\"target\":\"sm_90a\",\"file\":\"f\","
                                        "\"device\":{\"sms\":1},\"kernels\":[{\"name\":\"product\"}]}",
                                        mod->ir, &kernel, 1, &diag),
                     TCC_ERR_UNSUPPORTED);
    ck_assert_uint_eq(first.line, 1);
    ck_assert_uint_eq(first.column, 8);
    ck_assert_str_eq(first.message,
                     "kernel 'product' could not be launched: bad manifest: $.kernels[0].dims: missing");
    tcc_module_destroy(mod);
}
END_TEST

START_TEST(tensor_level_ir_has_no_variants)
{
    const tcc_compile_options o = {.struct_size = sizeof o, .target = "sm_90a", .emit = TCC_EMIT_IR};
    tcc_module *mod;
    ck_assert_int_eq(tcc_compile_with(ctx, product, sizeof product - 1, &o, &mod), TCC_OK);
    ck_assert_ptr_nonnull(strstr(tcc_module_manifest(mod), "\"variants\":[]"));
    ck_assert_str_eq(tcc_module_schedule(mod), "");
    ck_assert_uint_eq(tcc_module_kernel_count(mod), 1);
    tcc_module_destroy(mod);
}
END_TEST

START_TEST(a_module_outlives_its_context)
{
    tcc_context *own = tcc_context_create();
    tcc_module *mod;
    ck_assert_int_eq(tcc_compile(own, product, "sm_90a", &mod), TCC_OK);
    tcc_context_destroy(own);
    ck_assert_ptr_nonnull(strstr(tcc_module_output(mod, NULL), ".visible .entry"));
    ck_assert_str_eq(tcc_module_kernel_name(mod, 0), "product");
    tcc_module_destroy(mod);
}
END_TEST

START_TEST(a_source_needs_no_terminator)
{
    static const char text[] = "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])"
                               "{ C[m, n] = sum(k) A[m, k] * B[n, k]; }}}}";
    char *source = malloc(sizeof text - 4); /* its end is the end of the allocation */
    memcpy(source, text, sizeof text - 4);
    const tcc_compile_options o = {.struct_size = sizeof o, .target = "sm_90a", .emit = TCC_EMIT_IR};
    tcc_module *mod;
    ck_assert_int_eq(tcc_compile_with(ctx, source, sizeof text - 4, &o, &mod), TCC_OK);
    tcc_module_destroy(mod);
    ck_assert_int_eq(tcc_compile_with(ctx, text, sizeof text - 1, &o, &mod), TCC_ERR_SYNTAX);
    ck_assert_int_eq(tcc_compile_with(ctx, NULL, 0, &o, &mod), TCC_ERR_SYNTAX);
    free(source);
}
END_TEST

START_TEST(input_may_be_large)
{
    const size_t size = 10 << 20;
    char *source = malloc(size + sizeof product);
    memset(source, ' ', size);
    for (size_t i = 63; i < size; i += 64)
        source[i] = '\n';
    memcpy(source + size, product, sizeof product);
    ck_assert_int_eq(compile(source, (tcc_compile_options){.emit = TCC_EMIT_TIR}), TCC_OK);
    source[size + 20] = '?';
    ck_assert_int_eq(compile(source, (tcc_compile_options){.emit = TCC_EMIT_TIR}), TCC_ERR_SYNTAX);
    ck_assert_uint_eq(first.line, size / 64 + 1);
    free(source);
}
END_TEST

/* ---- statuses and diagnostics -------------------------------------------------------------- */

START_TEST(every_failure_has_its_status)
{
    static const struct {
        const char *source;
        tcc_compile_options o;
        tcc_status status;
    } cases[] = {
        {product, {0}, TCC_OK},
        {"kernel", {0}, TCC_ERR_SYNTAX},
        {"", {0}, TCC_ERR_SYNTAX},
        {unused, {0}, TCC_ERR_TYPE},
        {too_large, {0}, TCC_ERR_TARGET},
        {product, {.target = "sm_1"}, TCC_ERR_TARGET},
        {unsupported, {0}, TCC_ERR_UNSUPPORTED},
        {product, {.emit = TCC_EMIT_COUNT}, TCC_ERR_ARGUMENT},
        {product, {.emit = (tcc_emit)-1}, TCC_ERR_ARGUMENT},
        {product, {.emit = TCC_EMIT_HSACO}, TCC_ERR_ARGUMENT},
        {product, {.target = "gfx1100", .emit = TCC_EMIT_PTX}, TCC_ERR_ARGUMENT},
        {product, {.print_after = "magic"}, TCC_ERR_ARGUMENT},
        {product, {.emit = TCC_EMIT_CUBIN, .ptxas = "/nowhere/ptxas"}, TCC_ERR_TOOL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        first.n = 0;
        ck_assert_int_eq(compile(cases[i].source, cases[i].o), cases[i].status);
        ck_assert_uint_eq(first.n > 0, cases[i].status != TCC_OK);
        ck_assert_uint_eq(first.n > 0 && first.severity == TCC_SEV_ERROR, cases[i].status != TCC_OK);
    }
}
END_TEST

/* Options that are zero but for the target give what tcc_compile does. */
START_TEST(a_target_has_a_default_kind)
{
    static const char *const targets[] = {"sm_90a", "gfx1100"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const tcc_compile_options o = {.struct_size = sizeof o, .target = targets[i]};
        tcc_module *zero, *simple;
        size_t n_zero, n_simple;
        ck_assert_int_eq(tcc_compile_with(ctx, product, strlen(product), &o, &zero), TCC_OK);
        ck_assert_int_eq(tcc_compile(ctx, product, targets[i], &simple), TCC_OK);
        const void *a = tcc_module_output(zero, &n_zero), *b = tcc_module_output(simple, &n_simple);
        ck_assert_uint_eq(n_zero, n_simple);
        ck_assert_mem_eq(a, b, n_zero);
        tcc_module_destroy(zero);
        tcc_module_destroy(simple);
    }
    char *text;
    const tcc_compile_options none = {.struct_size = sizeof none};
    static const char ir[] = "func @f(%x: i32) {\n  return\n}\n";
    ck_assert_int_eq(tcc_opt(ctx, ir, sizeof ir - 1, "", &none, &text), TCC_OK);
    ck_assert_int_eq(strncmp(text, "func @f", 7), 0);
    tcc_text_destroy(text);
}
END_TEST

START_TEST(a_target_is_needed)
{
    tcc_module *mod;
    ck_assert_int_eq(tcc_compile(ctx, product, NULL, &mod), TCC_ERR_TARGET);
    ck_assert_ptr_null(mod);
}
END_TEST

START_TEST(a_diagnostic_has_a_place)
{
    ck_assert_int_eq(compile(unused, (tcc_compile_options){.file = "dir/f.tile"}), TCC_ERR_TYPE);
    ck_assert_uint_eq(first.n, 1);
    ck_assert_str_eq(first.file, "dir/f.tile");
    ck_assert_uint_eq(first.line, 1);
    ck_assert_uint_eq(first.column, 38);
    ck_assert_ptr_nonnull(strstr(first.message, "'D'"));
    ck_assert_ptr_null(strchr(first.message, '\n'));
    ck_assert_str_eq(first.source_line,
                     "kernel f(A: f16[M, K], B: f16[N, K], D: f32[N]) -> (C: f16[M, N])");
    char expected[1024];
    snprintf(expected, sizeof expected, "dir/f.tile:1:38: error: %s\n%s\n%*s\n", first.message,
             first.source_line, 38, "^");
    ck_assert_str_eq(first.text, expected);
}
END_TEST

START_TEST(a_diagnostic_may_have_no_place)
{
    ck_assert_int_eq(compile(product, (tcc_compile_options){.target = "sm_1"}), TCC_ERR_TARGET);
    ck_assert_str_eq(first.file, "<source>");
    ck_assert_uint_eq(first.line, 0);
    ck_assert(!first.has_source_line);
    ck_assert_str_eq(first.text, "<source>: error: no target is named 'sm_1'; there are sm_90a, sm_80, sm_86, sm_87, sm_89, sm_90, sm_100, sm_120, "
                     "sm_75, sm_72, sm_70, sm_62, sm_61, sm_60, sm_53, sm_52, sm_50, gfx1100, gfx1101, gfx1102, gfx1103, gfx1150, gfx1151, gfx1200, gfx1201\n");
}
END_TEST

START_TEST(without_a_callback_diagnostics_are_dropped)
{
    tcc_context_on_diagnostic(ctx, NULL, NULL);
    ck_assert_int_eq(compile(unused, (tcc_compile_options){0}), TCC_ERR_TYPE);
    ck_assert_uint_eq(first.n, 0);
}
END_TEST

START_TEST(a_warning_is_no_failure)
{
    static const char source[] =
        "kernel f(A: f16[M, K, B], W: f16[K, N, B]) -> (C: f16[B, M, N])"
        "{ C[b, m, n] = sum(k) A[m, k, b] * W[k, n, b]; }\n"
        "schedule f for sm_90a { stages 2; }\n";
    ck_assert_int_eq(compile(source, (tcc_compile_options){.emit = TCC_EMIT_TIR}), TCC_OK);
    ck_assert_uint_eq(first.n, 1);
    ck_assert_int_eq(first.severity, TCC_SEV_WARNING);
    ck_assert_uint_eq(first.line, 2);
}
END_TEST

/* ---- options ------------------------------------------------------------------------------- */

/* The options of a caller that was built when there was nothing behind `target`. */
START_TEST(options_may_be_older)
{
    tcc_compile_options o;
    memset(&o, 0xAA, sizeof o);
    o.struct_size = offsetof(tcc_compile_options, file);
    o.target = "sm_90a";
    tcc_module *mod;
    ck_assert_int_eq(tcc_compile_with(ctx, product, sizeof product - 1, &o, &mod), TCC_OK);
    ck_assert_ptr_nonnull(strstr(tcc_module_output(mod, NULL), "\"file\":\"<source>\""));
    tcc_module_destroy(mod);
}
END_TEST

START_TEST(definitions_bind_dimensions)
{
    const tcc_define k = {"K", 96}, nobody = {"NOBODY", 1};
    const tcc_compile_options o = {.struct_size = sizeof o, .target = "sm_90a",
                                   .emit = TCC_EMIT_IR, .defines = &k, .n_defines = 1};
    tcc_module *mod;
    ck_assert_int_eq(tcc_compile_with(ctx, product, sizeof product - 1, &o, &mod), TCC_OK);
    ck_assert_ptr_nonnull(strstr(tcc_module_output(mod, NULL), "%A: tensor<f16[M, 96]>"));
    tcc_module_destroy(mod);
    ck_assert_int_ne(compile(product, (tcc_compile_options){.defines = &nobody, .n_defines = 1}),
                     TCC_OK);
}
END_TEST

typedef struct printed {
    unsigned pieces;
    size_t length;
    bool has_ir, has_total;
} printed;

static void count_print(const char *text, void *user)
{
    printed *p = user;
    p->pieces++;
    p->length += strlen(text);
    p->has_ir |= strstr(text, "// after choose-mma") && strstr(text, "tile.mma");
    p->has_total |= strstr(text, "ms  total") != NULL;
}

START_TEST(text_is_printed_through_the_callback)
{
    printed p = {0};
    tcc_compile_options o = {.emit = TCC_EMIT_TIR, .print_after = "choose-mma",
                             .print = count_print, .print_user = &p};
    ck_assert_int_eq(compile(product, o), TCC_OK);
    ck_assert(p.pieces == 1 && p.has_ir && !p.has_total);
    o.time_passes = true;
    ck_assert_int_eq(compile(product, o), TCC_OK);
    ck_assert(p.pieces == 3 && p.has_total);
    o.print_after = NULL;
    ck_assert_int_eq(compile("kernel", o), TCC_ERR_SYNTAX);
    ck_assert_uint_eq(p.pieces, 4); /* the time that a failure took */
    o.print_after = "all";
    o.print = NULL;
    ck_assert_int_eq(compile(product, o), TCC_OK);
}
END_TEST

/* ---- IR ------------------------------------------------------------------------------------ */

static tcc_status opt(const char *ir, const char *passes, char **out)
{
    return tcc_opt(ctx, ir, strlen(ir), passes, NULL, out);
}

START_TEST(passes_run_on_text)
{
    char *out;
    const char *dead = "func @f(%x: i32) {\n  %y = arith.neg %x : i32\n  return\n}\n";
    ck_assert_int_eq(opt(dead, "", &out), TCC_OK);
    ck_assert_str_eq(out, dead);
    tcc_text_destroy(out);
    ck_assert_int_eq(opt(dead, "canonicalize,dce", &out), TCC_OK);
    ck_assert_str_eq(out, "func @f(%x: i32) {\n  return\n}\n");
    tcc_text_destroy(out);
    tcc_text_destroy(NULL);
}
END_TEST

START_TEST(ir_has_statuses_too)
{
    static const struct {
        const char *ir, *passes;
        tcc_status status;
    } cases[] = {
        {"func", "", TCC_ERR_SYNTAX},
        {"func @f() { }", "", TCC_ERR_TYPE},
        {"func @f() { return }", "nothing", TCC_ERR_ARGUMENT},
        {"func @f() { return }", "dce,,dce", TCC_ERR_ARGUMENT},
        {"module {target = sm_1}\nfunc @f() { return }", "", TCC_ERR_TARGET},
        {"func @f(%a: tile<f32[64, 16]>, %b: tile<f32[16, 8]>, %c: tile<f32[64, 8]>) {"
         "%r = tile.mma %a, %b, %c : tile<f32[64, 8]> return }", "choose-mma", TCC_ERR_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *out = (char *)cases;
        first.n = 0;
        ck_assert_int_eq(opt(cases[i].ir, cases[i].passes, &out), cases[i].status);
        ck_assert_ptr_null(out);
        ck_assert_uint_ge(first.n, 1);
        ck_assert_int_eq(first.severity, TCC_SEV_ERROR);
    }
}
END_TEST

/* ---- names --------------------------------------------------------------------------------- */

START_TEST(names_are_constant_and_end)
{
    ck_assert_str_eq(tcc_version(), TCC_VERSION_STRING);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", TCC_VERSION_MAJOR, TCC_VERSION_MINOR,
             TCC_VERSION_PATCH);
    ck_assert_str_eq(version, TCC_VERSION_STRING);
    ck_assert_str_eq(tcc_target_name(0), "sm_90a");
    ck_assert_ptr_null(tcc_target_name(1000));
    tcc_target_product p;
    ck_assert(tcc_target_product_at("sm_90a", 0, &p));
    ck_assert_str_eq(p.instr, "wgmma");
    ck_assert_str_eq(p.sum, "f32");
    bool mixed = false;
    for (size_t i = 0; tcc_target_product_at("gfx1100", i, &p); i++)
        mixed |= !strcmp(p.instr, "wmma") && !strcmp(p.a, "u8") && !strcmp(p.b, "i8") && !strcmp(p.sum, "i32");
    ck_assert(mixed);
    ck_assert(!tcc_target_product_at("sm_90a", 1000, &p));
    ck_assert(!tcc_target_product_at("nonesuch", 0, &p) && !tcc_target_product_at(NULL, 0, &p));
    ck_assert_str_eq(tcc_emit_name(TCC_EMIT_DEFAULT), "default");
    ck_assert_str_eq(tcc_emit_name(TCC_EMIT_PTX), "ptx");
    ck_assert_str_eq(tcc_emit_name(TCC_EMIT_MANIFEST), "manifest");
    ck_assert_str_eq(tcc_emit_name(TCC_EMIT_HSACO), "hsaco");
    ck_assert_str_eq(tcc_emit_name(TCC_EMIT_SASS), "sass");
    ck_assert_int_eq(tcc_target_emit("sm_90a"), TCC_EMIT_PTX);
    ck_assert_int_eq(tcc_target_emit("gfx1201"), TCC_EMIT_HSACO);
    ck_assert_int_eq(tcc_target_emit("nonesuch"), TCC_EMIT_PTX);
    ck_assert_ptr_null(tcc_emit_name(TCC_EMIT_COUNT));
    ck_assert_ptr_null(tcc_emit_name((tcc_emit)-1));
    size_t n = 0;
    for (; tcc_pass_name(n); n++)
        ck_assert_ptr_nonnull(tcc_pass_summary(n));
    ck_assert_uint_ge(n, 10);
    ck_assert_ptr_null(tcc_pass_summary(n));
}
END_TEST

START_TEST(every_status_has_a_name_of_its_own)
{
    for (int a = TCC_OK; a <= TCC_ERR_INTERRUPTED; a++)
        for (int b = TCC_OK; b < a; b++)
            ck_assert_str_ne(tcc_status_name((tcc_status)a), tcc_status_name((tcc_status)b));
    ck_assert_ptr_nonnull(tcc_status_name((tcc_status)99));
    ck_assert_ptr_nonnull(tcc_status_name((tcc_status)-1));
}
END_TEST

/* ---- NULL ---------------------------------------------------------------------------------- */

START_TEST(nothing_may_be_destroyed)
{
    tcc_module_destroy(NULL);
    tcc_context_destroy(NULL);
    tcc_text_destroy(NULL);
    tcc_program_destroy(NULL);
    tcc_runtime_destroy(NULL);
    tcc_device_close(NULL);
}
END_TEST

START_TEST(nothing_may_be_asked)
{
    size_t size = 1;
    ck_assert_ptr_null(tcc_module_output(NULL, &size));
    ck_assert_uint_eq(size, 0);
    ck_assert_ptr_null(tcc_module_output(NULL, NULL));
    ck_assert_str_eq(tcc_module_manifest(NULL), "");
    ck_assert_str_eq(tcc_module_schedule(NULL), "");
    ck_assert_str_eq(tcc_module_plan(NULL), "");
    ck_assert_uint_eq(tcc_module_kernel_count(NULL), 0);
    ck_assert_ptr_null(tcc_module_kernel_name(NULL, 0));
    ck_assert_ptr_null(tcc_program_manifest(NULL));
    ck_assert_ptr_null(tcc_program_kernel(NULL, "f"));
    ck_assert_ptr_null(tcc_program_kernel(NULL, NULL));
    ck_assert_uint_eq(tcc_program_kernel_count(NULL), 0);
    ck_assert_ptr_null(tcc_program_kernel_at(NULL, 0));
    ck_assert_ptr_null(tcc_kernel_name(NULL));
    ck_assert_uint_eq(tcc_kernel_dim_count(NULL), 0);
    ck_assert_ptr_null(tcc_kernel_dim_name(NULL, 0));
    ck_assert(tcc_kernel_flops(NULL, NULL) == 0);
    ck_assert_ptr_null(tcc_kernel_sum_type(NULL));
    ck_assert_uint_eq(tcc_kernel_arg_count(NULL), 0);
    ck_assert_ptr_null(tcc_kernel_arg(NULL, 0));
    ck_assert_ptr_null(tcc_kernel_variant(NULL, NULL, 0, NULL, 0));
    ck_assert_int_eq(tcc_kernel_launch(NULL, NULL, 0, NULL, 0, NULL), TCC_ERR_ARGUMENT);
    ck_assert_int_eq(tcc_runtime_device_count(NULL), 0);
    ck_assert_ptr_null(tcc_device_name(NULL));
    ck_assert_ptr_null(tcc_device_arch(NULL));
    ck_assert_int_eq(tcc_device_driver_version(NULL), 0);
}
END_TEST

START_TEST(diagnostics_without_a_context_are_dropped)
{
    tcc_module *mod;
    char *out;
    tcc_context_on_diagnostic(NULL, listen, &first);
    ck_assert_int_eq(tcc_compile(NULL, unused, "sm_90a", &mod), TCC_ERR_TYPE);
    ck_assert_int_eq(tcc_compile_with(NULL, product, strlen(product), NULL, &mod), TCC_ERR_TARGET);
    ck_assert_int_eq(tcc_opt(NULL, "", 0, "", NULL, &out), TCC_OK);
    tcc_text_destroy(out);
    ck_assert_uint_eq(first.n, 0);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("compile");
    TCase *t = tcase_create("compile");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_string_becomes_ptx);
    tcase_add_test(t, a_module_tells_of_its_kernels);
    tcase_add_test(t, one_of_several_kernels_is_compiled);
    tcase_add_test(t, what_the_runtime_would_refuse_is_told_at_the_kernel);
    tcase_add_test(t, tensor_level_ir_has_no_variants);
    tcase_add_test(t, a_module_outlives_its_context);
    tcase_add_test(t, a_source_needs_no_terminator);
    tcase_add_test(t, input_may_be_large);
    tcase_add_test(t, every_failure_has_its_status);
    tcase_add_test(t, a_target_has_a_default_kind);
    tcase_add_test(t, a_target_is_needed);
    tcase_add_test(t, a_diagnostic_has_a_place);
    tcase_add_test(t, a_diagnostic_may_have_no_place);
    tcase_add_test(t, without_a_callback_diagnostics_are_dropped);
    tcase_add_test(t, a_warning_is_no_failure);
    tcase_add_test(t, options_may_be_older);
    tcase_add_test(t, definitions_bind_dimensions);
    tcase_add_test(t, text_is_printed_through_the_callback);
    tcase_add_test(t, passes_run_on_text);
    tcase_add_test(t, ir_has_statuses_too);
    tcase_add_test(t, names_are_constant_and_end);
    tcase_add_test(t, every_status_has_a_name_of_its_own);
    tcase_add_test(t, nothing_may_be_destroyed);
    tcase_add_test(t, nothing_may_be_asked);
    tcase_add_test(t, diagnostics_without_a_context_are_dropped);
    suite_add_tcase(s, t);
    return s;
}

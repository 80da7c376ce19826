/* Bundles and C of modules: which go together, what is in them, and memory that runs out.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc_bundle.h>

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "runtime/bundle.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

enum { MAX_MODULES = 40 };

static const char product[] = "kernel p(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }";
static const char other[] = "kernel p(A: f16[M, K], B: f16[K, N]) -> (C: f32[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }";
static const tcc_bundle_options no_cubins = {.struct_size = sizeof no_cubins, .cubins = TCC_OFF};

static tcc_context *ctx;
static tcc_module *modules[MAX_MODULES];
static size_t n_modules;
static char message[512];

static void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    (void)user;
    snprintf(message, sizeof message, "%s", d->message);
}

static void setup(void)
{
    ctx = tcc_context_create();
    tcc_context_on_diagnostic(ctx, on_diagnostic, NULL);
}

static void teardown(void)
{
    while (n_modules)
        tcc_module_destroy(modules[--n_modules]);
    tcc_context_destroy(ctx);
}

static void compile(const char *source, const char *target, tcc_emit emit)
{
    const tcc_compile_options o = {.struct_size = sizeof o, .target = target, .emit = emit, .tiles = 1, .file = "p.tile"};
    ck_assert_int_eq(tcc_compile_with(ctx, source, strlen(source), &o, &modules[n_modules++]), TCC_OK);
    message[0] = 0;
}

static tcc_status make(tcc_text *out)
{
    return tcc_bundle_make(ctx, (const tcc_module *const *)modules, n_modules, &no_cubins, out);
}

START_TEST(modules_of_several_targets_are_packed)
{
    tcc_text text;
    tcc_bundle bundle;
    tcc_diag diag = {.fn = on_diagnostic};
    compile(product, "sm_90a", TCC_EMIT_DEFAULT);
    compile(product, "gfx1100", TCC_EMIT_DEFAULT);
    ck_assert_int_eq(make(&text), TCC_OK);
    ck_assert_int_eq(tcc_bundle_read(&diag, text.data, text.size, &bundle), TCC_OK);
    ck_assert_uint_eq(bundle.n, 2);
    for (size_t i = 0; i < 2; i++) {
        size_t size;
        const void *output = tcc_module_output(modules[i], &size);
        ck_assert_uint_eq(bundle.images[i].size, size);
        ck_assert_mem_eq(bundle.images[i].data, output, size);
        ck_assert_uint_eq((size_t)((const char *)bundle.images[i].data - text.data) % TCC_BUNDLE_ALIGN, 0);
        ck_assert_ptr_null(bundle.images[i].manifest);
    }
    ck_assert_str_eq(bundle.images[1].target, "gfx1100");
    tcc_text_destroy(text.data);
}
END_TEST

static void refused(const char *why)
{
    tcc_text text;
    ck_assert_int_eq(make(&text), TCC_ERR_ARGUMENT);
    ck_assert_str_eq(message, why);
    ck_assert_ptr_null(text.data);
    while (n_modules > 1)
        tcc_module_destroy(modules[--n_modules]);
}

START_TEST(modules_that_do_not_go_together_are_refused)
{
    refused("a bundle of 0 modules: it has from 1 to 32");
    compile(product, "sm_90a", TCC_EMIT_DEFAULT);
    compile(other, "sm_80", TCC_EMIT_DEFAULT);
    refused("for sm_80 these modules have other kernels, or other arguments, than for sm_90a");
    compile(product, "sm_90a", TCC_EMIT_DEFAULT);
    refused("two of these modules are for sm_90a");
    compile(product, "sm_80", TCC_EMIT_TIR);
    refused("module 1 of a bundle cannot be loaded: it must be PTX, a cubin or a code object");
    compile(product, "gfx1100", TCC_EMIT_OBJ);
    refused("module 1 of a bundle cannot be loaded: it must be PTX, a cubin or a code object");
    n_modules = 2;
    modules[1] = NULL;
    refused("module 1 of a bundle cannot be loaded: it must be PTX, a cubin or a code object");
}
END_TEST

START_TEST(memory_that_runs_out_leaves_nothing)
{
    tcc_text c, header, whole = {0};
    tcc_status status = TCC_ERR_MEMORY;
    compile(product, "sm_80", TCC_EMIT_DEFAULT);
    compile(product, "gfx1100", TCC_EMIT_DEFAULT);
    for (long n = 0; status == TCC_ERR_MEMORY; n++) {
        oom_fail_after(n);
        status = tcc_bundle_c(ctx, (const tcc_module *const *)modules, n_modules, &no_cubins, "p", &c, &header);
        oom_fail_after(-1);
        ck_assert_int_lt(n, 1000);
        ck_assert(!status == (c.data && header.data));
    }
    ck_assert_int_eq(status, TCC_OK);
    tcc_text_destroy(header.data);
    ck_assert_int_eq(tcc_bundle_c(ctx, (const tcc_module *const *)modules, n_modules, &no_cubins, "p", &whole, &header),
                     TCC_OK);
    ck_assert_uint_eq(c.size, whole.size);
    ck_assert_mem_eq(c.data, whole.data, c.size + 1);
    tcc_text_destroy(c.data);
    tcc_text_destroy(whole.data);
    tcc_text_destroy(header.data);
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("bundle_make");
    TCase *tcase = tcase_create("bundle_make");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, modules_of_several_targets_are_packed);
    tcase_add_test(tcase, modules_that_do_not_go_together_are_refused);
    tcase_add_test(tcase, memory_that_runs_out_leaves_nothing);
    suite_add_tcase(suite, tcase);
    return suite;
}

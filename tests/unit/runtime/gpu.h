/* gpu: what the tests of every vendor's driver have in common.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TESTS_RUNTIME_GPU_H
#define TCC_TESTS_RUNTIME_GPU_H

#include <tcc/tcc_runtime.h>

#include <check.h>
#include <stdio.h>

#include "tests/unit/oom.h"

/* The last diagnostic's. */
static char message[512], text[1024];

static inline void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    (void)user;
    snprintf(message, sizeof message, "%s", d->message);
    snprintf(text, sizeof text, "%s", d->text);
}

static inline void check_memory(tcc_device *dev)
{
    uint64_t p;
    char got[8] = "";
    ck_assert_int_eq(tcc_device_alloc(dev, 8, &p), TCC_OK);
    ck_assert_uint_eq(p % 256, 0);
    ck_assert_int_eq(tcc_device_fill(dev, p, 'x', 8), TCC_OK);
    ck_assert_int_eq(tcc_device_write(dev, p + 2, "abc", 3), TCC_OK);
    ck_assert_int_eq(tcc_device_read(dev, got, p, 7), TCC_OK);
    ck_assert_str_eq(got, "xxabcxx");
    ck_assert_int_eq(tcc_device_write(dev, p + 8, "", 0), TCC_OK);
    tcc_device_free(dev, p);
    ck_assert_int_eq(tcc_device_alloc(dev, 0, &p), TCC_OK);
    ck_assert_uint_ne(p, 0);
    tcc_device_free(dev, p);
    tcc_device_free(dev, 0);
}

static inline tcc_status give_status(void *user)
{
    return *(tcc_status *)user;
}

/* What fails between the events, or of the calls of these names, is returned. */
static inline void check_timing(tcc_device *dev, const char *const *symbols, size_t n,
                                void (*make_fail)(const char *symbol, int error))
{
    tcc_status inner = TCC_OK;
    float ms = -1;
    ck_assert_int_eq(tcc_device_time(dev, give_status, &inner, &ms), TCC_OK);
    ck_assert(ms >= 0);
    inner = TCC_ERR_NO_VARIANT;
    ck_assert_int_eq(tcc_device_time(dev, give_status, &inner, &ms), TCC_ERR_NO_VARIANT);
    inner = TCC_OK;
    for (size_t i = 0; i < n; i++) {
        make_fail(symbols[i], 700);
        ck_assert_int_eq(tcc_device_time(dev, give_status, &inner, &ms), TCC_ERR_DRIVER);
    }
}

/* Loading ends with TCC_ERR_MEMORY, whichever allocation fails, until enough succeed. */
static inline void check_loading_without_memory(tcc_runtime *rt, const void *image, size_t size)
{
    tcc_status status = TCC_ERR_MEMORY;
    for (long n = 0; status == TCC_ERR_MEMORY; n++) {
        tcc_program *p;
        oom_fail_after(n);
        status = tcc_program_load(rt, image, size, NULL, &p);
        oom_fail_after(-1);
        ck_assert_int_lt(n, 100);
        tcc_program_destroy(p);
    }
    ck_assert_int_eq(status, TCC_OK);
}

#endif

/* What LLVM does not survive: memory that runs out in it, and its fatal errors. A compilation then
 * returns a status and says nothing, and whoever else uses LLVM in the process has it as before.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <tcc/tcc.h>

#include <check.h>
#include <llvm-c/ErrorHandling.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/install/provoke.h"
#include "tests/unit/suite.h"

static const char product[] =
    "kernel product(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
    "{\n"
    "    C[m, n] = sum(k) A[m, k] * B[n, k];\n"
    "}\n";

/* ---- allocations that fail ----------------------------------------------------------------- */

/* The program's own malloc is that of LLVM's library, too, since it is exported. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

static _Thread_local long countdown = -1, counted;

static bool fails(void)
{
    counted++;
    return countdown >= 0 && countdown-- == 0;
}

#pragma GCC visibility push(default)
void *malloc(size_t size)
{
    return fails() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    return fails() ? NULL : __libc_realloc(p, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __libc_memalign(alignment, size);
}
#pragma GCC visibility pop

/* ---- compiling ----------------------------------------------------------------------------- */

static const struct {
    const char *target;
    tcc_emit emit;
} kinds[] = {{"sm_90a", TCC_EMIT_PTX}, {"gfx1100", TCC_EMIT_OBJ}, {"gfx1201", TCC_EMIT_LLVM}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static tcc_status compile(int kind, long fail_after, tcc_module **mod)
{
    const tcc_compile_options o = {.struct_size = sizeof o, .target = kinds[kind].target,
                                   .emit = kinds[kind].emit, .verify_pipeline = TCC_OFF,
                                   .tiles = 1};
    counted = 0;
    countdown = fail_after;
    tcc_status status = tcc_compile_with(NULL, product, strlen(product), &o, mod);
    countdown = -1;
    return status;
}

static char said[4096]; /* on standard error */
static int saved_stderr, said_fd;

static void listen(void)
{
    char name[] = "/tmp/tcc-stderr-XXXXXX";
    said_fd = mkstemp(name);
    ck_assert_int_ge(said_fd, 0);
    unlink(name);
    saved_stderr = dup(2);
    dup2(said_fd, 2);
}

static void stop_listening(void)
{
    fflush(stderr);
    dup2(saved_stderr, 2);
    close(saved_stderr);
    ssize_t n = pread(said_fd, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = '\0';
    close(said_fd);
}

static void check_same(const tcc_module *a, const tcc_module *b)
{
    size_t n, m;
    const void *p = tcc_module_output(a, &n), *q = tcc_module_output(b, &m);
    ck_assert_uint_eq(n, m);
    ck_assert(!memcmp(p, q, n));
}

/* ---- memory -------------------------------------------------------------------------------- */

/* Once LLVM is in use, compilations go on after one that found no memory. */
START_TEST(memory_may_run_out)
{
    tcc_module *whole, *mod;
    ck_assert_int_eq(compile(_i, -1, &whole), TCC_OK);
    tcc_module_destroy(whole);
    ck_assert_int_eq(compile(_i, -1, &whole), TCC_OK);
    long n = counted, failures = 0;
    listen();
    for (long i = 0; i < n; i += 1 + n / 7) {
        tcc_status status = compile(_i, i, &mod);
        ck_assert(status == TCC_OK || status == TCC_ERR_MEMORY);
        ck_assert(status ? !mod : mod != NULL);
        failures += status == TCC_ERR_MEMORY;
        if (mod)
            check_same(mod, whole);
        tcc_module_destroy(mod);
        ck_assert_int_eq(compile(_i, -1, &mod), TCC_OK);
        check_same(mod, whole);
        tcc_module_destroy(mod);
    }
    stop_listening();
    ck_assert_str_eq(said, "");
    /* what a thread of several finds no memory for is tried again, and then there is some */
    ck_assert_int_ge(failures, kinds[_i].emit == TCC_EMIT_PTX ? 1 : 6);
    tcc_module_destroy(whole);
}
END_TEST

/* In the first compilation of all LLVM makes what it makes once. None after it ends in a dead lock,
 * and either all are right or all say that there is no memory. */
enum { FIRSTS = 15 };
START_TEST(memory_may_run_out_at_first)
{
    int kind = _i % N_KINDS;
    tcc_module *mod, *again;
    listen();
    tcc_status status = compile(kind, 4000 + 4337 * _i, &mod);
    ck_assert(status == TCC_OK || status == TCC_ERR_MEMORY);
    tcc_status second = compile(kind, -1, &again);
    ck_assert(second == TCC_OK || (second == TCC_ERR_MEMORY && status == TCC_ERR_MEMORY));
    stop_listening();
    ck_assert_str_eq(said, "");
    tcc_module_destroy(mod);
    tcc_module_destroy(again);
}
END_TEST

/* Where there is not even room to begin, LLVM is left alone, and used when there is room. */
START_TEST(room_is_asked_for_at_first)
{
    struct rlimit old, none;
    tcc_module *mod;
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &old), 0);
    none = old;
    none.rlim_cur = 1;
    listen();
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    tcc_status status = compile(_i, -1, &mod);
    setrlimit(RLIMIT_AS, &old);
    stop_listening();
    ck_assert_int_eq(status, TCC_ERR_MEMORY);
    ck_assert_str_eq(said, "");
    ck_assert_int_eq(compile(_i, -1, &mod), TCC_OK);
    tcc_module_destroy(mod);
}
END_TEST

/* ---- handlers of the host ------------------------------------------------------------------ */

typedef void new_handler(void);
new_handler *set_new_handler(new_handler *h) __asm__("_ZSt15set_new_handlerPFvvE");

static void on_no_memory(void)
{
    _exit(7);
}

START_TEST(the_new_handler_is_restored)
{
    tcc_module *mod;
    ck_assert_ptr_null((void *)set_new_handler(on_no_memory));
    ck_assert_int_eq(compile(_i, -1, &mod), TCC_OK);
    tcc_module_destroy(mod);
    ck_assert(set_new_handler(NULL) == on_no_memory);
    ck_assert_int_eq(compile(_i, -1, &mod), TCC_OK);
    tcc_module_destroy(mod);
    ck_assert_ptr_null((void *)set_new_handler(NULL));
}
END_TEST

static jmp_buf host;
static char host_heard[256];

static void on_fatal_error(const char *reason)
{
    snprintf(host_heard, sizeof host_heard, "%s", reason);
    longjmp(host, 1);
}

/* One that is set after a compilation is left alone, and after it is the host's own. */
START_TEST(a_handler_hears_its_own_errors)
{
    tcc_module *mod;
    ck_assert_int_eq(compile(0, -1, &mod), TCC_OK);
    tcc_module_destroy(mod);
    LLVMInstallFatalErrorHandler(on_fatal_error);
    if (!setjmp(host)) {
        provoke_llvm();
        ck_abort_msg("no fatal error");
    }
    ck_assert_ptr_nonnull(strstr(host_heard, "Cannot select"));
}
END_TEST

/* Without one LLVM says what is wrong and ends the process, as it does without libtcc. */
START_TEST(without_a_handler_llvm_speaks)
{
    tcc_module *mod;
    ck_assert_int_eq(compile(0, -1, &mod), TCC_OK);
    tcc_module_destroy(mod);
    listen();
    pid_t child = fork();
    if (!child) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        provoke_llvm();
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    stop_listening();
    ck_assert(!WIFEXITED(status) || WEXITSTATUS(status));
    ck_assert_ptr_nonnull(strstr(said, "LLVM ERROR: Cannot select"));
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("LLVM's errors");
    TCase *t = tcase_create("LLVM's errors");
    tcase_add_loop_test(t, memory_may_run_out, 0, N_KINDS);
    tcase_add_loop_test(t, memory_may_run_out_at_first, 0, FIRSTS);
    tcase_add_loop_test(t, room_is_asked_for_at_first, 0, N_KINDS);
    tcase_add_loop_test(t, the_new_handler_is_restored, 0, N_KINDS);
    tcase_add_test(t, a_handler_hears_its_own_errors);
    tcase_add_test(t, without_a_handler_llvm_speaks);
    suite_add_tcase(s, t);
    return s;
}

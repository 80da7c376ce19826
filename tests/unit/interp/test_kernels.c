/* Kernels written by hand at the target level (tests/interp), and what is said of them when a line
 * is another: the whole report, for each kind of mistake.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/trial.h"
#include "support/str.h"
#include "tests/unit/suite.h"

enum { SEEDS = 15 }; /* of which a fifth end what is asynchronous at once, and a fifth last */

typedef struct kernel {
    tcc_arena *arena, *scratch;
    char *text;
    tcc_ir *ir;
    const tcc_func *f; /* after the definition of what it computes */
    tcc_diag diag;
    char said[4096]; /* "error: …" and "note: …", a line each, with the source line */
    tcc_trial trial;
} kernel;

/* "error: message" and the text at that place, so that no test depends on line numbers. */
static void listen(const tcc_diagnostic *d, void *user)
{
    kernel *k = user;
    const char *line = k->text;
    for (unsigned i = 1; i < d->line; i++)
        line = strchr(line, '\n') + 1;
    line += strspn(line, " ");
    size_t n = strlen(k->said);
    snprintf(k->said + n, sizeof k->said - n, "%s: %s\n    %.*s\n",
             d->severity == TCC_SEV_ERROR ? "error" : "note", d->message,
             d->line ? (int)strcspn(line, "{\n") : 0, line);
}

static char *read_file(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/../interp/%s", TCC_TEST_DIR, name);
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    char *text = calloc(1, 1 << 16);
    size_t n = fread(text, 1, (1 << 16) - 1, f);
    ck_assert(n > 0 && n < (1 << 16) - 1);
    fclose(f);
    return text;
}

/* Puts `to` for the first `from`, which must be there. */
static char *edit(char *text, const char *from, const char *to)
{
    char *at = strstr(text, from), *result = calloc(1, strlen(text) + strlen(to) + 1);
    ck_assert_msg(at != NULL, "no \"%s\" to replace", from);
    sprintf(result, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    free(text);
    return result;
}

/* Takes the text over; dims must stay. */
static void open_kernel(kernel *k, char *text, const int64_t *dims)
{
    *k = (kernel){.arena = tcc_arena_create(NULL), .scratch = tcc_arena_create(NULL), .text = text};
    k->diag =
        (tcc_diag){.file = "k.tir", .source = text, .size = strlen(text), .fn = listen, .user = k};
    k->ir = tcc_ir_parse(k->arena, text, strlen(text), &k->diag);
    if (!k->ir || !tcc_ir_verify(k->ir, TCC_LEVEL_ALL, &k->diag))
        ck_abort_msg("%s", k->said);
    k->f = k->ir->first->next;
    tcc_status status = tcc_trial_prepare(&k->trial, k->arena, k->scratch, k->ir->first, dims, 0, &k->diag);
    ck_assert_msg(!status, "%s", k->said);
}

static void close_kernel(kernel *k)
{
    tcc_arena_destroy(k->scratch);
    tcc_arena_destroy(k->arena);
    free(k->text);
}

static tcc_status run(kernel *k, uint64_t seed)
{
    *k->said = 0;
    return tcc_trial_run(&k->trial, k->f, seed, &k->diag);
}

static void compare(kernel *k)
{
    tcc_difference d;
    tcc_str text = {0};
    if (tcc_trial_agrees(&k->trial, k->f, &d))
        return;
    tcc_difference_print(&text, &k->trial, &d);
    ck_abort_msg("%s", tcc_str_text(&text));
}

/* ---- as they are ------------------------------------------------------------------------- */

/* The dimensions M, K, N. */
static const struct {
    const char *file;
    int64_t dims[3];
} kernels[] = {
    {"persistent.tir", {64, 16, 16}},   /* one tile, one iteration: the second CTA has none */
    {"persistent.tir", {200, 48, 40}},  /* 4 x 3 tiles of 3 iterations: 6 each */
    {"persistent.tir", {129, 104, 96}}, /* 3 x 6 tiles of 7 iterations: 9 each */
    {"multicast.tir", {100, 24, 72}},   {"multicast.tir", {200, 16, 16}},
    {"registers_a.tir", {100, 24, 72}}, {"registers_a.tir", {64, 16, 8}},
};

START_TEST(every_order_gives_the_result)
{
    kernel k;
    open_kernel(&k, read_file(kernels[_i].file), kernels[_i].dims);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        tcc_status status = run(&k, seed);
        ck_assert_msg(!status, "seed %d: %s", (int)seed, k.said);
        compare(&k);
    }
    close_kernel(&k);
}
END_TEST

/* ---- with a line that is wrong ------------------------------------------------------------ */

#define WGMMA_READS                                                                                \
    "nvvm.wgmma reads shared memory at byte *that a copy from global memory may still be "         \
    "writing\n    %next = nvvm.wgmma %acc, %a, %b, %yes \nnote: nvvm.tma.load of warp 4 "

static const struct {
    const char *file;
    int64_t dims[3];
    const char *from, *to, *says; /* one of these, between '|'; '*' is anything */
} mistakes[] = {
    /* The phase begins anew with each tile. */
    {"persistent.tir",
     {200, 48, 40},
     "scf.yield %so_far",
     "scf.yield %c0",
     "error: deadlock: every thread waits|" WGMMA_READS "of CTA *writes it here"},
    {"persistent.tir",
     {200, 48, 40},
     "scf.yield %p_so_far",
     "scf.yield %c0",
     "error: deadlock: every thread waits|nvvm.tma.load writes shared memory at byte"},
    /* The staged tile is overwritten while it is sent. */
    {"persistent.tir",
     {200, 48, 40},
     "nvvm.bulk.wait_group {pending = 0, read = 1}",
     "",
     "nvvm.stmatrix writes shared memory at byte *that a copy to global memory may still be "
     "reading\n    nvvm.stmatrix %mine, %words\nnote: nvvm.tma.store of warp 0 of CTA "},
    /* The last stage of a tile is never given back. */
    {"persistent.tir",
     {200, 48, 40},
     "nvvm.mbarrier.arrive %last_empty",
     "",
     "error: deadlock: every thread waits"},

    /* The consumers of one CTA do not tell the other that a stage is free. */
    {"multicast.tir",
     {128, 40, 72},
     "tells = arith.cmp %tid, %c2",
     "tells = arith.cmp %tid, %c1",
     "error: deadlock: every thread waits*1 of 10 warps have arrived*wait for parity 1 of the "
     "mbarrier at byte 8192*256 more bytes have arrived than were expected*waits for parity 0 of the "
     "mbarrier at byte 8208: in phase 0, 2 arrivals and 0 bytes are missing"},
    /* A stage is taken for free when one CTA's consumers have said so. */
    {"multicast.tir",
     {128, 40, 72},
     "nvvm.mbarrier.init %empty0, %c2",
     "nvvm.mbarrier.init %empty0, %c1",
     "gets more than 1 arrivals in a phase|writes shared memory at byte *that a product may "
     "still be reading*note: nvvm.wgmma of warp |writes shared memory at byte *that a copy from "
     "global memory may still be writing*note: nvvm.tma.load*of warp 4 of CTA *writes it "
     "here|error: deadlock"},
    {"multicast.tir",
     {128, 40, 72},
     "%p_full, %c3",
     "%p_full, %c1",
     "error: deadlock: every thread waits*in phase 0, 0 arrivals and 512 bytes are missing, with no copy in flight"},
    {"multicast.tir",
     {128, 40, 72},
     "%p_full, %c3",
     "%p_full, %c4",
     "nvvm.tma.load.multicast: ctas is 0x4 in a cluster of 2"},
    {"multicast.tir",
     {128, 40, 72},
     "nvvm.cluster.arrive\n  nvvm.cluster.wait\n  %consumes",
     "%all = arith.const {value = 160} : i32\n  nvvm.barrier %c0, %all\n  %consumes",
     "nvvm.tma.load.multicast: there is no mbarrier at byte|may still be initialising the "
     "mbarrier at byte *note: nvvm.mbarrier.init of warp 0 of CTA *initialises it here"},
    {"multicast.tir",
     {128, 40, 72},
     "  nvvm.cluster.arrive\n  nvvm.cluster.wait\n  return",
     "  return",
     "nvvm.mbarrier.arrive.cluster reaches into the shared memory of CTA *, which has "
     "ended|nvvm.mbarrier.arrive.cluster of warp 0 of CTA *may still reach into the shared "
     "memory of CTA *when that ends\n    nvvm.mbarrier.arrive.cluster %empty"},
    {"multicast.tir",
     {128, 40, 72},
     "    nvvm.fence.mbarrier_init\n",
     "",
     "the mbarrier at byte 8192 is used by the copy engine with no fence.mbarrier_init since it "
     "was initialised*note: nvvm.mbarrier.init of warp 0 of CTA *initialises it here\n    "
     "nvvm.mbarrier.init %full0, %c1"},
    {"multicast.tir",
     {128, 40, 72},
     "nvvm.mapa %empty0, %whom",
     "arith.add %empty0, %c0",
     "nvvm.mbarrier.arrive.cluster: 9232 is not an address of the cluster as given by nvvm.mapa"},
    {"multicast.tir",
     {128, 40, 72},
     "nvvm.mapa %empty0, %whom",
     "nvvm.mapa %empty0, %tid",
     "of CTA *nvvm.mapa: there is no CTA *in a cluster of 2"},

    {"registers_a.tir",
     {64, 40, 16},
     "pending = 0} : vec<f32[8]>, vec<i32[4]>",
     "pending = 1} : vec<f32[8]>, vec<i32[4]>",
     "writes shared memory at byte *that an MMA may still be reading*note: nvvm.wgmma.a of "
     "warp "},
    {"registers_a.tir",
     {64, 40, 16},
     "nvvm.wgmma.commit_group\n",
     "nvvm.wgmma.commit_group\n nvvm.stmatrix %mine, %a\n",
     "nvvm.stmatrix reads registers that an MMA may still take its A from\n    nvvm.stmatrix "
     "%mine, %a\nnote: nvvm.wgmma.a of warp *, group 1: nothing has waited for it\n    %next = "
     "nvvm.wgmma.a "},
    {"registers_a.tir",
     {64, 40, 16},
     "%sum, %kept = nvvm.wgmma.wait_group %next, %a {pending = 0} : vec<f32[8]>, vec<i32[4]>",
     "%sum = nvvm.wgmma.wait_group %next {pending = 0} : vec<f32[8]>",
     "nvvm.wgmma.wait_group ends an MMA and does not pass its registers of A through*note: "
     "the MMA\n    %next = nvvm.wgmma.a "},
    {"registers_a.tir",
     {64, 40, 16},
     "    nvvm.wgmma.fence\n",
     "",
     "no wgmma.fence since the registers of A were written"},
    {"registers_a.tir",
     {64, 40, 16},
     "    nvvm.barrier %c1, %c128\n",
     "",
     "nvvm.tma.load writes shared memory at byte *may still be reading*note: "
     "nvvm.ldmatrix of warp *reads it here\n    %a = nvvm.ldmatrix %a_rows"},
    {"registers_a.tir",
     {64, 40, 16},
     "    nvvm.mbarrier.wait %full, %parity\n",
     "",
     "nvvm.ldmatrix reads shared memory at byte *that was never written|nvvm.ldmatrix reads "
     "shared memory at byte *that a copy from global memory may still be writing*note: "
     "nvvm.tma.load of warp 0 writes it here|nvvm.tma.load writes shared memory at byte *may "
     "still be reading"},
    {"registers_a.tir",
     {64, 40, 16},
     "    nvvm.bulk.wait_group {pending = 0}\n  }\n",
     "  }\n  scf.if %first {\n    nvvm.mbarrier.inval %full\n    nvvm.mbarrier.arrive %full\n  }\n",
     "nvvm.mbarrier.arrive: there is no mbarrier at byte 6144"},
    {"registers_a.tir",
     {64, 40, 16},
     "  %product = scf.for",
     "  scf.if %first {\n    nvvm.mbarrier.inval %full\n  }\n  %product = scf.for",
     "there is no mbarrier at byte 6144|is invalidated while warp * may still be using it"},
};

/* Whether the parts of a pattern, between '*', are all there in this order. */
static bool matches(const char *said, const char *pattern, size_t n)
{
    char part[256];
    for (const char *p = pattern; p < pattern + n;) {
        size_t len = strcspn(p, "*|");
        snprintf(part, sizeof part, "%.*s", (int)len, p);
        said = strstr(said, part);
        if (!said)
            return false;
        said += len;
        p += len + 1;
    }
    return true;
}

static bool says_one_of(const char *said, const char *alternatives)
{
    for (const char *a = alternatives; *a;) {
        size_t n = strcspn(a, "|");
        if (matches(said, a, n))
            return true;
        a += n + (a[n] == '|');
    }
    return false;
}

START_TEST(a_wrong_line_is_reported)
{
    kernel k;
    open_kernel(&k, edit(read_file(mistakes[_i].file), mistakes[_i].from, mistakes[_i].to),
                mistakes[_i].dims);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        tcc_status status = run(&k, seed);
        ck_assert_msg(status == TCC_ERR_INTERNAL && says_one_of(k.said, mistakes[_i].says),
                      "%s -> %s, seed %d: %d\n%swants\n%s", mistakes[_i].from, mistakes[_i].to,
                      (int)seed, status, k.said, mistakes[_i].says);
    }
    close_kernel(&k);
}
END_TEST

#define LEN(a) ((int)(sizeof(a) / sizeof *(a)))

Suite *SUITE(void)
{
    Suite *s = suite_create("kernels");
    TCase *t = tcase_create("kernels");
    tcase_add_loop_test(t, every_order_gives_the_result, 0, LEN(kernels));
    tcase_add_loop_test(t, a_wrong_line_is_reported, 0, LEN(mistakes));
    suite_add_tcase(s, t);
    return s;
}

/* What lowers is what is written: every attribute, operand and op of tile-level and async-level IR is changed
 * in turn, and what the passes from there on make of it computes what the interpreter says that the changed IR means, or is
 * refused: by the verifier, by the lowering or by the checker. Where the changed IR means nothing, as the
 * interpreter reports, anything may come of it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "checker/checker.h"
#include "driver/trial.h"
#include "frontend/frontend.h"
#include "ir/number.h"
#include "ir/rules.h"
#include "ir/signature.h"
#include "passes/passes.h"
#include "support/intern.h"
#include "support/map.h"
#include "tests/unit/suite.h"

enum { MAX_OPS = 512, MAX_STEPS = 1 << 18, MAX_TARGET_STEPS = 1 << 23, MAX_TEXT = 400 };

#ifdef TCC_SANITIZED /* slow: some of them */
enum { EACH = 53 };
#else
enum { EACH = 1 };
#endif

/* A gated product, and its row sums. */
static const char gated[] =
    "module {target = sm_90a}\n"
    "func @f(%A: tensor<f16[M, K]>, %W: tensor<f16[K, N]>, %V: tensor<f16[K, N]>, %C: tensor<f32[M, N]>)"
    " {roles = [in, in, in, out], dims = [M, K, N]} {\n"
    "  tile.grid {axes = [m, n], extents = [$M, $N], tile = [64, 16], group = 2} {\n"
    "  ^(%m: i32, %n: i32):\n"
    "    %lo = arith.const {value = 0} : i32\n"
    "    %hi = arith.const {value = 3} : i32\n"
    "    %one = arith.const {value = 1} : i32\n"
    "    %depth = arith.const {value = 16} : i32\n"
    "    %start = arith.const {value = 0.0} : tile<f32[64, 16]>\n"
    "    %gate, %up = scf.for %lo, %hi, %one, %start, %start {at_least_once = 1, stages = 2, warps = [4, 1]}"
    " : tile<f32[64, 16]>, tile<f32[64, 16]> {\n"
    "    ^(%i: i32, %g: tile<f32[64, 16]>, %u: tile<f32[64, 16]>):\n"
    "      %k = arith.mul %i, %depth : i32\n"
    "      %a = tile.load %A, %m, %k {dims = [0, 1], copy = tma, contiguous = 1, swizzle = 32}"
    " : tile<f16[64, 16]>\n"
    "      %w = tile.load %W, %k, %n {dims = [0, 1], copy = tma, contiguous = 1, swizzle = 32}"
    " : tile<f16[16, 16]>\n"
    "      %v = tile.load %V, %k, %n {dims = [0, 1], copy = tma, contiguous = 1, swizzle = 32}"
    " : tile<f16[16, 16]>\n"
    "      %gn = tile.mma %a, %w, %g {instr = [64, 16, 16]} : tile<f32[64, 16]>\n"
    "      %further = arith.cmp %i, %lo {pred = gt} : i1\n"
    "      %un = tile.mma %a, %v, %u, %further {instr = [64, 16, 16]} : tile<f32[64, 16]>\n"
    "      scf.yield %gn, %un\n"
    "    }\n"
    "    %open = math.relu %gate : tile<f32[64, 16]>\n"
    "    %r = arith.mul %open, %up : tile<f32[64, 16]>\n"
    "    %sum = tile.reduce %r {dim = 1, kind = sum} : tile<f32[64, 1]>\n"
    "    %sums = tile.broadcast %sum {dims = [0, 1]} : tile<f32[64, 16]>\n"
    "    %c = arith.sub %sums, %r : tile<f32[64, 16]>\n"
    "    tile.store %c, %C, %m, %n {dims = [0, 1], copy = tma}\n"
    "  }\n"
    "  return\n"
    "}\n";

/* The same for waves, which share rows. */
static const char gated_by_waves[] =
    "module {target = gfx1100}\n"
    "func @f(%A: tensor<f16[M, K]>, %W: tensor<f16[K, N]>, %V: tensor<f16[K, N]>, %C: tensor<f32[M, N]>) {roles = [in, in, in, out], dims = [M, K, N], assumes = [[align, A, 16], [pitch, A, 16], [align, W, 16], [pitch, W, 16], [align, V, 16], [pitch, V, 16]]} {\n"
    "  tile.grid {axes = [m, n], extents = [$M, $N], tile = [32, 32]} {\n"
    "  ^(%m: i32, %n: i32):\n"
    "    %lo = arith.const {value = 0} : i32\n"
    "    %hi = arith.const {value = 3} : i32\n"
    "    %one = arith.const {value = 1} : i32\n"
    "    %depth = arith.const {value = 16} : i32\n"
    "    %start = arith.const {value = 0.0} : tile<f32[32, 32]>\n"
    "    %gate, %up = scf.for %lo, %hi, %one, %start, %start {at_least_once = 1, stages = 2, warps = [2, 0], waves = [1, 2], lanes = 32} : tile<f32[32, 32]>, tile<f32[32, 32]> {\n"
    "    ^(%i: i32, %g: tile<f32[32, 32]>, %u: tile<f32[32, 32]>):\n"
    "      %k = arith.mul %i, %depth : i32\n"
    "      %a = tile.load %A, %m, %k {dims = [0, 1], copy = buffer, contiguous = 1, swizzle = 0, panel = 16, pad = 32} : tile<f16[32, 16]>\n"
    "      %w = tile.load %W, %k, %n {dims = [0, 1], copy = buffer, contiguous = 0, swizzle = 32, panel = 8, pad = 0} : tile<f16[16, 32]>\n"
    "      %v = tile.load %V, %k, %n {dims = [0, 1], copy = buffer, contiguous = 0, swizzle = 32, panel = 8, pad = 0} : tile<f16[16, 32]>\n"
    "      %gn = tile.mma %a, %w, %g {instr = [16, 16, 16]} : tile<f32[32, 32]>\n"
    "      %un = tile.mma %a, %v, %u {instr = [16, 16, 16]} : tile<f32[32, 32]>\n"
    "      scf.yield %gn, %un\n"
    "    }\n"
    "    %s = math.relu %gate : tile<f32[32, 32]>\n"
    "    %r = arith.mul %s, %up : tile<f32[32, 32]>\n"
    "    %sum = tile.reduce %r {dim = 1, kind = sum} : tile<f32[32, 1]>\n"
    "    %sums = tile.broadcast %sum {dims = [0, 1]} : tile<f32[32, 32]>\n"
    "    %c = arith.sub %sums, %r : tile<f32[32, 32]>\n"
    "    tile.store %c, %C, %m, %n {dims = [0, 1], copy = interleaved}\n"
    "  }\n"
    "  return\n"
    "}\n";

/* A sum in a loop over columns that stores. */
static const char nested[] =
    "module {target = gfx1200}\n"
    "func @f(%A: tensor<f16[M, K]>, %B: tensor<f16[K, N]>, %C: tensor<f32[M, N]>) {roles = [in, in, out], dims = [M, K, N], assumes = [[align, A, 16], [pitch, A, 16], [align, B, 16], [pitch, B, 16]]} {\n"
    "  tile.grid {axes = [m], extents = [$M], tile = [16]} {\n"
    "  ^(%m: i32):\n"
    "    %lo = arith.const {value = 0} : i32\n"
    "    %hi = arith.const {value = 2} : i32\n"
    "    %one = arith.const {value = 1} : i32\n"
    "    %depth = arith.const {value = 16} : i32\n"
    "    %width = arith.const {value = 32} : i32\n"
    "    %n = tensor.dim {name = N} : i32\n"
    "    %start = arith.const {value = 0.0} : tile<f32[16, 32]>\n"
    "    scf.for %lo, %n, %width {at_least_once = 1, stages = 2, warps = [2, 0], waves = [1, 2], lanes = 32} {\n"
    "    ^(%col: i32):\n"
    "      %last = arith.const {value = 32} : i32\n"
    "      %x = tile.load %A, %m, %last {dims = [0, 1], copy = buffer, contiguous = 1, swizzle = 0, panel = 16, pad = 32} : tile<f16[16, 16]>\n"
    "      %y = tile.load %B, %last, %col {dims = [0, 1], copy = buffer, contiguous = 0, swizzle = 32, panel = 8, pad = 0} : tile<f16[16, 32]>\n"
    "      %first = tile.mma %x, %y, %start {instr = [16, 16, 16]} : tile<f32[16, 32]>\n"
    "      %sum = scf.for %lo, %hi, %one, %first {at_least_once = 1, stages = 2, warps = [2, 0], waves = [1, 2], lanes = 32} : tile<f32[16, 32]> {\n"
    "      ^(%i: i32, %acc: tile<f32[16, 32]>):\n"
    "        %k = arith.mul %i, %depth : i32\n"
    "        %a = tile.load %A, %m, %k {dims = [0, 1], copy = buffer, contiguous = 1, swizzle = 0, panel = 16, pad = 32} : tile<f16[16, 16]>\n"
    "        %b = tile.load %B, %k, %col {dims = [0, 1], copy = buffer, contiguous = 0, swizzle = 32, panel = 8, pad = 0} : tile<f16[16, 32]>\n"
    "        %r = tile.mma %a, %b, %acc {instr = [16, 16, 16]} : tile<f32[16, 32]>\n"
    "        scf.yield %r\n"
    "      }\n"
    "      tile.store %sum, %C, %m, %col {dims = [0, 1], copy = interleaved}\n"
    "    }\n"
    "  }\n"
    "  return\n"
    "}\n";

/* Without a product. */
static const char terms[] =
    "kernel f(P: f16[S, M, N], bias: f32[N], inout C: f16[M, N]) -> (D: f32[N, M])\n"
    "{\n    acc[m, n] = sum(s) P[s, m, n];\n    C[m, n] = relu(acc[m, n] + bias[n] * C[m, n]);\n"
    "    D[n, m] = acc[m, n] - bias[n];\n}\n"
    "schedule f for sm_90a { tile m 4, n 64; }\nschedule f for gfx1100 { tile m 4, n 64; }\n";

static const struct {
    const char *target, *source; /* of the language, or IR of the tile level */
    int64_t dims[3];             /* M, K, N or as the kernel has them */
} subjects[] = {
    {"sm_90a",
     "kernel f(A: f16[M, K], B: f16[K, N], bias: f32[N]) -> (C: f16[M, N])\n"
     "{\n    acc[m, n] = sum(k) A[m, k] * B[k, n];\n    C[m, n] = relu(acc[m, n] + bias[n]);\n}\n"
     "schedule f for sm_90a { tile m 64, n 32, k 16; stages 2; producer warp; epilogue tma; "
     "cache A evict_last, C evict_first; }\n",
     {72, 48, 40}},
    {"sm_90a",
     "kernel f(A: f16[K, M], B: f16[N, K], X: f32[M, N]) -> (C: f32[M, N])\n"
     "{\n    C[m, n] = sum(k) A[k, m] * B[n, k] + X[m, n];\n}\n"
     "schedule f for sm_90a { tile m 128, n 16, k 32; stages 3; warpgroups 2; producer warpgroup; "
     "epilogue interleaved; }\n",
     {64, 136, 24}},
    {"sm_90a",
     "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
     "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; producer none; epilogue tma; }\n",
     {64, 48, 24}},
    {"sm_90a",
     "kernel f(A: f16[M, K], B: f16[K, 7]) -> (C: f16[M, 7])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n",
     {70, 130, 0}},
    {"sm_90a", gated, {72, 48, 24}},
    {"sm_90a",
     "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
     "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; producer warp; epilogue tma; persistent; }\n",
     {72, 24, 32}},
    {"sm_90a",
     "kernel f(A: f16[M, K], B: f16[K, N], s: f16[N]) -> (C: f32[M, N])\n"
     "{\n    C[m, n] = sum(k) relu(A[m, k]) * f16(B[k, n] * s[n]);\n}\n"
     "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; producer warp; epilogue interleaved; }\n",
     {72, 24, 40}},
    {"sm_90a",
     "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
     "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; producer warp; epilogue tma; persistent dynamic; }\n",
     {136, 24, 32}},
    {"sm_90a",
     "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
     "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; epilogue tma; consumers pingpong; persistent dynamic; }\n",
     {200, 24, 32}},
    {"sm_90a",
     "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
     "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; producer warp; epilogue tma; cluster m 2; persistent dynamic; }"
     "\n",
     {264, 24, 32}},
    {"sm_90a",
     "kernel f(A: f16[M, K], B: f16[K, N], s: f16[N]) -> (C: f32[M, N])\n"
     "{\n    C[m, n] = sum(k) relu(A[m, k]) * f16(B[k, n] * s[n]);\n}\n"
     "schedule f for sm_90a { tile m 64, n 16, k 16; stages 2; producer warp; epilogue interleaved; cluster m 2; }\n",
     {136, 24, 40}},
    {"sm_80",
     "kernel f(A: f16[K, M], B: f16[K, N], bias: f32[N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[k, m] * B[k, n] + bias[n];\n}\n"
     "schedule f for sm_80 { tile m 32, n 16, k 16; stages 2; warps 1; }\n",
     {40, 24, 56}},
    {"sm_80",
     "kernel f(A: f16[M, K], B: f16[N, K]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[n, k];\n}\n"
     "schedule f for sm_80 { tile m 32, n 32, k 32; stages 3; warps 2; }\n",
     {40, 48, 104}},
    {"sm_75",
     "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
     "schedule f for sm_75 { tile m 32, n 16, k 16; stages 2; warps 2; }\n",
     {40, 24, 56}},
    {"sm_70",
     "kernel f(A: f16[K, M], B: f16[K, N], bias: f32[N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[k, m] * B[k, n] + bias[n];\n}\n"
     "schedule f for sm_70 { tile m 32, n 16, k 32; stages 2; warps 2; }\n",
     {40, 24, 56}},
    {"sm_70",
     "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
     "schedule f for sm_70 { tile m 32, n 8, k 32; stages 2; warps 1; }\n",
     {40, 24, 56}},
    {"sm_50",
     "kernel f(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n"
     "schedule f for sm_50 { tile m 16, n 32, k 8; stages 2; warps 1; }\n",
     {20, 40, 24}},
    {"gfx1100",
     "kernel f(A: f16[M, K], B: f16[K, N], bias: f32[N]) -> (C: f16[M, N])\n"
     "{\n    acc[m, n] = sum(k) A[m, k] * B[k, n];\n    C[m, n] = relu(acc[m, n] + bias[n]);\n}\n"
     "schedule f for gfx1100 { tile m 32, n 32, k 32; waves 2; }\n",
     {24, 72, 24}},
    {"gfx1100",
     "kernel f(A: f16[M, 20], B: f16[N, 20], X: f32[M, N]) -> (C: f32[M, N])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[n, k] + X[m, n];\n}\n"
     "schedule f for gfx1100 { tile m 16, n 32, k 16; waves 1; }\n",
     {20, 35, 0}},
    {"gfx1200",
     "kernel f(A: bf16[M, K], B: bf16[K, 7]) -> (C: f32[M, 7])\n"
     "{\n    C[m, n] = sum(k) A[m, k] * B[k, n];\n}\n",
     {20, 40, 0}},
    {"gfx1100", gated_by_waves, {40, 48, 24}},
    {"gfx1200", nested, {24, 40, 40}},
    {"sm_90a", terms, {3, 11, 72}},
    {"gfx1100", terms, {3, 11, 72}},
};

/* The passes that are held to it begin with these. */
static const char *const levels[] = {"distribute-grid", "lower-to-"};

enum { N_SUBJECTS = sizeof subjects / sizeof *subjects, N_LEVELS = 2 };

/* What may become of a change. */
enum { AS_MEANT, REFUSED, MEANINGLESS, BROKEN, N_FATES };
static const int fates[] = {AS_MEANT, REFUSED, MEANINGLESS, BROKEN};

typedef struct law {
    tcc_arena *arena, *own, *scratch; /* of all; of one change; of one run */
    tcc_diag diag;
    tcc_trial trial;
    const char *text; /* IR to change */
    const char *from; /* the first pass */
    tcc_ir *ir;       /* a copy to change */
    tcc_op *ops[MAX_OPS];
    unsigned n_ops;
    char said[MAX_TEXT], change[MAX_TEXT];
    double *meant[8]; /* what the changed IR computes */
    tcc_intern *keys;
    tcc_map known; /* fates of IR, and of code with what is meant */
    unsigned n[N_FATES], n_lowered;
} law;

static void listen(const tcc_diagnostic *d, void *user)
{
    law *w = user;
    if (!*w->said && d->severity == TCC_SEV_ERROR)
        snprintf(w->said, sizeof w->said, "%s", d->message);
}

static void hear(law *w)
{
    *w->said = 0;
    w->diag.n_errors = 0;
    w->diag.status = TCC_OK;
}

static void fresh_copy(law *w)
{
    if (w->own)
        tcc_arena_destroy(w->own);
    w->own = tcc_arena_create(NULL);
    hear(w);
    w->ir = tcc_ir_parse(w->own, w->text, strlen(w->text), &w->diag);
    ck_assert_msg(w->ir != NULL, "%s", w->said);
    tcc_block *body = w->ir->first->body;
    w->n_ops = 0;
    for (tcc_op *op = body->first; op && w->n_ops < MAX_OPS; op = tcc_walk_next(op, body))
        w->ops[w->n_ops++] = op;
}

/* ---- changes ------------------------------------------------------------------------------- */

static tcc_attr copy_list(tcc_ir *ir, tcc_attr a)
{
    tcc_attr *items = TCC_NEW_ARRAY(ir->arena, tcc_attr, a.list.n);
    for (size_t i = 0; i < a.list.n; i++)
        items[i] = a.list.items[i].kind == TCC_ATTR_LIST ? copy_list(ir, a.list.items[i])
                                                         : a.list.items[i];
    a.list.items = items;
    return a;
}

/* The way-th number of a list, counted through the lists in it. */
static int64_t *number_in(tcc_attr *a, unsigned *way)
{
    for (size_t i = 0; i < a->list.n; i++) {
        tcc_attr *item = (tcc_attr *)&a->list.items[i];
        if (item->kind == TCC_ATTR_LIST) {
            int64_t *found = number_in(item, way);
            if (found)
                return found;
        } else if (item->kind == TCC_ATTR_INT && !(*way)--) {
            return &item->i;
        }
    }
    return NULL;
}

/* The way-th word of those that an attribute may be. */
static const char *word_at(tcc_ir *ir, const char *words, unsigned way)
{
    while (words && way-- && (words = strchr(words, ' ')))
        words++;
    if (!words)
        return NULL;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(words, " "), words);
    return tcc_ir_name(ir, word);
}

/* Changes an attribute in one way; false when there are no more. */
static bool change_attr(law *w, tcc_op *op, tcc_named_attr *a, unsigned way)
{
    static const int64_t added[] = {1, -1, 8, -8};
    if (way == 0) {
        tcc_attr_remove(&op->attrs, a->name);
        return true;
    }
    way--;
    const tcc_attr_rule *rule = tcc_attr_rule_find(op->code, a->name);
    switch (a->value.kind) {
    case TCC_ATTR_INT:
        if (way < 4)
            a->value.i += added[way];
        else if (way < 6)
            a->value.i = way == 4 ? a->value.i * 2 : a->value.i / 2;
        return way < 6;
    case TCC_ATTR_LIST: {
        a->value = copy_list(w->ir, a->value);
        unsigned which = way / 4;
        int64_t *number = number_in(&a->value, &which);
        if (number)
            *number += added[way % 4];
        return number;
    }
    case TCC_ATTR_STR: {
        const char *word = word_at(w->ir, rule ? rule->words : NULL, way);
        if (word)
            a->value.s = word;
        return word;
    }
    case TCC_ATTR_FLOAT:
        a->value.f += 1;
        return way == 0;
    default: return false;
    }
}

/* Another value of v's type that may stand for it, the n-th before the op. */
static tcc_value *other_value(law *w, const tcc_op *op, const tcc_value *v, unsigned n)
{
    for (unsigned i = 0; w->ops[i] != op; i++)
        for (unsigned r = 0; r < w->ops[i]->n_results; r++) {
            tcc_value *other = &w->ops[i]->results[r];
            if (other != v && other->type == v->type && !n--)
                return other;
        }
    return NULL;
}

static bool is_number(const tcc_value *v)
{
    return v->type->kind == TCC_KIND_scalar && v->type->elem == TCC_i32;
}

/* Changes an operand in one way; false when there are no more. */
static bool change_operand(law *w, tcc_op *op, unsigned i, unsigned way)
{
    static const int64_t added[] = {1, -1, 8, 64};
    tcc_value *v = op->operands[i];
    tcc_builder b = tcc_builder_before(op);
    if (!is_number(v)) {
        tcc_value *other = way < 3 ? other_value(w, op, v, way) : NULL;
        if (other)
            tcc_op_set_operand(op, i, other);
        return other;
    }
    if (way < 4)
        tcc_op_set_operand(
            op, i, TCC_EMIT(&b, arith_add, v->type, v, tcc_build_i32(&b, added[way])));
    else if (way == 4)
        tcc_op_set_operand(op, i, tcc_build_i32(&b, 0));
    return way < 5;
}

/* Leaves the op out, does it twice, or exchanges it with the next; false when there are no more. */
static bool change_op(law *w, tcc_op *op, unsigned way)
{
    tcc_builder b = tcc_builder_after(op);
    bool ends = tcc_op_info_get(op->code)->flags & TCC_TERMINATOR;
    if (way == 0) {
        for (unsigned r = 0; r < op->n_results; r++) {
            tcc_value *other = other_value(w, op, &op->results[r], 0);
            for (unsigned i = 0; i < op->n_operands && !other; i++)
                if (op->operands[i]->type == op->results[r].type)
                    other = op->operands[i];
            if (!other)
                return true; /* as it was */
            tcc_replace_uses(&op->results[r], other);
        }
        if (!ends)
            tcc_op_erase(op);
    } else if (way == 1 && !ends) {
        tcc_op_clone(&b, op, tcc_value_map_create(w->own));
    } else if (way == 2 && op->next && !(tcc_op_info_get(op->next->code)->flags & TCC_TERMINATOR)) {
        b = tcc_builder_after(op->next);
        tcc_op_move(&b, op);
    }
    return way < 3;
}

enum { WAYS_OF_OP = 3, WAYS_OF_ATTR = 12, WAYS_OF_OPERAND = 5 };

static unsigned count_changes(const tcc_op *op)
{
    return WAYS_OF_OP + WAYS_OF_ATTR * (unsigned)op->attrs.len + WAYS_OF_OPERAND * op->n_operands;
}

/* Makes the change of this number at an op. */
static void change(law *w, tcc_op *op, unsigned number)
{
    for (unsigned way = 0; way < WAYS_OF_OP; way++)
        if (!number--) {
            change_op(w, op, way);
            return;
        }
    for (size_t a = 0; a < op->attrs.len; a++)
        for (unsigned way = 0; way < WAYS_OF_ATTR; way++)
            if (!number--) {
                snprintf(w->change, sizeof w->change, "'%s', way %u", op->attrs.data[a].name, way);
                change_attr(w, op, &op->attrs.data[a], way);
                return;
            }
    for (unsigned i = 0; i < op->n_operands; i++)
        for (unsigned way = 0; way < WAYS_OF_OPERAND; way++)
            if (!number--) {
                snprintf(w->change, sizeof w->change, "operand %u, way %u", i, way);
                change_operand(w, op, i, way);
                return;
            }
}

/* ---- judging ------------------------------------------------------------------------------- */

static tcc_status run(law *w, const tcc_ir *ir, uint64_t seed, uint64_t max_steps)
{
    const tcc_interp_options o = {.dims = w->trial.dims,
                                  .signature = w->trial.kernel,
                                  .machine = true,
                                  .seed = seed,
                                  .max_steps = max_steps};
    hear(w);
    return tcc_trial_run_with(&w->trial, ir->first, &o, &w->diag);
}

/* What the changed IR means, if anything, in one order. */
static bool find_meaning(law *w)
{
    if (run(w, w->ir, 0, MAX_STEPS))
        return false;
    for (size_t n = 0; n < w->trial.n_args; n++)
        memcpy(w->meant[n], w->trial.args[n].got, (size_t)w->trial.args[n].count * sizeof(double));
    return true;
}

/* Whether the changed IR, whose text this is, means the same in other orders. */
static bool means_one_thing(law *w, const char *text)
{
    const tcc_ir *ir = tcc_ir_parse(w->own, text, strlen(text), &w->diag);
    for (uint64_t seed = 1; seed < 3; seed++) {
        if (run(w, ir, seed, MAX_STEPS))
            return false;
        for (size_t n = 0; n < w->trial.n_args; n++)
            if (memcmp(w->meant[n], w->trial.args[n].got,
                       (size_t)w->trial.args[n].count * sizeof(double)) != 0)
                return false;
    }
    return true;
}

/* Whether the passes make target-level IR of it. */
static bool lowers(law *w)
{
    const char *pipeline = tcc_pipeline(tcc_target_of(w->ir));
    hear(w);
    if (tcc_run_passes(w->ir, strstr(pipeline, w->from), NULL, &w->diag))
        return false;
    if (!tcc_ir_verify(w->ir, TCC_LEVEL_ALL, &w->diag))
        ck_abort_msg("%s: left invalid IR: %s", w->change, w->said);
    /* There was nothing to lower, as the pass saw it, when it is of another level. */
    return tcc_ir_verify(w->ir, TCC_LEVEL_TARGET, &w->diag);
}

static bool is_proved(law *w)
{
    tcc_arena *scratch = tcc_arena_create(NULL);
    tcc_status status = tcc_protocol_check(w->ir->first, scratch, &w->diag);
    tcc_arena_destroy(scratch);
    return !status;
}

/* Where what was lowered does not compute what was meant; NULL when it does. One code runs in one order, the next in
 * another; the machine reports races in any. */
static const char *difference(law *w)
{
    tcc_status status = run(w, w->ir, w->n_lowered++ % 2, MAX_TARGET_STEPS);
    if (status == TCC_ERR_NO_VARIANT)
        return NULL; /* not launched */
    /* Products of zeros with numbers: the same, unless those are not finite. */
    if (status && strstr(w->said, "a zero outside a tensor"))
        return NULL;
    if (status)
        return w->said;
    for (size_t n = 0; n < w->trial.n_args; n++) {
        const tcc_trial_arg *a = &w->trial.args[n];
        for (int64_t i = 0; i < a->count; i++) {
            double meant = w->meant[n][i], got = a->got[i];
            bool anything = isnan(meant) && !tcc_is_poison(meant);
            if (anything || meant == got || (tcc_is_poison(meant) && tcc_is_poison(got)))
                continue;
            snprintf(w->said, sizeof w->said, "element %lld of '%s' is %g, not %g",
                     (long long)i, a->param->name, got, meant);
            return w->said;
        }
    }
    return NULL;
}

/* The IR as it is now, with what is meant if that counts: one pointer for the same. */
static const char *key_of(law *w, bool with_meaning)
{
    tcc_str text = {0};
    tcc_ir_print(&text, w->ir, 0);
    for (size_t n = 0; n < w->trial.n_args && with_meaning; n++)
        tcc_str_append(&text, (const char *)w->meant[n],
                       (size_t)w->trial.args[n].count * sizeof(double));
    const char *key = tcc_intern_get(w->keys, tcc_str_text(&text), text.len);
    tcc_str_free(&text);
    return key;
}

typedef int find_fate(law *w, const char *key);

/* Many changes give the same IR, and more give the same code. Each is looked at once. */
static int known_fate(law *w, bool with_meaning, find_fate *find)
{
    const char *key = key_of(w, with_meaning);
    const int *known = tcc_map_get(&w->known, key);
    if (!known) {
        known = &fates[find(w, key)];
        *tcc_map_at(&w->known, key) = (void *)known;
    }
    return *known;
}

/* Code that computes what is meant may be refused as well, so only what does not needs the checker, which takes
 * longer than the interpreter. */
static int fate_of_lowered(law *w, const char *key)
{
    (void)key;
    if (!difference(w))
        return AS_MEANT;
    char wrong[MAX_TEXT];
    memcpy(wrong, w->said, sizeof wrong);
    /* Tiles that overlap are stored twice with the same numbers; the checker takes other coordinates for other tiles. */
    bool twice = strstr(wrong, "that a copy to global memory may still be writing");
    int fate = twice ? MEANINGLESS : is_proved(w) ? BROKEN : REFUSED;
    memcpy(w->said, wrong, sizeof wrong);
    return fate;
}

static int fate_of_change(law *w, const char *text)
{
    hear(w);
    if (!tcc_ir_verify(w->ir, TCC_LEVEL_ALL, &w->diag))
        return REFUSED;
    if (!find_meaning(w))
        return MEANINGLESS;
    int fate = lowers(w) ? known_fate(w, true, fate_of_lowered) : REFUSED;
    if (fate != BROKEN)
        return fate;
    char wrong[MAX_TEXT];
    memcpy(wrong, w->said, sizeof wrong);
    if (!means_one_thing(w, text))
        return MEANINGLESS;
    memcpy(w->said, wrong, sizeof wrong);
    return BROKEN;
}

/* What becomes of the change that was made. */
static int judge(law *w)
{
    *w->said = 0; /* like a change before it */
    int fate = known_fate(w, false, fate_of_change);
    w->n[fate]++;
    return fate;
}

static void open_law(law *w, int subject, const char *from)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    *w = (law){.arena = arena,
               .scratch = tcc_arena_create(NULL),
               .from = from,
               .keys = tcc_intern_create(arena),
               .known = TCC_MAP(arena)};
    const char *source = subjects[subject].source;
    w->diag = (tcc_diag){.file = "law.tile", .fn = listen, .user = w};
    const char *target = subjects[subject].target;
    bool is_ir = !strncmp(source, "module", 6);
    tcc_ir *ir = is_ir ? tcc_ir_parse(w->arena, source, strlen(source), &w->diag)
                       : tcc_frontend(w->arena, source, strlen(source), target, NULL, 0, &w->diag);
    ck_assert_msg(ir != NULL, "%s", w->said);
    tcc_func *kernel = tcc_func_clone(ir->first, "kernel");
    tcc_func_remove(kernel);
    const char *pipeline = tcc_pipeline(tcc_target_of(ir));
    pipeline = is_ir ? strstr(pipeline, levels[0]) : pipeline;
    char passes[1024] = "";
    if (strstr(pipeline, from) > pipeline)
        snprintf(passes, sizeof passes, "%.*s", (int)(strstr(pipeline, from) - pipeline) - 1,
                 pipeline);
    ck_assert_msg(!tcc_run_passes(ir, passes, NULL, &w->diag), "%s", w->said);
    while (tcc_func_step_count(ir->first) > 1 || tcc_func_is_step(ir->first)) /* one function alone */
        tcc_func_remove(ir->first);
    while (ir->first->next)
        tcc_func_remove(ir->first->next);
    tcc_str text = {0};
    tcc_ir_print(&text, ir, 0);
    w->text = tcc_arena_strdup(w->arena, tcc_str_text(&text));
    tcc_str_free(&text);
    ck_assert_msg(!tcc_trial_prepare(&w->trial, w->arena, w->scratch, kernel, subjects[subject].dims, 0, &w->diag),
                  "%s", w->said);
    for (size_t n = 0; n < w->trial.n_args; n++)
        w->meant[n] = TCC_NEW_ARRAY(w->arena, double, (size_t)w->trial.args[n].count);
}

START_TEST(what_lowers_is_what_is_written)
{
    law w;
    unsigned tried = 0, n_changes[MAX_OPS];
    if (getenv("LAW_ONLY") && atoi(getenv("LAW_ONLY")) != _i)
        return;
    open_law(&w, _i % N_SUBJECTS, levels[_i / N_SUBJECTS]);
    fresh_copy(&w);
    unsigned n_ops = w.n_ops;
    for (unsigned o = 0; o < n_ops; o++)
        n_changes[o] = count_changes(w.ops[o]);
    ck_assert_msg(judge(&w) == AS_MEANT && is_proved(&w), "%s", w.said);
    for (unsigned o = 0; o < n_ops; o++)
        for (unsigned number = 0; number < n_changes[o]; number++) {
            if (tried++ % EACH)
                continue;
            fresh_copy(&w);
            tcc_str text = {0};
            tcc_op_print(&text, w.ops[o], 0);
            snprintf(w.change, sizeof w.change, "op, way %u", number);
            change(&w, w.ops[o], number);
            if (judge(&w) == BROKEN && w.n[BROKEN] <= 40)
                fprintf(stderr, "%.100s: %s: %s\n", tcc_str_text(&text), w.change, w.said);
            tcc_str_free(&text);
        }
    if (getenv("LAW_COUNT"))
        fprintf(stderr, "%d: %u as meant, %u refused, %u meaningless, %u broken\n", _i, w.n[AS_MEANT],
                w.n[REFUSED], w.n[MEANINGLESS], w.n[BROKEN]);
    ck_assert_uint_eq(w.n[BROKEN], 0);
    ck_assert_uint_gt(w.n[AS_MEANT], 250 / EACH); /* it is not all refused */
    tcc_arena_destroy(w.own);
    tcc_arena_destroy(w.scratch);
    tcc_arena_destroy(w.arena);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("lowering_law");
    TCase *of_level[N_LEVELS] = {tcase_create("tile"), tcase_create("async")};
    for (int l = 0; l < N_LEVELS; l++) {
        tcase_set_timeout(of_level[l], 600);
        tcase_add_loop_test(of_level[l], what_lowers_is_what_is_written, l * N_SUBJECTS,
                            (l + 1) * N_SUBJECTS);
        suite_add_tcase(s, of_level[l]);
    }
    return s;
}

/* fuzz_interp: what the verifier takes, the interpreter runs and the protocol checker proves, or
 * refuses with an error, at every level and in any order of events; neither crashes nor computes
 * what C leaves undefined.
 *
 * An input is a module. Its attributes `extents`, `order`, `seed` and `machine` say how it is run.
 * A function with an attribute `params` is a kernel, and the module's first function its signature;
 * others are run as they are.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "checker/checker.h"
#include "interp/interp.h"
#include "interp/timeline.h"
#include "ir/grid.h"
#include "ir/number.h"
#include "ir/signature.h"
#include "tests/fuzz/mutate_ir.h"

enum {
    MAX_DIMS = 8,
    MAX_ARGS = 16,
    MAX_ARG_ELEMS = 1 << 14, /* of all tensors */
    MAX_WORK_OF_OP = 1 << 17,
    WORK = 1 << 23, /* of a run */
    MAX_CTAS = 16,
    MAX_STEPS = 30000,
    MAX_BYTES = 256 << 20,
    MUTATIONS = 4,
    TRIES = 10,
    N_ORDERS = TCC_ORDER_TIMED + 1
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

static void receive(const tcc_diagnostic *d, void *user)
{
    (void)user;
    if (!d->message || !d->text)
        abort();
}

static tcc_ir *read_valid(tcc_arena *arena, const char *text, size_t size, tcc_diag *diag)
{
    *diag = (tcc_diag){.file = "fuzz.tir", .source = text, .size = size, .fn = receive};
    tcc_ir *ir = tcc_ir_parse(arena, text, size, diag);
    return ir && tcc_ir_verify(ir, TCC_LEVEL_ALL, diag) ? ir : NULL;
}

/* ---- what takes too long to be worth it ------------------------------------------------ */

static int64_t count_elems(const tcc_type *t)
{
    bool counts = t->kind == TCC_KIND_tile || t->kind == TCC_KIND_smem || t->kind == TCC_KIND_vec;
    return counts ? tcc_type_count(t) : 1;
}

/* About how many elements an op computes. */
static int64_t work_of(const tcc_op *op)
{
    int64_t work = 1;
    for (unsigned i = 0; i < op->n_results; i++)
        work += count_elems(op->results[i].type);
    if (op->code != TCC_OP_tile_mma && op->code != TCC_OP_async_mma)
        return work;
    const tcc_type *a = op->operands[op->code == TCC_OP_async_mma ? 2 : 0]->type;
    return work * a->dims[a->rank - 1].size;
}

/* How many ops of a function may run: of larger ones fewer, of too large ones none. */
static uint64_t steps_of(const tcc_func *f)
{
    int64_t work = 1;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        work = work_of(op) > work ? work_of(op) : work;
    return work > MAX_WORK_OF_OP ? 0
                                 : (uint64_t)(work < WORK / MAX_STEPS ? MAX_STEPS : WORK / work);
}

/* -1: not known. */
static int64_t extent_of(const char *name, const int64_t *dims, tcc_attr names)
{
    for (size_t i = 0; i < names.list.n; i++)
        if (!strcmp(names.list.items[i].s, name))
            return dims[i];
    return -1;
}

static bool has_few_ctas(const tcc_func *f, const int64_t *dims, tcc_attr names)
{
    return tcc_grid_ctas(tcc_attr_list(&f->attrs, "grid"), names, dims, MAX_CTAS + 1) <= MAX_CTAS;
}

/* ---- running --------------------------------------------------------------------------- */

static double value_of(tcc_scalar elem, uint64_t random)
{
    static const double odd[] = {0, -0.0, 1e300, -1e300, 0x1p-30, 65519, 1e9, -129};
    double v = random % 37 == 0 ? odd[random / 37 % 8] : (double)(random % 9) - 4;
    tcc_cell cell = tcc_scalar_classify(elem) == TCC_CLASS_FLOAT
                        ? (tcc_cell){.f = tcc_round_float(v, elem)}
                        : (tcc_cell){.i = tcc_int_wrap(elem, tcc_truncate(v))};
    return tcc_scalar_classify(elem) == TCC_CLASS_FLOAT ? cell.f : (double)cell.i;
}

/* Elements of a parameter, -1 when they are too many or not known. */
static int64_t count_of(const tcc_type *t, const int64_t *dims, tcc_attr names)
{
    int64_t n = 1;
    for (unsigned d = 0; d < t->rank; d++) {
        int64_t extent =
            t->dims[d].name ? extent_of(t->dims[d].name, dims, names) : t->dims[d].size;
        if (extent < 0 || extent > MAX_ARG_ELEMS || (n *= extent) > MAX_ARG_ELEMS)
            return -1;
    }
    return n;
}

static bool are_names(tcc_attr list)
{
    for (size_t i = 0; i < list.list.n; i++)
        if (list.list.items[i].kind != TCC_ATTR_STR)
            return false;
    return true;
}

/* Small extents, which the module may choose. */
static void choose_extents(const tcc_ir *ir, int64_t *dims)
{
    tcc_attr extents = tcc_attr_list(&ir->attrs, "fuzz.extents");
    for (size_t i = 0; i < MAX_DIMS; i++) {
        bool given = i < extents.list.n && extents.list.items[i].kind == TCC_ATTR_INT;
        dims[i] = given ? extents.list.items[i].i : (int64_t)(5 + 4 * i);
    }
}

static bool make_args(const tcc_func *signature, const int64_t *dims, double **args)
{
    tcc_attr names = tcc_attr_list(&signature->attrs, "dims");
    uint64_t random = 1;
    if (!are_names(names) || names.list.n > MAX_DIMS || signature->body->n_args > MAX_ARGS)
        return false;
    for (size_t a = 0; a < signature->body->n_args; a++) {
        const tcc_type *t = signature->body->args[a]->type;
        int64_t n = count_of(t, dims, names);
        if (n < 0)
            return false;
        args[a] = malloc((size_t)(n ? n : 1) * sizeof(double)); /* so that its ends are guarded */
        for (int64_t i = 0; i < n; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            args[a][i] = value_of(t->elem, random >> 33);
        }
    }
    return true;
}

static void print(const tcc_timeline *t, void *user)
{
    tcc_str text = {0};
    (void)user;
    tcc_timeline_print(&text, t, NULL);
    tcc_timeline_summarize(&text, t);
    tcc_str_free(&text);
}

static void run(const tcc_ir *ir, const tcc_func *f, tcc_diag *diag)
{
    bool kernel = tcc_func_is_entry(f);
    const tcc_func *signature = kernel ? ir->first : f;
    int64_t dims[MAX_DIMS];
    double *args[MAX_ARGS] = {0};
    jmp_buf oom;
    tcc_arena *scratch = tcc_arena_create(&oom);
    choose_extents(ir, dims);
    uint64_t steps = steps_of(f);
    if (steps && make_args(signature, dims, args) &&
        has_few_ctas(f, dims, tcc_attr_list(&signature->attrs, "dims"))) {
        tcc_interp_options o = {.dims = dims,
                                .signature = kernel ? signature : NULL,
                                .machine = tcc_attr_int(&ir->attrs, "fuzz.machine", 0),
                                .order = (uint64_t)tcc_attr_int(&ir->attrs, "fuzz.order", 0) % N_ORDERS,
                                .timeline = {.fn = print},
                                .seed = (uint64_t)tcc_attr_int(&ir->attrs, "fuzz.seed", 0),
                                .max_steps = steps,
                                .max_bytes = MAX_BYTES};
        diag->n_errors = 0;
        if (!setjmp(oom)) {
            bool ok = tcc_interp_run(f, &o, args, scratch, diag) == TCC_OK;
            if (ok != (diag->n_errors == 0))
                abort();
        }
    }
    tcc_arena_destroy(scratch);
    for (int a = 0; a < MAX_ARGS; a++)
        free(args[a]);
}

/* The protocol checker says why it does not prove a kernel, too. */
static void prove(const tcc_func *f, tcc_diag *diag)
{
    jmp_buf oom;
    tcc_arena *scratch = tcc_arena_create(&oom);
    diag->n_errors = 0;
    if (!setjmp(oom)) {
        bool ok = tcc_protocol_check(f, scratch, diag) == TCC_OK;
        if (ok != (diag->n_errors == 0))
            abort();
    }
    tcc_arena_destroy(scratch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag;
    tcc_ir *ir = read_valid(arena, (const char *)data, size, &diag);
    for (const tcc_func *f = ir ? ir->first : NULL; f; f = f->next) {
        run(ir, f, &diag);
        if (tcc_func_is_entry(f))
            prove(f, &diag);
    }
    tcc_arena_destroy(arena);
    return ir ? 0 : -1; /* what is not valid does not enter the corpus */
}

/* ---- mutating -------------------------------------------------------------------------- */

/* The module with a change, if it is valid and fits; its size, or 0. */
static size_t mutate_once(char *text, size_t size, size_t max_size, uint64_t *random)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag;
    tcc_ir *ir = read_valid(arena, text, size, &diag);
    tcc_str changed = {0};
    size_t result = 0;
    if (ir) {
        mutate_ir(ir, random);
        if (tcc_ir_verify(ir, TCC_LEVEL_ALL, &diag))
            tcc_ir_print(&changed, ir, 0);
    }
    if (changed.len && changed.len <= max_size) {
        memcpy(text, changed.data, changed.len);
        result = changed.len;
    }
    tcc_str_free(&changed);
    tcc_arena_destroy(arena);
    return result;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    uint64_t random = seed;
    size_t mutations = 1 + seed % MUTATIONS, done = 0;
    for (size_t tries = 0; done < mutations && tries < mutations * TRIES; tries++) {
        size_t n = mutate_once((char *)data, size, max_size, &random);
        done += n > 0;
        size = n ? n : size;
    }
    return done ? size : LLVMFuzzerMutate(data, size, max_size);
}

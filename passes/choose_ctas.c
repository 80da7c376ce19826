/* choose-ctas: decide how many CTAs a multiprocessor is to have room for.
 *
 * Before:  func @f(…) {row = n, block = 512, min_ctas = 1, …}
 * After:   func @f(…) {row = n, block = 512, min_ctas = 2, …}
 *
 * CTAs that hold rows load them, reduce them and store them, one after the other: memory is busy while others are at
 * another point. An assembler takes more registers than it needs unless it is told how many CTAs are to have room. Where
 * these would be very few, and rows are narrow, it is trusted to load late what is needed late. Parts of terms have few
 * of these each.
 *
 * Requires the target level, of NVIDIA. Preserves the body.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/cut.h"
#include "ir/machine.h"
#include "passes/live.h"
#include "passes/passes.h"
#include "passes/schedule.h"

enum {
    THREADS = 1024, /* of a multiprocessor, with which memory is busy */
    FEW = 16,       /* registers: of more, assemblers were seen to need twice those that are live, and then spilled.
                     * Words have twice to eight times the addresses. */
    WORD_BYTES = 4,
    TOO_FEW = 2,     /* CTAs, which leave memory idle */
    MORE = 4,        /* in their place */
    SPARE = 16,      /* registers with which assemblers load late rather than spill, of 16-bit elements in vectors */
    ALLOTTED = 8,        /* registers, of which a thread gets a multiple */
    SPARE_OF_ENDS = 20, /* the same of rows that end anywhere */
    LEAST_SPARE = 7, /* beyond those that are live, with which they neither spill nor load late */
    OF_BYTES = 16    /* registers besides a third more than are live, of kernels that take bytes apart */
};

/* Whether rows end anywhere: what is then stored one by one needs registers, too. */
static bool end_anywhere(const tcc_func *f)
{
    return tcc_attr_find(&f->attrs, "groups");
}

/* The narrowest loads of rows, in bytes, but where rows end anywhere of these; 0: single elements. These need registers for
 * their addresses, too, and are slower than memory however many CTAs there are. */
static int64_t narrowest_load(const tcc_func *f)
{
    const tcc_attr assumes = tcc_attr_list(&f->attrs, "assumes");
    int64_t least = 0;
    for (size_t i = 0; i < assumes.list.n; i++) {
        const tcc_attr *a = assumes.list.items[i].list.items;
        bool is = tcc_attr_is_record(assumes.list.items[i], "align", "si");
        if (is && (!least || (end_anywhere(f) ? a[2].i > least : a[2].i < least)))
            least = a[2].i;
    }
    return least;
}

/* Whether loops sweep over rows: nothing is loaded late there, for memory would be idle in each tile. */
static bool sweeps(tcc_func *f)
{
    tcc_op *op = f->body->first;
    while (op && op->code != TCC_OP_scf_for)
        op = tcc_walk_next(op, f->body);
    return op;
}

/* Whether rows are of elements of 16 bits or less, whose vectors need few addresses. */
static bool has_narrow_rows(tcc_func *f)
{
    enum { NARROW_BITS = 16 };
    bool narrow = true;
    for (tcc_op *op = f->body->first; op && narrow; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_nvvm_ld_global || op->code == TCC_OP_nvvm_st_global) {
            const tcc_type *moved = tcc_op_moves(op);
            narrow = tcc_type_count(moved) == 1 || tcc_scalar_bits(moved->elem) <= NARROW_BITS;
        }
    return narrow;
}

/* Whether words of bytes, or of halves of them, are loaded. Their elements get registers of their own. */
static bool loads_bytes(const tcc_func *f)
{
    enum { HALF_BITS = 16 };
    for (const tcc_op *op = f->body->first; op; op = tcc_walk_next((tcc_op *)op, f->body))
        if (op->code == TCC_OP_nvvm_ld_global && tcc_scalar_bits(op->results[0].type->elem) < HALF_BITS)
            return true;
    return false;
}

/* Whether rows are read that are combined of words. */
static bool loads_words(const tcc_func *f)
{
    const tcc_attr assumes = tcc_attr_list(&f->attrs, "assumes");
    bool any = false;
    for (size_t i = 0; i < assumes.list.n; i++)
        any |= tcc_attr_is_record(assumes.list.items[i], "align", "si") &&
               assumes.list.items[i].list.items[2].i <= WORD_BYTES;
    return any;
}

/* Whether lanes exchange more than two reductions need: what else is live then, assemblers do not load late. */
static bool reduces_much(const tcc_func *f)
{
    enum { OF_TWO = 10 };
    int64_t n = 0;
    for (const tcc_op *op = f->body->first; op; op = tcc_walk_next((tcc_op *)op, f->body))
        n += op->code == TCC_OP_nvvm_shfl;
    return n > OF_TWO;
}

/* How many registers a thread should have. */
static int64_t registers_needed(const tcc_func *f, tcc_arena *scratch, int64_t loaded)
{
    tcc_live live = tcc_live_registers(f, scratch);
    int64_t need = live.registers * 2, taken_apart = live.limit + live.late;
    need -= loaded > WORD_BYTES && !end_anywhere(f) ? FEW : 0;
    need += end_anywhere(f) && reduces_much(f) ? SPARE_OF_ENDS : 0;
    int64_t of_bytes = loads_bytes(f) ? taken_apart * 4 / 3 + OF_BYTES : 0;
    need = need > of_bytes ? need : of_bytes;
    return end_anywhere(f) ? (need + ALLOTTED - 1) / ALLOTTED * ALLOTTED : need;
}

/* How many it must have where CTAs would be too few otherwise. Weights of rows that end anywhere are loaded late. */
static int64_t registers_at_least(tcc_func *f, tcc_arena *scratch)
{
    bool few_spare = sweeps(f) ? !end_anywhere(f) : end_anywhere(f) && loads_words(f);
    tcc_live live = sweeps(f) ? tcc_live_registers(f, scratch) : tcc_live_late_registers(f, scratch);
    int64_t spare = few_spare ? LEAST_SPARE : end_anywhere(f) ? SPARE_OF_ENDS : SPARE;
    return live.registers + spare + (end_anywhere(f) && (loads_bytes(f) || reduces_much(f)) ? SPARE_OF_ENDS : 0);
}

/* The most CTAs, of so many threads and with so many registers, up to some number. */
static int64_t count_ctas(const tcc_func *f, int64_t block, int64_t registers, int64_t most)
{
    enum { PARTS = 4 }; /* of a multiprocessor, which have registers of their own */
    int64_t step = PARTS * TCC_WARP_LANES;
    while (most > 1 && tcc_launched_registers(tcc_target_of(f->ir), (block * most + step - 1) / step * step) < registers)
        most--;
    return most;
}

/* Of parts of terms two, if they have shared memory: one loads while the other begins or ends. */
static int64_t ctas_of_part(const tcc_func *f, tcc_arena *scratch)
{
    enum { RESERVED_BYTES = 1024 /* of each CTA */, FOUND = 4 /* registers of which assemblers need not as many */ };
    int64_t bytes = tcc_attr_int(&f->attrs, "smem_bytes", 0) + RESERVED_BYTES;
    int64_t most = (tcc_target_of(f->ir)->smem_bytes + RESERVED_BYTES) / bytes;
    most = most < TOO_FEW ? most : TOO_FEW;
    int64_t registers = tcc_live_late_registers(f, scratch).registers - FOUND;
    return count_ctas(f, tcc_attr_int(&f->attrs, "block", 1), registers, most);
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    if (tcc_cut_is(f, TCC_CUT_part) && tcc_attr_find(&f->attrs, "min_ctas")) {
        tcc_attr_set_int(ctx->ir, &f->attrs, "min_ctas", ctas_of_part(f, ctx->scratch));
        *changed = true;
        return TCC_OK;
    }
    int64_t block = tcc_attr_int(&f->attrs, "block", 0), ctas = block ? THREADS / block : 0;
    int64_t loaded = narrowest_load(f);
    if (!tcc_attr_find(&f->attrs, "row") || !tcc_attr_find(&f->attrs, "min_ctas") || ctas < 2 || !loaded)
        return TCC_OK;
    int64_t most = ctas, need = registers_needed(f, ctx->scratch, loaded);
    ctas = count_ctas(f, block, need, most);
    bool too_few = end_anywhere(f) ? ctas * block <= THREADS / 2 : ctas <= TOO_FEW;
    if (too_few && ctas < most && loaded > WORD_BYTES && has_narrow_rows(f)) {
        need = registers_at_least(f, ctx->scratch);
        int64_t more = count_ctas(f, block, need, most < MORE || end_anywhere(f) ? most : MORE);
        ctas = more > ctas ? more : ctas;
    }
    tcc_attr_set_int(ctx->ir, &f->attrs, "min_ctas", ctas);
    *changed = true;
    return TCC_OK;
}

const tcc_pass tcc_pass_choose_ctas = {
    "choose-ctas", "decide how many CTAs a multiprocessor is to have room for", .run = run};

/* pressure: see pressure.h.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/pressure.h"

#include <setjmp.h>
#include <string.h>

#include "ir/signature.h"
#include "passes/families.h"
#include "passes/live.h"
#include "support/map.h"

enum {
    /* Beside the accumulators, at least: descriptors, loop counters, and what ptxas keeps away from
     * accumulators. */
    LEAST = 32,
    /* Of these, those live in the epilogue; and what separates one chunk from the next. */
    OTHERS = 28,
    SEPARATE = 4,
    /* The registers that ptxas saves by recomputing before it spills; not if a thread has several
     * results of more than this many blocks. */
    SPARE = 16,
    SPARE_BLOCKS = 2,
    /* Of a warpgroup; those of them that have other columns of A; registers in which one of its elements after
     * the other is computed. */
    THREADS = 128,
    COLUMN_OWNERS = 4,
    OWN_LANES = 16, /* that have different rows or columns of what goes back, of a warpgroup */
    COMPUTING = 8,
    /* What a loop over tiles keeps during the multiplication: the tile's number, iterations so far, and the
     * values from which addresses of its results are computed. */
    PERSISTENT = 12,
    /* The registers that ptxas lacks for all chunks together if two roles have such epilogues. */
    TURNS = 28,
    /* Numbers that a function computed by polynomials has beside its result. */
    BY_POLYNOMIALS = 2,
};

/* A value of the epilogue: a chunk holds it from op `first` on to op `last`, whose result takes its
 * place. */
typedef struct value {
    size_t first, last;
    bool rows, cols; /* varies along m, n */
} value;

typedef struct access {
    const tcc_type *tensor;
    int row, col; /* dimensions along which m and n run, or -1 */
    bool store;
} access;

struct tcc_epilogue {
    bool polynomials;          /* a function is computed by them */
    bool functions;            /* a function is computed */
    /* Bits that the loop holds of operands which are computed: for each element of A's tile, each column of it; for
     * each element of tiles that go back to shared memory, by axis, and each of their own index. */
    int64_t operand_bits, column_bits, put_bits[2], own_bits[2];
    size_t n_ops, n_values, n_accesses;
    value *values;
    access *accesses;
    tcc_arena *arena;
};

/* ---- what a kernel computes of its sum ---------------------------------------------------- */

/* Whether registers hold it after the sum: fields along k are its operands, predicates have
 * registers of their own. */
static bool is_of_epilogue(const tcc_value *v, const tcc_space *c)
{
    return v->type->kind == TCC_KIND_field && v->type->elem != TCC_i1 &&
           !tcc_space_sums_along(c, v->type);
}

static size_t number_of(const tcc_map *numbers, const tcc_op *op)
{
    return (size_t)(uintptr_t)tcc_map_get(numbers, op);
}

static size_t last_use(const tcc_value *v, const tcc_map *numbers)
{
    size_t last = 0;
    for (const tcc_use *use = v->uses; use; use = use->next) {
        size_t at = number_of(numbers, use->op);
        last = at > last ? at : last;
    }
    return last;
}

static void add_access(tcc_epilogue *e, const tcc_op *op, const tcc_value *tensor,
                       const tcc_space *c)
{
    e->accesses[e->n_accesses++] = (access){.tensor = tensor->type,
                                            .row = tcc_map_position(op, c->axes[0]),
                                            .col = tcc_map_position(op, c->axes[1]),
                                            .store = op->code == TCC_OP_tensor_write};
}

/* Loads come first in a chunk, and the accumulators are there. Where an axis has no name the sum
 * runs along it all the same. */
static void add_value(tcc_epilogue *e, const tcc_op *op, const tcc_space *c,
                      const tcc_map *numbers)
{
    const tcc_value *v = &op->results[0];
    bool is_load = op->code == TCC_OP_tensor_read, is_sum = op->code == TCC_OP_tensor_reduce;
    e->values[e->n_values++] = (value){
        .first = is_load || is_sum ? 0 : number_of(numbers, op),
        .last = last_use(v, numbers),
        .rows = tcc_field_has_index(v->type, c->axes[0]) || (!is_load && !*c->axes[0]),
        .cols = tcc_field_has_index(v->type, c->axes[1]) || (!is_load && !*c->axes[1]),
    };
    e->functions |= tcc_op_info_get(op->code)->flags & TCC_SPECIAL;
    e->polynomials |= op->code == TCC_OP_math_erf || op->code == TCC_OP_math_gelu;
}

/* Computed operands are live together with what is read from stages, unless they are put back there; other tensors'
 * elements are the same in all rows, or take the places of their addresses where each has its own. */
static void add_operand(tcc_epilogue *e, const tcc_sum_operand *o, bool put)
{
    enum { ADDRESS_BITS = 64 };
    tcc_map ops = TCC_MAP(e->arena);
    int64_t *operand_bits = put ? &e->put_bits[o->axis] : &e->operand_bits;
    tcc_find_elementwise(o->value, e->arena, &ops);
    *operand_bits += put ? 0 : tcc_scalar_bits(o->value->type->elem);
    for (const tcc_op *op = o->value->def->block->first; op; op = op->next) {
        if (op->code != TCC_OP_tensor_read || !tcc_map_get(&ops, op))
            continue;
        const tcc_type *field = op->results[0].type;
        bool addresses = tcc_sum_operand_loads_singly(o, op) && tcc_read_is_first_there(op);
        int64_t bits = addresses ? ADDRESS_BITS : tcc_scalar_bits(field->elem);
        if (field->rank == o->value->type->rank)
            *operand_bits += bits;
        else if (tcc_field_has_index(field, o->k))
            e->column_bits += bits < 32 ? 32 : bits;
        else if (put)
            e->own_bits[o->axis] += bits < 32 ? 32 : bits;
    }
}

tcc_epilogue *tcc_epilogue_of(const tcc_func *f, const tcc_space *c, tcc_arena *arena)
{
    tcc_epilogue *e = TCC_NEW(arena, tcc_epilogue);
    tcc_map numbers = TCC_MAP(arena);
    e->arena = arena;
    for (const tcc_op *op = f->body->first; op; op = op->next)
        *tcc_map_at(&numbers, op) = (void *)(uintptr_t)++e->n_ops;
    e->values = TCC_NEW_ARRAY(arena, value, e->n_ops);
    e->accesses = TCC_NEW_ARRAY(arena, access, e->n_ops);
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        if (op->code == TCC_OP_tensor_write)
            add_access(e, op, TCC_VIEW(tensor_write, op)->tensor, c);
        if (op->n_results != 1 || !is_of_epilogue(&op->results[0], c))
            continue;
        if (op->code == TCC_OP_tensor_read)
            add_access(e, op, TCC_VIEW(tensor_read, op)->tensor, c);
        add_value(e, op, c, &numbers);
    }
    for (size_t i = 0; i < c->n_operands; i++)
        if (tcc_sum_operand_is_computed(&c->operands[i]))
            add_operand(e, &c->operands[i], tcc_sum_operand_is_put(c, &c->operands[i]));
    return e;
}

/* ---- registers ------------------------------------------------------------------------------- */

/* For a thread, in a chunk of a block of 64 rows. */
static int64_t elements(bool rows, bool cols, int64_t chunk)
{
    return (rows ? 2 : 1) * (cols ? chunk / 4 : 1);
}

/* The most that the values of a chunk take at a time. */
static int64_t peak(const tcc_epilogue *e, int64_t chunk)
{
    int64_t *change = TCC_NEW_ARRAY(e->arena, int64_t, e->n_ops + 1), now = 0, most = 0;
    for (size_t i = 0; i < e->n_values; i++) {
        const value *v = &e->values[i];
        if (v->last <= v->first)
            continue;
        change[v->first] += elements(v->rows, v->cols, chunk);
        change[v->last] -= elements(v->rows, v->cols, chunk);
    }
    for (size_t i = 0; i <= e->n_ops; i++) {
        now += change[i];
        most = now > most ? now : most;
    }
    return most;
}

static bool is_contiguous(const access *a)
{
    return a->col >= 0 && a->col == (int)a->tensor->rank - 1 && tcc_type_has_rows(a->tensor);
}

/* Whether a store goes through shared memory, as choose-layout decides while there is room. */
static bool is_staged(const access *a, const tcc_schedule *s, bool aligned)
{
    return a->store && tcc_storing_of(s, a->tensor, a->row, a->col, s->n, aligned) != TCC_STORING_INTERLEAVED;
}

/* Whether a former access has the same offsets from its tensor's address. */
static bool shares_offsets(const tcc_epilogue *e, size_t i)
{
    const access *a = &e->accesses[i];
    for (size_t j = 0; j < i; j++) {
        const access *b = &e->accesses[j];
        bool same = a->tensor->rank == b->tensor->rank && tcc_type_same_places(a->tensor, b->tensor) &&
                    a->row == b->row && a->col == b->col &&
                    tcc_scalar_bits(a->tensor->elem) == tcc_scalar_bits(b->tensor->elem);
        for (unsigned d = 1; same && d < a->tensor->rank; d++)
            same = a->tensor->dims[d].name == b->tensor->dims[d].name &&
                   a->tensor->dims[d].size == b->tensor->dims[d].size;
        if (same)
            return true;
    }
    return false;
}

/* The registers for the accesses of a chunk, in all blocks of a thread. */
typedef struct cost {
    int64_t held;      /* from the first chunk to the last */
    int64_t loads, results;
    int64_t tiles;     /* loads of what no rows or columns share */
    int64_t ahead;     /* the same where loads are far ahead: ptxas unpacks bytes at once */
    int64_t addresses; /* of elements that are not adjacent */
    bool barrier;      /* nothing is computed ahead of a stmatrix: ptx.def */
} cost;

static cost cost_of(const tcc_epilogue *e, const tcc_schedule *s, int64_t chunk, bool aligned)
{
    int64_t blocks = tcc_schedule_rows(s) / 64;
    cost c = {0};
    for (size_t i = 0; i < e->n_accesses; i++) {
        const access *a = &e->accesses[i];
        bool rows = a->row >= 0, cols = a->col >= 0;
        unsigned bits = tcc_scalar_bits(a->tensor->elem);
        int64_t per_block = elements(rows, cols, chunk), n = per_block * (rows ? blocks : 1);
        c.results += a->store ? n : 0;
        if (is_staged(a, s, aligned)) { /* an address in shared memory for each row */
            bool matrices = chunk == 16 && bits == 16;
            c.barrier |= matrices;
            c.held += blocks * (matrices ? 1 : 2) + 1;
            continue;
        }
        if (!shares_offsets(e, i)) /* 64 bits for each row */
            c.held += 2 * (rows ? 2 * blocks : 1);
        if (cols && !is_contiguous(a) && c.addresses < n)
            c.addresses = n;
        if (a->store)
            continue;
        int64_t apart = n;
        n = aligned && is_contiguous(a) && bits <= 16 ? n / 2 : n;
        c.ahead += !rows || !cols ? 0 : bits < 16 ? apart : n;
        if (cols)
            *(rows ? &c.tiles : &c.loads) += n;
        else /* for all columns */
            c.held += n;
    }
    return c;
}

/* Columns of chunks of which tiles fit into so many registers, if they are at least as many as run ahead anyway. */
static int64_t columns_ahead(const cost *c, int64_t n_chunks, int64_t registers)
{
    int64_t fit = c->ahead && registers > 0 ? registers / c->ahead : 0;
    return fit >= n_chunks ? n_chunks : fit >= TCC_LOOKAHEAD ? fit : 0;
}

tcc_pressure tcc_pressure_of(const tcc_epilogue *e, const tcc_schedule *s, const tcc_target *t,
                             bool aligned)
{
    int64_t producer, accumulators = tcc_schedule_accumulators(s);
    int64_t chunk = tcc_schedule_instr_n(s, t) % 16 ? 8 : 16, n_chunks = s->n / chunk;
    int64_t blocks = tcc_schedule_rows(s) / 64;
    int64_t results = elements(true, true, chunk), own = (1 + s->more_sums) * results;
    int64_t step = peak(e, chunk) - own; /* beside its accumulators */
    step = step > 0 ? step : 0;
    cost c = cost_of(e, s, chunk, aligned);
    /* Results take the place of accumulators. Where there are more than these, they may be computed
     * ahead of their stores, and then of all chunks. */
    int64_t more = c.results - blocks * own;
    bool computes = !c.barrier && more > 0;
    int64_t again = s->persistent ? PERSISTENT : 0, turns = tcc_schedule_turns(s);
    int64_t one = accumulators + c.held + step + OTHERS + SEPARATE + again;
    int64_t spare = more > 0 && blocks > SPARE_BLOCKS ? 0 : SPARE;
    int64_t scarce = one - spare + (e->polynomials ? BY_POLYNOMIALS * results : 0);
    int64_t of_thread = tcc_schedule_rows(s) * s->k / THREADS; /* elements of A */
    int64_t put = (s->m * e->put_bits[0] + s->n * e->put_bits[1]) * s->k / (s->warpgroups * THREADS);
    put += (s->m * e->own_bits[0] + s->n * e->own_bits[1]) / (s->warpgroups * OWN_LANES);
    int64_t operands = (of_thread * e->operand_bits + s->k / COLUMN_OWNERS * e->column_bits + put + 31) / 32;
    int64_t loop = accumulators + LEAST + operands + (operands ? COMPUTING : 0);
    int64_t limit = tcc_schedule_registers(s, t, &producer), free = limit - one;
    int64_t no_tiles = one - SEPARATE + TCC_LOOKAHEAD * c.loads + (computes ? n_chunks * more : 0) +
                       2 * n_chunks * c.addresses + (turns > 1 ? TURNS : 0);
    /* Functions' values do not wait for tiles: ptxas computes those of all chunks, and their rows' loads, before. */
    int64_t early = e->functions && !c.barrier ? n_chunks * (c.results + c.loads) : 0;
    int64_t another = (c.loads + c.tiles + c.addresses) / blocks + step; /* block of a chunk */
    /* For several results ptxas keeps more than is counted here. */
    bool groups = more <= 0 && another && free > 0;
    return (tcc_pressure){
        .least = loop,
        .separate = one > loop ? one : loop,
        .scarce = scarce > loop ? scarce : loop,
        .together = no_tiles + TCC_LOOKAHEAD * c.tiles,
        .limit = limit,
        .group = 1 + (groups ? free : 0) / (another ? another : 1), /* gcc 14 divides before it looks at `groups` */
        .ahead = columns_ahead(&c, n_chunks, limit - early - (no_tiles > loop + again ? no_tiles : loop + again)),
    };
}

/* ---- warnings -------------------------------------------------------------------------------- */

void tcc_pressure_set(tcc_func *f, const tcc_pressure *p, tcc_loc place)
{
    if (p->together > p->limit)
        tcc_attr_set_int(f->ir, &f->attrs, "chunks", p->group);
    else if (p->ahead)
        tcc_attr_set_int(f->ir, &f->attrs, "ahead", p->ahead);
    if (p->scarce > p->limit)
        tcc_attr_set(f->ir, &f->attrs, "may_spill",
                     (tcc_attr){.kind = TCC_ATTR_INT, .i = p->scarce}, place);
}

/* How many registers a thread is likely to need, if they are too many; else 0. Where the pressure has been counted,
 * ptxas can move most of the loads that run ahead, whose addresses are live, too. Rows that are loaded before anything is
 * computed it loads late, as choose-ctas counts on; many loads behind that it moves to the front. */
static int64_t registers_too_many(const tcc_func *f, const tcc_live *live)
{
    enum { FAR = 64, MOVED = 96 };
    int64_t lacks = tcc_live_lacks(live);
    if (tcc_attr_find(&f->attrs, "row")) {
        bool far = live->loads_first > live->early + FAR;
        lacks = far && live->loads_first > live->late ? live->loads_first : live->late;
        return lacks > 0 ? live->limit + lacks : 0;
    }
    if (tcc_attr_find(&f->attrs, "warpgroups"))
        return live->registers > live->limit + MOVED ? live->registers : 0;
    return lacks > TCC_LIVE_DOUBT ? live->limit + lacks : 0;
}

/* Without memory there is no warning. */
static void warn_of_live(const tcc_func *f, tcc_diag *diag)
{
    jmp_buf oom;
    tcc_arena *scratch = tcc_arena_create(NULL);
    if (!scratch)
        return;
    tcc_arena_set_oom(scratch, &oom);
    if (!setjmp(oom)) {
        tcc_live live = tcc_live_registers(f, scratch);
        int64_t registers = registers_too_many(f, &live);
        if (registers)
            tcc_warn(diag, f->loc,
                     "kernel '%s' may spill registers: about %lld of a thread are live at once; the limit is %lld",
                     f->name, (long long)registers, (long long)live.limit);
    }
    tcc_arena_destroy(scratch);
}

void tcc_pressure_warn(const tcc_ir *ir, tcc_diag *diag)
{
    const tcc_target *t = tcc_target_of(ir);
    for (const tcc_func *f = ir->first; f; f = f->next) {
        const tcc_named_attr *a = tcc_attr_find(&f->attrs, "may_spill");
        if (!a && tcc_func_is_entry(f))
            warn_of_live(f, diag);
        if (!a)
            continue;
        tcc_schedule s = tcc_schedule_of(f);
        int64_t producer;
        tcc_warn(diag, a->loc.line ? a->loc : f->loc,
                 "kernel '%s' may spill registers: a thread needs about %lld, %lld of them "
                 "accumulators; the limit is %lld",
                 f->name, (long long)a->value.i, (long long)tcc_schedule_accumulators(&s),
                 (long long)tcc_schedule_registers(&s, t, &producer));
    }
}

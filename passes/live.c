/* A unit is an element of a value. Values that only arrange elements of others (vec.pack, vec.slice, …) have the
 * units of these. Ops are numbered as they are written; a unit is live from the op that defines it up to the last one
 * that uses it, or to the end of a loop that does and does not define it. What is computed element by element can also
 * wait until it is needed, while it is its operands that live: that is counted as well. An assembler does something
 * between the two. It also moves loads to the front of a block that is not in a loop, to hide their latency.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/live.h"

#include "ir/target.h"
#include "passes/schedule.h"
#include "support/map.h"

enum { WORD_BITS = 32 };

typedef struct unit {
    size_t first, last; /* numbers of ops */
    size_t needed;      /* when the first of its users is computed or, if one is in another block, `first`; 0: none */
    unsigned bits;      /* of the element */
    unsigned own_bits;  /* of the register that it does not share */
} unit;

/* Numbers of an op: its own, and that of the first one after all that it contains. */
typedef struct span {
    size_t begin, end;
} span;

typedef struct counting {
    tcc_arena *arena;
    const tcc_block *body;
    tcc_map spans;  /* by op */
    tcc_map values; /* to size_t[], numbers of units, one for each element; 0: it takes no register */
    TCC_VEC(unit) units;
    size_t n_ops;
    bool loads_wait; /* as what is computed element by element does */
} counting;

static span *span_of(const counting *c, const tcc_op *op)
{
    return tcc_map_get(&c->spans, op);
}

static void number_ops(counting *c)
{
    for (tcc_op *op = c->body->first; op; op = tcc_walk_next(op, c->body)) {
        span *s = TCC_NEW(c->arena, span);
        *tcc_map_at(&c->spans, op) = s;
        s->begin = c->n_ops++;
        for (const tcc_op *in = op; in; in = in->block->parent)
            span_of(c, in)->end = c->n_ops;
    }
}

static size_t count_of(const tcc_type *t)
{
    return t->kind == TCC_KIND_vec ? (size_t)tcc_type_count(t) : 1;
}

static unsigned bits_of(const tcc_type *t)
{
    enum { ADDRESS_BITS = 64 };
    return t->kind == TCC_KIND_ptr ? ADDRESS_BITS : t->kind == TCC_KIND_tensormap ? 0 : tcc_scalar_bits(t->elem);
}

static size_t *new_units(counting *c, const tcc_value *v)
{
    size_t *units = TCC_NEW_ARRAY(c->arena, size_t, count_of(v->type));
    *tcc_map_at(&c->values, v) = units;
    return units;
}

/* Whether elements that are narrower than a register share one: as the words in which they are loaded or multiplied,
 * and halves that are put together soon after each has been loaded. What is computed, and single bytes, have
 * registers of their own. */
static bool are_packed(const tcc_value *v)
{
    enum { HALF_BITS = 16 };
    unsigned bits = bits_of(v->type);
    return v->def && !v->def->n_regions && (bits == HALF_BITS || count_of(v->type) * bits >= WORD_BITS) &&
           !(tcc_op_info_get(v->def->code)->flags & TCC_ELEMENTWISE);
}

/* `before`: the units of what a loop begins with, in whose registers its values stay; NULL: none. */
static void define(counting *c, const tcc_value *v, size_t at, const size_t *before)
{
    enum { PREDICATE = 1 };
    size_t *units = new_units(c, v);
    unsigned bits = bits_of(v->type) > PREDICATE ? bits_of(v->type) : 0; /* of registers of its own */
    unsigned own_bits = bits && bits < WORD_BITS && !are_packed(v) ? WORD_BITS : bits;
    for (size_t i = 0; i < count_of(v->type); i++) {
        unsigned own = before && before[i] ? c->units.data[before[i]].own_bits : own_bits;
        units[i] = c->units.len;
        TCC_PUSH(c->arena, &c->units, ((unit){at, at, 0, bits, own}));
    }
}

/* What the i-th of n values of a loop begins with. */
static const size_t *units_before(const counting *c, const tcc_op *op, size_t i, size_t n)
{
    size_t others = n - op->n_results; /* the index */
    bool carried = op->code == TCC_OP_scf_for && i >= others;
    return carried ? tcc_map_get(&c->values, op->operands[op->n_operands - n + i]) : NULL;
}

/* The value that an op has the elements of, from *offset on; NULL: it computes something. */
static const tcc_value *arranged(const tcc_op *op, int64_t *offset)
{
    *offset = tcc_attr_int(&op->attrs, "offset", 0);
    if (op->code == TCC_OP_vec_slice || op->code == TCC_OP_vec_extract)
        return op->operands[0];
    *offset = 0;
    bool adds = op->code == TCC_OP_arith_add && op->results[0].type->kind == TCC_KIND_scalar &&
                tcc_scalar_classify(op->results[0].type->elem) != TCC_CLASS_FLOAT;
    const tcc_op *by = adds ? op->operands[1]->def : NULL;
    return by && by->code == TCC_OP_arith_const ? op->operands[0] : NULL; /* an access adds it */
}

static void define_results(counting *c, const tcc_op *op)
{
    int64_t offset;
    const tcc_value *of = arranged(op, &offset), *r = op->results;
    if (of && tcc_map_get(&c->values, of)) {
        const size_t *from = tcc_map_get(&c->values, of);
        size_t *units = new_units(c, r);
        for (size_t i = 0; i < count_of(r->type); i++)
            units[i] = from[(size_t)offset + i];
    } else if (op->code == TCC_OP_vec_pack) {
        size_t *units = new_units(c, r), n = 0;
        for (unsigned i = 0; i < op->n_operands; i++) {
            const size_t *from = tcc_map_get(&c->values, op->operands[i]);
            for (size_t e = 0; e < count_of(op->operands[i]->type); e++, n++)
                units[n] = from ? from[e] : 0;
        }
    } else if (op->code == TCC_OP_vec_splat || op->code == TCC_OP_arith_const || op->code == TCC_OP_vec_undef) {
        const size_t *from = op->n_operands ? tcc_map_get(&c->values, op->operands[0]) : NULL;
        size_t *units = new_units(c, r);
        for (size_t i = 0; i < count_of(r->type); i++)
            units[i] = from ? from[0] : 0;
    } else {
        for (unsigned i = 0; i < op->n_results; i++)
            define(c, &op->results[i], op->n_regions ? span_of(c, op)->end - 1 : span_of(c, op)->begin,
                   units_before(c, op, i, op->n_results));
    }
}

/* Up to where a use keeps a unit: loops that do not define it need it again. */
static size_t end_of_use(const counting *c, const tcc_op *op, const unit *u)
{
    size_t end = span_of(c, op)->begin;
    for (const tcc_op *in = op->block->parent; in; in = in->block->parent)
        if (in->code == TCC_OP_scf_for && u->first < span_of(c, in)->begin)
            end = span_of(c, in)->end;
    return end;
}

static void use_operands(counting *c, const tcc_op *op)
{
    int64_t offset;
    bool arranges = op->code == TCC_OP_vec_pack || op->code == TCC_OP_vec_splat || arranged(op, &offset);
    for (unsigned i = 0; i < op->n_operands && !arranges; i++) {
        const size_t *units = tcc_map_get(&c->values, op->operands[i]);
        for (size_t e = 0; units && e < count_of(op->operands[i]->type); e++) {
            unit *u = &c->units.data[units[e]];
            size_t end = end_of_use(c, op, u);
            u->last = units[e] && end > u->last ? end : u->last;
        }
    }
}

static void visit(counting *c, const tcc_op *op)
{
    for (unsigned r = 0; r < op->n_regions; r++)
        for (size_t i = 0; i < op->regions[r]->n_args; i++)
            define(c, op->regions[r]->args[i], span_of(c, op)->begin, units_before(c, op, i, op->regions[r]->n_args));
    define_results(c, op);
    use_operands(c, op);
}

/* For each op what its thread may have. */
static int64_t *limits(const counting *c, const tcc_func *f)
{
    const tcc_target *t = tcc_target_of(f->ir);
    int64_t *of = TCC_NEW_ARRAY(c->arena, int64_t, c->n_ops);
    int64_t threads = tcc_attr_int(&f->attrs, "block", 1) * tcc_attr_int(&f->attrs, "min_ctas", 1);
    int64_t launched = tcc_launched_registers(t, threads);
    launched = launched < t->thread_registers ? launched : t->thread_registers;
    for (size_t i = 0; i < c->n_ops; i++)
        of[i] = launched;
    for (tcc_op *op = c->body->first; op; op = tcc_walk_next(op, c->body)) {
        size_t end = op->block->parent ? span_of(c, op->block->parent)->end : c->n_ops;
        for (size_t i = span_of(c, op)->begin; op->code == TCC_OP_nvvm_setmaxnreg && i < end; i++)
            of[i] = tcc_attr_int(&op->attrs, "count", launched);
    }
    return of;
}

/* ---- elements that wait -------------------------------------------------------------------- */

static bool can_wait(const counting *c, const tcc_op *op)
{
    bool waits = tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE ||
                 (c->loads_wait && op->code == TCC_OP_nvvm_ld_global);
    return waits && op->n_operands && op->n_results == 1 && op->results[0].type->kind == TCC_KIND_vec &&
           tcc_type_count(op->results[0].type) > 1;
}

/* When an element of op's result is computed. */
static size_t moment_of(const counting *c, const tcc_op *op, size_t e)
{
    const size_t *units = op->n_results == 1 ? tcc_map_get(&c->values, &op->results[0]) : NULL;
    size_t begin = span_of(c, op)->begin;
    const unit *u = units && can_wait(c, op) && units[e] ? &c->units.data[units[e]] : NULL;
    return u && u->needed > begin ? u->needed : begin;
}

static void wait_for_use(counting *c, const tcc_op *op, const tcc_value *v)
{
    const size_t *units = tcc_map_get(&c->values, v);
    for (size_t e = 0; units && e < count_of(v->type); e++) {
        unit *u = &c->units.data[units[e]];
        bool same_length = op->n_results == 1 && count_of(op->results[0].type) == count_of(v->type);
        size_t at = same_length ? moment_of(c, op, e) : span_of(c, op)->begin;
        u->last = at > u->last ? at : u->last;
        if (v->def && v->def->block != op->block)
            at = span_of(c, v->def)->begin;
        u->needed = !u->needed || at < u->needed ? at : u->needed;
    }
}

/* Each unit is needed when the first of its users is computed, and lives until the last is. Users come first. */
static void wait_for_uses(counting *c)
{
    tcc_op **ops = TCC_NEW_ARRAY(c->arena, tcc_op *, c->n_ops);
    size_t n = 0;
    for (tcc_op *op = c->body->first; op; op = tcc_walk_next(op, c->body))
        ops[n++] = op;
    while (n--) {
        int64_t offset;
        const tcc_op *op = ops[n];
        bool arranges = op->code == TCC_OP_vec_pack || op->code == TCC_OP_vec_splat || arranged(op, &offset);
        for (unsigned i = 0; i < op->n_operands && !arranges; i++)
            wait_for_use(c, op, op->operands[i]);
    }
    for (tcc_op *op = c->body->first; op; op = tcc_walk_next(op, c->body)) {
        const size_t *units = op->n_results == 1 ? tcc_map_get(&c->values, &op->results[0]) : NULL;
        for (size_t e = 0; units && can_wait(c, op) && e < count_of(op->results[0].type); e++)
            c->units.data[units[e]].first = moment_of(c, op, e);
    }
}

/* ---- loads in front ------------------------------------------------------------------------- */

/* What loads stay behind. */
static bool is_passed(const tcc_op *op)
{
    unsigned stops = TCC_WRITES_GLOBAL | TCC_WRITES_SHARED | TCC_ASYNC_PROXY | TCC_BARRIER | TCC_FENCE | TCC_COUNTS |
                     TCC_WAITS | TCC_HINT | TCC_CONTROL;
    return !op->n_regions && !tcc_op_does(op->code, stops);
}

static bool is_in_loop(const tcc_op *op)
{
    for (; op->block->parent; op = op->block->parent)
        if (op->block->parent->code == TCC_OP_scf_for)
            return true;
    return false;
}

static void load_first(counting *c)
{
    tcc_map fronts = TCC_MAP(c->arena); /* by block: the op behind the last one that loads stay behind */
    for (tcc_op *op = c->body->first; op; op = tcc_walk_next(op, c->body)) {
        void **front = tcc_map_at(&fronts, op->block);
        if (!*front || !is_passed(op))
            *front = span_of(c, op);
        const size_t *units = op->n_results == 1 ? tcc_map_get(&c->values, &op->results[0]) : NULL;
        bool loads = tcc_op_does(op->code, TCC_READS_GLOBAL | TCC_READS_SHARED) && !op->n_regions && !is_in_loop(op);
        for (size_t e = 0; loads && units && e < count_of(op->results[0].type); e++)
            c->units.data[units[e]].first = ((span *)*front)->begin;
    }
}

/* owned: narrow elements that are computed, and single bytes, have registers of their own. */
static tcc_live count_live(counting *c, const tcc_func *f, bool owned)
{
    int64_t *change = TCC_NEW_ARRAY(c->arena, int64_t, c->n_ops + 1), *limit = limits(c, f), live = 0;
    for (size_t i = 1; i < c->units.len; i++) {
        const unit *u = &c->units.data[i];
        unsigned bits = owned ? u->own_bits : u->bits;
        change[u->first] += bits;
        change[u->last] -= bits;
    }
    tcc_live most = {.limit = INT64_MAX};
    for (size_t i = 0; i < c->n_ops; i++) {
        live += change[i];
        int64_t registers = (live + WORD_BITS - 1) / WORD_BITS;
        if (most.limit == INT64_MAX || registers - limit[i] > most.registers - most.limit)
            most = (tcc_live){.registers = registers, .limit = limit[i]};
    }
    return most;
}

static int64_t excess(counting *c, const tcc_func *f)
{
    tcc_live owned = count_live(c, f, true);
    return owned.registers - owned.limit;
}

static counting count_units(const tcc_func *f, tcc_arena *scratch)
{
    counting c = {.arena = scratch, .body = f->body, .spans = TCC_MAP(scratch), .values = TCC_MAP(scratch)};
    TCC_PUSH(scratch, &c.units, (unit){0}); /* number 0 */
    number_ops(&c);
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        visit(&c, op);
    return c;
}

static tcc_live count_both(const tcc_func *f, tcc_arena *scratch, bool loads_wait)
{
    counting c = count_units(f, scratch);
    c.loads_wait = loads_wait;
    tcc_live early = count_live(&c, f, false);
    int64_t early_excess = excess(&c, f);
    wait_for_uses(&c);
    tcc_live late = count_live(&c, f, false);
    tcc_live least = late.registers - late.limit < early.registers - early.limit ? late : early;
    least.early = early_excess;
    least.late = excess(&c, f);
    return least;
}

tcc_live tcc_live_registers(const tcc_func *f, tcc_arena *scratch)
{
    tcc_live live = count_both(f, scratch, false);
    counting c = count_units(f, scratch);
    load_first(&c);
    live.loads_first = excess(&c, f);
    return live;
}

tcc_live tcc_live_late_registers(const tcc_func *f, tcc_arena *scratch)
{
    return count_both(f, scratch, true);
}

int64_t tcc_live_lacks(const tcc_live *live)
{
    return live->early < live->late ? live->early : live->late;
}

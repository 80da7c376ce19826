/* slots: the ops that matter, with a slot for each value that they need.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/decode.h"
#include "ir/counting.h"

/* ---- writing ------------------------------------------------------------------------------- */

static uint32_t slot_of(decoder *d, uint32_t number)
{
    need *n = &d->needs.data[number];
    if (n->slot == TCC_P_NO_SLOT && (n->modulus || is_tracked(n))) {
        n->slot = d->p->n_slots++;
        if (is_tracked(n))
            TCC_PUSH(d->p->scratch, &d->p->registers, n->slot);
    }
    return n->slot;
}

/* Whether what an op gives depends on its operands alone. */
static bool is_function(const tcc_pinst *in)
{
    const tcc_op *op = in->op;
    bool computes = tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    if ((!computes && op->code != TCC_OP_arith_const) || op->n_results != 1 || op->n_operands > 2 ||
        in->results[0] == TCC_P_NO_SLOT || op->results[0].type->kind != TCC_KIND_scalar)
        return false;
    for (unsigned i = 0; i < op->n_operands; i++)
        if (in->operands[i] == TCC_P_NO_SLOT)
            return false;
    return true;
}

/* Whether an op that matters accesses no memory but tensors, nor do those in it. */
static bool is_harmless(const tcc_pinst *in)
{
    bool harmless = !is_followed(in->op) && !in->touches &&
                    !(in->op->n_regions && in->op->n_results);
    for (unsigned r = 0; harmless && r < in->op->n_regions; r++)
        for (size_t i = 0; harmless && i < in->regions[r].n; i++)
            harmless = in->regions[r].insts[i].harmless;
    return harmless;
}

/* Whether all that is done in a branch is to compute. */
static bool only_computes(const tcc_pinst *in)
{
    bool computes = in->op->code == TCC_OP_scf_if || (!is_followed(in->op) && !in->op->n_regions);
    for (unsigned r = 0; computes && r < in->op->n_regions; r++)
        for (size_t i = 0; computes && i < in->regions[r].n; i++)
            computes = only_computes(&in->regions[r].insts[i]);
    return computes;
}

/* After how many iterations of a loop what is asked of its index repeats itself. */
static void find_period(tcc_protocol *p, const tcc_pinst *loop)
{
    int64_t modulus = loop->regions[0].moduli[0], step;
    if (!tcc_value_is_int(loop->op->operands[2], &step) || step < 1 || modulus < 1)
        return;
    int64_t period = modulus / tcc_gcd(modulus, step);
    if (period > p->period)
        p->period = period;
}

/* Whether a loop's iterations are counted one by one: it asks for no number. */
static bool makes_few_iterations(const tcc_op *loop)
{
    int64_t lo, hi, step;
    return tcc_value_is_int(loop->operands[0], &lo) && tcc_value_is_int(loop->operands[1], &hi) &&
           tcc_value_is_int(loop->operands[2], &step) && step > 0 && step <= INT32_MAX &&
           hi - lo <= TCC_P_KNOWN_ITERATIONS * step;
}

/* The remainder of a loop's number of iterations that is asked as data; of one that is known, which other ops want as
 * well, what is asked of the sums. */
static int64_t data_modulus(const decoder *d, const source *s, const tcc_pinst *loop)
{
    int64_t m = d->needs.data[s->operands[1]].modulus;
    for (unsigned i = 0; i < s->op->n_results && loop->counts && m == EXACT; i++) {
        int64_t of_sum = d->needs.data[s->results + i].modulus;
        m = of_sum > NEEDED && of_sum != EXACT ? of_sum : m;
    }
    return m != EXACT && (s->waits || loop->counts) ? m : NEEDED;
}

/* Writes the i-th source; gives the one after its regions. */
static size_t write_op(decoder *d, size_t i, tcc_pinst *in)
{
    tcc_arena *scratch = d->p->scratch;
    const source *s = &d->sources.data[i];
    const tcc_op *op = s->op;
    *in = (tcc_pinst){.op = op, .counter = TCC_P_NO_SLOT};
    in->operands = TCC_NEW_ARRAY(scratch, uint32_t, op->n_operands + 1);
    in->results = TCC_NEW_ARRAY(scratch, uint32_t, op->n_results + 1);
    in->regions = TCC_NEW_ARRAY(scratch, tcc_pcode, op->n_regions + 1);
    for (unsigned o = 0; o < op->n_operands; o++)
        in->operands[o] = slot_of(d, s->operands[o]);
    for (unsigned r = 0; r < op->n_results; r++)
        in->results[r] = slot_of(d, s->results + r);
    size_t next = i + 1;
    for (unsigned r = 0; r < op->n_regions; r++) {
        in->regions[r].n_args = op->regions[r]->n_args;
        in->regions[r].registers = TCC_NEW_ARRAY(scratch, uint64_t, op->regions[r]->n_args + 1);
        for (size_t a = 0; a < op->regions[r]->n_args; a++)
            in->regions[r].registers[a] = tcc_p_registers_of(d, op->regions[r]->args[a]);
        next = tcc_p_write_block(d, next, (uint32_t)i + 1, r, s->args[r], &in->regions[r]);
        in->loops |= in->regions[r].n && in->regions[r].loops;
    }
    in->open = s->open;
    in->touches = s->touches;
    in->tensor = s->tensor;
    in->sent_to = s->sent_to;
    in->place = s->place;
    in->sent_by_thread = s->sent_to && tcc_p_sent_by_thread(d->p, s->place);
    for (unsigned t = 0; in->tensor && t < in->place->n_terms; t++)
        in->place->terms[t].slot = slot_of(d, tcc_p_number_of(d, in->place->terms[t].value));
    in->harmless = is_harmless(in);
    in->computes = op->code == TCC_OP_scf_if && only_computes(in);
    if (is_function(in))
        in->given = TCC_NEW_ARRAY(scratch, tcc_pgiven, TCC_P_GIVEN);
    if (d->registers)
        in->wanted_twice = tcc_registers_wanted_twice(d->registers, op);
    if (tcc_op_starts(op->code, TCC_BY_MMA_GROUP)) {
        in->registers = tcc_p_registers_of(d, &op->results[0]);
        in->a_registers = tcc_p_registers_of(d, op->operands[1]);
        tcc_p_mma_read(in);
    }
    in->waits = s->waits;
    bool matters = s->waits || (op->code == TCC_OP_scf_if && !in->harmless);
    unsigned n_asked = !matters ? 0 : op->code == TCC_OP_scf_for ? 2 : op->code == TCC_OP_scf_if;
    for (unsigned o = 0; o < n_asked; o++)
        in->of_tiles |= (uint8_t)(tcc_p_is_of_tiles(op->operands[o], &d->p->asks_memory, 0) << o);
    in->loops |= op->code == TCC_OP_scf_for && s->waits && !makes_few_iterations(op);
    if (op->code == TCC_OP_scf_for) {
        in->counts = tcc_loop_only_counts(op);
        in->tests = tcc_loop_tests(op);
        int64_t m = data_modulus(d, s, in);
        in->data = m > NEEDED;
        if (in->data && m > d->p->symbol_data)
            d->p->symbol_data = m;
        if (s->waits)
            find_period(d->p, in);
    }
    return next;
}

/* Whether an op gives the same in every state: no loop's argument, parameter or symbol is in it. */
static bool is_fixed(const decoder *d, const source *s)
{
    const tcc_op *op = s->op;
    bool place = op->code == TCC_OP_nvvm_tid || op->code == TCC_OP_amdgcn_tid || op->code == TCC_OP_amdgcn_lane ||
                 op->code == TCC_OP_nvvm_cluster_ctarank || op->code == TCC_OP_nvvm_smem_base ||
                 op->code == TCC_OP_amdgcn_lds_base;
    bool computes = op->code == TCC_OP_arith_const || tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE;
    bool fixed = (place || computes) && op->n_results == 1 && op->results[0].type->kind == TCC_KIND_scalar &&
                 d->needs.data[s->results].modulus && !s->touches;
    for (unsigned i = 0; i < op->n_operands && fixed; i++) {
        uint32_t slot = d->needs.data[s->operands[i]].slot;
        fixed = slot >= TCC_P_FIXED && slot != TCC_P_NO_SLOT;
    }
    return fixed;
}

/* It is not followed. */
static size_t write_fixed(decoder *d, size_t i)
{
    tcc_pinst in;
    d->needs.data[d->sources.data[i].results].slot = TCC_P_FIXED + d->p->n_fixed++;
    size_t next = write_op(d, i, &in);
    TCC_PUSH(d->p->scratch, &d->p->fixed, in);
    return next;
}

static void write_args(decoder *d, uint32_t first, tcc_pcode *code)
{
    code->args = TCC_NEW_ARRAY(d->p->scratch, uint32_t, code->n_args + 1);
    code->moduli = TCC_NEW_ARRAY(d->p->scratch, int64_t, code->n_args + 1);
    for (size_t a = 0; a < code->n_args; a++) {
        const need *arg = &d->needs.data[first + a];
        bool exact = arg->modulus == EXACT;
        code->args[a] = slot_of(d, (uint32_t)(first + a));
        code->moduli[a] = exact ? 0 : arg->modulus;
        int64_t most = exact ? 0 : (arg->threshold + 1) / 2, least = exact ? 0 : arg->threshold / 2;
        if (most > d->p->data_threshold)
            d->p->data_threshold = most;
        if (most > d->p->threshold && code != &d->p->body)
            d->p->threshold = most;
        if (least > d->p->least_threshold && code != &d->p->body)
            d->p->least_threshold = least;
    }
}

/* Whether a source is in a region or in a region inside it. */
static bool is_inside(const source *s, uint32_t parent, uint32_t region)
{
    return s->parent > parent || (s->parent == parent && s->region == region);
}

/* Regions have their slots in order. */
static void find_own_slots(tcc_arena *scratch, tcc_pcode *code)
{
    TCC_VEC(tcc_pslots) own = {0};
    uint32_t at = code->first_slot;
    for (size_t i = 0; i < code->n; i++)
        for (unsigned r = 0; r < code->insts[i].op->n_regions; r++) {
            const tcc_pcode *inside = &code->insts[i].regions[r];
            TCC_PUSH(scratch, &own, (tcc_pslots){at, inside->first_slot});
            at = inside->end_slot;
        }
    TCC_PUSH(scratch, &own, (tcc_pslots){at, code->end_slot});
    code->own = own.data;
    code->n_own = own.len;
}

/* Writes a region, whose sources begin at i, without those that do not matter. */
size_t tcc_p_write_block(decoder *d, size_t i, uint32_t parent, uint32_t region,
                          uint32_t first_arg, tcc_pcode *code)
{
    size_t end = i, n = 0;
    for (; end < d->sources.len && is_inside(&d->sources.data[end], parent, region); end++)
        n += d->sources.data[end].parent == parent && d->sources.data[end].matters;
    code->first_slot = d->p->n_slots;
    write_args(d, first_arg, code);
    code->end_args = d->p->n_slots;
    code->insts = TCC_NEW_ARRAY(d->p->scratch, tcc_pinst, n + 1);
    for (size_t at = i; at < end;) {
        size_t next = at + 1;
        if (d->sources.data[at].matters && is_fixed(d, &d->sources.data[at]))
            next = write_fixed(d, at);
        else if (d->sources.data[at].matters)
            next = write_op(d, at, &code->insts[code->n++]);
        if (code->n)
            code->insts[code->n - 1].end_slot = d->p->n_slots;
        while (next < end && d->sources.data[next].parent != parent)
            next++;
        at = next;
    }
    code->later = SIZE_MAX;
    for (size_t k = code->n; k-- > 0;) {
        code->insts[k].loops_later = code->loops;
        code->loops |= code->insts[k].loops;
        code->later = code->insts[k].loops ? k + 1 : code->later;
    }
    code->end_slot = d->p->n_slots;
    find_own_slots(d->p->scratch, code);
    return end;
}

static bool uses(const tcc_pcode *code, size_t from, uint32_t slot);

static bool uses_inside(const tcc_pinst *in, uint32_t slot)
{
    bool used = false;
    for (unsigned r = 0; r < in->op->n_regions; r++)
        used |= uses(&in->regions[r], 0, slot);
    return used;
}

static bool uses(const tcc_pcode *code, size_t from, uint32_t slot)
{
    for (size_t i = from; i < code->n; i++) {
        for (unsigned o = 0; o < code->insts[i].op->n_operands; o++)
            if (code->insts[i].operands[o] == slot)
                return true;
        if (uses_inside(&code->insts[i], slot))
            return true;
    }
    return false;
}

/* What loops take over from the block around them, and nothing else there needs: in what a tile begins with
 * states do not differ while it goes on. */
void tcc_p_find_dying(tcc_protocol *p, tcc_pcode *code)
{
    for (size_t i = 0; i < code->n; i++) {
        tcc_pinst *in = &code->insts[i];
        for (unsigned r = 0; r < in->op->n_regions; r++)
            tcc_p_find_dying(p, &in->regions[r]);
        in->dying = TCC_NEW_ARRAY(p->scratch, uint32_t, in->op->n_results + 1);
        for (unsigned o = 3; in->op->code == TCC_OP_scf_for && o < in->op->n_operands; o++) {
            uint32_t slot = in->operands[o];
            bool scalar = in->op->operands[o]->type->kind == TCC_KIND_scalar;
            bool here = slot >= code->first_slot && slot < code->end_slot;
            if (scalar && here && !uses(code, i + 1, slot) && !uses_inside(in, slot))
                in->dying[in->n_dying++] = slot;
        }
    }
}

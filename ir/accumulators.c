/* accumulators: those of an MMA must not come from vec.undef, through any slices, packs, loops and
 * waits.
 *
 * scale_d = 0 ignores what accumulators hold, but ptxas up to CUDA 12.8, and so the JIT of drivers
 * up to R570, serialises all MMAs of a kernel whose accumulators are not defined before the loop
 * (C7515). On AMD there is no scale_d.
 *
 * Walks backwards from the accumulators, element by element, since a vec may be packed from
 * different registers. Functions without vec.undef only cost one walk.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/rules.h"
#include "support/map.h"

static const struct {
    tcc_opcode code;
    unsigned operand;
} accumulators[] = {
    {TCC_OP_nvvm_wgmma, 0},
    {TCC_OP_nvvm_wgmma_a, 0},
    {TCC_OP_nvvm_mma, 2},
    {TCC_OP_amdgcn_wmma, 2},
};

/* Elements of a value. */
typedef struct part {
    const tcc_value *value;
    int64_t first, n;
} part;

typedef struct search {
    tcc_arena *arena;
    tcc_map seen; /* value -> a bit for each element that was asked for */
    TCC_VEC(part) open;
    const tcc_op *undef; /* what was found */
} search;

static void ask(search *s, const tcc_value *value, int64_t first, int64_t n)
{
    int64_t count = tcc_type_count(value->type);
    if (n < 1 || first < 0 || first + n > count)
        return; /* of operands that were refused, or as many elements as the result has */
    void **slot = tcc_map_at(&s->seen, value);
    if (!*slot)
        *slot = TCC_NEW_ARRAY(s->arena, uint8_t, (size_t)(count + 7) / 8);
    uint8_t *bits = *slot;
    bool any = false;
    for (int64_t i = first; i < first + n; i++) {
        any |= !(bits[i / 8] >> i % 8 & 1);
        bits[i / 8] |= (uint8_t)(1 << i % 8);
    }
    if (any)
        TCC_PUSH(s->arena, &s->open, (part){value, first, n});
}

static void ask_yield(search *s, const tcc_block *block, unsigned index, const part *p)
{
    const tcc_op *yield = tcc_block_yield(block);
    if (yield && index < yield->n_operands)
        ask(s, yield->operands[index], p->first, p->n);
}

/* What a loop carries: what it begins with, and what its region yields. */
static void ask_loop(search *s, const tcc_op *loop, unsigned index, const part *p)
{
    if (3 + index < loop->n_operands)
        ask(s, loop->operands[3 + index], p->first, p->n);
    ask_yield(s, loop->regions[0], index, p);
}

static void ask_packed(search *s, const tcc_op *pack, const part *p)
{
    int64_t begin = 0, end = p->first + p->n;
    for (unsigned i = 0; i < pack->n_operands; i++) {
        int64_t n = tcc_type_count(pack->operands[i]->type);
        int64_t first = p->first > begin ? p->first : begin,
                last = end < begin + n ? end : begin + n;
        ask(s, pack->operands[i], first - begin, last - first);
        begin += n;
    }
}

static void ask_bits(search *s, const tcc_op *cast, const part *p)
{
    int64_t from = tcc_scalar_bits(cast->operands[0]->type->elem);
    int64_t to = tcc_scalar_bits(cast->results[0].type->elem);
    int64_t first = p->first * to / from, end = ((p->first + p->n) * to + from - 1) / from;
    ask(s, cast->operands[0], first, end - first);
}

static void ask_origin(search *s, const part *p)
{
    const tcc_op *op = p->value->def;
    unsigned index = p->value->index;
    if (!op) {
        const tcc_op *loop = p->value->block->parent;
        if (loop && loop->code == TCC_OP_scf_for && index)
            ask_loop(s, loop, index - 1, p);
        return;
    }
    switch (op->code) {
    case TCC_OP_vec_undef: s->undef = op; return;
    case TCC_OP_vec_pack: ask_packed(s, op, p); return;
    case TCC_OP_vec_slice:
    case TCC_OP_vec_extract:
        ask(s, op->operands[0], p->first + tcc_attr_int(&op->attrs, "offset", 0), p->n);
        return;
    case TCC_OP_vec_splat: ask(s, op->operands[0], 0, 1); return;
    case TCC_OP_vec_bitcast: ask_bits(s, op, p); return;
    case TCC_OP_scf_for: ask_loop(s, op, index, p); return;
    case TCC_OP_scf_if:
        ask_yield(s, op->regions[0], index, p);
        ask_yield(s, op->regions[1], index, p);
        return;
    case TCC_OP_nvvm_wgmma_wait: ask(s, op->operands[index], p->first, p->n); return;
    default: /* an undefined operand makes the result undefined */
        for (unsigned i = 0;
             tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE && i < op->n_operands; i++)
            ask(s, op->operands[i], p->first, p->n);
        return;
    }
}

static bool has_undef(const tcc_func *f)
{
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (op->code == TCC_OP_vec_undef)
            return true;
    return false;
}

static void check(tcc_verifier *v, const tcc_op *mma, unsigned operand)
{
    search s = {.arena = v->arena, .seen = TCC_MAP(v->arena)};
    const tcc_value *acc = mma->operands[operand];
    ask(&s, acc, 0, tcc_type_count(acc->type));
    while (s.open.len && !s.undef) {
        part p = s.open.data[--s.open.len];
        ask_origin(&s, &p);
    }
    if (!s.undef)
        return;
    tcc_verify_error(v, mma, "%s may be uninitialised, expected zeros at the beginning",
                     tcc_op_info_get(mma->code)->operands[operand].name);
    if (s.undef->loc.line)
        tcc_note(v->diag, s.undef->loc, "it comes from here");
}

void tcc_verify_accumulators(tcc_verifier *v, const tcc_func *f)
{
    if (!has_undef(f))
        return;
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        for (size_t i = 0; i < sizeof accumulators / sizeof *accumulators; i++)
            if (op->code == accumulators[i].code)
                check(v, op, accumulators[i].operand);
}

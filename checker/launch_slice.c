/* launch_slice: the ops that decide which elements of tensors a kernel accesses, or whether a loop keeps the promise of
 * its attribute. From those accesses and loops one walks backwards, from uses to definitions and from ops to the ops
 * around them; data that are stored, and all that only synchronizes, are left out.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/launch.h"

typedef struct slicer {
    const tcc_func *f;
    tcc_lprogram *program;
    tcc_arena *scratch;
    tcc_map slots, kept; /* value -> its slot + 1; the ops that matter */
    TCC_VEC(const tcc_value *) todo; /* values whose definitions were not looked at */
} slicer;

static void *const KEPT = (void *)1;

/* ---- what matters -------------------------------------------------------------------------- */

static void need(slicer *s, const tcc_value *v)
{
    void **slot = tcc_map_at(&s->slots, v);
    if (*slot)
        return;
    *slot = (void *)(uintptr_t)++s->program->n_slots;
    TCC_PUSH(s->scratch, &s->todo, v);
}

static void need_operands(slicer *s, const tcc_op *op, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++)
        need(s, op->operands[i]);
}

/* What an op that matters asks for: of accesses where they are, not what is stored. */
static void need_of(slicer *s, const tcc_op *op)
{
    const tcc_op_info *info = tcc_op_info_get(op->code);
    tcc_global_use use = tcc_op_global_use(op->code);
    unsigned end = op->n_operands;
    switch (op->code) {
    case TCC_OP_scf_for:
        need_operands(s, op, 0, 3);
        if (tcc_attr_int(&op->attrs, "while", 0))
            need(s, op->regions[0]->args[1]);
        return;
    case TCC_OP_scf_if: need(s, op->operands[0]); return;
    case TCC_OP_scf_yield:
    case TCC_OP_func_return: return;
    case TCC_OP_nvvm_st_async_word:
        need(s, op->operands[0]);
        need(s, op->operands[2]);
        return;
    default: break;
    }
    if (!use.any) {
        need_operands(s, op, 0, end);
        return;
    }
    if (!use.async && use.writes && !op->n_results)
        end--; /* the data */
    need(s, op->operands[use.operand]);
    need_operands(s, op, use.async ? info->n_operands : use.operand + 1, end);
}

static bool matters(const slicer *s, const tcc_op *op)
{
    return tcc_map_get(&s->kept, op) != NULL;
}

/* With the ops around it. */
static void keep(slicer *s, const tcc_op *op)
{
    for (; op && !matters(s, op); op = op->block->parent) {
        *tcc_map_at(&s->kept, op) = KEPT;
        need_of(s, op);
    }
}

static void need_yielded(slicer *s, const tcc_block *block, unsigned i)
{
    const tcc_op *yield = tcc_block_yield(block);
    if (yield)
        need(s, yield->operands[i]);
}

static void look_at(slicer *s, const tcc_value *v)
{
    const tcc_op *op = v->def ? v->def : v->block->parent;
    if (!op)
        return;
    keep(s, op);
    if (op->code == TCC_OP_scf_if) {
        need_yielded(s, op->regions[0], v->index);
        need_yielded(s, op->regions[1], v->index);
    } else if (op->code == TCC_OP_scf_for && v->def) {
        need(s, op->regions[0]->args[1 + v->index]);
    } else if (op->code == TCC_OP_scf_for && v->index) {
        need(s, op->operands[2 + v->index]);
        need_yielded(s, v->block, v->index - 1);
    }
}

static bool is_root(const slicer *s, const tcc_op *op, const bool *reads)
{
    if (op->code == TCC_OP_scf_for)
        return tcc_attr_int(&op->attrs, "at_least_once", 0);
    if (op->code == TCC_OP_nvvm_st_shared_word || op->code == TCC_OP_nvvm_st_async_word)
        return s->program->draws;
    tcc_global_use use = tcc_op_global_use(op->code);
    int param = tcc_op_global_parameter(op);
    return use.any && (use.writes || param < 0 || reads[param]);
}

/* ---- the program --------------------------------------------------------------------------- */

static int slot_of(const slicer *s, const tcc_value *v)
{
    return (int)(uintptr_t)tcc_map_get(&s->slots, v) - 1;
}

static void decode_block(slicer *s, const tcc_block *block, tcc_lcode *code);

static void decode_access(const tcc_op *op, tcc_linst *in)
{
    in->writes = tcc_op_global_use(op->code).writes;
    in->param = tcc_op_global_parameter(op);
    bool buffer = op->code == TCC_OP_amdgcn_buffer_load || op->code == TCC_OP_amdgcn_buffer_store;
    in->disp = tcc_attr_int(&op->attrs, buffer ? "offset" : "disp", 0);
    in->over = tcc_attr_int(&op->attrs, "over", 0);
    const tcc_type *moves = tcc_op_moves(op);
    if (moves->kind == TCC_KIND_vec)
        in->bits = tcc_type_count(moves) * tcc_scalar_bits(moves->elem);
}

static void decode_op(slicer *s, const tcc_op *op, tcc_linst *in)
{
    in->op = op;
    in->accesses = tcc_op_global_use(op->code).any;
    if (in->accesses)
        decode_access(op, in);
    in->divides = op->code == TCC_OP_arith_div || op->code == TCC_OP_arith_rem;
    in->computes = op->n_results == 1 && op->results[0].type->kind == TCC_KIND_scalar &&
                   (tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE || op->code == TCC_OP_arith_const) &&
                   tcc_scalar_classify(op->results[0].type->elem) != TCC_CLASS_FLOAT;
    for (unsigned i = 0; i < op->n_operands; i++)
        in->computes &= op->operands[i]->type->kind == TCC_KIND_scalar;
    in->at_least_once = tcc_attr_int(&op->attrs, "at_least_once", 0);
    in->tests = tcc_attr_int(&op->attrs, "while", 0);
    in->operands = TCC_NEW_ARRAY(s->scratch, int, op->n_operands);
    in->results = TCC_NEW_ARRAY(s->scratch, int, op->n_results);
    in->regions = TCC_NEW_ARRAY(s->scratch, tcc_lcode, op->n_regions);
    for (unsigned i = 0; i < op->n_operands; i++)
        in->operands[i] = slot_of(s, op->operands[i]);
    for (unsigned i = 0; i < op->n_results; i++)
        in->results[i] = slot_of(s, &op->results[i]);
    for (unsigned i = 0; i < op->n_regions; i++)
        decode_block(s, op->regions[i], &in->regions[i]);
    in->runs = op->n_regions && in->regions[0].n;
    for (size_t i = 0; op->n_regions && i < in->regions[0].n_args; i++)
        in->runs |= in->regions[0].args[i] >= 0;
}

static void decode_block(slicer *s, const tcc_block *block, tcc_lcode *code)
{
    size_t n = 0;
    code->n_args = block->n_args;
    code->args = TCC_NEW_ARRAY(s->scratch, int, block->n_args);
    code->nexts = TCC_NEW_ARRAY(s->scratch, int, block->n_args);
    for (size_t i = 0; i < block->n_args; i++) {
        code->args[i] = slot_of(s, block->args[i]);
        code->nexts[i] = block->parent && code->args[i] >= 0 ? (int)s->program->n_slots++ : TCC_L_NO_SLOT;
    }
    const tcc_op *yield = tcc_block_yield(block);
    code->n_yields = yield ? yield->n_operands : 0;
    code->yields = TCC_NEW_ARRAY(s->scratch, int, code->n_yields);
    for (size_t i = 0; i < code->n_yields; i++)
        code->yields[i] = slot_of(s, yield->operands[i]);
    for (const tcc_op *op = block->first; op; op = op->next)
        n += matters(s, op);
    code->insts = TCC_NEW_ARRAY(s->scratch, tcc_linst, n);
    for (const tcc_op *op = block->first; op; op = op->next) {
        tcc_linst in = {0};
        if (!matters(s, op))
            continue;
        decode_op(s, op, &in);
        if (op->code == TCC_OP_arith_const)
            TCC_PUSH(s->scratch, &s->program->constants, in);
        else
            code->insts[code->n++] = in;
    }
}

tcc_lprogram *tcc_launch_slice(const tcc_func *f, const bool *reads, tcc_arena *scratch)
{
    tcc_lprogram *program = TCC_NEW(scratch, tcc_lprogram);
    slicer s = {.f = f, .program = program, .scratch = scratch, .slots = TCC_MAP(scratch), .kept = TCC_MAP(scratch)};
    const tcc_block *body = f->body;
    for (tcc_op *op = body->first; op; op = tcc_walk_next(op, body))
        program->draws |= op->code == TCC_OP_nvvm_atom_inc;
    for (tcc_op *op = body->first; op; op = tcc_walk_next(op, body))
        if (is_root(&s, op, reads))
            keep(&s, op);
    while (s.todo.len)
        look_at(&s, s.todo.data[--s.todo.len]);
    decode_block(&s, body, &program->body);
    return program;
}

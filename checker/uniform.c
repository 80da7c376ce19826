/* uniform: numbers that depend on which tile it is, the same for all warps that compute them of the same tile.
 *
 * Little is remembered of a loop's index (value.c), and nothing of loaded numbers. How often a loop inside of it runs
 * may depend on either: the tiles of a triangle have fewer iterations where it is narrow, those of a group as many as
 * a tensor says. What matters is only that all warps come to the same number. So for such a bound, or a condition, it
 * is written down how it is computed: of the indices of loops around it, of numbers that were drawn, of constants and
 * parameters, and of elements of tensors that nothing in the kernel writes. Equal computations are one symbol, which
 * is another one in each iteration of the loops that they depend on.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

enum { MAX_DEPTH = 24 };

typedef struct place {
    tcc_protocol *p;
    const tcc_pstate *s;
    unsigned warp;
} place;

static bool is_of_launch(tcc_opcode code)
{
    return code == TCC_OP_nvvm_ctaid || code == TCC_OP_nvvm_nctaid || code == TCC_OP_nvvm_clusterid ||
           code == TCC_OP_nvvm_nclusterid || code == TCC_OP_amdgcn_wgid;
}

/* A tensor's parameter of which an op loads an element that is the same for all lanes; NULL: it does something else. */
static const tcc_value *loaded_from(const tcc_op *op)
{
    bool loads = op && op->code == TCC_OP_vec_extract && op->operands[0]->def &&
                 op->operands[0]->def->code == TCC_OP_nvvm_ld_global;
    return loads ? op->operands[0]->def->operands[0] : NULL;
}

static bool is_float(const tcc_value *v)
{
    return v->type->kind == TCC_KIND_scalar && tcc_scalar_classify(v->type->elem) == TCC_CLASS_FLOAT;
}

bool tcc_p_is_of_tiles(const tcc_value *v, bool *loads, unsigned depth)
{
    const tcc_op *op = v->def;
    if (depth > MAX_DEPTH)
        return false;
    if (!op)
        return v->block && (v->block->parent ? v->block->parent->code == TCC_OP_scf_for : is_float(v));
    if (loaded_from(op)) {
        *loads = true;
        return true;
    }
    bool any = op->code == TCC_OP_nvvm_ld_shared_word;
    for (unsigned i = 0; i < op->n_operands && !op->n_regions && op->n_operands <= 3; i++)
        any |= tcc_p_is_of_tiles(op->operands[i], loads, depth + 1);
    return any;
}

static bool compute(const place *at, const tcc_value *v, unsigned depth, tcc_pvalue *out);

/* A number that was drawn, by how many iterations ago. */
static bool take(const place *at, tcc_pvalue v, tcc_pvalue *out)
{
    const tcc_pwarp *w = &at->s->warps[at->warp];
    *out = v;
    for (uint32_t d = 0; d < w->depth && v.kind == TCC_P_DRAWN; d++)
        if (w->frames[d].of && w->frames[d].of->tests) {
            *out = tcc_p_drawn_symbol(at->p, v.v, v.delta - w->frames[d].iter);
            return true;
        }
    return v.kind == TCC_P_SYMBOL;
}

static bool argument(const place *at, const tcc_value *v, unsigned depth, tcc_pvalue *out)
{
    const tcc_pwarp *w = &at->s->warps[at->warp];
    const tcc_op *loop = v->block->parent;
    uint32_t d = 0;
    if (!loop)
        *out = tcc_p_first_value(at->p, v->index);
    while (d < w->depth && !(w->frames[d].of && w->frames[d].of->op == loop))
        d++;
    if (!loop || loop->code != TCC_OP_scf_for || d == w->depth)
        return !loop;
    const tcc_pframe *f = &w->frames[d];
    if (v->index) {
        uint32_t slot = f->code->args[v->index];
        return slot != TCC_P_NO_SLOT && take(at, *tcc_p_slot(at->p, at->s, at->warp, slot), out);
    }
    tcc_pvalue lo = tcc_p_known(f->lo), step = tcc_p_known(f->step);
    if (f->by_iterations && !(compute(at, loop->operands[0], depth + 1, &lo) &&
                              compute(at, loop->operands[2], depth + 1, &step)))
        return false;
    *out = f->record >= 0 && !f->known ? tcc_p_index_symbol(at->p, (uint32_t)f->bound, &lo, &step)
                                       : tcc_p_known(f->lo + f->iter * f->step);
    return true;
}

/* What an op gave that is in a region around. */
static bool given(const place *at, const tcc_op *op, tcc_pvalue *out)
{
    const tcc_pwarp *w = &at->s->warps[at->warp];
    for (uint32_t d = 0; d < w->depth; d++)
        for (size_t i = 0; i < w->frames[d].code->n; i++) {
            const tcc_pinst *in = &w->frames[d].code->insts[i];
            if (in->op == op)
                return in->results[0] != TCC_P_NO_SLOT &&
                       take(at, *tcc_p_slot(at->p, at->s, at->warp, in->results[0]), out);
        }
    return false;
}

/* An element of a tensor that nothing writes. */
static bool element(const place *at, const tcc_op *extract, unsigned depth, tcc_pvalue *out)
{
    const tcc_op *load = extract->operands[0]->def;
    const tcc_value *base = load->operands[0];
    tcc_pvalue args[2];
    bool is_param = base->block && !base->block->parent;
    if (!is_param || at->p->tensor_uses[at->p->tensors[base->index]] & TCC_P_WRITTEN || !at->p->tensors[base->index] ||
        !compute(at, load->operands[1], depth + 1, &args[0]) || !compute(at, load->operands[2], depth + 1, &args[1]))
        return false;
    int64_t nth = tcc_attr_int(&load->attrs, "disp", 0) + tcc_attr_int(&extract->attrs, "offset", 0);
    *out = tcc_p_element_symbol(at->p, base, nth, args);
    return true;
}

static bool compute(const place *at, const tcc_value *v, unsigned depth, tcc_pvalue *out)
{
    const tcc_op *op = v->def;
    tcc_pvalue args[3] = {0};
    int64_t c;
    if (depth > MAX_DEPTH)
        return false;
    if (!op)
        return argument(at, v, depth, out);
    if (tcc_value_is_int(v, &c)) {
        *out = tcc_p_known(c);
        return true;
    }
    if (op->code == TCC_OP_arith_const && is_float(v)) {
        *out = tcc_p_symbol(at->p, op, NULL, 0);
        return true;
    }
    if (loaded_from(op))
        return element(at, op, depth, out);
    if (is_of_launch(op->code) && !(op->code == TCC_OP_nvvm_ctaid && at->p->ctas > 1)) {
        *out = tcc_p_symbol(at->p, tcc_op_info_get(op->code), NULL, 0);
        return true;
    }
    if (op->code == TCC_OP_nvvm_uniform || op->code == TCC_OP_nvvm_opaque || op->code == TCC_OP_nvvm_after)
        return compute(at, op->operands[0], depth + 1, out);
    if (!(tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE) || op->n_operands > 3)
        return given(at, op, out);
    for (unsigned i = 0; i < op->n_operands; i++)
        if (!compute(at, op->operands[i], depth + 1, &args[i]))
            return false;
    bool is_of_floats = op->n_operands && is_float(op->operands[0]); /* no law of numbers is known of them */
    *out = is_of_floats ? tcc_p_symbol(at->p, op, args, op->n_operands) : tcc_p_compute(at->p, op, args);
    return out->kind == TCC_P_SYMBOL || tcc_p_is_exact(out);
}

bool tcc_p_uniform(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_value *v, tcc_pvalue *out)
{
    tcc_pvalue r;
    if (!compute(&(place){p, s, warp}, v, 0, &r) || r.kind != TCC_P_SYMBOL)
        return false;
    *out = r;
    return true;
}

/* place: where in a tensor an access is, as ranges along its dimensions.
 *
 * Of a copy those are its coordinates and its box. What threads access has an index of elements,
 * which is taken apart into coordinates: of (a + b) * N + N + c, with rows of N elements, a + b + 1 and c.
 * Along a dimension one number may be a symbol, which another access must have, too, if anything is
 * to be known; the others are lists of a number a lane, of which there are a least and a greatest.
 *
 * Coordinates are believed to be inside of the tensor, but for those that begin where it ends: there is nothing.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

/* ---- coordinates of an access -------------------------------------------------------------- */

static const tcc_attr *recipe_of(const tcc_protocol *p, uint32_t map)
{
    return tcc_attr_list(&p->f->attrs, "params").list.items[map].list.items;
}

static bool is_product(tcc_attr a)
{
    bool is = a.kind == TCC_ATTR_LIST;
    for (size_t i = 0; is && i < a.list.n; i++)
        is = a.list.items[i].kind == TCC_ATTR_INT || a.list.items[i].kind == TCC_ATTR_STR;
    return is;
}

/* Whether a parameter is a map whose dimensions, strides and box go together. */
static bool is_map(const tcc_protocol *p, uint32_t i)
{
    if (!p->box_bytes[i])
        return false;
    const tcc_attr *recipe = recipe_of(p, i);
    size_t rank = recipe[4].list.n;
    return rank && rank <= TCC_P_RANK && recipe[2].list.n == rank && is_product(recipe[2]) &&
           recipe[3].list.n + 1 == rank;
}

/* Whether a parameter is one whose strides are products, so that an index can be taken apart. */
static bool has_strides(const tcc_protocol *p, uint32_t i)
{
    bool has = is_map(p, i);
    for (size_t d = 0; has && d < recipe_of(p, i)[3].list.n; d++)
        has = is_product(recipe_of(p, i)[3].list.items[d]);
    return has;
}

/* What the terms of an index are multiplied with so far. */
typedef struct factors {
    const char *dims[TCC_P_RANK];
    size_t n;
    int64_t constant;
} factors;

typedef struct finder {
    tcc_protocol *p;
    tcc_pplace *place;
    const tcc_attr *strides; /* of each dimension but the first, a list of numbers to multiply */
} finder;

/* The name of a dimension that is a parameter; NULL for anything else. */
static const char *dim_name(const tcc_protocol *p, const tcc_value *v)
{
    tcc_attr params = tcc_attr_list(&p->f->attrs, "params");
    for (size_t i = 0; i < p->f->body->n_args && i < params.list.n; i++)
        if (p->f->body->args[i] == v && tcc_attr_is_record(params.list.items[i], "dim", "s"))
            return params.list.items[i].list.items[1].s;
    return NULL;
}

static bool is_stride(const factors *f, const tcc_attr *stride)
{
    int64_t constant = 1;
    size_t named = 0;
    for (size_t i = 0; i < stride->list.n; i++) {
        const tcc_attr *item = &stride->list.items[i];
        size_t here = 0, there = 0;
        if (item->kind == TCC_ATTR_LIST) /* rounded up */
            return false;
        if (item->kind == TCC_ATTR_INT) {
            constant *= item->i;
            continue;
        }
        named++;
        for (size_t k = 0; k < f->n; k++)
            here += !strcmp(f->dims[k], item->s);
        for (size_t k = 0; k < stride->list.n; k++)
            there += stride->list.items[k].kind == TCC_ATTR_STR &&
                     !strcmp(stride->list.items[k].s, item->s);
        if (here != there)
            return false;
    }
    return named == f->n && constant == f->constant;
}

/* The dimension, other than the first, whose stride f is; 0 for none. */
static unsigned strided_dim(const finder *d, const factors *f)
{
    unsigned dim = 0;
    for (unsigned k = 1; k < d->place->rank; k++)
        if (is_stride(f, &d->strides[k - 1]))
            dim = k;
    return dim;
}

static bool add_term(const finder *d, const tcc_value *v, const factors *f)
{
    tcc_pplace *place = d->place;
    bool one = !f->n && f->constant == 1;
    unsigned dim = one ? 0 : strided_dim(d, f);
    if ((!one && !dim) || place->n_terms == TCC_P_TERMS)
        return false;
    place->terms[place->n_terms++] = (tcc_pterm){.dim = dim, .value = v};
    return true;
}

static const tcc_value *uncast(const tcc_value *v)
{
    while (v->def && v->def->code == TCC_OP_arith_cast &&
           tcc_scalar_widens(v->def->operands[0]->type->elem, v->type->elem))
        v = v->def->operands[0];
    return v;
}

/* Multiplies f with all that v is a product of, dimensions and constants; false when v is not such a product. */
static bool multiply(const finder *d, const tcc_value *v, factors *f, unsigned depth)
{
    int64_t c;
    v = uncast(v);
    const char *name = dim_name(d->p, v);
    if (name && f->n < TCC_P_RANK) {
        f->dims[f->n++] = name;
        return true;
    }
    if (tcc_value_is_int(v, &c) && c > 0 && c <= INT32_MAX && f->constant <= INT32_MAX) {
        f->constant *= c;
        return true;
    }
    bool product = v->def && v->def->code == TCC_OP_arith_mul && depth < TCC_P_RANK;
    return product && multiply(d, v->def->operands[0], f, depth + 1) &&
           multiply(d, v->def->operands[1], f, depth + 1);
}

/* Whether v, a product of extents, times f is a stride: then it is one further along a dimension. */
static bool add_stride(const finder *d, const tcc_value *v, factors f)
{
    size_t n = f.n;
    if (!multiply(d, v, &f, 0) || f.n == n)
        return false;
    unsigned dim = strided_dim(d, &f);
    d->place->from[dim] += dim ? 1 : 0;
    return dim;
}

/* Takes an index apart. */
static bool find_terms(const finder *d, const tcc_value *v, factors f, unsigned depth)
{
    enum { MAX_DEPTH = 32 };
    const tcc_op *op = v->def;
    if (depth > MAX_DEPTH)
        return false;
    if (add_stride(d, v, f))
        return true;
    if (op && op->code == TCC_OP_arith_cast &&
        tcc_scalar_widens(op->operands[0]->type->elem, v->type->elem))
        return find_terms(d, op->operands[0], f, depth + 1);
    if (op && op->code == TCC_OP_arith_add)
        return find_terms(d, op->operands[0], f, depth + 1) &&
               find_terms(d, op->operands[1], f, depth + 1);
    for (unsigned i = 0; op && op->code == TCC_OP_arith_mul && i < 2; i++) {
        factors more = f;
        if (!multiply(d, op->operands[i], &more, 0))
            continue;
        tcc_pplace before = *d->place;
        if (find_terms(d, op->operands[!i], more, depth + 1))
            return true;
        if (more.n > f.n) /* by a dimension that is not a stride: nothing is known of it */
            return false;
        *d->place = before; /* what is multiplied is itself a coordinate */
    }
    return add_term(d, v, &f);
}

/* What is asked of a copy's coordinate, its remainder: so many neighbours are told apart. */
static int64_t modulus_of(int64_t box)
{
    enum { NEIGHBOURS = 4 };
    return box & (box - 1) ? 1 : box * NEIGHBOURS;
}

static void find_box(const tcc_attr *recipe, const tcc_op *op, unsigned first, tcc_pplace *place)
{
    if (recipe[4].list.n == op->n_operands - first)
        place->rank = op->n_operands - first;
    for (unsigned i = 0; i < place->rank; i++) {
        int64_t box = recipe[4].list.items[i].i;
        place->terms[place->n_terms++] = (tcc_pterm){
            .dim = i, .value = op->operands[first + i], .modulus = modulus_of(box)};
        place->length[i] = box;
    }
}

static void find_elements(tcc_protocol *p, const tcc_attr *recipe, const tcc_op *op,
                          tcc_pplace *place)
{
    finder d = {.p = p, .place = place, .strides = recipe[3].list.items};
    place->rank = (uint32_t)recipe[4].list.n;
    if (!find_terms(&d, op->operands[1], (factors){.constant = 1}, 0)) {
        place->rank = 0;
        place->n_terms = 0;
        return;
    }
    for (unsigned i = 0; i < place->n_terms; i++)
        place->terms[i].modulus = 1;
    for (unsigned i = 0; i < place->rank; i++)
        place->length[i] = i ? 1 : tcc_type_count(tcc_op_moves(op));
    place->from[0] = tcc_attr_int(&op->attrs, "disp", 0);
}

/* The first parameter that is a map of the tensor, with strides; the number of parameters when there is none. */
static uint32_t map_of(const tcc_protocol *p, uint32_t tensor)
{
    uint32_t n = (uint32_t)p->f->body->n_args, i = 0;
    while (i < n &&
           (!has_strides(p, i) || strcmp(recipe_of(p, i)[1].s, recipe_of(p, tensor - 1)[1].s) != 0))
        i++;
    return i;
}

tcc_pplace *tcc_p_place_find(tcc_protocol *p, const tcc_op *op, uint32_t tensor)
{
    tcc_pplace *place = TCC_NEW(p->scratch, tcc_pplace);
    const tcc_global_use use = tcc_op_global_use(op->code);
    unsigned first = tcc_op_info_get(op->code)->n_operands; /* coordinate of a box */
    place->map = map_of(p, tensor);
    for (uint32_t i = 0; use.async && i < p->f->body->n_args; i++)
        if (p->f->body->args[i] == op->operands[use.operand])
            place->map = is_map(p, i) ? i : (uint32_t)p->f->body->n_args;
    if (place->map == p->f->body->n_args)
        return place;
    if (use.async)
        find_box(recipe_of(p, place->map), op, first, place);
    else
        find_elements(p, recipe_of(p, place->map), op, place);
    return place;
}

bool tcc_p_place_join(tcc_pplace *place, const tcc_pplace *other)
{
    int64_t from = place->from[0] < other->from[0] ? place->from[0] : other->from[0];
    int64_t end = place->from[0] + place->length[0], other_end = other->from[0] + other->length[0];
    bool like = place->map == other->map && place->rank == other->rank &&
                place->n_terms == other->n_terms;
    for (unsigned d = 1; like && d < place->rank; d++)
        like = place->from[d] == other->from[d];
    for (unsigned i = 0; like && i < place->n_terms; i++)
        like = place->terms[i].value == other->terms[i].value &&
               place->terms[i].dim == other->terms[i].dim;
    if (!like)
        return false;
    place->from[0] = from;
    place->length[0] = (end > other_end ? end : other_end) - from;
    return true;
}

/* ---- ranges -------------------------------------------------------------------------------- */

/* The least and the greatest number of some lanes; false when they are not known. */
static bool bounds_of(const tcc_protocol *p, const tcc_pvalue *v, tcc_lane_mask lanes,
                      int64_t *least, int64_t *most)
{
    *least = INT64_MAX;
    *most = INT64_MIN;
    for (unsigned l = 0; l < p->n_lanes; l++) {
        int64_t n;
        if (!(lanes >> l & 1))
            continue;
        if (!tcc_p_lane(p, v, l, &n))
            return false;
        *least = n < *least ? n : *least;
        *most = n > *most ? n : *most;
    }
    return true;
}

bool tcc_p_place_at(const tcc_protocol *p, const tcc_pstate *s, unsigned warp, tcc_lane_mask lanes,
                    const tcc_pplace *place, tcc_prange_of *at)
{
    for (unsigned d = 0; d < place->rank; d++)
        at[d] = (tcc_prange_of){.from = tcc_p_known(0),
                                .least = place->from[d],
                                .end = place->from[d] + place->length[d]};
    for (unsigned i = 0; i < place->n_terms; i++) {
        tcc_prange_of *r = &at[place->terms[i].dim];
        const tcc_pvalue *v = tcc_p_slot(p, s, warp, place->terms[i].slot);
        int64_t least, most;
        if (bounds_of(p, v, lanes, &least, &most)) {
            r->least += least;
            r->end += most;
        } else if ((v->kind == TCC_P_SYMBOL || v->kind == TCC_P_KNOWN) &&
                   tcc_p_is_exact(&r->from)) {
            r->from = *v;
        } else {
            return false;
        }
    }
    return place->rank > 0;
}

/* Whether a range begins at an extent, or behind it. */
static bool is_behind(tcc_protocol *p, const tcc_prange_of *at, tcc_attr extent)
{
    tcc_attr params = tcc_attr_list(&p->f->attrs, "params");
    tcc_pvalue end = tcc_p_known(extent.i);
    for (size_t i = 0; extent.kind == TCC_ATTR_STR && i < params.list.n; i++)
        if (tcc_p_is_dim(p, i) && !strcmp(params.list.items[i].list.items[1].s, extent.s))
            end = tcc_p_dim(p, i);
    if (tcc_p_is_exact(&at->from))
        return tcc_p_is_exact(&end) && extent.kind == TCC_ATTR_INT && at->from.v + at->least >= end.v;
    return end.kind == TCC_P_SYMBOL && at->from.kind == TCC_P_SYMBOL && at->from.v == end.v &&
           at->from.delta == end.delta && at->from.offset + at->least >= end.offset;
}

bool tcc_p_place_is_outside(tcc_protocol *p, const tcc_pplace *place, const tcc_prange_of *at)
{
    bool outside = false;
    for (unsigned d = 0; d < place->rank && !outside; d++)
        outside = is_behind(p, &at[d], recipe_of(p, place->map)[2].list.items[d]);
    return outside;
}

/* ---- two places ---------------------------------------------------------------------------- */

static bool are_equal(tcc_attr a, tcc_attr b)
{
    if (a.kind != b.kind)
        return false;
    if (a.kind != TCC_ATTR_LIST)
        return a.kind == TCC_ATTR_INT ? a.i == b.i : !strcmp(a.s, b.s);
    bool equal = a.list.n == b.list.n;
    for (size_t i = 0; equal && i < a.list.n; i++)
        equal = are_equal(a.list.items[i], b.list.items[i]);
    return equal;
}

/* The innermost loop of unknown iterations; NULL for none. */
static const tcc_pframe *inner_loop(const tcc_pwarp *w)
{
    for (uint32_t d = w->depth; d-- > 0;)
        if (w->frames[d].record >= 0)
            return &w->frames[d];
    return NULL;
}

/* Whether an earlier access was made in the iterations in which its warp and another are. */
static bool is_of_this_iteration(const tcc_pstate *s, const tcc_pglobal *g, unsigned warp)
{
    const tcc_pframe *x = inner_loop(&s->warps[g->warp]), *y = inner_loop(&s->warps[warp]);
    return !g->passed && (g->warp == warp ||
                          (x && y && x->record == y->record && tcc_p_position(x) == tcc_p_position(y)));
}

/* y - x, plus any multiple of *modulo, which may be 0; false when nothing is known of it. */
static bool distance(const tcc_protocol *p, const tcc_pvalue *x, const tcc_pvalue *y,
                     bool same_warp, bool same_iteration, int64_t *r, int64_t *modulo)
{
    *modulo = 0;
    *r = y->v - x->v;
    if (x->kind != y->kind)
        return false;
    if (x->kind == TCC_P_SYMBOL) {
        *r = (int64_t)y->offset - x->offset;
        return x->v == y->v && x->delta == y->delta &&
               (same_iteration || !tcc_p_symbol_get(p, x->v)->varies);
    }
    if (x->kind != TCC_P_KNOWN)
        return false;
    if (same_warp && same_iteration && x->loop && x->loop == y->loop && x->delta && y->delta)
        *r = (int64_t)y->offset - x->offset;
    else
        *modulo = tcc_gcd(x->delta, y->delta);
    return true;
}

/* Two ranges along a dimension; y's number is x's plus r, and plus any multiple of `modulo`. */
static tcc_prelation relate(const tcc_prange_of *x, const tcc_prange_of *y, int64_t r,
                            int64_t modulo)
{
    int64_t above = x->least - y->end, below = x->end - y->least; /* they meet when r is between */
    if (modulo)
        r = above + 1 + ((r - above - 1) % modulo + modulo) % modulo;
    return r <= above || r >= below ? TCC_P_APART : modulo ? TCC_P_NOT_KNOWN : TCC_P_TOGETHER;
}

tcc_prelation tcc_p_place_compare(const tcc_protocol *p, const tcc_pstate *s, const tcc_pglobal *x,
                                  const tcc_pglobal *y)
{
    if (!x->rank || !y->rank)
        return TCC_P_NOT_KNOWN;
    const tcc_attr *of_x = recipe_of(p, x->map), *of_y = recipe_of(p, y->map);
    bool iteration = is_of_this_iteration(s, x, y->warp);
    tcc_prelation all = x->async && y->async ? TCC_P_TOGETHER : TCC_P_NOT_KNOWN;
    if (!are_equal(of_x[2], of_y[2]) || !are_equal(of_x[3], of_y[3]))
        return TCC_P_NOT_KNOWN; /* the tensor is taken for one of another shape */
    for (unsigned d = 0; d < x->rank; d++) {
        int64_t r, modulo;
        tcc_prelation along = TCC_P_NOT_KNOWN;
        if (distance(p, &x->at[d].from, &y->at[d].from, x->warp == y->warp, iteration, &r, &modulo))
            along = relate(&x->at[d], &y->at[d], r, modulo);
        if (along == TCC_P_APART)
            return TCC_P_APART;
        all = along == TCC_P_NOT_KNOWN ? TCC_P_NOT_KNOWN : all;
    }
    return all;
}

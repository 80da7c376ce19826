/* index_reach: launch conditions under which coordinates that are computed are i32.
 *
 * An expression is at most the sum of its positive terms where every index has its last value, and at least that of its
 * negative ones. A launch whose extents would make this more than an i32 is refused, rather than that it read elements
 * which the expression does not name.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/access.h"
#include "passes/tiling.h"

/* Of the terms with a sign, or of all (0): their magnitude. In dimensions and numbers; NULL if that is not an
 * expression. */
static const tcc_index_expr *reach_of(tcc_func *f, const tcc_index_expr *x, int sign);

/* The largest value of an index or a dimension. */
static const tcc_index_expr *most_of(tcc_func *f, const tcc_index_factor *factor)
{
    if (factor->kind == TCC_FACTOR_DIM)
        return tcc_index_dim(f->ir, factor->name);
    tcc_dim d = tcc_index_extent(f, factor->name);
    return d.name ? tcc_index_sub(f->ir, tcc_index_dim(f->ir, d.name), tcc_index_number(f->ir, 1))
                  : tcc_index_number(f->ir, d.size - 1);
}

static bool has_quotient(const tcc_index_expr *x)
{
    bool has = false;
    for (size_t i = 0; i < x->n; i++)
        for (size_t n = 0; n < x->terms[i].n; n++)
            has |= x->terms[i].factors[n].kind == TCC_FACTOR_QUOTIENT;
    return has;
}

/* What quotients are multiplied by is divided as they are, if that leaves nothing; else they count as what they
 * divide. */
static const tcc_index_expr *reach_of_term(tcc_func *f, const tcc_index_term *term)
{
    const tcc_index_expr *p = tcc_index_number(f->ir, term->number < 0 ? -term->number : term->number);
    for (size_t n = 0; n < term->n; n++)
        if (term->factors[n].kind != TCC_FACTOR_QUOTIENT)
            p = tcc_index_mul(f->ir, p, most_of(f, &term->factors[n]));
    for (size_t n = 0; n < term->n; n++) {
        const tcc_index_factor *q = &term->factors[n];
        if (q->kind != TCC_FACTOR_QUOTIENT)
            continue;
        const tcc_index_expr *rest = tcc_index_div(f->ir, p, q->by);
        p = tcc_index_mul(f->ir, rest && !has_quotient(rest) ? rest : p, reach_of(f, q->of, 0));
    }
    return p;
}

static const tcc_index_expr *reach_of(tcc_func *f, const tcc_index_expr *x, int sign)
{
    const tcc_index_expr *sum = tcc_index_number(f->ir, 0);
    for (size_t i = 0; i < x->n; i++)
        if (!sign || (sign < 0) == (x->terms[i].number < 0))
            sum = tcc_index_add(f->ir, sum, reach_of_term(f, &x->terms[i]));
    return sum;
}

static void require(tcc_func *f, tcc_attr condition)
{
    tcc_attr have = tcc_attr_list(&f->attrs, "requires");
    for (size_t i = 0; i < have.list.n; i++)
        if (tcc_attr_equal(&have.list.items[i], &condition))
            return;
    tcc_attr_append(f->ir, &f->attrs, "requires", condition);
}

/* That number * the dimensions of a term is at most so much. */
static void require_term(tcc_func *f, const tcc_index_term *term, int64_t most)
{
    tcc_attr *dims = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, term->n);
    tcc_attr *items = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, 4);
    for (size_t i = 0; i < term->n; i++)
        dims[i] = (tcc_attr){.kind = TCC_ATTR_STR, .s = term->factors[i].name};
    items[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = tcc_ir_name(f->ir, "span")};
    items[1] = (tcc_attr){.kind = TCC_ATTR_LIST, .list = {dims, term->n}};
    items[2] = (tcc_attr){.kind = TCC_ATTR_INT, .i = term->number};
    items[3] = (tcc_attr){.kind = TCC_ATTR_INT, .i = most};
    require(f, (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items, 4}});
}

/* Whether nothing is added but one extent and a small number: extents are far from the largest i32. */
static bool is_an_extent(const tcc_index_expr *reach)
{
    enum { SMALL = 1 << 20 };
    bool is = true;
    int extents = 0;
    for (size_t i = 0; i < reach->n; i++) {
        const tcc_index_term *term = &reach->terms[i];
        if (term->number < 0)
            continue;
        extents += term->n == 1;
        is &= term->n == 1 ? term->number == 1 : !term->n && term->number <= SMALL;
    }
    return is && extents <= 1;
}

/* What is subtracted makes it only less. */
static void require_i32(tcc_func *f, const tcc_index_expr *reach)
{
    int64_t added = 0;
    for (size_t i = 0; i < reach->n; i++)
        added += reach->terms[i].number > 0;
    for (size_t i = 0; i < reach->n && !is_an_extent(reach); i++)
        if (reach->terms[i].n && reach->terms[i].number > 0)
            require_term(f, &reach->terms[i], INT32_MAX / added);
}

void tcc_require_reach(tcc_func *f, const tcc_index_expr *x)
{
    for (size_t i = 0; i < x->n; i++)
        for (size_t n = 0; n < x->terms[i].n; n++)
            if (x->terms[i].factors[n].kind == TCC_FACTOR_QUOTIENT)
                tcc_require_reach(f, x->terms[i].factors[n].of);
    for (int sign = -1; sign <= 1; sign += 2) {
        const tcc_index_expr *reach = reach_of(f, x, sign);
        if (reach)
            require_i32(f, reach);
    }
}

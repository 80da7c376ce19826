/* The types of expressions. Everything is computed in f32 or, if all operands are f64 or integers, in
 * f64 or i32; a literal takes the type of the other operand. Nothing is converted implicitly.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <math.h>
#include <string.h>

#include "frontend/sema.h"
#include "ir/number.h"
#include "ir/rules.h"

tcc_ast_type tcc_sema_type_of(tcc_scalar elem)
{
    return tcc_scalar_classify(elem) == TCC_CLASS_INT ? TCC_AST_INT : elem == TCC_f64 ? TCC_AST_DOUBLE : TCC_AST_FLOAT;
}

tcc_scalar tcc_sema_elem_of(tcc_ast_type type)
{
    return type == TCC_AST_INT || type == TCC_AST_WHOLE ? TCC_i32
           : type == TCC_AST_BOOL                       ? TCC_i1
           : type == TCC_AST_DOUBLE                     ? TCC_f64
                                                        : TCC_f32;
}

/* How messages call what an expression is: its declared element, or what it is computed in. */
static const char *type_name(const tcc_ast_expr *e)
{
    return e->param ? tcc_scalar_name(e->param->elem) : tcc_scalar_name(tcc_sema_elem_of(e->type));
}

/* ---- numbers without a type -------------------------------------------------------------- */

/* Whether an expression takes the type of what it is beside. */
static bool is_open(const tcc_ast_expr *e)
{
    return e->type == TCC_AST_LITERAL || e->type == TCC_AST_WHOLE;
}

/* The first number in an expression that no i32 is, NULL when there is none. */
static const tcc_ast_expr *find_no_i32(const tcc_ast_stmt *stmt, const tcc_ast_expr *e)
{
    for (size_t i = e->first;; i++) {
        const tcc_ast_expr *part = stmt->exprs.data[i];
        if (part->kind == TCC_AST_NUMBER && part->type == TCC_AST_LITERAL &&
            (part->number != trunc(part->number) || fabs(part->number) > INT32_MAX))
            return part;
        if (part == e)
            return NULL;
    }
}

bool tcc_sema_report_large(tcc_sema *s, const tcc_ast_stmt *stmt, const tcc_ast_expr *e)
{
    for (size_t i = e->first;; i++) {
        const tcc_ast_expr *part = stmt->exprs.data[i];
        if (part->kind == TCC_AST_NUMBER && part->number == trunc(part->number) && fabs(part->number) > INT32_MAX) {
            tcc_error(s->diag, TCC_ERR_TYPE, part->name.loc, "a whole number must be at most %d", INT32_MAX);
            return true;
        }
        if (part == e)
            return false;
    }
}

/* Whether a float type has a number that is next to it, other than 0 and infinity. */
static bool check_number(tcc_sema *s, tcc_loc loc, double number, tcc_scalar elem)
{
    double next = tcc_round_float(number, elem);
    if (isfinite(next) && (next != 0 || number == 0))
        return true;
    tcc_error(s->diag, TCC_ERR_TYPE, loc, "number out of the range of %s", tcc_scalar_name(elem));
    return false;
}

static bool divides(const tcc_function *f)
{
    return f->code == TCC_OP_arith_div || f->code == TCC_OP_arith_floor_rem;
}

/* Whole numbers are divided by positive ones. */
static bool check_divisor(tcc_sema *s, const tcc_ast_expr *e)
{
    int64_t by;
    if (e->type != TCC_AST_INT || !divides(e->function))
        return true;
    const tcc_ast_expr *divisor = e->args[1];
    if (!divisor->at || !tcc_index_is_number(divisor->at, &by) || by > 0)
        return true;
    tcc_error(s->diag, TCC_ERR_TYPE, divisor->name.loc, "a whole number is divided by a positive one, not by %lld",
              (long long)by);
    return false;
}

static bool resolve(tcc_sema *s, const tcc_ast_stmt *stmt, tcc_ast_expr *e, tcc_ast_type type)
{
    bool valid = true;
    for (size_t i = e->first;; i++) {
        tcc_ast_expr *part = stmt->exprs.data[i];
        if (is_open(part)) {
            part->type = type;
            if (part->kind == TCC_AST_NUMBER && type != TCC_AST_INT)
                valid &= check_number(s, part->name.loc, part->number, tcc_sema_elem_of(type));
            valid &= part->kind != TCC_AST_APPLY || check_divisor(s, part);
        }
        if (part == e)
            return valid;
    }
}

bool tcc_sema_resolve(tcc_sema *s, const tcc_ast_stmt *stmt, tcc_ast_expr *e, tcc_ast_type type)
{
    if (!is_open(e))
        return e->type == type;
    const tcc_ast_expr *wrong = type == TCC_AST_INT ? find_no_i32(stmt, e) : NULL;
    if (wrong)
        tcc_error(s->diag, TCC_ERR_TYPE, wrong->name.loc,
                  "a number beside an i32 must be whole and at most %d; or convert the i32 with "
                  "'f32'",
                  INT32_MAX);
    return !wrong && resolve(s, stmt, e, type);
}

/* ---- functions and operators --------------------------------------------------------------- */

static bool is_condition(const tcc_ast_expr *e, size_t i)
{
    return e->function->code == TCC_OP_arith_select && i == 0;
}

/* Whether a number is written as no integer is. */
static bool is_fraction(const tcc_ast_expr *e)
{
    return e->kind == TCC_AST_NUMBER && *e->name.text >= '0' && *e->name.text <= '9' && strpbrk(e->name.text, ".eE");
}

/* What operands without a type are together: numbers that are not whole, or not written so, make floats of indices. */
static tcc_ast_type join_open(const tcc_ast_stmt *stmt, const tcc_ast_expr *e)
{
    bool whole = false, fraction = false;
    for (size_t i = 0; i < e->n_args; i++) {
        bool open = !is_condition(e, i);
        whole |= open && e->args[i]->type == TCC_AST_WHOLE;
        fraction |= open && (is_fraction(e->args[i]) || find_no_i32(stmt, e->args[i]));
    }
    return whole && fraction ? TCC_AST_FLOAT : whole ? TCC_AST_WHOLE : TCC_AST_LITERAL;
}

/* What the operands are together; ERROR, reported, when they are not one. */
static tcc_ast_type join(tcc_sema *s, const tcc_ast_stmt *stmt, const tcc_ast_expr *e)
{
    const tcc_ast_expr *first = NULL;
    for (size_t i = 0; i < e->n_args; i++) {
        const tcc_ast_expr *arg = e->args[i];
        if (is_condition(e, i) || is_open(arg))
            continue;
        if (first && first->type != arg->type) {
            tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc,
                      "'%s' of %s and %s: one of them must be converted, as in '%s(…)'",
                      e->function->name, type_name(first), type_name(arg),
                      first->type == TCC_AST_DOUBLE || arg->type == TCC_AST_DOUBLE ? "f64" : "f32");
            return TCC_AST_ERROR;
        }
        first = arg;
    }
    return first ? first->type : join_open(stmt, e);
}

/* Whether an op has no meaning for integers, or none is known for f64: the verifier's rule for it says so. */
static bool is_for_floats(tcc_opcode code)
{
    const char *rule = tcc_element_rule(code);
    return rule && !strncmp(rule, "float", 5);
}

static bool is_for_f32(tcc_opcode code)
{
    const char *rule = tcc_element_rule(code);
    return rule && !strncmp(rule, "float32", 7);
}

static bool can_take(tcc_sema *s, const tcc_ast_expr *e, tcc_ast_type type)
{
    if (type == TCC_AST_DOUBLE && is_for_f32(e->function->code)) {
        tcc_sema_unsupported(s, e->name.loc,
                             tcc_arena_printf(s->arena, "'%s' of f64; compute it in f32, as in 'f64(%s(f32(…)))'",
                                              e->function->name, e->function->name));
        return false;
    }
    if (e->function->code == TCC_OP_arith_floor_rem && (type == TCC_AST_FLOAT || type == TCC_AST_DOUBLE)) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc, "'%%' takes integers, and this is %s",
                  tcc_scalar_name(tcc_sema_elem_of(type)));
        return false;
    }
    if (type != TCC_AST_INT)
        return true;
    if (is_for_floats(e->function->code)) {
        tcc_error(s->diag, TCC_ERR_TYPE, e->name.loc,
                  "'%s' takes no integer: convert it, as in '%s(f32(…))'", e->function->name,
                  e->function->name);
        return false;
    }
    return true;
}

/* What operands without a type become where the function does not leave that open. */
static tcc_ast_type type_of_open(const tcc_ast_expr *e, tcc_ast_type type)
{
    const tcc_function *f = e->function;
    bool floats = is_for_floats(f->code), compares = f->code == TCC_OP_arith_cmp;
    if (type == TCC_AST_WHOLE)
        return floats ? TCC_AST_FLOAT : divides(f) || compares ? TCC_AST_INT : type;
    if (type != TCC_AST_LITERAL)
        return type;
    return f->code == TCC_OP_arith_floor_rem ? TCC_AST_INT
           : floats || compares || (divides(f) && !e->counts) ? TCC_AST_FLOAT
                                                              : type;
}

bool tcc_sema_apply_type(tcc_sema *s, const tcc_ast_stmt *stmt, tcc_ast_expr *e)
{
    const tcc_function *f = e->function;
    bool compares = f->code == TCC_OP_arith_cmp;
    if (f->code == TCC_OP_arith_cast) {
        e->type = tcc_sema_type_of(f->to);
        bool is_whole = e->type != TCC_AST_INT || !find_no_i32(stmt, e->args[0]);
        if (e->args[0]->type == TCC_AST_WHOLE)
            return tcc_sema_resolve(s, stmt, e->args[0], TCC_AST_INT);
        return e->args[0]->type != TCC_AST_LITERAL ||
               resolve(s, stmt, e->args[0], is_whole ? e->type : TCC_AST_FLOAT);
    }
    if (f->code == TCC_OP_arith_and) {
        e->type = TCC_AST_BOOL;
        return true;
    }
    tcc_ast_type type = join(s, stmt, e);
    if (!type || !can_take(s, e, type))
        return false;
    type = type_of_open(e, type);
    bool open = type == TCC_AST_LITERAL || type == TCC_AST_WHOLE;
    for (size_t i = 0; i < e->n_args; i++)
        if (!open && !is_condition(e, i) && !tcc_sema_resolve(s, stmt, e->args[i], type))
            return false;
    e->type = compares ? TCC_AST_BOOL : type;
    return check_divisor(s, e);
}

/* ---- sums ---------------------------------------------------------------------------------- */

/* Operands of one family can be multiplied with each other. */
static const struct {
    tcc_scalar elem;
    int family;
} factors[] = {
    {TCC_f16, 1}, {TCC_bf16, 2}, {TCC_e4m3, 3}, {TCC_e5m2, 3},
    {TCC_i8, 4},  {TCC_u8, 4},   {TCC_i4, 5},   {TCC_u4, 5},   {TCC_f32, 6},  {TCC_f64, 7},
    {TCC_tf32, 8},
};

static int family_of(tcc_scalar elem)
{
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++)
        if (factors[i].elem == elem)
            return factors[i].family;
    return 0;
}

/* The type in which an operand is multiplied directly: a tensor's element type, or the type of a
 * conversion. False if it is computed in f32 or f64. */
static bool find_elem(const tcc_ast_expr *e, tcc_scalar *elem)
{
    const tcc_ast_param *stored;
    e = tcc_sema_meaning(e, &stored);
    bool rounds = e->kind == TCC_AST_APPLY && e->function->code == TCC_OP_arith_cast &&
                  e->function->to != tcc_sema_elem_of(tcc_sema_type_of(e->function->to));
    if (!stored && e->kind != TCC_AST_READ && !rounds)
        return false;
    *elem = stored ? stored->elem : e->kind == TCC_AST_APPLY ? e->function->to : e->param->elem;
    return true;
}

/* The element types of a product that matrix instructions can multiply, where they are of one family; an operand that
 * is computed in f32 is then rounded to what the other one is of. */
static bool find_elems(const tcc_ast_expr *term, tcc_scalar elems[2])
{
    bool found[2];
    for (int i = 0; i < 2; i++)
        found[i] = find_elem(term->args[i], &elems[i]);
    for (int i = 0; i < 2; i++) {
        if (found[i])
            continue;
        elems[i] = elems[1 - i];
        if (!found[1 - i] || (elems[i] != TCC_f16 && elems[i] != TCC_bf16 && elems[i] != TCC_tf32))
            return false;
    }
    for (int i = 0; i < 2; i++) {
        term->args[i]->rounded = !found[i];
        term->args[i]->rounded_to = elems[i];
    }
    return family_of(elems[0]) && family_of(elems[0]) == family_of(elems[1]);
}

bool tcc_sema_reduction_type(tcc_sema *s, const tcc_ast_stmt *stmt, tcc_ast_expr *e, bool is_contraction)
{
    tcc_ast_expr *term = e->args[0];
    if (is_open(term) && !tcc_sema_resolve(s, stmt, term, term->type == TCC_AST_WHOLE ? TCC_AST_INT : TCC_AST_FLOAT))
        return false;
    e->type = term->type;
    if (term->type == TCC_AST_BOOL) {
        tcc_error(s->diag, TCC_ERR_TYPE, term->name.loc, "a comparison can only be the condition of 'where'");
        return false;
    }
    tcc_scalar elems[2], usual = tcc_sema_elem_of(term->type);
    is_contraction = is_contraction && find_elems(term, elems);
    if (!e->accumulator.text)
        e->accumulator_elem = usual;
    tcc_scalar elem = e->accumulator_elem;
    if (elem == usual || !s->kernel->valid) /* else the type may be wrong already */
        return elem == usual;
    if (!is_contraction)
        tcc_sema_unsupported(s, e->accumulator.loc, tcc_arena_printf(s->arena, "a sum in %s of anything but products",
                                                                     tcc_scalar_name(elem)));
    else if (usual != TCC_f32 || (elem != TCC_f16 && elem != TCC_bf16))
        tcc_error(s->diag, TCC_ERR_TYPE, e->accumulator.loc,
                  "products of %s and %s are accumulated in %s, not in %s", tcc_scalar_name(elems[0]),
                  tcc_scalar_name(elems[1]), usual == TCC_f32 ? "f32, f16 or bf16" : tcc_scalar_name(usual),
                  tcc_scalar_name(elem));
    else
        return true;
    return false;
}

/* ---- parameters and results ---------------------------------------------------------------- */

void tcc_sema_param_type(tcc_sema *s, const tcc_ast_param *param)
{
    tcc_scalar elem = param->elem;
    bool written = param->role == TCC_ROLE_OUT || param->role == TCC_ROLE_INOUT;
    const char *what = NULL;
    if (written && tcc_scalar_bits(elem) < 8)
        what = "'%s' as %s, since two results would share a byte";
    else if (param->role == TCC_ROLE_SCALAR && elem != TCC_f64 && elem != TCC_f32 && elem != TCC_f16 &&
             elem != TCC_bf16 && elem != TCC_i32)
        what = "scalar '%s' as %s; it can be f64, f32, f16, bf16 or i32";
    if (what)
        tcc_sema_unsupported(
            s, param->name.loc,
            tcc_arena_printf(s->arena, what, param->name.text, tcc_scalar_name(elem)));
}

bool tcc_sema_result_type(tcc_sema *s, const tcc_ast_stmt *stmt)
{
    tcc_ast_expr *root = stmt->exprs.data[stmt->exprs.len - 1];
    tcc_scalar elem = stmt->output ? stmt->output->elem : TCC_f32;
    tcc_ast_type want = tcc_sema_type_of(elem);
    if (root->type == TCC_AST_WHOLE && !stmt->output)
        want = TCC_AST_INT;
    if (is_open(root))
        return tcc_sema_resolve(s, stmt, root, want);
    if (!stmt->output || root->type == want)
        return true;
    tcc_error(s->diag, TCC_ERR_TYPE, root->name.loc,
              "'%s' is %s and this is %s: it must be converted, as in '%s(…)'", stmt->name.text,
              tcc_scalar_name(elem), type_name(root), tcc_scalar_name(elem));
    return false;
}

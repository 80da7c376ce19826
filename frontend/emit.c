/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/emit.h"

#include "frontend/emit_index.h"
#include "frontend/sema.h"

/* ---- types ----------------------------------------------------------------------------- */

static tcc_dim dim_of(const tcc_ast_dim *dim)
{
    return dim->size ? (tcc_dim){.size = dim->size} : (tcc_dim){.name = dim->name.text};
}

static const tcc_type *param_type(tcc_ir *ir, const tcc_ast_param *param)
{
    if (param->role == TCC_ROLE_SCALAR)
        return tcc_type_scalar(ir, param->elem);
    size_t rank = param->dims.len;
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, rank), *strides = TCC_NEW_ARRAY(ir->arena, tcc_dim, rank);
    for (size_t i = 0; i < rank; i++) {
        dims[i] = dim_of(&param->dims.data[i]);
        if (param->is_strided)
            strides[i] = dim_of(&param->strides[i]);
    }
    const tcc_type *t = tcc_type_get(ir, TCC_KIND_tensor, param->elem, (unsigned)rank, dims);
    return param->is_strided ? tcc_type_with_strides(ir, t, strides) : t;
}

/* Scalars and fields broadcast: the result has the dimensions of the first, then those of the
 * others that are new. */
const tcc_type *tcc_emit_joined_type(tcc_ir *ir, tcc_scalar elem, size_t n, tcc_value *const *values)
{
    tcc_dim dims[TCC_MAX_INDICES];
    unsigned rank = 0;
    bool field = false;
    for (size_t i = 0; i < n; i++) {
        field |= values[i]->type->kind == TCC_KIND_field; /* which has no dimensions where all are summed */
        for (unsigned d = 0; d < values[i]->type->rank; d++) {
            unsigned at = 0;
            while (at < rank && dims[at].name != values[i]->type->dims[d].name)
                at++;
            if (at == rank)
                dims[rank++] = values[i]->type->dims[d];
        }
    }
    return field ? tcc_type_get(ir, TCC_KIND_field, elem, rank, dims) : tcc_type_scalar(ir, elem);
}

/* ---- expressions ----------------------------------------------------------------------- */

static void set_indices(tcc_ir *ir, tcc_op *op, const char *attr, const tcc_ast_indices *indices)
{
    const char **names = TCC_NEW_ARRAY(ir->arena, const char *, indices->len);
    for (size_t i = 0; i < indices->len; i++)
        names[i] = indices->data[i].text;
    tcc_attr_set_strs(ir, &op->attrs, attr, indices->len, names);
}

static tcc_value *emit_cast(tcc_builder *b, tcc_value *v, tcc_scalar to)
{
    if (v->type->elem == to)
        return v;
    return TCC_EMIT(b, arith_cast, tcc_type_with_elem(b->func->ir, v->type, to), .a = v);
}

/* What an expression is computed in. */
static tcc_scalar elem_of(const tcc_ast_expr *e)
{
    return tcc_sema_elem_of(e->type);
}

/* An i32, or the nearest number of a narrower type. */
static tcc_value *emit_clamp(tcc_builder *b, tcc_value *v, tcc_scalar to)
{
    tcc_int_range range = tcc_scalar_range(to);
    if (to == TCC_i32)
        return v;
    v = tcc_emit_binary(b, TCC_OP_arith_max, v, tcc_build_i32(b, range.least), NULL);
    return tcc_emit_binary(b, TCC_OP_arith_min, v, tcc_build_i32(b, range.most), NULL);
}

/* An f32, f64 or i32 rounded to a type; except for f64 the result is an f32 or i32 again. */
static tcc_value *emit_conversion(tcc_builder *b, tcc_value *v, tcc_scalar to)
{
    bool from_int = v->type->elem == TCC_i32, to_int = tcc_scalar_classify(to) == TCC_CLASS_INT;
    if (to == TCC_f64)
        return emit_cast(b, v, to);
    if (!to_int)
        return emit_cast(b, emit_cast(b, emit_cast(b, v, TCC_f32), to), TCC_f32);
    if (!from_int)
        v = emit_cast(b, TCC_EMIT(b, math_roundeven, v->type, .a = v), TCC_i32);
    return emit_clamp(b, v, to);
}

static bool is_among(const tcc_ast_indices *indices, const char *name)
{
    bool is = false;
    for (size_t i = 0; i < indices->len; i++)
        is |= indices->data[i].index->name == name;
    return is;
}

/* What a reduction of no terms is. */
static tcc_value *emit_start(tcc_builder *b, tcc_reduction kind, tcc_scalar elem)
{
    const tcc_type *type = tcc_type_scalar(b->func->ir, elem);
    if (tcc_reduction_is_place(kind))
        return tcc_build_i32(b, TCC_NO_PLACE);
    tcc_cell start = tcc_reduction_start(kind, elem);
    return tcc_scalar_classify(elem) == TCC_CLASS_INT ? tcc_build_int(b, type, start.i)
                                                      : tcc_build_float(b, type, start.f);
}

static tcc_value *emit_where(tcc_builder *b, tcc_value *condition, tcc_value *x, tcc_value *y)
{
    tcc_value *operands[] = {condition, x, y}, *first[] = {x, y, condition};
    const tcc_type *type = tcc_emit_joined_type(b->func->ir, x->type->elem, 3, first);
    return &tcc_op_create(b, TCC_OP_arith_select, 3, operands, 1, &type)->results[0];
}

/* An intermediate's element; 0 outside. */
static tcc_value *emit_intermediate(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_expr *e)
{
    tcc_value *v = e->stmt->value, *inside = tcc_emit_is_inside(b, kernel, e);
    const tcc_type *type = tcc_type_scalar(b->func->ir, v->type->elem);
    bool ints = tcc_scalar_classify(type->elem) == TCC_CLASS_INT;
    return inside ? emit_where(b, inside, v, ints ? tcc_build_int(b, type, 0) : tcc_build_float(b, type, 0)) : v;
}

static tcc_value *emit_read(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_expr *e)
{
    if (e->stmt)
        return emit_intermediate(b, kernel, e);
    if (!e->param)
        return emit_cast(b, tcc_emit_whole(b, kernel, e->at), elem_of(e));
    bool is_scalar = e->param->role == TCC_ROLE_SCALAR;
    return emit_cast(b, is_scalar ? e->param->value : tcc_emit_read_at(b, kernel, e), elem_of(e));
}

/* The place of an extremum, of which the IR counts from the index's first value. */
static tcc_value *emit_place(tcc_builder *b, const tcc_ast_kernel *kernel, tcc_value *v, const tcc_index_expr *least)
{
    tcc_value *any = tcc_emit_binary(b, TCC_OP_arith_cmp, v, tcc_build_i32(b, 0), "ge");
    return emit_where(b, any, tcc_emit_binary(b, TCC_OP_arith_add, v, tcc_emit_whole(b, kernel, least), NULL),
                      tcc_build_i32(b, TCC_NO_PLACE));
}

/* Whether an operand of a product can be chosen as it is stored. */
static bool can_be_chosen(tcc_scalar elem)
{
    return elem == TCC_f16 || elem == TCC_bf16 || elem == TCC_f32 || elem == TCC_f64;
}

static bool is_widened(const tcc_value *v)
{
    return v->def && v->def->code == TCC_OP_arith_cast && v->type->kind == TCC_KIND_field &&
           tcc_scalar_widens(v->def->operands[0]->type->elem, v->type->elem);
}

/* An operand of a product, or 0 where a condition does not hold; before it is widened. */
static tcc_value *emit_factor(tcc_builder *b, tcc_value *v, tcc_value *condition)
{
    if (is_widened(v))
        return emit_cast(b, emit_factor(b, v->def->operands[0], condition), v->type->elem);
    return emit_where(b, condition, v, tcc_build_float(b, tcc_type_scalar(b->func->ir, v->type->elem), 0));
}

/* Products both of whose operands are 0 where a condition does not hold: as if there were none, and matrix instructions
 * multiply them. NULL where an operand cannot be chosen so. */
static tcc_value *emit_products(tcc_builder *b, const tcc_value *products, tcc_value *condition)
{
    tcc_value *factors[2];
    for (int i = 0; i < 2; i++) {
        const tcc_value *v = products->def->operands[i];
        while (is_widened(v))
            v = v->def->operands[0];
        if (!can_be_chosen(v->type->elem))
            return NULL;
    }
    for (int i = 0; i < 2; i++)
        factors[i] = emit_factor(b, products->def->operands[i], condition);
    return tcc_emit_binary(b, TCC_OP_arith_mul, factors[0], factors[1], NULL);
}

static tcc_value *emit_reduction(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_stmt *stmt,
                                 const tcc_ast_expr *e)
{
    tcc_ir *ir = b->func->ir;
    tcc_emit_conditions conditions = tcc_emit_conditions_of(b, kernel, stmt, e);
    tcc_value *operands[] = {e->args[0]->value, conditions.of_terms};
    tcc_value *products = conditions.in_factors ? emit_products(b, operands[0], operands[1]) : NULL;
    size_t n = conditions.of_terms && !products ? 2 : 1;
    operands[0] = products ? products : operands[0];
    if (operands[0]->type->kind != TCC_KIND_field)
        operands[0] = emit_where(b, operands[1], operands[0], operands[0]);
    const tcc_type *terms = tcc_emit_joined_type(ir, e->accumulator_elem, n, operands);
    tcc_dim dims[TCC_MAX_INDICES];
    unsigned rank = 0;
    for (unsigned d = 0; d < terms->rank; d++)
        if (!is_among(&e->indices, terms->dims[d].name))
            dims[rank++] = terms->dims[d];
    const tcc_type *type = tcc_type_get(ir, TCC_KIND_field, e->accumulator_elem, rank, dims);
    tcc_op *op = tcc_op_create(b, TCC_OP_tensor_reduce, n, operands, 1, &type);
    set_indices(ir, op, "over", &e->indices);
    tcc_attr_set_str(ir, &op->attrs, "kind", tcc_reduction_words[e->reduction]);
    if (e->reduction == TCC_REDUCTION_SUM && !tcc_sema_is_product(e->args[0]))
        tcc_attr_set_int(ir, &op->attrs, "rounded", 1);
    tcc_value *v = &op->results[0];
    if (tcc_reduction_is_place(e->reduction) && e->indices.data[0].index->least)
        v = emit_place(b, kernel, v, e->indices.data[0].index->least);
    if (conditions.of_all)
        v = emit_where(b, conditions.of_all, v, emit_start(b, e->reduction, e->accumulator_elem));
    return emit_cast(b, v, elem_of(e));
}

static bool is_conversion(const tcc_function *f, tcc_scalar to)
{
    return f->code == TCC_OP_arith_cast && f->to == to;
}

/* The product that an operand is, if it has all the indices of a sum that it is added in: the two are rounded once. An
 * element of an output is none: it has been rounded. */
static const tcc_op *contracted(const tcc_ast_expr *e, const tcc_type *sum)
{
    const tcc_value *v = e->value;
    const tcc_ast_param *stored;
    tcc_sema_meaning(e, &stored);
    bool is_float = tcc_scalar_classify(sum->elem) == TCC_CLASS_FLOAT;
    return is_float && !stored && v->type == sum && v->def && v->def->code == TCC_OP_arith_mul ? v->def : NULL;
}

/* x * y + z, x * y - z, z + x * y or z - x * y; NULL where neither operand is a product. */
static tcc_value *emit_contracted(tcc_builder *b, const tcc_ast_expr *e, const tcc_type *type)
{
    bool subtracts = e->function->code == TCC_OP_arith_sub;
    if (!subtracts && e->function->code != TCC_OP_arith_add)
        return NULL;
    const tcc_op *first = contracted(e->args[0], type), *product = first ? first : contracted(e->args[1], type);
    if (!product)
        return NULL;
    tcc_value *y = product->operands[1], *z = e->args[first != NULL]->value;
    if (subtracts && first)
        z = TCC_EMIT(b, arith_neg, z->type, .a = z);
    else if (subtracts)
        y = TCC_EMIT(b, arith_neg, y->type, .a = y);
    return TCC_EMIT(b, arith_fma, type, .a = product->operands[0], .b = y, .c = z);
}

/* Whole numbers are divided rounding down. */
static tcc_opcode code_of(const tcc_ast_expr *e)
{
    bool whole = e->function->code == TCC_OP_arith_div && e->type == TCC_AST_INT;
    return whole ? TCC_OP_arith_floor_div : e->function->code;
}

static tcc_value *emit_apply(tcc_builder *b, const tcc_ast_expr *e)
{
    tcc_ir *ir = b->func->ir;
    const tcc_function *f = e->function;
    if (f->code == TCC_OP_arith_cast)
        return emit_conversion(b, e->args[0]->value, f->to);
    tcc_value *args[3];
    for (size_t i = 0; i < e->n_args; i++)
        args[i] = e->args[i]->value;
    const tcc_type *type = tcc_emit_joined_type(ir, elem_of(e), e->n_args, args);
    tcc_value *fused = emit_contracted(b, e, type);
    if (fused)
        return fused;
    tcc_op *op = tcc_op_create(b, code_of(e), e->n_args, args, 1, &type);
    if (f->pred)
        tcc_attr_set_str(ir, &op->attrs, "pred", f->pred);
    return &op->results[0];
}

static tcc_value *emit_expr(tcc_builder *b, const tcc_ast_kernel *kernel, const tcc_ast_stmt *stmt,
                            const tcc_ast_expr *e)
{
    switch (e->kind) {
    case TCC_AST_NUMBER:
        if (e->type == TCC_AST_INT)
            return tcc_build_i32(b, (int64_t)e->number);
        return tcc_build_float(b, tcc_type_scalar(b->func->ir, elem_of(e)), e->number);
    case TCC_AST_REDUCE: return emit_reduction(b, kernel, stmt, e);
    case TCC_AST_APPLY: return emit_apply(b, e);
    default: return emit_read(b, kernel, e);
    }
}

/* ---- kernels --------------------------------------------------------------------------- */

/* What a statement computes and, of an output that is read, its elements. */
static void emit_value(tcc_builder *b, const tcc_ast_kernel *kernel, tcc_ast_stmt *stmt)
{
    const tcc_ast_stmt *definition = tcc_sema_definition(stmt);
    const tcc_ast_expr *root = stmt->exprs.data[stmt->exprs.len - 1];
    tcc_emit_want(b->func->ir, kernel, stmt);
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        tcc_ast_expr *e = stmt->exprs.data[i];
        if (!e->wanted)
            continue;
        b->loc = e->name.loc;
        e->value = emit_expr(b, kernel, stmt, e);
        if (e->rounded)
            e->value = emit_conversion(b, e->value, e->rounded_to);
    }
    stmt->value = root->value;
    b->loc = stmt->name.loc;
    if (!definition->output) {
        if (stmt->value->def && !stmt->value->name)
            stmt->value->name = stmt->name.text;
        return;
    }
    tcc_scalar to = definition->output->elem;
    bool is_converted = root->kind == TCC_AST_APPLY && is_conversion(root->function, to);
    if (!is_converted && (definition->used || root->type == TCC_AST_INT))
        stmt->value = emit_conversion(b, stmt->value, to);
}

/* Copies with other indices first: they read tensors as these are before anything is written. */
static void emit_stmt(tcc_builder *b, const tcc_ast_kernel *kernel, tcc_ast_stmt *stmt)
{
    for (tcc_ast_stmt *again = stmt; again; again = again->again)
        if (again->live)
            emit_value(b, kernel, again);
    if (!stmt->output)
        return;
    b->loc = stmt->name.loc;
    tcc_op *op = TCC_EMIT_V(b, tensor_write, .a = stmt->value, .tensor = stmt->output->value);
    set_indices(b->func->ir, op, "map", &stmt->indices);
}

static void set_signature(tcc_func *f, const tcc_ast_kernel *kernel)
{
    static const char *const role_names[] = {"in", "out", "inout", "scalar"};
    const char *roles[TCC_MAX_PARAMS];
    for (size_t i = 0; i < kernel->params.len; i++)
        roles[i] = role_names[kernel->params.data[i]->role];
    const char **dims = TCC_NEW_ARRAY(f->ir->arena, const char *, kernel->dims.len);
    size_t n_dims = 0;
    for (size_t i = 0; i < kernel->dims.len; i++) {
        const tcc_ast_dim *dim = kernel->dims.entries[i].what;
        if (!dim->size)
            dims[n_dims++] = dim->name.text;
    }
    tcc_attr_set_strs(f->ir, &f->attrs, "dims", n_dims, dims);
    tcc_attr_set_strs(f->ir, &f->attrs, "roles", kernel->params.len, roles);
}

/* The indices that a statement has other than as just a coordinate. */
static uint64_t computed_indices(const tcc_ast_stmt *stmt)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        const tcc_ast_expr *e = stmt->exprs.data[i];
        bits |= e->kind == TCC_AST_NAME && e->index && (!e->coordinate || e->of_domain) ? e->index->bit : 0;
    }
    return bits;
}

/* The extents of indices that a live statement has other than as just a coordinate. */
static void set_extents(tcc_func *f, const tcc_ast_kernel *kernel)
{
    TCC_VEC(tcc_attr) extents = {0};
    uint64_t indices = 0;
    for (size_t i = 0; i < kernel->stmts.len; i++)
        for (const tcc_ast_stmt *stmt = kernel->stmts.data[i]; stmt; stmt = stmt->again)
            indices |= stmt->live ? computed_indices(stmt) : 0;
    for (size_t i = 0; i < kernel->n_indices; i++) {
        const tcc_ast_index *index = &kernel->indices[i];
        tcc_attr *pair = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, 2);
        if (!(indices & index->bit))
            continue;
        pair[0] = (tcc_attr){.kind = TCC_ATTR_STR, .s = index->name};
        pair[1] = index->extent->size ? (tcc_attr){.kind = TCC_ATTR_INT, .i = index->extent->size}
                                      : (tcc_attr){.kind = TCC_ATTR_STR, .s = index->extent->name.text};
        TCC_PUSH(f->ir->arena, &extents, (tcc_attr){.kind = TCC_ATTR_LIST, .list = {pair, 2}});
    }
    if (extents.len)
        tcc_attr_set(f->ir, &f->attrs, "extents",
                     (tcc_attr){.kind = TCC_ATTR_LIST, .list = {extents.data, extents.len}}, (tcc_loc){0, 0});
}

static void set_schedule(tcc_func *f, const tcc_ast_schedule *schedule)
{
    for (size_t i = 0; schedule && i < schedule->settings.len; i++) {
        const tcc_ast_setting *setting = schedule->settings.data[i];
        tcc_loc loc = setting->words.len ? setting->words.data[0].name.loc : setting->key.loc;
        tcc_attr_set(f->ir, &f->attrs, setting->key.text, setting->value, loc);
    }
}

void tcc_frontend_emit(tcc_ir *ir, tcc_ast_kernel *kernel)
{
    tcc_func *f = tcc_func_create(ir, kernel->name.text, kernel->name.loc);
    set_signature(f, kernel);
    set_schedule(f, kernel->schedule);
    for (size_t i = 0; i < kernel->params.len; i++) {
        tcc_ast_param *param = kernel->params.data[i];
        param->value = tcc_block_add_arg(f->body, param_type(ir, param), param->name.text);
    }
    tcc_builder b = tcc_builder_at_end(f->body);
    for (size_t i = 0; i < kernel->stmts.len; i++)
        emit_stmt(&b, kernel, kernel->stmts.data[i]);
    set_extents(f, kernel);
    b.loc = kernel->name.loc;
    TCC_EMIT_V(&b, func_return, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/emit.h"

#include "frontend/sema.h"

/* ---- types ----------------------------------------------------------------------------- */

static const tcc_type *field_type(tcc_ir *ir, tcc_scalar elem, const tcc_ast_indices *indices)
{
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, indices->len);
    for (size_t i = 0; i < indices->len; i++)
        dims[i].name = indices->data[i].text;
    return tcc_type_get(ir, TCC_KIND_field, elem, (unsigned)indices->len, dims);
}

static const tcc_type *param_type(tcc_ir *ir, const tcc_ast_param *param)
{
    if (param->role == TCC_ROLE_SCALAR)
        return tcc_type_scalar(ir, param->elem);
    tcc_dim *dims = TCC_NEW_ARRAY(ir->arena, tcc_dim, param->dims.len);
    for (size_t i = 0; i < param->dims.len; i++)
        if (param->dims.data[i].size)
            dims[i].size = param->dims.data[i].size;
        else
            dims[i].name = param->dims.data[i].name.text;
    return tcc_type_get(ir, TCC_KIND_tensor, param->elem, (unsigned)param->dims.len, dims);
}

/* Scalars and fields broadcast: the result has the dimensions of the first, then those of the
 * others that are new. */
static const tcc_type *joined_type(tcc_ir *ir, tcc_scalar elem, size_t n, tcc_value *const *values)
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

static tcc_value *emit_binary(tcc_builder *b, tcc_opcode code, tcc_value *x, tcc_value *y)
{
    tcc_value *operands[] = {x, y};
    return &tcc_op_create(b, code, 2, operands, 1, &x->type)->results[0];
}

/* An i32, or the nearest number of a narrower type. */
static tcc_value *emit_clamp(tcc_builder *b, tcc_value *v, tcc_scalar to)
{
    tcc_int_range range = tcc_scalar_range(to);
    if (to == TCC_i32)
        return v;
    v = emit_binary(b, TCC_OP_arith_max, v, tcc_build_i32(b, range.least));
    return emit_binary(b, TCC_OP_arith_min, v, tcc_build_i32(b, range.most));
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

static tcc_value *emit_read(tcc_builder *b, const tcc_ast_expr *e)
{
    tcc_ir *ir = b->func->ir;
    if (e->stmt)
        return e->stmt->value;
    tcc_value *v = e->param->value;
    if (e->param->role != TCC_ROLE_SCALAR) {
        v = TCC_EMIT(b, tensor_read, field_type(ir, e->param->elem, &e->indices), .tensor = v);
        set_indices(ir, v->def, "map", &e->indices);
    }
    return emit_cast(b, v, elem_of(e));
}

static bool is_among(const tcc_ast_indices *indices, const char *name)
{
    bool is = false;
    for (size_t i = 0; i < indices->len; i++)
        is |= indices->data[i].text == name;
    return is;
}

static tcc_value *emit_reduction(tcc_builder *b, const tcc_ast_expr *e)
{
    tcc_ir *ir = b->func->ir;
    const tcc_type *term = e->args[0]->value->type;
    tcc_dim dims[TCC_MAX_INDICES];
    unsigned rank = 0;
    for (unsigned d = 0; d < term->rank; d++)
        if (!is_among(&e->indices, term->dims[d].name))
            dims[rank++] = term->dims[d];
    const tcc_type *type = tcc_type_get(ir, TCC_KIND_field, e->accumulator_elem, rank, dims);
    tcc_value *v = TCC_EMIT(b, tensor_reduce, type, .a = e->args[0]->value);
    set_indices(ir, v->def, "over", &e->indices);
    tcc_attr_set_str(ir, &v->def->attrs, "kind", tcc_reduction_words[e->reduction]);
    if (e->reduction == TCC_REDUCTION_SUM && !tcc_sema_is_product(e->args[0]))
        tcc_attr_set_int(ir, &v->def->attrs, "ordered", 1);
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

static tcc_value *emit_apply(tcc_builder *b, const tcc_ast_expr *e)
{
    tcc_ir *ir = b->func->ir;
    const tcc_function *f = e->function;
    if (f->code == TCC_OP_arith_cast)
        return emit_conversion(b, e->args[0]->value, f->to);
    tcc_value *args[3];
    for (size_t i = 0; i < e->n_args; i++)
        args[i] = e->args[i]->value;
    const tcc_type *type = joined_type(ir, elem_of(e), e->n_args, args);
    tcc_value *fused = emit_contracted(b, e, type);
    if (fused)
        return fused;
    tcc_op *op = tcc_op_create(b, f->code, e->n_args, args, 1, &type);
    if (f->pred)
        tcc_attr_set_str(ir, &op->attrs, "pred", f->pred);
    return &op->results[0];
}

static tcc_value *emit_expr(tcc_builder *b, const tcc_ast_expr *e)
{
    switch (e->kind) {
    case TCC_AST_NUMBER:
        if (e->type == TCC_AST_INT)
            return tcc_build_i32(b, (int64_t)e->number);
        return tcc_build_float(b, tcc_type_scalar(b->func->ir, elem_of(e)), e->number);
    case TCC_AST_REDUCE: return emit_reduction(b, e);
    case TCC_AST_APPLY: return emit_apply(b, e);
    default: return emit_read(b, e);
    }
}

/* ---- kernels --------------------------------------------------------------------------- */

/* What a statement computes and, of an output that is read, its elements. */
static void emit_value(tcc_builder *b, tcc_ast_stmt *stmt)
{
    const tcc_ast_stmt *definition = tcc_sema_definition(stmt);
    const tcc_ast_expr *root = stmt->exprs.data[stmt->exprs.len - 1];
    for (size_t i = 0; i < stmt->exprs.len; i++) {
        tcc_ast_expr *e = stmt->exprs.data[i];
        b->loc = e->name.loc;
        e->value = emit_expr(b, e);
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
static void emit_stmt(tcc_builder *b, tcc_ast_stmt *stmt)
{
    for (tcc_ast_stmt *again = stmt; again; again = again->again)
        if (again->live)
            emit_value(b, again);
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
        emit_stmt(&b, kernel->stmts.data[i]);
    b.loc = kernel->name.loc;
    TCC_EMIT_V(&b, func_return, NULL);
}

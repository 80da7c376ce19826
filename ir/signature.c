/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/signature.h"

#include <string.h>

#include "ir/index_dim.h"

enum { MAX_RANK = 16 };

static const char workspace[] = "workspace";

const char *tcc_func_kernel(const tcc_func *f)
{
    return tcc_attr_str(&f->attrs, "kernel", f->name);
}

const char *tcc_func_first(const tcc_func *f)
{
    return tcc_attr_str(&f->attrs, "part", tcc_attr_str(&f->attrs, "order", tcc_func_kernel(f)));
}

bool tcc_func_is_definition(const tcc_func *f)
{
    return tcc_attr_find(&f->attrs, "defines") != NULL;
}

const tcc_func *tcc_func_definition(const tcc_ir *ir, const char *kernel)
{
    for (const tcc_func *f = ir->first; f; f = f->next)
        if (tcc_attr_is(&f->attrs, "defines", kernel))
            return f;
    return NULL;
}

bool tcc_func_is_entry(const tcc_func *f)
{
    return tcc_attr_find(&f->attrs, "params") != NULL;
}

/* ---- steps ----------------------------------------------------------------------------- */

bool tcc_func_is_step(const tcc_func *f)
{
    return tcc_attr_find(&f->attrs, "step") != NULL;
}

enum { MAX_NESTED = 8 };

typedef struct step {
    const char *name;     /* NULL: what names it is not a name */
    const tcc_func *func; /* NULL: the module has none of the name */
} step;

static bool find_step(const tcc_func *f, size_t *left, unsigned depth, step *out);

static bool find_named_step(const tcc_func *f, const char *attr, size_t *left, unsigned depth, step *out)
{
    tcc_attr names = tcc_attr_list(&f->attrs, attr);
    for (size_t i = 0; i < names.list.n; i++) {
        const char *name = names.list.items[i].kind == TCC_ATTR_STR ? names.list.items[i].s : NULL;
        const tcc_func *of = name ? tcc_func_find(f->ir, name) : NULL;
        bool nested = of && of != f && depth < MAX_NESTED;
        if (nested ? find_step(of, left, depth + 1, out) : !(*left)--) {
            *out = nested ? *out : (step){name, of};
            return true;
        }
    }
    return false;
}

/* The step of f, and of its steps, that *left others come before; false, *left less their number, if there are not so
 * many. */
static bool find_step(const tcc_func *f, size_t *left, unsigned depth, step *out)
{
    if (find_named_step(f, "before", left, depth, out))
        return true;
    if (!(*left)--) {
        *out = (step){f->name, f}; /* also where a trial has taken it out of its module */
        return true;
    }
    return find_named_step(f, "after", left, depth, out);
}

size_t tcc_func_step_count(const tcc_func *variant)
{
    size_t left = SIZE_MAX;
    step none;
    find_step(variant, &left, 0, &none);
    return SIZE_MAX - left;
}

const tcc_func *tcc_func_step_at(const tcc_func *variant, size_t i)
{
    step s = {0};
    find_step(variant, &i, 0, &s);
    return s.func;
}

const char *tcc_func_missing_step(const tcc_func *variant)
{
    for (size_t i = 0, n = tcc_func_step_count(variant); i < n; i++) {
        size_t left = i;
        step s = {0};
        find_step(variant, &left, 0, &s);
        if (!s.func)
            return s.name ? s.name : "";
    }
    return NULL;
}

void tcc_func_neighbours(const tcc_func *f, bool *before, bool *after)
{
    *before = *after = false;
    bool alone = !tcc_func_is_step(f) && !tcc_attr_find(&f->attrs, "before") && !tcc_attr_find(&f->attrs, "after");
    for (const tcc_func *v = alone ? NULL : f->ir->first; v; v = v->next)
        for (size_t i = 0, n = tcc_func_step_count(v); n > 1 && i < n; i++) {
            size_t left = i;
            step s = {0};
            bool is_f = find_step(v, &left, 0, &s) && s.name && !strcmp(s.name, f->name);
            *before |= is_f && i;
            *after |= is_f && i + 1 < n;
        }
}

static bool runs(const tcc_func *variant, const tcc_func *f)
{
    bool runs = false;
    for (size_t i = 0, n = variant == f ? 0 : tcc_func_step_count(variant); i < n && !runs; i++)
        runs = tcc_func_step_at(variant, i) == f;
    return runs;
}

const tcc_func *tcc_func_main(const tcc_func *f)
{
    for (const tcc_func *v = tcc_func_is_step(f) ? f->ir->first : NULL; v; v = v->next)
        if (!tcc_func_is_step(v) && runs(v, f))
            return v;
    return f;
}

bool tcc_func_is_workspace(const tcc_func *f, const tcc_value *parameter)
{
    tcc_attr roles = tcc_attr_list(&f->attrs, "roles");
    return parameter->index < roles.list.n && f->body->args[parameter->index] == parameter &&
           roles.list.items[parameter->index].kind == TCC_ATTR_STR &&
           !strcmp(roles.list.items[parameter->index].s, workspace);
}

bool tcc_func_is_zeroed(const tcc_func *f, const char *workspace_name)
{
    tcc_attr zeroed = tcc_attr_list(&f->attrs, "zeroed");
    for (size_t i = 0; i < zeroed.list.n; i++)
        if (zeroed.list.items[i].kind == TCC_ATTR_STR && !strcmp(zeroed.list.items[i].s, workspace_name))
            return true;
    return false;
}

tcc_value *tcc_func_parameter(const tcc_func *f, const char *name)
{
    for (size_t i = 0; i < f->body->n_args; i++)
        if (f->body->args[i]->name && !strcmp(f->body->args[i]->name, name))
            return f->body->args[i];
    return NULL;
}

static tcc_attr list_of(tcc_ir *ir, size_t n, const tcc_attr *items)
{
    tcc_attr *copy = TCC_NEW_ARRAY(ir->arena, tcc_attr, n + 1);
    memcpy(copy, items, n * sizeof *items);
    return (tcc_attr){.kind = TCC_ATTR_LIST, .list = {copy, n}};
}

static tcc_attr list_of_dims(tcc_ir *ir, unsigned n, const tcc_dim *dims)
{
    tcc_attr list[MAX_RANK];
    for (unsigned d = 0; d < n; d++)
        list[d] = dims[d].name ? (tcc_attr){.kind = TCC_ATTR_STR, .s = dims[d].name}
                               : (tcc_attr){.kind = TCC_ATTR_INT, .i = dims[d].size};
    return list_of(ir, n, list);
}

/* Parameters without a name are called by their number, as the printer does. */
static const char *name_of(tcc_ir *ir, const tcc_value *arg)
{
    return tcc_ir_name(ir, arg->name ? arg->name : tcc_arena_printf(ir->arena, "%u", arg->index));
}

static tcc_attr record_of(tcc_ir *ir, const tcc_value *arg)
{
    const tcc_type *t = arg->type;
    const tcc_attr record[] = {{.kind = TCC_ATTR_STR, .s = name_of(ir, arg)},
                               {.kind = TCC_ATTR_STR, .s = tcc_ir_name(ir, tcc_scalar_name(t->elem))},
                               list_of_dims(ir, t->rank, t->dims),
                               t->strides ? list_of_dims(ir, t->rank, t->strides)
                                          : (tcc_attr){.kind = TCC_ATTR_INT, .i = t->row_bytes}};
    return list_of(ir, t->kind != TCC_KIND_tensor ? 2 : t->row_bytes || t->strides ? 4 : 3, record);
}

static void append(tcc_func *f, const char *attr, tcc_attr item)
{
    tcc_attr old = tcc_attr_list(&f->attrs, attr);
    tcc_attr *more = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, old.list.n + 1);
    for (size_t i = 0; i < old.list.n; i++)
        more[i] = old.list.items[i];
    more[old.list.n] = item;
    const tcc_attr longer = {.kind = TCC_ATTR_LIST, .list = {more, old.list.n + 1}};
    tcc_attr_set(f->ir, &f->attrs, attr, longer, (tcc_loc){0, 0});
}

static tcc_attr text_of(const char *s)
{
    return (tcc_attr){.kind = TCC_ATTR_STR, .s = s};
}

void tcc_func_zero_workspace(tcc_func *f, const char *workspace_name)
{
    append(f, "zeroed", text_of(tcc_ir_name(f->ir, workspace_name)));
}

/* Whether the caller's arguments, where they are recorded, or a function's parameters have this name. */
static bool is_taken(const tcc_func *f, const char *name)
{
    tcc_attr args = tcc_attr_list(&f->attrs, "args");
    bool taken = tcc_func_parameter(f, name);
    for (size_t i = 0; i < args.list.n; i++)
        taken |= args.list.items[i].kind == TCC_ATTR_LIST && args.list.items[i].list.n &&
                 args.list.items[i].list.items[0].kind == TCC_ATTR_STR &&
                 !strcmp(args.list.items[i].list.items[0].s, name);
    return taken;
}

static const char *free_name(const tcc_func *f, const char *name)
{
    const char *free = name;
    for (int i = 2; is_taken(f, free); i++)
        free = tcc_arena_printf(f->ir->arena, "%s%d", name, i);
    return tcc_ir_name(f->ir, free);
}

static tcc_value *add_workspace(tcc_func *f, const tcc_type *type, const char *name)
{
    tcc_value *added = tcc_block_add_arg(f->body, type, name);
    append(f, "roles", text_of(workspace));
    if (tcc_attr_find(&f->attrs, "args"))
        append(f, "args", record_of(f->ir, added));
    return added;
}

/* Of a step the variants that run it, which hand on what it shares with others, get the tensor, too. */
tcc_value *tcc_func_add_workspace(tcc_func *f, const tcc_type *type, const char *name)
{
    const char *free = free_name(f, name), *last = NULL;
    while (tcc_func_is_step(f) && free != last) {
        last = free;
        for (const tcc_func *v = f->ir->first; v; v = v->next)
            if (!tcc_func_is_step(v) && runs(v, f))
                free = free_name(v, free);
        free = free_name(f, free);
    }
    for (tcc_func *v = tcc_func_is_step(f) ? f->ir->first : NULL; v; v = v->next)
        if (!tcc_func_is_step(v) && runs(v, f))
            add_workspace(v, type, free);
    return add_workspace(f, type, free);
}

tcc_value *tcc_func_add_workspace_pointer(tcc_func *f, const tcc_type *type, const char *name)
{
    const tcc_value tensor = {.type = type, .name = free_name(f, name)};
    const tcc_attr pointer[] = {text_of("pointer"), text_of(tensor.name)};
    append(f, "roles", text_of(workspace));
    append(f, "args", record_of(f->ir, &tensor));
    append(f, "params", list_of(f->ir, 2, pointer));
    return tcc_block_add_arg(f->body, tcc_type_get(f->ir, TCC_KIND_ptr, type->elem, 0, NULL), tensor.name);
}

/* ---- arguments ------------------------------------------------------------------------- */

static bool wrong(const tcc_func *f, tcc_diag *diag, const char *what)
{
    tcc_error(diag, TCC_ERR_TYPE, f->loc, "func @%s: %s", f->name, what);
    return false;
}

static bool read_dims(tcc_attr list, tcc_dim dims[MAX_RANK])
{
    for (size_t d = 0; d < list.list.n; d++) {
        tcc_attr dim = list.list.items[d];
        if (dim.kind == TCC_ATTR_STR)
            dims[d] = (tcc_dim){.name = dim.s};
        else if (dim.kind == TCC_ATTR_INT && dim.i >= 0)
            dims[d] = (tcc_dim){.size = dim.i};
        else
            return false;
    }
    return true;
}

/* Gives a tensor what the fourth item of its record says: at multiples of how many bytes its rows begin, or a list of
 * strides. */
static bool place(tcc_ir *ir, const tcc_attr *item, const tcc_type **t)
{
    tcc_dim strides[MAX_RANK];
    if (item->kind == TCC_ATTR_LIST) {
        if (item->list.n != (*t)->rank || !read_dims(*item, strides))
            return false;
        *t = tcc_type_with_strides(ir, *t, strides);
        return true;
    }
    if (item->kind != TCC_ATTR_INT || item->i < 1 || item->i * 8 % tcc_scalar_bits((*t)->elem) || !(*t)->rank)
        return false;
    *t = tcc_type_with_row_bytes(ir, *t, (unsigned)item->i);
    return true;
}

/* Adds the argument of a record [NAME, ELEM, [DIM, …]], or [NAME, ELEM] for a scalar; a fourth item says where rows
 * are. */
static bool add_record(tcc_func *s, tcc_attr record)
{
    const tcc_attr *a = record.list.items;
    size_t n = record.kind == TCC_ATTR_LIST ? record.list.n : 0;
    tcc_dim dims[MAX_RANK];
    tcc_scalar elem;
    if (n < 2 || n > 4 || a[0].kind != TCC_ATTR_STR || a[1].kind != TCC_ATTR_STR ||
        !tcc_scalar_find(a[1].s, strlen(a[1].s), &elem))
        return false;
    if (n == 2) {
        tcc_block_add_arg(s->body, tcc_type_scalar(s->ir, elem), tcc_ir_name(s->ir, a[0].s));
        return true;
    }
    if (a[2].kind != TCC_ATTR_LIST || a[2].list.n > MAX_RANK || !read_dims(a[2], dims))
        return false;
    const tcc_type *t = tcc_type_get(s->ir, TCC_KIND_tensor, elem, (unsigned)a[2].list.n, dims);
    if (n == 4 && !place(s->ir, &a[3], &t))
        return false;
    tcc_block_add_arg(s->body, t, tcc_ir_name(s->ir, a[0].s));
    return true;
}

/* Takes a factor off a dimension's name, which one in parentheses is as a whole. */
static bool take_part(const char **name, tcc_extent_factor *out)
{
    if (!tcc_extent_is_sum(*name))
        return tcc_extent_take(name, out);
    *out = (tcc_extent_factor){*name, strlen(*name), 0};
    *name += out->n;
    return true;
}

/* The product of the numbers among the factors of a type's dimensions, as far as 64 bits hold it. */
static uint64_t number_of(const tcc_type *t)
{
    uint64_t n = 1;
    for (unsigned d = 0; d < t->rank; d++) {
        const char *left = t->dims[d].name;
        n *= left ? 1 : (uint64_t)t->dims[d].size;
        for (tcc_extent_factor factor; left && take_part(&left, &factor);)
            n *= factor.n ? 1 : (uint64_t)factor.number;
    }
    return n;
}

/* How often a name is among them. */
static unsigned count_name(const tcc_type *t, const tcc_extent_factor *name)
{
    unsigned n = 0;
    for (unsigned d = 0; d < t->rank; d++) {
        const char *left = t->dims[d].name;
        for (tcc_extent_factor factor; left && take_part(&left, &factor);)
            n += factor.n == name->n && !memcmp(factor.name, name->name, name->n);
    }
    return n;
}

/* Whether two types are of as many elements, in equal rows, whatever the extents. Strides may be in another order. */
static bool same_elements(const tcc_type *a, const tcc_type *b)
{
    bool same = a->kind == b->kind && a->elem == b->elem && a->row_bytes == b->row_bytes && !a->rank == !b->rank &&
                number_of(a) == number_of(b);
    for (unsigned i = 0; same && i < a->rank + b->rank; i++) {
        const char *left = i < a->rank ? a->dims[i].name : b->dims[i - a->rank].name;
        for (tcc_extent_factor factor; same && left && take_part(&left, &factor);)
            same = !factor.n || count_name(a, &factor) == count_name(b, &factor);
    }
    return same;
}

/* How many elements there are, but for the dimension `without`, -1 for none. */
static const tcc_index_expr *product_of(tcc_ir *ir, const tcc_type *t, int without)
{
    const tcc_index_expr *n = tcc_index_number(ir, 1);
    for (unsigned d = 0; d < t->rank; d++)
        n = (int)d == without ? n : tcc_index_mul(ir, n, tcc_index_of_dim(ir, t->dims[d]));
    return n;
}

/* Whether two tensors have as many elements because a launch of f requires that something is at most 0, as
 * H - H / G * G. */
static bool same_if_required(const tcc_func *f, const tcc_type *a, const tcc_type *b)
{
    tcc_attr requires = tcc_attr_list(&f->attrs, "requires");
    tcc_ir *ir = f->ir;
    const tcc_index_expr *more = tcc_index_sub(ir, product_of(ir, a, -1), product_of(ir, b, -1));
    for (size_t i = 0; i < requires.list.n && a->kind == TCC_KIND_tensor; i++) {
        tcc_attr of = requires.list.items[i], dims = of.list.n == 4 ? of.list.items[1] : of;
        if (of.list.n != 4 || of.list.items[0].kind != TCC_ATTR_STR || strcmp(of.list.items[0].s, "span") ||
            of.list.items[3].kind != TCC_ATTR_INT || of.list.items[3].i || dims.list.n != 1)
            continue;
        const tcc_index_expr *none = tcc_index_of_dim(ir, (tcc_dim){.name = dims.list.items[0].s});
        for (unsigned d = 0; d < a->rank; d++)
            if (tcc_index_equal(more, tcc_index_mul(ir, none, product_of(ir, a, (int)d))))
                return a->kind == b->kind && a->elem == b->elem && a->row_bytes == b->row_bytes;
    }
    return false;
}

static bool add_records(const tcc_func *f, tcc_func *s, tcc_diag *diag)
{
    const tcc_named_attr *args = tcc_attr_find(&f->attrs, "args");
    if (!args || args->value.kind != TCC_ATTR_LIST)
        return wrong(f, diag,
                     "it is of the target level and does not say what its kernel takes: "
                     "args = [[NAME, ELEMENT, [DIM, …]], …]");
    for (size_t i = 0; i < args->value.list.n; i++)
        if (!add_record(s, args->value.list.items[i]))
            return wrong(f, diag, "malformed entry in 'args'");
    bool same = tcc_func_is_entry(f) || s->body->n_args == f->body->n_args;
    for (size_t i = 0; same && !tcc_func_is_entry(f) && i < f->body->n_args; i++)
        same = same_elements(s->body->args[i]->type, f->body->args[i]->type) ||
               same_if_required(f, s->body->args[i]->type, f->body->args[i]->type);
    return same || wrong(f, diag, "'args' are not what it has as parameters");
}

void tcc_func_record_args(tcc_func *f)
{
    if (tcc_attr_find(&f->attrs, "args"))
        return;
    size_t n = f->body->n_args;
    tcc_attr *args = TCC_NEW_ARRAY(f->ir->arena, tcc_attr, n + 1);
    for (size_t i = 0; i < n; i++)
        args[i] = record_of(f->ir, f->body->args[i]);
    tcc_attr_set(f->ir, &f->attrs, "args", list_of(f->ir, n, args), (tcc_loc){0, 0});
}

static bool add_params(const tcc_func *f, tcc_func *s, tcc_diag *diag)
{
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_value *arg = f->body->args[i];
        if (arg->type->kind != TCC_KIND_tensor && arg->type->kind != TCC_KIND_scalar)
            return wrong(f, diag, "it has parameters that are neither tensors nor scalars");
        const tcc_type *t =
            tcc_type_get(s->ir, arg->type->kind, arg->type->elem, arg->type->rank, arg->type->dims);
        tcc_block_add_arg(s->body, tcc_type_placed_as(s->ir, t, arg->type), name_of(s->ir, arg));
    }
    return true;
}

static bool check_names(const tcc_func *f, const tcc_func *s, tcc_diag *diag)
{
    for (size_t i = 0; i < s->body->n_args; i++)
        for (size_t j = 0; j < i; j++)
            if (s->body->args[i]->name == s->body->args[j]->name)
                return wrong(f, diag, "two arguments have one name");
    return true;
}

/* ---- attributes ------------------------------------------------------------------------ */

static bool has_name(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

typedef TCC_VEC(const char *) name_list;

/* Adds the names of dimensions, or of strides, that are new. */
static void add_names(tcc_ir *ir, unsigned n, const tcc_dim *dims, name_list *names)
{
    for (unsigned d = 0; d < n; d++) {
        tcc_extent_factor factor;
        for (const char *left = dims[d].name; left && tcc_extent_take_name(&left, &factor);) {
            const char *name = tcc_arena_strndup(ir->arena, factor.name, factor.n);
            if (!has_name(names->data, names->len, name))
                TCC_PUSH(ir->arena, names, tcc_ir_name(ir, name));
        }
    }
}

/* Symbolic dimensions: those that the function lists, or else as they appear, extents before strides. */
static bool set_dims(const tcc_func *f, tcc_func *s, tcc_diag *diag)
{
    tcc_attr listed = tcc_attr_list(&f->attrs, "dims");
    bool given = tcc_attr_find(&f->attrs, "dims") != NULL;
    name_list names = {0};
    for (size_t i = 0; i < listed.list.n; i++) {
        tcc_attr dim = listed.list.items[i];
        if (dim.kind != TCC_ATTR_STR || has_name(names.data, names.len, dim.s))
            return wrong(f, diag, "'dims' needs names, each once");
        TCC_PUSH(s->ir->arena, &names, dim.s);
    }
    for (size_t i = 0; i < s->body->n_args; i++)
        add_names(s->ir, s->body->args[i]->type->rank, s->body->args[i]->type->dims, &names);
    for (size_t i = 0; i < s->body->n_args; i++)
        if (s->body->args[i]->type->strides)
            add_names(s->ir, s->body->args[i]->type->rank, s->body->args[i]->type->strides, &names);
    if (given && names.len > listed.list.n)
        return wrong(f, diag, "an argument has a dimension that is not in 'dims'");
    tcc_attr_set_strs(s->ir, &s->attrs, "dims", names.len, names.data);
    return true;
}

static const char *role_of(const tcc_attr *given, const tcc_type *t)
{
    static const char *const of_tensors[] = {"in", "out", "inout", workspace};
    bool scalar = t->kind == TCC_KIND_scalar;
    if (!given)
        return scalar ? "scalar" : "inout";
    const char *role = given->kind == TCC_ATTR_STR ? given->s : "";
    bool fits = scalar ? !strcmp(role, "scalar")
                       : has_name(of_tensors, sizeof of_tensors / sizeof *of_tensors, role);
    return fits ? role : NULL;
}

static bool set_roles(const tcc_func *f, tcc_func *s, tcc_diag *diag)
{
    tcc_attr listed = tcc_attr_list(&f->attrs, "roles");
    bool given = tcc_attr_find(&f->attrs, "roles") != NULL;
    size_t n = s->body->n_args;
    const char **roles = TCC_NEW_ARRAY(s->ir->arena, const char *, n);
    if (given && listed.list.n != n)
        return wrong(f, diag, "'roles' needs one for each argument");
    for (size_t i = 0; i < n; i++) {
        roles[i] = role_of(given ? &listed.list.items[i] : NULL, s->body->args[i]->type);
        if (!roles[i])
            return wrong(f, diag, "'roles' needs in, out, inout or workspace for tensors, scalar for scalars");
        if (!strcmp(roles[i], workspace) && s->body->args[i]->type->strides)
            return wrong(f, diag, "workspace tensors have no strides");
        if (i && !strcmp(roles[i - 1], workspace) && strcmp(roles[i], workspace))
            return wrong(f, diag, "workspace tensors must come after all arguments");
    }
    tcc_attr_set_strs(s->ir, &s->attrs, "roles", n, roles);
    tcc_attr zeroed = tcc_attr_list(&f->attrs, "zeroed");
    for (size_t i = 0; i < zeroed.list.n; i++) {
        tcc_attr name = zeroed.list.items[i];
        const tcc_value *tensor = name.kind == TCC_ATTR_STR ? tcc_func_parameter(s, name.s) : NULL;
        if (!tensor || !tcc_func_is_workspace(s, tensor))
            return wrong(f, diag, "'zeroed' needs names of workspace tensors");
    }
    return true;
}

/* ---- signatures ------------------------------------------------------------------------ */

/* With all parameters, whatever their roles. */
static tcc_func *all_params(const tcc_func *f, tcc_arena *arena, tcc_diag *diag)
{
    tcc_ir *ir = tcc_ir_create(arena);
    tcc_func *s = tcc_func_create(ir, tcc_ir_name(ir, tcc_func_kernel(f)), f->loc);
    bool recorded = tcc_func_is_entry(f) || tcc_attr_find(&f->attrs, "args");
    bool ok = recorded ? add_records(f, s, diag) : add_params(f, s, diag);
    return ok && check_names(f, s, diag) && set_dims(f, s, diag) && set_roles(f, s, diag) ? s : NULL;
}

/* Leaves the n parameters from `first` on. */
static void keep_params(tcc_func *s, size_t first, size_t n)
{
    tcc_attr roles = tcc_attr_list(&s->attrs, "roles");
    tcc_attr kept = {.kind = TCC_ATTR_LIST, .list = {roles.list.items + first, n}};
    tcc_attr_set(s->ir, &s->attrs, "roles", kept, s->loc);
    s->body->args += first;
    s->body->n_args = s->body->cap_args = n;
    for (size_t i = 0; i < n; i++)
        s->body->args[i]->index = (uint32_t)i;
}

/* By the roles: those before the workspace tensors. */
static size_t count_arguments(const tcc_func *s)
{
    tcc_attr roles = tcc_attr_list(&s->attrs, "roles");
    size_t n = 0;
    while (n < roles.list.n &&
           (roles.list.items[n].kind != TCC_ATTR_STR || strcmp(roles.list.items[n].s, workspace)))
        n++;
    return n;
}

const tcc_func *tcc_func_parameters(const tcc_func *f, tcc_arena *arena, tcc_diag *diag)
{
    return all_params(f, arena, diag);
}

const tcc_func *tcc_func_signature(const tcc_func *f, tcc_arena *arena, tcc_diag *diag)
{
    tcc_func *s = all_params(f, arena, diag);
    if (s)
        keep_params(s, 0, count_arguments(s));
    return s;
}

const tcc_func *tcc_func_workspace(const tcc_func *f, tcc_arena *arena, tcc_diag *diag)
{
    tcc_ir *ir = tcc_ir_create(arena);
    if (count_arguments(f) == tcc_attr_list(&f->attrs, "roles").list.n)
        return tcc_func_create(ir, tcc_ir_name(ir, tcc_func_kernel(f)), f->loc);
    tcc_func *s = all_params(f, arena, diag);
    size_t n = s ? count_arguments(s) : 0;
    if (!s)
        return NULL;
    keep_params(s, n, s->body->n_args - n);
    tcc_attr_remove(&s->attrs, "dims");
    return s;
}

int tcc_dims_find(tcc_attr dims, const tcc_extent_factor *factor)
{
    for (size_t i = 0; i < dims.list.n; i++)
        if (dims.list.items[i].kind == TCC_ATTR_STR && tcc_extent_is(factor, dims.list.items[i].s))
            return (int)i;
    return -1;
}

bool tcc_dims_have(tcc_attr dims, const char *name)
{
    tcc_extent_factor factor;
    bool all = true;
    while (all && tcc_extent_take_name(&name, &factor))
        all = tcc_dims_find(dims, &factor) >= 0;
    return all;
}

static int find_dim(const void *dims, const tcc_extent_factor *factor)
{
    return tcc_dims_find(*(const tcc_attr *)dims, factor);
}

int64_t tcc_dims_value(tcc_attr dims, const int64_t *extents, const char *name)
{
    int64_t n;
    return tcc_extent_eval(name, find_dim, &dims, extents, &n) ? n : -1;
}

typedef struct known {
    tcc_attr dims;
    const int64_t *extents;
    bool lacks_one;
} known;

static bool look_up(void *user, tcc_index_factor_kind kind, const char *name, tcc_index_range *out)
{
    known *k = user;
    int at = kind == TCC_FACTOR_DIM ? tcc_dims_find(k->dims, &(tcc_extent_factor){name, strlen(name), 0}) : -1;
    k->lacks_one |= at < 0;
    if (at >= 0)
        *out = (tcc_index_range){k->extents[at], k->extents[at]};
    return at >= 0;
}

bool tcc_dims_index(tcc_attr dims, const int64_t *extents, const tcc_index_expr *x, int64_t *out)
{
    known k = {dims, extents, false};
    if (!tcc_index_value(x, look_up, &k, out))
        *out = INT64_MAX;
    return !k.lacks_one;
}

bool tcc_dims_compile(tcc_arena *arena, tcc_attr dims, const char *name, tcc_expr *out)
{
    return tcc_extent_compile(arena, name, false, find_dim, &dims, out);
}

static bool same_type(const tcc_type *a, const tcc_type *b)
{
    bool same =
        a->kind == b->kind && a->elem == b->elem && a->rank == b->rank && tcc_type_same_places(a, b);
    for (unsigned d = 0; same && d < a->rank; d++)
        same = tcc_dim_equal(a->dims[d], b->dims[d]);
    return same;
}

static bool same_names(const tcc_func *a, const tcc_func *b, const char *attr)
{
    tcc_attr x = tcc_attr_list(&a->attrs, attr), y = tcc_attr_list(&b->attrs, attr);
    bool same = x.list.n == y.list.n;
    for (size_t i = 0; same && i < x.list.n; i++)
        same = !strcmp(x.list.items[i].s, y.list.items[i].s);
    return same;
}

bool tcc_signature_equal(const tcc_func *a, const tcc_func *b)
{
    bool same =
        a->body->n_args == b->body->n_args && same_names(a, b, "dims") && same_names(a, b, "roles");
    for (size_t i = 0; same && i < a->body->n_args; i++)
        same = !strcmp(a->body->args[i]->name, b->body->args[i]->name) &&
               same_type(a->body->args[i]->type, b->body->args[i]->type);
    return same;
}

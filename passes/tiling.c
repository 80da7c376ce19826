/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/tiling.h"

#include <string.h>

#include "ir/target.h"
#include "passes/space.h"
#include "support/map.h"

/* In a list, since what is built in a loop has places of its own, and those around it. */
struct tcc_place {
    const char *index;
    tcc_value *first;
    const struct tcc_place *next;
};

void tcc_tiling_place(tcc_tiling *t, const char *index, tcc_value *first)
{
    struct tcc_place *place = TCC_NEW(t->b.func->ir->arena, struct tcc_place);
    *place = (struct tcc_place){index, first, t->places};
    t->places = place;
}

tcc_value *tcc_tiling_first(const tcc_tiling *t, const char *index)
{
    const struct tcc_place *place = t->places;
    while (!tcc_index_same(place->index, index))
        place = place->next;
    return place->first;
}

const tcc_type *tcc_tiling_type(const tcc_tiling *t, const tcc_type *field, bool is_read)
{
    int64_t sizes[] = {t->sizes[0], t->sizes[1]};
    for (int x = 0; x < 2; x++)
        if (!tcc_field_has_index(field, t->axes[x]) && (is_read || *t->axes[x]))
            sizes[x] = 1;
    return tcc_type_sized(t->b.func->ir, TCC_KIND_tile, field->elem, 2, sizes);
}

tcc_value *tcc_tiling_broadcast(tcc_tiling *t, tcc_value *v, const tcc_type *type)
{
    tcc_ir *ir = t->b.func->ir;
    const tcc_type *want = tcc_type_with_elem(ir, type, v->type->elem);
    if (v->type == want)
        return v;
    tcc_value *r = TCC_EMIT(&t->b, tile_broadcast, want, v);
    tcc_attr_set_ints(ir, &r->def->attrs, "dims", v->type->kind == TCC_KIND_tile ? 2 : 0,
                      (int64_t[]){0, 1});
    return r;
}

tcc_op *tcc_tiling_access(tcc_tiling *t, const tcc_op *op, tcc_opcode code, tcc_value *const *head,
                          size_t n_head, size_t n_results, const tcc_type *const *types)
{
    tcc_ir *ir = t->b.func->ir;
    tcc_attr map = tcc_attr_list(&op->attrs, "map");
    tcc_value **operands = TCC_NEW_ARRAY(ir->arena, tcc_value *, n_head + map.list.n);
    memcpy(operands, head, n_head * sizeof *head);
    for (size_t i = 0; i < map.list.n; i++)
        operands[n_head + i] = tcc_tiling_first(t, map.list.items[i].s);
    tcc_op *r = tcc_op_create(&t->b, code, n_head + map.list.n, operands, n_results, types);
    tcc_attr_set_ints(
        ir, &r->attrs, "dims", 2,
        (int64_t[]){tcc_map_position(op, t->axes[0]), tcc_map_position(op, t->axes[1])});
    return r;
}

void tcc_tiling_op(tcc_tiling *t, tcc_op *op)
{
    if (op->n_results != 1 || op->results[0].type->kind != TCC_KIND_field)
        return; /* scalars are visible inside */
    bool is_read = op->code == TCC_OP_tensor_read;
    const tcc_type *type = tcc_tiling_type(t, op->results[0].type, is_read);
    if (t->partial && tcc_map_get(t->partial, &op->results[0]))
        type = tcc_type_sized(t->b.func->ir, TCC_KIND_tile, type->elem, 2, t->sizes);
    tcc_op *r;
    t->b.loc = op->loc;
    if (is_read) {
        r = tcc_tiling_read(t, op, type);
    } else if (op->code == TCC_OP_tensor_index) {
        r = tcc_tiling_index(t, op)->def;
    } else {
        tcc_value *operands[3];
        for (unsigned i = 0; i < op->n_operands; i++)
            operands[i] = tcc_tiling_broadcast(t, tcc_value_map_get(t->map, op->operands[i]), type);
        r = tcc_op_create(&t->b, op->code, op->n_operands, operands, 1, &type);
        for (size_t i = 0; i < op->attrs.len; i++)
            TCC_PUSH(t->b.func->ir->arena, &r->attrs, op->attrs.data[i]);
    }
    r->results[0].name = op->results[0].name;
    tcc_value_map_set(t->map, &op->results[0], &r->results[0]);
}

static bool is_elementwise(const tcc_op *op)
{
    return tcc_op_info_get(op->code)->flags & TCC_ELEMENTWISE || op->code == TCC_OP_tile_broadcast;
}

tcc_op *tcc_tiled_load(const tcc_op *mma, unsigned operand, tcc_arena *scratch)
{
    const tcc_type *tile = mma->operands[operand]->type;
    tcc_op *found = mma->operands[operand]->def;
    if (found && found->code == TCC_OP_tile_load)
        return found;
    tcc_map ops = TCC_MAP(scratch);
    if (found)
        *tcc_map_at(&ops, found) = found;
    tcc_op *op = found && found->block == mma->block ? found : NULL;
    for (found = NULL; op; op = op->prev) { /* users come before what they use */
        if (!tcc_map_get(&ops, op))
            continue;
        bool whole = op->code == TCC_OP_tile_load &&
                     tcc_type_with_elem(mma->block->func->ir, op->results[0].type, tile->elem) == tile;
        found = whole ? op : found;
        for (unsigned i = 0; is_elementwise(op) && i < op->n_operands; i++)
            if (op->operands[i]->def)
                *tcc_map_at(&ops, op->operands[i]->def) = op->operands[i]->def;
    }
    return found;
}

bool tcc_mma_computes(const tcc_op *mma, unsigned operand, tcc_arena *scratch)
{
    const tcc_op *load = tcc_tiled_load(mma, operand, scratch);
    return load && load != mma->operands[operand]->def;
}

bool tcc_mma_puts(const tcc_op *mma, unsigned operand, tcc_arena *scratch)
{
    return tcc_target_can(tcc_func_target(mma->block->func), TCC_CAN_wgmma) && tcc_mma_computes(mma, 1, scratch) &&
           (operand || tcc_mma_computes(mma, 0, scratch));
}

bool tcc_tiling_check_elements(tcc_pass_ctx *ctx, const tcc_op *op)
{
    const tcc_target *target = tcc_func_target(op->block->func);
    const tcc_value *tensor = op->code == TCC_OP_tensor_read    ? TCC_VIEW(tensor_read, op)->tensor
                              : op->code == TCC_OP_tensor_write ? TCC_VIEW(tensor_write, op)->tensor
                                                                : NULL;
    const tcc_value *value = tensor                          ? tensor
                             : op->code == TCC_OP_arith_cast ? &op->results[0]
                                                             : NULL;
    if (!value || tcc_target_converts(target, value->type->elem))
        return true;
    tcc_error(ctx->diag, TCC_ERR_UNSUPPORTED, op->loc,
              tensor ? "not supported yet: a tensor of %s that is not a direct operand of a product, on %s"
                     : "not supported yet: a conversion to %s on %s",
              tcc_scalar_name(value->type->elem), tcc_target_of(ctx->ir)->name);
    return false;
}

tcc_value *tcc_tiling_start(tcc_tiling *t, const tcc_type *tile, tcc_reduction kind)
{
    bool ints = tcc_scalar_classify(tile->elem) == TCC_CLASS_INT;
    tcc_cell start = tcc_reduction_start(kind, tile->elem);
    return ints ? tcc_build_int(&t->b, tile, start.i) : tcc_build_float(&t->b, tile, start.f);
}

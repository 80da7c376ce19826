/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/hash.h"

#include "support/map.h"

/* Names, words and types are interned. */
static uint64_t mix_pointer(uint64_t h, const void *p)
{
    return tcc_hash_mix(h, (uintptr_t)p);
}

static uint64_t mix_loc(uint64_t h, tcc_loc loc)
{
    return tcc_hash_mix(h, (uint64_t)loc.line << 32 | loc.column);
}

static uint64_t mix_attr(uint64_t h, const tcc_attr *a)
{
    h = tcc_hash_mix(h, a->kind);
    switch (a->kind) {
    case TCC_ATTR_STR: return mix_pointer(h, a->s);
    case TCC_ATTR_INDEX: return mix_pointer(h, a->index);
    case TCC_ATTR_INT:
    case TCC_ATTR_FLOAT: return tcc_hash_mix(h, (uint64_t)a->i);
    default: break;
    }
    h = tcc_hash_mix(h, a->list.n);
    for (size_t i = 0; i < a->list.n; i++)
        h = mix_attr(h, &a->list.items[i]);
    return h;
}

static uint64_t mix_attrs(uint64_t h, const tcc_attrs *attrs)
{
    h = tcc_hash_mix(h, attrs->len);
    for (size_t i = 0; i < attrs->len; i++)
        h = mix_attr(mix_pointer(h, attrs->data[i].name), &attrs->data[i].value);
    return h;
}

static uint64_t mix_value(uint64_t h, const tcc_value *v)
{
    return mix_pointer(mix_pointer(mix_pointer(h, v), v->type), v->name);
}

/* Regions nest as deeply as the IR does: the parser bounds that. */
static uint64_t mix_block(uint64_t h, const tcc_block *b)
{
    h = tcc_hash_mix(h, b->n_args);
    for (size_t i = 0; i < b->n_args; i++)
        h = mix_value(h, b->args[i]);
    for (const tcc_op *op = b->first; op; op = op->next) {
        h = mix_attrs(mix_loc(tcc_hash_mix(mix_pointer(h, op), op->code), op->loc), &op->attrs);
        h = tcc_hash_mix(h, op->n_operands);
        for (unsigned i = 0; i < op->n_operands; i++)
            h = mix_pointer(h, op->operands[i]);
        h = tcc_hash_mix(h, op->n_results);
        for (unsigned i = 0; i < op->n_results; i++)
            h = mix_value(h, &op->results[i]);
        h = tcc_hash_mix(h, op->n_regions);
        for (unsigned i = 0; i < op->n_regions; i++)
            h = mix_block(h, op->regions[i]);
    }
    return tcc_hash_mix(h, 0); /* the end */
}

uint64_t tcc_func_hash(const tcc_func *f)
{
    return mix_block(mix_attrs(mix_loc(mix_pointer(0, f->name), f->loc), &f->attrs), f->body);
}

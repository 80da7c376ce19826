/* launch_alike: all that the check of a plan looks at: the attributes that say how steps are launched, and the ops that
 * matter. Names and types are interned, so that their addresses stand for them in a module.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "checker/launch.h"

typedef struct writer {
    uint8_t *bytes;
    size_t n, cap;
    tcc_arena *scratch;
} writer;

static void put(writer *w, const void *bytes, size_t n)
{
    while (w->n + n > w->cap)
        w->bytes = tcc_arena_grow(w->scratch, w->bytes, 1, w->cap, &w->cap);
    memcpy(w->bytes + w->n, bytes, n);
    w->n += n;
}

static void put_int(writer *w, int64_t i)
{
    put(w, &i, sizeof i);
}

static void put_attr(writer *w, const tcc_attr *a)
{
    put_int(w, a->kind);
    if (a->kind == TCC_ATTR_LIST) {
        put_int(w, (int64_t)a->list.n);
        for (size_t i = 0; i < a->list.n; i++)
            put_attr(w, &a->list.items[i]);
    } else if (a->kind == TCC_ATTR_STR) {
        put(w, &a->s, sizeof a->s);
    } else {
        put(w, &a->i, sizeof a->i); /* or the bits of a float */
    }
}

static void put_code(writer *w, const tcc_lcode *code);

static void put_inst(writer *w, const tcc_linst *in)
{
    const tcc_op *op = in->op;
    put_int(w, op->code);
    put(w, in->operands, op->n_operands * sizeof *in->operands);
    put(w, in->results, op->n_results * sizeof *in->results);
    for (unsigned i = 0; i < op->n_results; i++)
        put(w, &op->results[i].type, sizeof op->results[i].type);
    put_int(w, in->param);
    put_int(w, in->bits);
    for (size_t i = 0; i < op->attrs.len; i++) {
        put(w, &op->attrs.data[i].name, sizeof op->attrs.data[i].name);
        put_attr(w, &op->attrs.data[i].value);
    }
    for (unsigned i = 0; i < op->n_regions; i++)
        put_code(w, &in->regions[i]);
}

static void put_code(writer *w, const tcc_lcode *code)
{
    put_int(w, (int64_t)code->n);
    put(w, code->args, code->n_args * sizeof *code->args);
    put(w, code->yields, code->n_yields * sizeof *code->yields);
    for (size_t i = 0; i < code->n; i++)
        put_inst(w, &code->insts[i]);
}

const uint8_t *tcc_launch_write(const tcc_lplan *p, size_t *n)
{
    static const char *const attrs[] = {"dims",  "roles", "args",         "params",     "requires", "grid",
                                        "block", "wave",  "cluster_ctas", "fewer_ctas", "zeroed"};
    writer w = {.scratch = p->scratch};
    put(&w, "plan", 4); /* and no function (alike.c) */
    for (size_t s = 0; s < p->n_steps; s++) {
        const tcc_func *f = p->steps[s].f;
        put_int(&w, f == p->variant);
        for (size_t i = 0; i < sizeof attrs / sizeof *attrs; i++) {
            const tcc_named_attr *a = tcc_attr_find(&f->attrs, attrs[i]);
            put_attr(&w, a ? &a->value : &(tcc_attr){.kind = TCC_ATTR_LIST});
        }
        const tcc_lprogram *program = p->steps[s].program;
        put_code(&w, &program->body);
        for (size_t i = 0; i < program->constants.len; i++)
            put_inst(&w, &program->constants.data[i]);
    }
    *n = w.n;
    return w.bytes;
}

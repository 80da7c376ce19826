/* reduce-strength: carry multiples of an outer loop's counter instead of multiplying.
 *
 * Before:  scf.for %t = 0 … 1 {                 After:  scf.for %t = 0 … 1, %zero {
 *            %a = arith.mul %t, %n                      ^(%t, %a):
 *            scf.for %i = 0 to %n {                       %end = scf.for %i = 0 to %n, %a {
 *              %b = arith.add %a, %i                      ^(%i, %b):
 *              …                                            …
 *            }                                              scf.yield (%b + 1)
 *          }                                              }
 *                                                         scf.yield %end
 *                                                       }
 *
 * The iteration number of a ring that runs on from tile to tile becomes a counter in this way, which the
 * protocol checker follows for any number of iterations. Where the inner loop is under a condition, as in
 * roles that take turns, a loop that only counts (ir/counting.h) comes to the next tile's instead:
 *
 *          scf.for %t = 0 … 1 {                   scf.for %t = 0 … 1, %zero {
 *            %a = arith.mul %t, %n                ^(%t, %a):
 *            scf.if %mine {                         scf.if %mine {
 *              scf.for %i = 0 to %n {                 scf.for %i = 0 to %n, %a {
 *                %b = arith.add %a, %i                ^(%i, %b):
 *                …                                      …
 *              }                                        scf.yield (%b + 1)
 *            }                                        }
 *          }                                        }
 *                                                   %next = scf.for %j = 0 to %n, %a { scf.yield (… + 1) }
 *                                                   scf.yield %next
 *                                                 }
 *
 * Where no inner loop counts on, what is carried grows by %n. Innermost loops are LLVM's, which knows what addresses
 * cost, and so are other multiples by constants.
 *
 * Requires licm, which moves what is the same in all iterations out of loops. Preserves all else.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/arith.h"
#include "passes/loops.h"
#include "passes/passes.h"

static bool has_loop(const tcc_op *loop)
{
    const tcc_block *body = loop->regions[0];
    for (tcc_op *op = body->first; op; op = tcc_walk_next(op, body))
        if (tcc_is_loop(op))
            return true;
    return false;
}

/* By what an op multiplies the counter of a loop, the same number in all iterations; else NULL. */
static tcc_value *factor_of(const tcc_op *op, const tcc_op *loop)
{
    const tcc_value *counter = loop->regions[0]->args[0];
    if (op->code != TCC_OP_arith_mul || (op->operands[0] != counter && op->operands[1] != counter))
        return NULL;
    tcc_value *n = op->operands[op->operands[0] == counter];
    return tcc_is_invariant(n, loop) ? n : NULL;
}

static tcc_value *times(tcc_builder *b, tcc_value *v, tcc_value *n)
{
    int64_t c;
    bool is_known = tcc_value_is_int(v, &c);
    return is_known && c == 0   ? v
           : is_known && c == 1 ? n
                                : tcc_arith_bin(b, TCC_OP_arith_mul, v, n);
}

/* How much more than n, the iterations of an inner loop, a sum after it adds to a multiple of n. */
static bool is_beyond(const tcc_op *sum, const tcc_value *multiple, const tcc_value *n, int64_t *by)
{
    const tcc_value *more = sum->operands[sum->operands[0] == multiple];
    int64_t known, all;
    bool constants = tcc_value_is_int(more, &known) && tcc_value_is_int(n, &all);
    *by = constants ? known - all : 0;
    return constants || more == n;
}

/* Whether a multiple is only used for the number that an inner loop of n iterations reaches. */
static bool counts_on(const tcc_value *multiple, const tcc_op *inner, const tcc_value *n)
{
    const tcc_block *body = inner->regions[0];
    bool counts = tcc_counts_iterations(inner) && inner->operands[1] == n &&
                  tcc_attr_int(&inner->attrs, "at_least_once", 0);
    int64_t by;
    for (const tcc_use *u = multiple->uses; u && counts; u = u->next)
        counts = u->op->code == TCC_OP_arith_add &&
                 (tcc_ancestor_in(u->op, body)
                      ? u->op->operands[u->op->operands[0] == multiple] == body->args[0]
                      : tcc_op_reaches(inner, u->op) && is_beyond(u->op, multiple, n, &by));
    return counts && multiple->n_uses;
}

/* The loop after an op that continues counting from its result, a multiple of n, in the same block or under a
 * condition; NULL if there is none. */
static tcc_op *find_counting(const tcc_op *mul, const tcc_op *outer, const tcc_value *n)
{
    const tcc_block *body = outer->regions[0];
    int64_t step;
    bool by_one = tcc_value_is_int(outer->operands[2], &step) && step == 1;
    for (tcc_op *op = mul->next; op && by_one; op = tcc_walk_next(op, body)) {
        const tcc_block *block = op->block;
        while (block != body && block->parent->code == TCC_OP_scf_if)
            block = block->parent->block;
        if (block == body && tcc_is_loop(op) && counts_on(&mul->results[0], op, n))
            return op;
    }
    return NULL;
}

/* Whether an op is a multiple that should be carried. */
static bool is_wanted(const tcc_op *op, const tcc_op *loop)
{
    int64_t c;
    const tcc_value *n = factor_of(op, loop);
    return n && (!tcc_value_is_int(n, &c) || find_counting(op, loop, n));
}

/* Lets the inner loop carry it on, from `first`; returns what it comes to. */
static tcc_value *count_on(tcc_value *multiple, tcc_op *inner, tcc_value *first)
{
    inner = tcc_carry(inner, first);
    tcc_block *body = inner->regions[0];
    tcc_value *at = body->args[body->n_args - 1], *end = &inner->results[inner->n_results - 1];
    while (multiple->uses) {
        tcc_op *sum = multiple->uses->op;
        tcc_builder b = tcc_builder_before(sum);
        int64_t by;
        is_beyond(sum, multiple, inner->operands[1], &by);
        tcc_replace_uses(&sum->results[0],
                         tcc_ancestor_in(sum, body) ? at : tcc_arith_add(&b, end, by));
        tcc_op_erase(sum);
    }
    tcc_builder b = tcc_builder_before(body->last);
    tcc_carry_next(inner, tcc_arith_add(&b, at, 1));
    return end;
}

/* Counts from `at` over the iterations of the inner loop; returns the final number. */
static tcc_value *count_over(tcc_builder *b, const tcc_op *inner, tcc_value *at)
{
    tcc_value *operands[] = {tcc_build_i32(b, 0), inner->operands[1], NULL, at};
    operands[2] = tcc_build_i32(b, 1);
    tcc_op *loop = tcc_op_create(b, TCC_OP_scf_for, 4, operands, 1, &at->type);
    tcc_attr_set_int(b->func->ir, &loop->attrs, "at_least_once", 1);
    tcc_block_add_arg(loop->regions[0], inner->operands[1]->type, NULL);
    tcc_value *counted = tcc_block_add_arg(loop->regions[0], at->type, NULL);
    tcc_builder in = tcc_builder_at_end(loop->regions[0]);
    in.loc = b->loc;
    tcc_value *next = tcc_arith_add(&in, counted, 1);
    tcc_op_create(&in, TCC_OP_scf_yield, 1, &next, 0, NULL);
    return &loop->results[0];
}

/* Carries one multiple. */
static void carry(tcc_op *loop, tcc_op *mul)
{
    tcc_value *n = factor_of(mul, loop), *next = NULL;
    tcc_op *inner = find_counting(mul, loop, n);
    tcc_builder b = tcc_builder_before(loop);
    b.loc = mul->loc;
    tcc_value *first = times(&b, loop->operands[0], n);
    tcc_value *more = times(&b, loop->operands[2], n);
    loop = tcc_carry(loop, first);
    tcc_block *body = loop->regions[0];
    tcc_value *at = body->args[body->n_args - 1];
    if (inner && inner->block != body) {
        b = tcc_builder_before(body->last);
        b.loc = mul->loc;
        next = count_over(&b, inner, at);
    }
    if (inner) {
        tcc_value *end = count_on(&mul->results[0], inner, at);
        next = next ? next : end;
    }
    tcc_replace_uses(&mul->results[0], at);
    tcc_op_erase(mul);
    b = tcc_builder_before(body->last);
    tcc_carry_next(loop, next ? next : tcc_arith_bin(&b, TCC_OP_arith_add, at, more));
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    TCC_VEC(tcc_block *) bodies = {0}; /* of outer loops, which are rebuilt */
    for (tcc_op *op = f->body->first; op; op = tcc_walk_next(op, f->body))
        if (tcc_is_loop(op) && has_loop(op))
            TCC_PUSH(ctx->scratch, &bodies, op->regions[0]);
    for (size_t i = 0; i < bodies.len; i++)
        for (tcc_op *op = bodies.data[i]->first; op;)
            if (is_wanted(op, bodies.data[i]->parent)) {
                carry(bodies.data[i]->parent, op);
                *changed = true;
                op = bodies.data[i]->first;
            } else {
                op = op->next;
            }
    return TCC_OK;
}

const tcc_pass tcc_pass_reduce_strength = {
    "reduce-strength", "carry multiples of an outer loop's counter instead of multiplying", .run = run};

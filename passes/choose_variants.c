/* choose-variants: decide which entries a kernel gets, and what each may count on.
 *
 * Before:  func @f(…) {…}   After:  func @f(…) {assumes = [[align, A, 16], …, [min, K, 1]], …}
 *                                   func @f__direct(…) {assumes = [[align, A, 16], …], …}
 *                                   func @f__padded(…) {assumes = [[min, K, 1]], padded = [A, B], …}
 *                                   func @f__generic(…) {assumes = []}
 *
 * A variant is defined by its assumptions (ir/assume.h); suffixes of names are for readers. The
 * first one copies with the tensor memory accelerator (TMA), or 16 bytes at a time by threads, on
 * RDNA through buffer descriptors, and needs 16-byte aligned bases and row pitches. The second has
 * fewer requirements, and accesses tensors that are not operands of the product element by element.
 * TMA still needs the operands aligned: the variant is left out where that means that everything is.
 * On RDNA it copies operands of any pitch, 16 bytes at a time. Where rows may be unaligned, what TMA or
 * threads copy can be operands that a step before has copied to aligned rows (pad-operands), unless elements
 * are words, which threads copy one by one. The last variant assumes nothing. Variants that can never be valid
 * are left out.
 *
 * Requires choose-axes. Preserves the body.
 */
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/assume.h"
#include "ir/cut.h"
#include "ir/schedule_key.h"
#include "ir/signature.h"
#include "passes/choose_axes.h"
#include "passes/choose_target.h"
#include "passes/space.h"
#include "passes/families.h"
#include "passes/long_expressions.h"
#include "passes/merging.h"
#include "passes/passes.h"
#include "passes/pointwise.h"
#include "passes/rows.h"

enum { ACCESS_BYTES = 16, ACCESS_BITS = 8 * ACCESS_BYTES, WORD_BITS = 32 };

/* The bits of a tensor along dimension d, 0 when they are not known. */
static int64_t bits_along(const tcc_type *t, int d)
{
    return t->dims[d].name ? 0 : t->dims[d].size * tcc_scalar_bits(t->elem);
}

static int64_t row_bits(const tcc_type *t)
{
    return bits_along(t, (int)t->rank - 1);
}

/* The bits of which the distances of rows are multiples, as far as they are known. */
static int64_t pitch_bits(const tcc_type *t)
{
    return t->strides && t->rank > 1 ? tcc_type_known_pitch(t) * tcc_scalar_bits(t->elem) : row_bits(t);
}

static const char *why_not_contiguous(const tcc_sum_operand *o, const char *x)
{
    return tcc_read_is_contiguous_in(o->read, x, o->k)
               ? NULL
               : "its last index is neither the summed one nor its own";
}

/* Bytes are moved whole on the way to shared memory. */
static const char *why_not_whole_bytes(const tcc_sum_operand *o)
{
    const tcc_type *t = TCC_VIEW(tensor_read, o->read)->tensor->type;
    bool along = tcc_read_is_contiguous_in(o->read, o->k, o->k);
    return tcc_scalar_bits(t->elem) >= 8 || along
               ? NULL
               : "its rows run along its own index, and elements of half a byte cannot be transposed while they are "
                 "copied";
}

static const char *why_not_aligned(const tcc_sum_operand *o, const char *x)
{
    const tcc_type *t = TCC_VIEW(tensor_read, o->read)->tensor->type;
    const char *why = why_not_contiguous(o, x);
    if (!why && t->rank == 1 && tcc_scalar_bits(t->elem) < 8)
        return "its last byte may be half empty";
    if (!why && t->rank > 1 && pitch_bits(t) % ACCESS_BITS)
        return "its rows are not a multiple of 16 bytes";
    return why;
}

static const char *why_not_by_threads(const tcc_sum_operand *o, const char *x)
{
    const char *why = why_not_whole_bytes(o);
    return why ? why : why_not_aligned(o, x);
}

/* Loads to registers end where a row does. */
static const char *why_not_vectors(const tcc_sum_operand *o, const char *x)
{
    const char *why = why_not_by_threads(o, x);
    if (!why && row_bits(TCC_VIEW(tensor_read, o->read)->tensor->type) % ACCESS_BITS)
        return "its rows are not a multiple of 16 bytes";
    return why;
}

/* Those that remain when indices are one, and one more for the rows that it does not have. */
static bool has_too_many_dimensions(const tcc_op *read, const char *x)
{
    return tcc_merged_rank(read) + (tcc_map_position(read, x) < 0) > 5;
}

/* TMA boxes are contiguous along the innermost dimension: cuTensorMapEncodeTiled. */
static const char *why_not_tma(const tcc_sum_operand *o, const char *x)
{
    if (has_too_many_dimensions(o->read, x))
        return "it has more than 5 dimensions";
    return why_not_by_threads(o, x);
}

/* Operands that are not contiguous along k are transposed in registers, by instructions that move
 * bytes, unless they are computed there. */
static const char *why_not_through_registers(const tcc_sum_operand *o, const char *x)
{
    const char *why = tcc_sum_operand_is_computed(o) ? NULL : why_not_whole_bytes(o);
    if (why)
        return why;
    if (tcc_map_position(o->read, x) < 0)
        return "it has no index of its own";
    return NULL;
}

/* The name of the last dimension, or of a stride, where rows of the tensor may be unaligned, else NULL. */
static const char *pitch_of(const tcc_value *tensor)
{
    const tcc_type *t = tensor->type;
    if (t->strides && t->rank > 1)
        return tcc_type_open_stride(t);
    return t->rank ? t->dims[t->rank - 1].name : NULL;
}

/* Whether 16 bytes may hold the end of a padded row: where no argument has rows of the same length, which a variant could
 * assume aligned. */
static bool may_end_anywhere(const tcc_op *read)
{
    const tcc_value *tensor = TCC_VIEW(tensor_read, read)->tensor;
    const tcc_func *f = read->block->func;
    bool may = tensor->type->row_bytes && pitch_of(tensor); /* of strides: what is assumed says that it does not */
    for (size_t i = 0; i < f->body->n_args && may; i++)
        may = !tcc_has_rows_of(f->body->args[i], tensor->type->dims[tensor->type->rank - 1]);
    return may;
}

static const char *why_not_buffer(const tcc_sum_operand *o, const char *x)
{
    const tcc_type *t = TCC_VIEW(tensor_read, o->read)->tensor->type;
    const char *why = why_not_through_registers(o, x);
    why = why ? why : why_not_aligned(o, x);
    if (!why && tcc_type_has_gaps(t) && row_bits(t) % ACCESS_BITS)
        return "its rows may end within 16 bytes";
    return why ? why : may_end_anywhere(o->read) ? "its rows may end within 16 bytes" : NULL;
}

/* Rows begin at any byte, but not within one, and hold what a lane loads at a time. */
static const char *why_not_unaligned(const tcc_sum_operand *o, const char *x)
{
    const tcc_type *t = TCC_VIEW(tensor_read, o->read)->tensor->type;
    const char *why = why_not_through_registers(o, x);
    why = why ? why : why_not_contiguous(o, x);
    if (why)
        return why;
    int64_t bits = row_bits(t), along_k = bits_along(t, tcc_map_position(o->read, o->k));
    if ((bits && bits < ACCESS_BITS) || (along_k && along_k < ACCESS_BITS))
        return "it has less than 16 bytes along a row or along the sum";
    return bits % 8 ? "its rows are not whole bytes" : NULL;
}

static bool is_aligned(const tcc_func *f, const tcc_value *tensor)
{
    return tcc_assumes_align(f, tensor, ACCESS_BYTES) && tcc_assumes_pitch(f, tensor, ACCESS_BYTES);
}

/* Nor does padding follow a row's end within 16 bytes, to be multiplied. */
static bool is_in_whole_accesses(const tcc_func *f, const tcc_value *tensor)
{
    const tcc_type *t = tensor->type;
    const tcc_value *rows;
    int64_t n = ACCESS_BITS / tcc_scalar_bits(t->elem);
    return is_aligned(f, tensor) &&
           (!tcc_type_has_gaps(t) || tcc_assumes_multiple(f, t->dims[t->rank - 1], n, &rows));
}

static bool is_long(const tcc_func *f, const tcc_value *tensor)
{
    return tcc_type_has_rows(tensor->type) && tcc_assumes_length(f, tensor, ACCESS_BYTES) &&
           (tcc_scalar_bits(tensor->type->elem) >= 8 || tcc_assumes_pitch(f, tensor, 1));
}

static void assume_aligned(tcc_func *f, const tcc_value *tensor)
{
    tcc_assume(f, "align", tensor->name, ACCESS_BYTES);
    if (pitch_of(tensor))
        tcc_assume(f, "pitch", tensor->name, ACCESS_BYTES);
}

/* What tensor maps need: strides of at least 1. */
static void assume_map(tcc_func *f, const tcc_value *tensor)
{
    const tcc_type *t = tensor->type;
    assume_aligned(f, tensor);
    for (unsigned d = 0; t->strides && d + 1 < t->rank; d++)
        if (t->strides[d].name && !tcc_assumes_min(f, t->strides[d], 1))
            tcc_assume(f, "min", t->strides[d].name, 1);
}

/* That rows with strides end at multiples of this many bytes: what follows them is the caller's. */
static void assume_ends(tcc_func *f, const tcc_value *tensor, int64_t bytes)
{
    const tcc_type *t = tensor->type;
    const tcc_value *rows;
    int64_t n = 8 * bytes / tcc_scalar_bits(t->elem);
    if (t->strides && t->rank > 1 && n > 1 && t->dims[t->rank - 1].name &&
        !tcc_assumes_multiple(f, t->dims[t->rank - 1], n, &rows))
        tcc_assume(f, "multiple", t->dims[t->rank - 1].name, n);
}

static void assume_whole_accesses(tcc_func *f, const tcc_value *tensor)
{
    assume_aligned(f, tensor);
    assume_ends(f, tensor, ACCESS_BYTES);
}

/* Elements that are copied one at a time are naturally aligned. */
static bool is_of_words(const tcc_func *f, const tcc_value *tensor)
{
    int64_t bits = tcc_scalar_bits(tensor->type->elem);
    return bits >= WORD_BITS && tcc_assumes_align(f, tensor, bits / 8);
}

static void assume_words(tcc_func *f, const tcc_value *tensor)
{
    tcc_assume(f, "align", tensor->name, tcc_scalar_bits(tensor->type->elem) / 8);
}

static const char *why_not_words(const tcc_sum_operand *o, const char *x)
{
    bool words = tcc_scalar_bits(TCC_VIEW(tensor_read, o->read)->tensor->type->elem) >= WORD_BITS;
    return words ? why_not_contiguous(o, x) : "its elements have less than 4 bytes";
}

static void assume_long(tcc_func *f, const tcc_value *tensor)
{
    tcc_assume(f, "length", tensor->name, ACCESS_BYTES);
    if (tcc_scalar_bits(tensor->type->elem) < 8 && pitch_of(tensor)) /* rows are whole bytes */
        tcc_assume(f, "pitch", tensor->name, 1);
}

static const tcc_way by_tma = {"tma", "TMA", is_aligned, assume_map, why_not_tma, 1, true, false},
                     by_buffer = {"buffer",       "16-byte accesses", is_in_whole_accesses,
                                  assume_whole_accesses, why_not_buffer, 0, false, false},
                     by_threads = {"cp_async", "16-byte copies", is_aligned,
                                   assume_aligned, why_not_by_threads, 0, true, false},
                     by_elements = {"cp_async_elements", "copies of elements", is_of_words,
                                    assume_words, why_not_words, 0, false, false},
                     vectors = {"vectors", "16-byte accesses", is_aligned,
                                assume_whole_accesses, why_not_vectors, 0, true, false},
                     elements = {"elements", "accesses of words", is_of_words,
                                 assume_words, why_not_words, 0, false, false},
                     unaligned = {"unaligned", "16-byte accesses", is_long,
                                  assume_long, why_not_unaligned,  ACCESS_BITS, false, true};
const tcc_copying tcc_copying_by_tma = {&by_tma, &by_tma, NULL};
const tcc_copying tcc_copying_by_threads = {&by_threads, &by_threads, &by_elements};
const tcc_copying tcc_copying_by_registers = {&vectors, &vectors, &elements};
const tcc_copying tcc_copying_by_buffer = {&by_buffer, &unaligned, NULL};

/* Elements along k that one way of copying a tensor needs. */
static int64_t least_along_k(const tcc_way *way, const tcc_value *tensor)
{
    int64_t bits = tcc_scalar_bits(tensor->type->elem);
    return (way->least_k_bits + bits - 1) / bits;
}

const char *tcc_copying_of(const tcc_copying *how, const tcc_func *f, const tcc_value *const *tensors, size_t n,
                           tcc_dim k)
{
    const tcc_way *const ways[] = {how->first, how->direct, how->generic};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        bool all = ways[i];
        for (size_t t = 0; t < n && all; t++)
            all = ways[i]->is_assumed(f, tensors[t]) && tcc_assumes_min(f, k, least_along_k(ways[i], tensors[t]));
        if (all)
            return ways[i]->copy;
    }
    return NULL;
}

/* The operands' tensors; clones of a function have the same parameters. */
static const tcc_value *tensor_of(const tcc_op *read)
{
    return TCC_VIEW(tensor_read, read)->tensor;
}

const char *tcc_copying_of_operands(const tcc_copying *how, const tcc_func *f,
                                    const tcc_space *c)
{
    const tcc_value **tensors = TCC_NEW_ARRAY(f->ir->arena, const tcc_value *, c->n_operands);
    for (size_t i = 0; i < c->n_operands; i++) {
        if (why_not_contiguous(&c->operands[i], c->axes[c->operands[i].axis]))
            return NULL;
        tensors[i] = tensor_of(c->operands[i].read);
    }
    return tcc_copying_of(how, f, tensors, c->n_operands, c->k_extent);
}

/* Whether rows of an operand have a pitch of this name, or of any: NULL. */
static bool is_pitch_of_operands(const tcc_space *c, const char *pitch)
{
    for (size_t i = 0; i < c->n_operands; i++) {
        const char *of = pitch_of(tensor_of(c->operands[i].read));
        if (of && (!pitch || of == pitch))
            return true;
    }
    return false;
}

/* True when rows may be unaligned where the first variant needs them aligned and the direct one
 * does not: of the sums' operands; of something else although the operands' are aligned. */
static bool may_be_unaligned(const tcc_func *f, const tcc_space *c,
                             bool direct_wants_operands)
{
    if (!direct_wants_operands && is_pitch_of_operands(c, NULL))
        return true;
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        const tcc_value *tensor = tcc_accessed_tensor(op);
        const char *pitch = tensor ? pitch_of(tensor) : NULL;
        if (pitch && !is_pitch_of_operands(c, pitch))
            return true;
    }
    return false;
}

/* The assumptions of one way of copying all operands. */
static void assume_operands(tcc_func *f, const tcc_space *c, const tcc_way *way)
{
    int64_t least = 0;
    for (size_t i = 0; i < c->n_operands; i++) {
        const tcc_value *tensor = tensor_of(c->operands[i].read);
        int64_t needed = least_along_k(way, tensor);
        least = needed > least ? needed : least;
        bool is_new = true;
        for (size_t j = 0; j < i; j++)
            is_new &= tensor_of(c->operands[j].read) != tensor;
        if (is_new)
            way->assume(f, tensor);
    }
    if (c->k_extent.name && least)
        tcc_assume(f, "min", c->k_extent.name, least);
}

static bool is_read(const tcc_value *tensor)
{
    const tcc_use *u = tensor->uses;
    while (u && u->op->code != TCC_OP_tensor_read)
        u = u->next;
    return u != NULL;
}

/* That everything else is aligned as well. */
static void assume_others(tcc_func *f, const tcc_space *c, const tcc_copying *how)
{
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_value *arg = f->body->args[i];
        if (arg->type->kind != TCC_KIND_tensor || tcc_space_multiplies(c, arg))
            continue;
        (how->first == &by_tma ? assume_map : assume_aligned)(f, arg);
        if (how->first != &by_tma || is_read(arg)) /* else the copy engine stores it */
            assume_ends(f, arg, ACCESS_BYTES);
    }
}

/* Names the tensors that a step before is to copy: those of operands whose rows do not run along k where `transposes`
 * says, to rows that do; with `pads` others to aligned rows, unless these are. */
static void copy_operands(tcc_func *f, const tcc_space *c, bool pads, bool transposes)
{
    tcc_ir *ir = f->ir;
    tcc_attr padded = {.kind = TCC_ATTR_LIST}, transposed = {.kind = TCC_ATTR_LIST};
    tcc_attr *items = TCC_NEW_ARRAY(ir->arena, tcc_attr, 3 * c->n_operands), *pairs = items + c->n_operands;
    for (size_t i = 0; i < c->n_operands; i++) {
        const tcc_sum_operand *o = &c->operands[i];
        const tcc_value *tensor = tensor_of(o->read);
        const tcc_attr name = {.kind = TCC_ATTR_STR, .s = tensor->name};
        bool across = transposes && !tcc_read_is_contiguous_in(o->read, o->k, o->k);
        tcc_attr *list = across ? &transposed : &padded;
        const tcc_attr last = {.kind = TCC_ATTR_INT, .i = tcc_map_position(o->read, o->k)};
        bool is_new = across || (pads && !tensor->type->row_bytes);
        for (size_t j = 0; j < list->list.n; j += 1 + across)
            is_new &= (across ? pairs : items)[j].s != name.s || (across && pairs[j + 1].i != last.i);
        if (!is_new)
            continue;
        (across ? pairs : items)[list->list.n++] = name;
        if (across)
            pairs[list->list.n++] = last;
    }
    padded.list.items = items;
    transposed.list.items = pairs;
    tcc_assume(f, NULL, NULL, 0);
    if (c->k_extent.name)
        tcc_assume(f, "min", c->k_extent.name, 1);
    if (padded.list.n)
        tcc_attr_set(ir, &f->attrs, "padded", padded, (tcc_loc){0, 0});
    if (transposed.list.n)
        tcc_attr_set(ir, &f->attrs, "transposed", transposed, (tcc_loc){0, 0});
}

/* suffix: of its name, for people */
static tcc_func *add_variant(tcc_pass_ctx *ctx, tcc_func *f, const char *suffix)
{
    return tcc_func_clone(f, tcc_arena_printf(ctx->scratch, "%s__%s", f->name, suffix));
}

/* Why not all operands can be copied so, and which cannot; NULL when they can. */
static const char *why_not_all(const tcc_space *c, const tcc_way *way, const tcc_op **culprit)
{
    const char *why = !c->k_extent.name && !c->k_extent.size ? "the sum is empty" : NULL;
    *culprit = c->operands[0].read;
    for (size_t i = 0; i < c->n_operands && !why; i++) {
        const tcc_sum_operand *o = &c->operands[i];
        *culprit = o->read;
        why = way->why_not(o, c->axes[o->axis]);
    }
    unsigned bits = tcc_scalar_bits(tcc_sum_operand_elem(&c->operands[0]));
    for (size_t i = 1; i < c->n_operands && !why && way->of_one_width; i++) {
        *culprit = c->operands[i].read;
        if (tcc_scalar_bits(tcc_sum_operand_elem(&c->operands[i])) != bits)
            why = "its elements are not as wide as other operands'";
    }
    return why;
}

/* Whether the first way, which needs aligned rows, can copy all operands, and does better with a step that pads
 * them. */
static bool wants_padding(const tcc_func *f, const tcc_space *c, const tcc_copying *how)
{
    const tcc_op *culprit;
    bool any = false, pipelines = how->generic && !why_not_all(c, how->generic, &culprit);
    for (size_t i = 0; i < c->n_operands; i++) {
        const tcc_op *read = c->operands[i].read;
        const tcc_type *t = tensor_of(read)->type;
        const char *x = c->axes[c->operands[i].axis];
        if (why_not_contiguous(&c->operands[i], x) || has_too_many_dimensions(read, x) ||
            tcc_scalar_bits(t->elem) < 8 || !tcc_target_converts(tcc_func_target(f), t->elem))
            return false;
        any |= t->rank > 1 && !t->row_bytes && (pitch_of(tensor_of(read)) || pitch_bits(t) % ACCESS_BITS);
    }
    return how->first->pads && !pipelines && any && !tcc_has_long_expressions(f) && (c->k_extent.name || c->k_extent.size);
}

/* Lets a variant, whose target is the plain one, multiply by the module's own instructions. */
static tcc_func *by_own_target(tcc_func *f)
{
    tcc_attr_remove(&f->attrs, "target");
    tcc_choose_axes(f);
    return f;
}

/* Whether the operands whose rows run along k can be copied as they are, if the others are transposed. */
static bool can_transpose(const tcc_space *c)
{
    bool can = true;
    for (size_t i = 0; i < c->n_operands; i++) {
        const tcc_sum_operand *o = &c->operands[i];
        can &= !tcc_read_is_contiguous_in(o->read, o->k, o->k) || !by_tma.why_not(o, c->axes[o->axis]);
    }
    return can;
}

/* Lets a variant copy the operands whose rows do not run along k. */
static void transpose(tcc_func *variant, const tcc_space *c)
{
    copy_operands(by_own_target(variant), c, false, true);
    for (size_t i = 0; i < c->n_operands; i++) {
        const tcc_sum_operand *o = &c->operands[i];
        if (tcc_read_is_contiguous_in(o->read, o->k, o->k) && !is_aligned(variant, tensor_of(o->read)))
            assume_map(variant, tensor_of(o->read));
    }
    assume_others(variant, c, &tcc_copying_by_tma);
}

/* Which indices are merged, in all variants except the generic one, which is for all extents. */
static void choose_merged(tcc_func *f)
{
    tcc_attr merged = tcc_find_merged(f);
    if (merged.list.n && !tcc_attr_find(&f->attrs, "merged"))
        tcc_attr_set(f->ir, &f->attrs, "merged", merged, (tcc_loc){0, 0});
}

static void make_generic(tcc_func *f)
{
    tcc_assume(f, NULL, NULL, 0);
    tcc_attr_remove(&f->attrs, "merged");
}

/* ---- kernels without a product ------------------------------------------------------------- */

/* Whether vectors of a tensor's elements can be aligned in all rows. */
static bool can_be_aligned(const tcc_space *p, const tcc_value *tensor)
{
    int64_t bits = 8 * tcc_pointwise_bytes(p, tensor);
    return row_bits(tensor->type) % bits == 0 && pitch_bits(tensor->type) % bits == 0;
}

static void assume_vectors(tcc_func *f, const tcc_space *p, const tcc_value *tensor)
{
    int64_t bytes = tcc_pointwise_bytes(p, tensor);
    if (bytes * 8 <= tcc_scalar_bits(tensor->type->elem) || tcc_pointwise_is_aligned(f, p, tensor))
        return;
    tcc_assume(f, "align", tensor->name, bytes);
    if (pitch_of(tensor))
        tcc_assume(f, "pitch", tensor->name, bytes);
    assume_ends(f, tensor, bytes);
}

/* Whether rows of a tensor are as long as those of an output, so that both are aligned. */
static bool is_pitch_of_output(const tcc_func *f, const tcc_space *p, const tcc_value *tensor)
{
    for (const tcc_op *op = f->body->first; op; op = op->next)
        if (op->code == TCC_OP_tensor_write && tcc_pointwise_runs_along(p, op) &&
            pitch_of(tcc_accessed_tensor(op)) == pitch_of(tensor))
            return true;
    return false;
}

/* Row kernels hold whole rows in registers, up to each of these lengths by as many lanes; longer ones are swept over.
 * From 1024 on at most a third of what lanes compute is beyond the end of a row. */
static const int64_t row_lengths[] = {8,    16,   32,   64,   128,  256,  512,   1024,
                                      1536, 2048, 3072, 4096, 6144, 8192, 12288, TCC_ROWS_MOST_COLUMNS};
/* The columns of tiles that begin before rows, of which all but as many as may be before are the row's. */
static const int64_t group_lengths[] = {1280, 1536, 2048, 2560,  3072,  4096,
                                        5120, 6144, 8192, 10240, 12288, TCC_ROWS_MOST_COLUMNS};
enum {
    N_ROW_LENGTHS = sizeof row_lengths / sizeof *row_lengths,
    N_GROUP_LENGTHS = sizeof group_lengths / sizeof *group_lengths,
    MAIN_LENGTH = 5,  /* which the first of the variants is for */
    SHORT_ROWS = 1024, /* elements, up to which rows are in no groups */
    OTHER_ROWS = 1     /* that are aligned otherwise, with lengths of their own */
};

static int64_t groups_of(const tcc_func *f)
{
    return tcc_attr_int(&f->attrs, "groups", 1);
}

static int count_lengths(const tcc_func *f)
{
    return groups_of(f) > 1 ? N_GROUP_LENGTHS : N_ROW_LENGTHS;
}

/* The longest rows that the i-th length holds; before the first: none, or those in no groups. */
static int64_t longest(const tcc_func *f, int i)
{
    if (groups_of(f) > 1)
        return i < 0 ? SHORT_ROWS : group_lengths[i] - (groups_of(f) - 1);
    return i < 0 ? -1 : row_lengths[i];
}

/* Rows that are longer than those of a length before. In the largest tile of groups, lanes have no registers for ends of
 * rows in more than their last vectors: its rows are longer than the tile before. Those between are swept over. */
static void assume_longer(tcc_func *f, const char *length, int i)
{
    bool is_largest = groups_of(f) > 1 && i == N_GROUP_LENGTHS - 1;
    int before = groups_of(f) > 1 && i == N_GROUP_LENGTHS ? i - 2 : i - 1;
    int64_t beyond = is_largest ? group_lengths[before] : longest(f, before);
    if (beyond >= 0)
        tcc_assume(f, "min", length, beyond + 1);
}

static void assume_length(tcc_func *f, const char *length, int i)
{
    assume_longer(f, length, i);
    if (i < count_lengths(f))
        tcc_assume(f, "max", length, longest(f, i));
}

/* A variant in which threads reduce the few terms of rows beside each other, if a tile may consist of more of these. */
static void add_few_terms(tcc_pass_ctx *ctx, tcc_func *f, const tcc_space *p)
{
    enum { PLANE = 2 };
    if (p->n_axes <= PLANE)
        return;
    add_variant(ctx, f, "any");
    tcc_assume(f, "max", p->extents[p->along].name, TCC_ROWS_FEWEST);
    tcc_attr_remove(&f->attrs, "row");
    tcc_attr_remove(&f->attrs, "beside");
    if (!tcc_choose_axes(f))
        tcc_attr_remove(&f->attrs, "axes");
}

/* Variants of a step would have to agree with the other steps'. */
static bool is_alone(const tcc_func *f)
{
    return !tcc_func_is_step(f) && !tcc_attr_find(&f->attrs, "before");
}

/* Variants of one for rows that are swept over. */
static void add_swept(tcc_pass_ctx *ctx, tcc_func *f, const tcc_space *p, const char *length)
{
    bool is_open = !tcc_attr_find(&f->attrs, tcc_schedule_keys[TCC_KEY_tile].name);
    tcc_dim few = tcc_rows_few(p);
    assume_length(add_variant(ctx, f, "any"), length, count_lengths(f));
    if (groups_of(f) > 1)
        return;
    if (is_open && tcc_rows_has_vectors(f, p) && !tcc_rows_parts(f)) {
        tcc_func *variant = add_variant(ctx, f, "long");
        assume_length(variant, length, N_ROW_LENGTHS);
        tcc_assume(variant, "max", length, TCC_ROWS_LONG);
    }
    if (is_open && few.name) {
        tcc_func *variant = add_variant(ctx, f, "few");
        assume_length(variant, length, N_ROW_LENGTHS);
        tcc_assume(variant, "max", few.name, few.size);
    }
}

/* Whether a kernel's expressions are so long that it does without some of the lengths, and without other variants that are
 * for few kernels. */
static bool is_long_to_compute(const tcc_func *f)
{
    return tcc_variants_worthwhile(f, N_ROW_LENGTHS, OTHER_ROWS) < N_ROW_LENGTHS;
}

static void assume_between(tcc_func *f, const char *length, int64_t above, int64_t most)
{
    if (above)
        tcc_assume(f, "min", length, above + 1);
    if (most)
        tcc_assume(f, "max", length, most);
}

/* Variants of one with long expressions for rows up to some of the lengths, the first of which it becomes, and for longer
 * ones; where no length is worthwhile all are swept over. */
static void add_some_lengths(tcc_pass_ctx *ctx, tcc_func *f, const char *length)
{
    int64_t first = 0, above = 0;
    for (int i = 0; i < N_ROW_LENGTHS; i++) {
        if (!tcc_is_worthwhile(f, (size_t)i, N_ROW_LENGTHS, OTHER_ROWS))
            continue;
        if (first)
            assume_between(add_variant(ctx, f, tcc_arena_printf(ctx->scratch, "%lld", (long long)row_lengths[i])), length,
                           above, row_lengths[i]);
        above = row_lengths[i];
        first = first ? first : above;
    }
    if (first)
        assume_between(add_variant(ctx, f, "any"), length, above, 0);
    assume_between(f, length, 0, first);
}

/* Variants of one for rows up to each length, one of which it becomes, for few longer ones, unless the schedule says how
 * they are swept over, and for any. Short rows in groups would have a CTA each. has_longer: longer ones are taken in groups,
 * wherever these are aligned. */
static void add_lengths(tcc_pass_ctx *ctx, tcc_func *f, const tcc_space *p, bool has_longer)
{
    const char *length = p->row ? p->extents[p->along].name : NULL;
    bool in_groups = groups_of(f) > 1;
    int own = in_groups ? 0 : MAIN_LENGTH;
    if (!length || !is_alone(f))
        return;
    if (!p->along) {
        if (!is_long_to_compute(f))
            add_few_terms(ctx, f, p);
        return;
    }
    if (is_long_to_compute(f)) {
        add_some_lengths(ctx, f, length);
        return;
    }
    if (has_longer)
        tcc_assume(add_variant(ctx, f, "any"), "min", length, SHORT_ROWS + 1);
    else
        add_swept(ctx, f, p, length);
    for (int i = count_lengths(f) - 1; i >= 0; i--) {
        const int64_t *lengths = in_groups ? group_lengths : row_lengths;
        if (i != own && !(has_longer && lengths[i] > SHORT_ROWS))
            assume_length(add_variant(ctx, f, tcc_arena_printf(ctx->scratch, "%lld", (long long)lengths[i])), length, i);
    }
    assume_length(f, length, own);
}

/* Whether a variant of a row kernel can have its rows in groups, and they are not short. */
static bool can_group(const tcc_func *f, const tcc_space *p)
{
    tcc_dim length = p->row ? p->extents[p->along] : (tcc_dim){0};
    return (length.name || length.size > SHORT_ROWS) && is_alone(f) && !is_long_to_compute(f) &&
           tcc_target_vendor(tcc_func_target(f)) == TCC_VENDOR_NVIDIA && tcc_rows_can_group(f, p);
}

static void assume_address(tcc_func *f, const tcc_value *tensor, int64_t bytes)
{
    if (bytes * 8 > tcc_scalar_bits(tensor->type->elem) && !tcc_assumes_align(f, tensor, bytes))
        tcc_assume(f, "align", tensor->name, bytes);
}

/* All tensors along n are read and written 16 bytes at a time; only written ones are, and read ones are
 * combined from words; neither. */
static tcc_status choose_pointwise(tcc_pass_ctx *ctx, tcc_func *f, const tcc_space *p)
{
    bool all = true, written = true, differ = false, gains = false;
    tcc_attr_set_str(ctx->ir, &f->attrs, "kernel", tcc_func_kernel(f));
    choose_merged(f);
    if (p->vector == 1) { /* nothing is wider than an element */
        make_generic(f);
        add_lengths(ctx, f, p, false);
        return TCC_OK;
    }
    for (const tcc_op *op = f->body->first; op; op = op->next) {
        const tcc_value *tensor = tcc_accessed_tensor(op);
        if (!tensor || !(tcc_pointwise_runs_along(p, op) || tcc_pointwise_is_turned(p, op)))
            continue;
        all &= can_be_aligned(p, tensor);
        written &= op->code != TCC_OP_tensor_write || can_be_aligned(p, tensor);
        differ |= pitch_of(tensor) && !is_pitch_of_output(f, p, tensor);
        gains |= op->code == TCC_OP_tensor_write || tcc_scalar_bits(tensor->type->elem) < WORD_BITS;
    }
    bool has_direct = written && gains && !(all && !differ);
    bool has_groups = can_group(f, p);
    tcc_func *first = all ? f : NULL, *generic = all || has_direct ? add_variant(ctx, f, "generic") : f;
    tcc_func *direct = !has_direct ? NULL : all ? add_variant(ctx, f, "direct") : f;
    tcc_func *in_groups = has_groups ? add_variant(ctx, f, "unaligned") : NULL;
    make_generic(generic);
    if (first)
        tcc_assume(first, NULL, NULL, 0); /* nothing may be left to assume */
    if (direct)
        tcc_assume(direct, NULL, NULL, 0);
    if (in_groups) {
        tcc_assume(in_groups, NULL, NULL, 0);
        tcc_attr_set_int(ctx->ir, &in_groups->attrs, "groups", p->vector);
    }
    for (const tcc_op *op = generic->body->first; op; op = op->next) {
        const tcc_value *tensor = tcc_accessed_tensor(op);
        if (!tensor || !(tcc_pointwise_runs_along(p, op) || tcc_pointwise_is_turned(p, op)))
            continue;
        if (in_groups)
            assume_address(in_groups, tensor,
                           tcc_rows_is_grouped(f, p, op) ? tcc_pointwise_bytes(p, tensor) : WORD_BITS / 8);
        if (first)
            assume_vectors(first, p, tensor);
        if (direct && op->code == TCC_OP_tensor_write)
            assume_vectors(direct, p, tensor);
        else if (direct)
            assume_address(direct, tensor, WORD_BITS / 8);
    }
    tcc_func *const variants[] = {first, in_groups, direct, generic};
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++)
        if (variants[i])
            add_lengths(ctx, variants[i], p, in_groups && variants[i] == direct);
    return TCC_OK;
}

/* ---- kernels that stream ------------------------------------------------------------------- */

/* A variant whose last tile along the streamed index may go beyond its end, and one where it does not: what is beyond
 * need not be masked. Parts may have fewer terms than a tile in any case. All is copied by TMA. */
static tcc_status choose_stream(tcc_pass_ctx *ctx, tcc_func *f, const tcc_space *c)
{
    enum { WHOLE_TILES = 128 }; /* of which tiles along the index are parts */
    const tcc_value *by;
    tcc_attr_set_str(ctx->ir, &f->attrs, "kernel", tcc_func_kernel(f));
    tcc_assume(f, NULL, NULL, 0);
    assume_others(f, c, tcc_family_passes_of(tcc_func_target(f))->copying);
    if (c->k_extent.name)
        tcc_assume(f, "min", c->k_extent.name, 1);
    if (!c->k_extent.name || tcc_assumes_multiple(f, c->k_extent, WHOLE_TILES, &by) || tcc_cut_is(f, TCC_CUT_part))
        return TCC_OK;
    add_variant(ctx, f, "any");
    tcc_assume(f, "multiple", c->k_extent.name, WHOLE_TILES);
    return TCC_OK;
}

static tcc_status refuse_naive(tcc_pass_ctx *ctx, const tcc_func *f)
{
    tcc_error(
        ctx->diag, TCC_ERR_UNSUPPORTED, tcc_attr_find(&f->attrs, "instr")->loc,
        "not supported yet: instr naive where outputs have different indices, or the terms of a sum "
        "are not computed from tensors alone");
    return TCC_ERR_UNSUPPORTED;
}

static tcc_status choose(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_space c;
    bool naive = tcc_is_naive(f);
    if (tcc_func_is_variant(f))
        return TCC_OK;
    if (!tcc_space_of(f, &c))
        return naive ? refuse_naive(ctx, f) : TCC_OK;
    bool multiplies = c.n_sums;
    tcc_status status = tcc_check_f64(ctx, f);
    if (status)
        return status;
    status = multiplies ? tcc_choose_target(ctx, f, &c) : TCC_OK;
    if (status)
        return status;
    bool by_warps = naive || (!multiplies && tcc_find_element(f, TCC_CAN_half_bytes));
    if (by_warps && tcc_target_of(f->ir)->plain)
        tcc_attr_set_str(ctx->ir, &f->attrs, "target", tcc_target_of(ctx->ir)->plain);
    const tcc_target *target = tcc_func_target(f);
    const tcc_family_passes *passes = tcc_family_passes_wanted(target, ctx->diag, f->loc);
    if (!passes)
        return TCC_ERR_UNSUPPORTED;
    *changed = true;
    if (!multiplies)
        return c.streams ? choose_stream(ctx, f, &c) : choose_pointwise(ctx, f, &c);
    const tcc_copying *how = passes->copying;
    bool same = how->direct == how->first;
    tcc_attr_set_str(ctx->ir, &f->attrs, "kernel", tcc_func_kernel(f));
    choose_merged(f);
    const tcc_op *culprit;
    const char *why_not_first = why_not_all(&c, how->first, &culprit);
    const char *why = same ? why_not_first : why_not_all(&c, how->direct, &culprit);
    tcc_func *first = why_not_first ? NULL : f, *direct = NULL, *generic = f;
    bool pads = wants_padding(f, &c, how), transposes = tcc_schedule_is_open(f) && tcc_wants_transposed(f, &c);
    bool alone = transposes && can_transpose(&c);
    if (!why || first || pads || alone)
        generic = add_variant(ctx, f, "generic");
    if (pads) {
        tcc_func *padded = first || !why ? add_variant(ctx, f, "padded") : f;
        copy_operands(transposes ? by_own_target(padded) : padded, &c, true, transposes);
    }
    if (alone)
        transpose(first || !why || pads ? add_variant(ctx, f, "transposed") : f, &c);
    if (!why && (!first || (may_be_unaligned(f, &c, same) && !tcc_has_long_expressions(f))))
        direct = first ? add_variant(ctx, f, "direct") : f;
    make_generic(generic);
    const tcc_op *other;
    bool pipelines = how->generic && !why_not_all(&c, how->generic, &other);
    if (pipelines)
        assume_operands(generic, &c, how->generic);
    if (direct)
        assume_operands(direct, &c, how->direct);
    if (first) {
        assume_operands(first, &c, how->first);
        assume_others(first, &c, how);
    }
    for (int i = 0; i < TCC_KEY_COUNT; i++) {
        const tcc_schedule_key *key = &tcc_schedule_keys[i];
        const tcc_named_attr *a = tcc_attr_find(&generic->attrs, key->name);
        if (key->of_every_variant || tcc_schedule_key_is_of_steps(key) || pipelines)
            continue;
        if (a && generic == f)
            tcc_warn(ctx->diag, a->loc, "'%s' has no effect: '%s' is copied without %s because %s",
                     a->name, tensor_of(culprit)->name, how->first->means, why);
        tcc_attr_remove(&generic->attrs, key->name);
    }
    return TCC_OK;
}

/* That the strides of which choose-strides says so are 1. */
static void assume_units(tcc_func *f)
{
    tcc_attr units = tcc_attr_list(&f->attrs, "units");
    for (size_t i = 0; i < units.list.n; i++) {
        const char *name = units.list.items[i].s;
        if (tcc_assumes_max(f, (tcc_dim){.name = name}, 1))
            continue;
        tcc_assume(f, "min", name, 1);
        tcc_assume(f, "max", name, 1);
    }
}

static tcc_status run(tcc_pass_ctx *ctx, tcc_func *f, bool *changed)
{
    tcc_status status = choose(ctx, f, changed);
    for (tcc_func *v = f; v && *changed; v = v->next)
        if (tcc_func_is_variant(v))
            assume_units(v);
    return status;
}

const tcc_pass tcc_pass_choose_variants = {
    "choose-variants", "decide which entries a kernel gets, and what each assumes", .run = run,
    .requires = TCC_STATE(axes),
    .leaves = TCC_STATE(variants)};

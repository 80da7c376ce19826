/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/manifest.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <tcc/tcc.h>

#include "driver/plan.h"
#include "ir/grid.h"
#include "ir/plan.h"
#include "ir/signature.h"
#include "ir/target.h"
#include "passes/choose_axes.h"
#include "support/expr.h"
#include "support/json.h"
#include "support/manifest.h"
#include "support/text.h"

enum { COMMENT_WIDTH = 100 };

static void print_dim(tcc_str *out, tcc_dim d)
{
    if (d.name)
        tcc_json_print_string(out, d.name);
    else
        tcc_str_printf(out, "%lld", (long long)d.size);
}

/* An attribute as JSON: names are strings, lists are arrays. */
static void print_attr(tcc_str *out, tcc_attr a)
{
    if (a.kind == TCC_ATTR_STR) {
        tcc_json_print_string(out, a.s);
    } else if (a.kind == TCC_ATTR_INT) {
        tcc_str_printf(out, "%lld", (long long)a.i);
    } else if (a.kind == TCC_ATTR_LIST) {
        tcc_str_puts(out, "[");
        for (size_t i = 0; i < a.list.n; i++) {
            if (i)
                tcc_str_puts(out, ",");
            print_attr(out, a.list.items[i]);
        }
        tcc_str_puts(out, "]");
    } else {
        tcc_str_puts(out, "null");
    }
}

/* ---- signatures -------------------------------------------------------------------------- */

/* Whether an earlier op indexes the tensor in the same way. */
static bool is_repeated(const tcc_func *definition, const tcc_op *access)
{
    bool repeated = false;
    for (const tcc_op *op = definition->body->first; op != access && !repeated; op = op->next)
        repeated = tcc_accessed_tensor(op) && tcc_access_same(op, access, NULL, NULL);
    return repeated;
}

/* Coordinates as texts: mostly names of indices. */
static void print_coordinates(tcc_str *out, const tcc_op *access)
{
    tcc_str_puts(out, "[");
    for (size_t d = 0; d < tcc_access_rank(access); d++) {
        tcc_str text = {0};
        tcc_index_print(&text, tcc_access_expr(access, d));
        tcc_str_puts(&text, tcc_access_loaded(access, d) ? " + …" : "");
        tcc_str_puts(out, d ? "," : "");
        tcc_json_print_string(out, tcc_str_text(&text));
        out->failed |= text.failed;
        tcc_str_free(&text);
    }
    tcc_str_puts(out, "]");
}

/* All the ways in which the kernel indexes an argument. */
static void print_indices(tcc_str *out, const tcc_func *definition, const tcc_value *arg)
{
    const char *sep = "";
    tcc_str_puts(out, ",\"indices\":[");
    for (const tcc_op *op = definition->body->first; op; op = op->next) {
        if (tcc_accessed_tensor(op) != arg || is_repeated(definition, op))
            continue;
        tcc_str_puts(out, sep);
        print_coordinates(out, op);
        sep = ",";
    }
    tcc_str_puts(out, "]");
}

static void print_args(tcc_str *out, const tcc_func *f, const tcc_func *definition)
{
    tcc_attr roles = tcc_attr_list(&f->attrs, "roles");
    tcc_str_puts(out, ",\"args\":[");
    for (size_t i = 0; i < f->body->n_args; i++) {
        const tcc_value *arg = f->body->args[i];
        tcc_str_puts(out, i ? ",{\"name\":" : "{\"name\":");
        tcc_json_print_string(out, arg->name);
        tcc_str_puts(out, ",\"role\":");
        print_attr(out, roles.list.items[i]);
        tcc_str_printf(out, ",\"type\":\"%s\"", tcc_scalar_name(arg->type->elem));
        if (arg->type->kind == TCC_KIND_tensor) {
            tcc_str_puts(out, ",\"dims\":[");
            for (unsigned d = 0; d < arg->type->rank; d++) {
                if (d)
                    tcc_str_puts(out, ",");
                print_dim(out, arg->type->dims[d]);
            }
            tcc_str_puts(out, "]");
            for (unsigned d = 0; arg->type->strides && d < arg->type->rank; d++) {
                tcc_str_puts(out, d ? "," : ",\"strides\":[");
                print_dim(out, arg->type->strides[d]);
            }
            tcc_str_puts(out, arg->type->strides && arg->type->rank ? "]" : "");
            if (definition)
                print_indices(out, definition, definition->body->args[i]);
        }
        tcc_str_puts(out, "}");
    }
    tcc_str_puts(out, "]");
}

/* Of the types that sums are added in the one with the fewest digits. */
static tcc_scalar least_precise_sum(const tcc_space *c)
{
    static const unsigned char digits[TCC_SCALAR_COUNT] = {
        [TCC_bf16] = 8, [TCC_f16] = 11, [TCC_f32] = 24, [TCC_i32] = 31, [TCC_f64] = 53};
    tcc_scalar least = c->sums[0].op->results[0].type->elem;
    for (size_t i = 1; i < c->n_sums; i++) {
        tcc_scalar elem = c->sums[i].op->results[0].type->elem;
        least = digits[elem] < digits[least] ? elem : least;
    }
    return least;
}

/* One multiply and one add for each term of the sums, and what they are added in. */
static void print_sum(tcc_str *out, const tcc_func *f)
{
    tcc_space c;
    if (!tcc_find_product_axes(f, &c))
        return;
    tcc_str_printf(out, ",\"flops\":[%zu,", 2 * c.n_sums);
    for (size_t i = 0; i < c.n_axes; i++) {
        print_dim(out, c.extents[i]);
        tcc_str_puts(out, ",");
    }
    print_dim(out, c.k_extent);
    tcc_str_printf(out, "],\"sum\":\"%s\"", tcc_scalar_name(least_precise_sum(&c)));
}

/* Makes a JSON string of what was printed from `start` on. */
static void quote_from(tcc_str *out, size_t start)
{
    char *raw = out->failed ? NULL : strdup(out->data + start);
    if (!raw) {
        out->failed = true;
        return;
    }
    out->len = start;
    tcc_json_print_string(out, raw);
    free(raw);
}

void tcc_signature_print(tcc_signature *s, const tcc_func *f, const tcc_func *definition)
{
    tcc_str *out = &s->json;
    s->kernel = f->name;
    tcc_str_puts(out, "\"name\":");
    tcc_json_print_string(out, f->name);
    tcc_str_puts(out, ",\"dims\":");
    print_attr(out, tcc_attr_list(&f->attrs, "dims"));
    print_args(out, f, definition);
    if (!definition)
        return;
    print_sum(out, definition);
    tcc_str_puts(out, ",\"reference\":");
    size_t start = out->len;
    tcc_func_print(out, definition, 0);
    quote_from(out, start);
}

/* ---- records ------------------------------------------------------------------------------ */

/* The lists that the lowering leaves, [kind, field…], each as a JSON object: the fields' names by
 * kind. A kind whose first field is its own name holds all others in an inner object. */
enum { RECORD_pointer, RECORD_tensor_map };
static const struct {
    const char *kind, *format[7];
    bool nested;
} records[] = {
    [RECORD_pointer] = {"pointer", {"pointer"}, false},
    [RECORD_tensor_map] = {"tensor_map", {"arg", "dims", "strides", "box", "swizzle", "type"}, true},
    {"min", {"dim", "min"}, false},
    {"max", {"dim", "max"}, false},
    {"align", {"arg", "align"}, false},
    {"pitch", {"pitch", "bytes_per_elem", "align"}, false},
    {"span", {"span", "bytes_per_elem", "most"}, false},
    {"dim", {"dim"}, false},
    {"scalar", {"scalar"}, false},
};

static bool is_record(tcc_attr a, size_t r)
{
    size_t n = 1;
    while (records[r].format[n - 1])
        n++;
    return a.kind == TCC_ATTR_LIST && a.list.n == n && a.list.items[0].kind == TCC_ATTR_STR &&
           !strcmp(a.list.items[0].s, records[r].kind);
}

/* What is not a record, in IR written by hand, is written unchanged: the manifest's reader rejects
 * it. False: so it is; else the object is not ended yet. */
static bool begin_record(tcc_str *out, tcc_attr record)
{
    size_t r = 0, n = sizeof records / sizeof *records;
    while (r < n && !is_record(record, r))
        r++;
    if (r == n) {
        print_attr(out, record);
        return false;
    }
    tcc_str_puts(out, "{");
    if (records[r].nested)
        tcc_str_printf(out, "\"%s\":{", records[r].kind);
    for (size_t i = 1; i < record.list.n; i++) {
        tcc_str_printf(out, "%s\"%s\":", i > 1 ? "," : "", records[r].format[i - 1]);
        print_attr(out, record.list.items[i]);
    }
    tcc_str_puts(out, records[r].nested ? "}" : "");
    return true;
}

static void print_record(tcc_str *out, tcc_attr record)
{
    tcc_str_puts(out, begin_record(out, record) ? "}" : "");
}

/* An expression of ir/plan.h. */
static void print_expr(tcc_str *out, tcc_attr a)
{
    if (a.kind != TCC_ATTR_LIST) {
        print_attr(out, a);
    } else if (tcc_attr_is_record(a, "device", "s")) {
        tcc_str_puts(out, "{\"device\":");
        print_attr(out, a.list.items[1]);
        tcc_str_puts(out, "}");
    } else {
        for (size_t i = 0; i < a.list.n; i++) {
            tcc_str_puts(out, i ? "," : "[");
            print_expr(out, a.list.items[i]);
        }
        tcc_str_puts(out, "]");
    }
}

/* The product of the CTAs along each axis. `ir` is one to make expressions in. */
static void print_grid(tcc_str *out, tcc_attr grid, tcc_ir *ir)
{
    bool many = grid.list.n > 1;
    tcc_str_puts(out, many ? "[\"mul\"" : grid.list.n ? "" : "1");
    for (size_t i = 0; i < grid.list.n; i++) {
        tcc_attr axis = grid.list.items[i];
        const tcc_index_expr *of;
        tcc_dim extent;
        tcc_str_puts(out, many ? "," : "");
        if (axis.kind != TCC_ATTR_INDEX || !tcc_grid_extent(ir, axis.index, &extent)) {
            print_attr(out, axis);
            continue;
        }
        int64_t taken = tcc_grid_taken(axis.index, &of);
        tcc_str_puts(out, taken > 1 ? "[\"ceildiv\"," : "");
        tcc_json_print_string(out, extent.name);
        if (taken > 1)
            tcc_str_printf(out, ",%lld]", (long long)taken);
    }
    tcc_str_puts(out, many ? "]" : "");
}

/* ---- steps ------------------------------------------------------------------------------- */

/* Where the workspace tensor `until` begins; NULL: where all of them end. */
static void print_offset(tcc_str *out, const tcc_func *workspace, const tcc_value *until)
{
    bool first = true;
    for (size_t i = 0; i < workspace->body->n_args && workspace->body->args[i] != until; i++) {
        tcc_str_puts(out, first ? "[\"add\",0," : ",");
        print_expr(out, tcc_workspace_bytes(workspace->ir, workspace->body->args[i]->type));
        first = false;
    }
    tcc_str_puts(out, first ? "0" : "]");
}

/* A parameter: a record, in which a workspace tensor is where it begins, and its bytes; and the access to a tensor. */
static void print_param(tcc_str *out, tcc_attr record, const char *access, const tcc_func *workspace)
{
    bool pointer = is_record(record, RECORD_pointer), map = is_record(record, RECORD_tensor_map);
    bool named = (pointer || map) && record.list.items[1].kind == TCC_ATTR_STR;
    const tcc_value *tensor = named ? tcc_func_parameter(workspace, record.list.items[1].s) : NULL;
    if (!tensor) {
        bool begun = begin_record(out, record);
        if (begun && named)
            tcc_str_printf(out, ",\"access\":\"%s\"", access);
        tcc_str_puts(out, begun ? "}" : "");
        return;
    }
    tcc_str_puts(out, map ? "{\"tensor_map\":{\"workspace\":" : "{\"workspace\":");
    print_offset(out, workspace, tensor);
    tcc_str_puts(out, ",\"bytes\":");
    print_expr(out, tcc_workspace_bytes(workspace->ir, tensor->type));
    for (size_t i = 2; i < record.list.n; i++) {
        tcc_str_printf(out, ",\"%s\":", records[RECORD_tensor_map].format[i - 1]);
        print_attr(out, record.list.items[i]);
    }
    tcc_str_printf(out, "%s,\"access\":\"%s\"}", map ? "}" : "", access);
}

static void print_step(tcc_str *out, const tcc_func *f, const tcc_func *workspace, bool first)
{
    tcc_str_puts(out, "{\"launch\":");
    tcc_json_print_string(out, f->name);
    tcc_str_puts(out, ",\"grid\":");
    bool fewer = tcc_attr_int(&f->attrs, "fewer_ctas", 0);
    int64_t cluster = tcc_attr_int(&f->attrs, "cluster_ctas", 1);
    tcc_str_puts(out, fewer ? "[\"min\"," : "");
    print_grid(out, tcc_attr_list(&f->attrs, "grid"), workspace->ir);
    if (fewer && cluster > 1) /* whole clusters */
        tcc_str_printf(out, ",[\"mul\",[\"div\",{\"device\":\"sms\"},%lld],%lld]]", (long long)cluster,
                       (long long)cluster);
    else
        tcc_str_puts(out, fewer ? ",{\"device\":\"sms\"}]" : "");
    tcc_str_printf(out, ",\"block\":%lld,\"smem_bytes\":%lld,\"cluster\":%lld",
                   (long long)tcc_attr_int(&f->attrs, "block", 0),
                   (long long)tcc_attr_int(&f->attrs, "smem_bytes", 0),
                   (long long)cluster);
    if (fewer && cluster > 1)
        tcc_str_puts(out, ",\"fewer\":1");
    if (!first && tcc_attr_find(&f->attrs, "overlaps"))
        tcc_str_puts(out, ",\"overlaps\":1");
    tcc_str_puts(out, ",\"params\":[");
    tcc_attr params = tcc_attr_list(&f->attrs, "params");
    static const char *const names[] = {"none", [TCC_READS] = "read", [TCC_STORES] = "write", "both"};
    const unsigned char *uses = tcc_parameter_uses(f);
    for (size_t i = 0; i < params.list.n; i++) {
        tcc_str_puts(out, i ? "," : "");
        print_param(out, params.list.items[i], names[i < f->body->n_args ? uses[i] : 0], workspace);
    }
    tcc_str_puts(out, "]}");
}

/* ---- variants ---------------------------------------------------------------------------- */

/* Whether an earlier step asks the same. */
static bool is_required_before(const tcc_func *variant, size_t step, const tcc_attr *condition)
{
    for (size_t s = 0; s < step; s++) {
        tcc_attr list = tcc_attr_list(&tcc_func_step_at(variant, s)->attrs, "requires");
        for (size_t i = 0; i < list.list.n; i++)
            if (tcc_attr_equal(&list.list.items[i], condition))
                return true;
    }
    return false;
}

/* What any step requires. */
static void print_requirements(tcc_str *out, const tcc_func *variant)
{
    const char *sep = "";
    tcc_str_puts(out, ",\"requires\":[");
    for (size_t s = 0; s < tcc_func_step_count(variant); s++) {
        tcc_attr list = tcc_attr_list(&tcc_func_step_at(variant, s)->attrs, "requires");
        for (size_t i = 0; i < list.list.n; i++) {
            if (is_required_before(variant, s, &list.list.items[i]))
                continue;
            tcc_str_puts(out, sep);
            print_record(out, list.list.items[i]);
            sep = ",";
        }
    }
    tcc_str_puts(out, "]");
}

/* The sum of the steps'. */
static void print_cost(tcc_str *out, const tcc_func *variant)
{
    size_t n = tcc_func_step_count(variant);
    tcc_str_puts(out, n > 1 ? ",\"cost\":[\"add\"" : ",\"cost\":");
    for (size_t s = 0; s < n; s++) {
        const tcc_named_attr *cost = tcc_attr_find(&tcc_func_step_at(variant, s)->attrs, "cost");
        tcc_str_puts(out, n > 1 ? "," : "");
        print_expr(out, cost ? cost->value : (tcc_attr){.kind = TCC_ATTR_INT});
    }
    tcc_str_puts(out, n > 1 ? "]" : "");
}

/* What is 0 before the first step; it precedes all of them, so that no step waits for it in between. */
static void print_memsets(tcc_str *out, const tcc_func *variant, const tcc_func *workspace)
{
    for (size_t i = 0; i < workspace->body->n_args; i++) {
        const tcc_value *tensor = workspace->body->args[i];
        bool zeroed = false;
        for (size_t s = 0; s < tcc_func_step_count(variant); s++)
            zeroed |= tcc_func_is_zeroed(tcc_func_step_at(variant, s), tensor->name);
        if (!zeroed)
            continue;
        tcc_str_puts(out, "{\"memset\":{\"workspace\":");
        print_offset(out, workspace, tensor);
        tcc_str_puts(out, "},\"bytes\":");
        print_expr(out, tcc_workspace_bytes(workspace->ir, tensor->type));
        tcc_str_puts(out, ",\"byte\":0},");
    }
}

static void print_variant(tcc_str *out, const tcc_func *variant, const tcc_func *workspace)
{
    tcc_str_puts(out, "{\"name\":");
    tcc_json_print_string(out, variant->name);
    print_requirements(out, variant);
    print_cost(out, variant);
    tcc_str_puts(out, ",\"workspace_bytes\":");
    print_offset(out, workspace, NULL);
    tcc_str_puts(out, ",\"steps\":[");
    print_memsets(out, variant, workspace);
    for (size_t s = 0; s < tcc_func_step_count(variant); s++) {
        tcc_str_puts(out, s ? "," : "");
        print_step(out, tcc_func_step_at(variant, s), workspace, !s);
    }
    tcc_str_puts(out, "]}");
}

/* The assumed attributes of the device if there is none. */
static void print_device(tcc_str *out, const tcc_target *target)
{
    const int64_t values[] = {[TCC_DEVICE_sms] = target->sms};
    static_assert(sizeof values / sizeof *values == TCC_DEVICE_ATTR_COUNT, "one for each");
    tcc_str_puts(out, ",\"device\":{");
    for (int i = 0; i < TCC_DEVICE_ATTR_COUNT; i++)
        tcc_str_printf(out, "%s\"%s\":%lld", i ? "," : "", tcc_device_attr_name((tcc_device_attr)i),
                       (long long)values[i]);
    tcc_str_puts(out, "}");
}

/* Whether a function is a variant that can be launched. */
static bool can_launch(const tcc_func *f)
{
    bool all = !tcc_func_is_step(f) && !tcc_func_is_definition(f);
    for (size_t i = 0; all && i < tcc_func_step_count(f); i++) {
        const tcc_func *step = tcc_func_step_at(f, i);
        all = step && tcc_func_is_entry(step);
    }
    return all;
}

static void print_variants(tcc_str *out, const tcc_ir *ir, const char *kernel)
{
    const char *sep = "";
    for (const tcc_func *f = ir->first; f; f = f->next) {
        tcc_diag silent = {0};
        if (strcmp(tcc_func_kernel(f), kernel) || !can_launch(f))
            continue;
        const tcc_func *workspace = tcc_func_workspace(f, ir->arena, &silent);
        if (!workspace) /* the signature has been refused */
            continue;
        tcc_str_puts(out, sep);
        print_variant(out, f, workspace);
        sep = ",";
    }
}

void tcc_manifest_print(tcc_str *out, const tcc_ir *ir, const char *file,
                        const tcc_signature *signatures, size_t n)
{
    const tcc_target *target = tcc_target_of(ir);
    tcc_str_printf(out, "{\"tcc\":\"%s\",\"manifest\":%d,\"target\":\"%s\",\"file\":",
                   TCC_VERSION_STRING, TCC_MANIFEST_VERSION, target->name);
    tcc_json_print_string(out, file);
    print_device(out, target);
    tcc_str_puts(out, ",\"kernels\":[");
    for (size_t i = 0; i < n; i++) {
        out->failed |= signatures[i].json.failed;
        tcc_str_printf(out, "%s{%s,\"variants\":[", i ? "," : "",
                       tcc_str_text(&signatures[i].json));
        print_variants(out, ir, signatures[i].kernel);
        tcc_str_puts(out, "]}");
    }
    tcc_str_puts(out, "]}");
}

/* JSON in ASCII: NVIDIA's assemblers accept nothing else, even in comments. */
static void print_ascii(tcc_str *out, const char *json)
{
    for (size_t n = strlen(json), len; n; json += len, n -= len) {
        size_t valid = tcc_utf8_length(json, n);
        uint32_t c = valid ? tcc_utf8_decode(json, valid) : 0xfffd;
        len = valid ? valid : 1;
        if (c < 0x80)
            tcc_str_append(out, json, 1);
        else if (c < 0x10000)
            tcc_str_printf(out, "\\u%04x", c);
        else
            tcc_str_printf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
    }
}

void tcc_manifest_comment(tcc_str *out, const char *json)
{
    tcc_str ascii = {0};
    print_ascii(&ascii, json);
    const char *text = tcc_str_text(&ascii);
    tcc_str_printf(out, "// tcc-manifest %d\n", TCC_MANIFEST_VERSION);
    for (size_t n = strlen(text); n;) {
        size_t part = n < COMMENT_WIDTH ? n : COMMENT_WIDTH;
        tcc_str_puts(out, "//! ");
        tcc_str_append(out, text, part);
        tcc_str_puts(out, "\n");
        text += part;
        n -= part;
    }
    out->failed |= ascii.failed;
    tcc_str_free(&ascii);
}

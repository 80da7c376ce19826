/* parse: textual IR to IR, by recursive descent over the one form that all ops share.
 *
 *   module  = [ "module" attrs ] { func }
 *   func    = "func" @name "(" [ params ] ")" [ attrs ] [ loc ] "{" { op } "}"
 *   params  = %name ":" type { "," %name ":" type }
 *   op      = [ values "=" ] name [ values ] [ attrs ] [ ":" types ] [ loc ] { region }
 *   values  = %name { "," %name }
 *   region  = "{" [ "^" "(" params ")" ":" ] { op } "}"
 *   attrs   = "{" [ name "=" attr { "," name "=" attr } ] "}"
 *   attr    = int | float | name | string | index | "[" [ attr { "," attr } ] "]"
 *   type    = element | "ring" | "tensormap" | "buffer" | kind "<" element [ "[" dims "]" ] [ "," how ] ">"
 *   index   = an expression of indices and dimensions (index_text.h)
 *   how     = layout of a tile | "rows" int
 *   loc     = "loc" "(" line ":" column ")"
 *
 * Lines matter in one place: the operands of an op begin on its own line, else they are results
 * of the next. After an error the rest of the op is left out, with its regions, and parsing goes
 * on: its results are still defined, so that their uses are not errors.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/index_dim.h"
#include "ir/index_text.h"
#include "ir/ir.h"
#include "ir/layout.h"
#include "ir/lex.h"
#include "support/map.h"
#include "support/number.h"

enum {
    MAX_NESTING = 256, /* of regions, and of lists in attributes */
    MAX_ATTRS = 64,    /* of one op */
    MAX_RANK = 16,
    MAX_ROW_BYTES = 4096,
    MAX_EXTENT = INT32_MAX
};

/* What a %name means; names are one function's. */
typedef struct binding {
    tcc_func *func;
    tcc_value *value;
} binding;

typedef struct named {
    const char *name; /* interned */
    tcc_loc loc;
} named;

typedef struct parser {
    tcc_ir *ir;
    tcc_diag *diag;
    tcc_lexer lex;
    tcc_token tok;
    tcc_func *func;
    tcc_map bindings;   /* interned name -> binding */
    tcc_map opcodes;    /* interned name -> its row of tcc_op_info */
    tcc_map funcs;      /* interned name -> tcc_func */
    unsigned depth;     /* of regions */
    bool in_attrs;      /* between the braces of attributes */
    bool own_locs;      /* ops without loc() are located in this text */
    tcc_loc unexpected; /* the last token of which it was said */
    TCC_VEC(named) results;
    TCC_VEC(tcc_value *) operands;
    TCC_VEC(const tcc_type *) types;
} parser;

/* ---- tokens ---------------------------------------------------------------------------- */

/* For %.*s: a token, cut when it is long. */
#define SHOWN(t) ((t).n > 40 ? 40 : (int)(t).n), (t).text

static bool same_loc(tcc_loc a, tcc_loc b)
{
    return a.line == b.line && a.column == b.column;
}

static void next(parser *p)
{
    p->tok = tcc_lex(&p->lex);
}

#define ERROR(p, loc, ...) tcc_error((p)->diag, TCC_ERR_SYNTAX, (loc), __VA_ARGS__)
#define FAIL(p, loc, ...) (ERROR(p, loc, __VA_ARGS__), false)

/* "expected WHAT, found …" at the current token; once for a token that several rules stop at. */
static bool expected(parser *p, const char *what)
{
    if (p->tok.kind == TOK_BAD || same_loc(p->tok.loc, p->unexpected))
        return false;
    p->unexpected = p->tok.loc;
    if (p->tok.kind == TOK_END)
        return FAIL(p, p->tok.loc, "expected %s, found the end of the text", what);
    const char *sigil = p->tok.kind == TOK_VALUE ? "%" : p->tok.kind == TOK_SYMBOL ? "@" : "";
    return FAIL(p, p->tok.loc, "expected %s, found '%s%.*s'", what, sigil, SHOWN(p->tok));
}

static bool is_word(const parser *p, const char *word)
{
    return p->tok.kind == TOK_IDENT && p->tok.n == strlen(word) &&
           !memcmp(p->tok.text, word, p->tok.n);
}

static bool accept(parser *p, int kind)
{
    if (p->tok.kind != kind)
        return false;
    next(p);
    return true;
}

static bool expect(parser *p, int kind, const char *what)
{
    return accept(p, kind) || expected(p, what);
}

static const char *intern(parser *p, tcc_token t)
{
    return tcc_intern_get(p->ir->names, t.text, t.n);
}

static bool read_int(parser *p, int64_t *out)
{
    const char *wrong = tcc_token_int(&p->tok, out);
    if (wrong)
        return FAIL(p, p->tok.loc, "%s '%.*s'", wrong, SHOWN(p->tok));
    next(p);
    return true;
}

/* ---- types ----------------------------------------------------------------------------- */

static bool parse_dim(parser *p, tcc_dim *dim)
{
    tcc_loc loc = p->tok.loc;
    if (p->tok.kind == TOK_IDENT) {
        dim->name = intern(p, p->tok);
        next(p);
        return true;
    }
    if (p->tok.kind == '(') {
        const tcc_index_expr *x = tcc_index_parse_dim(p->ir, &p->lex, &p->tok);
        return x && (tcc_dim_of_index(p->ir, x, dim) || FAIL(p, loc, "not an extent"));
    }
    if (p->tok.kind != TOK_INT)
        return expected(p, "an extent");
    if (!read_int(p, &dim->size))
        return false;
    return (dim->size >= 0 && dim->size <= MAX_EXTENT) || FAIL(p, loc, "extent out of range");
}

static bool parse_dims(parser *p, tcc_dim dims[MAX_RANK], unsigned *rank)
{
    do {
        if (*rank == MAX_RANK)
            return FAIL(p, p->tok.loc, "more than %d dimensions", MAX_RANK);
        if (!parse_dim(p, &dims[(*rank)++]))
            return false;
    } while (accept(p, ','));
    return expect(p, ']', "',' or ']'");
}

static bool accept_word(parser *p, const char *word)
{
    bool found = is_word(p, word);
    if (found)
        next(p);
    return found;
}

/* For a tile that is `*out` so far. */
static bool parse_layout(parser *p, const tcc_type **out)
{
    tcc_layout layout;
    tcc_repeat repeats[TCC_MAX_REPEATS];
    unsigned n = 0;
    tcc_loc loc = p->tok.loc;
    if (p->tok.kind != TOK_IDENT || !tcc_layout_find(p->tok.text, p->tok.n, &layout))
        return expected(p, "a layout");
    next(p);
    for (bool more = accept(p, '('); more; more = accept(p, ',')) {
        if (n == TCC_MAX_REPEATS)
            return FAIL(p, p->tok.loc, "more than %d repeats", TCC_MAX_REPEATS);
        tcc_repeat *r = &repeats[n++];
        *r = (tcc_repeat){.dim = 0};
        if (accept_word(p, tcc_repeated_words[TCC_IN_WARPS]))
            r->in = TCC_IN_WARPS;
        else if (accept_word(p, tcc_repeated_words[TCC_IN_HALVES]))
            r->in = TCC_IN_HALVES;
        while (r->dim <= TCC_REPEAT_SAME && !accept_word(p, tcc_repeat_words[r->dim]))
            r->dim++;
        if (r->dim > TCC_REPEAT_SAME)
            return expected(p, r->in ? "'rows', 'cols' or 'same'" : "'rows', 'cols', 'warps' or 'halves'");
        if (p->tok.kind != TOK_INT)
            return expected(p, "how many times");
        if (!read_int(p, &r->n))
            return false;
    }
    if (n && !expect(p, ')', "',' or ')'"))
        return false;
    *out = tcc_type_with_repeats(p->ir, *out, layout, n, repeats);
    const char *wrong = tcc_layout_wrong(*out);
    return !wrong || FAIL(p, loc, "the layout %s", wrong);
}

/* [s, …], one for each dimension */
static bool parse_strides(parser *p, const tcc_type **out)
{
    tcc_loc loc = p->tok.loc;
    tcc_dim strides[MAX_RANK] = {{NULL, 0}};
    unsigned n = 0;
    if (!expect(p, '[', "'['") || !parse_dims(p, strides, &n))
        return false;
    if (n != (*out)->rank)
        return FAIL(p, loc, "%u strides of %u dimensions", n, (*out)->rank);
    *out = tcc_type_with_strides(p->ir, *out, strides);
    return true;
}

/* For a tensor: where its rows begin, or all strides. */
static bool parse_places(parser *p, const tcc_type **out)
{
    tcc_loc loc = p->tok.loc;
    int64_t bytes;
    if (accept_word(p, "strides"))
        return parse_strides(p, out);
    if (!accept_word(p, "rows") || p->tok.kind != TOK_INT)
        return expected(p, "'rows' and a number of bytes, or 'strides'");
    if (!read_int(p, &bytes))
        return false;
    if (bytes < 1 || bytes > MAX_ROW_BYTES || !(*out)->rank || bytes * 8 % tcc_scalar_bits((*out)->elem))
        return FAIL(p, loc, "rows begin at multiples of 1 to %d bytes, which are whole elements", MAX_ROW_BYTES);
    *out = tcc_type_with_row_bytes(p->ir, *out, (unsigned)bytes);
    return true;
}

static bool find_kind(tcc_token t, tcc_kind *out)
{
    for (int k = 0; k < TCC_KIND_COUNT; k++) {
        const char *name = tcc_kind_name((tcc_kind)k);
        if (k != TCC_KIND_scalar && strlen(name) == t.n && !memcmp(name, t.text, t.n)) {
            *out = (tcc_kind)k;
            return true;
        }
    }
    return false;
}

static bool parse_type(parser *p, const tcc_type **out)
{
    tcc_token t = p->tok;
    tcc_kind kind;
    tcc_scalar elem = TCC_f32;
    if (t.kind != TOK_IDENT)
        return expected(p, "a type");
    next(p);
    if (tcc_scalar_find(t.text, t.n, &elem)) {
        *out = tcc_type_scalar(p->ir, elem);
        return true;
    }
    if (!find_kind(t, &kind))
        return FAIL(p, t.loc, "unknown type '%.*s'", SHOWN(t));
    tcc_dim dims[MAX_RANK] = {{NULL, 0}};
    unsigned rank = 0;
    if (tcc_kind_has_elem(kind)) {
        if (!expect(p, '<', "'<'"))
            return false;
        if (p->tok.kind != TOK_IDENT || !tcc_scalar_find(p->tok.text, p->tok.n, &elem))
            return expected(p, "an element type");
        next(p);
        if (accept(p, '[') && !parse_dims(p, dims, &rank))
            return false;
        *out = tcc_type_get(p->ir, kind, elem, rank, dims);
        if (kind == TCC_KIND_tile && accept(p, ',') && !parse_layout(p, out))
            return false;
        if (kind == TCC_KIND_tensor && accept(p, ',') && !parse_places(p, out))
            return false;
        return expect(p, '>', "'>'");
    }
    *out = tcc_type_get(p->ir, kind, elem, rank, dims);
    return true;
}

/* ---- attributes ------------------------------------------------------------------------ */

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Undoes \" \\ \n \t and \xHH. */
static bool read_string(parser *p, const char **out)
{
    const char *s = p->tok.text, *end = s + p->tok.n;
    char *bytes = tcc_arena_alloc(p->ir->arena, p->tok.n + 1);
    size_t n = 0;
    while (s < end) {
        if (*s != '\\') {
            bytes[n++] = *s++;
            continue;
        }
        const char *from = "\"\\nt", *to = "\"\\\n\t", *at = strchr(from, s[1]);
        if (at && s[1]) {
            bytes[n++] = to[at - from];
            s += 2;
        } else if (s[1] == 'x' && end - s >= 4 && hex_digit(s[2]) >= 0 && hex_digit(s[3]) >= 0) {
            bytes[n++] = (char)(hex_digit(s[2]) * 16 + hex_digit(s[3]));
            s += 4;
        } else {
            return FAIL(p, p->tok.loc, "unknown escape in a string");
        }
    }
    if (memchr(bytes, 0, n))
        return FAIL(p, p->tok.loc, "string holds a zero byte");
    *out = tcc_intern_get(p->ir->names, bytes, n);
    next(p);
    return true;
}

static bool parse_attr(parser *p, tcc_attr *out, unsigned depth)
{
    tcc_token t = p->tok;
    if (tcc_index_begins(&p->lex, &t)) {
        const tcc_index_expr *x = tcc_index_parse(p->ir, &p->lex, &p->tok);
        if (x)
            *out = tcc_attr_of_index(x);
        return x;
    }
    if (t.kind == TOK_IDENT && tcc_is_float_word(t.text, t.n))
        t.kind = TOK_FLOAT;
    switch (t.kind) {
    case TOK_INT: out->kind = TCC_ATTR_INT; return read_int(p, &out->i);
    case TOK_FLOAT:
        out->kind = TCC_ATTR_FLOAT;
        next(p);
        return tcc_double_parse(t.text, t.n, &out->f) ||
               FAIL(p, t.loc, "malformed or too large number '%.*s'", SHOWN(t));
    case TOK_STRING: out->kind = TCC_ATTR_STR; return read_string(p, &out->s);
    case TOK_IDENT:
        *out = (tcc_attr){.kind = TCC_ATTR_STR, .s = intern(p, t)};
        next(p);
        return true;
    case '[': break;
    default: return expected(p, "an attribute's value");
    }
    if (depth == MAX_NESTING)
        return FAIL(p, t.loc, "lists nest deeper than %d", MAX_NESTING);
    next(p);
    TCC_VEC(tcc_attr) items = {0};
    if (p->tok.kind != ']')
        do {
            tcc_attr item = {0};
            if (!parse_attr(p, &item, depth + 1))
                return false;
            TCC_PUSH(p->ir->arena, &items, item);
        } while (accept(p, ','));
    *out = (tcc_attr){.kind = TCC_ATTR_LIST, .list = {items.data, items.len}};
    return expect(p, ']', "',' or ']'");
}

static bool parse_attrs(parser *p, tcc_attrs *attrs)
{
    next(p);
    p->in_attrs = true;
    if (p->tok.kind != '}')
        do {
            tcc_token name = p->tok;
            tcc_attr value = {0};
            if (!expect(p, TOK_IDENT, "an attribute's name") || !expect(p, '=', "'='") ||
                !parse_attr(p, &value, 0))
                return false;
            const char *key = intern(p, name);
            if (tcc_attr_find(attrs, key))
                return FAIL(p, name.loc, "attribute '%s' is given twice", key);
            if (attrs->len == MAX_ATTRS)
                return FAIL(p, name.loc, "more than %d attributes", MAX_ATTRS);
            tcc_attr_set(p->ir, attrs, key, value, p->own_locs ? name.loc : (tcc_loc){0, 0});
        } while (accept(p, ','));
    if (p->tok.kind != '}')
        return expected(p, "',' or '}'");
    p->in_attrs = false;
    next(p);
    return true;
}

/* At '{': attributes have a name and '=' next, a region has not. */
static bool at_attrs(const parser *p)
{
    tcc_lexer ahead = p->lex;
    ahead.diag = NULL;
    return p->tok.kind == '{' && tcc_lex(&ahead).kind == TOK_IDENT && tcc_lex(&ahead).kind == '=';
}

static bool parse_loc(parser *p, tcc_loc *loc)
{
    int64_t line, column;
    if (!is_word(p, "loc"))
        return true;
    tcc_loc at = p->tok.loc;
    next(p);
    if (!expect(p, '(', "'('"))
        return false;
    if (p->tok.kind != TOK_INT)
        return expected(p, "a line");
    if (!read_int(p, &line) || !expect(p, ':', "':'"))
        return false;
    if (p->tok.kind != TOK_INT)
        return expected(p, "a column");
    if (!read_int(p, &column) || !expect(p, ')', "')'"))
        return false;
    if (line < 0 || line > UINT32_MAX || column < 0 || column > UINT32_MAX)
        return FAIL(p, at, "location out of range");
    *loc = (tcc_loc){(uint32_t)line, (uint32_t)column};
    return true;
}

/* ---- values ---------------------------------------------------------------------------- */

static tcc_value *find_value(parser *p, const char *name)
{
    const binding *b = tcc_map_get(&p->bindings, name);
    return b && b->func == p->func ? b->value : NULL;
}

static void bind(parser *p, named n, tcc_value *value)
{
    if (find_value(p, n.name)) {
        ERROR(p, n.loc, "value '%%%s' is defined twice", n.name);
        return;
    }
    binding **b = (binding **)tcc_map_at(&p->bindings, n.name);
    if (!*b)
        *b = TCC_NEW(p->ir->arena, binding);
    **b = (binding){p->func, value};
}

/* Values that are printed as %0, %1, … have no name. */
static const char *lasting_name(named n)
{
    return tcc_is_ident(n.name, strlen(n.name)) ? n.name : NULL;
}

/* Parameters of a function or arguments of a block, up to the closing parenthesis. */
static bool parse_params(parser *p, tcc_block *block)
{
    if (accept(p, ')'))
        return true;
    do {
        tcc_token t = p->tok;
        const tcc_type *type;
        if (!expect(p, TOK_VALUE, "a %name") || !expect(p, ':', "':'") || !parse_type(p, &type))
            return false;
        named n = {intern(p, t), t.loc};
        bind(p, n, tcc_block_add_arg(block, type, lasting_name(n)));
    } while (accept(p, ','));
    return expect(p, ')', "',' or ')'");
}

/* ---- ops and regions ------------------------------------------------------------------- */

static bool parse_results(parser *p)
{
    do {
        tcc_token t = p->tok;
        if (!expect(p, TOK_VALUE, "a result"))
            return false;
        TCC_PUSH(p->ir->arena, &p->results, (named){intern(p, t), t.loc});
    } while (accept(p, ','));
    return expect(p, '=', "'='");
}

static bool parse_operands(parser *p)
{
    if (p->tok.kind != TOK_VALUE || p->tok.starts_line)
        return true;
    do {
        tcc_token t = p->tok;
        if (!expect(p, TOK_VALUE, "an operand"))
            return false;
        const char *name = intern(p, t);
        tcc_value *v = find_value(p, name);
        if (!v)
            return FAIL(p, t.loc, "value '%%%s' is not defined before its use", name);
        TCC_PUSH(p->ir->arena, &p->operands, v);
    } while (accept(p, ','));
    return true;
}

static bool parse_types(parser *p)
{
    if (!accept(p, ':'))
        return true;
    do {
        const tcc_type *type;
        if (!parse_type(p, &type))
            return false;
        TCC_PUSH(p->ir->arena, &p->types, type);
    } while (accept(p, ','));
    return true;
}

/* Everything of an op but its regions. */
static tcc_op *parse_head(parser *p, tcc_block *block)
{
    if (p->tok.kind == TOK_VALUE && !parse_results(p))
        return NULL;
    tcc_token name = p->tok;
    tcc_attrs attrs = {0};
    tcc_builder b = tcc_builder_at_end(block);
    if (!expect(p, TOK_IDENT, "an op"))
        return NULL;
    const tcc_op_info *info = tcc_map_get(&p->opcodes, intern(p, name));
    if (!info) {
        ERROR(p, name.loc, "unknown op '%.*s'", SHOWN(name));
        return NULL;
    }
    if (p->own_locs)
        b.loc = name.loc;
    if (!parse_operands(p) || (at_attrs(p) && !parse_attrs(p, &attrs)) || !parse_types(p) ||
        !parse_loc(p, &b.loc))
        return NULL;
    if (p->results.len != p->types.len) {
        ERROR(p, name.loc, "'%s': results and result types differ in number, %zu and %zu",
              info->name, p->results.len, p->types.len);
        return NULL;
    }
    tcc_opcode code = (tcc_opcode)(info - tcc_op_info_get((tcc_opcode)0));
    tcc_op *op =
        tcc_op_create(&b, code, p->operands.len, p->operands.data, p->types.len, p->types.data);
    op->attrs = attrs;
    return op;
}

static bool at_func(const parser *p)
{
    return is_word(p, "func") && p->tok.starts_line;
}

/* After an error: on to the next op of this block, over any regions, or to the block's end. */
static void skip_op(parser *p, tcc_loc start)
{
    for (unsigned depth = 0; p->tok.kind != TOK_END && !at_func(p); next(p)) {
        if (!depth && p->tok.starts_line && !same_loc(p->tok.loc, start))
            break;
        if (p->tok.kind == '{') {
            depth++;
        } else if (p->tok.kind == '}') {
            if (!depth && !p->in_attrs)
                break;
            if (!p->in_attrs)
                depth--;
            p->in_attrs = false;
        }
    }
}

static void parse_ops(parser *p, tcc_block *block);

static bool parse_region(parser *p, tcc_block *block)
{
    tcc_loc open = p->tok.loc;
    if (p->depth == MAX_NESTING)
        return FAIL(p, open, "regions nest deeper than %d", MAX_NESTING);
    p->depth++;
    next(p);
    if (accept(p, '^') &&
        !(expect(p, '(', "'('") && parse_params(p, block) && expect(p, ':', "':'")))
        skip_op(p, open);
    parse_ops(p, block);
    p->depth--;
    if (accept(p, '}'))
        return true;
    if (!same_loc(p->tok.loc, p->unexpected)) {
        expected(p, "'}'");
        tcc_note(p->diag, open, "to close this");
    }
    return false;
}

static void parse_op(parser *p, tcc_block *block)
{
    tcc_loc start = p->tok.loc;
    p->results.len = p->operands.len = p->types.len = 0;
    p->in_attrs = false;
    tcc_op *op = parse_head(p, block);
    for (size_t i = 0; i < p->results.len; i++) {
        named n = p->results.data[i];
        tcc_value *v = op ? &op->results[i] : TCC_NEW(p->ir->arena, tcc_value);
        v->name = lasting_name(n);
        bind(p, n, v);
    }
    for (unsigned r = 0; op && p->tok.kind == '{'; r++) {
        if (r == op->n_regions) {
            ERROR(p, p->tok.loc, "'%s' has at most %u regions", tcc_op_info_get(op->code)->name,
                  op->n_regions);
            op = NULL;
        } else if (!parse_region(p, op->regions[r])) {
            op = NULL;
        }
    }
    if (!op)
        skip_op(p, start);
}

static void parse_ops(parser *p, tcc_block *block)
{
    while (p->tok.kind != '}' && p->tok.kind != TOK_END && !at_func(p))
        parse_op(p, block);
}

/* ---- functions and modules ------------------------------------------------------------- */

static bool parse_func(parser *p)
{
    tcc_loc loc = p->own_locs ? p->tok.loc : (tcc_loc){0, 0};
    next(p);
    tcc_token t = p->tok;
    if (!expect(p, TOK_SYMBOL, "the function's @name"))
        return false;
    const char *name = intern(p, t);
    tcc_func *f = p->func = tcc_func_create(p->ir, name, loc);
    void **known = tcc_map_at(&p->funcs, name);
    if (*known)
        ERROR(p, t.loc, "function '@%s' is defined twice", name);
    *known = f;
    if (!expect(p, '(', "'('") || !parse_params(p, f->body) ||
        (at_attrs(p) && !parse_attrs(p, &f->attrs)) || !parse_loc(p, &f->loc))
        return false;
    if (p->tok.kind != '{')
        return expected(p, "'{'");
    return parse_region(p, f->body);
}

static void parse_module(parser *p)
{
    if (is_word(p, "module")) {
        next(p);
        if (p->tok.kind != '{')
            expected(p, "'{'");
        else
            parse_attrs(p, &p->ir->attrs);
    }
    p->own_locs = !tcc_attr_find(&p->ir->attrs, "file");
    while (p->tok.kind != TOK_END) {
        bool ok = at_func(p) ? parse_func(p) : expected(p, "'func' at the start of a line");
        while (!ok && p->tok.kind != TOK_END && !at_func(p))
            next(p);
    }
}

tcc_ir *tcc_ir_parse(tcc_arena *arena, const char *text, size_t size, tcc_diag *diag)
{
    unsigned n_errors = diag->n_errors;
    parser p = {.ir = tcc_ir_create(arena),
                .diag = diag,
                .lex = tcc_lexer_create(text, size, diag),
                .bindings = TCC_MAP(arena),
                .opcodes = TCC_MAP(arena),
                .funcs = TCC_MAP(arena)};
    for (int i = 0; i < TCC_OP_COUNT; i++) {
        const tcc_op_info *info = tcc_op_info_get((tcc_opcode)i);
        *tcc_map_at(&p.opcodes, tcc_ir_name(p.ir, info->name)) = (void *)(uintptr_t)info;
    }
    next(&p);
    parse_module(&p);
    return diag->n_errors == n_errors ? p.ir : NULL;
}

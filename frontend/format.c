/* format: the canonical layout of a text.
 *
 * A text is taken apart into pieces, which are its tokens and comments; what is printed are the same pieces in the same
 * order, so that nothing but white space changes. That is checked in the end.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "frontend/frontend.h"

#include <string.h>

#include "frontend/parse.h"
#include "support/text.h"

enum { LIMIT = 110, INDENT = 4, MOST_ALIGNED = 48 /* columns that a continued line is indented */ };

typedef struct piece {
    tcc_tile_token_kind kind; /* of a token */
    bool is_comment, ends_line;
    bool is_sign;     /* a '-' that is none between operands */
    bool closes_sum;  /* the ')' after a sum's indices */
    bool of_sum;      /* the ':' before the type of one */
    bool in_brackets; /* of a tensor */
    unsigned lines_before; /* how many line ends are between it and what is before */
    const char *text;
    size_t len;
} piece;

/* What has a line of its own, or several where it is long. */
typedef struct item {
    size_t first, end; /* pieces */
    size_t pad_at;     /* the piece before which is padded up to a column; `end`: none */
    size_t column;     /* to which that piece is padded */
    bool blank_before, is_comment;
} item;

typedef struct line {
    size_t begin, end; /* in the formatter's text; there may be line ends inside */
    size_t width;      /* of its last line */
    size_t trailing, trailing_end; /* comments after it */
    bool blank_before;
} line;

typedef TCC_VEC(item) items;

typedef struct formatter {
    tcc_arena *arena;
    TCC_VEC(piece) pieces;
    TCC_VEC(line) lines;
    tcc_str *text; /* of the lines, without what follows them */
    size_t next; /* piece */
} formatter;

/* ---- pieces ------------------------------------------------------------------------------- */

static void add_comment(formatter *f, const char *text, const char *end, unsigned lines)
{
    bool ends_line = text[1] == '/';
    while (ends_line && end > text && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    TCC_PUSH(f->arena, &f->pieces,
             (piece){.is_comment = true, .ends_line = ends_line, .lines_before = lines, .text = text,
                     .len = (size_t)(end - text)});
}

/* The comments between two tokens; the line ends after the last. */
static unsigned add_comments(formatter *f, const char *p, const char *end)
{
    unsigned lines = 0;
    while (p < end) {
        size_t eol = tcc_line_end(p, (size_t)(end - p));
        const char *begin = p;
        if (*p != '/') {
            lines += eol != 0;
            p += eol ? eol : 1;
            continue;
        }
        if (p[1] == '/')
            p = tcc_line_rest(p, end);
        else
            for (p += 2 + 2; p[-2] != '*' || p[-1] != '/';)
                p++;
        add_comment(f, begin, p, lines);
        lines = 0;
    }
    return lines;
}

static void add_pieces(formatter *f, const char *source, size_t size, tcc_intern *names, tcc_diag *diag)
{
    tcc_tile_lexer lexer = tcc_tile_lexer_create(source, size, names, diag);
    tcc_tile_token token;
    do {
        const char *before = lexer.next;
        token = tcc_tile_lex(&lexer);
        const char *begin = lexer.next - token.len;
        unsigned lines = add_comments(f, before, begin);
        TCC_PUSH(f->arena, &f->pieces,
                 (piece){.kind = token.kind, .lines_before = lines, .text = begin, .len = token.len});
    } while (token.kind != TCC_TOK_END);
}

static bool is_operator(tcc_tile_token_kind kind)
{
    return kind >= TCC_TOK_LE && kind <= TCC_TOK_PERCENT && kind != TCC_TOK_ASSIGN;
}

/* Finds out what a token is by those before it. */
static void annotate(formatter *f)
{
    bool *sums = TCC_NEW_ARRAY(f->arena, bool, f->pieces.len + 1); /* of the open parentheses */
    size_t depth = 0;
    unsigned brackets = 0;
    bool of_sum = false, in_schedule = false;
    const piece *before = NULL;
    for (size_t i = 0; i < f->pieces.len; i++) {
        piece *p = &f->pieces.data[i];
        if (p->is_comment)
            continue;
        in_schedule = p->kind == TCC_TOK_SCHEDULE || (in_schedule && p->kind != TCC_TOK_RBRACE);
        if (p->kind == TCC_TOK_SUM)
            of_sum = true;
        p->of_sum = of_sum && p->kind == TCC_TOK_COLON;
        if (p->kind == TCC_TOK_LPAREN) {
            sums[depth++] = of_sum;
            of_sum = false;
        }
        if (p->kind == TCC_TOK_RPAREN)
            p->closes_sum = depth && sums[--depth];
        brackets += p->kind == TCC_TOK_LBRACKET;
        p->in_brackets = brackets;
        brackets -= p->kind == TCC_TOK_RBRACKET;
        if (p->kind == TCC_TOK_MINUS)
            p->is_sign = in_schedule || !before || before->closes_sum || is_operator(before->kind) ||
                         before->kind == TCC_TOK_LPAREN || before->kind == TCC_TOK_LBRACKET ||
                         before->kind == TCC_TOK_COMMA || before->kind == TCC_TOK_COLON || before->kind == TCC_TOK_ASSIGN;
        before = p;
    }
}

/* ---- one item ----------------------------------------------------------------------------- */

static bool has_space_between(const piece *a, const piece *b)
{
    if (b->is_comment)
        return true;
    if (b->kind == TCC_TOK_RPAREN || b->kind == TCC_TOK_RBRACKET || b->kind == TCC_TOK_COMMA ||
        b->kind == TCC_TOK_SEMICOLON || b->kind == TCC_TOK_COLON)
        return false;
    if (a->is_comment)
        return true;
    if (a->kind == TCC_TOK_LPAREN || a->kind == TCC_TOK_LBRACKET || a->is_sign || a->of_sum)
        return false;
    if (b->kind == TCC_TOK_LPAREN)
        return a->kind != TCC_TOK_NAME && a->kind != TCC_TOK_SUM;
    return b->kind != TCC_TOK_LBRACKET || a->kind != TCC_TOK_NAME;
}

static bool spaced(const formatter *f, const item *it, size_t i)
{
    return i > it->first && has_space_between(&f->pieces.data[i - 1], &f->pieces.data[i]);
}

/* Whether a line that is too long may be broken here: after a comma, before an operator of a sum or, if that is not
 * enough, of a product. */
static bool may_break(const formatter *f, const item *it, size_t i, bool in_products)
{
    const piece *p = &f->pieces.data[i];
    if (i == it->first || p->is_comment)
        return false;
    bool product = p->kind == TCC_TOK_STAR || p->kind == TCC_TOK_SLASH || p->kind == TCC_TOK_PERCENT;
    if (is_operator(p->kind) && !p->is_sign)
        return in_products || !product;
    return p[-1].kind == TCC_TOK_COMMA && !p[-1].is_comment && !p[-1].in_brackets;
}

static bool must_break(const formatter *f, const item *it, size_t i)
{
    const piece *p = &f->pieces.data[i];
    return i > it->first && (p[-1].ends_line || (p->is_comment && p->lines_before));
}

/* Before the outputs a line ends wherever the signature is longer than one. */
static bool is_arrow(const piece *p)
{
    return !p->is_comment && p->kind == TCC_TOK_ARROW;
}

/* The columns that are taken from a piece on, up to where the line may end. */
static size_t width_from(const formatter *f, const item *it, size_t i, bool in_products)
{
    size_t width = 0;
    for (size_t k = i; k < it->end; k++) {
        bool ends = may_break(f, it, k, in_products) || must_break(f, it, k) || is_arrow(&f->pieces.data[k]);
        if (ends && k > i)
            break;
        width += f->pieces.data[k].len + spaced(f, it, k);
    }
    return width;
}

/* Of the whole on one line. */
static size_t item_width(const formatter *f, const item *it)
{
    size_t width = 0;
    for (size_t i = it->first; i < it->end; i++)
        width += f->pieces.data[i].len + spaced(f, it, i);
    return width;
}

static size_t append_spaces(tcc_str *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tcc_str_puts(out, " ");
    return n;
}

/* Prints a piece and returns the column after it. */
static size_t append_piece(tcc_str *out, const piece *p, size_t column)
{
    for (size_t i = 0; i < p->len;) {
        size_t eol = tcc_line_end(p->text + i, p->len - i);
        if (eol)
            tcc_str_puts(out, "\n");
        else
            tcc_str_append(out, p->text + i, 1);
        column = eol ? 0 : column + 1;
        i += eol ? eol : 1;
    }
    return column;
}

static size_t append_item(const formatter *f, tcc_str *out, const item *it, size_t indent)
{
    size_t column = append_spaces(out, indent), continued = indent + INDENT;
    bool is_long = indent + item_width(f, it) > LIMIT;
    for (size_t i = it->first; i < it->end; i++) {
        const piece *p = &f->pieces.data[i];
        bool soft = may_break(f, it, i, false), hard = may_break(f, it, i, true), space = spaced(f, it, i);
        bool breaks = must_break(f, it, i) || (is_long && is_arrow(p)) ||
                      (hard && column + space + width_from(f, it, i, !soft) > LIMIT);
        if (breaks) {
            tcc_str_puts(out, "\n");
            column = append_spaces(out, continued);
        } else {
            column += append_spaces(out, space);
            if (i == it->pad_at && column < it->column)
                column += append_spaces(out, it->column - column);
        }
        if (p[-(i > it->first)].kind == TCC_TOK_ASSIGN && i > it->first && column <= MOST_ALIGNED)
            continued = column;
        if (i == it->pad_at && p->kind != TCC_TOK_ASSIGN && column <= MOST_ALIGNED) /* of a schedule's key */
            continued = column;
        column = append_piece(out, p, column);
    }
    return column;
}

static void add_line(formatter *f, const item *it, size_t indent)
{
    line l = {.begin = f->text->len, .trailing = f->next, .blank_before = it->blank_before};
    l.width = append_item(f, f->text, it, indent);
    l.end = f->text->len;
    while (f->next < f->pieces.len && f->pieces.data[f->next].is_comment && !f->pieces.data[f->next].lines_before)
        f->next++;
    l.trailing_end = f->next;
    TCC_PUSH(f->arena, &f->lines, l);
}

/* ---- blocks ------------------------------------------------------------------------------- */

/* An item from the next piece up to and including a token of this kind; a separate comment is an item,
 * too. */
static item take_item(formatter *f, tcc_tile_token_kind last)
{
    const piece *p = &f->pieces.data[f->next];
    item it = {.first = f->next, .blank_before = p->lines_before > 1, .is_comment = p->is_comment};
    while (!it.is_comment && (f->pieces.data[f->next].is_comment || f->pieces.data[f->next].kind != last))
        f->next++;
    it.end = ++f->next;
    it.pad_at = it.end;
    return it;
}

/* The column at which the items of a run are aligned: of '=', or after a schedule's key. */
static void find_pad(const formatter *f, item *it, bool in_schedule)
{
    for (size_t i = it->first; i < it->end && it->pad_at == it->end; i++) {
        const piece *p = &f->pieces.data[i];
        bool here = in_schedule ? i > it->first && p->kind != TCC_TOK_SEMICOLON : p->kind == TCC_TOK_ASSIGN;
        if (p->is_comment)
            return;
        if (here)
            it->pad_at = i;
    }
}

/* Aligns the items of a block: statements in runs without a blank line or a comment between them, settings all. */
static void align_items(const formatter *f, items *block, size_t indent, bool in_schedule)
{
    for (size_t i = 0, end; i < block->len; i = end) {
        size_t column = 0;
        for (end = i; end < block->len; end++) {
            item *it = &block->data[end];
            if (!in_schedule && end > i && (it->blank_before || it->is_comment))
                break;
            if (it->is_comment)
                continue;
            find_pad(f, it, in_schedule);
            item left = {.first = it->first, .end = it->pad_at};
            size_t width = indent + item_width(f, &left) + 1;
            if (it->pad_at < it->end && width > column)
                column = width;
        }
        for (size_t k = i; k < end; k++)
            block->data[k].column = column;
    }
}

/* Items up to the token that ends the block, which is not taken. Comments after an item belong to it and are taken
 * when the item is printed, so items are found twice. */
static void format_items(formatter *f, size_t indent, bool in_schedule)
{
    size_t begin = f->next;
    items block = {0};
    while (f->pieces.data[f->next].is_comment || f->pieces.data[f->next].kind != TCC_TOK_RBRACE) {
        TCC_PUSH(f->arena, &block, take_item(f, TCC_TOK_SEMICOLON));
        while (f->pieces.data[f->next].is_comment && !f->pieces.data[f->next].lines_before)
            f->next++;
    }
    align_items(f, &block, indent, in_schedule);
    if (block.len)
        block.data[0].blank_before = false;
    f->next = begin;
    for (size_t i = 0; i < block.len; i++) {
        f->next = block.data[i].end;
        add_line(f, &block.data[i], indent);
    }
}

static void add_token(formatter *f)
{
    item it = {.first = f->next, .end = f->next + 1, .pad_at = f->next + 1};
    f->next++;
    add_line(f, &it, 0);
}

/* kernel … { … }, schedule … { … } */
static void format_block(formatter *f, bool blank_before)
{
    bool in_schedule = f->pieces.data[f->next].kind == TCC_TOK_SCHEDULE;
    item head = take_item(f, TCC_TOK_LBRACE);
    head.end--;
    head.pad_at = head.end;
    head.blank_before = blank_before;
    f->next--;
    add_line(f, &head, 0);
    add_token(f);
    format_items(f, INDENT, in_schedule);
    add_token(f);
}

static void format_file(formatter *f)
{
    typedef enum { NOTHING, COMMENT, CONSTANT, BLOCK } thing;
    for (thing last = NOTHING, now; f->pieces.data[f->next].is_comment || f->pieces.data[f->next].kind != TCC_TOK_END;
         last = now) {
        const piece *p = &f->pieces.data[f->next];
        now = p->is_comment ? COMMENT : p->kind == TCC_TOK_CONST ? CONSTANT : BLOCK;
        bool blank = last != NOTHING && (p->lines_before > 1 || last == BLOCK || (last == CONSTANT && now == BLOCK));
        if (now == BLOCK) {
            format_block(f, blank);
            continue;
        }
        item it = take_item(f, TCC_TOK_SEMICOLON);
        it.blank_before = blank;
        add_line(f, &it, 0);
    }
}

/* ---- printing ----------------------------------------------------------------------------- */

static bool has_trailing(const line *l)
{
    return l->trailing < l->trailing_end;
}

/* Comments after consecutive lines begin in one column. */
static size_t trailing_column(const formatter *f, size_t i)
{
    size_t from = i, column = 0;
    while (from && !f->lines.data[from].blank_before && has_trailing(&f->lines.data[from - 1]))
        from--;
    for (size_t k = from; k < f->lines.len && has_trailing(&f->lines.data[k]) &&
                          (k == from || !f->lines.data[k].blank_before); k++)
        if (f->lines.data[k].width > column)
            column = f->lines.data[k].width;
    return column + 1;
}

static void print_lines(const formatter *f, tcc_str *out)
{
    for (size_t i = 0; i < f->lines.len; i++) {
        const line *l = &f->lines.data[i];
        if (l->blank_before)
            tcc_str_puts(out, "\n");
        tcc_str_append(out, tcc_str_text(f->text) + l->begin, l->end - l->begin);
        if (has_trailing(l))
            append_spaces(out, trailing_column(f, i) - l->width);
        for (size_t k = l->trailing; k < l->trailing_end; k++) {
            append_piece(out, &f->pieces.data[k], 0);
            append_spaces(out, k + 1 < l->trailing_end);
        }
        tcc_str_puts(out, "\n");
    }
}

/* Whether two pieces are the same except for their line ends. */
static bool same_piece(const piece *a, const piece *b)
{
    size_t i = 0, k = 0;
    while (i < a->len && k < b->len) {
        size_t eol_a = tcc_line_end(a->text + i, a->len - i), eol_b = tcc_line_end(b->text + k, b->len - k);
        if (!eol_a != !eol_b || (!eol_a && a->text[i] != b->text[k]))
            return false;
        i += eol_a ? eol_a : 1;
        k += eol_b ? eol_b : 1;
    }
    return i == a->len && k == b->len;
}

static bool same_pieces(const formatter *a, const formatter *b)
{
    bool same = a->pieces.len == b->pieces.len;
    for (size_t i = 0; same && i < a->pieces.len; i++)
        same = same_piece(&a->pieces.data[i], &b->pieces.data[i]);
    return same;
}

bool tcc_frontend_format(tcc_arena *arena, const char *source, size_t size, tcc_diag *diag, tcc_str *scratch,
                         tcc_str *out)
{
    unsigned n_errors = diag->n_errors;
    tcc_intern *names = tcc_intern_create(arena);
    if (!tcc_frontend_check_text(source, size, diag))
        return false;
    tcc_parse(arena, source, size, names, diag);
    if (diag->n_errors > n_errors)
        return false;
    formatter f = {.arena = arena, .text = scratch}, again = {.arena = arena};
    add_pieces(&f, source, size, names, diag);
    annotate(&f);
    format_file(&f);
    print_lines(&f, out);
    if (scratch->failed || out->failed)
        return true;
    add_pieces(&again, tcc_str_text(out), out->len, names, diag);
    if (same_pieces(&f, &again))
        return true;
    tcc_error(diag, TCC_ERR_INTERNAL, (tcc_loc){0, 0}, "formatting would change the meaning of this text");
    return false;
}

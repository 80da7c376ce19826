/* The server: one message after the other, each answered before the next is read.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "ir/target.h"
#include "lsp/complete.h"
#include "lsp/document.h"
#include "lsp/message.h"
#include "lsp/names.h"

/* Errors of JSON-RPC and of the protocol. */
enum { INVALID_REQUEST = -32600, METHOD_NOT_FOUND = -32601, NOT_INITIALIZED = -32002, PARSE_ERROR = -32700 };

typedef struct server {
    const tcc_lsp_options *io;
    const char *target;
    tcc_arena *arena; /* of one message */
    tcc_context *ctx;
    lsp_document *documents;
    bool initialized, shut_down, ended;
    tcc_str out;    /* of one message */
    tcc_str result; /* of one request */
    tcc_str notes;  /* of one diagnostic */
} server;

static const char *string_of(const tcc_json *object, const char *name)
{
    const tcc_json *v = tcc_json_member(object, name);
    return tcc_json_is(v, TCC_JSON_STRING) ? v->string : NULL;
}

static lsp_document *find_document(const server *s, const tcc_json *params)
{
    const char *uri = string_of(tcc_json_member(params, "textDocument"), "uri");
    lsp_document *d = uri ? s->documents : NULL;
    while (d && strcmp(d->uri, uri))
        d = d->next;
    return d;
}

/* ---- diagnostics -------------------------------------------------------------------------- */

/* Diagnostics of one text, for several targets. */
typedef struct report {
    server *s;
    const lsp_document *document;
    TCC_VEC(const char *) told; /* each diagnostic as printed, without notes */
    size_t n;
    bool open; /* the last one may get notes */
} report;

static void end_item(report *r)
{
    if (r->open)
        tcc_str_printf(&r->s->out, ", \"relatedInformation\": [%s]}", tcc_str_text(&r->s->notes));
    r->open = false;
    r->s->notes.len = 0;
    if (r->s->notes.data)
        *r->s->notes.data = 0;
}

static void add_note(report *r, const tcc_diagnostic *d)
{
    tcc_str *out = &r->s->notes;
    tcc_str_puts(out, out->len ? ", {\"location\": {\"uri\": " : "{\"location\": {\"uri\": ");
    tcc_json_print_string(out, r->document->uri);
    tcc_str_puts(out, ", \"range\": ");
    lsp_document_print_range(out, r->document, (tcc_loc){d->line, d->column}, d->end_column);
    tcc_str_puts(out, "}, \"message\": ");
    tcc_json_print_string(out, d->message);
    tcc_str_puts(out, "}");
}

static bool is_told(report *r, const tcc_diagnostic *d)
{
    const char *text = tcc_arena_printf(r->s->arena, "%u:%u:%s", d->line, d->column, d->message);
    for (size_t i = 0; i < r->told.len; i++)
        if (!strcmp(r->told.data[i], text))
            return true;
    TCC_PUSH(r->s->arena, &r->told, text);
    return false;
}

static void take_diagnostic(const tcc_diagnostic *d, void *user)
{
    static const int severities[] = {[TCC_SEV_NOTE] = 3, [TCC_SEV_WARNING] = 2, [TCC_SEV_ERROR] = 1};
    report *r = user;
    tcc_str *out = &r->s->out;
    if (d->severity == TCC_SEV_NOTE) { /* one that belongs to nothing, or to what was told before */
        if (r->open)
            add_note(r, d);
        return;
    }
    end_item(r);
    if (is_told(r, d))
        return;
    tcc_str_puts(out, r->n++ ? ", {\"range\": " : "{\"range\": ");
    lsp_document_print_range(out, r->document, (tcc_loc){d->line, d->column}, d->end_column);
    tcc_str_printf(out, ", \"severity\": %d, \"source\": \"tcc\", \"message\": ", severities[d->severity]);
    tcc_json_print_string(out, d->message);
    r->open = true;
}

/* Compiles up to where schedules have been chosen. */
static tcc_status compile(const server *s, const lsp_document *d, const char *target, const char *kernel, tcc_module **out)
{
    const tcc_compile_options options = {.struct_size = sizeof options, .target = target, .emit = TCC_EMIT_TILE,
                                         .tiles = 1, .kernel = kernel};
    return tcc_compile_with(s->ctx, d->text, d->size, &options, out);
}

/* For every target that schedules name and the compiler has, or the server's. */
static void diagnose(report *r)
{
    enum { MOST = 4 };
    lsp_names names;
    const char *targets[MOST] = {r->s->target};
    size_t n = 0;
    lsp_names_find(&names, r->s->arena, r->document->text, r->document->size, r->s->target);
    for (size_t i = 0; names.file && i < names.file->schedules.len && n < MOST; i++) {
        const char *target = names.file->schedules.data[i]->target.text;
        size_t k = 0;
        while (k < n && strcmp(targets[k], target))
            k++;
        if (k == n && tcc_target_find(target))
            targets[n++] = target;
    }
    for (size_t i = 0; i < (n ? n : 1); i++) {
        tcc_module *module = NULL;
        compile(r->s, r->document, targets[i], NULL, &module);
        tcc_module_destroy(module);
    }
}

static tcc_status publish(server *s, const lsp_document *d)
{
    report r = {.s = s, .document = d};
    tcc_str_puts(&s->out, "{\"jsonrpc\": \"2.0\", \"method\": \"textDocument/publishDiagnostics\", \"params\": {\"uri\": ");
    tcc_json_print_string(&s->out, d->uri);
    tcc_str_puts(&s->out, ", \"diagnostics\": [");
    if (d->text) {
        tcc_context_on_diagnostic(s->ctx, take_diagnostic, &r);
        diagnose(&r);
        tcc_context_on_diagnostic(s->ctx, NULL, NULL);
        end_item(&r);
    }
    tcc_str_puts(&s->out, "]}}");
    return lsp_message_write(s->io, &s->out);
}

/* ---- documents ---------------------------------------------------------------------------- */

static tcc_status set_text(server *s, lsp_document *d, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return TCC_ERR_MEMORY;
    free(d->text);
    d->text = copy;
    d->size = strlen(copy);
    return publish(s, d);
}

static tcc_status did_open(server *s, const tcc_json *params)
{
    const tcc_json *given = tcc_json_member(params, "textDocument");
    const char *uri = string_of(given, "uri"), *text = string_of(given, "text");
    lsp_document *d = find_document(s, params);
    if (!uri || !text)
        return TCC_OK;
    if (!d) {
        d = calloc(1, sizeof *d);
        if (!d || !(d->uri = strdup(uri))) {
            free(d);
            return TCC_ERR_MEMORY;
        }
        d->next = s->documents;
        s->documents = d;
    }
    return set_text(s, d, text);
}

/* The whole text, as was agreed upon. */
static tcc_status did_change(server *s, const tcc_json *params)
{
    const tcc_json *changes = tcc_json_member(params, "contentChanges");
    lsp_document *d = find_document(s, params);
    const char *text = changes && changes->n ? string_of(tcc_json_element(changes, changes->n - 1), "text") : NULL;
    return d && text ? set_text(s, d, text) : TCC_OK;
}

static void free_document(lsp_document *d)
{
    free(d->uri);
    free(d->text);
    free(d);
}

/* What was wrong with it is forgotten. */
static tcc_status did_close(server *s, const tcc_json *params)
{
    lsp_document *d = find_document(s, params), **at = &s->documents;
    if (!d)
        return TCC_OK;
    while (*at != d)
        at = &(*at)->next;
    *at = d->next;
    free(d->text);
    d->text = NULL;
    tcc_status status = publish(s, d);
    free_document(d);
    return status;
}

/* ---- requests: each prints its result, nothing for null ------------------------------------ */

static tcc_status initialize(server *s, const tcc_json *params)
{
    (void)params;
    s->initialized = true;
    tcc_str_printf(&s->result,
                   "{\"capabilities\": {\"positionEncoding\": \"utf-16\", \"textDocumentSync\": 1, \"hoverProvider\": true, "
                   "\"definitionProvider\": true, \"completionProvider\": {}, \"documentFormattingProvider\": true}, "
                   "\"serverInfo\": {\"name\": \"tcc lsp\", \"version\": \"%s\"}}", tcc_version());
    return TCC_OK;
}

static tcc_status shut_down(server *s, const tcc_json *params)
{
    (void)params;
    s->shut_down = true;
    return TCC_OK;
}

static const lsp_name *name_at(server *s, const lsp_document *d, const tcc_json *params, lsp_names *names)
{
    tcc_loc loc = lsp_document_place(d, tcc_json_member(params, "position"));
    lsp_names_find(names, s->arena, d->text, d->size, s->target);
    return lsp_name_at(names, loc);
}

/* The schedule in force of a kernel that a name is, or belongs to. */
static void add_schedule(server *s, const lsp_document *d, const lsp_name *name, tcc_str *text)
{
    const char *target = name->target ? name->target : s->target;
    tcc_module *module = NULL;
    if (!name->kernel || !tcc_target_find(target) || compile(s, d, target, name->kernel, &module))
        return;
    tcc_str_printf(text, "\n\n```tile\n%s```", tcc_module_schedule(module));
    tcc_module_destroy(module);
}

static tcc_status hover(server *s, const tcc_json *params)
{
    lsp_names names;
    const lsp_document *d = find_document(s, params);
    const lsp_name *name = d ? name_at(s, d, params, &names) : NULL;
    if (!name || !name->code)
        return TCC_OK;
    tcc_str text = {0};
    tcc_str_printf(&text, "```tile\n%s\n```", name->code);
    if (name->doc)
        tcc_str_printf(&text, "\n%s", name->doc);
    add_schedule(s, d, name, &text);
    tcc_str_puts(&s->result, "{\"contents\": {\"kind\": \"markdown\", \"value\": ");
    tcc_json_print_string(&s->result, tcc_str_text(&text));
    tcc_str_puts(&s->result, "}, \"range\": ");
    lsp_document_print_range(&s->result, d, name->loc, name->loc.column + name->len);
    tcc_str_puts(&s->result, "}");
    tcc_str_free(&text);
    return TCC_OK;
}

static tcc_status definition(server *s, const tcc_json *params)
{
    lsp_names names;
    const lsp_document *d = find_document(s, params);
    const lsp_name *name = d ? name_at(s, d, params, &names) : NULL;
    if (!name || !name->defined.line)
        return TCC_OK;
    tcc_str_puts(&s->result, "{\"uri\": ");
    tcc_json_print_string(&s->result, d->uri);
    tcc_str_puts(&s->result, ", \"range\": ");
    lsp_document_print_range(&s->result, d, name->defined, name->defined.column + name->defined_len);
    tcc_str_puts(&s->result, "}");
    return TCC_OK;
}

static tcc_status completion(server *s, const tcc_json *params)
{
    lsp_names names;
    const lsp_document *d = find_document(s, params);
    if (!d)
        return TCC_OK;
    size_t offset = lsp_document_offset(d, lsp_document_place(d, tcc_json_member(params, "position")));
    lsp_names_find(&names, s->arena, d->text, d->size, s->target);
    tcc_str_puts(&s->result, "[");
    if (names.file)
        lsp_complete(&s->result, &names, d->text, offset, s->target);
    tcc_str_puts(&s->result, "]");
    return TCC_OK;
}

static tcc_status formatting(server *s, const tcc_json *params)
{
    const lsp_document *d = find_document(s, params);
    char *text = NULL;
    if (!d || tcc_format(NULL, d->text, d->size, NULL, &text))
        return TCC_OK;
    tcc_str_puts(&s->result, "[{\"range\": ");
    lsp_document_print_whole(&s->result, d);
    tcc_str_puts(&s->result, ", \"newText\": ");
    tcc_json_print_string(&s->result, text);
    tcc_str_puts(&s->result, "}]");
    tcc_text_destroy(text);
    return TCC_OK;
}

/* ---- messages ----------------------------------------------------------------------------- */

static const struct method {
    const char *name;
    bool is_request;
    tcc_status (*run)(server *s, const tcc_json *params);
} methods[] = {
    {"initialize", true, initialize},
    {"shutdown", true, shut_down},
    {"textDocument/didOpen", false, did_open},
    {"textDocument/didChange", false, did_change},
    {"textDocument/didClose", false, did_close},
    {"textDocument/hover", true, hover},
    {"textDocument/definition", true, definition},
    {"textDocument/completion", true, completion},
    {"textDocument/formatting", true, formatting},
};

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (!strcmp(methods[i].name, name))
            return &methods[i];
    return NULL;
}

static void print_id(tcc_str *out, const tcc_json *id)
{
    if (tcc_json_is(id, TCC_JSON_STRING))
        tcc_json_print_string(out, id->string);
    else if (tcc_json_is(id, TCC_JSON_NUMBER))
        tcc_str_printf(out, "%.17g", id->number);
    else
        tcc_str_puts(out, "null");
}

static tcc_status reply(server *s, const tcc_json *id, int error, const char *why)
{
    tcc_str_puts(&s->out, "{\"jsonrpc\": \"2.0\", \"id\": ");
    print_id(&s->out, id);
    if (error)
        tcc_str_printf(&s->out, ", \"error\": {\"code\": %d, \"message\": \"%s\"}}", error, why);
    else
        tcc_str_printf(&s->out, ", \"result\": %s}", s->result.len ? s->result.data : "null");
    if (s->result.failed)
        return TCC_ERR_MEMORY;
    return lsp_message_write(s->io, &s->out);
}

static tcc_status answer(server *s, const tcc_json *message)
{
    const char *name = string_of(message, "method");
    const tcc_json *id = tcc_json_member(message, "id"), *params = tcc_json_member(message, "params");
    const struct method *method = name ? find_method(name) : NULL;
    if (!name) /* a response, to what was never asked; or nothing at all */
        return tcc_json_member(message, "result") || tcc_json_member(message, "error")
                   ? TCC_OK
                   : reply(s, id, INVALID_REQUEST, "no method");
    if (!strcmp(name, "exit")) {
        s->ended = true;
        return TCC_OK;
    }
    bool is_ready = s->initialized ? !s->shut_down : method && method->run == initialize;
    if (!is_ready)
        return id ? reply(s, id, s->initialized ? INVALID_REQUEST : NOT_INITIALIZED, "not now") : TCC_OK;
    if (!method || method->is_request != !!id)
        return id ? reply(s, id, METHOD_NOT_FOUND, "no such method") : TCC_OK;
    tcc_status status = method->run(s, params);
    return status || !id ? status : reply(s, id, 0, NULL);
}

static void empty(tcc_str *text)
{
    text->len = 0;
    if (text->data)
        *text->data = 0;
}

/* Reads a message and answers it. */
static tcc_status serve_one(server *s)
{
    jmp_buf oom;
    size_t size, bad;
    tcc_status status;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(s->arena, &oom);
    tcc_arena_clear(s->arena);
    empty(&s->out);
    empty(&s->result);
    empty(&s->notes);
    char *text = lsp_message_read(s->io, s->arena, &size, &status);
    if (!text) {
        s->ended = true;
        return status ? status : TCC_ERR_IO;
    }
    const tcc_json *message = tcc_json_parse(s->arena, text, size, &bad);
    return message ? answer(s, message) : reply(s, NULL, PARSE_ERROR, "no JSON");
}

tcc_status tcc_lsp_serve(const tcc_lsp_options *options)
{
    if (!options || !options->read || !options->write)
        return TCC_ERR_ARGUMENT;
    server s = {.io = options, .target = options->target ? options->target : "sm_90a"};
    if (!tcc_target_find(s.target))
        return TCC_ERR_TARGET;
    s.arena = tcc_arena_create(NULL);
    s.ctx = tcc_context_create();
    tcc_status status = s.arena && s.ctx ? TCC_OK : TCC_ERR_MEMORY;
    while (!status && !s.ended)
        status = serve_one(&s);
    while (s.documents) {
        lsp_document *d = s.documents;
        s.documents = d->next;
        free_document(d);
    }
    tcc_str_free(&s.out);
    tcc_str_free(&s.result);
    tcc_str_free(&s.notes);
    tcc_context_destroy(s.ctx);
    tcc_arena_destroy(s.arena);
    return !status && !s.shut_down ? TCC_ERR_IO : status;
}

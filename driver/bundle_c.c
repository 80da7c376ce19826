/* bundle_c: a bundle as a C file, which has the runtime in it, and its header.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <ctype.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "driver/bundle.h"
#include "driver/c_names.h"
#include "driver/module.h"
#include "runtime/bundle.h"
#include "support/arena.h"
#include "support/str.h"

extern const char tcc_runtime_text[]; /* cmake/amalgamate.py */

enum { LINE_BYTES = 100 };

typedef struct writer {
    tcc_arena *arena;
    tcc_context *ctx;
    const char *file;        /* the program's */
    const char *name, *stem; /* of the files, and as a name in C */
    const tcc_program *program;
    const char **functions; /* of each kernel */
    tcc_text bundle;
    tcc_str out;
} writer;

/* ---- names ------------------------------------------------------------------------------ */

#define REFUSE(w, ...)                                                                             \
    do {                                                                                           \
        tcc_diag diag_ = tcc_context_diag((w)->ctx, (w)->file, NULL, 0);                                \
        tcc_error(&diag_, TCC_ERR_ARGUMENT, (tcc_loc){0}, __VA_ARGS__);                            \
        return TCC_ERR_ARGUMENT;                                                                   \
    } while (0)

static tcc_status choose_stem(writer *w)
{
    char *stem = tcc_arena_strdup(w->arena, w->name);
    for (char *p = stem; *p; p++)
        if (!isalnum((unsigned char)*p) && *p != '_')
            *p = '_';
    w->stem = stem;
    if (strpbrk(w->name, "\"\\/\n"))
        REFUSE(w, "'%s' cannot be the file's name, by which the C file includes its header", w->name);
    if (!*stem || isdigit((unsigned char)*stem))
        REFUSE(w, "'%s' cannot be the file's name: the names of functions begin with it, and names in C do not begin "
                  "with a digit",
               w->name);
    return TCC_OK;
}

/* The functions of the whole file, and those of each kernel besides the launch. */
static const char *const of_file[] = {"error", "message"};
static const char of_kernel[] = "prepare";

static const char *below(writer *w, const char *of, const char *name)
{
    return tcc_arena_printf(w->arena, "%s_%s", of, name);
}

/* Whether kernel i's launch or what prepares it is called `name`. */
static bool has_function(writer *w, size_t i, const char *name)
{
    return !strcmp(w->functions[i], name) || !strcmp(below(w, w->functions[i], of_kernel), name);
}

static tcc_status check_function(writer *w, size_t i, const char *name)
{
    const char *kernel = tcc_kernel_name(tcc_program_kernel_at(w->program, i));
    for (size_t j = 0; j < sizeof of_file / sizeof *of_file; j++)
        if (!strcmp(name, below(w, w->stem, of_file[j])))
            REFUSE(w, "kernel '%s' would need a function '%s', which every such file has: give it another name",
                   kernel, name);
    for (size_t j = 0; j < i; j++)
        if (has_function(w, j, name))
            REFUSE(w, "kernels '%s' and '%s' would both need a function '%s': give one another name",
                   tcc_kernel_name(tcc_program_kernel_at(w->program, j)), kernel, name);
    return TCC_OK;
}

static tcc_status choose_functions(writer *w)
{
    size_t n = tcc_program_kernel_count(w->program);
    w->functions = TCC_NEW_ARRAY(w->arena, const char *, n);
    for (size_t i = 0; i < n; i++) {
        const char *kernel = tcc_kernel_name(tcc_program_kernel_at(w->program, i));
        const char *name = !strcmp(kernel, w->stem) ? kernel : below(w, w->stem, kernel);
        if (tcc_c_reserves(name) || tcc_c_has_function(name))
            REFUSE(w, "kernel '%s' would be the function '%s', which %s: give the file or the kernel another name",
                   kernel, name, tcc_c_reserves(name) ? "C does not allow" : "the C library has");
        w->functions[i] = name;
        tcc_status status = check_function(w, i, name);
        if (!status)
            status = check_function(w, i, below(w, name, of_kernel));
        if (status)
            return status;
    }
    return TCC_OK;
}

/* Parameter i: the arguments, then the dimensions. */
static const char *parameter(const tcc_kernel *k, size_t i)
{
    size_t n_args = tcc_kernel_arg_count(k);
    return i < n_args ? tcc_kernel_arg(k, i)->name : tcc_kernel_dim_name(k, i - n_args);
}

/* Whether parameter i may be called `name`: names[0] to names[i - 1] are chosen. */
static bool is_free(const tcc_kernel *k, const char **names, size_t i, size_t n, const char *name)
{
    bool is_free = !tcc_c_reserves(name);
    for (size_t j = 0; j < n && is_free; j++)
        is_free = j == i || strcmp(name, j < i ? names[j] : parameter(k, j));
    return is_free;
}

/* The names of the parameters, followed by as many '_' as are needed to be valid in C. */
static const char **choose_parameters(writer *w, const tcc_kernel *k, size_t *n)
{
    *n = tcc_kernel_arg_count(k) + tcc_kernel_dim_count(k);
    const char **names = TCC_NEW_ARRAY(w->arena, const char *, *n);
    for (size_t i = 0; i < *n; i++)
        for (names[i] = parameter(k, i); !is_free(k, names, i, *n, names[i]);)
            names[i] = tcc_arena_printf(w->arena, "%s_", names[i]);
    return names;
}

/* ---- the header ------------------------------------------------------------------------- */

/* A kernel's declaration in the language. */
static void print_signature(writer *w, const tcc_kernel *k)
{
    static const char *const begins[] = {[TCC_ARG_IN] = "", [TCC_ARG_SCALAR] = "", [TCC_ARG_OUT] = "",
                                         [TCC_ARG_INOUT] = "inout "};
    bool in_outputs = false;
    tcc_str_printf(&w->out, "%s(", tcc_kernel_name(k));
    for (size_t i = 0; i < tcc_kernel_arg_count(k); i++) {
        const tcc_arg_info *a = tcc_kernel_arg(k, i);
        bool is_first_output = a->role == TCC_ARG_OUT && !in_outputs;
        in_outputs |= is_first_output;
        tcc_str_printf(&w->out, "%s%s%s: %s", is_first_output ? ") -> (" : i ? ", " : "", begins[a->role], a->name,
                       a->type);
        for (unsigned d = 0; d < a->rank; d++)
            if (a->dims[d])
                tcc_str_printf(&w->out, "%s%s", d ? ", " : "[", a->dims[d]);
            else
                tcc_str_printf(&w->out, "%s%lld", d ? ", " : "[", (long long)a->extents[d]);
        tcc_str_puts(&w->out, a->rank ? "]" : "");
    }
    tcc_str_puts(&w->out, ")");
}

static const char *c_type(const tcc_arg_info *a)
{
    return a->role != TCC_ARG_SCALAR  ? "uint64_t"
           : !strcmp(a->type, "i32") ? "int32_t"
           : !strcmp(a->type, "f64") ? "double"
                                     : "float";
}

static void print_declaration(writer *w, size_t i, bool is_launch)
{
    const tcc_kernel *k = tcc_program_kernel_at(w->program, i);
    size_t n, n_args = tcc_kernel_arg_count(k);
    const char **names = choose_parameters(w, k, &n);
    const char *after = is_launch ? "void *stream, " : "";
    tcc_str_printf(&w->out, "int %s(", is_launch ? w->functions[i] : below(w, w->functions[i], of_kernel));
    for (size_t j = 0; j < n; j++, after = ", ")
        tcc_str_printf(&w->out, "%s%s %s", after, j < n_args ? c_type(tcc_kernel_arg(k, j)) : "int64_t", names[j]);
    tcc_str_puts(&w->out, ")");
}

static void print_targets(writer *w)
{
    tcc_diag silent = {0};
    tcc_bundle bundle = {.n = 0};
    tcc_bundle_read(&silent, w->bundle.data, w->bundle.size, &bundle);
    for (size_t i = 0; i < bundle.n; i++)
        if (!i || strcmp(bundle.images[i].target, bundle.images[i - 1].target))
            tcc_str_printf(&w->out, "%s %s", i ? "," : "", bundle.images[i].target);
}

static void print_header(writer *w)
{
    tcc_str_printf(&w->out, "/* %s.h: kernels for", w->name);
    print_targets(w);
    tcc_str_printf(&w->out,
                   ", written by tcc " TCC_VERSION_STRING ".\n"
                   " *\n"
                   " * A kernel's function enqueues it on a stream (a CUstream, cudaStream_t or hipStream_t; NULL is the\n"
                   " * default stream) of the GPU that is current in the calling thread. Tensors are addresses on that\n"
                   " * GPU, row-major and contiguous unless there are strides; extents and strides are in elements. It\n"
                   " * returns 0 or an error, which %s_error\n"
                   " * names. The function whose name ends in _prepare does in advance what the first such launch on a GPU\n"
                   " * does in addition: it loads the code, which is not allowed while a stream is captured. All functions\n"
                   " * may be called from several threads at once. */\n"
                   "#ifndef TCC_KERNELS_%s_H\n"
                   "#define TCC_KERNELS_%s_H\n\n"
                   "#include <stdint.h>\n\n"
                   "#ifdef __cplusplus\n"
                   "extern \"C\" {\n"
                   "#endif\n\n",
                   w->stem, w->stem, w->stem);
    for (size_t i = 0; i < tcc_program_kernel_count(w->program); i++) {
        tcc_str_puts(&w->out, "/* ");
        print_signature(w, tcc_program_kernel_at(w->program, i));
        tcc_str_puts(&w->out, " */\n");
        print_declaration(w, i, true);
        tcc_str_puts(&w->out, ";\n");
        print_declaration(w, i, false);
        tcc_str_puts(&w->out, ";\n\n");
    }
    tcc_str_printf(&w->out,
                   "/* The meaning of a returned number, and the messages of the calling thread's last call, \"\" if there\n"
                   " * are none. */\n"
                   "const char *%s_error(int error);\n"
                   "const char *%s_message(void);\n\n"
                   "#ifdef __cplusplus\n"
                   "}\n"
                   "#endif\n"
                   "#endif\n",
                   w->stem, w->stem);
}

/* ---- the C file ------------------------------------------------------------------------- */

/* Bytes as string literals, in lines that end where the text's do. No '?', which may begin a trigraph. */
static void print_bytes(tcc_str *out, const char *data, size_t size)
{
    size_t in_line = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i];
        if (!in_line)
            tcc_str_puts(out, "    \"");
        if (c == '\n')
            tcc_str_puts(out, "\\n");
        else if (c == '"' || c == '\\')
            tcc_str_append(out, (char[]){'\\', (char)c}, 2);
        else if (c < ' ' || c > '~' || c == '?')
            tcc_str_printf(out, i + 1 < size && isdigit((unsigned char)data[i + 1]) ? "\\%03o" : "\\%o", c);
        else
            tcc_str_append(out, (char *)&c, 1);
        bool ends = c == '\n' || ++in_line == LINE_BYTES || i + 1 == size;
        in_line = ends ? 0 : in_line;
        tcc_str_puts(out, ends ? "\"\n" : "");
    }
}

/* What the function of a kernel does: the extents and the arguments, as launches take them. */
static void print_function(writer *w, size_t i, bool is_launch)
{
    const tcc_kernel *k = tcc_program_kernel_at(w->program, i);
    size_t n, n_args = tcc_kernel_arg_count(k), n_dims = tcc_kernel_dim_count(k);
    const char **names = choose_parameters(w, k, &n);
    tcc_str_puts(&w->out, "\n");
    print_declaration(w, i, is_launch);
    tcc_str_puts(&w->out, "\n{\n");
    for (size_t j = 0; j < n_dims; j++)
        tcc_str_printf(&w->out, "%s%s", j ? ", " : "    const int64_t dims[] = {", names[n_args + j]);
    tcc_str_puts(&w->out, n_dims ? "};\n" : "");
    for (size_t j = 0; j < n_args; j++)
        tcc_str_printf(&w->out, "%s{.%s = %s}", j ? ", " : "    const tcc_arg args[] = {",
                       tcc_kernel_arg(k, j)->role == TCC_ARG_SCALAR ? "number" : "device", names[j]);
    tcc_str_printf(&w->out,
                   "};\n"
                   "    tcc_said[0] = 0;\n"
                   "    return (int)tcc_ahead_%s(&tcc_kernels, %zu, %s, %zu, args, %zu%s);\n"
                   "}\n",
                   is_launch ? "launch" : "prepare", i, n_dims ? "dims" : "NULL", n_dims, n_args,
                   is_launch ? ", stream" : "");
}

static void print_file(writer *w)
{
    tcc_str_printf(&w->out,
                   "/* %s.c: kernels, written by tcc " TCC_VERSION_STRING ", and tcc's runtime, which loads and "
                                                                          "launches them: %s.h.\n"
                   " *\n"
                   " * It needs C11 with POSIX threads, and -lpthread and -ldl if these are not in libc.\n"
                   " *\n"
                   " * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */\n"
                   "#if defined __cplusplus || !defined __STDC_VERSION__ || __STDC_VERSION__ < 201112L\n"
                   "#error %s.c is C11: compile it as C; %s.h is for C++ as well\n"
                   "#else\n"
                   "#ifndef _DEFAULT_SOURCE\n"
                   "#define _DEFAULT_SOURCE 1\n"
                   "#endif\n"
                   "#pragma GCC diagnostic ignored \"-Wunused-function\"\n"
                   "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
                   "#define TCC_API static\n",
                   w->name, w->name, w->name, w->name);
    tcc_str_puts(&w->out, tcc_runtime_text);
    tcc_str_printf(&w->out, "#include \"%s.h\"\n\n_Alignas(64) static const unsigned char tcc_images[] =\n", w->name);
    print_bytes(&w->out, w->bundle.data, w->bundle.size);
    tcc_str_printf(&w->out,
                   ";\n\n"
                   "static _Thread_local char tcc_said[1024];\n\n"
                   "static void tcc_say(const tcc_diagnostic *d, void *user)\n"
                   "{\n"
                   "    size_t n = strlen(tcc_said);\n"
                   "    (void)user;\n"
                   "    snprintf(tcc_said + n, sizeof tcc_said - n, \"%%s%%s\", n ? \"; \" : \"\", d->message);\n"
                   "}\n\n"
                   "static tcc_ahead tcc_kernels = {.bundle = tcc_images, .size = sizeof tcc_images - 1, .fn = "
                   "tcc_say,\n"
                   "                                .mutex = PTHREAD_MUTEX_INITIALIZER};\n\n"
                   "const char *%s_error(int error)\n"
                   "{\n"
                   "    return tcc_status_name((tcc_status)error);\n"
                   "}\n\n"
                   "const char *%s_message(void)\n"
                   "{\n"
                   "    return tcc_said;\n"
                   "}\n",
                   w->stem, w->stem);
    for (size_t i = 0; i < tcc_program_kernel_count(w->program); i++) {
        print_function(w, i, true);
        print_function(w, i, false);
    }
    tcc_str_puts(&w->out, "#endif\n");
}

/* ---- both ------------------------------------------------------------------------------- */

static tcc_status print(writer *w, void (*print_text)(writer *w), tcc_text *out)
{
    w->out = (tcc_str){0};
    print_text(w);
    out->size = w->out.len;
    out->data = tcc_str_take(&w->out);
    return out->data ? TCC_OK : TCC_ERR_MEMORY;
}

static tcc_status print_both(writer *w, tcc_text *c, tcc_text *header)
{
    jmp_buf oom;
    if (setjmp(oom))
        return TCC_ERR_MEMORY;
    tcc_arena_set_oom(w->arena, &oom);
    tcc_status status = choose_stem(w);
    if (!status)
        status = choose_functions(w);
    if (!status)
        status = print(w, print_header, header);
    return status ? status : print(w, print_file, c);
}

tcc_status tcc_bundle_c(tcc_context *ctx, const tcc_module *const *modules, size_t n,
                        const tcc_bundle_options *options, const char *name, tcc_text *c, tcc_text *header)
{
    tcc_program *program;
    writer w = {.ctx = ctx, .name = name, .arena = tcc_arena_create(NULL)};
    *c = *header = (tcc_text){0};
    tcc_status status = w.arena ? tcc_bundle_check(ctx, modules, n, &program) : TCC_ERR_MEMORY;
    if (!status) {
        w.program = program;
        w.file = modules[0]->file;
        status = tcc_bundle_make(ctx, modules, n, options, &w.bundle);
        if (!status)
            status = print_both(&w, c, header);
        tcc_program_destroy(program);
    }
    if (status) {
        tcc_text_destroy(c->data);
        tcc_text_destroy(header->data);
        *c = *header = (tcc_text){0};
    }
    tcc_str_free(&w.out);
    tcc_text_destroy(w.bundle.data);
    tcc_arena_destroy(w.arena);
    return status;
}

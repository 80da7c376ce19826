/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tcc-run/check.h"
#include "tools/tcc-run/measure.h"
#include "tools/tcc-run/memory.h"
#include "tools/tcc-run/tune.h"

enum { MAX_DIMS = 1024 };

/* A launch being prepared. */
typedef struct launch {
    const options *o;
    const program *program;
    const tcc_kernel *kernel;
    size_t n_dims, n_args;
    int64_t dims[MAX_DIMS];
    npy files[MAX_ARGS];      /* of --input; no data: none */
    tensor tensors[MAX_ARGS]; /* no type: a scalar */
    double scalars[MAX_ARGS];
    tcc_arg args[MAX_ARGS];
    void *initial[MAX_ARGS]; /* of inouts, for --tune */
} launch;

/* ---- the kernel and its arguments ------------------------------------------------------- */

/* Says which kernels there are to choose from. */
static void which_kernel(session *s, const launch *l)
{
    const tcc_program *p = l->program->handle;
    char names[1024] = "none";
    for (size_t i = 0, n = 0; i < tcc_program_kernel_count(p) && n < sizeof names; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", i ? ", " : "",
                              tcc_kernel_name(tcc_program_kernel_at(p, i)));
    if (l->o->kernel)
        session_error(s, "%s has no kernel '%s'; it has %s", l->o->file, l->o->kernel, names);
    else
        session_error(s, "%s does not have one kernel: give --kernel NAME; it has %s", l->o->file,
                      names);
}

static bool find_kernel(session *s, launch *l)
{
    l->kernel = tcc_program_kernel(l->program->handle, l->o->kernel);
    if (!l->kernel) {
        which_kernel(s, l);
        return false;
    }
    l->n_dims = tcc_kernel_dim_count(l->kernel);
    l->n_args = tcc_kernel_arg_count(l->kernel);
    if (l->n_dims > MAX_DIMS || l->n_args > MAX_ARGS) {
        session_error(s, "kernel '%s' has too many arguments", tcc_kernel_name(l->kernel));
        return false;
    }
    return true;
}

/* Whether an argument of this name has one of these roles, a set of bits. */
static bool has_arg(const launch *l, const char *name, unsigned roles)
{
    for (size_t i = 0; i < l->n_args; i++) {
        const tcc_arg_info *info = tcc_kernel_arg(l->kernel, i);
        if (!strcmp(info->name, name))
            return roles >> info->role & 1;
    }
    return false;
}

static bool has_dim(const launch *l, const char *name)
{
    for (size_t i = 0; i < l->n_dims; i++)
        if (!strcmp(tcc_kernel_dim_name(l->kernel, i), name))
            return true;
    return false;
}

/* Every name on the command line is that of an argument which the option is for. */
static bool check_args(session *s, const launch *l)
{
    enum {
        IN = 1 << TCC_ARG_IN,
        OUT = 1 << TCC_ARG_OUT,
        INOUT = 1 << TCC_ARG_INOUT,
        SCALAR = 1 << TCC_ARG_SCALAR
    };
    const options *o = l->o;
    const struct {
        const option_list *list;
        const char *what;
        unsigned roles;
    } kinds[] = {{&o->scalars, "scalar", SCALAR},
                 {&o->inputs, "input", IN | INOUT},
                 {&o->misaligned, "tensor", IN | OUT | INOUT},
                 {&o->outputs, "output", OUT | INOUT}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        for (size_t j = 0; j < kinds[i].list->n; j++) {
            const char *name = kinds[i].list->pairs[j].name;
            if (has_arg(l, name, kinds[i].roles))
                continue;
            session_error(s, "kernel '%s' has no %s '%s'", tcc_kernel_name(l->kernel),
                          kinds[i].what, name);
            return false;
        }
    return true;
}

static void print_dims(const launch *l, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "%s", l->n_dims ? "" : "none is symbolic");
    for (size_t i = 0; i < l->n_dims && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%s", i ? ", " : "",
                              tcc_kernel_dim_name(l->kernel, i));
}

/* Every size is of a symbolic dimension, or says again what -D does. */
static bool check_sizes(session *s, const launch *l)
{
    for (size_t i = 0; i < l->o->sizes.n; i++) {
        const option_pair *size = &l->o->sizes.pairs[i];
        const option_pair *bound = option_find(&l->o->defines, size->name);
        char dims[160];
        if (bound ? bound->extent == size->extent : has_dim(l, size->name))
            continue;
        print_dims(l, dims, sizeof dims);
        if (bound)
            session_error(s, "--size %s=%" PRId64 ", but -D %s=%" PRId64, size->name, size->extent,
                          size->name, bound->extent);
        else
            session_error(s, "kernel '%s' has no dimension '%s': %s", tcc_kernel_name(l->kernel),
                          size->name, dims);
        return false;
    }
    return true;
}

static bool read_files(session *s, launch *l)
{
    char why[256];
    for (size_t i = 0; i < l->n_args; i++) {
        const option_pair *input = option_find(&l->o->inputs, tcc_kernel_arg(l->kernel, i)->name);
        if (input && !npy_read(input->path, &l->files[i], why, sizeof why)) {
            session_error(s, "%s", why);
            return false;
        }
    }
    return true;
}

/* Extents that are given, and those that follow from the files read. */
static void find_dims(launch *l)
{
    const int64_t *shapes[MAX_ARGS] = {NULL};
    for (size_t i = 0; i < l->n_args; i++)
        if (l->files[i].data && l->files[i].rank == tcc_kernel_arg(l->kernel, i)->rank)
            shapes[i] = l->files[i].shape;
    for (size_t i = 0; i < l->n_dims; i++) {
        const option_pair *size = option_find(&l->o->sizes, tcc_kernel_dim_name(l->kernel, i));
        l->dims[i] = size ? size->extent : -1;
    }
    tcc_kernel_solve(l->kernel, shapes, l->dims);
}

/* What a stride is where nothing follows a row but the next one; -1: it is none. Strides come after all extents. */
static int64_t contiguous_stride(const launch *l, const char *name)
{
    for (size_t i = 0; i < l->n_args; i++) {
        const tcc_arg_info *info = tcc_kernel_arg(l->kernel, i);
        int64_t reach = 1;
        for (unsigned d = info->stride_dims ? info->rank : 0; d-- > 0;) {
            const char *own = info->stride_dims[d];
            const option_pair *size = own ? option_find(&l->o->sizes, own) : NULL;
            int64_t stride = size ? size->extent : own ? reach : info->strides[d];
            int64_t extent = tcc_kernel_extent(l->kernel, i, d, l->dims);
            if (own && !strcmp(own, name))
                return reach;
            if (__builtin_mul_overflow(extent ? extent : 1, stride, &reach))
                return -1;
        }
    }
    return -1;
}

static bool bind_dims(session *s, launch *l, run_result *out)
{
    size_t len = 0;
    find_dims(l);
    for (size_t i = 0; i < l->n_dims; i++) {
        const char *name = tcc_kernel_dim_name(l->kernel, i);
        if (l->dims[i] < 0)
            l->dims[i] = contiguous_stride(l, name);
        if (l->dims[i] < 0) {
            session_error(s, "the extent of %s is not given: --size %s=N", name, name);
            return false;
        }
        if (len < sizeof out->dims)
            len += (size_t)snprintf(out->dims + len, sizeof out->dims - len, "%s%s=%" PRId64,
                                    i ? "," : "", name, l->dims[i]);
    }
    return true;
}

/* A scalar as its type holds it. */
static bool set_scalar(session *s, launch *l, size_t i)
{
    const tcc_arg_info *info = l->tensors[i].info;
    const option_pair *given = option_find(&l->o->scalars, info->name);
    const elem_type *type = elem_type_find(info->type);
    double x = given ? given->number : 1;
    if (type && !elem_holds(type, x)) {
        session_error(s, "--set %s=%.15g: '%s' is of %s, which cannot hold that", info->name, x, info->name, info->type);
        return false;
    }
    l->args[i].number = l->scalars[i] = type ? elem_round(type, x) : x;
    return true;
}

/* Resolves the arguments, which takes no memory yet. */
static bool init_args(session *s, launch *l)
{
    for (size_t i = 0; i < l->n_args; i++) {
        const tcc_arg_info *info = tcc_kernel_arg(l->kernel, i);
        l->tensors[i].info = info;
        if (!(info->role == TCC_ARG_SCALAR ? set_scalar(s, l, i)
                                           : tensor_init(s, &l->tensors[i], l->kernel, i, l->dims)))
            return false;
    }
    return true;
}

static bool is_output(const tensor *t)
{
    return t->type && t->info->role != TCC_ARG_IN;
}

/* Whether the host has room for the tensors: as they are, in the machine where that is here, and
 * as the reference takes them. */
static bool check_memory(session *s, const launch *l)
{
    double need = 0;
    for (size_t i = 0; i < l->n_args; i++) {
        const tensor *t = &l->tensors[i];
        need += (double)t->bytes + (double)s->on->host_bytes(t);
        if (l->o->check) /* an output's intervals, too, and what an inout has before */
            need += (double)t->n * (!is_output(t) ? 1 : t->info->role == TCC_ARG_INOUT ? 4 : 3) * sizeof(double);
    }
    uint64_t limit = memory_available();
    if (need <= (double)limit)
        return true;
    char need_text[32], limit_text[32];
    memory_print(need < (double)UINT64_MAX ? (uint64_t)need : UINT64_MAX, need_text,
                 sizeof need_text);
    memory_print(limit, limit_text, sizeof limit_text);
    session_error(s, "the tensors need %s of memory, and %s are free", need_text, limit_text);
    return false;
}

/* Keeps what an inout holds before the first launch. */
static bool keep_initial(session *s, launch *l, size_t i)
{
    const tensor *t = &l->tensors[i];
    if (!l->o->tune || t->info->role != TCC_ARG_INOUT)
        return true;
    l->initial[i] = malloc(t->bytes ? t->bytes : 1);
    if (l->initial[i])
        memcpy(l->initial[i], t->host, t->bytes);
    else
        session_error(s, "'%s': out of memory", t->info->name);
    return l->initial[i];
}

static tcc_status prepare_args(session *s, launch *l)
{
    if (!init_args(s, l) || !check_memory(s, l))
        return TCC_ERR_ARGUMENT;
    for (size_t i = 0; i < l->n_args; i++) {
        tensor *t = &l->tensors[i];
        const tcc_arg_info *info = t->info;
        const npy *file = l->files[i].data ? &l->files[i] : NULL;
        if (!t->type)
            continue;
        if (!tensor_fill(s, t, file, (uint64_t)l->o->seed * 64 + i) || !keep_initial(s, l, i))
            return TCC_ERR_ARGUMENT;
        tcc_status status = tensor_upload(s, t, option_find(&l->o->misaligned, info->name) != NULL);
        if (status)
            return status;
        l->args[i].device = t->address;
    }
    return TCC_OK;
}

static void launch_free(session *s, launch *l)
{
    for (size_t i = 0; i < l->n_args && i < MAX_ARGS; i++) {
        free(l->files[i].data);
        free(l->initial[i]);
        tensor_free(s, &l->tensors[i]);
    }
    free(l);
}

/* ---- running ---------------------------------------------------------------------------- */

/* timeline: where the line about it goes, NULL for none. */
static tcc_status launch_kernel(session *s, const launch *l, int64_t number, double *ms,
                                const char **variant, char *timeline, size_t timeline_size)
{
    return s->on->run(s,
                      &(launch_task){.program = l->program,
                                     .kernel = l->kernel,
                                     .o = l->o,
                                     .dims = l->dims,
                                     .n_dims = l->n_dims,
                                     .tensors = l->tensors,
                                     .args = l->args,
                                     .n_args = l->n_args,
                                     .number = number,
                                     .timeline = timeline,
                                     .timeline_size = timeline_size},
                      ms, variant);
}

/* Launches once and reads the outputs back. */
static tcc_status run_once(session *s, launch *l, run_result *out)
{
    const char *variant = NULL;
    tcc_status status =
        launch_kernel(s, l, 0, &out->ms, &variant, out->timeline, sizeof out->timeline);
    snprintf(out->variant, sizeof out->variant, "%s", variant ? variant : "-");
    for (size_t i = 0; !status && i < l->n_args; i++) {
        size_t stray;
        if (!is_output(&l->tensors[i]))
            continue;
        status = tensor_read(s, &l->tensors[i], &stray);
        out->check.stray += stray;
    }
    return status;
}

/* Launches again on poisoned outputs; false after reporting when a result differs from the first.
 * Nothing but a race makes it differ, on the GPU as in another order of the interpreter's. */
static bool run_again(session *s, launch *l, int64_t number)
{
    tcc_status status = TCC_OK;
    bool equal = true;
    for (size_t i = 0; !status && i < l->n_args; i++)
        if (is_output(&l->tensors[i]))
            status = tensor_poison(s, &l->tensors[i]);
    double ms;
    const char *variant;
    if (!status)
        status = launch_kernel(s, l, number - 1, &ms, &variant, NULL, 0);
    for (size_t i = 0; !status && equal && i < l->n_args; i++)
        if (is_output(&l->tensors[i]))
            status = tensor_compare(s, &l->tensors[i], &equal);
    if (!equal)
        session_error(s, "launch %" PRId64 " gave a different result from the first", number);
    return !status && equal;
}

/* An inout's second launch starts from the first one's result: there is nothing to compare. */
static bool run_repeatedly(session *s, launch *l)
{
    for (size_t i = 0; i < l->n_args; i++)
        if (l->tensors[i].info->role == TCC_ARG_INOUT)
            return true;
    for (int64_t number = 2; number <= l->o->repeat; number++)
        if (!run_again(s, l, number))
            return false;
    return true;
}

static bool write_outputs(session *s, const launch *l)
{
    char why[256];
    for (size_t i = 0; i < l->n_args; i++) {
        const tensor *t = &l->tensors[i];
        const option_pair *output = option_find(&l->o->outputs, t->info->name);
        if (output && !npy_write(output->path, t->type, t->info->rank, t->extents, t->host, why,
                                 sizeof why)) {
            session_error(s, "%s", why);
            return false;
        }
    }
    return true;
}

static bool check(session *s, launch *l, reference *ref, double flops, run_result *out)
{
    check_task task = {.manifest = tcc_program_manifest(l->program->handle),
                       .kernel = tcc_kernel_name(l->kernel),
                       .dims = l->dims,
                       .sum = tcc_kernel_sum_type(l->kernel),
                       .macs = flops / 2,
                       .tolerance = l->o->tolerance,
                       .rows = l->o->rows,
                       .seed = (uint64_t)l->o->seed};
    bool ok = check_outputs(s, &task, l->tensors, ref, &out->check);
    if (out->check.stray) {
        session_error(s, "%" PRIu64 " bytes were written outside the outputs", out->check.stray);
        ok = false;
    }
    return ok;
}

static bool time_it(session *s, const launch *l, double flops, run_result *out)
{
    const measure_task task = {.kernel = l->kernel,
                               .dims = l->dims,
                               .tensors = l->tensors,
                               .args = l->args,
                               .n_args = l->n_args,
                               .flops = flops,
                               .against = l->o->against};
    return l->o->tune ? tune(s, l->o, &task, (const void *const *)l->initial, &out->tune) : measure(s, &task, &out->bench);
}

/* Whether it has this name, or that of one of its tiles: ENTRY__64x128. */
static bool is_variant(const char *name, const char *entry)
{
    size_t n = strlen(entry);
    int m_tile, n_tile;
    return !strncmp(name, entry, n) && (!name[n] || sscanf(name + n, "__%dx%d", &m_tile, &n_tile) == 2);
}

static bool check_variant(session *s, const launch *l, const run_result *out)
{
    if (!l->o->variant || is_variant(out->variant, l->o->variant))
        return true;
    session_error(s, "variant %s runs instead of %s", out->variant, l->o->variant);
    return false;
}

static int exit_status(tcc_status status)
{
    switch (status) {
    case TCC_OK: return EXIT_OK;
    case TCC_ERR_NO_DRIVER: return EXIT_NO_DRIVER;
    case TCC_ERR_ARGUMENT: return EXIT_USAGE;
    default: return EXIT_FAILED;
    }
}

/* Everything from a program that is there. */
static int run_launch(session *s, launch *l, run_result *out)
{
    if (!find_kernel(s, l) || !check_args(s, l) || !check_sizes(s, l))
        return EXIT_USAGE;
    snprintf(out->kernel, sizeof out->kernel, "%s", tcc_kernel_name(l->kernel));
    if (!read_files(s, l))
        return EXIT_FAILED;
    if (!bind_dims(s, l, out))
        return EXIT_USAGE;
    tcc_status status = prepare_args(s, l);
    if (status)
        return EXIT_FAILED;
    reference ref = {0};
    if (l->o->check && !reference_prepare(s, l->tensors, l->scalars, l->n_args, &ref))
        return EXIT_FAILED;
    status = run_once(s, l, out);
    bool ok = !status && check_variant(s, l, out);
    double flops = tcc_kernel_flops(l->kernel, l->dims);
    if (!status && l->o->check)
        ok = check(s, l, &ref, flops, out) && ok;
    reference_free(&ref);
    if (!status)
        ok = run_repeatedly(s, l) && write_outputs(s, l) && ok;
    if (!status && (l->o->bench || (l->o->tune && ok)))
        ok = time_it(s, l, flops, out) && ok;
    return !status && ok ? EXIT_OK : EXIT_FAILED;
}

static void describe_device(const session *s, const options *o, run_result *out)
{
    s->on->describe(s, o, out->device, sizeof out->device);
    out->is_gpu = s->on->is_gpu;
}

static void keep_message(const session *s, run_result *out)
{
    if (out->status)
        snprintf(out->message, sizeof out->message, "%s", s->message[0] ? s->message : "failed");
}

const machine *machine_of(const options *o)
{
    switch (o->on) {
    case ON_INTERP: return &machine_interp;
    case ON_HIP: return &machine_hip;
    default: return &machine_cuda;
    }
}

void run_nothing(session *s, const options *o, run_result *out)
{
    s->on = machine_of(o);
    *out = (run_result){.status = exit_status(s->on->open(s, o))};
    describe_device(s, o, out);
    keep_message(s, out);
}

void run_case(session *s, const options *o, run_result *out)
{
    *out = (run_result){0};
    s->on = machine_of(o);
    s->dev = s->on->is_gpu ? s->gpus[s->on->vendor].dev : NULL;
    s->message[0] = 0;
    launch *l = calloc(1, sizeof *l);
    if (l) {
        l->o = o;
        out->status = exit_status(session_program(s, o, &l->program));
    } else {
        session_error(s, "out of memory");
        out->status = EXIT_FAILED;
    }
    describe_device(s, o, out);
    if (!out->status)
        out->status = run_launch(s, l, out);
    if (l)
        launch_free(s, l);
    keep_message(s, out);
    /* A kernel that failed may have taken the context with it, which has been told already. */
    bool quiet = s->quiet;
    s->quiet = true;
    out->driver_failed = out->status == EXIT_FAILED && s->on->is_lost(s);
    s->quiet = quiet;
}

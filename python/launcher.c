/* launcher: the quick path of the Python package, for calls whose arrays are tensors of torch on a GPU.
 *
 * A Launcher is a kernel's. It knows calls by what their tensors are: element types, shapes and places. The path that
 * is written in Python checks the first call of a kind, and teaches the Launcher what such calls launch: a plan. What
 * it does not know the Launcher leaves to Python, with NotImplemented, and has done nothing then.
 *
 * It is built for the limited API of Python 3.9, and calls libtcc through the addresses that it is given.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "python/call.h"

#include <string.h>
#include <time.h>

enum { MAX_PLANS = 4096 };

/* A plan, a tuple. */
enum {
    PLAN_ORDINAL,         /* the GPU's */
    PLAN_EXTENTS,         /* bytes: those of the kernel's dims */
    PLAN_SIZES,           /* bytes: of each argument that is given, how many it takes; 0 of scalars */
    PLAN_OUTPUTS,         /* of each output what new_empty takes: a tuple, and a dict */
    PLAN_STREAM_OF,       /* gives the current stream of a GPU */
    PLAN_IS_GRAD_ENABLED, /* says whether derivatives are recorded */
    PLAN_KERNEL,          /* its address; 0: it is asked for at every call */
    PLAN_REQUEST,         /* how: what tcc_jit_kernel_for takes up to the kernel's name, four addresses; else () */
    PLAN_KEEP,            /* what is to live as long as the plan */
    N_PLAN
};

typedef struct launcher {
    PyObject_HEAD
    PyObject *plans; /* by what their calls have in common, as bytes */
    PyObject *check; /* raises what a call of libtcc returned */
    const tcc_runtime *runtime;
    int (*current_device)(const tcc_runtime *);
    __typeof__(&tcc_jit_kernel_for) kernel_for;
    __typeof__(&tcc_kernel_launch) launch;
    tcc_parameters takes;
} launcher;

static PyObject *key_of(const tcc_call *c)
{
    return PyBytes_FromStringAndSize((const char *)c->key, (Py_ssize_t)(c->n_key * sizeof *c->key));
}

/* The plan of such calls, where it may be launched as things are: a new reference. */
static tcc_found find_plan(const launcher *self, const tcc_call *c, PyObject **out)
{
    PyObject *key = key_of(c);
    PyObject *plan = key ? PyDict_GetItemWithError(self->plans, key) : NULL;
    Py_XDECREF(key);
    if (!plan)
        return PyErr_Occurred() ? TCC_RAISED : TCC_UNKNOWN;
    PyObject *sizes = PyTuple_GetItem(plan, PLAN_SIZES);
    if (self->current_device(self->runtime) != PyLong_AsLong(PyTuple_GetItem(plan, PLAN_ORDINAL)) ||
        PyBytes_Size(sizes) != (Py_ssize_t)(c->n_words * sizeof(int64_t)) ||
        tcc_call_overlaps(&self->takes, c, (const int64_t *)(void *)PyBytes_AsString(sizes)))
        return PyErr_Occurred() ? TCC_RAISED : TCC_UNKNOWN;
    Py_INCREF(plan);
    bool is_grad_enabled = false;
    tcc_found f = TCC_KNOWN;
    if (c->requires_grad)
        f = tcc_take_bool(PyObject_CallObject(PyTuple_GetItem(plan, PLAN_IS_GRAD_ENABLED), NULL), &is_grad_enabled);
    if (f == TCC_KNOWN && !is_grad_enabled)
        *out = plan;
    else
        Py_DECREF(plan);
    return f == TCC_KNOWN && is_grad_enabled ? TCC_UNKNOWN : f;
}

static tcc_found find_stream(PyObject *plan, PyObject *given, void **out)
{
    uint64_t stream = 0;
    tcc_found f;
    if (given == Py_None) {
        f = tcc_take_number(PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, PLAN_STREAM_OF),
                                                   PyTuple_GetItem(plan, PLAN_ORDINAL), NULL), &stream);
    } else {
        Py_INCREF(given);
        f = tcc_take_number(given, &stream);
    }
    *out = (void *)(uintptr_t)stream;
    return f;
}

/* ---- launching ------------------------------------------------------------------------------- */

/* New tensors for the outputs: a tuple. NULL: an exception is raised. */
static PyObject *allocate(const launcher *self, PyObject *plan, tcc_call *c)
{
    PyObject *outputs = PyTuple_GetItem(plan, PLAN_OUTPUTS);
    Py_ssize_t n = PyTuple_Size(outputs);
    PyObject *all = PyTuple_New(n);
    PyObject *new_empty = all ? PyObject_GetAttr(c->first, self->takes.attribute.new_empty) : NULL;
    for (Py_ssize_t i = 0; new_empty && i < n; i++) {
        PyObject *takes = PyTuple_GetItem(outputs, i);
        PyObject *x = PyObject_Call(new_empty, PyTuple_GetItem(takes, 0), PyTuple_GetItem(takes, 1));
        PyObject *address = x ? PyObject_CallMethodObjArgs(x, self->takes.attribute.data_ptr, NULL) : NULL;
        if (address)
            c->words[c->n_words++].device = PyLong_AsUnsignedLongLongMask(address);
        Py_XDECREF(address);
        if (!address || PyErr_Occurred())
            Py_CLEAR(new_empty);
        if (x)
            PyTuple_SetItem(all, i, x);
    }
    if (!new_empty)
        Py_CLEAR(all);
    Py_XDECREF(new_empty);
    return all;
}

static void *address_in(PyObject *tuple, Py_ssize_t i)
{
    return PyLong_AsVoidPtr(PyTuple_GetItem(tuple, i));
}

/* So often; the time that it takes, in seconds. Raises what libtcc refuses, and returns -1. */
static double launch(const launcher *self, PyObject *plan, const tcc_call *c, void *stream, long times)
{
    PyObject *extents = PyTuple_GetItem(plan, PLAN_EXTENTS), *request = PyTuple_GetItem(plan, PLAN_REQUEST);
    const int64_t *dims = (const int64_t *)(void *)PyBytes_AsString(extents);
    size_t n_dims = (size_t)PyBytes_Size(extents) / sizeof *dims;
    const tcc_kernel *kernel = address_in(plan, PLAN_KERNEL);
    void *asked[4] = {NULL};
    for (Py_ssize_t i = 0; !kernel && i < 4; i++)
        asked[i] = address_in(request, i);
    if (PyErr_Occurred())
        return -1;
    tcc_status status = TCC_OK;
    struct timespec begin = {0}, end = {0};
    Py_BEGIN_ALLOW_THREADS /* a launch may wait for the GPU, and its diagnostics are heard by Python */
    if (times > 1)
        clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long i = 0; i < times && !status; i++) {
        if (asked[0])
            status = self->kernel_for(asked[0], asked[1], asked[2], asked[3], dims, n_dims, c->words, c->n_words,
                                      &kernel);
        if (!status)
            status = self->launch(kernel, dims, n_dims, c->words, c->n_words, stream);
    }
    if (times > 1)
        clock_gettime(CLOCK_MONOTONIC, &end);
    Py_END_ALLOW_THREADS
    if (!status)
        return (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
    PyObject *result = PyObject_CallFunction(self->check, "i", (int)status);
    if (result)
        PyErr_Format(PyExc_SystemError, "a launch returned %d, and nothing was raised", (int)status);
    Py_XDECREF(result);
    return -1;
}

/* What the caller gets: out=, else the output, or the tuple of several; None where there is none. */
static PyObject *result_of(PyObject *out, PyObject *new)
{
    Py_ssize_t n = new ? PyTuple_Size(new) : 0;
    PyObject *result = !new ? out : n == 1 ? PyTuple_GetItem(new, 0) : n ? new : Py_None;
    Py_INCREF(result);
    return result;
}

static PyObject *run(const launcher *self, PyObject *plan, tcc_call *c, PyObject *out, void *stream)
{
    PyObject *new = out == Py_None ? allocate(self, plan, c) : NULL;
    if (out == Py_None && !new)
        return NULL;
    PyObject *result = launch(self, plan, c, stream, 1) < 0 ? NULL : result_of(out, new);
    Py_XDECREF(new);
    return result;
}

static PyObject *unknown(tcc_found f)
{
    if (f == TCC_RAISED)
        return NULL;
    Py_INCREF(Py_NotImplemented);
    return Py_NotImplemented;
}

/* ---- the type -------------------------------------------------------------------------------- */

/* launcher(args, out, stream) -> the results, or NotImplemented */
static PyObject *call_launcher(PyObject *object, PyObject *given, PyObject *named)
{
    launcher *self = (launcher *)object;
    if (named || PyTuple_Size(given) != 3) {
        PyErr_SetString(PyExc_TypeError, "a Launcher takes args, out and stream");
        return NULL;
    }
    PyObject *args = PyTuple_GetItem(given, 0), *out = PyTuple_GetItem(given, 1), *stream = PyTuple_GetItem(given, 2);
    tcc_call c;
    PyObject *plan;
    void *on;
    tcc_found f = tcc_call_look(&self->takes, args, out, &c);
    if (f == TCC_KNOWN)
        f = find_plan(self, &c, &plan);
    if (f != TCC_KNOWN)
        return unknown(f);
    f = find_stream(plan, stream, &on);
    PyObject *result = f == TCC_KNOWN ? run(self, plan, &c, out, on) : unknown(f);
    Py_DECREF(plan);
    return result;
}

PyDoc_STRVAR(learn_doc, "learn(args, out, plan): calls like this one, which was checked, are launched by the plan");

static PyObject *learn(PyObject *object, PyObject *given)
{
    launcher *self = (launcher *)object;
    PyObject *args, *out, *plan;
    tcc_call c;
    if (!PyArg_ParseTuple(given, "OOO!:learn", &args, &out, &PyTuple_Type, &plan))
        return NULL;
    if (PyTuple_Size(plan) != N_PLAN) {
        PyErr_Format(PyExc_TypeError, "a plan has %d parts", N_PLAN);
        return NULL;
    }
    tcc_found f = tcc_call_look(&self->takes, args, out, &c);
    if (f == TCC_KNOWN) {
        if (PyDict_Size(self->plans) >= MAX_PLANS)
            PyDict_Clear(self->plans);
        PyObject *key = key_of(&c);
        f = key && !PyDict_SetItem(self->plans, key, plan) ? TCC_KNOWN : TCC_RAISED;
        Py_XDECREF(key);
    }
    if (f == TCC_RAISED)
        return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(seconds_doc, "seconds(args, out, stream, times): the time of so many launches by C alone, of a call\n"
                          "that is known and has out=; NotImplemented where it is not");

static PyObject *seconds(PyObject *object, PyObject *given)
{
    launcher *self = (launcher *)object;
    PyObject *args, *out, *stream, *plan;
    long times;
    tcc_call c;
    void *on;
    if (!PyArg_ParseTuple(given, "OOOl:seconds", &args, &out, &stream, &times))
        return NULL;
    tcc_found f = tcc_call_look(&self->takes, args, out, &c);
    if (f == TCC_KNOWN)
        f = find_plan(self, &c, &plan);
    if (f != TCC_KNOWN)
        return unknown(f);
    f = c.n_words == self->takes.n_args ? find_stream(plan, stream, &on) : TCC_UNKNOWN;
    double took = f == TCC_KNOWN ? launch(self, plan, &c, on, times) : 0;
    Py_DECREF(plan);
    return f != TCC_KNOWN ? unknown(f) : took < 0 ? NULL : PyFloat_FromDouble(took);
}

/* Launcher(limits, is_written, n_inputs, tensor, check, runtime, current_device, kernel_for, launch) */
static PyObject *new_launcher(PyTypeObject *type, PyObject *given, PyObject *named)
{
    const char *limits, *is_written;
    Py_ssize_t n_limits, n_args, n_inputs;
    PyObject *tensor, *check;
    unsigned long long runtime, current_device, kernel_for, launches;
    (void)named;
    if (!PyArg_ParseTuple(given, "y#y#nO!OKKKK:Launcher", &limits, &n_limits, &is_written, &n_args, &n_inputs,
                          &PyType_Type, &tensor, &check, &runtime, &current_device, &kernel_for, &launches))
        return NULL;
    if (n_args > TCC_CALL_MAX_ARGS || n_limits != n_args * (Py_ssize_t)sizeof(double) || n_inputs < 0 ||
        n_inputs > n_args) {
        PyErr_Format(PyExc_ValueError, "a Launcher has %d arguments at most, each with a limit", TCC_CALL_MAX_ARGS);
        return NULL;
    }
    launcher *self = (launcher *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->plans = PyDict_New();
    self->check = check;
    Py_INCREF(check);
    self->runtime = (const tcc_runtime *)(uintptr_t)runtime;
    self->current_device = (int (*)(const tcc_runtime *))(uintptr_t)current_device;
    self->kernel_for = (__typeof__(self->kernel_for))(uintptr_t)kernel_for;
    self->launch = (__typeof__(self->launch))(uintptr_t)launches;
    if (!tcc_parameters_init(&self->takes, (const double *)(void *)limits, is_written, (size_t)n_args, (size_t)n_inputs,
                             tensor) ||
        !self->plans)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void delete_launcher(PyObject *object)
{
    launcher *self = (launcher *)object;
    PyTypeObject *type = Py_TYPE(object);
    tcc_parameters_free(&self->takes);
    Py_XDECREF(self->plans);
    Py_XDECREF(self->check);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyMethodDef methods[] = {{"learn", learn, METH_VARARGS, learn_doc},
                                {"seconds", seconds, METH_VARARGS, seconds_doc},
                                {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {{Py_tp_new, new_launcher},
                              {Py_tp_dealloc, delete_launcher},
                              {Py_tp_call, call_launcher},
                              {Py_tp_methods, methods},
                              {0, NULL}};

static PyType_Spec spec = {
    .name = "tcc._launcher.Launcher", .basicsize = sizeof(launcher), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};

static int fill(PyObject *module)
{
    PyObject *type = PyType_FromSpec(&spec);
    if (!type || PyModule_AddObject(module, "Launcher", type)) {
        Py_XDECREF(type);
        return -1;
    }
    return 0;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, fill}, {0, NULL}};

static PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_launcher", .m_size = 0, .m_slots = module_slots};

PyMODINIT_FUNC PyInit__launcher(void);
PyMODINIT_FUNC PyInit__launcher(void)
{
    return PyModuleDef_Init(&module);
}

/* launcher: the quick path of the Python package, for calls whose arrays are tensors of torch on a GPU.
 *
 * A Launcher is a kernel's. It knows calls by what their tensors are: element types, shapes and places. The path that
 * is written in Python checks the first call of a kind, and teaches the Launcher what such calls launch: a plan. What
 * it does not know the Launcher leaves to Python, with NotImplemented, and has done nothing then.
 *
 * It is built for the limited API of Python 3.9, and calls libtcc through the addresses that it is given.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <tcc/tcc_jit.h>

enum { MAX_ARGS = 64, MAX_RANK = 16, MAX_KEY = MAX_ARGS * (3 + MAX_RANK), MAX_PLANS = 4096 };

/* What torch's tensors are asked. */
#define ATTRIBUTES(X)                                                                                                 \
    X(is_cuda) X(requires_grad) X(is_contiguous) X(get_device) X(data_ptr) X(shape) X(dtype) X(new_empty)

/* A plan, a tuple. */
enum {
    PLAN_ORDINAL,         /* the GPU's */
    PLAN_EXTENTS,         /* bytes: those of the kernel's dims */
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
    PyObject *plans;   /* by what their calls have in common, as bytes */
    PyObject *readers; /* a dict: of each type of arrays the function that reads them */
    PyObject *read_tensor;
    PyObject *check; /* raises what a call of libtcc returned */
    const tcc_runtime *runtime;
    int (*current_device)(const tcc_runtime *);
    __typeof__(&tcc_jit_kernel_for) kernel_for;
    __typeof__(&tcc_kernel_launch) launch;
    size_t n_inputs, n_args;
    bool is_scalar[MAX_ARGS];
#define FIELD(name) PyObject *name;
    struct {
        ATTRIBUTES(FIELD)
    } attribute; /* their names, interned */
#undef FIELD
} launcher;

/* The arguments of a call. */
typedef struct call {
    PyObject *first; /* tensor */
    tcc_arg words[MAX_ARGS];
    size_t n_words;
    int64_t key[MAX_KEY]; /* what the plan is known by */
    size_t n_key;
    bool requires_grad; /* one of the tensors does */
} call;

/* How a step of the quick path ends. */
typedef enum found {
    RAISED = -1, /* an exception, which the caller gets */
    UNKNOWN,     /* Python is to look */
    KNOWN
} found;

/* After something of Python's failed: where that is for the other path to meet again, and to tell in its own words. */
static found give_up(void)
{
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return RAISED;
    PyErr_Clear();
    return UNKNOWN;
}

/* ---- looking at arguments ------------------------------------------------------------------ */

static found to_bool(PyObject *result, bool *out)
{
    if (!result)
        return give_up();
    *out = result == Py_True;
    bool is_bool = *out || result == Py_False;
    Py_DECREF(result);
    return is_bool ? KNOWN : UNKNOWN;
}

static found to_number(PyObject *result, uint64_t *out)
{
    if (!result)
        return give_up();
    bool is_number = PyLong_Check(result);
    if (is_number)
        *out = PyLong_AsUnsignedLongLongMask(result);
    Py_DECREF(result);
    return is_number ? KNOWN : UNKNOWN;
}

static found read_shape(PyObject *shape, call *c)
{
    if (!shape)
        return give_up();
    Py_ssize_t rank = PyTuple_Check(shape) ? PyTuple_Size(shape) : -1;
    bool is_known = rank >= 0 && rank <= MAX_RANK;
    if (is_known)
        c->key[c->n_key++] = rank;
    for (Py_ssize_t i = 0; is_known && i < rank; i++) {
        PyObject *extent = PyTuple_GetItem(shape, i);
        is_known = PyLong_Check(extent); /* torch may have symbols there, while it traces */
        c->key[c->n_key++] = is_known ? (int64_t)PyLong_AsUnsignedLongLongMask(extent) : 0;
    }
    Py_DECREF(shape);
    return is_known ? KNOWN : UNKNOWN;
}

/* What the reader of the other path does, of a tensor that it does not refuse and that lies on a GPU. */
static found read_tensor(const launcher *self, PyObject *x, call *c)
{
    PyObject *reader = PyDict_GetItemWithError(self->readers, (PyObject *)Py_TYPE(x));
    if (reader != self->read_tensor)
        return PyErr_Occurred() ? give_up() : UNKNOWN;
    bool is_cuda, is_contiguous, requires_grad;
    uint64_t ordinal, address;
    found f = to_bool(PyObject_GetAttr(x, self->attribute.is_cuda), &is_cuda);
    if (f != KNOWN || !is_cuda)
        return f == RAISED ? RAISED : UNKNOWN;
    f = to_bool(PyObject_CallMethodObjArgs(x, self->attribute.is_contiguous, NULL), &is_contiguous);
    if (f != KNOWN || !is_contiguous)
        return f == RAISED ? RAISED : UNKNOWN;
    f = to_bool(PyObject_GetAttr(x, self->attribute.requires_grad), &requires_grad);
    if (f == KNOWN)
        f = to_number(PyObject_CallMethodObjArgs(x, self->attribute.get_device, NULL), &ordinal);
    if (f == KNOWN)
        f = to_number(PyObject_CallMethodObjArgs(x, self->attribute.data_ptr, NULL), &address);
    if (f != KNOWN)
        return f;
    PyObject *dtype = PyObject_GetAttr(x, self->attribute.dtype);
    if (!dtype)
        return give_up();
    c->key[c->n_key++] = (int64_t)(intptr_t)dtype; /* which the plan keeps */
    c->key[c->n_key++] = (int64_t)ordinal;
    Py_DECREF(dtype);
    if (!c->first)
        c->first = x;
    c->requires_grad |= requires_grad;
    c->words[c->n_words++].device = address;
    return read_shape(PyObject_GetAttr(x, self->attribute.shape), c);
}

static found read_argument(const launcher *self, PyObject *x, call *c)
{
    if (!self->is_scalar[c->n_words])
        return read_tensor(self, x, c);
    if (!PyFloat_CheckExact(x) && !PyLong_CheckExact(x))
        return UNKNOWN;
    double number = PyFloat_AsDouble(x);
    if (number == -1 && PyErr_Occurred())
        return give_up();
    c->words[c->n_words++].number = number;
    return KNOWN;
}

/* Looks at all arguments. */
static found look(const launcher *self, PyObject *args, PyObject *out, call *c)
{
    c->first = NULL;
    c->n_words = c->n_key = 0;
    c->requires_grad = false;
    if (!PyTuple_Check(args) || PyTuple_Size(args) != (Py_ssize_t)self->n_inputs)
        return UNKNOWN;
    found f = KNOWN;
    for (size_t i = 0; f == KNOWN && i < self->n_inputs; i++)
        f = read_argument(self, PyTuple_GetItem(args, (Py_ssize_t)i), c);
    if (out == Py_None || f != KNOWN)
        return f;
    bool is_tuple = PyTuple_Check(out);
    if ((is_tuple ? PyTuple_Size(out) : 1) != (Py_ssize_t)(self->n_args - self->n_inputs))
        return UNKNOWN;
    for (size_t i = self->n_inputs; f == KNOWN && i < self->n_args; i++)
        f = read_argument(self, is_tuple ? PyTuple_GetItem(out, (Py_ssize_t)(i - self->n_inputs)) : out, c);
    return f;
}

static PyObject *key_of(const call *c)
{
    return PyBytes_FromStringAndSize((const char *)c->key, (Py_ssize_t)(c->n_key * sizeof *c->key));
}

/* The plan of such calls, where it may be launched as things are: a new reference. */
static found find_plan(const launcher *self, const call *c, PyObject **out)
{
    PyObject *key = key_of(c);
    PyObject *plan = key ? PyDict_GetItemWithError(self->plans, key) : NULL;
    Py_XDECREF(key);
    if (!plan)
        return PyErr_Occurred() ? RAISED : UNKNOWN;
    if (self->current_device(self->runtime) != PyLong_AsLong(PyTuple_GetItem(plan, PLAN_ORDINAL)))
        return UNKNOWN;
    Py_INCREF(plan);
    bool is_grad_enabled = false;
    found f = KNOWN;
    if (c->requires_grad)
        f = to_bool(PyObject_CallObject(PyTuple_GetItem(plan, PLAN_IS_GRAD_ENABLED), NULL), &is_grad_enabled);
    if (f == KNOWN && !is_grad_enabled)
        *out = plan;
    else
        Py_DECREF(plan);
    return f == KNOWN && is_grad_enabled ? UNKNOWN : f;
}

static found find_stream(PyObject *plan, PyObject *given, void **out)
{
    uint64_t stream = 0;
    found f;
    if (given == Py_None) {
        f = to_number(PyObject_CallFunctionObjArgs(PyTuple_GetItem(plan, PLAN_STREAM_OF),
                                                   PyTuple_GetItem(plan, PLAN_ORDINAL), NULL), &stream);
    } else {
        Py_INCREF(given);
        f = to_number(given, &stream);
    }
    *out = (void *)(uintptr_t)stream;
    return f;
}

/* ---- launching ------------------------------------------------------------------------------- */

/* New tensors for the outputs: a tuple. NULL: an exception is raised. */
static PyObject *allocate(const launcher *self, PyObject *plan, call *c)
{
    PyObject *outputs = PyTuple_GetItem(plan, PLAN_OUTPUTS);
    Py_ssize_t n = PyTuple_Size(outputs);
    PyObject *all = PyTuple_New(n);
    PyObject *new_empty = all ? PyObject_GetAttr(c->first, self->attribute.new_empty) : NULL;
    for (Py_ssize_t i = 0; new_empty && i < n; i++) {
        PyObject *takes = PyTuple_GetItem(outputs, i);
        PyObject *x = PyObject_Call(new_empty, PyTuple_GetItem(takes, 0), PyTuple_GetItem(takes, 1));
        PyObject *address = x ? PyObject_CallMethodObjArgs(x, self->attribute.data_ptr, NULL) : NULL;
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
static double launch(const launcher *self, PyObject *plan, const call *c, void *stream, long times)
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

static PyObject *run(const launcher *self, PyObject *plan, call *c, PyObject *out, void *stream)
{
    PyObject *new = out == Py_None ? allocate(self, plan, c) : NULL;
    if (out == Py_None && !new)
        return NULL;
    PyObject *result = launch(self, plan, c, stream, 1) < 0 ? NULL : result_of(out, new);
    Py_XDECREF(new);
    return result;
}

static PyObject *unknown(found f)
{
    if (f == RAISED)
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
    call c;
    PyObject *plan;
    void *on;
    found f = look(self, args, out, &c);
    if (f == KNOWN)
        f = find_plan(self, &c, &plan);
    if (f != KNOWN)
        return unknown(f);
    f = find_stream(plan, stream, &on);
    PyObject *result = f == KNOWN ? run(self, plan, &c, out, on) : unknown(f);
    Py_DECREF(plan);
    return result;
}

PyDoc_STRVAR(learn_doc, "learn(args, out, plan): calls like this one, which was checked, are launched by the plan");

static PyObject *learn(PyObject *object, PyObject *given)
{
    launcher *self = (launcher *)object;
    PyObject *args, *out, *plan;
    call c;
    if (!PyArg_ParseTuple(given, "OOO!:learn", &args, &out, &PyTuple_Type, &plan))
        return NULL;
    if (PyTuple_Size(plan) != N_PLAN) {
        PyErr_Format(PyExc_TypeError, "a plan has %d parts", N_PLAN);
        return NULL;
    }
    found f = look(self, args, out, &c);
    if (f == KNOWN) {
        if (PyDict_Size(self->plans) >= MAX_PLANS)
            PyDict_Clear(self->plans);
        PyObject *key = key_of(&c);
        f = key && !PyDict_SetItem(self->plans, key, plan) ? KNOWN : RAISED;
        Py_XDECREF(key);
    }
    if (f == RAISED)
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
    call c;
    void *on;
    if (!PyArg_ParseTuple(given, "OOOl:seconds", &args, &out, &stream, &times))
        return NULL;
    found f = look(self, args, out, &c);
    if (f == KNOWN)
        f = find_plan(self, &c, &plan);
    if (f != KNOWN)
        return unknown(f);
    f = c.n_words == self->n_args ? find_stream(plan, stream, &on) : UNKNOWN;
    double took = f == KNOWN ? launch(self, plan, &c, on, times) : 0;
    Py_DECREF(plan);
    return f != KNOWN ? unknown(f) : took < 0 ? NULL : PyFloat_FromDouble(took);
}

/* Launcher(is_scalar, n_inputs, readers, read_tensor, check, runtime, current_device, kernel_for, launch) */
static PyObject *new_launcher(PyTypeObject *type, PyObject *given, PyObject *named)
{
    const char *is_scalar;
    Py_ssize_t n_args, n_inputs;
    PyObject *readers, *reader, *check;
    unsigned long long runtime, current_device, kernel_for, launches;
    (void)named;
    if (!PyArg_ParseTuple(given, "y#nO!OOKKKK:Launcher", &is_scalar, &n_args, &n_inputs, &PyDict_Type, &readers,
                          &reader, &check, &runtime, &current_device, &kernel_for, &launches))
        return NULL;
    if (n_args > MAX_ARGS || n_inputs < 0 || n_inputs > n_args) {
        PyErr_Format(PyExc_ValueError, "a Launcher has %d arguments at most", MAX_ARGS);
        return NULL;
    }
    launcher *self = (launcher *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->plans = PyDict_New();
    self->readers = readers;
    self->read_tensor = reader;
    self->check = check;
    Py_INCREF(readers);
    Py_INCREF(reader);
    Py_INCREF(check);
    self->runtime = (const tcc_runtime *)(uintptr_t)runtime;
    self->current_device = (int (*)(const tcc_runtime *))(uintptr_t)current_device;
    self->kernel_for = (__typeof__(self->kernel_for))(uintptr_t)kernel_for;
    self->launch = (__typeof__(self->launch))(uintptr_t)launches;
    self->n_inputs = (size_t)n_inputs;
    self->n_args = (size_t)n_args;
    memcpy(self->is_scalar, is_scalar, self->n_args);
    bool has_names = true;
#define INTERN(name) has_names &= (self->attribute.name = PyUnicode_InternFromString(#name)) != NULL;
    ATTRIBUTES(INTERN)
#undef INTERN
    if (!self->plans || !has_names)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void delete_launcher(PyObject *object)
{
    launcher *self = (launcher *)object;
    PyTypeObject *type = Py_TYPE(object);
    Py_XDECREF(self->plans);
    Py_XDECREF(self->readers);
    Py_XDECREF(self->read_tensor);
    Py_XDECREF(self->check);
#define RELEASE(name) Py_XDECREF(self->attribute.name);
    ATTRIBUTES(RELEASE)
#undef RELEASE
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

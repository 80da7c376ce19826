/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "python/call.h"

#include <math.h>
#include <string.h>

/* ---- DLPack -------------------------------------------------------------------------------------
 * Since torch 2.10 a type says where C finds out what its objects are, in some 10 ns instead of some 500:
 * __dlpack_c_exchange_api__, of DLPack 1.3. These are its structs. */

enum { DL_MAJOR = 1, DL_CUDA = 2, DL_ROCM = 10 };

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id, rank;
    uint8_t type, bits;
    uint16_t lanes;
    int64_t *shape, *strides; /* in elements; NULL: row by row */
    uint64_t byte_offset;
} dl_tensor;

struct tcc_exchange {
    uint32_t major, minor;
    const struct tcc_exchange *previous;
    void *allocate, *managed_from_object, *managed_to_object;
    int (*from_object)(void *object, dl_tensor *out); /* borrows; an error is raised; may be NULL */
    void *current_stream;
};

static const struct tcc_exchange *find_exchange(PyTypeObject *type)
{
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const struct tcc_exchange *api = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    PyErr_Clear();
    Py_XDECREF(capsule); /* the type has another one */
    return api && api->major == DL_MAJOR && api->from_object ? api : NULL;
}

/* ---- what a kernel takes ---------------------------------------------------------------------- */

bool tcc_parameters_init(tcc_parameters *p, const double *limits, const char *is_written, size_t n_args,
                         size_t n_inputs, PyObject *tensor)
{
    p->n_inputs = n_inputs;
    p->n_args = n_args;
    memcpy(p->limits, limits, n_args * sizeof *limits);
    memcpy(p->is_written, is_written, n_args);
    Py_INCREF(tensor);
    p->tensor = (PyTypeObject *)tensor;
    p->exchange = find_exchange(p->tensor);
    bool has_all = true;
#define INTERN(name) has_all &= (p->attribute.name = PyUnicode_InternFromString(#name)) != NULL;
    TCC_TENSOR_ATTRIBUTES(INTERN)
#undef INTERN
    return has_all;
}

void tcc_parameters_free(tcc_parameters *p)
{
    Py_XDECREF((PyObject *)p->tensor);
#define RELEASE(name) Py_XDECREF(p->attribute.name);
    TCC_TENSOR_ATTRIBUTES(RELEASE)
#undef RELEASE
}

/* ---- what Python gives ------------------------------------------------------------------------ */

/* After something of Python's failed: where that is for the other path to meet again, and to tell in its own words. */
static tcc_found give_up(void)
{
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return TCC_RAISED;
    PyErr_Clear();
    return TCC_UNKNOWN;
}

tcc_found tcc_take_bool(PyObject *result, bool *out)
{
    if (!result)
        return give_up();
    *out = result == Py_True;
    bool is_bool = *out || result == Py_False;
    Py_DECREF(result);
    return is_bool ? TCC_KNOWN : TCC_UNKNOWN;
}

tcc_found tcc_take_number(PyObject *result, uint64_t *out)
{
    if (!result)
        return give_up();
    bool is_number = PyLong_Check(result);
    if (is_number)
        *out = PyLong_AsUnsignedLongLongMask(result);
    Py_DECREF(result);
    return is_number ? TCC_KNOWN : TCC_UNKNOWN;
}

/* ---- tensors ------------------------------------------------------------------------------------ */

static bool is_contiguous(const dl_tensor *t)
{
    int64_t expected = 1;
    bool is_row_major = true;
    for (int32_t i = t->rank; t->strides && i-- > 0;) {
        if (!t->shape[i])
            return true;
        is_row_major &= t->shape[i] == 1 || t->strides[i] == expected;
        expected *= t->shape[i];
    }
    return is_row_major;
}

static tcc_found read_exchanged(const tcc_parameters *p, PyObject *x, tcc_call *c)
{
    dl_tensor t;
    if (p->exchange->from_object(x, &t))
        return give_up();
    bool is_on_gpu = t.device_type == DL_CUDA || t.device_type == DL_ROCM;
    if (!is_on_gpu || t.rank < 0 || t.rank > TCC_CALL_MAX_RANK || !is_contiguous(&t))
        return TCC_UNKNOWN;
    uint64_t address = (uint64_t)(uintptr_t)t.data + t.byte_offset;
    if (!address)
        return TCC_UNKNOWN;
    c->words[c->n_words++].device = address;
    c->key[c->n_key++] = t.type | t.bits << 8 | t.lanes << 16;
    c->key[c->n_key++] = t.device_id;
    c->key[c->n_key++] = t.rank;
    memcpy(c->key + c->n_key, t.shape, (size_t)t.rank * sizeof *t.shape);
    c->n_key += (size_t)t.rank;
    return TCC_KNOWN;
}

static tcc_found read_shape(PyObject *shape, tcc_call *c)
{
    if (!shape)
        return give_up();
    Py_ssize_t rank = PyTuple_Check(shape) ? PyTuple_Size(shape) : -1;
    bool is_known = rank >= 0 && rank <= TCC_CALL_MAX_RANK;
    if (is_known)
        c->key[c->n_key++] = rank;
    for (Py_ssize_t i = 0; is_known && i < rank; i++) {
        PyObject *extent = PyTuple_GetItem(shape, i);
        is_known = PyLong_Check(extent); /* torch may have symbols there, while it traces */
        c->key[c->n_key++] = is_known ? (int64_t)PyLong_AsUnsignedLongLongMask(extent) : 0;
    }
    Py_DECREF(shape);
    return is_known ? TCC_KNOWN : TCC_UNKNOWN;
}

static tcc_found read_attributes(const tcc_parameters *p, PyObject *x, tcc_call *c)
{
    bool is_cuda = false, is_row_major = false;
    uint64_t ordinal, address;
    tcc_found f = tcc_take_bool(PyObject_GetAttr(x, p->attribute.is_cuda), &is_cuda);
    if (is_cuda)
        f = tcc_take_bool(PyObject_CallMethodObjArgs(x, p->attribute.is_contiguous, NULL), &is_row_major);
    if (!is_row_major)
        return f == TCC_RAISED ? TCC_RAISED : TCC_UNKNOWN;
    f = tcc_take_number(PyObject_CallMethodObjArgs(x, p->attribute.get_device, NULL), &ordinal);
    if (f == TCC_KNOWN)
        f = tcc_take_number(PyObject_CallMethodObjArgs(x, p->attribute.data_ptr, NULL), &address);
    if (f != TCC_KNOWN || !address)
        return f == TCC_RAISED ? TCC_RAISED : TCC_UNKNOWN;
    PyObject *dtype = PyObject_GetAttr(x, p->attribute.dtype);
    if (!dtype)
        return give_up();
    c->words[c->n_words++].device = address;
    c->key[c->n_key++] = (int64_t)(intptr_t)dtype; /* which the plan keeps */
    c->key[c->n_key++] = (int64_t)ordinal;
    Py_DECREF(dtype);
    return read_shape(PyObject_GetAttr(x, p->attribute.shape), c);
}

/* What the reader of the other path does, of a tensor that it does not refuse and that lies on a GPU. */
static tcc_found read_tensor(const tcc_parameters *p, PyObject *x, tcc_call *c)
{
    if (Py_TYPE(x) != p->tensor && !PyType_IsSubtype(Py_TYPE(x), p->tensor))
        return TCC_UNKNOWN;
    bool requires_grad = false, is_negated = false;
    tcc_found f = tcc_take_bool(PyObject_GetAttr(x, p->attribute.requires_grad), &requires_grad);
    c->requires_grad |= requires_grad;
    if (f == TCC_KNOWN)
        f = tcc_take_bool(PyObject_CallMethodObjArgs(x, p->attribute.is_neg, NULL), &is_negated);
    if (f == TCC_KNOWN && is_negated) /* lazily: its memory has the opposite numbers */
        f = TCC_UNKNOWN;
    if (!c->first)
        c->first = x;
    return f != TCC_KNOWN ? f : p->exchange ? read_exchanged(p, x, c) : read_attributes(p, x, c);
}

static bool holds(double limit, double number)
{
    if (limit == TCC_CALL_WHOLE)
        return number >= INT32_MIN && number <= INT32_MAX && number == (int32_t)number;
    return isinf(number) || !(fabs(number) >= limit);
}

static tcc_found read_argument(const tcc_parameters *p, PyObject *x, tcc_call *c)
{
    double limit = p->limits[c->n_words];
    if (limit == TCC_CALL_TENSOR)
        return read_tensor(p, x, c);
    if (!PyFloat_CheckExact(x) && !PyLong_CheckExact(x))
        return TCC_UNKNOWN;
    double number = PyFloat_AsDouble(x);
    if (number == -1 && PyErr_Occurred())
        return give_up();
    c->words[c->n_words++].number = number;
    return holds(limit, number) ? TCC_KNOWN : TCC_UNKNOWN;
}

tcc_found tcc_call_look(const tcc_parameters *p, PyObject *args, PyObject *out, tcc_call *c)
{
    c->first = NULL;
    c->n_words = c->n_key = 0;
    c->requires_grad = false;
    if (!PyTuple_Check(args) || PyTuple_Size(args) != (Py_ssize_t)p->n_inputs)
        return TCC_UNKNOWN;
    tcc_found f = TCC_KNOWN;
    for (size_t i = 0; f == TCC_KNOWN && i < p->n_inputs; i++)
        f = read_argument(p, PyTuple_GetItem(args, (Py_ssize_t)i), c);
    if (out == Py_None || f != TCC_KNOWN)
        return f;
    bool is_tuple = PyTuple_Check(out);
    if ((is_tuple ? PyTuple_Size(out) : 1) != (Py_ssize_t)(p->n_args - p->n_inputs))
        return TCC_UNKNOWN;
    for (size_t i = p->n_inputs; f == TCC_KNOWN && i < p->n_args; i++)
        f = read_argument(p, is_tuple ? PyTuple_GetItem(out, (Py_ssize_t)(i - p->n_inputs)) : out, c);
    return f;
}

bool tcc_call_overlaps(const tcc_parameters *p, const tcc_call *c, const int64_t *bytes)
{
    for (size_t i = 0; i < c->n_words; i++)
        for (size_t j = 0; p->is_written[i] && j < c->n_words; j++) {
            uint64_t a = c->words[i].device, b = c->words[j].device;
            if (i != j && bytes[i] && bytes[j] && a < b + (uint64_t)bytes[j] && b < a + (uint64_t)bytes[i])
                return true;
        }
    return false;
}

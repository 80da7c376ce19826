/* call: the arguments of a call from Python, looked at where its arrays are tensors of torch on a GPU.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_PYTHON_CALL_H
#define TCC_PYTHON_CALL_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <tcc/tcc_jit.h>

enum { TCC_CALL_MAX_ARGS = 64, TCC_CALL_MAX_RANK = 16, TCC_CALL_MAX_KEY = TCC_CALL_MAX_ARGS * (3 + TCC_CALL_MAX_RANK) };

/* What torch's tensors are asked. */
#define TCC_TENSOR_ATTRIBUTES(X)                                                                                      \
    X(is_cuda) X(requires_grad) X(is_neg) X(is_contiguous) X(get_device) X(data_ptr) X(shape) X(dtype) X(new_empty)

/* The numbers that an argument can be, as python/tcc/_elements.py says it: those of a lower magnitude than its limit,
 * or that are infinite. */
enum { TCC_CALL_TENSOR = 0, TCC_CALL_WHOLE = -1 /* an i32 */ };

/* What a kernel takes: parameters, then outputs. */
typedef struct tcc_parameters {
    size_t n_inputs, n_args;
    double limits[TCC_CALL_MAX_ARGS]; /* TCC_CALL_TENSOR, TCC_CALL_WHOLE, or that of a float */
    bool is_written[TCC_CALL_MAX_ARGS];
    PyTypeObject *tensor; /* torch.Tensor */
    const struct tcc_exchange *exchange; /* torch's tensors without their attributes; NULL: it is too old for that */
#define TCC_FIELD(name) PyObject *name;
    struct {
        TCC_TENSOR_ATTRIBUTES(TCC_FIELD)
    } attribute; /* their names, interned */
#undef TCC_FIELD
} tcc_parameters;

/* The arguments of a call. References are borrowed from it. */
typedef struct tcc_call {
    PyObject *first; /* tensor */
    tcc_arg words[TCC_CALL_MAX_ARGS];
    size_t n_words;
    int64_t key[TCC_CALL_MAX_KEY]; /* element types, places and shapes */
    size_t n_key;
    bool requires_grad; /* one of the tensors does */
} tcc_call;

/* How a step of the quick path ends. */
typedef enum tcc_found {
    TCC_RAISED = -1, /* an exception, which the caller gets */
    TCC_UNKNOWN,     /* Python is to look */
    TCC_KNOWN
} tcc_found;

/* False: an exception is raised. What was made so far is for tcc_parameters_free in any case. */
bool tcc_parameters_init(tcc_parameters *p, const double *limits, const char *is_written, size_t n_args,
                         size_t n_inputs, PyObject *tensor);
void tcc_parameters_free(tcc_parameters *p);

/* Looks at all arguments; out is None where outputs are to be made. */
tcc_found tcc_call_look(const tcc_parameters *p, PyObject *args, PyObject *out, tcc_call *c);

/* Whether an argument that is written shares memory with another. bytes: each tensor's size, 0 of scalars. */
bool tcc_call_overlaps(const tcc_parameters *p, const tcc_call *c, const int64_t *bytes);

/* What a call of Python's gave, whose reference is taken; NULL where it failed. */
tcc_found tcc_take_bool(PyObject *result, bool *out);
tcc_found tcc_take_number(PyObject *result, uint64_t *out);

#endif

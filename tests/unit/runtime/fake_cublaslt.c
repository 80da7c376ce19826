/* fake_cublaslt: a libcublasLt.so.13 that computes products on the CPU, by the library's own
 * definition: column-major matrices, transposes, strided batches, bias and relu over D's rows. Its
 * heuristics return three picks, of which the second does not run.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/tcc-run/element.h"

enum { N_ATTRIBUTES = 40, N_PICKS = 3, BROKEN_PICK = 1 };
enum { TRANSPOSE_X = 3, TRANSPOSE_Y = 4, EPILOGUE = 7, BIAS = 8 }; /* of a product */
enum { BATCH_COUNT = 5, BATCH_STRIDE = 6 };                        /* of a layout */

/* A handle, a description of a product, a layout or a preference. */
typedef struct object {
    int type; /* of a layout's elements */
    uint64_t rows, cols;
    int64_t ld;
    uint64_t attributes[N_ATTRIBUTES];
} object;

typedef struct pick {
    uint64_t number, unused[7];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} pick;

int cublasLtCreate(object **out);
int cublasLtDestroy(object *o);
int cublasLtMatmulDescCreate(object **out, int compute, int scale_type);
int cublasLtMatmulDescDestroy(object *o);
int cublasLtMatmulDescSetAttribute(object *o, int attribute, const void *value, size_t size);
int cublasLtMatrixLayoutCreate(object **out, int type, uint64_t rows, uint64_t cols, int64_t ld);
int cublasLtMatrixLayoutDestroy(object *o);
int cublasLtMatrixLayoutSetAttribute(object *o, int attribute, const void *value, size_t size);
int cublasLtMatmulPreferenceCreate(object **out);
int cublasLtMatmulPreferenceDestroy(object *o);
int cublasLtMatmulPreferenceSetAttribute(object *o, int attribute, const void *value, size_t size);
int cublasLtMatmulAlgoGetHeuristic(object *handle, object *desc, object *x, object *y, object *c,
                                   object *d, object *preference, int n_wanted, pick *picks,
                                   int *n_found);
int cublasLtMatmul(object *handle, object *desc, const float *alpha, const void *x,
                   object *x_layout, const void *y, object *y_layout, const float *beta,
                   const void *c, object *c_layout, void *d, object *d_layout,
                   const pick *algorithm, void *workspace, size_t workspace_size, void *stream);

static int create(object **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? 0 : 3;
}

static int destroy(object *o)
{
    free(o);
    return 0;
}

static int set(object *o, int attribute, const void *value, size_t size)
{
    if (attribute >= N_ATTRIBUTES || size > sizeof *o->attributes)
        return 7;
    memcpy(&o->attributes[attribute], value, size);
    return 0;
}

int cublasLtCreate(object **out)
{
    return create(out);
}

int cublasLtDestroy(object *o)
{
    return destroy(o);
}

int cublasLtMatmulDescCreate(object **out, int compute, int scale_type)
{
    return compute == 68 && scale_type == 0 ? create(out) : 7;
}

int cublasLtMatmulDescDestroy(object *o)
{
    return destroy(o);
}

int cublasLtMatmulDescSetAttribute(object *o, int attribute, const void *value, size_t size)
{
    return set(o, attribute, value, size);
}

int cublasLtMatrixLayoutCreate(object **out, int type, uint64_t rows, uint64_t cols, int64_t ld)
{
    if (ld < (int64_t)rows || create(out))
        return 7;
    (*out)->type = type;
    (*out)->rows = rows;
    (*out)->cols = cols;
    (*out)->ld = ld;
    (*out)->attributes[BATCH_COUNT] = 1;
    return 0;
}

int cublasLtMatrixLayoutDestroy(object *o)
{
    return destroy(o);
}

int cublasLtMatrixLayoutSetAttribute(object *o, int attribute, const void *value, size_t size)
{
    return set(o, attribute, value, size);
}

int cublasLtMatmulPreferenceCreate(object **out)
{
    return create(out);
}

int cublasLtMatmulPreferenceDestroy(object *o)
{
    return destroy(o);
}

int cublasLtMatmulPreferenceSetAttribute(object *o, int attribute, const void *value, size_t size)
{
    return set(o, attribute, value, size);
}

int cublasLtMatmulAlgoGetHeuristic(object *handle, object *desc, object *x, object *y, object *c,
                                   object *d, object *preference, int n_wanted, pick *picks,
                                   int *n_found)
{
    (void)handle, (void)desc, (void)x, (void)y, (void)c, (void)d, (void)preference;
    *n_found = n_wanted < N_PICKS ? n_wanted : N_PICKS;
    for (int i = 0; i < *n_found; i++)
        picks[i] = (pick){.number = (uint64_t)i};
    return 0;
}

static const elem_type *type_of(const object *layout)
{
    return elem_type_find(layout->type == 0 ? "f32" : layout->type == 2 ? "f16" : "bf16");
}

static size_t offset(const object *layout, uint64_t batch, uint64_t row, uint64_t col)
{
    return batch * layout->attributes[BATCH_STRIDE] + col * (uint64_t)layout->ld + row;
}

static double get(const object *layout, const void *data, bool transposed, uint64_t batch,
                  uint64_t i, uint64_t j)
{
    return elem_get(type_of(layout), data,
                    transposed ? offset(layout, batch, j, i) : offset(layout, batch, i, j));
}

int cublasLtMatmul(object *handle, object *desc, const float *alpha, const void *x,
                   object *x_layout, const void *y, object *y_layout, const float *beta,
                   const void *c, object *c_layout, void *d, object *d_layout,
                   const pick *algorithm, void *workspace, size_t workspace_size, void *stream)
{
    (void)handle, (void)c, (void)c_layout, (void)workspace, (void)workspace_size, (void)stream;
    if (*alpha != 1 || *beta != 0 || algorithm->number == BROKEN_PICK)
        return 7;
    bool x_transposed = desc->attributes[TRANSPOSE_X], y_transposed = desc->attributes[TRANSPOSE_Y];
    bool relu_bias = desc->attributes[EPILOGUE] == 6;
    const void *bias = (const void *)(uintptr_t)desc->attributes[BIAS];
    uint64_t sum = x_transposed ? x_layout->rows : x_layout->cols;
    for (uint64_t b = 0; b < d_layout->attributes[BATCH_COUNT]; b++)
        for (uint64_t i = 0; i < d_layout->rows; i++)
            for (uint64_t j = 0; j < d_layout->cols; j++) {
                double acc = relu_bias ? elem_get(type_of(d_layout), bias, i) : 0;
                for (uint64_t l = 0; l < sum; l++)
                    acc += get(x_layout, x, x_transposed, b, i, l) *
                           get(y_layout, y, y_transposed, b, l, j);
                elem_set(type_of(d_layout), d, offset(d_layout, b, i, j),
                         relu_bias && acc < 0 ? 0 : acc);
            }
    return 0;
}

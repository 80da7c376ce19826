/* Types and numbers are those of the cuBLAS documentation; its headers are not needed.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/cublaslt.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct cublasLtMatmulDescOpaque *cublasLtMatmulDesc_t;
typedef struct cublasLtMatrixLayoutOpaque *cublasLtMatrixLayout_t;
typedef struct cublasLtMatmulPreferenceOpaque *cublasLtMatmulPreference_t;

typedef struct cublasLtMatmulAlgo_t {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct cublasLtMatmulHeuristicResult_t {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    int state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
enum { CUBLAS_COMPUTE_32F = 68, CUBLAS_COMPUTE_64F = 70 };
enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum { CUBLASLT_EPILOGUE_RELU_BIAS = 6 };
enum {
    CUBLASLT_MATMUL_DESC_TRANSA = 3,
    CUBLASLT_MATMUL_DESC_TRANSB = 4,
    CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
    CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
};
enum { CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6 };
enum { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1 };

/* Every one returns a cublasStatus_t: 0 is success. */
#define ENTRY_POINTS(X)                                                                            \
    X(cublasLtCreate, (cublasLtHandle_t * handle))                                                 \
    X(cublasLtDestroy, (cublasLtHandle_t handle))                                                  \
    X(cublasLtMatmulDescCreate, (cublasLtMatmulDesc_t * desc, int compute, int scale_type))        \
    X(cublasLtMatmulDescDestroy, (cublasLtMatmulDesc_t desc))                                      \
    X(cublasLtMatmulDescSetAttribute,                                                              \
      (cublasLtMatmulDesc_t desc, int attribute, const void *value, size_t size))                  \
    X(cublasLtMatrixLayoutCreate,                                                                  \
      (cublasLtMatrixLayout_t * layout, int type, uint64_t rows, uint64_t cols, int64_t ld))       \
    X(cublasLtMatrixLayoutDestroy, (cublasLtMatrixLayout_t layout))                                \
    X(cublasLtMatrixLayoutSetAttribute,                                                            \
      (cublasLtMatrixLayout_t layout, int attribute, const void *value, size_t size))              \
    X(cublasLtMatmulPreferenceCreate, (cublasLtMatmulPreference_t * preference))                   \
    X(cublasLtMatmulPreferenceDestroy, (cublasLtMatmulPreference_t preference))                    \
    X(cublasLtMatmulPreferenceSetAttribute,                                                        \
      (cublasLtMatmulPreference_t preference, int attribute, const void *value, size_t size))      \
    X(cublasLtMatmulAlgoGetHeuristic,                                                              \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,               \
       cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,               \
       cublasLtMatmulPreference_t preference, int n_wanted,                                        \
       cublasLtMatmulHeuristicResult_t *results, int *n_found))                                    \
    X(cublasLtMatmul,                                                                              \
      (cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,       \
       cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,            \
       const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,                  \
       cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,         \
       size_t workspace_size, void *stream))

struct cublaslt {
    void *library;
    cublasLtHandle_t handle;
#define DECLARE(name, params) int(*name) params;
    ENTRY_POINTS(DECLARE)
#undef DECLARE
};

struct cublaslt_plan {
    const cublaslt *lt;
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t x, y, d;
    cublasLtMatmulPreference_t preference;
    cublasLtMatmulHeuristicResult_t results[CUBLASLT_MAX_ALGORITHMS];
    int n_results;
    bool relu_bias, is_wide;
};

static const struct {
    const char *symbol;
    size_t offset; /* of the function pointer in cublaslt */
} entry_points[] = {
#define ROW(name, params) {#name, offsetof(cublaslt, name)},
    ENTRY_POINTS(ROW)
#undef ROW
};

static const struct {
    const char *name;
    int type;
} types[] = {{"f16", CUDA_R_16F}, {"bf16", CUDA_R_16BF}, {"f32", CUDA_R_32F}, {"f64", CUDA_R_64F}};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- library ---------------------------------------------------------------------------- */

/* The loader's path first, then where toolkits are. */
static void *open_library(void)
{
    static const char *const names[] = {"libcublasLt.so.13", "libcublasLt.so.12"};
    const char *home = getenv("CUDA_HOME");
    const char *const folders[] = {NULL, home, "/usr/local/cuda"};
    for (size_t i = 0; i < COUNT(folders); i++)
        for (size_t j = 0; j < COUNT(names); j++) {
            char path[4096];
            if (i && !folders[i])
                continue;
            snprintf(path, sizeof path, "%s%s%s", i ? folders[i] : "", i ? "/lib64/" : "",
                     names[j]);
            void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            if (library)
                return library;
        }
    return NULL;
}

cublaslt *cublaslt_open(char *why, size_t why_size)
{
    cublaslt *lt = calloc(1, sizeof *lt);
    if (!lt || !(lt->library = open_library())) {
        snprintf(why, why_size, "libcublasLt.so.13 or .12 is not found; set LD_LIBRARY_PATH or "
                 "CUDA_HOME");
        free(lt);
        return NULL;
    }
    for (size_t i = 0; i < COUNT(entry_points); i++) {
        void *found = dlsym(lt->library, entry_points[i].symbol);
        if (!found) {
            snprintf(why, why_size, "libcublasLt lacks %s", entry_points[i].symbol);
            cublaslt_close(lt);
            return NULL;
        }
        memcpy((char *)lt + entry_points[i].offset, &found, sizeof found);
    }
    int error = lt->cublasLtCreate(&lt->handle);
    if (error) {
        snprintf(why, why_size, "cublasLtCreate: error %d", error);
        cublaslt_close(lt);
        return NULL;
    }
    return lt;
}

void cublaslt_close(cublaslt *lt)
{
    if (!lt)
        return;
    if (lt->handle)
        lt->cublasLtDestroy(lt->handle);
    dlclose(lt->library);
    free(lt);
}

/* ---- plans ------------------------------------------------------------------------------ */

static int create_layout(const cublaslt *lt, const cublaslt_matrix *m, int batch,
                         cublasLtMatrixLayout_t *out)
{
    int type = -1;
    for (size_t i = 0; i < COUNT(types); i++)
        if (!strcmp(types[i].name, m->type))
            type = types[i].type;
    int error = lt->cublasLtMatrixLayoutCreate(out, type, m->rows, m->cols, m->ld);
    if (!error && batch > 1)
        error = lt->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                     &batch, sizeof batch);
    if (!error && batch > 1)
        error = lt->cublasLtMatrixLayoutSetAttribute(
            *out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m->batch_stride,
            sizeof m->batch_stride);
    return error;
}

/* Whether the product is added, and scaled, in f64. */
static bool is_wide(const cublaslt_problem *problem)
{
    return !strcmp(problem->x.type, "f64");
}

static int create_desc(const cublaslt *lt, const cublaslt_problem *problem,
                       cublasLtMatmulDesc_t *out)
{
    int x = problem->x.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    int y = problem->y.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    int epilogue = CUBLASLT_EPILOGUE_RELU_BIAS;
    bool wide = is_wide(problem);
    int error = lt->cublasLtMatmulDescCreate(out, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                                             wide ? CUDA_R_64F : CUDA_R_32F);
    if (!error)
        error = lt->cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSA, &x, sizeof x);
    if (!error)
        error = lt->cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_TRANSB, &y, sizeof y);
    if (!error && problem->relu_bias)
        error = lt->cublasLtMatmulDescSetAttribute(*out, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue,
                                                   sizeof epilogue);
    return error;
}

static int fill_plan(cublaslt_plan *plan, const cublaslt_problem *problem)
{
    const cublaslt *lt = plan->lt;
    size_t workspace = CUBLASLT_WORKSPACE_BYTES;
    int error = create_desc(lt, problem, &plan->desc);
    if (!error)
        error = create_layout(lt, &problem->x, problem->batch, &plan->x);
    if (!error)
        error = create_layout(lt, &problem->y, problem->batch, &plan->y);
    if (!error)
        error = create_layout(lt, &problem->d, problem->batch, &plan->d);
    if (!error)
        error = lt->cublasLtMatmulPreferenceCreate(&plan->preference);
    if (!error)
        error = lt->cublasLtMatmulPreferenceSetAttribute(plan->preference,
                                                         CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                         &workspace, sizeof workspace);
    if (!error)
        error = lt->cublasLtMatmulAlgoGetHeuristic(lt->handle, plan->desc, plan->x, plan->y,
                                                   plan->d, plan->d, plan->preference,
                                                   CUBLASLT_MAX_ALGORITHMS, plan->results,
                                                   &plan->n_results);
    return error;
}

cublaslt_plan *cublaslt_plan_create(cublaslt *lt, const cublaslt_problem *problem, char *why,
                                    size_t why_size)
{
    cublaslt_plan *plan = calloc(1, sizeof *plan);
    if (!plan) {
        snprintf(why, why_size, "out of memory");
        return NULL;
    }
    plan->lt = lt;
    plan->relu_bias = problem->relu_bias;
    plan->is_wide = is_wide(problem);
    int error = fill_plan(plan, problem);
    if (error || !plan->n_results) {
        snprintf(why, why_size, "cuBLASLt has no algorithm for this product (error %d)", error);
        cublaslt_plan_destroy(plan);
        return NULL;
    }
    return plan;
}

void cublaslt_plan_destroy(cublaslt_plan *plan)
{
    if (!plan)
        return;
    const cublaslt *lt = plan->lt;
    if (plan->desc)
        lt->cublasLtMatmulDescDestroy(plan->desc);
    cublasLtMatrixLayout_t layouts[] = {plan->x, plan->y, plan->d};
    for (size_t i = 0; i < COUNT(layouts); i++)
        if (layouts[i])
            lt->cublasLtMatrixLayoutDestroy(layouts[i]);
    if (plan->preference)
        lt->cublasLtMatmulPreferenceDestroy(plan->preference);
    free(plan);
}

int cublaslt_plan_count(const cublaslt_plan *plan)
{
    return plan->n_results;
}

static void *pointer(uint64_t device)
{
    return (void *)(uintptr_t)device;
}

bool cublaslt_enqueue(const cublaslt_plan *plan, int i, uint64_t x, uint64_t y, uint64_t d,
                      uint64_t bias, uint64_t workspace)
{
    const cublaslt *lt = plan->lt;
    const float one = 1, zero = 0;
    const double wide_one = 1, wide_zero = 0;
    const void *alpha = plan->is_wide ? (const void *)&wide_one : &one;
    const void *beta = plan->is_wide ? (const void *)&wide_zero : &zero;
    if (plan->relu_bias &&
        lt->cublasLtMatmulDescSetAttribute(plan->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
                                           sizeof bias))
        return false;
    return !lt->cublasLtMatmul(lt->handle, plan->desc, alpha, pointer(x), plan->x, pointer(y),
                               plan->y, beta, pointer(d), plan->d, pointer(d), plan->d,
                               &plan->results[i].algo, pointer(workspace),
                               CUBLASLT_WORKSPACE_BYTES, NULL);
}

/* Launches a kernel that was compiled ahead of time, and checks what it computed. Of tcc it needs the
 * two files that tcc wrote:
 *
 *     tcc layer.tile --target=sm_90a,sm_80,gfx1100 -o layer.c
 *     cc main.c layer.c -o app && ./app
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "layer.h"

enum { M = 300, N = 200, K = 136, F16_ONE = 0x3c00, F16_TWO = 0x4000, F16_MINUS_ONE = 0xbc00 };

static uint16_t a[M][K], b[K][N], c[M][N]; /* rows of A are 1 or 2, columns of B are 1 or -1 */
static float bias[N];

/* What this program itself asks of a driver; others have their own means. */
static int (*gpu_alloc)(uint64_t *address, size_t bytes);
static int (*gpu_write)(uint64_t to, const void *from, size_t bytes);
static int (*gpu_read)(void *to, uint64_t from, size_t bytes);

static void find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    if (!found) fprintf(stderr, "the driver lacks %s\n", name), exit(1);
    memcpy(function, &found, sizeof found);
}

/* Makes the first GPU current; 0 where there is none. CUDA needs a context for that, HIP nothing. */
static int open_gpu(void)
{
    void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *hip = cuda ? NULL : dlopen("libamdhip64.so", RTLD_NOW), *ctx;
    int (*init)(unsigned), (*retain)(void **, int), (*set)(void *);
    if (!cuda && !hip) return 0;
    find(cuda ? cuda : hip, cuda ? "cuInit" : "hipInit", &init);
    find(cuda ? cuda : hip, cuda ? "cuMemAlloc_v2" : "hipMalloc", &gpu_alloc);
    find(cuda ? cuda : hip, cuda ? "cuMemcpyHtoD_v2" : "hipMemcpyHtoD", &gpu_write);
    find(cuda ? cuda : hip, cuda ? "cuMemcpyDtoH_v2" : "hipMemcpyDtoH", &gpu_read);
    if (init(0)) return 0;
    if (hip) return 1;
    find(cuda, "cuDevicePrimaryCtxRetain", &retain);
    find(cuda, "cuCtxSetCurrent", &set);
    return !retain(&ctx, 0) && !set(ctx);
}

static uint64_t copy(const void *host, size_t size)
{
    uint64_t address;
    if (gpu_alloc(&address, size) || gpu_write(address, host, size)) fputs("no memory\n", stderr), exit(1);
    return address;
}

/* A whole number below 2048 as f16 has it. */
static uint16_t f16_of(int n)
{
    int log2 = 0;
    while (n >> (log2 + 1)) log2++;
    return n ? (uint16_t)((log2 + 15) << 10 | (n << 10 >> log2 & 0x3ff)) : 0;
}

static double milliseconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

int main(void)
{
    if (!open_gpu()) return puts("no GPU: launch skipped"), 0;
    for (int i = 0; i < M * K; i++) a[i / K][i % K] = i / K % 2 ? F16_ONE : F16_TWO;
    for (int i = 0; i < K * N; i++) b[i / N][i % N] = i % N % 2 ? F16_ONE : F16_MINUS_ONE;
    for (int n = 0; n < N; n++) bias[n] = (float)(2 * n);
    uint64_t on_gpu[] = {copy(a, sizeof a), copy(b, sizeof b), copy(bias, sizeof bias), copy(c, sizeof c)};
    double start = milliseconds(); /* of the first launch, which loads the image for this GPU */
    int wrong = 0, error = layer(NULL, on_gpu[0], on_gpu[1], on_gpu[2], on_gpu[3], M, K, N);
    if (error) return fprintf(stderr, "%s: %s\n", layer_error(error), layer_message()), 1;
    if (gpu_read(c, on_gpu[3], sizeof c)) return fputs("the launch failed\n", stderr), 1;
    double took = milliseconds() - start;
    for (int i = 0; i < M * N; i++) {
        int m = i / N, n = i % N, sum = K * (m % 2 ? 1 : 2) * (n % 2 ? 1 : -1) + 2 * n;
        wrong += c[m][n] != f16_of(sum > 0 ? sum : 0);
    }
    printf("launched: %d of %d elements are wrong; loading, computing and reading took %.1f ms\n", wrong, M * N, took);
    return wrong != 0;
}

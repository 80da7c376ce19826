/* Compiles a fused matrix product from a string, launches it and checks what it computed.
 *
 *     cc embed.c -o embed $(pkg-config --cflags --libs tcc)
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdio.h>
#include <stdlib.h>

#include <tcc/tcc.h>
#include <tcc/tcc_runtime.h>

static const char source[] =
    "kernel layer(X: f16[M, K], W: f16[K, N], bias: f32[N], scale: f32) -> (Y: f32[M, N])\n"
    "{\n"
    "    acc[m, n] = sum(k) X[m, k] * W[k, n];\n"
    "    Y[m, n]   = relu(scale * acc[m, n] + bias[n]);\n"
    "}\n";

enum { M = 300, N = 200, K = 136, F16_ONE = 0x3c00, F16_TWO = 0x4000, F16_MINUS_ONE = 0xbc00 };

static uint16_t x[M][K], w[K][N]; /* rows of X are 1 or 2, columns of W are 1 or -1 */
static float bias[N], y[M][N];

static void show(const tcc_diagnostic *d, void *file) { fputs(d->text, file); }

static void must(tcc_status status, const char *what)
{
    if (status) fprintf(stderr, "%s: %s\n", what, tcc_status_name(status)), exit(1);
}

static void launch(tcc_runtime *rt, const tcc_module *mod)
{
    const int64_t dims[] = {M, K, N}; /* in the order in which the signature names them */
    const struct { void *host; size_t size; } data[] = {
        {x, sizeof x}, {w, sizeof w}, {bias, sizeof bias}, {NULL, 0}, {y, sizeof y}};
    tcc_arg args[5] = {[3] = {.number = 0.5}}; /* scale */
    size_t size;
    const char *ptx = tcc_module_output(mod, &size);
    tcc_device *dev;
    tcc_program *prog;
    must(tcc_device_open(rt, 0, &dev), "open the GPU");
    must(tcc_program_load(rt, ptx, size, NULL, &prog), "load");
    for (int i = 0; i < 5; i++) {
        if (!data[i].host) continue;
        must(tcc_device_alloc(dev, data[i].size, &args[i].device), "allocate");
        must(tcc_device_write(dev, args[i].device, data[i].host, data[i].size), "write");
    }
    must(tcc_kernel_launch(tcc_program_kernel(prog, "layer"), dims, 3, args, 5, NULL), "launch");
    must(tcc_device_read(dev, y, args[4].device, sizeof y), "read");
    tcc_program_destroy(prog);
    tcc_device_close(dev); /* and with the context what was allocated in it */
}

int main(void)
{
    tcc_context *ctx = tcc_context_create();
    tcc_module *mod;
    tcc_runtime *rt;
    int wrong = 0;
    tcc_context_on_diagnostic(ctx, show, stderr);
    must(tcc_compile(ctx, source, "sm_90a", &mod), "compile");
    if (tcc_runtime_create(&rt, NULL, NULL)) {
        puts("no GPU: launch skipped");
    } else {
        for (int i = 0; i < M * K; i++) x[i / K][i % K] = i / K % 2 ? F16_ONE : F16_TWO;
        for (int i = 0; i < K * N; i++) w[i / N][i % N] = i % N % 2 ? F16_ONE : F16_MINUS_ONE;
        for (int n = 0; n < N; n++) bias[n] = (float)n;
        launch(rt, mod);
        for (int i = 0; i < M * N; i++) {
            int m = i / N, n = i % N, sum = K * (m % 2 ? 1 : 2) * (n % 2 ? 1 : -1) / 2 + n;
            wrong += y[m][n] != (float)(sum > 0 ? sum : 0);
        }
        printf("launched: %d of %d elements are wrong\n", wrong, M * N);
        tcc_runtime_destroy(rt);
    }
    tcc_module_destroy(mod);
    tcc_context_destroy(ctx);
    return wrong != 0;
}

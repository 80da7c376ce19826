#include <tcc/tcc_jit.h>

/* C = relu(A * B + bias): extents and addresses in the order of the signature */
tcc_status layer(tcc_jit *jit, const char *source, int64_t m, int64_t k, int64_t n,
                 uint64_t a, uint64_t b, uint64_t bias, uint64_t c, void *stream)
{
    return tcc_jit_launch(jit, source, NULL, NULL, (int64_t[]){m, k, n}, 3,
                          (tcc_arg[]){{a}, {b}, {bias}, {c}}, 4, stream);
}

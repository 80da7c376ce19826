/* libtcc: the schedule that makes a kernel fastest at given extents, found by trying on a GPU.
 *
 *     static tcc_status measure(const tcc_kernel *k, double *time, void *user);  -- launches k, compares, times
 *     tcc_tune_options o = {.struct_size = sizeof o, .dims = dims, .n_dims = 3, .measure = measure};
 *     tcc_tuning *t;
 *     if (tcc_tune(dev, source, NULL, &o, &t) == TCC_OK && tcc_tuning_count(t))
 *         puts(tcc_tuning_schedule(t, 0));                                       -- to be put into the source
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TCC_TUNE_H
#define TCC_TCC_TUNE_H

#include <tcc/tcc.h>
#include <tcc/tcc_runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tcc_tuning tcc_tuning;

/* How far a search is. */
typedef struct tcc_tune_progress {
    size_t refused;  /* schedules that the compiler does not take */
    size_t dear;     /* that by the estimate take too much time to be worth trying */
    size_t measured; /* in this search */
    size_t wrong;    /* of these, with wrong results */
    size_t known;    /* found in the file of results */
    size_t waiting;  /* still to be measured, as far as is known now */
    double best;     /* least time so far; INFINITY: none */
    double seconds_left;
} tcc_tune_progress;

typedef struct tcc_tune_options {
    size_t struct_size; /* sizeof(tcc_tune_options): lets the struct grow */
    const char *kernel; /* NULL: the only one */
    const int64_t *dims; /* n_dims extents, tcc_kernel_dim_name's order */
    size_t n_dims;
    /* That the search may take, about; 0: 60. Less than 0: nothing is searched, and what the file of results has is all that
     * there is; `measure` may be NULL then. */
    double seconds;
    unsigned threads; /* that compile; 0: one for each CPU, 16 at most */
    /* Results are appended to this file, and what it has is not measured again; NULL: to tuned.jsonl in the folder that
     * tcc_jit_options.cache_dir NULL means; "": none is kept. A line is one result, as JSON; tcc_tune_merge makes one
     * file of those of several searches. A result counts for the same GPU, driver, build of libtcc, target, program, and class of
     * extents: those that begin with the same two bits, and that the same power of two divides, 16 at most. */
    const char *results;
    /* Of the schedules that all combinations give one of n_shards parts, from 0 on: for searches side by side, whose
     * results are merged. A schedule is in one part alone, whichever machine asks. n_shards 0: all. */
    unsigned shard, n_shards;
    /* Times the kernel, which may be launched with the extents until this returns, and whose results it has compared.
     * *time: less is better; what clocks and heat do cancels in the time over that of another kernel, launched in
     * turn. INFINITY: the results are wrong. Anything but TCC_OK ends the search with that, and the schedule counts as
     * wrong, but for *time NaN: nothing is known of it, as when the program ends the search. Called in the thread that
     * called tcc_tune, while nothing is compiled. */
    tcc_status (*measure)(const tcc_kernel *kernel, double *time, void *user);
    void (*progress)(const tcc_tune_progress *progress, void *user); /* NULL: not told */
    void *user;
} tcc_tune_options;

/* Searches. First come the combinations of the keys that decide most (tile, persistent, consumers, split, cluster,
 * operands), then, one after the other, all values of every key around the best that were found. What the compiler
 * refuses is left out, and what by its estimate takes more than twice the time of the best; the others are compiled
 * side by side, the most promising first, and measured.
 *
 * dev      current for the calling thread          source   NUL-terminated UTF-8, borrowed
 * compile  target (NULL: the GPU's), file, defines; the others are to be zero. NULL: all zero
 * The kernel may have no schedule of its own for the target (TCC_ERR_ARGUMENT).
 * On success *out belongs to the caller: tcc_tuning_destroy. Returns TCC_OK, what tcc_compile_with returns for
 * the program as it is, TCC_ERR_IO where the file of results cannot be used, what measure returned, or
 * TCC_ERR_MEMORY; diagnostics go to the runtime's callback. */
TCC_API tcc_status tcc_tune(tcc_device *dev, const char *source, const tcc_compile_options *compile,
                            const tcc_tune_options *options, tcc_tuning **out);
TCC_API void tcc_tuning_destroy(tcc_tuning *t);

/* Whether n elements of a type that tcc_arg_info has, "f16" say, are what another schedule computed, which adds in another
 * order: they differ by at most a tenth of the root mean square of all and of themselves, integers by 1. NaN is like
 * NaN. Of a wrong tile nearly all elements are further off. For `measure`. */
TCC_API bool tcc_tune_agree(const char *type, const void *a, const void *b, size_t n);

/* The schedules that were measured, now or before, and whose results are right, the fastest first: how many, the i-th
 * in the language's syntax, and its time. NULL and INFINITY past the last. Borrowed. */
TCC_API size_t tcc_tuning_count(const tcc_tuning *t);
TCC_API const char *tcc_tuning_schedule(const tcc_tuning *t, size_t i);
TCC_API double tcc_tuning_time(const tcc_tuning *t, size_t i);
/* How far the search came. */
TCC_API tcc_tune_progress tcc_tuning_progress(const tcc_tuning *t);

/* A file of results: its name, for diagnostics, and what is in it. Borrowed. */
typedef struct tcc_tune_part {
    const char *file, *text;
    size_t size;
} tcc_tune_part;

/* Makes one file of several: of each schedule, in each class of extents, one result, which is one that is wrong, else the
 * fastest; classes in the order of their names, in each the fastest first. The order of the parts, and one that is
 * given twice, change nothing. Lines that are not results, such as one that was cut off, are left out with a warning.
 * On success *out is NUL-terminated and belongs to the caller: tcc_text_destroy. Returns TCC_OK, TCC_ERR_ARGUMENT where
 * results are of several GPUs, drivers, builds of libtcc, targets, programs or kernels, or TCC_ERR_MEMORY, with *out NULL;
 * diagnostics go to the context's callback. */
TCC_API tcc_status tcc_tune_merge(tcc_context *ctx, const tcc_tune_part *parts, size_t n, char **out);

#ifdef __cplusplus
}
#endif
#endif

/* libtcc: search for the fastest schedule of a kernel at given extents, by measuring on a GPU.
 *
 *     static tcc_status measure(const tcc_kernel *k, double *time, void *user);  -- launches k, compares, times
 *     tcc_tune_options o = {.struct_size = sizeof o, .dims = dims, .n_dims = 3, .measure = measure};
 *     tcc_tuning *t;
 *     if (tcc_tune(dev, source, NULL, &o, &t) == TCC_OK && tcc_tuning_count(t))
 *         puts(tcc_tuning_schedule(t, 0));                                       -- to add to the source
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

/* The progress of a search. */
typedef struct tcc_tune_progress {
    size_t refused;  /* schedules that the compiler rejects */
    size_t dear;     /* schedules that are estimated to be too slow to be worth measuring */
    size_t measured; /* in this search */
    size_t wrong;    /* of these, with wrong results */
    size_t known;    /* found in the results file */
    size_t waiting;  /* still to be measured, as far as known yet */
    double best;     /* shortest time so far; INFINITY: none */
    double seconds_left;
} tcc_tune_progress;

typedef struct tcc_tune_options {
    size_t struct_size; /* sizeof(tcc_tune_options): lets the struct grow */
    const char *kernel; /* NULL: the only one */
    const int64_t *dims; /* n_dims extents, tcc_kernel_dim_name's order */
    size_t n_dims;
    /* Approximate duration of the search, which goes on until one result is right, or eight are wrong; 0: 60. Negative:
     * nothing is searched, only the results file is used, and `measure` may be NULL. */
    double seconds;
    unsigned threads; /* that compile; 0: one per CPU, at most 16 */
    /* Results are appended to this file, and those in it are not measured again; NULL: tuned.jsonl in the folder that
     * tcc_jit_options.cache_dir NULL selects; "": results are not stored. A line is one result, as JSON;
     * tcc_tune_merge merges the files of several searches. A result is valid for the same GPU, driver, build of libtcc,
     * target, program, and class of extents: those that begin with the same two bits and are divisible by the same
     * power of two, up to 16. */
    const char *results;
    /* Search only part `shard`, counted from 0, of n_shards parts of the combinations, for parallel searches whose
     * results are merged. Each schedule is in exactly one part, the same on every machine. n_shards 0: search all. */
    unsigned shard, n_shards;
    /* Times the kernel, which may be launched with these extents until the function returns, after comparing its
     * results. *time: less is better; to cancel clocks and temperature, divide by the time of another kernel that is
     * launched alternately. INFINITY: the results are wrong. Any status but TCC_OK ends the search with that status and
     * counts the schedule as wrong, unless *time is NaN: then nothing is recorded, as when the program ends the search.
     * Called in the thread that called tcc_tune, while nothing is being compiled. */
    tcc_status (*measure)(const tcc_kernel *kernel, double *time, void *user);
    void (*progress)(const tcc_tune_progress *progress, void *user); /* may be NULL */
    void *user;
} tcc_tune_options;

/* Searches, first all combinations of the keys with the largest effect (tile, persistent, consumers, split, cluster,
 * operands), then all values of every key, one key at a time, around the best schedules found. Schedules that the
 * compiler rejects, or that are estimated to take more than twice the time of the best, are skipped; the others are
 * compiled in parallel, the most promising first, and measured.
 *
 * dev      current for the calling thread          source   NUL-terminated UTF-8, borrowed
 * compile  target (NULL: the GPU's), file, defines; the others must be zero. NULL: all zero
 * The kernel must not have a schedule for the target (TCC_ERR_ARGUMENT).
 * On success *out belongs to the caller: tcc_tuning_destroy. Returns TCC_OK, what tcc_compile_with returns for the
 * unmodified program, TCC_ERR_IO if the results file cannot be used, what measure returned, or TCC_ERR_MEMORY;
 * diagnostics go to the runtime's callback. */
TCC_API tcc_status tcc_tune(tcc_device *dev, const char *source, const tcc_compile_options *compile,
                            const tcc_tune_options *options, tcc_tuning **out);
TCC_API void tcc_tuning_destroy(tcc_tuning *t);

/* Whether the n elements of a and b, of a type as in tcc_arg_info, such as "f16", may be results of the same kernel
 * with different schedules, which add in different orders: they differ by at most a tenth of the root mean square of
 * all and of the element itself, integers by 1. NaN equals NaN. In a wrong tile nearly all elements are further off.
 * For use in `measure`. */
TCC_API bool tcc_tune_agree(const char *type, const void *a, const void *b, size_t n);

/* The schedules with correct results that were measured, now or earlier, the fastest first: their number, the i-th in
 * the language's syntax, and its time. NULL and INFINITY past the last. Borrowed. */
TCC_API size_t tcc_tuning_count(const tcc_tuning *t);
TCC_API const char *tcc_tuning_schedule(const tcc_tuning *t, size_t i);
TCC_API double tcc_tuning_time(const tcc_tuning *t, size_t i);
/* The final progress of the search. */
TCC_API tcc_tune_progress tcc_tuning_progress(const tcc_tuning *t);

/* A results file: its name, for diagnostics, and its contents. Borrowed. */
typedef struct tcc_tune_part {
    const char *file, *text;
    size_t size;
} tcc_tune_part;

/* Merges results files. The merged file has one result for each schedule and class of extents: a wrong one if there is
 * any, else the fastest. Classes are sorted by name, each with the fastest result first. The order of the parts, and
 * duplicates among them, do not matter. Lines that are not results, such as a truncated one, are skipped with a
 * warning. On success *out is NUL-terminated and belongs to the caller: tcc_text_destroy. Returns TCC_OK,
 * TCC_ERR_ARGUMENT if the results are for different GPUs, drivers, builds of libtcc, targets, programs or kernels, or
 * TCC_ERR_MEMORY, with *out NULL; diagnostics go to the context's callback. */
TCC_API tcc_status tcc_tune_merge(tcc_context *ctx, const tcc_tune_part *parts, size_t n, char **out);

#ifdef __cplusplus
}
#endif
#endif

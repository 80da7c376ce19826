/* options: the command line of tcc-run, and of a script's lines.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_OPTIONS_H
#define TCC_TOOLS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/shared/command_line.h"

enum { MAX_PAIRS = 64, MAX_NAME = 64, MAX_ARGS = 64 };

/* NAME=VALUE from the command line. */
typedef struct option_pair {
    char name[MAX_NAME];
    union {
        int64_t extent;
        double number;
        const char *path; /* borrowed from argv */
    };
} option_pair;

typedef struct option_list {
    option_pair pairs[MAX_PAIRS];
    size_t n;
} option_list;

typedef enum against { AGAINST_NOTHING, AGAINST_PRODUCT, AGAINST_RELU_BIAS } against;

typedef enum run_on { ON_DEFAULT, ON_GPU, ON_HIP, ON_INTERP } run_on;

/* --order: in which order the interpreter's warps run and its asynchronous operations complete. */
typedef struct order {
    bool given;
    tcc_interpret_order kind;
    uint64_t seed; /* of random */
} order;

typedef struct options {
    const char *file, *kernel, *variant;
    const char *target;   /* of .tile files; NULL: what the machine takes */
    const char *manifest; /* of an image; NULL: in the image */
    option_list sizes, defines, scalars, inputs, outputs, misaligned;
    bool check, bench, tune, help, version;
    int64_t tune_seconds; /* 0: not given */
    const char *tune_results;
    unsigned shard, n_shards;
    double tolerance; /* of --check; 0: by the output's type */
    int64_t rows;     /* to check; 0: by cost */
    int64_t repeat;   /* launches */
    against against;
    int64_t seed;
    run_on on; /* ON_DEFAULT: the GPU, through CUDA, as ON_GPU */
    int64_t device; /* among the GPUs */
    bool device_given;
    order order;
    int64_t threads;      /* of the interpreter; 0: one for each CPU */
    tcc_emit level;       /* of a .tile file's IR that is interpreted; TCC_EMIT_DEFAULT: not given */
    const char *timeline; /* where the interpreter's timeline goes */
    int64_t timeline_cta;
    const char *script, *table;
    int64_t timeout_s; /* of one line of a script */
    color_when color;
    bool json; /* diagnostics */
} options;

/* Reads argv[1..] of the tool, or of a script's line, which inherits the options for the machine
 * from the script's command line. On failure writes the reason into `why`. The options borrow from
 * argv. */
bool options_parse(int argc, char **argv, const options *script, options *out, char *why,
                   size_t why_size);

typedef enum file_kind { FILE_TILE, FILE_IR, FILE_IMAGE } file_kind;

/* By its suffix: .tile; .tir or .ir; anything else is PTX or a binary. */
file_kind file_kind_of(const char *path);

/* The pair of this name, or NULL. */
const option_pair *option_find(const option_list *list, const char *name);

#endif

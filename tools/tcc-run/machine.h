/* machine: what kernels run on: a GPU through CUDA or HIP, or the interpreter on the CPU. All have
 * memory with addresses of its own, load programs and launch their kernels.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_TOOLS_MACHINE_H
#define TCC_TOOLS_MACHINE_H

#include <tcc/tcc_runtime.h>

#include "tools/tcc-run/options.h"

struct session;
struct tensor;

/* A file that was compiled or loaded. */
typedef struct program {
    tcc_program *handle; /* what its kernels take; on the GPU, the code as well */
    tcc_module *module;  /* the interpreter's; NULL on the GPU, unless for a timeline */
} program;

void program_free(program *p);

/* One launch. */
typedef struct launch_task {
    const program *program;
    const tcc_kernel *kernel;
    const options *o;
    const int64_t *dims;
    size_t n_dims;
    const struct tensor *tensors; /* no type: a scalar */
    const tcc_arg *args;
    size_t n_args;
    int64_t number; /* of the launch, from 0 */
    char *timeline; /* when not NULL, gets a line about the timeline that the options want */
    size_t timeline_size;
} launch_task;

typedef struct machine {
    bool is_gpu; /* and its times mean something */
    tcc_vendor vendor;
    /* Makes the machine ready. TCC_ERR_NO_DRIVER leaves the reason in the session's message. */
    tcc_status (*open)(struct session *s, const options *o);
    /* Writes "NVIDIA H200, driver 13.0", or nothing where there is none to describe. */
    void (*describe)(const struct session *s, const options *o, char *text, size_t size);
    /* Makes a program of the options' file, whose text is given. */
    tcc_status (*load)(struct session *s, const options *o, const char *text, size_t size,
                       program *out);
    tcc_status (*alloc)(struct session *s, size_t bytes, uint64_t *out);
    void (*free)(struct session *s, uint64_t address);
    tcc_status (*write)(struct session *s, uint64_t address, const void *host, size_t n);
    tcc_status (*read)(struct session *s, void *host, uint64_t address, size_t n);
    tcc_status (*fill)(struct session *s, uint64_t address, uint8_t byte, size_t n);
    /* Bytes that the host spends on a tensor in the machine's memory. */
    size_t (*host_bytes)(const struct tensor *t);
    /* Runs the kernel to its end; *ms gets the time, *variant the entry that ran, or NULL. */
    tcc_status (*run)(struct session *s, const launch_task *task, double *ms, const char **variant);
    /* Whether an error has made the machine useless. */
    bool (*is_lost)(struct session *s);
} machine;

extern const machine machine_cuda, machine_hip, machine_interp;

/* The machine that the options ask for. */
const machine *machine_of(const options *o);

#endif

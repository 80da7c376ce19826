/* driver: what the runtime needs of a GPU's driver, as a table of functions for each vendor. The
 * rest of the runtime is the same for both and calls nothing else of them.
 *
 * Every function that returns a tcc_status reports what fails, with the driver's own words. Device
 * addresses are numbers; functions, modules and events are the vendor's handles, as void *.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_DRIVER_H
#define TCC_RUNTIME_DRIVER_H

#include <tcc/tcc_runtime.h>

#include "runtime/tensor_map.h"

/* Room for the name of an architecture. */
enum { TCC_MAX_ARCH = 256 };

/* What is current for a thread. */
typedef union tcc_current {
    void *context; /* a CUcontext */
    int device;    /* HIP's */
} tcc_current;

typedef struct tcc_driver {
    int out_of_memory; /* the error that is TCC_ERR_MEMORY */
    void (*explain)(const tcc_runtime *rt, int error, const char **name, const char **text);

    /* Finds and initialises the driver. *n_devices is unchanged on failure. */
    tcc_status (*open)(tcc_runtime *rt, int *n_devices);
    void (*close)(tcc_runtime *rt);

    /* Makes the GPU of the device's ordinal current, and notes what was current before, with the
     * GPU's name. */
    tcc_status (*device_open)(tcc_device *dev);
    void (*device_close)(tcc_device *dev);
    tcc_status (*sync)(const tcc_runtime *rt);

    /* The ordinal of the current GPU; -1 where the calling thread has none. */
    int (*current)(const tcc_runtime *rt);
    /* Saves what is current in the calling thread; makes it current in a thread of the runtime, which may then load
     * code while others capture a stream, if the driver distinguishes threads. */
    tcc_status (*note_current)(const tcc_runtime *rt, tcc_current *out);
    tcc_status (*adopt_current)(const tcc_runtime *rt, tcc_current other);
    /* The architecture of the current GPU, "sm_90" or "gfx1100". */
    tcc_status (*arch)(const tcc_runtime *rt, char arch[TCC_MAX_ARCH]);
    /* The version of the driver's CUDA or of HIP: 1000 * major + 10 * minor. */
    tcc_status (*version)(const tcc_runtime *rt, int *out);
    /* Whether a GPU of this architecture runs code for `target`: an ELF file, or what the driver
     * compiles. */
    bool (*runs)(const char *arch, const char *target, bool is_elf);

    /* *module is unchanged on failure. */
    tcc_status (*load)(tcc_program *prog, const void *image, size_t size, void **module);
    void (*unload)(const tcc_program *prog, void *module);
    /* The attributes of the current GPU that launch plans may ask. */
    tcc_status (*attributes)(const tcc_runtime *rt, tcc_device_attrs *out);
    tcc_status (*find)(const tcc_program *prog, void *module, const tcc_entry *entry, void **function);
    /* How many blocks of an entry are resident at once, whole clusters of them; NULL: there are no clusters. */
    tcc_status (*resident)(const tcc_program *prog, const tcc_entry *entry, void *function, int64_t *blocks);
    /* Encodes a tensor map of the argument `name`; NULL where there are none. */
    tcc_status (*encode)(const tcc_program *prog, const char *name, const tcc_tma_recipe *recipe,
                         const tcc_tma_values *values, CUtensorMap *out);
    /* overlaps: it may begin before the previous kernel in the stream has ended. */
    tcc_status (*launch)(const tcc_program *prog, const tcc_entry *entry, void *function,
                         unsigned grid, bool overlaps, void *stream, void **params);

    tcc_status (*alloc)(const tcc_runtime *rt, size_t bytes, uint64_t *out);
    void (*free)(const tcc_runtime *rt, uint64_t address);
    tcc_status (*write)(const tcc_runtime *rt, uint64_t to, const void *from, size_t bytes);
    tcc_status (*read)(const tcc_runtime *rt, void *to, uint64_t from, size_t bytes);
    tcc_status (*fill)(const tcc_runtime *rt, uint64_t to, uint8_t byte, size_t n);

    /* In stream order; free_async frees memory from alloc_async. */
    tcc_status (*alloc_async)(const tcc_runtime *rt, size_t bytes, void *stream, uint64_t *out);
    tcc_status (*free_async)(const tcc_runtime *rt, uint64_t address, void *stream);
    tcc_status (*fill_async)(const tcc_runtime *rt, uint64_t to, uint8_t byte, size_t n,
                             void *stream);

    tcc_status (*event_create)(const tcc_runtime *rt, void **event);
    void (*event_destroy)(const tcc_runtime *rt, void *event);
    /* For the default stream. */
    tcc_status (*event_record)(const tcc_runtime *rt, void *event);
    tcc_status (*event_sync)(const tcc_runtime *rt, void *event);
    tcc_status (*event_time)(const tcc_runtime *rt, void *start, void *end, float *ms);
} tcc_driver;

extern const tcc_driver tcc_driver_cuda, tcc_driver_hip;

#endif

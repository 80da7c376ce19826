/* disk_cache: bytes kept under keys in the files of a folder, for later processes.
 *
 * Each entry is a file, which is renamed to its final name when it is complete. Readers compare the key and a
 * checksum over everything, and drop damaged entries. Any number of processes may use a folder at once. If entries
 * exceed the limit, the least recently used ones are removed.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_DISK_CACHE_H
#define TCC_RUNTIME_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tcc/status.h>

typedef struct tcc_bytes {
    const void *data;
    size_t size;
} tcc_bytes;

/* A hash of some bytes, the same on every machine. */
uint64_t tcc_hash(tcc_bytes bytes);

/* Sets *folder, which the caller frees, to `given`; or where that is NULL to $TCC_CACHE_DIR, $XDG_CACHE_HOME/tcc or
 * $HOME/.cache/tcc, the first that is set. NULL where none is, or the name is empty: nothing is kept. Returns TCC_OK
 * or TCC_ERR_MEMORY. */
tcc_status tcc_disk_cache_folder(const char *given, char **folder);

/* Creates a folder that only the user can access, and its parents; path is changed temporarily. False with errno
 * set. */
bool tcc_make_folders(char *path);

typedef enum tcc_disk_found { TCC_DISK_HIT, TCC_DISK_MISS, TCC_DISK_DAMAGED } tcc_disk_found;

/* Reads what is kept under a key: *data, which the caller frees. Any failure is a miss; what is damaged is removed. */
tcc_disk_found tcc_disk_cache_get(const char *folder, tcc_bytes key, char **data, size_t *size);

/* Keeps bytes under a key, for what was there before, and makes the folder if need be; then removes what is over the
 * limit. False with errno set where the entry could not be written, or takes more than the limit (EFBIG). */
bool tcc_disk_cache_put(const char *folder, uint64_t limit_bytes, tcc_bytes key, tcc_bytes data);

#endif

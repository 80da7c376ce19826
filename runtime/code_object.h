/* code_object: reads compiled images that are ELF files: the manifest in a note, and whether AMD's
 * code objects can be passed to a driver that trusts their headers.
 *
 * The note has the name "tcc" and the type 1, its descriptor is the manifest's JSON, and it is in a
 * section of type SHT_NOTE, .note.tcc, that is not loaded (docs/abi.md). Notes are as in the System
 * V ABI, "Note Section": three words, then name and descriptor, each padded to four bytes.
 *
 * Every offset in an image is checked before it is followed. Images need no alignment.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_RUNTIME_CODE_OBJECT_H
#define TCC_RUNTIME_CODE_OBJECT_H

#include "runtime/manifest.h"

/* Whether an image is an ELF file, and so no PTX. */
bool tcc_is_elf(const void *image, size_t size);

/* The manifest's JSON from an ELF image's note, terminated; NULL with an error reported where there
 * is none. Out of memory goes to the arena's handler. */
const char *tcc_manifest_in_elf(tcc_arena *arena, tcc_diag *diag, const void *image, size_t size);

/* Rejects, with TCC_ERR_SYNTAX and one error reported, an image that is not a code object for AMD's
 * GPUs or whose headers point outside it. */
tcc_status tcc_code_object_check(tcc_diag *diag, const void *image, size_t size);

/* Refuses an entry that cannot belong to a code object that tcc_code_object_check took: where the
 * kernel's descriptor has other bytes of parameters or of shared memory than the manifest says. */
tcc_status tcc_code_object_check_entry(tcc_diag *diag, const void *image, size_t size,
                                       const tcc_entry *entry);

#endif

/* object: an ELF object of LLVM's AMDGPU backend, read and checked. Nothing in it is trusted: the
 * results are within the given bytes.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_AMDGCN_OBJECT_H
#define TCC_CODEGEN_AMDGCN_OBJECT_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

#include "support/arena.h"
#include "support/diag.h"

typedef struct tcc_object_section {
    Elf64_Shdr header; /* sh_addralign is a power of two up to a page */
    const char *name;
    const uint8_t *data; /* sh_size bytes; NULL for SHT_NOBITS */
} tcc_object_section;

typedef struct tcc_object_symbol {
    Elf64_Sym sym; /* st_shndx is a section's number, SHN_UNDEF or SHN_ABS */
    const char *name;
} tcc_object_symbol;

/* `place` is in section `section`, `symbol` is a symbol's number. */
typedef struct tcc_object_relocation {
    unsigned section, type, symbol;
    uint64_t place;
    int64_t addend;
} tcc_object_relocation;

typedef struct tcc_object {
    Elf64_Ehdr header;
    tcc_object_section *sections;
    tcc_object_symbol *symbols;
    tcc_object_relocation *relocations;
    size_t n_sections, n_symbols, n_relocations;
} tcc_object;

/* Reads a relocatable object; everything borrows from `data` or is in the arena. False, reported,
 * if it is not one. */
bool tcc_object_read(tcc_object *o, tcc_arena *arena, const void *data, size_t size,
                     tcc_diag *diag);

/* An object's metadata of one kernel. */
typedef struct tcc_kernel_usage {
    const char *name; /* not terminated */
    size_t name_size;
    uint64_t spilled_vgprs, scratch_bytes; /* of a lane */
} tcc_kernel_usage;

/* The kernels of an object; false when its metadata is not as LLVM writes it. notes.c */
bool tcc_object_usages(const tcc_object *o, tcc_arena *arena, tcc_kernel_usage **out, size_t *n);

/* Reports what is wrong with an object: TCC_ERR_INTERNAL, since LLVM made it. Returns false. */
bool tcc_object_error(tcc_diag *diag, const char *what, const char *name);

#endif

/* link: what link.c, symbols.c and notes.c, which make a code object of objects, share.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CODEGEN_AMDGCN_LINK_H
#define TCC_CODEGEN_AMDGCN_LINK_H

#include "codegen/amdgcn/object.h"

/* Sections that every code object has, by their numbers. Those that are not loaded come last. */
enum {
    TCC_LINK_NONE,
    TCC_LINK_NOTE,
    TCC_LINK_DYNSYM,
    TCC_LINK_GNU_HASH,
    TCC_LINK_HASH,
    TCC_LINK_DYNSTR,
    TCC_LINK_RODATA,
    TCC_LINK_TEXT,
    TCC_LINK_DYNAMIC,
    TCC_LINK_RELRO_PADDING
};

typedef struct tcc_link_section {
    const char *name;
    Elf64_Word type;
    Elf64_Xword flags;
    uint64_t align, entsize;
    bool is_loaded;
    Elf64_Word link, info;
    uint8_t *data; /* NULL: nothing in the file */
    uint64_t size;
    uint64_t addr, offset;  /* after the layout */
    Elf64_Word name_offset; /* in the section of sections' names */
} tcc_link_section;

/* Where a section of an object has gone; TCC_LINK_NONE: nowhere. */
typedef struct tcc_link_place {
    unsigned section;
    uint64_t offset;
} tcc_link_place;

typedef struct tcc_link_input {
    tcc_object object;
    tcc_link_place *placed; /* for each of its sections */
} tcc_link_input;

/* A symbol and the object that it is of. */
typedef struct tcc_link_symbol {
    const tcc_link_input *input;
    const tcc_object_symbol *symbol;
} tcc_link_symbol;

typedef struct tcc_link {
    tcc_arena *arena;
    tcc_diag *diag;
    tcc_link_input *inputs;
    size_t n_inputs;
    TCC_VEC(tcc_link_section) sections;
    size_t size; /* of the whole file */

    /* symbols.c: */
    TCC_VEC(tcc_link_symbol) kept; /* as in the objects */
    tcc_link_symbol *exported;     /* in .dynsym's order */
    size_t n_exported, n_buckets, n_bloom_words;
    size_t symtab, shstrtab, strtab; /* sections */
} tcc_link;

tcc_link_section *tcc_link_add_section(tcc_link *k, tcc_link_section begin);

/* The address of a symbol that is not undefined, and the section of the output that it is in:
 * TCC_LINK_NONE for a number, and for what was left out. After the layout. */
uint64_t tcc_link_address(const tcc_link *k, const tcc_link_input *input, const Elf64_Sym *s,
                          unsigned *section);

/* Fills the section .note: the objects' metadata in one. False when an error was reported. */
bool tcc_link_merge_notes(tcc_link *k);

/* Finds the exported symbols, and computes the sizes of all sections of symbols and strings. False
 * if an error was reported. */
bool tcc_link_collect_symbols(tcc_link *k);
/* Fills these sections, after the layout. */
void tcc_link_fill_symbols(tcc_link *k);

#endif

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "driver/build_id.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

#include <tcc/tcc.h>

/* For names, descriptions and what follows them. */
static size_t padded(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

static bool is_build_id(const ElfW(Nhdr) * note)
{
    return note->n_type == NT_GNU_BUILD_ID && note->n_namesz == sizeof ELF_NOTE_GNU &&
           !memcmp(note + 1, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU);
}

static void print_id(tcc_str *out, const char *notes, size_t size)
{
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
        const ElfW(Nhdr) *note = (const void *)(notes + at);
        const unsigned char *id = (const unsigned char *)(note + 1) + padded(note->n_namesz);
        for (size_t i = 0; is_build_id(note) && i < note->n_descsz; i++)
            tcc_str_printf(out, "%s%02x", i ? "" : " ", id[i]);
        at += sizeof *note + padded(note->n_namesz) + padded(note->n_descsz);
    }
}

static bool has_this_code(const struct dl_phdr_info *info)
{
    uintptr_t here = (uintptr_t)&has_this_code;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && here - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

static int visit(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    if (!has_this_code(info))
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_NOTE)
            print_id(user, (const char *)(info->dlpi_addr + p->p_vaddr), p->p_memsz);
    }
    return 1;
}

void tcc_build_id(tcc_str *out)
{
    tcc_str_puts(out, tcc_version());
    dl_iterate_phdr(visit, out);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/code_object.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { NOTE_TYPE = 1, NOTE_ALIGN = 4 };
static const char note_name[] = "tcc";

/* The fields of a kernel descriptor that are checked (AMDGPU usage, "Kernel Descriptor"): 64 bytes
 * at the symbol that is the kernel's name followed by .kd. */
typedef struct kernel_descriptor {
    uint32_t group_segment_fixed_size; /* shared memory in bytes */
    uint32_t private_segment_fixed_size;
    uint32_t kernarg_size;
    uint8_t rest[52];
} kernel_descriptor;

_Static_assert(sizeof(kernel_descriptor) == 64, "a kernel descriptor's ABI");

/* ---- reading ---------------------------------------------------------------------------- */

typedef struct elf {
    const unsigned char *bytes;
    size_t size;
    Elf64_Ehdr head;
} elf;

static bool is_inside(const elf *e, uint64_t offset, uint64_t n)
{
    return offset <= e->size && n <= e->size - offset;
}

static bool read_at(const elf *e, uint64_t offset, void *out, size_t n)
{
    if (!is_inside(e, offset, n))
        return false;
    memcpy(out, e->bytes + offset, n);
    return true;
}

/* Row i of a table at `offset`, whose size the header may exaggerate. */
static bool read_row(const elf *e, uint64_t offset, size_t i, void *out, size_t n)
{
    return offset <= e->size && read_at(e, offset + i * n, out, n);
}

static bool read_section(const elf *e, size_t i, Elf64_Shdr *out)
{
    return i < e->head.e_shnum && read_row(e, e->head.e_shoff, i, out, sizeof *out) &&
           (out->sh_type == SHT_NOBITS || is_inside(e, out->sh_offset, out->sh_size));
}

static bool read_segment(const elf *e, size_t i, Elf64_Phdr *out)
{
    return i < e->head.e_phnum && read_row(e, e->head.e_phoff, i, out, sizeof *out) &&
           is_inside(e, out->p_offset, out->p_filesz) && out->p_filesz <= out->p_memsz;
}

bool tcc_is_elf(const void *image, size_t size)
{
    return size >= SELFMAG && !memcmp(image, ELFMAG, SELFMAG);
}

/* What is wrong with the file's header; NULL: nothing. */
static const char *open_elf(elf *e, const void *image, size_t size)
{
    *e = (elf){.bytes = image, .size = size};
    if (!tcc_is_elf(image, size))
        return "no ELF file";
    if (!read_at(e, 0, &e->head, sizeof e->head))
        return "its header is cut off";
    if (e->head.e_ident[EI_CLASS] != ELFCLASS64 || e->head.e_ident[EI_DATA] != ELFDATA2LSB)
        return "not a 64-bit little-endian ELF file";
    if ((e->head.e_shnum && e->head.e_shentsize != sizeof(Elf64_Shdr)) ||
        (e->head.e_phnum && e->head.e_phentsize != sizeof(Elf64_Phdr)))
        return "rows of its tables have a wrong size";
    return NULL;
}

/* ---- notes ------------------------------------------------------------------------------ */

static uint64_t padded(uint64_t n)
{
    return (n + NOTE_ALIGN - 1) / NOTE_ALIGN * NOTE_ALIGN;
}

/* Looks for tcc's note in a section; false where it has none. */
static bool find_note(const elf *e, const Elf64_Shdr *section, const char **text, size_t *size)
{
    uint64_t at = section->sh_offset, end = at + section->sh_size;
    Elf64_Nhdr note;
    while (end - at >= sizeof note && read_at(e, at, &note, sizeof note)) {
        uint64_t name = at + sizeof note, desc = name + padded(note.n_namesz);
        if (desc > end || note.n_descsz > end - desc)
            return false;
        if (note.n_type == NOTE_TYPE && note.n_namesz == sizeof note_name &&
            !memcmp(e->bytes + name, note_name, sizeof note_name)) {
            *text = (const char *)e->bytes + desc;
            *size = note.n_descsz;
            return true;
        }
        at = desc + padded(note.n_descsz);
        if (at > end) /* the last one may lack its padding */
            return false;
    }
    return false;
}

const char *tcc_manifest_in_elf(tcc_arena *arena, tcc_diag *diag, const void *image, size_t size)
{
    elf e;
    const char *wrong = open_elf(&e, image, size), *text;
    size_t n;
    for (size_t i = 0; !wrong && i < e.head.e_shnum; i++) {
        Elf64_Shdr section;
        if (!read_section(&e, i, &section))
            wrong = "a section lies outside the file";
        else if (section.sh_type == SHT_NOTE && find_note(&e, &section, &text, &n)) {
            char *json = tcc_arena_alloc(arena, n + 1);
            memcpy(json, text, n);
            json[n] = 0;
            return json;
        }
    }
    tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0}, "no manifest in this image: %s",
              wrong ? wrong : "it has no note from tcc, and none was given");
    return NULL;
}

/* ---- code objects ----------------------------------------------------------------------- */

static const char *what_is_wrong(elf *e, const void *image, size_t size)
{
    const char *wrong = open_elf(e, image, size);
    if (wrong)
        return wrong;
    if (e->head.e_machine != EM_AMDGPU || e->head.e_type != ET_DYN)
        return "not a linked ELF file for AMD's GPUs";
    if (!e->head.e_phnum)
        return "it has no loadable segment";
    for (size_t i = 0; i < e->head.e_phnum; i++) {
        Elf64_Phdr segment;
        if (!read_segment(e, i, &segment))
            return "a segment lies outside the file";
    }
    for (size_t i = 0; i < e->head.e_shnum; i++) {
        Elf64_Shdr section;
        if (!read_section(e, i, &section))
            return "a section lies outside the file";
        if (section.sh_type == SHT_STRTAB &&
            (!section.sh_size || e->bytes[section.sh_offset + section.sh_size - 1]))
            return "its names do not end";
    }
    return e->head.e_shnum && e->head.e_shstrndx >= e->head.e_shnum ? "its sections have no names"
                                                                    : NULL;
}

tcc_status tcc_code_object_check(tcc_diag *diag, const void *image, size_t size)
{
    elf e;
    const char *wrong = what_is_wrong(&e, image, size);
    if (!wrong)
        return TCC_OK;
    tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0}, "bad code object: %s", wrong);
    return TCC_ERR_SYNTAX;
}

/* The file's offset of the bytes loaded at `address`, with n bytes after it. */
static bool find_loaded(const elf *e, uint64_t address, uint64_t n, uint64_t *offset)
{
    Elf64_Phdr s;
    for (size_t i = 0; read_segment(e, i, &s); i++)
        if (s.p_type == PT_LOAD && address >= s.p_vaddr && n <= s.p_filesz &&
            address - s.p_vaddr <= s.p_filesz - n) {
            *offset = s.p_offset + (address - s.p_vaddr);
            return true;
        }
    return false;
}

static bool is_named(const elf *e, const Elf64_Shdr *names, uint32_t at, const char *name)
{
    size_t n = strlen(name) + 1;
    return at < names->sh_size && n <= names->sh_size - at &&
           !memcmp(e->bytes + names->sh_offset + at, name, n);
}

static bool find_symbol(const elf *e, const char *name, Elf64_Sym *out)
{
    Elf64_Shdr table, names;
    for (size_t i = 0; read_section(e, i, &table); i++) {
        if (table.sh_type != SHT_DYNSYM || table.sh_entsize != sizeof *out ||
            !read_section(e, table.sh_link, &names) || names.sh_type != SHT_STRTAB)
            continue;
        for (uint64_t j = 0; j < table.sh_size / sizeof *out; j++)
            if (read_row(e, table.sh_offset, j, out, sizeof *out) &&
                is_named(e, &names, out->st_name, name))
                return true;
    }
    return false;
}

static bool is_address(const tcc_param *p)
{
    return p->kind == TCC_PARAM_POINTER || p->kind == TCC_PARAM_WORKSPACE;
}

/* Bytes of the parameters, each at a multiple of its size, in words: LLVM's size of a kernel's
 * arguments. */
static uint32_t parameter_bytes(const tcc_entry *entry)
{
    uint32_t bytes = 0;
    for (size_t i = 0; i < entry->n_params; i++) {
        uint32_t n = is_address(&entry->params[i]) ? 8 : 4;
        bytes = (bytes + n - 1) / n * n + n;
    }
    return bytes;
}

tcc_status tcc_code_object_check_entry(tcc_diag *diag, const void *image, size_t size,
                                       const tcc_entry *entry)
{
    char name[512];
    elf e;
    Elf64_Sym symbol;
    uint64_t offset;
    kernel_descriptor d;
    int n = snprintf(name, sizeof name, "%s.kd", entry->name);
    if (open_elf(&e, image, size) || n < 0 || (size_t)n >= sizeof name ||
        !find_symbol(&e, name, &symbol) || !find_loaded(&e, symbol.st_value, sizeof d, &offset) ||
        !read_at(&e, offset, &d, sizeof d)) {
        tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0},
                  "bad code object: no descriptor of kernel "
                  "'%s'",
                  entry->name);
        return TCC_ERR_SYNTAX;
    }
    uint32_t params = parameter_bytes(entry);
    if (d.kernarg_size == params && d.group_segment_fixed_size == entry->smem_bytes)
        return TCC_OK;
    bool other_params = d.kernarg_size != params;
    tcc_error(diag, TCC_ERR_SYNTAX, (tcc_loc){0},
              "the manifest is not this code object's: '%s' has "
              "%u bytes of %s, and %u in the manifest",
              entry->name, other_params ? d.kernarg_size : d.group_segment_fixed_size,
              other_params ? "parameters" : "shared memory",
              other_params ? params : entry->smem_bytes);
    return TCC_ERR_SYNTAX;
}

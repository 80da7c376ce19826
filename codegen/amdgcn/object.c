/* "System V Application Binary Interface, Object Files", and LLVM's "User Guide for AMDGPU
 * Backend", Code Object.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/amdgcn/object.h"

#include <string.h>

/* More than LLVM makes of any module. */
enum { MAX_SECTIONS = 1024, MAX_ALIGN = 4096 };

typedef struct reader {
    const uint8_t *data;
    size_t size;
    tcc_object *o;
    tcc_arena *arena;
    tcc_diag *diag;
} reader;

bool tcc_object_error(tcc_diag *diag, const char *what, const char *name)
{
    tcc_error(diag, TCC_ERR_INTERNAL, (tcc_loc){0, 0}, "object: %s%s%s%s", what, *name ? " '" : "",
              name, *name ? "'" : "");
    return false;
}

static bool fail(const reader *r, const char *what)
{
    return tcc_object_error(r->diag, what, "");
}

static bool is_inside(const reader *r, uint64_t offset, uint64_t n)
{
    return offset <= r->size && n <= r->size - offset;
}

static bool read_header(reader *r)
{
    Elf64_Ehdr *h = &r->o->header;
    if (!is_inside(r, 0, sizeof *h))
        return fail(r, "it ends in its header");
    memcpy(h, r->data, sizeof *h);
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 || h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != ELFDATA2LSB)
        return fail(r, "it is not a 64-bit little-endian ELF file");
    if (h->e_machine != EM_AMDGPU || h->e_type != ET_REL)
        return fail(r, "it is not a relocatable object for an AMD GPU");
    if (h->e_shentsize != sizeof(Elf64_Shdr) || !h->e_shnum || h->e_shnum > MAX_SECTIONS ||
        h->e_shstrndx >= h->e_shnum)
        return fail(r, "its section headers are malformed");
    if (!is_inside(r, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
        return fail(r, "its section headers are outside it");
    return true;
}

static bool read_sections(reader *r)
{
    tcc_object *o = r->o;
    o->n_sections = o->header.e_shnum;
    o->sections = TCC_NEW_ARRAY(r->arena, tcc_object_section, o->n_sections);
    for (size_t i = 0; i < o->n_sections; i++) {
        Elf64_Shdr *h = &o->sections[i].header;
        memcpy(h, r->data + o->header.e_shoff + i * sizeof *h, sizeof *h);
        if (!h->sh_addralign)
            h->sh_addralign = 1;
        if (h->sh_addralign > MAX_ALIGN || h->sh_addralign & (h->sh_addralign - 1))
            return fail(r, "a section has an alignment that is not a power of two up to a page");
        if (h->sh_type == SHT_NOBITS || h->sh_type == SHT_NULL)
            continue;
        if (!is_inside(r, h->sh_offset, h->sh_size))
            return fail(r, "a section is outside it");
        o->sections[i].data = r->data + h->sh_offset;
    }
    return true;
}

/* A string of a section of strings; NULL, reported, when it is none. */
static const char *string_at(const reader *r, size_t section, uint64_t offset)
{
    const tcc_object_section *s = &r->o->sections[section];
    if (section < r->o->n_sections && s->header.sh_type == SHT_STRTAB &&
        offset < s->header.sh_size && !s->data[s->header.sh_size - 1])
        return (const char *)s->data + offset;
    fail(r, "a name is outside its section of strings");
    return NULL;
}

static bool name_sections(reader *r)
{
    for (size_t i = 0; i < r->o->n_sections; i++) {
        tcc_object_section *s = &r->o->sections[i];
        s->name = string_at(r, r->o->header.e_shstrndx, s->header.sh_name);
        if (!s->name)
            return false;
    }
    return true;
}

/* Elements of a section that is an array of them; false, reported, when it is none. */
static bool count_elems(const reader *r, const tcc_object_section *s, size_t elem, size_t *n)
{
    if (s->header.sh_entsize != elem || s->header.sh_size % elem)
        return fail(r, "a section's size is not a multiple of its elements'");
    *n = s->header.sh_size / elem;
    return true;
}

static bool read_symbol(reader *r, const tcc_object_section *table, size_t i)
{
    tcc_object_symbol *s = &r->o->symbols[i];
    memcpy(&s->sym, table->data + i * sizeof s->sym, sizeof s->sym);
    s->name = string_at(r, table->header.sh_link, s->sym.st_name);
    if (!s->name)
        return false;
    if (s->sym.st_shndx >= r->o->n_sections && s->sym.st_shndx != SHN_ABS)
        return tcc_object_error(r->diag, "no section has symbol", s->name);
    return true;
}

static bool read_symbols(reader *r)
{
    for (size_t i = 0; i < r->o->n_sections; i++) {
        const tcc_object_section *s = &r->o->sections[i];
        if (s->header.sh_type != SHT_SYMTAB)
            continue;
        if (r->o->symbols)
            return fail(r, "it has two symbol tables");
        if (!count_elems(r, s, sizeof(Elf64_Sym), &r->o->n_symbols))
            return false;
        r->o->symbols = TCC_NEW_ARRAY(r->arena, tcc_object_symbol, r->o->n_symbols);
        for (size_t k = 0; k < r->o->n_symbols; k++)
            if (!read_symbol(r, s, k))
                return false;
    }
    return r->o->symbols || fail(r, "it has no symbol table");
}

/* Adds the relocations of one section, of which `at` are there already. */
static bool read_relocations_of(reader *r, const tcc_object_section *s, size_t at)
{
    size_t n;
    if (!count_elems(r, s, sizeof(Elf64_Rela), &n))
        return false;
    if (s->header.sh_info >= r->o->n_sections)
        return fail(r, "relocations apply to no section");
    const tcc_object_section *target = &r->o->sections[s->header.sh_info];
    for (size_t i = 0; i < n; i++) {
        Elf64_Rela rela;
        memcpy(&rela, s->data + i * sizeof rela, sizeof rela);
        tcc_object_relocation *out = &r->o->relocations[at + i];
        *out = (tcc_object_relocation){s->header.sh_info, (unsigned)ELF64_R_TYPE(rela.r_info),
                                       (unsigned)ELF64_R_SYM(rela.r_info), rela.r_offset,
                                       rela.r_addend};
        if (out->symbol >= r->o->n_symbols)
            return fail(r, "a relocation names no symbol");
        if (!target->data || out->place >= target->header.sh_size)
            return fail(r, "a relocation is outside its section");
    }
    return true;
}

static bool read_relocations(reader *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->o->n_sections; i++) {
        const Elf64_Shdr *h = &r->o->sections[i].header;
        if (h->sh_type == SHT_REL)
            return fail(r, "it has relocations without addends");
        if (h->sh_type == SHT_RELA)
            n += h->sh_size / sizeof(Elf64_Rela);
    }
    r->o->relocations = TCC_NEW_ARRAY(r->arena, tcc_object_relocation, n);
    for (size_t i = 0; i < r->o->n_sections; i++) {
        const tcc_object_section *s = &r->o->sections[i];
        if (s->header.sh_type != SHT_RELA)
            continue;
        if (!read_relocations_of(r, s, r->o->n_relocations))
            return false;
        r->o->n_relocations += s->header.sh_size / sizeof(Elf64_Rela);
    }
    return true;
}

bool tcc_object_read(tcc_object *o, tcc_arena *arena, const void *data, size_t size, tcc_diag *diag)
{
    *o = (tcc_object){0};
    reader r = {data, size, o, arena, diag};
    return read_header(&r) && read_sections(&r) && name_sections(&r) && read_symbols(&r) &&
           read_relocations(&r);
}

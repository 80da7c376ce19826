/* Relocatable objects of LLVM's to one code object that can be loaded, laid out as ld.lld does it:
 *
 *     LOAD r    ELF header, program headers, .note .dynsym .gnu.hash .hash .dynstr .rodata
 *     LOAD rx   .text
 *     LOAD rw   .dynamic, which is read-only after loading
 *     not loaded: what debuggers read, .note.tcc, .symtab and its strings
 *
 * LLVM's "User Guide for AMDGPU Backend", Code Object; "System V Application Binary Interface",
 * Dynamic Linking; for .gnu.hash see codegen/amdgcn/symbols.c.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/amdgcn/link.h"
#include "codegen/codegen.h"

enum { PAGE = 4096, MAX_OUTPUT_BYTES = 1 << 30 };

/* LLVM's "User Guide for AMDGPU Backend", Relocation Records. */
enum {
    R_AMDGPU_NONE = 0,
    R_AMDGPU_ABS32_LO = 1,
    R_AMDGPU_ABS32_HI = 2,
    R_AMDGPU_ABS64 = 3,
    R_AMDGPU_REL32 = 4,
    R_AMDGPU_REL64 = 5,
    R_AMDGPU_ABS32 = 6,
    R_AMDGPU_REL32_LO = 10,
    R_AMDGPU_REL32_HI = 11
};

static const tcc_link_section begins[] = {
    [TCC_LINK_NONE] = {.name = ""},
    [TCC_LINK_NOTE] = {".note", SHT_NOTE, SHF_ALLOC, 4, .is_loaded = true},
    [TCC_LINK_DYNSYM] = {".dynsym", SHT_DYNSYM, SHF_ALLOC, 8, sizeof(Elf64_Sym), .is_loaded = true,
                         .link = TCC_LINK_DYNSTR, .info = 1},
    [TCC_LINK_GNU_HASH] = {".gnu.hash", SHT_GNU_HASH, SHF_ALLOC, 8, .is_loaded = true,
                           .link = TCC_LINK_DYNSYM},
    [TCC_LINK_HASH] = {".hash", SHT_HASH, SHF_ALLOC, 4, 4, .is_loaded = true,
                       .link = TCC_LINK_DYNSYM},
    [TCC_LINK_DYNSTR] = {".dynstr", SHT_STRTAB, SHF_ALLOC, 1, .is_loaded = true},
    [TCC_LINK_RODATA] = {".rodata", SHT_PROGBITS, SHF_ALLOC, 1, .is_loaded = true},
    [TCC_LINK_TEXT] = {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 1, .is_loaded = true},
    [TCC_LINK_DYNAMIC] = {".dynamic", SHT_DYNAMIC, SHF_WRITE | SHF_ALLOC, 8, sizeof(Elf64_Dyn),
                          .is_loaded = true, .link = TCC_LINK_DYNSTR},
    [TCC_LINK_RELRO_PADDING] = {".relro_padding", SHT_NOBITS, SHF_WRITE | SHF_ALLOC, 1,
                                .is_loaded = true},
};

static uint64_t align_up(uint64_t x, uint64_t align)
{
    return (x + align - 1) / align * align;
}

static bool fail(const tcc_link *k, const char *what, const char *name)
{
    return tcc_object_error(k->diag, what, name);
}

/* ---- sections --------------------------------------------------------------------------- */

tcc_link_section *tcc_link_add_section(tcc_link *k, tcc_link_section begin)
{
    TCC_PUSH(k->arena, &k->sections, begin);
    return &k->sections.data[k->sections.len - 1];
}

/* The section of the output that receives a section of an object; TCC_LINK_NONE if it is left out,
 * -1 if it must not be. Notes are merged: notes.c. */
static int destination(const tcc_object_section *s)
{
    const Elf64_Shdr *h = &s->header;
    if (!(h->sh_flags & SHF_ALLOC) || h->sh_type == SHT_NOTE)
        return TCC_LINK_NONE;
    if (h->sh_type != SHT_PROGBITS || h->sh_flags & SHF_WRITE)
        return h->sh_size ? -1 : TCC_LINK_NONE;
    return h->sh_flags & SHF_EXECINSTR ? TCC_LINK_TEXT : TCC_LINK_RODATA;
}

/* What is not loaded and yet of use, line tables. */
static bool is_kept(const tcc_object_section *s)
{
    return s->header.sh_type == SHT_PROGBITS && !(s->header.sh_flags & SHF_ALLOC) &&
           s->header.sh_size && !strncmp(s->name, ".debug_", strlen(".debug_"));
}

/* Appends a section of the object to one of the output. */
static void place(tcc_link *k, tcc_link_input *input, size_t i, size_t to)
{
    const tcc_object_section *from = &input->object.sections[i];
    tcc_link_section *out = &k->sections.data[to];
    uint64_t align = from->header.sh_addralign;
    if (out->align < align)
        out->align = align;
    out->size = align_up(out->size, align);
    input->placed[i] = (tcc_link_place){(unsigned)to, out->size};
    out->size += from->header.sh_size;
}

/* The section of the output for what is not loaded of this name. */
static size_t section_named(tcc_link *k, const tcc_object_section *s)
{
    for (size_t i = TCC_LINK_RELRO_PADDING + 1; i < k->sections.len; i++)
        if (!strcmp(k->sections.data[i].name, s->name))
            return i;
    tcc_link_add_section(k, (tcc_link_section){.name = s->name,
                                               .type = SHT_PROGBITS,
                                               .flags = s->header.sh_flags,
                                               .align = 1,
                                               .entsize = s->header.sh_entsize});
    return k->sections.len - 1;
}

static bool place_sections(tcc_link *k, tcc_link_input *input)
{
    input->placed = TCC_NEW_ARRAY(k->arena, tcc_link_place, input->object.n_sections);
    bool has_code = false;
    for (size_t i = 0; i < input->object.n_sections; i++) {
        const tcc_object_section *s = &input->object.sections[i];
        int to = destination(s);
        if (to < 0)
            return fail(k, "it has writable data, in section", s->name);
        if (is_kept(s))
            to = (int)section_named(k, s);
        if (to != TCC_LINK_NONE)
            place(k, input, i, (size_t)to);
        has_code = has_code || (to == TCC_LINK_TEXT && s->header.sh_size);
    }
    return has_code || fail(k, "it has no code", "");
}

/* Between functions is what LLVM puts after them: the instruction that never runs. */
static uint8_t *allocate(const tcc_link *k, const tcc_link_section *s)
{
    const uint32_t s_code_end = 0xbf9f0000;
    uint8_t *data = tcc_arena_alloc(k->arena, s->size);
    for (uint64_t i = 0; s->flags & SHF_EXECINSTR && i + sizeof s_code_end <= s->size;
         i += sizeof s_code_end)
        memcpy(data + i, &s_code_end, sizeof s_code_end);
    return data;
}

/* Copies an object's bytes to where they have been placed. */
static void fill_sections(tcc_link *k, const tcc_link_input *input)
{
    for (size_t i = 0; i < input->object.n_sections; i++) {
        const tcc_object_section *from = &input->object.sections[i];
        tcc_link_section *out = &k->sections.data[input->placed[i].section];
        if (input->placed[i].section == TCC_LINK_NONE || !from->header.sh_size)
            continue;
        if (!out->data)
            out->data = allocate(k, out);
        memcpy(out->data + input->placed[i].offset, from->data, from->header.sh_size);
    }
}

/* ---- layout ------------------------------------------------------------------------------ */

enum { N_SEGMENTS = 8 };

/* A page of the file may be mapped with two kinds of rights: a segment begins on the next page of
 * memory, as far into it as into its page of the file. */
static bool begins_segment(size_t section)
{
    return section == TCC_LINK_TEXT || section == TCC_LINK_DYNAMIC;
}

/* The bytes of .dynamic are known before its values are. */
enum { N_DYNAMIC = 7 };

static bool lay_out(tcc_link *k)
{
    uint64_t addr = sizeof(Elf64_Ehdr) + N_SEGMENTS * sizeof(Elf64_Phdr), offset = addr;
    for (size_t i = 1; i < k->sections.len; i++) {
        tcc_link_section *s = &k->sections.data[i];
        if (s->is_loaded) {
            if (begins_segment(i))
                addr = align_up(addr, PAGE) + addr % PAGE;
            addr = align_up(addr, s->align);
            if (i == TCC_LINK_RELRO_PADDING)
                s->size = align_up(addr, PAGE) - addr;
            offset += (addr - offset) % PAGE;
            s->addr = addr;
            addr += s->size;
        }
        offset = align_up(offset, s->align);
        s->offset = offset;
        if (s->type != SHT_NOBITS)
            offset += s->size;
        if (addr > MAX_OUTPUT_BYTES || offset > MAX_OUTPUT_BYTES)
            return fail(k, "it is too large", "");
    }
    k->size = align_up(offset, sizeof(Elf64_Xword)) + k->sections.len * sizeof(Elf64_Shdr);
    return true;
}

uint64_t tcc_link_address(const tcc_link *k, const tcc_link_input *input, const Elf64_Sym *s,
                          unsigned *section)
{
    *section = s->st_shndx == SHN_ABS ? TCC_LINK_NONE : input->placed[s->st_shndx].section;
    if (*section == TCC_LINK_NONE)
        return s->st_value;
    return k->sections.data[*section].addr + input->placed[s->st_shndx].offset + s->st_value;
}

/* ---- relocations ------------------------------------------------------------------------- */

typedef struct relocation_kind {
    unsigned type, bytes, shift;
    bool is_relative, is_checked;
} relocation_kind;

static const relocation_kind kinds[] = {
    {R_AMDGPU_ABS32_LO, 4, 0, false, false}, {R_AMDGPU_ABS32_HI, 4, 32, false, false},
    {R_AMDGPU_ABS64, 8, 0, false, false},    {R_AMDGPU_REL32, 4, 0, true, true},
    {R_AMDGPU_REL64, 8, 0, true, false},     {R_AMDGPU_ABS32, 4, 0, false, true},
    {R_AMDGPU_REL32_LO, 4, 0, true, false},  {R_AMDGPU_REL32_HI, 4, 32, true, false},
};

static const relocation_kind *kind_of(unsigned type)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].type == type)
            return &kinds[i];
    return NULL;
}

/* 32 bits hold it, signed or, an address, unsigned. */
static bool fits(int64_t v, const relocation_kind *kind)
{
    return v >= INT32_MIN && v <= (kind->is_relative ? INT32_MAX : (int64_t)UINT32_MAX);
}

static bool relocate(tcc_link *k, const tcc_link_input *input, const tcc_object_relocation *r)
{
    const tcc_link_place *at = &input->placed[r->section];
    const tcc_object_symbol *symbol = &input->object.symbols[r->symbol];
    const relocation_kind *kind = kind_of(r->type);
    if (r->type == R_AMDGPU_NONE || at->section == TCC_LINK_NONE)
        return true;
    tcc_link_section *out = &k->sections.data[at->section];
    unsigned section;
    if (symbol->sym.st_shndx == SHN_UNDEF)
        return fail(k, "undefined symbol", symbol->name);
    int64_t value =
        (int64_t)(tcc_link_address(k, input, &symbol->sym, &section) + (uint64_t)r->addend);
    if (section == TCC_LINK_NONE && symbol->sym.st_shndx != SHN_ABS)
        return fail(k, "a relocation of something left out, symbol", symbol->name);
    if (!kind || (out->is_loaded && !kind->is_relative && symbol->sym.st_shndx != SHN_ABS))
        return fail(k, "a relocation that only loading could apply, of symbol", symbol->name);
    if (r->place + kind->bytes > input->object.sections[r->section].header.sh_size)
        return fail(k, "a relocation is outside its section, of symbol", symbol->name);
    uint64_t place = at->offset + r->place;
    if (kind->is_relative)
        value = (int64_t)((uint64_t)value - out->addr - place);
    if (kind->is_checked && !fits(value, kind))
        return fail(k, "a relocation is out of range, of symbol", symbol->name);
    value >>= kind->shift;
    memcpy(out->data + place, &value, kind->bytes);
    return true;
}

/* ---- what is the linker's own ------------------------------------------------------------ */

static void add_tcc_note(tcc_link *k, const char *manifest)
{
    static const char owner[] = "tcc";
    size_t n = strlen(manifest);
    const Elf64_Nhdr header = {sizeof owner, (Elf64_Word)n, TCC_NOTE_MANIFEST};
    size_t size = sizeof header + sizeof owner + align_up(n, 4);
    uint8_t *data = tcc_arena_alloc(k->arena, size);
    memcpy(data, &header, sizeof header);
    memcpy(data + sizeof header, owner, sizeof owner);
    memcpy(data + sizeof header + sizeof owner, manifest, n);
    tcc_link_add_section(
        k, (tcc_link_section){
               .name = TCC_NOTE_SECTION, .type = SHT_NOTE, .align = 4, .data = data, .size = size});
}

static void fill_dynamic(tcc_link *k)
{
    const tcc_link_section *s = k->sections.data;
    const Elf64_Dyn entries[N_DYNAMIC] = {{DT_SYMTAB, {s[TCC_LINK_DYNSYM].addr}},
                                          {DT_SYMENT, {sizeof(Elf64_Sym)}},
                                          {DT_STRTAB, {s[TCC_LINK_DYNSTR].addr}},
                                          {DT_STRSZ, {s[TCC_LINK_DYNSTR].size}},
                                          {DT_GNU_HASH, {s[TCC_LINK_GNU_HASH].addr}},
                                          {DT_HASH, {s[TCC_LINK_HASH].addr}},
                                          {DT_NULL, {0}}};
    memcpy(s[TCC_LINK_DYNAMIC].data, entries, sizeof entries);
}

/* A program header for sections first to last. */
static Elf64_Phdr segment(const tcc_link *k, Elf64_Word type, Elf64_Word flags, uint64_t align,
                          size_t first, size_t last)
{
    const tcc_link_section *a = &k->sections.data[first], *b = &k->sections.data[last];
    uint64_t in_file = b->type == SHT_NOBITS ? 0 : b->size;
    return (Elf64_Phdr){.p_type = type,
                        .p_flags = flags,
                        .p_offset = a->offset,
                        .p_vaddr = a->addr,
                        .p_paddr = a->addr,
                        .p_filesz = b->offset + in_file - a->offset,
                        .p_memsz = b->addr + b->size - a->addr,
                        .p_align = align};
}

/* The section TCC_LINK_NONE is at 0, where the file's headers are. */
static void write_headers(const tcc_link *k, uint8_t *out)
{
    enum { RELRO = TCC_LINK_RELRO_PADDING, STACK_FLAGS = PF_R | PF_W };
    const uint64_t headers = N_SEGMENTS * sizeof(Elf64_Phdr), at = sizeof(Elf64_Ehdr);
    const Elf64_Phdr segments[N_SEGMENTS] = {
        {PT_PHDR, PF_R, at, at, at, headers, headers, 8},
        segment(k, PT_LOAD, PF_R, PAGE, TCC_LINK_NONE, TCC_LINK_RODATA),
        segment(k, PT_LOAD, PF_R | PF_X, PAGE, TCC_LINK_TEXT, TCC_LINK_TEXT),
        segment(k, PT_LOAD, PF_R | PF_W, PAGE, TCC_LINK_DYNAMIC, RELRO),
        segment(k, PT_DYNAMIC, PF_R | PF_W, 8, TCC_LINK_DYNAMIC, TCC_LINK_DYNAMIC),
        segment(k, PT_GNU_RELRO, PF_R, 1, TCC_LINK_DYNAMIC, RELRO),
        {PT_GNU_STACK, STACK_FLAGS, 0, 0, 0, 0, 0, 0},
        segment(k, PT_NOTE, PF_R, 4, TCC_LINK_NOTE, TCC_LINK_NOTE),
    };
    Elf64_Ehdr h = k->inputs[0].object.header;
    h.e_type = ET_DYN;
    h.e_entry = 0;
    h.e_ehsize = sizeof h;
    h.e_phoff = sizeof h;
    h.e_phentsize = sizeof(Elf64_Phdr);
    h.e_phnum = N_SEGMENTS;
    h.e_shoff = k->size - k->sections.len * sizeof(Elf64_Shdr);
    h.e_shnum = (Elf64_Half)k->sections.len;
    h.e_shstrndx = (Elf64_Half)k->shstrtab;
    memcpy(out, &h, sizeof h);
    memcpy(out + h.e_phoff, segments, sizeof segments);
    for (size_t i = 0; i < k->sections.len; i++) {
        const tcc_link_section *s = &k->sections.data[i];
        const Elf64_Shdr header = {s->name_offset, s->type, s->flags, s->addr,  s->offset,
                                   s->size,        s->link, s->info,  s->align, s->entsize};
        memcpy(out + h.e_shoff + i * sizeof header, &header, sizeof header);
    }
}

/* ---- linking ------------------------------------------------------------------------------ */

/* One code object is for one GPU. */
static bool read_inputs(tcc_link *k, const tcc_bytes *objects)
{
    for (size_t i = 0; i < k->n_inputs; i++) {
        tcc_object *o = &k->inputs[i].object;
        if (!tcc_object_read(o, k->arena, objects[i].data, objects[i].size, k->diag))
            return false;
        const Elf64_Ehdr *first = &k->inputs[0].object.header;
        if (o->header.e_flags != first->e_flags ||
            memcmp(o->header.e_ident, first->e_ident, sizeof first->e_ident) != 0)
            return fail(k, "it is for another GPU than the one before it", "");
    }
    return true;
}

static bool link_inputs(tcc_link *k, const char *manifest)
{
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        tcc_link_add_section(k, begins[i]);
    for (size_t i = 0; i < k->n_inputs; i++)
        if (!place_sections(k, &k->inputs[i]))
            return false;
    for (size_t i = 0; i < k->n_inputs; i++)
        fill_sections(k, &k->inputs[i]);
    tcc_link_section *dynamic = &k->sections.data[TCC_LINK_DYNAMIC];
    dynamic->size = N_DYNAMIC * sizeof(Elf64_Dyn);
    dynamic->data = tcc_arena_alloc(k->arena, dynamic->size);
    if (manifest)
        add_tcc_note(k, manifest);
    if (!tcc_link_merge_notes(k) || !tcc_link_collect_symbols(k) || !lay_out(k))
        return false;
    for (size_t i = 0; i < k->n_inputs; i++)
        for (size_t r = 0; r < k->inputs[i].object.n_relocations; r++)
            if (!relocate(k, &k->inputs[i], &k->inputs[i].object.relocations[r]))
                return false;
    tcc_link_fill_symbols(k);
    fill_dynamic(k);
    return true;
}

static tcc_status run(tcc_link *k, const tcc_bytes *objects, const char *manifest, void **out,
                      size_t *size)
{
    if (!read_inputs(k, objects) || !link_inputs(k, manifest))
        return TCC_ERR_INTERNAL;
    uint8_t *image = calloc(1, k->size);
    if (!image)
        return TCC_ERR_MEMORY;
    for (size_t i = 0; i < k->sections.len; i++) {
        const tcc_link_section *s = &k->sections.data[i];
        if (s->data)
            memcpy(image + s->offset, s->data, s->size);
    }
    write_headers(k, image);
    *out = image;
    *size = k->size;
    return TCC_OK;
}

tcc_status tcc_amdgcn_link(const tcc_bytes *objects, size_t n, const char *manifest, tcc_diag *diag,
                           void **out, size_t *size)
{
    jmp_buf oom;
    *out = NULL;
    *size = 0;
    tcc_arena *arena = tcc_arena_create(NULL);
    if (!arena)
        return TCC_ERR_MEMORY;
    if (setjmp(oom)) {
        tcc_arena_destroy(arena);
        return TCC_ERR_MEMORY;
    }
    tcc_arena_set_oom(arena, &oom);
    tcc_link *k = TCC_NEW(arena, tcc_link);
    k->arena = arena;
    k->diag = diag;
    k->n_inputs = n;
    k->inputs = TCC_NEW_ARRAY(arena, tcc_link_input, n);
    tcc_status status = run(k, objects, manifest, out, size);
    tcc_arena_destroy(arena);
    return status;
}

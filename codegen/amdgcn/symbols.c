/* A code object's symbols: the tables .dynsym and .symtab, their strings, and the two hash tables
 * by which a loader finds a name. .hash is the "System V Application Binary Interface"'s; .gnu.hash
 * begins with the numbers of buckets, of symbols left out, of words of a Bloom filter, and a shift.
 * The filter's words follow, the buckets (each the first of its symbols, which lie together), and
 * for each symbol its hash, the lowest bit of which says that it is its bucket's last.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <stdlib.h>
#include <string.h>

#include "codegen/amdgcn/link.h"

enum { BLOOM_SHIFT = 26, BLOOM_BITS_PER_SYMBOL = 12, SYMBOLS_PER_BUCKET = 4, WORD_BITS = 64 };

static const char dynamic_name[] = "_DYNAMIC";

static uint32_t gnu_hash(const char *name)
{
    uint32_t h = 5381;
    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

static uint32_t sysv_hash(const char *name)
{
    uint32_t h = 0;
    for (; *name; name++) {
        h = (h << 4) + (unsigned char)*name;
        h ^= h >> 24 & 0xf0;
    }
    return h & 0x0fffffff;
}

/* ---- which symbols ------------------------------------------------------------------------ */

static bool is_local(const Elf64_Sym *s)
{
    return ELF64_ST_BIND(s->st_info) == STB_LOCAL;
}

/* Sections are others in the output, and have no names. */
static bool is_kept(const tcc_link_input *input, const tcc_object_symbol *s)
{
    unsigned char type = ELF64_ST_TYPE(s->sym.st_info);
    if (s->sym.st_shndx == SHN_UNDEF || type == STT_SECTION || type == STT_FILE)
        return false;
    return s->sym.st_shndx == SHN_ABS || input->placed[s->sym.st_shndx].section != TCC_LINK_NONE;
}

static bool is_exported(const Elf64_Sym *s)
{
    unsigned char visibility = ELF64_ST_VISIBILITY(s->st_other);
    return !is_local(s) && (visibility == STV_DEFAULT || visibility == STV_PROTECTED);
}

static size_t next_power_of_two(size_t x)
{
    size_t p = 1;
    while (p <= x)
        p *= 2;
    return p;
}

/* Orders the exported ones by their bucket, keeping the objects' order in each. */
static void sort_into_buckets(tcc_link *k)
{
    size_t n = 0;
    for (size_t b = 0; b < k->n_buckets; b++)
        for (size_t i = 0; i < k->kept.len; i++) {
            const tcc_object_symbol *s = k->kept.data[i].symbol;
            if (is_exported(&s->sym) && gnu_hash(s->name) % k->n_buckets == b)
                k->exported[n++] = k->kept.data[i];
        }
}

/* ---- sizes -------------------------------------------------------------------------------- */

static void reserve(tcc_link *k, size_t section, size_t size)
{
    tcc_link_section *s = &k->sections.data[section];
    s->size = size;
    s->data = tcc_arena_alloc(k->arena, size);
}

static size_t add_table(tcc_link *k, const char *name, Elf64_Word type, uint64_t align,
                        uint64_t entsize, size_t size)
{
    tcc_link_add_section(
        k, (tcc_link_section){.name = name, .type = type, .align = align, .entsize = entsize});
    reserve(k, k->sections.len - 1, size);
    return k->sections.len - 1;
}

static void reserve_dynamic(tcc_link *k, size_t names)
{
    size_t n = k->n_exported + 1;
    reserve(k, TCC_LINK_DYNSYM, n * sizeof(Elf64_Sym));
    reserve(k, TCC_LINK_DYNSTR, names);
    reserve(k, TCC_LINK_HASH, (2 + n + n) * sizeof(uint32_t));
    reserve(k, TCC_LINK_GNU_HASH,
            4 * sizeof(uint32_t) + k->n_bloom_words * sizeof(uint64_t) +
                (k->n_buckets + k->n_exported) * sizeof(uint32_t));
}

static bool collect(tcc_link *k, const tcc_link_input *input)
{
    for (size_t i = 1; i < input->object.n_symbols; i++) {
        const tcc_object_symbol *s = &input->object.symbols[i];
        if (s->sym.st_shndx == SHN_UNDEF && !is_local(&s->sym))
            return tcc_object_error(k->diag, "undefined symbol", s->name);
        if (is_kept(input, s))
            TCC_PUSH(k->arena, &k->kept, (tcc_link_symbol){input, s});
    }
    return true;
}

/* No two may have one name. */
static bool check_exported(const tcc_link *k)
{
    for (size_t i = 0; i < k->n_exported; i++)
        for (size_t j = 0; j < i; j++)
            if (!strcmp(k->exported[i].symbol->name, k->exported[j].symbol->name))
                return tcc_object_error(k->diag, "two symbols are named",
                                        k->exported[i].symbol->name);
    return true;
}

bool tcc_link_collect_symbols(tcc_link *k)
{
    size_t dynamic_names = 1, names = 1 + sizeof dynamic_name;
    for (size_t i = 0; i < k->n_inputs; i++)
        if (!collect(k, &k->inputs[i]))
            return false;
    for (size_t i = 0; i < k->kept.len; i++) {
        const tcc_object_symbol *s = k->kept.data[i].symbol;
        names += strlen(s->name) + 1;
        if (is_exported(&s->sym)) {
            k->n_exported++;
            dynamic_names += strlen(s->name) + 1;
        }
    }
    k->n_buckets = k->n_exported / SYMBOLS_PER_BUCKET ? k->n_exported / SYMBOLS_PER_BUCKET : 1;
    k->n_bloom_words =
        k->n_exported ? next_power_of_two(k->n_exported * BLOOM_BITS_PER_SYMBOL / WORD_BITS) : 1;
    k->exported = TCC_NEW_ARRAY(k->arena, tcc_link_symbol, k->n_exported);
    sort_into_buckets(k);
    if (!check_exported(k))
        return false;
    reserve_dynamic(k, dynamic_names);

    k->symtab = add_table(k, ".symtab", SHT_SYMTAB, 8, sizeof(Elf64_Sym),
                          (k->kept.len + 2) * sizeof(Elf64_Sym));
    size_t section_names = sizeof ".shstrtab" + sizeof ".strtab";
    for (size_t i = 0; i < k->sections.len; i++)
        section_names += strlen(k->sections.data[i].name) + 1;
    k->shstrtab = add_table(k, ".shstrtab", SHT_STRTAB, 1, 0, section_names);
    k->strtab = add_table(k, ".strtab", SHT_STRTAB, 1, 0, names);
    k->sections.data[k->symtab].link = (Elf64_Word)k->strtab;
    return true;
}

/* ---- contents ----------------------------------------------------------------------------- */

/* A symbol as it is in the output, with its name at *name of `strings`, which moves on. */
static Elf64_Sym output_symbol(const tcc_link *k, const tcc_link_symbol *s, uint8_t *strings,
                               size_t *name)
{
    Elf64_Sym out = s->symbol->sym;
    unsigned section;
    size_t n = strlen(s->symbol->name) + 1;
    out.st_value = tcc_link_address(k, s->input, &s->symbol->sym, &section);
    if (section != TCC_LINK_NONE)
        out.st_shndx = (Elf64_Half)section;
    out.st_name = (Elf64_Word)*name;
    memcpy(strings + *name, s->symbol->name, n);
    *name += n;
    return out;
}

static void fill_dynsym(tcc_link *k)
{
    uint8_t *table = k->sections.data[TCC_LINK_DYNSYM].data;
    uint8_t *strings = k->sections.data[TCC_LINK_DYNSTR].data;
    size_t name = 1;
    for (size_t i = 0; i < k->n_exported; i++) {
        const Elf64_Sym out = output_symbol(k, &k->exported[i], strings, &name);
        memcpy(table + (i + 1) * sizeof out, &out, sizeof out);
    }
}

/* Local symbols come first, as the format needs it. */
static void fill_symtab(tcc_link *k)
{
    tcc_link_section *symtab = &k->sections.data[k->symtab];
    uint8_t *strings = k->sections.data[k->strtab].data;
    const tcc_object_symbol dynamic = {.sym = {.st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE),
                                               .st_other = STV_HIDDEN,
                                               .st_shndx = SHN_ABS,
                                               .st_value = k->sections.data[TCC_LINK_DYNAMIC].addr},
                                       .name = dynamic_name};
    size_t n = 1, name = 1;
    for (int local = 1; local >= 0; local--) {
        for (size_t i = 0; i < k->kept.len; i++) {
            const tcc_link_symbol *s = &k->kept.data[i];
            if (is_local(&s->symbol->sym) != local)
                continue;
            const Elf64_Sym out = output_symbol(k, s, strings, &name);
            memcpy(symtab->data + n++ * sizeof out, &out, sizeof out);
        }
        if (local) {
            Elf64_Sym out = output_symbol(k, &(tcc_link_symbol){NULL, &dynamic}, strings, &name);
            out.st_shndx = TCC_LINK_DYNAMIC;
            memcpy(symtab->data + n++ * sizeof out, &out, sizeof out);
            symtab->info = (Elf64_Word)n;
        }
    }
}

static void fill_hash(tcc_link *k)
{
    size_t n = k->n_exported + 1;
    uint32_t *words = (uint32_t *)(void *)k->sections.data[TCC_LINK_HASH].data;
    uint32_t *buckets = words + 2, *chains = buckets + n;
    words[0] = words[1] = (uint32_t)n;
    for (uint32_t i = 1; i < n; i++) {
        uint32_t *bucket = &buckets[sysv_hash(k->exported[i - 1].symbol->name) % n];
        chains[i] = *bucket;
        *bucket = i;
    }
}

static void fill_gnu_hash(tcc_link *k)
{
    uint32_t *words = (uint32_t *)(void *)k->sections.data[TCC_LINK_GNU_HASH].data;
    uint64_t *bloom = (uint64_t *)(void *)(words + 4);
    uint32_t *buckets = (uint32_t *)(void *)(bloom + k->n_bloom_words);
    uint32_t *chains = buckets + k->n_buckets;
    words[0] = (uint32_t)k->n_buckets;
    words[1] = 1; /* the first symbol of .dynsym has no name */
    words[2] = (uint32_t)k->n_bloom_words;
    words[3] = BLOOM_SHIFT;
    for (size_t i = 0; i < k->n_exported; i++) {
        uint32_t h = gnu_hash(k->exported[i].symbol->name);
        size_t bucket = h % k->n_buckets;
        bloom[h / WORD_BITS % k->n_bloom_words] |=
            (uint64_t)1 << h % WORD_BITS | (uint64_t)1 << (h >> BLOOM_SHIFT) % WORD_BITS;
        if (!buckets[bucket])
            buckets[bucket] = (uint32_t)i + 1;
        bool is_last = i + 1 == k->n_exported ||
                       gnu_hash(k->exported[i + 1].symbol->name) % k->n_buckets != bucket;
        chains[i] = (h & ~1U) | is_last;
    }
}

static void fill_section_names(tcc_link *k)
{
    uint8_t *names = k->sections.data[k->shstrtab].data;
    size_t at = 0;
    for (size_t i = 0; i < k->sections.len; i++) { /* the first one's name is "" */
        tcc_link_section *s = &k->sections.data[i];
        size_t n = strlen(s->name) + 1;
        memcpy(names + at, s->name, n);
        s->name_offset = (Elf64_Word)at;
        at += n;
    }
}

void tcc_link_fill_symbols(tcc_link *k)
{
    fill_dynsym(k);
    fill_symtab(k);
    fill_hash(k);
    fill_gnu_hash(k);
    fill_section_names(k);
}

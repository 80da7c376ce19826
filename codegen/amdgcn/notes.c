/* The metadata of kernels: their spills, and the merging into one note for code objects that are
 * linked from several objects. LLVM's "User Guide for AMDGPU Backend", Code Object V5 Metadata. The
 * note is a map in MessagePack's encoding (its specification names the bytes), of which the key
 * amdhsa.kernels is a list: that of the output is all of them, the other keys are the first object's.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "codegen/amdgcn/link.h"

enum { NT_AMDGPU_METADATA = 32 };

static const char owner[] = "AMDGPU", kernels_key[] = "amdhsa.kernels";

typedef struct bytes {
    const uint8_t *at, *end;
} bytes;

/* One thing of MessagePack's: its first byte, how many further things it consists of, and how many
 * bytes follow that are none. */
typedef struct item {
    uint64_t head, items, skip;
} item;

/* A number of n bytes, the highest first; false when they are not there. */
static bool read_number(bytes *b, unsigned n, uint64_t *out)
{
    if ((size_t)(b->end - b->at) < n)
        return false;
    *out = 0;
    for (unsigned i = 0; i < n; i++)
        *out = *out << 8 | *b->at++;
    return true;
}

/* Things from 0xc0 to 0xdf: bytes of a length that follows, bytes that follow in any case, and what
 * the length counts. */
static const struct {
    uint8_t length_bytes, fixed_bytes, items_per_length;
} formats[32] = {
    [0x04] = {1, 0, 0},  [0x05] = {2, 0, 0}, [0x06] = {4, 0, 0}, /* bin */
    [0x07] = {1, 1, 0},  [0x08] = {2, 1, 0}, [0x09] = {4, 1, 0}, /* ext */
    [0x0a] = {0, 4, 0},  [0x0b] = {0, 8, 0},                     /* float */
    [0x0c] = {0, 1, 0},  [0x0d] = {0, 2, 0}, [0x0e] = {0, 4, 0}, [0x0f] = {0, 8, 0},
    [0x10] = {0, 1, 0},  [0x11] = {0, 2, 0}, [0x12] = {0, 4, 0}, [0x13] = {0, 8, 0},
    [0x14] = {0, 2, 0},  [0x15] = {0, 3, 0}, [0x16] = {0, 5, 0}, [0x17] = {0, 9, 0},
    [0x18] = {0, 17, 0},                                         /* fixext */
    [0x19] = {1, 0, 0},  [0x1a] = {2, 0, 0}, [0x1b] = {4, 0, 0}, /* str */
    [0x1c] = {2, 0, 1},  [0x1d] = {4, 0, 1},                     /* array */
    [0x1e] = {2, 0, 2},  [0x1f] = {4, 0, 2},                     /* map */
};

/* Reads the head of one thing. */
static bool read_item(bytes *b, item *out)
{
    uint64_t head, length = 0;
    *out = (item){0};
    if (!read_number(b, 1, &head))
        return false;
    out->head = head;
    if (head >= 0x80 && head < 0x90)
        out->items = 2 * (head & 0x0f);
    else if (head >= 0x90 && head < 0xa0)
        out->items = head & 0x0f;
    else if (head >= 0xa0 && head < 0xc0)
        out->skip = head & 0x1f;
    else if (head >= 0xc0 && head < 0xe0) {
        unsigned f = (unsigned)head & 0x1f, per = formats[f].items_per_length;
        if (!read_number(b, formats[f].length_bytes, &length))
            return false;
        out->items = per * length;
        out->skip = formats[f].fixed_bytes + (per ? 0 : length);
    }
    return out->skip <= (uint64_t)(b->end - b->at);
}

/* Skips one thing with all that it consists of. */
static bool skip_item(bytes *b)
{
    item i;
    for (uint64_t left = 1; left; left += i.items - 1) {
        if (!read_item(b, &i))
            return false;
        b->at += i.skip;
    }
    return true;
}

/* A list of kernels: where it begins, its elements, and where it ends. */
typedef struct kernel_list {
    const uint8_t *begin, *first, *end;
    uint64_t n;
} kernel_list;

static bool find_kernels(bytes b, kernel_list *out)
{
    item map, key, list;
    if (!read_item(&b, &map))
        return false;
    for (uint64_t i = 0; i < map.items / 2; i++) {
        if (!read_item(&b, &key))
            return false;
        bool found = key.skip == strlen(kernels_key) && !memcmp(b.at, kernels_key, key.skip);
        b.at += key.skip;
        out->begin = b.at;
        bytes value = b;
        if (!skip_item(&b))
            return false;
        if (!found)
            continue;
        if (!read_item(&value, &list) || list.skip)
            return false;
        out->first = value.at;
        out->end = b.at;
        out->n = list.items;
        return true;
    }
    return false;
}

/* The metadata of an object: the description of its one note. */
static bool find_metadata(const tcc_object *o, bytes *out)
{
    Elf64_Nhdr note;
    for (size_t i = 0; i < o->n_sections; i++) {
        const tcc_object_section *s = &o->sections[i];
        size_t before = sizeof note + (sizeof owner + 3) / 4 * 4;
        if (s->header.sh_type != SHT_NOTE || !(s->header.sh_flags & SHF_ALLOC) ||
            s->header.sh_size < before)
            continue;
        memcpy(&note, s->data, sizeof note);
        if (note.n_type != NT_AMDGPU_METADATA || note.n_namesz != sizeof owner ||
            memcmp(s->data + sizeof note, owner, sizeof owner) != 0 ||
            note.n_descsz > s->header.sh_size - before)
            return false;
        *out = (bytes){s->data + before, s->data + before + note.n_descsz};
        return true;
    }
    return false;
}

/* The bytes of a string, or none. */
static bool read_text(bytes *b, bytes *out)
{
    item i;
    if (!read_item(b, &i) || i.items)
        return false;
    *out = (bytes){b->at, b->at + i.skip};
    b->at += i.skip;
    return true;
}

/* A whole number; of something else no matter what. */
static bool read_whole(bytes *b, uint64_t *out)
{
    enum { UINT8 = 0xcc, UINT64 = 0xcf };
    bytes value = *b;
    item i;
    if (!skip_item(b) || !read_item(&value, &i))
        return false;
    *out = i.head;
    return i.head < UINT8 || i.head > UINT64 || read_number(&value, (unsigned)i.skip, out);
}

static bool is_key(bytes key, const char *text)
{
    size_t n = (size_t)(key.end - key.at);
    return n == strlen(text) && !memcmp(key.at, text, n);
}

/* Reads one kernel's map. */
static bool read_usage(bytes *b, tcc_kernel_usage *out)
{
    *out = (tcc_kernel_usage){0};
    const struct {
        const char *key;
        uint64_t *value;
    } numbers[] = {{".vgpr_spill_count", &out->spilled_vgprs},
                   {".private_segment_fixed_size", &out->scratch_bytes}};
    item map;
    bytes key, name = {0};
    if (!read_item(b, &map))
        return false;
    for (uint64_t i = 0; i < map.items / 2; i++) {
        size_t n = 0;
        if (!read_text(b, &key))
            return false;
        while (n < 2 && !is_key(key, numbers[n].key))
            n++;
        bool read;
        if (n < 2) {
            read = read_whole(b, numbers[n].value);
        } else if (is_key(key, ".name")) {
            read = read_text(b, &name);
            out->name = (const char *)name.at;
            out->name_size = (size_t)(name.end - name.at);
        } else {
            read = skip_item(b);
        }
        if (!read)
            return false;
    }
    return out->name;
}

bool tcc_object_usages(const tcc_object *o, tcc_arena *arena, tcc_kernel_usage **out, size_t *n)
{
    bytes note;
    kernel_list kernels;
    if (!find_metadata(o, &note) || !find_kernels(note, &kernels) ||
        kernels.n > (size_t)(kernels.end - kernels.first)) /* a byte each at least */
        return false;
    bytes b = {kernels.first, kernels.end};
    *n = (size_t)kernels.n;
    *out = TCC_NEW_ARRAY(arena, tcc_kernel_usage, *n);
    for (size_t i = 0; i < *n; i++)
        if (!read_usage(&b, &(*out)[i]))
            return false;
    return true;
}

static uint8_t *append(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    memcpy(to, from, (size_t)(end - from));
    return to + (end - from);
}

bool tcc_link_merge_notes(tcc_link *k)
{
    enum { FIXARRAY = 0x90, MAX_FIXARRAY = 15, ARRAY16 = 0xdc };
    tcc_link_section *out = &k->sections.data[TCC_LINK_NOTE];
    kernel_list *lists = TCC_NEW_ARRAY(k->arena, kernel_list, k->n_inputs);
    bytes *notes = TCC_NEW_ARRAY(k->arena, bytes, k->n_inputs);
    uint64_t n = 0;
    size_t size = sizeof(Elf64_Nhdr) + (sizeof owner + 3) / 4 * 4 + sizeof(uint32_t) + 1;
    for (size_t i = 0; i < k->n_inputs; i++) {
        if (!find_metadata(&k->inputs[i].object, &notes[i]) || !find_kernels(notes[i], &lists[i]))
            return tcc_object_error(k->diag, "it has no metadata of kernels", "");
        size += (size_t)(notes[i].end - notes[i].at);
        n += lists[i].n;
    }
    if (n > UINT16_MAX)
        return tcc_object_error(k->diag, "it has too many kernels", "");

    out->data = tcc_arena_alloc(k->arena, size + sizeof(uint32_t));
    uint8_t *begin = out->data + sizeof(Elf64_Nhdr) + (sizeof owner + 3) / 4 * 4;
    memcpy(out->data + sizeof(Elf64_Nhdr), owner, sizeof owner);
    uint8_t *at = append(begin, notes[0].at, lists[0].begin);
    if (n <= MAX_FIXARRAY) { /* as LLVM writes it: the shortest form */
        *at++ = (uint8_t)(FIXARRAY | n);
    } else {
        *at++ = ARRAY16;
        *at++ = (uint8_t)(n >> 8);
        *at++ = (uint8_t)n;
    }
    for (size_t i = 0; i < k->n_inputs; i++)
        at = append(at, lists[i].first, lists[i].end);
    at = append(at, lists[0].end, notes[0].end);
    const Elf64_Nhdr note = {sizeof owner, (Elf64_Word)(at - begin), NT_AMDGPU_METADATA};
    memcpy(out->data, &note, sizeof note);
    out->size = ((size_t)(at - out->data) + 3) / 4 * 4;
    return true;
}

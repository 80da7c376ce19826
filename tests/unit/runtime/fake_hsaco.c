/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tests/unit/runtime/fake_hsaco.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

enum { NT_AMDGPU_METADATA_ = 32, MACH_MASK = 0xff, MAX_DEPTH = 16 };

static const struct {
    unsigned mach; /* EF_AMDGPU_MACH */
    const char *name;
} machines[] = {{0x41, "gfx1100"}, {0x46, "gfx1101"}, {0x47, "gfx1102"}, {0x44, "gfx1103"},
                {0x43, "gfx1150"}, {0x4a, "gfx1151"}, {0x48, "gfx1200"}, {0x4e, "gfx1201"}};

const char *hsaco_arch(const void *image)
{
    Elf64_Ehdr head;
    memcpy(&head, image, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_machine != EM_AMDGPU)
        return NULL;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (machines[i].mach == (head.e_flags & MACH_MASK))
            return machines[i].name;
    return NULL;
}

/* ---- MessagePack ------------------------------------------------------------------------ */

typedef struct bytes {
    const unsigned char *p, *end;
    int depth;
} bytes;

/* A value whose parts, if it has any, follow it. */
typedef struct item {
    enum { BAD, NUMBER, STRING, ARRAY, MAP } kind;
    uint64_t n; /* a number's value, else the length */
    const char *text;
} item;

static uint64_t big_endian(bytes *b, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n && b->p < b->end; i++)
        value = value << 8 | *b->p++;
    return value;
}

static item text(bytes *b, uint64_t n)
{
    item string = {STRING, n, (const char *)b->p};
    if (n > (uint64_t)(b->end - b->p))
        return (item){BAD, 0, NULL};
    b->p += n;
    return string;
}

static item next(bytes *b)
{
    if (b->p == b->end)
        return (item){BAD, 0, NULL};
    unsigned c = *b->p++;
    if (c < 0x80)
        return (item){NUMBER, c, NULL};
    if (c < 0x90)
        return (item){MAP, c & 15, NULL};
    if (c < 0xa0)
        return (item){ARRAY, c & 15, NULL};
    if (c < 0xc0)
        return text(b, c & 31);
    switch (c) {
    case 0xc2:
    case 0xc3: return (item){NUMBER, c & 1, NULL}; /* false, true */
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: return (item){NUMBER, big_endian(b, (size_t)1 << (c - 0xcc)), NULL};
    case 0xd9:
    case 0xda:
    case 0xdb: return text(b, big_endian(b, (size_t)1 << (c - 0xd9)));
    case 0xdc:
    case 0xdd: return (item){ARRAY, big_endian(b, (size_t)2 << (c - 0xdc)), NULL};
    case 0xde:
    case 0xdf: return (item){MAP, big_endian(b, (size_t)2 << (c - 0xde)), NULL};
    default: return (item){BAD, 0, NULL};
    }
}

static bool skip(bytes *b)
{
    item v = next(b);
    uint64_t parts = v.kind == MAP ? 2 * v.n : v.kind == ARRAY ? v.n : 0;
    if (v.kind == BAD || b->depth == MAX_DEPTH)
        return false;
    b->depth++;
    for (uint64_t i = 0; i < parts; i++)
        if (!skip(b))
            return false;
    b->depth--;
    return true;
}

static bool is(item v, const char *string)
{
    return v.kind == STRING && v.n == strlen(string) && !memcmp(v.text, string, v.n);
}

/* A map's member of this name, to be read from `out`. */
static bool member(bytes map, const char *name, bytes *out)
{
    item head = next(&map);
    for (uint64_t i = 0; head.kind == MAP && i < head.n; i++) {
        if (is(next(&map), name)) {
            *out = map;
            return true;
        }
        if (!skip(&map))
            return false;
    }
    return false;
}

static bool number(bytes map, const char *name, uint32_t *out)
{
    bytes b;
    if (!member(map, name, &b))
        return false;
    item v = next(&b);
    *out = (uint32_t)v.n;
    return v.kind == NUMBER;
}

static item string(bytes map, const char *name)
{
    bytes b;
    return member(map, name, &b) ? next(&b) : (item){BAD, 0, NULL};
}

/* ---- kernels ---------------------------------------------------------------------------- */

static bool find_metadata(const void *image, bytes *out)
{
    Elf64_Ehdr head;
    memcpy(&head, image, sizeof head);
    for (size_t i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr s;
        Elf64_Nhdr note;
        memcpy(&s, (const char *)image + head.e_phoff + i * sizeof s, sizeof s);
        if (s.p_type != PT_NOTE || s.p_filesz < sizeof note)
            continue;
        const unsigned char *p = (const unsigned char *)image + s.p_offset;
        memcpy(&note, p, sizeof note);
        size_t desc = sizeof note + (note.n_namesz + 3) / 4 * 4;
        if (note.n_type != NT_AMDGPU_METADATA_ || desc + note.n_descsz > s.p_filesz)
            continue;
        *out = (bytes){p + desc, p + desc + note.n_descsz, 0};
        return true;
    }
    return false;
}

static bool find_kernels(const void *image, bytes *kernels, uint64_t *n)
{
    bytes all;
    if (!find_metadata(image, &all) || !member(all, "amdhsa.kernels", kernels))
        return false;
    item head = next(kernels);
    *n = head.n;
    return head.kind == ARRAY;
}

bool hsaco_is_valid(const void *image)
{
    bytes b;
    return find_metadata(image, &b) && skip(&b);
}

static void copy_name(item v, char *out, size_t size)
{
    snprintf(out, size, "%.*s", v.kind == STRING ? (int)v.n : 0, v.kind == STRING ? v.text : "");
}

static bool read_arg(bytes b, hsaco_arg *out)
{
    item kind = string(b, ".value_kind");
    *out = (hsaco_arg){.is_pointer = is(kind, "global_buffer")};
    out->is_hidden = kind.kind == STRING && kind.n > 7 && !memcmp(kind.text, "hidden_", 7);
    copy_name(string(b, ".name"), out->name, sizeof out->name);
    return number(b, ".offset", &out->offset) && number(b, ".size", &out->size);
}

static bool read_args(bytes kernel, hsaco_kernel *out)
{
    bytes b;
    if (!member(kernel, ".args", &b))
        return true; /* it takes none */
    item head = next(&b);
    uint32_t end = 0;
    for (uint64_t i = 0; head.kind == ARRAY && i < head.n; i++) {
        hsaco_arg *arg = &out->args[out->n_args];
        if (out->n_args == HSACO_MAX_ARGS || !read_arg(b, arg) || !skip(&b))
            return false;
        if (arg->is_hidden)
            continue;
        if (!arg->size || arg->offset != (end + arg->size - 1) / arg->size * arg->size)
            return false;
        end = arg->offset + arg->size;
        out->n_args++;
    }
    return head.kind == ARRAY && end <= out->kernarg_bytes;
}

/* Whether the block that a kernel requires, if it does, can be read. */
static bool read_block(bytes kernel, uint32_t *out)
{
    bytes b;
    if (!member(kernel, ".reqd_workgroup_size", &b))
        return true;
    item head = next(&b);
    for (uint64_t i = 0; head.kind == ARRAY && i < 3; i++) {
        item v = next(&b);
        if (v.kind != NUMBER)
            return false;
        out[i] = (uint32_t)v.n;
    }
    return head.kind == ARRAY && head.n == 3;
}

bool hsaco_kernel_find(const void *image, const char *name, hsaco_kernel *out)
{
    bytes b;
    uint64_t n = 0;
    *out = (hsaco_kernel){.n_args = 0};
    bool found = find_kernels(image, &b, &n);
    for (uint64_t i = 0; found && i < n; i++) {
        if (is(string(b, ".name"), name)) {
            copy_name(string(b, ".name"), out->name, sizeof out->name);
            return number(b, ".group_segment_fixed_size", &out->group_bytes) &&
                   number(b, ".kernarg_segment_size", &out->kernarg_bytes) &&
                   number(b, ".max_flat_workgroup_size", &out->max_block) &&
                   read_block(b, out->block) && read_args(b, out);
        }
        found = skip(&b);
    }
    return false;
}

/* The linker: what it makes, and objects that are not as LLVM makes them.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/codegen.h"

#include <check.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "support/str.h"
#include "tests/unit/oom.h"
#include "tests/unit/suite.h"

static const char program[] = "module {target = gfx1100}\n"
                              "func @f(%out: ptr<f32>, %bytes: i32) {block = 64} {\n"
                              "  %t = amdgcn.tid : i32\n"
                              "  %o = arith.const {value = 0} : i64\n"
                              "  %zero = arith.const {value = 0} : i32\n"
                              "  %b = amdgcn.make_buffer %out, %o, %bytes : buffer\n"
                              "  %v = vec.splat %t : vec<i32[1]>\n"
                              "  amdgcn.buffer.store %b, %t, %zero, %v\n"
                              "  return\n"
                              "}\n";

static tcc_str said;
static char *object;
static size_t object_size;

static void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    tcc_str_puts(user, d->text);
}

static void make_object(void)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag = {.file = "a.tir", .fn = on_diagnostic, .user = &said};
    tcc_ir *ir = tcc_ir_parse(arena, program, strlen(program), &diag);
    const tcc_codegen_options options = {
        .target = "gfx1100", .file = "a.tir", .output = TCC_CODEGEN_OBJ};
    ck_assert_msg(ir && !tcc_codegen(ir, &options, &diag, &object, &object_size), "%s",
                  tcc_str_text(&said));
    tcc_arena_destroy(arena);
}

static void drop_object(void)
{
    free(object);
    tcc_str_free(&said);
}

/* Links bytes that end where memory does, as far as tools can tell. */
static tcc_status link_bytes(const void *bytes, size_t n, const char *manifest, void **out,
                             size_t *size)
{
    tcc_diag diag = {.file = "a.tir", .fn = on_diagnostic, .user = &said};
    tcc_str_free(&said);
    void *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    tcc_status status = tcc_amdgcn_link(&(tcc_bytes){copy, n}, 1, manifest, &diag, out, size);
    free(copy);
    ck_assert_int_eq(status == TCC_OK, *out != NULL);
    ck_assert_int_eq(status == TCC_ERR_INTERNAL, diag.n_errors > 0);
    return status;
}

static void refuse(const void *bytes, size_t n, const char *why)
{
    void *out;
    size_t size;
    ck_assert_int_eq(link_bytes(bytes, n, NULL, &out, &size), TCC_ERR_INTERNAL);
    ck_assert_msg(strstr(tcc_str_text(&said), why) != NULL, "%s", tcc_str_text(&said));
}

/* ---- parts of an object ------------------------------------------------------------------ */

static Elf64_Ehdr *header(void)
{
    return (Elf64_Ehdr *)(void *)object;
}

static Elf64_Shdr *sections(const char *elf)
{
    const Elf64_Ehdr *h = (const void *)elf;
    return (Elf64_Shdr *)(void *)(elf + h->e_shoff);
}

static Elf64_Shdr *section(const char *elf, const char *name)
{
    const Elf64_Ehdr *h = (const void *)elf;
    Elf64_Shdr *s = sections(elf);
    for (unsigned i = 0; i < h->e_shnum; i++)
        if (!strcmp(elf + s[h->e_shstrndx].sh_offset + s[i].sh_name, name))
            return &s[i];
    return NULL;
}

static Elf64_Rela *first_relocation(void)
{
    return (Elf64_Rela *)(void *)(object + section(object, ".rela.rodata")->sh_offset);
}

static void set_relocation_type(unsigned type)
{
    Elf64_Rela *r = first_relocation();
    r->r_info = ELF64_R_INFO(ELF64_R_SYM(r->r_info), type);
}

static Elf64_Sym *symbol(const char *name)
{
    const Elf64_Shdr *table = section(object, ".symtab");
    Elf64_Sym *s = (Elf64_Sym *)(void *)(object + table->sh_offset);
    const char *names = object + sections(object)[table->sh_link].sh_offset;
    for (size_t i = 0; i < table->sh_size / sizeof *s; i++)
        if (!strcmp(names + s[i].st_name, name))
            return &s[i];
    return NULL;
}

/* ---- tests ------------------------------------------------------------------------------- */

START_TEST(the_manifest_is_a_note_that_is_not_loaded)
{
    static const char manifest[] = "{\"tcc\":\"0\"}";
    void *out;
    size_t size;
    ck_assert_int_eq(link_bytes(object, object_size, manifest, &out, &size), TCC_OK);
    const Elf64_Shdr *s = section(out, TCC_NOTE_SECTION);
    ck_assert_ptr_nonnull(s);
    ck_assert_uint_eq(s->sh_type, SHT_NOTE);
    ck_assert_uint_eq(s->sh_flags, 0);
    const Elf64_Nhdr *note = (const void *)((const char *)out + s->sh_offset);
    ck_assert_uint_eq(note->n_type, TCC_NOTE_MANIFEST);
    ck_assert_uint_eq(note->n_namesz, 4);
    ck_assert_uint_eq(note->n_descsz, strlen(manifest));
    ck_assert_mem_eq(note + 1, "tcc", 4);
    ck_assert_mem_eq((const char *)(note + 1) + 4, manifest, strlen(manifest));
    ck_assert_uint_eq(s->sh_size, sizeof *note + 4 + (strlen(manifest) + 3) / 4 * 4);
    free(out);

    ck_assert_int_eq(link_bytes(object, object_size, NULL, &out, &size), TCC_OK);
    ck_assert_ptr_null(section(out, TCC_NOTE_SECTION));
    free(out);
}
END_TEST

START_TEST(every_truncated_object_is_refused)
{
    for (size_t n = 0; n < object_size; n++)
        refuse(object, n, "object: ");
}
END_TEST

/* Every byte on its own, and random ones together: an error or a code object, and no byte that is
 * not the object's is touched, which a sanitizer sees. */
START_TEST(a_corrupted_object_does_no_harm)
{
    static const unsigned char values[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    unsigned n_linked = 0, n_refused = 0;
    void *out;
    size_t size;
    uint32_t random = 1;
    char *copy = malloc(object_size);
    for (size_t i = 0; i < object_size * sizeof values; i++) {
        memcpy(copy, object, object_size);
        copy[i / sizeof values] = (char)values[i % sizeof values];
        for (unsigned k = 0; k < i % 4; k++) {
            random = random * 1664525 + 1013904223;
            copy[random % object_size] = (char)(random >> 24);
        }
        *(link_bytes(copy, object_size, "{}", &out, &size) ? &n_refused : &n_linked) += 1;
        free(out);
    }
    free(copy);
    ck_assert_uint_gt(n_linked, 0);
    ck_assert_uint_gt(n_refused, 0);
}
END_TEST

START_TEST(other_files_are_refused)
{
    refuse("", 0, "it ends in its header");
    header()->e_machine = EM_X86_64;
    refuse(object, object_size, "it is not a relocatable object for an AMD GPU");
    header()->e_machine = EM_AMDGPU;
    header()->e_type = ET_DYN;
    refuse(object, object_size, "it is not a relocatable object for an AMD GPU");
    header()->e_type = ET_REL;
    header()->e_ident[EI_DATA] = ELFDATA2MSB;
    refuse(object, object_size, "not a 64-bit little-endian ELF file");
}
END_TEST

START_TEST(relocations_are_checked)
{
    enum { REL32 = 4, REL64 = 5, ABS64 = 3, GOTPCREL = 7 };
    Elf64_Rela *r = first_relocation();
    const Elf64_Rela good = *r;
    set_relocation_type(ABS64);
    refuse(object, object_size, "a relocation that only loading could apply, of symbol 'f'");
    set_relocation_type(GOTPCREL);
    refuse(object, object_size, "a relocation that only loading could apply, of symbol 'f'");
    set_relocation_type(REL32);
    r->r_addend = (int64_t)1 << 32;
    refuse(object, object_size, "a relocation is out of range, of symbol 'f'");
    *r = good;
    r->r_offset = section(object, ".rodata")->sh_size - 4;
    refuse(object, object_size, "a relocation is outside its section, of symbol 'f'");
    r->r_offset = section(object, ".rodata")->sh_size;
    refuse(object, object_size, "a relocation is outside its section");
    *r = good;
    r->r_info = ELF64_R_INFO(0xffffff, REL64);
    refuse(object, object_size, "a relocation names no symbol");
}
END_TEST

START_TEST(symbols_are_checked)
{
    Elf64_Sym *s = symbol("f");
    const Elf64_Sym good = *s;
    s->st_shndx = SHN_UNDEF;
    refuse(object, object_size, "undefined symbol 'f'");
    s->st_shndx = SHN_COMMON;
    refuse(object, object_size, "no section has symbol 'f'");
    *s = good;
    s->st_name = 0x7fffffff;
    refuse(object, object_size, "a name is outside its section of strings");
}
END_TEST

START_TEST(sections_are_checked)
{
    Elf64_Shdr *s = section(object, ".rodata");
    const Elf64_Shdr good = *s;
    s->sh_flags |= SHF_WRITE;
    refuse(object, object_size, "it has writable data, in section '.rodata'");
    *s = good;
    s->sh_addralign = 48;
    refuse(object, object_size, "alignment");
    *s = good;
    s->sh_offset = UINT64_MAX;
    refuse(object, object_size, "a section is outside it");
    *s = good;
    section(object, ".text")->sh_flags &= ~(Elf64_Xword)SHF_EXECINSTR;
    refuse(object, object_size, "it has no code");
}
END_TEST

/* A module of n functions like the one above, an object each. */
static tcc_status make_objects(unsigned n, const char *in_last, tcc_bytes **objects, size_t *made)
{
    tcc_str text = {0};
    tcc_str_puts(&text, "module {target = gfx1100}\n");
    for (unsigned i = 0; i < n; i++) {
        const char *begin = strstr(program, "func @f(") + strlen("func @f");
        const char *end = strstr(program, "  return");
        tcc_str_printf(&text, "func @f%u", i);
        tcc_str_append(&text, begin, (size_t)(end - begin));
        tcc_str_puts(&text, i + 1 == n ? in_last : "");
        tcc_str_puts(&text, end);
    }
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag = {.file = "a.tir", .fn = on_diagnostic, .user = &said};
    tcc_ir *ir = tcc_ir_parse(arena, tcc_str_text(&text), text.len, &diag);
    ck_assert_msg(ir != NULL, "%s", tcc_str_text(&said));
    const tcc_codegen_options options = {.target = "gfx1100", .file = "a.tir"};
    tcc_status status = tcc_codegen_objects(ir, &options, &diag, objects, made);
    ck_assert_int_eq(status, diag.status);
    ck_assert_uint_eq(status != TCC_OK, diag.n_errors);
    tcc_arena_destroy(arena);
    tcc_str_free(&text);
    return status;
}

static void refuse_both(const tcc_bytes *objects, const char *why)
{
    tcc_diag diag = {.file = "a.tir", .fn = on_diagnostic, .user = &said};
    void *out;
    size_t size;
    tcc_str_free(&said);
    ck_assert_int_eq(tcc_amdgcn_link(objects, 2, NULL, &diag, &out, &size), TCC_ERR_INTERNAL);
    ck_assert_msg(strstr(tcc_str_text(&said), why) != NULL, "%s", tcc_str_text(&said));
}

START_TEST(objects_become_one)
{
    enum { N = 17 };
    static const char key[] = "amdhsa.kernels";
    static const unsigned char list[] = {0xdc, 0, N}; /* MessagePack's array 16 */
    tcc_bytes *objects;
    size_t n, size;
    void *out;
    tcc_diag diag = {.file = "a.tir"};
    ck_assert_int_eq(make_objects(N, "", &objects, &n), TCC_OK);
    ck_assert_uint_eq(n, N);
    ck_assert_int_eq(tcc_amdgcn_link(objects, n, NULL, &diag, &out, &size), TCC_OK);
    const uint32_t *hash = (const void *)((const char *)out + section(out, ".hash")->sh_offset);
    ck_assert_uint_eq(hash[1], 1 + 2 * N);
    const char *note = (const char *)out + section(out, ".note")->sh_offset;
    const char *end = note + section(out, ".note")->sh_size;
    while (memcmp(note, key, strlen(key)) != 0)
        ck_assert(++note < end);
    ck_assert_mem_eq(note + strlen(key), list, sizeof list);
    free(out);
    tcc_codegen_objects_destroy(objects, n);
}
END_TEST

START_TEST(objects_must_go_together)
{
    const tcc_bytes same[] = {{object, object_size}, {object, object_size}};
    refuse_both(same, "two symbols are named 'f'");
    char *other = malloc(object_size);
    memcpy(other, object, object_size);
    ((Elf64_Ehdr *)(void *)other)->e_flags++;
    const tcc_bytes two[] = {{object, object_size}, {other, object_size}};
    refuse_both(two, "it is for another GPU than the one before it");
    free(other);
}
END_TEST

START_TEST(metadata_is_checked)
{
    Elf64_Shdr *s = section(object, ".note");
    Elf64_Nhdr *note = (Elf64_Nhdr *)(void *)(object + s->sh_offset);
    const Elf64_Nhdr good = *note;
    note->n_type++;
    refuse(object, object_size, "it has no metadata of kernels");
    *note = good;
    note->n_descsz = 0x10000;
    refuse(object, object_size, "it has no metadata of kernels");
    note->n_descsz = 20; /* ends in the list */
    refuse(object, object_size, "it has no metadata of kernels");
    *note = good;
    s->sh_type = SHT_PROGBITS;
    refuse(object, object_size, "it has no metadata of kernels");
}
END_TEST

START_TEST(a_function_that_cannot_be_translated_is_reported_once)
{
    tcc_bytes *objects;
    size_t n;
    ck_assert_int_eq(make_objects(5, "  %x = amdgcn.ds.load %t : vec<i32[1]>\n", &objects, &n),
                     TCC_ERR_TYPE);
    ck_assert_ptr_null(objects);
    ck_assert_uint_eq(n, 0);
    ck_assert_ptr_nonnull(strstr(tcc_str_text(&said), "the function has no LDS"));
}
END_TEST

START_TEST(memory_may_run_out)
{
    bool failed = true;
    for (long n = 0; failed; n++) {
        tcc_diag diag = {.file = "a.tir"};
        void *out;
        size_t size;
        oom_fail_after(n);
        tcc_status status =
            tcc_amdgcn_link(&(tcc_bytes){object, object_size}, 1, "{}", &diag, &out, &size);
        failed = !oom_is_armed();
        oom_fail_after(-1);
        ck_assert_int_eq(status, failed ? TCC_ERR_MEMORY : TCC_OK);
        ck_assert_int_eq(status == TCC_OK, out != NULL);
        free(out);
    }
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("link");
    TCase *c = tcase_create("link");
    tcase_add_checked_fixture(c, make_object, drop_object);
    tcase_add_test(c, the_manifest_is_a_note_that_is_not_loaded);
    tcase_add_test(c, every_truncated_object_is_refused);
    tcase_add_test(c, a_corrupted_object_does_no_harm);
    tcase_add_test(c, other_files_are_refused);
    tcase_add_test(c, relocations_are_checked);
    tcase_add_test(c, symbols_are_checked);
    tcase_add_test(c, sections_are_checked);
    tcase_add_test(c, objects_become_one);
    tcase_add_test(c, objects_must_go_together);
    tcase_add_test(c, metadata_is_checked);
    tcase_add_test(c, a_function_that_cannot_be_translated_is_reported_once);
    tcase_add_test(c, memory_may_run_out);
    suite_add_tcase(s, c);
    return s;
}

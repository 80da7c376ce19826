/* The manifest in an ELF file's notes. Whole code objects are test_hip's.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/code_object.h"

#include <check.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/suite.h"

/* A file of a header, notes and the section that they are. */
static struct file {
    Elf64_Ehdr head;
    Elf64_Shdr section;
    unsigned char notes[512];
} file;

static tcc_arena *arena;
static tcc_diag diag;
static char message[256];

static void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    (void)user;
    snprintf(message, sizeof message, "%s", d->message);
}

static void setup(void)
{
    arena = tcc_arena_create(NULL);
    diag = (tcc_diag){.file = "<runtime>", .fn = on_diagnostic};
    message[0] = 0;
    file =
        (struct file){.head = {.e_shoff = offsetof(struct file, section),
                               .e_shentsize = sizeof(Elf64_Shdr),
                               .e_shnum = 1},
                      .section = {.sh_type = SHT_NOTE, .sh_offset = offsetof(struct file, notes)}};
    memcpy(file.head.e_ident, ELFMAG, SELFMAG);
    file.head.e_ident[EI_CLASS] = ELFCLASS64;
    file.head.e_ident[EI_DATA] = ELFDATA2LSB;
}

static void teardown(void)
{
    tcc_arena_destroy(arena);
}

/* Appends a note, whose sizes count terminators where the given ones do. */
static void add_note(const char *name, size_t name_bytes, unsigned type, const char *desc,
                     size_t desc_bytes)
{
    const Elf64_Nhdr head = {(Elf64_Word)name_bytes, (Elf64_Word)desc_bytes, type};
    unsigned char *p = file.notes + file.section.sh_size;
    memcpy(p, &head, sizeof head);
    memcpy(p + sizeof head, name, name_bytes);
    memcpy(p + sizeof head + (name_bytes + 3) / 4 * 4, desc, desc_bytes);
    file.section.sh_size += sizeof head + (name_bytes + 3) / 4 * 4 + (desc_bytes + 3) / 4 * 4;
}

static const char *manifest(void)
{
    return tcc_manifest_in_elf(arena, &diag, &file, sizeof file);
}

START_TEST(the_note_is_found_among_others)
{
    add_note("AMDGPU", 7, 32, "metadata", 8);
    add_note("tcc", 4, 2, "another type", 12);
    add_note("tc", 3, 1, "another name", 12);
    add_note("tccx", 5, 1, "a longer name", 13);
    add_note("tcc", 4, 1, "{\"a\":1}", 7);
    add_note("tcc", 4, 1, "a second one", 12);
    ck_assert_str_eq(manifest(), "{\"a\":1}");
}
END_TEST

START_TEST(the_last_note_may_lack_its_padding)
{
    add_note("tcc", 4, 1, "{\"a\":1}", 7);
    file.section.sh_size--;
    ck_assert_str_eq(manifest(), "{\"a\":1}");
}
END_TEST

START_TEST(an_empty_note_is_an_empty_text)
{
    add_note("tcc", 4, 1, "", 0);
    ck_assert_str_eq(manifest(), "");
}
END_TEST

START_TEST(no_note_is_told)
{
    ck_assert_ptr_null(manifest());
    ck_assert_str_eq(message, "no manifest in this image: it has no note from tcc, and none was given");
    add_note("AMDGPU", 7, 32, "metadata", 8);
    ck_assert_ptr_null(manifest());
    file.section.sh_type = SHT_PROGBITS;
    add_note("tcc", 4, 1, "{}", 2);
    ck_assert_ptr_null(manifest());
}
END_TEST

START_TEST(sizes_that_lie_are_refused)
{
    add_note("tcc", 4, 1, "{\"a\":1}", 7);
    Elf64_Nhdr *note = (Elf64_Nhdr *)file.notes;
    static const Elf64_Word sizes[] = {9, 0x7fffffff, 0xfffffffd, 0xffffffff};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        note->n_descsz = sizes[i];
        ck_assert_ptr_null(manifest());
    }
    note->n_descsz = 7;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        note->n_namesz = sizes[i];
        ck_assert_ptr_null(manifest());
    }
    note->n_namesz = 4;
    ck_assert_ptr_nonnull(manifest());
    file.section.sh_size = sizeof file;
    ck_assert_ptr_null(manifest());
    ck_assert_str_eq(message, "no manifest in this image: a section lies outside the file");
    file.section.sh_size = UINT64_MAX;
    ck_assert_ptr_null(manifest());
    file.section.sh_offset = UINT64_MAX;
    ck_assert_ptr_null(manifest());
    file.head.e_shoff = UINT64_MAX - 8;
    ck_assert_ptr_null(manifest());
}
END_TEST

START_TEST(other_files_are_refused)
{
    ck_assert(!tcc_is_elf("", 0) && !tcc_is_elf("\177EL", 3) && tcc_is_elf("\177ELF", 4));
    ck_assert_ptr_null(tcc_manifest_in_elf(arena, &diag, "\177ELF", 4));
    ck_assert_str_eq(message, "no manifest in this image: its header is cut off");
    file.head.e_shentsize = 40;
    ck_assert_ptr_null(manifest());
    ck_assert_str_eq(message, "no manifest in this image: rows of its tables have a wrong size");
    file.head.e_ident[EI_CLASS] = ELFCLASS32;
    ck_assert_ptr_null(manifest());
    ck_assert_str_eq(message, "no manifest in this image: not a 64-bit little-endian ELF file");
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("code_object");
    TCase *tcase = tcase_create("code_object");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, the_note_is_found_among_others);
    tcase_add_test(tcase, the_last_note_may_lack_its_padding);
    tcase_add_test(tcase, an_empty_note_is_an_empty_text);
    tcase_add_test(tcase, no_note_is_told);
    tcase_add_test(tcase, sizes_that_lie_are_refused);
    tcase_add_test(tcase, other_files_are_refused);
    suite_add_tcase(suite, tcase);
    return suite;
}

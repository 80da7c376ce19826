/* The cache on disk: what it keeps, what it drops, and many users at once.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/disk_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/oom.h"
#include "tests/unit/runtime/folder.h"
#include "tests/unit/suite.h"

enum { ROOM = 1 << 20, HEADER_BYTES = 32 };

static tcc_bytes text(const char *t)
{
    return (tcc_bytes){t, strlen(t)};
}

static bool put(const char *key, const char *data)
{
    return tcc_disk_cache_put(folder, ROOM, text(key), text(data));
}

/* What is found under a key is `expected`; NULL: nothing. */
static void check_get(const char *key, const char *expected)
{
    char *data = NULL;
    size_t size = 0;
    tcc_disk_found found = tcc_disk_cache_get(folder, text(key), &data, &size);
    ck_assert_int_eq(found, expected ? TCC_DISK_HIT : TCC_DISK_MISS);
    if (expected)
        ck_assert_mem_eq(data, expected, strlen(expected));
    ck_assert_uint_eq(size, expected ? strlen(expected) : 0);
    free(data);
}

START_TEST(what_is_kept_is_found)
{
    check_get("a", NULL);
    ck_assert(put("a", "one"));
    ck_assert(put("b", ""));
    check_get("a", "one");
    check_get("b", "");
    ck_assert(put("a", "another"));
    check_get("a", "another");
    ck_assert_int_eq(each_file(NULL), 2);
}
END_TEST

START_TEST(folders_are_made)
{
    char below[128];
    char *data;
    size_t size;
    snprintf(below, sizeof below, "%s/x/y", folder);
    ck_assert(tcc_disk_cache_put(below, ROOM, text("a"), text("one")));
    ck_assert_int_eq(tcc_disk_cache_get(below, text("a"), &data, &size), TCC_DISK_HIT);
    free(data);
    struct stat st;
    ck_assert_int_eq(stat(below, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700); /* what is in there runs on the GPU */
    strcpy(folder, below);
    each_file(remove_file);
    ck_assert_int_eq(rmdir(below), 0);
    *strrchr(below, '/') = 0;
    ck_assert_int_eq(rmdir(below), 0);
    *strrchr(folder, '/') = 0;
    *strrchr(folder, '/') = 0;
}
END_TEST

/* ---- damage ----------------------------------------------------------------------------- */

static long changed_byte;
static long new_size = -1;

static void damage(const char *path)
{
    FILE *f = fopen(path, "r+b");
    ck_assert_ptr_nonnull(f);
    if (changed_byte >= 0) {
        fseek(f, changed_byte, SEEK_SET);
        int byte = fgetc(f);
        fseek(f, changed_byte, SEEK_SET);
        fputc(byte ^ 0x40, f);
    }
    fclose(f);
    if (new_size >= 0)
        ck_assert_int_eq(truncate(path, new_size), 0);
}

static void check_damage_is_found(void)
{
    char *data = NULL;
    size_t size;
    ck_assert(put("key", "data"));
    each_file(damage);
    ck_assert_int_eq(tcc_disk_cache_get(folder, text("key"), &data, &size), TCC_DISK_DAMAGED);
    ck_assert_ptr_null(data);
    ck_assert_int_eq(each_file(NULL), 0);
}

START_TEST(a_damaged_entry_is_dropped)
{
    for (changed_byte = 0; changed_byte < HEADER_BYTES + 7; changed_byte++)
        check_damage_is_found();
    changed_byte = -1;
    for (new_size = 0; new_size < HEADER_BYTES + 12; new_size++)
        if (new_size != HEADER_BYTES + 7)
            check_damage_is_found();
}
END_TEST

static char first_path[512];

static void note_path(const char *path)
{
    snprintf(first_path, sizeof first_path, "%s", path);
}

/* A pipe that nobody writes is neither waited for nor kept. */
START_TEST(what_is_no_file_is_replaced)
{
    ck_assert(put("key", "data"));
    each_file(note_path);
    each_file(remove_file);
    ck_assert_int_eq(mkfifo(first_path, 0600), 0);
    check_get("key", NULL);
    ck_assert(put("key", "data"));
    check_get("key", "data");
}
END_TEST

/* The hash is in the name: another key's entry there is not this one's. */
START_TEST(a_key_with_the_same_hash_is_another)
{
    ck_assert(put("wanted", "x"));
    each_file(note_path);
    each_file(remove_file);
    ck_assert(put("other", "y"));
    char wanted_path[512];
    strcpy(wanted_path, first_path);
    each_file(note_path);
    ck_assert_str_ne(first_path, wanted_path);
    ck_assert_int_eq(rename(first_path, wanted_path), 0);
    check_get("wanted", NULL);
    ck_assert_int_eq(each_file(NULL), 1);
}
END_TEST

/* ---- the limit -------------------------------------------------------------------------- */

static int n_aged;

/* Each file that is looked at is a minute older than the one before. */
static void make_older(const char *path)
{
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= 60 * ++n_aged;
    times[1] = times[0];
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(what_was_not_used_for_the_longest_goes_first)
{
    enum { ENTRY = HEADER_BYTES + 1 + 4 };
    for (const char *k = "a\0b\0c\0"; *k; k += 2) {
        ck_assert(put(k, "data"));
        each_file(make_older); /* those that are there already, too */
    }
    check_get("a", "data"); /* the oldest is used */
    ck_assert(tcc_disk_cache_put(folder, 3 * ENTRY, text("d"), text("data")));
    ck_assert_int_eq(each_file(NULL), 3);
    check_get("a", "data");
    check_get("d", "data");
    ck_assert(!tcc_disk_cache_put(folder, ENTRY - 1, text("e"), text("data")));
    ck_assert_int_eq(errno, EFBIG);
    ck_assert_int_eq(each_file(NULL), 3);
}
END_TEST

static void write_empty(const char *name, long age_seconds)
{
    char path[256];
    struct timespec times[2];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fclose(f);
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= age_seconds;
    times[1] = times[0];
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(what_nobody_will_finish_is_removed)
{
    write_empty("unfinished-aaaaaa", 4000);
    write_empty("unfinished-bbbbbb", 10); /* may be another process's */
    write_empty("README", 4000);          /* somebody else's */
    ck_assert(put("a", "one"));
    ck_assert_int_eq(each_file(NULL), 3);
}
END_TEST

/* ---- places ----------------------------------------------------------------------------- */

static void check_folder(const char *given, const char *expected)
{
    char *found;
    ck_assert_int_eq(tcc_disk_cache_folder(given, &found), TCC_OK);
    if (expected)
        ck_assert_str_eq(found, expected);
    else
        ck_assert_ptr_null(found);
    free(found);
}

START_TEST(the_environment_says_where)
{
    setenv("TCC_CACHE_DIR", "/t", 1);
    setenv("XDG_CACHE_HOME", "/x", 1);
    setenv("HOME", "/h", 1);
    check_folder("/given", "/given");
    check_folder("", NULL);
    check_folder(NULL, "/t");
    setenv("TCC_CACHE_DIR", "", 1);
    check_folder(NULL, NULL);
    unsetenv("TCC_CACHE_DIR");
    check_folder(NULL, "/x/tcc");
    unsetenv("XDG_CACHE_HOME");
    check_folder(NULL, "/h/.cache/tcc");
    unsetenv("HOME");
    check_folder(NULL, NULL);
}
END_TEST

START_TEST(a_place_that_cannot_be_used_keeps_nothing)
{
    char *data;
    size_t size;
    ck_assert(!tcc_disk_cache_put("/dev/null/tcc", ROOM, text("a"), text("one")));
    ck_assert_int_eq(errno, ENOTDIR);
    ck_assert_int_eq(tcc_disk_cache_get("/dev/null/tcc", text("a"), &data, &size), TCC_DISK_MISS);
}
END_TEST

START_TEST(short_memory_is_a_miss)
{
    bool armed = false;
    ck_assert(put("a", "one"));
    for (long n = 0; !armed; n++) {
        char *data = NULL;
        size_t size;
        oom_fail_after(n);
        bool kept = put("a", "one");
        tcc_disk_found found = tcc_disk_cache_get(folder, text("a"), &data, &size);
        armed = oom_is_armed();
        oom_fail_after(-1);
        free(data);
        ck_assert(found != TCC_DISK_DAMAGED);
        ck_assert(!armed || (kept && found == TCC_DISK_HIT));
        ck_assert_int_lt(n, 100);
    }
    ck_assert_int_eq(each_file(NULL), 1);
}
END_TEST

/* ---- processes -------------------------------------------------------------------------- */

enum { PROCESSES = 4, ROUNDS = 400, KEYS = 6, MOST_BYTES = 6000 };

/* Data of any length of one byte, which a mixture would not be. */
static bool is_whole(const char *data, size_t size)
{
    for (size_t i = 1; i < size; i++)
        if (data[i] != data[0])
            return false;
    return true;
}

/* 0, or what went wrong. */
static int work(unsigned number)
{
    static char data[MOST_BYTES];
    int hits = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        char key[8], *found;
        size_t size = (number * 31 + i * 97) % MOST_BYTES, got;
        snprintf(key, sizeof key, "k%u", (i * 5 + number) % KEYS);
        memset(data, 'a' + (int)number, size);
        if (!tcc_disk_cache_put(folder, MOST_BYTES * 2, text(key), (tcc_bytes){data, size}))
            return 1;
        snprintf(key, sizeof key, "k%u", i % KEYS);
        switch (tcc_disk_cache_get(folder, text(key), &found, &got)) {
        case TCC_DISK_DAMAGED: return 2;
        case TCC_DISK_MISS: continue;
        case TCC_DISK_HIT: break;
        }
        hits++;
        bool whole = is_whole(found, got);
        free(found);
        if (!whole)
            return 3;
    }
    return hits ? 0 : 4;
}

START_TEST(processes_share_a_folder)
{
    pid_t children[PROCESSES];
    for (unsigned i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        if (!children[i])
            _exit(work(i));
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        int status = -1;
        ck_assert_int_eq(waitpid(children[i], &status, 0), children[i]);
        ck_assert(WIFEXITED(status));
        ck_assert_int_eq(WEXITSTATUS(status), 0);
    }
    ck_assert_int_le(each_file(NULL), KEYS); /* nothing unfinished is left */
}
END_TEST

Suite *SUITE(void)
{
    Suite *suite = suite_create("disk_cache");
    TCase *tcase = tcase_create("disk_cache");
    tcase_add_checked_fixture(tcase, make_folder, remove_folder);
    tcase_add_test(tcase, what_is_kept_is_found);
    tcase_add_test(tcase, folders_are_made);
    tcase_add_test(tcase, a_damaged_entry_is_dropped);
    tcase_add_test(tcase, what_is_no_file_is_replaced);
    tcase_add_test(tcase, a_key_with_the_same_hash_is_another);
    tcase_add_test(tcase, what_was_not_used_for_the_longest_goes_first);
    tcase_add_test(tcase, what_nobody_will_finish_is_removed);
    tcase_add_test(tcase, the_environment_says_where);
    tcase_add_test(tcase, a_place_that_cannot_be_used_keeps_nothing);
    tcase_add_test(tcase, short_memory_is_a_miss);
    tcase_add_test(tcase, processes_share_a_folder);
    suite_add_tcase(suite, tcase);
    return suite;
}

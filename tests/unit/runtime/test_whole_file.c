/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/shared/whole_file.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/suite.h"

static char folder[] = "/tmp/test_whole_file_XXXXXX";
static char path[64];

static void setup(void)
{
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
}

static void teardown(void)
{
    unlink(path);
    rmdir(folder);
}

/* Files in the folder. */
static int count_files(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n - 2; /* . and .. */
}

/* What the file holds. */
static const char *content(void)
{
    static char text[64];
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static void put(const char *text)
{
    FILE *f = whole_file_open(path);
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert(whole_file_close(f, true));
}

START_TEST(nothing_is_there_before_the_end)
{
    FILE *f = whole_file_open(path);
    ck_assert_ptr_nonnull(f);
    fputs("new", f);
    fflush(f);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert(whole_file_close(f, true));
    ck_assert_str_eq(content(), "new");
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(a_failure_leaves_what_was_there)
{
    put("old");
    FILE *f = whole_file_open(path);
    fputs("new", f);
    errno = EIO;
    ck_assert(!whole_file_close(f, false));
    ck_assert_int_eq(errno, EIO);
    ck_assert_str_eq(content(), "old");
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(a_full_disk_leaves_nothing)
{
    struct rlimit before, small = {.rlim_cur = 10, .rlim_max = RLIM_INFINITY};
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    FILE *f = whole_file_open(path);
    fputs("more than ten bytes", f); /* into the buffer */
    bool closed = whole_file_close(f, true);
    int error = errno;
    setrlimit(RLIMIT_FSIZE, &before);
    ck_assert(!closed);
    ck_assert_int_eq(error, EFBIG);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(a_signal_leaves_nothing)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    pid_t child = fork();
    if (!child) {
        FILE *f = whole_file_open(path);
        fputs("new", f);
        fflush(f);
        if (count_files() != 1)
            _exit(1);
        raise(signals[_i]);
        _exit(0);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), signals[_i]);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(signals_are_as_before_behind_it)
{
    struct sigaction action, before;
    sigaction(SIGINT, NULL, &before); /* Check's */
    signal(SIGHUP, SIG_IGN);
    FILE *f = whole_file_open(path);
    raise(SIGHUP); /* is ignored still */
    ck_assert(whole_file_close(f, true));
    sigaction(SIGINT, NULL, &action);
    ck_assert(action.sa_handler == before.sa_handler);
    sigaction(SIGHUP, NULL, &action);
    ck_assert(action.sa_handler == SIG_IGN);
    signal(SIGHUP, SIG_DFL);
}
END_TEST

START_TEST(links_and_pipes_stay_what_they_are)
{
    char link[80];
    struct stat st;
    put("old");
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(symlink(path, link), 0);
    FILE *f = whole_file_open(link);
    fputs("new", f);
    ck_assert(whole_file_close(f, true));
    ck_assert_int_eq(lstat(link, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_str_eq(content(), "new");
    unlink(link);
    f = whole_file_open("/dev/null");
    fputs("gone", f);
    ck_assert(whole_file_close(f, true));
    ck_assert_int_eq(stat("/dev/null", &st), 0);
    ck_assert(S_ISCHR(st.st_mode));
}
END_TEST

/* A link to a file that is not there yet makes it, where the link says. */
START_TEST(a_dangling_link_stays_one)
{
    char link[80];
    struct stat st;
    snprintf(link, sizeof link, "%s/link", folder);
    ck_assert_int_eq(symlink("file", link), 0);
    FILE *f = whole_file_open(link);
    ck_assert_ptr_nonnull(f);
    fputs("new", f);
    ck_assert(whole_file_close(f, true));
    ck_assert_int_eq(lstat(link, &st), 0);
    ck_assert(S_ISLNK(st.st_mode));
    ck_assert_str_eq(content(), "new");
    unlink(link);
    ck_assert_int_eq(symlink("link", link), 0);
    ck_assert_ptr_null(whole_file_open(link));
    ck_assert_int_eq(errno, ELOOP);
    unlink(link);
}
END_TEST

START_TEST(a_file_keeps_its_mode)
{
    struct stat st;
    put("old");
    ck_assert_int_eq(chmod(path, 0751), 0);
    put("new");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_mode & 07777, 0751);
}
END_TEST

/* Standard output may be a file that holds something already. */
START_TEST(what_is_open_is_not_replaced)
{
    char open_file[32];
    struct stat before, after;
    put("old");
    FILE *held = fopen(path, "r+");
    ck_assert_ptr_nonnull(held);
    ck_assert_int_eq(fstat(fileno(held), &before), 0);
    snprintf(open_file, sizeof open_file, "/dev/fd/%d", fileno(held));
    FILE *f = whole_file_open(open_file);
    fputs("new", f);
    ck_assert(whole_file_close(f, true));
    fclose(held);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_int_eq(before.st_ino, after.st_ino);
    ck_assert_str_eq(content(), "new");
}
END_TEST

/* As a script's table is while its lines write what they compute. */
START_TEST(several_are_written_at_once)
{
    char other[80];
    snprintf(other, sizeof other, "%s/other", folder);
    FILE *a = whole_file_open(path), *b = whole_file_open(other);
    fputs("a", a);
    fputs("b", b);
    ck_assert(whole_file_close(b, true));
    ck_assert_int_ne(access(path, F_OK), 0);
    pid_t child = fork(); /* which does not remove what its parent writes */
    if (!child) {
        raise(SIGTERM);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert(whole_file_close(a, true));
    ck_assert_str_eq(content(), "a");
    unlink(other);
    FILE *many[8];
    int n = 0;
    while (n < 8 && (many[n] = whole_file_open(path)))
        n++;
    ck_assert_int_eq(errno, EMFILE);
    while (n--)
        whole_file_close(many[n], false);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(a_file_is_read_with_a_terminator)
{
    size_t size;
    put("");
    FILE *f = fopen(path, "r");
    char *text = whole_file_read(f, &size);
    ck_assert_uint_eq(size, 0);
    ck_assert_str_eq(text, "");
    free(text);
    fclose(f);
    f = fopen(folder, "r");
    ck_assert_ptr_null(whole_file_read(f, &size));
    ck_assert_int_eq(errno, EISDIR);
    fclose(f);
}
END_TEST

START_TEST(what_cannot_be_opened_says_why)
{
    char other[80];
    snprintf(other, sizeof other, "%s/none/file", folder);
    ck_assert_ptr_null(whole_file_open(other));
    ck_assert_int_eq(errno, ENOENT);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("whole_file");
    TCase *t = tcase_create("whole_file");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nothing_is_there_before_the_end);
    tcase_add_test(t, a_failure_leaves_what_was_there);
    tcase_add_test(t, a_full_disk_leaves_nothing);
    tcase_add_loop_test(t, a_signal_leaves_nothing, 0, 3);
    tcase_add_test(t, signals_are_as_before_behind_it);
    tcase_add_test(t, links_and_pipes_stay_what_they_are);
    tcase_add_test(t, a_dangling_link_stays_one);
    tcase_add_test(t, a_file_keeps_its_mode);
    tcase_add_test(t, what_is_open_is_not_replaced);
    tcase_add_test(t, several_are_written_at_once);
    tcase_add_test(t, a_file_is_read_with_a_terminator);
    tcase_add_test(t, what_cannot_be_opened_says_why);
    suite_add_tcase(s, t);
    return s;
}

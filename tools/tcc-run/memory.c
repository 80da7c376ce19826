/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "tools/tcc-run/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The number in a file's only line; `otherwise` when there is none, as in "max". */
static uint64_t read_number(const char *path, uint64_t otherwise)
{
    uint64_t n;
    FILE *f = fopen(path, "r");
    if (!f)
        return otherwise;
    if (fscanf(f, "%" SCNu64, &n) != 1)
        n = otherwise;
    fclose(f);
    return n;
}

/* A line such as "MemAvailable:   1234 kB" of a file; `otherwise` when there is none. */
static uint64_t read_field(const char *path, const char *name, uint64_t otherwise)
{
    char line[256];
    uint64_t found = otherwise, kilobytes;
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, name, strlen(name)) &&
            sscanf(line + strlen(name), " %" SCNu64, &kilobytes) == 1)
            found = kilobytes * 1024;
    if (f)
        fclose(f);
    return found;
}

static uint64_t room_in_group(void)
{
    uint64_t max = read_number("/sys/fs/cgroup/memory.max", UINT64_MAX);
    uint64_t used = read_number("/sys/fs/cgroup/memory.current", 0);
    return max == UINT64_MAX ? max : max > used ? max - used : 0;
}

static uint64_t room_in_limits(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
        return UINT64_MAX;
    uint64_t used = read_field("/proc/self/status", "VmSize:", 0);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

uint64_t memory_available(void)
{
    uint64_t system = read_field("/proc/meminfo", "MemAvailable:", UINT64_MAX);
    return min(system, min(room_in_group(), room_in_limits()));
}

void memory_print(uint64_t bytes, char *text, size_t size)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
    double n = (double)bytes;
    size_t unit = 0;
    while (n >= 999.5 && unit + 1 < sizeof units / sizeof units[0]) {
        n /= 1000;
        unit++;
    }
    snprintf(text, size, "%.3g %s", n, units[unit]);
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/hip_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *const libraries[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6",
                                        "libamdhip64.so.5"};

static const struct {
    const char *symbol;
    size_t offset; /* of the function pointer in tcc_hip */
} entry_points[] =
    {
#define ROW(member, result, params) {#member, offsetof(tcc_hip, member)},
        TCC_HIP_ENTRY_POINTS(ROW)},
  later_entry_points[] = {TCC_HIP_LATER_ENTRY_POINTS(ROW)
#undef ROW
};

/* The newest first: a library that has both writes the older struct under the older name. */
static const struct {
    const char *symbol;
    size_t arch_name_offset;
} properties[] = {{"hipGetDevicePropertiesR0600", HIP_ARCH_NAME_OFFSET_R0600},
                  {"hipGetDeviceProperties", HIP_ARCH_NAME_OFFSET_R0000}};

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Whether the loader found no such file: its message then begins with the bare name, in any
 * language. For a file that it found it begins with the path, and for a missing dependency with the
 * name of that. */
static bool is_absent(const char *name, const char *error)
{
    size_t len = strlen(name);
    return !strncmp(error, name, len) && error[len] == ':';
}

/* Never unloaded: HIP keeps threads and exit handlers of its own. */
static bool open_library(tcc_hip *hip, char *why, size_t why_size)
{
    snprintf(why, why_size,
             "no HIP library: there is no libamdhip64.so, and none of version 7, 6 "
             "or 5");
    for (size_t i = 0; i < COUNT(libraries); i++) {
        hip->library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        hip->name = libraries[i];
        if (hip->library)
            return true;
        const char *error = dlerror();
        if (!is_absent(libraries[i], error)) {
            snprintf(why, why_size, "%s", error);
            return false;
        }
    }
    return false;
}

static bool find(const tcc_hip *hip, const char *symbol, void *function)
{
    void *found = dlsym(hip->library, symbol);
    if (found)
        memcpy(function, &found, sizeof found);
    return found;
}

static bool find_properties(tcc_hip *hip)
{
    for (size_t i = 0; i < COUNT(properties); i++) {
        hip->get_properties_name = properties[i].symbol;
        hip->arch_name_offset = properties[i].arch_name_offset;
        if (find(hip, properties[i].symbol, &hip->get_properties))
            return true;
    }
    return false;
}

/* The symbol that the library lacks; NULL: it has all. */
static const char *find_entry_points(tcc_hip *hip)
{
    for (size_t i = 0; i < COUNT(entry_points); i++)
        if (!find(hip, entry_points[i].symbol, (char *)hip + entry_points[i].offset))
            return entry_points[i].symbol;
    for (size_t i = 0; i < COUNT(later_entry_points); i++)
        find(hip, later_entry_points[i].symbol, (char *)hip + later_entry_points[i].offset);
    return find_properties(hip) ? NULL : hip->get_properties_name;
}

bool tcc_hip_open(tcc_hip *hip, char *why, size_t why_size)
{
    *hip = (tcc_hip){0};
    if (!open_library(hip, why, why_size))
        return false;
    const char *missing = find_entry_points(hip);
    if (missing) {
        snprintf(why, why_size, "%s lacks %s: HIP 5.0 or later is needed", hip->name, missing);
        tcc_hip_close(hip);
    }
    return !missing;
}

void tcc_hip_close(tcc_hip *hip)
{
    if (hip->library)
        dlclose(hip->library);
    *hip = (tcc_hip){0};
}

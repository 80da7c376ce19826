/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/c_names.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

/* Keywords of C and C++, names of types in what the header of a bundle declares, and macros that are common. */
static const char *const reserved[] = {
    "alignas", "alignof", "and", "and_eq", "asm", "atomic_cancel", "auto", "bitand", "bitor", "bool", "break", "case",
    "catch", "char", "char16_t", "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield", "compl",
    "concept", "const", "const_cast", "consteval", "constexpr", "constinit", "continue", "decltype", "default",
    "delete", "do", "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern", "false", "float", "for",
    "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register", "reinterpret_cast", "requires",
    "restrict", "return", "short", "signed", "sizeof", "static", "static_assert", "static_cast", "struct", "switch",
    "template", "this", "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof",
    "typeof_unqual", "union", "unsigned", "using", "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq",
    "EOF", "I", "INFINITY", "NAN", "NULL", "args", "complex", "dims", "errno", "i386", "int32_t", "int64_t",
    "linux", "main", "size_t", "stderr", "stdin", "stdout", "stream", "uint64_t", "unix"};

/* Functions of <math.h> and <complex.h>, which are there as sinf and sinl, too. */
static const char *const of_math[] = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cabs", "cacos", "cacosh", "carg", "casin",
    "casinh", "catan", "catanh", "cbrt", "ccos", "ccosh", "ceil", "cexp", "cimag", "clog", "conj", "copysign",
    "cos", "cosh", "cpow", "cproj", "creal", "csin", "csinh", "csqrt", "ctan", "ctanh", "erf", "erfc", "exp",
    "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin", "fmod", "frexp", "hypot", "ilogb", "ldexp",
    "lgamma", "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint", "lround", "modf", "nan",
    "nearbyint", "nextafter", "nexttoward", "pow", "remainder", "remquo", "rint", "round", "scalbln", "scalbn",
    "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"};

/* The other functions of C17, and those of POSIX and of its libm that kernels are likely to be named like. */
static const char *const functions[] = {
    "abort", "abs", "accept", "access", "alarm", "aligned_alloc", "asctime", "at_quick_exit", "atexit", "atof",
    "atoi", "atol", "atoll", "bind", "bsearch", "btowc", "c16rtomb", "c32rtomb", "call_once", "calloc", "clearerr",
    "clock", "close", "cnd_broadcast", "cnd_destroy", "cnd_init", "cnd_signal", "cnd_timedwait", "cnd_wait",
    "connect", "ctime", "difftime", "div", "dlopen", "dlsym", "dup", "exit", "fclose", "feclearexcept", "fegetenv",
    "fegetexceptflag", "fegetround", "feholdexcept", "feof", "feraiseexcept", "ferror", "fesetenv",
    "fesetexceptflag", "fesetround", "fetestexcept", "feupdateenv", "fflush", "fgetc", "fgetpos", "fgets", "fgetwc",
    "fgetws", "fopen", "fork", "fprintf", "fputc", "fputs", "fputwc", "fputws", "fread", "free", "freopen",
    "fscanf", "fseek", "fsetpos", "ftell", "fwide", "fwprintf", "fwrite", "fwscanf", "gamma", "getc", "getchar",
    "getenv", "getwc", "getwchar", "gmtime", "imaxabs", "imaxdiv", "index", "isalnum", "isalpha", "isblank",
    "iscntrl", "isdigit", "isgraph", "islower", "isprint", "ispunct", "isspace", "isupper", "iswalnum", "iswalpha",
    "iswblank", "iswcntrl", "iswctype", "iswdigit", "iswgraph", "iswlower", "iswprint", "iswpunct", "iswspace",
    "iswupper", "iswxdigit", "isxdigit", "j0", "j1", "jn", "kill", "labs", "ldiv", "link", "listen", "llabs",
    "lldiv", "localeconv", "localtime", "longjmp", "malloc", "mblen", "mbrlen", "mbrtoc16", "mbrtoc32", "mbrtowc",
    "mbsinit", "mbsrtowcs", "mbstowcs", "mbtowc", "memchr", "memcmp", "memcpy", "memmove", "memset", "mktime",
    "mmap", "mtx_destroy", "mtx_init", "mtx_lock", "mtx_timedlock", "mtx_trylock", "mtx_unlock", "nice", "open",
    "pause", "perror", "pipe", "poll", "printf", "putc", "putchar", "puts", "putwc", "putwchar", "qsort",
    "quick_exit", "raise", "rand", "random", "read", "realloc", "recv", "remove", "rename", "rewind", "scanf",
    "select", "send", "setbuf", "setjmp", "setlocale", "setvbuf", "shutdown", "signal", "sleep", "snprintf",
    "socket", "sprintf", "srand", "sscanf", "stat", "strcat", "strchr", "strcmp", "strcoll", "strcpy", "strcspn",
    "strerror", "strftime", "strlen", "strncat", "strncmp", "strncpy", "strpbrk", "strrchr", "strspn", "strstr",
    "strtod", "strtof", "strtoimax", "strtok", "strtol", "strtold", "strtoll", "strtoul", "strtoull", "strtoumax",
    "strxfrm", "swprintf", "swscanf", "sync", "system", "thrd_create", "thrd_current", "thrd_detach", "thrd_equal",
    "thrd_exit", "thrd_join", "thrd_sleep", "thrd_yield", "time", "timespec_get", "tmpfile", "tmpnam", "tolower",
    "toupper", "towctrans", "towlower", "towupper", "truncate", "tss_create", "tss_delete", "tss_get", "tss_set",
    "ungetc", "ungetwc", "vfprintf", "vfscanf", "vfwprintf", "vfwscanf", "vprintf", "vscanf", "vsnprintf",
    "vsprintf", "vsscanf", "vswprintf", "vswscanf", "vwprintf", "vwscanf", "wait", "wcrtomb", "wcscat", "wcschr",
    "wcscmp", "wcscoll", "wcscpy", "wcscspn", "wcsftime", "wcslen", "wcsncat", "wcsncmp", "wcsncpy", "wcspbrk",
    "wcsrchr", "wcsrtombs", "wcsspn", "wcsstr", "wcstod", "wcstof", "wcstoimax", "wcstok", "wcstol", "wcstold",
    "wcstoll", "wcstombs", "wcstoul", "wcstoull", "wcstoumax", "wcsxfrm", "wctob", "wctomb", "wctrans", "wctype",
    "wmemchr", "wmemcmp", "wmemcpy", "wmemmove", "wmemset", "wprintf", "write", "wscanf", "y0", "y1", "yn"};

static bool is_among(const char *const *names, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == len && !memcmp(names[i], name, len))
            return true;
    return false;
}

#define IS_AMONG(names, name, len) is_among(names, sizeof names / sizeof *names, name, len)

bool tcc_c_reserves(const char *name)
{
    return IS_AMONG(reserved, name, strlen(name)) || !strncmp(name, "tcc_", 4) || !strncmp(name, "__", 2) ||
           (name[0] == '_' && isupper((unsigned char)name[1]));
}

bool tcc_c_has_function(const char *name)
{
    size_t len = strlen(name);
    bool has_suffix = len > 1 && strchr("fl", name[len - 1]);
    return IS_AMONG(functions, name, len) || IS_AMONG(of_math, name, len) ||
           (has_suffix && IS_AMONG(of_math, name, len - 1));
}

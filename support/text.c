/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "support/text.h"

#include <stdbool.h>
#include <string.h>

size_t tcc_utf8_length(const char *text, size_t n)
{
    const unsigned char *p = (const unsigned char *)text;
    unsigned char c = n ? p[0] : 0xff;
    size_t len = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
    if (len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool overlong = (c == 0xe0 && p[1] < 0xa0) || (c == 0xf0 && p[1] < 0x90);
    bool surrogate = c == 0xed && p[1] >= 0xa0;
    bool past_end = c == 0xf4 && p[1] >= 0x90;
    return overlong || surrogate || past_end ? 0 : len;
}

uint32_t tcc_utf8_decode(const char *text, size_t length)
{
    static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    const unsigned char *p = (const unsigned char *)text;
    uint32_t c = p[0] & first_bits[length];
    for (size_t i = 1; i < length; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

size_t tcc_line_end(const char *p, size_t n)
{
    if (!n || (*p != '\n' && *p != '\r'))
        return 0;
    return *p == '\r' && n > 1 && p[1] == '\n' ? 2 : 1;
}

const char *tcc_line_rest(const char *p, const char *end)
{
    enum { PART = 256 }; /* A file may have only one of the two, so that neither is looked for far behind the other. */
    while (p < end) {
        size_t n = end - p < PART ? (size_t)(end - p) : PART;
        const char *feed = memchr(p, '\n', n);
        const char *carriage_return = memchr(p, '\r', feed ? (size_t)(feed - p) : n);
        if (feed || carriage_return)
            return carriage_return ? carriage_return : feed;
        p += n;
    }
    return p;
}

/* What is not one column wide, ascending (Unicode 15: EastAsianWidth.txt, and general categories Mn,
 * Me, Cc and Cf; of the combining characters the blocks that are nothing else). */
static const struct {
    uint32_t first, last;
    int width;
} widths[] = {
    {0x0, 0x1f, -1},         {0x7f, 0x9f, -1},        {0xad, 0xad, -1},
    {0x300, 0x36f, 0},       {0x483, 0x489, 0},       {0x61c, 0x61c, -1},
    {0x1100, 0x115f, 2},     {0x180e, 0x180e, -1},    {0x1ab0, 0x1aff, 0},
    {0x1dc0, 0x1dff, 0},     {0x200b, 0x200f, -1},    {0x2028, 0x202e, -1},
    {0x2060, 0x206f, -1},    {0x20d0, 0x20ff, 0},     {0x2e80, 0x303e, 2},
    {0x3041, 0x4dbf, 2},     {0x4e00, 0xa4cf, 2},     {0xa960, 0xa97f, 2},
    {0xac00, 0xd7a3, 2},     {0xf900, 0xfaff, 2},     {0xfe00, 0xfe0f, 0},
    {0xfe20, 0xfe2f, 0},     {0xfe30, 0xfe6f, 2},     {0xfeff, 0xfeff, -1},
    {0xff00, 0xff60, 2},     {0xffe0, 0xffe6, 2},     {0xfff9, 0xfffb, -1},
    {0x1f300, 0x1f64f, 2},   {0x1f680, 0x1f6ff, 2},   {0x1f900, 0x1f9ff, 2},
    {0x1fa70, 0x1faff, 2},   {0x20000, 0x3fffd, 2},   {0xe0000, 0xe007f, -1},
    {0xe0100, 0xe01ef, 0},
};

int tcc_char_width(uint32_t c)
{
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        if (c <= widths[i].last)
            return c < widths[i].first ? 1 : widths[i].width;
    return 1;
}

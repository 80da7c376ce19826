/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/fragment.h"

/* clang-format off */
#define R(n) {n, 0}
#define C(n) {0, n}
#define SAME {0, 0}
#define COUNT_OF(...) (sizeof((const uint16_t[][2]){__VA_ARGS__}) / sizeof(uint16_t[2]))
#define BITS(...) {COUNT_OF(__VA_ARGS__), {__VA_ARGS__}}
#define NONE {0, {{0, 0}}}
/* clang-format on */

const tcc_fragment tcc_fragments[TCC_FRAGMENT_COUNT] = {
#define FRAGMENT(id, rows, cols, registers, lanes, warps)                                          \
    {#id, rows, cols, registers, lanes, warps, false},
#define OPAQUE(id, rows, cols, registers, lanes) {#id, rows, cols, registers, lanes, NONE, true},
#include "ir/fragments.def"
};

unsigned tcc_fragment_elements(const tcc_fragment *f, unsigned lane)
{
    return lane >> f->lanes.n ? 0 : 1u << f->elements.n;
}

unsigned tcc_fragment_copies(const tcc_fragment *f)
{
    unsigned copies = 1;
    for (unsigned i = 0; i < f->lanes.n; i++)
        copies *= f->lanes.adds[i].row || f->lanes.adds[i].col ? 1 : 2;
    return copies;
}

bool tcc_fragment_has_neighbours(const tcc_fragment *f)
{
    return f->elements.adds[0].row + f->elements.adds[0].col == 1;
}

static void add(tcc_place *p, const tcc_fragment_bits *bits, unsigned number)
{
    for (unsigned i = 0; i < bits->n; i++)
        if (number >> i & 1) {
            p->row += bits->adds[i].row;
            p->col += bits->adds[i].col;
        }
}

tcc_place tcc_fragment_place(const tcc_fragment *f, unsigned element, unsigned lane, unsigned warp)
{
    tcc_place p = {0, (element >> f->elements.n) * f->cols};
    add(&p, &f->elements, element);
    add(&p, &f->lanes, lane);
    add(&p, &f->warps, warp);
    return p;
}

static void place_all(tcc_place *of, const tcc_fragment_bits *bits)
{
    of[0] = (tcc_place){0, 0};
    for (unsigned i = 0; i < bits->n; i++)
        for (unsigned j = 0; j < 1u << i; j++)
            of[(1u << i) + j] = (tcc_place){of[j].row + bits->adds[i].row, of[j].col + bits->adds[i].col};
}

tcc_places tcc_fragment_places(const tcc_fragment *f)
{
    tcc_places p;
    place_all(p.of_element, &f->elements);
    place_all(p.of_lane, &f->lanes);
    return p;
}

/* ---- RDNA's -------------------------------------------------------------------------------- */

/* bits 0: of any. */
static const struct {
    tcc_family family;
    unsigned bits, wave;
    int64_t k;
    tcc_fragment_id id;
} operands[] = {
    {TCC_FAMILY_GFX11, 0, 32, 16, TCC_FRAGMENT_gfx11_operand_32},
    {TCC_FAMILY_GFX11, 0, 64, 16, TCC_FRAGMENT_gfx11_operand_64},
    {TCC_FAMILY_GFX12, 16, 32, 16, TCC_FRAGMENT_gfx12_operand16_32},
    {TCC_FAMILY_GFX12, 16, 64, 16, TCC_FRAGMENT_gfx12_operand16_64},
    {TCC_FAMILY_GFX12, 8, 32, 16, TCC_FRAGMENT_gfx12_operand8_32},
    {TCC_FAMILY_GFX12, 8, 64, 16, TCC_FRAGMENT_gfx12_operand8_64},
    {TCC_FAMILY_GFX12, 4, 32, 16, TCC_FRAGMENT_gfx12_operand8_32},
    {TCC_FAMILY_GFX12, 4, 64, 16, TCC_FRAGMENT_gfx12_operand8_32}, /* lanes 32 to 63 hold nothing */
    {TCC_FAMILY_GFX12, 4, 32, 32, TCC_FRAGMENT_gfx12_operand4_k32_32},
    {TCC_FAMILY_GFX12, 4, 64, 32, TCC_FRAGMENT_gfx12_operand4_k32_64},
};

static const struct {
    tcc_family family;
    unsigned wave;
    tcc_fragment_id id;
} results[] = {
    {TCC_FAMILY_GFX11, 32, TCC_FRAGMENT_gfx11_d_32},
    {TCC_FAMILY_GFX11, 64, TCC_FRAGMENT_gfx11_d_64},
    {TCC_FAMILY_GFX12, 32, TCC_FRAGMENT_gfx12_d_32},
    {TCC_FAMILY_GFX12, 64, TCC_FRAGMENT_gfx12_d_64},
};

/* bits 0: of any other. */
#define HELD(family, wave, of, number, id)                                                         \
    {                                                                                              \
        TCC_FAMILY_##family, wave, TCC_AS_##of, number, TCC_FRAGMENT_##id                          \
    }
static const struct {
    tcc_family family;
    unsigned wave;
    tcc_hold_as as;
    unsigned bits;
    tcc_fragment_id id;
} held[] = {
    HELD(GFX11, 32, A, 0, gfx11_operand_32),   HELD(GFX11, 64, A, 0, gfx11_operand_64),
    HELD(GFX11, 32, B, 0, gfx11_b_32),         HELD(GFX11, 64, B, 0, gfx11_b_64),
    HELD(GFX11, 32, RESULT, 0, gfx11_tile_32), HELD(GFX11, 64, RESULT, 0, gfx11_tile_64),
    HELD(GFX11, 32, SUM, 16, gfx11_sum16_32),  HELD(GFX11, 64, SUM, 16, gfx11_sum16_64),
    HELD(GFX11, 32, SUM, 0, gfx11_tile_32),    HELD(GFX11, 64, SUM, 0, gfx11_tile_64),
    HELD(GFX12, 32, A, 16, gfx12_a16_32),      HELD(GFX12, 64, A, 16, gfx12_a16_64),
    HELD(GFX12, 32, A, 8, gfx12_a8_32),        HELD(GFX12, 64, A, 8, gfx12_a8_64),
    HELD(GFX12, 32, A, 4, gfx12_a4_32),        HELD(GFX12, 64, A, 4, gfx12_a4_64),
    HELD(GFX12, 32, B, 16, gfx12_b16_32),      HELD(GFX12, 64, B, 16, gfx12_b16_64),
    HELD(GFX12, 32, B, 8, gfx12_b8_32),        HELD(GFX12, 64, B, 8, gfx12_b8_64),
    HELD(GFX12, 32, B, 4, gfx12_b4_32),        HELD(GFX12, 64, B, 4, gfx12_b4_64),
    HELD(GFX12, 32, RESULT, 0, gfx12_tile_32), HELD(GFX12, 64, RESULT, 0, gfx12_tile_64),
    HELD(GFX12, 32, SUM, 16, gfx12_sum16_32),  HELD(GFX12, 64, SUM, 16, gfx12_sum16_64),
    HELD(GFX12, 32, SUM, 0, gfx12_tile_32),    HELD(GFX12, 64, SUM, 0, gfx12_tile_64),
};

tcc_fragment_id tcc_wmma_held(const tcc_target *target, tcc_hold_as as, unsigned bits,
                              unsigned wave)
{
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        if (held[i].family == target->family && held[i].wave == wave && held[i].as == as &&
            (!held[i].bits || held[i].bits == bits))
            return held[i].id;
    return TCC_FRAGMENT_COUNT;
}

bool tcc_wmma_is_packed(const tcc_target *target, tcc_fragment_id id, tcc_hold_as *as)
{
    for (size_t i = 0; i < sizeof held / sizeof *held; i++)
        if (held[i].family == target->family && held[i].id == id) {
            *as = held[i].as;
            return *as != TCC_AS_RESULT;
        }
    return false;
}

const tcc_fragment *tcc_wmma_operand(const tcc_target *target, unsigned bits, int64_t k,
                                     unsigned wave)
{
    size_t i = 0;
    while (operands[i].family != target->family || (operands[i].bits && operands[i].bits != bits) ||
           operands[i].k != k || operands[i].wave != wave)
        i++;
    return &tcc_fragments[operands[i].id];
}

const tcc_fragment *tcc_wmma_result(const tcc_target *target, unsigned wave)
{
    size_t i = 0;
    while (results[i].family != target->family || results[i].wave != wave)
        i++;
    return &tcc_fragments[results[i].id];
}

int64_t tcc_wmma_operand_words(const tcc_target *target, int64_t k, unsigned bits, int64_t wave)
{
    const tcc_fragment *f = tcc_wmma_operand(target, bits, k, (unsigned)wave);
    return (tcc_fragment_elements(f, 0) * bits + 31) / 32;
}

int64_t tcc_wmma_k_groups(const tcc_target *target, int64_t k, unsigned bits, int64_t wave)
{
    const tcc_fragment *f = tcc_wmma_operand(target, bits, k, (unsigned)wave);
    return wave / TCC_WMMA_SIDE / tcc_fragment_copies(f);
}

/* choose_schedule_rdna: complete a schedule for RDNA.
 *
 * A workgroup of up to 8 waves computes a tile, each wave up to 64 x 64 of it: then a step of 16
 * along k reads 16 bytes from LDS a lane for each matrix instruction, no more, and accumulators and
 * operands fit 256 registers. What is copied waits in registers for a tile, so two stages do.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/schedule_key.h"
#include "passes/skeleton.h"

enum {
    STEP = 16,
    TILE_MAX = 256,
    WAVES_MAX = 8,
    WAVE_TILE_MAX = 64, /* rows or columns of one wave, unless the user says otherwise */
    ROW_BYTES = 64,     /* of a stage, along k */
    WORD_BITS = 32,
    STAGES = 2,
    GENERIC_TILE = 64,
    GENERIC_WAVES = 4,
    DOUBT = 32 /* registers by which the count may be too low, as it is where operands have several widths */
};

/* The time that reading an operand adds to a product besides bandwidth: instructions, latency,
 * power. A guess: nothing has been measured. */
static const double READ_COST = 0.2;

/* The instruction of each sum; false where one has none. */
static bool find_instructions(const tcc_choice *ch, tcc_rdna_product *p)
{
    bool all = true;
    p->n_sums = ch->c.n_sums;
    p->sums = TCC_NEW_ARRAY(ch->ctx->scratch, const tcc_wmma *, p->n_sums);
    for (size_t i = 0; i < p->n_sums; i++) {
        const tcc_sum *sum = &ch->c.sums[i];
        tcc_scalar a = tcc_sum_operand_elem(sum->a), b = tcc_sum_operand_elem(sum->b);
        p->sums[i] = tcc_wmma_find(ch->target, a, b, sum->op->results[0].type->elem, 0);
        all &= p->sums[i] && tcc_scalar_bits(a) == tcc_scalar_bits(b);
    }
    return all;
}

/* That of a sum which multiplies an operand: all have the same shape, since its elements are theirs. */
static const tcc_wmma *instruction_of(const tcc_choice *ch, const tcc_rdna_product *p, const tcc_sum_operand *o)
{
    size_t i = 0;
    while (ch->c.sums[i].a != o && ch->c.sums[i].b != o)
        i++;
    return p->sums[i];
}

static bool find_product(const tcc_choice *ch, tcc_rdna_product *out)
{
    *out = (tcc_rdna_product){.target = ch->target, .n_operands = ch->c.n_operands};
    out->operands = TCC_NEW_ARRAY(ch->ctx->scratch, tcc_rdna_operand, out->n_operands);
    if (!find_instructions(ch, out))
        return false;
    for (size_t i = 0; i < out->n_operands; i++) {
        const tcc_sum_operand *o = &ch->c.operands[i];
        bool computed = tcc_sum_operand_is_computed(o);
        unsigned bits = tcc_scalar_bits(tcc_sum_operand_elem(o));
        unsigned read_bits = tcc_scalar_bits(o->read->results[0].type->elem);
        unsigned loaded_bits = read_bits < 8 ? 2 * WORD_BITS : read_bits; /* a byte, and which half of it */
        out->operands[i] = (tcc_rdna_operand){
            .wmma = instruction_of(ch, out, o),
            .bits = bits,
            .axis = o->axis,
            .computed = computed,
            .transposed = !computed && !tcc_read_is_contiguous_in(o->read, o->k, o->k)};
        out->bits = bits > out->bits ? bits : out->bits;
        if (computed && loaded_bits > out->loaded_bits)
            out->loaded_bits = loaded_bits;
    }
    return true;
}

/* As many of the widest elements as ROW_BYTES hold, fewer where the sum is known to be shorter. */
static int64_t choose_k(const tcc_choice *ch, const tcc_rdna_product *p, int64_t wave)
{
    int64_t step = tcc_rdna_depth(p, wave), k = ROW_BYTES * 8 / p->bits;
    while (!ch->c.k_extent.name && k / 2 >= ch->c.k_extent.size && k / 2 >= step)
        k /= 2;
    return k > step ? k : step;
}

static bool is_power_of_two(int64_t x)
{
    return x > 0 && !(x & (x - 1));
}

static bool has_one_width(const tcc_rdna_product *p)
{
    bool one = true;
    for (size_t i = 0; i < p->n_operands; i++)
        one &= p->operands[i].bits == p->bits;
    return one;
}

/* For what lanes load one by one, and its addresses, of a whole tile. */
static int64_t registers_of_single_loads(const tcc_choice *ch, const tcc_schedule *s)
{
    const int64_t rows[] = {s->m, s->n};
    tcc_arrangement w;
    int64_t n = 0;
    for (int axis = 0; axis < 2 && tcc_arrange(s, &w); axis++)
        n += ch->single_loads[axis] * rows[axis] * s->k / (tcc_rdna_sharing_waves(s, w.stand[!axis]) * s->wave);
    return n;
}

static bool has_registers(const tcc_choice *ch, const tcc_schedule *s, const tcc_rdna_product *p, int64_t doubt)
{
    int64_t need = tcc_rdna_registers(s, p) + registers_of_single_loads(ch, s);
    return need + doubt <= tcc_rdna_register_limit(s, p->target);
}

static bool fits(const tcc_choice *ch, const tcc_schedule *s, const tcc_rdna_product *p, tcc_arrangement *w)
{
    return tcc_arrange(s, w) && has_registers(ch, s, p, has_one_width(p) ? 0 : DOUBT);
}

bool tcc_rdna_has_room(const tcc_choice *ch)
{
    tcc_rdna_product p;
    tcc_arrangement w;
    return find_product(ch, &p) && tcc_arrange(&ch->s, &w) && has_registers(ch, &ch->s, &p, DOUBT);
}

/* Whether every thread has something to transpose, 8 bytes of k by 4 of neighbours: else some
 * transpose the same. */
static bool all_transpose(const tcc_schedule *s, const tcc_rdna_product *p)
{
    const int64_t rows[] = {s->m, s->n};
    for (size_t i = 0; i < p->n_operands; i++) {
        const tcc_rdna_operand *o = &p->operands[i];
        int64_t unit = 8 * 8 / o->bits * (4 * 8 / o->bits);
        if (o->transposed && rows[o->axis] * s->k < unit * tcc_schedule_threads(s))
            return false;
    }
    return true;
}

/* Operands that a wave reads for each product, of which it multiplies blocks[0] * blocks[1]. */
static double reads(const tcc_arrangement *w)
{
    return (double)(w->blocks[0] + w->blocks[1]) / (double)(w->blocks[0] * w->blocks[1]);
}

/* How much longer a tile takes because operands are transposed on their way to LDS, a word of two k by one instruction,
 * or computed, about: a WGP has 128 lanes a cycle for that. */
static double converting(const tcc_rdna_product *p, const tcc_schedule *s)
{
    static const double OF_COMPUTED = 3; /* instructions of an element */
    double instructions = 0;
    for (size_t i = 0; i < p->n_operands; i++) {
        double rows = (double)(p->operands[i].axis ? s->n : s->m);
        instructions += p->operands[i].transposed ? rows / 2 : p->operands[i].computed ? rows * OF_COMPUTED : 0;
    }
    double flops = 2.0 * (double)((1 + s->more_sums) * s->m * s->n);
    return instructions / 128 / (flops / p->target->flops_per_cycle);
}

/* Tiles smaller than this are for extents that are known to be smaller. */
static int64_t least_of(tcc_dim extent, int64_t least)
{
    while (!extent.name && least > STEP && least / 2 >= extent.size)
        least /= 2;
    return least;
}

/* The search's user. */
typedef struct start {
    const tcc_rdna_product *p;
    bool given_waves;
    bool any;      /* number of waves, with any share of the tile */
    int64_t least; /* rows and columns, where the extents are not known to be smaller */
} start;

static void try_size(tcc_search *q, int64_t m, int64_t n, int64_t n_waves)
{
    const start *from = q->user;
    tcc_schedule s = q->ch->s;
    tcc_arrangement w;
    s.m = m;
    s.n = n;
    s.waves = n_waves;
    if (!fits(q->ch, &s, from->p, &w))
        return;
    if (!from->any && (w.blocks[0] * STEP > WAVE_TILE_MAX || w.blocks[1] * STEP > WAVE_TILE_MAX ||
                       !all_transpose(&s, from->p)))
        return;
    tcc_search_try(q, &s, 1 + converting(from->p, &s) + READ_COST * reads(&w));
}

/* The sizes that are tried for m or n, largest first: powers of two and, where the number of waves is
 * given and is not one, its odd part times them. Only the given size, if there is one. Returns their
 * number. */
static size_t list_sizes(int64_t given, int64_t least, int64_t waves, int64_t *sizes)
{
    size_t n = 0;
    int64_t odd = waves;
    while (odd && odd % 2 == 0)
        odd /= 2;
    if (given) {
        sizes[n++] = given;
        return n;
    }
    for (int64_t size = TILE_MAX; size >= STEP; size -= STEP) {
        bool shared = odd > 1 && size % (STEP * odd) == 0 && is_power_of_two(size / STEP / odd);
        if (size >= least && (is_power_of_two(size) || shared))
            sizes[n++] = size;
    }
    return n;
}

static void list_tiles(tcc_search *q)
{
    static const int64_t waves[] = {4, 8, 2, 1}; /* few waves read less of LDS; one hides nothing */
    const tcc_choice *ch = q->ch;
    const start *from = q->user;
    const tcc_schedule s = ch->s;
    int64_t n_waves =
        from->any ? ch->target->max_threads / s.wave : (int64_t)(sizeof waves / sizeof *waves);
    int64_t ms[TILE_MAX / STEP], ns[TILE_MAX / STEP], shared_by = from->given_waves ? s.waves : 0;
    size_t n_ms = list_sizes(ch->given_m ? s.m : 0, least_of(ch->c.extents[0], from->least), shared_by, ms);
    size_t n_ns = list_sizes(ch->given_n ? s.n : 0, least_of(ch->c.extents[1], from->least), shared_by, ns);
    for (size_t m = 0; m < n_ms; m++)
        for (size_t n = 0; n < n_ns; n++)
            for (int64_t i = 0; i < (from->given_waves ? 1 : n_waves); i++)
                try_size(q, ms[m], ns[n], from->given_waves ? s.waves : from->any ? n_waves - i : waves[i]);
}

/* The tile with the least estimated time among those that fit; false when none does. */
static bool choose_fastest(tcc_choice *ch, const tcc_rdna_product *p, bool given_waves, bool any, int64_t least)
{
    return tcc_search_run(ch, list_tiles, &(start){p, given_waves, any, least}, 0.001, &ch->s);
}

/* The same, of large tiles rather than of smaller ones, with few waves rather than any number of them, and as deep as
 * usual where that is not what fits: a lane holds all k of a tile of a computed operand. */
static bool choose_tile(tcc_choice *ch, const tcc_rdna_product *p, bool given_waves, int64_t step)
{
    const int64_t usual = ch->s.k;
    for (int64_t least = WAVE_TILE_MAX; least >= STEP; least /= 2)
        for (ch->s.k = usual; ch->s.k >= step; ch->s.k = p->loaded_bits && !ch->given_k ? ch->s.k / 2 : 0)
            if (choose_fastest(ch, p, given_waves, false, least) || choose_fastest(ch, p, given_waves, true, least))
                return true;
    ch->s.k = ch->given_k || !p->loaded_bits ? usual : step;
    return false;
}

/* The largest number of waves up to WAVES_MAX that can share the tile, for a message. */
static int64_t sharing_waves(const tcc_schedule *s)
{
    tcc_schedule t = *s;
    tcc_arrangement w;
    for (t.waves = WAVES_MAX; t.waves > 1 && !tcc_arrange(&t, &w); t.waves--)
        continue;
    return t.waves;
}

/* Messages name only sizes that the user wrote. */
static tcc_status refuse_waves(tcc_choice *ch)
{
    const tcc_schedule *s = &ch->s;
    bool m = ch->given_m;
    const char *key = tcc_choice_given(ch, "waves") ? "waves" : "tile";
    if (m && ch->given_n)
        return TCC_CHOICE_REFUSE(ch, key,
                                 "a %lld x %lld tile cannot be shared by %lld waves in blocks of "
                                 "16 x 16",
                                 (long long)s->m, (long long)s->n, (long long)s->waves);
    if (m || ch->given_n)
        return TCC_CHOICE_REFUSE(ch, key,
                                 "no tile with %s %lld can be shared by %lld waves in blocks of "
                                 "16 x 16",
                                 ch->c.axes[!m], (long long)(m ? s->m : s->n),
                                 (long long)s->waves);
    return TCC_CHOICE_REFUSE(ch, key,
                             "no tile up to %d x %d can be shared by %lld waves in blocks of "
                             "16 x 16",
                             TILE_MAX, TILE_MAX, (long long)s->waves);
}

static tcc_status refuse_size(tcc_choice *ch, const tcc_rdna_product *p)
{
    const tcc_schedule *s = &ch->s;
    const char *key = tcc_choice_given(ch, "tile") ? "tile" : "waves";
    tcc_arrangement w;
    if (!tcc_arrange(s, &w))
        return refuse_waves(ch);
    int64_t need = tcc_rdna_registers(s, p), limit = tcc_rdna_register_limit(s, p->target);
    if (need > limit)
        return TCC_CHOICE_REFUSE(ch, key,
                                 "a %lld x %lld x %lld tile needs about %lld registers a lane with "
                                 "%lld wave%s of %lld lanes; the limit is %lld",
                                 (long long)s->m, (long long)s->n, (long long)s->k,
                                 (long long)need, (long long)s->waves, s->waves == 1 ? "" : "s",
                                 (long long)s->wave, (long long)limit);
    return tcc_skeleton_fill(ch);
}

tcc_status tcc_rdna_fill(tcc_choice *ch, tcc_func *tiled, const tcc_room *r)
{
    (void)tiled;
    const tcc_schedule *s = &ch->s;
    int64_t bytes = tcc_room_taken(r, s->stages);
    const char *key = tcc_choice_given(ch, "stages") ? "stages" : tcc_choice_given(ch, "tile") ? "tile" : "waves";
    if (bytes <= r->all)
        return TCC_OK;
    return TCC_CHOICE_REFUSE(ch, key, "%lld stages need %lld bytes of LDS; the limit is %lld", (long long)s->stages,
                             (long long)bytes, (long long)r->all);
}

tcc_status tcc_rdna_choose(tcc_choice *ch)
{
    tcc_schedule *s = &ch->s;
    tcc_rdna_product p;
    s->wave = tcc_schedule_key_of(ch->f, TCC_KEY_wave, 32);
    s->waves = tcc_schedule_key_of(ch->f, TCC_KEY_waves, 0);
    s->stages = tcc_schedule_key_of(ch->f, TCC_KEY_stages, STAGES);
    s->split = tcc_schedule_key_of(ch->f, TCC_KEY_split, 1);
    if (!find_product(ch, &p)) /* choose-mma says so */
        return TCC_OK;
    if (s->stages != STAGES)
        return TCC_CHOICE_REFUSE(
            ch, "stages", "stages %lld: need %d on %s, where a third tile waits in registers",
            (long long)s->stages, STAGES, ch->target->name);
    bool given_waves = s->waves;
    if (s->waves * s->wave > ch->target->max_threads)
        return TCC_CHOICE_REFUSE(
            ch, "waves", "waves %lld: need 1 to %lld of %lld lanes", (long long)s->waves,
            (long long)(ch->target->max_threads / s->wave), (long long)s->wave);
    int64_t step = tcc_rdna_depth(&p, s->wave);
    bool of_instruction = false;
    for (size_t i = 0; i < p.n_sums; i++)
        of_instruction |= p.sums[i]->k == step;
    const char *why =
        of_instruction ? tcc_depth_of_instruction : "what lanes read from LDS at a time, 16 bytes each";
    tcc_status status =
        tcc_choice_read_tile(ch, &(tcc_tile_steps){STEP, STEP, step, TILE_MAX, tcc_columns_of_instruction, why});
    if (status)
        return status;
    if (!ch->given_k)
        s->k = choose_k(ch, &p, s->wave);
    if (!is_power_of_two(s->k))
        return TCC_CHOICE_REFUSE(ch, "tile", "tile %s %lld: need a power of two on %s", ch->c.k,
                                 (long long)s->k, ch->target->name);
    if (!ch->given_m || !ch->given_n || !given_waves)
        choose_tile(ch, &p, given_waves, step); /* refuse_size says what is wrong where none fits */
    if (!s->m)
        s->m = STEP;
    if (!s->n)
        s->n = STEP;
    if (!s->waves)
        s->waves = sharing_waves(s);
    return refuse_size(ch, &p);
}

/* Element-wise copies hide their latency behind other workgroups: the tile and its one stage are
 * small enough for many on a WGP, and smaller where there are many sums. */
void tcc_rdna_choose_generic(tcc_choice *ch)
{
    tcc_rdna_product p;
    tcc_arrangement w;
    int64_t wave = tcc_schedule_key_of(ch->f, TCC_KEY_wave, 32);
    tcc_schedule *s = &ch->s;
    s->m = s->n = GENERIC_TILE;
    s->k = STEP;
    s->stages = 1;
    s->waves = GENERIC_WAVES;
    s->wave = wave;
    s->split = 1;
    if (!find_product(ch, &p))
        return;
    s->k = tcc_rdna_depth(&p, wave);
    for (tcc_schedule smaller = *s;
         !(fits(ch, s, &p, &w) && tcc_skeleton_can_fill(ch)) && smaller.m * smaller.n > STEP * STEP; *s = smaller) {
        *(smaller.m > smaller.n ? &smaller.m : &smaller.n) /= 2;
        while (smaller.waves > 1 && !tcc_arrange(&smaller, &w))
            smaller.waves /= 2;
    }
}

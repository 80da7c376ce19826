/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "interp/record.h"

typedef struct warp_record {
    tcc_part part;
    uint64_t part_begin, mmas_done, end;
    bool multiplies;
    int last_wait;           /* barrier of its last mbarrier.wait; -1: none */
    TCC_VEC(uint32_t) waits; /* completed, for each barrier */
} warp_record;

/* The phase of an mbarrier that is going on. */
typedef struct phase {
    int64_t address;
    uint32_t number;
    uint64_t begin;
} phase;

struct tcc_recorder {
    tcc_timeline timeline;
    tcc_arena *scratch;
    warp_record *warps;
    phase phases[TCC_MAX_MBARRIERS]; /* of the machine's barriers */
};

tcc_recorder *tcc_recorder_create(tcc_arena *scratch, const char *kernel, int64_t cta, unsigned n_warps)
{
    tcc_recorder *r = TCC_NEW(scratch, tcc_recorder);
    r->timeline = (tcc_timeline){.kernel = kernel, .cta = cta, .n_warps = n_warps};
    r->scratch = scratch;
    r->warps = TCC_NEW_ARRAY(scratch, warp_record, n_warps);
    for (unsigned w = 0; w < n_warps; w++)
        r->warps[w].last_wait = -1;
    return r;
}

static int barrier_at(tcc_recorder *r, int64_t address)
{
    tcc_timeline *to = &r->timeline;
    for (size_t b = 0; b < to->barriers.len; b++)
        if (to->barriers.data[b].address == address)
            return (int)b;
    TCC_PUSH(r->scratch, &to->barriers, (tcc_timed_barrier){.address = address, .empty = -1});
    return (int)to->barriers.len - 1;
}

/* ---- copies and MMAs ------------------------------------------------------------------- */

/* The stage of a load is that of the barrier on which it completes, and this phase its filling.
 * The warp that started it waited before until the stage was free. */
tcc_stage_use tcc_record_load(tcc_recorder *r, int64_t barrier, uint32_t fill, bool own, unsigned warp)
{
    int b = barrier_at(r, barrier), free = own ? r->warps[warp].last_wait : -1;
    tcc_timed_barrier *barriers = r->timeline.barriers.data;
    barriers[b].of_copies = true;
    barriers[b].fills = fill + 1;
    if (free >= 0 && !barriers[free].of_copies)
        barriers[b].empty = barriers[free].address;
    return (tcc_stage_use){b, fill};
}

void tcc_record_copy(tcc_recorder *r, tcc_timed_copy copy)
{
    TCC_PUSH(r->scratch, &r->timeline.copies, copy);
}

tcc_stage_use tcc_record_stage_at(const tcc_recorder *r, int64_t address)
{
    for (size_t i = r->timeline.copies.len; i-- > 0;) {
        const tcc_timed_copy *c = &r->timeline.copies.data[i];
        if (c->load && address >= c->address && address < c->address + c->bytes)
            return c->use;
    }
    return (tcc_stage_use){-1, 0};
}

tcc_stage_use tcc_record_stage_of(const tcc_recorder *r, unsigned warp)
{
    int b = r->warps[warp].last_wait;
    bool known = b >= 0 && r->timeline.barriers.data[b].of_copies;
    return known ? (tcc_stage_use){b, r->warps[warp].waits.data[b] - 1} : (tcc_stage_use){-1, 0};
}

void tcc_record_mma(tcc_recorder *r, tcc_timed_mma mma)
{
    r->timeline.tensor_cycles += mma.cycles;
    TCC_PUSH(r->scratch, &r->timeline.mmas, mma);
}

/* ---- warps ----------------------------------------------------------------------------- */

static void push_wait(tcc_recorder *r, const tcc_recorded *what, tcc_timed_wait wait)
{
    wait.warp = what->warp;
    wait.loc = what->op->loc;
    if (wait.end > wait.begin)
        TCC_PUSH(r->scratch, &r->timeline.waits, wait);
}

void tcc_record_wait(tcc_recorder *r, const tcc_recorded *what, tcc_wait_kind kind, uint64_t begin, uint64_t end)
{
    push_wait(r, what, (tcc_timed_wait){.kind = kind, .begin = begin, .end = end});
}

/* A warp's part of the kernel ends, and another begins. */
static void begin_part(tcc_recorder *r, unsigned warp, tcc_part part, uint64_t at)
{
    warp_record *w = &r->warps[warp];
    if (at > w->part_begin)
        TCC_PUSH(r->scratch, &r->timeline.parts,
                 (tcc_timed_part){w->part, warp, w->part_begin, at});
    w->part = part;
    w->part_begin = at;
}

static void record_mbarrier_wait(tcc_recorder *r, const tcc_recorded *what, uint64_t since, uint64_t until)
{
    warp_record *w = &r->warps[what->warp];
    int b = barrier_at(r, what->barrier);
    while (w->waits.len <= (size_t)b)
        TCC_PUSH(r->scratch, &w->waits, 0);
    push_wait(r, what,
              (tcc_timed_wait){.kind = TCC_WAIT_MBARRIER,
                               .begin = since,
                               .end = until,
                               .which = b,
                               .fill = w->waits.data[b]++});
    w->last_wait = b;
}

static void record_mmas_wait(tcc_recorder *r, const tcc_recorded *what, uint64_t since, uint64_t until)
{
    tcc_record_wait(r, what, TCC_WAIT_MMAS, since, until);
    if (!tcc_attr_int(&what->op->attrs, "pending", 0))
        r->warps[what->warp].mmas_done = until;
}

/* In which part a warp is that runs an op: the epilogue of a warp that multiplies begins when its
 * MMAs are done. */
static void choose_part(tcc_recorder *r, const tcc_recorded *what, uint64_t since)
{
    tcc_opcode code = what->op->code;
    warp_record *w = &r->warps[what->warp];
    bool multiplies = tcc_op_does(code, TCC_BY_MMA_GROUP) && !tcc_op_does(code, TCC_WAITS);
    bool stages = tcc_op_does(code, TCC_WRITES_SHARED) && tcc_op_does(code, TCC_MMA);
    w->multiplies |= multiplies;
    if (multiplies || tcc_op_does(code, TCC_BY_MBARRIER)) {
        if (w->part != TCC_MAIN_LOOP)
            begin_part(r, what->warp, TCC_MAIN_LOOP, since);
    } else if ((stages || tcc_op_does(code, TCC_WRITES_GLOBAL)) && w->part == TCC_MAIN_LOOP &&
               w->multiplies && w->mmas_done >= w->part_begin) {
        begin_part(r, what->warp, TCC_EPILOGUE, w->mmas_done);
    }
}

/* What a warp waits for by an op with such effects. */
static const struct {
    unsigned effects;
    tcc_wait_kind kind;
} waits_for[] = {
    {TCC_BY_WARPS | TCC_BY_CLUSTER, TCC_WAIT_BARRIER},
    {TCC_BY_BULK_GROUP, TCC_WAIT_STORES},
    {TCC_BY_COPY_GROUP, TCC_WAIT_COPIES},
    {TCC_REGISTERS, TCC_WAIT_REGISTERS},
};

void tcc_record_op(tcc_recorder *r, const tcc_recorded *what, uint64_t since, uint64_t until)
{
    tcc_opcode code = what->op->code;
    r->warps[what->warp].end = until;
    choose_part(r, what, since);
    if (tcc_op_waits(code, TCC_BY_MBARRIER))
        record_mbarrier_wait(r, what, since, until);
    if (tcc_op_waits(code, TCC_BY_MMA_GROUP))
        record_mmas_wait(r, what, since, until);
    for (size_t i = 0; i < sizeof waits_for / sizeof *waits_for; i++)
        if (tcc_op_does(code, waits_for[i].effects) && tcc_op_does(code, TCC_WAITS | TCC_REGISTERS))
            push_wait(r, what,
                      (tcc_timed_wait){
                          .kind = waits_for[i].kind, .begin = since, .end = until, .which = (int)what->barrier});
}

/* ---- barriers, and the end ------------------------------------------------------------- */

void tcc_record_phases(tcc_recorder *r, const tcc_cta *cta, uint64_t now)
{
    for (size_t i = 0; i < cta->n_mbarriers; i++) {
        const tcc_mbarrier *m = &cta->mbarriers[i];
        phase *p = &r->phases[i];
        if (m->address == p->address && m->phase == p->number)
            continue;
        if (m->address == p->address)
            TCC_PUSH(r->scratch, &r->timeline.phases,
                     (tcc_timed_phase){barrier_at(r, m->address), p->number, p->begin, now});
        *p = (phase){m->address, m->phase, now};
    }
}

tcc_timeline *tcc_record_end(tcc_recorder *r)
{
    for (unsigned w = 0; w < r->timeline.n_warps; w++) {
        uint64_t end = r->warps[w].end;
        begin_part(r, w, TCC_EPILOGUE, end);
        r->timeline.cycles = end > r->timeline.cycles ? end : r->timeline.cycles;
    }
    return &r->timeline;
}

/* explore: all executions.
 *
 * Warps run one at a time, the one with the least progress first, each to its next wait or the
 * next head of a loop; one that needs a choice runs only when no other can proceed, so that what
 * the others do is followed once, not for each answer. That one order stands for all others, because on
 * the way it is checked that nothing depends on it (sync.c; docs/protocol-checker.md has the
 * argument). What remains to be explored is what the kernel's parameters decide: how often loops
 * run, and which way branches go. Where that is first asked for, the state is written in its normal
 * form; if it was seen before, everything that can follow was, too; if not, every answer is tried.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/model.h"

enum { MAX_STATES = 20000, MAX_STEPS = 20000000, AT_HEAD = TCC_P_AT_HEAD };
enum { LOOKED_UP = 8 }; /* states of a loop's period, at least */

/* ---- one execution --------------------------------------------------------------------------- */

/* Who goes on last: who is past the loops that fill and empty stages; before them the warp of aside.c. */
static unsigned place_of(const tcc_protocol *p, const tcc_pstate *s, unsigned w)
{
    return s->warps[w].past ? 2 : w == p->aside;
}

/* The warp that proceeds: of those that can, or of those that need a choice. */
static int next_warp(const tcc_protocol *p, const tcc_pstate *s, bool asks)
{
    int best = -1;
    uint64_t least = UINT64_MAX, all = UINT64_MAX >> (TCC_P_WARPS - p->n_followed);
    for (uint64_t rest = all & ~s->blocked & (asks ? s->asks : ~s->asks); rest; rest &= rest - 1) {
        unsigned w = (unsigned)__builtin_ctzll(rest);
        const tcc_pwarp *warp = &s->warps[w];
        uint64_t place = (uint64_t)place_of(p, s, w) << 32 | warp->progress;
        if (!warp->depth || place >= least)
            continue;
        best = (int)w;
        least = place;
    }
    return best;
}

static bool all_finished(const tcc_protocol *p, const tcc_pstate *s)
{
    for (unsigned w = 0; w < p->n_warps; w++)
        if (s->warps[w].depth)
            return false;
    return true;
}

static uint64_t with_bit(uint64_t bits, unsigned at, bool set)
{
    return (bits & ~(UINT64_C(1) << at)) | (uint64_t)set << at;
}

/* ---- choices --------------------------------------------------------------------------- */

/* Whether a loop may yet begin in the block that the warp is in at depth d, from where it is. */
static bool has_loops_ahead(const tcc_pwarp *w, uint32_t d)
{
    const tcc_pframe *f = &w->frames[d];
    const tcc_pinst *in = &f->code->insts[f->pc];
    bool inside = d + 1 < w->depth;
    bool parted = inside && tcc_p_may_part(&w->frames[d + 1]) && in->regions[1].loops;
    return in->loops_later || (!inside && in->loops) || parted;
}

bool tcc_p_may_part(const tcc_pframe *f)
{
    return f->of->op->code == TCC_OP_scf_if && f->region == 0 && (f->may || f->mask != f->outer) && f->of->regions[1].n;
}

bool tcc_p_may_enter(const tcc_pstate *s, unsigned w, int r)
{
    const tcc_pwarp *warp = &s->warps[w];
    const tcc_precord *record = &s->records[r];
    uint32_t from = 0;
    if (record->parent >= 0) {
        uint32_t d = 0;
        while (d < warp->depth && warp->frames[d].record != record->parent)
            d++;
        if (d == warp->depth)
            return warp->depth && tcc_p_may_enter(s, w, record->parent);
        int64_t at = tcc_p_position(&warp->frames[d]);
        if (at != record->parent_at)
            return at < record->parent_at;
        from = d;
    }
    for (uint32_t d = from; d < warp->depth; d++) {
        const tcc_pframe *f = &warp->frames[d];
        if (d > from && f->record >= 0)
            return false; /* what is asked for inside is of its iterations */
        bool again = f->of && f->of->op->code == TCC_OP_scf_for && f->record < 0 && f->code->loops;
        if (again || (f->pc == AT_HEAD && f->code->loops))
            return true;
        if (f->pc < f->code->n && has_loops_ahead(warp, d))
            return true;
    }
    return false;
}

static bool is_needed(const tcc_protocol *p, const tcc_pstate *s, int r)
{
    const tcc_precord *record = &s->records[r];
    for (unsigned i = 0; i < s->n_records; i++)
        if (s->records[i].parent == r)
            return true;
    if (record->truth && record->parent < 0)
        return true;
    for (unsigned w = 0; w < p->n_warps; w++) {
        const tcc_pwarp *warp = &s->warps[w];
        if (warp->depth && tcc_p_may_enter(s, w, r))
            return true;
        bool in_parent = record->parent < 0 && warp->depth;
        for (uint32_t d = 0; d < warp->depth; d++) {
            if (warp->frames[d].record == r)
                return true;
            in_parent |= record->parent >= 0 && warp->frames[d].record == record->parent &&
                         tcc_p_position(&warp->frames[d]) <= record->parent_at;
        }
        if (in_parent && record->parent >= 0 && record->compared > INT64_MIN)
            return true;
        if (in_parent && (p->symbol_data || record->truth))
            return true;
    }
    return false;
}

/* Of a number of which only comparisons may yet ask: what they do not tell apart is forgotten. */
static bool is_only_compared(tcc_precord *r)
{
    bool compared = r->compared > INT64_MIN && r->parent < 0;
    if (compared && r->least > r->compared) {
        r->least = r->compared + 1;
        r->most = INT64_MAX;
    }
    return compared;
}

/* Forgets numbers that will not be asked for again. */
static void drop_records(tcc_protocol *p, tcc_pstate *s)
{
    for (int r = (int)s->n_records - 1; r >= 0; r--) {
        if ((unsigned)r == p->choice.record || is_needed(p, s, r))
            continue;
        tcc_p_note_past(p, s, &s->records[r]);
        if (is_only_compared(&s->records[r]))
            continue;
        s->n_records--;
        memmove(&s->records[r], &s->records[r + 1],
                (s->n_records - (size_t)r) * sizeof *s->records);
        for (unsigned i = 0; i < s->n_records; i++)
            s->records[i].parent -= s->records[i].parent > r;
        for (unsigned w = 0; w < p->n_warps; w++)
            for (uint32_t d = 0; d < s->warps[w].depth; d++)
                s->warps[w].frames[d].record -= s->warps[w].frames[d].record > r;
        p->choice.record -= p->choice.record > (unsigned)r;
        s->chosen = s->chosen == r ? -1 : s->chosen - (s->chosen > r);
    }
}

/* Whether the state has become calm, and what follows was followed before. */
static bool rests(tcc_protocol *p, tcc_pstate *s)
{
    p->met = false;
    s->known = false;
    const bool *is_free = tcc_p_comes_to_rest(p, s);
    if (!is_free)
        return false;
    p->choice.record = UINT32_MAX;
    drop_records(p, s);
    s->known = !tcc_p_is_new(p, s, is_free);
    return s->known;
}

/* Runs a warp to its next wait or head. */
static tcc_presult run_warp(tcc_protocol *p, tcc_pstate *s, unsigned w)
{
    tcc_presult r;
    bool moved = false, waits = false;
    do {
        r = tcc_p_step(p, s, w);
        moved |= r == TCC_P_NEXT || r == TCC_P_JUMPED || r == TCC_P_HEAD;
        if (p->met || r == TCC_P_HEAD) {
            if (rests(p, s))
                return TCC_P_NEXT;
            waits = s->warps[w].past = tcc_p_is_past(p, s, w);
        }
    } while ((r == TCC_P_NEXT || r == TCC_P_JUMPED) && s->warps[w].depth && !waits);
    if (moved)
        tcc_p_wake(s, TCC_P_ANYTHING);
    s->blocked = with_bit(s->blocked, w, r == TCC_P_BLOCKED);
    s->asks = with_bit(s->asks, w, r == TCC_P_CHOICE);
    if (!s->warps[w].depth && !tcc_p_check_end_of_warp(p, s, w))
        return TCC_P_FAILED;
    p->ended = with_bit(p->ended, w, p->ended >> w & 1 || !s->warps[w].depth);
    return r;
}

/* How an execution stops. It is followed to its end only where it says so. */
typedef enum outcome {
    ENDED, /* all warps did */
    KNOWN, /* what follows was followed */
    ASKS,  /* p->choice must be decided */
    FAILED /* something is wrong, or may be */
} outcome;

/* The end, where no warp can proceed. */
static outcome stop(tcc_protocol *p, tcc_pstate *s)
{
    if (!all_finished(p, s))
        tcc_p_deadlock(p, s);
    else if (tcc_p_check_end(p, s)) {
        p->covered.ends++;
        return ENDED;
    }
    return FAILED;
}

/* Runs until no warp can proceed without a choice. One that asked may go on: what others asked since then, or a loop
 * that they entered, may have answered it. */
static outcome run(tcc_protocol *p, tcc_pstate *s)
{
    while (p->steps <= MAX_STEPS) {
        int w = next_warp(p, s, false);
        bool asked = w < 0;
        if (asked && (w = next_warp(p, s, true)) < 0)
            return stop(p, s);
        tcc_presult r = run_warp(p, s, (unsigned)w);
        if (r == TCC_P_FAILED)
            return FAILED;
        if (s->known)
            return KNOWN;
        if (r == TCC_P_CHOICE && asked && next_warp(p, s, false) < 0)
            return ASKS;
    }
    tcc_p_unsupported(p, NULL, "its states do not repeat");
    return FAILED;
}

/* ---- all executions -------------------------------------------------------------------- */

/* A state in which something was asked, in which it is still to be tried that the number is more.
 */
typedef struct pending {
    tcc_pstate *state;
    unsigned record;
    int64_t at; /* than this */
} pending;

typedef struct search {
    TCC_VEC(pending) stack;
    TCC_VEC(tcc_pstate *) free;
} search;

/* Whether to look for the state among those seen before. Not to is never wrong, but two ways to one
 * state are then followed both. While one number is asked for again and again there is but one way:
 * any other answer says what the number is. So of a loop's states a few are enough, the same ones
 * in each period. */
static bool is_looked_up(const tcc_protocol *p, const tcc_pstate *s)
{
    const tcc_precord *r = &s->records[p->choice.record];
    int64_t every = p->period / LOOKED_UP / (p->rotation ? 2 : 1), at = p->choice.at / r->scale;
    bool again = s->chosen == (int)p->choice.record && !r->truth;
    bool early = !r->truth && tcc_p_rotates_later(p, at);
    return !early && (!again || every < 2 || at % p->period % every == 0);
}

/* Goes on with the number not being more; that it is is kept for later. */
static void choose(tcc_protocol *p, search *q, tcc_pstate *s)
{
    pending c = {.record = p->choice.record, .at = p->choice.at};
    s->blocked = 0;
    s->log_len = p->log.len;
    s->n_readers = p->readers.len;
    s->chosen = (int)p->choice.record;
    c.state = q->free.len ? q->free.data[--q->free.len] : tcc_p_state_create(p);
    tcc_p_state_copy(p, c.state, s);
    TCC_PUSH(p->scratch, &q->stack, c);
    s->records[c.record].most = c.at;
    tcc_p_count_found(p, s, &s->records[c.record]);
}

/* The last state in which an answer is still to be tried, with that answer; NULL when there is
 * none.
 */
static tcc_pstate *next_choice(tcc_protocol *p, search *q, tcc_pstate *done)
{
    if (!q->stack.len)
        return NULL;
    pending c = q->stack.data[--q->stack.len];
    TCC_PUSH(p->scratch, &q->free, done);
    p->log.len = c.state->log_len;
    p->readers.len = c.state->n_readers;
    tcc_p_memory_update(p, c.state);
    c.state->records[c.record].least = c.at + 1;
    return c.state;
}

/* Whether an execution in which something is asked is followed further: it was not met before. */
static bool goes_on(tcc_protocol *p, tcc_pstate *s)
{
    if (p->status)
        return false;
    s->asks = 0;
    drop_records(p, s);
    if (is_looked_up(p, s) && !tcc_p_is_new(p, s, NULL))
        return false;
    if (++p->n_states > MAX_STATES)
        tcc_p_unsupported(p, NULL, "it has more than %d states", MAX_STATES);
    return !p->status;
}

tcc_status tcc_p_explore(tcc_protocol *p)
{
    search q = {0};
    tcc_pstate *s = tcc_p_first_state(p);
    tcc_p_runs_find(p);
    tcc_p_calm_find(p);
    if (!p->as_it_is) {
        tcc_p_rotation_find(p, s);
        tcc_p_laps_find(p, s);
    }
    p->loose &= tcc_p_has_tiles(p);
    while (s) {
        p->doubted = false;
        if (!tcc_p_is_possible(p, s)) {
            s = next_choice(p, &q, s);
            continue;
        }
        outcome r = run(p, s);
        if (r == ASKS && goes_on(p, s))
            choose(p, &q, s);
        else if (r == FAILED && !p->doubted)
            tcc_p_unsupported(p, NULL, "an execution stops, and it is not known why");
        else
            s = next_choice(p, &q, s);
        if (p->status)
            return p->status;
    }
    if (p->doubt.what)
        tcc_p_unsupported(p, p->doubt.op,
                          "it is not known how certain numbers depend on each other; if they did not, %s",
                          p->doubt.what);
    else if (!(p->elected_others = !tcc_p_elections_hold(p)))
        tcc_p_is_covered(p);
    return p->status;
}

/* Of an operand that is a tensor's only row, some warpgroups find nothing; of others all do. */
static tcc_status check_found(tcc_protocol *p)
{
    for (int i = 0; i < 2; i++) {
        const tcc_pfound *f = &p->found[i];
        const tcc_op *op = !f->any ? f->last : f->all ? f->nothing : NULL;
        if (op) {
            tcc_error(p->diag, TCC_ERR_INTERNAL, op->loc,
                      "nothing is ever written to operand %c of %s MMAs", "AB"[i],
                      f -> any ? "these" : "all");
            return TCC_ERR_INTERNAL;
        }
    }
    return TCC_OK;
}

/* ---- entry points ---------------------------------------------------------------------- */

tcc_protocol *tcc_p_open(const tcc_func *f, tcc_arena *scratch, tcc_diag *diag)
{
    tcc_protocol *p = TCC_NEW(scratch, tcc_protocol);
    *p = (tcc_protocol){.f = f, .scratch = scratch, .diag = diag, .aside = TCC_P_NO_WARP};
    tcc_ptable **tables[] = {&p->lanes_table, &p->symbol_table, &p->memo, &p->prints_table,
                             &p->chunks_table, &p->states};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        *tables[i] = tcc_ptable_create(scratch);
    tcc_p_elections_create(p);
    tcc_p_decode(p);
    p->n_steps = p->n_warps;
    return p;
}

static tcc_status prove(tcc_protocol *p)
{
    p->n_actors = tcc_p_named_actor(p, p->n_named);
    p->n_entities = tcc_p_named(p, p->n_named);
    p->stride =
        (p->n_actors + p->n_warps + p->n_steps + TCC_P_BLOCK - 1) / TCC_P_BLOCK * TCC_P_BLOCK;
    p->version = TCC_NEW(p->scratch, uint64_t);
    p->n_followed = p->n_warps;
    tcc_p_compute_fixed(p);
    if (p->aside != TCC_P_NO_WARP)
        tcc_p_aside_find_lanes(p);
    if (!p->all_ctas && !p->splits && tcc_p_lanes_are_alike(p))
        tcc_p_symmetry_find(p);
    tcc_p_normal_create(p);
    tcc_p_sums_create(p);
    tcc_p_memory_create(p);
    tcc_p_reached_create(p);
    tcc_status status = tcc_p_explore(p);
    return status ? status : check_found(p);
}

/* How to follow a kernel: what is cheap first. */
typedef struct way {
    bool aside, loose, spans, as_it_is, all_ctas, finely, counts_all, relates, logs;
} way;

/* Whether a thread draws numbers. */
static bool draws(const tcc_pcode *code)
{
    bool any = false;
    for (size_t i = 0; i < code->n && !any; i++) {
        any = code->insts[i].op->code == TCC_OP_nvvm_atom_inc;
        for (unsigned r = 0; r < code->insts[i].op->n_regions && !any; r++)
            any = draws(&code->insts[i].regions[r]);
    }
    return any;
}

/* The same function once more, its operands found if they were. */
static tcc_protocol *open_again(const tcc_protocol *p, tcc_diag *diag)
{
    tcc_protocol *again = tcc_p_open(p->f, p->scratch, diag);
    again->elections = p->elections;
    if (p->operands && !again->status)
        tcc_p_operands_find(again);
    return again;
}

static tcc_status follow_again(tcc_protocol *p, tcc_diag *diag, way how, way *did, tcc_covered *covered);

/* Again with states told apart, where some were taken for one that are not; or lanes. */
static tcc_status follow(tcc_protocol *p, way how, way *did, tcc_covered *covered)
{
    if (p->status)
        return p->status;
    p->keeps_counts = p->symbol_data || draws(&p->body);
    p->loose = how.loose;
    p->spans = how.spans;
    p->loosened = how.loose && p->least_threshold < p->threshold;
    p->threshold = how.loose ? p->least_threshold : p->threshold;
    p->as_it_is = how.as_it_is;
    p->all_ctas = how.all_ctas;
    p->counts_all = how.counts_all;
    p->relates = how.relates;
    p->logs = how.logs;
    p->granule = how.finely ? p->finest : p->granule;
    *did = (way){.aside = how.aside && p->ctas == 1 && tcc_p_aside_find(p)};
    tcc_status status = prove(p);
    did->loose = p->loosened;
    did->spans = p->spanned;
    did->all_ctas = !p->symmetry;
    did->counts_all = p->generalized;
    did->relates = p->compared;
    p->covered.steps = covered->steps + p->steps;
    *covered = p->covered;
    if (!p->apart && !p->elected_others)
        return status;
    how.as_it_is |= p->apart;
    return follow_again(p, p->diag, how, did, covered);
}

/* Follows it as another protocol: what was asked there is what its proof is for. */
static tcc_status follow_again(tcc_protocol *p, tcc_diag *diag, way how, way *did, tcc_covered *covered)
{
    tcc_protocol *again = open_again(p, diag);
    tcc_status status = follow(again, how, did, covered);
    p->layouts = again->layouts;
    return status;
}

tcc_status tcc_p_prove(tcc_protocol *p, tcc_diag *diag, tcc_covered *covered)
{
    tcc_diag *silent = p->diag;
    way did = {0}, again;
    *covered = (tcc_covered){0};
    way how = {.aside = true, .loose = true, .spans = true};
    tcc_status status = follow(p, how, &did, covered);
    how.all_ctas = true;
    if (status && !did.all_ctas)
        status = follow_again(p, silent, how, &did, covered);
    if (!status)
        return TCC_OK;
    const way ways[] = {{.aside = did.aside, .spans = true, .all_ctas = true},
                        {.aside = true, .loose = true, .all_ctas = true},
                        {.aside = true, .all_ctas = true},
                        {.aside = true, .loose = true, .spans = true, .all_ctas = true, .finely = true}};
    const bool may_help[] = {did.loose && did.spans, did.spans, did.aside && did.loose, p->finest < p->granule};
    way closely = {.all_ctas = true, .counts_all = did.counts_all, .relates = did.relates};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (may_help[i] && !follow_again(p, silent, ways[i], &again, covered))
            return TCC_OK;
    for (int loosely = 1; loosely >= 0 && (closely.counts_all || closely.relates); loosely--) {
        how = closely;
        how.aside = how.spans = true;
        how.loose = loosely;
        if (!follow_again(p, silent, how, &again, covered))
            return TCC_OK;
    }
    how = closely;
    how.finely = true;
    how.relates = false;
    if (closely.relates) /* what is wrong then, too, is most often told better without */
        how.relates = follow_again(p, silent, how, &again, covered) == TCC_ERR_UNSUPPORTED;
    how.logs = true;
    return follow_again(p, diag, how, &did, covered);
}

tcc_status tcc_protocol_measure(const tcc_func *f, tcc_arena *scratch, tcc_diag *diag, tcc_covered *covered)
{
    tcc_diag silent = {0};
    return tcc_p_prove(tcc_p_open(f, scratch, &silent), diag, covered);
}

tcc_status tcc_protocol_check(const tcc_func *f, tcc_arena *scratch, tcc_diag *diag)
{
    tcc_covered covered;
    return tcc_protocol_measure(f, scratch, diag, &covered);
}

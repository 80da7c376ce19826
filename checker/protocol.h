/* protocol: what does not change from state to state; order, and who takes part in it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_CHECKER_PROTOCOL_H
#define TCC_CHECKER_PROTOCOL_H

#include "checker/state.h"

/* What MMAs have found in an operand. */
typedef struct tcc_pfound {
    bool any, all;         /* of them found something there; all of it */
    const tcc_op *nothing; /* one that found nothing; NULL: none */
    const tcc_op *last;    /* of those that read it in shared memory; NULL: none */
} tcc_pfound;

/* Numbers of iterations that stand for others: n, and those near it; from `least` on. */
typedef struct tcc_pfamily {
    int64_t n, least;
} tcc_pfamily;

/* Protocol: all that does not change from state to state. */
struct tcc_protocol {
    const tcc_func *f;
    tcc_arena *scratch;
    tcc_diag *diag;
    tcc_status status;
    tcc_pcode body;
    uint32_t n_slots, n_fixed;
    TCC_VEC(tcc_pinst) fixed;    /* ops that give the same in every state, as constants and places in a warp do; */
    tcc_pvalue *fixed_values;    /* of each warp: what they give */
    TCC_VEC(uint32_t) registers; /* slots of what MMAs write; */
    TCC_VEC(uint32_t) waiting;   /* of what waits for a number of iterations */
    int64_t threshold;           /* indices that are less are told apart; */
    int64_t least_threshold;     /* at least those that are less than this */
    int64_t data_threshold;      /* iteration counts as data that are less are, too */
    int64_t period;              /* in iterations, of the loop whose index repeats itself last */
    int64_t symbol_data; /* of numbers of iterations their remainder by this is asked; 0: nothing */
    unsigned ctas, cta_warps, cta_named; /* CTAs that are followed together; warps of each; named barriers of each */
    unsigned spread; /* warps from one CTA's first to the next one's: whole warpgroups; of one CTA more than it has */
    bool reaches;             /* a CTA writes another's shared memory, and no mbarrier there reports it */
    bool ends_together;       /* its last op is a barrier of the cluster */
    bool asks_memory;         /* how often a loop runs, or a condition, depends on an element of a tensor */
    bool splits;              /* it arrives at the cluster's barrier and waits later */
    bool starts_apart;        /* it stores in another CTA's shared memory before any cluster barrier */
    unsigned n_followed; /* warps; of a cluster of which one CTA is, its warps */
    unsigned n_warps, n_groups, max_barriers, n_named, n_actors, n_steps, n_entities, stride;
    unsigned aside; /* the last warp, when it is that of aside.c; else TCC_P_NO_WARP; */
    tcc_lane_mask aside_lanes; /* no others of its lanes do anything */
    unsigned n_lanes;
    bool amd;        /* waves instead of warps */
    int64_t granule, finest; /* bytes of shared memory that are taken together; at best */
    bool stores;     /* there are copies to global memory, those of threads or, on AMD, accesses to LDS; */
    bool groups;     /* those of threads to shared memory (cp.async) */
    bool follows;    /* accesses to tensors are followed */
    bool writes;     /* there are copies that write to tensors */
    uint32_t *tensors;     /* of each parameter: 1 + the first of the same tensor */
    uint8_t *tensor_uses;  /* by 1 + the number of a parameter */
    uint32_t most_pending; /* copies to global memory, in a wait */
    bool keeps_counts;     /* iteration counts are data, or tiles are drawn: from tile to tile (counts.c) */
    const tcc_op *draw;    /* the op that draws numbers; NULL: none did yet */
    unsigned drawer;       /* the warp that runs it */
    uint32_t drawing, tested; /* 1 + the symbols of how often loops that test it run, and of what they test */
    int64_t smem_bytes, cta_bytes; /* of all, and of a CTA */
    int64_t *box_bytes; /* by parameter, 0 for others */
    /* values */
    tcc_pvalue *carried; /* as many as a loop carries */
    TCC_VEC(const tcc_cell *) lanes;
    TCC_VEC(tcc_psymbol) symbols;
    TCC_VEC(tcc_pfamily) families;
    struct tcc_ptable *lanes_table, *symbol_table, *memo, *prints_table, *chunks_table, *states;
    /* memory */
    uint16_t *atom_of;               /* by granule */
    uint64_t *granules; /* while a footprint is made: that it takes, a bit each; all 0 otherwise */
    uint32_t *taken;    /* of each atom so many; */
    uint16_t *part, *touched;
    size_t n_granules; /* of shared memory that is followed */
    size_t room;       /* the number of atoms for which there is room */
    struct tcc_prange *span_ranges; /* of the span whose ranges are being found */
    size_t span_room;               /* room for so many */
    uint64_t *span_bytes;           /* bits, all 0 otherwise */
    TCC_VEC(struct tcc_patom_info) atom_infos;
    TCC_VEC(struct tcc_pfootprint) footprints;
    TCC_VEC(struct tcc_preader) readers;
    tcc_pfound found[2]; /* of A and B */
    bool operands; /* what MMAs read, and copies write, was looked for (operands.c) */
    bool layouts; /* it mattered how an operand lies; another function of which this is the proof may differ there */
    /* what was covered (reached.c) */
    uint8_t *reached; /* of each op, by its number */
    uint64_t ended;   /* warps, a bit each */
    tcc_covered covered;
    /* exploration */
    struct {
        unsigned record;
        int64_t at; /* is the number more than this? */
    } choice;
    bool logs; /* steps, to report what is wrong */
    TCC_VEC(tcc_pentry) log;
    size_t steps, n_states;
    struct {
        const tcc_op *op;
        const char *what; /* NULL: nothing */
    } other;              /* the access that another one conflicts with */
    struct {
        const tcc_op *op;
        const char *what;        /* NULL: nothing */
    } doubt;                     /* what is wrong in an execution that may be none; */
    bool doubted;                /* in the one that is followed */
    uint64_t *version;           /* the last one of any clocks */
    struct tcc_pcolumn *columns; /* of clocks: normal.c */
    uint32_t *common;            /* of all warps; */
    struct tcc_pcovers *covers;  /* covers.c */
    tcc_pvalue *rows[2];         /* a warp's slots in their normal form */
    struct tcc_protation *rotation; /* NULL: none is known */
    struct tcc_plaps *laps;         /* laps.c; NULL: none are known */
    struct tcc_psymmetry *symmetry; /* of a cluster's CTAs; NULL: all are followed, as they are if `all_ctas` */
    bool all_ctas;
    struct tcc_pelections *elections; /* elect.c: of all attempts; */
    bool elected_others;              /* in this one lanes were taken to be alike that are not */
    struct tcc_psums *sums;      /* sums.c */
    bool *is_free;               /* of each atom: calm.c */
    bool calms;                  /* calm states are looked for */
    bool met;                    /* states are looked for when warps have met */
    bool apart;                  /* different states were taken for one */
    bool as_it_is;               /* the search is repeated with all states told apart */
    bool loose, loosened;        /* states stand for others, which are not equal; some did */
    bool relates, compared; /* comparisons with constants ask for numbers; there was one */
    bool counts_all, generalized; /* iterations that are known are counted one by one; of some loop any were tried */
    bool spans, spanned;         /* accesses with nothing between them are taken for one; some were */
};

/* ---- a table from a few words to a number (table.c) ------------------------------------------ */

typedef struct tcc_ptable tcc_ptable;
tcc_ptable *tcc_ptable_create(tcc_arena *arena);
/* The place of the number of a key, 0 when the key is new. */
uint64_t *tcc_ptable_at(tcc_ptable *t, const void *key, size_t bytes);
/* The key of a place in the table, which is kept. */
const void *tcc_ptable_key(const uint64_t *place);
uint64_t tcc_p_hash(const void *bytes, size_t n);

/* ---- order: clocks, as in machine.h ---------------------------------------------------- */

/* Of each entity (a warp; a barrier's arrivals; its last phase; a named barrier): what it comes
 * after. A clock for each actor; one for each warp, up to which it has run a proxy fence; and one
 * for each warp: its steps, which order of control alone tells of, not of memory. With them are the
 * counts of aside.c. */
static inline const uint32_t *tcc_p_clocks(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    return s->clocks + (size_t)entity * p->stride;
}
static inline uint32_t *tcc_p_seen(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    s->versions[entity] = ++*p->version; /* it may be written */
    return s->clocks + (size_t)entity * p->stride;
}
static inline uint32_t *tcc_p_fenced(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    return tcc_p_seen(p, s, entity) + p->n_actors;
}
static inline uint32_t *tcc_p_passed(const tcc_protocol *p, const tcc_pstate *s, unsigned entity)
{
    return tcc_p_seen(p, s, entity) + p->n_actors + p->n_warps;
}
/* Keeps of a block of clocks, and of those of another one, the later or the earlier ones. Signed numbers of a constant
 * length can be compared as vectors. */
static inline void tcc_p_keep_later(uint32_t *restrict clocks, const uint32_t *restrict others)
{
    for (unsigned i = 0; i < TCC_P_BLOCK; i++)
        clocks[i] = (int32_t)others[i] > (int32_t)clocks[i] ? others[i] : clocks[i];
}
static inline void tcc_p_keep_earlier(uint32_t *restrict clocks, const uint32_t *restrict others)
{
    for (unsigned i = 0; i < TCC_P_BLOCK; i++)
        clocks[i] = (int32_t)others[i] < (int32_t)clocks[i] ? others[i] : clocks[i];
}
void tcc_p_join(const tcc_protocol *p, tcc_pstate *s, unsigned to, unsigned from);
/* The warp cannot go on before an entity tells more; it does. */
tcc_presult tcc_p_wait_for(tcc_pstate *s, unsigned warp, unsigned entity);
void tcc_p_wake(tcc_pstate *s, unsigned entity);
/* What the warp does from here on is not yet known to whom it has told of its past. */
void tcc_p_tick(const tcc_protocol *p, tcc_pstate *s, unsigned warp);

/* Actors: warps, their copies to global memory, what these write there, which is done later than
 * what they read, warpgroups' MMAs, mbarriers, named barriers. On AMD a wave's accesses to LDS
 * are the second kind: their clock counts the times that it has waited for them; so are copies of a warp's
 * threads to shared memory, where there are such: it counts groups. */
static inline unsigned tcc_p_bulk_actor(const tcc_protocol *p, unsigned warp)
{
    return p->n_warps + warp;
}
static inline unsigned tcc_p_writes_actor(const tcc_protocol *p, unsigned warp)
{
    return 2 * p->n_warps + warp;
}
static inline unsigned tcc_p_mma_actor(const tcc_protocol *p, unsigned warp)
{
    return (1u + p->stores + p->writes) * p->n_warps + warp / TCC_WARPGROUP_WARPS;
}
static inline unsigned tcc_p_barrier_actor(const tcc_protocol *p, unsigned barrier)
{
    return tcc_p_mma_actor(p, 0) + p->n_groups + barrier;
}
static inline unsigned tcc_p_named_actor(const tcc_protocol *p, unsigned id)
{
    return tcc_p_barrier_actor(p, p->max_barriers) + id;
}
/* Entities. */
static inline unsigned tcc_p_arrivals(const tcc_protocol *p, unsigned barrier)
{
    return p->n_warps + 2 * barrier;
}
static inline unsigned tcc_p_done(const tcc_protocol *p, unsigned barrier)
{
    return p->n_warps + 2 * barrier + 1;
}
static inline unsigned tcc_p_named(const tcc_protocol *p, unsigned id)
{
    return p->n_warps + 2 * p->max_barriers + id;
}

/* ---- CTAs of a cluster (cluster.c) --------------------------------------------------------- */

static inline unsigned tcc_p_cta(const tcc_protocol *p, unsigned warp)
{
    return warp / p->spread;
}
/* Of a byte of all shared memory. */
static inline int64_t tcc_p_cta_at(int64_t byte)
{
    return byte >> TCC_P_WINDOW_LOG2;
}
/* Which byte of its CTA's is at an address. */
static inline long long tcc_p_byte(int64_t address)
{
    return (address - TCC_SMEM_BASE) & (TCC_P_WINDOW - 1);
}
/* The first byte of the warp's CTA. */
static inline int64_t tcc_p_window(const tcc_protocol *p, unsigned warp)
{
    return (int64_t)tcc_p_cta(p, warp) * TCC_P_WINDOW;
}
/* Whether a byte is of the warp's CTA; false, reported. */
bool tcc_p_is_own(tcc_protocol *p, const tcc_pstate *s, unsigned warp, const tcc_pinst *in, int64_t byte);
/* nvvm.mapa */
tcc_pvalue tcc_p_mapped(const tcc_protocol *p, unsigned warp, const tcc_pvalue *address, const tcc_pvalue *rank);
/* Whether an arrival at the cluster's barrier, or a wait for it, stands without the other. */
bool tcc_p_is_split(const tcc_op *op);
/* Whether no CTA ends before others have done what they do in its shared memory. */
bool tcc_p_ends_together(const tcc_func *f);

/* ---- CTAs that do the same (symmetry.c) ---------------------------------------------------- */

/* Finds out whether all CTAs do the same, given what is fixed; then p->symmetry is not NULL. */
void tcc_p_symmetry_find(tcc_protocol *p);
/* Whether an mbarrier, or a named barrier, is followed. Where CTAs do the same, the corresponding mbarriers of all have
 * neighbouring numbers. */
static inline bool tcc_p_is_followed_barrier(const tcc_protocol *p, unsigned barrier)
{
    return !p->symmetry || !(barrier % p->ctas);
}
static inline bool tcc_p_is_followed_named(const tcc_protocol *p, unsigned id)
{
    return !p->symmetry || id < p->cta_named || id == p->n_named - 1;
}
/* Bytes of shared memory. */
static inline int64_t tcc_p_followed_bytes(const tcc_protocol *p)
{
    return p->symmetry ? p->cta_bytes : p->smem_bytes;
}
bool tcc_p_is_followed_entity(const tcc_protocol *p, unsigned entity);
/* The clock of CTA 0 that corresponds to one of an entity's. */
unsigned tcc_p_home_clock(const tcc_protocol *p, unsigned clock);
/* Reduces what all warps of CTA 0 know to what those of all CTAs know. */
void tcc_p_symmetry_common(const tcc_protocol *p, uint32_t *common);
/* Adds what the corresponding warps of other CTAs know. */
void tcc_p_join_images(const tcc_protocol *p, tcc_pstate *s, unsigned to, unsigned warp);
/* A warp arrives at an mbarrier of another CTA; what it does there another CTA's does here. */
tcc_presult tcc_p_arrive_by_image(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in,
                                  tcc_presult (*arrive)(tcc_protocol *, tcc_pstate *, unsigned, const tcc_pinst *));
/* A lane copies to another CTA. */
tcc_presult tcc_p_load_by_image(tcc_protocol *p, tcc_pstate *s, unsigned warp, const tcc_pinst *in, unsigned lane,
                                unsigned cta,
                                void (*tell)(tcc_protocol *, tcc_pstate *, unsigned, tcc_lane_mask, unsigned));

#endif

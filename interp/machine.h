/* machine: a cluster of CTAs of a GPU at the target level; most have one. On AMD's a warp is a wave
 * and a CTA a workgroup, the only one of its cluster.
 *
 * Shared memory records for each place its last write and the reads since, as actor and clock. An
 * access must come after those that it conflicts with, in every execution: not because of the order
 * in which the warps happened to run, but through barriers. Each warp has a vector clock: for each
 * actor the clock up to which the warp comes after it. It passes the vector clock on when it
 * arrives at a barrier.
 *
 * Actors are, of each CTA, the warps; the MMAs of each warpgroup, whose clock counts committed
 * groups; each warp's copies to global memory, likewise, and what they write there, which is done
 * later than what they read; each mbarrier, standing for the copies
 * that complete on it, whose clock counts its phases; each named barrier, likewise; and each warp's copies
 * of its threads (cp.async), whose clock counts groups.
 *
 * Ordinary accesses and those of wgmma and the copy engine use different proxies: whoever makes an
 * ordinary write, or a read of what a copy overwrites later, must run a fence.proxy.async before
 * others hear of it. So every clock exists twice: seen, and seen with such a fence behind it. (PTX
 * ISA, "Memory Consistency Model": causality order, proxies, proxy-preserved base causality order.
 * That needs a fence somewhere on the way; what the fence of another thread does for accesses that
 * are not its own is nowhere said, and nobody relies on it.)
 *
 * AMD: the clock of a wave counts its accesses to LDS, which are done in order. For the wave itself
 * they all come before what it does next; what it hands on at s_barrier are those that it has
 * waited for (waitcnt). There are no proxies.
 *
 * Lanes of a warp run at their own pace: lanes.c has what some of them know and others do not.
 *
 * order.c    clocks                          memory.c   shared memory
 * lanes.c    lanes of a warp
 * barrier.c  mbarriers and named barriers    tma.c      tensor maps, copies in bulk
 * wgmma.c    warpgroup MMAs              cluster.c  what CTAs of a cluster share, their ends
 * matrix.c   ldmatrix, stmatrix, shuffles    warp.c     everything else
 * launch.c   a kernel's parameters, its CTAs grid.c     its clusters, in several threads
 * amdgcn.c   LDS, barriers of AMD            buffer.c   buffer descriptors, their loads and stores
 * wmma.c     MMAs of a wave                  mma_sync.c of a warp
 * wmma_sync.c their fragments, where these are a secret
 * cp_async.c copies of threads                 draw.c     numbers that CTAs draw
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_MACHINE_H
#define TCC_INTERP_MACHINE_H

#include "interp/exec.h"
#include "ir/target.h"

/* ---- order (order.c) --------------------------------------------------------------------- */

/* For each actor the clock up to which it comes before: of all accesses, and of those followed by a
 * proxy fence of its own. */
typedef struct tcc_order {
    uint32_t *seen, *fenced;
} tcc_order;

typedef struct tcc_cluster tcc_cluster;
typedef struct tcc_cta tcc_cta;
typedef struct tcc_warp tcc_warp;

tcc_order tcc_order_create(const tcc_cluster *k);
void tcc_order_join(const tcc_cluster *k, tcc_order *to, const tcc_order *from);
void tcc_order_clear(const tcc_cluster *k, tcc_order *o);

/* Actors by kind. */
unsigned tcc_actor_warp(const tcc_cta *c, unsigned warp);
unsigned tcc_actor_mmas(const tcc_cta *c, unsigned warp);
unsigned tcc_actor_copies(const tcc_cta *c, unsigned warp);
unsigned tcc_actor_writes(const tcc_cta *c, unsigned warp);
unsigned tcc_actor_groups(const tcc_cta *c, unsigned warp);
unsigned tcc_actor_mbarrier(const tcc_cta *c, size_t barrier);
unsigned tcc_actor_named(const tcc_cta *c, int64_t barrier);
/* "warp 3", "an MMA", "a copy", followed by "may still …". */
const char *tcc_actor_name(const tcc_cluster *k, unsigned actor);

/* ---- shared memory (memory.c) ------------------------------------------------------------- */

/* The kind of written bytes. MMAs may multiply zeros that stand for elements outside a tensor with
 * each other, but times an element inside, which may be infinite, they give a NaN. */
enum { TCC_COMPUTED, TCC_OF_TENSOR, TCC_OUTSIDE };

/* Who accesses, with the stamp that it leaves, and what the access comes after. */
typedef struct tcc_accessor {
    const tcc_warp *warp; /* that runs the op */
    tcc_lane_mask lanes;  /* of it: one, or those that do it together */
    unsigned actor;
    uint32_t clock;
    uint32_t synced; /* the warp's clock up to which these lanes come after the others */
    const tcc_order *after;
    bool async;     /* through the async proxy */
    uint8_t origin; /* of a write: what it writes */
} tcc_accessor;

/* What a mark is of. An op that accesses many places leaves one of these. */
typedef struct tcc_smem_access {
    const tcc_op *op;
    const tcc_warp *warp;
    uint64_t step; /* of the warp */
    uint32_t clock;
    uint16_t actor;
    uint8_t kind;        /* none, ordinary, async, an mbarrier's */
    uint8_t origin;      /* of a write */
    tcc_lane_mask lanes; /* of an mbarrier's initialisation */
} tcc_smem_access;

/* For a place: its last write, 0 for none, and the lanes that made it; and the list of reads
 * since. */
typedef struct tcc_mark {
    uint32_t write, readers, lanes;
} tcc_mark;

void tcc_smem_create(tcc_cta *c, int64_t size, int mark_log2);
void tcc_smem_clear(tcc_cta *c);
/* Forgets the accesses of all CTAs, whose shared memory is cleared next. */
void tcc_accesses_clear(tcc_cluster *k);
/* The bytes at an address; NULL, reported, if n bytes there are not all inside or the address is
 * not a multiple of `align`. */
uint8_t *tcc_smem_at(tcc_cta *c, const tcc_op *op, int64_t address, int64_t n, int64_t align);
/* Checks and records an access to bytes that are inside. */
bool tcc_smem_read(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address,
                   int64_t n);
bool tcc_smem_write(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address,
                    int64_t n);
/* Reads of one op at many places: what has been found of one place holds for the next that has the same mark. */
typedef struct tcc_smem_reads {
    tcc_cta *cta;
    const tcc_op *op;
    const tcc_accessor *by;
    uint32_t access;
    bool any; /* some place has been read: its mark before and after that */
    tcc_mark before, later;
    bool written, alike; /* of the last part: all of it has been written; by one access */
} tcc_smem_reads;
tcc_smem_reads tcc_smem_reads_begin(tcc_cta *c, const tcc_op *op, const tcc_accessor *by);
bool tcc_smem_read_part(tcc_smem_reads *r, int64_t address, int64_t n);
/* Whether bytes have been written. Reading others is not an error, since an instruction may read
 * more than it needs; they are poison, and storing poison to global memory is an error. */
bool tcc_smem_is_written(const tcc_cta *c, int64_t address, int64_t n);
/* The kind of bytes; and marks some bytes of a write as outside its tensor. */
uint8_t tcc_smem_origin(const tcc_cta *c, int64_t address);
void tcc_smem_set_outside(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address,
                          int64_t n);
/* Keeps the first read of a byte that was not, and adds a note about it to the error before. */
void tcc_smem_read_unwritten(tcc_cta *c, const tcc_op *op, const tcc_warp *by, int64_t address);
void tcc_note_unwritten(const tcc_cta *c);
/* The same for a product of an element outside a tensor and one inside; and which of the two was
 * first, as the origin of a value. */
void tcc_multiplies_outside(tcc_cta *c, const tcc_op *op, const tcc_warp *by);
const char *tcc_source_of_poison(const tcc_cta *c);
/* Makes 8 bytes an mbarrier, after which ordinary accesses are errors; and makes them memory
 * again. */
bool tcc_smem_take(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address);
void tcc_smem_give_back(tcc_cta *c, const tcc_op *op, const tcc_accessor *by, int64_t address);
/* ---- global memory (memory.c) --------------------------------------------------------------
 *
 * Of tensors that a kernel writes, and that it reads or writes in bulk: the accesses of a cluster to
 * each element. Clusters may run in any order, and are not compared. */

typedef struct tcc_global {
    tcc_mark *marks;    /* by element; NULL: the tensor is only read, or never in bulk */
    int64_t first, end; /* that may have a mark */
} tcc_global;

tcc_status tcc_global_create(tcc_cluster *k);
void tcc_global_clear(tcc_cluster *k);
bool tcc_global_is_tracked(const tcc_cluster *k, const tcc_param *p);
/* Checks and records an access to an element. */
bool tcc_global_access(tcc_cluster *k, const tcc_op *op, const tcc_accessor *by, const tcc_param *p,
                       int64_t at, bool write);
/* A note on the error before: where the other access is. */
void tcc_note_access(const tcc_cluster *k, const tcc_smem_access *other, const char *verb);

/* ---- lanes (lanes.c) --------------------------------------------------------------------------
 */

/* For lanes that know more than all of the warp. */
typedef struct tcc_lanes_part {
    tcc_lane_mask lanes;
    uint32_t synced;
    tcc_order order;
} tcc_lanes_part;

#define TCC_IN_USE UINT32_MAX /* of a barrier, by lanes of which not all others know */

/* The lane of which the op is looked at, or all that run it. */
tcc_lane_mask tcc_acting_lanes(const tcc_thread *t);
/* Accesses of lanes of a warp, through the generic proxy. */
tcc_accessor tcc_warp_accessor(const tcc_thread *t, tcc_lane_mask lanes);
/* Whether an access comes after another one. */
/* The clock of their warp's accesses up to which lanes know that a proxy fence follows. */
uint32_t tcc_own_fence(const tcc_warp *w, tcc_lane_mask lanes);
bool tcc_comes_after(const tcc_accessor *by, unsigned actor, uint32_t clock, tcc_lane_mask lanes);

/* Lanes have waited for what comes after `from`; for an actor up to a clock. */
void tcc_lanes_learn(tcc_warp *w, tcc_lane_mask lanes, const tcc_order *from);
void tcc_lanes_learn_end(tcc_warp *w, tcc_lane_mask lanes, unsigned actor, uint32_t clock);
/* Lanes pass on what they know: of the warp's own accesses their own, if other lanes have none, or
 * those up to which they know of the others. */
void tcc_lanes_tell(tcc_warp *w, tcc_lane_mask lanes, tcc_order *to);
/* All lanes come after all that each has done and known. */
void tcc_lanes_sync(tcc_warp *w);

/* ---- barriers (barrier.c) ------------------------------------------------------------------ */

typedef struct tcc_mbarrier {
    int64_t address;
    uint32_t expected, pending; /* arrivals of a phase; those still missing */
    int64_t tx;                 /* bytes expected and not yet copied */
    uint32_t phase;             /* phases completed */
    uint32_t before;            /* by barriers that had this number earlier */
    uint32_t in_flight;         /* copies on their way that complete on this phase */
    bool words_from_afar;       /* another CTA has stored a word that completes on it */
    tcc_smem_access init;
    tcc_smem_access copy;          /* the last that completes on it; its clock is the phase */
    const tcc_op *arrived;         /* the last arrival */
    uint32_t users[TCC_MAX_WARPS]; /* when each warp of its CTA used it last, or TCC_IN_USE */
    uint32_t fence_clock;          /* of the warp that initialised it, at its fence; 0: none */
    uint32_t told_in;              /* phase + 1 of the cluster's barrier that tells of that; 0: none yet */
    tcc_order arrivals;            /* of all arrivals so far */
    tcc_order done[2];             /* at the end of the last phase of each parity */
} tcc_mbarrier;

typedef struct tcc_named_barrier {
    int64_t threads, arrived; /* 0 threads: no warp waits */
    uint32_t phase;           /* phases completed */
    tcc_order arrivals;
} tcc_named_barrier;

/* Writes a word to a CTA's shared memory, some time before it completes on the mbarrier at an address there. */
tcc_outcome tcc_store_later(tcc_thread *t, tcc_cta *cta, const tcc_inst *in, unsigned lane, int64_t address,
                            int64_t barrier);
/* The barrier of CTA c at an address, for a copy that is to complete on it; NULL, reported, when there is none. */
tcc_mbarrier *tcc_mbarrier_of_copy(tcc_thread *t, tcc_cta *c, const tcc_op *op, int64_t address);
/* n bytes have been copied that complete on b. */
tcc_outcome tcc_mbarrier_complete(tcc_cta *c, const tcc_op *op, tcc_mbarrier *b, int64_t n);

/* ---- tensor maps (tma.c) ------------------------------------------------------------------- */

enum { TCC_MAP_RANK = 5 };

typedef struct tcc_tensor_map {
    const tcc_param *tensor;
    int rank;
    int64_t extents[TCC_MAP_RANK], strides[TCC_MAP_RANK], box[TCC_MAP_RANK]; /* innermost first */
    int64_t swizzle, elem_bytes, box_bytes;
    tcc_scalar elem;
} tcc_tensor_map;

/* A copy by the copy engine: the data of its event. */
typedef struct tcc_bulk_copy {
    tcc_cta *cta; /* whose shared memory it is */
    const tcc_tensor_map *map;
    int64_t address, at[TCC_MAP_RANK]; /* innermost first */
    tcc_mbarrier *barrier;             /* of a load */
    size_t *left;                      /* of a store: copies of its group on their way */
    int64_t bytes;
    uint32_t word; /* that is written, of a store to another CTA: it has no map */
} tcc_bulk_copy;

/* Decodes [tensor_map, NAME, dims, strides, box, swizzle, elem] and checks what
 * cuTensorMapEncodeTiled would. */
tcc_status tcc_tensor_map_decode(tcc_run *run, tcc_attr recipe, tcc_tensor_map *map);

/* ---- warps, CTAs, clusters ----------------------------------------------------------------- */

/* An MMA as the four warps of a warpgroup must all issue it. */
typedef struct tcc_mma_record {
    const tcc_op *op;
    int64_t a, b;
    bool scale_d;
} tcc_mma_record;

/* An MMA that reads A from registers. */
typedef struct tcc_a_in_flight {
    const tcc_op *op;
    uint64_t defined; /* the registers' step */
    uint32_t group;
} tcc_a_in_flight;

/* A setmaxnreg, which all four warps must run, too. */
typedef struct tcc_resize {
    const tcc_op *op;
    uint32_t clocks[TCC_WARPGROUP_WARPS]; /* of each warp, when it ran it; 0: not yet */
} tcc_resize;

/* Copies to global memory that are waited for together. Groups belong to a thread, and each that runs a commit closes
 * one, which is empty where it has started no copies. */
typedef struct tcc_bulk_group {
    size_t *left;        /* copies on their way; NULL: it has none */
    unsigned lane;       /* that has started them */
    tcc_lane_mask lanes; /* that have closed a group then */
} tcc_bulk_group;

typedef struct tcc_warpgroup {
    TCC_VEC(tcc_mma_record) mmas;
    TCC_VEC(tcc_resize) resizes;
} tcc_warpgroup;

struct tcc_warp {
    tcc_cta *cta;
    tcc_thread *thread;
    unsigned actor;
    tcc_order order;
    uint32_t synced;               /* its clock up to which its lanes know of each other */
    bool in_step;                  /* AMD: its lanes always do */
    tcc_lane_mask unsynced;        /* that have accessed shared memory since then */
    tcc_lane_mask used;            /* lanes that have used mbarriers since then */
    TCC_VEC(tcc_lanes_part) parts; /* with room for more than there are: */
    size_t n_parts;
    tcc_lane_mask accessed;    /* shared memory since their last proxy fence */
    tcc_lane_mask fencing;     /* that ran fences, for what they accessed, since they met; */
    uint32_t fenced;           /* up to which clock others had done so when they met */
    uint64_t fenced_registers; /* step of the last wgmma.fence, 0: none */
    size_t issued;             /* MMAs so far */
    const tcc_op *word;        /* loaded with no arrival at the cluster's scope since; NULL: none */
    size_t resized;            /* its registers, so often */
    bool open_group;           /* MMAs since the last commit */
    uint32_t last_group;       /* closed, that has any; 0: none */
    TCC_VEC(tcc_a_in_flight) a_in_flight;
    struct {
        TCC_VEC(tcc_bulk_group) groups; /* closed; the clock of the copies counts them */
        tcc_bulk_group open;            /* copies since its lane's last commit */
        const tcc_op *op;               /* the last of them */
    } bulk;                             /* copies to global memory */
    struct {
        TCC_VEC(size_t *) groups; /* closed; events of each that are on their way */
        size_t *open;             /* events since the last commit; NULL: none */
        uint32_t met;             /* groups up to which its lanes know of each other's copies */
        const tcc_op *op;         /* the last of them */
    } copying;                    /* its threads' copies to shared memory */
    int waits_at;                 /* named barrier, -1: none */
    bool released;                /* from it */
    uint32_t cluster_phase;       /* of the cluster's barrier, that it waits for; 0: none */
    uint32_t met_cluster;         /* phase + 1 of the last that it has waited for; 0: CTAs may not have begun */
    uint32_t lds_waited; /* AMD: its clock up to which accesses to LDS are known to be done */
    int64_t registers;   /* of each lane */
};

struct tcc_cta {
    tcc_cluster *cluster;
    unsigned rank; /* in the cluster */
    int64_t id;    /* in the grid */
    tcc_warp *warps;
    tcc_warpgroup *groups;
    uint8_t *smem;
    tcc_mark *marks;
    int64_t mark_bytes; /* that share a mark, 1 << mark_log2 */
    int mark_log2;
    int64_t smem_bytes;
    struct {
        const tcc_op *op; /* NULL: none */
        const tcc_warp *by;
        int64_t offset;
        bool outside; /* or the first product of an element outside a tensor */
    } unwritten;      /* the first read of memory that was never written */
    tcc_mbarrier mbarriers[TCC_MAX_MBARRIERS];
    size_t n_mbarriers;
    tcc_named_barrier named[TCC_NAMED_BARRIERS];
    TCC_VEC(tcc_smem_access) remote; /* the last arrival of each warp of another CTA here */
    unsigned elected;                /* a lane, any, that elect.sync picks in some of the warps */
    int64_t free_registers;
};

struct tcc_cluster {
    tcc_exec *x;
    tcc_cta *ctas;
    unsigned n_ctas, n_warps; /* warps of one CTA */
    int64_t n_launched;       /* CTAs of the grid */
    unsigned n_actors;        /* actors of all CTAs */
    unsigned per_cta;         /* actors of each CTA */
    bool one_of_many;         /* CTAs: messages distinguish them */
    struct {
        const char *warp, *cta, *smem, *address;
    } words;                    /* that messages use */
    const tcc_tensor_map *maps; /* by parameter */
    const tcc_cell *params;     /* likewise */
    int64_t *drawn;             /* of each parameter: the last number that was drawn of it; -1: none */
    tcc_global *globals;        /* by tensor */
    TCC_VEC(tcc_smem_access) accesses;
    TCC_VEC(struct tcc_reader) readers;
    bool any_outside; /* something was written that is outside of a tensor */
    struct {
        unsigned arrived; /* warps */
        uint32_t phase;   /* phases completed */
        tcc_order arrivals, done;
    } barrier;
    tcc_order end; /* room for tcc_cluster_check_end */
};

/* "warp 3", "warp 3 of CTA 1". */
const char *tcc_warp_name(const tcc_warp *w);
/* Fails when some lanes of the warp are elsewhere. */
bool tcc_converged(tcc_thread *t, const tcc_inst *in);
/* Fails when an operand is not the same in all lanes that run the op: "the lanes give different …".
 */
bool tcc_is_uniform(tcc_thread *t, const tcc_inst *in, unsigned operand, const char *what);
/* For loops over the lanes that run an op: moves l to the next; false when there is none. What is
 * reported meanwhile is of that lane. */
bool tcc_next_lane(tcc_thread *t, unsigned *l);

/* The same number for every lane as the result. */
tcc_outcome tcc_give(tcc_thread *t, const tcc_inst *in, int64_t v);

enum { TCC_MAX_VEC_BYTES = 1024 };
/* Bytes of a value in one lane; -1, reported, when they are none or too many. */
int64_t tcc_value_bytes(tcc_thread *t, const tcc_inst *in, uint32_t value);
/* A lane's elements as in memory, and their size in bytes; and back. */
int64_t tcc_value_to_bytes(const tcc_thread *t, uint32_t value, unsigned lane, uint8_t *bytes);
void tcc_value_from_bytes(tcc_thread *t, uint32_t value, unsigned lane, const uint8_t *bytes);

/* Stores bytes, aligned to their number, that are of an origin, for a lane or several that do so
 * together, in a CTA of the cluster. */
bool tcc_smem_store(tcc_thread *t, tcc_cta *c, const tcc_op *op, tcc_lane_mask lanes, int64_t address,
                    const uint8_t *bytes, int64_t n, uint8_t origin);
/* Loads the result from, or stores operand 1 to, shared memory at operand 0 + offset, lane by lane.
 */
tcc_outcome tcc_load_lanes(tcc_thread *t, const tcc_inst *in, int64_t offset);
tcc_outcome tcc_store_lanes(tcc_thread *t, const tcc_inst *in, int64_t offset);

/* Reports that poison is stored to an element. */
tcc_outcome tcc_stores_poison(tcc_thread *t, const tcc_inst *in, const tcc_param *p, int64_t at);

/* ---- grids (launch.c, grid.c) ---------------------------------------------------------------- */

/* What the clusters of a grid have in common. */
typedef struct tcc_launch {
    const tcc_program *program;
    tcc_cell *params;
    tcc_tensor_map *maps; /* by parameter */
    int64_t n_ctas;
    const tcc_target *target;
    unsigned cluster, n_warps, lanes; /* CTAs of a cluster, warps of a CTA, lanes of a warp */
    int64_t smem_bytes;
} tcc_launch;

/* Room for a cluster, in which one after the other can run. */
tcc_status tcc_cluster_create(tcc_run *run, const tcc_launch *l, tcc_cluster **out);
/* Runs the cluster that begins with a CTA. What happens depends on which one it is, not on those
 * that ran before. */
tcc_status tcc_cluster_run(tcc_cluster *k, const tcc_launch *l, int64_t first_id);
/* Runs all of them, in the number of threads given by the run's options. */
tcc_status tcc_grid_run(tcc_run *run, const tcc_launch *l);

/* ---- clusters (cluster.c) ------------------------------------------------------------------ */

/* The CTA in whose shared memory an address of the cluster's window is, and the address there;
 * NULL, reported, when it is nowhere. */
tcc_cta *tcc_cluster_find(tcc_thread *t, const tcc_op *op, int64_t *address);
/* A thread reaches into CTA c: reported when that has ended. */
bool tcc_reach(tcc_thread *t, const tcc_cta *c, const tcc_op *op);
/* A thread has arrived at a barrier of CTA c or stored there; c must not end before it knows. */
void tcc_remember_arrival(tcc_thread *t, tcc_cta *c, const tcc_op *op);
/* The CTA to which a lane stores at an address of the cluster's window, and the address there; NULL, reported, where
 * that need not be running. */
tcc_cta *tcc_cluster_store(tcc_thread *t, const tcc_op *op, int64_t *address);
/* All have arrived at the cluster's barrier, or on AMD at the workgroup's: from now on what they
 * passed on is known to all. */
void tcc_cluster_end_phase(tcc_cluster *k);
/* What must not be left undone at the CTAs' end. */
tcc_status tcc_cluster_check_end(tcc_cluster *k);

#endif

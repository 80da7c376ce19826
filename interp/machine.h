/* machine: one CTA of an NVIDIA GPU at the target level.
 *
 * Shared memory knows of each place who wrote it and who has read it since, as actor and clock.
 * An access must come after those it conflicts with, in every execution: not because of the
 * order in which the warps happened to run, but through barriers. Each warp has the clocks of all
 * actors up to which it comes after them, and hands them on where it arrives at a barrier.
 *
 * Actors are the warps; the products of each warpgroup, whose clock counts committed groups; each
 * warp's copies to global memory, likewise; and each mbarrier, standing for the copies that
 * complete on it, whose clock counts its phases.
 *
 * Ordinary accesses and those of wgmma and the copy engine use different proxies: between an
 * ordinary write and an access through the other proxy there must be a fence.proxy.async on the
 * way. So every clock exists twice: seen, and seen before a fence. (PTX ISA, "Memory Consistency
 * Model": causality order, proxies, proxy-preserved base causality order.)
 *
 * order.c    clocks                          memory.c   shared memory
 * barrier.c  mbarriers and named barriers    tma.c      tensor maps, copies in bulk
 * wgmma.c    warpgroup products              warp.c     everything else
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_MACHINE_H
#define TCC_INTERP_MACHINE_H

#include "interp/exec.h"

enum {
    TCC_WARP_LANES = 32,
    TCC_WARPGROUP_WARPS = 4,
    TCC_MAX_WARPS = 32,
    TCC_MAX_MBARRIERS = 64,
    TCC_NAMED_BARRIERS = 16,
    TCC_SMEM_BASE = 1024, /* address of the dynamic shared memory */
};

/* ---- order (order.c) --------------------------------------------------------------------- */

/* For each actor the clock up to which it comes before: at all, and with a proxy fence between. */
typedef struct tcc_order {
    uint32_t *seen, *fenced;
} tcc_order;

typedef struct tcc_cta tcc_cta;

tcc_order tcc_order_create(tcc_cta *c);
void tcc_order_join(const tcc_cta *c, tcc_order *to, const tcc_order *from);
void tcc_order_clear(const tcc_cta *c, tcc_order *o);

/* Actors by kind. */
unsigned tcc_actor_products(const tcc_cta *c, unsigned warp);
unsigned tcc_actor_copies(const tcc_cta *c, unsigned warp);
unsigned tcc_actor_mbarrier(const tcc_cta *c, size_t barrier);
/* "warp 3", "a product", "a copy": to be followed by "may still …". */
const char *tcc_actor_name(const tcc_cta *c, unsigned actor, tcc_arena *scratch);

/* ---- shared memory (memory.c) ------------------------------------------------------------- */

/* Who accesses, with the stamp that it leaves, and what the access comes after. */
typedef struct tcc_accessor {
    unsigned actor;
    uint32_t clock;
    const tcc_order *after;
    bool async; /* through the async proxy */
} tcc_accessor;

typedef struct tcc_mark {
    uint32_t clock, readers;
    uint16_t writer;
    uint8_t kind; /* never written, ordinary, async, mbarrier */
} tcc_mark;

void tcc_smem_create(tcc_cta *c, int64_t size);
void tcc_smem_clear(tcc_cta *c);
/* The bytes at an address; NULL, reported, when n bytes there are not all inside or the address is
 * no multiple of `align`. */
uint8_t *tcc_smem_at(tcc_exec *x, const tcc_op *op, int64_t address, int64_t n, int64_t align);
/* Checks and records an access to bytes that are inside. */
bool tcc_smem_read(tcc_exec *x, const tcc_op *op, const tcc_accessor *by, int64_t address,
                   int64_t n);
bool tcc_smem_write(tcc_exec *x, const tcc_op *op, const tcc_accessor *by, int64_t address,
                    int64_t n);
/* Whether bytes have been written. To read others is no error, since an instruction may take more
 * than it needs; they are poison, and to store that to global memory is one. */
bool tcc_smem_is_written(const tcc_cta *c, int64_t address, int64_t n);
/* Makes 8 bytes an mbarrier's, which nothing may access any more. */
bool tcc_smem_take(tcc_exec *x, const tcc_op *op, const tcc_accessor *by, int64_t address);

/* ---- barriers (barrier.c) ------------------------------------------------------------------ */

typedef struct tcc_mbarrier {
    int64_t address;
    uint32_t expected, pending; /* arrivals of a phase; those still missing */
    int64_t tx;                 /* bytes expected and not yet copied */
    uint32_t phase;             /* phases completed */
    uint32_t in_flight;         /* copies on their way that complete on this phase */
    unsigned init_warp;
    uint32_t init_clock;
    bool fenced;        /* the copy engine may use it */
    tcc_order arrivals; /* of all arrivals so far */
    tcc_order done[2];  /* at the end of the last phase of each parity */
} tcc_mbarrier;

typedef struct tcc_named_barrier {
    int64_t threads, arrived; /* 0 threads: nobody waits */
    tcc_order arrivals;
} tcc_named_barrier;

/* The barrier at an address, that warp w may use; NULL, reported, when there is none. */
tcc_mbarrier *tcc_mbarrier_at(tcc_thread *t, const tcc_op *op, int64_t address);
/* n bytes have been copied that complete on b. */
tcc_outcome tcc_mbarrier_complete(tcc_exec *x, const tcc_op *op, tcc_mbarrier *b, int64_t n);

/* ---- tensor maps (tma.c) ------------------------------------------------------------------- */

enum { TCC_MAP_RANK = 5 };

typedef struct tcc_tensor_map {
    const tcc_param *tensor;
    int rank;
    int64_t extents[TCC_MAP_RANK], strides[TCC_MAP_RANK], box[TCC_MAP_RANK]; /* innermost first */
    int64_t swizzle, elem_bytes, box_bytes;
    tcc_scalar elem;
} tcc_tensor_map;

/* Decodes [tensor_map, NAME, dims, strides, box, swizzle, elem] and checks what
 * cuTensorMapEncodeTiled would. */
tcc_status tcc_tensor_map_decode(tcc_run *run, tcc_attr recipe, tcc_tensor_map *map);

/* ---- warps and CTAs ------------------------------------------------------------------------ */

/* A product as the four warps of a warpgroup must all issue it. */
typedef struct tcc_product_record {
    const tcc_op *op;
    int64_t a, b;
    bool scale_d;
} tcc_product_record;

typedef struct tcc_warpgroup {
    TCC_VEC(tcc_product_record) products;
} tcc_warpgroup;

typedef struct tcc_warp {
    tcc_order order;
    uint32_t wrote;            /* lanes that wrote shared memory since their last proxy fence */
    uint64_t fenced_registers; /* step of the last wgmma.fence, 0: none */
    size_t issued;             /* products so far */
    bool open_group;           /* products since the last commit */
    struct {
        TCC_VEC(size_t *) groups; /* closed; copies of each that are on their way */
        size_t *open;             /* copies since the last commit; NULL: none */
        unsigned lane;            /* that starts them */
    } bulk;                       /* copies to global memory */
    int waits_at;                 /* named barrier, -1: none */
    bool released;                /* from it */
    int64_t registers;            /* of each lane */
} tcc_warp;

struct tcc_cta {
    tcc_exec *x;
    int64_t id;
    unsigned n_warps, n_actors;
    tcc_warp *warps;
    tcc_warpgroup *groups;
    tcc_tensor_map *maps; /* by parameter */
    uint8_t *smem;
    tcc_mark *marks;
    int64_t smem_bytes;
    TCC_VEC(struct tcc_reader) readers;
    tcc_mbarrier mbarriers[TCC_MAX_MBARRIERS];
    size_t n_mbarriers;
    tcc_named_barrier named[TCC_NAMED_BARRIERS];
    unsigned elected; /* the lane that elect.sync picks */
    int64_t free_registers;
};

/* Accesses of a warp's own lanes, through the generic proxy. */
tcc_accessor tcc_warp_accessor(const tcc_thread *t);
/* Fails when some lanes of the warp are elsewhere. */
bool tcc_converged(tcc_thread *t, const tcc_inst *in);

#endif

/* exec: threads of execution over a program, and the hooks that run its ops.
 *
 * A thread is a warp at the target level, whose lanes run each op together, under a mask; elsewhere it
 * is a role of a CTA, or the whole CTA, with one lane. It has a stack of the regions that it is
 * in, so that it can stop at any op and let others run.
 *
 * thread.c       stepping; control flow; registers
 * eval.c         the table of hooks; elementwise ops
 * schedule.c     which thread goes on, which asynchronous operation ends
 * clock.c        the timed order
 * cost.c         what things cost
 * record.c       what happened when
 * timeline.c     the same, as a trace
 * tile.c         tile level
 * async.c        async level
 * launch.c       target level: a kernel's parameters, its CTAs
 *
 * grid.c, warp.c, matrix.c, barrier.c, cluster.c, memory.c, order.c, tma.c, wgmma.c: see machine.h
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_INTERP_EXEC_H
#define TCC_INTERP_EXEC_H

#include "interp/program.h"
#include "ir/machine.h"

typedef struct tcc_thread tcc_thread;
typedef struct tcc_exec tcc_exec;

/* What a hook did. */
typedef enum tcc_outcome {
    TCC_NEXT,    /* the op is done */
    TCC_JUMPED,  /* the op is done, and changed where the thread is */
    TCC_BLOCKED, /* nothing yet: try the op again later */
    TCC_FAILED   /* it was wrong; reported */
} tcc_outcome;

/* What is known of a value beside its cells. */
typedef struct tcc_reg {
    uint64_t defined; /* the thread's step that computed it */
    uint32_t mma; /* number of the MMA group that may still access it; 0: none */
    uint32_t issue;   /* target level: number of the MMA in its warpgroup */
    uint64_t taken;   /* the step at which an MMA or a loop last took it as it was computed */
    int32_t shape;    /* n of the MMA that wrote it last, -1: of several */
    bool by_mma;  /* an MMA wrote it last */
    bool is_a;        /* an MMA takes its A from it */
    bool undefined;   /* it holds anything */
    /* Lanes in which it is as loaded from a tensor, and those that are outside: zeros. */
    tcc_lane_mask of_tensor, outside;
} tcc_reg;

/* A region that a thread is in. */
typedef struct tcc_frame {
    const tcc_code *code;
    size_t pc;
    const tcc_inst *of; /* the op whose region this is; NULL for the function's body */
    unsigned region;
    tcc_lane_mask mask;  /* that run it */
    tcc_lane_mask outer; /* that came to `of` */
    int64_t point;       /* of tile.grid: which tile */
} tcc_frame;

struct tcc_thread {
    tcc_exec *x;
    unsigned id; /* warp of its CTA, or role */
    tcc_cell *cells;
    tcc_reg *regs;
    tcc_frame *frames;
    const tcc_code *code;
    size_t depth; /* 0: finished */
    tcc_lane_mask mask;
    tcc_lane_mask early; /* lanes that have not waited for the step before, which may still run */
    uint64_t steps;
    uint64_t blocked_at; /* x->changes when it could not go on; 0: it could */
    uint32_t committed, waited; /* MMA groups: closed; known to have ended */
    uint64_t *touched;          /* of registers of MMAs: the last step that was not an MMA's */
    struct tcc_warp *warp;      /* at the target level */
    struct tcc_role *role;      /* at the async level: the role that it runs */
    unsigned rank;              /* the number of its CTA in the cluster */
};

/* An asynchronous operation on its way. */
typedef struct tcc_event {
    tcc_outcome (*end)(tcc_exec *x, struct tcc_event *e);
    const tcc_op *op;
    void *data;
    tcc_thread *by; /* that started it */
    const struct tcc_async *cta; /* at the async level: in whose shared memory it ends */
} tcc_event;

struct tcc_exec {
    tcc_run *run;
    const tcc_program *program;
    unsigned lanes;
    tcc_cell *copies; /* room for all values of one thread, for parallel copies */
    tcc_reg *reg_copies;
    TCC_VEC(tcc_thread *) threads;
    TCC_VEC(tcc_event) events;
    uint64_t random; /* state of the generator */
    unsigned haste;  /* of asynchronous operations: 0 they end last, 4 at once */
    uint64_t steps;  /* of all threads, of this cluster */
    uint64_t changes;         /* counts, from 1 on, what a thread may have waited for */
    uint64_t asked;           /* `changes` when all threads were last asked */
    int64_t cta, launched;    /* above the target level: the CTA that runs, of how many; */
    int64_t drawn;            /* what it drew last, -1: nothing */
    tcc_status status;
    bool explain;                /* a blocked thread is to say why */
    const char *why;             /* what a blocked thread waits for: the text after "waits" */
    const tcc_op *why_op;        /* the last that did something about it, NULL: none */
    tcc_thread *current;         /* whose op is being run, for messages */
    int lane;                    /* of it, -1: all */
    struct tcc_cluster *cluster; /* at the target level */
    struct tcc_async *async;     /* at the async level: of each CTA of a cluster */
    unsigned n_ctas;             /* CTAs of the cluster that run in threads of their own; 0: there is one CTA */
    tcc_thread **ctas;           /* the threads of these CTAs */
    int64_t point;               /* tile.ctas: the cluster that runs next */
    struct tcc_clock *clock;     /* in the timed order */
};

tcc_status tcc_exec_init(tcc_exec *x, tcc_run *run, const tcc_program *p, unsigned lanes);
/* Begins the random numbers of a cluster: those of the seed for the first one. */
void tcc_exec_seed(tcc_exec *x, uint64_t cluster);
/* All lanes of a thread. */
tcc_lane_mask tcc_all_lanes(const tcc_exec *x);
/* A thread at the beginning of a code, its registers clear or (from not NULL) a copy. */
tcc_thread *tcc_thread_create(tcc_exec *x, const tcc_code *code, const tcc_thread *from);
/* Back to the beginning, with nothing known of any register. */
void tcc_thread_restart(tcc_thread *t);
void tcc_thread_enter(tcc_thread *t, const tcc_inst *of, unsigned region, tcc_lane_mask mask);
/* Leaves the region that the thread is in: its op is done. */
void tcc_thread_leave(tcc_thread *t);
/* Runs one op. */
tcc_outcome tcc_thread_step(tcc_thread *t);
/* Runs all threads, and all that they start, to their end. */
tcc_status tcc_exec_run(tcc_exec *x);
/* Ends the i-th of the asynchronous operations; the last one takes its place. */
tcc_outcome tcc_exec_end_event(tcc_exec *x, size_t i);
/* Reports that all threads wait, and what each of them waits for. */
tcc_status tcc_exec_deadlock(tcc_exec *x);
/* A number below n from the seed. */
uint64_t tcc_exec_random(tcc_exec *x, uint64_t n);

/* Reports an error at an op; the value is TCC_FAILED, for hooks to return. */
#define TCC_WRONG(x, op, ...)                                                                      \
    tcc_exec_wrong((x), (op), tcc_arena_printf((x)->run->scratch, __VA_ARGS__))
tcc_outcome tcc_exec_wrong(tcc_exec *x, const tcc_op *op, const char *message);
/* Who runs the current op, "warp 3" or "lane 0 of warp 3"; NULL above the target level. */
const char *tcc_exec_who(const tcc_exec *x);
/* "warps 0 to 3": n threads from this one on; NULL above the target level. */
const char *tcc_threads_name(const tcc_exec *x, size_t first, size_t n);
/* Fails if the run must not allocate n more elements of this size. */
bool tcc_exec_has_room(tcc_exec *x, const tcc_op *op, uint64_t n, uint64_t elem_bytes);

/* For hooks that cannot go on: what they wait for, after "waits", is shown when there is a
 * deadlock; and where `op` is, unless it is NULL. */
#define TCC_WAIT(t, op, ...)                                                                       \
    ((t)->x->explain                                                                               \
         ? tcc_exec_explain((t)->x, (op), tcc_arena_printf((t)->x->run->scratch, __VA_ARGS__))     \
         : TCC_BLOCKED)
tcc_outcome tcc_exec_explain(tcc_exec *x, const tcc_op *op, const char *why);

/* ---- registers ------------------------------------------------------------------------- */

/* Cells of a value: element e of lane l is at [e * lanes + l]. */
static inline tcc_cell *tcc_cells(const tcc_thread *t, uint32_t value)
{
    return t->cells + t->x->program->values[value].offset * t->x->lanes;
}
/* The operand-th value of a lane. */
static inline int64_t tcc_lane_int(const tcc_thread *t, const tcc_inst *in, unsigned operand, unsigned lane)
{
    return tcc_cells(t, in->operands[operand])[lane].i;
}
/* The same of the first lane that is there: for what is one number. */
static inline int64_t tcc_operand_int(const tcc_thread *t, const tcc_inst *in, unsigned operand)
{
    return tcc_lane_int(t, in, operand, (unsigned)__builtin_ctzll(t->mask));
}
/* The same, of the number of an element: plus the op's attribute `disp`; -1 where no tensor can have that many. */
int64_t tcc_lane_element(const tcc_thread *t, const tcc_inst *in, unsigned operand, unsigned lane, int64_t disp);
/* Copies n values in parallel, for the lanes of the mask. */
void tcc_copy_values(tcc_thread *t, const uint32_t *to, const uint32_t *from, size_t n,
                     tcc_lane_mask mask);
/* An MMA, or a loop, takes over an operand into registers of MMAs. An operand that was taken over
 * before is copied there, as early as it was. Fails if an MMA may still write registers that would
 * have to be copied. */
bool tcc_registers_take(tcc_thread *t, const tcc_inst *in, unsigned operand, unsigned registers);
/* What is known of a value that is partly one, partly the other. */
tcc_reg tcc_reg_merge(tcc_reg a, tcc_reg b);
/* Fails when an MMA may still access an operand, or when it was never written. */
bool tcc_readable(tcc_thread *t, const tcc_inst *in, unsigned operand);
/* A note on the error before: which MMA may still access a register, where that is known. */
void tcc_note_mma(const tcc_thread *t, const tcc_reg *r);

/* ---- hooks ----------------------------------------------------------------------------- */

typedef tcc_outcome tcc_hook(tcc_thread *t, const tcc_inst *in);

#define TCC_OP(id, ...) tcc_hook tcc_eval_##id;
#include "ir/ops.def"

tcc_hook *tcc_hook_of(tcc_opcode code);
/* What scf.yield, or the end of a region of tile.grid or async.roles, does. */
tcc_outcome tcc_grid_next(tcc_thread *t);
/* The CTAs of a cluster begin, at the async level: nothing is left of those that ran before. */
void tcc_async_begin(tcc_exec *x);

/* ---- levels ---------------------------------------------------------------------------- */

tcc_status tcc_run_tiles(tcc_run *run);  /* tile and async level */
tcc_status tcc_run_kernel(tcc_run *run); /* target level */

#endif

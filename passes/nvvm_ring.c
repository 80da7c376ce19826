/* nvvm_ring: stages, barriers and copies by the copy engine into shared memory.
 *
 * Iteration i uses stage i % stages, for the (i / stages)-th time. A full barrier completes a
 * phase each time its stage is filled, an empty barrier each time all consumers have released
 * it. So iteration i waits for phase (i / stages) of full, and before copying for phase
 * (i / stages) - 1 of empty: parity 1 of a new barrier counts as complete (PTX ISA,
 * mbarrier.try_wait), which lets the first round through.
 *
 * In a cluster a stage is filled by several CTAs, each of which loads a part of it for all that read it. So each CTA's
 * empty barrier counts the releases of all CTAs whose stages it fills, and a release arrives at the barriers of all
 * CTAs that fill the stage; full barriers are not shared.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "passes/nvvm.h"

#include <string.h>

#include "ir/cluster.h"

/* ---- buffers and barriers ------------------------------------------------------------------ */

static bool is_by_threads(const tcc_op *user)
{
    return user->code == TCC_OP_async_read || user->code == TCC_OP_async_put || user->code == TCC_OP_async_put_word ||
           user->code == TCC_OP_async_read_word ||
           (user->code == TCC_OP_async_copy && !tcc_attr_is(&user->attrs, "copy", "tma"));
}

/* Threads find their place in panels of any kind; the copy engine and wgmma know those of a swizzle, and whole
 * bytes. */
static bool takes_buffer(const tcc_op *user, const tcc_op *alloc)
{
    bool own_panels = tcc_attr_find(&alloc->attrs, "panel");
    if (is_by_threads(user))
        return !own_panels || !tcc_attr_int(&alloc->attrs, "swizzle", 0);
    return !own_panels && tcc_scalar_bits(alloc->results[0].type->elem) >= 8;
}

const tcc_op *tcc_nvvm_buffer(tcc_nvvm_lowering *l, const tcc_op *user, const tcc_value *buffer)
{
    const tcc_op *alloc = buffer->def;
    if (!tcc_attr_find(&alloc->attrs, "offset"))
        TCC_LOW_REFUSE(&l->low, user, "a buffer without a place in shared memory");
    else if (!takes_buffer(user, alloc))
        TCC_LOW_REFUSE(&l->low, user, "a buffer of such elements or panels");
    else
        return alloc;
    return NULL;
}

tcc_value *tcc_nvvm_stage(tcc_nvvm_lowering *l, const tcc_op *alloc, tcc_value *i)
{
    tcc_value *stage = tcc_low_rem(&l->low, i, alloc->results[0].type->dims[0].size);
    tcc_value *bytes = tcc_low_mul(&l->low, stage, tcc_panels_of(alloc).stage_bytes);
    return tcc_low_bin(&l->low, TCC_OP_arith_add, l->smem,
                       tcc_low_add(&l->low, bytes, tcc_attr_int(&alloc->attrs, "offset", 0)));
}

typedef enum which { FULL, EMPTY } which;

static int64_t stages_of(const tcc_op *ring)
{
    return tcc_attr_int(&ring->attrs, "stages", 1);
}

/* The CTAs of a ring's cluster, or of tile.ctas'; 1 where there is none. */
int64_t tcc_nvvm_ctas_of(const tcc_op *op)
{
    return tcc_attr_int(&op->attrs, "cluster", 1);
}

/* The CTA's place in the cluster of a ring. */
static tcc_value *place_of(tcc_nvvm_lowering *l, const tcc_op *ring)
{
    const tcc_block *body = ring->block;
    return tcc_value_map_get(l->low.map, body->args[body->n_args - 1]);
}

/* Those that copy the same, as one of them sees them. */
typedef struct own_peers {
    tcc_peers all;
    tcc_value *number; /* the CTA's own among them */
    tcc_value *first;  /* the place of that with number 0; NULL: 0 */
} own_peers;

static own_peers find_peers(tcc_nvvm_lowering *l, const tcc_op *ring, tcc_peers peers)
{
    tcc_value *place = place_of(l, ring);
    own_peers own = {.all = peers, .number = tcc_low_div(&l->low, place, peers.apart)};
    int64_t span = peers.n * peers.apart;
    if (peers.apart > 1)
        own.first = tcc_low_rem(&l->low, place, peers.apart);
    if (span == tcc_nvvm_ctas_of(ring->block->parent))
        return own;
    own.number = tcc_low_rem(&l->low, own.number, peers.n);
    tcc_value *before = tcc_low_mul(&l->low, tcc_low_div(&l->low, place, span), span);
    own.first = own.first ? tcc_low_bin(&l->low, TCC_OP_arith_add, own.first, before) : before;
    return own;
}

/* The address of stage 0 in shared memory. */
static int64_t first_barrier(const tcc_op *ring, which w)
{
    return tcc_attr_int(&ring->attrs, "offset", 0) +
           (w == EMPTY ? stages_of(ring) * TCC_MBARRIER_BYTES : 0);
}

static tcc_value *barrier_of(tcc_nvvm_lowering *l, const tcc_op *ring, which w, tcc_value *i)
{
    tcc_value *offset =
        tcc_low_mul(&l->low, tcc_low_rem(&l->low, i, stages_of(ring)), TCC_MBARRIER_BYTES);
    return tcc_low_bin(&l->low, TCC_OP_arith_add, l->smem,
                       tcc_low_add(&l->low, offset, first_barrier(ring, w)));
}

/* (i / stages) % 2, or its opposite. */
static tcc_value *parity_of(tcc_nvvm_lowering *l, const tcc_op *ring, which w, tcc_value *i)
{
    tcc_value *p = tcc_low_rem(&l->low, tcc_low_div(&l->low, i, stages_of(ring)), 2);
    return w == EMPTY ? tcc_low_bin(&l->low, TCC_OP_arith_xor, p, tcc_low_c32(&l->low, 1)) : p;
}

static void init_barriers(tcc_nvvm_lowering *l, const tcc_op *ring, which w, int64_t s,
                          int64_t arrivals)
{
    int64_t offset = first_barrier(ring, w) + s * TCC_MBARRIER_BYTES;
    tcc_value *address = tcc_low_add(&l->low, l->smem, offset);
    TCC_EMIT_V(&l->low.b, nvvm_mbarrier_init, address, tcc_low_c32(&l->low, arrivals));
}

void tcc_nvvm_ring(tcc_nvvm_lowering *l, tcc_op *op)
{
    int64_t commits = tcc_attr_int(&op->attrs, "commits", 0);
    int64_t releases = tcc_attr_int(&op->attrs, "releases", 0);
    bool turns = tcc_is_of_turns(op);
    if (!tcc_has_mbarriers(op))
        return;
    if ((!commits && !turns) || !releases || !tcc_attr_find(&op->attrs, "offset")) {
        TCC_LOW_REFUSE(&l->low, op, "a ring whose commits and releases are not counted, or which has "
                                    "no place in shared memory");
        return;
    }
    const tcc_op *ctas = op->block->parent;
    if (l->begun || l->role.op || ctas->code != TCC_OP_tile_ctas) {
        TCC_LOW_REFUSE(&l->low, op, "a ring that is not in tile.ctas, before the roles");
        return;
    }
    if (tcc_nvvm_ctas_of(ctas) % tcc_nvvm_ctas_of(op)) {
        TCC_LOW_REFUSE(&l->low, op, "a ring of %lld CTAs in a cluster of %lld", (long long)tcc_nvvm_ctas_of(op),
                       (long long)tcc_nvvm_ctas_of(ctas));
        return;
    }
    if (!l->init) {
        tcc_value *first = tcc_low_cmp(&l->low, "eq", l->tid, tcc_low_c32(&l->low, 0));
        tcc_op *test = tcc_low_if(&l->low, first);
        l->init = test->regions[0];
        tcc_low_end(&l->low, test);
    }
    tcc_builder outer = l->low.b;
    l->low.b = tcc_builder_at_end(l->init);
    l->low.b.loc = op->loc;
    for (int64_t s = 0; s < stages_of(op); s++) {
        if (!turns) /* which are never full */
            init_barriers(l, op, FULL, s, commits);
        init_barriers(l, op, EMPTY, s, turns ? releases * TCC_WARPGROUP_WARPS * TCC_WARP_LANES : releases);
    }
    l->low.b = outer;
}

/* Initialised barriers are visible to the copy engine and other CTAs after the next synchronization. */
void tcc_nvvm_publish_barriers(tcc_nvvm_lowering *l)
{
    if (!l->init || l->begun)
        return;
    tcc_builder b = tcc_builder_at_end(l->init);
    b.loc = l->low.b.loc;
    TCC_EMIT_V(&b, nvvm_fence_mbarrier_init, NULL);
    l->begun = true;
}

void tcc_nvvm_end_init(tcc_nvvm_lowering *l)
{
    if (!l->init || l->begun)
        return;
    tcc_nvvm_publish_barriers(l);
    tcc_nvvm_barrier(l, tcc_low_c32(&l->low, 0), l->threads);
}

void tcc_nvvm_prefetch_maps(tcc_nvvm_lowering *l)
{
    if (!l->init)
        return;
    tcc_builder b = tcc_builder_before(l->init->first);
    for (size_t i = 0; i < l->low.body->n_args; i++)
        if (l->low.body->args[i]->type->kind == TCC_KIND_tensormap)
            TCC_EMIT_V(&b, nvvm_prefetch_tensormap, l->low.body->args[i]);
}

/* ---- copies --------------------------------------------------------------------------- */

static bool counts_bytes(const tcc_op *ring)
{
    return tcc_attr_is(&ring->attrs, "completion", "bytes");
}

/* The ring, if the threads that run the op are those that fill it: one thread if the ring counts bytes, or
 * words, else all of a role; else NULL, refused. */
static const tcc_op *filled_ring(tcc_nvvm_lowering *l, const tcc_op *op)
{
    const tcc_op *ring = op->operands[0]->def;
    if (l->role.op && l->role.one == (counts_bytes(ring) || tcc_is_of_words(ring)))
        return ring;
    TCC_LOW_REFUSE(&l->low, op, "%s by %s, of a ring that counts %s",
                   tcc_op_info_get(op->code)->name,
                   l->role.one  ? "one thread"
                   : l->role.op ? "all threads of a role"
                                : "the whole CTA",
                   counts_bytes(ring) ? "bytes" : "arrivals");
    return NULL;
}

void tcc_nvvm_coordinates(tcc_nvvm_lowering *l, const tcc_op *copy, unsigned rank, tcc_value **out)
{
    for (unsigned d = 0; d < rank; d++)
        out[d] = tcc_value_map_get(l->low.map, copy->operands[4 + d]);
}

int tcc_nvvm_contiguous(const tcc_op *alloc)
{
    return tcc_attr_int(&alloc->attrs, "contiguous", 1) ? 1 : 0;
}

int tcc_nvvm_tensor_dim(const tcc_op *copy, int d)
{
    return (int)tcc_attr_list(&copy->attrs, "dims").list.items[d].i;
}

/* Why the copy engine does not copy such a tile; NULL when it does. */
static const char *why_not_tma(const tcc_op *copy, const tcc_op *alloc, int inner, unsigned rank)
{
    const tcc_type *t = TCC_VIEW(async_copy, copy)->tensor->type;
    const tcc_dim *last = t->rank ? &t->dims[t->rank - 1] : NULL;
    if (rank > 5)
        return "a tensor of more than 5 dimensions";
    if (!last || inner != (int)t->rank - 1 || !tcc_type_has_rows(t))
        return "a tile whose rows are not the tensor's";
    if (t->rank > 1 && !tcc_type_has_gaps(t) && !last->name && last->size * tcc_scalar_bits(t->elem) % 128)
        return "rows that are not a multiple of 16 bytes";
    return tcc_panels_of(alloc).rows > 256 ? "a tile of more than 256 rows" : NULL;
}

/* v + number * scale */
static tcc_value *add_scaled(tcc_nvvm_lowering *l, tcc_value *v, tcc_value *number, int64_t scale)
{
    return tcc_low_bin(&l->low, TCC_OP_arith_add, v, tcc_low_mul(&l->low, number, scale));
}

/* The part of a stage that a CTA copies: the number of panels, and of rows of each. */
typedef struct share {
    int64_t panels, rows;
    tcc_value *number; /* which part; NULL: it is all */
    tcc_value *ctas;   /* to which it goes, a bit each */
} share;

/* A bit for each of those that copy the same. */
static tcc_value *bits_of(tcc_nvvm_lowering *l, const own_peers *own)
{
    int64_t bits = 0;
    for (int64_t i = 0; i < own->all.n; i++)
        bits |= INT64_C(1) << i * own->all.apart;
    tcc_value *from_0 = tcc_low_c32(&l->low, bits);
    return own->first ? tcc_low_bin(&l->low, TCC_OP_arith_shl, from_0, own->first) : from_0;
}

/* Whole panels where they can be dealt out, else rows of each, in wholes of what a swizzle permutes. False,
 * refused, when that cannot be, either. */
static bool find_share(tcc_nvvm_lowering *l, const tcc_op *copy, tcc_panels p, share *out)
{
    enum { PATTERN_ROWS = 8 };
    tcc_peers peers = tcc_peers_of(copy);
    bool panels = p.n % peers.n == 0;
    *out = (share){.panels = panels ? p.n / peers.n : p.n, .rows = panels ? p.rows : p.rows / peers.n};
    if (peers.n > 1) {
        own_peers own = find_peers(l, copy->operands[0]->def, peers);
        out->number = own.number;
        out->ctas = bits_of(l, &own);
    }
    if (panels || p.rows % (peers.n * PATTERN_ROWS) == 0)
        return true;
    TCC_LOW_REFUSE(&l->low, copy, "%lld panels of %lld rows in %lld parts", (long long)p.n, (long long)p.rows,
                   (long long)peers.n);
    return false;
}

/* One TMA load for each panel. TMA always writes, and counts, the whole box: elements outside the
 * tensor are zero. A tensor without a dimension along the tile's rows gets one of extent 1. */
static void copy_by_tma(tcc_nvvm_lowering *l, const tcc_op *copy, const tcc_op *alloc,
                        tcc_value *i)
{
    const tcc_value *tensor = TCC_VIEW(async_copy, copy)->tensor;
    int contiguous = tcc_nvvm_contiguous(alloc);
    int inner = tcc_nvvm_tensor_dim(copy, contiguous), outer = tcc_nvvm_tensor_dim(copy, !contiguous);
    unsigned own = tensor->type->rank, rank = own + (outer < 0);
    const char *why = why_not_tma(copy, alloc, inner, rank);
    if (why) {
        TCC_LOW_REFUSE(&l->low, copy, "async.copy by the copy engine of %s", why);
        return;
    }
    tcc_panels p = tcc_panels_of(alloc);
    share part;
    if (!find_share(l, copy, p, &part))
        return;
    int64_t panel_elems = p.width * 8 / tcc_scalar_bits(tensor->type->elem);
    int64_t box[TCC_MAX_RANK];
    for (unsigned d = 0; d < own; d++)
        box[own - 1 - d] = (int)d == inner ? panel_elems : (int)d == outer ? part.rows : 1;
    box[rank - 1] = outer < 0 ? part.rows : box[rank - 1];
    tcc_value *operands[4 + TCC_MAX_RANK], *at[TCC_MAX_RANK];
    tcc_value **place = operands + (part.number ? 4 : 3); /* coordinates, innermost first */
    tcc_nvvm_coordinates(l, copy, own, at);
    operands[1] =
        tcc_nvvm_tensormap(l, tensor, rank, box, tcc_attr_int(&alloc->attrs, "swizzle", 0));
    place[rank - 1] = tcc_low_c32(&l->low, 0);
    operands[2] = barrier_of(l, copy->operands[0]->def, FULL, i);
    if (part.number)
        operands[3] = part.ctas;
    tcc_value *stage = tcc_nvvm_stage(l, alloc, i);
    if (part.number && part.panels < p.n) {
        stage = add_scaled(l, stage, part.number, part.panels * p.panel_bytes);
        at[inner] = add_scaled(l, at[inner], part.number, part.panels * panel_elems);
    } else if (part.number) {
        tcc_value **row = outer < 0 ? &place[rank - 1] : &at[outer];
        stage = add_scaled(l, stage, part.number, part.rows * p.width);
        *row = add_scaled(l, *row, part.number, part.rows);
    }
    for (int64_t x = 0; x < part.panels; x++) {
        operands[0] = tcc_low_add(&l->low, stage, x * p.panel_bytes);
        for (unsigned d = 0; d < own; d++)
            place[own - 1 - d] = (int)d == inner ? tcc_low_add(&l->low, at[d], x * panel_elems) : at[d];
        tcc_op *load = tcc_op_create(&l->low.b, part.number ? TCC_OP_nvvm_tma_load_multicast : TCC_OP_nvvm_tma_load,
                                     (unsigned)(place - operands) + rank, operands, 0, NULL);
        tcc_attr_carry(l->low.ir, &load->attrs, &copy->attrs, "cache");
    }
}

/* ---- the ring's ops ------------------------------------------------------------------------ */

static void wait_for(tcc_nvvm_lowering *l, const tcc_op *ring, which w, tcc_value *i)
{
    tcc_value *bar = barrier_of(l, ring, w, i);
    tcc_op *wait = TCC_EMIT_V(&l->low.b, nvvm_mbarrier_wait, bar, parity_of(l, ring, w, i));
    if (tcc_is_of_words(ring) && tcc_nvvm_ctas_of(ring) > 1) /* another CTA stores them, and gives their places back */
        tcc_attr_set_str(l->low.ir, &wait->attrs, "scope", "cluster");
}

/* The iteration number, which operand 1 is. */
static tcc_value *iteration(tcc_nvvm_lowering *l, const tcc_op *op)
{
    return tcc_value_map_get(l->low.map, op->operands[1]);
}

tcc_value *tcc_nvvm_full_barrier(tcc_nvvm_lowering *l, const tcc_op *op)
{
    return barrier_of(l, op->operands[0]->def, FULL, iteration(l, op));
}

/* Without mbarriers, async.barrier determines when stages are full and empty. */
void tcc_nvvm_acquire(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_op *ring = filled_ring(l, op);
    if (!ring || !tcc_has_mbarriers(ring))
        return;
    /* With turns, i - 1 must have been released by another role. Each role waits for its own barrier and
     * sees all its phases end, since two phases of another barrier could be confused. */
    int64_t ahead = tcc_is_of_turns(ring) ? stages_of(ring) - 1 : 0;
    wait_for(l, ring, EMPTY, tcc_low_add(&l->low, iteration(l, op), ahead));
}

void tcc_nvvm_copy(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_op *ring = filled_ring(l, op);
    const tcc_op *alloc = ring ? tcc_nvvm_buffer(l, op, TCC_VIEW(async_copy, op)->buffer) : NULL;
    if (!alloc)
        return;
    const char *copy = tcc_attr_str(&op->attrs, "copy", "");
    bool tma = !strcmp(copy, "tma"), groups = tcc_has_word("cp_async cp_async_elements", copy);
    if (groups != tcc_is_of_groups(ring))
        TCC_LOW_REFUSE(&l->low, op, "this kind of async.copy into a ring of this completion");
    else if (groups)
        tcc_nvvm_copy_in_groups(l, op, alloc, iteration(l, op));
    else if (tma != counts_bytes(ring))
        TCC_LOW_REFUSE(&l->low, op, "this kind of async.copy into a ring that counts %s",
                       tma ? "arrivals" : "bytes");
    else
        (tma ? copy_by_tma : tcc_nvvm_copy_elements)(l, op, alloc, iteration(l, op));
}

static int64_t count_fillers(const tcc_op *ring)
{
    tcc_fillers fillers = tcc_fillers_of(ring);
    return tcc_fillers_count(&fillers);
}

static bool check_count(tcc_nvvm_lowering *l, const tcc_op *op, const char *attr, int64_t n)
{
    int64_t want = tcc_attr_int(&op->operands[0]->def->attrs, attr, 0);
    if (n != want)
        TCC_LOW_REFUSE(&l->low, op, "%s by %lld, and its ring counts on %lld",
                       tcc_op_info_get(op->code)->name, (long long)n, (long long)want);
    return n == want;
}

void tcc_nvvm_commit(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_op *ring = filled_ring(l, op);
    if (ring && tcc_is_of_groups(ring))
        TCC_EMIT_V(&l->low.b, nvvm_cp_async_commit, NULL);
    if (!ring || !tcc_has_mbarriers(ring) || !check_count(l, op, "commits", l->role.one ? 1 : tcc_nvvm_threads(l)))
        return;
    tcc_value *bar;
    if (tcc_is_of_words(ring)) {
        tcc_nvvm_commit_word(l, op);
        return;
    }
    if (l->role.one) { /* the phase cannot end before this arrival */
        bar = barrier_of(l, ring, FULL, iteration(l, op));
        TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive_expect_tx, bar,
                   tcc_low_c32(&l->low, tcc_attr_int(&op->attrs, "bytes", 0)));
        return;
    }
    TCC_EMIT_V(&l->low.b, nvvm_fence_proxy_async, NULL);
    bar = barrier_of(l, ring, FULL, iteration(l, op));
    TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive, bar);
}

bool tcc_nvvm_may_read(tcc_nvvm_lowering *l, const tcc_op *op)
{
    if (l->low.warps || (l->role.one && tcc_is_of_words(op->operands[0]->def)))
        return true;
    TCC_LOW_REFUSE(&l->low, op, "%s where not all threads of a role run", tcc_op_info_get(op->code)->name);
    return false;
}

void tcc_nvvm_wait(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_op *ring = op->operands[0]->def;
    if (!tcc_nvvm_may_read(l, op))
        return;
    if (tcc_has_mbarriers(ring)) {
        wait_for(l, ring, FULL, iteration(l, op));
    } else if (tcc_is_of_groups(ring)) {
        tcc_op *wait = TCC_EMIT_V(&l->low.b, nvvm_cp_async_wait, NULL);
        tcc_attr_set_int(l->low.ir, &wait->attrs, "pending", tcc_attr_int(&op->attrs, "pending", 0));
    }
}

/* The same barrier of the other CTAs that fill the stage, each CTA beginning with the next one. */
static void arrive_at_others(tcc_nvvm_lowering *l, const tcc_op *ring, tcc_value *bar)
{
    tcc_fillers fillers = tcc_fillers_of(ring);
    for (int a = 0; a < 2; a++) {
        if (fillers.along[a].n == 1)
            continue;
        own_peers own = find_peers(l, ring, fillers.along[a]);
        for (int64_t d = 1; d < own.all.n; d++) {
            tcc_value *number = tcc_low_rem(&l->low, tcc_low_add(&l->low, own.number, d), own.all.n);
            tcc_value *place = tcc_low_mul(&l->low, number, own.all.apart);
            if (own.first)
                place = tcc_low_bin(&l->low, TCC_OP_arith_add, own.first, place);
            tcc_value *other = TCC_EMIT(&l->low.b, nvvm_mapa, l->low.i32, bar, place);
            TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive_cluster, other);
        }
    }
}

/* How many arrivals give a stage back. */
static int64_t count_releases(const tcc_nvvm_lowering *l, const tcc_op *ring)
{
    if (tcc_is_of_words(ring))
        return tcc_readers_of(ring).arrivals * tcc_nvvm_ctas_of(ring);
    return l->role.warps / TCC_WARPGROUP_WARPS * count_fillers(ring);
}

/* Whether a thread arrives; NULL: each does. One thread of each warpgroup does: an MMA completes for its four warps
 * together. A turn is passed on by all threads, or one that comes late could take it for the one after the next. A word
 * each thread has read by itself: warps come together first. */
static tcc_value *who_arrives(tcc_nvvm_lowering *l, const tcc_op *ring)
{
    if (tcc_is_of_turns(ring) || l->role.one)
        return NULL;
    if (!tcc_is_of_words(ring))
        return tcc_nvvm_leads_warpgroup(l);
    TCC_EMIT_V(&l->low.b, nvvm_warp_sync, NULL);
    tcc_value *lane = tcc_low_rem(&l->low, l->tid, TCC_WARP_LANES);
    return tcc_low_cmp(&l->low, "eq", lane, tcc_low_c32(&l->low, 0));
}

void tcc_nvvm_release(tcc_nvvm_lowering *l, tcc_op *op)
{
    const tcc_op *ring = op->operands[0]->def;
    if (!tcc_nvvm_may_read(l, op) || !tcc_has_mbarriers(ring))
        return;
    if (l->role.warps % TCC_WARPGROUP_WARPS && !tcc_is_of_words(ring))
        TCC_LOW_REFUSE(&l->low, op, "async.release in a role that does not consist of whole warpgroups");
    else if (check_count(l, op, "releases", count_releases(l, ring))) {
        tcc_value *i = iteration(l, op);
        bool valid = tcc_is_not_negative(op->operands[1]);
        tcc_value *arrives = who_arrives(l, ring);
        if (!valid) {
            tcc_value *there = tcc_low_cmp(&l->low, "ge", i, tcc_low_c32(&l->low, 0));
            arrives = arrives ? tcc_low_bin(&l->low, TCC_OP_arith_and, arrives, there) : there;
        }
        tcc_op *guard = arrives ? tcc_low_if(&l->low, arrives) : NULL;
        tcc_value *bar = barrier_of(l, ring, EMPTY, i);
        if (tcc_is_of_words(ring)) {
            tcc_nvvm_give_word_back(l, op, bar);
        } else {
            TCC_EMIT_V(&l->low.b, nvvm_mbarrier_arrive, bar);
            arrive_at_others(l, ring, bar);
        }
        if (guard)
            tcc_low_end(&l->low, guard);
    }
}

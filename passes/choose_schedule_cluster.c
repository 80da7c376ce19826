/* choose_schedule_cluster: CTAs that run together and share what they load.
 *
 * CTAs beside each other along m read the same columns of B, along n the same rows of A. Each loads a part of
 * the tile that is shared, and the copy engine writes it to the shared memory of all that read it. Along k they do not
 * share loads, but their sum: so few tiles occupy more CTAs, without the second step of `split`.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/schedule_key.h"
#include "passes/choose_schedule.h"

enum { ROWS_OF_PART = 8 }; /* at least, of shared memory: what a swizzle permutes */

int64_t tcc_choice_columns(const tcc_choice *ch)
{
    return ROWS_OF_PART * tcc_schedule_cluster_of(ch->f, ch->c.axes[0]);
}

/* As only an attribute that is written by hand can be otherwise. */
static bool has_pairs(tcc_attr list)
{
    bool ok = list.list.n && list.list.n % 2 == 0;
    for (size_t i = 0; ok && i < list.list.n; i++)
        ok = list.list.items[i].kind == (i % 2 ? TCC_ATTR_INT : TCC_ATTR_STR);
    return ok;
}

/* The CTAs along m, n or k. */
static tcc_status read_cluster(tcc_choice *ch)
{
    const tcc_schedule_key *key = &tcc_schedule_keys[TCC_KEY_cluster];
    bool given = tcc_choice_given(ch, key->name);
    const char *indices[] = {ch->c.axes[0], ch->c.axes[1], ch->c.k};
    int64_t *of[] = {&ch->s.cluster_m, &ch->s.cluster_n, &ch->s.cluster_k};
    enum { AXES = sizeof of / sizeof *of };
    tcc_attr cluster = tcc_attr_list(&ch->f->attrs, key->name);
    if (given && !has_pairs(cluster))
        return TCC_CHOICE_REFUSE(ch, key->name, "'%s' takes indices and numbers: %s %s;", key->name, key->name,
                                 key->words);
    for (size_t i = 0; i + 1 < cluster.list.n; i += 2) {
        const char *index = cluster.list.items[i].s;
        int64_t ctas = cluster.list.items[i + 1].i;
        size_t axis = 0;
        while (axis < AXES && !tcc_index_same(indices[axis], index))
            axis++;
        if (ctas < key->min || ctas > key->max)
            return TCC_CHOICE_REFUSE(ch, key->name, "cluster %s %lld: need %lld to %lld", index, (long long)ctas,
                                     (long long)key->min, (long long)key->max);
        if (axis == AXES && ctas > 1)
            return TCC_CHOICE_REFUSE(ch, key->name,
                                     "cluster %s %lld: need an index of a tile's rows or columns, or the "
                                     "one that is summed",
                                     index, (long long)ctas);
        if (axis < AXES)
            *of[axis] = ctas;
    }
    return TCC_OK;
}

/* For CTAs that share a sum. A second tile would have to wait until the first CTA has added up the sums of the one
 * before, or these would need shared memory of their own, as much as two or three stages: for nothing, since tiles are
 * too few for all multiprocessors where this pays. Those that do not store execute the epilogue as well, beyond the end
 * of an axis that all outputs have: they read nothing that the first of them stores. */
static tcc_status check_shared_sum(tcc_choice *ch)
{
    const tcc_schedule *s = &ch->s;
    if (!*ch->c.axes[0] && !*ch->c.axes[1])
        return TCC_CHOICE_REFUSE(ch, tcc_schedule_keys[TCC_KEY_cluster].name,
                                 "not supported yet: cluster %s %lld where both operands have the same indices",
                                 ch->c.k, (long long)s->cluster_k);
    if (s->persistent)
        return TCC_CHOICE_REFUSE(
            ch, tcc_schedule_keys[TCC_KEY_persistent].name,
            "persistent with cluster %s %lld: need none; CTAs share a sum where there are fewer tiles than "
            "multiprocessors, and then none has a second tile",
            ch->c.k, (long long)s->cluster_k);
    return TCC_OK;
}

/* For CTAs along m, which share tiles of B, or along n, which share those of A. */
static tcc_status check_shared_operand(tcc_choice *ch, int axis)
{
    const char *key = tcc_schedule_keys[TCC_KEY_cluster].name, *const *axes = ch->c.axes;
    const tcc_schedule *s = &ch->s;
    int64_t parts = axis ? s->cluster_n : s->cluster_m, shared = axis ? s->m : s->n;
    if (parts == 1)
        return TCC_OK;
    if (shared % (parts * ROWS_OF_PART))
        return TCC_CHOICE_REFUSE(ch, key, "cluster %s %lld: need a tile of a multiple of %lld along %s, of which each "
                                          "CTA loads a part; it has %lld",
                                 axes[axis], (long long)parts, (long long)(parts * ROWS_OF_PART), axes[!axis],
                                 (long long)shared);
    return TCC_OK;
}

tcc_status tcc_choose_cluster(tcc_choice *ch)
{
    const char *key = tcc_schedule_keys[TCC_KEY_cluster].name;
    int64_t most = tcc_schedule_keys[TCC_KEY_cluster].max;
    tcc_schedule *s = &ch->s;
    s->cluster_m = s->cluster_n = s->cluster_k = 1;
    tcc_status status = read_cluster(ch);
    if (!status && s->cluster_m * s->cluster_n * s->cluster_k > most)
        return TCC_CHOICE_REFUSE(ch, key, "cluster of %lld x %lld x %lld: need at most %lld CTAs",
                                 (long long)s->cluster_m, (long long)s->cluster_n, (long long)s->cluster_k,
                                 (long long)most);
    if (!status && s->cluster_k > 1)
        status = check_shared_sum(ch);
    if (status || s->cluster_m * s->cluster_n == 1)
        return status;
    if (s->producer == TCC_PRODUCER_NONE)
        return TCC_CHOICE_REFUSE(
            ch, "producer",
            "producer none: need warp or warpgroup with a cluster, since consumers would wait for "
            "another CTA before they copy");
    status = check_shared_operand(ch, 0);
    return status ? status : check_shared_operand(ch, 1);
}

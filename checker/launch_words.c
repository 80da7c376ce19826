/* launch_words: the numbers of tiles that are drawn, and the words in shared memory by which they are told.
 *
 * A cluster's warps run one after the other, and more than once: at first to draw, where those that wait for a word that
 * is not stored yet give up, and then all of them, with the words that are known by then. The first cluster draws
 * until no tile is left. What is stored at an address for the i-th time is what a warp loads there for the i-th time:
 * that the two are synchronized like this is proven apart.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/launch.h"

enum { WINDOW = 1 << 24 };               /* addresses from nvvm.mapa are so far apart */
enum { ENOUGH = 16, NO_TILE = 1 << 30 }; /* in a large launch, the former draws, and then the latter */

static bool is_unknown(const tcc_lwarp *w, int slot)
{
    return w->known[slot] == TCC_L_UNKNOWN;
}

bool tcc_launch_draw(tcc_lwarp *w, const tcc_linst *in)
{
    tcc_launch *l = w->l;
    tcc_ltensor *counter = in->param >= 0 ? l->params[in->param].tensor : NULL;
    if (!counter || !counter->elems || l->params[in->param].map.rank)
        return tcc_launch_wrong_in(w, TCC_ERR_UNSUPPORTED, in->op, "a counter that is not in the workspace");
    if (counter->elems[0] != TCC_L_ZERO && counter->elems[0] < l->first_writer)
        return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, in->op,
                                   "%s counts in '%s', which is not 0 when this step begins",
                                   tcc_op_info_get(in->op->code)->name, counter->name);
    if (l->sizes->large && l->drawn == ENOUGH)
        l->drawn = NO_TILE;
    if (w->n_drawn == l->draws.len)
        TCC_PUSH(l->scratch, &l->draws, l->drawn++);
    counter->elems[0] = w->writer;
    int64_t number = l->draws.data[w->n_drawn++];
    if (in->results[0] >= 0)
        tcc_launch_give(w, in, number);
    return true;
}

void tcc_launch_map_word(tcc_lwarp *w, const tcc_linst *in)
{
    unsigned lane = tcc_launch_first_lane(w);
    bool known = !is_unknown(w, in->operands[0]) && !is_unknown(w, in->operands[1]);
    int64_t rank = tcc_launch_int(w, in->operands[1], lane);
    tcc_launch_give(w, in, tcc_launch_int(w, in->operands[0], lane) + (rank + 1) * WINDOW);
    w->known[in->results[0]] = known ? TCC_L_UNIFORM : TCC_L_UNKNOWN;
}

static tcc_lwords *words_at(tcc_launch *l, tcc_lcta_words *all, int64_t address)
{
    for (size_t i = 0; i < all->len; i++)
        if (all->data[i].address == address)
            return &all->data[i];
    TCC_PUSH(l->scratch, all, (tcc_lwords){.address = address});
    return &all->data[all->len - 1];
}

bool tcc_launch_store_word(tcc_lwarp *w, const tcc_linst *in)
{
    bool remote = in->op->code == TCC_OP_nvvm_st_async_word;
    int at = in->operands[0], word = in->operands[remote ? 2 : 1];
    unsigned lane = tcc_launch_first_lane(w);
    if (!w->rehearses || is_unknown(w, at) || is_unknown(w, word))
        return true;
    int64_t address = tcc_launch_int(w, at, lane);
    int64_t rank = remote ? address / WINDOW - 1 : w->rank;
    if (rank < 0 || rank >= w->l->cluster)
        return tcc_launch_wrong_in(w, TCC_ERR_INTERNAL, in->op, "there is no CTA %lld in a cluster of %u",
                                   (long long)rank, w->l->cluster);
    tcc_lwords *words = words_at(w->l, &w->l->words[rank], address % WINDOW);
    TCC_PUSH(w->l->scratch, &words->words, tcc_launch_int(w, word, lane));
    return true;
}

bool tcc_launch_load_word(tcc_lwarp *w, const tcc_linst *in)
{
    if (in->results[0] < 0 || is_unknown(w, in->operands[0]))
        return true;
    int64_t address = tcc_launch_int(w, in->operands[0], tcc_launch_first_lane(w));
    const tcc_lwords *words = words_at(w->l, &w->l->words[w->rank], address);
    tcc_lwords *read = words_at(w->l, &w->read, address);
    size_t n = read->words.len;
    if (n >= words->words.len) {
        w->waits = true;
        return w->rehearses ? false
                            : tcc_launch_wrong_in(w, TCC_ERR_UNSUPPORTED, in->op,
                                                  "a word that no warp stores is not followed");
    }
    tcc_launch_give(w, in, words->words.data[n]);
    TCC_PUSH(w->l->scratch, &read->words, words->words.data[n]);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "ir/nearest_target.h"

#include <ctype.h>
#include <string.h>

#include "ir/target.h"

static const char runs[] = "whose code it runs", runs_not[] = "whose code it does not run",
                  is_it[] = "which is its architecture";

/* Names in small letters and digits. PTX without the suffix a or f runs on later GPUs, too; code objects run on their
 * own architecture. */
static const struct {
    const char *names, *target, *how;
} rows[] = {
    /* architectures of NVIDIA: "CUDA GPU Compute Capability", PTX ISA, directive .target */
    {"sm20 sm21 sm30 sm32 sm35 sm37 fermi kepler k20 k40 k80", "sm_50", runs_not},
    {"sm88", "sm_87", runs},
    {"sm100a sm100f sm101 sm101a sm101f sm103 sm103a sm103f sm110 sm110a sm110f thor b300 gb300", "sm_100", runs},
    {"sm120a sm120f sm121 sm121a sm121f gb10 dgxspark", "sm_120", runs},
    {"hopper h100 h200 h800 h20 gh200", "sm_90a", is_it},
    {"blackwell b100 b200 gb200", "sm_100", is_it},
    {"rtx5050 rtx5060 rtx5070 rtx5080 rtx5090 rtxpro6000", "sm_120", is_it},
    {"ada adalovelace l4 l20 l40 l40s rtx4050 rtx4060 rtx4070 rtx4080 rtx4090 rtx6000ada", "sm_89", is_it},
    {"orin jetsonorin agxorin", "sm_87", is_it},
    {"a2 a10 a10g a16 a40 a6000 rtxa6000 rtx3050 rtx3060 rtx3070 rtx3080 rtx3090", "sm_86", is_it},
    {"ampere a100 a800 a30", "sm_80", is_it},
    {"turing t4 rtx2060 rtx2070 rtx2080 gtx1650 gtx1660", "sm_75", is_it},
    {"xavier agxxavier", "sm_72", is_it},
    {"volta v100 titanv", "sm_70", is_it},
    {"tx2", "sm_62", is_it},
    {"pascal p4 p40 gtx1050 gtx1060 gtx1070 gtx1080 titanxp", "sm_61", is_it},
    {"p100", "sm_60", is_it},
    {"tx1 jetsonnano", "sm_53", is_it},
    {"maxwell m4 m40 m60 gtx960 gtx970 gtx980", "sm_52", is_it},
    {"m10 gtx750", "sm_50", is_it},
    /* of AMD: LLVM's "User Guide for AMDGPU Backend" */
    {"gfx900 gfx902 gfx904 gfx906 gfx908 gfx909 gfx90a gfx90c gfx940 gfx941 gfx942 gfx950 vega gcn cdna cdna2 cdna3 cdna4 "
     "mi25 mi50 mi60 mi100 mi200 mi210 mi250 mi250x mi300 mi300a mi300x mi325x mi350 mi350x mi355x "
     "gfx1010 gfx1011 gfx1012 gfx1013 gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 rdna rdna2 "
     "gfx9generic gfx94generic gfx101generic gfx103generic gfx11generic", "gfx1100", runs_not},
    {"gfx1152 gfx1153", "gfx1151", runs_not},
    {"gfx1250 gfx1251 gfx12generic", "gfx1201", runs_not},
    {"rdna3 rx7900xt rx7900xtx rx7900gre w7800 w7900", "gfx1100", is_it},
    {"rx7700xt rx7800xt w7700", "gfx1101", is_it},
    {"rx7600 rx7600xt w7500 w7600", "gfx1102", is_it},
    {"strixpoint radeon890m", "gfx1150", is_it},
    {"rdna35 strixhalo radeon8060s", "gfx1151", is_it},
    {"rx9060 rx9060xt", "gfx1200", is_it},
    {"rdna4 rx9070 rx9070xt r9700", "gfx1201", is_it},
};

static void replace_prefix(char *text, const char *prefix, const char *by)
{
    size_t from = strlen(prefix), to = strlen(by), n = strlen(text); /* to is no more than from */
    if (n <= from || strncmp(text, prefix, from) != 0)
        return;
    memmove(text + to, text + from, n - from + 1);
    memcpy(text, by, to);
}

/* Small letters and digits of a name, without what makers write before it. */
static void normalize(const char *name, char *out, size_t room)
{
    static const char *const makers[] = {"nvidia", "amd", "radeon", "geforce", "tesla", "instinct"};
    size_t n = 0;
    for (const char *c = name; *c && n + 1 < room; c++)
        if (isalnum((unsigned char)*c))
            out[n++] = (char)tolower((unsigned char)*c);
    out[n] = 0;
    for (size_t i = 0; i < sizeof makers / sizeof *makers; i++)
        replace_prefix(out, makers[i], "");
    replace_prefix(out, "compute", "sm");
}

static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *w = strstr(words, word); w; w = strstr(w + 1, word))
        if ((w == words || w[-1] == ' ') && (!w[n] || w[n] == ' '))
            return true;
    return false;
}

tcc_nearest_target tcc_nearest_target_find(const char *name)
{
    char wanted[64], known[64];
    normalize(name, wanted, sizeof wanted);
    const tcc_target *t;
    for (size_t i = 0; *wanted && (t = tcc_target_at(i)); i++) {
        normalize(t->name, known, sizeof known);
        if (!strcmp(known, wanted))
            return (tcc_nearest_target){t->name, NULL};
    }
    for (size_t i = 0; *wanted && i < sizeof rows / sizeof *rows; i++)
        if (has_word(rows[i].names, wanted))
            return (tcc_nearest_target){rows[i].target, rows[i].how};
    return (tcc_nearest_target){NULL, NULL};
}

tcc_nearest_target tcc_nearest_target_tell(const char *name, tcc_diag *diag, tcc_loc loc)
{
    tcc_nearest_target near = tcc_nearest_target_find(name);
    if (near.how)
        tcc_error(diag, TCC_ERR_TARGET, loc, "not supported yet: target '%s'; the nearest is %s, %s", name, near.target,
                  near.how);
    else if (near.target)
        tcc_error(diag, TCC_ERR_TARGET, loc, "unknown target '%s'; did you mean '%s'?", name, near.target);
    return near;
}

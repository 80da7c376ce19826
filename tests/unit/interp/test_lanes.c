/* Lanes of a warp run at their own pace: what must be between what one does in shared memory and
 * what another does. The interpreter and the checker say the same.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "checker/checker.h"
#include "tests/unit/interp/program.h"

enum { N = 64 };

/* Two warps. Each thread has a word of shared memory, from `mine` on; `neighbours` is that of the
 * next lane of its warp, `opposite` that of the same lane of the other warp. */
static const char head[] = "  %t = nvvm.tid : i32\n"
                           "  %smem = nvvm.smem_base : i32\n"
                           "  %c0 = arith.const {value = 0} : i32\n"
                           "  %c1 = arith.const {value = 1} : i32\n"
                           "  %c2 = arith.const {value = 2} : i32\n"
                           "  %c4 = arith.const {value = 4} : i32\n"
                           "  %c5 = arith.const {value = 5} : i32\n"
                           "  %c8 = arith.const {value = 8} : i32\n"
                           "  %c16 = arith.const {value = 16} : i32\n"
                           "  %c31 = arith.const {value = 31} : i32\n"
                           "  %c32 = arith.const {value = 32} : i32\n"
                           "  %c64 = arith.const {value = 64} : i32\n"
                           "  %c1024 = arith.const {value = 1024} : i32\n"
                           "  %lane = arith.and %t, %c31 : i32\n"
                           "  %warp = arith.shr %t, %c5 : i32\n"
                           "  %first = arith.cmp %t, %c0 {pred = eq} : i1\n"
                           "  %leads = arith.cmp %lane, %c0 {pred = eq} : i1\n"
                           "  %half = arith.cmp %lane, %c16 {pred = lt} : i1\n"
                           "  %yes = arith.const {value = 1} : i1\n"
                           "  %reads = arith.cmp %warp, %c0 {pred = eq} : i1\n"
                           "  %t4 = arith.mul %t, %c4 : i32\n"
                           "  %mine = arith.add %smem, %t4 : i32\n"
                           "  %n1 = arith.add %lane, %c1 : i32\n"
                           "  %n2 = arith.and %n1, %c31 : i32\n"
                           "  %n3 = arith.sub %t, %lane : i32\n"
                           "  %n4 = arith.add %n3, %n2 : i32\n"
                           "  %n5 = arith.mul %n4, %c4 : i32\n"
                           "  %neighbours = arith.add %smem, %n5 : i32\n"
                           "  %o1 = arith.xor %t, %c32 : i32\n"
                           "  %o2 = arith.mul %o1, %c4 : i32\n"
                           "  %opposite = arith.add %smem, %o2 : i32\n"
                           "  %flag = arith.add %smem, %c1024 : i32\n"
                           "  %bar = arith.add %flag, %c64 : i32\n"
                           "  %bar2 = arith.add %bar, %c8 : i32\n"
                           "  %v = arith.const {value = 1.5} : vec<f32[1]>\n";

#define INIT(count, count2)                                                                        \
    "  scf.if %first {\n"                                                                          \
    "    nvvm.mbarrier.init %bar, " count "\n"                                                     \
    "    nvvm.mbarrier.init %bar2, " count2 "\n"                                                   \
    "  }\n"                                                                                        \
    "  nvvm.barrier %c0, %c64\n"
#define STORE "  nvvm.st.shared %mine, %v\n"
#define LOAD(from) "  %w = nvvm.ld.shared " from " : vec<f32[1]>\n"
#define SYNC "  nvvm.warp.sync\n"
/* Warp 1 does the one, warp 0 the other. */
#define WARPS(writes, reads) "  scf.if %reads {\n" reads "  } {\n" writes "  }\n"
#define LEADS(what) "  scf.if %leads {\n" what "  }\n"
#define ARRIVE "  nvvm.mbarrier.arrive %bar\n"
#define WAIT "  nvvm.mbarrier.wait %bar, %c0\n"

static const struct {
    const char *name, *body, *says; /* NULL: it is right */
} cases[] = {
    {"another lane's word", STORE LOAD("%neighbours"),
     "that another lane of it may still be writing"},
    {"after bar.warp.sync", STORE SYNC LOAD("%neighbours"), NULL},
    {"after a barrier", STORE "  nvvm.barrier %c0, %c64\n" LOAD("%neighbours"), NULL},
    {"after a shuffle", STORE "  %any = nvvm.shfl %t, %c1 {kind = idx} : i32\n" LOAD("%neighbours"),
     "that another lane of it may still be writing"},
    {"after elect.sync", STORE "  %any = nvvm.elect : i1\n" LOAD("%neighbours"),
     "that another lane of it may still be writing"},
    {"its own word", STORE LOAD("%mine") STORE, NULL},
    {"read by another", STORE SYNC LOAD("%neighbours") STORE,
     "that another lane of it may still be reading"},
    {"read by another, then bar.warp.sync", STORE SYNC LOAD("%neighbours") SYNC STORE, NULL},
    {"one word of all", "  nvvm.st.shared %flag, %v\n", "may still be writing"},
    {"one word of a warp", "  scf.if %reads {\n  nvvm.st.shared %flag, %v\n  }\n", NULL},
    {"one word of a warp, twice",
     "  scf.if %reads {\n  nvvm.st.shared %flag, %v\n  nvvm.st.shared %flag, %v\n  }\n",
     "that another lane of it may still be writing"},
    {"lane 0 for all", LEADS("  nvvm.st.shared %flag, %v\n") LOAD("%flag"), "may still be writing"},

    {"all arrive, all wait", INIT("%c32", "%c1") WARPS(STORE ARRIVE, WAIT LOAD("%opposite")), NULL},
    {"lane 0 waits", INIT("%c32", "%c1") WARPS(STORE ARRIVE, LEADS(WAIT) LOAD("%opposite")),
     "that warp 1 may still be writing"},
    {"lane 0 waits, then bar.warp.sync",
     INIT("%c32", "%c1") WARPS(STORE ARRIVE, LEADS(WAIT) SYNC LOAD("%opposite")), NULL},
    {"lane 0 waits, then a shuffle",
     INIT("%c32", "%c1")
         WARPS(STORE ARRIVE, LEADS(WAIT) "  %any = nvvm.shfl %t, %c1 {kind = idx} : "
                                         "i32\n" LOAD("%opposite")),
     "that warp 1 may still be writing"},
    {"lane 0 waits and reads",
     INIT("%c32", "%c1") WARPS(STORE ARRIVE, LEADS(WAIT LOAD("%opposite"))), NULL},
    {"lane 0 arrives", INIT("%c1", "%c1") WARPS(STORE LEADS(ARRIVE), WAIT LOAD("%opposite")),
     "that warp 1 may still be writing"},
    {"lane 0 arrives after bar.warp.sync",
     INIT("%c1", "%c1") WARPS(STORE SYNC LEADS(ARRIVE), WAIT LOAD("%opposite")), NULL},
    {"lane 0 writes and arrives",
     INIT("%c1", "%c1") WARPS(LEADS("  nvvm.st.shared %flag, %v\n" ARRIVE), WAIT LOAD("%flag")),
     NULL},
    {"half of the lanes write and arrive",
     INIT("%c16", "%c1") WARPS("  scf.if %half {\n" STORE ARRIVE "  }\n",
                               "  scf.if %half {\n" WAIT LOAD("%opposite") "  }\n"),
     NULL},
    {"half of the lanes write, lane 0 arrives",
     INIT("%c1", "%c1") WARPS("  scf.if %half {\n" STORE "  }\n" LEADS(ARRIVE),
                              "  scf.if %half {\n" WAIT LOAD("%opposite") "  }\n"),
     "that warp 1 may still be writing"},
    {"all arrive, and wait for each other",
     INIT("%c32", "%c1")
         WARPS(STORE, "  nvvm.st.shared %mine, %v\n" ARRIVE WAIT LOAD("%neighbours")),
     NULL},
    {"lane 0 writes, all arrive and wait elsewhere",
     INIT("%c1", "%c32")
         WARPS(STORE "  nvvm.mbarrier.arrive %bar2\n" LEADS("  nvvm.st.shared %flag, %v\n" ARRIVE),
               "  nvvm.mbarrier.wait %bar2, %c0\n" WAIT LOAD("%opposite")),
     NULL},
    {"lane 0 initialises and arrives",
     "  scf.if %first {\n    nvvm.mbarrier.init %bar, %c1\n    nvvm.mbarrier.arrive %bar\n  }\n",
     NULL},
    {"lane 0 initialises, all arrive",
     "  scf.if %first {\n    nvvm.mbarrier.init %bar, %c32\n  }\n  scf.if %reads {\n" ARRIVE
     "  }\n",
     "may still be initialising"},
    {"lane 0 initialises, all arrive after bar.warp.sync",
     "  scf.if %first {\n    nvvm.mbarrier.init %bar, %c32\n  }\n" SYNC "  scf.if %reads {\n" ARRIVE
     "  }\n",
     NULL},
    {"in one lane", LEADS(SYNC), "nvvm.warp.sync in 1 of a warp's 32 lanes"},
};

/* What the elected lane does. */
#define ELECTED(what) "  %e = nvvm.elect : i1\n  scf.if %e {\n" what "  }\n"
#define ELECTED_2(what) "  %e2 = nvvm.elect : i1\n  scf.if %e2 {\n" what "  }\n"
#define FOLLOWS(what) "  %follows = arith.xor %leads, %yes : i1\n  scf.if %follows {\n" what "  }\n"
#define IS_LAST "  %is_last = arith.cmp %lane, %c31 {pred = eq} : i1\n"
#define LOAD_LAST                                                                                                      \
    "  %ends = arith.or %t, %c31 : i32\n  %ends4 = arith.mul %ends, %c4 : i32\n"                                      \
    "  %end = arith.add %smem, %ends4 : i32\n" LOAD("%end")

/* The elected lane may be any. The interpreter finds what is wrong for some of the seeds. */
static const struct {
    const char *name, *body, *says; /* NULL: it is right, else one of these, between '|' */
} elections[] = {
    {"any lane arrives", INIT("%c1", "%c1") WARPS(STORE SYNC ELECTED(ARRIVE), WAIT LOAD("%opposite")), NULL},
    {"lane 0 or another arrives",
     INIT("%c1", "%c1") WARPS(STORE SYNC ELECTED("  scf.if %leads {\n" ARRIVE "  } {\n" ARRIVE "  }\n"),
                              WAIT LOAD("%opposite")),
     NULL},
    {"lane 0 arrives, if it is elected", INIT("%c1", "%c1") WARPS(ELECTED(LEADS(ARRIVE)), WAIT), "deadlock"},
    {"another lane arrives, if it is elected", INIT("%c1", "%c1") WARPS(ELECTED(FOLLOWS(ARRIVE)), WAIT), "deadlock"},
    {"the last lane arrives, if it is elected",
     INIT("%c1", "%c1") WARPS(IS_LAST ELECTED("  scf.if %is_last {\n" ARRIVE "  }\n"), WAIT), "deadlock"},
    {"lane 0 arrives, if it is elected, by one condition",
     INIT("%c1", "%c1") WARPS("  %e = nvvm.elect : i1\n  %both = arith.and %e, %leads : i1\n"
                              "  scf.if %both {\n" ARRIVE "  }\n", WAIT),
     "deadlock"},
    {"half of the lanes arrive, if one of them is elected",
     INIT("%c1", "%c1") WARPS(ELECTED("  scf.if %half {\n" ARRIVE "  }\n"), WAIT), "deadlock"},
    {"the elected lane of half of the lanes arrives",
     INIT("%c1", "%c1") WARPS("  %e = nvvm.elect : i1\n  scf.if %half {\n  scf.if %e {\n" ARRIVE "  }\n  }\n", WAIT),
     "deadlock"},
    {"all others arrive, and lane 0 once more",
     INIT("%c32", "%c1") WARPS("  %e = nvvm.elect : i1\n  scf.if %e {\n  } {\n" ARRIVE "  }\n" LEADS(ARRIVE), WAIT),
     NULL},
    {"all others arrive, by conditions",
     INIT("%c32", "%c1") WARPS("  %e = nvvm.elect : i1\n  scf.if %e {\n  } {\n" LEADS(ARRIVE) FOLLOWS(ARRIVE) "  }\n",
                               WAIT),
     "deadlock"},
    {"lane 0 arrives, if the first lane says that it is elected",
     INIT("%c1", "%c1") WARPS("  %e = nvvm.elect : i1\n  %n = arith.select %e, %c1, %c0 : i32\n"
                              "  %of_0 = nvvm.uniform %n : i32\n  %is_0 = arith.cmp %of_0, %c0 {pred = ne} : i1\n"
                              "  scf.if %is_0 {\n" LEADS(ARRIVE) "  }\n",
                              WAIT),
     "deadlock|more than|too early"},
    {"two warps, each by its own choice",
     INIT("%c1", "%c1") WARPS(ELECTED(LEADS(ARRIVE)), ELECTED_2(FOLLOWS(ARRIVE))) "  nvvm.mbarrier.wait %bar, %c0\n",
     "deadlock|more than|too early"},
    {"it waits, all read", INIT("%c32", "%c1") WARPS(STORE ARRIVE, ELECTED(WAIT) LOAD("%opposite")),
     "that warp 1 may still be writing"},
    {"it waits, lane 0 reads", INIT("%c32", "%c1") WARPS(STORE ARRIVE, ELECTED(WAIT) LEADS(LOAD("%opposite"))),
     "that warp 1 may still be writing"},
    {"it waits, the last lane reads",
     INIT("%c32", "%c1") WARPS(STORE ARRIVE, IS_LAST ELECTED(WAIT) "  scf.if %is_last {\n" LOAD("%opposite") "  }\n"),
     "that warp 1 may still be writing"},
    {"it waits and reads", INIT("%c32", "%c1") WARPS(STORE ARRIVE, ELECTED(WAIT LOAD("%opposite"))), NULL},
    {"it reads its own word", STORE ELECTED(LOAD("%mine")), NULL},
    {"it reads the last lane's word", STORE ELECTED(LOAD_LAST), "that another lane of it may still be writing"},
    {"it writes, and reads again", ELECTED(STORE) ELECTED_2(LOAD("%mine")), NULL},
    {"it writes, lane 0 reads", ELECTED("  nvvm.st.shared %flag, %v\n") "  nvvm.barrier %c0, %c64\n" LEADS(LOAD("%flag")),
     "may still be writing"},
};

/* Lanes that still wait for a phase while lane 0 lets the next one end. They run in step in the
 * interpreter, so that only the checker sees it. */
#define TURNS(between)                                                                             \
    INIT("%c1", "%c1")                                                                             \
    WARPS(LEADS(ARRIVE "  nvvm.mbarrier.wait %bar2, %c0\n" ARRIVE),                                \
          WAIT between LEADS("  nvvm.mbarrier.arrive %bar2\n") "  nvvm.mbarrier.wait %bar, %c1\n")

typedef struct verdict {
    tcc_status status;
    char said[1024];
} verdict;

static void load(program *p, const char *body)
{
    static char text[8192];
    snprintf(text, sizeof text,
             "module {target = sm_90a}\nfunc @sig(%%X: tensor<f32[64]>) {\n  return\n}\n"
             "func @f(%%x: ptr<f32>) {block = 64, smem_bytes = 2048, grid = [1], "
             "params = [[pointer, X]], requires = []} {\n%s%s  return\n}\n",
             head, body);
    program_load(p, text);
}

static verdict interpret(const char *body, uint64_t seed)
{
    program p;
    load(&p, body);
    double x[N] = {0};
    tcc_interp_options o = {.signature = p.ir->first, .seed = seed};
    verdict v = {tcc_interp_run(tcc_func_find(p.ir, "f"), &o, (double *[]){x}, p.arena, &p.diag),
                 {0}};
    memcpy(v.said, p.said, sizeof v.said);
    program_free(&p);
    return v;
}

static verdict check(const char *body)
{
    program p;
    load(&p, body);
    verdict v = {tcc_protocol_check(tcc_func_find(p.ir, "f"), p.arena, &p.diag), {0}};
    memcpy(v.said, p.said, sizeof v.said);
    program_free(&p);
    return v;
}

static void expect(const char *who, const char *name, verdict v, const char *says)
{
    bool as_expected = says ? v.status == TCC_ERR_INTERNAL && strstr(v.said, says) : !v.status;
    ck_assert_msg(as_expected, "%s, %s: status %d, %s", name, who, v.status, v.said);
}

START_TEST(lanes_are_ordered_by_barriers_alone)
{
    for (uint64_t seed = 0; seed < 5; seed++)
        expect("interpreter", cases[_i].name, interpret(cases[_i].body, seed), cases[_i].says);
    expect("checker", cases[_i].name, check(cases[_i].body), cases[_i].says);
}
END_TEST

/* Whether what was said contains one of some texts. */
static bool says_one(const char *said, const char *texts)
{
    bool found = false;
    for (size_t n = 0; *texts && !found; texts += n + (texts[n] == '|')) {
        char text[64] = "";
        n = strcspn(texts, "|");
        memcpy(text, texts, n < sizeof text ? n : sizeof text - 1);
        found = strstr(said, text) != NULL;
    }
    return found;
}

START_TEST(any_lane_may_be_elected)
{
    enum { SEEDS = 12 };
    const char *says = elections[_i].says;
    verdict v = check(elections[_i].body);
    bool right = says ? v.status == TCC_ERR_INTERNAL && says_one(v.said, says) : !v.status;
    ck_assert_msg(right, "%s, checker: status %d, %s", elections[_i].name, v.status, v.said);
    bool found = !says;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        v = interpret(elections[_i].body, seed);
        ck_assert_msg(!v.status || (says && says_one(v.said, says)), "%s, interpreter: %s", elections[_i].name, v.said);
        found |= v.status != TCC_OK;
    }
    ck_assert_msg(found, "%s: the interpreter finds nothing", elections[_i].name);
}
END_TEST

START_TEST(lanes_may_wait_longer_than_lane_0)
{
    expect("checker", "alone", check(TURNS("")), "while warp 0 still waits for the one before");
    expect("checker", "a shuffle", check(TURNS("  %any = nvvm.shfl %t, %c1 {kind = idx} : i32\n")),
           NULL);
    expect("checker", "elect", check(TURNS("  %any = nvvm.elect : i1\n")), NULL);
    expect("checker", "bar.warp.sync", check(TURNS(SYNC)), NULL);
    expect("interpreter", "bar.warp.sync", interpret(TURNS(SYNC), 0), NULL);
}
END_TEST

static void add_tests(TCase *t)
{
    tcase_add_loop_test(t, lanes_are_ordered_by_barriers_alone, 0, sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, any_lane_may_be_elected, 0, sizeof elections / sizeof *elections);
    tcase_add_test(t, lanes_may_wait_longer_than_lane_0);
}

Suite *SUITE(void)
{
    return suite_of("lanes", add_tests);
}

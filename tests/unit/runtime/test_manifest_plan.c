/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "runtime/manifest.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/runtime/sample.h"
#include "tests/unit/suite.h"

static char message[512];

static void on_diagnostic(const tcc_diagnostic *d, void *user)
{
    (void)user;
    snprintf(message, sizeof message, "%s", d->message);
}

#define PLAN(bytes, steps)                                                                         \
    SAMPLE_WITH_VARIANT("{\"name\":\"v\",\"requires\":[],\"workspace_bytes\":" bytes ",\"steps\":[" steps "]}")
#define LAUNCH(params)                                                                             \
    "{\"launch\":\"e\",\"grid\":1,\"block\":32,\"smem_bytes\":0,\"cluster\":1,\"params\":[" params "]}"
#define IN(at, bytes, access) "{\"workspace\":" at ",\"bytes\":" bytes ",\"access\":\"" access "\"}"
#define MAP(at, bytes, access)                                                                     \
    "{\"tensor_map\":{\"workspace\":" at ",\"bytes\":" bytes                                        \
    ",\"dims\":[8],\"strides\":[],\"box\":[8],\"swizzle\":0,\"type\":\"f32\"},\"access\":\"" access "\"}"
#define ARG(name, access) "{\"pointer\":\"" name "\",\"access\":\"" access "\"}"
#define SET(at, bytes) "{\"memset\":{\"workspace\":" at "},\"bytes\":" bytes ",\"byte\":0}"
/* The sizes of two tensors, and of both. */
#define P "[\"mul\",[\"ceildiv\",\"M\",256],256]"
#define Q "[\"mul\",\"N\",256]"
#define P_Q "[\"add\",0," P "," Q "]"
#define SUM "[\"roundup\",[\"mul\",4,\"(N + K - 1)\"],256]"
#define P_SUM "[\"add\",0," SUM "," P "]"
#define WRITES_C LAUNCH(ARG("C", "write"))

/* "": it is right. */
static const struct {
    const char *json, *message;
} plans[] = {
    {PLAN("0", LAUNCH(ARG("A", "read") "," ARG("C", "write"))), ""},
    {PLAN("0", LAUNCH("{\"pointer\":\"C\"}")), ""}, /* as manifests were that said nothing */
    {PLAN(P, LAUNCH(IN("0", P, "write")) "," LAUNCH(IN("0", P, "read") "," ARG("C", "write"))), ""},
    {PLAN(P, LAUNCH(MAP("0", P, "write")) "," LAUNCH(IN("0", P, "read") "," ARG("C", "write"))), ""},
    {PLAN(P_Q, LAUNCH(IN(P, Q, "write") "," IN("0", P, "write")) "," LAUNCH(MAP(P, Q, "both") "," ARG("C", "write"))),
     ""},
    {PLAN(P_Q, SET(P, Q) "," LAUNCH(IN(P, Q, "both") "," ARG("C", "write"))), ""},
    {PLAN("[\"add\"," Q "," P ",64]", SET(P, Q) "," WRITES_C), ""},
    /* N + K - 1 elements: a difference, but not below 0 */
    {PLAN(P_SUM, LAUNCH(IN("0", SUM, "write") "," IN(SUM, P, "write")) "," WRITES_C), ""},
    {PLAN("512", SET("[\"add\",128,128]", "[\"mul\",2,128]") "," LAUNCH(IN("256", "256", "read") "," ARG("C", "write"))),
     ""},

    {PLAN(P, LAUNCH(IN("0", P, "read") "," ARG("C", "write"))),
     "steps[0].params[0]: reads what no earlier step has written to the workspace"},
    {PLAN(P, LAUNCH(MAP("0", P, "both") "," ARG("C", "write"))), "steps[0].params[0]: reads what no earlier step"},
    {PLAN(P, LAUNCH(IN("0", P, "write") "," IN("0", P, "read") "," ARG("C", "write"))),
     "steps[0].params[1]: reads what no earlier step"},
    {PLAN(P, LAUNCH(IN("0", P, "read") "," ARG("C", "write")) "," LAUNCH(IN("0", P, "write"))),
     "steps[0].params[0]: reads what no earlier step"},
    {PLAN(P_Q, SET("0", P) "," LAUNCH(IN(P, Q, "read") "," ARG("C", "write"))), "steps[1].params[0]: reads what no"},

    {PLAN("0", LAUNCH(IN("0", P, "write"))), "steps[0].params[0]: may end behind 'workspace_bytes'"},
    {PLAN(P, LAUNCH(IN("0", P_Q, "write"))), "may end behind 'workspace_bytes'"},
    {PLAN(P, LAUNCH(MAP("64", P, "write"))), "may end behind 'workspace_bytes'"},
    {PLAN("511", SET("256", "256") "," WRITES_C), "steps[0].memset: may end behind 'workspace_bytes'"},
    {PLAN("[\"sub\"," P_Q ",\"K\"]", SET("0", P) "," WRITES_C), "may end behind 'workspace_bytes'"},
    {PLAN("[\"add\"," P ",[\"min\",[\"sub\",\"N\",\"K\"],0]]", SET("0", P) "," WRITES_C),
     "may end behind 'workspace_bytes'"},

    {PLAN(P_Q, LAUNCH(IN("0", P, "write") "," IN("0", Q, "write"))),
     "steps[0].params[1]: may overlap in the workspace with $.kernels[0].variants[0].steps[0].params[0]"},
    {PLAN(P_Q, LAUNCH(IN("0", P, "write")) "," LAUNCH(IN("64", P, "write"))), "steps[1].params[0]: may overlap"},
    {PLAN("[\"add\",4," P "]", SET("0", "4") "," LAUNCH(IN("0", P, "both"))), "may overlap in the workspace with $.kernels[0]"},
    {PLAN("[\"add\"," P_Q ",\"K\"]", LAUNCH(IN("0", P, "write") "," IN("[\"sub\"," P ",\"K\"]", Q, "write"))),
     "may overlap"},

    {PLAN("0", LAUNCH(ARG("A", "read"))), "variants[0].steps: none writes 'C'"},
    {PLAN("0", LAUNCH(ARG("A", "both") "," ARG("C", "write"))), "steps[0].params[0]: writes 'A', which is an input"},
    {PLAN("0", LAUNCH(ARG("C", "both"))), "reads 'C', which no earlier step has written"},
    {PLAN("0", WRITES_C "," LAUNCH(ARG("C", "both"))), ""},
    {PLAN("0", LAUNCH("{\"pointer\":\"A\"}," ARG("C", "write"))), "params[0].access: missing"},
    {PLAN(P, LAUNCH("{\"workspace\":0,\"access\":\"write\"}," ARG("C", "write"))), "params[0].bytes: missing"},
    {PLAN(P, LAUNCH(ARG("C", "append"))), "params[0].access: unknown access 'append'"},
    {PLAN(P, LAUNCH("{\"pointer\":\"C\",\"access\":3}")), "params[0].access: a string is expected"},
};

START_TEST(what_steps_leave_to_each_other_is_checked)
{
    tcc_arena *arena = tcc_arena_create(NULL);
    tcc_diag diag = {.file = "<runtime>", .fn = on_diagnostic};
    const tcc_manifest *m;
    const char *wanted = plans[_i].message;
    message[0] = 0;
    ck_assert_msg(tcc_manifest_read(arena, &diag, plans[_i].json, &m) == (*wanted ? TCC_ERR_SYNTAX : TCC_OK), "%s",
                  message);
    ck_assert_msg(strstr(message, wanted), "'%s' lacks '%s'", message, wanted);
    tcc_arena_destroy(arena);
}
END_TEST

Suite *SUITE(void)
{
    Suite *s = suite_create("manifest_plan");
    TCase *tcase = tcase_create("manifest_plan");
    tcase_add_loop_test(tcase, what_steps_leave_to_each_other_is_checked, 0, (int)(sizeof plans / sizeof plans[0]));
    suite_add_tcase(s, tcase);
    return s;
}

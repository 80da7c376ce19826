/* attributes: those of functions and modules, by tables.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <string.h>

#include "ir/rules.h"
#include "ir/schedule_key.h"

typedef struct row {
    const char *name;
    tcc_attr_kind kind;
} row;

static const row of_module[] = {
#define OF_MODULE(name, kind, doc) {#name, TCC_ATTR_##kind},
#define OF_FUNC(name, kind, doc)
#include "ir/attributes.def"
};

static const row of_func[] = {
#define OF_MODULE(name, kind, doc)
#define OF_FUNC(name, kind, doc) {#name, TCC_ATTR_##kind},
#include "ir/attributes.def"
#define KEY(name, ...) {#name, TCC_ATTR_ANY}, /* choose-schedule reads what they are */
#include "ir/schedule_keys.def"
};

static const row *find(const row *rows, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(rows[i].name, name))
            return &rows[i];
    return NULL;
}

/* Distance by insertions, deletions and replacements of letters, where both names are short; else a large number. */
static size_t distance(const char *a, const char *b)
{
    enum { LONGEST = 31 };
    size_t n = strlen(a), m = strlen(b), row_of[LONGEST + 1];
    if (n > LONGEST || m > LONGEST)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row_of[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diagonal = row_of[0];
        row_of[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t above = row_of[j], best = diagonal + (a[i - 1] != b[j - 1]);
            best = above + 1 < best ? above + 1 : best;
            row_of[j] = row_of[j - 1] + 1 < best ? row_of[j - 1] + 1 : best;
            diagonal = above;
        }
    }
    return row_of[m];
}

/* What may have been meant; NULL: nothing is near. */
static const char *nearest(const row *rows, size_t n, const char *name)
{
    enum { NEAR = 2 };
    const char *best = NULL;
    size_t least = NEAR + 1;
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(name, rows[i].name);
        if (d < least && d < strlen(name) / 2) {
            least = d;
            best = rows[i].name;
        }
    }
    return best;
}

/* whose: of what the attributes are, in messages; at: where they are that have no place of their own. */
static bool check(const row *rows, size_t n, const tcc_attrs *attrs, const char *whose, tcc_loc at, tcc_diag *diag)
{
    bool ok = true;
    for (size_t i = 0; i < attrs->len; i++) {
        const tcc_named_attr *a = &attrs->data[i];
        const row *r = find(rows, n, a->name);
        if (strchr(a->name, '.') || (r && (r->kind == TCC_ATTR_ANY || r->kind == a->value.kind)))
            continue;
        const char *meant = r ? NULL : nearest(rows, n, a->name);
        tcc_loc loc = a->loc.line ? a->loc : at;
        if (r)
            tcc_error(diag, TCC_ERR_TYPE, loc, "attribute '%s' of %s is %s, expected %s", a->name, whose,
                      tcc_attr_kind_name(a->value.kind), tcc_attr_kind_name(r->kind));
        else
            tcc_error(diag, TCC_ERR_TYPE, loc, "unknown attribute '%s' of %s%s%s%s", a->name, whose,
                      meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
        ok = false;
    }
    return ok;
}

bool tcc_verify_func_attrs(const tcc_func *f, tcc_arena *scratch, tcc_diag *diag)
{
    return check(of_func, sizeof of_func / sizeof *of_func, &f->attrs, tcc_arena_printf(scratch, "'%s'", f->name),
                 f->loc, diag);
}

bool tcc_verify_module_attrs(const tcc_ir *ir, tcc_diag *diag)
{
    return check(of_module, sizeof of_module / sizeof *of_module, &ir->attrs, "the module", (tcc_loc){0, 0}, diag);
}

/* normal_form: expressions over the reals as sums of monomials, so that equal ones can be told.
 *
 * A monomial is a number times powers of atoms times e to the power of another normal form. Atoms are what sums,
 * products, quotients and exponentials are not: unknowns, and functions of normal forms. Two normal forms of one arena
 * that are equal are of equal expressions; equal expressions may have different ones (sqrt(x * x) and abs(x)).
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#ifndef TCC_IR_NORMAL_FORM_H
#define TCC_IR_NORMAL_FORM_H

#include <stdbool.h>

#include "support/arena.h"

typedef struct tcc_atom tcc_atom;

typedef struct tcc_atom_power {
    const tcc_atom *atom;
    int power; /* not 0 */
} tcc_atom_power;

typedef struct tcc_normal_form tcc_normal_form;

typedef struct tcc_monomial {
    double number;
    size_t n;
    tcc_atom_power *factors;         /* of ascending atoms */
    const tcc_normal_form *exponent; /* of e; NULL: 0 */
} tcc_monomial;

/* A sum of monomials, in order, no two of which differ in their number alone. */
struct tcc_normal_form {
    size_t n;
    tcc_monomial *of;
};

/* Atoms that were made so far; all that is made is in the arena. */
typedef struct tcc_normal_forms {
    tcc_arena *arena;
    TCC_VEC(tcc_atom *) atoms;
    bool too_long; /* something has more monomials than is followed: nothing is equal from then on */
} tcc_normal_forms;

const tcc_normal_form *tcc_nf_number(tcc_normal_forms *all, double x);
/* A function of up to three arguments, the same for the same key and tag and equal arguments; an unknown with n 0.
 * Where it is 0 or 1, a condition, it is its own square. */
const tcc_normal_form *tcc_nf_atom(tcc_normal_forms *all, const void *key, int tag, bool is_condition, size_t n,
                                   const tcc_normal_form *const *args);
/* x + scale * y */
const tcc_normal_form *tcc_nf_add(tcc_normal_forms *all, const tcc_normal_form *x, double scale,
                                  const tcc_normal_form *y);
const tcc_normal_form *tcc_nf_mul(tcc_normal_forms *all, const tcc_normal_form *x, const tcc_normal_form *y);
const tcc_normal_form *tcc_nf_div(tcc_normal_forms *all, const tcc_normal_form *x, const tcc_normal_form *y);
/* e to the power of x */
const tcc_normal_form *tcc_nf_exp(tcc_normal_forms *all, const tcc_normal_form *x);
/* Numbers that differ in the last digits of a double count as equal. */
bool tcc_nf_equal(const tcc_normal_forms *all, const tcc_normal_form *x, const tcc_normal_form *y);

#endif

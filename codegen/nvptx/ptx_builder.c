/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "codegen/nvptx/ptx_builder.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------------------- */

/* Effects as they are written in ptx.def. */
enum {
    VOLATILE = TCC_PTX_VOLATILE,
    MEMORY = TCC_PTX_MEMORY,
    CONVERGENT = TCC_PTX_CONVERGENT
};

static const tcc_ptx_info infos[] = {
#define IN(name, letter) {#name, #letter, TCC_PTX_IN, false},
#define OUT(name, letter) {#name, #letter, TCC_PTX_OUT, false},
#define INOUT(name, letter) {#name, #letter, TCC_PTX_INOUT, false},
#define IN_LIST(name, letter) {#name, #letter, TCC_PTX_IN, true},
#define INOUT_LIST(name, letter) {#name, #letter, TCC_PTX_INOUT, true},
#define TEXT(name) {#name, "", TCC_PTX_TEXT, false},
#define NO_OPERANDS
#define PTX(id, text, operands, effects)                                                           \
    {text, {operands {NULL, NULL, TCC_PTX_TEXT, false}}, effects},
#include "codegen/nvptx/ptx.def"
};

const tcc_ptx_info *tcc_ptx_info_get(tcc_ptx_id id)
{
    return &infos[id];
}

/* ---- collecting ------------------------------------------------------------------------ */

/* A register or immediate of the asm: the index-th of its outputs or of its inputs. */
typedef struct ref {
    unsigned index;
    bool out;
} ref;

typedef struct bound {
    ref *refs;
    unsigned n;
    const char *text; /* of a TEXT operand */
} bound;

struct tcc_ptx_row {
    const tcc_ptx_info *info;
    bool guarded;
    ref guard;
    bound operands[TCC_PTX_MAX_OPERANDS];
};

void tcc_ptx_begin(tcc_ptx *p, LLVMContextRef context, LLVMBuilderRef builder, tcc_arena *arena)
{
    *p = (tcc_ptx){.context = context, .builder = builder, .arena = arena};
}

static LLVMTypeRef type_of_letter(LLVMContextRef c, char letter)
{
    switch (letter) {
    case 'b': return LLVMInt1TypeInContext(c);
    case 'h': return LLVMInt16TypeInContext(c);
    case 'l': return LLVMInt64TypeInContext(c);
    case 'f': return LLVMFloatTypeInContext(c);
    case 'd': return LLVMDoubleTypeInContext(c);
    default: return LLVMInt32TypeInContext(c);
    }
}

/* The input for a value; one that is in already is shared. */
static ref input(tcc_ptx *p, const char *letters, LLVMValueRef value)
{
    char letter = letters[0];
    if (letters[1] == 'i' && LLVMIsAConstantInt(value)) {
        if (letter == 'b') /* an i1 would be printed as -1 */
            value = LLVMConstInt(LLVMInt32TypeInContext(p->context),
                                 LLVMConstIntGetZExtValue(value), false);
        letter = 'n';
    }
    assert(letter != 'n' || LLVMIsAConstantInt(value));
    for (unsigned i = 0; i < p->ins.len; i++)
        if (p->ins.data[i].value == value && p->ins.data[i].letter == letter)
            return (ref){i, false};
    TCC_PUSH(p->arena, &p->ins, (tcc_ptx_operand){value, letter});
    return (ref){(unsigned)p->ins.len - 1, false};
}

static ref output(tcc_ptx *p, char letter, LLVMValueRef value)
{
    TCC_PUSH(p->arena, &p->outs, (tcc_ptx_operand){value, letter});
    return (ref){(unsigned)p->outs.len - 1, true};
}

static void bind(tcc_ptx *p, bound *b, const tcc_ptx_operand_info *info, const tcc_ptx_arg *arg)
{
    b->text = arg->text;
    if (info->dir == TCC_PTX_TEXT)
        return;
    b->n = info->list || arg->chained ? arg->n : 1;
    b->refs = TCC_NEW_ARRAY(p->arena, ref, b->n);
    for (unsigned i = 0; i < b->n; i++)
        if (info->dir == TCC_PTX_OUT)
            b->refs[i] = output(p, info->letter[0], NULL);
        else if (arg->chained)
            b->refs[i] = (ref){arg->first + i, true};
        else if (info->dir == TCC_PTX_INOUT)
            b->refs[i] = output(p, info->letter[0], info->list ? arg->list[i] : arg->in);
        else
            b->refs[i] = input(p, info->letter, info->list ? arg->list[i] : arg->in);
}

unsigned tcc_ptx_add(tcc_ptx *p, const tcc_ptx_info *info, const void *args)
{
    static const tcc_ptx_arg none;
    const tcc_ptx_arg *arg = args;
    unsigned first = (unsigned)p->outs.len;
    tcc_ptx_row row = {.info = info};
    p->effects |= info->effects;

    LLVMValueRef guard = arg++->in;
    row.guarded = guard && !(LLVMIsAConstantInt(guard) && LLVMConstIntGetZExtValue(guard));
    if (row.guarded) {
        assert(info->text[0] != '{'); /* a guard covers one instruction */
        row.guard = input(p, "b", guard);
    }
    for (unsigned i = 0; info->operands[i].name; i++) {
        const tcc_ptx_arg *given = info->operands[i].dir == TCC_PTX_OUT ? &none : arg++;
        bind(p, &row.operands[i], &info->operands[i], given);
        if (given->chained)
            first = given->first;
    }
    TCC_PUSH(p->arena, &p->rows, row);
    return first;
}

/* ---- the asm string -------------------------------------------------------------------- */

enum { REF_BYTES = 14 }; /* "${4294967295}" and a comma */

static size_t text_bound(const tcc_ptx *p)
{
    size_t n = 1;
    for (size_t r = 0; r < p->rows.len; r++) {
        const tcc_ptx_row *row = &p->rows.data[r];
        n += strlen(row->info->text) + REF_BYTES + 4;
        for (unsigned i = 0; row->info->operands[i].name; i++)
            n += row->operands[i].n * REF_BYTES + REF_BYTES +
                 (row->operands[i].text ? strlen(row->operands[i].text) : 0);
    }
    return n;
}

static char *put_number(char *out, unsigned v)
{
    char digits[10];
    unsigned n = 0;
    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n)
        *out++ = digits[--n];
    return out;
}

/* LLVM numbers the outputs first, then the inputs; a tied input has its output's number. */
static char *put_ref(char *out, const tcc_ptx *p, ref r)
{
    out = stpcpy(out, "${");
    out = put_number(out, r.out ? r.index : (unsigned)p->outs.len + r.index);
    return stpcpy(out, "}");
}

/* Writes the operand that a placeholder names: ${name} or ${#name}. */
static char *put_operand(char *out, const tcc_ptx *p, const tcc_ptx_row *row, const char *name,
                         size_t len)
{
    bool count = name[0] == '#';
    name += count;
    len -= count;
    unsigned i = 0;
    while (strncmp(row->info->operands[i].name, name, len) || row->info->operands[i].name[len])
        i++;
    const bound *b = &row->operands[i];
    if (count)
        return put_number(out, b->n);
    if (b->text)
        return stpcpy(out, b->text);
    for (unsigned k = 0; k < b->n; k++) {
        if (k)
            *out++ = ',';
        out = put_ref(out, p, b->refs[k]);
    }
    return out;
}

static char *put_row(char *out, const tcc_ptx *p, const tcc_ptx_row *row)
{
    if (row->guarded) {
        *out++ = '@';
        out = put_ref(out, p, row->guard);
        *out++ = ' ';
    }
    for (const char *s = row->info->text; *s;) {
        if (s[0] == '$' && s[1] == '{') {
            const char *end = strchr(s, '}');
            out = put_operand(out, p, row, s + 2, (size_t)(end - s - 2));
            s = end + 1;
        } else {
            *out++ = *s++;
        }
    }
    return out;
}

static char *asm_text(const tcc_ptx *p, size_t *len)
{
    char *text = tcc_arena_alloc(p->arena, text_bound(p)), *out = text;
    for (size_t r = 0; r < p->rows.len; r++) {
        if (r)
            *out++ = '\n';
        out = put_row(out, p, &p->rows.data[r]);
    }
    *len = (size_t)(out - text);
    return text;
}

/* "=f,=b,l,n,0,~{memory}": outputs, inputs, tied inputs, clobbers. */
static char *constraints(const tcc_ptx *p, size_t *len)
{
    char *text = tcc_arena_alloc(p->arena, p->outs.len * 14 + p->ins.len * 2 + 12), *out = text;
    for (size_t i = 0; i < p->outs.len; i++) {
        *out++ = '=';
        *out++ = p->outs.data[i].letter;
        *out++ = ',';
    }
    for (size_t i = 0; i < p->ins.len; i++) {
        *out++ = p->ins.data[i].letter;
        *out++ = ',';
    }
    for (size_t i = 0; i < p->outs.len; i++)
        if (p->outs.data[i].value) {
            out = put_number(out, (unsigned)i);
            *out++ = ',';
        }
    if (p->effects & MEMORY)
        out = stpcpy(out, "~{memory},");
    *len = out > text ? (size_t)(out - text) - 1 : 0;
    return text;
}

/* ---- the call -------------------------------------------------------------------------- */

static void add_call_attribute(const tcc_ptx *p, LLVMValueRef call, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                             LLVMCreateEnumAttribute(p->context, kind, 0));
}

static LLVMTypeRef result_type(const tcc_ptx *p)
{
    LLVMTypeRef *types = TCC_NEW_ARRAY(p->arena, LLVMTypeRef, p->outs.len);
    for (size_t i = 0; i < p->outs.len; i++)
        types[i] = p->outs.data[i].value ? LLVMTypeOf(p->outs.data[i].value)
                                         : type_of_letter(p->context, p->outs.data[i].letter);
    if (p->outs.len == 0)
        return LLVMVoidTypeInContext(p->context);
    if (p->outs.len == 1)
        return types[0];
    return LLVMStructTypeInContext(p->context, types, (unsigned)p->outs.len, false);
}

const LLVMValueRef *tcc_ptx_end(tcc_ptx *p)
{
    size_t text_len, constraints_len, n = 0, n_outs = p->outs.len;
    char *text = asm_text(p, &text_len), *letters = constraints(p, &constraints_len);

    LLVMValueRef *values = TCC_NEW_ARRAY(p->arena, LLVMValueRef, p->ins.len + n_outs);
    for (size_t i = 0; i < p->ins.len; i++)
        values[n++] = p->ins.data[i].value;
    for (size_t i = 0; i < n_outs; i++)
        if (p->outs.data[i].value)
            values[n++] = p->outs.data[i].value;
    LLVMTypeRef *types = TCC_NEW_ARRAY(p->arena, LLVMTypeRef, n);
    for (size_t i = 0; i < n; i++)
        types[i] = LLVMTypeOf(values[i]);

    LLVMTypeRef type = LLVMFunctionType(result_type(p), types, (unsigned)n, false);
    LLVMValueRef callee =
        LLVMGetInlineAsm(type, text, text_len, letters, constraints_len,
                         (p->effects & (VOLATILE | MEMORY)) != 0, false, LLVMInlineAsmDialectATT,
                         false);
    LLVMValueRef call = LLVMBuildCall2(p->builder, type, callee, values, (unsigned)n, "");
    if (p->effects & CONVERGENT)
        add_call_attribute(p, call, "convergent");
    if (!(p->effects & (VOLATILE | MEMORY))) {
        add_call_attribute(p, call, "memory"); /* of value 0: none */
        add_call_attribute(p, call, "nounwind");
        add_call_attribute(p, call, "willreturn");
    }

    LLVMValueRef *outs = TCC_NEW_ARRAY(p->arena, LLVMValueRef, n_outs);
    for (size_t i = 0; i < n_outs; i++)
        outs[i] = n_outs == 1 ? call : LLVMBuildExtractValue(p->builder, call, (unsigned)i, "");
    return outs;
}

/* fuzz_link: bytes that are taken for an object become a code object or an error, and so do those
 * bytes twice over. Nothing outside them is touched, and a code object is an ELF file whose headers
 * and sections lie within it.
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
    if (!holds)
        abort();
}

static void drop(const tcc_diagnostic *d, void *user)
{
    (void)d;
    (void)user;
}

static void check(const uint8_t *image, size_t size)
{
    Elf64_Ehdr h;
    require(size >= sizeof h);
    memcpy(&h, image, sizeof h);
    require(h.e_type == ET_DYN && h.e_shstrndx < h.e_shnum);
    require(h.e_phoff + h.e_phnum * sizeof(Elf64_Phdr) <= size);
    require(h.e_shoff + h.e_shnum * sizeof(Elf64_Shdr) == size);
    for (unsigned i = 0; i < h.e_shnum; i++) {
        Elf64_Shdr s;
        memcpy(&s, image + h.e_shoff + i * sizeof s, sizeof s);
        require(s.sh_type == SHT_NOBITS || s.sh_offset + s.sh_size <= h.e_shoff);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const tcc_bytes objects[] = {{data, size}, {data, size}};
    for (size_t n = 1; n <= 2; n++) {
        tcc_diag diag = {.file = "fuzz", .fn = drop};
        void *out;
        size_t out_size;
        tcc_status status = tcc_amdgcn_link(objects, n, "{}", &diag, &out, &out_size);
        require((status == TCC_OK) == (out != NULL) && (status == TCC_OK) == !diag.n_errors);
        if (out)
            check(out, out_size);
        free(out);
    }
    return 0;
}

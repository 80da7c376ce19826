/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#include "driver/proof.h"

#include "support/clock.h"
#include "support/threads.h"

static void *prove(void *arg)
{
    tcc_proof *p = arg;
    double start = tcc_now_ms();
    p->status = tcc_protocol_cover_all(p->ir, 0, &(tcc_diag){0}, &p->covered);
    p->ms = tcc_now_ms() - start;
    return NULL;
}

bool tcc_proof_begin(tcc_proof *p, const tcc_ir *ir)
{
    p->ir = ir;
    p->runs = tcc_threads_for(2) > 1 && !pthread_create(&p->thread, NULL, prove, p);
    return p->runs;
}

tcc_status tcc_proof_end(tcc_proof *p, tcc_diag *diag)
{
    if (!p->runs)
        return TCC_OK;
    pthread_join(p->thread, NULL);
    p->runs = false;
    return p->status ? tcc_protocol_check_all(p->ir, 0, diag) : TCC_OK; /* it goes wrong again */
}

"""Holds the count of registers of sm_90a (passes/pressure.h) to what ptxas makes of schedules.

    sweep.py BUILD [--seed N] [--count N] [--jobs N] [--verbose]

Draws kernels with schedules by hand, many near the limit, and compiles each. Of the variants that are
accepted few may spill without the warning that they may, and little (SILENT, SILENT_BYTES); of the
warnings no more than UNNECESSARY may be for variants that do not spill. Few variants say little about
a rate, so FEW more are let pass. Kernels that are refused for
more than CLOSE registers too many are compiled all the same, past choose-schedule: each must spill, or
be refused by ptxas.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import collections
import concurrent.futures
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

UNNECESSARY = 0.4  # of the warnings
SILENT = 0.03  # of the variants
FEW = 3  # of sixty kernels two to eight variants are warned of, and up to four spill in silence
CLOSE = 12  # registers too many with which a kernel may be refused although it fits
SILENT_BYTES = 40  # stored and loaded again, of one of them

# name: further arguments, outputs (None: C alone), body. OUT( ) rounds to C's type, R is D's.
EPILOGUES = {
    "none": ("", None, "C[m, n] = OUT(acc[m, n]);"),
    "bias": (", bias: f32[N]", None, "C[m, n] = OUT(relu(acc[m, n] + bias[n]));"),
    "rows": (", bias: f16[M]", None, "C[m, n] = OUT(acc[m, n] + bias[m]);"),
    "gelu": (", bias: f16[N]", None, "C[m, n] = OUT(gelu(acc[m, n] + bias[n]));"),
    "silu": (", bias: f32[N], D: R[M, N]", None, "C[m, n] = OUT(silu(acc[m, n] + bias[n]) + D[m, n]);"),
    "transposed": (", D: R[N, M]", None, "C[m, n] = OUT(acc[m, n] * D[n, m]);"),
    "scaled": (", alpha: f32, D: f32[M, N]", None, "C[m, n] = OUT(alpha * acc[m, n] + D[m, n]);"),
    "two": ("", "C: TYPE[M, N], T: f32[N, M]", "C[m, n] = OUT(relu(acc[m, n])); T[n, m] = acc[m, n];"),
    "integers": (
        ", w: u8[M, N], bias: i32[N], z: i32",
        "C: i32[M, N], T: u8[N, M]",
        "i[m, n] = i32(acc[m, n]); C[m, n] = i[m, n] * z + bias[n] - w[m, n]; T[n, m] = relu(i[m, n]);",
    ),
    "four_integers": (
        ", w: i32[M, N]",
        "C: i32[M, N], E: i32[M, N], F: i8[M, N], T: i32[N, M]",
        "i[m, n] = i32(acc[m, n]); C[m, n] = i[m, n] + w[m, n]; E[m, n] = i[m, n] - w[m, n];"
        " F[m, n] = i8(i[m, n]); T[n, m] = i[m, n];",
    ),
    "four": (
        ", D: f32[M, N], G: f32[M, N]",
        "C: f32[M, N], P: f32[M, N], Q: f32[M, N], S: f32[M, N]",
        "d[m, n] = D[m, n] * G[m, n]; C[m, n] = d[m, n] - acc[m, n]; Q[m, n] = acc[m, n] - d[m, n];"
        " P[m, n] = d[m, n] + acc[m, n] * G[m, n]; S[m, n] = 1 / (D[m, n] + 7) + relu(G[m, n]);",
    ),
}

Case = collections.namedtuple(
    "Case", "m n k warpgroups consumers producer stages epilogue persistent ab a b out r what"
)


def accumulators(c):
    rows = c.m if c.consumers == "pingpong" else c.m // c.warpgroups
    return rows // 64 * c.n // 2


def draw(pick):
    """A schedule whose tile is whole blocks, with enough accumulators to matter."""
    while True:
        warpgroups = pick.randint(1, 3)
        c = Case(
            m=64 * warpgroups * pick.randint(1, 4),
            n=8 * pick.randint(1, 32),
            k=pick.choice((16, 32, 64, 64, 128)),
            warpgroups=warpgroups,
            consumers=pick.choice(("cooperative", "cooperative", "pingpong")),
            producer=pick.choice(("none", "warp", "warpgroup", "warpgroup")),
            stages=pick.choice((0, 1, 2)),
            epilogue=pick.choice(("tma", "tma", "interleaved")),
            persistent=pick.choice(("none", "none", "static")),
            ab=pick.choice(("f16", "bf16")),
            a=pick.choice(("M, K", "K, M")),
            b=pick.choice(("N, K", "K, N")),
            out=pick.choice(("f16", "f16", "bf16", "f32", "i8")),
            r=pick.choice(("f32", "f16", "bf16")),
            what=pick.choice(sorted(EPILOGUES)),
        )
        if c.consumers == "pingpong":
            c = c._replace(
                m=64 * pick.randint(1, 3), warpgroups=2, producer="warpgroup", persistent="static"
            )
        if c.producer == "none":
            c = c._replace(persistent="none")
        if c.m <= 256 and 40 <= accumulators(c) <= 224:
            return c


def text(c):
    more, outputs, body = EPILOGUES[c.what]
    body = body.replace("OUT(", "i8(" if c.out == "i8" else "(")
    stages = " stages %d;" % c.stages if c.stages else ""
    return f"""kernel k(A: {c.ab}[{c.a}], B: {c.ab}[{c.b}]{more.replace("R[", c.r + "[")})
    -> ({(outputs or "C: TYPE[M, N]").replace("TYPE", c.out)})
{{
    acc[m, n] = sum(k) A[{c.a.lower()}] * B[{c.b.lower()}];
    {body}
}}
schedule k for sm_90a
{{
    tile m {c.m}, n {c.n}, k {c.k}; warpgroups {c.warpgroups}; producer {c.producer};{stages}
    consumers {c.consumers}; epilogue {c.epilogue}; persistent {c.persistent};
}}
"""


def run(*command):
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    return done.returncode, done.stdout


def spills(ptxas, ptx):
    """Bytes by entry, without the generic variant, whose schedule is fixed; and what else is wrong."""
    with open(ptx, encoding="utf-8") as f:
        entries = [e for e in re.findall(r"\.entry (\w+)\(", f.read()) if "generic" not in e]
    failed, said = run(
        ptxas, "-arch=sm_90a", "-v", "-e", ",".join(entries), "-o", os.devnull, ptx
    )
    found = re.findall(r"properties for (\w+)\n.* (\d+) bytes spill stores, (\d+) bytes", said)
    wrong = [line for line in said.splitlines() if failed or re.search(r"\(C7\d\d\d\)", line)]
    return {e: int(stores) + int(loads) for e, stores, loads in found}, "\n".join(wrong)


def compile_refused(build, c, path):
    """PTX of the first variant, by the passes that come after choose-schedule. None: not even those."""
    opt = build + "/bin/tcc-opt"
    with open(path + ".bare.tile", "w", encoding="utf-8") as f:
        f.write(text(c).split("schedule ")[0])
    run(build + "/bin/tcc", path + ".bare.tile", "--emit=ir", "-o", path + ".ir")
    _, times = run(build + "/bin/tcc", path + ".bare.tile", "--emit=tir", "-o", os.devnull, "--time-passes")
    known = {line.split()[0] for line in run(opt, "--list-passes")[1].splitlines() if line.strip()}
    passes = [word for line in times.splitlines() for word in line.split() if word in known]
    at = passes.index("choose-schedule")
    _, variants = run(opt, path + ".ir", "--passes=" + ",".join(passes[:at]))
    attributes = (
        f"tile = [m, {c.m}, n, {c.n}, k, {c.k}], stages = {c.stages or 1}, warpgroups = "
        f"{c.warpgroups}, consumers = {c.consumers}, persistent = {c.persistent}, "
        f"producer = {c.producer}, swizzle = 128, epilogue = {c.epilogue}, group = 16, "
        "chunks = 1"
    )
    functions = re.split(r"(?m)^(?=func )", variants)
    kept = [f for f in functions if not re.match(r"func @\w+__", f)]
    with open(path + ".tir", "w", encoding="utf-8") as f:
        f.write("".join(kept).replace("assumes = ", attributes + ", assumes = "))
    failed, _ = run(
        opt, path + ".tir", "--passes=" + ",".join(passes[at + 1 :]), "--emit=ptx", "-o", path + ".ptx"
    )
    return None if failed else path + ".ptx"


def check(build, assemblers, number, c, path):
    """({entry: (warned, bytes)}, refused for registers, what is wrong)"""
    with open(path + ".tile", "w", encoding="utf-8") as f:
        f.write(text(c))
    failed, said = run(build + "/bin/tcc", path + ".tile", "-o", path + ".ptx")
    if failed and " registers" in said:
        need = re.search(r"needs (\d+) registers .* the limit is (\d+)", said)
        if need and int(need[1]) - int(need[2]) <= CLOSE:
            return {}, True, None
        ptx = compile_refused(build, c, path)
        for ptxas in assemblers if ptx else []:
            found, wrong = spills(ptxas, ptx)
            if not wrong and not any(found.values()):
                return {}, True, "refused, but %s fits it: %s" % (ptxas, said)
        return {}, True, None
    if failed:
        return {}, False, None if "shared memory" in said or "multiple of" in said else said
    result = {}
    for ptxas in assemblers if " may spill" in said else [assemblers[number % len(assemblers)]]:
        found, wrong = spills(ptxas, path + ".ptx")
        if wrong:
            return result, False, wrong
        for entry, n in found.items():
            result[entry] = ("'%s' may spill" % entry in said, max(n, result.get(entry, (0, 0))[1]))
    silent = [e for e, (warned, n) in result.items() if n > SILENT_BYTES and not warned]
    return result, False, "%s spills in silence: %s" % (silent[0], result) if silent else None


def sweep(build, assemblers, seed, count, jobs, verbose):
    """(kernels that passed, that failed); assemblers take turns at those that are not warned of"""
    pick = random.Random(seed)
    cases = [draw(pick) for _ in range(count)]
    n_failed, refused, n = 0, 0, collections.Counter()
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        work = [
            pool.submit(check, build, assemblers, i, c, "%s/%d" % (folder, i))
            for i, c in enumerate(cases)
        ]
        for c, done in zip(cases, work):
            result, was_refused, wrong = done.result()
            refused += was_refused
            for warned, spilled in result.values():
                n[warned, spilled > 0] += 1
            if wrong or (verbose and any(any(r) for r in result.values())):
                print("%s%s: %s %s" % ("FAIL: " if wrong else "", c, wrong or "", result))
            n_failed += wrong is not None
    warned = n[True, True] + n[True, False]
    print(
        "%d kernels, %d of them refused for registers; of %d variants %d spill, %d warned; %d warnings "
        "are unnecessary, %d spills silent"
        % (count, refused, sum(n.values()), n[True, True] + n[False, True], warned, n[True, False], n[False, True])
    )
    too_many = [
        (n[True, False] > UNNECESSARY * warned + FEW, "warnings of variants that do not spill"),
        (n[False, True] > SILENT * sum(n.values()) + FEW, "variants that spill in silence"),
    ]
    for is_so, what in too_many:
        if is_so:
            print("FAIL: too many " + what)
            n_failed += 1
    return max(0, count - n_failed), n_failed


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1], add_help=False)
    parser.add_argument("build")
    for name, default in (("seed", 1), ("count", 60), ("jobs", 2)):
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--verbose", action="store_true")
    o = parser.parse_args()
    ptxas = shutil.which("ptxas", path=os.environ.get("PATH", "") + ":/usr/local/cuda/bin")
    if not ptxas:
        print("skipped: there is no ptxas")
        return 0
    return sweep(o.build, [ptxas], o.seed, o.count, o.jobs, o.verbose)[1] > 0


if __name__ == "__main__":
    sys.exit(main())

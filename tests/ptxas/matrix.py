"""Assembles what the tests compile with the ptxas of several CUDA versions.

usage: matrix.py BUILD [--jobs N] [--versions V,V]

The versions are in the wheels nvidia-cuda-nvcc-cu12 and nvidia-cuda-nvcc. pip, as it is set up here,
brings each once into BUILD/ptxas; one that it cannot bring is skipped, and the output says why.

Assembled are the examples with all their tiles, the GPU tests, both for sm_90a and for sm_89, the hand-written
kernels, and what lit's tests left in BUILD/ptxas/ptx (tests/checked/tcc). Entries of one target that have the same
instructions, but for how many, are of one kind. The longest of each kind is assembled by one version if it has
products that ptxas could serialise; of the others every third is. Of the kinds that multiply, whatever the width, and
copy by the same instructions the shortest entry is assembled by the oldest and the newest version, and by one of
those between. None may be refused, none may get a warning (C75xx: products serialised or registers short), and none
may spill more than SPILLS says. What passed once is not assembled again, nor is an entry that a version has had from
another file, but for its name: many kernels have the same copies in front of them, and the same generic variants.
Then sweep.py, with both ends.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import collections
import concurrent.futures
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import sweep

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# Oldest to newest. The driver's JIT is the ptxas of its CUDA version: R525 has 12.0, R550 12.4, R570
# 12.8. Each with its version of PTX and the oldest GPU that it has code for, which it also makes of PTX for
# older ones; "newest" is the newest that there is, and has every version of PTX.
VERSIONS = collections.OrderedDict(
    [
        ("12.0", ("nvidia-cuda-nvcc-cu12==12.0.*", 8.0, 50)),
        ("12.4", ("nvidia-cuda-nvcc-cu12==12.4.*", 8.4, 50)),
        ("12.8", ("nvidia-cuda-nvcc-cu12==12.8.*", 8.7, 50)),
        ("13.0", ("nvidia-cuda-nvcc==13.0.*", 9.0, 75)),
        ("newest", ("nvidia-cuda-nvcc", float("inf"), 75)),
    ]
)
IN_PATH = (None, float("inf"), 75)
PLATFORMS = ["manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64"]
PLATFORMS += ["manylinux_2_%d_x86_64" % minor for minor in (12, 17, 27, 28, 34)]

# Bytes of stores that an entry, or the entries of a kernel, may spill, whatever the version. All versions have an entry
# of this name.
SPILLS = {
    "doubtful": 92,  # of tests/driver/may_spill.tile, with a warning
    "sums_of_rows": 672,  # of tests/driver/live_rows.tile, with warnings, but not of all variants that spill
    "f64_functions": 12,  # six results of functions of f64
    "full__128x224": 52,  # of tests/passes/tile_menu.tile, 128 x 224 with a residual
    "both": 136,  # two computed operands, one of bytes, on their way to shared memory; 20 from 12.4 on
    "singles__direct": 4,  # of tests/passes/sm_50.tile for sm_62, with half the registers
    "singles__generic": 4,
    "many": 6064,  # of tests/driver/live_registers.tile: more sums than registers, with warnings
    "many__generic": 4668,
    "eighths__padded": 76,  # of tests/passes/epilogue_elements.tile for sm_75
    "grouped__16x64": 12,  # of tests/passes/single_loads.tile, up to 12.0
    "thirteen": 4,  # of tests/passes/many_sums.tile
    "several__split": 8,  # of tests/tcc-run/split_streams.tile: rows of 32 parts, two sums
    "biased__steps__s__direct": 8,
    "long_row": 4,  # of tests/driver/long_expressions.py: a softmax of a long expression
    "long_operand": 112,  # of tests/driver/long_expressions.py: an operand that is computed by 50 functions
}

# The warning that a hand-written kernel is to get, or an entry may get.
WARNINGS = {
    "tests/interp/shapes.tir": "C75(11|19)",  # products of two shapes in turn on the same accumulators
    # K is a number of one iteration. ptxas up to 12.4 sees that, peels the loop, and takes the epilogue behind
    # the wait for what reads accumulators in flight. Nothing is lost: a single iteration has nothing to
    # overlap with. It is silent when it cannot know the number of iterations.
    # Of two scores the operand that one becomes is computed while the other's products run.
    "differential": "C75(13|17)",
    "differential__any": "C75(13|17)",
    "differential__split__parts": "C75(13|17)",
    "fake_product": "C7514",
    "fake_product__generic": "C7514",
}


def fetch(folder, version, package):
    """The path of ptxas, and why there is none."""
    path = os.path.join(folder, version, "ptxas")
    if os.access(path, os.X_OK):
        return path, None
    with tempfile.TemporaryDirectory() as wheels:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--dest", wheels]
        for platform in PLATFORMS:
            command += ["--platform", platform]
        pip = subprocess.run(
            command + [package], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        wheel = glob.glob(wheels + "/*.whl")
        if pip.returncode or not wheel:
            said = pip.stderr.strip().splitlines()
            return None, "pip cannot download %s: %s" % (package, said[-1] if said else "no wheel")
        with zipfile.ZipFile(wheel[0]) as archive:
            member = [n for n in archive.namelist() if n.endswith("/bin/ptxas")]
            if not member:
                return None, "no ptxas in " + os.path.basename(wheel[0])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path + ".new", "wb") as out:
                out.write(archive.read(member[0]))
    os.chmod(path + ".new", 0o755)
    os.replace(path + ".new", path)
    return path, None


def compile_all(build, tool, sources, folder, jobs, options=()):
    """[(name, path of PTX)]; what this build refuses is missed as a failure."""

    def compile_one(source):
        relative = os.path.relpath(source, root)
        name = " ".join([relative, *options])
        out = os.path.join(folder, re.sub("[/ =]", "_", name) + ".ptx")
        run = subprocess.run(
            [build + "/bin/" + tool, source, "--emit=ptx", "-o", out, *options],
            capture_output=True,
            text=True,
            check=False,
        )
        return name, out if run.returncode == 0 else None

    os.makedirs(folder, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(compile_one, sources))


def is_expected(name, line):
    entry = re.search(r"in (?:the )?function '(\S+)'", line)
    codes = [WARNINGS.get(name.split()[0]), entry and WARNINGS.get(entry[1])]
    return any(code and re.search(r"\(%s\)" % code, line) for code in codes)


def judge(name, log, spilled):
    """What is wrong in what ptxas -v says, or ''."""
    wrong = [line for line in log.splitlines() if re.search(r"\(C7\d\d\d\)|error|fatal", line)]
    wrong = [line for line in wrong if not is_expected(name, line)]
    for entry, stores in re.findall(
        r"Function properties for (\S+)\n.* (\d+) bytes spill stores", log
    ):
        kernel = entry.split("__")[0]
        if int(stores) > SPILLS.get(entry, SPILLS.get(kernel, 0)):
            wrong.append("%s spills %s bytes" % (entry, stores))
        if int(stores):
            spilled.update((entry, kernel))
    return "\n".join(wrong)


ENTRY = re.compile(r"^\.visible \.entry (\w+)\(.*?^\$L__func_end(\d+):\n*^}$", re.MULTILINE | re.DOTALL)
SAYS_WHERE = ("\t//", "//", "\t.loc", "$L__tmp", "$L__func_", "\t.file", "\t.section")


def without_names(text, name="", number=""):
    """What ptxas makes of PTX depends on: not names, comments, and lines of the source."""
    lines = [line for line in text.split("\n") if not line.startswith(SAYS_WHERE)]
    text = "\n".join(lines).strip()
    if name:
        text = text.replace(name + "(", "(", 1).replace(name + "_param_", "_param_")
    return text.replace("$L__BB%s_" % number, "$L__BB_")


# Instructions, and what bounds threads and registers.
INSTRUCTION = re.compile(
    r"^(?:\t?(?:@!?%?\w+ )?([a-z][\w.:]+)|(\.(?:reqntid|maxntid|minnctapersm|maxnreg) .*))", re.MULTILINE
)
WIDTH = re.compile(r"(wgmma\.mma_async\.sync\.aligned\.m64)n\d+")
OF_STRUCTURE = re.compile(r"(wgmma|setmaxnreg|cp|stmatrix|red)\.")


class Ptx:
    """A file, whose entries are left out for a version that has had them or leaves them to others."""

    def __init__(self, name, path):
        with open(path, encoding="utf-8") as f:
            self.text = f.read()
        found = list(ENTRY.finditer(self.text))
        shared = without_names(ENTRY.sub("", self.text)) if found else ""
        self.version = float(re.search(r"^\.version ([\d.]+)", self.text, re.MULTILINE)[1])
        self.target = re.search(r"^\.target (\w+)", self.text, re.MULTILINE)[1]
        self.entries = [(f[1], f.start(), f.end()) for f in found]
        self.keys = [hashlib.sha256((shared + without_names(*f.group(0, 1, 2))).encode()).digest() for f in found]
        # Debug information refers to entries, and what is said of a name is said of one of them.
        self.stays_whole = name in WARNINGS or ".debug_info" in self.text or not self.keys

    def without(self, had, is_wanted):
        """Its text with the wanted of the entries that are not in `had`, where they are put; None: there are none."""
        if self.stays_whole:
            return self.text
        parts, end, is_empty = [], 0, True
        for (name, start, after), key in zip(self.entries, self.keys):
            is_new = key not in had and is_wanted(key)
            if is_new or name in SPILLS or name in WARNINGS:
                is_empty = False
            else:
                parts.append(self.text[end:start])
                end = after
            if is_new:
                had.add(key)
        return None if is_empty else "".join(parts) + self.text[end:]


def survey(files):
    """The keys of the entries to assemble: by one version, every third by one version, and by three."""
    kinds, seen = {}, set()
    for ptx in files:
        for (_, start, end), key in zip(ptx.entries, ptx.keys):
            if key not in seen:
                seen.add(key)
                kind = ptx.target, frozenset(INSTRUCTION.findall(ptx.text, start, end))
                kinds.setdefault(kind, []).append((end - start, key))
    with_products, others, shortest = set(), set(), {}
    for (_, instructions), entries in kinds.items():
        structure = frozenset(WIDTH.sub(r"\1", name) for name, _ in instructions if OF_STRUCTURE.match(name))
        if any(name.startswith("wgmma.mma_async") for name in structure):
            with_products.add(max(entries)[1])
            shortest[structure] = min(entries + [shortest.get(structure, max(entries))])
        else:
            others.add(max(entries)[1])
    return with_products, others, {key for _, key in shortest.values()}


def assemble(ptxas, version, name, ptx, passed):
    """(version, name, what is wrong, entries that spill)"""
    text = ptx.encode()
    with open(ptxas, "rb") as f:
        size = str(os.fstat(f.fileno()).st_size)
    target = re.search(r"^\.target (\w+)", ptx, re.MULTILINE)[1]
    oldest = VERSIONS.get(version, IN_PATH)[2]
    arch = "sm_%d" % oldest if int(re.search(r"\d+", target)[0]) < oldest else target
    key = hashlib.sha256(text + size.encode() + arch.encode() + repr(sorted(SPILLS.items())).encode()).hexdigest()
    stamp = os.path.join(passed, key)
    spilled = set()
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as f:
            return version, name, "", set(f.read().split())
    with tempfile.NamedTemporaryFile(suffix=".ptx") as file:
        file.write(text)
        file.flush()
        run = subprocess.run(
            [ptxas, "-arch=" + arch, "-v", "-o", os.devnull, file.name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    wrong = judge(name, run.stdout + run.stderr, spilled)
    if run.returncode and not wrong:
        wrong = "ptxas ended with %d: %s" % (run.returncode, run.stderr.strip())
    if not wrong:
        with open(stamp, "w", encoding="utf-8") as f:
            f.write(" ".join(sorted(spilled)))
    return version, name, wrong, spilled


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--versions", default=",".join(VERSIONS))
    args = parser.parse_args()
    home = os.path.join(os.path.abspath(args.build), "ptxas")
    passed_folder = os.path.join(home, "passed")
    os.makedirs(passed_folder, exist_ok=True)

    versions, skipped, wanted = [], 0, args.versions.split(",")
    with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:  # they wait for what is downloaded
        fetched = list(pool.map(lambda v: fetch(home, v, VERSIONS[v][0]), wanted))
    for version, (path, why) in zip(wanted, fetched):
        if path:
            versions.append((version, path))
        else:
            skipped += 1
            print("skipped: ptxas %s: %s" % (version, why))
    here = shutil.which("ptxas")
    if not versions and here:  # with which lit's tests would have assembled theirs
        versions.append(("in PATH", here))

    def files(*patterns):
        return sorted(f for p in patterns for f in glob.glob(os.path.join(root, p)))

    examples = files("examples/*.tile", "examples/*/*.tile")
    gpu_tests = files("tests/gpu/*.tile")
    by_hand = [f for f in files("tests/interp/*.tir", "tests/codegen/hopper_gemm.tir") if "gfx" not in f]

    def compiled(tool, sources, *options):
        return compile_all(args.build, tool, sources, home + "/made", args.jobs, options) if versions else []

    # tests/checker/programs.test has the proofs for sm_90a.
    made = compiled("tcc", examples, "--no-verify-pipeline") + compiled("tcc", examples, "--target=sm_89")
    made += compiled("tcc", gpu_tests, "--tiles=1", "--no-verify-pipeline")
    made += compiled("tcc", gpu_tests, "--tiles=1", "--target=sm_89")
    made += compiled("tcc-opt", by_hand, "--no-verify-pipeline")
    made += [("lit: " + os.path.basename(f), f) for f in sorted(glob.glob(home + "/ptx/*.ptx"))]
    failed = [name for name, path in made if not path]
    for name in failed:
        print("FAIL: %s does not compile" % name)

    work, n_had, n_too_new = [], 0, 0
    files_read = [(name, Ptx(name, path)) for name, path in made if path]
    once, third, always = survey(ptx for _, ptx in files_read)
    for version, ptxas in versions:
        had = set()
        for name, ptx in files_read:
            takers = [v for v, _ in versions if ptx.version <= VERSIONS.get(v, IN_PATH)[1]]
            if version not in takers:
                n_too_new += 1
                continue

            place, n = takers.index(version), len(takers)

            def is_wanted(key, place=place, n=n):
                share = n if key in once else 3 * n if key in third else 0
                between = place in (0, n - 1) or key[1] % (n - 2) == place - 1
                return (key in always and between) or (share and key[0] % share == place)

            # What is said of hand-written kernels differs between versions.
            text = ptx.without(had, is_wanted) if place in (0, n - 1) or not ptx.stays_whole else None
            n_had += text is None
            if text is not None:
                work.append((ptxas, version, name, text, passed_folder))
    print("%d files have nothing for a ptxas that others have not, %d are of PTX newer than it" % (n_had, n_too_new))
    n_passed, n_failed, spilled = 0, len(failed), set()
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for version, name, wrong, entries in pool.map(lambda w: assemble(*w), work):
            spilled |= entries
            if wrong:
                n_failed += 1
                print("FAIL: ptxas %s, %s:\n%s" % (version, name, wrong))
            else:
                n_passed += 1
    for entry in sorted(set(SPILLS) - spilled) if len(versions) == len(VERSIONS) else []:
        n_failed += 1
        print("FAIL: %s no longer spills; SPILLS need not list it" % entry)
    if versions:
        ends = [versions[0][1], versions[-1][1]]
        good, bad = sweep.sweep(args.build, ends, 1, 24, args.jobs, False)
        n_passed += good
        n_failed += bad
    print("ptxas: %d passed, %d failed, %d skipped" % (n_passed, n_failed, skipped))
    return n_failed > 0


if __name__ == "__main__":
    sys.exit(main())

# The lit suite. `lit build/tests` runs it all; `lit tests/frontend` runs a part on build/ or on
# the build directory that TCC_BUILD_DIR names.
#
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import ctypes
import os
import shutil
import subprocess
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here + "/sanitized")
import sample  # a module: lit hands its tests to other processes
root = os.path.dirname(here)
build = getattr(config, "build_dir", None) or os.environ.get("TCC_BUILD_DIR") or root + "/build"
llvm = getattr(config, "llvm_tools_dir", "/usr/lib/llvm-22/bin")

config.name = "tcc"
sanitizer = bool(getattr(config, "sanitizer", ""))
config.test_format = sample.Sampled(sanitizer)
sanitizer = sanitizer or "TCC_COUNTS" in os.environ  # which counts for builds with one
config.suffixes = [".tile", ".tir", ".test"]
config.excludes = ["checked", "fuzz", "gpu", "ptxas", "sanitized", "unit"]
config.test_source_root = here
config.test_exec_root = build + "/tests"

# tcc, tcc-opt, tcc-run; FileCheck, not, count, split-file
programs = build + "/emulated" if getattr(config, "emulator", "") else build + "/bin"
path = [programs, llvm, config.environment["PATH"]]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["TCC_FILL_WORKSPACE"] = "1"  # with NaN, as the interpreter does
for name in ("CUDA_HOME", "CK_FORK"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions += [("%root", root), ("%build", build), ("%llvm_libs", getattr(config, "llvm_libs", "-lLLVM-22")),
                         ("%llvm", os.path.dirname(llvm))]


def find_cuda(program, beside=None):
    """A program of CUDA's, looked for where libtcc looks."""
    cuda = [os.path.dirname(beside)] if beside else []
    cuda += [os.environ["CUDA_HOME"] + "/bin"] if "CUDA_HOME" in os.environ else []
    cuda += [os.environ.get("PATH", ""), "/usr/local/cuda/bin"]
    return shutil.which(program, path=os.pathsep.join(cuda))


def has_gpu():
    """Whether there is a CUDA driver with a GPU."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


def has_hip():
    """Whether there is a HIP library, with a GPU or without."""
    for name in ("", ".7", ".6", ".5"):
        try:
            ctypes.CDLL("libamdhip64.so" + name)
            return True
        except OSError:
            continue
    return False


def has_vm_flags():
    """Whether /proc tells what a process has asked of its memory: not every kernel or sandbox does."""
    try:
        with open("/proc/self/smaps", encoding="utf-8") as smaps:
            return "\nVmFlags:" in smaps.read()
    except OSError:
        return False


def find_python(module):
    """A Python that has a module, or None: the one that TCC_TEST_PYTHON names, the user's, Debian's."""
    for python in (os.environ.get("TCC_TEST_PYTHON", ""), "python3", "/usr/bin/python3"):
        python = shutil.which(python)
        if python and not subprocess.call([python, "-c", f"import {module}"], stderr=subprocess.DEVNULL):
            return python
    return None


for module, name in (("numpy", "%python"), ("torch", "%torch_python"), ("mypy", "%mypy_python")):
    python = find_python(module)
    if python:
        config.available_features.add(module)
        config.substitutions.append((name, python))
ptxas = find_cuda("ptxas")
if ptxas and find_cuda("nvdisasm", beside=ptxas):
    config.available_features.add("nvdisasm")
    version = subprocess.run([ptxas, "--version"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    if ", release 13.0," in version:  # whose listings documents show
        config.available_features.add("sass-13.0")
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
    # Every PTX that a test makes is assembled as well. Builds write the same (same_code in ./dev): one is enough.
    if not sanitizer:
        config.environment["PATH"] = os.pathsep.join([here + "/checked", config.environment["PATH"]])
        config.environment.update(TCC_PTXAS=ptxas, TCC_BIN=programs)
    if os.path.isdir(build + "/ptxas/ptx"):
        config.environment["TCC_PTX_KEEP"] = build + "/ptxas/ptx"
if has_gpu():
    config.available_features.add("gpu")
if has_hip():
    config.available_features.add("hip")
# What takes long because of what the interpreter runs is UNSUPPORTED with it: others run every part of that.
if sanitizer:
    config.available_features.add("sanitizer")
if getattr(config, "emulator", ""):  # what a test compiles does not link with such a build
    config.available_features.add("emulated")
if lit_config.params.get("quick"):  # ./dev quick
    config.available_features.add("quick")
for program in ("make", "shellcheck", "groff", "vim", "zsh", "fish"):
    if shutil.which(program):
        config.available_features.add(program)
if os.path.exists("/sys/kernel/mm/transparent_hugepage") and has_vm_flags():
    config.available_features.add("large-pages")
if os.getuid() == 0:
    config.available_features.add("root")
if os.path.exists(root + "/.git") and shutil.which("git"):
    config.available_features.add("checkout")
if os.path.exists(build + "/lib/libtcc.a"):  # TCC_STATIC_LIBRARY
    config.available_features.add("libtcc.a")
if os.path.exists(build + "/lib/_launcher.abi3.so"):  # Python's headers were there
    config.available_features.add("launcher")
if os.path.exists(build + "/docs-venv/requirements.txt"):  # ./dev docs has installed it
    config.available_features.add("sphinx")

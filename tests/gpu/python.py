#!/usr/bin/env python3
"""The Python package on a GPU, with torch: results, streams, graphs, operators, times; cupy and jax where they are.

    tests/gpu/python.py [--cpu] [WHEEL]

WHEEL is what `./dev wheel` makes; without it `tcc` is imported from where Python finds it. Results are compared with
torch's in double precision; outputs are poisoned with NaN and lie between guards of NaN. Prints a row for each check
and `N passed, N failed`. Exit status 0 when all passed, 1 when one failed, 3 when there is no GPU.

--cpu  the checks that need no GPU, on the interpreter

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import faulthandler
import gc
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zipfile

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--cpu", action="store_true")
parser.add_argument("wheel", nargs="?", type=pathlib.Path)
options = parser.parse_args()
scratch = tempfile.TemporaryDirectory()
if options.wheel:
    site = os.path.join(scratch.name, "site")
    zipfile.ZipFile(options.wheel).extractall(site)
    sys.path.insert(0, site)
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # jax is not alone here
os.environ["TCC_CACHE_DIR"] = os.path.join(scratch.name, "cache")
os.environ["TCC_FILL_WORKSPACE"] = "1"  # with NaN before each launch

import tcc  # noqa: E402

if not options.cpu and not torch.cuda.is_available():
    print("python.py: torch finds no GPU", file=sys.stderr)
    sys.exit(3)
device = torch.device("cpu" if options.cpu else "cuda:0")

LAYER = """
kernel layer(A: {0}[M, K], B: {0}[K, N], bias: f32[N], alpha: f32) -> (C: {1}[M, N])
{{
    acc[m, n] = sum(k) A[m, k] * B[k, n];
    C[m, n]   = relu(alpha * acc[m, n] + bias[n]);
}}
"""
DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32, "i8": torch.int8, "i32": torch.int32}

# ---- checks --------------------------------------------------------------------------------------

checks = []


def check(title, gpu=False, needs="torch"):
    """Adds a check, which fails with an exception and may return a note for its row."""

    def add(function):
        if not (gpu and options.cpu) and importlib.util.find_spec(needs):
            checks.append((title, function))
        return function

    return add


def random(*shape, dtype="f16", seed=1):
    generator = torch.Generator(device).manual_seed(seed)
    if dtype in ("i8", "i32"):
        return torch.randint(-128, 128, shape, generator=generator, device=device).to(DTYPES[dtype])
    return torch.randn(shape, generator=generator, device=device).to(DTYPES[dtype])


GUARD = 4096  # elements on either side


def poisoned(*shape, dtype="f16"):
    """A tensor of NaN between guards of NaN, and the memory that they are in."""
    n = torch.Size(shape).numel()
    value = torch.nan if DTYPES[dtype].is_floating_point else 77
    memory = torch.full((n + 2 * GUARD,), value, dtype=DTYPES[dtype], device=device)
    return memory[GUARD : GUARD + n].view(shape), memory


def check_guards(memory):
    for guard in memory[:GUARD], memory[-GUARD:]:
        assert bool((guard.isnan() if guard.is_floating_point() else guard == 77).all()), "written outside"


def check_close(got, want, tolerance=1e-3):
    """The relative error of a result, in the norm that tcc-run takes, too."""
    got = got.double()
    assert got.isfinite().all(), "an element is NaN or infinite"
    error = ((got - want).norm() / want.norm().clamp_min(1e-300)).item()
    assert error <= tolerance, f"relative error {error:.2e}, tolerance {tolerance:.2e}"
    return f"relative error {error:.2e}"


def layer_in_doubles(a, b, bias, alpha):
    return torch.relu(alpha * (a.double() @ b.double()) + bias.double())


def layer_arguments(m, k, n, dtype="f16", seed=1):
    return random(m, k, dtype=dtype, seed=seed), random(k, n, dtype=dtype, seed=seed + 1), random(n, dtype="f32"), 0.5


small = options.cpu  # the interpreter computes


def add_shape(element, result, m, k, n):
    tolerance = {"f16": 1e-3, "bf16": 4e-3, "f32": 2e-4}[result]

    @check(f"layer {element} to {result}, M={m} K={k} N={n}")
    def shape():
        layer = tcc.jit(LAYER.format(element, result))
        arguments = layer_arguments(m, k, n, element)
        out, memory = poisoned(m, n, dtype=result)
        assert layer(*arguments, out=out) is out
        note = check_close(out, layer_in_doubles(*arguments), tolerance)
        check_guards(memory)
        new = layer(*arguments)
        assert new.device == out.device and new.dtype == out.dtype
        assert torch.equal(new, out), "a second launch gives another result"
        return note


shapes = [(64, 64, 64), (77, 40, 33)] if small else [(4096, 4096, 4096), (2048, 512, 1024), (1000, 72, 520), (77, 41, 33),
                                                       (1, 64, 8), (16, 8192, 64)]
for element, result in ("f16", "f16"), ("bf16", "bf16"), ("f16", "f32"):
    for mkn in shapes:
        add_shape(element, result, *mkn)


@check("i8 for sm_80, sums in i32")
def bytes_are_exact():
    product = tcc.jit("kernel p(A: i8[M, K], B: i8[N, K]) -> (C: i32[M, N]) { C[m, n] = sum(k) A[m, k] * B[n, k]; }",
                      target="sm_80")
    a, b = random(96, 128, dtype="i8"), random(80, 128, dtype="i8", seed=2)
    out, memory = poisoned(96, 80, dtype="i32")
    product(a, b, out=out)
    assert torch.equal(out.double(), a.double() @ b.double().T)
    check_guards(memory)


@check("inout, several outputs, arguments by name")
def several():
    update = tcc.jit("""
        kernel update(A: f32[M, N], inout U: f32[M, N]) -> (B: f16[M, N], C: f32[N, M])
        {
            B[m, n] = A[m, n];
            C[n, m] = U[m, n];
            U[m, n] = U[m, n] + A[m, n];
        }""")
    a, u = random(130, 50, dtype="f32"), random(130, 50, dtype="f32", seed=2)
    before = u.clone()
    b, c = update(U=u, A=a)
    assert torch.equal(b, a.half()) and torch.equal(c, before.T) and torch.equal(u, before + a)


@check("batches, offset addresses, rows without alignment")
def offset():
    product = tcc.jit("kernel p(A: f16[H, M, K], B: f16[H, K, N]) -> (C: f16[H, M, N])"
                      " { C[h, m, n] = sum(k) A[h, m, k] * B[h, k, n]; }")
    h, m, k, n = (2, 20, 17, 9) if small else (7, 200, 171, 93)
    a = random(h * m * k + 3)[3:].view(h, m, k)
    b = random(h * k * n + 1, seed=2)[1:].view(h, k, n)
    out, memory = poisoned(h, m, n)
    product(a, b, out=out)
    check_guards(memory)
    return check_close(out, a.double() @ b.double())


class OnlyDLPack:
    def __init__(self, x):
        self.x = x

    def __dlpack__(self, **named):
        return self.x.__dlpack__(**named)


class OnlyInterface:
    def __init__(self, x):
        self.__cuda_array_interface__ = x.__cuda_array_interface__


def through(wrap):
    layer = tcc.jit(LAYER.format("f16", "f16"))
    arguments = layer_arguments(128, 64, 64)
    torch.cuda.synchronize()
    out, memory = poisoned(128, 64)
    layer(*map(wrap, arguments[:3]), arguments[3], out=wrap(out))
    torch.cuda.synchronize()
    check_guards(memory)
    return check_close(out, layer_in_doubles(*arguments))


@check("arrays that have __dlpack__ alone", gpu=True)
def dlpack():
    return through(OnlyDLPack)


@check("arrays that have __cuda_array_interface__ alone", gpu=True)
def interface():
    return through(OnlyInterface)


@check("tensors of the host go to the GPU and back")
def host():
    layer = tcc.jit(LAYER.format("f16", "f16"))
    arguments = [x.cpu() if isinstance(x, torch.Tensor) else x for x in layer_arguments(77, 64, 64)]
    c = layer(*arguments)
    assert c.device.type == "cpu"
    return check_close(c, layer_in_doubles(*arguments))


@check("what does not fit is refused", gpu=True)
def refusals():
    layer = tcc.jit(LAYER.format("f16", "f16"))
    a, b, bias, alpha = layer_arguments(64, 64, 64)
    for arguments in ((a, b.cpu(), bias, alpha), (a.T, b, bias[:3], alpha), (a.float(), b, bias, alpha)):
        try:
            layer(*arguments)
        except tcc.ArgumentError:
            continue
        raise AssertionError("it was taken")
    torch.cuda.synchronize()


# ---- streams and graphs --------------------------------------------------------------------------

CYCLES = 100_000_000  # of a wait on the GPU, some 50 ms


def late(stream_of, **named):
    """A launch behind a copy that comes late on a stream: on another one it would read what was there before."""
    layer = tcc.jit(LAYER.format("f16", "f16"))
    a, b, bias, alpha = layer_arguments(512, 512, 512)
    stale = torch.zeros_like(a)
    out, _ = poisoned(512, 512)
    layer(stale, b, bias, alpha, out=out)  # the code is loaded
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(CYCLES)
        stale.copy_(a)
        if not named:
            layer(stale, b, bias, alpha, out=out)
    if named:
        layer(stale, b, bias, alpha, out=out, stream=stream_of(stream))
    torch.cuda.synchronize()
    return check_close(out, layer_in_doubles(a, b, bias, alpha))


@check("torch's current stream", gpu=True)
def current_stream():
    return late(None)


@check("stream= a torch.cuda.Stream", gpu=True)
def stream_object():
    return late(lambda s: s, stream=True)


@check("stream= a number", gpu=True)
def stream_number():
    return late(lambda s: s.cuda_stream, stream=True)


def replay(prepare):
    # Another number of tiles is another program, of which nothing is loaded yet.
    layer = tcc.jit(LAYER.format("f16", "f16"), tiles=3 + prepare)
    a, b, bias, alpha = layer_arguments(300, 512, 256)
    if prepare:
        layer.prepare(a, b, bias, alpha)
    else:
        layer(a, b, bias, alpha)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = layer(a, b, bias, alpha)
    for seed in 5, 6:
        new = layer_arguments(300, 512, 256, seed=seed)
        for old, x in zip((a, b, bias), new):
            old.copy_(x)
        c.fill_(torch.nan)
        graph.replay()
        torch.cuda.synchronize()
        note = check_close(c, layer_in_doubles(*new))
    return note


@check("captured in a CUDA graph after a launch", gpu=True)
def graph_after_launch():
    return replay(False)


@check("captured in a CUDA graph after prepare", gpu=True)
def graph_after_prepare():
    return replay(True)


@check("threads, each on a stream of its own", gpu=True)
def threads():
    wrong = []

    def work(i):
        try:
            with torch.cuda.stream(torch.cuda.Stream()):
                layer = tcc.jit(LAYER.format("f16", "f16"))
                for turn in range(20):
                    arguments = layer_arguments(64 + 16 * i, 128, 128, seed=i * 100 + turn)
                    c = layer(*arguments)
                    torch.cuda.current_stream().synchronize()
                    check_close(c, layer_in_doubles(*arguments))
        except Exception as error:  # of the thread: shown by the row
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    if wrong:
        raise wrong[0]


# ---- operators -----------------------------------------------------------------------------------


@check("torch.library.opcheck")
def opcheck():
    layer = tcc.jit(LAYER.format("f16", "f16")).torch_op()
    torch.library.opcheck(layer, layer_arguments(32, 64, 24))


def traced(backend, dynamic):
    layer = tcc.jit(LAYER.format("f16", "f16")).torch_op()

    @torch.compile(backend=backend, fullgraph=True, dynamic=dynamic)
    def model(a, b, bias):
        return layer(a * 1, b, bias, 0.5) + 1

    for m in (64, 64, 96):
        a, b, bias, alpha = layer_arguments(m, 64, 32)
        note = check_close(model(a, b, bias).clone(), layer_in_doubles(a, b, bias, alpha) + 1)
    return note


@check("torch.compile, aot_eager, dynamic shapes")
def compile_dynamic():
    return traced("aot_eager", True)


@check("torch.compile, cudagraphs", gpu=True)
def compile_cudagraphs():
    return traced("cudagraphs", False)


# ---- in the background -----------------------------------------------------------------------------


def counts():
    """What the compilers of this process have done so far: programs compiled, sets of extents with a kernel of their own."""
    total = [0, 0]
    for jit in tcc._gpu.gpus()._jits.values():
        n = tcc._lib.lib.tcc_jit_count(jit)
        total = [total[0] + n.compiled, total[1] + n.specialized]
    return total


@check("kernels for extents", gpu=True)
def extents():
    notes = []
    for when in "at once", "background":
        # of one tile, which is for large matrices
        layer = tcc.jit(LAYER.format("f16", "f16") + f"// {when}", tiles=1, specialize=when)
        before = counts()[1]
        for m in (16, 48, 16, 48):
            arguments = layer_arguments(m, 4096, 512, seed=m)
            notes.append(check_close(layer(*arguments), layer_in_doubles(*arguments)))
            layer.wait()
        assert counts()[1] > before, when
    return notes[-1]


@check("kernels for extents, made while a graph is captured", gpu=True)
def extents_and_graphs():
    layer = tcc.jit(LAYER.format("f16", "f16") + "// captured", tiles=1, specialize="background")
    arguments = layer_arguments(32, 4096, 512)
    layer.prepare(*layer_arguments(1024, 512, 512))  # the general kernel's code is there
    out, _ = poisoned(32, 512)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        layer(*arguments, out=out)
        layer.wait()
    graph.replay()
    torch.cuda.synchronize()
    return check_close(out, layer_in_doubles(*arguments))


@check("machine code is kept for later processes", gpu=True)
def machine_code():
    layer = tcc.jit(LAYER.format("f16", "f16") + "// assembled", tiles=1, assemble="background")
    layer.wait()
    kept = [p for p in pathlib.Path(os.environ["TCC_CACHE_DIR"]).glob("*.tcc") if b"// assembled" in p.read_bytes()]
    is_bundle = b"tccbndl" in kept[0].read_bytes()
    program = ("import sys, numpy, tcc; k = tcc.jit(sys.argv[1], tiles=1); a = numpy.ones((64, 64), numpy.float16); "
               "print(k(a, a, numpy.ones(64, numpy.float32), 0.5)[0, 0])")
    said = subprocess.run([sys.executable, "-c", program, LAYER.format("f16", "f16") + "// assembled"], check=True,
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)), stdout=subprocess.PIPE, text=True)
    assert float(said.stdout) == 33, said.stdout
    return "with a cubin" if is_bundle else "there is no ptxas"


# ---- cupy ----------------------------------------------------------------------------------------


def of_cupy(arguments):
    import cupy

    return [cupy.asarray(x.cpu().numpy()) if isinstance(x, torch.Tensor) else x for x in arguments]


def check_cupy(c, arguments):
    import cupy

    assert type(c) is cupy.ndarray and c.dtype == cupy.float16, type(c)
    cupy.cuda.Device().synchronize()
    return check_close(torch.from_numpy(cupy.asnumpy(c)).to(device), layer_in_doubles(*arguments))


@check("cupy: inputs, and outputs that are cupy's", gpu=True, needs="cupy")
def cupy_arrays():
    import cupy

    layer = tcc.jit(LAYER.format("f16", "f16"))
    arguments = layer_arguments(300, 128, 72)
    given = of_cupy(arguments)
    out = cupy.full((300, 72), cupy.nan, cupy.float16)
    assert layer(*given, out=out) is out
    check_cupy(out, arguments)
    c = layer(*given)
    assert c.data.mem.device_id == given[0].data.mem.device_id
    note = check_cupy(c, arguments)
    assert bool((c == out).all())
    offset = cupy.zeros(300 * 128 + 3, cupy.float16)[3:].reshape(300, 128)
    offset[...] = given[0]
    check_cupy(layer(offset, *given[1:]), arguments)
    mixed = layer(arguments[0], given[1], arguments[2], arguments[3])  # the first one's library makes the output
    assert isinstance(mixed, torch.Tensor) and mixed.is_cuda
    try:
        layer(cupy.asfortranarray(given[0]), *given[1:])
    except tcc.ArgumentError:
        return note
    raise AssertionError("it was taken")


def late_in_cupy(launch):
    """As ``late``, on a stream of cupy's."""
    import cupy

    layer = tcc.jit(LAYER.format("f16", "f16"))
    arguments = layer_arguments(512, 512, 512)
    a, b, bias, alpha = of_cupy(arguments)
    stale, out = cupy.zeros_like(a), cupy.full((512, 512), cupy.nan, cupy.float16)
    layer(stale, b, bias, alpha, out=out)  # the code is loaded
    cupy.cuda.Device().synchronize()
    stream = cupy.cuda.Stream(non_blocking=True)
    with torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
        torch.cuda._sleep(CYCLES)
    with stream:
        stale[...] = a
    launch(lambda **how: layer(stale, b, bias, alpha, out=out, **how), stream)
    return check_cupy(out, arguments)


@check("cupy: its current stream", gpu=True, needs="cupy")
def cupy_current_stream():
    def launch(call, stream):
        with stream:
            call()

    return late_in_cupy(launch)


@check("cupy: stream= a cupy.cuda.Stream", gpu=True, needs="cupy")
def cupy_stream():
    return late_in_cupy(lambda call, stream: call(stream=stream))


# ---- jax -----------------------------------------------------------------------------------------


def of_jax(arguments):
    import jax

    gpu = jax.devices("gpu")[0]
    return [jax.device_put(x.cpu().numpy(), gpu) if isinstance(x, torch.Tensor) else x for x in arguments]


def check_jax(c, arguments):
    import jax

    assert isinstance(c, jax.Array) and {d.platform for d in c.devices()} == {"gpu"}, c.devices()
    return check_close(torch.tensor(jax.device_get(c), device=device), layer_in_doubles(*arguments))


@check("jax: outputs that are jax's, on the GPU", gpu=True, needs="jax")
def jax_arrays():
    import jax

    layer = tcc.jit(LAYER.format("f16", "f16"))
    arguments = layer_arguments(300, 128, 72)
    c = layer(*of_jax(arguments))
    assert c.dtype == jax.numpy.float16 and c.shape == (300, 72)
    note = check_jax(c, arguments)
    double = jax.jit(lambda x: x.astype(jax.numpy.float32) * 2)(c)
    check_close(torch.tensor(jax.device_get(double), device=device), 2 * layer_in_doubles(*arguments))
    again = layer(*of_jax(arguments))
    assert bool((again == c).all()), "a second launch gives another result"
    return note


@check("jax: inputs that are late, and dropped at once", gpu=True, needs="jax")
def jax_streams():
    import jax

    layer = tcc.jit(LAYER.format("f16", "f16"))
    arguments = layer_arguments(512, 512, 512)
    a, b, bias, alpha = of_jax(arguments)
    large = jax.random.normal(jax.random.key(0), (4096, 4096), jax.numpy.float32) / 64

    @jax.jit
    def late_copy(x, turn):
        product = jax.lax.fori_loop(0, 10, lambda _, y: jax.numpy.tanh(y @ large), large + turn)
        return x + (0 * product[0, 0]).astype(x.dtype)

    for turn in range(10):
        c = layer(late_copy(a, turn), b, bias, alpha)
        others = [jax.numpy.full_like(a, jax.numpy.nan) + turn for _ in range(4)]  # in what was given back
        note = check_jax(c, arguments)
    del others
    return note


@check("jax: the memory of outputs goes back", gpu=True, needs="jax")
def jax_memory():
    copy = tcc.jit("kernel twice(A: f32[M, N]) -> (B: f32[M, N]) { B[m, n] = A[m, n] + A[m, n]; }")
    a, = of_jax([torch.ones(4096, 4096)])
    assert float(copy(a)[7, 7]) == 2
    gc.collect()
    free = torch.cuda.mem_get_info()[0]
    for _ in range(50):
        b = copy(a)
    assert float(copy(b)[4095, 4095]) == 4
    del b
    gc.collect()
    lost = free - torch.cuda.mem_get_info()[0]
    assert lost <= 2 * 4096 * 4096 * 4, f"{lost} bytes are lost"
    return f"{max(lost, 0)} of {50 * 4096 * 4096 * 4} bytes"


# ---- times ---------------------------------------------------------------------------------------

@check("time to the first result of a process", gpu=True)
def times_of_processes():
    script = pathlib.Path(__file__).with_name("first_result.py")
    said = subprocess.run([sys.executable, script, "--processes=5"], stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))).stdout
    return "; ".join(" ".join(row.split()) for row in said.splitlines()
                     if row.startswith(("ms", "import", "jit and", "in all")))


def seconds_of(function):
    """What measures so many calls of a function, all arguments of which it has."""

    def seconds(calls):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        return time.perf_counter() - begin

    return seconds


def us_in_turn(*contenders, calls=500, rounds=40):
    """us of one call of each, which tells the seconds of so many calls: the least of rounds in which each has its turn,
    so that a slow while of the host is one of all. Of so few calls none waits for the GPU."""
    best = [float("inf")] * len(contenders)
    for _ in range(rounds):
        for i, seconds in enumerate(contenders):
            torch.cuda.synchronize()
            best[i] = min(best[i], 1e6 * seconds(calls) / calls)
    torch.cuda.synchronize()
    return best


@check("bench, in turn with torch's product", gpu=True)
def bench():
    product = tcc.jit("kernel product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }")
    a, b = random(4096, 4096), random(4096, 4096, seed=2)
    before = a.clone()
    measured = product.bench(a, b, against={"torch": lambda: a @ b})
    assert torch.equal(a, before)
    assert 0 < measured.us < 1e5 and 0.1 < measured.ratio("torch") < 10, str(measured)
    return f"{measured.us:.1f} us, {measured.tflops:.0f} TFLOP/s, torch {measured.ratio('torch'):.3f} times that"


@check("a timeline, measured", gpu=True)
def timeline():
    product = tcc.jit("kernel product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }")
    a, b = random(1024, 2048), random(2048, 1024, seed=2)
    out, memory = poisoned(1024, 1024)
    measured = product.timeline(a, b, out=out, cta=3)
    check_close(out, a.double() @ b.double())
    check_guards(memory)
    waits = [e for e in measured.events if e.get("cat") == "wait"]
    assert measured.summary.startswith("CTA 3: ") and all(e["dur"] > 0 for e in waits), str(measured)
    assert any(e["name"].startswith("wait until stage 0 is full") for e in waits), str(measured)
    return str(measured)


@check("tune, and what is known in a later process", gpu=True)
def tune():
    product = tcc.jit("kernel product(A: f16[M, K], B: f16[K, N]) -> (C: f16[M, N]) { C[m, n] = sum(k) A[m, k] * B[k, n]; }")
    a, b = random(1000, 1024), random(1024, 2048, seed=2)
    steps = []
    assert product.tuned(a, b) is product
    tuned = product.tune(a, b, seconds=20, progress=steps.append)
    note = check_close(tuned.kernel(a, b), a.double() @ b.double())
    assert steps and tuned.progress.measured > 10 and tuned.progress.wrong == 0, str(tuned)
    assert tuned.ratio > 0.95, str(tuned)
    check_close(product.tuned(a, b)(a, b), a.double() @ b.double())
    again = product.tune(a, b, seconds=3)
    assert again.progress.known >= tuned.progress.measured
    return f"{tuned.us:.1f} us, {tuned.ratio:.3f} times as fast, {tuned.progress.measured} measured; {note}"


OVER_C_US = 5  # what a call may take beyond the launch in C
OVER_C_YARDSTICKS = 4  # the same on a host slower than those of H200s: in calls of torch that make a small tensor


@check(f"time of a launch on the host, at most {OVER_C_US} us over the C call", gpu=True)
def time_of_launch():
    layer = tcc.jit(LAYER.format("f16", "f16"))
    a, b, bias, alpha = layer_arguments(16, 64, 16)
    out, _ = poisoned(16, 16)
    on_host = torch.empty(16, 16)

    def with_out():
        layer(a, b, bias, alpha, out=out)

    def new():
        layer(a, b, bias, alpha)

    def by_name():
        layer(A=a, B=b, bias=bias, alpha=alpha, out=out)

    def empty():
        a.new_empty((16, 16), dtype=torch.float16)

    def yardstick():
        on_host.new_empty((16, 16), dtype=torch.float16)

    with_out()
    contenders = [seconds_of(function) for function in (with_out, new, by_name, empty, yardstick)]
    if layer._quick is None:
        us, us_new = us_in_turn(*contenders[:2])
        return f"there is no extension: with out= {us:.2f} us, with a new output {us_new:.2f} us"
    us, us_new, us_named, us_empty, us_yardstick, in_c = us_in_turn(
        *contenders, lambda calls: layer._quick.seconds((a, b, bias, alpha), out, None, calls))
    limit = max(OVER_C_US, OVER_C_YARDSTICKS * us_yardstick)
    note = (f"in C {in_c:.2f} us, with out= {us:.2f}, by name {us_named:.2f}, with a new output {us_new:.2f} us, "
            f"of which new_empty {us_empty:.2f}; limit {limit:.2f} us over C")
    assert us <= in_c + limit and us_new <= in_c + limit + us_empty, note
    return note


# --------------------------------------------------------------------------------------------------


HANGS_S = 120  # a check that takes longer ends the script, with where it is


def main():
    name = "the interpreter" if options.cpu else torch.cuda.get_device_name()
    others = [m for m in ("cupy", "jax") if importlib.util.find_spec(m) and not options.cpu]
    print(", ".join([f"tcc {tcc.__version__}", f"torch {torch.__version__}", *others, name]))
    failed = 0
    for title, function in checks:
        faulthandler.dump_traceback_later(HANGS_S, exit=True)
        try:
            note = function() or ""
            print(f"ok   {title:56} {note}", flush=True)
        except Exception as error:
            failed += 1
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(f"FAIL {title:56} {type(error).__name__}: {error} (line {where.lineno})", flush=True)
    faulthandler.cancel_dump_traceback_later()
    print(f"{len(checks) - failed} passed, {failed} failed")
    return failed != 0


sys.exit(main())

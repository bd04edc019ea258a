# SPDX-License-Identifier: Apache-2.0
"""What runs calls and times them: the GPU that the inputs lie on, or the CPU.

A machine's `time(work)` runs the work once and gives its time in seconds; `captured(work)` makes a graph of
it, or raises. `Timed` is what a sample is taken of.
"""

import contextlib
import gc
import platform
import sys
import time

from . import arrays, driver, program


def machine_of(inputs):
    """The one that has the inputs."""
    if jax := [array for array in arrays.leaves(inputs) if arrays.library(array) == "jax"]:
        return Jax(jax[0])
    gpu = [array for array in arrays.leaves(inputs) if arrays.on_gpu(array)]
    if not gpu:
        return Cpu()
    return (Torch if arrays.library(gpu[0]) == "torch" else CuPy)()


def versions():
    """Of what was imported so far."""
    found = {"python": platform.python_version()}
    for name in ("numpy", "torch", "triton", "cupy", "numba", "jax"):
        if name in sys.modules and hasattr(sys.modules[name], "__version__"):
            found[name] = sys.modules[name].__version__
    return found


class Cpu:
    on_gpu = False
    called = "by call"
    capture_refused = "a Python function on the CPU"

    def describe(self):
        return {"name": "CPU", "slug": "cpu", "uuid": "CPU", "compute_capability": "1.0", "sm_count": 1,
                "l2_bytes": 1 << 20, "memory_bytes": 1 << 30, "driver": "none", "cuda_runtime": "none",
                "ecc": None, "max_sm_clock_mhz": None, "max_memory_clock_mhz": None, "power_limit_w": None}

    def on(self):
        return contextlib.nullcontext()

    def wait(self):
        pass

    def free(self):
        pass

    def time(self, work):
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin

    def call_nothing(self):
        pass

    def read_sensors(self):
        return {"sm_mhz": None, "temp_c": None, "power_w": None, "throttle": None}


class Gpu:
    """What both libraries share."""
    on_gpu = True
    called = "by stream"
    capture_refused = ""

    def __init__(self):
        self.driver = driver.Driver()

    def open(self):
        """Once there is a context."""
        self.driver.load_empty_kernel()
        gpu = program.module("ablations/subjects/sdpa/peers/peer_gpu.py")
        self.read_sensors = gpu.Sensors(self.describe()["uuid"]).read

    def call_nothing(self):
        self.driver.call_nothing(self.stream())

    def time(self, work):
        begin, end = self.event(), self.event()
        # The untimed round keeps the GPU busy while the timed one is queued.
        work()
        self.record(begin)
        work()
        self.record(end)
        return self.between(begin, end)


class Torch(Gpu):
    _failed = []  # graphs, until the process ends

    def __init__(self):
        super().__init__()
        import torch
        self.torch = torch
    def describe(self):
        return self.driver.describe(self.torch.cuda.current_device(), str(self.torch.version.cuda))

    def on(self):
        return contextlib.nullcontext()

    def stream(self):
        return self.torch.cuda.current_stream().cuda_stream

    def wait(self):
        self.torch.cuda.synchronize()

    def free(self):
        """What is held in reserve: other processes need it."""
        gc.collect()
        self.torch.cuda.empty_cache()

    def event(self):
        return self.torch.cuda.Event(enable_timing=True)

    def record(self, event):
        event.record()

    def between(self, begin, end):
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end)

    def captured(self, work):
        """(what replays it, what the work gives, the graph's handle)"""
        torch = self.torch
        before, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(before)
        with torch.cuda.stream(side):  # as PyTorch asks before a capture
            work()
        before.wait_stream(side)
        keeps = hasattr(torch.cuda.CUDAGraph, "raw_cuda_graph")  # since 2.8
        graph = torch.cuda.CUDAGraph(keep_graph=True) if keeps else torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                outputs = work()
        except Exception:
            # A capture that failed leaves its stream current, the allocator asking the graph whose
            # memory it is, and the generator of random numbers as if it went on.
            self._failed.append(graph)
            torch.cuda.set_stream(before)
            fresh = torch.Generator(device="cuda").graphsafe_get_state()
            torch.cuda.default_generators[torch.cuda.current_device()].graphsafe_set_state(fresh)
            gc.collect()
            torch.cuda.synchronize()
            raise
        return graph.replay, outputs, graph.raw_cuda_graph() if keeps else None


class CuPy(Gpu):
    def __init__(self):
        super().__init__()
        import cupy
        self.cupy = cupy
        self._stream = cupy.cuda.Stream(non_blocking=True)

    def describe(self):
        runtime = self.cupy.cuda.runtime.runtimeGetVersion()
        return self.driver.describe(self.cupy.cuda.Device().id, f"{runtime // 1000}.{runtime % 1000 // 10}")

    def on(self):
        return self._stream

    def stream(self):
        return self._stream.ptr

    def wait(self):
        self.cupy.cuda.Device().synchronize()

    def free(self):
        gc.collect()
        self.cupy.get_default_memory_pool().free_all_blocks()

    def event(self):
        return self.cupy.cuda.Event()

    def record(self, event):
        event.record(self._stream)

    def between(self, begin, end):
        end.synchronize()
        return 1e-3 * self.cupy.cuda.get_elapsed_time(begin, end)

    def captured(self, work):
        # Memory of its own: nobody else may get what the graph writes to.
        pool = self.cupy.cuda.MemoryPool()
        with self.cupy.cuda.using_allocator(pool.malloc):
            work()  # what a capture can't do: allocate
            self._stream.synchronize()
            self._stream.begin_capture()
            try:
                outputs = work()
            finally:
                graph = self._stream.end_capture()
        return (lambda: (pool, graph.launch(self._stream))), outputs, getattr(graph, "graph", None)


class Jax(Cpu):
    """On a GPU or on the CPU: calls, and the wait until all of them are done, by the host's clock."""
    capture_refused = "JAX launches on streams of its own"

    def __init__(self, array):
        import jax
        self.jax = jax
        self.on_gpu = arrays.on_gpu(array)
        self.device = next(iter(array.devices()))

    def describe(self):
        if not self.on_gpu:
            return super().describe()
        return driver.Driver().describe(self.device.local_hardware_id or 0, "")

    def open(self):
        gpu = program.module("ablations/subjects/sdpa/peers/peer_gpu.py")
        self.read_sensors = gpu.Sensors(self.describe()["uuid"]).read

    def free(self):
        gc.collect()

    def time(self, work):
        begin = time.perf_counter()
        self.jax.block_until_ready(work())
        return time.perf_counter() - begin


class Timed:
    """Calls of one arm in a row, each set of inputs equally often. `call(set)` is one call."""

    def __init__(self, machine, call, sets, launches, capture=True):
        self.machine, self.launches = machine, launches
        self._call, self._sets = call, sets
        self.why_not_captured = machine.capture_refused
        self.outputs = [None] * sets
        self.lines = [machine.called, self.why_not_captured]
        self.run = self._call_each
        if not capture or self.why_not_captured:
            return
        try:
            self.run, self.outputs, graph = machine.captured(self._calls)
        except Exception as error:  # the callable's own: it may do what no capture allows
            self.release(told(error))
            return
        try:
            self.lines = ["by graph", *machine.driver.call_lines(graph, launches)]
        except (RuntimeError, AttributeError) as error:  # a driver of before
            self.lines = ["by graph", f"its nodes can't be read: {error}"]

    def release(self, why):
        """Calls one by one from now on."""
        self.run, self.outputs, self.why_not_captured = self._call_each, [None] * self._sets, why
        self.lines = [self.machine.called, f"not captured: {why}"[:300]]

    def _call_each(self):
        self.outputs = self._calls()
        return self.outputs

    def _calls(self):
        """The last output of each set."""
        outputs = [None] * self._sets
        for i in range(self.launches):
            outputs[i % self._sets] = self._call(i % self._sets)
        return outputs

    def us(self):
        return 1e6 * self.machine.time(self.run) / self.launches


def told(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())}"

# SPDX-License-Identifier: Apache-2.0
"""A peer on a shape: its inputs, its graph, its check and its times. PyTorch's own backends.

An Arm is made of a shape's inputs by `prepare()`; what differs between peers is in its subclasses.
"""

import importlib.util
import itertools
import math
import pathlib
import re
import time
import warnings

from peer_gpu import ClockProbe, EnergyWindow, Sensors, Stay, WatchedWindow
from peer_rules import (DTYPES, Refused, choose_launches, cudnn_text, input_seed, judge, least_launches,
                        refusal_reason)

DRIVER = pathlib.Path(__file__).resolve().parents[2] / "python/warpledger/driver.py"


class TorchBench:
    """Everything that needs PyTorch and a GPU."""

    def __init__(self, torch, request):
        # Imported here, so that a broken PyTorch is one reported line.
        from torch.nn.attention import SDPBackend, sdpa_kernel
        self.torch = torch
        self.request = request
        self.backends = SDPBackend
        self.sdpa_kernel = sdpa_kernel
        # The naive result is a yardstick: it must not be loosened by sums in 16 bits.
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
        torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
        uuid = str(getattr(torch.cuda.get_device_properties(0), "uuid", ""))
        self.sensors = Sensors(uuid if uuid.startswith("GPU-") else f"GPU-{uuid}")
        self.read_sensors = self.sensors.read
        self.clock = ClockProbe(torch) if request["alone"] is not None else None
        self._libraries = {}

    def library(self, peer):
        """What the peer loads, once. Raises Refused."""
        if peer not in self._libraries:
            self._libraries[peer] = peer.load(self.torch)
        return self._libraries[peer]

    def version(self, peer):
        return ", ".join([f"torch {self.torch.__version__}", *peer.versions(self.torch)])

    def call_lines(self, graph, launches):
        """How calls are launched, and what each of them launches: a line of calls.jsonl."""
        try:
            spec = importlib.util.spec_from_file_location("warpledger_driver", DRIVER)
            driver = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(driver)
            return ["by graph", *driver.Driver().call_lines(graph, launches)]
        except (OSError, RuntimeError, AttributeError) as error:  # no driver, or one of before
            return ["by graph", f"its nodes can't be read: {error}"]

    def shape(self, shape):
        return ShapeInputs(self, shape)


def softmax_scale(shape):
    return 1.0 / math.sqrt(shape["head_dim"])


def with_hidden(scores, hidden):
    return scores if hidden is None else scores.masked_fill(hidden, -math.inf)


def by_heads(torch, shape, q, k, v, naive_of):
    """The output in fp64, and what `naive_of(q, k, v, hidden)` makes of each head.

    hidden: (rows, keys), true where a row does not see a key; None: each row sees all.
    """
    group, scale = shape["heads_q"] // shape["heads_kv"], softmax_scale(shape)
    hidden = None
    if shape["causal"]:  # aligned to the bottom right
        hidden = torch.ones((shape["seq_q"], shape["seq_kv"]), dtype=torch.bool, device="cuda").triu(
            1 + shape["seq_kv"] - shape["seq_q"])
    reference = torch.empty(q.shape, dtype=torch.float64, device="cuda")
    naive = torch.empty(q.shape, dtype=torch.float32, device="cuda")
    # Head by head: the fp64 scores of all heads at once can exceed the memory.
    for b in range(shape["batch"]):
        for h in range(shape["heads_q"]):
            qh, kh, vh = q[b, h], k[b, h // group], v[b, h // group]
            scores = with_hidden((qh.double() @ kh.double().T) * scale, hidden)
            reference[b, h] = torch.softmax(scores, dim=-1) @ vh.double()
            naive[b, h] = naive_of(qh, kh, vh, hidden)
    return reference, naive


def naive_errors(reference, naive):
    """What judge() needs of a reference."""
    error = (naive.double() - reference).abs()
    return {"naive_max_err": error.max().item(), "naive_mean_err": error.mean().item(),
            "max_ref": reference.abs().max().item()}


class ShapeInputs:
    """The rotating input sets of a shape, with their references.

    Made at the first use: a shape that no peer is asked for costs nothing.
    """

    def __init__(self, bench, shape):
        self.bench = bench
        self.torch = bench.torch
        self.shape = shape
        self.sets = []        # (q, k, v) of each set
        self.references = []  # (fp64 output, errors of the naive formula)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sets, self.references = [], []
        self.torch.cuda.empty_cache()

    def prepare(self, peer):
        """The peer captured into a graph, and checked. Raises Refused."""
        if reason := peer.why_not(self.shape):
            raise Refused(reason)
        library = self.bench.library(peer)
        with warnings.catch_warnings(record=True) as caught, self.torch.no_grad():
            warnings.simplefilter("always")
            try:
                if not self.sets:
                    self._make_sets()
                return peer(self, library)
            except Refused:
                raise
            except Exception as error:  # compilers have errors of their own
                reason = refusal_reason(peer.WORDS, [w.message for w in caught], error)
        # After the except clause: its traceback would keep a graph's memory alive.
        raise Refused(reason)

    def _make_sets(self):
        torch, s, request = self.torch, self.shape, self.bench.request
        generator = torch.Generator(device="cuda")
        dtype = getattr(torch, DTYPES[s["dtype"]][0])
        generator.manual_seed(input_seed(request["seed"], request["process"], s["name"]))

        def normal(heads, rows):
            return torch.randn((s["batch"], heads, rows, s["head_dim"]), generator=generator,
                               device="cuda", dtype=torch.float32).to(dtype)

        sets = [(normal(s["heads_q"], s["seq_q"]), normal(s["heads_kv"], s["seq_kv"]),
                 normal(s["heads_kv"], s["seq_kv"])) for _ in range(request["input_sets"])]
        self.references = [self._reference(*tensors) for tensors in sets]
        while len(sets) < s["rotation"]:
            sets.append(tuple(tensor.clone() for tensor in sets[len(sets) % request["input_sets"]]))
        self.sets = sets  # last: only a complete shape counts as made

    def _reference(self, q, k, v):
        """The output in fp64, and how far the naive formula in the dtype is from it."""
        torch, scale = self.torch, softmax_scale(self.shape)

        def naive_of(q, k, v, hidden):
            scores = with_hidden((q @ k.T) * scale, hidden)
            return torch.softmax(scores.float(), dim=-1).to(q.dtype) @ v

        reference, naive = by_heads(torch, self.shape, q, k, v, naive_of)
        return reference, naive_errors(reference, naive)


class ArmStream:
    """What Stay needs, of the current stream and one graph."""

    def __init__(self, torch, graph, clock):
        self._torch, self._graph, self._clock = torch, graph, clock
        self._events = {}

    def submit(self):
        self._graph.replay()

    def record(self, event):
        if event not in self._events:
            self._events[event] = self._torch.cuda.Event(enable_timing=True)
        self._events[event].record()

    def wait(self, event):
        self._events[event].synchronize()

    def is_past(self, event):
        return self._events[event].query()

    def ms_between(self, start, end):
        return self._events[start].elapsed_time(self._events[end])

    def stamp(self, which):
        self._clock.stamp(which)

    def now(self):
        return time.monotonic()


class Arm:
    """One peer on one shape, as a CUDA graph of `launches` calls."""

    WORDS = ""  # with which PyTorch's refusals speak of it
    LAUNCHES = ""  # regex that a line of its launches matches, where another one would mean another peer
    MASK_ENDS = False  # whether its causal mask is aligned to the bottom right, as ours is

    @classmethod
    def load(cls, torch):
        """What calls need beyond PyTorch. Raises Refused, which says how to get it."""

    @classmethod
    def versions(cls, torch):
        """Of what is loaded beyond PyTorch."""
        return []

    @classmethod
    def why_not(cls, shape):
        """Why it can't be asked for this shape, or ""."""
        if not shape["causal"] or shape["seq_q"] == shape["seq_kv"]:
            return ""
        if not cls.MASK_ENDS:
            return ("it aligns the causal mask to the top left, ours is aligned to the bottom right: not the "
                    "same problem")
        return "" if shape["seq_q"] < shape["seq_kv"] else "its first rows see no key"

    def __init__(self, inputs, library):
        self.torch = inputs.torch
        self.library = library
        self.shape = inputs.shape
        self._inputs = inputs
        self.begin()
        self._sets = self.lay_out()
        self._warm_up()
        self.launches = least_launches(inputs.bench.request, len(inputs.sets))
        self._capture()
        self.time()
        self.launches = choose_launches(self.time(), inputs.bench.request, len(inputs.sets))
        self._capture()
        self.check = self._check()
        self.lines = self._lines()

    def begin(self):
        """Before the first call."""

    def lay_out(self):
        """The arguments of attend() for each input set; made beforehand, untimed."""
        return [tuple(self.laid_out(tensor) for tensor in tensors) for tensors in self._inputs.sets]

    def laid_out(self, tensor):
        """A tensor (batch, heads, rows, head_dim) as the peer takes it; made beforehand, untimed."""
        return tensor

    def attend(self, q, k, v):
        """One call, of tensors as they were laid out."""
        raise NotImplementedError

    def references(self):
        """As ShapeInputs has them."""
        return self._inputs.references

    def as_heads(self, output):
        """What a call gives as the reference lies: (batch, heads, rows, head_dim)."""
        return output

    def judged(self, errors):
        return judge(self.shape["name"], errors, self.shape["dtype"])

    def time(self):
        """Microseconds per launch, of one replay."""
        start = self.torch.cuda.Event(enable_timing=True)
        end = self.torch.cuda.Event(enable_timing=True)
        # The untimed replay keeps the GPU busy while the timed one is queued, so
        # that the host's launch latency stays out of the time.
        self._graph.replay()
        start.record()
        self._graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1000.0 / self.launches

    def stay(self, plan):
        """Replays without a pause; what a sample says of the window that is timed."""
        bench, sensors = self._inputs.bench, {}
        stream = ArmStream(self.torch, self._graph, bench.clock)
        replay_s = 1e-6 * self.time() * self.launches
        energy = EnergyWindow(plan, bench.sensors.joules)
        # NVML is the other thread's until the window is stopped.
        window = WatchedWindow(energy, lambda: sensors.update(bench.read_sensors()))
        try:
            timed = Stay(stream, replay_s, self.launches).on(window.next)
        finally:
            window.stop()
        self.torch.cuda.synchronize()
        return {**sensors, **timed, "sm_mhz": bench.clock.mhz(), **energy.energy()}

    def _calls(self, launches):
        """The last output of each input set, after `launches` calls."""
        outputs = [None] * len(self._sets)
        for i in range(launches):
            outputs[i % len(self._sets)] = self.attend(*self._sets[i % len(self._sets)])
        return outputs

    def _warm_up(self):
        # On a side stream, as PyTorch asks before a capture. A refusal comes here.
        stream = self.torch.cuda.Stream()
        stream.wait_stream(self.torch.cuda.current_stream())
        with self.torch.cuda.stream(stream):
            self._calls(len(self._sets))
        self.torch.cuda.current_stream().wait_stream(stream)
        self.torch.cuda.synchronize()

    def _capture(self):
        self._graph, self._outputs = None, None  # frees the memory of the graph before
        keeps = hasattr(self.torch.cuda.CUDAGraph, "raw_cuda_graph")  # since 2.8
        graph = self.torch.cuda.CUDAGraph(keep_graph=True) if keeps else self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            self._outputs = self._calls(self.launches)
        self._graph = graph

    def _check(self):
        for output in self._outputs:
            output.fill_(math.nan)
        self._graph.replay()
        self.torch.cuda.synchronize()
        errors = []
        references = itertools.cycle(self.references())  # further sets are copies
        for output, (reference, naive) in zip(self._outputs, references):
            error = (self.as_heads(output).double() - reference).abs()
            errors.append({"max_err": error.max().item(), "mean_err": error.mean().item(), **naive})
        return self.judged(errors)

    def _lines(self):
        """What a call launches. Raises Refused where that is not the peer."""
        raw = getattr(self._graph, "raw_cuda_graph", lambda: None)()
        lines = self._inputs.bench.call_lines(raw, self.launches)
        kernels = [line for line in lines if line.startswith("kernel ")]
        if kernels and not any(re.search(self.LAUNCHES, line) for line in kernels):
            raise Refused(f"it launches no kernel that matches {self.LAUNCHES!r}, but {kernels[0][:100]}")
        return lines


class SdpaArm(Arm):
    """One backend of PyTorch's scaled_dot_product_attention()."""

    BACKEND = ""  # torch.nn.attention.SDPBackend's name

    def begin(self):
        bench = self._inputs.bench
        self._backend = getattr(bench.backends, self.BACKEND, None)
        if self._backend is None:
            raise Refused(f"torch {self.torch.__version__} has no backend {self.BACKEND}")

    def attend(self, q, k, v):
        options = {"is_causal": self.shape["causal"]}
        if self.shape["heads_q"] != self.shape["heads_kv"]:
            options["enable_gqa"] = True
        with self._inputs.bench.sdpa_kernel([self._backend]):
            return self.torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)


class Flash(SdpaArm):
    """FlashAttention-2."""
    BACKEND, WORDS = "FLASH_ATTENTION", "flash attention"


class CuDnn(SdpaArm):
    BACKEND, WORDS = "CUDNN_ATTENTION", "cudnn attention"

    @classmethod
    def versions(cls, torch):
        version = torch.backends.cudnn.version()
        return [cudnn_text(version)] if version else []


class Efficient(SdpaArm):
    """xFormers'."""
    BACKEND, WORDS = "EFFICIENT_ATTENTION", "memory efficient"


class Math(SdpaArm):
    BACKEND, WORDS = "MATH", "math"

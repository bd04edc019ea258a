# SPDX-License-Identifier: Apache-2.0
"""ablations/subjects/sdpa/peers: whole runs, on a PyTorch made of NumPy."""

import contextlib
import math
import os
import types
import unittest
import warnings
from unittest import mock

import numpy

from fixture import FolderTest
from peers_request import SHAPE, peer_arms, peer_gpu, peer_libraries, peer_rules, peers, request

SDPA_BACKENDS = ("FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH")

# --- A PyTorch of NumPy arrays, with CUDA graphs that replay recorded calls ----


class Tensor:
    def __init__(self, array):
        self.array = numpy.asarray(array)

    @property
    def shape(self):
        return self.array.shape

    @property
    def T(self):
        return Tensor(self.array.T)

    def _cast(self, dtype):
        return Tensor(self.array.astype(dtype))

    def double(self):
        return self._cast(numpy.float64)

    def float(self):
        return self._cast(numpy.float32)

    def to(self, dtype):
        return self._cast(dtype)

    @property
    def dtype(self):
        return self.array.dtype

    def __getitem__(self, key):
        return Tensor(self.array[key])

    def __setitem__(self, key, value):
        self.array[key] = value.array

    def __matmul__(self, other):
        # fp16 operands with wider sums, rounded once: what tensor cores do.
        product = self.array.astype(numpy.float64) @ other.array.astype(numpy.float64)
        return Tensor(product.astype(self.array.dtype))

    def __mul__(self, scale):
        return Tensor((self.array * scale).astype(self.array.dtype))

    def __sub__(self, other):
        return Tensor(self.array - other.array)

    def masked_fill(self, mask, value):
        return Tensor(numpy.where(mask.array, value, self.array).astype(self.array.dtype))

    def triu(self, diagonal):
        return Tensor(numpy.triu(self.array, diagonal))

    def abs(self):
        return Tensor(abs(self.array))

    def max(self):
        return Tensor(self.array.max())

    def mean(self):
        return Tensor(self.array.mean())

    def item(self):
        return self.array.item()

    def fill_(self, value):
        self.array[...] = value

    def transpose(self, a, b):
        return Tensor(self.array.swapaxes(a, b))

    def contiguous(self):
        return Tensor(numpy.ascontiguousarray(self.array))

    def reshape(self, *sizes):
        return Tensor(self.array.reshape(sizes))


def softmax(tensor, dim):
    shifted = numpy.exp(tensor.array - tensor.array.max(axis=dim, keepdims=True))
    return Tensor((shifted / shifted.sum(axis=dim, keepdims=True)).astype(tensor.array.dtype))


def plain_attention(q, k, v, is_causal, shift=0):
    """Written another way than the reference under test: loops over rows. A row sees `shift` more keys
    than those before it."""
    out = numpy.empty(q.shape, numpy.float16)
    group = q.shape[1] // k.shape[1]
    for b, h, i in numpy.ndindex(*q.shape[:3]):
        keys, values = (t[b, h // group].astype(numpy.float64) for t in (k, v))
        if is_causal:
            keys, values = keys[:i + 1 + shift], values[:i + 1 + shift]
        weights = numpy.exp(keys @ q[b, h, i].astype(numpy.float64) / math.sqrt(q.shape[3]))
        out[b, h, i] = weights @ values / weights.sum()
    return out


class Graph:
    def __init__(self):
        self.calls = []

    def replay(self):
        for call in self.calls:
            call()


class FakeTorch(types.SimpleNamespace):
    """`attend` is the backend; `refusals` maps a backend to its warnings and error."""

    def __init__(self, attend=plain_attention, refusals=None, us_per_call=10.0):
        self.attend, self.refusals, self.us_per_call = attend, refusals or {}, us_per_call
        self.capturing, self.backend, self.gqa = None, None, []
        self.clock_us = 0.0
        torch = self
        super().__init__(
            __version__="2.11.0+cu130", float64=numpy.float64, float32=numpy.float32,
            float16=numpy.float16, bfloat16=numpy.float32,  # NumPy has no bf16: a wider stand-in
            bool=numpy.bool_, no_grad=contextlib.nullcontext, softmax=softmax,
            Generator=lambda device: types.SimpleNamespace(manual_seed=self._seed),
            randn=lambda shape, generator, device, dtype: Tensor(
                self.random.standard_normal(shape).astype(dtype)),
            ones=lambda shape, dtype, device: Tensor(numpy.ones(shape, dtype)),
            empty=lambda shape, dtype, device: Tensor(numpy.full(shape, numpy.nan, dtype)),
            empty_like=lambda like: Tensor(numpy.full_like(like.array, numpy.nan)),
            nn=types.SimpleNamespace(functional=types.SimpleNamespace(
                scaled_dot_product_attention=self._sdpa)),
            backends=types.SimpleNamespace(
                cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()),
                cudnn=types.SimpleNamespace(version=lambda: 91900)),
            cuda=types.SimpleNamespace(
                is_available=lambda: True, CUDAGraph=Graph, graph=self._capture,
                Stream=mock.MagicMock, stream=lambda stream: contextlib.nullcontext(),
                current_stream=mock.MagicMock, synchronize=lambda: None, empty_cache=lambda: None,
                get_device_properties=lambda i: types.SimpleNamespace(uuid="0-1"),
                Event=lambda enable_timing: Event(torch)))

    def _seed(self, seed):
        self.random = numpy.random.default_rng(seed)

    @contextlib.contextmanager
    def _capture(self, graph):
        self.capturing = graph
        yield
        self.capturing = None

    @contextlib.contextmanager
    def sdpa_kernel(self, backends):
        self.backend, = backends
        yield
        self.backend = None

    def _sdpa(self, q, k, v, is_causal, enable_gqa=False):
        self.gqa.append(enable_gqa)
        if self.backend in self.refusals:
            messages, error = self.refusals[self.backend]
            for message in messages:
                warnings.warn(message, stacklevel=1)
            raise error
        return self.launched(q.shape, lambda: self.attend(q.array, k.array, v.array, is_causal))

    def launched(self, shape, computed):
        """The output of a call, which is computed now or in each replay."""
        out = Tensor(numpy.zeros(shape, numpy.float16))

        def compute():
            self.clock_us += self.us_per_call
            out.array[...] = computed()

        if self.capturing is not None:
            self.capturing.calls.append(compute)
        else:
            compute()
        return out


class Event:
    def __init__(self, torch):
        self.torch = torch

    def record(self):
        self.at_us, self.waited = self.torch.clock_us, False

    def synchronize(self):
        self.waited = True

    def query(self):
        return self.waited  # the GPU is never ahead of the host

    def elapsed_time(self, end):
        return (end.at_us - self.at_us) / 1000.0


class Counter:
    """NVML's energy counter and a clock beside it, which moves with each reading."""

    def __init__(self, watts, step_s=0.1):
        self.watts, self.step_s, self.now_s = watts, step_s, 0.0

    def monotonic(self):
        self.now_s += 0.0005
        return self.now_s

    def joules(self):
        return self.watts * self.step_s * (self.now_s // self.step_s)


def visits_on(torch, wanted, counter):
    """As run_on(), where an energy counter and a clock of the SMs can be read."""
    probe = mock.Mock(**{"mhz.return_value": 1500.5})

    class Asked:
        """In place of a thread, which would move the clock whenever it runs."""

        def __init__(self, window, at_end):
            self.next, self.stop = window.next, at_end
    with (mock.patch.object(peer_arms, "WatchedWindow", Asked),
          mock.patch.object(peer_gpu.time, "monotonic", counter.monotonic),
          mock.patch.object(peer_gpu.Sensors, "joules", lambda self: counter.joules()),
          mock.patch.object(peer_arms, "ClockProbe", lambda torch: probe)):
        return run_on(torch, wanted)


def run_on(torch, wanted, warm_up_s=0.0, lines=None):
    """The lines of a run on a fake PyTorch: (peer objects, samples)."""
    attention = types.SimpleNamespace(
        sdpa_kernel=torch.sdpa_kernel,
        SDPBackend=types.SimpleNamespace(**{name: name for name in SDPA_BACKENDS}))
    lines = [] if lines is None else lines
    with mock.patch.dict("sys.modules", {"torch": torch, "torch.nn": torch.nn,
                                         "torch.nn.attention": attention}):
        with mock.patch.object(peer_gpu.ctypes, "CDLL", side_effect=OSError):
            bench, reason = peers.open_bench(wanted)
        assert bench is not None, reason
        # Each replay is computed when it is queued.
        with (mock.patch.object(peer_rules, "WARM_UP_S", warm_up_s),
              mock.patch.object(peer_gpu.Stay, "QUEUED_S", 0.002)):
            peers.run(wanted, bench, lines.append)
    return ([line["peer"] for line in lines if "peer" in line],
            [line for line in lines if "us" in line])


class RunTest(unittest.TestCase):
    def test_a_correct_backend_is_checked_and_timed_once_in_each_block(self):
        found, samples = run_on(FakeTorch(), request(peers=["flash", "math"]))
        self.assertEqual([p["name"] for p in found], ["peer:flash", "peer:math"])
        for peer in found:
            self.assertTrue(peer["available"])
            self.assertEqual(peer["reason"], "")
            self.assertTrue(peer["checks"][0]["correct"])
        self.assertEqual(len(samples), 3 * 2)
        for block in range(3):
            arms = [s["arm"] for s in samples if s["block"] == block]
            self.assertEqual(sorted(arms), ["peer:flash", "peer:math"])
            self.assertEqual([s["order"] for s in samples if s["block"] == block], [0, 1])

    def test_a_sample_has_the_records_fields_and_the_time_of_one_launch(self):
        _, samples = run_on(FakeTorch(us_per_call=10.0), request(peers=["math"], process=2))
        self.assertEqual(list(samples[0]),
                         ["seq", "process", "shape", "block", "order", "arm", "launches", "us",
                          "sm_mhz", "temp_c", "power_w", "throttle", "cache"])
        self.assertAlmostEqual(samples[0].pop("us"), 10.0)
        self.assertEqual(samples[0], {
            "seq": -1, "process": 2, "shape": "tiny", "block": 0, "order": 0, "arm": "peer:math",
            "launches": 100, "sm_mhz": None, "temp_c": None, "power_w": None, "throttle": None,
            "cache": "warm"})

    def test_the_causal_mask_and_grouped_heads_agree_with_the_reference(self):
        for changes in ({"causal": True, "seq_kv": 5}, {"heads_q": 6}):
            torch = FakeTorch()
            found, _ = run_on(torch, request(shapes=[{**SHAPE, **changes}], peers=["math"]))
            self.assertTrue(found[0]["checks"][0]["correct"], found)
            self.assertEqual(set(torch.gqa), {"heads_q" in changes})

    def test_a_bf16_shape_gets_bf16_tensors_and_bf16s_limits(self):
        seen = set()

        def remembers(q, k, v, is_causal):
            seen.add(q.dtype)
            return plain_attention(q, k, v, is_causal)
        found, _ = run_on(FakeTorch(remembers),
                          request(shapes=[{**SHAPE, "dtype": "bf16"}], peers=["math"]))
        self.assertEqual(seen, {numpy.dtype(numpy.float32)})  # the stand-in
        # The stand-in's naive error is next to nothing beside half a step of bf16.
        self.assertGreater(found[0]["checks"][0]["max_err_limit"], peer_rules.half_ulp(0.25, "bf16"))
        with self.assertRaisesRegex(peers.RequestError, "tiny: dtype is 'fp8', it must be fp16 or"):
            request(shapes=[{**SHAPE, "dtype": "fp8"}])

    def test_a_wrong_backend_is_reported_and_never_timed(self):
        def ignores_the_last_key(q, k, v, is_causal):
            return plain_attention(q, k[:, :, :-1], v[:, :, :-1], is_causal)
        found, samples = run_on(FakeTorch(ignores_the_last_key), request(peers=["math"]))
        self.assertTrue(found[0]["available"])
        self.assertFalse(found[0]["checks"][0]["correct"])
        self.assertEqual(found[0]["reason"], "tiny: incorrect, so not timed")
        self.assertEqual(samples, [])

    def test_an_output_that_the_graph_does_not_write_fails_the_check(self):
        class WritesNothingWhenReplayed(FakeTorch):
            def _capture(self, graph):
                graph.replay = lambda: None
                return super()._capture(graph)
        found, samples = run_on(WritesNothingWhenReplayed(), request(peers=["math"]))
        self.assertFalse(found[0]["checks"][0]["correct"])
        self.assertTrue(math.isnan(found[0]["checks"][0]["max_err"]))
        self.assertEqual(samples, [])

    def test_a_backend_that_refuses_leaves_the_others_running(self):
        refusals = {"FLASH_ATTENTION": (["Flash attention kernel not used because:", "No."],
                                        RuntimeError("No available kernel. Aborting execution."))}
        found, samples = run_on(FakeTorch(refusals=refusals), request(peers=["flash", "math"]))
        self.assertEqual((found[0]["available"], found[0]["reason"], found[0]["checks"]),
                         (False, "tiny: No.", []))
        self.assertTrue(found[1]["available"])
        self.assertEqual({s["arm"] for s in samples}, {"peer:math"})

    def test_a_mask_aligned_otherwise_is_skipped_with_its_reason(self):
        torch = FakeTorch()
        found, samples = run_on(torch, request(shapes=[{**SHAPE, "causal": True}],
                                               peers=["math"]))
        self.assertFalse(found[0]["available"])
        self.assertIn("bottom right", found[0]["reason"])
        self.assertEqual((samples, torch.gqa), ([], []))

    def test_inputs_are_the_same_for_the_same_seed_and_differ_between_processes(self):
        def errors(process):
            found, _ = run_on(FakeTorch(), request(peers=["math"], process=process))
            return found[0]["checks"][0]
        self.assertEqual(errors(0), errors(0))
        self.assertNotEqual(errors(0), errors(1))


ALONE = {"settle_s": 0.5, "window_s": 1}


class AloneTest(unittest.TestCase):
    def test_each_backend_is_visited_once_a_round_and_rounds_are_mirrors(self):
        def arms(process):
            _, samples = run_on(FakeTorch(), request(
                peers=["flash", "math", "cudnn"], blocks=2, process=process,
                alone={"settle_s": 0, "window_s": 0}))
            self.assertEqual([s["block"] for s in samples], [0, 0, 0, 1, 1, 1])
            self.assertEqual({s["of"] for s in samples}, {1})
            return [s["arm"] for s in samples]
        there_and_back = arms(0)
        self.assertEqual(there_and_back, there_and_back[::-1])
        self.assertEqual(len(set(there_and_back)), 3)

    def test_a_visit_holds_time_clock_and_joules_of_its_window(self):
        _, samples = visits_on(FakeTorch(us_per_call=250.0),
                               request(peers=["math"], blocks=1, alone=ALONE), Counter(watts=650))
        sample, = samples
        self.assertAlmostEqual(sample["us"], 250.0)
        self.assertEqual(sample["idle_share"], 0)
        self.assertEqual(sample["sm_mhz"], 1500.5)
        self.assertEqual(sample["launches"] % 4, 0)
        self.assertAlmostEqual(sample["window_s"], 2.5e-4 * sample["launches"])
        self.assertGreaterEqual(sample["energy_s"], 0.99)
        self.assertLess(sample["energy_s"], 1.2)
        # Within one reading of the clock at either end.
        self.assertAlmostEqual(sample["energy_j"] / sample["energy_s"], 650, delta=0.02 * 650)

    def test_without_a_counter_there_are_no_joules(self):
        _, samples = run_on(FakeTorch(), request(peers=["math"], blocks=1, alone={
            "settle_s": 0.01, "window_s": 0.01}))
        self.assertNotIn("energy_j", samples[0])
        self.assertIsNone(samples[0]["sm_mhz"])

    def test_visits_that_the_record_has_are_left_out(self):
        shape = {**SHAPE, "visited": [["math", 0], ["flash", 1]]}
        _, samples = run_on(FakeTorch(), request(
            shapes=[shape], peers=["flash", "math"], blocks=2,
            alone={"settle_s": 0, "window_s": 0}))
        self.assertEqual(sorted((s["arm"], s["block"]) for s in samples),
                         [("peer:flash", 0), ("peer:math", 1)])

    def test_the_clock_is_the_median_of_the_sms_that_stamped_both(self):
        begin = [(0, 1000, 0), (1, 500, 0), (2, 0, 0), (3, 0, 0)]
        end = [(1, 2000, 1000), (0, 2510, 1000), (2, 1490, 1000), (9, 1, 1)]
        self.assertEqual(peer_gpu.mhz_between(begin, end), 1500)
        self.assertIsNone(peer_gpu.mhz_between(begin, [(9, 1, 1)]))

    def test_a_plan_that_is_none_is_refused(self):
        with self.assertRaisesRegex(peers.RequestError, "settle_s and window_s"):
            request(alone={"settle_s": -1, "window_s": 1})


def heads_first(*tensors):
    return [tensor.array.swapaxes(1, 2) for tensor in tensors]


class Libraries(FakeTorch):
    """Beside PyTorch FlashAttention-4 and flex_attention(), made of NumPy."""

    def __init__(self):
        super().__init__(us_per_call=1000.0)
        self.compiled = []
        self._dynamo = types.SimpleNamespace(reset=lambda: self.compiled.append("reset"))
        self.modules = {
            "flash_attn": types.ModuleType("flash_attn"),
            "flash_attn.cute": types.SimpleNamespace(flash_attn_func=self.flash_attn_func),
            "torch.nn.attention.flex_attention": types.SimpleNamespace(
                flex_attention=self.flex_attention, create_block_mask=self.create_block_mask)}

    def compile(self, function, **options):
        self.compiled.append(options)
        return function

    def flash_attn_func(self, q, k, v, causal):
        shift = k.shape[1] - q.shape[1]
        return self.launched(q.shape, lambda: plain_attention(
            *heads_first(q, k, v), causal, shift).swapaxes(1, 2)), "the LSE"

    def create_block_mask(self, sees, batch, heads, rows, keys, device):
        rows, keys = numpy.arange(rows)[:, None], numpy.arange(keys)[None, :]
        return numpy.broadcast_to(sees(0, 0, rows, keys), (rows.size, keys.size))

    def flex_attention(self, q, k, v, enable_gqa, block_mask=None):
        self.gqa.append(enable_gqa)

        def computed():
            group = q.shape[1] // k.shape[1]
            keys, values = (numpy.repeat(t.array.astype(float), group, axis=1) for t in (k, v))
            scores = q.array.astype(float) @ keys.swapaxes(2, 3) / math.sqrt(q.shape[3])
            if block_mask is not None:
                scores = numpy.where(block_mask, scores, -math.inf)
            weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
            return weights / weights.sum(axis=-1, keepdims=True) @ values
        return self.launched(q.shape, computed)


TUTORIAL = """
import torch
class _attention:
    @staticmethod
    def forward(ctx, q, k, v, causal, sm_scale{more}):
        pass
def attention(q, k, v, causal, sm_scale{more}):
    assert sm_scale == q.shape[3] ** -0.5
    return torch._sdpa(q, k, v, causal)
"""


class LibrariesTest(FolderTest):
    def found(self, torch, wanted, lines=None):
        """peers.json's entries and what was timed."""
        given = mock.patch.object(peer_arms.TorchBench, "call_lines",
                                  lambda bench, graph, launches: ["by graph", *(lines or [])])
        with mock.patch.dict("sys.modules", torch.modules), given:
            found, samples = run_on(torch, wanted)
        return found, {sample["arm"] for sample in samples}

    def test_each_is_right_for_its_masks_and_heads(self):
        for changes in ({}, {"causal": True}, {"heads_q": 6}, {"heads_q": 4, "causal": True, "seq_q": 7}):
            for name in ("fa4", "flex"):
                with self.subTest(name, **changes):
                    found, timed = self.found(
                        Libraries(), request(shapes=[{**SHAPE, **changes}], peers=[name]))
                    self.assertEqual((found[0]["reason"], timed), ("", {f"peer:{name}"}))

    def test_a_row_that_sees_no_key_is_nobodys(self):
        shape = {**SHAPE, "causal": True, "seq_q": 9}
        found, timed = self.found(Libraries(), request(shapes=[shape], peers=["fa4", "flex"]))
        self.assertEqual({each["reason"] for each in found}, {"tiny: its first rows see no key"})
        self.assertEqual(timed, set())

    def test_flex_is_compiled_anew_for_each_shape_with_its_own_search(self):
        torch = Libraries()
        self.found(torch, request(shapes=[SHAPE, {**SHAPE, "name": "other"}], peers=["flex"]))
        self.assertEqual(torch.compiled[::2], ["reset"] * 2)
        self.assertEqual({options["mode"] for options in torch.compiled[1::2]}, {"max-autotune-no-cudagraphs"})

    def test_flex_that_launches_no_kernel_of_triton_is_none(self):
        found, timed = self.found(Libraries(), request(peers=["flex"]), ["kernel sgemm grid 1x1x1"])
        self.assertIn("it launches no kernel that matches '^kernel triton_', but kernel sgemm",
                      found[0]["reason"])
        self.assertEqual(timed, set())
        found, timed = self.found(Libraries(), request(peers=["flex"]), ["kernel triton_tem_0 grid 1x1x1"])
        self.assertEqual(timed, {"peer:flex"})

    def test_what_a_call_launches_is_a_line_of_the_record(self):
        lines = []
        with mock.patch.object(peer_arms.TorchBench, "call_lines",
                               lambda bench, graph, launches: ["by graph", f"kernel of {launches} calls"]):
            found, _ = run_on(FakeTorch(), request(peers=["math"]), lines=lines)
        call, = (line["call"] for line in lines if "call" in line)
        self.assertEqual(call, {"arm": "peer:math", "shape": "tiny", "lines": ["by graph", "kernel of 100 calls"]})

    def test_triton_s_tutorial_is_called_as_its_version_asks(self):
        shape = {**SHAPE, "seq_q": 128, "seq_kv": 128}
        for major, more in ((9, ""), (9, ", warp_specialize=False"), (10, ", warp_specialize=True")):
            path = self.path / "tutorial.py"
            path.write_text(TUTORIAL.format(more=more), encoding="utf-8")
            torch = Libraries()
            torch.cuda.get_device_capability = lambda major=major: (major, 0)
            with mock.patch.dict("os.environ", {peer_libraries.TritonTutorial.FILE: str(path)}):
                found, timed = self.found(torch, request(shapes=[shape], peers=["triton"]))
            self.assertEqual((found[0]["reason"], timed), ("", {"peer:triton"}))
            self.assertRegex(found[0]["version"], "tutorial [0-9a-f]{12}$")

    def test_triton_s_tutorial_says_what_it_does_not_take(self):
        for changes, why in (({"dtype": "bf16"}, "fp16 alone"), ({"heads_q": 4}, "as many heads"),
                             ({}, "as many heads and rows"), ({"seq_kv": 5}, "multiples of 128")):
            found, _ = self.found(Libraries(), request(shapes=[{**SHAPE, **changes}], peers=["triton"]))
            self.assertIn(why, found[0]["reason"])

    def test_each_that_is_missing_says_what_to_get(self):
        shape = {**SHAPE, "seq_q": 128, "seq_kv": 128}
        with mock.patch.dict("os.environ"):
            for name in (peer_libraries.Fa3.FILE, peer_libraries.TritonTutorial.FILE):
                os.environ.pop(name, None)
            torch = Libraries()
            torch.modules = dict.fromkeys(torch.modules)  # an import of None fails
            found, timed = self.found(torch, request(shapes=[shape], peers=["fa3", "fa4", "flex", "triton"]))
        self.assertEqual(timed, set())
        for peer, why in zip(found, ("WARPLEDGER_FA3 names no file: .* of the wheel vllm",
                                     "can't be imported: .* it is the package flash-attn-4",
                                     "has no flex_attention", "WARPLEDGER_TRITON_TUTORIAL names no file: .*06-fused")):
            self.assertFalse(peer["available"])
            self.assertRegex(peer["reason"], why)

    def test_a_library_that_is_damaged_says_why_and_what_to_name(self):
        torch = Libraries()
        torch.ops = mock.Mock()
        torch.ops.load_library.side_effect = OSError("empty.so: file too short")
        path = self.path / "tutorial.py"
        path.write_text("import nothing_of_this_name\n", encoding="utf-8")
        shape = {**SHAPE, "seq_q": 128, "seq_kv": 128}
        with mock.patch.dict("os.environ", {peer_libraries.Fa3.FILE: "empty.so",
                                            peer_libraries.TritonTutorial.FILE: str(path)}):
            found, timed = self.found(torch, request(shapes=[shape], peers=["fa3", "triton"]))
        self.assertRegex(found[0]["reason"], "can't be loaded: .*empty.so: file too short; it is to "
                         "name the file .*_vllm_fa3_C.abi3.so of the wheel vllm")
        self.assertRegex(found[1]["reason"], "can't be loaded: .*nothing_of_this_name.*; it is to name python/")
        self.assertEqual(timed, set())

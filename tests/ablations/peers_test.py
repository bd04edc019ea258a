"""ablations/peers.py: the protocol, the figures and the lines, on a PyTorch made of NumPy."""

import contextlib
import ctypes
import io
import json
import math
import random
import tempfile
import types
import unittest
import warnings
from pathlib import Path
from unittest import mock

import numpy

from ablations import peers

SHAPE = {"name": "tiny", "batch": 1, "heads_q": 2, "heads_kv": 2, "seq_q": 5, "seq_kv": 7,
         "head_dim": 4, "causal": False}
NO_READING = {"sm_mhz": None, "temp_c": None, "power_w": None, "throttle": None}


def request(**changes):
    return peers.parse_request(json.dumps({"shapes": [SHAPE], "blocks": 3, **changes}))


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


def softmax(tensor, dim):
    shifted = numpy.exp(tensor.array - tensor.array.max(axis=dim, keepdims=True))
    return Tensor((shifted / shifted.sum(axis=dim, keepdims=True)).astype(tensor.array.dtype))


def plain_attention(q, k, v, is_causal):
    """Written another way than the reference under test: loops over rows."""
    out = numpy.empty(q.shape, numpy.float16)
    group = q.shape[1] // k.shape[1]
    for b, h, i in numpy.ndindex(*q.shape[:3]):
        keys, values = (t[b, h // group].astype(numpy.float64) for t in (k, v))
        if is_causal:
            keys, values = keys[:i + 1], values[:i + 1]
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
                warnings.warn(message)
            raise error
        out = Tensor(numpy.zeros(q.shape, numpy.float16))

        def compute():
            self.clock_us += self.us_per_call
            out.array[...] = self.attend(q.array, k.array, v.array, is_causal)

        if self.capturing is not None:
            self.capturing.calls.append(compute)
        else:
            compute()
        return out


class Event:
    def __init__(self, torch):
        self.torch = torch

    def record(self):
        self.at_us = self.torch.clock_us

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return (end.at_us - self.at_us) / 1000.0


def run_on(torch, wanted, warm_up_s=0.0):
    """The lines of a run on a fake PyTorch: (peer objects, samples)."""
    attention = types.SimpleNamespace(
        sdpa_kernel=torch.sdpa_kernel,
        SDPBackend=types.SimpleNamespace(**{b[0]: b[0] for b in peers.BACKENDS.values()}))
    lines = []
    with mock.patch.dict("sys.modules", {"torch": torch, "torch.nn": torch.nn,
                                         "torch.nn.attention": attention}):
        with mock.patch.object(peers.ctypes, "CDLL", side_effect=OSError):
            bench, reason = peers.open_bench(wanted)
        assert bench is not None, reason
        with mock.patch.object(peers, "WARM_UP_S", warm_up_s):
            peers.run(wanted, bench, lines.append)
    return ([line["peer"] for line in lines if "peer" in line],
            [line for line in lines if "peer" not in line])


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
        self.assertGreater(found[0]["checks"][0]["max_err_limit"], peers.half_ulp(0.25, "bf16"))
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


class ProtocolTest(unittest.TestCase):
    """What peers must have in common with ablations/worker.cc."""

    def setUp(self):
        self.events = []
        self.now_s = 0.0

    def arm(self, name):
        def time_once():
            self.events.append(name)
            self.now_s += 0.04
            return 1.0
        return types.SimpleNamespace(time=time_once, launches=4)

    def time_blocks(self, blocks, throttle=None):
        def read():
            self.events.append("sensors")
            return dict(NO_READING, sm_mhz=len(self.events), throttle=throttle)
        arms = {name: self.arm(name) for name in ("flash", "math")}
        lines = []
        with mock.patch.object(peers.time, "monotonic", lambda: self.now_s):
            peers.time_blocks(request(blocks=blocks), "tiny", arms, read, lines.append)
        return lines

    def test_each_arm_has_the_gpu_to_itself_until_all_its_blocks_are_timed(self):
        lines = self.time_blocks(3)
        first, second = peers.peer_order(1, 0, "tiny", ["flash", "math"])
        replays = [event for event in self.events if event != "sensors"]
        # 300 ms of 40 ms replays, then a sample of each block.
        self.assertEqual(replays, [first] * (8 + 3) + [second] * (8 + 3))
        self.assertEqual([(line["block"], line["arm"], line["order"]) for line in lines],
                         [(block, f"peer:{name}", order) for block in range(3)
                          for order, name in enumerate((first, second))])

    def test_an_arm_warms_up_for_as_long_as_ours(self):
        worker = (Path(peers.__file__).parent / "worker.cc").read_text(encoding="utf-8")
        for name, seconds in (("kWarmUp", peers.WARM_UP_S),
                              ("kCappedWarmUp", peers.CAPPED_WARM_UP_S)):
            self.assertIn(f"{name} = absl::Milliseconds({round(1000 * seconds)})", worker)

    def test_at_the_power_limit_the_warm_up_is_longer(self):
        self.time_blocks(1, throttle=peers.POWER_CAP | 64)
        replays = [event for event in self.events if event != "sensors"]
        self.assertEqual(len(replays), 2 * (25 + 1))
        self.events.clear()
        self.now_s = 0.0
        self.time_blocks(1, throttle=64)
        self.assertEqual(len([e for e in self.events if e != "sensors"]), 2 * (8 + 1))

    def test_sensors_are_read_after_each_sample(self):
        lines = self.time_blocks(3)
        samples = self.events[-2 * 3:]
        self.assertEqual(samples[1::2], ["sensors"] * 3)
        self.assertNotIn("sensors", samples[::2])
        self.assertEqual(len({line["sm_mhz"] for line in lines}), 6)


class LaunchesTest(unittest.TestCase):
    def test_a_replay_lasts_about_as_long_as_asked(self):
        self.assertEqual(peers.choose_launches(10.0, request()), 100)
        self.assertEqual(peers.choose_launches(15.0, request()), 68)

    def test_launches_stay_between_the_limits(self):
        self.assertEqual(peers.choose_launches(5000.0, request()), 4)
        self.assertEqual(peers.choose_launches(0.01, request()), 256)
        self.assertEqual(peers.choose_launches(0.0, request()), 256)

    def test_every_input_set_is_used_equally_often(self):
        for us in (0.1, 3.3, 70.0, 900.0):
            for sets in (1, 3, 4, 7):
                launches = peers.choose_launches(us, request(input_sets=sets, min_launches=5))
                self.assertEqual(launches % sets, 0)
                self.assertGreaterEqual(launches, 5)

    def test_all_input_sets_outrank_the_upper_limit(self):
        self.assertEqual(
            peers.choose_launches(1.0, request(input_sets=4, min_launches=1, max_launches=2)), 4)

    def test_a_rotation_is_never_cut_short_even_past_the_most_launches(self):
        self.assertEqual(peers.choose_launches(1.0, request(), rotation=300), 300)
        self.assertEqual(peers.choose_launches(1.0, request(), rotation=100), 200)
        self.assertEqual(peers.least_launches(request(), 96), 96)


class OrderTest(unittest.TestCase):
    def test_the_order_depends_on_seed_process_and_shape_alone(self):
        names = list(peers.BACKENDS)
        random.seed(0)
        first = peers.peer_order(1, 0, "tiny", names)
        random.seed(1)
        self.assertEqual(peers.peer_order(1, 0, "tiny", names), first)
        self.assertEqual(sorted(first), sorted(names))

    def test_every_backend_takes_every_place(self):
        names = list(peers.BACKENDS)
        orders = [peers.peer_order(1, process, "tiny", names) for process in range(64)]
        for place in range(len(names)):
            self.assertEqual({order[place] for order in orders}, set(names))

    def test_each_second_process_mirrors_the_one_before(self):
        names = list(peers.BACKENDS)
        for process in range(0, 64, 2):
            self.assertEqual(peers.peer_order(1, process + 1, "tiny", names),
                             peers.peer_order(1, process, "tiny", names)[::-1])

    def test_the_order_of_the_names_does_not_matter(self):
        names = list(peers.BACKENDS)
        self.assertEqual(peers.peer_order(1, 5, "tiny", names),
                         peers.peer_order(1, 5, "tiny", names[::-1]))

    def test_input_seeds_differ_and_fit_into_63_bits(self):
        seeds = {peers.input_seed(s, p, n) for s in (1, 2) for p in (0, 1) for n in ("a", "b")}
        self.assertEqual(len(seeds), 8)
        self.assertTrue(all(0 <= seed < 2**63 for seed in seeds))


class JudgeTest(unittest.TestCase):
    GOOD = {"max_err": 1e-3, "mean_err": 1e-4, "naive_max_err": 1e-3, "naive_mean_err": 1e-4,
            "max_ref": 1.0}

    def test_half_an_ulp_follows_fp16(self):
        for value in (65472.0, 1.0, 0.3, 2.0**-14, 1e-6, 0.0):
            spacing = numpy.spacing(numpy.float16(value)).astype(float)
            self.assertEqual(peers.half_ulp(value), spacing / 2)
        self.assertEqual(peers.half_ulp(-1.0), peers.half_ulp(1.0))

    def test_half_an_ulp_of_bf16_is_that_of_eight_bits(self):
        self.assertEqual(peers.half_ulp(1.0, "bf16"), 2.0**-8)
        self.assertEqual(peers.half_ulp(-300.0, "bf16"), 2.0**0)
        self.assertEqual(peers.half_ulp(0.0, "bf16"), 0.5 * 2.0**-133)
        self.assertTrue(peers.judge("s", [{**self.GOOD, "max_err": 5e-3}], "bf16")["correct"])
        self.assertFalse(peers.judge("s", [{**self.GOOD, "max_err": 5e-3}], "fp16")["correct"])

    def test_twice_the_naive_error_and_half_an_ulp_are_allowed(self):
        limit = 2e-3 + 2.0**-11
        self.assertTrue(peers.judge("s", [{**self.GOOD, "max_err": limit}])["correct"])
        self.assertFalse(peers.judge("s", [{**self.GOOD, "max_err": limit * 1.001}])["correct"])

    def test_a_mean_error_beyond_one_and_a_half_times_the_naive_one_fails(self):
        self.assertTrue(peers.judge("s", [{**self.GOOD, "mean_err": 1.49e-4}])["correct"])
        self.assertFalse(peers.judge("s", [{**self.GOOD, "mean_err": 1.51e-4}])["correct"])

    def test_nan_fails(self):
        self.assertFalse(peers.judge("s", [{**self.GOOD, "max_err": math.nan}])["correct"])

    def test_one_failing_input_set_fails_the_check(self):
        check = peers.judge("s", [self.GOOD, {**self.GOOD, "max_err": 1.0}, self.GOOD])
        self.assertEqual((check["correct"], check["max_err"]), (False, 1.0))

    def test_the_worst_of_passing_sets_is_reported(self):
        check = peers.judge("s", [self.GOOD, {**self.GOOD, "max_err": 2e-3}, self.GOOD])
        self.assertEqual((check["correct"], check["max_err"]), (True, 2e-3))


class ReasonTest(unittest.TestCase):
    NO_KERNEL = RuntimeError("No available kernel. Aborting execution.\nException raised from …")

    def test_the_backends_own_section_is_told_without_pytorchs_source_lines(self):
        messages = [
            "Memory efficient kernel not used because: (Triggered internally at /a/b.cpp:7.)",
            "Memory Efficient attention has been runtime disabled. (Triggered internally at x:8.)",
            "Flash attention kernel not used because: (Triggered internally at /a/b.cpp:9.)",
            "Expected query to be\n of dtype Half. (Triggered internally at /a/b.cpp:10.)",
            "CuDNN attention kernel not used because: (Triggered internally at /a/b.cpp:11.)",
            "cuDNN attention has been runtime disabled.",
        ]
        self.assertEqual(peers.refusal_reason("flash", messages, self.NO_KERNEL),
                         "Expected query to be of dtype Half.")

    def test_the_error_speaks_when_no_section_does(self):
        self.assertEqual(peers.refusal_reason("cudnn", [], self.NO_KERNEL),
                         "No available kernel. Aborting execution.")
        self.assertEqual(peers.refusal_reason("cudnn", ["Too old."], RuntimeError("No plan.")),
                         "No plan. Too old.")
        self.assertEqual(peers.refusal_reason("math", [], RuntimeError()), "RuntimeError")

    def test_a_reason_is_one_line_of_bounded_length(self):
        reason = peers.refusal_reason("math", [], RuntimeError("x" * 1000 + "\nmore"))
        self.assertEqual(len(reason), peers.MAX_REASON_CHARS)
        self.assertTrue(reason.endswith("…"))


class LinesTest(unittest.TestCase):
    def test_versions_name_cudnn_where_it_computes(self):
        self.assertEqual(peers.version_text("2.11.0", 91900, "cudnn"),
                         "torch 2.11.0, cuDNN 9.19.0")
        self.assertEqual(peers.version_text("2.11.0", 91900, "flash"), "torch 2.11.0")
        self.assertEqual(peers.version_text("2.11.0", None, "cudnn"), "torch 2.11.0")

    def test_what_is_not_finite_becomes_null(self):
        self.assertEqual(peers.to_json({"a": [math.nan, 1.5], "b": {"c": math.inf}}),
                         '{"a":[null,1.5],"b":{"c":null}}')


class RequestTest(unittest.TestCase):
    def test_flags_override_and_defaults_fill_in(self):
        text = json.dumps({"shapes": [SHAPE], "seed": 5, "blocks": 7})
        parsed = peers.parse_request(text, {"blocks": 9, "process": None})
        self.assertEqual((parsed["seed"], parsed["blocks"], parsed["process"]), (5, 9, 0))
        self.assertEqual(parsed["peers"], ["flash", "cudnn", "efficient", "math"])

    def test_a_malformed_request_is_refused_with_the_culprits_name(self):
        cases = [
            ("{", "not JSON"),
            ("[]", "not a JSON object"),
            (json.dumps({}), "shapes"),
            (json.dumps({"shapes": []}), "shapes"),
            (json.dumps({"shapes": [SHAPE], "block": 1}), "unknown key 'block'"),
            (json.dumps({"shapes": [SHAPE], "blocks": 0}), "blocks is 0"),
            (json.dumps({"shapes": [SHAPE], "blocks": True}), "blocks is True"),
            (json.dumps({"shapes": [SHAPE], "peers": ["xla"]}), "unknown peer 'xla'"),
            (json.dumps({"shapes": [SHAPE], "peers": []}), "at least one backend"),
            (json.dumps({"shapes": [SHAPE], "min_launches": 300}), "min_launches"),
            (json.dumps({"shapes": [{"batch": 1}]}), "without a name"),
            (json.dumps({"shapes": [{**SHAPE, "seq_q": 0}]}), "tiny: seq_q is 0"),
            (json.dumps({"shapes": [{**SHAPE, "causal": 1}]}), "tiny: causal"),
            (json.dumps({"shapes": [{**SHAPE, "heads_q": 3}]}), "no multiple"),
        ]
        for text, culprit in cases:
            with self.assertRaisesRegex(peers.RequestError, culprit, msg=text):
                peers.parse_request(text)


class SensorsTest(unittest.TestCase):
    class Library:
        """Fills in what ctypes.byref passes on, as the C library would."""

        def __init__(self, values):
            self.values = values

        def nvmlInit_v2(self):
            return 0

        def nvmlDeviceGetHandleByUUID(self, uuid, handle):
            return 0 if uuid == b"GPU-1" else 6

        def __getattr__(self, function):
            if function not in self.values:
                raise AttributeError(function)
            value = self.values[function]

            def call(*arguments):
                if value is None:
                    return 3  # not supported
                arguments[-1]._obj.value = value
                return 0
            return call

    def read(self, values, uuid="GPU-1"):
        return peers.Sensors(uuid, self.Library(values)).read()

    def test_readings_come_in_the_records_units(self):
        self.assertEqual(
            self.read({"nvmlDeviceGetClockInfo": 1980, "nvmlDeviceGetTemperature": 41,
                       "nvmlDeviceGetPowerUsage": 310500,
                       "nvmlDeviceGetCurrentClocksEventReasons": 4}),
            {"sm_mhz": 1980, "temp_c": 41, "power_w": 310.5, "throttle": 4})

    def test_an_older_driver_tells_event_reasons_by_their_older_name(self):
        reading = self.read({"nvmlDeviceGetCurrentClocksThrottleReasons": 64})
        self.assertEqual(reading["throttle"], 64)

    def test_what_cannot_be_read_is_none(self):
        self.assertEqual(self.read({"nvmlDeviceGetPowerUsage": None}), NO_READING)
        self.assertEqual(self.read({"nvmlDeviceGetClockInfo": 1980}, uuid="GPU-2"),
                         NO_READING)

    def test_no_driver_is_no_error(self):
        with mock.patch.object(ctypes, "CDLL", side_effect=OSError("no such file")):
            self.assertEqual(peers.Sensors("GPU-1").read(), NO_READING)


class MainTest(unittest.TestCase):
    REQUEST = json.dumps({"shapes": [SHAPE]})

    def lines_without(self, torch):
        with mock.patch.dict("sys.modules", {"torch": torch}):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                self.assertEqual(peers.main([], io.StringIO(self.REQUEST)), 0)
        return [json.loads(line) for line in out.getvalue().splitlines()]

    def test_no_pytorch_is_one_line_and_success(self):
        line, = self.lines_without(None)  # None in sys.modules makes an import fail
        self.assertFalse(line["peer"]["available"])
        self.assertIn("PyTorch can't be imported", line["peer"]["reason"])

    def test_no_gpu_is_one_line_and_success(self):
        torch = types.SimpleNamespace(
            __version__="2.11.0", cuda=types.SimpleNamespace(is_available=lambda: False))
        line, = self.lines_without(torch)
        self.assertEqual(line["peer"]["reason"], "torch 2.11.0 sees no CUDA GPU")
        self.assertEqual(line["peer"]["checks"], [])

    def test_the_backends_are_listed_one_per_line(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(peers.main(["--list"], io.StringIO("")), 0)
        self.assertEqual(out.getvalue().split("\n"), [*peers.BACKENDS, ""])

    def test_a_bad_request_exits_with_2_and_says_why(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(peers.main([], io.StringIO("{")), 2)
            self.assertEqual(peers.main(["--shapes-json", "no/such/file"]), 2)
        self.assertIn("not JSON", errors.getvalue())
        self.assertIn("no/such/file", errors.getvalue())

    def test_files_and_flags_reach_the_run(self):
        seen = {}

        def no_bench(wanted):
            seen.update(wanted)
            return None, "none here"
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder, "request.json"), Path(folder, "lines.jsonl")
            source.write_text(self.REQUEST, encoding="utf-8")
            code = peers.main(["--shapes-json", str(source), "--process", "2", "--seed", "9",
                               "--blocks", "3", "--out", str(out)], make_bench=no_bench)
            line = json.loads(out.read_text(encoding="utf-8"))
        self.assertEqual(code, 0)
        self.assertEqual((seen["process"], seen["seed"], seen["blocks"]), (2, 9, 3))
        self.assertEqual(line["peer"]["reason"], "none here")


if __name__ == "__main__":
    unittest.main()

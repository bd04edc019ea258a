# SPDX-License-Identifier: Apache-2.0
"""ablations/subjects/sdpa/peers: the protocol, the figures and the lines."""

import contextlib
import ctypes
import io
import json
import math
import random
import types
import unittest
from unittest import mock

import numpy

from fixture import ROOT
from peers_request import SHAPE, peer_gpu, peer_libraries, peer_rules, peers, request

NO_READING = {"sm_mhz": None, "temp_c": None, "power_w": None, "throttle": None}


class ProtocolTest(unittest.TestCase):
    """What peers must have in common with ablations/measure/worker.cc."""

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
        first, second = peer_rules.peer_order(1, 0, "tiny", ["flash", "math"])
        replays = [event for event in self.events if event != "sensors"]
        # 300 ms of 40 ms replays, then a sample of each block.
        self.assertEqual(replays, [first] * (8 + 3) + [second] * (8 + 3))
        self.assertEqual([(line["block"], line["arm"], line["order"]) for line in lines],
                         [(block, f"peer:{name}", order) for block in range(3)
                          for order, name in enumerate((first, second))])

    def test_an_arm_warms_up_for_as_long_as_ours(self):
        machine = (ROOT / "ablations/measure/cuda_machine.cc").read_text(encoding="utf-8")
        for name, seconds in (("kWarmUp", peer_rules.WARM_UP_S),
                              ("kCappedWarmUp", peer_rules.CAPPED_WARM_UP_S)):
            self.assertIn(f"{name} = absl::Milliseconds({round(1000 * seconds)})", machine)

    def test_at_the_power_limit_the_warm_up_is_longer(self):
        self.time_blocks(1, throttle=peer_rules.POWER_CAP | 64)
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
        self.assertEqual(peer_rules.choose_launches(10.0, request()), 100)
        self.assertEqual(peer_rules.choose_launches(15.0, request()), 68)

    def test_launches_stay_between_the_limits(self):
        self.assertEqual(peer_rules.choose_launches(5000.0, request()), 4)
        self.assertEqual(peer_rules.choose_launches(0.01, request()), 256)
        self.assertEqual(peer_rules.choose_launches(0.0, request()), 256)

    def test_every_input_set_is_used_equally_often(self):
        for us in (0.1, 3.3, 70.0, 900.0):
            for sets in (1, 3, 4, 7):
                launches = peer_rules.choose_launches(us, request(input_sets=sets, min_launches=5))
                self.assertEqual(launches % sets, 0)
                self.assertGreaterEqual(launches, 5)

    def test_all_input_sets_outrank_the_upper_limit(self):
        self.assertEqual(
            peer_rules.choose_launches(1.0, request(input_sets=4, min_launches=1, max_launches=2)), 4)

    def test_a_rotation_is_never_cut_short_even_past_the_most_launches(self):
        self.assertEqual(peer_rules.choose_launches(1.0, request(), rotation=300), 300)
        self.assertEqual(peer_rules.choose_launches(1.0, request(), rotation=100), 200)
        self.assertEqual(peer_rules.least_launches(request(), 96), 96)


class OrderTest(unittest.TestCase):
    def test_the_order_depends_on_seed_process_and_shape_alone(self):
        names = list(peer_libraries.UNASKED)
        random.seed(0)
        first = peer_rules.peer_order(1, 0, "tiny", names)
        random.seed(1)
        self.assertEqual(peer_rules.peer_order(1, 0, "tiny", names), first)
        self.assertEqual(sorted(first), sorted(names))

    def test_every_backend_takes_every_place(self):
        names = list(peer_libraries.UNASKED)
        orders = [peer_rules.peer_order(1, process, "tiny", names) for process in range(64)]
        for place in range(len(names)):
            self.assertEqual({order[place] for order in orders}, set(names))

    def test_each_second_process_mirrors_the_one_before(self):
        names = list(peer_libraries.UNASKED)
        for process in range(0, 64, 2):
            self.assertEqual(peer_rules.peer_order(1, process + 1, "tiny", names),
                             peer_rules.peer_order(1, process, "tiny", names)[::-1])

    def test_the_order_of_the_names_does_not_matter(self):
        names = list(peer_libraries.UNASKED)
        self.assertEqual(peer_rules.peer_order(1, 5, "tiny", names),
                         peer_rules.peer_order(1, 5, "tiny", names[::-1]))

    def test_input_seeds_differ_and_fit_into_63_bits(self):
        seeds = {peer_rules.input_seed(s, p, n) for s in (1, 2) for p in (0, 1) for n in ("a", "b")}
        self.assertEqual(len(seeds), 8)
        self.assertTrue(all(0 <= seed < 2**63 for seed in seeds))


class JudgeTest(unittest.TestCase):
    GOOD = {"max_err": 1e-3, "mean_err": 1e-4, "naive_max_err": 1e-3, "naive_mean_err": 1e-4,
            "max_ref": 1.0}

    def test_half_an_ulp_follows_fp16(self):
        for value in (65472.0, 1.0, 0.3, 2.0**-14, 1e-6, 0.0):
            spacing = numpy.spacing(numpy.float16(value)).astype(float)
            self.assertEqual(peer_rules.half_ulp(value), spacing / 2)
        self.assertEqual(peer_rules.half_ulp(-1.0), peer_rules.half_ulp(1.0))

    def test_half_an_ulp_of_bf16_is_that_of_eight_bits(self):
        self.assertEqual(peer_rules.half_ulp(1.0, "bf16"), 2.0**-8)
        self.assertEqual(peer_rules.half_ulp(-300.0, "bf16"), 2.0**0)
        self.assertEqual(peer_rules.half_ulp(0.0, "bf16"), 0.5 * 2.0**-133)
        self.assertTrue(peer_rules.judge("s", [{**self.GOOD, "max_err": 5e-3}], "bf16")["correct"])
        self.assertFalse(peer_rules.judge("s", [{**self.GOOD, "max_err": 5e-3}], "fp16")["correct"])

    def test_twice_the_naive_error_and_half_an_ulp_are_allowed(self):
        limit = 2e-3 + 2.0**-11
        self.assertTrue(peer_rules.judge("s", [{**self.GOOD, "max_err": limit}])["correct"])
        self.assertFalse(peer_rules.judge("s", [{**self.GOOD, "max_err": limit * 1.001}])["correct"])

    def test_a_mean_error_beyond_one_and_a_half_times_the_naive_one_fails(self):
        self.assertTrue(peer_rules.judge("s", [{**self.GOOD, "mean_err": 1.49e-4}])["correct"])
        self.assertFalse(peer_rules.judge("s", [{**self.GOOD, "mean_err": 1.51e-4}])["correct"])

    def test_nan_fails(self):
        self.assertFalse(peer_rules.judge("s", [{**self.GOOD, "max_err": math.nan}])["correct"])

    def test_one_failing_input_set_fails_the_check(self):
        check = peer_rules.judge("s", [self.GOOD, {**self.GOOD, "max_err": 1.0}, self.GOOD])
        self.assertEqual((check["correct"], check["max_err"]), (False, 1.0))

    def test_the_worst_of_passing_sets_is_reported(self):
        check = peer_rules.judge("s", [self.GOOD, {**self.GOOD, "max_err": 2e-3}, self.GOOD])
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
        self.assertEqual(peer_rules.refusal_reason("flash attention", messages, self.NO_KERNEL),
                         "Expected query to be of dtype Half.")

    def test_the_error_speaks_when_no_section_does(self):
        self.assertEqual(peer_rules.refusal_reason("cudnn attention", [], self.NO_KERNEL),
                         "No available kernel. Aborting execution.")
        self.assertEqual(peer_rules.refusal_reason("cudnn attention", ["Too old."], RuntimeError("No plan.")),
                         "No plan. Too old.")
        self.assertEqual(peer_rules.refusal_reason("math", [], RuntimeError()), "RuntimeError")

    def test_a_reason_is_one_line_of_bounded_length(self):
        reason = peer_rules.refusal_reason("math", [], RuntimeError("x" * 1000 + "\nmore"))
        self.assertEqual(len(reason), peer_rules.MAX_REASON_CHARS)
        self.assertTrue(reason.endswith("…"))


class LinesTest(unittest.TestCase):
    def test_cudnns_version_is_written_as_people_do(self):
        self.assertEqual(peer_rules.cudnn_text(91900), "cuDNN 9.19.0")
        self.assertEqual(peer_rules.cudnn_text(100203), "cuDNN 10.2.3")

    def test_what_is_not_finite_becomes_null(self):
        self.assertEqual(peer_rules.to_json({"a": [math.nan, 1.5], "b": {"c": math.inf}}),
                         '{"a":[null,1.5],"b":{"c":null}}')


class RequestTest(unittest.TestCase):
    def test_defaults_fill_in(self):
        parsed = peers.parse_request(json.dumps({"shapes": [SHAPE], "seed": 5, "blocks": 7}))
        self.assertEqual((parsed["seed"], parsed["blocks"], parsed["process"]), (5, 7, 0))
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
            (json.dumps({"shapes": [SHAPE], "peers": []}), "at least one"),
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
        return peer_gpu.Sensors(uuid, self.Library(values)).read()

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
            self.assertEqual(peer_gpu.Sensors("GPU-1").read(), NO_READING)


class MainTest(unittest.TestCase):
    REQUEST = json.dumps({"shapes": [SHAPE]})

    def lines_without(self, torch):
        with (mock.patch.dict("sys.modules", {"torch": torch}),
              contextlib.redirect_stdout(io.StringIO()) as out):
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

    def test_the_peers_are_listed_one_per_line(self):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(peers.main(["--list"], io.StringIO("")), 0)
        self.assertEqual(out.getvalue().split("\n"), [*peer_libraries.PEERS, ""])

    def test_a_bad_request_exits_with_2_and_says_why(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            self.assertEqual(peers.main([], io.StringIO("{")), 2)
        self.assertIn("not JSON", errors.getvalue())

    def test_what_cannot_be_read_exits_with_2_and_says_why(self):
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            for error in (OSError("standard input is closed"),
                          UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")):
                stdin = mock.Mock(**{"read.side_effect": error})
                self.assertEqual(peers.main([], stdin), 2)
        self.assertIn("standard input is closed", errors.getvalue())
        self.assertIn("invalid start byte", errors.getvalue())

    def test_a_request_reaches_the_run(self):
        seen = {}

        def no_bench(wanted):
            seen.update(wanted)
            return None, "none here"
        wanted = {"shapes": [SHAPE], "process": 2, "seed": 9, "blocks": 3}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(peers.main([], io.StringIO(json.dumps(wanted)), no_bench), 0)
        self.assertEqual((seen["process"], seen["seed"], seen["blocks"]), (2, 9, 3))
        self.assertEqual(json.loads(out.getvalue())["peer"]["reason"], "none here")

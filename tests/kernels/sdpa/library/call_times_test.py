# SPDX-License-Identifier: Apache-2.0
"""kernels/sdpa/library: what call_times.py and call_counters.py do without a GPU: problems, joules and counters."""

import argparse
import ast
import contextlib
import json
import re
import sys
import time
import unittest
from unittest import mock

from fixture import ROOT, FolderTest

FOLDER = ROOT / "kernels/sdpa/library"
sys.path[:0] = [str(FOLDER), *(str(ROOT / "ablations/subjects" / each) for each in ("sdpa/peers", "python"))]
import call_counters  # noqa: E402
import call_regret  # noqa: E402
import call_rules  # noqa: E402
import peer_gpu  # noqa: E402
import peer_libraries  # noqa: E402

TORCH = mock.MagicMock(__version__="2.11")  # has any function, and computes nothing
with mock.patch.dict(sys.modules, {"torch": TORCH}):
    import call_contenders  # noqa: E402
    import call_times  # noqa: E402

DURATION, XU = call_counters.COUNTERS["duration_ns"], call_counters.COUNTERS["mufu_pct"]
READ, WRITE = call_counters.COUNTERS["dram_read_bytes"], call_counters.COUNTERS["dram_write_bytes"]
HEADER = ('"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
          '"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n')


def line(launch, kernel, metric, value):
    return (f'"{launch}","7","python3","127.0.0.1","{kernel}","1","7","(128, 1, 1)","(64, 8, 1)","0","9.0",'
            f'"Command line profiler metrics","{metric}","unit","{value}"\n')


MARK = line(0, "stamp", DURATION, "1,500")
OURS = line(1, "void sdpa<8, (bool)1>(Params)", DURATION, "15,000") + line(1, "void sdpa<8, (bool)1>(Params)", XU, "10")
TWO = (OURS + line(2, "join(Params)", DURATION, "5000") + line(2, "join(Params)", XU, "50"))
SAID = "==PROF== Connected to process 7\nNVIDIA H100, torch\n==PROF== Disconnected from process 7\n"


class Problems(unittest.TestCase):
    def all(self):
        return {each.name: each for of in call_rules.PROBLEMS.values() for each in of(1)}

    def test_have_the_sizes_that_shapes_h_has(self):
        text = (ROOT / "kernels/sdpa/problem/shapes.h").read_text(encoding="utf-8")
        listed = dict(re.findall(r'{"(\w+)",\s*{([\d, ]+), (?:true|false)', text))
        known = self.all()
        for name, own in (("mission_a", "b2_h8_s256_d64"), ("mission_b", "b1_h8_s512_d64"), ("long", "long"),
                          ("decode_b1", "decode_b1_warm"), ("decode_b1", "decode_b1_cold"),
                          ("decode_b16", "decode_b16_cold")):
            p = known[own]
            self.assertEqual((p.batch, p.heads_q, p.heads_kv, p.rows, p.keys, p.head_dim),
                             ast.literal_eval(listed[name]), own)

    def test_rotate_beyond_the_l2_where_they_are_cold_and_stay_in_it_where_they_are_warm(self):
        for p in self.all().values():
            if not isinstance(p, call_rules.Dense):
                continue
            others = (p.input_sets() - 1) * p.kv_bytes()
            if p.in_l2:
                self.assertLess(p.input_sets() * p.kv_bytes(), 50e6, p.name)
            else:
                self.assertGreaterEqual(others, 2 * call_rules.L2_BYTES, p.name)

    def test_have_their_floating_point_operations(self):
        known = self.all()
        self.assertEqual(known["b1_h8_s512_d64"].flop(), 4 * 8 * 512 * 512 * 64)
        self.assertEqual(known["fa3_d128_s8192_causal_bf16"].flop(), 4 * 2 * 16 * 128 * (8192 * 8193 // 2))
        self.assertEqual(known["32x512_h16x16_d128_causal"].flop(), 32 * 4 * 16 * 128 * (512 * 513 // 2))

    def test_are_chosen_by_name_or_by_a_part_of_it(self):
        problems = call_rules.varlen_problems(1)

        def names(only):
            return [each.name for each in call_rules.chosen(problems, only)]
        self.assertEqual(len(names("")), len(problems))
        self.assertEqual(names("prompts_h8x8_d256"), ["prompts_h8x8_d256"])
        self.assertEqual(names("prompts_h8x8_d256,4x4096_h8x8"),
                         ["prompts_h8x8_d256", "4x4096_h8x8_d256", "4x4096_h8x8_d256_causal"])
        self.assertEqual(names("nothing"), [])

    def test_take_about_as_long_as_the_readme_says(self):
        def tens(mode, only="", names=""):
            known = call_contenders.contenders(mode)
            asked = call_rules.wanted_contenders(names.split(",") if names else known, known, True)
            problems = call_rules.chosen(call_rules.PROBLEMS[mode](1), only)
            return round(sum(call_rules.expected_s(each, asked, 3, 3) for each in problems), -1)
        text = (FOLDER / "README.md").read_text(encoding="utf-8")
        listed = {mode: int(s) for s, mode in re.findall(r"(\d+) s for `(\w+)`", text)}
        self.assertEqual(listed, {mode: tens(mode) for mode in call_rules.PROBLEMS})
        some = re.search(r"`varlen --only (\S+) --contenders (\S+)` takes about (\d+) s", text)
        self.assertEqual(int(some[3]), tens("varlen", some[1], some[2]))

    def test_are_drawn_by_name(self):
        drawn = call_rules.PROBLEMS["random"](3)
        self.assertEqual(len(drawn), 40)
        self.assertEqual([each.head_dim for each in drawn[:4]], [64, 128, 64, 128])
        p = call_rules.dense_of("b2_h8x4_s100x300_d64_causal")
        self.assertEqual((p.batch, p.heads_q, p.heads_kv, p.rows, p.keys, p.head_dim, p.causal),
                         (2, 8, 4, 100, 300, 64, True))
        self.assertEqual(p.flop(), 4 * 2 * 8 * 64 * sum(300 - 100 + 1 + row for row in range(100)))
        p = call_rules.dense_of("b1_h8_s77_d128")
        self.assertEqual((p.heads_kv, p.rows, p.keys, p.causal), (8, 77, 77, False))

    def test_take_less_time_without_joules_and_for_who_refuses_their_lengths(self):
        p = call_rules.varlen_problems(1)[0]
        self.assertEqual(call_rules.expected_s(p, ["ours", *call_rules.ONE_LENGTH], 3, 3),
                         call_rules.expected_s(p, ["ours"], 3, 3))
        p = call_rules.few_problems(1)[0]
        self.assertAlmostEqual(call_rules.expected_s(p, ["ours", "flash"], 3, 0), 2 * (1 + 3 * 0.4))

    def test_are_warm_for_longer_where_replays_are_long(self):
        self.assertEqual([call_rules.warm_up_s(us) for us in (0, 2000, 2001)], [0.4, 0.4, 1.0])

    def test_first_graphs_have_about_eight_calls(self):
        self.assertEqual([call_rules.first_calls(sets) for sets in (1, 3, 4, 7, 9)], [8, 6, 8, 7, 9])


# Names and order, as vLLM's library registers them.
FA3_SCHEMAS = {
    "get_scheduler_metadata": "batch_size max_seqlen_q max_seqlen_k num_heads num_heads_k headdim headdim_v "
    "qkv_dtype seqused_k cu_seqlens_q cu_seqlens_k cu_seqlens_k_new seqused_q leftpad_k page_size "
    "max_seqlen_k_new is_causal window_size_left window_size_right has_softcap num_splits pack_gqa sm_margin",
    "fwd": "q k v k_new v_new q_v out cu_seqlens_q cu_seqlens_k cu_seqlens_k_new seqused_q seqused_k "
    "max_seqlen_q max_seqlen_k page_table kv_batch_idx leftpad_k rotary_cos rotary_sin seqlens_rotary "
    "q_descale k_descale v_descale softmax_scale is_causal window_size_left window_size_right softcap "
    "is_rotary_interleaved scheduler_metadata num_splits pack_gqa sm_margin s_aux cp_world_size cp_rank "
    "cp_tot_seqused_k"}


class Regret(FolderTest):
    def file(self, name, **times):
        """Of {problem: (kernel, us)}; without microseconds the call was wrong."""
        rows = [{"problem": problem, "found": {"ours": {"said": f"{kernel}, 1 launches", **({"p50_us": us} if us else {})}}}
                for problem, (kernel, us) in times.items()]
        return self.write(name, json.dumps({"rows": rows}))

    def test_is_over_the_fastest_of_what_all_kernels_have(self):
        tiled = self.file("tiled", a=("tiled", 30), b=("tiled", 10), c=("tiled", 5), d=("tiled", None))
        split = self.file("split", a=("split", 20), b=("split", 11), c=("split", 5), d=("split", 9))
        choice = self.file("choice", a=("tiled", 29), b=("tiled", 12), c=("split", 7), d=("split", 9), e=("split", 1))
        kernels = [call_regret.times_of(each) for each in (tiled, split)]
        rows = call_regret.regrets(call_regret.times_of(choice), kernels)
        self.assertEqual(rows, [("a", "tiled", "split", 0.5), ("b", "tiled", "tiled", 0), ("c", "split", "tiled", 0)])
        said = call_regret.text_of(rows)
        self.assertIn("3 problems: 16.67% on average, 50.0% at most, the fastest for 2", said)
        self.assertRegex(said, r"^a +tiled +split +50.0%\n3 problems")
        self.assertEqual(call_regret.text_of([]), "no problem has times of all kernels")


class Contenders(unittest.TestCase):
    def test_of_fa3_come_in_both_forms_or_not_at_all(self):
        known = call_contenders.contenders("few")
        self.assertLess({*call_rules.FA3, "ours"}, set(known))
        self.assertEqual(call_rules.wanted_contenders(["ours", "fa3", "torch"], known, True),
                         ["ours", "fa3", "fa3_planned", "torch"])
        self.assertEqual(call_rules.wanted_contenders(["fa3_planned"], known, True), ["fa3_planned"])
        self.assertEqual(call_rules.wanted_contenders(known, known, False),
                         [name for name in known if name not in call_rules.FA3])
        self.assertEqual(call_rules.wanted_contenders(["fa3"], call_contenders.contenders("varlen"), True),
                         ["fa3", "fa3_planned"])
        with self.assertRaisesRegex(ValueError, "fa4 is none of the contenders ours, "):
            call_rules.wanted_contenders(["ours", "fa4"], known, True)

    def test_of_fa3_are_planned_with_the_arguments_of_the_call(self):
        ops = TORCH.ops._vllm_fa3_C
        for planned in (False, True):
            ops.reset_mock()
            q, k, v = mock.MagicMock(shape=(16, 64, 4, 128)), mock.MagicMock(shape=(16, 8, 8192, 128)), mock.MagicMock()
            call, said = call_contenders.fa3_by(planned)(q, k, v, False)
            call()
            call()
            self.assertEqual("ahead" in said, planned)
            given = {}
            for name, schema in FA3_SCHEMAS.items():
                for made in getattr(ops, name).call_args_list:
                    given[name] = dict(zip(schema.split(), made.args, strict=True))
            self.assertEqual((ops.get_scheduler_metadata.call_count, ops.fwd.call_count), (int(planned), 2))
            call = given["fwd"]
            if not planned:
                self.assertIsNone(call["scheduler_metadata"])
                continue
            self.assertIs(call["scheduler_metadata"], ops.get_scheduler_metadata.return_value)
            plan = given["get_scheduler_metadata"]
            self.assertEqual([plan[name] for name in FA3_SCHEMAS["get_scheduler_metadata"].split()[:7]],
                             [16, 4, 8192, 64, 8, 128, 128])
            self.assertIs(plan["qkv_dtype"], q.dtype)
            for name in set(plan) & set(call) - {"seqused_k"}:
                self.assertEqual(plan[name], call[name], name)

    def test_of_records_are_planned_with_the_arguments_of_the_call_too(self):
        peer = object.__new__(peer_libraries.Fa3)
        peer.torch, peer.library = TORCH, mock.MagicMock()
        peer.library.fwd.return_value = ["out", "lse"]
        peer.shape = {"batch": 2, "seq_q": 4, "seq_kv": 8192, "heads_q": 64, "heads_kv": 8, "head_dim": 128,
                      "causal": True}
        q = mock.MagicMock()
        q.transpose().contiguous().reshape.return_value = q
        peer._inputs = mock.MagicMock(sets=[(q, q, q)])
        peer.begin()
        peer.lay_out()
        self.assertEqual(peer.attend(q, q, q), "out")
        given = {name: dict(zip(schema.split(), getattr(peer.library, name).call_args.args, strict=True))
                 for name, schema in FA3_SCHEMAS.items()}
        plan, call = given["get_scheduler_metadata"], given["fwd"]
        self.assertIs(call["scheduler_metadata"], peer.library.get_scheduler_metadata.return_value)
        self.assertEqual([plan[name] for name in FA3_SCHEMAS["get_scheduler_metadata"].split()[:7]],
                         [2, 4, 8192, 64, 8, 128, 128])
        self.assertIs(plan["qkv_dtype"], q.dtype)
        for name in set(plan) & set(call) - {"seqused_k"}:
            self.assertEqual(plan[name], call[name], name)

    def test_have_grouped_heads_as_they_are_in_packed_sequences(self):
        q, k, v, cu = (mock.MagicMock() for _ in range(4))
        call, _ = call_contenders.flash_packed(q, k, v, cu, 512, True)
        call()
        self.assertEqual(TORCH.ops.aten._flash_attention_forward.call_args.args,
                         (q, k, v, cu, cu, 512, 512, 0.0, True, False))


class Graph:
    """Takes `us` a replay, and more joules with every window that anybody has: a drift."""

    calls, windows = 1, 0

    def __init__(self, name, us, log):
        self.name, self.us, self.log = name, us, log

    def replay_us(self):
        return self.us

    def median(self, warm_s):
        self.log.append((self.name, warm_s))
        return self.us

    def energy(self, seconds, _sensors):
        self.log.append((self.name, seconds))
        Graph.windows += 1
        if self.name == "flash":
            raise RuntimeError("it broke")
        return {"steady_us": self.us, "idle_share": 0.001 * Graph.windows, "sm_mhz": None, "watts": 600.0,
                "joules": 1.0 + 0.1 * Graph.windows, "energy_s": seconds}


class Times(unittest.TestCase):
    def times(self, **us):
        log, found = [], {}
        graphs = {name: Graph(name, each, log) for name, each in us.items()}
        Graph.windows = 0

        def prepared(name, *_):
            if name not in graphs:
                raise RuntimeError("no schedule")
            return graphs[name], {"said": name, "error": 0.5}
        args = argparse.Namespace(mode="few", seed=1, rounds=2, energy=3.0)
        with mock.patch.object(call_times, "prepared_graph", prepared), mock.patch.object(call_times, "Sensors"):
            call_times.times_of({name: name for name in [*us, "fa3_planned"]}, [], None, found, lambda: None, args)
        return log, found

    def test_have_joules_of_two_windows_in_mirrored_order(self):
        log, found = self.times(ours=20.0, fa3=25.0, torch=30.0)
        self.assertEqual(log[-6:], [(name, 1.5) for name in ("ours", "fa3", "torch", "torch", "fa3", "ours")])
        for name in ("ours", "fa3", "torch"):
            self.assertAlmostEqual(found[name]["joules"], 1.35)
            self.assertEqual((found[name]["energy_s"], len(found[name]["windows"])), (3.0, 2))
            self.assertNotIn("sm_mhz", found[name])
        self.assertEqual(found["ours"]["idle_share"], 0.006)

    def test_have_no_joules_where_a_window_fails_and_the_others_go_on(self):
        _, found = self.times(ours=20.0, flash=25.0)
        self.assertIn("joules", found["ours"])
        self.assertEqual((found["flash"]["why_no_joules"], found["flash"]["p50_us"]), ("it broke", 25.0))
        one = call_rules.mean_of_windows([{"joules": 1.0, "steady_us": 2.0}, {"steady_us": 4.0, "why_no_joules": "x"}])
        self.assertEqual(one, {"steady_us": 3.0, "why_no_joules": "x"})

    def test_go_on_where_one_contender_raises(self):
        _, found = self.times(ours=20.0)
        self.assertEqual(found["fa3_planned"], {"why_not": "no schedule"})
        self.assertEqual(found["ours"]["p50_us"], 20.0)

    def test_are_warm_as_long_as_the_slowest_needs(self):
        log, _ = self.times(ours=1500.0, torch=2500.0)
        self.assertEqual({warm_s for _, warm_s in log[:4]}, {1.0})
        log, _ = self.times(ours=1500.0, torch=1600.0)
        self.assertEqual({warm_s for _, warm_s in log[:4]}, {0.4})

    def test_of_the_host_go_on_where_a_backend_refuses(self):
        def refuse():
            raise RuntimeError("No available kernel\nand more")
        found, why_not = call_times.host_times({"ours": (lambda: None, contextlib.nullcontext),
                                                "flash": (refuse, contextlib.nullcontext),
                                                "cudnn": (lambda: None, refuse),
                                                "torch": (lambda: None, contextlib.nullcontext)})
        self.assertEqual(list(found), ["ours", "torch"])
        self.assertEqual(why_not, {"flash": "No available kernel", "cudnn": "No available kernel"})


class Once(unittest.TestCase):
    def test_a_call_that_fails_costs_itself_alone(self):
        def fails_in(call_number):
            calls = []

            def call():
                calls.append(call_number)
                if len(calls) == call_number:
                    raise RuntimeError("it broke")
            return lambda *_: (call, "it")
        found, profiler = {}, TORCH.cuda.profiler
        profiler.reset_mock()
        with mock.patch.object(call_times, "ClockProbe"):
            call_times.call_once({"ours": fails_in(0), "flash": fails_in(2), "cudnn": fails_in(1), "fa3": fails_in(0)},
                                 (), found)
        self.assertEqual({name: each["is_called"] for name, each in found.items()},
                         {"ours": True, "flash": True, "cudnn": False, "fa3": True})
        self.assertEqual((profiler.start.call_count, profiler.stop.call_count), (3, 3))
        # A mark of each that came so far, and no kernel behind that of flash.
        text = HEADER + MARK + OURS + MARK.replace('"0"', '"2"', 1) + MARK.replace('"0"', '"3"', 1)
        calls = call_counters.calls_of(text + OURS.replace('"1","7"', '"4","7"'), found)
        self.assertEqual({name: each.get("whole", each).get("kernels") for name, each in calls.items()},
                         {"ours": 1, "flash": None, "cudnn": None, "fa3": 1})
        self.assertEqual(calls["flash"], {"why_not": "it broke"})


class Load:
    """Watts on a counter that steps every 100 ms; a reading takes a millisecond."""

    def __init__(self, watts, steps=True):
        self.watts, self.steps, self.now_s = watts, steps, 0.0337

    def joules(self):
        self.now_s += 1e-3
        return self.watts * 0.1 * (self.now_s // 0.1) if self.steps else None

    def window(self, seconds):
        window = peer_gpu.EnergyWindow({"settle_s": 0.5, "window_s": seconds}, self.joules)
        with mock.patch.object(peer_gpu.time, "monotonic", lambda: self.now_s):
            while window.next() != "end":
                self.now_s += 1e-3
        return window.energy()


class Energy(unittest.TestCase):
    TIMED = {"us": 20.0, "idle_share": 0.001, "window_s": 3.0, "launches": 150_000}

    def test_is_read_from_step_to_step_and_divided_among_calls(self):
        for watts in (120, 690):
            found = call_rules.energy_of(Load(watts).window(3), self.TIMED, 1500.0)
            self.assertAlmostEqual(found["watts"] / watts, 1, delta=0.002)
            self.assertAlmostEqual(found["joules"] / (watts * 20e-6), 1, delta=0.002)
            self.assertGreaterEqual(found["energy_s"], 2.9)
            self.assertEqual((found["sm_mhz"], found["steady_us"]), (1500.0, 20.0))

    def test_is_absent_without_a_counter(self):
        found = call_rules.energy_of(Load(700, steps=False).window(0.1), self.TIMED, None)
        self.assertNotIn("joules", found)
        self.assertIn("counter", found["why_no_joules"])

    def test_is_called_invalid_where_the_gpu_waited(self):
        each = {"p50_us": 20.0, "said": "it"} | call_rules.energy_of(Load(700).window(1), self.TIMED, 1.0)
        row = {"problem": "p", "bytes": 40e6, "found": {"ours": each}}
        self.assertIn("2 TB/s, 14 mJ at 700 W, [it]", call_rules.text_of(row))
        each["idle_share"] = 0.05
        self.assertIn("INVALID", call_rules.text_of(row))


class Rows(FolderTest):
    def test_are_written_as_they_come(self):
        now = [0.0]
        path = self.path / "out.json"
        record = call_rules.Record(path, {"mode": "few"}, 10, lambda: now[0])
        row = record.row({"problem": "p"})
        row["found"] = 1
        record.save()
        self.assertEqual(json.loads(path.read_text()), {"mode": "few", "rows": [{"problem": "p", "found": 1}]})
        self.assertFalse(record.is_late())
        now[0] = 10.0
        self.assertTrue(record.is_late())
        self.assertFalse(call_rules.Record(None, {}, 0, lambda: now[0]).is_late())

    def test_know_how_much_time_is_left(self):
        now = [5.0]
        record = call_rules.Record(None, {}, 10, lambda: now[0])
        now[0] = 8.0
        self.assertEqual(record.left_s(), 7.0)
        self.assertEqual(call_rules.Record(None, {}).left_s(), float("inf"))

    def test_say_what_failed(self):
        row = {"problem": "p", "flop": 4e9, "found": {"ours": {"p50_us": 10.0, "said": "it"}, "fa3": {"why_not": "no"},
                                                      "cudnn": {"p50_us": 11.0, "said": "x"}}}
        self.assertEqual(call_rules.text_of(row),
                         "p: ours 10.00 us, 400 TFLOP/s, [it]; fa3: no; cudnn 11.00 us, 364 TFLOP/s, 1.10x")
        self.assertEqual(call_rules.text_of({**row, "why_not": "late"}), "p: late")

    def test_graphs_use_each_set_equally_often(self):
        self.assertEqual([call_rules.calls_of_graph(us, sets, 400) for us, sets in
                          ((3.0, 4), (13.0, 7), (170.0, 2), (5000.0, 3), (0.01, 4))], [136, 35, 4, 3, 512])
        self.assertEqual(call_rules.calls_of_graph(20.0, 7, 0), 7)


class Counters(unittest.TestCase):
    def test_are_those_of_the_profiles(self):
        text = (ROOT / "ablations/record/profile.cc").read_text(encoding="utf-8")
        for name in (*call_counters.COUNTERS.values(), *call_counters.STALLS):
            self.assertIn(f'"{name}"', text)

    def test_are_asked_for_where_the_gpu_has_them(self):
        query = "gpu__time_duration  Counter  nanosecond  what it is\nsm__inst_executed_pipe_xu   Counter\n"
        wanted = [DURATION, XU, "sm__inst_executed_pipe_xun.sum", "launch__registers_per_thread"]
        self.assertEqual(call_counters.known_metrics(wanted, query), [DURATION, XU, "launch__registers_per_thread"])

    def test_of_several_launches_are_read(self):
        launches = call_counters.parse_csv(SAID + HEADER + MARK + TWO + "a program's last word\n==PROF== the end\n")
        self.assertEqual([each["kernel"] for each in launches],
                         ["stamp", "void sdpa<8, (bool)1>(Params)", "join(Params)"])
        self.assertEqual(launches[1]["metrics"], {DURATION: 15000, XU: 10})
        self.assertEqual((launches[1]["grid"], launches[1]["block"]), ("(64, 8, 1)", "(128, 1, 1)"))

    def test_that_ncu_calls_not_available_are_absent(self):
        launch, = call_counters.parse_csv(HEADER + MARK + line(0, "stamp", XU, "n/a") + line(0, "stamp", READ, "nan"))
        self.assertEqual(launch["metrics"], {DURATION: 1500})

    def test_that_cannot_be_read_are_an_error(self):
        for text, said in ((SAID + "==ERROR== ERR_NVGPUCTRPERM - no permission\n", "ERR_NVGPUCTRPERM"),
                           ("", "printed nothing"), (HEADER, "no counters"),
                           (HEADER + MARK + '"1","7"\n', "fit"),
                           (HEADER.replace("Metric Value", "X") + MARK, "column")):
            with self.assertRaisesRegex(ValueError, said):
                call_counters.parse_csv(text)

    def calls(self, text, **found):
        return call_counters.calls_of(text, {name: {"said": name, "why_not": "called once", "is_called": True} | more
                                             for name, more in found.items()})

    def test_go_to_the_call_behind_each_mark(self):
        text = HEADER + MARK + TWO + MARK.replace('"0"', '"3"', 1) + OURS.replace('"1","7"', '"4","7"')
        calls = self.calls(text, ours={}, flash={"is_called": False, "why_not": "no"}, fa3={})
        self.assertEqual({name: each.get("whole", each).get("kernels") for name, each in calls.items()},
                         {"ours": 2, "flash": None, "fa3": 1})
        self.assertEqual(calls["flash"], {"why_not": "no"})
        with self.assertRaisesRegex(ValueError, "2 marks for 1"):
            self.calls(text, ours={})
        with self.assertRaisesRegex(ValueError, "ahead"):
            self.calls(HEADER + OURS, ours={})
        self.assertEqual(self.calls("", ours={"is_called": False}), {"ours": {"why_not": "called once"}})

    def test_of_a_call_add_up(self):
        it = self.calls(HEADER + MARK + TWO, ours={})["ours"]["whole"]
        self.assertEqual((it["kernels"], it["duration_ns"], it["mufu_pct"]), (2, 20000, 20))
        self.assertNotIn("dram_read_bytes", it)
        self.assertNotIn("dram_tb_per_s", it)
        more = line(1, "", READ, "30,000,000") + line(1, "", WRITE, "15000000")
        it = self.calls(HEADER + MARK + OURS + more, ours={})["ours"]["whole"]
        self.assertAlmostEqual(it["dram_tb_per_s"], 45e6 / 15e-6 / 1e12)

    def test_of_stalls_are_shares(self):
        stalls = "".join(line(1, "", call_counters.stall_counter(reason), value)
                         for reason, value in (("wait", 1), ("gmma", 3), ("misc", 0)))
        it = self.calls(HEADER + MARK + OURS + stalls, ours={})["ours"]
        self.assertEqual(it["whole"]["stalls"], {"gmma": 0.75, "wait": 0.25})
        row = {"problem": "p", "cache_control": "all", "calls": {"ours": it, "fa3": {"why_not": "no"}}}
        self.assertEqual(call_counters.text_of(row),
                         "p (all): ours 15.00 us in 1 kernels, mufu 10%, gmma 75%, wait 25%; fa3: no")

    def test_cases_are_problems(self):
        for case in call_counters.CASES:
            self.assertIn(case.name, [each.name for each in call_rules.PROBLEMS[case.mode](1)])

    def test_peers_are_the_fastest_that_are_right(self):
        case = call_counters.CASES[0]
        times = [{"problem": case.name, "found": {"ours": {"p50_us": 1}, "read": {"p50_us": 0.5}, "fa3": {"p50_us": 3},
                                                  "torch": {"p50_us": 2}, "flash": {"why_not": "wrong"}}}]
        args = argparse.Namespace(peers=None, fa3=None)
        self.assertEqual(call_counters.peers_of(case, times, args), ["torch"])
        self.assertEqual(call_counters.peers_of(case, [], args), ["flash"])
        args.fa3 = "a library"
        self.assertEqual(call_counters.peers_of(case, [], args), ["fa3"])
        times[0]["found"]["fa3_planned"] = {"p50_us": 1.5}
        self.assertEqual(call_counters.peers_of(case, times, args), ["fa3_planned"])
        args.fa3 = None
        self.assertEqual(call_counters.peers_of(case, times, args), ["flash"])
        args.peers = "cudnn,torch"
        self.assertEqual(call_counters.peers_of(case, times, args), ["cudnn", "torch"])

    def test_a_program_that_fails_or_never_ends_says_so(self):
        program = [sys.executable, "-c", "print('Error: it broke', flush=True); import time; time.sleep({})"]
        for seconds, end, said in ((60, 0.5, "no end"), (0, 20, "exit code 3: Error: it broke")):
            command = [*program[:2], program[2].format(seconds) + "; raise SystemExit(3)"]
            with self.assertRaisesRegex(RuntimeError, said):
                call_counters.output_of(command, end)

    def test_a_program_whose_child_keeps_the_pipe_open_is_given_up(self):
        child = "import time; time.sleep(9)"
        program = ("import subprocess, sys, time; "
                   f"subprocess.Popen([sys.executable, '-c', {child!r}], start_new_session=True); "
                   "print('Error: it broke', flush=True); time.sleep(60)")
        begun = time.monotonic()
        with (mock.patch.object(call_counters, "END_S", 0.1),
              self.assertRaisesRegex(RuntimeError, "no end within 2 s: Error: it broke")):
            call_counters.output_of([sys.executable, "-c", program], 2)
        self.assertLess(time.monotonic() - begun, 8)


# Counts for whom it is asked, breaks at decode_b1_cold, and writes what call_times.py would.
NCU = """#!{python}
import json, sys
if "--version" in sys.argv: sys.exit(print("NVIDIA Nsight Compute\\nVersion 2026.1"))
if "--query-metrics" in sys.argv: sys.exit(print("gpu__time_duration x\\nsm__cycles_active x"))
def of(name): return sys.argv[sys.argv.index(name) + 1]
if of("--only") == "decode_b1_cold": sys.exit("==ERROR== it broke")
found = {{name: dict(said=of("--cache-control"), why_not="called once", is_called=True)
         for name in of("--once").split(",")}}
json.dump(dict(rows=[dict(problem=of("--only"), found=found)]), open(of("--out"), "w"))
print({header!r} + {mark!r} + {ours!r} + {other_mark!r} + {other!r})
"""


class Program(FolderTest):
    def test_records_each_problem_and_goes_on_where_one_fails(self):
        ncu = self.write("ncu", NCU.format(python=sys.executable, header=HEADER, mark=MARK, ours=OURS,
                                           other_mark=line(2, "stamp", DURATION, "1"),
                                           other=line(3, "theirs()", DURATION, "18,000")), 0o755)
        code, said = self.run_main(call_counters.main, "--ncu", ncu, "--out", self.path / "out.json", "--raw",
                                   self.path / "raw", "--only", "b1_h64x8,decode_b1_cold,long", "--fa3", "lib.so")
        self.assertEqual(code, 0)
        record = json.loads((self.path / "out.json").read_text(encoding="utf-8"))
        self.assertEqual(record["ncu"], "Version 2026.1")
        self.assertEqual(record["metrics"], [DURATION, call_counters.COUNTERS["cycles_active"],
                                             call_counters.COUNTERS["registers"]])
        rows = {row["problem"]: row for row in record["rows"]}
        self.assertEqual(list(rows), ["b1_h64x8_s4x8192_d128", "b1_h64x8_s16x8192_d128", "decode_b1_cold", "long"])
        self.assertIn("it broke", rows["decode_b1_cold"]["why_not"])
        few = rows["b1_h64x8_s4x8192_d128"]["calls"]
        self.assertEqual({name: (each["said"], each["whole"]["duration_ns"]) for name, each in few.items()},
                         {"ours": ("all", 15000), "fa3": ("all", 18000)})
        self.assertEqual(rows["long"]["calls"]["cudnn"]["said"], "none")
        self.assertTrue((self.path / "raw/long.txt").exists())
        self.assertIn("it broke", (self.path / "raw/decode_b1_cold.txt").read_text(encoding="utf-8"))
        self.assertIn("decode_b1_cold: exit code 1: ==ERROR== it broke", said)

    def test_ends_a_problem_when_the_limit_comes_and_begins_no_further_one(self):
        ncu = self.write("ncu", NCU.format(python=sys.executable, header=HEADER, mark=MARK, ours=OURS,
                                           other_mark="", other="").replace(
                                               "def of", "import time\nif 'prompts' in str(sys.argv): "
                                               "time.sleep(60)\ndef of"), 0o755)
        begun = time.monotonic()
        code, said = self.run_main(call_counters.main, "--ncu", ncu, "--only", "prompts", "--fa3", "lib.so",
                                   "--limit", 4)
        self.assertLess(time.monotonic() - begun, 20)
        self.assertEqual(code, 0)
        self.assertRegex(said, "prompts_h16x16_d128: no end within [0-4] s")
        self.assertIn("prompts_h8x8_d256: the time limit came first", said)

    def test_asks_the_toolkit_where_path_has_no_ncu(self):
        with (mock.patch.object(call_counters.shutil, "which", return_value=None),
              mock.patch.object(call_counters, "TOOLKIT_NCU", str(self.path / "toolkit_ncu")),
              self.assertRaisesRegex(SystemExit, "toolkit_ncu")):
            self.run_main(call_counters.main)

    def test_says_that_there_is_no_ncu(self):
        with self.assertRaisesRegex(SystemExit, "no_such_ncu"):
            self.run_main(call_counters.main, "--ncu", self.path / "no_such_ncu")

# SPDX-License-Identifier: Apache-2.0
"""micro/record.py: from Google Benchmark's JSON and raw samples to micro.json and a report."""

import contextlib
import io
import json
import unittest

import record
from fixture import FolderTest

SLOW = 0x004  # NVML's sw_power_cap


def make_case(name, **changes):
    return {"name": name, "kind": "cycles", "measures": "cycles", "unit": "cycles", "min_cc": 80,
            "max_cc": 0, "peak_case": "", "kernels": [], "evidence": [], "published": [],
            "parameters": {}, "limits": {}} | changes


class RecordTest(FolderTest):
    def write_run(self, cases, values, context=None, **sample):
        """values: {case: {process: [median of each repetition]}}, of three samples each."""
        (self.path / "cases.json").write_text(json.dumps({"cases": cases}))
        lines, rows = [], {}
        for name, processes in values.items():
            for process, repetitions in processes.items():
                for repetition, median in enumerate(repetitions):
                    lines += [json.dumps({"case": name, "process": process, "value": value,
                                          "repetition": repetition, "r2": 1.0, "sm_mhz": 1980,
                                          "limit": None} | sample)
                              for value in (median, 2 * median, median / 2)]
                    rows.setdefault(process, []).append(
                        {"run_type": "iteration", "value": median,
                         "run_name": f"{name}/iterations:12/repeats:3/manual_time"})
        (self.path / "micro_raw.jsonl").write_text("\n".join(lines) + "\n")
        for process, found in rows.items():
            self.write_process(process, found, context)

    def write_process(self, process, rows, context=None):
        (self.path / f"micro_process{process}.json").write_text(json.dumps({
            "context": {"gpu": "NVIDIA H200", "gpu_slug": "h200", "gpu_uuid": "GPU-1",
                        "compute_capability": "90", "sm_count": "132", "nvcc": "13.0",
                        "max_sm_clock_mhz": "1980", "dram_gb_per_s": "4900",
                        "date": "2026-11-21T01:00:00", "warpledger_process": str(process)}
                       | (context or {}),
            "benchmarks": rows + [{"run_type": "aggregate", "run_name": "x", "value": 0}]}))

    def only(self):
        micro = record.collect(self.path)["micro"]
        self.assertEqual(len(micro), 1)
        return micro[0]

    def test_the_value_is_a_median_of_medians(self):
        self.write_run([make_case("a/b/latency")],
                       {"a/b/latency": {0: [20, 24, 100], 1: [25, 25, 25], 2: [26, 26, 30]}})
        entry = self.only()
        self.assertEqual(entry["value"], 25)
        self.assertEqual((entry["n_processes"], entry["n_samples"]), (3, 27))
        # Mean 25, standard deviation 1, t of 2 degrees of freedom.
        self.assertAlmostEqual(entry["ci_high"] - 25, 4.303 / 3 ** 0.5)
        self.assertAlmostEqual(25 - entry["ci_low"], 4.303 / 3 ** 0.5)

    def test_one_process_has_no_interval(self):
        self.write_run([make_case("a/b/latency")], {"a/b/latency": {0: [20, 24]}})
        self.assertIsNone(self.only()["ci_low"])

    def test_percentages_come_from_the_limit_and_from_the_measured_peak(self):
        self.write_run([make_case("a/b/rate", peak_case="a/c/rate"), make_case("a/c/rate")],
                       {"a/b/rate": {0: [12.0]}, "a/c/rate": {0: [15.0]}}, limit=16.0)
        first, second = record.collect(self.path)["micro"]
        self.assertEqual(first["percent_of_limit"], 75)
        self.assertEqual(first["percent_of_peak"], 80)
        self.assertIsNone(second["percent_of_peak"])

    def test_published_figures_are_those_of_the_gpu(self):
        published = [{"cc": cc, "value": value, "source": f"cc {cc}", "why": ""}
                     for cc, value in ((0, 20), (89, 30), (90, 16))]
        self.write_run([make_case("a/b/latency", published=published)], {"a/b/latency": {0: [24]}})
        entry = self.only()
        self.assertEqual([row["source"] for row in entry["published"]], ["cc 0", "cc 90"])
        self.assertEqual([row["difference_percent"] for row in entry["published"]], [20, 50])

    def test_counts_samples_that_were_held_back(self):
        self.write_run([make_case("a/b/latency")], {"a/b/latency": {0: [20]}}, throttle=SLOW)
        self.assertEqual(self.only()["throttled_samples"], 3)
        self.write_run([make_case("a/b/latency")], {"a/b/latency": {0: [20]}}, throttle=1)
        self.assertEqual(self.only()["throttled_samples"], 0)

    def test_says_why_a_case_was_not_run(self):
        self.write_run([make_case("a/b/latency"), make_case("a/c/latency", max_cc=89),
                        make_case("a/d/latency"), make_case("a/e/latency")],
                       {"a/b/latency": {0: [20]}})
        self.write_process(0, [
            {"run_type": "iteration", "value": 20, "run_name": "a/b/latency/iterations:12"},
            {"run_type": "iteration", "run_name": "a/d/latency/manual_time",
             "error_occurred": True, "error_message": "too big"}])
        reasons = {row["name"]: row["reason"]
                   for row in record.collect(self.path)["not_run"]}
        self.assertEqual(set(reasons), {"a/c/latency", "a/d/latency", "a/e/latency"})
        self.assertIn("8.0 to 8.9", reasons["a/c/latency"])
        self.assertEqual(reasons["a/d/latency"], "too big")
        self.assertIn("not run", reasons["a/e/latency"])

    def test_refuses_files_that_disagree(self):
        case, values = [make_case("a/b/latency")], {"a/b/latency": {0: [20]}}
        self.write_run(case, values)
        self.write_process(0, [
            {"run_type": "iteration", "value": 21, "run_name": "a/b/latency/iterations:12"}])
        with self.assertRaisesRegex(record.RecordError, "Google Benchmark says"):
            record.collect(self.path)
        self.write_run([make_case("a/x/latency")], values)
        with self.assertRaisesRegex(record.RecordError, "doesn't list"):
            record.collect(self.path)
        self.write_run(case, values)
        self.write_process(1, [], {"gpu_uuid": "GPU-2"})
        with self.assertRaisesRegex(record.RecordError, "different GPUs"):
            record.collect(self.path)

    def test_drops_a_sample_that_a_kill_cut_off(self):
        self.write_run([make_case("a/b/latency")], {"a/b/latency": {0: [20]}})
        with open(self.path / "micro_raw.jsonl", "a", encoding="utf-8") as raw:
            raw.write('{"case":"a/b/la')
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(self.only()["n_samples"], 3)
        self.assertIn("inside a line", said.getvalue())

    def test_leaves_out_a_process_that_was_stopped(self):
        self.write_run([make_case("a/b/latency")], {"a/b/latency": {0: [20], 1: [90]}})
        (self.path / "micro_process1.json").write_text('{"context": {')
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(self.only()["value"], 20)
        self.assertIn("micro_process1.json", said.getvalue())

    def test_each_process_keeps_its_own_medians(self):
        self.write_run([make_case("a/b/latency")], {"a/b/latency": {0: [20, 24], 1: [25, 25]}})
        self.assertEqual(self.only()["by_process"],
                         [{"value": 22, "repetitions": [20, 24], "sm_mhz": 1980},
                          {"value": 25, "repetitions": [25, 25], "sm_mhz": 1980}])

    def test_the_program_writes_pages_and_names_what_is_missing(self):
        self.write_run([make_case("a/b/latency")], {"a/b/latency": {0: [20], 1: [22]}})
        micro, out = self.path / "micro.json", self.path / "h200"
        self.assertEqual(record.main(["collect", "--run", str(self.path)]), 0)
        (out / "micro").mkdir(parents=True)
        (out / "micro" / "notes.md").write_text("somebody's own")
        self.assertEqual(record.main(["report", "--micro", str(micro), "--out", str(out),
                                      "--noplots"]), 0)
        self.assertEqual({path.name for path in (out / "micro").iterdir()}, {"a.md", "notes.md"})
        self.assertIn("| b/latency | 21.00 |",
                      (out / "micro" / "a.md").read_text(encoding="utf-8"))
        self.assertIn("[a](micro/a.md)", (out / "micro.md").read_text(encoding="utf-8"))
        code, said = self.run_main(record.main, "collect", "--run", self.path / "no")
        self.assertEqual(code, 1)
        self.assertIn("cases.json", said)

    def test_figures_that_cant_be_drawn_are_an_error_that_says_so(self):
        self.write_run([make_case("a/b/latency")], {"a/b/latency": {0: [20]}})
        self.assertEqual(record.main(["collect", "--run", str(self.path)]), 0)
        code, said = self.run_main(record.main, "report", "--micro", self.path / "micro.json",
                                   "--out", self.path, "--python", "false")
        self.assertEqual(code, 1)
        self.assertIn("--noplots", said)


class RowsOnLinesTest(unittest.TestCase):
    def test_each_row_has_a_line_and_nothing_is_lost(self):
        value = {"version": 1, "gpu": {"name": "é"}, "rows": [{"a": 1.5}, {"a": None}], "none": []}
        text = record.rows_on_lines(value)
        self.assertEqual(json.loads(text), value)
        self.assertEqual(len(text.splitlines()), 9)

# SPDX-License-Identifier: Apache-2.0
"""plots/micro_data.py: the formulas that pages and figures of microbenchmarks rest on."""

import gzip
import json
import unittest

from fixture import FolderTest

from plots import micro_data


class FormulaTest(unittest.TestCase):
    def test_littles_law_is_bytes_over_latency(self):
        # 8192 B in 1000 cycles of 1 ns on 100 SMs: 819.2 GB/s.
        self.assertAlmostEqual(micro_data.littles_law_gb_per_s(8192, 1000, 100, 1000), 819.2)

    def test_littles_law_inverts(self):
        rate = micro_data.littles_law_gb_per_s(24576, 700, 132, 1980)
        self.assertAlmostEqual(micro_data.bytes_for_bandwidth(rate, 700, 132, 1980), 24576)
        self.assertAlmostEqual(micro_data.effective_latency_cycles(24576, rate, 132, 1980), 700)

    def test_spread_is_the_range_in_percent_of_the_median(self):
        self.assertAlmostEqual(micro_data.spread_percent([98, 100, 103]), 5)
        self.assertIsNone(micro_data.spread_percent([98]))
        self.assertIsNone(micro_data.spread_percent([]))

    def test_break_even_lies_on_the_line_between_two_points(self):
        free = [(0, 1), (10, 10), (20, 20)]
        # Excess over 1.1 times the free curve: 0.9 at 10, -0.1 at 20.
        self.assertAlmostEqual(micro_data.break_even([(0, 8), (10, 20), (20, 20)], free, 0.1), 19)

    def test_break_even_is_the_last_crossing(self):
        free = [(0, 1), (1, 1), (2, 1), (3, 1)]
        self.assertAlmostEqual(micro_data.break_even([(0, 1), (1, 2), (2, 2), (3, 0)], free, 0.0),
                               2.5)

    def test_break_even_needs_a_point_without_cost(self):
        self.assertIsNone(micro_data.break_even([(0, 8), (1, 8)], [(0, 1), (1, 2)]))
        self.assertIsNone(micro_data.break_even([(0, 8)], [(1, 1)]))
        self.assertEqual(micro_data.break_even([(4, 1), (8, 2)], [(4, 1), (8, 2)]), 4)

    def test_the_front_keeps_what_nothing_beats_in_both(self):
        points = [(16, 1e-7, "a"), (20, 1e-4, "b"), (12, 1e-6, "c"), (16, 1e-3, "d")]
        self.assertEqual(micro_data.pareto_front(points), [points[0], points[1]])

    def test_a_line_is_fitted_by_least_squares(self):
        # As in tests/micro/harness/line_fit_test.cc: xx = 5, xy = 6, yy = 17.
        slope, intercept, r2 = micro_data.line_fit([(1, 1), (2, 5), (3, 2), (4, 6)])
        self.assertAlmostEqual(slope, 1.2)
        self.assertAlmostEqual(intercept, 0.5)
        self.assertAlmostEqual(r2, 36 / (5 * 17))
        self.assertEqual(micro_data.line_fit([(1, 7), (2, 7)]), (0, 7, 1))

    def test_a_speedup_is_above_one_where_on_is_better(self):
        self.assertEqual(micro_data.speedup(100, 50, "cycles"), 2)
        self.assertEqual(micro_data.speedup(100, 50, "GB/s"), 0.5)
        self.assertEqual(micro_data.speedup(64, 1024, "FLOP/clk/SM", factor=2), 8)

    def test_process_values_are_medians_of_medians(self):
        samples = [{"process": 0, "repetition": r, "value": v, "sm_mhz": clock}
                   for r, v, clock in ((0, 1, 1980), (0, 3, 1980), (0, 90, None), (1, 7, 1900))]
        self.assertEqual(micro_data.process_values(samples),
                         [{"value": 5, "repetitions": [3, 7], "sm_mhz": 1980}])

    def test_numbers_have_four_significant_digits(self):
        self.assertEqual([micro_data.number(value) for value in
                          (None, 0, 15.98765, 0.19874, 4321.6, 1.1921e-07, 0.00125)],
                         ["–", "0", "15.99", "0.1987", "4322", "1.192e-07", "0.001250"])

    def test_sizes_are_in_binary_units(self):
        self.assertEqual([micro_data.size(value) for value in (512, 8192, 3 << 20, 1 << 30)],
                         ["512 B", "8 KiB", "3 MiB", "1 GiB"])


class LoadTest(FolderTest):
    def setUp(self):
        super().setUp()
        self.path = self.path / "micro.json"

    def write_record(self, entries, **changes):
        self.path.write_text(json.dumps(
            {"schema_version": 1, "gpu": {"name": "GPU", "sm_count": 132},
             "provenance": {"started": "2026-01-02"},
             "micro": [{"unit": "cycles", "value": 2, "percent_of_limit": None, "sm_mhz_p50": 1980,
                        "parameters": {}} | entry for entry in entries], "not_run": []} | changes))

    def test_a_record_without_processes_takes_them_from_its_raw_samples(self):
        self.write_record([{"name": "a/b/c"}])
        line = json.dumps({"case": "a/b/c", "process": 1, "repetition": 0, "value": 2})
        with gzip.open(self.path.parent / "micro_raw.jsonl.gz", "wt") as raw:
            raw.write(line + '\n{"case":"a/b')
        entry = micro_data.load(self.path).entry("a/b/c")
        self.assertEqual([process["value"] for process in entry["by_process"]], [2])

    def test_a_curve_rises_by_its_parameter(self):
        self.write_record([{"name": f"a/x{n}/c", "value": 10 * n, "parameters": {"n": n},
                     "by_process": []} for n in (4, 1, 2)])
        micro = micro_data.load(self.path)
        self.assertEqual(micro.curve(r"a/x\d/c", "n"), [(1, 10), (2, 20), (4, 40)])
        self.assertEqual(micro.curve(r"a/x\d", "n"), [])
        self.assertIsNone(micro.value("a/x9/c"))

    def test_what_cant_be_read_is_said_in_one_line(self):
        for text in ("{", "[]", '{"schema_version": 2}', '{"schema_version": 1}'):
            self.path.write_text(text)
            with self.assertRaises(micro_data.MicroError) as raised:
                micro_data.load(self.path)
            self.assertNotIn("\n", str(raised.exception))
            self.assertIn("micro.json", str(raised.exception))

    def test_what_a_case_lacks_or_garbles_is_named_by_its_path(self):
        for key in ("name", "unit", "value", "parameters", "percent_of_limit", "sm_mhz_p50"):
            whole = {"name": "a/b/c", "by_process": []}
            self.write_record([whole, whole])
            data = json.loads(self.path.read_text())
            del data["micro"][1][key]
            self.path.write_text(json.dumps(data))
            with self.assertRaisesRegex(micro_data.MicroError, rf"micro\[1\]\.{key} is missing"):
                micro_data.load(self.path)
        for change, where in (({"value": None}, r"micro\[0\]\.value"),
                              ({"parameters": {"n": None}}, r"micro\[0\]\.parameters\.n")):
            self.write_record([{"name": "a/b/c", "by_process": []} | change])
            with self.assertRaisesRegex(micro_data.MicroError, f"{where} must be a number, but is null"):
                micro_data.load(self.path)
        for changes in ({"gpu": {}}, {"provenance": {}}, {"micro": None}):
            self.write_record([], **changes)
            with self.assertRaisesRegex(micro_data.MicroError, next(iter(changes))):
                micro_data.load(self.path)

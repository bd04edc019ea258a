# SPDX-License-Identifier: Apache-2.0
"""reports/verdict_figures.py: what it plants in which samples, and what it counts."""

import hashlib
import json
import pathlib
import unittest
from unittest import mock

import record_files
import verdict_figures
from fixture import ROOT

RECORD = ROOT / "reports" / "data" / "h100_80gb_hbm3" / "hopper_small-20261124T130524Z.tar.zst"


def line(arm, us, with_sum=True):
    body = json.dumps({"seq": 1, "arm": arm, "us": us, "cache": "warm"}, separators=(",", ":"))[:-1]
    return f'{body},"sum":"{hashlib.sha256(body.encode()).hexdigest()[:8]}"}}' if with_sum \
        else body + "}"


def verdict(name, ratio, capped=0, shape="a", **more):
    return {"verdict": name, "ratio": ratio, "shape": shape, "n_pairs": 10,
            "power_capped": {"base_pairs": capped, "candidate_pairs": capped}, **more}


def control(kind, shape, timing, false):
    return {"kind": kind, "shape": shape, "timing_verdict": timing, "false_verdict": false,
            "holds_one": not false}


SUMMARY = {"verdicts": [verdict("ADOPT", 1.04, 9), verdict("INCONCLUSIVE", 0.98, 9),
                        verdict("BROKEN", 9.0, 9), verdict("NEUTRAL", 1.001, 0, "b"),
                        verdict("REGRESSION", 0.5, 9, "c", estimand="time")],
           "controls": [control("aa", "a", "REGRESSION", True),
                        control("aa", "b", "NEUTRAL", False),
                        control("null", "b", "INCONCLUSIVE", False)]}


def covered(design, trials, misses):
    return {"run_id": "r", "design": design, "trials": trials, "covered": trials - misses}


class DesignsBelow(unittest.TestCase):
    def test_misses_that_are_spread_evenly_are_not_correlated(self):
        self.assertEqual(verdict_figures.correlation([covered("a", 40, 2)] * 10), 0)

    def test_misses_that_lie_in_one_record_are(self):
        records = [covered("a", 40, 0)] * 9 + [covered("a", 40, 40)]
        self.assertAlmostEqual(verdict_figures.correlation(records), 1, delta=0.03)

    def test_designs_of_few_trials_do_not_count(self):
        found = verdict_figures.designs_below(
            [covered("few", 39, 39), covered("low", 40, 5), covered("high", 40, 4)], draws=10)
        self.assertEqual((found["designs"], found["below"]), (2, ["low"]))

    def test_chance_leaves_more_designs_below_where_misses_come_together(self):
        apart = [covered(f"d{i}", 200, 10) for i in range(20)]
        together = [covered(f"d{i}", 200, 100 if i == 0 else 5) for i in range(20)]
        few, many = map(verdict_figures.designs_below, (apart, together))
        self.assertGreater(few["none"], 0.9)
        self.assertLess(many["none"], 0.5)
        self.assertGreater(many["expected"], few["expected"])
        self.assertIn("1 of 20: d0", verdict_figures.below_text(many))


class Planting(unittest.TestCase):
    def test_samples_of_the_arms_alone_take_longer_and_keep_a_right_sum(self):
        self.assertEqual(verdict_figures.planted_line(line("aa", 10.0), {"aa"}, 1.02),
                         line("aa", 10.2))
        self.assertEqual(verdict_figures.planted_line(line("base", 10.0), {"aa"}, 1.02),
                         line("base", 10.0))

    def test_a_line_without_a_sum_gets_none(self):
        self.assertEqual(verdict_figures.planted_line(line("aa", 10.0, False), {"aa"}, 1.02),
                         line("aa", 10.2, False))

    def test_the_record_that_is_judged_differs_in_its_controls_alone(self):
        record = record_files.Record(RECORD)
        controls = {arm["name"] for arm in record.json("run.json")["arms"]
                    if arm["role"] in ("aa", "null")}
        seen = {}

        def judge(_program, folder):
            seen["run"] = (pathlib.Path(folder) / "run.json").read_bytes()
            seen["samples"] = (pathlib.Path(folder) / "samples.jsonl").read_text("utf-8")
            return {}

        with mock.patch.object(verdict_figures, "judge", judge):
            self.assertEqual(verdict_figures.judge_planted("program", RECORD, 2), {})
        self.assertEqual(seen["run"], record.bytes("run.json"))
        before = [json.loads(text) for text in record.text("samples.jsonl").splitlines()]
        after = [json.loads(text) for text in seen["samples"].splitlines()]
        self.assertEqual(len(before), len(after))
        for old, new in zip(before, after, strict=True):
            factor = 1.02 if old["arm"] in controls else 1
            self.assertAlmostEqual(new["us"] / old["us"], factor, places=12)
            self.assertEqual({**old, "us": 0, "sum": 0}, {**new, "us": 0, "sum": 0})


class Counting(unittest.TestCase):
    def test_verdicts_are_counted_by_regime_and_size(self):
        text = verdict_figures.decided([SUMMARY])
        self.assertIn("| capped | 2 | 50.0% | 100.0% of 1 | 0.0% of 1 | – of 0 | – of 0 |", text)
        self.assertIn("| capped, without clocks | 1 | 0.0% | 100.0% of 1 |", text)
        self.assertIn("| not capped | 1 | 0.0% | – of 0 | – of 0 | – of 0 | 100.0% of 1 |", text)

    def test_a_control_has_the_regime_of_its_shape_and_a_family_one_false_verdict(self):
        text = verdict_figures.controls([SUMMARY, SUMMARY])
        self.assertIn("| capped | 2 | 2 | 0.0% |", text)
        self.assertIn("| not capped | 4 | 0 | 100.0% |", text)
        self.assertIn("false verdict: 2 of 4.", text)

    def test_a_planted_delay_is_found_by_a_regression(self):
        text = verdict_figures.planted([SUMMARY], 2.0)
        self.assertIn("Delays of 2% planted", text)
        self.assertIn("| capped | 1 | 100.0% | 0 |", text)
        self.assertIn("| not capped | 2 | 0.0% | 1 |", text)

    def test_a_folder_without_a_run_is_refused(self):
        with self.assertRaisesRegex(record_files.RecordError, "there is no run"):
            verdict_figures.paths_of([str(ROOT / "reports" / "data" / "cpu")])


if __name__ == "__main__":
    unittest.main()

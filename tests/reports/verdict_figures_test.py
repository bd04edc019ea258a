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
            [covered("few", 39, 39), covered("low", 40, 5), covered("high", 40, 4)])
        self.assertEqual(found["designs"], 2)
        self.assertEqual([each["design"] for each in found["below"]], ["low"])

    def test_a_table_without_them_says_how_many_it_leaves_out(self):
        rows = [{"design": design, "regime": regime, "trials": trials}
                for design, trials in (("few", 39), ("fewer", 7), ("enough", 40), ("all", 30))
                for regime in ("capped", "all")]
        self.assertIn("2 with fewer than 40 trials, 46 trials",
                      verdict_figures.few_text({"rows": rows}))
        self.assertEqual(verdict_figures.few_text({"rows": rows[4:]}), "")

    def test_chances_of_misses_are_those_of_a_binomial_or_of_one_that_scatters_more(self):
        for together in 0, 0.05, 0.9:
            chances = verdict_figures.miss_chances(50, together, 50)
            mean = sum(count * chance for count, chance in enumerate(chances))
            variance = sum(count**2 * chance for count, chance in enumerate(chances)) - mean**2
            self.assertAlmostEqual(sum(chances), 1)
            self.assertAlmostEqual(mean, 50 * 0.05)
            self.assertAlmostEqual(variance, 50 * 0.05 * 0.95 * (1 + 49 * together))

    def test_misses_of_two_records_are_those_of_one_twice_as_long_where_none_come_together(self):
        self.assertAlmostEqual(verdict_figures.chance_of_more(3, [20, 30], 0),
                               verdict_figures.chance_of_more(3, [50], 0))
        # 5% of 20 and more than two of them: 1 - 0.9245.
        self.assertAlmostEqual(verdict_figures.chance_below([20], 0), 0.0755, places=4)

    def test_more_records_decide_where_misses_come_together(self):
        few, many = (verdict_figures.deciding_records(40, together) for together in (0, 0.1))
        self.assertLess(few, many)
        for count, together in (few, 0), (many, 0.1):
            self.assertLessEqual(verdict_figures.chance_below([40] * count, together), 0.05)
        self.assertGreater(verdict_figures.chance_below([40] * (many - 1), 0.1), 0.05)
        self.assertIsNone(verdict_figures.deciding_records(40, 0.999, most=2))

    def test_chance_leaves_more_designs_below_where_misses_come_together(self):
        apart = [covered(f"d{i}", 200, 10) for i in range(20)]
        together = [covered(f"d{i}", 200, 100 if i == 0 else 5) for i in range(20)]
        few, many = map(verdict_figures.designs_below, (apart, together))
        self.assertGreater(few["none"], 0.9)
        self.assertLess(many["none"], 0.5)
        self.assertGreater(many["expected"], few["expected"])
        text = verdict_figures.below_text(many)
        self.assertIn("less than 90%: 1 of 20.", text)
        self.assertIn("| `d0` | 1 | 200 | 50.0% | 100 | 100 |", text)


class Coverage(unittest.TestCase):
    def test_regimes_stand_side_by_side_and_small_designs_are_left_out(self):
        def row(regime, trials, **more):
            return {"design": "all", "boards": "all", "effect": "all", "regime": regime,
                    "records": 3, "trials": trials, "covered": trials - 1,
                    "half_width_percent_p50": 0.25, **more}

        said = {"rows": [row("all", 50), row("capped", 50), row("all", 50, design="b"),
                         row("capped", 50, design="b"), row("all", 39, design="a"),
                         row("not_capped", 39, design="a"), row("all", 9, effect="32%+"),
                         row("all", 9, effect="under 2%")]}
        designs = verdict_figures.beside(said, "design").splitlines()[2:]
        self.assertEqual(designs, ["| `b` | 3 | – | – | – | 50 | 98.0% | 0.25% |",
                                   "| all | 3 | – | – | – | 50 | 98.0% | 0.25% |"])
        self.assertEqual([line.split(" | ")[0] for line in verdict_figures.beside(
            said, "effect").splitlines()[2:]], ["| under 2%", "| 32%+", "| all"])


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

    def test_a_control_that_was_timed_alone_is_not_of_the_records_other_regime(self):
        # A record of arms alone may judge no claim, so that no verdict says the regime.
        alone = {"verdicts": [], "controls": [
            {**control("aa", "a", "NEUTRAL", False), "estimand": "own_power"},
            {**control("aa", "a", "REGRESSION", True), "estimand": "joules"},
            {**control("aa", "a", "INCONCLUSIVE", False), "estimand": "own_power"}]}
        text = verdict_figures.controls([alone])
        self.assertIn("| each arm alone | 3 | 1 | 66.7% |", text)
        self.assertNotIn("not capped", text)
        # What an arm takes in time and what it takes in joules are two questions.
        self.assertIn("false verdict: 1 of 2.", text)
        self.assertIn("| each arm alone | 3 | 33.3% | 1 |", verdict_figures.planted([alone], 2.0))

    def test_a_planted_delay_is_found_by_a_regression(self):
        text = verdict_figures.planted([SUMMARY], 2.0)
        self.assertIn("Delays of 2% planted", text)
        self.assertIn("| capped | 1 | 100.0% | 0 |", text)
        self.assertIn("| not capped | 2 | 0.0% | 1 |", text)

    def test_a_folder_without_a_run_is_refused(self):
        with self.assertRaisesRegex(record_files.RecordError, "there is no run"):
            verdict_figures.paths_of([str(ROOT / "reports" / "data" / "cpu")])

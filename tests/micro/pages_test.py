# SPDX-License-Identifier: Apache-2.0
"""micro/pages.py and micro/answers.py: what a page says, and that nothing in it is typed by hand."""

import contextlib
import json
import re
import unittest

import answers
import pages
import record
import record_files
from fixture import ROOT

from plots import micro_data, micro_render

FOLDER = contextlib.ExitStack()
unittest.addModuleCleanup(FOLDER.close)
RECORD = FOLDER.enter_context(record_files.records(
    ROOT / "reports" / "data", "micro.json", "micro-")[-1].folder()) / "micro.json"
HEAD = """\
// What does x cost?
//
// Question: what does `x` cost, in
//   cycles?
// Mechanism: a unit
// of its own.
//
// It goes on here.
//
// Expected on Hopper: 4 cycles.
// Seen on an H200: 7 cycles,
// which are not quoted.
// Falsifier: 5 cycles.

#include <a>
// Formula: not of the head.
"""


def entry(name="a/b/latency", value=10.0, **changes):
    row = {"name": name, "unit": "cycles", "value": value, "percent_of_limit": None, "ci_low": None,
           "ci_high": None, "kind": "cycles", "measures": "", "limit": None, "limit_source": None,
           "percent_of_peak": None, "r2": 1.0, "sm_mhz_p50": 1980, "throttled_samples": 0,
           "parameters": {}, "published": [],
           "by_process": [{"value": value, "repetitions": [value, value], "sm_mhz": 1980}] * 3}
    return row | changes


def process(value, repetitions, sm_mhz=1980):
    return {"value": value, "repetitions": repetitions, "sm_mhz": sm_mhz}


def micro(entries):
    return micro_data.Micro({
        "gpu": {"name": "NVIDIA H200", "sm_count": 132, "compute_capability": "9.0"},
        "provenance": {"started": "2026-11-21T01:00:00", "nvcc": "13.0", "processes": 3,
                       "n_samples": 9}, "micro": entries, "not_run": []})


def published(value, source, ours=10.0, why=""):
    return {"value": value, "source": source, "why": why,
            "difference_percent": 100 * (ours - value) / value}


class HeadTest(unittest.TestCase):
    def test_a_head_is_read_by_its_sections(self):
        self.assertEqual(pages.head_of(HEAD), {
            "Question": "what does `x` cost, in cycles?",
            "Mechanism": "a unit of its own.",
            "Expected": "(on Hopper) 4 cycles.", "Falsified": "5 cycles."})
        self.assertEqual(pages.missing_sections(HEAD), ["Formula"])

    def test_a_licence_line_above_a_head_is_no_part_of_it(self):
        licensed = f"// SPDX-License-Identifier: Apache-2.0\n{HEAD}"
        self.assertEqual(pages.head_of(licensed), pages.head_of(HEAD))

    def test_every_benchmark_says_all_five(self):
        files = sorted((ROOT / "micro").glob("*.cu"))
        self.assertGreater(len(files), 10)
        for path in files:
            source = path.read_text(encoding="utf-8")
            # Files that share a header leave the question to it.
            shared = [(ROOT / name).read_text(encoding="utf-8")
                      for name in re.findall(r'#include "(micro/\w+\.cuh)"', source)]
            with self.subTest(benchmark=path.stem):
                self.assertIn([], [pages.missing_sections(text) for text in [source, *shared]])

    def test_every_benchmark_of_the_record_has_a_head(self):
        heads = pages.heads_in(ROOT / "micro")
        self.assertEqual([name for name in micro_data.load(RECORD).benchmarks()
                          if name not in heads], [])


class FillTest(unittest.TestCase):
    def setUp(self):
        self.micro = micro([entry("a/b/x", 12.0), entry("a/c/x", 3.0, percent_of_limit=75.04)])

    def test_figures_come_from_the_record(self):
        self.assertEqual(answers.fill(self.micro, "{a/b/x} {a/b/x / a/c/x} {a/b/x - a/c/x} {a/c/x %}"),
                         "12.0 4.00 9.00 75.0%")
        self.assertEqual(answers.fill(self.micro, "{8 * a/c/x - 20}"), "4.00")

    def test_a_text_without_its_case_is_left_out(self):
        self.assertEqual(answers.fill(self.micro, "{a/b/x} and {a/d/x}"), "")
        self.assertEqual(answers.fill(self.micro, "{a/b/x %}"), "")

    def test_a_benchmark_without_an_answer_of_its_own_gets_one(self):
        said = answers.answer(self.micro, "new", [entry("new/b/x", 12.0),
                                                  entry("new/c/x", 3.0, percent_of_limit=75.0)])
        self.assertEqual(said, ["`c/x` comes nearest to its limit, of 2 cases: 3.000 cycles, 75.0%."])
        said = answers.answer(self.micro, "new", [entry("new/b/x", 12.0), entry("new/c/x", 3.0)])
        self.assertIn("from 3.000 cycles (`c/x`) to 12.00 cycles (`b/x`)", said[0])

    def test_targets_and_explanations_speak_of_cases_that_the_record_holds(self):
        newest = micro_data.load(RECORD)
        for target in answers.TARGETS:
            self.assertIsNotNone(answers.judge_target(newest, target), target[0])
        for pattern, start, _ in answers.EXPLANATIONS:
            found = [row for _, row in newest.matching(pattern) for source in row["published"]
                     if source["source"].startswith(start)]
            self.assertTrue(found, pattern)


class TargetTest(unittest.TestCase):
    def judge(self, comparison, goal, *values, of="value"):
        rows = [entry(f"a/{i}/x", value, percent_of_limit=value) for i, value in enumerate(values)]
        return answers.judge_target(micro(rows), ("what", r"a/\d/x", comparison, goal, of, ""))

    def test_the_best_case_counts(self):
        self.assertEqual(self.judge(">=", 5, 4.0, 6.0), ("a/1/x", 6.0, True))
        self.assertEqual(self.judge("<=", 5, 6.0, 5.5), ("a/1/x", 5.5, False))
        self.assertEqual(self.judge("=", 1, 1.5, 1.019), ("a/1/x", 1.019, True))
        self.assertEqual(self.judge("=", 1, 1.03)[2], False)
        self.assertEqual(self.judge(">=", 95, 96.0, of="percent_of_limit")[2], True)

    def test_what_was_not_measured_is_neither_met_nor_missed(self):
        self.assertIsNone(self.judge(">=", 5))


class SpreadTest(unittest.TestCase):
    def cause(self, *processes, **changes):
        return answers.spread_cause(entry(by_process=list(processes), value=100.0, **changes))

    def test_the_clock_is_named_where_it_differs(self):
        said = self.cause(process(100, [100, 100], 1980), process(104, [104, 104], 1900))
        self.assertIn("1900 to 1980 MHz", said)

    def test_repetitions_are_named_where_they_differ_as_much(self):
        said = self.cause(process(100, [98, 103]), process(103, [103, 103]))
        self.assertIn("Repetitions inside one process differ as much", said)

    def test_else_it_is_the_process(self):
        said = self.cause(process(100, [100, 100.1]), process(105, [105, 105]))
        self.assertIn("agree within 0.1%", said)

    def test_of_a_share_the_difference_is_named(self):
        said = self.cause(process(0.02, [0.02]), process(0.03, [0.03]), unit="", limit=1.0)
        self.assertIn("differs by 0.010", said)

    def test_a_fraction_of_a_cycle_is_called_that(self):
        said = answers.spread_cause(entry(value=5.0, by_process=[
            process(5.0, [5.0, 5.2]), process(5.2, [5.2, 5.2])]))
        self.assertTrue(said.startswith("It is 0.20 cycles."), said)


class PageTest(unittest.TestCase):
    def render(self, entries, cases=(), drawn=(), heads=None):
        return pages.render(micro(entries), list(cases), heads or {}, set(drawn))

    def test_there_is_a_page_for_each_benchmark_and_an_index(self):
        out = self.render([entry("b/x/y"), entry("a/x/y"), entry("a/z/y")])
        self.assertEqual(sorted(out), ["micro.md", "micro/a.md", "micro/b.md"])
        self.assertIn("[a](micro/a.md)", out["micro.md"])
        self.assertIn("| x/y | 10.00 | cycles |", out["micro/a.md"])

    def test_a_page_opens_with_question_and_answer(self):
        text = self.render([entry("a/x/y")], heads={"a": ("a.cu", pages.head_of(HEAD))})["micro/a.md"]
        self.assertIn("**Question.** What does `x` cost, in cycles?\n", text)
        self.assertIn("**Answer.** 1 cases, from 10.00 cycles", text)
        self.assertIn("**Expected beforehand.** (on Hopper) 4 cycles.", text)
        self.assertIn("[micro/a.cu](../../../micro/a.cu)", text)

    def test_differences_above_ten_percent_are_explained(self):
        why = "Their loop has a bubble."
        text = self.render([entry(published=[
            published(9.5, "close"), published(5, "far", why=why), published(20, "farther")])])
        text = text["micro/a.md"]
        self.assertIn("| a/b/latency | 10.00 | 9.500 | cycles | +5.3% | close |", text)
        self.assertIn(f"- `a/b/latency` is 100% above far. {why}\n", text)
        self.assertIn("- `a/b/latency` is 50% below farther. Not explained yet.\n", text)
        self.assertNotIn("above close", text)

    def test_an_explanation_with_figures_of_the_record_goes_first(self):
        text = self.render([
            entry("conversions/e4m3x2_to_f16x2/throughput", 126.0, published=[
                published(64, "DeepSeek, notes", ours=126.0, why="Typed.")])])["micro.md"]
        self.assertIn("an SM finishes 63.0 per clock.", text)
        self.assertNotIn("Typed", text)

    def test_predictions_of_our_own_model_are_on_the_page_alone(self):
        out = self.render([entry(published=[published(9.9, "bank model, x.h")])])
        self.assertIn("bank model, x.h", out["micro/a.md"])
        self.assertNotIn("bank model, x.h", out["micro.md"])

    def test_wide_spreads_are_listed_with_their_cause(self):
        wide = entry("a/w/y", by_process=[process(10, [10, 10]), process(10.5, [10.5, 10.5])])
        text = self.render([entry(), wide])["micro.md"]
        self.assertIn("1 of 2 cases give medians within 2%", text)
        self.assertIn("| a/w/y | 4.9% | 10.00 10.50 | It is 0.49 cycles.", text)

    def test_evidence_counts_the_cases_that_hold_to_a_pattern(self):
        rule = {"sass": r"^MUFU\.EX2", "ptx": "", "at_least": 4, "at_most": -1}
        absent = {"sass": "^LDL", "ptx": "", "at_least": 0, "at_most": 0}
        cases = [{"name": name, "evidence": [rule, absent]} for name in ("a/x/y", "a/z/y")]
        text = self.render([entry("a/x/y"), entry("a/z/y")], cases)["micro/a.md"]
        self.assertIn(r"| SASS `^MUFU\.EX2` | 4 | – | 2 |", text)
        self.assertIn("| SASS `^LDL` | – | absent | 2 |", text)

    def test_mark_up_in_plain_text_is_escaped(self):
        self.assertEqual(pages.prose("__sync a*b `x_y` <t>"), r"\_\_sync a\*b `x_y` \<t>")

    def test_every_figure_belongs_to_a_page_and_is_drawn_where_its_curves_are(self):
        on_pages = {name for figures in pages.FIGURES.values() for name, _ in figures}
        self.assertEqual(on_pages, set(micro_render.FIGURES))
        newest = micro_data.load(RECORD)
        drawn = {name for name, draw in micro_render.FIGURES.items() if draw(newest) is not None}
        self.assertEqual(record.figure_names(newest), drawn)
        self.assertEqual(record.figure_names(micro([])), set())

    def test_the_newest_record_leaves_nothing_unexplained(self):
        cases = json.loads((RECORD.parent / "cases.json").read_text(encoding="utf-8"))["cases"]
        out = pages.render(micro_data.load(RECORD), cases, pages.heads_in(ROOT / "micro"), set())
        for name, text in out.items():
            self.assertNotIn(pages.NOT_EXPLAINED, text, name)
            self.assertIsNone(re.search(r"\{[^}]*/[^}]*\}", text), name)

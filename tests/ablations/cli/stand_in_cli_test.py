# SPDX-License-Identifier: Apache-2.0
"""The whole path without a GPU, on the subject whose times are known."""

import json
import os
import re
import signal
import subprocess
import sys
import time

from cli_fixture import USAGE, CliTest
from fixture import PROGRAM

# What each technique of the stand-in is worth: kTrueRatios in stand_in.cc.
TRUTH = {"four_accumulators": 1.6, "prefetch": 1.05, "backwards": 0.95, "skip_last": 1.2}
VERDICTS = {"four_accumulators": "ADOPT", "prefetch": "REAL_BELOW_GATE", "backwards": "REGRESSION",
            "skip_last": "BROKEN"}

# Alone: time / joules, base over candidate, and what these are called. A variant draws 100 W, 1.5
# and 0.8 times that with the first two, and 120 W at most, where its clock gives way.
ALONE = {"four_accumulators": (1.6 * 0.8, 1.6 * 0.8 / 1.2, "ADOPT", "REAL_BELOW_GATE"),
         "prefetch": (1.05, 1.05 / 0.8, "REAL_BELOW_GATE", "ADOPT"),
         "backwards": (0.95, 0.95, "REGRESSION", "REGRESSION"),
         "skip_last": (1.2, 1.2, "BROKEN", "BROKEN")}

RUN = ("run", "--subject=stand_in", "--blocks=8")


class StandIn(CliTest):
    def measured(self, name, *flags):
        self.said(*RUN, f"--out={name}", *flags)
        self.said("judge", f"--record={name}")
        return json.loads((self.path / name / "summary.json").read_text(encoding="utf-8"))

    def page_of(self, record, pictures=True):
        """The page, after its pictures were found."""
        self.said("report", f"--record={record}", "--out=pages", f"--python={sys.executable}")
        page = next((self.path / "pages").glob("*.md")).read_text(encoding="utf-8")
        found = re.findall(r"\]\((\w+\.svg)\)", page)
        self.assertEqual(bool(found), pictures)
        for picture in found:
            self.assertTrue((self.path / "pages" / picture).is_file(), picture)
        return page

    def test_verdicts_are_those_of_the_model(self):
        # Intervals of 95%: of the seeds 1 to 30 all eight contain the truth in 27, and 1 is not one.
        summary = self.measured("record", "--seed=2")
        self.assertEqual(len(summary["verdicts"]), 2 * len(TRUTH))
        for verdict in summary["verdicts"]:
            with self.subTest(toggle=verdict["toggle"], shape=verdict["shape"]):
                self.assertEqual(verdict["verdict"], VERDICTS[verdict["toggle"]])
                truth = TRUTH[verdict["toggle"]]
                self.assertLess(verdict["ci_low"], truth)
                self.assertGreater(verdict["ci_high"], truth)
        self.assertEqual(summary["controls_summary"]["false_verdicts"], 0)

    def test_what_is_printed_to_a_closed_stream_goes_into_no_file_of_the_record(self):
        program = f"exec '{PROGRAM}' {' '.join(RUN)} --out=record"
        for closed in ("2>&-", "<&- 2>&-", ">&- 2>&-"):
            with self.subTest(closed=closed):
                self.call("rm", "-rf", "record")
                self.call("bash", "-c", f"{program} {closed}")
                self.said("judge", "--record=record")

    def test_the_same_call_again_adds_nothing_and_the_record_packs(self):
        self.measured("record")
        before = self.files()
        self.said(*RUN, "--out=record")
        self.assertEqual(self.files(), before)
        self.said("pack", "record")
        self.assertIn("four_accumulators", self.said("judge", "--record=record", "--out=s.json"))

    def alone(self, name, *flags):
        return self.measured(name, "--design=one_on", "--alone", "--processes=8",
                             *flags)

    def test_alone_each_claim_has_a_verdict_on_time_and_one_on_joules(self):
        summary = self.alone("record")
        self.assertEqual(len(summary["verdicts"]), 2 * len(TRUTH))
        for verdict in summary["verdicts"]:
            self.assertEqual(verdict["estimand"], "own_power")
            truth = ALONE[verdict["toggle"]]
            energy = verdict["energy"]
            with self.subTest(toggle=verdict["toggle"], shape=verdict["shape"]):
                self.assertEqual((verdict["verdict"], energy["verdict"]), truth[2:])
                for found, true in ((verdict, truth[0]), (energy, truth[1])):
                    self.assertLess(found["ci_low"], true)
                    self.assertGreater(found["ci_high"], true)
        self.assertEqual(summary["controls_summary"], {
            "trials": 8, "false_verdicts": 0,
            "intervals_holding_one": summary["controls_summary"]["intervals_holding_one"]})
        self.assertEqual({control["estimand"] for control in summary["controls"]},
                         {"own_power", "joules"})
        watts = {cell["variant"]: cell["alone"]["watts"] for cell in summary["cells"]}
        self.assertEqual(watts["one_on:prefetch"], 80)
        self.assertEqual(watts["one_on:four_accumulators"], 120)  # the limit
        page = self.page_of("record", pictures=False)
        self.assertIn("each arm alone", page)
        self.assertIn("No visit is INVALID. The GPU waited for the host for at most 0", page)
        self.assertIn("| **ADOPT** | 1.06", page)  # of time, then of joules
        self.assertIn("in the median 1.000 times NVML's reading", page)

    def test_alone_a_neighbour_moves_nothing_once_the_clock_stands(self):
        def ratios(name, *flags):
            return {(v["toggle"], v["shape"]): v["ratio"]
                    for v in self.alone(name, *flags)["verdicts"]}
        settled, seeds = ratios("settled"), ratios("seeds", "--seed=2")
        hasty = ratios("hasty", "--settle_s=0")
        for key, ratio in settled.items():
            self.assertLess(abs(seeds[key] / ratio - 1), 0.005, key)
        # The test can fail: a visit that does not wait runs at its neighbour's clock.
        self.assertGreater(max(abs(hasty[key] / ratio - 1) for key, ratio in settled.items()), 0.02)

    def test_alone_is_refused_where_it_means_nothing(self):
        for flags, why in ((("--alone", "--blocks=1", "--processes=3"), "must be even"),
                           (("--alone", "--stop=ci:1%"), "--stop is for arms in turn"),
                           (("--alone", "--window_s=61"), "60 at most"),
                           (("--settle_s=1",), "are for --alone")):
            self.assertIn(why, self.refused(USAGE, "run", "--subject=stand_in", "--out=x", *flags))

    def test_two_runs_of_one_model_pass_the_gate(self):
        for name, seed in (("a", 1), ("b", 2)):
            self.measured(name, "--design=factorial", f"--seed={seed}")
        self.assertIn("PASS", self.said("gate", "--record=b", "--baseline=a"))

    def test_a_run_that_was_killed_goes_on_and_is_judged_shown_and_gated(self):
        samples = self.path / "record/samples.jsonl"
        run = subprocess.Popen([PROGRAM, *RUN, "--out=record"], cwd=self.path,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               start_new_session=True)
        while run.poll() is None and not (samples.is_file() and samples.stat().st_size):
            time.sleep(0.001)
        os.killpg(run.pid, signal.SIGKILL)  # its worker too
        self.assertEqual(run.wait(), -signal.SIGKILL)
        before = samples.read_bytes().rpartition(b"\n")[0]
        self.assertLess(before.count(b"\n"), 639)
        self.said("judge", "--record=record", "--out=half.json")
        half = json.loads((self.path / "half.json").read_text(encoding="utf-8"))
        self.assertGreater(half["provenance"]["blocks_missing"], 0)
        summary = self.measured("record")
        self.assertTrue(samples.read_bytes().startswith(before))
        self.assertEqual(summary["provenance"]["blocks_missing"], 0)
        self.assertEqual(summary["provenance"]["n_samples"], 640)

        page = self.page_of("record")
        self.assertIn("n 65536; ", page)
        self.assertIn("**Claim.** Four sums at once", page)
        self.assertIn("It **held**: 1.6", page)
        for verdict in VERDICTS.values():
            self.assertIn(f"**{verdict}**", page)
        self.assertNotIn("kernels/sdpa", page)

        self.measured("later", "--seed=2")
        gate = self.said("gate", "--record=later", "--baseline=record", code=3)
        self.assertIn("of 10 cells, 8 passed and 2 broken", gate)

    def test_a_calibration_finds_what_was_planted(self):
        self.said("calibrate", "--subject=stand_in", "--variant=ladder:prefetch", "--shape=sum_1k",
                  "--out=record", "--groups=2", "--aa_pairs=4", "--plants=5%x2", "--blocks=8",
                  "--processes=3")
        self.assertRegex(self.said("judge", "--record=record"), r"4 of 4 +4 of 4 +0 of 4 +4 of 4")
        self.assertIn("0 of 8", self.page_of("record"))

    def test_unknown_subjects_are_refused_by_name(self):
        self.assertIn("sdpa or stand_in", self.refused(USAGE, "run", "--subject=sit", "--out=x"))

# SPDX-License-Identifier: Apache-2.0
"""A whole run without a GPU, on the subject whose times are known."""

import json

import cli_fixture
from cli_fixture import USAGE, CliTest

# What each technique of the stand-in is worth: kTrueRatios in stand_in.cc.
TRUTH = {"four_accumulators": 1.6, "prefetch": 1.05, "backwards": 0.95, "skip_last": 1.2}
VERDICTS = {"four_accumulators": "ADOPT", "prefetch": "REAL_BELOW_GATE", "backwards": "REGRESSION",
            "skip_last": "BROKEN"}


class StandIn(CliTest):
    def measured(self, name, *flags):
        self.said("run", "--subject=stand_in", f"--out={name}", "--blocks=8", *flags)
        self.said("judge", f"--record={name}")
        return json.loads((self.path / name / "summary.json").read_text(encoding="utf-8"))

    def test_verdicts_are_those_of_the_model(self):
        summary = self.measured("record")
        self.assertEqual(len(summary["verdicts"]), 2 * len(TRUTH))
        for verdict in summary["verdicts"]:
            with self.subTest(toggle=verdict["toggle"], shape=verdict["shape"]):
                self.assertEqual(verdict["verdict"], VERDICTS[verdict["toggle"]])
                truth = TRUTH[verdict["toggle"]]
                self.assertLess(verdict["ci_low"], truth)
                self.assertGreater(verdict["ci_high"], truth)
        self.assertEqual(summary["controls_summary"]["false_verdicts"], 0)

    def test_the_same_call_again_adds_nothing_and_the_record_packs(self):
        self.measured("record")
        before = self.files()
        self.said("run", "--subject=stand_in", "--out=record", "--blocks=8")
        self.assertEqual(self.files(), before)
        self.said("pack", "record")
        self.assertIn("four_accumulators", self.said("judge", "--record=record", "--out=s.json"))

    def test_two_runs_of_one_model_pass_the_gate(self):
        for name, seed in (("a", 1), ("b", 2)):
            self.measured(name, "--design=factorial", f"--seed={seed}")
        self.assertIn("PASS", self.said("gate", "--record=b", "--baseline=a"))

    def test_unknown_subjects_are_refused_by_name(self):
        self.assertIn("sdpa or stand_in", self.refused(USAGE, "run", "--subject=sit", "--out=x"))


if __name__ == "__main__":
    cli_fixture.call(__doc__)

# SPDX-License-Identifier: Apache-2.0
"""What a stopping rule would have made of the records that ran to their end.

The newest committed record of each design, if it has five processes or more, is judged
again as if it had been run with --stop=ci:1%: looks after 3 processes and after all. Prints what
reports/decisions quotes.
"""

import json
import pathlib
import shutil
import tempfile
import unittest

import invented_record
import record_files
from fixture import ROOT, warpledger

DATA = ROOT / "reports" / "data"
GOAL = 0.01
FASTER = {"ADOPT", "REAL_BELOW_GATE"}
NEUTRAL_DELTA = 0.01


def judged(record):
    result = warpledger("judge", f"--record={record}")
    assert result.returncode == 0, result.stderr
    return json.loads((record / "summary.json").read_text(encoding="utf-8"))


def contradict(a, b):
    """Whether two verdicts of one ratio can't both be true.

    NEUTRAL says that the ratio is within 1%, and REAL_BELOW_GATE that it isn't 1: of 1.005 both
    are true. So NEUTRAL is contradicted by an interval that lies beyond 1% alone.
    """
    if a["verdict"] == "NEUTRAL":
        a, b = b, a
    if b["verdict"] == "NEUTRAL":
        return a["verdict"] in FASTER | {"REGRESSION"} and (
            a["ci_low"] > 1 + NEUTRAL_DELTA or a["ci_high"] < 1 - NEUTRAL_DELTA)
    return (a["verdict"] in FASTER and b["verdict"] == "REGRESSION"
            or b["verdict"] in FASTER and a["verdict"] == "REGRESSION")


class ContradictTest(unittest.TestCase):
    def test_what_is_and_what_is_none(self):
        def verdict(name, low, high):
            return {"verdict": name, "ci_low": low, "ci_high": high}

        neutral = verdict("NEUTRAL", 1.001, 1.009)
        for other, answer in ((verdict("REAL_BELOW_GATE", 1.0007, 1.011), False),
                              (verdict("REAL_BELOW_GATE", 1.011, 1.02), True),
                              (verdict("ADOPT", 1.03, 1.04), True),
                              (verdict("REGRESSION", 0.98, 0.989), True),
                              (verdict("INCONCLUSIVE", 1.02, 1.4), False), (neutral, False)):
            self.assertEqual(contradict(neutral, other), answer, other)
            self.assertEqual(contradict(other, neutral), answer, other)
        for faster in FASTER:
            self.assertTrue(contradict(verdict(faster, 1.001, 1.1),
                                       verdict("REGRESSION", 0.9, 0.999)))
            self.assertFalse(contradict(verdict(faster, 1.001, 1.1), verdict("ADOPT", 1.1, 1.2)))


class ReplayTest(unittest.TestCase):
    def test_no_verdict_turns_into_its_opposite(self):
        stopped = shapes = saved = processes = same = total = 0
        widths, changes = [], {}
        for _, records in sorted(record_files.runs(DATA).items()):
            run = records[-1].json("run.json")
            if "samples.jsonl" not in records[-1]:
                continue  # a calibration
            if run["processes"] < 5 or "stopping" in run:
                continue
            with tempfile.TemporaryDirectory() as folder, records[-1].folder() as plain:
                record = pathlib.Path(folder) / "record"
                shutil.copytree(plain, record)
                invented_record.write_no_micro(record.parent, run["gpu"]["slug"])
                whole = judged(record)
                run["stopping"] = {"half_width": GOAL, "confidence": 0.95,
                                   "looks": [3, run["processes"]], "alpha_shares": [0.5, 0.5]}
                (record / "run.json").write_text(json.dumps(run), encoding="utf-8")
                early = judged(record)
            for look in early["statistics"]["looks"]:
                shapes += 1
                stopped += look["stopped_early"]
                processes += run["processes"]
                saved += run["processes"] - look["processes"]
            for before, after in zip(whole["verdicts"], early["verdicts"], strict=True):
                total += 1
                pair = (before["verdict"], after["verdict"])
                same += pair[0] == pair[1]
                if pair[0] != pair[1]:
                    changes[pair] = changes.get(pair, 0) + 1
                self.assertFalse(contradict(before, after), (before, after))
                if before["ci_low"] and after["ci_low"]:
                    widths.append((after["ci_high"] - after["ci_low"]) /
                                  (before["ci_high"] - before["ci_low"]))
        self.assertGreater(total, 0, "no record was judged")
        widths.sort()
        print(f"{stopped} of {shapes} shapes would have ended early, {saved} of {processes} "
              f"processes saved; {same} of {total} verdicts the same; intervals "
              f"{widths[len(widths) // 2]:.1f} times as wide (median); changes: {changes}")

"""What a stopping rule would have made of the records that ran to their end.

Each committed record of five processes or more is judged again as if it had been
run with --stop=ci:1%: looks after 3 processes and after all. Prints what
reports/decisions quotes.

    stopping_replay_test.py path/to/warpledger
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = ""
DATA = pathlib.Path(__file__).resolve().parents[2] / "reports" / "data"
GOAL = 0.01
FASTER = {"ADOPT", "REAL_BELOW_GATE"}


def judged(record):
    result = subprocess.run([PROGRAM, "judge", f"--record={record}"], capture_output=True,
                            text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads((record / "summary.json").read_text(encoding="utf-8"))


class ReplayTest(unittest.TestCase):
    def test_no_verdict_turns_into_its_opposite(self):
        stopped = shapes = saved = processes = same = total = 0
        widths, changes = [], {}
        for run_file in sorted(DATA.glob("*/*/run.json")):
            run = json.loads(run_file.read_text(encoding="utf-8"))
            if not (run_file.parent / "samples.jsonl").exists():
                continue  # a calibration or a profile
            if run["processes"] < 5 or "stopping" in run:
                continue
            with tempfile.TemporaryDirectory() as folder:
                record = pathlib.Path(folder) / "record"
                shutil.copytree(run_file.parent, record)
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
                for opposite in ("REGRESSION", "NEUTRAL"):
                    self.assertFalse(set(pair) & FASTER and opposite in pair, (before, after))
                if before["ci_low"] and after["ci_low"]:
                    widths.append((after["ci_high"] - after["ci_low"]) /
                                  (before["ci_high"] - before["ci_low"]))
        self.assertGreater(total, 0, "no record was judged")
        widths.sort()
        print(f"{stopped} of {shapes} shapes would have ended early, {saved} of {processes} "
              f"processes saved; {same} of {total} verdicts the same; intervals "
              f"{widths[len(widths) // 2]:.1f} times as wide (median); changes: {changes}")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)

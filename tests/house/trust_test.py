# SPDX-License-Identifier: Apache-2.0
"""Each promise of reports/TRUST.md names a test that is there, and its table is the recorded score."""

import json
import re
import unittest

from fixture import ROOT

# | promise | `tests/…`: `TheTest`, `AnotherTest` |
ROW = re.compile(r"^\| (?P<promise>[^|]+) \| `(?P<file>tests/[^`]+)`: (?P<tests>`[^|]+`) \|$")


class TrustTest(unittest.TestCase):
    def test_every_promise_names_tests_that_exist(self):
        rows = [line for line in (ROOT / "reports/TRUST.md").read_text(encoding="utf-8").splitlines()
                if line.startswith("| ") and line.count("|") == 3
                and not line.startswith(("| promise", "| fault", "| :"))]
        self.assertGreater(len(rows), 20)
        for line in rows:
            with self.subTest(line):
                row = ROW.match(line)
                self.assertIsNotNone(row, "| promise | `tests/file`: `Test`, `Test` |")
                text = (ROOT / row["file"]).read_text(encoding="utf-8")
                for test in re.findall(r"`([^`]+)`", row["tests"]):
                    self.assertRegex(text, rf"(\bdef |[(, ]){re.escape(test)}\b")

    def test_the_table_of_planted_bugs_is_the_recorded_score(self):
        score = json.loads((ROOT / "tests/kernels/sdpa/mutations/score.json").read_text(encoding="utf-8"))
        text = (ROOT / "reports/TRUST.md").read_text(encoding="utf-8")
        shown = re.findall(r"\| (\d+ of \d+) \| (\d+ of \d+) \|$", text, re.MULTILINE)
        found, refused = score["score"]["all"], score["originals"]
        rules = ("suite", "absolute_0.06", "relative_1e-3", "assert_close_fp16", "allclose")
        self.assertEqual(shown, [(f"{found[rule]} of {found['mutants']}",
                                  f"{refused[rule]} of {refused['cases']}") for rule in rules])

# SPDX-License-Identifier: Apache-2.0
"""reports/explorer/explorer.py: what the page has of each verdict, and what it refuses."""

import json
import re

import explorer
from fixture import ROOT, FolderTest

CLAIM = {"record": "run", "problem": "b1_h1_s32_d64", "base": "off", "candidate": "on", "n_pairs": 4,
         "ratio": 1.25, "estimand": "time", "verdict": "INCONCLUSIVE", "reason": "less than </script>", "predicted_low": None}
IN_RECORD = {"problem_in_record": "small"}
LIMIT_MB = 5


def data_of(page):
    """What the page's script makes of its data: a list of rows."""
    packed = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>',
                                  page, re.DOTALL)[1])
    names = packed["columns"]
    return [{name: packed["texts"][cell] if name in packed["text_columns"] and cell is not None else cell
             for name, cell in zip(names, row, strict=True)}
            for row in zip(*names.values(), strict=True)]


class Explorer(FolderTest):
    def setUp(self):
        super().setUp()
        times = {("off", 0, 0): 3.0, ("on", 0, 0): 2.0, ("on", 0, 1): 2.0, ("off", 0, 1): 2.5,
                 ("off", 1, 0): 5.0, ("on", 1, 0): 4.0, ("off", 1, 1): 1.0, ("on", 1, 1): 3.0,
                 # No pair, and the pair of a process that the verdict leaves out.
                 ("off", 1, 2): 7.0, ("off", 2, 0): 7.0, ("on", 2, 0): 1.0}
        self.write("run/samples.jsonl", "".join(
            json.dumps({"shape": "small", "arm": arm, "process": process, "block": block, "us": us,
                        "sm_mhz": 1500.5 if arm == "on" else 3001}) + "\n"
            for (arm, process, block), us in times.items()))
        self.write("claims.json", json.dumps([
            CLAIM | IN_RECORD, CLAIM | IN_RECORD | {"ratio": None, "predicted_low": 1.1}]))

    def test_figures_have_five_digits_and_decided_verdicts_no_reason(self):
        claim = CLAIM | IN_RECORD | {"ratio": 1.2345678}
        self.write("claims.json", json.dumps([claim, claim | {"verdict": "ADOPT"}]))
        self.make()
        rows = data_of((self.path / "explorer.html").read_text(encoding="utf-8"))
        self.assertEqual([row["ratio"] for row in rows], [1.2346, 1.2346])
        self.assertEqual([row["reason"] for row in rows], [CLAIM["reason"], ""])

    def make(self, record="run"):
        return self.run_main(explorer.main, "--claims", self.path / "claims.json", "--record",
                             self.path / record, "--out", self.path / "explorer.html")

    def test_each_row_has_its_verdict_and_its_pairs_by_process(self):
        self.assertEqual(self.make(), (0, f"{self.path / 'explorer.html'}: 2 verdicts\n"))
        self.assertEqual(data_of((self.path / "explorer.html").read_text(encoding="utf-8")),
                         [CLAIM | {"samples": [[2500, 0], [0, 3333 - 12500]]},
                          CLAIM | {"ratio": None, "predicted_low": 1.1,
                                   "samples": [[5000, 2500], [2500, 3333 - 10000]]}])

    def test_a_verdict_of_cycles_has_samples_of_cycles(self):
        self.write("claims.json", json.dumps([CLAIM | IN_RECORD | {"estimand": "cycles"}]))
        self.make()
        self.assertEqual(data_of((self.path / "explorer.html").read_text(encoding="utf-8"))[0]["samples"],
                         [[17500, 12500], [12500, 6667 - 12500]])

    def test_a_claim_whose_samples_are_missing_is_an_error(self):
        self.write("claims.json", json.dumps([CLAIM | IN_RECORD | {"n_pairs": 6}]))
        self.assertEqual(self.make(), (1, "explorer.py: run has 5 pairs of on on b1_h1_s32_d64, and the "
                                          "verdict is of 6\n"))
        self.write("claims.json", json.dumps([CLAIM | {"record": "another"}]))
        self.assertEqual(self.make()[0], 1)
        self.assertEqual(self.make("no_such_record")[0], 1)

    def test_the_committed_page_is_small_has_every_verdict_and_loads_nothing(self):
        page = (ROOT / "reports/explorer.html").read_text(encoding="utf-8")
        self.assertLess(len(page.encode()) / 1e6, LIMIT_MB)
        self.assertGreater(len(data_of(page)), 2000)
        self.assertEqual(re.findall(r'(?:src|href)="(?!data:)[^"]*"|https?://|@import', page), [])

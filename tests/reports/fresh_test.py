# SPDX-License-Identifier: Apache-2.0
"""What is committed is what the committed records give: to the byte, and pictures by what they show."""

import json
import os.path
import pathlib
import re
import tempfile
import unittest

import record_files
import regenerate
import summaries
from fixture import PROGRAM, ROOT

from plots import compare_svg



class FreshTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.out = pathlib.Path(folder.name) / "out"
        cls.kept = pathlib.Path(folder.name) / "kept"
        cls.out.mkdir()
        cls.made = regenerate.regenerate(PROGRAM, cls.out, cls.kept)
        cls.runs = record_files.records(regenerate.DATA, "run.json")

    def test_there_are_records_pages_and_pictures(self):
        self.assertTrue(record_files.runs(regenerate.DATA), "no record under reports/data")
        for suffix in ".md", ".svg":
            self.assertTrue(any(path.suffix == suffix for path in self.made), suffix)
        self.assertIn(pathlib.Path("README.md"), self.made)

    def test_what_is_committed_is_what_the_records_give(self):
        for path in sorted(self.made):
            with self.subTest(path=str(path)):
                self.assertTrue((ROOT / path).exists(), f"{path} is not committed")
                stale = f"{path} is not what its record gives; run reports/regenerate.py"
                if path.suffix == ".svg":
                    self.assertEqual(compare_svg.compare(self.out / path, ROOT / path), [], stale)
                else:
                    self.assertTrue((self.out / path).read_bytes() == (ROOT / path).read_bytes(),
                                    stale)

    def test_every_record_gives_the_summary_that_it_gave(self):
        committed = summaries.read(regenerate.DATA)
        self.assertTrue(committed)
        computed = summaries.hashes(PROGRAM, self.runs, self.kept)
        self.assertEqual(sorted(committed), sorted(computed), "run reports/regenerate.py")
        differ = [name for name, digest in computed.items() if digest != committed[name]]
        self.assertEqual(differ, [], "if statistics were changed on purpose, run "
                         "reports/regenerate.py")

    def test_every_undecided_verdict_of_every_record_says_what_would_decide_it(self):
        summaries.hashes(PROGRAM, self.runs, self.kept)  # keeps them all
        pages = [(self.out / path).read_text(encoding="utf-8") for path in self.made
                 if path.suffix == ".md"]
        seen = paged = 0
        for path in sorted(self.kept.glob("*.json")):
            summary = json.loads(path.read_text(encoding="utf-8"))
            undecided = [verdict for verdict in summary.get("verdicts", [])
                         if verdict["verdict"] == "INCONCLUSIVE"]
            for verdict in undecided:
                seen += 1
                self.assertRegex(
                    verdict["reason"],
                    "two at least are needed" if verdict["n_processes"] == 1 else
                    r"the same ratio (on (not even )?\d+ boards, or )?in (not even )?\d+ processes "
                    "on one, would decide", summary["run_id"])
            # Two boards may have begun in the same second.
            names = (f"Written from the record `{summary['run_id']}`", f"`{summary['provenance']['gpu']['uuid']}`")
            for page in pages:
                if all(name in page for name in names):
                    _, _, rest = page.partition("## What would decide the rest\n")
                    rows = re.findall(r"^\| `.*\| (\S+) \| (\S+|2 at least) \|$",
                                      rest.partition("\n## ")[0], re.MULTILINE)
                    self.assertEqual(
                        rows, [(str(verdict.get("boards_to_decide", "–")),
                                "2 at least" if verdict["n_processes"] == 1 else
                                str(verdict.get("processes_to_decide", "–")))
                               for verdict in undecided], summary["run_id"])
                    paged += len(rows)
        self.assertGreater(seen, 100)
        self.assertGreater(paged, 10)

    def test_every_committed_record_is_a_pack(self):
        folders = [str(path.relative_to(ROOT)) for path in regenerate.DATA.glob("*/*")
                   if path.is_dir()]
        self.assertEqual(folders, [], "close them with `warpledger pack`")

    def test_nothing_is_left_over(self):
        self.assertEqual(regenerate.left_over(self.made), set())

    def test_each_picture_is_shown_on_a_page_and_each_shown_one_is_there(self):
        shown = set()
        for page in (path for path in self.made if path.suffix == ".md"):
            text = (self.out / page).read_text(encoding="utf-8")
            shown |= {pathlib.Path(os.path.normpath(page.parent / link))
                      for link in re.findall(r"\]\(([^()\s]+\.svg)\)", text)}
        self.assertEqual(shown, {path for path in self.made if path.suffix == ".svg"})

    def test_every_difference_and_missed_figure_is_explained(self):
        for path in sorted(self.made):
            if path.name == "micro.md":
                self.assertNotIn("Not explained yet", (self.out / path).read_text(encoding="utf-8"))

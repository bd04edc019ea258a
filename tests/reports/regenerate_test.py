# SPDX-License-Identifier: Apache-2.0
"""reports/regenerate.py: which records make which pages.

Runs in a tree of its own with a stand-in for the program, which notes its calls.
"""

import json
import shutil
import subprocess
from unittest import mock

import folklore
import regenerate
from fixture import FolderTest

# A page is called after what it is made of.
PROGRAM = """#!/bin/bash
(IFS=$'\t'; echo "$*" >>calls.log)
for argument; do
  case $argument in
    --record=* | --b=*) record=${argument#*=} name=$(basename "${argument#*=}") ;;
    --out=*) out=${argument#*=} ;;
    --summary=*) cp "$record/summary.json" "${argument#*=}" 2>/dev/null || echo "$name" >"${argument#*=}" ;;
    --claims=*) echo [] >"${argument#*=}" ;;
  esac
done
case $1 in
  list) echo '{"designs": [{"name": "library_d64", "whole_kernels": true},
                           {"name": "ladder", "whole_kernels": false}]}' ;;
  compare) echo "$name" >"$out" ;;
  techniques) echo "$name" >"$out/techniques.md" ;;
  standings) mkdir -p "$out" && echo "$name" >"$out/standings.md" ;;
  report) mkdir -p "$out" && echo "$name" >"$out/$name.md" ;;
esac
"""


class Regenerate(FolderTest):
    def setUp(self):
        super().setUp()
        self.data = self.path / "reports/data"
        (self.path / "README.md").write_text("")
        self.program = self.write("program", PROGRAM, 0o755)
        patch = mock.patch.multiple(regenerate, ROOT=self.path, DATA=self.data, draw=self.draw)
        patch.start()
        self.addCleanup(patch.stop)

    def draw(self, summary, folder):
        """A picture called after what the summary is of."""
        (folder / f"{summary.read_text().strip().partition('{')[0] or 'study'}.svg").touch()

    def record(self, design, day, cache="warm"):
        self.write(f"reports/data/h200/{design}-{cache}-{day}/run.json", json.dumps(
            {"design": design, "cache": cache, "created_utc": f"2026-01-{day:02}T00:00:00Z"}))

    def made(self):
        """The pages' names, and {command: the records it was called with, one text per call}."""
        made = regenerate.regenerate(self.program, self.path, self.path / "kept")
        calls = {}
        for line in (self.path / "calls.log").read_text().splitlines():
            command, *arguments = line.split("\t")
            if any(argument.startswith("--readme=") for argument in arguments):
                command = f"readme of {command}"
            records = [value.replace(f"{self.data}/h200/", "").replace("reports/data/h200/", "")
                       for option, _, value in (a.partition("=") for a in arguments)
                       if option in ("--record", "--a", "--b")]
            calls.setdefault(command, []).append(" ".join(records))
        # Side by side, so in any order.
        return ({path.name for path in made if path.suffix == ".md"},
                {command: sorted(records) for command, records in calls.items()})

    def test_of_each_design_the_newest_record_has_a_page(self):
        self.record("hopper", 1)
        self.record("hopper", 2)
        self.record("ladder", 1)
        self.record("library_d64", 1)  # which kernel is fastest is no verdict on a technique
        pages, calls = self.made()
        self.assertEqual(pages, {"hopper-warm-2.md", "ladder-warm-1.md", "techniques.md",
                                 "standings.md", "README.md"})
        self.assertEqual(calls["report"], ["hopper-warm-2", "ladder-warm-1"])
        self.assertNotIn("compare", calls)

    def test_a_cold_record_has_a_page_beside_the_warm_one_and_stands_in_no_other(self):
        self.record("ladder", 1)
        self.record("ladder", 2)
        self.record("ladder", 3, "cold")
        self.record("ladder", 4, "cold")
        self.record("hopper", 5, "cold")
        self.record("calibrate", 1)
        pages, calls = self.made()
        self.assertEqual(pages, {"ladder-warm-2.md", "ladder-cold-4.md", "hopper-cold-5.md",
                                 "calibrate-warm-1.md", "compare.md", "techniques.md",
                                 "standings.md", "README.md"})
        self.assertEqual(set(calls["report"]), {"ladder-warm-2", "ladder-cold-4", "hopper-cold-5",
                                               "calibrate-warm-1"})
        self.assertEqual(calls["techniques"], ["ladder-warm-2"])
        self.assertEqual(calls["compare"], ["ladder-warm-1 ladder-warm-2"])
        self.assertEqual(calls["readme of report"], ["ladder-warm-2"])
        for command in "standings", "readme of standings":
            self.assertEqual(calls[command], ["ladder-warm-2"])

    def test_a_study_has_a_page_and_a_place_among_all_and_is_no_design_of_attention(self):
        (self.path / "README.md").write_text(f"{folklore.BEGIN}\n{folklore.END}\n")
        self.record("ladder", 1)
        for study, day in ("sums", 2), ("sums", 3), ("moves", 4):
            folder = f"reports/data/h200/{study}-{day}"
            self.write(f"{folder}/run.json", json.dumps(
                {"design": "ladder", "cache": "warm", "created_utc": f"2026-01-{day:02}T00:00:00Z",
                 "gpu": {"name": "NVIDIA H200"}, "definition": {"study": {"name": study, "claim": [
                     {"id": "a", "label": "A", "source": {"name": "B", "link": "https://c"},
                      "prediction": {"problem": "p", "low": 2, "high": 3}}]}}}))
            self.write(f"{folder}/summary.json", json.dumps(
                {"verdicts": [
                    {"toggle": "a", "shape": "p", "verdict": "NEUTRAL", "ratio": 1, "ci_low": 0.99,
                     "ci_high": 1.01, "reason": ""}]}))
        pages, calls = self.made()
        self.assertEqual(pages, {"ladder-warm-1.md", "sums-3.md", "moves-4.md", "folklore.md",
                                 "techniques.md", "standings.md", "README.md"})
        self.assertEqual(calls["report"], ["ladder-warm-1", "moves-4", "sums-3"])
        self.assertEqual(calls["techniques"], ["ladder-warm-1"])
        self.assertTrue((self.path / "reports/h200/folklore/sums/sums-3.md").is_file())
        self.assertTrue((self.path / "reports/h200/folklore/sums/study.svg").is_file())
        ranked = (self.path / "reports/h200/folklore.md").read_text()
        self.assertIn("# Folklore on trial on NVIDIA H200", ranked)
        self.assertIn("[moves](folklore/moves/moves-4.md)", ranked)
        self.assertIn("of 2 claims", (self.path / "README.md").read_text())

    def test_of_each_set_of_shapes_the_newest_profiles_have_a_page(self):
        # One of more shapes, too, than those of an older one.
        for name, shapes in (("profile-1", ["mission_b", "long"]), ("profile-2", ["decode_b1"]),
                             ("profile-3", ["mission_b", "long"]), ("profile-4", ["decode_b1"]),
                             ("profile-5", ["decode_b16"]),
                             ("profile-6", ["decode_b16", "decode_mqa_b1"])):
            self.write(f"reports/data/h200/{name}/profile.json", json.dumps(
                {"shapes": [{"name": shape} for shape in shapes]}))
        made = regenerate.regenerate(self.program, self.path, self.path / "kept")
        self.assertEqual({str(path) for path in made},
                         {"reports/h200/profile-3.md",
                          "reports/h200/profile_decode_b1/profile-4.md",
                          "reports/h200/profile_decode_b16_decode_mqa_b1/profile-6.md"})

    def test_only_files_that_git_holds_are_deleted(self):
        self.record("ladder", 1)
        self.write("reports/h200/old.md", "of a record that is gone")
        for command in ("init", "-q"), ("add", "reports/h200/old.md"):
            subprocess.run(["git", *command], cwd=self.path, check=True)
        self.write("reports/h200/notes.md", "somebody's own")
        with mock.patch.object(regenerate.summaries, "write"):
            code, said = self.run_main(regenerate.main, f"--program={self.program}")
        self.assertEqual(code, 0)
        self.assertIn("deleted reports/h200/old.md", said)
        self.assertIn("kept reports/h200/notes.md", said)
        self.assertFalse((self.path / "reports/h200/old.md").exists())
        self.assertTrue((self.path / "reports/h200/notes.md").exists())

    def test_a_record_that_cant_be_read_is_an_error_that_names_its_file(self):
        for name, content in (("a/run.json", "{"), ("a/run.json", "[]"), ("a/run.json", "{}"),
                              ("a/run.json", '{"design": "ladder", "cache": 1}'),
                              ("profile-1/profile.json", "{}"),
                              ("profile-1/profile.json", '{"shapes": [{}]}'),
                              ("sanitizers-1/sanitizers.json", '{"run_id": null}'),
                              ("sanitizers-1/sanitizers.json", '{"run_id": "", "gpu": null}')):
            path = self.write(f"reports/data/h200/{name}", content)
            with self.subTest(name=name, content=content):
                code, said = self.run_main(regenerate.main, f"--program={self.program}")
                self.assertEqual((code, said.count("\n")), (1, 1))
                self.assertIn(str(path), said)
            shutil.rmtree(path.parent)

# SPDX-License-Identifier: Apache-2.0
"""mutation_gpu_test.py finds what it is there to find; a stand-in takes check_mutant's place."""

import json

import mutation_gpu_test
from fixture import FolderTest

RIGHT = {"passes": True, "reason": "", "caught_by": []}
WRONG = {"passes": False, "reason": "far off", "caught_by": ["allclose"]}


class ScoreTest(FolderTest):
    def judged(self, mutant, original=RIGHT, race="", after=""):
        """Exit code and output for one mutation; `after`: what the stand-in does in the end."""
        listed = {"name": "mma_bug", "what": "a bug", "kernel": "k", "problem": "p",
                  "input": "normal", "race": race}
        lines = [original | {"of": "original"}] + ([mutant | {"of": "mutant"}] if mutant else [])
        said = "\n".join(map(json.dumps, lines))
        program = self.write("check_mutant", "#!/bin/sh\n"
                             f"[ \"$1\" = --list ] && echo '{json.dumps(listed)}' && exit\n"
                             f"echo '{said}'\n{after}\n", 0o755)
        return self.run_main(mutation_gpu_test.main, program, "--out", self.path / "out.json")

    def score(self):
        return json.loads((self.path / "out.json").read_text(encoding="utf-8"))["score"]["mma"]

    def test_a_bug_that_is_found_passes(self):
        code, said = self.judged(WRONG)
        self.assertEqual(code, 0, said)
        self.assertEqual(self.score(), {"mutants": 1, "suite": 1, "absolute_0.06": 0,
                                        "relative_1e-3": 0, "allclose": 1,
                                        "assert_close_fp16": 0})

    def test_a_bug_that_is_not_found_fails_unless_it_depends_on_time(self):
        self.assertEqual(self.judged(RIGHT)[0], 1)
        self.assertEqual(self.score()["suite"], 0)
        self.assertEqual(self.judged(RIGHT, race="seldom")[0], 0)

    def test_an_original_that_fails_fails(self):
        code, said = self.judged(WRONG, original=WRONG)
        self.assertEqual(code, 1)
        self.assertIn("the original of mma_bug fails", said)

    def test_a_mutant_that_dies_or_hangs_counts_as_found_by_all(self):
        self.assertEqual(self.judged(None, after="exit 9")[0], 0)
        mutation_gpu_test.LIMIT_S, before = 4, mutation_gpu_test.LIMIT_S
        self.addCleanup(setattr, mutation_gpu_test, "LIMIT_S", before)
        code, said = self.judged(None, after="exec sleep 30")
        self.assertEqual(code, 0, said)
        self.assertIn("it hung for 4 s", said)
        self.assertEqual(self.score()["absolute_0.06"], 1)

    def test_without_code_for_the_gpu_it_is_skipped(self):
        self.assertEqual(self.judged(None, after="exit 77")[0], 77)

    def test_where_the_bugs_are_not_compiled_it_is_skipped(self):
        code, said = self.run_main(mutation_gpu_test.main, self.path / "check_mutant")
        self.assertEqual(code, 77)
        self.assertIn("SKIPPED: the planted bugs are not compiled", said)

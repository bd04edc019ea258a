# SPDX-License-Identifier: Apache-2.0
"""Our studies pass `warpledger study check` for all architectures that they name."""

import os
import runpy
import shutil
import sys

import numpy as np
from fixture import BUILD, ROOT, FolderTest, warpledger

STUDIES = ROOT / "ablations" / "studies"
KEPT = BUILD / "tests/ablations/studies/checked"  # copies of them, and their builds
# What a check finds, as the claim itself foretells.
FOUND = {"elementwise": ["'forceinline' reaches no code"]}
ARCHITECTURES = ("sm_80", "sm_89", "sm_90")


def reference_of(name):
    return runpy.run_path(str(STUDIES / name / "reference.py"))["reference"]


class StudiesTest(FolderTest):
    def test_each_passes_its_check(self):
        names = sorted(path.parent.name for path in STUDIES.glob("*/study.toml"))
        self.assertGreaterEqual(len(names), 8)
        for name in names:
            with self.subTest(name):
                shutil.copytree(STUDIES / name, KEPT / name, dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns(".warpledger"))
                done = warpledger("study", "check", str(KEPT / name),
                                  env=os.environ | {"WARPLEDGER_PYTHON": sys.executable})
                said = done.stdout + done.stderr
                findings = [line for line in said.partition("\nFindings\n")[2].splitlines() if line]
                expected = FOUND.get(name, [])
                self.assertEqual(done.returncode, 1 if expected else 0, said)
                self.assertEqual(len(findings), len(expected), said)
                for finding, part in zip(findings, expected):
                    self.assertIn(part, finding)
                for arch in ARCHITECTURES:
                    self.assertIn(f" {arch} ", said)
                self.assertIn("Planted errors that this would let through: none", said)

    def test_a_uniform_number_may_be_one(self):
        counts = reference_of("histogram")(np.array([0.0, 0.75, 1.0]), 256)
        self.assertEqual((len(counts), counts[0], counts[192], counts[255]), (256, 1, 1, 1))

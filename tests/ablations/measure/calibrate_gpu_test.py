# SPDX-License-Identifier: Apache-2.0
"""`warpledger calibrate` measures on the GPU, resumes where it is whole, and is judged.

The smallest calibration that there is: its rates say nothing, its record must be whole.
"""

import json
import pathlib
import tempfile
import unittest

from fixture import needs_gpu, warpledger

setUpModule = needs_gpu
PROCESSES, BLOCKS, PAIRS = 2, 3, 2


class CalibrateTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.record = pathlib.Path(cls.folder.name) / "record"
        cls.calibrate = ["calibrate", f"--out={cls.record}", "--groups=1",
                         f"--processes={PROCESSES}", f"--blocks={BLOCKS}", f"--aa_pairs={PAIRS}",
                         "--aa_family=1", "--plants=5%x2"]
        cls.done = warpledger(*cls.calibrate)

    def test_every_block_is_recorded(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        lines = (self.record / "blocks.jsonl").read_text(encoding="utf-8").splitlines()
        blocks = [line for line in map(json.loads, lines) if "us" in line]
        self.assertEqual(len(blocks), PROCESSES * BLOCKS)

    def test_the_same_call_finds_nothing_left_to_do(self):
        before = (self.record / "blocks.jsonl").read_bytes()
        again = warpledger(*self.calibrate)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((self.record / "blocks.jsonl").read_bytes(), before)

    def test_replays_of_another_length_are_refused(self):
        written = json.loads((self.record / "run.json").read_text(encoding="utf-8"))
        self.assertEqual((written["replay_us"], written["max_launches"]), (1000, 256))
        self.assertIn("replay_us was '1000.0', now is '500.0'",
                      warpledger(*self.calibrate, "--replay_us=500").stderr)

    def test_its_record_is_judged_in_families_of_the_size_asked_for(self):
        judged = warpledger("judge", f"--record={self.record}")
        self.assertEqual(judged.returncode, 0, judged.stderr)
        summary = json.loads((self.record / "summary.json").read_text(encoding="utf-8"))
        self.assertEqual(summary["aa"]["trials"], PAIRS)
        # A family of one that is INVALID is left out.
        self.assertEqual(summary["aa"]["families_with_false_verdict"]["of"] +
                         summary["aa"].get("invalid_trials", 0), PAIRS)
        self.assertEqual(summary["plants"][0]["trials"], 2)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`warpledger check` writes what it checked, and leaves out what it is told is known.

    check_gpu_test.py path/to/warpledger
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SKIPPED = 77
MISSING = 3  # warpledger's exit code where there is no GPU

PROGRAM = ""
CHECK = ("check", "--shapes=ragged_1x1", "--variants=minimal_scalar,ladder:kv_tiling",
         "--inputs=normal", "--seeds=1")


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=False)


class KnownCodeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def checked(self, out, *more):
        done = run(*CHECK, f"--out={self.folder / out}", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        path = self.folder / out
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines], done.stdout

    def test_what_is_known_is_left_out(self):
        both, _ = self.checked("both")
        self.assertEqual([row["variant"] for row in both],
                         ["minimal_scalar", "ladder:kv_tiling"])
        self.assertTrue(all(row["correct"] for row in both))
        hashes = [row["code_sha256"] for row in both]
        self.assertEqual(len(set(hashes)), 2)
        known = self.folder / "known"
        known.write_text(hashes[0] + "\n", encoding="utf-8")
        rest, _ = self.checked("rest", f"--known={known}")
        self.assertEqual([row["variant"] for row in rest], ["ladder:kv_tiling"])
        known.write_text("\n".join(hashes) + "\n", encoding="utf-8")
        none, said = self.checked("none", f"--known={known}")
        self.assertEqual(none, [])
        self.assertIn("0 checks, 0 wrong", said)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    PROGRAM = sys.argv.pop()
    if run(*CHECK).returncode == MISSING:
        print("no GPU here")
        sys.exit(SKIPPED)
    unittest.main()

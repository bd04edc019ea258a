# SPDX-License-Identifier: Apache-2.0
"""`warpledger check` writes what it checked, and leaves out what it is told is known."""

import json

from fixture import FolderTest, needs_gpu, warpledger

setUpModule = needs_gpu
CHECK = ("check", "--shapes=ragged_1x1", "--variants=minimal_scalar,ladder:kv_tiling",
         "--inputs=normal", "--seeds=1")


class KnownCodeTest(FolderTest):
    def checked(self, out, *more):
        path = self.path / out
        done = warpledger(*CHECK, f"--out={path}", *more)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line) for line in lines], done.stdout

    def test_what_is_known_is_left_out(self):
        both, _ = self.checked("both")
        self.assertEqual([row["variant"] for row in both],
                         ["minimal_scalar", "ladder:kv_tiling"])
        self.assertTrue(all(row["correct"] for row in both))
        hashes = [row["code_sha256"] for row in both]
        self.assertEqual(len(set(hashes)), 2)
        known = self.path / "known"
        known.write_text(hashes[0] + "\n", encoding="utf-8")
        rest, _ = self.checked("rest", f"--known={known}")
        self.assertEqual([row["variant"] for row in rest], ["ladder:kv_tiling"])
        known.write_text("\n".join(hashes) + "\n", encoding="utf-8")
        none, said = self.checked("none", f"--known={known}")
        self.assertEqual(none, [])
        self.assertIn("0 checks, 0 wrong", said)

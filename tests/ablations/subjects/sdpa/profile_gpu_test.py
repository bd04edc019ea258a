# SPDX-License-Identifier: Apache-2.0
"""`warpledger profile` reads counters of a kernel of each family by Nsight Compute."""

import json
import shutil
import unittest

from fixture import FolderTest, needs_gpu, warpledger

setUpModule = needs_gpu
# With more shared memory than a kernel has unasked, tensor maps, a cluster; with none of these.
VARIANTS = ("hopper_end", "hopper_small:kv_warpgroups", "hopper:mma_end", "minimal_scalar")
NCU = shutil.which("ncu") or shutil.which("/usr/local/cuda/bin/ncu")


@unittest.skipUnless(NCU, "Nsight Compute is missing")
class ProfileTest(FolderTest):
    def test_a_kernel_of_each_family_has_counters(self):
        done = warpledger("profile", "--shapes=b1_h8_s512_d64", f"--variants={','.join(VARIANTS)}",
                          f"--out={self.path / 'record'}")
        if "ERR_NVGPUCTRPERM" in done.stdout + done.stderr:  # a driver's setting
            self.skipTest("only root may read counters here")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = (self.path / "record/profiles.jsonl").read_text(encoding="utf-8").splitlines()
        self.assertEqual(len(lines), len(VARIANTS))
        for line in map(json.loads, lines):
            self.assertEqual(line["reason"], "", line)
            self.assertGreater(len(line["metrics"]), 5, line)

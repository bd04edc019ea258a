# SPDX-License-Identifier: Apache-2.0
"""Every preset configures: each leaves out other parts, which another part may ask for."""

import json
import subprocess
import sys

from fixture import ROOT, FolderTest


class Presets(FolderTest):
    def test_each_configures(self):
        presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
        names = [preset["name"] for preset in presets["configurePresets"]]
        self.assertIn("quick", names)
        for name in names:
            if name == "ladder":  # for this machine's GPU, which it may not have
                continue
            with self.subTest(name):
                done = subprocess.run(
                    ["cmake", "--preset", name, "-B", str(self.path / name),
                     f"-DWARPLEDGER_PYTHON={sys.executable}"],
                    cwd=ROOT, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

# SPDX-License-Identifier: Apache-2.0
"""ruff finds nothing in the tree's Python, by the rules of pyproject.toml.

requirements.txt pins ruff: other versions know other rules. Where it is not installed the test
skips and says so. To see the findings: build/venv/bin/ruff check
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import house_tree

WANTED = re.search(r"^ruff==(.+)$", (house_tree.ROOT / "requirements.txt").read_text("utf-8"),
                   re.MULTILINE).group(1)


def find_ruff():
    """Path of the pinned ruff, or (None, why not)."""
    path = shutil.which(pathlib.Path(sys.executable).parent / "ruff") or shutil.which("ruff")
    if path is None:
        return None, f"no ruff {WANTED}"
    version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    if version.stdout.split()[-1:] != [WANTED]:
        return None, f"no ruff {WANTED}, only {version.stdout.strip() or path}"
    return path, ""


def findings(ruff, root):
    """What ruff says of the Python under `root`, whose pyproject.toml has the rules."""
    return subprocess.run([ruff, "check", "--no-cache", "--output-format", "concise", "."],
                          cwd=root, capture_output=True, text=True, check=False)


class Ruff(unittest.TestCase):
    maxDiff = None

    def test_finds_nothing_in_the_tree(self):
        found = findings(RUFF, house_tree.ROOT)
        self.assertEqual((found.returncode, found.stdout.strip()), (0, "All checks passed!"),
                         found.stderr)

    def test_finds_a_name_that_nothing_uses(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(house_tree.ROOT / "pyproject.toml", folder)
            (pathlib.Path(folder) / "bad.py").write_text("import os\n", encoding="utf-8")
            found = findings(RUFF, folder)
            self.assertEqual(found.returncode, 1)
            self.assertIn("bad.py:1:8: F401", found.stdout)


RUFF, WHY_NOT = find_ruff()

if __name__ == "__main__":
    if RUFF is None:
        print(f"SKIPPED: {WHY_NOT}")
        sys.exit(77)
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""ruff finds nothing in the tree's Python, by the rules of pyproject.toml.

requirements.txt pins ruff: other versions know other rules. Where it is not installed the test
skips and says so. To see the findings: build/venv/bin/ruff check
"""

import re
import shutil
import unittest

import house_tree
from fixture import ROOT, FolderTest, run

WANTED = re.search(r"^ruff==(.+)$", (ROOT / "requirements.txt").read_text("utf-8"),
                   re.MULTILINE).group(1)


def findings(root):
    """What ruff says of the Python under `root`, whose pyproject.toml has the rules."""
    return run(RUFF, "check", "--no-cache", "--output-format", "concise", ".", cwd=root)


class Ruff(FolderTest):
    def test_finds_nothing_in_the_tree(self):
        found = findings(ROOT)
        self.assertEqual((found.returncode, found.stdout.strip()), (0, "All checks passed!"),
                         found.stderr)

    def test_finds_a_name_that_nothing_uses(self):
        shutil.copy(ROOT / "pyproject.toml", self.path)
        self.write("bad.py", "import os\n")
        self.ends(findings(self.path), 1, out="bad.py:1:8: F401")


if __name__ == "__main__":
    RUFF = house_tree.find_tool("ruff", WANTED, r"ruff (\S+)")
    unittest.main()

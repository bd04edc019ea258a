# SPDX-License-Identifier: Apache-2.0
"""Every C++ and CUDA file is formatted as .clang-format says.

Held against clang-format 14, which requirements.txt pins: other versions format
some lines otherwise. Where there is no such version the test skips and says so.
To reformat: build/venv/bin/clang-format -i FILE
"""

import re
import shutil
import unittest

import house_tree
from fixture import ROOT, FolderTest, run


def unformatted(root, paths):
    """Those of `paths` that clang-format would change."""
    done = run(CLANG_FORMAT, "--dry-run", "-Werror", "--style=file", *paths, cwd=root)
    return sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", done.stderr, re.MULTILINE)))


class Format(FolderTest):
    def test_leaves_every_file_as_it_is(self):
        paths = house_tree.files(ROOT, house_tree.CPP_SUFFIXES)
        self.assertGreater(len(paths), 10)
        self.assertEqual(unformatted(ROOT, paths), [])

    def test_finds_an_unformatted_file(self):
        shutil.copy(ROOT / ".clang-format", self.path)
        self.write("good.cc", "int x = 1;\n")
        self.write("bad.cc", "int  x=1;\n")
        self.assertEqual(unformatted(self.path, ["good.cc", "bad.cc"]), ["bad.cc"])


if __name__ == "__main__":
    CLANG_FORMAT = house_tree.find_tool("clang-format", "14", r"version (\d+)")
    unittest.main()

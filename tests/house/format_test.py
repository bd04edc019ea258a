# SPDX-License-Identifier: Apache-2.0
"""Every C++ and CUDA file is formatted as .clang-format says.

Held against clang-format 14, which requirements.txt pins: other versions format
some lines otherwise. Where there is no such version the test skips and says so.
To reformat: build/venv/bin/clang-format -i FILE
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import house_tree

WANTED_MAJOR = 14


def find_clang_format():
    """Path of a clang-format of the wanted version, or (None, why not)."""
    found = []
    for candidate in (pathlib.Path(sys.executable).parent / "clang-format",
                      f"clang-format-{WANTED_MAJOR}", "clang-format"):
        path = shutil.which(str(candidate))
        if path is None:
            continue
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
        match = re.search(r"version (\d+)", version.stdout)
        if match and int(match.group(1)) == WANTED_MAJOR:
            return path, ""
        found.append(version.stdout.strip() or path)
    return None, f"no clang-format {WANTED_MAJOR}" + (f", only {'; '.join(found)}" if found else "")


def unformatted(clang_format, root, paths):
    """Those of `paths` that clang-format would change."""
    return [
        str(path)
        for path in paths
        if subprocess.run([clang_format, "--dry-run", "-Werror", "--style=file", root / path],
                          capture_output=True, check=False).returncode != 0
    ]


class Format(unittest.TestCase):
    maxDiff = None

    def test_leaves_every_file_as_it_is(self):
        paths = house_tree.files(house_tree.ROOT, house_tree.CPP_SUFFIXES)
        self.assertGreater(len(paths), 10)
        self.assertEqual(unformatted(CLANG_FORMAT, house_tree.ROOT, paths), [])

    def test_finds_an_unformatted_file(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copy(house_tree.ROOT / ".clang-format", root)
            (root / "good.cc").write_text("int x = 1;\n", encoding="utf-8")
            (root / "bad.cc").write_text("int  x=1;\n", encoding="utf-8")
            paths = [pathlib.Path("good.cc"), pathlib.Path("bad.cc")]
            self.assertEqual(unformatted(CLANG_FORMAT, root, paths), ["bad.cc"])


CLANG_FORMAT, WHY_NOT = find_clang_format()

if __name__ == "__main__":
    if CLANG_FORMAT is None:
        print(f"SKIPPED: {WHY_NOT}")
        sys.exit(77)
    unittest.main()

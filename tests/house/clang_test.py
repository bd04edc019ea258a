# SPDX-License-Identifier: Apache-2.0
"""clang takes every host header of the house.

The whole build with clang is a row of tests/environments.py, which takes minutes. Exit code 77:
there is no clang++.
"""

import re
import shutil
import subprocess

from fixture import BUILD, ROOT, FolderTest, skip

if not shutil.which("clang++"):
    skip("there is no clang++")

FOLDERS = ("ablations", "reports", "kernels/common", "kernels/sdpa")
# Where a path to nvcc's headers is needed, or a test's own headers.
CUDA = re.compile(r"#include [<\"](cuda\w*|vector_types|nvml)\.h")


def headers(root):
    """Those that reach no header of CUDA, nor a file that does, from the repository's root."""
    paths = {path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
             for folder in FOLDERS for path in sorted((root / folder).rglob("*.h"))}
    reaches = {name for name, text in paths.items() if CUDA.search(text)}
    while True:
        more = {name for name, text in paths.items() if name not in reaches and any(
            other in reaches for other in re.findall(r'#include "([^"]+)"', text))}
        if not more:
            return sorted(set(paths) - reaches)
        reaches |= more


def refused(folder, names):
    """What clang says of a file that includes all of them; empty: it takes them."""
    source = folder / "all.cc"
    source.write_text("".join(f'#include "{name}"\n' for name in names), encoding="utf-8")
    done = subprocess.run(["clang++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                           f"-I{folder}", f"-I{ROOT}", f"-I{BUILD / 'generated'}", source], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode else ""


class Clang(FolderTest):
    def test_takes_every_host_header(self):
        names = headers(ROOT)
        self.assertGreater(len(names), 100)
        self.assertEqual(refused(self.path, names), "")

    def test_a_header_that_only_gcc_takes_is_found(self):
        (self.path / "a.h").write_text(
            "#pragma once\ntemplate <typename T>\nstruct Each {\n  T value;\n};\n"
            "inline int f() { return Each{1}.value; }\n"
            "inline int g() { int unused; return 0; }\n", encoding="utf-8")
        self.assertIn("unused", refused(self.path, ["a.h"]))

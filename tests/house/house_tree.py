# SPDX-License-Identifier: Apache-2.0
"""The files of the source tree, and tools of a pinned version, for tests that look at the tree."""

import os
import pathlib
import re
import shutil
import sys

from fixture import run, skip

CPP_SUFFIXES = (".h", ".cc", ".cu", ".cuh")


def files(root, suffixes=None):
    """Paths relative to `root`, sorted, without build folders, outputs and hidden ones."""
    found = []
    for folder, folders, names in os.walk(root):
        relative = pathlib.Path(folder).relative_to(root)
        top = relative == pathlib.Path(".")
        folders[:] = [name for name in folders
                      if not name.startswith(".") and name != "__pycache__"
                      and not (top and (name in ("build", "out") or name.startswith("build-")))]
        found += [relative / name for name in names
                  if suffixes is None or name.endswith(tuple(suffixes))]
    return sorted(found)


def find_tool(name, wanted, version):
    """Path of the tool whose --version says `wanted` where the pattern `version` matches; without
    one the test skips."""
    found = []
    for candidate in pathlib.Path(sys.executable).parent / name, f"{name}-{wanted}", name:
        if path := shutil.which(candidate):
            said = run(path, "--version")
            if (match := re.search(version, said.stdout)) and match[1] == wanted:
                return path
            found.append(said.stdout.strip() or path)
    return skip(f"no {name} {wanted}" + (f", only {'; '.join(found)}" if found else ""))

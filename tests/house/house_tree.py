# SPDX-License-Identifier: Apache-2.0
"""The files of the source tree, for the tests that look at the tree itself."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
CPP_SUFFIXES = (".h", ".cc", ".cu", ".cuh")


def files(root, suffixes=None):
    """Paths relative to `root`, sorted, without build folders, outputs and hidden ones."""
    found = []
    for folder, folders, names in os.walk(root):
        relative = pathlib.Path(folder).relative_to(root)
        top = relative == pathlib.Path(".")
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name != "__pycache__"
            and not (top and (name in ("build", "out") or name.startswith("build-")))
        ]
        for name in names:
            if suffixes is None or name.endswith(tuple(suffixes)):
                found.append(relative / name)
    return sorted(found)

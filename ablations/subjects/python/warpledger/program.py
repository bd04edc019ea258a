# SPDX-License-Identifier: Apache-2.0
"""Where the program `warpledger` is, and the files that it brings.

A wheel has them in `program/`; in a checkout they are in the build and in the tree.
"""

import functools
import importlib.util
import os
import pathlib
import sys

_HERE = pathlib.Path(__file__).resolve().parent


def checkouts(package):
    """The checkout around a package's folder; none where that is too near the root, as /app/warpledger is."""
    return list(package.parents)[3:4]


def path():
    """Of the program; $WARPLEDGER_PROGRAM goes first. FileNotFoundError says what to do."""
    known = [os.environ.get("WARPLEDGER_PROGRAM"), _HERE / "program/bin/warpledger",
             *(tree / build / "bin/warpledger" for tree in checkouts(_HERE) for build in ("build", "build-replay"))]
    for each in known:
        if each and os.access(each, os.X_OK):
            return str(each)
    raise FileNotFoundError("there is no program `warpledger`: install the wheel, or build it (cmake --preset "
                            "replay && cmake --build --preset replay), or name it in WARPLEDGER_PROGRAM")


@functools.cache
def module(relative):
    """A Python file of the program's, as a module."""
    for root in (_HERE / "program/share/warpledger", *checkouts(_HERE)):
        file = root / relative
        if file.is_file():
            spec = importlib.util.spec_from_file_location(f"warpledger_{file.stem}", file)
            loaded = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(loaded)
            return loaded
    raise FileNotFoundError(f"{relative} is neither in the package nor in a checkout around it")


def main():
    """The command `warpledger` of an installed package, whose Python is this one."""
    os.environ.setdefault("WARPLEDGER_PYTHON", sys.executable)
    os.execv(path(), [path(), *sys.argv[1:]])

# SPDX-License-Identifier: Apache-2.0
"""For tests of scripts whose programs need a GPU: scripts that stand in for those programs."""

import importlib.util
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def load(path):
    """A script as a module, which finds what lies beside it."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def script(path, text):
    """Beside what a killed test's process may still run, which can't be written to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".new")
    scratch.write_text("#!/usr/bin/env bash\n" + text, encoding="utf-8")
    scratch.chmod(scratch.stat().st_mode | stat.S_IEXEC)
    scratch.replace(path)


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def call(self, *command, **environment):
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=60,
                              check=False, env=os.environ | {"PATH": path} | environment)

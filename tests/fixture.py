# SPDX-License-Identifier: Apache-2.0
"""What tests in Python share: the tree's root, a folder of their own, and calls of programs."""

import contextlib
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[1]
# The program `warpledger`, the build, and whether it has kernels: ctest names these.
PROGRAM = os.environ.get("WARPLEDGER_PROGRAM", "") and os.path.abspath(os.environ["WARPLEDGER_PROGRAM"])
BUILD = pathlib.Path(os.environ.get("WARPLEDGER_BUILD", ROOT / "build"))
HAS_KERNELS = os.environ.get("WARPLEDGER_HAS_KERNELS", "") == "ON"
# No test multiplies large matrices. NumPy's threads for those, in every program that a test starts,
# would wait busily for work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def load(path):
    """A script as a module, which finds what lies beside it."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def skip(why):
    """Ends the test as what ctest calls skipped."""
    print(f"SKIPPED: {why}")
    sys.exit(77)


def run(*command, check=False, **options):
    return subprocess.run(command, capture_output=True, text=True, check=check, **options)


def warpledger(*arguments, **options):
    return run(PROGRAM, *arguments, **options)


def needs_gpu():
    done = warpledger("check", "--shapes=small", "--variants=minimal_scalar", "--inputs=normal", "--seeds=1")
    if done.returncode == 3:
        skip(done.stderr.strip())


class FolderTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name)

    def write(self, name, text, mode=None):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if mode is not None:
            path.chmod(mode)
        return path

    def call(self, *command, stdout=subprocess.PIPE, **environment):
        """In the folder, whose programs come first."""
        path = f"{self.path}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run([*map(str, command)], cwd=self.path, stdin=subprocess.DEVNULL,
                              stdout=stdout, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=200, env=os.environ | {"PATH": path} | environment)

    def run_main(self, main, *arguments):
        """What a script's main() returns for these arguments, and what it prints."""
        said = io.StringIO()
        with (mock.patch.object(sys, "argv", ["script", *map(str, arguments)]),
              contextlib.redirect_stdout(said), contextlib.redirect_stderr(said)):
            return main(), said.getvalue()

    def ends(self, done, code=0, out=(), err=()):
        """Holds a call to its exit code and to what it says (a text, or several); returns it."""
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        for wanted, said in (out, done.stdout), (err, done.stderr):
            for text in [wanted] if isinstance(wanted, str) else wanted:
                self.assertIn(text, said)
        return done

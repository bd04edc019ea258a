# SPDX-License-Identifier: Apache-2.0
"""The wheel, built from this tree and installed into a clean environment, without a CUDA toolkit; and one
with the library, where there is one."""

import os
import re
import subprocess
import shutil
import sys
import unittest
import venv
import zipfile

from fixture import ROOT
from python_fixture import HEAD, PythonTest

GATE = f"""
{HEAD}
GIVEN = {{"inputs": make_inputs, "problems": PROBLEMS, "reference": lambda x: x.sum(axis=1), **SHORT}}

def test_passes(wl_gate):
    assert wl_gate(sooner, summed, **GIVEN).verdicts[0].verdict == "ADOPT"

def test_fails(wl_gate):
    wl_gate(later, summed, **GIVEN)

def test_breaks(wl_gate):
    wl_gate(wrong, summed, **GIVEN)
"""


class Wheel(PythonTest):
    def run_in(self, *command, timeout=1200, **environment):
        """Without this tree, and without nvcc."""
        return subprocess.run([*map(str, command)], cwd=self.path, capture_output=True, text=True, check=False,
                              timeout=timeout, stdin=subprocess.DEVNULL,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(self.path)} | {
                                  name: value for name, value in os.environ.items()
                                  if name.startswith(("PIP_", "SSL_", "REQUESTS_"))} | environment)

    def wheel(self, **environment):
        done = self.run_in(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir=wheels", ROOT,
                           CMAKE_BUILD_PARALLEL_LEVEL="2", **environment)
        if re.search("No matching distribution|Could not find a version", done.stderr):
            self.skipTest("PyPI can't be reached: " + done.stderr.strip().splitlines()[-1])
        self.ends(done)
        wheel, = (self.path / "wheels").glob("*.whl")
        self.assertRegex(wheel.name, r"^warpledger-[\d.]+-py3-none-linux_x86_64\.whl$")
        self.assertLess(wheel.stat().st_size, 16e6)
        return wheel

    def install(self):
        wheel = self.wheel()
        venv.create(self.path / "clean", with_pip=True)
        self.ends(self.run_in("clean/bin/pip", "install", "--quiet", wheel, "pytest"))

    def test_installs_measures_judges_and_gates(self):
        self.install()
        self.assertIn("judge", self.ends(self.run_in("clean/bin/warpledger", "help")).stdout)
        self.write("program.py", HEAD + """
result = wl.compare({"summed": summed, "sooner": sooner}, make_inputs, PROBLEMS, lambda x: x.sum(axis=1),
                    record="record", **SHORT)
print(wl.__file__, result, result.report("pages").read_text())
""")
        done = self.ends(self.run_in("clean/bin/python", "program.py"), out=["**ADOPT**", "record"])
        self.assertIn(str(self.path / "clean/lib"), done.stdout)
        self.assertNotIn(str(ROOT), (self.path / "record/run.json").read_text(encoding="utf-8"))
        self.ends(self.run_in("clean/bin/warpledger", "pack", "record"))

        self.write("test_gate.py", GATE)
        done = self.run_in("clean/bin/pytest", "-p", "no:cacheprovider", "test_gate.py")
        self.ends(done, code=1, out=["2 failed, 1 passed", "REGRESSION", "output 0 is wrong"])

        done = self.run_in("clean/bin/python", "-c", "import warpledger.attention as a; a.library_path()")
        self.ends(done, code=1, err=["install the wheel where there is a CUDA toolkit"])

    @unittest.skipUnless(shutil.which("nvcc") or os.path.exists("/usr/local/cuda/bin/nvcc"), "no CUDA toolkit")
    def test_brings_the_library_once_where_it_is_asked_for(self):
        names = zipfile.ZipFile(self.wheel(WARPLEDGER_WHEEL_CUDA="1")).namelist()
        self.assertEqual([name for name in names if "sdpa." in name and "/lib" in name or name.endswith("sdpa.h")],
                         ["warpledger/program/include/warpledger_sdpa.h", "warpledger/program/lib/libwarpledger_sdpa.so"])
        self.assertIn("warpledger/torch.py", names)

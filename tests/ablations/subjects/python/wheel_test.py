# SPDX-License-Identifier: Apache-2.0
"""The wheel, built from this tree and installed into a clean environment, without a CUDA toolkit."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv

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


CUDA = "/usr/local/cuda"


def hiding_cuda():
    """What goes before a command so that it finds no CUDA toolkit; None where that is not allowed."""
    if not pathlib.Path(CUDA).is_dir():
        return []
    hide = ["unshare", "--map-root-user", "--mount", "sh", "-c", f'mount -t tmpfs none {CUDA} && exec "$@"', "sh"]
    try:
        return hide if subprocess.run([*hide, "true"], capture_output=True, check=False).returncode == 0 else None
    except FileNotFoundError:
        return None


class Wheel(PythonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.hiding = hiding_cuda()

    def run_in(self, *command, timeout=2400, **environment):
        """Without this tree, and without nvcc."""
        return subprocess.run([*(self.hiding or []), *map(str, command)], cwd=self.path, capture_output=True, text=True, check=False,
                              timeout=timeout, stdin=subprocess.DEVNULL,
                              env={"PATH": "/usr/bin:/bin", "HOME": str(self.path)} | {
                                  name: value for name, value in os.environ.items()
                                  if name.startswith(("PIP_", "SSL_", "REQUESTS_"))} | environment)

    def install(self):
        done = self.run_in(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir=wheels", ROOT,
                           CMAKE_BUILD_PARALLEL_LEVEL="2")
        if re.search("No matching distribution|Could not find a version", done.stderr):
            self.skipTest("PyPI can't be reached: " + done.stderr.strip().splitlines()[-1])
        self.ends(done)
        wheel, = (self.path / "wheels").glob("*.whl")
        self.assertRegex(wheel.name, r"^warpledger-[\d.]+-py3-none-linux_x86_64\.whl$")
        self.assertLess(wheel.stat().st_size, 16e6)
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

        # What reads records takes those of a GPU, and studies of host code run.
        program = "clean/bin/warpledger"
        record = sorted((ROOT / "reports/data/h200").glob("ladder-*.tar.zst"))[-1]
        self.ends(self.run_in(program, "judge", f"--record={record}", "--out=summary.json"))
        self.ends(self.run_in(program, "report", f"--record={record}", "--out=ladder_pages", "--noplots"))
        self.ends(self.run_in(program, "study", "new", "mine"))
        done = self.run_in(program, "study", "check", "mine")
        if self.hiding is None:
            self.ends(done)
        else:
            self.ends(done, code=3, err="no nvcc, which compiles a study's kernels")
        flags = self.path / "flags"
        shutil.copytree(ROOT / "tests/ablations/subjects/study/flags", flags,
                        ignore=shutil.ignore_patterns(".warpledger"))
        text = (flags / "study.toml").read_text(encoding="utf-8")
        (flags / "study.toml").write_text("[[claim]]".join(text.replace('"-O2"', '"-O2", "-DPASSES=1"').split(
            "[[claim]]")[:2]), encoding="utf-8")
        self.ends(self.run_in(program, "study", "check", "flags"))
        # On busy cores the ratio of one process is off by a factor of eight: three were not enough.
        self.ends(self.run_in(program, "run", "--study=flags", "--out=study", "--processes=6", "--blocks=4"))
        self.ends(self.run_in(program, "judge", "--record=study"), out="ADOPT")

        self.write("test_gate.py", GATE)
        done = self.run_in("clean/bin/pytest", "-p", "no:cacheprovider", "test_gate.py")
        self.ends(done, code=1, out=["2 failed, 1 passed", "REGRESSION", "output 0 is wrong"])
        if self.hiding is None:
            self.skipTest(f"all passed, but beside {CUDA}: nothing may be mounted over it here")
